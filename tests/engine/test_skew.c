/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for relative places, which exporters skew, are read as they are by the attention that
 * adds them, and made by the convolution that makes the queries. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* Two heads of 16 numbers of maps of 2x3 pixels, all channels of one convolution. Of columns there
 * are five relative places, of rows three. */
#define SHAPES                                                                                    \
    {"thirds", "32 32 32"}, {"flat", "-1 16 6"}, {"map", "-1 2 3 16"}, {"scores", "-1 6 6"},      \
        {"back", "-1 32 2 3"}, {"one", "1"}, {"two", "2"}, {"three", "3"}, {"lines3", "-1 3 5"},  \
        {"end1", "0 0 0 0 0 1"}, {"whole18", "-1 18"}, {"end2", "0 0 0 2"}, {"again5", "-1 4 5"}, \
        {"from3", "0 2"}, {"until3", "3 5"}, {"axes", "1 2"}, {"apart3", "-1 2 1 3 3"},           \
        {"rows2", "1 1 2 1 1"}, {"lines2", "-1 2 3"}, {"whole8", "-1 8"}, {"end1b", "0 0 0 1"},   \
        {"again3", "-1 3 3"}, {"from2", "0 1"}, {"until2", "2 3"}, {"apart2", "-1 3 1 2 2"},      \
        {"columns3", "1 1 3 1 1"}, {"begin1", "0 0 1 0 0 0"}, {"again35", "-1 3 5"},              \
        {"eighteen", "18"}, {"late", "0 1"}, {"until4", "3 4"},                                   \
    {                                                                                             \
        "zero", "0"                                                                               \
    }
#define HEADS                                                                            \
    {"Conv", "x weights bias", "qkv"}, {"Split", "qkv thirds", "q0 k0 v0", "axis", "1"}, \
        {"Reshape", "q0 flat", "qf"}, {"Transpose", "qf", "q", "perm", "0 2 1"},         \
        {"Reshape", "k0 flat", "k"}, {"Reshape", "v0 flat", "vf"},                       \
        {"Transpose", "vf", "v", "perm", "0 2 1"}, {"MatMul", "q k", "s0"},              \
        {"Mul", "s0 half", "s"},                                                         \
    {                                                                                    \
        "Reshape", "q map", "qm"                                                         \
    }
#define COLUMN_PRODUCT                 \
    {"MatMul", "qm of_columns", "cp"}, \
    {                                  \
        "Reshape", "cp lines3", "c3"   \
    }
#define SKEWED_COLUMNS(from, until)                                                      \
    {"Pad", "c3 end1", "c4"}, {"Reshape", "c4 whole18", "c5"}, {"Pad", "c5 end2", "c6"}, \
        {"Reshape", "c6 again5", "c7"},                                                  \
    {                                                                                    \
        "Slice", "c7 " from " " until " axes", "c8"                                      \
    }
#define SPREAD_COLUMNS                                            \
    {"Reshape", "c8 apart3", "c9"}, {"Expand", "c9 rows2", "ce"}, \
    {                                                             \
        "Transpose", "ce", "columns", "perm", "0 1 3 2 4"         \
    }
#define ROWS                                                                                      \
    {"Transpose", "qm", "qt", "perm", "0 2 1 3"}, {"MatMul", "qt of_rows", "rp"},                 \
        {"Reshape", "rp lines2", "r3"}, {"Pad", "r3 end1", "r4"}, {"Reshape", "r4 whole8", "r5"}, \
        {"Pad", "r5 end1b", "r6"}, {"Reshape", "r6 again3", "r7"},                                \
        {"Slice", "r7 from2 until2 axes", "r8"}, {"Reshape", "r8 apart2", "r9"},                  \
        {"Expand", "r9 columns3", "re"},                                                          \
    {                                                                                             \
        "Transpose", "re", "rows", "perm", "0 3 1 4 2"                                            \
    }
#define MIXED                                                                                      \
    {"Reshape", "both scores", "sum"}, {"Add", "s sum", "a"}, {"Softmax", "a", "p", "axis", "-1"}, \
        {"MatMul", "p v", "o"}, {"Transpose", "o", "ot", "perm", "0 2 1"},                         \
    {                                                                                              \
        "Reshape", "ot back", "y"                                                                  \
    }

static const struct spelling spellings[] = {
    {"as BoTNet has them",
     "? 8 2 3",
     "? 32 2 3",
     {SHAPES},
     {HEADS,
      COLUMN_PRODUCT,
      SKEWED_COLUMNS("from3", "until3"),
      SPREAD_COLUMNS,
      ROWS,
      {"Add", "rows columns", "both"},
      MIXED},
     1,
     4},
    {"by the shift of Transformer-XL",
     "? 8 2 3",
     "? 32 2 3",
     {SHAPES},
     {HEADS,
      COLUMN_PRODUCT,
      {"Pad", "c3 begin1", "c4"},
      {"Reshape", "c4 whole18", "c5"},
      {"Slice", "c5 three eighteen one", "c6"},
      {"Reshape", "c6 again35", "c7"},
      {"Slice", "c7 zero three two", "c8"},
      SPREAD_COLUMNS,
      ROWS,
      {"Add", "columns rows", "both"},
      MIXED},
     1,
     4},
    {"of rows alone",
     "? 8 2 3",
     "? 32 2 3",
     {SHAPES},
     {HEADS, ROWS, {"Identity", "rows", "both"}, MIXED},
     1,
     4},
    {"what the convolution makes is an output",
     "? 8 2 3",
     "? 32 2 3",
     {SHAPES},
     {HEADS,
      COLUMN_PRODUCT,
      SKEWED_COLUMNS("from3", "until3"),
      SPREAD_COLUMNS,
      ROWS,
      {"Add", "rows columns", "both"},
      MIXED},
     1,
     .also = "qkv",
     .also_dims = "? 96 2 3"},
    {"the numbers are an output before they are skewed",
     "? 8 2 3",
     "? 32 2 3",
     {SHAPES},
     {HEADS,
      COLUMN_PRODUCT,
      SKEWED_COLUMNS("from3", "until3"),
      SPREAD_COLUMNS,
      ROWS,
      {"Add", "rows columns", "both"},
      MIXED},
     1,
     .also = "cp",
     .also_dims = "? 2 3 5"},
    /* what looks alike */
    {"cut one too early",
     "? 8 2 3",
     "? 32 2 3",
     {SHAPES},
     {HEADS,
      COLUMN_PRODUCT,
      SKEWED_COLUMNS("late", "until4"),
      SPREAD_COLUMNS,
      ROWS,
      {"Add", "rows columns", "both"},
      MIXED},
     1},
};

static void add_table(struct proto *graph, const char *name, const char *dims, int count)
{
    static float data[1024];
    for (int i = 0; i < count; i++)
        data[i] = spelling_number(i + 5);
    proto_initializer(graph, name, 1, dims, data, (size_t)count * sizeof *data);
}

static void add_constants(struct proto *graph)
{
    const float half = 0.5f;
    proto_initializer(graph, "half", 1, "", &half, sizeof half);
    add_table(graph, "weights", "96 8 1 1", 768);
    add_table(graph, "bias", "96", 96);
    add_table(graph, "of_columns", "16 5", 80);
    add_table(graph, "of_rows", "16 3", 48);
}

static void skewed_numbers_are_read_before(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "FusedAttention", add_constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(skewed_numbers_are_read_before)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
