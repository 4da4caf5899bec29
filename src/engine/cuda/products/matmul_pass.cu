// SPDX-License-Identifier: Apache-2.0
// The pass behind a product, for what cuBLASLt's epilogue does not do.
#include "engine/cuda/products/matmul_pass.h"

#include "engine/cuda/products/conv_numbers.cuh"

namespace
{

constexpr int     THREADS = 256;
constexpr int64_t BLOCKS_MAX = 132 * 32;

template <class T, int WIDTH>
__global__ void __launch_bounds__(THREADS) pass_kernel(const __grid_constant__ matmul_pass_params p)
{
    early_begin();
    const int64_t count = p.count / WIDTH, step = (int64_t)gridDim.x * THREADS;
    int64_t       i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t columns = p.bias || p.ending ? p.columns : 1, further = step * WIDTH % columns;
    int64_t       column = i * WIDTH % columns; /* a division per turn took longer than its loads */
    for (; i < count; i += step) {
        T    *y = (T *)p.y + i * WIDTH;
        float v[WIDTH], other[WIDTH], factor[WIDTH];
        // Not through the read-only path, because this kernel also writes it.
        if (WIDTH == 1) {
            v[0] = (float)y[0];
        } else {
            conv::pack<T> k;
            k.bits = *reinterpret_cast<const uint4 *>(y);
            k.get(v);
        }
        if (p.bias) {
            conv::load<T, WIDTH>((const T *)p.bias + column, other);
#pragma unroll
            for (int j = 0; j < WIDTH; j++)
                v[j] += other[j];
        }
        if (sizeof(T) == 2 && p.act != SAC_ACT_NONE) {
            // A sum below float16's range arrived as -infinity, which times a gate of 0 is no
            // number.
#pragma unroll
            for (int j = 0; j < WIDTH; j++)
                v[j] = v[j] < -65504.0f ? -65504.0f : v[j];
        }
        conv::activate_all(p.act, p.alpha, p.beta, v);
#pragma unroll
        for (int j = 0; j < WIDTH; j++)
            factor[j] = p.ending ? __ldg(p.ending + SAC_ENDING_RESIDUAL * columns + column + j) : 1;
        if (p.ending)
#pragma unroll
            for (int j = 0; j < WIDTH; j++)
                v[j] = fmaf(v[j], __ldg(p.ending + SAC_ENDING_SCALE * columns + column + j),
                            __ldg(p.ending + SAC_ENDING_SHIFT * columns + column + j));
        if (p.residual) {
            conv::load<T, WIDTH>((const T *)p.residual + i * WIDTH, other);
#pragma unroll
            for (int j = 0; j < WIDTH; j++)
                v[j] = fmaf(factor[j], other[j], v[j]);
        }
        conv::store<T, WIDTH>(y, v);
        column += further;
        column -= column < columns ? 0 : columns;
    }
}

bool is_aligned(const void *p)
{
    return ((uintptr_t)p & 15) == 0; // NULL too
}

template <class T> cudaError_t launch(const matmul_pass_params &p, cudaStream_t stream)
{
    const int  width = conv::pack<T>::width;
    const bool wide = p.count % width == 0 && ((!p.bias && !p.ending) || p.columns % width == 0) &&
                      is_aligned(p.y) && is_aligned(p.residual) && is_aligned(p.bias);
    const int64_t  packs = wide ? p.count / width : p.count;
    const int64_t  blocks = (packs + THREADS - 1) / THREADS;
    const unsigned grid = (unsigned)(blocks > BLOCKS_MAX ? BLOCKS_MAX : blocks < 1 ? 1 : blocks);
    if (wide)
        CUDA_LAUNCH_ALONE((pass_kernel<T, conv::pack<T>::width>), grid, THREADS, 0, stream, p);
    else
        CUDA_LAUNCH_ALONE((pass_kernel<T, 1>), grid, THREADS, 0, stream, p);
    return cudaGetLastError();
}

} // namespace

extern "C" cudaError_t matmul_launch_pass(const matmul_pass_params *p, cudaStream_t stream)
{
    return p->half ? launch<__half>(*p, stream) : launch<float>(*p, stream);
}
