/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"
#include "pipeline/inference.h"
#include "pipeline/replay.h"
#include "pipeline/tasks/models.h"
#include "pipeline/tasks/still.h"
#include "pipeline/tasks/track.h"

/* ---- names ---- */

sac_result sac_track_prepare(struct sac_task_run *run)
{
    struct sac_track_job_params *p = &run->job->params;
    sac_result                   res = SAC_OK;
    run->batch_max = p->detector_params.batch_max;
    if (sac_task_is_word(p->detector, "none"))
        p->detector = NULL;
    if (sac_task_is_word(p->detector, "auto"))
        p->detector = "person_det";
    ((struct sac_track_run *)run)->reid_auto = sac_task_is_word(p->reid, "auto");
    if (sac_task_is_word(p->reid, "auto") || sac_task_is_word(p->reid, "none"))
        p->reid = NULL;
    if (p->detector)
        res = sac_task_find_model(run->job, &p->detector);
    if (res == SAC_OK && p->reid)
        res = sac_task_find_model(run->job, &p->reid);
    return res;
}

static bool keeps_persons(const struct sac_track_run *t)
{
    const struct sac_replay *replay = t->base.job->replay;
    if (t->det)
        return sac_detector_keeps_only(t->det, "person");
    return replay && sac_replay_about(replay)->persons;
}

/* Replace "auto" by a model or none, once the detector is known. */
static sac_result choose_reid(struct sac_track_run *t)
{
    struct sac_job              *job = t->base.job;
    struct sac_track_job_params *p = &job->params;
    /* It knows only persons, and the class of ready-made detections is unknown. */
    if (!t->reid_auto || !sac_tracker_kind_uses_appearance(p->tracker.kind) || !keeps_persons(t))
        return SAC_OK;
    p->reid = "person_reid";
    sac_result res = sac_task_find_model(job, &p->reid);
    if (res != SAC_ERR_IO)
        return res;
    char why[1024];
    sac_error_take(job->ctx, why, sizeof why);
    sac_log(job->ctx, SAC_LOG_WARN, "tracking without appearance: %s", why);
    p->reid = NULL;
    return SAC_OK;
}

/* ---- opening ---- */

static sac_result copy_classes(struct sac_track_run *t)
{
    struct sac_job *job = t->base.job;
    const int       n = sac_detector_contract(t->det)->class_count;
    char          **names = sac_arena_alloc(&job->strings, (size_t)n * sizeof *names);
    for (int i = 0; names && i < n; i++) {
        const char *name = sac_detector_class_name(t->det, i);
        if (name && !(names[i] = sac_arena_strndup(&job->strings, name, strlen(name))))
            names = NULL;
    }
    if (!names)
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for the names of %d classes", n);
    t->base.classes = names;
    t->base.class_count = n;
    t->base.class_kept = sac_detector_kept_classes(t->det);
    sac_detector_describe_classes(t->det, t->kept, sizeof t->kept);
    return SAC_OK;
}

/* What the detector told when it found the boxes that the disk cache has. */
static sac_result take_kept(struct sac_track_run *t)
{
    struct sac_job                *job = t->base.job;
    const struct sac_replay_about *about = sac_replay_about(job->replay);
    const int                      n = about->class_count;
    char **names = sac_arena_alloc(&job->strings, (size_t)SAC_MAX(n, 1) * sizeof *names);
    for (int i = 0; names && i < n; i++) {
        const char *name = sac_replay_class(job->replay, i);
        if (name[0] && !(names[i] = sac_arena_strndup(&job->strings, name, strlen(name))))
            names = NULL;
    }
    if (!names)
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for the names of %d classes", n);
    t->base.classes = names;
    t->base.class_count = n;
    t->base.class_kept = about->class_kept;
    snprintf(t->head, sizeof t->head, "%.31s", about->head);
    snprintf(t->kept, sizeof t->kept, "%.255s", about->kept);
    snprintf(t->engine, sizeof t->engine, "%.127s", about->engine);
    return SAC_OK;
}

/* A network with a fixed batch takes one frame. */
static sac_result open_detector(struct sac_track_run *t)
{
    struct sac_job                    *job = t->base.job;
    const struct sac_track_job_params *p = &job->params;
    const size_t                       n = (size_t)job->inference->batch_max;
    if (!p->detector)
        return SAC_FAIL(job->ctx, SAC_ERR_ARG, "no detector: give a model or a file of detections");
    struct sac_detector_params detector = p->detector_params;
    detector.batch_max = (int)n;
    sac_result res = sac_detector_create(job->dev, p->detector, &detector, &t->det);
    if (res != SAC_OK)
        return res;
    t->frames = t->frames ? t->frames : sac_calloc(n, sizeof(*t->frames));
    t->found = t->found ? t->found : sac_calloc(n, sizeof *t->found);
    t->seen = t->seen ? t->seen : sac_calloc(n, sizeof(*t->seen));
    t->images = t->images ? t->images : sac_calloc(n, sizeof *t->images);
    if (!t->frames || !t->found || !t->seen || !t->images)
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for a batch of %zu frames", n);
    snprintf(t->head, sizeof t->head, "%s", sac_detector_head_name(t->det));
    t->base.batch_max = t->det->batch;
    res = t->still ? SAC_OK : sac_still_create(job, &t->still);
    return res == SAC_OK ? copy_classes(t) : res;
}

static sac_result open_embedder(struct sac_track_run *t)
{
    const struct sac_track_job_params *p = &t->base.job->params;
    const enum sac_memory_use          before = sac_memory_use_set(SAC_MEMORY_REID);
    sac_result res = sac_embedder_create(t->base.job->dev, p->reid, &p->reid_params, &t->emb);
    sac_memory_use_set(before);
    if (res == SAC_OK)
        t->base.job->params.tracker.embedding_dim = sac_embedder_dim(t->emb);
    return res;
}

/* Where the first runs of a network choose kernels and set up libraries, that is done before the
 * first frame: it is no part of the run, and what does not fit is known in time. */
static sac_result warm_up(struct sac_track_run *t)
{
    struct sac_job *job = t->base.job;
    const int64_t   begun = sac_time_ns();
    sac_result      res = SAC_OK;
    if (t->det)
        res = sac_buckets_pad(&t->det->buckets, job->params.batch_padding, &job->books->padded);
    if (t->det && res == SAC_OK)
        res = sac_buckets_set_streams(&t->det->buckets, job->params.preprocess_streams);
    if (t->det)
        t->streams = sac_buckets_streams(&t->det->buckets);
    if (t->det && res == SAC_OK)
        res = sac_detector_warm_up(t->det);
    sac_memory_use_set(SAC_MEMORY_REID);
    if (res == SAC_OK && t->embeds)
        res = sac_embedder_warm_up(t->emb);
    sac_memory_use_set(SAC_MEMORY_INFERENCE);
    sac_log(job->ctx, SAC_LOG_DEBUG, "networks ready for batches of up to %d frames after %.1f s",
            job->inference->batch_max, (double)(sac_time_ns() - begun) * 1e-9);
    return res;
}

/* Memory for the embeddings of as many boxes as a batch may have; the device's own times. */
static sac_result set_up(struct sac_track_run *t)
{
    struct sac_job *job = t->base.job;
    const bool      timed = job->books->measures && job->dev->ops->async;
    const size_t    boxes = (size_t)SAC_MAX(job->params.detector_params.detection_max, 1);
    sac_result      res = SAC_OK;
    sac_memory_use_set(SAC_MEMORY_REID);
    if (t->embeds)
        res = sac_embedder_reserve(t->emb, (size_t)job->inference->batch_max * boxes);
    sac_memory_use_set(SAC_MEMORY_INFERENCE);
    if (res == SAC_OK && t->det && timed)
        res = sac_buckets_time(&t->det->buckets, true);
    if (t->emb && timed)
        sac_embedder_time(t->emb, true);
    return res;
}

sac_result sac_track_open(struct sac_task_run *run)
{
    struct sac_track_run *t = (struct sac_track_run *)run;
    struct sac_job       *job = run->job;
    sac_result            res = run->task->begin ? open_detector(t) : sac_device_await(job->dev);
    const bool            kept = res == SAC_OK && !run->task->begin && job->replay;
    if (kept)
        res = take_kept(t);
    if (!run->task->begin && !kept && job->params.skip_still > 0)
        sac_log(job->ctx, SAC_LOG_WARN,
                "skip_still: boxes come from a file, so no frame is left out");
    if (res == SAC_OK)
        res = choose_reid(t);
    if (res == SAC_OK && job->replay_dim)
        job->params.tracker.embedding_dim = job->replay_dim;
    else if (res == SAC_OK && job->params.reid)
        res = open_embedder(t);
    if (t->det || t->emb)
        sac_engine_describe(job->dev, t->engine, sizeof t->engine);
    if (res == SAC_OK)
        res = sac_track_open_trackers(t);
    if (res == SAC_OK)
        res = warm_up(t);
    return res == SAC_OK ? set_up(t) : res;
}

void sac_track_close(struct sac_task_run *run)
{
    struct sac_track_run *t = (struct sac_track_run *)run;
    sac_detector_destroy(&t->det);
    sac_embedder_destroy(&t->emb);
}

/* ---- questions ---- */

void sac_track_describe(const struct sac_task_run *run, struct sac_pipeline_stats *out)
{
    const struct sac_track_run        *t = (const struct sac_track_run *)run;
    const struct sac_track_job_params *p = &run->job->params;
    snprintf(out->tracker, sizeof out->tracker, "%s", sac_tracker_kind_name(p->tracker.kind));
    snprintf(out->head, sizeof out->head, "%s", t->head);
    snprintf(out->classes, sizeof out->classes, "%s", t->kept);
    snprintf(out->engine, sizeof out->engine, "%s", t->engine);
    if (t->engine[0])
        snprintf(out->precision, sizeof out->precision, "%s",
                 sac_task_precision(run->job, p->detector_params.precision));
    if (p->detector && (run->task->begin || run->job->replay))
        snprintf(out->detector, sizeof out->detector, "%s", p->detector);
    if (t->by_appearance)
        snprintf(out->reid, sizeof out->reid, "%s", p->reid);
    out->preprocess_streams = t->streams;
    out->postprocess_threads = sac_worker_pool_threads(t->helpers);
    out->postprocess_together = (int64_t)atomic_load(&t->together);
}

void sac_track_add_files(const struct sac_task_run *run, struct sac_files *files)
{
    const struct sac_track_run *t = (const struct sac_track_run *)run;
    if (t->det)
        sac_task_add_model(files, sac_detector_model(t->det));
    if (t->emb)
        sac_task_add_model(files, sac_embedder_model(t->emb));
}
