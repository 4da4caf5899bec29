/* SPDX-License-Identifier: Apache-2.0 */
/* Slices that are assigned to, as exporters spell them, need no ScatterND. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* x[:, from:until] = -x[:, from:until], of [?,4,3]: the batch counts as long as x is, channels and
 * columns are constants. */
#define ASSIGN(channels, batch_end, more)                                                        \
    {"Shape", "x", "s"}, {"Gather", "s zero", "n64"}, {"Range", "zero " batch_end " one", "b1"}, \
        {"Reshape", "b1 tall", "b2"}, {"Slice", "x from until axis1", "part"},                   \
        {"Neg", "part", "v"}, {"Shape", "v", "vs"}, {"Expand", "b2 vs", "b3"},                   \
        {"Unsqueeze", "b3 end", "b4"}, {"Expand", channels " vs", "c3"},                         \
        {"Unsqueeze", "c3 end", "c4"}, {"Expand", "columns vs", "w3"},                           \
        {"Unsqueeze", "w3 end", "w4"}, {"Concat", "b4 c4 w4", "i", "axis", "-1"},                \
    {                                                                                            \
        "ScatterND", "x i v", "y", more                                                          \
    }
#define SHAPES(first, last)                                                   \
    {                                                                         \
        {"tall", "-1 1 1"}, {"from", first}, {"until", last}, {"axis1", "1"}, \
        {                                                                     \
            "end", "-1"                                                       \
        }                                                                     \
    }

static const struct spelling taken[] = {
    {"all", "? 4 3", "? 4 3", SHAPES("0", "4"), {ASSIGN("all4", "n64", NULL)}, 0},
    {"in the middle", "? 4 3", "? 4 3", SHAPES("1", "3"), {ASSIGN("middle", "n64", NULL)}, 0},
    {"at the end", "? 4 3", "? 4 3", SHAPES("2", "4"), {ASSIGN("late", "n64", NULL)}, 0},
};
static const struct spelling left[] = {
    {"backwards", "? 4 3", "? 4 3", SHAPES("0", "4"), {ASSIGN("back", "n64", NULL)}, 1},
    {"one of the batch", "1 4 3", "1 4 3", SHAPES("1", "3"), {ASSIGN("apart", "one", NULL)}, 1},
};

static void constants(struct proto *graph)
{
    const int64_t zero = 0, one = 1, all4[] = {0, 1, 2, 3}, middle[] = {1, 2}, late[] = {2, 3},
                  back[] = {3, 2, 1, 0}, apart[] = {0, 2}, columns[] = {0, 1, 2};
    proto_initializer(graph, "zero", 7, "", &zero, sizeof zero);
    proto_initializer(graph, "one", 7, "", &one, sizeof one);
    proto_initializer(graph, "all4", 7, "4 1", all4, sizeof all4);
    proto_initializer(graph, "middle", 7, "2 1", middle, sizeof middle);
    proto_initializer(graph, "late", 7, "2 1", late, sizeof late);
    proto_initializer(graph, "back", 7, "4 1", back, sizeof back);
    proto_initializer(graph, "apart", 7, "2 1", apart, sizeof apart);
    proto_initializer(graph, "columns", 7, "3", columns, sizeof columns);
}

static void assignments_are_no_scatter(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(taken); i++)
        spelling_check(&taken[i], "ScatterND", constants);
}

static void others_are(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(left); i++)
        spelling_check(&left[i], "ScatterND", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(assignments_are_no_scatter),
                                       cmocka_unit_test(others_are)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
