/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/cuda/products/conv_spec.h"
#include "engine/ops/window.h"

size_t conv_element(const struct conv_spec *s)
{
    return s->precision == SAC_PRECISION_FP16 ? 2 : 4;
}

static int64_t product(const int64_t *v)
{
    return v[0] * v[1] * v[2];
}

int64_t conv_map_span(const struct conv_map *m, int64_t n)
{
    return (n - 1) * m->sample + (conv_map_pixels(m) - 1) * m->pixel + m->c;
}

/* ---- reading a node ---- */

static bool refuse(char *why, size_t size, const char *text)
{
    snprintf(why, size, "%s", text);
    return false;
}

static struct conv_map map_of(const struct sac_operand *o, int64_t pixel, int64_t sample, int align)
{
    struct conv_map m = {
        .c = o->dims[1], .size = {1, 1, 1}, .align = align > 0 && align < 16 ? align : 16};
    for (int d = 2; d < o->rank; d++)
        m.size[CONV_DIMS - o->rank + d] = o->dims[d];
    m.pixel = pixel ? pixel : m.c;
    m.sample = sample ? sample : m.pixel * product(m.size);
    return m;
}

/* The padding that the last window really reaches: any padding beyond it has no effect, and cuDNN
 * checks. Windows that end before the map leave less than a stride, which cuDNN's rounding down
 * drops too. */
static void set_pads(struct conv_spec *s)
{
    for (int d = 0; d < CONV_DIMS; d++) {
        const int64_t reach = (s->kernel[d] - 1) * s->dilation[d] + 1;
        const int64_t windows = s->transposed ? s->in.size[d] : s->out.size[d];
        const int64_t over = s->transposed ? s->out.size[d] : s->in.size[d];
        const int64_t end = (windows - 1) * s->stride[d] + reach - over - s->pad_begin[d];
        s->pad_end[d] = SAC_MAX(end, 0);
    }
}

static bool read_window(const struct sac_kernel_plan *plan, struct conv_spec *s)
{
    const struct sac_op_call *c = plan->call;
    struct sac_window         w;
    if ((s->transposed ? sac_window_read_transposed(c, c->in[1].dims + 2, &w)
                       : sac_window_read(c, 0, c->in[1].dims + 2, &w)) != SAC_OK)
        return false;
    memcpy(s->kernel, w.kernel, sizeof s->kernel);
    memcpy(s->stride, w.stride, sizeof s->stride);
    memcpy(s->dilation, w.dilation, sizeof s->dilation);
    memcpy(s->pad_begin, w.pad_begin, sizeof s->pad_begin);
    set_pads(s);
    return s->pad_begin[0] >= 0 && s->pad_begin[1] >= 0 && s->pad_begin[2] >= 0;
}

static bool sizes_fit(const struct conv_spec *s)
{
    const int64_t          limit = INT32_MAX; /* of numbers in a map: kernels index with 32 bits */
    const struct conv_map *maps[] = {&s->in, &s->out, &s->residual};
    for (size_t i = 0; i < SAC_COUNT(maps); i++)
        if (maps[i]->c > 0 && (maps[i]->sample <= 0 || s->n > limit / maps[i]->sample))
            return false;
    return true;
}

bool conv_spec_read(const struct sac_kernel_plan *plan, struct conv_spec *out, char *why,
                    size_t why_size)
{
    const struct sac_op_call *c = plan->call;
    for (int i = 0; i < c->in_count; i++)
        if (c->in[i].present && c->in[i].dtype != SAC_F32)
            return refuse(why, why_size, "not float32");
    return conv_spec_read_any(plan, out, why, why_size);
}

bool conv_spec_read_any(const struct sac_kernel_plan *plan, struct conv_spec *out, char *why,
                        size_t why_size)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_operand *x = &c->in[0], *w = &c->in[1], *y = &c->out[0];
    struct conv_spec          s = {.precision = plan->precision, .n = x->dims[0]};
    if (x->rank < 3 || x->rank > 2 + CONV_DIMS || sac_operand_elements(x) == 0 ||
        sac_operand_elements(y) == 0)
        return refuse(why, why_size, "more than three spatial dimensions, or empty");
    if (!w->data || (sac_op_has(c, 2) && !c->in[2].data) || !plan->weights)
        return refuse(why, why_size, "weights are not constant");
    if (c->node->op->id == SAC_OP_FusedConv && sac_op_has(c, SAC_ENDING)) {
        s.ending = true;
        if (!c->in[SAC_ENDING].data)
            return refuse(why, why_size, "its ending is not constant");
    }
    s.transposed = c->node->op->id == SAC_OP_ConvTranspose;
    s.groups = sac_attr_int(c->node, "group", 1);
    s.bias = sac_op_has(c, 2);
    s.in = map_of(x, plan->in_pixel[0], plan->in_sample[0], plan->in_align[0]);
    s.out = map_of(y, plan->out_pixel[0], plan->out_sample[0], plan->out_align[0]);
    if (c->node->op->id == SAC_OP_FusedConv || c->node->op->id == SAC_OP_QuantConv) {
        s.act = sac_activation_read(c->node);
        s.residual_kind = (enum sac_residual)sac_attr_int(c->node, "residual", SAC_RESIDUAL_NONE);
    }
    if (s.residual_kind != SAC_RESIDUAL_NONE)
        s.residual =
            map_of(&c->in[SAC_RESIDUAL_INPUT], plan->in_pixel[SAC_RESIDUAL_INPUT],
                   plan->in_sample[SAC_RESIDUAL_INPUT], plan->in_align[SAC_RESIDUAL_INPUT]);
    if (!read_window(plan, &s))
        return refuse(why, why_size, "its window");
    if (!sizes_fit(&s))
        return refuse(why, why_size, "a map of more than 2^31 numbers");
    *out = s;
    return true;
}

/* ---- its text, and what it costs ---- */

size_t conv_spec_text(const struct conv_spec *s, char *out, size_t size)
{
    static const char *const precisions[] = {"?", "fp32", "tf32", "fp16"};
    const struct conv_map   *maps[] = {&s->in, &s->out, &s->residual};
    int at = snprintf(out, size, "%s %s n%" PRId64 " g%" PRId64 " b%d r%d a%d,%.9g,%.9g",
                      s->turned       ? "product"
                      : s->transposed ? "deconv"
                                      : "conv",
                      precisions[s->precision & 3], s->n, s->groups, s->bias, (int)s->residual_kind,
                      (int)s->act.kind, (double)s->act.alpha, (double)s->act.beta);
    for (int d = 0; d < CONV_DIMS && (size_t)at < size; d++)
        at += snprintf(out + at, size - (size_t)at,
                       " k%" PRId64 "s%" PRId64 "d%" PRId64 "p%" PRId64 ",%" PRId64, s->kernel[d],
                       s->stride[d], s->dilation[d], s->pad_begin[d], s->pad_end[d]);
    for (size_t i = 0; i < SAC_COUNT(maps) && (size_t)at < size; i++)
        at +=
            snprintf(out + at, size - (size_t)at,
                     " %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64 "/%" PRId64 "/%" PRId64 "/%d",
                     maps[i]->size[0], maps[i]->size[1], maps[i]->size[2], maps[i]->c,
                     maps[i]->pixel, maps[i]->sample, maps[i]->align);
    if (s->ending && (size_t)at < size)
        at += snprintf(out + at, size - (size_t)at, " ending");
    return at > 0 && (size_t)at < size ? (size_t)at : 0;
}

static int64_t weights_count(const struct conv_spec *s)
{
    return (s->transposed ? s->in.c * s->out.c : s->out.c * s->in.c) / s->groups *
           product(s->kernel);
}

int64_t conv_spec_flops(const struct conv_spec *s)
{
    const int64_t pixels = product(s->transposed ? s->in.size : s->out.size);
    return 2 * s->n * pixels * weights_count(s);
}

int64_t conv_spec_bytes(const struct conv_spec *s)
{
    const int64_t in = s->n * s->in.c * product(s->in.size),
                  out = s->n * s->out.c * product(s->out.size);
    const int64_t residual = s->residual.c ? out / s->out.c * s->residual.c : 0;
    const int64_t numbers = in + out + residual + weights_count(s);
    return numbers * (int64_t)conv_element(s);
}

/* ---- weights ---- */

size_t conv_weights_bytes(const struct conv_spec *s, enum conv_form form)
{
    struct conv_stem_shape stem;
    if (form == CONV_FORM_STEM && conv_stem_shape_of(s, &stem))
        return (size_t)stem.steps * 16 * (size_t)s->out.c * 2;
    if (form == CONV_FORM_PATCHES)
        return (size_t)(s->out.c * conv_patches_row(s) * 2);
    if (form == CONV_FORM_BUNDLES)
        return (size_t)(s->out.c * product(s->kernel) * conv_bundle_of(s).depth * 2);
    return (size_t)weights_count(s) * conv_element(s);
}

/* Of each 16 taps a row of each column, whose halves are exchanged as Hopper's unit has rows of 32
 * bytes: so do eight columns' first words lie in banks of their own. */
static void pack_stem(const struct conv_spec *s, const float *from, uint16_t *to)
{
    struct conv_stem_shape stem;
    const int64_t          inner = s->in.c, kh = s->kernel[1], kw = s->kernel[2];
    if (!conv_stem_shape_of(s, &stem))
        return;
    for (int64_t k = 0; k < s->out.c; k++) {
        const int64_t in = k % (stem.tiles * 8),
                      column = k - in + conv_stem_column(stem.tiles, (int)in);
        for (int64_t i = 0; i < stem.steps * 16; i++) {
            const int64_t step = i / 16, pair = i / 2, r = pair / stem.pairs,
                          at = 2 * (pair % stem.pairs) + i % 2 - stem.lead,
                          tap = at / stem.channels, c = at % stem.channels;
            const bool real = r < kh && at >= 0 && tap < kw && c < inner;
            to[(step * s->out.c + column) * 16 + ((i % 16) ^ (column / 4 % 2 * 8))] =
                real ? sac_float_to_half(from[((k * inner + c) * kh + r) * kw + tap]) : 0;
        }
    }
}

static void pack_patches(const struct conv_spec *s, const float *from, uint16_t *to)
{
    const int64_t taps = product(s->kernel), row = conv_patches_row(s);
    memset(to, 0, conv_weights_bytes(s, CONV_FORM_PATCHES));
    for (int64_t o = 0; o < s->out.c; o++)
        for (int64_t i = 0; i < s->in.c; i++)
            for (int64_t t = 0; t < taps; t++)
                to[o * row + t * s->in.c + i] =
                    sac_float_to_half(from[(o * s->in.c + i) * taps + t]);
}

static void pack_bundles(const struct conv_spec *s, const float *from, uint16_t *to)
{
    const struct conv_bundle b = conv_bundle_of(s);
    const int64_t            taps = product(s->kernel), inner = s->in.c / s->groups,
                  outer = s->out.c / s->groups;
    memset(to, 0, conv_weights_bytes(s, CONV_FORM_BUNDLES));
    for (int64_t o = 0; o < s->out.c; o++)
        for (int64_t t = 0; t < taps; t++) {
            uint16_t *tap = to + (o * taps + t) * b.depth + o / outer % b.groups * inner;
            for (int64_t i = 0; i < inner; i++)
                tap[i] = sac_float_to_half(
                    from[s->turned ? i * s->out.c + o : (o * inner + i) * taps + t]);
        }
}

void conv_weights_pack(const struct conv_spec *s, enum conv_form form, const float *from, void *to)
{
    const int64_t outer = s->transposed ? s->in.c : s->out.c, taps = product(s->kernel);
    const int64_t inner = (s->transposed ? s->out.c : s->in.c) / s->groups;
    float        *to_float = to;
    uint16_t     *to_half = to;
    if (form == CONV_FORM_STEM) {
        pack_stem(s, from, to);
        return;
    }
    if (form == CONV_FORM_PATCHES) {
        pack_patches(s, from, to);
        return;
    }
    if (form == CONV_FORM_BUNDLES) {
        pack_bundles(s, from, to);
        return;
    }
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++)
            for (int64_t t = 0; t < taps; t++) {
                const int64_t taps_first =
                    s->transposed ? (t * outer + o) * inner + i : (t * inner + i) * outer + o;
                const int64_t at = form == CONV_FORM_TAPS ? taps_first : (o * taps + t) * inner + i;
                const float   v = from[s->turned ? i * outer + o : (o * inner + i) * taps + t];
                if (s->precision == SAC_PRECISION_FP16)
                    to_half[at] = sac_float_to_half(v);
                else
                    to_float[at] = v;
            }
}

/* ---- our own kernels ---- */

bool conv_stem_shape_of(const struct conv_spec *s, struct conv_stem_shape *out)
{
    const bool flat = s->in.size[0] == 1 && s->out.size[0] == 1 && s->kernel[0] == 1;
    if (s->precision != SAC_PRECISION_FP16 || s->transposed || s->turned || s->groups != 1 ||
        !flat || s->in.c > 16 || s->out.c % 16 != 0 || s->kernel[1] > 8 || s->kernel[2] > 8 ||
        s->stride[1] != s->stride[2] || s->stride[1] > 4 || s->dilation[1] != 1 ||
        s->dilation[2] != 1 || s->n * (s->out.c / 16) > 65535 ||
        s->residual_kind != SAC_RESIDUAL_NONE || s->ending)
        return false;
    if (s->in.pixel != s->in.c || s->out.align < 16 || s->out.pixel % 8 != 0 ||
        s->out.sample % 8 != 0)
        return false;
    const int tiles = (int)s->out.c / 8,
              channels = (int)s->in.c + (int)(s->in.c * s->stride[2] % 2);
    out->channels = channels;
    out->lead = channels == s->in.c ? (int)(s->pad_begin[2] * s->in.c % 2) : 0;
    out->pairs = ((int)s->kernel[2] * channels + out->lead + 1) / 2;
    out->steps = (int)(s->kernel[1] * out->pairs + 7) / 8;
    out->tiles = tiles % 4 == 0 ? 4 : tiles % 6 == 0 ? 6 : 2;
    return conv_stem_shared_bytes(out, (int)s->kernel[1], (int)s->kernel[2], (int)s->stride[1]) <=
           CONV_STEM_SHARED_MAX;
}

bool conv_is_flat(const struct conv_spec *s)
{
    bool flat = !s->transposed && product(s->kernel) == 1;
    for (int d = 0; d < CONV_DIMS; d++)
        flat &= s->stride[d] == 1 && s->pad_begin[d] == 0 && s->in.size[d] == s->out.size[d];
    return flat;
}

bool conv_residual_is_part(const struct conv_spec *s)
{
    return s->residual_kind != SAC_RESIDUAL_NONE && s->residual.c < s->out.c;
}

bool conv_is_depthwise(const struct conv_spec *s)
{
    const int64_t sample_max = INT32_MAX / 2; /* elements: the kernel counts its bytes */
    return !s->transposed && s->groups > 1 && s->groups == s->in.c && s->groups == s->out.c &&
           s->in.size[0] == 1 && s->out.size[0] == 1 && s->kernel[0] == 1 &&
           s->in.sample <= sample_max && !conv_residual_is_part(s);
}

const int conv_depthwise_rows[CONV_DEPTHWISE_VARIANTS] = {1, 2, 4, 7, 14, 28, 56};

/* Threads of a variant, when each has two channels of four pixels across. */
static int64_t depthwise_threads(const struct conv_spec *s, int variant)
{
    const int64_t rows = conv_depthwise_rows[variant];
    return s->n * ((s->out.size[1] + rows - 1) / rows) * ((s->out.size[2] + 3) / 4) *
           ((s->out.c + 1) / 2);
}

/* Where windows are not square a thread has one row, whatever the variant. */
static bool depthwise_varies(const struct conv_spec *s)
{
    return s->kernel[1] == s->kernel[2] && s->kernel[1] > 1 && s->kernel[1] <= 7 &&
           s->stride[1] == s->stride[2];
}

/* Few threads leave multiprocessors without work; very many do not make it faster, while they load
 * more. */
bool conv_depthwise_worth(const struct conv_spec *s, int variant)
{
    const int64_t few = 1 << 13, many = 1 << 19;
    if (variant == 0)
        return !depthwise_varies(s) || depthwise_threads(s, 1) < many;
    return depthwise_varies(s) && conv_depthwise_rows[variant - 1] < s->out.size[1] &&
           depthwise_threads(s, variant) >= few &&
           (depthwise_threads(s, variant) < many || variant >= CONV_DEPTHWISE_VARIANTS - 2);
}

int conv_depthwise_likely(const struct conv_spec *s)
{
    int best = 0;
    for (int v = 1; v < CONV_DEPTHWISE_VARIANTS; v++)
        if (conv_depthwise_worth(s, v) && depthwise_threads(s, v) >= 1 << 15)
            best = v;
    return best;
}

const struct conv_tile_size conv_tile_sizes[CONV_TILE_VARIANTS] = {
    {128, 128}, {128, 64}, {128, 32}, {64, 64}, {64, 32}, {32, 64}, {32, 32}, {16, 32}};

/* Outputs of a tile, the narrowest. */
enum { BUNDLE_OUT = 32, BUNDLE_OUT_MAX = 128 };

struct conv_bundle conv_bundle_of(const struct conv_spec *s)
{
    const int64_t      in = s->in.c / s->groups, out = s->out.c / s->groups;
    struct conv_bundle b = {.groups = 1};
    while (b.groups < s->groups && (s->groups % b.groups != 0 || b.groups * out < BUNDLE_OUT))
        b.groups++;
    b.count = s->groups / b.groups;
    b.in = b.groups * in;
    b.out = b.groups * out;
    b.depth = (b.in + 7) / 8 * 8;
    const int64_t steps =
        s->in.align | s->in.pixel * 2 | s->in.sample * 2 | (b.count > 1 ? b.in * 2 : 0); /* a unit
                                                                                            divides
                                                                                            all of
                                                                                            them */
    b.unit = steps % 16 == 0 ? 16 : steps % 8 == 0 ? 8 : steps % 4 == 0 ? 4 : 0;
    return b;
}

bool conv_tile_fits(const struct conv_spec *s, int64_t variant)
{
    const bool flat = s->in.size[0] == 1 && s->out.size[0] == 1 && s->kernel[0] == 1;
    if (variant < 0 || variant >= CONV_TILE_VARIANTS || s->precision != SAC_PRECISION_FP16 ||
        s->transposed || !flat || conv_is_depthwise(s))
        return false;
    const struct conv_bundle b = conv_bundle_of(s);
    return b.unit > 0 && (b.groups == 1 || b.out <= BUNDLE_OUT_MAX) &&
           product(s->kernel) * b.depth <= INT32_MAX / 2;
}

/* At least half of a tile is used. Small tiles are for maps that large tiles would not spread over
 * a whole GPU. */
bool conv_tile_worth(const struct conv_spec *s, int variant)
{
    const struct conv_tile_size t = conv_tile_sizes[variant];
    const struct conv_bundle    b = conv_bundle_of(s);
    const int64_t               pixels = s->n * product(s->out.size);
    const int64_t               blocks =
        (pixels + t.pixels - 1) / t.pixels * b.count * ((b.out + t.channels - 1) / t.channels);
    const bool fits = b.out > t.channels / 2 || t.channels == 32;
    return fits && (blocks <= 4096 || t.pixels == 128) && (blocks >= 48 || t.pixels <= 32);
}

int64_t conv_patches_row(const struct conv_spec *s)
{
    return (product(s->kernel) * s->in.c + 7) / 8 * 8;
}

int64_t conv_patches_bytes(const struct conv_spec *s)
{
    return s->n * product(s->out.size) * conv_patches_row(s) * 2;
}

bool conv_is_patches(const struct conv_spec *s)
{
    const bool one = product(s->kernel) == 1;
    bool       patches = s->precision == SAC_PRECISION_FP16 && !s->transposed && s->groups == 1 &&
                   (one || s->in.pixel == s->in.c) && s->in.size[0] == 1 && s->out.size[0] == 1 &&
                   s->kernel[0] == 1 && product(s->kernel) <= INT32_MAX / 4 / s->in.c &&
                   s->n * product(s->out.size) <= INT32_MAX / 4 / conv_patches_row(s);
    for (int d = 1; d < CONV_DIMS; d++)
        patches = patches && (one || s->stride[d] == s->kernel[d]) && s->dilation[d] == 1 &&
                  s->pad_begin[d] == 0 && s->pad_end[d] == 0;
    return patches;
}

struct conv_spec conv_patches_product(const struct conv_spec *s)
{
    const int64_t    row = conv_patches_row(s);
    struct conv_spec v = *s;
    v.in = (struct conv_map){.c = row, .pixel = row, .align = 16};
    for (int d = 0; d < CONV_DIMS; d++) {
        v.in.size[d] = s->out.size[d];
        v.kernel[d] = v.stride[d] = v.dilation[d] = 1;
    }
    v.in.sample = product(s->out.size) * row;
    return v;
}
