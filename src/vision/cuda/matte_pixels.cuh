/* SPDX-License-Identifier: Apache-2.0 */
/* Mattes: from cells to pixels. */
#pragma once

#include "vision/cuda/matte_cells.cuh"

namespace
{

/* ---- pixels ---- */

/* Four pixels side by side, from a multiple of four on: those from `first` up to `end` are of the
 * crop. */
struct quad {
    int             x, first, end;
    __device__ bool whole() const
    {
        return first == 0 && end == PIXELS;
    }
};

__device__ quad quad_of(const sac_matte_axis &a, int x)
{
    const int first = a.from - x, end = a.until - x;
    return quad{x, first > 0 ? first : 0, end < PIXELS ? end : PIXELS};
}

/* Their luma, a byte each. */
template <bool TURNED>
__device__ uint32_t luma_of_quad(const sac_surface &s, bool wide, const quad &q, int y)
{
    if (!TURNED && wide && q.whole()) {
        const uint8_t *row = s.plane[0] + (size_t)y * s.pitch[0];
        if (s.format != SAC_PIXEL_P010)
            return *(const uint32_t *)(const void *)(row + q.x);
        const uint32_t *two = (const uint32_t *)(const void *)(row + 2 * (size_t)q.x);
        const uint32_t  a = two[0], b = two[1];
        return (a >> 8 & 0xff) | (a >> 16 & 0xff00) | (b << 8 & 0xff0000) | (b & 0xff000000);
    }
    uint32_t luma = 0;
#pragma unroll 1
    for (int i = q.first; i < q.end; i++)
        luma |= (uint32_t)sac_matte_luma(&s, sac_reading{s.format, TURNED}, q.x + i, y) << 8 * i;
    return luma;
}

/* to: the first of the four. */
__device__ void store_quad(uint8_t *to, bool wide, const quad &q, uint32_t bytes)
{
    if (wide && q.whole()) {
        *(uint32_t *)(void *)to = bytes;
        return;
    }
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
        if (i >= q.first && i < q.end)
            to[i] = (uint8_t)(bytes >> 8 * i);
}

/* Where the four lie among cells. */
struct quad_taps {
    two_cells of[PIXELS];
};

__device__ quad_taps taps_of(const uint32_t *packed)
{
    quad_taps t;
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
        t.of[i] = unpack_tap(read_only(packed + i));
    return t;
}

__device__ cuda_matte_mean read_mean(const cuda_matte_mean *at)
{
#ifdef __CUDA_ARCH__
    const float2 v = __ldg((const float2 *)at);
    return cuda_matte_mean{v.x, v.y};
#else
    return *at;
#endif
}

/* A share, 0 to SAC_MATTE_ONE, without the slow conversion of 16 bit numbers. */
__device__ float float_of_share(int16_t share)
{
#ifdef __CUDA_ARCH__
    return __uint_as_float(0x4b000000u | (uint32_t)(uint16_t)share) - 8388608.0f;
#else
    return (float)share;
#endif
}

/* A number that is one to a byte, as sac_byte_of. */
__device__ uint32_t byte_of(float v)
{
#ifdef __CUDA_ARCH__
    return __float2uint_rz(fminf(v + 0.5f, 255.5f)); /* what is below 0 becomes 0 */
#else
    return sac_byte_of(v);
#endif
}

/* The two rows of cells that a row of pixels lies between; those of the row above are used again.
 */
template <typename WIDE> struct two_rows {
    int                                      cell[2] = {-1, -1};
    WIDE                                     wide[2];
    template <typename FILL> __device__ void move_to(int a, int b, FILL fill)
    {
        if (cell[0] != a) {
            if (cell[1] == a)
                wide[0] = wide[1];
            else
                fill(a, wide[0]);
            cell[0] = a;
        }
        if (cell[1] != b) {
            if (b == a)
                wide[1] = wide[0];
            else
                fill(b, wide[1]);
            cell[1] = b;
        }
    }
};

/* Where a block of pixels begins: a thread has some rows of four. */
struct area {
    int x, y;
};

__device__ area area_of(const cuda_matte_job &job, int height, int pixels, int rows)
{
    return area{(job.x.from & -STRIP) + (int)blockIdx.x * CUDA_MATTE_AREA_X +
                    (int)threadIdx.x * pixels,
                job.y.from + (int)blockIdx.y * height + (int)threadIdx.y * rows};
}

/* A cell with the way to the next one. */
struct level_cell {
    float base, base_step;
};
struct alignas(16) guided_cell {
    float slope, slope_step, base, base_step;
};

__device__ void read_cell(const cuda_matte_job &job, uint32_t at, uint32_t next, level_cell *out)
{
    out->base = float_of_share(read_only(job.closed + at));
    out->base_step = float_of_share(read_only(job.closed + next)) - out->base;
}

__device__ void read_cell(const cuda_matte_job &job, uint32_t at, uint32_t next, guided_cell *out)
{
    const cuda_matte_mean a = read_mean(job.mean + at), b = read_mean(job.mean + next);
    out->slope = a.slope;
    out->slope_step = b.slope - a.slope;
    out->base = a.base;
    out->base_step = b.base - a.base;
}

/* One row of cells as wide as a thread's pixels. */
template <typename CELL> struct wide_row;
template <> struct wide_row<level_cell> {
    float           base[STRIP];
    __device__ void set(int i, const level_cell &c, float part)
    {
        base[i] = c.base + c.base_step * part; /* sac_matte_between */
    }
};
template <> struct wide_row<guided_cell> {
    float           slope[STRIP], base[STRIP];
    __device__ void set(int i, const guided_cell &c, float part)
    {
        slope[i] = c.slope + c.slope_step * part;
        base[i] = c.base + c.base_step * part;
    }
};

__device__ uint32_t pixel_of(const two_rows<wide_row<guided_cell>> &w, int i, float part, int luma,
                             const sac_matte_stretch &stretch)
{
    return byte_of(sac_matte_number(sac_matte_between(w.wide[0].slope[i], w.wide[1].slope[i], part),
                                    sac_matte_between(w.wide[0].base[i], w.wide[1].base[i], part),
                                    luma, stretch));
}

/* Without a guide the slope is 0, and adds nothing. */
__device__ uint32_t pixel_of(const two_rows<wide_row<level_cell>> &w, int i, float part, int,
                             const sac_matte_stretch &stretch)
{
    return byte_of((sac_matte_between(w.wide[0].base[i], w.wide[1].base[i], part) - stretch.low) *
                   stretch.scale);
}

__device__ uint32_t bytes_of(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

struct alignas(8) eight_bytes {
    uint32_t of[2];
};

/* Two quads side by side. */
__device__ void store_strip(uint8_t *to, bool wide, const quad q[2], const eight_bytes &bytes)
{
    if (wide && q[0].whole() && q[1].whole()) {
        *(eight_bytes *)(void *)to = bytes;
        return;
    }
    store_quad(to, wide, q[0], bytes.of[0]);
    store_quad(to + PIXELS, wide, q[1], bytes.of[1]);
}

enum {
    STRIPS = CUDA_MATTE_AREA_X / STRIP,
    ROWS = CUDA_MATTE_AREA_Y / STRIPS, /* of a thread */
    TOGETHER = 4,                      /* of these, whose luma is read at once */
    CLASS_ROWS = CUDA_MATTE_CLASS_Y / TILE_Y,
    STAGED_MAX = 2304 /* cells of a block of pixels that are copied to its shared memory */
};

/* The cells under a block of pixels. */
struct cell_window {
    int left, top, width, height;
};

__device__ cell_window window_of(const cuda_matte_job &job)
{
    const area at = area_of(job, CUDA_MATTE_AREA_Y, 0, 0);
    const int  left = job.x.from & -STRIP, columns = (job.x.until + STRIP - 1) & -STRIP;
    const int  x = at.x - left, y = (at.y - job.y.from);
    const int  last_x =
        (at.x + CUDA_MATTE_AREA_X < columns ? at.x + CUDA_MATTE_AREA_X : columns) - left - 1;
    const int last_y =
        (at.y + CUDA_MATTE_AREA_Y < job.y.until ? at.y + CUDA_MATTE_AREA_Y : job.y.until) -
        job.y.from - 1;
    const two_cells first[2] = {unpack_tap(read_only(job.tap_x + x)),
                                unpack_tap(read_only(job.tap_y + y))};
    const two_cells last[2] = {unpack_tap(read_only(job.tap_x + last_x)),
                               unpack_tap(read_only(job.tap_y + last_y))};
    return cell_window{(int)first[0].a, (int)first[1].a, (int)(last[0].b - first[0].a) + 1,
                       (int)(last[1].b - first[1].a) + 1};
}

template <typename CELL>
__device__ void stage_cells(const cuda_matte_job &job, uint32_t pitch, const cell_window &in,
                            CELL *room)
{
    for (int y = threadIdx.y; y < in.height; y += STRIPS)
        for (int x = threadIdx.x; x < in.width; x += STRIPS) {
            const int      column = in.left + x;
            const uint32_t at = (uint32_t)(in.top + y) * pitch + (uint32_t)column;
            read_cell(job, at, column + 1 < job.x.cells ? at + 1 : at, &room[y * in.width + x]);
        }
}

/* The rows of a thread; cell_of(x, y): of the grid. */
template <typename CELL, bool TURNED, typename CELL_OF>
__device__ void fill_rows(const cuda_matte_params &p, const cuda_matte_job &job, int x, int y,
                          CELL_OF cell_of)
{
    const bool               guided = sizeof(CELL) == sizeof(guided_cell);
    const quad               q[2] = {quad_of(job.x, x), quad_of(job.x, x + PIXELS)};
    const uint32_t          *tap_x = job.tap_x + (x - (job.x.from & -STRIP));
    const uint32_t          *tap_y = job.tap_y + (y - job.y.from);
    const int                count = job.y.until - y < ROWS ? job.y.until - y : ROWS;
    const bool               wide_out = job.wide_out;
    const size_t             out_pitch = job.out_pitch;
    uint8_t                 *out = job.out + (size_t)y * out_pitch + x;
    two_cells                across[STRIP];
    two_rows<wide_row<CELL>> w;
#pragma unroll
    for (int i = 0; i < STRIP; i++)
        across[i] = unpack_tap(read_only(tap_x + i));
#pragma unroll 1
    for (int from = 0; from < count; from += TOGETHER) {
        uint32_t luma[TOGETHER][2] = {}, down[TOGETHER];
#pragma unroll
        for (int j = 0; j < TOGETHER; j++)
            down[j] = read_only(tap_y + (from + j < count ? from + j : from));
#pragma unroll
        for (int j = 0; j < TOGETHER; j++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (guided && from + j < count)
                    luma[j][i] =
                        luma_of_quad<TURNED>(job.frame, job.wide_frame, q[i], y + from + j);
#pragma unroll
        for (int j = 0; j < TOGETHER; j++) {
            if (from + j >= count)
                break;
            const two_cells tap = unpack_tap(down[j]);
            w.move_to(tap.a, tap.b, [&](uint32_t row, wide_row<CELL> &wide) {
#pragma unroll
                for (int i = 0; i < STRIP; i++)
                    wide.set(i, cell_of(across[i].a, row), across[i].part);
            });
            uint32_t v[STRIP];
#pragma unroll
            for (int i = 0; i < STRIP; i++)
                v[i] = pixel_of(w, i, tap.part,
                                (int)(luma[j][i / PIXELS] >> 8 * (i % PIXELS) & 0xff), p.stretch);
            const eight_bytes bytes = {
                {bytes_of(v[0], v[1], v[2], v[3]), bytes_of(v[4], v[5], v[6], v[7])}};
            store_strip(out, wide_out, q, bytes);
            out += out_pitch;
        }
    }
}

/* A block's cells go to its shared memory first; where there are too many, as of a map finer than
 * the frame, they are read where they are. */
template <typename CELL, bool TURNED>
__global__ void __launch_bounds__(STRIPS *STRIPS, sizeof(CELL) > sizeof(level_cell) ? 2 : 3)
    fill_pixels(const __grid_constant__ cuda_matte_params p)
{
    __shared__ CELL       room[STAGED_MAX];
    const cuda_matte_job &job = p.jobs[blockIdx.z];
    const uint32_t        pitch = (uint32_t)p.spec.width;
    if (job.x.cells == 0)
        return;
    if (job.summary && blockIdx.x == 0 && blockIdx.y == 0 && thread_of_block() == 0)
        write_summary(job);
    const area at = area_of(job, CUDA_MATTE_AREA_Y, STRIP, ROWS);
    if (at.x - (int)threadIdx.x * STRIP >= job.x.until ||
        at.y - (int)threadIdx.y * ROWS >= job.y.until) /* for all of the block */
        return;
    const cell_window in = window_of(job);
    const bool        staged = in.width * in.height <= STAGED_MAX;
    if (staged)
        stage_cells(job, pitch, in, room);
    __syncthreads();
    if (at.x >= job.x.until || at.y >= job.y.until)
        return;
    if (staged)
        fill_rows<CELL, TURNED>(p, job, at.x, at.y, [&](uint32_t x, uint32_t row) {
            return room[((int)row - in.top) * in.width + (int)x - in.left];
        });
    else
        fill_rows<CELL, TURNED>(p, job, at.x, at.y, [&](uint32_t x, uint32_t row) {
            const uint32_t from = row * pitch + x;
            CELL           c;
            read_cell(job, from, (int)x + 1 < job.x.cells ? from + 1 : from, &c);
            return c;
        });
}

/* ---- classes ---- */

struct wide_numbers {
    float of[PIXELS];
};

/* What a number has to exceed: one number alone is class 1 from its half on. */
__device__ float class_from(enum sac_matte_form form)
{
    switch (form) {
    case SAC_MATTE_SHARE: return 0.5f;
    case SAC_MATTE_LOGIT: return 0.0f;
    default: return -INFINITY;
    }
}

/* Class after class, each where it is likelier than those before it. */
template <typename T>
__global__ void __launch_bounds__(THREADS, 3)
    fill_classes(const __grid_constant__ cuda_matte_params p)
{
    const cuda_matte_job &job = p.jobs[blockIdx.z];
    if (job.x.cells == 0)
        return;
    const area at = area_of(job, CUDA_MATTE_CLASS_Y, PIXELS, CLASS_ROWS);
    if (at.x >= job.x.until || at.y >= job.y.until)
        return;
    const bool       alone = p.spec.form == SAC_MATTE_SHARE || p.spec.form == SAC_MATTE_LOGIT;
    const quad       q = quad_of(job.x, at.x);
    const quad_taps  taps = taps_of(job.tap_x + (at.x - (job.x.from & -STRIP)));
    const numbers<T> in = numbers_of<T>(p, job);
    const uint32_t   cell = (uint32_t)in.cell;
    const int        count = job.y.until - at.y < CLASS_ROWS ? job.y.until - at.y : CLASS_ROWS;
    uint32_t         down[CLASS_ROWS], which[CLASS_ROWS] = {};
    float            best[CLASS_ROWS][PIXELS];
#pragma unroll
    for (int j = 0; j < CLASS_ROWS; j++) {
        down[j] = read_only(job.tap_y + (at.y - job.y.from + (j < count ? j : count - 1)));
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            best[j][i] = class_from(p.spec.form);
    }
#pragma unroll 1
    for (int k = 0; k < (alone ? 1 : p.spec.classes); k++) {
        const T               *plane = in.first + k * in.number;
        const uint32_t         number = alone ? 1 : (uint32_t)k;
        two_rows<wide_numbers> w;
#pragma unroll
        for (int j = 0; j < CLASS_ROWS; j++) {
            const two_cells tap = unpack_tap(down[j]);
            w.move_to(tap.a, tap.b, [&](uint32_t row, wide_numbers &wide) {
                const T *from = plane + row * in.row;
#pragma unroll
                for (int i = 0; i < PIXELS; i++)
                    wide.of[i] = sac_matte_between(number_of(read_only(from + taps.of[i].a * cell)),
                                                   number_of(read_only(from + taps.of[i].b * cell)),
                                                   taps.of[i].part);
            });
#pragma unroll
            for (int i = 0; i < PIXELS; i++) {
                const float v = sac_matte_between(w.wide[0].of[i], w.wide[1].of[i], tap.part);
                if (v > best[j][i]) {
                    best[j][i] = v;
                    which[j] = (which[j] & ~(0xffu << 8 * i)) | number << 8 * i;
                }
            }
        }
    }
    for (int j = 0; j < count; j++)
        store_quad(job.out + (size_t)(at.y + j) * job.out_pitch + at.x, job.wide_out, q, which[j]);
}

/* The class of the cell that a pixel lies in. */
template <typename T>
__global__ void __launch_bounds__(THREADS) fill_labels(const __grid_constant__ cuda_matte_params p)
{
    const cuda_matte_job &job = p.jobs[blockIdx.z];
    if (job.x.cells == 0)
        return;
    const area at = area_of(job, CUDA_MATTE_CLASS_Y, PIXELS, CLASS_ROWS);
    if (at.x >= job.x.until || at.y >= job.y.until)
        return;
    const quad       q = quad_of(job.x, at.x);
    const numbers<T> in = numbers_of<T>(p, job);
    const uint32_t  *tap_x = job.tap_x + (at.x - (job.x.from & -STRIP));
    const int        end = job.y.until - at.y < CLASS_ROWS ? job.y.until : at.y + CLASS_ROWS;
    for (int y = at.y; y < end; y++) {
        const int row = (int)job.tap_y[y - job.y.from];
        uint32_t  bytes = 0;
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            bytes |= (uint32_t)sac_matte_class(in.at(0, (int)tap_x[i], row)) << 8 * i;
        store_quad(job.out + (size_t)y * job.out_pitch + at.x, job.wide_out, q, bytes);
    }
}

} // namespace
