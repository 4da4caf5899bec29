/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/start.h"
#include "engine/kernel/layout.h"
#include "engine/plan/build.h"

/* ---- outputs of the steps ---- */

struct tail_reads {
    struct sac_plan       *plan;
    const struct sac_node *node;
    sac_result             res;
};

static void plan_tail_read(void *user, struct sac_value *v)
{
    struct tail_reads *t = user;
    int                slot;
    if (t->res == SAC_OK && t->plan->slot_of[v->id] >= 0)
        t->res = sac_plan_slot_in_layout(t->plan, v->id, SAC_LAYOUT_PLAIN, t->node, &slot);
}

/* The tail runs reference kernels, which take only the plain layout. */
static sac_result plan_tail_reads(struct sac_plan *plan)
{
    struct tail_reads t = {.plan = plan, .res = SAC_OK};
    for (size_t i = 0; i < plan->tail_count && t.res == SAC_OK; i++) {
        t.node = plan->tail[i];
        sac_node_each_read(t.node, plan_tail_read, &t);
    }
    return t.res;
}

/* Has output number `port` written to the caller's tensor: by the node that computes it where
 * possible, else by a copy at the end (of an input, a constant, a second output of the same value,
 * or from another layout). */
static sac_result plan_output(struct sac_plan *plan, int port)
{
    int        value = plan->graph->outputs[port]->id, slot = -1;
    sac_result res = sac_plan_ensure_constant(plan, value);
    if (res != SAC_OK || plan->slot_of[value] < 0) /* the tail computes it */
        return res;
    int        first = plan->slot_of[value];
    const bool half = plan->params.half_outputs && sac_layout_is_half(plan->slots[first].layout);
    const enum sac_layout layout = sac_layout_of(false, half);
    /* with a single channel both layouts are the same */
    bool plain = sac_layout_same(&plan->slots[first].desc, plan->slots[first].layout, layout);
    plain = plain || sac_plan_write_as(plan, first, layout);
    if (plain && plan->slots[first].storage < 0 && plan->slots[first].port < 0) {
        plan->slots[first].port = port;
        return SAC_OK;
    }
    struct sac_step *step;
    res = sac_plan_add_slot(plan, &plan->slots[first].desc, -1, layout, &slot);
    if (res == SAC_OK)
        res = sac_plan_add_step(plan, SAC_STEP_CONVERT, NULL, 1, 1, &step);
    if (res != SAC_OK)
        return res;
    plan->slots[slot].port = port;
    step->slots[0] = first;
    step->slots[1] = slot;
    snprintf(step->implementation, sizeof step->implementation, "copy to the output");
    return SAC_OK;
}

/* ---- the whole ---- */

static sac_result build(struct sac_plan *plan, const struct sac_operand *shapes)
{
    const struct sac_graph *g = plan->graph;
    for (int i = 0; i < g->input_count; i++)
        plan->infer.values[g->inputs[i]->id] = shapes[i];
    sac_result res = sac_infer_run(&plan->infer);
    if (res == SAC_OK)
        res = sac_plan_drop_unneeded(plan);
    for (int i = 0; i < g->input_count && res == SAC_OK; i++)
        res = sac_plan_add_placed(plan, g->inputs[i]->id,
                                  i == 0 ? plan->params.first_input : SAC_LAYOUT_PLAIN,
                                  (struct sac_storage){.place = SAC_PLACE_INPUT, .port = i});
    if (res == SAC_OK)
        res = sac_plan_make_steps(plan);
    if (res == SAC_OK)
        res = plan_tail_reads(plan);
    for (int i = 0; i < g->output_count && res == SAC_OK; i++)
        res = plan_output(plan, i);
    if (plan->params.only_layouts)
        return res;
    if (res == SAC_OK && !(plan->params.without & SAC_WITHOUT_CONCATS))
        sac_plan_place_concats(plan);
    if (res == SAC_OK)
        res = sac_plan_prepare(plan);
    if (res == SAC_OK)
        res = sac_plan_place_memory(plan);
    if (res == SAC_OK)
        res = sac_plan_mark_checked(plan);
    return res == SAC_OK && !plan->dev->ops->host_memory ? sac_plan_finish_device(plan) : res;
}

sac_result sac_plan_create(struct sac_device *dev, struct sac_graph *graph,
                           const struct sac_operand *shapes, const struct sac_plan_params *params,
                           struct sac_plan **out)
{
    struct sac_plan      *plan = sac_new(struct sac_plan);
    struct sac_start_span span;
    if (!plan)
        return SAC_FAIL(graph->ctx, SAC_ERR_MEMORY, "no memory for the plan");
    sac_start_begin(&span, SAC_START_PLAN);
    plan->dev = dev;
    plan->graph = graph;
    plan->params = *params;
    if (params->weights)
        sac_weight_store_init(&plan->weights, dev, params->weights->owner, params->weights,
                              &plan->infer.arena);
    sac_result res = sac_infer_init(&plan->infer, graph, params->memory_limit);
    plan->infer.tolerant = params->tolerant;
    plan->slot_of = sac_realloc_array(NULL, (size_t)graph->id_count, sizeof *plan->slot_of);
    plan->call = sac_new(struct sac_op_call);
    if (res == SAC_OK && (!plan->slot_of || !plan->call))
        res = sac_plan_no_memory(plan);
    if (res == SAC_OK) {
        memset(plan->slot_of, 0xff, (size_t)graph->id_count * sizeof *plan->slot_of);
        res = build(plan, shapes);
    }
    if (res == SAC_OK)
        *out = plan;
    else
        sac_plan_destroy(&plan);
    sac_start_end(&span);
    return res;
}

void sac_plan_destroy(struct sac_plan **plan)
{
    struct sac_plan *p = plan ? *plan : NULL;
    if (!p)
        return;
    sac_plan_drop_graphs(p);
    for (size_t i = 0; i < p->step_count; i++)
        if (p->steps[i].kernel && p->steps[i].state)
            p->steps[i].kernel->release(p->steps[i].state);
    sac_weight_store_finish(&p->weights);
    sac_buffer_unref(&p->staging);
    sac_order_free(&p->order);
    sac_infer_finish(&p->infer);
    sac_arena_finish(&p->arena);
    sac_free(p->slots);
    sac_free(p->slot_of);
    sac_free(p->storages);
    sac_free(p->steps);
    sac_free(p->address);
    sac_free(p->made);
    sac_free(p->tail);
    sac_free(p->call);
    sac_free(p);
    *plan = NULL;
}

bool sac_plan_fits(const struct sac_plan *plan, const struct sac_operand *shapes)
{
    for (int i = 0; i < plan->graph->input_count; i++) {
        const struct sac_operand *mine = &plan->infer.values[plan->graph->inputs[i]->id];
        if (mine->dtype != shapes[i].dtype || mine->rank != shapes[i].rank ||
            memcmp(mine->dims, shapes[i].dims, (size_t)mine->rank * sizeof(int64_t)) != 0)
            return false;
    }
    return true;
}
