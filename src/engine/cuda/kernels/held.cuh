/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that a team holds in its registers: each is read from memory once, and all that follows
 * works on what the threads have. See struct ops_held in lines.h for which lines these are. */
#pragma once

#include "engine/cuda/kernels/bytes.cuh"
#include "engine/cuda/kernels/pack.cuh"
#include "engine/cuda/kernels/team.cuh"

namespace ops
{

/* A body's parameters at compile time: EIGHTS times eight numbers a thread, PACK of which lie
 * together in memory, the next at every so many as the team has threads. */
template <int N, int P> struct held_way {
    static constexpr int EIGHTS = N, PACK = P;
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
        return (e / WAY::PACK * lanes + lane) * WAY::PACK + e % WAY::PACK;
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
        constexpr int PACK = WAY::PACK;
        fill(rest);
        OPS_UNROLL
        for (int k = 0; k < COUNT; k += PACK) {
            float(&numbers)[PACK] = *(float(*)[PACK])(v + k);
            if (!has(k))
                continue;
            if constexpr (PACK == LANES)
                get8(p, type_as(p), index(k), numbers);
            else
                load<PACK>(p + index(k)).to(numbers);
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
        for (int k = 0; k < COUNT; k += WAY::PACK) {
            const float(&numbers)[WAY::PACK] = *(const float(*)[WAY::PACK])(v + k);
            if (!has(k))
                continue;
            if constexpr (WAY::PACK == LANES)
                put8(p, type_as(p), index(k), numbers);
            else
                store(p, type_as(p), index(k), numbers);
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
    OPS_BODY float most(const TEAM &team) const
    {
        float max = -INFINITY;
        OPS_UNROLL
        for (int e = 0; e < COUNT; e++)
            max = fmaxf(max, has(e) ? v[e] : -INFINITY);
        return team.all(max, larger<float>());
    }
    /* Each number becomes the exponential of what it is below the largest. */
    OPS_BODY void exponentials(const TEAM &team)
    {
        const float max = most(team);
        OPS_UNROLL
        for (int e = 0; e < COUNT; e++)
            v[e] = expf(v[e] - max);
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

/* body(row, 0, team) for groups of so many threads of a warp. One warp a block where there are too
 * few lines to fill a GPU with larger ones. */
template <class BODY> int groups(const BODY &body, int width, int64_t rows, void *stream)
{
    constexpr int64_t THREADS_FEW = 64 << 10;
    const int         threads = rows * width < THREADS_FEW ? WARP : HELD_THREADS;
    if (rows > 0)
        CUDA_LAUNCH_ALONE(group_kernel<BODY>, blocks_of(rows, threads / width), threads, 0,
                          (cudaStream_t)stream, body, rows, width);
    return (int)cudaGetLastError();
}

template <class BODY> int held_launch(const BODY &body, int width, int64_t rows, void *stream)
{
    return width > WARP ? lines<BLOCKS>(body, OPS_TEAM_BLOCK, rows, 1, stream)
                        : groups(body, width, rows, stream);
}

template <int PACK, class MAKE>
int held_by(const struct ops_lines &l, void *stream, const MAKE &make)
{
    const int64_t rows = l.outer.count;
    if constexpr (PACK == LANES) /* others with a little room too much: less code */
        if (l.held.eights == 3)
            return held_launch(make(held_way<3, PACK>()), l.held.lanes, rows, stream);
    switch (l.held.eights) {
    case 1: return held_launch(make(held_way<1, PACK>()), l.held.lanes, rows, stream);
    case 2: return held_launch(make(held_way<2, PACK>()), l.held.lanes, rows, stream);
    default: return held_launch(make(held_way<4, PACK>()), l.held.lanes, rows, stream);
    }
}

#else
template <class BODY> int groups(const BODY &body, int, int64_t rows, void *stream)
{
    return columns(body, 1, rows, 1, stream);
}

/* One thread holds the line, in room for a short one where it is short: a body works on all of its
 * room, and in tests on lines of 64 numbers most of the time went into the rest of 8192. */
template <int PACK, class MAKE>
int held_by(const struct ops_lines &l, void *stream, const MAKE &make)
{
    constexpr int SHORT = 8, USUAL = 64, ALL = OPS_HELD_MAX / LANES;
    const int64_t n = l.inner.count, rows = l.outer.count;
    if (n <= SHORT * LANES)
        return columns(make(held_way<SHORT, PACK>()), 1, rows, 1, stream);
    if (n <= USUAL * LANES)
        return columns(make(held_way<USUAL, PACK>()), 1, rows, 1, stream);
    return columns(make(held_way<ALL, PACK>()), 1, rows, 1, stream);
}
#endif

/* make(a held_way) is the body. `fits`: addresses allow 16 bytes at once. */
template <class MAKE>
int held_lines(const struct ops_lines &l, bool fits, void *stream, const MAKE &make)
{
    switch (fits ? l.held.pack : 1) {
    case 8: return held_by<8>(l, stream, make);
    case 4: return held_by<4>(l, stream, make);
    default: return held_by<1>(l, stream, make);
    }
}

} // namespace ops
