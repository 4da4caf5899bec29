/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over whole maps, in two vector widths.
 *
 * Per-channel numbers are expanded to a pattern: they are repeated until they fill whole vectors (3
 * channels and 16 lanes: 48 numbers). A dense channels-last map is then a flat array that is
 * processed together with its pattern, whatever the number of channels. */
#ifndef SAC_ENGINE_CPU_MAP_H
#define SAC_ENGINE_CPU_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/ops/fused.h"

/* Floats of a pattern for `period` numbers: the least common multiple with the vector's lanes. */
static inline int64_t sac_pattern_length(int64_t period, int lanes)
{
    int64_t a = period, b = lanes;
    while (b) {
        int64_t t = a % b;
        a = b;
        b = t;
    }
    return period / a * lanes;
}
static inline void sac_pattern_fill(float *pattern, int64_t length, const float *numbers,
                                    int64_t period)
{
    for (int64_t i = 0; i < length; i++)
        pattern[i] = numbers[i % period];
}

enum sac_binary {
    SAC_BINARY_ADD,
    SAC_BINARY_SUB,
    SAC_BINARY_MUL,
    SAC_BINARY_DIV,
    SAC_BINARY_SUB_REVERSED,
    SAC_BINARY_DIV_REVERSED,
    SAC_BINARY_PRELU /* b: the slope below 0 */
};

enum sac_unary {
    SAC_UNARY_ABS,
    SAC_UNARY_ERF,
    SAC_UNARY_EXP,
    SAC_UNARY_GELU,
    SAC_UNARY_GELU_TANH,
    SAC_UNARY_LOG,
    SAC_UNARY_NEG,
    SAC_UNARY_RECIPROCAL,
    SAC_UNARY_SQRT,
    SAC_UNARY_RECIPROCAL_SQRT,
    SAC_UNARY_SQUARE,
    SAC_UNARY_CUBE,
    SAC_UNARY_POWER,      /* x^alpha; alpha is finite, and not whole */
    SAC_UNARY_POWER_EVEN, /* alpha is even, and not 0 */
    SAC_UNARY_POWER_ODD,
    SAC_UNARY_PRODUCT, /* alpha is whole, from 1 to SAC_UNARY_PRODUCTS_MAX */
    SAC_UNARY_CEIL,
    SAC_UNARY_FLOOR,
    SAC_UNARY_ROUND, /* to even */
    SAC_UNARY_CELU,
    SAC_UNARY_ELU, /* Selu too */
    SAC_UNARY_MISH,
    SAC_UNARY_SOFTSIGN,
    SAC_UNARY_THRESHOLDED
};
enum { SAC_UNARY_PRODUCTS_MAX = 8 };
/* What some of them have besides x. */
struct sac_unary_numbers {
    float alpha, gamma;
};

enum sac_reduction {
    SAC_REDUCTION_SUM,
    SAC_REDUCTION_ABS, /* their sum */
    SAC_REDUCTION_SQUARE,
    SAC_REDUCTION_MAX, /* NaN where there is one */
    SAC_REDUCTION_MIN
};

enum { SAC_GATES_MAX = 8, SAC_MAP_PLANES_MAX = 4 };

/* One window of a pooling over channels-last maps; strides in elements. */
struct sac_window_pool {
    bool    average, count_pad;
    int64_t c, in_h, in_w, out_h, out_w, in_row, in_pixel, in_sample, out_row, out_pixel,
        out_sample;
    int kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left,
        pad_bottom, pad_right;
    /* Of three dims; else 1. */
    int64_t in_d, out_d, in_slice, out_slice;
    int     kernel_d, stride_d, dilation_d, pad_front, pad_back;
};

/* Between numbers and bytes that stand for them: (byte - zero) * scale. */
struct sac_byte_scale {
    float scale, inverse;
    int   zero;
    bool  is_signed;
};
/* Bytes of what a kernel has made, of y_dtype, which may be float8. */
struct sac_quant;
void sac_make_bytes(const struct sac_quant *q, const float *x, uint8_t *y, int64_t count);

/* Where a row or column of a resized map comes from. */
struct sac_map_tap {
    int64_t at, next; /* of the input */
    float   weight;   /* of next */
};

#define SAC_MAP_FUNCTIONS(suffix)                                                                  \
    void sac_map_activate_##suffix(const struct sac_activation *act, const float *x, float *y,     \
                                   int64_t count);                                                 \
    void sac_map_unary_##suffix(enum sac_unary op, const struct sac_unary_numbers *by,             \
                                const float *x, float *y, int64_t count);                          \
    /* y = act(x * scale + shift), patterns of `length` */                                         \
    void sac_map_affine_##suffix(const struct sac_activation *act, const float *x,                 \
                                 const float *scale, const float *shift, int64_t length, float *y, \
                                 int64_t count);                                                   \
    /* y = a op b; length 0: b is as long as a, else a pattern */                                  \
    void sac_map_binary_##suffix(enum sac_binary op, const float *a, const float *b,               \
                                 int64_t length, float *y, int64_t count);                         \
    /* y = a^b; a step of 0: one number for all */                                                 \
    void sac_map_power_##suffix(const float *a, int64_t a_step, const float *b, int64_t b_step,    \
                                float *y, int64_t count);                                          \
    void sac_map_gated_sum_##suffix(int gates, const float *const *x, const float *const *pattern, \
                                    int64_t length, int64_t offset, float *y, int64_t count);      \
    /* mean and sum of squared distances from it, of a stretch that fits the L1 cache */           \
    void sac_map_moments_##suffix(const float *x, int64_t count, double *mean, double *squares);   \
    /* the same of each channel of so many pixels, channels last */                                \
    void sac_map_channel_moments_##suffix(const float *x, int64_t pixels, int64_t c, float *mean,  \
                                          float *squares);                                         \
    /* of `count` numbers, 1 or more; of each column of `rows` rows that begin `step` apart */     \
    double sac_map_reduce_##suffix(enum sac_reduction op, const float *x, int64_t count);          \
    void   sac_map_reduce_columns_##suffix(enum sac_reduction op, const float *x, int64_t rows,    \
                                           int64_t step, double *y, int64_t columns);              \
    /* y = (x - mean) * factor * scale + shift of `count` numbers each; shift may be NULL */       \
    void sac_map_normalise_##suffix(const float *x, float mean, float factor, const float *scale,  \
                                    const float *shift, float *y, int64_t count);                  \
    /* a line of FusedRotary: `count` numbers in blocks of twice `half` */                         \
    void sac_map_rotate_##suffix(const float *x, const float *cosine, const float *sine,           \
                                 int64_t half, float *y, int64_t count);                           \
    /* softmax of `count` lines of `length` numbers, one line after the other (step 1) */          \
    /* or side by side, each one's numbers `step` apart */                                         \
    void sac_map_softmax_##suffix(const float *x, float *y, int64_t length, int64_t step,          \
                                  int64_t count);                                                  \
    /* mean per channel over pixels that lie `pixel` apart */                                      \
    void sac_map_means_##suffix(const float *x, int64_t pixels, int64_t pixel, int64_t c,          \
                                float *y);                                                         \
    /* y[i] = bias[i] + the product of x and row i of w, for `rows` rows of `length` numbers */    \
    void sac_map_layer_##suffix(const float *x, int64_t length, const float *w, const float *bias, \
                                int64_t rows, float *y);                                           \
    /* y = the sum of rows of `count` numbers, each times its weight */                            \
    void sac_map_weighted_sum_##suffix(int rows, const float *const *x, const float *weight,       \
                                       float *y, int64_t count);                                   \
    /* between four pixels of c channels: across by `column`, then down by `row` */                \
    void sac_map_lerp_##suffix(const float *a, const float *b, const float *c, const float *d,     \
                               float column, float row, float *y, int64_t channels);               \
    /* the same for one channel of pixels: a row across, then between two such rows */             \
    void sac_map_widen_##suffix(const float *x, int64_t pixel, const struct sac_map_tap *taps,     \
                                float *y, int64_t count);                                          \
    void sac_map_between_##suffix(const float *a, const float *b, float row, float *y,             \
                                  int64_t count);                                                  \
    /* bytes of numbers, rounded to even and saturated, and back */                                \
    void sac_map_quantise_##suffix(const struct sac_byte_scale *s, const float *x, uint8_t *y,     \
                                   int64_t count);                                                 \
    void sac_map_dequantise_##suffix(const struct sac_byte_scale *s, const uint8_t *x, float *y,   \
                                     int64_t count);                                               \
    /* pixels of up to SAC_MAP_PLANES_MAX bytes from planes `plane` numbers apart */               \
    void sac_map_quantise_planes_##suffix(const struct sac_byte_scale *s, const float *x,          \
                                          int64_t plane, int channels, uint8_t *y,                 \
                                          int64_t pixels);                                         \
    /* the largest of each window, of bytes: rows row0..row1-1 of all samples' output rows */      \
    void sac_map_pool_bytes_##suffix(const struct sac_window_pool *p, bool is_signed,              \
                                     const uint8_t *x, uint8_t *y, int64_t row0, int64_t row1);    \
    /* rows row0..row1-1 of the output rows of all samples' slices */                              \
    void sac_map_pool_##suffix(const struct sac_window_pool *p, const float *x, float *y,          \
                               int64_t row0, int64_t row1);
SAC_MAP_FUNCTIONS(avx2)
SAC_MAP_FUNCTIONS(avx512)

#endif
