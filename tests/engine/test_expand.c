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
    {"positions that are projected, turned and summed up for each sample",
     "? 5 24",
     "? 5 24",
     {{"map", "1 24 5"}, {"rest", "24 5"}, {"ones", "1"}, {"zero", "0"}, {"one", "1"}},
     {{"Shape", "x", "s"},
      {"Slice", "s zero one", "n"},
      {"Concat", "n rest", "wanted", "axis", "0"},
      {"Expand", "table wanted", "e"},
      {"MatMul", "e mixing", "p"},
      {"Add", "p bias", "q"},
      {"Softmax", "q", "r", "axis", "1"},
      {"Transpose", "r", "t", "perm", "0 2 1"},
      {"Add", "x t", "y"}},
     0,
     1},
    {"the same of what is computed once",
     "? 5 24",
     "? 5 24",
     {{"rest", "24 5"}, {"zero", "0"}, {"one", "1"}},
     {{"Shape", "x", "s"},
      {"Slice", "s zero one", "n"},
      {"Concat", "n rest", "wanted", "axis", "0"},
      {"ReduceMax", "x", "m", "axes", "0 "},
      {"Transpose", "m", "v", "perm", "0 2 1"},
      {"Expand", "v wanted", "e"},
      {"Tanh", "e", "p"},
      {"ReduceSum", "p", "q", "axes", "1 "},
      {"Transpose", "p", "t", "perm", "0 2 1"},
      {"Mul", "x t", "y"}},
     0},
};
static const struct spelling stay[] = {
    {"what is different from sample to sample beside it",
     "? 5 1",
     "? 5 24",
     {{"map", "1 5 24"}},
     {{"Relu", "x", "r"}, {"Expand", "r map", "e"}, {"Exp", "e", "y"}},
     1},
    {"the sum of all samples",
     "? 5 24",
     "1 5 24",
     {{NULL}},
     {{"Shape", "x", "s"},
      {"ReduceMax", "x", "m", "axes", "0 "},
      {"Expand", "m s", "e"},
      {"ReduceSum", "e", "y", "axes", "0 "}},
     1},
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
    float table[24 * 5];
    for (int i = 0; i < 24 * 5; i++)
        table[i] = spelling_number(3 * i + 1);
    proto_initializer(graph, "table", 1, "1 24 5", table, sizeof table);
    proto_initializer(graph, "mixing", 1, "5 5", table, 25 * sizeof *table);
    proto_initializer(graph, "bias", 1, "5", table, 5 * sizeof *table);
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
