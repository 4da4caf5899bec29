/* SPDX-License-Identifier: Apache-2.0 */
/* Where and IsNaN, in plain layout: loops that the compiler turns into vectors, once for each way
 * in which an operand goes along (element by element, or one for the whole run). */
#include <math.h>
#include <stdio.h>

#include "engine/cpu/cpu.h"
#include "engine/ops/util.h"

enum { CUT = 8192 }; /* elements of a run that make a unit */

/* ---- IsNaN ---- */

struct isnan_state {
    struct sac_units cuts;
    int64_t          count;
};

static struct sac_kernel_offer isnan_supports(struct sac_device                *dev,
                                              const struct sac_kernel_question *q)
{
    struct sac_kernel_offer offer = sac_kernel_take(q);
    (void)dev;
    if (q->call->in[0].dtype != SAC_F32)
        return sac_kernel_refuse("not float32");
    offer.in_layout[0] = SAC_LAYOUT_PLAIN;
    return offer;
}

static void isnan_work(const void *state, void *const *in, void *const *out, int64_t first,
                       int64_t end)
{
    const struct isnan_state *s = state;
    const float              *x = in[0];
    uint8_t                  *y = out[0];
    for (int64_t i = first * CUT; i < SAC_MIN(end * CUT, s->count); i++)
        y[i] = (uint8_t)(isnan(x[i]) != 0);
}

static sac_result isnan_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    struct isnan_state *s = sac_new(struct isnan_state);
    if (!s)
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    s->count = sac_operand_elements(&plan->call->in[0]);
    sac_units_init(&s->cuts, dev, (s->count + CUT - 1) / CUT, s->count / 8, isnan_work);
    snprintf(plan->implementation, sizeof plan->implementation, "loop");
    plan->state = s;
    return SAC_OK;
}

const struct sac_kernel sac_cpu_IsNaN = {SAC_OP_IsNaN, isnan_supports, isnan_prepare, sac_units_run,
                                         sac_free};

/* ---- Where ---- */

enum { CONDITION, YES, NO, RESULT };
struct where_state {
    struct sac_units runs; /* cut, in the order of the walk's outer dimensions */
    struct sac_walk  walk; /* of the three inputs and the output, simplified */
    int64_t          cuts; /* of a run */
    size_t           bytes;
};

static struct sac_kernel_offer where_supports(struct sac_device                *dev,
                                              const struct sac_kernel_question *q)
{
    struct sac_kernel_offer offer = sac_kernel_take(q);
    (void)dev;
    memset(offer.in_layout, 0, sizeof offer.in_layout);
    return offer;
}

#define PICK_EACH(c_step, y_step, n_step) \
    for (int64_t i = 0; i < count; i++)   \
    to[i] = c[i * (c_step)] ? yes[i * (y_step)] : no[i * (n_step)]

#define PICK(type)                                                                              \
    {                                                                                           \
        const type *yes = (const type *)in[YES] + at[YES], *no = (const type *)in[NO] + at[NO]; \
        type       *to = (type *)out[0] + at[RESULT];                                           \
        if (c_step == 1 && y_step == 1 && n_step == 1)                                          \
            PICK_EACH(1, 1, 1);                                                                 \
        else if (c_step == 1 && y_step == 0 && n_step == 1)                                     \
            PICK_EACH(1, 0, 1);                                                                 \
        else if (c_step == 1 && y_step == 1 && n_step == 0)                                     \
            PICK_EACH(1, 1, 0);                                                                 \
        else                                                                                    \
            PICK_EACH(c_step, y_step, n_step);                                                  \
        break;                                                                                  \
    }

static void where_run_part(const struct where_state *s, void *const *in, void *const *out,
                           const int64_t *at, int64_t count)
{
    const struct sac_walk *w = &s->walk;
    const int64_t          c_step = w->step[CONDITION], y_step = w->step[YES], n_step = w->step[NO];
    const uint8_t         *c = (const uint8_t *)in[CONDITION] + at[CONDITION];
    switch (s->bytes) {
    case 1: PICK(uint8_t)
    case 2: PICK(uint16_t)
    case 4: PICK(uint32_t)
    default: PICK(uint64_t)
    }
}

static void where_work(const void *state, void *const *in, void *const *out, int64_t first,
                       int64_t end)
{
    const struct where_state *s = state;
    const struct sac_walk    *w = &s->walk;
    for (int64_t unit = first; unit < end; unit++) {
        const int64_t begin = unit % s->cuts * CUT;
        int64_t       rest = unit / s->cuts, at[RESULT + 1];
        for (int k = 0; k <= RESULT; k++)
            at[k] = begin * w->step[k];
        for (int d = w->rank - 2; d >= 0; rest /= w->dims[d--])
            for (int k = 0; k <= RESULT; k++)
                at[k] += rest % w->dims[d] * w->steps[k][d];
        where_run_part(s, in, out, at, SAC_MIN(w->run - begin, (int64_t)CUT));
    }
}

static sac_result where_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_operand *out = &c->out[0];
    struct where_state       *s = sac_new(struct where_state);
    const int64_t             elements = sac_operand_elements(out);
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    s->bytes = sac_dtype_bytes(out->dtype);
    sac_walk_init(&s->walk, out->rank, out->dims);
    for (int i = 0; i < 3; i++)
        sac_walk_operand(&s->walk, &c->in[i]);
    sac_walk_operand(&s->walk, out);
    sac_walk_start(&s->walk);
    s->cuts = (s->walk.run + CUT - 1) / CUT;
    sac_units_init(&s->runs, dev, s->walk.run ? elements / s->walk.run * s->cuts : 0, elements / 4,
                   where_work);
    snprintf(plan->implementation, sizeof plan->implementation, "loop");
    plan->state = s;
    return SAC_OK;
}

const struct sac_kernel sac_cpu_Where = {SAC_OP_Where, where_supports, where_prepare, sac_units_run,
                                         sac_free};
