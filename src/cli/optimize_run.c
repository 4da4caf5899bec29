/* SPDX-License-Identifier: Apache-2.0 */
/* A run of the program for saccade optimize: a process of its own, so that its memory is its own
 * and what it exhausts is given back, and so that it is the very run that the settings are for. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <saccade/eval.h>

#include "interrupt.h"
#include "optimize.h"
#include "yaml_tree.h"

enum { NAME_SIZE = 384, ARGUMENTS_OWN = 24, POLL_NS = 10000000 };

/* ---- the folder ---- */

int optimize_runner_init(struct optimize_runner *r, struct fault *fault)
{
    const char *folder = getenv("TMPDIR");
    snprintf(r->folder, sizeof r->folder, "%.200s/saccade-optimize-XXXXXX",
             folder && *folder ? folder : "/tmp");
    if (mkdtemp(r->folder))
        return STATUS_OK;
    fault_failure(fault, "'%s': no folder for the runs: %s", r->folder, strerror(errno));
    r->folder[0] = '\0';
    return STATUS_FAILURE;
}

void optimize_runner_finish(struct optimize_runner *r)
{
    struct dirent *entry;
    DIR           *dir = r->folder[0] ? opendir(r->folder) : NULL;
    while (dir && (entry = readdir(dir)))
        unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    if (r->folder[0])
        rmdir(r->folder);
    r->folder[0] = '\0';
}

static void name_in(const struct optimize_runner *r, const char *name, char *out)
{
    snprintf(out, NAME_SIZE, "%s/%.64s", r->folder, name);
}

/* ---- what the run is told ---- */

static void put_own_keys(const struct optimize_runner *r, FILE *out)
{
    fprintf(out, "monitor:\n  enabled: true\n  interval_ms: 200\n");
    if (r->duration_s > 0 || r->realtime)
        fputs("input:\n", out);
    if (r->duration_s > 0)
        fprintf(out, "  duration: %.6f\n", r->duration_s);
    if (r->realtime)
        fputs("  realtime: true\n", out);
}

static int write_config(const struct optimize_runner *r, const struct optimize_knob *knobs,
                        int count, const int *point, const char *path, struct fault *fault)
{
    struct settings s = *r->settings; /* texts are borrowed; no list is added to */
    const int       status = knobs ? optimize_apply(&s, knobs, count, point, fault) : STATUS_OK;
    FILE           *out = status == STATUS_OK ? fopen(path, "we") : NULL;
    if (status != STATUS_OK)
        return status;
    if (out) {
        optimize_put_settings(&s, r->segments, true, out);
        put_own_keys(r, out);
    }
    if (!out || fclose(out) != 0)
        return fault_failure(fault, "'%s' can't be written: %s", path, strerror(errno));
    return STATUS_OK;
}

/* ---- the process ---- */

struct child {
    char         config[NAME_SIZE], stats[NAME_SIZE], log[NAME_SIZE], results[NAME_SIZE];
    const char **argv; /* owned; the texts are borrowed */
    pid_t        pid;
    bool         too_long;
};

/* A file's results, or none. */
static void add_output(const struct optimize_runner *r, struct child *c, bool kept, const char **at)
{
    if (kept && r->segments) {
        const char *const mask[] = {"--output", c->results, "--as", "mask", "--encoder", "ffv1"};
        memcpy(at, mask, sizeof mask);
    } else if (kept) {
        const char *const mot[] = {"--jsonl", "none", "--mot", c->results};
        memcpy(at, mot, sizeof mot);
    } else if (r->settings->optimize.encodes) {
        name_in(r, "{index}.mkv", c->results);
        at[0] = "--output";
        at[1] = c->results;
    } else {
        at[0] = r->segments ? "--output" : "--jsonl";
        at[1] = "none";
    }
}

static int fill_arguments(const struct optimize_runner *r, struct child *c, int streams, bool kept,
                          struct fault *fault)
{
    const int    given = (int)r->inputs.count, count = r->pictures ? given
                                                       : kept      ? 1
                                                       : streams   ? streams
                                                                   : given;
    const char **at = c->argv = calloc((size_t)count + ARGUMENTS_OWN, sizeof *c->argv);
    const char  *own[] = {"saccade",      r->segments ? "segment" : "track",
                          "--config",     c->config,
                          "--stats",      c->stats,
                          "--log-level",  "error",
                          "--no-progress"};
    if (!at)
        return fault_failure(fault, "out of memory");
    memcpy(at, own, sizeof own);
    at += sizeof own / sizeof own[0];
    add_output(r, c, kept, at);
    while (*at)
        at++;
    *at++ = "--";
    for (int i = 0; i < count; i++)
        at[i] = r->inputs.items[i % given];
    return STATUS_OK;
}

/* In the child: only what is async-signal-safe. It ends with its parent, and where memory runs out
 * the system takes it first. */
static void become_program(const struct child *c, pid_t parent)
{
    const int log = open(c->log, O_WRONLY | O_CREAT | O_TRUNC, 0600),
              none = open("/dev/null", O_RDWR);
    const int first = open("/proc/self/oom_score_adj", O_WRONLY);
    if (first >= 0 && write(first, "1000", 4) == 4)
        close(first);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || log < 0 || none < 0)
        _exit(127);
    dup2(none, STDIN_FILENO);
    dup2(none, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execv("/proc/self/exe", (char *const *)c->argv);
    _exit(127);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Returns the status as waitpid has it. */
static int wait_for(struct child *c, double limit_s)
{
    const struct timespec pause = {.tv_nsec = POLL_NS};
    const double          begun = now_s();
    bool                  told = false;
    int                   status = 0;
    while (waitpid(c->pid, &status, WNOHANG) == 0) {
        if (interrupt_came() && !told) {
            kill(c->pid, SIGTERM);
            told = true;
        }
        if (now_s() - begun > limit_s && !c->too_long) {
            c->too_long = true;
            kill(c->pid, SIGKILL);
        }
        nanosleep(&pause, NULL);
    }
    return status;
}

static int start(struct child *c, struct fault *fault)
{
    const pid_t parent = getpid();
    c->pid = fork();
    if (c->pid < 0)
        return fault_failure(fault, "no process for a run: %s", strerror(errno));
    if (c->pid == 0)
        become_program(c, parent);
    return STATUS_OK;
}

/* ---- what it showed ---- */

static double mean_of_figure(yaml_document_t *doc, const char *name)
{
    yaml_node_t *root = yaml_document_get_root_node(doc),
                *list = yaml_member(doc, yaml_member(doc, root, "monitor"), "figures");
    if (!list || list->type != YAML_SEQUENCE_NODE)
        return (double)NAN;
    for (yaml_node_item_t *i = list->data.sequence.items.start; i < list->data.sequence.items.top;
         i++) {
        yaml_node_t *figure = yaml_document_get_node(doc, *i);
        const char  *has = yaml_text(doc, figure, "name");
        if (has && strcmp(has, name) == 0)
            return yaml_number(doc, figure, "mean_1m");
    }
    return (double)NAN;
}

/* What the decoders of a GPU hold is not in its pool. */
static double surfaces_of(yaml_document_t *doc, yaml_node_t *streams)
{
    double sum = 0;
    if (!streams || streams->type != YAML_SEQUENCE_NODE)
        return 0;
    for (yaml_node_item_t *i = streams->data.sequence.items.start;
         i < streams->data.sequence.items.top; i++) {
        const double bytes = yaml_number(doc, yaml_document_get_node(doc, *i), "surface_bytes");
        sum += isfinite(bytes) ? bytes : 0;
    }
    return sum;
}

static double machine_bytes(void)
{
    return (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
}

static void read_memory(yaml_document_t *doc, yaml_node_t *root, struct optimize_figures *f)
{
    yaml_node_t *gpu = yaml_member(doc, root, "gpu");
    f->memory_bytes = yaml_number(doc, root, "rss_peak_bytes");
    f->memory_share = f->memory_bytes / machine_bytes();
    f->on_gpu = gpu && gpu->type == YAML_MAPPING_NODE;
    if (!f->on_gpu)
        return;
    f->memory_bytes = yaml_number(doc, yaml_member(doc, root, "pool"), "bytes_peak") +
                      surfaces_of(doc, yaml_member(doc, root, "streams"));
    f->memory_share =
        yaml_number(doc, gpu, "memory_peak_bytes") / yaml_number(doc, gpu, "memory_total_bytes");
}

static void copy_text(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text ? text : "");
}

static void read_figures(yaml_document_t *doc, struct optimize_figures *f)
{
    yaml_node_t *root = yaml_document_get_root_node(doc), *gpu = yaml_member(doc, root, "gpu"),
                *neck = yaml_member(doc, root, "bottleneck"),
                *advice = yaml_member(doc, root, "advice");
    f->fps = yaml_number(doc, root, "fps");
    f->latency_ms = yaml_number(doc, yaml_member(doc, root, "latency"), "p95_ms");
    f->batch = yaml_number(doc, yaml_member(doc, root, "batches"), "max");
    f->reid = yaml_text(doc, root, "reid") && strcmp(yaml_text(doc, root, "reid"), "null") != 0;
    f->cpu = mean_of_figure(doc, "cpu");
    f->others = mean_of_figure(doc, "cpu of others");
    f->watts = mean_of_figure(doc, "gpu0 power");
    f->gpu = yaml_number(doc, gpu, "utilisation");
    f->decoder = yaml_number(doc, gpu, "decoder_load");
    f->encoder = yaml_number(doc, gpu, "encoder_load");
    read_memory(doc, root, f);
    copy_text(f->bottleneck, sizeof f->bottleneck, yaml_text(doc, neck, "stage"));
    copy_text(f->why, sizeof f->why, yaml_text(doc, neck, "why"));
    if (advice && advice->type == YAML_SEQUENCE_NODE &&
        advice->data.sequence.items.start < advice->data.sequence.items.top) {
        const yaml_node_t *node = yaml_document_get_node(doc, *advice->data.sequence.items.start);
        if (node->type == YAML_SCALAR_NODE)
            copy_text(f->advice, sizeof f->advice, (const char *)node->data.scalar.value);
    }
    f->ok = f->fps > 0;
    if (!f->ok)
        copy_text(f->why, sizeof f->why, "the run was too short to have a frame rate");
}

/* The last line of its standard error, without the program's name. */
static void read_fault(const struct child *c, int status, struct optimize_figures *f)
{
    static const char own[] = "saccade: ";
    char              line[sizeof f->why];
    FILE             *log = fopen(c->log, "re");
    while (log && fgets(line, sizeof line, log)) {
        line[strcspn(line, "\n")] = '\0';
        copy_text(f->why, sizeof f->why,
                  strncmp(line, own, sizeof own - 1) == 0 ? line + sizeof own - 1 : line);
    }
    if (log)
        fclose(log);
    if (c->too_long)
        snprintf(f->why, sizeof f->why, "it took longer than there was time for");
    else if (WIFSIGNALED(status))
        snprintf(f->why, sizeof f->why, "it was ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
}

static void read_outcome(const struct child *c, int status, struct optimize_figures *f)
{
    yaml_document_t doc;
    if (!c->too_long && WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
        yaml_tree_read(c->stats, &doc)) {
        read_figures(&doc, f);
        yaml_document_delete(&doc);
    } else
        read_fault(c, status, f);
}

int optimize_run(struct optimize_runner *r, const struct optimize_knob *knobs, int count,
                 const int *point, int streams, const char *kept, struct optimize_figures *out,
                 struct fault *fault)
{
    struct child c = {0};
    *out = (struct optimize_figures){0};
    name_in(r, "run.yaml", c.config);
    name_in(r, "stats.json", c.stats);
    name_in(r, "log", c.log);
    name_in(r, kept ? kept : "", c.results);
    unlink(c.stats);
    const double begun = now_s();
    int          status = write_config(r, knobs, count, point, c.config, fault);
    if (status == STATUS_OK)
        status = fill_arguments(r, &c, streams, kept != NULL, fault);
    if (status == STATUS_OK)
        status = start(&c, fault);
    if (status == STATUS_OK) {
        const int ended = wait_for(&c, r->limit_s);
        out->wall_s = now_s() - begun;
        read_outcome(&c, ended, out);
        status = interrupt_came() ? STATUS_INTERRUPTED : STATUS_OK;
    }
    free(c.argv);
    return status;
}

/* ---- results beside each other ---- */

static sac_result tracks_agree(sac_context *ctx, const char *reference, const char *path,
                               double *out)
{
    struct sac_mot_file    truth = {0}, found = {0};
    struct sac_eval_params params = sac_eval_params_default();
    struct sac_eval_result scores;
    sac_result             res = sac_mot_read(ctx, reference, &truth);
    params.preprocess = 0;
    for (size_t i = 0; i < truth.count; i++)
        truth.rows[i].conf = 1; /* of ground truth it says whether a row counts */
    if (res == SAC_OK)
        res = sac_mot_read(ctx, path, &found);
    if (res == SAC_OK)
        res = sac_eval_sequence(ctx, "runs", &truth, &found, &params, &scores);
    if (res == SAC_OK)
        *out = truth.count ? scores.mota : found.count == 0;
    sac_mot_finish(&truth);
    sac_mot_finish(&found);
    return res;
}

static sac_result masks_agree(sac_context *ctx, const char *reference, const char *path,
                              double *out)
{
    sac_mask_report *report = NULL;
    const sac_result res = sac_mask_evaluate(ctx, reference, path, NULL, &report);
    if (res == SAC_OK)
        *out = sac_mask_report_combined(report)->iou;
    sac_mask_report_destroy(&report);
    return res;
}

int optimize_agreement(struct optimize_runner *r, const char *reference, const char *kept,
                       double *out, struct fault *fault)
{
    char a[NAME_SIZE], b[NAME_SIZE];
    name_in(r, reference, a);
    name_in(r, kept, b);
    const sac_result res = (r->segments ? masks_agree : tracks_agree)(r->ctx, a, b, out);
    return res == SAC_OK ? STATUS_OK : fault_library(fault, r->ctx, res);
}
