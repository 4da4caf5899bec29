/* SPDX-License-Identifier: Apache-2.0 */
/* ReverseSequence: the first part of each line is reversed. */
#include "engine/ops/util.h"

static sac_result reverse_axes(struct sac_op_call *c, int64_t *batch, int64_t *time)
{
    *batch = sac_attr_int(c->node, "batch_axis", 1);
    *time = sac_attr_int(c->node, "time_axis", 0);
    SAC_CHECK(c, c->in[0].rank >= 2 && ((*batch == 0 && *time == 1) || (*batch == 1 && *time == 0)),
              "batch axis %lld and time axis %lld; have 0 and 1", (long long)*batch,
              (long long)*time);
    return SAC_OK;
}

static sac_result reverse_shape(struct sac_op_call *c)
{
    int64_t batch, time;
    SAC_TRY(reverse_axes(c, &batch, &time));
    SAC_CHECK(c,
              c->in[1].dtype == SAC_I64 && c->in[1].rank == 1 &&
                  c->in[1].dims[0] == c->in[0].dims[batch],
              "not one length for each of %lld lines", (long long)c->in[0].dims[batch]);
    return sac_shape_same(c);
}

static sac_result reverse_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    const int64_t            *lengths = c->in[1].data;
    int64_t                   batch, time, strides[SAC_RANK_MAX];
    SAC_TRY(reverse_axes(c, &batch, &time));
    sac_dense_strides(in->rank, in->dims, strides);
    size_t run = (size_t)sac_dims_product(in->rank - 2, in->dims + 2) * sac_dtype_bytes(in->dtype);
    size_t unit = sac_dtype_bytes(in->dtype);
    for (int64_t b = 0; b < in->dims[batch]; b++) {
        SAC_CHECK(c, lengths[b] >= 0 && lengths[b] <= in->dims[time], "a length of %lld of %lld",
                  (long long)lengths[b], (long long)in->dims[time]);
        for (int64_t t = 0; t < in->dims[time]; t++) {
            int64_t from = t < lengths[b] ? lengths[b] - 1 - t : t;
            memcpy((char *)c->out[0].data + (size_t)(b * strides[batch] + t * strides[time]) * unit,
                   (const char *)in->data +
                       (size_t)(b * strides[batch] + from * strides[time]) * unit,
                   run);
        }
    }
    return SAC_OK;
}

const struct sac_op sac_row_ReverseSequence = {SAC_ROW(ReverseSequence, 10, 2, 2, 1),
                                               .shape = reverse_shape, .ref = reverse_ref};
