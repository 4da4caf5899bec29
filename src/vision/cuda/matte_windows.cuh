/* SPDX-License-Identifier: Apache-2.0 */
/* Mattes: what is made of the windows about cells: holes that are closed, lines along luma. */
#pragma once

#include "vision/cuda/matte_common.cuh"

namespace
{

/* ---- holes ---- */

enum {
    HOLE = SAC_MATTE_HOLE_MAX,
    CLOSE_Y = 4 * TILE_Y, /* rows of a block: each thread has four cells */
    CLOSE_ROOM_X = TILE_X + 2 * HOLE,
    CLOSE_ROOM_Y = CLOSE_Y + 2 * HOLE
};

/* The greatest share of a window, then the smallest of these, each along rows and then columns;
 * what lies outside the grid is none of them. */
__global__ void __launch_bounds__(THREADS) close_holes(const __grid_constant__ cuda_matte_params p)
{
    __shared__ int16_t    a[CLOSE_ROOM_Y][CLOSE_ROOM_X], b[CLOSE_ROOM_Y][CLOSE_ROOM_X];
    const cuda_matte_job &job = p.jobs[blockIdx.z];
    const int             width = job.x.cells, height = job.y.cells, hole = p.hole;
    const int             before = sac_matte_hole_before(hole), after = sac_matte_hole_after(hole);
    const uint32_t        pitch = (uint32_t)p.spec.width;
    const tile            t = tile_of(TILE_X, CLOSE_Y);
    if (t.x >= width || t.y >= height)
        return;
    const int      left = t.x - hole, top = t.y - hole;
    const int      columns = TILE_X + 2 * hole, rows = CLOSE_Y + 2 * hole;
    const int16_t *share = job.share;
    for (int j = threadIdx.y; j < rows; j += TILE_Y)
        for (int i = threadIdx.x; i < columns; i += TILE_X) {
            const int  x = left + i, y = top + j;
            const bool in = x >= 0 && x < width && y >= 0 && y < height;
            a[j][i] = in ? share[(uint32_t)y * pitch + (uint32_t)x] : (int16_t)INT16_MIN;
        }
    __syncthreads();
    for (int j = threadIdx.y; j < rows; j += TILE_Y)
        for (int i = threadIdx.x + before; i < columns - after; i += TILE_X) {
            int best = a[j][i];
            for (int u = -before; u <= after; u++)
                best = a[j][i + u] > best ? a[j][i + u] : best;
            b[j][i] = (int16_t)best;
        }
    __syncthreads();
    for (int j = threadIdx.y + before; j < rows - after; j += TILE_Y)
        for (int i = threadIdx.x + before; i < columns - after; i += TILE_X) {
            const int  x = left + i, y = top + j;
            const bool in = x >= 0 && x < width && y >= 0 && y < height;
            int        best = b[j][i];
            for (int v = -before; v <= after; v++)
                best = b[j + v][i] > best ? b[j + v][i] : best;
            a[j][i] = in ? (int16_t)best : (int16_t)INT16_MAX;
        }
    __syncthreads();
    const int i = threadIdx.x + hole;
    for (int j = threadIdx.y + before; j < rows - after; j += TILE_Y) {
        int best = a[j][i];
        for (int u = -after; u <= before; u++)
            best = a[j][i + u] < best ? a[j][i + u] : best;
        b[j][i] = (int16_t)best;
    }
    __syncthreads();
    for (int j = threadIdx.y + hole; j < CLOSE_Y + hole; j += TILE_Y) {
        int best = b[j][i];
        for (int v = -after; v <= before; v++)
            best = b[j + v][i] < best ? b[j + v][i] : best;
        if (left + i < width && top + j < height)
            job.closed[(uint32_t)(top + j) * pitch + (uint32_t)(left + i)] = (int16_t)best;
    }
}

/* ---- lines ---- */

enum {
    GUIDE = SAC_MATTE_GUIDE_MAX,
    LINES = 4, /* cells of a thread, one below the other */
    LINE_Y = LINES * TILE_Y,
    LINE_ROOM_X = TILE_X + 2 * GUIDE,
    LINE_ROOM_Y = LINE_Y + 2 * GUIDE
};

/* Luma and share of a cell in one word. */
__device__ uint32_t pack_cell(uint8_t luma, int16_t share)
{
    return (uint32_t)luma | (uint32_t)(uint16_t)share << 16;
}

__device__ void add_cell(sac_matte_sums *s, uint32_t cell)
{
    const int luma = (int)(cell & 0xffff), share = (int)(cell >> 16);
    s->luma += luma;
    s->share += share;
    s->luma2 += luma * luma;
    s->both += luma * share;
}

/* sign: 1 or -1. */
__device__ void add_sums(sac_matte_sums *s, const sac_matte_sums &row, int sign)
{
    s->luma += sign * row.luma;
    s->share += sign * row.share;
    s->luma2 += sign * row.luma2;
    s->both += sign * row.both;
}

/* The line of each cell's window: sums along rows first, then of these, from cell to cell. */
__global__ void __launch_bounds__(THREADS) fit_lines(const __grid_constant__ cuda_matte_params p)
{
    __shared__ uint32_t       cell[LINE_ROOM_Y][LINE_ROOM_X];
    __shared__ sac_matte_sums row[LINE_ROOM_Y][TILE_X];
    const cuda_matte_job     &job = p.jobs[blockIdx.z];
    const int                 width = job.x.cells, height = job.y.cells, radius = p.guide;
    const tile                t = tile_of(TILE_X, LINE_Y);
    if (t.x >= width || t.y >= height)
        return;
    for (int j = threadIdx.y; j < LINE_Y + 2 * radius; j += TILE_Y)
        for (int i = threadIdx.x; i < TILE_X + 2 * radius; i += TILE_X) {
            const int  x = t.x - radius + i, y = t.y - radius + j;
            const bool in = x >= 0 && x < width && y >= 0 && y < height;
            cell[j][i] = in ? pack_cell(job.luma[(ptrdiff_t)y * p.luma_pitch + x],
                                        job.closed[(ptrdiff_t)y * p.spec.width + x])
                            : 0;
        }
    __syncthreads();
    for (int j = threadIdx.y; j < LINE_Y + 2 * radius; j += TILE_Y) {
        sac_matte_sums s = {0, 0, 0, 0};
        for (int i = 0; i <= 2 * radius; i++)
            add_cell(&s, cell[j][threadIdx.x + i]);
        row[j][threadIdx.x] = s;
    }
    __syncthreads();
    const int      x = t.x + threadIdx.x, first = threadIdx.y * LINES;
    const int      across = sac_matte_window(x, width, radius);
    sac_matte_sums s = {0, 0, 0, 0};
    for (int i = 0; i < 2 * radius; i++)
        add_sums(&s, row[first + i][threadIdx.x], 1);
    for (int j = first; j < first + LINES; j++) {
        const int y = t.y + j;
        if (x >= width || y >= height)
            return;
        add_sums(&s, row[j + 2 * radius][threadIdx.x], 1);
        const double    n = (double)(across * sac_matte_window(y, height, radius));
        cuda_matte_line line;
        sac_matte_line(&s, n, sac_matte_noise(p.variance, n), &line.slope, &line.base);
        job.line[(ptrdiff_t)y * p.spec.width + x] = line;
        add_sums(&s, row[j][threadIdx.x], -1);
    }
}

/* The mean line of the windows about a cell. */
__global__ void __launch_bounds__(THREADS) mean_lines(const __grid_constant__ cuda_matte_params p)
{
    __shared__ cuda_matte_line cell[LINE_ROOM_Y][LINE_ROOM_X], row[LINE_ROOM_Y][TILE_X];
    const cuda_matte_job      &job = p.jobs[blockIdx.z];
    const int                  width = job.x.cells, height = job.y.cells, radius = p.guide;
    const tile                 t = tile_of(TILE_X, LINE_Y);
    if (t.x >= width || t.y >= height)
        return;
    for (int j = threadIdx.y; j < LINE_Y + 2 * radius; j += TILE_Y)
        for (int i = threadIdx.x; i < TILE_X + 2 * radius; i += TILE_X) {
            const int       x = t.x - radius + i, y = t.y - radius + j;
            cuda_matte_line c = {0, 0};
            if (x >= 0 && x < width && y >= 0 && y < height)
                c = job.line[(ptrdiff_t)y * p.spec.width + x];
            cell[j][i] = c;
        }
    __syncthreads();
    for (int j = threadIdx.y; j < LINE_Y + 2 * radius; j += TILE_Y) {
        cuda_matte_line s = {0, 0};
        for (int i = 0; i <= 2 * radius; i++) {
            s.slope += cell[j][threadIdx.x + i].slope;
            s.base += cell[j][threadIdx.x + i].base;
        }
        row[j][threadIdx.x] = s;
    }
    __syncthreads();
    const int       x = t.x + threadIdx.x, first = threadIdx.y * LINES;
    const int       across = sac_matte_window(x, width, radius);
    cuda_matte_line s = {0, 0};
    for (int i = 0; i < 2 * radius; i++) {
        s.slope += row[first + i][threadIdx.x].slope;
        s.base += row[first + i][threadIdx.x].base;
    }
    for (int j = first; j < first + LINES; j++) {
        const int y = t.y + j;
        if (x >= width || y >= height)
            return;
        s.slope += row[j + 2 * radius][threadIdx.x].slope;
        s.base += row[j + 2 * radius][threadIdx.x].base;
        const float inverse = sac_matte_inverse(across * sac_matte_window(y, height, radius));
        const cuda_matte_mean mean = {sac_matte_slope(s.slope, inverse),
                                      sac_matte_base(s.base, inverse)};
        job.mean[(ptrdiff_t)y * p.spec.width + x] = mean;
        s.slope -= row[j][threadIdx.x].slope;
        s.base -= row[j][threadIdx.x].base;
    }
}

} // namespace
