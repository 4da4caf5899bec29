// SPDX-License-Identifier: Apache-2.0
// Any convolution, with one thread per output element. The fallback when no faster kernel applies.
#include "engine/cuda/products/conv_numbers.cuh"

namespace conv
{

enum { DIRECT_THREADS = 256 };

struct place {
    int64_t n, pixel; // of the output
    int     at[3], k;
};

__device__ __forceinline__ place place_of(const conv_direct_params &p, int64_t i)
{
    place   o;
    int64_t rest = i / p.out_c;
    o.k = (int)(i - rest * p.out_c);
    const int64_t pixels = (int64_t)p.out[0] * p.out[1] * p.out[2];
    o.n = rest / pixels;
    o.pixel = rest - o.n * pixels;
    o.at[2] = (int)(o.pixel % p.out[2]);
    o.at[1] = (int)(o.pixel / p.out[2] % p.out[1]);
    o.at[0] = (int)(o.pixel / p.out[2] / p.out[1]);
    return o;
}

// The input index of a tap along one dimension; -1: outside, or between pixels when transposed.
__device__ __forceinline__ int source(const conv_direct_params &p, int d, int at, int tap)
{
    if (!p.transposed) {
        const int from = at * p.stride[d] + tap * p.dilation[d] - p.pad[d];
        return from >= 0 && from < p.in[d] ? from : -1;
    }
    const int from = at + p.pad[d] - tap * p.dilation[d];
    return from >= 0 && from % p.stride[d] == 0 && from / p.stride[d] < p.in[d] ? from / p.stride[d]
                                                                                : -1;
}

template <class T>
__global__ void __launch_bounds__(DIRECT_THREADS)
    direct_kernel(const __grid_constant__ conv_direct_params p)
{
    early_begin();
    const int64_t i = (int64_t)blockIdx.x * DIRECT_THREADS + threadIdx.x;
    if (i >= p.n * p.out[0] * p.out[1] * p.out[2] * p.out_c)
        return;
    const place o = place_of(p, i);
    const int   group_k = p.out_c / p.groups, group_c = p.in_c / p.groups, group = o.k / group_k;
    const int   width = p.transposed ? group_k : p.out_c; // numbers side by side in w
    const int   rows = p.transposed ? p.in_c : group_c;   // of them for a tap
    const int   first = p.transposed ? group * group_c : 0,
              column = p.transposed ? o.k % group_k : o.k;
    const T *x = (const T *)p.x + o.n * p.x_sample + group * group_c, *w = (const T *)p.w + column;
    float    sum[1] = {0};
    for (int z = 0; z < p.kernel[0]; z++)
        for (int r = 0; r < p.kernel[1]; r++)
            for (int s = 0; s < p.kernel[2]; s++) {
                const int a = source(p, 0, o.at[0], z), b = source(p, 1, o.at[1], r),
                          c = source(p, 2, o.at[2], s);
                if (a < 0 || b < 0 || c < 0)
                    continue;
                const T *from = x + (((int64_t)a * p.in[1] + b) * p.in[2] + c) * p.x_pixel;
                const T *tap =
                    w + ((((int64_t)z * p.kernel[1] + r) * p.kernel[2] + s) * rows + first) * width;
                for (int k = 0; k < group_c; k++)
                    sum[0] += (float)from[k] * (float)tap[(int64_t)k * width];
            }
    finish<T, 1>(p.finish, o.k, o.n * p.finish.residual_sample + o.pixel * p.finish.residual_pixel,
                 sum);
    ((T *)p.y)[o.n * p.y_sample + o.pixel * p.y_pixel + o.k] = (T)sum[0];
}

} // namespace conv

extern "C" cudaError_t conv_launch_direct(const conv_direct_params *p, cudaStream_t stream)
{
    const int64_t  count = p->n * p->out[0] * p->out[1] * p->out[2] * p->out_c;
    const unsigned blocks = (unsigned)((count + conv::DIRECT_THREADS - 1) / conv::DIRECT_THREADS);
    if (p->half)
        CUDA_LAUNCH_ALONE(conv::direct_kernel<__half>, blocks, conv::DIRECT_THREADS, 0, stream, *p);
    else
        CUDA_LAUNCH_ALONE(conv::direct_kernel<float>, blocks, conv::DIRECT_THREADS, 0, stream, *p);
    return cudaGetLastError();
}
