/* SPDX-License-Identifier: Apache-2.0 */
/* A transposed convolution whose kernel is as long as its stride is a product and a move, with what
 * follows in each channel in the product; others take scales and shifts into their weights. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

#define UP(w, y)                                          \
    {                                                     \
        "ConvTranspose", "x " w " b", y, "strides", "2 2" \
    }
#define NORM(x, y)                            \
    {                                         \
        "BatchNormalization", x " s t m v", y \
    }

static const struct spelling apart[] = {
    {"alone", "? 3 5 3", "? 4 10 6", {{"none", "0"}}, {UP("w", "y")}, 1, 2},
    {"without a bias",
     "? 3 5 3",
     "? 4 10 6",
     {{"none", "0"}},
     {{"ConvTranspose", "x w", "y", "strides", "2 2"}},
     1,
     2},
    {"of one pixel", "? 3 1 1", "? 4 2 2", {{"none", "0"}}, {UP("w", "y")}, 1, 2},
    {"a normalisation and SiLU",
     "? 3 5 3",
     "? 4 10 6",
     {{"none", "0"}},
     {UP("w", "a"), NORM("a", "c"), {"Sigmoid", "c", "d"}, {"Mul", "c d", "y"}},
     1,
     2},
    {"factors, numbers that are added, and a Relu",
     "? 3 5 3",
     "? 4 10 6",
     {{"none", "0"}},
     {UP("w", "a"), {"Mul", "factor a", "c"}, {"Sub", "c factor", "d"}, {"Relu", "d", "y"}},
     1,
     2},
    {"two that follow each other",
     "? 3 5 3",
     "? 4 20 12",
     {{"none", "0"}},
     {UP("w", "a"), {"Relu", "a", "c"}, {"ConvTranspose", "c deep b", "y", "strides", "2 2"}},
     2,
     4},
    {"an activation that others read beside the sums",
     "? 3 5 3",
     "? 4 10 6",
     {{"none", "0"}},
     {UP("w", "a"),
      {"Relu", "a", "c"},
      {"Concat", "a c", "d", "axis", "1"},
      {"Conv", "d pair", "y"}},
     1},
    {"sums that are an output",
     "? 3 5 3",
     "? 4 10 6",
     {{"none", "0"}},
     {UP("w", "a"), NORM("a", "c"), {"Relu", "c", "y"}},
     1,
     0,
     "a",
     "? 4 10 6"},
    {"kernels longer than the stride",
     "? 3 5 3",
     "? 4 11 7",
     {{"none", "0"}},
     {{"ConvTranspose", "x long b", "y", "strides", "2 2"}},
     0},
    {"steps of one", "? 3 5 3", "? 4 6 4", {{"none", "0"}}, {{"ConvTranspose", "x w", "y"}}, 0},
    {"lines",
     "? 3 5",
     "? 4 10",
     {{"none", "0"}},
     {{"ConvTranspose", "x line b", "y", "strides", "2"}},
     0},
};

static const struct spelling folded[] = {
    {"a normalisation behind long kernels",
     "? 3 5 3",
     "? 4 11 7",
     {{"none", "0"}},
     {{"ConvTranspose", "x long b", "a", "strides", "2 2"}, NORM("a", "y")},
     1,
     3},
    {"a normalisation, then a factor, of groups",
     "? 4 5 3",
     "? 4 6 4",
     {{"none", "0"}},
     {{"ConvTranspose", "x groups", "a", "group", "2"}, NORM("a", "c"), {"Div", "c factor", "y"}},
     1,
     3},
    {"a normalisation of lines",
     "? 3 5",
     "? 4 10",
     {{"none", "0"}},
     {{"ConvTranspose", "x line b", "a", "strides", "2"}, NORM("a", "y")},
     1,
     3},
    {"a number that is divided by the sums",
     "? 3 5 3",
     "? 4 11 7",
     {{"none", "0"}},
     {{"ConvTranspose", "x long b", "a", "strides", "2 2"}, {"Div", "factor a", "y"}},
     1,
     4},
    {"sums that others read",
     "? 3 5 3",
     "? 4 11 7",
     {{"none", "0"}},
     {{"ConvTranspose", "x long b", "a", "strides", "2 2"}, NORM("a", "c"), {"Add", "a c", "y"}},
     1,
     5},
};

static void numbers(struct proto *graph, const char *name, const char *dims, int count)
{
    float values[256];
    for (int i = 0; i < count; i++)
        values[i] = spelling_number(i + count) * 0.3f;
    proto_initializer(graph, name, 1, dims, values, (size_t)count * sizeof *values);
}

static void constants(struct proto *graph)
{
    const float variance[] = {1, 1.25f, 0.5f, 2};
    numbers(graph, "w", "3 4 2 2", 48);
    numbers(graph, "deep", "4 4 2 2", 64);
    numbers(graph, "long", "3 4 3 3", 108);
    numbers(graph, "groups", "4 2 2 2", 32);
    numbers(graph, "line", "3 4 2", 24);
    numbers(graph, "pair", "4 8 1 1", 32);
    numbers(graph, "factor", "4 1 1", 4);
    numbers(graph, "b", "4", 4);
    numbers(graph, "s", "4", 4);
    numbers(graph, "t", "4", 4);
    numbers(graph, "m", "4", 4);
    proto_initializer(graph, "v", 1, "4", variance, sizeof variance);
}

static void short_kernels_are_products(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(apart); i++)
        spelling_check(&apart[i], "DepthToSpace", constants);
}

static void others_take_scales(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(folded); i++)
        spelling_check(&folded[i], "ConvTranspose", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(short_kernels_are_products),
                                       cmocka_unit_test(others_take_scales)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
