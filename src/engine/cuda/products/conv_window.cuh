// SPDX-License-Identifier: Apache-2.0
// Convolutions of strides of one and two, as conv_tensor.cuh computes them, of windows that
// overlap. That one asks for each pixel once for each tap, which the second level cache has to
// give: 30 bytes a clock for each multiprocessor, so that 128 pixels take 550 clocks, where the
// unit multiplies them by 128 channels in 512 of float16 and in 256 of 8 bits (one H100,
// 2026-11-28). Here a tile's part of the map comes once for each chunk of channels and stays for
// all taps: the unit reads rows from any one on, and a tap is so many further. Of stride two it
// comes in phases, each with the taps that lie over it (conv_window.h). Weights come tap after tap.
//
// A tile's rows are not one run in memory, so threads store what they have themselves: four
// channels side by side of each sixteen.
#pragma once

#include "engine/cuda/products/conv_copies.cuh"
#include "engine/cuda/products/conv_ending.cuh"
#include "engine/cuda/products/conv_ring.cuh"

namespace conv
{

template <int KIND_, int GROUPS, int N, int BLOCKS>
struct window_kernel_shape : ring_shape<GROUPS, BLOCKS, 2> {
    static constexpr int  KIND = KIND_, NS = N, PANEL = N, SUMS = N / 2, PART = 1;
    static constexpr int  NUMBERS = PART * 8;
    static constexpr bool HALF = KIND == CONV_BYTES_F16;
};

/* ---- shared memory ---- */

template <class S> struct window_memory {
    static constexpr int FACTORS = 2 * S::NS * (int)sizeof(float),
                         OTHERS = S::GROUPS * FACTORS +
                                  (RING_MAX + CONV_WINDOW_PARTS) * 2 * (int)sizeof(uint64_t);
    static_assert(OTHERS <= CONV_WINDOW_OTHERS, "the host counts with it");

    uint8_t  *parts, *stages, *factors;
    uint64_t *full, *empty, *come, *taken;

    __device__ __forceinline__ explicit window_memory(const conv_tensor_params &p)
    {
        parts = stream_block_memory();
        stages = parts + CONV_WINDOW_PARTS * p.window.part;
        factors = stages + p.stages * S::NS * p.chunk;
        full = (uint64_t *)(factors + S::GROUPS * FACTORS);
        empty = full + RING_MAX;
        come = empty + RING_MAX;
        taken = come + CONV_WINDOW_PARTS;
    }
};

__host__ __device__ __forceinline__ int out_height(const conv_tensor_params &p)
{
    return p.s.b.at.pixels / p.s.b.at.out_w;
}

// The tiles of a block. Channels of the same pixels come one after the other, for the cache.
struct window_tile {
    int n, y, x, channel; /* the first ones */
};
template <class S> struct window_walk {
    unsigned channels, columns, rows, at, tiles; /* tiles of each */

    __device__ __forceinline__ explicit window_walk(const conv_tensor_params &p)
    {
        channels = (unsigned)(p.s.b.at.out_c + S::NS - 1) / S::NS;
        columns = (unsigned)(p.s.b.at.out_w + p.window.cols - 1) / (unsigned)p.window.cols;
        rows = (unsigned)(out_height(p) + p.window.rows - 1) / (unsigned)p.window.rows;
        tiles = channels * columns * rows *
                ((unsigned)(p.runs + p.window.samples - 1) / (unsigned)p.window.samples);
        at = blockIdx.x;
    }
    __device__ __forceinline__ bool inside() const
    {
        return at < tiles;
    }
    __device__ __forceinline__ void next()
    {
        at += gridDim.x;
    }
    __device__ __forceinline__ window_tile tile(const conv_tensor_params &p) const
    {
        const unsigned part = at / channels, row = part / columns, n = row / rows;
        return {(int)n * p.window.samples, (int)(row - n * rows) * p.window.rows,
                (int)(part - row * columns) * p.window.cols, (int)(at - part * channels) * S::NS};
    }
};

#ifdef BYTES_HOPPER
template <class S>
__device__ __forceinline__ void begin_barriers(const conv_tensor_params &p,
                                               const window_memory<S>   &memory)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < p.stages; i++) {
            barrier_init(memory.full + i, 1);
            barrier_init(memory.empty + i, S::GROUPS * 4);
        }
        for (int i = 0; i < CONV_WINDOW_PARTS; i++) {
            barrier_init(memory.come + i, 1);
            barrier_init(memory.taken + i, S::GROUPS * 4);
        }
        barriers_are_ready();
    }
    __syncthreads();
}

/* ---- who asks ---- */

// Of all taps of a chunk of channels, phase after phase, then of those of the next one. No step
// before this one makes them.
template <class S>
__device__ __forceinline__ void ask_for_taps(const conv_tensor_params &p,
                                             const window_memory<S>   &memory)
{
    const conv_copy_map *map = &p.maps[TENSOR_WEIGHTS];
    const int            bytes = S::NS * p.chunk, taps = p.window.phase[p.window.phases - 1].taps;
    ring_place           place;
    copy_foresee(map);
    for (window_walk<S> walk(p); walk.inside(); walk.next()) {
        const int sixteen = walk.tile(p).channel / 16;
        for (int c = 0; c < p.s.b.at.in_c; c += p.chunk)
            for (int tap = 0; tap < taps; tap++, place.next(p.stages)) {
                const int from = p.window.tap[tap].index * p.s.b.at.in_c + c;
                barrier_wait(memory.empty + place.at, place.parity ^ 1);
                barrier_expect(memory.full + place.at, bytes);
                copy_turned(memory.stages + place.at * bytes, map, from, sixteen,
                            memory.full + place.at);
            }
    }
}

template <class S>
__device__ __forceinline__ void ask_for_parts(const conv_tensor_params &p,
                                              const window_memory<S>   &memory)
{
    const conv_window_shape &w = p.window;
    ring_place               place;
    for (int i = 0; i < w.phases; i++)
        copy_foresee(&p.maps[TENSOR_PHASES + i]);
    early_begin();
    for (window_walk<S> walk(p); walk.inside(); walk.next()) {
        const window_tile t = walk.tile(p);
        for (int c = 0; c < p.s.b.at.in_c; c += p.chunk)
            for (int i = 0; i < w.phases; i++, place.next(CONV_WINDOW_PARTS)) {
                const conv_window_phase &phase = w.phase[i];
                barrier_wait(memory.taken + place.at, place.parity ^ 1);
                barrier_expect(memory.come + place.at,
                               w.samples * phase.height * w.width * p.chunk);
                copy_part(memory.parts + place.at * w.part, &p.maps[TENSOR_PHASES + i], c,
                          t.x + phase.right, t.y + phase.down, t.n, memory.come + place.at);
            }
    }
}

/* ---- who multiplies ---- */

template <class S, int CHUNK>
__device__ __forceinline__ void window_turn(uint64_t a, uint64_t b, bool first,
                                            uint32_t (&sum)[S::SUMS])
{
    unit_begin();
#pragma unroll
    for (int k = 0; k < CHUNK; k += 32)
        bytes_wgmma(sum, a + k / 16, b + k / 16, !first || k > 0, bytes_kind<S::KIND>());
    unit_commit();
}

// Where a group is in its rings.
struct window_rings {
    ring_place weights, part;
};

template <class S, int CHUNK>
__device__ __forceinline__ void multiply_windows(const conv_tensor_params &p,
                                                 const window_memory<S> &memory, int group,
                                                 window_rings &rings, uint32_t (&sum)[S::SUMS])
{
    const uint64_t a = unit::matrix_of<CHUNK>(shared_address(memory.parts) + group * 64 * CHUNK),
                   b = unit::matrix_of<CHUNK>(shared_address(memory.stages));
    int before = 0, leaving = -1, turn = 0; // a stage, a part, read by the turn before
    __syncwarp();                           // the unit wants whole warps
    for (int c = 0; c < p.s.b.at.in_c; c += CHUNK)
        for (int i = 0, tap = 0; i < p.window.phases; i++) {
            const uint64_t part = a + rings.part.at * (p.window.part / 16);
            const int      end = p.window.phase[i].taps;
            barrier_wait(memory.come + rings.part.at, rings.part.parity);
#pragma unroll 1
            for (; tap < end; tap++, turn++) {
                const int at = p.window.tap[tap].at * (CHUNK / 16);
                barrier_wait(memory.full + rings.weights.at, rings.weights.parity);
                window_turn<S, CHUNK>(part + at, b + rings.weights.at * (S::NS * CHUNK / 16),
                                      turn == 0, sum);
                if (turn > 0) {
                    unit_wait<1>();
                    ring_release(memory.empty + before);
                    if (leaving >= 0)
                        ring_release(memory.taken + leaving);
                    leaving = -1;
                }
                before = rings.weights.at;
                rings.weights.next(p.stages);
            }
            leaving = rings.part.at;
            rings.part.next(CONV_WINDOW_PARTS);
        }
    unit_wait<0>();
    ring_release(memory.empty + before);
    ring_release(memory.taken + leaving);
}

// Where a thread's two positions of a tile lie.
struct window_positions {
    int sample[2], y[2], x[2];

    __device__ __forceinline__ window_positions(const conv_tensor_params &p, int group)
    {
        const int each = p.window.height * p.window.width,
                  first = group * 64 + (threadIdx.x >> 5 & 3) * 16 + (threadIdx.x >> 2 & 7);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int at = first + i * 8, in = at % each;
            sample[i] = at / each;
            y[i] = in / p.window.width;
            x[i] = in - y[i] * p.window.width;
        }
    }
    // Their numbers in memory; a position that is not stored has no output.
    __device__ __forceinline__ in_maps places(const conv_tensor_params &p,
                                              const window_tile        &t) const
    {
        const conv_tile_params &at = p.s.b.at;
        const conv_finish      &finish = at.finish;
        const int               out_h = out_height(p), k = t.channel + (threadIdx.x & 3) * 4,
                  y_bytes = number_bytes(p.s.b.y_kind),
                  other_bytes = number_bytes(p.s.b.residual_kind);
        in_maps m;
        m.channels = at.out_c - t.channel;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int  n = t.n + sample[i], row = t.y + y[i], column = t.x + x[i];
            const bool stored = sample[i] < p.window.samples && n < p.runs &&
                                y[i] < p.window.rows && row < out_h && x[i] < p.window.cols &&
                                column < at.out_w;
            const int64_t pixel = (int64_t)row * at.out_w + column;
            m.y[i] = stored ? (uint8_t *)at.y + (n * at.y_sample + pixel * at.y_pixel + k) * y_bytes
                            : nullptr;
            m.residual[i] =
                (const uint8_t *)finish.residual +
                (n * finish.residual_sample + pixel * finish.residual_pixel + k) * other_bytes;
        }
        return m;
    }
};

template <class S>
__device__ __forceinline__ void multiply_window_tiles(const conv_tensor_params &p,
                                                      const window_memory<S>   &memory)
{
    const int group = __shfl_sync(~0u, threadIdx.x >> 7, 0); // the same to all of a warp
    const window_positions positions(p, group);
    float *const           factors = (float *)(memory.factors + group * memory.FACTORS);
    window_rings           rings;
    uint32_t               sum[S::SUMS];
    early_begin(); // residuals are read, and outputs stored, by each thread itself
    for (window_walk<S> walk(p); walk.inside(); walk.next()) {
        const window_tile     t = walk.tile(p);
        const ring_factors<S> of_tile(p, t.channel);
        if (p.chunk == 128)
            multiply_windows<S, 128>(p, memory, group, rings, sum);
        else
            multiply_windows<S, 64>(p, memory, group, rings, sum);
        group_sync(group); // the last tile's have been read
        of_tile.put(p, factors);
        group_sync(group);
        const in_maps places = positions.places(p, t);
        with_ending<S>(p, [&](auto ending) {
            using E = decltype(ending);
#pragma unroll E::UNROLL
            for (int part = 0; part < S::SUMS / S::NUMBERS; part++)
                ending_part<S, E>(p, factors, places, t.channel, part, part * 2 * S::PART, sum);
        });
    }
}
#endif

template <class S>
__global__ void __launch_bounds__(S::THREADS, S::RESIDENT)
    window_kernel(const __grid_constant__ conv_tensor_params p)
{
    early_prepare();
#ifdef BYTES_HOPPER
    const window_memory<S> memory(p);
    const int              warp = __shfl_sync(~0u, threadIdx.x >> 5, 0);
    begin_barriers(p, memory);
    if (warp < S::GROUPS * 4) {
        if constexpr (S::GIVES)
            registers_take<S::MULTIPLYING>();
        multiply_window_tiles<S>(p, memory);
    } else {
        if constexpr (S::GIVES)
            registers_give<S::ASKING>();
        if (warp == S::GROUPS * 4 && elected())
            ask_for_parts<S>(p, memory);
        else if (warp == S::GROUPS * 4 + 1 && elected())
            ask_for_taps<S>(p, memory);
    }
#else
    early_begin();
#endif
}

/* ---- launching ---- */

template <class S>
static cudaError_t run_window(conv_tensor_params p, int processors, cudaStream_t stream)
{
    const conv_tile_params  &at = p.s.b.at;
    const conv_window_shape &w = p.window;
    if (w.phases == 0)
        return cudaErrorNotSupported;
    const int64_t tiles = (int64_t)((p.runs + w.samples - 1) / w.samples) *
                          ((out_height(p) + w.rows - 1) / w.rows) *
                          ((at.out_w + w.cols - 1) / w.cols) * ((at.out_c + S::NS - 1) / S::NS),
                  of_each = (tiles + processors - 1) / processors;
    const int stage = S::NS * p.chunk,
              others = CONV_WINDOW_PARTS * p.window.part + window_memory<S>::OTHERS;
    int blocks = of_each < S::RESIDENT ? (int)of_each : S::RESIDENT;
    for (;; blocks--) {
        p.stages = (MULTIPROCESSOR_BYTES / blocks - BLOCK_BYTES - others) / stage;
        if (p.stages >= CONV_WINDOW_STAGES || blocks == 1)
            break;
    }
    p.ending = ending_of<S>(p);
    p.stages = p.stages < RING_MAX ? p.stages : RING_MAX;
    if (p.stages < 2 || tiles > INT32_MAX)
        return cudaErrorNotSupported;
    const int64_t grid = tiles < processors * blocks ? tiles : processors * blocks;
    return bytes_launch(window_kernel<S>, (unsigned)grid, S::THREADS, p.stages * stage + others,
                        stream, p);
}

} // namespace conv
