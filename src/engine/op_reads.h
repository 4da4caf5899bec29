/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes and constant inputs, read and checked: what a reference row and the kernels of devices both
 * make of a node. Called after the shape function has agreed, they cannot fail but for SAC_AGAIN, when the
 * value of an input that decides is not known. */
#ifndef SAC_ENGINE_OP_READS_H
#define SAC_ENGINE_OP_READS_H

#include "engine/op.h"

/* op_layout.c */
struct sac_slice {
    int64_t start[SAC_RANK_MAX], step[SAC_RANK_MAX], dims[SAC_RANK_MAX];
};
sac_result sac_transpose_perm(struct sac_op_call *c, int *perm);
sac_result sac_slice_read(struct sac_op_call *c, struct sac_slice *s);

/* op_pad.c */
struct sac_pads {
    int64_t begin[SAC_RANK_MAX], out[SAC_RANK_MAX];
};
enum sac_pad_mode { SAC_PAD_CONSTANT, SAC_PAD_REFLECT, SAC_PAD_EDGE, SAC_PAD_WRAP };
sac_result sac_pad_mode(struct sac_op_call *c, enum sac_pad_mode *mode);
sac_result sac_pad_read(struct sac_op_call *c, struct sac_pads *p);

#endif
