/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "engine/ops/infer.h"

enum {
    /* folding may create this much anyway (Range, Expand) */
    FOLD_FREE_BYTES = 16 << 20,
    FOLD_GROWTH = 8,         /* plus this many times the file's constants, in total */
    SHAPE_NUMBERS_MAX = 1024 /* more are weights: a Resize's scales are as many as it has dims */
};
/* A matrix product that takes seconds is not folded at load, even when its operands are constants:
 * a file may ask for any amount of work. */
static const int64_t FOLD_FLOPS_MAX = 200000000;

sac_result sac_infer_init(struct sac_infer *inf, struct sac_graph *g, uint64_t memory_limit)
{
    size_t ids = (size_t)g->id_count;
    *inf =
        (struct sac_infer){.graph = g, .memory_limit = memory_limit, .fold_limit = FOLD_FREE_BYTES};
    inf->values = sac_calloc(ids, sizeof *inf->values);
    inf->folded_reads = sac_calloc(ids, sizeof *inf->folded_reads);
    inf->call = sac_new(struct sac_op_call);
    if (!inf->values || !inf->folded_reads || !inf->call) {
        sac_infer_finish(inf);
        return SAC_FAIL(g->ctx, SAC_ERR_MEMORY, "no memory to infer shapes");
    }
    return SAC_OK;
}

void sac_infer_finish(struct sac_infer *inf)
{
    sac_free(inf->values);
    sac_free(inf->folded_reads);
    sac_free(inf->call);
    sac_free(inf->work);
    sac_arena_finish(&inf->arena);
    *inf = (struct sac_infer){0};
}

/* ---- is there a row? ---- */

static bool graph_supported(const struct sac_graph *g, char *why, size_t why_size)
{
    for (size_t i = 0; i < g->node_count; i++) {
        char inner[160];
        if (!sac_node_supported(g->nodes[i], inner, sizeof inner)) {
            snprintf(why, why_size, "inside it, %.64s: %s", g->nodes[i]->op_type, inner);
            return false;
        }
    }
    return true;
}

bool sac_node_supported(const struct sac_node *n, char *why, size_t why_size)
{
    const struct sac_op *op = n->op;
    if (!op) {
        if (n->domain[0])
            snprintf(why, why_size, "saccade has no such operator of domain '%.64s'", n->domain);
        else
            snprintf(why, why_size, "saccade has no such operator");
        return false;
    }
    if (n->opset < op->opset_min ||
        (n->opset > op->opset_max && op->opset_max < SAC_OPSET_NEWEST)) {
        snprintf(why, why_size, "opset %d; have %d to %d", n->opset, op->opset_min, op->opset_max);
        return false;
    }
    int last = n->input_count;
    while (last > 0 && !n->inputs[last - 1])
        last--;
    if (last < op->input_min || n->input_count > op->input_max ||
        n->output_count > op->output_max || n->output_count < 1) {
        snprintf(why, why_size, "%d inputs and %d outputs; have %d to %d and 1 to %d", last,
                 n->output_count, op->input_min, op->input_max, op->output_max);
        return false;
    }
    for (int i = 0; i < op->input_min; i++)
        if (!n->inputs[i]) {
            snprintf(why, why_size, "input %d is left out, but needed", i);
            return false;
        }
    if (op->supports && !op->supports(n, why, why_size))
        return false;
    for (int a = 0; a < n->attr_count; a++)
        if (n->attrs[a].kind == SAC_ATTR_GRAPH &&
            !graph_supported(n->attrs[a].graph, why, why_size))
            return false;
    return true;
}

sac_result sac_node_check_supported(sac_context *ctx, const struct sac_node *n)
{
    char why[256] = "", label[256];
    if (sac_node_supported(n, why, sizeof why))
        return SAC_OK;
    return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED, "%s of opset %d is not supported: %s",
                    sac_node_label(n, label, sizeof label), n->opset, why);
}

/* ---- one node ---- */

static struct sac_operand operand_of(const struct sac_value *v)
{
    struct sac_operand o = {
        .dtype = v->dtype, .rank = v->rank, .data = (void *)v->data, .present = true};
    memcpy(o.dims, v->dims, sizeof o.dims);
    return o;
}

void sac_call_fill(struct sac_op_call *c, sac_context *ctx, const struct sac_node *n,
                   const struct sac_operand *values)
{
    /* Rows access optional operands by position without checking the node's count, so nothing of
     * the previous node may be left in the call. */
    for (int i = n->input_count; i < c->in_count; i++)
        c->in[i] = (struct sac_operand){0};
    for (int i = n->output_count; i < c->out_count; i++)
        c->out[i] = (struct sac_operand){0};
    c->ctx = ctx;
    c->node = n;
    c->in_count = n->input_count;
    c->out_count = n->output_count;
    for (int i = 0; i < n->input_count; i++) {
        c->in[i] = n->inputs[i] ? values[n->inputs[i]->id] : (struct sac_operand){0};
        c->in[i].present = n->inputs[i] != NULL;
    }
    for (int i = 0; i < n->output_count; i++)
        c->out[i] = (struct sac_operand){.present = n->outputs[i] != NULL};
}

sac_result sac_call_check_outputs(const struct sac_op_call *c, uint64_t memory_limit)
{
    for (int i = 0; i < c->out_count; i++) {
        const struct sac_operand *o = &c->out[i];
        struct sac_tensor_desc    desc = {.dtype = o->dtype, .rank = o->rank};
        if (!o->present)
            continue;
        memcpy(desc.shape, o->dims, sizeof desc.shape);
        int64_t bytes = sac_tensor_desc_bytes(&desc);
        if (bytes < 0 || o->dtype == SAC_DTYPE_NONE)
            return SAC_OP_FAIL(c, SAC_ERR_FORMAT, "output %d would have an impossible shape", i);
        if ((uint64_t)bytes > memory_limit)
            return SAC_OP_FAIL(c, SAC_ERR_LIMIT,
                               "output %d would take %lld bytes; the limit is %llu", i,
                               (long long)bytes, (unsigned long long)memory_limit);
    }
    return SAC_OK;
}

static uint64_t operand_list_bytes(const struct sac_operand *o, int count)
{
    uint64_t sum = 0;
    for (int i = 0; i < count; i++)
        if (o[i].present)
            sum += sac_operand_bytes(&o[i]);
    return sum;
}

/* A scalar is no weights. */
static bool makes_weights(const struct sac_node *n)
{
    const struct sac_value *v = n->input_count > 0 ? n->inputs[0] : NULL;
    return n->op && n->op->id == SAC_OP_DequantizeLinear && v && v->rank > 0 &&
           sac_dtype_bytes(v->dtype) == 1;
}

/* The shapes of c are known: can it be computed now, and is that worth it? All nodes share one
 * limit, since a chain of nodes whose outputs are each a few times larger than their inputs would
 * grow without bound. */
static bool foldable(const struct sac_infer *inf, const struct sac_op_call *c)
{
    const struct sac_op *op = c->node->op;
    if (!op->ref || op->flags & (SAC_OP_RANDOM | SAC_OP_CONTROL))
        return false;
    for (int i = 0; i < c->in_count && !(op->flags & SAC_OP_OF_SHAPE); i++)
        if (c->in[i].present && !c->in[i].data)
            return false;
    uint64_t all = inf->folded_bytes + operand_list_bytes(c->out, c->out_count);
    return all <= inf->fold_limit && all <= inf->memory_limit &&
           (!op->flops || op->flops(c) <= FOLD_FLOPS_MAX);
}

/* Computes c on the host, with its outputs in the arena. */
static sac_result evaluate(struct sac_op_call *c, struct sac_arena *arena, uint64_t *folded_bytes)
{
    for (int i = 0; i < c->out_count; i++) {
        if (!c->out[i].present)
            continue;
        size_t bytes = sac_operand_bytes(&c->out[i]);
        c->out[i].data = sac_arena_alloc(arena, SAC_MAX(bytes, (size_t)1));
        if (!c->out[i].data)
            return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for a constant of %zu bytes", bytes);
        *folded_bytes += bytes;
    }
    return c->node->op->ref(c);
}

/* n was folded. Calls drop for what it read and nobody will read again: a network's positions and
 * indices are folded through many steps, each as large as the last, which alone is kept. */
static void forget_reads(struct sac_infer *inf, const struct sac_node *n,
                         void (*drop)(struct sac_infer *inf, struct sac_value *v))
{
    for (int i = 0; i < n->input_count; i++) {
        struct sac_value *v = n->inputs[i];
        if (v && ++inf->folded_reads[v->id] == v->uses)
            drop(inf, v);
    }
}

/* ---- the walk ---- */

static sac_result walk(struct sac_infer *inf, const struct sac_graph *g);

static sac_result add_work(struct sac_infer *inf, const struct sac_node *n,
                           enum sac_work_state state)
{
    if (!sac_grow((void **)&inf->work, &inf->work_cap, inf->work_count + 1, sizeof *inf->work))
        return SAC_FAIL(inf->graph->ctx, SAC_ERR_MEMORY, "no memory for the plan");
    inf->work[inf->work_count++] = (struct sac_work){n, state};
    return SAC_OK;
}

static bool inputs_known(const struct sac_infer *inf, const struct sac_node *n)
{
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i] && !inf->values[n->inputs[i]->id].present)
            return false;
    return true;
}

/* A node that only renames a value. It is removed from the plan only; the graph is unchanged. */
static struct sac_node *make_identity(struct sac_infer *inf, const struct sac_node *like,
                                      struct sac_value *from, struct sac_value *to)
{
    struct sac_node   *n = sac_arena_alloc(&inf->arena, sizeof *n);
    struct sac_value **ends = sac_arena_alloc(&inf->arena, 2 * sizeof *ends);
    if (!n || !ends)
        return NULL;
    ends[0] = from;
    ends[1] = to;
    *n = (struct sac_node){.op = sac_op_find("", "Identity"),
                           .name = like->name,
                           .op_type = "Identity",
                           .domain = "",
                           .opset = like->opset,
                           .input_count = 1,
                           .output_count = 1,
                           .inputs = ends,
                           .outputs = ends + 1,
                           .index = like->index};
    return n;
}

static sac_result visit(struct sac_infer *inf, const struct sac_node *n);

/* An If whose condition is known is replaced by its branch. */
static sac_result inline_branch(struct sac_infer *inf, const struct sac_node *n, bool taken)
{
    const struct sac_attr *a = sac_node_attr(n, taken ? "then_branch" : "else_branch");
    sac_result             res = walk(inf, a->graph);
    for (int i = 0; i < n->output_count && res == SAC_OK; i++) {
        if (!n->outputs[i])
            continue;
        struct sac_node *same = make_identity(inf, n, a->graph->outputs[i], n->outputs[i]);
        res = same ? visit(inf, same)
                   : SAC_FAIL(inf->graph->ctx, SAC_ERR_MEMORY, "no memory for the plan");
    }
    return res;
}

static bool known_condition(const struct sac_infer *inf, const struct sac_node *n, bool *taken)
{
    if (strcmp(n->op_type, "If") != 0 || n->domain[0] || !n->inputs[0])
        return false;
    const struct sac_operand *cond = &inf->values[n->inputs[0]->id];
    if (!cond->present || !cond->data || cond->dtype != SAC_BOOL || sac_operand_elements(cond) != 1)
        return false;
    *taken = *(const uint8_t *)cond->data != 0;
    return true;
}

static void drop_operand(struct sac_infer *inf, struct sac_value *v)
{
    struct sac_operand *o = &inf->values[v->id];
    if (o->data && sac_arena_free(&inf->arena, o->data, sac_operand_bytes(o)))
        o->data = NULL;
}

static sac_result visit_known(struct sac_infer *inf, const struct sac_node *n)
{
    struct sac_op_call *c = inf->call;
    sac_call_fill(c, inf->graph->ctx, n, inf->values);
    sac_result res = n->op->shape(c);
    if (res == SAC_AGAIN)
        return add_work(inf, n, SAC_WORK_DYNAMIC);
    if (res == SAC_OK)
        res = sac_call_check_outputs(c, inf->memory_limit);
    if (res != SAC_OK)
        return res;
    const bool weights = makes_weights(n) && sac_operand_elements(&c->in[0]) > SHAPE_NUMBERS_MAX;
    bool       fold = !(inf->shapes_only && weights) && foldable(inf, c);
    if (fold)
        res = evaluate(c, &inf->arena, &inf->folded_bytes);
    for (int i = 0; i < n->output_count && res == SAC_OK; i++)
        if (n->outputs[i])
            inf->values[n->outputs[i]->id] = c->out[i];
    if (res == SAC_OK && fold)
        forget_reads(inf, n, drop_operand);
    else if (res == SAC_OK)
        res = add_work(inf, n, SAC_WORK_STATIC);
    return res;
}

static sac_result visit(struct sac_infer *inf, const struct sac_node *n)
{
    bool       taken;
    sac_result res = SAC_OK;
    if (inf->tolerant) {
        char why[256];
        if (!sac_node_supported(n, why, sizeof why))
            return add_work(inf, n, SAC_WORK_UNSUPPORTED);
    } else {
        res = sac_node_check_supported(inf->graph->ctx, n);
    }
    if (res != SAC_OK)
        return res;
    if (known_condition(inf, n, &taken))
        return inline_branch(inf, n, taken);
    if (n->op->flags & SAC_OP_CONTROL || !inputs_known(inf, n))
        return add_work(inf, n, SAC_WORK_DYNAMIC);
    res = visit_known(inf, n);
    if (inf->tolerant && res != SAC_OK && res != SAC_ERR_MEMORY)
        res = add_work(inf, n, SAC_WORK_UNSUPPORTED);
    return res;
}

static sac_result walk(struct sac_infer *inf, const struct sac_graph *g)
{
    sac_result res = SAC_OK;
    for (size_t i = 0; i < g->node_count && res == SAC_OK; i++)
        res = visit(inf, g->nodes[i]);
    return res;
}

/* Constants of subgraphs are known too, whether or not a branch is walked: the executor reads
 * them. */
static void take_constants(struct sac_infer *inf, const struct sac_graph *g)
{
    for (size_t i = 0; i < g->value_count; i++) {
        struct sac_operand *o = &inf->values[g->values[i]->id];
        if (!g->values[i]->data)
            continue;
        *o = operand_of(g->values[i]);
        inf->fold_limit += FOLD_GROWTH * sac_operand_bytes(o);
    }
    for (size_t i = 0; i < g->node_count; i++)
        for (int a = 0; a < g->nodes[i]->attr_count; a++)
            if (g->nodes[i]->attrs[a].kind == SAC_ATTR_GRAPH)
                take_constants(inf, g->nodes[i]->attrs[a].graph);
}

sac_result sac_infer_run(struct sac_infer *inf)
{
    take_constants(inf, inf->graph);
    return walk(inf, inf->graph);
}

/* ---- folding, once for all shapes ---- */

static void become_constant(struct sac_value *v, const struct sac_operand *o)
{
    v->dtype = o->dtype;
    v->rank = o->rank;
    memcpy(v->dims, o->dims, sizeof v->dims);
    v->data = o->data;
}

static bool reads_constants_only(const struct sac_node *n)
{
    char why[256];
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i] && !n->inputs[i]->data)
            return false;
    return !sac_node_has_subgraph(n) && sac_node_supported(n, why, sizeof why);
}

static void drop_constant(struct sac_infer *inf, struct sac_value *v)
{
    sac_value_forget(inf->graph, v);
}

static sac_result fold_node(struct sac_infer *inf, struct sac_node *n)
{
    struct sac_op_call *c = inf->call;
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i])
            inf->values[n->inputs[i]->id] = operand_of(n->inputs[i]);
    sac_call_fill(c, inf->graph->ctx, n, inf->values);
    sac_result res = n->op->shape(c);
    if (res == SAC_OK)
        res = sac_call_check_outputs(c, inf->memory_limit);
    if (res != SAC_OK || !foldable(inf, c))
        return res;
    res = evaluate(c, inf->graph->arena, &inf->folded_bytes);
    for (int i = 0; i < n->output_count && res == SAC_OK; i++)
        if (n->outputs[i])
            become_constant(n->outputs[i], &c->out[i]);
    if (res == SAC_OK)
        forget_reads(inf, n, drop_constant);
    return res;
}

sac_result sac_graph_fold(struct sac_graph *g, uint64_t memory_limit, bool weights)
{
    struct sac_infer inf;
    sac_result       res = sac_infer_init(&inf, g, memory_limit);
    size_t           kept = 0;
    if (res != SAC_OK)
        return res;
    take_constants(&inf, g);
    for (size_t i = 0; i < g->node_count; i++) {
        struct sac_node *n = g->nodes[i];
        if (res == SAC_OK && reads_constants_only(n) && (weights || !makes_weights(n)))
            res = fold_node(&inf, n);
        bool gone = true;
        for (int k = 0; k < n->output_count; k++)
            gone &= !n->outputs[k] || n->outputs[k]->data;
        if (!gone)
            g->nodes[kept++] = n;
    }
    g->node_count = kept;
    sac_infer_finish(&inf);
    return res == SAC_OK ? sac_graph_refresh(g) : res;
}
