/* SPDX-License-Identifier: Apache-2.0 */
#include <libswscale/swscale.h>

#include "tests/vision/frames.h"

static const enum sac_pixel_format formats[] = {SAC_PIXEL_NV12,  SAC_PIXEL_P010,  SAC_PIXEL_I420,
                                                SAC_PIXEL_RGB24, SAC_PIXEL_GRAY8, SAC_PIXEL_BGR24,
                                                SAC_PIXEL_RGBA,  SAC_PIXEL_BGRA};

static bool has_chroma(enum sac_pixel_format f)
{
    return f == SAC_PIXEL_NV12 || f == SAC_PIXEL_P010 || f == SAC_PIXEL_I420;
}

static void same_colours_come_back_as_they_were(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    for (int round = 0; round < 60; round++) {
        int        w = test_between(1, 70), h = test_between(1, 40);
        sac_frame *a = test_frame(dev, SAC_PIXEL_NV12, w, h),
                  *i420 = test_frame(dev, SAC_PIXEL_I420, w, h);
        sac_frame *p010 = test_frame(dev, SAC_PIXEL_P010, w, h),
                  *back = test_frame(dev, SAC_PIXEL_NV12, w, h);
        test_fill(a, 0, 255, 0, 255);
        assert_sac_ok(sac_frame_convert(a, SAC_FILTER_BILINEAR, i420));
        assert_sac_ok(sac_frame_convert(i420, SAC_FILTER_AREA, p010));
        assert_sac_ok(sac_frame_convert(p010, SAC_FILTER_BILINEAR, back));
        for (int y = 0; y < h; y++)
            for (int x = 0; x < w; x++)
                for (int c = 0; c < 3; c++)
                    if (test_sample(a, x, y, c) != test_sample(back, x, y, c))
                        fail_msg("%dx%d at %d,%d,%d: %f became %f", w, h, x, y, c,
                                 test_sample(a, x, y, c), test_sample(back, x, y, c));
        sac_frame_unref(&a);
        sac_frame_unref(&i420);
        sac_frame_unref(&p010);
        sac_frame_unref(&back);
    }
    sac_device_unref(&dev);
}

/* A flat colour must survive any pair of formats, sizes, matrices and ranges. */
static void flat_colours_survive(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    for (int round = 0; round < 400; round++) {
        sac_frame *rgb = test_frame(dev, SAC_PIXEL_RGB24, test_between(1, 40), test_between(1, 40));
        sac_frame *via =
            test_frame(dev, formats[round % 3], test_between(1, 60), test_between(1, 60));
        sac_frame *other =
            test_frame(dev, formats[round / 3 % 3], test_between(1, 60), test_between(1, 60));
        sac_frame *back =
            test_frame(dev, SAC_PIXEL_RGB24, test_between(1, 40), test_between(1, 40));
        uint8_t colour[3] = {(uint8_t)test_between(0, 255), (uint8_t)test_between(0, 255),
                             (uint8_t)test_between(0, 255)};
        via->matrix = (enum sac_colour_matrix)test_between(0, 2);
        via->range = (enum sac_colour_range)test_between(0, 1);
        other->matrix = (enum sac_colour_matrix)test_between(0, 2);
        other->range = (enum sac_colour_range)test_between(0, 1);
        for (int y = 0; y < rgb->height; y++)
            for (int x = 0; x < rgb->width; x++)
                memcpy(rgb->plane[0] + (size_t)y * rgb->pitch_bytes[0] + 3 * x, colour, 3);
        assert_sac_ok(sac_frame_convert(rgb, SAC_FILTER_BILINEAR, via));
        assert_sac_ok(sac_frame_convert(via, (enum sac_filter)(round % 2), other));
        assert_sac_ok(sac_frame_convert(other, SAC_FILTER_AREA, back));
        for (int c = 0; c < 3; c++)
            if (fabs(test_sample(back, back->width - 1, back->height / 2, c) - colour[c]) > 4)
                fail_msg("%s %d %d to %s %d %d: channel %d of %d,%d,%d became %f",
                         sac_pixel_format_name(via->format), via->matrix, via->range,
                         sac_pixel_format_name(other->format), other->matrix, other->range, c,
                         colour[0], colour[1], colour[2],
                         test_sample(back, back->width - 1, back->height / 2, c));
        sac_frame_unref(&rgb);
        sac_frame_unref(&via);
        sac_frame_unref(&other);
        sac_frame_unref(&back);
    }
    sac_device_unref(&dev);
}

static void grey_is_full_range_luma(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    for (size_t i = 0; i < SAC_COUNT(formats); i++) {
        sac_frame *src = test_frame(dev, formats[i], 31, 17),
                  *grey = test_frame(dev, SAC_PIXEL_GRAY8, 31, 17);
        src->matrix = grey->matrix = SAC_MATRIX_BT709;
        test_fill(src, 60, 200, 118, 138);
        assert_sac_ok(sac_frame_convert(src, SAC_FILTER_BILINEAR, grey));
        for (int y = 0; y < 17; y++)
            for (int x = 0; x < 31; x++) {
                double rgb[3];
                test_rgb(src, x, y, rgb);
                double luma = 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
                assert_float_equal(test_sample(grey, x, y, 0), luma, 0.51);
            }
        sac_frame_unref(&src);
        sac_frame_unref(&grey);
    }
    sac_device_unref(&dev);
}

static enum AVPixelFormat av_format(enum sac_pixel_format f)
{
    static const enum AVPixelFormat list[SAC_PIXEL_FORMAT_COUNT] = {
        AV_PIX_FMT_NONE,  AV_PIX_FMT_NV12,  AV_PIX_FMT_P010LE, AV_PIX_FMT_YUV420P, AV_PIX_FMT_RGB24,
        AV_PIX_FMT_GRAY8, AV_PIX_FMT_BGR24, AV_PIX_FMT_RGBA,   AV_PIX_FMT_BGRA};
    return list[f];
}

static void swscale_frame(const sac_frame *src, const sac_frame *dst)
{
    static const int   standards[] = {SWS_CS_ITU601, SWS_CS_ITU709, SWS_CS_BT2020};
    struct SwsContext *sws =
        sws_getContext(src->width, src->height, av_format(src->format), dst->width, dst->height,
                       av_format(dst->format), SWS_POINT | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT,
                       NULL, NULL, NULL);
    assert_non_null(sws);
    sws_setColorspaceDetails(sws, sws_getCoefficients(standards[src->matrix]),
                             src->range == SAC_RANGE_FULL,
                             sws_getCoefficients(standards[dst->matrix]),
                             dst->range == SAC_RANGE_FULL, 0, 1 << 16, 1 << 16);
    const uint8_t *in[4] = {src->plane[0], src->plane[1], src->plane[2]};
    uint8_t       *out[4] = {dst->plane[0], dst->plane[1], dst->plane[2]};
    int            in_pitch[4] = {(int)src->pitch_bytes[0], (int)src->pitch_bytes[1],
                                  (int)src->pitch_bytes[2]};
    int            out_pitch[4] = {(int)dst->pitch_bytes[0], (int)dst->pitch_bytes[1],
                                   (int)dst->pitch_bytes[2]};
    sws_scale(sws, in, in_pitch, 0, src->height, out, out_pitch);
    sws_freeContext(sws);
}

/* Every matrix and range to RGB, against FFmpeg's conversion without interpolation of chroma. Its
 * tables are integers: 2 levels. */
static void agrees_with_swscale(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    for (int format = SAC_PIXEL_NV12; format <= SAC_PIXEL_I420; format++)
        for (int matrix = 0; matrix < 3; matrix++)
            for (int range = 0; range < 2; range++) {
                sac_frame *src = test_frame(dev, (enum sac_pixel_format)format, 64, 32);
                sac_frame *ours = test_frame(dev, SAC_PIXEL_RGB24, 64, 32),
                          *theirs = test_frame(dev, SAC_PIXEL_RGB24, 64, 32);
                src->matrix = (enum sac_colour_matrix)matrix;
                src->range = (enum sac_colour_range)range;
                test_fill(src, 20, 230, 60, 190);
                assert_sac_ok(sac_frame_convert(src, SAC_FILTER_BILINEAR, ours));
                swscale_frame(src, theirs);
                for (int y = 0; y < 32; y++)
                    for (int x = 0; x < 64; x++)
                        for (int c = 0; c < 3; c++)
                            if (fabs(test_sample(ours, x, y, c) - test_sample(theirs, x, y, c)) > 2)
                                fail_msg("%s matrix %d range %d at %d,%d,%d: %f, swscale %f",
                                         sac_pixel_format_name(src->format), matrix, range, x, y, c,
                                         test_sample(ours, x, y, c), test_sample(theirs, x, y, c));
                sac_frame_unref(&src);
                sac_frame_unref(&ours);
                sac_frame_unref(&theirs);
            }
    sac_device_unref(&dev);
}

/* Any pair of formats and sizes against the definition: RGB of the source, resized, encoded. */
static void resizes_within_the_frame_range(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    for (int round = 0; round < 200; round++) {
        sac_frame *src =
            test_frame(dev, test_any_format(), test_between(1, 50), test_between(1, 50));
        sac_frame *dst =
            test_frame(dev, test_any_format(), test_between(1, 90), test_between(1, 90));
        src->range = (enum sac_colour_range)test_between(0, 1);
        dst->range = (enum sac_colour_range)test_between(0, 1);
        int tone = test_between(40, 200);
        test_fill(src, tone, tone, 128, 128); /* grey stays one grey, at the edges too */
        assert_sac_ok(sac_frame_convert(src, (enum sac_filter)(round % 2), dst));
        double want[3], got[3];
        test_rgb(src, 0, 0, want);
        for (int y = 0; y < dst->height; y += 3)
            for (int x = 0; x < dst->width; x += 3) {
                test_rgb(dst, x, y, got);
                for (int c = 0; c < 3; c++)
                    if (has_chroma(src->format) && fabs(want[c] - got[c]) > 2.5)
                        fail_msg("%s to %s at %d,%d: %f, expected %f",
                                 sac_pixel_format_name(src->format),
                                 sac_pixel_format_name(dst->format), x, y, got[c], want[c]);
            }
        sac_frame_unref(&src);
        sac_frame_unref(&dst);
    }
    sac_device_unref(&dev);
}

static void refuses_a_shared_destination(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    sac_frame  *a = test_frame(dev, SAC_PIXEL_NV12, 4, 4),
              *b = test_frame(dev, SAC_PIXEL_NV12, 4, 4);
    sac_frame *again = sac_frame_ref(b);
    test_fill(a, 0, 255, 0, 255);
    assert_sac_error(sac_frame_convert(a, SAC_FILTER_BILINEAR, b), SAC_ERR_ARG);
    sac_frame_unref(&again);
    struct sac_ledger ledger;
    assert_sac_ok(sac_frame_convert(a, SAC_FILTER_BILINEAR, b));
    sac_device_ledger(dev, &ledger);
    assert_int_equal(ledger.reason[SAC_COPY_FRAME_CONVERT].bytes, 4 * 4 * 3 / 2);
    sac_frame_unref(&a);
    sac_frame_unref(&b);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_colours_come_back_as_they_were),
        cmocka_unit_test(flat_colours_survive),
        cmocka_unit_test(grey_is_full_range_luma),
        cmocka_unit_test(agrees_with_swscale),
        cmocka_unit_test(resizes_within_the_frame_range),
        cmocka_unit_test(refuses_a_shared_destination),
    };
    return cmocka_run_group_tests_name("vision/convert", tests, NULL, NULL);
}
