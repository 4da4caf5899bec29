/* SPDX-License-Identifier: Apache-2.0 */
/* On a GPU: a plan that was built for a range of sizes runs what is between without measuring, with
 * the CPU's answers; what is outside is measured. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/difference.h"
#include "engine/model/model.h"
#include "tests/engine/open_size.h"
#include "tests/gpu.h"

enum { SIDE_MOST = 300, BATCH_MOST = 4 };

static sac_context *ctx;
static sac_device  *gpu, *cpu;
static char         said[1 << 16], folder[64], model_path[128], out[128];

static void keep(void *user, enum sac_log_level level, const char *message)
{
    (void)user;
    if (level <= SAC_LOG_INFO && strlen(said) + strlen(message) + 2 < sizeof said)
        strcat(strcat(said, message), "\n");
}

static void ok(sac_result res)
{
    char why[1024];
    sac_context_last_error(ctx, why, sizeof why);
    if (res != SAC_OK)
        fail_msg("%s: %s", sac_result_name(res), why);
}

static int begin(void **state)
{
    struct sac_context_params params = sac_context_params_default();
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/saccade-ranges-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(model_path, sizeof model_path, "%s/net.onnx", folder);
    snprintf(out, sizeof out, "%s/net.plan", folder);
    open_size_write(model_path);
    setenv("SACCADE_CACHE", "", 1);
    params.log_fn = keep;
    return sac_context_create(&params, &ctx) == SAC_OK &&
                   sac_device_open(ctx, "cpu", NULL, &cpu) == SAC_OK
               ? 0
               : -1;
}

static int end(void **state)
{
    (void)state;
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
    sac_context_destroy(&ctx);
    unlink(model_path);
    unlink(out);
    rmdir(folder);
    return 0;
}

static sac_tensor *answer_of(sac_device *dev, sac_model *m, int64_t batch, int64_t width,
                             int64_t height)
{
    static float           numbers[BATCH_MOST * 3 * SIDE_MOST * SIDE_MOST];
    struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 4, .shape = {batch, 3, height, width}};
    sac_tensor            *x = NULL, *y = NULL;
    for (size_t i = 0; i < SAC_COUNT(numbers); i++)
        numbers[i] = (float)(i * 7919 % 1009) / 1009;
    ok(sac_tensor_create(dev, &desc, "test", &x));
    ok(sac_tensor_upload(x, numbers));
    ok(sac_model_run(m, &x, &y));
    sac_tensor_unref(&x);
    return y;
}

/* Several times, so that it is also captured and launched. */
static void check(sac_model *m, sac_model *reference, int64_t batch, int64_t width, int64_t height)
{
    sac_tensor                   *want = answer_of(cpu, reference, batch, width, height);
    const struct sac_tensor_desc *desc = sac_tensor_describe(want);
    float                        *numbers = malloc((size_t)sac_tensor_desc_bytes(desc));
    for (int i = 0; i < 3; i++) {
        sac_tensor *got = answer_of(gpu, m, batch, width, height);
        assert_memory_equal(sac_tensor_describe(got), desc, sizeof *desc);
        ok(sac_tensor_download(got, numbers));
        const double off = sac_difference(desc, numbers, sac_tensor_data(want));
        if (!(off <= sac_difference_limit((int)sac_model_precision(m))))
            fail_msg("%s, %dx%d, batch %d: off by %g", sac_precision_name(sac_model_precision(m)),
                     (int)width, (int)height, (int)batch, off);
        sac_tensor_unref(&got);
    }
    free(numbers);
    sac_tensor_unref(&want);
}

static void check_range(enum sac_precision precision)
{
    static const int between[][3] = {{1, 96, 96}, {3, 128, 160}, {2, 200, 68}, {4, 252, 256}};
    struct sac_build_params params = sac_build_params_default();
    sac_model              *m = NULL, *reference = NULL;
    params.model.precision = precision;
    params.batch_max = 4;
    params.width_min = params.height_min = 64;
    params.width = params.height = 128;
    params.width_max = params.height_max = 256;
    ok(sac_model_build(gpu, model_path, &params, out, NULL, NULL));
    ok(sac_model_load(gpu, out, NULL, &m));
    ok(sac_model_load(cpu, model_path, NULL, &reference));
    said[0] = '\0';
    for (size_t i = 0; i < SAC_COUNT(between); i++) {
        const int64_t begun = sac_time_ns();
        check(m, reference, between[i][0], between[i][1], between[i][2]);
        print_message("%s: batch %d of %dx%d, between what is planned: %.3f s\n",
                      sac_precision_name(precision), between[i][0], between[i][1], between[i][2],
                      (double)(sac_time_ns() - begun) / 1e9);
    }
    if (strstr(said, "trying kernels") || !strstr(said, "with the kernels of float32["))
        fail_msg("%s", said);
    check(m, reference, 1, 264, 264);
    if (!strstr(said, "trying kernels for float32[1,3,264,264]"))
        fail_msg("%s", said);
    sac_model_unref(&m);
    sac_model_unref(&reference);
}

static void sizes_between_are_not_measured(void **state)
{
    (void)state;
    sac_device *there = gpu_open(NULL); /* or it is skipped */
    sac_device_unref(&there);
    ok(sac_device_open(ctx, "cuda", NULL, &gpu));
    check_range(SAC_PRECISION_FP16);
    check_range(SAC_PRECISION_TF32);
    check_range(SAC_PRECISION_FP32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes_between_are_not_measured)};
    return cmocka_run_group_tests(tests, begin, end);
}
