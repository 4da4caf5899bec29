// SPDX-License-Identifier: Apache-2.0
// Convolutions of few input channels, as networks begin: cuDNN's kernels want channels by eights
// and spend most of their time on zeros (368 microseconds for YOLOX-S at batch 32, where the bytes
// need 68). Here a block of four warps computes 16 by 16 pixels: it brings the part of the input
// that their windows see into shared memory and feeds the matrix units (16 pixels of a row by 16
// taps by 8 channels) from there. On Hopper conv_stem_unit.cu does that where it can.
#include "engine/cuda/products/conv_stem.cuh"

namespace conv
{

enum { STEM_ROWS = 4 /* of pixels for a warp */ };

struct stem_memory {
    uint32_t *weights; // [steps][columns][8]
    int      *offsets; // [steps * 8]: words from a pixel's first tap to each pair
    uint32_t *part;    // [rows][pitch]
};

__device__ __forceinline__ stem_memory stem_shared(const conv_stem_params &p)
{
    extern __shared__ uint4 shared[];
    stem_memory             m;
    m.weights = reinterpret_cast<uint32_t *>(shared);
    m.offsets = reinterpret_cast<int *>(m.weights + p.shape.steps * p.shape.tiles * 64);
    m.part = reinterpret_cast<uint32_t *>(m.offsets + p.shape.steps * 8);
    return m;
}

// inside false: zeros.
__device__ __forceinline__ void stem_fetch4(void *to, const void *from, bool inside)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    const int      bytes = inside ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(bytes));
}

template <int TILES>
__device__ __forceinline__ void stem_load_weights(const conv_stem_params &p, const stem_memory &m,
                                                  int block, int pitch)
{
    stem_fetch_weights<TILES>(p, block, (uint8_t *)m.weights);
    for (int i = threadIdx.x; i < p.shape.steps * 8; i += STEM_THREADS)
        m.offsets[i] = stem_offset(p, pitch, i);
}

// Copies rows word by word. All copies are in flight at once; row by row and through registers they
// took seven microseconds per block (measured on one H200).
__device__ __forceinline__ void stem_fetch_part(const conv_stem_params &p, const stem_memory &m,
                                                const __half *image, int first_y, int first,
                                                int pitch)
{
    const int rows = conv_stem_rows(p.kernel_h, p.stride), width = p.in_w * p.in_c;
    for (int r = threadIdx.x >> 5; r < rows; r += STEM_THREADS / 32) {
        const int     y = first_y + r;
        const bool    inside = y >= 0 && y < p.in_h;
        const __half *row = image + (int64_t)(inside ? y : 0) * width;
        for (int i = threadIdx.x & 31; i < pitch; i += 32) {
            const int  at = first + 2 * i;
            const bool real = inside && at >= 0 && at < width;
            stem_fetch4(m.part + r * pitch + i, row + (real ? at : 0), real);
        }
    }
}

// Element by element, for channels that are not contiguous or rows that are not word-aligned.
__device__ __forceinline__ void stem_spread_part(const conv_stem_params &p, const stem_memory &m,
                                                 const __half *image, int first_y, int first_pixel,
                                                 int pitch)
{
    const int rows = conv_stem_rows(p.kernel_h, p.stride), channels = p.shape.channels;
    __half   *part = reinterpret_cast<__half *>(m.part);
    for (int i = threadIdx.x; i < rows * pitch * 2; i += STEM_THREADS) {
        const int r = i / (pitch * 2), at = i - r * pitch * 2 - p.shape.lead, y = first_y + r;
        const int pixel = first_pixel + (at < 0 ? -1 : at / channels),
                  c = at < 0 ? channels - 1 : at % channels;
        const bool real = y >= 0 && y < p.in_h && pixel >= 0 && pixel < p.in_w && c < p.in_c;
        part[i] = real ? __ldg(image + ((int64_t)y * p.in_w + pixel) * p.in_c + c) : __half(0);
    }
}

__device__ __forceinline__ void stem_load_part(const conv_stem_params &p, const stem_memory &m,
                                               int n, int oy, int ox, int pitch)
{
    const int  first = ox * p.stride - p.pad_left, first_y = oy * p.stride - p.pad_top;
    const bool words =
        ((uintptr_t)p.x & 3) == 0 && (p.x_sample & 1) == 0 && (p.in_w * p.in_c & 1) == 0;
    const __half *image = (const __half *)p.x + n * p.x_sample;
    if (words && p.shape.channels == p.in_c)
        stem_fetch_part(p, m, image, first_y, first * p.in_c - p.shape.lead, pitch);
    else
        stem_spread_part(p, m, image, first_y, first, pitch);
    fetch_commit();
    fetch_wait<0>();
}

__device__ __forceinline__ void stem_multiply(float (&d)[4], const uint32_t (&a)[4], uint2 b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}

template <int TILES>
__device__ __forceinline__ void stem_sums(const conv_stem_params &p, const stem_memory &m,
                                          int pitch, float (&sum)[STEM_ROWS][TILES][4])
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5,
              step_words = p.stride * p.shape.channels / 2;
    const uint32_t *first = m.part + warp * STEM_ROWS * p.stride * pitch + (lane >> 2) * step_words;
    const uint32_t *weights = m.weights + (lane >> 2) * 8 + (lane & 3);
    const int       low = lane >> 4 & 1 ? 4 : 0; // a column's halves are exchanged: conv_spec.c
    for (int step = 0; step < p.shape.steps; step++) {
        const int near = m.offsets[step * 8 + (lane & 3)],
                  far = m.offsets[step * 8 + (lane & 3) + 4];
        uint2 b[TILES];
#pragma unroll
        for (int j = 0; j < TILES; j++)
            b[j] = {weights[(step * TILES + j) * 64 + low],
                    weights[(step * TILES + j) * 64 + (low ^ 4)]};
#pragma unroll
        for (int i = 0; i < STEM_ROWS; i++) {
            const uint32_t *pixel = first + i * p.stride * pitch, *other = pixel + 8 * step_words;
            const uint32_t  a[4] = {pixel[near], other[near], pixel[far], other[far]};
#pragma unroll
            for (int j = 0; j < TILES; j++)
                stem_multiply(sum[i][j], a, b[j]);
        }
    }
}

template <int TILES>
__global__ void __launch_bounds__(STEM_THREADS, TILES == 2   ? 8
                                                : TILES == 4 ? 5
                                                             : 3)
    stem_kernel(const __grid_constant__ conv_stem_params p)
{
    early_begin();
    const stem_memory m = stem_shared(p);
    const int blocks = p.out_c / 8 / TILES, block = blockIdx.z % blocks, n = blockIdx.z / blocks;
    const int ox = blockIdx.x * CONV_STEM_SIDE, oy = blockIdx.y * CONV_STEM_SIDE;
    const int pitch = conv_stem_pitch(p.shape.channels, p.kernel_w, p.stride);
    float     sum[STEM_ROWS][TILES][4];
    stem_load_weights<TILES>(p, m, block, pitch);
    stem_load_part(p, m, n, oy, ox, pitch);
    __syncthreads();
    const stem_biases<TILES> biases(p, block);
#pragma unroll
    for (int i = 0; i < STEM_ROWS; i++)
        biases.begin(sum[i]);
    stem_sums<TILES>(p, m, pitch, sum);
    const int y = oy + (threadIdx.x >> 5) * STEM_ROWS;
#pragma unroll
    for (int i = 0; i < STEM_ROWS; i++)
        stem_end<TILES>(p, n, y + i, ox, block, sum[i]);
}

template <int TILES> static cudaError_t run_stem(const conv_stem_params &p, cudaStream_t stream)
{
    const int side = CONV_STEM_SIDE,
              bytes = conv_stem_shared_bytes(&p.shape, p.kernel_h, p.kernel_w, p.stride);
    const dim3 grid((p.out_w + side - 1) / side, (p.out_h + side - 1) / side,
                    p.n * (p.out_c / 8 / TILES));
    CUDA_LAUNCH_ALONE(stem_kernel<TILES>, grid, STEM_THREADS, bytes, stream, p);
    return cudaGetLastError();
}

} // namespace conv

extern "C" cudaError_t conv_launch_stem(const conv_stem_params *p, cudaStream_t stream)
{
    switch (p->shape.tiles) {
    case 2: return conv::run_stem<2>(*p, stream);
    case 4: return conv::run_stem<4>(*p, stream);
    case 6: return conv::run_stem<6>(*p, stream);
    default: return cudaErrorNotSupported;
    }
}
