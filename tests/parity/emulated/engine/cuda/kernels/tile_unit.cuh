/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels by tiles ask of the hardware, on the host: what is fetched ahead is NaN until a
 * thread has waited for it, and the tensor cores compute what PTX's documents say that each lane
 * holds. */
#pragma once

#include <cuda_fp16.h>

#include "engine/cuda/kernels/types.h"

namespace ops
{

enum { TILE_BYTES = 99 << 10, THREADS_MOST = 512, FETCHES_MOST = 4096 };
alignas(1024) inline uint16_t tile_shared[TILE_BYTES / 2];

/* What a thread has fetched and not waited for. */
struct fetches {
    struct {
        uint16_t       *to;
        const uint16_t *from;
        int             size, bytes, group; /* bytes: those that are read */
    } of[FETCHES_MOST];
    int count, groups;
};
inline struct fetches fetched[THREADS_MOST];

static inline uint16_t *tile_memory()
{
    return tile_shared;
}
static inline struct fetches *own_fetches()
{
    return &fetched[threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)];
}
template <int BYTES> void fetch_first(uint16_t *to, const uint16_t *from, int bytes)
{
    struct fetches *f = own_fetches();
    const bool      outside = to < tile_shared || to + BYTES / 2 > tile_shared + TILE_BYTES / 2;
    if (outside || (uintptr_t)to % BYTES || (uintptr_t)from % BYTES || bytes < 0 || bytes > BYTES ||
        f->count == FETCHES_MOST)
        abort(); /* a GPU stops there */
    memset(to, 0xff, BYTES);
    f->of[f->count++] = {to, from, BYTES, bytes, f->groups};
}
template <int BYTES> void fetch(uint16_t *to, const uint16_t *from, bool in)
{
    fetch_first<BYTES>(to, from, in ? BYTES : 0);
}
static inline void fetch_commit()
{
    own_fetches()->groups++;
}
template <int N> void fetch_wait()
{
    struct fetches *f = own_fetches();
    int             left = 0;
    for (int i = 0; i < f->count; i++)
        if (f->of[i].group >= f->groups - N)
            f->of[left++] = f->of[i];
        else {
            memset(f->of[i].to, 0, (size_t)f->of[i].size);
            memcpy(f->of[i].to, f->of[i].from, (size_t)f->of[i].bytes);
        }
    f->count = left;
}

/* What each lane of the warp names, until all have seen it: `read` is called with the list. */
template <class T, class READ> void of_warp(const T *own, const READ &read)
{
    const T *of[32];
    emulated::slots()[emulated::lane()] = (uintptr_t)own;
    emulated::wait_lanes(~0u);
    for (int i = 0; i < 32; i++)
        of[i] = (const T *)(uintptr_t)emulated::slots()[i];
    read(of);
    emulated::wait_lanes(~0u);
}
static inline void load(uint32_t (&v)[4], const uint16_t *from)
{
    const int lane = emulated::lane();
    if ((uintptr_t)from % 16)
        abort();
    of_warp(from, [&](const uint16_t *const *rows) {
        for (int j = 0; j < 4; j++)
            memcpy(&v[j], rows[8 * j + lane / 4] + lane % 4 * 2, 4);
    });
}
static inline void load_turned(uint32_t (&v)[4], const uint16_t *from)
{
    const int lane = emulated::lane();
    if ((uintptr_t)from % 16)
        abort();
    of_warp(from, [&](const uint16_t *const *rows) {
        for (int j = 0; j < 4; j++)
            v[j] = rows[8 * j + lane % 4 * 2][lane / 4] |
                   (uint32_t)rows[8 * j + lane % 4 * 2 + 1][lane / 4] << 16;
    });
}

static inline uint32_t turned(uint32_t v)
{
    const int g = emulated::lane() / 4, t = emulated::lane() % 4;
    uint32_t  to = 0;
    of_warp(&v, [&](const uint32_t *const *of) {
        for (int i = 0; i < 2; i++)
            to |= (*of[(2 * t + i) * 4 + g / 2] >> g % 2 * 16 & 0xffff) << i * 16;
    });
    return to;
}

struct factors {
    float a[4][2], b[2][2];
};
static inline void floats_of(float (&out)[2], uint32_t word)
{
    out[0] = half_value((uint16_t)word);
    out[1] = half_value((uint16_t)(word >> 16));
}
/* Words 0, 1 of a lane are of rows g, g + 8 and columns 2 t, 2 t + 1; 2, 3 of columns 8 further. */
static inline void multiply_halves(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    const int g = emulated::lane() / 4, t = emulated::lane() % 4;
    factors   own;
    for (int i = 0; i < 4; i++)
        floats_of(own.a[i], a[i]);
    floats_of(own.b[0], b0);
    floats_of(own.b[1], b1);
    of_warp(&own, [&](const factors *const *of) {
        for (int i = 0; i < 4; i++)
            for (int k = 0; k < 16; k++)
                d[i] += of[g * 4 + k % 8 / 2]->a[i / 2 + k / 8 * 2][k % 2] *
                        of[(2 * t + i % 2) * 4 + k % 8 / 2]->b[k / 8][k % 2];
    });
}

static inline uint32_t pair_of(float low, float high)
{
    return sac_float_to_half(low) | (uint32_t)sac_float_to_half(high) << 16;
}

/* What each warp of the blocks so far has asked of the unit: the same for all four of a group. */
inline int         unit_asked[THREADS_MOST / 32];
static inline void unit_end()
{
    for (int warp = 0; warp < THREADS_MOST / 32; warp++)
        if (unit_asked[warp] != unit_asked[warp & ~3])
            abort(); /* a GPU waits for ever */
    memset(unit_asked, 0, sizeof unit_asked);
}
template <class P>
int tile_launch(void (*kernel)(P), dim3 blocks, dim3 threads, int shared, void *, const P &params)
{
    if (shared > TILE_BYTES || blocks.y > 65535 || blocks.z > 65535 ||
        threads.x * threads.y * threads.z > THREADS_MOST)
        return cudaErrorInvalidValue;
    emulated::launch(blocks, threads, [&] {
        struct fetches *f = own_fetches(); /* blocks come one after the other */
        f->count = f->groups = 0;
        kernel(params);
    });
    unit_end();
    return cudaSuccess;
}

} // namespace ops
