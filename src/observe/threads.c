/* SPDX-License-Identifier: Apache-2.0 */
/* A process's threads. A hundred of them are read each second, so a name is read once, and files
 * without a stream's buffer. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "observe/machine.h"

/* A thread that hardly runs is slowed down by a lot for a moment's wait, and delays nobody: it is
 * taken to run for this share of the time. */
static const double RAN_MIN = 0.05;

static bool read_text(const char *path, char *buf, size_t size)
{
    const int     fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    buf[n] = '\0';
    return true;
}

/* schedstat: nanoseconds on a CPU, nanoseconds ready to run without one. A kernel without it has
 * the first one in stat, in ticks, behind the name, which may hold anything but a last ")". */
static bool read_times(const char *task, int tid, uint64_t *ran_ns, uint64_t *waited_ns)
{
    char     path[300], text[512];
    uint64_t user, system;
    snprintf(path, sizeof path, "%s/%d/schedstat", task, tid);
    if (read_text(path, text, sizeof text) &&
        sscanf(text, "%" SCNu64 " %" SCNu64, ran_ns, waited_ns) == 2)
        return true;
    snprintf(path, sizeof path, "%s/%d/stat", task, tid);
    const char *rest = read_text(path, text, sizeof text) ? strrchr(text, ')') : NULL;
    if (!rest || sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64,
                        &user, &system) != 2)
        return false;
    *ran_ns = (user + system) * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
    *waited_ns = 0;
    return true;
}

/* "sac-sink-12" is one of those called sac-sink. */
static void read_name(const char *task, int tid, char name[16])
{
    char path[300], text[64] = "other";
    snprintf(path, sizeof path, "%s/%d/comm", task, tid);
    read_text(path, text, sizeof text);
    size_t length = strcspn(text, "\n");
    while (length > 1 && strchr("0123456789", text[length - 1]))
        length--;
    while (length > 1 && strchr("-: ", text[length - 1]))
        length--;
    snprintf(name, 16, "%.*s", (int)SAC_MIN(length, (size_t)15), text);
}

static struct sac_thread_group *group_of(struct sac_threads *t, const char *name)
{
    for (int i = 0; i < t->group_count; i++)
        if (strcmp(t->group[i].name, name) == 0)
            return &t->group[i];
    if (t->group_count == SAC_THREAD_GROUPS_MAX)
        return &t->group[SAC_THREAD_GROUPS_MAX - 1];
    struct sac_thread_group *group = &t->group[t->group_count++];
    *group = (struct sac_thread_group){.stretch = 1};
    snprintf(group->name, sizeof group->name, "%s", name);
    return group;
}

static struct sac_thread_times *thread_of(struct sac_threads *t, const char *task, int tid)
{
    for (int i = 0; i < t->count; i++)
        if (t->thread[i].tid == tid)
            return &t->thread[i];
    if (t->count == SAC_THREADS_MAX)
        return NULL;
    struct sac_thread_times *thread = &t->thread[t->count++];
    *thread = (struct sac_thread_times){.tid = tid};
    read_name(task, tid, thread->name);
    return thread;
}

static void add_thread(struct sac_threads *t, const char *task, int tid, double past_ns)
{
    struct sac_thread_times *thread = thread_of(t, task, tid);
    uint64_t                 ran = 0, waited = 0;
    if (!thread || !read_times(task, tid, &ran, &waited))
        return;
    struct sac_thread_group *group = group_of(t, thread->name);
    group->threads++;
    if (past_ns > 0 && ran >= thread->ran_ns && waited >= thread->waited_ns) {
        const double waiting = SAC_MIN((double)(waited - thread->waited_ns) / past_ns, 1.0);
        const double cores = (double)(ran - thread->ran_ns) / past_ns;
        group->cores += cores;
        group->waiting = SAC_MAX(group->waiting, waiting);
        group->stretch = SAC_MAX(group->stretch, 1 + waiting / SAC_MAX(cores, RAN_MIN));
    }
    thread->ran_ns = ran;
    thread->waited_ns = waited;
    thread->seen = true;
}

static void forget_ended(struct sac_threads *t)
{
    int kept = 0;
    for (int i = 0; i < t->count; i++)
        if (t->thread[i].seen)
            t->thread[kept++] = t->thread[i];
    t->count = kept;
}

void sac_threads_look(struct sac_threads *t)
{
    const char   *task = t->task ? t->task : "/proc/self/task";
    const int64_t now_ns = sac_time_ns();
    const double  past_ns = t->looked_ns ? (double)(now_ns - t->looked_ns) : 0;
    DIR          *folder = opendir(task);
    for (int i = 0; i < t->count; i++)
        t->thread[i].seen = false;
    for (int i = 0; i < t->group_count; i++) {
        t->group[i].threads = 0;
        t->group[i].cores = t->group[i].waiting = 0;
        t->group[i].stretch = 1;
    }
    for (struct dirent *e; folder && (e = readdir(folder));)
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
            add_thread(t, task, atoi(e->d_name), past_ns);
    if (folder)
        closedir(folder);
    forget_ended(t);
    t->looked_ns = now_ns;
}
