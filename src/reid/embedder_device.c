/* SPDX-License-Identifier: Apache-2.0 */
/* Embeddings: crops of all frames of a batch in one launch, as few runs of the network as its
 * buckets allow, rows normalised to length 1 on the device. */
#include "vision/embed.h"
#include "vision/fit.h"
#include "reid/embedder.h"

enum { STORE_ROWS_MIN = 64, STORE_BYTES_MAX = 64 << 20 };

/* ---- opening ---- */

sac_result sac_embedder_device_open(struct sac_embedder *emb)
{
    struct sac_embedder_device *d = emb->device = sac_new(struct sac_embedder_device);
    if (!d)
        return SAC_FAIL(emb->dev->ctx, SAC_ERR_MEMORY, "no memory for an embedder");
    return sac_buckets_init(&d->buckets, emb->dev, emb->model, &emb->contract.pre, NULL, emb->batch,
                            false, "embedder input");
}

void sac_embedder_device_close(struct sac_embedder *emb)
{
    struct sac_embedder_device *d = emb->device;
    if (!d)
        return;
    sac_buckets_finish(&d->buckets);
    sac_feature_store_close(&d->store);
    for (int i = 0; i < SAC_EMBEDDER_SLOTS; i++) {
        for (size_t k = 0; k < d->slots[i].mark_capacity; k++)
            sac_marks_destroy(emb->dev, &d->slots[i].marks[k]);
        sac_free(d->slots[i].marks);
    }
    sac_free(d->jobs);
    sac_free(d->frames);
    sac_free(d);
    emb->device = NULL;
}

sac_result sac_embedder_warm_up(struct sac_embedder *emb)
{
    return sac_buckets_warm_up(&emb->device->buckets);
}

sac_result sac_embedder_reserve(struct sac_embedder *emb, size_t boxes)
{
    struct sac_embedder_device *d = emb->device;
    const size_t                most = STORE_BYTES_MAX / ((size_t)emb->dim * sizeof(float));
    sac_result                  res = SAC_ERR_MEMORY;
    for (size_t rows = SAC_MIN(boxes, most); res != SAC_OK && rows >= STORE_ROWS_MIN; rows /= 2) {
        sac_error_clear(emb->dev->ctx);
        res = sac_feature_store_open(emb->dev, rows, emb->dim, &d->store);
    }
    sac_error_clear(emb->dev->ctx); /* the pool may have memory later */
    return d->store ? emb->dev->ops->stream_after(emb->dev, d->buckets.stream, NULL) : SAC_OK;
}

void sac_embedder_time(struct sac_embedder *emb, bool on)
{
    emb->device->timed = on;
}

/* ---- marks ---- */

/* The next run's marks; NULL: nothing is measured. Marks beyond the count are from earlier calls,
 * or zero. */
static sac_result next_marks(struct sac_embedder *emb, struct sac_embedder_slot *slot,
                             struct sac_marks **out)
{
    const size_t had = slot->mark_capacity;
    *out = NULL;
    if (!emb->device->timed)
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
    struct sac_embedder_device *d = emb->device;
    for (; d->taken < d->begun; d->taken++) {
        const struct sac_embedder_slot *slot = &d->slots[d->taken % SAC_EMBEDDER_SLOTS];
        int64_t                         parts[SAC_MARK_COUNT - 1] = {0};
        bool                            known = slot->mark_count > 0;
        if (known &&
            !emb->dev->ops->event_reached(slot->marks[slot->mark_count - 1].at[SAC_MARK_END]))
            return false;
        for (size_t i = 0; i < slot->mark_count; i++)
            known = known && sac_marks_add(emb->dev, &slot->marks[i], parts) == SAC_OK;
        if (!known)
            continue;
        *ns = parts[0] + parts[1] + parts[2];
        d->taken++;
        return true;
    }
    return false;
}

/* The slot of a new call. Its previous marks were read, or are discarded. */
static struct sac_embedder_slot *next_slot(struct sac_embedder_device *d)
{
    struct sac_embedder_slot *slot = &d->slots[d->begun++ % SAC_EMBEDDER_SLOTS];
    if (d->begun - d->taken > SAC_EMBEDDER_SLOTS)
        d->taken = d->begun - SAC_EMBEDDER_SLOTS;
    slot->mark_count = 0;
    return slot;
}

/* ---- a call ---- */

static sac_result make_jobs(struct sac_embedder *emb, sac_frame *const *frames,
                            const struct sac_detection *boxes, int n)
{
    struct sac_embedder_device *d = emb->device;
    if (!sac_grow((void **)&d->jobs, &d->jobs_capacity, (size_t)n, sizeof *d->jobs))
        return SAC_FAIL(emb->dev->ctx, SAC_ERR_MEMORY, "no memory for %d crops", n);
    for (int i = 0; i < n; i++)
        d->jobs[i] = (struct sac_preprocess_job){
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
    return sac_embed_normalise(emb->dev, emb->device->buckets.stream,
                               sac_tensor_data(bucket->out[0]), desc->dtype, n, emb->dim, rows);
}

static sac_result queue_runs(struct sac_embedder *emb, int total, struct sac_features *f)
{
    struct sac_embedder_device *d = emb->device;
    struct sac_embedder_slot   *slot = next_slot(d);
    sac_result                  res = SAC_OK;
    for (int done = 0, n; done < total && res == SAC_OK; done += n) {
        struct sac_bucket *bucket = sac_buckets_next(&d->buckets, total - done, &n);
        struct sac_marks  *marks;
        res = next_marks(emb, slot, &marks);
        if (res == SAC_OK)
            res = sac_bucket_run(&d->buckets, bucket, d->jobs + done, n, marks, &emb->times);
        const int64_t made_ns = sac_time_ns();
        if (res == SAC_OK)
            res = take_rows(emb, bucket, n, sac_features_data(f) + (size_t)done * (size_t)emb->dim);
        emb->times.head_ns += sac_time_ns() - made_ns;
        if (res == SAC_OK && marks)
            res = emb->dev->ops->event_record(marks->at[SAC_MARK_END], d->buckets.stream);
        if (res != SAC_OK)
            slot->mark_count = 0;
    }
    return res;
}

static sac_result take_room(struct sac_embedder *emb, int n, bool wait, struct sac_features **out)
{
    struct sac_embedder_device *d = emb->device;
    if (d->store && sac_feature_store_take(d->store, n, wait, out))
        return SAC_OK;
    sac_result res = sac_features_create(emb->dev, n, emb->dim, out);
    /* Work queued on the device's own stream may still use this memory. */
    return res == SAC_OK ? emb->dev->ops->stream_after(emb->dev, d->buckets.stream, NULL) : res;
}

sac_result sac_embedder_queue(struct sac_embedder *emb, sac_frame *const *frames,
                              const struct sac_detection *boxes, int n, bool wait,
                              struct sac_features **out)
{
    struct sac_features *f = NULL;
    struct sac_stream   *stream = emb->device->buckets.stream;
    sac_result           res = make_jobs(emb, frames, boxes, n);
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
        sac_features_unref(&f);
    return res;
}

sac_result sac_embedder_run_there(struct sac_embedder *emb, const sac_frame *frame,
                                  const struct sac_detection *boxes, size_t n, float *out)
{
    struct sac_embedder_device *d = emb->device;
    struct sac_stream          *stream = d->buckets.stream;
    struct sac_features        *f = NULL;
    if (n == 0)
        return SAC_OK;
    if (!sac_grow((void **)&d->frames, &d->frames_capacity, n, sizeof(*d->frames)))
        return SAC_FAIL(emb->dev->ctx, SAC_ERR_MEMORY, "no memory for %zu crops", n);
    for (size_t i = 0; i < n; i++)
        d->frames[i] = (sac_frame *)frame;
    sac_result    res = sac_embedder_queue(emb, d->frames, boxes, (int)n, false, &f);
    const int64_t queued_ns = sac_time_ns();
    if (res == SAC_OK)
        res = sac_device_copy(emb->dev, stream, out, sac_features_data(f),
                              n * (size_t)emb->dim * sizeof *out, SAC_COPY_DEVICE_TO_HOST,
                              SAC_COPY_TENSOR_DOWNLOAD, "embeddings for the host");
    if (res == SAC_OK)
        res = emb->dev->ops->stream_wait(stream);
    emb->times.inference_ns += sac_time_ns() - queued_ns;
    sac_features_unref(&f);
    return res;
}
