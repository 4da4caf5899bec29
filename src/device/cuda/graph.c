/* SPDX-License-Identifier: Apache-2.0 */
/* Work captured as a CUDA graph: launched as one, however many kernels it is. */
#include <string.h>

#include "device/cuda/common.h"

struct sac_device_graph *cuda_graph_new(void)
{
    static atomic_uint_fast64_t last;
    struct sac_device_graph    *g = sac_new(struct sac_device_graph);
    if (g)
        g->id = (uint64_t)atomic_fetch_add(&last, 1) + 1;
    return g;
}

/* ---- parts ----
 *
 * One stream captures them all: before each part it is told which nodes the next one waits for. */

struct part {
    cudaGraphNode_t *nodes; /* its last ones */
    size_t           count;
};
struct cuda_parts {
    struct part     *part;
    size_t           count, cap; /* parts that are complete, but the last */
    cudaGraphNode_t *after;      /* scratch: what the next part waits for */
    size_t           after_cap;
};

static void drop_parts(struct sac_device_stream *stream)
{
    struct cuda_parts *p = stream->parts;
    for (size_t i = 0; p && i < p->count; i++)
        sac_free(p->part[i].nodes);
    if (p) {
        sac_free(p->part);
        sac_free(p->after);
    }
    sac_free(p);
    stream->parts = NULL;
}

static cudaError_t get_last_nodes(cudaStream_t stream, const cudaGraphNode_t **nodes, size_t *count)
{
    enum cudaStreamCaptureStatus status;
    const cudaGraphEdgeData     *edges; /* asked for: else edges that are not the common ones, such
                                           as those of early.c, are a fault */
#if CUDART_VERSION >= 13000
    return cudaStreamGetCaptureInfo(stream, &status, NULL, NULL, nodes, &edges, count);
#else
    const cudaError_t res = cudaStreamGetCaptureInfo_v2(stream, &status, NULL, NULL, nodes, count);
    if (res != cudaErrorLossyQuery) /* drivers before 12.3 have no such edges, nor the other call */
        return res;
    return cudaStreamGetCaptureInfo_v3(stream, &status, NULL, NULL, nodes, &edges, count);
#endif
}

static cudaError_t wait_for_nodes(cudaStream_t stream, cudaGraphNode_t *nodes, size_t count)
{
#if CUDART_VERSION >= 13000
    return cudaStreamUpdateCaptureDependencies(stream, nodes, NULL, count,
                                               cudaStreamSetCaptureDependencies);
#else
    return cudaStreamUpdateCaptureDependencies(stream, nodes, count,
                                               cudaStreamSetCaptureDependencies);
#endif
}

/* What was captured last is the end of the latest part. A part of no work has what it waits for. */
static cudaError_t end_part(struct sac_device_stream *stream)
{
    struct part           *part = &stream->parts->part[stream->parts->count - 1];
    const cudaGraphNode_t *nodes = NULL;
    size_t                 count = 0;
    cudaError_t            res = get_last_nodes(stream->handle, &nodes, &count);
    if (res != cudaSuccess || count == 0)
        return res;
    part->nodes = sac_calloc(count, sizeof *part->nodes);
    if (!part->nodes)
        return cudaErrorMemoryAllocation;
    memcpy(part->nodes, nodes, count * sizeof *nodes);
    part->count = count;
    return cudaSuccess;
}

static bool has_node(const cudaGraphNode_t *nodes, size_t count, cudaGraphNode_t node)
{
    for (size_t i = 0; i < count; i++)
        if (nodes[i] == node)
            return true;
    return false;
}

/* Parts of no work may have the same nodes; a node has each of its dependencies once. */
static cudaError_t begin_part(struct sac_device_stream *stream, const int *after, int count)
{
    struct cuda_parts *p = stream->parts;
    size_t             nodes = 0;
    for (int i = 0; i < count; i++) {
        const struct part *part = &p->part[after[i]];
        if (!sac_grow((void **)&p->after, &p->after_cap, nodes + part->count, sizeof *p->after))
            return cudaErrorMemoryAllocation;
        for (size_t k = 0; k < part->count; k++)
            if (!has_node(p->after, nodes, part->nodes[k]))
                p->after[nodes++] = part->nodes[k];
    }
    if (!sac_grow((void **)&p->part, &p->cap, p->count + 1, sizeof *p->part))
        return cudaErrorMemoryAllocation;
    p->part[p->count++] = (struct part){0};
    return wait_for_nodes(stream->handle, p->after, nodes);
}

static cudaError_t next_part(struct sac_device_stream *stream, const int *after, int count)
{
    const bool first = !stream->parts;
    if (first)
        stream->parts = sac_new(struct cuda_parts);
    if (!stream->parts)
        return cudaErrorMemoryAllocation;
    const cudaError_t res = first ? cudaSuccess : end_part(stream);
    return res == cudaSuccess ? begin_part(stream, after, count) : res;
}

sac_result cuda_capture_part(struct sac_device *dev, struct sac_device_stream *stream,
                             const int *after, int count)
{
    return CUDA_CALL(dev, next_part(cuda_own_stream(dev, stream), after, count),
                     "a part of a capture");
}

/* ---- captures ---- */

/* Thread-local: other threads may allocate and queue on other streams meanwhile, which would break
 * a global capture; providers must follow the rules for this thread (engine/kernel/kernel.h). */
sac_result cuda_capture_begin(struct sac_device *dev, struct sac_device_stream *stream)
{
    return CUDA_CALL(
        dev, cudaStreamBeginCapture(cuda_stream_of(dev, stream), cudaStreamCaptureModeThreadLocal),
        "the begin of a capture");
}

/* Waits for the upload: CUDA orders a launch behind earlier launches of the graph and the work of
 * its own stream, which is another than this, not behind uploads. */
static cudaError_t instantiate(cudaGraph_t graph, cudaStream_t stream, cudaGraphExec_t *exec)
{
    cudaError_t res = cudaGraphInstantiate(exec, graph, 0);
    if (res == cudaSuccess)
        res = cudaGraphUpload(*exec, stream);
    return res == cudaSuccess ? cudaStreamSynchronize(stream) : res;
}

sac_result cuda_capture_end(struct sac_device *dev, struct sac_device_stream *stream,
                            struct sac_device_graph **out)
{
    struct sac_device_graph *g = cuda_graph_new();
    cudaGraph_t              graph = NULL;
    cudaStream_t             handle = cuda_stream_of(dev, stream);
    drop_parts(cuda_own_stream(dev, stream));
    sac_result res = cuda_enter(dev);
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
    if (g)
        g->graph = graph; /* for others that it becomes a part of */
    else if (graph)
        cudaGraphDestroy(graph);
    cuda_leave();
    if (res == SAC_OK)
        *out = g;
    else
        cuda_graph_destroy(dev, &g);
    return res;
}

sac_result cuda_graph_launch(struct sac_device *dev, struct sac_device_stream *stream,
                             struct sac_device_graph *graph)
{
    struct sac_device_stream *own = cuda_own_stream(dev, stream);
    if (cuda_gather_graph(own, graph))
        return SAC_OK;
    return CUDA_CALL(dev, cudaGraphLaunch(graph->exec, own->handle), "a graph's launch");
}

/* The driver frees a graph that still runs when it is done. */
void cuda_graph_destroy(struct sac_device *dev, struct sac_device_graph **graph)
{
    cuda_gather_part_all(); /* it may be among what is gathered */
    while (graph && *graph) {
        struct sac_device_graph *g = *graph;
        *graph = g->next;
        if (cuda_enter(dev) == SAC_OK) {
            if (g->exec)
                cudaGraphExecDestroy(g->exec);
            if (g->graph)
                cudaGraphDestroy(g->graph);
            cuda_leave();
        }
        cuda_pieces_free(&g->pieces);
        sac_free(g);
    }
}
