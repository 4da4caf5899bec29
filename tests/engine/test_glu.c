/* SPDX-License-Identifier: Apache-2.0 */
/* Gated linear units out of one product are two, with the activation in one of them. */
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

#define SHAPES                                                                          \
    {                                                                                   \
        {"n0", "0"}, {"n16", "16"}, {"n32", "32"}, {"last", "-1"}, {"halves", "16 16"}, \
            {"parts", "8 24"}, {"odd", "15 15"},                                        \
        {                                                                               \
            "end", "9223372036854775807"                                                \
        }                                                                               \
    }
#define UNIT(name) name, "? 5 12", "? 5 16", SHAPES

static const struct spelling units[] = {
    {UNIT("SwiGLU by Split"),
     {{"MatMul", "x w", "p"},
      {"Add", "p b", "pb"},
      {"Split", "pb halves", "g v", "axis", "-1"},
      {"Sigmoid", "g", "s"},
      {"Mul", "g s", "gs"},
      {"Mul", "gs v", "y"}},
     2,
     3},
    {UNIT("GEGLU by Slices, the second half activated"),
     {{"MatMul", "x w", "p"},
      {"Add", "b p", "pb"},
      {"Slice", "pb n0 n16 last", "v"},
      {"Slice", "pb n16 end last", "g"},
      {"Gelu", "g", "ga"},
      {"Mul", "v ga", "y"}},
     2,
     3},
    {UNIT("a plain one, without a bias"),
     {{"MatMul", "x w", "p"},
      {"Split", "p", "v g", "axis", "2"},
      {"Sigmoid", "g", "s"},
      {"Mul", "v s", "y"}},
     1,
     3},
    {UNIT("without an activation"),
     {{"MatMul", "x w", "p"},
      {"Add", "p b", "pb"},
      {"Split", "pb halves", "g v", "axis", "-1"},
      {"Mul", "g v", "y"}},
     2,
     3},
};

static const struct spelling others[] = {
    {UNIT("a half that is read again"),
     {{"MatMul", "x w", "p"},
      {"Split", "p halves", "g v", "axis", "-1"},
      {"Sigmoid", "g", "s"},
      {"Mul", "s v", "m"},
      {"Add", "m g", "y"}},
     0},
    {UNIT("a product that is an output too"),
     {{"MatMul", "x w", "p"},
      {"Split", "p halves", "g v", "axis", "-1"},
      {"Sigmoid", "g", "s"},
      {"Mul", "s v", "y"}},
     0,
     0,
     "p",
     "? 5 32"},
    {UNIT("the same half twice"),
     {{"MatMul", "x w", "p"},
      {"Slice", "p n0 n16 last", "v"},
      {"Slice", "p n0 n16 last", "g"},
      {"Sigmoid", "g", "s"},
      {"Mul", "s v", "y"}},
     0},
    {"halves that kernels do not read at once",
     "? 5 12",
     "? 5 15",
     SHAPES,
     {{"MatMul", "x w30", "p"},
      {"Split", "p odd", "g v", "axis", "-1"},
      {"Sigmoid", "g", "s"},
      {"Mul", "s v", "y"}},
     0},
};

static void constants(struct proto *graph)
{
    float data[12 * 32];
    for (int i = 0; i < 12 * 32; i++)
        data[i] = spelling_number(i + 5) * 0.3f;
    proto_initializer(graph, "w", 1, "12 32", data, sizeof data);
    proto_initializer(graph, "w30", 1, "12 30", data, 12 * 30 * sizeof *data);
    proto_initializer(graph, "b", 1, "32", data, 32 * sizeof *data);
}

static void a_unit_is_two_products(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(units); i++)
        spelling_check(&units[i], "FusedMatMul", constants);
}

static void other_products_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(others); i++)
        spelling_check(&others[i], "FusedMatMul", constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_unit_is_two_products),
                                       cmocka_unit_test(other_products_stay)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
