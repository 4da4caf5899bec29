/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/excitation.h"

#include "engine/ops/util.h"

static struct sac_activation inner_of(const struct sac_node *n)
{
    return (struct sac_activation){
        .kind = (enum sac_activation_kind)sac_attr_int(n, "inner", SAC_ACT_NONE),
        .alpha = sac_attr_float(n, "inner_alpha", 0),
        .beta = sac_attr_float(n, "inner_beta", 0),
    };
}

struct sac_excitation sac_excitation_read(const struct sac_op_call *c)
{
    int64_t pixels = 1;
    for (int d = 2; d < c->in[0].rank; d++)
        pixels *= c->in[0].dims[d];
    return (struct sac_excitation){.n = c->in[0].dims[0],
                                   .channels = c->in[0].dims[1],
                                   .pixels = pixels,
                                   .hidden = c->in[1].dims[0],
                                   .gates = c->in[3].dims[0],
                                   .inner = inner_of(c->node),
                                   .act = sac_activation_read(c->node)};
}

static bool is_matrix(const struct sac_operand *o, int64_t columns)
{
    return o->rank == 2 && o->dims[1] == columns;
}

static bool is_vector(const struct sac_operand *o, int64_t count)
{
    return o->rank == 1 && o->dims[0] == count;
}

/* A file can use the domain too, so nothing about the node is trusted. */
static sac_result excitation_shape(struct sac_op_call *c)
{
    const struct sac_operand *s = &c->in[0];
    for (int i = 0; i < 5; i++)
        SAC_CHECK(c, sac_op_has(c, i) && c->in[i].dtype == SAC_F32,
                  "input %d is missing or not float32", i);
    SAC_CHECK(c,
              sac_activation_is_known(c->node, "activation") &&
                  sac_activation_is_known(c->node, "inner"),
              "an activation that does not exist");
    SAC_CHECK(c, s->rank >= 2, "an input of %d dimensions; at least 2 are needed", s->rank);
    for (int d = 2; d < s->rank; d++)
        SAC_CHECK(c, s->dims[d] > 0, "dimension %d of the input is %lld: no means of nothing", d,
                  (long long)s->dims[d]);
    SAC_CHECK(c,
              is_matrix(&c->in[1], s->dims[1]) && is_vector(&c->in[2], c->in[1].dims[0]) &&
                  is_matrix(&c->in[3], c->in[1].dims[0]) && is_vector(&c->in[4], c->in[3].dims[0]),
              "layers that do not fit %lld channels or each other", (long long)s->dims[1]);
    SAC_CHECK(c,
              s->dims[1] <= SAC_EXCITATION_CHANNELS_MAX &&
                  c->in[3].dims[0] <= SAC_EXCITATION_CHANNELS_MAX &&
                  c->in[1].dims[0] <= SAC_EXCITATION_HIDDEN_MAX,
              "more than %d channels or %d numbers between the layers", SAC_EXCITATION_CHANNELS_MAX,
              SAC_EXCITATION_HIDDEN_MAX);
    SAC_TRY(sac_shape_out_like(c, 0, 0));
    c->out[0].dims[1] = c->in[3].dims[0];
    for (int d = 2; d < s->rank; d++)
        c->out[0].dims[d] = 1;
    return SAC_OK;
}

static void layer(const float *x, int64_t length, const struct sac_operand *w,
                  const struct sac_operand *bias, const struct sac_activation *act, float *y)
{
    const float *row = w->data, *b = bias->data;
    for (int64_t i = 0; i < w->dims[0]; i++, row += length) {
        double sum = b[i];
        for (int64_t k = 0; k < length; k++)
            sum += (double)row[k] * x[k];
        y[i] = sac_activate((float)sum, act);
    }
}

static void means(const float *x, int64_t channels, int64_t pixels, float *mean)
{
    for (int64_t i = 0; i < channels; i++, x += pixels) {
        double sum = 0;
        for (int64_t k = 0; k < pixels; k++)
            sum += x[k];
        mean[i] = (float)(sum / (double)pixels);
    }
}

static sac_result excitation_ref(struct sac_op_call *c)
{
    const struct sac_excitation e = sac_excitation_read(c);
    float mean[SAC_EXCITATION_CHANNELS_MAX], hidden[SAC_EXCITATION_HIDDEN_MAX];
    for (int64_t i = 0; i < e.n; i++) {
        means((const float *)c->in[0].data + i * e.channels * e.pixels, e.channels, e.pixels, mean);
        layer(mean, e.channels, &c->in[1], &c->in[2], &e.inner, hidden);
        layer(hidden, e.hidden, &c->in[3], &c->in[4], &e.act,
              (float *)c->out[0].data + i * e.gates);
    }
    return SAC_OK;
}

static int64_t excitation_flops(const struct sac_op_call *c)
{
    const struct sac_excitation e = sac_excitation_read(c);
    return e.n *
           (e.channels * (e.pixels > 1 ? e.pixels : 0) + 2 * e.hidden * (e.channels + e.gates));
}

extern const struct sac_op sac_row_Excitation;
const struct sac_op        sac_row_Excitation = {
           SAC_FUSED_ROW(Excitation, 5, 5), SAC_TOLERANCE(1e-4f, 1e-4f), .shape = excitation_shape,
           .ref = excitation_ref,           .flops = excitation_flops,
};
