/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "observe/process.h"

static double seconds(struct timeval tv)
{
    return (double)tv.tv_sec + (double)tv.tv_usec * 1e-6;
}

/* getrusage lacks the current size; /proc/self/statm has it: total pages, resident pages. */
static uint64_t resident_bytes(void)
{
    uint64_t total, resident = 0;
    FILE    *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    if (fscanf(file, "%" SCNu64 " %" SCNu64, &total, &resident) != 2)
        resident = 0;
    fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

void sac_process_usage(struct sac_process_usage *out)
{
    struct rusage usage;
    *out = (struct sac_process_usage){.rss_bytes = resident_bytes()};
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return;
    out->rss_peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
    out->cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
}
