/* SPDX-License-Identifier: Apache-2.0 */
#include "base/start.h"
#include "base/base.h"
#include "tests/test.h"

static void pass(int64_t ms)
{
    const int64_t until = sac_time_ns() + ms * 1000000;
    while (sac_time_ns() < until)
        ;
}

static int64_t part(const struct sac_start *start, enum sac_start_part p)
{
    return atomic_load(&start->ns[p]);
}

/* A part has its own time: what is inside it belongs to the other. */
static void spans_nest(void **state)
{
    (void)state;
    struct sac_start        start = {0};
    struct sac_start_span   plan, weights;
    struct sac_start *const before = sac_start_use(&start);
    const int64_t           begun = sac_time_ns();
    sac_start_begin(&plan, SAC_START_PLAN);
    pass(2);
    sac_start_begin(&weights, SAC_START_WEIGHTS);
    pass(6);
    sac_start_end(&weights);
    pass(2);
    sac_start_end(&plan);
    const int64_t passed = sac_time_ns() - begun;
    assert_ptr_equal(sac_start_use(before), &start);
    assert_true(part(&start, SAC_START_PLAN) >= 4000000);
    assert_true(part(&start, SAC_START_WEIGHTS) >= 6000000);
    assert_true(part(&start, SAC_START_PLAN) + part(&start, SAC_START_WEIGHTS) <= passed);
}

/* What the check of a batch plans and loads is the check's. */
static void a_whole_part_keeps_what_is_inside(void **state)
{
    (void)state;
    struct sac_start        start = {0};
    struct sac_start_span   check, plan, after;
    struct sac_start *const before = sac_start_use(&start);
    sac_start_begin(&check, SAC_START_CHECK);
    sac_start_begin(&plan, SAC_START_PLAN);
    pass(2);
    sac_start_end(&plan);
    sac_start_end(&check);
    sac_start_begin(&after, SAC_START_PLAN);
    sac_start_end(&after);
    sac_start_use(before);
    assert_true(part(&start, SAC_START_CHECK) >= 2000000);
    assert_true(part(&start, SAC_START_PLAN) < 2000000);
}

static void nothing_is_counted_without_a_record(void **state)
{
    (void)state;
    struct sac_start      start = {0};
    struct sac_start_span span;
    assert_null(sac_start_use(NULL));
    sac_start_begin(&span, SAC_START_READ);
    sac_start_use(&start); /* begun before: not its time */
    pass(1);
    sac_start_end(&span);
    sac_start_use(NULL);
    for (int i = 0; i < SAC_START_PARTS; i++)
        assert_int_equal(part(&start, (enum sac_start_part)i), 0);
}

static sac_result pass_and_plan(void *arg)
{
    struct sac_start_span plan;
    assert_ptr_equal(sac_start_used(), arg);
    pass(2);
    sac_start_begin(&plan, SAC_START_PLAN);
    pass(2);
    sac_start_end(&plan);
    return SAC_AGAIN;
}

static void a_step_has_a_record_of_its_own(void **state)
{
    (void)state;
    struct sac_start        outer = {0}, inner = {0};
    struct sac_start *const before = sac_start_use(&outer);
    assert_int_equal(sac_start_step(&inner, SAC_START_INPUTS, pass_and_plan, &inner), SAC_AGAIN);
    assert_ptr_equal(sac_start_use(before), &outer);
    assert_true(part(&inner, SAC_START_INPUTS) >= 2000000);
    assert_true(part(&inner, SAC_START_PLAN) >= 2000000);
    assert_int_equal(part(&outer, SAC_START_INPUTS), 0);
}

static void who_has_the_record_hears_that_it_is_given_up(void **state)
{
    (void)state;
    struct sac_start        one = {0}, other = {0};
    struct sac_start *const before = sac_start_use(&one);
    sac_start_give_up(&other);
    assert_false(sac_start_given_up());
    sac_start_give_up(&one);
    assert_true(sac_start_given_up());
    sac_start_use(NULL); /* what is planned later in a run */
    assert_false(sac_start_given_up());
    sac_start_use(before);
}

static void parts_have_names(void **state)
{
    (void)state;
    for (int i = 0; i < SAC_START_PARTS; i++)
        for (int k = 0; k <= i; k++)
            assert_int_equal(strcmp(sac_start_part_name((enum sac_start_part)i),
                                    sac_start_part_name((enum sac_start_part)k)) == 0,
                             i == k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_nest),
        cmocka_unit_test(a_whole_part_keeps_what_is_inside),
        cmocka_unit_test(nothing_is_counted_without_a_record),
        cmocka_unit_test(a_step_has_a_record_of_its_own),
        cmocka_unit_test(who_has_the_record_hears_that_it_is_given_up),
        cmocka_unit_test(parts_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
