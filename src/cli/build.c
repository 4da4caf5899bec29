/* SPDX-License-Identifier: Apache-2.0 */
/* saccade build: a model is quantised, or planned for a GPU before its first run. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <saccade/model.h>

#include "interrupt.h"
#include "shape_text.h"
#include "term.h"
#include "verbs.h"

/* "8" or "1:8:16". Nine digits fit an int, which sscanf does not check. */
static int read_batch(const char *text, struct sac_build_params *out, struct fault *fault)
{
    int  values[3], count = 0;
    char rest = '\0';
    count = sscanf(text, "%9d:%9d:%9d%c", &values[0], &values[1], &values[2], &rest);
    if (count == 1 && sscanf(text, "%9d%c", &values[0], &rest) == 1) {
        values[1] = values[2] = values[0];
        count = 3;
    }
    if (count != 3 || values[0] < 1 || values[1] < values[0] || values[2] < values[1])
        return fault_usage(
            fault, "--batch: '%s' is neither a number nor MIN:OPT:MAX, such as 1:8:16", text);
    out->batch_min = values[0];
    out->batch_opt = values[1];
    out->batch_max = values[2];
    return STATUS_OK;
}

/* "640x640" or "320x320:640x640:1280x1280". What is too small or too large, the library says. */
static int read_size(const char *text, struct sac_build_params *out, struct fault *fault)
{
    int  w[3] = {0}, h[3] = {0}, count;
    char rest = '\0';
    if (!text)
        return STATUS_OK;
    count =
        sscanf(text, "%9dx%9d:%9dx%9d:%9dx%9d%c", &w[0], &h[0], &w[1], &h[1], &w[2], &h[2], &rest);
    if (count == 2 && sscanf(text, "%9dx%9d%c", &w[0], &h[0], &rest) == 2) {
        w[1] = w[2] = w[0];
        h[1] = h[2] = h[0];
        count = 6;
    }
    for (int i = 0; i < 3; i++)
        if (count != 6 || w[i] < 1 || h[i] < 1)
            return fault_usage(fault,
                               "--size: '%s' is neither WIDTHxHEIGHT, such as 640x640, nor the "
                               "least, the usual and the greatest, such as "
                               "320x320:640x640:1280x1280",
                               text);
    out->width_min = w[0];
    out->height_min = h[0];
    out->width = w[1];
    out->height = h[1];
    out->width_max = w[2];
    out->height_max = h[2];
    return STATUS_OK;
}

enum { SHAPES_MAX = 16 };

/* What --shape gives, and the names' memory. */
struct given {
    struct sac_build_shape shapes[SHAPES_MAX + 1]; /* the last is all 0 */
    char                   names[SHAPES_MAX][256];
    int                    count;
};

/* "1,16:1,77:1,512", or one that stands for all three. */
static bool read_points(const char *text, struct sac_build_shape *out)
{
    struct sac_tensor_desc *const point[] = {&out->min, &out->opt, &out->max};
    int                           count = 0;
    for (; count < 3; count++, text++)
        if (!shape_read(text, &text, point[count]) || *text != ':')
            break;
    if (*text || count == 1 || count == 3)
        return false;
    if (count == 0)
        out->opt = out->max = out->min;
    return out->opt.rank > 0;
}

/* "tokens=1,77"; with one input the name may be left out. */
static int read_shape(const char *text, struct given *out, struct fault *fault)
{
    const char             *equals = strrchr(text, '=');
    struct sac_build_shape *shape = &out->shapes[out->count];
    char                   *name = out->names[out->count];
    if (out->count == SHAPES_MAX)
        return fault_usage(fault, "--shape: more than %d inputs", (int)SHAPES_MAX);
    *shape = (struct sac_build_shape){.input = equals ? name : NULL};
    if ((equals && (size_t)snprintf(name, sizeof out->names[0], "%.*s", (int)(equals - text),
                                    text) >= sizeof out->names[0]) ||
        !read_points(equals ? equals + 1 : text, shape))
        return fault_usage(fault,
                           "--shape: '%s' is neither NAME=1,77 nor the least, the usual and the "
                           "greatest, such as NAME=1,16:1,77:1,512",
                           text);
    out->count++;
    return STATUS_OK;
}

static int read_shapes(const struct text_list *texts, struct given *out,
                       struct sac_build_params *params, struct fault *fault)
{
    int status = STATUS_OK;
    for (size_t i = 0; i < texts->count && status == STATUS_OK; i++)
        status = read_shape(texts->items[i], out, fault);
    params->shapes = out->shapes;
    return status;
}

/* "models/net.onnx" -> "net.plan". False: it does not fit. */
static bool default_output(const char *model, char *out, size_t size)
{
    const char *slash = strrchr(model, '/'), *name = slash ? slash + 1 : model,
               *dot = strrchr(name, '.');
    const int length = dot && dot > name ? (int)(dot - name) : (int)strlen(name);
    return (size_t)snprintf(out, size, "%.*s.plan", length, name) < size;
}

static void print_bucket(void *user, const struct sac_build_bucket *b)
{
    char size[40] = "";
    (void)user;
    if (b->width)
        snprintf(size, sizeof size, "of %dx%d ", b->width, b->height);
    printf("batch %-4d %s%s%splanned in %.1f s, a run takes %.3f ms", b->batch, size,
           b->shapes ? b->shapes : "", b->shapes ? " " : "", b->seconds, b->ms);
    if (b->limit > 0)
        printf(", error %.2g of the channel's largest value (limit %g)", b->error, b->limit);
    if (b->host_steps)
        printf(", %d nodes on the CPU", b->host_steps);
    putchar('\n');
    fflush(stdout); /* planning the next batch takes a while */
}

static void print_megabytes(const char *what, int64_t before, int64_t after)
{
    printf("%-11s %.2f MB -> %.2f MB  (%.2f of it)\n", what, (double)before / 1e6,
           (double)after / 1e6, before ? (double)after / (double)before : 0);
}

static void print_times(int batch, double before, double after)
{
    if (before <= 0 || after <= 0)
        return;
    printf("batch %-5d %.3f ms -> %.3f ms, %.1f/s -> %.1f/s  (%.2f times as fast)\n", batch, before,
           after, batch * 1e3 / before, batch * 1e3 / after, before / after);
}

static void print_quantised(void *user, const struct sac_quantised *q)
{
    (void)user;
    printf("%-11s %d of %d layers\n", sac_precision_name(q->precision), q->quantised, q->layers);
    for (int i = 0; i < q->kept_count; i++)
        printf("  in %s  %s\n", sac_precision_name(q->precision_before), q->kept[i]);
    printf("%-11s %.5f of float32's on %d sample%s: it loses %.5f  (at most %g)\n",
           sac_quality_name(q->measured), q->quality, q->samples, q->samples == 1 ? "" : "s",
           q->loss, q->loss_max);
    print_megabytes("file", q->file_bytes_before, q->file_bytes);
    print_megabytes("weights", q->weights_bytes_before, q->weights_bytes);
    printf("before in   %s\n", sac_precision_name(q->precision_before));
    print_times(1, q->ms_before, q->ms);
    if (q->batch > 1)
        print_times(q->batch, q->batch_ms_before, q->batch_ms);
    fflush(stdout);
}

/* "percentile". */
static int read_method(const char *text, struct sac_build_params *out, struct fault *fault)
{
    if (text && sac_calibration_method_parse(text, &out->method) != SAC_OK)
        return fault_usage(
            fault, "--calibration-method: '%s' is none; have min-max, percentile, entropy", text);
    return STATUS_OK;
}

/* What the network is shown, before anything is planned. */
static sac_result open_calibration(sac_context *ctx, const struct settings *s,
                                   sac_calibration **out)
{
    struct sac_calibration_params params = sac_calibration_params_default();
    params.head = s->run.job.detector_params.head;
    params.preprocess = s->run.job.detector_params.preprocess;
    return s->build_calibrate ? sac_calibration_open(ctx, s->build_calibrate, &params, out)
                              : SAC_OK;
}

int verb_build(struct settings *s, struct fault *fault)
{
    struct sac_build_params params = sac_build_params_default();
    sac_context            *ctx = NULL;
    sac_device             *device = NULL;
    struct given            given = {.count = 0};
    char                    name[4096];
    const char             *out = s->build_output ? s->build_output : name;
    int                     status = read_batch(s->build_batch, &params, fault);
    if (status == STATUS_OK)
        status = read_size(s->build_size, &params, fault);
    if (status == STATUS_OK)
        status = read_shapes(&s->build_shapes, &given, &params, fault);
    if (status == STATUS_OK)
        status = read_method(s->build_method, &params, fault);
    if (status == STATUS_OK && !s->build_output &&
        !default_output(s->args.items[0], name, sizeof name))
        status = fault_usage(fault, "--output is needed: the model's name is too long");
    if (status == STATUS_OK && strcmp(out, "-") == 0)
        status = fault_usage(fault, "--output: what is measured goes to standard output; name the "
                                    "plan's file");
    if (status == STATUS_OK)
        status = term_context(s, &ctx, fault);
    if (status != STATUS_OK)
        return status;
    interrupt_ends();
    s->run.job.device_params.deterministic = 0; /* a YAML file of all verbs: build measures */
    params.model.precision = s->run.job.detector_params.precision;
    params.loss_max = isnan(s->build_loss_max) ? 0 : s->build_loss_max; /* auto */
    params.on_quantised = print_quantised;
    sac_result res = sac_device_open(ctx, s->run.job.device, &s->run.job.device_params, &device);
    if (res == SAC_OK)
        res = open_calibration(ctx, s, &params.calibration);
    if (res == SAC_OK)
        res = sac_model_build(device, s->args.items[0], &params, out, print_bucket, NULL);
    if (res == SAC_OK)
        printf("wrote       %s\n", out);
    else
        status = fault_library(fault, ctx, res);
    if (res == SAC_ERR_ARG) /* such as an open size without --size, or an output that is the model
                             */
        status = STATUS_USAGE;
    sac_calibration_close(&params.calibration);
    sac_device_unref(&device);
    sac_context_destroy(&ctx);
    return status;
}
