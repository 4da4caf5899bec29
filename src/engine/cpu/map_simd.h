/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of map.h for one vector width; see simd.h for how this file is compiled. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/cpu/map.h"
#include "engine/cpu/simd.h"

/* The body runs on whole vectors, then once on the remainder: `i` is the index; LOAD and STORE mask
 * what does not exist. */
#define FLAT(count, ...)                           \
    do {                                           \
        int64_t i = 0;                             \
        for (; i + LANES <= (count); i += LANES) { \
            enum { REST = 0 };                     \
            const vmask m = v_first(LANES);        \
            __VA_ARGS__                            \
        }                                          \
        if (i < (count)) {                         \
            enum { REST = 1 };                     \
            const vmask m = v_first((count)-i);    \
            __VA_ARGS__                            \
        }                                          \
    } while (0)
#define LOAD(p)     (REST ? v_load_first(p, m) : v_load(p))
#define STORE(p, v) (REST ? v_store_first(p, v, m) : v_store(p, v))

SIMD_INLINE void activate(const float *x, float *y, int64_t count, struct sac_activation act)
{
    FLAT(count, STORE(y + i, v_activate(LOAD(x + i), &act)););
}

SIMD_FN void SIMD_NAME(sac_map_activate)(const struct sac_activation *act, const float *x, float *y,
                                         int64_t count)
{
    switch (act->kind) { /* a constant kind in each arm, so that the loops hold one activation */
#define ARM(k) \
    case k: activate(x, y, count, (struct sac_activation){k, act->alpha, act->beta}); break;
        /* clang-format off */
    ARM(SAC_ACT_RELU) ARM(SAC_ACT_LEAKY_RELU) ARM(SAC_ACT_CLIP) ARM(SAC_ACT_SIGMOID)
    ARM(SAC_ACT_SILU) ARM(SAC_ACT_HARD_SIGMOID) ARM(SAC_ACT_HARD_SWISH) ARM(SAC_ACT_TANH)
    ARM(SAC_ACT_SOFTPLUS) ARM(SAC_ACT_GELU) ARM(SAC_ACT_GELU_TANH) ARM(SAC_ACT_SQUARED_RELU)
            /* clang-format on */
            default : activate(x, y, count, (struct sac_activation){SAC_ACT_NONE, 0, 0});
        break;
#undef ARM
    }
}

SIMD_INLINE vec elu(vec x, float alpha, float gamma)
{
    const vec zero = v_set(0.0f), below = v_mul(v_expm1(v_min(zero, x)), v_set(alpha));
    return v_mul(v_set(gamma), v_where_less(x, zero, below, x));
}

SIMD_INLINE vec unary(enum sac_unary op, const struct sac_unary_numbers *by, vec x)
{
    switch (op) {
    case SAC_UNARY_ABS: return v_abs(x);
    case SAC_UNARY_ERF: return v_erf(x);
    case SAC_UNARY_EXP: return v_exp_whole(x);
    case SAC_UNARY_GELU: return v_gelu(x);
    case SAC_UNARY_GELU_TANH: return v_gelu_tanh(x);
    case SAC_UNARY_LOG: return v_log(x);
    case SAC_UNARY_NEG: return v_mul(x, v_set(-1.0f));
    case SAC_UNARY_RECIPROCAL: return v_div(v_set(1.0f), x);
    case SAC_UNARY_RECIPROCAL_SQRT: return v_div(v_set(1.0f), v_sqrt(x));
    case SAC_UNARY_SQUARE: return v_mul(x, x);
    case SAC_UNARY_CUBE: return v_mul(v_mul(x, x), x);
    case SAC_UNARY_POWER: return v_power_fraction(x, by->alpha);
    case SAC_UNARY_POWER_EVEN: return v_power(x, by->alpha);
    case SAC_UNARY_PRODUCT: return v_product(x, (int)by->alpha);
    case SAC_UNARY_POWER_ODD: return v_or(v_power(x, by->alpha), v_and(x, v_set(-0.0f)));
    case SAC_UNARY_CEIL: return MM(ceil_ps)(x);
    case SAC_UNARY_FLOOR: return MM(floor_ps)(x);
    case SAC_UNARY_ROUND: return v_round(x);
    case SAC_UNARY_CELU: {
        const vec zero = v_set(0.0f), a = v_set(by->alpha);
        return v_where_less(x, zero, v_mul(a, v_expm1(v_div(v_min(zero, x), a))), x);
    }
    case SAC_UNARY_ELU: return elu(x, by->alpha, by->gamma);
    case SAC_UNARY_MISH: /* below -87 the softplus stops shrinking, so x must too */
        return v_mul(v_max(v_set(-87.0f), x), v_tanh(v_softplus(x)));
    case SAC_UNARY_SOFTSIGN: return v_div(x, v_add(v_set(1.0f), v_abs(x)));
    case SAC_UNARY_THRESHOLDED: return v_where_less(v_set(by->alpha), x, x, v_set(0.0f));
    default: return v_sqrt(x);
    }
}

SIMD_INLINE void unary_loop(enum sac_unary op, const struct sac_unary_numbers *by, const float *x,
                            float *y, int64_t count)
{
    const struct sac_unary_numbers numbers = *by;
    FLAT(count, STORE(y + i, unary(op, &numbers, LOAD(x + i))););
}

SIMD_FN void SIMD_NAME(sac_map_unary)(enum sac_unary op, const struct sac_unary_numbers *by,
                                      const float *x, float *y, int64_t count)
{
    switch (op) {
#define ARM(k) \
    case k: unary_loop(k, by, x, y, count); break;
        /* clang-format off */
    ARM(SAC_UNARY_ABS) ARM(SAC_UNARY_ERF) ARM(SAC_UNARY_EXP) ARM(SAC_UNARY_GELU)
    ARM(SAC_UNARY_GELU_TANH) ARM(SAC_UNARY_NEG) ARM(SAC_UNARY_RECIPROCAL) ARM(SAC_UNARY_SQRT)
    ARM(SAC_UNARY_RECIPROCAL_SQRT) ARM(SAC_UNARY_SQUARE) ARM(SAC_UNARY_CUBE) ARM(SAC_UNARY_CEIL)
    ARM(SAC_UNARY_FLOOR) ARM(SAC_UNARY_ROUND) ARM(SAC_UNARY_CELU) ARM(SAC_UNARY_ELU)
    ARM(SAC_UNARY_MISH) ARM(SAC_UNARY_SOFTSIGN) ARM(SAC_UNARY_THRESHOLDED) ARM(SAC_UNARY_LOG)
    ARM(SAC_UNARY_POWER) ARM(SAC_UNARY_POWER_EVEN) ARM(SAC_UNARY_POWER_ODD) ARM(SAC_UNARY_PRODUCT)
        /* clang-format on */
#undef ARM
    }
}

SIMD_FN void SIMD_NAME(sac_map_affine)(const struct sac_activation *act, const float *x,
                                       const float *scale, const float *shift, int64_t length,
                                       float *y, int64_t count)
{
    const struct sac_activation a = *act;
    int64_t                     at = 0;
    FLAT(count, {
        STORE(y + i, v_activate(v_fma(LOAD(x + i), v_load(scale + at), v_load(shift + at)), &a));
        at = at + LANES == length ? 0 : at + LANES;
    });
}

SIMD_INLINE vec binary(enum sac_binary op, vec a, vec b)
{
    switch (op) {
    case SAC_BINARY_ADD: return v_add(a, b);
    case SAC_BINARY_SUB: return v_sub(a, b);
    case SAC_BINARY_MUL: return v_mul(a, b);
    case SAC_BINARY_DIV: return v_div(a, b);
    case SAC_BINARY_SUB_REVERSED: return v_sub(b, a);
    case SAC_BINARY_PRELU: return v_where_less(a, v_set(0.0f), v_mul(a, b), a);
    default: return v_div(b, a);
    }
}

SIMD_INLINE void binary_loop(enum sac_binary op, const float *a, const float *b, int64_t length,
                             float *y, int64_t count)
{
    if (!length) {
        FLAT(count, STORE(y + i, binary(op, LOAD(a + i), LOAD(b + i))););
        return;
    }
    int64_t at = 0;
    FLAT(count, {
        STORE(y + i, binary(op, LOAD(a + i), v_load(b + at)));
        at = at + LANES == length ? 0 : at + LANES;
    });
}

SIMD_FN void SIMD_NAME(sac_map_binary)(enum sac_binary op, const float *a, const float *b,
                                       int64_t length, float *y, int64_t count)
{
    switch (op) {
    case SAC_BINARY_ADD: binary_loop(SAC_BINARY_ADD, a, b, length, y, count); break;
    case SAC_BINARY_SUB: binary_loop(SAC_BINARY_SUB, a, b, length, y, count); break;
    case SAC_BINARY_MUL: binary_loop(SAC_BINARY_MUL, a, b, length, y, count); break;
    case SAC_BINARY_PRELU: binary_loop(SAC_BINARY_PRELU, a, b, length, y, count); break;
    default: binary_loop(op, a, b, length, y, count); break;
    }
}

SIMD_FN void SIMD_NAME(sac_map_gated_sum)(int gates, const float *const *x,
                                          const float *const *pattern, int64_t length,
                                          int64_t offset, float *y, int64_t count)
{
    int64_t at = offset;
    FLAT(count, {
        vec sum = v_mul(LOAD(x[0] + i), v_load(pattern[0] + at));
        for (int k = 1; k < gates; k++)
            sum = v_fma(LOAD(x[k] + i), v_load(pattern[k] + at), sum);
        STORE(y + i, sum);
        at = at + LANES == length ? 0 : at + LANES;
    });
}

SIMD_FN void SIMD_NAME(sac_map_moments)(const float *x, int64_t count, double *mean,
                                        double *squares)
{
    vec sum[4] = {v_set(0), v_set(0), v_set(0), v_set(0)};
    int k = 0;
    FLAT(count, {
        sum[k] = v_add(sum[k], LOAD(x + i));
        k = (k + 1) % 4;
    });
    *mean = v_sum(v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3]))) / (double)count;
    const vec middle = v_set((float)*mean);
    vec       total[2] = {v_set(0), v_set(0)};
    int64_t   i = 0;
    for (; i + 2 * LANES <= count; i += 2 * LANES)
        for (int j = 0; j < 2; j++) {
            const vec d = v_sub(v_load(x + i + j * LANES), middle);
            total[j] = v_fma(d, d, total[j]);
        }
    double rest = 0;
    for (; i < count; i++)
        rest += (x[i] - *mean) * (x[i] - *mean);
    *squares = v_sum(v_add(total[0], total[1])) + rest;
}

SIMD_FN void SIMD_NAME(sac_map_channel_moments)(const float *x, int64_t pixels, int64_t c,
                                                float *mean, float *squares)
{
    const vec share = v_set(1.0f / (float)pixels);
    FLAT(c, {
        vec sum = v_set(0.0f), total = v_set(0.0f);
        for (int64_t p = 0; p < pixels; p++)
            sum = v_add(sum, LOAD(x + p * c + i));
        const vec middle = v_mul(sum, share);
        for (int64_t p = 0; p < pixels; p++) {
            const vec d = v_sub(LOAD(x + p * c + i), middle);
            total = v_fma(d, d, total);
        }
        STORE(mean + i, middle);
        STORE(squares + i, total);
    });
}

/* Of two numbers, NaN if either is: the instructions return their second operand then, and the bits
 * of NaN with those of a number are NaN. */
SIMD_INLINE vec v_max_or_nan(vec a, vec b)
{
    return v_or(v_max(a, b), v_max(b, a));
}
SIMD_INLINE vec v_min_or_nan(vec a, vec b)
{
    return v_or(v_min(a, b), v_min(b, a));
}

SIMD_INLINE bool is_sum(enum sac_reduction op)
{
    return op != SAC_REDUCTION_MAX && op != SAC_REDUCTION_MIN;
}

/* Sums are in double, as the differences that networks make of them need it. */
SIMD_INLINE void sum_two(enum sac_reduction op, vec_double sum[2], vec x)
{
    if (op == SAC_REDUCTION_ABS)
        x = v_abs(x);
    for (int k = 0; k < 2; k++) {
        const vec_double v = v_double(x, k);
        sum[k] = op == SAC_REDUCTION_SQUARE ? MM(fmadd_pd)(v, v, sum[k]) : MM(add_pd)(sum[k], v);
    }
}
SIMD_INLINE vec first_of_two(enum sac_reduction op, vec a, vec b)
{
    return op == SAC_REDUCTION_MAX ? v_max_or_nan(a, b) : v_min_or_nan(a, b);
}
SIMD_INLINE float first_number(enum sac_reduction op, float a, float b)
{
    return (op == SAC_REDUCTION_MAX ? b > a : b < a) || isnan(b) ? b : a;
}

SIMD_INLINE double sum_row(enum sac_reduction op, const float *x, int64_t count)
{
    vec_double sum[2] = {MM(setzero_pd)(), MM(setzero_pd)()};
    double     lane[LANES], all = 0;
    FLAT(count, sum_two(op, sum, LOAD(x + i)););
    MM(storeu_pd)(lane, sum[0]);
    MM(storeu_pd)(lane + LANES / 2, sum[1]);
    for (int k = 0; k < LANES; k++)
        all += lane[k];
    return all;
}

SIMD_INLINE double first_of_row(enum sac_reduction op, const float *x, int64_t count)
{
    vec     y[4] = {v_set(x[0]), v_set(x[0]), v_set(x[0]), v_set(x[0])};
    float   lane[LANES], first = x[0];
    int64_t i = 0;
    for (; i + 4 * LANES <= count; i += 4 * LANES)
        for (int k = 0; k < 4; k++)
            y[k] = first_of_two(op, y[k], v_load(x + i + k * LANES));
    for (int k = 1; k < 4; k++)
        y[0] = first_of_two(op, y[0], y[k]);
    v_store(lane, y[0]);
    for (int k = 0; k < LANES; k++)
        first = first_number(op, first, lane[k]);
    for (; i < count; i++)
        first = first_number(op, first, x[i]);
    return first;
}

SIMD_INLINE double reduce_row(enum sac_reduction op, const float *x, int64_t count)
{
    return is_sum(op) ? sum_row(op, x, count) : first_of_row(op, x, count);
}

SIMD_INLINE void reduce_columns(enum sac_reduction op, const float *x, int64_t rows, int64_t step,
                                double *y, int64_t columns)
{
    FLAT(columns, {
        vec_double sum[2] = {MM(setzero_pd)(), MM(setzero_pd)()};
        vec        first = LOAD(x + i);
        double     lane[LANES];
        for (int64_t r = 0; r < rows; r++)
            if (is_sum(op))
                sum_two(op, sum, LOAD(x + r * step + i));
            else
                first = first_of_two(op, first, LOAD(x + r * step + i));
        MM(storeu_pd)(lane, is_sum(op) ? sum[0] : v_double(first, 0));
        MM(storeu_pd)(lane + LANES / 2, is_sum(op) ? sum[1] : v_double(first, 1));
        memcpy(y + i, lane, (size_t)(REST ? columns - i : LANES) * sizeof *y);
    });
}

SIMD_FN double SIMD_NAME(sac_map_reduce)(enum sac_reduction op, const float *x, int64_t count)
{
    switch (op) { /* a constant in each arm */
    case SAC_REDUCTION_SUM: return reduce_row(SAC_REDUCTION_SUM, x, count);
    case SAC_REDUCTION_ABS: return reduce_row(SAC_REDUCTION_ABS, x, count);
    case SAC_REDUCTION_SQUARE: return reduce_row(SAC_REDUCTION_SQUARE, x, count);
    case SAC_REDUCTION_MAX: return reduce_row(SAC_REDUCTION_MAX, x, count);
    default: return reduce_row(SAC_REDUCTION_MIN, x, count);
    }
}

SIMD_FN void SIMD_NAME(sac_map_reduce_columns)(enum sac_reduction op, const float *x, int64_t rows,
                                               int64_t step, double *y, int64_t columns)
{
    switch (op) {
    case SAC_REDUCTION_SUM: reduce_columns(SAC_REDUCTION_SUM, x, rows, step, y, columns); break;
    case SAC_REDUCTION_ABS: reduce_columns(SAC_REDUCTION_ABS, x, rows, step, y, columns); break;
    case SAC_REDUCTION_SQUARE:
        reduce_columns(SAC_REDUCTION_SQUARE, x, rows, step, y, columns);
        break;
    case SAC_REDUCTION_MAX: reduce_columns(SAC_REDUCTION_MAX, x, rows, step, y, columns); break;
    default: reduce_columns(SAC_REDUCTION_MIN, x, rows, step, y, columns); break;
    }
}

SIMD_FN void SIMD_NAME(sac_map_normalise)(const float *x, float mean, float factor,
                                          const float *scale, const float *shift, float *y,
                                          int64_t count)
{
    const vec middle = v_set(mean), f = v_set(factor), zero = v_set(0.0f);
    FLAT(count, {
        const vec v = v_mul(v_sub(LOAD(x + i), middle), f);
        STORE(y + i, v_fma(v, LOAD(scale + i), shift ? LOAD(shift + i) : zero));
    });
}

/* Pairs side by side: lanes of even places take the difference, the others the sum. */
SIMD_INLINE void rotate_pairs(const float *x, const float *cosine, const float *sine, float *y,
                              int64_t count)
{
    FLAT(count, {
        const vec v = LOAD(x + i), other = v_mul(v_swap_pairs(v), LOAD(sine + i));
        STORE(y + i, v_difference_and_sum(v, LOAD(cosine + i), other));
    });
}

/* The first numbers of a block's pairs, then the second ones. */
SIMD_INLINE void rotate_halves(const float *x, const float *cosine, const float *sine, int64_t half,
                               float *y)
{
    const float *x2 = x + half, *cosine2 = cosine + half, *sine2 = sine + half;
    FLAT(half, {
        const vec a = LOAD(x + i), b = LOAD(x2 + i);
        STORE(y + i, v_sub(v_mul(a, LOAD(cosine + i)), v_mul(b, LOAD(sine + i))));
        STORE(y + half + i, v_fma(b, LOAD(cosine2 + i), v_mul(a, LOAD(sine2 + i))));
    });
}

SIMD_FN void SIMD_NAME(sac_map_rotate)(const float *x, const float *cosine, const float *sine,
                                       int64_t half, float *y, int64_t count)
{
    if (half == 1)
        rotate_pairs(x, cosine, sine, y, count);
    else
        for (int64_t i = 0; i < count; i += 2 * half)
            rotate_halves(x + i, cosine + i, sine + i, half, y + i);
}

/* e^x for x <= 0, and 0 where it would be subnormal: what a mask takes out costs nothing later. */
SIMD_INLINE vec share_of(vec x)
{
    return v_where_less(x, v_set(-87.0f), v_set(0.0f), v_exp(x));
}

/* The last n < LANES numbers of a line, the missing ones as what has no share. */
SIMD_INLINE vec rest_of_line(const float *x, int64_t n)
{
    float rest[LANES];
    for (int64_t i = 0; i < LANES; i++)
        rest[i] = i < n ? x[i] : -INFINITY;
    return v_load(rest);
}

/* One line whose numbers are neighbours. A NaN is not seen by the maximum, but by the sum. */
SIMD_INLINE void softmax_line(const float *x, float *y, int64_t length)
{
    const int64_t whole = length / LANES * LANES, left = length - whole;
    vec           rest = v_set(-INFINITY);
    if (left)
        rest = rest_of_line(x + whole, left);
    vec top = rest, sum = v_set(0.0f);
    for (int64_t i = 0; i < whole; i += LANES)
        top = v_max(v_load(x + i), top);
    const vec max = v_set(v_largest(top));
    for (int64_t i = 0; i < whole; i += LANES) {
        const vec e = share_of(v_sub(v_load(x + i), max));
        v_store(y + i, e);
        sum = v_add(sum, e);
    }
    if (left) {
        rest = share_of(v_sub(rest, max));
        sum = v_add(sum, rest);
    }
    const vec share = v_set(1.0f / v_sum(sum));
    for (int64_t i = 0; i < whole; i += LANES)
        v_store(y + i, v_mul(v_load(y + i), share));
    if (left)
        v_store_count(y + whole, v_mul(rest, share), left);
}

SIMD_FN void SIMD_NAME(sac_map_softmax)(const float *x, float *y, int64_t length, int64_t step,
                                        int64_t count)
{
    if (step == 1) {
        for (int64_t i = 0; i < count; i++)
            softmax_line(x + i * length, y + i * length, length);
        return;
    }
    FLAT(count, {
        vec top = v_set(-INFINITY), sum = v_set(0.0f);
        for (int64_t k = 0; k < length; k++)
            top = v_max(LOAD(x + k * step + i), top);
        for (int64_t k = 0; k < length; k++) {
            const vec e = share_of(v_sub(LOAD(x + k * step + i), top));
            STORE(y + k * step + i, e);
            sum = v_add(sum, e);
        }
        const vec share = v_div(v_set(1.0f), sum);
        for (int64_t k = 0; k < length; k++)
            STORE(y + k * step + i, v_mul(LOAD(y + k * step + i), share));
    });
}

SIMD_FN void SIMD_NAME(sac_map_means)(const float *x, int64_t pixels, int64_t pixel, int64_t c,
                                      float *y)
{
    const vec share = v_set(1.0f / (float)pixels);
    FLAT(c, {
        vec          sum[4] = {v_set(0), v_set(0), v_set(0), v_set(0)};
        const float *p = x + i;
        int64_t      r = 0;
        for (; r + 4 <= pixels; r += 4, p += 4 * pixel)
            for (int k = 0; k < 4; k++)
                sum[k] = v_add(sum[k], LOAD(p + k * pixel));
        for (; r < pixels; r++, p += pixel)
            sum[0] = v_add(sum[0], LOAD(p));
        STORE(y + i, v_mul(v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3])), share));
    });
}

SIMD_FN void SIMD_NAME(sac_map_layer)(const float *x, int64_t length, const float *w,
                                      const float *bias, int64_t rows, float *y)
{
    const vmask rest = v_first(length % LANES);
    const bool  ragged = length % LANES > 0;
    for (int64_t r = 0; r < rows; r++, w += length) {
        vec     sum[2] = {v_set(0), v_set(0)};
        int64_t k = 0;
        for (; k + 2 * LANES <= length; k += 2 * LANES)
            for (int j = 0; j < 2; j++)
                sum[j] = v_fma(v_load(w + k + j * LANES), v_load(x + k + j * LANES), sum[j]);
        for (; k + LANES <= length; k += LANES)
            sum[0] = v_fma(v_load(w + k), v_load(x + k), sum[0]);
        if (ragged)
            sum[1] = v_fma(v_load_first(w + k, rest), v_load_first(x + k, rest), sum[1]);
        y[r] = bias[r] + v_sum(v_add(sum[0], sum[1]));
    }
}

SIMD_FN void SIMD_NAME(sac_map_power)(const float *a, int64_t a_step, const float *b,
                                      int64_t b_step, float *y, int64_t count)
{
    const vec a0 = v_set(*a), b0 = v_set(*b);
    FLAT(count, STORE(y + i, v_power_any(a_step ? LOAD(a + i) : a0, b_step ? LOAD(b + i) : b0)););
}

SIMD_FN void SIMD_NAME(sac_map_weighted_sum)(int rows, const float *const *x, const float *weight,
                                             float *y, int64_t count)
{
    FLAT(count, {
        vec sum = v_set(0);
        for (int k = 0; k < rows; k++)
            sum = v_fma(LOAD(x[k] + i), v_set(weight[k]), sum);
        STORE(y + i, sum);
    });
}

SIMD_FN void SIMD_NAME(sac_map_lerp)(const float *a, const float *b, const float *c, const float *d,
                                     float column, float row, float *y, int64_t channels)
{
    const vec across = v_set(column), down = v_set(row);
    FLAT(channels, {
        const vec va = LOAD(a + i), vc = LOAD(c + i);
        const vec upper = v_fma(v_sub(LOAD(b + i), va), across, va);
        const vec lower = v_fma(v_sub(LOAD(d + i), vc), across, vc);
        STORE(y + i, v_fma(v_sub(lower, upper), down, upper));
    });
}

SIMD_FN void SIMD_NAME(sac_map_widen)(const float *x, int64_t pixel, const struct sac_map_tap *taps,
                                      float *y, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const float a = x[taps[i].at * pixel];
        y[i] = fmaf(x[taps[i].next * pixel] - a, taps[i].weight, a);
    }
}

SIMD_FN void SIMD_NAME(sac_map_between)(const float *a, const float *b, float row, float *y,
                                        int64_t count)
{
    const vec down = v_set(row);
    FLAT(count, {
        const vec va = LOAD(a + i);
        STORE(y + i, v_fma(v_sub(LOAD(b + i), va), down, va));
    });
}

/* The taps of one axis that are inside the input. */
static void inside(int64_t origin, int dilation, int kernel, int64_t size, int64_t *k0, int64_t *k1)
{
    *k0 = origin < 0 ? (-origin + dilation - 1) / dilation : 0;
    *k1 = origin < size ? (size - 1 - origin) / dilation + 1 : 0;
    if (*k1 > kernel)
        *k1 = kernel;
    if (*k0 > *k1)
        *k0 = *k1;
}

/* The taps that an average with padding counts: those up to the padded edge (ceil_mode may go past
 * it). */
static int64_t counted(int64_t origin, int dilation, int kernel, int64_t size, int pad_after)
{
    int64_t k0, k1;
    inside(origin, dilation, kernel, size + pad_after, &k0, &k1);
    return k1;
}

SIMD_FN static void pool_pixel(const struct sac_window_pool *p, const float *x, float *y,
                               int64_t oz, int64_t oy, int64_t ox)
{
    const int64_t front = oz * p->stride_d - p->pad_front;
    const int64_t top = oy * p->stride_h - p->pad_top, left = ox * p->stride_w - p->pad_left;
    int64_t       z0, z1, y0, y1, x0, x1;
    inside(front, p->dilation_d, p->kernel_d, p->in_d, &z0, &z1);
    inside(top, p->dilation_h, p->kernel_h, p->in_h, &y0, &y1);
    inside(left, p->dilation_w, p->kernel_w, p->in_w, &x0, &x1);
    int64_t taps = (z1 - z0) * (y1 - y0) * (x1 - x0);
    if (p->count_pad)
        taps = counted(front, p->dilation_d, p->kernel_d, p->in_d, p->pad_back) *
               counted(top, p->dilation_h, p->kernel_h, p->in_h, p->pad_bottom) *
               counted(left, p->dilation_w, p->kernel_w, p->in_w, p->pad_right);
    const vec    share = v_set(taps > 0 ? 1.0f / (float)taps : 0);
    const float *base = x + front * p->in_slice + top * p->in_row + left * p->in_pixel;
    FLAT(p->c, {
        vec acc = v_set(p->average ? 0 : -FLT_MAX);
        for (int64_t kz = z0; kz < z1; kz++)
            for (int64_t ky = y0; ky < y1; ky++)
                for (int64_t kx = x0; kx < x1; kx++) {
                    const vec v =
                        LOAD(base + kz * p->dilation_d * p->in_slice +
                             ky * p->dilation_h * p->in_row + kx * p->dilation_w * p->in_pixel + i);
                    acc = p->average ? v_add(acc, v) : v_max(acc, v);
                }
        STORE(y + i, p->average ? v_mul(acc, share) : acc);
    });
}

SIMD_FN void SIMD_NAME(sac_map_pool)(const struct sac_window_pool *p, const float *x, float *y,
                                     int64_t row0, int64_t row1)
{
    for (int64_t r = row0; r < row1; r++) {
        const int64_t slice = r / p->out_h, n = slice / p->out_d;
        const int64_t oz = slice % p->out_d, oy = r % p->out_h;
        float        *row = y + n * p->out_sample + oz * p->out_slice + oy * p->out_row;
        for (int64_t ox = 0; ox < p->out_w; ox++)
            pool_pixel(p, x + n * p->in_sample, row + ox * p->out_pixel, oz, oy, ox);
    }
}

/* ---- bytes ---- */

/* Within the bounds before it is rounded: those are whole, and no integer overflows. */
SIMD_INLINE vec round_within(const struct sac_byte_scale *s, vec x)
{
    const float low = (float)((s->is_signed ? INT8_MIN : 0) - s->zero);
    return v_clamp(v_mul(x, v_set(s->inverse)), low, low + UINT8_MAX);
}

/* 16 numbers. */
SIMD_INLINE __m128i quantise_16(const struct sac_byte_scale *s, const float *x)
{
#if SAC_SIMD_BITS == 512
    const __m512i zero = _mm512_set1_epi32(s->zero);
    return _mm512_cvtepi32_epi8(
        _mm512_add_epi32(_mm512_cvtps_epi32(round_within(s, v_load(x))), zero));
#else
    const __m256i zero = _mm256_set1_epi32(s->zero), byte = _mm256_set1_epi32(0xff);
    __m128i       words[2];
    for (int i = 0; i < 2; i++) {
        __m256i v = _mm256_cvtps_epi32(round_within(s, v_load(x + i * LANES)));
        v = _mm256_and_si256(byte, _mm256_add_epi32(v, zero));
        words[i] = _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    }
    return _mm_packus_epi16(words[0], words[1]);
#endif
}

SIMD_INLINE __m128i quantise_first(const struct sac_byte_scale *s, const float *x, int64_t count)
{
    float some[16] = {0};
    memcpy(some, x, (size_t)count * sizeof *x);
    return quantise_16(s, some);
}

SIMD_FN void SIMD_NAME(sac_map_quantise)(const struct sac_byte_scale *scale, const float *x,
                                         uint8_t *y, int64_t count)
{
    const struct sac_byte_scale s = *scale; /* stores of bytes could change any other memory */
    uint8_t                     some[16];
    int64_t                     i = 0;
    for (; i + 16 <= count; i += 16)
        _mm_storeu_si128((void *)(y + i), quantise_16(&s, x + i));
    if (i < count) {
        _mm_storeu_si128((void *)some, quantise_first(&s, x + i, count - i));
        memcpy(y + i, some, (size_t)(count - i));
    }
}

SIMD_INLINE vec dequantise(const struct sac_byte_scale *s, const uint8_t *x)
{
#if SAC_SIMD_BITS == 512
    const __m128i b = _mm_loadu_si128((const void *)x);
    const __m512i v = s->is_signed ? _mm512_cvtepi8_epi32(b) : _mm512_cvtepu8_epi32(b);
    const vec     f = _mm512_cvtepi32_ps(_mm512_sub_epi32(v, _mm512_set1_epi32(s->zero)));
#else
    const __m128i b = _mm_loadl_epi64((const void *)x);
    const __m256i v = s->is_signed ? _mm256_cvtepi8_epi32(b) : _mm256_cvtepu8_epi32(b);
    const vec     f = _mm256_cvtepi32_ps(_mm256_sub_epi32(v, _mm256_set1_epi32(s->zero)));
#endif
    return v_mul(f, v_set(s->scale));
}

SIMD_FN void SIMD_NAME(sac_map_dequantise)(const struct sac_byte_scale *s, const uint8_t *x,
                                           float *y, int64_t count)
{
    uint8_t some[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        v_store(y + i, dequantise(s, x + i));
    if (i < count) {
        memcpy(some, x + i, (size_t)(count - i));
        v_store_count(y + i, dequantise(s, some), count - i);
    }
}

/* 16 pixels of three bytes: which byte of a plane goes where in each 16 of the 48. */
struct weave {
    uint8_t from[3][3][16];
};

static struct weave weave_of_three(void)
{
    struct weave w;
    for (int plane = 0; plane < 3; plane++)
        for (int at = 0; at < 48; at++)
            w.from[plane][at / 16][at % 16] = (uint8_t)(at % 3 == plane ? at / 3 : 0x80);
    return w;
}

SIMD_INLINE void weave_16(const struct weave *w, const __m128i *planes, uint8_t *y)
{
    for (int k = 0; k < 3; k++) {
        __m128i v = _mm_setzero_si128();
        for (int plane = 0; plane < 3; plane++)
            v = _mm_or_si128(v, _mm_shuffle_epi8(planes[plane],
                                                 _mm_loadu_si128((const void *)w->from[plane][k])));
        _mm_storeu_si128((void *)(y + 16 * k), v);
    }
}

SIMD_FN void SIMD_NAME(sac_map_quantise_planes)(const struct sac_byte_scale *scale, const float *x,
                                                int64_t plane, int channels, uint8_t *y,
                                                int64_t pixels)
{
    const struct sac_byte_scale s = *scale;
    const struct weave          w = weave_of_three();
    for (int64_t i = 0; i < pixels; i += 16) {
        const int64_t here = pixels - i < 16 ? pixels - i : 16;
        __m128i       planes[SAC_MAP_PLANES_MAX];
        uint8_t       bytes[SAC_MAP_PLANES_MAX][16];
        for (int k = 0; k < channels; k++)
            planes[k] = here == 16 ? quantise_16(&s, x + k * plane + i)
                                   : quantise_first(&s, x + k * plane + i, here);
        if (channels == 3 && here == 16) {
            weave_16(&w, planes, y + 3 * i);
            continue;
        }
        for (int k = 0; k < channels; k++)
            _mm_storeu_si128((void *)bytes[k], planes[k]);
        for (int64_t j = 0; j < here * channels; j++)
            y[i * channels + j] = bytes[j % channels][j / channels];
    }
}

#if SAC_SIMD_BITS == 512
typedef __m512i bytes_vec;
#define BYTES(name) _mm512_##name
#define BYTES_LOAD  _mm512_loadu_si512
#define BYTES_STORE _mm512_storeu_si512
#else
typedef __m256i bytes_vec;
#define BYTES(name)       _mm256_##name
#define BYTES_LOAD(p)     _mm256_loadu_si256((const void *)(p))
#define BYTES_STORE(p, v) _mm256_storeu_si256((void *)(p), v)
#endif

/* The taps of a pixel: the first one's address, and those of lines and columns. */
struct pool_taps {
    const uint8_t *first;
    int64_t        line, column, lines, columns; /* distances and counts */
};

SIMD_INLINE void largest_vec(const struct pool_taps *t, uint8_t *y, bool is_signed)
{
    bytes_vec acc = BYTES_LOAD(t->first);
    for (int64_t ky = 0; ky < t->lines; ky++)
        for (int64_t kx = 0; kx < t->columns; kx++) {
            const bytes_vec v = BYTES_LOAD(t->first + ky * t->line + kx * t->column);
            acc = is_signed ? BYTES(max_epi8)(acc, v) : BYTES(max_epu8)(acc, v);
        }
    BYTES_STORE(y, acc);
}

SIMD_INLINE void largest_16(const struct pool_taps *t, uint8_t *y, bool is_signed)
{
    __m128i acc = _mm_loadu_si128((const void *)t->first);
    for (int64_t ky = 0; ky < t->lines; ky++)
        for (int64_t kx = 0; kx < t->columns; kx++) {
            const __m128i v =
                _mm_loadu_si128((const void *)(t->first + ky * t->line + kx * t->column));
            acc = is_signed ? _mm_max_epi8(acc, v) : _mm_max_epu8(acc, v);
        }
    _mm_storeu_si128((void *)y, acc);
}

SIMD_INLINE void largest_one(const struct pool_taps *t, uint8_t *y, bool is_signed)
{
    const uint8_t flip = is_signed ? 0x80 : 0;
    uint8_t       acc = *t->first ^ flip;
    for (int64_t ky = 0; ky < t->lines; ky++)
        for (int64_t kx = 0; kx < t->columns; kx++) {
            const uint8_t v = t->first[ky * t->line + kx * t->column] ^ flip;
            acc = v > acc ? v : acc;
        }
    *y = acc ^ flip;
}

SIMD_INLINE void pool_bytes_pixel(const struct sac_window_pool *p, bool is_signed, const uint8_t *x,
                                  uint8_t *y, int64_t oy, int64_t ox)
{
    const int64_t top = oy * p->stride_h - p->pad_top, left = ox * p->stride_w - p->pad_left;
    int64_t       y0, y1, x0, x1;
    inside(top, p->dilation_h, p->kernel_h, p->in_h, &y0, &y1);
    inside(left, p->dilation_w, p->kernel_w, p->in_w, &x0, &x1);
    if (y0 == y1 || x0 == x1) {
        memset(y, is_signed ? 0x80 : 0, (size_t)p->c);
        return;
    }
    struct pool_taps t = {x + (top + y0 * p->dilation_h) * p->in_row +
                              (left + x0 * p->dilation_w) * p->in_pixel,
                          p->dilation_h * p->in_row, p->dilation_w * p->in_pixel, y1 - y0, x1 - x0};
    int64_t          i = 0;
    for (; i + (int64_t)sizeof(bytes_vec) <= p->c; i += (int64_t)sizeof(bytes_vec)) {
        largest_vec(&t, y + i, is_signed);
        t.first += sizeof(bytes_vec);
    }
    for (; i + 16 <= p->c; i += 16, t.first += 16)
        largest_16(&t, y + i, is_signed);
    for (; i < p->c; i++, t.first++)
        largest_one(&t, y + i, is_signed);
}

SIMD_FN void SIMD_NAME(sac_map_pool_bytes)(const struct sac_window_pool *p, bool is_signed,
                                           const uint8_t *x, uint8_t *y, int64_t row0, int64_t row1)
{
    const struct sac_window_pool pool = *p;
    for (int64_t r = row0; r < row1; r++) {
        const int64_t n = r / p->out_h, oy = r % p->out_h;
        for (int64_t ox = 0; ox < p->out_w; ox++) {
            uint8_t       *to = y + n * p->out_sample + oy * p->out_row + ox * p->out_pixel;
            const uint8_t *from = x + n * p->in_sample;
            if (is_signed)
                pool_bytes_pixel(&pool, true, from, to, oy, ox);
            else
                pool_bytes_pixel(&pool, false, from, to, oy, ox);
        }
    }
}
