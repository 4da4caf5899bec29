/* SPDX-License-Identifier: Apache-2.0 */
/* The searches of saccade tune on made-up scores: what each sequence thinks of a point. */
#include <math.h>
#include <stdlib.h>

#include "src/cli/tune.h"
#include "tests/test.h"

enum { SEQUENCES = 3 };

struct world {
    int wants[SEQUENCES]; /* the place of match_iou that each sequence likes best */
    int measured[SEQUENCES];
    int left; /* measurements until it is ended */
};

static int measure(void *user, int sequence, const int *point, double *out)
{
    struct world *world = user;
    world->measured[sequence]++;
    world->left--;
    *out = 60 - 2 * abs(point[2] - world->wants[sequence]); /* the third knob alone matters */
    return 0;
}

static bool ended(void *user)
{
    return ((struct world *)user)->left <= 0;
}

static void run(struct tune_search *search, struct tune_knob *knobs, struct world *world)
{
    const struct sac_tracker_params baseline = sac_tracker_params_default(SAC_TRACKER_BYTETRACK);
    const int                       count = tune_knobs(&baseline, false, knobs);
    assert_int_equal(count, TUNE_KNOBS - 2);
    assert_string_equal(knobs[2].name, "match_iou");
    tune_search_init(search, knobs, count, SEQUENCES, 100, 5);
    search->measure = measure;
    search->ended = ended;
    search->user = world;
    assert_int_equal(tune_search_run(search), 0);
}

static void the_one_that_is_left_out_has_no_say(void **state)
{
    (void)state;
    struct tune_search search;
    struct tune_knob   knobs[TUNE_KNOBS];
    struct tune_fold   fold;
    struct world       world = {{0, 7, 7}, {0}, 100000};
    run(&search, knobs, &world);
    assert_int_equal(tune_search_fold(&search, 0, &fold), 0);
    assert_int_equal(fold.best[2], 7); /* what both others want */
    assert_true(fold.tuned == 60 - 2 * 7);
    assert_true(fold.baseline == 60 - 2 * knobs[2].start);
    assert_int_equal(search.climbs[SEQUENCES].best[2], 7); /* all three: two of them */
    tune_search_finish(&search);
}

static void no_point_is_measured_twice(void **state)
{
    (void)state;
    struct tune_search search;
    struct tune_knob   knobs[TUNE_KNOBS];
    struct world       world = {{4, 4, 4}, {0}, 100000};
    run(&search, knobs, &world);
    for (int i = 0; i < SEQUENCES; i++)
        assert_true((size_t)world.measured[i] <= search.count);
    tune_search_finish(&search);
}

static void an_early_end_leaves_the_best_so_far(void **state)
{
    (void)state;
    struct tune_search search;
    struct tune_knob   knobs[TUNE_KNOBS];
    struct tune_fold   fold;
    struct world       world = {{9, 9, 9}, {0}, SEQUENCES}; /* no more than the start */
    run(&search, knobs, &world);
    assert_int_equal(search.climbs[SEQUENCES].best[2], knobs[2].start);
    for (int i = 0; i < SEQUENCES; i++) {
        assert_int_equal(tune_search_fold(&search, i, &fold), 0);
        assert_true(fold.tuned == fold.baseline);
    }
    tune_search_finish(&search);
}

static void the_baseline_is_among_the_values(void **state)
{
    (void)state;
    struct sac_tracker_params baseline = sac_tracker_params_default(SAC_TRACKER_SORT);
    struct tune_knob          knobs[TUNE_KNOBS];
    int                       start[CLIMB_KNOBS_MAX] = {0};
    baseline.score_high = 0.07f; /* below all of the row's */
    baseline.score_new = 0.615f; /* between two */
    baseline.lost_max_s = 900;   /* above all */
    baseline.gallery_max = 5;
    const int count = tune_knobs(&baseline, true, knobs);
    assert_int_equal(count, TUNE_KNOBS);
    for (int k = 0; k < count; k++) {
        start[k] = knobs[k].start;
        for (int i = 1; i < knobs[k].count; i++)
            assert_true(knobs[k].values[i] > knobs[k].values[i - 1]);
    }
    const struct sac_tracker_params same = tune_params(&baseline, knobs, count, start);
    assert_memory_equal(&same, &baseline, sizeof same);
    assert_string_equal(knobs[count - 1].name, "gallery_max");
    start[count - 1]++;
    assert_int_equal(tune_params(&baseline, knobs, count, start).gallery_max, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_one_that_is_left_out_has_no_say),
        cmocka_unit_test(no_point_is_measured_twice),
        cmocka_unit_test(an_early_end_leaves_the_best_so_far),
        cmocka_unit_test(the_baseline_is_among_the_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
