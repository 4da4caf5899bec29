/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "engine/plan/dynamic.h"

static struct sac_tensor_desc desc_of(const struct sac_operand *o)
{
    struct sac_tensor_desc desc = {.dtype = o->dtype, .rank = o->rank};
    memcpy(desc.shape, o->dims, sizeof desc.shape);
    return desc;
}

void sac_dynamic_bind(struct sac_dynamic *d, const struct sac_value *v, const struct sac_operand *o,
                      sac_tensor *tensor)
{
    sac_tensor *held = tensor ? sac_tensor_ref(tensor) : NULL;
    sac_tensor_unref(&d->tensors[v->id]);
    d->tensors[v->id] = held;
    d->values[v->id] = *o;
    d->values[v->id].present = true;
}

void sac_dynamic_alias(struct sac_dynamic *d, const struct sac_value *v,
                       const struct sac_value *from)
{
    struct sac_operand o = d->values[from->id];
    sac_dynamic_bind(d, v, &o, d->tensors[from->id]);
}

sac_result sac_dynamic_make(struct sac_dynamic *d, const struct sac_node *n,
                            const struct sac_value *v, const struct sac_operand *shape)
{
    struct sac_tensor_desc desc = desc_of(shape);
    struct sac_operand     o = *shape;
    sac_tensor            *t = NULL;
    char                   label[256];
    sac_result             res = sac_tensor_create(d->dev, &desc, v->name, &t);
    if (res != SAC_OK)
        return sac_fail_prefix(d->plan->graph->ctx, res,
                               "%s: ", sac_node_label(n, label, sizeof label));
    o.data = sac_tensor_data(t);
    sac_dynamic_bind(d, v, &o, t);
    sac_tensor_unref(&t);
    return SAC_OK;
}

static sac_result check_inputs(const struct sac_dynamic *d, const struct sac_node *n)
{
    char label[256];
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i] &&
            (!d->values[n->inputs[i]->id].present || !d->values[n->inputs[i]->id].data))
            return SAC_FAIL(d->plan->graph->ctx, SAC_ERR_FORMAT, "%s: '%s' has no value yet",
                            sac_node_label(n, label, sizeof label), n->inputs[i]->name);
    return SAC_OK;
}

/* Infers with the data at hand, then computes. The call struct is the plan's own, so no subgraph
 * may run in between. */
static sac_result run_node(struct sac_dynamic *d, const struct sac_node *n)
{
    struct sac_op_call *c = d->plan->call;
    sac_call_fill(c, d->plan->graph->ctx, n, d->values);
    sac_result res = n->op->shape(c);
    if (res == SAC_AGAIN)
        res = SAC_OP_FAIL(c, SAC_ERR_UNSUPPORTED, "its shape is unknown even with the data");
    if (res == SAC_OK)
        res = sac_call_check_outputs(c, d->plan->params.memory_limit);
    for (int i = 0; i < n->output_count && res == SAC_OK; i++) {
        if (!n->outputs[i])
            continue;
        res = sac_dynamic_make(d, n, n->outputs[i], &c->out[i]);
        c->out[i].data = d->values[n->outputs[i]->id].data;
    }
    return res == SAC_OK ? sac_reference_run(d->dev, c) : res;
}

sac_result sac_dynamic_nodes(struct sac_dynamic *d, const struct sac_node *const *nodes,
                             size_t count)
{
    sac_result res = SAC_OK;
    for (size_t i = 0; i < count && res == SAC_OK; i++) {
        const struct sac_node *n = nodes[i];
        res = sac_node_check_supported(d->plan->graph->ctx, n);
        if (res == SAC_OK)
            res = check_inputs(d, n);
        if (res == SAC_OK)
            res = n->op->flags & SAC_OP_CONTROL ? sac_dynamic_control(d, n) : run_node(d, n);
    }
    return res;
}

/* Is the value its whole tensor? An entry of a scanned input is only a part of one. */
static bool whole_tensor(const sac_tensor *t, const struct sac_operand *o)
{
    return t && sac_tensor_data(t) == o->data &&
           sac_tensor_desc_bytes(sac_tensor_describe(t)) == (int64_t)sac_operand_bytes(o) &&
           sac_tensor_describe(t)->rank == o->rank;
}

/* ---- outputs ---- */

/* Copies an output of the tail to `out` on the plan's device. */
static sac_result deliver(struct sac_dynamic *d, const struct sac_value *v,
                          const struct sac_operand *o, sac_tensor *out)
{
    char what[160];
    if (d->dev == d->plan->dev) {
        memcpy(sac_tensor_data(out), o->data, sac_operand_bytes(o));
        return SAC_OK;
    }
    snprintf(what, sizeof what, "output '%.100s', made on the host", v->name);
    return sac_device_copy(d->plan->dev, NULL, sac_tensor_data(out), o->data, sac_operand_bytes(o),
                           SAC_COPY_HOST_TO_DEVICE, SAC_COPY_TENSOR_LAYOUT, what);
}

static sac_result fits_given(const struct sac_dynamic *d, const struct sac_value *v,
                             const struct sac_tensor_desc *want, const sac_tensor *out)
{
    const struct sac_tensor_desc *have = sac_tensor_describe(out);
    if (have->dtype == want->dtype && have->rank == want->rank &&
        memcmp(have->shape, want->shape, (size_t)want->rank * sizeof *want->shape) == 0)
        return SAC_OK;
    return SAC_FAIL(d->plan->graph->ctx, SAC_ERR_ARG,
                    "output '%s': the tensor to write to is of another shape or dtype", v->name);
}

/* A value whose memory is the plan's is copied. */
static sac_result hand_out(struct sac_dynamic *d, const struct sac_value *v, sac_tensor **out)
{
    const struct sac_operand *o = &d->values[v->id];
    if (!o->present || !o->data)
        return SAC_FAIL(d->plan->graph->ctx, SAC_ERR_FORMAT, "output '%s' has no value", v->name);
    struct sac_tensor_desc desc = desc_of(o);
    if (!*out && d->dev == d->plan->dev && whole_tensor(d->tensors[v->id], o)) {
        *out = sac_tensor_ref(d->tensors[v->id]);
        return SAC_OK;
    }
    sac_result res =
        *out ? fits_given(d, v, &desc, *out) : sac_tensor_create(d->plan->dev, &desc, v->name, out);
    return res == SAC_OK ? deliver(d, v, o, *out) : res;
}

/* ---- results of the steps, copied to the host ---- */

struct fetch {
    struct sac_dynamic    *d;
    const struct sac_node *node;
    sac_result             res;
};

static void fetch_value(void *user, struct sac_value *v)
{
    struct fetch          *f = user;
    struct sac_dynamic    *d = f->d;
    const struct sac_plan *plan = d->plan;
    char                   label[256], what[400];
    void                  *from = sac_plan_operand(plan, v->id).data;
    struct sac_operand     o = plan->infer.values[v->id];
    const size_t           bytes = sac_operand_bytes(&o);
    if (f->res != SAC_OK || plan->slot_of[v->id] < 0 || d->values[v->id].data || (bytes && !from))
        return;
    f->res = sac_dynamic_make(d, f->node, v, &o);
    snprintf(what, sizeof what, "%s on the host, '%.100s'",
             sac_node_label(f->node, label, sizeof label), v->name);
    if (f->res == SAC_OK && bytes)
        f->res = sac_device_copy(plan->dev, d->stream, d->values[v->id].data, from, bytes,
                                 SAC_COPY_DEVICE_TO_HOST, SAC_COPY_TENSOR_LAYOUT, what);
}

static sac_result fetch_all(struct sac_dynamic *d)
{
    struct fetch f = {.d = d, .res = SAC_OK};
    for (size_t i = 0; i < d->plan->tail_count && f.res == SAC_OK; i++) {
        f.node = d->plan->tail[i];
        sac_node_each_read(f.node, fetch_value, &f);
    }
    /* also after an error: copies may be queued */
    sac_result res = sac_plan_settle(d->plan, d->stream);
    return f.res == SAC_OK ? res : f.res;
}

/* ---- a run ---- */

static sac_result dynamic_init(struct sac_dynamic *d, struct sac_plan *plan,
                               struct sac_device_stream *stream)
{
    const bool on_host = plan->dev->ops->host_memory;
    size_t     n = (size_t)plan->graph->id_count;
    *d = (struct sac_dynamic){
        .plan = plan, .dev = on_host ? plan->dev : plan->host, .stream = stream, .count = n};
    d->values = sac_calloc(n, sizeof *d->values);
    d->tensors = sac_calloc(n, sizeof *d->tensors);
    if (!d->values || !d->tensors)
        return SAC_FAIL(plan->graph->ctx, SAC_ERR_MEMORY, "no memory to run the model");
    for (size_t i = 0; i < n; i++)
        d->values[i] = on_host ? sac_plan_operand(plan, (int)i) : plan->infer.values[i];
    return on_host ? SAC_OK : fetch_all(d);
}

static void dynamic_finish(struct sac_dynamic *d)
{
    for (size_t i = 0; d->tensors && i < d->count; i++)
        sac_tensor_unref(&d->tensors[i]);
    sac_free(d->tensors);
    sac_free(d->values);
}

sac_result sac_dynamic_run(struct sac_plan *plan, struct sac_device_stream *stream,
                           sac_tensor **out)
{
    struct sac_dynamic d;
    sac_result         res = dynamic_init(&d, plan, stream);
    if (res == SAC_OK)
        res = sac_dynamic_nodes(&d, plan->tail, plan->tail_count);
    for (int i = 0; i < plan->graph->output_count && res == SAC_OK; i++)
        if (!sac_plan_makes(plan, i))
            res = hand_out(&d, plan->graph->outputs[i], &out[i]);
    dynamic_finish(&d);
    return res;
}
