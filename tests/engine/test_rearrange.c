/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of nodes that only move numbers become one Rearrange, with the numbers of the nodes that
 * it replaces. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* v rolled by one and by two, as t. */
#define ROLL(v, t)                                                                       \
    {"Slice", v " s1 end a1", t "a"}, {"Slice", v " s0 s1 a1", t "b"},                   \
        {"Concat", t "a " t "b", t "c", "axis", "1"}, {"Slice", t "c s2 end a2", t "d"}, \
        {"Slice", t "c s0 s2 a2", t "e"},                                                \
    {                                                                                    \
        "Concat", t "d " t "e", t, "axis", "2"                                           \
    }
#define BOUNDS                                                                          \
    {"s0", "0"}, {"s1", "1"}, {"s2", "2"}, {"end", "9223372036854775807"}, {"a1", "1"}, \
    {                                                                                   \
        "a2", "2"                                                                       \
    }
/* Every second row and column of v from y and x on. */
#define SKIP(v, y, x, t)                    \
    {"Slice", v " " y " end a1 s2", t "r"}, \
    {                                       \
        "Slice", t "r " x " end a2 s2", t   \
    }

static const struct spelling spellings[] = {
    {"a roll of two axes", "? 4 6 3", "? 4 6 3", {BOUNDS}, {ROLL("x", "y")}, 1, 1},
    {"rolled windows",
     "? 4 6 3",
     "? 6 3",
     {BOUNDS, {"apart", "-1 2 2 3 2 3"}, {"windows", "-1 6 3"}},
     {ROLL("x", "t"),
      {"Reshape", "t apart", "p"},
      {"Transpose", "p", "q", "perm", "0 1 3 2 4 5"},
      {"Reshape", "q windows", "y"}},
     1,
     1},
    {"windows put together and rolled",
     "? 2 2 2 3 3",
     "? 4 6 3",
     {BOUNDS, {"map", "-1 4 6 3"}},
     {{"Transpose", "x", "q", "perm", "0 1 3 2 4 5"}, {"Reshape", "q map", "m"}, ROLL("m", "y")},
     1,
     1},
    {"and something added",
     "? 2 2 2 3 3",
     "? 4 6 3",
     {BOUNDS, {"map", "-1 4 6 3"}},
     {{"Transpose", "x", "q", "perm", "0 1 3 2 4 5"},
      {"Reshape", "q map", "m"},
      ROLL("m", "t"),
      {"Reshape", "x map", "r"},
      {"Add", "r t", "y"}},
     1,
     1},
    {"windows put together and added",
     "? 2 2 2 3 3",
     "? 4 6 3",
     {{"map", "-1 4 6 3"}},
     {{"Transpose", "x", "q", "perm", "0 1 3 2 4 5"},
      {"Reshape", "q map", "m"},
      {"Reshape", "x map", "r"},
      {"Add", "m r", "y"}},
     1,
     1},
    {"padded to windows",
     "? 3 5 3",
     "? 6 3",
     {{"apart", "-1 2 2 3 2 3"}, {"windows", "-1 6 3"}, {"pads", "0 1 0 0 0 0 1 0"}},
     {{"Pad", "x pads", "t"},
      {"Reshape", "t apart", "p"},
      {"Transpose", "p", "q", "perm", "0 1 3 2 4 5"},
      {"Reshape", "q windows", "y"}},
     1,
     1},
    {"windows put together and cut",
     "? 2 2 2 3 3",
     "? 3 4 3",
     {{"map", "-1 4 6 3"}, {"from", "0 1"}, {"to", "3 -1"}, {"both", "1 2"}},
     {{"Transpose", "x", "q", "perm", "0 1 3 2 4 5"},
      {"Reshape", "q map", "m"},
      {"Slice", "m from to both", "y"}},
     1,
     1},
    {"space to depth",
     "? 4 6 3",
     "? 2 3 12",
     {BOUNDS},
     {SKIP("x", "s0", "s0", "a"),
      SKIP("x", "s1", "s0", "b"),
      SKIP("x", "s0", "s1", "c"),
      SKIP("x", "s1", "s1", "d"),
      {"Concat", "a b c d", "y", "axis", "-1"}},
     1,
     1},
    {"maps of channels first, rolled",
     "? 3 4 6",
     "? 3 4 6",
     {BOUNDS, {"a3", "3"}},
     {{"Slice", "x s1 end a2", "a"},
      {"Slice", "x s0 s1 a2", "b"},
      {"Concat", "a b", "c", "axis", "2"},
      {"Slice", "c s2 end a3", "d"},
      {"Slice", "c s0 s2 a3", "e"},
      {"Concat", "d e", "y", "axis", "3"}},
     1,
     1},
    {"half of a roll is an output too",
     "? 4 6 3",
     "? 4 6 3",
     {BOUNDS},
     {ROLL("x", "y")},
     2,
     2,
     "yc",
     "? 4 6 3"},
    {"backwards",
     "? 4 6 3",
     "? 4 6 3",
     {{"from", "-1"}, {"to", "-9"}, {"by", "-1"}, {"one", "1"}, {"two", "2"}},
     {{"Slice", "x from to one by", "t"}, {"Slice", "t from to two by", "y"}},
     0},
    {"parts in no order",
     "? 4 6 3",
     "? 4 6 3",
     {BOUNDS, {"s3", "3"}},
     {{"Slice", "x s3 end a1", "a"},
      {"Slice", "x s0 s1 a1", "b"},
      {"Slice", "x s1 s3 a1", "c"},
      {"Concat", "b a c", "y", "axis", "1"}},
     0},
    {"parts of two values",
     "? 4 6 3",
     "? 4 6 3",
     {BOUNDS},
     {{"Neg", "x", "n"},
      {"Slice", "x s1 end a1", "a"},
      {"Slice", "n s0 s1 a1", "b"},
      {"Concat", "a b", "y", "axis", "1"}},
     0},
    {"along the batch",
     "? 4 6 3",
     "? 4 6 3",
     {BOUNDS, {"a0", "0"}},
     {{"Slice", "x s1 end a0", "a"},
      {"Slice", "x s0 s1 a0", "b"},
      {"Concat", "a b", "y", "axis", "0"}},
     0},
    {"a Transpose for the layout",
     "? 4 6 3",
     "? 3 4 6",
     {BOUNDS},
     {ROLL("x", "t"), {"Transpose", "t", "y", "perm", "0 3 1 2"}},
     1},
};

static void each_spelling_is_one_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "Rearrange", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_spelling_is_one_step),
    };
    return cmocka_run_group_tests(tests, NULL, close_device);
}
