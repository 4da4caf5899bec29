/* SPDX-License-Identifier: Apache-2.0 */
/* The mean of constants by the shares of a Softmax, as exporters spell it, is one Expectation with
 * the numbers of the nodes that it replaces. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

#define BINS "apart", "-1 4 8 21"

static const struct spelling spellings[] = {
    {"a convolution of one pixel",
     "? 32 21",
     "? 4 21",
     {{BINS}, {"sides", "-1 4 21"}},
     {{"Reshape", "x apart", "b"},
      {"Transpose", "b", "t", "perm", "0 2 1 3"},
      {"Softmax", "t", "p", "axis", "1"},
      {"Conv", "p conv", "m"},
      {"Reshape", "m sides", "y"}},
     1},
    {"of some channels of maps",
     "? 37 3 7",
     "? 4 21",
     {{BINS}, {"sides", "-1 4 21"}, {"from", "5"}, {"to", "37"}, {"one", "1"}},
     {{"Slice", "x from to one", "c"},
      {"Reshape", "c apart", "b"},
      {"Transpose", "b", "t", "perm", "0 2 1 3"},
      {"Softmax", "t", "p", "axis", "1"},
      {"Conv", "p conv", "m"},
      {"Reshape", "m sides", "y"}},
     1},
    {"a product, the sides last",
     "? 32 21",
     "? 21 4",
     {{"apart", "-1 21 4 8"}},
     {{"Transpose", "x", "t", "perm", "0 2 1"},
      {"Reshape", "t apart", "b"},
      {"Softmax", "b", "p", "axis", "3"},
      {"MatMul", "p vector", "y"}},
     1},
    {"a product with channels last, all lines one list",
     "? 21 32",
     "? 21 4",
     {{"apart", "-1 8"}, {"sides", "-1 21 4"}},
     {{"Reshape", "x apart", "b"},
      {"Softmax", "b", "p", "axis", "1"},
      {"MatMul", "p column", "m"},
      {"Reshape", "m sides", "y"}},
     1},
    {"a sum of products",
     "? 32 21",
     "? 4 21",
     {{BINS}, {"axis", "2"}},
     {{"Reshape", "x apart", "b"},
      {"Softmax", "b", "p", "axis", "2"},
      {"Mul", "p row", "m"},
      {"ReduceSum", "m axis", "y", "keepdims", "0"}},
     1},
    {"a sum over what is no bin",
     "? 32 21",
     "? 8 21",
     {{BINS}, {"axis", "1"}},
     {{"Reshape", "x apart", "b"},
      {"Softmax", "b", "p", "axis", "2"},
      {"Mul", "p row", "m"},
      {"ReduceSum", "m axis", "y", "keepdims", "0"}},
     0},
    {"shares that are an output too",
     "? 32 21",
     "? 4 21",
     {{BINS}, {"axis", "2"}},
     {{"Reshape", "x apart", "b"},
      {"Softmax", "b", "p", "axis", "2"},
      {"Mul", "p row", "m"},
      {"ReduceSum", "m axis", "y", "keepdims", "0"}},
     0,
     0,
     "p",
     "? 4 8 21"},
    {"boxes by centre and size, and classes",
     "? 37 21",
     "? 9 21",
     {{BINS},
      {"sides", "-1 4 21"},
      {"0", "0"},
      {"2", "2"},
      {"4", "4"},
      {"one", "1"},
      {"parts", "32 5"}},
     {{"Split", "x parts", "box kinds", "axis", "1"},
      {"Reshape", "box apart", "b"},
      {"Transpose", "b", "t", "perm", "0 2 1 3"},
      {"Softmax", "t", "p", "axis", "1"},
      {"Conv", "p conv", "m"},
      {"Reshape", "m sides", "d"},
      {"Slice", "d 0 2 one", "before"},
      {"Slice", "d 2 4 one", "after"},
      {"Sub", "centres before", "first"},
      {"Add", "after centres", "last"},
      {"Add", "first last", "both"},
      {"Div", "both two", "centre"},
      {"Sub", "last first", "size"},
      {"Concat", "centre size", "cells", "axis", "1"},
      {"Mul", "cells strides", "boxes"},
      {"Sigmoid", "kinds", "shares"},
      {"Concat", "boxes shares", "y", "axis", "1"}},
     1,
     4},
    {"boxes by corners, the sides last",
     "? 32 21",
     "? 21 4",
     {{"apart", "-1 21 4 8"}},
     {{"Transpose", "x", "t", "perm", "0 2 1"},
      {"Reshape", "t apart", "b"},
      {"Softmax", "b", "p", "axis", "3"},
      {"MatMul", "p vector", "d"},
      {"Mul", "d steps", "m"},
      {"Split", "m", "before after", "axis", "2"},
      {"Sub", "points before", "first"},
      {"Add", "points after", "last"},
      {"Concat", "first last", "y", "axis", "2"}},
     1,
     2},
    {"sides one by one",
     "? 32 21",
     "? 21 2",
     {{BINS}, {"sides", "-1 4 21"}, {"end", "-1"}},
     {{"Reshape", "x apart", "b"},
      {"Transpose", "b", "t", "perm", "0 2 1 3"},
      {"Softmax", "t", "p", "axis", "1"},
      {"Conv", "p conv", "m"},
      {"Reshape", "m sides", "d"},
      {"Gather", "d first_side", "l", "axis", "1"},
      {"Gather", "d last_side", "r", "axis", "1"},
      {"Add", "l r", "w"},
      {"Sub", "l two", "x0"},
      {"Unsqueeze", "w end", "w2"},
      {"Unsqueeze", "x0 end", "x2"},
      {"Concat", "x2 w2", "y", "axis", "-1"}},
     1,
     2},
    {"boxes of two levels, and classes",
     "? 37 21",
     "? 9 21",
     {{"levels", "14 7"},
      {"map1", "-1 32 2 7"},
      {"map2", "-1 32 1 7"},
      {"parts", "32 5"},
      {"bins1", "-1 4 8 14"},
      {"bins2", "-1 4 8 7"},
      {"sides1", "-1 4 14"},
      {"sides2", "-1 4 7"}},
     {{"Split", "x parts", "box kinds", "axis", "1"},
      {"Split", "box levels", "b1 b2", "axis", "2"},
      {"Reshape", "b1 map1", "m1"},
      {"Reshape", "b2 map2", "m2"},
      {"Relu", "m1", "r1"},
      {"Relu", "m2", "r2"},
      {"Reshape", "r1 bins1", "a1"},
      {"Reshape", "r2 bins2", "a2"},
      {"Transpose", "a1", "t1", "perm", "0 2 1 3"},
      {"Transpose", "a2", "t2", "perm", "0 2 1 3"},
      {"Softmax", "t1", "p1", "axis", "1"},
      {"Softmax", "t2", "p2", "axis", "1"},
      {"Conv", "p1 conv", "e1"},
      {"Conv", "p2 conv", "e2"},
      {"Reshape", "e1 sides1", "d1"},
      {"Reshape", "e2 sides2", "d2"},
      {"Concat", "d1 d2", "d", "axis", "2"},
      {"Mul", "d strides", "boxes"},
      {"Concat", "boxes kinds", "y", "axis", "1"}},
     1},
    {"boxes of two levels, the sides last",
     "? 32 21",
     "? 21 4",
     {{"levels", "14 7"}, {"bins1", "-1 14 4 8"}, {"bins2", "-1 7 4 8"}},
     {{"Split", "x levels", "b1 b2", "axis", "2"},
      {"Transpose", "b1", "t1", "perm", "0 2 1"},
      {"Transpose", "b2", "t2", "perm", "0 2 1"},
      {"Reshape", "t1 bins1", "a1"},
      {"Reshape", "t2 bins2", "a2"},
      {"Softmax", "a1", "p1", "axis", "3"},
      {"Softmax", "a2", "p2", "axis", "3"},
      {"MatMul", "p1 vector", "d1"},
      {"MatMul", "p2 vector", "d2"},
      {"Concat", "d1 d2", "d", "axis", "1"},
      {"Mul", "d steps", "y"}},
     1},
    {"sides that something else reads too",
     "? 32 21",
     "? 4 21",
     {{BINS}, {"sides", "-1 4 21"}},
     {{"Reshape", "x apart", "b"},
      {"Transpose", "b", "t", "perm", "0 2 1 3"},
      {"Softmax", "t", "p", "axis", "1"},
      {"Conv", "p conv", "m"},
      {"Reshape", "m sides", "d"},
      {"Mul", "d strides", "y"}},
     1,
     5,
     "d",
     "? 4 21"},
    {"sides times each other",
     "? 32 21",
     "? 2 21",
     {{BINS}, {"sides", "-1 4 21"}},
     {{"Reshape", "x apart", "b"},
      {"Transpose", "b", "t", "perm", "0 2 1 3"},
      {"Softmax", "t", "p", "axis", "1"},
      {"Conv", "p conv", "m"},
      {"Reshape", "m sides", "d"},
      {"Split", "d", "before after", "axis", "1"},
      {"Mul", "before after", "y"}},
     1},
    {"bins before the sides: one group of a map",
     "? 32 21",
     "? 4 21",
     {{"mixed", "-1 8 4 21"}, {"sides", "-1 4 21"}},
     {{"Reshape", "x mixed", "t"},
      {"Softmax", "t", "p", "axis", "1"},
      {"Conv", "p conv", "m"},
      {"Reshape", "m sides", "y"}},
     1},
};

/* Of 7 by 3 cells. */
static void add_grid(struct proto *graph)
{
    const float   two = 2;
    const int64_t first = 0, last = -2;
    float         centres[2 * 21], points[21 * 2], strides[21], steps[21];
    for (int i = 0; i < 21; i++) {
        points[2 * i] = centres[i] = (float)(i % 7) + 0.5f;
        points[2 * i + 1] = centres[21 + i] = (float)(i / 7) + 0.5f;
        strides[i] = steps[i] = i < 14 ? 0.25f : 0.5f;
    }
    proto_initializer(graph, "two", 1, "", &two, sizeof two);
    proto_initializer(graph, "first_side", 7, "", &first, sizeof first);
    proto_initializer(graph, "last_side", 7, "", &last, sizeof last);
    proto_initializer(graph, "centres", 1, "1 2 21", centres, sizeof centres);
    proto_initializer(graph, "points", 1, "21 2", points, sizeof points);
    proto_initializer(graph, "strides", 1, "1 21", strides, sizeof strides);
    proto_initializer(graph, "steps", 1, "1 21 1", steps, sizeof steps);
}

static void constants(struct proto *graph)
{
    float w[8];
    for (int i = 0; i < 8; i++)
        w[i] = (float)i;
    proto_initializer(graph, "conv", 1, "1 8 1 1", w, sizeof w);
    proto_initializer(graph, "vector", 1, "8", w, sizeof w);
    proto_initializer(graph, "column", 1, "8 1", w, sizeof w);
    proto_initializer(graph, "row", 1, "1 8 1", w, sizeof w);
    add_grid(graph);
}

static void each_spelling_is_one_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "Expectation", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_spelling_is_one_step)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
