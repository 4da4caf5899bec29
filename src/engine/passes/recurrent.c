/* SPDX-License-Identifier: Apache-2.0 */
/* What the input adds to the gates of an RNN, a GRU or an LSTM does not wait for the step before:
 * one product makes it of all steps and both directions, and FusedRecurrent does the rest. The
 * CPU's kernels make both by themselves. */
#include <string.h>

#include "engine/ops/reads.h"
#include "engine/passes/pass.h"

enum { X, W, R, B, LENGTHS };

struct recurrent {
    struct sac_node  *node;
    enum sac_rnn_kind kind;
    int64_t           directions, gates, hidden, inputs;
    struct sac_value *w, *r, *b; /* b: NULL where there is none */
};

static bool is_of(const struct sac_value *v, int rank, int64_t a, int64_t b, int64_t c)
{
    return sac_constant_floats(v) && v->rank == rank && v->dims[0] == a && v->dims[1] == b &&
           (rank < 3 || v->dims[2] == c);
}

static bool read_recurrent(struct sac_node *n, struct recurrent *q)
{
    static const char *const types[] = {[SAC_RNN] = "RNN", [SAC_GRU] = "GRU", [SAC_LSTM] = "LSTM"};
    size_t                   kind = 0;
    while (kind < SAC_COUNT(types) && !sac_is(n, types[kind]))
        kind++;
    if (kind == SAC_COUNT(types))
        return false;
    const struct sac_value *x = n->inputs[X];
    *q = (struct recurrent){.node = n,
                            .kind = (enum sac_rnn_kind)kind,
                            .gates = sac_rnn_gates((enum sac_rnn_kind)kind),
                            .w = n->inputs[W],
                            .r = n->inputs[R],
                            .b = sac_node_input(n, B)};
    if (x->data || x->dtype != SAC_F32 || x->rank != 3 || x->dims[2] < 1 || q->r->rank != 3)
        return false;
    q->directions = q->r->dims[0];
    q->hidden = q->r->dims[2];
    q->inputs = x->dims[2];
    const int64_t rows = q->gates * q->hidden;
    return q->hidden > 0 && is_of(q->w, 3, q->directions, rows, q->inputs) &&
           is_of(q->r, 3, q->directions, rows, q->hidden) &&
           (!q->b || is_of(q->b, 2, q->directions, 2 * rows, 0));
}

/* ---- constants ---- */

/* [inputs][directions * rows] of [directions][rows][inputs] */
static struct sac_value *input_weights(struct sac_graph *g, const struct recurrent *q)
{
    const int64_t     all = q->directions * q->gates * q->hidden, dims[] = {q->inputs, all};
    const float      *from = q->w->data;
    float            *to;
    struct sac_value *made = sac_new_floats(g, q->w->name, 2, dims, &to);
    for (int64_t k = 0; made && k < q->inputs; k++)
        for (int64_t row = 0; row < all; row++)
            *to++ = from[row * q->inputs + k];
    return made;
}

/* [directions][hidden before][hidden][gates] of [directions][gates][hidden][hidden before] */
static struct sac_value *recurrent_weights(struct sac_graph *g, const struct recurrent *q)
{
    const int64_t     n = q->hidden, dims[] = {q->directions, n, n, q->gates};
    const float      *from = q->r->data;
    float            *to;
    struct sac_value *made = sac_new_floats(g, q->r->name, 4, dims, &to);
    for (int64_t d = 0; made && d < q->directions; d++)
        for (int64_t k = 0; k < n; k++)
            for (int64_t i = 0; i < n; i++)
                for (int64_t gate = 0; gate < q->gates; gate++)
                    *to++ = from[((d * q->gates + gate) * n + i) * n + k];
    return made;
}

/* The input's biases (part 0), of one dim, or the recurrent ones (1), of two. */
static struct sac_value *biases(struct sac_graph *g, const struct recurrent *q, int part)
{
    const int64_t     rows = q->gates * q->hidden;
    const int64_t     one[] = {q->directions * rows}, two[] = {q->directions, rows};
    const float      *from = q->b->data;
    float            *to;
    struct sac_value *made = sac_new_floats(g, q->b->name, 1 + part, part ? two : one, &to);
    for (int64_t d = 0; made && d < q->directions; d++)
        memcpy(to + d * rows, from + (2 * d + part) * rows, (size_t)rows * sizeof *to);
    return made;
}

/* ---- the new nodes ---- */

/* What the input adds to all gates. */
static struct sac_value *sums_of(struct sac_graph *g, const struct recurrent *q, sac_result *res)
{
    struct sac_value *in[] = {q->node->inputs[X], input_weights(g, q)};
    struct sac_value *sums = sac_made_of(g, q->node, "MatMul", 2, in, res);
    if (!sums)
        return NULL;
    sums->dims[2] = q->directions * q->gates * q->hidden;
    if (!q->b)
        return sums;
    struct sac_value *added[] = {sums, biases(g, q, 0)};
    return sac_made_of(g, q->node, "Add", 2, added, res);
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct recurrent q;
    sac_result       res = SAC_OK;
    if (!read_recurrent(n, &q))
        return SAC_OK;
    struct sac_node *made =
        sac_op_node(g, "saccade", "FusedRecurrent", n->input_count, n->output_count, n);
    if (!made || sac_copy_attrs(g, made, n) != SAC_OK ||
        sac_node_set_int(g, made, "kind", q.kind) != SAC_OK)
        return SAC_ERR_MEMORY;
    *changed = true;
    made->inputs[X] = sums_of(g, &q, &res);
    made->inputs[R] = recurrent_weights(g, &q);
    if (q.b)
        made->inputs[B] = biases(g, &q, 1);
    if (!made->inputs[X] || !made->inputs[R] || (q.b && !made->inputs[B]))
        return res == SAC_OK ? SAC_ERR_MEMORY : res;
    for (int i = LENGTHS; i < n->input_count; i++)
        made->inputs[i] = n->inputs[i];
    for (int i = 0; i < n->output_count; i++) {
        if (!n->outputs[i])
            continue;
        made->outputs[i] = sac_value_like(g, n->outputs[i]);
        if (!made->outputs[i])
            return SAC_ERR_MEMORY;
        made->outputs[i]->producer = made;
        sac_graph_replace(g, n->outputs[i], made->outputs[i]);
    }
    return SAC_OK;
}

const struct sac_pass sac_pass_recurrent = {"recurrent", visit, .gpu_only = true};
