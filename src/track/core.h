/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by all trackers: the life of a track from its first detection to its end. A kind of
 * tracker is one row: its defaults and the functions in which it differs, mostly a few rounds of
 * matching. trackers.c holds the table.
 *
 * For each frame: all targets are predicted to its time, those lost for too long are dropped, the
 * row pairs targets with candidates, the filters are updated, and unmatched candidates start
 * targets. */
#ifndef SAC_TRACK_CORE_H
#define SAC_TRACK_CORE_H

#include <math.h>

#include <saccade/track.h>

#include "base/base.h"
#include "track/assign.h"
#include "track/cmc.h"
#include "track/gallery.h"
#include "track/kalman.h"
#include "track/wave.h"

enum { SAC_TRAIL_MAX = 4 };

/* An object that is followed. */
struct sac_target {
    int64_t              id; /* 0 until it is confirmed */
    enum sac_track_state state;
    int                  class_id;
    float                score;             /* of the latest detection */
    int64_t              first_us, last_us; /* first and latest detection */
    int64_t              strong_us;         /* latest detection of score_high or more */
    int                  candidate;         /* index of this frame's candidate, or -1 */
    struct sac_kalman    filter;            /* now */
    struct sac_kalman    seen_filter;       /* as the latest detection left it */
    struct sac_box       box;               /* the filter's */
    struct sac_box       seen_box;          /* the latest detection */
    struct sac_box trail[SAC_TRAIL_MAX];    /* ring of detections some time apart, for directions */
    int64_t        trail_us;                /* of its newest */
    unsigned       trail_count;             /* ever added */
    float          reach_x, reach_y;        /* possible error of the box, pixels */
    int            slot;                    /* in the gallery, or -1 */
    int asked; /* which object of the tracker's ask it is; with a slot on a device, in one of
                  the row's appearance_states */
};

/* A valid detection of this frame. */
struct sac_candidate {
    struct sac_box box;
    float          score;
    int            class_id;
    int            index; /* in the caller's list */
    bool           taken;
    const float   *embedding; /* [embedding_dim], where the gallery is, or NULL */
    int asked; /* which candidate of the tracker's ask it is; with embedding on a device */
};

/* One round of matching. */
struct sac_round {
    unsigned states;               /* bits 1 << state of the targets that take part */
    float    score_min, score_max; /* of the candidates, the upper one not included */
    /* compare targets at their last detection, not at the prediction */
    bool at_seen_box;
    /* The cost of the pair, given the overlap of their boxes, 0..1; never called for pairs that do
     * not overlap. */
    double (*cost)(const sac_tracker *trk, const struct sac_target *t,
                   const struct sac_candidate *candidate, double overlap);
    double cost_max;
};

struct sac_tracker_row {
    enum sac_tracker_kind kind;
    const char           *name, *what;
    bool                  appearance, camera; /* whether it can use embeddings and camera motion */
    unsigned appearance_states; /* bits 1 << state of the targets whose appearance it compares */
    void (*defaults)(struct sac_tracker_params *p); /* where they differ from the common ones; or
                                                       NULL */
    void (*associate)(sac_tracker *trk);
    /* Take the box of a candidate into the target's filter; NULL: sac_target_correct. */
    void (*correct)(sac_tracker *trk, struct sac_target *t, const struct sac_candidate *candidate);
};
extern const struct sac_tracker_row sac_tracker_sort, sac_tracker_bytetrack, sac_tracker_ocsort,
    sac_tracker_botsort;
/* NULL when there is none of that kind. */
const struct sac_tracker_row *sac_tracker_row_of(enum sac_tracker_kind kind);

/* Arrays that one round of matching works in. */
struct sac_match_room {
    struct sac_assign assign;
    double           *cost;
    int              *rows, *cols, *col_of_row, *row_of_col;
    size_t cost_capacity, rows_capacity, cols_capacity, col_of_row_capacity, row_of_col_capacity;
};

struct sac_tracker {
    sac_context                  *ctx;
    const struct sac_tracker_row *row;
    struct sac_tracker_params     params;
    int64_t                       now_us;
    bool                          started;     /* a frame was seen */
    bool                          first_frame; /* this is the first one */
    bool                          blind_said;  /* the lack of camera motion has been logged */
    struct sac_target            *targets;
    struct sac_candidate         *candidates;
    struct sac_track             *view;
    size_t                        target_count, candidate_count;
    size_t                        target_capacity, candidate_capacity, view_capacity;
    struct sac_match_room         room;
    struct sac_gallery            gallery;
    struct sac_cmc                cmc;
    struct sac_camera_box    *moving; /* [target_count] boxes that the camera's motion leaves out */
    size_t                    moving_capacity;
    struct sac_camera_corner *corner; /* of the last frame with keeps_corners */
    size_t                    corner_capacity;
    int                       corner_count, corner_shrink;

    /* Of the frame between sac_tracker_begin and sac_tracker_end. */
    struct sac_tracker_input  input;      /* frame: only where its motion is to be had */
    struct sac_camera_job     camera_job; /* with input.frame */
    struct sac_camera_move    move;       /* of a frame on a device: the result */
    struct sac_appearance_ask ask;        /* candidates: 0 where no embeddings are on a device */
    void                    **ask_slots;
    const float             **ask_rows;
    size_t                    ask_slots_capacity, ask_rows_capacity;
    bool                      looked; /* sac_tracker_look was called */
    const float              *apart;  /* the answer: [1 + ask.objects, ask.candidates] */

    struct sac_embedding_rows held; /* the rows that the gallery's updates read */
    struct sac_wave *own; /* for sac_tracker_track, created when a device is first needed */
};

extern const struct sac_motion sac_tracker_motion;

static inline double sac_seconds(int64_t from_us, int64_t to_us)
{
    return ((double)to_us - (double)from_us) * 1e-6;
}

/* match.c */
bool sac_match_reserve(struct sac_match_room *room, size_t targets, size_t candidates);
void sac_match_finish(struct sac_match_room *room);
/* Pair free targets with free candidates at the least total cost. */
void sac_tracker_round(sac_tracker *trk, const struct sac_round *round);
/* Costs: 1 - overlap, and the same with the overlap times the candidate's score. */
double sac_cost_overlap(const sac_tracker *trk, const struct sac_target *t,
                        const struct sac_candidate *candidate, double overlap);
double sac_cost_scored(const sac_tracker *trk, const struct sac_target *t,
                       const struct sac_candidate *candidate, double overlap);
/* The second and third round of ByteTrack: faint candidates for visible targets, then strong ones
 * for unconfirmed targets. */
void sac_tracker_round_faint(sac_tracker *trk);
void sac_tracker_round_tentative(sac_tracker *trk);

/* Cosine distance between embeddings; the target has a slot and the candidate an embedding. */
static inline double sac_tracker_apart(const sac_tracker *trk, const struct sac_target *t,
                                       const struct sac_candidate *candidate)
{
    if (!trk->gallery.dev)
        return sac_gallery_distance(&trk->gallery, t->slot, candidate->embedding);
    return trk->apart[(t->asked + 1) * trk->ask.candidates + candidate->asked];
}

/* core.c */
void sac_target_correct(struct sac_target *t, const struct sac_box *box, float score);
/* The life of all targets over this frame, whose candidates are there. */
void sac_tracker_live(sac_tracker *trk, const struct sac_similarity *camera, double dt_s);
struct sac_track_view sac_tracker_show(sac_tracker *trk);

/* update.c: a frame in two halves. Between them the caller provides the device's results: for ask,
 * when it has candidates, and move, for a frame on a device. */
sac_result sac_tracker_begin(sac_tracker *trk, const struct sac_tracker_input *in);
/* The device has finished the gallery's updates and the results are available. */
void sac_tracker_answer(sac_tracker *trk, const float *apart, const struct sac_camera_move *move);
/* The part of it that needs no other tracker's turn: camera motion, where the host finds it. */
void sac_tracker_look(sac_tracker *trk);
void sac_tracker_end(sac_tracker *trk, struct sac_track_view *out);
/* There is no result: the state on the device is reset. */
void sac_tracker_cancel(sac_tracker *trk);
/* Releases the rows that the gallery's updates read. */
void sac_tracker_release(sac_tracker *trk);
/* The updates are queued: the references to their rows move to *out. */
void sac_tracker_let_go(sac_tracker *trk, struct sac_embedding_rows *out);

enum {
    SAC_STATES_KNOWN = 1 << SAC_TRACK_CONFIRMED | 1 << SAC_TRACK_LOST,
    SAC_STATES_VISIBLE = 1 << SAC_TRACK_CONFIRMED,
    SAC_STATES_TENTATIVE = 1 << SAC_TRACK_TENTATIVE,
    SAC_STATES_ANY = SAC_STATES_KNOWN | SAC_STATES_TENTATIVE
};

#endif
