/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to each channel behind a convolution's activation is the convolution's, and so are
 * factors of its residual. */
#include <math.h>

#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

#define CONV(x, y)        \
    {                     \
        "Conv", x " w", y \
    }
#define NORM(x, y)                            \
    {                                         \
        "BatchNormalization", x " s t m v", y \
    }

static const struct spelling spellings[] = {
    {"a norm behind SiLU",
     "? 6 4 5",
     "? 6 4 5",
     {{"none", "0"}},
     {CONV("x", "a"), {"Sigmoid", "a", "b"}, {"Mul", "a b", "c"}, NORM("c", "y")},
     1,
     3},
    {"a sum behind that, as in ConvMixer",
     "? 6 4 5",
     "? 6 4 5",
     {{"none", "0"}},
     {CONV("x", "a"), {"Tanh", "a", "b"}, NORM("b", "c"), {"Add", "x c", "y"}},
     1,
     3},
    {"factors and numbers that are added",
     "? 6 4 5",
     "? 6 4 5",
     {{"none", "0"}},
     {CONV("x", "a"),
      {"Tanh", "a", "b"},
      {"Mul", "each b", "c"},
      {"Add", "c more", "d"},
      {"Mul", "d two", "y"}},
     1,
     3},
    {"a norm behind a sum and its ReLU",
     "? 6 4 5",
     "? 6 4 5",
     {{"none", "0"}},
     {CONV("x", "a"), {"Add", "a x", "b"}, {"Relu", "b", "c"}, NORM("c", "y")},
     1,
     3},
    {"factors of a residual",
     "? 6 4 5",
     "? 6 4 5",
     {{"none", "0"}},
     {CONV("x", "a"),
      {"Tanh", "a", "b"},
      {"Mul", "x each", "c"},
      {"Add", "b c", "d"},
      {"Conv", "d w", "e"},
      {"Add", "e d", "y"}},
     2,
     4},
    {"factors of a residual without an activation",
     "? 6 4 5",
     "? 6 4 5",
     {{"none", "0"}},
     {CONV("x", "a"), {"Mul", "each x", "c"}, {"Add", "c a", "y"}},
     1,
     3},
    {"a sequence",
     "? 6 7",
     "? 6 7",
     {{"none", "0"}},
     {{"Conv", "x w1", "a"}, {"Tanh", "a", "b"}, NORM("b", "y")},
     1,
     3},
    {"factors of a residual before an activation stay",
     "? 6 4 5",
     "? 6 4 5",
     {{"none", "0"}},
     {CONV("x", "a"), {"Mul", "each x", "c"}, {"Add", "c a", "d"}, {"Tanh", "d", "y"}},
     1,
     5},
    {"numbers of each column stay",
     "? 6 4 5",
     "? 6 4 5",
     {{"none", "0"}},
     {CONV("x", "a"), {"Tanh", "a", "b"}, {"Mul", "b columns", "y"}},
     1,
     4},
    {"what others read as well",
     "? 6 4 5",
     "? 6 4 5",
     {{"none", "0"}},
     {CONV("x", "a"), {"Tanh", "a", "b"}, NORM("b", "c"), {"Sub", "c b", "y"}},
     1,
     0},
    {"an output before it",
     "? 6 4 5",
     "? 6 4 5",
     {{"none", "0"}},
     {CONV("x", "a"), {"Tanh", "a", "b"}, NORM("b", "y")},
     1,
     0,
     "b",
     "? 6 4 5"},
};

static const struct spelling products[] = {
    {"factors of a product's residual, as in CAFormer",
     "? 7 6",
     "? 7 6",
     {{"none", "0"}},
     {{"MatMul", "x square", "a"}, {"Mul", "x row", "b"}, {"Add", "b a", "y"}},
     1,
     1},
    {"that others read as well",
     "? 7 6",
     "? 7 6",
     {{"none", "0"}},
     {{"MatMul", "x square", "a"},
      {"Mul", "x row", "b"},
      {"Add", "b a", "c"},
      {"MatMul", "c square", "d"},
      {"Mul", "row c", "e"},
      {"Add", "d e", "y"}},
     2,
     2},
    {"behind an activation",
     "? 7 6",
     "? 7 6",
     {{"none", "0"}},
     {{"MatMul", "x square", "a"},
      {"Tanh", "a", "b"},
      {"Mul", "b row", "c"},
      {"Add", "c row", "d"},
      {"Add", "d x", "y"}},
     1,
     1},
    {"factors of each row stay",
     "? 6 6",
     "? 6 6",
     {{"none", "0"}},
     {{"MatMul", "x square", "a"}, {"Mul", "x rows", "b"}, {"Add", "b a", "y"}},
     1,
     2},
};

#define PART_BY(factors)                                \
    CONV("x", "a"), {"Split", "a", "b c", "axis", "1"}, \
    {                                                   \
        "Mul", "b " factors, "d"                        \
    }

/* Weights that float16 would not hold: their factors stay. */
static const struct spelling kept[] = {
    {"some channels' factors that weights take",
     "? 6 4 5",
     "? 6 4 5",
     {{"none", "0"}},
     {PART_BY("three"), {"Concat", "c d", "y", "axis", "1"}},
     0},
    {"too large ones",
     "? 6 4 5",
     "? 6 4 5",
     {{"none", "0"}},
     {PART_BY("large"), {"Concat", "c d", "y", "axis", "1"}},
     1},
    {"too small ones",
     "? 6 4 5",
     "? 6 4 5",
     {{"none", "0"}},
     {PART_BY("small"), {"Concat", "c d", "y", "axis", "1"}},
     1},
    {"small ones beside a sum",
     "? 6 4 5",
     "? 3 4 5",
     {{"none", "0"}},
     {PART_BY("small"), {"Add", "c d", "y"}},
     0},
    {"zeros",
     "? 6 4 5",
     "? 6 4 5",
     {{"none", "0"}},
     {PART_BY("nothing"), {"Concat", "c d", "y", "axis", "1"}},
     0},
    {"infinite ones",
     "? 6 4 5",
     "? 6 3 4",
     {{"none", "0"}},
     {CONV("x", "a"),
      {"Mul", "a endless", "b"},
      {"MaxPool", "b", "c", "kernel_shape", "2 2"},
      {"Clip", "c one two", "y"}},
     1},
};

static void constants(struct proto *graph)
{
    static const char *const names[] = {"s", "t", "m", "v"};
    const float one = 1, two = 2, large = 1e6f, small = 1e-6f, nothing = 0, endless = INFINITY;
    float       w[36], v[6];
    for (int i = 0; i < (int)SAC_COUNT(w); i++)
        w[i] = spelling_number(i) * 0.3f;
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < 6; i++)
            v[i] = k == 3 ? 1 + 0.25f * (float)i : spelling_number(5 * k + i);
        proto_initializer(graph, names[k], 1, "6", v, sizeof v);
    }
    proto_initializer(graph, "each", 1, "6 1 1", w + 5, 6 * sizeof *w);
    proto_initializer(graph, "more", 1, "1 6 1 1", w + 11, 6 * sizeof *w);
    proto_initializer(graph, "columns", 1, "5", w, 5 * sizeof *w);
    proto_initializer(graph, "one", 1, "", &one, sizeof one);
    proto_initializer(graph, "two", 1, "", &two, sizeof two);
    proto_initializer(graph, "large", 1, "", &large, sizeof large);
    proto_initializer(graph, "small", 1, "", &small, sizeof small);
    proto_initializer(graph, "nothing", 1, "", &nothing, sizeof nothing);
    proto_initializer(graph, "endless", 1, "", &endless, sizeof endless);
    proto_initializer(graph, "three", 1, "3 1 1", w + 5, 3 * sizeof *w);
    proto_initializer(graph, "w", 1, "6 6 1 1", w, sizeof w);
    proto_initializer(graph, "square", 1, "6 6", w, sizeof w);
    proto_initializer(graph, "row", 1, "6", w + 17, 6 * sizeof *w);
    proto_initializer(graph, "rows", 1, "6 1", w + 17, 6 * sizeof *w);
    proto_initializer(graph, "w1", 1, "6 6 1", w, sizeof w);
}

static void each_is_one_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "FusedConv", constants);
    for (size_t i = 0; i < SAC_COUNT(products); i++)
        spelling_check(&products[i], "FusedMatMul", constants);
}

static void weights_keep_their_digits(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(kept); i++)
        spelling_check(&kept[i], "Mul", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_one_step),
                                       cmocka_unit_test(weights_keep_their_digits)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
