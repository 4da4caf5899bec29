/* SPDX-License-Identifier: Apache-2.0 */
/* SORT: one round on overlap with the predicted box, strong detections only.
 * Source   Bewley et al., "Simple Online and Realtime Tracking", ICIP 2016. */
#include "track/core.h"

static void associate(sac_tracker *trk)
{
    sac_tracker_round(trk, &(struct sac_round){.states = SAC_STATES_ANY,
                                               .score_min = trk->params.score_high,
                                               .score_max = INFINITY,
                                               .cost = sac_cost_overlap,
                                               .cost_max = 1 - trk->params.match_iou});
}

static void defaults(struct sac_tracker_params *p)
{
    p->match_iou = 0.3f;
    p->lost_max_s = 1;
}

const struct sac_tracker_row sac_tracker_sort = {
    .kind = SAC_TRACKER_SORT,
    .name = "sort",
    .what = "motion and overlap, strong detections only",
    .defaults = defaults,
    .associate = associate,
};
