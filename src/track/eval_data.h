/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the evaluation: a sequence as input of the metrics, and functions that they share.
 *
 * Most boxes of a frame overlap few others, and most ids of a sequence never meet: pairs that never
 * overlap are not stored, so that memory and time grow linearly with the boxes.
 *
 * The scores must equal those of TrackEval to the last digit. Where several matchings are equally
 * good, the scores depend on the choice, so sums and searches here use its order. */
#ifndef SAC_TRACK_EVAL_DATA_H
#define SAC_TRACK_EVAL_DATA_H

#include <saccade/eval.h>

#include "base/base.h"

#define SAC_EVAL_EPS 2.220446049250313e-16 /* of a double */

/* A frame's matching takes a full matrix: 1 GiB at this many. */
enum { SAC_EVAL_PAIRS_MAX = 1 << 27 };
/* Of overlaps, in all frames together. */
enum { SAC_EVAL_TOUCHES_MAX = INT32_MAX };

/* Two boxes of a frame that overlap, by their places in it. */
struct sac_eval_touch {
    double similarity; /* IoU, over 0 */
    int    gt, track;
};

/* Frames without a box are not kept. */
struct sac_eval_frame {
    int gt_count, track_count, touch_count;
};

/* Two ids that overlap somewhere. */
struct sac_eval_pair {
    int gt, track;
};

/* Ids count from 0 without gaps. */
struct sac_eval_data {
    sac_context           *ctx;
    struct sac_eval_frame *frames;  /* [frames_kept] */
    int                   *gt;      /* [gt_dets] ids, frame by frame */
    int                   *track;   /* [track_dets] */
    struct sac_eval_touch *touches; /* [touch_count] row by row */
    int32_t               *pair_of; /* [touch_count] of its ids */
    struct sac_eval_pair  *pairs;   /* [pair_count] by ground-truth id, then by track id */
    size_t                 frames_kept, touch_count, pair_count;
    int                    frame_count;
    int                    gt_ids, track_ids;
    int64_t                gt_dets, track_dets;
    int                    gt_max, track_max; /* most in one frame, before preprocessing */
    size_t frames_capacity, gt_capacity, track_capacity, touch_capacity, pair_capacity;
};

/* One frame after the other:
 *
 *     struct sac_eval_view f = {0};
 *     while (sac_eval_next(data, &f)) */
struct sac_eval_view {
    struct sac_eval_frame        now;
    const int                   *gt, *track;
    const struct sac_eval_touch *touches;
    const int32_t               *pair_of;
    size_t                       next; /* frame */
};
bool sac_eval_next(const struct sac_eval_data *data, struct sac_eval_view *view);

/* eval_preprocess.c. On failure data is to be finished too. */
sac_result sac_eval_prepare(struct sac_eval_data *data, const char *name,
                            const struct sac_mot_file *gt, const struct sac_mot_file *tracks,
                            const struct sac_eval_params *params);
void       sac_eval_data_finish(struct sac_eval_data *data);
/* eval_ids.c: ids without gaps, and which of them meet; part of preparing. */
sac_result sac_eval_number(struct sac_eval_data *data, const char *name);

/* eval_match.c: the matching of the greatest total score. */
struct sac_eval_matcher {
    struct sac_arena arena;
    int              capacity; /* of the larger side */
    double          *cost;     /* [smaller,larger] */
    double          *u, *v, *shortest;
    int             *path, *row_of_col, *col_of_row, *remaining;
    int             *rows_seen, *cols_seen; /* lists */
    int             *col_round;             /* the latest round that used a column */
    int              round;
};
bool sac_eval_matcher_init(struct sac_eval_matcher *m, int rows_max, int cols_max);
void sac_eval_matcher_finish(struct sac_eval_matcher *m);
/* touches      [n] row by row; score [n], 0 or more, is 0 for all other pairs.
 * touch_of_row [rows] which of them each row got; -1: none with a score. */
void sac_eval_match(struct sac_eval_matcher *m, const struct sac_eval_touch *touches,
                    const double *score, int n, int rows, int cols, int *touch_of_row);

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
                    "no memory to score %lld boxes of ground truth against %lld of tracks",
                    (long long)data->gt_dets, (long long)data->track_dets);
}

#endif
