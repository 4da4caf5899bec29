/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/onnx/onnx.h"
#include "tests/engine/proto.h"
#include "tests/test.h"

struct reading {
    struct sac_arena arena;
    struct sac_onnx  file;
    sac_result       res;
    char             why[512];
};

/* Takes p. The bytes are read from an exact copy, so that over-reads show, which stays in *kept. */
static struct reading read_bytes(struct proto *p, const char *folder, uint8_t **kept)
{
    struct reading r = {0};
    *kept = malloc(p->size ? p->size : 1);
    if (p->size)
        memcpy(*kept, p->bytes, p->size);
    struct sac_onnx_source source = {*kept, p->size, folder};
    proto_free(p);
    r.res = sac_onnx_read(test_context(), &source, &r.arena, &r.file);
    sac_context_last_error(test_context(), r.why, sizeof r.why);
    return r;
}

static void finish(struct reading *r, uint8_t *kept)
{
    sac_onnx_finish(&r->file);
    sac_arena_finish(&r->arena);
    free(kept);
}

/* The model must be refused with this code and a sentence that holds `words`. Takes graph. */
static void refuse_graph(struct proto *graph, sac_result code, const char *words)
{
    struct proto model = {0};
    uint8_t     *kept;
    proto_model(&model, graph, 17);
    struct reading r = read_bytes(&model, NULL, &kept);
    if (r.res != code || !strstr(r.why, words))
        fail_msg("got %s: %s; wanted %s: ...%s...", sac_result_name(r.res), r.why,
                 sac_result_name(code), words);
    finish(&r, kept);
}

static void reads_a_model(void **state)
{
    (void)state;
    struct proto graph = {0}, model = {0}, attrs = {0}, pair = {0};
    float        ones[4] = {1, 2, 3, 4};
    uint8_t     *kept;
    proto_node(&graph, "Relu", "b", "c", NULL); /* before its input is made: sorted later */
    proto_attr_ints(&attrs, "perm", "1 0");
    proto_node(&graph, "Transpose", "a", "b", &attrs);
    proto_node(&graph, "Add", "c w", "d", NULL);
    proto_input(&graph, "a", 1, "? 4");
    proto_input(&graph, "w", 1, "4 1"); /* as files before IR version 4 list initializers */
    proto_initializer(&graph, "w", 1, "4 1", ones, sizeof ones);
    proto_output(&graph, "d", 1, "4 ?");
    proto_model(&model, &graph, 17);
    proto_string(&pair, 1, "order");
    proto_string(&pair, 2, "BGR");
    proto_message(&model, 14, &pair);
    struct reading r = read_bytes(&model, NULL, &kept);
    assert_int_equal(r.res, SAC_OK);
    const struct sac_graph *g = r.file.graph;
    assert_int_equal(r.file.opset, 17);
    assert_int_equal(r.file.node_count, 3);
    assert_string_equal(r.file.producer, "saccade tests");
    assert_string_equal(r.file.metadata[0].value, "BGR");
    assert_int_equal(g->input_count, 1);
    assert_int_equal(g->inputs[0]->dims[0], SAC_DIM_OPEN);
    assert_int_equal(g->inputs[0]->dims[1], 4);
    assert_string_equal(g->nodes[0]->op_type, "Transpose");
    assert_string_equal(g->nodes[1]->op_type, "Relu");
    assert_int_equal(g->nodes[1]->index, 0); /* its place in the file */
    assert_ptr_equal(g->nodes[2]->inputs[0], g->nodes[1]->outputs[0]);
    assert_memory_equal(g->nodes[2]->inputs[1]->data, ones, sizeof ones);
    assert_int_equal(g->outputs[0]->uses, 1);
    finish(&r, kept);
}

static void typed_data_of_every_kind(void **state)
{
    (void)state;
    struct proto graph = {0}, model = {0}, t = {0};
    uint8_t     *kept;
    proto_tensor(&t, "bytes", 3, "3", NULL, 0); /* int8 in int32_data, packed: 1, -1, 127 */
    proto_bytes(&t, 5, "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x7f", 12);
    proto_message(&graph, 5, &t);
    proto_tensor(&t, "floats", 1, "2", NULL, 0); /* one by one */
    proto_float(&t, 4, 1.5f);
    proto_float(&t, 4, -2);
    proto_message(&graph, 5, &t);
    proto_tensor(&t, "halves", 10, "1", NULL, 0);
    proto_int(&t, 5, 0x3c00);
    proto_message(&graph, 5, &t);
    proto_tensor(&t, "truth", 9, "2", "\x05\x00", 2); /* bools other than 0 and 1 */
    proto_message(&graph, 5, &t);
    proto_node(&graph, "Foo", "bytes floats halves truth", "y", NULL);
    proto_output(&graph, "y", 1, "");
    proto_model(&model, &graph, 17);
    struct reading r = read_bytes(&model, NULL, &kept);
    assert_int_equal(r.res, SAC_OK);
    struct sac_value **in = r.file.graph->nodes[0]->inputs;
    assert_memory_equal(in[0]->data, "\x01\xff\x7f", 3);
    assert_true(((const float *)in[1]->data)[1] == -2);
    assert_int_equal(((const uint16_t *)in[2]->data)[0], 0x3c00);
    assert_memory_equal(in[3]->data, "\x01\x00", 2);
    assert_null(r.file.graph->nodes[0]->op);
    finish(&r, kept);
}

static void sizes_that_lie_are_refused(void **state)
{
    (void)state;
    struct proto graph = {0}, t = {0};
    float        four[4] = {0};
    proto_initializer(&graph, "w", 1, "1000000 1000000", four, sizeof four);
    refuse_graph(&graph, SAC_ERR_FORMAT, "tensor 'w' says");
    proto_initializer(&graph, "w", 1, "4294967296 4294967296 4294967296", four, sizeof four);
    refuse_graph(&graph, SAC_ERR_FORMAT, "impossible dims");
    proto_initializer(&graph, "w", 1, "-4", four, sizeof four);
    refuse_graph(&graph, SAC_ERR_FORMAT, "impossible dims");
    proto_initializer(&graph, "w", 1, "1 1 1 1 1 1 1 1 1", four, 4);
    refuse_graph(&graph, SAC_ERR_FORMAT, "damaged");
    proto_initializer(&graph, "w", 1, "4", NULL, 0);
    refuse_graph(&graph, SAC_ERR_FORMAT, "has 0 elements");
    proto_tensor(&t, "w", 7, "2", NULL, 0);
    proto_bytes(&t, 7, "\x01\x02\x03", 3);
    proto_message(&graph, 5, &t);
    refuse_graph(&graph, SAC_ERR_FORMAT, "tensor 'w' says 2 elements");
    proto_initializer(&graph, "w", 8, "1", four, 4);
    refuse_graph(&graph, SAC_ERR_UNSUPPORTED, "of type string");
    proto_initializer(&graph, "w", 99, "1", four, 4);
    refuse_graph(&graph, SAC_ERR_UNSUPPORTED, "of type unknown (99)");
}

/* An input of one field of TypeProto. */
static void proto_typed_input(struct proto *graph, const char *name, unsigned kind, int elements)
{
    struct proto info = {0}, type = {0}, inside = {0};
    proto_string(&info, 1, name);
    if (elements)
        proto_int(&inside, 1, elements);
    if (kind)
        proto_message(&type, kind, &inside);
    proto_message(&info, 2, &type);
    proto_message(graph, 11, &info);
}

static void inputs_that_hold_no_numbers_are_refused(void **state)
{
    (void)state;
    static const struct {
        unsigned    kind; /* field of TypeProto */
        int         elements;
        sac_result  res;
        const char *why;
    } cases[] = {
        {1, 8, SAC_ERR_UNSUPPORTED, "input 'x' is a tensor of type string; have float"},
        {1, 14, SAC_ERR_UNSUPPORTED, "input 'x' is a tensor of type complex64"},
        {1, 22, SAC_ERR_UNSUPPORTED, "input 'x' is a tensor of type int4"},
        {1, 99, SAC_ERR_UNSUPPORTED, "input 'x' is a tensor of type unknown"},
        {4, 0, SAC_ERR_UNSUPPORTED, "input 'x' is a sequence; have tensors"},
        {9, 0, SAC_ERR_UNSUPPORTED, "input 'x' is an optional value"},
        {0, 0, SAC_ERR_FORMAT, "input 'x' has no type"},
    };
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        struct proto graph = {0};
        proto_typed_input(&graph, "x", cases[i].kind, cases[i].elements);
        proto_node(&graph, "Identity", "x", "y", NULL);
        proto_output(&graph, "y", 1, "1");
        refuse_graph(&graph, cases[i].res, cases[i].why);
    }
}

static void graphs_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    struct proto graph = {0};
    char         name[5001];
    proto_node(&graph, "Relu", "nowhere", "y", NULL);
    refuse_graph(&graph, SAC_ERR_FORMAT, "layer 0 (Relu): its input 'nowhere' is made by no node");
    proto_node(&graph, "Relu", "b", "a", NULL);
    proto_node(&graph, "Abs", "a", "b", NULL);
    proto_output(&graph, "b", 1, "1");
    refuse_graph(&graph, SAC_ERR_FORMAT, "a cycle");
    proto_input(&graph, "x", 1, "1");
    proto_node(&graph, "Relu", "x", "y", NULL);
    proto_node(&graph, "Abs", "x", "y", NULL);
    refuse_graph(&graph, SAC_ERR_FORMAT, "'y' is made twice");
    proto_input(&graph, "x", 1, "1");
    proto_node(&graph, "Relu", "x", "x", NULL);
    refuse_graph(&graph, SAC_ERR_FORMAT, "'x' is made twice");
    proto_output(&graph, "y\x1b[31m", 1, "1"); /* no escapes into a terminal */
    refuse_graph(&graph, SAC_ERR_FORMAT, "output 'y?[31m' is made by no node");
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    proto_input(&graph, name, 1, "1");
    refuse_graph(&graph, SAC_ERR_UNSUPPORTED, "a name of 5000 bytes");
}

/* If in If in If ...: each level a branch with the next. */
static void nesting_is_bounded(void **state)
{
    (void)state;
    struct proto inner = {0};
    proto_node(&inner, "Abs", "c", "y", NULL);
    proto_output(&inner, "y", 9, "");
    for (int i = 0; i < 40; i++) {
        struct proto outer = {0}, attrs = {0};
        proto_attr_graph(&attrs, "then_branch", &inner);
        proto_node(&outer, "If", "c", "y", &attrs);
        proto_output(&outer, "y", 9, "");
        inner = outer;
    }
    proto_input(&inner, "c", 9, "");
    refuse_graph(&inner, SAC_ERR_UNSUPPORTED, "nested deeper");
}

/* f0 calls f1 twice, f1 calls f2 twice, ...: 2^15 nodes of a few hundred bytes, then more. */
static void add_function(struct proto *model, const char *name, const char *calls)
{
    struct proto f = {0};
    proto_string(&f, 1, name);
    proto_string(&f, 4, "a");
    proto_string(&f, 5, "b");
    proto_string(&f, 10, "");
    for (int i = 0; i < 8; i++) {
        struct proto node = {0};
        char         out[8];
        snprintf(out, sizeof out, i ? "t%d" : "b", i);
        proto_string(&node, 1, "a");
        proto_string(&node, 2, out);
        proto_string(&node, 4, calls);
        proto_message(&f, 7, &node);
    }
    proto_message(model, 25, &f);
}

static void functions_cannot_multiply_without_end(void **state)
{
    (void)state;
    struct proto graph = {0}, model = {0};
    uint8_t     *kept;
    proto_input(&graph, "x", 1, "1");
    proto_node(&graph, "f0", "x", "y", NULL);
    proto_output(&graph, "y", 1, "1");
    proto_model(&model, &graph, 17);
    for (int i = 0; i < 12; i++) {
        char name[8], calls[8];
        snprintf(name, sizeof name, "f%d", i);
        snprintf(calls, sizeof calls, "f%d", i + 1);
        add_function(&model, name, calls);
    }
    struct reading r = read_bytes(&model, NULL, &kept);
    assert_int_equal(r.res, SAC_ERR_UNSUPPORTED);
    finish(&r, kept);
    proto_node(&graph, "me", "x", "y", NULL);
    proto_input(&graph, "x", 1, "1");
    proto_output(&graph, "y", 1, "1");
    proto_model(&model, &graph, 17);
    add_function(&model, "me", "me");
    r = read_bytes(&model, NULL, &kept);
    assert_int_equal(r.res, SAC_ERR_UNSUPPORTED);
    finish(&r, kept);
}

static void functions_are_expanded(void **state)
{
    (void)state;
    struct proto graph = {0}, model = {0}, f = {0};
    uint8_t     *kept;
    proto_input(&graph, "x", 1, "1");
    proto_node(&graph, "twice", "x", "y", NULL);
    proto_node(&graph, "twice", "y", "z", NULL);
    proto_output(&graph, "z", 1, "1");
    proto_model(&model, &graph, 17);
    proto_string(&f, 1, "twice");
    proto_string(&f, 4, "a");
    proto_string(&f, 5, "c");
    struct proto node = {0};
    proto_string(&node, 1, "a");
    proto_string(&node, 2, "b");
    proto_string(&node, 4, "Abs");
    proto_message(&f, 7, &node);
    proto_string(&node, 1, "b");
    proto_string(&node, 1, "a");
    proto_string(&node, 2, "c");
    proto_string(&node, 4, "Add");
    proto_message(&f, 7, &node);
    proto_message(&model, 25, &f);
    struct reading r = read_bytes(&model, NULL, &kept);
    assert_int_equal(r.res, SAC_OK);
    const struct sac_graph *g = r.file.graph;
    assert_int_equal(g->node_count, 4);
    assert_string_equal(g->nodes[3]->op_type, "Add");
    assert_ptr_equal(g->nodes[3]->outputs[0], g->outputs[0]);
    assert_ptr_equal(g->nodes[2]->inputs[0], g->nodes[1]->outputs[0]);
    finish(&r, kept);
}

/* Cut anywhere, or with any byte changed, a model is read or refused; never a crash. */
static void survives_cuts_and_changes(void **state)
{
    (void)state;
    struct proto graph = {0}, model = {0}, attrs = {0};
    float        w[8] = {0};
    proto_attr_ints(&attrs, "pads", "1 1 1 1");
    proto_node(&graph, "Conv", "x w", "y", &attrs);
    proto_input(&graph, "x", 1, "1 2 4 4");
    proto_initializer(&graph, "w", 1, "1 2 2 2", w, sizeof w);
    proto_output(&graph, "y", 1, "1 1 5 5");
    proto_model(&model, &graph, 17);
    for (size_t i = 0; i < model.size * 9; i++) {
        struct proto copy = {0};
        uint8_t     *kept;
        proto_raw(&copy, model.bytes, i < model.size ? i : model.size);
        if (i >= model.size)
            copy.bytes[i % model.size] ^= (uint8_t)(1 << (i / model.size - 1));
        struct reading r = read_bytes(&copy, NULL, &kept);
        finish(&r, kept);
    }
    proto_free(&model);
}

/* ---- external data ---- */

static void write_file(const char *folder, const char *name, const void *bytes, size_t size)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    fclose(f);
}

static void add_pair(struct proto *t, const char *key, const char *value)
{
    struct proto pair = {0};
    proto_string(&pair, 1, key);
    proto_string(&pair, 2, value);
    proto_message(t, 13, &pair);
}

static struct reading read_external(const char *folder, const char *location, const char *offset,
                                    const char *length, uint8_t **kept)
{
    struct proto graph = {0}, model = {0}, t = {0};
    proto_tensor(&t, "w", 1, "4", NULL, 0);
    add_pair(&t, "location", location);
    add_pair(&t, "offset", offset);
    if (length)
        add_pair(&t, "length", length);
    proto_int(&t, 14, 1);
    proto_message(&graph, 5, &t);
    proto_node(&graph, "Abs", "w", "y", NULL);
    proto_output(&graph, "y", 1, "4");
    proto_model(&model, &graph, 17);
    return read_bytes(&model, folder, kept);
}

static void refuse_external(const char *folder, const char *location, const char *offset,
                            const char *length, sac_result code)
{
    uint8_t       *kept;
    struct reading r = read_external(folder, location, offset, length, &kept);
    if (r.res != code)
        fail_msg("'%s' at %s: %s: %s", location, offset, sac_result_name(r.res), r.why);
    assert_non_null(strstr(r.why, "tensor 'w'"));
    finish(&r, kept);
}

static void external_data_stays_in_its_folder(void **state)
{
    (void)state;
    char  base[] = "/tmp/saccade-test-XXXXXX", inside[64], path[128];
    float w[6] = {9, 1, 2, 3, 4, 9};
    assert_non_null(mkdtemp(base));
    snprintf(inside, sizeof inside, "%s/model", base);
    assert_int_equal(mkdir(inside, 0700), 0);
    write_file(base, "outside.bin", w, sizeof w);
    write_file(inside, "w.bin", w, sizeof w);
    snprintf(path, sizeof path, "%s/link.bin", inside);
    assert_int_equal(symlink("../outside.bin", path), 0);

    uint8_t       *kept;
    struct reading r = read_external(inside, "w.bin", "4", "16", &kept);
    assert_int_equal(r.res, SAC_OK);
    assert_memory_equal(r.file.graph->nodes[0]->inputs[0]->data, w + 1, 16);
    finish(&r, kept);
    r = read_external(inside, "w.bin", "8", NULL, &kept);
    assert_int_equal(r.res, SAC_OK);
    finish(&r, kept);

    refuse_external(inside, "w.bin", "12", "16", SAC_ERR_FORMAT);
    refuse_external(inside, "w.bin", "0", "12", SAC_ERR_FORMAT);
    refuse_external(inside, "w.bin", "18446744073709551615", "16", SAC_ERR_FORMAT);
    refuse_external(inside, "w.bin", "99999999999999999999", "16", SAC_ERR_FORMAT);
    refuse_external(inside, "w.bin", "-4", "16", SAC_ERR_FORMAT);
    refuse_external(inside, "../outside.bin", "0", "16", SAC_ERR_FORMAT);
    refuse_external(inside, "link.bin", "0", "16", SAC_ERR_FORMAT);
    refuse_external(inside, "/etc/passwd", "0", "16", SAC_ERR_FORMAT);
    refuse_external(inside, "missing.bin", "0", "16", SAC_ERR_IO);
    refuse_external(inside, ".", "0", "16", SAC_ERR_FORMAT);
    refuse_external(NULL, "w.bin", "0", "16", SAC_ERR_UNSUPPORTED);

    unlink(path);
    snprintf(path, sizeof path, "%s/w.bin", inside);
    unlink(path);
    snprintf(path, sizeof path, "%s/outside.bin", base);
    unlink(path);
    rmdir(inside);
    rmdir(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_model),
        cmocka_unit_test(typed_data_of_every_kind),
        cmocka_unit_test(sizes_that_lie_are_refused),
        cmocka_unit_test(inputs_that_hold_no_numbers_are_refused),
        cmocka_unit_test(graphs_that_make_no_sense_are_refused),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(functions_cannot_multiply_without_end),
        cmocka_unit_test(functions_are_expanded),
        cmocka_unit_test(survives_cuts_and_changes),
        cmocka_unit_test(external_data_stays_in_its_folder),
    };
    return cmocka_run_group_tests_name("engine/onnx", tests, NULL, NULL);
}
