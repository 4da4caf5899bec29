/* SPDX-License-Identifier: Apache-2.0 */
/* saccade bench: how long a model takes, and where the time goes. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <saccade/model.h>

#include "bench.h"
#include "interrupt.h"
#include "shape_text.h"
#include "term.h"
#include "verbs.h"
#include "wrap.h"

enum { BATCH_MOST = 1 << 20, RUNS_MIN = 5, RUNS_MAX = 20000, PROFILED_RUNS = 10 };

/* ---- the command line ---- */

static int read_batches(struct bench *b)
{
    const char *text = b->settings->bench_batch;
    b->batch_count = 0;
    while (text && *text) {
        char *end;
        errno = 0;
        const long n = strtol(text, &end, 10);
        if (!isdigit((unsigned char)*text) || errno || n < 1 || n > BATCH_MOST ||
            (*end && (*end != ',' || !end[1])))
            return fault_usage(b->fault, "--batch: '%s' is no list of batch sizes, such as 1,8,32",
                               b->settings->bench_batch);
        if (b->batch_count == BENCH_BATCHES_MAX)
            return fault_usage(b->fault, "--batch: more than %d sizes", BENCH_BATCHES_MAX);
        b->batches[b->batch_count++] = (int)n;
        text = *end ? end + 1 : end;
    }
    return STATUS_OK;
}

static int unknown_input(struct bench *b, const char *text, int length)
{
    char have[256] = "";
    for (int i = 0; i < b->input_count; i++) {
        const size_t used = strlen(have);
        snprintf(have + used, sizeof have - used, "%s%s", i ? ", " : "",
                 sac_model_input(b->model, i)->name);
    }
    return fault_usage(b->fault, "--shape: the model has no input '%.*s'; it has %s", length, text,
                       have);
}

/* "NAME=1,3,640,640"; with one input NAME may be left out. */
static int read_shape(struct bench *b, const char *text)
{
    const char *equals = strrchr(text, '=');
    int         slot = !equals && b->input_count == 1 ? 0 : -1;
    for (int i = 0; i < b->input_count && equals; i++) {
        const char *name = sac_model_input(b->model, i)->name;
        if (strlen(name) == (size_t)(equals - text) &&
            strncmp(name, text, (size_t)(equals - text)) == 0)
            slot = i;
    }
    if (!equals && slot < 0)
        return fault_usage(b->fault, "--shape: '%s' is not NAME=1,3,640,640", text);
    if (slot < 0)
        return unknown_input(b, text, (int)(equals - text));
    const struct sac_tensor_desc *port = &sac_model_input(b->model, slot)->desc;
    struct sac_tensor_desc        desc = *port;
    const char                   *end;
    if (!shape_read(equals ? equals + 1 : text, &end, &desc) || *end)
        return fault_usage(b->fault, "--shape: '%s' is not NAME=1,3,640,640", text);
    bool fits = port->rank < 0 || port->rank == desc.rank;
    for (int d = 0; fits && d < port->rank; d++)
        fits = port->shape[d] == SAC_DIM_UNKNOWN || port->shape[d] == desc.shape[d];
    if (!fits) {
        char have[128];
        shape_text(port, have, sizeof have);
        return fault_usage(b->fault, "--shape: '%s' does not fit the input, which is %s", text,
                           have);
    }
    if (port->rank > 0 && port->shape[0] == SAC_DIM_UNKNOWN && desc.shape[0] == 1)
        desc.shape[0] = SAC_DIM_UNKNOWN; /* --batch says it */
    b->shapes[slot] = desc;
    return STATUS_OK;
}

static int check_open(struct bench *b, int i)
{
    const struct sac_model_port *port = sac_model_input(b->model, i);
    char                         shape[128], such[128] = "1,3,640,640";
    size_t                       used = 0;
    bool                         open = b->shapes[i].rank < 0;
    for (int d = 0; d < b->shapes[i].rank; d++) {
        const int64_t n = b->shapes[i].shape[d];
        open |= d > 0 && n == SAC_DIM_UNKNOWN;
        used += (size_t)snprintf(such + used, sizeof such - used, "%s%lld", d ? "," : "",
                                 n != SAC_DIM_UNKNOWN ? (long long)n
                                 : d == 0             ? 1LL
                                                      : 640LL);
    }
    if (!open)
        return STATUS_OK;
    shape_text(&port->desc, shape, sizeof shape);
    return fault_usage(b->fault, "input '%s' (%s) has no size of its own; add --shape %s=%s or so",
                       port->name, port->desc.rank < 0 ? "of any shape" : shape, port->name, such);
}

static int read_shapes(struct bench *b)
{
    const struct text_list *given = &b->settings->bench_shapes;
    int                     status = STATUS_OK;
    for (int i = 0; i < b->input_count; i++)
        b->shapes[i] = sac_model_input(b->model, i)->desc;
    for (size_t i = 0; i < given->count && status == STATUS_OK; i++)
        status = read_shape(b, given->items[i]);
    for (int i = 0; i < b->input_count && status == STATUS_OK; i++)
        status = check_open(b, i);
    return status;
}

/* ---- inputs ---- */

bool bench_takes_batch(const struct bench *b)
{
    for (int i = 0; i < b->input_count; i++)
        if (b->shapes[i].rank > 0 && b->shapes[i].shape[0] == SAC_DIM_UNKNOWN)
            return true;
    return false;
}

/* Of inputs that are not open: images have the batch first. */
static int own_batch(const struct bench *b)
{
    const struct sac_tensor_desc *first = b->input_count ? &b->shapes[0] : NULL;
    return first && first->rank == 4 && first->shape[0] > 0 && first->shape[0] < BATCH_MOST
               ? (int)first->shape[0]
               : 1;
}

static int choose_batches(struct bench *b)
{
    const bool open = bench_takes_batch(b);
    const int  own = own_batch(b);
    if (b->batch_count == 0) {
        b->batch_count = 1;
        b->batches[0] = open ? 1 : own;
    }
    for (int i = 0; i < b->batch_count && !open; i++)
        if (b->batches[i] != own)
            return fault_usage(b->fault, "--batch: the model has a batch of %d of its own, not %d",
                               own, b->batches[i]);
    return STATUS_OK;
}

/* Numbers of about the size of normalised pixels; whole numbers are 0, as any other may be an index
 * out of range. */
static void fill(void *data, const struct sac_tensor_desc *desc)
{
    const int64_t n = sac_tensor_desc_elements(desc);
    uint32_t      seed = 1;
    memset(data, 0, (size_t)sac_tensor_desc_bytes(desc));
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        const float v = (float)(seed >> 8) / 16777216.0f - 0.5f;
        if (desc->dtype == SAC_F32)
            ((float *)data)[i] = v;
        else if (desc->dtype == SAC_F64)
            ((double *)data)[i] = (double)v;
        else if (desc->dtype == SAC_F16) /* 0.125 to 0.25, and below 0 */
            ((uint16_t *)data)[i] =
                (uint16_t)(0x3000u | (seed >> 22 & 0x3ffu) | (seed >> 1 & 0x8000u));
    }
}

static void drop(sac_tensor **tensors, int count)
{
    for (int i = 0; tensors && i < count; i++)
        sac_tensor_unref(&tensors[i]);
}

static int make_inputs(struct bench *b, int batch)
{
    drop(b->inputs, b->input_count);
    for (int i = 0; i < b->input_count; i++) {
        struct sac_tensor_desc desc = b->shapes[i];
        if (desc.rank > 0 && desc.shape[0] == SAC_DIM_UNKNOWN)
            desc.shape[0] = batch;
        sac_result res = sac_tensor_create(b->device, &desc, "bench input", &b->inputs[i]);
        void *data = res == SAC_OK ? calloc((size_t)sac_tensor_desc_bytes(&desc) + 1, 1) : NULL;
        if (res == SAC_OK && !data)
            return fault_failure(b->fault, "out of memory");
        if (data)
            fill(data, &desc);
        if (res == SAC_OK)
            res = sac_tensor_upload(b->inputs[i], data);
        free(data);
        if (res != SAC_OK)
            return fault_library(b->fault, b->ctx, res);
    }
    return STATUS_OK;
}

/* ---- measuring ---- */

static int profile(struct bench *b, struct layers *layers)
{
    sac_result res = SAC_OK;
    sac_model_profile(b->model, 1);
    for (int i = 0; i < PROFILED_RUNS && res == SAC_OK; i++) {
        res = sac_model_run(b->model, b->inputs, b->outputs);
        drop(b->outputs, b->output_count);
    }
    sac_model_profile(b->model, 0);
    if (res != SAC_OK)
        return fault_library(b->fault, b->ctx, res);
    return layers_read(layers, b->model, &b->rates) ? STATUS_OK
                                                    : fault_failure(b->fault, "out of memory");
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static sac_result run_once(struct bench *b, double *ms)
{
    const double     begun_us = now_us();
    const sac_result res = sac_model_run(b->model, b->inputs, b->outputs);
    *ms = (now_us() - begun_us) / 1e3;
    drop(b->outputs, b->output_count);
    return res;
}

/* Room for as many again. */
static bool grow(struct bench_runs *runs, int *room)
{
    const size_t more = *room ? 2 * (size_t)*room : 256;
    double      *ms = realloc(runs->ms, more * sizeof *ms);
    runs->ms = ms ? ms : runs->ms;
    double *begun = realloc(runs->begun_us, more * sizeof *begun);
    runs->begun_us = begun ? begun : runs->begun_us;
    *room = ms && begun ? (int)more : *room;
    return ms && begun;
}

int bench_time_runs(struct bench *b, int batch, struct bench_runs *runs, struct layers *layers)
{
    int room = 0, status = make_inputs(b, batch);
    if (status != STATUS_OK)
        return status;
    runs->batch = batch;
    sac_result   res = run_once(b, &runs->first_ms);
    const double until_us = now_us() + b->settings->bench_seconds * 1e6;
    while (res == SAC_OK && (now_us() < until_us || runs->count < RUNS_MIN) &&
           runs->count < RUNS_MAX) {
        if (runs->count == room && !grow(runs, &room))
            return fault_failure(b->fault, "out of memory");
        runs->begun_us[runs->count] = now_us() - b->opened_us;
        res = run_once(b, &runs->ms[runs->count]);
        runs->count += res == SAC_OK;
    }
    runs->ended_us = now_us() - b->opened_us;
    if (res != SAC_OK)
        return fault_library(b->fault, b->ctx, res);
    return layers ? profile(b, layers) : STATUS_OK;
}

void bench_runs_finish(struct bench_runs *runs)
{
    free(runs->ms);
    free(runs->begun_us);
    *runs = (struct bench_runs){0};
}

/* ---- printing ---- */

static void print_batch(struct bench *b, int batch, const struct sac_model_times *times,
                        const struct layers *layers)
{
    printf(
        "batch %-5d median %.3f ms  best %.3f ms  %.1f items/s  (%lld runs, first one %.0f ms)\n",
        batch, times->median_ms, times->best_ms, 1e3 * batch / times->median_ms,
        (long long)times->runs, times->plan_ms);
    if (b->settings->bench_layers)
        layers_print(layers);
    fflush(stdout); /* planning the next batch takes a while */
}

static void json_batch(struct bench *b, struct sac_json *json, int batch,
                       const struct sac_model_times *times, const struct layers *layers)
{
    sac_json_open(json, NULL, '{');
    sac_json_int(json, "batch", batch);
    sac_json_real(json, "median_ms", times->median_ms);
    sac_json_real(json, "best_ms", times->best_ms);
    sac_json_real(json, "items_per_s", 1e3 * batch / times->median_ms);
    sac_json_int(json, "runs", times->runs);
    sac_json_real(json, "first_run_ms", times->plan_ms);
    if (b->settings->bench_layers)
        layers_json(layers, json);
    sac_json_close(json, '}');
}

static int bench_batch(struct bench *b, struct sac_json *json, int batch)
{
    struct sac_model_times times;
    struct layers          layers = {0};
    int                    status = make_inputs(b, batch);
    if (status != STATUS_OK)
        return status;
    sac_result res = sac_model_time(b->model, b->inputs, b->settings->bench_seconds, &times);
    if (res != SAC_OK)
        return fault_library(b->fault, b->ctx, res);
    if (b->settings->bench_layers)
        status = profile(b, &layers);
    if (status == STATUS_OK && b->settings->json)
        json_batch(b, json, batch, &times, &layers);
    else if (status == STATUS_OK)
        print_batch(b, batch, &times, &layers);
    layers_finish(&layers);
    return status;
}

/* ---- what is said first ---- */

static void begin_text(const struct bench *b)
{
    const int threads = sac_device_threads(b->device);
    print_clean(stdout, b->path);
    printf("  %s on %s, %d thread%s\n", sac_precision_name(sac_model_precision(b->model)),
           sac_device_name(b->device), threads, threads == 1 ? "" : "s");
    if (b->settings->bench_layers)
        printf("measured    %.1f GB/s of a copy, %.3f TFLOP/s of a product, %.2f us a step\n",
               b->rates.bytes_per_s / 1e9, b->rates.flops_per_s / 1e12, b->rates.step_ms * 1e3);
    fflush(stdout);
}

static void begin_json(const struct bench *b, struct sac_json *json)
{
    sac_json_open(json, NULL, '{');
    sac_json_string(json, "model", b->path);
    sac_json_string(json, "device", sac_device_name(b->device));
    sac_json_int(json, "threads", sac_device_threads(b->device));
    sac_json_string(json, "precision", sac_precision_name(sac_model_precision(b->model)));
    if (b->settings->bench_layers) {
        sac_json_open(json, "measured", '{');
        sac_json_real(json, "bytes_per_s", b->rates.bytes_per_s);
        sac_json_real(json, "flops_per_s", b->rates.flops_per_s);
        sac_json_real(json, "step_ms", b->rates.step_ms);
        sac_json_close(json, '}');
    }
    sac_json_open(json, "batches", '[');
}

/* ---- opening ---- */

static int open_model(struct bench *b)
{
    const struct settings  *s = b->settings;
    struct sac_model_params params = sac_model_params_default();
    params.precision = s->run.job.detector_params.precision;
    sac_result res =
        sac_device_open(b->ctx, s->run.job.device, &s->run.job.device_params, &b->device);
    if (res == SAC_OK)
        res = sac_model_load(b->device, b->path, &params, &b->model);
    if (res != SAC_OK)
        return fault_library(b->fault, b->ctx, res);
    b->input_count = sac_model_input_count(b->model);
    b->output_count = sac_model_output_count(b->model);
    b->shapes = calloc((size_t)b->input_count + 1, sizeof *b->shapes);
    b->inputs = calloc((size_t)b->input_count + 1, sizeof(sac_tensor *));
    b->outputs = calloc((size_t)b->output_count + 1, sizeof(sac_tensor *));
    if (!b->shapes || !b->inputs || !b->outputs)
        return fault_failure(b->fault, "out of memory");
    return STATUS_OK;
}

int bench_measure_device(struct bench *b)
{
    const sac_result res = sac_device_measure(b->device, sac_model_precision(b->model), &b->rates);
    return res == SAC_OK ? STATUS_OK : fault_library(b->fault, b->ctx, res);
}

int bench_init(struct bench *b, const struct settings *s, const char *model, struct fault *fault)
{
    *b = (struct bench){.settings = s, .path = model, .opened_us = now_us(), .fault = fault};
    int status = read_batches(b);
    if (status == STATUS_OK)
        status = term_context(s, &b->ctx, fault);
    if (status == STATUS_OK)
        status = open_model(b);
    if (status == STATUS_OK)
        status = read_shapes(b);
    if (status == STATUS_OK)
        status = choose_batches(b);
    return status;
}

void bench_finish(struct bench *b)
{
    drop(b->inputs, b->input_count);
    drop(b->outputs, b->output_count);
    free(b->shapes);
    free(b->inputs);
    free(b->outputs);
    sac_model_unref(&b->model);
    sac_device_unref(&b->device);
    sac_context_destroy(&b->ctx);
}

/* ---- the verb ---- */

int verb_bench(struct settings *s, struct fault *fault)
{
    struct sac_text text = {0};
    struct sac_json json = {.text = &text, .spaced = true};
    struct bench    b;
    interrupt_ends();
    int status = bench_init(&b, s, s->args.items[0], fault);
    if (status == STATUS_OK && s->bench_layers)
        status = bench_measure_device(&b);
    if (status == STATUS_OK && s->json)
        begin_json(&b, &json);
    else if (status == STATUS_OK)
        begin_text(&b);
    for (int i = 0; i < b.batch_count && status == STATUS_OK; i++)
        status = bench_batch(&b, &json, b.batches[i]);
    if (status == STATUS_OK && s->json) {
        sac_json_close(&json, ']');
        sac_json_close(&json, '}');
        status = print_json(&json, fault);
    } else
        sac_text_finish(&text);
    bench_finish(&b);
    return status;
}

int bench_model_layers(const struct settings *s, const char *model, int batch,
                       struct layers *layers, struct fault *fault)
{
    struct settings own = *s;
    struct bench    b;
    own.bench_shapes = (struct text_list){0};
    own.bench_batch = NULL;
    int status = bench_init(&b, &own, model, fault);
    if (status == STATUS_OK)
        status = bench_measure_device(&b);
    if (status == STATUS_OK)
        status = make_inputs(&b, bench_takes_batch(&b) ? batch : own_batch(&b));
    if (status == STATUS_OK)
        status = profile(&b, layers);
    bench_finish(&b);
    return status;
}
