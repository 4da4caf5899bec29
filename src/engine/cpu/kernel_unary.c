/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of one number that are no activation of ours: flat loops, the same in every dense
 * layout. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/cpu/map.h"
#include "engine/cpu/select.h"

enum { CHUNK = 8192 }; /* floats per unit of work: in and out fit the L1 cache */

struct unary_state {
    struct sac_units         units;
    int64_t                  count;
    enum sac_unary           op;
    struct sac_unary_numbers by;
};

/* The exponents for which nothing else has to be computed. */
static const struct {
    float          exponent;
    enum sac_unary op;
} powers[] = {{2, SAC_UNARY_SQUARE},
              {3, SAC_UNARY_CUBE},
              {0.5f, SAC_UNARY_SQRT},
              {-0.5f, SAC_UNARY_RECIPROCAL_SQRT},
              {-1, SAC_UNARY_RECIPROCAL}};

/* Of a Pow by one constant number that float32 has; false: by others, and by 0. A whole number to a
 * small whole power stays one. */
static bool power_of(const struct sac_op_call *c, enum sac_unary *op, float *exponent)
{
    const struct sac_operand *by = &c->in[1];
    if (!by->data || sac_operand_elements(by) != 1 || !sac_operand_same_dims(&c->in[0], &c->out[0]))
        return false;
    const double y = sac_operand_get(by, 0);
    if (y == 0 || !(fabs(y) <= FLT_MAX) || y != (double)(float)y)
        return false;
    *exponent = (float)y;
    *op = y != floor(y)                          ? SAC_UNARY_POWER
          : y > 0 && y <= SAC_UNARY_PRODUCTS_MAX ? SAC_UNARY_PRODUCT
          : fmod(y, 2) != 0                      ? SAC_UNARY_POWER_ODD
                                                 : SAC_UNARY_POWER_EVEN;
    for (size_t i = 0; i < SAC_COUNT(powers); i++)
        if (*exponent == powers[i].exponent)
            *op = powers[i].op;
    return true;
}

static enum sac_unary op_of(const struct sac_node *n)
{
    switch (n->op->id) {
    case SAC_OP_Abs: return SAC_UNARY_ABS;
    case SAC_OP_Erf: return SAC_UNARY_ERF;
    case SAC_OP_Exp: return SAC_UNARY_EXP;
    case SAC_OP_Gelu:
        return strcmp(sac_attr_string(n, "approximate", "none"), "tanh") == 0 ? SAC_UNARY_GELU_TANH
                                                                              : SAC_UNARY_GELU;
    case SAC_OP_Log: return SAC_UNARY_LOG;
    case SAC_OP_Neg: return SAC_UNARY_NEG;
    case SAC_OP_Ceil: return SAC_UNARY_CEIL;
    case SAC_OP_Celu: return SAC_UNARY_CELU;
    case SAC_OP_Elu: return SAC_UNARY_ELU;
    case SAC_OP_Floor: return SAC_UNARY_FLOOR;
    case SAC_OP_Mish: return SAC_UNARY_MISH;
    case SAC_OP_Reciprocal: return SAC_UNARY_RECIPROCAL;
    case SAC_OP_Round: return SAC_UNARY_ROUND;
    case SAC_OP_Selu: return SAC_UNARY_ELU;
    case SAC_OP_Softsign: return SAC_UNARY_SOFTSIGN;
    case SAC_OP_ThresholdedRelu: return SAC_UNARY_THRESHOLDED;
    default: return SAC_UNARY_SQRT;
    }
}

static struct sac_kernel_offer unary_supports(struct sac_device                *dev,
                                              const struct sac_kernel_question *q)
{
    struct sac_kernel_offer offer = sac_kernel_take(q);
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2 || q->call->in[0].dtype != SAC_F32)
        return sac_kernel_refuse("not float32, or no AVX2");
    offer.in_layout[1] = SAC_LAYOUT_PLAIN;
    offer.out_layout[0] = offer.in_layout[0];
    return sac_layout_is_half(q->in_layout[0]) ? sac_kernel_refuse("half precision") : offer;
}

static void unary_work(const void *state, void *const *in, void *const *out, int64_t first,
                       int64_t end)
{
    const struct unary_state *s = state;
    const int64_t             from = first * CHUNK, to = SAC_MIN(end * CHUNK, s->count);
    SAC_SIMD_PICK(sac_map_unary)
    (s->op, &s->by, (const float *)in[0] + from, (float *)out[0] + from, to - from);
}

static sac_result unary_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    struct unary_state *s = sac_new(struct unary_state);
    if (!s)
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    const bool selu = plan->call->node->op->id == SAC_OP_Selu;
    s->op = op_of(plan->call->node);
    s->by.alpha = sac_attr_float(plan->call->node, "alpha", selu ? 1.67326319f : 1);
    s->by.gamma = selu ? sac_attr_float(plan->call->node, "gamma", 1.05070102f) : 1;
    if (plan->call->node->op->id == SAC_OP_Pow)
        power_of(plan->call, &s->op, &s->by.alpha);
    s->count = sac_operand_elements(&plan->call->out[0]);
    sac_units_init(&s->units, dev, (s->count + CHUNK - 1) / CHUNK, s->count / 2, unary_work);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

/* ---- Pow: by one constant number, or by any numbers ---- */

static struct sac_kernel_offer pow_supports(struct sac_device                *dev,
                                            const struct sac_kernel_question *q)
{
    enum sac_unary op;
    float          exponent;
    return power_of(q->call, &op, &exponent) ? unary_supports(dev, q)
                                             : sac_cpu_select_supports(dev, q);
}

static sac_result pow_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    enum sac_unary op;
    float          exponent;
    return power_of(plan->call, &op, &exponent) ? unary_prepare(dev, plan)
                                                : sac_cpu_select_prepare(dev, plan);
}

const struct sac_kernel sac_cpu_Pow = {SAC_OP_Pow, pow_supports, pow_prepare, sac_units_run,
                                       sac_free};

#define UNARY(op)                                                                       \
    const struct sac_kernel sac_cpu_##op = {SAC_OP_##op, unary_supports, unary_prepare, \
                                            sac_units_run, sac_free};
UNARY(Abs)
UNARY(Ceil)
UNARY(Celu)
UNARY(Elu)
UNARY(Erf)
UNARY(Exp)
UNARY(Floor)
UNARY(Gelu)
UNARY(Log)
UNARY(Mish)
UNARY(Neg)
UNARY(Reciprocal)
UNARY(Round)
UNARY(Selu)
UNARY(Softsign)
UNARY(Sqrt)
UNARY(ThresholdedRelu)
