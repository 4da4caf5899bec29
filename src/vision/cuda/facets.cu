/* SPDX-License-Identifier: Apache-2.0 */
/* A thread takes a pixel of a facet, a cell of the network's map, or a cell of an eye's. */
#include "vision/cuda/launch.h"

namespace
{

enum { ACROSS = 32, DOWN = 8, THREADS = ACROSS * DOWN };

/* ---- pictures ---- */

__global__ void __launch_bounds__(THREADS)
    facets(const __grid_constant__ struct cuda_facets_params p)
{
    early_begin();
    const struct cuda_facet &f = p.facet[blockIdx.z];
    const int                x = blockIdx.x * ACROSS + threadIdx.x % ACROSS,
              y = blockIdx.y * DOWN + threadIdx.x / ACROSS;
    if (x >= f.width || y >= f.height)
        return;
    const struct sac_facet_place place = f.places[(size_t)y * f.width + x];
    uint8_t                      v[3] = {0, 0, 0};
    if (place.x >= 0) {
        const struct sac_facet_pixel across = sac_facet_pixel_of(place.x, f.eye_width),
                                     down = sac_facet_pixel_of(place.y, f.eye_height);
        sac_facet_sample(f.eye + (size_t)down.first * f.eye_pitch,
                         f.eye + (size_t)down.next * f.eye_pitch, across, down.part, v);
    }
    uint8_t *out = f.out + (size_t)y * f.out_pitch + 3 * (size_t)x;
    for (int c = 0; c < 3; c++)
        out[c] = v[c];
}

/* ---- maps ---- */

__global__ void __launch_bounds__(THREADS)
    facet_shares(const __grid_constant__ struct cuda_facet_shares_params p)
{
    early_begin();
    const int cells = p.spec.width * p.spec.height, cell = blockIdx.x * THREADS + threadIdx.x;
    const void *const tensors[1] = {p.numbers};
    if (cell < cells)
        p.out[(size_t)blockIdx.y * cells + cell] =
            sac_facet_share(&p.spec, tensors, blockIdx.y, cell);
}

__global__ void __launch_bounds__(THREADS)
    facet_maps(const __grid_constant__ struct cuda_facet_maps_params p)
{
    early_begin();
    const int cells = p.width * p.height, cell = blockIdx.x * THREADS + threadIdx.x;
    if (cell >= cells)
        return;
    const size_t                net = (size_t)p.net_width * p.net_height;
    const struct sac_facet_cell taps = p.cells[cell];
    p.out[(size_t)blockIdx.y * cells + cell] =
        sac_facet_number(&taps, p.shares + blockIdx.y * p.facets * net, p.net_width, p.net_height);
}

} // namespace

extern "C" cudaError_t cuda_launch_facets(const struct cuda_facets_params *p, int n,
                                          cudaStream_t stream)
{
    const dim3 grid((p->width_max + ACROSS - 1) / ACROSS, (p->height_max + DOWN - 1) / DOWN, n);
    CUDA_LAUNCH(facets, grid, THREADS, stream, *p);
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_facet_shares(const struct cuda_facet_shares_params *p, int n,
                                                cudaStream_t stream)
{
    const dim3 grid((p->spec.width * p->spec.height + THREADS - 1) / THREADS, n);
    CUDA_LAUNCH(facet_shares, grid, THREADS, stream, *p);
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_facet_maps(const struct cuda_facet_maps_params *p, int n,
                                              cudaStream_t stream)
{
    const dim3 grid((p->width * p->height + THREADS - 1) / THREADS, n);
    CUDA_LAUNCH(facet_maps, grid, THREADS, stream, *p);
    return cudaGetLastError();
}
