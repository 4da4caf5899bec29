/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a profile: HTML with drawings in SVG and nothing from elsewhere. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profile.h"
#include "whole_file.h"

/* A chart is about as wide as a phone, or as a third of a window, so that its text has its size. */
enum { SERIES_MAX = 8, CHART_W = 420, CHART_H = 150, LEFT = 84, RIGHT = 8, TOP = 12, BOTTOM = 24 };

static const char *const colours[SERIES_MAX] = {"#2563eb", "#dc2626", "#059669", "#d97706",
                                                "#7c3aed", "#0891b2", "#be185d", "#4b5563"};

void profile_put_text(FILE *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '&': fputs("&amp;", out); break;
        case '"': fputs("&quot;", out); break;
        default: fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
        }
}

static void put_cell(FILE *out, const char *text)
{
    fputs("<td>", out);
    profile_put_text(out, text);
    fputs("</td>", out);
}

static void put_value(FILE *out, double value, const char *unit)
{
    char text[40];
    sac_monitor_format(value, unit, text, sizeof text);
    fputs("<td class=n>", out);
    profile_put_text(out, text);
    fputs("</td>", out);
}

/* Much that has an owner or is moved is small. */
static void put_megabytes(FILE *out, uint64_t bytes)
{
    fprintf(out, "<td class=n>%.3f MB</td>", (double)bytes * 1e-6);
}

/* Columns begin with # where they are of numbers, which stand at the right. */
static void put_head(FILE *out, const char *title, const char *columns)
{
    fprintf(out, "<h2>%s</h2>\n<div class=w><table><tr>", title);
    for (const char *at = columns; *at;) {
        const size_t length = strcspn(at, "|");
        const bool   number = *at == '#';
        fprintf(out, "<th%s>%.*s</th>", number ? " class=n" : "", (int)length - number,
                at + number);
        at += length + (at[length] == '|');
    }
    fputs("</tr>\n", out);
}

/* ---- figures over time ---- */

struct chart {
    const char                      *title, *unit;
    const struct sac_monitor_figure *series[SERIES_MAX];
    int                              count;
};

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Those that were ever more than 0; of more than there is room for, the largest. */
static void choose(const struct profile *p, const char *start, const char *unit, struct chart *c)
{
    for (int i = 0; i < p->figure_count; i++) {
        const struct sac_monitor_figure *f = &p->figures[i];
        if (!begins_with(f->name, start) || strcmp(f->unit, unit) != 0 || !(f->most > 0))
            continue;
        int at = c->count < SERIES_MAX ? c->count++ : -1;
        for (int k = 0; at < 0 && k < c->count; k++)
            if (c->series[k]->most < f->most)
                at = k;
        if (at >= 0)
            c->series[at] = f;
    }
}

static void put_line(FILE *out, const struct sac_monitor_figure *f, double most, double span_s,
                     const char *colour)
{
    const int n = f->history_count;
    bool      open = false;
    for (int i = 0; i < n; i++) {
        const double s = span_s - (n - 1 - i) * f->history_step_s;
        const double x = LEFT + (CHART_W - LEFT - RIGHT) * s / span_s;
        const double y = TOP + (CHART_H - TOP - BOTTOM) * (1 - f->history[i] / most);
        if (isnan(f->history[i]) && open)
            fputs("\"/>", out);
        if (isnan(f->history[i])) {
            open = false;
            continue;
        }
        if (!open)
            fprintf(out, "<polyline fill=none stroke=\"%s\" stroke-width=1.5 points=\"", colour);
        open = true;
        fprintf(out, "%.1f,%.1f ", x, y);
    }
    if (open)
        fputs("\"/>", out);
}

static void put_axes(FILE *out, double most, const char *unit, double span_s)
{
    for (int i = 0; i <= 2; i++) {
        const double y = TOP + (CHART_H - TOP - BOTTOM) * i / 2.0;
        char         text[40];
        sac_monitor_format(most * (2 - i) / 2, unit, text, sizeof text);
        fprintf(out,
                "<line x1=%d x2=%d y1=%.1f y2=%.1f class=g />"
                "<text x=%d y=%.1f text-anchor=end>%s</text>",
                LEFT, CHART_W - RIGHT, y, y, LEFT - 5, y + 4, text);
    }
    fprintf(out, "<text x=%d y=%d>0 s</text><text x=%d y=%d text-anchor=end>%.0f s</text>", LEFT,
            CHART_H - 6, CHART_W - RIGHT, CHART_H - 6, span_s);
}

static void put_chart(FILE *out, const struct chart *c)
{
    double most = 0, span_s = 0;
    for (int i = 0; i < c->count; i++) {
        const struct sac_monitor_figure *f = c->series[i];
        for (int k = 0; k < f->history_count; k++)
            most = fmax(most, f->history[k]);
        span_s = fmax(span_s, (f->history_count - 1) * f->history_step_s);
    }
    if (!(most > 0) || !(span_s > 0))
        return;
    fprintf(out, "<figure><figcaption>%s</figcaption><svg viewBox=\"0 0 %d %d\" role=img>",
            c->title, CHART_W, CHART_H);
    put_axes(out, most, c->unit, span_s);
    for (int i = 0; i < c->count; i++)
        put_line(out, c->series[i], most, span_s, colours[i]);
    fputs("</svg><p class=k>", out);
    for (int i = 0; i < c->count; i++) {
        fprintf(out, "<span><i style=\"background:%s\"></i>", colours[i]);
        profile_put_text(out, c->series[i]->name);
        fputs("</span> ", out);
    }
    fputs("</p></figure>\n", out);
}

static void put_charts(FILE *out, const struct profile *p)
{
    static const struct {
        const char *title, *unit, *starts[3];
    } rows[] = {
        {"Time of a run", "ms", {"batch "}},
        {"Frames a second", "frames/s", {"frames"}},
        {"Latency", "ms", {"latency", "composite latency"}},
        {"Time of the stages, on the host", "ms", {"stage "}},
        {"Time of the stages, on the GPU", "ms", {"gpu stage "}},
        {"Queues: how full", "share", {"queue "}},
        {"Frames in a batch", "frames", {"batch"}},
        {"CPU time of the threads", "cores", {"thread "}},
        {"Waiting for a CPU", "share", {"wait "}},
        {"The machine's CPUs", "share", {"cpu"}},
        {"GPU", "share", {"gpu0 utilisation", "gpu0 decoder", "gpu0 encoder"}},
        {"GPU: power", "W", {"gpu0 power"}},
        {"GPU: memory", "bytes", {"gpu0 memory"}},
        {"Device memory by owner", "bytes", {"memory ", "pool"}},
        {"Memory of the process", "bytes", {"rss"}},
    };
    fputs("<h2>Over time</h2>\n<div class=c>", out);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct chart c = {.title = rows[i].title, .unit = rows[i].unit};
        for (int k = 0; k < 3 && rows[i].starts[k]; k++)
            choose(p, rows[i].starts[k], c.unit, &c);
        put_chart(out, &c);
    }
    fputs("</div>\n", out);
    if (!p->figure_count)
        fputs("<p>The run was shorter than one interval of its monitor.</p>\n", out);
}

/* ---- what each thread did ---- */

static const char *colour_of(const struct sac_pipeline_stats *stats, const char *stage)
{
    for (int i = 0; i < stats->stage_count; i++)
        if (strcmp(stats->stage[i].name, stage) == 0)
            return colours[i % SERIES_MAX];
    return colours[SERIES_MAX - 1];
}

static void put_timeline(FILE *out, const struct profile *p)
{
    enum { ROW_H = 22, NAME_W = 120, WIDTH = 1280 };
    const struct profile_trace *t = &p->trace;
    double                      from = INFINITY, to = 0;
    int                         row[PROFILE_TRACKS_MAX], rows = 0;
    bool                        used[PROFILE_TRACKS_MAX] = {false};
    for (int i = 0; i < t->span_count; i++) {
        from = fmin(from, t->span[i].begun_us);
        to = fmax(to, t->span[i].begun_us + t->span[i].took_us);
        used[t->span[i].track] = true;
    }
    if (!(to > from))
        return;
    for (int i = 0; i < PROFILE_TRACKS_MAX; i++)
        row[i] = used[i] ? rows++ : -1;
    fprintf(out,
            "<h2>What each thread did for %.0f ms in the middle of the run</h2>\n<div class=w><svg "
            "viewBox=\"0 0 %d %d\" class=t role=img>",
            (to - from) / 1e3, WIDTH, rows * ROW_H);
    for (int i = 0; i < PROFILE_TRACKS_MAX; i++)
        if (used[i]) {
            fprintf(out, "<text x=0 y=%d>", row[i] * ROW_H + 15);
            profile_put_text(out, t->track[i]);
            fputs("</text>", out);
        }
    for (int i = 0; i < t->span_count; i++) {
        const struct profile_span *s = &t->span[i];
        const double               scale = (WIDTH - NAME_W) / (to - from);
        fprintf(
            out,
            "<rect x=%.1f y=%d width=%.1f height=%d fill=\"%s\"><title>%s %.3f ms</title></rect>",
            NAME_W + (s->begun_us - from) * scale, row[s->track] * ROW_H + 3,
            fmax(s->took_us * scale, 0.7), ROW_H - 6, colour_of(&p->stats, s->stage), s->stage,
            s->took_us / 1e3);
    }
    fputs("</svg></div><p class=k>", out);
    for (int i = 0; i < p->stats.stage_count; i++)
        fprintf(out, "<span><i style=\"background:%s\"></i>%s</span> ", colours[i % SERIES_MAX],
                p->stats.stage[i].name);
    fputs("</p>\n", out);
}

static void put_batches(FILE *out, const struct profile *p)
{
    double most = 0;
    int    last = 0;
    for (int i = 1; i <= PROFILE_BATCH_MAX; i++) {
        most = fmax(most, p->trace.batches[i]);
        last = p->trace.batches[i] > 0 ? i : last;
    }
    if (!(most > 0))
        return;
    const double step = fmin((CHART_W - LEFT - RIGHT) / (double)last, 40);
    fprintf(out,
            "<h2>Batches</h2>\n<p>%" PRIu64 " runs of the network, %.2f frames in one, at most "
            "%d.</p><figure><svg viewBox=\"0 0 %d %d\" role=img>",
            p->stats.batch.count, p->stats.batch.mean, p->stats.batch.max, CHART_W, CHART_H);
    for (int i = 1; i <= last; i++) {
        const double h = (CHART_H - TOP - BOTTOM) * p->trace.batches[i] / most;
        fprintf(out,
                "<rect x=%.1f y=%.1f width=%.1f height=%.1f fill=\"%s\"><title>%.0f runs with "
                "%d</title></rect>",
                LEFT + step * (i - 1) + step * 0.1, CHART_H - BOTTOM - h, step * 0.8, h, colours[0],
                p->trace.batches[i], i);
        if (last <= 16 || i % (last / 8) == 0)
            fprintf(out, "<text x=%.1f y=%d text-anchor=middle>%d</text>", LEFT + step * (i - 0.5),
                    CHART_H - 6, i);
    }
    fprintf(out, "<text x=%d y=%d text-anchor=end>%.0f</text></svg></figure>\n", LEFT - 5, TOP + 8,
            most);
}

/* ---- tables ---- */

static void put_stages(FILE *out, const struct sac_pipeline_stats *s)
{
    bool on_gpu = false;
    for (int i = 0; i < s->stage_count; i++)
        on_gpu |= s->stage_gpu[i].count > 0;
    put_head(out, "Stages",
             on_gpu
                 ? "stage|#times|#mean|#p50|#p95|#p99|#most|#in all|#memory at most|#GPU p50|#GPU "
                   "p99"
                 : "stage|#times|#mean|#p50|#p95|#p99|#most|#in all|#memory at most");
    for (int i = 0; i < s->stage_count; i++) {
        const struct sac_timer_summary *t = &s->stage[i], *gpu = &s->stage_gpu[i];
        const double ms[] = {t->mean_ms, t->p50_ms, t->p95_ms, t->p99_ms, t->max_ms, t->total_ms};
        fputs("<tr>", out);
        put_cell(out, t->name);
        fprintf(out, "<td class=n>%" PRId64 "</td>", t->count);
        for (size_t k = 0; k < sizeof ms / sizeof ms[0]; k++)
            put_value(out, ms[k], "ms");
        put_megabytes(out, s->stage_bytes_peak[i]);
        if (on_gpu) {
            put_value(out, gpu->count ? gpu->p50_ms : NAN, "ms");
            put_value(out, gpu->count ? gpu->p99_ms : NAN, "ms");
        }
        fputs("</tr>\n", out);
    }
    fputs("</table></div>\n", out);
}

/* The stages of a model by itself. */
static void put_runs(FILE *out, const struct profile *p)
{
    put_head(out, "Time of a run",
             "#batch|#runs|#mean|#p50|#p95|#p99|#most|#items/s|#the first run");
    for (int i = 0; i < p->model.count; i++) {
        const struct sac_timer_summary *t = &p->stats.stage[i];
        const double ms[] = {t->mean_ms, t->p50_ms, t->p95_ms, t->p99_ms, t->max_ms};
        fprintf(out, "<tr><td class=n>%d</td><td class=n>%" PRId64 "</td>", p->model.runs[i].batch,
                t->count);
        for (size_t k = 0; k < sizeof ms / sizeof ms[0]; k++)
            put_value(out, ms[k], "ms");
        fprintf(out, "<td class=n>%.1f</td>", profile_items_per_s(p, i));
        put_value(out, p->model.runs[i].first_ms, "ms");
        fputs("</tr>\n", out);
    }
    fputs("</table></div>\n<p>By the host's clock, with the wait for the outputs, on random "
          "numbers. The first run plans and is not among the others.</p>\n",
          out);
}

static void put_queues(FILE *out, const struct sac_pipeline_stats *s)
{
    put_head(out, "Queues",
             "before|#room|#at most|#frames|#full|#empty|#waits to put|#waits to take");
    for (int i = 0; i < s->queue_count; i++) {
        const struct sac_queue_info *q = &s->queue[i];
        const uint64_t counts[] = {q->capacity, q->length_max, q->passed, q->full, q->empty};
        fputs("<tr>", out);
        put_cell(out, q->name);
        for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++)
            fprintf(out, "<td class=n>%" PRIu64 "</td>", counts[k]);
        put_value(out, q->push_wait_ms, "ms");
        put_value(out, q->pop_wait_ms, "ms");
        fputs("</tr>\n", out);
    }
    fputs("</table></div>\n", out);
}

static void put_owners(FILE *out, const struct sac_pipeline_stats *s)
{
    put_head(out, "Device memory by owner", "owner|#at the end|#at most");
    for (int i = 0; i <= s->stage_count; i++) {
        const bool other = i == s->stage_count;
        if (!other && !s->stage_bytes_peak[i])
            continue;
        fputs("<tr>", out);
        put_cell(out, other ? "others" : s->stage[i].name);
        put_megabytes(out, other ? s->other_bytes : s->stage_bytes[i]);
        put_megabytes(out, other ? s->other_bytes_peak : s->stage_bytes_peak[i]);
        fputs("</tr>\n", out);
    }
    fputs("</table></div>\n", out);
}

static void put_allocations(FILE *out, const struct profile *p)
{
    put_head(out, "Largest allocations",
             "what for|stage|where|#of one|#at most at once|#these take|#at the end|#asked "
             "for|#first after|#last after|shape");
    for (int i = 0; i < p->allocation_count && i < p->rows; i++) {
        const struct sac_allocation *a = &p->allocation[i];
        fputs("<tr>", out);
        put_cell(out, a->owner);
        put_cell(out, a->stage[0] ? a->stage : "-");
        put_cell(out, a->place);
        put_megabytes(out, a->bytes);
        fprintf(out, "<td class=n>%" PRIu64 "</td>", a->count_peak);
        put_megabytes(out, a->bytes_peak);
        put_megabytes(out, a->bytes_live);
        fprintf(out, "<td class=n>%" PRIu64 "</td><td class=n>%.1f s</td><td class=n>%.1f s</td>",
                a->requests, a->first_s, a->last_s);
        put_cell(out, a->shape[0] ? a->shape : "-");
        fputs("</tr>\n", out);
    }
    fputs("</table></div>\n<p>Buffers of one owner and size are one row. What does not come from "
          "the pools is not among them: a network's weights on the CPU, a decoder's frames in host "
          "memory.</p>\n",
          out);
}

/* Of a model by itself: its allocations have owners, and no stages. */
static void put_model_owners(FILE *out, const struct profile *p)
{
    put_head(out, "Memory by owner", "owner|#at the end|#at most");
    for (int i = 0; i < p->allocation_count; i++) {
        const char *owner = p->allocation[i].owner;
        uint64_t    live = 0, peak = 0;
        bool        shown = false;
        for (int k = 0; k < i; k++)
            shown |= strcmp(p->allocation[k].owner, owner) == 0;
        for (int k = i; k < p->allocation_count && !shown; k++)
            if (strcmp(p->allocation[k].owner, owner) == 0) {
                live += p->allocation[k].bytes_live;
                peak += p->allocation[k].bytes_peak;
            }
        if (shown)
            continue;
        fputs("<tr>", out);
        put_cell(out, owner);
        put_megabytes(out, live);
        put_megabytes(out, peak);
        fputs("</tr>\n", out);
    }
    fputs("</table></div>\n<p>Of several sizes the peaks are added up.</p>\n", out);
}

static void put_copies(FILE *out, const struct sac_pipeline_stats *s)
{
    int rows = 0;
    for (int i = 0; i < SAC_COPY_REASON_COUNT; i++) {
        const struct sac_ledger_entry *e = &s->ledger.reason[i];
        if (!e->calls)
            continue;
        if (!rows++)
            put_head(out, "Copies by reason", "reason|#copies|#bytes");
        fputs("<tr>", out);
        put_cell(out, sac_copy_reason_name((enum sac_copy_reason)i));
        fprintf(out, "<td class=n>%" PRIu64 "</td>", e->calls);
        put_megabytes(out, e->bytes);
        fputs("</tr>\n", out);
    }
    fputs(rows ? "</table></div>\n" : "<h2>Copies by reason</h2>\n<p>None was counted.</p>\n", out);
}

static void put_layers(FILE *out, const struct profile *p)
{
    const struct layers *l = &p->layers;
    if (p->layers_why[0]) {
        fputs("<h2>Costliest steps of the network</h2>\n<p>Not measured: ", out);
        profile_put_text(out, p->layers_why);
        fputs("</p>\n", out);
        return;
    }
    put_head(out, "Costliest steps of the network",
             p->shapes ? "step|operator|output|kernel|#ms|#of all|#moved|#GFLOP|bound by"
                       : "step|operator|kernel|#ms|#of all|#moved|#GFLOP|bound by");
    for (size_t i = 0; i < l->count && i < (size_t)p->rows; i++) {
        fputs("<tr>", out);
        put_cell(out, l->items[i].name);
        put_cell(out, l->items[i].operator_name);
        if (p->shapes)
            put_cell(out, l->items[i].output);
        put_cell(out, l->items[i].kernel);
        put_value(out, l->items[i].ms, "ms");
        put_value(out, l->ms > 0 ? l->items[i].ms / l->ms : 0, "share");
        put_megabytes(out, (uint64_t)l->items[i].bytes);
        fprintf(out, "<td class=n>%.3f</td>", l->items[i].flops / 1e9);
        put_cell(out, layer_bound_name(layer_bound(l, &l->items[i], NULL)));
        fputs("</tr>\n", out);
    }
    fprintf(out,
            "</table></div><p>Measured after the run%s, at a batch of %d: %.2f ms in all.</p>\n",
            p->model.path ? "s" : ", by itself", p->layers_batch, l->ms);
}

static void put_comparison(FILE *out, const struct profile *p)
{
    if (!p->old_count)
        return;
    put_head(out, "Against the earlier run", "figure|#was|#is|#change");
    for (int i = 0; i < p->old_count; i++) {
        const struct profile_old *old = &p->old[i];
        const double              now = profile_figure(p, old->name);
        const bool                rate = strcmp(old->name, "fps") == 0;
        const char  *unit = rate ? "frames/s" : strcmp(old->name, "rss_peak") == 0 ? "bytes" : "ms";
        const double change = old->value > 0 ? now / old->value - 1 : NAN;
        const bool   worse = rate ? change < -0.05 : change > 0.05;
        const bool   better = rate ? change > 0.05 : change < -0.05;
        fputs("<tr>", out);
        put_cell(out, old->name);
        put_value(out, old->value, unit);
        put_value(out, now, unit);
        if (isnan(change))
            fputs("<td class=n>-</td></tr>\n", out);
        else
            fprintf(out, "<td class=\"n %s\">%+.1f %%</td></tr>\n",
                    worse    ? "bad"
                    : better ? "good"
                             : "",
                    change * 100);
    }
    fputs(
        "</table></div>\n<p>Changes of less than 5 % are not marked: two runs of one thing differ "
        "by as much.</p>\n",
        out);
    const char *network = profile_network(p);
    if (p->old_model || strcmp(p->old_network, network) == 0)
        return;
    fputs("<p>These are runs of different networks: the earlier one had ", out);
    profile_put_text(out, p->old_network[0] ? p->old_network : "none");
    fputs(", this one has ", out);
    profile_put_text(out, network[0] ? network : "none");
    fputs(".</p>\n", out);
}

/* ---- what is said first ---- */

/* What the steps of the network are mostly bound by, in time. */
static void put_bound(FILE *out, const struct profile *p)
{
    double ms[BOUND_COUNT] = {0};
    int    most = 0;
    if (!p->layers.count || !(p->layers.ms > 0))
        return;
    for (size_t i = 0; i < p->layers.count; i++)
        ms[layer_bound(&p->layers, &p->layers.items[i], NULL)] += p->layers.items[i].ms;
    for (int k = 1; k < BOUND_COUNT; k++)
        most = ms[k] > ms[most] ? k : most;
    fprintf(
        out,
        "<p>The network is mostly bound by %s: steps with %.0f %% of its time (launch: starting "
        "them; memory: reading and writing; matrix: arithmetic).</p>\n",
        layer_bound_name((enum bound)most), 100 * ms[most] / p->layers.ms);
}

static void put_waiting(FILE *out, const struct profile *p)
{
    for (int i = 0; i < p->figure_count; i++)
        if (begins_with(p->figures[i].name, "wait ") && p->figures[i].mean_5m > 0.25) {
            fputs("<p>Thread ", out);
            profile_put_text(out, p->figures[i].name + 5);
            fprintf(out,
                    " was ready but had no CPU for %.0f %% of the time: other work on this machine "
                    "makes these figures worse than they need be.</p>\n",
                    100 * p->figures[i].mean_5m);
        }
}

static void put_verdict(FILE *out, const struct profile *p)
{
    const struct sac_pipeline_stats *s = &p->stats;
    fputs("<section class=v>", out);
    if (s->bottleneck[0]) {
        fputs("<p><b>Bottleneck: ", out);
        profile_put_text(out, s->bottleneck);
        fputs("</b>: ", out);
        profile_put_text(out, s->bottleneck_why);
        fputs(".</p>\n", out);
    } else
        fputs(p->model.path ? "<p>The network has no steps that take time.</p>\n"
                            : "<p>No stage stands out, or the run was too short to tell.</p>\n",
              out);
    for (int i = 0; i < s->advice_count; i++) {
        fputs("<p><b>What would help:</b> ", out);
        profile_put_text(out, s->advice[i]);
        fputs("</p>\n", out);
    }
    if (!p->model.path) /* else that is the bottleneck */
        put_bound(out, p);
    put_waiting(out, p);
    for (int i = 0; i < p->event_count; i++) {
        fprintf(out, "<p><b>%s</b> after %.0f s: ", sac_monitor_kind_name(p->events[i].kind),
                p->events[i].begun_s);
        profile_put_text(out, p->events[i].text);
        fputs(".</p>\n", out);
    }
    fputs("</section>\n", out);
}

static void put_model_facts(FILE *out, const struct profile *p)
{
    const struct sac_pipeline_stats *s = &p->stats;
    const struct sac_timer_summary  *first = &s->stage[0];
    const char                      *slash = strrchr(p->model.path, '/');
    fprintf(
        out,
        "<p class=f><span><b>%.2f</b> ms a run, p99 %.2f</span> <span><b>%.1f</b> items/s</span> "
        "<span><b>%.0f</b> MB at most</span></p>\n<p>",
        first->p50_ms, first->p99_ms, profile_items_per_s(p, 0), (double)s->rss_peak_bytes * 1e-6);
    profile_put_text(out, slash ? slash + 1 : p->model.path);
    fprintf(out, " by itself, in batches of %d, on ", p->model.runs[0].batch);
    profile_put_text(out, s->device);
    fprintf(out,
            ", %s; %.2f million numbers in its weights (%.1f MB), %.1f MB of activations; saccade "
            "%s.</p>\n",
            s->precision, (double)p->model.parameters * 1e-6, (double)p->model.weights_bytes * 1e-6,
            (double)p->model.activation_bytes * 1e-6, sac_version());
}

static void put_facts(FILE *out, const struct profile *p)
{
    const struct sac_pipeline_stats *s = &p->stats;
    const char                      *network = s->segmenter[0] ? s->segmenter : s->detector;
    const char                      *slash = strrchr(network, '/');
    fprintf(out,
            "<p class=f><span><b>%.1f</b> frames/s</span> <span><b>%" PRId64
            "</b> frames</span> <span><b>%.1f</b> s</span> ",
            s->fps, s->frames, s->elapsed_s);
    if (s->latency.count)
        fprintf(out, "<span><b>%.1f</b> ms latency, p99 %.1f</span> ", s->latency.p50_ms,
                s->latency.p99_ms);
    fprintf(out, "<span><b>%.0f</b> MB at most</span></p>\n<p>", (double)s->rss_peak_bytes * 1e-6);
    profile_put_text(out, s->device);
    fputs("; ", out);
    profile_put_text(out, slash ? slash + 1 : *network ? network : "no network");
    fputs(", ", out);
    profile_put_text(out, s->precision[0] ? s->precision : "-");
    fprintf(out, "; saccade %s; watching the run took %.2f %% of one core.</p>\n", sac_version(),
            100 * p->monitor_cost);
}

static const char style[] =
    "body{font:15px/1.5 system-ui,sans-serif;color:#111827;background:#fff;margin:0 auto;"
    "max-width:1320px;padding:16px}h1{font-size:24px;margin:8px 0}h2{font-size:18px;margin:28px 0 "
    "8px}"
    "table{border-collapse:collapse;font-size:13px}th,td{padding:3px 10px;text-align:left;"
    "border-bottom:1px solid #e5e7eb;white-space:nowrap}.n{text-align:right;"
    "font-variant-numeric:tabular-nums}.w{overflow-x:auto}svg{width:100%;height:auto;display:block}"
    "svg text{font-size:11px;fill:#4b5563}.g{stroke:#e5e7eb}.c{display:grid;gap:16px;"
    "grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr))}figure{margin:0;max-width:"
    "480px}"
    "figcaption{font-weight:600;font-size:13px}.k{font-size:12px;margin:2px 0}.k "
    "span{margin-right:10px;"
    "white-space:nowrap}.k i{display:inline-block;width:10px;height:10px;margin-right:4px}"
    ".t{min-width:1200px}.v{background:#eff6ff;border-left:4px solid #2563eb;padding:4px 16px}"
    ".v p{margin:8px 0}.f span{margin-right:24px;white-space:nowrap}.f b{font-size:22px}"
    ".bad{color:#b91c1c}.good{color:#047857}";

static void put_model_page(FILE *out, const struct profile *p)
{
    put_model_facts(out, p);
    put_verdict(out, p);
    put_comparison(out, p);
    if (p->by_memory)
        put_allocations(out, p);
    put_runs(out, p);
    put_layers(out, p);
    if (p->stacks)
        profile_put_stacks(out, p->stacks, p->rows);
    put_charts(out, p);
    put_model_owners(out, p);
    if (!p->by_memory)
        put_allocations(out, p);
    put_copies(out, &p->stats);
}

static void put_run_page(FILE *out, const struct profile *p)
{
    put_facts(out, p);
    put_verdict(out, p);
    put_comparison(out, p);
    if (p->by_memory)
        put_allocations(out, p);
    put_stages(out, &p->stats);
    put_timeline(out, p);
    if (p->stacks)
        profile_put_stacks(out, p->stacks, p->rows);
    put_charts(out, p);
    put_batches(out, p);
    put_queues(out, &p->stats);
    put_layers(out, p);
    put_owners(out, &p->stats);
    if (!p->by_memory)
        put_allocations(out, p);
    put_copies(out, &p->stats);
}

static void put_page(const void *user, FILE *out)
{
    const struct profile *p = user;
    fprintf(out,
            "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport "
            "content=\"width=device-width\"><title>saccade profile</title><style>%s</style></head>"
            "<body>\n<h1>saccade profile</h1>\n",
            style);
    (p->model.path ? put_model_page : put_run_page)(out, p);
    fputs("</body></html>\n", out);
}

int profile_write_page(const struct profile *p, struct fault *fault)
{
    return whole_file_write(p->page, put_page, p, fault);
}
