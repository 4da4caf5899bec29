/* SPDX-License-Identifier: Apache-2.0 */
/* saccade tune: the tracker's parameters searched against HOTA, each sequence scored with what the
 * others chose. */
#include "tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <saccade/files.h>

#include "interrupt.h"
#include "term.h"
#include "verbs.h"
#include "whole_file.h"

struct tuning {
    struct settings          *settings;
    sac_context              *ctx;
    struct truths             truths;
    struct tune_sequence      sequences[TUNE_SEQUENCES_MAX];
    struct sac_tracker_params baseline;
    struct tune_knob          knobs[TUNE_KNOBS];
    int                       knob_count;
    struct tune_search        search;
    struct tune_result        result;
    double                    begun_s;
    bool                      out_of_time;
    struct fault             *fault;
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- what is given ---- */

static int find_sequences(struct tuning *t)
{
    struct settings *s = t->settings;
    if (!s->eval_gt.count)
        return fault_usage(t->fault, "tune needs ground truth: --gt DIR, a folder of sequences");
    int status = truths_find(&t->truths, &s->eval_gt, t->fault);
    if (status != STATUS_OK)
        return status;
    if (t->truths.count < 2)
        return fault_usage(t->fault,
                           "only one sequence, '%s': tune needs two at least, as each is scored "
                           "with what was found on the others",
                           t->truths.items[0].name);
    if (t->truths.count > TUNE_SEQUENCES_MAX)
        return fault_usage(t->fault, "%zu sequences; tune takes %d at most", t->truths.count,
                           (int)TUNE_SEQUENCES_MAX);
    return STATUS_OK;
}

/* The file that is written is none of those that were read. */
static int check_output(struct tuning *t)
{
    struct settings *s = t->settings;
    const char      *in[4 * TUNE_SEQUENCES_MAX + 3];
    size_t           count = 0;
    if (!s->tune_output)
        return STATUS_OK;
    in[count++] = s->config;
    in[count++] = s->run.job.detector;
    in[count++] = s->tune_reid;
    for (size_t i = 0; i < t->truths.count; i++) {
        in[count++] = t->truths.items[i].gt;
        in[count++] = t->truths.items[i].seqinfo;
        in[count++] = t->sequences[i].boxes_from;
        in[count++] = t->sequences[i].pictures[0] ? t->sequences[i].pictures : NULL;
    }
    const sac_result res = sac_files_check(t->ctx, &s->tune_output, 1, in, count);
    return res == SAC_OK ? STATUS_OK : fault_library(t->fault, t->ctx, res);
}

/* What no tracker takes is found here, and not in the first trial. */
static int choose_knobs(struct tuning *t)
{
    sac_tracker *trk = NULL;
    settings_fill_tracker(t->settings, t->settings->run.job.tracker.kind);
    t->baseline = t->settings->run.job.tracker;
    t->baseline.camera_motion = 0;
    t->baseline.embedding_dim = 0;
    if (t->settings->tune_reid && !sac_tracker_kind_uses_appearance(t->baseline.kind))
        return fault_usage(t->fault, "--reid: tracker %s matches by motion only",
                           sac_tracker_kind_name(t->baseline.kind));
    t->knob_count = tune_knobs(&t->baseline, t->settings->tune_reid != NULL, t->knobs);
    const sac_result res = sac_tracker_create(t->ctx, &t->baseline, &trk);
    sac_tracker_destroy(&trk);
    return res == SAC_OK ? STATUS_OK : fault_library(t->fault, t->ctx, res);
}

/* ---- the search ---- */

static int measure(void *user, int sequence, const int *point, double *out)
{
    struct tuning                  *t = user;
    const struct sac_tracker_params params =
        tune_params(&t->baseline, t->knobs, t->knob_count, point);
    return tune_score(t->ctx, &t->sequences[sequence], &params, out, t->fault);
}

static void show_progress(const struct tuning *t)
{
    char line[128];
    if (!t->settings->progress || !term_is_terminal())
        return;
    snprintf(line, sizeof line, "%zu points, %.0f of %.0f s, HOTA %.2f", t->search.count,
             now_s() - t->begun_s, t->settings->budget_s,
             t->search.climbs[t->search.sequences].best_value);
    term_progress(line);
}

/* Not before the start itself was measured. */
static bool ended(void *user)
{
    struct tuning *t = user;
    if (t->search.climbs[t->search.sequences].told_count == 0)
        return false;
    show_progress(t);
    t->out_of_time = now_s() - t->begun_s > t->settings->budget_s;
    return t->out_of_time || interrupt_came();
}

static int search(struct tuning *t)
{
    const struct settings *s = t->settings;
    const int              count = (int)t->truths.count;
    double                 gains[TUNE_SEQUENCES_MAX];
    tune_search_init(&t->search, t->knobs, t->knob_count, count, s->tune_trials, (uint64_t)s->seed);
    t->search.measure = measure;
    t->search.ended = ended;
    t->search.user = t;
    t->begun_s = now_s();
    int status = tune_search_run(&t->search);
    term_progress(NULL);
    for (int i = 0; i < count && status == STATUS_OK; i++) {
        status = tune_search_fold(&t->search, i, &t->result.folds[i]);
        gains[i] = t->result.folds[i].tuned - t->result.folds[i].baseline;
    }
    if (status < 0)
        return fault_failure(t->fault, "out of memory");
    if (status == STATUS_OK)
        t->result.gain = gain_of(gains, count);
    return status;
}

/* ---- the result ---- */

static void put_yaml(const void *user, FILE *out)
{
    tune_write_yaml(user, out);
}

static int report(struct tuning *t)
{
    struct settings *s = t->settings;
    const char      *path = s->tune_output ? s->tune_output : "-";
    FILE            *table = strcmp(path, "-") == 0 ? stderr : stdout;
    t->result.sequences = t->sequences;
    t->result.search = &t->search;
    t->result.baseline = &t->baseline;
    t->result.seconds = now_s() - t->begun_s;
    t->result.seed = (uint64_t)s->seed;
    t->result.reid = s->tune_reid;
    t->result.real = gain_is_real(&t->result.gain);
    t->result.ended_by = interrupt_came() ? "Ctrl-C" : t->out_of_time ? "--budget" : NULL;
    if (table == stdout || strcmp(s->log_level, "error") != 0)
        tune_print(&t->result, table);
    const int status = whole_file_write(path, put_yaml, &t->result, t->fault);
    if (status != STATUS_OK || !interrupt_came())
        return status;
    fault_failure(t->fault, "interrupted: %s has the best so far", whole_file_name(path));
    return STATUS_INTERRUPTED;
}

static int tune(struct tuning *t)
{
    const char *output = t->settings->tune_output;
    int         status = find_sequences(t);
    if (status == STATUS_OK && output) /* before the networks run */
        status = whole_file_check(output, t->fault);
    if (status == STATUS_OK)
        status = term_context(t->settings, &t->ctx, t->fault);
    if (status == STATUS_OK)
        status = choose_knobs(t);
    if (status == STATUS_OK)
        status = tune_find(t->settings, &t->truths, t->sequences, t->fault);
    if (status == STATUS_OK)
        status = check_output(t);
    if (status == STATUS_OK)
        status = tune_read(t->settings, t->ctx, t->sequences, t->truths.count, t->fault);
    if (status == STATUS_OK && interrupt_came()) {
        fault_failure(t->fault, "interrupted before anything was tried; nothing was written");
        return STATUS_INTERRUPTED;
    }
    if (status != STATUS_OK)
        return status;
    t->baseline.embedding_dim = t->sequences[0].dim; /* 0: by motion alone */
    status = search(t);
    if (status == STATUS_OK)
        status = report(t);
    return status;
}

int verb_tune(struct settings *s, struct fault *fault)
{
    struct tuning *t = calloc(1, sizeof *t);
    if (!t)
        return fault_failure(fault, "out of memory");
    t->settings = s;
    if (s->tune_reid && strcmp(s->tune_reid, "none") == 0)
        s->tune_reid = NULL;
    t->fault = fault;
    interrupt_stops();
    const int status = tune(t);
    tune_search_finish(&t->search);
    for (size_t i = 0; i < t->truths.count && i < TUNE_SEQUENCES_MAX; i++)
        tune_sequence_finish(&t->sequences[i]);
    truths_finish(&t->truths);
    sac_context_destroy(&t->ctx);
    free(t);
    return status;
}
