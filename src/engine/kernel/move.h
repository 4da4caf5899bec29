/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between two orders of the same dimensions, in host memory: what transpositions, layout
 * conversions, slices and joins come down to.
 *
 *     struct sac_move m;
 *     sac_move_init(&m, 4, rank, dims, to, from);
 *     sac_move_run(&m, workers, dst, src);
 *
 * Dimensions that stay together are merged, which leaves one of three things to do for each index
 * of the outer dimensions: copy runs, transpose a matrix, or go element by element. */
#ifndef SAC_ENGINE_KERNEL_MOVE_H
#define SAC_ENGINE_KERNEL_MOVE_H

#include <stdint.h>

#include "base/thread.h"
#include "engine/ops/util.h"

enum sac_move_kind { SAC_MOVE_RUNS, SAC_MOVE_TILES, SAC_MOVE_ELEMENTS };

/* A dimension: how long it is, and how far apart its elements are (in elements; the source's may be
 * 0 or negative). */
struct sac_move_dim {
    int64_t count, to, from;
};

/* All fields are sac_move_init's. */
struct sac_move {
    enum sac_move_kind  kind;
    size_t              bytes;
    int                 outer_count;
    struct sac_move_dim outer[SAC_WALK_DIMS];
    struct sac_move_dim column, row; /* of the block that is moved for each index of outer; row is
                                        the one along which the target lies dense */
    /* The block is cut into pieces of `cut` columns or rows. Units are independent of each other */
    bool    cut_rows;
    int64_t cut, cuts, units;
};

/* bytes  of an element: 1, 2, 4, 8. dims, to, from [rank], to and from in elements. Up to
 * SAC_WALK_DIMS - 1 dimensions; no two elements of the target in one place. */
void sac_move_init(struct sac_move *m, size_t bytes, int rank, const int64_t *dims,
                   const int64_t *to, const int64_t *from);

/* dst, src: of the element that has index 0 in all dimensions. They do not overlap. workers NULL:
 * the caller does all of it. */
void sac_move_run(const struct sac_move *m, struct sac_worker_pool *workers, void *dst,
                  const void *src);

/* move_avx2.c: of 4 bytes each, dst[c * dst_step + r] = src[r * src_step + c]; multiples of 8 only.
 */
void sac_transpose_avx2(uint32_t *dst, int64_t dst_step, const uint32_t *src, int64_t src_step,
                        int64_t rows, int64_t columns);

#endif
