/* SPDX-License-Identifier: Apache-2.0 */
/* Frames to frames. A thread makes two by two pixels and the chroma sample they share, so nothing
 * is sampled twice; see axes.cuh. */
#include "vision/cuda/axes.cuh"
#include "vision/cuda/launch.h"

namespace
{

template <bool TURNED>
__device__ void write_pixel(const struct cuda_convert_params &p, int x, int y,
                            const float channel[3])
{
    uint8_t  *row = p.plane[0] + (size_t)y * p.pitch[0];
    const int step = sac_rgb_step(p.recode.to);
    if (step) {
        row += step * x;
        for (int c = 0; c < 3; c++)
            row[sac_rgb_place(p.recode.to, c)] = sac_byte_of(channel[c]);
        if (step == 4)
            row[3] = TURNED && p.keeps_alpha ? sac_row_of(&p.src, true, 0, x, y)[3] : 255;
    } else if (p.recode.to == SAC_PIXEL_P010) {
        ((uint16_t *)row)[x] = sac_ten_bits_of(channel[0]);
    } else {
        row[x] = sac_byte_of(channel[0]);
    }
}

__device__ void write_chroma(const struct cuda_convert_params &p, int cx, int cy, const float uv[2])
{
    uint8_t *row = p.plane[1] + (size_t)cy * p.pitch[1];
    if (p.recode.to == SAC_PIXEL_P010) {
        ((ushort2 *)row)[cx] = make_ushort2(sac_ten_bits_of(uv[0]), sac_ten_bits_of(uv[1]));
    } else if (p.recode.to == SAC_PIXEL_I420) {
        row[cx] = sac_byte_of(uv[0]);
        p.plane[2][(size_t)cy * p.pitch[2] + cx] = sac_byte_of(uv[1]);
    } else {
        ((uchar2 *)row)[cx] = make_uchar2(sac_byte_of(uv[0]), sac_byte_of(uv[1]));
    }
}

/* Unlike preprocess, a thread's two rows are neighbours: they share chroma. */
template <typename AXES, bool TURNED>
__global__ void __launch_bounds__(THREADS)
    convert(const __grid_constant__ struct cuda_convert_params p)
{
    early_begin();
    __shared__ AXES axes;
    const int       tile_x = blockIdx.x * TILE_X, tile_y = blockIdx.y * TILE_Y;
    look_up(&axes, p.x, p.y, tile_x, tile_y, threadIdx.y * THREADS_X + threadIdx.x);
    __syncthreads();
    const int i = threadIdx.x * 2, j = threadIdx.y * 2, x = tile_x + i, y = tile_y + j;
    if (x >= p.x.n || y >= p.y.n)
        return;
    float quad[2][2][3];
    for (int r = 0; r < 2; r++)
        for (int k = 0; k < 2; k++) {
            if (x + k < p.x.n && y + r < p.y.n) {
                sample_channels<TURNED>(&axes, p.src, p.x, p.y, x + k, y + r, i + k, j + r,
                                        quad[r][k]);
                sac_recode_apply(&p.recode, quad[r][k]);
                write_pixel<TURNED>(p, x + k, y + r, quad[r][k]);
            } else { /* past the edge: the last pixel again */
                for (int c = 0; c < 3; c++)
                    quad[r][k][c] = y + r < p.y.n ? quad[r][0][c] : quad[0][k][c];
            }
        }
    if (!sac_is_yuv(p.recode.to))
        return;
    float uv[2];
    for (int c = 0; c < 2; c++)
        uv[c] =
            (quad[0][0][1 + c] + quad[0][1][1 + c] + quad[1][0][1 + c] + quad[1][1][1 + c]) * 0.25f;
    write_chroma(p, x / 2, y / 2, uv);
}

} // namespace

extern "C" cudaError_t cuda_launch_convert(const struct cuda_convert_params *p, cudaStream_t stream)
{
    const dim3 grid((p->x.n + TILE_X - 1) / TILE_X, (p->y.n + TILE_Y - 1) / TILE_Y);
    const dim3 block(THREADS_X, THREADS_Y);
    const bool area = p->x.area || p->y.area;
    if (p->src.turned && area)
        CUDA_LAUNCH((convert<area_axes, true>), grid, block, stream, *p);
    else if (p->src.turned)
        CUDA_LAUNCH((convert<bilinear_axes, true>), grid, block, stream, *p);
    else if (area)
        CUDA_LAUNCH((convert<area_axes, false>), grid, block, stream, *p);
    else
        CUDA_LAUNCH((convert<bilinear_axes, false>), grid, block, stream, *p);
    return cudaGetLastError();
}
