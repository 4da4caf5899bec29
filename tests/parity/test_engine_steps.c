/* SPDX-License-Identifier: Apache-2.0 */
/* Every step of whole networks on the GPU against its reference row, on the numbers that the step
 * was given, at several batches: names the kernel that is off. Arguments: BATCH,BATCH,... and
 * models. */
#include <stdio.h>
#include <string.h>

#include "engine/kernel/layout.h"
#include "engine/model/model.h"
#include "tests/gpu.h"

enum { CASES_MAX = 96, SAID_MAX = 6 };

/* Of a step's largest number. Inputs are those of the step itself, so errors do not add up. */
static const struct mode {
    enum sac_precision precision;
    double             limit;
} modes[] = {{SAC_PRECISION_FP32, 1e-4}, {SAC_PRECISION_TF32, 5e-3}, {SAC_PRECISION_FP16, 5e-3}};

struct subject {
    const char        *model;
    char               name[128];
    const struct mode *mode;
    int64_t            batch;
    sac_model         *loaded;
    double             worst;
    int                steps, wrong;
};

static sac_device *gpu, *cpu;

static void look(void *user, const struct sac_step_check *check)
{
    struct subject *s = user;
    char            label[320];
    s->steps++;
    if (check->off > s->worst)
        s->worst = check->off;
    if (check->off <= s->mode->limit || s->wrong++ >= SAID_MAX)
        return;
    print_message("  step %d, %s: off by %.3g at sample %lld\n", check->number,
                  sac_step_label(check->step, label, sizeof label), check->off,
                  (long long)check->sample);
}

static sac_tensor *make_input(sac_model *m, int64_t batch)
{
    struct sac_tensor_desc desc = sac_model_input(m, 0)->desc;
    for (int d = 0; d < desc.rank; d++)
        if (desc.shape[d] == SAC_DIM_UNKNOWN)
            desc.shape[d] = d == 0 ? batch : d == 1 ? 3 : 128;
    desc.shape[0] = batch;
    const int64_t count = sac_tensor_desc_elements(&desc);
    float        *v = malloc((size_t)count * sizeof *v);
    uint32_t      seed = 11;
    sac_tensor   *t = NULL;
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        v[i] = (float)(seed >> 8) / 16777216.0f;
    }
    assert_int_equal(desc.dtype, SAC_F32);
    assert_sac_ok(sac_tensor_create(gpu, &desc, "test", &t));
    assert_sac_ok(sac_tensor_upload(t, v));
    free(v);
    return t;
}

static struct sac_plan *plan_of(const sac_model *m, int64_t batch)
{
    for (int i = 0; i < SAC_PLANS_MAX; i++)
        if (m->plans[i] && m->plans[i]->infer.values[m->graph->inputs[0]->id].dims[0] == batch)
            return m->plans[i];
    return NULL;
}

static void steps_agree(void **state)
{
    struct subject           *s = *state;
    struct sac_model_params   params = sac_model_params_default();
    sac_tensor               *out[16] = {NULL};
    struct sac_device_stream *stream = NULL;
    if (!gpu)
        gpu = gpu_open(NULL);
    if (!cpu)
        assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &cpu));
    params.precision = s->mode->precision;
    if (sac_model_load(gpu, s->model, &params, &s->loaded) == SAC_ERR_IO) {
        print_message("skipped: %s is not here\n", s->model);
        skip();
    }
    assert_non_null(s->loaded);
    assert_int_equal(sac_model_input_count(s->loaded), 1);
    assert_in_range(sac_model_output_count(s->loaded), 1, SAC_COUNT(out));
    sac_tensor *in = make_input(s->loaded, s->batch);
    assert_sac_ok(gpu->ops->stream_create(gpu, &stream));
    assert_sac_ok(sac_model_run_on(s->loaded, stream, &in, out));
    struct sac_plan *plan = plan_of(s->loaded, s->batch);
    assert_non_null(plan);
    assert_sac_ok(sac_plan_verify(plan, stream, cpu, look, s));
    print_message("%s: %d steps, worst %.3g (limit %.0e), %d wrong\n", s->name, s->steps, s->worst,
                  s->mode->limit, s->wrong);
    gpu->ops->stream_destroy(&stream);
    for (size_t i = 0; i < SAC_COUNT(out); i++)
        sac_tensor_unref(&out[i]);
    sac_tensor_unref(&in);
    sac_model_unref(&s->loaded);
    assert_int_equal(s->wrong, 0);
}

static int close_device(void **state)
{
    (void)state;
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
    return 0;
}

int main(int argc, char **argv)
{
    static struct subject    subjects[CASES_MAX];
    static struct CMUnitTest tests[CASES_MAX];
    size_t                   count = 0;
    for (int i = 2; i < argc; i++)
        for (size_t k = 0; k < SAC_COUNT(modes); k++)
            for (const char *b = argv[1]; b && count < CASES_MAX;
                 b = strchr(b, ',') ? strchr(b, ',') + 1 : NULL) {
                struct subject *s = &subjects[count];
                const char     *slash = strrchr(argv[i], '/');
                *s = (struct subject){.model = argv[i], .mode = &modes[k], .batch = atoi(b)};
                snprintf(s->name, sizeof s->name, "%s %s, %lld at once",
                         slash ? slash + 1 : argv[i], sac_precision_name(modes[k].precision),
                         (long long)s->batch);
                tests[count++] = (struct CMUnitTest){s->name, steps_agree, NULL, NULL, s};
            }
    return _cmocka_run_group_tests("parity/engine_steps", tests, count, NULL, close_device);
}
