/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include <saccade/models.h>

#include "device/device.h"
#include "heads/detector.h"
#include "observe/gpu.h"
#include "pipeline/job.h"
#include "track/wave.h"

/* ---- items ---- */

struct sac_item *sac_job_item(struct sac_job *job)
{
    pthread_mutex_lock(&job->free_lock);
    struct sac_item *item = job->free_items;
    if (item)
        job->free_items = item->next;
    pthread_mutex_unlock(&job->free_lock);
    if (!item && !(item = sac_new(struct sac_item)))
        SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for a frame's results");
    return item;
}

void sac_job_recycle(struct sac_job *job, struct sac_item *item)
{
    /* Keep the memory that a later frame can use; reset the rest. */
    sac_frame_unref(&item->frame);
    sac_frame_unref(&item->submitted);
    sac_features_unref(&item->features);
    *item = (struct sac_item){
        .found = {.items = item->found.items, .capacity = item->found.capacity},
        .feat = item->feat,
        .feat_capacity = item->feat_capacity,
        .feat_row = item->feat_row,
        .feat_row_capacity = item->feat_row_capacity,
        .tracks = item->tracks,
        .track_capacity = item->track_capacity,
    };
    pthread_mutex_lock(&job->free_lock);
    item->next = job->free_items;
    job->free_items = item;
    pthread_mutex_unlock(&job->free_lock);
}

static void free_items(struct sac_job *job)
{
    for (struct sac_item *item = job->free_items, *next; item; item = next) {
        next = item->next;
        sac_free(item->found.items);
        sac_free(item->feat);
        sac_free(item->feat_row);
        sac_free(item->tracks);
        sac_free(item);
    }
}

/* ---- queues ---- */

sac_result sac_job_push_wait(struct sac_job *job, struct sac_item *item)
{
    int_fast64_t none = 0;
    if (item->submitted_ns == 0) /* else it is the time at which the frame was due */
        item->submitted_ns = sac_time_ns();
    if (!item->last && atomic_compare_exchange_strong(&job->first_ns, &none, item->submitted_ns))
        sac_gpu_watch_restart(job->gpu); /* loading the models is not part of the run */
    none = 0;
    if (!item->last && item->lane)
        atomic_compare_exchange_strong(&item->lane->first_ns, &none, item->submitted_ns);
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
    return class_id >= 0 && class_id < job->class_count ? job->classes[class_id] : NULL;
}

/* ---- creation ---- */

static bool copy_string(struct sac_arena *arena, const char **string)
{
    if (!*string)
        return true;
    *string = sac_arena_strndup(arena, *string, strlen(*string));
    return *string != NULL;
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
    return SAC_OK;
}

/* Replace a model's name by its path; before an input is opened, which may take long. */
static sac_result find_model(struct sac_job *job, const char **model)
{
    char       path[PATH_MAX];
    sac_result res = sac_models_find(job->ctx, *model, path, sizeof path);
    if (res != SAC_OK)
        return res;
    const char *copy = path;
    if (!copy_string(&job->strings, &copy))
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for the path of a model");
    *model = copy;
    return SAC_OK;
}

static bool is_word(const char *model, const char *word)
{
    return model && strcmp(model, word) == 0;
}

static sac_result find_models(struct sac_job *job)
{
    struct sac_track_job_params *p = &job->params;
    sac_result                   res = SAC_OK;
    if (is_word(p->detector, "none"))
        p->detector = NULL;
    if (is_word(p->detector, "auto"))
        p->detector = "person_det";
    job->reid_auto = is_word(p->reid, "auto");
    if (job->reid_auto || is_word(p->reid, "none"))
        p->reid = NULL;
    if (p->detector)
        res = find_model(job, &p->detector);
    if (res == SAC_OK && p->reid)
        res = find_model(job, &p->reid);
    return res;
}

sac_result sac_job_choose_reid(struct sac_job *job)
{
    struct sac_track_job_params *p = &job->params;
    /* It knows only persons, and the class of ready-made detections is unknown. */
    if (!job->reid_auto || !job->det || !sac_tracker_kind_uses_appearance(p->tracker.kind) ||
        !sac_detector_keeps_only(job->det, "person"))
        return SAC_OK;
    p->reid = "person_reid";
    sac_result res = find_model(job, &p->reid);
    if (res != SAC_ERR_IO)
        return res;
    char why[1024];
    sac_context_last_error(job->ctx, why, sizeof why);
    sac_error_clear(job->ctx);
    sac_log(job->ctx, SAC_LOG_WARN, "tracking without appearance: %s", why);
    p->reid = NULL;
    return SAC_OK;
}

static void choose_batch(struct sac_job *job)
{
    struct sac_track_job_params *p = &job->params;
    job->depth = p->batches_ahead > 0         ? SAC_MIN(p->batches_ahead, (int)SAC_DETECTOR_SLOTS)
                 : job->dev->ops->host_memory ? 1
                                              : (int)SAC_DETECTOR_SLOTS;
    job->ahead = job->depth > 1 || !job->dev->ops->host_memory;
    job->batch_max = SAC_MIN(p->inference_batch_max, p->detector_params.batch_max);
    if (p->inference_batch_max <= 0) {
        job->batch_max = SAC_MAX(job->dev->ops->batch_best, 1);
        p->detector_params.batch_max = SAC_MAX(p->detector_params.batch_max, job->batch_max);
    }
    job->batch_limit = job->batch_max;
    job->small_ns = INT64_C(30000000000);
    if (p->reid_params.batch_max <= 0) /* a few people in each frame, and no more than fill a GPU */
        p->reid_params.batch_max = job->dev->ops->host_memory
                                       ? sac_embedder_params_default().batch_max
                                       : SAC_CLAMP(4 * job->batch_max, 16, 128);
}

static sac_result create_batch(struct sac_job *job)
{
    choose_batch(job);
    size_t n = (size_t)job->batch_max;
    job->batch = sac_calloc(n, sizeof *job->batch);
    job->frames = sac_calloc(n, sizeof *job->frames);
    job->found = sac_calloc(n, sizeof *job->found);
    if (!job->batch || !job->frames || !job->found)
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for a batch of %zu frames", n);
    return SAC_OK;
}

static sac_result create_queues(struct sac_job *job, size_t queue_min)
{
    size_t length = (size_t)job->params.queue_length;
    /* A batch must fit into the first queue, or it would never be full. */
    size_t     first = SAC_MAX(SAC_MAX(length, queue_min), (size_t)job->batch_max);
    sac_result res = sac_queue_create(job->ctx, first, &job->detect);
    /* A wave takes the frames that wait and costs one trip to the device. Behind a queue of 4 a
     * wave found only 3 frames of a batch (32 streams on an H200, 2026-11-21). */
    if (res == SAC_OK)
        res = sac_queue_create(
            job->ctx, job->ahead ? SAC_MAX(length, (size_t)job->batch_max) : length, &job->track);
    if (res == SAC_OK)
        res = sac_queue_create(job->ctx, SAC_MAX(length, queue_min), &job->done);
    return res;
}

static sac_result check_params(sac_context *ctx, const struct sac_track_job_params *p)
{
    const struct sac_number numbers[] = {
        {"timeout_ms", p->timeout_ms, 0, 3600000},
        {"inference_batch_max", p->inference_batch_max, 0, 1024},
        {"batches_ahead", p->batches_ahead, 0, 2},
        {"queue_length", p->queue_length, 0, 1 << 20},
        {"reid_params.batch_max", p->reid_params.batch_max, 0, 1024},
    };
    SAC_NEEDS(ctx, p->device);
    SAC_NEEDS_NO_LATER_FIELD(ctx, p);
    return sac_numbers_check(ctx, "job", numbers, SAC_COUNT(numbers));
}

sac_result sac_job_create(sac_context *ctx, const struct sac_track_job_params *params,
                          size_t queue_min, struct sac_job *leader, struct sac_job **out)
{
    sac_result res = check_params(ctx, params);
    if (res != SAC_OK)
        return res;
    struct sac_job *job = sac_new(struct sac_job);
    if (!job)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a tracking job");
    job->ctx = ctx;
    job->leader = leader;
    pthread_mutex_init(&job->free_lock, NULL);
    sem_init(&job->opened, 0, 0);
    sac_fault_init(&job->fault);
    res = copy_params(job, params);
    if (res == SAC_OK)
        res = find_models(job);
    if (res == SAC_OK)
        res = sac_device_open(ctx, job->params.device, &job->params.device_params, &job->dev);
    if (res == SAC_OK)
        res = create_batch(job);
    if (res == SAC_OK)
        res = create_queues(job, queue_min);
    if (res == SAC_OK)
        res = sac_job_spans_open(job);
    if (res == SAC_OK && job->params.stats_out)
        res = sac_outfile_open(ctx, job->params.stats_out, &job->stats_file);
    if (res == SAC_OK)
        job->gpu = sac_gpu_watch_start(ctx, job->dev->pci_bus_id, NULL);
    if (res == SAC_OK)
        *out = job;
    else
        sac_job_destroy(&job);
    return res;
}

/* ---- start ---- */

static void wait_semaphore(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0 && errno == EINTR)
        ;
}

/* The inference thread loads the models; the caller waits for it and returns its fault. */
static sac_result start_inference(struct sac_job *job)
{
    sac_result res =
        sac_thread_start(job->ctx, &job->infer_thread, "sac-infer", sac_job_infer_main, job);
    if (res != SAC_OK)
        return res;
    job->infer_started = true;
    wait_semaphore(&job->opened);
    return sac_fault_raise(&job->fault, job->ctx);
}

sac_result sac_job_start(struct sac_job *job, bool ready_made)
{
    job->ready_made = ready_made;
    if (!ready_made && !job->params.detector)
        return SAC_FAIL(job->ctx, SAC_ERR_ARG, "no detector: give a model or a file of detections");
    sac_result res = start_inference(job);
    if (res == SAC_OK)
        res = sac_job_open_wave(job);
    if (res == SAC_OK)
        res = sac_thread_start(job->ctx, &job->track_thread, "sac-track", sac_job_track_main, job);
    job->track_started = res == SAC_OK;
    return res;
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
    if (!job->infer_started)
        return;
    sac_job_discard(job);
    sac_job_end(job);
    while (job->track_started && sac_job_pop_wait(job, -1, &item) == SAC_OK)
        sac_job_recycle(job, item);
    pthread_join(job->infer_thread, NULL);
    if (job->track_started)
        pthread_join(job->track_thread, NULL);
    job->infer_started = job->track_started = false;
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
    for (size_t i = 0; i < job->tracker_count; i++)
        sac_tracker_destroy(&job->trackers[i].trk);
    sac_free(job->trackers);
    sac_wave_destroy(&job->wave);
    free_items(job);
    sac_free(job->batch);
    sac_free(job->frames);
    sac_free(job->found);
    sac_free(job->wanted.items);
    sac_free(job->wanted_at);
    sac_job_spans_close(job);
    sac_outfile_abandon(&job->stats_file);
    sac_gpu_watch_stop(&job->gpu);
    sac_device_unref(&job->dev);
    sac_fault_finish(&job->fault);
    sem_destroy(&job->opened);
    pthread_mutex_destroy(&job->free_lock);
    sac_arena_finish(&job->strings);
    sac_free(job);
}
