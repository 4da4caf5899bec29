/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of lines of channels, of which one goes through a convolution, are parts of a map: the
 * convolution reads its own where it lies, and writes where the parts are put together again. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* clang-format off */
#define FIRST(from, to) {"Transpose", from, to, "perm", "0 3 1 2 "}
#define LAST(from, to) {"Transpose", from, to, "perm", "0 2 3 1 "}
/* clang-format on */

static const struct spelling found[] = {
    {"a gate, what stays, and what is convolved",
     "? 5 6 8",
     "? 5 6 16",
     {{"parts", "16 8 8"}},
     {{"MatMul", "x wide", "m"},
      {"Split", "m parts", "g i c", "axis", "-1"},
      FIRST("c", "cf"),
      {"Conv", "cf weights", "d", "pads", "1 1 1 1"},
      LAST("d", "dl"),
      {"Sigmoid", "g", "a"},
      {"Concat", "i dl", "t", "axis", "-1"},
      {"Mul", "a t", "y"}},
     1,
     4}, /* with the product, the Split and a chain */
    {"all parts are convolved",
     "? 5 6 8",
     "? 5 6 16",
     {{"parts", "8 8"}},
     {{"MatMul", "x wide16", "x8"},
      {"Split", "x8 parts", "a b", "axis", "3"},
      FIRST("a", "af"),
      FIRST("b", "bf"),
      {"Conv", "af weights", "c", "pads", "1 1 1 1"},
      {"Conv", "bf weights", "d", "pads", "1 1 1 1"},
      LAST("c", "cl"),
      LAST("d", "dl"),
      {"Concat", "cl dl", "y", "axis", "3"}},
     2},
    {"a part is an output too",
     "? 5 6 8",
     "? 5 6 8",
     {{"parts", "16 8 8"}},
     {{"MatMul", "x wide", "m"},
      {"Split", "m parts", "g i c", "axis", "-1"},
      FIRST("c", "cf"),
      {"Conv", "cf weights", "d", "pads", "1 1 1 1"},
      LAST("d", "dl"),
      {"Add", "dl i", "y"}},
     1,
     0,
     "c",
     "? 5 6 8"},
    {"lines of three dims",
     "? 6 8",
     "? 6 16",
     {{"parts", "16 8 8"}},
     {{"MatMul", "x wide", "m"},
      {"Split", "m parts", "g i c", "axis", "-1"},
      {"Transpose", "c", "cf", "perm", "0 2 1 "},
      {"Conv", "cf line", "d", "pads", "1 1 "},
      {"Transpose", "d", "dl", "perm", "0 2 1 "},
      {"Concat", "dl i", "t", "axis", "2"},
      {"Mul", "g t", "y"}},
     1},
};
static const struct spelling others[] = {
    {"no part is convolved",
     "? 5 6 16",
     "? 8 5 6",
     {{"parts", "8 8"}},
     {{"Split", "x parts", "a b", "axis", "3"},
      FIRST("a", "f"),
      FIRST("b", "s"),
      {"Mul", "f s", "y"}},
     0},
    {"parts of the rows",
     "? 6 6 8",
     "? 8 3 6",
     {{"parts", "3 3"}},
     {{"Split", "x parts", "a b", "axis", "1"},
      FIRST("a", "f"),
      FIRST("b", "s"),
      {"Conv", "f weights", "c", "pads", "1 1 1 1"},
      {"Add", "c s", "y"}},
     1},
};

static void floats(struct proto *graph, const char *name, const char *dims, int count)
{
    float numbers[8 * 8 * 9];
    for (int i = 0; i < count; i++)
        numbers[i] = 0.2f * spelling_number(i);
    proto_initializer(graph, name, 1, dims, numbers, (size_t)count * sizeof *numbers);
}

static void constants(struct proto *graph)
{
    floats(graph, "wide", "8 32", 256);
    floats(graph, "wide16", "8 16", 128);
    floats(graph, "weights", "8 8 3 3", 576);
    floats(graph, "line", "8 8 3", 192);
}

static void parts_are_read_and_written_where_they_lie(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(found); i++)
        spelling_check(&found[i], "Conv", constants);
    for (size_t i = 0; i < SAC_COUNT(others); i++)
        spelling_check(&others[i], "Conv", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_are_read_and_written_where_they_lie)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
