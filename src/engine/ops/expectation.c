/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/expectation.h"

#include <math.h>

#include "engine/ops/fused.h"
#include "engine/ops/util.h"

enum { X, W, M, R };

static int64_t pixels_of(const struct sac_operand *x)
{
    return sac_dims_product(x->rank - 2, x->dims + 2);
}

static sac_result sums_shape(struct sac_op_call *c, int64_t means)
{
    const struct sac_operand *m = &c->in[M];
    SAC_CHECK(c, m->dtype == SAC_F32 && m->rank == 3 && m->dims[0] > 0 && m->dims[1] == means + 1,
              "its sums are not float32 of %lld means and a number", (long long)means);
    SAC_CHECK(c, means <= SAC_EXPECTATION_MEANS, "sums of %lld means; at most %d do",
              (long long)means, SAC_EXPECTATION_MEANS);
    SAC_CHECK(c, m->dims[2] == pixels_of(&c->in[X]), "sums for %lld pixels, not %lld",
              (long long)m->dims[2], (long long)pixels_of(&c->in[X]));
    c->out[0].dims[1] = m->dims[0];
    return SAC_OK;
}

static sac_result rest_shape(struct sac_op_call *c)
{
    const struct sac_operand *x = &c->in[X], *r = &c->in[R];
    bool                      fits = r->dtype == SAC_F32 && r->rank == x->rank;
    for (int d = 0; fits && d < x->rank; d++)
        fits = d == 1 || r->dims[d] == x->dims[d];
    SAC_CHECK(c, fits && sac_activation_is_known(c->node, "activation"),
              "what follows the means is no float32 map like theirs, or has an unknown activation");
    SAC_CHECK(c, !__builtin_add_overflow(c->out[0].dims[1], r->dims[1], &c->out[0].dims[1]),
              "too many channels follow the means");
    return SAC_OK;
}

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
    if (sac_op_has(c, M))
        SAC_TRY(sums_shape(c, c->out[0].dims[1]));
    return sac_op_has(c, R) ? rest_shape(c) : SAC_OK;
}

/* Of bins `inner` numbers apart. */
static double mean_of(const float *line, const float *w, int64_t bins, int64_t inner)
{
    double max = line[0], sum = 0, all = 0;
    for (int64_t k = 1; k < bins; k++)
        max = fmax(max, line[k * inner]);
    for (int64_t k = 0; k < bins; k++) {
        const double e = exp(line[k * inner] - max);
        sum += e;
        all += e * w[k];
    }
    return all / sum;
}

/* One pixel's means, or the sums that m makes of them, to `to`. */
static void pixel_ref(const struct sac_op_call *c, const float *from, const float *m, int64_t inner,
                      float *to)
{
    const int64_t bins = c->in[W].dims[0], means = c->in[X].dims[1] / bins;
    double        mean[SAC_EXPECTATION_MEANS];
    for (int64_t g = 0; g < means; g++) {
        const double v = mean_of(from + g * bins * inner, c->in[W].data, bins, inner);
        if (m)
            mean[g] = v;
        else
            to[g * inner] = (float)v;
    }
    for (int64_t k = 0; m && k < c->in[M].dims[0]; k++, m += (means + 1) * inner) {
        double sum = m[means * inner];
        for (int64_t g = 0; g < means; g++)
            sum += m[g * inner] * mean[g];
        to[k * inner] = (float)sum;
    }
}

static sac_result mean_ref(struct sac_op_call *c)
{
    const struct sac_activation act = sac_activation_read(c->node);
    const struct sac_operand   *x = &c->in[X];
    const int64_t inner = pixels_of(x), rest = sac_op_has(c, R) ? c->in[R].dims[1] * inner : 0,
                  own = c->out[0].dims[1] * inner - rest;
    const float *from = x->data, *r = rest ? c->in[R].data : NULL;
    float       *to = c->out[0].data;
    for (int64_t n = 0; n < x->dims[0]; n++, from += x->dims[1] * inner, to += own + rest) {
        const float *m = sac_op_has(c, M) ? c->in[M].data : NULL;
        for (int64_t i = 0; i < inner; i++)
            pixel_ref(c, from + i, m ? m + i : NULL, inner, to + i);
        for (int64_t i = 0; i < rest; i++)
            to[own + i] = sac_activate(*r++, &act);
    }
    return SAC_OK;
}

extern const struct sac_op sac_row_Expectation;
const struct sac_op        sac_row_Expectation = {SAC_FUSED_ROW(Expectation, 2, 4),
                                                  SAC_TOLERANCE(1e-4f, 1e-4f), .shape = mean_shape,
                                                  .ref = mean_ref};
