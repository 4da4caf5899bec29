/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/inference.h"

#include <errno.h>
#include <time.h>

#include "engine/engine.h"
#include "pipeline/books.h"
#include "pipeline/shortage.h"

static const int64_t SMALL_NS = 30000000000;
static const double  MEMORY_TARGET = 0.85;

/* ---- a batch ---- */

static sac_result begin(void *user, struct sac_batch *b)
{
    struct sac_inference *inf = user;
    struct sac_job       *job = inf->job;
    const int             n = sac_inference_line_up(inf, b);
    sac_result            res = sac_inference_begin(inf, b->slot, inf->lined, n);
    if (sac_is_out_of_memory(res)) {
        sac_device_pool_trim(job->dev);
        res = sac_inference_begin(inf, b->slot, inf->lined, n);
    }
    int seen = 0;
    for (int i = 0; i < n; i++)
        seen += !inf->lined[i]->still;
    if (job->run->task->begin && seen > 0)
        sac_books_count_batch(job->books, seen, seen >= inf->collector.limit);
    return res;
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

static void land(void *user, struct sac_batch *b)
{
    struct sac_inference *inf = user;
    struct sac_job       *job = inf->job;
    const int             n = sac_inference_line_up(inf, b);
    sac_result            res = b->begun;
    if (res == SAC_OK)
        res = job->run->task->land(job->run, b->slot, inf->lined, n);
    if (res != SAC_OK)
        sac_collector_retry(&inf->collector, b, n, res);
    follow(inf, b);
    for (size_t i = 0; i < b->count; i++)
        sac_inference_pass_on(inf, b->items[i]);
}

static bool has_arrived(void *user, const struct sac_batch *b)
{
    const struct sac_task_run *run = ((const struct sac_inference *)user)->job->run;
    return !run->task->begin || run->task->arrived(run, b->slot);
}

/* ---- what is collected ---- */

static bool is_discarded(struct sac_job *job, const struct sac_item *item)
{
    bool discard = atomic_load(&job->discard) || (item->lane && atomic_load(&item->lane->discard));
    return discard && !item->last;
}

void sac_inference_add_lane(struct sac_inference *inf, const struct sac_lane *lane)
{
    atomic_fetch_add(&inf->room, lane->room);
}

static int64_t room(void *user)
{
    return atomic_load(&((struct sac_inference *)user)->room);
}

/* A frame counts for one, the end of a lane is a mark. */
static sac_result next_wait(void *user, int size_max, int64_t timeout_ns, struct sac_collected *out)
{
    struct sac_inference *inf = user;
    void                 *popped;
    (void)size_max; /* never 0 */
    sac_result res = sac_queue_pop_wait(inf->job->detect, timeout_ns, &popped);
    if (res != SAC_OK)
        return res;
    const struct sac_item *item = popped;
    if (item->last && item->lane)
        atomic_fetch_sub(&inf->room, item->lane->room);
    *out = (struct sac_collected){popped, !item->last, sac_time_ns()};
    return SAC_OK;
}

static bool refuses(void *user, void *at)
{
    struct sac_inference *inf = user;
    if (!is_discarded(inf->job, at))
        return sac_inference_refuses(inf, at);
    sac_job_recycle(inf->job, at);
    return true;
}

static void pass_alone(void *user, void *item, sac_result res)
{
    struct sac_inference *inf = user;
    struct sac_job       *job = inf->job;
    if (res != SAC_OK)
        sac_job_fail_item(job, item, SAC_FAIL(job->ctx, res, "no memory for a batch"));
    sac_inference_pass_on(inf, item);
}

static void resized(void *user, int from, int to)
{
    sac_books_count_limit(((struct sac_inference *)user)->job->books, to > from);
}

static const struct sac_collector_calls calls = {.next_wait = next_wait,
                                                 .refuses = refuses,
                                                 .room = room,
                                                 .begin = begin,
                                                 .arrived = has_arrived,
                                                 .land = land,
                                                 .alone = pass_alone,
                                                 .again = sac_inference_again,
                                                 .fail = sac_inference_fail,
                                                 .sort_out = sac_inference_sort_out,
                                                 .skips = sac_inference_skips,
                                                 .find_room = sac_inference_find_room,
                                                 .eased = sac_inference_eased,
                                                 .resized = resized};

/* ---- the thread ---- */

static int least(const struct sac_inference *inf)
{
    const int given = (int)inf->job->params.inference_batch_min;
    return given > 0 ? given : inf->eager ? 1 : 0;
}

static void infer(struct sac_inference *inf)
{
    struct sac_job *job = inf->job;
    inf->collector = (struct sac_collector){.calls = &calls,
                                            .user = inf,
                                            .dev = job->dev,
                                            .unit = "frames",
                                            .most = sac_inference_batch_most(inf),
                                            .least = least(inf),
                                            .depth = inf->depth,
                                            .slots = SAC_TASK_SLOTS,
                                            .timeout_ns = (int64_t)job->params.timeout_ms * 1000000,
                                            .small_ns = inf->small_ns,
                                            .target = inf->memory_target};
    inf->refused_from = INT32_MAX;
    sac_collector_run(&inf->collector);
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
    inf->memory_target = p->memory_target > 0 ? (double)p->memory_target : MEMORY_TARGET;
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
    sac_collector_finish(&inf->collector);
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
