/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "observe/gpu.h"

enum {
    MINUTE_MS = 60 * 1000,
    KEPT_MAX = 5 * MINUTE_MS / SAC_GPU_SAMPLE_MS_MIN /* samples of five minutes */
};
/* NVML takes milliseconds of a core for all that it knows, and loads alone change so fast. */
static const int64_t WHOLE_EVERY_NS = 1000000000;

struct sac_gpu_watch {
    struct sac_nvml       *nvml;
    sac_nvml_card          card;
    int                    interval_ms;
    pthread_t              thread;
    bool                   started;
    int64_t                whole_ns; /* when it last asked for all; the thread's, as sample is */
    struct sac_nvml_sample sample;

    pthread_mutex_t         lock; /* guards all below */
    pthread_cond_t          wake;
    bool                    ended;
    struct sac_gpu_stats    stats; /* utilisation and the loads are sums */
    struct sac_nvml_process process[SAC_NVML_PROCESSES];
    int                     listed;
    uint8_t                 busy[KEPT_MAX], decoder[KEPT_MAX]; /* per cent; a ring of the latest */
};

/* Under the lock. */
static void add_loads(struct sac_gpu_watch *w, const struct sac_nvml_sample *s)
{
    struct sac_gpu_stats *stats = &w->stats;
    w->busy[stats->samples % KEPT_MAX] = (uint8_t)s->busy;
    w->decoder[stats->samples % KEPT_MAX] = (uint8_t)s->decoder;
    stats->samples++;
    stats->utilisation += s->busy * 0.01;
    stats->decoder_load += s->decoder * 0.01;
    stats->encoder_load += s->encoder * 0.01;
}

static void add_state(struct sac_gpu_stats *stats, const struct sac_nvml_sample *s)
{
    stats->memory_bytes = s->memory_bytes;
    stats->memory_peak_bytes = SAC_MAX(stats->memory_peak_bytes, s->memory_bytes);
    stats->memory_total_bytes = s->memory_total_bytes;
    stats->temperature_c = s->temperature_c;
    stats->temperature_peak_c = SAC_MAX(stats->temperature_peak_c, s->temperature_c);
    stats->power_mw = s->power_mw;
    stats->power_limit_mw = s->power_limit_mw;
    stats->clock_mhz = s->clock_mhz;
    stats->clock_max_mhz = s->clock_max_mhz;
    stats->memory_clock_mhz = s->memory_clock_mhz;
    stats->pcie_rx_kb_s = s->pcie_rx_kb_s;
    stats->pcie_tx_kb_s = s->pcie_tx_kb_s;
    stats->processes = s->processes;
    stats->throttle = s->throttle;
    stats->throttled += s->throttle != 0;
}

static void take_sample(struct sac_gpu_watch *w)
{
    const int64_t now_ns = sac_time_ns();
    if (now_ns - w->whole_ns >= WHOLE_EVERY_NS) {
        sac_nvml_sample(w->nvml, w->card, &w->sample);
        w->whole_ns = now_ns;
    } else {
        sac_nvml_sample_loads(w->nvml, w->card, &w->sample);
    }
    pthread_mutex_lock(&w->lock);
    if (w->sample.busy_known)
        add_loads(w, &w->sample);
    add_state(&w->stats, &w->sample);
    memcpy(w->process, w->sample.process, sizeof w->process);
    w->listed = w->sample.listed;
    pthread_mutex_unlock(&w->lock);
}

/* Wait for the next sample's time; false: the watch ends. */
static bool next_sample(struct sac_gpu_watch *w)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    const int64_t ns = until.tv_nsec + w->interval_ms * INT64_C(1000000);
    until.tv_nsec = ns % 1000000000;
    until.tv_sec += ns / 1000000000;
    pthread_mutex_lock(&w->lock);
    while (!w->ended && pthread_cond_timedwait(&w->wake, &w->lock, &until) == 0)
        ;
    bool more = !w->ended;
    pthread_mutex_unlock(&w->lock);
    return more;
}

static void *watch_main(void *arg)
{
    do
        take_sample(arg);
    while (next_sample(arg));
    return NULL;
}

static bool begin(struct sac_gpu_watch *w, sac_context *ctx, const char *pci_bus_id,
                  const char *library)
{
    w->nvml = sac_nvml_open(library);
    if (!w->nvml || !sac_nvml_find(w->nvml, pci_bus_id, &w->card))
        return false;
    w->stats.known = 1;
    if (!sac_nvml_name(w->nvml, w->card, w->stats.name, sizeof w->stats.name))
        snprintf(w->stats.name, sizeof w->stats.name, "%s", pci_bus_id);
    w->started = sac_thread_start(ctx, &w->thread, "sac-gpu", watch_main, w) == SAC_OK;
    return w->started;
}

struct sac_gpu_watch *sac_gpu_watch_start(sac_context *ctx, const char *pci_bus_id, int interval_ms,
                                          const char *library)
{
    struct sac_gpu_watch *w = pci_bus_id[0] ? sac_new(struct sac_gpu_watch) : NULL;
    if (!w)
        return NULL;
    w->interval_ms =
        interval_ms > 0 ? SAC_MAX(interval_ms, (int)SAC_GPU_SAMPLE_MS_MIN) : SAC_GPU_SAMPLE_MS;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    if (!begin(w, ctx, pci_bus_id, library))
        sac_gpu_watch_stop(&w);
    return w;
}

void sac_gpu_watch_stop(struct sac_gpu_watch **watch)
{
    struct sac_gpu_watch *w = watch ? *watch : NULL;
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->ended = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    if (w->started)
        pthread_join(w->thread, NULL);
    sac_nvml_close(&w->nvml);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->wake);
    sac_free(w);
    *watch = NULL;
}

void sac_gpu_watch_restart(struct sac_gpu_watch *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stats.samples = w->stats.throttled = 0;
    w->stats.utilisation = w->stats.decoder_load = w->stats.encoder_load = 0;
    pthread_mutex_unlock(&w->lock);
}

/* The mean of the last so many minutes, or of all samples if there are fewer. Under the lock. */
static double mean_of_last(const struct sac_gpu_watch *w, const uint8_t percent[KEPT_MAX],
                           int minutes)
{
    const int n = SAC_MIN(SAC_MAX(minutes * MINUTE_MS / w->interval_ms, 1), w->stats.samples);
    unsigned  sum = 0;
    for (int i = 1; i <= n; i++)
        sum += percent[(w->stats.samples - i) % KEPT_MAX];
    return n ? sum * 0.01 / n : 0;
}

void sac_gpu_watch_get(struct sac_gpu_watch *w, struct sac_gpu_stats *out)
{
    *out = (struct sac_gpu_stats){0};
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    *out = w->stats;
    out->utilisation_1m = mean_of_last(w, w->busy, 1);
    out->utilisation_5m = mean_of_last(w, w->busy, 5);
    out->decoder_load_1m = mean_of_last(w, w->decoder, 1);
    out->decoder_load_5m = mean_of_last(w, w->decoder, 5);
    pthread_mutex_unlock(&w->lock);
    if (out->samples > 0) {
        out->utilisation /= out->samples;
        out->decoder_load /= out->samples;
        out->encoder_load /= out->samples;
    }
}

int sac_gpu_watch_processes(struct sac_gpu_watch *w, struct sac_nvml_process *out, int max)
{
    if (!w)
        return 0;
    pthread_mutex_lock(&w->lock);
    const int n = SAC_MIN(w->listed, max);
    memcpy(out, w->process, (size_t)n * sizeof *out);
    pthread_mutex_unlock(&w->lock);
    return n;
}
