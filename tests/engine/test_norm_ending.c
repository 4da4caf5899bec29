/* SPDX-License-Identifier: Apache-2.0 */
/* A norm of maps takes in the activation behind it and a sum before or behind that. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

#define INSTANCES(x, y)                              \
    {                                                \
        "InstanceNormalization", x " scale shift", y \
    }
/* clang-format off */
#define OF_GROUPS(x, y)                                                                   \
    {"Reshape", x " apart", y "1"}, {"InstanceNormalization", y "1 ones zeros", y "2"},   \
    {"Shape", x, y "3"}, {"Reshape", y "2 " y "3", y "4"}, {"Mul", y "4 scales", y "5"},  \
    {"Add", y "5 shifts", y}
/* clang-format on */

static const struct spelling spellings[] = {
    {"of groups, a ReLU",
     "? 12 3 5",
     "? 12 3 5",
     {{"apart", "0 4 45"}},
     {OF_GROUPS("x", "n"), {"Relu", "n", "y"}},
     1,
     1},
    {"of groups, SiLU as it is spelled",
     "? 12 3 5",
     "? 12 3 5",
     {{"apart", "0 4 45"}},
     {OF_GROUPS("x", "n"), {"Sigmoid", "n", "s"}, {"Mul", "n s", "y"}},
     1,
     1},
    {"of channels, a clip",
     "? 12 3 5",
     "? 12 3 5",
     {{"none", "0"}},
     {INSTANCES("x", "n"), {"Clip", "n zero two", "y"}},
     1,
     1},
    {"of sequences",
     "? 12 7",
     "? 12 7",
     {{"none", "0"}},
     {INSTANCES("x", "n"), {"Relu", "n", "y"}},
     1,
     1},
    {"a sum before the activation",
     "? 12 3 5",
     "? 12 3 5",
     {{"none", "0"}},
     {INSTANCES("x", "n"), {"Add", "x n", "a"}, {"Relu", "a", "y"}},
     1,
     1},
    {"a sum behind the activation",
     "? 12 3 5",
     "? 12 3 5",
     {{"none", "0"}},
     {INSTANCES("x", "n"), {"LeakyRelu", "n", "a"}, {"Add", "a x", "y"}},
     1,
     1},
    {"a sum, and nothing else",
     "? 12 3 5",
     "? 12 3 5",
     {{"apart", "0 4 45"}},
     {OF_GROUPS("x", "n"), {"Add", "n x", "y"}},
     1,
     1},
    {"two norms that are added: one joins the other",
     "? 12 3 5",
     "? 12 3 5",
     {{"apart", "0 4 45"}},
     {OF_GROUPS("x", "n"), INSTANCES("x", "m"), {"Add", "n m", "a"}, {"Relu", "a", "y"}},
     1,
     2},
    {"RAFT's blocks, whose last ReLU does nothing",
     "? 12 3 5",
     "? 12 3 5",
     {{"none", "0"}},
     {INSTANCES("x", "a"),
      {"Relu", "a", "b"},
      {"Conv", "b w", "c"},
      INSTANCES("c", "d"),
      {"Relu", "d", "e"},
      {"Add", "b e", "f"},
      {"Relu", "f", "y"}},
     2,
     5}, /* two conversions */
    {"a ReLU of what may be below 0",
     "? 12 3 5",
     "? 12 3 5",
     {{"none", "0"}},
     {INSTANCES("x", "a"), {"Relu", "a", "b"}, {"Add", "b x", "f"}, {"Relu", "f", "y"}},
     1,
     2},
    {"a sum of other dims",
     "? 12 3 5",
     "? 12 3 5",
     {{"none", "0"}},
     {INSTANCES("x", "n"), {"GlobalAveragePool", "x", "g"}, {"Add", "n g", "y"}},
     0},
    {"a sum with a constant",
     "? 12 3 5",
     "? 12 3 5",
     {{"none", "0"}},
     {INSTANCES("x", "n"), {"Add", "n scales", "y"}},
     0},
    {"a norm that is doubled",
     "? 12 3 5",
     "? 12 3 5",
     {{"none", "0"}},
     {INSTANCES("x", "n"), {"Add", "n n", "y"}},
     0},
    {"that others read as well",
     "? 12 3 5",
     "? 12 3 5",
     {{"none", "0"}},
     {INSTANCES("x", "n"), {"Relu", "n", "c"}, {"Sub", "n c", "y"}},
     0},
    {"that is an output",
     "? 12 3 5",
     "? 12 3 5",
     {{"none", "0"}},
     {INSTANCES("x", "n"), {"Relu", "n", "y"}},
     0,
     0,
     "n",
     "? 12 3 5"},
};

static void constants(struct proto *graph)
{
    enum { CHANNELS = 12 };
    const float zero = 0, two = 2, ones[4] = {1, 1, 1, 1}, zeros[4] = {0};
    float       scale[CHANNELS], shift[CHANNELS], w[CHANNELS * CHANNELS];
    for (int i = 0; i < CHANNELS; i++) {
        scale[i] = 1 + spelling_number(i) / 2;
        shift[i] = spelling_number(i + 31);
    }
    for (int i = 0; i < CHANNELS * CHANNELS; i++)
        w[i] = spelling_number(i) * 0.3f;
    proto_initializer(graph, "ones", 1, "4", ones, sizeof ones);
    proto_initializer(graph, "zeros", 1, "4", zeros, sizeof zeros);
    proto_initializer(graph, "zero", 1, "", &zero, sizeof zero);
    proto_initializer(graph, "two", 1, "", &two, sizeof two);
    proto_initializer(graph, "scale", 1, "12", scale, sizeof scale);
    proto_initializer(graph, "shift", 1, "12", shift, sizeof shift);
    proto_initializer(graph, "scales", 1, "12 1 1", scale, sizeof scale);
    proto_initializer(graph, "shifts", 1, "12 1 1", shift, sizeof shift);
    proto_initializer(graph, "w", 1, "12 12 1 1", w, sizeof w);
}

static void both_are_one_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "FusedGroupNorm", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_are_one_step)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
