/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a plan. Per step: a few pointers, one call. */
#include <string.h>

#include "engine/dynamic.h"
#include "engine/layout.h"
#include "engine/plan.h"

/* What a slot without bytes points to: kernels get a pointer all the same. */
static char nothing[64];

static void *storage_address(const struct sac_storage *s, void *arena, sac_tensor *const *in,
                             sac_tensor *const *out)
{
    switch (s->place) {
    case SAC_PLACE_CONSTANT:
        return (void *)s->data; /* kernels only read constants */
    case SAC_PLACE_INPUT:
        return sac_tensor_data(in[s->port]);
    case SAC_PLACE_OUTPUT:
        return sac_tensor_data(out[s->port]);
    case SAC_PLACE_ARENA:
        break;
    }
    return arena ? (char *)arena + s->offset : NULL;
}

static void bind(struct sac_plan *plan, void *arena, sac_tensor *const *in, sac_tensor *const *out)
{
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct sac_slot *s = &plan->slots[i];
        void *at = s->storage < 0 ? NULL
                                  : storage_address(&plan->storages[s->storage], arena, in, out);
        plan->address[i] = at ? (char *)at + s->offset : nothing;
    }
}

struct sac_operand sac_plan_operand(const struct sac_plan *plan, int value)
{
    struct sac_operand o = plan->infer.values[value];
    for (int s = plan->slot_of[value]; s >= 0; s = plan->slots[s].next)
        if (plan->slots[s].layout == SAC_LAYOUT_PLAIN)
            o.data = plan->address[s];
    return o;
}

sac_result sac_reference_run(struct sac_device *dev, struct sac_op_call *c)
{
    bool mine = pthread_mutex_trylock(&dev->workers_lock) == 0;
    c->workers = mine ? dev->workers : NULL;
    sac_result res = c->node->op->ref(c);
    if (mine)
        pthread_mutex_unlock(&dev->workers_lock);
    return res;
}

static sac_result run_reference(struct sac_plan *plan, const struct sac_step *step)
{
    struct sac_op_call *c = plan->call;
    sac_call_fill(c, plan->graph->ctx, step->node, plan->infer.values);
    for (int i = 0; i < step->in_count; i++)
        if (step->slots[i] >= 0)
            c->in[i].data = plan->address[step->slots[i]];
    for (int i = 0; i < step->out_count; i++)
        if (step->slots[step->in_count + i] >= 0) {
            c->out[i] = plan->infer.values[step->node->outputs[i]->id];
            c->out[i].data = plan->address[step->slots[step->in_count + i]];
        }
    return sac_reference_run(plan->dev, c);
}

static sac_result run_kernel(struct sac_plan *plan, const struct sac_step *step)
{
    void *in[SAC_OP_INPUTS_MAX], *out[SAC_OP_OUTPUTS_MAX];
    for (int i = 0; i < step->in_count; i++)
        in[i] = step->slots[i] < 0 ? NULL : plan->address[step->slots[i]];
    for (int i = 0; i < step->out_count; i++) {
        int slot = step->slots[step->in_count + i];
        out[i] = slot < 0 ? NULL : plan->address[slot];
    }
    void *scratch = step->scratch < 0 ? NULL : plan->address[step->scratch];
    return step->kernel->run(plan->dev, step->state, in, out, scratch, NULL);
}

static sac_result run_step(struct sac_plan *plan, const struct sac_step *step)
{
    switch (step->kind) {
    case SAC_STEP_REFERENCE:
        return run_reference(plan, step);
    case SAC_STEP_KERNEL:
        return run_kernel(plan, step);
    case SAC_STEP_CONVERT:
        sac_layout_convert(&plan->slots[step->slots[0]].desc, plan->address[step->slots[1]],
                           plan->slots[step->slots[1]].layout, plan->address[step->slots[0]],
                           plan->slots[step->slots[0]].layout);
        return SAC_OK;
    case SAC_STEP_COPY:
        memcpy(plan->address[step->slots[1]], plan->address[step->slots[0]],
               sac_layout_bytes(&plan->slots[step->slots[1]].desc,
                                plan->slots[step->slots[1]].layout));
        return SAC_OK;
    case SAC_STEP_VIEW:
        break;
    }
    return SAC_OK;
}

static sac_result run_steps(struct sac_plan *plan)
{
    sac_result res = SAC_OK;
    sac_pool_hold(plan->dev->workers);
    for (size_t i = 0; i < plan->step_count && res == SAC_OK; i++) {
        struct sac_step *step = &plan->steps[i];
        int64_t          begun = plan->profile ? sac_time_ns() : 0;
        res = run_step(plan, step);
        if (plan->profile) {
            step->time_ns += sac_time_ns() - begun;
            step->runs++;
        }
    }
    sac_pool_release(plan->dev->workers);
    return res;
}

/* Tensors for the outputs that the steps make; the tail brings its own. */
static sac_result make_outputs(struct sac_plan *plan, sac_tensor **out)
{
    sac_result res = SAC_OK;
    for (size_t i = 0; i < plan->slot_count && res == SAC_OK; i++) {
        const struct sac_slot *s = &plan->slots[i];
        struct sac_tensor_desc desc = {.dtype = s->desc.dtype, .rank = s->desc.rank};
        if (s->port < 0)
            continue;
        memcpy(desc.shape, s->desc.dims, sizeof desc.shape);
        res = sac_tensor_create(plan->dev, &desc, plan->graph->outputs[s->port]->name,
                                &out[s->port]);
    }
    return res;
}

sac_result sac_plan_run(struct sac_plan *plan, void *arena, sac_tensor *const *in, sac_tensor **out)
{
    sac_result res = make_outputs(plan, out);
    if (res == SAC_OK) {
        bind(plan, arena, in, out);
        res = run_steps(plan);
    }
    bool tail = plan->tail_count > 0;
    for (int i = 0; i < plan->graph->output_count; i++)
        tail |= !out[i];
    if (res == SAC_OK && tail)
        res = sac_dynamic_run(plan, out);
    for (int i = 0; i < plan->graph->output_count && res != SAC_OK; i++)
        sac_tensor_unref(&out[i]);
    return res;
}
