/* SPDX-License-Identifier: Apache-2.0 */
/* What attention_tiles.cuh asks of the hardware beside tile_unit.cuh, on the host. */
#pragma once

#include "engine/cuda/kernels/tile_unit.cuh"

extern "C" uint8_t sac_float_to_f8(float f);

namespace ops
{

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
    return {(uintptr_t)from - (uintptr_t)tile_shared, 2 * WIDTH};
}
/* Number `i` of row `row`. The unit turns pieces of 16 bytes by the address alone. */
static inline float number_of(const unit_place &m, int row, int i)
{
    const uintptr_t at = m.at + (uintptr_t)(row * m.bytes + 2 * i),
                    turned = at ^ ((at >> 7 & (uintptr_t)(m.bytes / 16 - 1)) << 4);
    if (turned >= TILE_BYTES || (m.bytes != 128 && m.bytes != 64))
        abort();
    return half_value(tile_shared[turned / 2]);
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
static inline void unit_commit()
{
    const int thread = (int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
    unit_asked[thread / 32] += emulated::lane() == 0;
}
template <int N> void unit_wait()
{
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

} // namespace ops
