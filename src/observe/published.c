/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/published.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json_read.h"
#include "observe/monitor.h"

enum { FORMAT_VERSION = 1, FILE_SIZE_MAX = 1 << 20 };

/* ---- the folder ---- */

/* In /dev/shm, where all may write, somebody else may have made it. */
static bool make_own(const char *path)
{
    struct stat st;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return false;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           !(st.st_mode & 077);
}

bool sac_published_folder(char *buf, size_t size)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (runtime && runtime[0] == '/' && (size_t)snprintf(buf, size, "%s/saccade", runtime) < size &&
        make_own(buf))
        return true;
    snprintf(buf, size, "/dev/shm/saccade-%u", (unsigned)geteuid());
    return make_own(buf);
}

/* ---- writing ---- */

static int64_t unix_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

void sac_published_open(struct sac_published *p, const char *title)
{
    static atomic_uint opened; /* in this process: each run has a file of its own */
    char               folder[256], number[16] = "";
    *p = (struct sac_published){0};
    if (!sac_published_folder(folder, sizeof folder))
        return;
    const unsigned before = atomic_fetch_add(&opened, 1);
    if (before)
        snprintf(number, sizeof number, "-%u", before);
    snprintf(p->path, sizeof p->path, "%s/%d%s.json", folder, (int)getpid(), number);
    snprintf(p->fresh, sizeof p->fresh, "%s.part", p->path);
    snprintf(p->title, sizeof p->title, "%s", title);
}

static void add_document(struct sac_published *p, const struct sac_monitor_view *view)
{
    struct sac_json json = {.text = &p->text};
    sac_json_open(&json, NULL, '{');
    sac_json_string(&json, "format", "saccade-run");
    sac_json_int(&json, "version", FORMAT_VERSION);
    sac_json_int(&json, "pid", getpid());
    sac_json_string(&json, "title", p->title);
    sac_json_int(&json, "written_ms", unix_ms());
    sac_figures_write(&json, &sac_figures_monitor, view);
    sac_json_close(&json, '}');
}

static bool write_whole(const char *path, const struct sac_text *text)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return false;
    const bool whole = write(fd, text->data, text->length) == (ssize_t)text->length;
    return close(fd) == 0 && whole;
}

void sac_published_write(struct sac_published *p, sac_monitor *monitor)
{
    if (!p->path[0])
        return;
    struct sac_monitor_view *view = sac_monitor_look_at(monitor, false);
    if (!view)
        return;
    sac_text_clear(&p->text);
    add_document(p, view);
    sac_free(view);
    if (p->text.failed || !write_whole(p->fresh, &p->text) || rename(p->fresh, p->path) != 0)
        unlink(p->fresh);
}

void sac_published_close(struct sac_published *p)
{
    if (p->path[0])
        unlink(p->path);
    sac_text_finish(&p->text);
    *p = (struct sac_published){0};
}

/* ---- reading ---- */

struct listed {
    struct sac_monitor_run    run;
    double                    written_ms;
    struct sac_monitor_figure figure[SAC_MONITOR_FIGURES];
    struct sac_monitor_event  event[SAC_MONITOR_EVENTS];
};

static void read_text(struct sac_json_reader *r, char *buf, size_t size)
{
    size_t      length;
    const char *text = NULL;
    if (sac_json_read_peek(r) == 'n')
        sac_json_read_skip(r);
    else
        text = sac_json_read_string(r, &length);
    snprintf(buf, size, "%s", text ? text : "");
}

/* null: not known. */
static double read_amount(struct sac_json_reader *r)
{
    if (sac_json_read_peek(r) != 'n')
        return sac_json_read_number(r);
    sac_json_read_skip(r);
    return NAN;
}

static void read_figure(struct sac_json_reader *r, struct sac_monitor_figure *f)
{
    const struct {
        const char *key;
        double     *at;
    } numbers[] = {{"now", &f->now},
                   {"mean_1m", &f->mean_1m},
                   {"mean_5m", &f->mean_5m},
                   {"least", &f->least},
                   {"most", &f->most}};
    if (!sac_json_read_open(r, '{'))
        return;
    while (sac_json_read_member(r)) {
        size_t i = 0;
        while (i < SAC_COUNT(numbers) && strcmp(r->key, numbers[i].key) != 0)
            i++;
        if (i < SAC_COUNT(numbers))
            *numbers[i].at = read_amount(r);
        else if (strcmp(r->key, "name") == 0)
            read_text(r, f->name, sizeof f->name);
        else if (strcmp(r->key, "unit") == 0)
            read_text(r, f->unit, sizeof f->unit);
        else
            sac_json_read_skip(r);
    }
}

static void read_event(struct sac_json_reader *r, struct sac_monitor_event *e)
{
    char kind[16] = "";
    e->ended_s = -1;
    if (!sac_json_read_open(r, '{'))
        return;
    while (sac_json_read_member(r)) {
        if (strcmp(r->key, "figure") == 0)
            read_text(r, e->figure, sizeof e->figure);
        else if (strcmp(r->key, "kind") == 0)
            read_text(r, kind, sizeof kind);
        else if (strcmp(r->key, "text") == 0)
            read_text(r, e->text, sizeof e->text);
        else if (strcmp(r->key, "begun_s") == 0)
            e->begun_s = sac_json_read_number(r);
        else if (strcmp(r->key, "ended_s") == 0) {
            const double ended = read_amount(r);
            e->ended_s = isnan(ended) ? -1 : ended;
        } else if (strcmp(r->key, "before") == 0)
            e->before = read_amount(r);
        else if (strcmp(r->key, "after") == 0)
            e->after = read_amount(r);
        else
            sac_json_read_skip(r);
    }
    e->kind = strcmp(kind, sac_monitor_kind_name(SAC_MONITOR_ANOMALY)) == 0 ? SAC_MONITOR_ANOMALY
                                                                            : SAC_MONITOR_WARNING;
}

static void read_figures(struct sac_json_reader *r, struct listed *l)
{
    if (!sac_json_read_open(r, '['))
        return;
    while (sac_json_read_element(r)) {
        if (l->run.figure_count == SAC_MONITOR_FIGURES)
            sac_json_read_skip(r);
        else
            read_figure(r, &l->figure[l->run.figure_count++]);
    }
}

static void read_events(struct sac_json_reader *r, struct listed *l)
{
    if (!sac_json_read_open(r, '['))
        return;
    while (sac_json_read_element(r)) {
        if (l->run.event_count == SAC_MONITOR_EVENTS)
            sac_json_read_skip(r);
        else
            read_event(r, &l->event[l->run.event_count++]);
    }
}

static bool read_run(struct sac_json_reader *r, struct listed *l)
{
    char format[32] = "";
    int  version = 0;
    if (!sac_json_read_open(r, '{'))
        return false;
    while (sac_json_read_member(r)) {
        if (strcmp(r->key, "format") == 0)
            read_text(r, format, sizeof format);
        else if (strcmp(r->key, "version") == 0)
            version = sac_json_read_number(r) == FORMAT_VERSION;
        else if (strcmp(r->key, "title") == 0)
            read_text(r, l->run.title, sizeof l->run.title);
        else if (strcmp(r->key, "written_ms") == 0)
            l->written_ms = sac_json_read_number(r);
        else if (strcmp(r->key, "elapsed_s") == 0)
            l->run.elapsed_s = sac_json_read_number(r);
        else if (strcmp(r->key, "cost") == 0)
            l->run.cost = sac_json_read_number(r);
        else if (strcmp(r->key, "figures") == 0)
            read_figures(r, l);
        else if (strcmp(r->key, "events") == 0)
            read_events(r, l);
        else
            sac_json_read_skip(r);
    }
    return sac_json_read_end(r) == SAC_OK && version && strcmp(format, "saccade-run") == 0;
}

static char *load(const char *path, size_t *size)
{
    const int   fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    char       *text = NULL;
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
        st.st_size <= FILE_SIZE_MAX && (text = sac_alloc((size_t)st.st_size))) {
        const ssize_t n = read(fd, text, (size_t)st.st_size);
        *size = n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0)
        close(fd);
    return text;
}

static bool has_ended(int pid)
{
    return kill(pid, 0) != 0 && errno == ESRCH;
}

static bool read_file(const char *path, int pid, struct listed *l)
{
    struct sac_json_reader reader = {.name = path};
    size_t                 size = 0;
    char                  *text = load(path, &size);
    *l = (struct listed){.run = {.pid = pid, .figures = l->figure, .events = l->event}};
    if (!text)
        return false;
    sac_json_read_begin(&reader, text, size);
    const bool whole = read_run(&reader, l);
    sac_json_read_finish(&reader);
    sac_free(text);
    l->run.silent_s = SAC_MAX(((double)unix_ms() - l->written_ms) * 1e-3, 0);
    return whole;
}

/* "12.json", "12-1.json": the process, 0: it is another file. part: one that was not finished. */
static int read_name(const char *name, bool *part)
{
    char      *end;
    const long pid = strtol(name, &end, 10);
    if (*end == '-')
        strtoul(end + 1, &end, 10);
    *part = strcmp(end, ".json.part") == 0;
    return pid > 0 && pid <= INT32_MAX && (*part || strcmp(end, ".json") == 0) ? (int)pid : 0;
}

sac_result sac_monitor_list_runs(sac_context *ctx,
                                 void (*fn)(void *user, const struct sac_monitor_run *run),
                                 void *user)
{
    char folder[256], path[600];
    SAC_NEEDS(ctx, fn);
    struct listed *listed = sac_new(struct listed);
    if (!listed)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a list of runs");
    DIR *dir = sac_published_folder(folder, sizeof folder) ? opendir(folder) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        bool      part;
        const int pid = read_name(e->d_name, &part);
        if (!pid)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (has_ended(pid))
            unlink(path);
        else if (!part && read_file(path, pid, listed))
            fn(user, &listed->run);
    }
    if (dir)
        closedir(dir);
    sac_free(listed);
    return SAC_OK;
}
