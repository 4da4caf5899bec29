/* SPDX-License-Identifier: Apache-2.0 */
/* A tracker processes a frame in two halves: everything that can fail or needs a device comes
 * first. */
#include "track/core.h"

/* No picture is this large, and the arithmetic stays far from its limits. */
static const float COORDINATE_MAX = 1e6f;
/* Bytes reserved for objects' embeddings before the first frame. */
enum { APPEARANCE_BYTES = 4 << 20 };

/* ---- checks ---- */

static sac_result check_embeddings(const sac_tracker *trk, const struct sac_tracker_input *in)
{
    const struct sac_embedding_rows *embeddings = &in->embeddings;
    const int                        dim = trk->params.embedding_dim;
    if (!embeddings->base)
        return SAC_OK;
    if (embeddings->dim != dim)
        return SAC_FAIL(trk->ctx, SAC_ERR_ARG,
                        "tracker: embeddings of %d numbers; its params say %d", embeddings->dim,
                        dim);
    for (size_t i = 0; embeddings->row && i < in->count; i++)
        if (embeddings->row[i] >= embeddings->count)
            return SAC_FAIL(trk->ctx, SAC_ERR_ARG, "tracker: embedding %d of %d",
                            (int)embeddings->row[i], embeddings->count);
    if (!embeddings->row && in->count > (size_t)embeddings->count)
        return SAC_FAIL(trk->ctx, SAC_ERR_ARG, "tracker: %zu detections and %d embeddings",
                        in->count, embeddings->count);
    return SAC_OK;
}

static sac_result check_call(const sac_tracker *trk, const struct sac_tracker_input *in)
{
    if (in->count && !in->det)
        return SAC_FAIL(trk->ctx, SAC_ERR_ARG, "tracker: %zu detections at no address", in->count);
    if (trk->started && in->pts_us < trk->now_us)
        return SAC_FAIL(trk->ctx, SAC_ERR_ARG,
                        "tracker: time steps back from %lld to %lld us; frames come in order",
                        (long long)trk->now_us, (long long)in->pts_us);
    return check_embeddings(trk, in);
}

static const char *place_name(sac_device *dev)
{
    return dev ? sac_device_name(dev) : "host memory";
}

/* The gallery is on the device of the first embeddings. */
static sac_result place_gallery(sac_tracker *trk, const struct sac_embedding_rows *embeddings)
{
    if (!embeddings->base || embeddings->dev == trk->gallery.dev)
        return SAC_OK;
    for (size_t i = 0; i < trk->target_count; i++)
        if (trk->targets[i].slot >= 0)
            return SAC_FAIL(trk->ctx, SAC_ERR_ARG,
                            "tracker: embeddings in %s; earlier ones were in %s",
                            place_name(embeddings->dev), place_name(trk->gallery.dev));
    sac_tracker_release(trk);
    sac_gallery_move(&trk->gallery, embeddings->dev);
    return SAC_OK;
}

static bool reserve_appearance(sac_tracker *trk, size_t targets, size_t candidates)
{
    return sac_gallery_reserve(&trk->gallery, targets) &&
           (!trk->gallery.dev || (sac_grow((void **)&trk->ask_slots, &trk->ask_slots_capacity,
                                           trk->target_count, sizeof *trk->ask_slots) &&
                                  sac_grow((void **)&trk->ask_rows, &trk->ask_rows_capacity,
                                           candidates, sizeof *trk->ask_rows)));
}

/* A frame in host memory whose corners are kept. */
static bool keeps_corners(const struct sac_tracker_input *in)
{
    return in->keeps_corners && in->frame && !sac_cmc_is_remote(in->frame);
}

static bool has_motion(const struct sac_tracker_input *in)
{
    return in->frame || in->corners.shrink > 0;
}

static bool reserve_camera(sac_tracker *trk, const struct sac_tracker_input *in)
{
    if (has_motion(in) && !sac_grow((void **)&trk->moving, &trk->moving_capacity, trk->target_count,
                                    sizeof *trk->moving))
        return false;
    if (in->frame && !sac_cmc_reserve(&trk->cmc, in->frame))
        return false;
    return !keeps_corners(in) ||
           sac_grow((void **)&trk->corner, &trk->corner_capacity,
                    (size_t)sac_camera_cells_of(&trk->cmc.now), sizeof *trk->corner);
}

/* Allocates everything that this frame may need, before anything changes. */
static sac_result reserve(sac_tracker *trk, const struct sac_tracker_input *in)
{
    size_t candidates = in->count;
    size_t targets = SAC_MIN(trk->target_count + candidates, (size_t)trk->params.track_max);
    bool   ok =
        sac_grow((void **)&trk->targets, &trk->target_capacity, targets, sizeof *trk->targets) &&
        sac_grow((void **)&trk->candidates, &trk->candidate_capacity, candidates,
                 sizeof *trk->candidates) &&
        sac_grow((void **)&trk->view, &trk->view_capacity, targets, sizeof *trk->view) &&
        sac_match_reserve(&trk->room, trk->target_count, candidates) &&
        (!in->embeddings.base || reserve_appearance(trk, targets, candidates)) &&
        reserve_camera(trk, in);
    if (ok)
        return SAC_OK;
    return SAC_FAIL(trk->ctx, SAC_ERR_MEMORY, "tracker: no memory for %zu tracks and %zu boxes",
                    targets, candidates);
}

sac_result sac_tracker_prepare(sac_tracker *trk, sac_device *embedding_dev, const sac_frame *like)
{
    bool ok = true;
    if (embedding_dev && sac_tracker_wants_embeddings(trk)) {
        sac_gallery_move(&trk->gallery, embedding_dev);
        ok = sac_gallery_reserve(
            &trk->gallery,
            SAC_MIN((size_t)trk->params.track_max,
                    APPEARANCE_BYTES / sac_appearance_slot_bytes(trk->gallery.shape)));
    }
    if (ok && like && trk->row->camera && trk->params.camera_motion && sac_cmc_can_read(like))
        ok = sac_cmc_reserve(&trk->cmc, like);
    return ok ? SAC_OK
              : SAC_FAIL(trk->ctx, SAC_ERR_MEMORY, "tracker: no memory for a stream's objects");
}

/* The frame if its camera motion is wanted and can be computed, else NULL. */
static const sac_frame *camera_frame(sac_tracker *trk, const sac_frame *frame)
{
    if (!frame || !trk->row->camera || !trk->params.camera_motion)
        return NULL;
    if (sac_cmc_can_read(frame))
        return frame;
    if (!trk->blind_said)
        sac_log(trk->ctx, SAC_LOG_WARN,
                "tracker: no camera motion, as frames of %dx%d are too small for it, or their "
                "device cannot find it",
                frame->width, frame->height);
    trk->blind_said = true;
    return NULL;
}

/* ---- the first half ---- */

static bool makes_sense(const struct sac_detection *d)
{
    return fabsf(d->x0) < COORDINATE_MAX && fabsf(d->y0) < COORDINATE_MAX &&
           fabsf(d->x1) < COORDINATE_MAX && fabsf(d->y1) < COORDINATE_MAX && d->x1 > d->x0 &&
           d->y1 > d->y0 && isfinite(d->score);
}

static const float *row_of(const struct sac_embedding_rows *embeddings, size_t detection)
{
    int64_t row = embeddings->row ? embeddings->row[detection] : (int64_t)detection;
    return embeddings->base && row >= 0 ? embeddings->base + (size_t)row * (size_t)embeddings->dim
                                        : NULL;
}

/* For rows on a device, the device's results say whether they have length 1. */
static void take_candidates(sac_tracker *trk)
{
    const struct sac_tracker_input *in = &trk->input;
    trk->candidate_count = 0;
    for (size_t i = 0; i < in->count; i++) {
        const struct sac_detection *det = &in->det[i];
        if (!makes_sense(det))
            continue;
        struct sac_candidate *candidate = &trk->candidates[trk->candidate_count++];
        *candidate = (struct sac_candidate){.box = {det->x0, det->y0, det->x1, det->y1},
                                            .score = SAC_CLAMP(det->score, 0.0f, 1.0f),
                                            .class_id = det->class_id,
                                            .index = (int)i};
        const float *row =
            candidate->score >= trk->params.score_high ? row_of(&in->embeddings, i) : NULL;
        if (row && (trk->gallery.dev || sac_gallery_is_unit(&trk->gallery, row)))
            candidate->embedding = row;
    }
}

static void ask_for_appearance(sac_tracker *trk)
{
    trk->ask = (struct sac_appearance_ask){.slots = trk->ask_slots, .rows = trk->ask_rows};
    if (!trk->input.embeddings.base || !trk->gallery.dev)
        return;
    for (size_t i = 0; i < trk->candidate_count; i++)
        if (trk->candidates[i].embedding) {
            trk->candidates[i].asked = trk->ask.candidates;
            trk->ask_rows[trk->ask.candidates++] = trk->candidates[i].embedding;
        }
    for (size_t i = 0; trk->ask.candidates && i < trk->target_count; i++) {
        struct sac_target *t = &trk->targets[i];
        if (t->slot < 0 || !(trk->row->appearance_states >> t->state & 1))
            continue;
        t->asked = trk->ask.objects;
        trk->ask_slots[trk->ask.objects++] = trk->gallery.slots[t->slot].memory;
    }
}

static void ask_for_camera(sac_tracker *trk)
{
    trk->corner_count = trk->corner_shrink = 0;
    if (!has_motion(&trk->input))
        return;
    const int shrink = trk->input.frame ? trk->cmc.shrink : trk->input.corners.shrink;
    for (size_t i = 0; i < trk->target_count; i++) {
        const struct sac_box *box = &trk->targets[i].box;
        const struct sac_rect rect = {box->x0, box->y0, box->x1, box->y1};
        trk->moving[i] = sac_camera_box_of(&rect, shrink);
    }
    if (trk->input.frame)
        sac_cmc_next(&trk->cmc, trk->input.frame, trk->moving, trk->target_count, &trk->camera_job);
}

sac_result sac_tracker_begin(sac_tracker *trk, const struct sac_tracker_input *in)
{
    struct sac_tracker_input input = *in;
    input.count = SAC_MIN(in->count, (size_t)trk->params.track_max);
    if (!sac_tracker_wants_embeddings(trk))
        input.embeddings = (struct sac_embedding_rows){0};
    if (!trk->row->camera || !trk->params.camera_motion)
        input.corners = (struct sac_camera_corners){0};
    input.frame = input.corners.shrink > 0 ? NULL : camera_frame(trk, in->frame);
    sac_result res = check_call(trk, &input);
    if (res == SAC_OK)
        res = place_gallery(trk, &input.embeddings);
    if (res == SAC_OK)
        res = reserve(trk, &input);
    if (res != SAC_OK)
        return res;
    trk->input = input;
    take_candidates(trk);
    ask_for_appearance(trk);
    ask_for_camera(trk);
    return SAC_OK;
}

/* ---- answers ---- */

/* Must be called when the device no longer reads the rows. */
void sac_tracker_release(sac_tracker *trk)
{
    sac_embeddings_unref(&trk->held.batch);
    sac_tensor_unref(&trk->held.tensor);
    trk->gallery.update_count = 0;
}

void sac_tracker_let_go(sac_tracker *trk, struct sac_embedding_rows *out)
{
    *out = trk->held;
    trk->held = (struct sac_embedding_rows){0};
    trk->gallery.update_count = 0;
}

static void hold(sac_tracker *trk)
{
    const struct sac_embedding_rows *embeddings = &trk->input.embeddings;
    if (embeddings->batch)
        trk->held.batch = sac_embeddings_ref(embeddings->batch);
    if (embeddings->tensor)
        trk->held.tensor = sac_tensor_ref(embeddings->tensor);
}

void sac_tracker_answer(sac_tracker *trk, const float *apart, const struct sac_camera_move *move)
{
    if (trk->ask.candidates)
        sac_tracker_release(trk);
    trk->apart = apart;
    if (move)
        trk->move = *move;
}

void sac_tracker_cancel(sac_tracker *trk)
{
    sac_device *dev = trk->gallery.dev;
    if (trk->ask.candidates) {
        sac_tracker_release(trk);
        for (size_t i = 0; i < trk->target_count; i++)
            trk->targets[i].slot = -1;
        sac_gallery_move(&trk->gallery, NULL);
        sac_gallery_move(&trk->gallery, dev);
    }
    if (trk->input.frame && trk->cmc.dev)
        sac_cmc_forget(&trk->cmc);
    trk->input = (struct sac_tracker_input){0};
    trk->ask.candidates = 0;
}

/* ---- the second half ---- */

static void drop_odd_rows(sac_tracker *trk)
{
    for (size_t i = 0; trk->ask.candidates && i < trk->candidate_count; i++)
        if (trk->candidates[i].embedding &&
            !sac_appearance_is_unit(trk->apart[trk->candidates[i].asked]))
            trk->candidates[i].embedding = NULL;
}

static void agree(sac_tracker *trk, const struct sac_camera_corners *corners)
{
    sac_camera_agree_on_host(corners, trk->moving, (int)trk->target_count, &trk->move);
}

/* All corners, instead of those alone that no object hides. */
static void look_at_all(sac_tracker *trk)
{
    trk->corner_count = sac_camera_corners_on_host(&trk->camera_job, trk->corner);
    trk->corner_shrink = trk->cmc.shrink;
    const struct sac_camera_corners corners = sac_tracker_corners(trk);
    agree(trk, &corners);
}

void sac_tracker_look(sac_tracker *trk)
{
    const struct sac_tracker_input *in = &trk->input;
    if (trk->looked)
        return;
    trk->looked = true;
    if (in->corners.shrink > 0)
        agree(trk, &in->corners);
    else if (keeps_corners(in))
        look_at_all(trk);
    else if (in->frame && !trk->cmc.dev)
        sac_camera_on_host(&trk->camera_job, &trk->move);
}

struct sac_camera_corners sac_tracker_corners(const sac_tracker *trk)
{
    return (struct sac_camera_corners){
        .at = trk->corner, .count = trk->corner_count, .shrink = trk->corner_shrink};
}

void sac_tracker_end(sac_tracker *trk, struct sac_track_view *out)
{
    struct sac_similarity camera;
    const int64_t         now_us = trk->input.pts_us;
    const bool            moves = has_motion(&trk->input);
    const int shrink = trk->input.corners.shrink > 0 ? trk->input.corners.shrink : trk->cmc.shrink;
    double    dt_s = trk->started ? sac_seconds(trk->now_us, now_us) : 0;
    trk->first_frame = !trk->started;
    trk->started = true;
    trk->now_us = now_us;
    drop_odd_rows(trk);
    sac_tracker_look(trk);
    if (moves)
        camera = sac_cmc_similarity(shrink, &trk->move);
    sac_tracker_live(trk, moves ? &camera : NULL, dt_s);
    if (trk->gallery.update_count && trk->ask.candidates)
        hold(trk);
    *out = sac_tracker_show(trk);
    trk->input = (struct sac_tracker_input){0};
    trk->apart = NULL;
    trk->looked = false;
}
