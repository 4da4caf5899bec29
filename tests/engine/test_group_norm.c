/* SPDX-License-Identifier: Apache-2.0 */
/* GroupNormalization as exporters spell it, an InstanceNormalization of the groups between two
 * Reshapes, is one step over the map; of one group it takes an activation in. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* Exporters write -1 last, which a batch of none does not determine. */
/* clang-format off */
#define OF_GROUPS(groups)                                                                    \
    {"Reshape", "x apart", "r"}, {"InstanceNormalization", "r ones" groups " zeros" groups, "n"}, \
    {"Shape", "x", "dims"}, {"Reshape", "n dims", "m"}
/* clang-format on */
#define AFFINE                \
    {"Mul", "m scale", "w"},  \
    {                         \
        "Add", "w shift", "y" \
    }

static const struct spelling samples[] = {
    {"one group", "? 24 3 5", "? 24 3 5", {{"apart", "0 1 360"}}, {OF_GROUPS("1"), AFFINE}, 1, 1},
    {"one group, an activation",
     "? 24 3 5",
     "? 24 3 5",
     {{"apart", "0 1 360"}},
     {OF_GROUPS("1"), {"Mul", "scale m", "w"}, {"Add", "shift w", "a"}, {"Relu", "a", "y"}},
     1,
     1},
    {"one group of tokens that become a map",
     "? 15 24",
     "? 24 3 5",
     {{"map", "-1 24 3 5"}, {"apart", "-1 1 360"}},
     {{"Transpose", "x", "t", "perm", "0 2 1"},
      {"Reshape", "t map", "tm"},
      {"Reshape", "tm apart", "r"},
      {"InstanceNormalization", "r ones1 zeros1", "n"},
      {"Reshape", "n map", "m"},
      AFFINE},
     1},
    {"no group, but all of the batch and its channels",
     "2 24 3 5",
     "2 24 3 5",
     {{"apart", "1 1 -1"}, {"map", "2 24 3 5"}},
     {{"Reshape", "x apart", "r"},
      {"InstanceNormalization", "r ones1 zeros1", "n"},
      {"Reshape", "n map", "m"},
      AFFINE},
     0},
};

static const struct spelling groups[] = {
    {"four groups", "? 24 3 5", "? 24 3 5", {{"apart", "0 4 90"}}, {OF_GROUPS("4"), AFFINE}, 1, 1},
    {"four groups without scale and shift",
     "? 24 3 5",
     "? 24 3 5",
     {{"apart", "0 4 90"}},
     {OF_GROUPS("4"), {"Mul", "m whole", "w"}, {"Add", "w nothing", "y"}},
     1,
     1},
    {"a scale and a shift of each group too",
     "? 24 3 5",
     "? 24 3 5",
     {{"apart", "0 4 90"}},
     {{"Reshape", "x apart", "r"},
      {"InstanceNormalization", "r scale4 shift4", "n"},
      {"Shape", "x", "dims"},
      {"Reshape", "n dims", "m"},
      AFFINE},
     1,
     1},
    {"four groups of a sequence",
     "? 24 7",
     "? 24 7",
     {{"apart", "0 4 42"}},
     {OF_GROUPS("4"), {"Mul", "m scale2", "w"}, {"Add", "w shift2", "y"}},
     1,
     1},
    {"a scale that others read before the shift",
     "? 24 3 5",
     "? 24 3 5",
     {{"apart", "0 4 90"}},
     {OF_GROUPS("4"), {"Mul", "m scale", "w"}, {"Add", "w shift", "a"}, {"Mul", "a w", "y"}},
     1},
    {"groups that are no whole channels",
     "? 24 3 5",
     "? 24 3 5",
     {{"apart", "0 5 72"}},
     {OF_GROUPS("5"), AFFINE},
     0},
    {"a scale of each column",
     "? 24 3 5",
     "? 24 3 5",
     {{"apart", "0 4 90"}},
     {OF_GROUPS("4"), {"Mul", "m columns", "y"}},
     1,
     2},
};

static void constants(struct proto *graph)
{
    const float one = 1, zero = 0, ones[5] = {1, 1, 1, 1, 1}, zeros[5] = {0};
    float       scale[24], shift[24];
    for (int i = 0; i < 24; i++) {
        scale[i] = 1 + spelling_number(i) / 2;
        shift[i] = spelling_number(i + 31);
    }
    proto_initializer(graph, "ones1", 1, "1", ones, sizeof *ones);
    proto_initializer(graph, "zeros1", 1, "1", zeros, sizeof *zeros);
    proto_initializer(graph, "ones4", 1, "4", ones, 4 * sizeof *ones);
    proto_initializer(graph, "zeros4", 1, "4", zeros, 4 * sizeof *zeros);
    proto_initializer(graph, "ones5", 1, "5", ones, sizeof ones);
    proto_initializer(graph, "zeros5", 1, "5", zeros, sizeof zeros);
    proto_initializer(graph, "scale4", 1, "4", scale + 7, 4 * sizeof *scale);
    proto_initializer(graph, "shift4", 1, "4", shift + 7, 4 * sizeof *shift);
    proto_initializer(graph, "whole", 1, "1 1 1", &one, sizeof one);
    proto_initializer(graph, "nothing", 1, "1 1 1", &zero, sizeof zero);
    proto_initializer(graph, "scale", 1, "24 1 1", scale, sizeof scale);
    proto_initializer(graph, "shift", 1, "1 24 1 1", shift, sizeof shift);
    proto_initializer(graph, "scale2", 1, "24 1", scale, sizeof scale);
    proto_initializer(graph, "shift2", 1, "24 1", shift, sizeof shift);
    proto_initializer(graph, "columns", 1, "5", scale, 5 * sizeof *scale);
}

static void each_is_one_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(samples); i++)
        spelling_check(&samples[i], "SampleNorm", constants);
    for (size_t i = 0; i < SAC_COUNT(groups); i++)
        spelling_check(&groups[i], "GroupNormalization", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_one_step)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
