/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind a Concat of convolutions is taken in by each of them; where one cannot take
 * it, all is as it was. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* Two convolutions of the halves of x, with kernels of their own sizes, side by side. */
#define HALVES                                                                              \
    {"Split", "x halves", "a b", "axis", "1"}, {"Conv", "a three", "c", "pads", "1 1 1 1"}, \
    {                                                                                       \
        "Conv", "b one bias", "d"                                                           \
    }
#define JOIN                              \
    {                                     \
        "Concat", "c d", "e", "axis", "1" \
    }
#define NORM                                   \
    {                                          \
        "BatchNormalization", "e s t m v", "f" \
    }

/* Steps: two convolutions, the order of the input's numbers and of the output's. */
static const struct spelling taken[] = {
    {"a normalisation and its activation",
     "? 6 5 4",
     "? 5 5 4",
     {{"halves", "3 3"}},
     {HALVES, JOIN, NORM, {"Relu", "f", "y"}},
     2,
     4},
    {"spelled as constants, and SiLU",
     "? 6 5 4",
     "? 5 5 4",
     {{"halves", "3 3"}},
     {HALVES,
      JOIN,
      {"Mul", "scale e", "f"},
      {"Sub", "f shift", "g"},
      {"Div", "g two", "h"},
      {"Add", "shift h", "i"},
      {"Sigmoid", "i", "j"},
      {"Mul", "i j", "y"}},
     2,
     4},
    {"a Concat counted from behind, bounds of a Clip",
     "? 6 5 4",
     "? 5 5 4",
     {{"halves", "3 3"}},
     {HALVES, {"Concat", "c d", "e", "axis", "-3"}, NORM, {"Clip", "f zero two", "y"}},
     2,
     4},
    {"a residual that was concatenated of the same parts",
     "? 6 5 4",
     "? 5 5 4",
     {{"halves", "3 3"}, {"parts", "3 2"}},
     {HALVES,
      JOIN,
      NORM,
      {"Split", "f parts", "g h", "axis", "1"},
      {"Conv", "g three", "i", "pads", "1 1 1 1"},
      {"Conv", "h two_to_two", "j"},
      {"Concat", "i j", "k", "axis", "1"},
      {"BatchNormalization", "k s t m v", "l"},
      {"Add", "l f", "n"},
      {"Relu", "n", "y"}},
     4,
     6},
    {"a residual that is one map",
     "? 6 5 4",
     "? 5 5 4",
     {{"halves", "3 3"}},
     {{"Conv", "x six", "r"}, HALVES, JOIN, NORM, {"Add", "r f", "n"}, {"Relu", "n", "y"}},
     3,
     6}, /* the input itself is cut, before it is turned */
};

/* Of what does not go into the convolutions one step is counted. */
static const struct spelling stays[] = {
    {"somebody else reads the Concat",
     "? 6 5 4",
     "? 5 5 4",
     {{"halves", "3 3"}},
     {HALVES, JOIN, NORM, {"Add", "e f", "y"}},
     1},
    {"one of them is activated",
     "? 6 5 4",
     "? 5 5 4",
     {{"halves", "3 3"}},
     {{"Split", "x halves", "a b", "axis", "1"},
      {"Conv", "a three", "z", "pads", "1 1 1 1"},
      {"Relu", "z", "c"},
      {"Conv", "b one bias", "d"},
      JOIN,
      {"BatchNormalization", "e s t m v", "y"}},
     1},
    {"one of them is an output",
     "? 6 5 4",
     "? 5 5 4",
     {{"halves", "3 3"}},
     {HALVES, JOIN, {"BatchNormalization", "e s t m v", "y"}},
     1,
     0,
     "d",
     "? 2 5 4"},
    {"one of them twice",
     "? 6 5 4",
     "? 6 5 4",
     {{"halves", "3 3"}},
     {{"Split", "x halves", "a b", "axis", "1"},
      {"Conv", "a three", "c", "pads", "1 1 1 1"},
      {"Concat", "c c", "e", "axis", "1"},
      {"BatchNormalization", "e s6 t6 m6 v6", "y"}},
     1},
    {"beside what is no convolution",
     "? 6 5 4",
     "? 6 5 4",
     {{"halves", "3 3"}},
     {{"Split", "x halves", "a b", "axis", "1"},
      {"Conv", "a three", "c", "pads", "1 1 1 1"},
      {"MaxPool", "b", "d", "kernel_shape", "1 1"},
      JOIN,
      {"BatchNormalization", "e s6 t6 m6 v6", "y"}},
     1},
    {"a Concat of rows",
     "? 6 5 4",
     "? 3 10 4",
     {{"halves", "3 3"}},
     {{"Split", "x halves", "a b", "axis", "1"},
      {"Conv", "a three", "c", "pads", "1 1 1 1"},
      {"Conv", "b three", "d", "pads", "1 1 1 1"},
      {"Concat", "c d", "e", "axis", "2"},
      {"BatchNormalization", "e s3 t3 m3 v3", "y"}},
     1},
};

static void norm(struct proto *graph, const char *of, const char *dims, int channels)
{
    static const char *const names = "stmv";
    for (int k = 0; k < 4; k++) {
        float v[8];
        char  name[8];
        snprintf(name, sizeof name, "%c%s", names[k], of);
        for (int i = 0; i < channels; i++)
            v[i] = k == 3 ? 1 + 0.25f * (float)i : spelling_number(5 * k + i);
        proto_initializer(graph, name, 1, dims, v, (size_t)channels * sizeof *v);
    }
}

static void constants(struct proto *graph)
{
    const float zero = 0, two = 2, bias[2] = {0.25f, -1};
    float       w[3 * 3 * 9], v[5];
    for (int i = 0; i < (int)SAC_COUNT(w); i++)
        w[i] = spelling_number(i) * 0.2f;
    for (int i = 0; i < 5; i++)
        v[i] = spelling_number(i + 3);
    proto_initializer(graph, "three", 1, "3 3 3 3", w, sizeof w);
    proto_initializer(graph, "one", 1, "2 3 1 1", w + 7, 6 * sizeof *w);
    proto_initializer(graph, "two_to_two", 1, "2 2 1 1", w + 2, 4 * sizeof *w);
    proto_initializer(graph, "six", 1, "5 6 1 1", w + 3, 30 * sizeof *w);
    proto_initializer(graph, "bias", 1, "2", bias, sizeof bias);
    proto_initializer(graph, "scale", 1, "1 5 1 1", v, sizeof v);
    proto_initializer(graph, "shift", 1, "5 1 1", v, sizeof v);
    proto_initializer(graph, "zero", 1, "", &zero, sizeof zero);
    proto_initializer(graph, "two", 1, "", &two, sizeof two);
    norm(graph, "", "5", 5);
    norm(graph, "3", "3", 3);
    norm(graph, "6", "6", 6);
}

static void convolutions_take_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(taken); i++)
        spelling_check(&taken[i], "Conv", constants);
}

static void else_it_stays(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(stays); i++)
        spelling_check(&stays[i], "BatchNormalization", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(convolutions_take_it),
                                       cmocka_unit_test(else_it_stays)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
