/* SPDX-License-Identifier: Apache-2.0 */
/* Random networks, as planned (fused, in place, views, parts of one another, fast kernels) against
 * node by node with the reference kernels; also with each optimisation left out. What the planner
 * lets two values share wrongly shows here. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/model/model.h"

#include "tests/engine/proto.h"
#include "tests/engine/device.h"
#include "tests/engine/far.h"
#include "base/base.h"
#include "tests/test.h"

enum {
    NETWORKS = 300,
    NETWORKS_WITHOUT = 60,
    NODES_MAX = 30,
    C = 8,
    D = 3,
    H = 6,
    W = 5,
    OUTPUTS = 3
};

struct maker {
    struct proto graph;
    uint32_t     seed;
    int          values; /* v0 .. v<values-1>, all [1,C,H,W], or [1,C,D,H,W]; v0 is the input */
    int          extras; /* names of what is in between */
    bool         bytes;  /* quantised, and nothing else that rounds */
    bool         deep;   /* of three spatial dims */
};

static uint32_t pick(struct maker *m, uint32_t n)
{
    m->seed = m->seed * 1664525u + 1013904223u;
    return (m->seed >> 10) % n;
}

/* A value made before, the latest ones more often: networks are deep. */
static int any_value(struct maker *m)
{
    int back = (int)pick(m, pick(m, 2) ? 3 : 20);
    return m->values - 1 - (back < m->values ? back : 0);
}

static void add(struct maker *m, const char *op, const char *inputs, const char *output,
                struct proto *attrs)
{
    proto_node(&m->graph, op, inputs, output, attrs);
}

static void add_unary(struct maker *m)
{
    static const char *const ops[] = {"Relu",      "Neg",      "Sigmoid",  "Tanh",     "Abs",
                                      "HardSwish", "Softplus", "Identity", "LeakyRelu"};
    static const char *const exact[] = {"Relu", "Neg", "Abs", "Identity"};
    char                     in[16], out[16];
    snprintf(in, sizeof in, "v%d", any_value(m));
    snprintf(out, sizeof out, "v%d", m->values++);
    add(m, m->bytes ? exact[pick(m, SAC_COUNT(exact))] : ops[pick(m, SAC_COUNT(ops))], in, out,
        NULL);
}

static void add_binary(struct maker *m)
{
    static const char *const ops[] = {"Add", "Add", "Sub", "Mul", "Max"};
    char                     in[32], out[16];
    snprintf(in, sizeof in, "v%d v%d", any_value(m), any_value(m));
    snprintf(out, sizeof out, "v%d", m->values++);
    add(m, ops[m->bytes ? pick(m, 2) : pick(m, 5)], in, out, NULL);
}

/* The larger or the smaller of two, by a comparison: where rounding decides it, they are nearly the
 * same. */
static void add_choice(struct maker *m)
{
    static const char *const ops[] = {"Greater", "GreaterOrEqual", "Less", "LessOrEqual"};
    const int                a = any_value(m), b = any_value(m);
    char                     in[48], answer[16], other[16], out[16];
    snprintf(in, sizeof in, "v%d v%d", a, b);
    snprintf(answer, sizeof answer, "t%d", m->extras++);
    snprintf(other, sizeof other, "t%d", m->extras++);
    snprintf(out, sizeof out, "v%d", m->values++);
    add(m, ops[pick(m, SAC_COUNT(ops))], in, answer, NULL);
    add(m, "Not", answer, other, NULL);
    snprintf(in, sizeof in, "%s v%d v%d", pick(m, 2) ? answer : other, a, b);
    add(m, "Where", in, out, NULL);
}

static void add_weights(struct maker *m, const char *name, const char *dims, size_t count)
{
    float *w = malloc(count * sizeof *w);
    for (size_t i = 0; i < count; i++)
        w[i] = ((float)pick(m, 2000) - 1000) / 4000;
    proto_initializer(&m->graph, name, 1, dims, w, count * sizeof *w);
    free(w);
}

/* ---- quantised: all scales are powers of two, so that float32 has every sum exactly ---- */

/* A value to 8 bits and back, by one of a few scalings. */
static void add_rounding(struct maker *m, const char *from, const char *to)
{
    char      words[48], bytes[16];
    const int kind = (int)pick(m, 3);
    snprintf(bytes, sizeof bytes, "t%d", m->extras++);
    snprintf(words, sizeof words, "%s scale%d zero%d", from, kind, kind);
    add(m, "QuantizeLinear", words, bytes, NULL);
    snprintf(words, sizeof words, "%s scale%d zero%d", bytes, kind, kind);
    add(m, "DequantizeLinear", words, to, NULL);
}

static void add_rounded(struct maker *m)
{
    char in[16], out[16];
    snprintf(in, sizeof in, "v%d", any_value(m));
    snprintf(out, sizeof out, "v%d", m->values++);
    add_rounding(m, in, out);
}

/* int8 with a scale for each channel, or uint8 with one scale and a zero point. */
static void add_byte_weights(struct maker *m, const char *name, const char *dims, size_t count)
{
    struct proto axis = {0};
    uint8_t     *w = malloc(count);
    float        scale[C];
    char         words[48], bytes[16], scales[16];
    const bool   plain = pick(m, 2);
    for (size_t i = 0; i < count; i++)
        w[i] = (uint8_t)pick(m, 256);
    for (int c = 0; c < C; c++)
        scale[c] = pick(m, 2) ? 0x1p-10f : 0x1p-11f;
    snprintf(bytes, sizeof bytes, "b%d", m->extras++);
    snprintf(scales, sizeof scales, "s%d", m->extras++);
    proto_initializer(&m->graph, bytes, plain ? 2 : 3, dims, w, count);
    proto_initializer(&m->graph, scales, 1, "8", scale, sizeof scale);
    proto_attr_int(&axis, "axis", 0);
    snprintf(words, sizeof words, plain ? "%s scale2 zero1" : "%s %s", bytes, scales);
    add(m, "DequantizeLinear", words, name, &axis);
    free(w);
}

static const char *same_pads(const struct maker *m, int kernel)
{
    static const char *const pads[2][2] = {{"0 0 0 0", "0 0 0 0 0 0"}, {"1 1 1 1", "1 1 1 1 1 1"}};
    return pads[kernel == 3][m->deep];
}

/* from channels to C channels, 1x1, 3x3, of the same depth, or depthwise; its result is the next
 * value. */
static void add_conv(struct maker *m, const char *input, int from)
{
    struct proto attrs = {0};
    char         in[64], out[16], dims[32], name[16];
    int          kernel = pick(m, 2) ? 3 : 1, group = from == C && pick(m, 3) == 0 ? C : 1;
    snprintf(name, sizeof name, "w%d", m->extras++);
    const int depth = m->deep ? kernel : 1;
    snprintf(dims, sizeof dims, m->deep ? "%d %d %d %d %d" : "%d %d %d %d", C, from / group, kernel,
             kernel, kernel);
    (m->bytes ? add_byte_weights
              : add_weights)(m, name, dims, (size_t)(C * (from / group) * kernel * kernel * depth));
    if (m->bytes && pick(m, 3)) {
        snprintf(out, sizeof out, "t%d", m->extras++);
        add_rounding(m, input, out);
        snprintf(in, sizeof in, "%s %s", out, name);
    } else
        snprintf(in, sizeof in, "%s %s", input, name);
    proto_attr_ints(&attrs, "pads", same_pads(m, kernel));
    proto_attr_int(&attrs, "group", group);
    snprintf(out, sizeof out, "v%d", m->values++);
    add(m, "Conv", in, out, &attrs);
}

static void add_plain_conv(struct maker *m)
{
    char in[16];
    snprintf(in, sizeof in, "v%d", any_value(m));
    add_conv(m, in, C);
}

/* Two values joined, and a convolution back to C channels. */
static void add_concat(struct maker *m)
{
    struct proto attrs = {0};
    char         in[32], joined[16];
    snprintf(in, sizeof in, "v%d v%d", any_value(m), any_value(m));
    snprintf(joined, sizeof joined, "t%d", m->extras++);
    proto_attr_int(&attrs, "axis", 1);
    add(m, "Concat", in, joined, &attrs);
    add_conv(m, joined, 2 * C);
}

/* Cut in two along the channels, and joined the other way round. */
static void add_split(struct maker *m)
{
    struct proto split = {0}, concat = {0};
    char         in[16], parts[32], swapped[32], out[16];
    int          a = m->extras++, b = m->extras++;
    snprintf(in, sizeof in, "v%d", any_value(m));
    snprintf(parts, sizeof parts, "t%d t%d", a, b);
    snprintf(swapped, sizeof swapped, "t%d t%d", b, a);
    snprintf(out, sizeof out, "v%d", m->values++);
    proto_attr_int(&split, "axis", 1);
    add(m, "Split", in, parts, &split);
    proto_attr_int(&concat, "axis", 1);
    add(m, "Concat", swapped, out, &concat);
}

/* Cut in two by Slices, as cross-stage blocks are: something of one half beside both of them, and a
 * convolution back to C channels. */
static void add_halves(struct maker *m)
{
    struct proto concat = {0};
    char         in[64], a[16], b[16], c[16], joined[16];
    const int    v = any_value(m);
    snprintf(a, sizeof a, "t%d", m->extras++);
    snprintf(b, sizeof b, "t%d", m->extras++);
    snprintf(c, sizeof c, "t%d", m->extras++);
    snprintf(joined, sizeof joined, "t%d", m->extras++);
    snprintf(in, sizeof in, "v%d none middle one", v);
    add(m, "Slice", in, a, NULL);
    snprintf(in, sizeof in, "v%d middle all one", v);
    add(m, "Slice", in, b, NULL);
    add(m, pick(m, 2) ? "Relu" : "Neg", pick(m, 2) ? a : b, c, NULL);
    snprintf(in, sizeof in, "%s %s %s", a, b, c);
    proto_attr_int(&concat, "axis", 1);
    add(m, "Concat", in, joined, &concat);
    add_conv(m, joined, C + C / 2);
}

/* Away and back again: Transpose or Reshape, with something in between. */
static void add_detour(struct maker *m, const char *op)
{
    struct proto there = {0}, back = {0};
    char         in[32], a[16], b[16], out[16];
    bool         transpose = strcmp(op, "Transpose") == 0;
    snprintf(in, sizeof in, transpose ? "v%d" : "v%d flat", any_value(m));
    snprintf(a, sizeof a, "t%d", m->extras++);
    snprintf(b, sizeof b, "t%d", m->extras++);
    if (transpose)
        proto_attr_ints(&there, "perm", m->deep ? "0 2 3 4 1" : "0 2 3 1");
    add(m, op, in, a, &there);
    add(m, pick(m, 2) ? "Relu" : "Neg", a, b, NULL);
    snprintf(in, sizeof in, transpose ? "%s" : "%s full", b);
    snprintf(out, sizeof out, "v%d", m->values++);
    if (transpose)
        proto_attr_ints(&back, "perm", m->deep ? "0 4 1 2 3" : "0 3 1 2");
    add(m, op, in, out, &back);
}

static void add_pool(struct maker *m)
{
    struct proto attrs = {0};
    char         in[16], out[16];
    snprintf(in, sizeof in, "v%d", any_value(m));
    snprintf(out, sizeof out, "v%d", m->values++);
    proto_attr_ints(&attrs, "kernel_shape", m->deep ? "3 3 3" : "3 3");
    proto_attr_ints(&attrs, "pads", same_pads(m, 3));
    add(m, m->bytes || pick(m, 2) ? "MaxPool" : "AveragePool", in, out, &attrs);
}

static void add_resize(struct maker *m, const char *in, const char *scales, const char *out)
{
    struct proto attrs = {0};
    char         words[32];
    if (!m->bytes && pick(m, 2)) {
        struct proto a = {0};
        proto_string(&a, 1, "mode");
        proto_string(&a, 4, "linear");
        proto_int(&a, 20, 3);
        proto_message(&attrs, 5, &a);
    }
    snprintf(words, sizeof words, "%s - %s", in, scales);
    add(m, "Resize", words, out, &attrs);
}

/* Twice as large, and back: what nobody else reads of the second may be written plain. */
static void add_resizes(struct maker *m)
{
    char in[16], large[16], out[16];
    snprintf(in, sizeof in, "v%d", any_value(m));
    snprintf(large, sizeof large, "t%d", m->extras++);
    snprintf(out, sizeof out, "v%d", m->values++);
    add_resize(m, in, "twice", large);
    add_resize(m, large, "half", out);
}

/* A value times what its mean says of each channel: a gate. */
static void add_gate(struct maker *m)
{
    struct proto attrs = {0};
    char         in[32], mean[16], gate[16], out[16];
    int          v = any_value(m);
    snprintf(in, sizeof in, "v%d", v);
    snprintf(mean, sizeof mean, "t%d", m->extras++);
    snprintf(gate, sizeof gate, "t%d", m->extras++);
    proto_attr_ints(&attrs, "axes", m->deep ? "2 3 4" : "2 3");
    add(m, "ReduceMean", in, mean, &attrs);
    add(m, "Sigmoid", mean, gate, NULL);
    snprintf(in, sizeof in, "v%d %s", v, gate);
    snprintf(out, sizeof out, "v%d", m->values++);
    add(m, "Mul", in, out, NULL);
}

static void add_something(struct maker *m)
{
    if (m->bytes && pick(m, 4) == 0) {
        add_rounded(m);
        return;
    }
    switch (m->bytes && pick(m, 3) == 0 ? 12 : pick(m, 13)) {
    case 0:
    case 1: add_unary(m); break;
    case 2:
    case 3: add_binary(m); break;
    case 4: add_concat(m); break;
    case 5: add_split(m); break;
    case 6: add_detour(m, pick(m, 2) ? "Transpose" : "Reshape"); break;
    case 7: add_pool(m); break;
    case 8: m->bytes ? add_rounded(m) : add_gate(m); break;
    case 9: add_resizes(m); break;
    case 10: add_halves(m); break;
    case 11: add_choice(m); break;
    default: add_plain_conv(m);
    }
}

static void add_scalings(struct maker *m)
{
    static const float   scales[3] = {0x1p-5f, 0x1p-5f, 0x1p-9f};
    static const uint8_t zeros[3] = {0, 128, 255}; /* the second's type is uint8 */
    char                 name[16];
    for (int i = 0; m->bytes && i < 3; i++) {
        snprintf(name, sizeof name, "scale%d", i);
        proto_initializer(&m->graph, name, 1, "", &scales[i], sizeof scales[i]);
        snprintf(name, sizeof name, "zero%d", i);
        proto_initializer(&m->graph, name, i == 1 ? 2 : 3, "", &zeros[i], sizeof zeros[i]);
    }
}

/* The last value and two others, perhaps the input itself. */
static void make_network(struct maker *m, struct proto *model)
{
    static const int64_t none = 0, middle = C / 2, all = INT64_MAX, one = 1;
    static const int64_t full[2][5] = {{1, C, H, W}, {1, C, D, H, W}};
    static const float   twice[2][5] = {{1, 1, 2, 2}, {1, 1, 1, 2, 2}};
    static const float   half[2][5] = {{1, 1, 0.5f, 0.5f}, {1, 1, 1, 0.5f, 0.5f}};
    const int64_t        flat[2] = {1, (m->deep ? D : 1) * C * H * W};
    const size_t         rank = m->deep ? 5 : 4;
    const char          *ranks = m->deep ? "5" : "4";
    char                 dims[32], name[16];
    if (m->deep)
        snprintf(dims, sizeof dims, "1 %d %d %d %d", C, D, H, W);
    else
        snprintf(dims, sizeof dims, "1 %d %d %d", C, H, W);
    proto_input(&m->graph, "v0", 1, dims);
    proto_initializer(&m->graph, "flat", 7, "2", flat, sizeof flat);
    proto_initializer(&m->graph, "full", 7, ranks, full[m->deep], rank * sizeof full[0][0]);
    proto_initializer(&m->graph, "twice", 1, ranks, twice[m->deep], rank * sizeof twice[0][0]);
    proto_initializer(&m->graph, "half", 1, ranks, half[m->deep], rank * sizeof half[0][0]);
    proto_initializer(&m->graph, "none", 7, "1", &none, sizeof none);
    proto_initializer(&m->graph, "middle", 7, "1", &middle, sizeof middle);
    proto_initializer(&m->graph, "all", 7, "1", &all, sizeof all);
    proto_initializer(&m->graph, "one", 7, "1", &one, sizeof one);
    add_scalings(m);
    m->values = 1;
    for (int n = 2 + (int)pick(m, NODES_MAX); n > 0; n--)
        add_something(m);
    for (int i = 0; i < OUTPUTS; i++) {
        snprintf(name, sizeof name, "v%d", i ? (int)pick(m, (uint32_t)m->values) : m->values - 1);
        proto_output(&m->graph, name, 1, dims);
    }
    proto_model(model, &m->graph, 13);
}

/* out: on the host, wherever it ran. */
static void fetch(sac_tensor **out)
{
    for (int i = 0; i < OUTPUTS; i++) {
        sac_tensor *there = out[i];
        assert_sac_ok(sac_tensor_create(device(), sac_tensor_describe(there), "test", &out[i]));
        assert_sac_ok(sac_tensor_download(there, sac_tensor_data(out[i])));
        sac_tensor_unref(&there);
    }
}

static void run(const struct proto *model, sac_device *dev, bool deep, bool plain, int64_t batch,
                sac_tensor **out)
{
    struct sac_model_params params = sac_model_params_default();
    struct sac_tensor_desc  desc = {.dtype = SAC_F32, .rank = 4, .shape = {batch, C, H, W}};
    struct sac_tensor_desc  volume = {.dtype = SAC_F32, .rank = 5, .shape = {batch, C, D, H, W}};
    sac_model              *m = NULL;
    sac_tensor             *in = NULL;
    params.optimise = !plain;
    params.reference = plain;
    params.precision = SAC_PRECISION_FP32;
    assert_sac_ok(sac_model_load_memory(dev, model->bytes, model->size, "random", &params, &m));
    desc = deep ? volume : desc;
    assert_sac_ok(sac_tensor_create(dev, &desc, "test", &in));
    float x[2 * C * D * H * W];
    for (int64_t i = 0; i < sac_tensor_desc_elements(&desc); i++)
        x[i] = rintf(sinf((float)i * 0.7f) * 128) / 64;
    assert_sac_ok(sac_tensor_upload(in, x));
    assert_sac_ok(sac_model_run(m, &in, out));
    fetch(out);
    sac_tensor_unref(&in);
    sac_model_unref(&m);
}

/* have is released. */
static void compare(sac_tensor **have, sac_tensor **want, uint32_t network, const char *how)
{
    for (int i = 0; i < OUTPUTS; i++) {
        const float *a = sac_tensor_data(have[i]), *b = sac_tensor_data(want[i]);
        int64_t      n = sac_tensor_desc_elements(sac_tensor_describe(want[i]));
        float        scale = 0.1f; /* of what the networks add up */
        assert_int_equal(sac_tensor_desc_elements(sac_tensor_describe(have[i])), n);
        for (int64_t k = 0; k < n; k++)
            scale = fmaxf(scale, fabsf(b[k]));
        for (int64_t k = 0; k < n; k++)
            if (!(fabsf(a[k] - b[k]) <= 1e-4f * scale))
                fail_msg("network %u%s, output %d, element %lld: %g, wanted %g", network, how, i,
                         (long long)k, (double)a[k], (double)b[k]);
        sac_tensor_unref(&have[i]);
    }
}

static void release(sac_tensor **t)
{
    for (int i = 0; i < OUTPUTS; i++)
        sac_tensor_unref(&t[i]);
}

static void check_planned(uint32_t network, bool bytes, bool deep)
{
    struct maker m = {.seed = network * 7919 + 1, .bytes = bytes, .deep = deep};
    struct proto model = {0};
    sac_tensor  *have[OUTPUTS] = {NULL}, *want[OUTPUTS] = {NULL};
    int64_t      batch = network % 4 == 0 ? 2 : 1; /* freed where that works */
    make_network(&m, &model);
    run(&model, device(), deep, true, batch, want);
    run(&model, device(), deep, false, batch, have);
    compare(have, want, network, bytes ? " of bytes" : deep ? " of three dims" : "");
    release(want);
    proto_free(&model);
}

static void planned_equals_node_by_node(void **state)
{
    (void)state;
    for (uint32_t network = 0; network < NETWORKS; network++) {
        check_planned(network, false, false);
        check_planned(network, true, false);
        if (network % 3 == 0)
            check_planned(network, false, true);
    }
}

static void each_optimisation_can_be_left_out(void **state)
{
    sac_device        *far = NULL;
    struct sac_without what;
    const char        *name;
    (void)state;
    assert_sac_ok(far_open(test_context(), NULL, &far));
    for (uint32_t network = 0; network < NETWORKS_WITHOUT; network++) {
        struct maker m = {
            .seed = network * 104729 + 1, .bytes = network % 3 == 2, .deep = network % 6 == 1};
        struct proto model = {0};
        sac_tensor  *have[OUTPUTS] = {NULL}, *want[OUTPUTS] = {NULL};
        int64_t      batch = network % 4 == 0 ? 2 : 1;
        make_network(&m, &model);
        run(&model, device(), m.deep, true, batch, want);
        for (int i = 0; (name = sac_without_name(i, &what)) && (what.passes || what.plan); i++) {
            char how[64];
            snprintf(how, sizeof how, " without %s", name);
            setenv("SACCADE_WITHOUT", name, 1);
            run(&model, device(), m.deep, false, batch, have);
            compare(have, want, network, how);
            run(&model, far, m.deep, false, batch, have);
            compare(have, want, network, how);
        }
        unsetenv("SACCADE_WITHOUT");
        release(want);
        proto_free(&model);
    }
    sac_device_unref(&far);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planned_equals_node_by_node),
        cmocka_unit_test(each_optimisation_can_be_left_out),
    };
    return cmocka_run_group_tests_name("engine/random", tests, NULL, close_device);
}
