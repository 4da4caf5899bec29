/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to each channel behind a Concat of convolutions, as the normalisation behind kernels
 * of several sizes, its activation and a residual, is done to each of them before it: their own
 * pass takes it in there, and the Concat, whose place they write, is no step. */
#include <string.h>

#include "engine/passes/pass.h"

enum { BEHIND_MAX = 8 };

/* n, which reads what a Concat of channels makes as input `map`; with_map: and another map. */
struct spread {
    struct sac_node *n, *concat;
    int              map;
    bool             activates, with_map;
};

/* ---- who takes it in ---- */

static bool is_elementwise(const struct sac_node *n)
{
    static const char *const types[] = {"Add", "Sub", "Mul", "Div"};
    return sac_is_any(n, types, SAC_COUNT(types));
}

/* A convolution, with what was spread to it before and has not been taken in yet. */
struct taker {
    const struct sac_node *conv;
    bool                   sums;
};

/* v is made by one; nobody else reads any of that. */
static bool find_taker(struct taker *t, const struct sac_value *v, int depth)
{
    const struct sac_node *n = v && v->uses == 1 ? v->producer : NULL;
    bool                   found = false;
    if (!n || depth == 0)
        return false;
    if (sac_is(n, "Conv") || sac_is_fused(n, "FusedConv")) {
        *t = (struct taker){n, sac_node_input(n, SAC_RESIDUAL_INPUT) != NULL};
        return sac_constant_floats(n->inputs[1]) != NULL;
    }
    if (sac_is(n, "BatchNormalization"))
        return find_taker(t, n->inputs[0], depth - 1);
    for (int i = 0; is_elementwise(n) && i < 2 && !found; i++) {
        found = find_taker(t, n->inputs[i], depth - 1);
        t->sums |= found && !n->inputs[1 - i]->data;
    }
    return found;
}

static bool is_taken(const struct spread *s, const struct sac_value *v)
{
    struct taker t = {0};
    if (!find_taker(&t, v, BEHIND_MAX))
        return false;
    const bool bare = sac_attr_int(t.conv, "activation", SAC_ACT_NONE) == SAC_ACT_NONE;
    return s->with_map    ? !t.sums
           : s->activates ? bare && sac_attr_int(t.conv, "residual", 0) != SAC_RESIDUAL_AFTER
                          : bare && !t.sums;
}

/* A Concat of channels that only n reads, and whose parts all take it in. */
static bool joins_takers(const struct spread *s)
{
    const struct sac_value *v = s->concat->outputs[0];
    const int64_t           axis = sac_attr_int(s->concat, "axis", 1);
    int64_t                 channels = 0;
    if (v->uses != 1 || v->rank < 3 || (axis != 1 && axis != 1 - v->rank) || v->dims[1] < 1)
        return false;
    for (int i = 0; i < s->concat->input_count; i++) {
        if (!is_taken(s, s->concat->inputs[i]) || s->concat->inputs[i]->dims[1] < 1)
            return false;
        channels += s->concat->inputs[i]->dims[1];
    }
    return channels == v->dims[1];
}

/* ---- what is done ---- */

/* A number for each channel, beside `rank` dims, or one for all. */
static bool is_for_channels(const struct sac_value *c, int rank, int64_t channels)
{
    const int     axis = c ? c->rank - (rank - 1) : 0;
    const int64_t count = sac_constant_floats(c) ? sac_value_elements(c) : 0;
    return count == 1
               ? c->rank <= rank
               : count == channels && c->rank <= rank && axis >= 0 && c->dims[axis] == channels;
}

static bool is_norm(const struct sac_node *n, int64_t channels)
{
    if (!sac_is(n, "BatchNormalization") || sac_attr_int(n, "training_mode", 0))
        return false;
    for (int i = 1; i < 5; i++)
        if (!sac_constant_floats(sac_node_input(n, i)) ||
            sac_value_elements(n->inputs[i]) != channels)
            return false;
    return true;
}

/* v is the Concat's. */
static bool reads_channels(struct spread *s, const struct sac_value *v)
{
    struct sac_activation  act;
    const struct sac_node *n = s->n;
    s->activates = s->map == 0 && sac_activation_of(n, &act) && act.kind != SAC_ACT_NONE;
    if (s->activates || (s->map == 0 && is_norm(n, v->dims[1])))
        return true;
    const struct sac_value *other = is_elementwise(n) ? sac_other_input(n, v) : NULL;
    if (!other || other == v || !sac_same_shape(v, n->outputs[0]))
        return false;
    s->with_map = sac_is(n, "Add") && sac_is_map(other) && sac_same_shape(v, other);
    return s->with_map || (is_for_channels(other, v->rank, v->dims[1]) &&
                           (s->map == 0 || sac_is(n, "Add") || sac_is(n, "Mul")));
}

static bool find(struct spread *s, struct sac_node *n)
{
    if (n->output_count != 1 || !n->outputs[0] || n->outputs[0]->dtype != SAC_F32)
        return false;
    for (int i = 0; i < n->input_count && i < 2; i++) {
        *s = (struct spread){
            .n = n, .concat = sac_made_by(sac_node_input(n, i), "Concat"), .map = i};
        if (s->concat && n->inputs[i]->rank >= 3 && reads_channels(s, n->inputs[i]) &&
            joins_takers(s))
            return true;
    }
    return false;
}

/* ---- each part's own ---- */

static struct sac_value *constant_part(struct sac_graph *g, struct sac_value *c, int64_t first,
                                       int64_t count)
{
    int64_t dims[SAC_RANK_MAX];
    float  *to;
    if (!c || sac_value_elements(c) == 1)
        return c;
    for (int d = 0; d < c->rank; d++)
        dims[d] = c->dims[d] == 1 ? 1 : count;
    struct sac_value *made = sac_new_floats(g, c->name, c->rank, dims, &to);
    if (made)
        memcpy(to, sac_constant_floats(c) + first, (size_t)count * sizeof *to);
    return made;
}

/* Of a residual: where it was concatenated of the same parts itself, one of them. */
static struct sac_value *map_part(struct sac_graph *g, const struct spread *s, struct sac_value *v,
                                  int i, int64_t first, sac_result *res)
{
    const struct sac_node *joined = sac_made_by(v, "Concat");
    const int64_t          axis = joined ? sac_attr_int(joined, "axis", 1) : 0;
    bool same = (axis == 1 || axis == 1 - v->rank) && joined->input_count == s->concat->input_count;
    for (int k = 0; same && k < joined->input_count; k++)
        same = sac_same_shape(joined->inputs[k], s->concat->inputs[k]);
    return same ? joined->inputs[i]
                : sac_channels_of(g, s->n, v, first, s->concat->inputs[i]->dims[1], res);
}

static struct sac_value *spread_to(struct sac_graph *g, const struct spread *s, int i,
                                   int64_t first, sac_result *res)
{
    const struct sac_node *n = s->n;
    struct sac_value      *part = s->concat->inputs[i];
    struct sac_node       *made = sac_op_node(g, n->domain, n->op_type, n->input_count, 1, n);
    if (!made || sac_copy_attrs(g, made, n) != SAC_OK)
        return NULL;
    for (int k = 0; k < n->input_count; k++) {
        struct sac_value *v = n->inputs[k];
        made->inputs[k] = k == s->map    ? part
                          : s->with_map  ? map_part(g, s, v, i, first, res)
                          : s->activates ? v
                                         : constant_part(g, v, first, part->dims[1]);
        if (v && !made->inputs[k])
            return NULL;
    }
    made->outputs[0] = sac_value_like(g, part);
    if (made->outputs[0])
        made->outputs[0]->producer = made;
    return made->outputs[0];
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct spread s;
    sac_result    res = SAC_OK;
    int64_t       first = 0;
    if (!find(&s, n))
        return SAC_OK;
    struct sac_node *joined = sac_op_node(g, "", "Concat", s.concat->input_count, 1, s.concat);
    if (!joined)
        return SAC_ERR_MEMORY;
    for (int i = 0; i < joined->input_count; i++) {
        joined->inputs[i] = spread_to(g, &s, i, first, &res);
        if (!joined->inputs[i] || res != SAC_OK)
            return SAC_ERR_MEMORY;
        first += s.concat->inputs[i]->dims[1];
    }
    *changed = true;
    res = sac_node_set_int(g, joined, "axis", 1);
    return res == SAC_OK ? sac_take_over(g, joined, n) : res;
}

const struct sac_pass sac_pass_spread = {"spread", visit};
