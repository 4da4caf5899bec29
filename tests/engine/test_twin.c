/* SPDX-License-Identifier: Apache-2.0 */
/* Two convolutions of one input that are added are one, where one's window covers the other's, with
 * the numbers of both. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

static const struct spelling spellings[] = {
    {"windows of 3x3 and 1x1, and what follows",
     "? 4 5 6",
     "? 4 5 6",
     {{"none", "0"}},
     {{"Conv", "x three bias", "a", "pads", "1 1 1 1"},
      {"Conv", "x one", "b"},
      {"Add", "a b", "s"},
      {"Relu", "s", "y"}},
     1},
    {"the smaller one first, and a third sum",
     "? 4 5 6",
     "? 4 5 6",
     {{"none", "0"}},
     {{"Conv", "x one bias", "b"},
      {"Conv", "x three", "a", "pads", "1 1 1 1"},
      {"Add", "b a", "s"},
      {"Add", "s x", "t"},
      {"Relu", "t", "y"}},
     1},
    {"windows of the same size",
     "? 4 5 6",
     "? 4 3 4",
     {{"none", "0"}},
     {{"Conv", "x three bias", "a"}, {"Conv", "x three", "b"}, {"Add", "a b", "y"}},
     1},
    {"a pixel beside the other's window",
     "? 4 5 6",
     "? 4 7 8",
     {{"none", "0"}},
     {{"Conv", "x one bias", "a", "pads", "1 1 1 1"},
      {"Conv", "x three", "b", "pads", "2 2 2 2"},
      {"Add", "a b", "y"}},
     1},
    {"the smaller window at the end of the larger one",
     "? 4 5 6",
     "? 4 5 6",
     {{"none", "0"}},
     {{"Conv", "x three bias", "a", "pads", "2 2 0 0"},
      {"Conv", "x one", "b"},
      {"Add", "a b", "y"}},
     1},
    {"a normalisation of the input",
     "? 4 5 6",
     "? 4 5 6",
     {{"none", "0"}},
     {{"Conv", "x three bias", "a", "pads", "1 1 1 1"},
      {"BatchNormalization", "x scale bias mean variance", "n"},
      {"Add", "n a", "s"},
      {"Relu", "s", "y"}},
     1,
     2}, /* with a change of layout */
    {"three convolutions and a normalisation, as TextNet has them",
     "? 4 5 6",
     "? 4 5 6",
     {{"none", "0"}},
     {{"Conv", "x three bias", "a", "pads", "1 1 1 1"},
      {"Conv", "x one", "b"},
      {"Add", "a b", "s"},
      {"Conv", "x three", "c", "pads", "1 1 1 1"},
      {"Add", "s c", "t"},
      {"BatchNormalization", "x scale bias mean variance", "n"},
      {"Add", "t n", "u"},
      {"Relu", "u", "y"}},
     1,
     2},
    {"a normalisation and a depthwise convolution",
     "? 4 5 6",
     "? 4 5 6",
     {{"none", "0"}},
     {{"Conv", "x each", "a", "group", "4"},
      {"BatchNormalization", "x scale bias mean variance", "n"},
      {"Add", "n a", "y"}},
     1,
     3}, /* with two */
    {"a normalisation of another map",
     "? 4 5 6",
     "? 4 5 6",
     {{"none", "0"}},
     {{"Relu", "x", "r"},
      {"Conv", "x three bias", "a", "pads", "1 1 1 1"},
      {"BatchNormalization", "r scale bias mean variance", "n"},
      {"Add", "n a", "y"}},
     1,
     5},
    {"a normalisation that others read",
     "? 4 5 6",
     "? 4 5 6",
     {{"none", "0"}},
     {{"Conv", "x three bias", "a", "pads", "1 1 1 1"},
      {"BatchNormalization", "x scale bias mean variance", "n"},
      {"Add", "n a", "s"},
      {"Mul", "s n", "y"}},
     1,
     5},
    {"of two inputs",
     "? 4 5 6",
     "? 4 5 6",
     {{"none", "0"}},
     {{"Relu", "x", "r"},
      {"Conv", "r three bias", "a", "pads", "1 1 1 1"},
      {"Conv", "x one", "b"},
      {"Add", "a b", "y"}},
     2},
};

static void constants(struct proto *graph)
{
    float       w[4 * 4 * 9], bias[4] = {0.25f, -1, 0.5f, 2};
    const float scale[4] = {1, -0.5f, 0.7f, 2}, variance[4] = {1, 2, 0.5f, 3};
    for (int i = 0; i < 4 * 4 * 9; i++)
        w[i] = spelling_number(i) * 0.2f;
    proto_initializer(graph, "three", 1, "4 4 3 3", w, sizeof w);
    proto_initializer(graph, "one", 1, "4 4 1 1", w + 7, 16 * sizeof *w);
    proto_initializer(graph, "each", 1, "4 1 1 1", w + 3, 4 * sizeof *w);
    proto_initializer(graph, "scale", 1, "4", scale, sizeof scale);
    proto_initializer(graph, "mean", 1, "4", w + 20, 4 * sizeof *w);
    proto_initializer(graph, "variance", 1, "4", variance, sizeof variance);
    proto_initializer(graph, "bias", 1, "4", bias, sizeof bias);
}

/* Counted are Conv and FusedConv. */
static void each_spelling_is_one_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "Conv", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_spelling_is_one_step)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
