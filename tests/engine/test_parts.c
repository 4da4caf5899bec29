/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a map along the channels are read where they lie, and written where they will be
 * concatenated: no step cuts or joins. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

#define BOUNDS                                                                          \
    {"n0", "0"}, {"n1", "1"}, {"n4", "4"}, {"n8", "8"}, {"end", "9223372036854775807"}, \
    {                                                                                   \
        "quarters", "2 2 2 2"                                                           \
    }

/* Steps: the convolutions (two of 8 channels, one of 4), and the order of the input's channels and
 * the output's. */
static const struct spelling spellings[] = {
    {"a cross-stage block of Slices",
     "? 8 5 3",
     "? 8 5 3",
     {BOUNDS},
     {{"Conv", "x w8", "v"},
      {"Slice", "v n0 n4 n1", "a"},
      {"Slice", "v n4 n8 n1", "b"},
      {"Conv", "b w4", "c"},
      {"Concat", "a b c", "d", "axis", "1"},
      {"Conv", "d w12", "y"}},
     0,
     5},
    {"of Slices from behind, with a residual",
     "? 8 5 3",
     "? 8 5 3",
     {BOUNDS, {"m4", "-4"}, {"m3", "-3"}},
     {{"Conv", "x w8", "v"},
      {"Slice", "v n0 m4 m3", "a"},
      {"Slice", "v m4 end m3", "b"},
      {"Conv", "b w4", "c"},
      {"Add", "b c", "r"},
      {"Concat", "a b r", "d", "axis", "-3"},
      {"Conv", "d w12", "y"}},
     0,
     5},
    {"of a Split, its halves last",
     "? 8 5 3",
     "? 8 5 3",
     {{"halves", "4 4"}},
     {{"Conv", "x w8", "v"},
      {"Split", "v halves", "a b", "axis", "1"},
      {"Conv", "a w4", "c"},
      {"Concat", "c a b", "d", "axis", "1"},
      {"Conv", "d w12", "y"}},
     0,
     5},
    {"halves that change places",
     "? 8 5 3",
     "? 8 5 3",
     {BOUNDS},
     {{"Conv", "x w8", "v"},
      {"Slice", "v n0 n4 n1", "a"},
      {"Slice", "v n4 n8 n1", "b"},
      {"Concat", "b a", "d", "axis", "1"},
      {"Conv", "d w8", "y"}},
     0}, /* one Rearrange */
    {"a sum of channels of two maps, beside others",
     "? 8 5 3",
     "? 8 5 3",
     {BOUNDS},
     {{"Conv", "x w8", "v"},
      {"Relu", "v", "r"},
      {"Conv", "r w8", "u"},
      {"Slice", "v n0 n4 n1", "a"},
      {"Slice", "u n4 n8 n1", "b"},
      {"Add", "a b", "c"},
      {"Conv", "c w4", "d"},
      {"Concat", "d c", "y", "axis", "1"}},
     0,
     7},
    {"two parts are copied by one step, a difference writes its place",
     "? 8 5 3",
     "? 8 5 3",
     {BOUNDS},
     {{"Conv", "x w8", "v"},
      {"Relu", "v", "r"},
      {"Conv", "r w8", "u"},
      {"Slice", "v n0 n4 n1", "a"},
      {"Slice", "u n0 n4 n1", "b"},
      {"Slice", "v n4 n8 n1", "c"},
      {"Slice", "u n4 n8 n1", "d"},
      {"Sub", "a b", "s"},
      {"Concat", "s d c", "e", "axis", "1"},
      {"Conv", "e w12", "y"}},
     0,
     8},
    {"rows are not channels",
     "? 8 5 3",
     "? 8 2 3",
     {BOUNDS, {"n2", "2"}, {"n3", "3"}},
     {{"Conv", "x w8", "v"}, {"Slice", "v n1 n3 n2", "a"}, {"Conv", "a w8", "y"}},
     1},
    {"rows of some channels",
     "? 8 5 3",
     "? 4 2 3",
     {{"from", "4 1"}, {"to", "8 3"}, {"both", "1 2"}},
     {{"Conv", "x w8", "v"}, {"Slice", "v from to both", "a"}, {"Conv", "a w4", "y"}},
     1},
    {"a Split of rows",
     "? 8 4 3",
     "? 8 2 3",
     {{"halves", "2 2"}},
     {{"Conv", "x w8", "v"},
      {"Split", "v halves", "a b", "axis", "2"},
      {"Conv", "a w8", "c"},
      {"Conv", "b w8", "d"},
      {"Sub", "c d", "y"}},
     0},
    {"all parts are the value itself",
     "? 8 5",
     "? 8 5",
     {BOUNDS},
     {{"Neg", "x", "v"},
      {"Split", "v quarters", "a b c d", "axis", "1"},
      {"Concat", "a b c d", "y", "axis", "1"}},
     0,
     1},
    {"every second channel is no part",
     "? 8 5 3",
     "? 4 5 3",
     {BOUNDS, {"n2", "2"}},
     {{"Conv", "x w8", "v"}, {"Slice", "v n1 n8 n1 n2", "a"}, {"Conv", "a w4", "y"}},
     1},
};

/* Of Concat. */
static const struct spelling dense[] = {
    {"a dense block: each layer reads all maps so far",
     "? 4 5 3",
     "? 8 5 3",
     {BOUNDS},
     {{"Conv", "x w4", "a"},
      {"BatchNormalization", "a S4 T4 M4 V4", "f"},
      {"Relu", "f", "g"},
      {"Conv", "g w4", "b"},
      {"Concat", "a b", "c", "axis", "1"},
      {"BatchNormalization", "c S8 T8 M8 V8", "h"},
      {"Relu", "h", "i"},
      {"Conv", "i w8to4", "d"},
      {"Concat", "a b d", "e", "axis", "-3"},
      {"BatchNormalization", "e S12 T12 M12 V12", "j"},
      {"Relu", "j", "k"},
      {"Conv", "k w12", "y"}},
     0},
    {"the new map first",
     "? 4 5 3",
     "? 12 5 3",
     {BOUNDS},
     {{"Conv", "x w4", "a"},
      {"Conv", "a w4", "b"},
      {"Concat", "b a", "c", "axis", "1"},
      {"Conv", "c w8to4", "d"},
      {"Concat", "d b a", "e", "axis", "1"},
      {"Sin", "e", "y"}},
     0},
    {"in another order",
     "? 4 5 3",
     "? 12 5 3",
     {BOUNDS},
     {{"Conv", "x w4", "a"},
      {"Conv", "a w4", "b"},
      {"Concat", "b a", "c", "axis", "1"},
      {"Conv", "c w8to4", "d"},
      {"Concat", "a b d", "e", "axis", "1"},
      {"Sin", "e", "y"}},
     1},
    {"rows and channels",
     "? 4 5 3",
     "? 12 5 3",
     {BOUNDS},
     {{"Conv", "x w4", "a"},
      {"Conv", "a w4", "b"},
      {"Concat", "a b", "c", "axis", "2"},
      {"Concat", "a b a", "d", "axis", "1"},
      {"Sin", "d", "y"}},
     2,
     0,
     "c",
     "? 4 10 3"},
};

static void norm(struct proto *graph, const char *of, const char *dims, int channels)
{
    static const char *const names = "STMV";
    for (int k = 0; k < 4; k++) {
        float v[12];
        char  name[8];
        snprintf(name, sizeof name, "%c%s", names[k], of);
        for (int i = 0; i < channels; i++)
            v[i] = k == 3 ? 1 + 0.25f * (float)i : spelling_number(5 * k + i);
        proto_initializer(graph, name, 1, dims, v, (size_t)channels * sizeof *v);
    }
}

static void constants(struct proto *graph)
{
    float w[8 * 12];
    for (int i = 0; i < (int)SAC_COUNT(w); i++)
        w[i] = spelling_number(i) / 4;
    proto_initializer(graph, "w4", 1, "4 4 1 1", w, 16 * sizeof *w);
    proto_initializer(graph, "w8", 1, "8 8 1 1", w, 64 * sizeof *w);
    proto_initializer(graph, "w12", 1, "8 12 1 1", w, sizeof w);
    proto_initializer(graph, "w8to4", 1, "4 8 1 1", w, 32 * sizeof *w);
    norm(graph, "4", "4", 4);
    norm(graph, "8", "8", 8);
    norm(graph, "12", "12", 12);
}

static void no_step_cuts_or_joins(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "Slice", constants);
}

static void a_map_grows(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(dense); i++)
        spelling_check(&dense[i], "Concat", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_map_grows),
                                       cmocka_unit_test(no_step_cuts_or_joins)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
