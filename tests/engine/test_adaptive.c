/* SPDX-License-Identifier: Apache-2.0 */
/* Adaptive average pooling that is spelled by the pixels of each bin is an AveragePool where bins
 * have one size and step, else a product. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

#define PIXELS(index, y)                                                       \
    {"Transpose", "x", "t", "perm", "2 3 0 1"}, {"GatherND", "t " index, "g"}, \
    {                                                                          \
        "Transpose", "g", y, "perm", "4 5 0 1 2 3"                             \
    }
/* The sum of the 3 x 2 entries of v's bins. */
#define ENTRIES(v, y)                                                                        \
    {"Gather", v " i0", "r0", "axis", "3"}, {"Gather", v " i1", "r1", "axis", "3"},          \
        {"Gather", v " last", "r2", "axis", "-3"}, {"Gather", "r0 i0", "a", "axis", "4"},    \
        {"Gather", "r0 i1", "b", "axis", "4"}, {"Gather", "r1 i0", "c", "axis", "4"},        \
        {"Gather", "r1 last", "d", "axis", "-1"}, {"Gather", "r2 i0", "e", "axis", "4"},     \
        {"Gather", "r2 i1", "f", "axis", "4"}, {"Add", "a b", "ab"}, {"Add", "ab c", "abc"}, \
        {"Add", "abc d", "abcd"}, {"Add", "abcd e", "most"},                                 \
    {                                                                                        \
        "Add", "most f", y                                                                   \
    }

static const struct spelling windows[] = {
    {"bins of one size",
     "? 3 5 4",
     "? 3 4 3",
     {{"none", "0"}},
     {PIXELS("even", "p"), {"ReduceMean", "p", "m", "axes", "-3 -1"}, {"Squeeze", "m kept", "y"}},
     0},
    {"bins of one size, their dims kept",
     "? 3 5 4",
     "? 3 4 1 3 1",
     {{"none", "0"}},
     {PIXELS("even", "p"), {"ReduceMean", "p", "y", "axes", "3 5"}},
     0},
    {"a map that others read, and whose pixels are counted from its end",
     "? 3 5 4",
     "? 3 4 3",
     {{"s0", "0"}, {"s3", "3"}, {"s4", "4"}, {"a2", "2"}, {"a3", "3"}},
     {PIXELS("negative", "p"),
      {"ReduceMean", "p", "k", "axes", "-3 -1"},
      {"Squeeze", "k kept", "m"},
      {"Slice", "x s0 s4 a2", "rows"},
      {"Slice", "rows s0 s3 a3", "columns"},
      {"Add", "m columns", "y"}},
     0},
};

static const struct spelling products[] = {
    {"bins of two sizes",
     "? 3 5 4",
     "? 3 3 3",
     {{"none", "0"}},
     {PIXELS("uneven", "p"),
      {"Where", "outside zero p", "q"},
      ENTRIES("q", "sum"),
      {"Div", "sum sizes", "m"},
      {"Relu", "m", "y"}},
     1},
    {"bins of two sizes, their mask turned and their sizes inverse",
     "? 3 5 4",
     "? 3 3 3",
     {{"none", "0"}},
     {PIXELS("uneven", "p"),
      {"Where", "inside p zero", "q"},
      ENTRIES("q", "sum"),
      {"Mul", "inverse sum", "y"}},
     1},
};

static const struct spelling others[] = {
    {"cleared by another number",
     "? 3 5 4",
     "? 3 3 3",
     {{"none", "0"}},
     {PIXELS("uneven", "p"),
      {"Where", "outside one p", "q"},
      ENTRIES("q", "sum"),
      {"Div", "sum sizes", "y"}},
     1},
    {"a mean of channels too",
     "? 3 5 4",
     "? 1 4 1 3 1",
     {{"none", "0"}},
     {PIXELS("even", "p"), {"ReduceMean", "p", "y", "axes", "1 3 5"}},
     1},
    {"the largest of each bin",
     "? 3 5 4",
     "? 3 4 1 3 1",
     {{"none", "0"}},
     {PIXELS("even", "p"), {"ReduceMax", "p", "y", "axes", "-3 -1"}},
     1},
};

/* The bins that AdaptiveAvgPool has: entry k of bin i, at the last pixel where it has none. */
static int64_t pixel(int size, int bins, int i, int k)
{
    const int64_t at = i * size / bins + k;
    return at < size ? at : size - 1;
}

static void index_of(struct proto *graph, const char *name, const char *dims, int high, int tall,
                     int from_end)
{
    int64_t places[4 * 3 * 3 * 2 * 2];
    int     n = 0;
    for (int i = 0; i < high * tall; i++)
        for (int k = 0; k < 3 * 2; k++) {
            places[n++] = pixel(5, high, i / tall, i % tall) - (from_end ? 5 : 0);
            places[n++] = pixel(4, 3, k / 2, k % 2) - (from_end ? 4 : 0);
        }
    proto_initializer(graph, name, 7, dims, places, (size_t)n * sizeof *places);
}

static void constants(struct proto *graph)
{
    static const char outside[] = {0, 0, 1, 0, 0, 0, 0, 0, 1},
                      inside[] = {1, 1, 0, 1, 1, 1, 1, 1, 0};
    const float   zero = 0, one = 1, sizes[] = {4, 4, 4, 6, 6, 6, 4, 4, 4};
    const int64_t entry[] = {0, 1, -1}, kept[] = {3, 5};
    float         inverse[9];
    for (int i = 0; i < 9; i++)
        inverse[i] = 1 / sizes[i];
    index_of(graph, "even", "4 2 3 2 2", 4, 2, 0);
    index_of(graph, "negative", "4 2 3 2 2", 4, 2, 1);
    index_of(graph, "uneven", "3 3 3 2 2", 3, 3, 0);
    proto_initializer(graph, "outside", 9, "3 3 1 1", outside, sizeof outside);
    proto_initializer(graph, "inside", 9, "3 3 1 1", inside, sizeof inside);
    proto_initializer(graph, "zero", 1, "", &zero, sizeof zero);
    proto_initializer(graph, "one", 1, "", &one, sizeof one);
    proto_initializer(graph, "sizes", 1, "3 3", sizes, sizeof sizes);
    proto_initializer(graph, "inverse", 1, "3 3", inverse, sizeof inverse);
    proto_initializer(graph, "i0", 7, "", &entry[0], sizeof *entry);
    proto_initializer(graph, "i1", 7, "", &entry[1], sizeof *entry);
    proto_initializer(graph, "last", 7, "", &entry[2], sizeof *entry);
    proto_initializer(graph, "kept", 7, "2", kept, sizeof kept);
}

static void bins_are_windows(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(windows); i++)
        spelling_check(&windows[i], "GatherND", constants);
}

static void bins_are_products(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(products); i++)
        spelling_check(&products[i], "MatMul", constants);
}

static void other_sums_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(others); i++)
        spelling_check(&others[i], "GatherND", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bins_are_windows),
                                       cmocka_unit_test(bins_are_products),
                                       cmocka_unit_test(other_sums_stay)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
