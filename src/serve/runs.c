/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/runs.h"

#include <stdio.h>
#include <string.h>

#include "engine/engine.h"
#include "vision/fit.h"
#include "vision/vision.h"

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
        sac_tensor_view(p->slot->in[0], (size_t)at * sac_runs_item_bytes(p->runs, 0), &desc, &to);
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
    const size_t item = sac_runs_item_bytes(p->runs, i), bytes = item * (size_t)(s->to - s->from);
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
        res = sac_runs_queue(p->runs, p->slot, p->size);
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
        sac_runs_drop_outputs(r, p.slot);
    return res;
}

bool sac_runs_arrived(const struct sac_runs *r, int slot)
{
    return r->dev->ops->event_reached(r->slot[slot].done);
}

sac_result sac_runs_end(struct sac_runs *r, int slot, sac_request *const *requests, int n)
{
    sac_result res = r->dev->ops->event_wait(r->slot[slot].done);
    sac_model_say_not_finite(sac_runs_model_of(r, slot));
    for (int i = 0; i < n && res == SAC_OK && r->host; i++) {
        take_fetched(r, &r->slot[slot], requests[i]);
        res = download(r, requests[i]);
    }
    return res;
}
