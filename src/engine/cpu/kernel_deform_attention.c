/* SPDX-License-Identifier: Apache-2.0 */
/* DeformAttention: what a head reads, four pixels a point, and by which weights is found once for
 * all of its numbers. */
#include <math.h>
#include <stdio.h>

#include "engine/cpu/cpu.h"
#include "engine/cpu/map.h"
#include "engine/ops/deform_attention.h"

enum { POINTS_MAX = 64 };

struct deform_state {
    struct sac_units            units;
    struct sac_deform_attention a;
};

/* The pixels that a head reads, and their weights. */
struct taps {
    int          count;
    const float *from[4 * POINTS_MAX];
    float        weight[4 * POINTS_MAX];
};

static struct sac_kernel_offer deform_supports(struct sac_device                *dev,
                                               const struct sac_kernel_question *q)
{
    struct sac_kernel_offer     offer = sac_kernel_take(q);
    struct sac_deform_attention a;
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2 || sac_operand_elements(&q->call->out[0]) == 0)
        return sac_kernel_refuse("empty, or no AVX2");
    if (sac_deform_attention_read(q->call, &a) != SAC_OK || a.points > POINTS_MAX)
        return sac_kernel_refuse("more than %d points", POINTS_MAX);
    for (int i = 0; i < q->call->in_count; i++)
        offer.in_layout[i] = SAC_LAYOUT_PLAIN;
    return offer;
}

/* Two neighbours along a side; of weight 0 where nothing lies there. */
struct pair {
    int64_t at[2];
    float   weight[2];
};

static struct pair pair_at(const struct sac_deform_attention *a, float place, int64_t side)
{
    const float x = ((a->gain * place + a->shift + 1) * (float)side - 1) / 2;
    if (!(x > -1 && x < (float)side)) /* beyond, or no number */
        return (struct pair){{0, 0}, {0, 0}};
    const int64_t at = (int64_t)floorf(x);
    const float   share = x - (float)at;
    return (struct pair){{at, at + 1}, {at < 0 ? 0 : 1 - share, at + 1 < side ? share : 0}};
}

/* v is the head's numbers of the level's first pixel. */
static void add_taps(const struct sac_deform_attention *a, const struct sac_deform_level *l,
                     const float *v, const float *place, float share, struct taps *t)
{
    const struct pair x = pair_at(a, place[0], l->width), y = pair_at(a, place[1], l->height);
    for (int k = 0; k < 4; k++) {
        const float area = y.weight[k / 2] * x.weight[k % 2];
        if (area == 0) /* what lies there may be infinite, or nothing, whatever its share */
            continue;
        t->weight[t->count] = share * area;
        t->from[t->count++] = v + (y.at[k / 2] * l->width + x.at[k % 2]) * a->heads * a->size;
    }
}

static void attend(const struct sac_deform_attention *a, const float *v, const float *places,
                   const float *w, float *y)
{
    struct taps t = {.count = 0};
    float       share[POINTS_MAX];
    if (a->softmax)
        SAC_SIMD_PICK(sac_map_softmax)(w, share, a->points, 1, 1);
    for (int i = 0; i < a->levels; i++) {
        const struct sac_deform_level *l = &a->level[i];
        for (int64_t p = l->first; p < l->first + l->points; p++)
            add_taps(a, l, v + l->start * a->heads * a->size, places + 2 * p,
                     a->softmax ? share[p] : w[p], &t);
    }
    SAC_SIMD_PICK(sac_map_weighted_sum)(t.count, t.from, t.weight, y, a->size);
}

/* A unit is a query's head. */
static void deform_work(const void *state, void *const *in, void *const *out, int64_t first,
                        int64_t end)
{
    const struct sac_deform_attention *a = &((const struct deform_state *)state)->a;
    for (int64_t u = first; u < end; u++) {
        const int64_t n = u / (a->queries * a->heads), head = u % a->heads;
        attend(a, (const float *)in[0] + (n * a->values * a->heads + head) * a->size,
               (const float *)in[1] + 2 * u * a->points, (const float *)in[2] + u * a->points,
               (float *)out[0] + u * a->size);
    }
}

static sac_result deform_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    struct deform_state *s = sac_new(struct deform_state);
    if (!s)
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    plan->state = s;
    const sac_result res = sac_deform_attention_read(plan->call, &s->a);
    if (res != SAC_OK)
        return res;
    const int64_t lines = s->a.batch * s->a.queries * s->a.heads;
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    sac_units_init(&s->units, dev, lines, lines * s->a.points * (20 + s->a.size / 4), deform_work);
    return SAC_OK;
}

const struct sac_kernel sac_cpu_DeformAttention = {SAC_OP_DeformAttention, deform_supports,
                                                   deform_prepare, sac_units_run, sac_free};
