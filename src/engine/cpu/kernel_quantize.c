/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeLinear and DequantizeLinear with one constant scale, between float32 and bytes, in the
 * layout that the input has. A network's first image, which lies plain, becomes channels last on
 * the way, as convolutions of bytes want it. */
#include <stdio.h>

#include "engine/cpu/cpu.h"
#include "engine/cpu/map.h"

enum {
    CHUNK = 8192, /* numbers per unit of work: in and out fit the L1 cache */
    PER_NS = 8    /* numbers, for cutting work into pieces only */
};

enum way { FLAT, PIXELS, PLANES };

struct scaling_state {
    struct sac_units      units;
    struct sac_byte_scale scale;
    bool                  to_bytes;
    enum way              way;
    int64_t               count; /* numbers in all */
    struct sac_map        in, out;
};

static bool is_one(const struct sac_operand *o)
{
    return o->data && sac_operand_elements(o) == 1;
}

static bool is_byte(enum sac_dtype t)
{
    return t == SAC_I8 || t == SAC_U8;
}

static struct sac_kernel_offer scaling_supports(struct sac_device                *dev,
                                                const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_op_call *c = q->call;
    const bool                to_bytes = c->node->op->id == SAC_OP_QuantizeLinear;
    const struct sac_operand *numbers = to_bytes ? &c->in[0] : &c->out[0],
                             *bytes = to_bytes ? &c->out[0] : &c->in[0];
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2 || numbers->dtype != SAC_F32 || !is_byte(bytes->dtype))
        return sac_kernel_refuse("not between float32 and 8 bits, or no AVX2");
    if (!is_one(&c->in[1]) || c->in[1].dtype != SAC_F32 || (sac_op_has(c, 2) && !is_one(&c->in[2])))
        return sac_kernel_refuse("more than one scale, or none that is constant");
    const bool map = sac_map_fits(&c->in[0]), last = offer.in_layout[0] == SAC_LAYOUT_CHANNELS_LAST;
    const bool image = to_bytes && map && c->in[0].dims[1] <= SAC_MAP_PLANES_MAX;
    offer.in_layout[0] = last ? SAC_LAYOUT_CHANNELS_LAST : SAC_LAYOUT_PLAIN;
    offer.in_layout[1] = offer.in_layout[2] = SAC_LAYOUT_PLAIN;
    offer.out_layout[0] = image ? SAC_LAYOUT_CHANNELS_LAST : offer.in_layout[0];
    offer.strided = map && last;
    return offer;
}

static void scale_numbers(const struct scaling_state *s, const void *x, int64_t from, void *y,
                          int64_t to, int64_t count)
{
    if (s->to_bytes)
        SAC_SIMD_PICK(sac_map_quantise)
    (&s->scale, (const float *)x + from, (uint8_t *)y + to, count);
    else SAC_SIMD_PICK(sac_map_dequantise)(&s->scale, (const uint8_t *)x + from, (float *)y + to,
                                           count);
}

/* Units are chunks of all numbers. */
static void flat_work(const void *state, void *const *in, void *const *out, int64_t first,
                      int64_t end)
{
    const struct scaling_state *s = state;
    const int64_t               from = first * CHUNK, to = SAC_MIN(end * CHUNK, s->count);
    scale_numbers(s, in[0], from, out[0], from, to - from);
}

/* Units are lines of pixels, one of which is a part of a wider value, or of a plain picture. */
static void line_work(const void *state, void *const *in, void *const *out, int64_t first,
                      int64_t end)
{
    const struct scaling_state *s = state;
    for (int64_t r = first; r < end; r++) {
        const int64_t n = r / s->in.h, row = r % s->in.h, w = s->in.w;
        const int64_t to = n * s->out.sample + row * w * s->out.pixel;
        if (s->way == PLANES)
            SAC_SIMD_PICK(sac_map_quantise_planes)
        (&s->scale, (const float *)in[0] + (n * s->in.c * s->in.h + row) * w, s->in.h * w,
         (int)s->in.c, (uint8_t *)out[0] + to, w);
        const int64_t from = n * s->in.sample + row * w * s->in.pixel;
        for (int64_t i = 0; s->way == PIXELS && i < w; i++)
            scale_numbers(s, in[0], from + i * s->in.pixel, out[0], to + i * s->out.pixel, s->in.c);
    }
}

static bool is_dense(const struct sac_map *m)
{
    return m->pixel == m->c && m->sample == m->w * m->h * m->c;
}

static sac_result scaling_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct scaling_state     *s = sac_new(struct scaling_state);
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    s->to_bytes = c->node->op->id == SAC_OP_QuantizeLinear;
    s->scale.scale = *(const float *)c->in[1].data;
    s->scale.inverse = 1 / s->scale.scale;
    s->scale.zero = sac_op_has(c, 2) ? (int)sac_operand_get(&c->in[2], 0) : 0;
    s->scale.is_signed = (s->to_bytes ? c->out[0] : c->in[0]).dtype == SAC_I8;
    s->count = sac_operand_elements(&c->in[0]);
    if (sac_map_fits(&c->in[0])) {
        s->in = sac_map_in(plan, 0);
        s->out = sac_map_out(plan, 0);
        if (plan->in_layout[0] != plan->out_layout[0])
            s->way = PLANES;
        else if (!is_dense(&s->in) || !is_dense(&s->out))
            s->way = PIXELS;
    }
    sac_units_init(&s->units, dev, s->way ? s->in.n * s->in.h : (s->count + CHUNK - 1) / CHUNK,
                   s->count / PER_NS, s->way ? line_work : flat_work);
    snprintf(plan->implementation, sizeof plan->implementation, "%s%s", sac_simd_name(),
             s->way == PLANES ? " planes" : "");
    plan->state = s;
    return SAC_OK;
}

const struct sac_kernel sac_cpu_QuantizeLinear = {SAC_OP_QuantizeLinear, scaling_supports,
                                                  scaling_prepare, sac_units_run, sac_free};
const struct sac_kernel sac_cpu_DequantizeLinear = {SAC_OP_DequantizeLinear, scaling_supports,
                                                    scaling_prepare, sac_units_run, sac_free};
