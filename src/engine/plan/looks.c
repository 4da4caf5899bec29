/* SPDX-License-Identifier: Apache-2.0 */
/* Where a network's output is of integers (classes of an ArgMax, a mask of a comparison), numbers
 * that are not finite don't show in it. So what these integers are made of is looked at before the
 * step that makes them: the first floats on the way back from such an output. */
#include "engine/kernel/finite.h"
#include "engine/kernel/layout.h"
#include "engine/plan/build.h"

static bool is_float(enum sac_dtype dtype)
{
    return dtype == SAC_F32 || dtype == SAC_F16;
}

static bool is_integer(enum sac_dtype dtype)
{
    return !is_float(dtype) && dtype != SAC_F64 && dtype != SAC_BF16;
}

/* Operators to which any number is as good as another. */
static bool takes_anything(const struct sac_node *node)
{
    return node && (node->op->id == SAC_OP_IsNaN || node->op->id == SAC_OP_IsInf ||
                    node->op->id == SAC_OP_Shape || node->op->id == SAC_OP_Size);
}

/* Parts of wider values are left out: their numbers don't lie together. */
static bool can_look(const struct sac_plan *plan, const struct sac_value_slot *s)
{
    return is_float(s->desc.dtype) && s->parent < 0 && s->storage >= 0 &&
           plan->storages[s->storage].place != SAC_PLACE_CONSTANT;
}

static bool makes_wanted(const struct sac_step *step, const bool *wanted)
{
    for (int k = step->in_count; k < step->in_count + step->out_count; k++)
        if (step->slots[k] >= 0 && wanted[step->slots[k]])
            return true;
    return false;
}

static void mark_step(const struct sac_plan *plan, struct sac_step *step, bool *wanted)
{
    if (takes_anything(step->node))
        return;
    for (int k = 0; k < step->in_count; k++) {
        const int slot = step->slots[k];
        if (slot < 0)
            continue;
        wanted[slot] |= is_integer(plan->slots[slot].desc.dtype);
        if (can_look(plan, &plan->slots[slot]))
            step->looks |= UINT64_C(1) << k;
    }
}

/* Backwards from the outputs of integers. */
sac_result sac_plan_mark_looks(struct sac_plan *plan)
{
    bool *wanted = sac_calloc(plan->slot_count + 1, sizeof *wanted);
    if (!wanted)
        return sac_plan_no_memory(plan);
    for (size_t i = 0; i < plan->slot_count; i++)
        wanted[i] = plan->slots[i].port >= 0 && is_integer(plan->slots[i].desc.dtype);
    for (size_t i = plan->step_count; i-- > 0;)
        if (makes_wanted(&plan->steps[i], wanted))
            mark_step(plan, &plan->steps[i], wanted);
    sac_free(wanted);
    return SAC_OK;
}

static sac_result look_at(const struct sac_plan *plan, int slot, struct sac_device_stream *stream)
{
    const struct sac_value_slot *s = &plan->slots[slot];
    const void                  *at = plan->address[slot];
    const int64_t                count = sac_operand_elements(&s->desc);
    const bool                   half = sac_layout_dtype(s->desc.dtype, s->layout) == SAC_F16;
    if (count == 0)
        return SAC_OK;
    if (plan->dev->ops->find_odd)
        return plan->dev->ops->find_odd(plan->dev, stream, at, count, half, plan->params.odd);
    if (plan->dev->ops->host_memory && !sac_numbers_are_finite(at, count, half))
        *plan->params.odd = 1;
    return SAC_OK;
}

sac_result sac_plan_look(const struct sac_plan *plan, const struct sac_step *step,
                         struct sac_device_stream *stream)
{
    sac_result res = SAC_OK;
    for (int k = 0; k < step->in_count && step->looks && plan->params.odd && res == SAC_OK; k++)
        if (step->looks >> k & 1)
            res = look_at(plan, step->slots[k], stream);
    return res;
}
