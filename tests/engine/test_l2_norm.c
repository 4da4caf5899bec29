/* SPDX-License-Identifier: Apache-2.0 */
/* Lines over their length, which has a floor, as exporters spell them, are one step each. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

static const struct spelling spellings[] = {
    {"normalize of PyTorch",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"ReduceL2", "x", "n", "axes", "-1 "},
      {"Clip", "n floor", "c"},
      {"Shape", "x", "s"},
      {"Expand", "c s", "e"},
      {"Div", "x e", "y"}},
     1,
     1},
    {"over the channels of a map, where most are below the floor",
     "? 5 3 4",
     "? 5 3 4",
     {{NULL}},
     {{"ReduceL2", "x", "n", "axes", "1 "}, {"Max", "high n", "c"}, {"Div", "x c", "y"}},
     1,
     1},
    {"the root of a sum of squares",
     "? 5 24",
     "? 5 24",
     {{"last", "-1"}},
     {{"Pow", "x two", "q"},
      {"ReduceSum", "q last", "t"},
      {"Sqrt", "t", "n"},
      {"Clip", "n floor", "c"},
      {"Div", "x c", "y"}},
     1,
     1},
    {"l2_normalize of TensorFlow, of a floor below the root",
     "? 5 24",
     "? 5 24",
     {{"middle", "1"}},
     {{"Mul", "x x", "q"},
      {"ReduceSum", "q middle", "t"},
      {"Max", "t high", "m"},
      {"Sqrt", "m", "n"},
      {"Reciprocal", "n", "r"},
      {"Mul", "r x", "y"}},
     1,
     1},
    {"both floors, and a power in the root's place",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"ReduceSumSquare", "x", "t", "axes", "1 "},
      {"Max", "t high", "m"},
      {"Pow", "m half", "n"},
      {"Clip", "n floor", "c"},
      {"Div", "one c", "r"},
      {"Mul", "x r", "y"}},
     1,
     1},
    {"one over a root",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"ReduceSumSquare", "x", "t", "axes", "1 "},
      {"Max", "t floor", "m"},
      {"Pow", "m minus_half", "r"},
      {"Mul", "x r", "y"}},
     1,
     1},
    {"magnitudes",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"ReduceL1", "x", "n", "axes", "2 "}, {"Clip", "n high", "c"}, {"Div", "x c", "y"}},
     1,
     1},
    {"no floor",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"ReduceL2", "x", "n", "axes", "-1 "}, {"Div", "x n", "y"}},
     0},
    {"a floor and a ceiling",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"ReduceL2", "x", "n", "axes", "-1 "}, {"Clip", "n floor two", "c"}, {"Div", "x c", "y"}},
     0},
    {"another value's length",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"Mul", "x two", "z"},
      {"ReduceL2", "z", "n", "axes", "-1 "},
      {"Clip", "n floor", "c"},
      {"Div", "x c", "y"}},
     0},
    {"over two axes",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"ReduceL2", "x", "n", "axes", "1 2"}, {"Clip", "n floor", "c"}, {"Div", "x c", "y"}},
     0},
    {"squares of products",
     "? 5 24",
     "? 5 24",
     {{"last", "-1"}},
     {{"Pow", "x two", "q"},
      {"Mul", "x q", "p"},
      {"ReduceSum", "p last", "t"},
      {"Max", "t floor", "m"},
      {"Sqrt", "m", "n"},
      {"Div", "x n", "y"}},
     0},
};

static void number(struct proto *graph, const char *name, float value)
{
    proto_initializer(graph, name, 1, "", &value, sizeof value);
}

static void constants(struct proto *graph)
{
    number(graph, "floor", 1e-12f);
    number(graph, "high", 2.3f); /* between the lengths in question */
    number(graph, "one", 1);
    number(graph, "two", 2);
    number(graph, "half", 0.5f);
    number(graph, "minus_half", -0.5f);
}

static void each_is_one_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "LpNormalization", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_one_step)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
