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

/* To shared memory, past the registers: many rows are on their way at once. */
template <bool WIDE> __device__ void bring(four_luma<WIDE> *to, const uint8_t *from)
{
#ifdef __CUDA_ARCH__
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], %2;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
        "l"(from), "n"(sizeof *to));
#else
    *to = *(const four_luma<WIDE> *)(const void *)from;
#endif
}
/* What this thread brought is there. */
__device__ void arrive()
{
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

template <reading READING> __device__ uint32_t read_luma(const sac_surface &s, const quad &q, int y)
{
    uint32_t four = 0;
#pragma unroll 1
    for (int i = q.first; i < q.end; i++)
        four |= (uint32_t)sac_matte_luma(&s, sac_reading{s.format, READING == TURNED}, q.x + i, y)
                << 8 * i;
    return four;
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
        t.of[i] = unpack_tap(packed[i]);
    return t;
}

__device__ cuda_matte_mean read_cell(const cuda_matte_mean *at)
{
#ifdef __CUDA_ARCH__
    const float2 v = __ldg((const float2 *)at);
    return cuda_matte_mean{v.x, v.y};
#else
    return *at;
#endif
}
__device__ uint16_t read_cell(const uint16_t *at)
{
    return read_only(at);
}

/* A share, 0 to SAC_MATTE_ONE, without the slow conversion of 16 bit numbers. */
__device__ float float_of_share(uint16_t share)
{
#ifdef __CUDA_ARCH__
    return __uint_as_float(__byte_perm(share, 0x4b000000u, 0x7610)) - 8388608.0f;
#else
    return (float)share;
#endif
}

/* What four lines come to, as sac_matte_pixel: without a fraction, from 0 to 255, side by side. */
__device__ uint32_t bytes_of(const float v[PIXELS])
{
#ifdef __CUDA_ARCH__
    uint32_t byte[PIXELS];
#pragma unroll
    for (int i = 0; i < PIXELS; i++) /* whose conversion keeps to its limits */
        asm("cvt.rzi.u8.f32 %0, %1;" : "=r"(byte[i]) : "f"(v[i]));
    return __byte_perm(__byte_perm(byte[0], byte[1], 0x0040), __byte_perm(byte[2], byte[3], 0x0040),
                       0x5410);
#else
    uint32_t four = 0;
    for (int i = 0; i < PIXELS; i++)
        four |= (uint32_t)sac_matte_pixel(0.0f, v[i], 0) << 8 * i;
    return four;
#endif
}

/* The bits of 2^23, in a register: an instruction has room for one constant, and the compiler would
 * make this the one. */
__device__ uint32_t whole_bits(const cuda_matte_params &p)
{
    return 0x4b000000u + (uint32_t)(p.guide < 0);
}

/* One of four bytes, as float_of_share. */
__device__ float float_of_byte(uint32_t four, int i, uint32_t whole)
{
#ifdef __CUDA_ARCH__
    return __uint_as_float(__byte_perm(four, whole, 0x7440 | i)) - 8388608.0f;
#else
    (void)whole;
    return (float)(four >> 8 * i & 0xff);
#endif
}

/* Where a block of pixels begins: a thread has some rows of four. */
struct area {
    int x, y;
};

__device__ area area_of(const cuda_matte_job &job, int height, int pixels, int rows)
{
    return area{(job.x.from & -PIXELS) + (int)blockIdx.x * CUDA_MATTE_AREA_X +
                    (int)threadIdx.x * pixels,
                job.y.from + (int)blockIdx.y * height + (int)threadIdx.y * rows};
}

/* What a table has of a pixel: for classes a packed tap, for mattes the first of its two cells, and
 * the part of the second, which is none where there is no second. */
struct between_cells {
    int   first;
    float part;
};

__device__ void set_entry(uint32_t *to, const sac_matte_axis &a, int pixel, bool nearest)
{
    *to = pack_tap(a, pixel, nearest);
}
__device__ void set_entry(between_cells *to, const sac_matte_axis &a, int pixel, bool)
{
    const sac_tap tap = tap_of(a, pixel);
    *to = between_cells{tap.a, tap.b > tap.a ? sac_matte_part_of(tap.second) : 0.0f};
}

/* Where a block's columns and rows of pixels lie; those past the crop's last one as that. */
template <typename ENTRY, int HEIGHT> struct area_taps {
    ENTRY x[CUDA_MATTE_AREA_X], y[HEIGHT + 1]; /* the last one is read ahead alone */
};

template <typename ENTRY, int HEIGHT>
__device__ void look_up(area_taps<ENTRY, HEIGHT> *taps, const cuda_matte_job &job, bool nearest)
{
    const int x = (job.x.from & -PIXELS) + (int)blockIdx.x * CUDA_MATTE_AREA_X,
              y = job.y.from + (int)blockIdx.y * HEIGHT;
    const int threads = (int)(blockDim.x * blockDim.y);
#pragma unroll 1
    for (int i = thread_of_block(); i < CUDA_MATTE_AREA_X + HEIGHT; i += threads) {
        const bool            along = i < CUDA_MATTE_AREA_X;
        const sac_matte_axis &a = along ? job.x : job.y;
        const int             at = along ? x + i : y + i - CUDA_MATTE_AREA_X;
        set_entry(along ? &taps->x[i] : &taps->y[i - CUDA_MATTE_AREA_X], a,
                  clamp_to(at, a.from, a.until - 1), nearest);
    }
}

/* What a cell has: its share, or the line along luma. */
struct level_cells {
    enum { NUMBERS = 1, SHARE = 0 };
    typedef uint16_t             one;
    static __device__ const one *plane_of(const cuda_matte_job &job)
    {
        return (const one *)job.closed;
    }
    static __device__ float number(one cell, int, const sac_matte_stretch &t)
    {
        return float_of_share(cell) * t.scale + t.offset; /* sac_matte_level */
    }
    static __device__ float value(const float v[NUMBERS], float)
    {
        return v[SHARE];
    }
};
struct guided_cells {
    enum { NUMBERS = 2, SLOPE = 0, BASE = 1 };
    typedef cuda_matte_mean      one;
    static __device__ const one *plane_of(const cuda_matte_job &job)
    {
        return job.mean;
    }
    static __device__ float number(const one &cell, int n, const sac_matte_stretch &)
    {
        return n == SLOPE ? cell.slope : cell.base;
    }
    static __device__ float value(const float v[NUMBERS], float luma)
    {
        return fmaf(v[SLOPE], luma, v[BASE]); /* sac_matte_pixel, with what follows */
    }
};

enum {
    ACROSS = CUDA_MATTE_AREA_X / PIXELS, /* threads of a block of pixels */
    DOWN = 4,
    ROWS = CUDA_MATTE_AREA_Y / DOWN, /* of a thread */
    CLASS_ROWS = CUDA_MATTE_CLASS_Y / TILE_Y
};
static_assert((int)ACROSS == (int)LANES, "a warp has a row of a block");

/* Where a thread's four pixels lie in a row of cells. */
struct quad_cells {
    int   first[PIXELS]; /* of two cells */
    float part[PIXELS];
    bool  few; /* the quad lies between three cells: */
    int   near[3];
    bool  second[PIXELS]; /* it lies between the last two of them */
};

__device__ quad_cells quad_cells_of(const between_cells taps[PIXELS], int last, bool few)
{
    quad_cells q;
#pragma unroll
    for (int i = 0; i < PIXELS; i++) {
        q.first[i] = taps[i].first;
        q.part[i] = taps[i].part;
        q.second[i] = taps[i].first != taps[0].first;
    }
    q.few = few;
#pragma unroll
    for (int i = 0; i < 3; i++)
        q.near[i] = q.first[0] + i < last ? q.first[0] + i : last;
    return q;
}

/* Rows of cells one after the other, as wide as a quad. Where three cells are enough, those of the
 * next row are on their way while pixels are made of this one. */
template <typename CELLS> struct cell_rows {
    typedef typename CELLS::one one;
    const one                  *plane;
    int                         pitch, last, lowest; /* last, lowest: cells of the grid */
    sac_matte_stretch           stretch;
    one                         near[3];
    int                         coming; /* the row that they are of; -1: none */

    __device__ uint32_t first_of(int row) const
    {
        return (uint32_t)((row < lowest ? row : lowest) * pitch);
    }
    __device__ void read(int row, const quad_cells &q)
    {
        const uint32_t first = first_of(row);
#pragma unroll
        for (int i = 0; i < 3; i++)
            near[i] = read_cell(plane + (first + (uint32_t)q.near[i]));
        coming = row;
    }
    __device__ void widen(int row, const quad_cells &q, float out[CELLS::NUMBERS][PIXELS])
    {
        if (!q.few) {
            const one *from = plane + first_of(row);
#pragma unroll
            for (int i = 0; i < PIXELS; i++) {
                const int next = q.first[i] < last ? q.first[i] + 1 : last;
                const one a = read_cell(from + q.first[i]), b = read_cell(from + next);
#pragma unroll
                for (int n = 0; n < CELLS::NUMBERS; n++)
                    out[n][i] = sac_matte_between(CELLS::number(a, n, stretch),
                                                  CELLS::number(b, n, stretch), q.part[i]);
            }
            return;
        }
        if (coming != row)
            read(row, q);
#pragma unroll
        for (int n = 0; n < CELLS::NUMBERS; n++) {
            const float a = CELLS::number(near[0], n, stretch),
                        b = CELLS::number(near[1], n, stretch),
                        c = CELLS::number(near[2], n, stretch), ab = b - a, bc = c - b;
#pragma unroll
            for (int i = 0; i < PIXELS; i++) /* sac_matte_between */
                out[n][i] = fmaf(q.second[i] ? bc : ab, q.part[i], q.second[i] ? b : a);
        }
        read(row + 1, q);
    }
};

/* What the compiler is to keep in a register rather than compute again for each row. */
__device__ void keep(float &v)
{
#ifdef __CUDA_ARCH__
    asm volatile("" : "+f"(v));
#else
    (void)v;
#endif
}

/* Two rows of cells, as wide as a quad, and the way from the one to the other. */
template <typename CELLS> struct cell_pair {
    enum { NUMBERS = CELLS::NUMBERS };
    float           above[NUMBERS][PIXELS], below[NUMBERS][PIXELS], more[NUMBERS][PIXELS];
    int             lower; /* the row of cells that `below` is of; -1: none */
    __device__ void move_to(int cell, cell_rows<CELLS> &rows, const quad_cells &cells)
    {
        if (lower == cell) {
#pragma unroll
            for (int n = 0; n < NUMBERS; n++)
#pragma unroll
                for (int i = 0; i < PIXELS; i++)
                    above[n][i] = below[n][i];
        } else {
            rows.widen(cell, cells, above);
        }
        lower = cell + 1;
        rows.widen(lower, cells, below);
#pragma unroll
        for (int n = 0; n < NUMBERS; n++)
#pragma unroll
            for (int i = 0; i < PIXELS; i++) {
                more[n][i] = below[n][i] - above[n][i];
                keep(more[n][i]);
            }
    }
    /* luma: a byte each. */
    __device__ uint32_t bytes(float part, uint32_t luma, uint32_t whole) const
    {
        float v[PIXELS];
#pragma unroll
        for (int i = 0; i < PIXELS; i++) {
            float of[NUMBERS];
#pragma unroll
            for (int n = 0; n < NUMBERS; n++) /* sac_matte_between */
                of[n] = fmaf(more[n][i], part, above[n][i]);
            v[i] = CELLS::value(of, float_of_byte(luma, i, whole));
        }
        return bytes_of(v);
    }
};

/* What a thread fills: four columns, and so many rows, the same as its warp. Lanes past the row's
 * end do as the last quad does, and write nothing. */
struct quad_rows {
    quad                 q;
    bool                 past;
    int                  y, count;
    const between_cells *tap; /* of the first row */
};

/* Luma of a block. */
template <bool WIDE> struct area_luma {
    four_luma<WIDE> of[CUDA_MATTE_AREA_Y][ACROSS];
};

/* The luma of this thread's rows. */
template <reading READING, bool WIDE>
__device__ void bring_rows(const cuda_matte_job &job, const quad_rows &to, area_luma<WIDE> *luma)
{
    four_luma<WIDE> *row = &luma->of[threadIdx.y * ROWS][threadIdx.x];
    const uint8_t   *from =
        job.frame.plane[0] + (size_t)to.y * job.frame.pitch[0] + (to.q.x << (int)WIDE);
#pragma unroll 4
    for (int i = 0; i < to.count; i++, row += ACROSS, from += job.frame.pitch[0])
        if (READING == WORDS)
            bring(row, from);
        else
            row->of[0] = read_luma<READING>(job.frame, to.q, to.y + i);
}

template <typename CELLS, bool WIDE>
__device__ void fill_rows(const cuda_matte_params &p, const cuda_matte_job &job,
                          const quad_rows &to, const quad_cells &cells, const area_luma<WIDE> &luma)
{
    const bool at_once = job.wide_out && to.q.whole() && !to.past,
               singly = __any_sync(~0u, !at_once && !to.past);
    const four_luma<WIDE> *raw = &luma.of[threadIdx.y * ROWS][threadIdx.x];
    uint8_t               *out = job.out + (size_t)to.y * job.out_pitch + to.q.x;
    const between_cells   *tap = to.tap;
    between_cells          now = *tap;
    cell_rows<CELLS>       rows = {};
    cell_pair<CELLS>       pair;
    const uint32_t         whole = whole_bits(p);
    rows.plane = CELLS::plane_of(job);
    rows.pitch = p.spec.width;
    rows.last = job.x.cells - 1;
    rows.lowest = job.y.cells - 1;
    rows.stretch = p.stretch;
    rows.coming = pair.lower = -1;
#pragma unroll 1
    for (int row = 0; row < to.count;) {
        const int cell = now.first;
        pair.move_to(cell, rows, cells);
#pragma unroll 1
        do {
            const uint32_t four = CELLS::NUMBERS > 1 ? raw->bytes() : 0,
                           bytes = pair.bytes(now.part, four, whole);
            if (at_once)
                *(uint32_t *)(void *)out = bytes;
            if (singly && !at_once && !to.past)
                store_quad(out, false, to.q, bytes);
            out += job.out_pitch;
            raw += ACROSS;
            now = *++tap;
        } while (++row < to.count && now.first == cell);
    }
}

/* Between the same two rows of cells a pixel is a few operations. */
template <typename CELLS, reading READING>
__global__ void __launch_bounds__(ACROSS *DOWN, 8)
    fill_pixels(const __grid_constant__ cuda_matte_params p)
{
    early_begin();
    __shared__ area_taps<between_cells, CUDA_MATTE_AREA_Y> taps;
    __shared__ union {
        area_luma<true>  wide;
        area_luma<false> bytes;
    } luma;
    const cuda_matte_job &job = p.jobs[blockIdx.z];
    if (job.x.cells == 0)
        return;
    if (job.summary && blockIdx.x == 0 && blockIdx.y == 0 && thread_of_block() == 0)
        write_summary(job);
    const area at = area_of(job, CUDA_MATTE_AREA_Y, PIXELS, ROWS);
    const int  column = at.x - (int)threadIdx.x * PIXELS;
    if (column >= job.x.until || at.y - (int)threadIdx.y * ROWS >= job.y.until) /* of the block */
        return;
    const bool      guided = CELLS::NUMBERS > 1;
    const bool      wide = READING == WORDS && job.frame.format == SAC_PIXEL_P010;
    const int       end = (job.x.until - 1) & -PIXELS, x = at.x > end ? end : at.x;
    const quad_rows to = {quad_of(job.x, x), at.x > end, at.y,
                          job.y.until - at.y < ROWS ? job.y.until - at.y : ROWS,
                          &taps.y[threadIdx.y * ROWS]};
    if (guided && wide)
        bring_rows<READING>(job, to, &luma.wide);
    else if (guided)
        bring_rows<READING>(job, to, &luma.bytes);
    look_up(&taps, job, false);
    __syncthreads();
    if (to.count <= 0) /* for all of the warp */
        return;
    const quad_cells cells = quad_cells_of(&taps.x[x - column], job.x.cells - 1, job.few);
    arrive();
    if (wide)
        fill_rows<CELLS>(p, job, to, cells, luma.wide);
    else
        fill_rows<CELLS>(p, job, to, cells, luma.bytes);
}

/* ---- classes ---- */

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

/* What a thread fills of a map of classes: four pixels side by side, in some rows. */
template <typename T> struct class_area {
    quad            q;
    int             y, count;      /* rows */
    const uint32_t *tap_x, *tap_y; /* of the first pixel */
    numbers<T>      in;
};
typedef area_taps<uint32_t, CUDA_MATTE_CLASS_Y> class_taps;

/* false: nothing. Every thread of the block calls it. */
template <typename T>
__device__ bool find_class_area(const cuda_matte_params &p, class_taps *taps, class_area<T> *out)
{
    const cuda_matte_job &job = p.jobs[blockIdx.z];
    if (job.x.cells == 0)
        return false;
    look_up(taps, job, p.spec.form == SAC_MATTE_LABEL);
    __syncthreads();
    const area at = area_of(job, CUDA_MATTE_CLASS_Y, PIXELS, CLASS_ROWS);
    if (at.x >= job.x.until || at.y >= job.y.until)
        return false;
    const int left = job.y.until - at.y;
    *out = {quad_of(job.x, at.x),
            at.y,
            left < CLASS_ROWS ? left : CLASS_ROWS,
            taps->x + threadIdx.x * PIXELS,
            taps->y + threadIdx.y * CLASS_ROWS,
            numbers_of<T>(p, job)};
    return true;
}

/* Row j of the area. */
template <typename T>
__device__ void store_classes(const cuda_matte_params &p, const class_area<T> &a, int j,
                              uint32_t bytes)
{
    const cuda_matte_job &job = p.jobs[blockIdx.z];
    store_quad(job.out + (size_t)(a.y + j) * job.out_pitch + a.q.x, job.wide_out, a.q, bytes);
}

/* Class after class, each where it is likelier than those before it. */
template <typename T>
__global__ void __launch_bounds__(THREADS, 3)
    fill_classes(const __grid_constant__ cuda_matte_params p)
{
    early_begin();
    __shared__ class_taps tables;
    class_area<T>         a;
    if (!find_class_area(p, &tables, &a))
        return;
    const bool      alone = p.spec.form == SAC_MATTE_SHARE || p.spec.form == SAC_MATTE_LOGIT;
    const quad_taps taps = taps_of(a.tap_x);
    const uint32_t  cell = (uint32_t)a.in.cell;
    uint32_t        down[CLASS_ROWS], which[CLASS_ROWS] = {};
    float           best[CLASS_ROWS][PIXELS];
#pragma unroll
    for (int j = 0; j < CLASS_ROWS; j++) {
        down[j] = a.tap_y[j < a.count ? j : a.count - 1];
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            best[j][i] = class_from(p.spec.form);
    }
#pragma unroll 1
    for (int k = 0; k < (alone ? 1 : p.spec.classes); k++) {
        const T               *plane = a.in.first + k * a.in.number;
        const uint32_t         number = alone ? 1 : (uint32_t)k;
        two_rows<wide_numbers> w;
#pragma unroll
        for (int j = 0; j < CLASS_ROWS; j++) {
            const two_cells tap = unpack_tap(down[j]);
            w.move_to(tap.a, tap.b, [&](uint32_t row, wide_numbers &wide) {
                const T *from = plane + row * a.in.row;
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
    for (int j = 0; j < a.count; j++)
        store_classes(p, a, j, which[j]);
}

/* The class of the cell that a pixel lies in. */
template <typename T>
__global__ void __launch_bounds__(THREADS) fill_labels(const __grid_constant__ cuda_matte_params p)
{
    early_begin();
    __shared__ class_taps tables;
    class_area<T>         a;
    if (!find_class_area(p, &tables, &a))
        return;
    for (int j = 0; j < a.count; j++) {
        const int row = (int)a.tap_y[j];
        uint32_t  bytes = 0;
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            bytes |= (uint32_t)sac_matte_class(a.in.at(0, (int)a.tap_x[i], row)) << 8 * i;
        store_classes(p, a, j, bytes);
    }
}

} // namespace
