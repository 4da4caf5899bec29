/* SPDX-License-Identifier: Apache-2.0 */
/* What is collected into a batch, and what becomes of one that failed: with a source and a device
 * of numbers, whose every step is written down. */
#include <stdio.h>
#include <string.h>

#include "serve/collect.h"
#include "tests/engine/device.h"

/* Items are numbers: what they count for is in their tens, 0 for a mark. */
struct plan {
    const int *items; /* ends with -1 */
    int        at;
    bool       arrives; /* batches have arrived as soon as they are looked at */
    int        fits;    /* batches of more items have no memory; 0: all have */
    int        odd;     /* this item fails by itself; 0: none */
    int        rooms;
    int        lined[32], lined_count;
    char       told[512];
};

static void tell(struct plan *p, const char *what, int number)
{
    const size_t used = strlen(p->told);
    snprintf(p->told + used, sizeof p->told - used, "%s%d ", what, number);
}

static void tell_batch(struct plan *p, const char *what, const struct sac_batch *b)
{
    const size_t used = strlen(p->told);
    snprintf(p->told + used, sizeof p->told - used, "%s[", what);
    for (size_t i = 0; i < b->count; i++)
        tell(p, "", *(const int *)b->items[i]);
    p->told[strlen(p->told) - 1] = ']';
}

/* A source that is empty for now says so once its items are over, then that it has ended. -2: none
 * comes for now. */
static sac_result next_wait(void *user, int size_max, int64_t timeout_ns, struct sac_collected *out)
{
    struct plan *p = user;
    const int   *item = &p->items[p->at];
    (void)timeout_ns;
    if (*item == -1)
        return SAC_EOS;
    if (*item / 10 > size_max)
        return SAC_ERR_LIMIT;
    p->at++;
    if (*item == -2)
        return SAC_AGAIN;
    *out = (struct sac_collected){(void *)item, *item / 10, sac_time_ns()};
    return SAC_OK;
}

static int64_t room(void *user)
{
    return ((struct plan *)user)->rooms;
}

static sac_result run(struct plan *p, const int *items, int n)
{
    for (int i = 0; i < n; i++)
        if (p->odd && items[i] == p->odd)
            return SAC_ERR_FORMAT;
    return p->fits && n > p->fits ? SAC_ERR_MEMORY : SAC_OK;
}

static sac_result begin(void *user, struct sac_batch *b)
{
    struct plan *p = user;
    tell_batch(p, "+", b);
    p->lined_count = 0;
    for (size_t i = 0; i < b->count; i++)
        if (*(const int *)b->items[i] >= 10)
            p->lined[p->lined_count++] = *(const int *)b->items[i];
    return run(p, p->lined, p->lined_count);
}

static bool arrived(void *user, const struct sac_batch *b)
{
    (void)b;
    return ((struct plan *)user)->arrives;
}

static struct sac_collector *current;

static void land(void *user, struct sac_batch *b)
{
    struct plan *p = user;
    if (b->begun != SAC_OK)
        sac_collector_retry(current, b, p->lined_count, b->begun);
    tell_batch(p, "-", b);
}

static void alone(void *user, void *item, sac_result res)
{
    tell(user, res == SAC_OK ? "alone " : "failed ", *(int *)item);
}

static sac_result again(void *user, struct sac_batch *b, int first, int n)
{
    struct plan *p = user;
    (void)b;
    tell(p, "try ", n);
    return run(p, p->lined + first, n);
}

static void fail_one(void *user, int item, sac_result res)
{
    struct plan *p = user;
    tell(p, res == SAC_ERR_FORMAT ? "odd " : "large ", p->lined[item]);
}

static const struct sac_collector_calls calls = {.next_wait = next_wait,
                                                 .room = room,
                                                 .begin = begin,
                                                 .arrived = arrived,
                                                 .land = land,
                                                 .alone = alone,
                                                 .again = again,
                                                 .fail = fail_one};

/* Runs to the end, and compares what happened. */
static void expect(struct sac_collector c, struct plan p, const char *told)
{
    c.calls = &calls;
    c.user = &p;
    c.dev = device();
    c.unit = "items";
    c.depth = c.depth ? c.depth : 1;
    c.slots = c.depth;
    c.small_ns = 1000000000;
    current = &c;
    sac_collector_run(&c);
    sac_collector_finish(&c);
    assert_string_equal(p.told, told);
}

static const int64_t LONG = 3600000000000;

static void full_batches_begin(void **state)
{
    (void)state;
    const int items[] = {11, 12, 13, 14, 15, -1};
    expect((struct sac_collector){.most = 2, .timeout_ns = LONG},
           (struct plan){.items = items, .arrives = true},
           "+[11 12]-[11 12]+[13 14]-[13 14]+[15]-[15]");
    /* of two under way the second begins before the first has landed */
    expect((struct sac_collector){.most = 2, .timeout_ns = LONG, .depth = 2},
           (struct plan){.items = items}, "+[11 12]+[13 14]-[11 12]+[15]-[13 14]-[15]");
}

static void items_wait_no_longer_than_they_may(void **state)
{
    (void)state;
    const int items[] = {11, -2, 12, 13, -1};
    expect((struct sac_collector){.most = 3, .timeout_ns = 0},
           (struct plan){.items = items, .arrives = true}, "+[11]-[11]+[12 13]-[12 13]");
    expect((struct sac_collector){.most = 3, .timeout_ns = LONG},
           (struct plan){.items = items, .arrives = true}, "+[11 12 13]-[11 12 13]");
}

static void an_idle_device_gets_the_least(void **state)
{
    (void)state;
    const int items[] = {11, -2, 12, -2, 13, -2, 14, -1};
    expect((struct sac_collector){.most = 8, .least = 1, .timeout_ns = LONG},
           (struct plan){.items = items, .arrives = true},
           "+[11]-[11]+[12]-[12]+[13]-[13]+[14]-[14]");
    expect((struct sac_collector){.most = 8, .least = 2, .timeout_ns = LONG},
           (struct plan){.items = items, .arrives = true}, "+[11 12]-[11 12]+[13 14]-[13 14]");
    /* one that is busy gets what was preferred, or what the others leave */
    expect(
        (struct sac_collector){
            .most = 8, .least = 1, .preferred = 3, .timeout_ns = LONG, .depth = 2},
        (struct plan){.items = items}, "+[11]+[12 13 14]-[11]-[12 13 14]");
}

static void a_batch_that_has_all_waits_for_nobody(void **state)
{
    (void)state;
    const int items[] = {11, 12, 13, 14, -1};
    expect((struct sac_collector){.most = 8, .timeout_ns = LONG},
           (struct plan){.items = items, .rooms = 2, .arrives = true},
           "+[11 12]-[11 12]+[13 14]-[13 14]");
}

static void marks_keep_their_place(void **state)
{
    (void)state;
    const int items[] = {1, 11, 12, 2, 13, 3, 4, -1};
    expect((struct sac_collector){.most = 2, .timeout_ns = LONG, .depth = 2},
           (struct plan){.items = items}, "alone 1 +[11 12]+[13 3 4]-[11 12 2]-[13 3 4]");
}

static void larger_items_wait_for_the_next(void **state)
{
    (void)state;
    const int items[] = {21, 31, 12, 13, -1};
    expect((struct sac_collector){.most = 4, .timeout_ns = LONG},
           (struct plan){.items = items, .arrives = true}, "+[21]-[21]+[31 12]-[31 12]+[13]-[13]");
}

static void late_items_are_not_taken_early(void **state)
{
    (void)state;
    const int items[] = {11, 12, 13, -1};
    expect((struct sac_collector){.most = 1, .timeout_ns = LONG, .depth = 2, .late = true},
           (struct plan){.items = items}, "+[11]+[12]-[11]+[13]-[12]-[13]");
}

static void batches_without_memory_are_halved(void **state)
{
    (void)state;
    const int items[] = {11, 12, 13, 14, 15, 16, -1};
    expect((struct sac_collector){.most = 4, .timeout_ns = LONG},
           (struct plan){.items = items, .fits = 1, .arrives = true},
           "+[11 12 13 14]try 2 try 1 try 1 try 1 try 1 -[11 12 13 14]"
           "+[15]-[15]+[16]-[16]");
}

static void a_fault_is_one_items_own(void **state)
{
    (void)state;
    const int items[] = {11, 12, 13, -1};
    expect((struct sac_collector){.most = 4, .timeout_ns = LONG},
           (struct plan){.items = items, .odd = 12, .arrives = true},
           "+[11 12 13]try 1 try 1 odd 12 try 1 -[11 12 13]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_batches_begin),
        cmocka_unit_test(items_wait_no_longer_than_they_may),
        cmocka_unit_test(an_idle_device_gets_the_least),
        cmocka_unit_test(a_batch_that_has_all_waits_for_nobody),
        cmocka_unit_test(marks_keep_their_place),
        cmocka_unit_test(larger_items_wait_for_the_next),
        cmocka_unit_test(late_items_are_not_taken_early),
        cmocka_unit_test(batches_without_memory_are_halved),
        cmocka_unit_test(a_fault_is_one_items_own),
    };
    return cmocka_run_group_tests_name("serve/collect", tests, NULL, close_device);
}
