/* SPDX-License-Identifier: Apache-2.0 */
/* What OC-SORT has over the others: direction, recovery, re-update. */
#include <math.h>

#include "base/base.h"
#include "tests/test.h"
#include "track/core.h"

struct follow {
    sac_tracker          *trk;
    struct sac_track_view view;
    int                   frame; /* of 40 ms */
};

static struct follow open_follow(enum sac_tracker_kind kind)
{
    struct follow             f = {0};
    struct sac_tracker_params p = sac_tracker_params_default(kind);
    assert_sac_ok(sac_tracker_create(test_context(), &p, &f.trk));
    return f;
}

/* A frame with people of 40 by 100 pixels centred at xs. */
static void step(struct follow *f, const double *xs, size_t n)
{
    struct sac_detection boxes[4] = {0};
    for (size_t i = 0; i < n; i++)
        boxes[i] = (struct sac_detection){(float)xs[i] - 20, 100, (float)xs[i] + 20, 200, 0.9f, 0};
    assert_sac_ok(sac_tracker_update(f->trk, boxes, n, NULL, NULL, f->frame++ * 40000LL, &f->view));
}

/* Walks from x at pixels a second for some frames; returns the last place. */
static double walk(struct follow *f, double x, double speed, int frames)
{
    for (int i = 0; i < frames; i++) {
        double at = x + speed * 0.04 * i;
        step(f, &at, 1);
    }
    return x + speed * 0.04 * (frames - 1);
}

static const struct sac_target *only_target(const struct follow *f)
{
    assert_int_equal(f->trk->target_count, 1);
    return &f->trk->targets[0];
}

/* Two boxes fit the prediction equally; one lies where the target was heading. */
static void direction_decides_between_equals(void **state)
{
    (void)state;
    struct follow f = open_follow(SAC_TRACKER_OCSORT);
    walk(&f, 100, 100, 25);
    int64_t id = only_target(&f)->id;
    double  next = (double)only_target(&f)->filter.axis[SAC_AXIS_X].x + 4;
    double  both[] = {next - 12, next + 12};
    step(&f, both, 2);
    assert_int_equal(f.view.count, 1); /* the other one is not yet confirmed */
    assert_int_equal(f.view.tracks[0].id, id);
    assert_int_equal(f.view.tracks[0].detection, 1);
    sac_tracker_destroy(&f.trk);
}

/* Somebody fast stops behind a pillar: the prediction runs away, the box is where it was last seen.
 * A tracker that looks at predictions only takes it for somebody else. */
static void who_stopped_is_found_where_last_seen(void **state)
{
    (void)state;
    static const enum sac_tracker_kind kinds[] = {SAC_TRACKER_OCSORT, SAC_TRACKER_BYTETRACK};
    for (size_t k = 0; k < SAC_COUNT(kinds); k++) {
        struct follow f = open_follow(kinds[k]);
        double        x = walk(&f, 100, 200, 25);
        int64_t       id = only_target(&f)->id;
        for (int i = 0; i < 25; i++)
            step(&f, NULL, 0);
        walk(&f, x, 0, 5);
        assert_int_equal(f.view.count, 1);
        assert_int_equal(f.view.tracks[0].id == id, kinds[k] == SAC_TRACKER_OCSORT);
        sac_tracker_destroy(&f.trk);
    }
}

/* While hidden somebody walked on at another speed. The line between the two sightings tells which;
 * a plain filter learns it from one box only. */
static void found_again_has_the_speed_of_the_line(void **state)
{
    (void)state;
    static const enum sac_tracker_kind kinds[] = {SAC_TRACKER_OCSORT, SAC_TRACKER_BYTETRACK};
    double                             off[SAC_COUNT(kinds)];
    for (size_t k = 0; k < SAC_COUNT(kinds); k++) {
        struct follow f = open_follow(kinds[k]);
        double        x = walk(&f, 100, 100, 50);
        int64_t       id = only_target(&f)->id;
        for (int i = 0; i < 24; i++)
            step(&f, NULL, 0);
        walk(&f, x + 70, 70, 1); /* 25 frames, one second, later */
        assert_int_equal(only_target(&f)->id, id);
        off[k] = fabs(only_target(&f)->filter.axis[SAC_AXIS_X].v - 70);
        sac_tracker_destroy(&f.trk);
    }
    print_message("speed off by %.1f and, plain, by %.1f pixels per second\n", off[0], off[1]);
    assert_true(off[0] < 5);
    assert_true(off[0] < off[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(direction_decides_between_equals),
        cmocka_unit_test(who_stopped_is_found_where_last_seen),
        cmocka_unit_test(found_again_has_the_speed_of_the_line),
    };
    return cmocka_run_group_tests_name("track/ocsort", tests, NULL, NULL);
}
