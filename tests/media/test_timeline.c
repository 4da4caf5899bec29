/* SPDX-License-Identifier: Apache-2.0 */
#include "media/media.h"
#include "tests/test.h"

static void check(const int64_t *ts, const int64_t *expect, int n, uint64_t repaired)
{
    struct sac_timeline line = {.step_us = 40};
    for (int i = 0; i < n; i++)
        assert_int_equal(sac_timeline_next(&line, ts[i], 0), expect[i]);
    assert_int_equal(line.repaired, repaired);
}

static void starts_at_zero(void **state)
{
    (void)state;
    check((int64_t[]){5000, 5040, 5100}, (int64_t[]){0, 40, 100}, 3, 0);
    check((int64_t[]){-80, -40, 0}, (int64_t[]){0, 40, 80}, 3, 0);
}

static void fills_missing_times(void **state)
{
    (void)state;
    int64_t none = SAC_TIME_NONE;
    check((int64_t[]){none, none, none}, (int64_t[]){0, 40, 80}, 3, 3);
    check((int64_t[]){100, none, 180}, (int64_t[]){0, 40, 80}, 3, 1);
    /* the first known time is taken as the one that was expected */
    check((int64_t[]){none, 7000, 7040}, (int64_t[]){0, 40, 80}, 3, 1);
}

static void mends_single_steps_back(void **state)
{
    (void)state;
    check((int64_t[]){0, 40, 30, 120}, (int64_t[]){0, 40, 80, 120}, 4, 1);
    check((int64_t[]){0, 40, 40, 120}, (int64_t[]){0, 40, 80, 120}, 4, 1);
}

static void follows_a_clock_that_was_set_anew(void **state)
{
    (void)state;
    check((int64_t[]){0, 9000000, 0, 40, 80}, (int64_t[]){0, 9000000, 9000040, 9000080, 9000120}, 5,
          1);
}

static void uses_durations(void **state)
{
    (void)state;
    struct sac_timeline line = {0};
    assert_int_equal(sac_timeline_next(&line, 0, 100), 0);
    assert_int_equal(sac_timeline_next(&line, SAC_TIME_NONE, 0), 100);
}

static void refuses_absurd_numbers(void **state)
{
    (void)state;
    assert_int_equal(sac_time_us(AV_NOPTS_VALUE, (AVRational){1, 25}), SAC_TIME_NONE);
    assert_int_equal(sac_time_us(INT64_MAX, (AVRational){1, 25}), SAC_TIME_NONE);
    assert_int_equal(sac_time_us(-INT64_MAX, (AVRational){1, 25}), SAC_TIME_NONE);
    assert_int_equal(sac_time_us(5, (AVRational){0, 0}), SAC_TIME_NONE);
    assert_int_equal(sac_time_us(5, (AVRational){1, 25}), 200000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_at_zero),
        cmocka_unit_test(fills_missing_times),
        cmocka_unit_test(mends_single_steps_back),
        cmocka_unit_test(follows_a_clock_that_was_set_anew),
        cmocka_unit_test(uses_durations),
        cmocka_unit_test(refuses_absurd_numbers),
    };
    return cmocka_run_group_tests_name("media/timeline", tests, NULL, NULL);
}
