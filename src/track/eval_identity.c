/* SPDX-License-Identifier: Apache-2.0 */
/* Identity. Source: Ristani et al., "Performance Measures and a Data Set for Multi-Target,
 * Multi-Camera Tracking", ECCV Workshops 2016. */
#include "track/eval_data.h"

static const double THRESHOLD = 0.5;

/* The metric asks for the matching of ids, each with a partner or with nobody, that leaves the fewest
 * boxes wrong. Wrong boxes are all boxes less twice those in common, so the matching with the most in
 * common is it, and its count is the same whichever of equally good ones is taken. */
static int64_t common_most(const struct sac_eval_data *data, double *common,
                           struct sac_eval_matcher *matcher, int *track_of_gt)
{
    size_t  cols = (size_t)data->track_ids;
    int64_t sum = 0;
    for (int n = 0; n < data->frame_count; n++) {
        const struct sac_eval_frame *f = &data->frames[n];
        const double                *s = f->similarity;
        for (int g = 0; g < f->gt_count; g++)
            for (int t = 0; t < f->track_count; t++)
                common[(size_t)f->gt[g] * cols + (size_t)f->track[t]] += *s++ >= THRESHOLD;
    }
    sac_eval_match(matcher, common, data->gt_ids, data->track_ids, track_of_gt);
    for (int g = 0; g < data->gt_ids; g++)
        if (track_of_gt[g] >= 0)
            sum += (int64_t)common[(size_t)g * cols + (size_t)track_of_gt[g]];
    return sum;
}

sac_result sac_eval_identity_score(const struct sac_eval_data *data, struct sac_eval_result *out)
{
    struct sac_arena        arena = {0};
    struct sac_eval_matcher matcher;
    size_t                  gt = (size_t)data->gt_ids, tracks = (size_t)data->track_ids;
    double *common = sac_arena_alloc(&arena, gt * tracks * sizeof *common);
    int    *track_of_gt = sac_arena_alloc(&arena, gt * sizeof *track_of_gt);
    bool    ok = sac_eval_matcher_init(&matcher, (int)gt, (int)tracks) && common && track_of_gt;
    if (ok) {
        out->idtp = common_most(data, common, &matcher, track_of_gt);
        out->idfn = data->gt_dets - out->idtp;
        out->idfp = data->track_dets - out->idtp;
        sac_eval_identity_close(out);
    }
    sac_eval_matcher_finish(&matcher);
    sac_arena_finish(&arena);
    return ok ? SAC_OK : sac_eval_no_memory(data);
}

void sac_eval_identity_close(struct sac_eval_result *out)
{
    double tp = (double)out->idtp, fp = (double)out->idfp, fn = (double)out->idfn;
    out->idr = sac_eval_share(tp, tp + fn);
    out->idp = sac_eval_share(tp, tp + fp);
    out->idf1 = sac_eval_share(tp, tp + 0.5 * fp + 0.5 * fn);
}
