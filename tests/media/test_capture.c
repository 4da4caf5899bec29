/* SPDX-License-Identifier: Apache-2.0 */
/* FFmpeg's own test picture stands in for a webcam. */
#include <stdio.h>
#include <string.h>

#include "media/capture.h"
#include "tests/media/reading.h"
#include "tests/test.h"

static bool is_said(const char *words)
{
    char why[512];
    sac_context_last_error(test_context(), why, sizeof why);
    return strstr(why, words) != NULL;
}

static void devices_are_told_from_files(void **state)
{
    (void)state;
    assert_true(sac_capture_is("/dev/video0"));
    assert_true(sac_capture_is("v4l2:/dev/video0"));
    assert_true(sac_capture_is("lavfi:testsrc"));
    assert_false(sac_capture_is("video0"));
    assert_false(sac_capture_is("/dev/null"));
    assert_false(sac_capture_is("v4l2.mp4"));
    assert_false(sac_capture_is("rtsp://host/v4l2:0"));
    const char *odd = scratch("v4l2:odd.mp4"); /* a path before it is a file's */
    assert_false(sac_capture_is(odd));
}

static void a_device_gives_frames(void **state)
{
    (void)state;
    if (sac_capture_missing())
        skip();
    struct reading r = read_all("lavfi:testsrc=size=320x240:rate=10:duration=2", NULL);
    assert_int_equal(r.end, SAC_EOS);
    assert_int_equal(r.frames, 20);
    assert_int_equal(r.info.live, 1);
    assert_int_equal(r.info.width, 320);
    assert_float_equal(r.info.fps, 10, 1e-6);
    struct sac_source_params params = sac_source_params_default();
    params.start_us = 500000;
    params.duration_us = 1000000;
    params.every = 2;
    r = read_all("lavfi:testsrc=size=320x240:rate=10:duration=2", &params);
    assert_int_equal(r.end, SAC_EOS);
    assert_int_equal(r.frames, 5);
    assert_int_equal(r.pts_us[0], 500000);
}

static void what_is_missing_is_said(void **state)
{
    (void)state;
    const char *const urls[] = {"/dev/video9876", "v4l2:/dev/video9876"};
    for (size_t i = 0; i < SAC_COUNT(urls); i++) {
        struct reading r = read_all(urls[i], NULL);
        assert_true(r.end == SAC_ERR_IO || (sac_capture_missing() && r.end == SAC_ERR_UNSUPPORTED));
        assert_true(is_said(urls[i]));
        assert_true(is_said("No such file") || is_said("libavdevice"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_told_from_files),
        cmocka_unit_test(a_device_gives_frames),
        cmocka_unit_test(what_is_missing_is_said),
    };
    return cmocka_run_group_tests_name("media/capture", tests, open_device, close_device);
}
