/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "src/cli/gain.h"
#include "tests/test.h"

static void the_interval_is_students(void **state)
{
    (void)state;
    const double      values[] = {1, 2, 3, 4};
    const struct gain gain = gain_of(values, 4);
    assert_true(gain.mean == 2.5);
    /* 3.182 * 1.29099 / 2, as a table and a pocket calculator have it */
    assert_true(fabs(gain.noise - 2.0540) < 1e-3);
    assert_true(gain_is_real(&gain));
}

static void what_may_be_chance_is_not_real(void **state)
{
    (void)state;
    const double      mixed[] = {2, -1, 3, -2}, lower[] = {-2, -2.1, -1.9}, two[] = {0.9, 0.1};
    const struct gain a = gain_of(mixed, 4), b = gain_of(lower, 3), c = gain_of(two, 2),
                      one = gain_of(two, 1), none = gain_of(two, 0);
    assert_false(gain_is_real(&a));
    assert_false(gain_is_real(&b));
    assert_false(gain_is_real(&c));
    assert_false(gain_is_real(&one));
    assert_false(gain_is_real(&none));
}

static void what_is_the_same_each_time_is_real(void **state)
{
    (void)state;
    const double      same[] = {0.5, 0.5, 0.5}, nothing[] = {0, 0, 0};
    const struct gain a = gain_of(same, 3), b = gain_of(nothing, 3);
    assert_true(gain_is_real(&a));
    assert_false(gain_is_real(&b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_interval_is_students),
        cmocka_unit_test(what_may_be_chance_is_not_real),
        cmocka_unit_test(what_is_the_same_each_time_is_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
