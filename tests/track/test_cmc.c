/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/test.h"
#include "tests/track/picture.h"
#include "track/cmc.h"

static const struct sac_similarity still = {.a = 1};

static struct sac_similarity turned(double zoom, double angle, double tx, double ty)
{
    return (struct sac_similarity){zoom * cos(angle), zoom * sin(angle), tx, ty};
}

static struct sac_similarity next_move(struct sac_cmc *cmc, const sac_frame *f,
                                       const struct sac_camera_box *moving, size_t n)
{
    struct sac_camera_job  job;
    struct sac_camera_move move;
    sac_cmc_next(cmc, f, moving, n, &job);
    sac_camera_on_host(&job, &move);
    return sac_cmc_similarity(cmc->shrink, &move);
}

/* The move between two looks at the scene. */
static struct sac_similarity estimate(enum sac_pixel_format format, int width, int height,
                                      const struct sac_similarity *move)
{
    struct sac_cmc cmc = {0};
    sac_frame      f = picture_frame(format, width, height);
    assert_true(sac_cmc_can_read(&f));
    assert_true(sac_cmc_reserve(&cmc, &f));
    picture_take(&f, &still);
    struct sac_similarity first = next_move(&cmc, &f, NULL, 0);
    assert_true(first.a == 1 && first.b == 0 && first.tx == 0 && first.ty == 0);
    picture_take(&f, move);
    struct sac_similarity got = next_move(&cmc, &f, NULL, 0);
    sac_cmc_finish(&cmc);
    free(f.plane[0]);
    return got;
}

/* Both motions take the picture's corners to the same places, within some pixels. */
static void assert_same_move(const struct sac_similarity *a, const struct sac_similarity *b,
                             int width, int height, double tolerance)
{
    for (int i = 0; i < 4; i++) {
        double x = i % 2 ? width : 0, y = i / 2 ? height : 0;
        double ex = a->a * x - a->b * y + a->tx - (b->a * x - b->b * y + b->tx);
        double ey = a->b * x + a->a * y + a->ty - (b->b * x + b->a * y + b->ty);
        if (hypot(ex, ey) > tolerance)
            fail_msg("corner %d is off by %g, %g pixels", i, ex, ey);
    }
}

static void recovers_shifts_turns_and_zooms(void **state)
{
    (void)state;
    const struct sac_similarity moves[] = {
        still,
        turned(1, 0, 3.5, -2.25),
        turned(1, 0, -21, 14),
        turned(1, 0.02, 4, -9),
        turned(1.03, 0, -8, -6),
        turned(0.98, -0.015, 6, 3),
    };
    for (size_t i = 0; i < SAC_COUNT(moves); i++) {
        struct sac_similarity got = estimate(SAC_PIXEL_GRAY8, 640, 480, &moves[i]);
        assert_same_move(&got, &moves[i], 640, 480, 0.5);
    }
}

static void reads_all_formats_and_sizes(void **state)
{
    (void)state;
    const struct sac_similarity move = turned(1, 0.01, 5, -4);
    for (int format = SAC_PIXEL_NONE + 1; format < SAC_PIXEL_FORMAT_COUNT; format++) {
        struct sac_similarity got = estimate((enum sac_pixel_format)format, 322, 241, &move);
        assert_same_move(&got, &move, 322, 241, 0.5);
    }
    const struct sac_similarity far = turned(1, 0, 30, -18);
    struct sac_similarity       got = estimate(SAC_PIXEL_NV12, 1920, 1080, &far);
    assert_same_move(&got, &far, 1920, 1080, 1.5);
    got = estimate(SAC_PIXEL_GRAY8, 40, 17, &still);
    assert_same_move(&got, &still, 40, 17, 0.1);
}

/* A third of the picture moves on its own; its boxes are named, and then not. */
static void looks_past_moving_objects(void **state)
{
    (void)state;
    enum { W = 320, H = 240, LEFT = 100, RIGHT = 200 };
    const struct sac_similarity move = turned(1, 0, 4, 2);
    const struct sac_rect       rect = {LEFT - 10, 0, RIGHT + 10, H};
    const struct sac_camera_box box = sac_camera_box_of(&rect, sac_camera_shrink(W));
    sac_frame                   f = picture_frame(SAC_PIXEL_GRAY8, W, H);
    for (size_t named = 0; named < 2; named++) {
        struct sac_cmc cmc = {0};
        assert_true(sac_cmc_reserve(&cmc, &f));
        picture_take(&f, &still);
        next_move(&cmc, &f, NULL, 0);
        picture_take(&f, &move);
        for (int y = 0; y < H; y++)
            for (int x = LEFT; x < RIGHT; x++)
                f.plane[0][(size_t)y * f.pitch_bytes[0] + (size_t)x] =
                    picture_grey(x + 7.5, y + 3.5);
        struct sac_similarity got = next_move(&cmc, &f, &box, named);
        assert_same_move(&got, &move, W, H, 0.5);
        sac_cmc_finish(&cmc);
    }
    free(f.plane[0]);
}

static void finds_no_move_where_nothing_is_to_be_seen(void **state)
{
    (void)state;
    struct sac_cmc cmc = {0};
    sac_frame      f = picture_frame(SAC_PIXEL_GRAY8, 320, 240);
    assert_true(sac_cmc_reserve(&cmc, &f));
    for (int i = 0; i < 3; i++) {
        memset(f.plane[0], 40 * i, f.pitch_bytes[0] * 240); /* flat */
        struct sac_similarity got = next_move(&cmc, &f, NULL, 0);
        assert_same_move(&got, &still, 320, 240, 0);
    }
    for (int i = 0; i < 3; i++) { /* another scene each time */
        const struct sac_similarity far = turned(1, 0, 10000.0 * i, 5000);
        picture_take(&f, &far);
        struct sac_similarity got = next_move(&cmc, &f, NULL, 0);
        assert_same_move(&got, &still, 320, 240, 0);
    }
    free(f.plane[0]);
    sac_cmc_finish(&cmc);
}

static void starts_anew_after_a_change_of_size(void **state)
{
    (void)state;
    struct sac_cmc cmc = {0};
    sac_frame      a = picture_frame(SAC_PIXEL_GRAY8, 320, 240);
    sac_frame      b = picture_frame(SAC_PIXEL_GRAY8, 200, 100);
    picture_take(&a, &still);
    picture_take(&b, &still);
    assert_true(sac_cmc_reserve(&cmc, &a));
    next_move(&cmc, &a, NULL, 0);
    sac_alloc_fail_at(1);
    assert_false(sac_cmc_reserve(&cmc, &b));
    sac_alloc_fail_at(0);
    assert_int_equal(cmc.width, 320);
    assert_true(sac_cmc_reserve(&cmc, &b));
    struct sac_similarity got = next_move(&cmc, &b, NULL, 0);
    assert_same_move(&got, &still, 200, 100, 0);
    sac_cmc_finish(&cmc);
    free(a.plane[0]);
    free(b.plane[0]);
}

static bool is_inside(const struct sac_rect *r, double x, double y)
{
    return x >= r->x0 && x < r->x1 && y >= r->y0 && y < r->y1;
}

/* On edges, a little beside them, and far outside. */
static void a_box_has_the_pixels_whose_centres_it_has(void **state)
{
    (void)state;
    static const float edge[] = {-1e6f,      -3, 0,     1.5f, 4.4999995f, 4.5f,
                                 4.5000005f, 10, 13.5f, 96,   97.5f,      1e6f};
    static const int   shrink[] = {1, 3, 6, 7, 102};
    enum { SIDE = 40 };
    for (size_t s = 0; s < SAC_COUNT(shrink); s++)
        for (size_t i = 0; i < SAC_COUNT(edge) * SAC_COUNT(edge); i++) {
            const float           a = edge[i / SAC_COUNT(edge)], b = edge[i % SAC_COUNT(edge)];
            const struct sac_rect rect = {a, b, b, a + 20};
            const struct sac_camera_box box = sac_camera_box_of(&rect, shrink[s]);
            for (int p = 0; p < SIDE * SIDE; p++) {
                const int x = p % SIDE, y = p / SIDE;
                assert_int_equal(sac_camera_moves(&box, 1, x, y),
                                 is_inside(&rect, (x + 0.5) * shrink[s], (y + 0.5) * shrink[s]));
            }
        }
}

/* Boxes spread over a picture. */
static size_t some_boxes(struct sac_camera_box *box, size_t n, int width, int height)
{
    for (size_t i = 0; i < n; i++) {
        const float x = (float)((i * 173) % (size_t)width), y = (float)((i * 97) % (size_t)height);
        const struct sac_rect rect = {x, y, x + 60, y + 90};
        box[i] = sac_camera_box_of(&rect, sac_camera_shrink(width));
    }
    return n;
}

/* Corners seen once give each tracker the move that it would have found itself: to the last bit,
 * also where there are more of them than are followed. */
static void corners_give_the_move_for_any_boxes(void **state)
{
    (void)state;
    enum { BOXES = 24, CELLS = 1000 };
    const int                   size[][2] = {{640, 480}, {720, 1280}, {64, 48}, {16, 16}};
    const struct sac_similarity move = turned(1.01, 0.01, 5, -4);
    for (size_t s = 0; s < SAC_COUNT(size); s++) {
        struct sac_cmc           cmc = {0};
        struct sac_camera_job    job;
        struct sac_camera_corner corner[CELLS];
        struct sac_camera_move   direct, later;
        struct sac_camera_box    box[BOXES];
        sac_frame                f = picture_frame(SAC_PIXEL_NV12, size[s][0], size[s][1]);
        assert_true(sac_cmc_reserve(&cmc, &f));
        picture_take(&f, &still);
        sac_cmc_next(&cmc, &f, NULL, 0, &job);
        assert_int_equal(sac_camera_corners_on_host(&job, corner), 0); /* the first frame */
        picture_take(&f, &move);
        sac_cmc_next(&cmc, &f, NULL, 0, &job);
        assert_in_range(sac_camera_cells_of(&job.before), 0, CELLS);
        const struct sac_camera_corners all = {corner, sac_camera_corners_on_host(&job, corner),
                                               job.shrink};
        if (size[s][1] == 1280)
            assert_true(all.count > SAC_CAMERA_POINTS);
        for (size_t n = 0; n <= BOXES; n += 8) {
            job.moving = box;
            job.moving_count = (int)some_boxes(box, n, f.width, f.height);
            sac_camera_on_host(&job, &direct);
            sac_camera_agree_on_host(&all, box, (int)n, &later);
            assert_memory_equal(&direct, &later, sizeof direct);
            assert_true(s > 1 || direct.agreed > 0);
        }
        sac_cmc_finish(&cmc);
        free(f.plane[0]);
    }
}

static void refuses_what_it_cannot_read(void **state)
{
    (void)state;
    sac_frame f = {.format = SAC_PIXEL_NONE, .width = 100, .height = 100};
    assert_false(sac_cmc_can_read(&f));
    f.format = SAC_PIXEL_NV12;
    assert_true(sac_cmc_can_read(&f));
    f.pitch_bytes[0] = (size_t)INT32_MAX + 1; /* devices step by 32 bits */
    assert_false(sac_cmc_can_read(&f));
    f.pitch_bytes[0] = 0;
    f.height = 3;
    assert_false(sac_cmc_can_read(&f));
    f.width = 8192; /* a pixel of the small picture would be higher than the frame */
    f.height = 20;
    assert_false(sac_cmc_can_read(&f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recovers_shifts_turns_and_zooms),
        cmocka_unit_test(reads_all_formats_and_sizes),
        cmocka_unit_test(looks_past_moving_objects),
        cmocka_unit_test(a_box_has_the_pixels_whose_centres_it_has),
        cmocka_unit_test(finds_no_move_where_nothing_is_to_be_seen),
        cmocka_unit_test(starts_anew_after_a_change_of_size),
        cmocka_unit_test(corners_give_the_move_for_any_boxes),
        cmocka_unit_test(refuses_what_it_cannot_read),
    };
    return cmocka_run_group_tests_name("track/cmc", tests, NULL, NULL);
}
