/* SPDX-License-Identifier: Apache-2.0 */
/* DeformAttention(V, P, W), of the domain "saccade": attention to a few places of each level of a
 * pyramid of maps (Zhu et al., "Deformable DETR", 2021).
 *
 * V  [N,S,C...]  the levels one after the other, their pixels row by row; C numbers, head by head
 * P  [N,Q,...]   places: for each head, level and point x and y in -1..1 (GridSample's, whose outer
 *                edges they are) after gain * P + shift
 * W  [N,Q,...]   for each head, level and point its share, or with softmax=1 its score, of which
 *                the softmax over a head's levels and points makes shares
 * Y  [N,Q,C]     the sum of shares times V between four pixels; beyond a level's edge lies 0
 *
 * Attributes: heads; sizes, height and width of each level; points, how many each level has. */
#ifndef SAC_ENGINE_OPS_DEFORM_ATTENTION_H
#define SAC_ENGINE_OPS_DEFORM_ATTENTION_H

#include "engine/ops/op.h"

enum { SAC_DEFORM_LEVELS = 8 };
struct sac_deform_level {
    int64_t start, height, width; /* start: its first pixel in S */
    int64_t first, points;        /* first: its first point of all */
};
struct sac_deform_attention {
    int64_t                 batch, queries, values, heads, size; /* size: numbers of a head */
    int64_t                 points;                              /* of a head, on all levels */
    int                     levels;
    struct sac_deform_level level[SAC_DEFORM_LEVELS];
    float                   gain, shift;
    bool                    softmax;
};
/* Reads and checks node and inputs. */
sac_result sac_deform_attention_read(const struct sac_op_call *c, struct sac_deform_attention *a);

#endif
