/* SPDX-License-Identifier: Apache-2.0 */
/* An Expand goes where those who read it broadcast to the same shape without it, and stays where
 * they do not. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

static const struct spelling go[] = {
    {"to the shape of the other operand",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"ReduceMax", "x", "m", "axes", "-1 "},
      {"Shape", "x", "s"},
      {"Expand", "m s", "e"},
      {"Sub", "x e", "y"}},
     0,
     2},
    {"to the same dims of another value",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"ReduceMax", "x", "m", "axes", "-1 "},
      {"Relu", "x", "r"},
      {"Shape", "r", "s"},
      {"Expand", "m s", "e"},
      {"Max", "e x", "y"}},
     0},
    {"to the dims of windows, of which each sample has two",
     "? 4 6",
     "? 4 6",
     {{"windows", "-1 2 6"},
      {"back", "-1 4 6"},
      {"s0", "0"},
      {"s1", "1"},
      {"dims", "2 6"},
      {"two", "2"}},
     {{"Reshape", "x windows", "w"},
      {"ReduceMax", "w", "m", "axes", "-1 "},
      {"Shape", "x", "s"},
      {"Slice", "s s0 s1", "n"},
      {"Mul", "n two", "times"},
      {"Concat", "times dims", "to", "axis", "0"},
      {"Expand", "m to", "e"},
      {"Sub", "w e", "d"},
      {"Reshape", "d back", "y"}},
     0},
    {"to constants, from fewer dims",
     "? 5 24",
     "? 5 24",
     {{"map", "1 5 24"}},
     {{"Expand", "row map", "e"}, {"Mul", "x e", "y"}},
     0,
     1},
    {"to the dims that it has, for whoever broadcasts",
     "? 5 24",
     "? 5 24",
     {{"map", "1 5 1"}},
     {{"Expand", "x map", "e"}, {"Add", "e row", "y"}},
     0,
     1},
    {"to the dims that it has, for whoever does not broadcast",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"Relu", "x", "r"},
      {"Shape", "x", "s"},
      {"Expand", "r s", "e"},
      {"Softmax", "e", "y", "axis", "-1"}},
     0,
     2},
    {"of which others than the sum take all",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"ReduceMax", "x", "m", "axes", "-1 "},
      {"Shape", "x", "s"},
      {"Expand", "m s", "e"},
      {"Mul", "x e", "p"},
      {"Div", "p e", "q"},
      {"Add", "e q", "y"}},
     0},
};
static const struct spelling stay[] = {
    {"another batch of as many windows at one size",
     "? 4 6",
     "? 2 2 6",
     {{"windows", "-1 2 6"},
      {"back", "-1 2 2 6"},
      {"s0", "0"},
      {"s1", "1"},
      {"dims", "2 6"},
      {"two", "2"}},
     {{"Reshape", "x windows", "w"},
      {"ReduceMax", "w", "m", "axes", "0 1"},
      {"Shape", "x", "s"},
      {"Slice", "s s0 s1", "n"},
      {"Mul", "n two", "times"},
      {"Concat", "times dims", "to", "axis", "0"},
      {"Expand", "m to", "e"},
      {"Reshape", "e back", "y"}},
     1},
    {"wider than the other operand",
     "? 5 1",
     "? 5 24",
     {{"map", "1 5 24"}},
     {{"Relu", "x", "r"}, {"Expand", "r map", "e"}, {"Add", "e x", "y"}},
     1},
    {"more dims than the other operand",
     "? 24",
     "1 ? 24",
     {{"map", "1 1 1"}},
     {{"Relu", "x", "r"}, {"Expand", "r map", "e"}, {"Add", "e x", "y"}},
     1},
    {"by itself on both sides",
     "? 5 1",
     "? 5 24",
     {{"map", "1 5 24"}},
     {{"Expand", "x map", "e"}, {"Mul", "e e", "y"}},
     1},
    {"a batch that the other operand lacks",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"ReduceMax", "x", "m", "axes", "0 "},
      {"Shape", "x", "s"},
      {"Expand", "m s", "e"},
      {"Add", "e m", "y"}},
     1},
};

static void constants(struct proto *graph)
{
    float row[24];
    for (int i = 0; i < 24; i++)
        row[i] = spelling_number(i);
    proto_initializer(graph, "row", 1, "24", row, sizeof row);
}

static void what_broadcasts_is_not_expanded(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(go); i++)
        spelling_check(&go[i], "Expand", constants);
}

static void what_makes_dims_stays(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(stay); i++)
        spelling_check(&stay[i], "Expand", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_broadcasts_is_not_expanded),
                                       cmocka_unit_test(what_makes_dims_stays)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
