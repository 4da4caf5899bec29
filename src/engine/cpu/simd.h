/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of floats in two widths under one set of names.
 *
 * A kernel is written once, in a header that uses `vec` and LANES, and compiled twice: FILE_avx2.c
 * and FILE_avx512.c define SAC_SIMD_BITS and include it; with SAC_SIMD_VNNI there are products of
 * bytes, too. Every function carries SIMD_FN, so the build itself stays baseline x86-64; the caller
 * picks a variant by sac_cpu_level().
 */
#ifndef SAC_ENGINE_CPU_SIMD_H
#define SAC_ENGINE_CPU_SIMD_H

#include <float.h>
#include <immintrin.h>
#include <math.h>
#include <stdint.h>

#include "engine/ops/fused.h"

#if SAC_SIMD_BITS == 512
#ifdef SAC_SIMD_VNNI
#define SIMD_TARGET \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma")))
#define SIMD_NAME(fn) fn##_avx512_vnni
#else
#define SIMD_TARGET   __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#define SIMD_NAME(fn) fn##_avx512
#endif
#define MM(name) _mm512_##name
enum { LANES = 16 };
typedef __m512    vec;
typedef __mmask16 vmask;
#elif SAC_SIMD_BITS == 256
#define SIMD_TARGET   __attribute__((target("avx2,fma")))
#define SIMD_NAME(fn) fn##_avx2
#define MM(name)      _mm256_##name
enum { LANES = 8 };
typedef __m256  vec;
typedef __m256i vmask;
#else
#error "define SAC_SIMD_BITS as 256 or 512 before including this"
#endif

#define SIMD_FN     SIMD_TARGET
#define SIMD_INLINE SIMD_TARGET static inline __attribute__((always_inline))

/* ---- instructions that both widths have ---- */

SIMD_INLINE vec v_load(const float *p)
{
    return MM(loadu_ps)(p);
}
SIMD_INLINE void v_store(float *p, vec v)
{
    MM(storeu_ps)(p, v);
}
SIMD_INLINE vec v_set(float x)
{
    return MM(set1_ps)(x);
}
SIMD_INLINE vec v_add(vec a, vec b)
{
    return MM(add_ps)(a, b);
}
SIMD_INLINE vec v_sub(vec a, vec b)
{
    return MM(sub_ps)(a, b);
}
SIMD_INLINE vec v_mul(vec a, vec b)
{
    return MM(mul_ps)(a, b);
}
SIMD_INLINE vec v_div(vec a, vec b)
{
    return MM(div_ps)(a, b);
}
SIMD_INLINE vec v_min(vec a, vec b)
{
    return MM(min_ps)(a, b);
}
SIMD_INLINE vec v_max(vec a, vec b)
{
    return MM(max_ps)(a, b);
}
SIMD_INLINE vec v_abs(vec a) /* the second of two zeros: +0 */
{
    return MM(max_ps)(a, MM(sub_ps)(MM(set1_ps)(0.0f), a));
}
SIMD_INLINE vec v_fma(vec a, vec b, vec c)
{
    return MM(fmadd_ps)(a, b, c);
} /* a*b + c */

/* Lanes 0 and 1, 2 and 3, and so on change places. */
SIMD_INLINE vec v_swap_pairs(vec a)
{
    return MM(permute_ps)(a, 0xb1);
}
/* a*b - c in lanes 0, 2, ..., a*b + c in the others */
SIMD_INLINE vec v_difference_and_sum(vec a, vec b, vec c)
{
    return MM(fmaddsub_ps)(a, b, c);
}

/* ---- what each does in its own way ---- */

#if SAC_SIMD_BITS == 512

SIMD_INLINE vmask v_first(int64_t n) /* lanes 0..n-1 */
{
    return (vmask)(n >= LANES ? 0xffff : (1u << n) - 1);
}
SIMD_INLINE vec v_load_first(const float *p, vmask m)
{
    return _mm512_maskz_loadu_ps(m, p);
}
SIMD_INLINE void v_store_first(float *p, vec v, vmask m)
{
    _mm512_mask_storeu_ps(p, m, v);
}
SIMD_INLINE vec v_round(vec a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
SIMD_INLINE vec v_pow2(vec n, vec scale)
{
    return _mm512_scalef_ps(scale, n);
} /* scale * 2^n */
SIMD_INLINE float v_sum(vec a)
{
    return _mm512_reduce_add_ps(a);
}
SIMD_INLINE float v_largest(vec a)
{
    return _mm512_reduce_max_ps(a);
}
SIMD_INLINE vec v_and(vec a, vec b)
{
    return _mm512_and_ps(a, b);
}
SIMD_INLINE vec v_or(vec a, vec b)
{
    return _mm512_or_ps(a, b);
}
/* a < b ? x : y */
SIMD_INLINE vec v_where_less(vec a, vec b, vec x, vec y)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}
/* a == b ? x : y; NaN equals nothing */
SIMD_INLINE vec v_where_equal(vec a, vec b, vec x, vec y)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ), y, x);
}
SIMD_INLINE vec v_sqrt(vec a)
{
    return _mm512_sqrt_ps(a);
}
typedef __m512d        vec_double;
SIMD_INLINE vec_double v_double(vec a, int half) /* of its lanes */
{
    return _mm512_cvtps_pd(half ? _mm512_extractf32x8_ps(a, 1) : _mm512_castps512_ps256(a));
}
SIMD_INLINE vec v_single(vec_double low, vec_double high)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high),
                              1);
}
SIMD_INLINE vec_double v_double_round(vec_double a)
{
    return _mm512_roundscale_pd(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* |a| is a mantissa in 1..2 times 2^exponent. The exponent of 0 is -infinity, that of infinity is
 * infinity, both with a mantissa of 1; that of NaN is NaN. */
SIMD_INLINE vec v_mantissa(vec a)
{
    return _mm512_getmant_ps(a, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_zero);
}
SIMD_INLINE vec v_exponent(vec a)
{
    return _mm512_getexp_ps(a);
}
/* 1/a to 2^-24 or so: one Newton step on the 14 bit estimate costs a third of a division. */
SIMD_INLINE vec v_reciprocal(vec a)
{
    vec r = _mm512_rcp14_ps(a);
    return _mm512_mul_ps(r, _mm512_fnmadd_ps(a, r, _mm512_set1_ps(2.0f)));
}

#else

SIMD_INLINE vmask v_first(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n > LANES ? LANES : n)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
SIMD_INLINE vec v_load_first(const float *p, vmask m)
{
    return _mm256_maskload_ps(p, m);
}
SIMD_INLINE void v_store_first(float *p, vec v, vmask m)
{
    _mm256_maskstore_ps(p, m, v);
}
SIMD_INLINE vec v_round(vec a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* n must be whole and within -126..127: there is no gradual underflow here. */
SIMD_INLINE vec v_pow2(vec n, vec scale)
{
    __m256i e =
        _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
    return _mm256_mul_ps(scale, _mm256_castsi256_ps(e));
}
SIMD_INLINE float v_sum(vec a)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
SIMD_INLINE float v_largest(vec a)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
SIMD_INLINE vec v_and(vec a, vec b)
{
    return _mm256_and_ps(a, b);
}
SIMD_INLINE vec v_or(vec a, vec b)
{
    return _mm256_or_ps(a, b);
}
SIMD_INLINE vec v_where_less(vec a, vec b, vec x, vec y)
{
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}
SIMD_INLINE vec v_where_equal(vec a, vec b, vec x, vec y)
{
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_EQ_OQ));
}
typedef __m256d        vec_double;
SIMD_INLINE vec_double v_double(vec a, int half)
{
    return _mm256_cvtps_pd(half ? _mm256_extractf128_ps(a, 1) : _mm256_castps256_ps128(a));
}
SIMD_INLINE vec v_single(vec_double low, vec_double high)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(low)), _mm256_cvtpd_ps(high),
                                1);
}
SIMD_INLINE vec_double v_double_round(vec_double a)
{
    return _mm256_round_pd(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
SIMD_INLINE vec v_magnitude(vec a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}
/* A magnitude; a subnormal one is made 2^24 times as large, and so has an exponent of its own. */
SIMD_INLINE vec v_normal(vec a)
{
    return v_where_less(a, v_set(FLT_MIN), v_mul(a, v_set(0x1p24f)), a);
}
SIMD_INLINE vec v_mantissa(vec a)
{
    const vec digits = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffff));
    return v_or(v_and(v_normal(v_magnitude(a)), digits), v_set(1.0f));
}
SIMD_INLINE vec v_exponent(vec a)
{
    const vec     m = v_magnitude(a), infinity = v_set(INFINITY);
    const vec     bias = v_where_less(m, v_set(FLT_MIN), v_set(127 + 24), v_set(127));
    const __m256i bits = _mm256_srli_epi32(_mm256_castps_si256(v_normal(m)), 23);
    const vec     e = v_sub(_mm256_cvtepi32_ps(bits), bias);
    return v_where_less(v_set(0.0f), m, v_where_less(m, infinity, e, m), v_sub(m, infinity));
}
SIMD_INLINE vec v_sqrt(vec a)
{
    return _mm256_sqrt_ps(a);
}
SIMD_INLINE vec v_reciprocal(vec a)
{
    return _mm256_div_ps(_mm256_set1_ps(1.0f), a);
}

#endif

/* The first n < LANES lanes. AMD's masked stores cost tens of cycles; storing halves costs a few,
 * as n is the same for a whole map and its branches are predicted well. */
SIMD_INLINE void v_store_quarter(float *p, __m128 v, int64_t n)
{
    if (n & 2) {
        _mm_storel_pi((__m64 *)p, v);
        v = _mm_movehl_ps(v, v);
        p += 2;
    }
    if (n & 1)
        _mm_store_ss(p, v);
}
SIMD_INLINE void v_store_half(float *p, __m256 v, int64_t n)
{
    __m128 low = _mm256_castps256_ps128(v);
    if (n & 4) {
        _mm_storeu_ps(p, low);
        low = _mm256_extractf128_ps(v, 1);
        p += 4;
    }
    v_store_quarter(p, low, n);
}
SIMD_INLINE void v_store_count(float *p, vec v, int64_t n)
{
#if SAC_SIMD_BITS == 512
    __m256 low = _mm512_castps512_ps256(v);
    if (n & 8) {
        _mm256_storeu_ps(p, low);
        low = _mm512_extractf32x8_ps(v, 1);
        p += 8;
    }
    v_store_half(p, low, n);
#else
    v_store_half(p, v, n);
#endif
}

/* The instructions return their second operand when either is NaN: in this order NaN stays NaN.
 * Otherwise a broken network would be certain of everything it sees (sigmoid would give 1). */
SIMD_INLINE vec v_clamp(vec v, float low, float high)
{
    return v_min(v_set(high), v_max(v_set(low), v));
}

/* 2^t for t in -126..127, relative error under 3e-7: whole part by the exponent, the rest, within
 * +-0.5, by a polynomial of degree 5 (minimax fit with log 2 as its slope at 0). */
SIMD_INLINE vec v_exp2_slope(vec r) /* (2^r - 1) / r */
{
    vec p = v_fma(r, v_set(1.33006054e-3f), v_set(9.66969132e-3f));
    p = v_fma(p, r, v_set(5.55055849e-2f));
    p = v_fma(p, r, v_set(2.40222827e-1f));
    return v_fma(p, r, v_set(6.93147182e-1f));
}
SIMD_INLINE vec v_exp2(vec t)
{
    vec n = v_round(t), r = v_sub(t, n);
    return v_pow2(n, v_fma(v_exp2_slope(r), r, v_set(1.0f)));
}
SIMD_INLINE vec v_exp(vec x)
{
    vec t = v_mul(x, v_set(1.44269504f));
    return v_exp2(v_clamp(t, -126.0f, 126.0f));
}
/* The clamp keeps the exponent in range; at 2^126 the result is 0 to within 1e-38 anyway. */
SIMD_INLINE vec v_sigmoid(vec x)
{
    vec t = v_mul(x, v_set(-1.44269504f));
    return v_reciprocal(v_add(v_exp2(v_clamp(t, -126.0f, 126.0f)), v_set(1.0f)));
}

/* 2^t - 1, which keeps its digits near 0. */
SIMD_INLINE vec v_exp2m1(vec t)
{
    vec n = v_round(t), r = v_sub(t, n), whole = v_pow2(n, v_set(1.0f));
    return v_fma(whole, v_mul(v_exp2_slope(r), r), v_sub(whole, v_set(1.0f)));
}
SIMD_INLINE vec v_expm1(vec x)
{
    return v_exp2m1(v_clamp(v_mul(x, v_set(1.44269504f)), -126.0f, 126.0f));
}

/* m / (m + 2) with m = e^2x - 1; 2 sigmoid(2x) - 1 would lose its digits near 0. */
SIMD_INLINE vec v_tanh(vec x)
{
    vec m = v_exp2m1(v_clamp(v_mul(x, v_set(2.88539008f)), -60.0f, 60.0f));
    return v_div(m, v_add(m, v_set(2.0f)));
}

/* log(1 + e) + more; log(1 + e) = 2 artanh(s), s = e / (e + 2), within +-1/3, by its series, which
 * is cut where it is 1.5e-7 of the whole. */
SIMD_INLINE vec v_log1p_plus(vec e, vec more)
{
    vec s = v_div(e, v_add(e, v_set(2.0f))), q = v_mul(s, s);
    vec p = v_fma(q, v_set(2.0f / 11), v_set(2.0f / 9));
    p = v_fma(p, q, v_set(2.0f / 7));
    p = v_fma(p, q, v_set(2.0f / 5));
    p = v_fma(p, q, v_set(2.0f / 3));
    p = v_fma(p, q, v_set(2.0f));
    return v_fma(p, s, more);
}

/* log(1 + e^x) = max(x, 0) + log(1 + e^-|x|) */
SIMD_INLINE vec v_softplus(vec x)
{
    const vec zero = v_set(0.0f);
    return v_log1p_plus(v_exp(v_min(x, v_sub(zero, x))), v_max(zero, x));
}

/* The mantissa within sqrt(1/2)..sqrt(2), so that a logarithm near 0 is that of the mantissa alone
 * and keeps its digits. */
SIMD_INLINE vec v_split(vec x, vec *exponent)
{
    const vec m = v_mantissa(x), e = v_exponent(x), middle = v_set(1.41421356f);
    *exponent = v_where_less(middle, m, v_add(e, v_set(1.0f)), e);
    return v_where_less(middle, m, v_mul(m, v_set(0.5f)), m);
}

SIMD_INLINE vec v_log(vec x)
{
    const vec one = v_set(1.0f), zero = v_set(0.0f);
    vec       e, m = v_split(x, &e);
    return v_where_less(x, zero, v_set(NAN),
                        v_log1p_plus(v_sub(m, one), v_mul(e, v_set(0.693147181f))));
}

/* log2(m * 2^e) by the series of v_log1p_plus, which is cut where it is 5e-11 of the whole. */
SIMD_INLINE vec_double v_double_log2(vec_double m, vec_double e)
{
    static const double c[] = {2.88539008177792681 / 11, 2.88539008177792681 / 9,
                               2.88539008177792681 / 7,  2.88539008177792681 / 5,
                               2.88539008177792681 / 3,  2.88539008177792681}; /* 2 / log(2) */
    const vec_double    one = MM(set1_pd)(1);
    const vec_double s = MM(div_pd)(MM(sub_pd)(m, one), MM(add_pd)(m, one)), q = MM(mul_pd)(s, s);
    vec_double       p = MM(set1_pd)(c[0]);
    for (int k = 1; k < 6; k++)
        p = MM(fmadd_pd)(p, q, MM(set1_pd)(c[k]));
    return MM(fmadd_pd)(p, s, e);
}

/* |x|^y for y that is neither 0 nor infinite. In double as far as digits are lost: of a result
 * near 2^127 the exponent takes seven bits from the logarithm's. */
SIMD_INLINE vec v_power_by(vec x, vec y)
{
    const vec_double low = MM(set1_pd)(-252), high = MM(set1_pd)(252);
    vec_double       whole[2], rest[2];
    vec              e, m = v_split(x, &e);
    for (int k = 0; k < 2; k++) {
        const vec_double log = v_double_log2(v_double(m, k), v_double(e, k));
        const vec_double t = MM(mul_pd)(log, v_double(y, k));
        const vec_double within = MM(min_pd)(high, MM(max_pd)(low, t)); /* NaN stays NaN */
        whole[k] = v_double_round(within);
        rest[k] = MM(sub_pd)(within, whole[k]);
    }
    const vec n = v_single(whole[0], whole[1]), r = v_single(rest[0], rest[1]);
    const vec half = v_round(v_mul(n, v_set(0.5f))); /* 2^n in two steps ends in infinity and 0 */
    return v_pow2(v_sub(n, half), v_pow2(half, v_fma(v_exp2_slope(r), r, v_set(1.0f))));
}
SIMD_INLINE vec v_power(vec x, float y)
{
    return v_power_by(x, v_set(y));
}
SIMD_INLINE vec v_product(vec x, int n) /* x^n, n from 1 */
{
    vec p = x;
    for (int i = 1; i < n; i++)
        p = v_mul(p, x);
    return p;
}
/* x^y of a y that is not whole: below 0 there is none, but C has one of -infinity. */
SIMD_INLINE vec v_power_fraction(vec x, float y)
{
    const vec p = v_power(x, y);
    return v_where_less(x, v_set(0.0f), v_where_less(x, v_set(-FLT_MAX), p, v_set(NAN)), p);
}

/* x^n, n whole and within 0..15, by squares: a whole number stays one. */
SIMD_INLINE vec v_power_whole(vec x, vec n)
{
    vec p = v_set(1.0f);
    for (int k = 0; k < 4; k++, x = v_mul(x, x)) {
        const vec rest = v_round(v_fma(n, v_set(0.5f), v_set(-0.25f)));
        p = v_where_equal(v_add(rest, rest), n, p, v_mul(p, x));
        n = rest;
    }
    return p;
}
/* x^y of any two, as C has it: 1^y and x^0 are 1 even of NaN, and so is (-1)^infinity. */
SIMD_INLINE vec v_power_any(vec x, vec y)
{
    const vec zero = v_set(0.0f), one = v_set(1.0f), half = v_mul(y, v_set(0.5f));
    const vec infinite = v_where_equal(v_abs(y), v_set(INFINITY), one, zero);
    vec       p = v_power_by(x, y);
    p = v_where_less(zero, infinite, v_where_equal(v_abs(x), one, one, p), p);
    const vec whole = v_where_equal(v_round(y), y, one, zero);
    const vec odd = v_where_equal(v_round(half), half, zero, whole);
    p = v_where_less(zero, odd, v_or(p, v_and(x, v_set(-0.0f))), p);
    const vec small = v_where_less(v_abs(v_sub(y, v_set(7.5f))), v_set(8.0f), whole, zero);
    p = v_where_less(zero, small, v_power_whole(x, y), p);
    const vec real = v_where_less(x, zero, v_where_less(x, v_set(-FLT_MAX), one, whole), one);
    p = v_where_less(zero, real, p, v_set(NAN));
    return v_where_equal(x, one, one, v_where_equal(y, zero, one, p));
}

/* Up to 1 an odd polynomial; beyond, 1 - 2^p(|x|), which is 1 in float32 from 4 on. Both fitted for
 * the least maximal error: 4e-8 of erf(x), and 2e-9. */
SIMD_INLINE vec v_erf(vec x)
{
    const vec one = v_set(1.0f), sign = v_and(x, v_set(-0.0f));
    const vec a = v_min(v_set(4.0f), v_max(v_sub(v_set(0.0f), x), x)), q = v_mul(x, x);
    vec       near = v_fma(q, v_set(-5.63132147e-4f), v_set(4.91752906e-3f));
    near = v_fma(near, q, v_set(-2.67112942e-2f));
    near = v_fma(near, q, v_set(1.12801796e-1f));
    near = v_fma(near, q, v_set(-3.76123261e-1f));
    near = v_mul(v_fma(near, q, v_set(1.12837912f)), x);
    vec far = v_fma(a, v_set(2.6773326e-4f), v_set(-4.241024e-3f));
    far = v_fma(far, a, v_set(3.14587049e-2f));
    far = v_fma(far, a, v_set(-1.48652112e-1f));
    far = v_fma(far, a, v_set(-9.20764285e-1f));
    far = v_fma(far, a, v_set(-1.62597553f));
    far = v_fma(far, a, v_set(-5.10190733e-4f));
    far = v_or(v_sub(one, v_exp2(v_max(v_set(-126.0f), far))), sign);
    return v_where_less(a, one, near, far);
}

/* The square of e^(x/2): unlike v_exp it ends in infinity and in 0. */
SIMD_INLINE vec v_exp_whole(vec x)
{
    const vec half = v_exp(v_mul(x, v_set(0.5f)));
    return v_mul(half, half);
}

SIMD_INLINE vec v_gelu(vec x)
{
    return v_mul(v_mul(x, v_set(0.5f)), v_add(v_set(1.0f), v_erf(v_mul(x, v_set(0.70710678f)))));
}
SIMD_INLINE vec v_gelu_tanh(vec x)
{
    const vec one = v_set(1.0f), cubic = v_fma(v_mul(x, x), v_set(0.044715f), one);
    return v_mul(v_mul(x, v_set(0.5f)),
                 v_add(one, v_tanh(v_mul(v_mul(x, v_set(0.79788456f)), cubic))));
}

SIMD_INLINE vec v_activate(vec v, const struct sac_activation *a)
{
    const vec zero = v_set(0.0f);
    switch (a->kind) {
    case SAC_ACT_RELU: return v_max(zero, v);
    case SAC_ACT_SILU: /* below -87 sigmoid stops shrinking, so x must too */
        return v_mul(v_max(v_set(-87.0f), v), v_sigmoid(v));
    case SAC_ACT_SIGMOID: return v_sigmoid(v);
    case SAC_ACT_CLIP: return v_clamp(v, a->alpha, a->beta);
    case SAC_ACT_LEAKY_RELU: return v_fma(v_min(zero, v), v_set(a->alpha), v_max(zero, v));
    case SAC_ACT_HARD_SIGMOID:
        return v_clamp(v_fma(v, v_set(a->alpha), v_set(a->beta)), 0.0f, 1.0f);
    case SAC_ACT_HARD_SWISH:
        return v_mul(v, v_clamp(v_fma(v, v_set(a->alpha), v_set(a->beta)), 0.0f, 1.0f));
    case SAC_ACT_TANH: return v_tanh(v);
    case SAC_ACT_SOFTPLUS: return v_softplus(v);
    case SAC_ACT_GELU: return v_gelu(v);
    case SAC_ACT_GELU_TANH: return v_gelu_tanh(v);
    case SAC_ACT_SQUARED_RELU:
        v = v_max(zero, v);
        return v_fma(v_mul(v, v), v_set(a->alpha), v_set(a->beta));
    default: return v;
    }
}

#endif
