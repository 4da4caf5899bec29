/* SPDX-License-Identifier: Apache-2.0 */
/* A Resize to the size that its input has is no step; one that only seems to be stays. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* The batch, then `hw`, as sizes. */
#define SIZES                                        \
    {"Shape", "x", "s"}, {"Slice", "s s0 s2", "nc"}, \
    {                                                \
        "Concat", "nc hw", "sizes", "axis", "0"      \
    }
#define BOUNDS    \
    {"s0", "0"},  \
    {             \
        "s2", "2" \
    }
#define END              \
    {                    \
        "Relu", "t", "y" \
    }

static const struct spelling stay[] = {
    {"another size",
     "? 3 4 6",
     "? 3 4 7",
     {BOUNDS, {"hw", "4 7"}},
     {SIZES, {"Resize", "x none none sizes", "t"}, END},
     1},
    {"twice the batch, as open as the batch",
     "? 3 4 6",
     "? 3 4 6",
     {BOUNDS, {"s1", "1"}, {"chw", "3 4 6"}, {"two", "2"}},
     {{"Shape", "x", "s"},
      {"Slice", "s s0 s1", "n"},
      {"Mul", "n two", "m"},
      {"Concat", "m chw", "sizes", "axis", "0"},
      {"Resize", "x none none sizes", "t"},
      {"Slice", "t s0 n s0", "u"},
      {"Relu", "u", "y"}},
     1},
    {"scales that give the same size",
     "? 3 4 6",
     "? 3 4 6",
     {{"unread", "1"}},
     {{"Resize", "x none more", "t"}, END},
     1},
};
static const struct spelling go[] = {
    {"the same sizes",
     "? 3 4 6",
     "? 3 4 6",
     {BOUNDS, {"hw", "4 6"}},
     {SIZES, {"Resize", "x none none sizes", "t"}, END},
     0,
     1},
    {"scales of one",
     "? 3 4 6",
     "? 3 4 6",
     {{"unread", "1"}},
     {{"Resize", "x none ones", "t"}, END},
     0,
     1},
};

static void constants(struct proto *graph)
{
    const float ones[] = {1, 1, 1, 1}, more[] = {1, 1, 1, 1.1f};
    proto_initializer(graph, "none", 1, "0", ones, 0);
    proto_initializer(graph, "ones", 1, "4", ones, sizeof ones);
    proto_initializer(graph, "more", 1, "4", more, sizeof more);
}

static void what_changes_nothing_goes(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(go); i++)
        spelling_check(&go[i], "Resize", constants);
}

static void what_moves_pixels_stays(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(stay); i++)
        spelling_check(&stay[i], "Resize", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_changes_nothing_goes),
        cmocka_unit_test(what_moves_pixels_stays),
    };
    return cmocka_run_group_tests(tests, NULL, close_device);
}
