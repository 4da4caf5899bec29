/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/shortage.h"

#include <time.h>

#include "device/device.h"

/* The longest wait for a refused stream's memory, and the time between two looks. */
static const int64_t RELIEF_NS = 2000000000, LOOK_NS = 10000000;

/* ---- items ---- */

int sac_inference_line_up(struct sac_inference *inf, const struct sac_batch *b)
{
    int n = 0;
    for (size_t i = 0; i < b->count; i++) {
        struct sac_item *item = b->items[i];
        if (!item->last && item->status == SAC_OK)
            inf->lined[n++] = item;
    }
    return n;
}

sac_result sac_inference_begin(struct sac_inference *inf, int slot, struct sac_item *const *items,
                               int n)
{
    struct sac_task_run *run = inf->job->run;
    return run->task->begin ? run->task->begin(run, slot, items, n) : SAC_OK;
}

void sac_inference_pass_on(struct sac_inference *inf, struct sac_item *item)
{
    if (sac_queue_push_wait(inf->job->track, item) != SAC_OK)
        sac_job_recycle(inf->job, item);
}

/* ---- streams ---- */

static void refuse(struct sac_inference *inf, struct sac_item *item)
{
    const char      *why = item->lane ? inf->short_of : "";
    const sac_result res = item->lane ? inf->shortage : SAC_ERR_MEMORY;
    sac_job_fail_item(inf->job, item,
                      SAC_FAIL(inf->job->ctx, res, "stream %d: %s has no memory left for it%s%s",
                               item->stream_id, sac_device_name(inf->job->dev), *why ? ": " : "",
                               why));
}

static bool is_refused(const struct sac_item *item)
{
    return !item->last && item->lane && item->lane->refused;
}

/* Take the items of refused lanes out of the batch and pass them on with their fault now: they hold
 * memory, and so does a reader that does not know of it yet. */
void sac_inference_sort_out(void *user, struct sac_batch *b, struct sac_pieces *p)
{
    struct sac_inference *inf = user;
    int                   lined = 0, done = 0;
    size_t                kept = 0;
    for (int i = 0; i < p->n; i++)
        if (!is_refused(inf->lined[i])) {
            done += i < p->at;
            inf->lined[lined++] = inf->lined[i];
        }
    p->at = done;
    p->n = lined;
    for (size_t i = 0; i < b->count; i++) {
        struct sac_item *item = b->items[i];
        if (sac_inference_refuses(inf, item))
            b->size--;
        else
            b->items[kept++] = item;
    }
    b->count = kept;
}

static bool take_refused(void *list, void *at)
{
    struct sac_item *item = at, **first = list;
    if (!is_refused(item))
        return false;
    item->next = *first;
    *first = item;
    return true;
}

bool sac_inference_refuses(struct sac_inference *inf, struct sac_item *item)
{
    if (!is_refused(item))
        return false;
    refuse(inf, item);
    sac_inference_pass_on(inf, item);
    return true;
}

/* Those in the queue: their reader may be blocked at it, and without its fault a stream does not
 * end. */
static void drop_refused_in_queue(struct sac_inference *inf)
{
    struct sac_item *item = NULL;
    sac_queue_sift(inf->job->detect, take_refused, &item);
    for (struct sac_item *next; item; item = next) {
        next = item->next;
        sac_inference_refuses(inf, item);
    }
}

/* Wait for a refused stream's memory. false: the wait is over. */
static bool await_relief(struct sac_inference *inf)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};
    if (sac_time_ns() >= inf->relief_ns || atomic_load(&inf->job->discard))
        return false;
    drop_refused_in_queue(inf);
    nanosleep(&look, NULL);
    sac_device_pool_trim(inf->job->dev);
    return true;
}

struct newest {
    struct sac_lane *lane;
    int              stream_id;
};

static bool look_at(void *user, void *at)
{
    const struct sac_item *item = at;
    struct newest         *newest = user;
    if (!item->last && item->lane && !item->lane->refused &&
        (!newest->lane || item->stream_id > newest->stream_id))
        *newest = (struct newest){item->lane, item->stream_id};
    return false; /* it stays where it is */
}

/* The newest lane of those with a frame in a batch or in the queue. */
static struct sac_lane *newest_lane(struct sac_inference *inf)
{
    struct newest newest = {NULL, 0};
    for (size_t i = 0; i < SAC_COUNT(inf->collector.ring); i++) {
        const struct sac_batch *b = &inf->collector.ring[i];
        for (size_t k = 0; k < b->count; k++)
            look_at(&newest, b->items[k]);
    }
    sac_queue_sift(inf->job->detect, look_at, &newest);
    return newest.lane;
}

static void refuse_newest(struct sac_inference *inf, struct sac_batch *b, struct sac_pieces *p,
                          sac_result res)
{
    inf->shortage = res;
    sac_context_last_error(inf->job->ctx, inf->short_of, sizeof inf->short_of);
    newest_lane(inf)->refused = true;
    inf->relief_ns = sac_time_ns() + RELIEF_NS;
    sac_inference_sort_out(inf, b, p);
}

/* Pushed frames: of several streams in the batch the newest is refused, as long as batches are
 * small. Its frames keep their order among the others'. */
static bool refuse_pushed(struct sac_inference *inf, const struct sac_batch *b)
{
    int newest = INT32_MIN, oldest = INT32_MAX;
    for (size_t i = 0; i < b->count; i++) {
        const struct sac_item *item = b->items[i];
        if (!item->last && item->stream_id < inf->refused_from) {
            newest = SAC_MAX(newest, item->stream_id);
            oldest = SAC_MIN(oldest, item->stream_id);
        }
    }
    if (newest <= oldest)
        return false;
    inf->refused_from = newest;
    return true;
}

/* Not even one frame fits. true: go on with what is left of the batch; false: the frame fails. */
bool sac_inference_find_room(void *user, struct sac_batch *b, struct sac_pieces *p, sac_result res)
{
    struct sac_inference *inf = user;
    if (!inf->lined[p->at]->lane) {
        if (!refuse_pushed(inf, b))
            return false;
    } else if (await_relief(inf)) {
        return true;
    } else {
        refuse_newest(inf, b, p, res);
    }
    sac_collector_shrink(&inf->collector, 1);
    return true;
}

/* ---- pieces ---- */

sac_result sac_inference_again(void *user, struct sac_batch *b, int first, int n)
{
    struct sac_inference   *inf = user;
    struct sac_task_run    *run = inf->job->run;
    struct sac_item *const *items = inf->lined + first;
    sac_result              res = sac_inference_begin(inf, b->slot, items, n);
    return res == SAC_OK ? run->task->land(run, b->slot, items, n) : res;
}

void sac_inference_fail(void *user, int item, sac_result res)
{
    struct sac_inference *inf = user;
    sac_job_fail_item(inf->job, inf->lined[item], res);
}

/* A pushed frame whose stream is refused as long as batches are small. */
bool sac_inference_skips(void *user, int number)
{
    struct sac_inference *inf = user;
    struct sac_item      *item = inf->lined[number];
    if (item->lane || item->stream_id < inf->refused_from)
        return false;
    refuse(inf, item);
    return true;
}

/* A refused stream has ended, unless its frames are pushed: pushed frames are tried again too. */
void sac_inference_eased(void *user)
{
    ((struct sac_inference *)user)->refused_from = INT32_MAX;
}
