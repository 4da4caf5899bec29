/* SPDX-License-Identifier: Apache-2.0 */
/* Watches a GPU through NVML, which is loaded at run time. Without it there are no figures and no
 * warning. */
#ifndef SAC_OBSERVE_GPU_H
#define SAC_OBSERVE_GPU_H

#include <saccade/stats.h>

#include "base/base.h"
#include "observe/nvml.h"

/* NVML measures utilisation over windows of 1/6 to 1 s, so sampling faster gains nothing. */
enum { SAC_GPU_SAMPLE_MS = 250, SAC_GPU_SAMPLE_MS_MIN = 100 };

struct sac_gpu_watch;

/* Begin to sample the GPU at this PCI address ("0000:3b:00.0"). interval_ms: 0 for
 * SAC_GPU_SAMPLE_MS. library: NULL for NVML's usual name. Returns NULL when NVML or the GPU is not
 * found. */
struct sac_gpu_watch *sac_gpu_watch_start(sac_context *ctx, const char *pci_bus_id, int interval_ms,
                                          const char *library);
void                  sac_gpu_watch_stop(struct sac_gpu_watch **watch);
/* Discard the samples so far: the run begins now. A NULL watch is ignored. Any thread. */
void sac_gpu_watch_restart(struct sac_gpu_watch *watch);
/* Over the time since start, or the last restart; a NULL watch gives zeros. Any thread. */
void sac_gpu_watch_get(struct sac_gpu_watch *watch, struct sac_gpu_stats *out);
/* Who computed on it when all was last asked for, the largest first; returns how many. */
int sac_gpu_watch_processes(struct sac_gpu_watch *watch, struct sac_nvml_process *out, int max);

#endif
