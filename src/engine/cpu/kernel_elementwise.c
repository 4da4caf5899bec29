/* SPDX-License-Identifier: Apache-2.0 */
/* Activations, and Add, Sub, Mul, Div, PRelu of equal shapes or with one number per channel, per
 * last dimension or for all: flat loops over memory, the same in every dense layout. Other shapes
 * are left to Chain's kernel. */
#include <stdio.h>
#include <string.h>

#include "engine/cpu/chain.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/map.h"

enum { CHUNK = 8192 }; /* floats per piece of work: two pieces fit the L1 cache */

struct flat_state {
    struct sac_units      units;
    int64_t               count;
    struct sac_activation act;
    enum sac_binary       op;
    bool                  swap;           /* the second input is the wide one */
    bool                  constant;       /* pattern is ready; else it is filled in each run */
    int64_t               period, length; /* 0: both inputs are as long */
    int64_t               unit;           /* floats of a unit: whole patterns */
    float                *pattern;
    int64_t               pixels;  /* of a sample, where some of these are parts of wider maps: */
    struct sac_map        part[3]; /* the inputs and the output */
};

static void flat_release(void *state)
{
    struct flat_state *s = state;
    if (s)
        sac_free(s->pattern);
    sac_free(s);
}

static void set_units(struct flat_state *s, const struct sac_device *dev, sac_units_work *work)
{
    s->unit = s->length ? (CHUNK + s->length - 1) / s->length * s->length : CHUNK;
    sac_units_init(&s->units, dev, (s->count + s->unit - 1) / s->unit, s->count / 8, work);
}

/* ---- activations ---- */

static bool bound(const struct sac_op_call *c, int input, float *out)
{
    if (input >= c->in_count || !c->in[input].present)
        return true;
    if (!c->in[input].data || sac_operand_elements(&c->in[input]) != 1)
        return false;
    *out = (float)sac_operand_get(&c->in[input], 0);
    return true;
}

static bool read_activation(const struct sac_op_call *c, struct sac_activation *out)
{
    return sac_activation_from_attrs(c->node, out) &&
           (c->node->op->id != SAC_OP_Clip ||
            (bound(c, 1, &out->alpha) && bound(c, 2, &out->beta)));
}

static struct sac_kernel_offer activation_supports(struct sac_device                *dev,
                                                   const struct sac_kernel_question *q)
{
    struct sac_kernel_offer offer = sac_kernel_take(q);
    struct sac_activation   act;
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2 || !sac_call_is_float(q->call) ||
        !read_activation(q->call, &act))
        return sac_kernel_refuse("not a float32 activation with constant bounds, or no AVX2");
    for (int i = 1; i < q->call->in_count; i++)
        offer.in_layout[i] = SAC_LAYOUT_PLAIN;
    offer.out_layout[0] = offer.in_layout[0];
    return sac_layout_is_half(q->in_layout[0]) ? sac_kernel_refuse("half precision") : offer;
}

static void activation_work(const void *state, void *const *in, void *const *out, int64_t first,
                            int64_t end)
{
    const struct flat_state *s = state;
    const int64_t            from = first * s->unit, to = SAC_MIN(end * s->unit, s->count);
    SAC_SIMD_PICK(sac_map_activate)
    (&s->act, (const float *)in[0] + from, (float *)out[0] + from, to - from);
}

static sac_result activation_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    struct flat_state *s = sac_new(struct flat_state);
    if (!s)
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    read_activation(plan->call, &s->act);
    s->count = sac_operand_elements(&plan->call->out[0]);
    set_units(s, dev, activation_work);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

#define ACTIVATION(op)                                                                            \
    const struct sac_kernel sac_cpu_##op = {SAC_OP_##op, activation_supports, activation_prepare, \
                                            sac_units_run, flat_release};
ACTIVATION(Activation)
ACTIVATION(Relu)
ACTIVATION(LeakyRelu)
ACTIVATION(Clip)
ACTIVATION(Sigmoid)
ACTIVATION(Tanh)
ACTIVATION(Softplus)
ACTIVATION(HardSigmoid)
ACTIVATION(HardSwish)
ACTIVATION(Swish)

/* ---- two operands ---- */

/* The period with which `narrow` repeats along `wide` in that layout; 0: it does not. */
static int64_t period_of(const struct sac_operand *wide, const struct sac_operand *narrow,
                         enum sac_layout layout)
{
    const int64_t count = sac_operand_elements(narrow);
    if (count == 1)
        return 1;
    if (narrow->rank > wide->rank || count == 0)
        return 0;
    const int shift = wide->rank - narrow->rank;
    if (layout == SAC_LAYOUT_CHANNELS_LAST) /* [C,1,...] against dimension 1 */
        return wide->rank >= 3 && shift <= 1 && narrow->dims[1 - shift] == count &&
                       count == wide->dims[1]
                   ? count
                   : 0;
    int     d = narrow->rank; /* plain: the last dims are equal, those before are one */
    int64_t tail = 1;
    while (d > 0 && narrow->dims[d - 1] == wide->dims[d - 1 + shift])
        tail *= narrow->dims[--d];
    return tail == count ? count : 0;
}

static struct sac_kernel_offer binary_supports(struct sac_device                *dev,
                                               const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_operand *a = &q->call->in[0], *b = &q->call->in[1], *y = &q->call->out[0];
    if (sac_cpu_level() < SAC_CPU_AVX2 || !sac_call_is_float(q->call))
        return sac_kernel_refuse("not float32, or no AVX2");
    const int wide = sac_operand_same_dims(a, y) ? 0 : sac_operand_same_dims(b, y) ? 1 : -1;
    if (wide < 0)
        return sac_cpu_chain_supports(dev, q);
    enum sac_layout           layout = offer.in_layout[wide];
    const struct sac_operand *narrow = wide ? a : b;
    const bool                equal = sac_operand_same_dims(a, b);
    if (equal && (offer.in_layout[0] == SAC_LAYOUT_CHANNELS_LAST ||
                  offer.in_layout[1] == SAC_LAYOUT_CHANNELS_LAST))
        layout = SAC_LAYOUT_CHANNELS_LAST;
    if (layout > SAC_LAYOUT_CHANNELS_LAST)
        return sac_kernel_refuse("half precision");
    if (!equal && !period_of(y, narrow, layout))
        return sac_cpu_chain_supports(dev, q);
    offer.out_layout[0] = offer.in_layout[wide] = layout;
    offer.in_layout[1 - wide] = equal ? layout : SAC_LAYOUT_PLAIN;
    offer.strided = equal && layout == SAC_LAYOUT_CHANNELS_LAST && sac_volume_fits(y);
    return offer;
}

static enum sac_binary binary_op(const struct sac_kernel_plan *plan, bool swap)
{
    switch (plan->call->node->op->id) {
    case SAC_OP_Add: return SAC_BINARY_ADD;
    case SAC_OP_Mul: return SAC_BINARY_MUL;
    case SAC_OP_PRelu: return SAC_BINARY_PRELU;
    case SAC_OP_Sub: return swap ? SAC_BINARY_SUB_REVERSED : SAC_BINARY_SUB;
    default: return swap ? SAC_BINARY_DIV_REVERSED : SAC_BINARY_DIV;
    }
}

static void binary_work(const void *state, void *const *in, void *const *out, int64_t first,
                        int64_t end)
{
    const struct flat_state *s = state;
    const int64_t            from = first * s->unit, to = SAC_MIN(end * s->unit, s->count);
    const float             *a = in[s->swap], *b = in[!s->swap];
    SAC_SIMD_PICK(sac_map_binary)
    (s->op, a + from, s->length ? s->pattern : b + from, s->length, (float *)out[0] + from,
     to - from);
}

/* A pixel at a time. */
static void parts_work(const void *state, void *const *in, void *const *out, int64_t first,
                       int64_t end)
{
    const struct flat_state *s = state;
    const struct sac_map    *a = &s->part[0], *b = &s->part[1], *y = &s->part[2];
    for (int64_t k = first; k < end; k++) {
        const int64_t n = k / s->pixels, pixel = k % s->pixels;
        SAC_SIMD_PICK(sac_map_binary)
        (s->op, (const float *)in[0] + n * a->sample + pixel * a->pixel,
         (const float *)in[1] + n * b->sample + pixel * b->pixel, 0,
         (float *)out[0] + n * y->sample + pixel * y->pixel, y->c);
    }
}

static bool has_parts(const struct sac_kernel_plan *plan)
{
    return plan->in_pixel[0] || plan->in_pixel[1] || plan->out_pixel[0];
}

static void set_parts(struct flat_state *s, const struct sac_kernel_plan *plan,
                      const struct sac_device *dev)
{
    const struct sac_map y = sac_map_out(plan, 0);
    s->part[0] = sac_map_in(plan, 0);
    s->part[1] = sac_map_in(plan, 1);
    s->part[2] = y;
    s->pixels = y.d * y.h * y.w;
    sac_units_init(&s->units, dev, y.n * s->pixels, s->count / 8, parts_work);
}

/* Is one operand as long as the output, and does the other repeat along it? */
static bool is_flat(const struct sac_op_call *c, enum sac_layout layout)
{
    const bool swap = !sac_operand_same_dims(&c->in[0], &c->out[0]);
    return sac_operand_same_dims(&c->in[0], &c->in[1]) ||
           (sac_operand_same_dims(&c->in[swap], &c->out[0]) &&
            period_of(&c->out[0], &c->in[!swap], layout));
}

static sac_result binary_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    if (!is_flat(c, plan->out_layout[0]))
        return sac_cpu_chain_prepare(dev, plan);
    struct flat_state *s = sac_new(struct flat_state);
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    s->swap = !sac_operand_same_dims(&c->in[0], &c->out[0]);
    s->op = binary_op(plan, s->swap);
    s->count = sac_operand_elements(&c->out[0]);
    if (!sac_operand_same_dims(&c->in[0], &c->in[1])) {
        const struct sac_operand *narrow = &c->in[s->swap ? 0 : 1];
        s->period = period_of(&c->out[0], narrow, plan->out_layout[0]);
        s->length = sac_pattern_length(s->period, sac_simd_lanes());
        s->pattern = sac_alloc_aligned(64, (size_t)s->length * sizeof(float));
        if (!s->pattern) {
            flat_release(s);
            return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
        }
        s->constant = narrow->data != NULL;
        if (s->constant)
            sac_pattern_fill(s->pattern, s->length, narrow->data, s->period);
    }
    if (has_parts(plan))
        set_parts(s, plan, dev);
    else
        set_units(s, dev, binary_work);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

static sac_result binary_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                             void *scratch, struct sac_device_stream *stream)
{
    struct flat_state *s = state;
    if (s->units.work == binary_work && s->length && !s->constant)
        sac_pattern_fill(s->pattern, s->length, in[!s->swap], s->period);
    return sac_units_run(dev, state, in, out, scratch, stream);
}

static void binary_release(void *state)
{
    struct flat_state *s = state;
    if (s && (s->units.work == binary_work || s->units.work == parts_work))
        flat_release(s);
    else
        sac_free(s); /* a chain's */
}

#define BINARY(op)                                                                        \
    const struct sac_kernel sac_cpu_##op = {SAC_OP_##op, binary_supports, binary_prepare, \
                                            binary_run, binary_release};
BINARY(Add)
BINARY(Sub)
BINARY(Mul)
BINARY(Div)

/* Its slope is never the wider one. */
static struct sac_kernel_offer prelu_supports(struct sac_device                *dev,
                                              const struct sac_kernel_question *q)
{
    const struct sac_op_call *c = q->call;
    const bool                equal = sac_operand_same_dims(&c->in[0], &c->in[1]);
    if (!sac_operand_same_dims(&c->in[0], &c->out[0]) ||
        (!equal && !period_of(&c->out[0], &c->in[1], q->in_layout[0])))
        return sac_kernel_refuse("a slope that does not repeat along its input");
    return binary_supports(dev, q);
}

const struct sac_kernel sac_cpu_PRelu = {SAC_OP_PRelu, prelu_supports, binary_prepare, binary_run,
                                         binary_release};
