/* SPDX-License-Identifier: Apache-2.0 */
/* Compares each step of a plan with its reference row on the step's own inputs, to find which
 * kernel is wrong and not only that the network is. Slow: every operand is copied to the host. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/kernel/layout.h"
#include "engine/plan/plan.h"

/* ---- operands ---- */

/* The address of element (n, c, s) of a slot, which may be a part of another. */
struct placed {
    int64_t batch, channels, pixels, sample, pixel;
    bool    strided;
};

static struct placed place_of(const struct sac_value_slot *s)
{
    struct placed p = {1, 1, 1, s->sample, s->pixel, s->parent >= 0 && s->pixel > 0};
    p.batch = s->desc.rank > 0 ? s->desc.dims[0] : 1;
    p.channels = s->desc.rank > 1 ? s->desc.dims[1] : 1;
    for (int i = 2; i < s->desc.rank; i++)
        p.pixels *= s->desc.dims[i];
    return p;
}

/* Copies a part to dense channels last. */
static void gather(const struct placed *p, size_t size, char *dst, const char *src)
{
    const size_t row = (size_t)p->channels * size;
    for (int64_t n = 0; n < p->batch; n++)
        for (int64_t s = 0; s < p->pixels; s++, dst += row)
            memcpy(dst, src + (size_t)(n * p->sample + s * p->pixel) * size, row);
}

/* Copies a slot to a plain operand; the caller frees *out. */
static sac_result fetch(struct sac_plan *plan, struct sac_device_stream *stream, int slot,
                        void **out)
{
    const struct sac_value_slot *s = &plan->slots[slot];
    const struct placed          p = place_of(s);
    const size_t                 size = sac_dtype_bytes(sac_layout_dtype(s->desc.dtype, s->layout));
    const size_t                 dense = sac_layout_bytes(&s->desc, s->layout);
    const int64_t reach = (p.batch - 1) * p.sample + (p.pixels - 1) * p.pixel + p.channels;
    const size_t  span = p.strided ? (size_t)reach * size : dense;
    char         *raw = sac_calloc(span + 64, 1), *packed = sac_calloc(dense + 64, 1);
    *out = sac_calloc(sac_operand_bytes(&s->desc) + 64, 1);
    sac_result res = raw && packed && *out
                         ? SAC_OK
                         : SAC_FAIL(plan->graph->ctx, SAC_ERR_MEMORY, "no memory to check a step");
    if (res == SAC_OK && dense > 0)
        res = sac_device_copy(plan->dev, stream, raw, plan->address[slot], span,
                              SAC_COPY_DEVICE_TO_HOST, SAC_COPY_TENSOR_USER, "a step's check");
    if (res == SAC_OK)
        res = sac_plan_settle(plan, stream);
    if (res == SAC_OK && p.strided)
        gather(&p, size, packed, raw);
    if (res == SAC_OK)
        sac_layout_convert(&s->desc, *out, SAC_LAYOUT_PLAIN, p.strided ? packed : raw, s->layout);
    sac_free(raw);
    sac_free(packed);
    return res;
}

/* ---- a step ---- */

/* The largest difference, relative to the largest number; *sample: the sample it is in. */
static double difference(const struct sac_operand *is, const struct sac_operand *wanted,
                         int64_t *sample)
{
    const int64_t count = sac_operand_elements(wanted);
    const int64_t each = wanted->rank > 0 && wanted->dims[0] > 0 ? count / wanted->dims[0] : count;
    double        largest = 1e-6, off = 0;
    for (int64_t i = 0; i < count; i++) {
        const double a = sac_operand_get(is, i), b = sac_operand_get(wanted, i);
        const double d = fabs(a - b);
        if (a == b || (isnan(a) && isnan(b)))
            continue;
        if (isfinite(b))
            largest = fmax(largest, fabs(b));
        if (!(d <= off)) {
            off = isfinite(d) ? d : INFINITY;
            *sample = i / SAC_MAX(each, 1);
        }
    }
    return off / largest;
}

static bool is_host_constant(const struct sac_plan *plan, const struct sac_step *step, int k)
{
    const struct sac_value *v = step->node->inputs[k];
    return v && plan->infer.values[v->id].data;
}

static sac_result take_inputs(struct sac_plan *plan, const struct sac_step *step,
                              struct sac_device_stream *stream, void **held)
{
    sac_result res = SAC_OK;
    for (int k = 0; k < step->in_count && res == SAC_OK; k++)
        if (step->slots[k] >= 0 && !is_host_constant(plan, step, k))
            res = fetch(plan, stream, step->slots[k], &held[k]);
    return res;
}

static sac_result compare_outputs(struct sac_plan *plan, const struct sac_step *step,
                                  struct sac_device_stream *stream, struct sac_op_call *c,
                                  struct sac_step_check *check)
{
    sac_result res = SAC_OK;
    for (int k = 0; k < step->out_count && res == SAC_OK; k++) {
        struct sac_operand is = c->out[k];
        int64_t            sample = 0;
        if (step->slots[step->in_count + k] < 0)
            continue;
        res = fetch(plan, stream, step->slots[step->in_count + k], &is.data);
        const double off = res == SAC_OK ? difference(&is, &c->out[k], &sample) : 0;
        if (off > check->off) {
            check->off = off;
            check->output = k;
            check->sample = sample;
        }
        sac_free(is.data);
    }
    return res;
}

static sac_result run_reference(struct sac_plan *plan, const struct sac_step *step,
                                struct sac_device *cpu, struct sac_op_call *c, void **held)
{
    sac_call_fill(c, plan->graph->ctx, step->node, plan->infer.values);
    for (int k = 0; k < step->in_count; k++)
        if (held[k])
            c->in[k].data = held[k];
    for (int k = 0; k < step->out_count; k++) {
        if (!step->node->outputs[k])
            continue;
        c->out[k] = plan->infer.values[step->node->outputs[k]->id];
        c->out[k].data = held[step->in_count + k] =
            sac_calloc(sac_operand_bytes(&c->out[k]) + 64, 1);
        if (!c->out[k].data)
            return SAC_FAIL(plan->graph->ctx, SAC_ERR_MEMORY, "no memory to check a step");
    }
    return sac_reference_run(cpu, c);
}

static sac_result check_kernel(struct sac_plan *plan, const struct sac_step *step,
                               struct sac_device_stream *stream, struct sac_device *cpu,
                               struct sac_step_check *check)
{
    void               *held[SAC_OP_INPUTS_MAX + SAC_OP_OUTPUTS_MAX] = {NULL};
    struct sac_op_call *c = sac_new(struct sac_op_call);
    sac_result          res = SAC_OK;
    if (c)
        res = take_inputs(plan, step, stream, held);
    else
        res = SAC_FAIL(plan->graph->ctx, SAC_ERR_MEMORY, "no memory to check a step");
    if (res == SAC_OK)
        res = sac_step_run_kernel(plan, step, stream);
    if (res == SAC_OK)
        res = sac_plan_settle(plan, stream);
    if (res == SAC_OK)
        res = run_reference(plan, step, cpu, c, held);
    if (res == SAC_OK)
        res = compare_outputs(plan, step, stream, c, check);
    for (size_t i = 0; i < SAC_COUNT(held); i++)
        sac_free(held[i]);
    sac_free(c);
    return res;
}

/* A change of layout keeps the numbers, except for rounding to float16. */
static sac_result check_relayout(struct sac_plan *plan, const struct sac_step *step,
                                 struct sac_device_stream *stream, struct sac_step_check *check)
{
    struct sac_operand is = plan->slots[step->slots[1]].desc,
                       wanted = plan->slots[step->slots[0]].desc;
    is.data = wanted.data = NULL;
    sac_result res = fetch(plan, stream, step->slots[0], &wanted.data);
    if (res == SAC_OK)
        res = sac_plan_step_on_device(plan, step, stream);
    if (res == SAC_OK)
        res = fetch(plan, stream, step->slots[1], &is.data);
    if (res == SAC_OK)
        check->off = difference(&is, &wanted, &check->sample);
    sac_free(is.data);
    sac_free(wanted.data);
    return res;
}

const char *sac_step_label(const struct sac_step *step, char *buf, size_t size)
{
    char layer[256] = "the network's inputs and outputs";
    if (step->node)
        sac_node_label(step->node, layer, sizeof layer);
    if (step->kind == SAC_STEP_KERNEL)
        snprintf(buf, size, "%s by %s%s%.80s", layer, step->implementation,
                 step->chosen ? ", " : "", step->chosen ? step->chosen : "");
    else
        snprintf(buf, size, "a change of layout for %s", layer);
    return buf;
}

sac_result sac_plan_verify(struct sac_plan *plan, struct sac_device_stream *stream,
                           struct sac_device *cpu,
                           void (*fn)(void *user, const struct sac_step_check *check), void *user)
{
    sac_result res = SAC_OK;
    for (size_t i = 0; i < plan->step_count && res == SAC_OK; i++) {
        const struct sac_step *step = &plan->steps[i];
        struct sac_step_check  check = {.step = step, .number = (int)i};
        if (step->kind == SAC_STEP_KERNEL && step->node->op->ref)
            res = check_kernel(plan, step, stream, cpu, &check);
        else if (step->kind == SAC_STEP_CONVERT || step->kind == SAC_STEP_COPY)
            res = check_relayout(plan, step, stream, &check);
        else
            res = sac_plan_step_on_device(plan, step, stream);
        if (res == SAC_OK)
            fn(user, &check);
    }
    return res;
}
