/* SPDX-License-Identifier: Apache-2.0 */
/* R, G and B in any order, with alpha and without, in memory as other libraries have it. */
#include "vision/camera.h"
#include "vision/fit.h"
#include "tests/vision/frames.h"

static const enum sac_pixel_format others[] = {SAC_PIXEL_BGR24, SAC_PIXEL_RGBA, SAC_PIXEL_BGRA};

static sac_frame *random_rgb(sac_device *dev)
{
    sac_frame *f = test_frame(dev, SAC_PIXEL_RGB24, test_between(1, 150), test_between(1, 60));
    test_fill(f, 0, 255, 0, 255);
    return f;
}

static uint8_t *pixel_of(const sac_frame *f, int x, int y)
{
    return f->plane[0] + (size_t)y * f->pitch_bytes[0] + (size_t)(x * test_rgb_bytes(f->format));
}

/* The same picture in another order; alpha is anything. */
static sac_frame *reordered(sac_device *dev, const sac_frame *rgb, enum sac_pixel_format format)
{
    sac_frame *f = test_frame(dev, format, rgb->width, rgb->height);
    const bool bgr = format == SAC_PIXEL_BGR24 || format == SAC_PIXEL_BGRA;
    test_fill(f, 0, 255, 0, 255);
    for (int y = 0; y < rgb->height; y++)
        for (int x = 0; x < rgb->width; x++)
            for (int c = 0; c < 3; c++)
                pixel_of(f, x, y)[bgr ? 2 - c : c] = pixel_of(rgb, x, y)[c];
    return f;
}

static void assert_same_picture(const sac_frame *rgb, const sac_frame *f)
{
    for (int y = 0; y < rgb->height; y++)
        for (int x = 0; x < rgb->width; x++)
            for (int c = 0; c < 3; c++)
                if (test_sample(rgb, x, y, c) != test_sample(f, x, y, c))
                    fail_msg("%s at %d,%d,%d", sac_pixel_format_name(f->format), x, y, c);
}

static sac_tensor *preprocessed(sac_device *dev, const struct sac_preprocess *pre,
                                const sac_frame *f, struct sac_rect crop)
{
    struct sac_tensor_desc    desc = sac_preprocess_desc(pre, 1);
    struct sac_preprocess_job job = {f, crop};
    sac_tensor               *t = NULL;
    assert_sac_ok(sac_tensor_create(dev, &desc, "test", &t));
    assert_sac_ok(sac_preprocess_run(dev, pre, &job, 1, t));
    return t;
}

static void assert_same_tensor(const struct sac_preprocess *pre, sac_tensor *a, sac_tensor *b)
{
    const size_t bytes = (size_t)pre->width * (size_t)pre->height * 3 * sac_dtype_bytes(pre->dtype);
    assert_memory_equal(sac_tensor_data(a), sac_tensor_data(b), bytes);
    sac_tensor_unref(&a);
    sac_tensor_unref(&b);
}

static void networks_see_the_same_numbers(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    for (int round = 0; round < 120; round++) {
        struct sac_preprocess pre = test_random_preprocess(90, 40);
        sac_frame            *rgb = random_rgb(dev);
        struct sac_rect       crop = test_random_crop(rgb);
        for (size_t i = 0; i < SAC_COUNT(others); i++) {
            sac_frame *f = reordered(dev, rgb, others[i]);
            assert_same_tensor(&pre, preprocessed(dev, &pre, rgb, crop),
                               preprocessed(dev, &pre, f, crop));
            sac_frame_unref(&f);
        }
        sac_frame_unref(&rgb);
    }
    sac_device_unref(&dev);
}

static sac_frame *converted(sac_device *dev, const sac_frame *src, const sac_frame *like)
{
    sac_frame *f = test_frame(dev, like->format, like->width, like->height);
    f->matrix = like->matrix;
    f->range = like->range;
    assert_sac_ok(sac_frame_convert(src, SAC_FILTER_AREA, f));
    return f;
}

static void assert_same_planes(const sac_frame *a, const sac_frame *b)
{
    struct sac_plane_layout plane[SAC_PLANES_MAX];
    int                     n = sac_frame_planes(a->format, a->width, a->height, plane);
    for (int p = 0; p < n; p++)
        for (int y = 0; y < plane[p].rows; y++)
            assert_memory_equal(a->plane[p] + (size_t)y * a->pitch_bytes[p],
                                b->plane[p] + (size_t)y * b->pitch_bytes[p], plane[p].row_bytes);
}

static void they_convert_alike(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    for (int round = 0; round < 120; round++) {
        sac_frame *rgb = random_rgb(dev), *f = reordered(dev, rgb, others[round % 3]);
        sac_frame  like = {.format = test_any_format(),
                           .width = round % 2 ? rgb->width : test_between(1, 80),
                           .height = round % 2 ? rgb->height : test_between(1, 50),
                           .matrix = (enum sac_colour_matrix)test_between(0, 2)};
        sac_frame *a = converted(dev, rgb, &like), *b = converted(dev, f, &like);
        if (like.format != f->format || like.width != f->width || like.height != f->height)
            assert_same_planes(a, b);
        else /* a copy, with its alpha */
            assert_same_planes(f, b);
        sac_frame_unref(&a);
        sac_frame_unref(&b);
        sac_frame_unref(&rgb);
        sac_frame_unref(&f);
    }
    sac_device_unref(&dev);
}

/* Back and forth, and through their own memory: what is in between differs in nothing but alpha. */
static void alpha_is_kept_by_copies_and_whole_after_conversions(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    sac_frame  *rgb = random_rgb(dev);
    for (size_t i = 1; i < SAC_COUNT(others); i++) {
        sac_frame *f = reordered(dev, rgb, others[i]),
                  *copy = test_frame(dev, f->format, f->width, f->height);
        sac_frame *made = converted(dev, rgb, f);
        assert_sac_ok(sac_frame_copy(f, copy));
        assert_same_planes(f, copy);
        assert_same_picture(rgb, made);
        for (int y = 0; y < rgb->height; y++)
            for (int x = 0; x < rgb->width; x++)
                assert_int_equal(pixel_of(made, x, y)[3], 255);
        sac_frame_unref(&f);
        sac_frame_unref(&copy);
        sac_frame_unref(&made);
    }
    sac_frame_unref(&rgb);
    sac_device_unref(&dev);
}

static void drawing_leaves_alpha_alone(void **state)
{
    (void)state;
    sac_device            *dev = test_device();
    const struct sac_shape shapes[] = {
        {.kind = SAC_SHAPE_FILL, .rect = {2, 3, 30, 20}, .colour = {200, 60, 30}, .alpha = 0.7f},
        {.kind = SAC_SHAPE_BOX,
         .rect = {-4, 1, 60, 40},
         .colour = {10, 250, 90},
         .alpha = 1,
         .thickness = 3},
        {.kind = SAC_SHAPE_TEXT,
         .rect = {5, 5, 0, 0},
         .colour = {0, 0, 255},
         .alpha = 1,
         .thickness = 16,
         .text = "id 7"}};
    for (int round = 0; round < 30; round++) {
        sac_frame *rgb = random_rgb(dev), *f = reordered(dev, rgb, others[round % 3]);
        sac_frame *before = test_frame(dev, f->format, f->width, f->height);
        assert_sac_ok(sac_frame_copy(f, before));
        assert_sac_ok(sac_frame_draw(rgb, shapes, SAC_COUNT(shapes)));
        assert_sac_ok(sac_frame_draw(f, shapes, SAC_COUNT(shapes)));
        assert_same_picture(rgb, f);
        for (int y = 0; y < rgb->height && test_rgb_bytes(f->format) == 4; y++)
            for (int x = 0; x < rgb->width; x++)
                assert_int_equal(pixel_of(f, x, y)[3], pixel_of(before, x, y)[3]);
        sac_frame_unref(&rgb);
        sac_frame_unref(&f);
        sac_frame_unref(&before);
    }
    sac_device_unref(&dev);
}

static void the_camera_sees_the_same_brightness(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    sac_frame  *rgb = random_rgb(dev);
    for (size_t i = 0; i < SAC_COUNT(others); i++) {
        sac_frame *f = reordered(dev, rgb, others[i]);
        for (int x = 0; x < rgb->width; x++)
            assert_int_equal(sac_camera_luma(rgb->plane[0], rgb->format, x),
                             sac_camera_luma(f->plane[0], f->format, x));
        sac_frame_unref(&f);
    }
    sac_frame_unref(&rgb);
    sac_device_unref(&dev);
}

/* As cv::Mat has it: rows longer than their pixels, of any length, and a part of a larger picture,
 * which begins at any address. What lies around it changes nothing. */
static void part_of_a_larger_picture_is_a_frame(void **state)
{
    (void)state;
    enum { W = 97, H = 61, PITCH = 3 * W + 5, LEFT = 13, TOP = 7, WIDTH = 50, HEIGHT = 41 };
    static uint8_t        whole[H * PITCH];
    struct sac_preprocess pre = sac_preprocess_default();
    sac_device           *dev = test_device();
    sac_tensor           *seen[2];
    pre.width = 32;
    pre.height = 24;
    uint8_t  *first = whole + TOP * PITCH + 3 * LEFT;
    sac_frame desc = {.format = SAC_PIXEL_BGR24, .width = WIDTH, .height = HEIGHT};
    desc.plane[0] = first;
    desc.pitch_bytes[0] = PITCH;
    for (int round = 0; round < 2; round++) {
        sac_frame *part = NULL;
        memset(whole, round ? 255 : 0, sizeof whole);
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < 3 * WIDTH; x++)
                first[y * PITCH + x] = (uint8_t)(x * 5 + y * 11);
        assert_sac_ok(sac_frame_wrap(dev, &desc, NULL, NULL, &part));
        seen[round] =
            preprocessed(dev, &pre, part, (struct sac_rect){-3, -2, WIDTH + 4, HEIGHT + 5});
        sac_frame_unref(&part);
    }
    assert_same_tensor(&pre, seen[0], seen[1]);
    desc.pitch_bytes[0] = 3 * WIDTH - 1;
    sac_frame *part = NULL;
    assert_sac_error(sac_frame_wrap(dev, &desc, NULL, NULL, &part), SAC_ERR_ARG);
    desc.format = SAC_PIXEL_BGRA;
    desc.pitch_bytes[0] = 4 * WIDTH - 1;
    assert_sac_error(sac_frame_wrap(dev, &desc, NULL, NULL, &part), SAC_ERR_ARG);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_see_the_same_numbers),
        cmocka_unit_test(they_convert_alike),
        cmocka_unit_test(alpha_is_kept_by_copies_and_whole_after_conversions),
        cmocka_unit_test(drawing_leaves_alpha_alone),
        cmocka_unit_test(the_camera_sees_the_same_brightness),
        cmocka_unit_test(part_of_a_larger_picture_is_a_frame),
    };
    return cmocka_run_group_tests_name("vision/orders", tests, NULL, NULL);
}
