/* SPDX-License-Identifier: Apache-2.0 */
/* OneHot: each index becomes a line with the on value in one place and the off value elsewhere. */
#include "engine/ops/util.h"

static sac_result one_hot_axis(struct sac_op_call *c, int *axis)
{
    int64_t wanted = sac_attr_int(c->node, "axis", -1);
    SAC_CHECK(c, sac_axis_normalise(wanted, c->in[0].rank + 1, axis),
              "axis %lld of a tensor of %d dimensions", (long long)wanted, c->in[0].rank + 1);
    return SAC_OK;
}

static sac_result one_hot_shape(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    int                       axis;
    int64_t                   dims[SAC_RANK_MAX + 1];
    SAC_TRY(one_hot_axis(c, &axis));
    SAC_CHECK(c,
              sac_operand_elements(&c->in[1]) == 1 && c->in[2].rank == 1 && c->in[2].dims[0] == 2,
              "depth is not one number, or the values are not two");
    if (!c->in[1].data)
        return SAC_AGAIN;
    double depth = sac_operand_get(&c->in[1], 0);
    SAC_CHECK(c, depth >= 0 && depth < 0x1p31, "a depth of %g", depth);
    for (int d = 0, from = 0; d <= in->rank; d++)
        dims[d] = d == axis ? (int64_t)depth : in->dims[from++];
    return sac_shape_out(c, 0, c->in[2].dtype, in->rank + 1, dims);
}

/* Negative indices count from the end; an index out of range gives a line of off values. */
static sac_result one_hot_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *values = &c->in[2], *out = &c->out[0];
    int                       axis;
    SAC_TRY(one_hot_axis(c, &axis));
    int64_t     depth = out->dims[axis];
    int64_t     inner = sac_dims_product(out->rank - axis - 1, out->dims + axis + 1);
    size_t      bytes = sac_dtype_bytes(out->dtype);
    const char *off = values->data, *on = off + bytes;
    for (int64_t i = 0, n = sac_operand_elements(out); i < n; i++) {
        int64_t place = i / inner % depth, from = i / (inner * depth) * inner + i % inner;
        double  index = sac_operand_get(in, from);
        index += index < 0 ? (double)depth : 0;
        memcpy((char *)out->data + (size_t)i * bytes, index == (double)place ? on : off, bytes);
    }
    return SAC_OK;
}

const struct sac_op sac_row_OneHot = {SAC_ROW(OneHot, 9, 3, 3, 1), .shape = one_hot_shape,
                                      .ref = one_hot_ref};
