/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/passes/skew.h"

#include <string.h>

#include "base/base.h"

enum {
    DEPTH_MAX = 12,
    ENTRIES_MAX = 3,       /* of an open dim */
    NUMBERS_MAX = 1 << 22, /* a file must not say how long this takes */
    LARGER = 4             /* how much a skew's padding makes of x at most */
};

/* Where in x each number of a value comes from; -1: it is padding. */
struct places {
    int      rank;
    int64_t  dims[SAC_RANK_MAX], count;
    int64_t  room; /* for so many */
    int32_t *at;   /* [room] */
};

/* An open dim is what is left of `count` numbers. */
static bool set_dims(struct places *p, const struct sac_value *v, int64_t count)
{
    int open = -1;
    p->rank = v->rank;
    p->count = 1;
    for (int d = 0; d < v->rank; d++) {
        if (v->dims[d] == SAC_DIM_OPEN && open < 0) {
            open = d;
            continue;
        }
        p->dims[d] = v->dims[d];
        if (v->dims[d] < 1 || v->dims[d] > p->room / p->count)
            return false;
        p->count *= v->dims[d];
    }
    if (open >= 0) {
        p->dims[open] = count / p->count;
        p->count *= p->dims[open];
    }
    return p->count == count;
}

/* Dim d begins at first[d] and goes on in steps; outside of `from` is padding. */
static void crop(struct places *to, const struct places *from, const int64_t *first,
                 const int64_t *step)
{
    for (int64_t i = 0; i < to->count; i++) {
        int64_t rest = i, place = 0, stride = 1;
        for (int d = to->rank - 1; d >= 0; d--) {
            const int64_t at = first[d] + rest % to->dims[d] * step[d];
            rest /= to->dims[d];
            place = at < 0 || at >= from->dims[d] || place < 0 ? -1 : place + at * stride;
            stride *= from->dims[d];
        }
        to->at[i] = place < 0 ? -1 : from->at[place];
    }
}

/* Sets the dims of a result, of which those that are open are as before. */
static bool set_cropped(struct places *to, const struct places *from, const struct sac_value *y,
                        const int64_t *first, const int64_t *step)
{
    to->rank = from->rank;
    to->count = 1;
    for (int d = 0; d < to->rank; d++) {
        const bool open = y->dims[d] == SAC_DIM_OPEN;
        to->dims[d] = open ? from->dims[d] : y->dims[d];
        if ((open && (first[d] != 0 || step[d] != 1)) || to->dims[d] < 1 ||
            to->dims[d] > to->room / to->count)
            return false;
        to->count *= to->dims[d];
    }
    crop(to, from, first, step);
    return true;
}

static bool slice(struct places *to, const struct places *from, const struct sac_node *n)
{
    struct sac_slice_bounds b;
    if (!sac_slice_constants(n, from->rank, &b))
        return false;
    for (int d = 0; d < from->rank; d++) {
        b.start[d] += b.start[d] < 0 ? from->dims[d] : 0;
        if (b.step[d] < 1 || b.start[d] < 0)
            return false;
        if (n->outputs[0]->dims[d] == SAC_DIM_OPEN && b.end[d] < INT32_MAX)
            return false;
    }
    return set_cropped(to, from, n->outputs[0], b.start, b.step);
}

static bool pad(struct places *to, const struct places *from, const struct sac_node *n)
{
    int64_t pads[2 * SAC_RANK_MAX], first[SAC_RANK_MAX], step[SAC_RANK_MAX];
    if (!sac_zero_pads(n, from->rank, pads))
        return false;
    for (int d = 0; d < from->rank; d++) {
        first[d] = -pads[d];
        step[d] = 1;
        if (n->outputs[0]->dims[d] == SAC_DIM_OPEN && pads[from->rank + d] != 0)
            return false;
    }
    return set_cropped(to, from, n->outputs[0], first, step);
}

static bool is_step(const struct sac_node *n)
{
    return n && (sac_is(n, "Pad") || sac_is(n, "Slice") || sac_is_reshape(n)) && n->outputs[0] &&
           sac_node_input(n, 0);
}

/* The values between the first Pad's input, which is x, and y; returns their number, 0: there is no
 * Pad. */
static int find_chain(struct sac_value *y, struct sac_value *chain[DEPTH_MAX])
{
    int last = 0;
    for (int i = 0; i < DEPTH_MAX && y && y->rank > 0 && !y->data; i++) {
        chain[i] = y;
        if (!is_step(y->producer))
            break;
        last = sac_is(y->producer, "Pad") ? i + 1 : last;
        y = y->producer->inputs[0];
    }
    return last == DEPTH_MAX || !chain[last] || chain[last]->rank < 1 ? 0 : last;
}

/* How many numbers x has, each of whose open dims has so many entries; 0: too many. */
static int64_t numbers_of(const struct sac_value *x, int64_t entries)
{
    int64_t count = 1;
    for (int d = 0; d < x->rank; d++) {
        const int64_t dim = x->dims[d] == SAC_DIM_OPEN ? entries : x->dims[d];
        if (dim < 1 || dim > NUMBERS_MAX / count)
            return 0;
        count *= dim;
    }
    return count;
}

/* Runs the chain; *p: the places of y's numbers among `count` of x. */
static bool run_chain(struct sac_value *const *chain, int last, int64_t count, struct places *p,
                      struct places *room)
{
    if (count == 0 || !set_dims(p, chain[last], count))
        return false;
    for (int64_t i = 0; i < count; i++)
        p->at[i] = (int32_t)i;
    for (int i = last - 1; i >= 0; i--) {
        const struct sac_node *n = chain[i]->producer;
        if (sac_is_reshape(n)) {
            if (!set_dims(p, chain[i], p->count))
                return false;
            continue;
        }
        if (!(sac_is(n, "Pad") ? pad(room, p, n) : slice(room, p, n)))
            return false;
        const struct places swap = *p;
        *p = *room;
        *room = swap;
    }
    return true;
}

/* Are p places among `count` numbers, in lines of `numbers`, that are skewed? */
static bool is_skew(struct sac_skew *s, const struct places *p, int64_t numbers, int64_t count)
{
    const int64_t lines = p->dims[p->rank - 2], columns = p->dims[p->rank - 1],
                  all = p->count / columns, from = p->at[0];
    if (lines < 2 || from >= numbers || from < lines - 1 || from + columns > numbers ||
        count != all * numbers)
        return false;
    for (int64_t i = 0; i < all; i++)
        for (int64_t k = 0; k < columns; k++)
            if (p->at[i * columns + k] != i * numbers + from - i % lines + k)
                return false;
    s->lines = lines;
    s->columns = columns;
    s->numbers = numbers;
    s->from = from;
    return true;
}

/* What holds for two numbers of samples holds for all, as with shapes (ops/probe.c). */
static bool holds(struct sac_skew *s, struct sac_value *const *chain, int last, int32_t *at,
                  int64_t room)
{
    const struct sac_value *x = chain[last];
    int64_t                 from = -1;
    for (int64_t entries = 2; entries <= ENTRIES_MAX; entries++) {
        struct places p = {.room = room, .at = at}, other = {.room = room, .at = at + room};
        const int64_t count = numbers_of(x, entries);
        if (!run_chain(chain, last, count, &p, &other) ||
            !is_skew(s, &p, x->dims[x->rank - 1], count) || (from >= 0 && s->from != from))
            return false;
        from = s->from;
    }
    return true;
}

bool sac_skew_of(struct sac_skew *s, struct sac_value *y)
{
    struct sac_value *chain[DEPTH_MAX] = {NULL};
    const int         last = find_chain(y, chain);
    if (last == 0 || y->rank < 2 || chain[last]->dtype != SAC_F32)
        return false;
    s->x = chain[last];
    const int64_t room = SAC_MIN(LARGER * numbers_of(s->x, ENTRIES_MAX), NUMBERS_MAX);
    int32_t      *at = room ? sac_alloc(2 * (size_t)room * sizeof *at) : NULL;
    const bool    is = at && holds(s, chain, last, at, room);
    sac_free(at);
    return is;
}
