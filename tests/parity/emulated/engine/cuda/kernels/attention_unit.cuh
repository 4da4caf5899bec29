/* SPDX-License-Identifier: Apache-2.0 */
/* What attention_tiles.cuh asks of the hardware, on the host: what is fetched ahead is NaN until a
 * thread has waited for it, and the tensor cores compute what PTX's documents say that each lane
 * holds. */
#pragma once

#include <cuda_fp16.h>

#include "engine/cuda/kernels/types.h"

extern "C" uint8_t sac_float_to_f8(float f);

namespace ops
{

enum { ATTENTION_BYTES = 99 << 10, THREADS_MOST = 256, FETCHES_MOST = 4096 };
alignas(1024) inline uint16_t attention_shared[ATTENTION_BYTES / 2];

/* What a thread has fetched and not waited for. */
struct fetches {
    struct {
        uint16_t       *to;
        const uint16_t *from;
        int             bytes, group;
        bool            in;
    } of[FETCHES_MOST];
    int count, groups;
};
inline struct fetches fetched[THREADS_MOST];

static inline uint16_t *attention_memory()
{
    return attention_shared;
}
static inline struct fetches *own_fetches()
{
    return &fetched[threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)];
}
template <int BYTES> void fetch(uint16_t *to, const uint16_t *from, bool in)
{
    struct fetches *f = own_fetches();
    const bool      outside =
        to < attention_shared || to + BYTES / 2 > attention_shared + ATTENTION_BYTES / 2;
    if (outside || (uintptr_t)to % BYTES || (uintptr_t)from % BYTES || f->count == FETCHES_MOST)
        abort(); /* a GPU stops there */
    memset(to, 0xff, BYTES);
    f->of[f->count++] = {to, from, BYTES, f->groups, in};
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
        else if (f->of[i].in)
            memcpy(f->of[i].to, f->of[i].from, (size_t)f->of[i].bytes);
        else
            memset(f->of[i].to, 0, (size_t)f->of[i].bytes);
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

/* ---- the unit of four warps: each computes its rows at once, as nothing else runs meanwhile ----
 */

enum { UNIT_HERE = 1 };

/* The place of a matrix's first number, and of what size its rows are. A sum: sixteens of bytes. */
struct unit_place {
    uintptr_t  at;
    int        bytes;
    unit_place operator+(int sixteens) const
    {
        return {at + 16 * (uintptr_t)sixteens, bytes};
    }
};
template <int WIDTH> unit_place unit_matrix(const uint16_t *from)
{
    return {(uintptr_t)from - (uintptr_t)attention_shared, 2 * WIDTH};
}
/* Number `i` of row `row`. The unit turns pieces of 16 bytes by the address alone. */
static inline float number_of(const unit_place &m, int row, int i)
{
    const uintptr_t at = m.at + (uintptr_t)(row * m.bytes + 2 * i),
                    turned = at ^ ((at >> 7 & (uintptr_t)(m.bytes / 16 - 1)) << 4);
    if (turned >= ATTENTION_BYTES || (m.bytes != 128 && m.bytes != 64))
        abort();
    return half_value(attention_shared[turned / 2]);
}
template <int EIGHTS, bool ACROSS, int ALL>
void unit_multiply(float (&d)[ALL][4], const uint32_t (&a)[4], unit_place b)
{
    const int g = emulated::lane() / 4, t = emulated::lane() % 4;
    float     own[4][2];
    for (int i = 0; i < 4; i++)
        floats_of(own[i], a[i]);
    of_warp(&own, [&](const float(*const *of)[4][2]) {
        float rows[2][16], column[16];
        for (int r = 0; r < 2; r++)
            for (int k = 0; k < 16; k++)
                rows[r][k] = (*of[g * 4 + k % 8 / 2])[r + k / 8 * 2][k % 2];
        for (int j = 0; j < EIGHTS; j++)
            for (int c = 0; c < 2; c++) {
                const int at = 8 * j + 2 * t + c;
                for (int k = 0; k < 16; k++)
                    column[k] = ACROSS ? number_of(b, k, at) : number_of(b, at, k);
                for (int r = 0; r < 2; r++)
                    for (int k = 0; k < 16; k++)
                        d[j][2 * r + c] += rows[r][k] * column[k];
            }
    });
}
static inline void unit_sees()
{
}
static inline void unit_begin()
{
}
/* What each warp of the blocks so far has asked of the unit: the same for all four of a group. */
inline int         unit_asked[THREADS_MOST / 32];
static inline void unit_commit()
{
    unit_asked[threadIdx.y + blockDim.y * threadIdx.z] += emulated::lane() == 0;
}
static inline void unit_end()
{
    for (int warp = 0; warp < THREADS_MOST / 32; warp++)
        if (unit_asked[warp] != unit_asked[warp & ~3])
            abort(); /* a GPU waits for ever */
    memset(unit_asked, 0, sizeof unit_asked);
}
template <int N> void unit_wait()
{
}

static inline uint32_t pair_of(float low, float high)
{
    return sac_float_to_half(low) | (uint32_t)sac_float_to_half(high) << 16;
}
static inline float number_at(const float *p, int i)
{
    return p[i];
}
static inline float number_at(const uint16_t *p, int i)
{
    return sac_half_to_float(p[i]);
}
static inline uint64_t bytes_of_halves(const ops_bytes &b, const uint16_t *from)
{
    uint64_t bytes = 0;
    if ((uintptr_t)from % 16)
        abort(); /* a GPU stops there */
    for (int k = 0; k < 8; k++) {
        const float v = sac_half_to_float(from[k]) * b.inverse,
                    low = b.type == SAC_I8 ? -128.0f : 0.0f;
        const uint8_t byte = b.type == SAC_F8
                                 ? sac_float_to_f8(v)
                                 : (uint8_t)(int)fminf(fmaxf(rintf(v) + b.zero, low), low + 255);
        bytes |= (uint64_t)byte << 8 * k;
    }
    return bytes;
}
static inline float power_of_two(float x)
{
    return exp2f(x);
}

template <class P>
int attention_launch(void (*kernel)(P), dim3 blocks, dim3 threads, int shared, void *,
                     const P &params)
{
    if (shared > ATTENTION_BYTES || blocks.y > 65535 || blocks.z > 65535 ||
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
