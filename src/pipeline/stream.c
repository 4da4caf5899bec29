/* SPDX-License-Identifier: Apache-2.0 */
/* One input of a pipeline: opens it, reads it, writes its results. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "media/media.h"
#include "pipeline/books.h"
#include "pipeline/inference.h"
#include "pipeline/pipeline.h"
#include "pipeline/prepared.h"
#include "pipeline/replay.h"
#include "pipeline/tasks/segment.h"
#include "pipeline/tasks/track.h"
#include "track/core.h"

/* With more streams than this, each gets no more pictures in device memory than it needs. */
enum { STREAMS_FEW = 8 };
/* Where each frame is wanted soon: one is read, one at the network, one composed and written. */
enum { PROMPT_ROOM = 3 };

static bool is_one_of_many(const struct sac_stream_run *s)
{
    return s->pipe->stream_count > 1;
}

/* ---- opening ---- */

/* A single stream is limited by the queues themselves, unless its decoder lends few pictures. */
static bool is_limited(const struct sac_stream_run *s)
{
    return is_one_of_many(s) || sac_job_is_prompt(s->job) || s->job->dev->ops->pictures_lent > 0;
}

/* Each stream may have enough frames inside to fill the batches under way and one more. Its last
 * queue holds them all. */
static int batches_inside(const struct sac_job *job)
{
    return job->inference->depth + 1;
}

static int streams_of(const sac_pipeline *pipe, const struct sac_job *job)
{
    int i = 0;
    while (i + 1 < pipe->job_count && pipe->jobs[i] != job)
        i++;
    return sac_pipeline_streams_of(pipe, i);
}

static int room_of(const sac_pipeline *pipe, const struct sac_job *job)
{
    const int length = SAC_MAX(pipe->params.job.queue_length, 1), streams = streams_of(pipe, job);
    /* While mattes are made of a batch, the network has two others. */
    const int batches = batches_inside(job) + (job->segment != NULL);
    const int share = (batches * job->inference->batch_max + streams - 1) / streams;
    const int lent = job->dev->ops->pictures_lent;
    if (sac_job_is_prompt(job))
        return PROMPT_ROOM;
    if (lent == 0)
        return SAC_MAX(SAC_MAX(length, 2), share);
    /* In GPU memory a frame of 1080p takes 8 MB: many streams get no more than they need, and in
     * real time no frame waits long. */
    const int least = streams < STREAMS_FEW ? SAC_MAX(length, 2) : 2;
    return SAC_CLAMP(pipe->params.realtime ? 2 : share, least, lent);
}

int sac_pipeline_batch_limit(const sac_pipeline *pipe, const struct sac_job *job)
{
    const int room = streams_of(pipe, job) * room_of(pipe, job);
    /* Frames of one file come as fast as they are decoded: while a batch is at work, the other half
     * of one that has begun to fill is read. */
    const int fit =
        job->segment ? 2 * room / (2 * batches_inside(job) - 1) : room / batches_inside(job);
    int limit = 1;
    while (2 * limit <= fit)
        limit *= 2;
    return fit >= job->inference->batch_max ? job->inference->batch_max : limit;
}

static sac_result make_room(struct sac_stream_run *s)
{
    const int length = SAC_MAX(s->pipe->params.job.queue_length, 1),
              room = room_of(s->pipe, s->job);
    s->lane.room = is_limited(s) ? room : INT_MAX / 2;
    sem_destroy(&s->room);
    sem_init(&s->room, 0, (unsigned)s->lane.room);
    return sac_queue_create(s->pipe->ctx, (size_t)(is_limited(s) ? room + 1 : length),
                            &s->lane.done);
}

/* Divide the threads for video among the streams; each gets at least one. */
static int share_of(const struct sac_stream_run *s, int threads)
{
    const int all = threads > 0 ? threads : sac_video_threads(s->job->dev);
    return SAC_MAX(all / s->pipe->stream_count, 1);
}

void sac_stream_init(struct sac_stream_run *s, sac_pipeline *pipe,
                     const struct sac_stream_params *params, int index)
{
    s->pipe = pipe;
    s->params = pipe->params;
    s->params.input = params->input;
    s->params.detections = params->detections;
    struct sac_stream_params p = *params;
    for (int i = 0; i < SAC_OUTPUT_ROWS; i++)
        *sac_output_path(&s->params, i) = *sac_output_path_of_stream(&p, i);
    sac_fault_init(&s->fault);
    sac_fault_init(&s->unopened);
    sem_init(&s->room, 0, 0);
    const struct sac_segment_params *seg = pipe->params.job.segment;
    if (is_one_of_many(s))
        s->params.source.stream_id = index;
    if (is_one_of_many(s) || (seg && seg->mode == SAC_SEGMENT_VR))
        s->params.source.prefetch = 0; /* the reading thread decodes ahead */
}

/* Without a video time is counted in frames: the first frame at this time or later. */
static int64_t number_at(const struct sac_stream_run *s, int64_t us)
{
    return (int64_t)ceil((double)us * s->params.fps / 1e6 - 1e-6);
}

int64_t sac_stream_rows_total(const struct sac_stream_run *s)
{
    const struct sac_source_params *part = &s->params.source;
    const int                       every = SAC_MAX(part->every, 1);
    int64_t                         end = s->rows.frames;
    if (part->duration_us > 0)
        end = SAC_MIN(number_at(s, part->start_us + part->duration_us), end);
    return SAC_MAX((end - number_at(s, part->start_us) + every - 1) / every, 0);
}

sac_result sac_stream_open_rows(struct sac_stream_run *s)
{
    struct sac_pipeline_params *p = &s->params;
    sac_context                *ctx = s->pipe->ctx;
    sac_result                  res = sac_rows_open(ctx, p->detections, &s->rows);
    s->lane.rows = &s->rows;
    if (res != SAC_OK || p->input)
        return res;
    if (p->video_out)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "'%s': an annotated video needs the video that it shows",
                        p->video_out);
    if (p->job.reid && strcmp(p->job.reid, "auto") != 0 && strcmp(p->job.reid, "none") != 0)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "'%s': appearance needs the video, not only '%s'",
                        p->job.reid, p->detections);
    if (p->fps <= 0)
        p->fps = s->rows.fps;
    if (!(p->fps > 0 && isfinite(p->fps)))
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "'%s': without a video the frames per second must be given, or a "
                        "seqinfo.ini beside it",
                        p->detections);
    if (p->source.start_us > 0 && sac_stream_rows_total(s) == 0)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "%s: no frame at %.3f s or later; it lasts %.3f s",
                        p->detections, (double)p->source.start_us * 1e-6,
                        (double)s->rows.frames / p->fps);
    return SAC_OK;
}

/* Whether anything but the networks looks at pixels. */
static bool needs_pixels(const struct sac_stream_run *s)
{
    return s->params.video_out || s->params.crops_out ||
           sac_replay_lacks_motion(s->lane.replay, s->job);
}

/* In words, for the log. */
static const char *what_is_kept(const struct sac_replay *r)
{
    static const char *const words[2][2] = {
        {"boxes", "boxes and camera motion"},
        {"boxes and embeddings", "boxes, embeddings and camera motion"}};
    return words[r->looks != NULL][r->motion != NULL];
}

sac_result sac_stream_look_up(struct sac_stream_run *s)
{
    struct sac_replay *replay = NULL;
    sac_result         res = sac_replay_open(s->pipe->cache, s->job, &s->params, s->name, &replay);
    s->lane.replay = replay;
    if (res != SAC_OK || !replay || !replay->boxes)
        return res;
    s->job->replay = replay;
    s->unseen = !needs_pixels(s) && !sac_replay_lacks_looks(replay, s->job);
    s->info = sac_replay_about(replay)->info;
    sac_log(s->pipe->ctx, SAC_LOG_INFO, "%s: %s of %lld frames come from the disk cache%s", s->name,
            what_is_kept(replay), (long long)replay->frames,
            s->unseen ? "; the video is not decoded" : "");
    return SAC_OK;
}

/* Frames that a GPU's decoder lends out: those inside, the one being read, those read ahead, and
 * the one that waits in the prefetch thread's hand for a place among them. */
static int surfaces_for(const struct sac_stream_run *s)
{
    const int prefetch = s->params.source.prefetch;
    return room_of(s->pipe, s->job) + 1 + (prefetch > 0 ? prefetch + 1 : 0);
}

/* Where frames come from a GPU's decoder, no disk gives them as fast. */
static bool wants_prepared(const struct sac_stream_run *s)
{
    return s->params.disk_cache_frames && s->lane.replay && !s->lane.replay->boxes &&
           !sac_device_apart(s->job->dev) && !needs_pixels(s) &&
           !sac_replay_lacks_looks(s->lane.replay, s->job);
}

static sac_result open_input(void *arg)
{
    struct sac_stream_run   *s = arg;
    struct sac_source_params params = s->params.source;
    struct sac_job          *job = s->job;
    params.decode_threads = share_of(s, params.decode_threads);
    params.low_delay |= sac_job_is_prompt(job);
    s->last = sac_job_item(job);
    sac_result res = s->last ? make_room(s) : SAC_ERR_MEMORY;
    if (res != SAC_OK || !s->params.input || s->unseen)
        return res;
    if (!s->params.video_out)
        params.keep_packets = 0; /* no sink takes them */
    if (wants_prepared(s))
        params.prefetch = 0; /* its thread would decode at once */
    /* With the device chosen automatically, the CPU decodes what the GPU can't. */
    const char *device = s->pipe->params.job.device;
    if (params.decode == SAC_DECODE_DEFAULT && (!device || strcmp(device, "auto") == 0))
        params.decode = SAC_DECODE_AUTO;
    if (params.surfaces <= 0)
        params.surfaces = surfaces_for(s);
    if (s->pipe->params.realtime && sac_job_is_prompt(job))
        params.paced = 1;
    if (job->books->measures) {
        params.on_decoded = sac_books_on_decoded;
        params.on_decoded_user = job->books;
    }
    const enum sac_memory_use before = sac_memory_use_set(SAC_MEMORY_DECODE);
    res = sac_source_open(job->dev, s->params.input, &params, &s->src);
    sac_memory_use_set(before);
    if (res != SAC_OK)
        return res;
    sac_source_describe(s->src, &s->info);
    if (s->params.fps > 0 && !sac_source_input(s->src)->numbered)
        sac_log(s->pipe->ctx, SAC_LOG_WARN,
                "%g frames per second are ignored: '%s' is a video with times of its own",
                s->params.fps, s->name);
    return SAC_OK;
}

sac_result sac_stream_open_input(struct sac_stream_run *s)
{
    return sac_start_step(&s->job->start, SAC_START_INPUTS, open_input, s);
}

void sac_stream_reset(struct sac_stream_run *s)
{
    sac_stream_close(s);
    sac_queue_destroy(&s->lane.done);
    sac_error_clear(s->pipe->ctx);
}

static sac_result add_output(struct sac_stream_run *s, int row)
{
    if (!*sac_output_path(&s->params, row))
        return SAC_OK;
    const struct sac_output_row *r = &sac_output_rows[row];
    sac_result                   res =
        (s->job->segment ? r->create_mattes : r->create)(&s->setup, &s->outputs[s->output_count]);
    if (res == SAC_OK)
        s->output_count++;
    return res;
}

/* The picture that a program asked for, without a file. */
static sac_result add_composite(struct sac_stream_run *s)
{
    const struct sac_segment_params *seg = s->job->segment;
    if (!seg || !seg->on_composite || s->params.video_out || !sac_segment_composes(seg->as))
        return SAC_OK;
    sac_result res = sac_mattes_create(&s->setup, &s->outputs[s->output_count]);
    if (res == SAC_OK)
        s->output_count++;
    return res;
}

static void drop_output(struct sac_stream_run *s, int i)
{
    s->outputs[i]->ops->destroy(s->outputs[i]);
    s->output_count--;
    memmove(&s->outputs[i], &s->outputs[i + 1], (size_t)(s->output_count - i) * sizeof *s->outputs);
}

sac_result sac_stream_prepare(struct sac_stream_run *s)
{
    const bool pixels = s->src != NULL;
    return sac_job_expect(s->job, s->params.source.stream_id, pixels ? s->info.width : 0,
                          pixels ? s->info.height : 0);
}

static sac_result open_all_outputs(void *arg)
{
    struct sac_stream_run            *s = arg;
    const struct sac_pipeline_params *p = &s->params;
    s->params.sink.threads = share_of(s, p->sink.threads);
    s->params.sink.beside = s->pipe->stream_count - 1;
    s->setup = (struct sac_output_setup){
        .ctx = s->pipe->ctx,
        .job = s->job,
        .params = p,
        .src = s->src,
        .width = s->info.width,
        .height = s->info.height,
        .fps = s->src || s->unseen ? s->info.fps : p->fps,
        .call_lock = &s->pipe->on_frame_lock,
    };
    sac_result res = add_composite(s);
    for (int i = 0; i < SAC_OUTPUT_ROWS && res == SAC_OK; i++)
        res = add_output(s, i);
    for (int i = 0; i < s->output_count; i++)
        if (s->outputs[i]->ops->encoder)
            snprintf(s->encoder, sizeof s->encoder, "%s",
                     s->outputs[i]->ops->encoder(s->outputs[i]));
    s->ready = res == SAC_OK;
    while (!s->ready && s->output_count > 0) /* opening may be retried */
        drop_output(s, 0);
    return res;
}

sac_result sac_stream_open_outputs(struct sac_stream_run *s)
{
    return sac_start_step(&s->job->start, SAC_START_OUTPUTS, open_all_outputs, s);
}

void sac_stream_record(struct sac_stream_run *s)
{
    const struct sac_track_run *t = (const struct sac_track_run *)s->job->run;
    const char                 *why = NULL;
    sac_replay_record(s->lane.replay, s->job, &s->info);
    if (!s->params.disk_cache_frames || s->lane.replay->boxes)
        return;
    if (sac_device_apart(s->job->dev))
        why = "a GPU's decoder makes frames faster than a disk gives them";
    else if (!wants_prepared(s) || t->embeds)
        why = "embeddings, camera motion, crops or an annotated video need the video's own pixels";
    if (why)
        sac_log(s->pipe->ctx, SAC_LOG_INFO, "%s: prepared frames are neither taken nor kept: %s",
                s->name, why);
    else
        s->lane.prepared = sac_prepared_open(s->lane.replay, s->job, &t->det->buckets.pre);
}

/* ---- faults ---- */

void sac_stream_fail(struct sac_stream_run *s, sac_result res)
{
    sac_context *ctx = s->pipe->ctx;
    char         why[512];
    if (res == SAC_OK)
        return;
    sac_context_last_error(ctx, why, sizeof why);
    if (is_one_of_many(s) && !strstr(why, s->name)) {
        sac_fail_prefix(ctx, res, "%s: ", s->name);
        sac_context_last_error(ctx, why, sizeof why);
    }
    bool first = sac_fault_keep(&s->fault, ctx, res);
    if (first && is_one_of_many(s) && res != SAC_ERR_CANCELLED)
        sac_log(ctx, SAC_LOG_ERROR, "%s", why);
}

static void set_flag(struct sac_stream_run *s, atomic_bool *flag)
{
    atomic_store(flag, true);
    sem_post(&s->pipe->wake);
}

/* ---- the reading thread ---- */

static bool should_end(struct sac_stream_run *s)
{
    return atomic_load(&s->pipe->stopped) || atomic_load(&s->failed);
}

static void wait_for_room(struct sac_stream_run *s)
{
    if (sem_trywait(&s->room) == 0)
        return;
    int64_t begun = sac_time_ns();
    while (sem_wait(&s->room) != 0 && errno == EINTR)
        ;
    atomic_fetch_add(&s->room_waits, 1);
    atomic_fetch_add(&s->room_wait_ns, (uint_fast64_t)(sac_time_ns() - begun));
}

static sac_result read_frame(struct sac_stream_run *s, struct sac_item *item)
{
    sac_result res = sac_source_read_wait(s->src, &item->frame);
    if (res != SAC_OK)
        return res;
    item->number = item->frame->number;
    item->pts_us = item->frame->pts_us;
    item->source_pts_us = item->frame->source_pts_us;
    item->stream_id = item->frame->stream_id;
    if (sac_job_is_prompt(s->job))
        item->submitted_ns = item->frame->arrived_ns;
    return SAC_OK;
}

static sac_result next_number(struct sac_stream_run *s, int64_t turn, struct sac_item *item)
{
    const struct sac_source_params *part = &s->params.source;
    const int64_t number = number_at(s, part->start_us) + turn * SAC_MAX(part->every, 1);
    if (turn >= sac_stream_rows_total(s))
        return SAC_EOS;
    item->number = number;
    item->pts_us = llround((double)number * 1e6 / s->params.fps);
    item->source_pts_us = SAC_PTS_NONE;
    item->stream_id = s->params.source.stream_id;
    return SAC_OK;
}

/* Without its video, or beside it. */
static sac_result replay_frame(struct sac_stream_run *s, struct sac_item *item)
{
    sac_result res = s->src ? read_frame(s, item) : SAC_OK;
    item->stream_id = s->params.source.stream_id;
    return res == SAC_OK ? sac_replay_next(s->lane.replay, item) : res;
}

/* From the video where its image is damaged. */
static sac_result prepared_frame(struct sac_stream_run *s, struct sac_item *item)
{
    sac_result res = sac_prepared_next(s->lane.prepared, item);
    item->stream_id = s->params.source.stream_id;
    if (res != SAC_OK || item->still || item->image)
        return res;
    while (res == SAC_OK && (!item->frame || item->frame->number < item->number)) {
        sac_frame_unref(&item->frame);
        res = sac_source_read_wait(s->src, &item->frame);
    }
    if (res == SAC_EOS || (res == SAC_OK && item->frame->number != item->number))
        res = SAC_FAIL(s->pipe->ctx, SAC_ERR_FORMAT,
                       "%s: it has no frame %lld, and the disk cache has: clear it", s->name,
                       (long long)item->number);
    return res;
}

static sac_result next_frame(struct sac_stream_run *s, int64_t turn, struct sac_item *item)
{
    if (s->lane.replay && s->lane.replay->boxes)
        return replay_frame(s, item);
    if (sac_prepared_has(s->lane.prepared))
        return prepared_frame(s, item);
    return s->src ? read_frame(s, item) : next_number(s, turn, item);
}

static sac_result feed(struct sac_stream_run *s)
{
    struct sac_job *job = s->job;
    sac_result      res = SAC_OK;
    int64_t         sent = 0;
    for (int64_t turn = 0; res == SAC_OK && !should_end(s); turn++) {
        struct sac_item *item = sac_job_item(job);
        if (!item)
            return SAC_ERR_MEMORY;
        item->lane = &s->lane;
        res = next_frame(s, turn, item);
        if (res == SAC_OK)
            wait_for_room(s);
        if (res == SAC_OK && s->params.realtime && !sac_job_is_prompt(job))
            sac_stream_pace(s, item);
        if (res == SAC_OK) {
            res = sac_job_push_wait(job, item);
            sent += res == SAC_OK;
        } else {
            sac_job_recycle(job, item);
        }
    }
    if (s->lane.replay) {
        s->lane.replay->sent = sent;
        s->lane.replay->ended = res == SAC_EOS;
    }
    /* all streams may have ended before the thread of the run wakes up and sees the stop */
    if (res == SAC_OK && atomic_load(&s->pipe->stopped))
        atomic_store(&s->pipe->cancelled, true);
    return res;
}

static void send_last(struct sac_stream_run *s)
{
    struct sac_item *last = s->last;
    s->last = NULL;
    last->lane = &s->lane;
    last->stream_id = s->params.source.stream_id;
    last->last = true;
    sac_job_push_wait(s->job, last); /* the job takes items until every stream has ended */
}

static void *read_main(void *arg)
{
    struct sac_stream_run *s = arg;
    sac_memory_use_set(SAC_MEMORY_DECODE);
    sac_result res = feed(s);
    if (res != SAC_EOS && res != SAC_ERR_CANCELLED)
        sac_stream_fail(s, res);
    /* One that gave way frees what others may need; one that came to its end waits for the run's,
     * as a decoder's end holds up all the others of a GPU. */
    if (s->src && (res != SAC_EOS || atomic_load(&s->failed)))
        sac_source_rest(s->src);
    send_last(s);
    return NULL;
}

/* ---- the sink thread ---- */

/* An output that fails is closed. The others still get the frame, and are finished with what they
 * have. */
static sac_result write_from(struct sac_stream_run *s, int first, int end, struct sac_item *item)
{
    sac_result failed = SAC_OK;
    for (int i = first; i < end;) {
        sac_result res = s->outputs[i]->ops->write(s->outputs[i], item);
        if (res == SAC_OK) {
            s->outputs[i++]->begun = true;
            continue;
        }
        sac_stream_fail(s, res);
        drop_output(s, i);
        end--;
        failed = res;
    }
    return failed;
}

/* Those that time themselves were opened first. */
static sac_result write_outputs(struct sac_stream_run *s, struct sac_item *item)
{
    struct sac_job *job = s->job;
    const int       count = s->output_count;
    int             timed = 0;
    while (timed < count && s->outputs[timed]->ops->times_itself)
        timed++;
    sac_result res = write_from(s, 0, timed, item);
    timed -= count - s->output_count;
    if (timed == s->output_count)
        return res;
    int64_t    begun = sac_books_begin(job->books, SAC_STAGE_WRITE);
    sac_result others = write_from(s, timed, s->output_count, item);
    sac_books_finish(job->books, SAC_STAGE_WRITE, begun, item);
    return res == SAC_OK ? others : res;
}

/* Several sink threads call it, one at a time. */
static bool call_user(struct sac_stream_run *s, const struct sac_item *item)
{
    const struct sac_pipeline_params *p = &s->params;
    const struct sac_segment_params  *seg = s->job->segment;
    int                               stop = 0;
    if (!p->on_frame && !(seg && seg->on_matte))
        return true;
    pthread_mutex_lock(&s->pipe->on_frame_lock);
    if (p->on_frame)
        stop = p->on_frame(p->on_frame_user, item->frame, item->tracks, item->track_count);
    if (seg && seg->on_matte)
        stop |= seg->on_matte(seg->on_matte_user, item->frame, sac_segment_matte(item));
    pthread_mutex_unlock(&s->pipe->on_frame_lock);
    return stop == 0;
}

/* Hand one frame's results to all outputs and the callback; false: stop. */
static bool deliver(struct sac_stream_run *s, struct sac_item *item)
{
    if (item->status != SAC_OK) {
        SAC_FAIL(s->pipe->ctx, item->status, "%s", item->why);
        sac_stream_fail(s, item->status);
        return false;
    }
    bool       go_on = call_user(s, item);
    sac_result res = write_outputs(s, item);
    if (!go_on) {
        atomic_store(&s->pipe->cancelled, true);
        set_flag(s, &s->pipe->stopped);
    }
    return go_on && res == SAC_OK;
}

/* Without a frame there is nothing to give a name to: what an earlier run left there is worth
 * more. */
static void finish_outputs(struct sac_stream_run *s)
{
    bool dropped = false;
    while (s->output_count > 0) {
        struct sac_output *out = s->outputs[0];
        sac_result         res = out->begun ? out->ops->finish(out) : SAC_OK;
        sac_stream_fail(s, res);
        if (res == SAC_OK && out->begun && !out->empty)
            atomic_fetch_or(&s->whole, out->ops->bit);
        if (res == SAC_OK && out->begun && out->ops->bit == SAC_OUTPUT_VIDEO)
            sac_books_count_video(s->job->books, &s->lane);
        dropped |= !out->begun;
        drop_output(s, 0);
    }
    if (dropped)
        sac_log(s->pipe->ctx, SAC_LOG_WARN,
                "%s: not one frame came, so no results are written; files of earlier runs stay as "
                "they are",
                s->params.input ? s->params.input : s->params.detections);
}

static void *sink_main(void *arg)
{
    struct sac_stream_run *s = arg;
    bool                   open = true, last = false;
    void                  *popped;
    sac_memory_use_set(SAC_MEMORY_ENCODE);
    while (!last && sac_queue_pop_wait(s->lane.done, -1, &popped) == SAC_OK) {
        struct sac_item *item = popped;
        last = item->last;
        if (!last && open && !deliver(s, item)) {
            open = false;
            set_flag(s, &s->failed);
        }
        sac_job_recycle(s->job, item);
        sem_post(&s->room);
    }
    finish_outputs(s);
    set_flag(s, &s->finished);
    return NULL;
}

/* ---- a run ---- */

/* With several streams, thread names in traces and debuggers include the stream's number. */
static sac_result start_thread(struct sac_stream_run *s, pthread_t *thread, const char *name,
                               void *(*fn)(void *))
{
    char numbered[32];
    snprintf(numbered, sizeof numbered, "%s-%d", name, s->params.source.stream_id);
    return sac_thread_start(s->pipe->ctx, thread, is_one_of_many(s) ? numbered : name, fn, s);
}

sac_result sac_stream_start(struct sac_stream_run *s)
{
    sac_result res = start_thread(s, &s->sink_thread, "sac-sink", sink_main);
    s->sink_started = res == SAC_OK;
    if (res != SAC_OK)
        return res;
    sac_inference_add_lane(s->job->inference, &s->lane);
    res = start_thread(s, &s->read_thread, "sac-read", read_main);
    s->read_started = res == SAC_OK;
    if (res != SAC_OK)
        send_last(s);
    return res;
}

void sac_stream_end_early(struct sac_stream_run *s)
{
    if (s->ended_early)
        return;
    s->ended_early = true;
    atomic_store(&s->lane.discard, true);
    if (s->src)
        sac_source_cancel(s->src);
    sem_post(&s->room);
}

void sac_stream_join(struct sac_stream_run *s)
{
    if (s->read_started)
        pthread_join(s->read_thread, NULL);
    if (s->sink_started)
        pthread_join(s->sink_thread, NULL);
    s->read_started = s->sink_started = false;
    if (s->lane.replay)
        sac_replay_commit(s->lane.replay);
    if (s->lane.prepared)
        sac_prepared_commit(s->lane.prepared, s->lane.replay->ended ? s->lane.replay->sent : 0);
}

void sac_stream_close(struct sac_stream_run *s)
{
    while (s->output_count > 0)
        drop_output(s, 0);
    sac_source_close(&s->src);
    if (s->last)
        sac_job_recycle(s->job, s->last);
    s->last = NULL;
}

void sac_stream_finish(struct sac_stream_run *s)
{
    if (!s->pipe)
        return; /* it was never initialised */
    sac_queue_destroy(&s->lane.done);
    sac_prepared_close(&s->lane.prepared);
    sac_replay_close(&s->lane.replay);
    sac_rows_finish(&s->rows);
    sac_fault_finish(&s->fault);
    sac_fault_finish(&s->unopened);
    sem_destroy(&s->room);
}
