/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "tests/test.h"

static sac_device *cpu(void)
{
    sac_device *dev = NULL;
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &dev));
    return dev;
}

/* Write every byte that the layout promises: the address sanitizer sees one too many. */
static void fill(const sac_frame *frame)
{
    struct sac_plane_layout planes[SAC_PLANES_MAX];
    int n = sac_frame_planes(frame->format, frame->width, frame->height, planes);
    for (int i = 0; i < n; i++) {
        assert_int_equal((uintptr_t)frame->plane[i] % 64, 0);
        for (int y = 0; y < planes[i].rows; y++)
            memset(frame->plane[i] + (size_t)y * frame->pitch_bytes[i], i + 1, planes[i].row_bytes);
    }
    for (int i = 0; i < n; i++) /* and no plane overlaps another */
        for (int y = 0; y < planes[i].rows; y++)
            for (size_t x = 0; x < planes[i].row_bytes; x++)
                assert_int_equal(frame->plane[i][(size_t)y * frame->pitch_bytes[i] + x], i + 1);
}

static void lays_out_every_format(void **state)
{
    (void)state;
    static const int sizes[][2] = {{1, 1}, {2, 2}, {63, 5}, {641, 33}, {1, 300}};
    sac_device      *dev = cpu();
    for (int format = SAC_PIXEL_NV12; format < SAC_PIXEL_FORMAT_COUNT; format++)
        for (size_t i = 0; i < SAC_COUNT(sizes); i++) {
            sac_frame *frame = NULL;
            sac_frame  desc = {.format = format,
                               .width = sizes[i][0],
                               .height = sizes[i][1],
                               .pts_us = 40000,
                               .number = 1,
                               .stream_id = 7};
            assert_sac_ok(sac_frame_create(dev, &desc, &frame));
            assert_int_equal(frame->pts_us, 40000);
            assert_int_equal(frame->stream_id, 7);
            assert_ptr_equal(frame->device, dev);
            fill(frame);
            sac_frame_unref(&frame);
        }
    sac_device_unref(&dev);
}

static void refuses_bad_sizes_and_formats(void **state)
{
    (void)state;
    static const sac_frame bad[] = {
        {.format = SAC_PIXEL_NV12, .width = 0, .height = 4},
        {.format = SAC_PIXEL_NV12, .width = 4, .height = -4},
        {.format = SAC_PIXEL_NV12, .width = 32769, .height = 4},
        {.format = SAC_PIXEL_NONE, .width = 4, .height = 4},
        {.format = SAC_PIXEL_FORMAT_COUNT, .width = 4, .height = 4},
    };
    sac_device *dev = cpu();
    sac_frame  *frame = NULL;
    for (size_t i = 0; i < SAC_COUNT(bad); i++)
        assert_sac_error(sac_frame_create(dev, &bad[i], &frame), SAC_ERR_ARG);
    assert_null(frame);
    sac_device_unref(&dev);
}

static void is_writable_alone(void **state)
{
    (void)state;
    sac_device *dev = cpu();
    sac_frame  *frame = NULL, desc = {.format = SAC_PIXEL_GRAY8, .width = 4, .height = 4};
    assert_sac_ok(sac_frame_create(dev, &desc, &frame));
    assert_true(sac_frame_is_writable(frame));
    sac_frame *other = sac_frame_ref(frame);
    assert_false(sac_frame_is_writable(frame));
    sac_frame_unref(&other);
    assert_true(sac_frame_is_writable(frame));
    sac_frame_unref(&frame);
    sac_frame_unref(&frame);
    sac_device_unref(&dev);
}

static void count_release(void *user)
{
    ++*(int *)user;
}

static void wraps_planes_of_others(void **state)
{
    (void)state;
    sac_device *dev = cpu();
    sac_frame  *frame = NULL;
    uint8_t     pixels[3 * 10 * 2];
    int         released = 0;
    sac_frame   desc = {.format = SAC_PIXEL_RGB24,
                        .width = 10,
                        .height = 2,
                        .plane = {pixels},
                        .pitch_bytes = {29}};
    assert_sac_error(sac_frame_wrap(dev, &desc, NULL, NULL, &frame), SAC_ERR_ARG);
    desc.pitch_bytes[0] = 30;
    assert_sac_ok(sac_frame_wrap(dev, &desc, count_release, &released, &frame));
    assert_ptr_equal(frame->plane[0], pixels);
    assert_false(sac_frame_is_writable(frame));
    sac_device_unref(&dev); /* the frame holds it */
    assert_string_equal(sac_device_name(frame->device), "cpu");
    sac_frame_unref(&frame);
    assert_int_equal(released, 1);
}

/* 4 x 2 pixels, "abcd" over "efgh", and what each orientation makes of them. */
static void lying_planes_are_turned_upright(void **state)
{
    (void)state;
    static const char *const want[SAC_ORIENTATION_COUNT] = {
        [SAC_UPRIGHT] = "abcd/efgh",         [SAC_TURN_90] = "ea/fb/gc/hd",
        [SAC_TURN_180] = "hgfe/dcba",        [SAC_TURN_270] = "dh/cg/bf/ae",
        [SAC_MIRROR] = "dcba/hgfe",          [SAC_MIRROR_TURN_90] = "hd/gc/fb/ea",
        [SAC_MIRROR_TURN_180] = "efgh/abcd", [SAC_MIRROR_TURN_270] = "ae/bf/cg/dh",
    };
    uint8_t     pixels[16] = "abcd....efgh....";
    sac_device *dev = cpu();
    for (int o = 1; o < SAC_ORIENTATION_COUNT; o++) {
        sac_frame stored = {.format = SAC_PIXEL_GRAY8,
                            .width = 4,
                            .height = 2,
                            .plane = {pixels},
                            .pitch_bytes = {8}};
        sac_frame desc = sac_frame_as_turned(&stored, (enum sac_orientation)o), *frame = NULL;
        char      got[16] = "";
        size_t    at = 0;
        int       released = 0;
        assert_sac_ok(sac_frame_wrap(dev, &desc, count_release, &released, &frame));
        assert_int_equal(frame->orientation, SAC_UPRIGHT);
        assert_int_equal(released, 1);
        assert_true(sac_frame_is_writable(frame));
        for (int y = 0; y < frame->height; y++) {
            at +=
                (size_t)snprintf(got + at, sizeof got - at, "%s%.*s", y ? "/" : "", frame->width,
                                 (const char *)frame->plane[0] + (size_t)y * frame->pitch_bytes[0]);
        }
        assert_string_equal(got, want[o]);
        sac_frame_unref(&frame);
    }
    sac_device_unref(&dev);
}

/* A part of a picture that lies on its side, turned upright, is the part of the upright picture. */
static void parts_lie_as_the_whole_does(void **state)
{
    (void)state;
    enum { WIDTH = 24, HEIGHT = 16 };
    static const struct {
        int x, y, width, height;
    } areas[] = {{0, 0, 12, 16}, {12, 0, 12, 16}, {0, 8, 24, 8}, {4, 2, 7, 9}, {0, 0, 24, 16}};
    sac_device *dev = cpu();
    for (int format = SAC_PIXEL_NONE + 1; format < SAC_PIXEL_FORMAT_COUNT; format++)
        for (int o = 0; o < SAC_ORIENTATION_COUNT; o++) {
            const bool swaps = sac_orientation_swaps_sides((enum sac_orientation)o);
            sac_frame  desc = {.format = (enum sac_pixel_format)format,
                               .width = swaps ? HEIGHT : WIDTH,
                               .height = swaps ? WIDTH : HEIGHT};
            sac_frame *stored = NULL, *upright = NULL;
            assert_sac_ok(sac_frame_create(dev, &desc, &stored));
            for (int i = 0; i < SAC_PLANES_MAX && stored->plane[i]; i++)
                for (size_t k = 0; k < stored->pitch_bytes[i] * (size_t)(desc.height / (i ? 2 : 1));
                     k++)
                    stored->plane[i][k] = (uint8_t)(k * 37 + k / 64 * 11 + (size_t)i);
            sac_frame turned = *stored;
            turned.width = WIDTH;
            turned.height = HEIGHT;
            turned.orientation = (enum sac_orientation)o;
            desc.width = WIDTH;
            desc.height = HEIGHT;
            assert_sac_ok(sac_frame_create(dev, &desc, &upright));
            sac_frame_turn(&turned, upright);
            for (size_t a = 0; a < sizeof areas / sizeof *areas; a++) {
                sac_frame part = sac_frame_part(&turned, areas[a].x, areas[a].y, areas[a].width,
                                                areas[a].height);
                const sac_frame want = sac_frame_part(upright, areas[a].x, areas[a].y,
                                                      areas[a].width, areas[a].height);
                sac_frame      *got = NULL;
                desc.width = areas[a].width;
                desc.height = areas[a].height;
                assert_sac_ok(sac_frame_create(dev, &desc, &got));
                sac_frame_turn(&part, got);
                struct sac_plane_layout planes[SAC_PLANES_MAX];
                const int n = sac_frame_planes(desc.format, desc.width, desc.height, planes);
                for (int i = 0; i < n; i++)
                    for (int y = 0; y < planes[i].rows; y++)
                        if (memcmp(got->plane[i] + (size_t)y * got->pitch_bytes[i],
                                   want.plane[i] + (size_t)y * want.pitch_bytes[i],
                                   planes[i].row_bytes) != 0)
                            fail_msg("%s %s, area %zu: plane %d, row %d",
                                     sac_pixel_format_name(desc.format),
                                     sac_orientation_name(turned.orientation), a, i, y);
                sac_frame_unref(&got);
            }
            sac_frame_unref(&stored);
            sac_frame_unref(&upright);
        }
    sac_device_unref(&dev);
}

static void turning_them_is_counted_and_refused(void **state)
{
    (void)state;
    static uint8_t    pixels[2][64 * 32];
    sac_device       *dev = cpu();
    struct sac_ledger ledger;
    sac_frame         desc = {.format = SAC_PIXEL_NV12,
                              .width = 32,
                              .height = 64,
                              .plane = {pixels[0], pixels[1]},
                              .pitch_bytes = {64, 64},
                              .orientation = SAC_TURN_90};
    sac_frame        *frame = NULL;
    assert_sac_ok(sac_frame_wrap(dev, &desc, NULL, NULL, &frame));
    sac_device_ledger(dev, &ledger);
    assert_int_equal(ledger.reason[SAC_COPY_FRAME_CONVERT].calls, 1);
    assert_int_equal(ledger.reason[SAC_COPY_FRAME_CONVERT].bytes, 64 * 32 * 3 / 2);
    sac_frame_unref(&frame);
    desc.orientation = SAC_ORIENTATION_COUNT;
    assert_sac_error(sac_frame_wrap(dev, &desc, NULL, NULL, &frame), SAC_ERR_ARG);
    desc.orientation = SAC_TURN_90;
    desc.height = 65; /* stored rows of 65 */
    assert_sac_error(sac_frame_wrap(dev, &desc, NULL, NULL, &frame), SAC_ERR_ARG);
    desc.height = 64;
    sac_device_unref(&dev);
    struct sac_device_params params = sac_device_params_default();
    params.zero_copy_strict = 1;
    assert_sac_ok(sac_device_open(test_context(), "cpu", &params, &dev));
    assert_sac_error(sac_frame_wrap(dev, &desc, NULL, NULL, &frame), SAC_ERR_COPY);
    sac_device_unref(&dev);
}

/* ---- planes as tensors ---- */

static void a_plane_is_a_tensor_without_a_copy(void **state)
{
    (void)state;
    static const struct {
        enum sac_pixel_format format;
        int                   plane;
        enum sac_dtype        dtype;
        int64_t               rows, columns;
    } cases[] = {
        {SAC_PIXEL_NV12, 0, SAC_U8, 33, 128},  {SAC_PIXEL_NV12, 1, SAC_U8, 17, 128},
        {SAC_PIXEL_P010, 0, SAC_U16, 33, 96},  {SAC_PIXEL_P010, 1, SAC_U16, 17, 96},
        {SAC_PIXEL_I420, 2, SAC_U8, 17, 64},   {SAC_PIXEL_RGB24, 0, SAC_U8, 33, 256},
        {SAC_PIXEL_GRAY8, 0, SAC_U8, 33, 128}, {SAC_PIXEL_BGR24, 0, SAC_U8, 33, 256},
        {SAC_PIXEL_RGBA, 0, SAC_U8, 33, 384},  {SAC_PIXEL_BGRA, 0, SAC_U8, 33, 384},
    };
    sac_device *dev = cpu();
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        sac_frame  *frame = NULL, desc = {.format = cases[i].format, .width = 81, .height = 33};
        sac_tensor *t = NULL;
        assert_sac_ok(sac_frame_create(dev, &desc, &frame));
        fill(frame);
        assert_sac_ok(sac_frame_plane_tensor(frame, cases[i].plane, &t));
        const struct sac_tensor_desc *d = sac_tensor_describe(t);
        assert_int_equal(d->dtype, cases[i].dtype);
        assert_int_equal(d->rank, 2);
        assert_int_equal(d->shape[0], cases[i].rows);
        assert_int_equal(d->shape[1], cases[i].columns);
        assert_ptr_equal(sac_tensor_data(t), frame->plane[cases[i].plane]);
        assert_false(sac_frame_is_writable(frame)); /* it is shared now */
        const uint8_t *first = frame->plane[cases[i].plane];
        sac_frame_unref(&frame);
        assert_int_equal(*first, cases[i].plane + 1); /* the tensor holds it */
        sac_tensor_unref(&t);
    }
    struct sac_pool_stats stats;
    sac_device_pool_stats(dev, &stats);
    assert_int_equal(stats.bytes_live, 0);
    sac_device_unref(&dev);
}

static void other_planes_are_refused(void **state)
{
    (void)state;
    static uint8_t pixels[4096];
    sac_device    *dev = cpu();
    sac_frame     *frame = NULL, desc = {.format = SAC_PIXEL_P010, .width = 8, .height = 8};
    sac_tensor    *t = NULL;
    char           why[512];
    for (int i = 0; i < 2; i++) {
        desc.plane[i] = pixels + i * 2048;
        desc.pitch_bytes[i] = 17;
    }
    assert_sac_ok(sac_frame_wrap(dev, &desc, NULL, NULL, &frame));
    assert_sac_error(sac_frame_plane_tensor(frame, 2, &t), SAC_ERR_ARG);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_string_equal(why, "plane 2 of a p010 frame; have 0 to 1");
    assert_sac_error(sac_frame_plane_tensor(frame, -1, &t), SAC_ERR_ARG);
    assert_sac_error(sac_frame_plane_tensor(frame, 0, &t), SAC_ERR_ARG);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_string_equal(why, "plane 0 of a p010 frame: a pitch of 17 bytes");
    assert_null(t);
    sac_frame_unref(&frame);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lays_out_every_format),
        cmocka_unit_test(refuses_bad_sizes_and_formats),
        cmocka_unit_test(is_writable_alone),
        cmocka_unit_test(wraps_planes_of_others),
        cmocka_unit_test(lying_planes_are_turned_upright),
        cmocka_unit_test(parts_lie_as_the_whole_does),
        cmocka_unit_test(turning_them_is_counted_and_refused),
        cmocka_unit_test(a_plane_is_a_tensor_without_a_copy),
        cmocka_unit_test(other_planes_are_refused),
    };
    return cmocka_run_group_tests_name("device/frame", tests, NULL, NULL);
}
