/* SPDX-License-Identifier: Apache-2.0 */
/* Builds plans ahead of time: for each bucket (a batch size of a size of images, build_shapes.h) a
 * plan with measured kernels and a check against the CPU, all written to one file. A network that
 * is quantised is that first; the check is then what it loses (quantise.c). */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <saccade/models.h>

#include "base/files.h"
#include "base/outfile.h"
#include "engine/model/build_shapes.h"
#include "engine/model/calibration.h"
#include "engine/model/difference.h"
#include "engine/model/quantise.h"

enum { RUNS = 20 };

struct build {
    struct sac_build_params    params;
    sac_context               *ctx;
    sac_model                 *model, *reference; /* on the device, and on the CPU in float32 */
    sac_device                *cpu;
    struct sac_build_shapes    shapes;
    char                       given[SAC_BUILD_SHAPES_TEXT]; /* of the bucket: the shapes given */
    sac_tensor               **in, **out; /* [ports] of the bucket, on the device */
    void                     **numbers;   /* [inputs] the same data in host memory */
    int                        worst;     /* the sample of the calibration data to check with */
    enum sac_precision         quantise;  /* INT8, FP8; DEFAULT: it is not quantised */
    struct sac_quantised_model made;      /* then */
};

struct sac_build_params sac_build_params_default(void)
{
    return (struct sac_build_params){.model = sac_model_params_default(),
                                     .batch_min = 1,
                                     .batch_opt = 1,
                                     .batch_max = 1,
                                     .seed = 1};
}

static sac_result no_memory(const struct build *b)
{
    return SAC_FAIL(b->ctx, SAC_ERR_MEMORY, "build: no memory");
}

/* ---- models ---- */

static sac_result check_batch(struct build *b)
{
    if (b->params.batch_max <= 1 || sac_model_batches(b->model))
        return SAC_OK;
    return SAC_FAIL(b->ctx, SAC_ERR_UNSUPPORTED,
                    "%s: its batch is fixed%s%s; build it with --batch 1", b->model->path,
                    b->model->why_fixed[0] ? ": " : "", b->model->why_fixed);
}

static sac_result load(struct build *b, sac_device *dev, const char *path)
{
    const struct sac_device_params one = {.threads = dev->params.threads};
    struct sac_model_params        plain = sac_model_params_default();
    if (b->params.model.precision == SAC_PRECISION_INT8 ||
        b->params.model.precision == SAC_PRECISION_FP8) {
        b->quantise = b->params.model.precision;
        b->params.model.precision = SAC_PRECISION_DEFAULT;
    }
    if (b->quantise == SAC_PRECISION_FP8 && dev->ops->host_memory)
        return SAC_FAIL(b->ctx, SAC_ERR_UNSUPPORTED, "build: fp8 needs a GPU; %s computes in int8",
                        dev->name);
    if (!dev->ops->measures_kernels && !b->quantise)
        return SAC_FAIL(b->ctx, SAC_ERR_UNSUPPORTED,
                        "build: on %s a plan takes a millisecond and is created when a model "
                        "runs; plans are built for GPUs, and with --precision int8",
                        dev->name);
    b->params.model.tune = 1;
    sac_result res = sac_model_load(dev, path, &b->params.model, &b->model);
    if (res == SAC_OK)
        res = sac_device_open(b->ctx, "cpu", &one, &b->cpu);
    if (res == SAC_OK)
        res = sac_model_load(b->cpu, path, &plain, &b->reference);
    if (res == SAC_OK) /* what is in it already lends nothing to what is measured now */
        sac_book_set_range(&b->model->book, NULL, NULL);
    if (res == SAC_OK)
        res = check_batch(b);
    if (res == SAC_OK)
        res = sac_build_shapes_check(b->model, &b->shapes);
    if (res == SAC_OK && b->params.calibration) /* before anything takes long */
        res = b->params.calibration->ops->prepare(b->params.calibration, b->reference);
    if (res != SAC_OK)
        return res;
    b->in = sac_calloc((size_t)b->model->graph->input_count, sizeof *b->in);
    b->numbers = sac_calloc((size_t)b->model->graph->input_count, sizeof *b->numbers);
    b->out = sac_calloc((size_t)b->model->graph->output_count * 2, sizeof *b->out);
    return b->in && b->numbers && b->out ? SAC_OK : no_memory(b);
}

/* ---- input ---- */

/* From 0 to 1, as in images. Integers are 0 or 1, which are valid indices of any table. */
static void fill(const struct sac_tensor_desc *desc, void *host, uint32_t seed)
{
    struct sac_operand o = {.dtype = desc->dtype, .rank = 1, .present = true, .data = host};
    const int64_t      n = o.dims[0] = sac_tensor_desc_elements(desc);
    const bool real = desc->dtype == SAC_F32 || desc->dtype == SAC_F16 || desc->dtype == SAC_F64 ||
                      desc->dtype == SAC_BF16;
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        sac_operand_set(&o, i, real ? (seed >> 8) / 16777216.0 : (seed >> 20) & 1);
    }
}

static void drop_tensors(struct build *b)
{
    const struct sac_graph *g = b->model ? b->model->graph : NULL;
    for (int i = 0; g && b->in && i < g->input_count; i++)
        sac_tensor_unref(&b->in[i]);
    for (int i = 0; g && b->out && i < g->output_count * 2; i++)
        sac_tensor_unref(&b->out[i]);
    for (int i = 0; g && b->numbers && i < g->input_count; i++) {
        sac_free(b->numbers[i]);
        b->numbers[i] = NULL;
    }
}

/* The samples from the worst on. */
static sac_result fill_with_samples(struct build *b, const struct sac_tensor_desc *desc)
{
    sac_calibration *cal = b->params.calibration;
    const int        inputs = b->model->graph->input_count;
    sac_tensor     **in = sac_calloc((size_t)inputs, sizeof(sac_tensor *));
    int              samples;
    bool             last;
    sac_result       res = in ? cal->ops->rewind(cal) : no_memory(b);
    for (int i = 0; i < b->worst && res == SAC_OK; i++) {
        res = cal->ops->next(cal, desc, in);
        for (int k = 0; k < inputs; k++)
            sac_tensor_unref(&in[k]);
    }
    sac_free(in);
    if (res == SAC_OK)
        res = sac_calibration_gather(cal, b->reference, desc, b->numbers, &samples, &last);
    if (res == SAC_EOS || (res == SAC_OK && !samples))
        res = SAC_FAIL(b->ctx, SAC_ERR_IO, "calibration: %s has fewer samples than before",
                       cal->name);
    return res;
}

static sac_result describe_inputs(struct build *b, int batch, struct sac_build_size size,
                                  struct sac_tensor_desc **out)
{
    const int               inputs = b->model->graph->input_count;
    struct sac_tensor_desc *desc = sac_calloc((size_t)inputs, sizeof *desc);
    sac_result              res = desc ? SAC_OK : no_memory(b);
    for (int i = 0; i < inputs && res == SAC_OK; i++)
        res = sac_build_input(b->model, &b->shapes, i, batch, size, &desc[i]);
    *out = desc;
    return res;
}

static sac_result make_input(struct build *b, int batch, struct sac_build_size size)
{
    const int               inputs = b->model->graph->input_count;
    struct sac_tensor_desc *desc = NULL;
    drop_tensors(b);
    sac_result res = describe_inputs(b, batch, size, &desc);
    for (int i = 0; i < inputs && res == SAC_OK; i++) {
        res = sac_tensor_create(b->model->dev, &desc[i], "build", &b->in[i]);
        if (res == SAC_OK && !(b->numbers[i] = sac_alloc((size_t)sac_tensor_desc_bytes(&desc[i]))))
            res = no_memory(b);
    }
    if (res == SAC_OK && b->params.calibration)
        res = fill_with_samples(b, desc);
    for (int i = 0; i < inputs && res == SAC_OK; i++) {
        if (!b->params.calibration)
            fill(&desc[i], b->numbers[i], b->params.seed + (uint32_t)i);
        res = sac_tensor_upload(b->in[i], b->numbers[i]);
    }
    sac_free(desc);
    return res;
}

/* With the usual size: sizes differ less in their numbers than pictures do. */
static sac_result calibrate(struct build *b)
{
    const struct sac_build_size usual = {b->params.width, b->params.height, SAC_BUILD_USUAL};
    struct sac_tensor_desc     *desc = NULL;
    /* In FP8 the CPU has no fast kernels to look with. */
    if (!b->params.calibration || b->quantise == SAC_PRECISION_FP8)
        return SAC_OK;
    sac_result res = describe_inputs(b, 1, usual, &desc);
    if (res == SAC_OK)
        res = sac_model_calibrate(b->model, b->params.calibration, desc, &b->worst);
    sac_free(desc);
    return res;
}

/* ---- 8 bits ---- */

/* The model at hand becomes the quantised one. */
static sac_result take_quantised(struct build *b)
{
    sac_device *dev = b->model->dev;
    char       *path = sac_strdup(b->model->path);
    sac_result  res = path ? SAC_OK : no_memory(b);
    sac_model_unref(&b->model);
    if (res == SAC_OK)
        res = sac_model_load_memory(dev, b->made.bytes, b->made.size, path, &b->params.model,
                                    &b->model);
    sac_free(path);
    return res == SAC_OK ? check_batch(b) : res;
}

static sac_result quantise(struct build *b, sac_device *dev, const char *path, void *user)
{
    const struct sac_build_size usual = {b->params.width, b->params.height, SAC_BUILD_USUAL};
    struct sac_build_params     params = b->params;
    struct sac_tensor_desc     *desc = NULL;
    if (!b->quantise)
        return SAC_OK;
    params.model.precision = b->quantise;
    sac_result res = describe_inputs(b, 1, usual, &desc);
    if (res == SAC_OK)
        res = sac_model_quantise(&(struct sac_quantise_job){.ctx = b->ctx,
                                                            .dev = dev,
                                                            .cpu = b->cpu,
                                                            .reference = b->reference,
                                                            .path = path,
                                                            .params = &params,
                                                            .base = b->params.model,
                                                            .desc = desc,
                                                            .fill = fill},
                                 &b->made);
    sac_free(desc);
    if (res == SAC_OK && params.on_quantised)
        params.on_quantised(user, &b->made.report);
    return res == SAC_OK ? take_quantised(b) : res;
}

/* ---- the check ---- */

/* Sample n of the bucket on the CPU; out [outputs]. */
static sac_result run_reference(struct build *b, int n, int batch, sac_tensor **out)
{
    const int    inputs = b->model->graph->input_count;
    sac_tensor **in = sac_calloc((size_t)inputs, sizeof *in);
    sac_result   res = in ? SAC_OK : no_memory(b);
    for (int i = 0; i < inputs && res == SAC_OK; i++) {
        struct sac_tensor_desc desc = *sac_tensor_describe(b->in[i]);
        char                  *at = b->numbers[i];
        if (desc.rank > 0 && desc.shape[0] == batch) {
            desc.shape[0] = 1;
            at += (int64_t)n * sac_tensor_desc_bytes(&desc);
        }
        res = sac_tensor_wrap(b->cpu, &desc, at, NULL, NULL, &in[i]);
    }
    if (res == SAC_OK)
        res = sac_model_run(b->reference, in, out);
    for (int i = 0; in && i < inputs; i++)
        sac_tensor_unref(&in[i]);
    sac_free(in);
    return res;
}

/* Compares output i of sample n with the CPU's. */
static sac_result compare(struct build *b, int i, int n, const sac_tensor *want, double *error)
{
    const struct sac_tensor_desc *whole = sac_tensor_describe(b->out[i]),
                                 *one = sac_tensor_describe(want);
    const size_t bytes = (size_t)sac_tensor_desc_bytes(whole),
                 part = (size_t)sac_tensor_desc_bytes(one);
    if (whole->dtype != one->dtype || part * (size_t)(n + 1) > bytes) {
        *error = INFINITY; /* its size depends on the data and differs: nothing to compare */
        return SAC_OK;
    }
    char      *host = sac_alloc(bytes);
    sac_result res = host ? sac_tensor_download(b->out[i], host) : no_memory(b);
    if (res == SAC_OK)
        *error = fmax(*error, sac_difference(one, host + (size_t)n * part, sac_tensor_data(want)));
    sac_free(host);
    return res;
}

static sac_result check_sample(struct build *b, int n, int batch, double *error)
{
    const int    outputs = b->model->graph->output_count;
    sac_tensor **want = b->out + outputs;
    sac_result   res = run_reference(b, n, batch, want);
    for (int i = 0; i < outputs; i++) {
        if (res == SAC_OK)
            res = compare(b, i, n, want[i], error);
        sac_tensor_unref(&want[i]);
    }
    return res;
}

/* ---- a bucket ---- */

static sac_result time_runs(struct build *b, double *ms)
{
    const struct sac_device_ops *ops = b->model->dev->ops;
    sac_result                   res = SAC_OK;
    for (int i = 0; i < 3 && res == SAC_OK; i++) /* until it is captured and warm */
        res = sac_model_run_on(b->model, NULL, b->in, b->out);
    if (res == SAC_OK)
        res = ops->event_wait(b->model->done);
    const int64_t begun = sac_time_ns();
    for (int i = 0; i < RUNS && res == SAC_OK; i++)
        res = sac_model_run_on(b->model, NULL, b->in, b->out);
    if (res == SAC_OK)
        res = ops->event_wait(b->model->done);
    *ms = (double)(sac_time_ns() - begun) / 1e6 / RUNS;
    return res;
}

static void describe_plan(struct build *b, struct sac_build_bucket *bucket)
{
    const struct sac_plan *last = sac_model_latest_plan(b->model);
    bucket->host_steps = last ? last->host_steps + (int)last->tail_count : 0;
}

static sac_result build_bucket(struct build *b, int batch, struct sac_build_size size,
                               struct sac_build_bucket *bucket)
{
    *bucket =
        (struct sac_build_bucket){.batch = batch,
                                  .width = size.width,
                                  .height = size.height,
                                  .limit = sac_difference_limit((int)b->model->params.precision)};
    sac_build_shapes_print(b->model, &b->shapes, batch, size, b->given, sizeof b->given);
    bucket->shapes = b->given[0] ? b->given : NULL;
    sac_result    res = make_input(b, batch, size);
    const int64_t begun = sac_time_ns();
    if (res == SAC_OK)
        res = sac_model_run_on(b->model, NULL, b->in, b->out);
    if (res == SAC_OK)
        res = b->model->dev->ops->event_wait(b->model->done);
    bucket->seconds = (double)(sac_time_ns() - begun) / 1e9;
    if (res == SAC_OK)
        res = time_runs(b, &bucket->ms);
    if (b->quantise) /* its loss was measured already */
        bucket->limit = 0;
    if (res == SAC_OK && !b->quantise)
        res = check_sample(b, 0, batch, &bucket->error);
    if (res == SAC_OK && batch > 1 && !b->quantise)
        res = check_sample(b, batch - 1, batch, &bucket->error);
    if (res == SAC_OK)
        describe_plan(b, bucket);
    if (res != SAC_OK && bucket->shapes)
        res = sac_fail_prefix(b->ctx, res, "with %s: ", bucket->shapes);
    else if (res != SAC_OK && size.width)
        res = sac_fail_prefix(b->ctx, res, "with batch %d of %dx%d: ", batch, size.width,
                              size.height);
    return res;
}

/* ---- which step differs ---- */

struct suspects {
    double limit, worst;
    int    steps, over;
    char   label[320]; /* of the worst step */
};

static void look_at_step(void *user, const struct sac_step_check *check)
{
    struct suspects *s = user;
    s->steps++;
    s->over += check->off > s->limit;
    if (check->off <= s->worst)
        return;
    s->worst = check->off;
    sac_step_label(check->step, s->label, sizeof s->label);
}

/* The sentence about the steps, each checked by itself on its own inputs. */
static void find_suspects(struct build *b, double limit, char *out, size_t size)
{
    struct suspects  s = {.limit = limit};
    struct sac_plan *plan = sac_model_latest_plan(b->model);
    sac_log(b->ctx, SAC_LOG_WARN, "%s: it is off; each of its steps is compared with the CPU now",
            b->model->path);
    if (!plan || sac_plan_verify(plan, b->model->stream, b->cpu, look_at_step, &s) != SAC_OK)
        snprintf(out, size, "its steps could not be checked one by one");
    else if (s.over)
        snprintf(out, size,
                 "steps that are off by themselves: %d of %d, most of all %s, by %.2g of its "
                 "largest number",
                 s.over, s.steps, s.label, s.worst);
    else
        snprintf(out, size,
                 "no step is off by itself (most of all %s, by %.2g): small errors add up", s.label,
                 s.worst);
}

static sac_result over_limit(struct build *b, const struct sac_build_bucket *bucket)
{
    static const char *const mend[] = {[SAC_PRECISION_FP16] = "; build it with --precision tf32",
                                       [SAC_PRECISION_TF32] = "; build it with --precision fp32",
                                       [SAC_PRECISION_FP32] = ""};
    char                     steps[480], size[SAC_BUILD_SHAPES_TEXT + 8] = "";
    if (bucket->shapes)
        snprintf(size, sizeof size, ", %s,", bucket->shapes);
    else if (bucket->width)
        snprintf(size, sizeof size, " of %dx%d", bucket->width, bucket->height);
    find_suspects(b, bucket->limit, steps, sizeof steps);
    return SAC_FAIL(b->ctx, SAC_ERR_FORMAT,
                    "%s: with batch %d%s%s%s it is off by %.2g of a channel's largest number, and "
                    "%s may be off "
                    "by %g; %s%s%s",
                    b->model->path, bucket->batch, size, b->params.calibration ? " on " : "",
                    b->params.calibration ? b->params.calibration->name : "", bucket->error,
                    sac_precision_name(b->model->params.precision), bucket->limit, steps,
                    mend[b->model->params.precision],
                    b->model->params.precision == SAC_PRECISION_FP16 && !b->params.calibration
                        ? ", or with --calibrate and pictures of what it will see"
                        : "");
}

static sac_result build_buckets(struct build *b,
                                void (*on_bucket)(void *, const struct sac_build_bucket *),
                                void *user)
{
    const struct sac_build_shapes *s = &b->shapes;
    const int                      count = s->size_count * s->batch_count;
    sac_result                     res = SAC_OK;
    for (int i = 0; i < count && res == SAC_OK; i++) {
        struct sac_build_bucket bucket;
        res =
            build_bucket(b, s->batches[i % s->batch_count], s->sizes[i / s->batch_count], &bucket);
        if (res == SAC_OK && on_bucket)
            on_bucket(user, &bucket);
        if (res == SAC_OK && !(bucket.error <= bucket.limit) && !b->quantise)
            res = over_limit(b, &bucket);
    }
    return res;
}

/* ---- the file ---- */

/* The quantised network by itself, for other programs too. */
static bool is_onnx(const char *out)
{
    const size_t length = strlen(out);
    return length > 5 && strcmp(out + length - 5, ".onnx") == 0;
}

static sac_result write_file(struct build *b, const char *out)
{
    const struct sac_mapped_file *file = &b->model->file;
    const size_t                  from = b->model->file_offset;
    const char  *onnx = b->quantise ? (char *)b->made.bytes : (const char *)file->bytes + from;
    const size_t onnx_size = b->quantise ? b->made.size : file->size - from;
    struct sac_outfile f = {0};
    size_t             size = 0;
    char              *text = sac_book_text(&b->model->book, onnx_size, &size);
    if (!text)
        return no_memory(b);
    sac_result res = sac_outfile_open(b->ctx, out, &f);
    if (res == SAC_OK) {
        fwrite(text, 1, is_onnx(out) ? 0 : size, f.file);
        fwrite(onnx, 1, onnx_size, f.file);
        res = sac_outfile_finish(&f);
    }
    sac_outfile_abandon(&f);
    free(text);
    return res;
}

/* The model is read while the plan is written: a plan of a plan wants another name too. Calibration
 * data is somebody's only copy. */
static sac_result check_names(struct build *b, const char *model, const char *out)
{
    struct sac_files       files = {.ctx = b->ctx};
    const sac_calibration *cal = b->params.calibration;
    const char            *file;
    sac_files_add_output(&files, out, NULL);
    sac_files_add_input(&files, model);
    for (size_t i = 0; cal && (file = cal->ops->file(cal, i)); i++)
        sac_files_add_input(&files, file);
    const sac_result res = sac_files_judge(&files);
    sac_files_finish(&files);
    return res;
}

/* Before minutes are spent on what nobody can write. */
static sac_result check_files(struct build *b, const char *model, const char *out)
{
    char               path[PATH_MAX];
    struct sac_outname name = {.renames = false};
    sac_result         res = sac_models_find(b->ctx, model, path, sizeof path);
    if (res == SAC_OK)
        res = check_names(b, path, out);
    if (res == SAC_OK && strcmp(out, "-") != 0)
        res = sac_outname_open(b->ctx, out, &name, NULL);
    sac_outname_finish(&name);
    return res;
}

static sac_result check_limits(const struct build *b)
{
    const struct sac_build_params *p = &b->params;
    if (!(p->loss_max >= 0 && p->loss_max <= 1))
        return SAC_FAIL(b->ctx, SAC_ERR_ARG, "build: loss_max is %g; have 0 (the default) to 1",
                        p->loss_max);
    if (p->layers_min < 0 || p->layers_min > 100)
        return SAC_FAIL(b->ctx, SAC_ERR_ARG,
                        "build: layers_min is %d; have 0 (the default) to 100 percent",
                        p->layers_min);
    if ((unsigned)p->method > SAC_CALIBRATION_ENTROPY)
        return SAC_FAIL(b->ctx, SAC_ERR_ARG, "build: no calibration method has the number %d",
                        (int)p->method);
    return SAC_OK;
}

static void finish(struct build *b)
{
    drop_tensors(b);
    sac_free(b->in);
    sac_free(b->out);
    sac_free(b->numbers);
    sac_model_unref(&b->reference);
    sac_model_unref(&b->model);
    sac_device_unref(&b->cpu);
    sac_quantised_model_finish(&b->made);
}

sac_result sac_model_build(sac_device *dev, const char *path, const struct sac_build_params *params,
                           const char *out,
                           void (*on_bucket)(void *, const struct sac_build_bucket *), void *user)
{
    SAC_NEEDS(sac_device_context(dev), dev);
    SAC_NEEDS(sac_device_context(dev), path);
    SAC_NEEDS(sac_device_context(dev), out);
    SAC_NEEDS_NO_LATER_FIELD(dev->ctx, params, "build parameters");
    struct build b = {.params = params ? *params : sac_build_params_default(), .ctx = dev->ctx};
    sac_result   res = check_limits(&b);
    if (res == SAC_OK)
        res = sac_build_shapes_choose(dev->ctx, &b.params, &b.shapes);
    if (res == SAC_OK)
        res = check_files(&b, path, out);
    if (res == SAC_OK)
        res = load(&b, dev, path);
    if (res == SAC_OK && b.model->onnx.blobs)
        res = SAC_FAIL(b.ctx, SAC_ERR_UNSUPPORTED,
                       "%s: its weights are in other files, and a plan holds its whole model; "
                       "run it as it is, the cache keeps its plans too",
                       b.model->path);
    if (res == SAC_OK && is_onnx(out) && !b.quantise)
        res = SAC_FAIL(b.ctx, SAC_ERR_ARG,
                       "%s: only a quantised network is written as .onnx; a plan is called .plan",
                       out);
    if (res == SAC_OK)
        res = quantise(&b, dev, path, user);
    if (res == SAC_OK && !is_onnx(out))
        res = calibrate(&b);
    if (res == SAC_OK && !is_onnx(out))
        res = build_buckets(&b, on_bucket, user);
    if (res == SAC_OK)
        res = sac_build_note_range(b.model, &b.shapes);
    if (res == SAC_OK)
        res = write_file(&b, out);
    finish(&b);
    return res;
}
