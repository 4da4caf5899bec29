/* SPDX-License-Identifier: Apache-2.0 */
#include <saccade/server.h>

#include <string.h>

#include "serve/collect.h"
#include "serve/runs.h"
#include "serve/waiting.h"

static const int64_t SMALL_NS = 30000000000;

struct sac_server {
    sac_context             *ctx;
    struct sac_server_params params;
    struct sac_runs          runs; /* the thread's, once it has begun */
    struct sac_waiting       waiting;
    struct sac_collector     collector; /* the thread's */
    sac_request            **lined;     /* [batch_max] of a batch; the thread's */
    pthread_t                thread;
    bool                     started; /* whoever creates and destroys it */
    sac_timers              *timers;
    int                      latency, queue; /* of timers */

    pthread_mutex_t         lock; /* guards counts */
    struct sac_server_stats counts;
};

struct sac_server_params sac_server_params_default(void)
{
    return (struct sac_server_params){
        .batch_min = 1, .timeout_us = 2000, .queue_max = 1024, .step_ms = 1000};
}

/* ---- answers ---- */

static void count_answer(sac_server *s, const struct sac_answer *a)
{
    pthread_mutex_lock(&s->lock);
    s->counts.answered++;
    s->counts.failed += a->status != SAC_OK;
    s->counts.late += a->late;
    pthread_mutex_unlock(&s->lock);
    if (a->batch == 0)
        return;
    sac_timer_add(s->timers, s->latency, a->latency_ns);
    sac_timer_add(s->timers, s->queue, a->queue_ns);
}

/* The one place where a request leaves. It is counted first: whoever has its answer finds it in the
 * statistics. */
static void answer(sac_server *s, sac_request *r)
{
    struct sac_answer a;
    r->answered_ns = sac_time_ns();
    sac_request_describe(r, &a);
    count_answer(s, &a);
    sac_request_settle(r);
    sac_request_unref(&r);
}

static void refuse_late(sac_server *s)
{
    const int64_t now_ns = sac_time_ns();
    sac_request  *next, *r = sac_waiting_take_late(&s->waiting, now_ns);
    for (; r; r = next) {
        next = r->next;
        sac_request_fail(r, SAC_FAIL(s->ctx, SAC_ERR_LIMIT,
                                     "request %lld: its deadline of %.1f ms was over after %.1f ms "
                                     "in the queue",
                                     (long long)r->params.id, (double)r->params.deadline_us / 1e3,
                                     (double)(now_ns - r->submitted_ns) / 1e6));
        pthread_mutex_lock(&s->lock);
        s->counts.refused++;
        pthread_mutex_unlock(&s->lock);
        answer(s, r);
    }
}

static void cancel_all(sac_server *s)
{
    sac_request *next, *r = sac_waiting_take_all(&s->waiting);
    for (; r; r = next) {
        next = r->next;
        sac_request_fail(r, SAC_FAIL(s->ctx, SAC_ERR_CANCELLED,
                                     "request %lld: its server was destroyed before it ran",
                                     (long long)r->params.id));
        pthread_mutex_lock(&s->lock);
        s->counts.cancelled++;
        pthread_mutex_unlock(&s->lock);
        answer(s, r);
    }
}

/* ---- batches, on the server's thread ---- */

/* A request may wait until its time-out, or its deadline where that is sooner. */
static int64_t waits_since(const sac_server *s, const sac_request *r)
{
    const int64_t timeout_ns = s->collector.timeout_ns;
    return r->deadline_ns ? SAC_MIN(r->submitted_ns, r->deadline_ns - timeout_ns) : r->submitted_ns;
}

static sac_result next_wait(void *user, int size_max, int64_t timeout_ns, struct sac_collected *out)
{
    sac_server  *s = user;
    sac_request *r = NULL;
    if (s->params.late == SAC_LATE_REFUSE)
        refuse_late(s);
    sac_result res = sac_waiting_pop_wait(&s->waiting, size_max, timeout_ns, &r);
    if (res == SAC_OK)
        *out = (struct sac_collected){r, r->size, waits_since(s, r)};
    return res;
}

static int line_up(sac_server *s, const struct sac_batch *b)
{
    const int64_t now_ns = sac_time_ns();
    for (size_t i = 0; i < b->count; i++) {
        sac_request *r = s->lined[i] = b->items[i];
        r->begun_ns = r->batch ? r->begun_ns : now_ns;
        r->batch = b->size;
    }
    return (int)b->count;
}

static void count_batch(sac_server *s, int size)
{
    pthread_mutex_lock(&s->lock);
    s->counts.batches++;
    s->counts.items += size;
    s->counts.batch[SAC_MIN(size, SAC_SERVER_BATCH_MAX)]++;
    pthread_mutex_unlock(&s->lock);
}

static sac_result begin(void *user, struct sac_batch *b)
{
    sac_server *s = user;
    const int   n = line_up(s, b);
    sac_result  res = sac_runs_begin(&s->runs, b->slot, s->lined, n);
    if (sac_is_out_of_memory(res)) {
        sac_device_pool_trim(s->runs.dev);
        res = sac_runs_begin(&s->runs, b->slot, s->lined, n);
    }
    if (res == SAC_OK) /* else its parts are counted, as they run */
        count_batch(s, b->size);
    return res;
}

static bool has_arrived(void *user, const struct sac_batch *b)
{
    return sac_runs_arrived(&((const sac_server *)user)->runs, b->slot);
}

static void land(void *user, struct sac_batch *b)
{
    sac_server *s = user;
    const int   n = line_up(s, b);
    sac_result  res = b->begun;
    if (res == SAC_OK)
        res = sac_runs_end(&s->runs, b->slot, s->lined, n);
    if (res != SAC_OK)
        sac_collector_retry(&s->collector, b, n, res);
    const int64_t now_ns = sac_time_ns();
    for (size_t i = 0; i < b->count; i++) {
        sac_request *r = b->items[i];
        r->done_ns = now_ns;
        answer(s, r);
    }
}

static sac_result again(void *user, struct sac_batch *b, int first, int n)
{
    sac_server         *s = user;
    sac_request *const *requests = s->lined + first;
    sac_result          res = sac_runs_begin(&s->runs, b->slot, requests, n);
    int                 size = 0;
    for (int i = 0; i < n; i++)
        size += requests[i]->size;
    if (res == SAC_OK)
        count_batch(s, size);
    return res == SAC_OK ? sac_runs_end(&s->runs, b->slot, requests, n) : res;
}

static void fail_one(void *user, int item, sac_result res)
{
    sac_request_fail(((sac_server *)user)->lined[item], res);
}

static void fail_alone(void *user, void *item, sac_result res)
{
    sac_server *s = user;
    sac_request_fail(item, SAC_FAIL(s->ctx, res, "no memory for a batch"));
    answer(s, item);
}

static const struct sac_collector_calls calls = {.next_wait = next_wait,
                                                 .begin = begin,
                                                 .arrived = has_arrived,
                                                 .land = land,
                                                 .alone = fail_alone,
                                                 .again = again,
                                                 .fail = fail_one};

static void *serve_main(void *arg)
{
    sac_server *s = arg;
    sac_memory_use_set(SAC_MEMORY_INFERENCE);
    sac_collector_run(&s->collector);
    return NULL;
}

/* ---- creation ---- */

static sac_result check_params(sac_context *ctx, const struct sac_server_params *p)
{
    const struct sac_number numbers[] = {
        {"batch_min", p->batch_min, 0, SAC_SERVER_BATCH_MAX},
        {"batch_preferred", p->batch_preferred, 0, SAC_SERVER_BATCH_MAX},
        {"batch_max", p->batch_max, 0, SAC_SERVER_BATCH_MAX},
        {"timeout_us", p->timeout_us, 0, 1000000000},
        {"padding", (int)p->padding, 0, SAC_BATCH_PADDING_FULL},
        {"batches_ahead", p->batches_ahead, 0, SAC_BATCHES_MAX},
        {"streams", p->streams, 0, SAC_SERVER_STREAMS_MAX},
        {"queue_max", p->queue_max, 1, 1 << 20},
        {"late", (int)p->late, 0, SAC_LATE_REFUSE},
        {"step_ms", p->step_ms, 0, 3600000},
        {"goal", (int)p->goal, 0, SAC_GOAL_THROUGHPUT},
        {"goal_ms", p->goal_ms, 0, 3600000},
        {"width", p->width, 0, 32768},
        {"height", p->height, 0, 32768},
    };
    SAC_NEEDS_NO_LATER_FIELD(ctx, p, "server parameters");
    if (sac_numbers_check(ctx, "server", numbers, SAC_COUNT(numbers)) != SAC_OK)
        return SAC_ERR_ARG;
    if (p->goal == SAC_GOAL_LATENCY && p->goal_ms <= 0)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "server: a goal of latency needs goal_ms above 0");
    if (p->padding == SAC_BATCH_PADDING_NONE && p->batch_max > SAC_SIZES_MAX)
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "server: plans for each size of batch up to %d; have them up to %d",
                        p->batch_max, (int)SAC_SIZES_MAX);
    return SAC_OK;
}

static sac_result choose_batch(sac_server *s, sac_model *model, int *most)
{
    const struct sac_server_params *p = &s->params;
    *most = p->batch_max > 0 ? p->batch_max : SAC_MAX(s->runs.dev->ops->batch_best, 1);
    if (*most > 1 && !sac_model_batches(model)) {
        sac_log(s->ctx, SAC_LOG_INFO, "%s: its items can't be stacked, so each runs by itself",
                sac_model_path(model));
        *most = 1;
    }
    if (p->goal == SAC_GOAL_NONE || *most == 1)
        return SAC_OK;
    return sac_runs_tune(&s->runs, p->goal, p->goal_ms, *most, most);
}

static sac_result open_runs(sac_server *s, sac_model *model)
{
    const struct sac_server_params *p = &s->params;
    const bool async = s->runs.dev->ops->async; /* else work is done when it is queued */
    const int  streams = async ? SAC_MAX(p->streams, 1) : 1;
    int        most = 1;
    sac_result res = choose_batch(s, model, &most);
    if (res == SAC_OK)
        res = sac_runs_open(&s->runs, p->padding, most, streams,
                            p->batches_ahead > 0 ? p->batches_ahead : streams + async);
    if (res == SAC_OK && s->runs.varies && most > 1)
        res = SAC_FAIL(s->ctx, SAC_ERR_UNSUPPORTED,
                       "%s: how large its outputs are depends on the data, so items cannot be "
                       "stacked: serve it with batch_max 1",
                       sac_model_path(model));
    return res;
}

static sac_result open_timers(sac_server *s)
{
    sac_result res = sac_timers_create(s->ctx, &s->timers);
    s->latency = res == SAC_OK ? sac_timers_id(s->timers, "latency") : -1;
    s->queue = res == SAC_OK ? sac_timers_id(s->timers, "queue") : -1;
    if (res == SAC_OK && (s->latency < 0 || s->queue < 0))
        res = SAC_FAIL(s->ctx, SAC_ERR_MEMORY, "no memory for a server's timers");
    return res;
}

static sac_result start(sac_server *s)
{
    const struct sac_server_params *p = &s->params;
    const int                       most = s->runs.capacity;
    s->lined = sac_calloc((size_t)most, sizeof(sac_request *));
    if (!s->lined)
        return SAC_FAIL(s->ctx, SAC_ERR_MEMORY, "no memory for a batch of %d", most);
    s->collector = (struct sac_collector){.calls = &calls,
                                          .user = s,
                                          .dev = s->runs.dev,
                                          .unit = "items",
                                          .most = most,
                                          .preferred = SAC_MIN(p->batch_preferred, most),
                                          .least = SAC_MIN(p->batch_min, most),
                                          .depth = s->runs.depth,
                                          .slots = s->runs.depth,
                                          .idle = s->runs.streams,
                                          .timeout_ns = (int64_t)p->timeout_us * 1000,
                                          .late = true,
                                          .small_ns = SMALL_NS};
    s->counts.batch_max = most;
    s->counts.batch_preferred = s->collector.preferred ? s->collector.preferred : most;
    sac_result res = sac_thread_start(s->ctx, &s->thread, "sac-serve", serve_main, s);
    s->started = res == SAC_OK;
    return res;
}

sac_result sac_server_create(sac_model *model, const struct sac_server_params *params,
                             sac_server **out)
{
    sac_context *ctx = model ? sac_device_context(sac_model_device(model)) : NULL;
    SAC_NEEDS(ctx, model);
    SAC_NEEDS(ctx, out);
    const struct sac_server_params p = params ? *params : sac_server_params_default();
    if (check_params(ctx, &p) != SAC_OK)
        return SAC_ERR_ARG;
    sac_server *s = sac_new(sac_server);
    if (!s)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a server");
    s->ctx = ctx;
    s->params = p;
    s->params.preprocess = NULL; /* it is read while the server is created */
    pthread_mutex_init(&s->lock, NULL);
    sac_result res = sac_waiting_init(&s->waiting, ctx, p.queue_max, (int64_t)p.step_ms * 1000000);
    if (res == SAC_OK)
        res = open_timers(s);
    if (res == SAC_OK)
        res = sac_runs_init(&s->runs, model, &p);
    if (res == SAC_OK)
        res = open_runs(s, model);
    if (res == SAC_OK)
        res = start(s);
    if (res == SAC_OK)
        *out = s;
    else
        sac_server_destroy(&s);
    return res;
}

/* A callback's thread, which would wait for itself. */
static bool is_own_thread(const sac_server *s)
{
    return s->started && pthread_equal(pthread_self(), s->thread);
}

void sac_server_end(sac_server *s)
{
    if (!s || !s->started)
        return;
    sac_waiting_close(&s->waiting);
    if (is_own_thread(s)) {
        sac_log(s->ctx, SAC_LOG_WARN,
                "server: ended by one of its callbacks, which can't wait for the answers: it takes "
                "no more requests; end or destroy it from another thread");
        return;
    }
    pthread_join(s->thread, NULL);
    s->started = false;
}

void sac_server_destroy(sac_server **at)
{
    sac_server *s = at ? *at : NULL;
    if (!s)
        return;
    if (is_own_thread(s)) {
        sac_log(s->ctx, SAC_LOG_ERROR,
                "server: not destroyed, as one of its callbacks asked for it, on the thread that "
                "would end; destroy it from another thread");
        return;
    }
    *at = NULL;
    if (s->waiting.heap)
        cancel_all(s);
    sac_server_end(s);
    sac_collector_finish(&s->collector);
    sac_runs_finish(&s->runs);
    sac_waiting_finish(&s->waiting);
    sac_timers_destroy(&s->timers);
    pthread_mutex_destroy(&s->lock);
    sac_free(s->lined);
    sac_free(s);
}

const struct sac_tensor_desc *sac_server_input(const sac_server *s, int i)
{
    return s && i >= 0 && i < s->runs.inputs ? &s->runs.item[i] : NULL;
}

/* ---- requests ---- */

static sac_result check_tensor(sac_server *s, const sac_tensor *t, int i, int64_t *size)
{
    const struct sac_tensor_desc *item = &s->runs.item[i], *d = t ? sac_tensor_describe(t) : NULL;
    const char                   *name = sac_model_input(s->runs.model, i)->name;
    char                          is[160], wants[160];
    if (!t)
        return SAC_FAIL(s->ctx, SAC_ERR_ARG, "request: input '%s' is missing", name);
    const sac_device *dev = sac_tensor_device(t);
    if (dev != s->runs.dev && !dev->ops->host_memory)
        return SAC_FAIL(s->ctx, SAC_ERR_ARG,
                        "request: input '%s' is on %s; have %s, or the host's memory", name,
                        dev->name, s->runs.dev->name);
    const bool fits =
        d->dtype == item->dtype && d->rank == item->rank && d->shape[0] > 0 &&
        !memcmp(d->shape + 1, item->shape + 1, (size_t)(item->rank - 1) * sizeof item->shape[0]);
    if (i == 0 && fits)
        *size = d->shape[0];
    if (fits && d->shape[0] == *size && *size <= s->counts.batch_max)
        return SAC_OK;
    sac_tensor_desc_print(d, is, sizeof is);
    sac_tensor_desc_print(item, wants, sizeof wants);
    return SAC_FAIL(s->ctx, SAC_ERR_ARG,
                    "request: input '%s' is %s; have %s, or a stack of up to %d, of one number for "
                    "all inputs",
                    name, is, wants, s->counts.batch_max);
}

static sac_result check_request(sac_context *ctx, const struct sac_request_params *p)
{
    const struct sac_number numbers[] = {
        {"priority", p->priority, -1000, 1000},
        {"deadline_us", (double)p->deadline_us, 0, 1e15},
    };
    SAC_NEEDS_NO_LATER_FIELD(ctx, p, "request parameters");
    return sac_numbers_check(ctx, "request", numbers, SAC_COUNT(numbers));
}

/* One submits from the server's thread: nobody would make room. */
static bool may_wait(const sac_server *s)
{
    return s->params.block && !pthread_equal(pthread_self(), s->thread);
}

static sac_result push(sac_server *s, sac_request *r, int size, sac_request **out)
{
    r->size = size;
    r->submitted_ns = sac_time_ns();
    r->deadline_ns = r->params.deadline_us ? r->submitted_ns + r->params.deadline_us * 1000 : 0;
    sac_request *kept = out ? sac_request_ref(r) : NULL;
    pthread_mutex_lock(&s->lock); /* before its answer is */
    s->counts.submitted++;
    pthread_mutex_unlock(&s->lock);
    sac_result res = sac_waiting_push(&s->waiting, r, may_wait(s));
    if (res == SAC_OK) {
        if (out)
            *out = kept;
        return SAC_OK;
    }
    pthread_mutex_lock(&s->lock);
    s->counts.submitted--;
    s->counts.full += res == SAC_AGAIN;
    pthread_mutex_unlock(&s->lock);
    sac_request_unref(&kept);
    sac_request_unref(&r);
    return res == SAC_AGAIN
               ? res
               : SAC_FAIL(s->ctx, res, "request: the server takes no more, as it was ended");
}

sac_result sac_server_submit(sac_server *s, sac_tensor *const *in,
                             const struct sac_request_params *params, sac_request **out)
{
    SAC_NEEDS(NULL, s);
    SAC_NEEDS(s->ctx, in);
    const struct sac_request_params p = params ? *params : sac_request_params_default();
    sac_request                    *r = NULL;
    int64_t                         size = 0;
    sac_result                      res = check_request(s->ctx, &p);
    for (int i = 0; i < s->runs.inputs && res == SAC_OK; i++)
        res = check_tensor(s, in[i], i, &size);
    if (res == SAC_OK)
        res = sac_request_create(s->ctx, &p, s->runs.inputs, in, NULL, s->runs.outputs, &r);
    return res == SAC_OK ? push(s, r, (int)size, out) : res;
}

sac_result sac_server_submit_frame(sac_server *s, sac_frame *frame,
                                   const struct sac_request_params *params, sac_request **out)
{
    SAC_NEEDS(NULL, s);
    SAC_NEEDS(s->ctx, frame);
    const struct sac_request_params p = params ? *params : sac_request_params_default();
    sac_request                    *r = NULL;
    sac_result                      res = check_request(s->ctx, &p);
    if (res == SAC_OK && !s->runs.pictures)
        res = SAC_FAIL(s->ctx, SAC_ERR_UNSUPPORTED, "%s takes no frames: %s",
                       sac_model_path(s->runs.model), s->runs.why);
    if (res == SAC_OK && (!frame->owner || frame->device != s->runs.dev))
        res = SAC_FAIL(s->ctx, SAC_ERR_ARG, "request: its frame is not on %s", s->runs.dev->name);
    if (res == SAC_OK)
        res = sac_request_create(s->ctx, &p, 0, NULL, frame, s->runs.outputs, &r);
    return res == SAC_OK ? push(s, r, 1, out) : res;
}

/* ---- statistics ---- */

void sac_server_get_stats(sac_server *s, struct sac_server_stats *out)
{
    struct sac_timer_summary timed[2] = {{.count = 0}};
    if (!s || !out)
        return;
    pthread_mutex_lock(&s->lock);
    *out = s->counts;
    pthread_mutex_unlock(&s->lock);
    out->padded = (int64_t)atomic_load(&s->runs.padded);
    sac_waiting_get(&s->waiting, &out->queue_length, &out->queue_length_max);
    sac_timers_summary(s->timers, timed, 2);
    out->latency = timed[s->latency];
    out->queue = timed[s->queue];
}
