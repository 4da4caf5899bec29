/* SPDX-License-Identifier: Apache-2.0 */
/* Squared ReLUs and scaled SiLUs as exporters write them are activations of the convolution or
 * product before them, with the factors and the constant around them. */
#include <math.h>

#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* clang-format off */
#define MAPS "? 8 3 4", "? 8 3 4", {{NULL}}
/* clang-format on */

static const struct spelling convolutions[] = {
    {"StarReLU behind a convolution",
     MAPS,
     {{"Conv", "x weights", "c"},
      {"Relu", "c", "r"},
      {"Pow", "r two", "s"},
      {"Mul", "factor s", "m"},
      {"Add", "m constant", "y"}},
     1,
     3}, /* with two changes of layout */
    {"by itself, as a product",
     MAPS,
     {{"Conv", "x weights", "c"}, {"Relu", "c", "r"}, {"Mul", "r r", "y"}},
     1,
     3},
    {"a constant before the factor",
     MAPS,
     {{"Conv", "x weights", "c"},
      {"Relu", "c", "r"},
      {"Mul", "r r", "s"},
      {"Add", "constant s", "a"},
      {"Mul", "a factor", "y"}},
     1,
     3},
    {"the ReLU is read by another",
     MAPS,
     {{"Conv", "x weights", "c"}, {"Relu", "c", "r"}, {"Pow", "r two", "s"}, {"Add", "s r", "y"}},
     0},
    {"others read the square",
     MAPS,
     {{"Conv", "x weights", "c"},
      {"Relu", "c", "r"},
      {"Mul", "r r", "s"},
      {"Mul", "s factor", "m"},
      {"Conv", "s weights", "d"},
      {"Add", "m d", "y"}},
     2},
    {"a factor of each channel stands behind the activation",
     MAPS,
     {{"Conv", "x weights", "c"},
      {"Relu", "c", "r"},
      {"Mul", "r r", "s"},
      {"Mul", "s of_each", "y"}},
     1,
     3},
    {"a cube is none",
     MAPS,
     {{"Conv", "x weights", "c"}, {"Relu", "c", "r"}, {"Pow", "r three", "y"}},
     1,
     4},
};
static const struct spelling products[] = {
    {"StarReLU behind a product",
     "? 3 8",
     "? 3 8",
     {{NULL}},
     {{"MatMul", "x square", "p"},
      {"Relu", "p", "r"},
      {"Pow", "r two", "s"},
      {"Mul", "s factor", "m"},
      {"Add", "m constant", "y"}},
     1,
     1},
    {"quick GELU between two products",
     "? 3 8",
     "? 3 8",
     {{NULL}},
     {{"MatMul", "x square", "p"},
      {"Add", "p row", "b"},
      {"Mul", "b factor", "m"},
      {"Sigmoid", "m", "g"},
      {"Mul", "b g", "a"},
      {"MatMul", "a other", "y"}},
     2,
     2},
    {"the gate in front, and its factor, a divisor",
     "? 3 8",
     "? 3 8",
     {{NULL}},
     {{"MatMul", "x square", "p"},
      {"Div", "p factor", "m"},
      {"Sigmoid", "m", "g"},
      {"Mul", "g p", "a"},
      {"MatMul", "a other", "q"},
      {"Add", "q x", "y"}},
     2,
     2},
    {"its factor behind it, before a sum",
     "? 3 8",
     "? 3 8",
     {{NULL}},
     {{"MatMul", "x square", "p"},
      {"Mul", "p factor", "m"},
      {"Sigmoid", "m", "g"},
      {"Mul", "g p", "a"},
      {"Add", "a x", "y"}},
     1,
     1},
    {"others read the product",
     "? 3 8",
     "? 3 8",
     {{NULL}},
     {{"MatMul", "x square", "p"},
      {"Mul", "p factor", "m"},
      {"Sigmoid", "m", "g"},
      {"Mul", "g p", "a"},
      {"Sub", "a p", "y"}},
     0},
    {"a constant of more dims than what it is added to",
     "? 8",
     "1 ? 8",
     {{NULL}},
     {{"MatMul", "x square", "p"},
      {"Add", "p deep_three", "a"},
      {"Clip", "a zero six", "c"},
      {"Mul", "p c", "m"},
      {"Div", "m six", "y"}},
     0},
    {"an exponent of more dims than the ReLU",
     "? 8",
     "1 ? 8",
     {{NULL}},
     {{"MatMul", "x square", "p"}, {"Relu", "p", "r"}, {"Pow", "r deep_two", "y"}},
     1},
    {"a factor that has no inverse",
     "? 3 8",
     "? 3 8",
     {{NULL}},
     {{"MatMul", "x square", "p"},
      {"Mul", "p endless", "m"},
      {"Sigmoid", "m", "g"},
      {"Mul", "g p", "y"}},
     0},
    {"the gate of another number",
     "? 3 8",
     "? 3 8",
     {{NULL}},
     {{"MatMul", "x square", "p"},
      {"Mul", "x factor", "m"},
      {"Sigmoid", "m", "g"},
      {"Mul", "g p", "y"}},
     0},
};

static void number(struct proto *graph, const char *name, float value)
{
    proto_initializer(graph, name, 1, "", &value, sizeof value);
}

static void constants(struct proto *graph)
{
    float weights[64], of_each[8];
    for (int i = 0; i < 64; i++)
        weights[i] = 0.3f * spelling_number(i);
    for (int i = 0; i < 8; i++)
        of_each[i] = spelling_number(i + 3);
    proto_initializer(graph, "weights", 1, "8 8 1 1", weights, sizeof weights);
    proto_initializer(graph, "square", 1, "8 8", weights, sizeof weights);
    proto_initializer(graph, "row", 1, "8", of_each, sizeof of_each);
    for (int i = 0; i < 64; i++)
        weights[i] = 0.3f * spelling_number(i + 7);
    proto_initializer(graph, "other", 1, "8 8", weights, sizeof weights);
    proto_initializer(graph, "of_each", 1, "8 1 1", of_each, sizeof of_each);
    number(graph, "two", 2);
    number(graph, "three", 3);
    number(graph, "zero", 0);
    number(graph, "endless", INFINITY);
    number(graph, "six", 6);
    proto_initializer(graph, "deep_two", 1, "1 1 1", (const float[]){2}, sizeof(float));
    proto_initializer(graph, "deep_three", 1, "1 1 1", (const float[]){3}, sizeof(float));
    number(graph, "factor", 0.9f);
    number(graph, "constant", -0.45f);
}

static void squares_are_activations(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(convolutions); i++)
        spelling_check(&convolutions[i], "FusedConv", constants);
    for (size_t i = 0; i < SAC_COUNT(products); i++)
        spelling_check(&products[i], "FusedMatMul", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(squares_are_activations)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
