/* SPDX-License-Identifier: Apache-2.0 */
/* Two things that exporters do to the scores of an attention are spelled as attention.c knows them.
 * A scale for each head (cosine attention, as SwinV2 has it) goes to the queries. A mask that puts
 * a large negative number in a score's place adds it: the same unless the score was infinite. */
#include "engine/passes/pass.h"

/* No score is seen beside it in float32, so that a row of which all is masked stays even. */
#define MASKED -1e30f

enum { DEPTH_MAX = 4 };

/* What a product of two values makes, which only it reads. */
static struct sac_node *product_of(const struct sac_value *v)
{
    struct sac_node *n = sac_made_by(v, "MatMul");
    return n && v->uses == 1 && n->input_count == 2 && !n->inputs[0]->data && !n->inputs[1]->data
               ? n
               : NULL;
}

/* ---- a scale for each head ---- */

/* [H,1,1] or [1,H,1,1] beside four dims. */
static bool is_each_head(const struct sac_value *v, const struct sac_value *scores)
{
    if (!sac_constant_floats(v) || scores->rank != 4 || v->rank < 3 || v->rank > 4)
        return false;
    const int64_t *last = v->dims + v->rank - 3;
    return last[0] > 1 && last[0] == scores->dims[1] && last[1] == 1 && last[2] == 1 &&
           (v->rank == 3 || v->dims[0] == 1);
}

static sac_result scale_queries(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    for (int i = 0; i < 2; i++) {
        const struct sac_node *product = product_of(n->inputs[i]);
        sac_result             res = SAC_OK;
        if (!product || !is_each_head(n->inputs[1 - i], n->inputs[i]) ||
            product->inputs[0]->rank != 4)
            continue;
        struct sac_value *const in[] = {product->inputs[0], n->inputs[1 - i]};
        struct sac_value       *scaled = sac_made_of(g, n, "Mul", 2, in, &res);
        struct sac_node        *again = sac_op_node(g, "", "MatMul", 2, 1, n);
        if (!again || !scaled)
            return SAC_ERR_MEMORY;
        again->inputs[0] = scaled;
        again->inputs[1] = product->inputs[1];
        *changed = true;
        return sac_take_over(g, again, n);
    }
    return SAC_OK;
}

/* ---- masks ---- */

/* Constants, none of which masks: what was masked before must not be seen again here. */
static bool is_bias(const struct sac_value *v)
{
    const float *x = sac_constant_floats(v);
    for (int64_t i = 0, n = x ? sac_value_elements(v) : 0; i < n; i++)
        if (!(x[i] > MASKED))
            return false;
    return x != NULL;
}

static bool are_scores(const struct sac_value *v)
{
    for (int depth = 0; v && !v->data && depth < DEPTH_MAX; depth++) {
        const struct sac_node *n = v->producer;
        if (product_of(v))
            return true;
        if (!n || v->uses != 1 || (!sac_is(n, "Mul") && !sac_is(n, "Div") && !sac_is(n, "Add")))
            return false;
        const int constant = n->inputs[0]->data == NULL;
        if (!is_bias(n->inputs[constant]))
            return false;
        v = n->inputs[1 - constant];
    }
    return false;
}

/* Does a softmax read it, behind further masks perhaps? */
static bool is_softened(const struct sac_value *v)
{
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        const struct sac_node *n = sac_value_only_reader(v);
        if (sac_is(n, "Softmax"))
            return true;
        if (!n || (!sac_is(n, "Add") && !sac_is(n, "Where")))
            return false;
        v = n->outputs[0];
    }
    return false;
}

static sac_result add_mask(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    float low = 0;
    for (int i = 1; i < 3; i++) {
        struct sac_value *scores = n->inputs[3 - i];
        sac_result        res = SAC_OK;
        if (!sac_constant_scalar(n->inputs[i], &low) || !(low <= MASKED) ||
            !sac_same_shape(scores, n->outputs[0]) || !are_scores(scores) ||
            !is_softened(n->outputs[0]))
            continue;
        struct sac_value *what = sac_mask_addend(g, n, n->inputs[0], i == 1, low, &res);
        struct sac_node  *add = sac_op_node(g, "", "Add", 2, 1, n);
        if (!what || !add)
            return SAC_ERR_MEMORY;
        add->inputs[0] = scores;
        add->inputs[1] = what;
        *changed = true;
        return sac_take_over(g, add, n);
    }
    return SAC_OK;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    if (!n->outputs[0] || n->outputs[0]->dtype != SAC_F32)
        return SAC_OK;
    if (sac_is(n, "Mul"))
        return scale_queries(g, n, changed);
    return sac_is(n, "Where") ? add_mask(g, n, changed) : SAC_OK;
}

const struct sac_pass sac_pass_scores = {"scores", visit, NULL};
