/* SPDX-License-Identifier: Apache-2.0 */
/* The provider of all operators but the large products: each is a row that decides layouts, fills a
 * struct of parameters when a plan is created, and launches with them. This code does not use CUDA,
 * so the tests compile it a second time with bodies that run on the host (each.cuh). */
#ifndef SAC_ENGINE_CUDA_KERNELS_ROW_H
#define SAC_ENGINE_CUDA_KERNELS_ROW_H

#include <stddef.h>

#include "engine/cuda/kernels/types.h"
#include "engine/kernel/kernel.h"

struct ops_row {
    /* Sets what differs from sac_kernel_take; false with a reason. NULL: everything plain.
     * Precision: inputs keep theirs; ops_halve_output decides that of outputs. */
    bool (*layouts)(const struct sac_kernel_question *q, struct sac_kernel_offer *offer);
    /* Parameters from shapes, attributes and constants, once the layouts are decided. */
    sac_result (*fill)(struct sac_kernel_plan *plan, void *params);
    ops_launch *launch;
    size_t      bytes; /* of the parameters */
    size_t      each;  /* and for each input or each output, whichever are more */
    const void *own;   /* what its functions know of this operator (ops_own) */
};

/* OPS_ROW(Det, NULL, det_fill, ops_launch_det, ops_det): params is the struct's name. */
#define OPS_ROW(op, layouts, fill, launch, params) \
    OPS_OWN_ROW(op, layouts, fill, launch, params, NULL)
#define OPS_OWN_ROW(op, layouts, fill, launch, params, own) \
    const struct ops_row ops_row_##op = {layouts, fill, launch, sizeof(struct params), 0, own};

extern const struct ops_row *const ops_rows[SAC_OP_COUNT];
static inline const void          *ops_own(const struct sac_op_call *c)
{
    return ops_rows[c->node->op->id]->own;
}
/* The provider's kernels, which find the row by the node's operator. */
struct sac_kernel_offer ops_supports(struct sac_device *dev, const struct sac_kernel_question *q);
sac_result              ops_prepare(struct sac_device *dev, struct sac_kernel_plan *plan);
sac_result ops_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                   void *scratch, struct sac_device_stream *stream);
void       ops_release(void *state);

struct ops_state {
    const struct ops_row *row;
    const char           *name;
    int                   in_count, out_count;
    max_align_t           params[];
};
static inline struct ops_ports ops_ports_of(const struct ops_state *s, void *const *in,
                                            void *const *out, void *scratch)
{
    struct ops_ports ports = {.scratch = scratch};
    for (int i = 0; i < s->in_count; i++)
        ports.in[i] = in[i];
    for (int i = 0; i < s->out_count; i++)
        ports.out[i] = out[i];
    return ports;
}
/* Queues the launch; only this differs between the two builds. */
sac_result ops_queue(struct sac_device *dev, struct sac_device_stream *stream,
                     const struct ops_state *s, const struct ops_ports *ports);

#endif
