/* SPDX-License-Identifier: Apache-2.0 */
/* RNN, GRU and LSTM, one or both directions, and FusedRecurrent, which engine/ops/fused.h defines.
 * All in double; one step works on one sample. */
#include <math.h>

#include "engine/ops/fused.h"
#include "engine/ops/reads.h"
#include "engine/ops/util.h"

enum { X, W, R, B, LENGTHS, H0, C0, P, INPUTS = SAC_RNN_INPUTS };

#define ACTIVATION(name, expr)                           \
    static double f_##name(double x, double a, double b) \
    {                                                    \
        (void)a, (void)b;                                \
        return expr;                                     \
    }
ACTIVATION(affine, a *x + b)
ACTIVATION(relu, fmax(x, 0))
ACTIVATION(tanh, tanh(x))
ACTIVATION(sigmoid, 1 / (1 + exp(-x)))
ACTIVATION(leaky, x < 0 ? a * x : x)
ACTIVATION(thresholded, x > a ? x : 0)
ACTIVATION(scaled_tanh, a *tanh(b *x))
ACTIVATION(hard_sigmoid, SAC_CLAMP(a *x + b, 0, 1))
ACTIVATION(elu, x > 0 ? x : a * expm1(x))
ACTIVATION(softsign, x / (1 + fabs(x)))
ACTIVATION(softplus, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))

static const struct {
    const char               *name;
    struct sac_rnn_activation defaults;
} activations[] = {
    {"Affine", {f_affine, 1, 0}},
    {"Relu", {f_relu, 0, 0}},
    {"Tanh", {f_tanh, 0, 0}},
    {"Sigmoid", {f_sigmoid, 0, 0}},
    {"LeakyRelu", {f_leaky, 0.01, 0}},
    {"ThresholdedRelu", {f_thresholded, 1, 0}},
    {"ScaledTanh", {f_scaled_tanh, 1, 1}},
    {"HardSigmoid", {f_hard_sigmoid, 0.2, 0.5}},
    {"Elu", {f_elu, 1, 0}},
    {"Softsign", {f_softsign, 0, 0}},
    {"Softplus", {f_softplus, 0, 0}},
};

static bool find_activation(const char *name, struct sac_rnn_activation *out)
{
    for (size_t i = 0; i < SAC_COUNT(activations); i++)
        if (strcmp(activations[i].name, name) == 0) {
            *out = activations[i].defaults;
            out->kind = (int)i;
            return true;
        }
    return false;
}

static sac_result read_activations(const struct sac_op_call *c, struct sac_rnn *r)
{
    static const char *const defaults[] = {"Sigmoid", "Tanh", "Tanh"};
    const struct sac_attr   *names = sac_node_attr(c->node, "activations");
    int                      count = sac_rnn_activations(r->kind);
    const float             *alpha, *beta;
    size_t                   alphas = sac_attr_floats(c->node, "activation_alpha", &alpha);
    size_t                   betas = sac_attr_floats(c->node, "activation_beta", &beta);
    bool                     given = names && names->kind == SAC_ATTR_STRINGS && names->count;
    SAC_CHECK(c, !given || names->count == (size_t)(count * r->directions),
              "%zu activations; %d wanted", given ? names->count : 0, count * r->directions);
    for (int i = 0; i < count * r->directions; i++) {
        struct sac_rnn_activation *a = &r->act[i / count][i % count];
        const char *name = given ? names->strings[i] : count == 1 ? "Tanh" : defaults[i % count];
        if (!find_activation(name, a))
            return SAC_OP_FAIL(c, SAC_ERR_UNSUPPORTED, "activation '%s'", name);
        if ((size_t)i < alphas)
            a->alpha = alpha[i];
        if ((size_t)i < betas)
            a->beta = beta[i];
    }
    return SAC_OK;
}

static sac_result check_input(const struct sac_op_call *c, int i, int rank, int64_t a, int64_t b,
                              int64_t d)
{
    const struct sac_operand *o = &c->in[i];
    if (!sac_op_has(c, i))
        return SAC_OK;
    SAC_CHECK(c,
              sac_dtype_is_float(o->dtype) && o->rank == rank && o->dims[0] == a &&
                  (rank < 2 || o->dims[1] == b) && (rank < 3 || o->dims[2] == d),
              "input %d does not fit the others", i);
    return SAC_OK;
}

static sac_result read_kind(const struct sac_op_call *c, struct sac_rnn *r)
{
    const enum sac_op_id id = c->node->op->id;
    const int64_t        kind = id == SAC_OP_RNN    ? SAC_RNN
                                : id == SAC_OP_GRU  ? SAC_GRU
                                : id == SAC_OP_LSTM ? SAC_LSTM
                                                    : sac_attr_int(c->node, "kind", SAC_RNN);
    SAC_CHECK(c, kind >= SAC_RNN && kind <= SAC_LSTM, "kind %lld is none", (long long)kind);
    r->kind = (enum sac_rnn_kind)kind;
    r->gates = sac_rnn_gates(r->kind);
    r->summed = id == SAC_OP_FusedRecurrent;
    return SAC_OK;
}

static sac_result check_weights(const struct sac_op_call *c, const struct sac_rnn *r)
{
    const int64_t d = r->directions, rows = r->gates * r->hidden;
    if (r->summed) {
        SAC_CHECK(c, r->inputs == d * rows, "input of %lld numbers, not %lld", (long long)r->inputs,
                  (long long)(d * rows));
        SAC_CHECK(c, c->in[R].rank == 4 && c->in[R].dims[3] == r->gates,
                  "weights of %d dimensions; have 4, the last the gates", c->in[R].rank);
        return check_input(c, R, 4, d, r->hidden, r->hidden);
    }
    SAC_CHECK(c, c->in[W].rank == 3 && c->in[R].rank == 3,
              "weights of %d and %d dimensions; have 3", c->in[W].rank, c->in[R].rank);
    SAC_TRY(check_input(c, W, 3, d, rows, r->inputs));
    return check_input(c, R, 3, d, rows, r->hidden);
}

static sac_result check_states(const struct sac_op_call *c, const struct sac_rnn *r)
{
    const int64_t d = r->directions;
    for (int i = H0; i <= C0; i++)
        SAC_TRY(r->batch_first ? check_input(c, i, 3, r->batch, d, r->hidden)
                               : check_input(c, i, 3, d, r->batch, r->hidden));
    if (sac_op_has(c, LENGTHS))
        SAC_CHECK(c,
                  c->in[LENGTHS].rank == 1 && c->in[LENGTHS].dims[0] == r->batch &&
                      c->in[LENGTHS].dtype == SAC_I32,
                  "not one length for each of %lld samples", (long long)r->batch);
    return SAC_OK;
}

sac_result sac_rnn_read(const struct sac_op_call *c, struct sac_rnn *r)
{
    const struct sac_node *n = c->node;
    const char            *direction = sac_attr_string(n, "direction", "forward");
    *r = (struct sac_rnn){0};
    SAC_TRY(read_kind(c, r));
    SAC_CHECK(c, c->in[X].rank == 3 && sac_op_has(c, R) && c->in[R].rank >= 3,
              "input and recurrent weights of %d and %d dimensions", c->in[X].rank,
              sac_op_has(c, R) ? c->in[R].rank : 0);
    r->directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    r->reverse_only = strcmp(direction, "reverse") == 0;
    r->batch_first = sac_attr_int(n, "layout", 0);
    r->linear_before_reset = sac_attr_int(n, "linear_before_reset", 0);
    r->coupled = sac_attr_int(n, "input_forget", 0);
    r->clip = sac_attr_float(n, "clip", 0);
    r->hidden = r->summed ? c->in[R].dims[2] : sac_attr_int(n, "hidden_size", c->in[R].dims[2]);
    r->steps = c->in[X].dims[r->batch_first ? 1 : 0];
    r->batch = c->in[X].dims[r->batch_first ? 0 : 1];
    r->inputs = c->in[X].dims[2];
    SAC_CHECK(c, r->hidden > 0 && r->hidden < INT32_MAX, "'hidden_size' is %lld",
              (long long)r->hidden);
    const int64_t d = r->directions, rows = r->gates * r->hidden;
    SAC_TRY(check_input(c, X, 3, c->in[X].dims[0], c->in[X].dims[1], r->inputs));
    SAC_TRY(check_weights(c, r));
    SAC_TRY(check_input(c, B, 2, d, r->summed ? rows : 2 * rows, 0));
    SAC_TRY(check_input(c, P, 2, d, 3 * r->hidden, 0));
    SAC_TRY(check_states(c, r));
    return read_activations(c, r);
}

static sac_result rnn_shape(struct sac_op_call *c)
{
    struct sac_rnn r;
    SAC_TRY(sac_rnn_read(c, &r));
    int64_t d = r.directions,
            all[2][4] = {{r.steps, d, r.batch, r.hidden}, {r.batch, r.steps, d, r.hidden}};
    int64_t last[2][3] = {{d, r.batch, r.hidden}, {r.batch, d, r.hidden}};
    SAC_TRY(sac_shape_out(c, 0, c->in[X].dtype, 4, all[r.batch_first]));
    SAC_TRY(sac_shape_out(c, 1, c->in[X].dtype, 3, last[r.batch_first]));
    return sac_shape_out(c, 2, c->in[X].dtype, 3, last[r.batch_first]);
}

static double apply(const struct sac_rnn *r, int direction, int which, double x)
{
    const struct sac_rnn_activation *a = &r->act[direction][which];
    if (r->clip > 0)
        x = SAC_CLAMP(x, -r->clip, r->clip);
    return a->fn(x, a->alpha, a->beta);
}

/* One row of the gates: input and recurrent parts, each with its bias. */
static double input_part(const struct sac_rnn *r, int d, int64_t row, const double *x)
{
    const int64_t rows = r->gates * r->hidden;
    if (r->summed)
        return x[d * rows + row];
    double        sum = r->in[B] ? r->in[B][d * 2 * rows + row] : 0;
    const double *w = r->in[W] + (d * rows + row) * r->inputs;
    for (int64_t i = 0; i < r->inputs; i++)
        sum += w[i] * x[i];
    return sum;
}
static double recurrent_part(const struct sac_rnn *r, int d, int64_t row, const double *h)
{
    const int64_t rows = r->gates * r->hidden;
    const int64_t bias = r->summed ? d * rows + row : (2 * d + 1) * rows + row;
    const int64_t first = r->summed
                              ? d * rows * r->hidden + row % r->hidden * r->gates + row / r->hidden
                              : (d * rows + row) * r->hidden;
    const int64_t step = r->summed ? rows : 1;
    double        sum = r->in[B] ? r->in[B][bias] : 0;
    for (int64_t i = 0; i < r->hidden; i++)
        sum += r->in[R][first + i * step] * h[i];
    return sum;
}
static double gate(const struct sac_rnn *r, int d, int64_t row, const double *x, const double *h)
{
    return input_part(r, d, row, x) + recurrent_part(r, d, row, h);
}

/* One step of one sample: h and cell are replaced; next has room for a new h, spare for one more.
 */
static void step_rnn(const struct sac_rnn *r, int d, const double *x, const double *h, double *next)
{
    for (int64_t i = 0; i < r->hidden; i++)
        next[i] = apply(r, d, 0, gate(r, d, i, x, h));
}

/* Gates in the order update, reset, new. */
static void step_gru(const struct sac_rnn *r, int d, const double *x, const double *h, double *next,
                     double *spare)
{
    int64_t n = r->hidden;
    for (int64_t i = 0; i < n; i++) {
        next[i] = apply(r, d, 0, gate(r, d, n + i, x, h)); /* reset */
        spare[i] = next[i] * h[i];
    }
    for (int64_t i = 0; i < n; i++) {
        double update = apply(r, d, 0, gate(r, d, i, x, h));
        double again = r->linear_before_reset ? next[i] * recurrent_part(r, d, 2 * n + i, h)
                                              : recurrent_part(r, d, 2 * n + i, spare);
        double fresh = apply(r, d, 1, input_part(r, d, 2 * n + i, x) + again);
        next[i] = (1 - update) * fresh + update * h[i];
    }
}

/* Gates in the order input, output, forget, cell; peepholes input, output, forget. */
static void step_lstm(const struct sac_rnn *r, int d, const double *x, const double *h,
                      double *cell, double *next)
{
    int64_t       n = r->hidden;
    const double *peep = r->in[P] ? r->in[P] + d * 3 * n : NULL;
    for (int64_t i = 0; i < n; i++) {
        double in = apply(r, d, 0, gate(r, d, i, x, h) + (peep ? peep[i] * cell[i] : 0));
        double forget =
            apply(r, d, 0, gate(r, d, 2 * n + i, x, h) + (peep ? peep[2 * n + i] * cell[i] : 0));
        double fresh = apply(r, d, 1, gate(r, d, 3 * n + i, x, h));
        cell[i] = (r->coupled ? 1 - in : forget) * cell[i] + in * fresh;
        double out = apply(r, d, 0, gate(r, d, n + i, x, h) + (peep ? peep[n + i] * cell[i] : 0));
        next[i] = out * r->act[d][2].fn(cell[i], r->act[d][2].alpha, r->act[d][2].beta);
    }
}

/* All steps of one sample in one direction. room: four times hidden. */
static void run_sample(struct sac_op_call *c, const struct sac_rnn *r, int d, int64_t sample,
                       double *room)
{
    double *h = room, *cell = h + r->hidden, *next = cell + r->hidden, *spare = next + r->hidden;
    int64_t state =
        (r->batch_first ? sample * r->directions + d : d * r->batch + sample) * r->hidden;
    int64_t length = r->steps;
    bool    backwards = r->reverse_only || d == 1;
    if (sac_op_has(c, LENGTHS))
        length = SAC_CLAMP(((const int32_t *)c->in[LENGTHS].data)[sample], 0, r->steps);
    for (int64_t i = 0; i < r->hidden; i++) {
        h[i] = r->in[H0] ? r->in[H0][state + i] : 0;
        cell[i] = r->in[C0] ? r->in[C0][state + i] : 0;
    }
    for (int64_t k = 0; k < length; k++) {
        int64_t       t = backwards ? length - 1 - k : k;
        int64_t       at = r->batch_first ? sample * r->steps + t : t * r->batch + sample;
        const double *x = r->in[X] + at * r->inputs;
        if (r->kind == SAC_RNN)
            step_rnn(r, d, x, h, next);
        else if (r->kind == SAC_GRU)
            step_gru(r, d, x, h, next, spare);
        else
            step_lstm(r, d, x, h, cell, next);
        memcpy(h, next, (size_t)r->hidden * sizeof *h);
        int64_t to = r->batch_first ? (sample * r->steps + t) * r->directions + d
                                    : (t * r->directions + d) * r->batch + sample;
        if (sac_op_wants(c, 0))
            sac_write_doubles(&c->out[0], to * r->hidden, 1, r->hidden, h);
    }
    if (sac_op_wants(c, 1))
        sac_write_doubles(&c->out[1], state, 1, r->hidden, h);
    if (sac_op_wants(c, 2))
        sac_write_doubles(&c->out[2], state, 1, r->hidden, cell);
}

static sac_result rnn_ref(struct sac_op_call *c)
{
    struct sac_rnn r;
    SAC_TRY(sac_rnn_read(c, &r));
    double *room = sac_alloc(4 * (size_t)r.hidden * sizeof *room);
    bool    ok = room;
    for (int i = 0; i < INPUTS; i++)
        if (i != LENGTHS && sac_op_has(c, i)) {
            r.in[i] = sac_doubles(&c->in[i]);
            ok = ok && r.in[i];
        }
    if (ok && sac_op_wants(c, 0)) /* steps past a sample's length stay zero */
        memset(c->out[0].data, 0, sac_operand_bytes(&c->out[0]));
    for (int d = 0; ok && d < r.directions; d++)
        for (int64_t sample = 0; sample < r.batch; sample++)
            run_sample(c, &r, d, sample, room);
    for (int i = 0; i < INPUTS; i++)
        if (i != LENGTHS && sac_op_has(c, i))
            sac_doubles_done(&c->in[i], r.in[i]);
    sac_free(room);
    return ok ? SAC_OK : sac_op_no_memory(c);
}

#define RNN_ROW(op, in_max, outputs)                                                     \
    const struct sac_op sac_row_##op = {SAC_ROW(op, 7, 3, in_max, outputs),              \
                                        SAC_TOLERANCE(1e-4f, 1e-4f), .shape = rnn_shape, \
                                        .ref = rnn_ref}
RNN_ROW(RNN, 6, 2);
RNN_ROW(GRU, 6, 2);
RNN_ROW(LSTM, 8, 3);
/* Input 1 is left out. */
const struct sac_op sac_row_FusedRecurrent = {.id = SAC_OP_FusedRecurrent,
                                              .name = "FusedRecurrent",
                                              .domain = "saccade",
                                              .opset_min = 1,
                                              .opset_max = SAC_OPSET_NEWEST,
                                              .input_min = 1,
                                              .input_max = INPUTS,
                                              .output_max = 3,
                                              SAC_TOLERANCE(1e-4f, 1e-4f),
                                              .shape = rnn_shape,
                                              .ref = rnn_ref};
