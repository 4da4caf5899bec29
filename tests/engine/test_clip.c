/* SPDX-License-Identifier: Apache-2.0 */
/* A factor and a constant behind a convolution's clip are the convolution's, with other bounds. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

enum { CHANNELS = 8, STEPS = 3 /* with two changes of layout */ };

/* clang-format off */
#define MAPS "? 8 3 4", "? 8 3 4", {{NULL}}
#define CONV {"Conv", "x weights", "c", "pads", "1 1 1 1"}
/* clang-format on */

static const struct spelling one_step[] = {
    {"a learnable affine block",
     MAPS,
     {CONV, {"Relu", "c", "r"}, {"Mul", "r two", "m"}, {"Add", "m half", "y"}},
     1,
     STEPS},
    {"of less than none, divided",
     MAPS,
     {CONV, {"Relu", "c", "r"}, {"Div", "r less", "m"}, {"Sub", "m half", "y"}},
     1,
     STEPS},
    {"behind two bounds",
     MAPS,
     {CONV, {"Clip", "c less two", "r"}, {"Mul", "less r", "m"}, {"Add", "half m", "y"}},
     1,
     STEPS},
    {"a factor of each channel",
     MAPS,
     {CONV, {"Relu", "c", "r"}, {"Mul", "r positive", "m"}, {"Add", "m half", "y"}},
     1,
     STEPS},
    {"and what follows takes it as a bound",
     MAPS,
     {CONV,
      {"Relu", "c", "r"},
      {"Mul", "r two", "m"},
      {"Add", "m half", "a"},
      {"Conv", "a weights", "y", "pads", "1 1 1 1"}},
     1,
     4},
};
static const struct spelling others[] = {
    {"factors of both signs",
     MAPS,
     {CONV, {"Relu", "c", "r"}, {"Mul", "r mixed", "m"}, {"Add", "m half", "y"}},
     1,
     STEPS + 2},
    {"a factor of none",
     MAPS,
     {CONV, {"Relu", "c", "r"}, {"Mul", "r zero", "m"}, {"Add", "m half", "y"}},
     1,
     STEPS},
    {"another bound for each channel",
     MAPS,
     {CONV, {"Relu", "c", "r"}, {"Add", "r positive", "y"}},
     1,
     STEPS},
    {"factors of each channel behind two bounds",
     MAPS,
     {CONV, {"Clip", "c less two", "r"}, {"Mul", "r positive", "y"}},
     1,
     STEPS},
    {"behind a sum",
     MAPS,
     {CONV, {"Add", "c x", "s"}, {"Relu", "s", "r"}, {"Mul", "r two", "y"}},
     1,
     STEPS},
    {"a bend that is no bound",
     MAPS,
     {CONV, {"LeakyRelu", "c", "r"}, {"Mul", "r two", "m"}, {"Add", "m half", "y"}},
     1,
     STEPS},
};

static void number(struct proto *graph, const char *name, float value)
{
    proto_initializer(graph, name, 1, "", &value, sizeof value);
}

static void constants(struct proto *graph)
{
    float positive[CHANNELS], mixed[CHANNELS], weights[CHANNELS * CHANNELS * 9];
    for (int i = 0; i < CHANNELS; i++) {
        mixed[i] = i % 2 ? 0.5f : -0.5f;
        positive[i] = 0.25f + 0.5f * (float)i;
    }
    for (size_t i = 0; i < SAC_COUNT(weights); i++)
        weights[i] = 0.2f * spelling_number((int)i);
    number(graph, "two", 2);
    number(graph, "half", 0.5f);
    number(graph, "less", -0.75f);
    number(graph, "zero", 0);
    proto_initializer(graph, "positive", 1, "8 1 1", positive, sizeof positive);
    proto_initializer(graph, "mixed", 1, "1 8 1 1", mixed, sizeof mixed);
    proto_initializer(graph, "weights", 1, "8 8 3 3", weights, sizeof weights);
}

static void factors_go_into_the_convolution(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(one_step); i++)
        spelling_check(&one_step[i], "FusedConv", constants);
}

static void others_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(others); i++)
        spelling_check(&others[i], "FusedConv", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_go_into_the_convolution),
        cmocka_unit_test(others_stay),
    };
    return cmocka_run_group_tests(tests, NULL, close_device);
}
