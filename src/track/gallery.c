/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "track/gallery.h"

/* Closer than this is the same view. */
static const float VIEW_DISTANCE = 0.15f;
/* A view forgets with this time constant: long enough to average out single bad crops. */
static const double FADE_S = 3.0;

void sac_gallery_init(struct sac_gallery *g, int dim, int views_max)
{
    *g = (struct sac_gallery){.dim = dim, .views_max = views_max, .free = -1};
}

void sac_gallery_finish(struct sac_gallery *g)
{
    sac_free(g->rows);
    sac_free(g->met_s);
    sac_free(g->slots);
    *g = (struct sac_gallery){.free = -1};
}

bool sac_gallery_reserve(struct sac_gallery *g, size_t slots)
{
    size_t views = slots * (size_t)g->views_max;
    if (slots <= g->count)
        return true;
    if (!sac_grow((void **)&g->rows, &g->rows_capacity, views * (size_t)g->dim, sizeof *g->rows) ||
        !sac_grow((void **)&g->met_s, &g->met_capacity, views, sizeof *g->met_s) ||
        !sac_grow((void **)&g->slots, &g->slots_capacity, slots, sizeof *g->slots))
        return false;
    while (g->count < slots) {
        g->slots[g->count] = (struct sac_gallery_slot){.next = g->free};
        g->free = (int)g->count++;
    }
    return true;
}

int sac_gallery_take(struct sac_gallery *g)
{
    int slot = g->free;
    g->free = g->slots[slot].next;
    g->slots[slot] = (struct sac_gallery_slot){.next = -1};
    return slot;
}

void sac_gallery_give_back(struct sac_gallery *g, int slot)
{
    g->slots[slot].next = g->free;
    g->free = slot;
}

static size_t view_index(const struct sac_gallery *g, int slot, int view)
{
    return (size_t)slot * (size_t)g->views_max + (size_t)view;
}

static float *view_at(const struct sac_gallery *g, int slot, int view)
{
    return g->rows + view_index(g, slot, view) * (size_t)g->dim;
}

/* Eight sums side by side: one alone waits for its own result at each step. */
static float dot(const float *a, const float *b, int n)
{
    float sum[8] = {0}, rest = 0;
    int   i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++)
            sum[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        rest += a[i] * b[i];
    for (int k = 0; k < 8; k++)
        rest += sum[k];
    return rest;
}

bool sac_gallery_is_unit(const struct sac_gallery *g, const float *feat)
{
    float square = dot(feat, feat, g->dim);
    return square > 0.98f && square < 1.02f;
}

/* Distance to the nearest view, and which that is (-1: none). */
static float nearest(const struct sac_gallery *g, int slot, const float *feat, int *view)
{
    float best = 2;
    *view = -1;
    for (int i = 0; i < g->slots[slot].views; i++) {
        float d = 1 - dot(view_at(g, slot, i), feat, g->dim);
        if (*view >= 0 && d >= best)
            continue;
        best = d;
        *view = i;
    }
    return best;
}

float sac_gallery_distance(const struct sac_gallery *g, int slot, const float *feat)
{
    int view;
    return nearest(g, slot, feat, &view);
}

static void blend(float *view, const float *feat, int dim, float keep)
{
    for (int i = 0; i < dim; i++)
        view[i] = keep * view[i] + (1 - keep) * feat[i];
    float length = sqrtf(dot(view, view, dim));
    if (length < 1e-6f) /* opposites that cancel: the newer one counts */
        memcpy(view, feat, (size_t)dim * sizeof *view);
    else
        for (int i = 0; i < dim; i++)
            view[i] /= length;
}

/* A free view, or the one that was not met for longest. */
static int oldest_view(struct sac_gallery *g, int slot)
{
    if (g->slots[slot].views < g->views_max)
        return g->slots[slot].views++;
    int oldest = 0;
    for (int i = 1; i < g->views_max; i++)
        if (g->met_s[view_index(g, slot, i)] < g->met_s[view_index(g, slot, oldest)])
            oldest = i;
    return oldest;
}

void sac_gallery_add(struct sac_gallery *g, int slot, const float *feat, double now_s)
{
    int   view;
    float distance = nearest(g, slot, feat, &view);
    if (view >= 0 && (g->views_max == 1 || distance < VIEW_DISTANCE)) {
        double gone = now_s - g->met_s[view_index(g, slot, view)];
        blend(view_at(g, slot, view), feat, g->dim, (float)exp(-gone / FADE_S));
    } else {
        view = oldest_view(g, slot);
        memcpy(view_at(g, slot, view), feat, (size_t)g->dim * sizeof *feat);
    }
    g->met_s[view_index(g, slot, view)] = now_s;
}
