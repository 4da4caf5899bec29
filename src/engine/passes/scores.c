/* SPDX-License-Identifier: Apache-2.0 */
/* Two things that exporters do to the scores of an attention are spelled as attention.c knows them.
 * A scale for each head (cosine attention, as SwinV2 has it) goes to the queries. A mask that puts
 * a large negative number in a score's place adds it. */
#include <math.h>
#include <string.h>

#include "engine/passes/pass.h"

/* From here on no score is seen beside it, in float32 either. */
#define MASKED -1e9f

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
        struct sac_node *product = product_of(n->inputs[i]);
        if (!product || !is_each_head(n->inputs[1 - i], n->inputs[i]) ||
            product->inputs[0]->rank != 4)
            continue;
        struct sac_node  *mul = sac_op_node(g, "", "Mul", 2, 1, n);
        struct sac_node  *again = sac_op_node(g, "", "MatMul", 2, 1, n);
        struct sac_value *scaled = mul ? sac_value_like(g, product->inputs[0]) : NULL;
        if (!again || !scaled)
            return SAC_ERR_MEMORY;
        mul->inputs[0] = product->inputs[0];
        mul->inputs[1] = n->inputs[1 - i];
        mul->outputs[0] = scaled;
        scaled->producer = mul;
        again->inputs[0] = scaled;
        again->inputs[1] = product->inputs[1];
        *changed = true;
        return sac_take_over(g, again, n);
    }
    return SAC_OK;
}

/* ---- masks ---- */

static bool are_scores(const struct sac_value *v)
{
    for (int depth = 0; v && !v->data && depth < DEPTH_MAX; depth++) {
        const struct sac_node *n = v->producer;
        if (product_of(v))
            return true;
        if (!n || v->uses != 1 || (!sac_is(n, "Mul") && !sac_is(n, "Div") && !sac_is(n, "Add")))
            return false;
        v = n->inputs[n->inputs[0]->data != NULL];
    }
    return false;
}

/* Does a softmax read it, behind further masks perhaps? */
static bool is_softened(const struct sac_graph *g, const struct sac_value *v)
{
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        const struct sac_node *n = sac_graph_only_reader(g, v);
        if (sac_is(n, "Softmax"))
            return true;
        if (!n || (!sac_is(n, "Add") && !sac_is(n, "Where")))
            return false;
        v = n->outputs[0];
    }
    return false;
}

/* What is added where the mask is a constant. */
static struct sac_value *added(struct sac_graph *g, const struct sac_value *mask, bool masked_by,
                               float masked)
{
    float            *data;
    const uint8_t    *from = mask->data;
    struct sac_value *v = sac_new_floats(g, mask->name, mask->rank, mask->dims, &data);
    for (int64_t i = 0, n = v ? sac_value_elements(v) : 0; i < n; i++)
        data[i] = (from[i] != 0) == masked_by ? masked : 0;
    return v;
}

/* The same of one that is computed. */
static struct sac_value *chosen(struct sac_graph *g, const struct sac_node *n, bool masked_by,
                                float masked)
{
    float            *zero, *low;
    struct sac_value *none = sac_new_floats(g, "", 0, NULL, &zero),
                     *all = sac_new_floats(g, "", 0, NULL, &low);
    struct sac_node  *where = sac_op_node(g, "", "Where", 3, 1, n);
    struct sac_value *v = where && none && all ? sac_value_like(g, n->inputs[0]) : NULL;
    if (!v)
        return NULL;
    *low = masked;
    where->inputs[0] = n->inputs[0];
    where->inputs[1] = masked_by ? all : none;
    where->inputs[2] = masked_by ? none : all;
    where->outputs[0] = v;
    v->dtype = SAC_F32;
    v->producer = where;
    return v;
}

static sac_result add_mask(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    float masked = 0;
    for (int i = 1; i < 3; i++) {
        struct sac_value *scores = n->inputs[3 - i], *mask = n->inputs[0];
        if (!sac_constant_scalar(n->inputs[i], &masked) || !(masked <= MASKED) ||
            !sac_same_shape(scores, n->outputs[0]) || !are_scores(scores) ||
            !is_softened(g, n->outputs[0]))
            continue;
        struct sac_value *what =
            mask->data ? added(g, mask, i == 1, masked) : chosen(g, n, i == 1, masked);
        struct sac_node *add = sac_op_node(g, "", "Add", 2, 1, n);
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
