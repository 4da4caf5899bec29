/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of odd channels are filled up to a multiple of eight, with the same numbers. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* found: of steps that make such a map. */
static const struct {
    const char     *map;
    struct spelling s;
} spellings[] = {
    {",24,5,6]",
     {"a block with a shortcut",
      "? 8 5 6",
      "? 4 5 6",
      {{NULL}},
      {{"Conv", "x w21x8 b21", "a"},
       {"Conv", "a w21x21", "b"},
       {"Add", "a b", "c"},
       {"Relu", "c", "r"},
       {"Conv", "r w4x21", "y"}},
      2}},
    {",24,3,4]",
     {"an expansion, each channel by itself, and its gates",
      "? 8 5 6",
      "? 4 3 4",
      {{NULL}},
      {{"Conv", "x w21x8 b21", "a"},
       {"HardSwish", "a", "b"},
       {"Conv", "b single b21", "c", "group", "21"},
       {"GlobalAveragePool", "c", "m"},
       {"Conv", "m w6x21 b6", "h"},
       {"Relu", "h", "i"},
       {"Conv", "i w21x6 b21", "j"},
       {"Sigmoid", "j", "g"},
       {"Mul", "g c", "p"},
       {"Relu", "p", "q"},
       {"Conv", "q w4x21", "y"}},
      2}},
    {",24,4,5]",
     {"pools, and what two convolutions read",
      "? 8 5 6",
      "? 4 4 5",
      {{NULL}},
      {{"Conv", "x w21x8 b21", "a"},
       {"MaxPool", "a", "p", "kernel_shape", "2 2"},
       {"AveragePool", "a", "q", "kernel_shape", "2 2"},
       {"Mul", "p q", "r"},
       {"Conv", "r w4x21", "s"},
       {"Conv", "p w4x21", "t"},
       {"Mul", "s t", "y"}},
      3}},
    {",24,5,6]",
     {"an output",
      "? 8 5 6",
      "? 4 5 6",
      {{NULL}},
      {{"Conv", "x w21x8 b21", "a"}, {"Conv", "a w4x21", "y"}},
      0,
      0,
      "a",
      "? 21 5 6"}},
    {",24,5,6]",
     {"a softmax of the channels",
      "? 8 5 6",
      "? 4 5 6",
      {{NULL}},
      {{"Conv", "x w21x8 b21", "a"},
       {"Softmax", "a", "s", "axis", "1"},
       {"Conv", "s w4x21", "y"}}}},
    {",24,5,6]",
     {"a sum with a line of as many numbers as channels",
      "? 8 5 21",
      "? 4 5 21",
      {{NULL}},
      {{"Conv", "x w21x8 b21", "a"},
       {"ReduceMean", "x", "l", "axes", "1"},
       {"Mul", "a l", "s"},
       {"Conv", "s w4x21", "y"}}}},
    {",16,5,6]",
     {"half as many again",
      "? 8 5 6",
      "? 4 5 6",
      {{NULL}},
      {{"Conv", "x w9x8", "a"}, {"Conv", "a w4x9", "y"}}}},
    {",24,5,6]",
     {"a shortcut of fewer channels",
      "? 8 5 6",
      "? 4 5 6",
      {{"parts", "21 8"}},
      {{"Conv", "x w21x8", "a"},
       {"Conv", "a w29x21", "b"},
       {"Split", "b parts", "c d", "axis", "1"},
       {"Add", "c a", "e"},
       {"Concat", "e d", "f", "axis", "1"},
       {"Conv", "f w4x29", "y"}},
      1}},
    {",32,5,6]",
     {"what it is added to",
      "? 8 5 6",
      "? 4 5 6",
      {{"parts", "21 8"}},
      {{"Conv", "x w21x8", "a"},
       {"Conv", "a w29x21", "b"},
       {"Split", "b parts", "c d", "axis", "1"},
       {"Add", "c a", "e"},
       {"Concat", "e d", "f", "axis", "1"},
       {"Conv", "f w4x29", "y"}},
      1}},
    {",24,5,6]",
     {"one whose new channels would be halves",
      "? 8 5 6",
      "? 4 5 6",
      {{"parts", "21 8"}},
      {{"Conv", "x w21x8", "s"},
       {"Sigmoid", "s", "a"},
       {"Conv", "a w29x21", "b"},
       {"Split", "b parts", "c d", "axis", "1"},
       {"Add", "c a", "e"},
       {"Concat", "e d", "f", "axis", "1"},
       {"Conv", "f w4x29", "y"}},
      0}},
    {",24,5,6]",
     {"one that is filled up beyond a sum that is an output",
      "? 8 5 6",
      "? 23 5 6",
      {{"parts", "21 2"}},
      {{"Conv", "x w21x8", "a"},
       {"Conv", "a w23x21", "b"},
       {"Split", "b parts", "c d", "axis", "1"},
       {"Add", "c a", "e"},
       {"Concat", "e d", "y", "axis", "1"}},
      0}},
    {",24,5,6]",
     {"a shortcut that is a sum of sums with the input",
      "? 21 5 6",
      "? 4 5 6",
      {{"parts", "21 8"}},
      {{"Conv", "x w21x21", "a"},
       {"Add", "a x", "b"},
       {"Conv", "b w21x21", "c"},
       {"Add", "c b", "d"},
       {"Conv", "d w29x21", "e"},
       {"Split", "e parts", "f g", "axis", "1"},
       {"Add", "f d", "h"},
       {"Concat", "h g", "i", "axis", "1"},
       {"Conv", "i w4x29", "y"}},
      0}},
};

static void add(struct proto *graph, const char *name, int rows, int columns)
{
    static float w[29 * 29];
    char         dims[32];
    for (int i = 0; i < rows * columns; i++)
        w[i] = 0.1f * spelling_number(i + rows);
    snprintf(dims, sizeof dims, "%d %d 1 1", rows, columns);
    proto_initializer(graph, name, 1, dims, w, (size_t)(rows * columns) * sizeof *w);
}

static void constants(struct proto *graph)
{
    static float w[21 * 9];
    add(graph, "w21x8", 21, 8);
    add(graph, "w21x21", 21, 21);
    add(graph, "w4x21", 4, 21);
    add(graph, "w6x21", 6, 21);
    add(graph, "w21x6", 21, 6);
    add(graph, "w9x8", 9, 8);
    add(graph, "w4x9", 4, 9);
    add(graph, "w29x21", 29, 21);
    add(graph, "w23x21", 23, 21);
    add(graph, "w4x29", 4, 29);
    for (int i = 0; i < (int)SAC_COUNT(w); i++)
        w[i] = 0.3f * spelling_number(i + 3);
    proto_initializer(graph, "single", 1, "21 1 3 3", w, sizeof w);
    proto_initializer(graph, "b21", 1, "21", w, 21 * sizeof *w);
    proto_initializer(graph, "b6", 1, "6", w, 6 * sizeof *w);
}

static void maps_are_filled_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i].s, spellings[i].map, constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(maps_are_filled_up)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
