/* SPDX-License-Identifier: Apache-2.0 */
/* On a GPU: a plan that was built for a range of sizes runs what is between without measuring, with
 * the CPU's answers; what is outside is measured. */
#include "tests/engine/plan_ranges.h"
#include "tests/gpu.h"

static sac_device *gpu;

static int begin(void **state)
{
    (void)state;
    return ranges_begin() ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    ranges_end(&gpu);
    return 0;
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
