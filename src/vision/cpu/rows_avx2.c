/* SPDX-License-Identifier: Apache-2.0 */
/* Row kernels for AVX2: the two-row blend and the gathers by hand, the rest widened by the
 * compiler. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdint.h>

/* No FMA: see rows_template.h. */
#define ROWS_TARGET __attribute__((target("avx2,f16c")))

ROWS_TARGET static inline void half_row(const float *in, int n, uint16_t *out)
{
    int i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(in + i), 0));
    for (; i < n; i++)
        out[i] = _cvtss_sh(in[i], 0);
}
#define ROWS_HALF half_row
#include "vision/cpu/rows_template.h"

/* Two rows and the weight of the second: a + (b - a) * w, rounded as the plain sum is. */
struct blend {
    const uint8_t *a, *b;
    __m256i        w;
};

ROWS_TARGET static inline __m256i blend_q7(__m256i a, __m256i b, __m256i w)
{
    return _mm256_add_epi16(a, _mm256_mulhrs_epi16(_mm256_sub_epi16(b, a), w));
}

ROWS_TARGET static inline __m256i bytes_q7(const uint8_t *p)
{
    return _mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p)), 7);
}

ROWS_TARGET static int vertical_byte(struct blend r, int x, int end, int16_t *const *out)
{
    for (; x + 16 <= end; x += 16)
        _mm256_storeu_si256((__m256i *)(out[0] + x),
                            blend_q7(bytes_q7(r.a + x), bytes_q7(r.b + x), r.w));
    return x;
}

ROWS_TARGET static int vertical_byte_pair(struct blend r, int x, int end, int16_t *const *out)
{
    const __m256i low = _mm256_set1_epi16(0xff);
    for (; x + 16 <= end; x += 16) {
        __m256i a = _mm256_loadu_si256((const __m256i *)(r.a + 2 * (ptrdiff_t)x));
        __m256i b = _mm256_loadu_si256((const __m256i *)(r.b + 2 * (ptrdiff_t)x));
        __m256i u = blend_q7(_mm256_slli_epi16(_mm256_and_si256(a, low), 7),
                             _mm256_slli_epi16(_mm256_and_si256(b, low), 7), r.w);
        __m256i v = blend_q7(_mm256_slli_epi16(_mm256_srli_epi16(a, 8), 7),
                             _mm256_slli_epi16(_mm256_srli_epi16(b, 8), 7), r.w);
        _mm256_storeu_si256((__m256i *)(out[0] + x), u);
        _mm256_storeu_si256((__m256i *)(out[1] + x), v);
    }
    return x;
}

/* 48 bytes of R, G, B, R, ... to 16 of each. */
ROWS_TARGET static inline void split_triples(const uint8_t *p, __m256i out[3])
{
    __m128i       part[3];
    const __m128i pick[3][3] = {
        {_mm_setr_epi8(0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1),
         _mm_setr_epi8(-1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14, -1, -1, -1, -1, -1),
         _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1, 4, 7, 10, 13)},
        {_mm_setr_epi8(1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1),
         _mm_setr_epi8(-1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1),
         _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14)},
        {_mm_setr_epi8(2, 5, 8, 11, 14, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1),
         _mm_setr_epi8(-1, -1, -1, -1, -1, 1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1),
         _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15)}};
    for (int i = 0; i < 3; i++)
        part[i] = _mm_loadu_si128((const __m128i *)(p + 16 * i));
    for (int c = 0; c < 3; c++) {
        __m128i bytes = _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(part[0], pick[c][0]),
                                                  _mm_shuffle_epi8(part[1], pick[c][1])),
                                     _mm_shuffle_epi8(part[2], pick[c][2]));
        out[c] = _mm256_slli_epi16(_mm256_cvtepu8_epi16(bytes), 7);
    }
}

ROWS_TARGET static int vertical_byte_triple(struct blend r, int x, int end, int16_t *const *out)
{
    for (; x + 16 <= end; x += 16) {
        __m256i a[3], b[3];
        split_triples(r.a + 3 * (ptrdiff_t)x, a);
        split_triples(r.b + 3 * (ptrdiff_t)x, b);
        for (int c = 0; c < 3; c++)
            _mm256_storeu_si256((__m256i *)(out[c] + x), blend_q7(a[c], b[c], r.w));
    }
    return x;
}

/* 64 bytes of R, G, B, A, R, ... to 16 of each of the first three. */
ROWS_TARGET static inline void split_quads(const uint8_t *p, __m256i out[3])
{
    const __m128i fours = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m128i       part[4];
    for (int i = 0; i < 4; i++)
        part[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + 16 * i)), fours);
    const __m128i rg0 = _mm_unpacklo_epi32(part[0], part[1]),
                  rg1 = _mm_unpacklo_epi32(part[2], part[3]);
    const __m128i ba0 = _mm_unpackhi_epi32(part[0], part[1]),
                  ba1 = _mm_unpackhi_epi32(part[2], part[3]);
    const __m128i bytes[3] = {_mm_unpacklo_epi64(rg0, rg1), _mm_unpackhi_epi64(rg0, rg1),
                              _mm_unpacklo_epi64(ba0, ba1)};
    for (int c = 0; c < 3; c++)
        out[c] = _mm256_slli_epi16(_mm256_cvtepu8_epi16(bytes[c]), 7);
}

ROWS_TARGET static int vertical_byte_quad(struct blend r, int x, int end, int16_t *const *out)
{
    for (; x + 16 <= end; x += 16) {
        __m256i a[3], b[3];
        split_quads(r.a + 4 * (ptrdiff_t)x, a);
        split_quads(r.b + 4 * (ptrdiff_t)x, b);
        for (int c = 0; c < 3; c++)
            _mm256_storeu_si256((__m256i *)(out[c] + x), blend_q7(a[c], b[c], r.w));
    }
    return x;
}

ROWS_TARGET static int vertical_word(struct blend r, int x, int end, int16_t *const *out)
{
    for (; x + 16 <= end; x += 16) {
        __m256i a = _mm256_loadu_si256((const __m256i *)(r.a + 2 * (ptrdiff_t)x));
        __m256i b = _mm256_loadu_si256((const __m256i *)(r.b + 2 * (ptrdiff_t)x));
        _mm256_storeu_si256((__m256i *)(out[0] + x),
                            blend_q7(_mm256_srli_epi16(a, 1), _mm256_srli_epi16(b, 1), r.w));
    }
    return x;
}

/* The even 16 bit lanes of two registers, in order. */
ROWS_TARGET static inline __m256i even_words(__m256i lo, __m256i hi)
{
    const __m256i low = _mm256_set1_epi32(0xffff);
    return _mm256_permute4x64_epi64(
        _mm256_packus_epi32(_mm256_and_si256(lo, low), _mm256_and_si256(hi, low)), 0xd8);
}

ROWS_TARGET static int vertical_word_pair(struct blend r, int x, int end, int16_t *const *out)
{
    for (; x + 16 <= end; x += 16) {
        const __m256i *at_a = (const __m256i *)(r.a + 4 * (ptrdiff_t)x);
        const __m256i *at_b = (const __m256i *)(r.b + 4 * (ptrdiff_t)x);
        __m256i        a0 = _mm256_loadu_si256(at_a), a1 = _mm256_loadu_si256(at_a + 1);
        __m256i        b0 = _mm256_loadu_si256(at_b), b1 = _mm256_loadu_si256(at_b + 1);
        __m256i        mixed0 = blend_q7(_mm256_srli_epi16(a0, 1), _mm256_srli_epi16(b0, 1), r.w);
        __m256i        mixed1 = blend_q7(_mm256_srli_epi16(a1, 1), _mm256_srli_epi16(b1, 1), r.w);
        _mm256_storeu_si256((__m256i *)(out[0] + x), even_words(mixed0, mixed1));
        _mm256_storeu_si256((__m256i *)(out[1] + x), even_words(_mm256_srli_epi32(mixed0, 16),
                                                                _mm256_srli_epi32(mixed1, 16)));
    }
    return x;
}

static int (*const vertical_blends[])(struct blend, int, int, int16_t *const *) = {
    [SAC_PLANE_BYTE] = vertical_byte,
    [SAC_PLANE_BYTE_PAIR] = vertical_byte_pair,
    [SAC_PLANE_BYTE_TRIPLE] = vertical_byte_triple,
    [SAC_PLANE_BYTE_QUAD] = vertical_byte_quad,
    [SAC_PLANE_WORD] = vertical_word,
    [SAC_PLANE_WORD_PAIR] = vertical_word_pair,
};

ROWS_TARGET void sac_row_vertical_avx2(const struct sac_plane *p, const struct sac_axis *y, int i,
                                       int begin, int end, int16_t *const *out)
{
    if (y->taps == 2 && p->height > 1) {
        int32_t        w = y->weight[(size_t)y->n + (size_t)i];
        const uint8_t *a = p->data + (size_t)y->first[i] * p->pitch, *b = a + p->pitch;
        /* one as a weight does not fit 16 bit: take that row alone */
        if (w == 1 << SAC_ROW_WEIGHT_BITS)
            a = b;
        struct blend r = {a, b, _mm256_set1_epi16((int16_t)(a == b ? 0 : w))};
        begin = vertical_blends[p->kind](r, begin, end, out);
    }
    vertical_plain(p, y, i, begin, end, out);
}

ROWS_TARGET static void horizontal(const struct sac_axis *x, const int16_t *row, float *out)
{
    const __m256 unit = _mm256_set1_ps(SAC_FLOAT_OF_SUM);
    int          i = 0;
    for (; i + 8 <= x->n; i += 8) {
        __m256i at = _mm256_loadu_si256((const __m256i *)(x->first + i));
        __m256i sum = _mm256_setzero_si256();
        for (int k = 0; k < x->taps / 2; k++) {
            const int32_t *pairs = x->weight + (size_t)k * (size_t)x->n + (size_t)i;
            __m256i in = _mm256_i32gather_epi32((const int *)(const void *)(row + 2 * k), at, 2);
            sum = _mm256_add_epi32(
                sum, _mm256_madd_epi16(in, _mm256_loadu_si256((const __m256i *)pairs)));
        }
        _mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_cvtepi32_ps(sum), unit));
    }
    for (; i < x->n; i++)
        out[i] = horizontal_at(x, row, i);
}

const struct sac_row_ops sac_row_ops_avx2 = {
    .vertical = sac_row_vertical_avx2,
    .horizontal = horizontal,
    .colour = colour_plain,
    .store = store_plain,
};
#endif
