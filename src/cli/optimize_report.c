/* SPDX-License-Identifier: Apache-2.0 */
/* What saccade optimize found: as a table and sentences, and as YAML with these in comments. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <saccade/monitor.h>

#include "optimize.h"

const char optimize_yaml_head[] = "# saccade optimize";

/* A GPU or its decoder that is busy for this share of the time is used up. */
static const double BUSY_MIN = 0.9;

/* Other programs' share of the CPUs that is said. */
static const double OTHERS_MIN = 0.1;

static const char *const goal_words[] = {
    [OPTIMIZE_FPS] = "frames a second",
    [OPTIMIZE_LATENCY] = "latency (95th percentile)",
    [OPTIMIZE_VRAM] = "memory",
    [OPTIMIZE_WATTS] = "frames for a watt-second",
};

/* ---- the table ---- */

static const struct {
    const char *title, *unit;
    size_t      offset;
} columns[] = {
#define AT(field) offsetof(struct optimize_figures, field)
    {"frames/s", "", AT(fps)},
    {"latency p95", "ms", AT(latency_ms)},
    {"memory", "bytes", AT(memory_bytes)},
    {"CPUs", "share", AT(cpu)},
    {"of others", "share", AT(others)},
    {"GPU", "share", AT(gpu)},
    {"decoder", "share", AT(decoder)},
    {"encoder", "share", AT(encoder)},
    {"power", "W", AT(watts)},
#undef AT
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static double figure(const struct optimize_figures *f, int column)
{
    return *(const double *)((const char *)f + columns[column].offset);
}

/* f: NULL: the titles. What neither of the rows knows has no column. */
static void print_row(const char *prefix, const char *name, const struct optimize_figures *f,
                      const struct optimize_figures *const rows[2], FILE *out)
{
    fprintf(out, "%s%-8s", prefix, name);
    for (int i = 0; i < COLUMNS; i++) {
        char text[32];
        if (isnan(figure(rows[0], i)) && isnan(figure(rows[1], i)))
            continue;
        if (f && !*columns[i].unit)
            snprintf(text, sizeof text, "%.1f", figure(f, i));
        else if (f)
            sac_monitor_format(figure(f, i), columns[i].unit, text, sizeof text);
        fprintf(out, " %12s", f ? text : columns[i].title);
    }
    fputc('\n', out);
}

static bool is_compared(const struct optimize_result *r)
{
    return r->comparison->count > 0;
}

static const struct optimize_figures *figures_of(const struct optimize_result *r, bool tuned)
{
    if (is_compared(r))
        return tuned ? &r->comparison->tuned : &r->comparison->start;
    return tuned ? &r->search->best_figures : &r->search->first;
}

static bool found_nothing(const struct optimize_result *r)
{
    return r->search->step_count == 0;
}

static void print_table(const struct optimize_result *r, const char *prefix, FILE *out)
{
    const struct optimize_figures *const rows[2] = {figures_of(r, false), figures_of(r, true)};
    print_row(prefix, "", NULL, rows, out);
    print_row(prefix, "default", rows[0], rows, out);
    if (!found_nothing(r))
        print_row(prefix, "tuned", rows[1], rows, out);
}

/* ---- sentences ---- */

static void print_gain(const struct optimize_result *r, const char *prefix, FILE *out)
{
    const struct gain *gain = &r->comparison->gain;
    if (!is_compared(r))
        return;
    fprintf(out, "%sIn %d turns of default and tuned, %s: ", prefix, gain->count,
            goal_words[r->search->goal]);
    for (int i = 0; i < r->comparison->count; i++)
        fprintf(out, "%s%.2f", i ? ", " : "", r->comparison->ratios[i]);
    fprintf(out, " times as good;\n%s%.3f on average, 95 %% interval %.3f to %.3f.\n", prefix,
            exp(gain->mean), exp(gain->mean - gain->noise), exp(gain->mean + gain->noise));
}

static void print_verdict(const struct optimize_result *r, const char *prefix, FILE *out)
{
    if (found_nothing(r))
        fprintf(out, "%sNothing better than the defaults was found: they stay.\n", prefix);
    else if (r->taken && is_compared(r))
        fprintf(out, "%sThe gain is more than noise: the tuned settings are better.\n", prefix);
    else if (r->taken)
        fprintf(out,
                "%sThe search ended before the closing comparison: the gain is that of its "
                "own turns, %.2f.\n",
                prefix, r->search->best_ratio);
    else if (r->comparison->gain.mean > 0)
        fprintf(out, "%sThe gain is within noise: the defaults stay.\n", prefix);
    else
        fprintf(out, "%sCompared in turns the defaults are as good or better: they stay.\n",
                prefix);
}

static void print_steps(const struct optimize_result *r, const char *prefix, FILE *out)
{
    const struct optimize_search *s = r->search;
    if (!r->taken && s->step_count)
        fprintf(out, "%sFound, and not handed out:\n", prefix);
    for (int i = 0; i < s->step_count; i++) {
        const struct optimize_step *step = &s->steps[i];
        const struct optimize_knob *knob = &s->knobs[step->knob];
        fprintf(out, "%s%s %s instead of %s (%s): %.2f times as good.\n", prefix, knob->key,
                knob->values[step->to], knob->values[step->from], knob->about, step->ratio);
    }
    if (s->failed || s->refused)
        fprintf(out, "%s%d run%s failed or found no memory, %d had other results: not taken.\n",
                prefix, s->failed, s->failed == 1 ? "" : "s", s->refused);
    if (isfinite(r->agreement))
        fprintf(out, "%sThe results change: %.1f %% agree with those of fp32 and every frame.\n",
                prefix, 100 * r->agreement);
}

/* What is used up, or else what bounds the run. */
static void print_bound(const struct optimize_result *r, const char *prefix, FILE *out)
{
    const struct optimize_figures *f = figures_of(r, r->taken);
    if (f->gpu >= BUSY_MIN)
        fprintf(out, "%sThe GPU is busy for %.0f %% of the time: it is used up.\n", prefix,
                100 * f->gpu);
    else if (f->decoder >= BUSY_MIN)
        fprintf(out, "%sThe decoder is busy for %.0f %% of the time: it is used up.\n", prefix,
                100 * f->decoder);
    else if (isfinite(f->gpu))
        fprintf(out, "%sThe GPU is busy for %.0f %% of the time, its decoder for %.0f %%.\n",
                prefix, 100 * f->gpu, 100 * f->decoder);
    if (f->bottleneck[0])
        fprintf(out, "%sThe others wait for %s: %s.\n", prefix, f->bottleneck, f->why);
    if (f->others >= OTHERS_MIN)
        fprintf(out,
                "%sOther programs used %.0f %% of the CPUs: without them other settings may be "
                "best.\n",
                prefix, 100 * f->others);
}

static void print_bottleneck(const char *prefix, const char *name, const struct optimize_figures *f,
                             FILE *out)
{
    if (f->bottleneck[0])
        fprintf(out, "%s%s: %s bounds it: %s.\n", prefix, name, f->bottleneck, f->why);
    if (f->advice[0])
        fprintf(out, "%s%s: %s\n", prefix, name, f->advice);
}

static void print_streams(const struct optimize_result *r, const char *prefix, FILE *out)
{
    if (r->streams_most == 0)
        return;
    if (r->streams_best == 0)
        fprintf(out, "%sNot even one stream keeps up with its own %.4g frames/s.\n", prefix,
                r->nominal_fps);
    else
        fprintf(out, "%s%s%d stream%s at once keep%s up with %.4g frames/s each.\n", prefix,
                r->streams_best == r->streams_most ? "All of " : "Up to ", r->streams_best,
                r->streams_best == 1 ? "" : "s", r->streams_best == 1 ? "s" : "", r->nominal_fps);
    for (int n = 1; n <= r->streams_most; n++)
        if (isfinite(r->streams_fps[n]))
            fprintf(out, "%s  %d at once: %.1f frames/s together\n", prefix, n, r->streams_fps[n]);
}

static void print_all(const struct optimize_result *r, const char *prefix, FILE *out)
{
    print_table(r, prefix, out);
    print_gain(r, prefix, out);
    print_verdict(r, prefix, out);
    print_steps(r, prefix, out);
    print_bound(r, prefix, out);
    if (r->settings->optimize.bottlenecks) {
        print_bottleneck(prefix, "Default", figures_of(r, false), out);
        if (r->taken)
            print_bottleneck(prefix, "Tuned", figures_of(r, true), out);
    }
    print_streams(r, prefix, out);
}

void optimize_print(const struct optimize_result *r, FILE *out)
{
    print_all(r, "", out);
    if (r->ended_by)
        fprintf(out, "%s ended the search after %d run%s: this is the best so far%s.\n",
                r->ended_by, r->search->runs, r->search->runs == 1 ? "" : "s",
                r->logged ? "; --resume goes on with it" : "");
}

/* ---- YAML ---- */

static void put_clean(const char *text, FILE *out)
{
    for (; *text; text++)
        fputc((unsigned char)*text < ' ' ? '?' : *text, out); /* no line ends in a comment */
}

void optimize_write_yaml(const struct optimize_result *r, FILE *out)
{
    char plain[1024];
    fprintf(out,
            "%s: settings of %s for the goal '%s'. Use it with --config FILE.\n"
            "# %d runs in %.0f s, each of %.3g s of the input%s%s%s:\n",
            optimize_yaml_head, r->segments ? "segment" : "track", goal_words[r->search->goal],
            r->search->runs, r->seconds, r->duration_s, r->realtime ? " at its own rate" : "",
            r->ended_by ? ", ended early by " : "", r->ended_by ? r->ended_by : "");
    for (size_t i = 0; i < r->inputs->count; i++) {
        fputs("#   ", out);
        sac_hide_secrets(r->inputs->items[i], plain, sizeof plain);
        put_clean(plain, out);
        fputc('\n', out);
    }
    fputs("#\n", out);
    print_all(r, "# ", out);
    optimize_put_settings(r->taken ? r->tuned : r->settings, r->segments, false, out);
}

/* ---- without a run ---- */

void optimize_print_plan(const struct settings *s, const struct optimize_knob *knobs, int count,
                         FILE *out)
{
    fprintf(out, "For the goal '%s' and at most %g s, in this order:\n",
            goal_words[s->optimize.goal], s->optimize.budget_s);
    for (int k = 0; k < count; k++) {
        fprintf(out, "  %-22s", knobs[k].key);
        for (int v = 0; v < knobs[k].count; v++)
            fprintf(out, v == knobs[k].start ? " [%s]" : " %s", knobs[k].values[v]);
        fputc('\n', out);
    }
    fprintf(out,
            "Each run takes about %g s and its start; the search begins at the values in "
            "brackets. Nothing was run.\n",
            s->optimize.trial_s);
}
