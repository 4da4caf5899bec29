/* SPDX-License-Identifier: Apache-2.0 */
/* What float16 costs a step beyond its range: a difference of large numbers, a norm of numbers far
 * from zero, the exponential of a large one make much of the little that rounding takes off. So
 * each step is done again with one input rounded, and its results are compared. Where that loses
 * too much, so it does in the steps before that hand their own errors on: a square that is
 * subtracted needs what it is the square of.
 *
 * Products and convolutions are left out: in TF32, which is what they would be kept in, they round
 * their inputs as much. So are places in maps, which kernels read as they lie. */
#include <math.h>
#include <string.h>

#include "engine/model/ranges.h"
#include "engine/ops/quant.h"

enum { ALIGN = 64 };

/* Of one input of a step, by value ids: the share of its largest number by which the output
 * changes; less than 0: they are the same numbers. */
struct sac_rounding {
    int   in, out;
    float change;
};

/* To float16's 11 bits, or its least steps, and back, as if it had no end; masks' minus infinity
 * (watch.c) stays. */
static void round_numbers(const float *from, float *to, int64_t count)
{
    enum { LEAST_NORMAL = 0x38800000, MASK = 0x4cbebc20 };
    for (int64_t i = 0; i < count; i++) {
        int32_t bits, size;
        memcpy(&bits, from + i, sizeof bits);
        size = bits & 0x7fffffff;
        /* steps of 2^-24 are those of float32 between a half and one */
        const float   little = (from[i] + 0.75f) - 0.75f;
        const int32_t kept =
            (int32_t)(((uint32_t)bits + 0xfff + ((uint32_t)bits >> 13 & 1)) & 0xffffe000u);
        float rounded;
        memcpy(&rounded, &kept, sizeof rounded);
        to[i] = size > MASK ? from[i] : size < LEAST_NORMAL ? little : rounded;
    }
}

/* The largest change as a share of the largest number; 0 where it cannot be told. */
static float change_of(const float *want, const float *have, int64_t count)
{
    float most = 0, off = 0;
    bool  finite = true;
    for (int64_t i = 0; i < count; i++) {
        const float d = fabsf(have[i] - want[i]), size = fabsf(want[i]);
        finite &= d < INFINITY && size < INFINITY;
        most = SAC_MAX(most, size);
        off = SAC_MAX(off, d);
    }
    return finite && most > 0 ? off / most : 0;
}

/* The same of what a step makes 8 bits of, less the step that any rounding may cost. */
static float change_of_bytes(const struct sac_node *n, const struct sac_operand *want, void *have)
{
    const struct sac_operand again = {
        .dtype = want->dtype, .rank = want->rank, .present = true, .data = have};
    const double zero = sac_quant_read(n).y_zero;
    double       most = 0, off = 0;
    for (int64_t i = 0, count = sac_operand_elements(want); i < count; i++) {
        const double v = sac_operand_get(want, i),
                     step = want->dtype == SAC_F8 ? SAC_MAX(0x1p-9, fabs(v) / 8) : 1;
        most = SAC_MAX(most, fabs(v - zero));
        off = SAC_MAX(off, fabs(sac_operand_get(&again, i) - v) - step);
    }
    return most > 0 && off < INFINITY ? (float)(off / most) : 0;
}

static bool is_left_out(const struct sac_node *n, int input)
{
    switch (n->op->id) {
    case SAC_OP_Conv:
    case SAC_OP_ConvTranspose:
    case SAC_OP_DeformConv:
    case SAC_OP_Einsum:
    case SAC_OP_FusedConv:
    case SAC_OP_FusedMatMul:
    case SAC_OP_Gemm:
    case SAC_OP_HeadMatMul:
    case SAC_OP_LinearAttention:
    case SAC_OP_MatMul:
    case SAC_OP_QuantConv:
    case SAC_OP_QuantMatMul: return true;
    case SAC_OP_DeformAttention:
    case SAC_OP_GridSample:
    case SAC_OP_RoiAlign: return input == 1;
    default: return (n->op->flags & (SAC_OP_RANDOM | SAC_OP_CONTROL)) != 0;
    }
}

/* ---- once more ---- */

static bool is_number(const struct sac_plan *plan, int slot)
{
    const struct sac_value_slot *s = slot < 0 ? NULL : &plan->slots[slot];
    return s && s->value >= 0 && s->desc.dtype == SAC_F32 && !sac_layout_is_half(s->layout) &&
           (s->parent < 0 || s->pixel == 0) && sac_operand_elements(&s->desc) > 0;
}

/* Bytes of what the node computes in float32. */
static bool is_rounded(const struct sac_plan *plan, const struct sac_node *n, int slot)
{
    return sac_dtype_is_quantised(plan->slots[slot].desc.dtype) &&
           sac_quant_read(n).y_dtype != SAC_F32;
}

static bool is_constant(const struct sac_plan *plan, int slot)
{
    const int storage = plan->slots[slot].storage;
    return storage >= 0 && plan->storages[storage].place == SAC_PLACE_CONSTANT;
}

static size_t room_of(const struct sac_plan *plan, int slot)
{
    const size_t bytes = slot < 0 ? 0 : sac_operand_bytes(&plan->slots[slot].desc);
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Memory for one more of each of the step's outputs, and of its largest input; NULL: none. */
static char *make_room(struct sac_watch *w, const struct sac_plan *plan, const struct sac_step *s)
{
    size_t most = 0, all = 2 * ALIGN;
    for (int k = 0; k < s->in_count; k++)
        most = SAC_MAX(most, room_of(plan, s->slots[k]));
    for (int k = 0; k < s->out_count; k++)
        all += room_of(plan, s->slots[s->in_count + k]);
    if (all + most > w->room_bytes) {
        sac_free(w->room);
        w->room = sac_alloc(all + most);
        w->room_bytes = w->room ? all + most : 0;
    }
    return w->room ? (char *)(((uintptr_t)w->room + ALIGN - 1) / ALIGN * ALIGN) : NULL;
}

static void note(struct sac_watch *w, int in, int out, float change)
{
    if (w->rounding_count == w->rounding_room) {
        const int room = 2 * w->rounding_room + 64;
        void     *more = sac_realloc_array(w->roundings, (size_t)room, sizeof *w->roundings);
        if (!more)
            return;
        w->roundings = more;
        w->rounding_room = room;
    }
    w->roundings[w->rounding_count++] = (struct sac_rounding){in, out, change};
}

void sac_watch_trace(struct sac_watch *w)
{
    for (int i = w->rounding_count - 1; i >= 0; i--) {
        const struct sac_rounding *r = &w->roundings[i];
        struct sac_range          *in = &w->ranges[r->in], *out = &w->ranges[r->out];
        float                      share = 1;
        if (out->lost <= SAC_LOST)
            continue;
        if (r->change < 0)
            in->rounded = SAC_MAX(in->rounded, out->rounded);
        else if (out->rounded > 0)
            share = r->change / out->rounded;
        in->lost = SAC_MAX(in->lost, SAC_MIN(out->lost * share, 1e6f));
    }
    w->rounding_count = 0;
}

/* The step once more, with input k rounded. */
static void round_input(struct sac_watch *w, struct sac_plan *plan, const struct sac_step *s, int k,
                        char *room)
{
    const int         slot = s->slots[k];
    const int64_t     count = sac_operand_elements(&plan->slots[slot].desc);
    struct sac_range *r = &w->ranges[plan->slots[slot].value];
    void             *in = plan->address[slot], *was[SAC_OP_OUTPUTS_MAX];
    round_numbers(in, (float *)room, count);
    r->rounded = SAC_MAX(r->rounded, change_of(in, (float *)room, count));
    plan->address[slot] = room;
    room += room_of(plan, slot);
    for (int o = 0; o < s->out_count; o++) {
        const int out = s->slots[s->in_count + o];
        if (out < 0)
            continue;
        was[o] = plan->address[out];
        plan->address[out] = room;
        room += room_of(plan, out);
    }
    const bool again = sac_plan_run_step(plan, s) == SAC_OK;
    for (int o = 0; o < s->out_count; o++) {
        const int out = s->slots[s->in_count + o];
        if (out < 0)
            continue;
        if (again && is_number(plan, out)) {
            const float change =
                change_of(was[o], plan->address[out], sac_operand_elements(&plan->slots[out].desc));
            note(w, plan->slots[slot].value, plan->slots[out].value, change);
            r->lost = SAC_MAX(r->lost, change);
        } else if (again && is_rounded(plan, s->node, out)) {
            struct sac_operand want = plan->slots[out].desc;
            want.data = was[o];
            r->lost = SAC_MAX(r->lost, change_of_bytes(s->node, &want, plan->address[out]));
        }
        plan->address[out] = was[o];
    }
    plan->address[slot] = in;
}

void sac_watch_round(struct sac_watch *w, struct sac_plan *plan, const struct sac_step *s)
{
    if (s->kind == SAC_STEP_VIEW || s->kind == SAC_STEP_COPY || s->kind == SAC_STEP_CONVERT) {
        const int in = s->slots[0], out = s->slots[s->in_count];
        if (is_number(plan, in) && is_number(plan, out))
            note(w, plan->slots[in].value, plan->slots[out].value, -1);
        return;
    }
    for (int k = 0; k < s->in_count; k++) {
        char *room = NULL;
        if (is_number(plan, s->slots[k]) && !is_constant(plan, s->slots[k]) &&
            !is_left_out(s->node, k) && (room = make_room(w, plan, s)))
            round_input(w, plan, s, k, room);
    }
}
