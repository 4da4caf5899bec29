/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of tracking against ground truth: HOTA (Luiten et al., IJCV 2021), CLEAR MOT (Bernardin
 * and Stiefelhagen, 2008), Identity (Ristani et al., 2016). The values equal TrackEval's. */
#ifndef SACCADE_EVAL_H
#define SACCADE_EVAL_H

#include <saccade/track.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SAC_HOTA_ALPHAS = 19 }; /* 0.05, 0.10, ..., 0.95 */

/* The scores of one sequence, or of several together. */
struct sac_eval_result {
    char name[128];
    /* shares are 0..1; HOTA's are means over the alphas */
    double  hota, det_a, ass_a, det_re, det_pr, ass_re, ass_pr, loc_a;
    double  mota, motp, moda, recall, precision;
    int64_t tp, fp, fn, idsw, frag, mt, pt, ml;
    double  idf1, idp, idr;
    int64_t idtp, idfp, idfn;
    int64_t dets, gt_dets, ids, gt_ids, frames;
    /* sums that sac_eval_combine needs */
    double hota_tp[SAC_HOTA_ALPHAS], hota_fp[SAC_HOTA_ALPHAS], hota_fn[SAC_HOTA_ALPHAS];
    double hota_loc[SAC_HOTA_ALPHAS], hota_ass_a[SAC_HOTA_ALPHAS], hota_ass_re[SAC_HOTA_ALPHAS],
        hota_ass_pr[SAC_HOTA_ALPHAS];
    double   motp_sum;
    uint64_t reserved[16]; /* 0 */
};

struct sac_eval_params {
    /* 1 (default): as the MOTChallenge benchmark, ignore distractors and rows marked 0. Ground
     * truth without classes, such as MOT15's, is scored as it is. */
    int      preprocess;
    int      frames;      /* length of the sequence; 0: up to the last frame in either file */
    uint64_t reserved[4]; /* 0 */
};
SAC_API struct sac_eval_params sac_eval_params_default(void);

/* Score one sequence. Time and memory grow with the number of boxes and of overlapping pairs, not
 * with the square of boxes or ids.
 *
 * gt, tracks  ground truth and results; borrowed for the call.
 * params      NULL: the defaults.
 * Threads     any.
 * Errors   SAC_ERR_FORMAT (an id twice in one frame), SAC_ERR_LIMIT (over 2^27 pairs of boxes in
 *          one frame, or 2^31 overlaps), SAC_ERR_MEMORY. */
SAC_API sac_result sac_eval_sequence(sac_context *ctx, const char *name,
                                     const struct sac_mot_file    *gt,
                                     const struct sac_mot_file    *tracks,
                                     const struct sac_eval_params *params,
                                     struct sac_eval_result       *out);
/* Combine the results of n sequences as in TrackEval's COMBINED row; the name is "combined". Any
 * thread. */
SAC_API void sac_eval_combine(const struct sac_eval_result *parts, size_t n,
                              struct sac_eval_result *out);

#ifdef __cplusplus
}
#endif
#endif
