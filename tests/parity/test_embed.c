/* SPDX-License-Identifier: Apache-2.0 */
/* Rows to length 1: the CPU's against sums in double, the CUDA device's equal to them. */
#include "vision/embed.h"
#include "tests/gpu.h"
#include "tests/parity/bytes.h"
#include "tests/vision/frames.h"

enum { ROWS_MAX = 70, DIM_MAX = 1100 };

static float    rows_in[ROWS_MAX * DIM_MAX];
static uint16_t halves_in[ROWS_MAX * DIM_MAX];

static void fill(int n, int dim)
{
    for (int i = 0; i < n * dim; i++) {
        rows_in[i] = (float)test_between(-1000, 1000) / 300;
        halves_in[i] = (uint16_t)test_between(0, 0xffff);
        if ((halves_in[i] & 0x7c00) == 0x7c00 && test_between(0, 50))
            halves_in[i] &= 0x83ff; /* few that are no numbers */
    }
    if (test_between(0, 1))
        memset(rows_in, 0, (size_t)dim * sizeof *rows_in); /* a row of nothing */
}

static float *back(sac_device *dev, struct sac_buffer **buf, size_t n)
{
    float *host = sac_alloc(n * sizeof *host);
    assert_non_null(host);
    assert_sac_ok(sac_device_copy(dev, NULL, host, sac_buffer_data(*buf), n * sizeof *host,
                                  SAC_COPY_DEVICE_TO_HOST, SAC_COPY_TENSOR_USER, "test"));
    sac_buffer_unref(buf);
    return host;
}

static float *normalised(sac_device *dev, enum sac_dtype dtype, int n, int dim)
{
    const size_t       count = (size_t)n * (size_t)dim;
    struct sac_buffer *out = NULL,
                      *in = test_put(dev, dtype == SAC_F16 ? (const void *)halves_in : rows_in,
                                     count * sac_dtype_bytes(dtype));
    assert_sac_ok(sac_buffer_create(dev, count * sizeof(float), "test", &out));
    assert_sac_ok(
        sac_embed_normalise(dev, NULL, sac_buffer_data(in), dtype, n, dim, sac_buffer_data(out)));
    sac_buffer_unref(&in);
    return back(dev, &out, count);
}

static void rows_have_length_one(void **state)
{
    (void)state;
    sac_device *cpu = test_device();
    for (int round = 0; round < 40; round++) {
        int n = test_between(1, 8), dim = test_between(1, 600);
        fill(n, dim);
        float *rows = normalised(cpu, SAC_F32, n, dim);
        for (int i = 0; i < n; i++) {
            double in = 0, out = 0, both = 0;
            for (int k = 0; k < dim; k++) {
                double x = rows_in[i * dim + k], y = rows[i * dim + k];
                in += x * x;
                out += y * y;
                both += x * y;
            }
            assert_float_equal(out, in > 0, 1e-5);
            assert_float_equal(both, sqrt(in), 1e-4 * sqrt(in));
        }
        sac_free(rows);
    }
    sac_device_unref(&cpu);
}

static void the_gpu_gives_the_same(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL), *cpu = test_device();
    for (int round = 0; round < gpu_rounds(60); round++) {
        int            n = test_between(1, ROWS_MAX), dim = test_between(1, DIM_MAX);
        enum sac_dtype dtype = round % 2 ? SAC_F16 : SAC_F32;
        fill(n, dim);
        float *want = normalised(cpu, dtype, n, dim), *got = normalised(gpu, dtype, n, dim);
        for (int i = 0; i < n * dim; i++)
            if (memcmp(&want[i], &got[i], sizeof *want) != 0)
                fail_msg("%s, %d rows of %d: number %d is %.9g, the CPU has %.9g",
                         sac_dtype_name(dtype), n, dim, i, (double)got[i], (double)want[i]);
        sac_free(want);
        sac_free(got);
    }
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
}

static void nothing_of_nothing(void **state)
{
    (void)state;
    sac_device *cpu = test_device();
    assert_sac_ok(sac_embed_normalise(cpu, NULL, NULL, SAC_F32, 0, 4, NULL));
    assert_sac_error(sac_embed_normalise(cpu, NULL, NULL, SAC_F32, 1, 0, NULL), SAC_ERR_ARG);
    assert_sac_error(sac_embed_normalise(cpu, NULL, NULL, SAC_I8, 1, 1, NULL), SAC_ERR_UNSUPPORTED);
    sac_device_unref(&cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_length_one),
        cmocka_unit_test(nothing_of_nothing),
        cmocka_unit_test(the_gpu_gives_the_same),
    };
    return cmocka_run_group_tests_name("parity/embed", tests, NULL, NULL);
}
