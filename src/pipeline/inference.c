/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/inference.h"

#include <errno.h>
#include <time.h>

#include "engine/engine.h"
#include "pipeline/books.h"
#include "pipeline/shortage.h"

/* How often to check whether a batch has arrived, while no frame comes. */
static const int64_t LOOK_NS = 200000;
static const int64_t SMALL_NS = 30000000000;

static struct sac_batch *nth(struct sac_inference *inf, int n)
{
    return &inf->ring[(inf->first + n) % (int)SAC_COUNT(inf->ring)];
}

static bool add(struct sac_batch *b, struct sac_item *item)
{
    if (!sac_grow((void **)&b->items, &b->capacity, b->count + 1, sizeof(*b->items)))
        return false;
    b->items[b->count++] = item;
    b->frames += !item->last;
    return true;
}

/* ---- a batch ---- */

static void begin(struct sac_inference *inf, struct sac_batch *b)
{
    struct sac_job *job = inf->job;
    const int       n = sac_inference_line_up(inf, b);
    b->slot = (int)(inf->turn++ % SAC_TASK_SLOTS);
    b->begun = sac_inference_begin(inf, b->slot, inf->lined, n);
    if (sac_is_out_of_memory(b->begun)) {
        sac_device_pool_trim(job->dev);
        b->begun = sac_inference_begin(inf, b->slot, inf->lined, n);
    }
    int seen = 0;
    for (int i = 0; i < n; i++)
        seen += !inf->lined[i]->still;
    if (job->run->task->begin && seen > 0)
        sac_books_count_batch(job->books, seen, seen >= inf->limit);
}

/* A frame that fails does so alone. */
static void follow(struct sac_inference *inf, struct sac_batch *b)
{
    struct sac_job        *job = inf->job;
    const struct sac_task *task = job->run->task;
    const int              n = sac_inference_line_up(inf, b);
    if (!task->follow || n == 0)
        return;
    sac_result res = task->follow(job->run, inf->lined, n, true);
    if (sac_is_out_of_memory(res)) {
        sac_device_pool_trim(job->dev);
        res = task->follow(job->run, inf->lined, n, true);
    }
    for (int i = 0; i < n && res != SAC_OK; i++) {
        sac_result one = task->follow(job->run, &inf->lined[i], 1, false);
        if (one != SAC_OK)
            sac_job_fail_item(job, inf->lined[i], one);
    }
}

/* The oldest batch under way: wait for it, and pass its items on. */
static void land(struct sac_inference *inf)
{
    struct sac_job   *job = inf->job;
    struct sac_batch *b = nth(inf, 0);
    const int         n = sac_inference_line_up(inf, b);
    sac_result        res = b->begun;
    if (res == SAC_OK)
        res = job->run->task->land(job->run, b->slot, inf->lined, n);
    if (res != SAC_OK)
        sac_inference_retry(inf, b, n, res);
    follow(inf, b);
    for (size_t i = 0; i < b->count; i++)
        sac_inference_pass_on(inf, b->items[i]);
    b->count = 0;
    b->frames = 0;
    inf->first = (inf->first + 1) % (int)SAC_COUNT(inf->ring);
    inf->under_way--;
}

static bool has_arrived(const struct sac_inference *inf)
{
    const struct sac_task_run *run = inf->job->run;
    const struct sac_batch    *b = &inf->ring[inf->first];
    return inf->under_way > 0 &&
           (!run->task->begin || b->begun != SAC_OK || run->task->arrived(run, b->slot));
}

/* ---- what is collected ---- */

static bool is_discarded(struct sac_job *job, const struct sac_item *item)
{
    bool discard = atomic_load(&job->discard) || (item->lane && atomic_load(&item->lane->discard));
    return discard && !item->last;
}

/* How long to wait for a frame. Never long while a batch is under way. */
static int64_t patience(const struct sac_inference *inf, const struct sac_batch *b,
                        int64_t until_ns)
{
    const int64_t left = b->frames ? SAC_MAX(until_ns - sac_time_ns(), 0) : -1;
    if (inf->under_way == 0)
        return left;
    return left < 0 || inf->under_way >= inf->depth ? LOOK_NS : SAC_MIN(left, LOOK_NS);
}

void sac_inference_add_lane(struct sac_inference *inf, const struct sac_lane *lane)
{
    atomic_fetch_add(&inf->room, lane->room);
}

/* Every frame that the lanes may have inside is in this batch or under way: no other comes before
 * one of those is done. */
static bool has_all(struct sac_inference *inf, const struct sac_batch *b)
{
    const int64_t room = atomic_load(&inf->room);
    int64_t       held = b->frames;
    for (int i = 0; i < inf->under_way; i++)
        held += nth(inf, i)->frames;
    return room > 0 && held >= room;
}

/* The end of a lane without frames before it in this batch: after the batches under way, or at
 * once. */
static void pass_end(struct sac_inference *inf, struct sac_item *item)
{
    if (inf->under_way == 0 || !add(nth(inf, inf->under_way - 1), item)) {
        while (inf->under_way > 0)
            land(inf);
        sac_inference_pass_on(inf, item);
    }
}

static void take(struct sac_inference *inf, struct sac_batch *b, struct sac_item *item)
{
    struct sac_job *job = inf->job;
    if (item->last && item->lane)
        atomic_fetch_sub(&inf->room, item->lane->room);
    if (is_discarded(job, item)) {
        sac_job_recycle(job, item);
    } else if (sac_inference_refuses(inf, item)) {
        return;
    } else if (item->last && b->frames == 0) {
        pass_end(inf, item);
    } else if (!add(b, item)) {
        sac_job_fail_item(job, item, SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for a batch"));
        while (inf->under_way > 0)
            land(inf);
        sac_inference_pass_on(inf, item);
    }
}

/* Until when a batch that begins now may wait for more frames. While the device is busy, waiting
 * costs nothing. */
static int64_t deadline(const struct sac_inference *inf)
{
    const bool at_once = inf->eager && inf->under_way == 0;
    return sac_time_ns() + (at_once ? 0 : (int64_t)inf->job->params.timeout_ms * 1000000);
}

/* Fill the next batch until it is full, its time is over, no more can come for now, or a lane ends
 * while the device has nothing to do. Batches that arrive meanwhile are landed. false: no more
 * frames will come. */
static bool collect(struct sac_inference *inf, struct sac_batch *b)
{
    int64_t until_ns = 0;
    bool    ended = false;
    sac_inference_grow(inf);
    while (b->frames < inf->limit) {
        void *popped;
        if (has_arrived(inf)) {
            land(inf);
            until_ns = SAC_MIN(until_ns, deadline(inf));
        }
        if (b->frames &&
            ((ended && inf->under_way == 0) || (inf->under_way < inf->depth && has_all(inf, b))))
            return true;
        sac_result res = sac_queue_pop_wait(inf->job->detect, patience(inf, b, until_ns), &popped);
        if (res == SAC_OK) {
            const bool last = ((struct sac_item *)popped)->last;
            if (b->frames == 0)
                until_ns = deadline(inf);
            take(inf, b, popped);
            ended |= last && b->frames;
        } else if (res != SAC_AGAIN) {
            return false;
        } else if (b->frames && sac_time_ns() >= until_ns && inf->under_way < inf->depth) {
            return true;
        }
    }
    return true;
}

/* ---- the thread ---- */

static void infer(struct sac_inference *inf)
{
    inf->limit = sac_inference_batch_most(inf);
    inf->refused_from = INT32_MAX;
    for (bool more = true; more;) {
        struct sac_batch *b = nth(inf, inf->under_way);
        more = collect(inf, b);
        b = nth(inf, inf->under_way); /* landing advanced the ring; find the batch again */
        if (b->frames == 0)
            continue;
        while (inf->under_way >= inf->depth)
            land(inf);
        begin(inf, b);
        inf->under_way++;
    }
    while (inf->under_way > 0)
        land(inf);
}

static void close_task(struct sac_task_run *run)
{
    if (run->task->close)
        run->task->close(run);
}

static sac_result open_task(struct sac_job *job)
{
    return job->run->task->open ? job->run->task->open(job->run) : SAC_OK;
}

static void give_back(struct sac_job *job)
{
    close_task(job->run);
    sac_device_pool_trim(job->dev);
}

/* Once the inputs are open, of which one may have to go. */
static sac_result make_way(struct sac_job *job, sac_result res)
{
    while (sac_job_make_way(job, res)) {
        give_back(job);
        res = open_task(job);
    }
    return res;
}

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0 && errno == EINTR)
        ;
}

/* The orders before the work; false: there is none. */
static bool open_as_ordered(struct sac_inference *inf)
{
    struct sac_job *job = inf->job;
    sac_result      res = SAC_OK;
    bool            tried = false;
    for (;; sem_post(&inf->done)) {
        wait_for(&inf->ordered);
        if (inf->order == SAC_INFERENCE_LEAVE)
            return false;
        if (inf->order == SAC_INFERENCE_RECALL)
            give_back(job);
        else if (!tried)
            res = open_task(job);
        tried = inf->order != SAC_INFERENCE_RECALL;
        if (inf->order != SAC_INFERENCE_START)
            continue;
        res = make_way(job, res);
        sac_start_use(NULL);
        sac_fault_keep(&inf->fault, job->ctx, res);
        sem_post(&inf->done);
        return res == SAC_OK;
    }
}

/* A GPU's are large, and need no device yet; the CPU's take some milliseconds. What they hold on
 * the device is made now where there is nothing to read meanwhile. */
static void open_libraries(struct sac_inference *inf)
{
    sac_device *dev = inf->job->dev;
    int         orders = 0, providers;
    sac_kernel_load(dev);
    sem_getvalue(&inf->ordered, &orders);
    if (orders == 0 && sac_device_await(dev) == SAC_OK)
        sac_kernel_providers(dev, &providers);
}

static void *infer_main(void *arg)
{
    struct sac_inference *inf = arg;
    struct sac_job       *job = inf->job;
    sac_memory_use_set(SAC_MEMORY_INFERENCE);
    sac_start_use(&job->start);
    if (job->run->task->begin && job->dev->ops->async)
        open_libraries(inf);
    if (open_as_ordered(inf))
        infer(inf);
    sac_queue_close(job->track);
    close_task(job->run);
    return NULL;
}

/* ---- start and end ---- */

/* Networks of mattes see more pixels than detectors: 8 images fill a GPU (DeepLabV3-ResNet50 at 512
 * does 1,464 a second in eights, 1,429 in sixteens), and each frame of a batch holds a picture of
 * the decoder and a matte. */
enum { MATTES_BEST = 8 };

static int best_batch(const struct sac_job *job)
{
    const int best = SAC_MAX(job->dev->ops->batch_best, 1);
    if (sac_job_is_prompt(job))
        return 1;
    return job->segment ? SAC_MIN(best, (int)MATTES_BEST) : best;
}

static void choose_batch(struct sac_inference *inf)
{
    struct sac_job              *job = inf->job;
    struct sac_track_job_params *p = &job->params;
    const int                    best = job->dev->ops->async ? SAC_TASK_SLOTS : 1;
    inf->depth = p->batches_ahead > 0 ? SAC_MIN(p->batches_ahead, (int)SAC_TASK_SLOTS) : best;
    inf->batch_max = p->inference_batch_max;
    if (p->inference_batch_max <= 0 || sac_job_is_prompt(job))
        inf->batch_max = best_batch(job);
    else if (job->run->batch_max > 0)
        inf->batch_max = SAC_MIN(inf->batch_max, job->run->batch_max);
    inf->eager = sac_job_is_prompt(job);
    inf->batch_limit = inf->batch_max;
    inf->small_ns = SMALL_NS;
    if (p->reid_params.batch_max <= 0) /* a few people in each frame, and no more than fill a GPU */
        p->reid_params.batch_max = SAC_CLAMP(4 * inf->batch_max, 16, 128);
}

sac_result sac_inference_create(struct sac_job *job, struct sac_inference **out)
{
    struct sac_inference *inf = sac_new(struct sac_inference);
    if (!inf)
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for a job's batches");
    inf->job = job;
    sem_init(&inf->ordered, 0, 0);
    sem_init(&inf->done, 0, 0);
    sac_fault_init(&inf->fault);
    choose_batch(inf);
    *out = inf;
    inf->lined = sac_calloc((size_t)inf->batch_max, sizeof(*inf->lined));
    return inf->lined ? SAC_OK
                      : SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for a batch of %d frames",
                                 inf->batch_max);
}

sac_result sac_inference_prepare(struct sac_inference *inf)
{
    sac_result res = SAC_OK;
    if (!inf->prepared)
        res = sac_thread_start(inf->job->ctx, &inf->thread, "sac-infer", infer_main, inf);
    inf->prepared = res == SAC_OK;
    return res;
}

/* Trials take seconds: while they do, the one who waits is asked whether the run still is wanted.
 */
static void await_order(struct sac_inference *inf)
{
    static const int64_t ASK_NS = 50000000;
    struct sac_job      *job = inf->job;
    while (inf->busy) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += ASK_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        inf->busy = sem_timedwait(&inf->done, &until) != 0;
        if (inf->busy && job->unwanted && job->unwanted(job->unwanted_user))
            sac_start_give_up(&job->start);
    }
}

static void give_order(struct sac_inference *inf, enum sac_inference_order order)
{
    await_order(inf);
    inf->order = order;
    inf->busy = true;
    sem_post(&inf->ordered);
}

sac_result sac_inference_open(struct sac_inference *inf)
{
    sac_result res = sac_inference_prepare(inf);
    if (res == SAC_OK)
        give_order(inf, SAC_INFERENCE_OPEN);
    return res;
}

void sac_inference_recall(struct sac_inference *inf)
{
    give_order(inf, SAC_INFERENCE_RECALL);
    await_order(inf);
}

/* The thread opens the task, as only it may call the networks; the caller returns its fault. */
sac_result sac_inference_start(struct sac_inference *inf)
{
    sac_result res = sac_inference_prepare(inf);
    if (res != SAC_OK)
        return res;
    give_order(inf, SAC_INFERENCE_START);
    inf->started = true;
    await_order(inf);
    return sac_fault_raise(&inf->fault, inf->job->ctx);
}

void sac_inference_join(struct sac_inference *inf)
{
    if (inf->prepared && !inf->started) {
        sac_device_open_cancel(inf->job->dev); /* unless it is open */
        sac_start_give_up(&inf->job->start);
        give_order(inf, SAC_INFERENCE_LEAVE);
    }
    if (inf->prepared)
        pthread_join(inf->thread, NULL);
    inf->prepared = inf->started = inf->busy = false;
}

void sac_inference_destroy(struct sac_inference **at)
{
    struct sac_inference *inf = *at;
    if (!inf)
        return;
    *at = NULL;
    for (size_t i = 0; i < SAC_COUNT(inf->ring); i++)
        sac_free(inf->ring[i].items);
    sac_free(inf->lined);
    sac_fault_finish(&inf->fault);
    sem_destroy(&inf->ordered);
    sem_destroy(&inf->done);
    sac_free(inf);
}

int sac_inference_batch_most(const struct sac_inference *inf)
{
    const int most = inf->job->run->batch_max;
    return most > 0 ? SAC_MIN(inf->batch_limit, most) : inf->batch_limit;
}
