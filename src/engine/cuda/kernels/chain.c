/* SPDX-License-Identifier: Apache-2.0 */
/* The row of Chain: layouts as those of other elementwise operators. */
#include "engine/cuda/kernels/chain.h"

#include <math.h>

#include "engine/cuda/kernels/kernels.h"
#include "engine/cuda/kernels/map.h"
#include "engine/ops/chain.h"

_Static_assert((int)SAC_CHAIN_INPUTS + 1 <= (int)OPS_OPERANDS, "a view has room for all inputs");

static struct ops_chain_step step_of(const struct sac_chain_step *s)
{
    static const int of[] = {
        [SAC_CHAIN_ABS] = OPS_FN_ABS,   [SAC_CHAIN_ERF] = OPS_FN_ERF,
        [SAC_CHAIN_EXP] = OPS_FN_EXP,   [SAC_CHAIN_LOG] = OPS_FN_LOG,
        [SAC_CHAIN_NEG] = OPS_FN_NEG,   [SAC_CHAIN_RECIPROCAL] = OPS_FN_RECIPROCAL,
        [SAC_CHAIN_SQRT] = OPS_FN_SQRT, [SAC_CHAIN_ADD] = OPS_FN_ADD,
        [SAC_CHAIN_SUB] = OPS_FN_SUB,   [SAC_CHAIN_MUL] = OPS_FN_MUL,
        [SAC_CHAIN_DIV] = OPS_FN_DIV,   [SAC_CHAIN_MAX] = OPS_FN_MAX,
        [SAC_CHAIN_MIN] = OPS_FN_MIN};
    struct ops_chain_step to = {.operand = {s->operand[0], s->operand[1]}, .alpha = s->alpha};
    double                a, b;
    if (s->fn >= SAC_ACT_COUNT) {
        to.fn = of[s->fn];
        to.form = !sac_chain_of_two(s->fn) ? OPS_CHAIN_ONE
                  : s->operand[1] < 0      ? OPS_CHAIN_NUMBER
                                           : OPS_CHAIN_TWO;
        return to;
    }
    const struct sac_activation act = {(enum sac_activation_kind)s->fn, s->alpha, s->beta};
    to.fn = ops_activation_fn(&act, &a, &b);
    to.alpha = (float)a;
    to.beta = (float)b;
    return to;
}

/* Positions and sizes, epsilons, and what leaves float16's range: as for single steps (map.c). */
static bool needs_float(const struct sac_chain *c)
{
    const struct sac_chain_step *last = &c->step[c->count - 1];
    for (int i = 0; i < c->count; i++) {
        const struct sac_chain_step *s = &c->step[i];
        const float                  size = fabsf(s->alpha);
        if (sac_chain_of_two(s->fn) && (s->operand[0] < 0 || s->operand[1] < 0) && size > 0 &&
            (size > 16 || size < 6.2e-5f))
            return true;
    }
    return last->fn == SAC_CHAIN_EXP || last->fn == SAC_CHAIN_RECIPROCAL;
}

static bool chain_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    struct sac_chain chain;
    ops_map_layouts(q, offer);
    if (sac_chain_read(q->call->node, &chain) && needs_float(&chain))
        ops_halve_output(q, offer, 0, false);
    if (offer->in_place >= 0 && offer->in_layout[offer->in_place] != offer->out_layout[0])
        offer->in_place = -1;
    return true;
}

/* The step after which the result of step i is not read any more. */
static int last_use(const struct ops_chain *p, int i)
{
    int last = i;
    for (int s = i + 1; s < p->count; s++)
        for (int k = 0; k < 2; k++)
            if (p->step[s].operand[k] == SAC_CHAIN_INPUTS + i)
                last = s;
    return last;
}

/* Where each step finds its operands; false: more results are waiting than can be kept. */
static bool keep_results(struct ops_chain *p)
{
    int place[SAC_CHAIN_STEPS], until[OPS_CHAIN_KEPT] = {0};
    for (int i = 0; i < p->count; i++) {
        struct ops_chain_step *s = &p->step[i];
        for (int k = 0; k < 2; k++) {
            const int result = s->operand[k] - SAC_CHAIN_INPUTS;
            s->from[k] = result < 0        ? s->operand[k]
                         : result == i - 1 ? OPS_CHAIN_LAST
                                           : SAC_CHAIN_INPUTS + place[result];
        }
        const int last = last_use(p, i);
        s->keep = -1;
        for (int k = 0; k < OPS_CHAIN_KEPT && last > i + 1 && s->keep < 0; k++)
            if (until[k] <= i)
                s->keep = k;
        if (last > i + 1 && s->keep < 0)
            return false;
        place[i] = s->keep;
        if (s->keep >= 0)
            until[s->keep] = last;
    }
    return true;
}

/* Bits of the operands whose groups of n are no vectors. */
static uint32_t loose_of(const struct ops_view *v, int operands, int n)
{
    uint32_t loose = 0;
    for (int k = 0; k < operands; k++)
        if (v->step[k][v->rank - 1] != 0 && !ops_view_is_vectors(v, k, n))
            loose |= 1u << k;
    return loose;
}

/* Groups of n of a dense output whatever its dimensions: vectors of what lies as it does, number by
 * number of what is broadcast over it. */
static bool spread_groups(struct ops_chain *p, int n)
{
    const int64_t    groups[] = {p->view.count / n}, none[] = {0};
    struct ops_shape s;
    if (p->placed & 1 || p->view.count % n)
        return false;
    p->spread = true;
    p->stills = p->loose = 0;
    for (int k = 1; k <= p->inputs; k++)
        if (ops_view_stands_still(&p->view, k))
            p->stills |= 1u << k;
        else if (p->placed >> k & 1)
            p->loose |= 1u << k;
    ops_shape_init(&s, 1, groups);
    for (int k = 0; k <= p->inputs; k++)
        ops_shape_add(&s, p->view.start[k], none);
    return ops_view_of(&s, 0, &p->groups);
}

/* How many numbers a thread has at once: as many as are vectors in all operands; else of a dense
 * output, which those of others may be spread over; else as many as there can be, which slices of
 * maps of odd widths then have number by number. */
static int take_groups(struct ops_chain *p)
{
    enum { STRICT = 2, MOST = 8 };
    static const int n[] = {8, 4, 8, 4, 1};
    const int        operands = p->inputs + 1, inner = p->view.rank - 1;
    for (int k = 0; k < operands; k++)
        p->stills |= p->view.step[k][inner] == 0 ? 1u << k : 0;
    for (size_t i = 0; i < SAC_COUNT(n) && !(p->stills & 1); i++) {
        if (i == STRICT && spread_groups(p, MOST))
            return MOST;
        p->loose = loose_of(&p->view, operands, n[i]);
        if ((i >= STRICT || !p->loose) && ops_view_groups(&p->view, operands, n[i], &p->groups))
            return n[i];
    }
    return 0;
}

/* Are the output and all inputs of which a group has more than one number float16? */
static bool are_halves(const struct ops_chain *p)
{
    for (int k = 0; k <= p->inputs; k++)
        if (p->dtype[k] != SAC_F16 && !(p->stills >> k & 1))
            return false;
    return true;
}

/* How a thread takes several numbers at once. */
static void set_groups(struct ops_chain *p)
{
    bool narrow = !p->view.wide;
    p->stills = p->loose = p->placed = 0;
    p->spread = false;
    for (int k = 0; k <= p->inputs; k++) {
        narrow &= ops_view_is_narrow(&p->view, k);
        p->placed |= ops_view_is_dense(&p->view, k) ? 0 : 1u << k;
    }
    p->each = narrow && keep_results(p) ? take_groups(p) : 0;
    p->halves = are_halves(p);
}

static sac_result chain_fill(struct sac_kernel_plan *plan, void *params)
{
    struct ops_chain *p = params;
    struct sac_chain  chain;
    struct ops_shape  s;
    bool              fits = ops_is_f16_or_f32(ops_out_type(plan, 0));
    sac_chain_read(plan->call->node, &chain);
    p->count = chain.count;
    for (int i = 0; i < chain.count; i++)
        p->step[i] = step_of(&chain.step[i]);
    p->inputs = plan->call->in_count;
    p->dtype[0] = ops_out_type(plan, 0);
    ops_shape_over_out(&s, plan);
    for (int k = 0; k < p->inputs; k++) {
        p->dtype[k + 1] = ops_in_type(plan, k);
        fits &= ops_is_f16_or_f32(p->dtype[k + 1]);
        ops_shape_in(&s, plan, k);
    }
    if (!ops_view_of(&s, 0, &p->view))
        return ops_view_fail(plan);
    p->each = 0;
    if (fits)
        set_groups(p);
    return SAC_OK;
}

OPS_ROW(Chain, chain_layouts, chain_fill, ops_launch_elementwise_chain, ops_chain)
