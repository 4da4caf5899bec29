/* SPDX-License-Identifier: Apache-2.0 */
/* HeadMatMul: number by number where a is of a few rows and columns (head_matmul_few.cuh), by tiles
 * on the tensor cores where all operands lie in float16 (head_matmul_tiles.cuh), else by tiles of
 * float32 (head_matmul_plain.cuh). */
#ifndef SAC_ENGINE_CUDA_KERNELS_HEAD_MATMUL_H
#define SAC_ENGINE_CUDA_KERNELS_HEAD_MATMUL_H

#include "engine/cuda/kernels/types.h"

enum {
    OPS_HEAD_TILE = 64,       /* rows and columns of a tile at most */
    OPS_HEAD_SMALL_TILE = 32, /* where there are no more */
    OPS_HEAD_TURN = 64,       /* of the depth, for each turn of a block; twice as much where deep */
    OPS_HEAD_PLAIN_TILE = 64, /* of float32 */
    OPS_HEAD_FEW = 16         /* rows, and numbers of the depth, that tiles would waste */
};

/* y = scale a b and what is behind it. Rows and columns have changed places where the rows of y lie
 * closer together than its columns, so neighbours of a row are written together. Steps of dims of
 * one are 0. */
struct ops_head_matmul {
    /* [batch,head,row,depth], [..,column,depth], [..,row,column], and the same again */
    struct ops_head_view a, b, y, r;
    int64_t              batch, heads, rows, columns, depth;
    float                scale, act_a, act_b;
    int32_t              act; /* enum ops_fn */
    int32_t              a_port, b_port, a_type, b_type, y_type;
    /* Of inputs 2, float32, and 3: SAC_DTYPE_NONE where there is none. */
    int32_t bias_type, by_row, r_type, gates;
    /* Its rows, or columns, lie closer together than the numbers that are multiplied by them. */
    int32_t a_turned, b_turned;
    /* Numbers that are read at once along the closer of the two: 8, 4, or 1 wherever they lie. Of
     * y: 8 or 4 columns can be written at once, or 1; of r, read. */
    int32_t a_piece, b_piece, y_piece, r_piece;
    /* A tile's rows and columns; 0: none on the tensor cores. deep: a few blocks, each with more
     * warps and memory. */
    int32_t tile_rows, tile_columns, deep;
    int32_t unit_columns; /* of a tile of 64 rows where there is Hopper's unit: 64, 128; 0: none */
    int32_t few; /* columns of a thread, where rows and depth are few: 8, 4, 1; 0: they are not */
};
OPS_LAUNCHER(ops_launch_head_matmul);

#endif
