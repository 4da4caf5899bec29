/* SPDX-License-Identifier: Apache-2.0 */
/* Queries and keys that are normalised between the product that makes them and their attention:
 * neither a Transpose nor a Split is left, and one norm takes the heads of both. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* q, k, v [?,3,6,8] out of one product, and their attention. */
#define SPLIT                                                                     \
    {"MatMul", "x wide", "p"}, {"Reshape", "p apart", "r"},                       \
        {"Transpose", "r", "t", "perm", "2 0 3 1 4"}, {"Split", "t", "q5 k5 v5"}, \
        {"Squeeze", "q5 zero", "q"}, {"Squeeze", "k5 zero", "k"},                 \
    {                                                                             \
        "Squeeze", "v5 zero", "v"                                                 \
    }
#define ATTEND(queries, keys)                                                     \
    {"Transpose", keys, "kt", "perm", "0 1 3 2"}, {"MatMul", queries " kt", "s"}, \
        {"Softmax", "s", "a"}, {"MatMul", "a v", "o"},                            \
        {"Transpose", "o", "ot", "perm", "0 2 1 3"},                              \
    {                                                                             \
        "Reshape", "ot together", "y"                                             \
    }
#define SHAPES                                                                                  \
    {                                                                                           \
        {"apart", "-1 6 3 3 8"}, {"together", "-1 6 24"}, {"zero", "0"}, {"heads4", "0 6 3 8"}, \
        {                                                                                       \
            "halves", "24 24"                                                                   \
        }                                                                                       \
    }

static const struct spelling joined[] = {
    {"cosine attention with a scale for each head",
     "? 6 24",
     "? 6 24",
     SHAPES,
     {SPLIT,
      {"LpNormalization", "q", "qn"},
      {"LpNormalization", "k", "kn"},
      {"Mul", "qn heads", "qs"},
      ATTEND("qs", "kn")},
     1,
     3},
    {"the scale behind the scores",
     "? 6 24",
     "? 6 24",
     SHAPES,
     {SPLIT,
      {"LpNormalization", "q", "qn"},
      {"LpNormalization", "k", "kn"},
      {"Transpose", "kn", "kt", "perm", "0 1 3 2"},
      {"MatMul", "qn kt", "s0"},
      {"Mul", "s0 heads", "s"},
      {"Softmax", "s", "a"},
      {"MatMul", "a v", "o"},
      {"Transpose", "o", "ot", "perm", "0 2 1 3"},
      {"Reshape", "ot together", "y"}},
     1,
     3},
    {"norms of a head's numbers, each with its constants",
     "? 6 24",
     "? 6 24",
     SHAPES,
     {SPLIT,
      {"LayerNormalization", "q row shift", "qn"},
      {"LayerNormalization", "k row2", "kn"},
      ATTEND("qn", "kn")},
     1,
     3},
    {"norms with the same constants, by Gather",
     "? 6 24",
     "? 6 24",
     SHAPES,
     {{"MatMul", "x wide", "p"},
      {"Reshape", "p apart", "r"},
      {"Transpose", "r", "t", "perm", "2 0 3 1 4"},
      {"Gather", "t first", "q"},
      {"Gather", "t second", "k"},
      {"Gather", "t third", "v"},
      {"RMSNormalization", "q row", "qn"},
      {"RMSNormalization", "k row", "kn"},
      ATTEND("qn", "kn")},
     1,
     3},
    {"the keys before the queries",
     "? 6 24",
     "? 6 24",
     SHAPES,
     {{"MatMul", "x wide", "p"},
      {"Reshape", "p apart", "r"},
      {"Transpose", "r", "t", "perm", "2 0 3 1 4"},
      {"Gather", "t third", "q"},
      {"Gather", "t second", "k"},
      {"Gather", "t first", "v"},
      {"LpNormalization", "q", "qn"},
      {"LpNormalization", "k", "kn"},
      ATTEND("qn", "kn")},
     1,
     3},
    {"of a product each, before heads and tokens change places",
     "? 6 24",
     "? 6 24",
     SHAPES,
     {{"MatMul", "x wq", "qp"},
      {"MatMul", "x wk", "kp"},
      {"MatMul", "x wv", "vp"},
      {"Reshape", "qp heads4", "q4"},
      {"Reshape", "kp heads4", "k4"},
      {"Reshape", "vp heads4", "v4"},
      {"RMSNormalization", "q4 row", "qn"},
      {"RMSNormalization", "k4 row2", "kn"},
      {"Transpose", "qn", "q", "perm", "0 2 1 3"},
      {"Transpose", "kn", "k", "perm", "0 2 1 3"},
      {"Transpose", "v4", "v", "perm", "0 2 1 3"},
      ATTEND("q", "k")},
     1,
     3},
    {"keys that are normalised, of one product with the values",
     "? 6 24",
     "? 6 24",
     SHAPES,
     {{"MatMul", "x wq", "qp"},
      {"MatMul", "x wkv", "kvp"},
      {"Split", "kvp halves", "kp vp", "axis", "-1"},
      {"Reshape", "qp heads4", "q4"},
      {"Reshape", "kp heads4", "k4"},
      {"Reshape", "vp heads4", "v4"},
      {"RMSNormalization", "k4 row", "kn"},
      {"Transpose", "q4", "q", "perm", "0 2 1 3"},
      {"Transpose", "kn", "k", "perm", "0 2 1 3"},
      {"Transpose", "v4", "v", "perm", "0 2 1 3"},
      ATTEND("q", "k")},
     1,
     3},
    {"only the queries",
     "? 6 24",
     "? 6 24",
     SHAPES,
     {SPLIT, {"LayerNormalization", "q row shift", "qn"}, ATTEND("qn", "k")},
     1,
     3},
    {"of one line, which is read twice",
     "8",
     "1 1 1 8",
     {{"line", "1 1 1 8"}},
     {{"Reshape", "x line", "l"},
      {"LayerNormalization", "l row shift", "qn"},
      {"LayerNormalization", "l row2", "kn"},
      {"Transpose", "kn", "kt", "perm", "0 1 3 2"},
      {"MatMul", "qn kt", "s"},
      {"Softmax", "s", "a"},
      {"MatMul", "a l", "y"}},
     2,
     3},
    {"of another kind each",
     "? 6 24",
     "? 6 24",
     SHAPES,
     {SPLIT,
      {"LayerNormalization", "q row shift", "qn"},
      {"RMSNormalization", "k row", "kn"},
      ATTEND("qn", "kn")},
     2,
     4},
    /* in the order of the heads, as others read them too */
    {"queries that are an output too",
     "? 6 24",
     "? 6 24",
     SHAPES,
     {SPLIT, {"LpNormalization", "q", "qn"}, ATTEND("qn", "k")},
     1,
     3,
     "qn",
     "? 3 6 8"},
    {"values",
     "? 6 24",
     "? 6 24",
     SHAPES,
     {{"MatMul", "x wide", "p"},
      {"Reshape", "p apart", "r"},
      {"Transpose", "r", "t", "perm", "2 0 3 1 4"},
      {"Gather", "t first", "q"},
      {"Gather", "t second", "k"},
      {"Gather", "t third", "v3"},
      {"RMSNormalization", "v3 row", "v"},
      ATTEND("q", "k")},
     1,
     3},
};

static const struct spelling apart[] = {
    {"over the tokens of a head",
     "? 6 24",
     "? 6 24",
     SHAPES,
     {SPLIT,
      {"LpNormalization", "q", "qn", "axis", "2"},
      {"LpNormalization", "k", "kn", "axis", "2"},
      ATTEND("qn", "kn")},
     0},
    {"over numbers of several heads",
     "? 6 24",
     "? 6 24",
     SHAPES,
     {SPLIT, {"LayerNormalization", "q tokens", "qn", "axis", "2"}, ATTEND("qn", "k")},
     0},
};

static void floats(struct proto *graph, const char *name, const char *dims, int count, int phase)
{
    float data[24 * 72];
    for (int i = 0; i < count; i++)
        data[i] = spelling_number(i + phase) * 0.3f + 0.1f;
    proto_initializer(graph, name, 1, dims, data, (size_t)count * sizeof *data);
}

static void constants(struct proto *graph)
{
    for (int64_t i = 0; i < 3; i++)
        proto_initializer(graph,
                          i == 0   ? "first"
                          : i == 1 ? "second"
                                   : "third",
                          7, "", &i, sizeof i);
    floats(graph, "wide", "24 72", 24 * 72, 13);
    floats(graph, "wq", "24 24", 24 * 24, 5);
    floats(graph, "wk", "24 24", 24 * 24, 7);
    floats(graph, "wv", "24 24", 24 * 24, 11);
    floats(graph, "wkv", "24 48", 24 * 48, 17);
    floats(graph, "row", "8", 8, 1);
    floats(graph, "row2", "8", 8, 60);
    floats(graph, "shift", "8", 8, 40);
    floats(graph, "tokens", "6 8", 48, 9);
    floats(graph, "heads", "3 1 1", 3, 3);
}

static void one_norm_reads_the_product(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(joined); i++)
        spelling_check(&joined[i], "FusedNorm", constants);
}

static void other_norms_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(apart); i++)
        spelling_check(&apart[i], "FusedNorm", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_norm_reads_the_product),
                                       cmocka_unit_test(other_norms_stay)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
