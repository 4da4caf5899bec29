/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "engine/kernel/kernel.h"

/* The first input that an elementwise node may overwrite, judging by its shape. */
static int elementwise_in_place(const struct sac_op_call *c)
{
    if (!(c->node->op->flags & SAC_OP_ELEMENTWISE) || !c->out[0].present)
        return -1;
    for (int i = 0; i < c->in_count; i++)
        if (c->in[i].present && !c->in[i].data && c->in[i].dtype == c->out[0].dtype &&
            sac_operand_same_dims(&c->in[i], &c->out[0]))
            return i;
    return -1;
}

struct sac_kernel_offer sac_kernel_take(const struct sac_kernel_question *q)
{
    struct sac_kernel_offer offer = {.taken = true, .in_place = elementwise_in_place(q->call)};
    memcpy(offer.in_layout, q->in_layout, sizeof offer.in_layout);
    return offer;
}

struct sac_kernel_offer sac_kernel_refuse(const char *fmt, ...)
{
    struct sac_kernel_offer offer = {.taken = false, .in_place = -1};
    va_list                 ap;
    va_start(ap, fmt);
    vsnprintf(offer.why, sizeof offer.why, fmt, ap);
    va_end(ap);
    return offer;
}
