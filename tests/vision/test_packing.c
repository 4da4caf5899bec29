/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/vision/frames.h"
#include "vision/packing.h"

static struct sac_packing packing_of(enum sac_packing_projection projection,
                                     enum sac_packing_stereo stereo, int width, int height)
{
    struct sac_packing p;
    assert_sac_ok(sac_packing_init(test_context(), projection, stereo, width, height, &p));
    return p;
}

static void expect_piece(const struct sac_packing *p, int i, int eye, const int area[6])
{
    const struct sac_packing_piece *piece = &p->piece[i];
    const int                       got[6] = {piece->from.x, piece->from.y,     piece->to.x,
                                              piece->to.y,   piece->from.width, piece->from.height};
    assert_int_equal(piece->eye, eye);
    assert_memory_equal(got, area, sizeof got);
    assert_int_equal(piece->to.width, piece->from.width);
    assert_int_equal(piece->to.height, piece->from.height);
}

/* The published figures: 2/5 of the frame, and each piece where it is cut and put. */
static void fisheye_side_by_side_is_as_published(void **state)
{
    (void)state;
    const struct sac_packing p = packing_of(SAC_PACKING_FISHEYE, SAC_PACKING_SBS, 4000, 2000);
    assert_int_equal(p.width, 4000);
    assert_int_equal(p.height, 2000);
    assert_int_equal(p.scaled_width, 800);
    assert_int_equal(p.scaled_height, 800);
    assert_int_equal(p.pieces, 6);
    /* from x, y; to x, y; size */
    expect_piece(&p, 0, 0, (const int[]){0, 0, 1600, 1600, 800, 400});
    expect_piece(&p, 1, 0, (const int[]){0, 400, 1600, 0, 800, 400});
    expect_piece(&p, 2, 1, (const int[]){0, 0, 3600, 1600, 400, 400});
    expect_piece(&p, 3, 1, (const int[]){400, 0, 0, 1600, 400, 400});
    expect_piece(&p, 4, 1, (const int[]){0, 400, 3600, 0, 400, 400});
    expect_piece(&p, 5, 1, (const int[]){400, 400, 0, 0, 400, 400});
}

/* Every eye's matte is cut without loss, pieces are even, in the frame and apart. */
static void pieces_tile_the_mattes(void **state)
{
    (void)state;
    for (int side = 10; side < 400; side += 2)
        for (int stereo = SAC_PACKING_MONO; stereo <= SAC_PACKING_SBS; stereo++) {
            const int                eyes = stereo == SAC_PACKING_SBS ? 2 : 1;
            const struct sac_packing p =
                packing_of(SAC_PACKING_FISHEYE, (enum sac_packing_stereo)stereo, side * eyes, side);
            int pixels = 0;
            for (int i = 0; i < p.pieces; i++) {
                const struct sac_packing_area *to = &p.piece[i].to;
                assert_true(!((to->x | to->y | to->width | to->height) & 1));
                assert_true(to->x >= 0 && to->x + to->width <= p.width && to->y >= 0 &&
                            to->y + to->height <= p.height);
                pixels += to->width * to->height;
                for (int k = 0; k < i; k++) {
                    const struct sac_packing_area *o = &p.piece[k].to;
                    assert_true(o->x >= to->x + to->width || to->x >= o->x + o->width ||
                                o->y >= to->y + to->height || to->y >= o->y + o->height);
                }
            }
            assert_int_equal(pixels, p.eyes * p.scaled_width * p.scaled_height);
        }
}

static double wave(int x, int y, int eye)
{
    return 127.5 + 127.5 * sin(x * 0.05 + eye) * cos(y * 0.04 + 2 * eye);
}

/* Smooth, and another one for each eye. */
static sac_frame *smooth_matte(sac_device *dev, const struct sac_packing *p)
{
    sac_frame *m = test_frame(dev, SAC_PIXEL_GRAY8, p->picture.width, p->picture.height);
    for (int y = 0; y < m->height; y++)
        for (int x = 0; x < m->width; x++)
            m->plane[0][(size_t)y * m->pitch_bytes[0] + (size_t)x] =
                (uint8_t)lrint(wave(x, y, x >= p->eye[0].width));
    return m;
}

/* From the centre of the pixel's eye to its edge: 0 to 1. */
static double distance(const struct sac_packing *p, int x, int y)
{
    const struct sac_packing_area *e = &p->eye[p->eyes > 1 && x >= p->eye[0].width];
    const double dx = x + 0.5 - e->x - e->width / 2.0, dy = y + 0.5 - e->height / 2.0;
    return 2 * sqrt(dx * dx + dy * dy) / e->width;
}

static void there_and_back(sac_device *dev, enum sac_packing_projection projection,
                           enum sac_packing_stereo stereo, enum sac_pixel_format format, int width,
                           int height, double allowed)
{
    const struct sac_packing p = packing_of(projection, stereo, width, height);
    sac_frame *frame = test_frame(dev, format, width, height), *matte = smooth_matte(dev, &p);
    sac_frame *out = test_frame(dev, format, p.width, p.height);
    sac_frame *back = test_frame(dev, SAC_PIXEL_GRAY8, width, height);
    test_fill(frame, 16, 235, 16, 240);
    assert_sac_ok(sac_packing_write_on(NULL, &p, frame, matte, out));
    assert_sac_ok(sac_packing_read(&p, out, back));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            const double at = projection == SAC_PACKING_FISHEYE ? distance(&p, x, y) : 0;
            const double had = test_sample(matte, x, y, 0), has = test_sample(back, x, y, 0);
            if (at < 0.93 && fabs(had - has) > allowed)
                fail_msg("%s, stereo %d, at %d,%d: %f came back as %f",
                         sac_pixel_format_name(format), stereo, x, y, had, has);
            if (at > 1.05)
                assert_true(has <= 3);
            for (int c = 0; c < 3 && at < 0.98; c++) /* the picture is as it was */
                assert_true(test_sample(out, x, y, c) == test_sample(frame, x, y, c));
        }
    sac_frame_unref(&frame);
    sac_frame_unref(&matte);
    sac_frame_unref(&out);
    sac_frame_unref(&back);
}

static void what_is_packed_comes_back(void **state)
{
    (void)state;
    static const enum sac_pixel_format formats[] = {SAC_PIXEL_I420, SAC_PIXEL_NV12, SAC_PIXEL_P010,
                                                    SAC_PIXEL_RGB24};
    sac_device                        *dev = test_device();
    for (size_t i = 0; i < SAC_COUNT(formats); i++) {
        const bool rgb = formats[i] == SAC_PIXEL_RGB24;
        there_and_back(dev, SAC_PACKING_FISHEYE, SAC_PACKING_SBS, formats[i], 800, 400,
                       rgb ? 4 : 7);
        there_and_back(dev, SAC_PACKING_FISHEYE, SAC_PACKING_MONO, formats[i], 402, 402,
                       rgb ? 4 : 7);
        for (int stereo = SAC_PACKING_MONO; stereo <= SAC_PACKING_TB; stereo++)
            there_and_back(dev, SAC_PACKING_FLAT, (enum sac_packing_stereo)stereo, formats[i], 132,
                           70, 1);
    }
    sac_device_unref(&dev);
}

/* What the scratch held before is drawn over: memory is taken from a pool, with the numbers of
 * other frames in it. */
static void dirty_scratch(sac_device *dev, const struct sac_packing *p, int value)
{
    for (int eyes = 1; eyes <= 2; eyes++) {
        sac_frame *f = test_frame(dev, SAC_PIXEL_GRAY8, p->scaled_width * eyes, p->scaled_height);
        memset(f->plane[0], value, f->pitch_bytes[0] * (size_t)f->height);
        sac_frame_unref(&f);
    }
}

static void nothing_is_left_of_former_frames(void **state)
{
    (void)state;
    sac_device              *dev = test_device();
    const struct sac_packing p = packing_of(SAC_PACKING_FISHEYE, SAC_PACKING_SBS, 400, 200);
    sac_frame               *matte = smooth_matte(dev, &p), *packed[2], *back[2];
    for (int i = 0; i < 2; i++) {
        packed[i] = test_frame(dev, SAC_PIXEL_RGB24, 400, 200);
        back[i] = test_frame(dev, SAC_PIXEL_GRAY8, 400, 200);
        test_fill(packed[i], 99, 99, 0, 0);
        dirty_scratch(dev, &p, i ? 255 : 0);
        assert_sac_ok(sac_packing_write_on(NULL, &p, packed[i], matte, packed[i]));
        dirty_scratch(dev, &p, i ? 255 : 0);
        assert_sac_ok(sac_packing_read(&p, packed[i], back[i]));
    }
    for (int y = 0; y < 200; y++)
        for (int x = 0; x < 400; x++) {
            for (int c = 0; c < 3; c++)
                assert_true(test_sample(packed[0], x, y, c) == test_sample(packed[1], x, y, c));
            assert_true(test_sample(back[0], x, y, 0) == test_sample(back[1], x, y, 0));
        }
    for (int i = 0; i < 2; i++) {
        sac_frame_unref(&packed[i]);
        sac_frame_unref(&back[i]);
    }
    sac_frame_unref(&matte);
    sac_device_unref(&dev);
}

/* In place, and sharp: where people are is red, where not black, and in the picture nothing is. */
static void the_matte_is_red_beside_the_circles(void **state)
{
    (void)state;
    sac_device              *dev = test_device();
    const struct sac_packing p = packing_of(SAC_PACKING_FISHEYE, SAC_PACKING_SBS, 400, 200);
    sac_frame               *f = test_frame(dev, SAC_PIXEL_RGB24, 400, 200);
    sac_frame               *matte = test_frame(dev, SAC_PIXEL_GRAY8, 400, 200);
    test_fill(f, 99, 99, 0, 0);
    test_fill(matte, 0, 0, 0, 0);
    const struct sac_shape upper_right = {
        .kind = SAC_SHAPE_FILL, .rect = {300, 0, 400, 100}, .colour = {255, 255, 255}, .alpha = 1};
    assert_sac_ok(sac_frame_draw(matte, &upper_right, 1)); /* of the right eye */
    assert_sac_ok(sac_packing_write_on(NULL, &p, f, matte, f));
    for (int c = 0; c < 3; c++) {
        assert_int_equal(test_sample(f, 10, 190, c), c ? 0 : 255); /* the lower left corner */
        assert_int_equal(test_sample(f, 10, 10, c), 0);
        assert_int_equal(test_sample(f, 390, 190, c), 0);
        assert_int_equal(test_sample(f, 200, 195, c), 0);
        assert_int_equal(test_sample(f, 100, 100, c), 99);
        assert_int_equal(test_sample(f, 39, 161, c), 99); /* of the piece, but not of its circle */
    }
    sac_frame_unref(&f);
    sac_frame_unref(&matte);
    sac_device_unref(&dev);
}

static void what_has_no_layout_is_refused(void **state)
{
    (void)state;
    struct sac_packing p;
    sac_context       *ctx = test_context();
    assert_sac_error(sac_packing_init(ctx, SAC_PACKING_FISHEYE, SAC_PACKING_TB, 200, 400, &p),
                     SAC_ERR_UNSUPPORTED);
    assert_sac_error(sac_packing_init(ctx, SAC_PACKING_FISHEYE, SAC_PACKING_SBS, 200, 200, &p),
                     SAC_ERR_ARG);
    assert_sac_error(sac_packing_init(ctx, SAC_PACKING_FISHEYE, SAC_PACKING_MONO, 8, 8, &p),
                     SAC_ERR_ARG);
    assert_sac_error(sac_packing_init(ctx, SAC_PACKING_FLAT, SAC_PACKING_MONO, 101, 100, &p),
                     SAC_ERR_ARG);
    sac_device *dev = test_device();
    sac_frame  *f = test_frame(dev, SAC_PIXEL_NV12, 40, 40), *again = sac_frame_ref(f);
    sac_frame  *matte = test_frame(dev, SAC_PIXEL_GRAY8, 40, 40);
    p = packing_of(SAC_PACKING_FISHEYE, SAC_PACKING_MONO, 40, 40);
    assert_sac_error(sac_packing_write_on(NULL, &p, f, matte, f), SAC_ERR_ARG);
    sac_frame_unref(&again);
    assert_sac_error(sac_packing_write_on(NULL, &p, f, f, f), SAC_ERR_ARG);
    p = packing_of(SAC_PACKING_FLAT, SAC_PACKING_MONO, 40, 40);
    assert_sac_error(sac_packing_write_on(NULL, &p, f, matte, f), SAC_ERR_ARG);
    assert_sac_error(sac_packing_read(&p, f, matte), SAC_ERR_ARG);
    sac_frame_unref(&f);
    sac_frame_unref(&matte);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fisheye_side_by_side_is_as_published),
        cmocka_unit_test(pieces_tile_the_mattes),
        cmocka_unit_test(what_is_packed_comes_back),
        cmocka_unit_test(nothing_is_left_of_former_frames),
        cmocka_unit_test(the_matte_is_red_beside_the_circles),
        cmocka_unit_test(what_has_no_layout_is_refused),
    };
    return cmocka_run_group_tests_name("vision/packing", tests, NULL, NULL);
}
