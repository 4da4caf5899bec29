/* SPDX-License-Identifier: Apache-2.0 */
/* The row kernels in plain C. Each of rows.c, rows_avx2.c and rows_avx512.c includes this text once
 * with ROWS_TARGET set to its instruction set: the compiler then widens these loops by itself, and
 * only what it cannot do well (gathers, byte shuffles) is written by hand there. */
#include <string.h>

#include "vision/cpu/rows.h"

/* Contraction would round differently where the instruction set has a fused multiply-add; GCC is
 * told by -std=c11. */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#define ROWS_INLINE static inline __attribute__((always_inline))
/* Not every file needs every kernel. */
#define ROWS_KERNEL ROWS_TARGET __attribute__((unused)) static

/* Channel c of column x, in Q7. */
ROWS_INLINE int32_t sample_q7(const uint8_t *row, enum sac_plane_kind kind, int channels, int x,
                              int c)
{
    const int step = kind == SAC_PLANE_BYTE_QUAD ? 4 : channels;
    if (kind == SAC_PLANE_WORD || kind == SAC_PLANE_WORD_PAIR) {
        uint16_t word;
        memcpy(&word, row + 2 * ((size_t)x * (size_t)step + (size_t)c), 2);
        return word >> 1; /* the top byte is the 8 bit value */
    }
    return row[(size_t)x * (size_t)step + (size_t)c] << 7;
}

/* An area filter may take any number of rows: sums wait here, a piece of the row at a time. */
enum { VERTICAL_PIECE = 256 };

ROWS_INLINE void vertical_piece(const struct sac_plane *p, enum sac_plane_kind kind, int channels,
                                const struct sac_axis *y, int i, int c, int begin, int end,
                                int16_t *out)
{
    int32_t sum[VERTICAL_PIECE];
    for (int x = begin; x < end; x++)
        sum[x - begin] = 1 << (SAC_ROW_WEIGHT_BITS - 1);
    for (int k = 0; k < y->taps; k++) {
        int32_t w = y->weight[(size_t)k * (size_t)y->n + (size_t)i];
        if (!w)
            continue;
        const uint8_t *row = p->data + (size_t)(y->first[i] + k) * p->pitch;
        for (int x = begin; x < end; x++)
            sum[x - begin] += w * sample_q7(row, kind, channels, x, c);
    }
    for (int x = begin; x < end; x++)
        out[x] = (int16_t)(sum[x - begin] >> SAC_ROW_WEIGHT_BITS);
}

ROWS_INLINE void vertical_kind(const struct sac_plane *p, enum sac_plane_kind kind, int channels,
                               const struct sac_axis *y, int i, int begin, int end,
                               int16_t *const *out)
{
    for (int c = 0; c < channels; c++)
        for (int x = begin; x < end; x += VERTICAL_PIECE)
            vertical_piece(p, kind, channels, y, i, c, x, SAC_MIN(x + VERTICAL_PIECE, end), out[c]);
}

/* Spelled out per kind so that each inner loop is free of choices. */
ROWS_KERNEL void vertical_plain(const struct sac_plane *p, const struct sac_axis *y, int i,
                                int begin, int end, int16_t *const *out)
{
    switch (p->kind) {
    case SAC_PLANE_BYTE: vertical_kind(p, SAC_PLANE_BYTE, 1, y, i, begin, end, out); break;
    case SAC_PLANE_BYTE_PAIR:
        vertical_kind(p, SAC_PLANE_BYTE_PAIR, 2, y, i, begin, end, out);
        break;
    case SAC_PLANE_BYTE_TRIPLE:
        vertical_kind(p, SAC_PLANE_BYTE_TRIPLE, 3, y, i, begin, end, out);
        break;
    case SAC_PLANE_BYTE_QUAD:
        vertical_kind(p, SAC_PLANE_BYTE_QUAD, 3, y, i, begin, end, out);
        break;
    case SAC_PLANE_WORD: vertical_kind(p, SAC_PLANE_WORD, 1, y, i, begin, end, out); break;
    case SAC_PLANE_WORD_PAIR:
        vertical_kind(p, SAC_PLANE_WORD_PAIR, 2, y, i, begin, end, out);
        break;
    }
}

ROWS_INLINE float horizontal_at(const struct sac_axis *x, const int16_t *row, int i)
{
    const int16_t *in = row + x->first[i];
    int32_t        sum = 0;
    for (int k = 0; k < x->taps / 2; k++) {
        int32_t pair = x->weight[(size_t)k * (size_t)x->n + (size_t)i];
        sum += (int16_t)(pair & 0xffff) * in[2 * k] + (pair >> 16) * in[2 * k + 1];
    }
    return (float)sum * SAC_FLOAT_OF_SUM;
}

ROWS_KERNEL void colour_plain(const struct sac_colour_map *map, float *const row[3], int n)
{
    float *restrict a = row[0], *restrict b = row[1], *restrict c = row[2];
    const struct sac_colour_map m = *map;
    for (int i = 0; i < n; i++) {
        float y = m.y_scale * (a[i] - m.y_zero), u = b[i] - m.c_zero, v = c[i] - m.c_zero;
        a[i] = sac_clamp255(y + m.r_v * v);
        b[i] = sac_clamp255(y + (m.g_u * u + m.g_v * v));
        c[i] = sac_clamp255(y + m.b_u * u);
    }
}

#ifndef ROWS_HALF
/* To nearest, ties to even, as the hardware does. Overflow to infinity; our values are no NaNs. */
ROWS_INLINE uint16_t half_of_float(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude >= 0x47800000) /* 65536 and up */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) { /* under 2^-14: a subnormal half, let the float adder round */
        float shifted;
        memcpy(&shifted, &magnitude, 4);
        shifted += 0.5f;
        memcpy(&magnitude, &shifted, 4);
        return (uint16_t)(sign | (magnitude - 0x3f000000));
    }
    magnitude += 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | ((magnitude - 0x38000000) >> 13));
}
ROWS_INLINE void half_row(const float *in, int n, uint16_t *out)
{
    for (int i = 0; i < n; i++)
        out[i] = half_of_float(in[i]);
}
#define ROWS_HALF half_row
#endif

enum { STORE_PIECE = 64 };

/* Finished numbers to the tensor, from element `at` on. */
ROWS_INLINE void write_piece(enum sac_dtype dtype, const float *piece, int n, void *image,
                             size_t at)
{
    if (dtype == SAC_F32)
        memcpy((float *)image + at, piece, (size_t)n * sizeof *piece);
    else if (dtype == SAC_F16)
        ROWS_HALF(piece, n, (uint16_t *)image + at);
    else
        for (int i = 0; i < n; i++)
            ((uint8_t *)image)[at + (size_t)i] = sac_byte_of(piece[i]);
}

/* Planes: each channel's row goes to its own place. */
ROWS_INLINE void store_planes(const struct sac_row_store *s, float *const row[3], int n, int x,
                              int y, void *image)
{
    float piece[STORE_PIECE];
    for (int c = 0; c < 3; c++) {
        float  mean = s->mean[c], scale = s->scale[c];
        size_t at = ((size_t)c * (size_t)s->height + (size_t)y) * (size_t)s->width + (size_t)x;
        for (int done = 0; done < n; done += STORE_PIECE) {
            int m = SAC_MIN(n - done, STORE_PIECE);
            for (int i = 0; i < m; i++)
                piece[i] = (row[c][done + i] - mean) * scale;
            write_piece(s->dtype, piece, m, image, at + (size_t)done);
        }
    }
}

/* Channels last: the three rows are woven into one. */
ROWS_INLINE void store_woven(const struct sac_row_store *s, float *const row[3], int n, int x,
                             int y, void *image)
{
    float  piece[3 * STORE_PIECE];
    size_t at = ((size_t)y * (size_t)s->width + (size_t)x) * 3;
    for (int done = 0; done < n; done += STORE_PIECE) {
        int m = SAC_MIN(n - done, STORE_PIECE);
        for (int c = 0; c < 3; c++)
            for (int i = 0; i < m; i++)
                piece[3 * i + c] = (row[c][done + i] - s->mean[c]) * s->scale[c];
        write_piece(s->dtype, piece, 3 * m, image, at + 3 * (size_t)done);
    }
}

ROWS_KERNEL void store_plain(const struct sac_row_store *s, float *const row[3], int n, int x,
                             int y, void *image)
{
    if (s->layout == SAC_TENSOR_LAYOUT_NCHW)
        store_planes(s, row, n, x, y, image);
    else
        store_woven(s, row, n, x, y, image);
}
