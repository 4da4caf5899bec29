/* SPDX-License-Identifier: Apache-2.0 */
/* Many files fix the batch at 1 although the network works with any batch: the 1 is in the inputs'
 * shapes, in targets of Reshape, in the axes of a reduction. This pass follows the batch axis from
 * the inputs through every node to the outputs and opens it: a 1 in a Reshape becomes "as in the
 * input", and the batch is removed from the axes of a reduction (over one entry it is the
 * identity).
 *
 * An operator without a rule or a value that loses the axis leaves the whole graph unchanged.
 * sac_model_check_batch then compares real results.
 */
#include <stdio.h>
#include <string.h>

#include "engine/passes/pass.h"

enum edit_kind { EDIT_SHAPE, EDIT_AXES_ATTR, EDIT_AXES_INPUT };

/* A change that is applied once the whole graph is known to allow it. */
struct edit {
    struct sac_node *node;
    enum edit_kind   kind;
    int64_t          ints[SAC_RANK_MAX];
    size_t           count;
};

struct freeing {
    struct sac_graph *g;
    int              *axis; /* by value id: the batch axis, -1: none */
    struct edit      *edits;
    size_t            edit_count, edit_cap;
    bool              reads_batch; /* set by note_batch */
    char              why[128];
};

/* Rule of an operator: sets *out to the batch axis of its outputs. Returns false, and sets why,
 * when the batch cannot be opened. k: batch axis of input 0. */
typedef bool (*rule_fn)(struct freeing *f, struct sac_node *n, int k, int *out);

static bool refuse(struct freeing *f, const char *why)
{
    snprintf(f->why, sizeof f->why, "%s", why);
    return false;
}

static int axis_of(const struct freeing *f, const struct sac_value *v)
{
    return v ? f->axis[v->id] : -1;
}

static bool add_edit(struct freeing *f, struct edit e)
{
    if (!sac_grow((void **)&f->edits, &f->edit_cap, f->edit_count + 1, sizeof *f->edits))
        return refuse(f, "no memory");
    f->edits[f->edit_count++] = e;
    return true;
}

/* Numbers of an int64 constant input, up to SAC_RANK_MAX; false when it is not one. */
static bool constant_ints(const struct sac_node *n, int input, int64_t *out, size_t *count)
{
    const struct sac_value *v = input < n->input_count ? n->inputs[input] : NULL;
    if (!v || !v->data || v->dtype != SAC_I64 || v->rank > 1)
        return false;
    *count = v->rank == 0 ? 1 : (size_t)v->dims[0];
    if (*count > SAC_RANK_MAX)
        return false;
    memcpy(out, v->data, *count * sizeof *out);
    return true;
}

/* Axes from an attribute or, in later opsets, an input. false: given, but not constant. */
static bool axes_of(const struct sac_node *n, int input, int rank, int64_t *axes, size_t *count)
{
    const int64_t *list;
    *count = sac_attr_ints(n, "axes", &list);
    if (*count > SAC_RANK_MAX)
        return false;
    if (*count)
        memcpy(axes, list, *count * sizeof *axes);
    else if (input < n->input_count && n->inputs[input] && !constant_ints(n, input, axes, count))
        return false;
    for (size_t i = 0; i < *count; i++)
        axes[i] += axes[i] < 0 ? rank : 0;
    return true;
}

static bool contains(const int64_t *list, size_t count, int64_t v)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == v)
            return true;
    return false;
}

/* ---- rules ---- */

/* NumPy broadcasting aligns axes from the right, so all inputs must agree on the batch. */
static bool rule_elementwise(struct freeing *f, struct sac_node *n, int k, int *out)
{
    int from_right = -1, rank = 0;
    (void)k;
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i])
            rank = SAC_MAX(rank, n->inputs[i]->rank);
    for (int i = 0; i < n->input_count; i++) {
        int a = axis_of(f, n->inputs[i]);
        if (a < 0)
            continue;
        int right = n->inputs[i]->rank - 1 - a;
        if (from_right >= 0 && right != from_right)
            return refuse(f, "its inputs carry the batch on different axes");
        from_right = right;
    }
    for (int i = 0; i < n->input_count; i++) {
        const struct sac_value *v = n->inputs[i];
        if (v && axis_of(f, v) < 0 && v->rank > from_right &&
            v->dims[v->rank - 1 - from_right] != 1)
            return refuse(f, "an input has another size where the batch is");
    }
    *out = rank - 1 - from_right;
    return true;
}

/* Convolution, pooling, normalisation: [N,C,...] to [N,...]. */
static bool rule_first(struct freeing *f, struct sac_node *n, int k, int *out)
{
    for (int i = 1; i < n->input_count; i++)
        if (axis_of(f, n->inputs[i]) >= 0)
            return refuse(f, "a parameter depends on the input");
    *out = 0;
    return k == 0 || refuse(f, "the batch is not its first axis");
}

static bool rule_transpose(struct freeing *f, struct sac_node *n, int k, int *out)
{
    const int64_t *perm;
    size_t         count = sac_attr_ints(n, "perm", &perm);
    int            rank = n->inputs[0]->rank;
    *out = rank - 1 - k;
    for (size_t i = 0; i < count; i++)
        if (perm[i] == k)
            *out = (int)i;
    (void)f;
    return true;
}

static bool rule_concat(struct freeing *f, struct sac_node *n, int k, int *out)
{
    int64_t axis = sac_attr_int(n, "axis", 1);
    axis += axis < 0 ? n->inputs[0]->rank : 0;
    for (int i = 0; i < n->input_count; i++)
        if (axis_of(f, n->inputs[i]) != k)
            return refuse(f, "one of its inputs does not carry the batch");
    *out = k;
    return axis != k || refuse(f, "it joins along the batch");
}

static bool last_by_default(const char *op_type)
{
    return strcmp(op_type, "LpNormalization") == 0 || strcmp(op_type, "TopK") == 0;
}

/* Operators that work along one axis, which must not be the batch. */
static bool rule_one_axis(struct freeing *f, struct sac_node *n, int k, int *out)
{
    int64_t axis = sac_attr_int(n, "axis", last_by_default(n->op_type) ? -1 : 0);
    axis += axis < 0 ? n->inputs[0]->rank : 0;
    *out = k;
    return axis != k || refuse(f, "it works along the batch");
}

/* Before opset 13 all axes from `axis` on were flattened into one; since then only `axis`
 * counts. */
static bool rule_softmax(struct freeing *f, struct sac_node *n, int k, int *out)
{
    int64_t axis = sac_attr_int(n, "axis", n->opset >= 13 ? -1 : 1);
    axis += axis < 0 ? n->inputs[0]->rank : 0;
    *out = k;
    return (n->opset >= 13 ? axis != k : axis > k) || refuse(f, "it works along the batch");
}

static bool rule_flatten(struct freeing *f, struct sac_node *n, int k, int *out)
{
    int64_t axis = sac_attr_int(n, "axis", 1);
    axis += axis < 0 ? n->inputs[0]->rank : 0;
    *out = 0;
    return (k == 0 && axis == 1) || refuse(f, "it joins the batch with other axes");
}

static bool rule_slice(struct freeing *f, struct sac_node *n, int k, int *out)
{
    int64_t axes[SAC_RANK_MAX];
    size_t  count;
    if (!axes_of(n, 3, n->inputs[0]->rank, axes, &count))
        return refuse(f, "its axes are not constant");
    if (count == 0) { /* left out: the first ones */
        const int64_t *list;
        count = sac_attr_ints(n, "starts", &list);
        if (count == 0 && n->input_count > 1 && n->inputs[1] && n->inputs[1]->rank == 1)
            count = (size_t)n->inputs[1]->dims[0];
        *out = k;
        return k >= (int)count || refuse(f, "it cuts along the batch");
    }
    *out = k;
    return !contains(axes, count, k) || refuse(f, "it cuts along the batch");
}

static bool rule_pad(struct freeing *f, struct sac_node *n, int k, int *out)
{
    int64_t        pads[2 * SAC_RANK_MAX] = {0};
    const int64_t *list;
    int            rank = n->inputs[0]->rank;
    size_t         count = sac_attr_ints(n, "pads", &list);
    if (count == 0 && n->input_count > 1 && n->inputs[1] && n->inputs[1]->data &&
        n->inputs[1]->dtype == SAC_I64 && n->inputs[1]->rank == 1) {
        list = n->inputs[1]->data;
        count = (size_t)n->inputs[1]->dims[0];
    }
    if (count != 2 * (size_t)rank || count > SAC_COUNT(pads))
        return refuse(f, "its pads are not constant, or not for all axes");
    *out = k;
    return (list[k] == 0 && list[k + rank] == 0) || refuse(f, "it pads the batch");
}

static bool rule_gather(struct freeing *f, struct sac_node *n, int k, int *out)
{
    int64_t axis = sac_attr_int(n, "axis", 0);
    axis += axis < 0 ? n->inputs[0]->rank : 0;
    if (axis_of(f, n->inputs[1]) >= 0)
        return refuse(f, "its indices depend on the input");
    *out = axis < k ? k + n->inputs[1]->rank - 1 : k;
    return axis != k || refuse(f, "it picks along the batch");
}

static bool rule_squeeze(struct freeing *f, struct sac_node *n, int k, int *out)
{
    int64_t axes[SAC_RANK_MAX];
    size_t  count;
    if (!axes_of(n, 1, n->inputs[0]->rank, axes, &count) || count == 0)
        return refuse(f, "its axes are not given");
    *out = k;
    for (size_t i = 0; i < count; i++)
        *out -= axes[i] < k;
    return !contains(axes, count, k) || refuse(f, "it drops the batch");
}

static bool rule_unsqueeze(struct freeing *f, struct sac_node *n, int k, int *out)
{
    int64_t        axes[SAC_RANK_MAX];
    size_t         count;
    const int64_t *list;
    size_t         given = sac_attr_ints(n, "axes", &list);
    if (given == 0 && n->input_count > 1 && n->inputs[1] && n->inputs[1]->rank == 1)
        given = (size_t)n->inputs[1]->dims[0];
    if (!axes_of(n, 1, n->inputs[0]->rank + (int)given, axes, &count) || count == 0)
        return refuse(f, "its axes are not constant");
    *out = 0;
    for (int kept = 0;; ++*out) /* the k-th axis that is not a new one */
        if (!contains(axes, count, *out) && kept++ == k)
            return true;
}

/* Over one entry a mean, sum, product, minimum or maximum is that entry. */
static bool identity_over_one(const char *op_type)
{
    static const char *const names[] = {"ReduceMean", "ReduceSum", "ReduceProd", "ReduceMin",
                                        "ReduceMax"};
    for (size_t i = 0; i < SAC_COUNT(names); i++)
        if (strcmp(op_type, names[i]) == 0)
            return true;
    return false;
}

static bool rule_reduce(struct freeing *f, struct sac_node *n, int k, int *out)
{
    int64_t     axes[SAC_RANK_MAX];
    size_t      count, kept = 0;
    int         rank = n->inputs[0]->rank;
    bool        keep = sac_attr_int(n, "keepdims", 1);
    struct edit e = {.node = n};
    if (!axes_of(n, 1, rank, axes, &count))
        return refuse(f, "its axes are not constant");
    if (count == 0 && sac_attr_int(n, "noop_with_empty_axes", 0)) {
        *out = k;
        return true;
    }
    if (count == 0)
        for (; count < (size_t)rank; count++)
            axes[count] = (int64_t)count;
    *out = k;
    for (size_t i = 0; i < count; i++) {
        *out -= !keep && axes[i] < k;
        if (axes[i] != k)
            e.ints[kept++] = axes[i];
    }
    if (kept == count)
        return true;
    if (!keep || kept == 0 || !identity_over_one(n->op_type))
        return refuse(f, "it reduces the batch away");
    e.count = kept;
    e.kind = sac_node_attr(n, "axes") || n->input_count < 2 ? EDIT_AXES_ATTR : EDIT_AXES_INPUT;
    if (e.kind == EDIT_AXES_ATTR && n->opset >= (n->op->id == SAC_OP_ReduceSum ? 13 : 18))
        e.kind = EDIT_AXES_INPUT;
    return add_edit(f, e);
}

/* The axis of size 1 with as many elements before it as the batch has. */
static int reshaped_axis(const struct sac_value *in, int k, const struct sac_value *out)
{
    int64_t before = 1, product = 1;
    for (int d = 0; d < k; d++)
        before *= in->dims[d];
    for (int d = 0; d < out->rank; d++) {
        if (product == before && out->dims[d] == 1)
            return d;
        product *= out->dims[d];
    }
    return -1;
}

static bool rule_reshape(struct freeing *f, struct sac_node *n, int k, int *out)
{
    struct edit e = {.node = n, .kind = EDIT_SHAPE};
    if (n->outputs[0]->rank < 0 || n->inputs[0]->rank < 0)
        return refuse(f, "its shape is not known");
    *out = reshaped_axis(n->inputs[0], k, n->outputs[0]);
    if (*out < 0)
        return refuse(f, "it joins the batch with other axes");
    /* computed from shapes, so it adapts; the check verifies that */
    if (!n->inputs[1]->data)
        return true;
    if (!constant_ints(n, 1, e.ints, &e.count) || (int)e.count <= *out)
        return refuse(f, "its shape is not known");
    if (e.ints[*out] != 1)
        return e.ints[*out] == -1 || e.ints[*out] == 0;
    if (sac_attr_int(n, "allowzero", 0) && contains(e.ints, e.count, 0))
        return refuse(f, "its shape has a real 0");
    if (*out == k)
        e.ints[*out] = 0;
    else if (!contains(e.ints, e.count, -1))
        e.ints[*out] = -1;
    else
        return refuse(f, "it moves the batch to another axis");
    return add_edit(f, e);
}

static bool rule_matmul(struct freeing *f, struct sac_node *n, int k, int *out)
{
    const struct sac_value *a = n->inputs[0], *b = n->inputs[1];
    int                     in_b = axis_of(f, b), rank = SAC_MAX(a->rank, b->rank);
    if (in_b < 0 && k >= 0 && k < a->rank - 1 && b->rank >= 1) { /* rows or stacks of a */
        *out = k + (rank - a->rank);
        bool stack = k < a->rank - 2;
        int  same = b->rank - (a->rank - k);
        return !stack || same < 0 || b->dims[same] == 1 || refuse(f, "b has a batch of its own");
    }
    if (k >= 0 && in_b >= 0 && a->rank == b->rank && k == in_b && k < a->rank - 2) {
        *out = k;
        return true;
    }
    return refuse(f, "it multiplies along the batch");
}

static bool rule_gemm(struct freeing *f, struct sac_node *n, int k, int *out)
{
    const struct sac_value *c = n->input_count > 2 ? n->inputs[2] : NULL;
    if (k != 0 || sac_attr_int(n, "transA", 0) || axis_of(f, n->inputs[1]) >= 0)
        return refuse(f, "it multiplies along the batch");
    *out = 0;
    return !c || axis_of(f, c) == 0 || c->rank < 2 || c->dims[0] == 1 ||
           refuse(f, "its bias has another size where the batch is");
}

static bool rule_layer_norm(struct freeing *f, struct sac_node *n, int k, int *out)
{
    int64_t axis = sac_attr_int(n, "axis", -1);
    axis += axis < 0 ? n->inputs[0]->rank : 0;
    *out = k;
    return axis > k || refuse(f, "it normalises along the batch");
}

/* A scale of 1 leaves the batch unchanged; sizes would fix it. */
static bool rule_resize(struct freeing *f, struct sac_node *n, int k, int *out)
{
    const struct sac_value *sizes = n->input_count > 3 ? n->inputs[3] : NULL;
    const int64_t          *axes;
    *out = 0;
    if (k != 0)
        return refuse(f, "the batch is not its first axis");
    size_t count = sac_attr_ints(n, "axes", &axes);
    if (count)
        return !contains(axes, count, 0) || refuse(f, "it scales the batch");
    return !sizes || !sizes->data || refuse(f, "its sizes fix the batch");
}

/* A 1 in the target, or a target computed from shapes, keeps the batch. */
static bool rule_expand(struct freeing *f, struct sac_node *n, int k, int *out)
{
    const struct sac_value *y = n->outputs[0];
    *out = y->rank - n->inputs[0]->rank + k;
    return (*out >= 0 && y->dims[*out] == 1) || refuse(f, "it widens the batch");
}

static bool rule_tile(struct freeing *f, struct sac_node *n, int k, int *out)
{
    *out = k;
    return n->outputs[0]->dims[k] == 1 || refuse(f, "it repeats the batch");
}

static bool rule_gather_elements(struct freeing *f, struct sac_node *n, int k, int *out)
{
    return axis_of(f, n->inputs[1]) == k ? rule_one_axis(f, n, k, out)
                                         : refuse(f, "its indices do not carry the batch");
}

/* Both inputs are [N,...]. */
static bool rule_grid_sample(struct freeing *f, struct sac_node *n, int k, int *out)
{
    *out = 0;
    return (k == 0 && axis_of(f, n->inputs[1]) == 0) ||
           refuse(f, "its grid does not carry the batch");
}

static bool rule_shape(struct freeing *f, struct sac_node *n, int k, int *out)
{
    (void)f, (void)n, (void)k;
    *out = -1; /* adapts by itself when a plan is created */
    return true;
}

static const struct {
    const char *op_type;
    rule_fn     rule;
} rules[] = {
    {"ArgMax", rule_one_axis},
    {"ArgMin", rule_one_axis},
    {"AveragePool", rule_first},
    {"BatchNormalization", rule_first},
    {"Concat", rule_concat},
    {"Conv", rule_first},
    {"ConvTranspose", rule_first},
    {"CumSum", rule_one_axis},
    {"DepthToSpace", rule_first},
    {"Expand", rule_expand},
    {"Flatten", rule_flatten},
    {"Gather", rule_gather},
    {"GatherElements", rule_gather_elements},
    {"Gemm", rule_gemm},
    {"GlobalAveragePool", rule_first},
    {"GlobalLpPool", rule_first},
    {"GlobalMaxPool", rule_first},
    {"GridSample", rule_grid_sample},
    {"GroupNormalization", rule_first},
    {"Hardmax", rule_softmax},
    {"InstanceNormalization", rule_first},
    {"LRN", rule_first},
    {"LayerNormalization", rule_layer_norm},
    {"LogSoftmax", rule_softmax},
    {"LpNormalization", rule_one_axis},
    {"LpPool", rule_first},
    {"MatMul", rule_matmul},
    {"MaxPool", rule_first},
    {"Pad", rule_pad},
    {"RMSNormalization", rule_layer_norm},
    {"ReduceL1", rule_reduce},
    {"ReduceL2", rule_reduce},
    {"ReduceLogSum", rule_reduce},
    {"ReduceLogSumExp", rule_reduce},
    {"ReduceMax", rule_reduce},
    {"ReduceMean", rule_reduce},
    {"ReduceMin", rule_reduce},
    {"ReduceProd", rule_reduce},
    {"ReduceSum", rule_reduce},
    {"ReduceSumSquare", rule_reduce},
    {"Reshape", rule_reshape},
    {"Resize", rule_resize},
    {"Shape", rule_shape},
    {"Slice", rule_slice},
    {"Softmax", rule_softmax},
    {"SpaceToDepth", rule_first},
    {"Split", rule_one_axis},
    {"Squeeze", rule_squeeze},
    {"Tile", rule_tile},
    {"TopK", rule_one_axis},
    {"Transpose", rule_transpose},
    {"Unsqueeze", rule_unsqueeze},
    {"Upsample", rule_first},
};

static rule_fn rule_for(const struct sac_node *n)
{
    if (n->domain[0] || !n->op || sac_node_has_subgraph(n))
        return NULL;
    for (size_t i = 0; i < SAC_COUNT(rules); i++)
        if (strcmp(rules[i].op_type, n->op_type) == 0)
            return rules[i].rule;
    return n->op->flags & SAC_OP_ELEMENTWISE || strcmp(n->op_type, "Identity") == 0 ||
                   strcmp(n->op_type, "Dropout") == 0
               ? rule_elementwise
               : NULL;
}

/* ---- the walk ---- */

static bool shapes_known(const struct sac_node *n)
{
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i] && n->inputs[i]->rank < 0)
            return false;
    for (int i = 0; i < n->output_count; i++)
        if (n->outputs[i] && n->outputs[i]->rank < 0)
            return false;
    return true;
}

static void note_batch(void *user, struct sac_value *v)
{
    struct freeing *f = user;
    f->reads_batch |= f->axis[v->id] >= 0;
}

static bool reads_batch(struct freeing *f, const struct sac_node *n)
{
    f->reads_batch = false;
    sac_node_each_read(n, note_batch, f);
    return f->reads_batch;
}

static bool follow(struct freeing *f, struct sac_node *n)
{
    int     axis = -1;
    rule_fn rule = rule_for(n);
    if (!reads_batch(f, n))
        return true;
    if (!rule)
        return refuse(f, "no rule says what it does to a batch");
    if (!shapes_known(n))
        return refuse(f, "its shapes are not known");
    if (!n->inputs[0] || (rule != rule_elementwise && rule != rule_matmul && rule != rule_concat &&
                          axis_of(f, n->inputs[0]) < 0))
        return refuse(f, "the batch enters through another input than the first");
    if (!rule(f, n, axis_of(f, n->inputs[0]), &axis))
        return false;
    for (int i = 0; i < n->output_count; i++) {
        if (!n->outputs[i])
            continue;
        if (axis >= n->outputs[i]->rank) /* the file declares a wrong rank */
            return refuse(f, "its output has no such axis");
        f->axis[n->outputs[i]->id] = axis;
    }
    return true;
}

/* Finds the inputs whose batch of 1 can be opened. */
static bool mark_inputs(struct freeing *f)
{
    for (int i = 0; i < f->g->input_count; i++) {
        const struct sac_value *v = f->g->inputs[i];
        if (v->rank < 2 || v->dims[0] != 1)
            return refuse(f, "its inputs do not all begin with a batch of 1");
        f->axis[v->id] = 0;
    }
    return f->g->input_count > 0 || refuse(f, "it has no inputs");
}

static sac_result analyse(struct freeing *f)
{
    char label[256];
    if (!mark_inputs(f))
        return SAC_FAIL(f->g->ctx, SAC_ERR_UNSUPPORTED, "%s", f->why);
    for (size_t i = 0; i < f->g->node_count; i++)
        if (!follow(f, f->g->nodes[i]))
            return SAC_FAIL(f->g->ctx, SAC_ERR_UNSUPPORTED, "%s: %s",
                            sac_node_label(f->g->nodes[i], label, sizeof label), f->why);
    for (int i = 0; i < f->g->output_count; i++)
        if (f->axis[f->g->outputs[i]->id] != 0)
            return SAC_FAIL(f->g->ctx, SAC_ERR_UNSUPPORTED,
                            "output '%s' does not begin with the batch", f->g->outputs[i]->name);
    return SAC_OK;
}

/* ---- the changes ---- */

/* The new numbers become a constant of this node only: other nodes may share the old one. */
static sac_result set_input(struct sac_graph *g, const struct edit *e, int input)
{
    struct sac_tensor_desc desc = {.dtype = SAC_I64, .rank = 1, .shape = {(int64_t)e->count}};
    struct sac_value      *v = sac_graph_constant(g, "freed batch", &desc, e->ints);
    if (!v)
        return SAC_ERR_MEMORY;
    if (input >= e->node->input_count) {
        struct sac_value **inputs = sac_arena_alloc(g->arena, 2 * sizeof *inputs);
        if (!inputs)
            return SAC_FAIL(g->ctx, SAC_ERR_MEMORY, "no memory to free the batch");
        inputs[0] = e->node->inputs[0];
        e->node->inputs = inputs;
        e->node->input_count = 2;
    }
    e->node->inputs[input] = v;
    return SAC_OK;
}

static sac_result apply(struct freeing *f)
{
    sac_result res = SAC_OK;
    for (size_t i = 0; i < f->edit_count && res == SAC_OK; i++) {
        const struct edit *e = &f->edits[i];
        if (e->kind == EDIT_AXES_ATTR)
            res = sac_node_set_ints(f->g, e->node, "axes", e->ints, e->count);
        else
            res = set_input(f->g, e, 1);
        if (res == SAC_OK && e->kind == EDIT_SHAPE)
            res = sac_node_set_int(f->g, e->node, "allowzero", 0);
    }
    for (int i = 0; i < f->g->input_count && res == SAC_OK; i++)
        f->g->inputs[i]->dims[0] = SAC_DIM_OPEN;
    return res == SAC_OK ? sac_graph_refresh(f->g) : res;
}

sac_result sac_graph_free_batch(struct sac_graph *g)
{
    struct freeing f = {.g = g};
    f.axis = sac_realloc_array(NULL, (size_t)g->id_count, sizeof *f.axis);
    if (!f.axis)
        return SAC_FAIL(g->ctx, SAC_ERR_MEMORY, "no memory to free the batch");
    memset(f.axis, 0xff, (size_t)g->id_count * sizeof *f.axis);
    sac_result res = analyse(&f);
    if (res == SAC_OK)
        res = apply(&f);
    sac_free(f.axis);
    sac_free(f.edits);
    return res;
}
