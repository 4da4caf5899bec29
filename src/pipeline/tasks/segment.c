/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/tasks/segment.h"

#include <stdio.h>

#include "engine/engine.h"
#include "pipeline/inference.h"
#include "pipeline/tasks/models.h"
#include "pipeline/tasks/still.h"

static struct sac_segment_run *of(struct sac_task_run *run)
{
    return (struct sac_segment_run *)run;
}

/* ---- opening ---- */

static sac_result prepare(struct sac_task_run *run)
{
    struct sac_segment_params *p = run->job->segment;
    struct sac_segment_run    *t = of(run);
    pthread_mutex_init(&t->ended_lock, NULL);
    t->ended_ready = true;
    sac_result res = sac_segmenter_check_params(run->job->ctx, &p->segmenter);
    if (res != SAC_OK)
        return res;
    if (!p->model || sac_task_is_word(p->model, "auto"))
        p->model = "person_seg";
    return sac_task_find_model(run->job, &p->model);
}

static sac_result copy_classes(struct sac_segment_run *t)
{
    struct sac_job *job = t->base.job;
    const int       n = sac_segmenter_class_count(t->seg);
    char          **names = sac_arena_alloc(&job->strings, (size_t)SAC_MAX(n, 1) * sizeof *names);
    for (int i = 0; names && i < n; i++) {
        const char *name = sac_segmenter_class_name(t->seg, i);
        if (!(names[i] = sac_arena_strndup(&job->strings, name, strlen(name))))
            names = NULL;
    }
    if (!names)
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for the names of %d classes", n);
    t->base.classes = names;
    t->base.class_count = n;
    t->base.class_kept = sac_segmenter_kept_classes(t->seg);
    sac_segmenter_describe_classes(t->seg, t->kept, sizeof t->kept);
    snprintf(t->head, sizeof t->head, "%s", sac_segmenter_head_name(t->seg));
    return SAC_OK;
}

static sac_result open_segmenter(struct sac_segment_run *t)
{
    struct sac_job             *job = t->base.job;
    struct sac_segment_params  *p = job->segment;
    const struct sac_inference *inf = job->inference;
    /* No more than fit inside: the network is planned for full batches and for single images. */
    const size_t n = (size_t)SAC_MIN(inf->batch_max, inf->batch_limit);
    p->segmenter.batch_max = (int)n;
    p->segmenter.class_map = p->as == SAC_SEGMENT_CLASSES;
    sac_result res = sac_segmenter_create(job->dev, p->model, &p->segmenter, &t->seg);
    if (res != SAC_OK)
        return res;
    t->asks = t->asks ? t->asks : sac_calloc(n, sizeof *t->asks);
    t->mattes = t->mattes ? t->mattes : sac_calloc(n, sizeof(*t->mattes));
    t->came_to = t->came_to ? t->came_to : sac_calloc(n, sizeof *t->came_to);
    if (!t->asks || !t->mattes || !t->came_to)
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for a batch of %zu frames", n);
    t->base.batch_max = t->seg->batch;
    return copy_classes(t);
}

/* Only a matte can be moved along: a map of classes, and a network's states, need every frame. */
static sac_result open_still(struct sac_segment_run *t)
{
    struct sac_job                  *job = t->base.job;
    const struct sac_segment_params *p = job->segment;
    struct sac_segmenter_info        info;
    sac_segmenter_inspect(t->seg, &info);
    if (t->still)
        return SAC_OK;
    if (!p->segmenter.class_map && !info.states)
        return sac_still_create(job, &t->still);
    if (job->params.skip_still > 0)
        sac_log(job->ctx, SAC_LOG_WARN, "skip_still: %s sees all frames, as %s",
                sac_model_path(sac_segmenter_model(t->seg)),
                info.states ? "it carries states from frame to frame"
                            : "maps of classes cannot be moved along");
    return SAC_OK;
}

static sac_result open_task(struct sac_task_run *run)
{
    struct sac_segment_run *t = of(run);
    struct sac_job         *job = run->job;
    const int64_t           begun = sac_time_ns();
    sac_result              res = open_segmenter(t);
    if (res == SAC_OK)
        res = open_still(t);
    sac_engine_describe(job->dev, t->engine, sizeof t->engine);
    if (res == SAC_OK)
        res = sac_segmenter_warm_up(t->seg);
    if (res == SAC_OK && job->books->measures && job->dev->ops->async)
        res = sac_buckets_time(&t->seg->buckets, true);
    sac_log(job->ctx, SAC_LOG_DEBUG, "network ready for batches of up to %d frames after %.1f s",
            job->inference->batch_max, (double)(sac_time_ns() - begun) * 1e-9);
    return res;
}

static void close_task(struct sac_task_run *run)
{
    sac_segmenter_destroy(&of(run)->seg);
}

static void release(struct sac_task_run *run)
{
    struct sac_segment_run *t = of(run);
    sac_still_destroy(&t->still);
    sac_free(t->asks);
    sac_free(t->mattes);
    sac_free(t->came_to);
    sac_free(t->ended);
    if (t->ended_ready)
        pthread_mutex_destroy(&t->ended_lock);
}

/* ---- streams that end ---- */

/* The network may be at work for other streams: it forgets this one before its next batch. Without
 * memory for that note the state stays until the run ends. */
static void forget(struct sac_task_run *run, int stream_id)
{
    struct sac_segment_run *t = of(run);
    sac_still_forget(t->still, stream_id);
    pthread_mutex_lock(&t->ended_lock);
    if (sac_grow((void **)&t->ended, &t->ended_capacity, t->ended_count + 1, sizeof *t->ended))
        t->ended[t->ended_count++] = stream_id;
    pthread_mutex_unlock(&t->ended_lock);
}

static void forget_ended(struct sac_segment_run *t)
{
    pthread_mutex_lock(&t->ended_lock);
    while (t->ended_count > 0)
        sac_segmenter_forget(t->seg, t->ended[--t->ended_count]);
    pthread_mutex_unlock(&t->ended_lock);
}

/* ---- a batch ---- */

static sac_result begin(struct sac_task_run *run, int slot, struct sac_item *const *items, int n)
{
    struct sac_segment_run *t = of(run);
    sac_result              res = sac_still_decide(t->still, items, n);
    forget_ended(t);
    for (int i = 0; i < n; i++)
        t->asks[i] = (struct sac_segmenter_ask){.frame = items[i]->frame, .keep = items[i]->still};
    return res == SAC_OK ? sac_segmenter_begin(t->seg, slot, t->asks, n) : res;
}

static bool arrived(const struct sac_task_run *run, int slot)
{
    return sac_segmenter_arrived(((const struct sac_segment_run *)run)->seg, slot);
}

static sac_result keep(struct sac_segment_run *t, struct sac_item *item, sac_frame **matte)
{
    struct sac_segment_own *own = item->own ? item->own : sac_new(struct sac_segment_own);
    if (!own)
        return SAC_FAIL(t->base.job->ctx, SAC_ERR_MEMORY, "no memory for a frame's matte");
    item->own = own;
    sac_frame_unref(&own->matte); /* of a batch that is tried again */
    own->matte = *matte;
    *matte = NULL;
    return SAC_OK;
}

static sac_result land(struct sac_task_run *run, int slot, struct sac_item *const *items, int n)
{
    struct sac_segment_run *t = of(run);
    struct sac_batch_times  times;
    sac_result              res = sac_segmenter_end(t->seg, slot, t->mattes, t->came_to, &times);
    for (int i = 0; i < n && res == SAC_OK; i++) {
        items[i]->still = t->came_to[i].kept;
        res = keep(t, items[i], &t->mattes[i]);
    }
    for (int i = 0; i < n; i++)
        sac_frame_unref(&t->mattes[i]);
    if (res == SAC_OK)
        sac_task_record(run, &times, SAC_STAGE_MATTE, items, n);
    return res;
}

/* ---- items ---- */

static void own_clear(void *own)
{
    sac_frame_unref(&((struct sac_segment_own *)own)->matte);
}

static void own_free(void *own)
{
    own_clear(own);
    sac_free(own);
}

/* ---- questions ---- */

static void describe(const struct sac_task_run *run, struct sac_pipeline_stats *out)
{
    const struct sac_segment_run    *t = (const struct sac_segment_run *)run;
    const struct sac_segment_params *p = run->job->segment;
    snprintf(out->segmenter, sizeof out->segmenter, "%s", p->model);
    if (!t->engine[0])
        return;
    snprintf(out->engine, sizeof out->engine, "%s", t->engine);
    snprintf(out->head, sizeof out->head, "%s", t->head);
    snprintf(out->precision, sizeof out->precision, "%s",
             sac_task_precision(run->job, p->segmenter.precision));
    snprintf(out->classes, sizeof out->classes, "%s", t->kept);
}

static void add_files(const struct sac_task_run *run, struct sac_files *files)
{
    const struct sac_segment_run *t = (const struct sac_segment_run *)run;
    if (t->seg)
        sac_task_add_model(files, sac_segmenter_model(t->seg));
}

const struct sac_task sac_task_segment = {
    .name = "segment",
    .size = sizeof(struct sac_segment_run),
    .prepare = prepare,
    .open = open_task,
    .begin = begin,
    .arrived = arrived,
    .land = land,
    .close = close_task,
    .forget = forget,
    .release = release,
    .own_clear = own_clear,
    .own_free = own_free,
    .describe = describe,
    .add_files = add_files,
};
