/* SPDX-License-Identifier: Apache-2.0 */
/* FusedAttention: by tiles on the tensor cores where the heads lie in float16, few keys of small
 * heads in a warp's registers, else a warp for a few queries of a head at a time. */
#ifndef SAC_ENGINE_CUDA_KERNELS_FUSED_ATTENTION_H
#define SAC_ENGINE_CUDA_KERNELS_FUSED_ATTENTION_H

#include "engine/cuda/kernels/types.h"

enum { OPS_ATTENTION_GROUP = 4 /* queries of a warp */, OPS_ATTENTION_SIZE_MAX = 128 };

/* ---- tiles (attention_tiles.cuh) ---- */

enum {
    OPS_ATTENTION_THREADS = 256, /* of a block at most */
    OPS_ATTENTION_PILE = 16,     /* queries that are multiplied at a time */
    OPS_ATTENTION_FEW = 16,      /* keys of a last tile of which the others are left out */
    OPS_ATTENTION_FEW_KEYS = 64, /* at most, and numbers of a head, of attention_few.cuh */
    OPS_ATTENTION_FEW_SIZE = 32,
    OPS_ATTENTION_FEW_ONES = 32, /* keys, where numbers are read one by one */
    OPS_ATTENTION_PADDING = 8,   /* numbers behind each row in shared memory */
    /* of a warp's tiles: 32 keys; 64; 64 by two piles; 64 that four warps multiply together; four
     * warps and all keys (attention_whole.cuh) */
    OPS_ATTENTION_KINDS = 5,
    OPS_ATTENTION_TOGETHER = 3,
    OPS_ATTENTION_WHOLE = 4
};
/* Keys of a turn of OPS_ATTENTION_WHOLE, each with a kernel of its own: of the only turn, behind
 * the least for which it is taken, which is one more; of one of several. */
#define OPS_ATTENTION_ONE_TURN(TURN) TURN(0, 64) TURN(64, 112) TURN(112, 160) TURN(160, 208)
#define OPS_ATTENTION_TURNS(TURN)    TURN(128) TURN(144)
/* Its blocks that a processor is to have registers for, by the keys of a turn. */
#define OPS_ATTENTION_BLOCKS(keys, masked) ((keys) <= 64 ? 6 : (keys) <= 112 && !(masked) ? 4 : 3)
/* A block's warps: query_warps of `piles` piles each, for each of which key_warps share a turn's
 * keys, `keys` each. Sizes of the heads are rounded up; `room` keys lie in `shared` bytes, those of
 * `stages` turns or all; results on their way to the output lie behind `joined` bytes.
 * positions: the queries' relative positions lie so many numbers behind the first.
 * together: four warps with queries multiply with Hopper's unit. tiles: of 64 queries, which such a
 * block takes one after the other with all keys in shared memory; else 0. */
struct ops_attention_shape {
    int32_t key_size, value_size, keys, piles, query_warps, key_warps, stages, turns, room, joined,
        shared, together, tiles, positions;
};

struct ops_fused_attention {
    struct ops_head_view q, k, v, y;
    int64_t              batch, heads, queries, keys, size, v_size;
    int32_t              group; /* neighbouring heads with one head of keys and values */
    int64_t              period, mask_step[4]; /* period 0: there is no mask */
    /* Relative positions: rows of `columns` keys. 0: there are none. For tiles: numbers of a query,
     * rounded up. */
    struct ops_head_view row, column;
    int64_t              rows;
    struct ops_divisor   columns;
    int32_t              row_room, column_room;
    /* The place of a query's number for the first row, and the first column, where it depends on
     * the query's own in a map of so many columns; d = 0: it does not. */
    struct ops_divisor query_columns;
    int32_t            row_from, column_from;
    int32_t            residual; /* q is added to the result */
    int64_t            at_once; /* groups of queries whose scores are in scratch, [][GROUP][keys] */
    float              scale;
    int32_t            q_type, k_type, v_type, mask_type, out_type;
    int32_t            row_type, column_type; /* 0: of these there are no relative positions */
    /* Numbers that are read at once by tiles: 8, 4, or 1 wherever they lie, and 2 by
     * attention_few.cuh; 0: no tiles. Of y, more than 1: pairs can be written. */
    int32_t                    q_piece, k_piece, v_piece, y_piece;
    int32_t                    few;                 /* attention_few.cuh is probably faster */
    struct ops_attention_shape shape, hopper_shape; /* of tiles; where there is Hopper's unit */
    struct ops_bytes           bytes;               /* out_type is that of the numbers before */
};
OPS_LAUNCHER(ops_launch_fused_attention);

#ifdef __cplusplus
extern "C" {
#endif
/* attention_shape.c: the shape that is probably fastest, by the sizes in p, where four warps can
 * multiply together or not; and one that is named, for tests. sharers: warps that share keys, or of
 * OPS_ATTENTION_WHOLE tiles that share a block. False: there is none of these. */
void ops_attention_shape(const struct ops_fused_attention *p, bool together,
                         struct ops_attention_shape *out);
bool ops_attention_shape_of(const struct ops_fused_attention *p, int kind, int query_warps,
                            int sharers, struct ops_attention_shape *out);
#ifdef __cplusplus
}
#endif

#endif
