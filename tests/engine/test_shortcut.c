/* SPDX-License-Identifier: Apache-2.0 */
/* A shortcut of fewer channels is a residual of the convolution that it is added to, with the same
 * numbers. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

#define X "? 8 5 6", "? 21 5 6"
/* clang-format off */
#define BOUNDS                                                                            \
    {{"parts", "8 13"}, {"zero", "0"}, {"eight", "8"}, {"nine", "9"}, {"end", "1000"},     \
     {"back", "-13"}, {"one", "1"}, {"pads", "0 0 0 0 0 13 0 0"}, {"front", "0 13 0 0 0 0 0 0"}}
/* clang-format on */

static const struct spelling spellings[] = {
    {"slices",
     X,
     BOUNDS,
     {{"Conv", "x w", "c"},
      {"Slice", "c zero eight one", "p"},
      {"Add", "p x", "s"},
      {"Slice", "c eight end one", "q"},
      {"Concat", "s q", "y", "axis", "1"}},
     1,
     3},
    {"slices that count from the end, and an activation",
     X,
     BOUNDS,
     {{"Conv", "x w b", "c"},
      {"Slice", "c back end one", "q"},
      {"Slice", "c zero back one", "p"},
      {"Add", "x p", "s"},
      {"Concat", "s q", "t", "axis", "-3"},
      {"Relu", "t", "y"}},
     1,
     3},
    {"a split, and an activation before it",
     X,
     BOUNDS,
     {{"Conv", "x w b", "c"},
      {"Sigmoid", "c", "d"},
      {"Split", "d parts", "p q", "axis", "1"},
      {"Add", "p x", "s"},
      {"Concat", "s q", "y", "axis", "1"}},
     1,
     3},
    {"what is padded by channels of zeros",
     X,
     BOUNDS,
     {{"Pad", "x pads", "p"}, {"Conv", "x w b", "c"}, {"Add", "p c", "s"}, {"Relu", "s", "y"}},
     1,
     3},
    {"channels of zeros before it",
     X,
     BOUNDS,
     {{"Pad", "x front", "p"}, {"Conv", "x w b", "c"}, {"Add", "c p", "y"}},
     1,
     4},
    {"the others come first",
     X,
     BOUNDS,
     {{"Conv", "x w", "c"},
      {"Split", "c parts", "p q", "axis", "1"},
      {"Add", "p x", "s"},
      {"Concat", "q s", "y", "axis", "1"}}},
    {"a channel that both have",
     "? 9 5 6",
     "? 22 5 6",
     BOUNDS,
     {{"Conv", "x w9", "c"},
      {"Slice", "c zero nine one", "p"},
      {"Add", "p x", "s"},
      {"Slice", "c eight end one", "q"},
      {"Concat", "s q", "y", "axis", "1"}}},
    {"something else that reads it",
     X,
     BOUNDS,
     {{"Conv", "x w", "c"},
      {"Split", "c parts", "p q", "axis", "1"},
      {"Add", "p x", "s"},
      {"Concat", "s q", "y", "axis", "1"}},
     0,
     0,
     "c",
     "? 21 5 6"},
    {"a sum that is an output",
     X,
     BOUNDS,
     {{"Conv", "x w", "c"},
      {"Split", "c parts", "p q", "axis", "1"},
      {"Add", "p x", "s"},
      {"Concat", "s q", "y", "axis", "1"}},
     0,
     0,
     "s",
     "? 8 5 6"},
    {"slices of rows as well",
     "? 8 3 6",
     "? 21 3 6",
     {{"zeros", "0 0"}, {"ends", "8 3"}, {"rest", "8 0"}, {"all", "1000 3"}, {"axes", "1 2"}},
     {{"Conv", "x w", "c"},
      {"Slice", "c zeros ends axes", "p"},
      {"Add", "p x", "s"},
      {"Slice", "c rest all axes", "q"},
      {"Concat", "s q", "y", "axis", "1"}}},
    {"one that is broadcast",
     X,
     BOUNDS,
     {{"GlobalAveragePool", "x", "m"},
      {"Conv", "x w", "c"},
      {"Split", "c parts", "p q", "axis", "1"},
      {"Add", "p m", "s"},
      {"Concat", "s q", "y", "axis", "1"}}},
};

static void constants(struct proto *graph)
{
    static float w[21 * 9];
    for (int i = 0; i < 21 * 9; i++)
        w[i] = 0.2f * spelling_number(i + 5);
    proto_initializer(graph, "w", 1, "21 8 1 1", w, 21 * 8 * sizeof *w);
    proto_initializer(graph, "w9", 1, "21 9 1 1", w, sizeof w);
    proto_initializer(graph, "b", 1, "21", w, 21 * sizeof *w);
}

static void fewer_channels_are_a_residual(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "FusedConv", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fewer_channels_are_a_residual)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
