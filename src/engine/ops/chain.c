/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/chain.h"

#include <math.h>

#include "engine/ops/util.h"

_Static_assert((int)SAC_CHAIN_INPUTS <= (int)SAC_WALK_MAX, "a walk goes over all inputs");

static bool is_known(int64_t fn)
{
    return (fn >= SAC_ACT_NONE && fn < SAC_ACT_COUNT) ||
           (fn >= SAC_CHAIN_ABS && fn <= SAC_CHAIN_SQRT) ||
           (fn >= SAC_CHAIN_ADD && fn <= SAC_CHAIN_MIN);
}

/* An operand of step i: what is there by then. */
static bool is_there(int64_t operand, int inputs, int i)
{
    return (operand >= -1 && operand < inputs) ||
           (operand >= SAC_CHAIN_INPUTS && operand < SAC_CHAIN_INPUTS + i);
}

bool sac_chain_read(const struct sac_node *n, struct sac_chain *out)
{
    const int64_t *steps;
    const float   *alpha, *beta;
    const size_t   count = sac_attr_ints(n, "steps", &steps) / 3;
    if (count < 1 || count > SAC_CHAIN_STEPS || n->input_count > SAC_CHAIN_INPUTS ||
        sac_attr_ints(n, "steps", &steps) != 3 * count ||
        sac_attr_floats(n, "alpha", &alpha) != count || sac_attr_floats(n, "beta", &beta) != count)
        return false;
    out->count = (int)count;
    for (int i = 0; i < out->count; i++) {
        const int64_t *s = steps + 3 * i;
        if (!is_known(s[0]) || !is_there(s[1], n->input_count, i) ||
            (sac_chain_of_two((int)s[0]) && !is_there(s[2], n->input_count, i)))
            return false;
        out->step[i] =
            (struct sac_chain_step){(int)s[0], {(int)s[1], (int)s[2]}, alpha[i], beta[i]};
        if (!sac_chain_of_two((int)s[0]))
            out->step[i].operand[1] = -1;
    }
    return true;
}

bool sac_chain_of(const struct sac_node *n, struct sac_chain *out)
{
    static const struct {
        enum sac_op_id id;
        int            fn;
    } one[] = {{SAC_OP_Add, SAC_CHAIN_ADD}, {SAC_OP_Sub, SAC_CHAIN_SUB},
               {SAC_OP_Mul, SAC_CHAIN_MUL}, {SAC_OP_Div, SAC_CHAIN_DIV},
               {SAC_OP_Max, SAC_CHAIN_MAX}, {SAC_OP_Min, SAC_CHAIN_MIN}};
    for (size_t i = 0; i < SAC_COUNT(one); i++)
        if (n->op->id == one[i].id) {
            *out = (struct sac_chain){1, {{one[i].fn, {0, 1}, 0, 0}}};
            return n->input_count == 2;
        }
    return n->op->id == SAC_OP_Chain && sac_chain_read(n, out);
}

float sac_chain_apply(const struct sac_chain_step *s, float a, float b)
{
    switch (s->fn) {
    case SAC_CHAIN_ABS: return fabsf(a);
    case SAC_CHAIN_ERF: return erff(a);
    case SAC_CHAIN_EXP: return expf(a);
    case SAC_CHAIN_LOG: return logf(a);
    case SAC_CHAIN_NEG: return -a;
    case SAC_CHAIN_RECIPROCAL: return 1 / a;
    case SAC_CHAIN_SQRT: return sqrtf(a);
    case SAC_CHAIN_ADD: return a + b;
    case SAC_CHAIN_SUB: return a - b;
    case SAC_CHAIN_MUL: return a * b;
    case SAC_CHAIN_DIV: return a / b;
    case SAC_CHAIN_MAX: return a > b || isnan(a) ? a : b; /* NaN stays, as in Max and Min */
    case SAC_CHAIN_MIN: return a < b || isnan(a) ? a : b;
    default: break;
    }
    const struct sac_activation act = {(enum sac_activation_kind)s->fn, s->alpha, s->beta};
    return sac_activate(a, &act);
}

bool sac_chain_divides(const struct sac_node *n, int input)
{
    struct sac_chain c;
    bool             divides = false;
    for (int i = 0; sac_chain_read(n, &c) && i < c.count; i++) {
        const struct sac_chain_step *s = &c.step[i];
        const bool                   root =
            s->fn == SAC_CHAIN_LOG || s->fn == SAC_CHAIN_RECIPROCAL || s->fn == SAC_CHAIN_SQRT;
        divides |=
            (root && s->operand[0] == input) || (s->fn == SAC_CHAIN_DIV && s->operand[1] == input);
    }
    return divides;
}

/* A file can use the domain too, so nothing about the node is trusted. */
static sac_result chain_shape(struct sac_op_call *c)
{
    struct sac_chain chain;
    int64_t          dims[SAC_RANK_MAX];
    int              rank = 0;
    SAC_CHECK(c, sac_chain_read(c->node, &chain), "its steps are no chain");
    for (int i = 0; i < c->in_count; i++) {
        SAC_CHECK(c, sac_op_has(c, i) && c->in[i].dtype == SAC_F32,
                  "input %d is missing or not float32", i);
        SAC_CHECK(c, sac_broadcast_dims(&rank, dims, c->in[i].rank, c->in[i].dims),
                  "input %d does not fit those before it", i);
    }
    return sac_shape_out(c, 0, SAC_F32, rank, dims);
}

static sac_result chain_ref(struct sac_op_call *c)
{
    struct sac_chain chain;
    struct sac_walk  w;
    int              at[SAC_CHAIN_INPUTS];
    float           *to = c->out[0].data;
    sac_chain_read(c->node, &chain);
    sac_walk_init(&w, c->out[0].rank, c->out[0].dims);
    for (int k = 0; k < c->in_count; k++)
        at[k] = sac_walk_operand(&w, &c->in[k]);
    for (sac_walk_start(&w); w.run; sac_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++) {
            float v[SAC_CHAIN_INPUTS + SAC_CHAIN_STEPS];
            for (int k = 0; k < c->in_count; k++)
                v[k] = ((const float *)c->in[k].data)[w.at[at[k]] + i * w.step[at[k]]];
            for (int s = 0; s < chain.count; s++) {
                const struct sac_chain_step *step = &chain.step[s];
                const int                    a = step->operand[0], b = step->operand[1];
                v[SAC_CHAIN_INPUTS + s] =
                    sac_chain_apply(step, a < 0 ? step->alpha : v[a], b < 0 ? step->alpha : v[b]);
            }
            *to++ = v[SAC_CHAIN_INPUTS + chain.count - 1];
        }
    return SAC_OK;
}

extern const struct sac_op sac_row_Chain;

const struct sac_op sac_row_Chain = {SAC_FUSED_ROW(Chain, 1, SAC_CHAIN_INPUTS),
                                     SAC_TOLERANCE(1e-5f, 1e-5f), .flags = SAC_OP_ELEMENTWISE,
                                     .shape = chain_shape, .ref = chain_ref};
