/* SPDX-License-Identifier: Apache-2.0 */
/* Launchers of the convolution kernels. Numbers are float16 or float32 in memory, sums float32;
 * maps are channels last, with pixel and sample strides in elements. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_CONV_LAUNCH_H
#define SAC_ENGINE_CUDA_PRODUCTS_CONV_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include "device/cuda/launch.h"
#include "engine/cuda/products/conv_bytes.h"
#include "engine/cuda/products/conv_stem.h"
#include "engine/cuda/products/conv_window.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is applied to each sum before it is stored. Kinds as in ops/fused_kinds.h. */
struct conv_finish {
    int         act;
    float       alpha, beta;
    int         residual_kind;
    const void *bias;       /* [channels]; NULL: none */
    const void *residual;   /* NULL: none */
    int64_t     residual_c; /* channels that have one, from the first on */
    int64_t     residual_pixel, residual_sample;
    /* [SAC_ENDING_ROWS][ending_c]: what is done to each channel behind the activation, and to a
     * residual that is added then; NULL: nothing. */
    const float *ending;
    int64_t      ending_c;
};

/* y = finish(y), in place, over n samples of `pixels` pixels. */
struct conv_pass_params {
    struct conv_finish finish;
    bool               half;
    void              *y;
    int64_t            n, pixels, c, y_pixel, y_sample;
};
cudaError_t conv_launch_pass(const struct conv_pass_params *p, cudaStream_t stream);

/* Depthwise: weights [taps][channels], taps = kernel_h * kernel_w; rows: of the output that a
 * thread computes, where it goes down them. */
struct conv_depthwise_params {
    struct conv_finish finish;
    bool               half;
    const void        *x, *w;
    void              *y;
    int                n, c, in_h, in_w, out_h, out_w;
    int     kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left, rows;
    int64_t x_pixel, x_sample, y_pixel, y_sample;
};
cudaError_t conv_launch_depthwise(const struct conv_depthwise_params *p, cudaStream_t stream);

/* Any convolution: weights [taps][C/g][K], of a transposed one [taps][C][K/g]. Slow. */
struct conv_direct_params {
    struct conv_finish finish;
    bool               half, transposed;
    const void        *x, *w;
    void              *y;
    int64_t            n;
    int     groups, in_c, out_c, in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
    int64_t x_pixel, x_sample, y_pixel, y_sample;
};
cudaError_t conv_launch_direct(const struct conv_direct_params *p, cudaStream_t stream);

/* Few input channels, float16: see conv_stem.h. */
struct conv_stem_params {
    struct conv_finish     finish; /* without a residual */
    struct conv_stem_shape shape;
    const void            *x, *w;
    void                  *y;
    int     n, in_c, in_h, in_w, out_c, out_h, out_w, kernel_h, kernel_w, stride, pad_top, pad_left;
    int64_t x_sample, y_pixel, y_sample;
};
cudaError_t conv_launch_stem(const struct conv_stem_params *p, cudaStream_t stream);

/* Float16, weights [K][taps][depth]; variant as in conv_tile_sizes and bundles as in conv_bundle
 * (conv_spec.h), which other kernels that have these parameters do not read. */
struct conv_tile_params {
    struct conv_finish finish;
    const void        *x, *w;
    void              *y;
    bool               wide; /* channels of a pixel can be stored eight at once */
    int64_t            m;    /* pixels of all samples */
    int                pixels, in_c, in_h, in_w, out_c, out_w, kernel_h, kernel_w;
    int                taps;                 /* kernel_h * kernel_w * depth */
    int                depth, unit, bundles; /* in_c and out_c are those of one */
    int                stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
    int64_t            x_pixel, x_sample, y_pixel, y_sample;
};
cudaError_t conv_launch_tile(const struct conv_tile_params *p, int variant, cudaStream_t stream);

/* 8-bit numbers, weights [K][taps][C/g]: y = finish(sum * scale + bias) / y_scale + y_zero. */
struct conv_bytes_params {
    struct conv_tile_params at;    /* finish.bias is float32; x, w and y as the kinds say */
    const float            *scale; /* [channels] */
    int                     y_kind, residual_kind; /* enum conv_number */
    float                   y_inverse, y_zero;     /* 1 / y_scale; 1 and 0 of floats */
    float                   residual_scale, residual_zero;
    int                     x_zero; /* what lies in the padding */
    float                   fold;   /* scale and bias are multiplied with it before */
    int                     groups; /* of the plain kernel */
    int                     depth;  /* channels of a tap in the weights, for the plain kernel */
};
/* Channels by sixteens, of one group. */
cudaError_t conv_launch_bytes(const struct conv_bytes_params *p, enum conv_bytes_kind kind,
                              int variant, cudaStream_t stream);
/* The same on Hopper by blocks that stay for many tiles (conv_stream.cu). */
enum conv_stream_act {
    CONV_STREAM_NONE = 0,
    CONV_STREAM_CLAMP, /* to low..high */
    CONV_STREAM_SILU,
    CONV_STREAM_GELU,
    CONV_STREAM_HARD_SWISH
};
struct conv_stream_params {
    struct conv_bytes_params b;
    int                      act; /* enum conv_stream_act */
    float                    low, high;
    bool                     flat; /* pixels of x lie in the order of those of y, a window of one */
    bool                     dense; /* samples of y and residual follow each other */
    bool                     stays; /* the rest is the launcher's: do the weights stay? */
    int                      turns, slots;
};
/* processors: of the GPU. cudaErrorNotSupported: it does not fit its shared memory. */
cudaError_t conv_launch_stream(const struct conv_stream_params *p, enum conv_bytes_kind kind,
                               int variant, int processors, cudaStream_t stream);
/* ---- on Hopper by its copy engine (conv_tensor.cuh) ---- */

/* Memory as the copy engine is told of it, in bytes: dims from the innermost one, of which a box is
 * copied at once. The rows of a box, of 32, 64 or 128 bytes, lie in shared memory with their
 * sixteens of bytes exchanged, so that rows side by side use other banks. */
struct conv_copy_shape {
    const void *at;
    int         rank;
    uint64_t    size[5], step[4];
    uint32_t    box[5];
    /* Numbers of two bytes, and so are size[0] and box[0]. They stay in their order. */
    bool halves;
    /* Behind a box lies what is asked for soon: it may come to the cache by 256 bytes. */
    bool goes_on;
    /* Of a map [c, w, h, n] whose pixels are those under one tap of a window; box[1] of them. */
    bool     window;
    int      low[2], high[2]; /* corners, w and h */
    uint32_t stride[2];
};
/* The same as the engine reads it, and as kernels' parameters hold it. */
struct conv_copy_map {
    uint64_t words[16];
} __attribute__((aligned(64)));

/* The same as conv_launch_stem, by Hopper's copy engine and matrix unit: maps of x are [halves of a
 * row, rows, samples]. */
struct conv_stem_unit_params {
    struct conv_copy_map    x;
    struct conv_stem_params s;
    struct conv_stem_square square;
};
/* processors: of the GPU. */
cudaError_t conv_launch_stem_unit(const struct conv_stem_unit_params *p, int processors,
                                  cudaStream_t stream);

/* Those of tiles; windows that stay have the weights' and, from TENSOR_PHASES on, one for each
 * phase. */
enum {
    TENSOR_WEIGHTS = 0,
    TENSOR_X,
    TENSOR_RESIDUAL,
    TENSOR_Y,
    TENSOR_PHASES = TENSOR_X,
    TENSOR_MAPS = TENSOR_PHASES + CONV_WINDOW_PHASES
};
/* Of float16 finish.bias is float16 and finish.act counts; scale, fold and act do not. Whatever the
 * numbers, in_c, taps and the steps of x are bytes. */
struct conv_tensor_params {
    struct conv_copy_map      maps[TENSOR_MAPS];
    struct conv_stream_params s;
    bool                      saturates; /* int8 outputs may lie outside of -128..127 yet */
    int                       chunk; /* bytes of a row of x and weights that are copied at once */
    /* Pixels that follow each other in y, residual and, if flat, x: those of all samples, or of
     * each. */
    int                      runs, run_pixels;
    struct conv_window_shape window; /* of those variants; runs are the samples then */
    int                      turns, stages, panels, slots, ending; /* the launcher's */
};
/* processors: of the GPU. cudaErrorNotSupported: it does not fit its shared memory. */
cudaError_t conv_launch_tensor(const struct conv_tensor_params *p, enum conv_bytes_kind kind,
                               int variant, int processors, cudaStream_t stream);

/* Any: a thread for each four channels of an output. */
cudaError_t conv_launch_bytes_plain(const struct conv_bytes_params *p, enum conv_bytes_kind kind,
                                    cudaStream_t stream);
/* An input as the tiles read it: `depth` bytes for each of `count` pixels, those behind its
 * channels 0. */
struct conv_bytes_lay_params {
    const void *x;
    void       *to;
    int64_t     count, pixels; /* of all samples, of one */
    int         c, depth;
    int64_t     x_pixel, x_sample;
};
cudaError_t conv_launch_bytes_lay(const struct conv_bytes_lay_params *p, cudaStream_t stream);
/* Was this built with code for Hopper's matrix unit? */
bool conv_bytes_has_hopper(void);
/* Pseudo-random bytes, of E4M3 numbers below 2. */
cudaError_t conv_launch_bytes_fill(void *p, enum conv_bytes_kind kind, int64_t count,
                                   cudaStream_t stream);

/* Rows of the patches of a map, float16: `count` of `row` numbers, of which the last may be zeros.
 * A patch has kernel_h lines of `line` numbers each, which lie x_line apart. */
struct conv_patches_params {
    const void *x;
    void       *rows;
    int         count, row, kernel_h, line, out_h, out_w;
    int64_t     x_line, x_sample, step_h, step_w; /* steps: from patch to patch */
};
cudaError_t conv_launch_patches(const struct conv_patches_params *p, cudaStream_t stream);

/* Compares a sample of two maps: out[0] is raised to the largest difference (infinite where one is
 * not a number, or where `got` was written outside its channels, which held set bits before),
 * out[1] to the largest number of `want`. */
struct conv_compare_params {
    bool        half;
    bool        bytes; /* of `kind`, enum conv_number */
    int         kind;
    const void *got, *want;
    int64_t     pixels, c, pixel;
    float      *out; /* device memory */
};
cudaError_t conv_launch_compare(const struct conv_compare_params *p, cudaStream_t stream);

/* Pseudo-random numbers of -1..1 in `count` elements, for measuring on. */
cudaError_t conv_launch_fill(void *p, bool half, int64_t count, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
