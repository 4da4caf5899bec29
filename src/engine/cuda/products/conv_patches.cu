// SPDX-License-Identifier: Apache-2.0
// Patches beside each other become rows: of a convolution whose stride is its window, which then is
// a matrix product, and of one of single pixels whose channels are no multiple of eight, which rows
// are. A thread copies one unit of 2 to 16 bytes.
#include "engine/cuda/products/conv_launch.h"

#include <cuda_fp16.h>

namespace conv
{

enum { PATCH_THREADS = 256 };

template <class UNIT>
__global__ void __launch_bounds__(PATCH_THREADS)
    patches_kernel(const __grid_constant__ conv_patches_params p)
{
    early_begin();
    constexpr int HALVES = sizeof(UNIT) / 2;
    const int     units = p.row / HALVES, line = p.line / HALVES,
              i = blockIdx.x * PATCH_THREADS + threadIdx.x;
    if (i >= p.count * units)
        return;
    const int patch = i / units, unit = i % units, r = unit / line, at = unit % line,
              pixels = p.out_h * p.out_w, n = patch / pixels, pixel = patch % pixels,
              oy = pixel / p.out_w, ox = pixel % p.out_w;
    UNIT v = {};
    if (r < p.kernel_h) // else it fills the row up
        v = *reinterpret_cast<const UNIT *>((const __half *)p.x + n * p.x_sample + oy * p.step_h +
                                            r * p.x_line + ox * p.step_w + at * HALVES);
    reinterpret_cast<UNIT *>(p.rows)[i] = v;
}

template <class UNIT>
static cudaError_t run_patches(const conv_patches_params &p, cudaStream_t stream)
{
    const int64_t  units = (int64_t)p.count * p.row / (int)(sizeof(UNIT) / 2);
    const unsigned grid = (unsigned)((units + PATCH_THREADS - 1) / PATCH_THREADS);
    CUDA_LAUNCH(patches_kernel<UNIT>, grid, PATCH_THREADS, stream, p);
    return cudaGetLastError();
}

} // namespace conv

// A unit divides all that an address is made of.
extern "C" cudaError_t conv_launch_patches(const conv_patches_params *p, cudaStream_t stream)
{
    using namespace conv;
    const uint64_t all = (uint64_t)(uintptr_t)p->x | (uint64_t)p->x_sample * 2 |
                         (uint64_t)p->x_line * 2 | (uint64_t)p->line * 2 | (uint64_t)p->step_h * 2 |
                         (uint64_t)p->step_w * 2;
    if (all % 16 == 0)
        return run_patches<uint4>(*p, stream);
    if (all % 8 == 0)
        return run_patches<uint2>(*p, stream);
    return all % 4 == 0 ? run_patches<uint32_t>(*p, stream) : run_patches<uint16_t>(*p, stream);
}
