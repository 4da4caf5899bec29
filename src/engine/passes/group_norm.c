/* SPDX-License-Identifier: Apache-2.0 */
/* GroupNormalization (Wu and He, 2018) as exporters spell it: an InstanceNormalization of the
 * groups, each as one channel, between two Reshapes, then scale and shift of the real channels.
 * It is one node of the map itself, which stays channels last; of one group, ONNX's own included, a
 * SampleNorm, which takes an activation in too. */
#include "engine/passes/pass.h"

struct spelling {
    struct sac_value *x;
    struct sac_node  *norm, *last; /* last: the scales and shifts included */
    int64_t           groups, channels;
    float            *scale, *shift; /* of the new node, [channels] */
    struct sac_value *scales, *shifts;
};

/* n = the Reshape of the groups back to channels. */
static bool take_norm(struct spelling *s, const struct sac_node *n)
{
    if (!sac_is(n, "Reshape") || !n->outputs[0] || n->outputs[0]->dtype != SAC_F32)
        return false;
    s->norm = sac_made_by(n->inputs[0], "InstanceNormalization");
    if (!s->norm || n->inputs[0]->uses != 1 || !sac_constant_floats(s->norm->inputs[1]) ||
        !sac_constant_floats(s->norm->inputs[2]) || n->outputs[0]->rank < 3)
        return false;
    s->groups = s->norm->inputs[0]->dims[1];
    s->channels = n->outputs[0]->dims[1];
    return s->groups > 0 && s->channels > 0 && s->channels % s->groups == 0;
}

/* ONNX's own, of one group; NULL: n is none. */
static struct sac_value *take_node(struct spelling *s, struct sac_node *n)
{
    struct sac_value *x = n->inputs[0];
    if (sac_attr_int(n, "num_groups", 0) != 1 || x->dtype != SAC_F32 || x->dims[1] <= 0 ||
        !sac_constant_floats(n->inputs[1]) || !sac_constant_floats(n->inputs[2]))
        return NULL;
    s->norm = n;
    s->groups = 1;
    s->channels = x->dims[1];
    return x;
}

/* The number of all dims but the first; 0: not known. */
static int64_t sample_size(const struct sac_value *v)
{
    int64_t all = v->rank > 0;
    for (int d = 1; d < v->rank; d++)
        all *= v->dims[d] > 0 ? v->dims[d] : 0;
    return all;
}

/* What is normalised, in the shape of the map; NULL, with SAC_OK: no such map. */
static struct sac_value *take_map(struct sac_graph *g, struct sac_node *n, const struct spelling *s,
                                  sac_result *res)
{
    const struct sac_value *y = n->outputs[0], *grouped = s->norm->inputs[0];
    const struct sac_node  *view = grouped->producer;
    if (!sac_is(view, "Reshape") || grouped->dims[0] != y->dims[0] ||
        sample_size(grouped) != sample_size(y) || sample_size(y) == 0)
        return NULL;
    /* a Reshape before it may have become one with it */
    return sac_same_shape(view->inputs[0], y)
               ? view->inputs[0]
               : sac_reshaped(g, n, view->inputs[0], y->rank, y->dims, res);
}

/* The norm's own numbers, one for each group or channel, for all channels. */
static sac_result take_groups(struct sac_graph *g, struct spelling *s)
{
    const float  *scale = sac_constant_floats(s->norm->inputs[1]);
    const float  *shift = sac_constant_floats(s->norm->inputs[2]);
    const int64_t scales = sac_value_elements(s->norm->inputs[1]),
                  shifts = sac_value_elements(s->norm->inputs[2]);
    s->scales = sac_new_floats(g, s->norm->inputs[1]->name, 1, &s->channels, &s->scale);
    s->shifts = sac_new_floats(g, s->norm->inputs[2]->name, 1, &s->channels, &s->shift);
    if (!s->scales || !s->shifts)
        return SAC_ERR_MEMORY;
    for (int64_t i = 0; i < s->channels; i++) {
        s->scale[i] = scale[i * scales / s->channels];
        s->shift[i] = shift[i * shifts / s->channels];
    }
    return SAC_OK;
}

/* A Mul or Add of a number for each channel, if nothing else reads what there is so far. */
static bool take_next(struct spelling *s, float *numbers)
{
    struct sac_value       *y = s->last->outputs[0];
    struct sac_node        *next = sac_only_reader(s->last, NULL);
    const bool              scales = sac_is(next, "Mul");
    const struct sac_value *other = scales || sac_is(next, "Add") ? sac_other_input(next, y) : NULL;
    if (!other || other == y || !next->outputs[0] || !sac_same_shape(next->outputs[0], y) ||
        !sac_constant_per_channel(other, y->rank, s->channels, numbers))
        return false;
    for (int64_t i = 0; i < s->channels; i++) {
        s->scale[i] *= scales ? numbers[i] : 1;
        s->shift[i] = scales ? s->shift[i] * numbers[i] : s->shift[i] + numbers[i];
    }
    s->last = next;
    return true;
}

static sac_result make(struct sac_graph *g, struct sac_node *n, const struct spelling *s)
{
    const bool       one = s->groups == 1;
    struct sac_node *made =
        sac_op_node(g, one ? "saccade" : "", one ? "SampleNorm" : "GroupNormalization", 3, 1, n);
    if (!made)
        return SAC_ERR_MEMORY;
    if (!one)
        made->opset = 21; /* from which on scale and bias are of channels */
    made->inputs[0] = s->x;
    made->inputs[1] = s->scales;
    made->inputs[2] = s->shifts;
    sac_result res =
        sac_node_set_float(g, made, "epsilon", sac_attr_float(s->norm, "epsilon", 1e-5f));
    if (res == SAC_OK && !one)
        res = sac_node_set_int(g, made, "num_groups", s->groups);
    return res == SAC_OK ? sac_take_over(g, made, s->last) : res;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct spelling s = {.last = n};
    sac_result      res = SAC_OK;
    if (sac_is(n, "GroupNormalization"))
        s.x = take_node(&s, n);
    else if (take_norm(&s, n))
        s.x = take_map(g, n, &s, &res);
    float *numbers = s.x ? sac_alloc((size_t)s.channels * sizeof *numbers) : NULL;
    if (!s.x || !numbers)
        return s.x ? SAC_ERR_MEMORY : res;
    res = take_groups(g, &s);
    while (res == SAC_OK && take_next(&s, numbers)) {
    }
    sac_free(numbers);
    *changed = true;
    return res == SAC_OK ? make(g, n, &s) : res;
}

const struct sac_pass sac_pass_group_norm = {"group-norm", visit, NULL};
