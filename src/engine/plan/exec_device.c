/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a plan's steps on a device whose memory is not the host's: queued one by one the first time,
 * then launched as one graph. A node without a kernel for the device runs here on the host, between
 * copies that the ledger counts and that zero-copy strict forbids. */
#include <stdio.h>
#include <string.h>

#include "base/start.h"
#include "engine/kernel/layout.h"
#include "engine/plan/plan.h"

/* ---- a step on the host ---- */

enum { LABEL_BYTES = 400 };

/* "layer 14 (Foo) on the host, 'x'": the beginning of strict mode's sentence. */
static const char *crossing(const struct sac_step *step, int slot, char *buf)
{
    char                    label[256];
    const struct sac_value *v = slot < step->in_count ? step->node->inputs[slot]
                                                      : step->node->outputs[slot - step->in_count];
    snprintf(buf, LABEL_BYTES, "%s on the host, '%.100s'",
             sac_node_label(step->node, label, sizeof label), v ? v->name : "");
    return buf;
}

/* Sets the host address of each operand: constants stay where they are, the others are in
 * staging. */
static void stage(struct sac_plan *plan, const struct sac_step *step, void **host)
{
    char *at = plan->staging ? sac_buffer_data(plan->staging) : NULL;
    for (int k = 0; k < step->in_count + step->out_count; k++) {
        const int    slot = step->slots[k];
        const size_t bytes = slot < 0 ? 0 : sac_plan_staged_bytes(plan, slot);
        host[k] = bytes      ? at
                  : slot < 0 ? NULL
                             : (void *)plan->storages[plan->slots[slot].storage].data;
        at += bytes;
    }
}

static sac_result copy_operand(struct sac_plan *plan, const struct sac_step *step, int k,
                               void *host, enum sac_copy_kind kind,
                               struct sac_device_stream *stream)
{
    char                         what[LABEL_BYTES];
    const struct sac_value_slot *s = &plan->slots[step->slots[k]];
    void                        *device = plan->address[step->slots[k]];
    const bool                   up = kind == SAC_COPY_HOST_TO_DEVICE;
    const size_t                 bytes = sac_layout_bytes(&s->desc, s->layout);
    if (bytes == 0)
        return SAC_OK;
    return sac_device_copy(plan->dev, stream, up ? device : host, up ? host : device, bytes, kind,
                           SAC_COPY_TENSOR_LAYOUT, crossing(step, k, what));
}

static sac_result run_on_host(struct sac_plan *plan, const struct sac_step *step,
                              struct sac_device_stream *stream)
{
    void               *host[SAC_OP_INPUTS_MAX + SAC_OP_OUTPUTS_MAX];
    struct sac_op_call *c = plan->call;
    sac_result          res = SAC_OK;
    stage(plan, step, host);
    for (int k = 0; k < step->in_count && res == SAC_OK; k++)
        if (step->slots[k] >= 0 && sac_plan_staged_bytes(plan, step->slots[k]))
            res = copy_operand(plan, step, k, host[k], SAC_COPY_DEVICE_TO_HOST, stream);
    if (res == SAC_OK) /* also because an earlier step may still read from the staging */
        res = sac_plan_settle(plan, stream);
    if (res != SAC_OK)
        return res;
    sac_step_fill_call(plan, step);
    for (int k = 0; k < step->in_count; k++)
        c->in[k].data = host[k];
    for (int k = 0; k < step->out_count; k++)
        c->out[k].data = host[step->in_count + k];
    res = sac_reference_run(plan->host, c);
    for (int k = step->in_count; k < step->in_count + step->out_count && res == SAC_OK; k++)
        if (step->slots[k] >= 0)
            res = copy_operand(plan, step, k, host[k], SAC_COPY_HOST_TO_DEVICE, stream);
    return res;
}

/* ---- steps ---- */

sac_result sac_plan_step_on_device(struct sac_plan *plan, const struct sac_step *step,
                                   struct sac_device_stream *stream)
{
    const struct sac_value_slot *from =
        step->kind == SAC_STEP_CONVERT || step->kind == SAC_STEP_COPY ? &plan->slots[step->slots[0]]
                                                                      : NULL;
    switch (step->kind) {
    case SAC_STEP_REFERENCE: return run_on_host(plan, step, stream);
    case SAC_STEP_KERNEL: return sac_step_run_kernel(plan, step, stream);
    case SAC_STEP_COPY: /* the bytes of a view: both have the same layout */
    case SAC_STEP_CONVERT:
        return plan->dev->ops->relayout(
            plan->dev, stream, &from->desc, plan->address[step->slots[1]],
            step->kind == SAC_STEP_COPY ? (int)from->layout
                                        : (int)plan->slots[step->slots[1]].layout,
            plan->address[step->slots[0]], (int)from->layout);
    case SAC_STEP_VIEW: break;
    }
    return SAC_OK;
}

/* What is checked before a step counts as its time. */
static sac_result queue_step(struct sac_plan *plan, const struct sac_step *step,
                             struct sac_device_stream *stream)
{
    sac_result res = sac_plan_check_finite(plan, step, stream);
    return res == SAC_OK ? sac_plan_step_on_device(plan, step, stream) : res;
}

/* marks: NULL, or an event before the first step and one after each step; NULL entries are
 * skipped. */
static sac_result queue_steps(struct sac_plan *plan, struct sac_device_stream *stream,
                              struct sac_event *const *marks)
{
    sac_result res = marks ? plan->dev->ops->event_record(marks[0], stream) : SAC_OK;
    for (size_t i = 0; i < plan->step_count && res == SAC_OK; i++) {
        res = queue_step(plan, &plan->steps[i], stream);
        if (res == SAC_OK && marks && marks[i + 1])
            res = plan->dev->ops->event_record(marks[i + 1], stream);
    }
    return res;
}

/* ---- graphs ---- */

static void drop_graph(struct sac_plan *plan, struct sac_plan_graph *g)
{
    if (g->graph)
        plan->dev->ops->graph_destroy(plan->dev, &g->graph);
    sac_free(g->address);
    *g = (struct sac_plan_graph){0};
}

void sac_plan_drop_graphs(struct sac_plan *plan)
{
    for (int i = 0; i < SAC_PLAN_GRAPHS_MAX; i++)
        drop_graph(plan, &plan->graphs[i]);
}

static int address_count(const struct sac_plan *plan)
{
    return plan->graph->input_count + plan->graph->output_count + 1;
}

static void *address_at(const struct sac_plan *plan, int i, void *activations,
                        sac_tensor *const *in, sac_tensor *const *out)
{
    const int inputs = plan->graph->input_count, outputs = plan->graph->output_count;
    if (i < inputs)
        return sac_tensor_data(in[i]);
    if (i < inputs + outputs) /* NULL: the tail computes it */
        return out[i - inputs] ? sac_tensor_data(out[i - inputs]) : NULL;
    return activations;
}

static bool holds(const struct sac_plan *plan, const struct sac_plan_graph *g, void *activations,
                  sac_tensor *const *in, sac_tensor *const *out)
{
    bool same = g->address != NULL;
    for (int i = 0; same && i < address_count(plan); i++)
        same = g->address[i] == address_at(plan, i, activations, in, out);
    return same;
}

/* The entry of these addresses. A new entry replaces the least recently used one. NULL: no memory,
 * in which case the steps run one by one. */
static struct sac_plan_graph *entry_of(struct sac_plan *plan, void *activations,
                                       sac_tensor *const *in, sac_tensor *const *out)
{
    struct sac_plan_graph *oldest = &plan->graphs[0];
    for (int i = 0; i < SAC_PLAN_GRAPHS_MAX; i++) {
        if (holds(plan, &plan->graphs[i], activations, in, out))
            return &plan->graphs[i];
        if (plan->graphs[i].used_at < oldest->used_at)
            oldest = &plan->graphs[i];
    }
    drop_graph(plan, oldest);
    oldest->address = sac_calloc((size_t)address_count(plan), sizeof *oldest->address);
    for (int i = 0; oldest->address && i < address_count(plan); i++)
        oldest->address[i] = address_at(plan, i, activations, in, out);
    return oldest->address ? oldest : NULL;
}

/* Each step as a part of the graph that waits for those of the order alone. */
static sac_result queue_branches(struct sac_plan *plan, struct sac_device_stream *stream)
{
    int       *after = sac_calloc(plan->step_count, sizeof *after);
    sac_result res =
        after ? SAC_OK : SAC_FAIL(plan->graph->ctx, SAC_ERR_MEMORY, "no memory for its order");
    for (size_t i = 0; i < plan->step_count && res == SAC_OK; i++) {
        const int count = sac_order_waits(&plan->order, i, after);
        res = plan->dev->ops->capture_part(plan->dev, stream, after, count);
        if (res == SAC_OK)
            res = queue_step(plan, &plan->steps[i], stream);
    }
    sac_free(after);
    return res;
}

/* All steps as a graph, by the plan's order where it has one; NULL and a sentence when that fails.
 */
static struct sac_device_graph *try_capture(struct sac_plan *plan, struct sac_event *const *marks)
{
    const struct sac_device_ops *ops = plan->dev->ops;
    struct sac_device_graph     *graph = NULL;
    sac_result                   res = ops->capture_begin(plan->dev, plan->capture);
    if (res != SAC_OK)
        return NULL;
    res = plan->order.count && !marks ? queue_branches(plan, plan->capture)
                                      : queue_steps(plan, plan->capture, marks);
    if (ops->capture_end(plan->dev, plan->capture, &graph) != SAC_OK)
        graph = NULL;
    if (res != SAC_OK && graph)
        ops->graph_destroy(plan->dev, &graph);
    return graph;
}

static void say_not_captured(struct sac_plan *plan, const char *what)
{
    char why[256] = "";
    sac_error_take(plan->graph->ctx, why, sizeof why);
    sac_log(plan->graph->ctx, SAC_LOG_DEBUG, "%s: its steps run one after the other, %s: %s",
            plan->dev->name, what, why);
}

/* With marks, which time steps, one after the other. NULL when the capture fails: the plan then
 * always runs step by step, with the same results but more slowly. Where branches cannot be
 * captured, a chain of all steps may be. */
static struct sac_device_graph *capture(struct sac_plan *plan, struct sac_event *const *marks)
{
    struct sac_device_graph *graph = try_capture(plan, marks);
    if (!graph && plan->order.count && !marks) {
        say_not_captured(plan, "as branches cannot be captured");
        sac_order_free(&plan->order);
        graph = try_capture(plan, NULL);
    }
    if (graph)
        sac_log(plan->graph->ctx, SAC_LOG_DEBUG, "%s: %zu steps captured as one launch%s",
                plan->dev->name, plan->step_count,
                plan->order.count && !marks ? ", branches at once" : "");
    else
        say_not_captured(plan, "as they cannot be captured");
    if (!graph)
        plan->capture = NULL;
    return graph;
}

static bool can_capture(const struct sac_plan *plan)
{
    return plan->capture && plan->host_steps == 0 && plan->step_count > 1 &&
           !(plan->params.without & SAC_WITHOUT_CAPTURE);
}

/* ---- the time of each step ---- */

static void drop_marks(struct sac_plan *plan, struct sac_event **marks)
{
    for (size_t i = 0; marks && i <= plan->step_count; i++)
        if (marks[i])
            plan->dev->ops->event_destroy(&marks[i]);
    sac_free(marks);
}

/* NULL: there is no memory for them. Views queue nothing and get none. */
static struct sac_event **make_marks(struct sac_plan *plan)
{
    struct sac_event **marks = sac_calloc(plan->step_count + 1, sizeof *marks);
    for (size_t i = 0; marks && i <= plan->step_count; i++)
        if ((i == 0 || plan->steps[i - 1].kind != SAC_STEP_VIEW) &&
            plan->dev->ops->event_create(plan->dev, true, &marks[i]) != SAC_OK) {
            sac_error_clear(plan->graph->ctx);
            drop_marks(plan, marks);
            return NULL;
        }
    return marks;
}

static sac_result add_times(struct sac_plan *plan, struct sac_event *const *marks)
{
    struct sac_event *before = marks[0];
    sac_result        res = SAC_OK;
    for (size_t i = 0; i < plan->step_count && res == SAC_OK; i++) {
        int64_t ns = 0;
        if (marks[i + 1]) {
            res = plan->dev->ops->event_elapsed(before, marks[i + 1], &ns);
            before = marks[i + 1];
        }
        plan->steps[i].time_ns += ns;
        plan->steps[i].runs++;
    }
    return res;
}

/* In one launch, so that no step waits for the host: the time between two events is the device's
 * own. */
static sac_result run_marked(struct sac_plan *plan, struct sac_device_stream *stream,
                             struct sac_event *const *marks, struct sac_device_graph *graph)
{
    sac_result res = plan->dev->ops->graph_launch(plan->dev, stream, graph);
    if (res == SAC_OK)
        res = sac_plan_settle(plan, stream);
    return res == SAC_OK ? add_times(plan, marks) : res;
}

/* Times each step from its launch until it is done, so a step of microseconds appears longer than
 * it is. */
static sac_result run_waiting(struct sac_plan *plan, struct sac_device_stream *stream)
{
    sac_result res = sac_plan_settle(plan, stream);
    for (size_t i = 0; i < plan->step_count && res == SAC_OK; i++) {
        struct sac_step *step = &plan->steps[i];
        const int64_t    begun = sac_time_ns();
        res = queue_step(plan, step, stream);
        if (res == SAC_OK)
            res = sac_plan_settle(plan, stream);
        step->time_ns += sac_time_ns() - begun;
        step->runs++;
    }
    return res;
}

/* A kernel that has never run may still have to be loaded, which is not allowed during capture. */
static sac_result run_profiled(struct sac_plan *plan, struct sac_device_stream *stream)
{
    struct sac_event       **marks = can_capture(plan) && plan->runs > 0 ? make_marks(plan) : NULL;
    struct sac_device_graph *graph = marks ? capture(plan, marks) : NULL;
    sac_result res = graph ? run_marked(plan, stream, marks, graph) : run_waiting(plan, stream);
    if (graph)
        plan->dev->ops->graph_destroy(plan->dev, &graph);
    drop_marks(plan, marks);
    plan->runs++;
    return res;
}

sac_result sac_plan_queue(struct sac_plan *plan, struct sac_device_stream *stream,
                          void *activations, sac_tensor *const *in, sac_tensor *const *out)
{
    struct sac_plan_graph *entry = NULL;
    if (plan->profile)
        return run_profiled(plan, stream);
    plan->runs++;
    if (can_capture(plan))
        entry = entry_of(plan, activations, in, out);
    if (entry && !entry->graph && entry->runs > 0) {
        struct sac_start_span span;
        sac_start_begin(&span, SAC_START_GRAPHS);
        entry->graph = capture(plan, NULL);
        sac_start_end(&span);
    }
    if (entry) {
        entry->used_at = plan->runs;
        entry->runs++;
    }
    if (entry && entry->graph)
        return plan->dev->ops->graph_launch(plan->dev, stream, entry->graph);
    return queue_steps(plan, stream, NULL);
}
