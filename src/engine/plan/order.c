/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/plan/order.h"

#include "base/base.h"
#include "engine/kernel/layout.h"
#include "engine/plan/plan.h"

/* ---- do two slots share elements? ---- */

/* Where the elements of a part lie in its storage: of each of its pixels, one after the other from
 * `pixel` on, those from `channel` on. */
struct part {
    int64_t pixel, pixels, channel, channels;
};

static struct part part_of(const struct sac_value_slot *s)
{
    const size_t  bytes = sac_dtype_bytes(sac_layout_dtype(s->desc.dtype, s->layout));
    const int64_t offset = (int64_t)(s->offset / bytes);
    struct part   p = {.pixel = offset / s->pixel,
                       .pixels = 1,
                       .channel = offset % s->pixel,
                       .channels = s->desc.dims[1]};
    for (int d = 2; d < s->desc.rank; d++)
        p.pixels *= s->desc.dims[d];
    return p;
}

static bool overlap(int64_t a, int64_t a_count, int64_t b, int64_t b_count)
{
    return a < b + b_count && b < a + a_count;
}

static bool share_elements(const struct sac_value_slot *a, const struct sac_value_slot *b)
{
    if (a->storage != b->storage)
        return false;
    if (!a->pixel || a->pixel != b->pixel || a->sample != b->sample || a->layout != b->layout)
        return true;
    const struct part p = part_of(a), q = part_of(b);
    return overlap(p.pixel, p.pixels, q.pixel, q.pixels) &&
           overlap(p.channel, p.channels, q.channel, q.channels);
}

/* ---- does one step wait for another? ---- */

/* Slot k of a step, counted over inputs, outputs and scratch; NULL: left out. */
static const struct sac_value_slot *slot_of(const struct sac_plan *plan,
                                            const struct sac_step *step, int k)
{
    const int count = step->in_count + step->out_count;
    const int slot = k < count ? step->slots[k] : step->scratch;
    return slot >= 0 && plan->slots[slot].storage >= 0 ? &plan->slots[slot] : NULL;
}

static bool waits_for(const struct sac_plan *plan, const struct sac_step *later,
                      const struct sac_step *earlier)
{
    for (int i = 0; i <= later->in_count + later->out_count; i++) {
        const struct sac_value_slot *a = slot_of(plan, later, i);
        if (!a || plan->storages[a->storage].place == SAC_PLACE_CONSTANT)
            continue;
        /* of two that read, neither waits */
        for (int k = i < later->in_count ? earlier->in_count : 0;
             k <= earlier->in_count + earlier->out_count; k++) {
            const struct sac_value_slot *b = slot_of(plan, earlier, k);
            if (b && share_elements(a, b))
                return true;
        }
    }
    return false;
}

/* ---- all of them ---- */

enum { STEPS_MAX = 8192 }; /* 16 MB of bits */

static bool bit(const uint64_t *row, size_t i)
{
    return row[i / 64] >> i % 64 & 1;
}

static void set_bit(uint64_t *row, size_t i)
{
    row[i / 64] |= (uint64_t)1 << i % 64;
}

/* From the nearest step backwards: those that one of them waits for are known by then. */
static void order_step(const struct sac_plan *plan, struct sac_order *o, size_t i)
{
    uint64_t *before = o->before + i * o->words, *waits = o->waits + i * o->words;
    for (size_t j = i; j-- > 0;) {
        if (bit(before, j) || !waits_for(plan, &plan->steps[i], &plan->steps[j]))
            continue;
        set_bit(waits, j);
        set_bit(before, j);
        for (size_t w = 0; w < o->words; w++)
            before[w] |= o->before[j * o->words + w];
    }
}

bool sac_order_make(const struct sac_plan *plan, struct sac_order *out)
{
    const size_t     count = plan->step_count, words = (count + 63) / 64;
    struct sac_order o = {.count = count, .words = words};
    if (count == 0 || count > STEPS_MAX)
        return false;
    o.before = sac_calloc(count * words, sizeof *o.before);
    o.waits = sac_calloc(count * words, sizeof *o.waits);
    if (!o.before || !o.waits) {
        sac_order_free(&o);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        order_step(plan, &o, i);
    *out = o;
    return true;
}

void sac_order_free(struct sac_order *o)
{
    sac_free(o->before);
    sac_free(o->waits);
    *o = (struct sac_order){0};
}

bool sac_order_before(const struct sac_order *o, size_t a, size_t b)
{
    return bit(o->before + b * o->words, a);
}

int sac_order_waits(const struct sac_order *o, size_t i, int *out)
{
    int count = 0;
    for (size_t j = 0; j < i; j++)
        if (bit(o->waits + i * o->words, j))
            out[count++] = (int)j;
    return count;
}

bool sac_order_is_chain(const struct sac_order *o)
{
    for (size_t i = 1; i < o->count; i++)
        if (!bit(o->waits + i * o->words, i - 1))
            return false;
    return true;
}
