/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that a team holds in its registers: each is read from memory once, and all that follows
 * works on what the threads have. See struct ops_held in lines.h for which lines these are. */
#pragma once

#include "engine/cuda/kernels/bytes.cuh"
#include "engine/cuda/kernels/team.cuh"

namespace ops
{

/* A body's parameters at compile time: EIGHTS times eight numbers a thread, which lie in memory by
 * eights (VECTOR), or one at every so many as the team has threads. */
template <int N, bool V> struct held_way {
    static constexpr int  EIGHTS = N;
    static constexpr bool VECTOR = V;
};

template <class WAY, class TEAM> struct held {
    static constexpr int COUNT = WAY::EIGHTS * LANES;
    int                  n, lane, lanes;
    float                v[COUNT];

    OPS_BODY held(const TEAM &team, int64_t count)
        : n(team.live() ? (int)count : 0), lane(team.lane()), lanes(team.lanes())
    {
    }
    /* The place in the line of number e of this thread. */
    OPS_BODY int index(int e) const
    {
        return WAY::VECTOR ? (e / LANES * lanes + lane) * LANES + e % LANES : e * lanes + lane;
    }
    OPS_BODY bool has(int e) const
    {
        return index(e) < n;
    }

    OPS_BODY void fill(float all)
    {
        OPS_UNROLL
        for (int e = 0; e < COUNT; e++)
            v[e] = all;
    }
    /* All loads are under way before the first is waited for. */
    template <class T> OPS_BODY void read_from(const T *p, float rest)
    {
        fill(rest);
        if constexpr (WAY::VECTOR) {
            OPS_UNROLL
            for (int k = 0; k < COUNT; k += LANES)
                if (has(k))
                    get8(p, type_as(p), index(k), *(float(*)[LANES])(v + k));
        } else {
            OPS_UNROLL
            for (int e = 0; e < COUNT; e++)
                if (has(e))
                    v[e] = get_float(p, type_as(p), index(e));
        }
    }
    /* float16 or float32 from element `at` on; `rest` where the line has ended. */
    OPS_BODY void read(const void *p, int type, int64_t at, float rest)
    {
        if (type == SAC_F16)
            read_from((const uint16_t *)p + at, rest);
        else
            read_from((const float *)p + at, rest);
    }

    template <class T> OPS_BODY void write_to(T *p) const
    {
        OPS_UNROLL
        for (int k = 0; k < COUNT; k += WAY::VECTOR ? LANES : 1) {
            if (!has(k))
                continue;
            if constexpr (WAY::VECTOR)
                put8(p, type_as(p), index(k), *(const float(*)[LANES])(v + k));
            else
                put_float(p, type_as(p), index(k), v[k]);
        }
    }
    OPS_BODY void write(void *p, int type, int64_t at) const
    {
        if (type == SAC_F16)
            write_to((uint16_t *)p + at);
        else
            write_to((float *)p + at);
    }

    /* Bytes of lines by eights. */
    OPS_BODY void write_bytes(const struct ops_bytes &b, void *p, int64_t at) const
    {
        OPS_UNROLL
        for (int k = 0; k < COUNT; k += LANES)
            if (has(k))
                put_bytes8(b, p, at + index(k), *(const float(*)[LANES])(v + k));
    }

    /* Numbers that belong to the line's, or the one (at `at`) that belongs to all of them. */
    OPS_BODY void take(const void *p, int type, int64_t at, bool one)
    {
        if (one)
            fill(n ? get_float(p, type, at) : 0);
        else
            read(p, type, at, 0);
    }
    /* The sum of fn(number) over the line. */
    template <class F> OPS_BODY float sum(const TEAM &team, const F &fn) const
    {
        float all = 0;
        OPS_UNROLL
        for (int e = 0; e < COUNT; e++)
            all += has(e) ? fn(v[e]) : 0.0f;
        return team.all(all, add<float>());
    }
};

#ifdef __CUDACC__
/* Neighbouring threads of a warp, so many as a power of two. `on` is false for a group behind the
 * last line, which goes along because a warp folds together. */
struct group {
    int             width;
    bool            on;
    __device__ bool live() const
    {
        return on;
    }
    __device__ int lane() const
    {
        return threadIdx.x & (width - 1);
    }
    __device__ int lanes() const
    {
        return width;
    }
    template <class T, class FOLD> __device__ T all(T v, FOLD fold) const
    {
        for (int step = width / 2; step > 0; step /= 2)
            v = fold(v, shuffle(v, step));
        return v;
    }
};

constexpr int HELD_THREADS = 128;
/* Blocks of a body that a processor is to have registers for; a few may be spilled for it. */
template <class BODY> constexpr int HELD_BLOCKS = 1;

template <class BODY>
__global__ void __launch_bounds__(HELD_THREADS, HELD_BLOCKS<BODY>)
    group_kernel(const __grid_constant__ BODY body, int64_t rows, int width)
{
    early_begin();
    const int     groups = (int)blockDim.x / width;
    const int64_t own = threadIdx.x / (unsigned)width;
    for (int64_t i = blockIdx.x; i * groups < rows; i += gridDim.x)
        body(i * groups + own, 0, group{width, i * groups + own < rows});
}

/* One warp a block where there are too few lines to fill a GPU with larger ones. */
template <class BODY> int held_launch(const BODY &body, int width, int64_t rows, void *stream)
{
    constexpr int64_t THREADS_FEW = 64 << 10;
    const int         threads = rows * width < THREADS_FEW ? WARP : HELD_THREADS;
    if (width > WARP)
        return lines<BLOCKS>(body, OPS_TEAM_BLOCK, rows, 1, stream);
    if (rows > 0)
        CUDA_LAUNCH_ALONE(group_kernel<BODY>, blocks_of(rows, threads / width), threads, 0,
                          (cudaStream_t)stream, body, rows, width);
    return (int)cudaGetLastError();
}

template <bool VECTOR, class MAKE>
int held_by(const struct ops_lines &l, void *stream, const MAKE &make)
{
    const int64_t rows = l.outer.count;
    switch (l.held.eights) {
    case 1: return held_launch(make(held_way<1, VECTOR>()), l.held.lanes, rows, stream);
    case 2: return held_launch(make(held_way<2, VECTOR>()), l.held.lanes, rows, stream);
    case 3: return held_launch(make(held_way<3, VECTOR>()), l.held.lanes, rows, stream);
    default: return held_launch(make(held_way<4, VECTOR>()), l.held.lanes, rows, stream);
    }
}

#else
/* One thread holds the line, in room for a short one where it is short: a body works on all of its
 * room, and in tests on lines of 64 numbers most of the time went into the rest of 8192. */
template <bool VECTOR, class MAKE>
int held_by(const struct ops_lines &l, void *stream, const MAKE &make)
{
    constexpr int SHORT = 8, USUAL = 64, ALL = OPS_HELD_MAX / LANES;
    const int64_t n = l.inner.count, rows = l.outer.count;
    if (n <= SHORT * LANES)
        return columns(make(held_way<SHORT, VECTOR>()), 1, rows, 1, stream);
    if (n <= USUAL * LANES)
        return columns(make(held_way<USUAL, VECTOR>()), 1, rows, 1, stream);
    return columns(make(held_way<ALL, VECTOR>()), 1, rows, 1, stream);
}
#endif

/* make(a held_way) is the body. `fits`: addresses allow 16 bytes at once. */
template <class MAKE>
int held_lines(const struct ops_lines &l, bool fits, void *stream, const MAKE &make)
{
    return l.held.vector && fits ? held_by<true>(l, stream, make) : held_by<false>(l, stream, make);
}

} // namespace ops
