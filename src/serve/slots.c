/* SPDX-License-Identifier: Apache-2.0 */
/* What batches under way have: a stream, tensors that stay, and an instance of the network. */
#include "serve/runs.h"

#include <string.h>

#include "engine/engine.h"

/* ---- memory ---- */

size_t sac_runs_item_bytes(const struct sac_runs *r, int input)
{
    return (size_t)sac_tensor_desc_bytes(&r->item[input]);
}

/* Whole numbers may be places in a table: those that nobody wrote must not lie outside. Others must
 * be numbers. */
static sac_result clear_input(struct sac_runs *r, struct sac_runs_slot *slot, int i)
{
    if (slot->stage[i])
        memset(sac_buffer_data(slot->stage[i]), 0, sac_runs_item_bytes(r, i) * (size_t)r->capacity);
    return sac_tensor_clear(slot->in[i]);
}

static sac_result open_input(struct sac_runs *r, struct sac_runs_slot *slot, int i)
{
    struct sac_tensor_desc desc = r->item[i];
    desc.shape[0] = r->capacity;
    sac_result res = sac_tensor_create(r->dev, &desc, "server input", &slot->in[i]);
    if (res == SAC_OK && sac_device_apart(r->dev))
        res = sac_host_buffer_create(r->dev, sac_runs_item_bytes(r, i) * (size_t)r->capacity,
                                     "server input", &slot->stage[i]);
    if (res == SAC_OK)
        res = clear_input(r, slot, i);
    for (int s = 0; s < r->sizes.count && res == SAC_OK; s++) {
        desc.shape[0] = r->sizes.size[s];
        res = sac_tensor_view(slot->in[i], 0, &desc, &slot->view[s * r->inputs + i]);
    }
    return res;
}

static sac_result open_slot(struct sac_runs *r, struct sac_runs_slot *slot)
{
    const size_t sizes = (size_t)r->sizes.count, in = (size_t)r->inputs, out = (size_t)r->outputs;
    slot->in = sac_calloc(in, sizeof(sac_tensor *));
    slot->stage = sac_calloc(in, sizeof(struct sac_buffer *));
    slot->view = sac_calloc(sizes * in, sizeof(sac_tensor *));
    slot->out = sac_calloc(sizes * out + 1, sizeof(sac_tensor *));
    slot->fetch = sac_calloc(out + 1, sizeof(struct sac_buffer *));
    if (!slot->in || !slot->stage || !slot->view || !slot->out || !slot->fetch)
        return SAC_FAIL(r->dev->ctx, SAC_ERR_MEMORY, "no memory for a server");
    sac_result res = r->dev->ops->stream_create(r->dev, &slot->stream);
    if (res == SAC_OK)
        res = r->dev->ops->event_create(r->dev, false, &slot->done);
    for (int i = 0; i < r->inputs && res == SAC_OK; i++)
        res = open_input(r, slot, i);
    return res;
}

void sac_runs_drop_outputs(struct sac_runs *r, struct sac_runs_slot *slot)
{
    for (int i = 0; slot->out && i < r->sizes.count * r->outputs; i++) {
        if (slot->out[i])
            sac_tensor_used(slot->out[i], slot->stream);
        sac_tensor_unref(&slot->out[i]);
    }
}

static void close_slot(struct sac_runs *r, struct sac_runs_slot *slot, int sizes)
{
    if (slot->stream)
        r->dev->ops->stream_wait(slot->stream);
    for (int i = 0; slot->out && i < sizes * r->outputs; i++)
        sac_tensor_unref(&slot->out[i]);
    for (int i = 0; slot->view && i < sizes * r->inputs; i++)
        sac_tensor_unref(&slot->view[i]);
    for (int i = 0; slot->in && i < r->inputs; i++)
        sac_tensor_unref(&slot->in[i]);
    for (int i = 0; slot->stage && i < r->inputs; i++)
        sac_buffer_unref(&slot->stage[i]);
    for (int i = 0; slot->fetch && i < r->outputs; i++)
        sac_buffer_unref(&slot->fetch[i]);
    sac_free(slot->in);
    sac_free(slot->stage);
    sac_free(slot->view);
    sac_free(slot->out);
    sac_free(slot->fetch);
    if (slot->done)
        r->dev->ops->event_destroy(&slot->done);
    if (slot->stream)
        r->dev->ops->stream_destroy(&slot->stream);
    *slot = (struct sac_runs_slot){0};
}

/* ---- the first runs ---- */

/* With several items the outputs are a stack of theirs. */
static sac_result check_outputs(struct sac_runs *r, struct sac_runs_slot *slot, int s)
{
    for (int k = 0; k < r->outputs && !r->varies; k++) {
        const sac_tensor             *t = slot->out[s * r->outputs + k];
        const struct sac_tensor_desc *d = sac_tensor_describe(t);
        if (d->rank < 1 || d->shape[0] != r->sizes.size[s])
            return SAC_FAIL(r->dev->ctx, SAC_ERR_UNSUPPORTED,
                            "%s: output '%s' has no batch dimension, so items cannot be stacked: "
                            "serve it with batch_max 1",
                            sac_model_path(r->model), sac_model_output(r->model, k)->name);
    }
    return SAC_OK;
}

sac_result sac_runs_queue(struct sac_runs *r, struct sac_runs_slot *slot, int s)
{
    sac_tensor **out = slot->out + s * r->outputs;
    if (r->varies)
        sac_runs_drop_outputs(r, slot);
    return sac_model_run_on(sac_runs_model_of(r, (int)(slot - r->slot)), slot->stream,
                            slot->view + s * r->inputs, out);
}

static sac_result warm_up(struct sac_runs *r, int number, int s)
{
    struct sac_runs_slot *slot = &r->slot[number];
    sac_result            res = r->dev->ops->stream_after(r->dev, slot->stream, NULL);
    for (int turn = 0; turn < SAC_MAX(r->dev->ops->warm_runs, 1) && res == SAC_OK; turn++) {
        res = sac_runs_queue(r, slot, s);
        if (res == SAC_OK && !r->varies)
            r->varies = sac_model_shapes_vary(r->model);
    }
    sac_result waited = r->dev->ops->stream_wait(slot->stream);
    sac_model_forget_not_finite(sac_runs_model_of(r, number));
    res = res == SAC_OK ? waited : res;
    return res == SAC_OK && r->sizes.size[s] > 1 ? check_outputs(r, slot, s) : res;
}

static void close_slots(struct sac_runs *r, int sizes)
{
    for (int i = 0; i < SAC_BATCHES_MAX; i++)
        close_slot(r, &r->slot[i], sizes);
}

static sac_result open_slots(struct sac_runs *r)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < r->depth && res == SAC_OK; i++)
        res = open_slot(r, &r->slot[i]);
    for (int s = r->sizes.count - 1; s >= 0 && res == SAC_OK; s--)
        for (int i = 0; i < r->depth && res == SAC_OK; i++)
            res = warm_up(r, i, s);
    return res;
}

/* One copy of the weights; activations for each. */
static sac_result open_instances(struct sac_runs *r, int streams)
{
    sac_result res = SAC_OK;
    r->instance[0] = sac_model_ref(r->model);
    for (r->streams = 1; r->streams < streams && res == SAC_OK; r->streams++)
        res = sac_model_twin(r->model, &r->instance[r->streams]);
    return res;
}

sac_result sac_runs_open(struct sac_runs *r, enum sac_batch_padding padding, int batch_max,
                         int streams, int depth)
{
    sac_result made = open_instances(r, streams);
    r->depth = depth;
    if (made != SAC_OK)
        return made;
    for (r->capacity = batch_max;; r->capacity /= 2) {
        sac_sizes_list(&r->sizes, r->dev, padding, r->capacity);
        sac_result res = open_slots(r);
        if (res == SAC_OK || !sac_is_out_of_memory(res) || r->capacity == 1 ||
            r->dev->params.deterministic) /* another size would give other bits */
            return res;
        sac_log(r->dev->ctx, SAC_LOG_WARN,
                "%s: %s has no memory for batches of %d: they have up "
                "to %d",
                sac_model_path(r->model), r->dev->name, r->capacity, r->capacity / 2);
        sac_error_clear(r->dev->ctx);
        close_slots(r, r->sizes.count);
        sac_device_pool_trim(r->dev);
    }
}

void sac_runs_finish(struct sac_runs *r)
{
    if (!r->dev)
        return;
    close_slots(r, r->sizes.count);
    sac_free(r->item);
    for (int i = 0; i < SAC_BATCHES_MAX; i++)
        sac_model_unref(&r->instance[i]);
    sac_model_unref(&r->model);
    sac_device_unref(&r->host);
    sac_device_unref(&r->dev);
    *r = (struct sac_runs){0};
}
