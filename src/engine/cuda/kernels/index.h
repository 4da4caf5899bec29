/* SPDX-License-Identifier: Apache-2.0 */
/* Elements read or written by index: the Gather and Scatter families, TopK. A running graph of
 * kernels cannot report a bad index: one out of range reads the nearest element, and is skipped
 * when writing. */
#ifndef SAC_ENGINE_CUDA_KERNELS_INDEX_H
#define SAC_ENGINE_CUDA_KERNELS_INDEX_H

#include "engine/cuda/kernels/types.h"

/* Operand 0: out, 1: in without the indexed dimensions, 2: the index. */
struct ops_gather {
    struct ops_view view;
    int32_t         depth, bytes, index_type; /* indices of a place: 1, GatherND: more */
    int64_t         dim[SAC_RANK_MAX], step[SAC_RANK_MAX];
};
OPS_LAUNCHER(ops_launch_gather);

enum ops_combine {
    OPS_COMBINE_NONE,
    OPS_COMBINE_ADD,
    OPS_COMBINE_MUL,
    OPS_COMBINE_MAX,
    OPS_COMBINE_MIN
};
/* ScatterElements: outer walks the lines of indices along the axis; operand 0: out, 1: indices, 2:
 * updates. */
struct ops_scatter_lines {
    struct ops_view outer;
    int64_t         count, copy_bytes; /* indices of a line; of the whole */
    int64_t         dim, out_step, index_step, update_step;
    int32_t         combine, bytes, type, index_type;
    enum ops_class  computed;
};
OPS_LAUNCHER(ops_launch_scatter_lines);

/* ScatterND: `places` of `depth` indices, each for `inner` elements. */
struct ops_scatter_nd {
    int64_t        places, inner, copy_bytes;
    int32_t        depth, combine, bytes, type, index_type;
    enum ops_class computed;
    int64_t        dim[SAC_RANK_MAX], step[SAC_RANK_MAX];
};
OPS_LAUNCHER(ops_launch_scatter_nd);

/* TensorScatter: count slices of `run` bytes into a cache of `room`, from each image's index on. */
struct ops_cache {
    int64_t outer, per_image, room, count, run, copy_bytes;
    int32_t circular, has_index;
};
OPS_LAUNCHER(ops_launch_cache);

/* TopK. Lines of `length`, element k at k * step; k best of each. */
struct ops_topk {
    struct ops_view outer; /* operand 0: in, 1: values, 2: indices */
    int64_t         length, step, k, value_step, index_step;
    int32_t         least, type, values, indices;
    int32_t         selects; /* float16, bfloat16 or float32, few of many: topk.cuh */
    enum ops_class  computed;
};
OPS_LAUNCHER(ops_launch_topk);

#endif
