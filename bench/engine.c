/* SPDX-License-Identifier: Apache-2.0 */
/* Time of a network by itself, at several batch sizes: inputs and outputs are on the device, and a
 * device that runs asynchronously is timed by events.
 *
 *     bench_engine MODEL [--device NAME] [--precision fp32|tf32|fp16] [--batch 1,8,32]
 *                  [--seconds S] [--steps]
 *     bench_engine --optimisations
 *
 * One line of JSON a batch, as it is done: ms of a batch (median over rounds), that of the best
 * round, time to plan, steps, MB of the activations and of all buffers at most. --seconds: of
 * measuring, a batch (default 1). --steps: each step's time as well, by events within one launch
 * where the plan is one. --optimisations: what SACCADE_WITHOUT can leave out, a line each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <saccade/model.h>

#include "device/device.h"
#include "engine/kernel/kernel.h"
#include "engine/model/model.h"

enum { ROUNDS = 9, PORTS_MAX = 16, BATCHES_MAX = 16, WARM = 3 };

static sac_context *ctx;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench_engine: %s\n", what);
    exit(1);
}

static void must(sac_result res)
{
    char why[512];
    if (res == SAC_OK)
        return;
    sac_context_last_error(ctx, why, sizeof why);
    die(why);
}

/* ---- options ---- */

struct options {
    const char        *model, *device;
    enum sac_precision precision;
    int                batches[BATCHES_MAX], batch_count;
    double             seconds;
    bool               steps;
};

static enum sac_precision read_precision(const char *text)
{
    for (int p = SAC_PRECISION_FP32; p <= SAC_PRECISION_FP16; p++)
        if (strcmp(text, sac_precision_name((enum sac_precision)p)) == 0)
            return (enum sac_precision)p;
    die("--precision knows fp32, tf32 and fp16");
}

static void read_batches(struct options *o, const char *text)
{
    for (o->batch_count = 0; *text && o->batch_count < BATCHES_MAX; text += strspn(text, ",")) {
        char *end;
        o->batches[o->batch_count++] = (int)strtol(text, &end, 10);
        if (end == text || o->batches[o->batch_count - 1] < 1)
            die("--batch wants numbers such as 1,8,32");
        text = end;
    }
}

static _Noreturn void list_optimisations(void)
{
    struct sac_without what;
    const char        *name;
    for (int i = 0; (name = sac_without_name(i, &what)); i++)
        puts(name);
    exit(0);
}

static struct options read_options(int argc, char **argv)
{
    struct options o = {.device = "cuda", .batches = {1, 8, 32}, .batch_count = 3, .seconds = 1};
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(name, "--optimisations") == 0)
            list_optimisations();
        if (strcmp(name, "--steps") == 0) {
            o.steps = true;
            continue;
        }
        if (strncmp(name, "--", 2) != 0) {
            o.model = name;
            continue;
        }
        if (!value)
            die("an option without its value");
        i++;
        if (strcmp(name, "--device") == 0)
            o.device = value;
        else if (strcmp(name, "--precision") == 0)
            o.precision = read_precision(value);
        else if (strcmp(name, "--batch") == 0)
            read_batches(&o, value);
        else if (strcmp(name, "--seconds") == 0)
            o.seconds = SAC_MAX(atof(value), 0.01);
        else
            die("an option that is not known");
    }
    if (!o.model)
        die("usage: bench_engine MODEL [--device NAME] [--precision P] [--batch LIST] [--seconds "
            "S] [--steps]");
    return o;
}

/* ---- tensors ---- */

/* Noise of about the size of normalised pixels; whole numbers are 0, as any other may be an index
 * out of range. */
static void fill(void *data, const struct sac_tensor_desc *desc)
{
    int64_t  n = sac_tensor_desc_elements(desc);
    uint32_t seed = 1;
    memset(data, 0, (size_t)sac_tensor_desc_bytes(desc));
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        if (desc->dtype == SAC_F32)
            ((float *)data)[i] = (float)(seed >> 8) / (float)(1 << 24) - 0.5f;
        else if (desc->dtype == SAC_F16)
            ((uint16_t *)data)[i] = (uint16_t)(0x3000 | seed >> 22 | (seed >> 1 & 0x8000)); /* 0.125
                                                                                               to
                                                                                               0.25
                                                                                             */
    }
}

static sac_tensor *make_input(sac_device *dev, const struct sac_model_port *port, int batch)
{
    struct sac_tensor_desc desc = port->desc;
    sac_tensor            *t = NULL;
    if (desc.rank < 1)
        die("an input of unknown rank");
    if (desc.shape[0] == SAC_DIM_UNKNOWN)
        desc.shape[0] = batch;
    for (int d = 0; d < desc.rank; d++)
        if (desc.shape[d] == SAC_DIM_UNKNOWN)
            die("an input has open dims besides the batch");
    if (desc.shape[0] != batch)
        die("the file has a batch of its own");
    void *data = sac_alloc((size_t)sac_tensor_desc_bytes(&desc));
    if (!data)
        die("no memory for an input");
    fill(data, &desc);
    must(sac_tensor_create(dev, &desc, "bench input", &t));
    must(sac_tensor_upload(t, data));
    sac_free(data);
    return t;
}

/* ---- measuring ---- */

struct bench {
    sac_device               *dev;
    sac_model                *model;
    struct sac_device_stream *stream;
    struct sac_event         *begin, *end; /* NULL: the host's clock */
    sac_tensor               *in[PORTS_MAX], *out[PORTS_MAX];
};

static double seconds_of(struct bench *b, int runs)
{
    const struct sac_device_ops *ops = b->dev->ops;
    int64_t                      ns, begun = sac_time_ns();
    if (b->begin)
        must(ops->event_record(b->begin, b->stream));
    for (int i = 0; i < runs; i++)
        must(sac_model_run_on(b->model, b->stream, b->in, b->out));
    if (!b->begin)
        return (double)(sac_time_ns() - begun) * 1e-9;
    must(ops->event_record(b->end, b->stream));
    must(ops->event_wait(b->end));
    must(ops->event_elapsed(b->begin, b->end, &ns));
    return (double)ns * 1e-9;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_step(void *user, const char *line)
{
    (void)user;
    printf("# %s\n", line);
}

static void measure(struct bench *b, const struct options *o, int batch)
{
    double  ms[ROUNDS];
    int64_t begun = sac_time_ns();
    seconds_of(b, 1); /* fills out, which later runs write to */
    double planned = (double)(sac_time_ns() - begun) * 1e-6;
    double once = seconds_of(b, WARM) / WARM;
    int    runs = (int)SAC_CLAMP(o->seconds / ROUNDS / SAC_MAX(once, 1e-6), 1, 10000);
    begun = sac_time_ns();
    for (int i = 0; i < ROUNDS; i++)
        ms[i] = seconds_of(b, runs) * 1e3 / runs;
    double                 wall = (double)(sac_time_ns() - begun) * 1e-6 / (ROUNDS * runs);
    const struct sac_plan *plan = sac_model_latest_plan(b->model);
    struct sac_pool_stats  pool;
    sac_device_pool_stats(b->dev, &pool);
    qsort(ms, ROUNDS, sizeof *ms, by_value);
    printf("{\"model\":\"%s\",\"device\":\"%s\",\"precision\":\"%s\",\"batch\":%d,\"ms\":%.4f,"
           "\"best_ms\":%.4f,\"wall_ms\":%.4f,\"runs\":%d,\"plan_ms\":%.0f,\"clock\":\"%s\","
           "\"steps\":%zu,\"activations_mb\":%.2f,\"buffers_mb\":%.2f}\n",
           o->model, sac_device_name(b->dev), sac_precision_name(sac_model_precision(b->model)),
           batch, ms[ROUNDS / 2], ms[0], wall, ROUNDS * runs, planned, b->begin ? "device" : "host",
           plan->step_count, (double)plan->activation_bytes * 1e-6, (double)pool.bytes_peak * 1e-6);
    if (o->steps) {
        sac_model_profile(b->model, 1);
        seconds_of(b, 5);
        sac_model_dump_steps(b->model, print_step, NULL);
        sac_model_profile(b->model, 0);
    }
    fflush(stdout);
}

static void bench_batch(struct bench *b, const struct options *o, int batch)
{
    int inputs = sac_model_input_count(b->model), outputs = sac_model_output_count(b->model);
    if (inputs > PORTS_MAX || outputs > PORTS_MAX)
        die("too many inputs or outputs");
    for (int i = 0; i < inputs; i++)
        b->in[i] = make_input(b->dev, sac_model_input(b->model, i), batch);
    measure(b, o, batch);
    must(b->dev->ops->stream_wait(b->stream));
    for (int i = 0; i < inputs; i++)
        sac_tensor_unref(&b->in[i]);
    for (int i = 0; i < outputs; i++)
        sac_tensor_unref(&b->out[i]);
}

int main(int argc, char **argv)
{
    struct options          o = read_options(argc, argv);
    struct sac_model_params params = sac_model_params_default();
    struct bench            b = {0};
    params.precision = o.precision;
    must(sac_context_create(NULL, &ctx));
    must(sac_device_open(ctx, o.device, NULL, &b.dev));
    must(sac_model_load(b.dev, o.model, &params, &b.model));
    must(b.dev->ops->stream_create(b.dev, &b.stream));
    if (!b.dev->ops->host_memory) {
        must(b.dev->ops->event_create(b.dev, true, &b.begin));
        must(b.dev->ops->event_create(b.dev, true, &b.end));
    }
    for (int i = 0; i < o.batch_count; i++)
        bench_batch(&b, &o, o.batches[i]);
    if (b.begin) {
        b.dev->ops->event_destroy(&b.begin);
        b.dev->ops->event_destroy(&b.end);
    }
    sac_model_unref(&b.model);
    b.dev->ops->stream_destroy(&b.stream);
    sac_device_unref(&b.dev);
    sac_context_destroy(&ctx);
    return 0;
}
