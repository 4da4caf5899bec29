/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that change nothing: Identity, Dropout at inference, a Cast to the same dtype, a Transpose
 * that moves nothing, a Pad by nothing (PyTorch 1 writes one before each average pooling), a
 * Reshape to the same shape, a Resize to the same size, a Slice of all, a Concat or Sum of one, a
 * Reshape of a Reshape, a Relu of what is never below 0 (RAFT's encoders). */
#include <string.h>

#include "engine/passes/pass.h"

static bool identity_perm(const struct sac_node *n)
{
    const int64_t *perm;
    const size_t   count = sac_attr_ints(n, "perm", &perm);
    for (size_t i = 0; i < count; i++)
        if (perm[i] != (int64_t)i)
            return false;
    return count > 0;
}

static bool pads_nothing(const struct sac_node *n)
{
    const int64_t *listed;
    int64_t        pads[2 * SAC_RANK_MAX];
    size_t         count = sac_attr_ints(n, "pads", &listed); /* up to opset 10 */
    if (!count && sac_constant_ints(sac_node_input(n, 1), pads, SAC_COUNT(pads), &count))
        listed = pads;
    for (size_t i = 0; i < count; i++)
        if (listed[i] != 0)
            return false;
    return count > 0;
}

/* Bounds around all of it: exporters write one to cut off padding that is not there. */
static bool slices_nothing(const struct sac_node *n)
{
    const struct sac_value *in = n->inputs[0];
    struct sac_slice_bounds b;
    if (!sac_same_shape(in, n->outputs[0]) || !sac_slice_constants(n, in->rank, &b))
        return false;
    for (int d = 0; d < in->rank; d++)
        if (b.step[d] != 1 ||
            (in->dims[d] == SAC_DIM_OPEN && (b.start[d] != 0 || b.end[d] < INT32_MAX)))
            return false;
    return true;
}

/* By sizes, or by scales of one: others may give the same size too, and move every pixel. Heads of
 * segmenters bring all their maps to the size of the largest, that one too. */
static bool resizes_nothing(const struct sac_node *n)
{
    const struct sac_value *sizes = sac_node_input(n, 3), *scales = sac_node_input(n, 2);
    const int64_t           count = scales && scales->data ? sac_value_elements(scales) : 0;
    const float            *scale = count > 0 ? sac_constant_floats(scales) : NULL;
    const struct sac_value *in = n->inputs[0];
    bool                    same = sac_same_shape(in, n->outputs[0]) && n->opset >= 11;
    /* sizes that are only known to be open may be those of something else */
    same &= in->dims[0] != SAC_DIM_OPEN || (in->batches == 1 && n->outputs[0]->batches == 1);
    /* TensorFlow's begin half a pixel further, or anywhere */
    same &= strncmp(sac_attr_string(n, "coordinate_transformation_mode", ""), "tf_", 3) != 0;
    for (int64_t i = 0; i < count; i++)
        same &= scale && scale[i] == 1;
    return same && (sizes || scale);
}

/* Is an activation's result never below 0? */
static bool act_is_positive(const struct sac_activation *act)
{
    switch (act->kind) {
    case SAC_ACT_RELU:
    case SAC_ACT_SIGMOID:
    case SAC_ACT_HARD_SIGMOID:
    case SAC_ACT_SOFTPLUS: return true;
    case SAC_ACT_CLIP: return act->alpha >= 0 && act->beta >= 0;
    default: return false;
    }
}

/* Is no number of v below 0? Looks at so many nodes at most. */
static bool is_positive(const struct sac_value *v, int *nodes)
{
    static const char *const keep[] = {"MaxPool", "AveragePool", "GlobalAveragePool", "Reshape",
                                       "Transpose"};
    struct sac_activation    act;
    const struct sac_node   *n = v ? v->producer : NULL;
    if (!n || v->dtype != SAC_F32 || --*nodes < 0)
        return false;
    if (sac_activation_of(n, &act))
        return act_is_positive(&act);
    if (sac_is_any(n, keep, SAC_COUNT(keep)))
        return is_positive(sac_node_input(n, 0), nodes);
    return (sac_is(n, "Add") || sac_is(n, "Mul")) && is_positive(n->inputs[0], nodes) &&
           is_positive(n->inputs[1], nodes);
}

static bool changes_nothing(const struct sac_node *n)
{
    enum { NODES_MAX = 64 };
    int                     nodes = NODES_MAX;
    const struct sac_value *in = sac_node_input(n, 0), *out = n->outputs[0];
    if (!in || !out)
        return false;
    if (sac_is(n, "Identity"))
        return true;
    if (sac_is(n, "Dropout"))
        return (n->output_count < 2 || !n->outputs[1] || n->outputs[1]->uses == 0) &&
               (!sac_node_input(n, 2) ||
                (n->inputs[2]->data && !*(const char *)n->inputs[2]->data));
    if (sac_is(n, "Cast"))
        return in->dtype != SAC_DTYPE_NONE && in->dtype == (enum sac_dtype)out->dtype &&
               out->rank >= 0;
    if (sac_is(n, "Transpose"))
        return identity_perm(n);
    if (sac_is(n, "Pad"))
        return pads_nothing(n);
    if (sac_is(n, "Slice"))
        return slices_nothing(n);
    if (sac_is(n, "Resize"))
        return resizes_nothing(n);
    if (sac_is(n, "Reshape"))
        return sac_same_shape(in, out);
    if (sac_is(n, "Relu"))
        return is_positive(in, &nodes);
    return (sac_is(n, "Concat") || sac_is(n, "Sum")) && n->input_count == 1;
}

/* Only the last of several consecutive views determines the shape. One that copies dims ('0')
 * depends on its own input and stays. */
static bool skips_a_view(struct sac_node *n)
{
    int64_t target[SAC_RANK_MAX];
    size_t  count;
    if (!sac_is(n, "Reshape") ||
        !sac_constant_ints(sac_node_input(n, 1), target, SAC_RANK_MAX, &count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (target[i] == 0)
            return false;
    struct sac_node *before = n->inputs[0]->producer;
    if (!sac_is(before, "Reshape") && !sac_is(before, "Squeeze") && !sac_is(before, "Unsqueeze") &&
        !sac_is(before, "Flatten"))
        return false;
    n->inputs[0] = before->inputs[0];
    return true;
}

/* So many times the batch; 0: not known, or not open. */
static int64_t elements_per_batch(const struct sac_value *v)
{
    int64_t elements = v->batches;
    for (int d = 1; d < v->rank; d++)
        if (v->dims[d] == SAC_DIM_OPEN || __builtin_mul_overflow(elements, v->dims[d], &elements))
            return 0;
    return elements;
}

/* All numbers of a line, in their order: what PyTorch's newer exporter makes of as_strided, behind
 * means whose map lies channels last there. */
static bool gathers_all(const struct sac_node *n)
{
    const struct sac_value *line = sac_node_input(n, 0), *index = sac_node_input(n, 1);
    if (!sac_is(n, "Gather") || sac_attr_int(n, "axis", 0) != 0 || line->rank != 1 ||
        !index->counts || index->rank < 1)
        return false;
    const int64_t elements = elements_per_batch(index);
    return elements > 0 ? elements == elements_per_batch(line)
                        : line->dims[0] >= 0 && line->dims[0] == sac_value_elements(index);
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    if (n->output_count < 1)
        return SAC_OK;
    if (changes_nothing(n)) {
        sac_graph_replace(g, n->outputs[0], n->inputs[0]);
        *changed = true;
    } else if (gathers_all(n)) {
        sac_result        res = SAC_OK;
        struct sac_value *line = n->inputs[0], *index = n->inputs[1];
        struct sac_value *y = sac_reshaped(g, n, line, index->rank, index->dims, &res);
        *changed = y != NULL;
        return y ? sac_take_over(g, y->producer, n) : res;
    } else {
        *changed = skips_a_view(n);
    }
    return SAC_OK;
}

const struct sac_pass sac_pass_identity = {"identity", visit};
