/* SPDX-License-Identifier: Apache-2.0 */
/* A normalisation that no convolution takes, and the activation behind it, are one step. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

#define NORM(x, y)                            \
    {                                         \
        "BatchNormalization", x " s t m v", y \
    }

static const struct spelling spellings[] = {
    {"before a convolution, of a map that others read",
     "? 5 4 3",
     "? 5 4 3",
     {{"none", "0"}},
     {{"Conv", "x w", "a"},
      NORM("a", "b"),
      {"Relu", "b", "c"},
      {"Conv", "c w", "d"},
      {"Add", "a d", "y"}},
     1},
    {"of a map that is pooled, and SiLU",
     "? 5 4 4",
     "? 5 2 2",
     {{"none", "0"}},
     {{"MaxPool", "x", "a", "kernel_shape", "3 3"},
      NORM("a", "b"),
      {"Sigmoid", "b", "c"},
      {"Mul", "b c", "y"}},
     1},
    {"in ONNX's order, bounds of a Clip",
     "? 5 7",
     "? 5 7",
     {{"none", "0"}},
     {NORM("x", "b"), {"Clip", "b zero two", "y"}},
     1},
    {"of rows", "? 5", "? 5", {{"none", "0"}}, {NORM("x", "b"), {"Relu", "b", "y"}}, 1},
    {"that others read as well",
     "? 5 4 3",
     "? 5 4 3",
     {{"none", "0"}},
     {NORM("x", "b"), {"Relu", "b", "c"}, {"Sub", "b c", "y"}},
     0},
    {"that is an output",
     "? 5 4 3",
     "? 5 4 3",
     {{"none", "0"}},
     {NORM("x", "b"), {"Relu", "b", "y"}},
     0,
     0,
     "b",
     "? 5 4 3"},
};

static void constants(struct proto *graph)
{
    static const char *const names[] = {"s", "t", "m", "v"};
    const float              zero = 0, two = 2;
    float                    w[25];
    for (int i = 0; i < (int)SAC_COUNT(w); i++)
        w[i] = spelling_number(i) * 0.3f;
    for (int k = 0; k < 4; k++) {
        float v[5];
        for (int i = 0; i < 5; i++)
            v[i] = k == 3 ? 1 + 0.25f * (float)i : spelling_number(5 * k + i);
        proto_initializer(graph, names[k], 1, "5", v, sizeof v);
    }
    proto_initializer(graph, "w", 1, "5 5 1 1", w, sizeof w);
    proto_initializer(graph, "zero", 1, "", &zero, sizeof zero);
    proto_initializer(graph, "two", 1, "", &two, sizeof two);
}

static void both_are_one_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "FusedBatchNorm", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_are_one_step)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
