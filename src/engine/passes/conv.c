/* SPDX-License-Identifier: Apache-2.0 */
/* Merges neighbours into a convolution: a following batch normalisation or per-channel constants
 * into the weights, also for some of the channels or behind a clip, one before it where it pads
 * nothing, a preceding constant Pad into its pads, and an activation and a residual sum into the
 * fused node. Of a quantised one the weights stay: what would scale them goes into its scales. */
#include <math.h>
#include <string.h>

#include "engine/ops/quant.h"
#include "engine/passes/taken.h"

/* Its result is float32 still, its weights are 8-bit numbers and have a scale for each channel. */
static bool is_quantised(const struct sac_node *n)
{
    return sac_is_fused(n, "QuantConv");
}

static bool is_conv(const struct sac_node *n)
{
    const bool plain = sac_is(n, "Conv") || sac_is_fused(n, "FusedConv");
    return (plain || is_quantised(n)) && n->outputs[0] && n->outputs[0]->dtype == SAC_F32 &&
           (plain ? sac_constant_floats(n->inputs[1]) != NULL
                  : n->inputs[1]->data && sac_constant_floats(n->inputs[SAC_QUANT_SCALE])) &&
           sac_value_elements(n->inputs[1]) > 0 &&
           (!sac_node_input(n, 2) || sac_constant_floats(n->inputs[2]));
}

static bool is_bare(const struct sac_node *n)
{
    return sac_attr_int(n, "activation", SAC_ACT_NONE) == SAC_ACT_NONE &&
           !sac_node_input(n, SAC_RESIDUAL_INPUT);
}

/* A FusedConv like n, or a QuantConv like it, whose output replaces that of `last`. */
static struct sac_node *fused_conv(struct sac_graph *g, const struct sac_node *n,
                                   struct sac_node *last)
{
    const int        inputs = is_quantised(n) ? SAC_QUANT_SCALE + 1 : 4;
    struct sac_node *made =
        sac_op_node(g, "saccade", is_quantised(n) ? "QuantConv" : "FusedConv", inputs, 1, n);
    sac_result res = made ? SAC_OK : SAC_ERR_MEMORY;
    if (res == SAC_OK)
        res = sac_copy_attrs(g, made, n);
    for (int i = 0; res == SAC_OK && i < inputs; i++)
        made->inputs[i] = sac_node_input(n, i);
    if (res == SAC_OK)
        res = sac_take_over(g, made, last);
    return res == SAC_OK ? made : NULL;
}

/* ---- y * scale + shift per channel, into weights and bias ---- */

/* Weights that float16 would lose: beyond its largest number, or all of a channel below its
 * smallest one with all digits. Those of 8 bits have factors in float32. */
static const float HALF_MOST = 65504, HALF_LEAST = 0x1p-14f;

static float largest(const float *v, int64_t count)
{
    float most = 0;
    for (int64_t i = 0; i < count; i++)
        most = fmaxf(most, fabsf(v[i]));
    return most;
}

/* Does float16 hold n's weights times these factors as well as before? A normalisation's factors
 * are small where the sums are large, and beside a sum of larger numbers small ones are not missed.
 * A factor of 0 may be meant. */
static bool factors_fit(const struct sac_node *n, const struct sac_node *reader, const float *scale)
{
    const struct sac_value *w = n->inputs[1];
    const int64_t           channels = w->dims[0], each = sac_value_elements(w) / channels;
    const bool              may_be_small =
        sac_is(reader, "BatchNormalization") || sac_only_reader(reader, "Add");
    for (int64_t c = 0; c < channels; c++) {
        if (!isfinite(scale[c]))
            return false;
        if (is_quantised(n) || scale[c] == 0)
            continue;
        const float most = largest((const float *)w->data + c * each, each),
                    now = most * fabsf(scale[c]);
        if ((now > HALF_MOST && most <= HALF_MOST) ||
            (!may_be_small && now < HALF_LEAST && most >= HALF_LEAST))
            return false;
    }
    return true;
}

/* NULL: no memory. */
static struct sac_node *fold_affine(struct sac_graph *g, struct sac_node *n, struct sac_node *last,
                                    const float *scale, const float *shift)
{
    const int               scaled = is_quantised(n) ? SAC_QUANT_SCALE : 1;
    const struct sac_value *w = n->inputs[scaled];
    const int64_t           channels = w->dims[0], each = sac_value_elements(w) / channels;
    const float            *old = w->data, *old_bias = sac_constant_floats(sac_node_input(n, 2));
    float                  *weights, *bias;
    struct sac_value       *new_w = sac_new_floats(g, w->name, w->rank, w->dims, &weights);
    struct sac_value       *new_b = sac_new_floats(g, "bias", 1, &channels, &bias);
    if (!new_w || !new_b)
        return NULL;
    for (int64_t c = 0; c < channels; c++) {
        bias[c] = (old_bias ? old_bias[c] : 0) * scale[c] + shift[c];
        for (int64_t i = 0; i < each; i++)
            weights[c * each + i] = old[c * each + i] * scale[c];
    }
    struct sac_node *made = fused_conv(g, n, last);
    if (!made)
        return NULL;
    made->inputs[scaled] = new_w;
    made->inputs[2] = new_b;
    return made;
}

bool sac_scales_channels(const struct sac_node *n, const struct sac_value *v, int64_t channels,
                         float *scale, float *shift)
{
    if (sac_is(n, "BatchNormalization"))
        return n->inputs[0] == v && sac_batch_norm_constants(n, channels, scale, shift);
    const bool add = sac_is(n, "Add"), sub = sac_is(n, "Sub"), mul = sac_is(n, "Mul"),
               div = sac_is(n, "Div");
    if (!(add || sub || mul || div) || !sac_same_shape(v, n->outputs[0]))
        return false;
    const struct sac_value *c = sac_other_input(n, v);
    if (!c || ((sub || div) && n->inputs[0] != v) ||
        !sac_constant_per_channel(c, v->rank, channels, add || sub ? shift : scale))
        return false;
    for (int64_t i = 0; i < channels; i++) {
        if (add || sub)
            scale[i] = 1, shift[i] = sub ? -shift[i] : shift[i];
        else
            shift[i] = 0, scale[i] = div ? 1 / scale[i] : scale[i];
    }
    return true;
}

/* Clips of y * scale + shift, at bounds that all channels have, do the same when the factors have
 * one sign: max(y, 0) s + b is max(s y + b, b). So learnable affine blocks (PP-HGNetV2) cost
 * nothing. */
static bool clip_behind(const struct sac_node *n, int64_t channels, const float *scale,
                        const float *shift, struct sac_activation *clip)
{
    const struct sac_activation act = sac_activation_read(n);
    if (act.kind != SAC_ACT_RELU && act.kind != SAC_ACT_CLIP)
        return false;
    const float bound[2] = {act.kind == SAC_ACT_RELU ? 0 : act.alpha,
                            act.kind == SAC_ACT_RELU ? INFINITY : act.beta};
    const bool falls = scale[0] < 0;
    float      behind[2] = {0, 0};
    for (int64_t c = 0; c < channels; c++) {
        const bool sound = isfinite(scale[c]) && isfinite(shift[c]) && scale[c] != 0;
        if (!sound || (scale[c] < 0) != falls)
            return false;
        for (int i = 0; i < 2; i++) {
            const float v = bound[falls ? 1 - i : i] * scale[c] + shift[c];
            if (c > 0 && v != behind[i])
                return false;
            behind[i] = v;
        }
    }
    *clip = (struct sac_activation){SAC_ACT_CLIP, behind[0], behind[1]};
    return behind[0] <= behind[1];
}

/* At once behind the sums, or behind a clip of them. */
static sac_result absorb_affine(struct sac_graph *g, struct sac_node *n, struct sac_node *reader,
                                bool *changed)
{
    struct sac_activation clip;
    const int64_t         channels = n->inputs[1]->dims[0];
    const bool            bare = is_bare(n);
    float                *numbers = sac_alloc((size_t)channels * 2 * sizeof *numbers);
    if (!numbers)
        return SAC_FAIL(g->ctx, SAC_ERR_MEMORY, "no memory to fold a normalisation");
    sac_result res = SAC_OK;
    if (sac_scales_channels(reader, n->outputs[0], channels, numbers, numbers + channels) &&
        factors_fit(n, reader, numbers) &&
        (bare || clip_behind(n, channels, numbers, numbers + channels, &clip))) {
        struct sac_node *made = fold_affine(g, n, reader, numbers, numbers + channels);
        *changed = true;
        res = !made ? SAC_ERR_MEMORY : bare ? SAC_OK : sac_set_activation(g, made, &clip);
    }
    sac_free(numbers);
    return res;
}

/* ---- the same for some of the channels, which a Slice or a Split takes out ---- */

static bool taken_once(const struct sac_taken *taken, int count, int i)
{
    for (int k = 0; k < count; k++)
        if (k != i && taken[k].first < taken[i].end && taken[i].first < taken[k].end)
            return false;
    return true;
}

static sac_result absorb_affine_of_part(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    enum { TAKEN_MAX = 8 };
    struct sac_taken  taken[TAKEN_MAX];
    struct sac_value *v = n->outputs[0];
    const int64_t     channels = n->inputs[1]->dims[0];
    const int         count =
        v->rank >= 2 && v->dims[1] == channels ? sac_taken_channels(v, taken, TAKEN_MAX) : 0;
    float *numbers = count ? sac_alloc((size_t)channels * 2 * sizeof *numbers) : NULL;
    if (count && !numbers)
        return SAC_FAIL(g->ctx, SAC_ERR_MEMORY, "no memory to fold a normalisation");
    sac_result res = SAC_OK;
    for (int i = 0; i < count && !*changed; i++) {
        const struct sac_taken *t = &taken[i];
        struct sac_node        *reader = sac_value_only_reader(t->value);
        if (!reader || reader->output_count < 1 || !reader->outputs[0] ||
            !taken_once(taken, count, i))
            continue;
        for (int64_t c = 0; c < channels; c++)
            numbers[c] = 1, numbers[channels + c] = 0;
        if (!sac_scales_channels(reader, t->value, t->end - t->first, numbers + t->first,
                                 numbers + channels + t->first) ||
            !factors_fit(n, reader, numbers))
            continue;
        *changed = true;
        sac_graph_replace(g, reader->outputs[0], t->value);
        if (!fold_affine(g, n, n, numbers, numbers + channels))
            res = SAC_ERR_MEMORY;
    }
    sac_free(numbers);
    return res;
}

/* ---- activation and residual ---- */

/* Does it only put numbers elsewhere? */
static bool moves(const struct sac_node *n)
{
    return sac_is(n, "Reshape") || sac_is(n, "Transpose") || sac_is(n, "Flatten") ||
           sac_is(n, "Squeeze") || sac_is(n, "Unsqueeze") || sac_is(n, "DepthToSpace");
}

/* The only reader of n's numbers: others may ask for their shape. */
static struct sac_node *reader_of_numbers(const struct sac_node *n)
{
    struct sac_node        *reader = NULL;
    const struct sac_value *v = n->output_count == 1 ? n->outputs[0] : NULL;
    for (size_t i = 0; v && i < v->reader_count; i++) {
        if (sac_is(v->readers[i], "Shape"))
            continue;
        if (reader || sac_node_has_subgraph(v->readers[i]))
            return NULL;
        reader = v->readers[i];
    }
    return reader && v->reader_count == (size_t)v->uses ? reader : NULL; /* no output */
}

/* The activation that follows n, at once or behind such nodes: a convolution between layers of
 * tokens is followed by a Reshape and a Transpose. */
static struct sac_node *activation_behind(const struct sac_node *n, struct sac_activation *act)
{
    struct sac_node *reader = reader_of_numbers(n);
    while (reader && sac_node_input(reader, 0) == n->outputs[0] && reader->output_count == 1) {
        if (sac_activation_of(reader, act))
            return reader;
        n = reader;
        reader = moves(n) ? reader_of_numbers(n) : NULL;
    }
    return NULL;
}

static sac_result absorb_activation(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_activation act;
    struct sac_node      *last = activation_behind(n, &act);
    if (!last || sac_attr_int(n, "activation", SAC_ACT_NONE) != SAC_ACT_NONE ||
        sac_attr_int(n, "residual", SAC_RESIDUAL_NONE) == SAC_RESIDUAL_AFTER)
        return SAC_OK;
    sac_graph_replace(g, last->outputs[0], last->inputs[0]);
    struct sac_node *made = fused_conv(g, n, n);
    *changed = true;
    return made ? sac_set_activation(g, made, &act) : SAC_ERR_MEMORY;
}

/* Without an activation so far, the residual is added before one, which may still follow. */
static sac_result absorb_residual(struct sac_graph *g, struct sac_node *n, struct sac_node *reader,
                                  bool *changed)
{
    struct sac_value *other = sac_residual_beside(reader, n->outputs[0]);
    if (!other || sac_node_input(n, SAC_RESIDUAL_INPUT))
        return SAC_OK;
    const bool       plain = sac_attr_int(n, "activation", SAC_ACT_NONE) == SAC_ACT_NONE;
    struct sac_node *made = fused_conv(g, n, reader);
    if (!made)
        return SAC_ERR_MEMORY;
    made->inputs[SAC_RESIDUAL_INPUT] = other;
    *changed = true;
    return sac_node_set_int(g, made, "residual", plain ? SAC_RESIDUAL_BEFORE : SAC_RESIDUAL_AFTER);
}

/* ---- a Pad with zeros before it ---- */

/* Of pixels alone. */
static bool zero_pad(const struct sac_node *pad, int rank, int64_t *pads)
{
    return sac_zero_pads(pad, rank, pads) && !pads[0] && !pads[1] && !pads[rank] && !pads[rank + 1];
}

static sac_result absorb_pad(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_node *pad = sac_made_by(n->inputs[0], "Pad");
    const int        rank = n->inputs[1]->rank, spatial = rank - 2;
    int64_t          pads[2 * SAC_RANK_MAX], sum[2 * SAC_RANK_MAX] = {0};
    const int64_t   *own;
    if (!pad || !zero_pad(pad, rank, pads) ||
        strcmp(sac_attr_string(n, "auto_pad", "NOTSET"), "NOTSET") != 0)
        return SAC_OK;
    const size_t count = sac_attr_ints(n, "pads", &own);
    for (int i = 0; i < 2 * spatial; i++)
        sum[i] = (count ? own[i] : 0) + pads[i < spatial ? 2 + i : rank + 2 + i - spatial];
    struct sac_node *made = fused_conv(g, n, n);
    if (!made)
        return SAC_ERR_MEMORY;
    made->inputs[0] = pad->inputs[0];
    *changed = true;
    return sac_node_set_ints(g, made, "pads", sum, (size_t)(2 * spatial));
}

/* ---- x * scale + shift per channel, before the convolution ---- */

static bool pads_nothing(const struct sac_node *n)
{
    const int64_t *pads;
    const size_t   count = sac_attr_ints(n, "pads", &pads);
    const char    *mode = sac_attr_string(n, "auto_pad", "NOTSET");
    for (size_t i = 0; i < count; i++)
        if (pads[i] != 0)
            return false;
    return strcmp(mode, "NOTSET") == 0 || strcmp(mode, "VALID") == 0;
}

/* May the weights be multiplied by numbers of the input's channels? */
static bool factors_before_fit(const struct sac_node *n, const float *scale)
{
    const struct sac_value *w = n->inputs[1];
    const int64_t out = w->dims[0], in = w->dims[1], each = sac_value_elements(w) / out / in,
                  of_group = out / sac_attr_int(n, "group", 1);
    for (int64_t i = 0; i < out * in; i++) {
        const float factor = scale[i / in / of_group * in + i % in],
                    most = largest((const float *)w->data + i * each, each);
        if (!isfinite(factor) || (most * fabsf(factor) > HALF_MOST && most <= HALF_MOST))
            return false;
    }
    return true;
}

/* W over x * scale + shift is W scale over x, with what W makes of the shift in the bias. */
static sac_result fold_before(struct sac_graph *g, struct sac_node *n, struct sac_value *x,
                              const float *scale, const float *shift)
{
    const struct sac_value *w = n->inputs[1];
    const int64_t           out = w->dims[0], in = w->dims[1], group = sac_attr_int(n, "group", 1);
    const int64_t           each = sac_value_elements(w) / out / in;
    const float            *old = w->data, *old_bias = sac_constant_floats(sac_node_input(n, 2));
    float                  *weights, *bias;
    struct sac_value       *new_w = sac_new_floats(g, w->name, w->rank, w->dims, &weights);
    struct sac_value       *new_b = sac_new_floats(g, "bias", 1, &out, &bias);
    if (!new_w || !new_b)
        return SAC_ERR_MEMORY;
    for (int64_t m = 0; m < out; m++) {
        double sum = old_bias ? old_bias[m] : 0;
        for (int64_t c = 0; c < in; c++) {
            const int64_t channel = m / (out / group) * in + c;
            for (int64_t i = (m * in + c) * each; i < (m * in + c + 1) * each; i++) {
                weights[i] = old[i] * scale[channel];
                sum += (double)old[i] * shift[channel];
            }
        }
        bias[m] = (float)sum;
    }
    struct sac_node *made = fused_conv(g, n, n);
    if (!made)
        return SAC_ERR_MEMORY;
    made->inputs[0] = x;
    made->inputs[1] = new_w;
    made->inputs[2] = new_b;
    return SAC_OK;
}

/* What a batch normalisation reads, or a sum of a constant and gated maps: of pictures as they come
 * the shift is so large that float16 would lose digits. */
static struct sac_value *normalised_by(const struct sac_node *n)
{
    if (sac_is(n, "BatchNormalization"))
        return n->inputs[0];
    for (int i = 0; sac_is(n, "Add") && i < 2; i++)
        if (n->inputs[i] && sac_is_fused(n->inputs[i]->producer, "GatedSum"))
            return n->inputs[i];
    return NULL;
}

/* One that only this convolution reads. Around what it pads with zeros, the sums would have no
 * shift. */
static sac_result absorb_norm_before(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    const struct sac_node *norm = n->inputs[0]->producer;
    struct sac_value      *x = norm ? normalised_by(norm) : NULL;
    const int64_t          channels = n->inputs[1]->dims[1] * sac_attr_int(n, "group", 1);
    if (!x || n->inputs[0]->uses != 1 || norm->output_count != 1 || !pads_nothing(n) ||
        n->inputs[0]->rank < 2 || n->inputs[0]->dims[1] != channels)
        return SAC_OK;
    float *numbers = sac_alloc((size_t)channels * 2 * sizeof *numbers);
    if (!numbers)
        return SAC_FAIL(g->ctx, SAC_ERR_MEMORY, "no memory to fold a normalisation");
    sac_result res = SAC_OK;
    if (sac_scales_channels(norm, x, channels, numbers, numbers + channels) &&
        factors_before_fit(n, numbers)) {
        *changed = true;
        res = fold_before(g, n, x, numbers, numbers + channels);
    }
    sac_free(numbers);
    return res;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    if (!is_conv(n))
        return SAC_OK;
    sac_result res = is_quantised(n) ? SAC_OK : absorb_pad(g, n, changed);
    if (res == SAC_OK && !*changed && !is_quantised(n))
        res = absorb_norm_before(g, n, changed);
    struct sac_node *reader = sac_only_reader(n, NULL);
    const bool       read = reader && reader->output_count > 0 && reader->outputs[0];
    if (res == SAC_OK && !*changed && read && !sac_node_input(n, SAC_RESIDUAL_INPUT))
        res = absorb_affine(g, n, reader, changed);
    if (res == SAC_OK && !*changed && is_bare(n))
        res = absorb_affine_of_part(g, n, changed);
    if (res == SAC_OK && !*changed)
        res = absorb_activation(g, n, changed);
    if (res == SAC_OK && !*changed && read)
        res = absorb_residual(g, n, reader, changed);
    return res;
}

const struct sac_pass sac_pass_conv = {"conv", visit};
