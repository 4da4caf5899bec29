/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors from one layout of memory into another: between channels first and last, which is a
 * transposed matrix for each sample, between float32 and float16, or both in one pass. */
#include <cuda_fp16.h>

#include "device/cuda/launch.h"
#include "engine/cuda/relayout.h"

namespace
{

template <typename To, typename From> __device__ To crossed(From v)
{
    return v;
}
template <> __device__ __half crossed<__half, float>(float v)
{
    return __float2half_rn(v);
}
template <> __device__ float crossed<float, __half>(__half v)
{
    return __half2float(v);
}

enum { THREADS = 256, FEW = 8 /* rows or columns for which a tile would be mostly empty */ };

template <typename T> struct alignas(4 * sizeof(T)) four {
    T v[4];
};

/* Where both sides lie alike. fours: numbers that go by four, when both addresses allow it. */
template <typename To, typename From>
__global__ void __launch_bounds__(THREADS)
    straight(To *dst, const From *src, int64_t count, int64_t fours)
{
    early_begin();
    const int64_t step = (int64_t)gridDim.x * THREADS,
                  first = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    for (int64_t i = first; i < fours; i += step) {
        const four<From> in = reinterpret_cast<const four<From> *>(src)[i];
        four<To>         out;
        for (int k = 0; k < 4; k++)
            out.v[k] = crossed<To, From>(in.v[k]);
        reinterpret_cast<four<To> *>(dst)[i] = out;
    }
    for (int64_t i = 4 * fours + first; i < count; i += step)
        dst[i] = crossed<To, From>(src[i]);
}

/* src [rows][columns] to dst [columns][rows], of each sample (blockIdx.y). A tile is read along its
 * rows and written along its columns; the odd width keeps the banks of shared memory apart. */
template <typename To, typename From, int TILE>
__global__ void __launch_bounds__(THREADS)
    turned(To *dst, const From *src, int64_t rows, int64_t columns, int64_t tiles_across,
           int64_t samples)
{
    early_begin();
    __shared__ To tile[TILE][TILE + 1];
    const int     x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    const int64_t row = blockIdx.x / tiles_across * TILE, column = blockIdx.x % tiles_across * TILE;
    for (int64_t n = blockIdx.y; n < samples; n += gridDim.y) {
        const From *in = src + n * rows * columns;
        To         *out = dst + n * rows * columns;
        for (int k = y; k < TILE; k += THREADS / TILE)
            if (row + k < rows && column + x < columns)
                tile[k][x] = crossed<To, From>(in[(row + k) * columns + column + x]);
        __syncthreads();
        for (int k = y; k < TILE; k += THREADS / TILE)
            if (column + k < columns && row + x < rows)
                out[(column + k) * rows + row + x] = tile[x][k];
        __syncthreads();
    }
}

/* The same of columns that go by four, through tiles of any shape: TILE_NUMBERS of them at
 * most. In shared memory a column of the source is a row of odd length. */
enum { TILE_NUMBERS = 4096, TILE_ROOM = TILE_NUMBERS + 256, TILE_SIDE = 256, LOADS = 4 };
template <typename To, typename From>
__global__ void __launch_bounds__(THREADS)
    turned_tiles(To *dst, const From *src, int64_t rows, int64_t columns, int high, int wide,
                 int64_t tiles_across, int64_t samples, bool fours_down)
{
    early_begin();
    __shared__ To tile[TILE_ROOM];
    const int64_t row = blockIdx.x / tiles_across * high, column = blockIdx.x % tiles_across * wide;
    const unsigned h = (unsigned)(rows - row < high ? rows - row : high),
                   w = (unsigned)(columns - column < wide ? columns - column : wide);
    const unsigned across = w / 4, pitch = (unsigned)high | 1;
    for (int64_t n = blockIdx.y; n < samples; n += gridDim.y) {
        const From *in = src + (n * rows + row) * columns + column;
        To         *out = dst + (n * columns + column) * rows + row;
        for (unsigned first = threadIdx.x; first < h * across; first += LOADS * THREADS) {
            four<From> v[LOADS];
#pragma unroll
            for (unsigned t = 0; t < LOADS; t++) {
                const unsigned i = first + t * THREADS, y = i / across, x = i % across * 4;
                if (i < h * across)
                    v[t] = *reinterpret_cast<const four<From> *>(in + y * columns + x);
            }
#pragma unroll
            for (unsigned t = 0; t < LOADS; t++) {
                const unsigned i = first + t * THREADS, y = i / across, x = i % across * 4;
                for (unsigned k = 0; k < 4 && i < h * across; k++)
                    tile[(x + k) * pitch + y] = crossed<To, From>(v[t].v[k]);
            }
        }
        __syncthreads();
        if (fours_down)
            for (unsigned i = threadIdx.x; i < w * (h / 4); i += THREADS) {
                const unsigned x = i / (h / 4), y = i % (h / 4) * 4;
                four<To>       v;
                for (unsigned k = 0; k < 4; k++)
                    v.v[k] = tile[x * pitch + y + k];
                *reinterpret_cast<four<To> *>(out + x * rows + y) = v;
            }
        else
            for (unsigned i = threadIdx.x; i < w * h; i += THREADS)
                out[i / h * rows + i % h] = tile[i / h * pitch + i % h];
        __syncthreads();
    }
}

/* The side of tiles that share n evenly, none longer than most; a multiple of four. */
int even_side(int64_t n, int64_t most)
{
    const int64_t tiles = (n + most - 1) / most, each = (n + tiles - 1) / tiles;
    return (int)((each + 3) / 4 * 4);
}

template <typename To, typename From>
void launch_tiles(To *dst, const From *src, const struct cuda_relayout_params *p, int samples,
                  cudaStream_t stream)
{
    constexpr int SQUARE = 64;
    const bool    flat = p->rows < SQUARE;
    const int     side = even_side(flat ? p->rows : p->columns, SQUARE);
    int           most = SQUARE;
    if (side < SQUARE)
        most = TILE_NUMBERS / side / 4 * 4;
    if (most > TILE_SIDE)
        most = TILE_SIDE;
    const int     other = even_side(flat ? p->columns : p->rows, most);
    const int     high = flat ? side : other, wide = flat ? other : side;
    const int64_t across = (p->columns + wide - 1) / wide,
                  tiles = across * ((p->rows + high - 1) / high);
    CUDA_LAUNCH_ALONE((turned_tiles<To, From>), dim3((unsigned)tiles, samples), THREADS, 0, stream,
                      dst, src, p->rows, p->columns, high, wide, across, p->samples,
                      p->rows % 4 == 0 && (uintptr_t)dst % sizeof(four<To>) == 0);
}

/* The same of few rows or few columns (an image's channels): a thread takes one of the many. */
template <typename To, typename From>
__global__ void __launch_bounds__(THREADS)
    turned_few(To *dst, const From *src, int64_t rows, int64_t columns, int64_t samples)
{
    early_begin();
    const int64_t many = rows > columns ? rows : columns, few = rows > columns ? columns : rows;
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= many)
        return;
    for (int64_t n = blockIdx.y; n < samples; n += gridDim.y) {
        const From *in = src + n * rows * columns;
        To         *out = dst + n * rows * columns;
        for (int64_t k = 0; k < few; k++) {
            const int64_t at_few = i * few + k, at_many = k * many + i;
            if (rows > columns)
                out[at_many] = crossed<To, From>(in[at_few]);
            else
                out[at_few] = crossed<To, From>(in[at_many]);
        }
    }
}

/* The same of ROWS rows whose columns go by four: an image's planes into its pixels. */
template <typename To, typename From, int ROWS>
__global__ void __launch_bounds__(THREADS)
    turned_fours(To *dst, const From *src, int64_t columns, int64_t samples)
{
    early_begin();
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= columns / 4)
        return;
    for (int64_t n = blockIdx.y; n < samples; n += gridDim.y) {
        const four<From> *in = reinterpret_cast<const four<From> *>(src + n * ROWS * columns) + i;
        four<To> *out = reinterpret_cast<four<To> *>(dst + n * ROWS * columns) + i * ROWS, to[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const four<From> v = in[r * (columns / 4)];
#pragma unroll
            for (int k = 0; k < 4; k++)
                to[(k * ROWS + r) / 4].v[(k * ROWS + r) % 4] = crossed<To, From>(v.v[k]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            out[r] = to[r];
    }
}

template <typename To, typename From>
cudaError_t launch(const struct cuda_relayout_params *p, cudaStream_t stream)
{
    To           *dst = (To *)p->dst;
    const From   *src = (const From *)p->src;
    const int64_t count = p->samples * p->rows * p->columns;
    const int     samples = (int)(p->samples < 65535 ? p->samples : 65535);
    const bool    fit =
        (uintptr_t)dst % sizeof(four<To>) == 0 && (uintptr_t)src % sizeof(four<From>) == 0;
    if (!p->turn) {
        const int64_t fours = fit ? count / 4 : 0, work = fit ? fours + 3 : count;
        const int64_t blocks = (work + THREADS - 1) / THREADS;
        CUDA_LAUNCH_ALONE((straight<To, From>), (unsigned)(blocks < 8192 ? blocks : 8192), THREADS,
                          0, stream, dst, src, count, fours);
    } else if ((p->rows == 3 || p->rows == 4) && p->columns % 4 == 0 && fit) {
        const dim3 grid((unsigned)((p->columns / 4 + THREADS - 1) / THREADS), samples);
        if (p->rows == 3)
            CUDA_LAUNCH_ALONE((turned_fours<To, From, 3>), grid, THREADS, 0, stream, dst, src,
                              p->columns, p->samples);
        else
            CUDA_LAUNCH_ALONE((turned_fours<To, From, 4>), grid, THREADS, 0, stream, dst, src,
                              p->columns, p->samples);
    } else if (p->rows <= FEW || p->columns <= FEW) {
        const int64_t many = p->rows > p->columns ? p->rows : p->columns;
        const dim3    grid((unsigned)((many + THREADS - 1) / THREADS), samples);
        CUDA_LAUNCH_ALONE((turned_few<To, From>), grid, THREADS, 0, stream, dst, src, p->rows,
                          p->columns, p->samples);
    } else if (sizeof(From) + sizeof(To) <= 8 && p->columns % 4 == 0 &&
               (uintptr_t)src % sizeof(four<From>) == 0) {
        if constexpr (sizeof(From) + sizeof(To) <= 8)
            launch_tiles(dst, src, p, samples, stream);
    } else if (sizeof(From) + sizeof(To) <= 8 && p->rows > 32 && p->columns > 32) {
        const int64_t across = (p->columns + 63) / 64, tiles = across * ((p->rows + 63) / 64);
        CUDA_LAUNCH_ALONE((turned<To, From, 64>), dim3((unsigned)tiles, samples), THREADS, 0,
                          stream, dst, src, p->rows, p->columns, across, p->samples);
    } else {
        const int64_t across = (p->columns + 31) / 32, tiles = across * ((p->rows + 31) / 32);
        CUDA_LAUNCH_ALONE((turned<To, From, 32>), dim3((unsigned)tiles, samples), THREADS, 0,
                          stream, dst, src, p->rows, p->columns, across, p->samples);
    }
    return cudaGetLastError();
}

} // namespace

extern "C" cudaError_t cuda_launch_relayout(const struct cuda_relayout_params *p,
                                            cudaStream_t                       stream)
{
    if (p->samples * p->rows * p->columns == 0)
        return cudaSuccess;
    switch (p->crossing) {
    case CUDA_CROSS_1: return launch<uint8_t, uint8_t>(p, stream);
    case CUDA_CROSS_2: return launch<uint16_t, uint16_t>(p, stream);
    case CUDA_CROSS_4: return launch<uint32_t, uint32_t>(p, stream);
    case CUDA_CROSS_8: return launch<uint64_t, uint64_t>(p, stream);
    case CUDA_CROSS_TO_HALF: return launch<__half, float>(p, stream);
    case CUDA_CROSS_FROM_HALF: return launch<float, __half>(p, stream);
    }
    return cudaErrorInvalidValue;
}
