/* SPDX-License-Identifier: Apache-2.0 */
/* The planner and the executor on a device whose memory is not the host's (far.h): the models of
 * tests/models against their answers, in full and half precision, step by step and captured; what
 * runs on the host is said and counted; faults leave things in order. */
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/kernel/finite.h"
#include "engine/kernel/layout.h"
#include "engine/model/model.h"
#include "tests/engine/far.h"
#include "tests/engine/proto.h"
#include "tests/engine/ratio.h"
#include "tests/test.h"

enum { OUTPUTS_MAX = 8, FLOAT = 1, INT64 = 7, BOOL = 9 };

static sac_device *cpu, *far;
static char        said[4096];

static void keep(void *user, enum sac_log_level level, const char *message)
{
    (void)user, (void)level;
    if (strlen(said) + strlen(message) + 2 < sizeof said)
        strcat(strcat(said, message), "\n");
}

static sac_context *context(void)
{
    static sac_context       *ctx;
    struct sac_context_params params = sac_context_params_default();
    params.log_fn = keep;
    params.log_level = SAC_LOG_DEBUG;
    if (!ctx && sac_context_create(&params, &ctx) != SAC_OK)
        fail_msg("no context");
    return ctx;
}

#define ok(call)                                                       \
    do {                                                               \
        sac_result ok_ = (call);                                       \
        char       why_[512];                                          \
        sac_context_last_error(context(), why_, sizeof why_);          \
        if (ok_ != SAC_OK)                                             \
            fail_msg("%s: %s: %s", #call, sac_result_name(ok_), why_); \
    } while (0)

static int open_devices(void **state)
{
    (void)state;
    said[0] = '\0';
    ok(sac_device_open(context(), "cpu", NULL, &cpu));
    ok(far_open(context(), NULL, &far));
    return 0;
}

static int close_devices(void **state)
{
    struct sac_pool_stats stats;
    (void)state;
    sac_device_pool_stats(far, &stats);
    assert_int_equal(stats.bytes_live, 0);
    sac_device_unref(&far);
    sac_device_unref(&cpu);
    return 0;
}

/* ---- tensors there and back ---- */

static sac_tensor *sent(const sac_tensor *host)
{
    sac_tensor *t = NULL;
    ok(sac_tensor_create(far, sac_tensor_describe(host), "test", &t));
    ok(sac_tensor_upload(t, sac_tensor_data(host)));
    return t;
}

static float *fetched(const sac_tensor *t)
{
    float *numbers = malloc((size_t)sac_tensor_desc_bytes(sac_tensor_describe(t)));
    ok(sac_tensor_download(t, numbers));
    return numbers;
}

static void compare(const char *what, const sac_tensor *got, const float *want, int64_t count,
                    double limit)
{
    float *a = fetched(got);
    double largest = 1, off = 0;
    assert_int_equal(sac_tensor_desc_elements(sac_tensor_describe(got)), count);
    for (int64_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs((double)want[i]));
        off = fmax(off, fabs((double)a[i] - (double)want[i]));
    }
    free(a);
    if (!(off <= limit * largest))
        fail_msg("%s: off by %g where the largest is %g", what, off, largest);
}

static void unref_all(sac_tensor **t)
{
    for (int i = 0; i < OUTPUTS_MAX; i++)
        sac_tensor_unref(&t[i]);
}

/* ---- the fixtures ---- */

struct fixture {
    const char        *path;
    enum sac_precision precision;
    char               name[128];
};

/* Step by step into new outputs, which the caller keeps; then into the same ones: step by step,
 * captured and launched, launched again, and with the time of each step. */
static void fixture_runs(void **state)
{
    const struct fixture   *f = *state;
    struct sac_model_params params = sac_model_params_default();
    sac_model              *model = NULL;
    sac_tensor  *host = NULL, *in, *out[OUTPUTS_MAX] = {NULL}, *want[OUTPUTS_MAX] = {NULL};
    const double limit = f->precision == SAC_PRECISION_FP16 ? 3e-2 : 1e-4;
    params.precision = f->precision;
    ok(sac_tensor_load_npy(cpu, MODELS_DIR "/input.npy", &host));
    in = sent(host);
    ok(sac_model_load(far, f->path, &params, &model));
    assert_int_equal(sac_model_precision(model), f->precision);
    for (int i = 0; i < sac_model_output_count(model); i++) {
        char path[512];
        snprintf(path, sizeof path, "%.*s.out%d.npy", (int)(strlen(f->path) - 5), f->path, i);
        ok(sac_tensor_load_npy(cpu, path, &want[i]));
    }
    for (int run = 0; run < 5; run++) {
        if (run == 1)
            assert_int_equal(far_counts.launches, 0);
        sac_model_profile(model, run == 4);
        ok(sac_model_run_on(model, NULL, &in, out));
        for (int i = 0; i < sac_model_output_count(model); i++)
            compare(f->name, out[i], sac_tensor_data(want[i]),
                    sac_tensor_desc_elements(sac_tensor_describe(want[i])), limit);
    }
    if (strstr(said, "captured as one launch"))
        assert_true(far_counts.launches > 0);
    else
        assert_non_null(strstr(said, "on the host"));
    unref_all(out);
    unref_all(want);
    sac_tensor_unref(&in);
    sac_tensor_unref(&host);
    sac_model_unref(&model);
}

/* ---- small networks ---- */

/* x [1,8,6,6] -> two convolutions -> Concat -> Sin, Mul -> y [1,8,6,6]; with softmax: then Softmax
 * -> y. */
static sac_model *branches(bool softmax, const struct sac_model_params *params)
{
    static struct proto model; /* borrowed by the model */
    struct proto        graph = {0}, attrs = {0};
    float               weights[4 * 8 * 3 * 3];
    proto_free(&model);
    for (size_t i = 0; i < SAC_COUNT(weights); i++)
        weights[i] = (float)((int)(i * 37 % 41) - 20) / 64;
    proto_input(&graph, "x", FLOAT, "1 8 6 6");
    proto_initializer(&graph, "w1", FLOAT, "4 8 3 3", weights, sizeof weights);
    proto_initializer(&graph, "w2", FLOAT, "4 8 1 1", weights, 4 * 8 * sizeof *weights);
    proto_initializer(&graph, "bias", FLOAT, "1 8 1 1", weights, 8 * sizeof *weights);
    proto_attr_ints(&attrs, "pads", "1 1 1 1");
    proto_node(&graph, "Conv", "x w1", "a", &attrs);
    proto_node(&graph, "Conv", "x w2", "b", NULL);
    attrs = (struct proto){0};
    proto_attr_int(&attrs, "axis", 1);
    proto_node(&graph, "Concat", "a b", "c", &attrs);
    proto_node(&graph, "Sin", "c", "d", NULL); /* no convolution takes it in */
    proto_node(&graph, "Mul", "d bias", softmax ? "e" : "y", NULL);
    attrs = (struct proto){0};
    proto_attr_int(&attrs, "axis", 1);
    if (softmax)
        proto_node(&graph, "Softmax", "e", "y", &attrs);
    else
        proto_free(&attrs);
    proto_output(&graph, "y", FLOAT, "1 8 6 6");
    proto_model(&model, &graph, 17);
    sac_model *m = NULL;
    ok(sac_model_load_memory(far, model.bytes, model.size, "branches", params, &m));
    return m;
}

static sac_tensor *numbers(sac_device *dev, int n)
{
    struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 4, .shape = {n, 8, 6, 6}};
    sac_tensor            *t = NULL;
    float                  v[8 * 8 * 36];
    for (int i = 0; i < n * 8 * 36; i++)
        v[i] = (float)(i * 29 % 101 - 50) / 50;
    ok(sac_tensor_create(dev, &desc, "test", &t));
    ok(sac_tensor_upload(t, v));
    return t;
}

static void concat_is_placed_in_half(void **state)
{
    (void)state;
    struct sac_model_params params = sac_model_params_default();
    sac_model              *half = branches(false, &params); /* FP16 is this device's default */
    params.precision = SAC_PRECISION_FP32;
    sac_model  *full = branches(false, &params);
    sac_tensor *x = numbers(far, 1), *y[2] = {NULL};
    assert_int_equal(sac_model_precision(half), SAC_PRECISION_FP16);
    ok(sac_model_run(full, &x, &y[0]));
    far_counts = (struct far_counts){0};
    ok(sac_model_run(half, &x, &y[1]));
    assert_int_equal(far_counts.kernels, 4); /* two convolutions, Sin, Mul: no Concat */
    assert_int_equal(far_counts.taken, 2);
    float *want = fetched(y[0]);
    compare("half", y[1], want, 8 * 36, 5e-3);
    free(want);
    sac_tensor_unref(&x);
    sac_tensor_unref(&y[0]);
    sac_tensor_unref(&y[1]);
    sac_model_unref(&half);
    sac_model_unref(&full);
}

static void weights_go_up_once_a_model(void **state)
{
    (void)state;
    struct sac_ledger before, after;
    sac_model        *m = branches(false, NULL);
    sac_tensor       *one = numbers(far, 1), *y = NULL;
    sac_device_ledger(far, &before);
    ok(sac_model_run(m, &one, &y));
    sac_device_ledger(far, &after);
    const uint64_t calls =
        after.reason[SAC_COPY_WEIGHTS].calls - before.reason[SAC_COPY_WEIGHTS].calls;
    assert_int_equal(calls, 3); /* two kernels' own, and what Mul reads */
    assert_true(sac_model_batches(m));
    sac_device_ledger(far, &before);
    sac_tensor *eight = numbers(far, 8);
    float      *first = fetched(y);
    sac_tensor_unref(&y);
    ok(sac_model_run(m, &eight, &y)); /* another plan */
    sac_device_ledger(far, &after);
    float *all = fetched(y);
    for (int i = 0; i < 8 * 36; i++)
        assert_float_equal(all[i], first[i], 0);
    free(first);
    free(all);
    assert_int_equal(after.reason[SAC_COPY_WEIGHTS].calls, before.reason[SAC_COPY_WEIGHTS].calls);
    assert_int_equal(after.reason[SAC_COPY_TENSOR_LAYOUT].calls, 0);
    sac_tensor_unref(&one);
    sac_tensor_unref(&eight);
    sac_tensor_unref(&y);
    sac_model_unref(&m);
}

/* Nobody waits for a queued run; its input may go at once, and its output is what a run gives. */
static void a_run_can_be_queued(void **state)
{
    (void)state;
    sac_model        *m = branches(false, NULL);
    sac_tensor       *x = numbers(far, 1), *y = NULL, *later = NULL;
    struct sac_event *behind = NULL;
    ok(far->ops->event_create(far, false, &behind));
    for (int i = 0; i < 3; i++) { /* planned; captured; launched */
        sac_tensor_unref(&y);
        ok(sac_model_run(m, &x, &y));
    }
    float *want = fetched(y);
    sac_tensor_unref(&y);
    ok(sac_model_queue(m, &x, &later));
    ok(far->ops->event_record(behind, NULL));
    sac_tensor_unref(&x);
    assert_false(far->ops->event_reached(behind));
    compare("a queued run", later, want, 8 * 36, 0);
    assert_int_equal(sac_model_queue(m, &x, &y), SAC_ERR_ARG); /* no input */
    assert_null(y);
    far->ops->event_destroy(&behind);
    free(want);
    sac_tensor_unref(&later);
    sac_model_unref(&m);
}

static void host_work_is_said_and_counted(void **state)
{
    (void)state;
    struct sac_ledger ledger;
    sac_model        *m = branches(true, NULL);
    sac_tensor       *x = numbers(far, 1), *y = NULL;
    for (int i = 0; i < 3; i++) {
        sac_tensor_unref(&y);
        ok(sac_model_run(m, &x, &y));
    }
    float *v = fetched(y), sum = 0;
    for (int i = 0; i < 8; i++)
        sum += v[i * 36];
    free(v);
    assert_float_equal(sum, 1, 1e-5);
    sac_device_ledger(far, &ledger);
    assert_int_equal(ledger.reason[SAC_COPY_TENSOR_LAYOUT].calls, 6); /* down and up, thrice */
    assert_int_equal(ledger.reason[SAC_COPY_TENSOR_LAYOUT].bytes, 6 * 8 * 36 * 4);
    const char *once = strstr(said, "not all of it runs on far:0: Softmax on the host");
    assert_non_null(once);
    assert_null(strstr(once + 1, "not all of it runs on"));
    assert_int_equal(far_counts.captures, 0);
    sac_tensor_unref(&x);
    sac_tensor_unref(&y);
    sac_model_unref(&m);
}

static void strict_refuses_host_work(void **state)
{
    (void)state;
    sac_model  *m = branches(true, NULL);
    sac_tensor *x = numbers(far, 1), *y = NULL;
    char        why[512];
    atomic_store(&far->strict, 1);
    assert_int_equal(sac_model_run(m, &x, &y), SAC_ERR_COPY);
    sac_context_last_error(context(), why, sizeof why);
    assert_non_null(
        strstr(why, "(Softmax) on the host, 'e': a copy of 1152 bytes (tensor-layout) on far:0, "
                    "and zero-copy is strict"));
    assert_null(y);
    sac_tensor_unref(&x);
    sac_model_unref(&m);
}

static void failing_captures_are_said(void **state)
{
    (void)state;
    sac_model  *m = branches(false, NULL);
    sac_tensor *x = numbers(far, 1), *y = NULL;
    far_counts.capture_fails = true;
    for (int i = 0; i < 3; i++)
        ok(sac_model_run_on(m, NULL, &x, &y));
    assert_int_equal(far_counts.launches, 0);
    assert_non_null(strstr(said, "cannot be captured: far: no captures today"));
    sac_tensor_unref(&x);
    sac_tensor_unref(&y);
    sac_model_unref(&m);
}

static void count_times(void *user, const char *line)
{
    int *counts = user;
    counts[0] += strstr(line, "0.0010 ms") != NULL;
    counts[1] += strstr(line, "0.0000 ms") != NULL;
    counts[2] += strstr(line, " ms") != NULL;
}

/* A kernel of this device takes a microsecond, all else nothing, by its events. */
static void steps_are_timed_in_one_launch(void **state)
{
    (void)state;
    sac_model  *m = branches(false, NULL);
    sac_tensor *x = numbers(far, 1), *y = NULL;
    int         counts[3] = {0};
    ok(sac_model_run_on(m, NULL, &x, &y));
    float *want = fetched(y);
    sac_model_profile(m, 1);
    for (int i = 0; i < 3; i++)
        ok(sac_model_run_on(m, NULL, &x, &y));
    assert_int_equal(far_counts.launches, 3);
    sac_model_dump_steps(m, count_times, counts);
    assert_int_equal(counts[0], 4); /* two convolutions, Sin, Mul */
    assert_int_equal(counts[0] + counts[1], counts[2]);
    compare("profiled", y, want, 8 * 36, 0);
    far_counts.capture_fails = true;
    ok(sac_model_run_on(m, NULL, &x, &y)); /* each step waited for */
    assert_int_equal(far_counts.launches, 3);
    compare("profiled step by step", y, want, 8 * 36, 0);
    free(want);
    sac_tensor_unref(&x);
    sac_tensor_unref(&y);
    sac_model_unref(&m);
}

/* x [1,8,6,6] -> convolution -> Resize -> y [1,4,12,12], and read: what is resized -> Tanh -> z. */
static sac_model *enlarged(bool read)
{
    static struct proto model;
    struct proto        graph = {0};
    const float         scales[4] = {1, 1, 2, 2};
    float               weights[4 * 8];
    proto_free(&model);
    for (size_t i = 0; i < SAC_COUNT(weights); i++)
        weights[i] = (float)((int)(i * 37 % 41) - 20) / 64;
    proto_input(&graph, "x", FLOAT, "1 8 6 6");
    proto_initializer(&graph, "w", FLOAT, "4 8 1 1", weights, sizeof weights);
    proto_initializer(&graph, "scales", FLOAT, "4", scales, sizeof scales);
    proto_node(&graph, "Conv", "x w", "a", NULL);
    proto_node(&graph, "Resize", "a - scales", "y", NULL);
    if (read)
        proto_node(&graph, "Tanh", "y", "z", NULL);
    proto_output(&graph, "y", FLOAT, "1 4 12 12");
    if (read)
        proto_output(&graph, "z", FLOAT, "1 4 12 12");
    proto_model(&model, &graph, 17);
    sac_model *m = NULL;
    ok(sac_model_load_memory(far, model.bytes, model.size, "enlarged", NULL, &m));
    return m;
}

/* A kernel that can write an output as the caller wants it does, unless others read what it
 * writes. */
static void outputs_are_written_as_wanted(void **state)
{
    (void)state;
    sac_tensor *x = numbers(far, 1), *y[2][2] = {{NULL}};
    for (int read = 0; read < 2; read++) {
        sac_model *m = enlarged(read);
        far_counts = (struct far_counts){0};
        ok(sac_model_run(m, &x, y[read]));
        assert_int_equal(far_counts.relayouts, read ? 4 : 1); /* the input; what Tanh reads, the
                                                                 outputs */
        sac_model_unref(&m);
    }
    float *want = fetched(y[1][0]);
    compare("y", y[0][0], want, 4 * 144, 1e-3);
    free(want);
    sac_tensor_unref(&x);
    for (int i = 0; i < 4; i++)
        sac_tensor_unref(&y[i / 2][i % 2]);
}

static void graphs_go_by_addresses(void **state)
{
    (void)state;
    sac_model  *m = branches(false, NULL);
    sac_tensor *x[6], *y[6] = {NULL};
    for (int i = 0; i < 6; i++)
        x[i] = numbers(far, 1);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 4; i++)
            ok(sac_model_run_on(m, NULL, &x[i], &y[i]));
    assert_int_equal(far_counts.captures, 4);
    assert_int_equal(far_counts.launches, 8); /* all but the first round */
    for (int i = 4; i < 6; i++)               /* two of the four go */
        ok(sac_model_run_on(m, NULL, &x[i], &y[i]));
    ok(sac_model_run_on(m, NULL, &x[0], &y[0]));
    ok(sac_model_run_on(m, NULL, &x[3], &y[3]));
    assert_int_equal(far_counts.captures, 4);
    assert_int_equal(far_counts.launches, 9);
    for (int i = 0; i < 6; i++) {
        sac_tensor_unref(&x[i]);
        sac_tensor_unref(&y[i]);
    }
    sac_model_unref(&m);
}

static void wrong_tensors_are_refused(void **state)
{
    (void)state;
    sac_model             *m = branches(false, NULL);
    sac_tensor            *x = numbers(far, 2), *view = NULL, *y = NULL, *wrong = numbers(far, 2);
    struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 4, .shape = {1, 8, 6, 6}};
    char                   why[512];
    ok(sac_tensor_view(x, 4, &desc, &view));
    assert_int_equal(sac_model_run(m, &view, &y), SAC_ERR_ARG);
    sac_context_last_error(context(), why, sizeof why);
    assert_non_null(strstr(why, "input 'x' does not begin at a multiple of 64 bytes"));
    sac_tensor_unref(&view);
    ok(sac_tensor_view(x, 0, &desc, &view));
    y = wrong;
    assert_int_equal(sac_model_run_on(m, NULL, &view, &y), SAC_ERR_ARG);
    assert_ptr_equal(y, wrong);
    sac_tensor_unref(&view);
    sac_tensor_unref(&x);
    sac_tensor_unref(&wrong);
    sac_model_unref(&m);
}

static void short_of_memory_is_a_sentence(void **state)
{
    (void)state;
    sac_model  *m = branches(false, NULL);
    sac_tensor *one = numbers(far, 1), *eight = numbers(far, 8), *y = NULL;
    ok(sac_model_run(m, &one, &y));
    sac_tensor_unref(&y);
    assert_true(sac_model_batches(m));
    far_counts.full = true;
    sac_device_pool_trim(far);
    assert_int_equal(sac_model_run(m, &eight, &y), SAC_ERR_MEMORY);
    assert_null(y);
    far_counts.full = false;
    ok(sac_model_run(m, &eight, &y));
    sac_tensor_unref(&one);
    sac_tensor_unref(&eight);
    sac_tensor_unref(&y);
    sac_model_unref(&m);
}

/* Checking a batch takes no page-locked memory: there may be none left, and the model would be
 * without batches for good. */
static void batches_need_no_page_locked_memory(void **state)
{
    (void)state;
    struct sac_device_params params = sac_device_params_default();
    params.host_limit_bytes = 1;
    sac_device_unref(&far);
    ok(far_open(context(), &params, &far));
    sac_model *m = branches(false, NULL);
    assert_true(sac_model_batches(m));
    sac_model_unref(&m);
}

/* ---- what is not finite ---- */

static const uint32_t finite_bits[] = {0, 0x80000000, 0x7f7fffff, 0xff7fffff, 1, 0x00800000},
                      odd_bits[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xff800001};
static const uint16_t finite_halves[] = {0, 0x8000, 0x7bff, 0xfbff, 1, 0x0400},
                      odd_halves[] = {0x7c00, 0xfc00, 0x7e00, 0xfc01};

/* Of all kinds, at each place, with a number behind the last that does not count. */
static void no_number_is_overlooked(void **state)
{
    enum { MOST = 40 };
    (void)state;
    for (int count = 0; count < MOST; count++)
        for (int i = -1; i < count; i++)
            for (int kind = 0; kind < 4; kind++) {
                uint32_t numbers[MOST + 1];
                uint16_t halves[MOST + 1];
                for (int k = 0; k <= MOST; k++) {
                    numbers[k] = k == i || k == count ? odd_bits[kind] : finite_bits[k % 6];
                    halves[k] = k == i || k == count ? odd_halves[kind] : finite_halves[k % 6];
                }
                const bool nan = kind >= 2;
                assert_int_equal(sac_numbers_are_finite(numbers, count, false, false), i < 0);
                assert_int_equal(sac_numbers_are_finite(halves, count, true, false), i < 0);
                assert_int_equal(sac_numbers_are_finite(numbers, count, false, true),
                                 i < 0 || !nan);
                assert_int_equal(sac_numbers_are_finite(halves, count, true, true), i < 0 || !nan);
            }
}

/* Places of a batch that no image took hold whatever was there. */
static void images_that_do_not_count_are_not_looked_at(void **state)
{
    static const float     numbers[] = {1, 2, 3, 4, 5, INFINITY};
    struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 2, .shape = {3, 2}};
    sac_device *const      devices[] = {cpu, far};
    (void)state;
    for (int d = 0; d < 2; d++)
        for (int n = 0; n <= 3; n++) {
            struct sac_finite f = {0};
            sac_tensor       *t[2] = {NULL};
            sac_finite_open(&f, devices[d]);
            ok(sac_tensor_create(devices[d], &desc, "test", &t[1]));
            ok(sac_tensor_upload(t[1], numbers));
            ok(sac_finite_look(&f, devices[d], NULL, t, 2, n, 3));
            ok(sac_tensor_download(t[1], (float[6]){0})); /* and so waits */
            assert_int_equal(*f.odd, n == 3);
            sac_tensor_unref(&t[1]);
            sac_finite_close(&f);
        }
}

static int times_said(const char *words)
{
    int count = 0;
    for (const char *at = said; (at = strstr(at, words)); at += strlen(words))
        count++;
    return count;
}

static void what_is_not_finite_is_said_once(void **state)
{
    struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 2, .shape = {1, 3}};
    sac_device *const      devices[] = {cpu, far};
    (void)state;
    for (int d = 0; d < 2; d++) {
        struct proto graph = {0}, kept = {0};
        sac_model   *m = NULL;
        said[0] = '\0';
        proto_input(&graph, "x", FLOAT, "1 3");
        proto_node(&graph, "Exp", "x", "y", NULL);
        proto_output(&graph, "y", FLOAT, "1 3");
        proto_model(&kept, &graph, 17);
        ok(sac_model_load_memory(devices[d], kept.bytes, kept.size, "exp", NULL, &m));
        for (int run = 0; run < 4; run++) {
            const float x[3] = {1, run > 1 ? 1000 : 2, 3};
            sac_tensor *in = NULL, *out = NULL;
            ok(sac_tensor_create(devices[d], &desc, "test", &in));
            ok(sac_tensor_upload(in, x));
            ok(sac_model_run(m, &in, &out));
            assert_int_equal(times_said("NaN or infinite"), run > 1);
            sac_tensor_unref(&in);
            sac_tensor_unref(&out);
        }
        assert_int_equal(times_said("--precision"), d == 1); /* the CPU has FP32 alone */
        sac_model_unref(&m);
        proto_free(&kept);
    }
}

/* Integers of what may be infinite (e^1000) or no number (the square root of -1000). */
static const struct hidden {
    const char *op, *from, *between; /* between: one more, or NULL */
    int         dtype;
    bool        said;
} hidden[] = {
    {"ArgMax", "Sqrt", NULL, INT64, true},    {"ArgMax", "Exp", NULL, INT64, false},
    {"Cast", "Sqrt", NULL, INT64, true},      {"Cast", "Exp", NULL, INT64, true},
    {"Greater", "Sqrt", NULL, BOOL, true},    {"Greater", "Exp", NULL, BOOL, false},
    {"ArgMax", "Sqrt", "Neg", INT64, true},   {"Cast", "Exp", "Relu", INT64, true},
    {"Cast", "Exp", "Identity", INT64, true}, {"IsInf", "Exp", NULL, BOOL, false},
};

static sac_model *load_hidden(sac_device *dev, const struct hidden *h)
{
    struct proto graph = {0}, kept = {0}, attrs = {0};
    sac_model   *m = NULL;
    const char  *from = h->between ? "between" : "e";
    char         inputs[32];
    proto_input(&graph, "x", FLOAT, "1 3");
    proto_node(&graph, h->from, "x", "e", NULL);
    if (h->between)
        proto_node(&graph, h->between, "e", "between", NULL);
    if (strcmp(h->op, "ArgMax") == 0)
        proto_attr_int(&attrs, "axis", 1);
    if (strcmp(h->op, "Cast") == 0)
        proto_attr_int(&attrs, "to", INT64);
    snprintf(inputs, sizeof inputs, strcmp(h->op, "Greater") == 0 ? "%s x" : "%s", from);
    proto_node(&graph, h->op, inputs, "y", attrs.size ? &attrs : NULL);
    proto_output(&graph, "y", h->dtype, strcmp(h->op, "ArgMax") == 0 ? "1 1" : "1 3");
    proto_model(&kept, &graph, 17);
    ok(sac_model_load_memory(dev, kept.bytes, kept.size, "hidden", NULL, &m));
    proto_free(&kept);
    return m;
}

static void what_integers_hide_is_said_too(void **state)
{
    struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 2, .shape = {1, 3}};
    sac_device *const      devices[] = {cpu, far};
    (void)state;
    for (size_t i = 0; i < 2 * SAC_COUNT(hidden); i++) {
        const struct hidden *h = &hidden[i / 2];
        sac_device          *dev = devices[i % 2];
        sac_model           *m = load_hidden(dev, h);
        const float          odd = strcmp(h->from, "Exp") == 0 ? 1000 : -1000;
        said[0] = '\0';
        for (int run = 0; run < 4; run++) {
            const float x[3] = {1, run > 1 ? odd : 2, 3};
            sac_tensor *in = NULL, *out = NULL;
            ok(sac_tensor_create(dev, &desc, "test", &in));
            ok(sac_tensor_upload(in, x));
            ok(sac_model_run(m, &in, &out));
            assert_int_equal(times_said("NaN or infinite"), h->said && run > 1);
            sac_tensor_unref(&in);
            sac_tensor_unref(&out);
        }
        sac_model_unref(&m);
    }
}

static void a_stack_runs_one_by_one(void **state)
{
    (void)state;
    struct sac_model_params params = sac_model_params_default();
    params.free_batch = 0;
    sac_model  *m = branches(false, &params);
    sac_tensor *x = numbers(far, 3), *one = numbers(far, 1), *y = NULL, *y1 = NULL;
    ok(sac_model_run(m, &x, &y));
    ok(sac_model_run(m, &one, &y1));
    float *all = fetched(y);
    compare("the first", y1, all, 8 * 36, 0);
    free(all);
    sac_tensor_unref(&x);
    sac_tensor_unref(&one);
    sac_tensor_unref(&y);
    sac_tensor_unref(&y1);
    sac_model_unref(&m);
}

/* Input and output as the kernels have them: no change of layout is left, and the numbers are the
 * same. */
static void tensors_may_lie_as_kernels_want(void **state)
{
    (void)state;
    const struct sac_tensor_desc port = {.dtype = SAC_F32, .rank = 4, .shape = {1, 8, 6, 6}};
    const struct sac_tensor_desc own = {.dtype = SAC_F16, .rank = 4, .shape = {1, 6, 6, 8}};
    const struct sac_operand     o = {
            .dtype = SAC_F32, .rank = 4, .dims = {1, 8, 6, 6}, .present = true};
    enum sac_layout layout = SAC_LAYOUT_PLAIN;
    uint16_t        turned[8 * 36];
    sac_model      *m = branches(false, NULL);
    sac_tensor     *x = numbers(far, 1), *t = NULL, *y[2] = {NULL};
    ok(sac_model_run(m, &x, &y[0]));
    float *plain = fetched(x), *want = fetched(y[0]);
    sac_layout_convert(&o, turned, SAC_LAYOUT_CHANNELS_LAST_HALF, plain, SAC_LAYOUT_PLAIN);
    ok(sac_model_take_native(m, &port, &layout));
    assert_int_equal(layout, SAC_LAYOUT_CHANNELS_LAST_HALF);
    ok(sac_tensor_create(far, &own, "test", &t));
    ok(sac_tensor_upload(t, turned));
    far_counts = (struct far_counts){0};
    ok(sac_model_run(m, &t, &y[1]));
    assert_int_equal(far_counts.relayouts, 1); /* between the Concat and Sin, which wants it plain
                                                */
    assert_int_equal(sac_tensor_describe(y[1])->dtype, SAC_F16);
    uint16_t *got = (uint16_t *)fetched(y[1]);
    for (int i = 0; i < 8 * 36; i++)
        assert_float_equal(sac_half_to_float(got[i]), want[i], 0);
    sac_tensor_unref(&y[1]);
    assert_int_equal(sac_model_run(m, &x, &y[1]), SAC_ERR_ARG);
    free(plain);
    free(want);
    free(got);
    sac_tensor_unref(&x);
    sac_tensor_unref(&t);
    sac_tensor_unref(&y[0]);
    sac_model_unref(&m);
}

/* NonZero's count is the data's: it runs in the tail, and so does what reads it. */
static void the_tail_runs_on_the_host(void **state)
{
    (void)state;
    struct proto graph = {0}, model = {0};
    sac_model   *m = NULL;
    sac_tensor  *x = numbers(far, 1), *y[2] = {NULL};
    proto_input(&graph, "x", FLOAT, "1 8 6 6");
    proto_node(&graph, "Relu", "x", "a", NULL);
    proto_node(&graph, "NonZero", "a", "n", NULL);
    proto_node(&graph, "Tanh", "a", "t", NULL);
    proto_output(&graph, "n", INT64, "4 ?");
    proto_output(&graph, "t", FLOAT, "1 8 6 6");
    proto_model(&model, &graph, 17);
    ok(sac_model_load_memory(far, model.bytes, model.size, "tail", NULL, &m));
    for (int run = 0; run < 3; run++) {
        unref_all((sac_tensor *[OUTPUTS_MAX]){y[0], y[1]});
        y[0] = y[1] = NULL;
        ok(sac_model_run(m, &x, y));
        const struct sac_tensor_desc *d = sac_tensor_describe(y[0]);
        assert_int_equal(d->dtype, SAC_I64);
        assert_int_equal(d->shape[0], 4);
        assert_ptr_equal(sac_tensor_device(y[0]), far);
        int64_t *at = malloc((size_t)sac_tensor_desc_bytes(d));
        ok(sac_tensor_download(y[0], at));
        for (int64_t i = 0; i < d->shape[1]; i++)
            assert_in_range(at[3 * d->shape[1] + i], 0, 5);
        assert_in_range(d->shape[1], 100, 180);
        free(at);
    }
    assert_non_null(strstr(said, "NonZero on the host"));
    sac_tensor_unref(&x);
    sac_tensor_unref(&y[0]);
    sac_tensor_unref(&y[1]);
    sac_model_unref(&m);
    proto_free(&model);
}

/* ---- ranges ---- */

static void steps_that_leave_the_range_stay_in_float32(void **state)
{
    (void)state;
    sac_model            *m = ratio_load(far, 30, true);
    struct sac_model_info info;
    sac_tensor           *x = ratio_input(far), *y = NULL;
    ok(sac_model_run(m, &x, &y));
    assert_false(ratio_is_right(y)); /* or this test says nothing */
    sac_tensor_unref(&y);
    sac_model_unref(&m);
    m = ratio_load(far, 30, false);
    ok(sac_model_run(m, &x, &y));
    assert_true(ratio_is_right(y));
    sac_model_inspect(m, &info);
    assert_int_equal(info.wide_step_count, 4); /* MatMul, MatMul, Add, Div: not Mul, not Tanh */
    assert_non_null(strstr(info.wide_steps[0], "MatMul"));
    assert_non_null(strstr(info.wide_steps[3], "Div"));
    assert_non_null(strstr(said, "4 of "));
    assert_non_null(strstr(said, "stay in float32"));
    sac_tensor_unref(&x);
    sac_tensor_unref(&y);
    sac_model_unref(&m);
}

/* x [4,2,3] times 1e6 -> a, of which an LSTM makes h alone: nobody asked for its first output. */
static void a_step_without_its_first_output_stays_in_float32(void **state)
{
    (void)state;
    static const float      w[60] = {1e-6f}, r[100] = {0.5f};
    const float             large = 1e6f;
    struct proto            graph = {0}, model = {0}, attrs = {0};
    struct sac_tensor_desc  desc = {.dtype = SAC_F32, .rank = 3, .shape = {4, 2, 3}};
    float                   in[24] = {1, -0.5f, 0.25f, 2};
    struct sac_model_params params = sac_model_params_default();
    struct sac_model_info   info;
    sac_model              *m = NULL;
    sac_tensor             *x = NULL, *h = NULL;
    params.precision = SAC_PRECISION_FP16;
    proto_attr_int(&attrs, "hidden_size", 5);
    proto_node(&graph, "Mul", "x c", "a", NULL);
    proto_node(&graph, "LSTM", "a w r", "- h", &attrs);
    proto_initializer(&graph, "c", FLOAT, "1", &large, sizeof large);
    proto_initializer(&graph, "w", FLOAT, "1 20 3", w, sizeof w);
    proto_initializer(&graph, "r", FLOAT, "1 20 5", r, sizeof r);
    proto_input(&graph, "x", FLOAT, "4 2 3");
    proto_output(&graph, "h", FLOAT, "1 2 5");
    proto_model(&model, &graph, 17);
    ok(sac_model_load_memory(far, model.bytes, model.size, "last", &params, &m));
    ok(sac_tensor_create(far, &desc, "test", &x));
    ok(sac_tensor_upload(x, in));
    ok(sac_model_run(m, &x, &h));
    sac_model_inspect(m, &info);
    assert_int_equal(info.wide_step_count, 3); /* so does the product of its input */
    assert_non_null(strstr(info.wide_steps[2], "FusedRecurrent"));
    sac_tensor_unref(&x);
    sac_tensor_unref(&h);
    sac_model_unref(&m);
    proto_free(&model);
}

/* x [1,8,256] times 1e-7 -> d, and 3e-7 by that -> y: float16 has a few numbers there. */
static sac_model *quotient(bool watched)
{
    static struct proto     model;
    struct proto            graph = {0};
    struct sac_model_params params = sac_model_params_default();
    const float             small = 1e-7f, above = 3e-7f;
    sac_model              *m = NULL;
    params.precision = SAC_PRECISION_FP16;
    proto_free(&model);
    proto_node(&graph, "Mul", "x c", "d", NULL);
    proto_node(&graph, "Div", "e d", "y", NULL);
    proto_initializer(&graph, "c", FLOAT, "1", &small, sizeof small);
    proto_initializer(&graph, "e", FLOAT, "1", &above, sizeof above);
    proto_input(&graph, "x", FLOAT, "1 8 256");
    proto_output(&graph, "y", FLOAT, "1 8 256");
    proto_model(&model, &graph, 17);
    setenv("SACCADE_WITHOUT", "chain", 1); /* whose numbers between are float32 anyway */
    ok(sac_model_load_memory(far, model.bytes, model.size, "quotient", &params, &m));
    m->watched = watched;
    unsetenv("SACCADE_WITHOUT");
    return m;
}

static double off_of_quotient(bool watched, sac_tensor *x)
{
    sac_model  *m = quotient(watched);
    sac_tensor *y = NULL;
    double      off = 0;
    ok(sac_model_run(m, &x, &y));
    float *in = fetched(x), *out = fetched(y);
    for (int i = 0; i < 8 * 256; i++)
        off = fmax(off, fabs((double)out[i] * (double)in[i] / 3 - 1));
    free(in);
    free(out);
    sac_tensor_unref(&y);
    sac_model_unref(&m);
    return off;
}

static void small_divisors_stay_in_float32(void **state)
{
    (void)state;
    sac_tensor *x = ratio_input(far);
    assert_true(off_of_quotient(true, x) > 0.1); /* or this test says nothing */
    assert_true(off_of_quotient(false, x) < 2e-3);
    sac_tensor_unref(&x);
}

static void count_halves(void *user, const struct sac_model_step *step)
{
    int *counts = user;
    counts[0] += step->operator_name[0] != '(' && step->output.dtype == SAC_F16;
    counts[1] += step->operator_name[0] != '(' && step->output.dtype == SAC_F32;
}

static void a_network_without_trouble_stays_in_float16(void **state)
{
    (void)state;
    int                   counts[2] = {0};
    struct sac_model_info info;
    sac_model            *m = ratio_load(far, 0.05f, false);
    sac_tensor           *x = ratio_input(far), *y = NULL;
    ok(sac_model_run(m, &x, &y));
    sac_model_inspect(m, &info);
    assert_int_equal(info.wide_step_count, 0);
    assert_null(info.wide_steps);
    assert_null(strstr(said, "stay in float32 in FP16, as"));
    sac_model_list_steps(m, count_halves, counts);
    assert_true(counts[0] > 4);
    assert_int_equal(counts[1], 0);
    sac_tensor_unref(&x);
    sac_tensor_unref(&y);
    sac_model_unref(&m);
}

static void the_cpu_has_fp32_alone(void **state)
{
    (void)state;
    struct sac_model_params params = sac_model_params_default();
    sac_model              *m = NULL;
    char                    why[512];
    params.precision = SAC_PRECISION_FP16;
    assert_int_equal(sac_model_load_memory(cpu, "x", 1, "net", &params, &m), SAC_ERR_UNSUPPORTED);
    sac_context_last_error(context(), why, sizeof why);
    assert_string_equal(why, "net: cpu computes in fp32; fp16 needs a GPU");
}

#define on_devices(test) cmocka_unit_test_setup_teardown(test, open_devices, close_devices)

int main(void)
{
    static struct fixture    fixtures[64];
    static struct CMUnitTest tests[64];
    int                      count = 0;
    glob_t                   found;
    setenv("SACCADE_CACHE", "", 1); /* a home of plans is no concern here */
    if (glob(MODELS_DIR "/*.onnx", 0, NULL, &found) != 0)
        return 1;
    for (size_t i = 0; i < found.gl_pathc; i++)
        for (int half = 0; half < 2; half++) {
            struct fixture *f = &fixtures[count];
            f->path = found.gl_pathv[i];
            f->precision = half ? SAC_PRECISION_FP16 : SAC_PRECISION_FP32;
            snprintf(f->name, sizeof f->name, "%s %s", strrchr(f->path, '/') + 1,
                     half ? "fp16" : "fp32");
            tests[count++] =
                (struct CMUnitTest){f->name, fixture_runs, open_devices, close_devices, f};
        }
    const struct CMUnitTest others[] = {
        on_devices(concat_is_placed_in_half),
        on_devices(weights_go_up_once_a_model),
        on_devices(a_run_can_be_queued),
        on_devices(host_work_is_said_and_counted),
        on_devices(strict_refuses_host_work),
        on_devices(failing_captures_are_said),
        on_devices(steps_are_timed_in_one_launch),
        on_devices(outputs_are_written_as_wanted),
        on_devices(graphs_go_by_addresses),
        on_devices(wrong_tensors_are_refused),
        on_devices(short_of_memory_is_a_sentence),
        on_devices(batches_need_no_page_locked_memory),
        on_devices(no_number_is_overlooked),
        on_devices(images_that_do_not_count_are_not_looked_at),
        on_devices(what_is_not_finite_is_said_once),
        on_devices(what_integers_hide_is_said_too),
        on_devices(a_stack_runs_one_by_one),
        on_devices(tensors_may_lie_as_kernels_want),
        on_devices(the_tail_runs_on_the_host),
        on_devices(steps_that_leave_the_range_stay_in_float32),
        on_devices(small_divisors_stay_in_float32),
        on_devices(a_step_without_its_first_output_stays_in_float32),
        on_devices(a_network_without_trouble_stays_in_float16),
        on_devices(the_cpu_has_fp32_alone),
    };
    for (size_t i = 0; i < SAC_COUNT(others); i++)
        tests[count++] = others[i];
    int failed = _cmocka_run_group_tests("engine/far", tests, (size_t)count, NULL, NULL);
    globfree(&found);
    return failed;
}
