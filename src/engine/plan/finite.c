/* SPDX-License-Identifier: Apache-2.0 */
/* Where a network's output is of integers (classes of an ArgMax, a mask of a comparison), numbers
 * that are not finite don't show in it. So what these integers are made of is checked before the
 * step that makes them: the first floats on the way back from such an output. Infinity is a number
 * like another to what orders numbers, as masked scores are minus infinity by design; NaN is not.
 *
 * Left out are floats that are parts of wider values, as their numbers don't lie together, and what
 * the tail makes (dynamic.h). */
#include "engine/kernel/finite.h"
#include "engine/kernel/layout.h"
#include "engine/plan/build.h"

static bool is_float(enum sac_dtype dtype)
{
    return dtype == SAC_F32 || dtype == SAC_F16;
}

/* Operators to which any number is as good as another. */
static bool takes_anything(const struct sac_node *node)
{
    return node && (node->op->id == SAC_OP_IsNaN || node->op->id == SAC_OP_IsInf ||
                    node->op->id == SAC_OP_Shape || node->op->id == SAC_OP_Size);
}

static bool takes_infinity(const struct sac_node *node)
{
    switch (node ? node->op->id : SAC_OP_Cast) {
    case SAC_OP_ArgMax:
    case SAC_OP_ArgMin:
    case SAC_OP_Equal:
    case SAC_OP_Greater:
    case SAC_OP_GreaterOrEqual:
    case SAC_OP_Less:
    case SAC_OP_LessOrEqual:
    case SAC_OP_TopK: return true;
    default: return false;
    }
}

static bool can_check(const struct sac_plan *plan, const struct sac_value_slot *s)
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
        wanted[slot] |= !is_float(plan->slots[slot].desc.dtype);
        if (can_check(plan, &plan->slots[slot]))
            step->checked |= UINT64_C(1) << k;
    }
}

/* Backwards from the outputs of integers. */
sac_result sac_plan_mark_checked(struct sac_plan *plan)
{
    bool *wanted = sac_calloc(plan->slot_count + 1, sizeof *wanted);
    if (!wanted)
        return sac_plan_no_memory(plan);
    for (size_t i = 0; i < plan->slot_count; i++)
        wanted[i] = plan->slots[i].port >= 0 && !is_float(plan->slots[i].desc.dtype);
    for (size_t i = plan->step_count; i-- > 0;)
        if (makes_wanted(&plan->steps[i], wanted))
            mark_step(plan, &plan->steps[i], wanted);
    sac_free(wanted);
    return SAC_OK;
}

static sac_result check(const struct sac_plan *plan, int slot, bool nan_alone,
                        struct sac_device_stream *stream)
{
    const struct sac_value_slot *s = &plan->slots[slot];
    const void                  *at = plan->address[slot];
    const int64_t                count = sac_operand_elements(&s->desc);
    const bool                   half = sac_layout_dtype(s->desc.dtype, s->layout) == SAC_F16;
    if (count == 0)
        return SAC_OK;
    if (plan->dev->ops->find_odd)
        return plan->dev->ops->find_odd(plan->dev, stream, at, count, half, nan_alone,
                                        (uint32_t *)(uintptr_t)plan->params.odd);
    if (plan->dev->ops->host_memory && !*plan->params.odd &&
        !sac_numbers_are_finite(at, count, half, nan_alone))
        *plan->params.odd = 1;
    return SAC_OK;
}

sac_result sac_plan_check_finite(const struct sac_plan *plan, const struct sac_step *step,
                                 struct sac_device_stream *stream)
{
    sac_result res = SAC_OK;
    for (int k = 0; k < step->in_count && step->checked && plan->params.odd && res == SAC_OK; k++)
        if (step->checked >> k & 1)
            res = check(plan, step->slots[k], takes_infinity(step->node), stream);
    return res;
}
