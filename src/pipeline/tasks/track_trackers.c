/* SPDX-License-Identifier: Apache-2.0 */
/* A tracker for each stream. Where embeddings and pixels are on a device, a wave of frames takes
 * one trip to it; on the host, threads may share it. */
#include <string.h>

#include "base/range.h"
#include "pipeline/finish.h"
#include "pipeline/prepared.h"
#include "pipeline/replay.h"
#include "pipeline/tasks/still.h"
#include "pipeline/tasks/track.h"

/* ---- trackers ---- */

/* Created on first use. Valid until the next call. */
static sac_result tracker_of(struct sac_track_run *t, int stream_id,
                             struct sac_stream_tracker **out)
{
    struct sac_job *job = t->base.job;
    for (size_t i = 0; i < t->tracker_count; i++)
        if (t->trackers[i].stream_id == stream_id) {
            *out = &t->trackers[i];
            return SAC_OK;
        }
    struct sac_tracker_params params = job->params.tracker;
    struct sac_stream_tracker made = {.stream_id = stream_id};
    params.stream_id = stream_id;
    if (!sac_grow((void **)&t->trackers, &t->tracker_capacity, t->tracker_count + 1,
                  sizeof *t->trackers))
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for the tracker of stream %d",
                        stream_id);
    sac_result res = sac_tracker_create(job->ctx, &params, &made.trk);
    if (res != SAC_OK)
        return res;
    t->trackers[t->tracker_count] = made;
    *out = &t->trackers[t->tracker_count++];
    return SAC_OK;
}

/* On the host a wave is for these threads. Ids are handed out while frames are matched, so those
 * stay in the order in which they came: the threads change no number. */
static sac_result open_helpers(struct sac_track_run *t)
{
    struct sac_job *job = t->base.job;
    const int       threads = job->params.postprocess_threads;
    if (t->helpers || threads <= 1 || sac_device_apart(job->dev))
        return SAC_OK;
    t->base.wave_max = SAC_WAVE_MAX;
    t->base.in_order = true;
    return sac_worker_pool_create(job->ctx, threads, &t->helpers);
}

static sac_result open_wave(struct sac_track_run *t)
{
    struct sac_job *job = t->base.job;
    sac_result      res = t->wave ? SAC_OK : sac_wave_create(job->dev, &t->wave);
    if (res == SAC_OK)
        res = open_helpers(t);
    if (res != SAC_OK || !sac_device_apart(job->dev))
        return res;
    t->base.wave_max = SAC_WAVE_MAX;
    if (job->books->measures)
        sac_wave_measure(t->wave);
    res = sac_wave_warm_up(t->wave);
    if (!sac_is_out_of_memory(res))
        return res;
    sac_error_clear(job->ctx); /* frames will report it, if it still fails then */
    return SAC_OK;
}

sac_result sac_track_open_trackers(struct sac_track_run *t)
{
    struct sac_job            *job = t->base.job;
    struct sac_stream_tracker *first;
    sac_result                 res = tracker_of(t, 0, &first);
    if (res != SAC_OK)
        return res;
    t->by_appearance = (t->emb || job->replay_dim) && sac_tracker_wants_embeddings(first->trk);
    t->embeds = t->emb && (t->by_appearance || job->params.reid_every);
    if (t->emb && !t->by_appearance)
        sac_log(job->ctx, SAC_LOG_WARN, "tracker %s matches by motion only: %s is not used",
                sac_tracker_kind_name(job->params.tracker.kind), job->params.reid);
    const enum sac_memory_use before = sac_memory_use_set(SAC_MEMORY_TRACKING);
    res = open_wave(t);
    sac_memory_use_set(before);
    return res;
}

void sac_track_forget(struct sac_task_run *run, int stream_id)
{
    struct sac_track_run *t = (struct sac_track_run *)run;
    for (size_t i = 0; i < t->tracker_count; i++)
        if (t->trackers[i].stream_id == stream_id) {
            sac_wave_rest(t->wave);
            sac_tracker_destroy(&t->trackers[i].trk);
            sac_still_forget(t->still, stream_id);
            t->trackers[i] = t->trackers[--t->tracker_count];
            return;
        }
}

/* Creates the stream's tracker and allocates the device memory that it and the waves need. */
sac_result sac_track_expect(struct sac_task_run *run, int stream_id, int width, int height)
{
    struct sac_track_run *t = (struct sac_track_run *)run;
    sac_device           *dev = run->job->dev;
    const sac_frame       like = {
              .device = dev, .format = SAC_PIXEL_NV12, .width = width, .height = height};
    struct sac_stream_tracker *tracker;
    const enum sac_memory_use  before = sac_memory_use_set(SAC_MEMORY_TRACKING);
    sac_result                 res = tracker_of(t, stream_id, &tracker);
    if (res == SAC_OK)
        res = sac_tracker_prepare(tracker->trk, t->emb ? sac_device_apart(dev) : NULL,
                                  width > 0 ? &like : NULL);
    if (res == SAC_OK && sac_device_apart(dev))
        res = sac_wave_prepare(t->wave, tracker->trk);
    if (res != SAC_OK)
        sac_track_forget(run, stream_id);
    sac_memory_use_set(before);
    return res;
}

void sac_track_release(struct sac_task_run *run)
{
    struct sac_track_run *t = (struct sac_track_run *)run;
    for (size_t i = 0; i < t->tracker_count; i++)
        sac_tracker_destroy(&t->trackers[i].trk);
    sac_free(t->trackers);
    sac_wave_destroy(&t->wave);
    sac_worker_pool_destroy(&t->helpers);
    sac_still_destroy(&t->still);
    sac_free(t->frames);
    sac_free(t->found);
    sac_free(t->seen);
    sac_free(t->images);
    sac_free(t->crops);
    sac_free(t->crop_frames);
}

/* ---- a wave ---- */

static struct sac_tracker_input input_of(const struct sac_item *item, int dim)
{
    const struct sac_track_own     *own = item->own;
    const struct sac_replay        *replay = item->lane ? item->lane->replay : NULL;
    const struct sac_replay_motion *motion = item->still ? NULL : item->kept_motion;
    struct sac_embeddings          *rows = own && !item->still ? own->embeddings : NULL;
    struct sac_tracker_input        in = {.det = item->found.items,
                                          .count = item->found.count,
                                          .frame = item->still ? NULL : item->frame,
                                          .pts_us = item->pts_us,
                                          .unseen = item->still,
                                          .keeps_corners = replay && replay->records_motion};
    if (motion)
        in.corners = (struct sac_camera_corners){
            .at = (const void *)(motion + 1), .count = motion->count, .shrink = motion->shrink};
    if (rows)
        in.embeddings = (struct sac_embedding_rows){.dev = sac_device_apart(rows->dev),
                                                    .base = sac_embeddings_data(rows),
                                                    .count = rows->count,
                                                    .dim = rows->dim,
                                                    .row = own->row,
                                                    .batch = rows};
    else if (item->kept_looks && !item->still) /* in host memory, whatever the device */
        in.embeddings = (struct sac_embedding_rows){
            .base = item->kept_looks, .count = (int)item->found.count, .dim = dim};
    return in;
}

/* Copied, since the tracker's view is valid only until its next call. */
static sac_result copy_tracks(struct sac_stream_tracker *tracker, struct sac_item *item,
                              const struct sac_track_view *view)
{
    const int64_t known = tracker->track_id_max;
    if (!sac_grow((void **)&item->tracks, &item->track_capacity, view->count, sizeof *item->tracks))
        return SAC_ERR_MEMORY;
    if (view->count)
        memcpy(item->tracks, view->tracks, view->count * sizeof *item->tracks);
    item->track_count = view->count;
    for (size_t i = 0; i < view->count; i++) {
        item->tracks_new += view->tracks[i].id > known;
        tracker->track_id_max = SAC_MAX(tracker->track_id_max, view->tracks[i].id);
    }
    return SAC_OK;
}

static void look(void *wave, int member, int worker)
{
    (void)worker;
    sac_wave_look(wave, (size_t)member);
}

/* What members need not wait for each other with. */
static void look_all(struct sac_track_run *t)
{
    const size_t n = sac_wave_count(t->wave);
    if (t->helpers)
        sac_worker_pool_run(t->helpers, (int)n, look, t->wave);
    if ((int_fast64_t)n > atomic_load(&t->together)) /* only this thread writes it */
        atomic_store(&t->together, (int_fast64_t)n);
}

static void match(struct sac_track_run *t, size_t member, struct sac_item *item)
{
    struct sac_stream_tracker *tracker;
    struct sac_track_view      view;
    sac_wave_finish(t->wave, member, &view);
    sac_result res = tracker_of(t, item->stream_id, &tracker);
    if (res == SAC_OK)
        res = copy_tracks(tracker, item, &view);
    if (res != SAC_OK)
        sac_job_fail_item(t->base.job, item,
                          SAC_FAIL(t->base.job->ctx, res, "no memory for %zu tracks", view.count));
}

/* For the disk cache, while embeddings and corners are there. */
static void record(struct sac_track_run *t, struct sac_item *const *items, int n)
{
    for (int i = 0; i < n; i++) {
        const struct sac_track_own *own = items[i]->own;
        struct sac_replay          *replay = items[i]->lane ? items[i]->lane->replay : NULL;
        struct sac_stream_tracker  *tracker;
        if (!replay || items[i]->status != SAC_OK ||
            tracker_of(t, items[i]->stream_id, &tracker) != SAC_OK)
            continue;
        const struct sac_camera_corners corners = sac_tracker_corners(tracker->trk);
        sac_replay_add(replay, items[i], own ? own->embeddings : NULL, own ? own->row : NULL,
                       &corners);
        if (items[i]->lane->prepared)
            sac_prepared_add(items[i]->lane->prepared, items[i]);
    }
}

/* Device time of the trips of a wave. */
struct trips {
    int64_t begun_ns, device_ns;
};

/* Run the trip of the items added last, and match them; items that failed are left out. */
static void track_added(struct sac_track_run *t, struct sac_item *const *items, int n,
                        struct trips *trips)
{
    struct sac_job *job = t->base.job;
    size_t          next = 0;
    sac_result      ran = sac_wave_run(t->wave);
    int64_t         begun_ns, device_ns = sac_wave_device_ns(t->wave, &begun_ns);
    char            why[sizeof items[0]->why] = "";
    trips->begun_ns = trips->device_ns ? trips->begun_ns : begun_ns;
    trips->device_ns += device_ns;
    if (ran != SAC_OK) {
        sac_error_take(job->ctx, why, sizeof why);
    } else {
        look_all(t);
    }
    for (int i = 0; i < n; i++) {
        struct sac_item *item = items[i];
        if (item->status != SAC_OK)
            continue;
        if (ran == SAC_OK) {
            match(t, next++, item);
        } else {
            item->status = ran;
            memcpy(item->why, why, sizeof why);
        }
    }
    sac_wave_settle(t->wave);
    sac_wave_clear(t->wave);
    record(t, items, n);
    for (int i = 0; i < n; i++) /* a sink may be slow, and later frames need the memory */
        if (items[i]->own)
            sac_embeddings_unref(&((struct sac_track_own *)items[i]->own)->embeddings);
}

/* In one trip, unless there is more to compare than fits. */
static void track_items(struct sac_track_run *t, struct sac_item *const *items, int n,
                        struct trips *trips)
{
    int first = 0;
    for (int i = 0; i < n; i++) {
        struct sac_item               *item = items[i];
        struct sac_stream_tracker     *tracker = NULL;
        const struct sac_tracker_input in =
            input_of(item, t->base.job->params.tracker.embedding_dim);
        sac_result res = tracker_of(t, item->stream_id, &tracker);
        if (res == SAC_OK) {
            if (!sac_wave_fits(t->wave, tracker->trk, &in)) {
                track_added(t, items + first, i - first, trips);
                first = i;
            }
            res = sac_wave_add(t->wave, tracker->trk, &in);
        }
        if (res != SAC_OK)
            sac_job_fail_item(t->base.job, item, res);
    }
    track_added(t, items + first, n - first, trips);
}

/* Each item's stage time is the wave's, since all items wait for the last. */
void sac_track_finish(struct sac_task_run *run, struct sac_item *const *items, int n)
{
    struct sac_track_run *t = (struct sac_track_run *)run;
    struct sac_books     *books = run->job->books;
    struct trips          trips = {0};
    const int64_t         begun = sac_time_ns();
    sac_range_push("tracking");
    track_items(t, items, n, &trips);
    sac_range_pop();
    const int64_t ended = sac_time_ns();
    for (int i = 0; i < n; i++)
        items[i]->tracking_ns = ended - begun;
    if (books->measures)
        sac_books_record(books, SAC_STAGE_TRACKING, begun, ended, items, n);
    if (trips.device_ns > 0)
        sac_books_record_gpu(books, SAC_STAGE_TRACKING, trips.begun_ns, trips.device_ns, items, n);
}

void sac_track_rest(struct sac_task_run *run)
{
    sac_wave_rest(((struct sac_track_run *)run)->wave);
}
