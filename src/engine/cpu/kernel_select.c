/* SPDX-License-Identifier: Apache-2.0 */
/* Where, Pow, and what asks and answers with a bool: IsNaN, comparisons, logic. In plain layout:
 * loops over runs that the compiler turns into vectors, once for each way in which an operand goes
 * along (element by element, or one for the whole run). */
#include <math.h>
#include <stdio.h>

#include "engine/cpu/map.h"
#include "engine/cpu/select.h"
#include "engine/ops/util.h"

enum {
    CUT = 8192,  /* elements of a run that make a unit */
    OPERANDS = 4 /* a Where's, and its output */
};

/* in: the numbers with which the run begins; step: 0 or 1, of each. */
typedef void run_loop(const void *const *in, const int64_t *step, void *out, int64_t count);

struct runs_state {
    struct sac_units runs; /* cut, in the order of the walk's outer dimensions */
    struct sac_walk  walk; /* of the inputs and the output, simplified */
    int64_t          cuts; /* of a run */
    int64_t          bytes[OPERANDS];
    run_loop        *loop;
};

/* ---- Where ---- */

enum { CONDITION, YES, NO };

#define PICK_EACH(c_step, y_step, n_step) \
    for (int64_t i = 0; i < count; i++)   \
    to[i] = c[i * (c_step)] ? yes[i * (y_step)] : no[i * (n_step)]

#define PICK(name, type)                                                                   \
    static void name(const void *const *in, const int64_t *step, void *out, int64_t count) \
    {                                                                                      \
        const uint8_t *c = in[CONDITION];                                                  \
        const type    *yes = in[YES], *no = in[NO];                                        \
        type          *to = out;                                                           \
        if (step[CONDITION] == 1 && step[YES] == 1 && step[NO] == 1)                       \
            PICK_EACH(1, 1, 1);                                                            \
        else if (step[CONDITION] == 1 && step[YES] == 0 && step[NO] == 1)                  \
            PICK_EACH(1, 0, 1);                                                            \
        else if (step[CONDITION] == 1 && step[YES] == 1 && step[NO] == 0)                  \
            PICK_EACH(1, 1, 0);                                                            \
        else                                                                               \
            PICK_EACH(step[CONDITION], step[YES], step[NO]);                               \
    }
PICK(pick_1, uint8_t)
PICK(pick_2, uint16_t)
PICK(pick_4, uint32_t)
PICK(pick_8, uint64_t)

/* ---- of one number ---- */

#define ONE(name, type, answer)                                                            \
    static void name(const void *const *in, const int64_t *step, void *out, int64_t count) \
    {                                                                                      \
        const type *x = in[0];                                                             \
        uint8_t    *y = out;                                                               \
        (void)step;                                                                        \
        for (int64_t i = 0; i < count; i++)                                                \
            y[i] = (uint8_t)(answer);                                                      \
    }
ONE(is_nan, float, isnan(x[i]) != 0)
ONE(is_false, uint8_t, x[i] == 0)

/* ---- of two ---- */

#define ASK_EACH(type, first, second, answer) \
    for (int64_t i = 0; i < count; i++) {     \
        const type a = first, b = second;     \
        y[i] = (uint8_t)(answer);             \
    }

/* A run of more than one goes along one of them at least. */
#define TWO(name, type, answer)                                                            \
    static void name(const void *const *in, const int64_t *step, void *out, int64_t count) \
    {                                                                                      \
        const type *va = in[0], *vb = in[1];                                               \
        const type  a0 = *va, b0 = *vb;                                                    \
        uint8_t    *y = out;                                                               \
        if (step[0] == 1 && step[1] == 1)                                                  \
            ASK_EACH(type, va[i], vb[i], answer)                                           \
        else if (step[0] == 1)                                                             \
            ASK_EACH(type, va[i], b0, answer)                                              \
        else                                                                               \
            ASK_EACH(type, a0, vb[i], answer)                                              \
    }
#define COMPARE(name, answer)        \
    TWO(name##_f32, float, answer)   \
    TWO(name##_i32, int32_t, answer) \
    TWO(name##_i64, int64_t, answer)
COMPARE(equal, a == b)
COMPARE(greater, a > b)
COMPARE(greater_or_equal, a >= b)
COMPARE(less, a < b)
COMPARE(less_or_equal, a <= b)
TWO(both, uint8_t, (a != 0) & (b != 0))
TWO(any, uint8_t, (a | b) != 0)
TWO(one_of_two, uint8_t, (a != 0) != (b != 0))

static void power(const void *const *in, const int64_t *step, void *out, int64_t count)
{
    SAC_SIMD_PICK(sac_map_power)(in[0], step[0], in[1], step[1], out, count);
}

/* ---- which ---- */

#define COMPARED(name)                                                         \
    {                                                                          \
        [SAC_F32] = name##_f32, [SAC_I32] = name##_i32, [SAC_I64] = name##_i64 \
    }
static const struct {
    enum sac_op_id id;
    run_loop      *of[SAC_DTYPE_COUNT]; /* inputs of that dtype */
} loops[] = {
    {SAC_OP_And, {[SAC_BOOL] = both}},
    {SAC_OP_Equal, COMPARED(equal)},
    {SAC_OP_Greater, COMPARED(greater)},
    {SAC_OP_GreaterOrEqual, COMPARED(greater_or_equal)},
    {SAC_OP_IsNaN, {[SAC_F32] = is_nan}},
    {SAC_OP_Less, COMPARED(less)},
    {SAC_OP_LessOrEqual, COMPARED(less_or_equal)},
    {SAC_OP_Not, {[SAC_BOOL] = is_false}},
    {SAC_OP_Or, {[SAC_BOOL] = any}},
    {SAC_OP_Pow, {[SAC_F32] = power}},
    {SAC_OP_Xor, {[SAC_BOOL] = one_of_two}},
};

static run_loop *loop_of(const struct sac_op_call *c)
{
    for (size_t i = 0; i < SAC_COUNT(loops); i++)
        if (loops[i].id == c->node->op->id)
            return loops[i].of[c->in[0].dtype];
    switch (sac_dtype_bytes(c->out[0].dtype)) {
    case 1: return pick_1;
    case 2: return pick_2;
    case 4: return pick_4;
    default: return pick_8;
    }
}

struct sac_kernel_offer sac_cpu_select_supports(struct sac_device                *dev,
                                                const struct sac_kernel_question *q)
{
    struct sac_kernel_offer offer = sac_kernel_take(q);
    (void)dev;
    if (q->call->node->op->id == SAC_OP_Pow &&
        (sac_cpu_level() < SAC_CPU_AVX2 || q->call->in[1].dtype != SAC_F32))
        return sac_kernel_refuse("its exponents are not float32, or no AVX2");
    memset(offer.in_layout, 0, sizeof offer.in_layout);
    return loop_of(q->call) ? offer : sac_kernel_refuse("inputs of another type");
}

/* ---- the kernel ---- */

static void select_work(const void *state, void *const *in, void *const *out, int64_t first,
                        int64_t end)
{
    const struct runs_state *s = state;
    const struct sac_walk   *w = &s->walk;
    const int                result = w->count - 1;
    for (int64_t unit = first; unit < end; unit++) {
        const int64_t begin = unit % s->cuts * CUT;
        int64_t       rest = unit / s->cuts, at[OPERANDS];
        const void   *from[OPERANDS];
        for (int k = 0; k <= result; k++)
            at[k] = begin * w->step[k];
        for (int d = w->rank - 2; d >= 0; rest /= w->dims[d--])
            for (int k = 0; k <= result; k++)
                at[k] += rest % w->dims[d] * w->steps[k][d];
        for (int k = 0; k < result; k++)
            from[k] = (const char *)in[k] + at[k] * s->bytes[k];
        s->loop(from, w->step, (char *)out[0] + at[result] * s->bytes[result],
                SAC_MIN(w->run - begin, (int64_t)CUT));
    }
}

sac_result sac_cpu_select_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_operand *out = &c->out[0];
    struct runs_state        *s = sac_new(struct runs_state);
    const int64_t             elements = sac_operand_elements(out);
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    s->loop = loop_of(c);
    sac_walk_init(&s->walk, out->rank, out->dims);
    for (int i = 0; i <= c->in_count; i++) {
        const struct sac_operand *o = i < c->in_count ? &c->in[i] : out;
        s->bytes[sac_walk_operand(&s->walk, o)] = (int64_t)sac_dtype_bytes(o->dtype);
    }
    sac_walk_start(&s->walk);
    s->cuts = (s->walk.run + CUT - 1) / CUT;
    sac_units_init(&s->runs, dev, s->walk.run ? elements / s->walk.run * s->cuts : 0, elements / 4,
                   select_work);
    snprintf(plan->implementation, sizeof plan->implementation, "loop");
    plan->state = s;
    return SAC_OK;
}

#define SELECT(op)                                                                \
    const struct sac_kernel sac_cpu_##op = {SAC_OP_##op, sac_cpu_select_supports, \
                                            sac_cpu_select_prepare, sac_units_run, sac_free};
SELECT(And)
SELECT(Equal)
SELECT(Greater)
SELECT(GreaterOrEqual)
SELECT(IsNaN)
SELECT(Less)
SELECT(LessOrEqual)
SELECT(Not)
SELECT(Or)
SELECT(Where)
SELECT(Xor)
