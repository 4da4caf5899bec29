/* SPDX-License-Identifier: Apache-2.0 */
/* Crops of frames to a tensor; see axes.cuh for who makes what. */
#include <cuda_fp16.h>

#include "vision/cuda/axes.cuh"
#include "vision/cuda/launch.h"

namespace
{

template <int N> struct crop_list {
    struct cuda_crop crop[N];
};

/* ---- stores ---- */

__device__ void put(float *out, float v)
{
    *out = v;
}
__device__ void put(__half *out, float v)
{
    *out = __float2half_rn(v);
}
__device__ void put(uint8_t *out, float v)
{
    *out = sac_byte_of(v);
}

__device__ void put_two(float *out, float a, float b)
{
    *(float2 *)out = make_float2(a, b);
}
__device__ void put_two(__half *out, float a, float b)
{
    *(__half2 *)out = __floats2half2_rn(a, b);
}
__device__ void put_two(uint8_t *out, float a, float b)
{
    *(uchar2 *)out = make_uchar2(sac_byte_of(a), sac_byte_of(b));
}

/* Two pixels of row y from x on; the second may lie past the row's end. */
template <typename T>
__device__ void store(const struct cuda_preprocess_params &p, T *image, int x, int y,
                      float v[PIXELS_X][3])
{
    const bool   both = x + 1 < p.width;
    const size_t plane = (size_t)p.width * p.height, pixel = (size_t)y * p.width + x;
    for (int k = 0; k < PIXELS_X; k++)
        for (int c = 0; c < 3; c++)
            v[k][c] = (v[k][c] - p.mean[c]) * p.scale[c];
    if (p.layout == SAC_TENSOR_LAYOUT_NCHW) {
        for (int c = 0; c < 3; c++) {
            T *out = image + c * plane + pixel;
            if (p.paired) {
                put_two(out, v[0][c], v[1][c]);
                continue;
            }
            put(out, v[0][c]);
            if (both)
                put(out + 1, v[1][c]);
        }
        return;
    }
    T *out = image + pixel * 3;
    if (p.paired) {
        put_two(out, v[0][0], v[0][1]);
        put_two(out + 2, v[0][2], v[1][0]);
        put_two(out + 4, v[1][1], v[1][2]);
        return;
    }
    for (int c = 0; c < 3; c++)
        put(out + c, v[0][c]);
    for (int c = 0; both && c < 3; c++)
        put(out + 3 + c, v[1][c]);
}

/* ---- the kernel ---- */

/* A tile of one image. */
template <bool TURNED, typename T, typename AXES>
__device__ void make_tile(const struct cuda_preprocess_params &p, const struct cuda_crop &crop,
                          AXES &axes, T *image)
{
    const int tile_x = blockIdx.x * TILE_X, tile_y = blockIdx.y * TILE_Y;
    look_up(&axes, crop.x, crop.y, tile_x - crop.left, tile_y - crop.top,
            threadIdx.y * THREADS_X + threadIdx.x);
    __syncthreads();
    const int i = threadIdx.x * PIXELS_X, x = tile_x + i;
    if (x >= p.width)
        return;
    for (int row = 0; row < PIXELS_Y; row++) {
        const int j = row * THREADS_Y + threadIdx.y, y = tile_y + j;
        float     v[PIXELS_X][3];
        if (y >= p.height)
            return;
        for (int k = 0; k < PIXELS_X; k++) {
            const int at_x = x + k - crop.left, at_y = y - crop.top;
            if (at_x >= 0 && at_x < crop.x.n && at_y >= 0 && at_y < crop.y.n) {
                sample_channels<TURNED>(&axes, crop.src, crop.x, crop.y, at_x, at_y, i + k, j,
                                        v[k]);
                if (sac_is_yuv(crop.src.format))
                    sac_colour_apply(&crop.src.colour, v[k]);
                if (p.bgr) {
                    const float r = v[k][0];
                    v[k][0] = v[k][2];
                    v[k][2] = r;
                }
            } else {
                for (int c = 0; c < 3; c++)
                    v[k][c] = p.fill[c];
            }
        }
        store(p, image, x, y, v);
    }
}

template <typename T, typename AXES, bool TURNED, int N>
__global__ void __launch_bounds__(THREADS)
    preprocess(const __grid_constant__ struct cuda_preprocess_params p,
               const __grid_constant__ struct crop_list<N> list, T *dst)
{
    early_begin();
    __shared__ AXES axes;
    make_tile<TURNED>(p, list.crop[blockIdx.z], axes,
                      dst + (size_t)blockIdx.z * 3 * p.width * p.height);
}

template <typename T, typename AXES, bool TURNED, int N>
cudaError_t launch_list(const struct cuda_preprocess_params &p, const struct cuda_crop *crops,
                        int n, T *dst, cudaStream_t stream)
{
    struct crop_list<N> list;
    for (int i = 0; i < n; i++)
        list.crop[i] = crops[i];
    const dim3 grid((p.width + TILE_X - 1) / TILE_X, (p.height + TILE_Y - 1) / TILE_Y, n);
    CUDA_LAUNCH((preprocess<T, AXES, TURNED, N>), grid, dim3(THREADS_X, THREADS_Y), stream, p, list,
                dst);
    return cudaGetLastError();
}

template <typename T, typename AXES, bool TURNED>
cudaError_t launch_on(const struct cuda_preprocess_params &p, const struct cuda_crop *crops, int n,
                      T *dst, cudaStream_t stream)
{
    return n <= CUDA_CROPS_FEW
               ? launch_list<T, AXES, TURNED, CUDA_CROPS_FEW>(p, crops, n, dst, stream)
               : launch_list<T, AXES, TURNED, CUDA_CROPS_MAX>(p, crops, n, dst, stream);
}

template <typename T>
cudaError_t launch(const struct cuda_preprocess_params &p, const struct cuda_crop *crops, int n,
                   T *dst, cudaStream_t stream)
{
    if (p.turned)
        return p.area ? launch_on<T, area_axes, true>(p, crops, n, dst, stream)
                      : launch_on<T, bilinear_axes, true>(p, crops, n, dst, stream);
    return p.area ? launch_on<T, area_axes, false>(p, crops, n, dst, stream)
                  : launch_on<T, bilinear_axes, false>(p, crops, n, dst, stream);
}

} // namespace

extern "C" cudaError_t cuda_launch_preprocess(const struct cuda_preprocess_params *params,
                                              const struct cuda_crop *crops, int n, void *dst,
                                              cudaStream_t stream)
{
    if (n <= 0)
        return cudaSuccess;
    switch (params->dtype) {
    case SAC_F32: return launch(*params, crops, n, (float *)dst, stream);
    case SAC_F16: return launch(*params, crops, n, (__half *)dst, stream);
    default: return launch(*params, crops, n, (uint8_t *)dst, stream);
    }
}
