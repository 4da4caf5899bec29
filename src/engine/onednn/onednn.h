/* SPDX-License-Identifier: Apache-2.0 */
/* The plug-in of oneDNN: the convolutions that it does faster than our own kernels, opened at run
 * time. conv.c holds the kernels (engine/kernel/kernel.h): each describes its node to the library,
 * which makes a primitive. All calls are made by one thread (worker.h), because Debian's library
 * runs on OpenMP, where each caller has threads of its own. compat.h bridges generations 2 and 3.
 *
 * Here: one primitive with its memory objects. */
#ifndef SAC_ENGINE_ONEDNN_ONEDNN_H
#define SAC_ENGINE_ONEDNN_ONEDNN_H

#include "engine/kernel/kernel.h"
#include "engine/onednn/compat.h"
#include "engine/onednn/worker.h"

extern dnnl_engine_t onednn_engine;
extern dnnl_stream_t onednn_stream;

struct primitive {
    dnnl_primitive_t handle;
    dnnl_memory_t    src, weights, bias, dst, scratchpad; /* bias may be NULL */
    void            *packed;  /* constant weights in the library's own layout, or NULL */
    float           *numbers; /* a constant bias, or NULL */
};

/* On the worker thread. */
dnnl_status_t primitive_run(struct primitive *p, const void *src, const void *weights,
                            const void *bias, void *dst, void *scratch);

/* A node on its way to a primitive: what the requests of conv.c begin with. describe
 * and weights get the request, on the worker thread. */
struct making {
    struct sac_kernel_plan *plan;
    bool                    has_bias;
    void (*describe)(void *request);             /* sets pd and status */
    memory_desc (*weights)(const void *request); /* as the node has them */
    dnnl_primitive_desc_t pd;
    dnnl_status_t         status;
    struct primitive     *primitive; /* that is made */
};
/* The offer, or a refusal where the library has no compiled implementation. */
struct sac_kernel_offer making_offer(struct making *m, int threads, struct sac_kernel_offer offer);
/* Makes p, and tells the plan about it. */
dnnl_status_t making_primitive(struct making *m, int threads, struct primitive *p);
void          primitive_release(struct primitive *p, int threads); /* on any thread */

/* Turns an error of oneDNN into one of ours. */
sac_result onednn_fail(const struct sac_op_call *c, dnnl_status_t status, const char *doing);

extern const struct sac_kernel onednn_Conv, onednn_FusedConv, onednn_ConvTranspose;

#endif
