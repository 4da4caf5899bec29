/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution on the CPU, channels last: out = act(conv(in) + bias [+ residual]) [+ residual], with
 * numbers of each channel in between where there is such an ending (SAC_ENDING).
 *
 * An implicit matrix product: a tile of output pixels times a few vectors of output channels stays
 * in registers during the loop over all taps and input channels. Input pixels are read in place
 * through strides, so a slice of channels (concat by placement) costs nothing, nor does the plain
 * layout of a network's first image.
 */
#ifndef SAC_ENGINE_CPU_CONV_H
#define SAC_ENGINE_CPU_CONV_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/cpu/cpu.h"
#include "engine/ops/fused.h"

/* Distances in elements. channel is 1 except for a plain input, and in bytes (quant.h). slice: from
 * one depth to the next. */
struct sac_conv_strides {
    int64_t sample, row, pixel, channel, slice;
};

struct sac_conv {
    int64_t n, group_in_c, group_out_c, groups;
    int64_t in_h, in_w, out_h, out_w;
    int     kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
    /* Of three dims, which is a sum of those of two over a kernel's depth. Else all 1. */
    int64_t in_d, out_d;
    int     kernel_d, stride_d, dilation_d, pad_front;
    bool    depthwise; /* one input and one output channel per group */
    /* A plain input is treated as `planes` maps of one channel, each with its own taps. */
    int64_t planes;
    /* The taps of a line and their channels are contiguous in memory: one long run. */
    bool                    merged;
    struct sac_conv_strides in, out, residual;
    enum sac_residual       residual_kind;
    int64_t                 residual_fewer; /* the last channels that it does not have */
    struct sac_activation   act;
    float clamp_min, clamp_max; /* applied when sums are stored; enough for none, relu and clip */
    bool  two_passes;           /* any other activation, or what comes after it */

    /* Work is split into rows: row r is line r % out_h of slice r / out_h, of which each sample has
     * out_d. A pointwise convolution treats its map as lines of a convenient length; the last may
     * be shorter. */
    int64_t last_w;

    int block; /* most vectors of output channels in a tile (not depthwise) */
    /* packed: [groups][blocks][kernel_d][planes][kernel_h][kernel_w][group_in_c][lanes of the
     * block], or depthwise [kernel_d][kernel_h][kernel_w][channels in whole vectors] */
    float  *weights;
    float  *bias;                      /* per group, padded with zeros to whole vectors */
    float  *ending;                    /* SAC_ENDING_ROWS, each as the bias; NULL: none */
    int64_t group_weights, group_bias; /* floats a group; depthwise: floats in all */
    int64_t depth; /* weights of an output channel: a block's begin at its first channel times it */
    int64_t first; /* of a part (sac_conv_part): its first output channel */
    /* Of 8-bit numbers, which has weights, bias and ending of its own. NULL: float32 */
    const struct sac_quant_conv *quant;
};

/* Weight (output channel, input channel, tap) of a group is data[o * out_stride + i * in_stride +
 * tap]; groups are contiguous; bias may be NULL. */
struct sac_conv_weights {
    const float *data;
    int64_t      out_stride, in_stride;
    const float *bias;
    const float *ending; /* [SAC_ENDING_ROWS][channels], or NULL */
};
static inline int64_t sac_conv_taps(const struct sac_conv *v)
{
    return (int64_t)v->kernel_d * v->kernel_h * v->kernel_w;
}
static inline int64_t sac_conv_row_count(const struct sac_conv *v)
{
    return v->n * v->out_d * v->out_h;
}
/* The activation and residual of a fused node, into the fields that hold them. */
void sac_conv_read_ending(struct sac_conv *v, const struct sac_node *n);
/* Vectors of output channels per tile, chosen to leave no thin remainder. */
int sac_conv_block(int64_t vecs);
/* [rows,depth] by [depth,columns]: a pointwise convolution whose pixels are rows, in lines of
 * `line` rows; those of the result are out_row floats apart. Without weights and bias. */
struct sac_conv sac_conv_product(int64_t rows, int64_t depth, int64_t columns, int64_t line,
                                 int64_t out_row);
/* The blocks first..end-1 of output channels alone, of a convolution of one group. It runs with the
 * addresses of the whole. */
struct sac_conv sac_conv_part(const struct sac_conv *v, int64_t first, int64_t end);
/* How a pointwise convolution of so many maps and pixels of each, which takes about `ns`, is split
 * between threads: lines of `line` pixels, and each thread has part of the channels or of the
 * lines. A pixel reads `depth` numbers; there are so many weights in all. */
struct sac_conv_split {
    int64_t line;
    bool    by_channels;
};
struct sac_conv_split sac_conv_split(const struct sac_device *dev, int64_t maps, int64_t pixels,
                                     int64_t depth, int64_t weights, int64_t ns);
/* Into how many chunks to cut `blocks` blocks of channels when there are only `units` units of
 * work, which take about `ns` in total: no more than the threads need. */
int64_t sac_conv_chunks(const struct sac_device *dev, int64_t units, int64_t blocks, int64_t ns);
/* Rows row0..row1-1, all channels; those given together share the weights in the cache. */
typedef void     sac_conv_rows_fn(const struct sac_conv *c, const void *in, const void *residual,
                                  void *out, int64_t row0, int64_t row1);
sac_conv_rows_fn sac_conv_rows_avx2, sac_conv_rows_avx512;

/* The state of a kernel that is a convolution. It runs by sac_units_run. */
struct sac_conv_state {
    struct sac_units  units; /* bands of rows, times chunks of blocks of output channels */
    struct sac_conv   conv;
    sac_conv_rows_fn *rows;
    int64_t           bands, chunks, blocks;
    bool              by_channels;  /* units of one chunk follow each other, not those of a band */
    bool              has_residual; /* input 3 */
};
/* Packs an ending, [SAC_ENDING_ROWS][channels] of each group, once group_bias is known; NULL: there
 * is none. false: no memory. */
bool sac_conv_pack_ending(struct sac_conv *v, const float *from, int64_t channels);
/* Fills block, weights, bias and their strides from the rest of v; false: no memory. */
bool sac_conv_pack(struct sac_conv *v, const struct sac_conv_weights *w);
/* In a pointwise convolution line ends do not matter: treats its map, or the maps of all samples,
 * as lines of a convenient length. The convolution takes about `ns`. */
void sac_conv_flatten(struct sac_conv *v, const struct sac_device *dev, int64_t ns);
/* Cuts it into units of work that rows_fn does, once its blocks are known. */
void sac_conv_cut(struct sac_conv_state *s, const struct sac_device *dev, int64_t ns,
                  sac_conv_rows_fn *rows_fn);
/* The end of its prepare, with the shape in s->conv. Takes s. */
sac_result sac_conv_prepare(struct sac_device *dev, struct sac_kernel_plan *plan,
                            struct sac_conv_state *s, const struct sac_conv_weights *w);
void       sac_conv_release(void *state);

#endif
