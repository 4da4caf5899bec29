/* SPDX-License-Identifier: Apache-2.0 */
/* The inference thread of a job. Neither it nor the tracking thread stops at a fault: the item
 * carries the fault to the consumer, which decides. */
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "engine/engine.h"
#include "heads/detector.h"
#include "pipeline/job.h"
#include "reid/embedder.h"

void sac_job_fail_item(struct sac_job *job, struct sac_item *item, sac_result res)
{
    item->status = res;
    sac_context_last_error(job->ctx, item->why, sizeof item->why);
    sac_error_clear(job->ctx);
}

bool sac_job_make_way(struct sac_job *job, sac_result res)
{
    if (!sac_is_out_of_memory(res) || !job->give_way || !job->give_way(job->give_way_user, job))
        return false;
    sac_device_pool_trim(job->dev);
    sac_error_clear(job->ctx);
    return true;
}

/* ---- inference: models ---- */

static sac_result copy_classes(struct sac_job *job)
{
    int    n = sac_detector_contract(job->det)->class_count;
    char **names = sac_arena_alloc(&job->strings, (size_t)n * sizeof *names);
    for (int i = 0; names && i < n; i++) {
        const char *name = sac_detector_class_name(job->det, i);
        if (name && !(names[i] = sac_arena_strndup(&job->strings, name, strlen(name))))
            names = NULL;
    }
    if (!names)
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for the names of %d classes", n);
    job->classes = names;
    job->class_count = n;
    job->class_kept = sac_detector_kept_classes(job->det);
    sac_detector_describe_classes(job->det, job->kept, sizeof job->kept);
    return SAC_OK;
}

static sac_result open_detector(struct sac_job *job)
{
    const struct sac_track_job_params *p = &job->params;
    sac_result res = sac_detector_create(job->dev, p->detector, &p->detector_params, &job->det);
    if (res != SAC_OK)
        return res;
    snprintf(job->head, sizeof job->head, "%s", sac_detector_head_name(job->det));
    if (job->ahead) /* a network with a fixed batch takes one frame */
        job->batch_limit = SAC_MIN(job->batch_limit, job->det->batch);
    return copy_classes(job);
}

static sac_result open_embedder(struct sac_job *job)
{
    const struct sac_track_job_params *p = &job->params;
    enum sac_memory_use                before = sac_memory_use_set(SAC_MEMORY_REID);
    sac_result res = sac_embedder_create(job->dev, p->reid, &p->reid_params, &job->emb);
    sac_memory_use_set(before);
    if (res != SAC_OK)
        return res;
    job->params.tracker.embedding_dim = sac_embedder_dim(job->emb);
    return SAC_OK;
}

/* Create one tracker now, to check its parameters and whether it uses appearance. */
static sac_result open_tracker(struct sac_job *job)
{
    struct sac_stream_tracker *first;
    sac_result                 res = sac_job_tracker(job, 0, &first);
    if (res != SAC_OK)
        return res;
    job->wants_embeddings = job->emb && sac_tracker_wants_embeddings(first->trk);
    if (job->emb && !job->wants_embeddings)
        sac_log(job->ctx, SAC_LOG_WARN, "tracker %s matches by motion only: %s is not used",
                sac_tracker_kind_name(job->params.tracker.kind), job->params.reid);
    return SAC_OK;
}

/* Runs on a GPU need plans, tensors and the set-up of its libraries. Creating them before the first
 * frame keeps that time out of the run. */
static sac_result warm_up(struct sac_job *job)
{
    const struct sac_detector_params *p = &job->params.detector_params;
    const int64_t                     begun = sac_time_ns();
    const bool reid = job->emb && (job->wants_embeddings || job->params.reid_every);
    sac_result res = job->det ? sac_detector_warm_up(job->det) : SAC_OK;
    if (res == SAC_OK && reid)
        res = sac_embedder_warm_up(job->emb);
    if (res == SAC_OK && reid) /* up to the most that the detector may find in a batch */
        res = sac_embedder_reserve(job->emb,
                                   (size_t)job->batch_max * (size_t)SAC_MAX(p->detection_max, 1));
    if (res == SAC_OK && job->det)
        res = sac_detector_time(job->det, job->measures);
    if (job->emb)
        sac_embedder_time(job->emb, job->measures);
    sac_log(job->ctx, SAC_LOG_DEBUG, "networks ready for batches of up to %d frames after %.1f s",
            job->batch_max, (double)(sac_time_ns() - begun) * 1e-9);
    return res;
}

static sac_result open_models(struct sac_job *job)
{
    sac_result res = job->ready_made ? SAC_OK : open_detector(job);
    if (res == SAC_OK)
        res = sac_job_choose_reid(job);
    if (res == SAC_OK && job->params.reid)
        res = open_embedder(job);
    if (job->det || job->emb)
        sac_engine_describe(job->dev, job->engine, sizeof job->engine);
    if (res == SAC_OK)
        res = open_tracker(job);
    return res == SAC_OK && job->ahead ? warm_up(job) : res;
}

static void close_models(struct sac_job *job)
{
    sac_detector_destroy(&job->det);
    sac_embedder_destroy(&job->emb);
}

/* ---- inference: detections ---- */

static void record_times(struct sac_job *job, const struct sac_run_times *times,
                         struct sac_item *const *items, int n)
{
    const struct sac_item *const *seen = (const struct sac_item *const *)items;
    int64_t                       prepared = times->begun_ns + times->preprocess_ns;
    int64_t                       inferred = prepared + times->inference_ns;
    if (!job->measures)
        return;
    sac_job_record(job, SAC_STAGE_PREPROCESS, times->begun_ns, prepared, seen, n);
    sac_job_record(job, SAC_STAGE_INFERENCE, prepared, inferred, seen, n);
    sac_job_record(job, SAC_STAGE_HEAD, inferred, inferred + times->head_ns, seen, n);
}

/* The detector fills an array of lists; each is then moved to its item. */
static sac_result run_detector(struct sac_job *job, struct sac_item **items, int n)
{
    for (int i = 0; i < n; i++) {
        job->frames[i] = items[i]->frame;
        job->found[i] = items[i]->found;
    }
    sac_result           res = sac_detector_run(job->det, job->frames, n, job->found);
    struct sac_run_times times = {0};
    if (res == SAC_OK) {
        sac_detector_get_times(job->det, &times);
        record_times(job, &times, items, n);
    }
    for (int i = 0; i < n; i++) {
        items[i]->found = job->found[i];
        items[i]->times = times;
    }
    return res;
}

/* An unusable frame must not make the others fail: a batch that fails is run again frame by
 * frame. */
static void detect_batch(struct sac_job *job, int n)
{
    sac_result res = run_detector(job, job->batch, n);
    atomic_fetch_add(&job->batches, 1);
    atomic_fetch_add(&job->batch_frames, (uint_fast64_t)n);
    atomic_fetch_add(&job->batches_full, n == job->batch_max);
    if (res == SAC_OK)
        return;
    for (int i = 0; i < n; i++) {
        if (n > 1)
            res = run_detector(job, &job->batch[i], 1);
        if (res != SAC_OK)
            sac_job_fail_item(job, job->batch[i], res);
    }
}

void sac_job_look_up(struct sac_job *job, struct sac_item *item)
{
    sac_result res = sac_rows_get(item->lane->rows, job->ctx, item->number, &item->found);
    if (res != SAC_OK)
        sac_job_fail_item(job, item, res);
}

/* ---- inference: embeddings ---- */

/* The detections that are matched by appearance. The others are matched by motion only and need no
 * embeddings. */
static bool gather_wanted(struct sac_job *job, const struct sac_item *item)
{
    struct sac_detections *wanted = &job->wanted;
    size_t                 n = item->found.count;
    wanted->count = 0;
    if (!sac_grow((void **)&wanted->items, &wanted->capacity, n, sizeof *wanted->items) ||
        !sac_grow((void **)&job->wanted_at, &job->wanted_at_capacity, n, sizeof *job->wanted_at))
        return false;
    for (size_t i = 0; i < n; i++)
        if (sac_job_wants_embedding(job, &item->found.items[i])) {
            job->wanted_at[wanted->count] = i;
            wanted->items[wanted->count++] = item->found.items[i];
        }
    return true;
}

/* Move rows [0..wanted) to the indices of their detections, last first, with zeros in between. */
static void spread_rows(const struct sac_job *job, struct sac_item *item, size_t dim)
{
    size_t next = job->wanted.count;
    for (size_t i = item->found.count; i-- > 0;) {
        float *row = item->feat + i * dim;
        if (next > 0 && job->wanted_at[next - 1] == i) {
            if (--next != i)
                memcpy(row, item->feat + next * dim, dim * sizeof *row);
        } else
            memset(row, 0, dim * sizeof *row);
    }
}

static sac_result embed(struct sac_job *job, struct sac_item *item)
{
    size_t  dim = (size_t)sac_embedder_dim(job->emb);
    int64_t begun = sac_time_ns();
    if (!gather_wanted(job, item) || !sac_grow((void **)&item->feat, &item->feat_capacity,
                                               item->found.count * dim, sizeof *item->feat))
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for %zu embeddings",
                        item->found.count);
    sac_result res = SAC_OK;
    if (job->wanted.count > 0)
        res = sac_embedder_run(job->emb, item->frame, job->wanted.items, job->wanted.count,
                               item->feat);
    if (res != SAC_OK)
        return res;
    spread_rows(job, item, dim);
    item->has_feat = true;
    item->reid_ns = sac_time_ns() - begun;
    return SAC_OK;
}

/* ---- inference: the thread ---- */

bool sac_job_is_discarded(struct sac_job *job, const struct sac_item *item)
{
    bool discard = atomic_load(&job->discard) || (item->lane && atomic_load(&item->lane->discard));
    return discard && !item->last;
}

/* The next item, or NULL at the end; skips discarded ones. timeout_ns as in pop_wait. */
static struct sac_item *next_item(struct sac_job *job, int64_t timeout_ns)
{
    void *item;
    while (sac_queue_pop_wait(job->detect, timeout_ns, &item) == SAC_OK) {
        if (!sac_job_is_discarded(job, item))
            return item;
        sac_job_recycle(job, item);
    }
    return NULL;
}

/* Wait for a first frame, then up to timeout_ms for others to share its run. The end of a lane ends
 * the batch: it must stay behind the frames. Returns how many frames there are. */
static int collect_batch(struct sac_job *job)
{
    int64_t until_ns = 0;
    int     n = 0;
    job->after_batch = NULL;
    while (n < job->batch_max && !job->after_batch) {
        struct sac_item *item = next_item(job, n == 0 ? -1 : SAC_MAX(until_ns - sac_time_ns(), 0));
        if (!item)
            break;
        if (item->last)
            job->after_batch = item;
        else
            job->batch[n++] = item;
        if (n == 1)
            until_ns = sac_time_ns() + (int64_t)job->params.timeout_ms * 1000000;
    }
    return n;
}

void sac_job_pass_on(struct sac_job *job, struct sac_item *item)
{
    if (sac_queue_push_wait(job->track, item) != SAC_OK)
        sac_job_recycle(job, item);
}

static void infer_batch(struct sac_job *job, int n)
{
    for (int i = 0; i < n && job->ready_made; i++)
        sac_job_look_up(job, job->batch[i]);
    if (!job->ready_made)
        detect_batch(job, n);
    for (int i = 0; i < n; i++) {
        struct sac_item *item = job->batch[i];
        if ((job->wants_embeddings || (job->emb && job->params.reid_every)) &&
            item->status == SAC_OK && item->frame) {
            int64_t begun = sac_job_begin(job, SAC_STAGE_REID);
            sac_memory_use_set(SAC_MEMORY_REID);
            sac_result res = embed(job, item);
            sac_memory_use_set(SAC_MEMORY_INFERENCE);
            sac_job_finish(job, SAC_STAGE_REID, begun, item);
            if (res != SAC_OK)
                sac_job_fail_item(job, item, res);
        }
        sac_job_pass_on(job, item);
    }
}

static void infer_in_turn(struct sac_job *job)
{
    for (int n; (n = collect_batch(job)) > 0 || job->after_batch;) {
        if (n > 0)
            infer_batch(job, n);
        if (job->after_batch)
            sac_job_pass_on(job, job->after_batch);
    }
}

void *sac_job_infer_main(void *arg)
{
    struct sac_job *job = arg;
    sac_memory_use_set(SAC_MEMORY_INFERENCE);
    sac_result res = open_models(job);
    while (sac_job_make_way(job, res)) {
        close_models(job);
        sac_device_pool_trim(job->dev);
        res = open_models(job);
    }
    sac_fault_keep(&job->fault, job->ctx, res);
    sem_post(&job->opened);
    if (res == SAC_OK && job->ahead)
        sac_job_infer_ahead(job);
    else if (res == SAC_OK)
        infer_in_turn(job);
    sac_queue_close(job->track);
    close_models(job);
    return NULL;
}
