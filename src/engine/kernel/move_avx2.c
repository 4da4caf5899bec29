/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__x86_64__)
#include <immintrin.h>

#include "engine/kernel/move.h"

#define AVX2_INLINE __attribute__((target("avx2"), always_inline)) static inline

/* Rows r and r + 4, four columns each, as the halves of one vector: what is left to do then happens
 * within the halves, which costs no shuffle across them. */
AVX2_INLINE __m256 load_two(const uint32_t *src, int64_t step)
{
    const __m256 low = _mm256_castps128_ps256(_mm_loadu_ps((const float *)src));
    return _mm256_insertf128_ps(low, _mm_loadu_ps((const float *)(src + 4 * step)), 1);
}

/* Eight rows of four columns become four rows of eight. */
AVX2_INLINE void transpose_8x4(uint32_t *dst, int64_t dst_step, const uint32_t *src,
                               int64_t src_step)
{
    const __m256 a = load_two(src, src_step), b = load_two(src + src_step, src_step);
    const __m256 c = load_two(src + 2 * src_step, src_step);
    const __m256 d = load_two(src + 3 * src_step, src_step);
    const __m256 ab = _mm256_unpacklo_ps(a, b), ab2 = _mm256_unpackhi_ps(a, b);
    const __m256 cd = _mm256_unpacklo_ps(c, d), cd2 = _mm256_unpackhi_ps(c, d);
    float       *to = (float *)dst;
    _mm256_storeu_ps(to, _mm256_shuffle_ps(ab, cd, 0x44));
    _mm256_storeu_ps(to + dst_step, _mm256_shuffle_ps(ab, cd, 0xee));
    _mm256_storeu_ps(to + 2 * dst_step, _mm256_shuffle_ps(ab2, cd2, 0x44));
    _mm256_storeu_ps(to + 3 * dst_step, _mm256_shuffle_ps(ab2, cd2, 0xee));
}

/* Sixteen columns of eight rows at a time, as a cache line holds sixteen: the source's lines are
 * done with before those of the next rows come, which may map to the same cache set. */
__attribute__((target("avx2"))) void sac_transpose_avx2(uint32_t *dst, int64_t dst_step,
                                                        const uint32_t *src, int64_t src_step,
                                                        int64_t rows, int64_t columns)
{
    for (int64_t c0 = 0; c0 < columns; c0 += 16) {
        const int64_t end = columns - c0 < 16 ? columns : c0 + 16;
        for (int64_t r = 0; r < rows; r += 8)
            for (int64_t c = c0; c < end; c += 4)
                transpose_8x4(dst + c * dst_step + r, dst_step, src + r * src_step + c, src_step);
    }
}
#endif
