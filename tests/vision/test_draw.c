/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/vision/frames.h"

static const struct sac_colour red = {255, 0, 0}, white = {255, 255, 255};

static sac_frame *grey_frame(sac_device *dev, enum sac_pixel_format format, int w, int h)
{
    sac_frame *f = test_frame(dev, format, w, h);
    test_fill(f, 100, 100, 128, 128);
    return f;
}

static bool is_painted(const sac_frame *f, int x, int y)
{
    return fabs(test_sample(f, x, y, 0) - 100) > 0.3;
}

static void a_fill_has_its_colour_and_its_edges(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    for (int format = SAC_PIXEL_NV12; format < SAC_PIXEL_FORMAT_COUNT; format++)
        for (int range = 0; range < 2 && format != SAC_PIXEL_GRAY8; range++) {
            sac_frame       *f = grey_frame(dev, (enum sac_pixel_format)format, 21, 15);
            struct sac_shape fill = {
                .kind = SAC_SHAPE_FILL, .rect = {4, 2, 13, 9}, .colour = {200, 60, 30}, .alpha = 1};
            f->range = (enum sac_colour_range)range;
            f->matrix = SAC_MATRIX_BT709;
            assert_sac_ok(sac_frame_draw(f, &fill, 1));
            for (int y = 0; y < 15; y++)
                for (int x = 0; x < 21; x++)
                    assert_int_equal(is_painted(f, x, y), x >= 4 && x < 13 && y >= 2 && y < 9);
            double rgb[3];
            test_rgb(f, 6, 4, rgb);
            assert_float_equal(rgb[0], 200, 2.5);
            assert_float_equal(rgb[1], 60, 2.5);
            assert_float_equal(rgb[2], 30, 2.5);
            sac_frame_unref(&f);
        }
    sac_device_unref(&dev);
}

/* Opaque areas of grey frames are set, not blended: exactly the colour, and nothing beside. */
static void a_grey_area_is_set(void **state)
{
    (void)state;
    static const struct sac_rect rects[] = {
        {3, 2, 13, 9}, {-4, 5, 6, 30}, {0, 0, 21, 15}, {20, 14, 21, 15}, {30, 2, 40, 9}};
    sac_device *dev = test_device();
    for (size_t i = 0; i < SAC_COUNT(rects); i++)
        for (int white_too = 0; white_too < 2; white_too++) {
            const struct sac_rect *r = &rects[i];
            sac_frame             *f = grey_frame(dev, SAC_PIXEL_GRAY8, 21, 15);
            struct sac_shape       fill = {.kind = SAC_SHAPE_FILL, .rect = *r, .alpha = 1};
            f->range = SAC_RANGE_FULL;
            if (white_too)
                fill.colour = white;
            assert_sac_ok(sac_frame_draw(f, &fill, 1));
            for (int y = 0; y < 15; y++)
                for (int x = 0; x < 21; x++) {
                    const bool in = (float)x >= r->x0 && (float)x < r->x1 && (float)y >= r->y0 &&
                                    (float)y < r->y1;
                    assert_int_equal(f->plane[0][(size_t)y * f->pitch_bytes[0] + (size_t)x],
                                     in ? 255 * white_too : 100);
                }
            sac_frame_unref(&f);
        }
    sac_device_unref(&dev);
}

static void alpha_mixes(void **state)
{
    (void)state;
    sac_device      *dev = test_device();
    sac_frame       *f = grey_frame(dev, SAC_PIXEL_RGB24, 8, 8);
    struct sac_shape fill = {
        .kind = SAC_SHAPE_FILL, .rect = {0, 0, 8, 8}, .colour = red, .alpha = 0.5f};
    test_fill(f, 100, 100, 128, 128);
    assert_sac_ok(sac_frame_draw(f, &fill, 1));
    assert_float_equal(test_sample(f, 3, 3, 0), 177.5, 1.1);
    assert_float_equal(test_sample(f, 3, 3, 1), 50, 1.1);
    fill.alpha = 0;
    assert_sac_ok(sac_frame_draw(f, &fill, 1));
    assert_float_equal(test_sample(f, 3, 3, 1), 50, 1.1);
    sac_frame_unref(&f);
    sac_device_unref(&dev);
}

/* Random boxes, thick and thin, inside and out: painted is exactly the frame of the rectangle. */
static void a_box_is_its_frame(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    for (int round = 0; round < 300; round++) {
        sac_frame *f = grey_frame(dev, round % 2 ? SAC_PIXEL_I420 : SAC_PIXEL_NV12, 41, 33);
        int x0 = test_between(-10, 45), y0 = test_between(-10, 40), x1 = x0 + test_between(0, 40),
            y1 = y0 + test_between(0, 40);
        int              thick = test_between(1, 5);
        struct sac_shape box = {.kind = SAC_SHAPE_BOX,
                                .rect = {(float)x0, (float)y0, (float)x1, (float)y1},
                                .colour = white,
                                .alpha = 1,
                                .thickness = thick};
        assert_sac_ok(sac_frame_draw(f, &box, 1));
        for (int y = 0; y < 33; y++)
            for (int x = 0; x < 41; x++) {
                bool inside = x >= x0 && x < x1 && y >= y0 && y < y1;
                bool hole = x >= x0 + thick && x < x1 - thick && y >= y0 + thick && y < y1 - thick;
                if (is_painted(f, x, y) != (inside && !hole))
                    fail_msg("box %d,%d,%d,%d of %d at %d,%d", x0, y0, x1, y1, thick, x, y);
            }
        sac_frame_unref(&f);
    }
    sac_device_unref(&dev);
}

static void a_line_goes_from_end_to_end(void **state)
{
    (void)state;
    sac_device      *dev = test_device();
    sac_frame       *f = grey_frame(dev, SAC_PIXEL_P010, 64, 48);
    struct sac_shape line = {.kind = SAC_SHAPE_LINE,
                             .rect = {5, 7, 55, 40},
                             .colour = white,
                             .alpha = 1,
                             .thickness = 3};
    assert_sac_ok(sac_frame_draw(f, &line, 1));
    for (int i = 0; i <= 50; i++) { /* on the line, and well beside it */
        int x = 5 + i, y = 7 + i * 33 / 50;
        assert_true(is_painted(f, x, y));
        if (y + 6 < 48)
            assert_false(is_painted(f, x, y + 6));
        if (y >= 6)
            assert_false(is_painted(f, x, y - 6));
    }
    sac_frame_unref(&f);
    sac_device_unref(&dev);
}

/* Ink of a text: how many of its pixels are painted. */
static int ink(sac_device *dev, const char *text, int height)
{
    int              w = sac_text_width(text, height) + 20, count = 0;
    sac_frame       *f = grey_frame(dev, SAC_PIXEL_GRAY8, w, height + 20);
    struct sac_shape shape = {.kind = SAC_SHAPE_TEXT,
                              .rect = {10, 10, 0, 0},
                              .colour = white,
                              .alpha = 1,
                              .thickness = height,
                              .text = text};
    assert_sac_ok(sac_frame_draw(f, &shape, 1));
    for (int y = 0; y < height + 20; y++)
        for (int x = 0; x < w; x++) {
            bool cell = x >= 9 && x < w - 9 && y >= 9 && y < height + 11;
            if (!is_painted(f, x, y))
                continue;
            count++;
            if (!cell)
                fail_msg("'%s' of height %d leaves its cell at %d,%d", text, height, x, y);
        }
    sac_frame_unref(&f);
    return count;
}

static void every_glyph_is_there_and_keeps_to_its_cell(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    for (int height = 8; height <= 40; height += 8)
        for (char c = ' '; c <= '~'; c++) {
            char text[2] = {c, '\0'};
            int  painted = ink(dev, text, height);
            assert_int_equal(painted > 0, c != ' ');
        }
    assert_int_equal(ink(dev, "\x01\x7f\xff", 16), 0); /* not printable: nothing, but room */
    assert_true(sac_text_width("12345678", 18) == 88);
    assert_int_equal(sac_text_width("", 18), 0);
    sac_device_unref(&dev);
}

/* Far outside, upside down, huge, on the tiniest frames: nothing but the frame may change, which
 * the sanitizers watch. */
static void clips_everything(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    for (int round = 0; round < 300; round++) {
        sac_frame *f = test_frame(dev, test_any_format(), test_between(1, 30), test_between(1, 30));
        test_fill(f, 0, 255, 0, 255);
        float            span = round % 3 ? 60.0f : 3e9f;
        struct sac_shape s = {.kind = (enum sac_shape_kind)test_between(0, 3),
                              .colour = red,
                              .alpha = 1.0f,
                              .thickness = test_between(-2, 30),
                              .text = "Wg#~"};
        float           *edge[4] = {&s.rect.x0, &s.rect.y0, &s.rect.x1, &s.rect.y1};
        for (int i = 0; i < 4; i++)
            *edge[i] = ((float)test_between(-1000, 1000) / 1000.0f) * span;
        assert_sac_ok(sac_frame_draw(f, &s, 1));
        sac_frame_unref(&f);
    }
    sac_device_unref(&dev);
}

static void refuses_shared_frames_and_nonsense(void **state)
{
    (void)state;
    sac_device      *dev = test_device();
    sac_frame       *f = grey_frame(dev, SAC_PIXEL_NV12, 8, 8), *again = sac_frame_ref(f);
    struct sac_shape s = {.kind = SAC_SHAPE_FILL, .rect = {0, 0, 4, 4}, .alpha = 1};
    assert_sac_error(sac_frame_draw(f, &s, 1), SAC_ERR_ARG);
    sac_frame_unref(&again);
    assert_sac_ok(sac_frame_draw(f, &s, 1));
    assert_sac_ok(sac_frame_draw(f, NULL, 0));
    s.rect.x0 = NAN;
    assert_sac_error(sac_frame_draw(f, &s, 1), SAC_ERR_ARG);
    s = (struct sac_shape){.kind = SAC_SHAPE_TEXT, .alpha = 1};
    assert_sac_error(sac_frame_draw(f, &s, 1), SAC_ERR_ARG);
    s.kind = (enum sac_shape_kind)9;
    assert_sac_error(sac_frame_draw(f, &s, 1), SAC_ERR_ARG);
    sac_frame_unref(&f);
    sac_device_unref(&dev);
}

/* CIE 1976 L*a*b* of an sRGB colour, white D65. */
static void lab_of(struct sac_colour colour, double lab[3])
{
    static const double to_xyz[3][3] = {{0.4124564, 0.3575761, 0.1804375},
                                        {0.2126729, 0.7151522, 0.0721750},
                                        {0.0193339, 0.1191920, 0.9503041}};
    static const double point[3] = {0.95047, 1, 1.08883};
    const double        channel[3] = {colour.r / 255.0, colour.g / 255.0, colour.b / 255.0};
    double              linear[3], f[3];
    for (int i = 0; i < 3; i++)
        linear[i] =
            channel[i] <= 0.04045 ? channel[i] / 12.92 : pow((channel[i] + 0.055) / 1.055, 2.4);
    for (int i = 0; i < 3; i++) {
        double t =
            (to_xyz[i][0] * linear[0] + to_xyz[i][1] * linear[1] + to_xyz[i][2] * linear[2]) /
            point[i];
        f[i] = t > 0.008856 ? cbrt(t) : 7.787 * t + 16.0 / 116;
    }
    lab[0] = 116 * f[1] - 16;
    lab[1] = 500 * (f[0] - f[1]);
    lab[2] = 200 * (f[1] - f[2]);
}

static double colour_distance(int64_t a, int64_t b)
{
    double x[3], y[3], sum = 0;
    lab_of(sac_colour_of_id(a), x);
    lab_of(sac_colour_of_id(b), y);
    for (int i = 0; i < 3; i++)
        sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sqrt(sum);
}

/* People who walk together mostly have neighbouring ids. 2 can just be told apart, 10 at a
 * glance. */
static void colours_of_ids_are_steady_and_apart(void **state)
{
    (void)state;
    for (int64_t id = 1; id <= 1000; id++) {
        struct sac_colour a = sac_colour_of_id(id), same = sac_colour_of_id(id);
        assert_memory_equal(&a, &same, sizeof a);
        assert_true(SAC_MAX(a.r, SAC_MAX(a.g, a.b)) >= 180); /* visible on dark frames */
        for (int step = 1; step <= 4; step++)
            assert_true(colour_distance(id, id + step) > 49);
        for (int step = 5; step <= 12; step++)
            assert_true(colour_distance(id, id + step) > 30);
    }
    sac_colour_of_id(-1);
    sac_colour_of_id(INT64_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fill_has_its_colour_and_its_edges),
        cmocka_unit_test(a_grey_area_is_set),
        cmocka_unit_test(alpha_mixes),
        cmocka_unit_test(a_box_is_its_frame),
        cmocka_unit_test(a_line_goes_from_end_to_end),
        cmocka_unit_test(every_glyph_is_there_and_keeps_to_its_cell),
        cmocka_unit_test(clips_everything),
        cmocka_unit_test(refuses_shared_frames_and_nonsense),
        cmocka_unit_test(colours_of_ids_are_steady_and_apart),
    };
    return cmocka_run_group_tests_name("vision/draw", tests, NULL, NULL);
}
