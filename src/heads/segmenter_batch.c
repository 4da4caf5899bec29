/* SPDX-License-Identifier: Apache-2.0 */
/* A segmenter's batches: frames to mattes on one stream. Nothing crosses to the host. */
#include <string.h>

#include "heads/segmenter.h"
#include "vision/fit.h"

/* ---- opening ---- */

static sac_result slot_open(struct sac_segmenter *seg, struct sac_segmenter_slot *slot)
{
    const size_t n = (size_t)seg->batch;
    slot->parts = sac_calloc(n, sizeof *slot->parts);
    slot->jobs = sac_calloc(n, sizeof *slot->jobs);
    slot->mattes = sac_calloc(n, sizeof(*slot->mattes));
    if (!slot->parts || !slot->jobs || !slot->mattes)
        return SAC_FAIL(seg->dev->ctx, SAC_ERR_MEMORY, "no memory for a batch of %zu frames", n);
    return seg->dev->ops->event_create(seg->dev, false, &slot->done);
}

sac_result sac_segmenter_batch_open(struct sac_segmenter *seg)
{
    sac_result res =
        sac_buckets_init(&seg->buckets, seg->dev, seg->model, &seg->contract.pre, &seg->view.feed,
                         seg->batch, true, "segmenter input", SAC_MEMORY_PREPROCESS);
    for (int i = 0; i < SAC_SEGMENTER_SLOTS && res == SAC_OK; i++)
        res = slot_open(seg, &seg->slots[i]);
    return res;
}

/* Mattes that nobody took. */
static void clear(struct sac_segmenter *seg, struct sac_segmenter_slot *slot)
{
    for (int i = 0; slot->mattes && i < slot->n; i++) {
        if (slot->mattes[i])
            sac_frame_used(slot->mattes[i], seg->buckets.stream);
        sac_frame_unref(&slot->mattes[i]);
    }
    slot->n = slot->part_count = 0;
}

static void slot_close(struct sac_segmenter *seg, struct sac_segmenter_slot *slot)
{
    clear(seg, slot);
    for (int i = 0; slot->parts && i < seg->batch; i++)
        sac_marks_destroy(seg->dev, &slot->parts[i].marks);
    if (slot->done)
        seg->dev->ops->event_destroy(&slot->done);
    sac_free(slot->parts);
    sac_free(slot->jobs);
    sac_free(slot->mattes);
}

void sac_segmenter_batch_close(struct sac_segmenter *seg)
{
    if (seg->buckets.stream)
        seg->dev->ops->stream_wait(seg->buckets.stream);
    for (int i = 0; i < SAC_SEGMENTER_SLOTS; i++)
        slot_close(seg, &seg->slots[i]);
    if (seg->anchor)
        seg->dev->ops->event_destroy(&seg->anchor);
    sac_segmenter_forget_all(seg);
    sac_buckets_finish(&seg->buckets);
}

/* ---- the network ---- */

/* The shapes of its outputs as the bucket's latest run shows them. */
static sac_result lay_out(struct sac_segmenter *seg, const struct sac_bucket *bucket)
{
    struct sac_head_view  view = seg->view;
    struct sac_matte_spec spec = seg->spec;
    if (seg->laid_out && !bucket->varies)
        return SAC_OK;
    for (int i = 0; i < view.output_count; i++) {
        const sac_tensor *t = bucket->out[i];
        if (t) /* a state's was taken */
            view.output[i].desc = *sac_tensor_describe(t);
    }
    view.width = seg->contract.pre.width;
    view.height = seg->contract.pre.height;
    if (!seg->head->matte(&view, &spec))
        return sac_segmenter_refuse_shapes(seg, &view);
    sac_result res = sac_segmenter_check_spec(seg, &spec);
    if (res != SAC_OK)
        return res;
    if (seg->laid_out && (spec.width != seg->spec.width || spec.height != seg->spec.height))
        return SAC_FAIL(seg->dev->ctx, SAC_ERR_UNSUPPORTED,
                        "%s: a map of %dx%d cells after ones of %dx%d; have one size",
                        sac_model_path(seg->model), spec.width, spec.height, seg->spec.width,
                        seg->spec.height);
    seg->spec = spec;
    seg->laid_out = true;
    return SAC_OK;
}

/* A recurrent network has one stream and one frame in a run. */
static sac_result give_states(struct sac_segmenter *seg, const struct sac_segmenter_part *part)
{
    struct sac_segmenter_stream *s = NULL;
    if (!sac_feed_has(&seg->view.feed, SAC_FEED_STATE))
        return SAC_OK;
    sac_result res = sac_segmenter_stream(seg, seg->jobs[part->first].frame, &s);
    return res == SAC_OK ? sac_segmenter_give_states(seg, s, part->bucket) : res;
}

/* Once the mattes are queued: a frame for which there was no memory is tried again, with the states
 * that it had. */
static sac_result take_states(struct sac_segmenter *seg, const struct sac_segmenter_part *part)
{
    struct sac_segmenter_stream *s = NULL;
    if (!sac_feed_has(&seg->view.feed, SAC_FEED_STATE))
        return SAC_OK;
    sac_result res = sac_segmenter_stream(seg, seg->jobs[part->first].frame, &s);
    if (res == SAC_OK)
        sac_segmenter_take_states(seg, s, part->bucket);
    return res;
}

static sac_result run_network(struct sac_segmenter *seg, struct sac_segmenter_part *part,
                              struct sac_run_times *times)
{
    const struct sac_marks *marks = seg->timed ? &part->marks : NULL;
    sac_result              res = give_states(seg, part);
    if (res == SAC_OK)
        res = sac_bucket_run(&seg->buckets, part->bucket, seg->jobs + part->first, part->n, marks,
                             times);
    return res == SAC_OK ? lay_out(seg, part->bucket) : res;
}

/* ---- mattes ---- */

static sac_result create_matte(struct sac_segmenter *seg, const sac_frame *frame, sac_frame **out)
{
    sac_frame                 desc = {.format = SAC_PIXEL_GRAY8,
                                      .width = frame->width,
                                      .height = frame->height,
                                      .matrix = frame->matrix,
                                      .range = SAC_RANGE_FULL,
                                      .pts_us = frame->pts_us,
                                      .duration_us = frame->duration_us,
                                      .source_pts_us = frame->source_pts_us,
                                      .number = frame->number,
                                      .stream_id = frame->stream_id};
    const enum sac_memory_use before = sac_memory_use_set(SAC_MEMORY_HEAD);
    sac_result                res = sac_frame_create(seg->dev, &desc, out);
    sac_memory_use_set(before);
    return res;
}

static sac_result make_job(struct sac_segmenter *seg, struct sac_segmenter_slot *slot, int i,
                           int image)
{
    const sac_frame             *frame = seg->jobs[i].frame;
    const struct sac_rect        whole = {0, 0, (float)frame->width, (float)frame->height};
    struct sac_segmenter_stream *s = NULL;
    sac_result                   res = sac_segmenter_stream(seg, frame, &s);
    if (res == SAC_OK)
        res = create_matte(seg, frame, &slot->mattes[i]);
    if (res != SAC_OK)
        return res;
    slot->jobs[i] = (struct sac_matte_job){.frame = frame,
                                           .image = image,
                                           .map = sac_fit_map_of(&seg->contract.pre, &whole),
                                           .state = s->state,
                                           .out = slot->mattes[i]};
    s->state.has_before = true;
    s->state.turn++;
    return SAC_OK;
}

static sac_result queue_mattes(struct sac_segmenter *seg, struct sac_segmenter_slot *slot,
                               const struct sac_segmenter_part *part)
{
    const void *tensors[SAC_HEAD_OUTPUTS_MAX] = {NULL};
    sac_result  res = SAC_OK;
    for (int i = 0; i < part->n && res == SAC_OK; i++)
        res = make_job(seg, slot, part->first + i, i);
    for (int i = 0; i < seg->view.output_count; i++)
        tensors[i] = part->bucket->out[i] ? sac_tensor_data(part->bucket->out[i]) : NULL;
    /* Work queued on the device's own stream may still use the mattes' memory. */
    if (res == SAC_OK)
        res = seg->dev->ops->stream_after(seg->dev, seg->buckets.stream, NULL);
    if (res == SAC_OK)
        res = sac_matte_run_on(seg->dev, seg->buckets.stream, &seg->spec, &seg->style, tensors,
                               slot->jobs + part->first, part->n);
    return res == SAC_OK && seg->timed
               ? seg->dev->ops->event_record(part->marks.at[SAC_MARK_END], seg->buckets.stream)
               : res;
}

/* ---- begin ---- */

static sac_result queue_part(struct sac_segmenter *seg, struct sac_segmenter_slot *slot,
                             struct sac_segmenter_part *part, struct sac_run_times *times)
{
    sac_result res = SAC_OK;
    if (seg->timed && !part->marks.at[0])
        res = sac_marks_create(seg->dev, &part->marks);
    if (res == SAC_OK)
        res = run_network(seg, part, times);
    if (res == SAC_OK)
        res = queue_mattes(seg, slot, part);
    return res == SAC_OK ? take_states(seg, part) : res;
}

static void cut(struct sac_segmenter *seg, struct sac_segmenter_slot *slot)
{
    slot->part_count = 0;
    for (int first = 0, n; first < slot->n; first += n) {
        struct sac_segmenter_part *part = &slot->parts[slot->part_count++];
        part->bucket = sac_buckets_next(&seg->buckets, slot->n - first, &n);
        part->first = first;
        part->n = n;
    }
}

/* What was queued reads the frames, and their streams went ahead: they begin anew. */
static void give_up(struct sac_segmenter *seg, struct sac_segmenter_slot *slot)
{
    seg->dev->ops->stream_wait(seg->buckets.stream);
    for (int i = 0; i < slot->n; i++) {
        struct sac_segmenter_stream *s = NULL;
        if (slot->mattes[i] && sac_segmenter_stream(seg, seg->jobs[i].frame, &s) == SAC_OK)
            sac_segmenter_begin_anew(seg, s);
    }
    clear(seg, slot);
}

static sac_result take_frames(struct sac_segmenter *seg, struct sac_segmenter_slot *slot,
                              sac_frame *const *frames, int n)
{
    if (n < 1 || n > seg->batch)
        return SAC_FAIL(seg->dev->ctx, SAC_ERR_INTERNAL,
                        "%s: a batch of %d frames; it takes 1 to %d", sac_model_path(seg->model), n,
                        seg->batch);
    for (int i = 0; i < n; i++) {
        if (!frames[i])
            return SAC_FAIL(seg->dev->ctx, SAC_ERR_ARG, "segmenter: frame %d of %d is missing", i,
                            n);
        if (frames[i]->device != seg->dev)
            return SAC_FAIL(seg->dev->ctx, SAC_ERR_ARG,
                            "segmenter: frame %d of %d is on another device (%s, not %s)", i, n,
                            sac_device_name(frames[i]->device), seg->dev->name);
        seg->jobs[i] = (struct sac_preprocess_job){.frame = frames[i]};
    }
    slot->n = n;
    seg->clock++;
    return SAC_OK;
}

sac_result sac_segmenter_begin(struct sac_segmenter *seg, int index, sac_frame *const *frames,
                               int n)
{
    struct sac_segmenter_slot *slot = &seg->slots[index];
    struct sac_run_times       times = {0};
    slot->times = (struct sac_detector_times){.begun_ns = sac_time_ns()};
    sac_result res = take_frames(seg, slot, frames, n);
    if (res != SAC_OK)
        return res;
    cut(seg, slot);
    for (int i = 0; i < slot->part_count && res == SAC_OK; i++)
        res = queue_part(seg, slot, &slot->parts[i], &times);
    if (res == SAC_OK)
        res = seg->dev->ops->event_record(slot->done, seg->buckets.stream);
    slot->times.prepared_ns = slot->times.begun_ns + times.preprocess_ns;
    slot->times.queued_ns = slot->times.prepared_ns + times.inference_ns;
    slot->times.decoded_ns = sac_time_ns();
    if (res != SAC_OK)
        give_up(seg, slot);
    return res;
}

/* ---- end ---- */

bool sac_segmenter_arrived(const struct sac_segmenter *seg, int slot)
{
    return seg->dev->ops->event_reached(seg->slots[slot].done);
}

static sac_result take_marks(struct sac_segmenter *seg, struct sac_segmenter_slot *slot,
                             const struct sac_segmenter_part *part)
{
    int64_t since = 0;
    if (!seg->timed || !part->marks.at[0])
        return SAC_OK;
    if (part->first == 0 &&
        seg->dev->ops->event_elapsed(seg->anchor, part->marks.at[SAC_MARK_BEGIN], &since) == SAC_OK)
        slot->times.gpu_begun_ns = seg->anchor_ns + since;
    return sac_marks_add(seg->dev, &part->marks, slot->times.gpu_ns);
}

sac_result sac_segmenter_end(struct sac_segmenter *seg, int index, sac_frame **mattes,
                             struct sac_detector_times *times)
{
    struct sac_segmenter_slot *slot = &seg->slots[index];
    slot->times.waited_ns = sac_time_ns();
    sac_result res = seg->dev->ops->event_wait(slot->done);
    slot->times.arrived_ns = sac_time_ns();
    for (int i = 0; i < slot->part_count && res == SAC_OK; i++)
        res = take_marks(seg, slot, &slot->parts[i]);
    for (int i = 0; i < slot->n; i++) {
        mattes[i] = res == SAC_OK ? slot->mattes[i] : NULL;
        if (res == SAC_OK)
            slot->mattes[i] = NULL;
    }
    slot->times.ended_ns = sac_time_ns();
    *times = slot->times;
    clear(seg, slot);
    return res;
}

/* ---- before and beside ---- */

sac_result sac_segmenter_time(struct sac_segmenter *seg, bool on)
{
    const struct sac_device_ops *ops = seg->dev->ops;
    sac_result                   res = SAC_OK;
    if (on && !seg->anchor) {
        res = ops->event_create(seg->dev, true, &seg->anchor);
        if (res == SAC_OK)
            res = ops->event_record(seg->anchor, seg->buckets.stream);
        if (res == SAC_OK)
            res = ops->event_wait(seg->anchor);
        seg->anchor_ns = sac_time_ns();
    }
    seg->timed = on && res == SAC_OK;
    return res;
}

sac_result sac_segmenter_warm_up(struct sac_segmenter *seg)
{
    sac_result res = sac_buckets_warm_up(&seg->buckets);
    if (res != SAC_OK || seg->dev->ops->warm_runs == 0)
        return res;
    return lay_out(seg, &seg->buckets.list[0]);
}
