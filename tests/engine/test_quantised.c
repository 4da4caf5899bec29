/* SPDX-License-Identifier: Apache-2.0 */
/* Quantised networks as exporters write them become nodes of 8-bit numbers, with the numbers of the
 * nodes that these replace. Scales are powers of two: float32 has every sum exactly. And float8. */
#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "engine/ops/op.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"
#include "tests/test.h"

/* a: int8, b: uint8 with a zero point, c: uint8 of another scale, f: float8 */
#define ROUNDED(from, to, kind)                                         \
    {"QuantizeLinear", from " " kind "_scale " kind "_zero", "q_" to},  \
    {                                                                   \
        "DequantizeLinear", "q_" to " " kind "_scale " kind "_zero", to \
    }
#define WEIGHTS(name)                                                   \
    {                                                                   \
        "DequantizeLinear", name "_q " name "_scale", name, "axis", "0" \
    }
#define COLUMNS(name)                                                   \
    {                                                                   \
        "DequantizeLinear", name "_q " name "_scale", name, "axis", "1" \
    }

static const struct spelling convs[] = {
    {"two in a row, with activations",
     "? 4 5 3",
     "? 8 5 3",
     {{0}},
     {ROUNDED("x", "xr", "a"),
      WEIGHTS("w4"),
      {"Conv", "xr w4 bias", "c"},
      {"Relu", "c", "r"},
      ROUNDED("r", "rr", "b"),
      WEIGHTS("w8"),
      {"Conv", "rr w8 bias", "y"}},
     2},
    {"a normalisation, and a sum whose other half is in 8 bits too",
     "? 8 5 3",
     "? 8 5 3",
     {{0}},
     {ROUNDED("x", "xr", "b"),
      WEIGHTS("w8"),
      {"Conv", "xr w8", "c"},
      {"BatchNormalization", "c n_scale n_shift n_mean n_var", "n"},
      {"Add", "n xr", "s"},
      {"Relu", "s", "y"}},
     1},
    {"a sigmoid that gates, and two readers who round alike",
     "? 8 5 3",
     "? 8 5 3",
     {{0}},
     {ROUNDED("x", "xr", "a"),
      WEIGHTS("w8"),
      {"Conv", "xr w8", "c"},
      {"Sigmoid", "c", "s"},
      {"Mul", "c s", "m"},
      ROUNDED("m", "m1", "a"),
      ROUNDED("m", "m2", "a"),
      WEIGHTS("v8"),
      {"Conv", "m1 w8", "d"},
      {"Conv", "m2 v8", "e"},
      {"Add", "d e", "y"}},
     3},
    {"moved in 8 bits: halves, their join, a pool, twice the size",
     "? 8 5 3",
     "? 8 10 6",
     {{"halves", "4 4"}},
     {ROUNDED("x", "xr", "b"),
      {"Split", "xr halves", "l r", "axis", "1"},
      {"Concat", "r l", "j", "axis", "1"},
      {"MaxPool", "j", "p", "kernel_shape", "1 1"},
      {"Resize", "p - twice", "t"},
      WEIGHTS("w8"),
      ROUNDED("t", "tr", "b"),
      {"Conv", "tr w8 bias", "y"}},
     1},
    {"a join of two scales, which is float32",
     "? 4 5 3",
     "? 8 5 3",
     {{0}},
     {ROUNDED("x", "xa", "a"),
      ROUNDED("x", "xc", "c"),
      {"Concat", "xa xc", "j", "axis", "1"},
      ROUNDED("j", "jr", "b"),
      WEIGHTS("w8"),
      {"Conv", "jr w8", "y"}},
     1},
    {"weights too far from their zero point, which stay float32",
     "? 8 5 3",
     "? 8 5 3",
     {{0}},
     {ROUNDED("x", "xr", "a"),
      {"DequantizeLinear", "far_q a_scale far_zero", "w"},
      {"Conv", "xr w", "y"}},
     0},
    {"weights with a zero point, which have none then",
     "? 8 5 3",
     "? 8 5 3",
     {{0}},
     {ROUNDED("x", "xr", "a"),
      {"DequantizeLinear", "near_q a_scale near_zero", "w"},
      {"Conv", "xr w", "y"}},
     1},
    {"float8",
     "? 4 5 3",
     "? 8 5 3",
     {{0}},
     {ROUNDED("x", "xr", "f"),
      {"DequantizeLinear", "f4_q f_scale", "w"},
      {"Conv", "xr w", "c"},
      {"Relu", "c", "r"},
      ROUNDED("r", "y", "f")},
     1},
};

/* Two heads of four numbers, which are queries, keys and values alike. */
#define HEADS_OF(from)                                                           \
    {"Reshape", from " heads", "e"}, {"Transpose", "e", "t", "perm", "1 0 2"},   \
        {"Reshape", "t apart", "q"}, {"Transpose", "q", "k", "perm", "0 1 3 2"}, \
        {"MatMul", "q k", "c"}, {"Softmax", "c", "u", "axis", "-1"},             \
    {                                                                            \
        "MatMul", "u q", "o"                                                     \
    }
#define HEADS_SHAPES                                              \
    {"heads", "5 -1 4"}, {"apart", "-1 2 5 4"}, {"rows", "-1 8"}, \
    {                                                             \
        "first", "5 -1 8"                                         \
    }

static const struct spelling products[] = {
    {"a product of tokens, and what turns its matrix",
     "? 3 4",
     "? 3 8",
     {{"rows", "-1 8"}, {"tokens", "-1 3 8"}},
     {ROUNDED("x", "xr", "b"),
      COLUMNS("m4"),
      {"MatMul", "xr m4", "p"},
      {"Add", "p bias", "s"},
      {"Gelu", "s", "g"},
      ROUNDED("g", "gr", "a"),
      {"Reshape", "gr rows", "f"},
      WEIGHTS("m8"),
      {"Gemm", "f m8 bias", "h", "transB", "1"},
      {"Reshape", "h tokens", "y"}},
     2},
    {"attention whose tokens come first: rounded behind the Transposes",
     "? 5 8",
     "? 5 8",
     {HEADS_SHAPES},
     {{"LayerNormalization", "x n_scale bias", "n"},
      {"Transpose", "n", "nt", "perm", "1 0 2"},
      ROUNDED("nt", "nr", "a"),
      COLUMNS("m8"),
      {"MatMul", "nr m8", "p"},
      {"Add", "p bias", "s"},
      HEADS_OF("s"),
      {"Transpose", "o", "ot", "perm", "2 0 1 3"},
      {"Reshape", "ot rows", "f"},
      ROUNDED("f", "fr", "b"),
      {"Gemm", "fr m8 bias", "h"},
      {"Reshape", "h first", "g"},
      {"Transpose", "g", "gt", "perm", "1 0 2"},
      {"Add", "x gt", "y"}},
     2,
     4},
    {"attention whose tokens come first: rounded before the Transposes",
     "? 5 8",
     "? 5 8",
     {HEADS_SHAPES},
     {{"LayerNormalization", "x n_scale bias", "n"},
      ROUNDED("n", "nr", "f"),
      {"Transpose", "nr", "nt", "perm", "1 0 2"},
      {"DequantizeLinear", "f8_q f_scale", "w"},
      {"MatMul", "nt w", "p"},
      {"Add", "p bias", "s"},
      HEADS_OF("s"),
      ROUNDED("o", "or", "f"),
      {"Transpose", "or", "ot", "perm", "2 0 1 3"},
      {"Reshape", "ot rows", "f"},
      {"Gemm", "f w bias", "h"},
      {"Reshape", "h first", "g"},
      {"Transpose", "g", "gt", "perm", "1 0 2"},
      {"Add", "gt x", "y"}},
     2,
     4},
};

/* Tokens of two heads of four numbers each, as the products have them and as attention does. */
#define HEAD_OF(from, to, perm)                  \
    {"Reshape", from " two_heads", from "_4"},   \
    {                                            \
        "Transpose", from "_4", to, "perm", perm \
    }
#define ATTENTION_OF(q, k, v)                                                                \
    HEAD_OF(q, "q", "0 2 1 3"), HEAD_OF(k, "k", "0 2 3 1"), HEAD_OF(v, "v", "0 2 1 3"),      \
        {"MatMul", "q k", "c"}, {"Softmax", "c", "u", "axis", "-1"}, {"MatMul", "u v", "o"}, \
        {"Transpose", "o", "t", "perm", "0 2 1 3"},                                          \
    {                                                                                        \
        "Reshape", "t whole", "y"                                                            \
    }
#define TWO_HEADS             \
    {"two_heads", "0 5 2 4"}, \
    {                         \
        "whole", "0 5 8"      \
    }

static const struct spelling wide[] = {
    {"queries, keys and values of one input",
     "? 5 8",
     "? 5 8",
     {TWO_HEADS},
     {ROUNDED("x", "xr", "b"),
      COLUMNS("m8"),
      COLUMNS("k8"),
      COLUMNS("l8"),
      {"MatMul", "xr m8", "qs"},
      {"Add", "qs bias", "qb"},
      {"MatMul", "xr k8", "kb"},
      {"MatMul", "xr l8", "vs"},
      {"Add", "vs n_shift", "vb"},
      ATTENTION_OF("qb", "kb", "vb")},
     1,
     3},
    {"queries of another input",
     "? 5 8",
     "? 5 8",
     {TWO_HEADS},
     {ROUNDED("x", "xr", "b"),
      {"Relu", "x", "z"},
      ROUNDED("z", "zr", "b"),
      COLUMNS("m8"),
      COLUMNS("k8"),
      COLUMNS("l8"),
      {"MatMul", "zr m8", "qb"},
      {"MatMul", "xr k8", "kb"},
      {"MatMul", "xr l8", "vb"},
      ATTENTION_OF("qb", "kb", "vb")},
     2},
    {"float8 of the same scale, and of another",
     "? 5 8",
     "? 5 8",
     {TWO_HEADS},
     {ROUNDED("x", "xr", "f"),
      {"DequantizeLinear", "f8_q f_scale", "m_w"},
      {"DequantizeLinear", "g8_q f_scale", "k_w"},
      {"DequantizeLinear", "h8_q a_scale", "l_w"},
      {"MatMul", "xr m_w", "qb"},
      {"MatMul", "xr k_w", "kb"},
      {"MatMul", "xr l_w", "vb"},
      ATTENTION_OF("qb", "kb", "vb")},
     2},
};

static const struct spelling norms[] = {
    {"rounded alike for two products",
     "? 3 8",
     "? 3 8",
     {{0}},
     {{"LayerNormalization", "x n_scale bias", "n"},
      ROUNDED("n", "n1", "a"),
      ROUNDED("n", "n2", "a"),
      COLUMNS("m8"),
      {"MatMul", "n1 m8", "p"},
      {"MatMul", "n2 m8", "q"},
      {"Add", "p q", "y"}},
     1,
     3},
    {"of a map's channels, with a zero point",
     "? 8 5 3",
     "? 8 5 3",
     {{0}},
     {{"Transpose", "x", "t", "perm", "0 2 3 1"},
      {"LayerNormalization", "t n_scale", "n"},
      {"Transpose", "n", "u", "perm", "0 3 1 2"},
      ROUNDED("u", "r", "b"),
      WEIGHTS("w8"),
      {"Conv", "r w8 bias", "y"}},
     1},
    {"by the root of mean squares, as it is spelled",
     "? 3 8",
     "? 3 8",
     {{0}},
     {{"Mul", "x x", "q"},
      {"ReduceMean", "q", "v", "axes", "-1 "},
      {"Add", "v far_scale", "e"},
      {"Sqrt", "e", "s"},
      {"Div", "x s", "n"},
      {"Mul", "n n_scale", "w"},
      ROUNDED("w", "y", "f")},
     1,
     2},
    {"read in float32 too",
     "? 3 8",
     "? 3 8",
     {{0}},
     {{"LayerNormalization", "x n_scale bias", "n"},
      ROUNDED("n", "r", "a"),
      COLUMNS("m8"),
      {"MatMul", "r m8", "p"},
      {"Add", "p n", "y"}},
     0},
    {"whose mean is an output",
     "? 3 8",
     "? 3 8",
     {{0}},
     {{"LayerNormalization", "x n_scale bias", "n mean"},
      ROUNDED("n", "r", "a"),
      {"Add", "r mean", "y"}},
     0},
    {"rounded by two scales",
     "? 3 8",
     "? 3 8",
     {{0}},
     {{"LayerNormalization", "x n_scale", "n"},
      ROUNDED("n", "r", "b"),
      ROUNDED("n", "s", "c"),
      {"Add", "r s", "y"}},
     0},
};

/* A pool of floats leaves less to round; of what a product makes in 8 bits, and of what a pool does
 * not make less, bytes are pooled. */
static const struct spelling rounded_behind[] = {
    {"of an activation",
     "? 8 6 4",
     "? 8 5 3",
     {{0}},
     {{"Relu", "x", "r"},
      ROUNDED("r", "rr", "b"),
      {"MaxPool", "rr", "p", "kernel_shape", "2 2"},
      WEIGHTS("w8"),
      {"Conv", "p w8 bias", "y"}},
     1},
};
static const struct spelling rounded_before[] = {
    {"of a product with a residual, which comes first",
     "? 8 6 4",
     "? 8 5 3",
     {{0}},
     {{"Relu", "x", "r"},
      ROUNDED("r", "rr", "b"),
      WEIGHTS("w8"),
      {"Conv", "rr w8", "c"},
      {"Add", "r c", "s"},
      ROUNDED("s", "sr", "b"),
      {"MaxPool", "sr", "p", "kernel_shape", "2 2"},
      WEIGHTS("v8"),
      {"Conv", "p v8 bias", "y"}},
     0},
    {"where a pool makes nothing less",
     "? 8 6 4",
     "? 8 6 4",
     {{0}},
     {{"Relu", "x", "r"},
      ROUNDED("r", "rr", "b"),
      {"MaxPool", "rr", "p", "kernel_shape", "1 1"},
      WEIGHTS("w8"),
      {"Conv", "p w8 bias", "y"}},
     0},
};

static void add_bytes(struct proto *graph, const char *name, int type, const char *dims, int count)
{
    uint8_t *data = sac_alloc((size_t)count);
    for (int i = 0; i < count; i++)
        data[i] = (uint8_t)(type == 17 ? i * 37 % 0x58 : i * 37);
    proto_initializer(graph, name, type, dims, data, (size_t)count);
    sac_free(data);
}

static void add_scaling(struct proto *graph, const char *kind, int type, float scale, uint8_t zero)
{
    char name[32];
    snprintf(name, sizeof name, "%s_scale", kind);
    proto_initializer(graph, name, 1, "", &scale, sizeof scale);
    snprintf(name, sizeof name, "%s_zero", kind);
    proto_initializer(graph, name, type, "", &zero, 1);
}

static void constants(struct proto *graph)
{
    static const float twice[4] = {1, 1, 2, 2};
    float              numbers[5][8];
    for (int i = 0; i < 8; i++) {
        numbers[0][i] = (float)(i - 3) / 4;
        numbers[1][i] = i % 2 ? 0.5f : -2;
        numbers[2][i] = (float)i;
        numbers[3][i] = 1 + (float)i / 8;
        numbers[4][i] = i % 3 ? 0x1p-10f : 0x1p-11f;
    }
    proto_initializer(graph, "twice", 1, "4", twice, sizeof twice);
    proto_initializer(graph, "bias", 1, "8", numbers[0], sizeof numbers[0]);
    proto_initializer(graph, "n_scale", 1, "8", numbers[1], sizeof numbers[1]);
    proto_initializer(graph, "n_shift", 1, "8", numbers[0], sizeof numbers[0]);
    proto_initializer(graph, "n_mean", 1, "8", numbers[2], sizeof numbers[2]);
    proto_initializer(graph, "n_var", 1, "8", numbers[3], sizeof numbers[3]);
    static const char *const scaled[] = {"w4", "w8", "v8", "m4", "m8", "k8", "l8"};
    static const char *const dims[] = {"8 4 1 1", "8 8 1 1", "8 8 1 1", "4 8", "8 8", "8 8", "8 8"};
    for (int i = 0; i < 7; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s_q", scaled[i]);
        add_bytes(graph, name, 3, dims[i], strchr(dims[i], '4') ? 32 : 64);
        snprintf(name, sizeof name, "%s_scale", scaled[i]);
        proto_initializer(graph, name, 1, "8", numbers[4], sizeof numbers[4]);
    }
    add_bytes(graph, "far_q", 2, "8 8 1 1", 64);
    add_bytes(graph, "near_q", 2, "8 8 1 1", 64);
    add_bytes(graph, "f4_q", 17, "8 4 1 1", 32);
    add_bytes(graph, "f8_q", 17, "8 8", 64);
    add_bytes(graph, "g8_q", 17, "8 8", 64);
    add_bytes(graph, "h8_q", 17, "8 8", 64);
    add_scaling(graph, "far", 2, 1, 3);
    add_scaling(graph, "near", 2, 1, 128);
    add_scaling(graph, "a", 3, 0x1p-6f, 0);
    add_scaling(graph, "b", 2, 0x1p-6f, 120);
    add_scaling(graph, "c", 2, 0x1p-5f, 100);
    add_scaling(graph, "f", 17, 0x1p-3f, 0);
}

static void convolutions_become_one_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(convs); i++)
        spelling_check(&convs[i], "QuantConv", constants);
}

static void products_become_one_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(products); i++)
        spelling_check(&products[i], "QuantMatMul", constants);
}

static void products_of_one_input_become_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(wide); i++)
        spelling_check(&wide[i], "QuantMatMul", constants);
}

static void rounding_moves_behind_a_pool(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(rounded_behind); i++)
        spelling_check(&rounded_behind[i], "MaxPool              float32[", constants);
    for (size_t i = 0; i < SAC_COUNT(rounded_before); i++)
        spelling_check(&rounded_before[i], "MaxPool              float32[", constants);
}

static void norms_write_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(norms); i++)
        spelling_check(&norms[i], "FusedNorm", constants);
}

/* ---- float8 ---- */

static void float8_has_its_numbers(void **state)
{
    (void)state;
    assert_true(sac_f8_to_float(0x38) == 1 && sac_f8_to_float(0x7e) == 448);
    assert_true(sac_f8_to_float(0x01) == 0x1p-9f && sac_f8_to_float(0x08) == 0x1p-6f);
    assert_true(isnan(sac_f8_to_float(0x7f)) && isnan(sac_f8_to_float(0xff)));
    for (int i = 0; i < 256; i++)
        if ((i & 0x7f) != 0x7f)
            assert_int_equal(sac_float_to_f8(sac_f8_to_float((uint8_t)i)), i);
}

static void float8_rounds_to_even_and_saturates(void **state)
{
    (void)state;
    for (int i = 0; i < 0x7e; i++) {
        const float a = sac_f8_to_float((uint8_t)i), b = sac_f8_to_float((uint8_t)(i + 1));
        const float middle = (a + b) / 2;
        assert_int_equal(sac_float_to_f8(middle), i + (i & 1));
        assert_int_equal(sac_float_to_f8(nextafterf(middle, 0)), i);
        assert_int_equal(sac_float_to_f8(nextafterf(middle, 1000)), i + 1);
        assert_int_equal(sac_float_to_f8(-middle), 0x80 | (i + (i & 1)));
    }
    assert_int_equal(sac_float_to_f8(1e9f), 0x7e);
    assert_int_equal(sac_float_to_f8(-INFINITY), 0xfe);
    assert_int_equal(sac_float_to_f8(NAN) & 0x7f, 0x7f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_become_one_step),
        cmocka_unit_test(products_become_one_step),
        cmocka_unit_test(products_of_one_input_become_one),
        cmocka_unit_test(rounding_moves_behind_a_pool),
        cmocka_unit_test(norms_write_bytes),
        cmocka_unit_test(float8_has_its_numbers),
        cmocka_unit_test(float8_rounds_to_even_and_saturates),
    };
    return cmocka_run_group_tests_name("engine/quantised", tests, NULL, close_device);
}
