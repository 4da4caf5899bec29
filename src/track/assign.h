/* SPDX-License-Identifier: Apache-2.0 */
/* Assignment: pair rows with columns, each at most once, at the least total cost.
 *
 *     struct sac_assign as = {0};
 *     if (!sac_assign_reserve(&as, rows, cols))
 *         ...                                  // no memory
 *     sac_assign_solve(&as, cost, rows, cols, limit, col_of_row, row_of_col);
 *     sac_assign_finish(&as);
 */
#ifndef SAC_TRACK_ASSIGN_H
#define SAC_TRACK_ASSIGN_H

#include <stdbool.h>

/* Working memory, kept between calls. Zero-initialise. One thread at a time. */
struct sac_assign {
    double *u, *v;      /* [rows], [cols] dual prices */
    double *distance;   /* [cols] of the shortest path found so far */
    int    *parent;     /* [cols] row from which that path comes */
    int    *open;       /* [cols] columns not yet reached for good */
    int    *done;       /* [cols] those that were, in order */
    int    *queue;      /* [rows] rows without a column */
    int     rows, cols; /* capacity */
};

/* Allocates for a matrix of that size. false: no memory; the previous capacity stays usable. */
bool sac_assign_reserve(struct sac_assign *as, int rows, int cols);
void sac_assign_finish(struct sac_assign *as);

/* cost        [rows,cols], any finite number; NaN and infinities mean "never".
 * limit       finite: leaving a row alone costs this much, so the sum of (cost - limit) over the
 *             pairs is least and no pair costs more than limit. INFINITY: as many pairs as there
 *             can be, and among those choices the cheapest.
 * col_of_row  [rows], the column of each row or -1.
 * row_of_col  [cols], the inverse.
 * The capacity must have been reserved. O(n^3) at worst, near O(n^2) where rows hardly compete.
 * Source      Jonker and Volgenant, "A shortest augmenting path algorithm for dense and sparse
 *             linear assignment problems", Computing 38, 1987. */
void sac_assign_solve(struct sac_assign *as, const double *cost, int rows, int cols, double limit,
                      int *col_of_row, int *row_of_col);

#endif
