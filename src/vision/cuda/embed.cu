/* SPDX-License-Identifier: Apache-2.0 */
/* A warp takes a row: its lanes read neighbours and fold their sums as vision/embed.h says. */
#include "vision/cuda/launch.h"

namespace
{

enum { LANES = 32, WARPS = 8 };

__device__ double fold(double sum)
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
    early_begin();
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

} // namespace

extern "C" cudaError_t cuda_launch_normalise(const void *in, enum sac_dtype dtype, int rows,
                                             int dim, float *out, cudaStream_t stream)
{
    CUDA_LAUNCH_ALONE(normalise, (rows + WARPS - 1) / WARPS, dim3(LANES, WARPS), 0, stream, in,
                      dtype, rows, dim, out);
    return cudaGetLastError();
}
