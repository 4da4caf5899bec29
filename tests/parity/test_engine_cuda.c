/* SPDX-License-Identifier: Apache-2.0 */
/* Whole networks on the GPU against the CPU: every precision with a tolerance of its own, one
 * sample and several, step by step and captured. usage: test_engine_cuda [--tune]
 * MODEL_OR_FOLDER...; --tune: in half precision with measured kernels, and 32 samples at once;
 * without it not in TF32. */
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/model/difference.h"
#include "engine/model/model.h"
#include "tests/gpu.h"

enum { PORTS_MAX = 8, RUNS = 4 /* plain, captured, launched, launched */, CASES_MAX = 96 };
enum { TURNS = SAC_PLAN_GRAPHS_MAX /* with outputs of their own, queued back to back */ };

/* TF32 multiplies with 10 bits of mantissa as FP16 does, and adds in float32; FP16 also stores what
 * lies between two layers. */
static const enum sac_precision modes[] = {SAC_PRECISION_FP32, SAC_PRECISION_TF32,
                                           SAC_PRECISION_FP16};

struct network {
    char               path[512], name[128];
    enum sac_precision precision;
};

static const int64_t many_of[] = {5, 2, 4, 8, 32}; /* samples at once */

static sac_device *cpu, *gpu;
static bool        tune;

/* Numbers like an image's: 0 to 1, each sample's its own. */
static float *make_numbers(const struct sac_tensor_desc *desc, uint32_t seed)
{
    const int64_t count = sac_tensor_desc_elements(desc);
    float        *v = malloc((size_t)count * sizeof *v);
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        v[i] = (float)(seed >> 8) / 16777216.0f;
    }
    return v;
}

static sac_tensor *tensor_of(sac_device *dev, const struct sac_tensor_desc *desc,
                             const void *numbers)
{
    sac_tensor *t = NULL;
    assert_sac_ok(sac_tensor_create(dev, desc, "test", &t));
    assert_sac_ok(sac_tensor_upload(t, numbers));
    return t;
}

static void *fetch(const sac_tensor *t)
{
    void *host = malloc((size_t)sac_tensor_desc_bytes(sac_tensor_describe(t)) + 1);
    assert_sac_ok(sac_tensor_download(t, host));
    return host;
}

static struct sac_tensor_desc input_desc(sac_model *m, int i, int64_t batch)
{
    struct sac_tensor_desc desc = sac_model_input(m, i)->desc;
    for (int d = 0; d < desc.rank; d++)
        if (desc.shape[d] == SAC_DIM_UNKNOWN)
            desc.shape[d] = d == 0 ? batch : d == 1 ? 3 : 128;
    desc.shape[0] = batch;
    return desc;
}

struct answers {
    sac_tensor *out[PORTS_MAX];
};

static void forget(struct answers *a)
{
    for (int i = 0; i < PORTS_MAX; i++)
        sac_tensor_unref(&a->out[i]);
}

static void make_inputs(sac_device *dev, sac_model *m, int64_t batch, sac_tensor **in)
{
    assert_in_range(sac_model_input_count(m), 1, PORTS_MAX);
    assert_in_range(sac_model_output_count(m), 1, PORTS_MAX);
    for (int i = 0; i < sac_model_input_count(m); i++) {
        struct sac_tensor_desc desc = input_desc(m, i, batch);
        assert_int_equal(desc.dtype, SAC_F32);
        float *numbers = make_numbers(&desc, 7u + (uint32_t)i);
        in[i] = tensor_of(dev, &desc, numbers);
        free(numbers);
    }
}

static void run_model(sac_device *dev, sac_model *m, int64_t batch, int runs, struct answers *out)
{
    sac_tensor *in[PORTS_MAX] = {NULL};
    make_inputs(dev, m, batch, in);
    for (int k = 0; k < runs; k++)
        assert_sac_ok(sac_model_run_on(m, NULL, in, out->out));
    for (int i = 0; i < sac_model_input_count(m); i++)
        sac_tensor_unref(&in[i]); /* after the last run is queued; fetch waits for it */
}

static double worst_of(const struct answers *a, const struct answers *b, int count)
{
    double worst = 0;
    for (int i = 0; i < count; i++) {
        const struct sac_tensor_desc *d = sac_tensor_describe(b->out[i]);
        assert_int_equal(sac_tensor_describe(a->out[i])->dtype, d->dtype);
        assert_int_equal(sac_tensor_desc_bytes(sac_tensor_describe(a->out[i])),
                         sac_tensor_desc_bytes(d));
        void *x = fetch(a->out[i]), *y = fetch(b->out[i]);
        worst = fmax(worst, sac_difference(d, x, y));
        free(x);
        free(y);
    }
    return worst;
}

static int count_others(const struct answers *turn, void *const *first, int outputs)
{
    int others = 0;
    for (int t = 0; t < TURNS; t++)
        for (int i = 0; i < outputs; i++) {
            const int64_t bytes = sac_tensor_desc_bytes(sac_tensor_describe(turn[t].out[i]));
            void         *own = fetch(turn[t].out[i]);
            others += memcmp(own, first[i], (size_t)bytes) != 0;
            free(own);
        }
    return others;
}

/* Without a wait between them, the first step by step, then captured, then launched: a kernel that
 * does not wait for the one before it (device/cuda/launch.h) would read what a former turn left. So
 * the first run has been waited for, and outputs with other bits are counted. */
static int other_turns(sac_model *m, int outputs)
{
    sac_tensor    *in[PORTS_MAX] = {NULL};
    struct answers alone = {{NULL}}, turn[TURNS] = {{{NULL}}};
    void          *first[PORTS_MAX];
    int            others = 0;
    make_inputs(gpu, m, 1, in);
    assert_sac_ok(sac_model_run_on(m, NULL, in, alone.out));
    for (int i = 0; i < outputs; i++)
        first[i] = fetch(alone.out[i]);
    for (int k = 0; k < RUNS; k++) {
        for (int t = 0; t < TURNS; t++)
            assert_sac_ok(sac_model_run_on(m, NULL, in, turn[t].out));
        if (k == 0 || k == RUNS - 1)
            others += count_others(turn, first, outputs);
    }
    for (int i = 0; i < outputs; i++)
        free(first[i]);
    for (int t = 0; t < TURNS; t++)
        forget(&turn[t]);
    forget(&alone);
    for (int i = 0; i < sac_model_input_count(m); i++)
        sac_tensor_unref(&in[i]);
    return others;
}

static double time_of(sac_model *m, int64_t batch, int runs)
{
    struct answers out = {{NULL}};
    run_model(gpu, m, batch, 3, &out);
    void                  *wait = fetch(out.out[0]);
    struct sac_tensor_desc desc = input_desc(m, 0, batch);
    float                 *numbers = make_numbers(&desc, 1);
    sac_tensor            *in[PORTS_MAX] = {tensor_of(gpu, &desc, numbers)};
    free(wait);
    for (int k = 0; k < 3; k++)
        assert_sac_ok(sac_model_run_on(m, NULL, in, out.out));
    free(fetch(out.out[0]));
    const int64_t begun = sac_time_ns();
    for (int k = 0; k < runs; k++)
        assert_sac_ok(sac_model_run_on(m, NULL, in, out.out));
    free(fetch(out.out[0]));
    const double ms = (double)(sac_time_ns() - begun) / 1e6 / runs;
    free(numbers);
    sac_tensor_unref(&in[0]);
    forget(&out);
    return ms;
}

static int host_steps(const sac_model *m)
{
    int count = 0;
    for (int i = 0; i < SAC_PLANS_MAX; i++)
        if (m->plans[i])
            count = SAC_MAX(count, m->plans[i]->host_steps + (int)m->plans[i]->tail_count);
    return count;
}

static bool captured(const sac_model *m)
{
    for (int i = 0; i < SAC_PLANS_MAX; i++)
        for (int k = 0; m->plans[i] && k < SAC_PLAN_GRAPHS_MAX; k++)
            if (m->plans[i]->graphs[k].graph)
                return true;
    return false;
}

/* Several samples at once, each against the CPU's. each: "2: 1e-4, 4: ..." */
static double worst_at_once(sac_model *here, sac_model *there, int outputs, char *each, size_t size)
{
    double worst = 0;
    each[0] = '\0';
    for (size_t k = 0; k < SAC_COUNT(many_of) && (tune || k < 2); k++) {
        struct answers got = {{NULL}}, want = {{NULL}};
        const size_t   at = strlen(each);
        run_model(there->dev, there, many_of[k], RUNS, &got);
        run_model(cpu, here, many_of[k], 1, &want);
        const double off = worst_of(&got, &want, outputs);
        snprintf(each + at, size - at, "%s%lld: %.2g", at ? ", " : "", (long long)many_of[k], off);
        worst = fmax(worst, off);
        forget(&got);
        forget(&want);
    }
    return worst;
}

/* Alone: step by step, then captured. */
static double worst_alone(sac_model *here, sac_model *there, int outputs, double *off_again)
{
    struct answers want = {{NULL}}, got = {{NULL}}, again = {{NULL}};
    run_model(cpu, here, 1, 1, &want);
    run_model(gpu, there, 1, 1, &got);
    run_model(gpu, there, 1, RUNS, &again);
    const double off = worst_of(&got, &want, outputs);
    *off_again = worst_of(&again, &got, outputs);
    forget(&want);
    forget(&got);
    forget(&again);
    return off;
}

static void load_both(const struct network *n, sac_model **here, sac_model **there)
{
    struct sac_model_params params = sac_model_params_default();
    if (!gpu) /* one for all: cuDNN takes a second to open */
        gpu = gpu_open(NULL);
    if (sac_model_load(cpu, n->path, NULL, here) == SAC_ERR_IO) {
        print_message("skipped: %s is not here\n", n->path);
        skip();
    }
    assert_non_null(*here);
    params.precision = n->precision;
    params.tune = tune && n->precision == SAC_PRECISION_FP16;
    assert_sac_ok(sac_model_load(gpu, n->path, &params, there));
}

static void network_agrees(void **state)
{
    const struct network *n = *state;
    sac_model            *here = NULL, *there = NULL;
    char                  each[200] = "one by one";
    double                off_again, off_many = 0;
    load_both(n, &here, &there);
    const int     outputs = sac_model_output_count(here);
    const int64_t begun = sac_time_ns();
    const double  off = worst_alone(here, there, outputs, &off_again);
    const double  seconds = (double)(sac_time_ns() - begun) / 1e9;
    const bool    batches = sac_model_batches(there);
    if (batches)
        off_many = worst_at_once(here, there, outputs, each, sizeof each);
    const int    others = other_turns(there, outputs);
    const double ms = time_of(there, 1, 30);
    const bool   one_launch = captured(there);
    print_message(
        "%s: off by %.2g (limit %.0e), captured %.2g, at once %s; %d other bits in turns; %d steps "
        "on the host; %s; %.3f ms, planned in %.1f s\n",
        n->name, off, sac_difference_limit((int)n->precision), off_again, each, others,
        host_steps(there), one_launch ? "captured" : "NOT captured", ms, seconds);
    assert_true(off <= sac_difference_limit((int)n->precision));
    assert_true(off_again <= sac_difference_limit((int)n->precision) / 10); /* kernels may add in
                                                                               another order each
                                                                               time */
    assert_true(off_many <= sac_difference_limit((int)n->precision));
    assert_int_equal(others, 0);
    assert_true(one_launch || host_steps(there) > 0);
    sac_model_unref(&here);
    sac_model_unref(&there);
}

static int open_devices(void **state)
{
    (void)state;
    return sac_device_open(test_context(), "cpu", NULL, &cpu) == SAC_OK ? 0 : -1;
}

static int close_devices(void **state)
{
    (void)state;
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
    return 0;
}

static void add(struct network *networks, struct CMUnitTest *tests, int *count, const char *path)
{
    const char *slash = strrchr(path, '/');
    for (size_t k = 0; k < SAC_COUNT(modes) && *count < CASES_MAX; k++) {
        if (modes[k] == SAC_PRECISION_TF32 && !tune)
            continue;
        struct network *n = &networks[*count];
        snprintf(n->path, sizeof n->path, "%s", path);
        snprintf(n->name, sizeof n->name, "%s %s", slash ? slash + 1 : path,
                 sac_precision_name(modes[k]));
        n->precision = modes[k];
        tests[(*count)++] = (struct CMUnitTest){n->name, network_agrees, NULL, NULL, n};
    }
}

int main(int argc, char **argv)
{
    static struct network    networks[CASES_MAX];
    static struct CMUnitTest tests[CASES_MAX];
    int                      count = 0;
    setenv("SACCADE_CACHE", "", 1); /* measured here and now */
    tune = argc > 1 && !strcmp(argv[1], "--tune");
    for (int i = 1 + tune; i < argc; i++) {
        struct stat st;
        char        pattern[600];
        glob_t      found = {0};
        if (stat(argv[i], &st) != 0 || !S_ISDIR(st.st_mode)) {
            add(networks, tests, &count, argv[i]);
            continue;
        }
        snprintf(pattern, sizeof pattern, "%s/*.onnx", argv[i]);
        if (glob(pattern, 0, NULL, &found) != 0)
            continue;
        for (size_t k = 0; k < found.gl_pathc; k++)
            add(networks, tests, &count, found.gl_pathv[k]);
        globfree(&found);
    }
    return _cmocka_run_group_tests("parity/engine_cuda", tests, (size_t)count, open_devices,
                                   close_devices);
}
