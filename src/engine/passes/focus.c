/* SPDX-License-Identifier: Apache-2.0 */
/* The focus layer of YOLOX and early YOLOv5: four Slices take every second row and column of the
 * image, a Concat stacks them, a convolution reads that. It is one convolution with a kernel of
 * twice the size and stride 2 over the image itself. */
#include <string.h>

#include "engine/passes/pass.h"

enum { PARTS = 4 };

/* The start of a chain of Slices: every second row from y on, every second column from x on. */
struct start {
    struct sac_value *image;
    int64_t           y, x;
};

/* One Slice's start and step per axis of an operand of rank 4; false when it removes anything at
 * the ends. */
static bool read_slice(const struct sac_node *n, struct sac_slice_bounds *b)
{
    if (n->inputs[0]->rank != 4 || !sac_slice_constants(n, 4, b))
        return false;
    for (int d = 0; d < 4; d++) {
        const int64_t dim = n->inputs[0]->dims[d];
        if (b->start[d] < 0 || b->step[d] < 1 ||
            b->end[d] < (dim == SAC_DIM_OPEN ? INT32_MAX : dim))
            return false;
    }
    return true;
}

static bool read_chain(struct sac_value *v, struct start *out)
{
    int64_t start[4] = {0}, step[4] = {1, 1, 1, 1};
    int     slices = 0;
    for (struct sac_node *n; slices < 2 && (n = sac_made_by(v, "Slice")); slices++) {
        struct sac_slice_bounds b;
        if (!read_slice(n, &b))
            return false;
        for (int d = 0; d < 4; d++) { /* this one first, then what was found so far */
            start[d] = b.start[d] + start[d] * b.step[d];
            step[d] *= b.step[d];
        }
        v = n->inputs[0];
    }
    *out = (struct start){v, start[2], start[3]};
    return slices > 0 && step[0] == 1 && step[1] == 1 && start[0] == 0 && start[1] == 0 &&
           step[2] == 2 && step[3] == 2 && start[2] < 2 && start[3] < 2;
}

static bool read_focus(const struct sac_node *concat, struct start *parts)
{
    if (!concat || concat->input_count != PARTS || sac_attr_int(concat, "axis", 0) != 1)
        return false;
    for (int i = 0; i < PARTS; i++)
        if (!read_chain(concat->inputs[i], &parts[i]) || parts[i].image != parts[0].image)
            return false;
    const struct sac_value *image = parts[0].image;
    return image->rank == 4 && image->dims[1] > 0 && image->dims[2] > 0 && image->dims[3] > 0 &&
           image->dims[2] % 2 == 0 && image->dims[3] % 2 == 0;
}

static bool plain_conv(const struct sac_node *n)
{
    if (!sac_is(n, "Conv") || !sac_constant_floats(sac_node_input(n, 1)) ||
        n->inputs[1]->rank != 4 || sac_attr_int(n, "group", 1) != 1 ||
        strcmp(sac_attr_string(n, "auto_pad", "NOTSET"), "NOTSET") != 0)
        return false;
    return sac_ints_are(n, "strides", 1) && sac_ints_are(n, "dilations", 1);
}

/* Weights [M,4C,k,k] of the stacked parts to [M,C,2k,2k] over the image. */
static void spread(const float *w, const int64_t *from, const struct start *parts, float *out)
{
    const int64_t channels = from[1] / PARTS, kh = from[2], kw = from[3];
    for (int64_t m = 0; m < from[0]; m++)
        for (int part = 0; part < PARTS; part++)
            for (int64_t c = 0; c < channels; c++)
                for (int64_t y = 0; y < kh; y++)
                    for (int64_t x = 0; x < kw; x++, w++)
                        out[((m * channels + c) * 2 * kh + 2 * y + parts[part].y) * 2 * kw + 2 * x +
                            parts[part].x] += *w;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct start parts[PARTS];
    if (!plain_conv(n) || !read_focus(sac_made_by(n->inputs[0], "Concat"), parts))
        return SAC_OK;
    const struct sac_value *w = n->inputs[1];
    const int64_t *own, dims[4] = {w->dims[0], w->dims[1] / PARTS, 2 * w->dims[2], 2 * w->dims[3]};
    int64_t        pads[4] = {0};
    const size_t   count = sac_attr_ints(n, "pads", &own);
    for (size_t i = 0; i < count && i < 4; i++)
        pads[i] = 2 * own[i];
    float            *weights;
    struct sac_value *wide = sac_new_floats(g, w->name, 4, dims, &weights);
    struct sac_node  *made = sac_op_node(g, "", "Conv", n->input_count, 1, n);
    if (!wide || !made)
        return SAC_ERR_MEMORY;
    spread(w->data, w->dims, parts, weights);
    for (int i = 2; i < n->input_count; i++)
        made->inputs[i] = n->inputs[i];
    made->inputs[0] = parts[0].image;
    made->inputs[1] = wide;
    const int64_t strides[2] = {2, 2};
    sac_result    res = sac_node_set_ints(g, made, "pads", pads, 4);
    if (res == SAC_OK)
        res = sac_node_set_ints(g, made, "strides", strides, 2);
    *changed = true;
    return res == SAC_OK ? sac_take_over(g, made, n) : res;
}

const struct sac_pass sac_pass_focus = {"focus", visit};
