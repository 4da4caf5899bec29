/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise nodes that follow each other are one Chain, with the numbers of the nodes that it
 * replaces. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

static const struct spelling spellings[] = {
    {"one after the other",
     "? 4 6",
     "? 4 6",
     {{"none", "0"}},
     {{"Mul", "x half", "a"}, {"Add", "a row", "b"}, {"Sigmoid", "b", "c"}, {"Sub", "one c", "y"}},
     1,
     1},
    {"the logarithm of odds",
     "? 4 6",
     "? 4 6",
     {{"none", "0"}},
     {{"Clip", "x zero one", "c"},
      {"Sub", "one c", "d"},
      {"Clip", "c small", "e"},
      {"Max", "d small", "f"},
      {"Div", "e f", "q"},
      {"Log", "q", "y"}},
     1,
     1},
    {"cheap numbers that two read are made twice",
     "? 8 6",
     "? 8 6",
     {{"parts", "4 4"}},
     {{"Split", "x parts", "l r", "axis", "1"},
      {"Sub", "row l", "first"},
      {"Add", "row r", "last"},
      {"Add", "first last", "sum"},
      {"Mul", "sum half", "centre"},
      {"Sub", "last first", "size"},
      {"Concat", "centre size", "y", "axis", "1"}},
     2},
    {"cheap numbers that are broadcast",
     "? 4 6",
     "? 4 6",
     {{"none", "0"}},
     {{"ReduceMean", "x", "m", "axes", "-1 "},
      {"Add", "small m", "a"},
      {"Mul", "a half", "b"},
      {"Div", "x b", "y"}},
     1,
     2},
    {"costly numbers that are broadcast are made once",
     "? 4 6",
     "? 4 6",
     {{"none", "0"}},
     {{"ReduceMean", "x", "m", "axes", "-1 "}, {"Exp", "m", "e"}, {"Div", "x e", "y"}},
     0,
     3},
    {"costly numbers that two read are not",
     "? 4 6",
     "? 8 6",
     {{"none", "0"}},
     {{"Exp", "x", "e"},
      {"Add", "e row", "a"},
      {"Mul", "e half", "b"},
      {"Concat", "a b", "y", "axis", "1"}},
     0},
    {"numbers that are an output too",
     "? 4 6",
     "? 4 6",
     {{"none", "0"}},
     {{"Exp", "x", "e"}, {"Add", "e row", "y"}},
     0,
     0,
     "e",
     "? 4 6"},
    {"squares and roots",
     "? 4 6",
     "? 4 6",
     {{"none", "0"}},
     {{"Mul", "x half", "h"},
      {"Pow", "h two", "p"},
      {"Add", "p one", "a"},
      {"Pow", "a half", "r"},
      {"Mul", "r row", "y"}},
     1,
     1},
    {"smaller numbers are not made for each that they stand beside",
     "? 4 6",
     "? 4 6",
     {{"axis", "2"}},
     {{"ReduceMean", "x", "m", "axes", "2"},
      {"Exp", "m", "e"},
      {"Sub", "x e", "d"},
      {"Mul", "d d", "s"},
      {"Add", "s half", "y"}},
     1},
    {"a sum of products of six",
     "? 4 6",
     "? 4 6",
     {{"none", "0"}},
     {{"ReduceMean", "x", "m", "axes", "1"},
      {"ReduceMax", "x", "n", "axes", "1"},
      {"ReduceMean", "x", "r", "axes", "2"},
      {"ReduceMax", "x", "q", "axes", "2"},
      {"Mul", "x m", "a"},
      {"Mul", "row r", "b"},
      {"Add", "a b", "c"},
      {"Mul", "q n", "d"},
      {"Add", "c d", "y"}},
     1},
    {"one of ten, which is more than there is room for",
     "? 4 6",
     "? 4 6",
     {{"none", "0"}},
     {{"ReduceMean", "x", "m", "axes", "1"},
      {"ReduceMax", "x", "n", "axes", "1"},
      {"ReduceMin", "x", "o", "axes", "1"},
      {"ReduceL2", "x", "p", "axes", "1"},
      {"ReduceMean", "x", "q", "axes", "2"},
      {"ReduceMax", "x", "r", "axes", "2"},
      {"ReduceMin", "x", "s", "axes", "2"},
      {"ReduceL2", "x", "t", "axes", "2"},
      {"Mul", "x m", "a"},
      {"Mul", "n q", "b"},
      {"Mul", "o r", "c"},
      {"Mul", "p s", "d"},
      {"Mul", "row t", "e"},
      {"Add", "a b", "f"},
      {"Add", "f c", "g"},
      {"Add", "g d", "h"},
      {"Add", "h e", "y"}},
     1},
};

static void constants(struct proto *graph)
{
    const float number[] = {0, 1, 2, 0.5f, 0.001f};
    const char *name[] = {"zero", "one", "two", "half", "small"};
    float       row[6];
    for (int i = 0; i < 6; i++)
        row[i] = spelling_number(i);
    for (size_t i = 0; i < SAC_COUNT(name); i++)
        proto_initializer(graph, name[i], 1, "", &number[i], sizeof number[i]);
    proto_initializer(graph, "row", 1, "6", row, sizeof row);
}

static void each_spelling_is_one_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "Chain", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_spelling_is_one_step)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
