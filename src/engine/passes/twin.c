/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of two convolutions of the same input, of which one's window covers the other's, is one
 * convolution: networks are trained with such twins (a window of 3x3 and one of 1x1; Ding et al.,
 * "RepVGG", 2021) and often exported with them. Their normalisations are in the weights by now,
 * and the sum is the residual of one of the two. So is a normalisation of that input that is added,
 * which is a convolution of one tap. */
#include <string.h>

#include "engine/passes/pass.h"

enum { SPATIAL_MAX = SAC_RANK_MAX - 2 };

struct window {
    int     rank; /* spatial */
    int64_t size[SPATIAL_MAX], pads[2 * SPATIAL_MAX], stride[SPATIAL_MAX], dilation[SPATIAL_MAX];
};

static bool read_list(const struct sac_node *n, const char *name, int count, int64_t otherwise,
                      int64_t *to)
{
    const int64_t *list;
    const size_t   there = sac_attr_ints(n, name, &list);
    for (int i = 0; i < count; i++)
        to[i] = there == (size_t)count ? list[i] : otherwise;
    return there == 0 || there == (size_t)count;
}

static bool read_window(const struct sac_node *n, struct window *w)
{
    w->rank = n->inputs[1]->rank - 2;
    if (w->rank < 1 || w->rank > SPATIAL_MAX ||
        strcmp(sac_attr_string(n, "auto_pad", "NOTSET"), "NOTSET") != 0)
        return false;
    memcpy(w->size, n->inputs[1]->dims + 2, (size_t)w->rank * sizeof *w->size);
    return read_list(n, "pads", 2 * w->rank, 0, w->pads) &&
           read_list(n, "strides", w->rank, 1, w->stride) &&
           read_list(n, "dilations", w->rank, 1, w->dilation);
}

static sac_result set_window(struct sac_graph *g, struct sac_node *n, const struct window *w)
{
    const size_t rank = (size_t)w->rank;
    sac_result   res = sac_node_set_ints(g, n, "kernel_shape", w->size, rank);
    if (res == SAC_OK)
        res = sac_node_set_ints(g, n, "pads", w->pads, 2 * rank);
    if (res == SAC_OK)
        res = sac_node_set_ints(g, n, "strides", w->stride, rank);
    return res == SAC_OK ? sac_node_set_ints(g, n, "dilations", w->dilation, rank) : res;
}

/* Where the taps of `small` lie among those of `large`; false: not all are there. */
static bool covers(const struct window *large, const struct window *small, int64_t *first)
{
    for (int d = 0; d < large->rank; d++) {
        const int64_t off = large->pads[d] - small->pads[d], step = large->dilation[d];
        if (large->stride[d] != small->stride[d] || step < 1 || off < 0 || off % step != 0 ||
            (small->size[d] > 1 && small->dilation[d] != step))
            return false;
        first[d] = off / step;
        if (first[d] + small->size[d] > large->size[d])
            return false;
    }
    return true;
}

static bool has_weights(const struct sac_node *n)
{
    return n && (sac_is(n, "Conv") || sac_is_fused(n, "FusedConv")) && n->outputs[0] &&
           n->outputs[0]->dtype == SAC_F32 && sac_constant_floats(n->inputs[1]) &&
           sac_value_elements(n->inputs[1]) > 0 &&
           (!sac_node_input(n, 2) || sac_constant_floats(n->inputs[2]));
}

/* The convolution whose output n adds before its activation, and which nobody else reads. */
static struct sac_node *twin_of(const struct sac_node *n)
{
    const struct sac_value *r = sac_node_input(n, SAC_RESIDUAL_INPUT);
    struct sac_node        *twin = r ? r->producer : NULL;
    if (!sac_is_fused(n, "FusedConv") || !has_weights(n) || !has_weights(twin) || r->uses != 1 ||
        sac_attr_int(n, "residual", SAC_RESIDUAL_NONE) != SAC_RESIDUAL_BEFORE ||
        sac_attr_int(twin, "activation", SAC_ACT_NONE) != SAC_ACT_NONE ||
        sac_node_input(twin, SAC_RESIDUAL_INPUT) || twin->inputs[0] != n->inputs[0] ||
        n->inputs[1]->rank != twin->inputs[1]->rank ||
        sac_attr_int(n, "group", 1) != sac_attr_int(twin, "group", 1))
        return NULL;
    for (int d = 0; d < 2; d++)
        if (n->inputs[1]->dims[d] != twin->inputs[1]->dims[d])
            return NULL;
    return twin;
}

/* The weights of both, in the larger window. */
static struct sac_value *sum_of_weights(struct sac_graph *g, const struct sac_value *large,
                                        const struct sac_value *small, const int64_t *first)
{
    const int     rank = large->rank - 2;
    const int64_t filters = large->dims[0] * large->dims[1];
    const int64_t each = sac_value_elements(large) / filters,
                  some = sac_value_elements(small) / filters;
    const float      *add = small->data;
    float            *w;
    struct sac_value *sum = sac_new_floats(g, large->name, large->rank, large->dims, &w);
    if (!sum)
        return NULL;
    memcpy(w, large->data, (size_t)(filters * each) * sizeof *w);
    for (int64_t i = 0; i < filters * some; i++) {
        int64_t rest = i % some, at = 0, step = 1;
        for (int d = rank - 1; d >= 0; d--) {
            at += (first[d] + rest % small->dims[2 + d]) * step;
            rest /= small->dims[2 + d];
            step *= large->dims[2 + d];
        }
        w[i / some * each + at] += add[i];
    }
    return sum;
}

static struct sac_value *sum_of_biases(struct sac_graph *g, const struct sac_node *a,
                                       const struct sac_node *b)
{
    const int64_t     channels = a->inputs[1]->dims[0];
    const float      *from[] = {sac_constant_floats(sac_node_input(a, 2)),
                                sac_constant_floats(sac_node_input(b, 2))};
    float            *bias;
    struct sac_value *sum = sac_new_floats(g, "bias", 1, &channels, &bias);
    for (int64_t c = 0; sum && c < channels; c++)
        bias[c] = (from[0] ? from[0][c] : 0) + (from[1] ? from[1][c] : 0);
    return sum;
}

static sac_result make(struct sac_graph *g, struct sac_node *n, const struct sac_node *large,
                       const struct sac_node *small, const struct window *window,
                       const int64_t *first)
{
    struct sac_node *made = sac_op_node(g, "saccade", "FusedConv", 4, 1, n);
    sac_result       res = made ? sac_copy_attrs(g, made, n) : SAC_ERR_MEMORY;
    if (res == SAC_OK)
        res = set_window(g, made, window);
    if (res == SAC_OK)
        res = sac_node_set_int(g, made, "residual", SAC_RESIDUAL_NONE);
    if (res != SAC_OK)
        return res;
    made->inputs[0] = n->inputs[0];
    made->inputs[1] = sum_of_weights(g, large->inputs[1], small->inputs[1], first);
    made->inputs[2] = sum_of_biases(g, large, small);
    return made->inputs[1] && made->inputs[2] ? sac_take_over(g, made, n) : SAC_ERR_MEMORY;
}

/* ---- a normalisation ---- */

/* The BatchNormalization of n's input that n adds before its activation. */
static struct sac_node *norm_of(const struct sac_node *n)
{
    const struct sac_value *r = sac_node_input(n, SAC_RESIDUAL_INPUT);
    struct sac_node        *norm = r ? sac_made_by(r, "BatchNormalization") : NULL;
    if (!norm || !sac_is_fused(n, "FusedConv") || !has_weights(n) || r->uses != 1 ||
        sac_attr_int(n, "residual", SAC_RESIDUAL_NONE) != SAC_RESIDUAL_BEFORE ||
        norm->output_count != 1 || norm->inputs[0] != n->inputs[0])
        return NULL;
    return norm;
}

/* A convolution like n that does what the normalisation does; NULL, with SAC_OK: its numbers are
 * not constant. */
static struct sac_node *one_tap(struct sac_graph *g, const struct sac_node *n,
                                const struct sac_node *norm, sac_result *res)
{
    const struct sac_value *w = n->inputs[1];
    const int64_t           channels = w->dims[0], inputs = w->dims[1];
    int64_t                 dims[SAC_RANK_MAX] = {channels, inputs};
    float                  *scale, *shift, *taps;
    for (int d = 2; d < w->rank; d++)
        dims[d] = 1;
    struct sac_value *scales = sac_new_floats(g, "scale", 1, dims, &scale),
                     *bias = sac_new_floats(g, "bias", 1, dims, &shift),
                     *weights = sac_new_floats(g, w->name, w->rank, dims, &taps);
    struct sac_node *made = sac_op_node(g, "", "Conv", 3, 1, n);
    *res = scales && bias && weights && made ? SAC_OK : SAC_ERR_MEMORY;
    if (*res != SAC_OK || !sac_batch_norm_constants(norm, channels, scale, shift))
        return NULL;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < inputs; i++)
            *taps++ = i == c % inputs ? scale[c] : 0; /* of groups, each of as many channels */
    made->inputs[1] = weights;
    made->inputs[2] = bias;
    return made;
}

static sac_result take_norm(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    const struct sac_node *norm = norm_of(n);
    struct window          own, tap = {.rank = 0};
    int64_t                first[SPATIAL_MAX];
    sac_result             res = SAC_OK;
    if (!norm || !read_window(n, &own))
        return SAC_OK;
    for (int d = 0; d < own.rank; d++)
        tap.size[d] = tap.stride[d] = tap.dilation[d] = 1;
    const struct sac_node *small = covers(&own, &tap, first) ? one_tap(g, n, norm, &res) : NULL;
    if (!small)
        return res;
    *changed = true;
    return make(g, n, n, small, &own, first);
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_node *twin = twin_of(n);
    struct window    own, other;
    int64_t          first[SPATIAL_MAX];
    if (!twin)
        return take_norm(g, n, changed);
    if (!read_window(n, &own) || !read_window(twin, &other))
        return SAC_OK;
    const bool larger = covers(&own, &other, first);
    if (!larger && !covers(&other, &own, first))
        return SAC_OK;
    *changed = true;
    return make(g, n, larger ? n : twin, larger ? twin : n, larger ? &own : &other, first);
}

const struct sac_pass sac_pass_twin = {"twin", visit};
