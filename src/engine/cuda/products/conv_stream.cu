// SPDX-License-Identifier: Apache-2.0
// Convolutions of 8-bit numbers on Hopper as conv_bytes.cu computes them, for maps that are read in
// less time than a block takes to begin and to end: a block stays for many tiles of the same
// channels. The pieces of the next tiles are fetched while a tile is finished, weights that fit
// stay in shared memory, and the residual is fetched with the pixels. Two blocks on a
// multiprocessor take turns at its matrix unit.
//
// int8 or E4M3 at both ends, or float16 behind, zero points 0, and what most networks have behind
// the sums (conv_stream_acts).
#include "engine/cuda/products/conv_pieces.cuh"

namespace conv
{

// Groups of four warps share the pixels. The first turn's pieces of a tile are fetched AHEAD turns
// before.
template <int KIND_, int M, int N, int GROUPS, int TURNS, int BLOCKS> struct stream_shape {
    static constexpr int  KIND = KIND_, MS = M, NS = N, STAGES = TURNS, RESIDENT = BLOCKS;
    static constexpr bool HOPPER = true;
    static constexpr int  THREADS = GROUPS * 128, MT = M / GROUPS / 64, SUMS = N / 2;
    static constexpr int  GROUP = N < 64 ? N : 64, RUN = GROUP / 4, AHEAD = TURNS - 1;
    static constexpr int  RUNS = N / GROUP, PIXELS = M * BYTES_TAPS, WEIGHTS = N * BYTES_TAPS;
    static constexpr int  BUDGET = 232448 / BLOCKS - (BLOCKS > 1 ? 512 : 0);
};

/* ---- behind the sums ---- */

__device__ __forceinline__ float residual_of(const uint32_t *w, int i, bool f8)
{
    const uint32_t byte = w[i / 4] >> i % 4 * 8 & 255;
    return f8 ? float_of_f8(byte) : (float)(int8_t)byte;
}

template <int N>
__device__ __forceinline__ void add_residual(const conv_stream_params &s, bool f8,
                                             const uint32_t *w, float (&v)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        v[i] = fmaf(s.b.residual_scale, residual_of(w, i, f8), v[i]);
}

template <int KIND, int N>
__device__ __forceinline__ void stream_store(const conv_stream_params &s, int64_t at,
                                             const float (&v)[N])
{
    if (s.b.y_kind == CONV_F16) {
        uint32_t w[N / 2];
#pragma unroll
        for (int i = 0; i < N / 2; i++)
            w[i] = word_of(v[2 * i], v[2 * i + 1]);
        store_words((__half *)s.b.at.y + at, w);
        return;
    }
    uint32_t w[N / 4];
#pragma unroll
    for (int i = 0; i < N / 4; i++) {
        const float *q = v + 4 * i;
        if (KIND == CONV_BYTES_F8)
            w[i] = f8_of(q[0], q[1]) | f8_of(q[2], q[3]) << 16;
        else {
            // Adding 1.5 * 2^23 rounds to the nearest even integer, which is then in the low bits.
            uint32_t bits[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                bits[j] =
                    __float_as_uint(__fadd_rn(fminf(fmaxf(q[j], -128.0f), 127.0f), 12582912.0f));
            w[i] = __byte_perm(__byte_perm(bits[0], bits[1], 0x40),
                               __byte_perm(bits[2], bits[3], 0x40), 0x5410);
        }
    }
    store_words((uint8_t *)s.b.at.y + at, w);
}

// Elements from the start of a map to pixel m of all samples.
__device__ __forceinline__ int64_t pixel_at(const conv_stream_params &s, unsigned m, int64_t sample,
                                            int64_t pixel)
{
    if (s.dense)
        return m * pixel;
    const unsigned n = m / (unsigned)s.b.at.pixels;
    return n * sample + (m - n * (unsigned)s.b.at.pixels) * pixel;
}

// The residual's numbers that a thread adds: of two rows of each 64, RUN channels of each GROUP.
// A thread fetches its own, so that no other has to wait for them.
template <class S> struct stream_rows {
    static constexpr int ROWS = 2 * S::MT, EACH = ROWS * S::RUNS;

    __device__ static __forceinline__ unsigned row(int i)
    {
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
        return (warp >> 2) * S::MT * 64 + (warp & 3) * 16 + (lane >> 2) + i / 2 * 64 + i % 2 * 8;
    }
    __device__ static __forceinline__ int channel(int g)
    {
        return (threadIdx.x & 3) * S::RUN + g * S::GROUP;
    }
    __device__ static __forceinline__ uint8_t *place(uint8_t *slot, int i)
    {
        return slot + (i * S::THREADS + threadIdx.x) * S::RUN;
    }
    __device__ static __forceinline__ void fetch(const conv_stream_params &s, uint8_t *slot,
                                                 unsigned m0, int first)
    {
        const conv_finish &f = s.b.at.finish;
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const unsigned m = m0 + row(i);
            const uint8_t *from = (const uint8_t *)f.residual +
                                  pixel_at(s, m, f.residual_sample, f.residual_pixel) + first;
#pragma unroll
            for (int g = 0; g < S::RUNS; g++)
                if (m < s.b.at.m && first + channel(g) < s.b.at.out_c)
                    fetch_run<S::RUN>(place(slot, i * S::RUNS + g), from + channel(g));
        }
    }
};

template <class S>
__device__ __forceinline__ void stream_finish(const conv_stream_params &s, const float *factors,
                                              uint8_t *slot, unsigned m0, int first,
                                              const uint32_t (&sum)[S::MT][S::SUMS])
{
    using rows = stream_rows<S>;
    const int kind = s.b.at.finish.residual_kind;
#pragma unroll
    for (int g = 0; g < S::RUNS; g++) {
        const int at = rows::channel(g);
        if (first + at >= s.b.at.out_c)
            continue;
#pragma unroll
        for (int i = 0; i < rows::ROWS; i++) {
            const unsigned m = m0 + rows::row(i);
            float          v[S::RUN];
            uint32_t       w[S::RUN / 4];
#pragma unroll
            for (int q = 0; q < S::RUN; q += 4) {
                float scale[4], bias[4];
                floats_at(factors + at + q, scale);
                floats_at(factors + S::NS + at + q, bias);
                const uint32_t *from = &sum[i / 2][(g * S::GROUP / 8 + q / 2) * 4 + i % 2 * 2];
                v[q] = fmaf(sum_of<S::KIND>(from[0]), scale[0], bias[0]);
                v[q + 1] = fmaf(sum_of<S::KIND>(from[1]), scale[1], bias[1]);
                v[q + 2] = fmaf(sum_of<S::KIND>(from[4]), scale[2], bias[2]);
                v[q + 3] = fmaf(sum_of<S::KIND>(from[5]), scale[3], bias[3]);
            }
            if (kind != SAC_RESIDUAL_NONE)
                read_run<S::RUN>(w, rows::place(slot, i * S::RUNS + g));
            if (kind == SAC_RESIDUAL_BEFORE)
                add_residual(s, S::KIND == CONV_BYTES_F8, w, v);
            stream_activate(s, false, v);
            if (kind == SAC_RESIDUAL_AFTER)
                add_residual(s, S::KIND == CONV_BYTES_F8, w, v);
            if (m < s.b.at.m)
                stream_store<S::KIND>(
                    s, pixel_at(s, m, s.b.at.y_sample, s.b.at.y_pixel) + first + at, v);
        }
    }
}

/* ---- the kernel ---- */

// Where things lie in a block's memory.
template <class S> struct stream_memory {
    uint8_t *stages, *weights, *residuals;
    float   *factors;
    int      stage;

    __device__ __forceinline__ explicit stream_memory(const conv_stream_params &s)
    {
        stage = S::PIXELS + (s.stays ? 0 : S::WEIGHTS);
        stages = stream_block_memory();
        weights = stages + S::STAGES * stage;
        residuals = weights + (s.stays ? s.turns * S::WEIGHTS : 0);
        factors = (float *)(residuals + s.slots * S::MS * S::NS);
    }
};

// What is fetched next: a turn of a tile, in order.
template <class S> struct stream_source {
    bytes_source<S> source;
    unsigned        m0;
    int             turn, step, slot;

    __device__ __forceinline__ void begin(const conv_stream_params &s)
    {
        if (s.flat)
            source.begin_flat(s.b.at, m0);
        else
            source.begin(s.b.at, m0);
        turn = 0;
    }
    __device__ __forceinline__ void fetch(const conv_stream_params &s, const stream_memory<S> &at,
                                          int first, unsigned m_step)
    {
        uint8_t *to = at.stages + step * at.stage + bytes_at(source.row, source.chunk);
        if (s.b.at.kernel_w > 1 && s.b.at.in_c <= 128)
            source.template fetch_pixels<bytes_source<S>::NEAR>(s.b, to);
        else
            source.template fetch_pixels<bytes_source<S>::FAR>(s.b, to);
        if (!s.stays)
            source.fetch_weights(s.b.at, to + S::PIXELS, first, turn);
        if (++turn == s.turns) {
            if (s.slots) {
                stream_rows<S>::fetch(s, at.residuals + slot * S::MS * S::NS, m0, first);
                slot = slot + 1 == s.slots ? 0 : slot + 1;
            }
            m0 += m_step;
            if (m0 < s.b.at.m)
                begin(s);
        } else
            source.next(s.b.at);
        step = step + 1 == S::STAGES ? 0 : step + 1;
    }
};

template <class S>
__global__ void __launch_bounds__(S::THREADS, S::RESIDENT)
    stream_kernel(const __grid_constant__ conv_stream_params s)
{
    early_begin();
#ifdef BYTES_HOPPER
    const int              n_tiles = (s.b.at.out_c + S::NS - 1) / S::NS;
    const int              first = blockIdx.x % n_tiles * S::NS;
    const unsigned         m_step = gridDim.x / n_tiles * S::MS;
    const stream_memory<S> at(s);
    stream_source<S>       next;
    uint32_t               sum[S::MT][S::SUMS];
    int                    step = 0, slot = 0;
    unsigned               m0 = blockIdx.x / n_tiles * S::MS;
    next.m0 = m0;
    next.step = next.slot = 0;
    next.begin(s);
    for (int i = threadIdx.x; i < S::NS; i += S::THREADS) {
        at.factors[i] = scale_at(s.b, first + i);
        at.factors[S::NS + i] = bias_at(s.b, first + i);
    }
    for (int i = 0; s.stays && i < s.turns; i++)
        next.source.fetch_weights(
            s.b.at, at.weights + i * S::WEIGHTS + bytes_at(next.source.row, next.source.chunk),
            first, i);
#pragma unroll 1
    for (int i = 0; i < S::AHEAD; i++) {
        if (next.m0 < s.b.at.m)
            next.fetch(s, at, first, m_step);
        fetch_commit();
    }
    for (; m0 < s.b.at.m; m0 += m_step) {
#pragma unroll 1
        for (int turn = 0; turn < s.turns; turn++) {
            fetch_wait<S::AHEAD - 1>();
            unit_sees();
            if (turn > 0)
                unit_wait<0>();
            __syncthreads();
            const uint8_t *stage = at.stages + step * at.stage;
            stream_turn<S>(stage, s.stays ? at.weights + turn * S::WEIGHTS : stage + S::PIXELS,
                           turn == 0, sum);
            if (next.m0 < s.b.at.m)
                next.fetch(s, at, first, m_step);
            fetch_commit();
            step = step + 1 == S::STAGES ? 0 : step + 1;
        }
        unit_wait<0>();
        stream_finish<S>(s, at.factors, at.residuals + slot * S::MS * S::NS, m0, first, sum);
        slot = slot + 1 >= s.slots ? 0 : slot + 1;
    }
    fetch_wait<0>();
#endif
}

/* ---- launching ---- */

// Shared memory of a variant; 0: what it needs does not fit.
template <class S> static int stream_shared(conv_stream_params *s)
{
    s->turns = (s->b.at.taps + BYTES_TAPS - 1) / BYTES_TAPS;
    s->slots = s->b.at.finish.residual_kind == SAC_RESIDUAL_NONE ? 0 : S::AHEAD / s->turns + 1;
    const int64_t other = s->slots * S::MS * S::NS + S::NS * 8 + S::STAGES * S::PIXELS;
    s->stays = other + (int64_t)s->turns * S::WEIGHTS <= S::BUDGET;
    const int64_t all = other + (s->stays ? s->turns : S::STAGES) * S::WEIGHTS;
    return all <= S::BUDGET ? (int)all : 0;
}

template <class S>
static cudaError_t run_stream(conv_stream_params s, int processors, cudaStream_t stream)
{
    const int     shared = stream_shared<S>(&s);
    const int     n_tiles = (s.b.at.out_c + S::NS - 1) / S::NS;
    const int64_t m_tiles = (s.b.at.m + S::MS - 1) / S::MS;
    if (!shared || n_tiles > processors * S::RESIDENT)
        return cudaErrorNotSupported;
    const int64_t together = processors * S::RESIDENT / n_tiles,
                  rounds = (m_tiles + together - 1) / together,
                  blocks = (m_tiles + rounds - 1) / rounds * n_tiles;
    return bytes_launch(stream_kernel<S>, (unsigned)blocks, S::THREADS, shared, stream, s);
}

template <int KIND>
static cudaError_t run_stream_variant(const conv_stream_params &s, int variant, int processors,
                                      cudaStream_t stream)
{
    switch (variant) {
    case 0: return run_stream<stream_shape<KIND, 128, 128, 2, 3, 2>>(s, processors, stream);
    case 1: return run_stream<stream_shape<KIND, 128, 64, 2, 3, 2>>(s, processors, stream);
    case 2: return run_stream<stream_shape<KIND, 128, 32, 2, 4, 2>>(s, processors, stream);
    case 3: return run_stream<stream_shape<KIND, 64, 64, 1, 4, 3>>(s, processors, stream);
    case 4: return run_stream<stream_shape<KIND, 128, 256, 2, 4, 1>>(s, processors, stream);
    default: return cudaErrorNotSupported;
    }
}

} // namespace conv

extern "C" cudaError_t conv_launch_stream(const conv_stream_params *s, enum conv_bytes_kind kind,
                                          int variant, int processors, cudaStream_t stream)
{
    using namespace conv;
    return kind == CONV_BYTES_S8
               ? run_stream_variant<CONV_BYTES_S8>(*s, variant, processors, stream)
               : run_stream_variant<CONV_BYTES_F8>(*s, variant, processors, stream);
}
