/* SPDX-License-Identifier: Apache-2.0 */
/* A matte on the CPU, step by step: each a number of pieces that threads share. The steps follow
 * each other; a piece of one reads what all pieces of those before it wrote. */
#ifndef SAC_VISION_CPU_MATTE_H
#define SAC_VISION_CPU_MATTE_H

#include "vision/cpu/cpu.h"
#include "vision/matte.h"

/* Rows of numbers, in plain C and AVX2, equal to the last bit. */
struct sac_matte_rows {
    /* Numbers to shares. */
    void (*share)(const float *in, int n, int16_t *out);
    void (*sigmoid)(const float *in, int n, int16_t *out);
    void (*part)(const float *wanted, const float *total, int n, int16_t *out);
    void (*greatest)(const float *in, int n, float *greatest);
    void (*add)(const float *in, int n, float *sum);
    /* out = e^(in - greatest), which is added to total. */
    void (*exponentials)(const float *in, const float *greatest, int n, float *out, float *total);
    /* The sum of what is missing to 0 or 1. */
    int32_t (*unsure)(const int16_t *share, int n);
    /* Luma to sums of columns. */
    void (*add_bytes)(const uint8_t *in, int n, uint16_t *sum);
    /* Sums of differences over 3 x 3 cells; rows at the first cell of the upper row. */
    void (*residual)(const uint8_t *now, const uint8_t *before, int pitch, int n, uint16_t *out);
    void (*smooth)(int16_t *share, const int16_t *was, const uint16_t *residual, int smooth, int n);
    /* The greatest, the smallest of two. */
    void (*most)(const int16_t *in, int n, int16_t *best);
    void (*least)(const int16_t *in, int n, int16_t *best);
    /* Luma, shares and their products are added to four rows; a row of sums to another. */
    void (*add_products)(const uint8_t *luma, const int16_t *share, int n, int32_t *const sum[4]);
    void (*add_sums)(const int32_t *in, int n, int32_t *sum);
    /* Lines of n cells from x on in a row of so many; count: rows of the windows. */
    void (*lines)(int32_t *const sum[4], int x, int n, int cells, int radius, int count,
                  double variance, int32_t *slope, int32_t *base);
    void (*means)(const int32_t *slope, const int32_t *base, int x, int n, int cells, int radius,
                  int count, struct sac_matte_stretch stretch, float *out_slope, float *out_base);
    /* Cells to pixels: out = in[a] + (in[b] - in[a]) * part. */
    void (*widen)(const float *in, const int32_t *a, const int32_t *b, const float *part, int n,
                  float *out);
    void (*pixels)(const float *const slope[2], const float *const base[2], float part,
                   const uint8_t *luma, int n, uint8_t *out);
    /* Where the blend of two rows exceeds best: it, and the class. */
    void (*exceed)(const float *above, const float *below, float part, int n, int32_t number,
                   float *best, int32_t *which);
    /* Luma of pixels. */
    void (*luma_of_words)(const uint8_t *row, int n, uint8_t *out);
    void (*luma_of_colours)(const uint8_t *row, enum sac_pixel_format format, int n, uint8_t *out);
};
extern const struct sac_matte_rows sac_matte_rows_ref;
#if defined(__x86_64__)
extern const struct sac_matte_rows sac_matte_rows_avx2;
#endif

/* One image under way. */
struct sac_cpu_matte_work {
    const struct sac_matte_rows  *rows;
    const struct sac_matte_spec  *spec;
    const struct sac_matte_style *style;
    const void *const            *tensors;
    const struct sac_matte_job   *job;
    struct sac_matte_axis         x, y;
    struct sac_matte_planes       planes;
    int                           now; /* which of the planes */

    struct sac_buffer     *buffer; /* all below */
    struct sac_matte_span *span;   /* [cells across] */
    int32_t               *left, *right;
    float                 *part; /* [pixels across] the cells beside a pixel */
    int16_t               *was, *closed[2];
    uint16_t              *residual;
    uint8_t               *half[2]; /* cell 0, 0 of now and before */
    int                    half_pitch;
    struct sac_matte_move *move; /* [blocks] */
    int                    blocks_x, blocks_y;
    int32_t               *slope, *base;           /* [cells] of a window */
    float                 *slope_mean, *base_mean; /* of the windows about a cell */
};

struct sac_cpu_matte_step {
    const char *name;
    int (*pieces)(const struct sac_cpu_matte_work *m); /* 0: the step is not needed */
    void (*run)(void *matte, int piece, int worker);
};
enum { SAC_CPU_MATTE_STEPS = 13 };
extern const struct sac_cpu_matte_step sac_cpu_matte_steps[SAC_CPU_MATTE_STEPS];

sac_result sac_cpu_matte_begin(struct sac_device *dev, const struct sac_matte_spec *spec,
                               const struct sac_matte_style *style, const void *const *tensors,
                               const struct sac_matte_job *job, struct sac_cpu_matte_work *out);
void       sac_cpu_matte_end(struct sac_cpu_matte_work *m);

/* matte_cells.c: numbers of cells x..x + n of row y of the grid. */
void sac_cpu_matte_numbers(const struct sac_cpu_matte_work *m, int k, int x, int y, int n,
                           float *out);
/* Luma of pixels x..x + n of a row; room for as many. */
const uint8_t *sac_cpu_matte_luma(const struct sac_cpu_matte_work *m, int x, int y, int n,
                                  uint8_t *room);
int            sac_cpu_matte_share_pieces(const struct sac_cpu_matte_work *m);
void           sac_cpu_matte_shares(void *matte, int piece, int worker);
/* Of shares that the network gave, of those that came from the frame before. */
int  sac_cpu_matte_summary_pieces(const struct sac_cpu_matte_work *m);
int  sac_cpu_matte_moved_pieces(const struct sac_cpu_matte_work *m);
void sac_cpu_matte_summary(void *matte, int piece, int worker);
int  sac_cpu_matte_luma_pieces(const struct sac_cpu_matte_work *m);
void sac_cpu_matte_lumas(void *matte, int piece, int worker);

/* matte_move.c */
int  sac_cpu_matte_margin_pieces(const struct sac_cpu_matte_work *m);
void sac_cpu_matte_margin(void *matte, int piece, int worker);
int  sac_cpu_matte_half_pieces(const struct sac_cpu_matte_work *m);
void sac_cpu_matte_halves(void *matte, int piece, int worker);
int  sac_cpu_matte_block_pieces(const struct sac_cpu_matte_work *m);
void sac_cpu_matte_search(void *matte, int piece, int worker);
void sac_cpu_matte_smooth(void *matte, int piece, int worker);

/* matte_pixels.c */
int  sac_cpu_matte_hole_pieces(const struct sac_cpu_matte_work *m);
void sac_cpu_matte_dilate(void *matte, int piece, int worker);
void sac_cpu_matte_erode(void *matte, int piece, int worker);
int  sac_cpu_matte_line_pieces(const struct sac_cpu_matte_work *m);
void sac_cpu_matte_lines(void *matte, int piece, int worker);
void sac_cpu_matte_means(void *matte, int piece, int worker);
int  sac_cpu_matte_pixel_pieces(const struct sac_cpu_matte_work *m);
void sac_cpu_matte_pixels(void *matte, int piece, int worker);

enum { SAC_CPU_MATTE_BAND = 16 /* rows of a piece */ };

static inline int sac_cpu_matte_bands(int rows)
{
    return (rows + SAC_CPU_MATTE_BAND - 1) / SAC_CPU_MATTE_BAND;
}

#endif
