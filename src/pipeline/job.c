/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/job.h"

#include <stdio.h>
#include <string.h>

#include "observe/monitor.h"
#include "pipeline/books.h"
#include "pipeline/finish.h"
#include "pipeline/inference.h"
#include "pipeline/task.h"

/* ---- queues ---- */

sac_result sac_job_push_wait(struct sac_job *job, struct sac_item *item)
{
    if (item->submitted_ns == 0) /* else it is the time at which the frame was due */
        item->submitted_ns = sac_time_ns();
    sac_books_enter(job->books, item);
    sac_result res = sac_queue_push_wait(job->detect, item);
    if (res != SAC_OK)
        sac_job_recycle(job, item);
    return res;
}

sac_result sac_job_pop_wait(struct sac_job *job, int64_t timeout_ns, struct sac_item **item)
{
    void      *popped;
    sac_result res = sac_queue_pop_wait(job->done, timeout_ns, &popped);
    if (res == SAC_OK)
        *item = popped;
    return res;
}

void sac_job_end(struct sac_job *job)
{
    sac_queue_close(job->detect);
}

void sac_job_discard(struct sac_job *job)
{
    atomic_store(&job->discard, true);
}

const char *sac_job_class_name(const struct sac_job *job, int class_id)
{
    const struct sac_task_run *run = job->run;
    return class_id >= 0 && class_id < run->class_count ? run->classes[class_id] : NULL;
}

/* ---- streams ---- */

sac_result sac_job_expect(struct sac_job *job, int stream_id, int width, int height)
{
    const struct sac_task *task = job->run->task;
    return task->expect ? task->expect(job->run, stream_id, width, height) : SAC_OK;
}

void sac_job_forget(struct sac_job *job, int stream_id)
{
    if (job->run->task->forget)
        job->run->task->forget(job->run, stream_id);
}

/* ---- creation ---- */

static bool copy_string(struct sac_arena *arena, const char **string)
{
    if (!*string)
        return true;
    *string = sac_arena_strndup(arena, *string, strlen(*string));
    return *string != NULL;
}

static sac_result copy_segment(struct sac_job *job)
{
    struct sac_segment_params *p = sac_arena_alloc(&job->strings, sizeof *p);
    struct sac_arena          *arena = &job->strings;
    if (p)
        *p = *job->params.segment;
    if (!p || !copy_string(arena, &p->model) || !copy_string(arena, &p->background) ||
        !copy_string(arena, &p->small_model) || !copy_string(arena, &p->segmenter.head) ||
        !copy_string(arena, &p->segmenter.preprocess) || !copy_string(arena, &p->segmenter.classes))
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for the job's parameters");
    job->segment = p;
    job->params.segment = p;
    return SAC_OK;
}

static sac_result copy_monitor(struct sac_job *job)
{
    struct sac_monitor_params *p = sac_arena_alloc(&job->strings, sizeof *p);
    if (!p)
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for the job's parameters");
    *p = *job->params.monitor;
    job->params.monitor = p;
    return SAC_OK;
}

static sac_result copy_params(struct sac_job *job, const struct sac_track_job_params *params)
{
    struct sac_track_job_params *p = &job->params;
    struct sac_arena            *arena = &job->strings;
    *p = *params;
    if (!copy_string(arena, &p->device) || !copy_string(arena, &p->detector) ||
        !copy_string(arena, &p->detector_params.head) ||
        !copy_string(arena, &p->detector_params.preprocess) ||
        !copy_string(arena, &p->detector_params.classes) || !copy_string(arena, &p->reid) ||
        !copy_string(arena, &p->reid_params.preprocess) || !copy_string(arena, &p->trace_out) ||
        !copy_string(arena, &p->stats_out))
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for the job's parameters");
    p->queue_length = SAC_MAX(p->queue_length, 1);
    sac_result res = p->segment ? copy_segment(job) : SAC_OK;
    return res == SAC_OK && p->monitor ? copy_monitor(job) : res;
}

static sac_result create_queues(struct sac_job *job, size_t queue_min)
{
    size_t length = (size_t)job->params.queue_length;
    /* A batch must fit into the first queue, or it would never be full. */
    const size_t batch = (size_t)job->inference->batch_max;
    size_t       first = SAC_MAX(SAC_MAX(length, queue_min), batch);
    sac_result   res = sac_queue_create(job->ctx, first, &job->detect);
    /* A wave takes the frames that wait and costs one trip to the device. Behind a queue of 4 a
     * wave found only 3 frames of a batch (32 streams on an H200, 2026-11-21). */
    if (res == SAC_OK)
        res = sac_queue_create(job->ctx, SAC_MAX(length, batch), &job->track);
    if (res == SAC_OK)
        res = sac_queue_create(job->ctx, SAC_MAX(length, queue_min), &job->done);
    return res;
}

static sac_result check_segment(sac_context *ctx, const struct sac_segment_params *p)
{
    const struct sac_number numbers[] = {
        {"segment.as", (int)p->as, 0, SAC_SEGMENT_AS_COUNT - 1},
        {"segment.strength", p->strength, 0, 1},
        {"segment.stereo", (int)p->stereo, 0, SAC_STEREO_TB},
        {"segment.projection", (int)p->projection, 0, SAC_PROJECTION_EQUIRECT180},
        {"segment.blur", p->blur, 0, 1024},
        {"segment.region", p->region, 0, 1},
        {"segment.region_every", p->region_every, 0, 1000000},
        {"segment.region_margin", p->region_margin, 0, 4},
        {"segment.small_confidence", p->small_confidence, 0, 1},
        {"segment.mode", (int)p->mode, 0, SAC_SEGMENT_VR},
    };
    SAC_NEEDS_NO_LATER_FIELD(ctx, p, "segment parameters");
    return sac_numbers_check(ctx, "job", numbers, SAC_COUNT(numbers));
}

static sac_result check_params(sac_context *ctx, const struct sac_track_job_params *p)
{
    const struct sac_number numbers[] = {
        {"timeout_ms", p->timeout_ms, 0, 3600000},
        {"inference_batch_max", p->inference_batch_max, 0, 1024},
        {"inference_batch_min", (double)p->inference_batch_min, 0, 1024},
        {"batches_ahead", p->batches_ahead, 0, 2},
        {"queue_length", p->queue_length, 0, 1 << 20},
        {"skip_still", p->skip_still, 0, 1},
        {"skip_max", p->skip_max, 0, 1000},
        {"batch_padding", (int)p->batch_padding, 0, SAC_BATCH_PADDING_FULL},
        {"reid_params.batch_max", p->reid_params.batch_max, 0, 1024},
        {"frame_times", p->frame_times, 0, 1},
        {"memory_target", (double)p->memory_target, 0, 1},
        {"preprocess_streams", p->preprocess_streams, 0, 2},
        {"postprocess_threads", p->postprocess_threads, 0, 64},
    };
    SAC_NEEDS(ctx, p->device);
    SAC_NEEDS_NO_LATER_FIELD(ctx, p, "job parameters");
    if (p->segment && check_segment(ctx, p->segment) != SAC_OK)
        return SAC_ERR_ARG;
    if (p->monitor && sac_monitor_check(ctx, p->monitor) != SAC_OK)
        return SAC_ERR_ARG;
    return sac_numbers_check(ctx, "job", numbers, SAC_COUNT(numbers));
}

static sac_result create_run(struct sac_job *job, const struct sac_task *task)
{
    job->run = sac_calloc(1, task->size);
    if (!job->run)
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for the task '%s'", task->name);
    job->run->task = task;
    job->run->job = job;
    return task->prepare ? task->prepare(job->run) : SAC_OK;
}

static sac_result begin_device(void *arg)
{
    struct sac_job *job = arg;
    return sac_device_open_begin(job->ctx, job->params.device, &job->params.device_params,
                                 &job->dev);
}

static sac_result end_device(void *arg)
{
    struct sac_job *job = arg;
    return sac_device_open_end(job->dev);
}

sac_result sac_job_open_device(struct sac_job *job)
{
    sac_result res = sac_start_step(&job->start, SAC_START_DEVICE, end_device, job);
    if (res == SAC_OK)
        sac_books_watch(job->books, job->params.monitor ? job->params.monitor->interval_ms / 4 : 0);
    return res;
}

sac_result sac_job_create(sac_context *ctx, const struct sac_task *task,
                          const struct sac_track_job_params *params, size_t queue_min,
                          const struct sac_job *leader, struct sac_job **out)
{
    sac_result res = check_params(ctx, params);
    if (res != SAC_OK)
        return res;
    struct sac_job *job = sac_new(struct sac_job);
    if (!job)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a job");
    job->ctx = ctx;
    pthread_mutex_init(&job->free_lock, NULL);
    res = copy_params(job, params);
    if (res == SAC_OK)
        res = create_run(job, task);
    if (res == SAC_OK)
        res = sac_start_step(&job->start, SAC_START_DEVICE, begin_device, job);
    if (res == SAC_OK)
        res = sac_inference_create(job, &job->inference);
    if (res == SAC_OK)
        res = sac_finishing_create(job, &job->finishing);
    if (res == SAC_OK)
        res = create_queues(job, queue_min);
    if (res == SAC_OK)
        res = sac_books_create(job->dev, &job->params, leader ? leader->books : NULL, &job->books);
    if (res == SAC_OK)
        *out = job;
    else
        sac_job_destroy(&job);
    return res;
}

sac_result sac_job_start(struct sac_job *job)
{
    sac_result res = sac_inference_start(job->inference);
    return res == SAC_OK ? sac_finishing_start(job->finishing) : res;
}

/* "device 312, read 40", in milliseconds, the longest parts first; those under half a millisecond
 * are left out. */
static void list_parts(const struct sac_start *start, char *out, size_t size)
{
    bool   said[SAC_START_PARTS] = {false};
    size_t at = 0;
    out[0] = '\0';
    for (;;) {
        int     longest = -1;
        int64_t ns = 500000;
        for (int i = 0; i < SAC_START_PARTS; i++)
            if (!said[i] && atomic_load(&start->ns[i]) >= ns) {
                longest = i;
                ns = atomic_load(&start->ns[i]);
            }
        if (longest < 0 || at >= size)
            return;
        said[longest] = true;
        at +=
            (size_t)snprintf(out + at, size - at, "%s%s %.0f", at ? ", " : "",
                             sac_start_part_name((enum sac_start_part)longest), (double)ns * 1e-6);
    }
}

void sac_job_started(struct sac_job *job, int64_t begun_ns)
{
    char parts[320];
    atomic_fetch_add(&job->start.total_ns, sac_time_ns() - begun_ns);
    list_parts(&job->start, parts, sizeof parts);
    sac_log(job->ctx, SAC_LOG_DEBUG, "%s: ready after %.0f ms: %s", sac_device_name(job->dev),
            (double)atomic_load(&job->start.total_ns) * 1e-6,
            parts[0] ? parts : "nothing took long");
}

/* ---- end ---- */

static void drain(struct sac_job *job, struct sac_queue *queue)
{
    void *item;
    while (queue && sac_queue_pop_wait(queue, 0, &item) == SAC_OK)
        sac_job_recycle(job, item);
}

/* End the threads. Nobody else takes results any more, so the remaining ones are taken here. */
void sac_job_stop(struct sac_job *job)
{
    struct sac_item *item;
    if (!job->inference)
        return;
    if (!job->inference->started) {
        sac_inference_join(job->inference); /* it was prepared at most */
        return;
    }
    sac_job_discard(job);
    sac_job_end(job);
    while (job->finishing->started && sac_job_pop_wait(job, -1, &item) == SAC_OK)
        sac_job_recycle(job, item);
    sac_inference_join(job->inference);
    sac_finishing_join(job->finishing);
}

void sac_job_destroy(struct sac_job **job_at)
{
    struct sac_job *job = job_at ? *job_at : NULL;
    if (!job)
        return;
    *job_at = NULL;
    sac_job_stop(job);
    drain(job, job->detect);
    drain(job, job->track);
    sac_queue_destroy(&job->detect);
    sac_queue_destroy(&job->track);
    sac_queue_destroy(&job->done);
    sac_job_free_items(job);
    if (job->run && job->run->task->release)
        job->run->task->release(job->run);
    sac_free(job->run);
    sac_inference_destroy(&job->inference);
    sac_finishing_destroy(&job->finishing);
    sac_books_destroy(&job->books);
    sac_device_unref(&job->dev);
    pthread_mutex_destroy(&job->free_lock);
    sac_arena_finish(&job->strings);
    sac_free(job);
}
