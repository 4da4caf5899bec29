/* SPDX-License-Identifier: Apache-2.0 */
/* Where the network looks: regions by what was found, in the order in which a run learns it. */
#include "base/base.h"
#include "pipeline/tasks/region.h"
#include "tests/test.h"

enum { WIDTH = 640, HEIGHT = 480 };

static struct sac_region *open_region(int every)
{
    struct sac_segment_params p = {.region = 1, .region_every = every, .region_margin = 0.25f};
    struct sac_job            job = {.ctx = test_context(), .segment = &p};
    struct sac_region        *r = NULL;
    assert_sac_ok(sac_region_create(&job, &r));
    return r;
}

static struct sac_rect choose(struct sac_region *r, int stream_id, int width, bool still)
{
    sac_frame       frame = {.width = width, .height = HEIGHT};
    struct sac_item item = {.frame = &frame, .stream_id = stream_id, .still = still};
    return sac_region_choose(r, &item);
}

static void learn(struct sac_region *r, int stream_id, struct sac_rect seen, struct sac_rect found)
{
    sac_frame       frame = {.width = WIDTH, .height = HEIGHT};
    struct sac_item item = {.frame = &frame, .stream_id = stream_id};
    sac_region_learn(r, &item, seen, found);
}

static bool is_whole(struct sac_rect r)
{
    return r.x0 == 0 && r.y0 == 0 && r.x1 == 0 && r.y1 == 0;
}

static void assert_same(struct sac_rect a, struct sac_rect b)
{
    assert_true(a.x0 == b.x0 && a.y0 == b.y0 && a.x1 == b.x1 && a.y1 == b.y1);
}

static const struct sac_rect whole = {0, 0, 0, 0}, nobody = {0, 0, 0, 0},
                             person = {300, 200, 340, 300};

static void people_are_in_it_with_a_margin(void **state)
{
    (void)state;
    struct sac_region *r = open_region(100);
    assert_true(is_whole(choose(r, 0, WIDTH, false)));
    learn(r, 0, whole, person);
    const struct sac_rect at = choose(r, 0, WIDTH, false);
    assert_true(at.x0 <= 275 && at.y0 <= 175 && at.x1 >= 365 && at.y1 >= 325);
    assert_true(at.x0 >= 0 && at.y1 <= HEIGHT);
    /* of the frame's shape, and much smaller */
    assert_float_equal((at.x1 - at.x0) / (at.y1 - at.y0), (double)WIDTH / HEIGHT, 0.02);
    assert_true((at.x1 - at.x0) * (at.y1 - at.y0) < 0.3 * WIDTH * HEIGHT);
    sac_region_destroy(&r);
}

static void it_stays_while_it_fits(void **state)
{
    (void)state;
    struct sac_region *r = open_region(100);
    learn(r, 0, whole, person); /* before anything was chosen */
    const struct sac_rect first = choose(r, 0, WIDTH, false);
    struct sac_rect       p = person;
    p.x0 += 6;
    p.x1 += 6;
    learn(r, 0, first, p);
    assert_same(choose(r, 0, WIDTH, false), first);
    p.x0 += 90;
    p.x1 += 90;
    learn(r, 0, first, p);
    const struct sac_rect second = choose(r, 0, WIDTH, false);
    assert_true(second.x0 > first.x0 && second.x1 >= p.x1 + 20);
    learn(r, 0, first, person); /* late, of a region that is over */
    assert_same(choose(r, 0, WIDTH, false), second);
    assert_same(choose(r, 0, WIDTH, true), second); /* a still frame's */
    sac_region_destroy(&r);
}

/* Newcomers are found by a look at all of the frame, however late that arrives. */
static void all_is_seen_now_and_then(void **state)
{
    (void)state;
    struct sac_region *r = open_region(3);
    choose(r, 0, WIDTH, false);
    learn(r, 0, whole, person);
    struct sac_rect at[3];
    for (int i = 0; i < 3; i++) {
        at[i] = choose(r, 0, WIDTH, false);
        assert_false(is_whole(at[i]));
        learn(r, 0, at[i], person);
    }
    assert_true(is_whole(choose(r, 0, WIDTH, false)));
    assert_true(is_whole(choose(r, 0, WIDTH, true))); /* as the frame before */
    assert_same(choose(r, 0, WIDTH, false), at[2]);
    learn(r, 0, whole, (struct sac_rect){150, 180, 345, 320});
    learn(r, 0, at[2], person);
    const struct sac_rect wider = choose(r, 0, WIDTH, false);
    assert_true(wider.x0 <= 150 && wider.x1 >= 345);
    sac_region_destroy(&r);
}

static void all_is_seen_where_there_is_no_region(void **state)
{
    (void)state;
    struct sac_region *r = open_region(100), *off = NULL;
    choose(r, 0, WIDTH, false);
    learn(r, 0, whole, nobody);
    assert_true(is_whole(choose(r, 0, WIDTH, false)));
    learn(r, 0, whole, (struct sac_rect){10, 10, 600, 400}); /* people are everywhere */
    assert_true(is_whole(choose(r, 0, WIDTH, false)));
    learn(r, 0, whole, person);
    assert_false(is_whole(choose(r, 0, WIDTH, false)));
    assert_true(is_whole(choose(r, 1, WIDTH, false)));     /* another stream */
    assert_true(is_whole(choose(r, 0, WIDTH / 2, false))); /* another size */
    learn(r, 0, whole, person); /* what a small network found in a frame of yet another */
    assert_false(is_whole(choose(r, 0, WIDTH, false)));
    choose(r, 0, WIDTH, false);
    learn(r, 0, whole, person);
    sac_region_forget(r, 0);
    assert_true(is_whole(choose(r, 0, WIDTH, false)));
    sac_region_destroy(&r);
    assert_true(is_whole(choose(off, 0, WIDTH, false)));
    learn(off, 0, whole, person);
    sac_region_forget(off, 0);
    sac_region_destroy(&off);
}

static void edges_of_the_frame_are_kept(void **state)
{
    (void)state;
    for (int x = 0; x < WIDTH - 40; x += 13)
        for (int y = 0; y < HEIGHT - 100; y += 17) {
            struct sac_region    *r = open_region(100);
            const struct sac_rect p = {(float)x, (float)y, (float)x + 40, (float)y + 100};
            choose(r, 0, WIDTH, false);
            learn(r, 0, whole, p);
            const struct sac_rect at = choose(r, 0, WIDTH, false);
            assert_true(at.x0 >= 0 && at.y0 >= 0 && at.x1 <= WIDTH && at.y1 <= HEIGHT);
            assert_true(at.x0 <= p.x0 && at.y0 <= p.y0 && at.x1 >= p.x1 && at.y1 >= p.y1);
            learn(r, 0, at, p);
            assert_same(choose(r, 0, WIDTH, false), at);
            sac_region_destroy(&r);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(people_are_in_it_with_a_margin),
        cmocka_unit_test(it_stays_while_it_fits),
        cmocka_unit_test(all_is_seen_now_and_then),
        cmocka_unit_test(all_is_seen_where_there_is_no_region),
        cmocka_unit_test(edges_of_the_frame_are_kept),
    };
    return cmocka_run_group_tests_name("pipeline/region", tests, NULL, NULL);
}
