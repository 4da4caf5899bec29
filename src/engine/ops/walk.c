/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over the index space of several operands, and the strided copy that most operators of
 * rearrange.c use. */
#include "engine/ops/util.h"

int64_t sac_dims_product(int rank, const int64_t *dims)
{
    int64_t product = 1;
    for (int d = 0; d < rank; d++)
        product *= dims[d];
    return product;
}

void sac_dense_strides(int rank, const int64_t *dims, int64_t *strides)
{
    int64_t step = 1;
    for (int d = rank - 1; d >= 0; d--) {
        strides[d] = step;
        step *= dims[d];
    }
}

void sac_walk_init(struct sac_walk *w, int rank, const int64_t *dims)
{
    memset(w, 0, sizeof *w);
    w->rank = rank + 1; /* a first dimension of one, so that a scalar needs no special case */
    w->dims[0] = 1;
    for (int d = 0; d < rank; d++)
        w->dims[d + 1] = dims[d];
}

int sac_walk_strides(struct sac_walk *w, int64_t offset, const int64_t *strides)
{
    int k = w->count++;
    w->at[k] = offset;
    for (int d = 1; d < w->rank; d++)
        w->steps[k][d] = strides[d - 1];
    return k;
}

int sac_walk_operand(struct sac_walk *w, const struct sac_operand *o)
{
    int64_t dense[SAC_RANK_MAX], strides[SAC_RANK_MAX] = {0};
    int     missing = w->rank - 1 - o->rank;
    sac_dense_strides(o->rank, o->dims, dense);
    for (int d = 0; d < o->rank; d++)
        strides[missing + d] = o->dims[d] == 1 ? 0 : dense[d];
    return sac_walk_strides(w, 0, strides);
}

static bool dims_join(const struct sac_walk *w, int d)
{
    for (int k = 0; k < w->count; k++)
        if (w->steps[k][d] != w->steps[k][d + 1] * w->dims[d + 1])
            return false;
    return true;
}

/* Drops dimensions of one and merges neighbours that are contiguous for every operand, for longer
 * runs. */
static void simplify(struct sac_walk *w)
{
    int rank = 0;
    for (int d = 0; d < w->rank; d++) {
        if (w->dims[d] == 1 && (rank || d < w->rank - 1))
            continue;
        w->dims[rank] = w->dims[d];
        for (int k = 0; k < w->count; k++)
            w->steps[k][rank] = w->steps[k][d];
        if (rank && dims_join(w, rank - 1)) {
            w->dims[rank - 1] *= w->dims[rank];
            for (int k = 0; k < w->count; k++)
                w->steps[k][rank - 1] = w->steps[k][rank];
        } else
            rank++;
    }
    w->rank = rank;
}

void sac_walk_start(struct sac_walk *w)
{
    bool empty = sac_dims_product(w->rank, w->dims) == 0;
    simplify(w);
    w->run = empty ? 0 : w->dims[w->rank - 1];
    for (int k = 0; k < w->count; k++)
        w->step[k] = w->steps[k][w->rank - 1];
}

void sac_walk_next(struct sac_walk *w)
{
    for (int d = w->rank - 2; d >= 0; d--) {
        bool wraps = ++w->index[d] == w->dims[d];
        for (int k = 0; k < w->count; k++)
            w->at[k] += wraps ? -w->steps[k][d] * (w->dims[d] - 1) : w->steps[k][d];
        if (!wraps)
            return;
        w->index[d] = 0;
    }
    w->run = 0;
}

#define COPY_RUN(type)                  \
    for (int64_t i = 0; i < w.run; i++) \
    ((type *)dst)[w.at[0] + i * w.step[0]] = ((const type *)src)[w.at[1] + i * w.step[1]]

void sac_copy_strided(void *dst, int64_t dst_offset, const int64_t *dst_strides, const void *src,
                      int64_t src_offset, const int64_t *src_strides, int rank, const int64_t *dims,
                      size_t bytes)
{
    struct sac_walk w;
    sac_walk_init(&w, rank, dims);
    sac_walk_strides(&w, dst_offset, dst_strides);
    sac_walk_strides(&w, src_offset, src_strides);
    for (sac_walk_start(&w); w.run; sac_walk_next(&w)) {
        if (w.step[0] == 1 && w.step[1] == 1)
            memcpy((char *)dst + w.at[0] * (int64_t)bytes,
                   (const char *)src + w.at[1] * (int64_t)bytes, (size_t)w.run * bytes);
        else if (bytes == 1)
            COPY_RUN(uint8_t);
        else if (bytes == 2)
            COPY_RUN(uint16_t);
        else if (bytes == 4)
            COPY_RUN(uint32_t);
        else
            COPY_RUN(uint64_t);
    }
}
