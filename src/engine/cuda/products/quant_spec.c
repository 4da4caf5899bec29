/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/products/quant_spec.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/cuda/products/tensor_spec.h"
#include "engine/kernel/layout.h"

static bool refuse(char *why, size_t size, const char *text)
{
    snprintf(why, size, "%s", text);
    return false;
}

/* ---- reading a node ---- */

static enum conv_number number_of(enum sac_dtype dtype, enum sac_layout layout)
{
    switch (sac_layout_dtype(dtype, layout)) {
    case SAC_F16: return CONV_F16;
    case SAC_I8: return CONV_S8;
    case SAC_U8: return CONV_U8;
    case SAC_F8: return CONV_F8;
    default: return CONV_F32;
    }
}

static struct conv_map rows_of(int64_t rows, int64_t columns, int align)
{
    return (struct conv_map){.c = columns,
                             .size = {1, 1, rows},
                             .pixel = columns,
                             .sample = rows * columns,
                             .align = align > 0 && align < 16 ? align : 16};
}

static bool read_product(const struct sac_kernel_plan *plan, struct conv_spec *s)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_operand *x = &c->in[0];
    const int64_t             k = c->in[1].dims[0], n = c->in[1].dims[1],
                  rows = k > 0 ? sac_operand_elements(x) / k : 0;
    if (rows == 0 || n == 0 || !c->in[1].data || (sac_op_has(c, 2) && !c->in[2].data) ||
        !plan->weights || rows > INT32_MAX / SAC_MAX(k, n))
        return false;
    *s = (struct conv_spec){.precision = plan->precision,
                            .turned = true,
                            .n = 1,
                            .groups = 1,
                            .in = rows_of(rows, k, plan->in_align[0]),
                            .out = rows_of(rows, n, plan->out_align[0]),
                            .kernel = {1, 1, 1},
                            .stride = {1, 1, 1},
                            .dilation = {1, 1, 1},
                            .bias = sac_op_has(c, 2),
                            .act = sac_activation_read(c->node)};
    s->residual_kind = (enum sac_residual)sac_attr_int(c->node, "residual", SAC_RESIDUAL_NONE);
    if (s->residual_kind != SAC_RESIDUAL_NONE)
        s->residual = rows_of(rows, n, plan->in_align[SAC_RESIDUAL_INPUT]);
    return true;
}

bool quant_spec_read(const struct sac_kernel_plan *plan, struct quant_spec *out, char *why,
                     size_t why_size)
{
    const struct sac_op_call *c = plan->call;
    struct quant_spec         s = {.q = sac_quant_read(c->node)};
    if (c->node->op->id == SAC_OP_QuantMatMul) {
        if (!read_product(plan, &s.conv))
            return refuse(why, why_size, "its weights are not constant, or it is too large");
    } else if (!conv_spec_read_any(plan, &s.conv, why, why_size))
        return false;
    if (!c->in[SAC_QUANT_SCALE].data)
        return refuse(why, why_size, "its scales are not constant");
    if (s.conv.in.size[0] != 1 || s.conv.out.size[0] != 1 || s.conv.kernel[0] != 1)
        return refuse(why, why_size, "three spatial dimensions");
    s.kind = c->in[0].dtype == SAC_I8   ? CONV_BYTES_S8
             : c->in[0].dtype == SAC_U8 ? CONV_BYTES_U8
                                        : CONV_BYTES_F8;
    s.y = number_of(c->out[0].dtype, plan->out_layout[0]);
    if (s.conv.residual_kind != SAC_RESIDUAL_NONE)
        s.residual =
            number_of(c->in[SAC_RESIDUAL_INPUT].dtype, plan->in_layout[SAC_RESIDUAL_INPUT]);
    *out = s;
    return true;
}

size_t quant_spec_text(const struct quant_spec *s, char *out, size_t size)
{
    const int    at = snprintf(out, size, "quant %d y%d,%d r%d x%d ", (int)s->kind, (int)s->y,
                               s->q.y_zero != 0, (int)s->residual, s->q.x_zero != 0);
    const size_t rest =
        (size_t)at < size ? conv_spec_text(&s->conv, out + at, size - (size_t)at) : 0;
    return rest ? (size_t)at + rest : 0;
}

/* ---- variants ---- */

static const struct conv_tile_size sizes[CONV_BYTES_VARIANTS] = {
    {128, 128}, {128, 64},  {128, 32}, {64, 64},  {64, 32}, {128, 256},
    {256, 128}, {128, 128}, {128, 64}, {64, 128}, {64, 64}, {128, 32}};

static int64_t pixels_of(const struct quant_spec *s)
{
    return s->conv.n * conv_map_pixels(&s->conv.out);
}

bool quant_fits(const struct quant_spec *s, int64_t variant, int capability)
{
    const struct conv_spec *c = &s->conv;
    const bool              hopper = variant >= CONV_BYTES_HOPPER;
    if (variant < 0 || variant >= CONV_BYTES_VARIANTS || (hopper && capability != 90) ||
        capability < (s->kind == CONV_BYTES_F8 ? 89 : 80))
        return false;
    const int64_t depth = quant_depth(s);
    return c->groups == 1 &&
           c->kernel[1] * c->kernel[2] * depth <= INT32_MAX / 2 / SAC_MAX(c->out.c, 1) &&
           c->n * conv_map_pixels(&c->in) <= INT32_MAX / 2 / depth;
}

int64_t quant_depth(const struct quant_spec *s)
{
    const int64_t c = s->conv.in.c / s->conv.groups;
    return s->conv.groups == 1 ? (c + 15) / 16 * 16 : c;
}

bool quant_is_laid_out(const struct quant_spec *s)
{
    const struct conv_map *m = &s->conv.in;
    return m->c % 16 == 0 && m->pixel % 16 == 0 && m->sample % 16 == 0 && m->align >= 16;
}

int64_t quant_scratch_bytes(const struct quant_spec *s)
{
    return quant_is_laid_out(s) ? 0 : s->conv.n * conv_map_pixels(&s->conv.in) * quant_depth(s);
}

/* At least half of a tile is used, and small tiles are for what large ones would not spread over a
 * whole GPU. */
bool quant_worth(const struct quant_spec *s, int variant)
{
    const struct conv_tile_size t = sizes[variant];
    const int64_t               channels = s->conv.out.c;
    const int64_t               blocks =
        (pixels_of(s) + t.pixels - 1) / t.pixels * ((channels + t.channels - 1) / t.channels);
    const bool fits = channels > t.channels / 2 || t.channels == 32;
    return fits && (blocks <= 4096 || t.pixels >= 128) && (blocks >= 48 || t.pixels <= 64);
}

static int64_t bytes_of(enum conv_number n)
{
    return n == CONV_F32 ? 4 : n == CONV_F16 ? 2 : 1;
}

static bool map_is_wide(const struct conv_map *m, enum conv_number n)
{
    const int64_t bytes = bytes_of(n);
    return m->align >= 16 && m->pixel * bytes % 16 == 0 && m->sample * bytes % 16 == 0;
}

bool quant_is_wide(const struct quant_spec *s)
{
    return map_is_wide(&s->conv.out, s->y) && (s->conv.residual_kind == SAC_RESIDUAL_NONE ||
                                               map_is_wide(&s->conv.residual, s->residual));
}

bool quant_moves_bias(const struct quant_spec *s)
{
    return s->kind != CONV_BYTES_F8 && s->q.x_zero != 0;
}

/* ---- blocks that stay ---- */

static const struct conv_tile_size stream_sizes[CONV_STREAM_VARIANTS] = {
    {128, 128}, {128, 64}, {128, 32}, {64, 64}, {128, 256}};

/* exact: is SiLU of float16 computed without its approximation? */
static bool stream_acts(const struct quant_spec *s, bool exact)
{
    const float step = s->q.y_inverse > 0 ? 1 / s->q.y_inverse : 0;
    switch (s->conv.act.kind) {
    case SAC_ACT_NONE:
    case SAC_ACT_RELU:
    case SAC_ACT_CLIP:
    case SAC_ACT_HARD_SWISH: return true;
    case SAC_ACT_SILU: return exact || s->y != CONV_F16;
    /* off by 0.001, and by what float16 is: less than half of a step, or of the largest of E4M3's
     */
    case SAC_ACT_GELU:
    case SAC_ACT_GELU_TANH:
        return s->y != CONV_F16 && step * (s->y == CONV_F8 ? 448.0f / 16 : 1) >= 0.002f;
    default: return false;
    }
}

bool quant_streams(const struct quant_spec *s, int64_t variant, int capability)
{
    const struct conv_spec *c = &s->conv;
    const enum conv_number  own = s->kind == CONV_BYTES_F8 ? CONV_F8 : CONV_S8;
    const bool              added = c->residual_kind != SAC_RESIDUAL_NONE;
    return variant >= 0 && variant < CONV_STREAM_VARIANTS && capability == 90 &&
           s->kind != CONV_BYTES_U8 && quant_fits(s, CONV_BYTES_HOPPER, capability) &&
           (s->y == own || s->y == CONV_F16) && (s->y == CONV_F16 || s->q.y_zero == 0) &&
           s->q.x_zero == 0 && (!added || (s->residual == own && s->q.r_zero == 0)) &&
           c->out.c % 16 == 0 && quant_is_wide(s) && stream_acts(s, false) &&
           c->n * conv_map_pixels(&c->out) < INT32_MAX;
}

/* At least half of a tile's channels are used, and large tiles are for what spreads them over a
 * whole GPU. */
bool quant_stream_worth(const struct quant_spec *s, int variant)
{
    const struct conv_tile_size t = stream_sizes[variant];
    const int64_t               tiles =
        (pixels_of(s) + t.pixels - 1) / t.pixels * ((s->conv.out.c + t.channels - 1) / t.channels);
    return (s->conv.out.c > t.channels / 2 || t.channels == 32) &&
           (tiles >= 48 || t.pixels <= 64 || t.channels <= 64) && (tiles <= 8192 || variant != 3);
}

/* ---- by the copy engine ---- */

bool quant_tensors(const struct quant_spec *s, int64_t variant, int capability)
{
    const struct conv_spec  *c = &s->conv;
    const enum conv_number   own = s->kind == CONV_BYTES_F8 ? CONV_F8 : CONV_S8;
    struct conv_window_shape w;
    return variant >= 0 && variant < CONV_TENSOR_VARIANTS && capability == 90 &&
           s->kind != CONV_BYTES_U8 && quant_fits(s, CONV_BYTES_HOPPER, capability) &&
           s->q.x_zero == 0 && (s->y == CONV_F16 || s->q.y_zero == 0) &&
           (s->y == own || s->y == CONV_F16) && quant_is_wide(s) &&
           (c->residual_kind == SAC_RESIDUAL_NONE || s->residual == CONV_F16 ||
            (s->residual == own && s->q.r_zero == 0)) &&
           stream_acts(s, true) && tensor_copies(c) &&
           (variant < CONV_TENSOR_WINDOWS || tensor_window(c, (int)variant, c->in.c, &w));
}

/* ---- cuBLASLt ---- */

/* float16 numbers without gaps that begin at a multiple of 16 bytes; their columns are multiples of
 * 16. */
static bool lt_reads(const struct conv_map *m, enum conv_number n)
{
    return n == CONV_F16 && m->pixel == m->c && m->align >= 16;
}

bool quant_lt_fits(const struct quant_spec *s, int capability)
{
    const struct conv_spec *c = &s->conv;
    const bool              relu = c->act.kind == SAC_ACT_RELU;
    return c->turned && capability >= 89 && s->kind == CONV_BYTES_F8 && quant_is_laid_out(s) &&
           c->in.pixel == c->in.c && c->out.c % 16 == 0 && lt_reads(&c->out, s->y) &&
           (relu || c->act.kind == SAC_ACT_NONE) &&
           (c->residual_kind == SAC_RESIDUAL_NONE ||
            (lt_reads(&c->residual, s->residual) &&
             (!relu || c->residual_kind == SAC_RESIDUAL_BEFORE)));
}

bool quant_lt_takes(const struct quant_spec *s, const float *scale, const float *bias)
{
    for (int64_t i = 0; i < s->conv.out.c; i++)
        if (scale[i] != scale[0] || (bias && !(fabsf(bias[i]) < 65504)))
            return false;
    return true;
}

/* ---- constants ---- */

static int64_t taps_of(const struct quant_spec *s)
{
    return s->conv.kernel[1] * s->conv.kernel[2];
}

size_t quant_weights_bytes(const struct quant_spec *s)
{
    return (size_t)(s->conv.out.c * quant_depth(s) * taps_of(s));
}

/* Some outputs of [k][n] at a time, so that what is read together lies together. */
static void turn_rows(const struct quant_spec *s, const uint8_t *from, uint8_t *to, int64_t begin,
                      int64_t end)
{
    enum { TOGETHER = 64 };
    const int64_t k = s->conv.in.c, n = s->conv.out.c, depth = quant_depth(s);
    for (int64_t first = begin; first < end; first += TOGETHER)
        for (int64_t i = 0; i < k; i++)
            for (int64_t o = first; o < SAC_MIN(first + TOGETHER, end); o++)
                to[o * depth + i] = from[i * n + o];
}

void quant_weights_pack(const struct quant_spec *s, const void *weights, void *to, int64_t begin,
                        int64_t end)
{
    const int64_t  inner = s->conv.in.c / s->conv.groups, taps = taps_of(s), depth = quant_depth(s);
    const uint8_t *from = weights;
    if (depth > inner)
        memset((uint8_t *)to + begin * taps * depth, 0, (size_t)((end - begin) * taps * depth));
    if (s->conv.turned) {
        turn_rows(s, from, to, begin, end);
        return;
    }
    for (int64_t o = begin; o < end; o++)
        for (int64_t i = 0; i < inner; i++)
            for (int64_t t = 0; t < taps; t++)
                ((uint8_t *)to)[(o * taps + t) * depth + i] = from[(o * inner + i) * taps + t];
}

void quant_bias_pack(const struct quant_spec *s, const int8_t *weights, const float *scale,
                     const float *bias, float *to)
{
    const int64_t outputs = s->conv.out.c, taps = s->conv.in.c / s->conv.groups * taps_of(s);
    for (int64_t o = 0; o < outputs; o++) {
        int64_t sum = 0;
        for (int64_t t = 0; t < taps; t++)
            sum += s->conv.turned ? weights[t * outputs + o] : weights[o * taps + t];
        to[o] = (bias ? bias[o] : 0) - scale[o] * (float)(s->q.x_zero * sum);
    }
}
