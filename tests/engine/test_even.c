/* SPDX-License-Identifier: Apache-2.0 */
/* A picture that is concatenated to maps before a convolution is padded to a multiple of eight
 * channels, with the same numbers. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

static const struct spelling spellings[] = {
    {"a picture behind a map",
     "? 19 5 6",
     "? 4 5 6",
     {{"parts", "16 3"}},
     {{"Split", "x parts", "map picture", "axis", "1"},
      {"Relu", "map", "a"},
      {"Concat", "a picture", "c", "axis", "1"},
      {"Conv", "c w19", "y", "pads", "1 1 1 1"}},
     1},
    {"a picture first, and maps of odd channels",
     "? 30 5 6",
     "? 4 5 6",
     {{"parts", "2 12 16"}},
     {{"Split", "x parts", "picture odd map", "axis", "1"},
      {"Relu", "map", "a"},
      {"Relu", "odd", "b"},
      {"Concat", "picture b a", "c", "axis", "-3"},
      {"Conv", "c w30", "d"},
      {"Relu", "d", "y"}},
     1},
    {"maps alone",
     "? 28 5 6",
     "? 4 5 6",
     {{"parts", "12 16"}},
     {{"Split", "x parts", "odd map", "axis", "1"},
      {"Relu", "map", "a"},
      {"Relu", "odd", "b"},
      {"Concat", "b a", "c", "axis", "1"},
      {"Conv", "c w28", "y"}},
     0},
    {"something else that reads it",
     "? 19 5 6",
     "? 4 5 6",
     {{"parts", "16 3"}},
     {{"Split", "x parts", "map picture", "axis", "1"},
      {"Relu", "map", "a"},
      {"Concat", "a picture", "c", "axis", "1"},
      {"Conv", "c w19", "y", "pads", "1 1 1 1"}},
     0,
     0,
     "c",
     "? 19 5 6"},
};

static void constants(struct proto *graph)
{
    static float w[4 * 30 * 9];
    for (int i = 0; i < (int)SAC_COUNT(w); i++)
        w[i] = spelling_number(i) / 8;
    proto_initializer(graph, "w19", 1, "4 19 3 3", w, 4 * 19 * 9 * sizeof *w);
    proto_initializer(graph, "w28", 1, "4 28 1 1", w, 4 * 28 * sizeof *w);
    proto_initializer(graph, "w30", 1, "4 30 1 1", w, 4 * 30 * sizeof *w);
}

static void a_picture_is_padded(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "Pad", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_picture_is_padded)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
