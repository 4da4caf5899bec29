/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of one number that are no activation of ours: flat loops, the same in every dense
 * layout. */
#include <stdio.h>
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/cpu/map.h"

enum { CHUNK = 8192 }; /* floats per unit of work: in and out fit the L1 cache */

struct unary_state {
    struct sac_units units;
    int64_t          count;
    enum sac_unary   op;
};

static enum sac_unary op_of(const struct sac_node *n)
{
    switch (n->op->id) {
    case SAC_OP_Abs: return SAC_UNARY_ABS;
    case SAC_OP_Erf: return SAC_UNARY_ERF;
    case SAC_OP_Exp: return SAC_UNARY_EXP;
    case SAC_OP_Gelu:
        return strcmp(sac_attr_string(n, "approximate", "none"), "tanh") == 0 ? SAC_UNARY_GELU_TANH
                                                                              : SAC_UNARY_GELU;
    case SAC_OP_Neg: return SAC_UNARY_NEG;
    case SAC_OP_Reciprocal: return SAC_UNARY_RECIPROCAL;
    default: return SAC_UNARY_SQRT;
    }
}

static struct sac_kernel_offer unary_supports(struct sac_device                *dev,
                                              const struct sac_kernel_question *q)
{
    struct sac_kernel_offer offer = sac_kernel_take(q);
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2 || !sac_call_is_float(q->call))
        return sac_kernel_refuse("not float32, or no AVX2");
    offer.out_layout[0] = offer.in_layout[0];
    return sac_layout_is_half(q->in_layout[0]) ? sac_kernel_refuse("half precision") : offer;
}

static void unary_work(const void *state, void *const *in, void *const *out, int64_t first,
                       int64_t end)
{
    const struct unary_state *s = state;
    const int64_t             from = first * CHUNK, to = SAC_MIN(end * CHUNK, s->count);
    SAC_SIMD_PICK(sac_map_unary)
    (s->op, (const float *)in[0] + from, (float *)out[0] + from, to - from);
}

static sac_result unary_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    struct unary_state *s = sac_new(struct unary_state);
    if (!s)
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    s->op = op_of(plan->call->node);
    s->count = sac_operand_elements(&plan->call->out[0]);
    sac_units_init(&s->units, dev, (s->count + CHUNK - 1) / CHUNK, s->count / 2, unary_work);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

#define UNARY(op)                                                                       \
    const struct sac_kernel sac_cpu_##op = {SAC_OP_##op, unary_supports, unary_prepare, \
                                            sac_units_run, sac_free};
UNARY(Abs)
UNARY(Erf)
UNARY(Exp)
UNARY(Gelu)
UNARY(Neg)
UNARY(Reciprocal)
UNARY(Sqrt)
