/* SPDX-License-Identifier: Apache-2.0 */
#include "track/core.h"

/* In heights of the box, so for people and vehicles alike: a detector's box is off by a twentieth;
 * a new object may move at 2 heights a second (a runner, a car); within a second speed changes by
 * half a height per second. Size wanders more than it grows steadily, as limbs come and go. */
const struct sac_motion sac_tracker_motion = {
    .place = {.measure = 0.05, .position_walk = 0.15, .velocity_walk = 0.5, .velocity_start = 2},
    .size = {.measure = 0.05, .position_walk = 0.2, .velocity_walk = 0.02, .velocity_start = 0.5},
};

/* Boxes are grown by this many standard deviations of the filter's place before they are compared;
 * half of it up and down, as things on the ground rarely move so. */
static const double REACH_X = 0.5, REACH_Y = 0.25;
/* A tentative target may be missed this long. */
static const double TENTATIVE_MISSED_MAX_S = 0.1;
/* Boxes of a trail are this far apart. */
static const double TRAIL_STEP_S = 0.1;

/* ---- targets ---- */

static void place_box(struct sac_target *t)
{
    t->box = sac_kalman_box(&t->filter);
    t->reach_x = (float)(REACH_X * sqrt(t->filter.axis[SAC_AXIS_X].xx));
    t->reach_y = (float)(REACH_Y * sqrt(t->filter.axis[SAC_AXIS_Y].xx));
}

/* A box with a low score is a worse measurement: twice the noise at a score of zero. */
void sac_target_correct(struct sac_target *t, const struct sac_box *box, float score)
{
    sac_kalman_update(&t->filter, &sac_tracker_motion, box, 0.5 + 0.5 * score);
}

static void remember_trail(struct sac_target *t, const struct sac_box *box, int64_t now_us)
{
    if (t->trail_count && sac_seconds(t->trail_us, now_us) < TRAIL_STEP_S)
        return;
    t->trail[t->trail_count++ % SAC_TRAIL_MAX] = *box;
    t->trail_us = now_us;
}

static void remember(sac_tracker *trk, struct sac_target *t, const struct sac_candidate *candidate)
{
    t->score = candidate->score;
    t->last_us = trk->now_us;
    if (candidate->score >= trk->params.score_high)
        t->strong_us = trk->now_us;
    t->seen_box = candidate->box;
    t->seen_filter = t->filter;
    remember_trail(t, &candidate->box, trk->now_us);
    place_box(t);
    if (!candidate->embedding)
        return;
    if (t->slot < 0)
        t->slot = sac_gallery_take(&trk->gallery);
    sac_gallery_add(&trk->gallery, t->slot, candidate->embedding, (double)trk->now_us * 1e-6);
}

static void confirm(sac_tracker *trk, struct sac_target *t)
{
    if (t->state == SAC_TRACK_TENTATIVE)
        t->id = sac_context_next_track_id(trk->ctx);
    t->state = SAC_TRACK_CONFIRMED;
}

/* ---- the steps of a frame ---- */

/* Faint detections do not keep a target alive by themselves: static clutter would stay for ever. */
static bool is_gone(const sac_tracker *trk, const struct sac_target *t)
{
    return sac_seconds(t->strong_us, trk->now_us) > trk->params.lost_max_s;
}

/* Called after the matching, so that at any frame rate the target had a chance to be seen again. */
static bool is_unfounded(const sac_tracker *trk, const struct sac_target *t)
{
    return t->state == SAC_TRACK_TENTATIVE && t->candidate < 0 &&
           sac_seconds(t->last_us, trk->now_us) > TENTATIVE_MISSED_MAX_S;
}

static void forget(sac_tracker *trk, struct sac_target *t)
{
    if (t->slot >= 0)
        sac_gallery_give_back(&trk->gallery, t->slot);
}

static void forget_those(sac_tracker *trk,
                         bool (*over)(const sac_tracker *trk, const struct sac_target *t))
{
    size_t kept = 0;
    for (size_t i = 0; i < trk->target_count; i++) {
        struct sac_target *t = &trk->targets[i];
        if (over(trk, t))
            forget(trk, t);
        else if (kept++ != i)
            trk->targets[kept - 1] = *t;
    }
    trk->target_count = kept;
}

static void predict(sac_tracker *trk, double dt_s)
{
    for (size_t i = 0; i < trk->target_count; i++) {
        struct sac_target *t = &trk->targets[i];
        t->candidate = -1;
        sac_kalman_predict(&t->filter, &sac_tracker_motion, dt_s);
        place_box(t);
    }
}

static void update_targets(sac_tracker *trk)
{
    for (size_t i = 0; i < trk->target_count; i++) {
        struct sac_target *t = &trk->targets[i];
        if (t->candidate < 0) {
            if (t->state == SAC_TRACK_CONFIRMED)
                t->state = SAC_TRACK_LOST;
            continue;
        }
        const struct sac_candidate *candidate = &trk->candidates[t->candidate];
        if (trk->row->correct)
            trk->row->correct(trk, t, candidate);
        else
            sac_target_correct(t, &candidate->box, candidate->score);
        remember(trk, t, candidate);
        if (t->state != SAC_TRACK_TENTATIVE ||
            sac_seconds(t->first_us, trk->now_us) >= trk->params.confirm_s)
            confirm(trk, t);
    }
}

/* The place of a new target: after the others or, at the limit, that of the lost target not seen
 * for longest. NULL: all are visible. */
static struct sac_target *place_for_one(sac_tracker *trk)
{
    if (trk->target_count < (size_t)trk->params.track_max)
        return &trk->targets[trk->target_count++];
    struct sac_target *oldest = NULL;
    for (size_t i = 0; i < trk->target_count; i++) {
        struct sac_target *t = &trk->targets[i];
        if (t->candidate < 0 && (!oldest || t->last_us < oldest->last_us))
            oldest = t;
    }
    if (oldest)
        forget(trk, oldest);
    return oldest;
}

/* In a stream's first frame nothing could have confirmed a target before, so all are shown at
 * once. */
static void start_targets(sac_tracker *trk)
{
    for (size_t i = 0; i < trk->candidate_count; i++) {
        struct sac_candidate *candidate = &trk->candidates[i];
        if (candidate->taken || candidate->score < trk->params.score_new)
            continue;
        struct sac_target *t = place_for_one(trk);
        if (!t)
            return;
        *t = (struct sac_target){.class_id = candidate->class_id,
                                 .first_us = trk->now_us,
                                 .strong_us = trk->now_us,
                                 .candidate = (int)i,
                                 .slot = -1};
        sac_kalman_start(&t->filter, &sac_tracker_motion, &candidate->box);
        remember(trk, t, candidate);
        if (trk->first_frame)
            confirm(trk, t);
    }
}

static struct sac_track describe(const sac_tracker *trk, const struct sac_target *t)
{
    return (struct sac_track){.id = t->id,
                              .x0 = t->box.x0,
                              .y0 = t->box.y0,
                              .x1 = t->box.x1,
                              .y1 = t->box.y1,
                              .score = t->score,
                              .class_id = t->class_id,
                              .state = t->state,
                              .vx = (float)t->filter.axis[SAC_AXIS_X].v,
                              .vy = (float)t->filter.axis[SAC_AXIS_Y].v,
                              .first_us = t->first_us,
                              .last_us = t->last_us,
                              .detection =
                                  t->candidate < 0 ? -1 : trk->candidates[t->candidate].index};
}

struct sac_track_view sac_tracker_show(sac_tracker *trk)
{
    struct sac_track_view view = {.tracks = trk->view};
    for (size_t i = 0; i < trk->target_count; i++)
        if (trk->targets[i].state == SAC_TRACK_CONFIRMED)
            trk->view[view.count++] = describe(trk, &trk->targets[i]);
    return view;
}

void sac_tracker_live(sac_tracker *trk, const struct sac_similarity *camera, double dt_s)
{
    /* From here on all targets are in this frame's pixels. */
    for (size_t i = 0; camera && i < trk->target_count; i++)
        sac_kalman_move(&trk->targets[i].filter, camera);
    predict(trk, dt_s);
    if (trk->input.unseen)
        return;
    forget_those(trk, is_gone);
    trk->row->associate(trk);
    update_targets(trk);
    forget_those(trk, is_unfounded);
    start_targets(trk);
}

int sac_tracker_wants_embeddings(const sac_tracker *trk)
{
    if (!trk)
        return 0;
    return trk->row->appearance && trk->params.embedding_dim > 0;
}
