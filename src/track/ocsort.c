/* SPDX-License-Identifier: Apache-2.0 */
/* OC-SORT: observations count more than the filter's estimates. Three measures: a detection should
 * lie in the direction in which the target was seen moving; targets that still have no box are
 * searched for where they were last seen; and a target that is found again gets the filter of a
 * straight-line move from its last detection.
 * Source   Cao et al., "Observation-Centric SORT: Rethinking SORT for Robust Multi-Object
 *          Tracking", CVPR 2023. */
#include "track/core.h"

/* Of direction against overlap, as in the paper. */
static const double DIRECTION_WEIGHT = 0.2;
/* Moves shorter than this, in heights, are a detector's noise. */
static const double DIRECTION_MOVE_MIN = 0.05;
/* The straight line is walked in steps of this, at most STEPS_MAX of them. */
static const double STEP_S = 0.1;
enum { STEPS_MAX = 10 };

struct vector {
    double x, y;
};

static struct vector move_between(const struct sac_box *from, const struct sac_box *to)
{
    return (struct vector){((double)to->x0 + to->x1 - from->x0 - from->x1) / 2,
                           ((double)to->y0 + to->y1 - from->y0 - from->y1) / 2};
}

/* The cosine of the angle between the way the target went and the way to the candidate, -1..1; 0
 * where one of them is too short to have a direction. */
static double agreement(const struct sac_target *t, const struct sac_candidate *candidate)
{
    const struct sac_box *first =
        &t->trail[t->trail_count < SAC_TRAIL_MAX ? 0 : t->trail_count % SAC_TRAIL_MAX];
    struct vector went = move_between(first, &t->seen_box);
    struct vector next = move_between(&t->seen_box, &candidate->box);
    double        least = DIRECTION_MOVE_MIN * ((double)t->seen_box.y1 - t->seen_box.y0);
    double        a = went.x * went.x + went.y * went.y, b = next.x * next.x + next.y * next.y;
    if (a < least * least || b < least * least)
        return 0;
    return (went.x * next.x + went.y * next.y) / sqrt(a * b);
}

static double cost_with_direction(const sac_tracker *trk, const struct sac_target *t,
                                  const struct sac_candidate *candidate, double overlap)
{
    return sac_cost_overlap(trk, t, candidate, overlap) -
           DIRECTION_WEIGHT * candidate->score * agreement(t, candidate);
}

static void associate(sac_tracker *trk)
{
    struct sac_round strong = {.states = SAC_STATES_ANY,
                               .score_min = trk->params.score_high,
                               .score_max = INFINITY,
                               .cost = cost_with_direction,
                               .cost_max = 1 - trk->params.match_iou};
    struct sac_round where_seen = strong;
    where_seen.cost = sac_cost_overlap;
    where_seen.at_seen_box = true;
    sac_tracker_round(trk, &strong);
    sac_tracker_round_faint(trk);
    sac_tracker_round(trk, &where_seen);
}

static struct sac_box between(const struct sac_box *a, const struct sac_box *b, float share)
{
    return (struct sac_box){a->x0 + share * (b->x0 - a->x0), a->y0 + share * (b->y0 - a->y0),
                            a->x1 + share * (b->x1 - a->x1), a->y1 + share * (b->y1 - a->y1)};
}

/* Observation-centric re-update, in steps of time instead of frames. */
static void correct(sac_tracker *trk, struct sac_target *t, const struct sac_candidate *candidate)
{
    if (t->state == SAC_TRACK_LOST) {
        double gap_s = sac_seconds(t->last_us, trk->now_us);
        int    steps = (int)SAC_CLAMP(ceil(gap_s / STEP_S), 1, STEPS_MAX);
        t->filter = t->seen_filter;
        for (int i = 1; i <= steps; i++) {
            struct sac_box box = between(&t->seen_box, &candidate->box, (float)i / (float)steps);
            sac_kalman_predict(&t->filter, &sac_tracker_motion, gap_s / steps);
            if (i < steps)
                sac_target_correct(t, &box, candidate->score);
        }
    }
    sac_target_correct(t, &candidate->box, candidate->score);
}

static void defaults(struct sac_tracker_params *p)
{
    p->match_iou = 0.3f;
}

const struct sac_tracker_row sac_tracker_ocsort = {
    .kind = SAC_TRACKER_OCSORT,
    .name = "ocsort",
    .what = "observations before predictions: direction, recovery, re-update",
    .defaults = defaults,
    .associate = associate,
    .correct = correct,
};
