/* SPDX-License-Identifier: Apache-2.0 */
/* What saccade tune knows: the sequences, the knobs, and what each point scores on each sequence.
 */
#ifndef SAC_CLI_TUNE_H
#define SAC_CLI_TUNE_H

#include <stdio.h>

#include <saccade/eval.h>

#include "climb.h"
#include "gain.h"
#include "truth.h"

enum {
    TUNE_SEQUENCES_MAX = 64,
    TUNE_KNOBS = 8,
    TUNE_VALUES_MAX = 16,
    TUNE_PATH_SIZE = TRUTH_PATH_SIZE + 512
};

/* ---- tune_data.c: what a tracker is given, and what it should find ---- */

struct tune_sequence {
    const struct truth   *truth;
    char                  boxes_from[TUNE_PATH_SIZE]; /* the file, or the video */
    char                  pictures[TUNE_PATH_SIZE];   /* of which embeddings are made; or empty */
    struct sac_mot_file   gt;
    struct sac_detection *boxes;      /* of all frames, one after the other; owned */
    size_t               *first;      /* [frames + 1] where each frame's boxes begin; owned */
    float                *embeddings; /* [boxes,dim]; owned. NULL: boxes are tracked by motion */
    int                   frames, dim;
    double                fps;
    bool                  networks;   /* the boxes are a detector's of this run */
    bool                  preprocess; /* what MOTChallenge leaves out is left out */
};
/* Where each sequence's boxes come from; nothing is read yet. sequences [truths->count]. */
int tune_find(const struct settings *s, const struct truths *truths,
              struct tune_sequence *sequences, struct fault *fault);
/* Read or detect; each sequence's networks run once. Ends early with STATUS_OK after Ctrl-C. */
int  tune_read(struct settings *s, sac_context *ctx, struct tune_sequence *sequences, size_t count,
               struct fault *fault);
void tune_sequence_finish(struct tune_sequence *sequence);

/* HOTA, 0..100, of the tracker on one sequence.
 * out      -INFINITY for parameters that no tracker takes. */
int tune_score(sac_context *ctx, const struct tune_sequence *sequence,
               const struct sac_tracker_params *params, double *out, struct fault *fault);

/* ---- tune_search.c: which parameters are tried ---- */

/* A parameter and the values that it may have, the baseline's among them. */
struct tune_knob {
    const char *name; /* in YAML's section tracker */
    const char *option;
    size_t      offset; /* in struct sac_tracker_params, a float */
    bool        whole;  /* or an int */
    float       values[TUNE_VALUES_MAX];
    int         count, start;
};
/* Of a kind of tracker; knobs [TUNE_KNOBS], returns how many. */
int tune_knobs(const struct sac_tracker_params *baseline, bool appearance, struct tune_knob *knobs);
/* The tracker's parameters at a point. */
struct sac_tracker_params tune_params(const struct sac_tracker_params *baseline,
                                      const struct tune_knob *knobs, int count, const int *point);

struct tune_point {
    int    at[CLIMB_KNOBS_MAX];
    double hota[TUNE_SEQUENCES_MAX]; /* of each sequence; NAN: not measured */
};
/* One search for each sequence that is left out, and the last for none: each sees what it is told
 * of the others alone. */
struct tune_search {
    const struct tune_knob *knobs;
    struct climb_knob       climb_knobs[TUNE_KNOBS];
    int                     knob_count, sequences, trials_max;
    struct climb            climbs[TUNE_SEQUENCES_MAX + 1];
    struct tune_point      *points; /* what was measured, of all searches; owned */
    size_t                  count, capacity;
    /* Measure one sequence at a point; a status other than 0 ends the search. */
    int (*measure)(void *user, int sequence, const int *point, double *out);
    /* true: end now. Asked before each measurement. */
    bool (*ended)(void *user);
    void *user;
};
void tune_search_init(struct tune_search *search, const struct tune_knob *knobs, int knob_count,
                      int sequences, int trials, uint64_t seed);
void tune_search_finish(struct tune_search *search);
/* Until all searches are complete, have made their trials or were ended. A negative status is a
 * lack of memory, others are measure's. */
int tune_search_run(struct tune_search *search);

struct tune_fold {
    int    best[CLIMB_KNOBS_MAX]; /* what the other sequences chose */
    double baseline, tuned;       /* HOTA of the one that was left out; NAN: not measured */
};
/* What a search chose scores on the sequence that it never saw. */
int tune_search_fold(struct tune_search *search, int left_out, struct tune_fold *out);

/* ---- tune_report.c ---- */

struct tune_result {
    const struct tune_sequence      *sequences;
    const struct tune_search        *search;
    const struct sac_tracker_params *baseline;
    struct tune_fold                 folds[TUNE_SEQUENCES_MAX];
    struct gain                      gain; /* of the folds, in HOTA */
    bool                             real; /* more than noise */
    const char                      *reid; /* whose embeddings were used; NULL: none */
    double                           seconds;
    uint64_t                         seed;
    const char                      *ended_by; /* "--budget", "Ctrl-C"; NULL: it is complete */
};
void tune_print(const struct tune_result *result, FILE *out);
void tune_write_yaml(const struct tune_result *result, FILE *out);

#endif
