/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes and constant inputs, read and checked: what a reference row and the kernels of devices both
 * make of a node. Called after the shape function has agreed, they cannot fail but for SAC_AGAIN, when the
 * value of an input that decides is not known. */
#ifndef SAC_ENGINE_OP_READS_H
#define SAC_ENGINE_OP_READS_H

#include "engine/op_util.h"
#include "engine/op_window.h"

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

/* op_reduce.c */
sac_result sac_reduced_axes(struct sac_op_call *c, bool *reduced);

/* op_norm.c */
sac_result sac_mean_variance_axes(struct sac_op_call *c, bool *reduced);

/* op_cumulative.c */
sac_result sac_cumulative_axis(struct sac_op_call *c, int *axis);

/* op_pool.c */
enum sac_pool_kind { SAC_POOL_MAX, SAC_POOL_AVERAGE, SAC_POOL_LP };
struct sac_pooling {
    enum sac_pool_kind    kind;
    struct sac_window w;
    double            p;           /* of LpPool */
    bool              include_pad; /* the average counts padding */
    bool              columns_first; /* MaxPool's indices in column order */
};
sac_result sac_pooling_read(struct sac_op_call *c, struct sac_pooling *p);

/* op_einsum.c */
enum { SAC_EINSUM_LABELS_MAX = SAC_WALK_DIMS - 1, SAC_EINSUM_INPUTS_MAX = SAC_WALK_MAX - 1 };
/* The dimensions that "..." stands for are labels too: 1 is the last of them, 2 the one before. */
struct sac_term {
    int  count;
    char labels[SAC_RANK_MAX];
};
struct sac_einsum {
    struct sac_term in[SAC_EINSUM_INPUTS_MAX], out;
    int         count; /* labels: those of the output first */
    char        labels[SAC_EINSUM_LABELS_MAX];
    int64_t     dims[SAC_EINSUM_LABELS_MAX];
};
sac_result sac_einsum_parse(struct sac_op_call *c, struct sac_einsum *e);

#endif
