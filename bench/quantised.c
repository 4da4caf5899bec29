/* SPDX-License-Identifier: Apache-2.0 */
/* A quantised network beside its float32 form, on the CPU: runs of the two in turn, so that both
 * see the same neighbours.
 *
 *     build/bench/bench_quantised FLOAT.onnx QUANTISED.onnx [turns [threads [batch]]]
 *
 * One line for each: the least and the median milliseconds of a run, and the processor time of all
 * threads, which other programs on the machine change little; then how many times as fast the
 * second is by each of the three. */
#include <string.h>
#include <time.h>

#include <saccade/device.h>
#include <saccade/model.h>

#include "base/base.h"
#include "bench/must.h"

enum { PORTS_MAX = 16, TURNS_MAX = 10000, WARM = 3 };

struct times {
    double least, median, cpu;
};
struct form {
    sac_model  *model;
    sac_tensor *in[PORTS_MAX], *out[PORTS_MAX];
    double      wall[TURNS_MAX], cpu[TURNS_MAX];
};

static double now_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench_quantised: %s\n", what);
    exit(1);
}

/* ---- a form of the network ---- */

/* Numbers as normalised pixels are. */
static void fill(float *x, int64_t count)
{
    uint32_t seed = 1;
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        x[i] = (float)(seed >> 8) / (float)(1 << 24);
    }
}

static sac_tensor *input(sac_device *dev, const struct sac_model_port *port, int batch)
{
    struct sac_tensor_desc desc = port->desc;
    sac_tensor            *t = NULL;
    if (desc.dtype != SAC_F32 || desc.rank < 1)
        die("an input that is not of float32");
    desc.shape[0] = desc.shape[0] == SAC_DIM_UNKNOWN ? batch : desc.shape[0];
    for (int d = 0; d < desc.rank; d++)
        if (desc.shape[d] == SAC_DIM_UNKNOWN)
            die("an input has open dims besides the batch");
    const int64_t count = sac_tensor_desc_elements(&desc);
    float        *data = sac_alloc((size_t)count * sizeof *data);
    if (!data)
        die("no memory for an input");
    fill(data, count);
    must(sac_tensor_create(dev, &desc, "bench input", &t));
    must(sac_tensor_upload(t, data));
    sac_free(data);
    return t;
}

/* Milliseconds by both clocks. */
static void run(struct form *f, double *wall, double *cpu)
{
    const double w = now_ms(CLOCK_MONOTONIC), c = now_ms(CLOCK_PROCESS_CPUTIME_ID);
    must(sac_model_run(f->model, f->in, f->out));
    *wall = now_ms(CLOCK_MONOTONIC) - w;
    *cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID) - c;
    for (int i = 0; i < PORTS_MAX; i++)
        sac_tensor_unref(&f->out[i]);
}

static void open_form(struct form *f, sac_device *dev, const char *path, int batch)
{
    must(sac_model_load(dev, path, NULL, &f->model));
    if (sac_model_input_count(f->model) > PORTS_MAX || sac_model_output_count(f->model) > PORTS_MAX)
        die("too many inputs or outputs");
    for (int i = 0; i < sac_model_input_count(f->model); i++)
        f->in[i] = input(dev, sac_model_input(f->model, i), batch);
    for (int i = 0; i < WARM; i++)
        run(f, &f->wall[0], &f->cpu[0]);
}

static void close_form(struct form *f)
{
    for (int i = 0; i < PORTS_MAX; i++)
        sac_tensor_unref(&f->in[i]);
    sac_model_unref(&f->model);
}

/* ---- what came out ---- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct times report(struct form *f, const char *path, int turns)
{
    qsort(f->wall, (size_t)turns, sizeof f->wall[0], by_value);
    qsort(f->cpu, (size_t)turns, sizeof f->cpu[0], by_value);
    const struct times t = {f->wall[0], f->wall[turns / 2], f->cpu[0]};
    printf("%-40s least %8.3f ms  median %8.3f  processor %8.3f\n", path, t.least, t.median, t.cpu);
    return t;
}

static int number(int argc, char **argv, int at, int usual, int most)
{
    const int n = argc > at ? atoi(argv[at]) : usual;
    if (n < 1 || n > most)
        die("a number that is out of range");
    return n;
}

int main(int argc, char **argv)
{
    static struct form       forms[2];
    struct sac_device_params params = sac_device_params_default();
    sac_device              *dev = NULL;
    if (argc < 3)
        die("usage: bench_quantised FLOAT.onnx QUANTISED.onnx [turns [threads [batch]]]");
    const int turns = number(argc, argv, 3, 200, TURNS_MAX);
    const int batch = number(argc, argv, 5, 1, 1024);
    params.threads = number(argc, argv, 4, 1, 1024);
    must(sac_context_create(NULL, &ctx));
    must(sac_device_open(ctx, "cpu", &params, &dev));
    for (int k = 0; k < 2; k++)
        open_form(&forms[k], dev, argv[1 + k], batch);
    for (int i = 0; i < turns; i++)
        for (int k = 0; k < 2; k++)
            run(&forms[k], &forms[k].wall[i], &forms[k].cpu[i]);
    const struct times a = report(&forms[0], argv[1], turns), b = report(&forms[1], argv[2], turns);
    printf("%d threads, batch %d, %d turns: %.2f times as fast by the least, %.2f by the median, "
           "%.2f by processor time\n",
           params.threads, batch, turns, a.least / b.least, a.median / b.median, a.cpu / b.cpu);
    for (int k = 0; k < 2; k++)
        close_form(&forms[k]);
    sac_device_unref(&dev);
    sac_context_destroy(&ctx);
    return 0;
}
