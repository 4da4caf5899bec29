/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to each channel behind a convolution's or product's activation, where its weights
 * cannot take it: a batch normalisation or constants behind GELU or SiLU (ConvMixer, XCiT), with a
 * sum behind them, and constants that the residual is multiplied by (CAFormer). It is the input A
 * of a FusedConv or FusedMatMul. */
#include <math.h>
#include <string.h>

#include "engine/passes/pass.h"

static bool is_product(const struct sac_node *n)
{
    return sac_is_fused(n, "FusedMatMul");
}

static int64_t channels_of(const struct sac_node *n)
{
    const struct sac_value *y = n->outputs[0];
    return y->dims[is_product(n) ? y->rank - 1 : 1];
}

/* Of constant weights, which make a map of known channels, or a product of known columns. */
static bool is_conv(const struct sac_node *n)
{
    const struct sac_value *y = n && n->output_count == 1 ? n->outputs[0] : NULL;
    const bool              conv = sac_is(n, "Conv") || sac_is_fused(n, "FusedConv");
    return y && y->dtype == SAC_F32 && (conv ? y->rank > 2 : is_product(n) && y->rank > 1) &&
           channels_of(n) > 0 && sac_constant_floats(n->inputs[1]);
}

/* The one that makes v for one reader alone. */
static struct sac_node *conv_of(const struct sac_value *v)
{
    struct sac_node *n = v && v->uses == 1 ? v->producer : NULL;
    return is_conv(n) ? n : NULL;
}

static int64_t residual_of(const struct sac_node *n)
{
    return sac_attr_int(n, "residual", SAC_RESIDUAL_NONE);
}

/* A FusedConv or FusedMatMul like n, whose output replaces that of `last`, and its ending's
 * numbers: n's own, or ones and zeros. */
static struct sac_node *conv_again(struct sac_graph *g, const struct sac_node *n,
                                   struct sac_node *last, float **numbers)
{
    const int64_t     channels = channels_of(n), dims[2] = {SAC_ENDING_ROWS, channels};
    const float      *old = sac_constant_floats(sac_node_input(n, SAC_ENDING));
    struct sac_value *ending = sac_new_floats(g, "ending", 2, dims, numbers);
    struct sac_node  *made = sac_op_node(g, "saccade", is_product(n) ? "FusedMatMul" : "FusedConv",
                                         SAC_ENDING + 1, 1, n);
    if (!made || !ending || sac_copy_attrs(g, made, n) != SAC_OK)
        return NULL;
    for (int i = 0; i < SAC_ENDING; i++)
        made->inputs[i] = sac_node_input(n, i);
    made->inputs[SAC_ENDING] = ending;
    for (int64_t i = 0; i < SAC_ENDING_ROWS * channels; i++)
        (*numbers)[i] = old ? old[i] : i / channels != SAC_ENDING_SHIFT;
    return sac_take_over(g, made, last) == SAC_OK ? made : NULL;
}

static bool are_finite(const float *v, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(v[i]))
            return false;
    return true;
}

/* A constant's numbers for each channel of what `conv` makes. */
static bool per_channel(const struct sac_node *conv, const struct sac_value *c, float *out)
{
    const int64_t channels = channels_of(conv);
    const int     rank = conv->outputs[0]->rank;
    if (!is_product(conv))
        return sac_constant_per_channel(c, rank, channels, out);
    if (!c || !sac_constant_row(c, rank, channels))
        return false;
    for (int64_t k = 0; k < channels; k++)
        out[k] = ((const float *)c->data)[sac_value_elements(c) == 1 ? 0 : k];
    return true;
}

/* n does to each channel of `conv` what `numbers`, [2][channels], are filled with: times one, plus
 * the other. */
static bool read_affine(const struct sac_node *n, const struct sac_node *conv, float *numbers)
{
    const struct sac_value *v = conv->outputs[0];
    const int64_t           channels = channels_of(conv);
    float                  *scale = numbers, *shift = numbers + channels;
    if (sac_is(n, "BatchNormalization"))
        return n->inputs[0] == v && !is_product(conv) &&
               sac_batch_norm_constants(n, channels, scale, shift) &&
               are_finite(numbers, 2 * channels);
    const bool mul = sac_is(n, "Mul"), add = sac_is(n, "Add");
    if (!mul && !add)
        return false;
    for (int64_t k = 0; k < channels; k++)
        scale[k] = 1, shift[k] = 0;
    return sac_same_shape(v, n->outputs[0]) &&
           per_channel(conv, sac_other_input(n, v), mul ? scale : shift) &&
           are_finite(numbers, 2 * channels);
}

/* What is behind a residual too would be behind all of its sum. */
static sac_result absorb_affine(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    for (int i = 0; i < 2 && i < n->input_count; i++) {
        const struct sac_node *conv = conv_of(n->inputs[i]);
        if (!conv || residual_of(conv) == SAC_RESIDUAL_AFTER)
            continue;
        const int64_t channels = channels_of(conv);
        float        *numbers = sac_alloc((size_t)channels * 2 * sizeof *numbers), *ending;
        if (!numbers)
            return SAC_FAIL(g->ctx, SAC_ERR_MEMORY, "no memory for a convolution's ending");
        const bool found = read_affine(n, conv, numbers);
        const bool made = found && conv_again(g, conv, n, &ending);
        for (int64_t k = 0; made && k < channels; k++) {
            float *const        scale = &ending[SAC_ENDING_SCALE * channels + k],
                         *const shift = &ending[SAC_ENDING_SHIFT * channels + k];
            *scale *= numbers[k];
            *shift = *shift * numbers[k] + numbers[channels + k];
        }
        sac_free(numbers);
        *changed |= found;
        if (found)
            return made ? SAC_OK : SAC_ERR_MEMORY;
    }
    return SAC_OK;
}

/* A map of the output's shape is added to what has such an ending. */
static sac_result absorb_residual(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    for (int i = 0; i < 2; i++) {
        const struct sac_node  *conv = conv_of(n->inputs[i]);
        struct sac_value *const other = sac_residual_beside(n, n->inputs[i]);
        float                  *numbers;
        if (!conv || !sac_node_input(conv, SAC_ENDING) || !other ||
            sac_node_input(conv, SAC_RESIDUAL_INPUT))
            continue;
        struct sac_node *made = conv_again(g, conv, n, &numbers);
        if (!made)
            return SAC_ERR_MEMORY;
        made->inputs[SAC_RESIDUAL_INPUT] = other;
        *changed = true;
        return sac_node_set_int(g, made, "residual", SAC_RESIDUAL_AFTER);
    }
    return SAC_OK;
}

/* n = a convolution whose residual is multiplied by constants for it alone. */
static sac_result absorb_factors(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_value      *r = sac_is_fused(n, "FusedConv") || is_product(n)
                                   ? sac_node_input(n, SAC_RESIDUAL_INPUT)
                                   : NULL;
    const struct sac_node *mul = r && r->uses == 1 ? sac_made_by(r, "Mul") : NULL;
    const bool             bare = sac_attr_int(n, "activation", SAC_ACT_NONE) == SAC_ACT_NONE;
    if (!mul || !is_conv(n) || !sac_same_shape(r, n->outputs[0]) ||
        (residual_of(n) == SAC_RESIDUAL_BEFORE && (!bare || sac_node_input(n, SAC_ENDING))))
        return SAC_OK;
    for (int i = 0; i < 2; i++) {
        const int64_t channels = channels_of(n);
        float        *numbers = sac_alloc((size_t)channels * sizeof *numbers), *ending;
        if (!numbers)
            return SAC_FAIL(g->ctx, SAC_ERR_MEMORY, "no memory for a convolution's ending");
        const bool found = sac_same_shape(mul->inputs[i], r) &&
                           per_channel(n, mul->inputs[1 - i], numbers) &&
                           are_finite(numbers, channels);
        struct sac_node *made = found ? conv_again(g, n, n, &ending) : NULL;
        for (int64_t k = 0; made && k < channels; k++)
            ending[SAC_ENDING_RESIDUAL * channels + k] *= numbers[k];
        sac_free(numbers);
        *changed |= found;
        if (!found)
            continue;
        if (!made)
            return SAC_ERR_MEMORY;
        made->inputs[SAC_RESIDUAL_INPUT] = mul->inputs[i];
        return sac_node_set_int(g, made, "residual", SAC_RESIDUAL_AFTER);
    }
    return SAC_OK;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    if (n->output_count != 1 || !n->outputs[0] || !sac_node_input(n, 0))
        return SAC_OK;
    sac_result res = absorb_affine(g, n, changed);
    if (res == SAC_OK && !*changed && sac_is(n, "Add") && n->inputs[1])
        res = absorb_residual(g, n, changed);
    if (res == SAC_OK && !*changed)
        res = absorb_factors(g, n, changed);
    return res;
}

const struct sac_pass sac_pass_conv_ending = {"conv-ending", visit};
