/* SPDX-License-Identifier: Apache-2.0 */
#include "serve_load.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { CLIENTS_MAX = 256 };
static const double WARM = 0.25; /* of the seconds, at least this much is not counted */

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
    while (!atomic_load(c->stop) && c->result.fault == SAC_OK)
        c->result.fault = sac_server_submit(c->load->server, c->load->in, &params, NULL);
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
    sac_server_end(load->server);
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
    if (answer->status == SAC_OK && s->count < s->capacity)
        s->ms[s->count++] = (double)answer->latency_ns / 1e6;
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

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A Poisson process stays within a few of its deviations. */
static bool make_series(const struct serve_load *load, struct serve_series *series)
{
    const double expected = load->per_s * load->seconds;
    for (int i = 0; i < load->priorities; i++) {
        series[i].capacity = (size_t)(expected + 10 * sqrt(expected) + 100);
        series[i].ms = malloc(series[i].capacity * sizeof *series[i].ms);
        if (!series[i].ms)
            return false;
    }
    return true;
}

bool serve_run(const struct serve_load *load, struct serve_series *series, struct serve_result *out)
{
    struct client clients[CLIENTS_MAX];
    pthread_t     threads[CLIENTS_MAX];
    int           started = 0;
    *out = (struct serve_result){.fault = SAC_OK};
    if (!make_series(load, series))
        return false;
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
    for (int i = 0; i < load->priorities; i++)
        qsort(series[i].ms, series[i].count, sizeof *series[i].ms, by_value);
    return started == load->clients;
}

double serve_percentile(const struct serve_series *s, double share)
{
    if (s->count == 0)
        return (double)NAN;
    const size_t at = (size_t)ceil(share * (double)s->count);
    return s->ms[at > 0 ? at - 1 : 0];
}

void serve_series_finish(struct serve_series *s)
{
    free(s->ms);
    *s = (struct serve_series){0};
}
