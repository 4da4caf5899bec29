/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for NVML with one card, whose figures change from sample to sample. */
#include <stdio.h>
#include <string.h>

static int cards, samples, initialised;

/* As in NVML's own header, and named as in observe/gpu.c: UBSan compares the types of functions. */
struct nvml_utilisation {
    unsigned gpu, memory; /* per cent */
};
struct nvml_memory {
    unsigned long long total, free, used;
};

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **out);
int nvmlDeviceGetName(void *device, char *name, unsigned length);
int nvmlDeviceGetUtilizationRates(void *device, struct nvml_utilisation *out);
int nvmlDeviceGetDecoderUtilization(void *device, unsigned *utilisation, unsigned *period_us);
int nvmlDeviceGetEncoderUtilization(void *device, unsigned *utilisation, unsigned *period_us);
int nvmlDeviceGetMemoryInfo(void *device, struct nvml_memory *out);
int fake_nvml_initialised(void);

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

int fake_nvml_initialised(void)
{
    return initialised;
}
