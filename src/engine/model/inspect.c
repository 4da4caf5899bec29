/* SPDX-License-Identifier: Apache-2.0 */
/* What a model holds and how it would run: `saccade inspect`; cost.c tells of each step more. */
#include <stdio.h>
#include <string.h>

#include "engine/model/ranges.h"

/* The shapes for inspecting a model: open dims are 1. */
static struct sac_operand *default_shapes(const sac_model *m)
{
    struct sac_operand *shapes = sac_calloc((size_t)m->graph->input_count, sizeof *shapes);
    for (int i = 0; shapes && i < m->graph->input_count; i++) {
        const struct sac_tensor_desc *d = &m->inputs[i].desc;
        shapes[i] = (struct sac_operand){
            .dtype = d->dtype, .rank = SAC_MAX(d->rank, 0), .present = d->rank >= 0};
        for (int k = 0; k < d->rank; k++)
            shapes[i].dims[k] = d->shape[k] == SAC_DIM_OPEN ? 1 : d->shape[k];
    }
    return shapes;
}

struct sac_plan *sac_model_plan_to_show(sac_model *m)
{
    struct sac_plan *plan = sac_model_latest_plan(m);
    if (plan)
        return plan;
    struct sac_operand *shapes = default_shapes(m);
    if (shapes && sac_model_plan(m, shapes, &plan) != SAC_OK)
        plan = NULL;
    sac_free(shapes);
    return plan;
}

/* ---- the file ---- */

static int find_operator(const sac_model *m, const char *name, const char *domain)
{
    for (int i = 0; i < m->info.operator_count; i++)
        if (strcmp(m->operators[i].name, name) == 0 && strcmp(m->operators[i].domain, domain) == 0)
            return i;
    return -1;
}

/* Operators grow in steps of 32 in the model's memory. */
static int add_operator(sac_model *m, const struct sac_node *n)
{
    int count = m->info.operator_count;
    if (count % 32 == 0) {
        struct sac_model_operator *grown =
            sac_arena_alloc(&m->memory, ((size_t)count + 32) * sizeof *grown);
        if (!grown)
            return -1;
        if (count)
            memcpy(grown, m->operators, (size_t)count * sizeof *grown);
        m->operators = grown;
    }
    m->operators[count] =
        (struct sac_model_operator){.name = n->op_type, .domain = n->domain, .supported = 1};
    m->info.operator_count++;
    return count;
}

static bool list_graph(sac_model *m, const struct sac_graph *g)
{
    for (size_t i = 0; i < g->node_count; i++) {
        const struct sac_node *n = g->nodes[i];
        char                   why[256] = "";
        int                    op = find_operator(m, n->op_type, n->domain);
        if (op < 0 && (op = add_operator(m, n)) < 0)
            return false;
        m->operators[op].count += !n->piece;
        if (!g->outer && n->index < m->onnx.node_count)
            m->op_of_node[n->index] = op;
        if (m->operators[op].supported && !sac_node_supported(n, why, sizeof why)) {
            m->operators[op].supported = 0;
            m->operators[op].why = sac_arena_strndup(&m->memory, why, strlen(why));
        }
        for (int a = 0; a < n->attr_count; a++)
            if (n->attrs[a].kind == SAC_ATTR_GRAPH && !list_graph(m, n->attrs[a].graph))
                return false;
    }
    return true;
}

static void count_constants(const struct sac_graph *g, struct sac_model_info *info)
{
    for (size_t i = 0; i < g->value_count; i++) {
        const struct sac_value *v = g->values[i];
        struct sac_operand      o = {.dtype = v->dtype, .rank = v->rank};
        if (!v->data || v->uses == 0)
            continue;
        memcpy(o.dims, v->dims, sizeof o.dims);
        info->weights_bytes += (int64_t)sac_operand_bytes(&o);
        if (v->dtype != SAC_I64 && v->dtype != SAC_I32 && v->dtype != SAC_BOOL) /* shapes, axes */
            info->parameters += sac_operand_elements(&o);
    }
    for (size_t i = 0; i < g->node_count; i++)
        for (int a = 0; a < g->nodes[i]->attr_count; a++)
            if (g->nodes[i]->attrs[a].kind == SAC_ATTR_GRAPH)
                count_constants(g->nodes[i]->attrs[a].graph, info);
}

sac_result sac_model_list_operators(sac_model *m)
{
    m->info = (struct sac_model_info){.producer = m->onnx.producer,
                                      .ir_version = m->onnx.ir_version,
                                      .opset = m->onnx.opset,
                                      .node_count = m->onnx.node_count};
    m->op_of_node = sac_arena_alloc(&m->memory, ((size_t)m->onnx.node_count + 1) * sizeof(int));
    if (!m->op_of_node || !list_graph(m, m->graph))
        return SAC_FAIL(m->ctx, SAC_ERR_MEMORY, "no memory to list its operators");
    m->info.operators = m->operators;
    count_constants(m->graph, &m->info);
    return SAC_OK;
}

/* ---- the cost ---- */

static int64_t node_flops(struct sac_infer *inf, const struct sac_node *n)
{
    struct sac_op_call *c = inf->call;
    if (!n->op->flops)
        return 0;
    sac_call_fill(c, inf->graph->ctx, n, inf->values);
    for (int i = 0; i < n->output_count; i++)
        if (n->outputs[i])
            c->out[i] = inf->values[n->outputs[i]->id];
    return n->op->flops(c);
}

static int64_t sum_flops(struct sac_infer *inf)
{
    int64_t sum = 0;
    for (size_t i = 0; i < inf->work_count; i++) {
        if (inf->work[i].state != SAC_WORK_STATIC)
            return 0; /* unknown */
        if (__builtin_add_overflow(sum, node_flops(inf, inf->work[i].node), &sum))
            return 0;
    }
    return sum;
}

/* The file's own shapes, open dims as 1. */
static void set_default_shapes(struct sac_infer *inf, const struct sac_graph *g)
{
    for (int i = 0; i < g->input_count; i++) {
        const struct sac_value *v = g->inputs[i];
        struct sac_operand      o = {.dtype = v->dtype, .rank = v->rank, .present = v->rank >= 0};
        for (int d = 0; d < v->rank; d++)
            o.dims[d] = v->dims[d] == SAC_DIM_OPEN ? 1 : v->dims[d];
        inf->values[v->id] = o;
    }
}

sac_result sac_model_measure(sac_model *m)
{
    struct sac_infer inf;
    sac_result       res = sac_infer_init(&inf, m->graph, m->params.memory_limit_bytes);
    if (res != SAC_OK)
        return res;
    set_default_shapes(&inf, m->graph);
    inf.tolerant = true;
    inf.shapes_only = true;
    res = sac_infer_run(&inf);
    if (res == SAC_OK)
        m->info.flops = sum_flops(&inf);
    sac_infer_finish(&inf);
    if (res == SAC_OK)
        sac_error_clear(m->ctx); /* with 1 for open dims some layers are invalid */
    return res;
}

/* ---- the plan ---- */

/* The file's operator that a step came from: the one of the same name or, for a fused node, that of
 * the node it replaced. */
static int operator_of_step(const sac_model *m, const struct sac_step *step)
{
    if (step->kind != SAC_STEP_REFERENCE && step->kind != SAC_STEP_KERNEL)
        return -1;
    int op = find_operator(m, step->node->op_type, step->node->domain);
    if (op >= 0 || step->node->index >= m->onnx.node_count)
        return op;
    return m->op_of_node[step->node->index];
}

/* The implementation of most steps that came from this operator; op_of: by step. */
static const char *usual_kernel(const sac_model *m, const struct sac_plan *plan, const int *op_of,
                                int op)
{
    enum { DIFFERENT_MAX = 16 }; /* no operator has more */
    const char *names[DIFFERENT_MAX];
    int         counts[DIFFERENT_MAX] = {0}, different = 0, best = 0;
    for (size_t i = 0; i < plan->step_count; i++) {
        int k = 0;
        if (op_of[i] != op)
            continue;
        while (k < different && strcmp(names[k], plan->steps[i].implementation) != 0)
            k++;
        if (k == DIFFERENT_MAX)
            continue;
        if (k == different)
            names[different++] = plan->steps[i].implementation;
        counts[k]++;
        if (counts[k] > counts[best])
            best = k;
    }
    for (size_t i = 0; i < plan->tail_count && !different; i++)
        if (find_operator(m, plan->tail[i]->op_type, plan->tail[i]->domain) == op)
            return "plain C";
    return different ? names[best] : "folded or fused away";
}

static void note_plan(sac_model *m, const struct sac_plan *plan)
{
    int *op_of = sac_calloc(plan->step_count, sizeof *op_of);
    if (!op_of)
        return; /* without kernels */
    for (size_t i = 0; i < plan->step_count; i++)
        op_of[i] = operator_of_step(m, &plan->steps[i]);
    m->info.activation_bytes = (int64_t)plan->activation_bytes;
    m->info.step_count = (int)(plan->step_count + plan->tail_count);
    for (int i = 0; i < m->info.operator_count; i++) {
        const char *kernel = usual_kernel(m, plan, op_of, i);
        /* copied: the plan may be freed */
        if (m->operators[i].supported && !m->operators[i].kernel)
            m->operators[i].kernel = sac_arena_strndup(&m->memory, kernel, strlen(kernel));
    }
    sac_free(op_of);
}

void sac_model_inspect(sac_model *m, struct sac_model_info *out)
{
    if (!m || !out)
        return;
    pthread_mutex_lock(&m->lock);
    struct sac_plan *plan = sac_model_plan_to_show(m);
    if (plan)
        note_plan(m, plan);
    sac_error_clear(m->ctx);
    sac_model_list_ranges(m);
    m->info.calibration = m->calibration;
    m->info.wide_steps = m->wide_count ? m->wide_steps : NULL;
    m->info.wide_step_count = m->wide_count;
    *out = m->info;
    pthread_mutex_unlock(&m->lock);
}

/* ---- steps ---- */

static void step_line(const struct sac_plan *plan, size_t i, char *buf, size_t size)
{
    const struct sac_step       *step = &plan->steps[i];
    char                         shape[96] = "", time[32] = "";
    size_t                       at = 0;
    const struct sac_value_slot *out = sac_step_output(plan, step);
    for (int d = 0; out && d < out->desc.rank && at < sizeof shape; d++)
        at += (size_t)snprintf(shape + at, sizeof shape - at, "%s%lld", d ? "," : "",
                               (long long)out->desc.dims[d]);
    if (step->runs)
        snprintf(time, sizeof time, "  %.4f ms", (double)step->time_ns / (double)step->runs / 1e6);
    snprintf(buf, size, "%4zu  %-20s %s[%s]  %s%s", i, sac_step_operator(step),
             out ? sac_dtype_name(out->desc.dtype) : "", shape, step->implementation, time);
}

void sac_model_dump_steps(sac_model *m, void (*fn)(void *user, const char *line), void *user)
{
    if (!m || !fn)
        return;
    char line[320], label[256];
    pthread_mutex_lock(&m->lock);
    const struct sac_plan *plan = sac_model_plan_to_show(m);
    for (size_t i = 0; plan && i < plan->step_count; i++) {
        step_line(plan, i, line, sizeof line);
        fn(user, line);
    }
    for (size_t i = 0; plan && i < plan->tail_count; i++) {
        snprintf(line, sizeof line, "   -  %s  shapes known only while running",
                 sac_node_label(plan->tail[i], label, sizeof label));
        fn(user, line);
    }
    pthread_mutex_unlock(&m->lock);
}

/* ---- shapes ---- */

static struct sac_operand operand_of(const struct sac_tensor_desc *d)
{
    struct sac_operand o = {.dtype = d->dtype, .rank = d->rank, .present = true};
    memcpy(o.dims, d->shape, (size_t)d->rank * sizeof(int64_t));
    return o;
}

static struct sac_tensor_desc desc_of(const struct sac_operand    *o,
                                      const struct sac_model_port *port)
{
    struct sac_tensor_desc desc = port->desc;
    if (!o->present)
        return desc;
    desc.rank = o->rank;
    memcpy(desc.shape, o->dims, (size_t)o->rank * sizeof(int64_t));
    return desc;
}

sac_result sac_model_probe(sac_model *m, const struct sac_tensor_desc *in,
                           struct sac_tensor_desc *out)
{
    struct sac_infer inf = {0};
    pthread_mutex_lock(&m->lock);
    sac_result res = sac_infer_init(&inf, m->graph, m->params.memory_limit_bytes);
    inf.tolerant = true;
    for (int i = 0; i < m->graph->input_count && res == SAC_OK; i++)
        inf.values[m->graph->inputs[i]->id] = operand_of(&in[i]);
    if (res == SAC_OK)
        res = sac_infer_run(&inf);
    for (int i = 0; i < m->graph->output_count && res == SAC_OK; i++)
        out[i] = desc_of(&inf.values[m->graph->outputs[i]->id], &m->outputs[i]);
    sac_infer_finish(&inf);
    pthread_mutex_unlock(&m->lock);
    if (res == SAC_OK)
        sac_error_clear(m->ctx);
    return res;
}
