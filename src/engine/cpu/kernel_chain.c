/* SPDX-License-Identifier: Apache-2.0 */
/* Chain, and single steps that are broadcast in any way: some hundred numbers at a time go through
 * all steps while they are in the L1 cache. Inputs that lie as the output are read in place, others
 * are gathered first. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/cpu/chain.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/map.h"
#include "engine/cpu/moves.h"
#include "engine/ops/chain.h"
#include "engine/ops/util.h"

enum { BLOCK = 256, INPUTS = SAC_CHAIN_INPUTS };

struct chain_state {
    struct sac_units units;
    struct sac_chain chain;
    int64_t          count;
    int              inputs, rank; /* dims outermost first, in the order in which the output lies */
    int64_t          dims[SAC_RANK_MAX], step[INPUTS][SAC_RANK_MAX];
    bool             dense[INPUTS];
};

struct sac_kernel_offer sac_cpu_chain_supports(struct sac_device                *dev,
                                               const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    struct sac_chain          chain;
    const struct sac_operand *y = &q->call->out[0];
    bool                      last = false;
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2 || !sac_call_is_float(q->call) ||
        !sac_chain_of(q->call->node, &chain))
        return sac_kernel_refuse("not float32, more than two inputs, or no AVX2");
    for (int i = 0; i < q->call->in_count; i++)
        last |= q->in_layout[i] == SAC_LAYOUT_CHANNELS_LAST &&
                sac_operand_same_dims(&q->call->in[i], y);
    const enum sac_layout layout = last ? SAC_LAYOUT_CHANNELS_LAST : SAC_LAYOUT_PLAIN;
    for (int i = 0; i < q->call->in_count; i++)
        offer.in_layout[i] = sac_operand_same_dims(&q->call->in[i], y) ? layout : SAC_LAYOUT_PLAIN;
    offer.out_layout[0] = layout;
    return offer;
}

/* ---- the index space ---- */

/* Drops dims of one and joins neighbours that lie as one in all inputs. */
static void simplify(struct chain_state *s)
{
    int rank = 0;
    for (int d = 0; d < s->rank; d++) {
        bool joins = rank > 0;
        if (s->dims[d] == 1)
            continue;
        for (int k = 0; joins && k < s->inputs; k++)
            joins = s->step[k][rank - 1] == s->step[k][d] * s->dims[d];
        rank += !joins;
        s->dims[rank - 1] = joins ? s->dims[rank - 1] * s->dims[d] : s->dims[d];
        for (int k = 0; k < s->inputs; k++)
            s->step[k][rank - 1] = s->step[k][d];
    }
    s->rank = rank;
}

static bool is_dense(const struct chain_state *s, int k)
{
    int64_t step = 1;
    for (int d = s->rank - 1; d >= 0; d--) {
        if (s->step[k][d] != step)
            return false;
        step *= s->dims[d];
    }
    return true;
}

static void set_space(struct chain_state *s, const struct sac_kernel_plan *plan)
{
    const struct sac_operand *y = &plan->call->out[0];
    const bool                last = plan->out_layout[0] == SAC_LAYOUT_CHANNELS_LAST;
    s->rank = y->rank;
    s->inputs = plan->call->in_count;
    for (int d = 0; d < y->rank; d++) {
        const int from = !last || d == 0 ? d : d == y->rank - 1 ? 1 : d + 1;
        s->dims[d] = y->dims[from];
        for (int k = 0; k < s->inputs; k++) {
            const struct sac_operand *x = &plan->call->in[k];
            const int                 at = from - (y->rank - x->rank);
            int64_t                   own[SAC_RANK_MAX];
            sac_input_strides(plan, k, own);
            s->step[k][d] = at < 0 || x->dims[at] == 1 ? 0 : own[at];
        }
    }
    simplify(s);
    for (int k = 0; k < s->inputs; k++)
        s->dense[k] = is_dense(s, k);
}

/* Numbers `first` to first + count - 1 of an input, in the output's order. */
static void gather(const struct chain_state *s, int k, const float *x, int64_t first, int count,
                   float *to)
{
    const int inner = s->rank - 1;
    for (int done = 0; done < count;) {
        int64_t rest = first + done, at = 0;
        for (int d = inner; d >= 0; d--) {
            at += rest % s->dims[d] * s->step[k][d];
            rest /= s->dims[d];
        }
        const int64_t run = SAC_MIN(count - done, s->dims[inner] - (first + done) % s->dims[inner]);
        const int64_t step = s->step[k][inner];
        if (step == 1)
            memcpy(to + done, x + at, (size_t)run * sizeof *to);
        else
            for (int64_t i = 0; i < run; i++)
                to[done + i] = x[at + i * step];
        done += (int)run;
    }
}

/* ---- the steps ---- */

static bool binary_of(int fn, enum sac_binary *out)
{
    if (fn < SAC_CHAIN_ADD || fn > SAC_CHAIN_DIV)
        return false;
    *out = fn == SAC_CHAIN_ADD   ? SAC_BINARY_ADD
           : fn == SAC_CHAIN_SUB ? SAC_BINARY_SUB
           : fn == SAC_CHAIN_MUL ? SAC_BINARY_MUL
                                 : SAC_BINARY_DIV;
    return true;
}

static bool unary_of(int fn, enum sac_unary *out)
{
    static const enum sac_unary of[] = {[SAC_CHAIN_ABS - SAC_CHAIN_ABS] = SAC_UNARY_ABS,
                                        [SAC_CHAIN_ERF - SAC_CHAIN_ABS] = SAC_UNARY_ERF,
                                        [SAC_CHAIN_EXP - SAC_CHAIN_ABS] = SAC_UNARY_EXP,
                                        [SAC_CHAIN_LOG - SAC_CHAIN_ABS] = SAC_UNARY_LOG,
                                        [SAC_CHAIN_NEG - SAC_CHAIN_ABS] = SAC_UNARY_NEG,
                                        [SAC_CHAIN_RECIPROCAL - SAC_CHAIN_ABS] =
                                            SAC_UNARY_RECIPROCAL,
                                        [SAC_CHAIN_SQRT - SAC_CHAIN_ABS] = SAC_UNARY_SQRT};
    if (fn < SAC_CHAIN_ABS || fn > SAC_CHAIN_SQRT)
        return false;
    *out = of[fn - SAC_CHAIN_ABS];
    return true;
}

static void apply(const struct sac_chain_step *s, const float *a, const float *b, float *y,
                  int count)
{
    const struct sac_activation    act = {(enum sac_activation_kind)s->fn, s->alpha, s->beta};
    const struct sac_unary_numbers none = {0, 0};
    enum sac_binary                two;
    enum sac_unary                 one;
    if (binary_of(s->fn, &two))
        SAC_SIMD_PICK(sac_map_binary)(two, a, b, 0, y, count);
    else if (unary_of(s->fn, &one))
        SAC_SIMD_PICK(sac_map_unary)(one, &none, a, y, count);
    else if (s->fn < SAC_ACT_COUNT)
        SAC_SIMD_PICK(sac_map_activate)(&act, a, y, count);
    else
        for (int i = 0; i < count; i++)
            y[i] = sac_chain_apply(s, a[i], b ? b[i] : 0);
}

/* An operand of a step: where it is, or the step's number as often as needed. */
static const float *operand(const struct sac_chain_step *s, int i, const float *const *v,
                            float *room, int count)
{
    if (s->operand[i] >= 0)
        return v[s->operand[i]];
    if (i == 1 && !sac_chain_of_two(s->fn))
        return NULL;
    for (int k = 0; k < count; k++)
        room[k] = s->alpha;
    return room;
}

static void chain_block(const struct chain_state *s, void *const *in, float *y, int64_t first,
                        int count)
{
    float        room[INPUTS + SAC_CHAIN_STEPS][BLOCK], number[BLOCK];
    const float *v[INPUTS + SAC_CHAIN_STEPS];
    for (int k = 0; k < s->inputs; k++) {
        v[k] = s->dense[k] ? (const float *)in[k] + first : room[k];
        if (!s->dense[k])
            gather(s, k, in[k], first, count, room[k]);
    }
    for (int i = 0; i < s->chain.count; i++) {
        const struct sac_chain_step *step = &s->chain.step[i];
        float                       *to = i == s->chain.count - 1 ? y + first : room[INPUTS + i];
        const float                 *a = operand(step, 0, v, number, count),
                    *b = operand(step, 1, v, number, count);
        apply(step, a, b, to, count);
        v[INPUTS + i] = to;
    }
}

static void chain_work(const void *state, void *const *in, void *const *out, int64_t first,
                       int64_t end)
{
    const struct chain_state *s = state;
    for (int64_t u = first; u < end; u++)
        chain_block(s, in, out[0], u * BLOCK, (int)SAC_MIN(BLOCK, s->count - u * BLOCK));
}

sac_result sac_cpu_chain_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    struct chain_state *s = sac_new(struct chain_state);
    if (!s)
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    sac_chain_of(plan->call->node, &s->chain);
    s->count = sac_operand_elements(&plan->call->out[0]);
    set_space(s, plan);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    sac_units_init(&s->units, dev, (s->count + BLOCK - 1) / BLOCK, s->count * s->chain.count / 8,
                   chain_work);
    plan->state = s;
    return SAC_OK;
}

#define CHAIN(op)                                                                \
    const struct sac_kernel sac_cpu_##op = {SAC_OP_##op, sac_cpu_chain_supports, \
                                            sac_cpu_chain_prepare, sac_units_run, sac_free};
CHAIN(Chain)
CHAIN(Max)
CHAIN(Min)
