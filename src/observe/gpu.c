/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

#include "base/thread.h"
#include "observe/gpu.h"

/* NVML measures utilisation over windows of 1/6 to 1 s, so sampling faster gains nothing. */
enum {
    SAMPLE_EVERY_MS = 250,
    MINUTE = 60 * 1000 / SAMPLE_EVERY_MS, /* samples */
    KEPT = 5 * MINUTE
};

/* The part of NVML's interface that is used, as in its documentation. */
typedef void *nvml_device;
struct nvml_utilisation {
    unsigned gpu, memory; /* per cent */
};
struct nvml_memory {
    unsigned long long total, free, used;
};
enum { NVML_SUCCESS = 0 };

struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_pci)(const char *pci, nvml_device *out);
    int (*name)(nvml_device device, char *name, unsigned length);
    int (*utilisation)(nvml_device device, struct nvml_utilisation *out);
    int (*decoder)(nvml_device device, unsigned *utilisation, unsigned *period_us);
    int (*encoder)(nvml_device device, unsigned *utilisation, unsigned *period_us);
    int (*memory)(nvml_device device, struct nvml_memory *out);
};

struct sac_gpu_watch {
    struct nvml nvml;
    nvml_device device;
    pthread_t   thread;
    bool        initialised, started;

    pthread_mutex_t      lock; /* guards all below */
    pthread_cond_t       wake;
    bool                 ended;
    struct sac_gpu_stats stats;                     /* utilisation and the loads are sums here */
    uint8_t              busy[KEPT], decoder[KEPT]; /* per cent; a ring of the latest samples */
};

static bool open_nvml(struct nvml *nvml, const char *library)
{
    const struct {
        const char *name;
        void      **at;
    } symbols[] = {
        {"nvmlInit_v2", (void **)&nvml->init},
        {"nvmlShutdown", (void **)&nvml->shutdown},
        {"nvmlDeviceGetHandleByPciBusId_v2", (void **)&nvml->by_pci},
        {"nvmlDeviceGetName", (void **)&nvml->name},
        {"nvmlDeviceGetUtilizationRates", (void **)&nvml->utilisation},
        {"nvmlDeviceGetDecoderUtilization", (void **)&nvml->decoder},
        {"nvmlDeviceGetEncoderUtilization", (void **)&nvml->encoder},
        {"nvmlDeviceGetMemoryInfo", (void **)&nvml->memory},
    };
    nvml->library = dlopen(library ? library : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; nvml->library && i < SAC_COUNT(symbols); i++)
        if (!(*symbols[i].at = dlsym(nvml->library, symbols[i].name)))
            return false;
    return nvml->library != NULL;
}

/* Figures that a card does not report (decoder load in some virtual machines) stay 0. */
static void sample(struct sac_gpu_watch *w)
{
    struct nvml_utilisation utilisation = {0};
    struct nvml_memory      memory = {0};
    unsigned                decoder = 0, encoder = 0, period_us;
    bool                    busy = w->nvml.utilisation(w->device, &utilisation) == NVML_SUCCESS;
    w->nvml.decoder(w->device, &decoder, &period_us);
    w->nvml.encoder(w->device, &encoder, &period_us);
    w->nvml.memory(w->device, &memory);
    pthread_mutex_lock(&w->lock);
    if (busy) {
        w->busy[w->stats.samples % KEPT] = (uint8_t)SAC_MIN(utilisation.gpu, 100u);
        w->decoder[w->stats.samples % KEPT] = (uint8_t)SAC_MIN(decoder, 100u);
        w->stats.samples++;
        w->stats.utilisation += utilisation.gpu * 0.01;
        w->stats.decoder_load += decoder * 0.01;
        w->stats.encoder_load += encoder * 0.01;
    }
    w->stats.memory_bytes = memory.used;
    w->stats.memory_peak_bytes = SAC_MAX(w->stats.memory_peak_bytes, memory.used);
    w->stats.memory_total_bytes = memory.total;
    pthread_mutex_unlock(&w->lock);
}

/* Wait for the next sample's time; false: the watch ends. */
static bool next_sample(struct sac_gpu_watch *w)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += SAMPLE_EVERY_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
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
        sample(arg);
    while (next_sample(arg));
    return NULL;
}

static bool begin(struct sac_gpu_watch *w, sac_context *ctx, const char *pci_bus_id,
                  const char *library)
{
    if (!open_nvml(&w->nvml, library) || w->nvml.init() != NVML_SUCCESS)
        return false;
    w->initialised = true;
    if (w->nvml.by_pci(pci_bus_id, &w->device) != NVML_SUCCESS)
        return false;
    w->stats.known = 1;
    if (w->nvml.name(w->device, w->stats.name, sizeof w->stats.name) != NVML_SUCCESS)
        snprintf(w->stats.name, sizeof w->stats.name, "%s", pci_bus_id);
    w->started = sac_thread_start(ctx, &w->thread, "sac-gpu", watch_main, w) == SAC_OK;
    return w->started;
}

struct sac_gpu_watch *sac_gpu_watch_start(sac_context *ctx, const char *pci_bus_id,
                                          const char *library)
{
    struct sac_gpu_watch *w = pci_bus_id[0] ? sac_new(struct sac_gpu_watch) : NULL;
    if (!w)
        return NULL;
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
    if (w->initialised)
        w->nvml.shutdown();
    if (w->nvml.library)
        dlclose(w->nvml.library);
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
    w->stats.samples = 0;
    w->stats.utilisation = w->stats.decoder_load = w->stats.encoder_load = 0;
    pthread_mutex_unlock(&w->lock);
}

/* The mean of the last n samples, or of all if there are fewer. Under the lock. */
static double mean_of_last(const uint8_t percent[KEPT], int samples, int n)
{
    unsigned sum = 0;
    n = SAC_MIN(n, samples);
    for (int i = 1; i <= n; i++)
        sum += percent[(samples - i) % KEPT];
    return n ? sum * 0.01 / n : 0;
}

void sac_gpu_watch_get(struct sac_gpu_watch *w, struct sac_gpu_stats *out)
{
    *out = (struct sac_gpu_stats){0};
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    *out = w->stats;
    out->utilisation_1m = mean_of_last(w->busy, out->samples, MINUTE);
    out->utilisation_5m = mean_of_last(w->busy, out->samples, KEPT);
    out->decoder_load_1m = mean_of_last(w->decoder, out->samples, MINUTE);
    out->decoder_load_5m = mean_of_last(w->decoder, out->samples, KEPT);
    pthread_mutex_unlock(&w->lock);
    if (out->samples > 0) {
        out->utilisation /= out->samples;
        out->decoder_load /= out->samples;
        out->encoder_load /= out->samples;
    }
}
