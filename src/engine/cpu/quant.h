/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and products of 8-bit numbers on the CPU, channels last. QuantConv's row says what
 * they compute (engine/ops/fused.h); conv.h has their shape and their way over the lines, which is
 * that of float32.
 *
 * Four neighbouring input channels are one step: VNNI multiplies four unsigned bytes of a pixel by
 * four signed bytes of a channel's weights and adds the products to a 32-bit sum. Without VNNI both
 * are widened to 16 bits first; the instruction of AVX2 that would multiply bytes saturates. Sums
 * are exact, so all variants give the same ones. int8 input becomes uint8 on its way (below).
 *
 * A zero point is not subtracted from pixels: what it adds to a sum depends on the taps alone, so
 * sums begin with its negative. At a border they begin with that of the taps inside.
 */
#ifndef SAC_ENGINE_CPU_QUANT_H
#define SAC_ENGINE_CPU_QUANT_H

#include "engine/cpu/conv.h"

/* Input channels of a step. Groups of at least so many are read where they lie. */
enum { SAC_QUAD = 4 };

struct sac_quant_conv {
    /* [groups][blocks][kernel_h][kernel_w][quads][lanes of the block][4]: of a quad of input
     * channels. Where there are not a multiple of four, the last quad begins before the end of the
     * one before it, and has zeros for the channels that were in that: no pixel is read past its
     * last channel. */
    int8_t *weights;
    /* [kernel_h * kernel_w + 1][lanes]: what a tap's sum begins with; at the end that of all.
     * Depthwise: that of all. */
    int32_t *start;
    float   *scale, *bias; /* a lane's, for float32 results in real units or 8-bit ones in steps */
    int64_t  lanes;        /* of all groups */
    int64_t  quads;        /* of a group's input channels */

    enum sac_dtype residual, result; /* float32, int8 or uint8 */
    float          residual_scale, result_inverse;
    int            residual_zero, result_zero;
    int            low, high; /* of an 8-bit result, as it is stored */
    /* With AVX-512, of an 8-bit result without a residual: the lanes of a block have the order in
     * which packing instructions leave them (sac_quant_conv_channel). */
    bool packed;
    /* Of these with a straight activation: scale, bias, rounding and the bounds are all. */
    bool straight;
    /* Depthwise: what lies beyond a border. The weights are [strips][kernel_h][kernel_w + 3][4
     * vectors][lanes][4], of taps k - 3 to k, for each of the places k where a quad of columns may
     * end, in the order in which columns are interleaved; start lies so, scale and bias too if it
     * is packed. */
    uint8_t zeros[64];
    /* Depthwise, packed, of 16 or 32 channels: so many output columns share a vector. Else 1. */
    int per;
};

/* The channel of a block of `vecs` vectors that its lane `lane` holds. */
static inline int64_t sac_quant_conv_channel(const struct sac_quant_conv *q, int64_t vecs,
                                             int64_t lane)
{
    if (!q->packed)
        return lane;
    return lane % 16 / 4 * 4 * vecs + lane / 16 * 4 + lane % 4;
}

sac_conv_rows_fn sac_quant_rows_avx2, sac_quant_rows_avx512, sac_quant_rows_avx512_vnni;
/* "avx512_vnni", "avx512", "avx2" */
const char *sac_quant_name(void);

/* Weight (output channel, input channel, tap) of a group is data[o * out_stride + i * in_stride +
 * tap]; groups are contiguous. bias may be NULL. */
struct sac_quant_weights {
    const int8_t *data;
    int64_t       out_stride, in_stride;
    const float  *scale, *bias;
};

/* What happens to the input first: int8 becomes uint8, and groups of fewer than four channels get
 * zeros behind them up to four. It then lies in scratch. */
struct sac_quant_stage;
/* `count` pixels. */
typedef void sac_quant_stage_fn(const struct sac_quant_stage *g, const uint8_t *from, uint8_t *to,
                                int64_t count);
sac_quant_stage_fn sac_quant_stage_avx2, sac_quant_stage_avx512, sac_quant_stage_avx512_vnni;
struct sac_quant_stage {
    bool                on;
    sac_quant_stage_fn *pixels_fn;
    int                 pieces;
    uint8_t             flip;                       /* of each byte's bits */
    int64_t        n, pixels, groups, from_c, to_c; /* pixels of a sample, channels of a group */
    struct sac_map from;
};

/* The state of a kernel that is a quantised convolution. */
struct sac_quant_state {
    struct sac_conv_state  base; /* first: it runs by sac_units_run */
    struct sac_quant_conv  quant;
    struct sac_quant_stage stage;
};

/* The end of its prepare, with the shape of `in` and the strides of out and residual, in bytes, in
 * s->base.conv, and the node's attributes still to be read. Takes s. */
sac_result sac_quant_prepare(struct sac_device *dev, struct sac_kernel_plan *plan,
                             struct sac_quant_state *s, const struct sac_map *in,
                             const struct sac_quant_weights *w);
sac_result sac_quant_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                         void *scratch, struct sac_device_stream *stream);
void       sac_quant_release(void *state);

#endif
