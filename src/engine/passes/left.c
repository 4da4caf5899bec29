/* SPDX-License-Identifier: Apache-2.0 */
/* A product of constant weights with tokens, W X, is spelled as X turned, times W turned, and
 * turned back: MLP-Mixer, gMLP, ResMLP. One HeadMatMul reads and writes the tokens where they lie,
 * and takes what is behind the product. */
#include "engine/passes/heads.h"

/* Multiplications and additions for each number that would be moved, from which on kernels for
 * dense matrices are faster by more than the moves cost. */
enum { DENSE_WORK = 300 };

struct left {
    struct sac_node      *node, *last; /* the product, and the last node that is taken */
    struct sac_strided    x, y, r;
    struct sac_value     *w, *bias, *other; /* bias, other: NULL where there is none */
    struct sac_value     *out;              /* the last node's output */
    struct sac_activation act;
    bool                  gates;
};

/* The only reader of the last node, if its output is known. */
static struct sac_node *next(const struct left *l)
{
    struct sac_node *n = sac_only_reader(l->last, NULL);
    return n && n->output_count == 1 && n->outputs[0] && n->outputs[0]->rank >= 0 ? n : NULL;
}

static void take_bias(struct left *l)
{
    struct sac_node        *n = next(l);
    const struct sac_value *v = l->last->outputs[0];
    struct sac_value       *c = sac_is(n, "Add") ? sac_other_input(n, v) : NULL;
    if (!c || !sac_constant_row(c, v->rank, l->w->dims[1]) || !sac_same_shape(v, n->outputs[0]))
        return;
    l->bias = c;
    l->last = n;
}

static void take_activation(struct left *l)
{
    struct sac_node      *n = next(l);
    struct sac_activation act;
    if (!n || n->inputs[0] != l->last->outputs[0] || !sac_activation_of(n, &act))
        return;
    l->act = act;
    l->last = n;
}

/* Does the output lie as [batch,head,row,column], or with the last two turned? */
static bool lies_as(const struct left *l, struct sac_value *v, bool turn)
{
    struct sac_strided s;
    if (!sac_strided_dense(&s, v) || !sac_heads_shape(&s, turn, &l->x, NULL))
        return false;
    for (int d = 0; d < SAC_VIEW_RANK; d++)
        if (s.dim[d] != l->y.dim[d] || (s.dim[d] > 1 && s.step[d] != l->y.step[d]))
            return false;
    return true;
}

/* What is added to the output, or multiplied by it. */
static void take_other(struct left *l)
{
    struct sac_node        *n = next(l);
    const struct sac_value *v = l->out;
    const bool              gates = sac_is(n, "Mul");
    struct sac_value       *other = gates || sac_is(n, "Add") ? sac_other_input(n, v) : NULL;
    const bool              turn = l->y.step[SAC_TOKEN] == 1 && l->y.dim[SAC_TOKEN] > 1;
    if (!other || other == v || other->data || other->dtype != SAC_F32 ||
        !sac_same_shape(other, v) || !lies_as(l, l->out, turn) ||
        !sac_heads_operand(&l->r, other, other, turn, true, &l->x, NULL) || l->r.scale != 1)
        return;
    for (int d = SAC_TOKEN; d < SAC_VIEW_RANK; d++)
        if (l->r.dim[d] != l->y.dim[d])
            return;
    l->other = other;
    l->gates = gates;
    l->last = n;
    l->out = n->outputs[0];
}

/* Is v, with its channels in front, a map? Devices have these channels last, as a product of tokens
 * writes them, so that turning them is a view. */
static bool is_channels_first(const struct sac_value *v, int64_t channels)
{
    static const char *const types[] = {
        "AveragePool", "BatchNormalization", "Conv",   "ConvTranspose",        "GroupNormalization",
        "MaxPool",     "GlobalAveragePool",  "Resize", "InstanceNormalization"};
    bool map = v->rank > 3;
    for (size_t i = 0; i < v->reader_count; i++)
        map |= sac_is_any(v->readers[i], types, SAC_COUNT(types)) && v->readers[i]->inputs[0] == v;
    return map && v->rank > 2 && v->dims[1] == channels;
}

/* How much is multiplied by each number of the tokens before and behind. */
static bool is_dense_work(const struct left *l)
{
    const double depth = (double)l->w->dims[0], rows = (double)l->w->dims[1];
    return 2 * depth * rows > DENSE_WORK * (depth + rows);
}

static bool read_left(struct sac_node *n, struct left *l)
{
    if (!sac_is(n, "MatMul"))
        return false;
    struct sac_value *x = n->inputs[0];
    *l = (struct left){.node = n, .last = n, .w = n->inputs[1]};
    if (n->outputs[0]->dtype != SAC_F32 || x->data || x->rank < 3 || !sac_constant_floats(l->w) ||
        l->w->rank != 2 || sac_value_elements(l->w) < 1 ||
        !sac_heads_operand(&l->x, x, x, true, true, NULL, NULL))
        return false;
    take_bias(l);
    take_activation(l);
    struct sac_value *v = l->last->outputs[0];
    if (!sac_heads_result(&l->y, v, true, true, &l->x, &l->out, NULL))
        return false;
    const bool before = l->x.base != x && l->x.step[SAC_NUMBER] == 1 && !sac_is_map(l->x.base),
               behind = l->out != v && l->y.step[SAC_NUMBER] == 1 &&
                        !is_channels_first(l->out, l->w->dims[1]);
    l->last = l->out->producer;
    return (before || behind) && l->x.dim[SAC_TOKEN] == l->w->dims[0] &&
           l->y.dim[SAC_TOKEN] == l->w->dims[1] && l->y.dim[SAC_NUMBER] == l->x.dim[SAC_NUMBER] &&
           !is_dense_work(l);
}

/* ---- the new node ---- */

/* Rows of weights begin at multiples of so many numbers, 16 bytes of float16. */
static int64_t pitch_of(int64_t depth)
{
    return (depth + 7) / 8 * 8;
}

/* W with a row for each of the product's. */
static struct sac_value *turned_weights(struct sac_graph *g, const struct sac_value *w)
{
    const int64_t     depth = w->dims[0], rows = w->dims[1], dims[2] = {rows, pitch_of(depth)};
    const float      *from = w->data;
    float            *to;
    struct sac_value *made = sac_new_floats(g, w->name, 2, dims, &to);
    for (int64_t i = 0; made && i < rows; i++)
        for (int64_t k = 0; k < dims[1]; k++)
            *to++ = k < depth ? from[k * rows + i] : 0;
    return made;
}

static struct sac_value *bias_of_rows(struct sac_graph *g, const struct left *l)
{
    const int64_t     rows = l->w->dims[1];
    const float      *from = l->bias->data;
    const bool        one = sac_value_elements(l->bias) == 1;
    float            *to;
    struct sac_value *made = sac_new_floats(g, l->bias->name, 1, &rows, &to);
    for (int64_t i = 0; made && i < rows; i++)
        to[i] = from[one ? 0 : i];
    return made;
}

static sac_result set_views(struct sac_graph *g, struct sac_node *made, const struct left *l)
{
    const int64_t rows = l->w->dims[1], depth = l->w->dims[0],
                  a[SAC_VIEW_ENTRIES] = {0, 1, 1, rows, depth, 0, 0, pitch_of(depth), 1};
    sac_result res = sac_node_set_ints(g, made, "a", a, SAC_VIEW_ENTRIES);
    if (res == SAC_OK)
        res = sac_strided_set_view(g, made, "b", "b_open", &l->x);
    if (res == SAC_OK)
        res = sac_strided_set_view(g, made, "y", "y_open", &l->y);
    if (res == SAC_OK && l->other)
        res = sac_strided_set_view(g, made, "r", "r_open", &l->r);
    return res;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct left l;
    if (!read_left(n, &l))
        return SAC_OK;
    const struct sac_value *out = l.out;
    take_other(&l);
    struct sac_node *made = sac_op_node(g, "saccade", "HeadMatMul", 4, 1, n);
    if (!made || !(made->inputs[0] = turned_weights(g, l.w)) ||
        (l.bias && !(made->inputs[2] = bias_of_rows(g, &l))))
        return SAC_ERR_MEMORY;
    made->inputs[1] = l.x.base;
    made->inputs[SAC_RESIDUAL_INPUT] = l.other ? l.r.base : NULL;
    sac_result res = set_views(g, made, &l);
    if (res == SAC_OK)
        res = sac_set_activation(g, made, &l.act);
    if (res == SAC_OK)
        res = sac_node_set_int(g, made, "by_row", 1);
    if (res == SAC_OK)
        res = sac_node_set_int(g, made, "gates", l.gates);
    if (res == SAC_OK)
        res = sac_node_set_float(g, made, "scale", (float)l.x.scale);
    if (res == SAC_OK)
        res = sac_node_set_ints(g, made, "shape", out->dims, (size_t)out->rank);
    *changed = true;
    return res == SAC_OK ? sac_take_over(g, made, l.last) : res;
}

const struct sac_pass sac_pass_left = {"left", visit, .float16_only = true};
