/* SPDX-License-Identifier: Apache-2.0 */
/* The plug-in of oneDNN: what it does faster than our own kernels, opened at run time. conv.c and
 * matmul.c are kernels (engine/kernel/kernel.h): each describes its node to the library, which
 * makes a primitive. All calls are made by one thread (worker.h), because Debian's library runs
 * on OpenMP, where each caller has threads of its own. compat.h bridges generations 2 and 3.
 *
 * Here: one primitive with its memory objects, as convolutions and matrix products use it. */
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

/* On the worker thread only. constant: plain weights described by `from`, packed here; NULL: they
 * come with each run. */
dnnl_status_t primitive_create(struct primitive *p, const_primitive_desc pd, memory_desc from,
                               const void *constant, bool with_bias);
void          primitive_destroy(struct primitive *p);
dnnl_status_t primitive_run(struct primitive *p, const void *src, const void *weights,
                            const void *bias, void *dst, void *scratch);

/* Turns an error of oneDNN into one of ours. */
sac_result onednn_fail(const struct sac_op_call *c, dnnl_status_t status, const char *doing);

extern const struct sac_kernel onednn_Conv, onednn_FusedConv, onednn_ConvTranspose, onednn_MatMul,
    onednn_Gemm;

#endif
