/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary position embeddings as exporters spell them: one step turns the heads of queries and keys
 * where the product wrote them, and attention reads what it makes. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* q, k, v [?,3,6,8] out of one product, and their attention. */
#define SPLIT                                                                     \
    {"MatMul", "x wide", "p"}, {"Reshape", "p apart", "r"},                       \
        {"Transpose", "r", "t", "perm", "2 0 3 1 4"}, {"Gather", "t first", "q"}, \
        {"Gather", "t second", "k"},                                              \
    {                                                                             \
        "Gather", "t third", "v"                                                  \
    }
/* The same out of a product each, tokens before heads. */
#define THREE                                                                     \
    {"MatMul", "x wq", "qp"}, {"MatMul", "x wk", "kp"}, {"MatMul", "x wv", "vp"}, \
        {"Reshape", "qp tokens3", "q4"}, {"Reshape", "kp tokens3", "k4"},         \
        {"Reshape", "vp tokens3", "v4"},                                          \
    {                                                                             \
        "Transpose", "v4", "v", "perm", "0 2 1 3"                                 \
    }
#define TURN(from, to)                           \
    {                                            \
        "Transpose", from, to, "perm", "0 2 1 3" \
    }
#define ATTEND(queries, keys)                                                                  \
    {"Transpose", keys, "turned", "perm", "0 1 3 2"}, {"MatMul", queries " turned", "scores"}, \
        {"Softmax", "scores", "shares"}, {"MatMul", "shares v", "o"},                          \
        {"Transpose", "o", "ot", "perm", "0 2 1 3"},                                           \
    {                                                                                          \
        "Reshape", "ot together", "y"                                                          \
    }
/* x cos + Concat(-x[4:], x[:4]) sin */
#define HALVES(x, cosines, sines, y)                                                              \
    {"Slice", x " n4 n8 last", x "b"}, {"Slice", x " n0 n4 last", x "a"}, {"Neg", x "b", x "nb"}, \
        {"Concat", x "nb " x "a", x "t", "axis", "-1"}, {"Mul", x " " cosines, x "c"},            \
        {"Mul", x "t " sines, x "s"},                                                             \
    {                                                                                             \
        "Add", x "c " x "s", y                                                                    \
    }
/* x cos + stack(-x[1::2], x[::2]) sin */
#define PAIRS(x, cosines, sines, dims, y)                                                 \
    {"Slice", x " n1 n8 last n2", x "b"}, {"Slice", x " n0 n8 last n2", x "a"},           \
        {"Neg", x "b", x "nb"}, {"Unsqueeze", x "nb last", x "u"},                        \
        {"Unsqueeze", x "a last", x "v"}, {"Concat", x "u " x "v", x "t2", "axis", "-1"}, \
        {"Reshape", x "t2 " dims, x "t"}, {"Mul", x " " cosines, x "c"},                  \
        {"Mul", x "t " sines, x "s"},                                                     \
    {                                                                                     \
        "Add", x "c " x "s", y                                                            \
    }
/* Pairs whose numbers are turned apart, the first of which is taken by that index. */
#define TURNED_APART(index)                                                              \
    {                                                                                    \
        SPLIT, {"Reshape", "q pairs", "q2"}, {"Gather", "q2 " index, "a", "axis", "-1"}, \
            {"Gather", "q2 second", "b", "axis", "4"}, {"Mul", "a half", "ac"},          \
            {"Mul", "b half2", "bs"}, {"Mul", "b half", "bc"}, {"Mul", "a half2", "as"}, \
            {"Sub", "ac bs", "l"}, {"Add", "bc as", "h"}, {"Unsqueeze", "l last", "lu"}, \
            {"Unsqueeze", "h last", "hu"}, {"Concat", "lu hu", "both", "axis", "-1"},    \
            {"Reshape", "both heads", "qr"}, ATTEND("qr", "k")                           \
    }
#define SHAPES                                                                                     \
    {                                                                                              \
        {"apart", "-1 6 3 3 8"}, {"together", "-1 6 24"}, {"heads", "-1 3 6 8"},                   \
            {"heads5", "-1 3 5 8"}, {"tokens3", "-1 6 3 8"}, {"pairs", "-1 3 6 4 2"}, {"n0", "0"}, \
            {"n1", "1"}, {"n2", "2"}, {"n3", "3"}, {"n4", "4"}, {"n6", "6"}, {"n8", "8"},          \
            {"last", "-1"}, {"prefix", "1 5"},                                                     \
        {                                                                                          \
            "end", "9223372036854775807"                                                           \
        }                                                                                          \
    }
#define SPELLED(name) name, "? 6 24", "? 6 24", SHAPES

static const struct spelling spellings[] = {
    {SPELLED("halves"),
     {SPLIT, HALVES("q", "cos", "sin", "qr"), HALVES("k", "cos", "sin", "kr"), ATTEND("qr", "kr")},
     1,
     3},
    {SPELLED("pairs"),
     {SPLIT, PAIRS("q", "cos", "sin", "heads", "qr"), PAIRS("k", "cos", "sin", "heads", "kr"),
      ATTEND("qr", "kr")},
     1,
     3},
    {SPELLED("pairs behind a class token"),
     {SPLIT,
      {"Slice", "q n0 n1 n2", "q0"},
      {"Slice", "q n1 end n2", "q1"},
      PAIRS("q1", "cos5", "sin5", "heads5", "qt"),
      {"Concat", "q0 qt", "qr", "axis", "2"},
      ATTEND("qr", "k")},
     1,
     3},
    {SPELLED("halves behind a class token, of tables for all tokens alike"),
     {SPLIT,
      {"Split", "q prefix", "q0 q1", "axis", "-2"},
      HALVES("q1", "row", "row2", "qt"),
      {"Concat", "q0 qt", "qr", "axis", "-2"},
      ATTEND("qr", "k")},
     1,
     3},
    {SPELLED("tokens before heads"),
     {THREE, HALVES("q4", "cos1", "sin1", "qr"), TURN("qr", "q"),
      HALVES("k4", "cos1", "sin1", "kr"), TURN("kr", "k"), ATTEND("q", "k")},
     1,
     3},
    {SPELLED("of a product each, behind the turn"),
     {THREE, TURN("q4", "q"), TURN("k4", "k"), HALVES("q", "cos", "sin", "qr"),
      HALVES("k", "cos", "sin", "kr"), ATTEND("qr", "kr")},
     1,
     3},
    {SPELLED("halves that are turned apart"),
     {SPLIT,
      {"Split", "q", "a b", "axis", "-1"},
      {"Mul", "a half", "ac"},
      {"Mul", "b half2", "bs"},
      {"Mul", "b half", "bc"},
      {"Mul", "half2 a", "as"},
      {"Sub", "ac bs", "l"},
      {"Add", "bc as", "h"},
      {"Concat", "l h", "qr", "axis", "3"},
      ATTEND("qr", "k")},
     1,
     3},
    {SPELLED("pairs that are turned apart"), TURNED_APART("first"), 1, 3},
    {SPELLED("the first half of each head"),
     {SPLIT,
      {"Slice", "q n0 n4 last", "ql"},
      {"Slice", "q n4 n8 last", "qh"},
      {"Slice", "ql n2 n4 last", "b"},
      {"Slice", "ql n0 n2 last", "a"},
      {"Neg", "b", "nb"},
      {"Concat", "nb a", "qt", "axis", "-1"},
      {"Mul", "ql half", "qc"},
      {"Mul", "qt half2", "qs"},
      {"Add", "qc qs", "qx"},
      {"Concat", "qx qh", "qr", "axis", "-1"},
      ATTEND("qr", "k")},
     1,
     3},
    {SPELLED("the sines taken off"),
     {SPLIT,
      {"Slice", "q n4 n8 last", "b"},
      {"Slice", "q n0 n4 last", "a"},
      {"Mul", "a minus", "na"},
      {"Concat", "b na", "qt", "axis", "-1"},
      {"Mul", "q cos", "qc"},
      {"Mul", "sin qt", "qs"},
      {"Sub", "qc qs", "qr"},
      ATTEND("qr", "k")},
     1,
     3},
    {SPELLED("one head of keys and values"),
     {{"MatMul", "x wq", "qp"},
      {"MatMul", "x wk8", "kp"},
      {"MatMul", "x wv8", "vp"},
      {"Reshape", "qp tokens3", "q4"},
      {"Unsqueeze", "kp n1", "k"},
      {"Unsqueeze", "vp n1", "v"},
      TURN("q4", "q"),
      HALVES("q", "cos", "sin", "qr"),
      HALVES("k", "cos", "sin", "kr"),
      ATTEND("qr", "kr")},
     1,
     3},
    {SPELLED("keys before queries"),
     {{"MatMul", "x wide", "p"},
      {"Reshape", "p apart", "r"},
      {"Transpose", "r", "t", "perm", "2 0 3 1 4"},
      {"Gather", "t first", "k"},
      {"Gather", "t second", "q"},
      {"Gather", "t third", "v"},
      HALVES("q", "cos", "sin", "qr"),
      HALVES("k", "cos", "sin", "kr"),
      ATTEND("qr", "kr")},
     1,
     3},
    {SPELLED("twice"),
     {SPLIT, HALVES("q", "cos", "sin", "q1"), HALVES("q1", "cos3", "sin", "qr"), ATTEND("qr", "k")},
     2},
    {SPELLED("scaled before"),
     {SPLIT,
      {"Mul", "q third_of", "qm"},
      HALVES("qm", "cos", "sin", "qr"),
      HALVES("k", "cos", "sin", "kr"),
      ATTEND("qr", "kr")},
     1,
     3},
    {SPELLED("tables for each head"),
     {SPLIT, HALVES("q", "cos3", "sin", "qr"), HALVES("k", "cos3", "sin", "kr"),
      ATTEND("qr", "kr")},
     2,
     4},
    {SPELLED("other tables for keys"),
     {SPLIT, HALVES("q", "cos", "sin", "qr"), HALVES("k", "sin", "cos", "kr"), ATTEND("qr", "kr")},
     2,
     4},
    {SPELLED("halves of queries and pairs of keys"),
     {SPLIT, HALVES("q", "cos", "sin", "qr"), PAIRS("k", "cos", "sin", "heads", "kr"),
      ATTEND("qr", "kr")},
     2,
     4},
    {SPELLED("behind norms of the heads"),
     {SPLIT,
      {"RMSNormalization", "q row", "qn"},
      {"RMSNormalization", "k row2", "kn"},
      HALVES("qn", "cos", "sin", "qr"),
      HALVES("kn", "cos", "sin", "kr"),
      ATTEND("qr", "kr")},
     1,
     4},
    {SPELLED("tables that are computed"),
     {SPLIT,
      {"Cos", "x", "cx"},
      {"Sin", "x", "sx"},
      {"Slice", "cx n0 n8 last", "c8"},
      {"Slice", "sx n0 n8 last", "s8"},
      {"Unsqueeze", "c8 n1", "c1"},
      {"Unsqueeze", "s8 n1", "s1"},
      HALVES("q", "c1", "s1", "qr"),
      HALVES("k", "c1", "s1", "kr"),
      ATTEND("qr", "kr")},
     1},
    {SPELLED("queries that are an output too"),
     {SPLIT, HALVES("q", "cos", "sin", "qr"), ATTEND("qr", "k")},
     1,
     0,
     "qr",
     "? 3 6 8"},
    {SPELLED("the turned numbers are an output too"),
     {SPLIT, HALVES("q", "cos", "sin", "qr"), ATTEND("qr", "k")},
     1,
     0,
     "qt",
     "? 3 6 8"},
    {"without an attention", "? 5 8", "? 5 8", SHAPES, {HALVES("x", "cos5", "sin5", "y")}, 1, 1},
    {"of a line", "8", "8", SHAPES, {HALVES("x", "row", "row2", "y")}, 1, 1},
};

static const struct spelling others[] = {
    {SPELLED("halves of other lengths"),
     {SPLIT,
      {"Slice", "q n3 n8 last", "b"},
      {"Slice", "q n0 n3 last", "a"},
      {"Neg", "b", "nb"},
      {"Concat", "nb a", "qt", "axis", "-1"},
      {"Mul", "q cos", "qc"},
      {"Mul", "qt sin", "qs"},
      {"Add", "qc qs", "qr"},
      ATTEND("qr", "k")},
     0},
    {SPELLED("nothing of a number itself"),
     {SPLIT,
      {"Slice", "q n4 n8 last", "b"},
      {"Slice", "q n0 n4 last", "a"},
      {"Neg", "b", "nb"},
      {"Concat", "nb a", "qt", "axis", "-1"},
      {"Mul", "qt sin", "qr"},
      ATTEND("qr", "k")},
     0},
    {SPELLED("halves of the tokens"),
     {SPLIT,
      {"Slice", "q n3 n6 n2", "b"},
      {"Slice", "q n0 n3 n2", "a"},
      {"Neg", "b", "nb"},
      {"Concat", "nb a", "qt", "axis", "2"},
      {"Mul", "q cos", "qc"},
      {"Mul", "qt sin", "qs"},
      {"Add", "qc qs", "qr"},
      ATTEND("qr", "k")},
     0},
};

static const struct spelling outside[] = {
    {SPELLED("a number before the pair"), TURNED_APART("before"), 0},
    {SPELLED("a number behind the pair"), TURNED_APART("third"), 0},
    {SPELLED("a number far behind the pair"), TURNED_APART("behind"), 0},
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
    static const char *const places[] = {"first", "second", "third"};
    const float              minus = -1, third = 1.0f / 3;
    const int64_t            before = -3, behind = INT64_C(1) << 40;
    proto_initializer(graph, "before", 7, "", &before, sizeof before);
    proto_initializer(graph, "behind", 7, "", &behind, sizeof behind);
    for (int64_t i = 0; i < 3; i++)
        proto_initializer(graph, places[i], 7, "", &i, sizeof i);
    proto_initializer(graph, "minus", 1, "", &minus, sizeof minus);
    proto_initializer(graph, "third_of", 1, "", &third, sizeof third);
    floats(graph, "wide", "24 72", 24 * 72, 13);
    floats(graph, "wq", "24 24", 24 * 24, 5);
    floats(graph, "wk", "24 24", 24 * 24, 7);
    floats(graph, "wv", "24 24", 24 * 24, 11);
    floats(graph, "wk8", "24 8", 24 * 8, 19);
    floats(graph, "wv8", "24 8", 24 * 8, 23);
    floats(graph, "cos", "6 8", 48, 1);
    floats(graph, "sin", "1 1 6 8", 48, 60);
    floats(graph, "cos1", "6 1 8", 48, 1);
    floats(graph, "sin1", "1 6 1 8", 48, 60);
    floats(graph, "cos3", "3 6 8", 144, 9);
    floats(graph, "cos5", "5 8", 40, 3);
    floats(graph, "sin5", "5 8", 40, 30);
    floats(graph, "half", "6 4", 24, 4);
    floats(graph, "half2", "6 4", 24, 44);
    floats(graph, "row", "8", 8, 1);
    floats(graph, "row2", "8", 8, 50);
}

static void heads_turn_in_one_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "FusedRotary", constants);
}

static void what_is_none_stays(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(others); i++)
        spelling_check(&others[i], "FusedRotary", constants);
}

/* Shapes do not tell that a Gather's index is outside its input: a pass that looks through the
 * Gather must. */
static void what_is_outside_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(outside); i++)
        spelling_refused(&outside[i], constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(heads_turn_in_one_step),
                                       cmocka_unit_test(what_is_none_stays),
                                       cmocka_unit_test(what_is_outside_is_refused)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
