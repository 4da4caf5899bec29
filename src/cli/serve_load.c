/* SPDX-License-Identifier: Apache-2.0 */
#include "serve_load.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { CLIENTS_MAX = 256 };
static const double WARM = 0.25;     /* of the seconds, at least this much is not counted */
static const double FULL_S = 0.0005; /* the pause of a client that finds the queue full */
static const double STEP = 1.01, LEAST_MS = 1e-3; /* of a series */

struct client {
    const struct serve_load *load;
    struct serve_series     *series; /* NULL: answers are not looked at */
    int                      number;
    uint32_t                 seed;
    double                   begun; /* of all clients */
    atomic_bool             *stop;
    struct serve_result      result;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void sleep_until(double at)
{
    const struct timespec t = {(time_t)at, (long)((at - floor(at)) * 1e9)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* ---- as much as it takes ---- */

static void *saturate(void *arg)
{
    struct client            *c = arg;
    struct sac_request_params params = sac_request_params_default();
    while (!atomic_load(c->stop) && c->result.fault == SAC_OK) {
        const sac_result res = sac_server_submit(c->load->server, c->load->in, &params, NULL);
        if (res == SAC_AGAIN)
            sleep_until(now() + FULL_S);
        else
            c->result.fault = res;
    }
    return NULL;
}

static int64_t answered(sac_server *server, int64_t *failed)
{
    struct sac_server_stats stats;
    sac_server_get_stats(server, &stats);
    *failed = stats.failed;
    return stats.answered;
}

sac_result serve_saturate(const struct serve_load *load, double *items_per_s)
{
    struct client clients[CLIENTS_MAX];
    pthread_t     threads[CLIENTS_MAX];
    atomic_bool   stop = false;
    sac_result    res = SAC_OK;
    int           started = 0;
    int64_t       failed;
    while (started < load->clients) {
        clients[started] = (struct client){.load = load, .stop = &stop};
        if (pthread_create(&threads[started], NULL, saturate, &clients[started]) != 0)
            break;
        started++;
    }
    sleep_until(now() + WARM * load->seconds);
    const double  begun = now();
    const int64_t before = answered(load->server, &failed);
    sleep_until(begun + load->seconds);
    const int64_t done = answered(load->server, &failed) - before;
    *items_per_s = (double)done / (now() - begun);
    atomic_store(&stop, true);
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        res = res == SAC_OK ? clients[i].result.fault : res;
    }
    answered(load->server, &failed);
    return res != SAC_OK ? res : failed > 0 || started == 0 ? SAC_ERR_DEVICE : SAC_OK;
}

/* ---- at a rate ---- */

/* On the server's thread, which alone writes the series until it has ended. */
static void note(void *user, const struct sac_answer *answer)
{
    struct serve_series *s = (struct serve_series *)user + answer->priority;
    s->answered++;
    s->failed += answer->status != SAC_OK;
    s->missed += answer->late;
    if (answer->status == SAC_OK)
        serve_series_add(s, (double)answer->latency_ns / 1e6);
}

/* Seconds until the next arrival. */
static double gap(struct client *c)
{
    c->seed = c->seed * 1664525u + 1013904223u;
    const double share = ((double)(c->seed >> 8) + 0.5) / 16777216.0;
    return -log(share) * c->load->clients / c->load->per_s;
}

/* What was due while a submit took long is submitted at once: the load does not give way. */
static void *submit_at_rate(void *arg)
{
    struct client           *c = arg;
    const struct serve_load *load = c->load;
    double                   due = c->begun + gap(c);
    for (int i = 0; due < c->begun + load->seconds && c->result.fault == SAC_OK; i++) {
        struct sac_request_params params = sac_request_params_default();
        params.id = i;
        params.priority = (i + c->number) % load->priorities;
        params.deadline_us = load->deadline_us;
        params.done = note;
        params.user = c->series;
        if (due > now())
            sleep_until(due);
        const sac_result res = sac_server_submit(load->server, load->in, &params, NULL);
        c->result.offered++;
        c->result.submitted += res == SAC_OK;
        c->result.full += res == SAC_AGAIN;
        if (res != SAC_OK && res != SAC_AGAIN)
            c->result.fault = res;
        due += gap(c);
    }
    return NULL;
}

static void add(struct serve_result *sum, const struct serve_result *one)
{
    sum->offered += one->offered;
    sum->submitted += one->submitted;
    sum->full += one->full;
    sum->fault = sum->fault == SAC_OK ? one->fault : sum->fault;
}

bool serve_run(const struct serve_load *load, struct serve_series *series, struct serve_result *out)
{
    struct client clients[CLIENTS_MAX];
    pthread_t     threads[CLIENTS_MAX];
    int           started = 0;
    *out = (struct serve_result){.fault = SAC_OK};
    const double begun = now();
    while (started < load->clients) {
        clients[started] = (struct client){.load = load,
                                           .series = series,
                                           .number = started,
                                           .seed = 1 + (uint32_t)started * 2654435761u,
                                           .begun = begun};
        if (pthread_create(&threads[started], NULL, submit_at_rate, &clients[started]) != 0)
            break;
        started++;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        add(out, &clients[i].result);
    }
    sac_server_end(load->server);
    out->seconds = now() - begun;
    return started == load->clients;
}

/* ---- latencies ---- */

void serve_series_add(struct serve_series *s, double ms)
{
    const double step = ms > LEAST_MS ? log(ms / LEAST_MS) / log(STEP) : 0;
    s->steps[step < SERVE_STEPS - 1 ? (int)step : SERVE_STEPS - 1]++;
    s->most_ms = ms > s->most_ms ? ms : s->most_ms;
    s->count++;
}

double serve_percentile(const struct serve_series *s, double share)
{
    const int64_t wanted = (int64_t)ceil(share * (double)s->count);
    int64_t       passed = 0;
    if (s->count == 0)
        return (double)NAN;
    for (int i = 0; i < SERVE_STEPS - 1; i++) {
        passed += s->steps[i];
        if (passed >= wanted && passed < s->count)
            return fmin(LEAST_MS * pow(STEP, i + 0.5), s->most_ms);
    }
    return s->most_ms;
}
