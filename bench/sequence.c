/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "bench/sequence.h"

enum { BOXES_MAX = 1000 };

sac_result sequence_open(sac_context *ctx, const char *folder, const char *video, double fps,
                         struct sequence *out)
{
    char path[1024];
    *out = (struct sequence){.ctx = ctx, .fps = fps, .video = video};
    snprintf(path, sizeof path, "%s/det_yolox_nano.txt", folder);
    sac_result res = sac_mot_read(ctx, path, &out->det);
    snprintf(path, sizeof path, "%s/gt.txt", folder);
    if (res == SAC_OK)
        res = sac_mot_read(ctx, path, &out->truth);
    snprintf(path, sizeof path, "%s/seqinfo.ini", folder);
    if (res == SAC_OK)
        res = sac_mot_read_seqinfo(ctx, path, &out->info);
    if (res != SAC_OK)
        sequence_close(out);
    return res;
}

void sequence_close(struct sequence *seq)
{
    sac_mot_finish(&seq->det);
    sac_mot_finish(&seq->truth);
    sac_free(seq->embedding);
    sac_free(seq->embed_us);
    *seq = (struct sequence){0};
}

/* The detections of the next frame that has any, at *at or later. */
static size_t boxes_of(const struct sac_mot_file *det, int frame, size_t *at,
                       struct sac_detection *boxes)
{
    size_t n = 0;
    for (; *at < det->count && det->rows[*at].frame <= frame; ++*at) {
        const struct sac_mot_row *r = &det->rows[*at];
        if (r->frame == frame && n < BOXES_MAX)
            boxes[n++] = (struct sac_detection){
                (float)r->x, (float)r->y, (float)(r->x + r->w), (float)(r->y + r->h), r->conf, 0};
    }
    return n;
}

/* ---- embeddings ---- */

/* One frame's boxes of score_min or more through the network, into their rows of embedding. */
static sac_result embed_frame(sac_embedder *emb, const sac_frame *frame, float score_min,
                              const struct sac_detection *boxes, size_t n, float *rows)
{
    static struct sac_detection strong[BOXES_MAX];
    size_t                      dim = (size_t)sac_embedder_dim(emb), count = 0;
    for (size_t i = 0; i < n; i++)
        if (boxes[i].score >= score_min)
            strong[count++] = boxes[i];
    float     *packed = sac_calloc(count, dim * sizeof *packed);
    sac_result res = packed ? sac_embedder_run(emb, frame, strong, count, packed) : SAC_ERR_MEMORY;
    size_t     from = 0;
    for (size_t i = 0; res == SAC_OK && i < n; i++)
        if (boxes[i].score >= score_min)
            memcpy(rows + i * dim, packed + from++ * dim, dim * sizeof *rows);
    sac_free(packed);
    return res;
}

static sac_result embed_all(struct sequence *seq, sac_source *src, sac_embedder *emb,
                            float score_min)
{
    static struct sac_detection boxes[BOXES_MAX];
    size_t                      at = 0;
    for (int frame = 1; frame <= seq->info.length; frame++) {
        sac_frame *picture = NULL;
        sac_result res = sac_source_read_wait(src, &picture);
        if (res != SAC_OK)
            return res;
        size_t  n = boxes_of(&seq->det, frame, &at, boxes);
        int64_t begun = sac_time_ns();
        res = embed_frame(emb, picture, score_min, boxes, n,
                          seq->embedding + (at - n) * (size_t)seq->dim);
        seq->embed_us[frame] = (double)(sac_time_ns() - begun) / 1e3;
        sac_frame_unref(&picture);
        if (res != SAC_OK)
            return res;
    }
    return SAC_OK;
}

sac_result sequence_embed(struct sequence *seq, sac_device *dev, const char *model, float score_min)
{
    sac_embedder *emb = NULL;
    sac_source   *src = NULL;
    sac_result    res = sac_embedder_create(dev, model, NULL, &emb);
    if (res == SAC_OK)
        res = sac_source_open(dev, seq->video, NULL, &src);
    if (res == SAC_OK) {
        seq->dim = sac_embedder_dim(emb);
        seq->embedding = sac_calloc(seq->det.count, (size_t)seq->dim * sizeof *seq->embedding);
        seq->embed_us = sac_calloc((size_t)seq->info.length + 1, sizeof *seq->embed_us);
        res =
            seq->embedding && seq->embed_us ? embed_all(seq, src, emb, score_min) : SAC_ERR_MEMORY;
    }
    sac_source_close(&src);
    sac_embedder_destroy(&emb);
    return res;
}

/* ---- tracking ---- */

struct sequence_run sequence_run_default(enum sac_tracker_kind kind)
{
    return (struct sequence_run){.params = sac_tracker_params_default(kind), .step = 1};
}

static sac_result append(struct sac_mot_file *file, size_t *capacity, int frame,
                         const struct sac_track_view *view)
{
    if (!sac_grow((void **)&file->rows, capacity, file->count + view->count, sizeof *file->rows))
        return SAC_ERR_MEMORY;
    for (size_t i = 0; i < view->count; i++) {
        const struct sac_track *t = &view->tracks[i];
        file->rows[file->count++] = (struct sac_mot_row){.frame = frame,
                                                         .id = (int)t->id,
                                                         .x = t->x0,
                                                         .y = t->y0,
                                                         .w = (double)t->x1 - t->x0,
                                                         .h = (double)t->y1 - t->y0,
                                                         .conf = t->score,
                                                         .class_id = -1,
                                                         .visibility = 1};
    }
    file->frame_max = frame;
    return SAC_OK;
}

static bool is_kept(const struct sequence_run *run, int frame)
{
    return frame > run->offset && (frame - 1 - run->offset) % run->step == 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Everything that one pass needs. */
struct pass {
    struct sequence           *seq;
    const struct sequence_run *run;
    sac_tracker               *trk;
    sac_source                *src; /* or NULL */
    struct sac_mot_file        tracks;
    size_t                     capacity;
    double                    *us; /* [frames] */
    int                        kept;
};

static sac_result track_frame(struct pass *p, int frame, const struct sac_detection *boxes,
                              size_t n, const float *embedding, const sac_frame *picture)
{
    const struct sequence *seq = p->seq;
    int                    number = p->run->count_frames ? p->kept : frame - 1;
    struct sac_track_view  view;
    int64_t                begun = sac_time_ns();
    sac_result             res = sac_tracker_update(p->trk, boxes, n, embedding, picture,
                                                    (int64_t)(number * 1e6 / seq->fps), &view);
    p->us[p->kept++] =
        (double)(sac_time_ns() - begun) / 1e3 + (embedding ? seq->embed_us[frame] : 0);
    return res == SAC_OK ? append(&p->tracks, &p->capacity, frame, &view) : res;
}

static sac_result track_all(struct pass *p)
{
    static struct sac_detection boxes[BOXES_MAX];
    struct sequence            *seq = p->seq;
    size_t                      at = 0;
    for (int frame = 1; frame <= seq->info.length; frame++) {
        sac_frame *picture = NULL;
        size_t     n = boxes_of(&seq->det, frame, &at, boxes);
        sac_result res = p->src ? sac_source_read_wait(p->src, &picture) : SAC_OK;
        if (res == SAC_OK && is_kept(p->run, frame))
            res = track_frame(
                p, frame, boxes, n,
                p->run->embeddings ? seq->embedding + (at - n) * (size_t)seq->dim : NULL, picture);
        sac_frame_unref(&picture);
        if (res != SAC_OK)
            return res;
    }
    return SAC_OK;
}

/* The truth of the kept frames alone. */
static sac_result kept_truth(const struct sequence *seq, const struct sequence_run *run,
                             struct sac_mot_file *out)
{
    *out = (struct sac_mot_file){.rows = sac_calloc(seq->truth.count, sizeof *out->rows)};
    if (!out->rows)
        return SAC_ERR_MEMORY;
    for (size_t i = 0; i < seq->truth.count; i++) {
        if (!is_kept(run, seq->truth.rows[i].frame))
            continue;
        out->frame_max = seq->truth.rows[i].frame;
        out->rows[out->count++] = seq->truth.rows[i];
    }
    return SAC_OK;
}

static sac_result evaluate(const struct sequence *seq, const struct sac_mot_file *truth,
                           const struct sac_mot_file *tracks, struct sequence_result *out)
{
    struct sac_eval_params params = sac_eval_params_default();
    params.preprocess = 0;
    params.frames = seq->info.length;
    return sac_eval_sequence(seq->ctx, seq->info.name, truth, tracks, &params, &out->score);
}

static sac_result score(struct pass *p, struct sequence_result *out)
{
    struct sac_mot_file truth;
    sac_result          res = kept_truth(p->seq, p->run, &truth);
    if (res == SAC_OK)
        res = evaluate(p->seq, &truth, &p->tracks, out);
    sac_mot_finish(&truth);
    qsort(p->us, (size_t)p->kept, sizeof *p->us, by_value);
    out->median_us = p->kept ? p->us[p->kept / 2] : 0;
    return res;
}

sac_result sequence_track(struct sequence *seq, const struct sequence_run *run,
                          struct sequence_result *out)
{
    struct pass               p = {.seq = seq, .run = run};
    struct sac_tracker_params params = run->params;
    params.embedding_dim = run->embeddings ? seq->dim : 0;
    params.camera_motion = run->camera != NULL;
    p.us = sac_calloc((size_t)seq->info.length + 1, sizeof *p.us);
    sac_result res = p.us ? sac_tracker_create(seq->ctx, &params, &p.trk) : SAC_ERR_MEMORY;
    if (res == SAC_OK && run->camera)
        res = sac_source_open(run->camera, seq->video, NULL, &p.src);
    if (res == SAC_OK)
        res = track_all(&p);
    if (res == SAC_OK)
        res = score(&p, out);
    sac_source_close(&p.src);
    sac_tracker_destroy(&p.trk);
    sac_mot_finish(&p.tracks);
    sac_free(p.us);
    return res;
}

/* ---- from the video ---- */

static sac_result run_pipeline(sac_context *ctx, const struct sac_pipeline_params *params)
{
    sac_pipeline *pipe = NULL;
    sac_result    res = sac_pipeline_create(ctx, params, &pipe);
    if (res == SAC_OK)
        res = sac_pipeline_run(pipe);
    sac_pipeline_destroy(&pipe);
    return res;
}

sac_result sequence_track_video(struct sequence *seq, enum sac_tracker_kind kind,
                                const char *detector, const char *reid, struct sequence_result *out)
{
    char                       folder[] = "/tmp/saccade-bench-XXXXXX", path[64];
    struct sac_mot_file        tracks = {0};
    struct sac_pipeline_params params = sac_pipeline_params_default();
    if (!mkdtemp(folder))
        return SAC_FAIL(seq->ctx, SAC_ERR_IO, "cannot make a folder in /tmp");
    snprintf(path, sizeof path, "%s/tracks.txt", folder);
    params.input = seq->video;
    params.mot_out = path;
    params.job.detector = detector;
    params.job.detector_params.classes = "person";
    params.job.reid = reid;
    params.job.tracker = sac_tracker_params_default(kind);
    sac_result res = run_pipeline(seq->ctx, &params);
    if (res == SAC_OK)
        res = sac_mot_read(seq->ctx, path, &tracks);
    *out = (struct sequence_result){0};
    if (res == SAC_OK)
        res = evaluate(seq, &seq->truth, &tracks, out);
    sac_mot_finish(&tracks);
    unlink(path);
    rmdir(folder);
    return res;
}
