/* SPDX-License-Identifier: Apache-2.0 */
/* saccade infer: NumPy files through a model. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <saccade/files.h>
#include <saccade/model.h>

#include "array_files.h"
#include "interrupt.h"
#include "shape_text.h"
#include "term.h"
#include "verbs.h"
#include "wrap.h"

struct inference {
    struct settings   *settings;
    sac_context       *ctx;
    sac_device        *device;
    sac_model         *model;
    int                input_count, output_count;
    sac_tensor       **inputs, **outputs; /* [input_count], [output_count] */
    const char       **input_files;       /* [input_count] */
    struct array_files files;             /* of the outputs, with --output */
    double            *times_ms;          /* [repeat] */
    struct fault      *fault;
};

/* ---- inputs ---- */

static int find_input(const struct inference *inf, const char *name, size_t length)
{
    for (int i = 0; i < inf->input_count; i++) {
        const char *known = sac_model_input(inf->model, i)->name;
        if (strlen(known) == length && strncmp(known, name, length) == 0)
            return i;
    }
    return -1;
}

static int unknown_input(struct inference *inf, const char *text, const char *equals)
{
    char have[256] = "";
    for (int i = 0; i < inf->input_count; i++) {
        size_t used = strlen(have);
        snprintf(have + used, sizeof have - used, "%s%s", i ? ", " : "",
                 sac_model_input(inf->model, i)->name);
    }
    return fault_usage(inf->fault, "--input: the model has no input '%.*s'; it has %s",
                       (int)(equals - text), text, have);
}

/* "NAME=file" or, in the model's order, "file"; a file's own name may have a "=" in it. */
static int load_input(struct inference *inf, const char *text)
{
    const char *equals = strrchr(text, '='), *path = text;
    int         slot = equals ? find_input(inf, text, (size_t)(equals - text)) : -1;
    struct stat st;
    if (slot >= 0)
        path = equals + 1;
    else if (equals && stat(text, &st) != 0)
        return unknown_input(inf, text, equals);
    else
        for (slot = 0; slot < inf->input_count && inf->inputs[slot];)
            slot++;
    if (slot == inf->input_count)
        return fault_usage(inf->fault, "--input: '%s' is one input too many; the model takes %d",
                           text, inf->input_count);
    if (inf->inputs[slot])
        return fault_usage(inf->fault, "--input: '%s' is given twice",
                           sac_model_input(inf->model, slot)->name);
    inf->input_files[slot] = path;
    sac_result res = sac_tensor_load_npy(inf->device, path, &inf->inputs[slot]);
    return res == SAC_OK ? STATUS_OK : fault_library(inf->fault, inf->ctx, res);
}

static int load_inputs(struct inference *inf)
{
    const struct text_list *given = &inf->settings->infer_inputs;
    int                     status = STATUS_OK;
    for (size_t i = 0; i < given->count && status == STATUS_OK; i++)
        status = load_input(inf, given->items[i]);
    for (int i = 0; i < inf->input_count && status == STATUS_OK; i++) {
        char shape[128];
        if (inf->inputs[i])
            continue;
        const struct sac_model_port *port = sac_model_input(inf->model, i);
        shape_text(&port->desc, shape, sizeof shape);
        status = fault_usage(inf->fault, "input '%s' (%s) is not given; add --input %s=FILE.npy",
                             port->name, shape, port->name);
    }
    return status;
}

/* ---- running ---- */

static void drop_outputs(struct inference *inf)
{
    for (int i = 0; inf->outputs && i < inf->output_count; i++)
        sac_tensor_unref(&inf->outputs[i]);
}

static int run_once(struct inference *inf, double *ms)
{
    struct timespec begin, end;
    drop_outputs(inf);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    sac_result res = sac_model_run(inf->model, inf->inputs, inf->outputs);
    clock_gettime(CLOCK_MONOTONIC, &end);
    *ms = (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) / 1e6;
    return res == SAC_OK ? STATUS_OK : fault_library(inf->fault, inf->ctx, res);
}

static int run_all(struct inference *inf)
{
    double first_ms; /* the first run plans for these shapes and is not counted */
    int    status = run_once(inf, &first_ms);
    for (int i = 0; i < inf->settings->infer_repeat && status == STATUS_OK; i++)
        status = run_once(inf, &inf->times_ms[i]);
    return status;
}

/* ---- outputs ---- */

static int name_outputs(struct inference *inf)
{
    const char **names = calloc((size_t)inf->output_count + 1, sizeof *names);
    for (int i = 0; names && i < inf->output_count; i++)
        names[i] = sac_model_output(inf->model, i)->name;
    bool ok = names && array_files_plan(&inf->files, inf->settings->infer_output, names,
                                        (size_t)inf->output_count);
    free(names);
    return ok ? STATUS_OK : fault_failure(inf->fault, "out of memory");
}

/* The files that were read: the model's, the inputs and the configuration; *count of them. */
static const char **list_read(const struct inference *inf, size_t *count)
{
    int files = 0;
    while (sac_model_file(inf->model, files))
        files++;
    const char **read = calloc((size_t)(files + inf->input_count) + 1, sizeof *read);
    for (int i = 0; read && i < files; i++)
        read[i] = sac_model_file(inf->model, i);
    for (int i = 0; read && i < inf->input_count; i++)
        read[files + i] = inf->input_files[i];
    if (read)
        read[files + inf->input_count] = inf->settings->config;
    *count = (size_t)(files + inf->input_count) + 1;
    return read;
}

/* Before the run: each output gets a file of its own, and none overwrites a file that was read. */
static int plan_outputs(struct inference *inf)
{
    size_t count;
    if (!inf->settings->infer_output)
        return STATUS_OK;
    int          status = name_outputs(inf);
    const char **read = status == STATUS_OK ? list_read(inf, &count) : NULL;
    if (status == STATUS_OK && !read)
        return fault_failure(inf->fault, "out of memory");
    if (status == STATUS_OK) {
        sac_result res = sac_files_check(inf->ctx, (const char *const *)inf->files.path,
                                         inf->files.count, read, count);
        if (res != SAC_OK)
            fault_library(inf->fault, inf->ctx, res);
        status = res == SAC_OK ? STATUS_OK : res == SAC_ERR_ARG ? STATUS_USAGE : STATUS_FAILURE;
    }
    free(read);
    return status;
}

static int save_outputs(struct inference *inf)
{
    const char *folder = inf->settings->infer_output;
    if (!folder)
        return STATUS_OK;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return fault_failure(inf->fault, "%s: %s", folder, strerror(errno));
    for (int i = 0; i < inf->output_count; i++) {
        if (!array_files_settle(&inf->files, (size_t)i))
            return fault_failure(inf->fault, "out of memory");
        sac_result res = sac_tensor_save_npy(inf->outputs[i], inf->files.path[i]);
        if (res != SAC_OK)
            return fault_library(inf->fault, inf->ctx, res);
    }
    return STATUS_OK;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct times {
    double min, median, p99;
};

static struct times summarise(double *ms, int n)
{
    qsort(ms, (size_t)n, sizeof *ms, by_value);
    return (struct times){
        .min = ms[0],
        .median = (ms[(n - 1) / 2] + ms[n / 2]) / 2,
        .p99 = ms[(n * 99 + 99) / 100 - 1], /* nearest rank */
    };
}

static int report_json(struct inference *inf, struct times times)
{
    struct sac_text text = {0};
    struct sac_json json = {.text = &text, .spaced = true};
    sac_json_open(&json, NULL, '{');
    sac_json_real(&json, "min_ms", times.min);
    sac_json_real(&json, "median_ms", times.median);
    sac_json_real(&json, "p99_ms", times.p99);
    sac_json_int(&json, "runs", inf->settings->infer_repeat);
    sac_json_int(&json, "threads", sac_device_threads(inf->device));
    sac_json_string(&json, "device", sac_device_name(inf->device));
    sac_json_string(&json, "precision", sac_precision_name(sac_model_precision(inf->model)));
    sac_json_open(&json, "outputs", '[');
    for (int i = 0; i < inf->output_count; i++) {
        const struct sac_tensor_desc *desc = sac_tensor_describe(inf->outputs[i]);
        sac_json_open(&json, NULL, '{');
        sac_json_string(&json, "name", sac_model_output(inf->model, i)->name);
        sac_json_string(&json, "file", inf->files.path ? inf->files.path[i] : NULL);
        sac_json_string(&json, "dtype", sac_dtype_name(desc->dtype));
        sac_json_open(&json, "shape", '[');
        for (int d = 0; d < desc->rank; d++)
            sac_json_int(&json, NULL, desc->shape[d]);
        sac_json_close(&json, ']');
        sac_json_close(&json, '}');
    }
    sac_json_close(&json, ']');
    sac_json_close(&json, '}');
    return print_json(&json, inf->fault);
}

static int report(struct inference *inf)
{
    struct times times = summarise(inf->times_ms, inf->settings->infer_repeat);
    if (inf->settings->json)
        return report_json(inf, times);
    for (int i = 0; i < inf->output_count; i++) {
        char shape[128];
        shape_text(sac_tensor_describe(inf->outputs[i]), shape, sizeof shape);
        printf("output  %s  %s  %s\n", sac_model_output(inf->model, i)->name, shape,
               inf->files.path ? inf->files.path[i] : "");
    }
    printf("min %.3f ms  median %.3f ms  p99 %.3f ms  (%d runs, %s, %s, %d thread%s)\n", times.min,
           times.median, times.p99, inf->settings->infer_repeat, sac_device_name(inf->device),
           sac_precision_name(sac_model_precision(inf->model)), sac_device_threads(inf->device),
           sac_device_threads(inf->device) == 1 ? "" : "s");
    return STATUS_OK;
}

/* ---- the verb ---- */

static int open_model(struct inference *inf)
{
    struct settings        *s = inf->settings;
    struct sac_model_params model = sac_model_params_default();
    model.optimise = s->infer_optimize;
    model.reference = s->infer_reference;
    model.precision = s->run.job.detector_params.precision;
    sac_result res =
        sac_device_open(inf->ctx, s->run.job.device, &s->run.job.device_params, &inf->device);
    if (res == SAC_OK)
        res = sac_model_load(inf->device, s->args.items[0], &model, &inf->model);
    if (res != SAC_OK)
        return fault_library(inf->fault, inf->ctx, res);
    inf->input_count = sac_model_input_count(inf->model);
    inf->output_count = sac_model_output_count(inf->model);
    inf->inputs = calloc((size_t)inf->input_count + 1, sizeof(sac_tensor *));
    inf->outputs = calloc((size_t)inf->output_count + 1, sizeof(sac_tensor *));
    inf->input_files = calloc((size_t)inf->input_count + 1, sizeof *inf->input_files);
    inf->times_ms = calloc((size_t)s->infer_repeat, sizeof *inf->times_ms);
    if (!inf->inputs || !inf->outputs || !inf->input_files || !inf->times_ms)
        return fault_failure(inf->fault, "out of memory");
    return STATUS_OK;
}

static void close_model(struct inference *inf)
{
    drop_outputs(inf);
    for (int i = 0; inf->inputs && i < inf->input_count; i++)
        sac_tensor_unref(&inf->inputs[i]);
    free(inf->inputs);
    free(inf->outputs);
    free(inf->input_files);
    array_files_finish(&inf->files);
    free(inf->times_ms);
    sac_model_unref(&inf->model);
    sac_device_unref(&inf->device);
}

int verb_infer(struct settings *s, struct fault *fault)
{
    struct inference inf = {.settings = s, .fault = fault};
    int              status = term_context(s, &inf.ctx, fault);
    interrupt_ends();
    if (status == STATUS_OK)
        status = open_model(&inf);
    if (status == STATUS_OK)
        status = load_inputs(&inf);
    if (status == STATUS_OK)
        status = plan_outputs(&inf);
    if (status == STATUS_OK)
        status = run_all(&inf);
    if (status == STATUS_OK)
        status = save_outputs(&inf);
    if (status == STATUS_OK)
        status = report(&inf);
    close_model(&inf);
    sac_context_destroy(&inf.ctx);
    return status;
}
