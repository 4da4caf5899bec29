/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions of heads that count with the batch read the map that the product before
 * has written, and norms behind them the map that they write: nothing is moved. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* Queries of a packed [batch,6,24], of two heads of four numbers, for maps of 2x3 pixels. */
#define SHAPES                                                                         \
    {"parts", "-1 6 3 2 4"}, {"thirds", "1 1 1"}, {"zero", "0"}, {"maps", "-1 2 3 4"}, \
        {"pooled", "-1 2 4 2"}, {"columns", "8 16"}, {"whole", "-1 2 2 4"},            \
        {"outside", "-1 6 3 4 2"}, {"lines", "-1 6 4"}, {"line", "-1 2 4 5"},          \
    {                                                                                  \
        "one", "-1 6 3 1 8"                                                            \
    }
#define QUERIES                                                                \
    {"Reshape", "x parts", "r"}, {"Transpose", "r", "t", "perm", "2 0 3 1 4"}, \
    {                                                                          \
        "Split", "t thirds", "q1 k1 v1", "axis", "0"                           \
    }
#define POOLED(of, to)                                                                     \
    {"Squeeze", of "1 zero", of}, {"Reshape", of " maps", of "m"},                         \
        {"Transpose", of "m", of "c", "perm", "0 3 1 2"},                                  \
        {"Conv", of "c kernel", of "p", "group", "4"}, {"Reshape", of "p pooled", of "f"}, \
    {                                                                                      \
        "Transpose", of "f", to, "perm", "0 1 3 2"                                         \
    }

/* Third `of` of the numbers of all heads, as a map. */
#define THIRDS                                       \
    {"Relu", "x", "a"}, {"Reshape", "a parts", "r"}, \
    {                                                \
        "Split", "r single", "q k v", "axis", "2"    \
    }
#define MAP(of)                                              \
    {"Squeeze", of " two", "s"}, {"Reshape", "s wide", "m"}, \
    {                                                        \
        "Transpose", "m", "c", "perm", "0 3 1 2"             \
    }
#define PARTS                                   \
    SHAPES, {"wide", "-1 2 3 8"}, {"two", "2"}, \
    {                                           \
        "single", "1 1 1"                       \
    }

static const struct spelling pools[] = {
    {"the largest of all heads, which have a third of each row",
     "? 6 24",
     "? 8 1 2",
     {PARTS},
     {THIRDS, MAP("q"), {"MaxPool", "c", "y", "kernel_shape", "2 2"}},
     1,
     3},
    {"means of the last third, of an output too",
     "? 6 24",
     "? 8 1 2",
     {PARTS},
     {THIRDS, MAP("v"), {"AveragePool", "c", "y", "kernel_shape", "2 2"}},
     0,
     .also = "v",
     .also_dims = "? 6 1 2 4"},
    {"the largest of heads that count with the batch",
     "? 6 24",
     "? 2 2 4",
     {SHAPES},
     {{"Relu", "x", "a"},
      {"Reshape", "a parts", "r"},
      {"Transpose", "r", "t", "perm", "2 0 3 1 4"},
      {"Split", "t thirds", "q1 k1 v1", "axis", "0"},
      {"Squeeze", "k1 zero", "k"},
      {"Reshape", "k maps", "m"},
      {"Transpose", "m", "c", "perm", "0 3 1 2"},
      {"MaxPool", "c", "p", "kernel_shape", "2 2"},
      {"Reshape", "p pooled", "f"},
      {"Transpose", "f", "y", "perm", "0 1 3 2"}},
     1,
     3},
    {"a third of the tokens",
     "? 6 24",
     "? 24 1 1",
     {{"single", "2 2 2"}, {"wide", "-1 1 2 24"}},
     {{"Relu", "x", "a"},
      {"Split", "a single", "q k v", "axis", "1"},
      {"Reshape", "k wide", "m"},
      {"Transpose", "m", "c", "perm", "0 3 1 2"},
      {"MaxPool", "c", "y", "kernel_shape", "1 2"}},
     1},
    {"every third channel",
     "? 6 24",
     "? 8 1 2",
     {{"apart", "-1 6 8 3"}, {"single", "1 1 1"}, {"wide", "-1 2 3 8"}, {"three", "3"}},
     {{"Relu", "x", "a"},
      {"Reshape", "a apart", "r"},
      {"Split", "r single", "q k v", "axis", "3"},
      {"Squeeze", "k three", "s"},
      {"Reshape", "s wide", "m"},
      {"Transpose", "m", "c", "perm", "0 3 1 2"},
      {"MaxPool", "c", "y", "kernel_shape", "2 2"}},
     1},
};

static const struct spelling convs[] = {
    {"one of two heads", "? 6 24", "? 2 2 4", {SHAPES}, {QUERIES, POOLED("q", "y")}, 1, 2},
    {"the last of two heads, of an output too",
     "? 6 24",
     "? 2 2 4",
     {SHAPES},
     {QUERIES, POOLED("v", "y")},
     1,
     .also = "vp",
     .also_dims = "? 4 1 2"},
    {"with a bias and several readers",
     "? 6 24",
     "? 2 2 4",
     {SHAPES},
     {QUERIES,
      {"Squeeze", "k1 zero", "k"},
      {"Reshape", "k maps", "km"},
      {"Transpose", "km", "kc", "perm", "0 3 1 2"},
      {"Conv", "kc kernel bias", "kp", "group", "4"},
      {"Reshape", "kp pooled", "kf"},
      {"Transpose", "kf", "kt", "perm", "0 1 3 2"},
      {"Relu", "kp", "kr"},
      {"Reshape", "kr whole", "kw"},
      {"Mul", "kt kw", "y"}},
     1},
    {"of one head",
     "? 6 24",
     "? 8 1 2",
     {SHAPES, {"wide", "-1 2 3 8"}},
     {{"Reshape", "x one", "r"},
      {"Transpose", "r", "t", "perm", "2 0 3 1 4"},
      {"Split", "t thirds", "q1 k1 v1", "axis", "0"},
      {"Squeeze", "k1 zero", "k"},
      {"Reshape", "k wide", "km"},
      {"Transpose", "km", "kc", "perm", "0 3 1 2"},
      {"Conv", "kc kernel8", "y", "group", "8"}},
     1,
     2},
    {"along tokens alone",
     "? 6 24",
     "? 4 5",
     {SHAPES},
     {QUERIES,
      {"Squeeze", "q1 zero", "q"},
      {"Reshape", "q lines", "qm"},
      {"Transpose", "qm", "qc", "perm", "0 2 1"},
      {"Conv", "qc line_kernel", "y", "group", "4"}},
     1},
    {"of columns that a Slice leaves",
     "? 6 24",
     "? 2 2 4",
     {SHAPES, {"apart", "-1 6 2 4"}, {"from", "16"}, {"until", "24"}, {"last", "2"}},
     {{"Slice", "x from until last", "s"},
      {"Reshape", "s apart", "r"},
      {"Transpose", "r", "t", "perm", "0 2 1 3"},
      {"Reshape", "t maps", "qm"},
      {"Transpose", "qm", "qc", "perm", "0 3 1 2"},
      {"Conv", "qc kernel", "qp", "group", "4"},
      {"Reshape", "qp whole", "y"}},
     1},
    /* what looks alike: numbers of a head apart, pixels in another order, kernels that mix */
    {"heads inside",
     "? 6 24",
     "? 4 1 2",
     {SHAPES},
     {{"Reshape", "x outside", "r"},
      {"Transpose", "r", "t", "perm", "2 0 4 1 3"},
      {"Split", "t thirds", "q1 k1 v1", "axis", "0"},
      {"Squeeze", "q1 zero", "q"},
      {"Reshape", "q maps", "qm"},
      {"Transpose", "qm", "qc", "perm", "0 3 1 2"},
      {"Conv", "qc kernel", "y", "group", "4"}},
     1},
    {"a map on its side",
     "? 6 24",
     "? 4 2 1",
     {SHAPES},
     {QUERIES,
      {"Squeeze", "q1 zero", "q"},
      {"Reshape", "q maps", "qm"},
      {"Transpose", "qm", "qc", "perm", "0 3 2 1"},
      {"Conv", "qc kernel", "y", "group", "4"}},
     1},
    {"two groups",
     "? 6 24",
     "? 4 1 2",
     {SHAPES},
     {QUERIES,
      {"Squeeze", "q1 zero", "q"},
      {"Reshape", "q maps", "qm"},
      {"Transpose", "qm", "qc", "perm", "0 3 1 2"},
      {"Conv", "qc kernel2", "y", "group", "2"}},
     1},
};

/* Norms that others than attention read too: of the convolution's lines, in the heads' order. */
static const struct spelling norms[] = {
    {"read by two products",
     "? 6 24",
     "? 2 2 4",
     {SHAPES},
     {QUERIES,
      POOLED("q", "qh"),
      {"LayerNormalization", "qh row", "qn"},
      {"Transpose", "qn", "qt", "perm", "0 1 3 2"},
      {"MatMul", "qt qn", "s"},
      {"MatMul", "qn s", "y"}},
     1},
    {"added to what attention makes",
     "? 6 24",
     "? 2 2 4",
     {SHAPES},
     {QUERIES,
      POOLED("q", "qh"),
      POOLED("k", "kh"),
      {"LayerNormalization", "qh row", "qn"},
      {"Transpose", "kh", "kt", "perm", "0 1 3 2"},
      {"MatMul", "qn kt", "s"},
      {"Softmax", "s", "p", "axis", "-1"},
      {"MatMul", "p kh", "o"},
      {"Add", "o qn", "y"}},
     1},
    {"of tokens of another order",
     "? 6 24",
     "6 ? 24",
     {{NULL}},
     {{"Transpose", "x", "t", "perm", "1 0 2"},
      {"LayerNormalization", "t row24", "n"},
      {"Transpose", "n", "nt", "perm", "0 2 1"},
      {"MatMul", "n nt", "s"},
      {"MatMul", "s n", "y"}},
     1},
    /* what nobody multiplies by another value is left as it is */
    {"read by an activation",
     "? 6 24",
     "6 ? 24",
     {{NULL}},
     {{"Transpose", "x", "t", "perm", "1 0 2"},
      {"LayerNormalization", "t row24", "n"},
      {"Relu", "n", "y"}},
     0},
};

static void add_numbers(struct proto *graph, const char *name, const char *dims, int count)
{
    float data[64];
    for (int i = 0; i < count; i++)
        data[i] = spelling_number(i + 3);
    proto_initializer(graph, name, 1, dims, data, (size_t)count * sizeof *data);
}

static void add_constants(struct proto *graph)
{
    add_numbers(graph, "kernel", "4 1 2 2", 16);
    add_numbers(graph, "kernel8", "8 1 2 2", 32);
    add_numbers(graph, "kernel2", "4 2 2 2", 32);
    add_numbers(graph, "line_kernel", "4 1 2", 8);
    add_numbers(graph, "bias", "4", 4);
    add_numbers(graph, "row", "4", 4);
    add_numbers(graph, "row24", "24", 24);
}

static void convolutions_of_heads_are_one_of_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(convs); i++)
        spelling_check(&convs[i], "Conv", add_constants);
}

static void pools_read_part_of_the_map(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(pools); i++)
        spelling_check(&pools[i], "MaxPool", add_constants);
}

static void norms_write_the_heads_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(norms); i++)
        spelling_check(&norms[i], "FusedNorm", add_constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_of_heads_are_one_of_all),
        cmocka_unit_test(pools_read_part_of_the_map),
        cmocka_unit_test(norms_write_the_heads_order),
    };
    return cmocka_run_group_tests(tests, NULL, close_device);
}
