/* SPDX-License-Identifier: Apache-2.0 */
/* Teams of threads over lines: see lines.h. A body's call operator takes a line's number, its part
 * and a team. All threads of the team run it, and the team's folds give every thread the same
 * result. On the host a team is one thread. */
#pragma once

#include "engine/cuda/kernels/lines.h"
#include "engine/cuda/kernels/numbers.cuh"

namespace ops
{

/* The teams that a body may get: each adds a kernel and its code. */
constexpr unsigned SOLO = 1u << OPS_TEAM_SOLO, WARPS = 1u << OPS_TEAM_WARP,
                   BLOCKS = 1u << OPS_TEAM_BLOCK;
constexpr unsigned CHOSEN = SOLO | WARPS | BLOCKS; /* by ops_choose_team */

struct solo {
    OPS_BODY bool live() const
    {
        return true;
    }
    OPS_BODY int lane() const
    {
        return 0;
    }
    OPS_BODY int lanes() const
    {
        return 1;
    }
    OPS_BODY void sync() const
    {
    } /* makes writes of the team's threads visible to all of them */
    template <class T, class FOLD> OPS_BODY T all(T v, FOLD) const
    {
        return v;
    }
    /* write(line, k, what the team's threads have of v[k], folded) for eight numbers of a line. */
    template <class FOLD, class WRITE>
    OPS_BODY void eight(int64_t line, int64_t, float (&v)[LANES], FOLD, const WRITE &write) const
    {
        for (int k = 0; k < LANES; k++)
            write(line, k, v[k]);
    }
};

#ifdef __CUDACC__
constexpr int WARP = 32;

template <class T> __device__ __forceinline__ T shuffle(T v, int step)
{
    return __shfl_xor_sync(0xffffffff, v, step);
}

template <class T, class FOLD> __device__ __forceinline__ T fold_warp(T v, FOLD fold)
{
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        v = fold(v, shuffle(v, step));
    return v;
}

struct warp {
    __device__ int lane() const
    {
        return threadIdx.x % WARP;
    }
    __device__ int lanes() const
    {
        return WARP;
    }
    __device__ void sync() const
    {
        __syncwarp();
    }
    template <class T, class FOLD> __device__ T all(T v, FOLD fold) const
    {
        return fold_warp(v, fold);
    }
};

struct block {
    void           *room; /* shared memory for three numbers of each warp */
    __device__ bool live() const
    {
        return true;
    }
    __device__ int lane() const
    {
        return threadIdx.x;
    }
    __device__ int lanes() const
    {
        return THREADS;
    }
    __device__ void sync() const
    {
        __syncthreads();
    }
    template <class T, class FOLD> __device__ T all(T v, FOLD fold) const
    {
        static_assert(sizeof(T) <= 3 * sizeof(double), "room for what is folded");
        T *each_warp = (T *)room;
        v = fold_warp(v, fold);
        __syncthreads(); /* the previous fold's result has been read */
        if (threadIdx.x % WARP == 0)
            each_warp[threadIdx.x / WARP] = v;
        __syncthreads();
        v = each_warp[0];
#pragma unroll
        for (int i = 1; i < THREADS / WARP; i++)
            v = fold(v, each_warp[i]);
        return v;
    }
};

/* Every width-th thread of the block, so many as a power of two: the threads beside it work on the
 * neighbouring lines. */
struct column {
    void          *room; /* shared memory, ROOM_BYTES */
    int            width;
    __device__ int lane() const
    {
        return threadIdx.x / (unsigned)width;
    }
    __device__ int lanes() const
    {
        return THREADS / width;
    }
    __device__ void sync() const
    {
        __syncthreads();
    }
    /* Over the threads of the line that are in one warp. */
    template <class T, class FOLD> __device__ T in_warp(T v, FOLD fold) const
    {
        for (int step = WARP / 2; step >= width; step /= 2)
            v = fold(v, shuffle(v, step));
        return v;
    }
    template <class T, class FOLD> __device__ T all(T v, FOLD fold) const
    {
        static_assert(sizeof(T) * THREADS <= ROOM_BYTES, "room for what is folded");
        T *each_thread = (T *)room;
        __syncthreads(); /* the previous fold's result has been read */
        each_thread[threadIdx.x] = in_warp(v, fold);
        __syncthreads();
        v = each_thread[threadIdx.x % WARP];
#pragma unroll
        for (int i = 1; i < THREADS / WARP; i++)
            v = fold(v, each_thread[i * WARP + threadIdx.x % WARP]);
        return v;
    }
    /* The block's lines by eight numbers are one number per thread, or for some of them. The row's
     * length avoids bank conflicts. */
    template <class FOLD, class WRITE>
    __device__ void eight(int64_t line, int64_t lines, float (&v)[LANES], FOLD fold,
                          const WRITE &write) const
    {
        float    *each_thread = (float *)room;
        const int beside = threadIdx.x / LANES, k = threadIdx.x % LANES;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < LANES; i++)
            each_thread[i * EIGHT_ROW + threadIdx.x] = in_warp(v[i], fold);
        __syncthreads();
        float all = each_thread[k * EIGHT_ROW + beside];
#pragma unroll
        for (int i = 1; i < THREADS / WARP; i++)
            all = fold(all, each_thread[k * EIGHT_ROW + i * WARP + beside]);
        line = line / width * width + beside;
        if (beside < width && line < lines)
            write(line, k, all);
    }
    static constexpr int EIGHT_ROW = THREADS + 4;
    /* The largest thing that a thread has for `all`, and for `eight` a little more than a row. */
    static constexpr int ROOM_BYTES = 17 * sizeof(float) * THREADS;
    static_assert(ROOM_BYTES >= LANES * EIGHT_ROW * sizeof(float), "room for eight numbers");
};

template <class BODY>
__global__ void __launch_bounds__(THREADS)
    solo_kernel(const __grid_constant__ BODY body, int64_t rows, int parts)
{
    early_begin();
    const int64_t stride = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < rows * parts; i += stride)
        body(i % rows, (int)(i / rows), solo()); /* neighbours work on neighbouring lines */
}

template <class BODY>
__global__ void __launch_bounds__(THREADS)
    warp_kernel(const __grid_constant__ BODY body, int64_t rows, int parts)
{
    early_begin();
    const int64_t stride = (int64_t)gridDim.x * (THREADS / WARP);
    for (int64_t i = (int64_t)blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP; i < rows * parts;
         i += stride)
        body(i / parts, (int)(i % parts), warp());
}

template <class BODY>
__global__ void __launch_bounds__(THREADS)
    block_kernel(const __grid_constant__ BODY body, int64_t rows, int parts)
{
    early_begin();
    __shared__ double room[3 * THREADS / WARP]; /* of each warp, what block.all folds */
    for (int64_t i = blockIdx.x; i < rows * parts; i += gridDim.x)
        body(i / parts, (int)(i % parts), block{room});
}

/* Where the number of lines is not a multiple of the width, the last is computed more than once,
 * with the same result. */
template <class BODY>
__global__ void __launch_bounds__(THREADS, 2)
    column_kernel(const __grid_constant__ BODY body, int64_t rows, int parts, int width)
{
    early_begin();
    __shared__ double room[column::ROOM_BYTES / sizeof(double)];
    const int64_t     groups = (rows + width - 1) / width;
    for (int64_t i = blockIdx.x; i < groups * parts; i += gridDim.x) {
        const int64_t row = i % groups * width + threadIdx.x % (unsigned)width;
        body(row < rows ? row : rows - 1, (int)(i / groups), column{room, width});
    }
}

inline unsigned blocks_of(int64_t work, int64_t per_block)
{
    const int64_t blocks = (work + per_block - 1) / per_block;
    return (unsigned)(blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX);
}

/* body(row, part, team) for all lines and parts: of columns, of which so many stand side by side in
 * a block; or of one of TEAMS. */
template <class BODY>
int columns(const BODY &body, int width, int64_t rows, int parts, void *stream)
{
    if (rows <= 0)
        return 0;
    CUDA_LAUNCH_ALONE(column_kernel<BODY>, blocks_of((rows + width - 1) / width * parts, 1),
                      THREADS, 0, (cudaStream_t)stream, body, rows, parts, width);
    return (int)cudaGetLastError();
}

template <unsigned TEAMS = CHOSEN, class BODY>
int lines(const BODY &body, int team, int64_t rows, int parts, void *stream)
{
    const int64_t n = rows * parts;
    if (!(TEAMS >> team & 1))
        return (int)cudaErrorInvalidValue;
    if (n <= 0)
        return 0;
    if constexpr ((TEAMS & SOLO) != 0)
        if (team == OPS_TEAM_SOLO)
            CUDA_LAUNCH_ALONE(solo_kernel<BODY>, blocks_of(n, THREADS), THREADS, 0,
                              (cudaStream_t)stream, body, rows, parts);
    if constexpr ((TEAMS & WARPS) != 0)
        if (team == OPS_TEAM_WARP)
            CUDA_LAUNCH_ALONE(warp_kernel<BODY>, blocks_of(n, THREADS / WARP), THREADS, 0,
                              (cudaStream_t)stream, body, rows, parts);
    if constexpr ((TEAMS & BLOCKS) != 0)
        if (team == OPS_TEAM_BLOCK)
            CUDA_LAUNCH_ALONE(block_kernel<BODY>, blocks_of(n, 1), THREADS, 0, (cudaStream_t)stream,
                              body, rows, parts);
    return (int)cudaGetLastError();
}
#else
template <class BODY> int columns(const BODY &body, int, int64_t rows, int parts, void *)
{
    for (int64_t row = 0; row < rows; row++)
        for (int part = 0; part < parts; part++)
            body(row, part, solo());
    return 0;
}

template <unsigned TEAMS = CHOSEN, class BODY>
int lines(const BODY &body, int team, int64_t rows, int parts, void *stream)
{
    if (!(TEAMS >> team & 1))
        return 1;
    return columns(body, 1, rows, parts, stream);
}
#endif

template <class T> struct add {
    OPS_BODY T operator()(T a, T b) const
    {
        return a + b;
    }
};
template <class T> struct multiply {
    OPS_BODY T operator()(T a, T b) const
    {
        return a * b;
    }
};
/* NaN stays. */
template <class T> struct larger {
    OPS_BODY T operator()(T a, T b) const
    {
        return b > a || is_nan(b) ? b : a;
    }
};
template <class T> struct smaller {
    OPS_BODY T operator()(T a, T b) const
    {
        return b < a || is_nan(b) ? b : a;
    }
};

/* The start of part `part` of a line of n. */
OPS_BODY int64_t part_start(int64_t n, int part, int parts)
{
    return parts == 1 ? n * part : n * part / parts;
}

/* Of elements first, first + lanes, ... below last, those that are added up in float before double
 * takes over. */
OPS_BODY int turns_of(int64_t first, int64_t last, int lanes)
{
    const int64_t left = (last - first + lanes - 1) / lanes;
    return (int)(left < 64 ? left : 64);
}

/* f(x) summed over elements of a line that the team's threads take in turn: float for a while, then
 * double. */
template <class F, class TEAM>
OPS_BODY double sum_of(const F &f, int64_t first, int64_t last, const TEAM &team)
{
    const int lanes = team.lanes();
    double    total = 0;
    for (int64_t j = first + team.lane(); j < last; j += 64 * lanes) {
        const int turns = turns_of(j, last, lanes);
        float     part = 0;
        OPS_UNROLL_SOME
        for (int k = 0; k < turns; k++)
            part += f(j + (int64_t)k * lanes);
        total += part;
    }
    return team.all(total, add<double>());
}

} // namespace ops
