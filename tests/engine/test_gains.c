/* SPDX-License-Identifier: Apache-2.0 */
/* Maps that are added to themselves, gated, are read once. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* clang-format off */
#define GATE(axes, channel)                                                      \
    {"ReduceL2", "x", "l", "axes", axes}, {"ReduceMean", "l", "m", "axes", channel}, \
    {"Add", "m epsilon", "e"}, {"Div", "l e", "g"}, {"Mul", "x g", "p"}
/* clang-format on */

static const struct spelling spellings[] = {
    {"a response norm, and the convolution that takes its shift",
     "? 8 3 4",
     "? 8 3 4",
     {{NULL}},
     {GATE("2 3", "1 "),
      {"Mul", "scale p", "q"},
      {"Mul", "q one", "r"},
      {"Add", "shift r", "t"},
      {"Add", "x t", "u"},
      {"Conv", "u weights", "y"}},
     1,
     7}, /* two convert layouts */
    {"a convolution that pads what is shifted",
     "? 8 3 4",
     "? 8 5 6",
     {{NULL}},
     {GATE("2 3", "1 "),
      {"Mul", "p scale", "q"},
      {"Add", "q shift", "t"},
      {"Add", "t x", "u"},
      {"Conv", "u weights", "y", "pads", "1 1 1 1"}},
     1,
     8},
    {"by another gate only",
     "? 8 3 4",
     "? 8 3 4",
     {{NULL}},
     {{"GlobalAveragePool", "x", "m"},
      {"Sigmoid", "m", "g"},
      {"Mul", "g x", "p"},
      {"Add", "x p", "y"}},
     1,
     5},
    {"a gate, factors and a shortcut: one chain",
     "? 8 3 4",
     "? 8 3 4",
     {{NULL}},
     {{"GlobalAveragePool", "x", "m"},
      {"Sigmoid", "m", "g"},
      {"Abs", "x", "a"},
      {"Mul", "a g", "p"},
      {"Mul", "p scale", "q"},
      {"Mul", "q scale", "r"},
      {"Add", "x r", "s"},
      {"Relu", "s", "y"}},
     0,
     3},
    {"an activation behind a gate",
     "? 8 3 4",
     "? 8 3 4",
     {{NULL}},
     {{"GlobalAveragePool", "x", "m"},
      {"Sigmoid", "m", "g"},
      {"Mul", "g x", "p"},
      {"Relu", "p", "y"}},
     1,
     5},
    {"one behind a sum of gated maps, and one of them by itself",
     "? 8 3 4",
     "? 8 3 4",
     {{NULL}},
     {{"GlobalAveragePool", "x", "m"},
      {"Sigmoid", "m", "g"},
      {"Tanh", "m", "h"},
      {"Mul", "g x", "p"},
      {"Relu", "p", "q"},
      {"Mul", "h x", "r"},
      {"Add", "q r", "s"},
      {"HardSwish", "s", "y"}},
     2},
    {"one of what others read",
     "? 8 3 4",
     "? 8 3 4",
     {{NULL}},
     {{"GlobalAveragePool", "x", "m"},
      {"Sigmoid", "m", "g"},
      {"Mul", "g x", "p"},
      {"Relu", "p", "y"}},
     1,
     7,
     "p",
     "? 8 3 4"},
    {"others are added",
     "? 8 3 4",
     "? 8 3 4",
     {{NULL}},
     {{"GlobalAveragePool", "x", "m"},
      {"Sigmoid", "m", "g"},
      {"Relu", "x", "o"},
      {"Exp", "o", "more"},
      {"Mul", "g x", "p"},
      {"Add", "o p", "q"},
      {"Add", "q more", "y"}},
     0,
     3},
    {"a gate of what was shifted",
     "? 8 3 4",
     "? 8 3 4",
     {{NULL}},
     {{"GlobalAveragePool", "x", "m"},
      {"Sigmoid", "m", "g"},
      {"Add", "x shift", "q"},
      {"Mul", "g q", "p"},
      {"Add", "x p", "y"}},
     0,
     3},
};
static const struct spelling last[] = {
    {"channels last",
     "? 3 4 8",
     "? 3 4 8",
     {{NULL}},
     {GATE("1 2", "-1 "),
      {"Mul", "row_scale p", "q"},
      {"Add", "q row_shift", "t"},
      {"Add", "t x", "y"}},
     2,
     4},
};

static void constants(struct proto *graph)
{
    const float one = 1, epsilon = 1e-6f;
    float       scale[8], shift[8], weights[64];
    for (int i = 0; i < 8; i++) {
        scale[i] = spelling_number(i);
        shift[i] = spelling_number(i + 31);
    }
    for (int i = 0; i < 64; i++)
        weights[i] = 0.2f * spelling_number(i + 5);
    proto_initializer(graph, "one", 1, "", &one, sizeof one);
    proto_initializer(graph, "epsilon", 1, "", &epsilon, sizeof epsilon);
    proto_initializer(graph, "scale", 1, "1 8 1 1", scale, sizeof scale);
    proto_initializer(graph, "shift", 1, "8 1 1", shift, sizeof shift);
    proto_initializer(graph, "row_scale", 1, "8", scale, sizeof scale);
    proto_initializer(graph, "row_shift", 1, "1 8", shift, sizeof shift);
    proto_initializer(graph, "weights", 1, "8 8 1 1", weights, sizeof weights);
}

static void maps_are_read_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "GatedSum", constants);
    for (size_t i = 0; i < SAC_COUNT(last); i++)
        spelling_check(&last[i], "Chain", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(maps_are_read_once)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
