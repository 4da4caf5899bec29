/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers on a device that is not the host: what the input adds to the gates becomes a
 * product, where its weights are constant, and the numbers are those that the CPU's kernels make of
 * both halves. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/far.h"
#include "tests/engine/proto.h"

enum { FLOAT = 1, INT32 = 6, STEPS = 5, BATCH = 3, INPUTS = 7, HIDDEN = 6, OUTPUTS_MAX = 3 };

static const struct layer {
    const char *name, *op, *direction;
    int         gates, outputs;
    bool        biased, lengths, stated, computed, reset; /* computed: R is an input of the graph */
} layers[] = {
    {"an LSTM of both directions", "LSTM", "bidirectional", 4, 3, .biased = true},
    {"an LSTM with states and lengths", "LSTM", "forward", 4, 3, .lengths = true, .stated = true},
    {"a GRU that resets the product", "GRU", "reverse", 3, 2, .biased = true, .reset = true},
    {"a GRU that resets what is multiplied", "GRU", "bidirectional", 3, 2, .biased = true},
    {"an RNN", "RNN", "bidirectional", 1, 2, .stated = true},
    {"an LSTM of computed weights", "LSTM", "forward", 4, 3, .biased = true, .computed = true},
};

static float number(int i)
{
    return 0.4f * sinf(1.7f * (float)i + 0.3f);
}

static void add_constant(struct proto *graph, const char *name, const char *dims, int count)
{
    float *v = calloc((size_t)count, sizeof *v);
    for (int i = 0; i < count; i++)
        v[i] = number(i + (int)strlen(name) * 31);
    proto_initializer(graph, name, FLOAT, dims, v, (size_t)count * sizeof *v);
    free(v);
}

static void make_model(const struct layer *l, struct proto *model)
{
    struct proto  graph = {0}, attrs = {0};
    const int     d = strcmp(l->direction, "bidirectional") == 0 ? 2 : 1, rows = l->gates * HIDDEN;
    const int32_t lengths[BATCH] = {STEPS, 0, 3};
    char          inputs[64], w[32], r[32], b[32], h[32], y[32];
    snprintf(w, sizeof w, "%d %d %d", d, rows, INPUTS);
    snprintf(r, sizeof r, "%d %d %d", d, rows, HIDDEN);
    snprintf(b, sizeof b, "%d %d", d, 2 * rows);
    snprintf(h, sizeof h, "%d %d %d", d, BATCH, HIDDEN);
    snprintf(y, sizeof y, "%d %d %d %d", STEPS, d, BATCH, HIDDEN);
    snprintf(inputs, sizeof inputs, "x w r %s %s %s", l->biased ? "b" : "-",
             l->lengths ? "lengths" : "-", l->stated ? "h0" : "-");
    proto_attr_int(&attrs, "hidden_size", HIDDEN);
    proto_attr_string(&attrs, "direction", l->direction);
    if (l->reset)
        proto_attr_int(&attrs, "linear_before_reset", 1);
    proto_node(&graph, l->op, inputs, l->outputs == 3 ? "y yh yc" : "y yh", &attrs);
    add_constant(&graph, "w", w, d * rows * INPUTS);
    if (!l->computed)
        add_constant(&graph, "r", r, d * rows * HIDDEN);
    add_constant(&graph, "b", b, d * 2 * rows);
    add_constant(&graph, "h0", h, d * BATCH * HIDDEN);
    proto_initializer(&graph, "lengths", INT32, "3", lengths, sizeof lengths);
    proto_input(&graph, "x", FLOAT, "5 3 7");
    if (l->computed)
        proto_input(&graph, "r", FLOAT, r);
    proto_output(&graph, "y", FLOAT, y);
    proto_output(&graph, "yh", FLOAT, h);
    if (l->outputs == 3)
        proto_output(&graph, "yc", FLOAT, h);
    proto_model(model, &graph, 17);
}

static void count_fused(void *user, const char *line)
{
    *(int *)user += strstr(line, "FusedRecurrent") != NULL;
}

/* Runs it once; its outputs in out, which the caller frees. */
static int run(sac_device *dev, const struct layer *l, const struct proto *model, float **out,
               int64_t *count)
{
    struct sac_model_params params = sac_model_params_default();
    struct sac_tensor_desc  desc[2] = {
         {.dtype = SAC_F32, .rank = 3, .shape = {STEPS, BATCH, INPUTS}},
         {.dtype = SAC_F32, .rank = 3, .shape = {1, 4 * HIDDEN, HIDDEN}}};
    sac_tensor *in[2] = {NULL}, *y[OUTPUTS_MAX] = {NULL};
    sac_model  *m = NULL;
    int         fused = 0;
    float       numbers[4 * HIDDEN * HIDDEN];
    params.precision = SAC_PRECISION_FP32;
    for (int i = 0; i < 4 * HIDDEN * HIDDEN; i++)
        numbers[i] = number(i);
    assert_sac_ok(sac_model_load_memory(dev, model->bytes, model->size, l->name, &params, &m));
    for (int i = 0; i < 1 + l->computed; i++) {
        assert_sac_ok(sac_tensor_create(dev, &desc[i], "test", &in[i]));
        assert_sac_ok(sac_tensor_upload(in[i], numbers));
    }
    assert_sac_ok(sac_model_run(m, in, y));
    sac_model_dump_steps(m, count_fused, &fused);
    for (int i = 0; i < l->outputs; i++) {
        count[i] = sac_tensor_desc_elements(sac_tensor_describe(y[i]));
        out[i] = calloc((size_t)count[i], sizeof *out[i]);
        assert_sac_ok(sac_tensor_download(y[i], out[i]));
        sac_tensor_unref(&y[i]);
    }
    for (int i = 0; i < 2; i++)
        sac_tensor_unref(&in[i]);
    sac_model_unref(&m);
    return fused;
}

static void numbers_are_those_of_the_cpu(void **state)
{
    sac_device *far = NULL;
    (void)state;
    assert_sac_ok(far_open(test_context(), NULL, &far));
    for (size_t i = 0; i < SAC_COUNT(layers); i++) {
        const struct layer *l = &layers[i];
        struct proto        model = {0};
        float              *want[OUTPUTS_MAX], *have[OUTPUTS_MAX];
        int64_t             count[OUTPUTS_MAX], again[OUTPUTS_MAX];
        make_model(l, &model);
        assert_int_equal(run(device(), l, &model, want, count), 0);
        if (run(far, l, &model, have, again) != !l->computed)
            fail_msg("%s: %s", l->name, l->computed ? "fused" : "not fused");
        for (int o = 0; o < l->outputs; o++) {
            assert_int_equal(count[o], again[o]);
            for (int64_t k = 0; k < count[o]; k++)
                if (!(fabsf(want[o][k] - have[o][k]) <= 2e-6f))
                    fail_msg("%s: output %d, number %lld is %g, not %g", l->name, o, (long long)k,
                             (double)have[o][k], (double)want[o][k]);
            free(want[o]);
            free(have[o]);
        }
        proto_free(&model);
    }
    sac_device_unref(&far);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_are_those_of_the_cpu)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
