/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of nodes that only move numbers become one Rearrange, with the numbers of the nodes that
 * it replaces. */
#include "base/base.h"
#include "engine/model/model.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* v rolled by one and by two, as t. */
#define ROLL(v, t)                                                                       \
    {"Slice", v " s1 end a1", t "a"}, {"Slice", v " s0 s1 a1", t "b"},                   \
        {"Concat", t "a " t "b", t "c", "axis", "1"}, {"Slice", t "c s2 end a2", t "d"}, \
        {"Slice", t "c s0 s2 a2", t "e"},                                                \
    {                                                                                    \
        "Concat", t "d " t "e", t, "axis", "2"                                           \
    }
#define BOUNDS                                                                          \
    {"s0", "0"}, {"s1", "1"}, {"s2", "2"}, {"end", "9223372036854775807"}, {"a1", "1"}, \
    {                                                                                   \
        "a2", "2"                                                                       \
    }
/* Every second row and column of v from y and x on. */
#define SKIP(v, y, x, t)                    \
    {"Slice", v " " y " end a1 s2", t "r"}, \
    {                                       \
        "Slice", t "r " x " end a2 s2", t   \
    }

static const struct spelling spellings[] = {
    {"a roll of two axes", "? 4 6 3", "? 4 6 3", {BOUNDS}, {ROLL("x", "y")}, 1, 1},
    {"rolled windows",
     "? 4 6 3",
     "? 6 3",
     {BOUNDS, {"apart", "-1 2 2 3 2 3"}, {"windows", "-1 6 3"}},
     {ROLL("x", "t"),
      {"Reshape", "t apart", "p"},
      {"Transpose", "p", "q", "perm", "0 1 3 2 4 5"},
      {"Reshape", "q windows", "y"}},
     1,
     1},
    {"windows put together and rolled",
     "? 2 2 2 3 3",
     "? 4 6 3",
     {BOUNDS, {"map", "-1 4 6 3"}},
     {{"Transpose", "x", "q", "perm", "0 1 3 2 4 5"}, {"Reshape", "q map", "m"}, ROLL("m", "y")},
     1,
     1},
    {"and something added",
     "? 2 2 2 3 3",
     "? 4 6 3",
     {BOUNDS, {"map", "-1 4 6 3"}},
     {{"Transpose", "x", "q", "perm", "0 1 3 2 4 5"},
      {"Reshape", "q map", "m"},
      ROLL("m", "t"),
      {"Reshape", "x map", "r"},
      {"Add", "r t", "y"}},
     1,
     1},
    {"windows put together and added",
     "? 2 2 2 3 3",
     "? 4 6 3",
     {{"map", "-1 4 6 3"}},
     {{"Transpose", "x", "q", "perm", "0 1 3 2 4 5"},
      {"Reshape", "q map", "m"},
      {"Reshape", "x map", "r"},
      {"Add", "m r", "y"}},
     1,
     1},
    {"padded to windows",
     "? 3 5 3",
     "? 6 3",
     {{"apart", "-1 2 2 3 2 3"}, {"windows", "-1 6 3"}, {"pads", "0 1 0 0 0 0 1 0"}},
     {{"Pad", "x pads", "t"},
      {"Reshape", "t apart", "p"},
      {"Transpose", "p", "q", "perm", "0 1 3 2 4 5"},
      {"Reshape", "q windows", "y"}},
     1,
     1},
    {"windows put together and cut",
     "? 2 2 2 3 3",
     "? 3 4 3",
     {{"map", "-1 4 6 3"}, {"from", "0 1"}, {"to", "3 -1"}, {"both", "1 2"}},
     {{"Transpose", "x", "q", "perm", "0 1 3 2 4 5"},
      {"Reshape", "q map", "m"},
      {"Slice", "m from to both", "y"}},
     1,
     1},
    {"space to depth",
     "? 4 6 3",
     "? 2 3 12",
     {BOUNDS},
     {SKIP("x", "s0", "s0", "a"),
      SKIP("x", "s1", "s0", "b"),
      SKIP("x", "s0", "s1", "c"),
      SKIP("x", "s1", "s1", "d"),
      {"Concat", "a b c d", "y", "axis", "-1"}},
     1,
     1},
    {"maps of channels first, rolled",
     "? 3 4 6",
     "? 3 4 6",
     {BOUNDS, {"a3", "3"}},
     {{"Slice", "x s1 end a2", "a"},
      {"Slice", "x s0 s1 a2", "b"},
      {"Concat", "a b", "c", "axis", "2"},
      {"Slice", "c s2 end a3", "d"},
      {"Slice", "c s0 s2 a3", "e"},
      {"Concat", "d e", "y", "axis", "3"}},
     1,
     1},
    {"half of a roll is an output too",
     "? 4 6 3",
     "? 4 6 3",
     {BOUNDS},
     {ROLL("x", "y")},
     2,
     2,
     "yc",
     "? 4 6 3"},
    {"backwards",
     "? 4 6 3",
     "? 4 6 3",
     {{"from", "-1"}, {"to", "-9"}, {"by", "-1"}, {"one", "1"}, {"two", "2"}},
     {{"Slice", "x from to one by", "t"}, {"Slice", "t from to two by", "y"}},
     0},
    {"parts in no order",
     "? 4 6 3",
     "? 4 6 3",
     {BOUNDS, {"s3", "3"}},
     {{"Slice", "x s3 end a1", "a"},
      {"Slice", "x s0 s1 a1", "b"},
      {"Slice", "x s1 s3 a1", "c"},
      {"Concat", "b a c", "y", "axis", "1"}},
     0},
    {"parts of two values",
     "? 4 6 3",
     "? 4 6 3",
     {BOUNDS},
     {{"Neg", "x", "n"},
      {"Slice", "x s1 end a1", "a"},
      {"Slice", "n s0 s1 a1", "b"},
      {"Concat", "a b", "y", "axis", "1"}},
     0},
    {"along the batch",
     "? 4 6 3",
     "? 4 6 3",
     {BOUNDS, {"a0", "0"}},
     {{"Slice", "x s1 end a0", "a"},
      {"Slice", "x s0 s1 a0", "b"},
      {"Concat", "a b", "y", "axis", "0"}},
     0},
    {"a Transpose for the layout",
     "? 4 6 3",
     "? 3 4 6",
     {BOUNDS},
     {ROLL("x", "t"), {"Transpose", "t", "y", "perm", "0 3 1 2"}},
     1},
};

/* Tokens and maps whose channels lie last are the same bytes: only what computes is a step. */
static const struct spelling layouts[] = {
    {"tokens to a map and back",
     "? 24 4",
     "? 24 4",
     {{"map", "-1 4 4 6"}, {"tokens", "-1 4 24"}},
     {{"Transpose", "x", "t", "perm", "0 2 1"},
      {"Reshape", "t map", "m"},
      {"Conv", "m w", "c"},
      {"Reshape", "c tokens", "u"},
      {"Transpose", "u", "y", "perm", "0 2 1"}},
     1,
     1},
    {"a map taken apart and put together",
     "? 4 4 6",
     "? 4 4 6",
     {{"apart", "-1 2 3 2"}, {"patches", "-1 4 6 4"}, {"map", "-1 4 4 6"}, {"rows", "-1 3 2 2"}},
     {{"Conv", "x w", "c"},
      {"Reshape", "c apart", "a"},
      {"Transpose", "a", "b", "perm", "0 2 1 3"},
      {"Reshape", "b patches", "d"},
      {"Transpose", "d", "e", "perm", "0 3 2 1"},
      {"Softmax", "e", "f", "axis", "-1"},
      {"Transpose", "f", "g", "perm", "0 3 2 1"},
      {"Reshape", "g rows", "h"},
      {"Transpose", "h", "i", "perm", "0 2 1 3"},
      {"Reshape", "i map", "j"},
      {"Conv", "j w", "y"}},
     2,
     6},
    {"channels shuffled",
     "? 4 4 6",
     "? 4 4 6",
     {{"groups", "-1 2 2 4 6"}, {"map", "-1 4 4 6"}},
     {{"Conv", "x w", "c"},
      {"Reshape", "c groups", "d"},
      {"Transpose", "d", "e", "perm", "0 2 1 3 4"},
      {"Reshape", "e map", "f"},
      {"Conv", "f w", "y"}},
     2,
     4},
    {"a normalisation before a convolution",
     "? 4 4 6",
     "? 4 4 6",
     {{0}},
     {{"BatchNormalization", "x s4 t4 s4 v4", "n"}, {"Conv", "n w b4", "y"}},
     1,
     2},
    {"one before padding",
     "? 4 4 6",
     "? 4 6 8",
     {{0}},
     {{"BatchNormalization", "x s4 t4 s4 v4", "n"}, {"Conv", "n w", "y", "pads", "1 1 1 1"}},
     1,
     3},
    {"one before two convolutions",
     "? 4 4 6",
     "? 4 4 6",
     {{0}},
     {{"BatchNormalization", "x s4 t4 s4 v4", "n"},
      {"Conv", "n w", "a"},
      {"Conv", "n w b4", "b"},
      {"Mul", "a b", "y"}},
     2},
    {"tokens of one picture, first",
     "1 5 4",
     "5 1 4",
     {{0}},
     {{"Transpose", "x", "t", "perm", "1 0 2"}, {"Neg", "t", "y"}},
     0,
     1},
};

/* Channels taken out of a convolution, and normalised where nothing else sees them: the operator
 * is BatchNormalization. */
#define HALVES                                                                  \
    {"from", "0"}, {"middle", "2"}, {"to", "4"}, {"last", "-2"}, {"axis", "1"}, \
    {                                                                           \
        "one", "1"                                                              \
    }
static const struct spelling halves[] = {
    {"a half for each of two normalisations",
     "? 4 4 6",
     "? 4 4 6",
     {HALVES},
     {{"Conv", "x w b4", "c"},
      {"Slice", "c from middle axis", "a"},
      {"Slice", "c last to axis", "b"},
      {"BatchNormalization", "a s2 t2 s2 v2", "d"},
      {"InstanceNormalization", "b s2 t2", "e"},
      {"Concat", "d e", "y", "axis", "1"}},
     0},
    {"both parts of a Split",
     "? 4 4 6",
     "? 4 4 6",
     {{0}},
     {{"Conv", "x w", "c"},
      {"Split", "c", "a b", "axis", "1"},
      {"BatchNormalization", "b t2 s2 t2 v2", "d"},
      {"BatchNormalization", "a s2 t2 s2 v2", "e"},
      {"Concat", "d e", "y", "axis", "1"}},
     0},
    {"channels that another reader sees too",
     "? 4 4 6",
     "? 5 4 6",
     {HALVES},
     {{"Conv", "x w b4", "c"},
      {"Slice", "c from middle axis", "a"},
      {"Slice", "c one to axis", "b"},
      {"BatchNormalization", "a s2 t2 s2 v2", "d"},
      {"Concat", "d b", "y", "axis", "1"}},
     1},
    {"a convolution read whole",
     "? 4 4 6",
     "? 6 4 6",
     {HALVES},
     {{"Conv", "x w b4", "c"},
      {"Slice", "c from middle axis", "a"},
      {"BatchNormalization", "a s2 t2 s2 v2", "d"},
      {"Concat", "d c", "y", "axis", "1"}},
     1},
    {"rows, not channels",
     "? 4 4 6",
     "? 4 4 6",
     {{0}},
     {{"Conv", "x w b4", "c"},
      {"Split", "c", "a b", "axis", "2"},
      {"BatchNormalization", "a s4 t4 s4 v4", "d"},
      {"Concat", "d b", "y", "axis", "2"}},
     1},
};

static void add_weights(struct proto *graph)
{
    float data[16];
    for (int i = 0; i < 16; i++)
        data[i] = spelling_number(i + 5);
    proto_initializer(graph, "w", 1, "4 4 1 1", data, sizeof data);
    for (int i = 0; i < 3; i++)
        proto_initializer(graph, (const char *[]){"s4", "t4", "b4"}[i], 1, "4", data + 4 * i,
                          4 * sizeof *data);
    for (int i = 0; i < 4; i++)
        data[i] = 0.5f + (float)i;
    proto_initializer(graph, "v4", 1, "4", data, 4 * sizeof *data);
    proto_initializer(graph, "v2", 1, "2", data, 2 * sizeof *data);
    for (int i = 0; i < 3; i++)
        data[i] = spelling_number(i + 3);
    proto_initializer(graph, "s2", 1, "2", data, 2 * sizeof *data);
    proto_initializer(graph, "t2", 1, "2", data + 1, 2 * sizeof *data);
}

static void halves_are_normalised_by_their_convolution(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(halves); i++)
        spelling_check(&halves[i], "BatchNormalization", add_weights);
}

static void layouts_take_no_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(layouts); i++)
        spelling_check(&layouts[i], "Conv", add_weights);
}

static void each_spelling_is_one_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "Rearrange", NULL);
}

/* On a machine whose memory would hold it: padding whose numbers, times what stands for an open
 * dim, are beyond 63 bits, which the undefined behaviour sanitizer reports. The nodes stay as they
 * are.
 */
static void padding_beyond_counting_is_no_chain(void **state)
{
    (void)state;
    const int64_t pads[] = {0, 0, 0, 0, (1 << 20) - 2, (1 << 20) - 2}, shape[] = {-1, 4, 1 << 18};
    struct sac_model_params params = sac_model_params_default();
    struct proto            graph = {0}, kept = {0}, turn = {0};
    sac_model              *m = NULL;
    params.memory_limit_bytes = INT64_MAX;
    proto_attr_ints(&turn, "perm", "2 1 0");
    proto_initializer(&graph, "pads", 7, "6", pads, sizeof pads);
    proto_initializer(&graph, "shape", 7, "3", shape, sizeof shape);
    proto_input(&graph, "x", 1, "? 2 2");
    proto_node(&graph, "Pad", "x pads", "p", NULL);
    proto_node(&graph, "Reshape", "p shape", "r", NULL);
    proto_node(&graph, "Transpose", "r", "y", &turn);
    proto_output(&graph, "y", 1, "262144 4 ?");
    proto_model(&kept, &graph, 17);
    assert_sac_ok(sac_model_load_memory(device(), kept.bytes, kept.size, "test.onnx", &params, &m));
    for (size_t i = 0; i < m->graph->node_count; i++) {
        assert_true(m->graph->nodes[i]->outputs[0]->rank == 3); /* known, so it was looked at */
        assert_string_not_equal(m->graph->nodes[i]->op_type, "Rearrange");
    }
    sac_model_unref(&m);
    proto_free(&kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_spelling_is_one_step),
        cmocka_unit_test(layouts_take_no_step),
        cmocka_unit_test(halves_are_normalised_by_their_convolution),
        cmocka_unit_test(padding_beyond_counting_is_no_chain),
    };
    return cmocka_run_group_tests(tests, NULL, close_device);
}
