/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/run_watch.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "observe/process.h"
#include "observe/published.h"
#include "observe/tail.h"

/* ---- one sample ---- */

struct sac_run_sampler {
    struct sac_threads        threads;
    struct sac_pipeline_stats stats[2]; /* this sample's and the one's before, in turns */
    int                       turn, taken, streams;
    int64_t                   looked_ns;
    struct sac_tail           latency, composite_latency;
};

struct sac_run_sampler *sac_run_sampler_create(int interval_ms)
{
    struct sac_run_sampler *s = sac_new(struct sac_run_sampler);
    if (!s)
        return NULL;
    sac_tail_init(&s->latency, interval_ms);
    sac_tail_init(&s->composite_latency, interval_ms);
    return s;
}

void sac_run_sampler_destroy(struct sac_run_sampler **sampler)
{
    struct sac_run_sampler *s = *sampler;
    if (!s)
        return;
    sac_tail_finish(&s->latency);
    sac_tail_finish(&s->composite_latency);
    sac_free(s);
    *sampler = NULL;
}

static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int  n = -3; /* ., .., and the folder itself */
    if (!folder)
        return 0;
    while (readdir(folder))
        n++;
    closedir(folder);
    return SAC_MAX(n, 0);
}

/* The mean of what a timer counted since the sample before. */
static double mean_since(const struct sac_timer_summary *now,
                         const struct sac_timer_summary *before)
{
    const int64_t n = now->count - before->count;
    return n > 0 ? (now->total_ms - before->total_ms) / (double)n : NAN;
}

static const struct sac_timer_summary *timer_of(const struct sac_timer_summary *list, int n,
                                                const char *name)
{
    static const struct sac_timer_summary none;
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return &none;
}

/* A stage's change that takes less than this part of a thread's time does not matter, nor does one
 * of the latency by less than this part of the time from a stream's frame to its next. A frame in a
 * hundred that is late by less than that time keeps none of its stream waiting. */
static const double STAGE_MATTERS = 0.1, LATENCY_MATTERS = 0.25, TAIL_MATTERS = 1;

static double matters_of(const struct sac_timer_summary *now,
                         const struct sac_timer_summary *before, double past_s)
{
    const int64_t n = now->count - before->count;
    return n > 0 ? STAGE_MATTERS * past_s * 1e3 / (double)n : 0;
}

/* frame_ms: between a stream's frames; 0: unknown. */
static void put_latencies(sac_monitor *m, const struct sac_pipeline_stats *now,
                          const struct sac_pipeline_stats *before, double frame_ms)
{
    const double matters = LATENCY_MATTERS * frame_ms;
    sac_monitor_put_time(m, SAC_ALARM_WORK, mean_since(&now->latency, &before->latency), matters,
                         "latency");
    if (now->composite_latency.count)
        sac_monitor_put_time(m, SAC_ALARM_WORK,
                             mean_since(&now->composite_latency, &before->composite_latency),
                             matters, "composite latency");
}

static void put_tail(sac_monitor *m, struct sac_tail *tail, const struct sac_run_feed *feed, int id,
                     double frame_ms, const char *name)
{
    int          span;
    const double p99_ms = sac_tail_look(tail, feed->timers, id, &span);
    sac_monitor_put_tail(m, SAC_ALARM_WORK, p99_ms, TAIL_MATTERS * frame_ms, span, name);
}

static void put_tails(struct sac_run_sampler *s, sac_monitor *m, const struct sac_run_feed *feed,
                      const struct sac_pipeline_stats *now, double frame_ms)
{
    if (!feed->timers)
        return;
    put_tail(m, &s->latency, feed, feed->latency, frame_ms, "latency p99");
    if (now->composite_latency.count)
        put_tail(m, &s->composite_latency, feed, feed->composite_latency, frame_ms,
                 "composite latency p99");
}

static void put_stages(sac_monitor *m, const struct sac_pipeline_stats *now,
                       const struct sac_pipeline_stats *before, double past_s)
{
    const int n = before->stage_count;
    for (int i = 0; i < now->stage_count; i++) {
        const struct sac_timer_summary *host = &now->stage[i], *gpu = &now->stage_gpu[i];
        const struct sac_timer_summary *was = timer_of(before->stage, n, host->name);
        const struct sac_timer_summary *gpu_was = timer_of(before->stage_gpu, n, gpu->name);
        sac_monitor_put_time(m, SAC_ALARM_WORK, mean_since(host, was),
                             matters_of(host, was, past_s), "stage %s", host->name);
        if (gpu->count)
            sac_monitor_put_time(m, SAC_ALARM_TIME, mean_since(gpu, gpu_was),
                                 matters_of(gpu, gpu_was, past_s), "gpu stage %s", gpu->name);
        if (now->stage_bytes_peak[i])
            sac_monitor_put(m, SAC_ALARM_NOTHING, "bytes", (double)now->stage_bytes[i], "memory %s",
                            host->name);
    }
    sac_monitor_put(m, SAC_ALARM_NOTHING, "bytes", (double)now->other_bytes, "memory others");
}

/* due: frames a second that should be done; 0: unknown. */
static void put_flow(sac_monitor *m, const struct sac_pipeline_stats *now,
                     const struct sac_pipeline_stats *before, double past_s, double due)
{
    const double frames = (double)(now->frames - before->frames);
    const double batches = (double)(now->batch.count - before->batch.count);
    sac_monitor_put(m, SAC_ALARM_RATE, "frames/s", frames / past_s, "frames");
    if (due > 0 && m->setup.params.live)
        sac_monitor_put(m, SAC_ALARM_BEHIND, "share", frames / past_s / due, "frames of those due");
    if (now->source.frames)
        sac_monitor_put(m, SAC_ALARM_NOTHING, "frames/s",
                        (double)(now->source.frames - before->source.frames) / past_s, "input");
    sac_monitor_put(m, SAC_ALARM_NOTHING, "", now->objects, "objects");
    if (now->batch.max > 0)
        sac_monitor_put(m, SAC_ALARM_NOTHING, "frames",
                        batches > 0 ? (double)(now->batch.frames - before->batch.frames) / batches
                                    : NAN,
                        "batch");
    for (int i = 0; i < now->queue_count; i++)
        if (now->queue[i].capacity)
            sac_monitor_put(m, SAC_ALARM_NOTHING, "share",
                            (double)now->queue[i].length / (double)now->queue[i].capacity,
                            "queue %s", now->queue[i].name);
    sac_monitor_put(m, SAC_ALARM_NOTHING, "MB/s",
                    (double)(now->ledger.crossed_bytes - before->ledger.crossed_bytes) * 1e-6 /
                        past_s,
                    "copied across");
}

/* The loads are means over the run; those of the time since the sample before are wanted. */
static void put_run_gpu(sac_monitor *m, const struct sac_run_feed *feed, int i,
                        const struct sac_gpu_stats *now, const struct sac_gpu_stats *before)
{
    const int n = now->samples - before->samples;
    if (!now->known)
        return;
#define SINCE(field) \
    (n > 0 ? (now->field * now->samples - before->field * before->samples) / n : NAN)
    if (feed->processes) {
        struct sac_nvml_process list[SAC_NVML_PROCESSES];
        sac_monitor_put_processes(m, i, list,
                                  feed->processes(feed->user, i, list, SAC_NVML_PROCESSES));
    }
    sac_monitor_put_gpu(m, i, SINCE(utilisation), SINCE(decoder_load), SINCE(encoder_load), now);
#undef SINCE
}

static void put_gpus(sac_monitor *m, const struct sac_run_feed *feed,
                     const struct sac_pipeline_stats *now, const struct sac_pipeline_stats *before)
{
    for (int i = 0; i < now->shard_count; i++)
        put_run_gpu(m, feed, i, &now->shard[i].gpu, &before->shard[i].gpu);
    if (now->shard_count)
        return;
    put_run_gpu(m, feed, 0, &now->gpu, &before->gpu);
    if (now->gpu.known && now->gpu.memory_bytes > now->pool.bytes_live + now->pool.bytes_idle)
        sac_monitor_put(
            m, SAC_ALARM_NOTHING, "bytes",
            (double)(now->gpu.memory_bytes - now->pool.bytes_live - now->pool.bytes_idle),
            "gpu0 memory beside the pool");
}

static void put_threads(sac_monitor *m, const struct sac_threads *t,
                        const struct sac_machine_load *load)
{
    double own = 0, stretch = 1;
    for (int i = 0; i < t->group_count; i++) {
        own += t->group[i].cores;
        stretch = SAC_MAX(stretch, t->group[i].stretch);
    }
    own /= SAC_MAX(sac_machine_cpus(), 1);
    const double others = load->cpu - own - (isnan(load->stolen) ? 0 : load->stolen);
    if (!isnan(others))
        sac_monitor_put(m, SAC_ALARM_OTHERS, "share", SAC_MAX(others, 0), "cpu of others");
    sac_monitor_put(m, SAC_ALARM_STRETCH, "", stretch, "stretch");
    for (int i = 0; i < t->group_count; i++) {
        const struct sac_thread_group *g = &t->group[i];
        sac_monitor_put(m, SAC_ALARM_NOTHING, "cores", g->cores, "thread %s", g->name);
        sac_monitor_put(m, SAC_ALARM_NOTHING, "share", g->waiting, "wait %s", g->name);
    }
}

static void put_process(sac_monitor *m, const struct sac_pipeline_stats *now)
{
    sac_monitor_put(m, SAC_ALARM_BYTES, "bytes", (double)now->rss_bytes, "rss");
    sac_monitor_put(m, SAC_ALARM_HANDLES, "", count_descriptors(), "descriptors");
    sac_monitor_put(m, SAC_ALARM_BYTES, "bytes", (double)now->pool.bytes_live, "pool");
}

void sac_run_sampler_take(struct sac_run_sampler *s, sac_monitor *m,
                          const struct sac_run_feed *feed)
{
    struct sac_pipeline_stats       *now = &s->stats[s->turn];
    const struct sac_pipeline_stats *before = &s->stats[!s->turn];
    const int64_t                    now_ns = sac_time_ns();
    const double                     past_s = SAC_MAX((double)(now_ns - s->looked_ns) * 1e-9, 1e-3);
    const int                        streams = feed->streams ? feed->streams(feed->user) : 0;
    const double                     due = feed->due ? feed->due(feed->user) : 0;
    struct sac_machine_load          load;
    feed->get(feed->user, now);
    const double rate = due > 0 ? due : (double)(now->frames - before->frames) / past_s;
    const double frame_ms = rate > 0 ? 1e3 * SAC_MAX(streams, 1) / rate : 0;
    sac_machine_look(&m->machine, &load);
    sac_threads_look(&s->threads);
    if (s->taken++ > 0) {
        sac_monitor_begin(m);
        sac_monitor_put_machine(m, &load);
        put_threads(m, &s->threads, &load);
        put_flow(m, now, before, past_s, due);
        put_stages(m, now, before, past_s);
        put_latencies(m, now, before, frame_ms);
        put_tails(s, m, feed, now, frame_ms);
        put_process(m, now);
        put_gpus(m, feed, now, before);
        if (streams != s->streams)
            sac_monitor_restart(m);
        sac_monitor_end(m);
    }
    s->streams = streams;
    s->looked_ns = now_ns;
    s->turn = !s->turn;
}

/* ---- the thread ---- */

struct sac_run_watch {
    sac_monitor            *monitor;
    struct sac_run_sampler *sampler;
    struct sac_run_feed     feed;
    struct sac_published    published; /* the thread's */
    pthread_t               thread;
    bool                    started;

    pthread_mutex_t lock; /* guards both below */
    pthread_cond_t  wake;
    bool            ended;
};

/* The monitor's own threads: this one, and those that watch GPUs for it. */
static void count_cost(struct sac_run_watch *w)
{
    static const char *const  ours[] = {"sac-monitor", "sac-gpu"};
    const struct sac_threads *t = &w->sampler->threads;
    uint64_t                  ns = 0;
    for (int i = 0; i < t->count; i++)
        for (size_t j = 0; j < SAC_COUNT(ours); j++)
            ns += strcmp(t->thread[i].name, ours[j]) == 0 ? t->thread[i].ran_ns : 0;
    pthread_mutex_lock(&w->monitor->lock);
    w->monitor->cost_ns = (int64_t)ns;
    pthread_mutex_unlock(&w->monitor->lock);
}

static bool wait_for_next(struct sac_run_watch *w)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    const int64_t ns = until.tv_nsec + w->monitor->setup.params.interval_ms * INT64_C(1000000);
    until.tv_nsec = ns % 1000000000;
    until.tv_sec += ns / 1000000000;
    pthread_mutex_lock(&w->lock);
    while (!w->ended && pthread_cond_timedwait(&w->wake, &w->lock, &until) == 0)
        ;
    const bool more = !w->ended;
    pthread_mutex_unlock(&w->lock);
    return more;
}

static void *watch_main(void *arg)
{
    struct sac_run_watch *w = arg;
    do {
        sac_run_sampler_take(w->sampler, w->monitor, &w->feed);
        count_cost(w);
        sac_published_write(&w->published, w->monitor);
    } while (wait_for_next(w));
    return NULL;
}

static struct sac_monitor_params params_of_run(const struct sac_monitor_params *given)
{
    struct sac_monitor_params p = given ? *given : sac_monitor_params_default();
    p.utilisation_max = p.live ? p.utilisation_max : 0;
    return p;
}

sac_result sac_run_watch_start(sac_context *ctx, const struct sac_monitor_params *params,
                               const struct sac_run_feed *feed, const char *title,
                               struct sac_run_watch **out)
{
    const struct sac_monitor_params p = params_of_run(params);
    struct sac_run_watch           *w = sac_new(struct sac_run_watch);
    if (!w)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a run's monitor");
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    w->feed = *feed;
    w->sampler = sac_run_sampler_create(p.interval_ms);
    sac_result res = w->sampler ? sac_monitor_create_empty(ctx, &p, &w->monitor)
                                : SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a run's monitor");
    if (res == SAC_OK) {
        w->monitor->logs = true;
        if (p.published)
            sac_published_open(&w->published, title);
        res = sac_thread_start(ctx, &w->thread, "sac-monitor", watch_main, w);
        w->started = res == SAC_OK;
    }
    if (res == SAC_OK)
        *out = w;
    else
        sac_run_watch_destroy(&w);
    return res;
}

void sac_run_watch_end(struct sac_run_watch *w)
{
    if (!w || !w->started)
        return;
    pthread_mutex_lock(&w->lock);
    w->ended = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    w->started = false;
    sac_published_close(&w->published);
}

void sac_run_watch_destroy(struct sac_run_watch **watch)
{
    struct sac_run_watch *w = *watch;
    if (!w)
        return;
    sac_run_watch_end(w);
    sac_published_close(&w->published);
    sac_monitor_destroy(&w->monitor);
    sac_run_sampler_destroy(&w->sampler);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->wake);
    sac_free(w);
    *watch = NULL;
}

sac_monitor *sac_run_watch_monitor(struct sac_run_watch *w)
{
    return w ? w->monitor : NULL;
}
