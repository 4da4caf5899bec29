/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/tail.h"

#include <math.h>

#include "tests/test.h"

static const int INTERVAL_MS = 1000;

struct timed {
    sac_timers     *timers;
    int             id, span;
    struct sac_tail tail;
};

static struct timed new_timed(int interval_ms)
{
    struct timed t = {0};
    assert_sac_ok(sac_timers_create(test_context(), &t.timers));
    t.id = sac_timers_id(t.timers, "latency");
    sac_tail_init(&t.tail, interval_ms);
    return t;
}

static void finish(struct timed *t)
{
    sac_tail_finish(&t->tail);
    sac_timers_destroy(&t->timers);
}

static void add(struct timed *t, int n, double ms)
{
    for (int i = 0; i < n; i++)
        sac_timer_add(t->timers, t->id, (int64_t)(ms * 1e6));
}

static double look(struct timed *t)
{
    return sac_tail_look(&t->tail, t->timers, t->id, &t->span);
}

static void assert_ms(double is, double ms)
{
    if (!(fabs(is - ms) <= 0.02 * ms))
        fail_msg("%g ms in place of %g", is, ms);
}

/* Where a sample has enough, what was before does not count. */
static void a_sample_with_enough_stands_alone(void **state)
{
    (void)state;
    struct timed t = new_timed(INTERVAL_MS);
    add(&t, 500, 80);
    assert_ms(look(&t), 80);
    add(&t, 99, 10);
    add(&t, 1, 200); /* one in a hundred: the p99 is the other one's */
    assert_ms(look(&t), 10);
    assert_int_equal(t.span, 1);
    add(&t, 98, 10);
    add(&t, 2, 200);
    assert_ms(look(&t), 200);
    assert_true(isnan(look(&t))); /* nothing was counted */
    finish(&t);
}

/* 25 a second: over four seconds. A moment's late ones are in four values, then they are over. */
static void few_are_looked_at_together(void **state)
{
    (void)state;
    struct timed t = new_timed(INTERVAL_MS);
    for (int i = 0; i < 30; i++) {
        const bool late = i == 20;
        add(&t, 25, late ? 90 : 10);
        assert_ms(look(&t), i >= 20 && i < 24 ? 90 : 10);
        assert_int_equal(t.span, SAC_MIN(i + 1, 4));
    }
    finish(&t);
}

/* One in two seconds: over a minute, and no longer. */
static void a_minute_is_enough(void **state)
{
    (void)state;
    struct timed t = new_timed(2000);
    add(&t, 1, 70);
    for (int i = 0; i < 40; i++) {
        assert_ms(look(&t), i < 30 ? 70 : 10);
        assert_int_equal(t.span, SAC_MIN(i + 1, 30));
        add(&t, 1, 10);
    }
    finish(&t);
}

static void without_timers_nothing_is_known(void **state)
{
    (void)state;
    struct timed t = new_timed(60000); /* the longest interval */
    sac_timers_destroy(&t.timers);
    assert_true(isnan(look(&t)));
    assert_true(isnan(look(&t)));
    finish(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_with_enough_stands_alone),
        cmocka_unit_test(few_are_looked_at_together),
        cmocka_unit_test(a_minute_is_enough),
        cmocka_unit_test(without_timers_nothing_is_known),
    };
    return cmocka_run_group_tests_name("observe/tail", tests, NULL, NULL);
}
