/* SPDX-License-Identifier: Apache-2.0 */
/* Matching for scores. The trackers' assignment (assign.c) is faster, but its ties fall otherwise
 * than those of scipy.optimize.linear_sum_assignment, which TrackEval uses; here they fall alike:
 * rows (of the smaller side) in order, columns from the last to the first at the start of each
 * search, a free column before a taken one at equal distance.
 *
 * Source   Crouse, "On implementing 2D rectangular assignment algorithms", IEEE Transactions on
 *          Aerospace and Electronic Systems 52(4), 2016. */
#include <math.h>
#include <string.h>

#include "track/eval_data.h"

bool sac_eval_matcher_init(struct sac_eval_matcher *m, int rows_max, int cols_max)
{
    size_t n = (size_t)SAC_MAX(rows_max, cols_max), small = (size_t)SAC_MIN(rows_max, cols_max);
    *m = (struct sac_eval_matcher){.capacity = (int)n};
    m->cost = sac_arena_alloc(&m->arena, n * small * sizeof *m->cost);
    m->u = sac_arena_alloc(&m->arena, n * sizeof *m->u);
    m->v = sac_arena_alloc(&m->arena, n * sizeof *m->v);
    m->shortest = sac_arena_alloc(&m->arena, n * sizeof *m->shortest);
    m->path = sac_arena_alloc(&m->arena, n * sizeof *m->path);
    m->row_of_col = sac_arena_alloc(&m->arena, n * sizeof *m->row_of_col);
    m->col_of_row = sac_arena_alloc(&m->arena, n * sizeof *m->col_of_row);
    m->remaining = sac_arena_alloc(&m->arena, n * sizeof *m->remaining);
    m->row_seen = sac_arena_alloc(&m->arena, n);
    m->col_seen = sac_arena_alloc(&m->arena, n);
    return m->cost && m->u && m->v && m->shortest && m->path && m->row_of_col && m->col_of_row &&
           m->remaining && m->row_seen && m->col_seen;
}

void sac_eval_matcher_finish(struct sac_eval_matcher *m)
{
    sac_arena_finish(&m->arena);
}

/* The way of least cost from a row to a free column; returns that column, and its cost. */
static int find_path(struct sac_eval_matcher *m, int cols, int row, double *cost_out)
{
    int    left = cols;
    double reached = 0;
    memset(m->row_seen, 0, (size_t)m->capacity);
    memset(m->col_seen, 0, (size_t)m->capacity);
    for (int j = 0; j < cols; j++) {
        m->remaining[j] = cols - 1 - j;
        m->shortest[j] = INFINITY;
    }
    for (;;) {
        int    best = 0;
        double lowest = INFINITY;
        size_t from = (size_t)row * (size_t)cols;
        m->row_seen[row] = true;
        for (int k = 0; k < left; k++) {
            int    j = m->remaining[k];
            double way = reached + m->cost[from + (size_t)j] - m->u[row] - m->v[j];
            if (way < m->shortest[j]) {
                m->shortest[j] = way;
                m->path[j] = row;
            }
            bool is_free = m->row_of_col[j] < 0;
            if (m->shortest[j] < lowest || (m->shortest[j] == lowest && is_free)) {
                lowest = m->shortest[j];
                best = k;
            }
        }
        int j = m->remaining[best];
        reached = lowest;
        m->col_seen[j] = true;
        m->remaining[best] = m->remaining[--left];
        if (m->row_of_col[j] < 0) {
            *cost_out = reached;
            return j;
        }
        row = m->row_of_col[j];
    }
}

static void update_prices(struct sac_eval_matcher *m, int rows, int cols, int row, double cost)
{
    m->u[row] += cost;
    for (int i = 0; i < rows; i++)
        if (m->row_seen[i] && i != row)
            m->u[i] += cost - m->shortest[m->col_of_row[i]];
    for (int j = 0; j < cols; j++)
        if (m->col_seen[j])
            m->v[j] -= cost - m->shortest[j];
}

static void flip_path(struct sac_eval_matcher *m, int row, int col)
{
    for (int i = -1; i != row;) {
        i = m->path[col];
        int former = m->col_of_row[i];
        m->row_of_col[col] = i;
        m->col_of_row[i] = col;
        col = former;
    }
}

/* cost = -score, turned so that there are at least as many columns as rows. */
static void load(struct sac_eval_matcher *m, const double *score, int rows, int cols, bool turned)
{
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++) {
            size_t at = turned ? (size_t)c * (size_t)rows + (size_t)r
                               : (size_t)r * (size_t)cols + (size_t)c;
            m->cost[at] = -score[(size_t)r * (size_t)cols + (size_t)c];
        }
}

void sac_eval_match(struct sac_eval_matcher *m, const double *score, int rows, int cols,
                    int *col_of_row)
{
    bool turned = rows > cols;
    int  small = turned ? cols : rows, large = turned ? rows : cols;
    load(m, score, rows, cols, turned);
    for (int i = 0; i < small; i++) {
        m->u[i] = 0;
        m->col_of_row[i] = -1;
    }
    for (int j = 0; j < large; j++) {
        m->v[j] = 0;
        m->row_of_col[j] = -1;
    }
    for (int row = 0; row < small; row++) {
        double cost;
        int    col = find_path(m, large, row, &cost);
        update_prices(m, small, large, row, cost);
        flip_path(m, row, col);
    }
    memcpy(col_of_row, turned ? m->row_of_col : m->col_of_row, (size_t)rows * sizeof *col_of_row);
}
