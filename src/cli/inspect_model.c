/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include <saccade/head.h>
#include <saccade/segment.h>

#include "inspect.h"
#include "shape_text.h"
#include "wrap.h"

/* The inspected model. What runs it and contract are NULL if it can't run. */
struct subject {
    const struct settings           *settings;
    sac_device                      *device;
    sac_model                       *model;
    const char                      *path, *head;
    sac_detector                    *detector;
    sac_embedder                    *embedder;
    sac_segmenter                   *segmenter;
    const struct sac_model_contract *contract;
    char                             why[1024]; /* why there is no contract */
};

static const char *source_name(enum sac_contract_source source)
{
    switch (source) {
    case SAC_FROM_HEAD: return "head";
    case SAC_FROM_METADATA: return "metadata";
    case SAC_FROM_YAML: return "yaml";
    case SAC_FROM_USER: return "--preprocess";
    }
    return "unknown";
}

static const char *fit_name(enum sac_fit fit)
{
    switch (fit) {
    case SAC_FIT_STRETCH: return "stretch";
    case SAC_FIT_LETTERBOX_TOPLEFT: return "letterbox topleft";
    case SAC_FIT_LETTERBOX_CENTRE: return "letterbox centre";
    }
    return "unknown";
}

/* Where the head's name came from. */
static const char *head_source(const struct subject *subject)
{
    const char *named = sac_model_metadata(subject->model, "saccade.head");
    if (subject->settings->run.job.detector_params.head)
        return "--head";
    return named && strcmp(named, subject->head) == 0 ? "metadata" : "outputs";
}

/* Creating a head also reads its contract. */
static void read_contract(struct subject *subject, sac_context *ctx)
{
    const enum sac_head_kind kind = sac_head_kind_of(subject->head);
    sac_result               res;
    if (kind == SAC_HEAD_MATTES) {
        struct sac_segmenter_params params = sac_segmenter_params_default();
        params.head = subject->settings->run.job.detector_params.head;
        params.preprocess = subject->settings->run.job.detector_params.preprocess;
        params.precision = sac_model_precision(subject->model);
        res = sac_segmenter_create(subject->device, subject->path, &params, &subject->segmenter);
        if (res == SAC_OK)
            subject->contract = sac_segmenter_contract(subject->segmenter);
    } else if (kind == SAC_HEAD_EMBEDDINGS) {
        struct sac_embedder_params params = sac_embedder_params_default();
        params.preprocess = subject->settings->run.job.detector_params.preprocess;
        params.precision = sac_model_precision(subject->model);
        res = sac_embedder_create(subject->device, subject->path, &params, &subject->embedder);
        if (res == SAC_OK)
            subject->contract = sac_embedder_contract(subject->embedder);
    } else { /* if no head is recognised, this call's error says why */
        struct sac_detector_params params = sac_detector_params_default();
        params.head = subject->settings->run.job.detector_params.head;
        params.preprocess = subject->settings->run.job.detector_params.preprocess;
        params.precision = sac_model_precision(subject->model);
        res = sac_detector_create(subject->device, subject->path, &params, &subject->detector);
        if (res == SAC_OK)
            subject->contract = sac_detector_contract(subject->detector);
    }
    if (res != SAC_OK)
        sac_context_last_error(ctx, subject->why, sizeof subject->why);
}

/* ---- text ---- */

static void print_port(const char *kind, const struct sac_model_port *port)
{
    char shape[128];
    shape_text(&port->desc, shape, sizeof shape);
    printf("%-11s ", kind);
    print_clean(stdout, port->name);
    printf("  %s\n", shape);
}

static void print_ports(const struct subject *subject)
{
    for (int i = 0; i < sac_model_input_count(subject->model); i++)
        print_port("input", sac_model_input(subject->model, i));
    for (int i = 0; i < sac_model_output_count(subject->model); i++)
        print_port("output", sac_model_output(subject->model, i));
}

static void print_operators(const struct sac_model_info *info)
{
    puts("operator             nodes  kernel");
    for (int i = 0; i < info->operator_count; i++) {
        const struct sac_model_operator *op = &info->operators[i];
        char                             name[64], line[512];
        snprintf(name, sizeof name, "%s%s%s", op->domain, *op->domain ? "." : "", op->name);
        const char *what = op->supported ? (op->kernel ? op->kernel : "plain C")
                                         : (op->why ? op->why : "no such operator");
        snprintf(line, sizeof line, "  %-18s %5d  %s%s", name, op->count,
                 op->supported ? "" : "not supported: ", what);
        print_clean(stdout, line);
        putchar('\n');
    }
}

static void print_classes(const struct sac_model_contract *contract)
{
    enum { SHOWN_MAX = 8 };
    printf("  classes   %d", contract->class_count);
    for (int i = 0; i < contract->class_count && i < SHOWN_MAX && contract->classes; i++) {
        fputs(i ? ", " : ": ", stdout);
        print_clean(stdout, contract->classes[i]);
    }
    printf("%s  (%s)\n", contract->class_count > SHOWN_MAX ? ", ..." : "",
           source_name(contract->classes_from));
}

static void print_contract(const struct sac_model_contract *contract)
{
    const struct sac_preprocess *pre = &contract->pre;
    puts("contract");
    printf("  size      %dx%d  (%s)\n", pre->width, pre->height, source_name(contract->size_from));
    printf("  fit       %s  (%s)\n", fit_name(pre->fit), source_name(contract->fit_from));
    printf("  order     %s  (%s)\n", pre->order == SAC_ORDER_BGR ? "bgr" : "rgb",
           source_name(contract->order_from));
    printf("  mean      %g,%g,%g  (%s)\n", (double)pre->mean[0], (double)pre->mean[1],
           (double)pre->mean[2], source_name(contract->mean_from));
    printf("  scale     %g,%g,%g  (%s)\n", (double)pre->scale[0], (double)pre->scale[1],
           (double)pre->scale[2], source_name(contract->scale_from));
    printf("  fill      %g,%g,%g  (%s)\n", (double)pre->fill[0], (double)pre->fill[1],
           (double)pre->fill[2], source_name(contract->fill_from));
    if (contract->class_count)
        print_classes(contract);
}

static void print_map(const sac_segmenter *seg)
{
    struct sac_segmenter_info info;
    sac_segmenter_inspect(seg, &info);
    if (info.output) {
        printf("map         ");
        print_clean(stdout, info.output);
        printf("  %dx%d cells, %s\n", info.width, info.height, info.form);
    } else {
        puts("map         known after the first frame");
    }
    for (int i = 0; i < info.states; i++) {
        printf("state       ");
        print_clean(stdout, sac_segmenter_state_input(seg, i));
        printf("  from ");
        print_clean(stdout, sac_segmenter_state_output(seg, i));
        putchar('\n');
    }
}

/* Of a detector whose boxes have masks. */
static void print_masks(const sac_detector *det)
{
    const char *prototypes = sac_head_prototypes(sac_detector_model(det));
    if (!prototypes)
        return;
    printf("masks       ");
    print_clean(stdout, prototypes);
    puts("  prototypes, which saccade segment weighs for each box; track reads boxes alone");
}

/* What FP16 is too narrow for. */
static void print_wide_steps(const struct sac_model_info *info)
{
    if (info->calibration) {
        printf("calibrated  with ");
        print_clean(stdout, info->calibration);
        puts(info->wide_step_count ? "" : ": its numbers are in the range of FP16");
    }
    if (info->wide_step_count)
        printf("in float32  %" PRId64 " steps, whose numbers leave the range of FP16\n",
               info->wide_step_count);
    for (int64_t i = 0; i < info->wide_step_count; i++) {
        printf("            ");
        print_clean(stdout, info->wide_steps[i]);
        putchar('\n');
    }
}

/* What is in 8 bits, and what stayed. */
static void print_quantised(const struct subject *subject, const struct sac_model_info *info)
{
    const enum sac_precision precision = sac_model_precision(subject->model);
    if (precision != SAC_PRECISION_INT8 && precision != SAC_PRECISION_FP8)
        return;
    printf("quantised   ");
    print_clean(stdout, info->quantised ? info->quantised : sac_precision_name(precision));
    putchar('\n');
    for (const char *at = info->quantised_kept; at && *at;) {
        char         line[512];
        const size_t length = strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, at);
        printf("  stayed    ");
        print_clean(stdout, line);
        putchar('\n');
        at += length + (at[length] == '\n');
    }
}

static int print_text(const struct subject *subject)
{
    struct sac_model_info info;
    sac_model_inspect(subject->model, &info);
    printf("%s: ONNX, IR %" PRId64 ", opset %" PRId64 "%s", subject->path, info.ir_version,
           info.opset, info.producer && *info.producer ? ", made by " : "");
    print_clean(stdout, info.producer ? info.producer : "");
    putchar('\n');
    print_ports(subject);
    printf("parameters  %.3f M, %.2f MB\n", (double)info.parameters / 1e6,
           (double)info.weights_bytes / 1e6);
    if (info.flops)
        printf("arithmetic  %.3f GFLOP a run\n", (double)info.flops / 1e9);
    printf("nodes       %d, %d steps after fusion\n", info.node_count, info.step_count);
    print_quantised(subject, &info);
    print_wide_steps(&info);
    printf("batch       %s\n", sac_model_batches(subject->model) ? "any" : "one at a time");
    if (subject->head)
        printf("head        %s  (%s)\n", subject->head, head_source(subject));
    else
        puts("head        not recognised");
    if (subject->segmenter)
        print_map(subject->segmenter);
    else if (subject->detector)
        print_masks(subject->detector);
    print_operators(&info);
    if (subject->contract)
        print_contract(subject->contract);
    else
        printf("contract    unknown: %s\n", subject->why);
    return STATUS_OK;
}

/* ---- JSON ---- */

static void json_port(struct sac_json *json, const struct sac_model_port *port)
{
    sac_json_open(json, NULL, '{');
    sac_json_string(json, "name", port->name);
    sac_json_string(json, "dtype", sac_dtype_name(port->desc.dtype));
    sac_json_open(json, "shape", '[');
    for (int i = 0; i < port->desc.rank; i++)
        port->desc.shape[i] < 0 ? sac_json_string(json, NULL, NULL)
                                : sac_json_int(json, NULL, port->desc.shape[i]);
    sac_json_close(json, ']');
    sac_json_close(json, '}');
}

static void json_ports(struct sac_json *json, const struct subject *subject)
{
    sac_json_open(json, "inputs", '[');
    for (int i = 0; i < sac_model_input_count(subject->model); i++)
        json_port(json, sac_model_input(subject->model, i));
    sac_json_close(json, ']');
    sac_json_open(json, "outputs", '[');
    for (int i = 0; i < sac_model_output_count(subject->model); i++)
        json_port(json, sac_model_output(subject->model, i));
    sac_json_close(json, ']');
}

static void json_operators(struct sac_json *json, const struct sac_model_info *info)
{
    sac_json_open(json, "operators", '[');
    for (int i = 0; i < info->operator_count; i++) {
        const struct sac_model_operator *op = &info->operators[i];
        sac_json_open(json, NULL, '{');
        sac_json_string(json, "name", op->name);
        sac_json_string(json, "domain", op->domain);
        sac_json_int(json, "nodes", op->count);
        sac_json_bool(json, "supported", op->supported);
        sac_json_string(json, "kernel", op->kernel);
        sac_json_string(json, "why", op->why);
        sac_json_close(json, '}');
    }
    sac_json_close(json, ']');
}

static void json_open_value(struct sac_json *json, const char *name,
                            enum sac_contract_source source)
{
    sac_json_open(json, name, '{');
    sac_json_string(json, "source", source_name(source));
}

static void json_channels(struct sac_json *json, const char *name, enum sac_contract_source source,
                          const float *values)
{
    json_open_value(json, name, source);
    sac_json_open(json, "value", '[');
    for (int i = 0; i < 3; i++)
        sac_json_real(json, NULL, (double)values[i]);
    sac_json_close(json, ']');
    sac_json_close(json, '}');
}

static void json_contract(struct sac_json *json, const struct sac_model_contract *contract)
{
    const struct sac_preprocess *pre = &contract->pre;
    sac_json_open(json, "contract", '{');
    json_open_value(json, "size", contract->size_from);
    sac_json_int(json, "width", pre->width);
    sac_json_int(json, "height", pre->height);
    sac_json_close(json, '}');
    json_open_value(json, "fit", contract->fit_from);
    sac_json_string(json, "value", fit_name(pre->fit));
    sac_json_close(json, '}');
    json_open_value(json, "order", contract->order_from);
    sac_json_string(json, "value", pre->order == SAC_ORDER_BGR ? "bgr" : "rgb");
    sac_json_close(json, '}');
    json_channels(json, "mean", contract->mean_from, pre->mean);
    json_channels(json, "scale", contract->scale_from, pre->scale);
    json_channels(json, "fill", contract->fill_from, pre->fill);
    json_open_value(json, "classes", contract->classes_from);
    sac_json_open(json, "value", '[');
    for (int i = 0; i < contract->class_count && contract->classes; i++)
        sac_json_string(json, NULL, contract->classes[i]);
    sac_json_close(json, ']');
    sac_json_close(json, '}');
    sac_json_close(json, '}');
}

static void json_map(struct sac_json *json, const sac_segmenter *seg)
{
    struct sac_segmenter_info info;
    sac_segmenter_inspect(seg, &info);
    sac_json_open(json, "map", '{');
    sac_json_string(json, "output", info.output);
    sac_json_string(json, "form", info.form);
    sac_json_int(json, "width", info.width);
    sac_json_int(json, "height", info.height);
    sac_json_close(json, '}');
    sac_json_open(json, "states", '[');
    for (int i = 0; i < info.states; i++) {
        sac_json_open(json, NULL, '{');
        sac_json_string(json, "input", sac_segmenter_state_input(seg, i));
        sac_json_string(json, "output", sac_segmenter_state_output(seg, i));
        sac_json_close(json, '}');
    }
    sac_json_close(json, ']');
}

static int json_document(const struct subject *subject, struct fault *fault)
{
    struct sac_text       text = {0};
    struct sac_json       json = {.text = &text, .spaced = true};
    struct sac_model_info info;
    sac_model_inspect(subject->model, &info);
    sac_json_open(&json, NULL, '{');
    sac_json_string(&json, "file", subject->path);
    sac_json_string(&json, "kind", "model");
    sac_json_string(&json, "producer", info.producer);
    sac_json_int(&json, "ir_version", info.ir_version);
    sac_json_int(&json, "opset", info.opset);
    sac_json_string(&json, "device", sac_device_name(subject->device));
    sac_json_string(&json, "precision", sac_precision_name(sac_model_precision(subject->model)));
    json_ports(&json, subject);
    sac_json_int(&json, "parameters", info.parameters);
    sac_json_int(&json, "weights_bytes", info.weights_bytes);
    sac_json_int(&json, "flops", info.flops);
    sac_json_string(&json, "quantised", info.quantised);
    sac_json_string(&json, "quantised_kept", info.quantised_kept);
    sac_json_string(&json, "calibration", info.calibration);
    sac_json_open(&json, "wide_steps", '[');
    for (int64_t i = 0; i < info.wide_step_count; i++)
        sac_json_string(&json, NULL, info.wide_steps[i]);
    sac_json_close(&json, ']');
    sac_json_int(&json, "nodes", info.node_count);
    sac_json_int(&json, "steps", info.step_count);
    sac_json_bool(&json, "batches", sac_model_batches(subject->model));
    sac_json_string(&json, "head", subject->head);
    sac_json_string(&json, "head_source", subject->head ? head_source(subject) : NULL);
    if (subject->segmenter)
        json_map(&json, subject->segmenter);
    else if (subject->detector)
        sac_json_string(&json, "masks", sac_head_prototypes(subject->model));
    json_operators(&json, &info);
    if (subject->contract)
        json_contract(&json, subject->contract);
    sac_json_close(&json, '}');
    return print_json(&json, fault);
}

int inspect_model(const struct settings *s, sac_context *ctx, sac_device *device, const char *path,
                  struct fault *fault)
{
    struct subject          subject = {.settings = s, .device = device, .path = path};
    struct sac_model_params params = sac_model_params_default();
    params.precision = s->run.job.detector_params.precision;
    sac_result res = sac_model_open_for_inspection(device, path, &params, &subject.model);
    if (res != SAC_OK)
        return fault_library(fault, ctx, res);
    subject.path = sac_model_path(subject.model); /* the file found for a name */
    subject.head = s->run.job.detector_params.head ? s->run.job.detector_params.head
                                                   : sac_head_recognise(subject.model);
    read_contract(&subject, ctx);
    const int status = s->json ? json_document(&subject, fault) : print_text(&subject);
    sac_detector_destroy(&subject.detector);
    sac_embedder_destroy(&subject.embedder);
    sac_segmenter_destroy(&subject.segmenter);
    sac_model_unref(&subject.model);
    return status;
}
