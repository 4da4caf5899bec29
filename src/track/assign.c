/* SPDX-License-Identifier: Apache-2.0 */
/* Every row has one additional column, "alone", that costs alone_cost and that no other row can
 * take. So each row always finds a column, and rectangular matrices, limits and forbidden pairs are
 * not special cases.
 *
 * Invariant: cost[i][j] - u[i] - v[j] >= 0 for all pairs and 0 for chosen ones; v <= 0, and 0 for
 * columns that nobody has; u[i] <= alone_cost, and equal for rows that are alone. */
#include <math.h>

#include "base/base.h"
#include "track/assign.h"

struct problem {
    struct sac_assign *as;
    const double      *cost;
    int                rows, cols;
    double             alone_cost;
    int               *col_of_row, *row_of_col;
};

void sac_assign_finish(struct sac_assign *as)
{
    sac_free(as->u);
    *as = (struct sac_assign){0};
}

/* One block holds all arrays: doubles first, for their alignment. */
bool sac_assign_reserve(struct sac_assign *as, int rows, int cols)
{
    if (rows <= as->rows && cols <= as->cols)
        return true;
    size_t  r = (size_t)SAC_MAX(rows, as->rows), c = (size_t)SAC_MAX(cols, as->cols);
    double *block = sac_alloc((r + 2 * c) * sizeof(double) + (r + 3 * c) * sizeof(int));
    if (!block)
        return false;
    sac_free(as->u);
    as->u = block;
    as->v = as->u + r;
    as->distance = as->v + c;
    as->parent = (int *)(as->distance + c);
    as->open = as->parent + c;
    as->done = as->open + c;
    as->queue = as->done + c;
    as->rows = (int)r;
    as->cols = (int)c;
    return true;
}

static double cost_at(const struct problem *p, int row, int col)
{
    double c = p->cost[(size_t)row * (size_t)p->cols + (size_t)col];
    return isfinite(c) ? c : INFINITY;
}

/* Without a limit, alone_cost is so high that no saving elsewhere outweighs it. */
static double price_of_alone(const double *cost, int rows, int cols)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < (size_t)rows * (size_t)cols; i++) {
        if (!isfinite(cost[i]))
            continue;
        low = SAC_MIN(low, cost[i]);
        high = SAC_MAX(high, cost[i]);
    }
    return low > high ? 0 : high + (high - low) * SAC_MIN(rows, cols) + 1;
}

static void give(const struct problem *p, int row, int col)
{
    p->col_of_row[row] = col;
    p->row_of_col[col] = row;
}

/* The cheapest and second cheapest column of a row at current prices; column -1 is "alone". */
struct choice {
    int    col, second_col;
    double price, second;
};

static struct choice choose(const struct problem *p, int row)
{
    struct choice c = {.col = -1, .second_col = -1, .price = p->alone_cost, .second = INFINITY};
    for (int j = 0; j < p->cols; j++) {
        double price = cost_at(p, row, j) - p->as->v[j];
        if (price >= c.second)
            continue;
        if (price < c.price) {
            c.second = c.price;
            c.second_col = c.col;
            c.price = price;
            c.col = j;
        } else {
            c.second = price;
            c.second_col = j;
        }
    }
    return c;
}

/* Gives a row its best column and raises that column's price until the row's second choice is as
 * good. Returns the row that had the column before, or -1. */
static int reduce_row(const struct problem *p, int row)
{
    struct choice c = choose(p, row);
    if (c.col >= 0 && c.price == c.second && p->row_of_col[c.col] >= 0 &&
        (c.second_col < 0 || p->row_of_col[c.second_col] < 0))
        c.col = c.second_col; /* a tie: spare the owner */
    if (c.col < 0) {
        p->as->u[row] = p->alone_cost;
        return -1;
    }
    int owner = p->row_of_col[c.col];
    p->as->v[c.col] -= c.second - c.price;
    p->as->u[row] = c.second;
    if (owner >= 0)
        p->col_of_row[owner] = -1;
    give(p, row, c.col);
    return owner;
}

/* Augmenting row reduction: assigns most rows with one scan each. Returns how many are left in the
 * queue; the budget ends long price wars, which the shortest paths then decide. */
static int reduce_rows(const struct problem *p)
{
    int  left = 0;
    long budget = 2L * p->rows;
    for (int i = 0; i < p->rows; i++) {
        int row = i;
        while (row >= 0 && budget-- > 0)
            row = reduce_row(p, row);
        if (row < 0)
            continue;
        p->as->u[row] = 0;
        p->as->queue[left++] = row;
    }
    return left;
}

/* A search from one row over columns in the order of their distance (Dijkstra). */
struct search {
    int    open, done; /* lengths of as->open and as->done */
    double reach;      /* distance of the latest column */
    double alone;      /* least distance to some row's "alone", ... */
    int    alone_row;  /* ... and that row */
};

static void relax(const struct problem *p, struct search *s, int row)
{
    struct sac_assign *as = p->as;
    double             base = s->reach - as->u[row];
    if (base + p->alone_cost < s->alone) {
        s->alone = base + p->alone_cost;
        s->alone_row = row;
    }
    for (int k = 0; k < s->open; k++) {
        int    j = as->open[k];
        double d = base + cost_at(p, row, j) - as->v[j];
        if (d < as->distance[j]) {
            as->distance[j] = d;
            as->parent[j] = row;
        }
    }
}

/* Moves the nearest open column to the done ones and returns it; -1 when "alone" is nearer. Among
 * equals a free column is preferred, because the search ends there. */
static int settle(const struct problem *p, struct search *s)
{
    struct sac_assign *as = p->as;
    int                best = -1;
    double             near = s->alone;
    for (int k = 0; k < s->open; k++) {
        int    j = as->open[k];
        double d = as->distance[j];
        if (d < near || (d == near && best >= 0 && p->row_of_col[j] < 0)) {
            near = d;
            best = k;
        }
    }
    s->reach = near;
    if (best < 0)
        return -1;
    int col = as->open[best];
    as->open[best] = as->open[--s->open];
    as->done[s->done++] = col;
    return col;
}

/* Lowers v of the columns reached earlier and raises u of their rows, so that the path's reduced
 * cost is 0. */
static void update_prices(const struct problem *p, const struct search *s, int start)
{
    struct sac_assign *as = p->as;
    as->u[start] += s->reach;
    for (int k = 0; k < s->done; k++) {
        int    j = as->done[k];
        double gain = s->reach - as->distance[j];
        as->v[j] -= gain;
        if (p->row_of_col[j] >= 0)
            as->u[p->row_of_col[j]] += gain;
    }
}

/* Give col to the row it was reached from, that row's former column to the row before, and so
 * on. */
static void shift_along(const struct problem *p, int start, int col)
{
    int row;
    do {
        row = p->as->parent[col];
        int former = p->col_of_row[row];
        give(p, row, col);
        col = former;
    } while (row != start);
}

static void augment(const struct problem *p, int start)
{
    struct sac_assign *as = p->as;
    struct search      s = {.open = p->cols, .alone = INFINITY, .alone_row = start};
    for (int j = 0; j < p->cols; j++) {
        as->open[j] = j;
        as->distance[j] = INFINITY;
    }
    int row = start, col;
    do {
        relax(p, &s, row);
        col = settle(p, &s);
        row = col >= 0 ? p->row_of_col[col] : -1;
    } while (row >= 0);
    update_prices(p, &s, start);
    if (col < 0 && s.alone_row != start) {
        col = p->col_of_row[s.alone_row];
        p->col_of_row[s.alone_row] = -1;
    }
    if (col >= 0)
        shift_along(p, start, col);
}

void sac_assign_solve(struct sac_assign *as, const double *cost, int rows, int cols, double limit,
                      int *col_of_row, int *row_of_col)
{
    struct problem p = {.as = as,
                        .cost = cost,
                        .rows = rows,
                        .cols = cols,
                        .alone_cost = isinf(limit) ? price_of_alone(cost, rows, cols) : limit,
                        .col_of_row = col_of_row,
                        .row_of_col = row_of_col};
    for (int i = 0; i < rows; i++)
        col_of_row[i] = -1;
    for (int j = 0; j < cols; j++) {
        row_of_col[j] = -1;
        as->v[j] = 0;
    }
    int left = reduce_rows(&p);
    for (int k = 0; k < left; k++)
        augment(&p, as->queue[k]);
}
