/* SPDX-License-Identifier: Apache-2.0 */
/* Scores against ground truth.
 *
 * Of tracks: HOTA (Luiten et al., IJCV 2021), CLEAR MOT (Bernardin and Stiefelhagen, 2008),
 * Identity (Ristani et al., 2016). The values equal TrackEval's.
 *
 * Of masks: IoU; boundary F (Perazzi et al., CVPR 2016, the F of DAVIS); errors of alpha (Rhemann
 * et al., CVPR 2009); flicker.
 *
 *     sac_mask_report *report = NULL;
 *     sac_result       res = sac_mask_evaluate(ctx, "gt", "mattes", NULL, &report);
 *     if (res == SAC_OK)
 *         printf("%g\n", sac_mask_report_combined(report)->iou_mean);
 *     sac_mask_report_destroy(&report);
 */
#ifndef SACCADE_EVAL_H
#define SACCADE_EVAL_H

#include <saccade/frame.h>
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

/* ---- masks ---- */

/* What the numbers of a mask's pixels mean. A pixel is inside where its alpha is at least 128, or
 * its number is not 0. */
enum sac_mask_values {
    SAC_MASK_VALUES_AUTO = 0, /* a palette: objects; else alpha */
    SAC_MASK_VALUES_ALPHA,    /* 0..255: how much of the pixel belongs to what was looked for */
    SAC_MASK_VALUES_OBJECTS,  /* numbers of objects, together one mask; 255: not scored */
    SAC_MASK_VALUES_CLASSES   /* numbers of classes, a mask each; 255: not scored */
};

/* The scores of one picture, or of several together. What was not computed is NAN: alpha's errors
 * of class maps and of COCO's masks, flicker without a video. */
struct sac_mask_scores {
    char    name[128]; /* of the picture, sequence or class, or "combined" */
    int64_t pictures;  /* a class counts in the pictures that it is in, on either side; where only
                          flicker is scored: the masks */
    double iou; /* of all pixels of the pictures together; 1 where nothing is on both sides */
    /* means over the pictures */
    double iou_mean;
    double boundary_f, boundary_precision, boundary_recall; /* 0..1 */
    double sad;      /* sum of the differences of alpha, which is 0..1 */
    double mse;      /* mean of their squares */
    double gradient; /* sum of the squared differences of alpha's gradients */
    /* 0..1: what of the matte differs from the matte before it, moved along the motion of the
     * picture, where the picture itself is the same */
    double flicker;
    /* sums that sac_mask_combine needs */
    int64_t  inside_both, inside_either;    /* pixels */
    double   flicker_changed, flicker_area; /* pixels */
    uint64_t reserved[12];                  /* 0 */
};

struct sac_mask_eval_params {
    enum sac_mask_values gt_values, mask_values; /* default: auto */
    /* NULL (default): no flicker. Else the video, or the folder of pictures, that the masks were
     * made of, or a folder with one for each sequence. */
    const char *video;
    /* NULL (default): all that COCO's files or class maps have, against a matte the persons. Else
     * comma-separated numbers, or names of COCO's categories. */
    const char *classes;
    double      tolerance; /* of the contour, share of the picture's diagonal; default 0.008 */
    double      area_min;  /* 0..1: of the picture, of masks of the ground truth that are scored;
                              default 0, all */
    double   score_min;    /* of COCO results that are scored; default 0.5 */
    uint64_t reserved[8];  /* 0 */
};
SAC_API struct sac_mask_eval_params sac_mask_eval_params_default(void);

/* Score one matte. Both are SAC_PIXEL_GRAY8 in host memory and of one size; their numbers are
 * alpha, or what the params say. flicker is NAN.
 *
 * params   NULL: the defaults.
 * Threads  any.
 * Errors   SAC_ERR_ARG where the frames do not fit; SAC_ERR_MEMORY. */
SAC_API sac_result sac_mask_score(sac_context *ctx, const sac_frame *gt, const sac_frame *mask,
                                  const struct sac_mask_eval_params *params,
                                  struct sac_mask_scores            *out);
/* Combine n scores of pictures or of sequences; the name is "combined". Any thread. */
SAC_API void sac_mask_combine(const struct sac_mask_scores *parts, size_t n,
                              struct sac_mask_scores *out);

typedef struct sac_mask_report sac_mask_report;
/* Score files. Each side is one of
 *   a folder of PNG or PGM files, also in folders of sequences, as DAVIS has them
 *   a JSON file of COCO: a data set with annotations, or a list of results; RLE or polygons
 *   a video: its alpha or, where it has none or one that is opaque throughout, its luma
 * Pictures belong together by name (without folder and ending where the whole names differ), where
 * no name is common, or a side has none, by number: of the frame, COCO's image_id, the last digits
 * of a file's name. Pictures that are on one side only are counted and not scored; those without
 * an entry in a list of results are empty there.
 *
 * gt       NULL: flicker alone.
 * out      owned by the caller, destroyed with sac_mask_report_destroy.
 * Threads  any.
 * Errors   SAC_ERR_IO, SAC_ERR_FORMAT (no mask can be read from a file), SAC_ERR_ARG (sizes that
 *          differ, no picture in common), SAC_ERR_LIMIT, SAC_ERR_MEMORY; the sentence names the
 *          file. */
SAC_API sac_result sac_mask_evaluate(sac_context *ctx, const char *gt, const char *masks,
                                     const struct sac_mask_eval_params *params,
                                     sac_mask_report                  **out);
SAC_API void       sac_mask_report_destroy(sac_mask_report **report);

/* These may be called from any thread; what they return is borrowed from the report. */
SAC_API const struct sac_mask_scores *sac_mask_report_combined(const sac_mask_report *report);
/* The lists of a report. */
enum sac_mask_group {
    SAC_MASK_PICTURES = 0, /* all classes of a picture together */
    SAC_MASK_SEQUENCES,    /* none where there is only one */
    SAC_MASK_CLASSES       /* none where one matte is scored; the combined scores are their mean */
};
/* The scores of a group, [count]. */
SAC_API const struct sac_mask_scores *
sac_mask_report_list(const sac_mask_report *report, enum sac_mask_group group, size_t *count);
/* Pictures without a counterpart. */
struct sac_mask_missing {
    int64_t  gt;          /* masks that have no ground truth */
    int64_t  masks;       /* ground truth that has no mask */
    int64_t  empty;       /* of the pictures scored: without an entry in a list of results */
    int64_t  frames;      /* masks without a frame in the video */
    uint64_t reserved[4]; /* 0 */
};
SAC_API struct sac_mask_missing sac_mask_report_missing(const sac_mask_report *report);

#ifdef __cplusplus
}
#endif
#endif
