/* SPDX-License-Identifier: Apache-2.0 */
/* The plug-in of oneDNN: the convolutions that it does faster than our own kernels, opened at run
 * time. conv.c holds the kernels (engine/kernel/kernel.h): each describes its node to the library,
 * which makes primitives: one for the rows of each thread, which run on the worker pool, each as a
 * team of one. What cannot be cut is called by one thread (worker.h), because Debian's library runs
 * on OpenMP, where each caller has threads of its own. compat.h bridges generations 2 and 3.
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

/* On the worker thread, or as a team of one. weights and bias: where it has none itself. */
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
    memory_desc           shared;    /* the weights as another primitive packed them; NULL: packs
                                        its own */
    size_t scratch_bytes;            /* that the primitive needs */
};
/* The offer, or a refusal where the library has no compiled implementation. */
struct sac_kernel_offer making_offer(struct making *m, int threads, struct sac_kernel_offer offer);
/* The layout of its packed weights; it belongs to the primitive. */
memory_desc primitive_weights(const struct primitive *p);
/* Makes p, and tells the plan its implementation. With shared weights: dnnl_unimplemented where it
 * is another one than the plan's, or wants them packed otherwise. */
dnnl_status_t making_primitive(struct making *m, int threads, struct primitive *p);
void          primitive_release(struct primitive *p, int threads); /* on any thread */

/* Turns an error of oneDNN into one of ours. */
sac_result onednn_fail(const struct sac_op_call *c, dnnl_status_t status, const char *doing);

extern const struct sac_kernel onednn_Conv, onednn_FusedConv, onednn_ConvTranspose;

#endif
