/* SPDX-License-Identifier: Apache-2.0 */
/* A block paints a tile. Its threads first sort out, 256 coats at a time, which of them touch the
 * tile; then each thread lays these, in order, on two by two pixels and the chroma sample they
 * share. What no coat touches is neither read nor written. */
#include "vision/cuda/launch.h"

namespace
{

enum {
    THREADS_X = 32,
    THREADS_Y = 8,
    THREADS = THREADS_X * THREADS_Y,
    TILE_X = 2 * THREADS_X,
    TILE_Y = 2 * THREADS_Y
};

struct hits {
    int count;
    int before[THREADS / 32]; /* hits of the warps before */
    int coat[THREADS];
};

__device__ bool touches(const struct sac_bounds &b, int x, int y)
{
    return b.x0 < x + TILE_X && b.x1 > x && b.y0 < y + TILE_Y && b.y1 > y;
}

/* Of coats [from, from + THREADS) those that touch the tile, in order. */
__device__ void find_hits(const struct cuda_draw_params &p, int from, int x, int y, int thread,
                          struct hits *hits)
{
    const int      at = from + thread, warp = thread / 32, lane = thread % 32;
    const bool     hit = at < p.count && touches(p.coats[at].bounds, x, y);
    const unsigned lanes = __ballot_sync(~0u, hit);
    if (lane == 0)
        hits->before[warp] = __popc(lanes);
    __syncthreads();
    if (thread == 0) {
        int sum = 0;
        for (int i = 0; i < THREADS / 32; i++) {
            const int own = hits->before[i];
            hits->before[i] = sum;
            sum += own;
        }
        hits->count = sum;
    }
    __syncthreads();
    if (hit)
        hits->coat[hits->before[warp] + __popc(lanes & ((1u << lane) - 1))] = at;
    __syncthreads();
}

/* Coverage of the pixel x, y. */
__device__ int cover_at(const struct sac_coat &c, const struct sac_segment *segments, int x, int y)
{
    if (x < c.bounds.x0 || x >= c.bounds.x1 || y < c.bounds.y0 || y >= c.bounds.y1)
        return 0;
    if (c.cover == SAC_COVER_ALL)
        return 255;
    if (c.cover == SAC_COVER_FRAME)
        return x >= c.hole.x0 && x < c.hole.x1 && y >= c.hole.y0 && y < c.hole.y1 ? 0 : 255;
    int most = 0;
    for (int i = 0; i < c.count; i++) {
        const int cover =
            sac_cover_of(&segments[c.first + i], c.radius, (float)x + 0.5f, (float)y + 0.5f);
        most = cover > most ? cover : most;
    }
    return most;
}

__device__ void mix_pixel(const struct cuda_draw_params &p, const struct sac_coat &c, int x, int y,
                          int cover)
{
    uint8_t *row = p.plane[0] + (size_t)y * p.pitch[0];
    if (p.format == SAC_PIXEL_P010) {
        uint16_t *out = (uint16_t *)row + x;
        *out = sac_mix_word(*out, c.sample[0], cover, c.alpha);
    } else if (const int step = sac_rgb_step(p.format)) {
        for (int k = 0; k < 3; k++)
            row[step * x + k] = sac_mix_byte(row[step * x + k], c.sample[k], cover, c.alpha);
    } else {
        row[x] = sac_mix_byte(row[x], c.sample[0], cover, c.alpha);
    }
}

__device__ void mix_chroma(const struct cuda_draw_params &p, const struct sac_coat &c, int cx,
                           int cy, int cover)
{
    for (int k = 0; k < 2; k++) {
        if (p.format == SAC_PIXEL_I420) {
            uint8_t *out = p.plane[1 + k] + (size_t)cy * p.pitch[1 + k] + cx;
            *out = sac_mix_byte(*out, c.sample[1 + k], cover, c.alpha);
        } else if (p.format == SAC_PIXEL_P010) {
            uint16_t *out = (uint16_t *)(p.plane[1] + (size_t)cy * p.pitch[1]) + 2 * cx + k;
            *out = sac_mix_word(*out, c.sample[1 + k], cover, c.alpha);
        } else {
            uint8_t *out = p.plane[1] + (size_t)cy * p.pitch[1] + 2 * cx + k;
            *out = sac_mix_byte(*out, c.sample[1 + k], cover, c.alpha);
        }
    }
}

__global__ void __launch_bounds__(THREADS)
    draw(const __grid_constant__ struct cuda_draw_params p, int left, int top)
{
    early_begin();
    __shared__ struct hits hits;
    const int              tile_x = left + blockIdx.x * TILE_X, tile_y = top + blockIdx.y * TILE_Y;
    const int              x = tile_x + 2 * threadIdx.x, y = tile_y + 2 * threadIdx.y;
    for (int from = 0; from < p.count; from += THREADS) {
        find_hits(p, from, tile_x, tile_y, threadIdx.y * THREADS_X + threadIdx.x, &hits);
        for (int i = 0; i < hits.count; i++) {
            const struct sac_coat &c = p.coats[hits.coat[i]];
            int                    sum = 0; /* 0 past the frame too: the bounds end there */
            for (int k = 0; k < 4; k++) {
                const int cover = cover_at(c, p.segments, x + k % 2, y + k / 2);
                if (cover)
                    mix_pixel(p, c, x + k % 2, y + k / 2, cover);
                sum += cover;
            }
            if (sum && sac_is_yuv(p.format))
                mix_chroma(p, c, x / 2, y / 2, (sum + 2) / 4);
        }
        __syncthreads(); /* the list is read before the next one is made */
    }
}

} // namespace

extern "C" cudaError_t cuda_launch_draw(const struct cuda_draw_params *p, cudaStream_t stream)
{
    const int  left = p->bounds.x0 & ~1, top = p->bounds.y0 & ~1;
    const dim3 grid((p->bounds.x1 - left + TILE_X - 1) / TILE_X,
                    (p->bounds.y1 - top + TILE_Y - 1) / TILE_Y);
    CUDA_LAUNCH_ALONE(draw, grid, dim3(THREADS_X, THREADS_Y), 0, stream, *p, left, top);
    return cudaGetLastError();
}
