// SPDX-License-Identifier: Apache-2.0
// Convolutions of each channel by itself. A thread has a pack of channels and a few neighbouring
// pixels of a row, so that columns of the input that their windows share are loaded once.
#include "engine/cuda/products/conv_numbers.cuh"

namespace conv
{

enum { DEPTHWISE_THREADS = 128 };

// KERNEL and STRIDE 0: any, from the parameters, with one pixel per thread.
template <class T, int WIDTH, int KERNEL, int STRIDE, int PIXELS>
__global__ void __launch_bounds__(DEPTHWISE_THREADS)
    depthwise_kernel(const __grid_constant__ conv_depthwise_params p)
{
    const int     packs = p.c / WIDTH, groups = (p.out_w + PIXELS - 1) / PIXELS;
    const int64_t index = (int64_t)blockIdx.x * DEPTHWISE_THREADS + threadIdx.x;
    if (index >= (int64_t)p.n * p.out_h * groups * packs)
        return;
    const int c = (int)(index % packs) * WIDTH;
    int64_t   rest = index / packs;
    const int ox = (int)(rest % groups) * PIXELS;
    rest /= groups;
    const int oy = (int)(rest % p.out_h), n = (int)(rest / p.out_h);
    const int kernel_h = KERNEL ? KERNEL : p.kernel_h, kernel_w = KERNEL ? KERNEL : p.kernel_w;
    const int stride_h = STRIDE ? STRIDE : p.stride_h, stride_w = STRIDE ? STRIDE : p.stride_w;
    const int dilation_h = KERNEL ? 1 : p.dilation_h, dilation_w = KERNEL ? 1 : p.dilation_w;
    const T  *x = (const T *)p.x + n * p.x_sample + c, *w = (const T *)p.w + c;
    float     sum[PIXELS][WIDTH] = {};
    for (int r = 0; r < kernel_h; r++) {
        const int y = oy * stride_h + r * dilation_h - p.pad_top;
        if (y < 0 || y >= p.in_h)
            continue;
        const T *row = x + (int64_t)y * p.in_w * p.x_pixel;
        if (KERNEL) {
            float taps[KERNEL ? KERNEL : 1][WIDTH];
#pragma unroll
            for (int s = 0; s < KERNEL; s++)
                load<T, WIDTH>(w + (int64_t)(r * KERNEL + s) * p.c, taps[s]);
#pragma unroll
            for (int column = 0; column < (PIXELS - 1) * STRIDE + KERNEL; column++) {
                const int at = ox * STRIDE + column - p.pad_left;
                float     v[WIDTH] = {};
                if (at >= 0 && at < p.in_w)
                    load<T, WIDTH>(row + (int64_t)at * p.x_pixel, v);
#pragma unroll
                for (int i = 0; i < PIXELS; i++) {
                    const int s = column - i * STRIDE;
                    if (s >= 0 && s < KERNEL)
#pragma unroll
                        for (int k = 0; k < WIDTH; k++)
                            sum[i][k] += v[k] * taps[s][k];
                }
            }
        } else {
            for (int s = 0; s < kernel_w; s++) {
                const int at = ox * stride_w + s * dilation_w - p.pad_left;
                float     v[WIDTH], tap[WIDTH];
                if (at < 0 || at >= p.in_w)
                    continue;
                load<T, WIDTH>(row + (int64_t)at * p.x_pixel, v);
                load<T, WIDTH>(w + (int64_t)(r * kernel_w + s) * p.c, tap);
#pragma unroll
                for (int k = 0; k < WIDTH; k++)
                    sum[0][k] += v[k] * tap[k];
            }
        }
    }
#pragma unroll
    for (int i = 0; i < PIXELS; i++) {
        if (ox + i >= p.out_w)
            break;
        const int64_t pixel = (int64_t)oy * p.out_w + ox + i;
        finish<T, WIDTH>(p.finish, c,
                         n * p.finish.residual_sample + pixel * p.finish.residual_pixel, sum[i]);
        store<T, WIDTH>((T *)p.y + n * p.y_sample + pixel * p.y_pixel + c, sum[i]);
    }
}

template <class T, int WIDTH, int KERNEL, int STRIDE, int PIXELS>
static cudaError_t run(const conv_depthwise_params &p, cudaStream_t stream)
{
    const int64_t threads =
        (int64_t)p.n * p.out_h * ((p.out_w + PIXELS - 1) / PIXELS) * (p.c / WIDTH);
    const int64_t blocks = (threads + DEPTHWISE_THREADS - 1) / DEPTHWISE_THREADS;
    depthwise_kernel<T, WIDTH, KERNEL, STRIDE, PIXELS>
        <<<(unsigned)blocks, DEPTHWISE_THREADS, 0, stream>>>(p);
    return cudaGetLastError();
}

static bool depthwise_aligned(const void *p, int64_t pixel, int64_t sample, int64_t width)
{
    return ((uintptr_t)p & 15) == 0 && pixel % width == 0 && sample % width == 0;
}

template <class T>
static cudaError_t launch_depthwise(const conv_depthwise_params &p, cudaStream_t stream)
{
    constexpr int      W = pack<T>::width;
    const conv_finish &f = p.finish;
    const bool         wide =
        p.c % W == 0 && depthwise_aligned(p.x, p.x_pixel, p.x_sample, W) &&
        depthwise_aligned(p.y, p.y_pixel, p.y_sample, W) && depthwise_aligned(p.w, 0, 0, W) &&
        (!f.residual || depthwise_aligned(f.residual, f.residual_pixel, f.residual_sample, W)) &&
        (!f.bias || depthwise_aligned(f.bias, 0, 0, W));
    const bool plain = p.kernel_h == p.kernel_w && p.stride_h == p.stride_w && p.dilation_h == 1 &&
                       p.dilation_w == 1;
    if (!wide)
        return run<T, 1, 0, 0, 1>(p, stream);
    if (plain && p.kernel_h == 3 && p.stride_h == 1)
        return run<T, W, 3, 1, 4>(p, stream);
    if (plain && p.kernel_h == 3 && p.stride_h == 2)
        return run<T, W, 3, 2, 2>(p, stream);
    if (plain && p.kernel_h == 5 && p.stride_h == 1)
        return run<T, W, 5, 1, 4>(p, stream);
    if (plain && p.kernel_h == 5 && p.stride_h == 2)
        return run<T, W, 5, 2, 2>(p, stream);
    return run<T, W, 0, 0, 1>(p, stream);
}

} // namespace conv

extern "C" cudaError_t conv_launch_depthwise(const conv_depthwise_params *p, cudaStream_t stream)
{
    return p->half ? conv::launch_depthwise<__half>(*p, stream)
                   : conv::launch_depthwise<float>(*p, stream);
}
