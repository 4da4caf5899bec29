/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdlib.h>

#include <saccade/stats.h>

#include "observe/nvml.h"

/* As in NVML's documentation. */
struct nvml_utilisation {
    unsigned gpu, memory; /* per cent */
};
struct nvml_memory {
    unsigned long long total, free, used;
};
static const unsigned long long NVML_NOT_AVAILABLE = ~0ULL;
struct nvml_process {
    unsigned           pid;
    unsigned long long memory;
    unsigned           instance, compute_instance;
};
enum {
    NVML_SUCCESS = 0,
    NVML_MORE_ROOM = 7, /* NVML_ERROR_INSUFFICIENT_SIZE: the count is there all the same */
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEMORY = 2,
    NVML_PCIE_TX = 0, /* of the card */
    NVML_PCIE_RX = 1,
    PROCESSES_MAX = 64
};

struct sac_nvml {
    void *library;
    bool  initialised;
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_pci)(const char *pci, sac_nvml_card *out);
    int (*name)(sac_nvml_card card, char *name, unsigned length);
    int (*utilisation)(sac_nvml_card card, struct nvml_utilisation *out);
    int (*decoder)(sac_nvml_card card, unsigned *utilisation, unsigned *period_us);
    int (*encoder)(sac_nvml_card card, unsigned *utilisation, unsigned *period_us);
    int (*memory)(sac_nvml_card card, struct nvml_memory *out);
    /* NULL where this version of NVML lacks it. */
    int (*count)(unsigned *out);
    int (*by_index)(unsigned index, sac_nvml_card *out);
    int (*temperature)(sac_nvml_card card, int sensor, unsigned *out);
    int (*power)(sac_nvml_card card, unsigned *mw);
    int (*power_limit)(sac_nvml_card card, unsigned *mw);
    int (*clock)(sac_nvml_card card, int which, unsigned *mhz);
    int (*clock_max)(sac_nvml_card card, int which, unsigned *mhz);
    int (*throttle)(sac_nvml_card card, unsigned long long *bits);
    int (*pcie)(sac_nvml_card card, int which, unsigned *kb_s);
    int (*processes)(sac_nvml_card card, unsigned *count, struct nvml_process *out);
};

static bool find_symbols(struct sac_nvml *n)
{
    const struct {
        const char *name;
        void      **at;
        bool        optional;
    } symbols[] = {
        {"nvmlInit_v2", (void **)&n->init, false},
        {"nvmlShutdown", (void **)&n->shutdown, false},
        {"nvmlDeviceGetHandleByPciBusId_v2", (void **)&n->by_pci, false},
        {"nvmlDeviceGetName", (void **)&n->name, false},
        {"nvmlDeviceGetUtilizationRates", (void **)&n->utilisation, false},
        {"nvmlDeviceGetDecoderUtilization", (void **)&n->decoder, false},
        {"nvmlDeviceGetEncoderUtilization", (void **)&n->encoder, false},
        {"nvmlDeviceGetMemoryInfo", (void **)&n->memory, false},
        {"nvmlDeviceGetCount_v2", (void **)&n->count, true},
        {"nvmlDeviceGetHandleByIndex_v2", (void **)&n->by_index, true},
        {"nvmlDeviceGetTemperature", (void **)&n->temperature, true},
        {"nvmlDeviceGetPowerUsage", (void **)&n->power, true},
        {"nvmlDeviceGetEnforcedPowerLimit", (void **)&n->power_limit, true},
        {"nvmlDeviceGetClockInfo", (void **)&n->clock, true},
        {"nvmlDeviceGetMaxClockInfo", (void **)&n->clock_max, true},
        {"nvmlDeviceGetCurrentClocksThrottleReasons", (void **)&n->throttle, true},
        {"nvmlDeviceGetPcieThroughput", (void **)&n->pcie, true},
        {"nvmlDeviceGetComputeRunningProcesses_v3", (void **)&n->processes, true},
    };
    for (size_t i = 0; i < SAC_COUNT(symbols); i++)
        if (!(*symbols[i].at = dlsym(n->library, symbols[i].name)) && !symbols[i].optional)
            return false;
    return true;
}

struct sac_nvml *sac_nvml_open(const char *library)
{
    struct sac_nvml *n = sac_new(struct sac_nvml);
    if (!n)
        return NULL;
    n->library = dlopen(library ? library : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    n->initialised = n->library && find_symbols(n) && n->init() == NVML_SUCCESS;
    if (!n->initialised)
        sac_nvml_close(&n);
    return n;
}

void sac_nvml_close(struct sac_nvml **nvml)
{
    struct sac_nvml *n = *nvml;
    if (!n)
        return;
    if (n->initialised)
        n->shutdown();
    if (n->library)
        dlclose(n->library);
    sac_free(n);
    *nvml = NULL;
}

int sac_nvml_count(const struct sac_nvml *n)
{
    unsigned count = 0;
    return n && n->count && n->by_index && n->count(&count) == NVML_SUCCESS ? (int)count : 0;
}

bool sac_nvml_find(const struct sac_nvml *n, const char *pci_bus_id, sac_nvml_card *out)
{
    return n->by_pci(pci_bus_id, out) == NVML_SUCCESS;
}

bool sac_nvml_find_index(const struct sac_nvml *n, int index, sac_nvml_card *out)
{
    return n->by_index && n->by_index((unsigned)index, out) == NVML_SUCCESS;
}

bool sac_nvml_name(const struct sac_nvml *n, sac_nvml_card card, char *buf, size_t size)
{
    return n->name(card, buf, (unsigned)size) == NVML_SUCCESS;
}

/* A number that one of NVML's functions gives, or 0. */
static int plain(int (*ask)(sac_nvml_card, unsigned *), sac_nvml_card card)
{
    unsigned value = 0;
    return ask && ask(card, &value) == NVML_SUCCESS ? (int)value : 0;
}

static int chosen(int (*ask)(sac_nvml_card, int, unsigned *), sac_nvml_card card, int which)
{
    unsigned value = 0;
    return ask && ask(card, which, &value) == NVML_SUCCESS ? (int)value : 0;
}

/* NVML's bits of what slows a card down; the others (idle, a chosen clock, displays) do not. */
static unsigned throttle_of(const struct sac_nvml *n, sac_nvml_card card)
{
    static const struct {
        unsigned long long bit;
        unsigned           ours;
    } reasons[] = {
        {0x04, SAC_THROTTLE_POWER}, /* the limit that was set */
        {0x08, SAC_THROTTLE_HARDWARE}, {0x20, SAC_THROTTLE_HEAT},
        {0x40, SAC_THROTTLE_HEAT},     {0x80, SAC_THROTTLE_POWER}, /* the supply's brake */
    };
    unsigned long long bits = 0;
    unsigned           ours = 0;
    if (!n->throttle || n->throttle(card, &bits) != NVML_SUCCESS)
        return 0;
    for (size_t i = 0; i < SAC_COUNT(reasons); i++)
        ours |= bits & reasons[i].bit ? reasons[i].ours : 0;
    return ours;
}

/* A card in parts (MIG) does not tell who holds how much. */
static uint64_t held_by(const struct nvml_process *p)
{
    return p->memory == NVML_NOT_AVAILABLE ? 0 : p->memory;
}

static int compare_held(const void *a, const void *b)
{
    const uint64_t x = held_by(a), y = held_by(b);
    return (x < y) - (x > y);
}

static void add_processes(const struct sac_nvml *n, sac_nvml_card card, struct sac_nvml_sample *out)
{
    struct nvml_process list[PROCESSES_MAX];
    unsigned            count = PROCESSES_MAX;
    const int           res = n->processes ? n->processes(card, &count, list) : -1;
    out->processes = res == NVML_SUCCESS || res == NVML_MORE_ROOM ? (int)count : 0;
    out->listed = 0;
    if (res != NVML_SUCCESS || count > PROCESSES_MAX)
        return;
    qsort(list, count, sizeof *list, compare_held);
    out->listed = (int)SAC_MIN(count, (unsigned)SAC_NVML_PROCESSES);
    for (int i = 0; i < out->listed; i++)
        out->process[i] = (struct sac_nvml_process){(int)list[i].pid, held_by(&list[i])};
}

void sac_nvml_sample_loads(const struct sac_nvml *n, sac_nvml_card card,
                           struct sac_nvml_sample *out)
{
    struct nvml_utilisation utilisation = {0};
    unsigned                decoder = 0, encoder = 0, period_us;
    out->busy_known = n->utilisation(card, &utilisation) == NVML_SUCCESS;
    n->decoder(card, &decoder, &period_us);
    n->encoder(card, &encoder, &period_us);
    out->busy = SAC_MIN(utilisation.gpu, 100u);
    out->decoder = SAC_MIN(decoder, 100u);
    out->encoder = SAC_MIN(encoder, 100u);
}

void sac_nvml_sample(const struct sac_nvml *n, sac_nvml_card card, struct sac_nvml_sample *out)
{
    struct nvml_memory memory = {0};
    sac_nvml_sample_loads(n, card, out);
    n->memory(card, &memory);
    out->memory_bytes = memory.used;
    out->memory_total_bytes = memory.total;
    out->temperature_c = chosen(n->temperature, card, 0); /* the die */
    out->power_mw = plain(n->power, card);
    out->power_limit_mw = plain(n->power_limit, card);
    out->clock_mhz = chosen(n->clock, card, NVML_CLOCK_SM);
    out->clock_max_mhz = chosen(n->clock_max, card, NVML_CLOCK_SM);
    out->memory_clock_mhz = chosen(n->clock, card, NVML_CLOCK_MEMORY);
    out->pcie_rx_kb_s = chosen(n->pcie, card, NVML_PCIE_RX);
    out->pcie_tx_kb_s = chosen(n->pcie, card, NVML_PCIE_TX);
    add_processes(n, card, out);
    out->throttle = throttle_of(n, card);
}
