/* SPDX-License-Identifier: Apache-2.0 */
/* How far the tracks of two runs agree, when their arithmetic may differ in the last bits. */
#ifndef SAC_TESTS_PIPELINE_AGREEMENT_H
#define SAC_TESTS_PIPELINE_AGREEMENT_H

#include <math.h>

#include "tests/test.h"
#include "track/mot.h"

static inline double overlap(const struct sac_mot_row *a, const struct sac_mot_row *b)
{
    double w = fmin(a->x + a->w, b->x + b->w) - fmax(a->x, b->x);
    double h = fmin(a->y + a->h, b->y + b->h) - fmax(a->y, b->y);
    return w > 0 && h > 0 ? w * h / (a->w * a->h + b->w * b->h - w * h) : 0;
}

/* The share of the rows that have a partner, one of the same place in the same frame, whose
 * identity is the one that its identity was paired with first. */
static inline double agreement(const struct sac_mot_file *a, const struct sac_mot_file *b)
{
    int    map[1024] = {0};
    size_t paired = 0;
    for (size_t i = 0; i < a->count; i++)
        for (size_t k = 0; k < b->count; k++) {
            const struct sac_mot_row *x = &a->rows[i], *y = &b->rows[k];
            if (x->frame != y->frame || overlap(x, y) < 0.8)
                continue;
            int *known = &map[x->id % 1024];
            if (!*known)
                *known = y->id;
            paired += *known == y->id;
            break;
        }
    return a->count + b->count ? 2.0 * (double)paired / (double)(a->count + b->count) : 1;
}

static inline void expect_agreement(const struct sac_mot_file *want, const struct sac_mot_file *got,
                                    double least, const char *what)
{
    const double share = agreement(want, got);
    print_message("%s: %zu rows, %zu expected, %.1f %% agree\n", what, got->count, want->count,
                  100 * share);
    if (share < least)
        fail_msg("%s: %.1f %% of the rows agree", what, 100 * share);
}

#endif
