/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "device/cpu/cpu.h"
#include "tests/test.h"

static sac_device *cpu(void)
{
    sac_device *dev = NULL;
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &dev));
    return dev;
}

static void describes_dtypes(void **state)
{
    (void)state;
    for (int i = SAC_F32; i < SAC_DTYPE_COUNT; i++) {
        assert_true(sac_dtype_bytes(i) >= 1 && sac_dtype_bytes(i) <= 8);
        assert_string_not_equal(sac_dtype_name(i), "none");
    }
    assert_int_equal(sac_dtype_bytes(SAC_DTYPE_NONE), 0);
    assert_int_equal(sac_dtype_bytes(SAC_DTYPE_COUNT), 0);
    assert_string_equal(sac_dtype_name(SAC_DTYPE_COUNT), "unknown");
}

static void counts_elements_without_overflow(void **state)
{
    (void)state;
    struct sac_tensor_desc d = {.dtype = SAC_F32, .rank = 0};
    assert_int_equal(sac_tensor_desc_elements(&d), 1);
    assert_int_equal(sac_tensor_desc_bytes(&d), 4);
    d = (struct sac_tensor_desc){.dtype = SAC_F64, .rank = 3, .shape = {2, 3, 5}};
    assert_int_equal(sac_tensor_desc_bytes(&d), 240);
    d.shape[1] = 0;
    assert_int_equal(sac_tensor_desc_elements(&d), 0);
    d.shape[1] = -1;
    assert_int_equal(sac_tensor_desc_elements(&d), -1);
    d = (struct sac_tensor_desc){.dtype = SAC_F64, .rank = 2, .shape = {INT64_MAX, 2}};
    assert_int_equal(sac_tensor_desc_elements(&d), -1);
    d.rank = 1;
    assert_true(sac_tensor_desc_elements(&d) == INT64_MAX);
    assert_int_equal(sac_tensor_desc_bytes(&d), -1);
    d.rank = SAC_RANK_MAX + 1;
    assert_int_equal(sac_tensor_desc_elements(&d), -1);
}

static void refuses_bad_shapes(void **state)
{
    (void)state;
    sac_device                         *dev = cpu();
    sac_tensor                         *t = NULL;
    static const struct sac_tensor_desc bad[] = {
        {.dtype = SAC_F32, .rank = 1, .shape = {-1}},
        {.dtype = SAC_F32, .rank = SAC_RANK_MAX + 1},
        {.dtype = SAC_F32, .rank = 2, .shape = {INT64_MAX, INT64_MAX}},
        {.dtype = SAC_DTYPE_NONE, .rank = 1, .shape = {1}},
    };
    for (size_t i = 0; i < SAC_COUNT(bad); i++)
        assert_sac_error(sac_tensor_create(dev, &bad[i], "bad", &t), SAC_ERR_ARG);
    assert_null(t);
    sac_device_unref(&dev);
}

static void views_share_the_buffer(void **state)
{
    (void)state;
    sac_device            *dev = cpu();
    sac_tensor            *base = NULL, *view = NULL, *none = NULL;
    struct sac_tensor_desc d = {.dtype = SAC_F32, .rank = 2, .shape = {4, 3}};
    struct sac_tensor_desc row = {.dtype = SAC_F32, .rank = 1, .shape = {3}};
    struct sac_pool_stats  stats;
    assert_sac_ok(sac_tensor_create(dev, &d, "base", &base));
    ((float *)sac_tensor_data(base))[7] = 42;
    assert_sac_ok(sac_tensor_view(base, 2 * 3 * 4, &row, &view));
    assert_sac_error(sac_tensor_view(base, 40, &row, &none), SAC_ERR_ARG);
    assert_sac_error(sac_tensor_view(base, SIZE_MAX, &row, &none), SAC_ERR_ARG);
    assert_null(none);
    sac_tensor_unref(&base);
    assert_true(((float *)sac_tensor_data(view))[1] == 42.0f);
    assert_int_equal(sac_tensor_describe(view)->rank, 1);
    assert_ptr_equal(sac_tensor_device(view), dev);
    sac_device_pool_stats(dev, &stats);
    assert_int_equal(stats.returns, 0);
    sac_tensor_unref(&view);
    sac_device_pool_stats(dev, &stats);
    assert_int_equal(stats.returns, 1);
    sac_device_unref(&dev);
}

static void count_release(void *user)
{
    ++*(int *)user;
}

static void wraps_memory_of_others(void **state)
{
    (void)state;
    sac_device            *dev = cpu();
    sac_tensor            *t = NULL;
    float                  x[6] = {0};
    int                    released = 0;
    struct sac_tensor_desc d = {.dtype = SAC_F32, .rank = 2, .shape = {2, 3}};
    assert_sac_error(sac_tensor_wrap(dev, &d, NULL, NULL, NULL, &t), SAC_ERR_ARG);
    assert_sac_ok(sac_tensor_wrap(dev, &d, x, count_release, &released, &t));
    assert_ptr_equal(sac_tensor_data(t), x);
    sac_tensor *other = sac_tensor_ref(t);
    sac_tensor_unref(&t);
    assert_int_equal(released, 0);
    sac_tensor_unref(&other);
    assert_int_equal(released, 1);
    sac_device_unref(&dev);
}

/* ---- what is expected of one ---- */

#define assert_fits(t, ...) \
    assert_sac_ok(          \
        sac_tensor_check(test_context(), "input", t, &(struct sac_tensor_spec){__VA_ARGS__}))
#define assert_told(t, sentence, ...)                                                             \
    do {                                                                                          \
        char why_[512];                                                                           \
        assert_sac_error(                                                                         \
            sac_tensor_check(test_context(), "input", t, &(struct sac_tensor_spec){__VA_ARGS__}), \
            SAC_ERR_ARG);                                                                         \
        sac_context_last_error(test_context(), why_, sizeof why_);                                \
        assert_string_equal(why_, sentence);                                                      \
    } while (0)

static void says_what_a_tensor_is_and_what_was_wanted(void **state)
{
    (void)state;
    sac_device              *dev = cpu(), *other = cpu();
    struct sac_tensor_desc   desc = {.dtype = SAC_F32, .rank = 3, .shape = {1, 3, 4}};
    sac_tensor              *t = NULL, *odd = NULL;
    static _Alignas(64) char bytes[256];
    assert_sac_ok(sac_tensor_create(dev, &desc, "test", &t));
    assert_fits(t, .dtype = SAC_DTYPE_NONE);
    assert_fits(t, .device = dev, .dtype = SAC_F32, .rank = 3, .shape = {-1, 3, 4},
                .align_bytes = 16);
    assert_told(NULL, "input: no tensor; wanted float32", .dtype = SAC_F32);
    assert_told(NULL, "input: no tensor; wanted a tensor on cpu", .device = dev);
    assert_told(t, "input: float32 [1,3,4] on cpu; wanted float16 [?,3,4]", .dtype = SAC_F16,
                .rank = 3, .shape = {-1, 3, 4});
    assert_told(t, "input: float32 [1,3,4] on cpu; wanted [?,3,5]", .rank = 3, .shape = {-1, 3, 5});
    assert_told(t, "input: float32 [1,3,4] on cpu; wanted [1,3] on cpu", .device = dev, .rank = 2,
                .shape = {1, 3});
    assert_told(t, "input: float32 [1,3,4] on cpu; wanted float32 on cpu", .dtype = SAC_F32,
                .device = other);
    assert_told(t, "input: a tensor of rank 9 cannot be wanted", .rank = SAC_RANK_MAX + 1);
    assert_sac_ok(sac_tensor_wrap(dev, &desc, bytes + 4, NULL, NULL, &odd));
    assert_fits(odd, .align_bytes = 4);
    assert_sac_error(
        sac_tensor_check(test_context(), "input", odd,
                         &(struct sac_tensor_spec){.dtype = SAC_F32, .align_bytes = 16}),
        SAC_ERR_ARG);
    char why[512];
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "on cpu at address 0x"));
    assert_non_null(strstr(why, "wanted float32 at a multiple of 16 bytes"));
    sac_tensor_unref(&odd);
    sac_tensor_unref(&t);
    sac_device_unref(&other);
    sac_device_unref(&dev);
}

/* ---- what a policy makes of one ---- */

static sac_result admit(sac_tensor *t, const struct sac_tensor_spec *spec,
                        const struct sac_tensor_policy *policy, sac_tensor **out)
{
    *out = NULL;
    return sac_tensor_admit(test_context(), "input", t, spec, policy, out);
}

static void admits_the_types_of_a_policy(void **state)
{
    (void)state;
    sac_device                    *dev = cpu();
    const struct sac_tensor_desc   desc = {SAC_F16, 2, {3, 4}};
    const struct sac_tensor_spec   spec = {.dtype = SAC_F32, .rank = 2, .shape = {-1, 4}};
    const struct sac_tensor_policy halves = {.dtypes = 1u << SAC_F16 | 1u << SAC_BF16};
    sac_tensor                    *t = NULL, *out = NULL;
    char                           why[512];
    assert_sac_ok(sac_tensor_create(dev, &desc, "test", &t));
    assert_sac_error(admit(t, &spec, NULL, &out), SAC_ERR_ARG);
    assert_sac_error(admit(t, &spec, &(struct sac_tensor_policy){.copy = 1}, &out), SAC_ERR_ARG);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_string_equal(why, "input: float16 [3,4] on cpu; wanted float32 [?,4]");
    assert_sac_ok(admit(t, &spec, &halves, &out));
    assert_ptr_equal(out, t);
    sac_tensor_unref(&out);
    const struct sac_tensor_spec other = {.dtype = SAC_F32, .rank = 2, .shape = {-1, 5}};
    assert_sac_error(admit(t, &other, &halves, &out), SAC_ERR_ARG);
    assert_sac_error(admit(NULL, &spec, &halves, &out), SAC_ERR_ARG);
    assert_null(out);
    sac_tensor_unref(&t);
    sac_device_unref(&dev);
}

/* Between two devices, and to an address as a spec wants it, with the ledger's reasons. */
static void copies_what_a_policy_lets_it(void **state)
{
    (void)state;
    struct sac_device_ops           ops = sac_device_cpu;
    sac_device                     *dev = cpu(), *apart = NULL;
    const struct sac_tensor_desc    desc = {SAC_F32, 1, {4}};
    const struct sac_tensor_policy  copy = {.copy = 1};
    static const _Alignas(64) float numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    sac_tensor                     *t = NULL, *out = NULL, *back = NULL;
    struct sac_ledger               ledger;
    ops.host_memory = false;
    ops.name = "apart";
    assert_sac_ok(sac_device_open_ops(test_context(), &ops, 0, NULL, &apart));
    assert_sac_ok(sac_tensor_wrap(dev, &desc, (void *)(numbers + 1), NULL, NULL, &t));
    const struct sac_tensor_spec aligned = {.device = dev, .align_bytes = 16},
                                 there = {.device = apart, .dtype = SAC_F32},
                                 here = {.device = dev},
                                 far_apart = {.device = apart, .align_bytes = 4096};
    assert_sac_error(admit(t, &aligned, NULL, &out), SAC_ERR_ARG);
    assert_sac_ok(admit(t, &aligned, &copy, &out));
    assert_ptr_not_equal(out, t);
    assert_memory_equal(sac_tensor_data(out), numbers + 1, 16);
    sac_tensor_unref(&out);
    sac_device_ledger(dev, &ledger);
    assert_int_equal(ledger.reason[SAC_COPY_TENSOR_LAYOUT].bytes, 16);
    assert_sac_ok(admit(t, &there, &copy, &out));
    assert_ptr_equal(sac_tensor_device(out), apart);
    assert_sac_ok(admit(out, &here, &copy, &back));
    assert_memory_equal(sac_tensor_data(back), numbers + 1, 16);
    sac_tensor_unref(&back);
    sac_tensor_unref(&out);
    sac_device_ledger(apart, &ledger);
    assert_int_equal(ledger.reason[SAC_COPY_TENSOR_USER].bytes, 32);
    assert_sac_error(admit(t, &far_apart, &copy, &out), SAC_ERR_ARG);
    atomic_store(&apart->strict, 1);
    assert_sac_error(admit(t, &there, &copy, &out), SAC_ERR_COPY);
    assert_null(out);
    sac_tensor_unref(&t);
    sac_device_unref(&apart);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(describes_dtypes),
        cmocka_unit_test(counts_elements_without_overflow),
        cmocka_unit_test(refuses_bad_shapes),
        cmocka_unit_test(views_share_the_buffer),
        cmocka_unit_test(wraps_memory_of_others),
        cmocka_unit_test(says_what_a_tensor_is_and_what_was_wanted),
        cmocka_unit_test(admits_the_types_of_a_policy),
        cmocka_unit_test(copies_what_a_policy_lets_it),
    };
    return cmocka_run_group_tests_name("device/tensor", tests, NULL, NULL);
}
