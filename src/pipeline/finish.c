/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/finish.h"

#include "pipeline/books.h"
#include "pipeline/task.h"

/* ---- a wave ---- */

static bool has_stream(const struct sac_finishing *f, int stream_id)
{
    for (int i = 0; i < f->count; i++)
        if (f->item[i]->stream_id == stream_id)
            return true;
    return false;
}

/* Add an item to the wave or put it off: a second item of a stream waits for the first. */
static void take(struct sac_finishing *f, struct sac_item *item)
{
    if (f->count < f->max && !f->closed && !has_stream(f, item->stream_id)) {
        f->item[f->count++] = item;
        return;
    }
    f->later[f->later_count++] = item;
    f->closed |= !item->lane || f->job->run->in_order;
}

/* Take the items put off, then `first` (NULL: none), then those in the queue, without waiting. */
static void collect(struct sac_finishing *f, struct sac_item *first)
{
    void     *next;
    const int put_off = f->later_count;
    f->count = f->later_count = 0;
    f->closed = false;
    for (int i = 0; i < put_off; i++)
        take(f, f->later[i]);
    if (first)
        take(f, first);
    while (f->count < f->max && f->later_count < SAC_WAVE_MAX && !f->closed &&
           sac_queue_pop_wait(f->job->track, 0, &next) == SAC_OK)
        take(f, next);
}

static void finish(struct sac_finishing *f)
{
    struct sac_task_run *run = f->job->run;
    struct sac_item     *members[SAC_WAVE_MAX];
    int                  n = 0;
    for (int i = 0; i < f->count; i++)
        if (!f->item[i]->last && f->item[i]->status == SAC_OK)
            members[n++] = f->item[i];
    if (n > 0 && run->task->finish)
        run->task->finish(run, members, n);
}

static void pass_on(struct sac_finishing *f)
{
    struct sac_job      *job = f->job;
    struct sac_task_run *run = job->run;
    for (int i = 0; i < f->count; i++) {
        struct sac_item *item = f->item[i];
        if (item->last && run->task->forget)
            run->task->forget(run, item->stream_id);
        item->done_ns = sac_time_ns();
        if (!item->last && item->status == SAC_OK) /* what failed was not done */
            sac_books_count_item(job->books, item);
        if (sac_queue_push_wait(item->lane ? item->lane->done : job->done, item) != SAC_OK)
            sac_job_recycle(job, item);
    }
}

/* ---- the thread ---- */

static void rest(struct sac_task_run *run)
{
    if (run->task->rest)
        run->task->rest(run);
}

/* NULL at the end. */
static struct sac_item *next_item(struct sac_job *job)
{
    struct sac_queue_stats stats;
    void                  *item;
    sac_queue_stats(job->track, &stats);
    if (stats.length == 0)
        rest(job->run);
    return sac_queue_pop_wait(job->track, -1, &item) == SAC_OK ? item : NULL;
}

static void *finish_main(void *arg)
{
    struct sac_finishing *f = arg;
    struct sac_item      *item = NULL;
    f->max = SAC_CLAMP(f->job->run->wave_max, 1, (int)SAC_WAVE_MAX);
    sac_memory_use_set(SAC_MEMORY_TRACKING);
    while (f->later_count > 0 || (item = next_item(f->job)) != NULL) {
        collect(f, item);
        item = NULL;
        finish(f);
        pass_on(f);
    }
    rest(f->job->run);
    sac_queue_close(f->job->done);
    return NULL;
}

/* ---- start and end ---- */

sac_result sac_finishing_create(struct sac_job *job, struct sac_finishing **out)
{
    *out = sac_new(struct sac_finishing);
    if (!*out)
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory to finish a job's frames");
    (*out)->job = job;
    return SAC_OK;
}

sac_result sac_finishing_start(struct sac_finishing *f)
{
    sac_result res = sac_thread_start(f->job->ctx, &f->thread, "sac-track", finish_main, f);
    f->started = res == SAC_OK;
    return res;
}

void sac_finishing_join(struct sac_finishing *f)
{
    if (f->started)
        pthread_join(f->thread, NULL);
    f->started = false;
}

void sac_finishing_destroy(struct sac_finishing **f)
{
    sac_free(*f);
    *f = NULL;
}
