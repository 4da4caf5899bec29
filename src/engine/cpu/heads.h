/* SPDX-License-Identifier: Apache-2.0 */
/* Products of the matrices of heads, of FusedAttention and HeadMatMul: pointwise convolutions whose
 * weights are computed, so they are packed in each run (sac_conv_product). */
#ifndef SAC_ENGINE_CPU_HEADS_H
#define SAC_ENGINE_CPU_HEADS_H

#include "engine/cpu/conv.h"
#include "engine/ops/reads.h"

/* dst[c * dst_step + r] = src[r * src_step + c]. */
void sac_head_turn(float *dst, int64_t dst_step, const float *src, int64_t src_step, int64_t rows,
                   int64_t columns);
/* The weights of v from a matrix of which a row and a column lie so far apart: panels
 * [panels][depth][width], missing columns are zero. */
void sac_head_pack(const struct sac_conv *v, const float *b, int64_t row, int64_t column,
                   float *to);

/* Channels last where a map lies so and the numbers of heads, or if it may be `either` their
 * tokens, are neighbours there; else plain. */
enum sac_layout sac_head_layout(const struct sac_operand *o, const struct sac_head_view *v,
                                enum sac_layout now, bool either);
/* Rows of so many numbers of a head, which begins at `from`, one after the other; and back. */
void sac_head_load(const struct sac_head_view *v, const float *from, int64_t rows, int64_t count,
                   float *to);
void sac_head_put(const struct sac_head_view *v, const float *from, int64_t rows, int64_t count,
                  float *to);

#endif
