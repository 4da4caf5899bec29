/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds of matching: which pairs are allowed, their costs, and the assignment. */
#include "track/core.h"

/* Least overlap in the later rounds. A faint box must sit well on its target, or it is clutter. */
static const double FAINT_OVERLAP = 0.5, TENTATIVE_OVERLAP = 0.3;

bool sac_match_reserve(struct sac_match_room *room, size_t targets, size_t candidates)
{
    return sac_grow((void **)&room->cost, &room->cost_capacity, targets * candidates,
                    sizeof *room->cost) &&
           sac_grow((void **)&room->rows, &room->rows_capacity, targets, sizeof(int)) &&
           sac_grow((void **)&room->cols, &room->cols_capacity, candidates, sizeof(int)) &&
           sac_grow((void **)&room->col_of_row, &room->col_of_row_capacity, targets, sizeof(int)) &&
           sac_grow((void **)&room->row_of_col, &room->row_of_col_capacity, candidates,
                    sizeof(int)) &&
           sac_assign_reserve(&room->assign, (int)room->rows_capacity, (int)room->cols_capacity);
}

void sac_match_finish(struct sac_match_room *room)
{
    sac_assign_finish(&room->assign);
    sac_free(room->cost);
    sac_free(room->rows);
    sac_free(room->cols);
    sac_free(room->col_of_row);
    sac_free(room->row_of_col);
    *room = (struct sac_match_room){0};
}

/* ---- costs ---- */

/* Intersection over union of both boxes, grown on every side by the target's reach: after a gap,
 * or before the speed is known, the right box may well lie beside the prediction. */
static inline float overlap_of(const struct sac_box *a, const struct sac_box *b, float reach_x,
                               float reach_y)
{
    float x = 2 * reach_x, y = 2 * reach_y;
    float w = SAC_MIN(a->x1, b->x1) - SAC_MAX(a->x0, b->x0) + x;
    float h = SAC_MIN(a->y1, b->y1) - SAC_MAX(a->y0, b->y0) + y;
    if (w <= 0 || h <= 0)
        return 0;
    float both =
        (a->x1 - a->x0 + x) * (a->y1 - a->y0 + y) + (b->x1 - b->x0 + x) * (b->y1 - b->y0 + y);
    return w * h / (both - w * h);
}

double sac_cost_overlap(const sac_tracker *trk, const struct sac_target *t,
                        const struct sac_candidate *candidate, double overlap)
{
    (void)trk;
    (void)t;
    (void)candidate;
    return 1 - overlap;
}

double sac_cost_scored(const sac_tracker *trk, const struct sac_target *t,
                       const struct sac_candidate *candidate, double overlap)
{
    (void)trk;
    (void)t;
    return 1 - overlap * candidate->score;
}

/* ---- a round ---- */

static int free_targets(const sac_tracker *trk, unsigned states, int *rows)
{
    int n = 0;
    for (size_t i = 0; i < trk->target_count; i++)
        if (trk->targets[i].candidate < 0 && (states >> trk->targets[i].state & 1))
            rows[n++] = (int)i;
    return n;
}

static int free_candidates(const sac_tracker *trk, float score_min, float score_max, int *cols)
{
    int n = 0;
    for (size_t i = 0; i < trk->candidate_count; i++) {
        const struct sac_candidate *candidate = &trk->candidates[i];
        if (!candidate->taken && candidate->score >= score_min && candidate->score < score_max)
            cols[n++] = (int)i;
    }
    return n;
}

static void fill_row(const sac_tracker *trk, const struct sac_round *round,
                     const struct sac_target *t, int cols, double *cost)
{
    const struct sac_box *box = round->at_seen_box ? &t->seen_box : &t->box;
    for (int j = 0; j < cols; j++) {
        const struct sac_candidate *candidate = &trk->candidates[trk->room.cols[j]];
        float overlap = overlap_of(box, &candidate->box, t->reach_x, t->reach_y);
        cost[j] = overlap > 0 && t->class_id == candidate->class_id
                      ? round->cost(trk, t, candidate, overlap)
                      : INFINITY;
    }
}

void sac_tracker_round(sac_tracker *trk, const struct sac_round *round)
{
    struct sac_match_room *m = &trk->room;
    int                    rows = free_targets(trk, round->states, m->rows);
    int                    cols = free_candidates(trk, round->score_min, round->score_max, m->cols);
    if (!rows || !cols)
        return;
    for (int i = 0; i < rows; i++)
        fill_row(trk, round, &trk->targets[m->rows[i]], cols, m->cost + (size_t)i * (size_t)cols);
    sac_assign_solve(&m->assign, m->cost, rows, cols, round->cost_max, m->col_of_row,
                     m->row_of_col);
    for (int i = 0; i < rows; i++) {
        if (m->col_of_row[i] < 0)
            continue;
        int candidate = m->cols[m->col_of_row[i]];
        trk->targets[m->rows[i]].candidate = candidate;
        trk->candidates[candidate].taken = true;
    }
}

void sac_tracker_round_faint(sac_tracker *trk)
{
    sac_tracker_round(trk, &(struct sac_round){.states = SAC_STATES_VISIBLE,
                                               .score_min = trk->params.score_low,
                                               .score_max = trk->params.score_high,
                                               .cost = sac_cost_overlap,
                                               .cost_max = 1 - FAINT_OVERLAP});
}

void sac_tracker_round_tentative(sac_tracker *trk)
{
    sac_tracker_round(trk, &(struct sac_round){.states = SAC_STATES_TENTATIVE,
                                               .score_min = trk->params.score_high,
                                               .score_max = INFINITY,
                                               .cost = sac_cost_scored,
                                               .cost_max = 1 - TENTATIVE_OVERLAP});
}
