/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind a norm of lines is a part of it: constants, and the sum with a residual. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

static const struct spelling sums[] = {
    {"a residual around a layer and its norm",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"Tanh", "x", "f"}, {"LayerNormalization", "f row shift", "n"}, {"Add", "x n", "y"}},
     1,
     2},
    {"the norm of the residual itself, the other way round",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"RMSNormalization", "x row", "n"}, {"Add", "n x", "y"}},
     1,
     1},
    {"with the scale of a layer between",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"LayerNormalization", "x row shift", "n"}, {"Mul", "gain n", "m"}, {"Add", "m x", "y"}},
     1,
     1},
    {"over two dims",
     "? 5 4 6",
     "? 5 4 6",
     {{NULL}},
     {{"Tanh", "x", "f"},
      {"LayerNormalization", "f square", "n", "axis", "2"},
      {"Add", "x n", "y"}},
     1,
     2},
    {"lines of length one",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"LpNormalization", "x", "n"}, {"Add", "x n", "y"}},
     1,
     1},
    {"two norms",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"LayerNormalization", "x row shift", "n"},
      {"RMSNormalization", "x row", "m"},
      {"Add", "n m", "y"}},
     1,
     2},
    {"a norm that is an output too",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"LayerNormalization", "x row shift", "n"}, {"Add", "n x", "y"}},
     0,
     2,
     "n",
     "? 5 24"},
    {"a norm that is read twice",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"LayerNormalization", "x row shift", "n"},
      {"Add", "n x", "m"},
      {"MatMul", "n weights", "p"},
      {"Add", "m p", "y"}},
     0},
    {"plus itself",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"LayerNormalization", "x row shift", "n"}, {"Add", "n n", "y"}},
     0,
     2},
    {"a sum that is broadcast",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"ReduceMean", "x", "r", "axes", "1 "},
      {"LayerNormalization", "x row shift", "n"},
      {"Add", "n r", "y"}},
     0,
     3},
    {"a norm that is broadcast",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"ReduceMean", "x", "r", "axes", "1 "},
      {"LayerNormalization", "r row shift", "n"},
      {"Add", "n x", "y"}},
     0,
     3},
    {"two sums",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"Tanh", "x", "f"},
      {"LayerNormalization", "f row shift", "n"},
      {"Add", "n x", "m"},
      {"Add", "m f", "y"}},
     1,
     3},
};

static const struct spelling gains[] = {
    {"the scale of a layer",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"LayerNormalization", "x row shift", "n"}, {"Mul", "gain n", "y"}},
     1,
     1},
    {"without a shift of its own",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"LayerNormalization", "x row", "n"}, {"Mul", "n gain", "y"}},
     1,
     1},
    {"a shift, then a scale, then a shift",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"RMSNormalization", "x row", "n"},
      {"Add", "n shift", "a"},
      {"Mul", "a gain", "m"},
      {"Add", "places m", "y"}},
     1,
     1},
    {"a number for each head",
     "? 3 5 8",
     "? 3 5 8",
     {{NULL}},
     {{"LpNormalization", "x", "n"}, {"Mul", "n heads", "y"}},
     1,
     1},
    {"of a sum of magnitudes",
     "? 3 5 8",
     "? 3 5 8",
     {{NULL}},
     {{"LpNormalization", "x", "n", "p", "1"}, {"Mul", "n heads", "m"}, {"Add", "m heads", "y"}},
     1,
     1},
    {"a length along another axis",
     "? 3 5 8",
     "? 3 5 8",
     {{NULL}},
     {{"LpNormalization", "x", "n", "axis", "2"}, {"Mul", "n heads", "y"}},
     0,
     2},
    {"a constant that makes more lines",
     "? 1 24",
     "? 5 24",
     {{NULL}},
     {{"LayerNormalization", "x row shift", "n"}, {"Add", "n places", "y"}},
     0,
     2},
    {"a scale that is no constant",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"LayerNormalization", "x row shift", "n"}, {"Mul", "n x", "y"}},
     0,
     2},
    {"behind a sum",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"LayerNormalization", "x row shift", "n"}, {"Add", "n x", "m"}, {"Mul", "m gain", "y"}},
     1,
     2},
    {"a norm that is an output too",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"LayerNormalization", "x row shift", "n"}, {"Mul", "n gain", "y"}},
     0,
     2,
     "n",
     "? 5 24"},
};

static void floats(struct proto *graph, const char *name, const char *dims, int count, int phase)
{
    float data[24 * 24];
    for (int i = 0; i < count; i++)
        data[i] = spelling_number(i + phase) + 0.3f;
    proto_initializer(graph, name, 1, dims, data, (size_t)count * sizeof *data);
}

static void constants(struct proto *graph)
{
    floats(graph, "row", "24", 24, 1);
    floats(graph, "shift", "24", 24, 40);
    floats(graph, "gain", "24", 24, 77);
    floats(graph, "square", "4 6", 24, 5);
    floats(graph, "places", "5 24", 5 * 24, 9);
    floats(graph, "heads", "3 1 1", 3, 3);
    floats(graph, "weights", "24 24", 24 * 24, 13);
}

static void a_residual_is_added_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(sums); i++)
        spelling_check(&sums[i], "FusedNorm", constants);
}

static void constants_go_into_scale_and_shift(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(gains); i++)
        spelling_check(&gains[i], "FusedNorm", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_residual_is_added_at_once),
                                       cmocka_unit_test(constants_go_into_scale_and_shift)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
