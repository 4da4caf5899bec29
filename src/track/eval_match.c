/* SPDX-License-Identifier: Apache-2.0 */
/* Matching for scores. The trackers' assignment (assign.c) is faster, but it breaks ties
 * differently from scipy.optimize.linear_sum_assignment, which TrackEval uses. This one breaks them
 * in the same way: rows (of the smaller side) in order, columns from the last to the first at the
 * start of each search, a free column before a taken one at equal distance.
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
    m->rows_seen = sac_arena_alloc(&m->arena, n * sizeof *m->rows_seen);
    m->cols_seen = sac_arena_alloc(&m->arena, n * sizeof *m->cols_seen);
    m->col_round = sac_arena_alloc(&m->arena, n * sizeof *m->col_round);
    return m->cost && m->u && m->v && m->shortest && m->path && m->row_of_col && m->col_of_row &&
           m->remaining && m->rows_seen && m->cols_seen && m->col_round;
}

void sac_eval_matcher_finish(struct sac_eval_matcher *m)
{
    sac_arena_finish(&m->arena);
}

/* ---- a search ---- */

/* The first step, from the new row to all columns, in a loop that the compiler makes vectors of:
 * mostly it is the only one. Among equally near columns the last free one in the order of the
 * search is taken, else the first: the order goes down, so the lowest free one, else the
 * highest. */
static int first_step(struct sac_eval_matcher *m, int cols, int row, double *lowest_out)
{
    const double *restrict cost = m->cost + (size_t)row * (size_t)cols, *restrict v = m->v;
    double *restrict shortest = m->shortest;
    const double u = m->u[row];
    double       lowest = INFINITY;
    int          best = -1;
    for (int j = 0; j < cols; j++) {
        const double way = cost[j] - u - v[j];
        shortest[j] = way;
        lowest = way < lowest ? way : lowest;
    }
    for (int j = 0; j < cols && (best < 0 || m->row_of_col[best] >= 0); j++)
        if (shortest[j] == lowest)
            best = j;
    *lowest_out = lowest;
    return best;
}

/* A later step goes on from a row that was reached; returns the place of the nearest column in
 * `remaining`. */
static int next_step(struct sac_eval_matcher *m, int cols, int left, int row, double reached,
                     double *lowest_out)
{
    const double *cost = m->cost + (size_t)row * (size_t)cols;
    double        lowest = INFINITY;
    int           best = 0;
    for (int k = 0; k < left; k++) {
        int    j = m->remaining[k];
        double way = reached + cost[j] - m->u[row] - m->v[j];
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
    *lowest_out = lowest;
    return best;
}

/* Updates the prices of the rows and columns that a search reached; rows_seen lacks its first
 * row. */
static void update_prices(struct sac_eval_matcher *m, int row, int seen, double cost)
{
    m->u[row] += cost;
    for (int k = 0; k < seen; k++)
        m->u[m->rows_seen[k]] += cost - m->shortest[m->cols_seen[k]];
    for (int k = 0; k < seen; k++)
        m->v[m->cols_seen[k]] -= cost - m->shortest[m->cols_seen[k]];
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

/* The path of least cost from a row to a free column. */
static void add_row(struct sac_eval_matcher *m, int cols, int row)
{
    double reached;
    int    col = first_step(m, cols, row, &reached), left = cols, seen = 0;
    if (m->row_of_col[col] < 0) { /* no other row is in the way */
        m->u[row] += reached;
        m->row_of_col[col] = row;
        m->col_of_row[row] = col;
        return;
    }
    for (int j = 0; j < cols; j++) {
        m->remaining[j] = cols - 1 - j;
        m->path[j] = row;
    }
    for (int place = cols - 1 - col; m->row_of_col[col] >= 0; col = m->remaining[place]) {
        m->remaining[place] = m->remaining[--left];
        m->cols_seen[seen] = col;
        m->rows_seen[seen] = m->row_of_col[col];
        place = next_step(m, cols, left, m->rows_seen[seen], reached, &reached);
        seen++;
    }
    update_prices(m, row, seen, reached);
    flip_path(m, row, col);
}

/* ---- matching ---- */

/* Where no row or column has two scores, there is no choice. */
static bool take_single_scores(struct sac_eval_matcher *m, const struct sac_eval_touch *touches,
                               const double *score, int n, int *touch_of_row)
{
    m->round++;
    for (int i = 0; i < n; i++) {
        const struct sac_eval_touch *t = &touches[i];
        if (!(score[i] > 0))
            continue;
        if (touch_of_row[t->gt] >= 0 || m->col_round[t->track] == m->round)
            return false;
        touch_of_row[t->gt] = i;
        m->col_round[t->track] = m->round;
    }
    return true;
}

/* cost = -score, turned so that there are at least as many columns as rows. */
static void load(struct sac_eval_matcher *m, const struct sac_eval_touch *touches,
                 const double *score, int n, int rows, int cols)
{
    const bool   turned = rows > cols;
    const size_t width = (size_t)SAC_MAX(rows, cols);
    memset(m->cost, 0, width * (size_t)SAC_MIN(rows, cols) * sizeof *m->cost);
    for (int i = 0; i < n; i++) {
        const size_t row = (size_t)touches[i].gt, col = (size_t)touches[i].track;
        m->cost[turned ? col * width + row : row * width + col] = -score[i];
    }
}

void sac_eval_match(struct sac_eval_matcher *m, const struct sac_eval_touch *touches,
                    const double *score, int n, int rows, int cols, int *touch_of_row)
{
    const bool turned = rows > cols;
    const int  small = SAC_MIN(rows, cols), large = SAC_MAX(rows, cols);
    memset(touch_of_row, 0xff, (size_t)rows * sizeof *touch_of_row);
    if (take_single_scores(m, touches, score, n, touch_of_row))
        return;
    load(m, touches, score, n, rows, cols);
    memset(m->u, 0, (size_t)small * sizeof *m->u);
    memset(m->v, 0, (size_t)large * sizeof *m->v);
    memset(m->row_of_col, 0xff, (size_t)large * sizeof *m->row_of_col);
    memset(m->col_of_row, 0xff, (size_t)small * sizeof *m->col_of_row);
    for (int row = 0; row < small; row++)
        add_row(m, large, row);
    const int *col_of_row = turned ? m->row_of_col : m->col_of_row;
    memset(touch_of_row, 0xff, (size_t)rows * sizeof *touch_of_row);
    for (int i = 0; i < n; i++)
        if (score[i] > 0 && col_of_row[touches[i].gt] == touches[i].track)
            touch_of_row[touches[i].gt] = i;
}
