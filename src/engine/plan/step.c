/* SPDX-License-Identifier: Apache-2.0 */
/* One step or node of a plan: what the executors on the host, on a device and of the tail share. */
#include "engine/plan/plan.h"

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

void sac_step_fill_call(struct sac_plan *plan, const struct sac_step *step)
{
    struct sac_op_call *c = plan->call;
    sac_call_fill(c, plan->graph->ctx, step->node, plan->infer.values);
    for (int i = 0; i < step->out_count; i++)
        if (step->slots[step->in_count + i] >= 0)
            c->out[i] = plan->infer.values[step->node->outputs[i]->id];
}

sac_result sac_step_run_kernel(struct sac_plan *plan, const struct sac_step *step,
                               struct sac_device_stream *stream)
{
    void *in[SAC_OP_INPUTS_MAX], *out[SAC_OP_OUTPUTS_MAX];
    for (int i = 0; i < step->in_count; i++)
        in[i] = step->slots[i] < 0 || step->taken >> i & 1 ? NULL : plan->address[step->slots[i]];
    for (int i = 0; i < step->out_count; i++) {
        int slot = step->slots[step->in_count + i];
        out[i] = slot < 0 ? NULL : plan->address[slot];
    }
    void *scratch = step->scratch < 0 ? NULL : plan->address[step->scratch];
    return step->kernel->run(plan->dev, step->state, in, out, scratch, stream);
}

int sac_step_value(const struct sac_step *step)
{
    const struct sac_value *v = step->node ? sac_node_result(step->node) : NULL;
    return v ? v->id : -1;
}

sac_result sac_plan_settle(const struct sac_plan *plan, struct sac_device_stream *stream)
{
    return plan->dev->ops->stream_wait(stream);
}
