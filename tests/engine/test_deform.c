/* SPDX-License-Identifier: Apache-2.0 */
/* Deformable attention, as exporters spell it, is one DeformAttention with the numbers of the nodes
 * that it replaces. */
#include <math.h>

#include "engine/model/model.h"
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* x [N,26,8] has two heads of four numbers, on maps of 4x5 and 2x3 pixels; its first five rows are
 * the queries, of which constant products make two points a level. */

static const struct spelling spellings[] = {
    {"a level by Gather, the levels stacked",
     "? 26 8",
     "? 5 8",
     {{"sizes", "20 6"},
      {"first", "0"},
      {"five", "5"},
      {"one", "1"},
      {"places", "-1 5 2 2 2 2"},
      {"shares", "-1 5 2 4"},
      {"zero", "0"},
      {"upper", "-1 4 4 5"},
      {"lower", "-1 4 2 3"},
      {"grid", "-1 5 2 2"},
      {"stack", "3"},
      {"all", "-1 4 5 4"},
      {"weights", "-1 1 5 4"},
      {"last", "-1"},
      {"back", "-1 8 5"}},
     {{"Slice", "x first five one", "q"},
      {"MatMul", "q place", "p"},
      {"Reshape", "p places", "loc"},
      {"Mul", "loc two", "loc2"},
      {"Sub", "loc2 unit", "grids"},
      {"MatMul", "q share", "w"},
      {"Reshape", "w shares", "scores"},
      {"Softmax", "scores", "soft", "axis", "-1"},
      {"Split", "x sizes", "v0 v1", "axis", "1"},
      {"Transpose", "v0", "t0", "perm", "0 2 1"},
      {"Reshape", "t0 upper", "m0"},
      {"Gather", "grids zero0", "g0", "axis", "3"},
      {"Transpose", "g0", "h0", "perm", "0 2 1 3 4"},
      {"Reshape", "h0 grid", "s0"},
      {"GridSample", "m0 s0", "r0"},
      {"Transpose", "v1", "t1", "perm", "0 2 1"},
      {"Reshape", "t1 lower", "m1"},
      {"Gather", "grids one0", "g1", "axis", "3"},
      {"Transpose", "g1", "h1", "perm", "0 2 1 3 4"},
      {"Reshape", "h1 grid", "s1"},
      {"GridSample", "m1 s1", "r1"},
      {"Unsqueeze", "r0 stack", "u0"},
      {"Unsqueeze", "r1 stack", "u1"},
      {"Concat", "u0 u1", "u", "axis", "3"},
      {"Reshape", "u all", "a"},
      {"Transpose", "soft", "st", "perm", "0 2 1 3"},
      {"Reshape", "st weights", "sw"},
      {"Mul", "a sw", "aw"},
      {"ReduceSum", "aw last", "sum", "keepdims", "0"},
      {"Reshape", "sum back", "sb"},
      {"Transpose", "sb", "y", "perm", "0 2 1"}},
     1},
    {"levels by Split after the heads, side by side",
     "? 26 8",
     "? 5 8",
     {{"sizes", "20 6"},
      {"first", "0"},
      {"five", "5"},
      {"one", "1"},
      {"places", "-1 5 2 4 2"},
      {"shares", "-1 5 2 4"},
      {"values", "-1 26 2 4"},
      {"heads", "-1 4 26"},
      {"upper", "-1 4 4 5"},
      {"lower", "-1 4 2 3"},
      {"grid", "-1 5 4 2"},
      {"points", "1 3"},
      {"weights", "-1 1 5 4"},
      {"last", "-1"},
      {"back", "-1 8 5"}},
     {{"Slice", "x first five one", "q"},
      {"MatMul", "q place", "p"},
      {"Reshape", "p places", "grids"},
      {"MatMul", "q share", "w"},
      {"Reshape", "w shares", "scores"},
      {"Reshape", "x values", "v"},
      {"Transpose", "v", "vt", "perm", "0 2 3 1"},
      {"Reshape", "vt heads", "vh"},
      {"Split", "vh sizes", "v0 v1", "axis", "2"},
      {"Reshape", "v0 upper", "m0"},
      {"Reshape", "v1 lower", "m1"},
      {"Transpose", "grids", "gt", "perm", "0 2 1 3 4"},
      {"Reshape", "gt grid", "g"},
      {"Split", "g points", "s0 s1", "axis", "2"},
      {"GridSample", "m0 s0", "r0"},
      {"GridSample", "m1 s1", "r1"},
      {"Concat", "r0 r1", "a", "axis", "3"},
      {"Transpose", "scores", "st", "perm", "0 2 1 3"},
      {"Reshape", "st weights", "sw"},
      {"Mul", "a sw", "aw"},
      {"ReduceSum", "aw last", "sum", "keepdims", "0"},
      {"Reshape", "sum back", "sb"},
      {"Transpose", "sb", "y", "perm", "0 2 1"}},
     1},
    {"one level, whose shares are those of the other head",
     "? 26 8",
     "? 2 4 5",
     {{"first", "0"},
      {"five", "5"},
      {"one", "1"},
      {"places", "-1 5 2 4 2"},
      {"shares", "-1 5 4 2"},
      {"map", "-1 4 2 13"},
      {"grid", "-1 5 4 2"},
      {"weights", "-1 1 5 4"},
      {"last", "-1"},
      {"back", "-1 2 4 5"}},
     {{"Slice", "x first five one", "q"},
      {"MatMul", "q place", "p"},
      {"Reshape", "p places", "grids"},
      {"MatMul", "q share", "w"},
      {"Reshape", "w shares", "scores"},
      {"Transpose", "x", "vt", "perm", "0 2 1"},
      {"Reshape", "vt map", "m"},
      {"Transpose", "grids", "gt", "perm", "0 2 1 3 4"},
      {"Reshape", "gt grid", "g"},
      {"GridSample", "m g", "r"},
      {"Transpose", "scores", "st", "perm", "0 3 1 2"},
      {"Reshape", "st weights", "sw"},
      {"Mul", "r sw", "aw"},
      {"ReduceSum", "aw last", "sum", "keepdims", "0"},
      {"Reshape", "sum back", "y"}},
     0},
};

static void constants(struct proto *graph)
{
    const float   two = 2, unit = 1;
    const int64_t zero0 = 0, one0 = 1;
    float         w[8 * 16];
    for (int i = 0; i < 8 * 16; i++)
        w[i] = spelling_number(i + 3) * 0.3f;
    proto_initializer(graph, "place", 1, "8 16", w, sizeof w);
    proto_initializer(graph, "share", 1, "8 8", w, 64 * sizeof *w);
    proto_initializer(graph, "two", 1, "", &two, sizeof two);
    proto_initializer(graph, "unit", 1, "", &unit, sizeof unit);
    proto_initializer(graph, "zero0", 7, "", &zero0, sizeof zero0);
    proto_initializer(graph, "one0", 7, "", &one0, sizeof one0);
}

static void each_spelling_is_one_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "DeformAttention", constants);
}

/* A map of one pixel and a place half a pixel beyond its corner: what lies beyond is not read,
 * where a share is infinite either. */
static void no_share_reads_beyond_the_map(void **state)
{
    const float             place[] = {-1, -1};
    struct sac_model_params params = sac_model_params_default();
    struct sac_tensor_desc  desc = {.dtype = SAC_F32, .rank = 3, .shape = {1, 1, 1}};
    struct proto            graph = {0}, model = {0}, attrs = {0};
    sac_tensor             *in[2] = {NULL}, *out = NULL;
    sac_model              *m = NULL;
    (void)state;
    proto_initializer(&graph, "place", 1, "1 1 2", place, sizeof place);
    proto_input(&graph, "value", 1, "1 1 1");
    proto_input(&graph, "share", 1, "1 1 1");
    proto_output(&graph, "y", 1, "1 1 1");
    proto_attr_ints(&attrs, "sizes", "1 1");
    proto_attr_ints(&attrs, "points", "1");
    proto_string(&attrs, 7, "saccade"); /* the node's domain */
    proto_node(&graph, "DeformAttention", "value place share", "y", &attrs);
    proto_model(&model, &graph, 17);
    assert_sac_ok(
        sac_model_load_memory(device(), model.bytes, model.size, "test.onnx", &params, &m));
    for (int i = 0; i < 2; i++) {
        assert_sac_ok(sac_tensor_create(device(), &desc, "x", &in[i]));
        *(float *)sac_tensor_data(in[i]) = i == 0 ? 1 : INFINITY;
    }
    assert_sac_ok(sac_model_run(m, in, &out));
    assert_true(isinf(*(float *)sac_tensor_data(out)));
    for (int i = 0; i < 2; i++)
        sac_tensor_unref(&in[i]);
    sac_tensor_unref(&out);
    sac_model_unref(&m);
    proto_free(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_spelling_is_one_step),
                                       cmocka_unit_test(no_share_reads_beyond_the_map)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
