/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "heads/heads.h"

/* A box that a broken model makes up (infinite, turned inside out) is no box. */
static bool is_box(const struct sac_detection *b)
{
    return b->x1 > b->x0 && b->y1 > b->y0 && fabsf(b->x0) < 1e6f && fabsf(b->y0) < 1e6f &&
           fabsf(b->x1) < 1e6f && fabsf(b->y1) < 1e6f && b->score <= 1e6f;
}

static bool is_wanted(const struct sac_gather *g, int class_id)
{
    bool wanted = !g->wanted;
    for (size_t i = 0; i < g->wanted_count && !wanted; i++)
        wanted = g->wanted[i] == class_id;
    return wanted;
}

/* Heads emit one prediction's classes in a row. One object has one class: the likeliest of those
 * asked for, else a van would be tracked as a car and as a truck. */
static bool is_same_place(const struct sac_detection *a, const struct sac_detection *b)
{
    return a->x0 == b->x0 && a->y0 == b->y0 && a->x1 == b->x1 && a->y1 == b->y1;
}

static void keep_likelier(struct sac_detection *kept, const struct sac_detection *other)
{
    if (other->score > kept->score ||
        (other->score == kept->score && other->class_id < kept->class_id))
        *kept = *other;
}

void sac_gather_box(void *user, const struct sac_detection *box)
{
    struct sac_gather *g = user;
    if (!is_wanted(g, box->class_id) || !(box->score >= g->score_min) || !is_box(box))
        return;
    struct sac_detection moved = {(box->x0 - g->map.offset_x) / g->map.scale_x,
                                  (box->y0 - g->map.offset_y) / g->map.scale_y,
                                  (box->x1 - g->map.offset_x) / g->map.scale_x,
                                  (box->y1 - g->map.offset_y) / g->map.scale_y,
                                  SAC_MIN(box->score, 1.0f),
                                  box->class_id};
    if (g->list->count && is_same_place(&g->list->items[g->list->count - 1], &moved))
        keep_likelier(&g->list->items[g->list->count - 1], &moved);
    else if (!sac_detections_push(g->list, &moved))
        g->out_of_memory = true;
}
