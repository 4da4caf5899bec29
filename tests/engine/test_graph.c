/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "engine/ops/op.h"
#include "tests/test.h"

struct fixture {
    struct sac_arena  arena;
    struct sac_graph *g;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->g = sac_graph_create(test_context(), &f->arena, NULL);
    assert_non_null(f->g);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    sac_arena_finish(&f->arena);
    free(f);
    return 0;
}

static struct sac_node *node(struct sac_graph *g, const char *op, struct sac_value *a,
                             struct sac_value *b, struct sac_value *out)
{
    struct sac_node *n = sac_op_node(g, "", op, b ? 2 : 1, 1, NULL);
    assert_non_null(n);
    n->inputs[0] = a;
    if (b)
        n->inputs[1] = b;
    n->outputs[0] = out;
    return n;
}

static void set_output(struct sac_graph *g, struct sac_value *v)
{
    g->outputs = sac_arena_alloc(g->arena, sizeof *g->outputs);
    g->outputs[0] = v;
    g->output_count = 1;
}

/* Out of order, with a node that nobody reads: sorted, and that one gone. */
static void refresh_orders_and_drops(void **state)
{
    struct sac_graph *g = ((struct fixture *)*state)->g;
    struct sac_value *x = sac_graph_value(g, "x"), *a = sac_graph_value(g, "a");
    struct sac_value *b = sac_graph_value(g, "b"), *y = sac_graph_value(g, "y");
    struct sac_value *dead = sac_graph_value(g, "dead");
    struct sac_node  *last = node(g, "Add", a, b, y);
    node(g, "Neg", a, NULL, dead);
    struct sac_node *second = node(g, "Abs", a, NULL, b), *first = node(g, "Relu", x, NULL, a);
    set_output(g, y);
    assert_sac_ok(sac_graph_refresh(g));
    assert_int_equal(g->node_count, 3);
    assert_ptr_equal(g->nodes[0], first);
    assert_ptr_equal(g->nodes[1], second);
    assert_ptr_equal(g->nodes[2], last);
    assert_null(x->producer);
    assert_ptr_equal(b->producer, second);
    assert_int_equal(a->uses, 2);
    assert_int_equal(y->uses, 1);
    assert_int_equal(dead->uses, 0);
    assert_ptr_equal(sac_value_only_reader(b), last);
    assert_null(sac_value_only_reader(a)); /* two */
    assert_null(sac_value_only_reader(y)); /* an output */
}

static void an_order_that_fits_stays(void **state)
{
    struct sac_graph *g = ((struct fixture *)*state)->g;
    struct sac_value *v = sac_graph_value(g, "x"), *sum = v;
    struct sac_node  *nodes[64];
    for (int i = 0; i < 64; i += 2) { /* independent nodes, then what joins them */
        struct sac_value *a = sac_graph_value(g, "a"), *s = sac_graph_value(g, "s");
        nodes[i] = node(g, "Abs", v, NULL, a);
        nodes[i + 1] = node(g, "Add", sum, a, s);
        sum = s;
    }
    set_output(g, sum);
    for (int round = 0; round < 2; round++) {
        assert_sac_ok(sac_graph_refresh(g));
        assert_int_equal(g->node_count, 64);
        for (int i = 0; i < 64; i++)
            assert_ptr_equal(g->nodes[i], nodes[i]);
    }
}

/* Deeper than a C stack would take, and the wrong way round. */
static void a_long_chain_is_ordered(void **state)
{
    enum { LENGTH = 60000 };
    struct sac_graph *g = ((struct fixture *)*state)->g;
    struct sac_value *v = sac_graph_value(g, "y");
    set_output(g, v);
    for (int i = 0; i < LENGTH; i++) {
        struct sac_value *before = sac_graph_value(g, "");
        node(g, "Relu", before, NULL, v);
        v = before;
    }
    assert_sac_ok(sac_graph_refresh(g));
    assert_int_equal(g->node_count, LENGTH);
    assert_ptr_equal(g->nodes[0]->inputs[0], v);
    for (int i = 1; i < LENGTH; i++)
        assert_ptr_equal(g->nodes[i]->inputs[0], g->nodes[i - 1]->outputs[0]);
}

static void cycles_are_found(void **state)
{
    struct sac_graph *g = ((struct fixture *)*state)->g;
    struct sac_value *a = sac_graph_value(g, "a"), *b = sac_graph_value(g, "b");
    node(g, "Relu", a, NULL, b);
    node(g, "Relu", b, NULL, a);
    set_output(g, b);
    assert_sac_error(sac_graph_refresh(g), SAC_ERR_FORMAT);
}

/* Behind an update all links are those of a refresh: of n, of nodes made since, of readers of what
 * was replaced, and of what nobody uses any more, back to the input. */
static void an_update_links_what_changed(void **state)
{
    struct sac_graph *g = ((struct fixture *)*state)->g;
    struct sac_value *x = sac_graph_value(g, "x"), *a = sac_graph_value(g, "a");
    struct sac_value *b = sac_graph_value(g, "b"), *c = sac_graph_value(g, "c");
    struct sac_value *y = sac_graph_value(g, "y"), *made = sac_graph_value(g, "made");
    struct sac_node  *first = node(g, "Relu", x, NULL, a), *second = node(g, "Abs", a, NULL, b);
    struct sac_node  *third = node(g, "Mul", b, b, c), *last = node(g, "Add", c, x, y);
    set_output(g, y);
    assert_sac_ok(sac_graph_refresh(g));
    assert_true(sac_graph_is_linked(g));
    struct sac_node *neg = node(g, "Neg", x, NULL, made);
    sac_graph_replace(g, c, made);
    assert_int_equal(c->uses, 1); /* as before */
    assert_sac_ok(sac_graph_update(g, third));
    assert_true(sac_graph_is_linked(g));
    assert_true(first->gone && second->gone && third->gone && !neg->gone && !last->gone);
    assert_ptr_equal(sac_value_only_reader(made), last);
    assert_ptr_equal(made->producer, neg);
    assert_int_equal(x->uses, 2);
    last->inputs[1] = made; /* by the pass that visits it */
    assert_false(sac_graph_is_linked(g));
    assert_sac_ok(sac_graph_update(g, last));
    assert_true(sac_graph_is_linked(g));
    assert_int_equal(made->uses, 2);
    sac_graph_replace(g, y, made); /* an output */
    assert_sac_ok(sac_graph_update(g, last));
    assert_true(last->gone && sac_graph_is_linked(g));
    assert_sac_ok(sac_graph_refresh(g));
    assert_int_equal(g->node_count, 1);
    assert_ptr_equal(g->nodes[0], neg);
}

/* If an update looked at the whole graph, this would take minutes. */
static void a_long_chain_is_rewritten(void **state)
{
    enum { LENGTH = 60000 };
    struct sac_graph *g = ((struct fixture *)*state)->g;
    struct sac_value *x = sac_graph_value(g, "x"), *v = x;
    for (int i = 0; i < LENGTH; i++) {
        struct sac_value *after = sac_graph_value(g, "");
        node(g, "Identity", v, NULL, after);
        v = after;
    }
    set_output(g, v);
    assert_sac_ok(sac_graph_refresh(g));
    for (int i = 0; i < LENGTH; i++) {
        sac_graph_replace(g, g->nodes[i]->outputs[0], g->nodes[i]->inputs[0]);
        assert_sac_ok(sac_graph_update(g, g->nodes[i]));
    }
    assert_ptr_equal(g->outputs[0], x);
    assert_sac_ok(sac_graph_refresh(g));
    assert_int_equal(g->node_count, 0);
}

/* What a subgraph reads from outside counts, keeps its maker alive, and follows a replacement. */
static void subgraphs_read_from_outside(void **state)
{
    struct sac_graph *g = ((struct fixture *)*state)->g;
    struct sac_graph *sub = sac_graph_create(test_context(), g->arena, g);
    struct sac_value *x = sac_graph_value(g, "x"), *a = sac_graph_value(g, "a");
    struct sac_value *b = sac_graph_value(g, "b"), *y = sac_graph_value(g, "y");
    struct sac_value *inner = sac_graph_value(sub, "inner");
    node(sub, "Neg", a, NULL, inner);
    set_output(sub, inner);
    struct sac_node *branch = node(g, "If", x, NULL, y);
    branch->attrs = sac_arena_alloc(g->arena, sizeof *branch->attrs);
    branch->attrs[0] =
        (struct sac_attr){.name = "then_branch", .kind = SAC_ATTR_GRAPH, .graph = sub};
    branch->attr_count = 1;
    node(g, "Relu", x, NULL, a); /* after its reader */
    set_output(g, y);
    assert_sac_ok(sac_graph_refresh(g));
    assert_int_equal(g->node_count, 2);
    assert_ptr_equal(g->nodes[1], branch);
    assert_int_equal(a->uses, 1);
    assert_null(sac_value_only_reader(a)); /* no node of g itself */
    assert_true(sac_node_has_subgraph(branch));
    sac_graph_replace(g, a, b);
    assert_ptr_equal(sub->nodes[0]->inputs[0], b);
    assert_sac_ok(sac_graph_update(g, branch));
    assert_true(sac_graph_is_linked(g) && g->nodes[0]->gone);
    assert_sac_ok(sac_graph_refresh(g));
    assert_int_equal(g->node_count, 1); /* nobody reads a now */
    assert_int_equal(b->uses, 1);
    assert_int_not_equal(inner->id, a->id); /* ids are unique over all graphs of a model */
    assert_int_equal(g->id_count, 5);
}

static void attributes_are_set_and_shared(void **state)
{
    struct sac_graph *g = ((struct fixture *)*state)->g;
    struct sac_node  *n = sac_op_node(g, "", "Conv", 1, 1, NULL);
    struct sac_node  *copy = sac_op_node(g, "saccade", "FusedConv", 1, 1, n);
    const int64_t    *list;
    assert_sac_ok(sac_node_set_ints(g, n, "pads", (int64_t[]){1, 2}, 2));
    assert_sac_ok(sac_node_set_int(g, n, "group", 4));
    assert_sac_ok(sac_node_set_float(g, n, "alpha", 0.5f));
    assert_sac_ok(sac_node_set_int(g, n, "group", 5)); /* overwritten */
    assert_int_equal(n->attr_count, 3);
    assert_int_equal(sac_attr_int(n, "group", 1), 5);
    assert_int_equal(sac_attr_int(n, "pads", 7), 7); /* of another kind */
    assert_int_equal(sac_attr_ints(n, "pads", &list), 2);
    assert_int_equal(list[1], 2);
    assert_sac_ok(sac_node_copy_attr(g, copy, "pads", n));
    assert_sac_ok(sac_node_copy_attr(g, copy, "none", n));
    assert_int_equal(copy->attr_count, 1);
    assert_int_equal(sac_attr_ints(copy, "pads", &list), 2);
    assert_true(sac_attr_float(n, "alpha", 0) == 0.5f);
    assert_string_equal(sac_attr_string(n, "auto_pad", "NOTSET"), "NOTSET");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(refresh_orders_and_drops, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_order_that_fits_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_long_chain_is_ordered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cycles_are_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_update_links_what_changed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_long_chain_is_rewritten, set_up, tear_down),
        cmocka_unit_test_setup_teardown(subgraphs_read_from_outside, set_up, tear_down),
        cmocka_unit_test_setup_teardown(attributes_are_set_and_shared, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("engine/graph", tests, NULL, NULL);
}
