/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/engine/spelling.h"

#include <math.h>

#include "engine/model/model.h"
#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/test.h"

float spelling_number(int i)
{
    return sinf((float)i * 1.7f) * 1.5f;
}

static void add_shapes(struct proto *graph, const struct spelling *s)
{
    for (int i = 0; i < SHAPES_MAX && s->shape[i].name; i++) {
        int64_t data[8];
        int     count = 0;
        char   *end;
        char    dims[16];
        for (const char *at = s->shape[i].numbers; *at; at = end)
            data[count++] = strtoll(at, &end, 10);
        snprintf(dims, sizeof dims, "%d", count);
        proto_initializer(graph, s->shape[i].name, 7, dims, data, (size_t)count * sizeof *data);
    }
}

static void make_model(const struct spelling *s, void (*constants)(struct proto *graph),
                       struct proto          *kept)
{
    struct proto graph = {0};
    if (constants)
        constants(&graph);
    add_shapes(&graph, s);
    proto_input(&graph, "x", 1, s->x);
    for (int i = 0; i < NODES_MAX && s->node[i].op; i++) {
        const struct node *n = &s->node[i];
        struct proto       attrs = {0};
        if (n->attr && strchr(n->numbers, ' '))
            proto_attr_ints(&attrs, n->attr, n->numbers);
        else if (n->attr)
            proto_attr_int(&attrs, n->attr, strtoll(n->numbers, NULL, 10));
        proto_node(&graph, n->op, n->inputs, n->outputs, &attrs);
    }
    proto_output(&graph, "y", 1, s->y);
    if (s->also)
        proto_output(&graph, s->also, 1, s->also_dims);
    proto_model(kept, &graph, 17);
}

struct count {
    const char *op;
    int         steps, found;
};

static void count_step(void *user, const char *line)
{
    struct count *c = user;
    c->steps++;
    const char *at = strstr(line, c->op);
    c->found += at && (at[strlen(c->op)] == ' ' || at[strlen(c->op) - 1] == '[');
}

static sac_tensor *input_of(const struct spelling *s, int64_t batch)
{
    struct sac_tensor_desc desc = {.dtype = SAC_F32};
    sac_tensor            *t = NULL;
    for (const char *at = s->x; at; at = strchr(at, ' '), at = at ? at + 1 : NULL)
        desc.shape[desc.rank++] = *at == '?' ? batch : strtoll(at, NULL, 10);
    assert_sac_ok(sac_tensor_create(device(), &desc, "x", &t));
    float *data = sac_tensor_data(t);
    for (int64_t i = 0; i < sac_tensor_desc_elements(&desc); i++)
        data[i] = spelling_number((int)i);
    return t;
}

/* y of the model, loaded with its passes or without. */
static sac_tensor *result_of(const struct proto *kept, const struct spelling *s, int64_t batch,
                             bool optimise, struct count *count)
{
    struct sac_model_params params = sac_model_params_default();
    sac_tensor             *in = input_of(s, batch), *out[2] = {NULL};
    sac_model              *m = NULL;
    params.optimise = optimise;
    assert_sac_ok(
        sac_model_load_memory(device(), kept->bytes, kept->size, "test.onnx", &params, &m));
    assert_sac_ok(sac_model_run(m, &in, out));
    sac_model_dump_steps(m, count_step, count);
    sac_tensor_unref(&in);
    sac_tensor_unref(&out[1]);
    sac_model_unref(&m);
    return out[0];
}

/* y with each optimisation left out is what it is without any. */
static void check_without(const struct spelling *s, const struct proto *kept, const sac_tensor *y)
{
    const int64_t      count = sac_tensor_desc_elements(sac_tensor_describe(y));
    const float       *want = sac_tensor_data((sac_tensor *)y);
    struct sac_without what;
    const char        *name;
    for (int i = 0; (name = sac_without_name(i, &what)) && (what.passes || what.plan); i++) {
        struct count ignored = {.op = "none"};
        setenv("SACCADE_WITHOUT", name, 1);
        sac_tensor  *got = result_of(kept, s, 2, true, &ignored);
        const float *have = sac_tensor_data(got);
        assert_int_equal(sac_tensor_desc_elements(sac_tensor_describe(got)), count);
        for (int64_t k = 0; k < count; k++)
            if (!(fabsf(have[k] - want[k]) <= 1e-5f))
                fail_msg("%s without %s: number %lld is %g, unfused %g", s->name, name,
                         (long long)k, (double)have[k], (double)want[k]);
        sac_tensor_unref(&got);
    }
    unsetenv("SACCADE_WITHOUT");
}

static void check_batch(const struct spelling *s, const struct proto *kept, const char *op,
                        int64_t batch)
{
    struct count fused = {.op = op}, plain = {.op = op};
    sac_tensor  *y = result_of(kept, s, batch, true, &fused),
               *want = result_of(kept, s, batch, false, &plain);
    const float  *a = sac_tensor_data(y), *b = sac_tensor_data(want);
    const int64_t count = sac_tensor_desc_elements(sac_tensor_describe(want));
    /* of nothing, other layouts are the same */
    if (batch > 0 && (fused.found != s->found || (s->steps && fused.steps != s->steps)))
        fail_msg("%s, batch %lld: %d of %s in %d steps", s->name, (long long)batch, fused.found, op,
                 fused.steps);
    assert_int_equal(sac_tensor_desc_elements(sac_tensor_describe(y)), count);
    for (int64_t i = 0; i < count; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-5f))
            fail_msg("%s: number %lld is %g, unfused %g", s->name, (long long)i, a[i], b[i]);
    if (batch == 2)
        check_without(s, kept, want);
    sac_tensor_unref(&y);
    sac_tensor_unref(&want);
}

void spelling_check(const struct spelling *s, const char *op,
                    void (*constants)(struct proto *graph))
{
    struct proto kept = {0};
    make_model(s, constants, &kept);
    for (int64_t batch = 0; batch <= 3; batch++)
        check_batch(s, &kept, op, batch);
    proto_free(&kept);
}

void spelling_refused(const struct spelling *s, void (*constants)(struct proto *graph))
{
    struct sac_model_params params = sac_model_params_default();
    struct proto            kept = {0};
    sac_tensor             *in = input_of(s, 2), *out[2] = {NULL};
    sac_model              *m = NULL;
    make_model(s, constants, &kept);
    sac_result res =
        sac_model_load_memory(device(), kept.bytes, kept.size, "test.onnx", &params, &m);
    if (res == SAC_OK)
        res = sac_model_run(m, &in, out);
    if (res != SAC_ERR_FORMAT && res != SAC_ERR_ARG)
        fail_msg("%s: %s", s->name, sac_result_name(res));
    sac_tensor_unref(&in);
    sac_model_unref(&m);
    proto_free(&kept);
}
