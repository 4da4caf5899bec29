/* SPDX-License-Identifier: Apache-2.0 */
/* saccade monitor: the machine, its GPUs and the runs of saccade on it, drawn again after each
 * interval. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <saccade/monitor.h>

#include "term.h"
#include "verbs.h"
#include "wrap.h"

struct board {
    const struct settings *settings;
    sac_context           *ctx;
    sac_monitor           *monitor;
    FILE                  *out;  /* of the text */
    struct sac_text        text; /* of the JSON */
    struct sac_json        json;
    int                    runs;
    double                 begun_s, cpu_s; /* when its work began, after the start of the program */
};

static double clock_s(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* All that this process does, as a share of one core. */
static double cost_of(const struct board *b)
{
    const double past = clock_s(CLOCK_MONOTONIC) - b->begun_s;
    return past > 0 ? (clock_s(CLOCK_PROCESS_CPUTIME_ID) - b->cpu_s) / past : 0;
}

/* ---- JSON ---- */

static void json_figure(struct sac_json *json, const struct sac_monitor_figure *f)
{
    const struct {
        const char *key;
        double      value;
    } numbers[] = {{"now", f->now},
                   {"mean_1m", f->mean_1m},
                   {"mean_5m", f->mean_5m},
                   {"least", f->least},
                   {"most", f->most}};
    sac_json_open(json, NULL, '{');
    sac_json_string(json, "name", f->name);
    sac_json_string(json, "unit", f->unit[0] ? f->unit : NULL);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sac_json_real(json, numbers[i].key, numbers[i].value);
    sac_json_close(json, '}');
}

static void json_event(struct sac_json *json, const struct sac_monitor_event *e)
{
    sac_json_open(json, NULL, '{');
    sac_json_string(json, "kind", sac_monitor_kind_name(e->kind));
    sac_json_string(json, "figure", e->figure);
    sac_json_real(json, "begun_s", e->begun_s);
    if (e->ended_s < 0)
        sac_json_null(json, "ended_s");
    else
        sac_json_real(json, "ended_s", e->ended_s);
    sac_json_real(json, "before", e->before);
    sac_json_real(json, "after", e->after);
    sac_json_string(json, "text", e->text);
    sac_json_close(json, '}');
}

static void json_process(struct sac_json *json, const struct sac_monitor_process *p)
{
    sac_json_open(json, NULL, '{');
    sac_json_int(json, "pid", p->pid);
    sac_json_string(json, "name", p->name[0] ? p->name : NULL);
    if (p->memory_bytes)
        sac_json_int(json, "memory_bytes", (int64_t)p->memory_bytes);
    else
        sac_json_null(json, "memory_bytes");
    sac_json_close(json, '}');
}

/* Of each GPU a list. */
static void json_processes(struct board *b)
{
    struct sac_monitor_process list[SAC_MONITOR_PROCESSES_MAX];
    sac_json_open(&b->json, "processes", '[');
    for (int gpu = 0; sac_monitor_gpu_name(b->monitor, gpu); gpu++) {
        const int n = sac_monitor_get_processes(b->monitor, gpu, list, SAC_MONITOR_PROCESSES_MAX);
        sac_json_open(&b->json, NULL, '[');
        for (int i = 0; i < n; i++)
            json_process(&b->json, &list[i]);
        sac_json_close(&b->json, ']');
    }
    sac_json_close(&b->json, ']');
}

static void json_machine(struct board *b)
{
    struct sac_monitor_figure figure;
    struct sac_monitor_event  event;
    sac_json_open(&b->json, "machine", '{');
    sac_json_open(&b->json, "gpus", '[');
    for (int i = 0; sac_monitor_gpu_name(b->monitor, i); i++)
        sac_json_string(&b->json, NULL, sac_monitor_gpu_name(b->monitor, i));
    sac_json_close(&b->json, ']');
    json_processes(b);
    sac_json_open(&b->json, "figures", '[');
    for (int i = 0; sac_monitor_get_figure(b->monitor, i, &figure) == SAC_OK; i++)
        json_figure(&b->json, &figure);
    sac_json_close(&b->json, ']');
    sac_json_open(&b->json, "events", '[');
    for (int i = 0; sac_monitor_get_event(b->monitor, i, &event) == SAC_OK; i++)
        json_event(&b->json, &event);
    sac_json_close(&b->json, ']');
    sac_json_close(&b->json, '}');
}

static void json_run(void *user, const struct sac_monitor_run *run)
{
    struct board *b = user;
    sac_json_open(&b->json, NULL, '{');
    sac_json_int(&b->json, "pid", run->pid);
    sac_json_string(&b->json, "title", run->title);
    sac_json_real(&b->json, "elapsed_s", run->elapsed_s);
    sac_json_real(&b->json, "silent_s", run->silent_s);
    sac_json_real(&b->json, "cost", run->cost);
    sac_json_open(&b->json, "figures", '[');
    for (int i = 0; i < run->figure_count; i++)
        json_figure(&b->json, &run->figures[i]);
    sac_json_close(&b->json, ']');
    sac_json_open(&b->json, "events", '[');
    for (int i = 0; i < run->event_count; i++)
        json_event(&b->json, &run->events[i]);
    sac_json_close(&b->json, ']');
    sac_json_close(&b->json, '}');
}

static int show_json(struct board *b, struct fault *fault)
{
    b->text = (struct sac_text){0};
    b->json = (struct sac_json){.text = &b->text};
    sac_json_open(&b->json, NULL, '{');
    json_machine(b);
    sac_json_open(&b->json, "runs", '[');
    sac_result res = sac_monitor_list_runs(b->ctx, json_run, b);
    sac_json_close(&b->json, ']');
    sac_json_real(&b->json, "cost", cost_of(b));
    sac_json_close(&b->json, '}');
    int status = print_json(&b->json, fault);
    return res == SAC_OK ? status : fault_library(fault, b->ctx, res);
}

/* ---- text ---- */

/* 80 columns: a long unit stands once, behind the name. */
static void print_figure(const struct board *b, const struct sac_monitor_figure *f)
{
    const double values[] = {f->now, f->mean_1m, f->mean_5m, f->least, f->most};
    const bool   apart = strlen(f->unit) > 5;
    char         name[48], text[32];
    snprintf(name, sizeof name, "%.30s%s%.12s", f->name, apart ? ", " : "", apart ? f->unit : "");
    fprintf(b->out, "  %-22s", name);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        sac_monitor_format(values[i], apart ? "" : f->unit, text, sizeof text);
        fprintf(b->out, " %10s", text);
    }
    fputc('\n', b->out);
}

static void print_head(const struct board *b)
{
    fprintf(b->out, "  %-22s %10s %10s %10s %10s %10s\n", "", "now", "1 min", "5 min", "least",
            "most");
}

/* The latest first; what is over is shown for a while in case nobody looked. */
static void print_event(const struct board *b, const struct sac_monitor_event *e, double now_s)
{
    enum { SHOWN_S = 120 };
    char text[400];
    if (e->ended_s >= 0 && now_s - e->ended_s > SHOWN_S)
        return;
    if (e->ended_s < 0)
        snprintf(text, sizeof text, "  %s, for %.0f s: %s", sac_monitor_kind_name(e->kind),
                 now_s - e->begun_s, e->text);
    else
        snprintf(text, sizeof text, "  over since %.0f s: %s", now_s - e->ended_s, e->text);
    print_clean(b->out, text);
    fputc('\n', b->out);
}

/* "gpu0 is a NVIDIA H100", and below it the processes that hold the most of its memory. */
static void print_card(struct board *b, int gpu)
{
    enum { SHOWN_MAX = 5 };
    struct sac_monitor_process list[SHOWN_MAX];
    const int                  n = sac_monitor_get_processes(b->monitor, gpu, list, SHOWN_MAX);
    char                       memory[32];
    fprintf(b->out, "  gpu%d is a %s\n", gpu, sac_monitor_gpu_name(b->monitor, gpu));
    for (int i = 0; i < n; i++) {
        sac_monitor_format(list[i].memory_bytes ? (double)list[i].memory_bytes : NAN, "bytes",
                           memory, sizeof memory);
        fprintf(b->out, "    process %-10d %-24s %14s\n", list[i].pid, list[i].name, memory);
    }
}

static void print_machine(struct board *b)
{
    struct sac_monitor_figure figure;
    struct sac_monitor_event  event;
    fputs("machine\n", b->out);
    print_head(b);
    for (int i = 0; sac_monitor_get_figure(b->monitor, i, &figure) == SAC_OK; i++)
        print_figure(b, &figure);
    for (int i = 0; sac_monitor_gpu_name(b->monitor, i); i++)
        print_card(b, i);
    if (!sac_monitor_gpu_name(b->monitor, 0))
        fputs("  no GPU: NVML, or a card, was not found\n", b->out);
    for (int i = sac_monitor_event_count(b->monitor) - 1; i >= 0; i--)
        if (sac_monitor_get_event(b->monitor, i, &event) == SAC_OK)
            print_event(b, &event, clock_s(CLOCK_MONOTONIC) - b->begun_s);
}

/* Figures that were always 0 only fill the screen. */
static void print_run(void *user, const struct sac_monitor_run *run)
{
    struct board *b = user;
    char          title[320];
    snprintf(title, sizeof title, "\nrun %d: %s, for %.0f s%s", run->pid, run->title,
             run->elapsed_s, run->silent_s > 10 ? " (not heard of for more than 10 s)" : "");
    fputc('\n', b->out);
    print_clean(b->out, title + 1);
    fputc('\n', b->out);
    print_head(b);
    for (int i = 0; i < run->figure_count; i++)
        if (run->figures[i].most > 0)
            print_figure(b, &run->figures[i]);
    for (int i = run->event_count - 1; i >= 0; i--)
        print_event(b, &run->events[i], run->elapsed_s);
    fprintf(b->out, "  its monitor takes %.2f %% of one core\n", 100 * run->cost);
    b->runs++;
}

static sac_result print_all(struct board *b)
{
    b->runs = 0;
    print_machine(b);
    sac_result res = sac_monitor_list_runs(b->ctx, print_run, b);
    if (!b->runs)
        fputs("\nno run of saccade that can be seen\n", b->out);
    fprintf(b->out, "\nthis monitor takes %.2f %% of one core\n", 100 * cost_of(b));
    return res;
}

/* A terminal's window shows the beginning, and says what it has no room for. */
static void draw(const char *text, int rows)
{
    const char *end = text;
    int         lines = 0, more = 0;
    for (; *end && lines < rows - 2; lines++)
        end = strchr(end, '\n') + 1;
    for (const char *at = end; (at = strchr(at, '\n')); at++)
        more++;
    fputs("\033[H\033[2J", stdout);
    if (more > 1) {
        fwrite(text, 1, (size_t)(end - text), stdout);
        printf("%d more lines: a higher window shows them, or --once\n", more);
    } else
        fputs(text, stdout);
}

static int show_text(struct board *b, struct fault *fault)
{
    const char *kind = getenv("TERM");
    const bool  draws =
        !b->settings->once && isatty(STDOUT_FILENO) && kind && strcmp(kind, "dumb") != 0;
    struct winsize window = {0};
    char          *text = NULL;
    size_t         size;
    b->out = draws ? open_memstream(&text, &size) : stdout;
    if (!b->out)
        return fault_failure(fault, "out of memory");
    sac_result res = print_all(b);
    if (draws && fclose(b->out) != 0) {
        free(text);
        return fault_failure(fault, "out of memory");
    }
    if (draws) {
        const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > 2;
        draw(text, known ? window.ws_row : INT_MAX);
    }
    free(text);
    return res == SAC_OK ? STATUS_OK : fault_library(fault, b->ctx, res);
}

/* ---- the verb ---- */

static void pause_ms(int ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static char output[1 << 20]; /* some thirty watched runs; glibc takes no size without memory */

/* Main would find the buffer empty, and not know why. A reader that has left is no fault. */
static int flush(struct fault *fault)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return STATUS_OK;
    return errno == EPIPE ? STATUS_FAILURE
                          : fault_failure(fault, "cannot write standard output: %s",
                                          strerror(errno ? errno : EIO));
}

/* Loads are those since the sample before, so the first one shows nothing yet. */
static int watch(struct board *b, struct fault *fault)
{
    const bool once = b->settings->once;
    const int  interval_ms = b->settings->monitor.interval_ms;
    int        status = STATUS_OK;
    sac_monitor_sample(b->monitor);
    do {
        pause_ms(interval_ms);
        sac_monitor_sample(b->monitor);
        status = b->settings->json ? show_json(b, fault) : show_text(b, fault);
        if (status == STATUS_OK)
            status = flush(fault);
    } while (!once && status == STATUS_OK);
    return status;
}

int verb_monitor(struct settings *s, struct fault *fault)
{
    struct board b = {.settings = s,
                      .begun_s = clock_s(CLOCK_MONOTONIC),
                      .cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID)};
    int          status = term_context(s, &b.ctx, fault);
    if (status != STATUS_OK)
        return status;
    setvbuf(stdout, output, _IOFBF, sizeof output); /* a failure is then flush's: it knows why */
    sac_result res = sac_monitor_create(b.ctx, &s->monitor, &b.monitor);
    status = res == SAC_OK ? watch(&b, fault) : fault_library(fault, b.ctx, res);
    sac_monitor_destroy(&b.monitor);
    sac_context_destroy(&b.ctx);
    return status;
}
