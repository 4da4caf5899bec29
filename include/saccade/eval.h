/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of tracking against ground truth: HOTA (Luiten et al., IJCV 2021), CLEAR MOT (Bernardin and
 * Stiefelhagen, 2008), Identity (Ristani et al., 2016). Equal to TrackEval's. */
#ifndef SACCADE_EVAL_H
#define SACCADE_EVAL_H

#include <saccade/track.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SAC_HOTA_ALPHAS = 19 }; /* 0.05, 0.10, ..., 0.95 */

struct sac_eval_result {
    char    name[128];
    /* shares are 0..1; HOTA's are means over the alphas */
    double  hota, det_a, ass_a, det_re, det_pr, ass_re, ass_pr, loc_a;
    double  mota, motp, moda, recall, precision;
    int64_t tp, fp, fn, idsw, frag, mt, pt, ml;
    double  idf1, idp, idr;
    int64_t idtp, idfp, idfn;
    int64_t dets, gt_dets, ids, gt_ids, frames;
    /* what combining needs */
    double  hota_tp[SAC_HOTA_ALPHAS], hota_fp[SAC_HOTA_ALPHAS], hota_fn[SAC_HOTA_ALPHAS];
    double  hota_loc[SAC_HOTA_ALPHAS], hota_ass_a[SAC_HOTA_ALPHAS], hota_ass_re[SAC_HOTA_ALPHAS],
        hota_ass_pr[SAC_HOTA_ALPHAS];
    double  motp_sum;
};

struct sac_eval_params {
    int preprocess; /* 1: the MOTChallenge benchmark's: ignore distractors and rows marked 0; default 1.
                       Ground truth without classes, as MOT15's, has none to ignore and is scored as it is */
    int frames;     /* length of the sequence; 0: the last frame in either file */
};
SAC_API struct sac_eval_params sac_eval_params_default(void);

/* Time and memory grow with the boxes and with those that overlap, not with the square of boxes or ids.
 * Errors   SAC_ERR_FORMAT (an id twice in one frame), SAC_ERR_LIMIT (over 2^27 pairs of boxes in one frame, or 2^31
 *          overlaps), SAC_ERR_MEMORY. */
SAC_API sac_result sac_eval_sequence(sac_context *ctx, const char *name,
                                     const struct sac_mot_file *gt,
                                     const struct sac_mot_file *tracks,
                                     const struct sac_eval_params *params,
                                     struct sac_eval_result *out);
/* As TrackEval's COMBINED row; its name is "combined". */
SAC_API void sac_eval_combine(const struct sac_eval_result *parts, size_t n,
                              struct sac_eval_result *out);

#ifdef __cplusplus
}
#endif
#endif
