/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNormalization and RMSNormalization, as they are spelled by exporters that have no such
 * operator, are one step each, over channels wherever these lie. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* clang-format off */
#define CENTRE                                                    \
    {"ReduceMean", "x", "m", "axes", "-1 "}, {"Sub", "x m", "d"}, \
    {"Pow", "d two", "q"}, {"ReduceMean", "q", "v", "axes", "-1 "}, {"Add", "v epsilon", "e"}
/* clang-format on */

static const struct spelling layers[] = {
    {"tokens",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {CENTRE,
      {"Sqrt", "e", "s"},
      {"Div", "d s", "n"},
      {"Mul", "n scale", "w"},
      {"Add", "w shift", "y"}},
     1,
     1},
    {"tokens without scale, times one over the root",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {CENTRE, {"Sqrt", "e", "s"}, {"Reciprocal", "s", "r"}, {"Mul", "r d", "y"}},
     1,
     1},
    {"a power in the root's place",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {CENTRE,
      {"Pow", "e minus_half", "r"},
      {"Mul", "d r", "n"},
      {"Mul", "scale n", "w"},
      {"Add", "shift w", "y"}},
     1,
     1},
    {"channels of a map",
     "? 24 3 5",
     "? 24 3 5",
     {{NULL}},
     {{"ReduceMean", "x", "m", "axes", "1 "},
      {"Sub", "x m", "d"},
      {"Mul", "d d", "q"},
      {"ReduceMean", "q", "v", "axes", "1 "},
      {"Add", "epsilon v", "e"},
      {"Sqrt", "e", "s"},
      {"Div", "d s", "n"},
      {"Mul", "map_scale n", "w"},
      {"Add", "w map_shift", "y"}},
     1},
    {"another value's mean",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"Mul", "x two", "z"},
      {"ReduceMean", "z", "m", "axes", "-1 "},
      {"Sub", "x m", "d"},
      {"Pow", "d two", "q"},
      {"ReduceMean", "q", "v", "axes", "-1 "},
      {"Add", "v epsilon", "e"},
      {"Sqrt", "e", "s"},
      {"Div", "d s", "y"}},
     0},
    {"squares of what is not divided",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"ReduceMean", "x", "m", "axes", "-1 "},
      {"Sub", "x m", "d"},
      {"Pow", "x two", "q"},
      {"ReduceMean", "q", "v", "axes", "-1 "},
      {"Add", "v epsilon", "e"},
      {"Sqrt", "e", "s"},
      {"Div", "d s", "y"}},
     0},
};

static const struct spelling roots[] = {
    {"no mean taken off",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"Pow", "x two", "q"},
      {"ReduceMean", "q", "v", "axes", "-1 "},
      {"Add", "v epsilon", "e"},
      {"Sqrt", "e", "s"},
      {"Div", "one s", "r"},
      {"Mul", "x r", "n"},
      {"Mul", "scale n", "y"}},
     1,
     1},
    {"no mean taken off, and something added",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"Mul", "x x", "q"},
      {"ReduceMean", "q", "v", "axes", "-1 "},
      {"Add", "v epsilon", "e"},
      {"Sqrt", "e", "s"},
      {"Div", "x s", "n"},
      {"Add", "n shift", "y"}},
     0, /* a FusedNorm, as it has a shift */
     1},
};

static void constants(struct proto *graph)
{
    const float one = 1, two = 2, epsilon = 1e-5f, minus_half = -0.5f;
    float       scale[24], shift[24];
    for (int i = 0; i < 24; i++) {
        scale[i] = 1 + spelling_number(i) / 2;
        shift[i] = spelling_number(i + 31);
    }
    proto_initializer(graph, "one", 1, "", &one, sizeof one);
    proto_initializer(graph, "two", 1, "", &two, sizeof two);
    proto_initializer(graph, "epsilon", 1, "", &epsilon, sizeof epsilon);
    proto_initializer(graph, "minus_half", 1, "", &minus_half, sizeof minus_half);
    proto_initializer(graph, "scale", 1, "24", scale, sizeof scale);
    proto_initializer(graph, "shift", 1, "24", shift, sizeof shift);
    proto_initializer(graph, "map_scale", 1, "24 1 1", scale, sizeof scale);
    proto_initializer(graph, "map_shift", 1, "1 24 1 1", shift, sizeof shift);
}

static void each_is_one_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(layers); i++)
        spelling_check(&layers[i], "LayerNormalization", constants);
    for (size_t i = 0; i < SAC_COUNT(roots); i++)
        spelling_check(&roots[i], "RMSNormalization", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_one_step)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
