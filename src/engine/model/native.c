/* SPDX-License-Identifier: Apache-2.0 */
/* A model whose input and outputs are tensors in the layout that its kernels use. */
#include <string.h>

#include "engine/model/model.h"

/* The layout of the plan's first input that all steps reading it want. */
static enum sac_layout wanted_input(const struct sac_plan *plan)
{
    const int       input = plan->slot_of[plan->graph->inputs[0]->id];
    enum sac_layout wanted = SAC_LAYOUT_COUNT;
    for (size_t i = 0; i < plan->step_count; i++)
        for (int k = 0; k < plan->steps[i].in_count; k++) {
            const struct sac_step *step = &plan->steps[i];
            if (step->slots[k] != input)
                continue;
            if (step->kind != SAC_STEP_CONVERT || wanted != SAC_LAYOUT_COUNT)
                return SAC_LAYOUT_PLAIN; /* it is read as PLAIN, or in two layouts */
            wanted = plan->slots[step->slots[step->in_count]].layout;
        }
    return wanted == SAC_LAYOUT_COUNT || plan->tail_count > 0 ? SAC_LAYOUT_PLAIN : wanted;
}

static sac_result find_native(sac_model *m, const struct sac_tensor_desc *first)
{
    struct sac_operand shape = {.dtype = first->dtype, .rank = first->rank, .present = true};
    struct sac_plan   *plan = NULL;
    memcpy(shape.dims, first->shape, sizeof shape.dims);
    sac_model_find_ranges(m, &shape);
    sac_result res = sac_model_create_plan(m, &shape, NULL, false, &plan);
    if (res != SAC_OK)
        return res;
    m->first_input = wanted_input(plan);
    m->native = true;
    sac_model_settle(m);
    sac_plan_destroy(&plan);
    sac_model_drop_plans(m);
    return SAC_OK;
}

sac_result sac_model_take_native(sac_model *m, const struct sac_tensor_desc *first,
                                 enum sac_layout *layout)
{
    sac_result res = SAC_OK;
    *layout = SAC_LAYOUT_PLAIN;
    if (m->dev->ops->host_memory || m->graph->input_count != 1 || m->partial)
        return SAC_OK;
    if (first->rank > 0 && first->shape[0] > 1)
        sac_model_batches(m); /* the check needs tensors as the ports say */
    pthread_mutex_lock(&m->lock);
    if (!m->native)
        res = find_native(m, first);
    *layout = m->first_input;
    pthread_mutex_unlock(&m->lock);
    return res;
}
