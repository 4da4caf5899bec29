/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed convolutions. What scales and shifts each channel behind one goes into its weights.
 * Where the kernel is as long as the stride and nothing is cut off, no two input pixels add to the
 * same output: such a layer (U-Nets, DPT, SAM's masks, ViTDet's pyramid) is a pointwise
 * convolution, of as many channels for each place in the kernel, and a DepthToSpace. So every
 * device has its fast kernels for it, and the passes for convolutions what follows. */
#include <math.h>
#include <string.h>

#include "engine/passes/pass.h"

static bool is_transposed_conv(const struct sac_node *n)
{
    return sac_is(n, "ConvTranspose") && n->output_count == 1 && n->outputs[0] &&
           n->outputs[0]->dtype == SAC_F32 && sac_constant_floats(n->inputs[1]) &&
           sac_value_elements(n->inputs[1]) > 0 && n->outputs[0]->rank > 1 &&
           (!sac_node_input(n, 2) || sac_constant_floats(n->inputs[2]));
}

/* A node of n's input with these weights and a bias. */
static struct sac_value *with_weights(struct sac_graph *g, const struct sac_node *n,
                                      const char *type, struct sac_value *w, struct sac_value *bias,
                                      sac_result *res)
{
    struct sac_value *const in[] = {n->inputs[0], w, bias};
    return sac_made_of(g, n, type, SAC_COUNT(in), in, res);
}

/* ---- y * scale + shift per channel ---- */

static sac_result fold(struct sac_graph *g, struct sac_node *n, struct sac_node *last,
                       const float *scale, const float *shift)
{
    const struct sac_value *w = n->inputs[1];
    const int64_t           channels = n->outputs[0]->dims[1], each = w->dims[1];
    const int64_t           count = sac_value_elements(w), taps = count / w->dims[0] / each;
    const int64_t           inputs = w->dims[0] / (channels / each); /* of a group */
    const float            *old = w->data, *old_bias = sac_constant_floats(sac_node_input(n, 2));
    float                  *weights, *bias;
    struct sac_value       *new_w = sac_new_floats(g, w->name, w->rank, w->dims, &weights);
    struct sac_value       *new_b = sac_new_floats(g, "bias", 1, &channels, &bias);
    sac_result              res = SAC_OK;
    struct sac_value       *made = with_weights(g, n, "ConvTranspose", new_w, new_b, &res);
    if (!made)
        return res;
    for (int64_t i = 0; i < count; i++) {
        const int64_t group = i / taps / each / inputs;
        weights[i] = old[i] * scale[group * each + i / taps % each];
    }
    for (int64_t c = 0; c < channels; c++)
        bias[c] = (old_bias ? old_bias[c] : 0) * scale[c] + shift[c];
    res = sac_copy_attrs(g, made->producer, n);
    return res == SAC_OK ? sac_take_over(g, made->producer, last) : res;
}

/* May weights take these factors, and float16 still hold them? */
static bool are_moderate(const float *scale, int64_t channels)
{
    for (int64_t c = 0; c < channels; c++) {
        const float size = fabsf(scale[c]);
        if (size != 0 && !(size >= 0x1p-10f && size <= 0x1p10f))
            return false;
    }
    return true;
}

static sac_result absorb_affine(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_node *reader = sac_only_reader(n, NULL);
    const int64_t    channels = n->outputs[0]->dims[1];
    if (!reader || reader->output_count != 1 || !reader->outputs[0] || channels < 1)
        return SAC_OK;
    float     *numbers = sac_alloc((size_t)(2 * channels) * sizeof *numbers);
    sac_result res = numbers ? SAC_OK : SAC_ERR_MEMORY;
    if (numbers &&
        sac_scales_channels(reader, n->outputs[0], channels, numbers, numbers + channels) &&
        are_moderate(numbers, channels)) {
        *changed = true;
        res = fold(g, n, reader, numbers, numbers + channels);
    }
    sac_free(numbers);
    return res;
}

/* ---- kernels as long as the stride ---- */

/* An attribute of so many numbers that all are `want`, which it also is where it is left out. */
static bool all_are(const struct sac_node *n, const char *name, int64_t want, bool fallback)
{
    const int64_t *numbers;
    const size_t   count = sac_attr_ints(n, name, &numbers);
    for (size_t i = 0; i < count; i++)
        if (numbers[i] != want)
            return false;
    return count > 0 || fallback;
}

static bool places_apart(const struct sac_node *n)
{
    const struct sac_value *w = n->inputs[1];
    const char             *mode = sac_attr_string(n, "auto_pad", "NOTSET");
    const int64_t          *shape;
    return w->rank == 4 && w->dims[2] == w->dims[3] && sac_attr_int(n, "group", 1) == 1 &&
           all_are(n, "strides", w->dims[2], w->dims[2] == 1) && all_are(n, "pads", 0, true) &&
           all_are(n, "dilations", 1, true) && all_are(n, "output_padding", 0, true) &&
           sac_attr_ints(n, "output_shape", &shape) == 0 &&
           (strcmp(mode, "NOTSET") == 0 || strcmp(mode, "VALID") == 0);
}

/* [C,K,k,k] to [k*k*K,C,1,1], the bias for each place. */
static struct sac_value *pointwise(struct sac_graph *g, const struct sac_node *n, sac_result *res)
{
    const struct sac_value *w = n->inputs[1];
    const int64_t     inputs = w->dims[0], each = w->dims[1], places = w->dims[2] * w->dims[3];
    const int64_t     dims[] = {places * each, inputs, 1, 1};
    const float      *old = w->data, *old_bias = sac_constant_floats(sac_node_input(n, 2));
    float            *weights, *bias;
    struct sac_value *new_w = sac_new_floats(g, w->name, 4, dims, &weights);
    struct sac_value *new_b = sac_new_floats(g, "bias", 1, dims, &bias);
    struct sac_value *map = with_weights(g, n, "Conv", new_w, new_b, res);
    if (!map)
        return NULL;
    map->dims[1] = dims[0];
    for (int64_t o = 0; o < dims[0]; o++) {
        bias[o] = old_bias ? old_bias[o % each] : 0;
        for (int64_t i = 0; i < inputs; i++)
            weights[o * inputs + i] = old[(i * each + o % each) * places + o / each];
    }
    return map;
}

static sac_result take_apart(struct sac_graph *g, struct sac_node *n)
{
    sac_result              res = SAC_OK;
    struct sac_value *const map = pointwise(g, n, &res);
    struct sac_value       *space = map ? sac_made_of(g, n, "DepthToSpace", 1, &map, &res) : NULL;
    if (space)
        res = sac_node_set_int(g, space->producer, "blocksize", n->inputs[1]->dims[2]);
    return space && res == SAC_OK ? sac_take_over(g, space->producer, n) : res;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    if (!is_transposed_conv(n))
        return SAC_OK;
    sac_result res = absorb_affine(g, n, changed);
    if (res == SAC_OK && !*changed && places_apart(n)) {
        *changed = true;
        res = take_apart(g, n);
    }
    return res;
}

const struct sac_pass sac_pass_conv_transpose = {"conv-transpose", visit};
