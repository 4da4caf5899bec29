/* SPDX-License-Identifier: Apache-2.0 */
/* A server, on the CPU, on a device whose memory is not the host's (far.h) and on a GPU: each
 * request gets what is its own, or the fault that it met; none is lost, whatever breaks. */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <saccade/saccade.h>

#include "serve/runs.h"
#include "tests/engine/far.h"
#include "tests/engine/proto.h"
#include "tests/gpu.h"
#include "tests/test.h"

enum { FLOAT = 1, INT64 = 7, NUMBERS = 4 };

/* ---- devices: one of them breaks ---- */

static sac_device *cpu, *far;
static atomic_bool broken;

static const struct sac_device_ops *own;

static sac_result record(struct sac_event *event, struct sac_device_stream *stream)
{
    if (broken)
        return SAC_FAIL(test_context(), SAC_ERR_DEVICE, "far: it broke");
    return own->event_record(event, stream);
}

static sac_result wait(struct sac_event *event)
{
    const sac_result res = own->event_wait(event);
    return broken ? SAC_FAIL(test_context(), SAC_ERR_DEVICE, "far: it broke") : res;
}

static int open_devices(void **state)
{
    (void)state;
    static struct sac_device_ops ops;
    own = far_ops(NULL);
    ops = *own;
    ops.event_record = record;
    ops.event_wait = wait;
    ops.async = true;
    far_counts.goes_on = true;
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &cpu));
    assert_sac_ok(sac_device_open_ops(test_context(), &ops, 0, NULL, &far));
    return 0;
}

static int close_devices(void **state)
{
    struct sac_pool_stats stats;
    (void)state;
    sac_device_pool_stats(far, &stats);
    assert_int_equal(stats.bytes_live, 0);
    sac_device_pool_stats(cpu, &stats);
    assert_int_equal(stats.bytes_live, 0);
    sac_device_unref(&far);
    sac_device_unref(&cpu);
    return 0;
}

/* ---- models ---- */

/* bytes stay until the program ends: models from memory read them. */
static sac_model *made(sac_device *dev, struct proto *graph, const char *name)
{
    static struct proto     kept[64];
    static int              count;
    sac_model              *m = NULL;
    struct proto           *model = &kept[count++];
    struct sac_model_params params = sac_model_params_default();
    params.precision = SAC_PRECISION_FP32;
    assert_true(count < 64);
    proto_model(model, graph, 17);
    assert_sac_ok(sac_model_load_memory(dev, model->bytes, model->size, name, &params, &m));
    return m;
}

/* y = 2 x of items of four numbers. */
static sac_model *doubling(sac_device *dev, const char *dims)
{
    struct proto graph = {0};
    proto_node(&graph, "Add", "x x", "y", NULL);
    proto_input(&graph, "x", FLOAT, dims);
    proto_output(&graph, "y", FLOAT, dims);
    return made(dev, &graph, "doubling");
}

/* An entry of a table of three: any other number is an item that no run takes. */
static sac_model *table(sac_device *dev)
{
    static const float rows[] = {10, 20, 30};
    struct proto       graph = {0};
    proto_initializer(&graph, "t", FLOAT, "3", rows, sizeof rows);
    proto_node(&graph, "Gather", "t x", "y", NULL);
    proto_input(&graph, "x", INT64, "? 1");
    proto_output(&graph, "y", FLOAT, "? 1");
    return made(dev, &graph, "table");
}

static sac_tensor *items(sac_device *dev, int n, float first)
{
    const struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 2, .shape = {n, NUMBERS}};
    float                        numbers[NUMBERS * 16];
    sac_tensor                  *t = NULL;
    for (int i = 0; i < n * NUMBERS; i++)
        numbers[i] = first + (float)i;
    assert_sac_ok(sac_tensor_create(dev, &desc, "test", &t));
    assert_sac_ok(sac_tensor_upload(t, numbers));
    return t;
}

static void check_doubled(const struct sac_answer *a, int n, float first)
{
    float numbers[NUMBERS * 16];
    assert_int_equal(a->status, SAC_OK);
    assert_int_equal(a->output_count, 1);
    const struct sac_tensor_desc *d = sac_tensor_describe(a->outputs[0]);
    assert_int_equal(d->shape[0], n);
    assert_int_equal(d->shape[1], NUMBERS);
    assert_sac_ok(sac_tensor_download(a->outputs[0], numbers));
    for (int i = 0; i < n * NUMBERS; i++)
        if (numbers[i] != 2 * (first + (float)i))
            fail_msg("%g in place of %g", (double)numbers[i], 2 * ((double)first + i));
}

static sac_server *served(sac_model *model, const struct sac_server_params *params)
{
    sac_server *server = NULL;
    assert_sac_ok(sac_server_create(model, params, &server));
    return server;
}

static void pause_ms(int ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000L};
    nanosleep(&t, NULL);
}

/* ---- a request that holds the server's thread until the gate opens ---- */

static sem_t gate, held;

static void hold(void *user, const struct sac_answer *answer)
{
    (void)user, (void)answer;
    sem_post(&held);
    while (sem_wait(&gate) != 0)
        ;
}

static void hold_server(sac_server *server, sac_tensor *x)
{
    struct sac_request_params params = sac_request_params_default();
    sem_init(&gate, 0, 0);
    sem_init(&held, 0, 0);
    params.done = hold;
    assert_sac_ok(sac_server_submit(server, &x, &params, NULL));
    while (sem_wait(&held) != 0)
        ;
}

static void let_go(void)
{
    sem_post(&gate);
}

/* ---- what is asked comes back ---- */

struct crowd {
    sac_server *server;
    sac_device *dev;
    int         number, faults;
    bool        breaks; /* the first of them breaks the device, and mends it */
};

enum { TURNS = 60, CROWD = 8 };

static void *ask(void *arg)
{
    struct crowd *c = arg;
    for (int i = 0; i < TURNS; i++) {
        struct sac_request_params params = sac_request_params_default();
        struct sac_answer         a;
        sac_request              *request = NULL;
        if (c->breaks && c->number == 0) /* for a third of its turns */
            broken = i >= TURNS / 3 && i < 2 * (TURNS / 3);
        const int   n = 1 + (i + c->number) % 3;
        const float first = (float)(1000 * c->number + i);
        sac_tensor *x = items(i % 2 ? c->dev : cpu, n, first);
        params.id = i;
        params.priority = i % 3;
        params.deadline_us = i % 4 ? 0 : 1000000;
        assert_sac_ok(sac_server_submit(c->server, &x, &params, &request));
        sac_tensor_unref(&x);
        const sac_result res = sac_request_wait(request, 60000000000, &a);
        if (!c->breaks)
            assert_int_equal(res, SAC_OK);
        assert_int_equal(a.id, i);
        assert_true(a.latency_ns >= a.queue_ns && a.queue_ns >= 0 && a.run_ns >= 0);
        assert_true(a.batch >= n || res != SAC_OK);
        if (res == SAC_OK)
            check_doubled(&a, n, first);
        c->faults += res != SAC_OK;
        sac_request_unref(&request);
    }
    return NULL;
}

static int ask_all(sac_server *server, sac_device *dev, bool breaks)
{
    struct crowd crowd[CROWD];
    pthread_t    threads[CROWD];
    int          faults = 0;
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = (struct crowd){server, dev, i, 0, breaks};
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &crowd[i]), 0);
    }
    for (int i = 0; i < CROWD; i++) {
        pthread_join(threads[i], NULL);
        faults += crowd[i].faults;
    }
    return faults;
}

static void check_sums(sac_server *server, int64_t items_least)
{
    struct sac_server_stats stats;
    int64_t                 batches = 0, count = 0;
    sac_server_get_stats(server, &stats);
    assert_int_equal(stats.submitted, stats.answered);
    for (int i = 0; i <= SAC_SERVER_BATCH_MAX; i++) {
        batches += stats.batch[i];
        count += i * stats.batch[i];
    }
    assert_int_equal(batches, stats.batches);
    assert_int_equal(count, stats.items);
    assert_true(stats.items >= items_least);
    assert_int_equal(stats.queue_length, 0);
    assert_true(stats.latency.p50_ms > 0 && stats.latency.p50_ms <= stats.latency.p99_ms);
}

static void each_gets_its_own(void **state)
{
    (void)state;
    for (int host = 0; host < 2; host++)
        for (int which = 0; which < 2; which++) {
            struct sac_server_params params = sac_server_params_default();
            sac_device              *dev = which ? far : cpu;
            sac_model               *model = doubling(dev, "? 4");
            params.batch_max = 6;
            params.host_outputs = host;
            params.padding = host ? SAC_BATCH_PADDING_POWER : SAC_BATCH_PADDING_AUTO;
            sac_server *server = served(model, &params);
            assert_int_equal(ask_all(server, dev, false), 0);
            check_sums(server, CROWD * TURNS);
            sac_server_destroy(&server);
            sac_model_unref(&model);
        }
}

static void a_gpu_gives_each_its_own(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL);
    for (int host = 0; host < 2; host++) {
        struct sac_server_params params = sac_server_params_default();
        sac_model               *model = doubling(gpu, "? 4");
        params.batch_max = 8;
        params.host_outputs = host;
        params.streams = 1 + host;
        sac_server *server = served(model, &params);
        assert_int_equal(ask_all(server, gpu, false), 0);
        check_sums(server, CROWD * TURNS);
        sac_server_destroy(&server);
        sac_model_unref(&model);
    }
    sac_device_unref(&gpu);
}

static void outputs_lie_where_they_were_wanted(void **state)
{
    (void)state;
    for (int host = 0; host < 2; host++) {
        struct sac_server_params params = sac_server_params_default();
        struct sac_answer        a;
        sac_model               *model = doubling(far, "? 4");
        sac_tensor              *x = items(cpu, 2, 1);
        sac_request             *request = NULL;
        params.batch_max = 2;
        params.host_outputs = host;
        sac_server *server = served(model, &params);
        assert_sac_ok(sac_server_submit(server, &x, NULL, &request));
        assert_sac_ok(sac_request_wait(request, -1, &a));
        assert_true((sac_tensor_device(a.outputs[0]) == far) == !host);
        check_doubled(&a, 2, 1);
        sac_server_destroy(&server); /* the answer stays */
        check_doubled(&a, 2, 1);
        sac_request_unref(&request);
        sac_tensor_unref(&x);
        sac_model_unref(&model);
    }
}

/* ---- batches ---- */

static int64_t order[32];
static int     order_count;

static void note(void *user, const struct sac_answer *answer)
{
    (void)user;
    order[order_count++] = answer->status == SAC_OK ? answer->id : -answer->id;
}

static void submit_noted(sac_server *server, sac_tensor *x, int64_t id, int priority,
                         int64_t deadline_us)
{
    struct sac_request_params params = sac_request_params_default();
    params.id = id;
    params.priority = priority;
    params.deadline_us = deadline_us;
    params.done = note;
    assert_sac_ok(sac_server_submit(server, &x, &params, NULL));
}

static void higher_priorities_go_first(void **state)
{
    (void)state;
    static const int64_t     want[] = {3, 5, 2, 1, 4};
    struct sac_server_params params = sac_server_params_default();
    sac_model               *model = doubling(cpu, "? 4");
    sac_tensor              *x = items(cpu, 1, 1);
    params.batch_max = 1;
    sac_server *server = served(model, &params);
    order_count = 0;
    hold_server(server, x);
    submit_noted(server, x, 1, 0, 0);
    submit_noted(server, x, 2, 1, 0);
    submit_noted(server, x, 3, 2, 0);
    submit_noted(server, x, 4, 0, 0);
    submit_noted(server, x, 5, 2, 0);
    let_go();
    sac_server_end(server);
    assert_int_equal(order_count, 5);
    assert_memory_equal(order, want, sizeof want);
    sac_server_destroy(&server);
    sac_tensor_unref(&x);
    sac_model_unref(&model);
}

static void what_waits_becomes_a_batch(void **state)
{
    (void)state;
    static const struct {
        enum sac_batch_padding padding;
        int64_t                padded;
    } cases[] = {{SAC_BATCH_PADDING_NONE, 0},
                 {SAC_BATCH_PADDING_POWER, 3},
                 {SAC_BATCH_PADDING_FULL, 3 + 7},
                 {SAC_BATCH_PADDING_AUTO, 0}};
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        struct sac_server_params params = sac_server_params_default();
        struct sac_server_stats  stats;
        sac_model               *model = doubling(cpu, "? 4");
        sac_tensor              *x = items(cpu, 1, 1);
        params.batch_max = 8;
        params.padding = cases[i].padding;
        sac_server *server = served(model, &params);
        hold_server(server, x);
        order_count = 0;
        for (int k = 0; k < 5; k++)
            submit_noted(server, x, k, 0, 0);
        let_go();
        sac_server_end(server);
        sac_server_get_stats(server, &stats);
        assert_int_equal(stats.batch[5], 1);
        assert_int_equal(stats.batch[1], 1);
        assert_int_equal(stats.batches, 2);
        assert_int_equal(stats.padded, cases[i].padded);
        assert_int_equal(stats.batch_max, 8);
        assert_int_equal(stats.queue_length_max, 5);
        sac_server_destroy(&server);
        sac_tensor_unref(&x);
        sac_model_unref(&model);
    }
}

static void a_batch_waits_for_its_least_or_its_time(void **state)
{
    (void)state;
    struct sac_server_params params = sac_server_params_default();
    struct sac_answer        a;
    sac_model               *model = doubling(cpu, "? 4");
    sac_tensor              *x = items(cpu, 1, 1);
    sac_request             *one = NULL, *two = NULL;
    params.batch_max = 8;
    params.batch_min = 2;
    params.timeout_us = 1000000000;
    sac_server *server = served(model, &params);
    assert_sac_ok(sac_server_submit(server, &x, NULL, &one));
    assert_sac_error(sac_request_wait(one, 50000000, &a), SAC_AGAIN);
    assert_sac_ok(sac_server_submit(server, &x, NULL, &two));
    assert_sac_ok(sac_request_wait(one, 60000000000, &a));
    assert_int_equal(a.batch, 2);
    assert_true(a.queue_ns >= 50000000);
    assert_sac_ok(sac_request_wait(two, 60000000000, &a));
    sac_request_unref(&one);
    sac_request_unref(&two);
    /* its deadline is sooner than the time-out */
    struct sac_request_params soon = sac_request_params_default();
    soon.deadline_us = 20000;
    assert_sac_ok(sac_server_submit(server, &x, &soon, &one));
    assert_sac_ok(sac_request_wait(one, 60000000000, &a));
    assert_int_equal(a.batch, 1);
    sac_request_unref(&one);
    sac_server_destroy(&server);
    sac_tensor_unref(&x);
    sac_model_unref(&model);
}

static void a_full_queue_says_so_or_waits(void **state)
{
    (void)state;
    for (int block = 0; block < 2; block++) {
        struct sac_server_params params = sac_server_params_default();
        struct sac_server_stats  stats;
        sac_model               *model = doubling(cpu, "? 4");
        sac_tensor              *x = items(cpu, 1, 1);
        params.batch_max = 2;
        params.queue_max = 2;
        params.block = block;
        sac_server *server = served(model, &params);
        hold_server(server, x);
        assert_sac_ok(sac_server_submit(server, &x, NULL, NULL));
        assert_sac_ok(sac_server_submit(server, &x, NULL, NULL));
        if (block)
            let_go();
        assert_int_equal(sac_server_submit(server, &x, NULL, NULL), block ? SAC_OK : SAC_AGAIN);
        if (!block)
            let_go();
        sac_server_end(server);
        assert_why(sac_server_submit(server, &x, NULL, NULL), SAC_ERR_CANCELLED, "takes no more");
        sac_server_get_stats(server, &stats);
        assert_int_equal(stats.full, !block);
        assert_int_equal(stats.answered, 3 + block);
        assert_int_equal(stats.submitted, 3 + block);
        assert_int_equal(stats.failed, 0);
        sac_server_destroy(&server);
        sac_tensor_unref(&x);
        sac_model_unref(&model);
    }
}

static void late_ones_run_or_are_refused(void **state)
{
    (void)state;
    for (int refuse = 0; refuse < 2; refuse++) {
        struct sac_server_params  params = sac_server_params_default();
        struct sac_request_params soon = sac_request_params_default();
        struct sac_server_stats   stats;
        struct sac_answer         a;
        sac_model                *model = doubling(cpu, "? 4");
        sac_tensor               *x = items(cpu, 1, 1);
        sac_request              *request = NULL, *other = NULL;
        params.batch_max = 4;
        params.late = refuse ? SAC_LATE_REFUSE : SAC_LATE_RUN;
        sac_server *server = served(model, &params);
        hold_server(server, x);
        soon.deadline_us = 2000;
        soon.id = 7;
        assert_sac_ok(sac_server_submit(server, &x, &soon, &request));
        assert_sac_ok(sac_server_submit(server, &x, NULL, &other));
        pause_ms(10);
        let_go();
        sac_result res = sac_request_wait(request, -1, &a);
        if (refuse)
            assert_why(res, SAC_ERR_LIMIT, "request 7: its deadline of 2.0 ms was over");
        else
            check_doubled(&a, 1, 1);
        assert_int_equal(a.late, 1);
        assert_int_equal(a.batch, refuse ? 0 : 2);
        assert_sac_ok(sac_request_wait(other, INT64_MAX, &a));
        assert_int_equal(a.late, 0);
        sac_server_get_stats(server, &stats);
        assert_int_equal(stats.late, 1);
        assert_int_equal(stats.refused, refuse);
        sac_request_unref(&request);
        sac_request_unref(&other);
        sac_server_destroy(&server);
        sac_tensor_unref(&x);
        sac_model_unref(&model);
    }
}

/* ---- nothing is lost ---- */

static void *destroy(void *arg)
{
    sac_server_destroy(arg);
    return NULL;
}

static void destroy_answers_all(void **state)
{
    (void)state;
    struct sac_server_params params = sac_server_params_default();
    struct sac_answer        a;
    sac_model               *model = doubling(cpu, "? 4");
    sac_tensor              *x = items(cpu, 1, 1);
    sac_request             *requests[10];
    pthread_t                thread;
    params.batch_max = 2;
    sac_server *server = served(model, &params);
    hold_server(server, x);
    for (int i = 0; i < 10; i++)
        assert_sac_ok(sac_server_submit(server, &x, NULL, &requests[i]));
    assert_int_equal(pthread_create(&thread, NULL, destroy, &server), 0);
    for (int i = 0; i < 10; i++) { /* those that wait do so no longer, whatever is under way */
        assert_why(sac_request_wait(requests[i], -1, &a), SAC_ERR_CANCELLED, "was destroyed");
        assert_int_equal(a.batch, 0);
        assert_null(a.outputs);
        sac_request_unref(&requests[i]);
    }
    let_go();
    pthread_join(thread, NULL);
    assert_null(server);
    sac_tensor_unref(&x);
    sac_model_unref(&model);
}

static void end_by_callback(void *user, const struct sac_answer *answer)
{
    sac_server *server = *(sac_server **)user, *same = server;
    assert_int_equal(answer->status, SAC_OK);
    sac_server_end(server); /* they would wait for this very thread */
    sac_server_destroy(&same);
    assert_ptr_equal(same, server);
}

/* What was submitted before is answered, nothing is taken after. */
static void a_callback_may_end_it(void **state)
{
    (void)state;
    struct sac_server_params  params = sac_server_params_default();
    struct sac_request_params last = sac_request_params_default();
    struct sac_answer         a;
    sac_model                *model = doubling(cpu, "? 4");
    sac_tensor               *x = items(cpu, 1, 1);
    sac_request              *ends, *waits, *none = NULL;
    params.batch_max = 1;
    sac_server *server = served(model, &params);
    hold_server(server, x);
    last.done = end_by_callback;
    last.user = &server;
    assert_sac_ok(sac_server_submit(server, &x, &last, &ends));
    assert_sac_ok(sac_server_submit(server, &x, NULL, &waits));
    let_go();
    assert_sac_ok(sac_request_wait(waits, 60000000000, &a));
    check_doubled(&a, 1, 1);
    assert_sac_error(sac_server_submit(server, &x, NULL, &none), SAC_ERR_CANCELLED);
    sac_request_unref(&ends);
    sac_request_unref(&waits);
    sac_server_end(server);
    sac_server_destroy(&server);
    assert_null(server);
    sac_tensor_unref(&x);
    sac_model_unref(&model);
}

/* The device breaks midway: every request has an answer, and those of later are right again. */
static void a_device_breaks_midway(void **state)
{
    (void)state;
    for (int host = 0; host < 2; host++) {
        struct sac_server_params params = sac_server_params_default();
        struct sac_server_stats  stats;
        sac_model               *model = doubling(far, "? 4");
        params.batch_max = 6;
        params.host_outputs = host;
        sac_server *server = served(model, &params);
        const int   faults = ask_all(server, far, true);
        assert_true(faults >= TURNS / 3);
        sac_server_get_stats(server, &stats);
        assert_int_equal(stats.submitted, CROWD * TURNS);
        assert_int_equal(stats.answered, CROWD * TURNS);
        assert_int_equal(stats.failed, faults);
        assert_int_equal(ask_all(server, far, false), 0);
        sac_server_destroy(&server);
        sac_model_unref(&model);
    }
}

static void a_broken_device_says_so(void **state)
{
    (void)state;
    struct sac_server_params params = sac_server_params_default();
    struct sac_answer        a;
    sac_model               *model = doubling(far, "? 4");
    sac_tensor              *x = items(cpu, 1, 1);
    sac_request             *requests[5];
    params.batch_max = 4;
    sac_server *server = served(model, &params);
    broken = true;
    for (int i = 0; i < 5; i++)
        assert_sac_ok(sac_server_submit(server, &x, NULL, &requests[i]));
    for (int i = 0; i < 5; i++) {
        assert_why(sac_request_wait(requests[i], 60000000000, &a), SAC_ERR_DEVICE, "it broke");
        assert_int_equal(a.status, SAC_ERR_DEVICE);
        assert_string_equal(a.why, "far: it broke");
        assert_null(a.outputs);
        sac_request_unref(&requests[i]);
    }
    broken = false;
    assert_sac_ok(sac_server_submit(server, &x, NULL, &requests[0]));
    assert_sac_ok(sac_request_wait(requests[0], 60000000000, &a));
    check_doubled(&a, 1, 1);
    sac_request_unref(&requests[0]);
    sac_server_destroy(&server);
    sac_tensor_unref(&x);
    sac_model_unref(&model);
}

static void an_unusable_request_fails_alone(void **state)
{
    (void)state;
    static const int64_t         rows[] = {1, 77, 0, 2}, left[] = {20, 0, 10, 30};
    const struct sac_tensor_desc desc = {.dtype = SAC_I64, .rank = 2, .shape = {1, 1}};
    struct sac_server_params     params = sac_server_params_default();
    sac_model                   *model = table(cpu);
    sac_tensor                  *x[4] = {NULL};
    sac_request                 *requests[4];
    params.batch_max = 4;
    sac_server *server = served(model, &params);
    for (int i = 0; i < 4; i++) {
        assert_sac_ok(sac_tensor_create(cpu, &desc, "test", &x[i]));
        assert_sac_ok(sac_tensor_upload(x[i], &rows[i]));
    }
    hold_server(server, x[0]);
    for (int i = 0; i < 4; i++)
        assert_sac_ok(sac_server_submit(server, &x[i], NULL, &requests[i]));
    let_go();
    for (int i = 0; i < 4; i++) {
        struct sac_answer a;
        sac_result        res = sac_request_wait(requests[i], -1, &a);
        assert_int_equal(a.batch, 4);
        if (i == 1)
            assert_why(res, SAC_ERR_FORMAT, "77");
        else
            assert_true(*(float *)sac_tensor_data(a.outputs[0]) == (float)left[i]);
        sac_request_unref(&requests[i]);
        sac_tensor_unref(&x[i]);
    }
    struct sac_server_stats stats; /* the held one, and three alone: the batch of four never ran */
    sac_server_get_stats(server, &stats);
    assert_int_equal(stats.batches, 4);
    assert_int_equal(stats.batch[1], 4);
    assert_int_equal(stats.batch[4], 0);
    assert_int_equal(stats.items, 4);
    sac_server_destroy(&server);
    sac_model_unref(&model);
}

static void memory_that_runs_out_is_a_fault_of_the_request(void **state)
{
    (void)state;
    struct sac_server_params params = sac_server_params_default();
    struct sac_answer        a;
    sac_model               *model = doubling(far, "? 4");
    sac_tensor              *x = items(cpu, 1, 1);
    sac_request             *request = NULL;
    params.batch_max = 4;
    sac_server *server = served(model, &params);
    sac_device_pool_trim(far);
    far_counts.full = true;
    assert_sac_ok(sac_server_submit(server, &x, NULL, &request));
    assert_int_equal(sac_request_wait(request, 60000000000, &a), SAC_ERR_MEMORY);
    sac_request_unref(&request);
    far_counts.full = false;
    assert_sac_ok(sac_server_submit(server, &x, NULL, &request));
    assert_sac_ok(sac_request_wait(request, 60000000000, &a));
    check_doubled(&a, 1, 1);
    sac_request_unref(&request);
    sac_server_destroy(&server);
    sac_tensor_unref(&x);
    sac_model_unref(&model);
}

static void every_allocation_of_its_creation_may_fail(void **state)
{
    (void)state;
    struct sac_server_params params = sac_server_params_default();
    sac_model               *model = doubling(cpu, "? 4");
    int                      faults = 0, passed = 0;
    params.batch_max = 1; /* a larger one would become smaller */
    sac_server *server = served(model, &params);
    sac_server_destroy(&server);
    for (long n = 1; passed < 100; n++) {
        sac_alloc_fail_at(n);
        sac_result res = sac_server_create(model, &params, &server);
        sac_alloc_fail_at(0);
        if (res != SAC_OK && res != SAC_ERR_MEMORY)
            fail_msg("allocation %ld failed: %s", n, sac_result_name(res));
        passed = res == SAC_OK ? passed + 1 : 0;
        faults += res != SAC_OK;
        sac_server_destroy(&server);
    }
    if (faults <= 15)
        fail_msg("%d faults", faults);
    sac_model_unref(&model);
}

/* ---- models ---- */

static void models_share_a_device(void **state)
{
    (void)state;
    struct sac_server_params params = sac_server_params_default();
    sac_model               *one = doubling(far, "? 4"), *other = doubling(far, "? 4");
    params.batch_max = 3;
    sac_server *servers[3] = {served(one, &params), served(other, &params), served(one, &params)};
    for (int i = 0; i < 3; i++)
        assert_int_equal(ask_all(servers[i], far, false), 0);
    for (int i = 0; i < 3; i++)
        sac_server_destroy(&servers[i]);
    sac_model_unref(&one);
    sac_model_unref(&other);
}

static uint64_t weights_sent(void)
{
    struct sac_ledger ledger;
    sac_device_ledger(far, &ledger);
    return ledger.reason[SAC_COPY_WEIGHTS].bytes;
}

/* Several run at the same time, over one copy of the weights. */
static void streams_share_the_weights(void **state)
{
    (void)state;
    static const float eye[16] = {2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2};
    uint64_t           sent[2];
    for (int many = 0; many < 2; many++) {
        struct sac_server_params params = sac_server_params_default();
        struct proto             graph = {0};
        proto_initializer(&graph, "w", FLOAT, "4 4", eye, sizeof eye);
        proto_node(&graph, "MatMul", "x w", "y", NULL);
        proto_input(&graph, "x", FLOAT, "? 4");
        proto_output(&graph, "y", FLOAT, "? 4");
        sac_model     *model = made(far, &graph, "product");
        const uint64_t before = weights_sent();
        params.batch_max = 4;
        params.streams = many ? 3 : 1;
        sac_server *server = served(model, &params);
        sac_model_unref(&model); /* the server's now */
        assert_int_equal(ask_all(server, far, false), 0);
        check_sums(server, CROWD * TURNS);
        sac_server_destroy(&server);
        sent[many] = weights_sent() - before;
    }
    assert_true(sent[0] > 0);
    assert_int_equal(sent[1], sent[0]);
}

static void items_that_cannot_be_stacked_run_by_themselves(void **state)
{
    (void)state;
    struct proto             graph = {0}, attrs = {0};
    struct sac_server_params params = sac_server_params_default();
    struct sac_server_stats  stats;
    struct sac_answer        a;
    sac_request             *requests[3];
    float                    sum;
    /* the sum over all: stacked items would be added up */
    proto_attr_int(&attrs, "keepdims", 0);
    proto_node(&graph, "ReduceSum", "x", "y", &attrs);
    proto_input(&graph, "x", FLOAT, "1 4");
    proto_output(&graph, "y", FLOAT, "");
    sac_model  *model = made(cpu, &graph, "sum");
    sac_tensor *x = items(cpu, 1, 1), *two = items(cpu, 2, 1);
    params.batch_max = 4;
    sac_server *server = served(model, &params);
    for (int i = 0; i < 3; i++)
        assert_sac_ok(sac_server_submit(server, &x, NULL, &requests[i]));
    for (int i = 0; i < 3; i++) {
        assert_sac_ok(sac_request_wait(requests[i], -1, &a));
        assert_int_equal(a.batch, 1);
        assert_sac_ok(sac_tensor_download(a.outputs[0], &sum));
        assert_true(sum == 1 + 2 + 3 + 4);
        sac_request_unref(&requests[i]);
    }
    assert_why(sac_server_submit(server, &two, NULL, NULL), SAC_ERR_ARG, "a stack of up to 1");
    sac_server_get_stats(server, &stats);
    assert_int_equal(stats.batch_max, 1);
    sac_server_destroy(&server);
    sac_tensor_unref(&x);
    sac_tensor_unref(&two);
    sac_model_unref(&model);
}

static void frames_become_items_by_the_contract(void **state)
{
    (void)state;
    const sac_frame          desc = {.format = SAC_PIXEL_GRAY8, .width = 48, .height = 40};
    struct sac_server_params params = sac_server_params_default();
    struct sac_answer        a;
    sac_frame               *frame = NULL;
    sac_model               *model = NULL, *numbers = doubling(cpu, "? 4");
    sac_request             *requests[3];
    sac_tensor              *x = NULL, *y[SAC_RANK_MAX] = {NULL};
    assert_sac_ok(sac_frame_create(cpu, &desc, &frame));
    for (int i = 0; i < frame->height; i++)
        for (int k = 0; k < frame->width; k++)
            frame->plane[0][(size_t)i * frame->pitch_bytes[0] + (size_t)k] =
                (uint8_t)(3 * i + 2 * k);
    assert_sac_ok(sac_model_load(cpu, TEST_HEADS "/yolov8.onnx", NULL, &model));
    params.batch_max = 3;
    params.batch_min = 3;
    params.timeout_us = 1000000000;
    sac_server *server = served(model, &params);
    for (int i = 0; i < 3; i++)
        assert_sac_ok(sac_server_submit_frame(server, frame, NULL, &requests[i]));
    struct sac_model_contract contract = {.pre = sac_preprocess_default()};
    contract.pre.width = (int)sac_server_input(server, 0)->shape[3];
    contract.pre.height = (int)sac_server_input(server, 0)->shape[2];
    assert_sac_ok(sac_model_contract_read(model, NULL, &contract));
    assert_sac_ok(sac_tensor_create(cpu, sac_server_input(server, 0), "test", &x));
    const struct sac_preprocess_job job = {.frame = frame};
    assert_sac_ok(sac_preprocess_run(cpu, &contract.pre, &job, 1, x));
    assert_sac_ok(sac_model_run(model, &x, y));
    const size_t bytes = (size_t)sac_tensor_desc_bytes(sac_tensor_describe(y[0]));
    for (int i = 0; i < 3; i++) {
        assert_sac_ok(sac_request_wait(requests[i], -1, &a));
        assert_int_equal(a.batch, 3);
        assert_int_equal(sac_tensor_desc_bytes(sac_tensor_describe(a.outputs[0])), bytes);
        assert_memory_equal(sac_tensor_data(a.outputs[0]), sac_tensor_data(y[0]), bytes);
        sac_request_unref(&requests[i]);
    }
    sac_server_destroy(&server);
    server = served(numbers, NULL);
    assert_why(sac_server_submit_frame(server, frame, NULL, NULL), SAC_ERR_UNSUPPORTED,
               "takes no frames");
    sac_server_destroy(&server);
    sac_model_contract_finish(&contract);
    sac_frame_unref(&frame);
    sac_tensor_unref(&x);
    for (int i = 0; i < SAC_RANK_MAX; i++)
        sac_tensor_unref(&y[i]);
    sac_model_unref(&model);
    sac_model_unref(&numbers);
}

/* ---- the size for a goal ---- */

static void the_size_is_chosen_by_its_goal(void **state)
{
    (void)state;
    /* per second: 1000, 1667, 2222, 2286, 2254 */
    static const struct sac_tuned runs[] = {{1, 1}, {2, 1.2}, {4, 1.8}, {8, 3.5}, {16, 7.1}};
    assert_int_equal(sac_tuned_choose(runs, 5, SAC_GOAL_THROUGHPUT, 0), 4);
    assert_int_equal(sac_tuned_choose(runs, 5, SAC_GOAL_LATENCY, 3.5), 8);
    assert_int_equal(sac_tuned_choose(runs, 5, SAC_GOAL_LATENCY, 1.7), 2);
    assert_int_equal(sac_tuned_choose(runs, 5, SAC_GOAL_LATENCY, 0.1), 1);
    assert_int_equal(sac_tuned_choose(runs, 1, SAC_GOAL_THROUGHPUT, 0), 1);
}

static void a_goal_is_measured(void **state)
{
    (void)state;
    for (int goal = SAC_GOAL_LATENCY; goal <= SAC_GOAL_THROUGHPUT; goal++) {
        struct sac_server_params params = sac_server_params_default();
        struct sac_server_stats  stats;
        sac_model               *model = doubling(cpu, "? 4");
        params.batch_max = 4;
        params.goal = (enum sac_server_goal)goal;
        params.goal_ms = 1e5; /* any run is shorter */
        sac_server *server = served(model, &params);
        sac_server_get_stats(server, &stats);
        if (goal == SAC_GOAL_LATENCY)
            assert_int_equal(stats.batch_max, 4);
        assert_in_range(stats.batch_max, 1, 4);
        sac_server_destroy(&server);
        sac_model_unref(&model);
    }
}

/* ---- arguments ---- */

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    struct sac_server_params     params = sac_server_params_default();
    struct sac_request_params    request = sac_request_params_default();
    sac_model                   *model = doubling(cpu, "? 4"), *open = doubling(cpu, "? ?");
    sac_model                   *fixed = doubling(cpu, "3 4");
    sac_server                  *server = NULL;
    sac_tensor                  *x = items(cpu, 1, 1), *other = items(far, 1, 1), *none = NULL;
    const struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 2, .shape = {1, 5}};
    sac_tensor                  *wide = NULL;
    assert_sac_ok(sac_tensor_create(cpu, &desc, "test", &wide));
    assert_int_equal(sac_server_create(NULL, NULL, &server), SAC_ERR_ARG);
    assert_int_equal(sac_server_create(model, NULL, NULL), SAC_ERR_ARG);
    params.batch_max = 1000;
    assert_why(sac_server_create(model, &params, &server), SAC_ERR_ARG, "batch_max");
    params = sac_server_params_default();
    params.goal = SAC_GOAL_LATENCY;
    assert_why(sac_server_create(model, &params, &server), SAC_ERR_ARG, "goal_ms");
    params = sac_server_params_default();
    params.padding = SAC_BATCH_PADDING_NONE;
    params.batch_max = 100;
    assert_why(sac_server_create(model, &params, &server), SAC_ERR_ARG, "up to 64");
    params = sac_server_params_default();
    params.reserved[0] = 1;
    assert_why(sac_server_create(model, &params, &server), SAC_ERR_ARG, "later version");
    assert_why(sac_server_create(open, NULL, &server), SAC_ERR_ARG, "leaves its size open");
    assert_why(sac_server_create(fixed, NULL, &server), SAC_ERR_UNSUPPORTED, "no batch of 1");
    assert_null(server);
    server = served(model, NULL);
    assert_int_equal(sac_server_submit(NULL, &x, NULL, NULL), SAC_ERR_ARG);
    assert_int_equal(sac_server_submit(server, NULL, NULL, NULL), SAC_ERR_ARG);
    assert_why(sac_server_submit(server, &none, NULL, NULL), SAC_ERR_ARG, "is missing");
    assert_why(sac_server_submit(server, &other, NULL, NULL), SAC_ERR_ARG, "the host's memory");
    assert_why(sac_server_submit(server, &wide, NULL, NULL), SAC_ERR_ARG, "[1,5]");
    request.priority = 5000;
    assert_why(sac_server_submit(server, &x, &request, NULL), SAC_ERR_ARG, "priority");
    request.priority = 0;
    request.deadline_us = -1;
    assert_why(sac_server_submit(server, &x, &request, NULL), SAC_ERR_ARG, "deadline_us");
    assert_int_equal(sac_server_submit_frame(server, NULL, NULL, NULL), SAC_ERR_ARG);
    assert_int_equal(sac_request_wait(NULL, 0, NULL), SAC_ERR_ARG);
    assert_null(sac_server_input(server, 1));
    assert_null(sac_server_input(NULL, 0));
    assert_null(sac_request_ref(NULL));
    sac_request_unref(NULL);
    sac_server_end(NULL);
    sac_server_get_stats(NULL, NULL);
    sac_server_destroy(&server);
    sac_server_destroy(&server);
    sac_server_destroy(NULL);
    sac_tensor_unref(&x);
    sac_tensor_unref(&other);
    sac_tensor_unref(&wide);
    sac_model_unref(&model);
    sac_model_unref(&open);
    sac_model_unref(&fixed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_gets_its_own),
        cmocka_unit_test(a_gpu_gives_each_its_own),
        cmocka_unit_test(outputs_lie_where_they_were_wanted),
        cmocka_unit_test(higher_priorities_go_first),
        cmocka_unit_test(what_waits_becomes_a_batch),
        cmocka_unit_test(a_batch_waits_for_its_least_or_its_time),
        cmocka_unit_test(a_full_queue_says_so_or_waits),
        cmocka_unit_test(late_ones_run_or_are_refused),
        cmocka_unit_test(destroy_answers_all),
        cmocka_unit_test(a_callback_may_end_it),
        cmocka_unit_test(a_device_breaks_midway),
        cmocka_unit_test(a_broken_device_says_so),
        cmocka_unit_test(an_unusable_request_fails_alone),
        cmocka_unit_test(memory_that_runs_out_is_a_fault_of_the_request),
        cmocka_unit_test(every_allocation_of_its_creation_may_fail),
        cmocka_unit_test(models_share_a_device),
        cmocka_unit_test(streams_share_the_weights),
        cmocka_unit_test(items_that_cannot_be_stacked_run_by_themselves),
        cmocka_unit_test(frames_become_items_by_the_contract),
        cmocka_unit_test(the_size_is_chosen_by_its_goal),
        cmocka_unit_test(a_goal_is_measured),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests_name("serve/server", tests, open_devices, close_devices);
}
