/* SPDX-License-Identifier: Apache-2.0 */
/* FusedRotary: one line after the other, each read where a view has it. */
#include <stdio.h>
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/cpu/map.h"
#include "engine/ops/reads.h"

enum { X, COSINE, SINE, INPUTS };

struct rotary_state {
    struct sac_units        units;
    struct sac_fused_rotary r;
    int64_t                 step[INPUTS][SAC_RANK_MAX]; /* from line to line */
};

static struct sac_kernel_offer rotary_supports(struct sac_device                *dev,
                                               const struct sac_kernel_question *q)
{
    struct sac_kernel_offer offer = sac_kernel_take(q);
    struct sac_fused_rotary r;
    (void)dev;
    if (sac_fused_rotary_read(q->call, &r) != SAC_OK || sac_cpu_level() < SAC_CPU_AVX2 ||
        sac_operand_elements(&q->call->out[0]) == 0)
        return sac_kernel_refuse("empty, or no AVX2");
    if (r.step[r.rank - 1] != 1)
        return sac_kernel_refuse("a head's numbers are not neighbours");
    for (int i = 0; i < INPUTS; i++)
        offer.in_layout[i] = SAC_LAYOUT_PLAIN;
    return offer;
}

/* A table's steps along the dims before the last, 0 where it is broadcast. */
static void table_steps(const struct sac_operand *o, const struct sac_fused_rotary *r,
                        int64_t *step)
{
    int64_t own[SAC_RANK_MAX];
    sac_dense_strides(o->rank, o->dims, own);
    for (int d = 0; d < r->rank; d++) {
        const int at = d - (r->rank - o->rank);
        step[d] = at < 0 || o->dims[at] == 1 ? 0 : own[at];
    }
}

static void rotary_work(const void *state, void *const *in, void *const *out, int64_t first,
                        int64_t end)
{
    const struct rotary_state     *s = state;
    const struct sac_fused_rotary *r = &s->r;
    for (int64_t line = first; line < end; line++) {
        int64_t at[INPUTS] = {r->offset}, rest = line;
        for (int d = r->rank - 2; d >= 0; d--) {
            const int64_t index = rest % r->dims[d];
            rest /= r->dims[d];
            for (int i = 0; i < INPUTS; i++)
                at[i] += index * s->step[i][d];
        }
        SAC_SIMD_PICK(sac_map_rotate)
        ((const float *)in[X] + at[X], (const float *)in[COSINE] + at[COSINE],
         (const float *)in[SINE] + at[SINE], r->block / 2, (float *)out[0] + line * r->size,
         r->size);
    }
}

static sac_result rotary_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct rotary_state      *s = sac_new(struct rotary_state);
    if (!s || sac_fused_rotary_read(c, &s->r) != SAC_OK) {
        sac_free(s);
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    }
    memcpy(s->step[X], s->r.step, sizeof s->step[X]);
    table_steps(&c->in[COSINE], &s->r, s->step[COSINE]);
    table_steps(&c->in[SINE], &s->r, s->step[SINE]);
    const int64_t count = sac_operand_elements(&c->out[0]);
    sac_units_init(&s->units, dev, count / s->r.size, count / 4, rotary_work);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

const struct sac_kernel sac_cpu_FusedRotary = {SAC_OP_FusedRotary, rotary_supports, rotary_prepare,
                                               sac_units_run, sac_free};
