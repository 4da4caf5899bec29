/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of requests: who goes first, who waits no longer, and what is full. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "serve/waiting.h"
#include "tests/test.h"

static struct sac_waiting queue;

static void open_queue(int max, int64_t step_ns)
{
    assert_sac_ok(sac_waiting_init(&queue, test_context(), max, step_ns));
}

static sac_result put(int64_t id, int priority, int size)
{
    struct sac_request_params params = sac_request_params_default();
    sac_request              *r = NULL;
    params.id = id;
    params.priority = priority;
    assert_sac_ok(sac_request_create(test_context(), &params, 0, NULL, NULL, 0, &r));
    r->size = size;
    sac_result res = sac_waiting_push(&queue, r, false);
    if (res != SAC_OK)
        sac_request_unref(&r);
    return res;
}

static int64_t taken(void)
{
    sac_request *r = NULL;
    assert_sac_ok(sac_waiting_pop_wait(&queue, 1, 0, &r));
    const int64_t id = r->params.id;
    sac_request_unref(&r);
    return id;
}

static void higher_ones_go_first_and_each_priority_in_order(void **state)
{
    (void)state;
    static const int priorities[] = {0, 2, 1, 0, 2, -3, 1, 2, 0, 7};
    static const int order[] = {9, 1, 4, 7, 2, 6, 0, 3, 8, 5};
    for (int64_t step = 0; step <= 3600000000000; step += 3600000000000) {
        open_queue(10, step);
        for (int i = 0; i < 10; i++)
            assert_sac_ok(put(i, priorities[i], 1));
        for (int i = 0; i < 10; i++)
            assert_int_equal(taken(), order[i]);
        sac_waiting_finish(&queue);
    }
}

static void a_low_one_waits_its_steps_and_no_longer(void **state)
{
    (void)state;
    const struct timespec twenty = {.tv_nsec = 20000000};
    open_queue(10, 10000000); /* 10 ms a step */
    assert_sac_ok(put(1, 0, 1));
    nanosleep(&twenty, NULL);
    assert_sac_ok(put(2, 1, 1));    /* came more than a step later */
    assert_sac_ok(put(3, 1000, 1)); /* but not a thousand */
    assert_int_equal(taken(), 3);
    assert_int_equal(taken(), 1);
    assert_int_equal(taken(), 2);
    sac_waiting_finish(&queue);
}

static void it_is_full_and_it_is_closed(void **state)
{
    (void)state;
    sac_request *r = NULL;
    int          count, count_max;
    open_queue(2, 0);
    assert_sac_error(sac_waiting_pop_wait(&queue, 1, 0, &r), SAC_AGAIN);
    assert_sac_error(sac_waiting_pop_wait(&queue, 1, 1000000, &r), SAC_AGAIN);
    assert_sac_ok(put(1, 0, 3));
    assert_sac_ok(put(2, 0, 1));
    assert_sac_error(put(3, 0, 1), SAC_AGAIN);
    assert_sac_error(sac_waiting_pop_wait(&queue, 2, 0, &r), SAC_ERR_LIMIT);
    assert_sac_ok(sac_waiting_pop_wait(&queue, 3, 0, &r));
    sac_request_unref(&r);
    sac_waiting_close(&queue);
    assert_sac_error(put(4, 0, 1), SAC_ERR_CANCELLED);
    assert_int_equal(taken(), 2);
    assert_sac_error(sac_waiting_pop_wait(&queue, 1, -1, &r), SAC_EOS);
    sac_waiting_get(&queue, &count, &count_max);
    assert_int_equal(count, 0);
    assert_int_equal(count_max, 2);
    sac_waiting_finish(&queue);
}

static void those_that_are_late_are_taken_out(void **state)
{
    (void)state;
    open_queue(10, 0);
    for (int i = 0; i < 8; i++) {
        struct sac_request_params params = sac_request_params_default();
        sac_request              *r = NULL;
        params.id = i;
        params.priority = i;
        assert_sac_ok(sac_request_create(test_context(), &params, 0, NULL, NULL, 0, &r));
        r->size = 1;
        r->deadline_ns = i % 3 == 0 ? 0 : i % 3 == 1 ? 100 : 200;
        assert_sac_ok(sac_waiting_push(&queue, r, false));
    }
    assert_null(sac_waiting_take_late(&queue, 100));
    sac_request *next, *r = sac_waiting_take_late(&queue, 150);
    int          late = 0;
    for (; r; r = next, late++) {
        next = r->next;
        assert_int_equal(r->params.id % 3, 1);
        sac_request_unref(&r);
    }
    assert_int_equal(late, 3);
    static const int left[] = {6, 5, 3, 2, 0}; /* still in their order */
    for (int i = 0; i < 5; i++)
        assert_int_equal(taken(), left[i]);
    assert_null(sac_waiting_take_all(&queue));
    sac_waiting_finish(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(higher_ones_go_first_and_each_priority_in_order),
        cmocka_unit_test(a_low_one_waits_its_steps_and_no_longer),
        cmocka_unit_test(it_is_full_and_it_is_closed),
        cmocka_unit_test(those_that_are_late_are_taken_out),
    };
    return cmocka_run_group_tests_name("serve/waiting", tests, NULL, NULL);
}
