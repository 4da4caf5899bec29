// SPDX-License-Identifier: Apache-2.0
// Convolutions of few input channels as conv_stem.cu has them, on Hopper. That one is bound by
// instructions: it brings the input word by word, once for each 32 channels, and loads weights for
// each eight (18.4 million for ResNet-50's first convolution at batch 32, which took 37
// microseconds where the bytes need 14; one H100, 2026-11-28). Here a thread asks the copy engine
// for all that a square's windows see while the square before it is computed; four warps multiply
// 64 pixels by all channels at once, the pixels' taps from registers, the weights from shared
// memory, where they stay.
#include "engine/cuda/products/conv_copies.cuh"
#include "engine/cuda/products/conv_ring.cuh"
#include "engine/cuda/products/conv_stem.cuh"

namespace conv
{

struct stem_unit_memory {
    uint8_t  *weights; // [steps][columns][32]
    uint8_t  *parts;   // [CONV_STEM_PARTS][square.part]
    int2     *offsets; // [steps][4]: bytes from a pixel's first tap to a thread's two pairs
    uint64_t *come;    // [CONV_STEM_PARTS]

    __device__ __forceinline__ explicit stem_unit_memory(const conv_stem_unit_params &p)
    {
        const int steps = p.s.shape.steps;
        weights = stream_block_memory();
        parts = weights + steps * p.square.tiles * 256;
        offsets = (int2 *)(parts + CONV_STEM_PARTS * p.square.part);
        come = (uint64_t *)(offsets + steps * 4);
    }
};

// The squares of a block, one after the other.
struct stem_walk {
    unsigned columns, rows, count, at;

    __device__ __forceinline__ explicit stem_walk(const conv_stem_unit_params &p)
        : columns((unsigned)(p.s.out_w + CONV_STEM_SIDE - 1) / CONV_STEM_SIDE),
          rows((unsigned)(p.s.out_h + p.square.passes * 4 - 1) / (unsigned)(p.square.passes * 4)),
          count(columns * rows * (unsigned)p.s.n), at(blockIdx.x)
    {
    }
    __device__ __forceinline__ bool inside() const
    {
        return at < count;
    }
    __device__ __forceinline__ void next()
    {
        at += gridDim.x;
    }
    // Its first pixel.
    __device__ __forceinline__ void find(const conv_stem_unit_params &p, int &n, int &y,
                                         int &x) const
    {
        const unsigned row = at / columns;
        n = (int)(row / rows);
        y = (int)(row % rows) * p.square.passes * 4;
        x = (int)(at % columns) * CONV_STEM_SIDE;
    }
};

#ifdef BYTES_HOPPER
// Of the walk's square, if there is one.
__device__ __forceinline__ void stem_ask(const conv_stem_unit_params &p, const stem_unit_memory &m,
                                         stem_walk &walk, int slot)
{
    int n, y, x;
    if (!walk.inside())
        return;
    walk.find(p, n, y, x);
    barrier_expect(m.come + slot, p.square.rows * p.square.pitch * 4);
    copy_rows(m.parts + slot * p.square.part, &p.x,
              (x * p.s.stride - p.s.pad_left) * p.s.in_c - p.s.shape.lead - 2 * p.square.before,
              y * p.s.stride - p.s.pad_top, n, m.come + slot);
    walk.next();
}

// Of STEPS steps. first and other: a thread's pixels' first taps, eight pixels from each other.
template <int TILES, int STEPS>
__device__ __forceinline__ void stem_multiply_steps(const int2 *offsets, uint64_t weights,
                                                    const uint8_t *first, const uint8_t *other,
                                                    float (&sum)[TILES][4])
{
    uint32_t a[STEPS][4];
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        const int2 at = offsets[i * 4];
        a[i][0] = *(const uint32_t *)(first + at.x), a[i][1] = *(const uint32_t *)(other + at.x);
        a[i][2] = *(const uint32_t *)(first + at.y), a[i][3] = *(const uint32_t *)(other + at.y);
    }
    unit_begin();
#pragma unroll
    for (int i = 0; i < STEPS; i++)
        unit_multiply<TILES, false>(sum, a[i], weights + i * TILES * 16);
    unit_commit();
    unit_wait<0>();
}

// Sums of 16 pixels for each warp. Four steps at once: while one warp waits for its own, others of
// the multiprocessor have the unit.
template <int TILES>
__device__ __forceinline__ void stem_multiply_row(const conv_stem_unit_params &p,
                                                  const int2 *offsets, uint64_t weights,
                                                  const uint8_t *first, float (&sum)[TILES][4])
{
    const uint8_t *other = first + 16 * p.s.stride * p.s.shape.channels;
    int            left = p.s.shape.steps;
#pragma unroll 1
    for (; left >= 4; left -= 4, offsets += 16, weights += 4 * TILES * 16)
        stem_multiply_steps<TILES, 4>(offsets, weights, first, other, sum);
    if (left & 2)
        stem_multiply_steps<TILES, 2>(offsets, weights, first, other, sum);
    if (left & 1)
        stem_multiply_steps<TILES, 1>(offsets + (left & 2) * 4, weights + (left & 2) * TILES * 16,
                                      first, other, sum);
}

template <int TILES>
__device__ __forceinline__ void stem_squares(const conv_stem_unit_params &p,
                                             const stem_unit_memory      &m)
{
    const int warp = __shfl_sync(~0u, threadIdx.x >> 5, 0), lane = threadIdx.x & 31,
              block = blockIdx.y;
    const uint64_t           weights = unit::matrix_of<32>(shared_address(m.weights));
    const stem_biases<TILES> biases(p.s, block);
    stem_walk                ahead(p);
    ring_place               slot;
    early_begin();
    for (int i = 0; i < CONV_STEM_PARTS && threadIdx.x == 0; i++)
        stem_ask(p, m, ahead, i);
    for (stem_walk walk(p); walk.inside(); walk.next()) {
        const uint8_t *part = m.parts + slot.at * p.square.part + p.square.before * 4 +
                              (lane >> 2) * p.s.stride * p.s.shape.channels * 2;
        int n, y, x;
        walk.find(p, n, y, x);
        barrier_wait(m.come + slot.at, slot.parity);
#pragma unroll 1
        for (int row = warp; row < p.square.passes * 4; row += 4) {
            float sum[TILES][4];
            __syncwarp(); // the unit wants whole warps
            biases.begin(sum);
            stem_multiply_row<TILES>(p, m.offsets + (lane & 3), weights,
                                     part + row * p.s.stride * p.square.pitch * 4, sum);
            stem_end<TILES>(p.s, n, y + row, x, block, sum);
        }
        group_sync(0); // all have read it
        if (threadIdx.x == 0)
            stem_ask(p, m, ahead, slot.at);
        slot.next(CONV_STEM_PARTS);
    }
}
#endif

template <int TILES>
__global__ void __launch_bounds__(STEM_THREADS, CONV_STEM_BLOCKS)
    stem_unit_kernel(const __grid_constant__ conv_stem_unit_params p)
{
    early_prepare(); // weights are made by no kernel
#ifdef BYTES_HOPPER
    const stem_unit_memory m(p);
    if (threadIdx.x == 0) {
        for (int i = 0; i < CONV_STEM_PARTS; i++)
            barrier_init(m.come + i, 1);
        barriers_are_ready();
    }
    stem_fetch_weights<TILES>(p.s, blockIdx.y, m.weights);
    for (int i = threadIdx.x; i < p.s.shape.steps * 8; i += STEM_THREADS) // pairs t and t + 4
        ((int *)m.offsets)[i / 8 * 8 + i % 4 * 2 + i / 4 % 2] =
            stem_offset(p.s, p.square.pitch, i) * 4;
    fetch_commit();
    fetch_wait<0>();
    unit_sees();
    __syncthreads();
    stem_squares<TILES>(p, m);
#else
    early_begin();
#endif
}

/* ---- launching ---- */

template <int TILES>
static cudaError_t run_stem_unit(const conv_stem_unit_params &p, int processors,
                                 cudaStream_t stream)
{
    const int shared = conv_stem_square_bytes(&p.s.shape, &p.square),
              columns = p.s.out_c / 8 / TILES, room = MULTIPROCESSOR_BYTES / (shared + BLOCK_BYTES),
              resident = processors * (room < CONV_STEM_BLOCKS ? room : CONV_STEM_BLOCKS),
              side = CONV_STEM_SIDE;
    const int64_t squares = (int64_t)((p.s.out_w + side - 1) / side) *
                            ((p.s.out_h + p.square.passes * 4 - 1) / (p.square.passes * 4)) * p.s.n,
                  each = resident / columns < 1 ? 1 : resident / columns;
    if (squares > INT32_MAX)
        return cudaErrorNotSupported;
    return bytes_launch(stem_unit_kernel<TILES>,
                        dim3((unsigned)(squares < each ? squares : each), (unsigned)columns),
                        STEM_THREADS, shared, stream, p);
}

} // namespace conv

extern "C" cudaError_t conv_launch_stem_unit(const conv_stem_unit_params *p, int processors,
                                             cudaStream_t stream)
{
    switch (p->square.tiles) {
    case 2: return conv::run_stem_unit<2>(*p, processors, stream);
    case 4: return conv::run_stem_unit<4>(*p, processors, stream);
    case 6: return conv::run_stem_unit<6>(*p, processors, stream);
    case 8: return conv::run_stem_unit<8>(*p, processors, stream);
    default: return cudaErrorNotSupported;
    }
}
