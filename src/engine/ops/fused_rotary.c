/* SPDX-License-Identifier: Apache-2.0 */
/* FusedRotary, which engine/ops/fused.h defines: rotary position embeddings of heads that are read
 * where they lie. */
#include <string.h>

#include "engine/ops/reads.h"
#include "engine/ops/util.h"

enum { X, COSINE, SINE, INPUTS };

sac_result sac_fused_rotary_read(const struct sac_op_call *c, struct sac_fused_rotary *r)
{
    const struct sac_operand *x = &c->in[X];
    const int64_t            *entries;
    *r = (struct sac_fused_rotary){.rank = x->rank};
    if (sac_attr_ints(c->node, "x", &entries) > 0) {
        SAC_TRY(sac_head_view_read(c, "x", x, &r->x));
        r->rank = SAC_VIEW_RANK;
        memcpy(r->dims, r->x.dim, sizeof r->x.dim);
        memcpy(r->step, r->x.step, sizeof r->x.step);
        r->offset = r->x.offset;
    } else {
        SAC_CHECK(c, x->rank >= 1, "a number is no head");
        memcpy(r->dims, x->dims, sizeof r->dims);
        sac_dense_strides(x->rank, x->dims, r->step);
    }
    r->size = r->dims[r->rank - 1];
    r->block = sac_attr_int(c->node, "block", 0);
    SAC_CHECK(c, r->block >= 2 && r->block % 2 == 0 && r->size % r->block == 0,
              "heads of %lld numbers in blocks of %lld", (long long)r->size, (long long)r->block);
    return SAC_OK;
}

/* A table is broadcast over the heads, but has all of their numbers. */
static sac_result check_table(const struct sac_op_call *c, const struct sac_fused_rotary *r,
                              int input)
{
    const struct sac_operand *o = &c->in[input];
    int64_t                   sum[SAC_RANK_MAX];
    int                       rank = r->rank;
    memcpy(sum, r->dims, sizeof sum);
    SAC_CHECK(c,
              o->rank >= 1 && o->dims[o->rank - 1] == r->size &&
                  sac_broadcast_dims(&rank, sum, o->rank, o->dims) && rank == r->rank &&
                  memcmp(sum, r->dims, (size_t)rank * sizeof *sum) == 0,
              "input %d does not broadcast to the heads", input);
    return SAC_OK;
}

static sac_result fused_rotary_shape(struct sac_op_call *c)
{
    struct sac_fused_rotary r;
    for (int i = 0; i < INPUTS; i++)
        SAC_CHECK(c, sac_op_has(c, i) && c->in[i].dtype == SAC_F32, "input %d is not float32", i);
    SAC_TRY(sac_fused_rotary_read(c, &r));
    SAC_TRY(check_table(c, &r, COSINE));
    SAC_TRY(check_table(c, &r, SINE));
    return sac_shape_out(c, 0, SAC_F32, r.rank, r.dims);
}

static void turn(const struct sac_fused_rotary *r, const float *x, const float *cosine,
                 const float *sine, float *y)
{
    const int64_t half = r->block / 2, step = r->step[r->rank - 1];
    for (int64_t i = 0; i < r->size; i++) {
        const bool  first = i % r->block < half;
        const float other = first ? -x[(i + half) * step] : x[(i - half) * step];
        y[i] = x[i * step] * cosine[i] + other * sine[i];
    }
}

static sac_result fused_rotary_ref(struct sac_op_call *c)
{
    struct sac_fused_rotary r;
    SAC_TRY(sac_fused_rotary_read(c, &r));
    const int64_t lines = r.size ? sac_operand_elements(&c->out[0]) / r.size : 0;
    for (int64_t line = 0; line < lines; line++) {
        int64_t at[INPUTS] = {r.offset}, rest = line, table[INPUTS] = {0, r.size, r.size};
        for (int d = r.rank - 2; d >= 0; d--) {
            const int64_t index = rest % r.dims[d];
            rest /= r.dims[d];
            at[X] += index * r.step[d];
            for (int i = COSINE; i < INPUTS; i++) {
                const int own = d - (r.rank - c->in[i].rank);
                if (own < 0)
                    continue;
                at[i] += c->in[i].dims[own] == 1 ? 0 : index * table[i];
                table[i] *= c->in[i].dims[own];
            }
        }
        turn(&r, (const float *)c->in[X].data + at[X],
             (const float *)c->in[COSINE].data + at[COSINE],
             (const float *)c->in[SINE].data + at[SINE], (float *)c->out[0].data + line * r.size);
    }
    return SAC_OK;
}

const struct sac_op sac_row_FusedRotary = {SAC_FUSED_ROW(FusedRotary, 3, 3),
                                           SAC_TOLERANCE(1e-5f, 1e-5f), .shape = fused_rotary_shape,
                                           .ref = fused_rotary_ref};
