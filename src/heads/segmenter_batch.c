/* SPDX-License-Identifier: Apache-2.0 */
/* A segmenter's batches: frames to mattes. Where the device has streams, those of a batch are made
 * beside the network's run for the next one. Nothing crosses to the host. */
#include <math.h>

#include "base/range.h"
#include "heads/segmenter.h"
#include "vision/fit.h"
#include "vision/vision.h"

/* ---- opening ---- */

static sac_result slot_open(struct sac_segmenter *seg, struct sac_segmenter_slot *slot)
{
    const size_t n = (size_t)seg->batch, images = n * (size_t)seg->eyes;
    slot->jobs = sac_calloc(images, sizeof *slot->jobs);
    slot->seen = sac_calloc(images, sizeof *slot->seen);
    slot->made = sac_calloc(images, sizeof *slot->made);
    slot->mattes = sac_calloc(n, sizeof(*slot->mattes));
    slot->smaller = sac_calloc(images, sizeof(*slot->smaller));
    slot->facets = sac_calloc(images * (size_t)seg->looks, sizeof(*slot->facets));
    if (!slot->jobs || !slot->seen || !slot->made || !slot->mattes || !slot->smaller ||
        !slot->facets)
        return SAC_FAIL(seg->dev->ctx, SAC_ERR_MEMORY, "no memory for a batch of %zu frames", n);
    return sac_batch_open(&seg->buckets, &slot->batch, (int)images * seg->looks);
}

sac_result sac_segmenter_batch_open(struct sac_segmenter *seg)
{
    sac_result res =
        sac_buckets_init(&seg->buckets, seg->dev, seg->model, &seg->contract.pre, &seg->view.feed,
                         seg->run_max, true, "segmenter input", SAC_MEMORY_PREPROCESS);
    /* A recurrent network's tensors take turns as it is, with the states of each stream; there is
     * no graph for more of them. */
    if (res == SAC_OK && !sac_feed_has(&seg->view.feed, SAC_FEED_STATE))
        res = sac_buckets_split(&seg->buckets);
    for (int i = 0; i < SAC_SEGMENTER_SLOTS && res == SAC_OK; i++)
        res = slot_open(seg, &seg->slots[i]);
    return res;
}

/* Mattes that nobody took. */
static void clear(struct sac_segmenter *seg, struct sac_segmenter_slot *slot)
{
    for (int i = 0; slot->mattes && i < slot->n; i++) {
        if (slot->mattes[i])
            sac_frame_used(slot->mattes[i], seg->buckets.behind);
        sac_frame_unref(&slot->mattes[i]);
    }
    for (int i = 0; slot->smaller && i < slot->images; i++)
        sac_frame_unref(&slot->smaller[i]);
    for (int i = 0; slot->facets && i < slot->images * seg->looks; i++)
        sac_frame_unref(&slot->facets[i]);
    slot->n = slot->images = slot->queued = 0;
}

static void slot_close(struct sac_segmenter *seg, struct sac_segmenter_slot *slot)
{
    clear(seg, slot);
    sac_mirror_close(&slot->host);
    sac_segmenter_shown_close(&slot->shown);
    sac_buffer_unref(&slot->summaries);
    sac_buffer_unref(&slot->shares);
    sac_buffer_unref(&slot->maps);
    sac_batch_close(&seg->buckets, &slot->batch);
    sac_free(slot->jobs);
    sac_free(slot->seen);
    sac_free(slot->made);
    sac_free(slot->mattes);
    sac_free(slot->smaller);
    sac_free(slot->facets);
}

void sac_segmenter_batch_close(struct sac_segmenter *seg)
{
    sac_buckets_wait(&seg->buckets);
    for (int i = 0; i < SAC_SEGMENTER_SLOTS; i++)
        slot_close(seg, &seg->slots[i]);
    sac_segmenter_forget_all(seg);
    sac_segmenter_instances_close(seg);
    sac_segmenter_looks_close(seg);
    sac_buckets_finish(&seg->buckets);
}

/* ---- the network ---- */

/* Its memory is for maps of one size: nothing is changed for another. */
static sac_result check_size(const struct sac_segmenter *seg, const struct sac_matte_spec *had,
                             const struct sac_matte_spec *now)
{
    if (!seg->laid_out || (now->width == had->width && now->height == had->height))
        return SAC_OK;
    return SAC_FAIL(seg->dev->ctx, SAC_ERR_UNSUPPORTED,
                    "%s: a map of %dx%d cells after ones of %dx%d; have one size",
                    sac_model_path(seg->model), now->width, now->height, had->width, had->height);
}

/* The shapes of its outputs as the bucket's latest run shows them. */
static sac_result lay_out(struct sac_segmenter *seg, const struct sac_bucket *bucket)
{
    const bool                   looks = sac_segmenter_has_looks(seg);
    const struct sac_matte_spec *had = looks ? &seg->net : &seg->spec;
    struct sac_head_view         view = seg->view;
    struct sac_matte_spec        spec = *had;
    if (seg->laid_out && !bucket->varies)
        return SAC_OK;
    for (int i = 0; i < view.output_count; i++) {
        const sac_tensor *t = bucket->out[i];
        if (t) /* a state's was taken */
            view.output[i].desc = *sac_tensor_describe(t);
    }
    view.width = seg->contract.pre.width;
    view.height = seg->contract.pre.height;
    if (!sac_segmenter_read_shapes(seg, &view, &spec))
        return sac_segmenter_refuse_shapes(seg, &view);
    sac_result res = sac_segmenter_check_spec(seg, &spec);
    if (res == SAC_OK)
        res = check_size(seg, had, &spec);
    if (res == SAC_OK && looks)
        res = sac_segmenter_lay_out_looks(seg, &spec);
    if (res != SAC_OK)
        return res;
    seg->spec = spec;
    seg->laid_out = true;
    return SAC_OK;
}

/* A recurrent network has one image in a run, and sees all of them; NULL: it is none. */
static sac_result states_of_run(struct sac_segmenter *seg, const struct sac_segmenter_slot *slot,
                                const struct sac_batch_part  *part,
                                struct sac_segmenter_states **out)
{
    const int                    image = part->first / seg->looks;
    struct sac_segmenter_stream *s = NULL;
    *out = NULL;
    if (!sac_feed_has(&seg->view.feed, SAC_FEED_STATE))
        return SAC_OK;
    sac_result res = sac_segmenter_stream(seg, &slot->jobs[image], &s);
    if (res == SAC_OK)
        *out = &s->eye[image % seg->eyes].states[part->first % seg->looks];
    return res;
}

static sac_result run_network(struct sac_segmenter *seg, struct sac_segmenter_slot *slot,
                              struct sac_batch_part *part)
{
    struct sac_segmenter_states *states;
    sac_result                   res = states_of_run(seg, slot, part, &states);
    if (res == SAC_OK && states)
        res = sac_segmenter_give_states(seg, states, part->bucket);
    if (res == SAC_OK)
        res = sac_batch_run(&seg->buckets, &slot->batch, part, seg->jobs);
    return res == SAC_OK ? lay_out(seg, part->bucket) : res;
}

/* ---- mattes ---- */

static sac_frame eye_of(const struct sac_segmenter *seg, const sac_frame *frame, int eye)
{
    const int width = seg->stereo == SAC_STEREO_SBS ? frame->width / 2 : frame->width;
    const int height = seg->stereo == SAC_STEREO_TB ? frame->height / 2 : frame->height;
    return sac_frame_part(frame, seg->stereo == SAC_STEREO_SBS ? eye * width : 0,
                          seg->stereo == SAC_STEREO_TB ? eye * height : 0, width, height);
}

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

/* What only the image's turn tells. */
static sac_result complete_job(struct sac_segmenter *seg, struct sac_segmenter_slot *slot, int i)
{
    struct sac_matte_job        *job = &slot->jobs[i];
    const int                    frame = i / seg->eyes, eye = i % seg->eyes;
    struct sac_segmenter_stream *s = NULL;
    sac_result                   res = sac_segmenter_stream(seg, job, &s);
    if (res == SAC_OK && eye == 0)
        res = create_matte(seg, slot->asks[frame].frame, &slot->mattes[frame]);
    if (res != SAC_OK)
        return res;
    if (seg->facets.count)
        job->map = sac_segmenter_facets_map(seg, job->frame);
    slot->made[i] = eye_of(seg, slot->mattes[frame], eye);
    job->state = s->eye[eye].state;
    job->out = &slot->made[i];
    if (slot->summarised)
        job->summary = (struct sac_matte_summary *)sac_buffer_data(slot->summaries) + i;
    s->eye[eye].state.has_before = true;
    s->eye[eye].state.turn++;
    return SAC_OK;
}

/* Where the network did not look: above, below, left and right of the crop. */
static sac_result clear_around(struct sac_segmenter *seg, const struct sac_matte_job *job)
{
    const float           width = (float)job->frame->width, height = (float)job->frame->height;
    const struct sac_rect c = job->crop;
    const struct sac_rect around[] = {{0, 0, width, c.y0},
                                      {0, c.y1, width, height},
                                      {0, c.y0, c.x0, c.y1},
                                      {c.x1, c.y0, width, c.y1}};
    struct sac_shape      shapes[SAC_COUNT(around)];
    int                   n = 0;
    for (size_t i = 0; i < SAC_COUNT(around); i++)
        if (around[i].x0 < around[i].x1 && around[i].y0 < around[i].y1)
            shapes[n++] = (struct sac_shape){.kind = SAC_SHAPE_FILL, .rect = around[i], .alpha = 1};
    return sac_frame_draw_on(seg->buckets.behind, job->out, shapes, n);
}

/* The jobs of a run's images, numbered, with the kept ones before, between and behind them; returns
 * how many. */
static int count_jobs(const struct sac_segmenter_slot *slot, int images)
{
    int n = 0;
    for (int image = 0; slot->queued + n < slot->images; n++) {
        struct sac_matte_job *job = &slot->jobs[slot->queued + n];
        if (job->image < 0)
            continue;
        if (image == images)
            break;
        job->image = image++;
    }
    return n;
}

/* The eyes whose last image a run has. */
static int count_eyes(const struct sac_segmenter *seg, const struct sac_batch_part *part)
{
    return part ? (part->first + part->n) / seg->looks - part->first / seg->looks : 0;
}

/* Of the frames whose last eye is one of the jobs. */
static sac_result queue_composites(struct sac_segmenter *seg, const struct sac_segmenter_slot *slot,
                                   int first, int n)
{
    sac_result res = SAC_OK;
    for (int i = first / seg->eyes; i < (first + n) / seg->eyes && res == SAC_OK; i++) {
        const struct sac_segmenter_ask *ask = &slot->asks[i];
        if (!ask->composite)
            continue;
        struct sac_composite_job job = *ask->composite;
        job.frame = ask->frame;
        job.matte = slot->mattes[i];
        res = sac_composite_run_on(seg->dev, seg->buckets.behind, &job);
    }
    return res;
}

/* Those that a run makes possible; part: NULL for none. */
static sac_result queue_mattes(struct sac_segmenter *seg, struct sac_segmenter_slot *slot,
                               const struct sac_batch_part *part)
{
    const void *tensors[SAC_HEAD_OUTPUTS_MAX] = {NULL};
    const int   first = slot->queued, n = count_jobs(slot, count_eyes(seg, part));
    sac_result  res = SAC_OK;
    sac_range_push("matte");
    for (int i = 0; i < n && res == SAC_OK; i++)
        res = complete_job(seg, slot, first + i);
    for (int i = 0; i < seg->view.output_count && part; i++)
        tensors[i] = part->bucket->out[i] ? sac_tensor_data(part->bucket->out[i]) : NULL;
    /* Work queued on the device's own stream may still use the mattes' memory. */
    if (res == SAC_OK)
        res = seg->dev->ops->stream_after(seg->dev, seg->buckets.behind, NULL);
    for (int i = 0; i < n && res == SAC_OK; i++)
        res = clear_around(seg, &slot->jobs[first + i]);
    if (res == SAC_OK && seg->instances.used && part)
        res = sac_segmenter_queue_instances(seg, slot, part->first, tensors, part->n);
    if (res == SAC_OK && sac_segmenter_has_looks(seg) && part)
        res = sac_segmenter_queue_maps(seg, slot, part, tensors);
    if (res == SAC_OK)
        res = sac_matte_run_on(seg->dev, seg->buckets.behind, &seg->spec, &seg->style, tensors,
                               slot->jobs + first, n);
    if (res == SAC_OK)
        res = queue_composites(seg, slot, first, n);
    sac_range_pop();
    slot->queued += n;
    return res;
}

/* ---- summaries ---- */

void sac_segmenter_summarise(struct sac_segmenter *seg, bool on)
{
    seg->summarises = on && !seg->style.classes;
}

static size_t summary_bytes(int images)
{
    return (size_t)images * sizeof(struct sac_matte_summary);
}

static sac_result reserve_summaries(struct sac_segmenter *seg, struct sac_segmenter_slot *slot)
{
    const size_t bytes = summary_bytes(seg->batch * seg->eyes);
    sac_result   res = SAC_OK;
    slot->summarised = seg->summarises;
    if (!slot->summarised || slot->host.data)
        return SAC_OK;
    const enum sac_memory_use before = sac_memory_use_set(SAC_MEMORY_HEAD);
    if (!slot->summaries)
        res = sac_buffer_create(seg->dev, bytes, "summaries of mattes", &slot->summaries);
    if (res == SAC_OK)
        res = sac_mirror_open(seg->dev, sac_buffer_data(slot->summaries), bytes,
                              "summaries of mattes", &slot->host);
    sac_memory_use_set(before);
    /* Work queued on the device's own stream may still use this memory. */
    return res == SAC_OK ? seg->dev->ops->stream_after(seg->dev, seg->buckets.behind, NULL) : res;
}

static sac_result fetch_summaries(struct sac_segmenter *seg, const struct sac_segmenter_slot *slot)
{
    if (!slot->summarised || slot->host.data == sac_buffer_data(slot->summaries))
        return SAC_OK;
    return sac_device_copy(seg->dev, seg->buckets.behind, slot->host.data,
                           sac_buffer_data(slot->summaries), summary_bytes(slot->images),
                           SAC_COPY_DEVICE_TO_HOST, SAC_COPY_BOXES, "summaries of mattes");
}

static void add_rect(struct sac_rect *sum, const struct sac_rect *r)
{
    if (r->x0 >= r->x1)
        return;
    *sum = sum->x0 >= sum->x1 ? *r
                              : (struct sac_rect){SAC_MIN(sum->x0, r->x0), SAC_MIN(sum->y0, r->y0),
                                                  SAC_MAX(sum->x1, r->x1), SAC_MAX(sum->y1, r->y1)};
}

static struct sac_segmenter_summary summary_of(const struct sac_segmenter      *seg,
                                               const struct sac_segmenter_slot *slot, int frame)
{
    const int                       first = frame * seg->eyes;
    const struct sac_matte_summary *all = slot->host.data;
    struct sac_segmenter_summary    out = {.kept = slot->jobs[first].image < 0};
    for (int i = first; i < first + seg->eyes && slot->summarised; i++) {
        const struct sac_rect found = sac_matte_summary_rect(&seg->spec, &slot->jobs[i], &all[i]);
        const double          one = SAC_MAX(all[i].cells, 1) * (double)SAC_MATTE_ONE;
        add_rect(&out.found, &found);
        out.unsure = SAC_MAX(out.unsure, (float)((double)all[i].unsure / one));
    }
    return out;
}

/* ---- begin ---- */

/* A frame for whose matte there was no memory is tried again with the states that it had. */
static sac_result queue_part(struct sac_segmenter *seg, struct sac_segmenter_slot *slot,
                             struct sac_batch_part *part)
{
    struct sac_segmenter_states *states = NULL;
    sac_result                   res = run_network(seg, slot, part);
    if (res == SAC_OK)
        res = states_of_run(seg, slot, part, &states);
    if (res == SAC_OK)
        res = queue_mattes(seg, slot, part);
    if (res == SAC_OK)
        res = sac_batch_mark_end(&seg->buckets, part);
    if (res == SAC_OK && states)
        sac_segmenter_take_states(seg, states, part->bucket);
    return res;
}

/* Streams that went ahead begin anew. */
static void begin_anew(struct sac_segmenter *seg, struct sac_segmenter_slot *slot)
{
    for (int i = 0; i < slot->n; i++) {
        struct sac_segmenter_stream *s = NULL;
        if (slot->mattes[i] && sac_segmenter_stream(seg, &slot->jobs[i * seg->eyes], &s) == SAC_OK)
            sac_segmenter_begin_anew(seg, s);
    }
}

/* The whole pixels of a region within the eye. */
static struct sac_rect crop_of(const sac_frame *eye, const struct sac_rect *region)
{
    const float     width = (float)eye->width, height = (float)eye->height;
    struct sac_rect r = {SAC_MAX(floorf(region->x0), 0), SAC_MAX(floorf(region->y0), 0),
                         SAC_MIN(ceilf(region->x1), width), SAC_MIN(ceilf(region->y1), height)};
    const bool      some =
        r.x0 < r.x1 && r.y0 < r.y1 && region->x0 < region->x1 && region->y0 < region->y1;
    return some ? r : (struct sac_rect){0, 0, width, height};
}

static bool has_before(const struct sac_segmenter *seg, const struct sac_segmenter_stream *s)
{
    bool all = true;
    for (int i = 0; i < seg->eyes; i++)
        all = all && s->eye[i].state.has_before;
    return all;
}

/* Can the matte of a frame be that of the one before, in this batch or an earlier one? */
static bool can_keep(struct sac_segmenter *seg, const struct sac_segmenter_slot *slot, int frame)
{
    const struct sac_matte_job *job = &slot->jobs[frame * seg->eyes];
    if (seg->style.classes || seg->instances.shown || sac_feed_has(&seg->view.feed, SAC_FEED_STATE))
        return false;
    for (int k = frame - 1; k >= 0; k--) {
        const struct sac_matte_job *b = &slot->jobs[k * seg->eyes];
        if (b->frame->stream_id == job->frame->stream_id) {
            const struct sac_segmenter_stream like = {
                .width = b->frame->width, .height = b->frame->height, .crop = b->crop};
            return sac_segmenter_follows(&like, job);
        }
    }
    struct sac_segmenter_stream *s = sac_segmenter_find_stream(seg, job->frame->stream_id);
    if (!s || !has_before(seg, s) || !sac_segmenter_follows(s, job))
        return false;
    s->used_at = seg->clock; /* it may not be dropped for another one of the batch */
    return true;
}

static sac_result check_frame(struct sac_segmenter *seg, const sac_frame *frame, int i)
{
    if (!frame)
        return SAC_FAIL(seg->dev->ctx, SAC_ERR_ARG, "segmenter: frame %d is missing", i);
    if (frame->device != seg->dev)
        return SAC_FAIL(seg->dev->ctx, SAC_ERR_ARG,
                        "segmenter: frame %d is on another device (%s, not %s)", i,
                        sac_device_name(frame->device), seg->dev->name);
    return sac_segmenter_check_eyes(seg->dev->ctx, seg->stereo, frame->format, frame->width,
                                    frame->height);
}

/* The jobs of a frame, and what the network is to see of it, from image `seen` of the batch on;
 * returns how many images that are. */
static int make_jobs(struct sac_segmenter *seg, struct sac_segmenter_slot *slot, int frame,
                     int seen)
{
    const struct sac_segmenter_ask *ask = &slot->asks[frame];
    const int                       first = frame * seg->eyes;
    const struct sac_rect           all = {0, 0, 0, 0};
    for (int i = 0; i < seg->eyes; i++) {
        sac_frame *eye = &slot->seen[first + i];
        *eye = eye_of(seg, ask->frame, i);
        const struct sac_rect crop = crop_of(eye, seg->facets.count ? &all : &ask->region);
        slot->jobs[first + i] = (struct sac_matte_job){
            .frame = eye, .crop = crop, .map = sac_fit_map_of(&seg->contract.pre, &crop)};
        seg->jobs[seen + i] = (struct sac_preprocess_job){.frame = eye, .crop = crop};
    }
    if (!ask->keep || !can_keep(seg, slot, frame))
        return seg->eyes;
    for (int i = 0; i < seg->eyes; i++)
        slot->jobs[first + i].image = -1;
    return 0;
}

static sac_result take_asks(struct sac_segmenter *seg, struct sac_segmenter_slot *slot,
                            const struct sac_segmenter_ask *asks, int n)
{
    int        seen = 0;
    sac_result res = SAC_OK;
    if (n < 1 || n > seg->batch)
        return SAC_FAIL(seg->dev->ctx, SAC_ERR_INTERNAL,
                        "%s: a batch of %d frames; it takes 1 to %d", sac_model_path(seg->model), n,
                        seg->batch);
    for (int i = 0; i < n && res == SAC_OK; i++)
        res = check_frame(seg, asks[i].frame, i);
    if (res != SAC_OK)
        return res;
    seg->clock++;
    slot->asks = asks;
    slot->n = n;
    slot->images = n * seg->eyes;
    slot->shown.used = seg->instances.shown;
    for (int i = 0; i < n; i++)
        seen += make_jobs(seg, slot, i, seen);
    sac_batch_begin(&seg->buckets, &slot->batch, seen * seg->looks);
    return SAC_OK;
}

static sac_result queue_batch(struct sac_segmenter *seg, struct sac_segmenter_slot *slot)
{
    sac_result res = sac_segmenter_queue_looks(seg, slot);
    for (int i = 0; i < slot->batch.part_count && res == SAC_OK; i++)
        res = queue_part(seg, slot, &slot->batch.parts[i]);
    if (res == SAC_OK && slot->queued < slot->images) /* all are kept */
        res = queue_mattes(seg, slot, NULL);
    return res;
}

sac_result sac_segmenter_begin(struct sac_segmenter *seg, int index,
                               const struct sac_segmenter_ask *asks, int n)
{
    struct sac_segmenter_slot *slot = &seg->slots[index];
    sac_result                 res = take_asks(seg, slot, asks, n);
    if (res != SAC_OK)
        return res;
    res = reserve_summaries(seg, slot);
    sac_buckets_unite_begin(&seg->buckets);
    if (res == SAC_OK)
        res = queue_batch(seg, slot);
    res = sac_buckets_unite_end(&seg->buckets, res);
    if (res == SAC_OK)
        res = fetch_summaries(seg, slot);
    res = sac_batch_queued(&seg->buckets, &slot->batch, res);
    slot->asks = NULL;
    if (res != SAC_OK) {
        begin_anew(seg, slot);
        clear(seg, slot);
    }
    return res;
}

/* ---- end ---- */

bool sac_segmenter_arrived(const struct sac_segmenter *seg, int slot)
{
    return sac_batch_arrived(&seg->buckets, &seg->slots[slot].batch);
}

sac_result sac_segmenter_end(struct sac_segmenter *seg, int index, sac_frame **mattes,
                             struct sac_segmenter_summary *summaries,
                             struct sac_segmenter_found *found, struct sac_batch_times *times)
{
    struct sac_segmenter_slot *slot = &seg->slots[index];
    sac_result                 res = sac_batch_await(&seg->buckets, &slot->batch);
    if (res == SAC_OK && slot->shown.used && found) {
        res = sac_segmenter_take_shown(seg, slot, found);
        if (res != SAC_OK)
            begin_anew(seg, slot);
    }
    for (int i = 0; i < slot->n; i++) {
        mattes[i] = res == SAC_OK ? slot->mattes[i] : NULL;
        if (res == SAC_OK)
            slot->mattes[i] = NULL;
        if (res == SAC_OK && summaries)
            summaries[i] = summary_of(seg, slot, i);
    }
    slot->batch.times.ended_ns = sac_time_ns();
    *times = slot->batch.times;
    clear(seg, slot);
    return res;
}

/* ---- before ---- */

sac_result sac_segmenter_warm_up(struct sac_segmenter *seg)
{
    sac_result res = sac_buckets_warm_up(&seg->buckets);
    if (res != SAC_OK || seg->dev->ops->warm_runs == 0)
        return res;
    res = lay_out(seg, &seg->buckets.list[0]);
    return res == SAC_OK && seg->instances.used ? sac_segmenter_warm_up_instances(seg) : res;
}
