/* SPDX-License-Identifier: Apache-2.0 */
/* Appearance of tracked objects: eight lanes take an update or a pair, and add up as
 * vision/appearance.h says. */
#include "vision/cuda/launch.h"

namespace
{

enum { LANES = SAC_APPEARANCE_LANES, THREADS = 256, GROUPS = THREADS / LANES };

/* The lanes that work on one thing: of one warp. */
struct group {
    int      lane;
    unsigned mask;
};

__device__ group own_group()
{
    const int first = threadIdx.x % 32 / LANES * LANES;
    return {(int)threadIdx.x % LANES, 0xffu << first};
}

__device__ char *address_of(const cuda_appearance_params &p, const cuda_addresses &list, size_t i)
{
    const uint64_t units =
        p.wide ? ((const uint64_t *)list.units)[i] : ((const uint32_t *)list.units)[i];
    return list.lowest + units * list.unit_bytes;
}

__device__ sac_appearance_slot slot_of(const cuda_appearance_params &p, size_t i)
{
    return sac_appearance_slot_of(address_of(p, p.slots, i), p.shape.views_max);
}

__device__ const float *row_of(const cuda_appearance_params &p, size_t i)
{
    return (const float *)address_of(p, p.rows, i);
}

/* sac_appearance_dot; every lane has the result. */
__device__ float dot(group g, const float *a, const float *b, int n)
{
    const int whole = n - n % LANES;
    float     sum = 0, rest = 0;
#pragma unroll 8
    for (int i = g.lane; i < whole; i += LANES)
        sum += a[i] * b[i];
    for (int i = whole; i < n; i++)
        rest += a[i] * b[i];
    for (int k = 0; k < LANES; k++)
        rest += __shfl_sync(g.mask, sum, k, LANES);
    return rest;
}

__device__ float nearest(group g, const sac_appearance_slot &slot, int views, int dim,
                         const float *row, int *view)
{
    float best = 2;
    *view = -1;
    for (int i = 0; i < views; i++) {
        const float d = 1 - dot(g, slot.rows + (size_t)i * dim, row, dim);
        if (*view >= 0 && d >= best)
            continue;
        best = d;
        *view = i;
    }
    return best;
}

__device__ void blend(group g, float *view, const float *row, int dim, float keep)
{
    for (int i = g.lane; i < dim; i += LANES)
        view[i] = sac_appearance_blend(view[i], row[i], keep);
    __syncwarp(g.mask); /* what is left over by the lanes is read by all */
    const float length = sqrtf(dot(g, view, view, dim));
    __syncwarp(g.mask);
    for (int i = g.lane; i < dim; i += LANES)
        view[i] = length < SAC_APPEARANCE_LENGTH_MIN ? row[i] : view[i] / length;
}

__global__ void __launch_bounds__(THREADS) update(const cuda_appearance_params p)
{
    early_begin();
    const int   at = blockIdx.x * GROUPS + threadIdx.x / LANES;
    const group g = own_group();
    if (at >= p.update_count)
        return;
    const cuda_appearance_update u = p.updates[at];
    const sac_appearance_slot    slot = slot_of(p, at);
    const float                 *row = row_of(p, at);
    const double                 now_s = p.times[u.time];
    const int                    views = u.fresh ? 0 : *slot.views, dim = p.shape.dim;
    int                          view;
    const float                  distance = nearest(g, slot, views, dim, row, &view);
    const bool                   joins = sac_appearance_joins(views, p.shape.views_max, distance);
    if (joins) {
        blend(g, slot.rows + (size_t)view * dim, row, dim,
              sac_appearance_keep(now_s - slot.met_s[view]));
    } else {
        view = sac_appearance_place(slot.met_s, views, p.shape.views_max);
        for (int i = g.lane; i < dim; i += LANES)
            slot.rows[(size_t)view * dim + i] = row[i];
    }
    __syncwarp(g.mask); /* all have read what now changes */
    if (g.lane == 0) {
        *slot.views = view + 1 > views ? view + 1 : views;
        slot.met_s[view] = now_s;
    }
}

__global__ void __launch_bounds__(THREADS) compare(const cuda_appearance_params p)
{
    early_begin();
    const cuda_appearance_ask ask = p.asks[blockIdx.y], next = p.asks[blockIdx.y + 1];
    const int                 pair = blockIdx.x * GROUPS + threadIdx.x / LANES;
    const int                 pairs = next.out - ask.out, candidates = next.rows - ask.rows;
    const group               g = own_group();
    if (pair >= pairs)
        return;
    const int    object = pair / candidates - 1;
    const float *row = row_of(p, ask.rows + pair % candidates);
    float        out;
    if (object < 0) {
        out = dot(g, row, row, p.shape.dim);
    } else {
        const sac_appearance_slot slot = slot_of(p, ask.slots + object);
        int                       view;
        out = nearest(g, slot, *slot.views, p.shape.dim, row, &view);
    }
    if (g.lane == 0)
        p.out[(size_t)ask.out + pair] = out;
}

} // namespace

extern "C" cudaError_t cuda_launch_appearance(const struct cuda_appearance_params *p,
                                              cudaStream_t                         stream)
{
    cudaError_t res = cudaSuccess;
    if (p->update_count) {
        CUDA_LAUNCH(update, (p->update_count + GROUPS - 1) / GROUPS, THREADS, stream, *p);
        res = cudaGetLastError();
    }
    if (p->pairs_max && res == cudaSuccess) {
        CUDA_LAUNCH(compare, dim3((p->pairs_max + GROUPS - 1) / GROUPS, p->ask_count), THREADS,
                    stream, *p);
        res = cudaGetLastError();
    }
    return res;
}
