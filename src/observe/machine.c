/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/machine.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- the machine ---- */

/* user nice system idle iowait irq softirq steal: since the machine started. */
static bool read_cpu(const char *proc, uint64_t *busy, uint64_t *total, uint64_t *stolen)
{
    uint64_t t[8] = {0};
    char     path[256];
    snprintf(path, sizeof path, "%s/stat", proc);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    const int n = fscanf(file,
                         "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                         " %" SCNu64 " %" SCNu64,
                         &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]);
    fclose(file);
    *total = 0;
    for (int i = 0; i < n; i++)
        *total += t[i];
    *busy = *total - t[3] - t[4];
    *stolen = t[7];
    return n >= 4;
}

static double memory_used(const char *proc)
{
    uint64_t total = 0, available = 0;
    char     line[128], path[256];
    snprintf(path, sizeof path, "%s/meminfo", proc);
    FILE *file = fopen(path, "re");
    while (file && (!total || !available) && fgets(line, sizeof line, file)) {
        sscanf(line, "MemTotal: %" SCNu64, &total);
        sscanf(line, "MemAvailable: %" SCNu64, &available);
    }
    if (file)
        fclose(file);
    return total ? 1 - (double)SAC_MIN(available, total) / (double)total : NAN;
}

/* Version 2 says throttled_usec, version 1 throttled_time in nanoseconds. */
static bool read_held(const char *path, uint64_t *us)
{
    char     line[128];
    uint64_t ns = 0;
    bool     known = false;
    FILE    *file = fopen(path, "re");
    while (file && !known && fgets(line, sizeof line, file)) {
        known = sscanf(line, "throttled_usec %" SCNu64, us) == 1;
        if (!known && sscanf(line, "throttled_time %" SCNu64, &ns) == 1) {
            *us = ns / 1000;
            known = true;
        }
    }
    if (file)
        fclose(file);
    return known;
}

/* The process's own group; inside a container its files are at the root. */
static bool find_held(const struct sac_machine *m, uint64_t *us)
{
    char  line[512] = "", path[600];
    char *group = NULL;
    if (m->cpu_stat)
        return read_held(m->cpu_stat, us);
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && !group && fgets(line, sizeof line, file))
        if (strncmp(line, "0::", 3) == 0)
            group = line + 3;
    if (file)
        fclose(file);
    if (group) {
        group[strcspn(group, "\n")] = '\0';
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.stat", group);
        if (read_held(path, us))
            return true;
    }
    return read_held("/sys/fs/cgroup/cpu.stat", us) || read_held("/sys/fs/cgroup/cpu/cpu.stat", us);
}

/* Pressure stall information, since Linux 4.20. */
static bool read_disk(const char *proc, uint64_t *us)
{
    char path[256];
    snprintf(path, sizeof path, "%s/pressure/io", proc);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    const bool known = fscanf(file, "some avg10=%*f avg60=%*f avg300=%*f total=%" SCNu64, us) == 1;
    fclose(file);
    return known;
}

void sac_machine_look(struct sac_machine *m, struct sac_machine_load *out)
{
    const char   *proc = m->proc ? m->proc : "/proc";
    const int64_t now_ns = sac_time_ns(), past_ns = now_ns - m->looked_ns;
    uint64_t      busy = 0, total = 0, stolen = 0, held_us = 0, disk_us = 0;
    *out = (struct sac_machine_load){.cpu = NAN, .stolen = NAN, .held = NAN, .disk = NAN};
    if (read_cpu(proc, &busy, &total, &stolen)) {
        if (m->total && total > m->total && busy >= m->busy)
            out->cpu = (double)(busy - m->busy) / (double)(total - m->total);
        if (m->total && total > m->total && stolen >= m->stolen)
            out->stolen = (double)(stolen - m->stolen) / (double)(total - m->total);
        m->busy = busy;
        m->total = total;
        m->stolen = stolen;
    }
    if (find_held(m, &held_us)) {
        if (m->looked_ns && held_us >= m->held_us && past_ns > 0)
            out->held = SAC_MIN((double)(held_us - m->held_us) * 1e3 / (double)past_ns, 1.0);
        m->held_us = held_us;
    }
    if (read_disk(proc, &disk_us)) {
        if (m->looked_ns && disk_us >= m->disk_us && past_ns > 0)
            out->disk = SAC_MIN((double)(disk_us - m->disk_us) * 1e3 / (double)past_ns, 1.0);
        m->disk_us = disk_us;
    }
    out->memory = memory_used(proc);
    m->looked_ns = now_ns;
}

int sac_machine_cpus(void)
{
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}
