/* SPDX-License-Identifier: Apache-2.0 */
/* The mean of constants by the shares of a Softmax, as exporters spell it, is one Expectation with
 * the numbers of the nodes that it replaces. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

#define BINS "apart", "-1 4 8 21"

static const struct spelling spellings[] = {
    {"a convolution of one pixel",
     "? 32 21",
     "? 4 21",
     {{BINS}, {"sides", "-1 4 21"}},
     {{"Reshape", "x apart", "b"},
      {"Transpose", "b", "t", "perm", "0 2 1 3"},
      {"Softmax", "t", "p", "axis", "1"},
      {"Conv", "p conv", "m"},
      {"Reshape", "m sides", "y"}},
     1},
    {"of some channels of maps",
     "? 37 3 7",
     "? 4 21",
     {{BINS}, {"sides", "-1 4 21"}, {"from", "5"}, {"to", "37"}, {"one", "1"}},
     {{"Slice", "x from to one", "c"},
      {"Reshape", "c apart", "b"},
      {"Transpose", "b", "t", "perm", "0 2 1 3"},
      {"Softmax", "t", "p", "axis", "1"},
      {"Conv", "p conv", "m"},
      {"Reshape", "m sides", "y"}},
     1},
    {"a product, the sides last",
     "? 32 21",
     "? 21 4",
     {{"apart", "-1 21 4 8"}},
     {{"Transpose", "x", "t", "perm", "0 2 1"},
      {"Reshape", "t apart", "b"},
      {"Softmax", "b", "p", "axis", "3"},
      {"MatMul", "p vector", "y"}},
     1},
    {"a product with channels last, all lines one list",
     "? 21 32",
     "? 21 4",
     {{"apart", "-1 8"}, {"sides", "-1 21 4"}},
     {{"Reshape", "x apart", "b"},
      {"Softmax", "b", "p", "axis", "1"},
      {"MatMul", "p column", "m"},
      {"Reshape", "m sides", "y"}},
     1},
    {"a sum of products",
     "? 32 21",
     "? 4 21",
     {{BINS}, {"axis", "2"}},
     {{"Reshape", "x apart", "b"},
      {"Softmax", "b", "p", "axis", "2"},
      {"Mul", "p row", "m"},
      {"ReduceSum", "m axis", "y", "keepdims", "0"}},
     1},
    {"a sum over what is no bin",
     "? 32 21",
     "? 8 21",
     {{BINS}, {"axis", "1"}},
     {{"Reshape", "x apart", "b"},
      {"Softmax", "b", "p", "axis", "2"},
      {"Mul", "p row", "m"},
      {"ReduceSum", "m axis", "y", "keepdims", "0"}},
     0},
    {"shares that are an output too",
     "? 32 21",
     "? 4 21",
     {{BINS}, {"axis", "2"}},
     {{"Reshape", "x apart", "b"},
      {"Softmax", "b", "p", "axis", "2"},
      {"Mul", "p row", "m"},
      {"ReduceSum", "m axis", "y", "keepdims", "0"}},
     0,
     0,
     "p",
     "? 4 8 21"},
    {"bins before the sides: one group of a map",
     "? 32 21",
     "? 4 21",
     {{"mixed", "-1 8 4 21"}, {"sides", "-1 4 21"}},
     {{"Reshape", "x mixed", "t"},
      {"Softmax", "t", "p", "axis", "1"},
      {"Conv", "p conv", "m"},
      {"Reshape", "m sides", "y"}},
     1},
};

static void constants(struct proto *graph)
{
    float w[8];
    for (int i = 0; i < 8; i++)
        w[i] = (float)i;
    proto_initializer(graph, "conv", 1, "1 8 1 1", w, sizeof w);
    proto_initializer(graph, "vector", 1, "8", w, sizeof w);
    proto_initializer(graph, "column", 1, "8 1", w, sizeof w);
    proto_initializer(graph, "row", 1, "1 8 1", w, sizeof w);
}

static void each_spelling_is_one_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "Expectation", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_spelling_is_one_step)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
