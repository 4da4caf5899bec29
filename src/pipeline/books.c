/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/books.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/range.h"
#include "observe/gpu.h"
#include "observe/run_watch.h"
#include "observe/trace.h"

/* ---- creation ---- */

static sac_result create_timers(sac_context *ctx, bool on, sac_timers **timers)
{
    sac_result res = sac_timers_create(ctx, timers);
    for (int i = 0; res == SAC_OK && i < SAC_SPAN_COUNT; i++)
        if (sac_timers_id(*timers, sac_stages[i].name) != i)
            res = SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for the timers of the stages");
    if (res == SAC_OK)
        sac_timers_enable(*timers, on);
    return res;
}

static void add_gpu_tracks(struct sac_books *b)
{
    char name[32];
    snprintf(name, sizeof name, "%.16s tracking", sac_device_name(b->dev));
    b->gpu_infer = sac_trace_track(b->trace, sac_device_name(b->dev));
    b->gpu_finish = sac_trace_track(b->trace, name);
}

static sac_result open_spans(struct sac_books *b, const struct sac_track_job_params *p)
{
    sac_result res = SAC_OK;
    if (b->leader) {
        b->timers = b->leader->timers;
        b->gpu_timers = b->leader->gpu_timers;
        b->trace = b->leader->trace;
    } else {
        res = create_timers(b->ctx, p->timers, &b->timers);
        if (res == SAC_OK)
            res = create_timers(b->ctx, p->timers, &b->gpu_timers);
        if (res == SAC_OK && p->trace_out)
            res = sac_trace_create(b->ctx, p->trace_out, &b->trace);
    }
    if (res != SAC_OK)
        return res;
    b->gpu_infer = b->gpu_matte = b->gpu_finish = -1;
    sac_ranges_open();
    b->tells_frames = p->frame_times;
    b->measures = p->timers || b->trace || p->frame_times;
    return SAC_OK;
}

sac_result sac_books_create(sac_device *dev, const struct sac_track_job_params *params,
                            const struct sac_books *leader, struct sac_books **out)
{
    struct sac_books *b = *out = sac_new(struct sac_books);
    if (!b)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "no memory for a job's figures");
    b->ctx = dev->ctx;
    b->dev = dev;
    b->leader = leader;
    sac_result res = open_spans(b, params);
    return res == SAC_OK && params->stats_out
               ? sac_outfile_open(b->ctx, params->stats_out, &b->stats_file)
               : res;
}

void sac_books_watch(struct sac_books *b, int gpu_interval_ms)
{
    if (b->trace && b->dev->ops->async)
        add_gpu_tracks(b);
    b->gpu = sac_gpu_watch_start(b->ctx, b->dev->pci_bus_id, gpu_interval_ms, NULL);
}

void sac_books_destroy(struct sac_books **at)
{
    struct sac_books *b = *at;
    if (!b)
        return;
    *at = NULL;
    sac_run_watch_destroy(&b->watch);
    if (!b->leader) {
        sac_trace_destroy(&b->trace);
        sac_timers_destroy(&b->timers);
        sac_timers_destroy(&b->gpu_timers);
    }
    sac_outfile_abandon(&b->stats_file);
    sac_gpu_watch_stop(&b->gpu);
    sac_free(b);
}

/* ---- spans ---- */

int64_t sac_books_begin(struct sac_books *b, enum sac_stage stage)
{
    sac_range_push(sac_stages[stage].name);
    return b->measures ? sac_time_ns() : 0;
}

void sac_books_finish(struct sac_books *b, enum sac_stage stage, int64_t begun,
                      const struct sac_item *item)
{
    struct sac_item *const items = (struct sac_item *)item;
    sac_range_pop();
    if (begun)
        sac_books_record(b, stage, begun, sac_time_ns(), &items, 1);
}

static void add_events(struct sac_books *b, int track, enum sac_stage stage, int64_t begun_ns,
                       int64_t ended_ns, struct sac_item *const *items, int n)
{
    for (int i = 0; i < n; i++)
        sac_trace_add(b->trace, &(struct sac_trace_event){
                                    .name = sac_stages[stage].name,
                                    .track = track,
                                    .begun_ns = begun_ns,
                                    .ended_ns = ended_ns,
                                    .frame = items[i]->number,
                                    .pts_us = items[i]->pts_us,
                                    .stream_id = items[i]->stream_id,
                                    .batch = n,
                                });
}

static void tell_frames(struct sac_books *b, enum sac_stage stage, int64_t took_ns,
                        struct sac_item *const *items, int n)
{
    char batch[32] = "";
    if (n > 1)
        snprintf(batch, sizeof batch, ", with %d others", n - 1);
    for (int i = 0; i < n; i++)
        sac_log(b->ctx, SAC_LOG_DEBUG, "frame %" PRId64 " of stream %d: %s took %.3f ms%s",
                items[i]->number, items[i]->stream_id, sac_stages[stage].name,
                (double)took_ns * 1e-6, batch);
}

void sac_books_trace(struct sac_books *b, enum sac_stage stage, int64_t begun_ns, int64_t ended_ns,
                     struct sac_item *const *items, int n)
{
    if (b->trace)
        add_events(b, sac_trace_thread(b->trace), stage, begun_ns, ended_ns, items, n);
    if (b->tells_frames && sac_log_enabled(b->ctx, SAC_LOG_DEBUG))
        tell_frames(b, stage, ended_ns - begun_ns, items, n);
}

void sac_books_time(struct sac_books *b, enum sac_stage stage, int64_t duration_ns)
{
    sac_timer_add(b->timers, stage, duration_ns);
}

void sac_books_record(struct sac_books *b, enum sac_stage stage, int64_t begun_ns, int64_t ended_ns,
                      struct sac_item *const *items, int n)
{
    sac_books_time(b, stage, ended_ns - begun_ns);
    sac_books_trace(b, stage, begun_ns, ended_ns, items, n);
}

/* Mattes are made beside the network's next run. */
static int gpu_track(struct sac_books *b, enum sac_stage stage)
{
    char name[32];
    if (sac_stages[stage].thread == SAC_THREAD_FINISH)
        return b->gpu_finish;
    if (stage != SAC_STAGE_MATTE)
        return b->gpu_infer;
    snprintf(name, sizeof name, "%.16s mattes", sac_device_name(b->dev));
    if (b->gpu_matte < 0)
        b->gpu_matte = sac_trace_track(b->trace, name);
    return b->gpu_matte;
}

void sac_books_record_gpu(struct sac_books *b, enum sac_stage stage, int64_t begun_ns,
                          int64_t duration_ns, struct sac_item *const *items, int n)
{
    sac_timer_add(b->gpu_timers, stage, duration_ns);
    if (b->trace && begun_ns)
        add_events(b, gpu_track(b, stage), stage, begun_ns, begun_ns + duration_ns, items, n);
}

void sac_books_on_decoded(void *books, const sac_frame *frame, int64_t begun_ns, int64_t ended_ns)
{
    struct sac_item item = {
        .number = frame->number, .pts_us = frame->pts_us, .stream_id = frame->stream_id};
    struct sac_item *const items = &item;
    sac_books_record(books, SAC_STAGE_DECODE, begun_ns, ended_ns, &items, 1);
}

/* ---- counts ---- */

void sac_books_enter(struct sac_books *b, const struct sac_item *item)
{
    int_fast64_t none = 0;
    if (item->last)
        return;
    if (atomic_compare_exchange_strong(&b->first_ns, &none, item->submitted_ns))
        sac_gpu_watch_restart(b->gpu); /* loading the models is not part of the run */
    none = 0;
    if (item->lane)
        atomic_compare_exchange_strong(&item->lane->first_ns, &none, item->submitted_ns);
}

void sac_books_count_batch(struct sac_books *b, int frames, bool full)
{
    atomic_fetch_add(&b->batches, 1);
    atomic_fetch_add(&b->batch_frames, (uint_fast64_t)frames);
    atomic_fetch_add(&b->batches_full, full);
}

void sac_books_count_limit(struct sac_books *b, bool grown)
{
    atomic_fetch_add(grown ? &b->grown : &b->shrunk, 1);
}

/* Late: the frame after the next has come meanwhile. */
void sac_books_count_composite(struct sac_books *b, const struct sac_item *item)
{
    const int64_t took = sac_time_ns() - item->submitted_ns, step = item->frame->duration_us * 1000;
    sac_timer_add(b->timers, SAC_SPAN_COMPOSITE_LATENCY, took);
    atomic_fetch_add(&b->composites_late, step > 0 && took > 2 * step);
}

void sac_books_count_region(struct sac_books *b, const sac_frame *frame, int eyes,
                            const struct sac_rect *region)
{
    const double part = eyes * ((double)region->x1 - region->x0) *
                        ((double)region->y1 - region->y0) / ((double)frame->width * frame->height);
    if (!(part > 0))
        return;
    atomic_fetch_add(&b->regions, 1);
    atomic_fetch_add(&b->region_millionths, (uint_fast64_t)(part * 1e6 + 0.5));
}

void sac_books_count_scales(struct sac_books *b, int looks)
{
    atomic_fetch_add(&b->scales, 1);
    atomic_fetch_add(&b->looks, (uint_fast64_t)looks);
}

void sac_books_count_early(struct sac_books *b, int small, int large)
{
    atomic_fetch_add(&b->small, (uint_fast64_t)small);
    atomic_fetch_add(&b->large, (uint_fast64_t)large);
}

void sac_books_count_item(struct sac_books *b, struct sac_item *item)
{
    struct sac_lane *lane = item->lane;
    sac_timer_add(b->timers, SAC_SPAN_LATENCY, item->done_ns - item->submitted_ns);
    sac_device_count_frames(b->dev, 1);
    atomic_fetch_add(&b->frames, 1);
    atomic_fetch_add(&b->detections, (int_fast64_t)item->found.count);
    atomic_fetch_add(&b->tracks, item->tracks_new);
    atomic_store(&b->objects, (int)item->track_count);
    atomic_fetch_add(&b->still, item->still);
    atomic_store(&b->last_ns, item->done_ns);
    if (!lane)
        return;
    atomic_fetch_add(&lane->frames_done, 1);
    atomic_fetch_add(&lane->detections, (int_fast64_t)item->found.count);
    atomic_fetch_add(&lane->tracks, item->tracks_new);
    atomic_store(&lane->last_ns, item->done_ns);
}

void sac_books_count_video(struct sac_books *b, struct sac_lane *lane)
{
    const int64_t now_ns = sac_time_ns();
    atomic_store(&lane->last_ns, now_ns);
    atomic_store(&b->last_ns, now_ns);
}
