/* SPDX-License-Identifier: Apache-2.0 */
/* Where the numbers of heads lie: FusedAttention, HeadMatMul. */
#include "engine/cuda/kernels/kernels.h"

struct ops_head_view ops_head_view_of(const struct sac_head_view *v)
{
    return (struct ops_head_view){v->offset, {v->step[0], v->step[1], v->step[2], v->step[3]}};
}

bool ops_head_fits(const struct sac_head_view *v, int d, int n)
{
    bool fits = v->offset % n == 0 && v->step[d] == 1;
    for (int other = 0; other < SAC_VIEW_RANK; other++)
        fits &= other == d || v->dim[other] == 1 || v->step[other] % n == 0;
    return fits;
}

enum sac_layout ops_head_layout(const struct sac_operand *o, const struct sac_head_view *v,
                                enum sac_layout now, int (*piece_of)(const struct sac_head_view *v))
{
    struct sac_head_view last;
    const int            plain = piece_of(v);
    if (!sac_head_view_last(o, v, &last))
        return SAC_LAYOUT_PLAIN_HALF;
    const int pieces = piece_of(&last);
    return pieces > plain || (pieces == plain && sac_layout_is_last(now))
               ? SAC_LAYOUT_CHANNELS_LAST_HALF
               : SAC_LAYOUT_PLAIN_HALF;
}

void ops_head_lying(const struct sac_operand *o, enum sac_layout layout, struct sac_head_view *v)
{
    struct sac_head_view last;
    if (sac_layout_is_last(layout) && sac_head_view_last(o, v, &last))
        *v = last;
}
