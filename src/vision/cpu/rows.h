/* SPDX-License-Identifier: Apache-2.0 */
/* The row kernels under the CPU's image operations.
 *
 * Every image operation resamples like this, row by row, all of it in the first-level cache:
 *
 *     source rows --vertical--> one row per channel, 16 bit --horizontal--> float, 0..255
 *                 --colour--> R, G, B --store--> tensor
 *
 * Between the passes a sample is an integer with 7 fractional bits (Q7), weights are integers that
 * add up to exactly one, and the float part has no fused multiply-add: so the plain C and the SIMD
 * versions agree to the last bit, and tests compare them for equality.
 *
 * Chroma is taken as it would be after "convert to RGB, then resize" with each chroma sample
 * standing for its 2 x 2 pixels (what OpenCV and FFmpeg's default conversion do): resampling and
 * the colour matrix are linear and change places; only colours outside the RGB cube and the
 * rounding to 8 bit in between make a difference. On the first frame of vtest.avi that is 0.04 of
 * 255 in the mean, under 0.5 for 99 % of the pixels; the rest are edges of white above 235.
 */
#ifndef SAC_VISION_CPU_ROWS_H
#define SAC_VISION_CPU_ROWS_H

#include <saccade/image.h>
#include "device/device.h"
#include "vision/sample.h"

/* One direction of a resampling: output i is the sum of weight[k * n + i] * input[first[i] + k]. */
struct sac_axis {
    int      n;          /* outputs */
    int      size;       /* inputs */
    int      taps;       /* even; weights of inputs past the end are 0 */
    int      begin, end; /* inputs that are used: [begin, end) */
    int32_t *first;      /* [n] */
    int32_t *weight;     /* [taps][n]; horizontal: [taps/2][n] pairs of 16 bit, see sac_axis_pack */
};

enum sac_plane_kind {
    SAC_PLANE_BYTE = 1,    /* one channel */
    SAC_PLANE_BYTE_PAIR,   /* U, V, U, V, ... */
    SAC_PLANE_BYTE_TRIPLE, /* R, G, B, ... */
    SAC_PLANE_BYTE_QUAD,   /* R, G, B and one that is not looked at, ... */
    SAC_PLANE_WORD,        /* 10 bit in the high bits of 16 */
    SAC_PLANE_WORD_PAIR
};
struct sac_plane {
    enum sac_plane_kind kind;
    int                 channels;      /* that are looked at */
    int                 width, height; /* samples per channel */
    const uint8_t      *data;
    size_t              pitch;
};

/* Where finished rows go. */
struct sac_row_store {
    enum sac_tensor_layout layout;
    enum sac_dtype         dtype;
    int                    width, height;     /* of the tensor */
    float                  mean[3], scale[3]; /* 0 and 1 for SAC_U8 */
};

struct sac_row_ops {
    /* Weighted sum of the source rows of output row i, columns [begin, end), one Q7
     * row per channel; out[c][x] is column x. */
    void (*vertical)(const struct sac_plane *plane, const struct sac_axis *y, int i, int begin,
                     int end, int16_t *const *out);
    /* Q7 row in, x->n floats in 0..255 out. */
    void (*horizontal)(const struct sac_axis *x, const int16_t *row, float *out);
    /* Y, U, V rows become R, G, B rows in place. */
    void (*colour)(const struct sac_colour_map *map, float *const row[3], int n);
    /* Three rows in the tensor's channel order to pixels [x, x + n) of row y of one image. */
    void (*store)(const struct sac_row_store *s, float *const row[3], int n, int x, int y,
                  void *image);
};
extern const struct sac_row_ops sac_row_ops_ref;
#if defined(__x86_64__)
extern const struct sac_row_ops sac_row_ops_avx2, sac_row_ops_avx512;
/* Bound by memory: wider registers gain nothing, so AVX-512 uses it too. */
void sac_row_vertical_avx2(const struct sac_plane *plane, const struct sac_axis *y, int i,
                           int begin, int end, int16_t *const *out);
#endif
const struct sac_row_ops *sac_row_ops_best(void); /* by sac_cpu_level() */

#endif
