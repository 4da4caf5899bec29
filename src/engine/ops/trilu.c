/* SPDX-License-Identifier: Apache-2.0 */
/* Trilu: a triangle of each matrix is kept, the rest is 0. */
#include "engine/ops/util.h"

static sac_result trilu_shape(struct sac_op_call *c)
{
    int64_t k;
    size_t  n;
    SAC_CHECK(c, c->in[0].rank >= 2, "input of %d dimensions; have 2 and more", c->in[0].rank);
    if (sac_op_has(c, 1)) {
        sac_result res = sac_operand_ints(c, 1, &k, 1, &n);
        if (res != SAC_OK && res != SAC_AGAIN) /* its value does not matter yet */
            return res;
        SAC_CHECK(c, sac_operand_elements(&c->in[1]) == 1, "k is not one number");
    }
    return sac_shape_same(c);
}

static sac_result trilu_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    bool                      upper = sac_attr_int(c->node, "upper", 1);
    int64_t rows = in->dims[in->rank - 2], columns = in->dims[in->rank - 1], k = 0;
    size_t  bytes = sac_dtype_bytes(in->dtype), n;
    if (sac_op_has(c, 1))
        SAC_TRY(sac_operand_ints(c, 1, &k, 1, &n));
    k = SAC_CLAMP(k, -rows - 1, columns + 1);
    if (c->out[0].data != in->data)
        memcpy(c->out[0].data, in->data, sac_operand_bytes(in));
    int64_t row_count = sac_dims_product(in->rank - 1, in->dims);
    for (int64_t r = 0; r < row_count; r++) {
        int64_t edge = r % rows + k; /* the first column of the upper triangle */
        int64_t first = upper ? 0 : SAC_CLAMP(edge + 1, 0, columns);
        int64_t last = upper ? SAC_CLAMP(edge, 0, columns) : columns;
        memset((char *)c->out[0].data + (size_t)(r * columns + first) * bytes, 0,
               (size_t)(last - first) * bytes);
    }
    return SAC_OK;
}

const struct sac_op sac_row_Trilu = {SAC_ROW(Trilu, 14, 1, 2, 1), .shape = trilu_shape,
                                     .ref = trilu_ref};
