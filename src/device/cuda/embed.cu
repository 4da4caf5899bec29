/* SPDX-License-Identifier: Apache-2.0 */
/* A warp takes a row, or a pair of rows: its lanes read neighbours and fold their sums as
 * device/embed.h says. */
#include "device/cuda/launch.h"

namespace
{

enum {
    LANES = 32,
    WARPS = 8,
    PAIRS = 4 /* rows of b that a warp compares with its row of a at once */
};

template <typename T> __device__ T fold(T sum)
{
    for (int half = LANES / 2; half > 0; half /= 2)
        sum += __shfl_down_sync(~0u, sum, half);
    return __shfl_sync(~0u, sum, 0);
}

__device__ float number(const void *in, enum sac_dtype dtype, size_t at)
{
    return dtype == SAC_F16 ? sac_float_of_half(((const uint16_t *)in)[at])
                            : ((const float *)in)[at];
}

__global__ void __launch_bounds__(LANES *WARPS)
    normalise(const void *in, enum sac_dtype dtype, int rows, int dim, float *out)
{
    const int row = blockIdx.x * WARPS + threadIdx.y;
    if (row >= rows)
        return;
    const size_t at = (size_t)row * dim;
    double       sum = 0;
    for (int i = threadIdx.x; i < dim; i += LANES) {
        const float v = number(in, dtype, at + i);
        sum += (double)v * v;
    }
    sum = fold(sum);
    const float scale = sum > 0 && sum < (double)INFINITY ? (float)(1.0 / sqrt(sum)) : 0.0f;
    for (int i = threadIdx.x; i < dim; i += LANES) {
        const float v = number(in, dtype, at + i);
        out[at + i] = scale > 0 ? v * scale : 0.0f;
    }
}

__global__ void __launch_bounds__(LANES *WARPS)
    distances(const float *a, int n, const float *b, int m, int dim, float *out)
{
    const int i = blockIdx.y * WARPS + threadIdx.y, j = blockIdx.x * PAIRS;
    if (i >= n)
        return;
    const float *row = a + (size_t)i * dim;
    float        sum[PAIRS] = {0};
    for (int k = threadIdx.x; k < dim; k += LANES) {
        const float v = row[k];
        for (int p = 0; p < PAIRS; p++)
            if (j + p < m)
                sum[p] += v * b[(size_t)(j + p) * dim + k];
    }
    for (int p = 0; p < PAIRS; p++) {
        const float product = fold(sum[p]);
        if (threadIdx.x == 0 && j + p < m)
            out[(size_t)i * m + j + p] = 1.0f - product;
    }
}

} // namespace

extern "C" cudaError_t cuda_launch_normalise(const void *in, enum sac_dtype dtype, int rows,
                                             int dim, float *out, cudaStream_t stream)
{
    normalise<<<(rows + WARPS - 1) / WARPS, dim3(LANES, WARPS), 0, stream>>>(in, dtype, rows, dim,
                                                                             out);
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_distances(const float *a, int n, const float *b, int m, int dim,
                                             float *out, cudaStream_t stream)
{
    const dim3 grid((m + PAIRS - 1) / PAIRS, (n + WARPS - 1) / WARPS);
    distances<<<grid, dim3(LANES, WARPS), 0, stream>>>(a, n, b, m, dim, out);
    return cudaGetLastError();
}
