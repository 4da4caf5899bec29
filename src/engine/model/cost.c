/* SPDX-License-Identifier: Apache-2.0 */
/* What each step of a plan costs: the bytes that it moves, its arithmetic, its time. */
#include <string.h>

#include "engine/kernel/layout.h"
#include "engine/model/model.h"

/* ---- bytes ---- */

/* A constant that the kernel's state holds lies there in the step's precision. taken:
 * that, or DEFAULT for other operands. */
static int64_t slot_bytes(const struct sac_plan *plan, int slot, enum sac_precision taken)
{
    const struct sac_value_slot *s = &plan->slots[slot];
    const bool                   half = taken == SAC_PRECISION_FP16;
    const enum sac_layout        layout =
        half && s->desc.dtype == SAC_F32 ? SAC_LAYOUT_PLAIN_HALF : s->layout;
    return (int64_t)sac_layout_bytes(&s->desc, layout);
}

/* Does the step read no more of its first input than it writes, however large that is? */
static bool selects(const struct sac_step *step)
{
    if (step->kind != SAC_STEP_KERNEL && step->kind != SAC_STEP_REFERENCE)
        return false;
    switch (step->node->op->id) {
    case SAC_OP_Slice:
    case SAC_OP_Gather:
    case SAC_OP_GatherElements:
    case SAC_OP_GatherND: return true;
    default: return false;
    }
}

static int64_t bytes_written(const struct sac_plan *plan, const struct sac_step *step)
{
    int64_t bytes = 0;
    for (int k = step->in_count; k < step->in_count + step->out_count; k++)
        if (step->slots[k] >= 0)
            bytes += slot_bytes(plan, step->slots[k], SAC_PRECISION_DEFAULT);
    return bytes;
}

/* An input that is given twice is read once. */
static int64_t bytes_read(const struct sac_plan *plan, const struct sac_step *step, int64_t written)
{
    int64_t bytes = 0;
    for (int k = 0; k < step->in_count; k++) {
        bool counted = step->slots[k] < 0;
        for (int before = 0; before < k && !counted; before++)
            counted = step->slots[before] == step->slots[k];
        if (counted)
            continue;
        const int64_t all = slot_bytes(plan, step->slots[k],
                                       step->taken >> k & 1 ? sac_plan_precision(plan, step->node)
                                                            : SAC_PRECISION_DEFAULT);
        bytes += k == 0 && selects(step) ? SAC_MIN(all, written) : all;
    }
    return bytes;
}

/* ---- arithmetic ---- */

static int64_t step_flops(struct sac_plan *plan, const struct sac_step *step)
{
    if (step->kind != SAC_STEP_KERNEL && step->kind != SAC_STEP_REFERENCE)
        return 0;
    sac_step_fill_call(plan, step);
    if (step->node->op->flops)
        return step->node->op->flops(plan->call);
    return plan->call->out[0].present ? sac_operand_elements(&plan->call->out[0]) : 0;
}

/* ---- steps ---- */

static const char *node_name(const struct sac_node *n)
{
    const struct sac_value *result = n && !n->name[0] ? sac_node_result(n) : NULL;
    return result ? result->name : n ? n->name : "";
}

const char *sac_step_operator(const struct sac_step *step)
{
    if (step->kind == SAC_STEP_CONVERT)
        return "(convert)";
    return step->kind == SAC_STEP_COPY ? "(copy)" : step->node->op_type;
}

const struct sac_value_slot *sac_step_output(const struct sac_plan *plan,
                                             const struct sac_step *step)
{
    for (int k = step->in_count; k < step->in_count + step->out_count; k++)
        if (step->slots[k] >= 0)
            return &plan->slots[step->slots[k]];
    return NULL;
}

static struct sac_model_step describe(struct sac_plan *plan, const struct sac_step *step)
{
    const struct sac_value_slot *out = sac_step_output(plan, step);
    struct sac_model_step        s = {.name = node_name(step->node),
                                      .operator_name = sac_step_operator(step),
                                      .kernel = step->implementation,
                                      .output = {.rank = -1}};
    if (out) {
        s.output = (struct sac_tensor_desc){.dtype = sac_layout_dtype(out->desc.dtype, out->layout),
                                            .rank = out->desc.rank};
        memcpy(s.output.shape, out->desc.dims, sizeof s.output.shape);
    }
    s.bytes_written = bytes_written(plan, step);
    s.bytes_read = bytes_read(plan, step, s.bytes_written);
    s.flops = step_flops(plan, step);
    if (step->runs)
        s.ms = (double)step->time_ns / (double)step->runs / 1e6;
    return s;
}

void sac_model_list_steps(sac_model *m, void (*fn)(void *user, const struct sac_model_step *step),
                          void      *user)
{
    if (!m || !fn)
        return;
    pthread_mutex_lock(&m->lock);
    struct sac_plan *plan = sac_model_plan_to_show(m);
    for (size_t i = 0; plan && i < plan->step_count; i++) {
        if (plan->steps[i].kind == SAC_STEP_VIEW)
            continue;
        const struct sac_model_step step = describe(plan, &plan->steps[i]);
        fn(user, &step);
    }
    for (size_t i = 0; plan && i < plan->tail_count; i++) {
        const struct sac_model_step step = {.name = node_name(plan->tail[i]),
                                            .operator_name = plan->tail[i]->op_type,
                                            .kernel = "plain C",
                                            .output = {.rank = -1}};
        fn(user, &step);
    }
    pthread_mutex_unlock(&m->lock);
}
