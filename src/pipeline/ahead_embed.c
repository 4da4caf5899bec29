/* SPDX-License-Identifier: Apache-2.0 */
/* The embeddings of a batch: crops of all its frames at once; the rows stay on the device. */
#include "device/device.h"
#include "pipeline/ahead.h"
#include "reid/embedder.h"

/* Append the crops of an item's detections to those of the items before it; -1: no memory. */
static int add_crops(struct sac_ahead *a, struct sac_item *item, int count)
{
    const size_t n = item->found.count;
    if (!sac_grow((void **)&item->feat_row, &item->feat_row_capacity, n, sizeof *item->feat_row) ||
        !sac_grow((void **)&a->crops, &a->crops_capacity, (size_t)count + n, sizeof *a->crops) ||
        !sac_grow((void **)&a->crop_frames, &a->crop_frames_capacity, (size_t)count + n,
                  sizeof(*a->crop_frames)))
        return -1;
    for (size_t i = 0; i < n; i++) {
        item->feat_row[i] = -1;
        if (!sac_job_wants_embedding(a->job, &item->found.items[i]))
            continue;
        a->crops[count] = item->found.items[i];
        a->crop_frames[count] = item->frame;
        item->feat_row[i] = count++;
    }
    return count;
}

static bool is_embedded(const struct sac_item *item)
{
    return !item->last && item->status == SAC_OK && item->frame;
}

/* all: the items are the whole batch, and none has rows yet. */
static sac_result embed_items(struct sac_ahead *a, struct sac_item **items, size_t n, bool all)
{
    struct sac_features *features = NULL;
    sac_result           res = SAC_OK;
    int                  count = 0;
    for (size_t i = 0; i < n && count >= 0; i++)
        if (is_embedded(items[i]))
            count = add_crops(a, items[i], count);
    if (count < 0)
        return SAC_FAIL(a->job->ctx, SAC_ERR_MEMORY, "no memory for the crops of %zu frames", n);
    if (count > 0)
        res = sac_embedder_queue(a->job->emb, a->crop_frames, a->crops, count, all, &features);
    for (size_t i = 0; i < n && features; i++)
        if (is_embedded(items[i]))
            items[i]->features = sac_features_ref(features);
    sac_features_unref(&features);
    return res;
}

static void record_reid(struct sac_ahead *a, const struct sac_ahead_batch *b, int64_t begun)
{
    struct sac_job *job = a->job;
    const int64_t   ended = sac_time_ns();
    int64_t         gpu_ns;
    for (size_t i = 0; i < b->count; i++)
        b->items[i]->reid_ns = ended - begun;
    if (!job->measures)
        return;
    int n = sac_ahead_line_up(a, b);
    sac_job_record(job, SAC_STAGE_REID, begun, ended, (const struct sac_item *const *)a->seen, n);
    while (sac_embedder_take_gpu_ns(job->emb, &gpu_ns))
        sac_job_record_gpu(job, SAC_STAGE_REID, 0, gpu_ns, NULL, 0);
}

void sac_ahead_embed(struct sac_ahead *a, struct sac_ahead_batch *b)
{
    const int64_t begun = sac_time_ns();
    sac_result    res = embed_items(a, b->items, b->count, true);
    if (res != SAC_OK && sac_is_out_of_memory(res)) {
        sac_device_pool_trim(a->job->dev);
        res = embed_items(a, b->items, b->count, true);
    }
    for (size_t i = 0; i < b->count && res != SAC_OK; i++) {
        sac_result one = is_embedded(b->items[i]) ? embed_items(a, &b->items[i], 1, false) : SAC_OK;
        if (one != SAC_OK)
            sac_job_fail_item(a->job, b->items[i], one);
    }
    record_reid(a, b, begun);
}
