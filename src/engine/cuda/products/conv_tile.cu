// SPDX-License-Identifier: Apache-2.0
// Convolutions as an implicit matrix product: pixels by taps, times taps by output
// channels, float16 with sums in float32. A block computes MS pixels by NS channels of a bundle of
// groups; pieces of 64 taps go through shared memory in STAGES turns, fetched ahead. What cuDNN
// compiles for curved activations is its generic kernel; this one has tiles for few pixels (batch
// 1), for few channels and for narrow groups, where that is far from what memory allows.
#include "engine/cuda/products/conv_numbers.cuh"

namespace conv
{

enum { TAPS = 64 /* of one turn */, CHUNKS = TAPS / 8 /* 16 bytes each */ };

// Warps share the pixels (WM), the channels (WN) and the taps of a turn (WK).
template <int M, int N, int M_WARPS, int N_WARPS, int K_WARPS, int TURNS> struct tile_shape {
    static constexpr int MS = M, NS = N, WM = M_WARPS, WN = N_WARPS, WK = K_WARPS, STAGES = TURNS;
    static constexpr int THREADS = WM * WN * WK * 32, MT = MS / WM / 16, NT = NS / WN / 8;
    static constexpr int STAGE_HALVES = (MS + NS) * TAPS, SHARED = STAGES * STAGE_HALVES * 2;
    static constexpr int SUMS = WM * WN * 32 * MT * NT * 4 * 4; // bytes of one K warp's
    static_assert(NT % 4 == 0 && MT >= 1 && TAPS / 16 % WK == 0, "tile");
    static_assert(WK == 1 || SUMS * (WK - 1) <= SHARED, "sums of the other warps must fit");
};

// UNIT bytes, of which all but the first `bytes` are zeros.
template <int UNIT>
__device__ __forceinline__ void tile_fetch(__half *to, const __half *from, int bytes)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(UNIT),
                 "r"(bytes));
}

// A chunk by units.
template <int UNIT>
__device__ __forceinline__ void tile_fetch_chunk(__half *to, const __half *from, int bytes)
{
#pragma unroll
    for (int i = 0; i < 16; i += UNIT)
        tile_fetch<UNIT>(to + i / 2, from + i / 2, max(0, min(UNIT, bytes - i)));
}

// The place of a row's chunk, rotated by the row, so that neighbouring rows use other banks.
__device__ __forceinline__ int tile_at(int row, int chunk)
{
    return row * TAPS + ((chunk ^ (row & 7)) << 3);
}

// A thread fetches one chunk of several rows: the same taps of several pixels. WIDE: by whole
// chunks, else by the units of p.
template <class S, bool WIDE> struct tile_source {
    static constexpr int STEP = S::THREADS / CHUNKS, ROWS = (S::MS + STEP - 1) / STEP,
                         WROWS = (S::NS + STEP - 1) / STEP;
    const __half *from, *weights; // of the bundle
    int64_t       base[ROWS];     // of the sample
    int           y[ROWS], x[ROWS];
    int           row, chunk, c, r, s; // of the chunk's tap

    __device__ __forceinline__ void begin(const conv_tile_params &p, int64_t first, int bundle)
    {
        from = (const __half *)p.x + bundle * p.in_c;
        weights = (const __half *)p.w + (int64_t)bundle * p.out_c * p.taps;
        row = threadIdx.x / CHUNKS;
        chunk = threadIdx.x % CHUNKS;
        c = chunk * 8;
        r = s = 0;
        settle(p);
        for (int i = 0; i < ROWS; i++) {
            const int64_t m = first + row + i * STEP;
            const int     n = (int)(m / p.pixels), pixel = (int)(m - (int64_t)n * p.pixels),
                      oy = pixel / p.out_w;
            y[i] = m < p.m ? oy * p.stride_h - p.pad_top : -(1 << 28); // outside of every map
            x[i] = (pixel - oy * p.out_w) * p.stride_w - p.pad_left;
            base[i] = n * p.x_sample;
        }
    }
    __device__ __forceinline__ void settle(const conv_tile_params &p)
    {
        while (c >= p.depth && r < p.kernel_h) {
            c -= p.depth;
            if (++s == p.kernel_w) {
                s = 0;
                r++;
            }
        }
    }
    __device__ __forceinline__ void fetch_chunk(const conv_tile_params &p, __half *to,
                                                const __half *at, int bytes) const
    {
        if (WIDE)
            tile_fetch<16>(to, at, bytes);
        else if (p.unit == 8)
            tile_fetch_chunk<8>(to, at, bytes);
        else
            tile_fetch_chunk<4>(to, at, bytes);
    }
    __device__ __forceinline__ void fetch_pixels(const conv_tile_params &p, __half *to) const
    {
        const int real = min(16, 2 * (p.in_c - c)); // bytes of the chunk
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const int at_row = row + i * STEP, iy = y[i] + r * p.dilation_h,
                      ix = x[i] + s * p.dilation_w;
            const bool inside = r < p.kernel_h && (unsigned)iy < (unsigned)p.in_h &&
                                (unsigned)ix < (unsigned)p.in_w;
            const int64_t at = inside ? base[i] + ((int64_t)iy * p.in_w + ix) * p.x_pixel + c : 0;
            if (S::MS % STEP == 0 || at_row < S::MS)
                fetch_chunk(p, to + tile_at(at_row, chunk), from + at, inside ? real : 0);
        }
    }
    __device__ __forceinline__ void fetch_weights(const conv_tile_params &p, __half *to, int first,
                                                  int turn) const
    {
        const int k = turn * TAPS + chunk * 8;
#pragma unroll
        for (int i = 0; i < WROWS; i++) {
            const int  at_row = row + i * STEP, n = first + at_row;
            const bool inside = k < p.taps && n < p.out_c;
            if (S::NS % STEP == 0 || at_row < S::NS)
                tile_fetch<16>(to + tile_at(at_row, chunk),
                               weights + (inside ? (int64_t)n * p.taps + k : 0), inside ? 16 : 0);
        }
    }
    __device__ __forceinline__ void next(const conv_tile_params &p)
    {
        c += TAPS;
        settle(p);
    }
};

__device__ __forceinline__ void tile_load(uint32_t (&v)[4], const __half *from)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(from);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "r"(at));
}

__device__ __forceinline__ void tile_multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                              uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// One turn of a warp: its pixels by its channels over its share of the taps.
template <class S>
__device__ __forceinline__ void tile_turn(const __half *pixels, const __half *weights, int wm,
                                          int wn, int wk, float (&sum)[S::MT][S::NT][4])
{
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int step = 0; step < TAPS / 16 / S::WK; step++) {
        const int chunk = (step * S::WK + wk) * 2;
        uint32_t  a[S::MT][4];
#pragma unroll
        for (int i = 0; i < S::MT; i++)
            tile_load(a[i],
                      pixels + tile_at((wm * S::MT + i) * 16 + (lane & 15), chunk + (lane >> 4)));
#pragma unroll
        for (int j = 0; j < S::NT; j += 2) {
            uint32_t b[4];
            tile_load(b, weights + tile_at((wn * S::NT + j) * 8 + (lane & 7) + (lane >> 4) * 8,
                                           chunk + (lane >> 3 & 1)));
#pragma unroll
            for (int i = 0; i < S::MT; i++) {
                tile_multiply(sum[i][j], a[i], b[0], b[1]);
                tile_multiply(sum[i][j + 1], a[i], b[2], b[3]);
            }
        }
    }
}

// The first warp adds the sums of the warps that had other taps; those are then done.
template <class S>
__device__ __forceinline__ bool tile_reduce(float *shared, int wk, float (&sum)[S::MT][S::NT][4])
{
    if (S::WK == 1)
        return true;
    constexpr int COUNT = S::MT * S::NT * 4, LANES = S::WM * S::WN * 32;
    const int     lane = threadIdx.x % LANES;
    float        *flat = &sum[0][0][0];
    __syncthreads();
    if (wk > 0)
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            shared[((wk - 1) * COUNT + i) * LANES + lane] = flat[i];
    __syncthreads();
    if (wk > 0)
        return false;
    for (int k = 0; k < S::WK - 1; k++)
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            flat[i] += shared[(k * COUNT + i) * LANES + lane];
    return true;
}

// Numbers of two neighbouring channels of each tile from k on; beyond the last channel 0.
template <int N>
__device__ __forceinline__ void tile_read(const __half *from, bool words, int k, int out_c,
                                          float (&v)[N])
{
#pragma unroll
    for (int i = 0; i < N; i += 2) {
        const int at = k + i * 4;
        if (words) {
            const uint32_t word =
                at < out_c ? __ldg(reinterpret_cast<const uint32_t *>(from + at)) : 0;
            const float2 pair = __half22float2(reinterpret_cast<const __half2 &>(word));
            v[i] = pair.x, v[i + 1] = pair.y;
            continue;
        }
        v[i] = at < out_c ? (float)__ldg(from + at) : 0.0f;
        v[i + 1] = at + 1 < out_c ? (float)__ldg(from + at + 1) : 0.0f;
    }
}

__device__ __forceinline__ bool tile_by_words(const void *p)
{
    return ((uintptr_t)p & 3) == 0;
}

// Finishes and stores the sums of a pixel: of the four threads that share it, NT tiles of 8
// channels from k on, of the bundle whose first channel is `first`.
template <class S>
__device__ __forceinline__ void tile_store(const conv_tile_params &p, int64_t m, int first, int k,
                                           const float (&bias)[2 * S::NT],
                                           const float (&sum)[S::NT][4], int half)
{
    const conv_finish &f = p.finish;
    const int          t = threadIdx.x & 3;
    const bool         inside = m < p.m;
    const int64_t      n = inside ? m / p.pixels : 0, pixel = inside ? m - n * p.pixels : 0;
    __half            *y = (__half *)p.y + n * p.y_sample + pixel * p.y_pixel + first;
    float              numbers[2 * S::NT], other[2 * S::NT] = {};
    if (f.residual) {
        const __half *from =
            (const __half *)f.residual + n * f.residual_sample + pixel * f.residual_pixel + first;
        const int count = min(p.out_c, (int)f.residual_c - first);
        tile_read(from, p.wide && count % 2 == 0 && tile_by_words(from), k + 2 * t, count, other);
    }
#pragma unroll
    for (int i = 0; i < 2 * S::NT; i++)
        numbers[i] = sum[i / 2][2 * half + i % 2] + bias[i];
    if (f.residual_kind == SAC_RESIDUAL_BEFORE)
#pragma unroll
        for (int i = 0; i < 2 * S::NT; i++)
            numbers[i] += other[i];
    activate_all(f.act, f.alpha, f.beta, numbers);
    if (f.ending)
#pragma unroll
        for (int i = 0; i < 2 * S::NT; i++) {
            const int at = k + i / 2 * 8 + 2 * t + i % 2;
            if (at >= p.out_c)
                continue;
            const channel_ending<1> ending(f, first + at);
            numbers[i] = fmaf(numbers[i], ending.scale[0], ending.shift[0]);
            other[i] *= ending.residual[0];
        }
    if (f.residual_kind == SAC_RESIDUAL_AFTER)
#pragma unroll
        for (int i = 0; i < 2 * S::NT; i++)
            numbers[i] += other[i];
#pragma unroll
    for (int j = 0; j < S::NT; j += 4) {
        uint32_t v[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            v[i] = word_of(numbers[2 * (j + i)], numbers[2 * (j + i) + 1]);
        if (p.wide) {
            const uint4 whole = turn_words(v[0], v[1], v[2], v[3]);
            const int   at = k + (j + t) * 8;
            if (inside && at < p.out_c)
                *reinterpret_cast<uint4 *>(y + at) = whole;
            continue;
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int at = k + (j + i) * 8 + 2 * t;
            if (inside && at < p.out_c)
                y[at] = __ushort_as_half((unsigned short)(v[i] & 0xffff));
            if (inside && at + 1 < p.out_c)
                y[at + 1] = __ushort_as_half((unsigned short)(v[i] >> 16));
        }
    }
}

template <class S, bool WIDE>
__global__ void __launch_bounds__(S::THREADS)
    tile_kernel(const __grid_constant__ conv_tile_params p)
{
    early_begin();
    extern __shared__ uint4 shared[];
    __half                 *stages = reinterpret_cast<__half *>(shared);
    const int               each = (p.out_c + S::NS - 1) / S::NS, n_tiles = p.bundles * each,
              tile = blockIdx.x % n_tiles, bundle = tile / each, first_k = tile % each * S::NS;
    const int64_t first_m = (int64_t)(blockIdx.x / n_tiles) * S::MS;
    const int     warp = threadIdx.x >> 5, wk = warp / (S::WM * S::WN), wn = warp / S::WM % S::WN,
              wm = warp % S::WM;
    const int            turns = (p.taps + TAPS - 1) / TAPS;
    float                sum[S::MT][S::NT][4] = {};
    tile_source<S, WIDE> source;
    source.begin(p, first_m, bundle);
#pragma unroll
    for (int i = 0; i < S::STAGES - 1; i++) {
        if (i < turns) {
            __half *stage = stages + i * S::STAGE_HALVES;
            source.fetch_pixels(p, stage);
            source.fetch_weights(p, stage + S::MS * TAPS, first_k, i);
            source.next(p);
        }
        asm volatile("cp.async.commit_group;");
    }
    for (int turn = 0; turn < turns; turn++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(S::STAGES - 2));
        __syncthreads();
        const int ahead = turn + S::STAGES - 1;
        if (ahead < turns) {
            __half *stage = stages + ahead % S::STAGES * S::STAGE_HALVES;
            source.fetch_pixels(p, stage);
            source.fetch_weights(p, stage + S::MS * TAPS, first_k, ahead);
            source.next(p);
        }
        asm volatile("cp.async.commit_group;");
        const __half *stage = stages + turn % S::STAGES * S::STAGE_HALVES;
        tile_turn<S>(stage, stage + S::MS * TAPS, wm, wn, wk, sum);
    }
    asm volatile("cp.async.wait_group 0;");
    if (!tile_reduce<S>(reinterpret_cast<float *>(shared), wk, sum))
        return;
    const int     lane = threadIdx.x & 31, k = first_k + wn * S::NT * 8;
    const __half *from = (const __half *)p.finish.bias + bundle * p.out_c;
    float         bias[2 * S::NT] = {};
    if (p.finish.bias)
        tile_read(from, p.wide && tile_by_words(from), k + 2 * (lane & 3), p.out_c, bias);
#pragma unroll
    for (int i = 0; i < S::MT; i++)
#pragma unroll
        for (int half = 0; half < 2; half++)
            tile_store<S>(p, first_m + (wm * S::MT + i) * 16 + (lane >> 2) + 8 * half,
                          bundle * p.out_c, k, bias, sum[i], half);
}

template <class S> static cudaError_t run_tile(const conv_tile_params &p, cudaStream_t stream)
{
    const int64_t blocks = (p.m + S::MS - 1) / S::MS * p.bundles * ((p.out_c + S::NS - 1) / S::NS);
    if (blocks > 0x7fffffff)
        return cudaErrorInvalidValue;
    if (p.unit == 16)
        CUDA_LAUNCH_ALONE((tile_kernel<S, true>), (unsigned)blocks, S::THREADS, S::SHARED, stream,
                          p);
    else
        CUDA_LAUNCH_ALONE((tile_kernel<S, false>), (unsigned)blocks, S::THREADS, S::SHARED, stream,
                          p);
    return cudaGetLastError();
}

} // namespace conv

// Sizes as conv_tile_sizes has them.
extern "C" cudaError_t conv_launch_tile(const conv_tile_params *p, int variant, cudaStream_t stream)
{
    using namespace conv;
    switch (variant) {
    case 0: return run_tile<tile_shape<128, 128, 4, 2, 1, 3>>(*p, stream);
    case 1: return run_tile<tile_shape<128, 64, 4, 1, 1, 3>>(*p, stream);
    case 2: return run_tile<tile_shape<128, 32, 4, 1, 1, 3>>(*p, stream);
    case 3: return run_tile<tile_shape<64, 64, 2, 1, 2, 4>>(*p, stream);
    case 4: return run_tile<tile_shape<64, 32, 2, 1, 2, 4>>(*p, stream);
    case 5: return run_tile<tile_shape<32, 64, 1, 1, 4, 4>>(*p, stream);
    case 6: return run_tile<tile_shape<32, 32, 1, 1, 4, 4>>(*p, stream);
    case 7: return run_tile<tile_shape<16, 32, 1, 1, 4, 4>>(*p, stream);
    default: return cudaErrorNotSupported;
    }
}
