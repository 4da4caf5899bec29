// SPDX-License-Identifier: Apache-2.0
// The pass after a cuDNN plan that computes only the sums; and test data for measuring.
#include <cuda_fp8.h>

#include "engine/cuda/products/conv_numbers.cuh"

namespace conv
{

enum { THREADS = 256 };

template <class T, int WIDTH>
__global__ void __launch_bounds__(THREADS) pass_kernel(const __grid_constant__ conv_pass_params p)
{
    early_begin();
    const int64_t packs = p.c / WIDTH, count = p.n * p.pixels * packs;
    const int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step) {
        const int64_t at = i / packs, c = (i - at * packs) * WIDTH;
        const int64_t n = at / p.pixels, pixel = at - n * p.pixels;
        T            *y = (T *)p.y + n * p.y_sample + pixel * p.y_pixel + c;
        float         v[WIDTH];
        // Not through the read-only path, because this kernel also writes it.
        if (WIDTH == 1) {
            v[0] = (float)y[0];
        } else {
            pack<T> k;
            k.bits = *reinterpret_cast<const uint4 *>(y);
            k.get(v);
        }
        if (sizeof(T) == 2 && p.finish.act != SAC_ACT_NONE) {
            // A sum below float16's range arrived as -infinity, which times a gate of 0 is no
            // number.
#pragma unroll
            for (int j = 0; j < WIDTH; j++)
                v[j] = v[j] < -65504.0f ? -65504.0f : v[j];
        }
        finish<T, WIDTH>(p.finish, c,
                         n * p.finish.residual_sample + pixel * p.finish.residual_pixel, v);
        store<T, WIDTH>(y, v);
    }
}

template <class T> __global__ void __launch_bounds__(THREADS) fill_kernel(T *p, int64_t count)
{
    early_begin();
    const int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step) {
        uint32_t h = (uint32_t)i * 2654435761u;
        h ^= h >> 15;
        h *= 2246822519u;
        h ^= h >> 13;
        p[i] = (T)((float)(h >> 8) * 0x1p-23f - 1.0f);
    }
}

__device__ __forceinline__ bool untouched(__half v)
{
    return __half_as_ushort(v) == 0xffff;
}
__device__ __forceinline__ bool untouched(float v)
{
    return __float_as_uint(v) == 0xffffffff;
}

// Of all lanes of the warp. Non-negative floats compare like their bits.
__device__ __forceinline__ void raise(float *out, float (&most)[2])
{
    for (int k = 0; k < 2; k++) {
        for (int lanes = 16; lanes > 0; lanes /= 2)
            most[k] = fmaxf(most[k], __shfl_xor_sync(~0u, most[k], lanes));
        if ((threadIdx.x & 31) == 0)
            atomicMax((unsigned *)out + k, __float_as_uint(most[k]));
    }
}

// Between the channels of two pixels, where other maps have theirs, all bits must still be set.
template <class T>
__global__ void __launch_bounds__(THREADS)
    compare_kernel(const __grid_constant__ conv_compare_params p)
{
    early_begin();
    const int64_t count = p.pixels * p.pixel - (p.pixel - p.c), step = (int64_t)gridDim.x * THREADS;
    float         most[2] = {0, 0};
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step) {
        const T got = ((const T *)p.got)[i];
        if (i % p.pixel >= p.c) {
            most[0] = untouched(got) ? most[0] : INFINITY;
            continue;
        }
        const float want = (float)((const T *)p.want)[i], off = fabsf((float)got - want);
        most[0] = off <= most[0] ? most[0] : off == off ? off : INFINITY;
        most[1] = fmaxf(most[1], fabsf(want));
    }
    raise(p.out, most);
}

__device__ __forceinline__ float byte_number(int kind, uint8_t v)
{
    if (kind == CONV_F8)
        return __half2float(__half(__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)v, __NV_E4M3)));
    return kind == CONV_S8 ? (float)(int8_t)v : (float)v;
}

// The same of 8-bit numbers, where no bits of one can tell that it is untouched.
__global__ void __launch_bounds__(THREADS)
    compare_bytes_kernel(const __grid_constant__ conv_compare_params p)
{
    early_begin();
    const int64_t count = p.pixels * p.pixel - (p.pixel - p.c), step = (int64_t)gridDim.x * THREADS;
    float         most[2] = {0, 0};
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step) {
        const uint8_t got = ((const uint8_t *)p.got)[i];
        if (i % p.pixel >= p.c) {
            most[0] = got == 0xff ? most[0] : INFINITY;
            continue;
        }
        const float want = byte_number(p.kind, ((const uint8_t *)p.want)[i]),
                    off = fabsf(byte_number(p.kind, got) - want);
        most[0] = off <= most[0] ? most[0] : off == off ? off : INFINITY;
        most[1] = fmaxf(most[1], fabsf(want));
    }
    raise(p.out, most);
}

static unsigned blocks_for(int64_t count)
{
    const int64_t blocks = (count + THREADS - 1) / THREADS;
    return (unsigned)(blocks < 1 ? 1 : blocks > 132 * 32 ? 132 * 32 : blocks);
}

static bool aligned(const void *p, int64_t pixel, int64_t sample, int64_t width)
{
    return ((uintptr_t)p & 15) == 0 && pixel % width == 0 && sample % width == 0;
}

template <class T> static cudaError_t launch_pass(const conv_pass_params &p, cudaStream_t stream)
{
    const int          width = pack<T>::width;
    const conv_finish &f = p.finish;
    const bool         wide =
        p.c % width == 0 && aligned(p.y, p.y_pixel, p.y_sample, width) &&
        (!f.residual || aligned(f.residual, f.residual_pixel, f.residual_sample, width)) &&
        (!f.bias || aligned(f.bias, 0, 0, width));
    const int64_t count = p.n * p.pixels * p.c;
    if (wide)
        CUDA_LAUNCH_ALONE((pass_kernel<T, pack<T>::width>), blocks_for(count / width), THREADS, 0,
                          stream, p);
    else
        CUDA_LAUNCH_ALONE((pass_kernel<T, 1>), blocks_for(count), THREADS, 0, stream, p);
    return cudaGetLastError();
}

} // namespace conv

extern "C" cudaError_t conv_launch_pass(const conv_pass_params *p, cudaStream_t stream)
{
    return p->half ? conv::launch_pass<__half>(*p, stream) : conv::launch_pass<float>(*p, stream);
}

extern "C" cudaError_t conv_launch_compare(const conv_compare_params *p, cudaStream_t stream)
{
    const unsigned blocks = conv::blocks_for(p->pixels * p->pixel);
    if (p->bytes)
        CUDA_LAUNCH_ALONE(conv::compare_bytes_kernel, blocks, conv::THREADS, 0, stream, *p);
    else if (p->half)
        CUDA_LAUNCH_ALONE(conv::compare_kernel<__half>, blocks, conv::THREADS, 0, stream, *p);
    else
        CUDA_LAUNCH_ALONE(conv::compare_kernel<float>, blocks, conv::THREADS, 0, stream, *p);
    return cudaGetLastError();
}

extern "C" cudaError_t conv_launch_fill(void *p, bool half, int64_t count, cudaStream_t stream)
{
    if (half)
        CUDA_LAUNCH_ALONE(conv::fill_kernel<__half>, conv::blocks_for(count), conv::THREADS, 0,
                          stream, (__half *)p, count);
    else
        CUDA_LAUNCH_ALONE(conv::fill_kernel<float>, conv::blocks_for(count), conv::THREADS, 0,
                          stream, (float *)p, count);
    return cudaGetLastError();
}
