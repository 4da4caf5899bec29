/* SPDX-License-Identifier: Apache-2.0 */
/* How many threads hold a line by eights, and how many eights each: with as little room too much as
 * can be, and of what is alike few threads, where there are lines enough for a GPU. */
#include "engine/cuda/kernels/kernels.h"
#include "tests/test.h"

static const struct {
    int64_t numbers, lines;
    int     lanes, eights;
} held[] = {
    {32, 524288, 4, 1}, {64, 3, 8, 1},      {64, 131072, 4, 2}, {96, 3136, 4, 3},
    {160, 32768, 8, 3}, {192, 784, 8, 3},   {256, 8192, 16, 2}, {384, 6272, 16, 3},
    {512, 197, 32, 2},  {768, 6304, 32, 3}, {1024, 7, 32, 4},   {1536, 1568, 256, 1},
    {8192, 4, 256, 4},
};

static void threads_suit_the_line(void **state)
{
    const int types[] = {SAC_F16};
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(held); i++) {
        struct ops_lines l = {
            .outer = {.rank = 1, .count = held[i].lines, .step = {{held[i].numbers}}},
            .inner = {.rank = 1, .count = held[i].numbers, .step = {{1}}}};
        ops_choose_held(&l, 1, 0, types);
        assert_int_equal(l.held.pack, 8);
        if (l.held.lanes != held[i].lanes || l.held.eights != held[i].eights)
            fail_msg("%lld lines of %lld: %d threads of %d eights, not %d of %d",
                     (long long)held[i].lines, (long long)held[i].numbers, l.held.lanes,
                     l.held.eights, held[i].lanes, held[i].eights);
    }
}

/* By as many numbers as lie together. */
static void odd_lines_are_held_by_less(void **state)
{
    static const struct {
        int64_t numbers;
        int     lanes, pack;
    } odd[] = {{9, 8, 1},    {60, 8, 4},   {98, 16, 1},   {100, 16, 4},
               {197, 32, 1}, {196, 32, 4}, {1001, 32, 1}, {1100, 256, 4}};
    const int types[] = {SAC_F16};
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(odd); i++) {
        struct ops_lines l = {.outer = {.rank = 1, .count = 1000, .step = {{odd[i].numbers}}},
                              .inner = {.rank = 1, .count = odd[i].numbers, .step = {{1}}}};
        ops_choose_held(&l, 1, 0, types);
        assert_int_equal(l.held.pack, odd[i].pack);
        assert_int_equal(l.held.lanes, odd[i].lanes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_suit_the_line),
        cmocka_unit_test(odd_lines_are_held_by_less),
    };
    return cmocka_run_group_tests_name("parity/lines", tests, NULL, NULL);
}
