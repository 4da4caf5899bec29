/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include <saccade/model.h>

#include "engine/model/difference.h"
#include "engine/ops/op.h"

static const double SMALLEST = 0.05;

/* Slice k along an axis: elements at o * count * inner + k * inner + i. */
static double slice(const struct sac_operand *x, const struct sac_operand *y, int64_t outer,
                    int64_t count, int64_t inner, int64_t k)
{
    double largest = SMALLEST, off = 0;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            const int64_t at = (o * count + k) * inner + i;
            const double  u = sac_operand_get(x, at), v = sac_operand_get(y, at);
            if (u == v || (isnan(u) && isnan(v)))
                largest = isfinite(v) ? fmax(largest, fabs(v)) : largest;
            else if (!isfinite(u) || !isfinite(v))
                return INFINITY;
            else
                largest = fmax(largest, fabs(v)), off = fmax(off, fabs(u - v));
        }
    return off / largest;
}

static double along(const struct sac_tensor_desc *d, const struct sac_operand *x,
                    const struct sac_operand *y, int axis)
{
    int64_t outer = 1, inner = 1;
    double  worst = 0;
    for (int i = 0; i < axis; i++)
        outer *= d->shape[i];
    for (int i = axis + 1; i < d->rank; i++)
        inner *= d->shape[i];
    for (int64_t k = 0; k < d->shape[axis]; k++)
        worst = fmax(worst, slice(x, y, outer, d->shape[axis], inner, k));
    return worst;
}

double sac_difference(const struct sac_tensor_desc *d, const void *got, const void *want)
{
    const struct sac_operand x = {.dtype = d->dtype, .data = (void *)got};
    const struct sac_operand y = {.dtype = d->dtype, .data = (void *)want};
    const int64_t            count = sac_tensor_desc_elements(d);
    if (d->rank < 3 || count == 0) /* rows of an embedding, or scores */
        return slice(&x, &y, 1, 1, count, 0);
    const double by_channel = along(d, &x, &y, 1);
    return d->rank == 3 ? fmax(by_channel, along(d, &x, &y, 2)) : by_channel; /* [N,cells,numbers]
                                                                                 too */
}

double sac_difference_limit(int precision)
{
    return precision == SAC_PRECISION_FP32 ? 0.001 : 0.03;
}
