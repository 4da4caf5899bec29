/* SPDX-License-Identifier: Apache-2.0 */
/* A tracker from outside: made, given one frame, destroyed. */
#include "track/core.h"

/* ---- creation ---- */

enum { DIM_MAX = 65536, GALLERY_MAX = 256, TRACK_MAX = 20000 };

static sac_result check_params(sac_context *ctx, const struct sac_tracker_params *p)
{
    if (!(p->score_low >= 0 && p->score_low <= p->score_high && p->score_high <= 1 &&
          p->score_new >= 0 && p->score_new <= 1))
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "tracker: scores low %g, high %g, new %g; want 0 <= low <= high <= 1 and "
                        "new in 0..1",
                        p->score_low, p->score_high, p->score_new);
    if (!(p->match_iou >= 0 && p->match_iou <= 1))
        return SAC_FAIL(ctx, SAC_ERR_ARG, "tracker: match_iou is %g; want 0..1", p->match_iou);
    if (!(p->lost_max_s > 0 && p->lost_max_s <= 3600 && p->confirm_s >= 0 && p->confirm_s <= 3600))
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "tracker: lost_max_s is %g and confirm_s %g; want (0, 3600] and 0..3600",
                        p->lost_max_s, p->confirm_s);
    if (!(p->reid_distance_max > 0 && p->reid_distance_max <= 2))
        return SAC_FAIL(ctx, SAC_ERR_ARG, "tracker: reid_distance_max is %g; want (0, 2]",
                        p->reid_distance_max);
    if (p->embedding_dim < 0 || p->embedding_dim > DIM_MAX || p->gallery_max < 1 ||
        p->gallery_max > GALLERY_MAX || p->track_max < 1 || p->track_max > TRACK_MAX)
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "tracker: embedding_dim %d, gallery_max %d, track_max %d; want 0..%d, "
                        "1..%d, 1..%d",
                        p->embedding_dim, p->gallery_max, p->track_max, DIM_MAX, GALLERY_MAX,
                        TRACK_MAX);
    return SAC_OK;
}

sac_result sac_tracker_create(sac_context *ctx, const struct sac_tracker_params *params,
                              sac_tracker **out)
{
    SAC_NEEDS(ctx, ctx);
    SAC_NEEDS(ctx, out);
    SAC_NEEDS_NO_LATER_FIELD(ctx, params, "tracker parameters");
    struct sac_tracker_params p =
        params ? *params : sac_tracker_params_default(SAC_TRACKER_BOTSORT);
    const struct sac_tracker_row *row = sac_tracker_row_of(p.kind);
    if (!row)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "tracker: there is no kind %d", (int)p.kind);
    sac_result res = check_params(ctx, &p);
    if (res != SAC_OK)
        return res;
    sac_tracker *trk = sac_new(sac_tracker);
    if (!trk)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "tracker: no memory for its state");
    trk->ctx = ctx;
    trk->row = row;
    trk->params = p;
    sac_gallery_init(&trk->gallery, p.embedding_dim, p.gallery_max);
    *out = trk;
    return SAC_OK;
}

void sac_tracker_destroy(sac_tracker **trk)
{
    if (!trk || !*trk)
        return;
    sac_tracker_release(*trk);
    sac_wave_destroy(&(*trk)->own);
    sac_match_finish(&(*trk)->room);
    sac_gallery_finish(&(*trk)->gallery);
    sac_cmc_finish(&(*trk)->cmc);
    sac_free((*trk)->targets);
    sac_free((*trk)->candidates);
    sac_free((*trk)->view);
    sac_free((*trk)->moving);
    sac_free((*trk)->corner);
    sac_free((*trk)->ask_slots);
    sac_free((*trk)->ask_rows);
    sac_free(*trk);
    *trk = NULL;
}

/* ---- one frame of one tracker ---- */

static sac_result through_device(sac_tracker *trk, const struct sac_tracker_input *in,
                                 struct sac_track_view *out)
{
    sac_device *dev =
        in->embeddings.base && in->embeddings.dev ? in->embeddings.dev : in->frame->device;
    sac_result res = trk->own ? SAC_OK : sac_wave_create(dev, &trk->own);
    if (res == SAC_OK)
        res = sac_wave_add(trk->own, trk, in);
    if (res == SAC_OK)
        res = sac_wave_run(trk->own);
    if (res != SAC_OK)
        return res;
    sac_wave_finish(trk->own, 0, out);
    sac_wave_clear(trk->own);
    return SAC_OK;
}

sac_result sac_tracker_track(sac_tracker *trk, const struct sac_tracker_input *in,
                             struct sac_track_view *out)
{
    const bool embeddings =
        in->embeddings.base && in->embeddings.dev && sac_tracker_wants_embeddings(trk);
    const bool camera = trk->row->camera && trk->params.camera_motion && in->frame &&
                        sac_cmc_is_remote(in->frame) && sac_cmc_can_read(in->frame);
    if (embeddings || camera)
        return through_device(trk, in, out);
    sac_result res = sac_tracker_begin(trk, in);
    if (res == SAC_OK)
        sac_tracker_end(trk, out);
    return res;
}

sac_result sac_tracker_update(sac_tracker *trk, const struct sac_detection *det, size_t n,
                              const float *embeddings, const sac_frame *frame, int64_t pts_us,
                              struct sac_track_view *out)
{
    SAC_NEEDS(trk ? trk->ctx : NULL, trk);
    SAC_NEEDS(trk ? trk->ctx : NULL, out);
    const struct sac_tracker_input in = {.det = det,
                                         .count = n,
                                         .embeddings = {.base = embeddings,
                                                        .count = (int)SAC_MIN(n, (size_t)INT32_MAX),
                                                        .dim = trk->params.embedding_dim},
                                         .frame = frame,
                                         .pts_us = pts_us};
    return sac_tracker_track(trk, &in, out);
}

/* The rows of a tensor, as host memory when the host can read it. */
static sac_result rows_of_tensor(const sac_tracker *trk, sac_tensor *tensor,
                                 struct sac_embedding_rows *out)
{
    const struct sac_tensor_desc *desc = sac_tensor_describe(tensor);
    sac_device                   *dev = sac_tensor_device(tensor);
    if (desc->dtype != SAC_F32 || desc->rank != 2 || desc->shape[0] > INT32_MAX ||
        desc->shape[1] > INT32_MAX)
        return SAC_FAIL(trk->ctx, SAC_ERR_ARG,
                        "tracker: embeddings are %s of %d dimensions; want float32 [rows,dim]",
                        sac_dtype_name(desc->dtype), desc->rank);
    *out = (struct sac_embedding_rows){.dev = sac_device_apart(dev),
                                       .base = sac_tensor_data(tensor),
                                       .count = (int)desc->shape[0],
                                       .dim = (int)desc->shape[1],
                                       .tensor = sac_device_apart(dev) ? tensor : NULL};
    return SAC_OK;
}

sac_result sac_tracker_update_tensor(sac_tracker *trk, const struct sac_detection *det, size_t n,
                                     sac_tensor *embeddings, const int32_t *row,
                                     const sac_frame *frame, int64_t pts_us,
                                     struct sac_track_view *out)
{
    SAC_NEEDS(trk ? trk->ctx : NULL, trk);
    SAC_NEEDS(trk ? trk->ctx : NULL, out);
    struct sac_tracker_input in = {.det = det, .count = n, .frame = frame, .pts_us = pts_us};
    sac_result res = embeddings ? rows_of_tensor(trk, embeddings, &in.embeddings) : SAC_OK;
    in.embeddings.row = row;
    return res == SAC_OK ? sac_tracker_track(trk, &in, out) : res;
}
