/* SPDX-License-Identifier: Apache-2.0 */
/* The push form: the program submits frames and takes results. */

#include "media/media.h"
#include "observe/gpu.h"
#include "observe/run_watch.h"
#include "pipeline/books.h"
#include "pipeline/inference.h"
#include "pipeline/tasks/segment.h"

struct sac_session {
    sac_context         *ctx;
    struct sac_job      *job;
    int                  submit_max;
    bool                 started;
    atomic_bool          ended;
    atomic_int           inside;      /* submitted, result not taken yet */
    pthread_mutex_t      upload_lock; /* guards uploader */
    struct sac_uploader *uploader;    /* created when a GPU gets its first frame in host memory */
};

struct sac_session_params sac_session_params_default(void)
{
    return (struct sac_session_params){.job = sac_pipeline_params_default().job, .submit_max = 8};
}

static sac_result check_files(sac_session *s)
{
    struct sac_files files = {.ctx = s->ctx};
    sac_job_add_files(s->job, &files);
    sac_result res = sac_files_judge(&files);
    sac_files_finish(&files);
    return res;
}

sac_result sac_session_create(sac_context *ctx, const struct sac_session_params *params,
                              sac_session **out)
{
    SAC_NEEDS(ctx, ctx);
    SAC_NEEDS(ctx, out);
    SAC_NEEDS_NO_LATER_FIELD(ctx, params, "session parameters");
    struct sac_session_params p = params ? *params : sac_session_params_default();
    sac_session              *s = sac_new(sac_session);
    if (!s)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a session");
    pthread_mutex_init(&s->upload_lock, NULL);
    s->ctx = ctx;
    s->submit_max = SAC_MAX(p.submit_max, 1);
    /* The first and last queue have room for all frames inside, so neither submit nor a stage waits
     * for a program that takes its results late. */
    const int64_t begun = sac_time_ns();
    sac_result    res = sac_job_create(ctx, p.job.segment ? &sac_task_segment : &sac_task_track,
                                       &p.job, (size_t)s->submit_max, NULL, &s->job);
    if (res == SAC_OK)
        res = sac_job_open_device(s->job);
    if (res == SAC_OK)
        res = check_files(s);
    if (res == SAC_OK) {
        atomic_fetch_add(&s->job->start.total_ns, sac_time_ns() - begun);
        s->job->inference->batch_limit = SAC_MIN(s->job->inference->batch_max, s->submit_max);
        *out = s;
    } else {
        sac_session_destroy(&s);
    }
    return res;
}

static void log_fault(sac_session *s)
{
    char why[512];
    sac_context_last_error(s->ctx, why, sizeof why);
    sac_log(s->ctx, SAC_LOG_ERROR, "%s", why);
}

void sac_session_destroy(sac_session **s)
{
    if (!s || !*s)
        return;
    if ((*s)->started) {
        struct sac_pipeline_stats stats;
        sac_job_watch_end((*s)->job);
        sac_job_stop((*s)->job);
        sac_session_get_stats(*s, &stats);
        if (sac_job_finish_reports(&(*s)->job, 1, &stats, NULL, 0) != SAC_OK)
            log_fault(*s); /* destroy has no result */
    }
    sac_uploader_destroy(&(*s)->uploader);
    sac_job_destroy(&(*s)->job);
    pthread_mutex_destroy(&(*s)->upload_lock);
    sac_free(*s);
    *s = NULL;
}

sac_device *sac_session_device(const sac_session *s)
{
    if (!s)
        return NULL;
    return s->job->dev;
}

static void feed_stats(void *session, struct sac_pipeline_stats *out)
{
    sac_session_get_stats(session, out);
}

static int feed_processes(void *session, int shard, struct sac_nvml_process *out, int max)
{
    const sac_session *s = session;
    return shard == 0 ? sac_gpu_watch_processes(s->job->books->gpu, out, max) : 0;
}

/* Frames come when the program has them: as from a camera. */
static sac_result watch(sac_session *s)
{
    const struct sac_run_feed feed = {.get = feed_stats, .user = s, .processes = feed_processes};
    return sac_job_watch(s->job, &feed, "frames of a program", true);
}

sac_result sac_session_start(sac_session *s)
{
    SAC_NEEDS(NULL, s);
    if (s->started)
        return SAC_FAIL(s->ctx, SAC_ERR_ARG, "session: started already");
    const int64_t begun = sac_time_ns();
    sac_result    res = sac_job_start(s->job);
    s->started = res == SAC_OK;
    if (res == SAC_OK)
        sac_job_started(s->job, begun);
    if (res == SAC_OK)
        res = check_files(s); /* now with all files of the models */
    return res == SAC_OK ? watch(s) : res;
}

sac_monitor *sac_session_monitor(sac_session *s)
{
    return s ? sac_run_watch_monitor(s->job->books->watch) : NULL;
}

const char *sac_session_class_name(const sac_session *s, int class_id)
{
    if (!s)
        return NULL;
    return sac_job_class_name(s->job, class_id);
}

/* Count one more inside, unless there are submit_max. */
static bool enter(sac_session *s)
{
    int inside = atomic_load(&s->inside);
    while (inside < s->submit_max)
        if (atomic_compare_exchange_weak(&s->inside, &inside, inside + 1))
            return true;
    return false;
}

/* ---- frames from the program ---- */

static void release_submitted(void *user)
{
    sac_frame *frame = user;
    sac_frame_unref(&frame);
}

/* The same planes as a frame of the session's own device, which is in host memory too. Planes that
 * are turned are copied and released before the call returns. */
static sac_result rewrap(sac_session *s, sac_frame *frame, sac_frame **out)
{
    sac_frame *held = sac_frame_ref(frame);
    sac_result res = sac_frame_wrap(s->job->dev, frame, release_submitted, held, out);
    if (res != SAC_OK)
        sac_frame_unref(&held);
    return res;
}

/* Copy from host memory to the session's GPU; the copy may still run when this returns. */
static sac_result upload(sac_session *s, const sac_frame *frame, sac_frame **out)
{
    static const char what[] =
        "session: upload of a frame in host memory (frames of sac_session_device need none)";
    sac_frame  staging = *frame;
    sac_result res = SAC_OK;
    pthread_mutex_lock(&s->upload_lock);
    if (!s->uploader)
        res = sac_uploader_create(s->job->dev, what, s->submit_max, &s->uploader);
    if (res == SAC_OK)
        res = sac_upload_begin(s->uploader, &staging);
    if (res == SAC_OK) {
        sac_frame_copy_planes(frame, &staging);
        res = sac_upload_end(s->uploader, &staging, out);
    }
    pthread_mutex_unlock(&s->upload_lock);
    return res;
}

/* The program's frame as a frame of the session's device; and the program's own if it is
 * another. */
static sac_result bring(sac_session *s, sac_frame *frame, struct sac_item *item)
{
    sac_result res;
    if (frame->device == s->job->dev) {
        item->frame = sac_frame_ref(frame);
        return SAC_OK;
    }
    if (sac_device_apart(s->job->dev))
        res = upload(s, frame, &item->frame);
    else
        res = rewrap(s, frame, &item->frame);
    if (res == SAC_OK)
        item->submitted = sac_frame_ref(frame);
    return res;
}

static sac_result check_submit(sac_session *s, const sac_frame *frame)
{
    if (!s->started || atomic_load(&s->ended))
        return SAC_FAIL(s->ctx, SAC_ERR_ARG, "session: frame submitted %s",
                        s->started ? "after its end" : "before its start");
    SAC_NEEDS(s->ctx, frame->owner);
    if (frame->device != s->job->dev && sac_device_apart(frame->device))
        return SAC_FAIL(s->ctx, SAC_ERR_ARG,
                        "session: a frame of another device '%s'; it takes those of "
                        "sac_session_device ('%s') and those in host memory",
                        sac_device_name(frame->device), sac_device_name(s->job->dev));
    return SAC_OK;
}

sac_result sac_session_submit(sac_session *s, sac_frame *frame, int64_t id)
{
    SAC_NEEDS(s ? s->ctx : NULL, s);
    SAC_NEEDS(s ? s->ctx : NULL, frame);
    sac_result res = check_submit(s, frame);
    if (res != SAC_OK)
        return res;
    if (!enter(s))
        return SAC_AGAIN;
    struct sac_item *item = sac_job_item(s->job);
    res = item ? bring(s, frame, item) : SAC_ERR_MEMORY;
    if (res == SAC_OK) {
        item->id = id;
        item->number = frame->number;
        item->pts_us = frame->pts_us;
        item->stream_id = frame->stream_id;
        res = sac_job_push_wait(s->job, item); /* there is room: see create */
    } else if (item) {
        sac_job_recycle(s->job, item);
    }
    if (res != SAC_OK)
        atomic_fetch_sub(&s->inside, 1);
    return res;
}

void sac_session_end(sac_session *s)
{
    if (!s)
        return;
    atomic_store(&s->ended, true);
    sac_job_end(s->job);
}

/* ---- results ---- */

static double ms(int64_t ns)
{
    return (double)ns * 1e-6;
}

static void fill_result(const sac_session *s, struct sac_item *item, struct sac_session_result *out)
{
    int64_t total = item->done_ns - item->submitted_ns;
    int64_t work = item->times.preprocess_ns + item->times.inference_ns + item->times.head_ns +
                   item->reid_ns + item->tracking_ns;
    *out = (struct sac_session_result){
        .id = item->id,
        .pts_us = item->pts_us,
        .stream_id = item->stream_id,
        .frame = item->submitted ? item->submitted : item->frame,
        .tracks = item->tracks,
        .count = item->track_count,
        .queue_ms = ms(SAC_MAX(total - work, 0)),
        .preprocess_ms = ms(item->times.preprocess_ns),
        .inference_ms = ms(item->times.inference_ns),
        .head_ms = ms(item->times.head_ns),
        .reid_ms = ms(item->reid_ns),
        .tracking_ms = ms(item->tracking_ns),
        .total_ms = ms(total),
        .status = item->status,
    };
    if (s->job->segment && item->own)
        out->matte = sac_frame_ref(sac_segment_matte(item));
    /* The result owns these now. */
    if (!item->submitted)
        item->frame = NULL;
    item->submitted = NULL;
    item->tracks = NULL;
    item->track_capacity = 0;
}

sac_result sac_session_result_wait(sac_session *s, int64_t timeout_ns,
                                   struct sac_session_result *out)
{
    SAC_NEEDS(s ? s->ctx : NULL, s);
    SAC_NEEDS(s ? s->ctx : NULL, out);
    struct sac_item *item;
    if (!s->started)
        return SAC_FAIL(s->ctx, SAC_ERR_ARG, "session: a result was asked for before its start");
    sac_result res = sac_job_pop_wait(s->job, timeout_ns, &item);
    if (res != SAC_OK)
        return res;
    if (item->status != SAC_OK) /* set the sentence for the calling thread */
        SAC_FAIL(s->ctx, item->status, "%s", item->why);
    fill_result(s, item, out);
    sac_job_recycle(s->job, item);
    atomic_fetch_sub(&s->inside, 1);
    return SAC_OK;
}

void sac_session_result_finish(struct sac_session_result *result)
{
    if (!result)
        return;
    sac_frame_unref(&result->frame);
    sac_frame_unref(&result->matte);
    sac_free(result->tracks);
    *result = (struct sac_session_result){0};
}

void sac_session_get_stats(sac_session *s, struct sac_pipeline_stats *out)
{
    if (!s || !out)
        return;
    sac_job_get_stats(s->job, out);
    out->queue[out->queue_count++] = sac_job_queue_info(s->job->done, "write");
    sac_job_judge(s->job, 1, out);
}
