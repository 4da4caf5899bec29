/* SPDX-License-Identifier: Apache-2.0 */
/* The tracking thread of a job. Where embeddings or pixels are on a GPU, waiting frames are tracked
 * in waves, with at most one frame per stream: a wave takes one trip to the device. */
#include <string.h>

#include "base/range.h"
#include "device/device.h"
#include "pipeline/job.h"
#include "reid/embedder.h"
#include "track/wave.h"

enum { WAVE_MAX = 64 };

/* The items of a wave in queue order, including those with a fault and the ends of lanes. */
struct wave {
    struct sac_item *item[WAVE_MAX];
    bool             member[WAVE_MAX]; /* it is tracked with the others */
    int              count, max;
    struct sac_item *later[WAVE_MAX]; /* for later waves, in queue order */
    int              later_count;
    bool closed; /* items of the push form, which have no lane, keep their order among all streams
                  */
    int64_t begun_ns, device_ns; /* of its trips, where measured */
};

/* ---- trackers ---- */

/* Embeddings are on the embedder's device, even if the host can read them. */
static bool has_remote_looks(const struct sac_job *job)
{
    return job->emb && job->ahead;
}

/* Whether waves take trips to a device: when embeddings or pixels are there. */
static bool has_trips(const struct sac_job *job)
{
    return has_remote_looks(job) || !job->dev->ops->host_memory;
}

sac_result sac_job_tracker(struct sac_job *job, int stream_id, struct sac_stream_tracker **out)
{
    for (size_t i = 0; i < job->tracker_count; i++)
        if (job->trackers[i].stream_id == stream_id) {
            *out = &job->trackers[i];
            return SAC_OK;
        }
    struct sac_tracker_params params = job->params.tracker;
    struct sac_stream_tracker made = {.stream_id = stream_id};
    params.stream_id = stream_id;
    if (!sac_grow((void **)&job->trackers, &job->tracker_capacity, job->tracker_count + 1,
                  sizeof *job->trackers))
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for the tracker of stream %d",
                        stream_id);
    sac_result res = sac_tracker_create(job->ctx, &params, &made.trk);
    if (res != SAC_OK)
        return res;
    job->trackers[job->tracker_count] = made;
    *out = &job->trackers[job->tracker_count++];
    return SAC_OK;
}

sac_result sac_job_open_wave(struct sac_job *job)
{
    sac_result res = sac_wave_create(job->dev, &job->wave);
    if (res == SAC_OK && job->measures)
        sac_wave_measure(job->wave);
    if (res != SAC_OK || !has_trips(job))
        return res;
    res = sac_wave_warm_up(job->wave);
    if (!sac_is_out_of_memory(res))
        return res;
    sac_error_clear(job->ctx); /* frames will report it, if it still fails then */
    return SAC_OK;
}

void sac_job_end_tracker(struct sac_job *job, int stream_id)
{
    for (size_t i = 0; i < job->tracker_count; i++)
        if (job->trackers[i].stream_id == stream_id) {
            sac_wave_rest(job->wave);
            sac_tracker_destroy(&job->trackers[i].trk);
            job->trackers[i] = job->trackers[--job->tracker_count];
            return;
        }
}

sac_result sac_job_prepare_tracker(struct sac_job *job, int stream_id, int width, int height)
{
    const sac_frame like = {
        .device = job->dev, .format = SAC_PIXEL_NV12, .width = width, .height = height};
    struct sac_stream_tracker *tracker;
    const enum sac_memory_use  before = sac_memory_use_set(SAC_MEMORY_TRACKING);
    sac_result                 res = sac_job_tracker(job, stream_id, &tracker);
    if (res == SAC_OK)
        res = sac_tracker_prepare(tracker->trk, has_remote_looks(job) ? job->dev : NULL,
                                  width > 0 ? &like : NULL);
    if (res == SAC_OK && has_trips(job))
        res = sac_wave_prepare(job->wave, tracker->trk);
    if (res != SAC_OK)
        sac_job_end_tracker(job, stream_id);
    sac_memory_use_set(before);
    return res;
}

/* Copied, since the tracker's view is valid only until its next call. */
static sac_result copy_tracks(struct sac_job *job, struct sac_item *item,
                              const struct sac_track_view *view)
{
    if (!sac_grow((void **)&item->tracks, &item->track_capacity, view->count, sizeof *item->tracks))
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for %zu tracks", view->count);
    if (view->count)
        memcpy(item->tracks, view->tracks, view->count * sizeof *item->tracks);
    item->track_count = view->count;
    return SAC_OK;
}

/* ---- counts ---- */

static int64_t count_new_tracks(struct sac_stream_tracker *tracker, const struct sac_item *item)
{
    int64_t known = tracker->track_id_max, n = 0;
    for (size_t i = 0; i < item->track_count; i++) {
        n += item->tracks[i].id > known;
        tracker->track_id_max = SAC_MAX(tracker->track_id_max, item->tracks[i].id);
    }
    return n;
}

static void count_item(struct sac_job *job, const struct sac_item *item)
{
    struct sac_stream_tracker *tracker;
    struct sac_lane           *lane = item->lane;
    int64_t                    tracks = 0;
    if (item->track_count && sac_job_tracker(job, item->stream_id, &tracker) == SAC_OK)
        tracks = count_new_tracks(tracker, item);
    atomic_fetch_add(&job->frames_done, 1);
    sac_device_count_frames(job->dev, 1);
    atomic_fetch_add(&job->detections, (int_fast64_t)item->found.count);
    atomic_fetch_add(&job->tracks, tracks);
    atomic_store(&job->objects, (int)item->track_count);
    atomic_store(&job->last_ns, item->done_ns);
    if (!lane)
        return;
    atomic_fetch_add(&lane->frames_done, 1);
    atomic_fetch_add(&lane->detections, (int_fast64_t)item->found.count);
    atomic_fetch_add(&lane->tracks, tracks);
    atomic_store(&lane->last_ns, item->done_ns);
}

/* ---- a wave ---- */

static struct sac_tracker_input input_of(const struct sac_job *job, const struct sac_item *item)
{
    const struct sac_features *f = item->features;
    struct sac_tracker_input   in = {.det = item->found.items,
                                     .count = item->found.count,
                                     .frame = item->frame,
                                     .pts_us = item->pts_us};
    if (f)
        in.looks = (struct sac_look_rows){.dev = f->dev,
                                          .base = sac_features_data(f),
                                          .count = f->count,
                                          .dim = f->dim,
                                          .row = item->feat_row,
                                          .features = item->features};
    else if (item->has_feat)
        in.looks = (struct sac_look_rows){.base = item->feat,
                                          .count = (int)item->found.count,
                                          .dim = job->params.tracker.embedding_dim};
    return in;
}

static sac_result finish(struct sac_job *job, size_t member, struct sac_item *item)
{
    struct sac_track_view view;
    sac_wave_finish(job->wave, member, &view);
    return copy_tracks(job, item, &view);
}

/* Run the trip of the items added last, and match them; items that failed are left out. */
static void track_added(struct sac_job *job, struct wave *wave, int first, int end)
{
    size_t     next = 0;
    sac_result res, ran = sac_wave_run(job->wave);
    int64_t    begun_ns, device_ns = sac_wave_device_ns(job->wave, &begun_ns);
    char       why[sizeof wave->item[0]->why] = "";
    wave->begun_ns = wave->device_ns ? wave->begun_ns : begun_ns;
    wave->device_ns += device_ns;
    if (ran != SAC_OK) {
        sac_context_last_error(job->ctx, why, sizeof why);
        sac_error_clear(job->ctx);
    }
    for (int i = first; i < end; i++) {
        struct sac_item *item = wave->item[i];
        if (wave->member[i] && ran != SAC_OK) {
            item->status = ran;
            memcpy(item->why, why, sizeof why);
        } else if (wave->member[i] && (res = finish(job, next++, item)) != SAC_OK) {
            sac_job_fail_item(job, item, res);
        }
    }
    sac_wave_settle(job->wave);
    sac_wave_clear(job->wave);
    for (int i = first; i < end; i++) /* a sink may be slow, and later frames need the memory */
        sac_features_unref(&wave->item[i]->features);
}

/* In one trip, unless there is more to compare than fits. */
static void track_members(struct sac_job *job, struct wave *wave)
{
    int first = 0;
    for (int i = 0; i < wave->count; i++) {
        struct sac_item           *item = wave->item[i];
        struct sac_stream_tracker *tracker;
        wave->member[i] = !item->last && item->status == SAC_OK;
        if (!wave->member[i])
            continue;
        const struct sac_tracker_input in = input_of(job, item);
        sac_result                     res = sac_job_tracker(job, item->stream_id, &tracker);
        if (res == SAC_OK && !sac_wave_fits(job->wave, tracker->trk, &in)) {
            track_added(job, wave, first, i);
            first = i;
        }
        if (res == SAC_OK)
            res = sac_wave_add(job->wave, tracker->trk, &in);
        if (res == SAC_OK)
            continue;
        sac_job_fail_item(job, item, res);
        wave->member[i] = false;
    }
    track_added(job, wave, first, wave->count);
}

/* Each item's stage time is the wave's, since all items wait for the last. */
static void track_wave(struct sac_job *job, struct wave *wave)
{
    const struct sac_item *tracked[WAVE_MAX];
    int                    n = 0;
    int64_t                started = sac_time_ns();
    wave->device_ns = 0;
    sac_range_push("tracking");
    track_members(job, wave);
    sac_range_pop();
    int64_t ended = sac_time_ns();
    for (int i = 0; i < wave->count; i++) {
        struct sac_item *item = wave->item[i];
        if (wave->member[i]) {
            item->tracking_ns = ended - started;
            tracked[n++] = item;
        }
    }
    if (job->measures && n > 0)
        sac_job_record(job, SAC_STAGE_TRACKING, started, ended, tracked, n);
    if (wave->device_ns > 0)
        sac_job_record_gpu(job, SAC_STAGE_TRACKING, wave->begun_ns, wave->device_ns, tracked, n);
}

static void pass_on(struct sac_job *job, struct wave *wave)
{
    for (int i = 0; i < wave->count; i++) {
        struct sac_item *item = wave->item[i];
        if (item->last) {
            sac_job_end_tracker(job, item->stream_id);
        } else {
            item->done_ns = sac_time_ns();
            sac_timer_add(job->timers, SAC_SPAN_LATENCY, item->done_ns - item->submitted_ns);
            count_item(job, item);
        }
        if (sac_queue_push_wait(item->lane ? item->lane->done : job->done, item) != SAC_OK)
            sac_job_recycle(job, item);
    }
}

/* ---- the thread ---- */

static bool has_stream(const struct wave *wave, int stream_id)
{
    for (int i = 0; i < wave->count; i++)
        if (wave->item[i]->stream_id == stream_id)
            return true;
    return false;
}

/* Add an item to the wave or put it off: a second item of a stream waits for the first. */
static void take(struct wave *wave, struct sac_item *item)
{
    if (wave->count < wave->max && !wave->closed && !has_stream(wave, item->stream_id)) {
        wave->item[wave->count++] = item;
        return;
    }
    wave->later[wave->later_count++] = item;
    wave->closed |= !item->lane;
}

/* Take the items put off, then `first` (NULL: none), then those in the queue, without waiting. */
static void collect(struct sac_job *job, struct wave *wave, struct sac_item *first)
{
    void     *next;
    const int put_off = wave->later_count;
    wave->count = wave->later_count = 0;
    wave->closed = false;
    for (int i = 0; i < put_off; i++)
        take(wave, wave->later[i]);
    if (first)
        take(wave, first);
    while (wave->count < wave->max && wave->later_count < WAVE_MAX && !wave->closed &&
           sac_queue_pop_wait(job->track, 0, &next) == SAC_OK)
        take(wave, next);
}

/* NULL at the end. */
static struct sac_item *next_item(struct sac_job *job)
{
    struct sac_queue_stats stats;
    void                  *item;
    sac_queue_stats(job->track, &stats);
    if (stats.length == 0) /* idle: free the memory that others may need */
        sac_wave_rest(job->wave);
    return sac_queue_pop_wait(job->track, -1, &item) == SAC_OK ? item : NULL;
}

void *sac_job_track_main(void *arg)
{
    struct sac_job  *job = arg;
    struct wave      wave = {.max = job->dev->ops->host_memory ? 1 : WAVE_MAX};
    struct sac_item *item = NULL;
    sac_memory_use_set(SAC_MEMORY_TRACKING);
    while (wave.later_count > 0 || (item = next_item(job)) != NULL) {
        collect(job, &wave, item);
        item = NULL;
        track_wave(job, &wave);
        pass_on(job, &wave);
    }
    sac_wave_rest(job->wave);
    sac_queue_close(job->done);
    return NULL;
}
