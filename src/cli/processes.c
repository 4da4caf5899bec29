/* SPDX-License-Identifier: Apache-2.0 */
#include "processes.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "interrupt.h"
#include "outputs.h"
#include "term.h"
#include "wrap.h"

enum { POLL_NS = 10000000, PROGRESS_TURNS = 20, CHUNK = 16384 };

/* ---- what goes together ---- */

/* A file has an end, and as many processes may read one. */
static int check_input(const char *input, struct fault *fault)
{
    struct stat about;
    const bool  odd =
        is_standard(input) || strstr(input, "://") ||
        (stat(input, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode));
    return odd ? fault_usage(fault, "--processes takes files, and '%s' is none; leave it out",
                             input)
               : STATUS_OK;
}

int processes_check(struct settings *s, const struct inputs *inputs, struct fault *fault)
{
    const char *device = s->run.job.device;
    if (s->processes < 2)
        return STATUS_OK;
    if (s->profile)
        return fault_usage(fault, "profile is of one process; leave --processes out");
    if (s->gpus || (strcmp(device, "auto") != 0 && strcmp(device, "cpu") != 0))
        return fault_usage(fault,
                           "--processes and --%s %s exclude each other: on a GPU one process has "
                           "the inputs in one batch",
                           s->gpus ? "gpus" : "device", s->gpus ? s->gpus : device);
    if (s->run.job.stats_out || s->run.job.trace_out)
        return fault_usage(fault,
                           "%s '%s' is one file of one process; with --processes leave it out, or "
                           "run the inputs one by one",
                           s->run.job.stats_out ? "--stats" : "--trace",
                           s->run.job.stats_out ? s->run.job.stats_out : s->run.job.trace_out);
    int status = STATUS_OK;
    for (size_t i = 0; i < inputs->count && status == STATUS_OK; i++)
        if (inputs->streams[i].input)
            status = check_input(inputs->streams[i].input, fault);
    s->run.job.device = "cpu";
    return status;
}

int processes_threads(const struct settings *s)
{
    cpu_set_t set;
    const int given = s->run.job.device_params.threads;
    const int cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return given ? given : cpus > s->processes ? cpus / s->processes : 1;
}

/* ---- the processes ---- */

struct worker {
    pid_t  pid;      /* 0: none that runs */
    int    messages; /* what it printed: a file in memory, which it writes and this process reads */
    bool   begun, ended, failed;
    int    status; /* of waitpid */
    off_t  shown;
    char  *text; /* once it has ended: all of it; owned */
    size_t length;
};

struct pool {
    struct settings *settings;
    struct inputs   *inputs;
    sac_context     *ctx;
    processes_work  *work;
    struct worker   *workers; /* one for each input */
    size_t           next, running, done, failed, head;
    size_t           first;   /* that failed */
    int              told;    /* interrupts that were handed on */
    bool             refused; /* the options are wrong, whatever the input */
};

/* In the child. Ctrl-C reaches the parent alone, which hands it on. */
static void become_worker(struct pool *p, size_t i, pid_t parent)
{
    struct settings  *s = p->settings;
    struct fault      fault = {0};
    const int         none = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct inputs     one = {.streams = &p->inputs->streams[i], .count = 1};
    const char *const input = one.streams->input;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    dup2(none, STDIN_FILENO);
    dup2(p->workers[i].messages, STDERR_FILENO);
    term_forget();
    interrupt_forget();
    interrupt_stops();
    interrupt_release();
    if (getppid() != parent)
        _exit(STATUS_FAILURE);
    s->progress = false;
    s->args =
        (struct text_list){.items = (const char **)&one.streams->input, .count = input != NULL};
    s->run.detections = one.streams->detections;
    for (size_t k = 0; k < output_kind_count; k++)
        output_set(&output_kinds[k], s, *output_in_stream(&output_kinds[k], one.streams));
    const int status = p->work(s, &one, p->ctx, &fault);
    if (fault.sentence[0]) {
        fputs("saccade: ", stderr);
        print_clean(stderr, fault.sentence);
        fputc('\n', stderr);
    }
    fflush(NULL);
    _exit(status);
}

/* False: there can be no more now; errno says why. */
static bool start(struct pool *p)
{
    struct worker *w = &p->workers[p->next];
    const pid_t    parent = getpid();
    w->messages = memfd_create("saccade: messages", MFD_CLOEXEC);
    if (w->messages < 0)
        return false;
    fflush(NULL);
    interrupt_hold();
    w->pid = fork();
    if (w->pid == 0)
        become_worker(p, p->next, parent);
    const int err = errno;
    interrupt_release();
    if (w->pid < 0) {
        close(w->messages);
        w->pid = 0;
        errno = err;
        return false;
    }
    w->begun = true;
    p->next++;
    p->running++;
    return true;
}

static bool is_wanted(const struct pool *p)
{
    return p->next < p->inputs->count && !interrupt_came() && !p->refused;
}

static int start_more(struct pool *p, struct fault *fault)
{
    while (is_wanted(p) && p->running < (size_t)p->settings->processes)
        if (!start(p))
            return p->running ? STATUS_OK /* when one of them is done */
                              : fault_failure(fault, "no process for '%s': %s",
                                              p->inputs->streams[p->next].input, strerror(errno));
    return STATUS_OK;
}

/* The first asks them to complete their outputs, the second to end, one more makes them. */
static void hand_on_interrupts(struct pool *p)
{
    for (; p->told < interrupt_count(); p->told++)
        for (size_t i = 0; i < p->next; i++)
            if (p->workers[i].pid > 0)
                kill(p->workers[i].pid, p->told < 2 ? SIGINT : SIGKILL);
}

/* ---- what they print ---- */

static void show(struct worker *w, const char *text, size_t length)
{
    term_text(text, length);
    w->shown += (off_t)length;
}

/* Of one that runs: its whole lines so far. */
static void show_new(struct worker *w)
{
    char text[CHUNK];
    for (;;) {
        const ssize_t n = pread(w->messages, text, sizeof text, w->shown);
        const char   *end = n > 0 ? memrchr(text, '\n', (size_t)n) : NULL;
        if (n <= 0 || (!end && n < (ssize_t)sizeof text))
            return;
        show(w, text, end ? (size_t)(end - text) + 1 : (size_t)n);
    }
}

static void show_rest(struct worker *w)
{
    char    text[CHUNK];
    ssize_t n;
    while ((n = pread(w->messages, text, sizeof text, w->shown)) > 0)
        show(w, text, (size_t)n);
}

/* Of one that has ended before its turn to be shown: open files are few. Without memory for it its
 * turn is now. */
static void keep_rest(struct worker *w)
{
    struct stat about;
    if (fstat(w->messages, &about) == 0 && about.st_size > 0)
        w->text = malloc((size_t)about.st_size);
    const ssize_t n = w->text ? pread(w->messages, w->text, (size_t)about.st_size, 0) : 0;
    if (w->text && n > 0)
        w->length = (size_t)n;
    else
        show_rest(w);
    close(w->messages);
    w->messages = -1;
}

static void print_fault(const char *sentence)
{
    struct fault hidden; /* the input may be an address with a password */
    char         line[sizeof hidden.sentence + 16];
    fault_failure(&hidden, "%s", sentence);
    snprintf(line, sizeof line, "saccade: %s", hidden.sentence);
    term_line(line);
}

/* One that was killed could not say so itself. */
static void show_end(const struct pool *p, const struct worker *w)
{
    char sentence[512];
    if (!WIFSIGNALED(w->status))
        return;
    snprintf(sentence, sizeof sentence,
             "'%.300s': its process was ended by signal %d (%s), and what it had not finished is "
             "lost; the other inputs go on",
             p->inputs->streams[w - p->workers].input, WTERMSIG(w->status),
             strsignal(WTERMSIG(w->status)));
    print_fault(sentence);
}

/* All that has its turn. */
static void show_in_order(struct pool *p)
{
    while (p->head < p->next) {
        struct worker *w = &p->workers[p->head];
        if (!w->ended) {
            show_new(w);
            return;
        }
        if (w->text)
            show(w, w->text, w->length);
        show_end(p, w);
        free(w->text);
        w->text = NULL;
        p->head++;
    }
}

/* ---- the end of one ---- */

static void take_end(struct pool *p, size_t i)
{
    struct worker *w = &p->workers[i];
    w->pid = 0;
    w->ended = true;
    w->failed = !WIFEXITED(w->status) || WEXITSTATUS(w->status) != STATUS_OK;
    p->running--;
    p->done++;
    p->refused |= WIFEXITED(w->status) && WEXITSTATUS(w->status) == STATUS_USAGE;
    if (i == p->head) {
        show_rest(w);
        close(w->messages);
        w->messages = -1;
    } else {
        keep_rest(w);
    }
    if (!w->failed)
        return;
    p->first = !p->failed || i < p->first ? i : p->first;
    p->failed++;
}

static void reap(struct pool *p)
{
    for (size_t i = p->head; i < p->next; i++) {
        struct worker *w = &p->workers[i];
        if (w->pid > 0 && waitpid(w->pid, &w->status, WNOHANG) == w->pid)
            take_end(p, i);
    }
}

static void show_progress(const struct pool *p)
{
    char line[128];
    snprintf(line, sizeof line, "%zu of %zu inputs done, %zu running%s", p->done, p->inputs->count,
             p->running, interrupt_came() ? ", ending" : "");
    term_progress(line);
}

/* ---- the whole ---- */

static int sum_up(const struct pool *p, struct fault *fault)
{
    const struct worker *first = &p->workers[p->first];
    if (interrupt_came()) {
        fault_failure(fault,
                      "interrupted: %zu of %zu inputs are done; %zu were ended early, and %zu not "
                      "begun",
                      p->done - p->failed, p->inputs->count, p->failed, p->inputs->count - p->next);
        return STATUS_INTERRUPTED;
    }
    if (!p->failed)
        return STATUS_OK;
    fault_failure(fault, "%zu of %zu inputs failed, the first: '%s'", p->failed, p->inputs->count,
                  p->inputs->streams[p->first].input);
    if (p->refused && p->next < p->inputs->count)
        fault_failure(
            fault, "what '%s' was refused for is not its own; %zu of %zu inputs were not begun",
            p->inputs->streams[p->first].input, p->inputs->count - p->next, p->inputs->count);
    return WIFEXITED(first->status) ? WEXITSTATUS(first->status) : STATUS_FAILURE;
}

int processes_run(struct settings *s, struct inputs *inputs, sac_context *ctx, processes_work *work,
                  struct fault *fault)
{
    const struct timespec pause = {.tv_nsec = POLL_NS};
    const bool            shown = s->progress && term_is_terminal();
    struct pool           p = {.settings = s, .inputs = inputs, .ctx = ctx, .work = work};
    p.workers = calloc(inputs->count, sizeof *p.workers);
    if (!p.workers)
        return fault_failure(fault, "out of memory");
    interrupt_counts();
    int status = start_more(&p, fault);
    for (int turn = 0; status == STATUS_OK && (p.running > 0 || is_wanted(&p)); turn++) {
        if (shown && turn % PROGRESS_TURNS == 0)
            show_progress(&p);
        nanosleep(&pause, NULL);
        hand_on_interrupts(&p);
        reap(&p);
        show_in_order(&p);
        status = start_more(&p, fault);
    }
    if (shown)
        term_progress(NULL);
    if (status == STATUS_OK)
        status = sum_up(&p, fault);
    free(p.workers);
    return status;
}
