/* SPDX-License-Identifier: Apache-2.0 */
/* A thread takes a cell of a picture's map. */
#include "vision/cuda/launch.h"

namespace
{

enum { ACROSS = 32, DOWN = 8, THREADS = ACROSS * DOWN };

__global__ void __launch_bounds__(THREADS)
    scale_maps(const __grid_constant__ struct cuda_scale_maps_params p)
{
    early_begin();
    const int x = blockIdx.x * ACROSS + threadIdx.x % ACROSS,
              y = blockIdx.y * DOWN + threadIdx.x / ACROSS;
    const size_t seen = (size_t)p.looks * p.net_width * p.net_height;
    if (x >= p.width || y >= p.height)
        return;
    p.out[((size_t)blockIdx.z * p.height + y) * p.width + x] = sac_scale_number(
        &p.picture[blockIdx.z], p.shares + blockIdx.z * seen, p.net_width, p.net_height, x, y);
}

} // namespace

extern "C" cudaError_t cuda_launch_scale_maps(const struct cuda_scale_maps_params *p, int n,
                                              cudaStream_t stream)
{
    const dim3 grid((p->width + ACROSS - 1) / ACROSS, (p->height + DOWN - 1) / DOWN, n);
    CUDA_LAUNCH(scale_maps, grid, THREADS, stream, *p);
    return cudaGetLastError();
}
