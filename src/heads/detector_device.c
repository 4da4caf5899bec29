/* SPDX-License-Identifier: Apache-2.0 */
/* Frames to boxes on one stream. Only the boxes are copied to the host, some hundred bytes a
 * frame. */
#include <string.h>

#include "vision/fit.h"
#include "heads/detector.h"

enum { BOXES_EXPECTED = 24, BOXES_LEAST = 4 }; /* in a frame: at first, and at least */

/* ---- opening ---- */

/* Log why the device cannot decode the outputs itself; the host does it then. */
static void decode_on_host(struct sac_detector *det, const char *why)
{
    if (!det->device->on_host && !det->dev->ops->host_memory)
        sac_log(det->dev->ctx, SAC_LOG_WARN,
                "%s: head '%s' is decoded on the host, %s: the network's outputs are copied to it",
                sac_model_path(det->model), det->head->name, why);
    det->device->on_host = true;
}

static void want_classes(struct sac_detector *det, struct sac_detect_spec *s)
{
    s->all_classes = !det->wanted;
    for (size_t i = 0; i < det->wanted_count; i++) {
        int class_id = det->wanted[i];
        if (class_id < SAC_DETECT_CLASSES_MAX)
            s->wanted[class_id / 32] |= 1u << (class_id % 32);
        else
            decode_on_host(det, "as a class has a number beyond the device's");
    }
}

static sac_result slot_open(struct sac_detector *det, struct sac_detector_slot *slot)
{
    const size_t n = (size_t)det->batch;
    slot->parts = sac_calloc(n, sizeof *slot->parts);
    slot->maps = sac_calloc(n, sizeof *slot->maps);
    if (!slot->parts || !slot->maps)
        return SAC_FAIL(det->dev->ctx, SAC_ERR_MEMORY, "no memory for a batch of %zu frames", n);
    return det->dev->ops->event_create(det->dev, false, &slot->done);
}

sac_result sac_detector_device_open(struct sac_detector *det)
{
    struct sac_detector_device *d = det->device = sac_new(struct sac_detector_device);
    if (!d)
        return SAC_FAIL(det->dev->ctx, SAC_ERR_MEMORY, "no memory for a detector");
    want_classes(det, &d->spec);
    if (!det->head->layout)
        decode_on_host(det, "a plug-in");
    sac_result res =
        sac_buckets_init(&d->buckets, det->dev, det->model, &det->contract.pre, &det->view.feed,
                         det->batch, true, "detector input"); /* as
                                                                 live.c
                                                                 knows
                                                                 preprocessing
                                                                 by */
    if (res == SAC_OK)
        res = det->dev->ops->stream_create(det->dev, &d->fetch);
    d->boxes_expected = 100 * BOXES_EXPECTED;
    for (int i = 0; i < SAC_DETECTOR_SLOTS && res == SAC_OK; i++)
        res = slot_open(det, &d->slots[i]);
    return res;
}

static void release_outputs(struct sac_detector *det, struct sac_detector_part *part)
{
    for (int i = 0; i < SAC_HEAD_OUTPUTS_MAX; i++) {
        if (part->out[i])
            sac_tensor_used(part->out[i], det->device->buckets.stream);
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

void sac_detector_device_close(struct sac_detector *det)
{
    struct sac_detector_device *d = det->device;
    if (!d)
        return;
    if (d->buckets.stream)
        det->dev->ops->stream_wait(d->buckets.stream);
    for (int i = 0; i < SAC_DETECTOR_SLOTS; i++)
        slot_close(det, &d->slots[i]);
    if (d->anchor)
        det->dev->ops->event_destroy(&d->anchor);
    sac_buckets_finish(&d->buckets);
    if (d->fetch)
        det->dev->ops->stream_destroy(&d->fetch);
    sac_free(d);
    det->device = NULL;
}

/* ---- the head ---- */

/* Once a run has shown what the outputs look like. */
static sac_result lay_out(struct sac_detector *det, const struct sac_bucket *bucket)
{
    struct sac_detector_device  *d = det->device;
    struct sac_detect_spec      *s = &d->spec;
    enum sac_dtype               dtypes[SAC_HEAD_OUTPUTS_MAX];
    const struct sac_preprocess *pre = &det->contract.pre;
    sac_result                   res =
        sac_head_outputs_shape(&det->outputs, det->dev, det->model, bucket->out, bucket->size);
    if (res != SAC_OK)
        return res;
    const struct sac_head_input in = {det->outputs.tensor, det->outputs.count, pre->width,
                                      pre->height, det->score_min};
    for (int i = 0; i < in.count; i++)
        dtypes[i] = sac_tensor_describe(bucket->out[i])->dtype;
    s->tensor_count = SAC_MIN(in.count, (int)SAC_DETECT_TENSORS_MAX);
    s->input_width = pre->width;
    s->input_height = pre->height;
    s->score_min = det->score_min;
    s->nms_iou = det->nms_iou;
    s->nms = det->head->needs_nms;
    d->laid_out = true;
    if (d->on_host)
        return SAC_OK;
    if (bucket->varies) {
        decode_on_host(det, "as only the data of each picture tells their shape");
        return SAC_OK;
    }
    if (!det->head->layout(&in, &det->view.facts, s) || !sac_head_has_room(s->cells, s->classes)) {
        decode_on_host(det, "as its outputs are none that the device decodes");
        return SAC_OK;
    }
    s->keep = SAC_CLAMP((int)det->detection_max, 1, SAC_MAX(s->cells, 1));
    sac_detect_set_dtypes(s, dtypes);
    return SAC_OK;
}

/* Room for the boxes of a whole batch, however it is cut; lists begin at multiples of 256 bytes. */
static size_t list_bytes(const struct sac_detector *det, int n)
{
    return (sac_detect_out_bytes(&det->device->spec, n) + 255) & ~(size_t)255;
}

static sac_result ensure_boxes(struct sac_detector *det, struct sac_detector_slot *slot)
{
    const size_t bytes = (size_t)det->batch * list_bytes(det, 1);
    sac_result   res = SAC_OK;
    if (slot->host.data)
        return SAC_OK;
    if (!slot->boxes)
        res = sac_buffer_create(det->dev, bytes, "boxes", &slot->boxes);
    if (res == SAC_OK)
        res = sac_mirror_open(det->dev, sac_buffer_data(slot->boxes), bytes, "boxes", &slot->host);
    /* Work queued on the device's own stream may still use this memory. */
    return res == SAC_OK ? det->dev->ops->stream_after(det->dev, det->device->buckets.stream, NULL)
                         : res;
}

static sac_result run_head(struct sac_detector *det, const struct sac_bucket *bucket,
                           const struct sac_fit_map *maps, int n, void *boxes)
{
    struct sac_detector_device *d = det->device;
    const void                 *tensors[SAC_DETECT_TENSORS_MAX] = {NULL};
    for (int i = 0; i < d->spec.tensor_count; i++)
        tensors[i] = sac_tensor_data(bucket->out[i]);
    return sac_detect_run(det->dev, d->buckets.stream, &d->spec, tensors, maps, n, boxes);
}

static sac_result queue_head(struct sac_detector *det, struct sac_detector_slot *slot,
                             struct sac_detector_part *part)
{
    struct sac_detector_device *d = det->device;
    char                       *boxes = (char *)sac_buffer_data(slot->boxes) + part->boxes_at;
    sac_result res = run_head(det, part->bucket, slot->maps + part->first, part->n, boxes);
    if (res == SAC_OK && d->timed)
        res = det->dev->ops->event_record(part->marks.at[SAC_MARK_END], d->buckets.stream);
    part->expected = (size_t)part->n * d->boxes_expected / 100 + 1;
    if (res == SAC_OK)
        res = sac_detect_fetch_begin(det->dev, d->buckets.stream, &d->spec, boxes, part->n,
                                     part->expected, (char *)slot->host.data + part->boxes_at);
    return res;
}

/* The bucket's next run creates new outputs: the batch keeps these until it ends. */
static sac_result keep_outputs(struct sac_detector *det, struct sac_detector_part *part)
{
    memcpy(part->out, part->bucket->out, sizeof part->out);
    memset(part->bucket->out, 0, sizeof part->bucket->out);
    if (det->device->timed)
        return det->dev->ops->event_record(part->marks.at[SAC_MARK_END],
                                           det->device->buckets.stream);
    return SAC_OK;
}

/* ---- begin ---- */

static sac_result queue_part(struct sac_detector *det, struct sac_detector_slot *slot,
                             struct sac_detector_part *part, struct sac_run_times *times)
{
    struct sac_detector_device *d = det->device;
    sac_result                  res = SAC_OK;
    if (d->timed && !part->marks.at[0])
        res = sac_marks_create(det->dev, &part->marks);
    if (res == SAC_OK)
        res = sac_bucket_run(&d->buckets, part->bucket, det->jobs + part->first, part->n,
                             d->timed ? &part->marks : NULL, times);
    if (res == SAC_OK && !d->laid_out)
        res = lay_out(det, part->bucket);
    if (res != SAC_OK || d->on_host)
        return res == SAC_OK ? keep_outputs(det, part) : res;
    res = ensure_boxes(det, slot);
    return res == SAC_OK ? queue_head(det, slot, part) : res;
}

static void cut(struct sac_detector *det, struct sac_detector_slot *slot)
{
    slot->part_count = 0;
    for (int first = 0, n; first < slot->n; first += n) {
        struct sac_detector_part *part = &slot->parts[slot->part_count++];
        part->bucket = sac_buckets_next(&det->device->buckets, slot->n - first, &n);
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
    struct sac_detector_slot    *slot = &det->device->slots[index];
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
            return SAC_FAIL(det->dev->ctx, SAC_ERR_ARG, "detector: frame %d of %d is missing", i, n);
        const struct sac_rect whole = {0, 0, (float)frames[i]->width, (float)frames[i]->height};
        slot->maps[i] = sac_fit_map_of(pre, &whole);
        det->jobs[i] = (struct sac_preprocess_job){.frame = frames[i]};
    }
    cut(det, slot);
    for (int i = 0; i < slot->part_count && res == SAC_OK; i++) {
        if (det->device->laid_out && !det->device->on_host)
            slot->parts[i].boxes_at = (size_t)slot->parts[i].first * list_bytes(det, 1);
        res = queue_part(det, slot, &slot->parts[i], &times);
    }
    if (res == SAC_OK)
        res = det->dev->ops->event_record(slot->done, det->device->buckets.stream);
    slot->times.prepared_ns = slot->times.begun_ns + times.preprocess_ns;
    slot->times.queued_ns = slot->times.prepared_ns + times.inference_ns;
    slot->times.decoded_ns = sac_time_ns();
    if (res != SAC_OK) {
        det->dev->ops->stream_wait(det->device->buckets.stream); /* what was queued reads the frames
                                                                  */
        clear(det, slot);
    }
    return res;
}

/* ---- end ---- */

bool sac_detector_arrived(const struct sac_detector *det, int slot)
{
    return det->dev->ops->event_reached(det->device->slots[slot].done);
}

static sac_result take_boxes(struct sac_detector *det, struct sac_detector_slot *slot,
                             struct sac_detector_part *part, struct sac_detections *found)
{
    struct sac_detector_device *d = det->device;
    char                       *boxes = (char *)sac_buffer_data(slot->boxes) + part->boxes_at;
    char                       *host = (char *)slot->host.data + part->boxes_at;
    sac_result res = sac_detect_fetch_end(det->dev, d->fetch, &d->spec, boxes, part->n,
                                          &part->expected, host, found + part->first);
    d->boxes_expected = SAC_MAX(part->expected * 100 / (size_t)part->n, 100 * BOXES_LEAST);
    return res;
}

static sac_result decode_part(struct sac_detector *det, struct sac_detector_slot *slot,
                              struct sac_detector_part *part, struct sac_detections *found)
{
    sac_result res =
        sac_head_outputs_load(&det->outputs, det->dev, det->model, part->out, part->bucket->size);
    for (int i = 0; i < part->n && res == SAC_OK; i++)
        res = sac_detector_decode_image(det, i, &slot->maps[part->first + i],
                                        &found[part->first + i]);
    return res;
}

static sac_result take_marks(struct sac_detector *det, struct sac_detector_slot *slot,
                             const struct sac_detector_part *part)
{
    const struct sac_detector_device *d = det->device;
    int64_t                           since = 0;
    if (!d->timed || !part->marks.at[0])
        return SAC_OK;
    if (part->first == 0 &&
        det->dev->ops->event_elapsed(d->anchor, part->marks.at[SAC_MARK_BEGIN], &since) == SAC_OK)
        slot->times.gpu_begun_ns = d->anchor_ns + since;
    return sac_marks_add(det->dev, &part->marks, slot->times.gpu_ns);
}

sac_result sac_detector_end(struct sac_detector *det, int index, struct sac_detections *found,
                            struct sac_detector_times *times)
{
    struct sac_detector_device *d = det->device;
    struct sac_detector_slot   *slot = &d->slots[index];
    slot->times.waited_ns = sac_time_ns();
    sac_result res = det->dev->ops->event_wait(slot->done);
    slot->times.arrived_ns = sac_time_ns();
    for (int i = 0; i < slot->part_count && res == SAC_OK; i++) {
        struct sac_detector_part *part = &slot->parts[i];
        res = d->on_host ? decode_part(det, slot, part, found) : take_boxes(det, slot, part, found);
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
    struct sac_detector_device  *d = det->device;
    const struct sac_device_ops *ops = det->dev->ops;
    sac_result                   res = SAC_OK;
    if (on && !d->anchor) {
        res = ops->event_create(det->dev, true, &d->anchor);
        if (res == SAC_OK)
            res = ops->event_record(d->anchor, d->buckets.stream);
        if (res == SAC_OK)
            res = ops->event_wait(d->anchor);
        d->anchor_ns = sac_time_ns();
    }
    d->timed = on && res == SAC_OK;
    return res;
}

/* A device keeps scratch for as many images as it met at once: those of the largest batch. One
 * image it must take, or the first frame would find no memory when all streams are open. */
static sac_result warm_up_head(struct sac_detector *det)
{
    struct sac_detector_slot    *slot = &det->device->slots[0];
    struct sac_buckets          *b = &det->device->buckets;
    const struct sac_preprocess *pre = &det->contract.pre;
    const struct sac_rect        whole = {0, 0, (float)pre->width, (float)pre->height};
    sac_result                   res;
    do {
        const struct sac_bucket *largest = &b->list[b->count - 1];
        for (int i = 0; i < largest->size; i++)
            slot->maps[i] = sac_fit_map_of(pre, &whole);
        res = run_head(det, largest, slot->maps, largest->size, sac_buffer_data(slot->boxes));
        sac_result waited = det->dev->ops->stream_wait(b->stream);
        res = res == SAC_OK ? waited : res;
    } while (sac_buckets_shrink(b, res));
    return res;
}

sac_result sac_detector_warm_up(struct sac_detector *det)
{
    struct sac_buckets *b = &det->device->buckets;
    sac_result          res = sac_buckets_warm_up(b);
    if (res != SAC_OK || det->dev->ops->warm_runs == 0)
        return res;
    if (!det->device->laid_out)
        res = lay_out(det, &b->list[0]);
    for (int i = 0; i < SAC_DETECTOR_SLOTS && res == SAC_OK && !det->device->on_host; i++)
        res = ensure_boxes(det, &det->device->slots[i]);
    return res == SAC_OK && !det->device->on_host ? warm_up_head(det) : res;
}
