/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/vision/frames.h"

static void a_flat_picture_stays_as_it_is(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    for (int round = 0; round < 120; round++) {
        const enum sac_pixel_format format = test_any_format();
        const int                   w = test_between(1, 90), h = test_between(1, 90);
        sac_frame *f = test_frame(dev, format, w, h), *out = test_frame(dev, format, w, h);
        f->range = out->range = (enum sac_colour_range)(round & 1);
        const int luma = test_between(20, 230), chroma = test_between(20, 230);
        test_fill(f, luma, luma, chroma, chroma);
        test_fill(out, 0, 255, 0, 255);
        assert_sac_ok(sac_frame_blur_on(NULL, f, test_between(0, 70), out));
        for (int c = 0; c < (format == SAC_PIXEL_GRAY8 ? 1 : 3); c++)
            for (int y = 0; y < h; y++)
                for (int x = 0; x < w; x++)
                    if (fabs(test_sample(out, x, y, c) - test_sample(f, x, y, c)) > 0.3)
                        fail_msg("%s %dx%d at %d,%d,%d: %f became %f",
                                 sac_pixel_format_name(format), w, h, x, y, c,
                                 test_sample(f, x, y, c), test_sample(out, x, y, c));
        sac_frame_unref(&f);
        sac_frame_unref(&out);
    }
    sac_device_unref(&dev);
}

static double mean_of(const sac_frame *f)
{
    double sum = 0;
    for (int y = 0; y < f->height; y++)
        for (int x = 0; x < f->width; x++)
            sum += test_sample(f, x, y, 0);
    return sum / f->width / f->height;
}

/* A square of white in the middle of 256 x 256. */
static sac_frame *square(sac_device *dev, int side)
{
    sac_frame *f = test_frame(dev, SAC_PIXEL_I420, 256, 256);
    test_fill(f, 16, 16, 128, 128);
    const float            a = (float)(256 - side) / 2, b = a + (float)side;
    const struct sac_shape s = {
        .kind = SAC_SHAPE_FILL, .rect = {a, a, b, b}, .colour = {255, 255, 255}, .alpha = 1};
    assert_sac_ok(sac_frame_draw(f, &s, 1));
    return f;
}

static void the_mean_is_kept(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    sac_frame  *f = square(dev, 80), *out = test_frame(dev, SAC_PIXEL_I420, 256, 256);
    for (int radius = 0; radius <= 40; radius += 5) {
        assert_sac_ok(sac_frame_blur_on(NULL, f, radius, out));
        /* Of an edge of 221. A pixel of the smallest size that hangs over the picture's side weighs
         * as much as a whole one. */
        if (fabs(mean_of(out) - mean_of(f)) > (radius % 10 ? 1 : 0.5))
            fail_msg("radius %d: the mean of %f became %f", radius, mean_of(f), mean_of(out));
    }
    sac_frame_unref(&f);
    sac_frame_unref(&out);
    sac_device_unref(&dev);
}

static double middle_of(sac_device *dev, const sac_frame *f, int radius)
{
    sac_frame *out = test_frame(dev, SAC_PIXEL_I420, 256, 256);
    assert_sac_ok(sac_frame_blur_on(NULL, f, radius, out));
    const double middle = test_sample(out, 128, 128, 0);
    sac_frame_unref(&out);
    return middle;
}

/* Not by steps of two: each of these is another picture. */
static void any_radius_is_one(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    sac_frame  *f = square(dev, 40);
    double      before = 256;
    for (int radius = 16; radius <= 40; radius += 8) {
        const double middle = middle_of(dev, f, radius);
        if (middle > before - 5)
            fail_msg("radius %d: the middle of %f became %f", radius, before, middle);
        before = middle;
    }
    sac_frame_unref(&f);
    sac_device_unref(&dev);
}

/* Wider with the radius, the same to all four sides, and without steps: the grid of the smallest
 * picture, 16 pixels wide here, would be one. */
static void a_blot_is_round_and_smooth(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    sac_frame  *f = square(dev, 64), *out = test_frame(dev, SAC_PIXEL_I420, 256, 256);
    assert_sac_ok(sac_frame_blur_on(NULL, f, 16, out));
    for (int i = 0; i < 128; i++) {
        const double left = test_sample(out, i, 128, 0);
        assert_true(fabs(left - test_sample(out, 255 - i, 128, 0)) <= 2);
        assert_true(fabs(left - test_sample(out, 128, i, 0)) <= 2);
        if (i >= 2) /* the slope is 219 / 32 at most, and changes slowly */
            assert_true(fabs(left - 2 * test_sample(out, i - 1, 128, 0) +
                             test_sample(out, i - 2, 128, 0)) <= 2.5);
    }
    assert_true(test_sample(out, 96, 128, 0) > 80 && test_sample(out, 96, 128, 0) < 170);
    assert_true(test_sample(out, 86, 128, 0) > 20 && test_sample(out, 70, 128, 0) < 18);
    sac_frame_unref(&f);
    sac_frame_unref(&out);
    sac_device_unref(&dev);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    sac_frame  *f = square(dev, 64), *small = test_frame(dev, SAC_PIXEL_I420, 255, 256);
    assert_sac_error(sac_frame_blur_on(NULL, f, 4, small), SAC_ERR_ARG);
    sac_frame *out = test_frame(dev, SAC_PIXEL_I420, 256, 256), *again = sac_frame_ref(out);
    assert_sac_error(sac_frame_blur_on(NULL, f, 4, out), SAC_ERR_ARG);
    sac_frame_unref(&again);
    assert_sac_error(sac_frame_blur_on(NULL, f, -1, out), SAC_ERR_ARG);
    assert_sac_ok(sac_frame_blur_on(NULL, f, 1 << 30, out));
    sac_frame_unref(&f);
    sac_frame_unref(&small);
    sac_frame_unref(&out);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flat_picture_stays_as_it_is),
        cmocka_unit_test(the_mean_is_kept),
        cmocka_unit_test(any_radius_is_one),
        cmocka_unit_test(a_blot_is_round_and_smooth),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests_name("vision/blur", tests, NULL, NULL);
}
