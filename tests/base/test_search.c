/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "base/search.h"
#include "../test.h"

static int64_t number_of(const void *rows, size_t i)
{
    return ((const int64_t *)rows)[i];
}

static void finds_the_first_of_equal_numbers(void **state)
{
    (void)state;
    static const int64_t rows[] = {-5, 2, 2, 2, 7, INT64_MAX};
    static const struct {
        int64_t number;
        size_t  at;
    } cases[] = {{INT64_MIN, 0}, {-5, 0}, {-4, 1}, {2, 1}, {3, 4}, {7, 4}, {8, 5}, {INT64_MAX, 5}};
    for (size_t i = 0; i < SAC_COUNT(cases); i++)
        assert_int_equal(sac_lower_bound(rows, SAC_COUNT(rows), cases[i].number, number_of),
                         cases[i].at);
}

static void finds_the_end_behind_all(void **state)
{
    (void)state;
    static const int64_t rows[] = {1, 2};
    assert_int_equal(sac_lower_bound(rows, 2, 3, number_of), 2);
    assert_int_equal(sac_lower_bound(NULL, 0, 3, number_of), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_first_of_equal_numbers),
        cmocka_unit_test(finds_the_end_behind_all),
    };
    return cmocka_run_group_tests_name("base/search", tests, NULL, NULL);
}
