/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/tasks/track.h"

#include "base/range.h"
#include "pipeline/prepared.h"
#include "pipeline/replay.h"
#include "pipeline/tasks/models.h"
#include "pipeline/tasks/still.h"

/* ---- boxes ---- */

/* Those that are not still and whose boxes are not kept, into t->seen; first those whose images are
 * made of their frames, as sac_batch_images wants it. */
static int choose_seen(struct sac_track_run *t, struct sac_item *const *items, int n)
{
    int seen = 0;
    for (int kept = 0; kept < 2; kept++)
        for (int i = 0; i < n; i++)
            if (!items[i]->still && !items[i]->kept && (items[i]->image != NULL) == kept)
                t->seen[seen++] = items[i];
    return seen;
}

static void keep_image(void *user, int i, const void *pixels)
{
    struct sac_item *item = ((struct sac_track_run *)user)->seen[i];
    if (item->lane && item->lane->prepared)
        sac_prepared_keep(item->lane->prepared, item, pixels);
}

static sac_result begin_seen(struct sac_track_run *t, int slot, int seen)
{
    const struct sac_batch_images images = {t->images, keep_image, t};
    for (int i = 0; i < seen; i++) {
        const struct sac_item *item = t->seen[i];
        t->frames[i] = item->frame;
        t->images[i] = (struct sac_kept_image){.pixels = NULL};
        if (item->image)
            t->images[i] =
                (struct sac_kept_image){item->image, item->prepared->width, item->prepared->height};
    }
    sac_result res = sac_detector_begin(t->det, slot, t->frames, &images, seen);
    for (int i = 0; i < seen; i++)
        if (t->seen[i]->image)
            sac_prepared_taken(t->seen[i]->lane->prepared, t->seen[i]);
    return res;
}

/* Of the frames of which the disk cache does not know it. */
static sac_result decide_still(struct sac_track_run *t, struct sac_item *const *items, int n)
{
    int open = 0;
    for (int i = 0; i < n; i++)
        if (!items[i]->decided && !items[i]->kept)
            t->seen[open++] = items[i];
    return sac_still_decide(t->still, t->seen, open);
}

static sac_result begin(struct sac_task_run *run, int slot, struct sac_item *const *items, int n)
{
    struct sac_track_run *t = (struct sac_track_run *)run;
    sac_result            res = decide_still(t, items, n);
    if (res != SAC_OK)
        return res;
    const int seen = t->seen_count[slot] = choose_seen(t, items, n);
    return seen ? begin_seen(t, slot, seen) : SAC_OK;
}

static bool arrived(const struct sac_task_run *run, int slot)
{
    const struct sac_track_run *t = (const struct sac_track_run *)run;
    return t->seen_count[slot] == 0 || sac_detector_arrived(t->det, slot);
}

/* From the disk cache. A frame that fails does so alone. */
static void fill(struct sac_task_run *run, struct sac_item *const *items, int n)
{
    for (int i = 0; i < n; i++) {
        sac_result res = items[i]->kept ? sac_replay_fill(run->job->ctx, items[i]) : SAC_OK;
        if (res != SAC_OK)
            sac_job_fail_item(run->job, items[i], res);
    }
}

/* The detector fills an array of lists, which the items lend it meanwhile. */
static sac_result land(struct sac_task_run *run, int slot, struct sac_item *const *items, int n)
{
    struct sac_track_run  *t = (struct sac_track_run *)run;
    struct sac_batch_times times;
    const int              seen = choose_seen(t, items, n);
    fill(run, items, n);
    if (seen == 0)
        return SAC_OK;
    for (int i = 0; i < seen; i++)
        t->found[i] = t->seen[i]->found;
    sac_result res = sac_detector_end(t->det, slot, t->found, &times);
    for (int i = 0; i < seen; i++)
        t->seen[i]->found = t->found[i];
    if (res == SAC_OK)
        sac_task_record(run, &times, SAC_STAGE_HEAD, t->seen, seen);
    return res;
}

static sac_result look_up(struct sac_task_run *run, int slot, struct sac_item *const *items, int n)
{
    sac_context *ctx = run->job->ctx;
    (void)slot;
    for (int i = 0; i < n; i++) {
        struct sac_item *item = items[i];
        sac_result       res;
        if (item->kept)
            res = sac_replay_fill(ctx, item);
        else
            res = sac_rows_get(item->lane->rows, ctx, item->number, &item->found);
        if (res != SAC_OK)
            sac_job_fail_item(run->job, item, res);
    }
    return SAC_OK;
}

/* ---- embeddings ---- */

static struct sac_track_own *own_of(struct sac_item *item)
{
    if (!item->own)
        item->own = sac_new(struct sac_track_own);
    return item->own;
}

/* A still one is not matched by appearance. */
static bool is_embedded(const struct sac_item *item)
{
    return item->frame && !item->kept_looks && !(item->kept && item->still);
}

/* Append the crops of an item's detections to those of the items before it; -1: no memory.
 * Detections that are matched by motion alone need no embedding. */
static int add_crops(struct sac_track_run *t, struct sac_item *item, int count)
{
    const struct sac_track_job_params *p = &t->base.job->params;
    const struct sac_replay           *replay = item->lane ? item->lane->replay : NULL;
    const bool                         all = p->reid_every || (replay && replay->records_looks);
    const size_t                       n = item->found.count;
    struct sac_track_own              *own = own_of(item);
    if (!own || !sac_grow((void **)&own->row, &own->row_capacity, n, sizeof *own->row) ||
        !sac_grow((void **)&t->crops, &t->crops_capacity, (size_t)count + n, sizeof *t->crops) ||
        !sac_grow((void **)&t->crop_frames, &t->crop_frames_capacity, (size_t)count + n,
                  sizeof(*t->crop_frames)))
        return -1;
    for (size_t i = 0; i < n; i++) {
        const struct sac_detection *det = &item->found.items[i];
        own->row[i] = -1;
        if (!all && !(det->score >= p->tracker.score_high))
            continue;
        t->crops[count] = *det;
        t->crop_frames[count] = item->frame;
        own->row[i] = count++;
    }
    return count;
}

/* wait: for rows that earlier batches hold; not while items of this one hold some. */
static sac_result embed(struct sac_track_run *t, struct sac_item *const *items, int n, bool wait)
{
    struct sac_embeddings *rows = NULL;
    sac_result             res = SAC_OK;
    int                    count = 0;
    for (int i = 0; i < n && count >= 0; i++)
        if (is_embedded(items[i]))
            count = add_crops(t, items[i], count);
    if (count < 0)
        return SAC_FAIL(t->base.job->ctx, SAC_ERR_MEMORY, "no memory for the crops of %d frames",
                        n);
    if (count > 0)
        res = sac_embedder_queue(t->emb, t->crop_frames, t->crops, count, wait, &rows);
    for (int i = 0; i < n && rows; i++)
        if (is_embedded(items[i]))
            ((struct sac_track_own *)items[i]->own)->embeddings = sac_embeddings_ref(rows);
    sac_embeddings_unref(&rows);
    return res;
}

static sac_result follow(struct sac_task_run *run, struct sac_item *const *items, int n, bool all)
{
    struct sac_track_run *t = (struct sac_track_run *)run;
    struct sac_books     *books = run->job->books;
    int64_t               gpu_ns;
    if (!t->embeds || !t->emb)
        return SAC_OK;
    const int64_t             begun = sac_time_ns();
    const enum sac_memory_use before = sac_memory_use_set(SAC_MEMORY_REID);
    sac_range_push("reid");
    sac_result res = embed(t, items, n, all);
    sac_range_pop();
    sac_memory_use_set(before);
    const int64_t ended = sac_time_ns();
    for (int i = 0; i < n; i++)
        items[i]->reid_ns = ended - begun;
    if (!books->measures)
        return res;
    sac_books_record(books, SAC_STAGE_REID, begun, ended, items, n);
    while (sac_embedder_take_gpu_ns(t->emb, &gpu_ns))
        sac_books_record_gpu(books, SAC_STAGE_REID, 0, gpu_ns, NULL, 0);
    return res;
}

static void own_clear(void *own)
{
    sac_embeddings_unref(&((struct sac_track_own *)own)->embeddings);
}

static void own_free(void *own)
{
    own_clear(own);
    sac_free(((struct sac_track_own *)own)->row);
    sac_free(own);
}

/* ---- the rows ---- */

const struct sac_task sac_task_track = {
    .name = "track",
    .size = sizeof(struct sac_track_run),
    .prepare = sac_track_prepare,
    .open = sac_track_open,
    .begin = begin,
    .arrived = arrived,
    .land = land,
    .follow = follow,
    .close = sac_track_close,
    .expect = sac_track_expect,
    .finish = sac_track_finish,
    .rest = sac_track_rest,
    .forget = sac_track_forget,
    .release = sac_track_release,
    .own_clear = own_clear,
    .own_free = own_free,
    .describe = sac_track_describe,
    .add_files = sac_track_add_files,
};

const struct sac_task sac_task_track_rows = {
    .name = "track rows",
    .size = sizeof(struct sac_track_run),
    .prepare = sac_track_prepare,
    .open = sac_track_open,
    .land = look_up,
    .follow = follow,
    .close = sac_track_close,
    .expect = sac_track_expect,
    .finish = sac_track_finish,
    .rest = sac_track_rest,
    .forget = sac_track_forget,
    .release = sac_track_release,
    .own_clear = own_clear,
    .own_free = own_free,
    .describe = sac_track_describe,
    .add_files = sac_track_add_files,
};
