/* SPDX-License-Identifier: Apache-2.0 */
/* The means of a map's channels and the layers behind them are one step. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* Steps: the convolution before, that one, the product, and the order of the output's numbers; or
 * that of the input's. */
static const struct spelling spellings[] = {
    {"two layers",
     "? 4 5 3",
     "? 4 5 3",
     {{"none", "0"}},
     {{"Conv", "x w", "a"},
      {"GlobalAveragePool", "a", "m"},
      {"Conv", "m down bias", "h"},
      {"Relu", "h", "i"},
      {"Conv", "i up", "j"},
      {"Sigmoid", "j", "k"},
      {"Mul", "a k", "y"}},
     1,
     4},
    {"one layer",
     "? 4 5 3",
     "? 4 5 3",
     {{"none", "0"}},
     {{"Conv", "x w", "a"},
      {"ReduceMean", "a", "m", "axes", "2 3"},
      {"Conv", "m w", "j"},
      {"HardSigmoid", "j", "k"},
      {"Mul", "k a", "y"}},
     1,
     4},
    {"one layer to another number of channels",
     "? 4 5 3",
     "? 3 1 1",
     {{"none", "0"}},
     {{"GlobalAveragePool", "x", "m"}, {"Conv", "m down bias", "y"}},
     1,
     2},
    {"two layers of means that others read",
     "? 4 5 3",
     "? 4 1 1",
     {{"none", "0"}},
     {{"GlobalAveragePool", "x", "m"},
      {"Conv", "m down bias", "h"},
      {"Conv", "h up", "j"},
      {"Sub", "m j", "y"}},
     1},
    {"a layer of pixels that are no means",
     "? 4 1 1",
     "? 3 1 1",
     {{"none", "0"}},
     {{"Relu", "x", "m"}, {"Conv", "m down bias", "y"}},
     0},
    {"means of rows",
     "? 4 5 3",
     "? 3 5 1",
     {{"none", "0"}},
     {{"ReduceMean", "x", "m", "axes", "3 "}, {"Conv", "m down bias", "y"}},
     0},
};

static void constants(struct proto *graph)
{
    const float bias[3] = {0.25f, -1, 0.5f};
    float       w[28];
    for (int i = 0; i < (int)SAC_COUNT(w); i++)
        w[i] = spelling_number(i) * 0.3f;
    proto_initializer(graph, "w", 1, "4 4 1 1", w, 16 * sizeof *w);
    proto_initializer(graph, "down", 1, "3 4 1 1", w + 4, 12 * sizeof *w);
    proto_initializer(graph, "up", 1, "4 3 1 1", w + 16, 12 * sizeof *w);
    proto_initializer(graph, "bias", 1, "3", bias, sizeof bias);
}

static void gates_are_one_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "Excitation", constants);
}

static void weights_of(struct proto *graph, int n, const char *dims)
{
    static float w[520 * 520];
    for (int i = 0; i < n * n; i++)
        w[i] = spelling_number(i) / (float)n;
    proto_initializer(graph, "w", 1, dims, w, (size_t)(n * n) * sizeof *w);
}

static void largest(struct proto *graph)
{
    weights_of(graph, 512, "512 512 1 1");
}

static void larger(struct proto *graph)
{
    weights_of(graph, 520, "520 520 1 1");
}

/* A convolution reads its weights once for all samples. */
static void a_large_layer_stays(void **state)
{
    static const struct spelling s[] = {{"the largest layer alone",
                                         "? 512 2 1",
                                         "? 512 1 1",
                                         {{"none", "0"}},
                                         {{"GlobalAveragePool", "x", "m"}, {"Conv", "m w", "y"}},
                                         1},
                                        {"a larger one",
                                         "? 520 2 1",
                                         "? 520 1 1",
                                         {{"none", "0"}},
                                         {{"GlobalAveragePool", "x", "m"}, {"Conv", "m w", "y"}},
                                         0}};
    (void)state;
    spelling_check(&s[0], "Excitation", largest);
    spelling_check(&s[1], "Excitation", larger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gates_are_one_step),
                                       cmocka_unit_test(a_large_layer_stays)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
