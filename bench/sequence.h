/* SPDX-License-Identifier: Apache-2.0 */
/* A MOTChallenge sequence with ready-made detections, run through a tracker and scored. Shared by
 * bench/tracking.c and tests/golden/test_tracking.c. */
#ifndef SAC_BENCH_SEQUENCE_H
#define SAC_BENCH_SEQUENCE_H

#include <stdbool.h>

#include <saccade/saccade.h>

struct sequence {
    sac_context           *ctx;
    struct sac_mot_file    det, truth;
    struct sac_mot_seqinfo info;
    double                 fps;       /* of the video's timestamps */
    const char            *video;     /* path, or NULL: it is not there; borrowed */
    float                 *embedding; /* [det.count,dim], or NULL before sequence_embed */
    int                    dim;
    double                *embed_us; /* [frames + 1] of each frame's embeddings */
};

/* folder   holds det_yolox_nano.txt, gt.txt and seqinfo.ini. */
sac_result sequence_open(sac_context *ctx, const char *folder, const char *video, double fps,
                         struct sequence *out);
void       sequence_close(struct sequence *seq);
/* Embeddings of all detections of score_min or more, from the video. */
sac_result sequence_embed(struct sequence *seq, sac_device *dev, const char *model,
                          float score_min);

struct sequence_run {
    struct sac_tracker_params params;
    bool                      embeddings;
    sac_device               *camera; /* camera motion from the video, decoded there; NULL: none */
    int  step, offset; /* keep frames offset, offset + step, ... (from 0); others are dropped */
    bool count_frames; /* pretend that kept frames follow each other without a gap */
};
struct sequence_result {
    struct sac_eval_result score; /* without the benchmark's preprocessing, on the kept frames */
    double                 median_us; /* of a frame: embeddings, camera motion and tracker */
};
struct sequence_run sequence_run_default(enum sac_tracker_kind kind);
sac_result          sequence_track(struct sequence *seq, const struct sequence_run *run,
                                   struct sequence_result *out);

/* The same from the video alone, as the program does it: detector, embeddings where reid is a path
 * (NULL: none), tracker.
 * out->median_us stays 0. */
sac_result sequence_track_video(struct sequence *seq, enum sac_tracker_kind kind,
                                const char *detector, const char *reid,
                                struct sequence_result *out);

#endif
