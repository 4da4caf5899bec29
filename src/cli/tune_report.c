/* SPDX-License-Identifier: Apache-2.0 */
/* What saccade tune found: as a table, and as YAML with the evidence in comments. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tune.h"

static const int *found_point(const struct tune_result *r)
{
    return r->search->climbs[r->search->sequences].best;
}

static bool found_nothing(const struct tune_result *r)
{
    const struct tune_search *search = r->search;
    for (int k = 0; k < search->knob_count; k++)
        if (found_point(r)[k] != search->knobs[k].start)
            return false;
    return true;
}

static void baseline_and_tuned(const struct tune_result *r, double *baseline, double *tuned)
{
    const int n = r->search->sequences;
    *baseline = *tuned = 0;
    for (int i = 0; i < n; i++) {
        *baseline += r->folds[i].baseline / n;
        *tuned += r->folds[i].tuned / n;
    }
}

/* ---- the table ---- */

static void print_table(const struct tune_result *r, const char *prefix, FILE *out)
{
    double baseline, tuned;
    int    width = (int)strlen("sequence");
    for (int i = 0; i < r->search->sequences; i++) {
        const int length = (int)strlen(r->sequences[i].truth->name);
        width = length > width ? length : width;
    }
    fprintf(out, "%s%-*s %7s %9s %9s %9s\n", prefix, width, "sequence", "frames", "default",
            "tuned", "gain");
    for (int i = 0; i < r->search->sequences; i++)
        fprintf(out, "%s%-*s %7d %9.2f %9.2f %+9.2f\n", prefix, width, r->sequences[i].truth->name,
                r->sequences[i].frames, r->folds[i].baseline, r->folds[i].tuned,
                r->folds[i].tuned - r->folds[i].baseline);
    baseline_and_tuned(r, &baseline, &tuned);
    fprintf(out, "%s%-*s %7s %9.2f %9.2f %+9.2f\n", prefix, width, "mean", "", baseline, tuned,
            r->gain.mean);
}

/* ---- sentences ---- */

static void print_gain(const struct tune_result *r, const char *prefix, FILE *out)
{
    fprintf(out,
            "%sHOTA of each sequence with what was found on the others: mean gain %+.2f, 95 %% "
            "interval\n%s%+.2f to %+.2f over %d sequences.\n",
            prefix, r->gain.mean, prefix, r->gain.mean - r->gain.noise,
            r->gain.mean + r->gain.noise, r->gain.count);
}

static void print_verdict(const struct tune_result *r, const char *prefix, FILE *out)
{
    if (r->real)
        fprintf(out, "%sThe gain is more than noise: the tuned parameters are better.\n", prefix);
    else if (found_nothing(r))
        fprintf(out, "%sNothing better than the defaults was found: they stay.\n", prefix);
    else if (r->gain.mean > 0)
        fprintf(out, "%sThe gain is within noise: the defaults stay. More sequences could tell.\n",
                prefix);
    else
        fprintf(out,
                "%sOn sequences that the search did not see the defaults are as good or better: "
                "they stay.\n",
                prefix);
}

void tune_print(const struct tune_result *r, FILE *out)
{
    print_table(r, "", out);
    print_gain(r, "", out);
    print_verdict(r, "", out);
    if (r->ended_by)
        fprintf(out, "%s ended the search after %zu points: this is the best so far.\n",
                r->ended_by, r->search->count);
}

/* ---- YAML ---- */

/* No line ends in a comment. */
static void print_name(const char *name, FILE *out)
{
    for (; *name; name++)
        fputc((unsigned char)*name < ' ' ? '?' : *name, out);
}

static void print_boxes(const struct tune_result *r, FILE *out)
{
    for (int i = 0; i < r->search->sequences; i++) {
        fputs("#   ", out);
        print_name(r->sequences[i].boxes_from, out);
        fputc('\n', out);
    }
}

static void print_appearance(const struct tune_result *r, FILE *out)
{
    if (!r->reid) {
        fputs("# tracked by motion alone: a ReID network and camera motion were not part of it.\n"
              "#\n",
              out);
        return;
    }
    fputs("# tracked with the embeddings of ", out);
    print_name(r->reid, out);
    fputs(" too (--reid); camera motion was not part of it.\n#\n", out);
}

static void print_values(const struct tune_result *r, FILE *out)
{
    const struct tune_search *search = r->search;
    const int                *found = found_point(r);
    fprintf(out, "tracker:\n  kind: %s\n", sac_tracker_kind_name(r->baseline->kind));
    for (int k = 0; k < search->knob_count; k++) {
        const struct tune_knob *knob = &search->knobs[k];
        const double            before = (double)knob->values[knob->start],
                     tuned = (double)knob->values[found[k]];
        if (found[k] != knob->start)
            fprintf(out, "  # %s: %g\n", r->real ? "default" : "found, but not shown to be better",
                    r->real ? before : tuned);
        fprintf(out, "  %s: %g\n", knob->name, r->real ? tuned : before);
    }
}

void tune_write_yaml(const struct tune_result *r, FILE *out)
{
    fprintf(out,
            "# saccade tune: the tracker's parameters, searched against HOTA. Use it with --config "
            "FILE.\n"
            "# %zu points in %.1f s, seed %llu%s%s. Boxes from\n",
            r->search->count, r->seconds, (unsigned long long)r->seed,
            r->ended_by ? ", ended early by " : "", r->ended_by ? r->ended_by : "");
    print_boxes(r, out);
    print_appearance(r, out);
    print_table(r, "#   ", out);
    print_gain(r, "# ", out);
    print_verdict(r, "# ", out);
    print_values(r, out);
}
