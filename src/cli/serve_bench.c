/* SPDX-License-Identifier: Apache-2.0 */
/* saccade serve-bench: a model under the requests of many threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <saccade/server.h>

#include "interrupt.h"
#include "serve_load.h"
#include "term.h"
#include "verbs.h"
#include "wrap.h"

enum { PRIORITIES_MAX = 10, INPUTS_MAX = 16 };

struct serve_bench {
    struct settings         *settings;
    sac_context             *ctx;
    sac_device              *device, *host; /* host: where the inputs are, if not on the device */
    sac_model               *model;
    struct sac_server_params params;
    sac_tensor              *in[INPUTS_MAX];
    double                   one_per_s, most_per_s; /* of batch 1, and of full batches */
    struct serve_series      series[PRIORITIES_MAX];
    struct serve_result      result;
    struct sac_server_stats  stats;
    struct fault            *fault;
};

/* ---- before the load ---- */

static int read_size(struct serve_bench *b)
{
    const char *text = b->settings->serve_size;
    int         width, height;
    char        rest;
    if (!text)
        return STATUS_OK;
    if (sscanf(text, "%9dx%9d%c", &width, &height, &rest) != 2 || width < 1 || height < 1 ||
        width > 32768 || height > 32768)
        return fault_usage(b->fault, "--size: '%s' is not WxH, such as 640x640", text);
    b->params.width = width;
    b->params.height = height;
    return STATUS_OK;
}

static int open_model(struct serve_bench *b)
{
    struct settings        *s = b->settings;
    struct sac_model_params params = sac_model_params_default();
    params.precision = s->run.job.detector_params.precision;
    sac_result res =
        sac_device_open(b->ctx, s->run.job.device, &s->run.job.device_params, &b->device);
    if (res == SAC_OK)
        res = sac_model_load(b->device, s->args.items[0], &params, &b->model);
    if (res == SAC_OK && s->serve.host_outputs)
        res = sac_device_open(b->ctx, "cpu", NULL, &b->host);
    if (res != SAC_OK)
        return fault_library(b->fault, b->ctx, res);
    if (sac_model_input_count(b->model) > INPUTS_MAX)
        return fault_failure(b->fault, "the model has more than %d inputs", (int)INPUTS_MAX);
    return STATUS_OK;
}

/* Numbers of about the size of normalised pixels; what is no float32 is 0. */
static void fill(void *data, const struct sac_tensor_desc *desc)
{
    const int64_t n = desc->dtype == SAC_F32 ? sac_tensor_desc_elements(desc) : 0;
    uint32_t      seed = 1;
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        ((float *)data)[i] = (float)(seed >> 8) / 16777216.0f - 0.5f;
    }
}

/* A model that fixes the size of its images would run in its own, whatever was asked for. */
static int check_size(struct serve_bench *b, const sac_server *server)
{
    const struct sac_tensor_desc *desc;
    if (!b->params.width)
        return STATUS_OK;
    for (int i = 0; (desc = sac_server_input(server, i)); i++)
        for (int d = 1; d < desc->rank; d++) /* in either layout */
            if (desc->shape[d - 1] == b->params.height && desc->shape[d] == b->params.width)
                return STATUS_OK;
    return fault_usage(b->fault,
                       "--size %dx%d: the model fixes the size of its input, which saccade inspect "
                       "prints",
                       b->params.width, b->params.height);
}

static int make_inputs(struct serve_bench *b, const sac_server *server)
{
    const struct sac_tensor_desc *desc;
    sac_device                   *dev = b->host ? b->host : b->device;
    for (int i = 0; (desc = sac_server_input(server, i)) && !b->in[i]; i++) {
        void *data = calloc((size_t)sac_tensor_desc_bytes(desc) + 1, 1);
        if (!data)
            return fault_failure(b->fault, "out of memory");
        fill(data, desc);
        sac_result res = sac_tensor_create(dev, desc, "serve-bench input", &b->in[i]);
        if (res == SAC_OK)
            res = sac_tensor_upload(b->in[i], data);
        free(data);
        if (res != SAC_OK)
            return fault_library(b->fault, b->ctx, res);
    }
    return STATUS_OK;
}

static struct serve_load load_of(struct serve_bench *b, sac_server *server)
{
    const struct settings *s = b->settings;
    return (struct serve_load){.server = server,
                               .in = b->in,
                               .clients = s->serve_clients,
                               .priorities = s->serve_priorities,
                               .seconds = s->serve_seconds,
                               .deadline_us = llround(s->serve_deadline_ms * 1e3)};
}

/* Items a second that a server does with as many requests as it takes. */
static int saturate(struct serve_bench *b, const struct sac_server_params *given,
                    struct sac_server_stats *stats, double *per_s)
{
    struct sac_server_params params = *given;
    sac_server              *server = NULL;
    params.block = 0;
    params.queue_max = 1024;
    sac_result res = sac_server_create(b->model, &params, &server);
    int        status = res == SAC_OK ? check_size(b, server) : STATUS_OK;
    if (res == SAC_OK && status == STATUS_OK)
        status = make_inputs(b, server);
    if (res == SAC_OK && status == STATUS_OK) {
        const struct serve_load load = load_of(b, server);
        res = serve_saturate(&load, per_s);
        sac_server_get_stats(server, stats);
    }
    sac_server_destroy(&server);
    return res == SAC_OK ? status : fault_library(b->fault, b->ctx, res);
}

/* Batch 1, then the batches that were asked for: the size that a goal chose is kept. */
static int measure_capacity(struct serve_bench *b)
{
    struct sac_server_params one = b->params;
    struct sac_server_stats  stats;
    one.batch_max = one.batch_min = 1;
    one.batch_preferred = 0;
    one.goal = SAC_GOAL_NONE;
    int status = saturate(b, &one, &stats, &b->one_per_s);
    if (status == STATUS_OK)
        status = saturate(b, &b->params, &stats, &b->most_per_s);
    if (status != STATUS_OK)
        return status;
    b->params.batch_max = stats.batch_max;
    b->params.goal = SAC_GOAL_NONE;
    if (b->one_per_s <= 0 || b->most_per_s <= 0)
        return fault_failure(b->fault, "no request was answered in %.3g s: give it more --seconds",
                             b->settings->serve_seconds);
    return STATUS_OK;
}

/* ---- the load ---- */

static int64_t answered(const struct serve_bench *b)
{
    int64_t sum = 0;
    for (int i = 0; i < b->settings->serve_priorities; i++)
        sum += b->series[i].answered;
    return sum;
}

static int run_load(struct serve_bench *b)
{
    sac_server *server = NULL;
    sac_result  res = sac_server_create(b->model, &b->params, &server);
    if (res != SAC_OK)
        return fault_library(b->fault, b->ctx, res);
    struct serve_load load = load_of(b, server);
    load.per_s = b->settings->serve_load * b->most_per_s;
    const bool ran = serve_run(&load, b->series, &b->result);
    sac_server_get_stats(server, &b->stats);
    sac_server_destroy(&server);
    if (!ran)
        return fault_failure(b->fault, "a client's thread could not be started");
    if (b->result.fault != SAC_OK)
        return fault_failure(b->fault, "a request was not taken: %s",
                             sac_result_name(b->result.fault));
    if (answered(b) != b->result.submitted)
        return fault_failure(b->fault, "of %lld requests %lld were answered",
                             (long long)b->result.submitted, (long long)answered(b));
    return STATUS_OK;
}

/* ---- what is printed ---- */

static void print_batches(const struct serve_bench *b)
{
    printf("batches     ");
    for (int i = 1; i <= SAC_SERVER_BATCH_MAX; i++)
        if (b->stats.batch[i])
            printf(" %d:%lld", i, (long long)b->stats.batch[i]);
    printf("  (items:batches; %lld items filled up)\n", (long long)b->stats.padded);
}

static void print_series(const struct serve_bench *b)
{
    for (int i = b->settings->serve_priorities - 1; i >= 0; i--) {
        const struct serve_series *s = &b->series[i];
        if (s->count == 0) {
            printf("priority %-3d none ran  missed %lld of %lld, failed %lld\n", i,
                   (long long)s->missed, (long long)s->answered, (long long)s->failed);
            continue;
        }
        printf("priority %-3d p50 %.2f  p95 %.2f  p99 %.2f  max %.2f ms  missed %lld of %lld, "
               "failed %lld\n",
               i, serve_percentile(s, 0.5), serve_percentile(s, 0.95), serve_percentile(s, 0.99),
               serve_percentile(s, 1), (long long)s->missed, (long long)s->answered,
               (long long)s->failed);
    }
}

static int print_text(const struct serve_bench *b)
{
    const struct settings *s = b->settings;
    print_clean(stdout, s->args.items[0]);
    printf("  %s on %s, %d clients, tensors in %s memory\n",
           sac_precision_name(sac_model_precision(b->model)), sac_device_name(b->device),
           s->serve_clients, b->host ? "the host's" : "the device's");
    printf("batch 1      %.1f items/s\n", b->one_per_s);
    printf("batch %-6d %.1f items/s, %.2f times batch 1\n", b->params.batch_max, b->most_per_s,
           b->most_per_s / b->one_per_s);
    printf("load %-7.2f %.1f items/s asked, %.1f answered, deadline %g ms\n", s->serve_load,
           (double)b->result.offered / s->serve_seconds,
           (double)b->stats.answered / b->result.seconds, s->serve_deadline_ms);
    print_series(b);
    print_batches(b);
    printf(
        "queue        up to %d waited, p99 %.2f ms; %lld found it full, %lld were refused late\n",
        b->stats.queue_length_max, b->stats.queue.p99_ms, (long long)b->result.full,
        (long long)b->stats.refused);
    return STATUS_OK;
}

static void json_series(const struct serve_bench *b, struct sac_json *json)
{
    sac_json_open(json, "priorities", '[');
    for (int i = b->settings->serve_priorities - 1; i >= 0; i--) {
        const struct serve_series *s = &b->series[i];
        sac_json_open(json, NULL, '{');
        sac_json_int(json, "priority", i);
        sac_json_int(json, "answered", s->answered);
        sac_json_int(json, "failed", s->failed);
        sac_json_int(json, "missed", s->missed);
        sac_json_real(json, "p50_ms", serve_percentile(s, 0.5));
        sac_json_real(json, "p95_ms", serve_percentile(s, 0.95));
        sac_json_real(json, "p99_ms", serve_percentile(s, 0.99));
        sac_json_real(json, "max_ms", serve_percentile(s, 1));
        sac_json_close(json, '}');
    }
    sac_json_close(json, ']');
}

static void json_batches(const struct serve_bench *b, struct sac_json *json)
{
    sac_json_open(json, "batches", '[');
    for (int i = 1; i <= SAC_SERVER_BATCH_MAX; i++)
        if (b->stats.batch[i]) {
            sac_json_open(json, NULL, '{');
            sac_json_int(json, "items", i);
            sac_json_int(json, "count", b->stats.batch[i]);
            sac_json_close(json, '}');
        }
    sac_json_close(json, ']');
}

static int write_json(const struct serve_bench *b)
{
    const struct settings *s = b->settings;
    struct sac_text        text = {0};
    struct sac_json        json = {.text = &text, .spaced = true};
    sac_json_open(&json, NULL, '{');
    sac_json_string(&json, "model", s->args.items[0]);
    sac_json_string(&json, "device", sac_device_name(b->device));
    sac_json_string(&json, "precision", sac_precision_name(sac_model_precision(b->model)));
    sac_json_int(&json, "clients", s->serve_clients);
    sac_json_real(&json, "batch_1_items_per_s", b->one_per_s);
    sac_json_int(&json, "batch_max", b->params.batch_max);
    sac_json_real(&json, "items_per_s", b->most_per_s);
    sac_json_real(&json, "load", s->serve_load);
    sac_json_real(&json, "deadline_ms", s->serve_deadline_ms);
    sac_json_real(&json, "seconds", b->result.seconds);
    sac_json_int(&json, "offered", b->result.offered);
    sac_json_int(&json, "submitted", b->result.submitted);
    sac_json_int(&json, "full", b->result.full);
    sac_json_int(&json, "refused", b->stats.refused);
    sac_json_int(&json, "padded", b->stats.padded);
    sac_json_int(&json, "queue_length_max", b->stats.queue_length_max);
    sac_json_real(&json, "queue_p99_ms", b->stats.queue.p99_ms);
    json_series(b, &json);
    json_batches(b, &json);
    sac_json_close(&json, '}');
    return print_json(&json, b->fault);
}

/* ---- the verb ---- */

int verb_serve_bench(struct settings *s, struct fault *fault)
{
    struct serve_bench b = {.settings = s, .fault = fault, .params = s->serve};
    int                status = read_size(&b);
    if (status == STATUS_OK)
        status = term_context(s, &b.ctx, fault);
    if (status != STATUS_OK)
        return status;
    interrupt_ends();
    status = open_model(&b);
    if (status == STATUS_OK)
        status = measure_capacity(&b);
    if (status == STATUS_OK)
        status = run_load(&b);
    if (status == STATUS_OK)
        status = s->json ? write_json(&b) : print_text(&b);
    for (int i = 0; i < INPUTS_MAX; i++)
        sac_tensor_unref(&b.in[i]);
    sac_model_unref(&b.model);
    sac_device_unref(&b.host);
    sac_device_unref(&b.device);
    sac_context_destroy(&b.ctx);
    return status;
}
