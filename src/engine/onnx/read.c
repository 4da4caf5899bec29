/* SPDX-License-Identifier: Apache-2.0 */
/* GraphProto, NodeProto and FunctionProto, read into our graph. Fields are scanned more than once,
 * because a field may need another that comes after it. */
#include <string.h>

#include "engine/onnx/reader.h"
#include "engine/ops/op.h"

/* A graph in memory takes a few times its file's bytes; a small file of functions that call
 * functions could need any amount. */
enum { EXPANSION_FREE_BYTES = 8 << 20 };

/* ---- values ---- */

static sac_result new_value(const struct sac_onnx_place *p, struct sac_wire name,
                            struct sac_value **out)
{
    const char *printable;
    sac_result  res = sac_onnx_name_copy(p->r, name, &printable);
    if (res != SAC_OK)
        return res;
    *out = sac_graph_value(p->g, printable);
    return *out ? SAC_OK : SAC_ERR_MEMORY;
}

static sac_result bind(const struct sac_onnx_place *p, struct sac_wire name, struct sac_value *v)
{
    return sac_onnx_scope_bind(p->names, name, v) ? SAC_OK : sac_onnx_no_memory(p->r);
}

/* A new value under a name that this graph must not have yet. */
static sac_result define(const struct sac_onnx_place *p, struct sac_wire name,
                         struct sac_value **out)
{
    char shown[128];
    if (sac_onnx_scope_own(p->names, name))
        return SAC_FAIL(p->r->ctx, SAC_ERR_FORMAT, "value '%s' is made twice",
                        sac_onnx_printable(name, shown, sizeof shown));
    sac_result res = new_value(p, name, out);
    return res == SAC_OK ? bind(p, name, *out) : res;
}

static sac_result read_initializers(const struct sac_onnx_place *p, struct sac_wire w)
{
    struct sac_wire inside;
    int             more;
    while ((more = sac_wire_next_bytes(&w, 5, &inside)) > 0) {
        struct sac_wire   name = sac_wire_last_bytes(inside, 8);
        struct sac_value *v;
        sac_result        res = define(p, name, &v);
        if (res == SAC_OK)
            res = sac_onnx_tensor(p->r, inside, v, &name);
        if (res != SAC_OK)
            return res;
    }
    return more < 0 ? sac_onnx_damaged(p->r, "the graph", &w) : SAC_OK;
}

static int64_t read_dim(struct sac_wire w)
{
    struct sac_field f;
    int64_t          dim = SAC_DIM_OPEN;
    while (sac_wire_next(&w, &f) > 0)
        if (f.number == 1 && f.type == SAC_WIRE_VARINT && (int64_t)f.value >= 0)
            dim = (int64_t)f.value;
    return dim;
}

/* TypeProto: element type and dims of a tensor; anything else leaves the dtype unknown. */
static sac_result read_type(const struct sac_onnx_place *p, struct sac_wire type,
                            struct sac_value *v)
{
    struct sac_wire  tensor = sac_wire_last_bytes(type, 1), dim;
    struct sac_wire  w = tensor;
    struct sac_field f;
    int              more, rank = 0;
    bool             shaped = false;
    while ((more = sac_wire_next(&w, &f)) > 0) {
        if (f.number == 1)
            v->dtype = sac_onnx_dtype(f.value);
        if (f.number != 2 || f.type != SAC_WIRE_BYTES)
            continue;
        shaped = true;
        while (sac_wire_next_bytes(&f.bytes, 1, &dim) > 0) {
            if (rank == SAC_RANK_MAX)
                return SAC_FAIL(p->r->ctx, SAC_ERR_UNSUPPORTED, "'%s' has more than %d dims",
                                v->name, SAC_RANK_MAX);
            v->dims[rank++] = read_dim(dim);
        }
    }
    v->rank = shaped ? rank : -1;
    return more < 0 ? sac_onnx_damaged(p->r, "the type of a value", &w) : SAC_OK;
}

/* A caller can pass only tensors of numbers: an error now is better than one from the first layer
 * that reads something else. The inputs of a body may have no type; its node gives it. */
static sac_result check_input_type(const struct sac_onnx_place *p, struct sac_wire type,
                                   const struct sac_value *v)
{
    static const char *const kinds[] = {
        [4] = "a sequence", [5] = "a map", [8] = "a sparse tensor", [9] = "an optional value"};
    struct sac_wire  w = sac_wire_last_bytes(type, 1);
    struct sac_field f;
    uint64_t         data_type = 0;
    if (p->depth > 0 || v->dtype != SAC_DTYPE_NONE)
        return SAC_OK;
    while (sac_wire_next(&w, &f) > 0)
        data_type = f.number == 1 ? f.value : data_type;
    if (data_type)
        return SAC_FAIL(p->r->ctx, SAC_ERR_UNSUPPORTED,
                        "input '%.128s' is a tensor of type %s; have float, integer and bool types",
                        v->name, sac_onnx_dtype_name(data_type));
    while (sac_wire_next(&type, &f) > 0)
        if (f.number < SAC_COUNT(kinds) && kinds[f.number])
            return SAC_FAIL(p->r->ctx, SAC_ERR_UNSUPPORTED, "input '%.128s' is %s; have tensors",
                            v->name, kinds[f.number]);
    return SAC_FAIL(p->r->ctx, SAC_ERR_FORMAT, "input '%.128s' has no type", v->name);
}

/* Before IR version 4 initializers had to be listed among the inputs: those are constants. */
static sac_result read_inputs(const struct sac_onnx_place *p, struct sac_wire w)
{
    struct sac_graph *g = p->g;
    struct sac_wire   info = w, inside;
    int               more;
    g->inputs = sac_arena_alloc(p->r->arena, (sac_wire_count_bytes(w, 11) + 1) * sizeof *g->inputs);
    if (!g->inputs)
        return sac_onnx_no_memory(p->r);
    while ((more = sac_wire_next_bytes(&info, 11, &inside)) > 0) {
        struct sac_wire             name = sac_wire_last_bytes(inside, 1);
        const struct sac_onnx_name *known = sac_onnx_scope_own(p->names, name);
        struct sac_value           *v;
        if (known && known->value->data)
            continue;
        sac_result res = define(p, name, &v);
        if (res == SAC_OK)
            res = read_type(p, sac_wire_last_bytes(inside, 2), v);
        if (res == SAC_OK)
            res = check_input_type(p, sac_wire_last_bytes(inside, 2), v);
        if (res != SAC_OK)
            return res;
        g->inputs[g->input_count++] = v;
    }
    return more < 0 ? sac_onnx_damaged(p->r, "the graph", &info) : SAC_OK;
}

static sac_result read_outputs(const struct sac_onnx_place *p, struct sac_wire w)
{
    struct sac_graph *g = p->g;
    struct sac_wire   info = w, inside;
    int               more;
    g->outputs =
        sac_arena_alloc(p->r->arena, (sac_wire_count_bytes(w, 12) + 1) * sizeof *g->outputs);
    if (!g->outputs)
        return sac_onnx_no_memory(p->r);
    while ((more = sac_wire_next_bytes(&info, 12, &inside)) > 0) {
        char                        shown[128];
        struct sac_wire             name = sac_wire_last_bytes(inside, 1);
        const struct sac_onnx_name *known = sac_onnx_scope_find(p->names, name);
        if (!known || !known->value)
            return SAC_FAIL(p->r->ctx, SAC_ERR_FORMAT, "output '%s' is made by no node",
                            sac_onnx_printable(name, shown, sizeof shown));
        struct sac_value *v = known->value;
        if (v->rank < 0 && v->dtype == SAC_DTYPE_NONE) {
            sac_result res = read_type(p, sac_wire_last_bytes(inside, 2), v);
            if (res != SAC_OK)
                return res;
        }
        g->outputs[g->output_count++] = v;
    }
    return more < 0 ? sac_onnx_damaged(p->r, "the graph", &info) : SAC_OK;
}

/* ---- nodes ---- */

enum { /* fields of NodeProto */
       N_INPUT = 1,
       N_OUTPUT = 2,
       N_NAME = 3,
       N_OP_TYPE = 4,
       N_DOMAIN = 7,
       N_OVERLOAD = 8
};

static sac_result connect_inputs(const struct sac_onnx_place *p, struct sac_wire w,
                                 struct sac_node *n)
{
    struct sac_wire name;
    for (int i = 0; i < n->input_count && sac_wire_next_bytes(&w, N_INPUT, &name) > 0; i++) {
        if (!sac_wire_left(&name))
            continue;
        const struct sac_onnx_name *known = sac_onnx_scope_find(p->names, name);
        char                        shown[128], label[256];
        if (!known)
            return SAC_FAIL(p->r->ctx, SAC_ERR_FORMAT, "%s: its input '%s' is made by no node",
                            sac_node_label(n, label, sizeof label),
                            sac_onnx_printable(name, shown, sizeof shown));
        n->inputs[i] = known->value;
    }
    return SAC_OK;
}

static void connect_outputs(const struct sac_onnx_place *p, struct sac_wire w, struct sac_node *n)
{
    struct sac_wire name;
    for (int i = 0; i < n->output_count && sac_wire_next_bytes(&w, N_OUTPUT, &name) > 0; i++)
        if (sac_wire_left(&name))
            n->outputs[i] = sac_onnx_scope_own(p->names, name)->value;
}

/* A Constant node is a constant like any other. */
static bool take_constant(struct sac_graph *g, struct sac_node *n)
{
    const struct sac_attr *a = sac_node_attr(n, "value");
    if (strcmp(n->op_type, "Constant") != 0 || n->domain[0] || n->output_count != 1 ||
        !n->outputs[0] || !a || a->kind != SAC_ATTR_TENSOR)
        return false;
    struct sac_value *v = n->outputs[0];
    v->dtype = a->tensor->dtype;
    v->rank = a->tensor->rank;
    memcpy(v->dims, a->tensor->dims, sizeof v->dims);
    v->data = a->tensor->data;
    v->shared = a->shared;
    g->node_count--;
    return true;
}

static bool is_concat(const char *op_type, const char *domain)
{
    return strcmp(op_type, "Concat") == 0 && !domain[0];
}

/* Kernels take a limited number of inputs, and a node of ours has room for as many; torchvision's
 * SSDlite joins 90. What is too much is joined before, by nodes like this one. */
static sac_result part_concat(const struct sac_onnx_place *p, struct sac_node *n)
{
    while (n->input_count > SAC_OP_INPUTS_MAX) {
        struct sac_node  *part = sac_op_node(p->g, "", "Concat", SAC_OP_INPUTS_MAX, 1, n);
        struct sac_value *joined = part ? sac_graph_value(p->g, n->name) : NULL;
        if (!joined)
            return SAC_ERR_MEMORY;
        memcpy(part->inputs, n->inputs, SAC_OP_INPUTS_MAX * sizeof(struct sac_value *));
        part->outputs[0] = joined;
        part->piece = true;
        part->name = n->name;
        part->attrs = n->attrs;
        part->attr_count = n->attr_count;
        n->inputs += SAC_OP_INPUTS_MAX - 1;
        n->input_count -= SAC_OP_INPUTS_MAX - 1;
        n->inputs[0] = joined;
    }
    return SAC_OK;
}

static sac_result make_node(const struct sac_onnx_place *p, struct sac_wire w, int index,
                            struct sac_node **out)
{
    const char     *op_type = "", *domain = "";
    struct sac_wire where = sac_onnx_plain_domain(sac_wire_last_bytes(w, N_DOMAIN));
    size_t          inputs = sac_wire_count_bytes(w, N_INPUT);
    size_t          outputs = sac_wire_count_bytes(w, N_OUTPUT);
    sac_result      res = sac_onnx_name_copy(p->r, sac_wire_last_bytes(w, N_OP_TYPE), &op_type);
    if (res == SAC_OK)
        res = sac_onnx_name_copy(p->r, where, &domain);
    if (res == SAC_OK && p->r->node_total++ >= SAC_ONNX_NODES_MAX)
        res = SAC_FAIL(p->r->ctx, SAC_ERR_UNSUPPORTED, "more than %d nodes", SAC_ONNX_NODES_MAX);
    if (res == SAC_OK && p->r->arena->bytes / 16 > p->r->source->size + EXPANSION_FREE_BYTES)
        res = SAC_FAIL(p->r->ctx, SAC_ERR_UNSUPPORTED, "its functions expand to over %zu bytes",
                       p->r->arena->bytes);
    const size_t inputs_max = is_concat(op_type, domain) ? SAC_ONNX_NODES_MAX : SAC_OP_INPUTS_MAX;
    if (res == SAC_OK && (inputs > inputs_max || outputs > SAC_OP_OUTPUTS_MAX))
        res = SAC_FAIL(p->r->ctx, SAC_ERR_UNSUPPORTED,
                       "layer %d (%.64s) has %zu inputs and %zu outputs; at most %d and %d", index,
                       op_type, inputs, outputs, (int)inputs_max, SAC_OP_OUTPUTS_MAX);
    if (res != SAC_OK)
        return res;
    struct sac_node *n = sac_op_node(p->g, domain, op_type, (int)inputs, (int)outputs, NULL);
    if (!n)
        return SAC_ERR_MEMORY;
    n->index = index;
    n->opset = sac_onnx_opset_of(p->opsets, where);
    *out = n;
    return sac_onnx_name_copy(p->r, sac_wire_last_bytes(w, N_NAME), &n->name);
}

static sac_result read_function(const struct sac_onnx_place *p, const struct sac_wire *function,
                                struct sac_node *call);

static const struct sac_onnx_function *function_of(const struct sac_onnx_reader *r,
                                                   struct sac_wire               node)
{
    struct sac_wire name = sac_wire_last_bytes(node, N_OP_TYPE);
    struct sac_wire overload = sac_wire_last_bytes(node, N_OVERLOAD);
    struct sac_wire domain = sac_onnx_plain_domain(sac_wire_last_bytes(node, N_DOMAIN));
    for (int i = 0; i < r->function_count; i++)
        if (sac_wire_equals(r->functions[i].name, name) &&
            sac_wire_equals(r->functions[i].domain, domain) &&
            sac_wire_equals(r->functions[i].overload, overload))
            return &r->functions[i];
    return NULL;
}

static sac_result read_node(const struct sac_onnx_place *p, struct sac_wire w, int index)
{
    struct sac_node *n = NULL;
    sac_result       res = make_node(p, w, index, &n);
    if (res == SAC_OK)
        res = connect_inputs(p, w, n);
    if (res != SAC_OK)
        return res;
    connect_outputs(p, w, n);
    res = sac_onnx_read_attrs(p, w, n);
    if (res != SAC_OK) {
        char label[256];
        return sac_fail_prefix(p->r->ctx, res, "%s: ", sac_node_label(n, label, sizeof label));
    }
    if (take_constant(p->g, n))
        return SAC_OK;
    const struct sac_onnx_function *function = function_of(p->r, w);
    if (!function)
        return is_concat(n->op_type, n->domain) ? part_concat(p, n) : SAC_OK;
    p->g->node_count--; /* replaced by its body */
    return read_function(p, &function->body, n);
}

/* The names that nodes make, before any node is read: the order of nodes then does not matter. */
static sac_result define_products(const struct sac_onnx_place *p, struct sac_wire list,
                                  uint32_t number)
{
    struct sac_wire node, name;
    int             more;
    while ((more = sac_wire_next_bytes(&list, number, &node)) > 0) {
        int inner;
        while ((inner = sac_wire_next_bytes(&node, N_OUTPUT, &name)) > 0) {
            struct sac_value *v;
            sac_result        res = SAC_OK;
            if (sac_wire_left(&name) && !(p->caller && sac_onnx_scope_own(p->names, name)))
                res = define(p, name, &v);
            if (res != SAC_OK)
                return res;
        }
        if (inner < 0)
            return sac_onnx_damaged(p->r, "a node", &node);
    }
    return more < 0 ? sac_onnx_damaged(p->r, "the graph", &list) : SAC_OK;
}

static sac_result read_nodes(const struct sac_onnx_place *p, struct sac_wire list, uint32_t number)
{
    struct sac_wire node;
    sac_result      res = define_products(p, list, number);
    for (int i = 0; res == SAC_OK && sac_wire_next_bytes(&list, number, &node) > 0; i++)
        res = read_node(p, node, p->caller ? p->caller->index : i);
    return res;
}

static sac_result read_graph_into(const struct sac_onnx_place *p, struct sac_wire w)
{
    sac_result res = sac_onnx_name_copy(p->r, sac_wire_last_bytes(w, 2), &p->g->name);
    if (res == SAC_OK && sac_wire_count_bytes(w, 15))
        res = SAC_FAIL(p->r->ctx, SAC_ERR_UNSUPPORTED, "it has sparse initializers");
    if (res == SAC_OK)
        res = read_initializers(p, w);
    if (res == SAC_OK)
        res = read_inputs(p, w);
    if (res == SAC_OK)
        res = read_nodes(p, w, 1);
    if (res == SAC_OK)
        res = read_outputs(p, w);
    return res;
}

sac_result sac_onnx_read_graph(const struct sac_onnx_place *outer, struct sac_wire w,
                               struct sac_graph *g)
{
    struct sac_onnx_scope names = {.outer = outer->names};
    struct sac_onnx_place p = *outer;
    p.g = g;
    p.names = &names;
    p.depth++;
    sac_result res = read_graph_into(&p, w);
    sac_onnx_scope_finish(&names);
    return res;
}

/* ---- functions ---- */

static sac_result pass_through(const struct sac_onnx_place *p, struct sac_value *from,
                               struct sac_value *to, const struct sac_node *like)
{
    struct sac_node *n = sac_op_node(p->g, "", "Identity", 1, 1, like);
    if (!n)
        return SAC_ERR_MEMORY;
    n->inputs[0] = from;
    n->outputs[0] = to;
    return SAC_OK;
}

/* The function's own names for the call's values. */
static sac_result bind_call(const struct sac_onnx_place *p, const struct sac_node *call)
{
    struct sac_wire inputs = *p->function, outputs = *p->function, name;
    sac_result      res = SAC_OK;
    for (int i = 0; res == SAC_OK && sac_wire_next_bytes(&inputs, 4, &name) > 0; i++)
        res = bind(p, name, i < call->input_count ? call->inputs[i] : NULL);
    for (int i = 0; res == SAC_OK && sac_wire_next_bytes(&outputs, 5, &name) > 0; i++) {
        struct sac_value           *v = i < call->output_count ? call->outputs[i] : NULL;
        const struct sac_onnx_name *input = sac_onnx_scope_own(p->names, name);
        if (v && input)
            res = pass_through(p, input->value, v, call);
        else if (v)
            res = bind(p, name, v);
    }
    return res;
}

static sac_result read_function(const struct sac_onnx_place *p, const struct sac_wire *function,
                                struct sac_node *call)
{
    struct sac_onnx_opsets opsets = {0};
    struct sac_onnx_scope  names = {0};
    struct sac_onnx_place  inner = {p->r, p->g, &names, &opsets, call, function, p->depth + 1};
    if (p->depth >= SAC_ONNX_DEPTH_MAX)
        return SAC_FAIL(p->r->ctx, SAC_ERR_UNSUPPORTED, "functions nested deeper than %d",
                        SAC_ONNX_DEPTH_MAX);
    sac_result res = sac_onnx_read_opsets(p->r, *function, 9, &opsets);
    if (res == SAC_OK)
        res = bind_call(&inner, call);
    if (res == SAC_OK)
        res = read_nodes(&inner, *function, 7);
    if (res != SAC_OK) {
        char label[256];
        res = sac_fail_prefix(p->r->ctx, res,
                              "%s: in its function: ", sac_node_label(call, label, sizeof label));
    }
    sac_onnx_scope_finish(&names);
    return res;
}
