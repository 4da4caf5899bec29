/* SPDX-License-Identifier: Apache-2.0 */
/* What was fast for a convolution is likely fast for one that differs in samples and sizes alone:
 * as a product of matrices it has the same depth and columns, and other rows. So where one was
 * measured, as for another size of batch, the next tries fewer ways. Of what is compiled only the
 * fastest of all is one of them: others near it gained 0.03 % of YOLOX-S' time at batch 8 and 0.5
 * to 1.1 % at 1, for half as many kernels again to compile (one H200, 2026-11-28). */
#include <string.h>

#include "engine/cuda/products/conv_kernel.h"

enum { NEAR_MAX = 2 };
/* Within this of the fastest of all, measured. */
static const double NEAR = 1.15;

static struct {
    pthread_mutex_t lock; /* guards the rest */
    struct measured {
        char                  *family;
        double                 rows;
        int                    count;
        struct cudnn_candidate items[NEAR_MAX]; /* of cuDNN's ways, the fastest first */
    } * items;
    size_t count, capacity;
} near = {.lock = PTHREAD_MUTEX_INITIALIZER};

static double rows_of(const struct conv_spec *s)
{
    return (double)s->n * (double)conv_map_pixels(&s->out);
}

/* All but samples and sizes. false: it does not fit. */
static bool family_of(const struct sac_device *dev, const struct conv_spec *spec,
                      char family[CONV_KEY_MAX])
{
    struct conv_spec       s = *spec;
    struct conv_map *const maps[] = {&s.in, &s.out, &s.residual};
    s.n = 1;
    for (size_t i = 0; i < SAC_COUNT(maps); i++) {
        memset(maps[i]->size, 0, sizeof maps[i]->size);
        maps[i]->sample = 0;
    }
    return conv_key(dev, &s, family);
}

static bool is_cudnn(const struct cudnn_candidate *c)
{
    return c->choice.way <= CONV_CUDNN_PLAIN;
}

/* The fastest of cuDNN's that is worth another try and not taken yet; -1: none. best: of all. */
static int next_fastest(const struct conv_ways *l, const double *us, int best, const bool *taken)
{
    int next = -1;
    for (int i = 0; i < l->count; i++) {
        const struct cudnn_candidate *c = &l->items[i];
        const bool                    worth = c->runtime ? i == best : us[i] <= NEAR * us[best];
        if (is_cudnn(c) && us[i] >= 0 && worth && !taken[i] && (next < 0 || us[i] < us[next]))
            next = i;
    }
    return next;
}

void conv_near_note(const struct sac_device *dev, const struct conv_spec *spec,
                    const struct conv_ways *l, const double us[CONV_TRIED_MAX])
{
    char            family[CONV_KEY_MAX];
    struct measured m = {.rows = rows_of(spec)};
    bool            asked = false, taken[CONV_TRIED_MAX] = {false};
    int             best = -1;
    for (int i = 0; i < l->count; i++) {
        asked |= us[i] >= 0 && is_cudnn(&l->items[i]);
        if (us[i] >= 0 && (best < 0 || us[i] < us[best]))
            best = i;
    }
    /* where cuDNN was not asked, as beside our own kernels, nothing is known of it */
    if (!asked || !family_of(dev, spec, family) || !(m.family = sac_strdup(family)))
        return;
    for (int i; m.count < NEAR_MAX && (i = next_fastest(l, us, best, taken)) >= 0;) {
        taken[i] = true;
        m.items[m.count++] = l->items[i];
    }
    pthread_mutex_lock(&near.lock);
    if (sac_grow((void **)&near.items, &near.capacity, near.count + 1, sizeof *near.items)) {
        near.items[near.count++] = m;
        m.family = NULL;
    }
    pthread_mutex_unlock(&near.lock);
    sac_free(m.family);
}

/* Of those with at least as many rows the one with the fewest: what a small one is bound by, its
 * launch, says nothing of a large one. So the choice for a batch does not depend on whether smaller
 * ones were measured before. The lock is held. */
static const struct measured *nearest(const char *family, double rows)
{
    const struct measured *found = NULL;
    for (size_t i = 0; i < near.count; i++) {
        const struct measured *m = &near.items[i];
        if (strcmp(m->family, family) == 0 && m->rows >= rows && (!found || m->rows <= found->rows))
            found = m;
    }
    return found;
}

static void keep_or_add(struct conv_ways *l, const struct cudnn_candidate *c,
                        bool keep[CONV_TRIED_MAX])
{
    int i = 0;
    while (i < l->count && !conv_choice_same(&l->items[i].choice, &c->choice))
        i++;
    if (i == CONV_TRIED_MAX)
        return;
    if (i == l->count)
        l->items[l->count++] = *c;
    keep[i] = true;
}

void conv_near_narrow(const struct sac_device *dev, const struct conv_spec *spec,
                      struct conv_ways *l, bool keep[CONV_TRIED_MAX])
{
    char            family[CONV_KEY_MAX];
    struct measured m = {.family = NULL};
    bool            known = false, seen[2] = {false, false};
    if (family_of(dev, spec, family)) {
        pthread_mutex_lock(&near.lock);
        const struct measured *found = nearest(family, rows_of(spec));
        known = found != NULL;
        if (known)
            m = *found;
        pthread_mutex_unlock(&near.lock);
    }
    for (int i = 0; i < l->count; i++) {
        const enum conv_way way = l->items[i].choice.way;
        keep[i] = !known || !is_cudnn(&l->items[i]) || !seen[way];
        if (is_cudnn(&l->items[i]))
            seen[way] = true;
    }
    for (int i = 0; i < m.count; i++)
        keep_or_add(l, &m.items[i], keep);
}
