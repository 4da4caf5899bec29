/* SPDX-License-Identifier: Apache-2.0 */
/* Det: determinants of square matrices. */
#include "engine/ops/determinant.h"
#include "engine/ops/util.h"

static sac_result det_shape(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    SAC_CHECK(c,
              sac_dtype_is_float(in->dtype) && in->rank >= 2 &&
                  in->dims[in->rank - 1] == in->dims[in->rank - 2],
              "the input is no square matrix");
    return sac_shape_out(c, 0, in->dtype, in->rank - 2, in->dims);
}

static sac_result det_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    int64_t                   n = in->dims[in->rank - 1], size = n * n;
    double                   *a = sac_alloc((size_t)size * sizeof *a);
    if (!a)
        return sac_op_no_memory(c);
    for (int64_t i = 0; i < sac_operand_elements(&c->out[0]); i++) {
        sac_read_doubles(in, i * size, 1, size, a);
        sac_operand_set(&c->out[0], i, sac_determinant(a, n));
    }
    sac_free(a);
    return SAC_OK;
}

const struct sac_op sac_row_Det = {SAC_ROW(Det, 11, 1, 1, 1), SAC_TOLERANCE(1e-4f, 1e-4f),
                                   .shape = det_shape, .ref = det_ref};
