/* SPDX-License-Identifier: Apache-2.0 */
/* Networks that float16 can't do though their results are small: each gives wrong numbers in FP16
 * where nobody looks at its ranges, and right ones where somebody did. */
#include <math.h>

#include "base/base.h"
#include "engine/model/model.h"
#include "tests/engine/far.h"
#include "tests/engine/proto.h"
#include "tests/test.h"

enum { FLOAT32 = 1, INT8 = 3, ROWS = 16, COLUMNS = 64, COUNT = ROWS * COLUMNS };

struct step {
    const char *op, *inputs, *output;
};
static const struct odd {
    const char *name;
    struct step step[20];
} odds[] = {
    {"norm of numbers far from zero",
     {{"Add", "x far", "a"}, {"LayerNormalization", "a ones", "y"}}},
    {"norm of numbers far from zero, in 8 bits",
     {{"Add", "x far", "a"},
      {"LayerNormalization", "a ones", "n"},
      {"QuantizeLinear", "n step none", "q"},
      {"DequantizeLinear", "q step none", "y"}}},
    {"norm written out",
     {{"Add", "x far", "a"}, {"ReduceMean", "a", "m"}, {"Sub", "a m", "d"}, {"Tanh", "d", "y"}}},
    {"softmax of large numbers", {{"Mul", "x large", "a"}, {"Softmax", "a", "y"}}},
    {"exponentials without the largest taken off",
     {{"Mul", "x six", "a"},
      {"Exp", "a", "e"},
      {"Mul", "e e", "q"},
      {"ReduceMean", "q", "s"},
      {"Div", "q s", "r"},
      {"Tanh", "r", "y"}}},
    {"difference of large numbers",
     {{"Add", "x far", "a"}, {"Sub", "a far", "b"}, {"Tanh", "b", "y"}}},
    {"variance as a difference of means",
     {{"Add", "x far", "a"},
      {"Mul", "a a", "q"},
      {"ReduceMean", "q", "mq"},
      {"ReduceMean", "a", "m"},
      {"Mul", "m m", "qm"},
      {"Sub", "mq qm", "v"},
      {"Tanh", "v", "t"},
      {"Mul", "x t", "y"}}},
    {"numbers that shrink from layer to layer",
     {{"Mul", "x small", "a"},
      {"Relu", "a", "b"},
      {"Mul", "b small", "c"},
      {"Relu", "c", "d"},
      {"Mul", "d great", "e"},
      {"Tanh", "e", "y"}}},
    {"sums over many tokens, and their quotient",
     {{"Abs", "x", "p"},
      {"Mul", "p large", "k"},
      {"MatMul", "k even", "s"},
      {"MatMul", "s even", "o"},
      {"Mul", "o x", "n"},
      {"Div", "n o", "y"}}},
    {"weights beyond float16", {{"Mul", "x tiny", "a"}, {"MatMul", "a heavy", "y"}}},
    {"weights below float16",
     {{"Mul", "x large", "a"}, {"Relu", "a", "b"}, {"MatMul", "b light", "y"}}},
    {"weights below float16, of tokens",
     {{"Mul", "x large", "a"},
      {"Transpose", "a", "t"},
      {"MatMul", "t lighter", "m"},
      {"Transpose", "m", "y"}}},
};
/* Weights that float16 has few bits of, beside which nothing is lost. */
static const struct odd gates[] = {
    {"a gate at its start",
     {{"Tanh", "x", "t"},
      {"MatMul", "t even", "u"},
      {"MatMul", "t light", "v"},
      {"Add", "v ones", "b"},
      {"Mul", "u b", "y"}}},
    {"an activated one",
     {{"Tanh", "x", "t"},
      {"MatMul", "t light", "v"},
      {"Add", "v ones", "b"},
      {"Sigmoid", "b", "s"},
      {"Mul", "b s", "g"},
      {"Mul", "x g", "y"}}},
    {"a gate of tokens",
     {{"Tanh", "x", "a"},
      {"Transpose", "a", "t"},
      {"MatMul", "t lighter", "m"},
      {"Add", "m rows", "b"},
      {"Transpose", "b", "v"},
      {"Mul", "v a", "y"}}},
};

/* ---- the networks ---- */

static float number(int i)
{
    return sinf((float)i * 1.7f) * 1.5f;
}

static void add_matrix(struct proto *graph, const char *name, float factor)
{
    static float w[COLUMNS * COLUMNS];
    for (int i = 0; i < COLUMNS * COLUMNS; i++)
        w[i] = factor > 0 ? number(i * 7 + i / COLUMNS) * factor : 1;
    proto_initializer(graph, name, FLOAT32, "64 64", w, sizeof w);
}

static void add_constants(struct proto *graph)
{
    static const struct {
        const char *name;
        float       v;
    } one[] = {{"far", 400},    {"large", 300},  {"six", 4},       {"small", 1e-4f},
               {"great", 1e8f}, {"tiny", 1e-4f}, {"step", 0.0115f}};
    const int8_t none = 0;
    float        ones[COLUMNS], square[ROWS * ROWS];
    proto_initializer(graph, "none", INT8, "", &none, sizeof none);
    for (size_t i = 0; i < SAC_COUNT(one); i++)
        proto_initializer(graph, one[i].name, FLOAT32, "1", &one[i].v, sizeof one[i].v);
    for (int i = 0; i < COLUMNS; i++)
        ones[i] = 1;
    proto_initializer(graph, "ones", FLOAT32, "64", ones, sizeof ones);
    add_matrix(graph, "even", 0);
    add_matrix(graph, "heavy", 1e5f);
    add_matrix(graph, "light", 1e-6f);
    proto_initializer(graph, "rows", FLOAT32, "16", ones, ROWS * sizeof *ones);
    for (int i = 0; i < ROWS * ROWS; i++)
        square[i] = number(i * 7 + i / ROWS) * 1e-6f;
    proto_initializer(graph, "lighter", FLOAT32, "16 16", square, sizeof square);
}

static void write_odd(struct proto *model, const struct odd *o)
{
    struct proto graph = {0};
    add_constants(&graph);
    for (int i = 0; i < (int)SAC_COUNT(o->step) && o->step[i].op; i++) {
        struct proto attrs = {0};
        if (strcmp(o->step[i].op, "ReduceMean") == 0)
            proto_attr_ints(&attrs, "axes", "2");
        if (strcmp(o->step[i].op, "Transpose") == 0)
            proto_attr_ints(&attrs, "perm", "0 2 1");
        proto_node(&graph, o->step[i].op, o->step[i].inputs, o->step[i].output, &attrs);
    }
    proto_input(&graph, "x", FLOAT32, "1 16 64");
    proto_output(&graph, "y", FLOAT32, "1 16 64");
    proto_model(model, &graph, 17);
}

/* ---- what they give ---- */

/* In FP16 on the far device, or in FP32 on the CPU. watched: nobody looks at its ranges. Returns
 * how many steps stay in float32. */
static int run(const struct odd *o, bool far, bool watched, float *y)
{
    const struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 3, .shape = {1, ROWS, COLUMNS}};
    struct sac_model_params      params = sac_model_params_default();
    struct proto                 kept = {0};
    sac_device                  *dev = NULL;
    sac_tensor                  *in = NULL, *out = NULL;
    sac_model                   *m = NULL;
    float                        x[COUNT];
    for (int i = 0; i < COUNT; i++)
        x[i] = number(i);
    write_odd(&kept, o);
    params.precision = far ? SAC_PRECISION_FP16 : SAC_PRECISION_FP32;
    assert_sac_ok(far ? far_open(test_context(), NULL, &dev)
                      : sac_device_open(test_context(), "cpu", NULL, &dev));
    setenv("SACCADE_WITHOUT", "chain", 1); /* whose numbers between are float32 anyway */
    assert_sac_ok(sac_model_load_memory(dev, kept.bytes, kept.size, o->name, &params, &m));
    unsetenv("SACCADE_WITHOUT");
    m->watched = watched;
    assert_sac_ok(sac_tensor_create(dev, &desc, "x", &in));
    assert_sac_ok(sac_tensor_upload(in, x));
    assert_sac_ok(sac_model_run(m, &in, &out));
    assert_sac_ok(sac_tensor_download(out, y));
    const int wide = m->wide_count;
    sac_tensor_unref(&in);
    sac_tensor_unref(&out);
    sac_model_unref(&m);
    sac_device_unref(&dev);
    proto_free(&kept);
    return wide;
}

/* The largest difference as a share of the largest number; not finite: much. */
static double off_by(const float *want, const float *have)
{
    double off = 0, most = 0;
    for (int i = 0; i < COUNT; i++) {
        const double d = fabs((double)have[i] - (double)want[i]);
        off = isfinite(d) ? fmax(off, d) : 1e9;
        most = fmax(most, fabs((double)want[i]));
    }
    return off / most;
}

static void steps_that_lose_too_much_stay_in_float32(void **state)
{
    (void)state;
    setenv("SACCADE_CACHE", "", 1);
    for (size_t i = 0; i < SAC_COUNT(odds); i++) {
        float want[COUNT], have[COUNT];
        run(&odds[i], false, false, want);
        run(&odds[i], true, true, have);
        const double blind = off_by(want, have);
        run(&odds[i], true, false, have);
        const double off = off_by(want, have);
        if (!(blind > 0.03)) /* or it says nothing */
            fail_msg("%s: off by %g without a look at it", odds[i].name, blind);
        if (!(off < 0.01))
            fail_msg("%s: off by %g", odds[i].name, off);
    }
}

static void weights_that_change_nothing_stay_in_float16(void **state)
{
    (void)state;
    setenv("SACCADE_CACHE", "", 1);
    for (size_t i = 0; i < SAC_COUNT(gates); i++) {
        float want[COUNT], have[COUNT];
        run(&gates[i], false, false, want);
        const int    wide = run(&gates[i], true, false, have);
        const double off = off_by(want, have);
        if (wide || !(off < 0.003))
            fail_msg("%s: %d steps in float32, off by %g", gates[i].name, wide, off);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_that_lose_too_much_stay_in_float32),
        cmocka_unit_test(weights_that_change_nothing_stay_in_float16)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
