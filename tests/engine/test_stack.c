/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over maps that lie behind each other on an axis of their own are read out of one map; where
 * nothing is gained, all is as it was. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

#define SHAPES                                                                            \
    {"apart", "-1 2 3 5 4"}, {"gates", "-1 2 3 1 1"}, {"one", "1"}, {"flat", "-1 6 1 1"}, \
    {                                                                                     \
        "rows", "-1 1 2 3"                                                                \
    }
/* The gates of both parts, out of the means of their sum s. */
#define GATES                                                                         \
    {"GlobalAveragePool", "s", "m"}, {"Conv", "m w3to5 b5", "h"}, {"Relu", "h", "i"}, \
        {"Conv", "i w5to6", "j"}, {"Reshape", "j gates", "k"},                        \
    {                                                                                 \
        "Softmax", "k", "l", "axis", "1"                                              \
    }

/* Steps: the convolution or two, the gates, their shares, the sum, and the order of the output's
 * numbers. */
static const struct spelling gated[] = {
    {"splits of a map",
     "? 3 5 4",
     "? 3 5 4",
     {SHAPES},
     {{"Conv", "x w3to6", "a"},
      {"Reshape", "a apart", "v"},
      {"ReduceSum", "v one", "s", "keepdims", "0"},
      GATES,
      {"Mul", "v l", "n"},
      {"ReduceSum", "n one", "y", "keepdims", "0"}},
     1,
     5},
    {"branches that are stacked, and the gates as ResNeSt has them",
     "? 3 5 4",
     "? 3 5 4",
     {SHAPES},
     {{"Conv", "x w3", "a"},
      {"Conv", "x w3", "b", "dilations", "1 1"},
      {"Unsqueeze", "a one", "c"},
      {"Unsqueeze", "b one", "d"},
      {"Concat", "c d", "v", "axis", "1"},
      {"ReduceSum", "v one", "s", "keepdims", "0"},
      {"GlobalAveragePool", "s", "m"},
      {"Conv", "m w3to5 b5", "h"},
      {"Relu", "h", "i"},
      {"Conv", "i w5to6", "j"},
      {"Reshape", "j rows", "k"},
      {"Transpose", "k", "o", "perm", "0 2 1 3"},
      {"Softmax", "o", "p", "axis", "1"},
      {"Reshape", "p flat", "q"},
      {"Reshape", "q gates", "l"},
      {"Mul", "l v", "n"},
      {"ReduceSum", "n one", "y", "keepdims", "0"}},
     1,
     6},
    {"the same, means by an average pooling of all",
     "? 3 5 4",
     "? 3 5 4",
     {SHAPES},
     {{"Conv", "x w3", "a"},
      {"Conv", "x w3", "b", "dilations", "1 1"},
      {"Unsqueeze", "a one", "c"},
      {"Unsqueeze", "b one", "d"},
      {"Concat", "c d", "v", "axis", "1"},
      {"ReduceSum", "v one", "s", "keepdims", "0"},
      {"AveragePool", "s", "m", "kernel_shape", "5 4"},
      {"Conv", "m w3to5 b5", "h"},
      {"Relu", "h", "i"},
      {"Conv", "i w5to6", "j"},
      {"Reshape", "j rows", "k"},
      {"Transpose", "k", "o", "perm", "0 2 1 3"},
      {"Softmax", "o", "p", "axis", "1"},
      {"Reshape", "p flat", "q"},
      {"Reshape", "q gates", "l"},
      {"Mul", "l v", "n"},
      {"ReduceSum", "n one", "y", "keepdims", "0"}},
     1,
     6},
    {"the axis is kept, one gate for all samples",
     "? 3 5 4",
     "? 1 3 5 4",
     {SHAPES},
     {{"Conv", "x w3to6", "a"},
      {"Reshape", "a apart", "v"},
      {"Mul", "v number", "n"},
      {"ReduceSum", "n one", "y"}},
     1},
};

/* Of ReduceSum and ReduceMean, none: slices are added up. */
static const struct spelling added[] = {
    {"splits of a map that nothing pools",
     "? 3 5 4",
     "? 3 5 4",
     {SHAPES},
     {{"Conv", "x w3to6", "a"},
      {"Reshape", "a apart", "v"},
      {"ReduceSum", "v one", "s", "keepdims", "0"},
      {"Relu", "s", "y"}},
     0},
    {"stacked ones, their mean, which keeps the axis",
     "? 3 5 4",
     "? 1 3 5 4",
     {SHAPES},
     {{"Relu", "x", "a"},
      {"Unsqueeze", "a one", "c"},
      {"Unsqueeze", "x one", "d"},
      {"Concat", "c d c", "v", "axis", "1"},
      {"ReduceMean", "v", "y", "axes", "1 "}},
     0},
    {"a sum that is pooled, and that others read",
     "? 3 5 4",
     "? 3 5 4",
     {SHAPES},
     {{"Conv", "x w3to6", "a"},
      {"Reshape", "a apart", "v"},
      {"ReduceSum", "v one", "s", "keepdims", "0"},
      {"GlobalAveragePool", "s", "m"},
      {"Conv", "m w3", "h"},
      {"Add", "s h", "y"}},
     0},
};

static const struct spelling stays[] = {
    {"the parts of each channel lie beside each other",
     "? 3 5 4",
     "? 3 5 4",
     {{"apart", "-1 3 2 5 4"}, {"two", "2"}},
     {{"Conv", "x w3to6", "a"},
      {"Reshape", "a apart", "v"},
      {"ReduceSum", "v two", "y", "keepdims", "0"}},
     1},
    {"rows, and no map",
     "? 6 4 5",
     "? 3 4 5",
     {{"apart", "-1 2 3 4 5"}, {"one", "1"}},
     {{"Reshape", "x apart", "v"}, {"ReduceSum", "v one", "y", "keepdims", "0"}},
     1},
    {"gates for pixels",
     "? 3 5 4",
     "? 3 5 4",
     {{"apart", "-1 2 3 5 4"}, {"one", "1"}},
     {{"Conv", "x w3to6", "a"},
      {"Reshape", "a apart", "v"},
      {"Mul", "v v", "n"},
      {"ReduceSum", "n one", "y", "keepdims", "0"}},
     1},
};

static void constants(struct proto *graph)
{
    float w[36], number[6];
    for (int i = 0; i < (int)SAC_COUNT(w); i++)
        w[i] = spelling_number(i) * 0.3f;
    for (int i = 0; i < 6; i++)
        number[i] = spelling_number(i + 40);
    proto_initializer(graph, "w3", 1, "3 3 1 1", w + 2, 9 * sizeof *w);
    proto_initializer(graph, "w3to6", 1, "6 3 1 1", w + 5, 18 * sizeof *w);
    proto_initializer(graph, "w3to5", 1, "5 3 1 1", w + 9, 15 * sizeof *w);
    proto_initializer(graph, "w5to6", 1, "6 5 1 1", w, 30 * sizeof *w);
    proto_initializer(graph, "b5", 1, "5", w + 20, 5 * sizeof *w);
    proto_initializer(graph, "number", 1, "1 2 3 1 1", number, sizeof number);
}

static void gated_parts_are_one_sum(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(gated); i++)
        spelling_check(&gated[i], "GatedSum", constants);
}

static void others_are_added_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(added); i++) {
        spelling_check(&added[i], "ReduceSum", constants);
        spelling_check(&added[i], "ReduceMean", constants);
    }
}

static void else_it_stays(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(stays); i++)
        spelling_check(&stays[i], "ReduceSum", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gated_parts_are_one_sum),
                                       cmocka_unit_test(others_are_added_up),
                                       cmocka_unit_test(else_it_stays)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
