/* SPDX-License-Identifier: Apache-2.0 */
/* A look for what is not finite, as engine/model/finite.c has it. Host memory is written where
 * something is found, and only then. */
#include "device/cuda/launch.h"
#include "engine/cuda/finite.h"

namespace
{

constexpr int     THREADS = 256, BYTES = sizeof(uint4);
constexpr int64_t BLOCKS_MAX = 264;

struct odd_bits {
    uint32_t            sizes, one;
    __device__ uint32_t operator()(uint32_t word) const
    {
        return ((word & sizes) + one) & ~sizes;
    }
};

template <class NUMBER>
__global__ void __launch_bounds__(THREADS)
    find_odd(const void *numbers, int64_t count, int64_t whole, struct odd_bits odd_bits,
             uint32_t *odd)
{
    early_begin();
    const int64_t step = (int64_t)gridDim.x * THREADS,
                  first = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    uint32_t found = 0;
    for (int64_t i = first; i < whole; i += step) {
        const uint4 v = ((const uint4 *)numbers)[i];
        found |= odd_bits(v.x) | odd_bits(v.y) | odd_bits(v.z) | odd_bits(v.w);
    }
    for (int64_t i = whole * (BYTES / sizeof(NUMBER)) + first; i < count; i += step)
        found |= odd_bits(((const NUMBER *)numbers)[i]);
    if (found)
        *(volatile uint32_t *)odd = 1;
}

template <class NUMBER>
void launch(const void *numbers, int64_t count, struct odd_bits bits, uint32_t *odd,
            cudaStream_t stream)
{
    const bool    fits = (uintptr_t)numbers % BYTES == 0;
    const int64_t whole = fits ? count * (int64_t)sizeof(NUMBER) / BYTES : 0;
    const int64_t blocks = ((fits ? whole : count) + THREADS) / THREADS;
    CUDA_LAUNCH(find_odd<NUMBER>, (unsigned)(blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX), THREADS,
                stream, numbers, count, whole, bits, odd);
}

} // namespace

extern "C" cudaError_t cuda_launch_find_odd(const void *numbers, int64_t count, bool half,
                                            bool nan_alone, uint32_t *odd, cudaStream_t stream)
{
    if (half)
        launch<uint16_t>(numbers, count, {0x7fff7fffu, nan_alone ? 0x03ff03ffu : 0x04000400u}, odd,
                         stream);
    else
        launch<uint32_t>(numbers, count, {0x7fffffffu, nan_alone ? 0x007fffffu : 0x00800000u}, odd,
                         stream);
    return cudaGetLastError();
}
