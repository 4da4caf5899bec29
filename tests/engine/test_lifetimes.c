/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "engine/plan/lifetimes.h"
#include "tests/test.h"

enum { ITEMS_MAX = 200 };

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static int overlap(const struct sac_lifetime *a, const struct sac_lifetime *b)
{
    return a->bytes && b->bytes && a->first <= b->last && b->first <= a->last &&
           a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static void items_alive_together_never_overlap(void **state)
{
    (void)state;
    uint32_t seed = 7;
    for (int round = 0; round < 300; round++) {
        struct sac_lifetime items[ITEMS_MAX];
        size_t              count = next(&seed) % ITEMS_MAX, sum = 0;
        for (size_t i = 0; i < count; i++) {
            int first = (int)(next(&seed) % 60);
            items[i] = (struct sac_lifetime){.bytes = next(&seed) % 5 ? next(&seed) % 5000 : 0,
                                             .first = first,
                                             .last = first + (int)(next(&seed) % 10)};
            sum += (items[i].bytes + SAC_ACTIVATION_ALIGN - 1) / SAC_ACTIVATION_ALIGN *
                   SAC_ACTIVATION_ALIGN;
        }
        size_t bytes = sac_lifetimes_place(items, count, NULL, NULL);
        assert_true(bytes <= sum);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(items[i].offset % SAC_ACTIVATION_ALIGN, 0);
            assert_true(items[i].bytes == 0 || items[i].offset + items[i].bytes <= bytes);
            for (size_t k = 0; k < i; k++)
                assert_false(overlap(&items[i], &items[k]));
        }
    }
}

/* A chain where each step reads the last and writes the next needs room for two. */
static void memory_is_used_again(void **state)
{
    (void)state;
    struct sac_lifetime items[100];
    for (int i = 0; i < 100; i++)
        items[i] = (struct sac_lifetime){.bytes = 1000, .first = i, .last = i + 1};
    assert_int_equal(sac_lifetimes_place(items, 100, NULL, NULL), 2 * 1024);
}

static void sums_that_overflow_are_refused(void **state)
{
    (void)state;
    struct sac_lifetime items[3] = {{.bytes = SIZE_MAX / 2 - 100, .last = 1},
                                    {.bytes = SIZE_MAX / 2 - 100, .last = 1},
                                    {.bytes = SIZE_MAX / 2 - 100, .last = 1}};
    assert_true(sac_lifetimes_place(items, 3, NULL, NULL) == (size_t)-1);
    items[0].bytes = SIZE_MAX;
    assert_true(sac_lifetimes_place(items, 1, NULL, NULL) == (size_t)-1);
    assert_int_equal(sac_lifetimes_place(items, 0, NULL, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_alive_together_never_overlap),
        cmocka_unit_test(memory_is_used_again),
        cmocka_unit_test(sums_that_overflow_are_refused),
    };
    return cmocka_run_group_tests_name("engine/lifetimes", tests, NULL, NULL);
}
