// SPDX-License-Identifier: Apache-2.0
// Convolutions and products of 8-bit numbers and of float16 on Hopper, whose pieces of 128 bytes of
// taps are brought by its copy engine: a warp asks for the pixels under a window's taps (the engine
// finds them, and fills in zeros outside of the map) and another one for the weights, into a ring
// of stages, while one to three groups of four warps multiply 64 pixels each with its matrix unit.
// Who asks is one thread, which takes some 200 clocks for a turn. What is behind the sums goes
// through panels in shared memory, where residuals lie, too, and from where the engine stores it.
// Blocks stay for many tiles, so that the next one's pieces come while a tile ends. Pairs of blocks
// that had each ask for half of their weights for both (multicast) took a third longer: what comes
// so comes with 33 bytes a clock, what all blocks ask for at about the same time with 83, and
// pixels, which are others', with 30 (one H100, 2026-11-28).
//
// A thread of the unit gets two neighbouring columns of each eight. The engine brings the weights'
// rows in another order, so that a thread has four channels of each sixteen side by side: column
// 8 j + 2 t + e is channel 4 t + 2 j + e.
//
// Of 8-bit numbers it computes what conv_stream.cu does, with residuals of float16 too; of float16
// what conv_tile.cu does. Tiles are of runs of pixels that follow each other in memory: one of all
// samples, or one of each. Whatever the numbers, channels and taps of the input and of the weights
// are counted in bytes.
#pragma once

#include "engine/cuda/products/conv_copies.cuh"
#include "engine/cuda/products/conv_ending.cuh"
#include "engine/cuda/products/conv_ring.cuh"
#include "engine/cuda/products/conv_window.cuh"

namespace conv
{

template <int KIND_, int GROUPS, int N, int BLOCKS>
struct tensor_shape : ring_shape<GROUPS, BLOCKS, 2> {
    using ring = ring_shape<GROUPS, BLOCKS, 2>;
    static constexpr int  KIND = KIND_, MS = ring::MS, NS = N, SUMS = N / 2;
    static constexpr bool HALF = KIND == CONV_BYTES_F16, GIVES = ring::GIVES;
    static constexpr int  PANEL = N < 64 ? N : 64, PANELS = N / PANEL;
    // Sixteens of channels of a panel whose numbers are computed together, by registers.
    static constexpr int PART = GIVES || SUMS <= 32 ? 2 : 1, NUMBERS = PART * 8;
    static constexpr int PIXELS = MS * BYTES_TAPS, STAGE = PIXELS + NS * BYTES_TAPS;
    static_assert(PANEL % (16 * PART) == 0 && N % PANEL == 0, "panels are whole");
};

/* ---- shared memory ---- */

template <class S> struct tensor_memory {
    // Panels of a group, and a group's scales and biases of a tile.
    static constexpr int                           FACTORS = 2 * S::NS * (int)sizeof(float);
    static __host__ __device__ __forceinline__ int panel(int kind)
    {
        return 64 * S::PANEL * (kind == CONV_F16 ? 2 : 1);
    }
    static __host__ __device__ __forceinline__ int others(const conv_tensor_params &p)
    {
        return S::GROUPS * (p.panels * panel(p.s.b.y_kind) + p.slots * panel(p.s.b.residual_kind) +
                            FACTORS) +
               (RING_MAX * 2 + S::GROUPS * p.slots) * (int)sizeof(uint64_t);
    }

    uint8_t  *stages, *out, *residuals, *factors;
    uint64_t *full, *empty, *come;

    __device__ __forceinline__ explicit tensor_memory(const conv_tensor_params &p)
    {
        stages = stream_block_memory();
        out = stages + p.stages * S::STAGE;
        residuals = out + S::GROUPS * p.panels * panel(p.s.b.y_kind);
        factors = residuals + S::GROUPS * p.slots * panel(p.s.b.residual_kind);
        full = (uint64_t *)(factors + S::GROUPS * FACTORS);
        empty = full + RING_MAX;
        come = empty + RING_MAX;
    }
};

struct tensor_tile {
    int run, pixel, channel; /* the first of the run, and of all */
};
// The tiles of a block. Channels of the same pixels come one after the other, for the cache.
template <class S> struct tensor_walk {
    unsigned of_run, rows, columns, row, column, row_step, column_step; /* of tiles */

    __device__ __forceinline__ explicit tensor_walk(const conv_tensor_params &p)
        : of_run((unsigned)(p.run_pixels + S::MS - 1) / S::MS), rows(of_run * (unsigned)p.runs),
          columns((unsigned)(p.s.b.at.out_c + S::NS - 1) / S::NS), row(blockIdx.x / columns),
          column(blockIdx.x - row * columns), row_step(gridDim.x / columns),
          column_step(gridDim.x - row_step * columns)
    {
    }
    __device__ __forceinline__ bool inside() const
    {
        return row < rows;
    }
    __device__ __forceinline__ void next()
    {
        row += row_step;
        column += column_step;
        if (column >= columns) {
            column -= columns;
            row++;
        }
    }
    __device__ __forceinline__ tensor_tile tile() const
    {
        const unsigned run = rows == of_run ? 0 : row / of_run;
        return {(int)run, (int)(row - run * of_run) * S::MS, (int)column * S::NS};
    }
};

#ifdef BYTES_HOPPER
template <class S>
__device__ __forceinline__ void begin_barriers(const conv_tensor_params &p,
                                               const tensor_memory<S>   &memory)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < p.stages; i++) {
            barrier_init(memory.full + i, 2); // who asks for pixels, and who for weights
            barrier_init(memory.empty + i, S::GROUPS * 4);
        }
        for (int i = 0; i < S::GROUPS * p.slots; i++)
            barrier_init(memory.come + i, 1);
        barriers_are_ready();
    }
    __syncthreads();
}

/* ---- who asks for pieces ---- */

// The next row of CHUNK bytes: which channels, counted from the first tap of all and from their
// own, and how far that lies from the window's first. What is outside is zeros. It is counted on
// alone: who asks does so one instruction after the other, and a division would cost it as much
// time as all else of a turn.
template <int CHUNK> struct tensor_taps {
    int first = 0, c = 0, right = 0, down = 0;

    __device__ __forceinline__ void next(const conv_tensor_params &p)
    {
        const conv_tile_params &at = p.s.b.at;
        c += CHUNK;
        if (c < at.in_c)
            return;
        c = 0;
        first += at.in_c;
        right += at.dilation_w;
        if (right == at.kernel_w * at.dilation_w) {
            right = 0;
            down += first < at.taps ? at.dilation_h : 0;
        }
    }
};

// Both wait for each stage. A turn is as many rows as make up 128 bytes of taps. Weights, which no
// step before this one makes, come while that ends.
template <class S, int CHUNK>
__device__ __forceinline__ void ask_for_weights(const conv_tensor_params &p,
                                                const tensor_memory<S>   &memory)
{
    const conv_copy_map *map = &p.maps[TENSOR_WEIGHTS];
    ring_place           place;
    copy_foresee(map);
    copy_foresee(&p.maps[TENSOR_Y]);
    for (tensor_walk<S> walk(p); walk.inside(); walk.next()) {
        const int          sixteen = walk.tile().channel / 16;
        tensor_taps<CHUNK> taps;
        for (int turn = 0; turn < p.turns; turn++) {
            uint8_t  *to = memory.stages + place.at * S::STAGE + S::PIXELS;
            uint64_t *full = memory.full + place.at;
            barrier_wait(memory.empty + place.at, place.parity ^ 1);
            barrier_expect(full, S::STAGE - S::PIXELS);
#pragma unroll
            for (int i = 0; i < BYTES_TAPS; i += CHUNK) {
                copy_turned(to + i * S::NS, map, taps.first + taps.c, sixteen, full);
                taps.next(p);
            }
            place.next(p.stages);
        }
    }
}

// A tile's pixels under the window's first tap: which, and of which run.
struct tensor_place {
    int x, y, n;
};
template <class S>
__device__ __forceinline__ tensor_place first_pixel_of(const conv_tensor_params &p,
                                                       const tensor_tile        &t)
{
    const conv_tile_params &at = p.s.b.at;
    if (p.s.flat)
        return {t.pixel, 0, t.run};
    const int n = p.runs > 1 ? t.run : t.pixel / at.pixels,
              pixel = p.runs > 1 ? t.pixel : t.pixel - n * at.pixels, y = pixel / at.out_w;
    return {(pixel - y * at.out_w) * at.stride_w - at.pad_left, y * at.stride_h - at.pad_top, n};
}

template <class S, int CHUNK>
__device__ __forceinline__ void ask_for_pixels(const conv_tensor_params &p,
                                               const tensor_memory<S>   &memory)
{
    const conv_copy_map *map = &p.maps[TENSOR_X];
    const int            all_taps = p.s.b.at.taps, beyond = p.s.b.at.in_c;
    ring_place           place;
    copy_foresee(map);
    early_begin();
    for (tensor_walk<S> walk(p); walk.inside(); walk.next()) {
        const tensor_place from = first_pixel_of<S>(p, walk.tile());
        tensor_taps<CHUNK> taps;
        for (int turn = 0; turn < p.turns; turn++) {
            uint8_t  *to = memory.stages + place.at * S::STAGE;
            uint64_t *full = memory.full + place.at;
            barrier_wait(memory.empty + place.at, place.parity ^ 1);
            barrier_expect(full, S::PIXELS);
#pragma unroll
            for (int i = 0; i < BYTES_TAPS; i += CHUNK) {
                // Behind the last tap are zeros.
                const int c = CHUNK == BYTES_TAPS || taps.first < all_taps ? taps.c : beyond;
                if (p.s.flat)
                    copy_rows(to + i * S::MS, map, c, from.x, from.n, full);
                else
                    copy_window(to + i * S::MS, map, c, from.x, from.y, from.n, taps.right,
                                taps.down, full);
                taps.next(p);
            }
            place.next(p.stages);
        }
    }
}

// which: of the warps that ask.
template <class S, int CHUNK>
__device__ __forceinline__ void ask_for(const conv_tensor_params &p, const tensor_memory<S> &memory,
                                        int which)
{
    if (which == 0)
        ask_for_pixels<S, CHUNK>(p, memory);
    else if (which == 1)
        ask_for_weights<S, CHUNK>(p, memory);
}

// A group's panels of residuals, which one of its threads asks for: as many are under way as it has
// slots.
template <class S> struct tensor_residuals {
    tensor_walk<S> walk;
    int            panel = 0;

    __device__ __forceinline__ explicit tensor_residuals(const conv_tensor_params &p) : walk(p)
    {
    }
    __device__ __forceinline__ void ask(const conv_tensor_params &p, const tensor_memory<S> &memory,
                                        int group, int slot)
    {
        if (!walk.inside())
            return;
        const tensor_tile t = walk.tile();
        const int k = t.channel + panel * S::PANEL, bytes = memory.panel(p.s.b.residual_kind),
                  number = group * p.slots + slot;
        barrier_expect(memory.come + number, bytes);
        copy_rows(memory.residuals + number * bytes, &p.maps[TENSOR_RESIDUAL],
                  p.s.b.residual_kind == CONV_F16 ? 2 * k : k, t.pixel + group * 64, t.run,
                  memory.come + number);
        if (++panel == S::PANELS || k + S::PANEL >= p.s.b.at.out_c) {
            panel = 0;
            walk.next();
        }
    }
};

/* ---- who multiplies ---- */

template <class S, int CHUNK>
__device__ __forceinline__ void tensor_turn(uint64_t a, uint64_t b, bool first,
                                            uint32_t (&sum)[S::SUMS])
{
    unit_begin();
#pragma unroll
    for (int k = 0; k < BYTES_TAPS; k += 32) {
        const int piece = k & ~(CHUNK - 1), in = k & (CHUNK - 1);
        bytes_wgmma(sum, a + (piece * S::MS + in) / 16, b + (piece * S::NS + in) / 16,
                    !first || k > 0, bytes_kind<S::KIND>());
    }
    unit_commit();
}

template <class S, int CHUNK>
__device__ __forceinline__ void multiply_chunks(const conv_tensor_params &p,
                                                const tensor_memory<S> &memory, int group,
                                                ring_place &place, uint32_t (&sum)[S::SUMS])
{
    const unsigned stages = shared_address(memory.stages);
    const uint64_t a = unit::matrix_of<CHUNK>(stages + group * 64 * CHUNK),
                   b = unit::matrix_of<CHUNK>(stages + S::PIXELS);
    int before = 0;
    __syncwarp(); // the unit wants whole warps
#pragma unroll 1
    for (int turn = 0; turn < p.turns; turn++) {
        const unsigned at = place.at * (S::STAGE / 16);
        barrier_wait(memory.full + place.at, place.parity);
        tensor_turn<S, CHUNK>(a + at, b + at, turn == 0, sum);
        if (turn > 0) {
            unit_wait<1>();
            ring_release(memory.empty + before);
        }
        before = place.at;
        place.next(p.stages);
    }
    unit_wait<0>();
    ring_release(memory.empty + before);
}

template <class S>
__device__ __forceinline__ void tensor_multiply(const conv_tensor_params &p,
                                                const tensor_memory<S> &memory, int group,
                                                ring_place &place, uint32_t (&sum)[S::SUMS])
{
    switch (p.chunk) {
    case 128: multiply_chunks<S, 128>(p, memory, group, place, sum); break;
    case 64: multiply_chunks<S, 64>(p, memory, group, place, sum); break;
    default: multiply_chunks<S, 32>(p, memory, group, place, sum); break;
    }
}

// Where a group is in its rings of panels.
template <class S> struct tensor_rings {
    ring_place          residual;
    tensor_residuals<S> ahead;
    int                 panel = 0;

    __device__ __forceinline__ explicit tensor_rings(const conv_tensor_params &p) : ahead(p)
    {
    }
};

// All of a group have written a panel: it is stored, and the one that comes next is free.
template <class S>
__device__ __forceinline__ void store_panel(const conv_tensor_params &p, int group, int k,
                                            const tensor_tile &t, const uint8_t *panel)
{
    const bool one = (threadIdx.x & 127) == 0, half = S::HALF || p.s.b.y_kind == CONV_F16;
    unit_sees();
    if (one && p.panels > 1)
        copy_back_wait<0>();
    group_sync(group);
    if (one)
        copy_back(&p.maps[TENSOR_Y], half ? 2 * k : k, t.pixel + group * 64, t.run, panel);
    if (p.panels == 1) {
        if (one)
            copy_back_wait<0>();
        group_sync(group);
    }
}

template <class S, class E>
__device__ __forceinline__ void
tensor_end(const conv_tensor_params &p, const tensor_memory<S> &memory, int group,
           const tensor_tile &t, tensor_rings<S> &rings, const uint32_t (&sum)[S::SUMS])
{
    constexpr int PARTS = S::PANEL / 16 / S::PART;
    const float  *factors = (const float *)(memory.factors + group * memory.FACTORS);
#pragma unroll E::UNROLL
    for (int panel = 0; panel < S::PANELS; panel++) {
        const int k = t.channel + panel * S::PANEL;
        if (k >= p.s.b.at.out_c)
            break;
        const int slot = group * p.slots + rings.residual.at;
        uint8_t  *to = memory.out + (group * p.panels + rings.panel) * memory.panel(p.s.b.y_kind);
        const uint8_t *other = memory.residuals + slot * memory.panel(p.s.b.residual_kind);
        if (p.slots)
            barrier_wait(memory.come + slot, rings.residual.parity);
#pragma unroll E::UNROLL
        for (int i = 0; i < PARTS; i++)
            ending_part<S, E>(p, factors, in_panels<S>{other, to}, t.channel, panel * PARTS + i,
                              i * 2 * S::PART, sum);
        store_panel<S>(p, group, k, t, to);
        rings.panel = rings.panel + 1 == p.panels ? 0 : rings.panel + 1;
        if (p.slots) {
            if ((threadIdx.x & 127) == 0)
                rings.ahead.ask(p, memory, group, rings.residual.at);
            rings.residual.next(p.slots);
        }
    }
}

template <class S>
__device__ __forceinline__ void multiply_tiles(const conv_tensor_params &p,
                                               const tensor_memory<S>   &memory)
{
    const int       group = __shfl_sync(~0u, threadIdx.x >> 7, 0); // the same to all of a warp
    ring_place      place;
    tensor_rings<S> rings(p);
    uint32_t        sum[S::SUMS];
    if (p.slots && (threadIdx.x & 127) == 0) {
        early_begin();
        for (int i = 0; i < p.slots; i++)
            rings.ahead.ask(p, memory, group, i);
    }
    for (tensor_walk<S> walk(p); walk.inside(); walk.next()) {
        const tensor_tile     t = walk.tile();
        const ring_factors<S> factors(p, t.channel);
        tensor_multiply<S>(p, memory, group, place, sum);
        factors.put(p, (float *)(memory.factors + group * memory.FACTORS));
        group_sync(group);
        with_ending<S>(p, [&](auto ending) {
            tensor_end<S, decltype(ending)>(p, memory, group, t, rings, sum);
        });
    }
    copy_back_wait<0>();
}
#endif

template <class S>
__global__ void __launch_bounds__(S::THREADS, S::RESIDENT)
    tensor_kernel(const __grid_constant__ conv_tensor_params p)
{
    early_prepare(); // who asks begins, where it asks for what others make
#ifdef BYTES_HOPPER
    const tensor_memory<S> memory(p);
    const int              warp = __shfl_sync(~0u, threadIdx.x >> 5, 0); // the same to all of it
    begin_barriers(p, memory);
    if (warp < S::GROUPS * 4) {
        if constexpr (S::GIVES)
            registers_take<S::MULTIPLYING>();
        multiply_tiles<S>(p, memory);
    } else {
        if constexpr (S::GIVES)
            registers_give<S::ASKING>();
        if (!elected())
            return;
        switch (p.chunk) {
        case 128: ask_for<S, 128>(p, memory, warp - S::GROUPS * 4); break;
        case 64: ask_for<S, 64>(p, memory, warp - S::GROUPS * 4); break;
        default: ask_for<S, 32>(p, memory, warp - S::GROUPS * 4); break;
        }
    }
#else
    early_begin();
#endif
}

/* ---- launching ---- */

// Shared memory for `blocks` on a multiprocessor. Of the output and of the residual two panels are
// under way at once, where three stages have room beside them. Returns the bytes of all.
template <class S> static int share_memory(conv_tensor_params *p, int blocks)
{
    const int budget = MULTIPROCESSOR_BYTES / blocks - BLOCK_BYTES;
    int       others = 0;
    for (int most = 2; most >= 1; most--) {
        p->panels = most;
        p->slots = p->s.b.at.finish.residual_kind == SAC_RESIDUAL_NONE ? 0 : most;
        others = tensor_memory<S>::others(*p);
        p->stages = (budget - others) / S::STAGE;
        if (p->stages >= 3)
            break;
    }
    p->stages = p->stages < RING_MAX ? p->stages : RING_MAX;
    return p->stages * S::STAGE + others;
}

template <class S>
static cudaError_t run_tensor(conv_tensor_params p, int processors, cudaStream_t stream)
{
    const conv_tile_params &at = p.s.b.at;
    const int64_t           tiles = (int64_t)p.runs * ((p.run_pixels + S::MS - 1) / S::MS) *
                          ((at.out_c + S::NS - 1) / S::NS),
                  taps = (int64_t)at.kernel_h * at.kernel_w,
                  of_each = (tiles + processors - 1) / processors, // of a multiprocessor
        blocks = of_each < S::RESIDENT ? of_each : S::RESIDENT;
    // Few tiles leave memory to more pieces that are under way.
    const int shared = share_memory<S>(&p, (int)blocks);
    p.ending = ending_of<S>(p);
    p.turns =
        (int)((taps * ((at.in_c + p.chunk - 1) / p.chunk) * p.chunk + BYTES_TAPS - 1) / BYTES_TAPS);
    if (p.stages < 2 || tiles > INT32_MAX)
        return cudaErrorNotSupported;
    const int64_t grid = tiles < processors * blocks ? tiles : processors * blocks;
    return bytes_launch(tensor_kernel<S>, (unsigned)grid, S::THREADS, shared, stream, p);
}

// Sizes as tensor_sizes has them. Each kind is compiled in a file of its own, all at the same time.
template <int KIND>
static cudaError_t run_tensor_variant(const conv_tensor_params &p, int variant, int processors,
                                      cudaStream_t stream)
{
    switch (variant) {
    case 0: return run_tensor<tensor_shape<KIND, 2, 256, 1>>(p, processors, stream);
    case 1: return run_tensor<tensor_shape<KIND, 2, 192, 1>>(p, processors, stream);
    case 2: return run_tensor<tensor_shape<KIND, 2, 128, 2>>(p, processors, stream);
    case 3: return run_tensor<tensor_shape<KIND, 2, 64, 2>>(p, processors, stream);
    case 4: return run_tensor<tensor_shape<KIND, 2, 32, 2>>(p, processors, stream);
    case 5: return run_tensor<tensor_shape<KIND, 1, 256, 2>>(p, processors, stream);
    case 6: return run_tensor<tensor_shape<KIND, 1, 128, 3>>(p, processors, stream);
    case 7: return run_tensor<tensor_shape<KIND, 1, 64, 4>>(p, processors, stream);
    case 8: return run_tensor<tensor_shape<KIND, 3, 192, 1>>(p, processors, stream);
    case 9: return run_window<window_kernel_shape<KIND, 4, 128, 1>>(p, processors, stream);
    case 10: return run_window<window_kernel_shape<KIND, 4, 64, 1>>(p, processors, stream);
    case 11: return run_window<window_kernel_shape<KIND, 2, 128, 2>>(p, processors, stream);
    case 12: return run_window<window_kernel_shape<KIND, 2, 64, 2>>(p, processors, stream);
    default: return cudaErrorNotSupported;
    }
}

cudaError_t run_tensor_s8(const conv_tensor_params &p, int variant, int processors,
                          cudaStream_t stream);
cudaError_t run_tensor_f8(const conv_tensor_params &p, int variant, int processors,
                          cudaStream_t stream);

} // namespace conv
