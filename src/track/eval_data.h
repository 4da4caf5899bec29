/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the evaluation: a sequence as the metrics take it, and what they share.
 *
 * The scores are to be those of TrackEval to the last digit. Where several matchings are equally
 * good, the scores depend on which one is taken, so sums and searches here run in its order. */
#ifndef SAC_TRACK_EVAL_DATA_H
#define SAC_TRACK_EVAL_DATA_H

#include <saccade/eval.h>

#include "base/base.h"

#define SAC_EVAL_EPS 2.220446049250313e-16 /* of a double */

/* Pairs are held in full matrices: 1 GiB each at this many. */
enum { SAC_EVAL_PAIRS_MAX = 1 << 27 };

/* Ids count from 0 without gaps. */
struct sac_eval_frame {
    int     gt_count, track_count;
    int    *gt, *track;  /* [gt_count], [track_count] ids */
    double *similarity;  /* [gt_count,track_count] IoU */
};

struct sac_eval_data {
    struct sac_arena       arena; /* holds all below */
    sac_context           *ctx;
    struct sac_eval_frame *frames; /* [frame_count] */
    int                    frame_count;
    int                    gt_ids, track_ids;
    int64_t                gt_dets, track_dets;
    int                    gt_max, track_max; /* most in one frame, before preprocessing */
};

/* eval_preprocess.c. On failure data is to be finished too. */
sac_result sac_eval_prepare(struct sac_eval_data *data, const char *name,
                            const struct sac_mot_file *gt, const struct sac_mot_file *tracks,
                            const struct sac_eval_params *params);
void       sac_eval_data_finish(struct sac_eval_data *data);

/* eval_match.c: the matching of the greatest total score, [rows,cols], as many pairs as the smaller
 * side has. */
struct sac_eval_matcher {
    struct sac_arena arena;
    int              capacity; /* of the larger side */
    double          *cost;     /* [smaller,larger] */
    double          *u, *v, *shortest;
    int             *path, *row_of_col, *col_of_row, *remaining;
    bool            *row_seen, *col_seen;
};
bool sac_eval_matcher_init(struct sac_eval_matcher *m, int rows_max, int cols_max);
void sac_eval_matcher_finish(struct sac_eval_matcher *m);
/* col_of_row [rows]: -1 where there is none. */
void sac_eval_match(struct sac_eval_matcher *m, const double *score, int rows, int cols,
                    int *col_of_row);

/* eval_hota.c, eval_clear.c, eval_identity.c. `score` fills from data with both sides non-empty;
 * `close` computes what follows from counts, also of combined sequences. */
sac_result sac_eval_hota_score(const struct sac_eval_data *data, struct sac_eval_result *out);
void       sac_eval_hota_empty(const struct sac_eval_data *data, struct sac_eval_result *out);
void       sac_eval_hota_combine(const struct sac_eval_result *parts, size_t n,
                                 struct sac_eval_result *out);
void       sac_eval_hota_close(struct sac_eval_result *out);
sac_result sac_eval_clear_score(const struct sac_eval_data *data, struct sac_eval_result *out);
void       sac_eval_clear_close(struct sac_eval_result *out);
sac_result sac_eval_identity_score(const struct sac_eval_data *data, struct sac_eval_result *out);
void       sac_eval_identity_close(struct sac_eval_result *out);

static inline double sac_eval_share(double part, double whole)
{
    return part / SAC_MAX(whole, 1.0);
}

static inline sac_result sac_eval_no_memory(const struct sac_eval_data *data)
{
    return SAC_FAIL(data->ctx, SAC_ERR_MEMORY,
                    "no memory to score %d ground-truth ids against %d track ids", data->gt_ids,
                    data->track_ids);
}

#endif
