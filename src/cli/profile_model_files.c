/* SPDX-License-Identifier: Apache-2.0 */
/* A profiled model as JSON (docs/model-profile.schema.json), and its trace in the format that
 * observe/trace.c writes for a run. */
#include <stdlib.h>
#include <string.h>

#include "profile.h"
#include "whole_file.h"

/* ---- JSON ---- */

static void add_text(struct sac_json *json, const char *key, const char *text)
{
    sac_json_string(json, key, *text ? text : NULL);
}

static void add_runs(struct sac_json *json, const struct profile *p, int i)
{
    const struct sac_timer_summary *t = &p->stats.stage[i];
    sac_json_open(json, NULL, '{');
    sac_json_int(json, "batch", p->model.runs[i].batch);
    sac_json_int(json, "count", t->count);
    sac_json_real(json, "total_ms", t->total_ms);
    sac_json_real(json, "mean_ms", t->mean_ms);
    sac_json_real(json, "p50_ms", t->p50_ms);
    sac_json_real(json, "p95_ms", t->p95_ms);
    sac_json_real(json, "p99_ms", t->p99_ms);
    sac_json_real(json, "max_ms", t->max_ms);
    sac_json_real(json, "first_ms", p->model.runs[i].first_ms);
    sac_json_real(json, "items_per_s", profile_items_per_s(p, i));
    sac_json_close(json, '}');
}

/* The members of docs/stats.schema.json. */
static void add_allocation(struct sac_json *json, const struct sac_allocation *a)
{
    sac_json_open(json, NULL, '{');
    sac_json_string(json, "owner", a->owner);
    add_text(json, "stage", a->stage);
    sac_json_string(json, "place", a->place);
    add_text(json, "shape", a->shape);
    sac_json_int(json, "bytes", (int64_t)a->bytes);
    sac_json_int(json, "count", (int64_t)a->count);
    sac_json_int(json, "count_peak", (int64_t)a->count_peak);
    sac_json_int(json, "bytes_live", (int64_t)a->bytes_live);
    sac_json_int(json, "bytes_peak", (int64_t)a->bytes_peak);
    sac_json_int(json, "requests", (int64_t)a->requests);
    sac_json_real(json, "first_s", a->first_s);
    sac_json_real(json, "last_s", a->last_s);
    sac_json_close(json, '}');
}

static void add_judgement(struct sac_json *json, const struct sac_pipeline_stats *s)
{
    if (s->bottleneck[0]) {
        sac_json_open(json, "bottleneck", '{');
        sac_json_string(json, "what", s->bottleneck);
        sac_json_string(json, "why", s->bottleneck_why);
        sac_json_close(json, '}');
    } else
        sac_json_null(json, "bottleneck");
    sac_json_open(json, "advice", '[');
    for (int i = 0; i < s->advice_count; i++)
        sac_json_string(json, NULL, s->advice[i]);
    sac_json_close(json, ']');
}

static void add_document(struct sac_json *json, const struct profile *p)
{
    const struct sac_pipeline_stats *s = &p->stats;
    char                             program[64];
    snprintf(program, sizeof program, "saccade %s", sac_version());
    sac_json_open(json, NULL, '{');
    sac_json_string(json, "format", PROFILE_MODEL_FORMAT);
    sac_json_int(json, "version", 1);
    sac_json_string(json, "program", program);
    sac_json_string(json, "model", p->model.path);
    sac_json_string(json, "device", s->device);
    sac_json_string(json, "precision", s->precision);
    sac_json_int(json, "threads", p->model.threads);
    sac_json_int(json, "parameters", p->model.parameters);
    sac_json_int(json, "weights_bytes", p->model.weights_bytes);
    sac_json_int(json, "rss_peak_bytes", (int64_t)s->rss_peak_bytes);
    sac_json_int(json, "pool_peak_bytes", (int64_t)s->pool.bytes_peak);
    sac_json_open(json, "runs", '[');
    for (int i = 0; i < p->model.count; i++)
        add_runs(json, p, i);
    sac_json_close(json, ']');
    add_judgement(json, s);
    sac_json_open(json, "measured", '{');
    sac_json_real(json, "bytes_per_s", p->layers.rates.bytes_per_s);
    sac_json_real(json, "flops_per_s", p->layers.rates.flops_per_s);
    sac_json_real(json, "step_ms", p->layers.rates.step_ms);
    sac_json_close(json, '}');
    sac_json_int(json, "layers_batch", p->layers_batch);
    layers_json(&p->layers, json);
    sac_json_open(json, "allocations", '[');
    for (int i = 0; i < p->allocation_count; i++)
        add_allocation(json, &p->allocation[i]);
    sac_json_close(json, ']');
    sac_json_close(json, '}');
}

/* ---- the trace ---- */

enum { TRACK_RUNS = 1, TRACK_STEPS };

/* An element a line, as profile_trace.c reads it; the caller closes its arguments and itself. */
static void begin_element(struct sac_json *json, const char *kind, const char *name, int track)
{
    sac_text_add(json->text, json->text->length ? ",\n" : "[\n");
    json->follows = false;
    sac_json_open(json, NULL, '{');
    sac_json_string(json, "ph", kind);
    sac_json_int(json, "pid", 1);
    sac_json_string(json, "name", name);
    sac_json_int(json, "tid", track);
}

static void end_element(struct sac_json *json)
{
    sac_json_close(json, '}');
    sac_json_close(json, '}');
}

static void add_name(struct sac_json *json, const char *what, int track, const char *name)
{
    begin_element(json, "M", what, track);
    sac_json_open(json, "args", '{');
    sac_json_string(json, "name", name);
    end_element(json);
}

static void begin_span(struct sac_json *json, const char *name, int track, double begun_us,
                       double took_us)
{
    begin_element(json, "X", name, track);
    sac_json_fixed(json, "ts", begun_us, 3);
    sac_json_fixed(json, "dur", took_us, 3);
    sac_json_open(json, "args", '{');
}

static int by_place(const void *a, const void *b)
{
    const struct layer *const *x = a, *const *y = b;
    return ((*x)->place > (*y)->place) - ((*x)->place < (*y)->place);
}

/* As one run has them: where the runs were in which they were measured, with their means. */
static bool add_steps(struct sac_json *json, const struct profile *p)
{
    const struct layers *l = &p->layers;
    double               at_us = p->model.runs[0].ended_us;
    const struct layer **steps = calloc(l->count + 1, sizeof *steps);
    if (!steps)
        return false;
    for (size_t i = 0; i < l->count; i++)
        steps[i] = &l->items[i];
    qsort(steps, l->count, sizeof *steps, by_place);
    for (size_t i = 0; i < l->count; i++) {
        begin_span(json, *steps[i]->name ? steps[i]->name : steps[i]->operator_name, TRACK_STEPS,
                   at_us, steps[i]->ms * 1e3);
        sac_json_string(json, "operator", steps[i]->operator_name);
        sac_json_string(json, "kernel", steps[i]->kernel);
        sac_json_string(json, "output", steps[i]->output);
        sac_json_int(json, "bytes", (int64_t)steps[i]->bytes);
        sac_json_int(json, "flops", (int64_t)steps[i]->flops);
        end_element(json);
        at_us += steps[i]->ms * 1e3;
    }
    free(steps);
    return true;
}

static bool add_trace(struct sac_json *json, const struct profile *p)
{
    add_name(json, "process_name", 0, "saccade");
    add_name(json, "thread_name", TRACK_RUNS, "runs");
    add_name(json, "thread_name", TRACK_STEPS, "steps of a run (means)");
    for (int i = 0; i < p->model.count; i++)
        for (int k = 0; k < p->model.runs[i].count; k++) {
            begin_span(json, p->stats.stage[i].name, TRACK_RUNS, p->model.runs[i].begun_us[k],
                       p->model.runs[i].ms[k] * 1e3);
            sac_json_int(json, "batch", p->model.runs[i].batch);
            end_element(json);
        }
    const bool whole = add_steps(json, p);
    sac_text_add(json->text, "\n]\n");
    return whole;
}

/* ---- files ---- */

static void put_whole(const void *user, FILE *out)
{
    const struct sac_text *text = user;
    fwrite(text->data, 1, text->length, out);
}

int profile_write_model(const struct profile *p, struct fault *fault)
{
    struct sac_text text = {0}, lines = {0};
    struct sac_json json = {.text = &text}, trace = {.text = &lines};
    add_document(&json, p);
    sac_text_add(&text, "\n");
    bool whole = add_trace(&trace, p);
    whole &= !text.failed && !lines.failed;
    int status = whole ? STATUS_OK : fault_failure(fault, "out of memory");
    if (status == STATUS_OK)
        status = whole_file_write(p->trace_path, put_whole, &lines, fault);
    if (status == STATUS_OK)
        status = whole_file_write(p->stats_path, put_whole, &text, fault);
    sac_text_finish(&text);
    sac_text_finish(&lines);
    return status;
}
