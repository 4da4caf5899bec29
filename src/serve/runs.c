/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/runs.h"

#include <stdio.h>
#include <string.h>

#include "engine/engine.h"
#include "heads/heads.h"
#include "vision/fit.h"
#include "vision/vision.h"

/* ---- an item ---- */

/* Of networks whose head nobody knows, such as classifiers. */
static const struct sac_head no_head = {.name = "none"};

static sac_result read_contract(struct sac_runs *r, const struct sac_server_params *params,
                                const struct sac_head_view *view)
{
    sac_context              *ctx = r->dev->ctx;
    const struct sac_head    *head = sac_head_of(view);
    struct sac_model_contract contract = {0};
    sac_result res = sac_head_preprocess(ctx, head ? head : &no_head, view, &contract.pre);
    if (res == SAC_OK && params->width > 0 && params->height > 0) {
        contract.pre.width = params->width;
        contract.pre.height = params->height;
    }
    if (res == SAC_OK)
        res = sac_model_contract_read(r->model, params->preprocess, &contract);
    if (res == SAC_OK)
        res = sac_head_check_size(ctx, view, &contract);
    if (res == SAC_OK) {
        sac_contract_expect(r->model, &contract);
        r->pre = contract.pre;
        r->item[0] = sac_preprocess_desc(&r->pre, 1);
        r->pictures = true;
    }
    sac_model_contract_finish(&contract);
    return res;
}

/* Frames can be submitted to a model with one input that is a picture. */
static sac_result look_for_pictures(struct sac_runs *r, const struct sac_server_params *params)
{
    struct sac_head_view view;
    snprintf(r->why, sizeof r->why, "it has %d inputs", r->inputs);
    if (r->inputs != 1)
        return SAC_OK;
    sac_result res = sac_head_view_init(r->dev->ctx, r->model, params->preprocess, &view);
    if (res == SAC_OK && !view.feed.single)
        return read_contract(r, params, &view);
    if (res == SAC_OK)
        snprintf(r->why, sizeof r->why, "its picture has no batch dimension");
    else
        sac_context_last_error(r->dev->ctx, r->why, sizeof r->why);
    sac_error_clear(r->dev->ctx);
    return res == SAC_ERR_UNSUPPORTED ? SAC_OK : res;
}

/* The sides of an image that the model leaves open, channels first or last. */
static void give_size(struct sac_tensor_desc *d, const struct sac_server_params *params)
{
    const bool last = d->rank == 4 && d->shape[3] >= 1 && d->shape[3] <= 4 && d->shape[1] < 0;
    const int  y = last ? 1 : 2;
    if (d->rank != 4 || params->width <= 0 || params->height <= 0)
        return;
    d->shape[y] = d->shape[y] < 0 ? params->height : d->shape[y];
    d->shape[y + 1] = d->shape[y + 1] < 0 ? params->width : d->shape[y + 1];
}

static sac_result check_item(struct sac_runs *r, int i)
{
    const struct sac_model_port *port = sac_model_input(r->model, i);
    struct sac_tensor_desc      *d = &r->item[i];
    char                         text[128];
    if (d->rank > 0 && (d->shape[0] == SAC_DIM_UNKNOWN || d->shape[0] == 1))
        d->shape[0] = 1;
    else
        return SAC_FAIL(r->dev->ctx, SAC_ERR_UNSUPPORTED,
                        "%s: input '%s' has no first dimension for items: it is no batch of 1",
                        sac_model_path(r->model), port->name);
    for (int k = 1; k < d->rank; k++)
        if (d->shape[k] < 0) {
            sac_tensor_desc_print(&port->desc, text, sizeof text);
            return SAC_FAIL(r->dev->ctx, SAC_ERR_ARG,
                            "%s: input '%s' (%s) leaves its size open: say it with width and "
                            "height",
                            sac_model_path(r->model), port->name, text);
        }
    return SAC_OK;
}

static sac_result provide_host(struct sac_runs *r)
{
    struct sac_device_params params = sac_device_params_default();
    params.threads = 1;
    return sac_device_open(r->dev->ctx, "cpu", &params, &r->host);
}

sac_result sac_runs_init(struct sac_runs *r, sac_model *model,
                         const struct sac_server_params *params)
{
    *r = (struct sac_runs){.model = sac_model_ref(model),
                           .dev = sac_device_ref(sac_model_device(model)),
                           .inputs = sac_model_input_count(model),
                           .outputs = sac_model_output_count(model)};
    sac_result res = SAC_OK;
    if (r->inputs == 0)
        return SAC_FAIL(r->dev->ctx, SAC_ERR_UNSUPPORTED, "%s: it has no inputs",
                        sac_model_path(model));
    r->item = sac_calloc((size_t)r->inputs, sizeof *r->item);
    if (!r->item)
        return SAC_FAIL(r->dev->ctx, SAC_ERR_MEMORY, "no memory for a server");
    for (int i = 0; i < r->inputs; i++) {
        r->item[i] = sac_model_input(model, i)->desc;
        give_size(&r->item[i], params);
    }
    res = look_for_pictures(r, params);
    for (int i = 0; i < r->inputs && res == SAC_OK; i++)
        res = check_item(r, i);
    if (res == SAC_OK && params->host_outputs && sac_device_apart(r->dev))
        res = provide_host(r);
    return res;
}

/* ---- memory ---- */

static size_t item_bytes(const struct sac_runs *r, int input)
{
    return (size_t)sac_tensor_desc_bytes(&r->item[input]);
}

/* Whole numbers may be places in a table: those that nobody wrote must not lie outside. */
static sac_result clear_input(struct sac_runs *r, struct sac_runs_slot *slot, int i)
{
    const enum sac_dtype dtype = r->item[i].dtype;
    const bool real = dtype == SAC_F32 || dtype == SAC_F16 || dtype == SAC_F64 || dtype == SAC_BF16;
    const size_t bytes = item_bytes(r, i) * (size_t)r->capacity;
    if (!slot->stage[i]) {
        memset(sac_tensor_data(slot->in[i]), 0, bytes);
        return SAC_OK;
    }
    memset(sac_buffer_data(slot->stage[i]), 0, bytes);
    return real ? SAC_OK : sac_tensor_upload(slot->in[i], sac_buffer_data(slot->stage[i]));
}

static sac_result open_input(struct sac_runs *r, struct sac_runs_slot *slot, int i)
{
    struct sac_tensor_desc desc = r->item[i];
    desc.shape[0] = r->capacity;
    sac_result res = sac_tensor_create(r->dev, &desc, "server input", &slot->in[i]);
    if (res == SAC_OK && sac_device_apart(r->dev))
        res = sac_host_buffer_create(r->dev, item_bytes(r, i) * (size_t)r->capacity, "server input",
                                     &slot->stage[i]);
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

static void drop_outputs(struct sac_runs *r, struct sac_runs_slot *slot)
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

static sac_result run(struct sac_runs *r, struct sac_runs_slot *slot, int s)
{
    sac_tensor **out = slot->out + s * r->outputs;
    if (r->varies)
        drop_outputs(r, slot);
    return sac_model_run_on(r->instance[(slot - r->slot) % r->streams], slot->stream,
                            slot->view + s * r->inputs, out);
}

static sac_result warm_up(struct sac_runs *r, int number, int s)
{
    struct sac_runs_slot *slot = &r->slot[number];
    sac_result            res = r->dev->ops->stream_after(r->dev, slot->stream, NULL);
    for (int turn = 0; turn < SAC_MAX(r->dev->ops->warm_runs, 1) && res == SAC_OK; turn++) {
        res = run(r, slot, s);
        if (res == SAC_OK && !r->varies)
            r->varies = sac_model_shapes_vary(r->model);
    }
    sac_result waited = r->dev->ops->stream_wait(slot->stream);
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
        if (res == SAC_OK || !sac_is_out_of_memory(res) || r->capacity == 1)
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

/* ---- what a batch brings, and gets ---- */

/* A run of the network: items first to first + n of the batch. */
struct part {
    struct sac_runs      *runs;
    struct sac_runs_slot *slot;
    int                   size; /* its number */
    int                   first, n;
};

/* The items of a request that are in a part: from..to of the request, the first of them at `at` of
 * the part. */
struct share {
    int from, to, at;
};

static struct share share_of(const struct part *p, const sac_request *r)
{
    const int from = SAC_MAX(r->at, p->first);
    const int to = SAC_MIN(r->at + r->size, p->first + p->n);
    return (struct share){from - r->at, to - r->at, from - p->first};
}

/* Within the device's memory, as part of the run. */
static sac_result copy_within(const struct part *p, void *dst, const void *src, size_t bytes)
{
    sac_device *dev = p->runs->dev;
    /* numbers as wide as they can be: fewer of them */
    const bool               words = (bytes | (uintptr_t)dst | (uintptr_t)src) % 4 == 0;
    const struct sac_operand o = {.dtype = words ? SAC_U32 : SAC_U8,
                                  .rank = 1,
                                  .dims = {(int64_t)(words ? bytes / 4 : bytes)},
                                  .present = true};
    if (bytes == 0)
        return SAC_OK;
    if (sac_device_apart(dev))
        return dev->ops->relayout(dev, p->slot->stream, &o, dst, SAC_LAYOUT_PLAIN, src,
                                  SAC_LAYOUT_PLAIN);
    memcpy(dst, src, bytes);
    return SAC_OK;
}

static sac_result gather_frame(const struct part *p, const sac_request *r, int at)
{
    const struct sac_preprocess    *pre = &p->runs->pre;
    const struct sac_preprocess_job job = {.frame = r->frame};
    const struct sac_tensor_desc    desc = sac_preprocess_desc(pre, 1);
    sac_tensor                     *to = NULL;
    sac_result                      res =
        sac_tensor_view(p->slot->in[0], (size_t)at * item_bytes(p->runs, 0), &desc, &to);
    if (res == SAC_OK)
        res = sac_preprocess_run_on(p->runs->dev, p->slot->stream, pre, &job, 1, to);
    sac_tensor_unref(&to);
    return res;
}

/* What comes from the host is staged where copies need not wait for it; each part of a batch has a
 * place of its own there. */
static sac_result gather_tensor(const struct part *p, const sac_request *r, int i,
                                const struct share *s)
{
    sac_device  *dev = p->runs->dev;
    const size_t item = item_bytes(p->runs, i), bytes = item * (size_t)(s->to - s->from);
    const char  *src = (const char *)sac_tensor_data(r->in[i]) + item * (size_t)s->from;
    char        *dst = (char *)sac_tensor_data(p->slot->in[i]) + item * (size_t)s->at;
    char         what[128];
    if (!p->slot->stage[i] || sac_tensor_device(r->in[i]) == dev)
        return copy_within(p, dst, src, bytes);
    char *stage = (char *)sac_buffer_data(p->slot->stage[i]) + item * (size_t)(p->first + s->at);
    memcpy(stage, src, bytes);
    snprintf(what, sizeof what, "request %lld, input '%.60s'", (long long)r->params.id,
             sac_model_input(p->runs->model, i)->name);
    return sac_device_copy(dev, p->slot->stream, dst, stage, bytes, SAC_COPY_HOST_TO_DEVICE,
                           SAC_COPY_TENSOR_USER, what);
}

static sac_result gather(const struct part *p, const sac_request *r)
{
    const struct share s = share_of(p, r);
    sac_result         res = SAC_OK;
    if (s.to <= s.from)
        return SAC_OK;
    if (r->frame)
        return gather_frame(p, r, s.at);
    for (int i = 0; i < p->runs->inputs && res == SAC_OK; i++)
        res = gather_tensor(p, r, i, &s);
    return res;
}

/* The request's own output, where it has none yet. */
static sac_result make_output(sac_device *dev, sac_request *r, int k,
                              const struct sac_tensor_desc *desc)
{
    return r->out[k] ? SAC_OK : sac_tensor_create(dev, desc, "a request's output", &r->out[k]);
}

/* Does the output have a row for each item? One of a single item may look as it likes. */
static bool is_stack(const struct part *p, const struct sac_tensor_desc *d)
{
    return d->rank > 0 && d->shape[0] == p->runs->sizes.size[p->size];
}

/* As the run's, but for the number of items. */
static struct sac_tensor_desc output_of(const struct part *p, const sac_request *r,
                                        const struct sac_tensor_desc *d)
{
    struct sac_tensor_desc desc = *d;
    if (is_stack(p, d))
        desc.shape[0] = r->size;
    return desc;
}

static sac_result scatter_output(const struct part *p, sac_request *r, int k, const struct share *s)
{
    struct sac_runs              *runs = p->runs;
    sac_tensor                   *out = p->slot->out[p->size * runs->outputs + k];
    const struct sac_tensor_desc *d = sac_tensor_describe(out);
    const struct sac_tensor_desc  desc = output_of(p, r, d);
    if (runs->varies) { /* it is another one in each run */
        r->out[k] = sac_tensor_ref(out);
        return SAC_OK;
    }
    const size_t row = (size_t)sac_tensor_desc_bytes(d) / (size_t)runs->sizes.size[p->size];
    sac_result   res = make_output(runs->dev, r, k, &desc);
    if (res == SAC_OK)
        res = copy_within(p, (char *)sac_tensor_data(r->out[k]) + row * (size_t)s->from,
                          (const char *)sac_tensor_data(out) + row * (size_t)s->at,
                          row * (size_t)(s->to - s->from));
    return res;
}

static sac_result scatter(const struct part *p, sac_request *r)
{
    const struct share s = share_of(p, r);
    sac_result         res = SAC_OK;
    for (int k = 0; k < p->runs->outputs && res == SAC_OK && s.to > s.from; k++)
        res = scatter_output(p, r, k, &s);
    return res;
}

/* ---- outputs in host memory ---- */

/* Bytes of an item of an output, where it has a first dimension of items. */
static size_t row_bytes(const struct sac_tensor_desc *d)
{
    return d->shape[0] > 0 ? (size_t)sac_tensor_desc_bytes(d) / (size_t)d->shape[0] : 0;
}

static sac_result queue_fetch(const struct part *p, int k)
{
    struct sac_runs    *runs = p->runs;
    sac_tensor         *out = p->slot->out[p->size * runs->outputs + k];
    const size_t        row = row_bytes(sac_tensor_describe(out));
    struct sac_buffer **fetch = &p->slot->fetch[k];
    char                what[128];
    sac_result          res = SAC_OK;
    if (!*fetch)
        res =
            sac_host_buffer_create(runs->dev, row * (size_t)runs->capacity, "server output", fetch);
    if (res != SAC_OK || row == 0)
        return res;
    snprintf(what, sizeof what, "output '%.60s' of a batch",
             sac_model_output(runs->model, k)->name);
    return sac_device_copy(runs->dev, p->slot->stream,
                           (char *)sac_buffer_data(*fetch) + row * (size_t)p->first,
                           sac_tensor_data(out), row * (size_t)p->n, SAC_COPY_DEVICE_TO_HOST,
                           SAC_COPY_TENSOR_USER, what);
}

/* Outputs that can be fetched for all at once: rows of items. */
static bool has_rows(const struct part *p)
{
    const struct sac_runs *r = p->runs;
    bool                   rows = !r->varies;
    for (int k = 0; k < r->outputs && rows; k++)
        rows = is_stack(p, sac_tensor_describe(p->slot->out[p->size * r->outputs + k]));
    return rows;
}

/* One that has been waited for, whose outputs are the request's on the device. */
static sac_result download(struct sac_runs *r, sac_request *request)
{
    sac_result res = SAC_OK;
    for (int k = 0; k < r->outputs && res == SAC_OK; k++) {
        sac_tensor *there = request->out[k], *here = NULL;
        if (!there || sac_tensor_device(there) == r->host)
            continue;
        res = sac_tensor_create(r->host, sac_tensor_describe(there), "a request's output", &here);
        if (res == SAC_OK)
            res = sac_tensor_download(there, sac_tensor_data(here));
        sac_tensor_unref(&request->out[k]);
        request->out[k] = here;
    }
    return res;
}

static void take_fetched(struct sac_runs *r, struct sac_runs_slot *slot, sac_request *request)
{
    for (int k = 0; k < r->outputs; k++) {
        sac_tensor *t = request->out[k];
        if (!t || sac_tensor_device(t) != r->host)
            continue;
        const size_t row = row_bytes(sac_tensor_describe(t));
        memcpy(sac_tensor_data(t),
               (const char *)sac_buffer_data(slot->fetch[k]) + row * (size_t)request->at,
               row * (size_t)request->size);
    }
}

static sac_result fetch_all(const struct part *p, sac_request *const *requests, int n)
{
    struct sac_runs *runs = p->runs;
    sac_result       res = SAC_OK;
    for (int k = 0; k < runs->outputs && res == SAC_OK; k++) {
        const sac_tensor             *out = p->slot->out[p->size * runs->outputs + k];
        const struct sac_tensor_desc *d = sac_tensor_describe(out);
        res = queue_fetch(p, k);
        for (int i = 0; i < n && res == SAC_OK; i++) {
            const struct share           s = share_of(p, requests[i]);
            const struct sac_tensor_desc desc = output_of(p, requests[i], d);
            if (s.to > s.from)
                res = make_output(runs->host, requests[i], k, &desc);
        }
    }
    return res;
}

/* Either each request gets its part of the outputs on the device, or all are fetched. */
static sac_result hand_out(const struct part *p, sac_request *const *requests, int n)
{
    sac_result res = SAC_OK;
    if (p->runs->host && has_rows(p))
        return fetch_all(p, requests, n);
    for (int i = 0; i < n && res == SAC_OK; i++)
        res = scatter(p, requests[i]);
    return res;
}

/* ---- a batch ---- */

static sac_result run_part(struct part *p, sac_request *const *requests, int n)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < n && res == SAC_OK; i++)
        res = gather(p, requests[i]);
    if (res == SAC_OK)
        res = run(p->runs, p->slot, p->size);
    if (res == SAC_OK)
        res = hand_out(p, requests, n);
    atomic_fetch_add(&p->runs->padded, (uint_fast64_t)(p->runs->sizes.size[p->size] - p->n));
    return res;
}

static int line_up(sac_request *const *requests, int n)
{
    int total = 0;
    for (int i = 0; i < n; i++) {
        sac_request_drop_outputs(requests[i]); /* of an earlier try */
        requests[i]->at = total;
        total += requests[i]->size;
    }
    return total;
}

sac_result sac_runs_begin(struct sac_runs *r, int number, sac_request *const *requests, int n)
{
    const struct sac_device_ops *ops = r->dev->ops;
    struct part                  p = {.runs = r, .slot = &r->slot[number]};
    const int                    total = line_up(requests, n);
    sac_result                   res = ops->stream_after(r->dev, p.slot->stream, NULL);
    for (; p.first < total && res == SAC_OK; p.first += p.n) {
        p.size = sac_sizes_next(&r->sizes, total - p.first);
        p.n = SAC_MIN(r->sizes.size[p.size], total - p.first);
        res = run_part(&p, requests, n);
    }
    if (res == SAC_OK)
        res = ops->event_record(p.slot->done, p.slot->stream);
    if (res == SAC_OK)
        return SAC_OK;
    ops->stream_wait(p.slot->stream); /* what is queued reads what the requests brought */
    if (sac_is_out_of_memory(res))    /* a smaller size may need what a larger one holds */
        drop_outputs(r, p.slot);
    return res;
}

bool sac_runs_arrived(const struct sac_runs *r, int slot)
{
    return r->dev->ops->event_reached(r->slot[slot].done);
}

sac_result sac_runs_end(struct sac_runs *r, int slot, sac_request *const *requests, int n)
{
    sac_result res = r->dev->ops->event_wait(r->slot[slot].done);
    for (int i = 0; i < n && res == SAC_OK && r->host; i++) {
        take_fetched(r, &r->slot[slot], requests[i]);
        res = download(r, requests[i]);
    }
    return res;
}
