/* SPDX-License-Identifier: Apache-2.0 */
/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: minus the (log of the) score of the right
 * class, weighted by class; each one, their sum or weighted mean. */
#include <math.h>

#include "engine/ops/util.h"

static bool reduces(const struct sac_op_call *c)
{
    return strcmp(sac_attr_string(c->node, "reduction", "mean"), "none") != 0;
}

static sac_result loss_shape(struct sac_op_call *c)
{
    const struct sac_operand *x = &c->in[0], *target = &c->in[1];
    int64_t                   dims[SAC_RANK_MAX];
    SAC_CHECK(c,
              sac_dtype_is_float(x->dtype) && x->rank >= 2 && target->rank == x->rank - 1 &&
                  (target->dtype == SAC_I64 || target->dtype == SAC_I32),
              "scores of %d dimensions, classes of %d and dtype %s", x->rank, target->rank,
              sac_in_dtype(c, 1));
    for (int d = 0; d < target->rank; d++) {
        dims[d] = x->dims[d ? d + 1 : 0];
        SAC_CHECK(c, target->dims[d] == dims[d], "dimension %d of the classes is %lld", d,
                  (long long)target->dims[d]);
    }
    if (sac_op_has(c, 2))
        SAC_CHECK(c, c->in[2].rank == 1 && c->in[2].dims[0] == x->dims[1],
                  "not one weight for each of %lld classes", (long long)x->dims[1]);
    SAC_TRY(sac_shape_out(c, 0, x->dtype, reduces(c) ? 0 : target->rank, dims));
    return sac_shape_out(c, 1, x->dtype, x->rank, x->dims);
}

/* log(sum(exp)) of the scores at one place. */
static double log_sum_exp(const struct sac_operand *x, int64_t start, int64_t step, int64_t n)
{
    double max = -INFINITY, sum = 0;
    for (int64_t k = 0; k < n; k++)
        max = fmax(max, sac_operand_get(x, start + k * step));
    for (int64_t k = 0; k < n; k++)
        sum += exp(sac_operand_get(x, start + k * step) - max);
    return max + log(sum);
}

static sac_result loss_ref(struct sac_op_call *c)
{
    const struct sac_operand *x = &c->in[0], *target = &c->in[1], *y = &c->out[0];
    bool                      cross_entropy = c->node->op->id == SAC_OP_SoftmaxCrossEntropyLoss;
    bool    mean = strcmp(sac_attr_string(c->node, "reduction", "mean"), "mean") == 0;
    bool    ignores = sac_node_attr(c->node, "ignore_index") != NULL;
    int64_t ignored = sac_attr_int(c->node, "ignore_index", 0), classes = x->dims[1];
    int64_t plane = sac_dims_product(x->rank - 2, x->dims + 2);
    double  sum = 0, weights = 0;
    for (int64_t i = 0, n = sac_operand_elements(target); i < n; i++) {
        int64_t klass, start = i / plane * classes * plane + i % plane;
        double  norm = cross_entropy ? log_sum_exp(x, start, plane, classes) : 0;
        for (int64_t k = 0; k < classes && sac_op_wants(c, 1); k++)
            sac_operand_set(&c->out[1], start + k * plane,
                            sac_operand_get(x, start + k * plane) - norm);
        sac_load(target->dtype, target->data, i, 1, 1, &klass);
        bool skip = ignores && klass == ignored;
        SAC_CHECK(c, skip || (klass >= 0 && klass < classes), "class %lld of %lld",
                  (long long)klass, (long long)classes);
        double weight = skip ? 0 : sac_op_has(c, 2) ? sac_operand_get(&c->in[2], klass) : 1;
        double loss = skip ? 0 : weight * (norm - sac_operand_get(x, start + klass * plane));
        sum += loss;
        weights += weight;
        if (!reduces(c) && sac_op_wants(c, 0))
            sac_operand_set(y, i, loss);
    }
    if (reduces(c) && sac_op_wants(c, 0))
        sac_operand_set(y, 0, mean ? sum / weights : sum);
    return SAC_OK;
}

const struct sac_op sac_row_NegativeLogLikelihoodLoss = {
    SAC_ROW(NegativeLogLikelihoodLoss, 12, 2, 3, 1), SAC_TOLERANCE(1e-5f, 1e-5f),
    .shape = loss_shape, .ref = loss_ref};
const struct sac_op sac_row_SoftmaxCrossEntropyLoss = {
    SAC_ROW(SoftmaxCrossEntropyLoss, 12, 2, 3, 2), SAC_TOLERANCE(1e-5f, 1e-5f), .shape = loss_shape,
    .ref = loss_ref};
