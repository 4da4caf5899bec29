/* SPDX-License-Identifier: Apache-2.0 */
#include "media/media.h"
#include "tests/test.h"

static void steps_within_the_limit_stay(void **state)
{
    (void)state;
    struct sac_gaps gaps = {.max_us = 100}, none = {0};
    for (int64_t us = 0; us <= 1000; us += 100) {
        assert_false(sac_gaps_note(&gaps, us));
        assert_int_equal(sac_gaps_apply(&gaps, us), us);
    }
    assert_false(sac_gaps_note(&none, 0));
    assert_false(sac_gaps_note(&none, INT64_MAX / 2));
    assert_int_equal(sac_gaps_apply(&none, INT64_MAX / 2), INT64_MAX / 2);
}

static void longer_steps_are_shortened_for_all_that_follows(void **state)
{
    (void)state;
    struct sac_gaps gaps = {.max_us = 100};
    sac_gaps_note(&gaps, 50);
    assert_true(sac_gaps_note(&gaps, 1000));
    assert_int_equal(sac_gaps_apply(&gaps, 1000), 150);
    assert_int_equal(sac_gaps_apply(&gaps, 1010), 160);
    assert_int_equal(sac_gaps_apply(&gaps, 50), 50); /* sound of before, which may come late */
    assert_int_equal(sac_gaps_apply(&gaps, 150), 150);
    assert_int_equal(sac_gaps_apply(&gaps, 151), SAC_TIME_NONE);
    assert_false(sac_gaps_note(&gaps, 1100));
    assert_int_equal(sac_gaps_apply(&gaps, 1100), 250);
    assert_true(sac_gaps_note(&gaps, 2000));
    assert_int_equal(sac_gaps_apply(&gaps, 2000), 350);
    assert_int_equal(sac_gaps_apply(&gaps, 1200), 350);
    assert_int_equal(sac_gaps_apply(&gaps, 1150), 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_within_the_limit_stay),
        cmocka_unit_test(longer_steps_are_shortened_for_all_that_follows),
    };
    return cmocka_run_group_tests_name("media/gaps", tests, NULL, NULL);
}
