/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers that an owner uses over and over: his again when others gave them up, never while they
 * hold them. */
#include "device/spares.h"
#include "tests/vision/frames.h"
#include "tests/test.h"

static void the_same_few_go_round(void **state)
{
    (void)state;
    enum { MOST = 4 };
    sac_device        *dev = test_device();
    struct sac_spares  s = {.dev = dev, .owner = "test"};
    struct sac_buffer *out[MOST] = {NULL}, *more = NULL;
    assert_sac_ok(sac_spares_reserve(&s, 1000, MOST));
    const uint64_t before = test_requests(dev);
    for (int i = 0; i < 1000; i++) {
        int k = test_between(0, MOST - 1);
        sac_buffer_unref(&out[k]);
        assert_sac_ok(sac_spares_take(&s, 1000, &out[k]));
        for (int j = 0; j < MOST; j++)
            assert_true(j == k || !out[j] || sac_buffer_data(out[j]) != sac_buffer_data(out[k]));
    }
    assert_int_equal(test_requests(dev), before);
    for (int k = 0; k < MOST; k++)
        if (!out[k])
            assert_sac_ok(sac_spares_take(&s, 1000, &out[k]));
    assert_sac_ok(sac_spares_take(&s, 1000, &more)); /* all are out: one more */
    assert_int_equal(s.count, MOST + 1);
    sac_buffer_unref(&out[0]);
    assert_sac_ok(sac_spares_take(&s, 3000, &out[0])); /* another size: those of the first are given
                                                          up */
    assert_int_equal(s.count, 1);
    assert_true(sac_buffer_bytes(out[0]) >= 3000);
    sac_spares_finish(&s); /* what is out stays */
    memset(sac_buffer_data(more), 1, 1000);
    sac_buffer_unref(&more);
    for (int k = 0; k < MOST; k++)
        sac_buffer_unref(&out[k]);
    sac_device_unref(&dev);
}

/* A frame in such memory is like any other, and gives it back. */
static void frames_lie_in_them(void **state)
{
    (void)state;
    sac_device        *dev = test_device();
    struct sac_spares  s = {.dev = dev, .owner = "test"};
    struct sac_buffer *buf = NULL;
    sac_frame          desc = {.format = SAC_PIXEL_NV12, .width = 66, .height = 34}, *frame = NULL;
    sac_frame          layout = desc;
    const size_t       bytes = sac_frame_lay_out(&layout);
    for (int i = 0; i < 3; i++) {
        assert_sac_ok(sac_spares_take(&s, bytes, &buf));
        assert_sac_ok(sac_frame_create_in(dev, &desc, buf, &frame));
        assert_true(sac_frame_is_writable(frame));
        assert_ptr_equal(frame->plane[0], sac_buffer_data(buf));
        test_fill(frame, 1, 2, 3, 4);
        sac_frame_unref(&frame);
    }
    assert_int_equal(s.count, 1);
    desc.width = 0;
    assert_sac_ok(sac_spares_take(&s, bytes, &buf));
    assert_sac_error(sac_frame_create_in(dev, &desc, buf, &frame), SAC_ERR_ARG);
    assert_true(sac_buffer_is_free(s.buf[0], false)); /* given back after a fault too */
    sac_spares_finish(&s);
    sac_device_unref(&dev);
}

/* Without memory for all of them there are fewer; without any, a sentence. */
static void little_memory_is_no_fault(void **state)
{
    (void)state;
    struct sac_device_params params = sac_device_params_default();
    sac_device              *dev = NULL;
    params.memory_limit_bytes = 5 << 20;
    assert_sac_ok(sac_device_open(test_context(), "cpu", &params, &dev));
    struct sac_spares s = {.dev = dev, .owner = "test"};
    assert_sac_ok(sac_spares_reserve(&s, 1 << 20, 12));
    assert_in_range(s.count, 1, 5);
    assert_sac_error(sac_spares_reserve(&s, 6 << 20, 2), SAC_ERR_LIMIT);
    sac_spares_finish(&s);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_few_go_round),
        cmocka_unit_test(frames_lie_in_them),
        cmocka_unit_test(little_memory_is_no_fault),
    };
    return cmocka_run_group_tests_name("device/spares", tests, NULL, NULL);
}
