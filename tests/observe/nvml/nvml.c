/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for NVML with one card, whose figures change from sample to sample. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int cards, samples, initialised;

/* As in NVML's own header, and named as in observe/nvml.c: UBSan compares the types of functions.
 */
struct nvml_utilisation {
    unsigned gpu, memory; /* per cent */
};
struct nvml_memory {
    unsigned long long total, free, used;
};
struct nvml_process {
    unsigned           pid;
    unsigned long long memory;
    unsigned           instance, compute_instance;
};

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **out);
int nvmlDeviceGetName(void *device, char *name, unsigned length);
int nvmlDeviceGetUtilizationRates(void *device, struct nvml_utilisation *out);
int nvmlDeviceGetDecoderUtilization(void *device, unsigned *utilisation, unsigned *period_us);
int nvmlDeviceGetEncoderUtilization(void *device, unsigned *utilisation, unsigned *period_us);
int nvmlDeviceGetMemoryInfo(void *device, struct nvml_memory *out);
int nvmlDeviceGetCount_v2(unsigned *out);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *out);
int nvmlDeviceGetPowerUsage(void *device, unsigned *mw);
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *mw);
int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits);
int nvmlDeviceGetPcieThroughput(void *device, int which, unsigned *kb_s);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct nvml_process *out);
int fake_nvml_initialised(void);
/* What the card does from now on. */
void fake_nvml_set(unsigned temperature_c, unsigned power_mw, unsigned long long throttle,
                   unsigned processes);

int nvmlInit_v2(void)
{
    initialised++;
    samples = 0;
    return 0;
}

int nvmlShutdown(void)
{
    initialised--;
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **out)
{
    if (strcmp(pci, "0000:3B:00.0") != 0)
        return 6; /* not found */
    *out = &cards;
    return 0;
}

int nvmlDeviceGetName(void *device, char *name, unsigned length)
{
    snprintf(name, length, "Card %d", device == &cards);
    return 0;
}

/* 100, 50, 100, 50, ... per cent */
int nvmlDeviceGetUtilizationRates(void *device, struct nvml_utilisation *out)
{
    (void)device;
    *out = (struct nvml_utilisation){.gpu = samples++ % 2 ? 50 : 100, .memory = 7};
    return 0;
}

int nvmlDeviceGetDecoderUtilization(void *device, unsigned *utilisation, unsigned *period_us)
{
    (void)device;
    *utilisation = 40;
    *period_us = 1000;
    return 0;
}

int nvmlDeviceGetEncoderUtilization(void *device, unsigned *utilisation, unsigned *period_us)
{
    (void)device;
    (void)utilisation;
    (void)period_us;
    return 3; /* not supported: a card without one */
}

int nvmlDeviceGetMemoryInfo(void *device, struct nvml_memory *out)
{
    (void)device;
    out->total = 1000;
    out->used = samples == 1 ? 600 : 400;
    out->free = out->total - out->used;
    return 0;
}

static unsigned           temperature_now = 40, power_now = 100000, processes_now = 1;
static unsigned long long throttle_now = 1; /* idle, which is no throttling */

void fake_nvml_set(unsigned temperature_c, unsigned power_mw, unsigned long long throttle,
                   unsigned processes)
{
    temperature_now = temperature_c;
    power_now = power_mw;
    throttle_now = throttle;
    processes_now = processes;
}

int nvmlDeviceGetCount_v2(unsigned *out)
{
    *out = 1;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out)
{
    *out = &cards;
    return index == 0 ? 0 : 2; /* no such index */
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *out)
{
    (void)device;
    *out = temperature_now;
    return sensor == 0 ? 0 : 2;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *mw)
{
    (void)device;
    *mw = power_now;
    return 0;
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *mw)
{
    (void)device;
    *mw = 400000;
    return 0;
}

/* There is no nvmlDeviceGetMaxClockInfo: a version of NVML that lacks something. */
int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz)
{
    (void)device;
    *mhz = which == 1 ? 1500 : 2600;
    return 0;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits)
{
    (void)device;
    *bits = throttle_now;
    return 0;
}

int nvmlDeviceGetPcieThroughput(void *device, int which, unsigned *kb_s)
{
    (void)device;
    *kb_s = which == 1 ? 7000 : 3000; /* received, sent */
    return 0;
}

/* Whoever asks holds 600 MB; another one 12.3 GB, in parts of a card an unknown amount; all others
 * are none that run. More of them than a caller has room for are counted all the same. */
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct nvml_process *out)
{
    (void)device;
    const int res = processes_now > *count ? 7 : 0;
    *count = processes_now;
    for (unsigned i = 0; res == 0 && i < processes_now; i++)
        out[i] = (struct nvml_process){
            .pid = i == 0   ? (unsigned)getpid()
                   : i == 1 ? (unsigned)getppid()
                            : 0x7ffffff0 + i,
            .memory = i == 0   ? 600000000
                      : i == 1 ? 12300000000
                               : ~0ULL,
        };
    return res;
}

int fake_nvml_initialised(void)
{
    return initialised;
}
