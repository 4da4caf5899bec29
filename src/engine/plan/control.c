/* SPDX-License-Identifier: Apache-2.0 */
/* If, Loop and Scan: the subgraph's nodes use the same table of values as all others. ops/control.c
 * has already checked the inputs and outputs of the bodies. */
#include <string.h>

#include "engine/plan/dynamic.h"

/* A file may ask for any number of iterations; no network for video needs this many. */
static const int64_t TURNS_MAX = 1000000;

static sac_result fault(const struct sac_dynamic *d, const struct sac_node *n, sac_result res,
                        const char *what)
{
    char label[256];
    return SAC_FAIL(d->plan->graph->ctx, res, "%s: %s", sac_node_label(n, label, sizeof label),
                    what);
}

static sac_result run_graph(struct sac_dynamic *d, const struct sac_graph *g)
{
    return sac_dynamic_nodes(d, (const struct sac_node *const *)g->nodes, g->node_count);
}

/* A scalar of dtype bool or int64, or a tensor with one element: files have both. */
static sac_result scalar(const struct sac_dynamic *d, const struct sac_node *n,
                         const struct sac_value *v, enum sac_dtype dtype, int64_t *out)
{
    const struct sac_operand *o = &d->values[v->id];
    if (!o->present || !o->data || o->dtype != dtype || sac_operand_elements(o) != 1)
        return fault(d, n, SAC_ERR_FORMAT,
                     dtype == SAC_BOOL ? "its condition is no single bool"
                                       : "its trip count is no single int64");
    *out = dtype == SAC_BOOL ? *(const uint8_t *)o->data != 0 : *(const int64_t *)o->data;
    return SAC_OK;
}

static sac_result run_if(struct sac_dynamic *d, const struct sac_node *n)
{
    int64_t    taken = 0;
    sac_result res = scalar(d, n, n->inputs[0], SAC_BOOL, &taken);
    if (res != SAC_OK)
        return res;
    const struct sac_graph *g = sac_node_attr(n, taken ? "then_branch" : "else_branch")->graph;
    res = run_graph(d, g);
    for (int i = 0; i < n->output_count && res == SAC_OK; i++)
        if (n->outputs[i])
            sac_dynamic_alias(d, n->outputs[i], g->outputs[i]);
    return res;
}

/* ---- stacks: what each iteration appends to an output ---- */

struct stack {
    struct sac_operand shape; /* of one iteration */
    char              *bytes;
    size_t             used, cap;
    int64_t            turns;
};

static sac_result stack_push(struct sac_dynamic *d, const struct sac_node *n, struct stack *s,
                             const struct sac_value *v)
{
    const struct sac_operand *o = &d->values[v->id];
    if (!o->present || !o->data || o->rank >= SAC_RANK_MAX)
        return fault(d, n, SAC_ERR_FORMAT, "a result of its body cannot be stacked");
    if (s->turns == 0)
        s->shape = *o;
    if (o->dtype != s->shape.dtype || o->rank != s->shape.rank ||
        memcmp(o->dims, s->shape.dims, (size_t)o->rank * sizeof(int64_t)) != 0)
        return fault(d, n, SAC_ERR_FORMAT,
                     "a result of its body changes its shape between iterations");
    size_t size = sac_operand_bytes(o);
    if (size > d->plan->params.memory_limit - s->used)
        return fault(d, n, SAC_ERR_LIMIT, "what it stacks is over the memory limit");
    if (!sac_grow((void **)&s->bytes, &s->cap, s->used + size, 1))
        return fault(d, n, SAC_ERR_MEMORY, "no memory for what it stacks");
    if (size)
        memcpy(s->bytes + s->used, o->data, size);
    s->used += size;
    s->turns++;
    return SAC_OK;
}

/* What a body that never ran would have made: as the file says, open dims being empty. */
static struct sac_operand shape_without_turns(const struct sac_value *v)
{
    struct sac_operand o = {.dtype = v->dtype ? v->dtype : SAC_F32, .rank = SAC_MAX(v->rank, 0)};
    for (int i = 0; i < o.rank; i++)
        o.dims[i] = SAC_MAX(v->dims[i], 0);
    return o;
}

/* All turns as one tensor [turns, ...]. */
static sac_result stack_finish(struct sac_dynamic *d, const struct sac_node *n,
                               const struct stack *s, const struct sac_value *body_output,
                               const struct sac_value *out)
{
    struct sac_operand one = s->turns ? s->shape : shape_without_turns(body_output), all = one;
    if (!out)
        return SAC_OK;
    if (one.rank >= SAC_RANK_MAX)
        return fault(d, n, SAC_ERR_FORMAT, "a result of its body cannot be stacked");
    all.rank = one.rank + 1;
    all.dims[0] = s->turns;
    memcpy(all.dims + 1, one.dims, (size_t)one.rank * sizeof(int64_t));
    sac_result res = sac_dynamic_make(d, n, out, &all);
    if (res == SAC_OK && s->used)
        memcpy(d->values[out->id].data, s->bytes, s->used);
    return res;
}

static void stacks_destroy(struct stack *s, int count)
{
    for (int i = 0; s && i < count; i++)
        sac_free(s[i].bytes);
    sac_free(s);
}

/* ---- carried values ---- */

/* Let the body's inputs be `from` for the next turn. All at once: a body may swap two of them. */
static sac_result carry(struct sac_dynamic *d, const struct sac_node *n,
                        struct sac_value *const *to, struct sac_value *const *from, int count)
{
    struct sac_operand operands[SAC_OP_INPUTS_MAX];
    sac_tensor        *held[SAC_OP_INPUTS_MAX];
    for (int i = 0; i < count; i++)
        if (!d->values[from[i]->id].present || !d->values[from[i]->id].data)
            return fault(d, n, SAC_ERR_FORMAT, "a value that it carries is missing");
    for (int i = 0; i < count; i++) {
        operands[i] = d->values[from[i]->id];
        held[i] = d->tensors[from[i]->id] ? sac_tensor_ref(d->tensors[from[i]->id]) : NULL;
    }
    for (int i = 0; i < count; i++) {
        sac_dynamic_bind(d, to[i], &operands[i], held[i]);
        sac_tensor_unref(&held[i]);
    }
    return SAC_OK;
}

static void hand_over(struct sac_dynamic *d, const struct sac_node *n,
                      struct sac_value *const *from, int count)
{
    for (int i = 0; i < count; i++)
        if (n->outputs[i])
            sac_dynamic_alias(d, n->outputs[i], from[i]);
}

/* ---- Loop ---- */

static sac_result set_scalar(struct sac_dynamic *d, const struct sac_node *n,
                             const struct sac_value *v, enum sac_dtype dtype, int64_t value)
{
    struct sac_operand shape = {.dtype = dtype};
    sac_result         res = sac_dynamic_make(d, n, v, &shape);
    if (res == SAC_OK && dtype == SAC_BOOL)
        *(uint8_t *)d->values[v->id].data = value != 0;
    else if (res == SAC_OK)
        *(int64_t *)d->values[v->id].data = value;
    return res;
}

static sac_result loop_limits(struct sac_dynamic *d, const struct sac_node *n, int64_t *turns,
                              int64_t *go)
{
    sac_result res = SAC_OK;
    *turns = INT64_MAX;
    *go = 1;
    if (n->input_count > 0 && n->inputs[0])
        res = scalar(d, n, n->inputs[0], SAC_I64, turns);
    if (res == SAC_OK && n->input_count > 1 && n->inputs[1])
        res = scalar(d, n, n->inputs[1], SAC_BOOL, go);
    return res;
}

static sac_result loop_turns(struct sac_dynamic *d, const struct sac_node *n,
                             const struct sac_graph *body, struct stack *stacks, int carried)
{
    int64_t    turns = 0, go = 0;
    sac_result res = loop_limits(d, n, &turns, &go);
    if (res == SAC_OK)
        res = carry(d, n, body->inputs + 2, n->inputs + n->input_count - carried, carried);
    for (int64_t i = 0; i < turns && go && res == SAC_OK; i++) {
        if (i == TURNS_MAX)
            return fault(d, n, SAC_ERR_UNSUPPORTED, "it takes over a million iterations");
        res = set_scalar(d, n, body->inputs[0], SAC_I64, i);
        if (res == SAC_OK)
            res = set_scalar(d, n, body->inputs[1], SAC_BOOL, go);
        if (res == SAC_OK)
            res = run_graph(d, body);
        if (res == SAC_OK)
            res = scalar(d, n, body->outputs[0], SAC_BOOL, &go);
        for (int k = carried; k < n->output_count && res == SAC_OK; k++)
            res = stack_push(d, n, &stacks[k - carried], body->outputs[k + 1]);
        if (res == SAC_OK)
            res = carry(d, n, body->inputs + 2, body->outputs + 1, carried);
    }
    return res;
}

static sac_result run_loop(struct sac_dynamic *d, const struct sac_node *n)
{
    const struct sac_graph *body = sac_node_attr(n, "body")->graph;
    int                     carried = SAC_MAX(n->input_count - 2, 0);
    int                     count = n->output_count - carried;
    struct stack           *stacks = sac_calloc((size_t)count, sizeof *stacks);
    if (!stacks)
        return fault(d, n, SAC_ERR_MEMORY, "no memory to run it");
    sac_result res = loop_turns(d, n, body, stacks, carried);
    if (res == SAC_OK)
        hand_over(d, n, body->inputs + 2, carried);
    for (int k = 0; k < count && res == SAC_OK; k++)
        res =
            stack_finish(d, n, &stacks[k], body->outputs[carried + 1 + k], n->outputs[carried + k]);
    stacks_destroy(stacks, count);
    return res;
}

/* ---- Scan ---- */

/* Entry `turn` of a scanned input, in place. */
static void bind_entry(struct sac_dynamic *d, const struct sac_value *from,
                       const struct sac_value *to, int64_t turn)
{
    struct sac_operand o = d->values[from->id];
    sac_tensor        *whole = d->tensors[from->id];
    memmove(o.dims, o.dims + 1, (size_t)(o.rank - 1) * sizeof(int64_t));
    o.rank--;
    o.data = (char *)o.data + (size_t)turn * sac_operand_bytes(&o);
    sac_dynamic_bind(d, to, &o, whole);
}

static sac_result scan_length(struct sac_dynamic *d, const struct sac_node *n, int states,
                              int64_t *turns)
{
    *turns = -1;
    for (int i = states; i < n->input_count; i++) {
        const struct sac_operand *o = &d->values[n->inputs[i]->id];
        if (o->rank < 1 || (*turns >= 0 && o->dims[0] != *turns))
            return fault(d, n, SAC_ERR_FORMAT, "its scanned inputs are not equally long");
        *turns = o->dims[0];
    }
    return *turns <= TURNS_MAX
               ? SAC_OK
               : fault(d, n, SAC_ERR_UNSUPPORTED, "it takes over a million iterations");
}

static sac_result scan_turns(struct sac_dynamic *d, const struct sac_node *n,
                             const struct sac_graph *body, struct stack *stacks, int states)
{
    int64_t    turns = 0;
    sac_result res = scan_length(d, n, states, &turns);
    if (res == SAC_OK)
        res = carry(d, n, body->inputs, n->inputs, states);
    for (int64_t t = 0; res == SAC_OK && t < turns; t++) {
        for (int i = states; i < n->input_count; i++)
            bind_entry(d, n->inputs[i], body->inputs[i], t);
        res = run_graph(d, body);
        for (int k = states; k < n->output_count && res == SAC_OK; k++)
            res = stack_push(d, n, &stacks[k - states], body->outputs[k]);
        if (res == SAC_OK)
            res = carry(d, n, body->inputs, body->outputs, states);
    }
    return res;
}

static sac_result run_scan(struct sac_dynamic *d, const struct sac_node *n)
{
    const struct sac_graph *body = sac_node_attr(n, "body")->graph;
    int                     states = n->input_count - (int)sac_attr_int(n, "num_scan_inputs", 0);
    int                     count = n->output_count - states;
    struct stack           *stacks = sac_calloc((size_t)count, sizeof *stacks);
    if (!stacks)
        return fault(d, n, SAC_ERR_MEMORY, "no memory to run it");
    sac_result res = scan_turns(d, n, body, stacks, states);
    if (res == SAC_OK)
        hand_over(d, n, body->inputs, states);
    for (int k = 0; k < count && res == SAC_OK; k++)
        res = stack_finish(d, n, &stacks[k], body->outputs[states + k], n->outputs[states + k]);
    stacks_destroy(stacks, count);
    return res;
}

sac_result sac_dynamic_control(struct sac_dynamic *d, const struct sac_node *n)
{
    switch (n->op->id) {
    case SAC_OP_If: return run_if(d, n);
    case SAC_OP_Loop: return run_loop(d, n);
    default: return run_scan(d, n);
    }
}
