/* SPDX-License-Identifier: Apache-2.0 */
/* A detector's batches: frames to boxes on one stream. Only the boxes are copied to the host, some
 * hundred bytes a frame. */
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
    return det->dev->ops->event_create(det->dev, false, &slot->done);
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
            sac_tensor_used(part->out[i], det->buckets.stream);
        sac_tensor_unref(&part->out[i]);
    }
}

static void slot_close(struct sac_detector *det, struct sac_detector_slot *slot)
{
    for (int i = 0; slot->parts && i < det->batch; i++) {
        sac_marks_destroy(det->dev, &slot->parts[i].marks);
        release_outputs(det, &slot->parts[i]);
    }
    if (slot->done)
        det->dev->ops->event_destroy(&slot->done);
    sac_mirror_close(&slot->host);
    sac_buffer_unref(&slot->boxes);
    sac_free(slot->parts);
    sac_free(slot->maps);
}

void sac_detector_batch_close(struct sac_detector *det)
{
    if (det->buckets.stream)
        det->dev->ops->stream_wait(det->buckets.stream);
    for (int i = 0; i < SAC_DETECTOR_SLOTS; i++)
        slot_close(det, &det->slots[i]);
    if (det->anchor)
        det->dev->ops->event_destroy(&det->anchor);
    sac_buckets_finish(&det->buckets);
    if (det->fetch)
        det->dev->ops->stream_destroy(&det->fetch);
    sac_head_outputs_finish(&det->outputs);
    sac_device_unref(&det->host);
}

/* ---- begin ---- */

static sac_result queue_part(struct sac_detector *det, struct sac_detector_slot *slot,
                             struct sac_detector_part *part, struct sac_run_times *times)
{
    sac_result res = SAC_OK;
    if (det->timed && !part->marks.at[0])
        res = sac_marks_create(det->dev, &part->marks);
    if (res == SAC_OK)
        res = sac_bucket_run(&det->buckets, part->bucket, det->jobs + part->first, part->n,
                             det->timed ? &part->marks : NULL, times);
    if (res == SAC_OK)
        res = sac_detector_lay_out(det, part->bucket, &part->spec);
    if (res == SAC_OK)
        res = sac_detector_reserve_boxes(det, slot);
    return res == SAC_OK ? sac_detector_queue_boxes(det, slot, part) : res;
}

static void cut(struct sac_detector *det, struct sac_detector_slot *slot)
{
    slot->part_count = 0;
    for (int first = 0, n; first < slot->n; first += n) {
        struct sac_detector_part *part = &slot->parts[slot->part_count++];
        part->bucket = sac_buckets_next(&det->buckets, slot->n - first, &n);
        part->first = first;
        part->n = n;
    }
}

static void clear(struct sac_detector *det, struct sac_detector_slot *slot)
{
    for (int i = 0; i < slot->part_count; i++)
        release_outputs(det, &slot->parts[i]);
    slot->n = slot->part_count = 0;
}

sac_result sac_detector_begin(struct sac_detector *det, int index, sac_frame *const *frames, int n)
{
    struct sac_detector_slot    *slot = &det->slots[index];
    const struct sac_preprocess *pre = &det->contract.pre;
    struct sac_run_times         times = {0};
    sac_result                   res = SAC_OK;
    if (n < 1 || n > det->batch)
        return SAC_FAIL(det->dev->ctx, SAC_ERR_INTERNAL,
                        "%s: a batch of %d frames; it takes 1 to %d", sac_model_path(det->model), n,
                        det->batch);
    slot->times = (struct sac_detector_times){.begun_ns = sac_time_ns()};
    slot->n = n;
    for (int i = 0; i < n; i++) {
        if (!frames[i])
            return SAC_FAIL(det->dev->ctx, SAC_ERR_ARG, "detector: frame %d of %d is missing", i,
                            n);
        const struct sac_rect whole = {0, 0, (float)frames[i]->width, (float)frames[i]->height};
        slot->maps[i] = sac_fit_map_of(pre, &whole);
        det->jobs[i] = (struct sac_preprocess_job){.frame = frames[i]};
    }
    cut(det, slot);
    for (int i = 0; i < slot->part_count && res == SAC_OK; i++)
        res = queue_part(det, slot, &slot->parts[i], &times);
    if (res == SAC_OK)
        res = det->dev->ops->event_record(slot->done, det->buckets.stream);
    slot->times.prepared_ns = slot->times.begun_ns + times.preprocess_ns;
    slot->times.queued_ns = slot->times.prepared_ns + times.inference_ns;
    slot->times.decoded_ns = sac_time_ns();
    if (res != SAC_OK) {
        /* What was queued reads the frames. */
        det->dev->ops->stream_wait(det->buckets.stream);
        clear(det, slot);
    }
    return res;
}

/* ---- end ---- */

bool sac_detector_arrived(const struct sac_detector *det, int slot)
{
    return det->dev->ops->event_reached(det->slots[slot].done);
}

static sac_result take_marks(struct sac_detector *det, struct sac_detector_slot *slot,
                             const struct sac_detector_part *part)
{
    int64_t since = 0;
    if (!det->timed || !part->marks.at[0])
        return SAC_OK;
    if (part->first == 0 &&
        det->dev->ops->event_elapsed(det->anchor, part->marks.at[SAC_MARK_BEGIN], &since) == SAC_OK)
        slot->times.gpu_begun_ns = det->anchor_ns + since;
    return sac_marks_add(det->dev, &part->marks, slot->times.gpu_ns);
}

sac_result sac_detector_end(struct sac_detector *det, int index, struct sac_detections *found,
                            struct sac_detector_times *times)
{
    struct sac_detector_slot *slot = &det->slots[index];
    slot->times.waited_ns = sac_time_ns();
    sac_result res = det->dev->ops->event_wait(slot->done);
    slot->times.arrived_ns = sac_time_ns();
    for (int i = 0; i < slot->part_count && res == SAC_OK; i++) {
        struct sac_detector_part *part = &slot->parts[i];
        res = sac_detector_take_boxes(det, slot, part, found + part->first);
        if (res == SAC_OK)
            res = take_marks(det, slot, part);
    }
    slot->times.ended_ns = sac_time_ns();
    *times = slot->times;
    clear(det, slot);
    return res;
}

/* ---- before and beside ---- */

sac_result sac_detector_time(struct sac_detector *det, bool on)
{
    const struct sac_device_ops *ops = det->dev->ops;
    sac_result                   res = SAC_OK;
    if (on && !det->anchor) {
        res = ops->event_create(det->dev, true, &det->anchor);
        if (res == SAC_OK)
            res = ops->event_record(det->anchor, det->buckets.stream);
        if (res == SAC_OK)
            res = ops->event_wait(det->anchor);
        det->anchor_ns = sac_time_ns();
    }
    det->timed = on && res == SAC_OK;
    return res;
}

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
