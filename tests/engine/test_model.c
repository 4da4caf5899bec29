/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device/cpu/cpu.h"
#include "engine/model/model.h"
#include "tests/engine/proto.h"
#include "tests/engine/device.h"
#include "tests/test.h"

static const char *why(void)
{
    static char buf[512];
    sac_context_last_error(test_context(), buf, sizeof buf);
    return buf;
}

/* Takes graph. The bytes stay in *kept until the model is gone. */
static sac_result load(struct proto *graph, const struct sac_model_params *params,
                       struct proto *kept, sac_model **out)
{
    proto_model(kept, graph, 17);
    return sac_model_load_memory(device(), kept->bytes, kept->size, "test.onnx", params, out);
}

static sac_tensor *tensor(enum sac_dtype dtype, int rank, const int64_t *dims, const void *data)
{
    struct sac_tensor_desc desc = {.dtype = dtype, .rank = rank};
    sac_tensor            *t = NULL;
    for (int i = 0; i < rank; i++) /* a scalar has no dims to copy from */
        desc.shape[i] = dims[i];
    assert_sac_ok(sac_tensor_create(device(), &desc, "test", &t));
    memcpy(sac_tensor_data(t), data, (size_t)sac_tensor_desc_bytes(&desc));
    return t;
}

#define F32(dims_, ...)                                                                 \
    tensor(SAC_F32, (int)(sizeof(int64_t[]) dims_ / sizeof(int64_t)), (int64_t[])dims_, \
           (float[])__VA_ARGS__)
#define DIMS(...)   \
    {               \
        __VA_ARGS__ \
    }

static void expect(sac_tensor *t, size_t count, const float *want)
{
    const float *have = sac_tensor_data(t);
    assert_int_equal(sac_tensor_desc_elements(sac_tensor_describe(t)), count);
    for (size_t i = 0; i < count; i++)
        if (fabsf(have[i] - want[i]) > 1e-5f)
            fail_msg("element %zu is %g, wanted %g", i, have[i], want[i]);
}

/* ---- running ---- */

/* Views, in-place steps, an output that another step reads, one that is an input, one that is a
 * constant, one that is there twice: each caller gets numbers of its own. */
static void outputs_are_independent(void **state)
{
    (void)state;
    struct proto graph = {0}, kept = {0};
    sac_model   *m = NULL;
    int64_t      shape[1] = {4};
    float        two = 2;
    proto_initializer(&graph, "four", 7, "1", shape, sizeof shape);
    proto_initializer(&graph, "two", 1, "1", &two, sizeof two);
    proto_input(&graph, "x", 1, "2 2");
    proto_node(&graph, "Mul", "x two", "a", NULL);
    proto_node(&graph, "Relu", "a", "b", NULL);         /* must not overwrite a: an output */
    proto_node(&graph, "Reshape", "b four", "c", NULL); /* a view of b: an output too */
    proto_node(&graph, "Neg", "c", "d", NULL);          /* must not overwrite c */
    proto_node(&graph, "Reshape", "x four", "e", NULL); /* a view of the input */
    static const char *const outputs[] = {"a", "b", "c", "d", "x", "two", "e", "d"};
    for (int i = 0; i < 8; i++)
        proto_output(&graph, outputs[i], 1, "4");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    sac_tensor *in = F32(DIMS(2, 2), {1, -2, 3, -4}), *out[8];
    for (int round = 0; round < 2; round++) {
        assert_sac_ok(sac_model_run(m, &in, out));
        expect(out[0], 4, (float[]){2, -4, 6, -8});
        expect(out[1], 4, (float[]){2, 0, 6, 0});
        expect(out[2], 4, (float[]){2, 0, 6, 0});
        expect(out[3], 4, (float[]){-2, 0, -6, 0});
        expect(out[4], 4, (float[]){1, -2, 3, -4});
        expect(out[5], 1, (float[]){2});
        expect(out[6], 4, (float[]){1, -2, 3, -4});
        expect(out[7], 4, (float[]){-2, 0, -6, 0});
        for (int i = 0; i < 8; i++) {
            memset(sac_tensor_data(out[i]), 0x7f, 4); /* reaches nobody else, nor the next run */
            sac_tensor_unref(&out[i]);
        }
    }
    expect(in, 4, (float[]){1, -2, 3, -4});
    sac_tensor_unref(&in);
    sac_model_unref(&m);
    proto_free(&kept);
}

/* The other input of an in-place step may be a view of the same memory, read in another order. */
static void in_place_does_not_eat_its_other_input(void **state)
{
    (void)state;
    struct proto graph = {0}, kept = {0};
    sac_model   *m = NULL;
    int64_t      column[2] = {3, 1}, row[2] = {1, 3};
    float        one = 1;
    proto_initializer(&graph, "one", 1, "1", &one, sizeof one);
    proto_initializer(&graph, "column", 7, "2", column, sizeof column);
    proto_initializer(&graph, "row", 7, "2", row, sizeof row);
    proto_input(&graph, "x", 1, "1 3");
    proto_node(&graph, "Add", "x one", "a", NULL);
    proto_node(&graph, "Reshape", "a column", "b", NULL);
    proto_node(&graph, "Mul", "a b", "c", NULL); /* [1,3] times [3,1]: all pairs */
    proto_node(&graph, "Reshape", "b row", "d", NULL);
    proto_node(&graph, "Mul", "d a", "e", NULL); /* element by element: may be in place */
    proto_output(&graph, "c", 1, "3 3");
    proto_output(&graph, "e", 1, "1 3");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    sac_tensor *in = F32(DIMS(1, 3), {0, 1, 2}), *out[2];
    assert_sac_ok(sac_model_run(m, &in, out));
    expect(out[0], 9, (float[]){1, 2, 3, 2, 4, 6, 3, 6, 9});
    expect(out[1], 3, (float[]){1, 4, 9});
    sac_tensor_unref(&in);
    sac_tensor_unref(&out[0]);
    sac_tensor_unref(&out[1]);
    sac_model_unref(&m);
    proto_free(&kept);
}

/* More parts than a kernel takes are joined in steps. */
static void joins_any_number_of_parts(void **state)
{
    (void)state;
    enum { LEAST = 62, MOST = 260 };
    for (int parts = LEAST; parts <= MOST; parts += parts < 68 ? 1 : 31) {
        struct proto graph = {0}, kept = {0}, attrs = {0};
        sac_model   *m = NULL;
        char         names[2 * MOST + 1] = "";
        float        want[4 * MOST];
        for (int i = 0; i < parts; i++) {
            strcat(names, i == 0 ? "x" : i % 5 ? " x" : " y");
            for (int row = 0; row < 2; row++)
                for (int k = 0; k < 2; k++)
                    want[(row * parts + i) * 2 + k] =
                        (float)(1 + row * 2 + k) * (i % 5 || i == 0 ? 1 : -1);
        }
        proto_input(&graph, "x", 1, "2 2");
        proto_node(&graph, "Neg", "x", "y", NULL);
        proto_attr_int(&attrs, "axis", 1);
        proto_node(&graph, "Concat", names, "z", &attrs);
        proto_output(&graph, "z", 1, "2 ?");
        assert_sac_ok(load(&graph, NULL, &kept, &m));
        struct sac_model_info info;
        sac_model_inspect(m, &info);
        assert_int_equal(info.operator_count, 2);
        for (int i = 0; i < 2; i++) /* as in the file, where one node joins all */
            assert_int_equal(info.operators[i].count, 1);
        sac_tensor *in = F32(DIMS(2, 2), {1, 2, 3, 4}), *out[1];
        assert_sac_ok(sac_model_run(m, &in, out));
        expect(out[0], 4 * (size_t)parts, want);
        sac_tensor_unref(&in);
        sac_tensor_unref(&out[0]);
        sac_model_unref(&m);
        proto_free(&kept);
    }
}

/* The classic export of x.view(x.size(0), -1): nothing of it is left to run. */
static void shape_arithmetic_disappears(void **state)
{
    (void)state;
    struct proto graph = {0}, kept = {0}, attrs = {0};
    sac_model   *m = NULL;
    int64_t      zero = 0, rest = -1;
    proto_initializer(&graph, "zero", 7, "1", &zero, sizeof zero);
    proto_initializer(&graph, "rest", 7, "1", &rest, sizeof rest);
    proto_input(&graph, "x", 1, "? 2 2");
    proto_node(&graph, "Shape", "x", "s", NULL);
    proto_node(&graph, "Gather", "s zero", "n", NULL);
    proto_attr_int(&attrs, "axis", 0);
    proto_node(&graph, "Concat", "n rest", "t", &attrs);
    proto_node(&graph, "Relu", "x", "r", NULL);
    proto_node(&graph, "Reshape", "r t", "y", NULL);
    proto_output(&graph, "y", 1, "? 4");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    struct sac_model_info info;
    sac_model_inspect(m, &info);
    assert_int_equal(info.node_count, 5);
    assert_int_equal(info.step_count, 1);
    assert_int_equal(info.activation_bytes, 0); /* Relu writes the output */
    assert_int_equal(sac_model_output(m, 0)->desc.shape[0], SAC_DIM_UNKNOWN);
    assert_int_equal(sac_model_output(m, 0)->desc.shape[1], 4);
    sac_tensor *in = F32(DIMS(3, 2, 2), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), *out;
    assert_sac_ok(sac_model_run(m, &in, &out));
    assert_int_equal(sac_tensor_describe(out)->rank, 2);
    assert_int_equal(sac_tensor_describe(out)->shape[0], 3);
    sac_tensor_unref(&in);
    sac_tensor_unref(&out);
    sac_model_unref(&m);
    proto_free(&kept);
}

/* As PyTorch 1 writes it before each average pooling. */
static void a_pad_by_nothing_disappears(void **state)
{
    (void)state;
    for (int64_t right = 0; right <= 1; right++) {
        struct proto          graph = {0}, kept = {0};
        sac_model            *m = NULL;
        int64_t               pads[4] = {0, 0, 0, right};
        struct sac_model_info info;
        proto_initializer(&graph, "pads", 7, "4", pads, sizeof pads);
        proto_input(&graph, "x", 1, "1 2");
        proto_node(&graph, "Pad", "x pads", "p", NULL);
        proto_node(&graph, "Relu", "p", "y", NULL);
        proto_output(&graph, "y", 1, right ? "1 3" : "1 2");
        assert_sac_ok(load(&graph, NULL, &kept, &m));
        sac_model_inspect(m, &info);
        assert_int_equal(info.step_count, 1 + right);
        sac_tensor *in = F32(DIMS(1, 2), {-1, 2}), *out = NULL;
        assert_sac_ok(sac_model_run(m, &in, &out));
        expect(out, 2 + (int)right, (float[]){0, 2, 0});
        sac_tensor_unref(&in);
        sac_tensor_unref(&out);
        sac_model_unref(&m);
        proto_free(&kept);
    }
}

/* NonZero: as many results as the data says, and nodes that read them. */
static void data_may_decide_shapes(void **state)
{
    (void)state;
    struct proto graph = {0}, kept = {0}, attrs = {0};
    sac_model   *m = NULL;
    proto_input(&graph, "x", 1, "5");
    proto_node(&graph, "Relu", "x", "r", NULL);
    proto_node(&graph, "NonZero", "r", "i", NULL);
    proto_attr_ints(&attrs, "perm", "1 0");
    proto_node(&graph, "Transpose", "i", "j", &attrs);
    proto_node(&graph, "Neg", "r", "k", NULL);
    proto_output(&graph, "j", 7, "? 1");
    proto_output(&graph, "k", 1, "5");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    for (int round = 0; round < 2; round++) {
        sac_tensor *in =
            round ? F32(DIMS(5), {-1, -1, -1, -1, -1}) : F32(DIMS(5), {1, -1, 2, 0, 3});
        sac_tensor *out[2];
        assert_sac_ok(sac_model_run(m, &in, out));
        assert_int_equal(sac_tensor_describe(out[0])->shape[0], round ? 0 : 3);
        assert_int_equal(sac_tensor_describe(out[0])->shape[1], 1);
        if (!round)
            assert_memory_equal(sac_tensor_data(out[0]), ((int64_t[]){0, 2, 4}), 24);
        expect(out[1], 5, round ? (float[]){0, 0, 0, 0, 0} : (float[]){-1, 0, -2, 0, -3});
        sac_tensor_unref(&in);
        sac_tensor_unref(&out[0]);
        sac_tensor_unref(&out[1]);
    }
    sac_model_unref(&m);
    proto_free(&kept);
}

static void branch(struct proto *attrs, const char *name, const char *op)
{
    struct proto sub = {0};
    proto_node(&sub, op, "x", "r", NULL); /* x comes from outside */
    proto_output(&sub, "r", 1, "2");
    proto_attr_graph(attrs, name, &sub);
}

static void if_takes_a_branch(void **state)
{
    (void)state;
    struct proto graph = {0}, kept = {0}, attrs = {0};
    sac_model   *m = NULL;
    proto_input(&graph, "c", 9, "1");
    proto_input(&graph, "x", 1, "2");
    branch(&attrs, "then_branch", "Neg");
    branch(&attrs, "else_branch", "Abs");
    proto_node(&graph, "If", "c", "y", &attrs);
    proto_output(&graph, "y", 1, "2");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    for (uint8_t yes = 0; yes < 2; yes++) {
        sac_tensor *in[2] = {tensor(SAC_BOOL, 1, (int64_t[]){1}, &yes), F32(DIMS(2), {1, -2})};
        sac_tensor *out = NULL;
        assert_sac_ok(sac_model_run(m, in, &out));
        expect(out, 2, yes ? (float[]){-1, 2} : (float[]){1, 2});
        sac_tensor_unref(&in[0]);
        sac_tensor_unref(&in[1]);
        sac_tensor_unref(&out);
    }
    sac_model_unref(&m);
    proto_free(&kept);
}

/* Fibonacci: two carried values that the body swaps, and one stacked. */
static void loop_carries_and_stacks(void **state)
{
    (void)state;
    struct proto graph = {0}, body = {0}, kept = {0}, attrs = {0};
    sac_model   *m = NULL;
    uint8_t      yes = 1;
    int64_t      turns = 6;
    proto_initializer(&graph, "n", 7, "", &turns, sizeof turns);
    proto_initializer(&graph, "go", 9, "", &yes, 1);
    proto_input(&graph, "x", 1, "1");
    proto_input(&body, "i", 7, "");
    proto_input(&body, "c", 9, "");
    proto_input(&body, "a", 1, "1");
    proto_input(&body, "b", 1, "1");
    proto_node(&body, "Add", "a b", "s", NULL);
    proto_node(&body, "Identity", "c", "c2", NULL);
    proto_output(&body, "c2", 9, "");
    proto_output(&body, "b", 1, "1");
    proto_output(&body, "s", 1, "1");
    proto_output(&body, "s", 1, "1");
    proto_attr_graph(&attrs, "body", &body);
    proto_node(&graph, "Loop", "n go x x", "p q all", &attrs);
    proto_output(&graph, "p", 1, "1");
    proto_output(&graph, "q", 1, "1");
    proto_output(&graph, "all", 1, "? 1");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    sac_tensor *in = F32(DIMS(1), {1}), *out[3];
    assert_sac_ok(sac_model_run(m, &in, out));
    expect(out[0], 1, (float[]){13});
    expect(out[1], 1, (float[]){21});
    expect(out[2], 6, (float[]){2, 3, 5, 8, 13, 21});
    sac_tensor_unref(&in);
    for (int i = 0; i < 3; i++)
        sac_tensor_unref(&out[i]);
    sac_model_unref(&m);
    proto_free(&kept);
}

/* Trip count alone: the condition, which may be left out, is true. */
static void a_loop_needs_no_condition(void **state)
{
    (void)state;
    struct proto graph = {0}, body = {0}, kept = {0}, attrs = {0};
    sac_model   *m = NULL;
    proto_input(&graph, "x", 1, "1");
    proto_input(&graph, "n", 7, "");
    proto_input(&body, "i", 7, "");
    proto_input(&body, "c", 9, "");
    proto_node(&body, "Add", "x x", "s", NULL);
    proto_output(&body, "c", 9, "");
    proto_output(&body, "s", 1, "1");
    proto_attr_graph(&attrs, "body", &body);
    proto_node(&graph, "Loop", "n", "all", &attrs);
    proto_output(&graph, "all", 1, "? 1");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    sac_tensor *in[2] = {F32(DIMS(1), {2}), tensor(SAC_I64, 0, NULL, &(int64_t){3})}, *out = NULL;
    assert_sac_ok(sac_model_run(m, in, &out));
    expect(out, 3, (float[]){4, 4, 4});
    sac_tensor_unref(&in[0]);
    sac_tensor_unref(&in[1]);
    sac_tensor_unref(&out);
    sac_model_unref(&m);
    proto_free(&kept);
}

/* The body must take iteration and condition, whatever the node leaves out. */
static void a_loop_of_too_few_body_inputs_is_refused(void **state)
{
    (void)state;
    struct proto graph = {0}, body = {0}, kept = {0}, attrs = {0};
    sac_model   *m = NULL;
    uint8_t      yes = 1;
    proto_initializer(&body, "k", 9, "", &yes, 1);
    proto_input(&graph, "n", 7, "");
    proto_input(&body, "i", 7, "");
    proto_node(&body, "Neg", "i", "s", NULL);
    proto_output(&body, "k", 9, "");
    proto_output(&body, "s", 7, "");
    proto_attr_graph(&attrs, "body", &body);
    proto_node(&graph, "Loop", "n", "all", &attrs);
    proto_output(&graph, "all", 7, "?");
    assert_sac_error(load(&graph, NULL, &kept, &m), SAC_ERR_UNSUPPORTED);
    proto_free(&kept);
}

/* ---- plans ---- */

static void plans_are_kept_by_shape(void **state)
{
    (void)state;
    struct proto graph = {0}, kept = {0};
    sac_model   *m = NULL;
    proto_input(&graph, "x", 1, "? ?");
    proto_node(&graph, "Relu", "x", "y", NULL);
    proto_output(&graph, "y", 1, "? ?");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    float data[64] = {0};
    for (int round = 0; round < 3; round++)
        for (int64_t n = 1; n <= SAC_PLANS_MAX + 2; n++) {
            sac_tensor *in = tensor(SAC_F32, 2, (int64_t[]){n, 3}, data), *out = NULL;
            assert_sac_ok(sac_model_run(m, &in, &out));
            struct sac_plan *plan = NULL;
            for (int i = 0; i < SAC_PLANS_MAX; i++)
                if (m->plans[i] && m->plans[i]->used_at == m->clock)
                    plan = m->plans[i];
            assert_non_null(plan);
            sac_tensor_unref(&out);
            assert_sac_ok(sac_model_run(m, &in, &out)); /* the same plan serves the same shape */
            assert_true(plan->used_at == m->clock);
            assert_int_equal(sac_tensor_describe(out)->shape[0], n);
            sac_tensor_unref(&in);
            sac_tensor_unref(&out);
        }
    sac_model_unref(&m);
    proto_free(&kept);
}

/* ---- the batch ---- */

/* [1,2,2] -> mean over all axes, and a Reshape with the batch written in. */
static void batch_graph(struct proto *graph, const char *square)
{
    struct proto         attrs = {0};
    static const int64_t flat[2] = {1, 4};
    proto_initializer(graph, "flat", 7, "2", flat, sizeof flat);
    proto_input(graph, "x", 1, "1 2 2");
    proto_attr_ints(&attrs, "axes", "0 1 2");
    proto_node(graph, "ReduceMean", "x", "mean", &attrs);
    proto_node(graph, "Sub", "x mean", "d", NULL);
    proto_node(graph, "Mul", square, "e", NULL);
    proto_node(graph, "Reshape", "e flat", "y", NULL);
    proto_output(graph, "y", 1, "1 4");
}

static void run_stack(sac_model *m)
{
    sac_tensor *in = F32(DIMS(3, 2, 2), {1, 2, 3, 6, 0, 0, 0, 4, 9, 9, 9, 9}), *out = NULL;
    assert_sac_ok(sac_model_run(m, &in, &out));
    assert_int_equal(sac_tensor_describe(out)->shape[0], 3);
    expect(out, 12, (float[]){4, 1, 0, 9, 1, 1, 1, 9, 0, 0, 0, 0});
    sac_tensor_unref(&in);
    sac_tensor_unref(&out);
}

static void a_batch_of_one_is_freed(void **state)
{
    (void)state;
    struct proto graph = {0}, kept = {0};
    sac_model   *m = NULL;
    batch_graph(&graph, "d d");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    assert_int_equal(sac_model_input(m, 0)->desc.shape[0], SAC_DIM_UNKNOWN);
    assert_int_equal(m->batching, SAC_BATCH_UNCHECKED);
    run_stack(m);
    assert_int_equal(m->batching, SAC_BATCH_FREE);
    assert_int_equal(sac_model_batches(m), 1);
    sac_model_unref(&m);
    proto_free(&kept);
}

static void without_freeing_it_runs_one_by_one(void **state)
{
    (void)state;
    struct proto            graph = {0}, kept = {0};
    struct sac_model_params params = sac_model_params_default();
    sac_model              *m = NULL;
    params.free_batch = 0;
    batch_graph(&graph, "d d");
    assert_sac_ok(load(&graph, &params, &kept, &m));
    assert_int_equal(sac_model_input(m, 0)->desc.shape[0], 1);
    run_stack(m);
    assert_int_equal(sac_model_batches(m), 0);
    sac_model_unref(&m);
    proto_free(&kept);
}

/* A sum along the batch: no rule frees that. */
static void a_batch_that_mixes_stays_fixed(void **state)
{
    (void)state;
    struct proto graph = {0}, kept = {0}, attrs = {0};
    sac_model   *m = NULL;
    proto_input(&graph, "x", 1, "1 2");
    proto_attr_int(&attrs, "axis", 0);
    proto_node(&graph, "Softmax", "x", "y", &attrs);
    proto_output(&graph, "y", 1, "1 2");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    assert_int_equal(m->batching, SAC_BATCH_FIXED);
    sac_tensor *in = F32(DIMS(2, 2), {1, 2, 3, 4}), *out = NULL;
    assert_sac_ok(sac_model_run(m, &in, &out));
    expect(out, 4, (float[]){1, 1, 1, 1});
    sac_tensor_unref(&in);
    sac_tensor_unref(&out);
    sac_model_unref(&m);
    proto_free(&kept);
}

/* One input is stacked, the other serves all of the stack. */
static void what_is_no_stack_is_shared(void **state)
{
    (void)state;
    struct proto graph = {0}, kept = {0}, attrs = {0};
    sac_model   *m = NULL;
    proto_input(&graph, "x", 1, "1 2");
    proto_input(&graph, "t", 1, "1");
    proto_attr_int(&attrs, "axis", 0);
    proto_node(&graph, "Softmax", "x", "s", &attrs);
    proto_node(&graph, "Mul", "s t", "y", NULL);
    proto_output(&graph, "y", 1, "1 2");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    sac_tensor *in[2] = {F32(DIMS(2, 2), {1, 2, 3, 4}), F32(DIMS(1), {5})}, *out = NULL;
    assert_sac_ok(sac_model_run(m, in, &out));
    expect(out, 4, (float[]){5, 5, 5, 5});
    sac_tensor_unref(&in[1]);
    in[1] = F32(DIMS(3), {1, 2, 3}); /* two stacks of different heights */
    sac_tensor_unref(&out);
    assert_sac_error(sac_model_run(m, in, &out), SAC_ERR_ARG);
    sac_tensor_unref(&in[0]);
    sac_tensor_unref(&in[1]);
    sac_model_unref(&m);
    proto_free(&kept);
}

/* What the rules let through and is wrong all the same is found by the check: here a Reshape whose
 * target is computed, from the batch, in a way that only holds for one. */
static void a_wrong_freeing_is_found(void **state)
{
    (void)state;
    struct proto graph = {0}, kept = {0}, attrs = {0};
    sac_model   *m = NULL;
    int64_t      zero = 0, rest = -1;
    proto_initializer(&graph, "zero", 7, "1", &zero, sizeof zero);
    proto_initializer(&graph, "rest", 7, "1", &rest, sizeof rest);
    proto_input(&graph, "x", 1, "1 2");
    proto_node(&graph, "Shape", "x", "s", NULL);
    proto_node(&graph, "Gather", "s zero", "n", NULL);
    proto_attr_int(&attrs, "axis", 0);
    proto_node(&graph, "Concat", "n rest", "t", &attrs);
    proto_node(&graph, "Reshape", "x t", "a", NULL);
    proto_attr_int(&attrs, "to", 1);
    proto_node(&graph, "Cast", "n", "f", &attrs);
    proto_node(&graph, "Mul", "a f", "y", NULL); /* times the batch size */
    proto_output(&graph, "y", 1, "1 2");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    assert_int_equal(sac_model_batches(m), 0);
    assert_int_equal(m->batching, SAC_BATCH_WRONG);
    sac_tensor *in = F32(DIMS(2, 2), {1, 2, 3, 4}), *out = NULL;
    assert_sac_ok(sac_model_run(m, &in, &out));
    expect(out, 4, (float[]){1, 2, 3, 4});
    sac_tensor_unref(&in);
    sac_tensor_unref(&out);
    sac_model_unref(&m);
    proto_free(&kept);
}

/* Nor does a stack have to run at all: here a Reshape whose target is computed with the 1 in it. */
static void a_freeing_that_cannot_run_is_found(void **state)
{
    (void)state;
    struct proto graph = {0}, kept = {0}, attrs = {0};
    sac_model   *m = NULL;
    int64_t      one = 1;
    proto_initializer(&graph, "one", 7, "1", &one, sizeof one);
    proto_input(&graph, "x", 1, "1 2");
    proto_node(&graph, "Shape", "x", "s", NULL);
    proto_node(&graph, "Gather", "s one", "n", NULL);
    proto_attr_int(&attrs, "axis", 0);
    proto_node(&graph, "Concat", "one n", "t", &attrs);
    proto_node(&graph, "Reshape", "x t", "y", NULL);
    proto_output(&graph, "y", 1, "1 2");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    assert_int_equal(m->batching, SAC_BATCH_UNCHECKED);
    assert_int_equal(sac_model_batches(m), 0);
    sac_tensor *in = F32(DIMS(2, 2), {1, 2, 3, 4}), *out = NULL;
    assert_sac_ok(sac_model_run(m, &in, &out));
    expect(out, 4, (float[]){1, 2, 3, 4});
    sac_tensor_unref(&in);
    sac_tensor_unref(&out);
    sac_model_unref(&m);
    proto_free(&kept);
}

/* ---- passes ---- */

/* In rows of up to 64, of which two tall pictures have as many: the third is low. */
static void a_shape_asked_of_a_picture_stays_open(void **state)
{
    (void)state;
    struct proto  graph = {0}, kept = {0}, attrs = {0};
    sac_model    *m = NULL;
    const int64_t one = 1, two = 2, most = 64, rest = -1;
    proto_initializer(&graph, "one", 7, "1", &one, sizeof one);
    proto_initializer(&graph, "two", 7, "1", &two, sizeof two);
    proto_initializer(&graph, "most", 7, "1", &most, sizeof most);
    proto_initializer(&graph, "rest", 7, "1", &rest, sizeof rest);
    proto_input(&graph, "x", 1, "1 ? 2");
    proto_node(&graph, "Shape", "x", "s", NULL);
    proto_node(&graph, "Slice", "s one two", "h", NULL);
    proto_node(&graph, "Min", "h most", "rows", NULL);
    proto_attr_int(&attrs, "axis", 0);
    proto_node(&graph, "Concat", "rows rest", "t", &attrs);
    proto_node(&graph, "Reshape", "x t", "y", NULL);
    proto_output(&graph, "y", 1, "? ?");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    sac_tensor *in = F32(DIMS(1, 2, 2), {1, 2, 3, 4}), *out = NULL;
    assert_sac_ok(sac_model_run(m, &in, &out));
    expect(out, 4, (float[]){1, 2, 3, 4});
    assert_int_equal(sac_tensor_describe(out)->shape[0], 2);
    sac_tensor_unref(&in);
    sac_tensor_unref(&out);
    sac_model_unref(&m);
    proto_free(&kept);
}

/* It looks like a normalisation of samples, but means of shape [N] meet the last axis. */
static void means_along_the_wrong_axis_are_no_norm(void **state)
{
    (void)state;
    struct proto graph = {0}, kept = {0}, attrs = {0};
    sac_model   *m = NULL;
    const float  epsilon = 1;
    proto_initializer(&graph, "eps", 1, "", &epsilon, sizeof epsilon);
    proto_input(&graph, "x", 1, "2 1 2");
    proto_attr_ints(&attrs, "axes", "1 2");
    proto_attr_int(&attrs, "keepdims", 0);
    proto_node(&graph, "ReduceMean", "x", "mean", &attrs);
    proto_node(&graph, "Sub", "x mean", "d", NULL);
    proto_node(&graph, "Mul", "d d", "s", NULL);
    proto_attr_ints(&attrs, "axes", "1 2");
    proto_attr_int(&attrs, "keepdims", 0);
    proto_node(&graph, "ReduceMean", "s", "v", &attrs);
    proto_node(&graph, "Add", "v eps", "e", NULL);
    proto_node(&graph, "Sqrt", "e", "r", NULL);
    proto_node(&graph, "Div", "d r", "y", NULL);
    proto_output(&graph, "y", 1, "2 1 2");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    sac_tensor *in = F32(DIMS(2, 1, 2), {0, 2, 1, 5}), *out = NULL;
    assert_sac_ok(sac_model_run(m, &in, &out)); /* means 1, 3; d -1 -1 0 2; r sqrt(2) sqrt(3) */
    expect(out, 4, (float[]){-0.7071068f, -0.5773503f, 0, 1.1547005f});
    sac_tensor_unref(&in);
    sac_tensor_unref(&out);
    sac_model_unref(&m);
    proto_free(&kept);
}

/* ---- faults ---- */

static void missing_operators_are_named(void **state)
{
    (void)state;
    struct proto graph = {0}, kept = {0};
    sac_model   *m = NULL;
    proto_input(&graph, "x", 1, "1");
    proto_node(&graph, "Relu", "x", "a", NULL);
    proto_node(&graph, "FooBar", "a", "y", NULL);
    proto_output(&graph, "y", 1, "1");
    assert_sac_error(load(&graph, NULL, &kept, &m), SAC_ERR_UNSUPPORTED);
    assert_string_equal(why(),
                        "test.onnx: layer 1 (FooBar) of opset 17 is not supported: saccade has no "
                        "such operator");
    assert_null(m);
    proto_free(&kept);
}

static void wrong_inputs_are_named(void **state)
{
    (void)state;
    struct proto graph = {0}, kept = {0};
    sac_model   *m = NULL;
    proto_input(&graph, "x", 1, "? 3");
    proto_node(&graph, "Relu", "x", "y", NULL);
    proto_output(&graph, "y", 1, "? 3");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    sac_tensor *in = F32(DIMS(1, 4), {1, 2, 3, 4}), *none = NULL, *out = NULL;
    assert_sac_error(sac_model_run(m, &in, &out), SAC_ERR_ARG);
    assert_string_equal(why(), "test.onnx: input 'x' wants float32 [?,3] but got float32 [1,4]");
    assert_sac_error(sac_model_run(m, &none, &out), SAC_ERR_ARG);
    assert_null(out);
    sac_tensor_unref(&in);
    sac_model_unref(&m);
    proto_free(&kept);
}

/* 200 bytes of file that ask for terabytes. */
static void memory_is_bounded(void **state)
{
    (void)state;
    struct proto            graph = {0}, kept = {0};
    struct sac_model_params params = sac_model_params_default();
    sac_model              *m = NULL;
    int64_t                 huge[2] = {1000000, 1000000}, large[2] = {1000, 1000};
    float                   x = 1;
    proto_initializer(&graph, "s", 7, "2", huge, sizeof huge);
    proto_input(&graph, "x", 1, "1");
    proto_node(&graph, "Expand", "x s", "a", NULL);
    proto_node(&graph, "Relu", "a", "y", NULL);
    proto_output(&graph, "y", 1, "1");
    assert_sac_error(load(&graph, NULL, &kept, &m), SAC_ERR_LIMIT); /* its shapes are all fixed */
    assert_non_null(strstr(why(), "layer 0 (Expand)"));
    proto_free(&kept);

    proto_initializer(&graph, "s", 7, "2", large, sizeof large);
    proto_input(&graph, "x", 1, "1");
    proto_node(&graph, "Expand", "x s", "a", NULL);
    proto_output(&graph, "z", 1, "1");
    params.memory_limit_bytes = (4 << 20) + 100; /* each value fits, the two together do not */
    proto_node(&graph, "MatMul", "a a", "z", NULL);
    assert_sac_ok(load(&graph, &params, &kept, &m));
    sac_tensor *in = tensor(SAC_F32, 1, (int64_t[]){1}, &x), *out = NULL;
    assert_sac_error(sac_model_run(m, &in, &out), SAC_ERR_LIMIT);
    assert_non_null(strstr(why(), "its activations need"));
    sac_tensor_unref(&in);
    sac_model_unref(&m);
    proto_free(&kept);
}

/* Nodes that each make four times what they read are not computed at load for as long as they
 * like. */
static void folding_is_bounded_as_a_whole(void **state)
{
    (void)state;
    struct proto  graph = {0}, kept = {0};
    sac_model    *m = NULL;
    const int64_t size = 1000000;
    char          inputs[64], output[16];
    proto_initializer(&graph, "size", 7, "1", &size, sizeof size);
    proto_input(&graph, "x", 1, "1");
    proto_node(&graph, "ConstantOfShape", "size", "c0", NULL);
    for (int i = 0; i < 5; i++) {
        struct proto attrs = {0};
        proto_attr_int(&attrs, "axis", 0);
        snprintf(inputs, sizeof inputs, "c%d c%d c%d c%d", i, i, i, i);
        snprintf(output, sizeof output, "c%d", i + 1);
        proto_node(&graph, "Concat", inputs, output, &attrs);
    }
    proto_node(&graph, "Add", "x c5", "y", NULL);
    proto_output(&graph, "y", 1, "?");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    assert_true(m->memory.bytes < 32 << 20); /* c0 is 4 MB, c5 would be 4 GB */
    sac_model_unref(&m);
    proto_free(&kept);
}

/* No samples: nothing to compute, and no line of a convolution to be as long as nothing. */
static void an_empty_batch_gives_an_empty_result(void **state)
{
    (void)state;
    struct proto       graph = {0}, kept = {0};
    sac_model         *m = NULL;
    static const float weights[16 * 16];
    proto_initializer(&graph, "w", 1, "16 16 1 1", weights, sizeof weights);
    proto_input(&graph, "x", 1, "? 16 2 2");
    proto_node(&graph, "Conv", "x w", "a", NULL);
    proto_node(&graph, "Conv", "a w", "b", NULL);
    proto_output(&graph, "b", 1, "? 16 2 2");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    sac_tensor *in = tensor(SAC_F32, 4, (int64_t[]){0, 16, 2, 2}, weights), *out = NULL;
    assert_sac_ok(sac_model_run(m, &in, &out));
    assert_int_equal(sac_tensor_desc_elements(sac_tensor_describe(out)), 0);
    sac_tensor_unref(&in);
    sac_tensor_unref(&out);
    sac_model_unref(&m);
    proto_free(&kept);
}

/* A network that breaks must not look sure of what it sees. */
static void nan_stays_nan(void **state)
{
    (void)state;
    static const char *const ops[] = {"Relu",     "Sigmoid", "Tanh", "HardSwish", "LeakyRelu",
                                      "Softplus", "Erf",     "Exp",  "Gelu",      "Abs",
                                      "Neg",      "Sqrt",    "Log"};
    for (size_t i = 0; i < SAC_COUNT(ops); i++) {
        struct proto graph = {0}, kept = {0};
        sac_model   *m = NULL;
        proto_input(&graph, "x", 1, "1 9");
        proto_node(&graph, ops[i], "x", "y", NULL);
        proto_output(&graph, "y", 1, "1 9");
        assert_sac_ok(load(&graph, NULL, &kept, &m));
        sac_tensor *in = F32(DIMS(1, 9), {NAN, 1, 1, 1, 1, 1, 1, 1, NAN}), *out = NULL;
        assert_sac_ok(sac_model_run(m, &in, &out));
        const float *y = sac_tensor_data(out);
        if (!isnan(y[0]) || !isnan(y[8]) || isnan(y[1]))
            fail_msg("%s of NaN is %g, %g", ops[i], y[0], y[8]);
        sac_tensor_unref(&in);
        sac_tensor_unref(&out);
        sac_model_unref(&m);
        proto_free(&kept);
    }
}

/* What a mask takes out has no share at all, not a subnormal one that the product behind it pays
 * for. */
static void what_is_masked_has_no_share(void **state)
{
    (void)state;
    struct proto graph = {0}, kept = {0};
    sac_model   *m = NULL;
    proto_input(&graph, "x", 1, "1 11");
    proto_node(&graph, "Softmax", "x", "y", NULL);
    proto_output(&graph, "y", 1, "1 11");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    sac_tensor *in = F32(DIMS(1, 11), {1, -1e9f, 1, -INFINITY, 1, 1, 1, 1, -200, 1, -1e9f});
    sac_tensor *out = NULL;
    assert_sac_ok(sac_model_run(m, &in, &out));
    const float *y = sac_tensor_data(out);
    for (int i = 0; i < 11; i++)
        assert_true(i == 1 || i == 3 || i == 8 || i == 10 ? y[i] == 0
                                                          : fabsf(y[i] - 1.0f / 7) < 1e-6f);
    sac_tensor_unref(&in);
    sac_tensor_unref(&out);
    sac_model_unref(&m);
    proto_free(&kept);
}

static void the_size_of_minus_zero_is_zero(void **state)
{
    (void)state;
    struct proto graph = {0}, kept = {0};
    sac_model   *m = NULL;
    proto_input(&graph, "x", 1, "1 9");
    proto_node(&graph, "Abs", "x", "a", NULL);
    proto_node(&graph, "Reciprocal", "a", "y", NULL);
    proto_output(&graph, "y", 1, "1 9");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    sac_tensor *in = F32(DIMS(1, 9), {-0.0f, 0, -2, 2, 4, 4, 4, 4, -0.0f}), *out = NULL;
    assert_sac_ok(sac_model_run(m, &in, &out));
    const float *y = sac_tensor_data(out);
    assert_true(y[0] == INFINITY && y[1] == INFINITY && y[8] == INFINITY && y[2] == 0.5f);
    sac_tensor_unref(&in);
    sac_tensor_unref(&out);
    sac_model_unref(&m);
    proto_free(&kept);
}

/* Its length is not known from its shape, but the parts behind it begin after it. */
static void a_part_left_out_takes_its_place(void **state)
{
    (void)state;
    struct proto  graph = {0}, kept = {0}, attrs = {0};
    sac_model    *m = NULL;
    const int64_t sizes[3] = {1, 2, 1};
    proto_initializer(&graph, "sizes", 7, "3", sizes, sizeof sizes);
    proto_input(&graph, "x", 1, "1 4");
    proto_attr_int(&attrs, "axis", 1);
    proto_node(&graph, "Split", "x sizes", "a - c", &attrs);
    proto_node(&graph, "Add", "a c", "y", NULL);
    proto_output(&graph, "y", 1, "1 1");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    sac_tensor *in = F32(DIMS(1, 4), {1, 20, 300, 4000}), *out = NULL;
    assert_sac_ok(sac_model_run(m, &in, &out));
    assert_float_equal(*(const float *)sac_tensor_data(out), 4001, 0);
    sac_tensor_unref(&in);
    sac_tensor_unref(&out);
    sac_model_unref(&m);
    proto_free(&kept);
}

/* GlobalAveragePool or ReduceMean, Conv, Relu, Conv, Sigmoid, Mul, as mobile networks have them.
 * `read`: the value of this name is an output too. */
static sac_model *squeezed(struct proto *kept, bool reduce, const char *read)
{
    static const float w1[6] = {1, 2, 3, -1, -1, -1}, w2[6] = {1, 0, -1, 1, 2, 1};
    static const float b1[2] = {0.5f, -1};
    struct proto       graph = {0}, attrs = {0};
    sac_model         *m = NULL;
    proto_initializer(&graph, "w1", 1, "2 3 1 1", w1, sizeof w1);
    proto_initializer(&graph, "b1", 1, "2", b1, sizeof b1);
    proto_initializer(&graph, "w2", 1, "3 2 1 1", w2, sizeof w2);
    proto_input(&graph, "x", 1, "2 3 2 1");
    if (reduce)
        proto_attr_ints(&attrs, "axes", "-1 2");
    proto_node(&graph, reduce ? "ReduceMean" : "GlobalAveragePool", "x", "mean",
               reduce ? &attrs : NULL);
    proto_node(&graph, "Conv", "mean w1 b1", "c", NULL);
    proto_node(&graph, "Relu", "c", "h", NULL);
    proto_node(&graph, "Conv", "h w2", "d", NULL);
    proto_node(&graph, "Sigmoid", "d", "gate", NULL);
    proto_node(&graph, "Mul", "x gate", "y", NULL);
    proto_output(&graph, "y", 1, "2 3 2 1");
    if (read)
        proto_output(&graph, read, 1, *read == 'h' ? "2 2 1 1" : "2 3 1 1");
    assert_sac_ok(load(&graph, NULL, kept, &m));
    return m;
}

static void count_layers(void *user, const char *line)
{
    int *count = user;
    count[0] += strstr(line, "Excitation ") != NULL;
    count[1] += strstr(line, "Conv ") != NULL;
    count[2] += strstr(line, "GlobalAveragePool ") != NULL || strstr(line, "ReduceMean ") != NULL;
}

/* The one tap of a convolution with strides lies on its pads. */
static void a_layer_of_pads_is_none(void **state)
{
    (void)state;
    static const float w[2] = {2, 3}, bias[1] = {0.5f};
    struct proto       graph = {0}, kept = {0}, attrs = {0};
    sac_model         *m = NULL;
    proto_initializer(&graph, "w1", 1, "1 1 1 1", w, sizeof *w);
    proto_initializer(&graph, "b1", 1, "1", bias, sizeof bias);
    proto_initializer(&graph, "w2", 1, "1 1 1 1", w + 1, sizeof *w);
    proto_input(&graph, "x", 1, "1 1 1 1");
    proto_attr_ints(&attrs, "pads", "1 1 1 1");
    proto_attr_ints(&attrs, "strides", "3 3");
    proto_node(&graph, "Conv", "x w1 b1", "h", &attrs);
    proto_node(&graph, "Conv", "h w2", "y", NULL);
    proto_output(&graph, "y", 1, "1 1 1 1");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    sac_tensor *in = F32(DIMS(1, 1, 1, 1), {7}), *out = NULL;
    assert_sac_ok(sac_model_run(m, &in, &out));
    assert_float_equal(*(const float *)sac_tensor_data(out), 1.5f, 0);
    sac_tensor_unref(&in);
    sac_tensor_unref(&out);
    sac_model_unref(&m);
    proto_free(&kept);
}

static void gates_and_their_means_are_one_step(void **state)
{
    (void)state;
    static const float       x[12] = {1, 3, 0, 2, -1, 1, 0, 0, 5, 5, -2, -4};
    static const char *const also[] = {NULL, "h", "mean"};
    for (int i = 0; i < 6; i++) {
        struct proto kept = {0};
        const bool   h = i % 3 == 1, mean = i % 3 == 2;
        sac_model   *m = squeezed(&kept, i >= 3, also[i % 3]);
        sac_tensor  *in = tensor(SAC_F32, 4, (int64_t[]){2, 3, 2, 1}, x), *out[2] = {NULL};
        int          count[3] = {0};
        assert_sac_ok(sac_model_run(m, &in, out));
        sac_model_dump_steps(m, count_layers, count);
        assert_true(count[0] == !h && count[1] == 2 * h && count[2] == (h || mean));
        for (int n = 0; n < 2; n++) {
            float s[3];
            for (int c = 0; c < 3; c++)
                s[c] = (x[6 * n + 2 * c] + x[6 * n + 2 * c + 1]) / 2;
            const float a[2] = {fmaxf(s[0] + 2 * s[1] + 3 * s[2] + 0.5f, 0),
                                fmaxf(-s[0] - s[1] - s[2] - 1, 0)};
            const float d[3] = {a[0], a[1] - a[0], 2 * a[0] + a[1]};
            for (int k = 0; k < 6; k++)
                assert_float_equal(((const float *)sac_tensor_data(out[0]))[6 * n + k],
                                   x[6 * n + k] / (1 + expf(-d[k / 2])), 1e-5);
        }
        sac_tensor_unref(&in);
        sac_tensor_unref(&out[0]);
        sac_tensor_unref(&out[1]);
        sac_model_unref(&m);
        proto_free(&kept);
    }
}

static void count_separate(void *user, const char *line)
{
    static const char *const separate[] = {"GatedSum", "Mul", "Add", "Relu"};
    for (size_t i = 0; i < SAC_COUNT(separate); i++)
        *(int *)user += strstr(line, separate[i]) != NULL;
}

/* Conv, Mul, Add, Relu with a number per channel, as DETR's frozen norms are exported. */
static void a_frozen_norm_is_folded(void **state)
{
    (void)state;
    static const float w[2] = {2, 3}, factor[2] = {0.5f, 4}, summand[2] = {1, -100};
    struct proto       graph = {0}, kept = {0};
    sac_model         *m = NULL;
    int                separate = 0;
    proto_initializer(&graph, "w", 1, "2 1 1 1", w, sizeof w);
    proto_initializer(&graph, "factor", 1, "1 2 1 1", factor, sizeof factor);
    proto_initializer(&graph, "summand", 1, "1 2 1 1", summand, sizeof summand);
    proto_input(&graph, "x", 1, "1 1 2 2");
    proto_node(&graph, "Conv", "x w", "c", NULL);
    proto_node(&graph, "Mul", "c factor", "m", NULL);
    proto_node(&graph, "Add", "m summand", "a", NULL);
    proto_node(&graph, "Relu", "a", "y", NULL);
    proto_output(&graph, "y", 1, "1 2 2 2");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    sac_tensor *in = F32(DIMS(1, 1, 2, 2), {1, 2, 3, 10}), *out = NULL;
    assert_sac_ok(sac_model_run(m, &in, &out));
    sac_model_dump_steps(m, count_separate, &separate);
    assert_int_equal(separate, 0);
    static const float want[8] = {2, 3, 4, 11, 0, 0, 0, 20};
    for (int i = 0; i < 8; i++)
        assert_float_equal(((const float *)sac_tensor_data(out))[i], want[i], 1e-5);
    sac_tensor_unref(&in);
    sac_tensor_unref(&out);
    sac_model_unref(&m);
    proto_free(&kept);
}

/* ---- GELU as exporters spell it ---- */

struct spelling {
    const char *nodes[9][3]; /* operator, inputs, output; the last makes y */
    bool        tanh_like, found;
};

static const struct spelling spellings[] = {
    {{{"Div", "x root", "d"},
      {"Erf", "d", "e"},
      {"Add", "e one", "s"},
      {"Mul", "x s", "m"},
      {"Mul", "m half", "y"}},
     .found = true},
    {{{"Mul", "half x", "h"},
      {"Mul", "inverse x", "d"},
      {"Erf", "d", "e"},
      {"Add", "one e", "s"},
      {"Mul", "h s", "y"}},
     .found = true},
    {{{"Pow", "x three", "p"},
      {"Mul", "p bend", "b"},
      {"Add", "x b", "c"},
      {"Mul", "c width", "w"},
      {"Tanh", "w", "t"},
      {"Add", "t one", "s"},
      {"Mul", "x half", "h"},
      {"Mul", "h s", "y"}},
     .tanh_like = true,
     .found = true},
    {{{"Mul", "x half", "h"},
      {"Mul", "x width", "w"},
      {"Mul", "x bend", "b"},
      {"Mul", "b x", "q"},
      {"Add", "q one", "c"},
      {"Mul", "w c", "v"},
      {"Tanh", "v", "t"},
      {"Add", "t one", "s"},
      {"Mul", "h s", "y"}},
     .tanh_like = true,
     .found = true},
    /* not one: 3 + erf */
    {{{"Div", "x root", "d"},
      {"Erf", "d", "e"},
      {"Add", "e three", "s"},
      {"Mul", "x s", "m"},
      {"Mul", "m half", "y"}}},
};

static void count_gelus(void *user, const char *line)
{
    *(int *)user += strstr(line, "Gelu ") != NULL;
}

static sac_model *spelled(const struct spelling *s, struct proto *kept)
{
    static const struct {
        const char *name;
        float       value;
    } numbers[] = {
        {"root", 1.41421356f}, {"inverse", 0.70710678f}, {"half", 0.5f},        {"one", 1},
        {"three", 3},          {"bend", 0.044715f},      {"width", 0.79788456f}};
    struct proto graph = {0};
    sac_model   *m = NULL;
    for (size_t i = 0; i < SAC_COUNT(numbers); i++)
        proto_initializer(&graph, numbers[i].name, 1, "", &numbers[i].value, sizeof(float));
    proto_input(&graph, "x", 1, "1 5");
    for (size_t i = 0; i < SAC_COUNT(s->nodes) && s->nodes[i][0]; i++)
        proto_node(&graph, s->nodes[i][0], s->nodes[i][1], s->nodes[i][2], NULL);
    proto_output(&graph, "y", 1, "1 5");
    assert_sac_ok(load(&graph, NULL, kept, &m));
    return m;
}

static void a_spelled_gelu_is_one_step(void **state)
{
    (void)state;
    static const float x[5] = {-3, -0.5f, 0, 0.75f, 4};
    for (size_t i = 0; i < SAC_COUNT(spellings); i++) {
        const struct spelling *s = &spellings[i];
        struct proto           kept = {0};
        sac_model             *m = spelled(s, &kept);
        sac_tensor            *in = tensor(SAC_F32, 2, (int64_t[]){1, 5}, x), *out = NULL;
        int                    gelus = 0;
        assert_sac_ok(sac_model_run(m, &in, &out));
        sac_model_dump_steps(m, count_gelus, &gelus);
        assert_int_equal(gelus, s->found);
        for (int k = 0; k < 5; k++) {
            const double bent = 0.79788456 * (x[k] + 0.044715 * x[k] * x[k] * x[k]);
            const double bell = s->tanh_like ? tanh(bent) : erf(x[k] / sqrt(2));
            assert_float_equal(((const float *)sac_tensor_data(out))[k],
                               x[k] / 2 * ((s->found ? 1 : 3) + bell), 1e-5);
        }
        sac_tensor_unref(&in);
        sac_tensor_unref(&out);
        sac_model_unref(&m);
        proto_free(&kept);
    }
}

/* ---- what follows a convolution ---- */

struct behind {
    const char *y;           /* dims of the output */
    const char *nodes[8][3]; /* operator, inputs, output; the last makes y */
    int         left;        /* activations that stay */
};

/* x is [1,2,2,3], w [2,1,1,1]. */
static const struct behind behinds[] = {
    {"1 2 2 3", {{"Conv", "x w", "m"}, {"Gelu", "m", "y"}}, .left = 0},
    {"1 6 2",
     {{"Conv", "x w", "m"},
      {"Reshape", "m shape", "n"},
      {"Transpose", "n", "o"},
      {"Gelu", "o", "y"}},
     .left = 0},
    {"1 2 6", {{"Conv", "x w", "m"}, {"Reshape", "m shape", "n"}, {"HardSwish", "n", "y"}}},
    /* as exporters write Flatten: the shape is asked for, which says nothing of the numbers */
    {"1 6 2",
     {{"Conv", "x w", "m"},
      {"Shape", "m", "all"},
      {"Slice", "all from to", "some"},
      {"Concat", "some rest", "now"},
      {"Reshape", "m now", "n"},
      {"Transpose", "n", "o"},
      {"Gelu", "o", "y"}},
     .left = 0},
    /* only the first of two; and none where the numbers are read before it too */
    {"1 2 6",
     {{"Conv", "x w", "m"}, {"Relu", "m", "n"}, {"Reshape", "n shape", "o"}, {"Gelu", "o", "y"}},
     .left = 1},
    {"1 2 2 3", {{"Conv", "x w", "m"}, {"Gelu", "m", "n"}, {"Add", "m n", "y"}}, .left = 1},
};

static void count_activations(void *user, const char *line)
{
    *(int *)user += strstr(line, " Gelu ") || strstr(line, " Relu ") || strstr(line, " HardSwish ");
}

/* As behinds say: w is 2 for the first channel and -1 for the second. */
static double behind_at(const struct behind *b, double x, int channel)
{
    double v = channel ? -x : 2 * x;
    for (int i = 1; i < 8 && b->nodes[i][0]; i++) {
        const double before = v;
        if (strcmp(b->nodes[i][0], "Gelu") == 0)
            v = v / 2 * (1 + erf(v / sqrt(2)));
        else if (strcmp(b->nodes[i][0], "HardSwish") == 0)
            v = v * fmin(fmax(v / 6 + 0.5, 0), 1);
        else if (strcmp(b->nodes[i][0], "Relu") == 0)
            v = fmax(v, 0);
        if (i < 7 && b->nodes[i + 1][0] && strcmp(b->nodes[i + 1][0], "Add") == 0)
            return v + before;
    }
    return v;
}

static void a_convolution_takes_the_activation_behind_it(void **state)
{
    (void)state;
    static const float   x[12] = {-3, -0.5f, 0, 0.75f, 4, 1, 2, -2, 0.25f, -4, 3, 0.5f};
    static const float   w[2] = {2, -1};
    static const int64_t shape[3] = {1, 2, 6}, from = 0, to = 2, rest = -1;
    for (size_t i = 0; i < SAC_COUNT(behinds); i++) {
        const struct behind *b = &behinds[i];
        const bool           open = strcmp(b->nodes[1][0], "Shape") == 0;
        struct proto         graph = {0}, kept = {0};
        sac_model           *m = NULL;
        bool                 turned = false;
        int                  left = 0;
        proto_initializer(&graph, "w", 1, "2 1 1 1", w, sizeof w);
        proto_initializer(&graph, "shape", 7, "3", shape, sizeof shape);
        proto_initializer(&graph, "from", 7, "1", &from, sizeof from);
        proto_initializer(&graph, "to", 7, "1", &to, sizeof to);
        proto_initializer(&graph, "rest", 7, "1", &rest, sizeof rest);
        proto_input(&graph, "x", 1, open ? "? 2 2 3" : "1 2 2 3");
        for (int k = 0; k < 8 && b->nodes[k][0]; k++) {
            struct proto attrs = {0};
            if (strcmp(b->nodes[k][0], "Conv") == 0)
                proto_attr_int(&attrs, "group", 2);
            if (strcmp(b->nodes[k][0], "Concat") == 0)
                proto_attr_int(&attrs, "axis", 0);
            if (strcmp(b->nodes[k][0], "Transpose") == 0) {
                proto_attr_ints(&attrs, "perm", "0 2 1");
                turned = true;
            }
            proto_node(&graph, b->nodes[k][0], b->nodes[k][1], b->nodes[k][2], &attrs);
        }
        proto_output(&graph, "y", 1, open ? "? 6 2" : b->y);
        setenv("SACCADE_WITHOUT", "chain", 1); /* which would make one of what is left */
        assert_sac_ok(load(&graph, NULL, &kept, &m));
        unsetenv("SACCADE_WITHOUT");
        sac_tensor *in = tensor(SAC_F32, 4, (int64_t[]){1, 2, 2, 3}, x), *out = NULL;
        assert_sac_ok(sac_model_run(m, &in, &out));
        sac_model_dump_steps(m, count_activations, &left);
        assert_int_equal(left, b->left);
        for (int k = 0; k < 12; k++)
            assert_float_equal(
                ((const float *)sac_tensor_data(out))[turned ? k % 6 * 2 + k / 6 : k],
                behind_at(b, x[k], k / 6), 1e-5);
        sac_tensor_unref(&in);
        sac_tensor_unref(&out);
        sac_model_unref(&m);
        proto_free(&kept);
    }
}

/* ---- what follows a matrix product ---- */

struct ending {
    const char *x, *r, *y;   /* dims of the inputs and the output */
    const char *nodes[7][3]; /* operator, inputs, output; the last makes y */
    int         fused, left; /* FusedMatMul, and what could have been part of one */
    const char *also;        /* another output, or NULL */
    const char *perm;        /* of Transposes; NULL: 0 3 1 2 */
    const char *shape;       /* of the FusedMatMul, or NULL */
};

/* w is [4,5] and t of its transpose's shape; b, s and e have five numbers, c [5,1,1], f one. */
static const struct ending endings[] = {
    {"2 3 4", "2 3 5", "2 3 5", {{"MatMul", "x w", "m"}, {"Add", "b m", "y"}}, .fused = 1},
    {"2 3 4",
     "2 3 5",
     "2 3 5",
     {{"MatMul", "x w", "m"}, {"Add", "b m", "n"}, {"Gelu", "n", "y"}},
     .fused = 1},
    {"2 3 4",
     "2 3 5",
     "2 3 5",
     {{"MatMul", "x w", "m"}, {"Add", "m b", "n"}, {"Mul", "n s", "o"}, {"Add", "r o", "y"}},
     .fused = 1},
    /* the activation may follow the sum, or precede it; nothing is scaled after that */
    {"2 3 4",
     "2 3 5",
     "2 3 5",
     {{"MatMul", "x w", "m"}, {"Add", "m r", "n"}, {"Sub", "n b", "o"}, {"Relu", "o", "y"}},
     .fused = 1},
    {"2 3 4",
     "2 3 5",
     "2 3 5",
     {{"MatMul", "x w", "m"}, {"Relu", "m", "n"}, {"Add", "n r", "o"}, {"Mul", "o s", "y"}},
     .fused = 1,
     .left = 1},
    {"2 3 4",
     "2 3 5",
     "2 3 5",
     {{"MatMul", "x w", "m"}, {"Add", "m r", "o"}, {"Div", "o f", "y"}},
     .fused = 1,
     .left = 1},
    /* a Gemm that is turned and scaled; its rows are put in another shape */
    {"6 4",
     "6 5",
     "6 5",
     {{"Gemm", "x t b", "m"}, {"HardSwish", "m", "n"}, {"Add", "n r", "y"}},
     .fused = 1},
    {"6 4",
     "2 3 5",
     "2 3 5",
     {{"Gemm", "x t b", "m"}, {"Reshape", "m shape", "n"}, {"Add", "n r", "y"}},
     .fused = 1},
    {"6 4", "6 5", "6 5", {{"Gemm", "x t b", "y"}}},
    /* through a Transpose to channels first, with a residual that was one too */
    {"1 2 3 4",
     "1 2 3 5",
     "1 5 2 3",
     {{"MatMul", "x w", "m"},
      {"Add", "m b", "n"},
      {"Transpose", "n", "o"},
      {"Mul", "o c", "p"},
      {"Transpose", "r", "q"},
      {"Add", "p q", "y"}},
     .fused = 1},
    /* tokens first: the order of rows changes behind the product that makes heads, and before the
     * one that joins them */
    {"2 3 4",
     "2 3 5",
     "2 3 5",
     {{"Transpose", "x", "a"},
      {"MatMul", "a w", "m"},
      {"Add", "m b", "n"},
      {"Reshape", "n shape", "y"}},
     .fused = 1,
     .perm = "1 0 2",
     .shape = "[2,3,5]"},
    {"2 3 4",
     "2 3 5",
     "2 3 5",
     {{"Transpose", "x", "a"},
      {"Reshape", "a flat", "c0"},
      {"Gemm", "c0 t b", "m"},
      {"Reshape", "m tall", "n"},
      {"Transpose", "n", "o"},
      {"Add", "o r", "y"}},
     .fused = 1,
     .perm = "1 0 2"},
    /* another reader; a constant that changes the shape, or is not one per column */
    {"2 3 4",
     "2 3 5",
     "2 3 5",
     {{"MatMul", "x w", "m"}, {"Add", "b m", "n"}, {"Add", "m n", "y"}},
     .left = 2},
    {"2 3 4",
     "2 3 5",
     "2 3 5",
     {{"MatMul", "x w", "m"}, {"Add", "b m", "y"}},
     .left = 1,
     .also = "m"},
    {"3 4", "2 3 5", "1 3 5", {{"MatMul", "x w", "m"}, {"Add", "m long", "y"}}, .left = 1},
    {"2 3 4", "2 3 5", "2 3 5", {{"MatMul", "x w", "m"}, {"Add", "m column", "y"}}, .left = 1},
    {"2 3 4", "2 3 5", "2 3 5", {{"MatMul", "x w", "m"}, {"Add", "m m", "y"}}, .left = 1},
    /* weights that another node reads are not scaled */
    {"2 3 4",
     "2 3 5",
     "2 3 5",
     {{"MatMul", "x w", "m"}, {"Mul", "m s", "y"}, {"Neg", "x", "n"}, {"MatMul", "n w", "z"}},
     .left = 1,
     .also = "z"},
};

static sac_model *ended(const struct ending *e, bool optimise, struct proto *kept)
{
    static const float   numbers[20] = {0.5f, -1,    2,     0.25f, -0.75f, 1,     3,
                                        -2,   0.1f,  0.7f,  -0.3f, 4,      -1.5f, 0.6f,
                                        0.2f, -0.4f, 1.25f, 2.5f,  -3,     0.9f};
    static const int64_t shape[3] = {2, 3, 5}, tall[3] = {3, 2, 5}, flat[2] = {6, 4};
    static const struct {
        const char *name, *dims;
        int         count;
    } constants[] = {
        {"w", "4 5", 20},  {"t", "5 4", 20}, {"b", "5", 5},        {"s", "1 5", 5},
        {"c", "5 1 1", 5}, {"f", "", 1},     {"long", "1 1 5", 5}, {"column", "3 1", 3},
    };
    struct sac_model_params params = sac_model_params_default();
    struct proto            graph = {0};
    sac_model              *m = NULL;
    for (size_t i = 0; i < SAC_COUNT(constants); i++)
        proto_initializer(&graph, constants[i].name, 1, constants[i].dims, numbers,
                          (size_t)constants[i].count * sizeof *numbers);
    proto_initializer(&graph, "shape", 7, "3", shape, sizeof shape);
    proto_initializer(&graph, "tall", 7, "3", tall, sizeof tall);
    proto_initializer(&graph, "flat", 7, "2", flat, sizeof flat);
    proto_input(&graph, "x", 1, e->x);
    proto_input(&graph, "r", 1, e->r);
    for (int i = 0; i < 7 && e->nodes[i][0]; i++) {
        struct proto attrs = {0};
        if (strcmp(e->nodes[i][0], "Transpose") == 0)
            proto_attr_ints(&attrs, "perm", e->perm ? e->perm : "0 3 1 2");
        if (strcmp(e->nodes[i][0], "Gemm") == 0)
            proto_attr_int(&attrs, "transB", 1);
        proto_node(&graph, e->nodes[i][0], e->nodes[i][1], e->nodes[i][2],
                   attrs.size ? &attrs : NULL);
    }
    proto_output(&graph, "y", 1, e->y);
    if (e->also)
        proto_output(&graph, e->also, 1, e->y);
    params.optimise = params.free_batch = optimise;
    proto_model(kept, &graph, 20);
    setenv("SACCADE_WITHOUT", "chain", 1); /* which would make one of what is left */
    assert_sac_ok(
        sac_model_load_memory(device(), kept->bytes, kept->size, "test.onnx", &params, &m));
    unsetenv("SACCADE_WITHOUT");
    return m;
}

struct ending_counts {
    int         fused, left, shaped;
    const char *shape;
};

static void count_endings(void *user, const char *line)
{
    static const char *const parts[] = {" Add ",  " Sub ",  " Mul ",      " Div ",
                                        " Relu ", " Gelu ", " HardSwish "};
    struct ending_counts    *counts = user;
    const bool               fused = strstr(line, "FusedMatMul ") != NULL;
    counts->fused += fused;
    counts->shaped += fused && counts->shape && strstr(line, counts->shape);
    for (size_t i = 0; i < SAC_COUNT(parts); i++)
        counts->left += strstr(line, parts[i]) != NULL;
}

static sac_tensor *ramp(const char *words)
{
    float   numbers[64];
    int64_t dims[SAC_RANK_MAX];
    int     rank = 0;
    for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ')
        dims[rank++] = strtol(at, NULL, 10);
    for (int i = 0; i < 64; i++)
        numbers[i] = (float)(i * 7 % 11) * 0.3f - 1.5f;
    return tensor(SAC_F32, rank, dims, numbers);
}

static void what_follows_a_product_is_part_of_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(endings); i++) {
        const struct ending *e = &endings[i];
        sac_tensor          *in[2] = {ramp(e->x), ramp(e->r)}, *out[2][2] = {{NULL}};
        struct ending_counts counts = {.shape = e->shape};
        for (int k = 0; k < 2; k++) {
            struct proto kept = {0};
            sac_model   *m = ended(e, k, &kept);
            assert_sac_ok(sac_model_run(m, in, out[k]));
            if (k)
                sac_model_dump_steps(m, count_endings, &counts);
            sac_model_unref(&m);
            proto_free(&kept);
        }
        if (counts.fused != e->fused || counts.left != e->left ||
            counts.shaped != (e->shape != NULL))
            fail_msg("case %zu: %d fused, %d left", i, counts.fused, counts.left);
        for (int k = 0; k < 1 + (e->also != NULL); k++)
            expect(out[1][k], sac_tensor_desc_elements(sac_tensor_describe(out[0][k])),
                   sac_tensor_data(out[0][k]));
        for (int k = 0; k < 2; k++) {
            sac_tensor_unref(&in[k]);
            sac_tensor_unref(&out[0][k]);
            sac_tensor_unref(&out[1][k]);
        }
    }
}

/* A file may use the fused operators too. */
static void a_fused_product_is_checked(void **state)
{
    (void)state;
    static const struct {
        const char *inputs, *name, *sentence;
        int         value;
    } cases[] = {{"x w b", "activation", "activation 13", 13},
                 {"x w b", "activation", "activation -1", -1},
                 {"x w b", "residual", "residual 1, but input 3 is missing", 1},
                 {"x w b r", "residual", "residual 3", 3},
                 {"x w b r", "residual", "residual 0, but input 3 is there", 0},
                 {"x w b x", "residual", "the residual's shape is not the output's", 2},
                 {"x w x", "residual", "input 2 is not one number for each of 2 columns", 0},
                 {"x r", "residual", "a product over 3 and 1 numbers", 0},
                 {"b w", "residual", "a product of 1 by 2 dimensions", 0}};
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        static const float numbers[6];
        struct proto       graph = {0}, kept = {0}, attrs = {0};
        sac_model         *m = NULL;
        proto_initializer(&graph, "w", 1, "3 2", numbers, sizeof numbers);
        proto_initializer(&graph, "b", 1, "2", numbers, 2 * sizeof *numbers);
        proto_initializer(&graph, "r", 1, "1 2", numbers, 2 * sizeof *numbers);
        proto_input(&graph, "x", 1, "1 3");
        proto_attr_int(&attrs, cases[i].name, cases[i].value);
        proto_string(&attrs, 7, "saccade"); /* the node's domain */
        proto_node(&graph, "FusedMatMul", cases[i].inputs, "y", &attrs);
        proto_output(&graph, "y", 1, "1 2");
        assert_sac_error(load(&graph, NULL, &kept, &m), SAC_ERR_FORMAT);
        if (!strstr(why(), cases[i].sentence))
            fail_msg("%s, not %s", why(), cases[i].sentence);
        proto_free(&kept);
    }
}

/* While a dim is open, a node that fits no shape is not refused at load, and the file may declare
 * the type of its output. The passes must not take its attributes for checked. */
static void passes_trust_no_declared_type(void **state)
{
    (void)state;
    static const char *const perms[] = {"0 1000000000 1", "0 -1 1", "0 1 1"};
    for (size_t i = 0; i < SAC_COUNT(perms); i++) {
        struct proto graph = {0}, kept = {0}, attrs = {0};
        sac_model   *m = NULL;
        proto_input(&graph, "x", 1, "? 2 2");
        proto_attr_ints(&attrs, "perm", perms[i]);
        proto_node(&graph, "Transpose", "x", "y", &attrs);
        proto_output(&graph, "y", 1, "? 2 2");
        assert_sac_ok(load(&graph, NULL, &kept, &m));
        sac_tensor *in = F32(DIMS(1, 2, 2), {1, 2, 3, 4}), *out = NULL;
        assert_sac_error(sac_model_run(m, &in, &out), SAC_ERR_FORMAT);
        assert_non_null(strstr(why(), "layer 0 (Transpose)"));
        sac_tensor_unref(&in);
        sac_model_unref(&m);
        proto_free(&kept);
    }
}

static void find_conversion(void *user, const char *line)
{
    *(int *)user += strstr(line, "(convert)") != NULL;
}

/* Tokens that become a picture, as transformers have it: the Transpose gives channels last, which
 * is how the convolution reads it and how the way back begins. */
static void tokens_are_a_picture_in_channels_last(void **state)
{
    (void)state;
    struct proto       graph = {0}, kept = {0}, attrs = {0};
    sac_model         *m = NULL;
    static const float weights[2 * 2] = {0, 1, 2, 0};
    const int64_t      picture[] = {1, 2, 2, 3}, tokens[] = {1, 2, 6};
    float              x[6 * 2], want[6 * 2];
    int                conversions = 0;
    for (int i = 0; i < 6; i++) {
        x[2 * i] = (float)i;
        x[2 * i + 1] = (float)-i;
        want[2 * i] = 0;
        want[2 * i + 1] = (float)(2 * i);
    }
    proto_initializer(&graph, "w", 1, "2 2 1 1", weights, sizeof weights);
    proto_initializer(&graph, "to", 7, "4", picture, sizeof picture);
    proto_initializer(&graph, "back", 7, "3", tokens, sizeof tokens);
    proto_input(&graph, "x", 1, "1 6 2");
    proto_attr_ints(&attrs, "perm", "0 2 1");
    proto_node(&graph, "Transpose", "x", "a", &attrs);
    proto_node(&graph, "Reshape", "a to", "b", NULL);
    proto_node(&graph, "Conv", "b w", "c", NULL);
    proto_node(&graph, "Reshape", "c back", "d", NULL);
    proto_attr_ints(&attrs, "perm", "0 2 1");
    proto_node(&graph, "Transpose", "d", "e", &attrs);
    proto_node(&graph, "Relu", "e", "y", NULL);
    proto_output(&graph, "y", 1, "1 6 2");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    sac_tensor *in = F32(DIMS(1, 6, 2), {[11] = 0}), *out = NULL;
    memcpy(sac_tensor_data(in), x, sizeof x);
    assert_sac_ok(sac_model_run(m, &in, &out));
    expect(out, 12, want);
    sac_model_dump_steps(m, find_conversion, &conversions);
    if (sac_cpu_level() >= SAC_CPU_AVX2)
        assert_int_equal(conversions, 0);
    sac_tensor_unref(&in);
    sac_tensor_unref(&out);
    sac_model_unref(&m);
    proto_free(&kept);
}

/* RGB to BGR before a convolution whose weights are for more channels than there are. */
static void weights_of_other_channels_stay_as_they_are(void **state)
{
    (void)state;
    struct proto       graph = {0}, kept = {0}, attrs = {0};
    sac_model         *m = NULL;
    static const float weights[40];
    proto_initializer(&graph, "w", 1, "1 40 1 1", weights, sizeof weights);
    proto_input(&graph, "x", 1, "? 3 1 1");
    proto_attr_int(&attrs, "axis", 1);
    proto_node(&graph, "Split", "x", "r g b", &attrs);
    proto_attr_int(&attrs, "axis", 1);
    proto_node(&graph, "Concat", "b g r", "t", &attrs);
    proto_node(&graph, "Conv", "t w", "y", NULL);
    proto_output(&graph, "y", 1, "? 1 1 1");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    sac_tensor *in = F32(DIMS(1, 3, 1, 1), {1, 2, 3}), *out = NULL;
    assert_sac_error(sac_model_run(m, &in, &out), SAC_ERR_FORMAT);
    sac_tensor_unref(&in);
    sac_model_unref(&m);
    proto_free(&kept);
}

/* A convolution may have no output channels: there is nothing to scale, and nothing to divide
 * by. */
static void a_convolution_into_nothing_is_left_alone(void **state)
{
    (void)state;
    struct proto graph = {0}, kept = {0};
    sac_model   *m = NULL;
    float        two = 2;
    proto_initializer(&graph, "w", 1, "0 3 1 1", &two, 0);
    proto_initializer(&graph, "two", 1, "", &two, sizeof two);
    proto_input(&graph, "x", 1, "? 3 1 1");
    proto_node(&graph, "Conv", "x w", "a", NULL);
    proto_node(&graph, "Mul", "a two", "y", NULL);
    proto_output(&graph, "y", 1, "? 0 1 1");
    assert_sac_ok(load(&graph, NULL, &kept, &m));
    sac_tensor *in = F32(DIMS(1, 3, 1, 1), {1, 2, 3}), *out = NULL;
    assert_sac_ok(sac_model_run(m, &in, &out));
    assert_int_equal(sac_tensor_desc_elements(sac_tensor_describe(out)), 0);
    sac_tensor_unref(&in);
    sac_tensor_unref(&out);
    sac_model_unref(&m);
    proto_free(&kept);
}

static void refuse_file(const char *name, const char *text, size_t size, const char *words)
{
    char       path[64];
    sac_model *m = NULL;
    snprintf(path, sizeof path, "/tmp/saccade-test-%d%s", (int)getpid(), name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, size, f), size);
    fclose(f);
    sac_result res = sac_model_load(device(), path, NULL, &m);
    unlink(path);
    assert_int_equal(res, SAC_ERR_FORMAT);
    assert_memory_equal(why(), path, strlen(path));
    if (!strstr(why(), words))
        fail_msg("%s", why());
}

static void files_that_are_no_models_are_refused(void **state)
{
    (void)state;
    struct proto graph = {0}, model = {0};
    sac_model   *m = NULL;
    refuse_file(".onnx", "", 0, "is empty");
    refuse_file(".onnx", "not a model\n", 12, "no ONNX model");
    refuse_file(".engine", "ptrtXXXX", 8, "bring the ONNX file");
    refuse_file(".pt", "PK\3\4", 4, "export the network to ONNX");
    proto_input(&graph, "x", 1, "1");
    proto_node(&graph, "Relu", "x", "y", NULL);
    proto_output(&graph, "y", 1, "1");
    proto_model(&model, &graph, 17);
    refuse_file(".onnx", (char *)model.bytes, model.size - 20, "truncated");
    proto_free(&model);
    assert_sac_error(sac_model_load(device(), "/nonexistent.onnx", NULL, &m), SAC_ERR_IO);
    assert_sac_error(sac_model_load(device(), "/tmp", NULL, &m), SAC_ERR_FORMAT);
}

static void inspection_goes_past_missing_operators(void **state)
{
    (void)state;
    struct proto graph = {0}, model = {0};
    sac_model   *m = NULL;
    char         path[64];
    float        w[2] = {1, 2};
    proto_input(&graph, "x", 1, "? 2");
    proto_initializer(&graph, "w", 1, "2", w, sizeof w);
    proto_node(&graph, "Mul", "x w", "a", NULL);
    proto_node(&graph, "FooBar", "a", "b", NULL);
    proto_node(&graph, "Relu", "b", "y", NULL);
    proto_output(&graph, "y", 1, "? 2");
    proto_model(&model, &graph, 17);
    snprintf(path, sizeof path, "/tmp/saccade-test-%d.onnx", (int)getpid());
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(model.bytes, 1, model.size, f), model.size);
    fclose(f);
    assert_sac_ok(sac_model_open_for_inspection(device(), path, NULL, &m));
    unlink(path);
    struct sac_model_info info;
    sac_model_inspect(m, &info);
    assert_int_equal(info.operator_count, 3);
    assert_int_equal(info.parameters, 2);
    assert_int_equal(info.operators[0].supported, 1);
    assert_int_equal(info.operators[1].supported, 0);
    assert_string_equal(info.operators[1].why, "saccade has no such operator");
    sac_tensor *in = F32(DIMS(1, 2), {1, 2}), *out = NULL;
    assert_sac_error(sac_model_run(m, &in, &out), SAC_ERR_UNSUPPORTED);
    sac_tensor_unref(&in);
    sac_model_unref(&m);
    proto_free(&model);
}

/* ---- allocation failures ---- */

static sac_result load_and_run(const struct proto *bytes)
{
    sac_model             *m = NULL;
    sac_tensor            *out[2] = {NULL};
    float                  x[12] = {0};
    sac_tensor            *in = NULL;
    struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 3, .shape = {3, 2, 2}};
    sac_result             res = sac_tensor_create(device(), &desc, "test", &in);
    if (res == SAC_OK) {
        memcpy(sac_tensor_data(in), x, sizeof x);
        res = sac_model_load_memory(device(), bytes->bytes, bytes->size, "test.onnx", NULL, &m);
    }
    if (res == SAC_OK)
        res = sac_model_run(m, &in, out);
    if (res != SAC_OK)
        assert_null(out[0]);
    sac_tensor_unref(&in);
    sac_tensor_unref(&out[0]);
    sac_model_unref(&m);
    return res;
}

/* Each allocation of load, batch check and run fails once: an error or, where the memory was only
 * wanted, success; no crash, and no leak (the address sanitizer and the pool's books tell). */
static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct proto          graph = {0}, kept = {0};
    struct sac_pool_stats before, after;
    int                   faults = 0;
    batch_graph(&graph, "d d");
    proto_model(&kept, &graph, 17);
    assert_int_equal(load_and_run(&kept), SAC_OK);
    sac_device_pool_stats(device(), &before);
    for (long n = 1; n < 100000; n++) {
        sac_alloc_fail_at(n);
        sac_result res = load_and_run(&kept);
        bool       reached = res != SAC_OK;
        sac_alloc_fail_at(0);
        if (reached)
            assert_int_equal(res, SAC_ERR_MEMORY);
        faults += reached;
        if (!reached && n > 500)
            break;
    }
    assert_true(faults > 50);
    sac_device_pool_stats(device(), &after);
    assert_true(after.bytes_live == before.bytes_live);
    proto_free(&kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_are_independent),
        cmocka_unit_test(in_place_does_not_eat_its_other_input),
        cmocka_unit_test(joins_any_number_of_parts),
        cmocka_unit_test(shape_arithmetic_disappears),
        cmocka_unit_test(a_pad_by_nothing_disappears),
        cmocka_unit_test(data_may_decide_shapes),
        cmocka_unit_test(if_takes_a_branch),
        cmocka_unit_test(loop_carries_and_stacks),
        cmocka_unit_test(a_loop_needs_no_condition),
        cmocka_unit_test(a_loop_of_too_few_body_inputs_is_refused),
        cmocka_unit_test(plans_are_kept_by_shape),
        cmocka_unit_test(a_batch_of_one_is_freed),
        cmocka_unit_test(without_freeing_it_runs_one_by_one),
        cmocka_unit_test(a_batch_that_mixes_stays_fixed),
        cmocka_unit_test(what_is_no_stack_is_shared),
        cmocka_unit_test(a_wrong_freeing_is_found),
        cmocka_unit_test(a_freeing_that_cannot_run_is_found),
        cmocka_unit_test(a_shape_asked_of_a_picture_stays_open),
        cmocka_unit_test(means_along_the_wrong_axis_are_no_norm),
        cmocka_unit_test(missing_operators_are_named),
        cmocka_unit_test(wrong_inputs_are_named),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(folding_is_bounded_as_a_whole),
        cmocka_unit_test(an_empty_batch_gives_an_empty_result),
        cmocka_unit_test(nan_stays_nan),
        cmocka_unit_test(what_is_masked_has_no_share),
        cmocka_unit_test(the_size_of_minus_zero_is_zero),
        cmocka_unit_test(a_part_left_out_takes_its_place),
        cmocka_unit_test(gates_and_their_means_are_one_step),
        cmocka_unit_test(a_layer_of_pads_is_none),
        cmocka_unit_test(a_frozen_norm_is_folded),
        cmocka_unit_test(a_spelled_gelu_is_one_step),
        cmocka_unit_test(a_convolution_takes_the_activation_behind_it),
        cmocka_unit_test(what_follows_a_product_is_part_of_it),
        cmocka_unit_test(a_fused_product_is_checked),
        cmocka_unit_test(passes_trust_no_declared_type),
        cmocka_unit_test(tokens_are_a_picture_in_channels_last),
        cmocka_unit_test(weights_of_other_channels_stay_as_they_are),
        cmocka_unit_test(a_convolution_into_nothing_is_left_alone),
        cmocka_unit_test(files_that_are_no_models_are_refused),
        cmocka_unit_test(inspection_goes_past_missing_operators),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("engine/model", tests, NULL, close_device);
}
