/* SPDX-License-Identifier: Apache-2.0 */
/* BoT-SORT: ByteTrack's rounds with camera motion compensated and, where embeddings are given,
 * appearance in addition to overlap.
 * Source   Aharon et al., "BoT-SORT: Robust Associations Multi-Pedestrian Tracking", 2022. There
 *          the smaller of the two distances counts; here appearance shifts the cost either way,
 *          because on small people it is weak evidence by itself but good at distinguishing two
 *          neighbours. */
#include "track/core.h"

/* Weight of appearance at its limit, relative to overlap. */
static const double WEIGHT = 0.2;
/* This share of the limit speaks neither for nor against. */
static const double NEUTRAL = 0.7;

static double cost_with_appearance(const sac_tracker *trk, const struct sac_target *t,
                                   const struct sac_candidate *candidate, double overlap)
{
    double cost = sac_cost_scored(trk, t, candidate, overlap);
    if (t->slot < 0 || !candidate->embedding)
        return cost;
    double share = sac_tracker_apart(trk, t, candidate) / trk->params.reid_distance_max;
    return cost + WEIGHT * (share - NEUTRAL);
}

static void associate(sac_tracker *trk)
{
    sac_tracker_round(trk, &(struct sac_round){.states = SAC_STATES_KNOWN,
                                               .score_min = trk->params.score_high,
                                               .score_max = INFINITY,
                                               .cost = cost_with_appearance,
                                               .cost_max = 1 - trk->params.match_iou});
    sac_tracker_round_faint(trk);
    sac_tracker_round_tentative(trk);
}

const struct sac_tracker_row sac_tracker_botsort = {
    .kind = SAC_TRACKER_BOTSORT,
    .name = "botsort",
    .what = "bytetrack with camera motion and appearance",
    .appearance = true,
    .appearance_states = SAC_STATES_KNOWN,
    .camera = true,
    .associate = associate,
};
