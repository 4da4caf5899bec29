/* SPDX-License-Identifier: Apache-2.0 */
/* Who computes on the GPUs: NVML's numbers of processes, with the names that the kernel has. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "observe/monitor.h"

/* ---- names ---- */

/* Whether NVML's numbers are this process's: it is among them, or it is in no container, whose
 * processes have numbers of their own (PROC_PID_INIT_INO of Linux: the first such space). */
static bool knows_numbers(const struct sac_nvml_process *list, int count)
{
    static const char first[] = "pid:[4026531836]";
    char              space[32] = "";
    for (int i = 0; i < count; i++)
        if (list[i].pid == getpid())
            return true;
    return readlink("/proc/self/ns/pid", space, sizeof space - 1) > 0 && strcmp(space, first) == 0;
}

/* A program may call itself what it likes; this goes into logs and onto terminals. */
static void clean(char *name)
{
    name[strcspn(name, "\n")] = '\0';
    for (char *c = name; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

static void read_name(int pid, char *buf, size_t size)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    FILE *file = fopen(path, "re");
    if (!file || !fgets(buf, (int)size, file))
        buf[0] = '\0';
    if (file)
        fclose(file);
    clean(buf);
}

/* ---- figures ---- */

static const struct sac_card_process *find(const struct sac_card_processes *list, int pid)
{
    for (int i = 0; i < list->count; i++)
        if (list->item[i].process.pid == pid)
            return &list->item[i];
    return NULL;
}

/* The first sample's were there before. */
static int since_of(const sac_monitor *m)
{
    return m->samples > 1 ? m->samples : -m->setup.usual;
}

void sac_monitor_put_processes(sac_monitor *m, int index, const struct sac_nvml_process *list,
                               int count)
{
    if (index < 0 || index >= SAC_MONITOR_GPUS ||
        (!m->users && !(m->users = sac_calloc(SAC_MONITOR_GPUS, sizeof *m->users))))
        return;
    struct sac_card_processes *users = &m->users[index], now = {0};
    const bool                 known = knows_numbers(list, count);
    for (int i = 0; i < SAC_MIN(count, (int)SAC_MONITOR_PROCESSES_MAX); i++) {
        const struct sac_card_process *before = find(users, list[i].pid);
        struct sac_card_process       *p = &now.item[now.count++];
        if (before)
            *p = *before;
        else
            p->since = since_of(m);
        p->process.pid = list[i].pid;
        p->process.memory_bytes = list[i].memory_bytes;
        if (!before && known)
            read_name(list[i].pid, p->process.name, sizeof p->process.name);
    }
    *users = now;
}

int sac_monitor_get_processes(sac_monitor *m, int index, struct sac_monitor_process *out, int max)
{
    int n = 0;
    if (!m || !out || index < 0 || index >= SAC_MONITOR_GPUS)
        return 0;
    pthread_mutex_lock(&m->lock);
    for (; m->users && n < SAC_MIN(m->users[index].count, max); n++)
        out[n] = m->users[index].item[n].process;
    pthread_mutex_unlock(&m->lock);
    return n;
}

/* ---- sentences ---- */

/* "4711 python3 (1.20 GB)" */
static int print_process(const struct sac_monitor_process *p, char *buf, size_t size)
{
    char memory[32];
    sac_monitor_format((double)p->memory_bytes, "bytes", memory, sizeof memory);
    return snprintf(buf, size, "%d%s%s%s%s%s", p->pid, p->name[0] ? " " : "", p->name,
                    p->memory_bytes ? " (" : "", p->memory_bytes ? memory : "",
                    p->memory_bytes ? ")" : "");
}

/* What is usual is the median of the time before, so they are new for half of it. */
static bool is_new(const sac_monitor *m, const struct sac_card_process *p)
{
    return m->samples - p->since < m->setup.usual / 2 + m->setup.hold;
}

void sac_monitor_name_processes(const sac_monitor *m, bool new_ones, char *buf, size_t size)
{
    enum { NAMED_MAX = 3 };
    size_t length = 0;
    int    named = 0;
    buf[0] = '\0';
    for (int gpu = 0; m->users && gpu < SAC_MONITOR_GPUS; gpu++)
        for (int i = 0; i < m->users[gpu].count && named < NAMED_MAX; i++) {
            const struct sac_card_process *p = &m->users[gpu].item[i];
            if (p->process.pid == getpid() || (new_ones && !is_new(m, p)))
                continue;
            char text[96];
            print_process(&p->process, text, sizeof text);
            if (length + strlen(text) + 3 > size)
                return;
            length +=
                (size_t)snprintf(buf + length, size - length, "%s%s", named ? ", " : "", text);
            named++;
        }
}
