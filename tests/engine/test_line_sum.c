/* SPDX-License-Identifier: Apache-2.0 */
/* Lines over their sum are one step each, with the Softmax that they come from. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

static const struct spelling spellings[] = {
    {"over its sum",
     "? 5 24",
     "? 5 24",
     {{"last", "-1"}},
     {{"ReduceSum", "x last", "s"}, {"Div", "x s", "y"}},
     1,
     1},
    {"and a small number",
     "? 5 24",
     "? 5 24",
     {{"last", "2"}},
     {{"Relu", "x", "r"},
      {"ReduceSum", "r last", "s"},
      {"Add", "small s", "t"},
      {"Div", "r t", "y"}},
     1,
     2},
    {"shares that are mixed with fixed ones",
     "? 5 24",
     "? 5 24",
     {{"last", "-1"}},
     {{"Softmax", "x", "p"},
      {"Mul", "p gains", "q"},
      {"Add", "fixed q", "z"},
      {"ReduceSum", "z last", "s"},
      {"Div", "z s", "y"}},
     1,
     1},
    {"a sum whose dim is put back",
     "? 5 24",
     "? 5 24",
     {{"last", "-1"}},
     {{"Softmax", "x", "p"},
      {"ReduceSum", "p last", "s", "keepdims", "0"},
      {"Unsqueeze", "s last", "t"},
      {"Div", "p t", "y"}},
     1,
     1},
    {"a sum that is broadcast along another axis",
     "? 5 5",
     "? 5 5",
     {{"last", "-1"}, {"middle", "1"}},
     {{"ReduceSum", "x last", "s", "keepdims", "0"},
      {"Unsqueeze", "s middle", "t"},
      {"Div", "x t", "y"}},
     0},
    {"shares that are masked, in an open batch",
     "? 5 24",
     "? 5 24",
     {{"last", "-1"}},
     {{"Softmax", "x", "p"},
      {"Mul", "fixed p", "z"},
      {"ReduceSum", "z last", "s"},
      {"Add", "s small", "t"},
      {"Div", "z t", "y"}},
     1,
     1},
    {"shares of one",
     "? 5 1",
     "? 5 1",
     {{"last", "-1"}},
     {{"Softmax", "x", "p"}, {"ReduceSum", "p last", "s"}, {"Div", "p s", "y"}},
     1,
     1},
    {"shares that are read by others too",
     "? 5 24",
     "? 5 24",
     {{"last", "-1"}},
     {{"Softmax", "x", "p"},
      {"Mul", "p gains", "z"},
      {"ReduceSum", "z last", "s"},
      {"Div", "z s", "d"},
      {"MatMul", "p square", "m"},
      {"Add", "d m", "y"}},
     1},
    {"mixed shares that are an output",
     "? 5 24",
     "? 5 24",
     {{"last", "-1"}},
     {{"Softmax", "x", "p"},
      {"Mul", "p gains", "z"},
      {"ReduceSum", "z last", "s"},
      {"Div", "z s", "y"}},
     1,
     0,
     "z",
     "? 5 24"},
    {"a softmax along another axis",
     "? 5 24",
     "? 5 24",
     {{"last", "-1"}},
     {{"Softmax", "x", "p", "axis", "1"}, {"ReduceSum", "p last", "s"}, {"Div", "p s", "y"}},
     1,
     2},
    {"another axis",
     "? 5 24",
     "? 5 24",
     {{"middle", "1"}},
     {{"ReduceSum", "x middle", "s"}, {"Div", "x s", "y"}},
     0},
    {"all axes but the first",
     "? 5 24",
     "? 5 24",
     {{"two", "1 2"}},
     {{"ReduceSum", "x two", "s"}, {"Div", "x s", "y"}},
     0},
    {"another value's sum",
     "? 5 24",
     "? 5 24",
     {{"last", "-1"}},
     {{"Relu", "x", "r"}, {"ReduceSum", "r last", "s"}, {"Div", "x s", "y"}},
     0},
    {"the sum over it",
     "? 5 24",
     "? 5 24",
     {{"last", "-1"}},
     {{"Exp", "x", "e"}, {"ReduceSum", "e last", "s"}, {"Div", "s e", "y"}},
     0},
    {"a mean",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"ReduceMean", "x", "s", "axes", "-1 "}, {"Div", "x s", "y"}},
     0},
};

static void constants(struct proto *graph)
{
    float       fixed[5 * 24], gains[5], square[24 * 24];
    const float small = 1e-3f;
    for (int i = 0; i < 5 * 24; i++)
        fixed[i] = 1.5f + spelling_number(i);
    for (int i = 0; i < 5; i++)
        gains[i] = 2 + spelling_number(i);
    for (int i = 0; i < 24 * 24; i++)
        square[i] = spelling_number(i);
    proto_initializer(graph, "small", 1, "", &small, sizeof small);
    proto_initializer(graph, "fixed", 1, "5 24", fixed, sizeof fixed);
    proto_initializer(graph, "gains", 1, "5 1", gains, sizeof gains);
    proto_initializer(graph, "square", 1, "24 24", square, sizeof square);
}

static void each_is_one_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "FusedNorm", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_one_step)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
