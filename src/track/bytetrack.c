/* SPDX-License-Identifier: Apache-2.0 */
/* ByteTrack: strong detections are matched first; what is then still without a box may take a faint
 * one, which is how a person half hidden looks to a detector.
 * Source   Zhang et al., "ByteTrack: Multi-Object Tracking by Associating Every Detection Box",
 *          ECCV 2022. */
#include "track/core.h"

static void associate(sac_tracker *trk)
{
    sac_tracker_round(trk, &(struct sac_round){.states = SAC_STATES_KNOWN,
                                               .score_min = trk->params.score_high,
                                               .score_max = INFINITY,
                                               .cost = sac_cost_scored,
                                               .cost_max = 1 - trk->params.match_iou});
    sac_tracker_round_faint(trk);
    sac_tracker_round_tentative(trk);
}

const struct sac_tracker_row sac_tracker_bytetrack = {
    .kind = SAC_TRACKER_BYTETRACK,
    .name = "bytetrack",
    .what = "motion and overlap, faint detections in a second round",
    .associate = associate,
};
