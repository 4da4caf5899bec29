/* SPDX-License-Identifier: Apache-2.0 */
/* Row kernels for AVX-512: the horizontal pass by hand, the rest widened by the compiler. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdint.h>

/* The instruction set brings FMA with it; nothing here may use it: see rows_template.h. */
#define ROWS_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

ROWS_TARGET static inline void half_row(const float *in, int n, uint16_t *out)
{
    for (int i = 0; i < n; i += 16) {
        __mmask16 live = (__mmask16)(n - i >= 16 ? 0xffff : (1 << (n - i)) - 1);
        _mm256_mask_storeu_epi16(out + i, live,
                                 _mm512_cvtps_ph(_mm512_maskz_loadu_ps(live, in + i), 0));
    }
}
#define ROWS_HALF half_row
#include "vision/cpu/rows_template.h"

/* Where 16 outputs look: the inputs between the first and the last of them. */
struct window {
    int     base, span;
    __m512i at;   /* 32 bit: absolute */
    __m512i near; /* pairs of 16 bit: from the base */
};

ROWS_TARGET static inline struct window window_of(const struct sac_axis *x, int i)
{
    struct window w = {.base = x->first[i], .at = _mm512_loadu_si512(x->first + i)};
    w.span = x->first[i + 15] + 2 - w.base;
    __m512i from_base = _mm512_sub_epi32(w.at, _mm512_set1_epi32(w.base));
    w.near = _mm512_add_epi32(_mm512_or_si512(from_base, _mm512_slli_epi32(from_base, 16)),
                              _mm512_set1_epi32(0x10000));
    return w;
}

/* The pair of inputs of each output. One or two registers hold a window of up to 64 inputs (a
 * shrinking to a quarter): a permutation takes a quarter of a gather's time. Reads past the row
 * stay in the scratch, whose float rows follow. */
ROWS_TARGET static inline __m512i pairs_in(const struct window *w, const int16_t *row)
{
    if (w->span <= 32)
        return _mm512_permutexvar_epi16(w->near, _mm512_loadu_si512(row + w->base));
    if (w->span <= 64)
        return _mm512_permutex2var_epi16(_mm512_loadu_si512(row + w->base), w->near,
                                         _mm512_loadu_si512(row + w->base + 32));
    return _mm512_i32gather_epi32(w->at, row, 2);
}

ROWS_TARGET static void horizontal(const struct sac_axis *x, const int16_t *row, float *out)
{
    const __m512 unit = _mm512_set1_ps(SAC_FLOAT_OF_SUM);
    int          i = 0;
    for (; i + 16 <= x->n; i += 16) {
        struct window w = window_of(x, i);
        __m512i       sum = _mm512_setzero_si512();
        for (int k = 0; k < x->taps / 2; k++) {
            const int32_t *weights = x->weight + (size_t)k * (size_t)x->n + (size_t)i;
            sum = _mm512_add_epi32(
                sum, _mm512_madd_epi16(pairs_in(&w, row + 2 * k), _mm512_loadu_si512(weights)));
        }
        _mm512_storeu_ps(out + i, _mm512_mul_ps(_mm512_cvtepi32_ps(sum), unit));
    }
    for (; i < x->n; i++)
        out[i] = horizontal_at(x, row, i);
}

const struct sac_row_ops sac_row_ops_avx512 = {
    .vertical = sac_row_vertical_avx2,
    .horizontal = horizontal,
    .colour = colour_plain,
    .store = store_plain,
};
#endif
