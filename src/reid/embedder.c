/* SPDX-License-Identifier: Apache-2.0 */
/* An embedder runs crops through a network and returns rows of length 1, so that the dot product of
 * two rows is their cosine: crops of all frames of a batch in one launch, as few runs of the
 * network as its buckets allow, rows normalised on the device. */
#include <limits.h>
#include <string.h>

#include "base/range.h"
#include "vision/embed.h"
#include "vision/fit.h"
#include "reid/embedder.h"

enum { STORE_ROWS_MIN = 64, STORE_BYTES_MAX = 64 << 20 };

struct sac_embedder_params sac_embedder_params_default(void)
{
    return (struct sac_embedder_params){.batch_max = 16};
}

/* ---- creation ---- */

static sac_result set_up(struct sac_embedder *emb, const struct sac_embedder_params *p)
{
    sac_context           *ctx = emb->dev->ctx;
    const struct sac_head *head = &sac_head_embedding;
    struct sac_preprocess *pre = &emb->contract.pre;
    struct sac_head_view   view;
    sac_result             res = sac_head_view_init(ctx, emb->model, p->preprocess, &view);
    if (res != SAC_OK)
        return res;
    const char *path = sac_model_path(emb->model);
    if (view.feed.count != 1 || view.feed.single)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                        "%s: an embedder has one input, a batch of pictures", path);
    if (!head->recognise(&view))
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                        "%s: it has no output of one row of numbers per image", path);
    if (!view.width || !view.height)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                        "%s: its input size is open; an embedder needs a fixed one", path);
    res = sac_head_preprocess(ctx, head, &view, pre);
    if (res == SAC_OK)
        res = sac_model_contract_read(emb->model, p->preprocess, &emb->contract);
    if (res != SAC_OK)
        return res;
    sac_contract_expect(emb->model, &emb->contract);
    if (pre->width != view.width || pre->height != view.height)
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "preprocess: size %dx%d; the input of %s is fixed to %dx%d", pre->width,
                        pre->height, path, view.width, view.height);
    emb->dim = (int)view.output[0].desc.shape[1];
    emb->batch = p->batch_max > 1 && sac_model_batches(emb->model) ? p->batch_max : 1;
    return sac_buckets_init(&emb->buckets, emb->dev, emb->model, pre, NULL, emb->batch, false,
                            "embedder input", SAC_MEMORY_REID);
}

sac_result sac_embedder_create(sac_device *dev, const char *model_path,
                               const struct sac_embedder_params *params, sac_embedder **out)
{
    SAC_NEEDS(sac_device_context(dev), dev);
    SAC_NEEDS(sac_device_context(dev), model_path);
    SAC_NEEDS(sac_device_context(dev), out);
    SAC_NEEDS_NO_LATER_FIELD(dev->ctx, params, "embedder parameters");
    struct sac_embedder_params p = params ? *params : sac_embedder_params_default();
    if (p.batch_max < 1 || p.batch_max > 1024)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "batch_max is %d; have 1 to 1024", p.batch_max);
    struct sac_embedder *emb = sac_new(struct sac_embedder);
    if (!emb)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "no memory for an embedder");
    struct sac_model_params model = sac_model_params_default();
    model.precision = p.precision;
    emb->dev = sac_device_ref(dev);
    sac_result res = sac_model_load(dev, model_path, &model, &emb->model);
    if (res == SAC_OK)
        res = set_up(emb, &p);
    if (res == SAC_OK)
        *out = emb;
    else
        sac_embedder_destroy(&emb);
    return res;
}

void sac_embedder_destroy(sac_embedder **emb_at)
{
    struct sac_embedder *emb = emb_at ? *emb_at : NULL;
    if (!emb)
        return;
    sac_buckets_finish(&emb->buckets); /* waits for what is queued */
    sac_embedding_store_close(&emb->store);
    for (int i = 0; i < SAC_EMBEDDER_SLOTS; i++) {
        for (size_t k = 0; k < emb->slots[i].mark_capacity; k++)
            sac_marks_destroy(emb->dev, &emb->slots[i].marks[k]);
        sac_free(emb->slots[i].marks);
    }
    sac_free(emb->jobs);
    sac_free(emb->frames);
    sac_model_contract_finish(&emb->contract);
    sac_model_unref(&emb->model);
    sac_device_unref(&emb->dev);
    sac_free(emb);
    *emb_at = NULL;
}

/* ---- before the first call ---- */

sac_result sac_embedder_warm_up(struct sac_embedder *emb)
{
    return sac_buckets_warm_up(&emb->buckets);
}

sac_result sac_embedder_reserve(struct sac_embedder *emb, size_t boxes)
{
    const size_t most = STORE_BYTES_MAX / ((size_t)emb->dim * sizeof(float));
    sac_result   res = SAC_ERR_MEMORY;
    for (size_t rows = SAC_MIN(boxes, most); res != SAC_OK && rows >= STORE_ROWS_MIN; rows /= 2) {
        sac_error_clear(emb->dev->ctx);
        res = sac_embedding_store_open(emb->dev, rows, emb->dim, &emb->store);
    }
    sac_error_clear(emb->dev->ctx); /* the pool may have memory later */
    return emb->store ? emb->dev->ops->stream_after(emb->dev, emb->buckets.stream, NULL) : SAC_OK;
}

void sac_embedder_time(struct sac_embedder *emb, bool on)
{
    emb->timed = on;
}

/* ---- marks ---- */

/* The next run's marks; NULL: nothing is measured. Marks beyond the count are from earlier calls,
 * or zero. */
static sac_result next_marks(struct sac_embedder *emb, struct sac_embedder_slot *slot,
                             struct sac_marks **out)
{
    const size_t had = slot->mark_capacity;
    *out = NULL;
    if (!emb->timed)
        return SAC_OK;
    if (!sac_grow((void **)&slot->marks, &slot->mark_capacity, slot->mark_count + 1,
                  sizeof *slot->marks))
        return SAC_FAIL(emb->dev->ctx, SAC_ERR_MEMORY, "no memory to measure an embedder");
    for (size_t i = had; i < slot->mark_capacity; i++)
        slot->marks[i] = (struct sac_marks){{NULL}};
    struct sac_marks *marks = &slot->marks[slot->mark_count];
    sac_result        res = marks->at[0] ? SAC_OK : sac_marks_create(emb->dev, marks);
    if (res == SAC_OK) {
        slot->mark_count++;
        *out = marks;
    }
    return res;
}

bool sac_embedder_take_gpu_ns(struct sac_embedder *emb, int64_t *ns)
{
    for (; emb->taken < emb->begun; emb->taken++) {
        const struct sac_embedder_slot *slot = &emb->slots[emb->taken % SAC_EMBEDDER_SLOTS];
        int64_t                         parts[SAC_MARK_STAGES] = {0};
        bool                            known = slot->mark_count > 0;
        if (known &&
            !emb->dev->ops->event_reached(slot->marks[slot->mark_count - 1].at[SAC_MARK_END]))
            return false;
        for (size_t i = 0; i < slot->mark_count; i++)
            known = known && sac_marks_add(emb->dev, &slot->marks[i], parts) == SAC_OK;
        if (!known)
            continue;
        *ns = parts[0] + parts[1] + parts[2];
        emb->taken++;
        return true;
    }
    return false;
}

/* The slot of a new call. Its previous marks were read, or are discarded. */
static struct sac_embedder_slot *next_slot(struct sac_embedder *emb)
{
    struct sac_embedder_slot *slot = &emb->slots[emb->begun++ % SAC_EMBEDDER_SLOTS];
    if (emb->begun - emb->taken > SAC_EMBEDDER_SLOTS)
        emb->taken = emb->begun - SAC_EMBEDDER_SLOTS;
    slot->mark_count = 0;
    return slot;
}

/* ---- a call ---- */

static sac_result make_jobs(struct sac_embedder *emb, sac_frame *const *frames,
                            const struct sac_detection *boxes, int n)
{
    if (!sac_grow((void **)&emb->jobs, &emb->jobs_capacity, (size_t)n, sizeof *emb->jobs))
        return SAC_FAIL(emb->dev->ctx, SAC_ERR_MEMORY, "no memory for %d crops", n);
    for (int i = 0; i < n; i++)
        emb->jobs[i] = (struct sac_preprocess_job){
            frames[i], sac_crop_of_box(&boxes[i], frames[i]->width, frames[i]->height)};
    return SAC_OK;
}

/* Copies a run's rows to their place, normalised to length 1. */
static sac_result take_rows(struct sac_embedder *emb, const struct sac_bucket *bucket, int n,
                            float *rows)
{
    const struct sac_tensor_desc *desc = sac_tensor_describe(bucket->out[0]);
    if (sac_tensor_desc_elements(desc) != (int64_t)bucket->size * emb->dim)
        return SAC_FAIL(emb->dev->ctx, SAC_ERR_FORMAT,
                        "%s: rows of %lld numbers; its graph promised %d",
                        sac_model_path(emb->model),
                        (long long)(sac_tensor_desc_elements(desc) / bucket->size), emb->dim);
    return sac_embed_normalise(emb->dev, emb->buckets.stream, sac_tensor_data(bucket->out[0]),
                               desc->dtype, n, emb->dim, rows);
}

static sac_result queue_runs(struct sac_embedder *emb, int total, struct sac_embeddings *f)
{
    struct sac_embedder_slot *slot = next_slot(emb);
    sac_result                res = SAC_OK;
    for (int done = 0, n; done < total && res == SAC_OK; done += n) {
        struct sac_bucket *bucket = sac_buckets_next(&emb->buckets, total - done, &n);
        struct sac_marks  *marks;
        res = next_marks(emb, slot, &marks);
        if (res == SAC_OK)
            res = sac_bucket_run(&emb->buckets, bucket, emb->jobs + done, n, marks, &emb->times);
        const int64_t made_ns = sac_time_ns();
        sac_range_push("head");
        if (res == SAC_OK)
            res =
                take_rows(emb, bucket, n, sac_embeddings_data(f) + (size_t)done * (size_t)emb->dim);
        sac_range_pop();
        emb->times.head_ns += sac_time_ns() - made_ns;
        if (res == SAC_OK && marks)
            res = emb->dev->ops->event_record(marks->at[SAC_MARK_END], emb->buckets.stream);
        if (res != SAC_OK)
            slot->mark_count = 0;
    }
    return res;
}

static sac_result take_room(struct sac_embedder *emb, int n, bool wait, struct sac_embeddings **out)
{
    if (emb->store && sac_embedding_store_take(emb->store, n, wait, out))
        return SAC_OK;
    sac_result res = sac_embeddings_create(emb->dev, n, emb->dim, out);
    /* Work queued on the device's own stream may still use this memory. */
    return res == SAC_OK ? emb->dev->ops->stream_after(emb->dev, emb->buckets.stream, NULL) : res;
}

sac_result sac_embedder_queue(struct sac_embedder *emb, sac_frame *const *frames,
                              const struct sac_detection *boxes, int n, bool wait,
                              struct sac_embeddings **out)
{
    struct sac_embeddings    *f = NULL;
    struct sac_device_stream *stream = emb->buckets.stream;
    sac_result                res = make_jobs(emb, frames, boxes, n);
    if (res == SAC_OK)
        res = take_room(emb, n, wait, &f);
    if (res == SAC_OK)
        res = queue_runs(emb, n, f);
    if (f) {
        if (f->rows)
            sac_buffer_used(f->rows, stream);
        sac_result recorded = emb->dev->ops->event_record(f->ready, stream);
        res = res == SAC_OK ? recorded : res;
    }
    if (res == SAC_OK)
        *out = f;
    else
        sac_embeddings_unref(&f);
    return res;
}

/* ---- the public run ---- */

/* Copies what a call has queued to the caller's rows. */
static sac_result fetch_rows(struct sac_embedder *emb, const struct sac_embeddings *f, float *out)
{
    const int64_t begun_ns = sac_time_ns();
    const size_t  bytes = (size_t)f->count * (size_t)emb->dim * sizeof *out;
    sac_result    res = sac_device_copy(emb->dev, emb->buckets.stream, out, sac_embeddings_data(f),
                                        bytes, SAC_COPY_DEVICE_TO_HOST, SAC_COPY_TENSOR_DOWNLOAD,
                                        "embeddings for the host");
    if (res == SAC_OK)
        res = emb->dev->ops->stream_wait(emb->buckets.stream);
    emb->times.inference_ns += sac_time_ns() - begun_ns;
    return res;
}

/* The frame of each of n boxes, as a queued call wants them. */
static sac_result list_frames(struct sac_embedder *emb, const sac_frame *frame, size_t n)
{
    emb->times = (struct sac_run_times){.begun_ns = sac_time_ns()};
    if (n > INT_MAX ||
        !sac_grow((void **)&emb->frames, &emb->frames_capacity, n, sizeof(*emb->frames)))
        return SAC_FAIL(emb->dev->ctx, SAC_ERR_MEMORY, "no memory for %zu crops", n);
    for (size_t i = 0; i < n; i++)
        emb->frames[i] = (sac_frame *)frame;
    return SAC_OK;
}

sac_result sac_embedder_run(sac_embedder *emb, const sac_frame *frame,
                            const struct sac_detection *boxes, size_t n, float *out)
{
    struct sac_embeddings *f = NULL;
    SAC_NEEDS(emb ? emb->dev->ctx : NULL, emb);
    SAC_NEEDS(emb ? emb->dev->ctx : NULL, frame);
    SAC_NEEDS_ARRAY(emb ? emb->dev->ctx : NULL, boxes, n);
    SAC_NEEDS_ARRAY(emb ? emb->dev->ctx : NULL, out, n);
    sac_result res = list_frames(emb, frame, n);
    if (res != SAC_OK || n == 0)
        return res;
    res = sac_embedder_queue(emb, emb->frames, boxes, (int)n, false, &f);
    if (res == SAC_OK)
        res = fetch_rows(emb, f, out);
    sac_embeddings_unref(&f);
    return res;
}

/* ---- rows that stay ---- */

/* Queue the rows of n >= 1 boxes into a new tensor's memory. */
static sac_result queue_into(struct sac_embedder *emb, const struct sac_detection *boxes, int n,
                             sac_tensor *t)
{
    const struct sac_device_ops *ops = emb->dev->ops;
    struct sac_device_stream    *stream = emb->buckets.stream;
    struct sac_embeddings        rows = {
               .data = sac_tensor_data(t), .dev = emb->dev, .count = n, .dim = emb->dim};
    sac_result res = make_jobs(emb, emb->frames, boxes, n);
    if (res == SAC_OK) /* work queued there may still use this memory */
        res = ops->stream_after(emb->dev, stream, NULL);
    if (res == SAC_OK)
        res = queue_runs(emb, n, &rows);
    sac_tensor_used(t, stream);
    /* also after a fault: some of it may be queued */
    sac_result behind = ops->stream_after(emb->dev, NULL, stream);
    return res == SAC_OK ? behind : res;
}

sac_result sac_embedder_run_tensor(sac_embedder *emb, const sac_frame *frame,
                                   const struct sac_detection *boxes, size_t n, sac_tensor **out)
{
    SAC_NEEDS(emb ? emb->dev->ctx : NULL, emb);
    SAC_NEEDS(emb ? emb->dev->ctx : NULL, frame);
    SAC_NEEDS(emb ? emb->dev->ctx : NULL, out);
    SAC_NEEDS_ARRAY(emb ? emb->dev->ctx : NULL, boxes, n);
    const struct sac_tensor_desc desc = {
        .dtype = SAC_F32, .rank = 2, .shape = {(int64_t)n, emb->dim}};
    sac_tensor *t = NULL;
    sac_result  res = list_frames(emb, frame, n);
    if (res == SAC_OK)
        res = sac_tensor_create(emb->dev, &desc, "embeddings", &t);
    if (res == SAC_OK && n > 0)
        res = queue_into(emb, boxes, (int)n, t);
    if (res == SAC_OK)
        *out = t;
    else
        sac_tensor_unref(&t);
    return res;
}

/* ---- questions ---- */

void sac_embedder_get_times(const sac_embedder *emb, struct sac_run_times *out)
{
    if (!emb || !out)
        return;
    *out = emb->times;
}

int sac_embedder_dim(const sac_embedder *emb)
{
    if (!emb)
        return 0;
    return emb->dim;
}

const struct sac_model_contract *sac_embedder_contract(const sac_embedder *emb)
{
    if (!emb)
        return NULL;
    return &emb->contract;
}

sac_model *sac_embedder_model(const sac_embedder *emb)
{
    if (!emb)
        return NULL;
    return emb->model;
}
