/* SPDX-License-Identifier: Apache-2.0 */
/* Products of heads that are taken apart and put together by nodes around them are HeadMatMuls
 * without these; others stay what they are. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

static const struct spelling taken[] = {
    {"channels that meet channels: split, turned, and put together",
     "? 5 24",
     "? 5 8",
     {{"apart", "0 5 3 2 4"}, {"axis", "0"}, {"flat", "0 5 8"}},
     {{"Reshape", "x apart", "r"},
      {"Transpose", "r", "t", "perm", "2 0 3 4 1 "},
      {"Split", "t", "q k v", "axis", "0"},
      {"Squeeze", "q axis", "q4"},
      {"Squeeze", "k axis", "k4"},
      {"Squeeze", "v axis", "v4"},
      {"Transpose", "k4", "kt", "perm", "0 1 3 2 "},
      {"MatMul", "q4 kt", "s"},
      {"Sigmoid", "s", "g"},
      {"MatMul", "g v4", "m"},
      {"Transpose", "m", "back", "perm", "0 3 1 2 "},
      {"Reshape", "back flat", "y"}},
     2,
     3},
    {"rows of a map that have matrices of their own",
     "? 6 8",
     "? 6 4",
     {{"map", "-1 2 3 8"}, {"rows", "2 -1 8"}, {"made", "2 -1 3 4"}, {"flat", "-1 6 4"}},
     {{"Reshape", "x map", "m"},
      {"Transpose", "m", "t", "perm", "1 0 2 3 "},
      {"Reshape", "t rows", "r"},
      {"MatMul", "r tables", "p"},
      {"Reshape", "p made", "q"},
      {"Transpose", "q", "u", "perm", "1 0 2 3 "},
      {"Reshape", "u flat", "y"}},
     1,
     1},
    {"tokens that meet tokens, with a scale before",
     "? 5 24",
     "? 2 5 5",
     {{"apart", "0 5 3 2 4"}},
     {{"Reshape", "x apart", "r"},
      {"Transpose", "r", "t", "perm", "2 0 3 1 4 "},
      {"Gather", "t zero", "q", "axis", "0"},
      {"Gather", "t one", "k", "axis", "0"},
      {"Mul", "q half", "qs"},
      {"Transpose", "k", "kt", "perm", "0 1 3 2 "},
      {"MatMul", "qs kt", "y"}},
     1,
     1},
    {"tokens that meet tokens, with a scale behind",
     "? 5 24",
     "? 2 5 5",
     {{"apart", "0 5 3 2 4"}},
     {{"Reshape", "x apart", "r"},
      {"Transpose", "r", "t", "perm", "2 0 3 1 4 "},
      {"Gather", "t zero", "q", "axis", "0"},
      {"Gather", "t one", "k", "axis", "0"},
      {"Transpose", "k", "kt", "perm", "0 1 3 2 "},
      {"MatMul", "q kt", "s"},
      {"Div", "s half", "y"}},
     1,
     1},
    {"channels of a map",
     "? 24 3 2",
     "? 2 4 4",
     {{"flat", "0 2 12 6"}, {"from", "0"}, {"middle", "4"}, {"until", "8"}, {"last", "-1"}},
     {{"Reshape", "x flat", "r"},
      {"Transpose", "r", "t", "perm", "0 1 3 2 "},
      {"Slice", "t from middle last", "q"},
      {"Slice", "t middle until last", "k"},
      {"Transpose", "q", "qt", "perm", "0 1 3 2 "},
      {"MatMul", "qt k", "y"}},
     1,
     1},
    {"what is turned is read by others too",
     "? 5 8",
     "? 5 5",
     {{NULL}},
     {{"Transpose", "x", "t", "perm", "0 2 1 "},
      {"Relu", "t", "r"},
      {"MatMul", "x t", "m"},
      {"ReduceSum", "r", "s"},
      {"Add", "m s", "y"}},
     1},
    {"put together alone",
     "? 2 5 5",
     "? 5 10",
     {{"flat", "0 5 10"}},
     {{"Sigmoid", "x", "a"},
      {"Relu", "x", "b"},
      {"MatMul", "a b", "m"},
      {"Transpose", "m", "back", "perm", "0 2 1 3 "},
      {"Reshape", "back flat", "y"}},
     1,
     3},
};
static const struct spelling left[] = {
    {"nothing moves",
     "? 2 5 5",
     "? 2 5 5",
     {{NULL}},
     {{"Sigmoid", "x", "a"}, {"Relu", "x", "b"}, {"MatMul", "a b", "y"}},
     0},
    {"one matrix for all heads",
     "? 2 5 5",
     "? 2 5 5",
     {{"flat", "0 1 5 10"}, {"from", "0"}, {"until", "5"}, {"last", "-1"}},
     {{"Reshape", "x flat", "r"},
      {"Slice", "r from until last", "single"},
      {"Transpose", "single", "t", "perm", "0 1 3 2 "},
      {"MatMul", "x t", "y"}},
     0},
    {"as much arithmetic as a dense product has",
     "? 320 320",
     "? 320 320",
     {{NULL}},
     {{"Transpose", "x", "t", "perm", "0 2 1 "}, {"MatMul", "x t", "y"}},
     0},
};

static void constants(struct proto *graph)
{
    const float   half = 0.5f;
    const int64_t zero = 0, one = 1;
    float         tables[64];
    for (int i = 0; i < 64; i++)
        tables[i] = spelling_number(i);
    proto_initializer(graph, "tables", 1, "2 8 4", tables, sizeof tables);
    proto_initializer(graph, "half", 1, "", &half, sizeof half);
    proto_initializer(graph, "zero", 7, "", &zero, sizeof zero);
    proto_initializer(graph, "one", 7, "", &one, sizeof one);
}

static void heads_are_read_where_they_lie(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(taken); i++)
        spelling_check(&taken[i], "HeadMatMul", constants);
}

static void other_products_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(left); i++)
        spelling_check(&left[i], "HeadMatMul", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(heads_are_read_where_they_lie),
                                       cmocka_unit_test(other_products_stay)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
