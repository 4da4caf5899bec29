/* SPDX-License-Identifier: Apache-2.0 */
/* A block takes a comparison. Sums are whole numbers, so their order does not matter. */
#include "vision/cuda/launch.h"

namespace
{

enum { THREADS = 256, LANES = 32, WARPS = THREADS / LANES };

__device__ uint32_t fold(uint32_t sum)
{
    for (int half = LANES / 2; half > 0; half /= 2)
        sum += __shfl_xor_sync(~0u, sum, half);
    return sum;
}

__global__ void __launch_bounds__(THREADS)
    difference(const cuda_difference_job *jobs, uint32_t *sums)
{
    early_begin();
    __shared__ uint32_t        parts[WARPS];
    const cuda_difference_job &job = jobs[blockIdx.x];
    uint32_t                   sum = 0;
    for (int k = threadIdx.x; k < SAC_DIFFERENCE_SAMPLES; k += THREADS) {
        const int a = sac_difference_sample(&job.frame, k);
        if (!job.alone)
            sum += sac_difference_of(a, sac_difference_sample(&job.other, k));
        if (job.kept)
            job.kept[k] = (uint8_t)a;
    }
    sum = fold(sum);
    if (threadIdx.x % LANES == 0)
        parts[threadIdx.x / LANES] = sum;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int i = 1; i < WARPS; i++)
        sum += parts[i];
    sums[blockIdx.x] = job.alone ? (uint32_t)SAC_DIFFERENCE_MOST : sum;
}

} // namespace

extern "C" cudaError_t cuda_launch_difference(const struct cuda_difference_job *jobs, int n,
                                              uint32_t *sums, cudaStream_t stream)
{
    CUDA_LAUNCH(difference, n, THREADS, stream, jobs, sums);
    return cudaGetLastError();
}
