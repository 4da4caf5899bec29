/* SPDX-License-Identifier: Apache-2.0 */
/* Products of constant weights with tokens are HeadMatMuls without the Transposes around them, with
 * what is behind them; others stay what they are. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* clang-format off */
#define TURN(from, to) {"Transpose", from, to, "perm", "0 2 1 "}
/* clang-format on */

static const struct spelling taken[] = {
    {"mixed tokens gate others, out of one product",
     "? 5 16",
     "? 5 8",
     {{"from", "0"}, {"middle", "8"}, {"until", "16"}, {"last", "-1"}},
     {{"Slice", "x from middle last", "u"},
      {"Slice", "x middle until last", "v"},
      TURN("v", "t"),
      {"MatMul", "t square", "m"},
      {"Add", "five m", "b"},
      TURN("b", "back"),
      {"Mul", "u back", "y"}},
     1,
     1},
    {"two layers with an activation between, and a residual sum",
     "? 5 8",
     "? 5 8",
     {{NULL}},
     {TURN("x", "t"),
      {"MatMul", "t wider", "m"},
      {"Add", "m seven", "b"},
      {"Relu", "b", "r"},
      {"MatMul", "r narrower", "n"},
      {"Add", "n five", "c"},
      TURN("c", "back"),
      {"Add", "x back", "y"}},
     2,
     2},
    {"a gated linear unit of tokens, between two products",
     "? 5 8",
     "? 5 8",
     {{"halves", "8 8"}},
     {TURN("x", "t"),
      {"MatMul", "t widest", "m"},
      {"Add", "m sixteen", "b"},
      {"Split", "b halves", "u v", "axis", "-1"},
      {"Sigmoid", "v", "s"},
      {"Mul", "v s", "g"},
      {"Mul", "u g", "z"},
      {"MatMul", "z back_again", "n"},
      TURN("n", "y")},
     3,
     3},
    {"one that is turned back before it is cut, the first half activated, without a bias",
     "? 5 3",
     "? 8 3",
     {{"from", "0"}, {"middle", "8"}, {"until", "16"}, {"axes", "1"}},
     {TURN("x", "t"),
      {"MatMul", "t widest", "m"},
      TURN("m", "b"),
      {"Slice", "b from middle axes", "u"},
      {"Slice", "b middle until axes", "v"},
      {"Gelu", "u", "g"},
      {"Mul", "g v", "y"}},
     2,
     2},
    {"both halves activated, of heads",
     "? 5 2 8",
     "? 2 8 8",
     {{"halves", "8 8"}},
     {{"Transpose", "x", "t", "perm", "0 2 3 1 "},
      {"MatMul", "t widest", "m"},
      {"Add", "m sixteen", "b"},
      {"Split", "b halves", "u v", "axis", "3"},
      {"Tanh", "u", "a"},
      {"Relu", "v", "r"},
      {"Mul", "a r", "y"}},
     2,
     2},
    {"a unit one of whose halves is read again",
     "? 5 8",
     "? 8 8",
     {{"halves", "8 8"}},
     {TURN("x", "t"),
      {"MatMul", "t widest", "m"},
      {"Split", "m halves", "u v", "axis", "2"},
      {"Tanh", "u", "a"},
      {"Mul", "a v", "z"},
      {"Add", "z v", "y"}},
     1},
    {"a unit whose halves are cut along the channels",
     "? 5 16",
     "? 8 16",
     {{"halves", "8 8"}},
     {TURN("x", "t"),
      {"MatMul", "t widest", "m"},
      {"Split", "m halves", "u v", "axis", "1"},
      {"Tanh", "u", "a"},
      {"Mul", "a v", "y"}},
     1},
    {"the product is an output too",
     "? 5 8",
     "? 8 8",
     {{"halves", "8 8"}},
     {TURN("x", "t"),
      {"MatMul", "t widest", "m"},
      {"Split", "m halves", "u v", "axis", "2"},
      {"Tanh", "u", "a"},
      {"Mul", "a v", "y"}},
     1,
     0,
     "m",
     "? 8 16"},
    {"turned before alone",
     "? 5 8",
     "? 8 7",
     {{NULL}},
     {TURN("x", "t"), {"MatMul", "t wider", "y"}},
     1,
     1},
    {"turned behind alone",
     "? 8 5",
     "? 7 8",
     {{NULL}},
     {{"MatMul", "x wider", "m"}, {"Gelu", "m", "g"}, TURN("g", "y")},
     1,
     1},
    {"heads, and a factor",
     "? 5 2 8",
     "? 2 8 7",
     {{NULL}},
     {{"Mul", "x half", "h"},
      {"Transpose", "h", "t", "perm", "0 2 3 1 "},
      {"MatMul", "t wider", "y"}},
     1,
     1},
    {"what is mixed is an output too",
     "? 5 8",
     "? 5 8",
     {{NULL}},
     {TURN("x", "t"), {"MatMul", "t square", "m"}, TURN("m", "back"), {"Mul", "back x", "y"}},
     1,
     2,
     "back",
     "? 5 8"},
    {"a gate that is broadcast stays behind",
     "? 5 8",
     "? 5 8",
     {{"axes", "1"}},
     {TURN("x", "t"),
      {"MatMul", "t square", "m"},
      TURN("m", "back"),
      {"ReduceMax", "x axes", "g"},
      {"Mul", "back g", "y"}},
     1,
     3},
    {"what is mixed gates itself",
     "? 5 8",
     "? 5 8",
     {{NULL}},
     {TURN("x", "t"), {"MatMul", "t square", "m"}, TURN("m", "back"), {"Mul", "back back", "y"}},
     1,
     2},
};
static const struct spelling stays[] = {
    {"nothing is turned", "? 8 5", "? 8 7", {{NULL}}, {{"MatMul", "x wider", "y"}}, 0, 1},
    {"as much arithmetic as a dense product has",
     "? 400 8",
     "? 400 8",
     {{NULL}},
     {TURN("x", "t"), {"MatMul", "t large", "m"}, TURN("m", "y")},
     0},
    {"tokens that become a map",
     "? 12 5",
     "? 7 3 4",
     {{"map", "0 7 3 4"}},
     {{"MatMul", "x wider", "m"},
      {"Add", "m seven", "b"},
      TURN("b", "t"),
      {"Reshape", "t map", "c"},
      {"Relu", "c", "y"}},
     0},
    {"tokens that become channels of a convolution",
     "? 12 5",
     "? 7 12",
     {{NULL}},
     {{"MatMul", "x wider", "m"}, TURN("m", "t"), {"Conv", "t filters", "y"}},
     0},
    {"tokens of a map",
     "? 5 3 4",
     "? 12 7",
     {{"lines", "0 5 12"}},
     {{"Conv", "x points", "c"},
      {"Reshape", "c lines", "l"},
      TURN("l", "t"),
      {"MatMul", "t wider", "y"}},
     0},
    {"weights of each sample",
     "2 5 8",
     "2 8 7",
     {{NULL}},
     {TURN("x", "t"), {"MatMul", "t of_two", "y"}},
     0},
};

static void floats(struct proto *graph, const char *name, const char *dims, int64_t count)
{
    float *numbers = sac_alloc((size_t)count * sizeof *numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = 0.3f * spelling_number((int)i);
    proto_initializer(graph, name, 1, dims, numbers, (size_t)count * sizeof *numbers);
    sac_free(numbers);
}

static void constants(struct proto *graph)
{
    const float half = 0.5f;
    floats(graph, "square", "5 5", 25);
    floats(graph, "wider", "5 7", 35);
    floats(graph, "narrower", "7 5", 35);
    floats(graph, "widest", "5 16", 80);
    floats(graph, "back_again", "8 5", 40);
    floats(graph, "sixteen", "16", 16);
    floats(graph, "of_two", "2 5 7", 70);
    floats(graph, "large", "400 400", 160000);
    floats(graph, "filters", "7 7 1", 49);
    floats(graph, "points", "5 5 1 1", 25);
    floats(graph, "five", "5", 5);
    floats(graph, "seven", "7", 7);
    proto_initializer(graph, "half", 1, "", &half, sizeof half);
}

static void tokens_are_mixed_where_they_lie(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(taken); i++)
        spelling_check(&taken[i], "HeadMatMul", constants);
}

static void other_products_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(stays); i++)
        spelling_check(&stays[i], "HeadMatMul", constants);
}

/* A norm of what is cut out of longer lines reads it there. */
static const struct spelling cut[] = {
    {"half of a line",
     "? 5 16",
     "? 5 8",
     {{"middle", "8"}, {"until", "16"}, {"last", "-1"}},
     {{"Slice", "x middle until last", "v"}, {"LayerNormalization", "v eight", "y"}},
     1,
     1},
    {"of two outputs of a Split one",
     "? 5 16",
     "? 5 8",
     {{"parts", "8 8"}},
     {{"Split", "x parts", "u v", "axis", "2"},
      {"LayerNormalization", "v eight", "n"},
      {"Mul", "u n", "y"}},
     1},
};

static void cut_constants(struct proto *graph)
{
    floats(graph, "eight", "8", 8);
}

static void cut_lines_are_read_where_they_lie(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(cut); i++)
        spelling_check(&cut[i], "FusedNorm", cut_constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_mixed_where_they_lie),
        cmocka_unit_test(other_products_stay),
        cmocka_unit_test(cut_lines_are_read_where_they_lie),
    };
    return cmocka_run_group_tests(tests, NULL, close_device);
}
