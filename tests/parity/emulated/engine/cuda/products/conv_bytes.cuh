/* SPDX-License-Identifier: Apache-2.0 */
/* What conv_bytes.cu asks of the hardware, on the host: copies are there at once, and the tensor
 * cores compute what PTX's documents say that each lane holds. */
#pragma once

#include <cuda_fp16.h>
#include <type_traits>

#include "engine/cuda/products/conv_bytes.h"

extern "C" float   sac_f8_to_float(uint8_t v);
extern "C" uint8_t sac_float_to_f8(float f);

#define BYTES_HOPPER 1

static inline float __uint_as_float(unsigned u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
static inline float __fadd_rn(float a, float b)
{
    return a + b;
}
static inline float __fmul_rn(float a, float b)
{
    return a * b;
}
static inline float __saturatef(float v)
{
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

namespace conv
{

enum { SHARED_BYTES = 256 << 10, TAPS_OF_ONE = 32 };
alignas(1024) inline uint8_t shared_memory[SHARED_BYTES];

static inline unsigned shared_address(const void *p)
{
    return (unsigned)((const uint8_t *)p - shared_memory);
}
static inline uint8_t *block_memory()
{
    return shared_memory;
}

static inline uint8_t *stream_block_memory()
{
    return shared_memory;
}
template <int BYTES> void fetch_run(uint8_t *to, const uint8_t *from)
{
    if ((uintptr_t)to % BYTES || (uintptr_t)from % BYTES)
        abort();
    memcpy(to, from, BYTES);
}
template <int BYTES> void read_run(uint32_t (&w)[BYTES / 4], const uint8_t *from)
{
    memcpy(w, from, BYTES);
}
static inline float fast_tanh(float x)
{
    return tanhf(x);
}

static inline void fetch16(uint8_t *to, const uint8_t *from, bool inside, bool)
{
    if ((uintptr_t)to % 16 || (inside && (uintptr_t)from % 16))
        abort(); /* a GPU stops there */
    if (inside)
        memcpy(to, from, 16);
    else
        memset(to, 0, 16);
}
static inline void fetch_commit()
{
}
template <int N> void fetch_wait()
{
}

static inline float float_of_f8(unsigned byte)
{
    return sac_f8_to_float((uint8_t)byte);
}
static inline uint32_t f8_of(float a, float b)
{
    return (uint32_t)sac_float_to_f8(a) | (uint32_t)sac_float_to_f8(b) << 8;
}

static inline float half_at(const uint8_t *p)
{
    uint16_t bits;
    memcpy(&bits, p, 2);
    return half_value(bits);
}
/* A row's or a column's numbers, out of 32 bytes: most of the time goes into products of them. */
template <int KIND> struct numbers_of {
    static constexpr bool FLOATS = KIND == CONV_BYTES_F16 || KIND == CONV_BYTES_F8;
    static constexpr int  COUNT = KIND == CONV_BYTES_F16 ? TAPS_OF_ONE / 2 : TAPS_OF_ONE;
    using number = typename std::conditional<FLOATS, float, int>::type;
    number of[COUNT];

    numbers_of(const uint8_t *bytes, bool is_signed)
    {
        for (int k = 0; k < COUNT; k++)
            of[k] = KIND == CONV_BYTES_F16  ? (number)half_at(bytes + 2 * k)
                    : KIND == CONV_BYTES_F8 ? (number)sac_f8_to_float(bytes[k])
                    : is_signed             ? (number)(int8_t)bytes[k]
                                            : (number)bytes[k];
    }
};
template <int KIND> struct row_of : numbers_of<KIND> {
    explicit row_of(const uint8_t *bytes) : numbers_of<KIND>(bytes, KIND == CONV_BYTES_S8)
    {
    }
};
template <int KIND> struct column_of : numbers_of<KIND> {
    explicit column_of(const uint8_t *bytes) : numbers_of<KIND>(bytes, true)
    {
    }
};
template <int KIND>
void add_products(uint32_t &sum, const row_of<KIND> &row, const column_of<KIND> &column)
{
    typename numbers_of<KIND>::number part[4] = {};
    for (int k = 0; k < numbers_of<KIND>::COUNT; k += 4)
        for (int i = 0; i < 4; i++)
            part[i] += row.of[k + i] * column.of[k + i];
    const auto all = (part[0] + part[1]) + (part[2] + part[3]);
    if (numbers_of<KIND>::FLOATS)
        sum = __float_as_uint(__uint_as_float(sum) + (float)all);
    else
        sum += (uint32_t)all;
}

/* Lane 8 j + r names row r of matrix j; lane i gets bytes 4 (i % 4) on of row i / 4 of each. */
static inline void bytes_load(uint32_t (&v)[4], const uint8_t *from)
{
    const int lane = emulated::lane();
    for (int j = 0; j < 4; j++) {
        const uint8_t *row = emulated::exchange(~0u, from, 8 * j + lane / 4);
        memcpy(&v[j], row + lane % 4 * 4, 4);
    }
}

/* Words of a row (of A, from lanes 4 row on) or a column of B, 16 bytes each half. */
template <int KIND>
void bytes_multiply(uint32_t *d, const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    const int lane = emulated::lane(), g = lane / 4, t = lane % 4;
    uint8_t   row[2][32], column[2][32];
    for (int i = 0; i < 4; i++) {
        const uint32_t own[4] = {a[0], a[2], a[1], a[3]}; /* low and high half of row g, g + 8 */
        for (int w = 0; w < 4; w++) {
            const uint32_t word = emulated::exchange(~0u, own[w], g * 4 + i);
            memcpy(row[w / 2] + w % 2 * 16 + 4 * i, &word, 4);
        }
        for (int c = 0; c < 2; c++) {
            const uint32_t low = emulated::exchange(~0u, b0, (2 * t + c) * 4 + i),
                           high = emulated::exchange(~0u, b1, (2 * t + c) * 4 + i);
            memcpy(column[c] + 4 * i, &low, 4);
            memcpy(column[c] + 16 + 4 * i, &high, 4);
        }
    }
    for (int i = 0; i < 4; i++)
        add_products(d[i], row_of<KIND>(row[i / 2]), column_of<KIND>(column[i % 2]));
}

/* ---- Hopper's unit ---- */

static inline void unit_sees()
{
}
static inline void unit_begin()
{
}
static inline void unit_commit()
{
}
template <int N> void unit_wait()
{
}

/* Bytes of a row of a matrix whose rows of 128, 64 or 32 bytes are swizzled: of an address bits 4
 * to 6 by bits 7 to 9, or as many of them as a row's sixteens need. */
static inline void matrix_row(uint64_t matrix, int row, uint8_t (&out)[TAPS_OF_ONE])
{
    const unsigned base = (unsigned)(matrix & 0x3fff) << 4, step = (unsigned)(matrix >> 32 & 0x3fff)
                                                                   << 4;
    const unsigned width = 256u >> (matrix >> 62);
    if (matrix >> 62 == 0 || (width < 64 && base % (8 * width) / width != 0))
        abort(); /* eight rows begin at a multiple of their bytes, where no other was tried */
    for (unsigned k = 0; k < TAPS_OF_ONE; k += 16) {
        const unsigned at = base + (unsigned)(row / 8) * step + (unsigned)(row % 8) * width + k;
        memcpy(out + k, shared_memory + (at ^ (at >> 3 & (width - 16))), 16);
    }
}

template <int KIND> struct bytes_kind {
};
template <int COUNT, int KIND>
void bytes_wgmma(uint32_t (&d)[COUNT], uint64_t a, uint64_t b, bool add, bytes_kind<KIND>)
{
    const int lane = emulated::lane(), warp = (int)threadIdx.x / 32 % 4;
    uint8_t   bytes[2][TAPS_OF_ONE], of_column[TAPS_OF_ONE];
    for (int r = 0; r < 2; r++)
        matrix_row(a, warp * 16 + lane / 4 + r * 8, bytes[r]);
    const row_of<KIND> rows[2] = {row_of<KIND>(bytes[0]), row_of<KIND>(bytes[1])};
    for (int i = 0; i < COUNT; i += 4)
        for (int c = 0; c < 2; c++) {
            matrix_row(b, i / 4 * 8 + lane % 4 * 2 + c, of_column);
            const column_of<KIND> column(of_column);
            for (int r = 0; r < 2; r++) {
                uint32_t &sum = d[i + 2 * r + c];
                sum = add ? sum : 0;
                add_products(sum, rows[r], column);
            }
        }
}

/* Rows of A from registers: words 0, 1 of a lane are of rows g, g + 8 and of numbers 2 t, 2 t + 1;
 * 2, 3 of those eight further. */
template <int EIGHTS, bool ACROSS, int ALL>
void unit_multiply(float (&d)[ALL][4], const uint32_t (&a)[4], uint64_t b)
{
    static_assert(!ACROSS, "no kernel here asks for it");
    const int lane = emulated::lane(), g = lane / 4, t = lane % 4;
    uint8_t   bytes[2][TAPS_OF_ONE], of_column[TAPS_OF_ONE];
    for (int i = 0; i < 4; i++)
        for (int w = 0; w < 4; w++) {
            const uint32_t word = emulated::exchange(~0u, a[w], g * 4 + i);
            memcpy(bytes[w % 2] + w / 2 * 16 + 4 * i, &word, 4);
        }
    const row_of<CONV_BYTES_F16> rows[2] = {row_of<CONV_BYTES_F16>(bytes[0]),
                                            row_of<CONV_BYTES_F16>(bytes[1])};
    for (int j = 0; j < EIGHTS; j++)
        for (int c = 0; c < 2; c++) {
            matrix_row(b, 8 * j + 2 * t + c, of_column);
            const column_of<CONV_BYTES_F16> column(of_column);
            for (int r = 0; r < 2; r++) {
                uint32_t sum = __float_as_uint(d[j][2 * r + c]);
                add_products(sum, rows[r], column);
                d[j][2 * r + c] = __uint_as_float(sum);
            }
        }
}

/* ---- launching ---- */

template <class P>
cudaError_t bytes_launch(void (*kernel)(P), dim3 blocks, unsigned threads, int shared, cudaStream_t,
                         const P &params)
{
    if (shared > SHARED_BYTES)
        abort();
    emulated::launch(blocks, threads, [&] { kernel(params); });
    return cudaSuccess;
}

} // namespace conv
