/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a plan. Per step: a few pointers, one call. */
#include <string.h>

#include "engine/plan/dynamic.h"
#include "engine/kernel/layout.h"
#include "engine/plan/plan.h"

/* Address of empty slots, because kernels never get NULL. */
static char nothing[64];

static void *storage_address(const struct sac_storage *s, bool on_host, void *activations,
                             sac_tensor *const *in, sac_tensor *const *out)
{
    switch (s->place) {
    case SAC_PLACE_CONSTANT:
        return on_host ? (void *)s->data : s->device; /* kernels never write constants */
    case SAC_PLACE_INPUT: return sac_tensor_data(in[s->port]);
    case SAC_PLACE_OUTPUT: return sac_tensor_data(out[s->port]);
    case SAC_PLACE_ACTIVATIONS: break;
    }
    return activations ? (char *)activations + s->offset : NULL;
}

static void bind(struct sac_plan *plan, void *activations, sac_tensor *const *in,
                 sac_tensor *const *out)
{
    const bool on_host = plan->dev->ops->host_memory;
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct sac_value_slot *s = &plan->slots[i];
        void                        *at = NULL;
        if (s->storage >= 0)
            at = storage_address(&plan->storages[s->storage], on_host, activations, in, out);
        plan->address[i] = at ? (char *)at + s->offset : on_host ? nothing : NULL;
    }
}

static sac_result run_reference(struct sac_plan *plan, const struct sac_step *step)
{
    struct sac_op_call *c = plan->call;
    sac_step_fill_call(plan, step);
    for (int i = 0; i < step->in_count; i++)
        if (step->slots[i] >= 0)
            c->in[i].data = plan->address[step->slots[i]];
    for (int i = 0; i < step->out_count; i++)
        if (step->slots[step->in_count + i] >= 0)
            c->out[i].data = plan->address[step->slots[step->in_count + i]];
    return sac_reference_run(plan->dev, c);
}

sac_result sac_plan_run_step(struct sac_plan *plan, const struct sac_step *step)
{
    switch (step->kind) {
    case SAC_STEP_REFERENCE: return run_reference(plan, step);
    case SAC_STEP_KERNEL: return sac_step_run_kernel(plan, step, NULL);
    case SAC_STEP_CONVERT:
        sac_layout_convert_on(plan->dev->workers, &plan->slots[step->slots[0]].desc,
                              plan->address[step->slots[1]], plan->slots[step->slots[1]].layout,
                              plan->address[step->slots[0]], plan->slots[step->slots[0]].layout);
        return SAC_OK;
    case SAC_STEP_COPY:
        sac_layout_convert_on(plan->dev->workers, &plan->slots[step->slots[1]].desc,
                              plan->address[step->slots[1]], plan->slots[step->slots[1]].layout,
                              plan->address[step->slots[0]], plan->slots[step->slots[1]].layout);
        return SAC_OK;
    case SAC_STEP_VIEW: break;
    }
    return SAC_OK;
}

static sac_result run_steps(struct sac_plan *plan)
{
    sac_result res = SAC_OK;
    sac_worker_pool_hold(plan->dev->workers);
    for (size_t i = 0; i < plan->step_count && res == SAC_OK; i++) {
        struct sac_step *step = &plan->steps[i];
        int64_t          begun = plan->profile ? sac_time_ns() : 0;
        res = sac_plan_check_finite(plan, step, NULL);
        if (res == SAC_OK)
            res = sac_plan_run_step(plan, step);
        if (res == SAC_OK && plan->params.watch)
            plan->params.watch(plan->params.watcher, plan, step);
        if (plan->profile) {
            step->time_ns += sac_time_ns() - begun;
            step->runs++;
        }
    }
    sac_worker_pool_release(plan->dev->workers);
    return res;
}

/* ---- outputs ---- */

static struct sac_tensor_desc output_desc(const struct sac_value_slot *s)
{
    struct sac_tensor_desc desc = {.dtype = sac_layout_dtype(s->desc.dtype, s->layout),
                                   .rank = s->desc.rank};
    memcpy(desc.shape, s->desc.dims, sizeof desc.shape);
    return desc;
}

/* A tensor that the caller brought. */
static sac_result check_given(const struct sac_plan *plan, const struct sac_value_slot *s,
                              const sac_tensor *t)
{
    const struct sac_tensor_desc want = output_desc(s), *have = sac_tensor_describe(t);
    const bool                   same = want.dtype == have->dtype && want.rank == have->rank &&
                      memcmp(want.shape, have->shape, (size_t)want.rank * sizeof *want.shape) == 0;
    if (same && sac_tensor_is_aligned(t) && sac_tensor_device(t) == plan->dev)
        return SAC_OK;
    return SAC_FAIL(
        plan->graph->ctx, SAC_ERR_ARG,
        "output '%s': the tensor to write to is of another shape, dtype, device or alignment",
        plan->graph->outputs[s->port]->name);
}

/* Tensors for the outputs that the steps compute; the tail creates its own. */
static sac_result make_outputs(struct sac_plan *plan, struct sac_device_stream *stream,
                               sac_tensor **out)
{
    sac_result res = SAC_OK;
    bool       fresh = false;
    for (size_t i = 0; i < plan->slot_count && res == SAC_OK; i++) {
        const struct sac_value_slot *s = &plan->slots[i];
        if (s->port < 0)
            continue;
        const struct sac_tensor_desc desc = output_desc(s);
        if (out[s->port]) {
            res = check_given(plan, s, out[s->port]);
            continue;
        }
        res =
            sac_tensor_create(plan->dev, &desc, plan->graph->outputs[s->port]->name, &out[s->port]);
        fresh = true;
    }
    /* Work queued on the device's own stream may still use this memory. */
    if (res == SAC_OK && fresh)
        res = plan->dev->ops->stream_after(plan->dev, stream, NULL);
    return res;
}

static sac_result run_all(struct sac_plan *plan, struct sac_device_stream *stream,
                          void *activations, sac_tensor *const *in, sac_tensor **out)
{
    const bool on_host = plan->dev->ops->host_memory;
    bool       tail = plan->tail_count > 0;
    sac_result res = make_outputs(plan, stream, out);
    if (res != SAC_OK)
        return res;
    bind(plan, activations, in, out);
    res = on_host ? run_steps(plan) : sac_plan_queue(plan, stream, activations, in, out);
    for (int i = 0; i < plan->graph->output_count; i++)
        tail |= !out[i] || !sac_plan_makes(plan, i);
    return res == SAC_OK && tail ? sac_dynamic_run(plan, stream, out) : res;
}

sac_result sac_plan_run(struct sac_plan *plan, struct sac_device_stream *stream, void *activations,
                        sac_tensor *const *in, sac_tensor **out)
{
    const int    count = plan->graph->output_count;
    sac_tensor **made = plan->made;
    memcpy(made, out, (size_t)count * sizeof *made);
    sac_result res = run_all(plan, stream, activations, in, made);
    if (res != SAC_OK) /* before its tensors return to their pool */
        sac_plan_settle(plan, stream);
    for (int i = 0; i < count; i++) {
        if (res == SAC_OK)
            out[i] = made[i];
        else if (!out[i])
            sac_tensor_unref(&made[i]);
    }
    return res;
}
