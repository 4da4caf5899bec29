/* SPDX-License-Identifier: Apache-2.0 */
#include "climb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what was told ---- */

static const struct climb_point *find_told(const struct climb *c, const int *at)
{
    for (size_t i = 0; i < c->told_count; i++)
        if (memcmp(c->told[i].at, at, (size_t)c->count * sizeof *at) == 0)
            return &c->told[i];
    return NULL;
}

static bool keep_told(struct climb *c, const struct climb_point *point)
{
    if (c->told_count == c->told_capacity) {
        const size_t        capacity = c->told_capacity ? 2 * c->told_capacity : 32;
        struct climb_point *told = realloc(c->told, capacity * sizeof *told);
        if (!told)
            return false;
        c->told = told;
        c->told_capacity = capacity;
    }
    c->told[c->told_count++] = *point;
    return true;
}

/* ---- the way uphill ---- */

static int first_step(const struct climb_knob *knob)
{
    return knob->count >= 8 ? knob->count / 4 : 1;
}

static void begin_knob(struct climb *c, int knob)
{
    c->knob = knob;
    c->way = 1;
    c->step = knob < c->count ? first_step(&c->knobs[knob]) : 0;
}

/* A generator of Marsaglia's xorshift family (Vigna, 2016): the same points on every machine. */
static uint64_t draw(struct climb *c)
{
    c->random ^= c->random >> 12;
    c->random ^= c->random << 25;
    c->random ^= c->random >> 27;
    return (c->random * UINT64_C(0x2545F4914F6CDD1D)) >> 33;
}

/* The best point with about two knobs elsewhere. */
static void begin_elsewhere(struct climb *c)
{
    memcpy(c->next.at, c->best, sizeof c->best);
    for (int k = 0; k < c->count; k++)
        if (draw(c) % (uint64_t)c->count < 2)
            c->next.at[k] = (int)(draw(c) % (uint64_t)c->knobs[k].count);
    c->begun = false;
}

static bool is_better(const struct climb *c, double value, double than)
{
    return value > than + (isfinite(than) ? c->params.margin * fabs(than) : 0);
}

/* The other way, then half the step, then the next knob. */
static void step_failed(struct climb *c)
{
    if (c->way == 1)
        c->way = -1;
    else if (c->step > 1) {
        c->step /= 2;
        c->way = 1;
    } else
        begin_knob(c, c->knob + 1);
}

static void take_value(struct climb *c, double value)
{
    const bool first = !c->begun;
    c->next.value = value;
    if (first || is_better(c, value, c->here.value)) {
        c->here = c->next;
        c->begun = true;
        if (first) {
            c->moved = false;
            begin_knob(c, 0);
        } else {
            c->moved = true;
            c->step *= 2;
        }
    } else
        step_failed(c);
}

/* The point that the present step leads to; false: it leads outside. A step past the end is cut
 * to it, so that the end is reached. */
static bool step_to(struct climb *c)
{
    const int last = c->knobs[c->knob].count - 1, from = c->here.at[c->knob];
    int       to = from + c->way * c->step;
    to = to < 0 ? 0 : to > last ? last : to;
    c->next = c->here;
    c->next.at[c->knob] = to;
    return to != from;
}

/* c->next becomes the point of the next try; false: all were made. */
static bool find_next(struct climb *c)
{
    while (c->begun) {
        if (c->knob < c->count) {
            if (step_to(c))
                return true;
            step_failed(c);
        } else if (c->moved) {
            c->moved = false;
            begin_knob(c, 0);
        } else if (c->restart++ < c->params.restarts)
            begin_elsewhere(c);
        else
            return false;
    }
    return true;
}

/* ---- for those who measure ---- */

void climb_init(struct climb *c, const struct climb_knob *knobs, int count,
                const struct climb_params *params)
{
    *c = (struct climb){.knobs = knobs, .count = count, .params = *params};
    c->best_value = -INFINITY;
    c->random = params->seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    for (int k = 0; k < count; k++)
        c->next.at[k] = c->best[k] = knobs[k].start;
}

void climb_finish(struct climb *c)
{
    free(c->told);
    *c = (struct climb){0};
}

bool climb_ask(struct climb *c, int *point)
{
    while (!c->asked) {
        if (!find_next(c))
            return false;
        const struct climb_point *told = find_told(c, c->next.at);
        if (told)
            take_value(c, told->value);
        else
            c->asked = true;
    }
    memcpy(point, c->next.at, (size_t)c->count * sizeof *point);
    return true;
}

bool climb_tell(struct climb *c, double value)
{
    c->asked = false;
    if (c->told_count == 0 || is_better(c, value, c->best_value)) {
        c->best_value = value;
        memcpy(c->best, c->next.at, sizeof c->best);
    }
    take_value(c, value);
    /* take_value has left next as it was */
    return keep_told(c, &c->next);
}
