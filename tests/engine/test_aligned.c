/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a convolution's map begin at multiples of eight channels, with the same numbers. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

#define MAPS "? 8 5 6", "? 21 5 6"

/* found: of steps that make a map of 56 channels, or of 48 where some are not read, of 45 in the
 * file. */
static const struct spelling spellings[] = {
    {"a query, a context and gates",
     MAPS,
     {{"parts", "21 21 3"}, {"one", "1"}, {"two", "2"}, {"zero", "0"}},
     {{"Conv", "x w45 b45", "c"},
      {"Split", "c parts", "query context gates", "axis", "1"},
      {"Slice", "gates zero one one", "g"},
      {"Slice", "gates one two one", "h"},
      {"Relu", "context", "r"},
      {"Mul", "context g", "s"},
      {"Mul", "r h", "t"},
      {"Add", "s t", "u"},
      {"Mul", "u query", "y"}},
     1},
    {"slices, of which one is read by nobody, behind an activation",
     MAPS,
     {{"zero", "0"}, {"some", "21"}, {"more", "24"}, {"end", "1000"}, {"one", "1"}},
     {{"Conv", "x w45", "c"},
      {"Sigmoid", "c", "d"},
      {"Slice", "d more end one", "p"},
      {"Slice", "d zero some one", "q"},
      {"Sub", "q p", "y"}},
     1},
    {"parts that overlap",
     MAPS,
     {{"zero", "0"}, {"some", "21"}, {"ten", "10"}, {"thirty", "31"}, {"one", "1"}},
     {{"Conv", "x w45 b45", "c"},
      {"Slice", "c ten thirty one", "p"},
      {"Slice", "c zero some one", "q"},
      {"Sub", "q p", "y"}}},
    {"a slice of rows",
     "? 8 5 6",
     "? 21 3 6",
     {{"zeros", "0 0"}, {"ends", "21 3"}, {"more", "24 0"}, {"rows", "45 3"}, {"axes", "1 2"}},
     {{"Conv", "x w45 b45", "c"},
      {"Slice", "c zeros ends axes", "p"},
      {"Slice", "c more rows axes", "q"},
      {"Sub", "q p", "y"}}},
    {"a map that is an output",
     MAPS,
     {{"parts", "21 21 3"}},
     {{"Conv", "x w45 b45", "c"}, {"Split", "c parts", "p q r", "axis", "1"}, {"Sub", "q p", "y"}},
     0,
     0,
     "c",
     "? 45 5 6"},
};

static void constants(struct proto *graph)
{
    static float w[45 * 8];
    for (int i = 0; i < (int)SAC_COUNT(w); i++)
        w[i] = 0.2f * spelling_number(i + 7);
    proto_initializer(graph, "w45", 1, "45 8 1 1", w, sizeof w);
    proto_initializer(graph, "b45", 1, "45", w + 9, 45 * sizeof *w);
}

static void parts_are_aligned(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], i == 1 ? ",48,5,6]" : ",56,5,6]", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_are_aligned)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
