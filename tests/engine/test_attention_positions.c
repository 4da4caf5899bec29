/* SPDX-License-Identifier: Apache-2.0 */
/* Relative positions that are added to the scores of an attention go into its step, however
 * exporters spread them over the scores. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* Q, K and V of a packed [batch,6,24], of two heads of four numbers, for maps of 2x3 pixels; and
 * the queries' numbers for each row and column, [batch,2,2,3,2] and [batch,2,2,3,3]. */
#define SHAPES                                                                           \
    {"parts", "-1 6 3 2 4"}, {"thirds", "1 1 1"}, {"zero", "0"}, {"map", "-1 2 2 3 4"},  \
        {"six", "-1 2 2 3 2 3"}, {"four", "-1 2 6 6"}, {"last", "-1"}, {"before", "-2"}, \
    {                                                                                    \
        "joined", "-1 6 8"                                                               \
    }
#define PACKED                                                                       \
    {"Reshape", "x parts", "r"}, {"Transpose", "r", "t", "perm", "2 0 3 1 4"},       \
        {"Split", "t thirds", "q1 k1 v1", "axis", "0"}, {"Squeeze", "q1 zero", "q"}, \
        {"Squeeze", "k1 zero", "k"},                                                 \
    {                                                                                \
        "Squeeze", "v1 zero", "v"                                                    \
    }
#define ROWS                                                                          \
    {"Transpose", "qm", "qr", "perm", "2 0 1 3 4"}, {"MatMul", "qr row_table", "rt"}, \
        {"Transpose", "rt", "rn", "perm", "1 2 0 3 4"},                               \
    {                                                                                 \
        "Unsqueeze", "rn last", "rows"                                                \
    }
#define COLUMNS                                                                          \
    {"Transpose", "qm", "qc", "perm", "3 0 1 2 4"}, {"MatMul", "qc column_table", "ct"}, \
        {"Transpose", "ct", "cn", "perm", "1 2 3 0 4"},                                  \
    {                                                                                    \
        "Unsqueeze", "cn before", "columns"                                              \
    }
#define SCORES                                           \
    {"Reshape", "q map", "qm"}, {"Mul", "q half", "qs"}, \
        {"Transpose", "k", "kt", "perm", "0 1 3 2"},     \
    {                                                    \
        "MatMul", "qs kt", "s"                           \
    }
#define MIXED                                                    \
    {"Softmax", "a", "p", "axis", "-1"}, {"MatMul", "p v", "o"}, \
        {"Transpose", "o", "ot", "perm", "0 2 1 3"},             \
    {                                                            \
        "Reshape", "ot joined", "y"                              \
    }
#define SIX                      \
    {                            \
        "Reshape", "s six", "s6" \
    }
#define FOUR(of)                   \
    {                              \
        "Reshape", of " four", "a" \
    }

/* The same with heads that count with the batch, [batch and head,6,4]. */
#define FLAT_SHAPES                                                                       \
    {"parts", "-1 6 3 2 4"}, {"thirds", "1 1 1"}, {"zero", "0"}, {"flat", "-1 6 4"},      \
        {"map", "-1 2 3 4"}, {"five", "-1 2 3 2 3"}, {"three", "-1 6 6"}, {"last", "-1"}, \
        {"before", "-2"}, {"whole", "-1 2 6 4"},                                          \
    {                                                                                     \
        "joined", "-1 6 8"                                                                \
    }
#define FLAT                                                                               \
    {"Reshape", "q flat", "qf"}, {"Reshape", "k flat", "kf"}, {"Reshape", "v flat", "vf"}, \
        {"Reshape", "qf map", "qm"}, {"Transpose", "kf", "kt", "perm", "0 2 1"},           \
        {"MatMul", "qf kt", "s0"},                                                         \
    {                                                                                      \
        "Mul", "s0 half", "s"                                                              \
    }
#define FLAT_ROWS                                                                        \
    {"Transpose", "qm", "qr", "perm", "1 0 2 3"}, {"MatMul", "qr flat_row_table", "rt"}, \
        {"Transpose", "rt", "rn", "perm", "1 0 2 3"},                                    \
    {                                                                                    \
        "Unsqueeze", "rn last", "rows"                                                   \
    }
#define FLAT_COLUMNS                                                                        \
    {"Transpose", "qm", "qc", "perm", "2 0 1 3"}, {"MatMul", "qc flat_column_table", "ct"}, \
        {"Transpose", "ct", "cn", "perm", "1 2 0 3"},                                       \
    {                                                                                       \
        "Unsqueeze", "cn before", "columns"                                                 \
    }
#define FLAT_MIXED                                                                               \
    {"Softmax", "a", "p", "axis", "-1"}, {"MatMul", "p vf", "of"}, {"Reshape", "of whole", "o"}, \
        {"Transpose", "o", "ot", "perm", "0 2 1 3"},                                             \
    {                                                                                            \
        "Reshape", "ot joined", "y"                                                              \
    }

static const struct spelling spellings[] = {
    {"rows, then columns",
     "? 6 24",
     "? 6 8",
     {SHAPES},
     {PACKED,
      SCORES,
      ROWS,
      COLUMNS,
      SIX,
      {"Add", "s6 rows", "a1"},
      {"Add", "a1 columns", "a2"},
      FOUR("a2"),
      MIXED},
     1},
    {"columns, then rows, before the scores",
     "? 6 24",
     "? 6 8",
     {SHAPES},
     {PACKED,
      SCORES,
      ROWS,
      COLUMNS,
      SIX,
      {"Add", "columns s6", "a1"},
      {"Add", "rows a1", "a2"},
      FOUR("a2"),
      MIXED},
     1},
    {"assigned to the scores, as MViTv2 does",
     "? 6 24",
     "? 6 8",
     {SHAPES},
     {PACKED,
      SCORES,
      ROWS,
      COLUMNS,
      SIX,
      {"Add", "s6 rows", "a1"},
      {"Add", "a1 columns", "a2"},
      {"Reshape", "a2 four", "a3"},
      {"Shape", "s", "as"},
      {"Expand", "a3 as", "a"},
      MIXED},
     1},
    {"rows alone",
     "? 6 24",
     "? 6 8",
     {SHAPES},
     {PACKED, SCORES, ROWS, SIX, {"Add", "s6 rows", "a1"}, FOUR("a1"), MIXED},
     1},
    {"columns alone",
     "? 6 24",
     "? 6 8",
     {SHAPES},
     {PACKED, SCORES, COLUMNS, SIX, {"Add", "s6 columns", "a1"}, FOUR("a1"), MIXED},
     1},
    {"the sum of both, as SAM has it",
     "? 6 24",
     "? 6 8",
     {FLAT_SHAPES},
     {PACKED,
      FLAT,
      FLAT_ROWS,
      FLAT_COLUMNS,
      {"Add", "rows columns", "both"},
      {"Reshape", "both three", "sum"},
      {"Add", "s sum", "a"},
      FLAT_MIXED},
     1},
    {"one after the other, as segment-anything has it",
     "? 6 24",
     "? 6 8",
     {FLAT_SHAPES},
     {PACKED,
      FLAT,
      FLAT_ROWS,
      FLAT_COLUMNS,
      {"Reshape", "s five", "s6"},
      {"Add", "s6 rows", "a1"},
      {"Add", "a1 columns", "a2"},
      {"Reshape", "a2 three", "a"},
      FLAT_MIXED},
     1},
    {"numbers of an output",
     "? 6 24",
     "? 6 8",
     {SHAPES},
     {PACKED,
      SCORES,
      ROWS,
      COLUMNS,
      SIX,
      {"Add", "s6 rows", "a1"},
      {"Add", "a1 columns", "a2"},
      FOUR("a2"),
      MIXED},
     1,
     .also = "rows",
     .also_dims = "? 2 2 3 2 1"},
    {"queries beside their result",
     "? 6 24",
     "? 6 8",
     {SHAPES},
     {PACKED,
      SCORES,
      ROWS,
      COLUMNS,
      SIX,
      {"Add", "s6 rows", "a1"},
      {"Add", "a1 columns", "a2"},
      FOUR("a2"),
      {"Softmax", "a", "p", "axis", "-1"},
      {"MatMul", "p v", "o0"},
      {"Add", "o0 q", "o"},
      {"Transpose", "o", "ot", "perm", "0 2 1 3"},
      {"Reshape", "ot joined", "y"}},
     1},
    /* what looks alike */
    {"scaled behind them",
     "? 6 24",
     "? 6 8",
     {SHAPES},
     {PACKED,
      SCORES,
      ROWS,
      SIX,
      {"Add", "s6 rows", "a1"},
      {"Mul", "a1 half", "a2"},
      FOUR("a2"),
      MIXED},
     0},
    {"a mask beside them",
     "? 6 24",
     "? 6 8",
     {SHAPES},
     {PACKED,
      SCORES,
      ROWS,
      SIX,
      {"Add", "s6 rows", "a1"},
      {"Reshape", "a1 four", "a2"},
      {"Add", "a2 bias", "a"},
      MIXED},
     0},
    {"rows twice",
     "? 6 24",
     "? 6 8",
     {SHAPES},
     {PACKED,
      SCORES,
      ROWS,
      SIX,
      {"Add", "s6 rows", "a1"},
      {"Add", "a1 rows", "a2"},
      FOUR("a2"),
      MIXED},
     0},
    {"scores of an output",
     "? 6 24",
     "? 6 8",
     {SHAPES},
     {PACKED, SCORES, ROWS, SIX, {"Add", "s6 rows", "a1"}, FOUR("a1"), MIXED},
     0,
     .also = "a1",
     .also_dims = "? 2 2 3 2 3"},
    {"the same for all queries of a row",
     "? 6 24",
     "? 6 8",
     {SHAPES},
     {PACKED,
      SCORES,
      ROWS,
      SIX,
      {"ReduceMean", "rows", "rm", "axes", "3 "},
      {"Add", "s6 rm", "a1"},
      FOUR("a1"),
      MIXED},
     0},
};

static void add_table(struct proto *graph, const char *name, const char *dims, int count)
{
    float data[64];
    for (int i = 0; i < count; i++)
        data[i] = spelling_number(i + 5);
    proto_initializer(graph, name, 1, dims, data, (size_t)count * sizeof *data);
}

static void add_constants(struct proto *graph)
{
    const float half = 0.5f;
    proto_initializer(graph, "half", 1, "", &half, sizeof half);
    add_table(graph, "row_table", "2 1 1 4 2", 16);
    add_table(graph, "column_table", "3 1 1 4 3", 36);
    add_table(graph, "flat_row_table", "2 1 4 2", 16);
    add_table(graph, "flat_column_table", "3 1 4 3", 36);
    add_table(graph, "bias", "6 6", 36);
}

static void positions_are_part_of_the_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "FusedAttention", add_constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(positions_are_part_of_the_step)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
