/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that a plan is made of: slots, steps, storages. */
#include <stdio.h>

#include "engine/kernel/layout.h"
#include "engine/plan/build.h"

sac_result sac_plan_no_memory(const struct sac_plan *plan)
{
    return SAC_FAIL(plan->graph->ctx, SAC_ERR_MEMORY, "no memory for the plan");
}

sac_result sac_plan_add_slot(struct sac_plan *plan, const struct sac_operand *desc, int value,
                             enum sac_layout layout, int *out)
{
    struct sac_operand shape = *desc; /* copied: desc may point into the array that grows */
    if (!sac_grow((void **)&plan->slots, &plan->slot_cap, plan->slot_count + 1,
                  sizeof *plan->slots))
        return sac_plan_no_memory(plan);
    int                    index = (int)plan->slot_count++;
    struct sac_value_slot *s = &plan->slots[index];
    *s = (struct sac_value_slot){.desc = shape,
                                 .layout = layout,
                                 .value = value,
                                 .next = -1,
                                 .storage = -1,
                                 .last = -1,
                                 .port = -1,
                                 .parent = -1};
    if (value >= 0) {
        s->next = plan->slot_of[value];
        if (s->next < 0) {
            plan->slot_of[value] = index;
        } else { /* the first slot remains the head of the value's list */
            int first = plan->slot_of[value];
            s->next = plan->slots[first].next;
            plan->slots[first].next = index;
        }
    }
    *out = index;
    return SAC_OK;
}

sac_result sac_plan_add_step(struct sac_plan *plan, enum sac_step_kind kind,
                             const struct sac_node *node, int in_count, int out_count,
                             struct sac_step **out)
{
    int *slots = sac_arena_alloc(&plan->arena, (size_t)(in_count + out_count + 1) * sizeof *slots);
    if (!slots || !sac_grow((void **)&plan->steps, &plan->step_cap, plan->step_count + 1,
                            sizeof *plan->steps))
        return sac_plan_no_memory(plan);
    *out = &plan->steps[plan->step_count++];
    **out = (struct sac_step){.kind = kind,
                              .node = node,
                              .slots = slots,
                              .in_count = in_count,
                              .out_count = out_count,
                              .scratch = -1,
                              .in_place = -1};
    return SAC_OK;
}

sac_result sac_plan_add_storage(struct sac_plan *plan, struct sac_storage s, int *out)
{
    if (!sac_grow((void **)&plan->storages, &plan->storage_cap, plan->storage_count + 1,
                  sizeof *plan->storages))
        return sac_plan_no_memory(plan);
    *out = (int)plan->storage_count;
    plan->storages[plan->storage_count++] = s;
    return SAC_OK;
}

/* A slot with its own storage: a graph input or a constant. */
sac_result sac_plan_add_placed(struct sac_plan *plan, int value, enum sac_layout layout,
                               struct sac_storage storage)
{
    int        slot = -1, index = -1;
    sac_result res = sac_plan_add_slot(plan, &plan->infer.values[value], value, layout, &slot);
    storage.slot = slot;
    if (res == SAC_OK)
        res = sac_plan_add_storage(plan, storage, &index);
    if (res == SAC_OK)
        plan->slots[slot].storage = index;
    return res;
}

/* On a device whose memory is not the host's, a constant is uploaded in each layout that kernels
 * ask for. */
static sac_result constant_in_layout(struct sac_plan *plan, int value, enum sac_layout layout,
                                     int *out)
{
    const struct sac_storage *first = &plan->storages[plan->slots[plan->slot_of[value]].storage];
    sac_result                res =
        sac_plan_add_placed(plan, value, layout,
                            (struct sac_storage){.place = SAC_PLACE_CONSTANT, .data = first->data});
    *out = (int)plan->slot_count - 1;
    return res;
}

static bool is_placed_constant(const struct sac_plan *plan, int slot)
{
    const int storage = plan->slots[slot].storage;
    return storage >= 0 && plan->storages[storage].place == SAC_PLACE_CONSTANT;
}

bool sac_plan_write_as(struct sac_plan *plan, int slot, enum sac_layout layout)
{
    struct sac_step *maker = NULL;
    for (size_t i = 0; i < plan->step_count; i++) {
        struct sac_step *step = &plan->steps[i];
        for (int k = 0; k < step->in_count; k++)
            if (step->slots[k] == slot)
                return false;
        if (step->kind == SAC_STEP_KERNEL && step->writes_any &&
            step->slots[step->in_count] == slot)
            maker = step;
    }
    if (!maker || plan->slots[slot].port >= 0)
        return false;
    maker->in_place = -1;
    plan->slots[slot].layout = layout;
    return true;
}

/* A node under way that reads a value twice may have been given its slot already. */
static bool reads_once(const struct sac_node *n, int value)
{
    int count = 0;
    for (int i = 0; n && i < n->input_count; i++)
        count += n->inputs[i] && n->inputs[i]->id == value;
    return count == 1;
}

/* The slot of a value in a layout; a conversion is added when there is none yet. */
sac_result sac_plan_slot_in_layout(struct sac_plan *plan, int value, enum sac_layout layout,
                                   const struct sac_node *reader, int *out)
{
    int first = plan->slot_of[value], made = -1;
    for (int s = first; s >= 0; s = plan->slots[s].next)
        if (plan->slots[s].layout == layout) {
            *out = s;
            return SAC_OK;
        }
    if (!plan->dev->ops->host_memory && is_placed_constant(plan, first))
        return constant_in_layout(plan, value, layout, out);
    struct sac_operand desc = plan->slots[first].desc;
    struct sac_step   *step;
    bool               same = sac_layout_same(&desc, plan->slots[first].layout, layout);
    if (!same && layout == sac_layout_of(true, sac_layout_is_half(plan->slots[first].layout)) &&
        !(plan->params.without & SAC_WITHOUT_CHANNELS_LAST) && reads_once(reader, value) &&
        sac_plan_write_as(plan, first, layout)) {
        *out = first;
        return SAC_OK;
    }
    sac_result res = sac_plan_add_slot(plan, &desc, value, layout, &made);
    if (res == SAC_OK)
        res = sac_plan_add_step(plan, same ? SAC_STEP_VIEW : SAC_STEP_CONVERT, reader, 1, 1, &step);
    if (res != SAC_OK)
        return res;
    step->slots[0] = first;
    step->slots[1] = made;
    snprintf(step->implementation, sizeof step->implementation, "%s to %s",
             sac_layout_name(plan->slots[first].layout), sac_layout_name(layout));
    *out = made;
    return SAC_OK;
}

sac_result sac_plan_ensure_constant(struct sac_plan *plan, int value)
{
    const struct sac_operand *o = &plan->infer.values[value];
    if (plan->slot_of[value] >= 0 || !o->data)
        return SAC_OK;
    return sac_plan_add_placed(plan, value, SAC_LAYOUT_PLAIN,
                               (struct sac_storage){.place = SAC_PLACE_CONSTANT, .data = o->data});
}
