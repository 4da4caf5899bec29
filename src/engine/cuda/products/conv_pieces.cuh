// SPDX-License-Identifier: Apache-2.0
// What the kernels of 8-bit numbers share (conv_bytes.cu, conv_stream.cu, conv_tensor.cuh): how a
// block fetches its pieces of pixels and weights, multiplies them, and reads numbers.
//
// A thread of the tensor cores gets two neighbouring columns of each eight. So the rows of the
// weights are fetched in another order, by which those are RUN channels that lie side by side in
// memory.
#pragma once

#include "engine/cuda/products/conv_numbers.cuh"

#include "engine/cuda/products/conv_bytes.cuh"
#include "engine/cuda/unit.cuh"

namespace conv
{

enum { BYTES_TAPS = 128 /* of one turn */, BYTES_CHUNKS = BYTES_TAPS / 16 };

// A piece has rows of 128 bytes, whose chunks of 16 are rotated by the row, so that neighbouring
// rows use other banks. Hopper's matrix unit calls that a swizzle of 128 bytes.
__device__ __forceinline__ int bytes_at(int row, int chunk)
{
    return row * BYTES_TAPS + ((chunk ^ (row & 7)) << 4);
}

// Groups of four warps share the pixels, 64 of which a group's instruction computes for all
// channels.
template <int KIND_, int M, int N, int GROUPS, int TURNS, int BLOCKS> struct hopper_shape {
    static constexpr int  KIND = KIND_, MS = M, NS = N, STAGES = TURNS, RESIDENT = BLOCKS;
    static constexpr bool HOPPER = true;
    static constexpr int  THREADS = GROUPS * 128, MT = M / GROUPS / 64, SUMS = N / 2;
    static constexpr int  GROUP = N < 64 ? N : 64, RUN = GROUP / 4;
    // One block alone keeps its unit busy through the barrier; where there are others, they do, and
    // another piece is fetched ahead instead.
    static constexpr int LAG = BLOCKS > 1 ? 0 : 1, AHEAD = TURNS - 1 - LAG;
    static constexpr int STAGE = (M + N) * BYTES_TAPS, SHARED = TURNS * STAGE + N * 8 + 1024;
    static_assert(M * N * 4 <= TURNS * STAGE, "the sums go there");
};

// Warps share the pixels (WM) and the channels (WN).
template <int KIND_, int M, int N, int WM_, int WN_, int TURNS, int BLOCKS> struct warp_shape {
    static constexpr int KIND = KIND_, MS = M, NS = N, WM = WM_, WN = WN_, STAGES = TURNS,
                         RESIDENT = BLOCKS;
    static constexpr bool HOPPER = false;
    static constexpr int  THREADS = WM * WN * 32, MT = M / WM / 16, SUMS = N / WN / 2;
    static constexpr int  GROUP = N / WN < 64 ? N / WN : 64, RUN = GROUP / 4, AHEAD = TURNS - 1;
    static constexpr int  STAGE = (M + N) * BYTES_TAPS, SHARED = TURNS * STAGE + N * 8 + 1024;
    static_assert(M * N * 4 <= TURNS * STAGE, "the sums go there");
};

// The channel of a row of the weights, within the block.
template <class S> __device__ __forceinline__ int bytes_channel(int row)
{
    const int in = row % S::GROUP;
    return row - in + in % 8 / 2 * S::RUN + in / 8 * 2 + in % 2;
}

// A thread fetches one chunk of several rows: the same taps of several pixels.
template <class S> struct bytes_source {
    static constexpr int STEP = S::THREADS / BYTES_CHUNKS, ROWS = (S::MS + STEP - 1) / STEP,
                         WROWS = (S::NS + STEP - 1) / STEP;
    int first[ROWS], y[ROWS], x[ROWS];
    int row, chunk, c, r, s; // of the chunk's tap

    __device__ __forceinline__ void begin(const conv_tile_params &p, int64_t m0)
    {
        row = threadIdx.x / BYTES_CHUNKS;
        chunk = threadIdx.x % BYTES_CHUNKS;
        c = chunk * 16;
        r = s = 0;
        settle(p);
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const unsigned m = (unsigned)m0 + row + i * STEP, n = m / (unsigned)p.pixels;
            const int      pixel = (int)(m - n * (unsigned)p.pixels), oy = pixel / p.out_w;
            y[i] = m < p.m ? oy * p.stride_h - p.pad_top : -(1 << 28); // outside of every map
            x[i] = (pixel - oy * p.out_w) * p.stride_w - p.pad_left;
            first[i] =
                m < p.m ? (int)(n * p.x_sample + (y[i] * (int64_t)p.in_w + x[i]) * p.x_pixel) : 0;
        }
    }
    // The same of a window of one that goes over all pixels of a dense map.
    __device__ __forceinline__ void begin_flat(const conv_tile_params &p, int64_t m0)
    {
        row = threadIdx.x / BYTES_CHUNKS;
        chunk = threadIdx.x % BYTES_CHUNKS;
        c = chunk * 16;
        r = s = 0;
        settle(p);
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const unsigned m = (unsigned)m0 + row + i * STEP;
            y[i] = m < p.m ? 0 : -(1 << 28);
            x[i] = 0;
            first[i] = m < p.m ? (int)(m * p.x_pixel) : 0;
        }
    }
    __device__ __forceinline__ void settle(const conv_tile_params &p)
    {
        while (c >= p.in_c && r < p.kernel_h) {
            c -= p.in_c;
            if (++s == p.kernel_w) {
                s = 0;
                r++;
            }
        }
    }
    /* HOW: what lies outside of the map is zeros; the same, and a tap's pixels stay in the
     * multiprocessor's cache until the next tap wants them; what lies outside is x_zero. */
    enum { FAR, NEAR, FILLED };
    template <int HOW>
    __device__ __forceinline__ void fetch_pixels(const conv_bytes_params &b, uint8_t *to) const
    {
        const conv_tile_params &p = b.at;
        const int               dy = r * p.dilation_h, dx = s * p.dilation_w;
        const uint8_t *from = (const uint8_t *)p.x + (int64_t)(dy * p.in_w + dx) * p.x_pixel + c;
        const unsigned zeros = (b.x_zero & 255) * 0x01010101u;
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const bool inside = r < p.kernel_h && (unsigned)(y[i] + dy) < (unsigned)p.in_h &&
                                (unsigned)(x[i] + dx) < (unsigned)p.in_w;
            uint8_t *at = to + i * STEP * BYTES_TAPS;
            if (S::MS % STEP != 0 && row + i * STEP >= S::MS)
                continue;
            if (HOW == FILLED && !inside)
                *reinterpret_cast<uint4 *>(at) = make_uint4(zeros, zeros, zeros, zeros);
            else
                fetch16(at, inside ? from + first[i] : (const uint8_t *)p.x, inside, HOW == NEAR);
        }
    }
    // Rows by STEP have channels that lie as far apart as those of the rows 0 and STEP.
    __device__ __forceinline__ void fetch_weights(const conv_tile_params &p, uint8_t *to,
                                                  int channel, int turn) const
    {
        static_assert(S::GROUP % STEP == 0 || STEP % S::GROUP == 0, "rows are not so far apart");
        const int      k = turn * BYTES_TAPS + chunk * 16, n = channel + bytes_channel<S>(row);
        const uint8_t *from = (const uint8_t *)p.w + (n * p.taps + k);
#pragma unroll
        for (int i = 0; i < WROWS; i++) {
            const int  more = bytes_channel<S>(i * STEP);
            const bool inside = k < p.taps && n + more < p.out_c;
            if (S::NS % STEP == 0 || row + i * STEP < S::NS)
                fetch16(to + i * STEP * BYTES_TAPS,
                        inside ? from + more * p.taps : (const uint8_t *)p.w, inside, false);
        }
    }
    __device__ __forceinline__ void fetch(const conv_bytes_params &b, uint8_t *to, int channel,
                                          int turn) const
    {
        uint8_t *at = to + bytes_at(row, chunk);
        if (b.x_zero != 0)
            fetch_pixels<FILLED>(b, at);
        else if (b.at.kernel_w > 1 && b.at.in_c <= 128)
            fetch_pixels<NEAR>(b, at);
        else
            fetch_pixels<FAR>(b, at);
        fetch_weights(b.at, at + S::MS * BYTES_TAPS, channel, turn);
    }
    __device__ __forceinline__ void next(const conv_tile_params &p)
    {
        c += BYTES_TAPS;
        settle(p);
    }
};

/* ---- a turn ---- */

#ifdef BYTES_HOPPER
// By Hopper's matrix unit, which goes on while its threads do other things. first: what the sums
// hold before does not count.
template <class S>
__device__ __forceinline__ void stream_turn(const uint8_t *pixels, const uint8_t *weights,
                                            bool first, uint32_t (&sum)[S::MT][S::SUMS])
{
    const unsigned a = shared_address(pixels) + (threadIdx.x >> 7) * S::MT * 64 * BYTES_TAPS,
                   b = shared_address(weights);
    unit_begin();
#pragma unroll
    for (int k = 0; k < BYTES_TAPS; k += 32)
#pragma unroll
        for (int i = 0; i < S::MT; i++)
            bytes_wgmma(sum[i], unit::matrix_of<BYTES_TAPS>(a + i * 64 * BYTES_TAPS + k),
                        unit::matrix_of<BYTES_TAPS>(b + k), !first || k > 0, bytes_kind<S::KIND>());
    unit_commit();
}
#endif

// first: what the sums hold before does not count.
template <class S>
__device__ __forceinline__ void bytes_turn(const uint8_t *stage, bool first,
                                           uint32_t (&sum)[S::MT][S::SUMS])
{
    const int      lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const uint8_t *pixels = stage, *weights = stage + S::MS * BYTES_TAPS;
    if constexpr (S::HOPPER) {
#ifdef BYTES_HOPPER
        stream_turn<S>(pixels, weights, first, sum);
#endif
    } else {
        const int wm = warp % S::WM, wn = warp / S::WM;
#pragma unroll
        for (int chunk = 0; chunk < BYTES_CHUNKS; chunk += 2) {
            uint32_t a[S::MT][4];
#pragma unroll
            for (int i = 0; i < S::MT; i++)
                bytes_load(a[i], pixels + bytes_at((wm * S::MT + i) * 16 + (lane & 15),
                                                   chunk + (lane >> 4)));
#pragma unroll
            for (int j = 0; j < S::SUMS / 4; j += 2) {
                uint32_t b[4];
                bytes_load(b, weights +
                                  bytes_at(wn * S::SUMS * 2 + j * 8 + (lane & 7) + (lane >> 4) * 8,
                                           chunk + (lane >> 3 & 1)));
#pragma unroll
                for (int i = 0; i < S::MT; i++) {
                    bytes_multiply<S::KIND>(&sum[i][j * 4], a[i], b[0], b[1]);
                    bytes_multiply<S::KIND>(&sum[i][j * 4 + 4], a[i], b[2], b[3]);
                }
            }
        }
    }
}

/* ---- numbers ---- */

// Numbers side by side, as words of memory.
template <int N> __device__ __forceinline__ void load_words(const void *p, uint32_t (&w)[N])
{
    if constexpr (N == 1)
        w[0] = __ldg((const uint32_t *)p);
    else if constexpr (N % 4 == 0)
#pragma unroll
        for (int i = 0; i < N; i += 4) {
            const uint4 v = __ldg((const uint4 *)p + i / 4);
            w[i] = v.x, w[i + 1] = v.y, w[i + 2] = v.z, w[i + 3] = v.w;
        }
    else
#pragma unroll
        for (int i = 0; i < N; i += 2) {
            const uint2 v = __ldg((const uint2 *)p + i / 2);
            w[i] = v.x, w[i + 1] = v.y;
        }
}

template <int N> __device__ __forceinline__ void store_words(void *p, const uint32_t (&w)[N])
{
    if constexpr (N == 1)
        *(uint32_t *)p = w[0];
    else if constexpr (N % 4 == 0)
#pragma unroll
        for (int i = 0; i < N; i += 4)
            ((uint4 *)p)[i / 4] = make_uint4(w[i], w[i + 1], w[i + 2], w[i + 3]);
    else
#pragma unroll
        for (int i = 0; i < N; i += 2)
            ((uint2 *)p)[i / 2] = make_uint2(w[i], w[i + 1]);
}

__device__ __forceinline__ int number_bytes(int kind)
{
    return kind == CONV_F32 ? 4 : kind == CONV_F16 ? 2 : 1;
}

__device__ __forceinline__ float number_at(const void *p, int kind, int64_t at)
{
    switch (kind) {
    case CONV_F32: return __ldg((const float *)p + at);
    case CONV_F16: return __half2float(__ldg((const __half *)p + at));
    case CONV_S8: return (float)__ldg((const int8_t *)p + at);
    case CONV_U8: return (float)__ldg((const uint8_t *)p + at);
    default: return float_of_f8(__ldg((const uint8_t *)p + at));
    }
}

__device__ __forceinline__ float scale_at(const conv_bytes_params &b, int k)
{
    return k < b.at.out_c ? __ldg(b.scale + k) * b.fold : 0;
}
__device__ __forceinline__ float bias_at(const conv_bytes_params &b, int k)
{
    const float *bias = (const float *)b.at.finish.bias;
    return bias && k < b.at.out_c ? __ldg(bias + k) * b.fold : 0;
}

template <int KIND> __device__ __forceinline__ float sum_of(uint32_t bits)
{
    return KIND == CONV_BYTES_F8 || KIND == CONV_BYTES_F16 ? __uint_as_float(bits)
                                                           : (float)(int)bits;
}

template <int N> __device__ __forceinline__ void floats_at(const float *from, float (&v)[N])
{
#pragma unroll
    for (int i = 0; i < N; i += 4) {
        const uint4 w = *reinterpret_cast<const uint4 *>(from + i);
        v[i] = __uint_as_float(w.x), v[i + 1] = __uint_as_float(w.y);
        v[i + 2] = __uint_as_float(w.z), v[i + 3] = __uint_as_float(w.w);
    }
}

// ---- behind the sums ----

// GELU by tanh: x / 2 (1 + tanh(LINEAR x + CUBIC x^3)).
constexpr float GELU_LINEAR = 0.79788456f, GELU_CUBIC = GELU_LINEAR * 0.044715f;

// EXACT: SiLU before float16 is as exact as that; before 8 bits a tanh of the card's will do.
template <int ACT, bool EXACT, int N>
__device__ __forceinline__ void stream_activate_as(const conv_stream_params &s, float (&v)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        const float half = 0.5f * v[i];
        if (ACT == CONV_STREAM_CLAMP)
            v[i] = fminf(fmaxf(v[i], s.low), s.high);
        else if (ACT == CONV_STREAM_SILU && EXACT) // x / (1 + e^-x)
            v[i] *= sigmoid(v[i]);
        else if (ACT == CONV_STREAM_SILU) // by the tanh of half of it
            v[i] = fmaf(half, fast_tanh(half), half) * s.b.y_inverse;
        else if (ACT == CONV_STREAM_GELU) { // by tanh, which is off by 0.0005 at most
            const float t = v[i] * fmaf(GELU_CUBIC, v[i] * v[i], GELU_LINEAR);
            v[i] = fmaf(half, fast_tanh(t), half) * s.b.y_inverse;
        } else if (ACT == CONV_STREAM_HARD_SWISH)
            v[i] *=
                __saturatef(fmaf(s.b.at.finish.alpha, v[i], s.b.at.finish.beta)) * s.b.y_inverse;
    }
}
// exact: the output is float16.
template <int N>
__device__ __forceinline__ void stream_activate(const conv_stream_params &s, bool exact,
                                                float (&v)[N])
{
    switch (s.act) {
    case CONV_STREAM_CLAMP: stream_activate_as<CONV_STREAM_CLAMP, false>(s, v); break;
    case CONV_STREAM_SILU:
        if (exact)
            stream_activate_as<CONV_STREAM_SILU, true>(s, v);
        else
            stream_activate_as<CONV_STREAM_SILU, false>(s, v);
        break;
    case CONV_STREAM_GELU: stream_activate_as<CONV_STREAM_GELU, false>(s, v); break;
    case CONV_STREAM_HARD_SWISH: stream_activate_as<CONV_STREAM_HARD_SWISH, false>(s, v); break;
    default: break;
    }
}

} // namespace conv
