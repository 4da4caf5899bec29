/* SPDX-License-Identifier: Apache-2.0 */
/* The search on made-up landscapes: what a point is worth is a function here. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/climb.h"
#include "tests/test.h"

static const struct climb_knob three[] = {{"batch", 8, 2}, {"threads", 17, 0}, {"mode", 2, 0}};

/* One hill, with its top at 6, 11, 1. */
static double hill(const int *at)
{
    return 100 - pow(at[0] - 6, 2) - 0.5 * pow(at[1] - 11, 2) + 10 * at[2];
}

static int search(struct climb *climb, double (*value)(const int *at))
{
    int point[CLIMB_KNOBS_MAX], asked = 0;
    while (climb_ask(climb, point)) {
        assert_true(climb_tell(climb, value(point)));
        asked++;
    }
    return asked;
}

static void the_top_of_a_hill_is_found_with_few_questions(void **state)
{
    (void)state;
    struct climb climb;
    climb_init(&climb, three, 3, &(struct climb_params){0});
    int asked = search(&climb, hill);
    assert_int_equal(climb.best[0], 6);
    assert_int_equal(climb.best[1], 11);
    assert_int_equal(climb.best[2], 1);
    assert_true(climb.best_value == 110);
    assert_in_range(asked, 8, 40); /* of 272 points */
    climb_finish(&climb);
}

static void the_first_question_is_the_start_and_none_comes_twice(void **state)
{
    (void)state;
    struct climb climb;
    int          point[CLIMB_KNOBS_MAX];
    climb_init(&climb, three, 3, &(struct climb_params){.restarts = 20, .seed = 3});
    assert_true(climb_ask(&climb, point));
    assert_int_equal(point[0], 2);
    assert_int_equal(point[1], 0);
    assert_int_equal(point[2], 0);
    search(&climb, hill);
    for (size_t i = 0; i < climb.told_count; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(memcmp(climb.told[i].at, climb.told[j].at, 3 * sizeof(int)) != 0);
    climb_finish(&climb);
}

/* From the start every single step leads down; the top is elsewhere. */
static double two_hills(const int *at)
{
    const double near = 50 - 9 * (abs(at[0] - 2) + abs(at[1]) + at[2]),
                 far = 90 - 3 * (abs(at[0] - 6) + abs(at[1] - 14));
    return fmax(near, at[2] ? far : 0);
}

static void new_beginnings_leave_a_hill_that_is_not_the_highest(void **state)
{
    (void)state;
    struct climb once, again;
    climb_init(&once, three, 3, &(struct climb_params){0});
    climb_init(&again, three, 3, &(struct climb_params){.restarts = 40, .seed = 1});
    search(&once, two_hills);
    search(&again, two_hills);
    assert_true(once.best_value == 50);
    assert_true(again.best_value == 90);
    climb_finish(&once);
    climb_finish(&again);
}

/* Values that differ by less than the margin: whatever is asked, the start stays the best. */
static double noise(const int *at)
{
    return 100 + (at[0] * 7 + at[1] * 3 + at[2]) % 3 * 0.4;
}

static void what_is_within_the_margin_is_no_step(void **state)
{
    (void)state;
    struct climb climb;
    climb_init(&climb, three, 3, &(struct climb_params){.margin = 0.02, .restarts = 5, .seed = 9});
    search(&climb, noise);
    assert_int_equal(climb.best[0], 2);
    assert_int_equal(climb.best[1], 0);
    assert_int_equal(climb.best[2], 0);
    climb_finish(&climb);
}

/* A batch past 4 does not fit; the best that fits is 4. */
static double fits(const int *at)
{
    return at[0] > 4 ? -INFINITY : 10 + at[0];
}

static void what_can_not_be_is_never_the_best(void **state)
{
    (void)state;
    struct climb climb;
    climb_init(&climb, three, 3, &(struct climb_params){.restarts = 8, .seed = 2});
    search(&climb, fits);
    assert_int_equal(climb.best[0], 4);
    climb_finish(&climb);
}

static void the_same_answers_lead_to_the_same_questions(void **state)
{
    (void)state;
    struct climb              first, second;
    int                       point[CLIMB_KNOBS_MAX];
    const struct climb_params params = {.restarts = 6, .seed = 77};
    climb_init(&first, three, 3, &params);
    climb_init(&second, three, 3, &params);
    search(&first, two_hills);
    for (size_t i = 0; i < first.told_count; i++) {
        assert_true(climb_ask(&second, point));
        assert_memory_equal(point, first.told[i].at, 3 * sizeof(int));
        assert_true(climb_tell(&second, first.told[i].value));
    }
    assert_false(climb_ask(&second, point));
    assert_memory_equal(first.best, second.best, sizeof first.best);
    climb_finish(&first);
    climb_finish(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_top_of_a_hill_is_found_with_few_questions),
        cmocka_unit_test(the_first_question_is_the_start_and_none_comes_twice),
        cmocka_unit_test(new_beginnings_leave_a_hill_that_is_not_the_highest),
        cmocka_unit_test(what_is_within_the_margin_is_no_step),
        cmocka_unit_test(what_can_not_be_is_never_the_best),
        cmocka_unit_test(the_same_answers_lead_to_the_same_questions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
