/* SPDX-License-Identifier: Apache-2.0 */
/* Work captured as a CUDA graph: launched as one, however many kernels it is. */
#include "device/cuda/common.h"

struct sac_device_graph {
    cudaGraphExec_t exec;
};

/* Thread-local: other threads may allocate and queue on other streams meanwhile, which would break
 * a global capture; providers must follow the rules for this thread (engine/kernel/kernel.h). */
sac_result cuda_capture_begin(struct sac_device *dev, struct sac_device_stream *stream)
{
    return CUDA_CALL(
        dev, cudaStreamBeginCapture(cuda_stream_of(dev, stream), cudaStreamCaptureModeThreadLocal),
        "the begin of a capture");
}

static cudaError_t instantiate(cudaGraph_t graph, cudaStream_t stream, cudaGraphExec_t *exec)
{
    cudaError_t res = cudaGraphInstantiate(exec, graph, 0);
    return res == cudaSuccess ? cudaGraphUpload(*exec, stream) : res;
}

sac_result cuda_capture_end(struct sac_device *dev, struct sac_device_stream *stream,
                            struct sac_device_graph **out)
{
    struct sac_device_graph *g = sac_new(struct sac_device_graph);
    cudaGraph_t              graph = NULL;
    cudaStream_t             handle = cuda_stream_of(dev, stream);
    sac_result               res = cuda_enter(dev);
    if (res != SAC_OK) {
        sac_free(g);
        return res;
    }
    cudaError_t done = cudaStreamEndCapture(handle, &graph); /* always: the stream must capture no
                                                                more */
    if (done == cudaSuccess && g)
        done = instantiate(graph, handle, &g->exec);
    res = cuda_check(dev, done, "the end of a capture");
    if (res == SAC_OK && !g)
        res = SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "%s: no memory for a graph's state", dev->name);
    if (graph)
        cudaGraphDestroy(graph);
    if (res != SAC_OK && g && g->exec)
        cudaGraphExecDestroy(g->exec);
    cuda_leave();
    if (res == SAC_OK)
        *out = g;
    else
        sac_free(g);
    return res;
}

sac_result cuda_graph_launch(struct sac_device *dev, struct sac_device_stream *stream,
                             struct sac_device_graph *graph)
{
    return CUDA_CALL(dev, cudaGraphLaunch(graph->exec, cuda_stream_of(dev, stream)),
                     "a graph's launch");
}

/* The driver frees a graph that still runs when it is done. */
void cuda_graph_destroy(struct sac_device *dev, struct sac_device_graph **graph)
{
    struct sac_device_graph *g = graph ? *graph : NULL;
    if (!g)
        return;
    *graph = NULL;
    if (cuda_enter(dev) == SAC_OK) {
        cudaGraphExecDestroy(g->exec);
        cuda_leave();
    }
    sac_free(g);
}
