/* SPDX-License-Identifier: Apache-2.0 */
/* A detector's batches: frames to boxes, on one stream unless its buckets are split. Only the boxes
 * are copied to the host, some hundred bytes a frame. */
#include "base/range.h"
#include "heads/detector.h"
#include "vision/fit.h"

/* ---- opening ---- */

static sac_result slot_open(struct sac_detector *det, struct sac_detector_slot *slot)
{
    const size_t n = (size_t)det->batch;
    slot->parts = sac_calloc(n, sizeof *slot->parts);
    slot->maps = sac_calloc(n, sizeof *slot->maps);
    if (!slot->parts || !slot->maps)
        return SAC_FAIL(det->dev->ctx, SAC_ERR_MEMORY, "no memory for a batch of %zu frames", n);
    sac_result res = sac_batch_open(&det->buckets, &slot->batch, det->batch);
    for (int i = 0; i < slot->batch.size; i++)
        slot->parts[i].run = &slot->batch.parts[i];
    return res;
}

sac_result sac_detector_batch_open(struct sac_detector *det)
{
    sac_result res =
        sac_buckets_init(&det->buckets, det->dev, det->model, &det->contract.pre, &det->view.feed,
                         det->batch, true, "detector input", SAC_MEMORY_PREPROCESS);
    if (res == SAC_OK)
        res = sac_detector_boxes_open(det);
    for (int i = 0; i < SAC_DETECTOR_SLOTS && res == SAC_OK; i++)
        res = slot_open(det, &det->slots[i]);
    return res;
}

static void release_outputs(struct sac_detector *det, struct sac_detector_part *part)
{
    for (int i = 0; i < SAC_HEAD_OUTPUTS_MAX; i++) {
        if (part->out[i])
            sac_tensor_used(part->out[i], det->buckets.behind);
        sac_tensor_unref(&part->out[i]);
    }
}

static void slot_close(struct sac_detector *det, struct sac_detector_slot *slot)
{
    for (int i = 0; slot->parts && i < det->batch; i++)
        release_outputs(det, &slot->parts[i]);
    sac_batch_close(&det->buckets, &slot->batch);
    sac_mirror_close(&slot->host);
    sac_buffer_unref(&slot->boxes);
    sac_free(slot->parts);
    sac_free(slot->maps);
}

void sac_detector_batch_close(struct sac_detector *det)
{
    if (det->buckets.stream)
        sac_buckets_wait(&det->buckets);
    for (int i = 0; i < SAC_DETECTOR_SLOTS; i++)
        slot_close(det, &det->slots[i]);
    sac_buckets_finish(&det->buckets);
    if (det->fetch)
        det->dev->ops->stream_destroy(&det->fetch);
    sac_head_outputs_finish(&det->outputs);
    sac_device_unref(&det->host);
}

/* ---- begin ---- */

static sac_result queue_part(struct sac_detector *det, struct sac_detector_slot *slot,
                             struct sac_detector_part *part)
{
    sac_result res = sac_batch_run(&det->buckets, &slot->batch, part->run, det->jobs);
    sac_range_push("head");
    if (res == SAC_OK)
        res = sac_detector_lay_out(det, part->run->bucket, &part->spec);
    if (res == SAC_OK)
        res = sac_detector_reserve_boxes(det, slot);
    if (res == SAC_OK)
        res = sac_detector_queue_boxes(det, slot, part);
    sac_range_pop();
    return res;
}

static void clear(struct sac_detector *det, struct sac_detector_slot *slot)
{
    for (int i = 0; i < slot->batch.part_count; i++)
        release_outputs(det, &slot->parts[i]);
    slot->batch.part_count = 0;
}

static sac_result check_count(const struct sac_detector *det, int n)
{
    if (n >= 1 && n <= det->batch)
        return SAC_OK;
    return SAC_FAIL(det->dev->ctx, SAC_ERR_INTERNAL, "%s: a batch of %d frames; it takes 1 to %d",
                    sac_model_path(det->model), n, det->batch);
}

/* The slot's maps and the jobs are made. */
static sac_result begin(struct sac_detector *det, struct sac_detector_slot *slot, int n)
{
    sac_result res = SAC_OK;
    sac_batch_begin(&det->buckets, &slot->batch, n);
    for (int i = 0; i < slot->batch.part_count && res == SAC_OK; i++)
        res = queue_part(det, slot, &slot->parts[i]);
    res = sac_batch_queued(&det->buckets, &slot->batch, res);
    if (res != SAC_OK)
        clear(det, slot);
    return res;
}

sac_result sac_detector_begin(struct sac_detector *det, int index, sac_frame *const *frames,
                              const struct sac_batch_images *images, int n)
{
    struct sac_detector_slot    *slot = &det->slots[index];
    const struct sac_preprocess *pre = &det->contract.pre;
    sac_result                   res = check_count(det, n);
    if (res != SAC_OK)
        return res;
    for (int i = 0; i < n; i++) {
        const struct sac_kept_image *kept =
            images && images->kept[i].pixels ? &images->kept[i] : NULL;
        if (!kept && !frames[i])
            return SAC_FAIL(det->dev->ctx, SAC_ERR_ARG, "detector: frame %d of %d is missing", i,
                            n);
        const struct sac_rect whole = {0, 0, (float)(kept ? kept->width : frames[i]->width),
                                       (float)(kept ? kept->height : frames[i]->height)};
        slot->maps[i] = sac_fit_map_of(pre, &whole);
        det->jobs[i] = (struct sac_preprocess_job){.frame = kept ? NULL : frames[i]};
    }
    sac_buckets_set_images(&det->buckets, images);
    res = begin(det, slot, n);
    sac_buckets_set_images(&det->buckets, NULL);
    return res;
}

sac_result sac_detector_begin_given(struct sac_detector *det, int index, sac_tensor *images,
                                    int64_t first, int n)
{
    struct sac_detector_slot *slot = &det->slots[index];
    sac_result                res = check_count(det, n);
    if (res == SAC_OK)
        res = sac_buckets_give(&det->buckets, images, first);
    for (int i = 0; i < n && res == SAC_OK; i++) {
        slot->maps[i] = (struct sac_fit_map){1, 1, 0, 0};
        det->jobs[i] = (struct sac_preprocess_job){.frame = NULL};
    }
    if (res == SAC_OK)
        res = begin(det, slot, n);
    sac_buckets_give(&det->buckets, NULL, 0);
    return res;
}

/* ---- end ---- */

bool sac_detector_arrived(const struct sac_detector *det, int slot)
{
    return sac_batch_arrived(&det->buckets, &det->slots[slot].batch);
}

sac_result sac_detector_end(struct sac_detector *det, int index, struct sac_detections *found,
                            struct sac_batch_times *times)
{
    struct sac_detector_slot *slot = &det->slots[index];
    sac_result                res = sac_batch_await(&det->buckets, &slot->batch);
    sac_range_push("head");
    for (int i = 0; i < slot->batch.part_count && res == SAC_OK; i++)
        res =
            sac_detector_take_boxes(det, slot, &slot->parts[i], found + slot->parts[i].run->first);
    sac_range_pop();
    slot->batch.times.ended_ns = sac_time_ns();
    *times = slot->batch.times;
    clear(det, slot);
    return res;
}

/* ---- before ---- */

sac_result sac_detector_warm_up(struct sac_detector *det)
{
    sac_result res = sac_buckets_warm_up(&det->buckets);
    if (res != SAC_OK || det->dev->ops->warm_runs == 0)
        return res;
    res = sac_detector_lay_out(det, &det->buckets.list[0], &det->slots[0].parts[0].spec);
    for (int i = 0; i < SAC_DETECTOR_SLOTS && res == SAC_OK; i++)
        res = sac_detector_reserve_boxes(det, &det->slots[i]);
    return res == SAC_OK ? sac_detector_warm_up_boxes(det) : res;
}
