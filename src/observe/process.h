/* SPDX-License-Identifier: Apache-2.0 */
/* What this process uses of the machine. */
#ifndef SAC_OBSERVE_PROCESS_H
#define SAC_OBSERVE_PROCESS_H

#include <stdint.h>

struct sac_process_usage {
    uint64_t rss_bytes, rss_peak_bytes; /* resident memory now, and the most it ever was */
    double   cpu_s;                     /* user and system time of all threads */
};
/* Any thread. Figures that the system does not report are 0. */
void sac_process_usage(struct sac_process_usage *out);

#endif
