// SPDX-License-Identifier: Apache-2.0
// What conv_stem.cu and conv_stem_unit.cu have in common: what comes before the sums of 16 pixels
// of a row and after them. A thread has sums of two pixels, and of each group of four tiles of
// channels eight that lie side by side (conv_stem.h).
#pragma once

#include "engine/cuda/products/conv_bytes.cuh"
#include "engine/cuda/products/conv_numbers.cuh"

namespace conv
{

enum { STEM_THREADS = 128 };

// Of all columns those of a block.
template <int TILES>
__device__ __forceinline__ void stem_fetch_weights(const conv_stem_params &p, int block,
                                                   uint8_t *to)
{
    enum { EACH = TILES * 16 /* sixteens of bytes of a step */ };
    const uint8_t *from = (const uint8_t *)p.w + block * EACH * 16;
    for (int i = threadIdx.x; i < p.shape.steps * EACH; i += STEM_THREADS)
        fetch_run<16>(to + i * 16, from + (i / EACH * (p.out_c * 2) + i % EACH) * 16);
}

// Words from a pixel's first tap to a pair. Pairs after the last row have weights of zero, so their
// offset does not matter.
__device__ __forceinline__ int stem_offset(const conv_stem_params &p, int pitch, int pair)
{
    const int r = pair / p.shape.pairs;
    return r < p.kernel_h ? r * pitch + pair - r * p.shape.pairs : 0;
}

// Tiles of the group that tile j is of, of TILES.
template <int TILES> __device__ constexpr int stem_group(int j)
{
    return j < TILES / 4 * 4 ? 4 : 2;
}
// The first of a thread's channels of tile j, from the block's first on.
template <int TILES> __device__ __forceinline__ int stem_channel(int j)
{
    const int group = stem_group<TILES>(j), first = j / group * group;
    return first * 8 + (threadIdx.x & 3) * 2 * group + (j - first) * 2;
}

// What the sums of a block's channels begin with.
template <int TILES> struct stem_biases {
    float2 of[TILES];

    __device__ __forceinline__ stem_biases(const conv_stem_params &p, int block)
    {
        const __half *from = (const __half *)p.finish.bias + block * TILES * 8;
#pragma unroll
        for (int j = 0; j < TILES; j++)
            of[j] = p.finish.bias ? __half22float2(__ldg(reinterpret_cast<const __half2 *>(
                                        from + stem_channel<TILES>(j))))
                                  : make_float2(0, 0);
    }
    __device__ __forceinline__ void begin(float (&sum)[TILES][4]) const
    {
#pragma unroll
        for (int j = 0; j < TILES; j++)
            sum[j][0] = sum[j][2] = of[j].x, sum[j][1] = sum[j][3] = of[j].y;
    }
};

// Of a pixel, half of the sums.
template <int TILES>
__device__ __forceinline__ void stem_store(__half *y, const float (&sum)[TILES][4], int half)
{
#pragma unroll
    for (int j = 0; j < TILES; j += stem_group<TILES>(j)) {
        uint32_t v[4];
#pragma unroll
        for (int i = 0; i < stem_group<TILES>(j); i++)
            v[i] = word_of(sum[j + i][2 * half], sum[j + i][2 * half + 1]);
        if (stem_group<TILES>(j) == 4)
            *reinterpret_cast<uint4 *>(y + stem_channel<TILES>(j)) =
                make_uint4(v[0], v[1], v[2], v[3]);
        else
            *reinterpret_cast<uint2 *>(y + stem_channel<TILES>(j)) = make_uint2(v[0], v[1]);
    }
}

// The 16 pixels from (x, y) of sample n on.
template <int TILES>
__device__ __forceinline__ void stem_end(const conv_stem_params &p, int n, int y, int x, int block,
                                         float (&sum)[TILES][4])
{
    x += (threadIdx.x & 31) >> 2;
    __half *at =
        (__half *)p.y + n * p.y_sample + ((int64_t)y * p.out_w + x) * p.y_pixel + block * TILES * 8;
    activate_all(p.finish.act, p.finish.alpha, p.finish.beta,
                 reinterpret_cast<float(&)[TILES * 4]>(sum));
#pragma unroll
    for (int half = 0; half < 2; half++)
        if (y < p.out_h && x + 8 * half < p.out_w)
            stem_store<TILES>(at + half * 8 * p.y_pixel, sum, half);
}

} // namespace conv
