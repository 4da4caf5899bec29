/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by way of a small state, as exporters spell it, is one LinearAttention between the
 * products around it; what only looks alike is none. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* q, k, v [?,2,7,4] out of one product; or turned, [?,2,4,7]. */
#define SPLIT_AS(perm)                                                                             \
    {"MatMul", "x wide", "p"}, {"Reshape", "p apart", "r"}, {"Transpose", "r", "t", "perm", perm}, \
        {"Split", "t", "q5 k5 v5"}, {"Squeeze", "q5 zero", "q"}, {"Squeeze", "k5 zero", "k"},      \
    {                                                                                              \
        "Squeeze", "v5 zero", "v"                                                                  \
    }
#define SPLIT        SPLIT_AS("2 0 3 1 4")
#define SPLIT_TURNED SPLIT_AS("2 0 3 4 1")
#define TOGETHER_AS(perm)                   \
    {"Transpose", "o", "ot", "perm", perm}, \
    {                                       \
        "Reshape", "ot together", "y"       \
    }
#define TOGETHER        TOGETHER_AS("0 2 1 3")
#define TOGETHER_TURNED TOGETHER_AS("0 3 1 2")
#define SHAPES                                           \
    {                                                    \
        {"apart", "-1 7 3 2 4"}, {"together", "-1 7 8"}, \
        {                                                \
            "zero", "0"                                  \
        }                                                \
    }

/* q, k, v are channels of a map [?,24,3,2]: [?,2,6,4]. */
#define MAP                                                                                  \
    {"Conv", "x kernel", "m"}, {"Reshape", "m heads", "h"},                                  \
        {"Transpose", "h", "t", "perm", "0 1 3 2"}, {"Slice", "t from4 until4 axis3", "q0"}, \
        {"Slice", "t from8 until8 axis3", "k0"}, {"Slice", "t from12 until12 axis3", "v"},   \
        {"Relu", "q0", "q"},                                                                 \
    {                                                                                        \
        "Relu", "k0", "k"                                                                    \
    }
#define MAP_SHAPES                                                                                \
    {                                                                                             \
        {"heads", "-1 2 12 6"}, {"from4", "0"}, {"until4", "4"}, {"from8", "4"}, {"until8", "8"}, \
            {"from12", "8"}, {"until12", "12"}, {"axis3", "3"}, {"back", "-1 8 3 2"},             \
            {"pads", "0 0 0 0 0 0 0 1"}, {"padst", "0 0 0 0 0 0 1 0"}, {"first", "0"},            \
            {"until", "-1"}, {"last", "-1"}, {"end", "9223372036854775807"},                      \
        {                                                                                         \
            "axis2", "2"                                                                          \
        }                                                                                         \
    }

static const struct spelling taken[] = {
    {"numbers that attend to numbers, over their lengths, with a gain for each head",
     "? 7 8",
     "? 7 8",
     SHAPES,
     {SPLIT_TURNED,
      {"LpNormalization", "q", "qn"},
      {"LpNormalization", "k", "kn"},
      {"Transpose", "kn", "kt", "perm", "0 1 3 2"},
      {"MatMul", "qn kt", "s0"},
      {"Mul", "s0 gains", "s"},
      {"Softmax", "s", "a"},
      {"MatMul", "a v", "o"},
      TOGETHER_TURNED},
     1,
     2},
    {"the same of keys and values, with a scale, and turned behind",
     "? 7 8",
     "? 7 8",
     SHAPES,
     {SPLIT,
      {"Mul", "k half", "ks"},
      {"Transpose", "ks", "kt", "perm", "0 1 3 2"},
      {"MatMul", "kt v", "s"},
      {"Softmax", "s", "a"},
      {"Transpose", "q", "qt", "perm", "0 1 3 2"},
      {"MatMul", "a qt", "o0"},
      {"Transpose", "o0", "o", "perm", "0 1 3 2"},
      TOGETHER},
     1,
     2},
    {"a softmax over the tokens",
     "? 7 8",
     "? 7 8",
     SHAPES,
     {SPLIT,
      {"Softmax", "k", "ks", "axis", "2"},
      {"Transpose", "ks", "kt", "perm", "0 1 3 2"},
      {"MatMul", "kt v", "s"},
      {"MatMul", "q s", "o0"},
      {"Mul", "o0 half", "o"},
      TOGETHER},
     1,
     2},
    {"what is not negative, over its sum, in a map",
     "? 5 3 2",
     "? 8 3 2",
     MAP_SHAPES,
     {MAP,
      {"Pad", "v pads one", "v1"},
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "kt v1", "s"},
      {"MatMul", "q s", "o1"},
      {"Slice", "o1 first until axis3", "o"},
      {"Slice", "o1 last end axis3", "n0"},
      {"Add", "n0 little", "n"},
      {"Div", "o n", "d"},
      {"Transpose", "d", "dt", "perm", "0 1 3 2"},
      {"Reshape", "dt back", "y"}},
     1},
    {"with a factor of the state, which is one of the sum too",
     "? 5 3 2",
     "? 8 3 2",
     MAP_SHAPES,
     {MAP,
      {"Pad", "v pads one", "v1"},
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "kt v1", "s0"},
      {"Mul", "s0 half", "s"},
      {"MatMul", "q s", "o1"},
      {"Slice", "o1 first until axis3", "o"},
      {"Slice", "o1 last end axis3", "n0"},
      {"Add", "n0 little", "n"},
      {"Div", "o n", "d"},
      {"Transpose", "d", "dt", "perm", "0 1 3 2"},
      {"Reshape", "dt back", "y"}},
     1},
    {"the same turned",
     "? 5 3 2",
     "? 8 3 2",
     MAP_SHAPES,
     {MAP,
      {"Transpose", "v", "vt", "perm", "0 1 3 2"},
      {"Pad", "vt padst one", "v1"},
      {"MatMul", "v1 k", "s"},
      {"Transpose", "q", "qt", "perm", "0 1 3 2"},
      {"MatMul", "s qt", "o1"},
      {"Slice", "o1 first until axis2", "o"},
      {"Slice", "o1 last end axis2", "n0"},
      {"Add", "n0 little", "n"},
      {"Div", "o n", "d"},
      {"Reshape", "d back", "y"}},
     1},
};

static const struct spelling left[] = {
    {"tokens that attend to tokens",
     "? 7 8",
     "? 7 8",
     SHAPES,
     {SPLIT,
      {"LpNormalization", "q", "qn"},
      {"LpNormalization", "k", "kn"},
      {"Transpose", "kn", "kt", "perm", "0 1 3 2"},
      {"MatMul", "qn kt", "s"},
      {"Softmax", "s", "a"},
      {"MatMul", "a v", "o"},
      TOGETHER},
     0},
    {"products alone",
     "? 7 8",
     "? 7 8",
     SHAPES,
     {SPLIT,
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "kt v", "s"},
      {"MatMul", "q s", "o"},
      TOGETHER},
     0},
    {"a softmax of the keys' numbers",
     "? 7 8",
     "? 7 8",
     SHAPES,
     {SPLIT,
      {"Softmax", "k", "ks", "axis", "3"},
      {"Transpose", "ks", "kt", "perm", "0 1 3 2"},
      {"MatMul", "kt v", "s"},
      {"MatMul", "q s", "o"},
      TOGETHER},
     0},
    {"one head of keys and values for all queries",
     "? 7 8",
     "? 7 8",
     SHAPES,
     {SPLIT,
      {"ReduceSum", "k one_axis", "k1"},
      {"ReduceSum", "v one_axis", "v1"},
      {"Softmax", "k1", "ks", "axis", "2"},
      {"Transpose", "ks", "kt", "perm", "0 1 3 2"},
      {"MatMul", "kt v1", "s"},
      {"MatMul", "q s", "o"},
      TOGETHER},
     0},
    {"a softmax of the state's columns",
     "? 7 8",
     "? 7 8",
     SHAPES,
     {SPLIT,
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "kt v", "s"},
      {"Softmax", "s", "a", "axis", "2"},
      {"Transpose", "q", "qt", "perm", "0 1 3 2"},
      {"MatMul", "a qt", "o0"},
      {"Transpose", "o0", "o", "perm", "0 1 3 2"},
      TOGETHER},
     0},
    {"a state that others read too",
     "? 7 8",
     "? 7 8",
     SHAPES,
     {SPLIT,
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "kt v", "s"},
      {"Softmax", "s", "a"},
      {"Transpose", "q", "qt", "perm", "0 1 3 2"},
      {"MatMul", "a qt", "o0"},
      {"Transpose", "o0", "o1", "perm", "0 1 3 2"},
      {"ReduceSum", "a", "all"},
      {"Add", "o1 all", "o"},
      TOGETHER},
     0},
    {"a row of twos beside the values",
     "? 5 3 2",
     "? 8 3 2",
     MAP_SHAPES,
     {MAP,
      {"Pad", "v pads two", "v1"},
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "kt v1", "s"},
      {"MatMul", "q s", "o1"},
      {"Slice", "o1 first until axis3", "o"},
      {"Slice", "o1 last end axis3", "n0"},
      {"Add", "n0 little", "n"},
      {"Div", "o n", "d"},
      {"Transpose", "d", "dt", "perm", "0 1 3 2"},
      {"Reshape", "dt back", "y"}},
     0},
};

static void constants(struct proto *graph)
{
    static float  wide[8 * 24], kernel[24 * 5];
    const int64_t one_axis = 1;
    const float   half = 0.5f, one = 1, two = 2, little = 0.25f, gains[] = {0.5f, 2};
    for (size_t i = 0; i < SAC_COUNT(wide); i++)
        wide[i] = spelling_number((int)i);
    for (size_t i = 0; i < SAC_COUNT(kernel); i++)
        kernel[i] = spelling_number((int)i + 7);
    proto_initializer(graph, "wide", 1, "8 24", wide, sizeof wide);
    proto_initializer(graph, "kernel", 1, "24 5 1 1", kernel, sizeof kernel);
    proto_initializer(graph, "one_axis", 7, "1", &one_axis, sizeof one_axis);
    proto_initializer(graph, "half", 1, "", &half, sizeof half);
    proto_initializer(graph, "one", 1, "", &one, sizeof one);
    proto_initializer(graph, "two", 1, "", &two, sizeof two);
    proto_initializer(graph, "little", 1, "", &little, sizeof little);
    proto_initializer(graph, "gains", 1, "2 1 1", gains, sizeof gains);
}

static void states_stay_on_the_chip(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(taken); i++)
        spelling_check(&taken[i], "LinearAttention", constants);
}

static void others_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(left); i++)
        spelling_check(&left[i], "LinearAttention", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(states_stay_on_the_chip),
                                       cmocka_unit_test(others_stay)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
