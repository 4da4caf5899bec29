/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the passes: matching nodes and constants, and inserting new ones. */
#include <math.h>
#include <string.h>

#include "engine/passes/pass.h"

bool sac_is(const struct sac_node *n, const char *op_type)
{
    return n && n->op && n->domain[0] == 0 && strcmp(n->op_type, op_type) == 0;
}

bool sac_is_dense_conv(const struct sac_node *n)
{
    return (sac_is(n, "Conv") || sac_is_fused(n, "FusedConv")) && n->output_count == 1 &&
           n->outputs[0]->dtype == SAC_F32 && n->outputs[0]->rank >= 3 &&
           n->outputs[0]->dims[1] > 0 && sac_constant_floats(sac_node_input(n, 1)) &&
           sac_attr_int(n, "group", 1) == 1;
}

bool sac_is_fused(const struct sac_node *n, const char *op_type)
{
    return n && strcmp(n->domain, "saccade") == 0 && strcmp(n->op_type, op_type) == 0;
}

struct sac_node *sac_made_by(const struct sac_value *v, const char *op_type)
{
    return v && sac_is(v->producer, op_type) ? v->producer : NULL;
}

struct sac_node *sac_only_reader(const struct sac_node *n, const char *op_type)
{
    struct sac_node *reader =
        n->output_count == 1 && n->outputs[0] ? sac_value_only_reader(n->outputs[0]) : NULL;
    return reader && (!op_type || sac_is(reader, op_type)) ? reader : NULL;
}

struct sac_value *sac_node_input(const struct sac_node *n, int i)
{
    return i < n->input_count ? n->inputs[i] : NULL;
}

struct sac_value *sac_other_input(const struct sac_node *n, const struct sac_value *v)
{
    if (n->input_count != 2)
        return NULL;
    return n->inputs[0] == v ? n->inputs[1] : n->inputs[1] == v ? n->inputs[0] : NULL;
}

struct sac_value *sac_residual_beside(const struct sac_node *n, const struct sac_value *v)
{
    struct sac_value *other = v && sac_is(n, "Add") ? sac_other_input(n, v) : NULL;
    return other && other != v && !other->data && sac_same_shape(other, v) ? other : NULL;
}

bool sac_same_shape(const struct sac_value *a, const struct sac_value *b)
{
    if (a->rank < 1 || a->rank != b->rank || a->dtype != b->dtype)
        return false;
    for (int d = 0; d < a->rank; d++)
        if (a->dims[d] != b->dims[d] || (d > 0 && a->dims[d] == SAC_DIM_OPEN))
            return false;
    return true;
}

int64_t sac_value_elements(const struct sac_value *v)
{
    int64_t count = 1;
    for (int d = 0; d < v->rank; d++) {
        if (v->dims[d] == SAC_DIM_OPEN)
            return -1;
        count *= v->dims[d];
    }
    return v->rank < 0 ? -1 : count;
}

const float *sac_constant_floats(const struct sac_value *v)
{
    return v && v->data && v->dtype == SAC_F32 ? v->data : NULL;
}

bool sac_constant_scalar(const struct sac_value *v, float *out)
{
    const float *data = sac_constant_floats(v);
    if (!data || sac_value_elements(v) != 1)
        return false;
    *out = *data;
    return true;
}

bool sac_is_number(const struct sac_value *v, float number)
{
    float c;
    return sac_constant_scalar(v, &c) && c == number;
}

struct sac_value *sac_square_of(const struct sac_value *v)
{
    const struct sac_node *n = v->producer;
    if ((sac_is(n, "Mul") && n->inputs[0] == n->inputs[1]) ||
        (sac_is(n, "Pow") && sac_is_number(n->inputs[1], 2)))
        return n->inputs[0];
    return NULL;
}

bool sac_constant_per_channel(const struct sac_value *v, int rank, int64_t channels, float *out)
{
    const float *data = sac_constant_floats(v);
    if (!data || v->rank > rank)
        return false;
    const int64_t count = sac_value_elements(v);
    const int     axis = v->rank - (rank - 1); /* of v: what lines up with dimension 1 */
    if (count != 1 && (count != channels || axis < 0 || v->dims[axis] != channels))
        return false;
    for (int64_t i = 0; i < channels; i++)
        out[i] = data[count == 1 ? 0 : i];
    return true;
}

bool sac_batch_norm_constants(const struct sac_node *n, int64_t channels, float *scale,
                              float *shift)
{
    const float *part[4];
    for (int i = 0; i < 4; i++) {
        const struct sac_value *v = sac_node_input(n, i + 1);
        part[i] = sac_constant_floats(v);
        if (!part[i] || sac_value_elements(v) != channels)
            return false;
    }
    const float epsilon = sac_attr_float(n, "epsilon", 1e-5f);
    for (int64_t c = 0; c < channels; c++) {
        scale[c] = part[0][c] / sqrtf(part[3][c] + epsilon);
        shift[c] = part[1][c] - part[2][c] * scale[c];
    }
    return !sac_attr_int(n, "training_mode", 0);
}

bool sac_constant_ints(const struct sac_value *v, int64_t *out, size_t max, size_t *count)
{
    const int64_t n = v && v->data ? sac_value_elements(v) : -1;
    if (n < 0 || (size_t)n > max || (v->dtype != SAC_I64 && v->dtype != SAC_I32))
        return false;
    for (int64_t i = 0; i < n; i++)
        out[i] =
            v->dtype == SAC_I64 ? ((const int64_t *)v->data)[i] : ((const int32_t *)v->data)[i];
    *count = (size_t)n;
    return true;
}

bool sac_constant_row(const struct sac_value *v, int rank, int64_t columns)
{
    const int64_t count = sac_constant_floats(v) ? sac_value_elements(v) : 0;
    return count > 0 && v->rank <= rank &&
           (count == 1 || (count == columns && v->rank > 0 && v->dims[v->rank - 1] == columns));
}

bool sac_slice_constants(const struct sac_node *n, int rank, struct sac_slice_bounds *out)
{
    int64_t start[SAC_RANK_MAX], end[SAC_RANK_MAX], axes[SAC_RANK_MAX], step[SAC_RANK_MAX];
    size_t  count, ends, listed;
    if (!sac_constant_ints(sac_node_input(n, 1), start, SAC_RANK_MAX, &count) ||
        !sac_constant_ints(sac_node_input(n, 2), end, SAC_RANK_MAX, &ends) || ends != count)
        return false;
    for (int d = 0; d < SAC_RANK_MAX; d++) {
        axes[d] = d;
        step[d] = out->step[d] = 1;
        out->start[d] = 0;
        out->end[d] = INT64_MAX;
    }
    for (int i = 3; i < 5; i++)
        if (sac_node_input(n, i) &&
            (!sac_constant_ints(n->inputs[i], i == 3 ? axes : step, SAC_RANK_MAX, &listed) ||
             listed != count))
            return false;
    for (size_t i = 0; i < count; i++) {
        const int64_t d = axes[i] + (axes[i] < 0 ? rank : 0);
        if (d < 0 || d >= rank)
            return false;
        out->start[d] = start[i];
        out->end[d] = end[i];
        out->step[d] = step[i];
    }
    return true;
}

bool sac_zero_pads(const struct sac_node *n, int rank, int64_t *pads)
{
    const int64_t *attr;
    size_t         count = sac_attr_ints(n, "pads", &attr);
    float          value = sac_attr_float(n, "value", 0);
    if (!sac_is(n, "Pad") || strcmp(sac_attr_string(n, "mode", "constant"), "constant") != 0 ||
        sac_node_input(n, 3))
        return false;
    if (count && count <= 2 * SAC_RANK_MAX)
        memcpy(pads, attr, count * sizeof *pads);
    else if (!sac_constant_ints(sac_node_input(n, 1), pads, 2 * SAC_RANK_MAX, &count))
        return false;
    if (sac_node_input(n, 2) && !sac_constant_scalar(n->inputs[2], &value))
        return false;
    for (size_t i = 0; i < count; i++)
        if (pads[i] < 0)
            return false;
    return count == (size_t)(2 * rank) && value == 0;
}

int64_t sac_whole_channels(int64_t count)
{
    enum { WIDE = 16, WIDE_SHARE = 12, MULTIPLE = 8 };
    const int64_t wide = (count + WIDE - 1) / WIDE * WIDE;
    return (wide - count) * WIDE_SHARE <= count ? wide
                                                : (count + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
}

/* The permutation of a Transpose of at least three dims that leaves the first where it is. */
static int batch_perm(const struct sac_node *n, const int64_t **perm)
{
    const int rank = sac_is(n, "Transpose") && n->inputs[0] ? n->inputs[0]->rank : -1;
    return rank >= 3 && sac_attr_ints(n, "perm", perm) == (size_t)rank && (*perm)[0] == 0 ? rank
                                                                                          : 0;
}

bool sac_turns_first(const struct sac_node *n)
{
    const int64_t *perm;
    const int      rank = batch_perm(n, &perm);
    for (int i = 1; i < rank; i++)
        if (perm[i] != (i == 1 ? rank - 1 : i - 1))
            return false;
    return rank > 0;
}

bool sac_turns_last(const struct sac_node *n)
{
    const int64_t *perm;
    const int      rank = batch_perm(n, &perm);
    for (int i = 1; i < rank; i++)
        if (perm[i] != (i == rank - 1 ? 1 : i + 1))
            return false;
    return rank > 0;
}

bool sac_turns_last_two(const struct sac_node *n)
{
    const int64_t *perm;
    const int      rank = n->inputs[0] ? n->inputs[0]->rank : -1;
    if (rank < 2 || !sac_is(n, "Transpose") || sac_attr_ints(n, "perm", &perm) != (size_t)rank)
        return false;
    for (int d = 0; d < rank; d++)
        if (perm[d] != (d < rank - 2 ? d : 2 * rank - 3 - d))
            return false;
    return true;
}

bool sac_softmax_axis(const struct sac_node *n, int rank, int *axis)
{
    const bool old = n->opset < 13;
    return sac_axis_normalise(sac_attr_int(n, "axis", old ? 1 : -1), rank, axis) &&
           (!old || *axis == rank - 1);
}

bool sac_reduce_axes(const struct sac_node *n, int rank, bool *reduced)
{
    int64_t        axes[SAC_RANK_MAX];
    const int64_t *attr;
    size_t         count = sac_attr_ints(n, "axes", &attr);
    if (rank < 0 || rank > SAC_RANK_MAX || count > SAC_RANK_MAX)
        return false;
    if (count)
        memcpy(axes, attr, count * sizeof *axes);
    else if (sac_node_input(n, 1) && !sac_constant_ints(n->inputs[1], axes, SAC_RANK_MAX, &count))
        return false;
    if (count == 0 && sac_attr_int(n, "noop_with_empty_axes", 0))
        return false;
    for (int d = 0; d < rank; d++)
        reduced[d] = count == 0;
    for (size_t i = 0; i < count; i++) {
        int64_t a = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (a < 0 || a >= rank)
            return false;
        reduced[a] = true;
    }
    return true;
}

/* An AveragePool of one window, which all of the map lies in. */
static bool pools_all(const struct sac_node *n)
{
    const struct sac_value *x = n->inputs[0], *y = n->outputs[0];
    const int64_t          *kernel, *pads, *dilations;
    const size_t            rank = sac_attr_ints(n, "kernel_shape", &kernel),
                 padded = sac_attr_ints(n, "pads", &pads),
                 dilated = sac_attr_ints(n, "dilations", &dilations);
    bool all = sac_is(n, "AveragePool") && rank == (size_t)x->rank - 2 &&
               strncmp(sac_attr_string(n, "auto_pad", ""), "SAME", 4) != 0;
    for (size_t i = 0; i < padded; i++)
        all = all && pads[i] == 0;
    for (size_t i = 0; i < dilated; i++)
        all = all && dilations[i] == 1;
    for (int d = 2; all && d < x->rank; d++)
        all = y->dims[d] == 1 && x->dims[d] > 0 && kernel[d - 2] >= x->dims[d];
    return all;
}

bool sac_takes_means(const struct sac_node *n)
{
    const struct sac_value *x = sac_node_input(n, 0), *y = n->outputs[0];
    bool                    reduced[SAC_RANK_MAX] = {false};
    if (!x || !y || x->dtype != SAC_F32 || x->rank < 3 || x->rank != y->rank)
        return false;
    bool means = sac_is(n, "GlobalAveragePool") || pools_all(n);
    if (sac_is(n, "ReduceMean") && sac_reduce_axes(n, x->rank, reduced)) {
        means = true;
        for (int d = 0; d < x->rank; d++)
            means = means && reduced[d] == (d >= 2);
    }
    for (int d = 2; d < x->rank; d++)
        means = means && x->dims[d] != 0;
    return means;
}

struct sac_value *sac_value_like(struct sac_graph *g, const struct sac_value *v)
{
    struct sac_value *made = sac_graph_value(g, v->name);
    if (made) {
        made->dtype = v->dtype;
        made->rank = v->rank;
        memcpy(made->dims, v->dims, sizeof made->dims);
    }
    return made;
}

/* The output of n, float32 of these dims; NULL: no memory. */
static struct sac_value *only_output(struct sac_graph *g, struct sac_node *n, const char *name,
                                     int rank, const int64_t *dims, sac_result *res)
{
    struct sac_value *made = n && *res == SAC_OK ? sac_graph_value(g, name) : NULL;
    if (!made) {
        *res = SAC_ERR_MEMORY;
        return NULL;
    }
    made->dtype = n->inputs[0]->dtype;
    made->rank = rank;
    memcpy(made->dims, dims, (size_t)rank * sizeof *dims);
    made->producer = n;
    n->outputs[0] = made;
    return made;
}

struct sac_value *sac_reshaped(struct sac_graph *g, const struct sac_node *like,
                               struct sac_value *v, int rank, const int64_t *dims, sac_result *res)
{
    const struct sac_tensor_desc desc = {.dtype = SAC_I64, .rank = 1, .shape = {rank}};
    int                          open = 0;
    for (int d = 0; d < rank; d++) {
        open += dims[d] == SAC_DIM_OPEN; /* -1, what Reshape fills in */
        if (dims[d] == 0)                /* what it keeps */
            return NULL;
    }
    if (open > 1)
        return NULL;
    struct sac_node *n = sac_op_node(g, "", "Reshape", 2, 1, like);
    if (n) {
        n->inputs[0] = v;
        n->inputs[1] = sac_graph_constant(g, v->name, &desc, dims);
    }
    return only_output(g, n && n->inputs[1] ? n : NULL, v->name, rank, dims, res);
}

struct sac_value *sac_transposed(struct sac_graph *g, const struct sac_node *like,
                                 struct sac_value *v, const int64_t *perm, sac_result *res)
{
    int64_t          dims[SAC_RANK_MAX];
    struct sac_node *n = sac_op_node(g, "", "Transpose", 1, 1, like);
    for (int d = 0; d < v->rank; d++)
        dims[d] = v->dims[perm[d]];
    if (n) {
        n->inputs[0] = v;
        *res = sac_node_set_ints(g, n, "perm", perm, (size_t)v->rank);
    }
    return only_output(g, n, v->name, v->rank, dims, res);
}

struct sac_value *sac_part_of(struct sac_graph *g, const struct sac_node *like, struct sac_value *v,
                              int axis, int64_t first, int64_t count, sac_result *res)
{
    const struct sac_tensor_desc desc = {.dtype = SAC_I64, .rank = 1, .shape = {1}};
    const int64_t                numbers[] = {first, first + count, axis}; /* start, end, axis */
    int64_t                      dims[SAC_RANK_MAX];
    struct sac_node             *n = sac_op_node(g, "", "Slice", 4, 1, like);
    bool                         whole = n != NULL;
    for (int i = 0; whole && i < 3; i++) {
        n->inputs[1 + i] = sac_graph_constant(g, v->name, &desc, &numbers[i]);
        whole = n->inputs[1 + i] != NULL;
    }
    memcpy(dims, v->dims, sizeof dims);
    dims[axis] = count;
    if (whole)
        n->inputs[0] = v;
    return only_output(g, whole ? n : NULL, v->name, v->rank, dims, res);
}

struct sac_value *sac_channels_of(struct sac_graph *g, const struct sac_node *like,
                                  struct sac_value *v, int64_t first, int64_t count,
                                  sac_result *res)
{
    return sac_part_of(g, like, v, 1, first, count, res);
}

sac_result sac_copy_attrs(struct sac_graph *g, struct sac_node *to, const struct sac_node *from)
{
    sac_result res = SAC_OK;
    for (int i = 0; res == SAC_OK && i < from->attr_count; i++)
        res = sac_node_copy_attr(g, to, from->attrs[i].name, from);
    return res;
}

sac_result sac_take_over(struct sac_graph *g, struct sac_node *n, struct sac_node *old)
{
    n->outputs[0] = sac_value_like(g, old->outputs[0]);
    if (!n->outputs[0])
        return SAC_ERR_MEMORY;
    n->outputs[0]->producer = n;
    sac_graph_replace(g, old->outputs[0], n->outputs[0]);
    return SAC_OK;
}

struct sac_value *sac_new_floats(struct sac_graph *g, const char *name, int rank,
                                 const int64_t *dims, float **data)
{
    struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = rank};
    for (int d = 0; d < rank; d++)
        desc.shape[d] = dims[d];
    struct sac_value *v = sac_graph_constant(g, name, &desc, NULL);
    if (v)
        *data = (float *)v->data; /* fresh from the arena, ours to fill */
    return v;
}

struct sac_value *sac_new_number(struct sac_graph *g, float value)
{
    float            *data;
    struct sac_value *v = sac_new_floats(g, "", 0, NULL, &data);
    if (v)
        *data = value;
    return v;
}

struct sac_value *sac_made_of(struct sac_graph *g, const struct sac_node *like, const char *type,
                              int inputs, struct sac_value *const *in, sac_result *res)
{
    struct sac_node  *n = sac_op_node(g, "", type, inputs, 1, like);
    struct sac_value *y = n && in[0] ? sac_value_like(g, in[0]) : NULL;
    bool              whole = y != NULL;
    for (int i = 0; whole && i < inputs; i++) {
        n->inputs[i] = in[i];
        whole = in[i] != NULL;
    }
    if (!whole) {
        *res = SAC_ERR_MEMORY;
        return NULL;
    }
    n->outputs[0] = y;
    y->producer = n;
    return y;
}

struct sac_value *sac_mask_addend(struct sac_graph *g, const struct sac_node *like,
                                  struct sac_value *mask, bool low_where_true, float low,
                                  sac_result *res)
{
    if (!mask->data) {
        struct sac_value *const number = sac_new_number(g, low), *const zero = sac_new_number(g, 0);
        struct sac_value *const in[] = {mask, low_where_true ? number : zero,
                                        low_where_true ? zero : number};
        struct sac_value       *v = sac_made_of(g, like, "Where", 3, in, res);
        if (v)
            v->dtype = SAC_F32;
        return v;
    }
    const uint8_t    *from = mask->data;
    float            *data;
    struct sac_value *v = sac_new_floats(g, mask->name, mask->rank, mask->dims, &data);
    for (int64_t i = 0, n = v ? sac_value_elements(v) : 0; i < n; i++)
        data[i] = (from[i] != 0) == low_where_true ? low : 0;
    if (!v)
        *res = SAC_ERR_MEMORY;
    return v;
}

bool sac_activation_of(const struct sac_node *n, struct sac_activation *out)
{
    *out = (struct sac_activation){0};
    if (n->output_count != 1 || !n->op || !sac_node_input(n, 0) || n->inputs[0]->dtype != SAC_F32 ||
        !sac_activation_from_attrs(n, out))
        return false;
    if (out->kind != SAC_ACT_CLIP || !sac_is(n, "Clip"))
        return true;
    if (sac_node_input(n, 1) && !sac_constant_scalar(n->inputs[1], &out->alpha))
        return false;
    return !sac_node_input(n, 2) || sac_constant_scalar(n->inputs[2], &out->beta);
}

sac_result sac_set_activation(struct sac_graph *g, struct sac_node *n,
                              const struct sac_activation *act)
{
    sac_result res = sac_node_set_int(g, n, "activation", act->kind);
    if (res == SAC_OK)
        res = sac_node_set_float(g, n, "alpha", act->alpha);
    return res == SAC_OK ? sac_node_set_float(g, n, "beta", act->beta) : res;
}

bool sac_is_any(const struct sac_node *n, const char *const *types, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (sac_is(n, types[i]))
            return true;
    return false;
}

bool sac_ints_are(const struct sac_node *n, const char *name, int64_t number)
{
    const int64_t *list;
    const size_t   count = sac_attr_ints(n, name, &list);
    for (size_t i = 0; i < count; i++)
        if (list[i] != number)
            return false;
    return true;
}

bool sac_is_reshape(const struct sac_node *n)
{
    static const char *const types[] = {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"};
    return sac_is_any(n, types, SAC_COUNT(types));
}

bool sac_stand_in_dims(const struct sac_value *v, int64_t total, int64_t *dims, int *open)
{
    int64_t all = 1;
    *open = -1;
    for (int d = 0; d < v->rank; d++) {
        dims[d] = v->dims[d];
        if (dims[d] == SAC_DIM_OPEN && *open >= 0)
            return false;
        if (dims[d] == SAC_DIM_OPEN) {
            *open = d;
            continue;
        }
        if (dims[d] <= 0 || all >= SAC_STAND_IN / dims[d])
            return false;
        all *= dims[d];
    }
    if (*open >= 0)
        dims[*open] = total ? total / all : SAC_STAND_IN;
    return v->rank >= 0 && (!total || (*open >= 0 ? total % all == 0 : total == all));
}
