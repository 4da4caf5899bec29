/* SPDX-License-Identifier: Apache-2.0 */
/* Expectation(X, W), of the domain "saccade": engine/ops/fused.h. */
#include <math.h>

#include "engine/ops/fused.h"
#include "engine/ops/util.h"

enum { X, W };

/* A file can use the domain too, so nothing about the node is trusted. */
static sac_result mean_shape(struct sac_op_call *c)
{
    SAC_CHECK(c,
              sac_op_has(c, X) && sac_op_has(c, W) && c->in[X].dtype == SAC_F32 &&
                  c->in[W].dtype == SAC_F32,
              "an input is missing or not float32");
    SAC_CHECK(c, c->in[X].rank >= 3, "an input of %d dimensions; at least 3 are needed",
              c->in[X].rank);
    const int64_t bins = c->in[W].rank == 1 ? c->in[W].dims[0] : 0;
    SAC_CHECK(c, bins > 0 && c->in[X].dims[1] % bins == 0,
              "%lld channels cannot be cut into groups of %lld numbers",
              (long long)c->in[X].dims[1], (long long)bins);
    SAC_TRY(sac_shape_out_like(c, 0, 0));
    c->out[0].dims[1] /= bins;
    return SAC_OK;
}

static sac_result mean_ref(struct sac_op_call *c)
{
    const struct sac_operand *x = &c->in[X];
    const float              *from = x->data, *w = c->in[W].data;
    float                    *to = c->out[0].data;
    const int64_t             bins = c->in[W].dims[0];
    const int64_t             inner = sac_dims_product(x->rank - 2, x->dims + 2);
    const int64_t             lines = x->dims[0] * (x->dims[1] / bins);
    for (int64_t i = 0; i < lines * inner; i++) {
        const float *line = from + i / inner * bins * inner + i % inner;
        double       max = line[0], sum = 0, all = 0;
        for (int64_t k = 1; k < bins; k++)
            max = fmax(max, line[k * inner]);
        for (int64_t k = 0; k < bins; k++) {
            const double e = exp(line[k * inner] - max);
            sum += e;
            all += e * w[k];
        }
        to[i] = (float)(all / sum);
    }
    return SAC_OK;
}

extern const struct sac_op sac_row_Expectation;
const struct sac_op        sac_row_Expectation = {SAC_FUSED_ROW(Expectation, 2, 2),
                                                  SAC_TOLERANCE(1e-4f, 1e-4f), .shape = mean_shape,
                                                  .ref = mean_ref};
