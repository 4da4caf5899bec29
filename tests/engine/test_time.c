/* SPDX-License-Identifier: Apache-2.0 */
/* What steps are said to move and compute, how long runs take, and what a device can do. */
#include <math.h>

#include <saccade/device.h>

#include "engine/model/model.h"
#include "tests/engine/far.h"
#include "tests/engine/proto.h"
#include "tests/test.h"

enum { FLOAT = 1, INT64 = 7 };

static sac_device *far;

static int open_far(void **state)
{
    (void)state;
    assert_sac_ok(far_open(test_context(), NULL, &far));
    return 0;
}

static int close_far(void **state)
{
    struct sac_pool_stats stats;
    (void)state;
    sac_device_pool_stats(far, &stats);
    assert_int_equal(stats.bytes_live, 0);
    sac_device_unref(&far);
    return 0;
}

static sac_device *open_cpu(void)
{
    sac_device *dev = NULL;
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &dev));
    return dev;
}

/* x [1,3,8,8] -> convolution of 4 by 3x3 -> y [1,4,6,6] */
static void write_convolution(struct proto *model)
{
    struct proto graph = {0};
    float        weights[4 * 3 * 9];
    for (size_t i = 0; i < SAC_COUNT(weights); i++)
        weights[i] = (float)i / 108;
    proto_node(&graph, "Conv", "x w", "y", NULL);
    proto_initializer(&graph, "w", FLOAT, "4 3 3 3", weights, sizeof weights);
    proto_input(&graph, "x", FLOAT, "1 3 8 8");
    proto_output(&graph, "y", FLOAT, "1 4 6 6");
    proto_model(model, &graph, 17);
}

/* x [1000,4], rows 7 and 11 of it -> y [2,4] -> times itself -> z */
static void write_rows(struct proto *model)
{
    struct proto  graph = {0};
    const int64_t rows[] = {7, 11};
    proto_node(&graph, "Gather", "x i", "y", NULL);
    proto_node(&graph, "Mul", "y y", "z", NULL);
    proto_initializer(&graph, "i", INT64, "2", rows, sizeof rows);
    proto_input(&graph, "x", FLOAT, "1000 4");
    proto_output(&graph, "z", FLOAT, "2 4");
    proto_model(model, &graph, 17);
}

static sac_model *load(sac_device *dev, struct proto *bytes, enum sac_precision precision)
{
    struct sac_model_params params = sac_model_params_default();
    sac_model              *model = NULL;
    params.precision = precision;
    params.free_batch = 0;
    assert_sac_ok(sac_model_load_memory(dev, bytes->bytes, bytes->size, "net", &params, &model));
    return model;
}

/* Of zeros. */
static sac_tensor *make_input(const sac_model *model)
{
    const struct sac_tensor_desc *desc = &sac_model_input(model, 0)->desc;
    sac_tensor                   *t = NULL;
    void                         *zeros = calloc(1, (size_t)sac_tensor_desc_bytes(desc));
    assert_sac_ok(sac_tensor_create(sac_model_device(model), desc, "test", &t));
    assert_sac_ok(sac_tensor_upload(t, zeros));
    free(zeros);
    return t;
}

struct found {
    const char           *operator_name;
    struct sac_model_step step;
    int                   count, all;
};

static void find(void *user, const struct sac_model_step *step)
{
    struct found *found = user;
    found->all++;
    if (strcmp(step->operator_name, found->operator_name) != 0)
        return;
    found->step = *step;
    found->count++;
}

static struct found step_of(sac_model *model, const char *operator_name)
{
    struct found found = {.operator_name = operator_name};
    sac_model_list_steps(model, find, &found);
    assert_int_equal(found.count, 1);
    return found;
}

static void a_convolution_reads_its_weights(void **state)
{
    struct proto bytes = {0};
    sac_device  *cpu = open_cpu();
    (void)state;
    write_convolution(&bytes);
    sac_model         *model = load(cpu, &bytes, SAC_PRECISION_FP32);
    const struct found conv = step_of(model, "Conv");
    assert_int_equal(conv.step.bytes_read, 4 * (3 * 64 + 4 * 27));
    assert_int_equal(conv.step.bytes_written, 4 * 4 * 36);
    assert_int_equal(conv.step.flops, 2 * 4 * 36 * 27);
    assert_int_equal(conv.step.output.rank, 4);
    assert_int_equal(conv.step.output.shape[1], 4);
    assert_true(conv.step.ms == 0);
    sac_model_unref(&model);
    sac_device_unref(&cpu);
    proto_free(&bytes);
}

/* In FP16 all of it is half as large, and the conversions at both ends are steps too. */
static void halves_are_counted_as_stored(void **state)
{
    struct proto bytes = {0};
    (void)state;
    write_convolution(&bytes);
    sac_model         *model = load(far, &bytes, SAC_PRECISION_FP16);
    const struct found conv = step_of(model, "Conv");
    assert_int_equal(conv.step.bytes_read, 2 * (3 * 64 + 4 * 27));
    assert_int_equal(conv.step.bytes_written, 2 * 4 * 36);
    assert_int_equal(conv.step.output.dtype, SAC_F16);
    assert_true(conv.all > 1);
    sac_model_unref(&model);
    proto_free(&bytes);
}

static void what_is_not_read_does_not_count(void **state)
{
    struct proto bytes = {0};
    sac_device  *cpu = open_cpu();
    (void)state;
    write_rows(&bytes);
    sac_model         *model = load(cpu, &bytes, SAC_PRECISION_FP32);
    const struct found gather = step_of(model, "Gather"), mul = step_of(model, "Mul");
    assert_int_equal(gather.step.bytes_written, 4 * 8);
    assert_int_equal(gather.step.bytes_read, 4 * 8 + 2 * 8); /* two rows, and their numbers */
    assert_int_equal(mul.step.bytes_read, 4 * 8);            /* one value, although given twice */
    assert_int_equal(mul.step.flops, 8);
    sac_model_unref(&model);
    sac_device_unref(&cpu);
    proto_free(&bytes);
}

static void time_on(sac_device *dev)
{
    struct proto           bytes = {0};
    struct sac_model_times times = {.runs = 0};
    write_convolution(&bytes);
    sac_model  *model = load(dev, &bytes, SAC_PRECISION_FP32);
    sac_tensor *x = make_input(model), *none = NULL, *y = NULL;
    assert_sac_ok(sac_model_time(model, &x, 0.002, &times));
    assert_true(times.runs >= 3);
    assert_true(times.best_ms > 0);
    assert_true(times.best_ms <= times.median_ms);
    assert_true(times.plan_ms > 0);
    assert_sac_error(sac_model_time(model, &none, 0.002, &times), SAC_ERR_ARG);
    static const double no_times[] = {(double)NAN, -1, (double)INFINITY};
    for (size_t i = 0; i < SAC_COUNT(no_times); i++)
        assert_sac_error(sac_model_time(model, &x, no_times[i], &times), SAC_ERR_ARG);
    sac_model_profile(model, 1);
    assert_sac_ok(sac_model_run(model, &x, &y));
    assert_true(step_of(model, "Conv").step.ms > 0);
    sac_tensor_unref(&y);
    sac_tensor_unref(&x);
    sac_model_unref(&model);
    proto_free(&bytes);
}

static void runs_are_timed(void **state)
{
    sac_device *cpu = open_cpu();
    (void)state;
    time_on(cpu);
    sac_device_unref(&cpu);
    time_on(far);
}

static void the_processor_is_measured(void **state)
{
    struct sac_device_rates rates = {0};
    sac_device             *cpu = open_cpu();
    (void)state;
    assert_sac_error(sac_device_measure(cpu, SAC_PRECISION_FP16, &rates), SAC_ERR_UNSUPPORTED);
    assert_true(rates.bytes_per_s == 0);
    assert_sac_ok(sac_device_measure(cpu, SAC_PRECISION_DEFAULT, &rates));
    assert_true(rates.bytes_per_s > 1e7);
    assert_true(rates.flops_per_s > 1e7);
    assert_true(rates.step_ms > 0 && rates.step_ms < 10);
    sac_device_unref(&cpu);
}

#define on_far(test) cmocka_unit_test_setup_teardown(test, open_far, close_far)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_convolution_reads_its_weights), on_far(halves_are_counted_as_stored),
        cmocka_unit_test(what_is_not_read_does_not_count), on_far(runs_are_timed),
        cmocka_unit_test(the_processor_is_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
