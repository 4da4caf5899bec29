/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan also needs on a device whose memory is not the host's: copies of the constants there,
 * and staging for the steps that run on the host. */
#include <string.h>

#include "engine/kernel/layout.h"
#include "engine/plan/build.h"

static sac_result upload_constant(struct sac_plan *plan, int slot)
{
    struct sac_storage *s = &plan->storages[plan->slots[slot].storage];
    if (s->place != SAC_PLACE_CONSTANT || s->device)
        return SAC_OK;
    const struct sac_value_slot *as = &plan->slots[s->slot];
    struct sac_operand           o = as->desc;
    o.data = (void *)s->data;
    return sac_weight_upload(&plan->weights.face, &o, as->layout, &s->device);
}

static sac_result upload_constants(struct sac_plan *plan)
{
    sac_result res = SAC_OK;
    for (size_t i = 0; i < plan->step_count && res == SAC_OK; i++) {
        const struct sac_step *step = &plan->steps[i];
        for (int k = 0; k < step->in_count && res == SAC_OK; k++)
            if (step->slots[k] >= 0 && step->kind != SAC_STEP_REFERENCE && !(step->taken >> k & 1))
                res = upload_constant(plan, step->slots[k]);
    }
    return res;
}

/* The most bytes that one step on the host reads and writes, without constants. */
static size_t staging_bytes(struct sac_plan *plan)
{
    size_t most = 0;
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct sac_step *step = &plan->steps[i];
        size_t                 sum = 0;
        for (int k = 0; k < step->in_count + step->out_count; k++)
            if (step->slots[k] >= 0)
                sum += sac_plan_staged_bytes(plan, step->slots[k]);
        plan->host_steps += step->kind == SAC_STEP_REFERENCE;
        if (step->kind == SAC_STEP_REFERENCE)
            most = SAC_MAX(most, sum);
    }
    return most;
}

size_t sac_plan_staged_bytes(const struct sac_plan *plan, int slot)
{
    const struct sac_value_slot *s = &plan->slots[slot];
    if (s->storage >= 0 && plan->storages[s->storage].place == SAC_PLACE_CONSTANT)
        return 0;
    /* vector code may read past the end */
    return (sac_layout_bytes(&s->desc, s->layout) + 63) / 64 * 64 + 64;
}

bool sac_plan_makes(const struct sac_plan *plan, int port)
{
    for (size_t i = 0; i < plan->slot_count; i++)
        if (plan->slots[i].port == port)
            return true;
    return false;
}

bool sac_plan_needs_host(const struct sac_plan *plan)
{
    bool needs = plan->host_steps > 0 || plan->tail_count > 0;
    for (int i = 0; i < plan->graph->output_count && !needs; i++)
        needs = !sac_plan_makes(plan, i);
    return needs;
}

sac_result sac_plan_finish_device(struct sac_plan *plan)
{
    sac_result   res = upload_constants(plan);
    const size_t bytes = staging_bytes(plan);
    if (res == SAC_OK && bytes > 0)
        res = sac_host_buffer_create(plan->dev, bytes, "steps on the host", &plan->staging);
    if (res == SAC_OK && plan->staging)
        sac_buffer_keep(plan->staging);
    return res;
}
