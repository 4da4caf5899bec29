/* SPDX-License-Identifier: Apache-2.0 */
/* Many files fix the batch at 1 although the network works with any batch: the 1 is in the inputs'
 * shapes, in targets of Reshape, in the axes of a reduction. This pass follows the batch axis from
 * the inputs through every node to the outputs and opens it: a 1 in a Reshape becomes "as in the
 * input", and the batch is removed from the axes of a reduction (over one entry it is the
 * identity).
 *
 * An operator without a rule or a value that loses the axis leaves the whole graph unchanged.
 * sac_model_check_batch then compares real results.
 */
#include <string.h>

#include "engine/ops/batch.h"
#include "engine/passes/pass.h"

struct freeing {
    struct sac_batch_walk w;
    bool                  reads_batch; /* set by note_batch */
};

/* ---- the walk ---- */

static bool shapes_known(const struct sac_node *n)
{
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i] && n->inputs[i]->rank < 0)
            return false;
    for (int i = 0; i < n->output_count; i++)
        if (n->outputs[i] && n->outputs[i]->rank < 0)
            return false;
    return true;
}

static void note_batch(void *user, struct sac_value *v)
{
    struct freeing *f = user;
    f->reads_batch |= f->w.axis[v->id] >= 0;
}

static bool reads_batch(struct freeing *f, const struct sac_node *n)
{
    f->reads_batch = false;
    sac_node_each_read(n, note_batch, f);
    return f->reads_batch;
}

static sac_batch_rule *rule_of(const struct sac_node *n)
{
    if (n->domain[0] || !n->op || sac_node_has_subgraph(n))
        return NULL;
    return n->op->batch                        ? n->op->batch
           : n->op->flags & SAC_OP_ELEMENTWISE ? sac_batch_elementwise
                                               : NULL;
}

static bool follow(struct freeing *f, struct sac_node *n)
{
    int             axis = -1;
    sac_batch_rule *rule = rule_of(n);
    if (!reads_batch(f, n))
        return true;
    if (!rule)
        return sac_batch_refuse(&f->w, "no rule says what it does to a batch");
    if (!shapes_known(n))
        return sac_batch_refuse(&f->w, "its shapes are not known");
    const int first = sac_batch_axis(&f->w, n->inputs[0]);
    if (!n->inputs[0] ||
        (first < 0 && !(n->op->flags & (SAC_OP_ELEMENTWISE | SAC_OP_BATCH_ANYWHERE))))
        return sac_batch_refuse(&f->w, "the batch enters through another input than the first");
    if (!rule(&f->w, n, first, &axis))
        return false;
    for (int i = 0; i < n->output_count; i++) {
        if (!n->outputs[i])
            continue;
        if (axis >= n->outputs[i]->rank) /* the file declares a wrong rank */
            return sac_batch_refuse(&f->w, "its output has no such axis");
        f->w.axis[n->outputs[i]->id] = axis;
    }
    return true;
}

/* Finds the inputs whose batch of 1 can be opened. */
static bool mark_inputs(struct freeing *f)
{
    for (int i = 0; i < f->w.g->input_count; i++) {
        const struct sac_value *v = f->w.g->inputs[i];
        if (v->rank < 2 || v->dims[0] != 1)
            return sac_batch_refuse(&f->w, "its inputs do not all begin with a batch of 1");
        f->w.axis[v->id] = 0;
    }
    return f->w.g->input_count > 0 || sac_batch_refuse(&f->w, "it has no inputs");
}

static sac_result analyse(struct freeing *f)
{
    char label[256];
    if (!mark_inputs(f))
        return SAC_FAIL(f->w.g->ctx, SAC_ERR_UNSUPPORTED, "%s", f->w.why);
    for (size_t i = 0; i < f->w.g->node_count; i++)
        if (!follow(f, f->w.g->nodes[i]))
            return SAC_FAIL(f->w.g->ctx, SAC_ERR_UNSUPPORTED, "%s: %s",
                            sac_node_label(f->w.g->nodes[i], label, sizeof label), f->w.why);
    for (int i = 0; i < f->w.g->output_count; i++)
        if (f->w.axis[f->w.g->outputs[i]->id] != 0)
            return SAC_FAIL(f->w.g->ctx, SAC_ERR_UNSUPPORTED,
                            "output '%s' does not begin with the batch", f->w.g->outputs[i]->name);
    return SAC_OK;
}

/* ---- the changes ---- */

/* The new numbers become a constant of this node only: other nodes may share the old one. */
static sac_result set_input(struct sac_graph *g, const struct sac_batch_edit *e, int input)
{
    struct sac_tensor_desc desc = {.dtype = SAC_I64, .rank = 1, .shape = {(int64_t)e->count}};
    struct sac_value      *v = sac_graph_constant(g, "freed batch", &desc, e->ints);
    if (!v)
        return SAC_ERR_MEMORY;
    if (input >= e->node->input_count) {
        struct sac_value **inputs = sac_arena_alloc(g->arena, 2 * sizeof *inputs);
        if (!inputs)
            return SAC_FAIL(g->ctx, SAC_ERR_MEMORY, "no memory to free the batch");
        inputs[0] = e->node->inputs[0];
        e->node->inputs = inputs;
        e->node->input_count = 2;
    }
    e->node->inputs[input] = v;
    return SAC_OK;
}

static sac_result apply(struct freeing *f)
{
    sac_result res = SAC_OK;
    for (size_t i = 0; i < f->w.edit_count && res == SAC_OK; i++) {
        const struct sac_batch_edit *e = &f->w.edits[i];
        if (e->kind == SAC_BATCH_AXES_ATTR)
            res = sac_node_set_ints(f->w.g, e->node, "axes", e->ints, e->count);
        else
            res = set_input(f->w.g, e, 1);
        if (res == SAC_OK && e->kind == SAC_BATCH_SHAPE)
            res = sac_node_set_int(f->w.g, e->node, "allowzero", 0);
    }
    for (int i = 0; i < f->w.g->input_count && res == SAC_OK; i++)
        f->w.g->inputs[i]->dims[0] = SAC_DIM_OPEN;
    return res == SAC_OK ? sac_graph_refresh(f->w.g) : res;
}

sac_result sac_graph_free_batch(struct sac_graph *g)
{
    struct freeing f = {.w = {.g = g}};
    f.w.axis = sac_realloc_array(NULL, (size_t)g->id_count, sizeof *f.w.axis);
    if (!f.w.axis)
        return SAC_FAIL(g->ctx, SAC_ERR_MEMORY, "no memory to free the batch");
    memset(f.w.axis, 0xff, (size_t)g->id_count * sizeof *f.w.axis);
    sac_result res = analyse(&f);
    if (res == SAC_OK)
        res = apply(&f);
    sac_free(f.w.axis);
    sac_free(f.w.edits);
    return res;
}
