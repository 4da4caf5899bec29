/* SPDX-License-Identifier: Apache-2.0 */
/* A batch normalisation of a product's columns is part of the product, whatever views stand around
 * it, and so is what follows behind these, and constants that its rows are multiplied by before. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

#define NORM "scale shift mean variance"

static const struct spelling spellings[] = {
    {"rows as samples, and an activation",
     "? 5 24",
     "? 5 16",
     {{"rows", "-1 16"}, {"back", "-1 5 16"}},
     {{"MatMul", "x narrow", "p"},
      {"Reshape", "p rows", "r"},
      {"BatchNormalization", "r " NORM, "n"},
      {"Reshape", "n back", "b"},
      {"HardSwish", "b", "y"}},
     1,
     1},
    {"rows by a Flatten, and a residual sum",
     "? 5 24",
     "? 5 24",
     {{"back", "-1 5 24"}},
     {{"MatMul", "x square", "p"},
      {"Flatten", "p", "r", "axis", "2"},
      {"BatchNormalization", "r scale24 shift24 mean24 variance24", "n"},
      {"Reshape", "n back", "b"},
      {"Add", "x b", "y"}},
     1,
     1},
    {"a dim of one left out",
     "? 1 24",
     "? 1 16",
     {{"axis", "1"}},
     {{"MatMul", "x narrow", "p"},
      {"Squeeze", "p axis", "r"},
      {"BatchNormalization", "r " NORM, "n"},
      {"Unsqueeze", "n axis", "b"},
      {"Relu", "b", "y"}},
     1},
    {"of two dims, behind a bias",
     "? 24",
     "? 16",
     {{NULL}},
     {{"Gemm", "x narrow bias", "p"}, {"BatchNormalization", "p " NORM, "n"}, {"Relu", "n", "y"}},
     1,
     1},
    {"channels in front",
     "? 5 24",
     "? 16 5",
     {{NULL}},
     {{"MatMul", "x narrow", "p"},
      {"Transpose", "p", "t", "perm", "0 2 1"},
      {"BatchNormalization", "t " NORM, "y"}},
     1},
    {"before the product",
     "? 24",
     "? 16",
     {{NULL}},
     {{"BatchNormalization", "x scale24 shift24 mean24 variance24", "n"},
      {"Gemm", "n narrow bias", "y"}},
     1,
     1},
    {"before two products",
     "? 24",
     "? 16",
     {{NULL}},
     {{"BatchNormalization", "x scale24 shift24 mean24 variance24", "n"},
      {"Gemm", "n narrow bias", "p"},
      {"Gemm", "n other", "q"},
      {"Add", "p q", "y"}},
     2,
     2},
    {"before the product, of other columns",
     "? 24 24",
     "? 24 16",
     {{NULL}},
     {{"BatchNormalization", "x scale24 shift24 mean24 variance24", "n"},
      {"MatMul", "n narrow", "y"}},
     0,
     2},
    {"a factor before the product",
     "? 5 24",
     "? 5 16",
     {{NULL}},
     {{"Relu", "x", "r"}, {"Mul", "factor r", "m"}, {"MatMul", "m narrow", "y"}},
     1,
     2},
    {"factors of columns before it, with a bias behind",
     "? 5 24",
     "? 5 16",
     {{NULL}},
     {{"Relu", "x", "r"},
      {"Mul", "r scale24", "m"},
      {"MatMul", "m narrow", "p"},
      {"Add", "bias p", "y"}},
     1,
     2},
    {"factors before a Gemm with turned weights",
     "? 24",
     "? 16",
     {{NULL}},
     {{"Relu", "x", "r"}, {"Mul", "r scale24", "m"}, {"Gemm", "m turned bias", "y", "transB", "1"}},
     1,
     2},
    {"factors of rows stay",
     "? 5 24",
     "? 5 16",
     {{NULL}},
     {{"Mul", "x scale5", "m"}, {"MatMul", "m narrow", "y"}},
     0,
     2},
    {"factors of what others read too stay",
     "? 5 24",
     "? 5 24",
     {{NULL}},
     {{"Mul", "x scale24", "m"}, {"MatMul", "m square", "p"}, {"Sub", "m p", "y"}},
     0},
    {"a factor that leaves no digits stays",
     "? 5 24",
     "? 5 16",
     {{NULL}},
     {{"Mul", "x tiny", "m"}, {"MatMul", "m narrow", "y"}},
     0,
     2},
    {"of rows",
     "? 16 24",
     "? 16 16",
     {{NULL}},
     {{"MatMul", "x narrow", "p"}, {"BatchNormalization", "p " NORM, "y"}},
     0,
     2},
    {"of halves of rows",
     "? 5 24",
     "? 16",
     {{"halves", "-1 16"}},
     {{"MatMul", "x wide", "p"},
      {"Reshape", "p halves", "r"},
      {"BatchNormalization", "r " NORM, "y"}},
     0},
    {"of what others read too",
     "? 24",
     "? 16",
     {{NULL}},
     {{"MatMul", "x narrow", "p"}, {"BatchNormalization", "p " NORM, "n"}, {"Mul", "n p", "y"}},
     0},
};

static void numbers(struct proto *graph, const char *name, const char *dims, float about, float by)
{
    float  data[24 * 32];
    char  *end;
    size_t count = (size_t)strtoul(dims, &end, 10);
    count *= *end ? (size_t)strtoul(end, NULL, 10) : 1;
    for (size_t i = 0; i < count; i++)
        data[i] = about + by * spelling_number((int)i + name[0]);
    proto_initializer(graph, name, 1, dims, data, count * sizeof *data);
}

static void constants(struct proto *graph)
{
    numbers(graph, "narrow", "24 16", 0, 0.1f);
    numbers(graph, "other", "24 16", 0, 0.2f);
    numbers(graph, "square", "24 24", 0, 0.1f);
    numbers(graph, "wide", "24 32", 0, 0.1f);
    numbers(graph, "turned", "16 24", 0, 0.1f);
    numbers(graph, "bias", "16", 0, 1);
    numbers(graph, "factor", "1", 0.6f, 0);
    numbers(graph, "tiny", "1", 1e-4f, 0);
    numbers(graph, "scale5", "5 1", 1, 0.3f);
    numbers(graph, "scale", "16", 1, 0.3f);
    numbers(graph, "shift", "16", 0, 1);
    numbers(graph, "mean", "16", 0, 1);
    numbers(graph, "variance", "16", 2, 0.5f);
    numbers(graph, "scale24", "24", 1, 0.3f);
    numbers(graph, "shift24", "24", 0, 1);
    numbers(graph, "mean24", "24", 0, 1);
    numbers(graph, "variance24", "24", 2, 0.5f);
}

static void each_is_part_of_the_product(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "FusedMatMul", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_part_of_the_product)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
