/* SPDX-License-Identifier: Apache-2.0 */
/* A Gather of all numbers of a line in their order, as PyTorch's newer exporter writes as_strided,
 * is a view; one that takes others stays. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* The places `rest` of each sample, `step` numbers after those of the one before it. */
#define INDEX(step, rest)                                                         \
    {"Shape", "x", "s"}, {"Gather", "s zero", "n"}, {"Range", "zero n one", "r"}, \
        {"Mul", "r " step, "m"}, {"Unsqueeze", "m axes", "u"},                    \
    {                                                                             \
        "Add", "u " rest, "i"                                                     \
    }

static const struct spelling go[] = {
    {"of each sample",
     "? 12",
     "? 3 4",
     {{"all", "-1"}, {"axes", "1 2"}},
     {{"Relu", "x", "t"},
      INDEX("twelve", "places"),
      {"Reshape", "t all", "l"},
      {"Gather", "l i", "y"}},
     0,
     1},
    {"of each sample, by parts",
     "? 12",
     "? 3 4",
     {{"all", "-1"}, {"axes", "1 2"}},
     {{"Relu", "x", "t"},
      INDEX("twelve", "rows"),
      {"Add", "i columns", "k"},
      {"Reshape", "t all", "l"},
      {"Gather", "l k", "y"}},
     0,
     1},
    {"of a line that no batch is in",
     "? 12",
     "3 4",
     {{"none", "0"}},
     {{"ReduceSum", "x front", "t"}, {"Squeeze", "t front", "l"}, {"Gather", "l constant", "y"}},
     0},
};

static const struct spelling stay[] = {
    {"another order",
     "? 12",
     "? 3 4",
     {{"all", "-1"}, {"axes", "1 2"}},
     {{"Relu", "x", "t"},
      INDEX("twelve", "turned"),
      {"Reshape", "t all", "l"},
      {"Gather", "l i", "y"}},
     1},
    {"samples that overlap",
     "? 12",
     "? 3 4",
     {{"all", "-1"}, {"axes", "1 2"}},
     {{"Relu", "x", "t"},
      INDEX("one", "places"),
      {"Reshape", "t all", "l"},
      {"Gather", "l i", "y"}},
     1},
    {"the first half of the line",
     "? 12",
     "? 3 4",
     {{"all", "-1"}, {"axes", "1 2"}},
     {{"Relu", "x", "t"},
      INDEX("twelve", "places"),
      {"Concat", "t t", "d", "axis", "1"},
      {"Reshape", "d all", "l"},
      {"Gather", "l i", "y"}},
     1},
    {"rows of a matrix",
     "? 12",
     "? 12",
     {{"axes", "1"}},
     {{"Relu", "x", "t"},
      {"Shape", "x", "s"},
      {"Gather", "s zero", "n"},
      {"Range", "zero n one", "i"},
      {"Gather", "t i", "y"}},
     1},
};

static void integers(struct proto *graph, const char *name, const char *dims, int step, int count)
{
    int64_t values[12];
    for (int i = 0; i < count; i++)
        values[i] = (int64_t)i * step % 12 + (int64_t)i * step / 12;
    proto_initializer(graph, name, 7, dims, values, (size_t)count * sizeof *values);
}

static void constants(struct proto *graph)
{
    const int64_t zero = 0, one = 1, twelve = 12;
    proto_initializer(graph, "zero", 7, "", &zero, sizeof zero);
    proto_initializer(graph, "one", 7, "", &one, sizeof one);
    proto_initializer(graph, "twelve", 7, "", &twelve, sizeof twelve);
    proto_initializer(graph, "front", 7, "1", &zero, sizeof zero);
    integers(graph, "places", "1 3 4", 1, 12);
    integers(graph, "constant", "3 4", 1, 12);
    integers(graph, "turned", "1 3 4", 3, 12);
    integers(graph, "rows", "1 3 1", 4, 3);
    integers(graph, "columns", "1 1 4", 1, 4);
}

static void all_in_order_is_a_view(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(go); i++)
        spelling_check(&go[i], "Gather", constants);
}

static void others_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(stay); i++)
        spelling_check(&stay[i], "Gather", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_in_order_is_a_view),
                                       cmocka_unit_test(others_stay)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
