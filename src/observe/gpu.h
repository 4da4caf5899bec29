/* SPDX-License-Identifier: Apache-2.0 */
/* Watching a GPU through NVML, which is opened at run time: without it there are no figures, and
 * nothing is said. */
#ifndef SAC_OBSERVE_GPU_H
#define SAC_OBSERVE_GPU_H

#include <saccade/stats.h>

#include "base/base.h"

struct sac_gpu_watch;

/* Begin to sample the GPU at this PCI address ("0000:3b:00.0"). library: NULL for NVML's own name.
 * NULL: there is nothing to watch. */
struct sac_gpu_watch *sac_gpu_watch_start(sac_context *ctx, const char *pci_bus_id,
                                          const char *library);
void                  sac_gpu_watch_stop(struct sac_gpu_watch **watch);
/* Forget what was seen so far: the run begins only now. A NULL watch is passed over. Any thread. */
void                  sac_gpu_watch_restart(struct sac_gpu_watch *watch);
/* Over the time since start, or the last restart; a NULL watch gives zeros. Any thread. */
void                  sac_gpu_watch_get(struct sac_gpu_watch *watch, struct sac_gpu_stats *out);

#endif
