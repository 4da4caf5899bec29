/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences for saccade tune: boxes from a file, or once from a network, and a tracker's run over
 * them in memory. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <saccade/models.h>
#include <saccade/source.h>

#include "interrupt.h"
#include "term.h"
#include "tune.h"

/* ---- which boxes ---- */

/* det.txt, det/det.txt, or the only file of the folder that is called det*.txt. */
static bool find_boxes(const struct truth *truth, char *buf, size_t size)
{
    char           name[256] = "";
    int            count = 0;
    DIR           *folder;
    struct dirent *entry;
    if (!truth->folder[0])
        return false;
    if (find_file_in(truth->folder, "det.txt", buf, size) ||
        find_file_in(truth->folder, "det/det.txt", buf, size))
        return true;
    folder = opendir(truth->folder);
    while (folder && (entry = readdir(folder))) {
        const size_t length = strlen(entry->d_name);
        if (strncmp(entry->d_name, "det", 3) == 0 && length > 4 &&
            strcmp(entry->d_name + length - 4, ".txt") == 0 && count++ == 0)
            snprintf(name, sizeof name, "%s", entry->d_name);
    }
    if (folder)
        closedir(folder);
    return count == 1 && find_file_in(truth->folder, name, buf, size);
}

/* The folder img1, or the only video of the folder. */
static bool find_video(const struct truth *truth, char *buf, size_t size)
{
    int            count = 0;
    DIR           *folder = truth->folder[0] ? opendir(truth->folder) : NULL;
    struct dirent *entry;
    if (truth->folder[0]) {
        snprintf(buf, size, "%s/img1", truth->folder);
        if (is_existing_folder(buf)) {
            closedir(folder);
            return true;
        }
    }
    while (folder && (entry = readdir(folder)))
        if (sac_name_is_video(entry->d_name) && count++ == 0)
            snprintf(buf, size, "%s/%s", truth->folder, entry->d_name);
    if (folder)
        closedir(folder);
    return count == 1;
}

/* A file for each ground truth, or a folder with SEQUENCE.txt in it; none: what the sequence's
 * folder holds. */
static int choose_boxes(const struct settings *s, const size_t *file_of, size_t number,
                        struct tune_sequence *seq, struct fault *fault)
{
    const struct text_list *given = &s->tune_detections;
    char                    name[TRUTH_NAME_SIZE + 8];
    char                   *buf = seq->boxes_from;
    if (given->count == 1 && is_existing_folder(given->items[0])) {
        snprintf(name, sizeof name, "%s.txt", seq->truth->name);
        if (!find_file_in(given->items[0], name, buf, sizeof seq->boxes_from))
            return fault_failure(fault, "%s: no '%s' in it", given->items[0], name);
    } else if (given->count > 0) {
        snprintf(buf, sizeof seq->boxes_from, "%s", given->items[file_of[number]]);
    } else if (!find_boxes(seq->truth, buf, sizeof seq->boxes_from)) {
        seq->networks = find_video(seq->truth, buf, sizeof seq->boxes_from);
        if (!seq->networks)
            return fault_failure(fault,
                                 "%s: ground truth without detections: neither det.txt, "
                                 "det/det.txt or one det*.txt nor img1 or one video for the "
                                 "detector is in its folder; --detections names them",
                                 seq->truth->gt);
    }
    return STATUS_OK;
}

/* file_of: where --detections are files; else it stays. */
static int pair_boxes(const struct settings *s, const struct truths *truths, size_t **file_of,
                      struct fault *fault)
{
    const struct text_list *given = &s->tune_detections;
    if (given->count == 0 || (given->count == 1 && is_existing_folder(given->items[0])))
        return STATUS_OK;
    return truths_pair(truths, given, "detections", file_of, fault);
}

/* What embeddings are made of. */
static int choose_pictures(const struct settings *s, struct tune_sequence *seq, struct fault *fault)
{
    if (!s->tune_reid || find_video(seq->truth, seq->pictures, sizeof seq->pictures))
        return STATUS_OK;
    return fault_failure(fault,
                         "%s: --reid needs the pictures: neither img1 nor one video is in its "
                         "folder",
                         seq->truth->gt);
}

/* ---- boxes of a file ---- */

static int by_place(struct tune_sequence *seq, int frames, struct fault *fault)
{
    seq->frames = frames;
    seq->first = calloc((size_t)frames + 1, sizeof *seq->first);
    return seq->first ? STATUS_OK : fault_failure(fault, "out of memory");
}

/* Boxes of another sequence would be tracked without a word. */
static int check_length(const struct tune_sequence *seq, int frames, int length,
                        struct fault *fault)
{
    if (length <= 0 || frames <= length)
        return STATUS_OK;
    return fault_failure(fault, "%s: it has frame %d, but %s has %d by its seqinfo.ini",
                         seq->boxes_from, frames, seq->truth->name, length);
}

/* As a run with --detections takes them. */
static struct sac_detection detection_of(const struct sac_mot_row *row)
{
    return (struct sac_detection){
        .x0 = (float)row->x,
        .y0 = (float)row->y,
        .x1 = (float)(row->x + row->w),
        .y1 = (float)(row->y + row->h),
        .score = row->conf < 0   ? 0
                 : row->conf > 1 ? 1
                                 : row->conf,
        .class_id = row->class_id > 0 ? row->class_id : 0,
    };
}

static int read_boxes(sac_context *ctx, struct tune_sequence *seq, int length, struct fault *fault)
{
    int                 frames = length > seq->gt.frame_max ? length : seq->gt.frame_max;
    struct sac_mot_file file = {0};
    sac_result          res = sac_mot_read(ctx, seq->boxes_from, &file);
    if (res != SAC_OK)
        return fault_library(fault, ctx, res);
    int status = check_length(seq, file.frame_max, length, fault);
    if (status == STATUS_OK)
        status = by_place(seq, frames > file.frame_max ? frames : file.frame_max, fault);
    seq->boxes = calloc(file.count + 1, sizeof *seq->boxes);
    if (status == STATUS_OK && !seq->boxes)
        status = fault_failure(fault, "out of memory");
    for (size_t i = 0, frame = 0; status == STATUS_OK && frame <= (size_t)seq->frames; frame++) {
        seq->first[frame] = i;
        for (; i < file.count && file.rows[i].frame <= (int)frame + 1; i++)
            seq->boxes[i] = detection_of(&file.rows[i]);
    }
    if (status == STATUS_OK && file.count == 0)
        status = fault_failure(fault, "%s: no detections in it", seq->boxes_from);
    sac_mot_finish(&file);
    return status;
}

/* ---- boxes of a network ---- */

struct detecting {
    sac_device   *dev;
    sac_detector *detector;
    size_t        capacity, frame_capacity;
};

static sac_result open_networks(struct settings *s, sac_context *ctx, struct detecting *d)
{
    const char *model = s->run.job.detector;
    sac_result  res = sac_device_open(ctx, s->run.job.device, &s->run.job.device_params, &d->dev);
    if (!model || strcmp(model, "auto") == 0 || strcmp(model, "none") == 0)
        model = "person_det";
    return res == SAC_OK
               ? sac_detector_create(d->dev, model, &s->run.job.detector_params, &d->detector)
               : res;
}

static bool append_boxes(struct tune_sequence *seq, struct detecting *d,
                         const struct sac_detections *found)
{
    const size_t begun = seq->frames ? seq->first[seq->frames] : 0;
    while (d->capacity < begun + found->count + 1) {
        const size_t          capacity = d->capacity ? 2 * d->capacity : 4096;
        struct sac_detection *boxes = realloc(seq->boxes, capacity * sizeof *boxes);
        if (!boxes)
            return false;
        seq->boxes = boxes;
        d->capacity = capacity;
    }
    if (d->frame_capacity < (size_t)seq->frames + 2) {
        const size_t capacity = d->frame_capacity ? 2 * d->frame_capacity : 1024;
        size_t      *first = realloc(seq->first, capacity * sizeof *first);
        if (!first)
            return false;
        seq->first = first;
        d->frame_capacity = capacity;
    }
    seq->first[seq->frames++] = begun;
    seq->first[seq->frames] = begun + found->count;
    if (found->count)
        memcpy(seq->boxes + begun, found->items, found->count * sizeof *found->items);
    return true;
}

static sac_result detect_all(struct tune_sequence *seq, struct detecting *d, sac_source *src,
                             bool *memory)
{
    struct sac_detections found = {0};
    sac_result            res = SAC_OK;
    while (res == SAC_OK && *memory && !interrupt_came()) {
        sac_frame *frame = NULL;
        res = sac_source_read_wait(src, &frame);
        if (res == SAC_OK)
            res = sac_detector_run(d->detector, &frame, 1, &found);
        if (res == SAC_OK)
            *memory = append_boxes(seq, d, &found);
        sac_frame_unref(&frame);
    }
    sac_detections_finish(&found);
    return res == SAC_EOS ? SAC_OK : res;
}

static int detect_boxes(struct settings *s, sac_context *ctx, struct tune_sequence *seq,
                        struct fault *fault)
{
    struct detecting       d = {0};
    sac_source            *src = NULL;
    struct sac_source_info info = {0};
    char                   line[TUNE_PATH_SIZE + TRUTH_NAME_SIZE + 64];
    bool                   memory = true;
    sac_result             res = open_networks(s, ctx, &d);
    if (res == SAC_OK)
        res = sac_source_open(d.dev, seq->boxes_from, &s->run.source, &src);
    if (res == SAC_OK) {
        snprintf(line, sizeof line, "%s: detecting once, in %s", seq->truth->name, seq->boxes_from);
        term_line(line);
        sac_source_describe(src, &info);
        res = detect_all(seq, &d, src, &memory);
    }
    int status = res == SAC_OK ? STATUS_OK : fault_library(fault, ctx, res);
    if (status == STATUS_OK && !memory)
        status = fault_failure(fault, "out of memory");
    if (status == STATUS_OK && seq->frames == 0 && !interrupt_came())
        status = fault_failure(fault, "%s: it has no frame", seq->boxes_from);
    if (seq->fps <= 0)
        seq->fps = info.fps;
    sac_source_close(&src);
    sac_detector_destroy(&d.detector);
    sac_device_unref(&d.dev);
    return status;
}

/* ---- their appearance ---- */

struct embedding {
    sac_device   *dev;
    sac_embedder *embedder;
    sac_source   *src;
};

static sac_result open_embedder(struct settings *s, sac_context *ctx, const char *pictures,
                                struct embedding *e)
{
    sac_result res = sac_device_open(ctx, s->run.job.device, &s->run.job.device_params, &e->dev);
    if (res == SAC_OK)
        res = sac_embedder_create(e->dev, s->tune_reid, NULL, &e->embedder);
    if (res == SAC_OK)
        res = sac_source_open(e->dev, pictures, &s->run.source, &e->src);
    return res;
}

/* SAC_EOS: there are boxes in a frame that is not there, *frames. */
static sac_result embed_all(struct tune_sequence *seq, struct embedding *e, int *frames)
{
    sac_result res = SAC_OK;
    for (*frames = 0; *frames < seq->frames && !interrupt_came(); ++*frames) {
        const size_t first = seq->first[*frames], count = seq->first[*frames + 1] - first;
        sac_frame   *frame = NULL;
        if (first == seq->first[seq->frames])
            return SAC_OK; /* of the rest there are none */
        res = sac_source_read_wait(e->src, &frame);
        if (res == SAC_OK && count > 0)
            res = sac_embedder_run(e->embedder, frame, seq->boxes + first, count,
                                   seq->embeddings + first * (size_t)seq->dim);
        sac_frame_unref(&frame);
        if (res != SAC_OK)
            return res;
    }
    return SAC_OK;
}

static int embed_boxes(struct settings *s, sac_context *ctx, struct tune_sequence *seq,
                       struct fault *fault)
{
    struct embedding e = {0};
    char             line[TUNE_PATH_SIZE + TRUTH_NAME_SIZE + 64];
    int              frames = 0;
    sac_result       res = open_embedder(s, ctx, seq->pictures, &e);
    if (res == SAC_OK) {
        snprintf(line, sizeof line, "%s: embedding the boxes once, in %s", seq->truth->name,
                 seq->pictures);
        term_line(line);
        seq->dim = sac_embedder_dim(e.embedder);
        seq->embeddings = calloc(seq->first[seq->frames] * (size_t)seq->dim + 1, sizeof(float));
    }
    if (res == SAC_OK && seq->embeddings)
        res = embed_all(seq, &e, &frames);
    int status = STATUS_OK;
    if (res == SAC_EOS)
        status = fault_failure(fault, "%s: %d frames, and there are boxes in later ones",
                               seq->pictures, frames);
    else if (res != SAC_OK)
        status = fault_library(fault, ctx, res);
    else if (!seq->embeddings)
        status = fault_failure(fault, "out of memory");
    sac_source_close(&e.src);
    sac_embedder_destroy(&e.embedder);
    sac_device_unref(&e.dev);
    return status;
}

/* ---- a sequence ---- */

/* MOT15's has none; what is left out of others goes by their classes. */
static bool has_classes(const struct sac_mot_file *gt)
{
    for (size_t i = 0; i < gt->count; i++)
        if (gt->rows[i].class_id != -1)
            return true;
    return false;
}

static int read_sequence(struct settings *s, sac_context *ctx, struct tune_sequence *seq,
                         struct fault *fault)
{
    struct sac_mot_seqinfo info = {0};
    sac_result             res = SAC_OK;
    int                    status;
    if (seq->truth->seqinfo[0])
        res = sac_mot_read_seqinfo(ctx, seq->truth->seqinfo, &info);
    if (res == SAC_OK)
        res = sac_mot_read(ctx, seq->truth->gt, &seq->gt);
    if (res != SAC_OK)
        return fault_library(fault, ctx, res);
    if (seq->gt.count == 0)
        return fault_failure(fault, "%s: no ground truth in it", seq->truth->gt);
    seq->fps = s->run.fps > 0 ? s->run.fps : info.fps;
    seq->preprocess = s->eval_preprocess && has_classes(&seq->gt);
    status =
        seq->networks ? detect_boxes(s, ctx, seq, fault) : read_boxes(ctx, seq, info.length, fault);
    if (status == STATUS_OK && s->tune_reid && !interrupt_came())
        status = embed_boxes(s, ctx, seq, fault);
    if (status == STATUS_OK && !(seq->fps > 0) && !interrupt_came())
        status = fault_failure(fault, "%s: no frame rate; give --fps, or seqinfo.ini in its folder",
                               seq->truth->gt);
    return status;
}

/* A sequence that counts twice would weigh twice. */
static int refuse_twice(const struct truths *truths, size_t at, struct fault *fault)
{
    struct stat one, other;
    const char *gt = truths->items[at].gt;
    for (size_t i = 0; i < at; i++)
        if (stat(gt, &one) == 0 && stat(truths->items[i].gt, &other) == 0 &&
            one.st_dev == other.st_dev && one.st_ino == other.st_ino)
            return fault_usage(fault, "--gt: %s was given twice; each sequence counts once", gt);
    return STATUS_OK;
}

int tune_find(const struct settings *s, const struct truths *truths,
              struct tune_sequence *sequences, struct fault *fault)
{
    size_t *file_of = NULL;
    int     status = pair_boxes(s, truths, &file_of, fault);
    for (size_t i = 0; i < truths->count && status == STATUS_OK; i++) {
        sequences[i].truth = &truths->items[i];
        status = refuse_twice(truths, i, fault);
        if (status == STATUS_OK)
            status = choose_boxes(s, file_of, i, &sequences[i], fault);
        if (status == STATUS_OK)
            status = choose_pictures(s, &sequences[i], fault);
    }
    free(file_of);
    return status;
}

int tune_read(struct settings *s, sac_context *ctx, struct tune_sequence *sequences, size_t count,
              struct fault *fault)
{
    int status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK && !interrupt_came(); i++)
        status = read_sequence(s, ctx, &sequences[i], fault);
    return status;
}

void tune_sequence_finish(struct tune_sequence *seq)
{
    sac_mot_finish(&seq->gt);
    free(seq->boxes);
    free(seq->first);
    free(seq->embeddings);
    *seq = (struct tune_sequence){0};
}

/* ---- a tracker's run over it ---- */

/* Its rows are of the program, so sac_mot_finish may not free them. */
struct tracks {
    struct sac_mot_file file;
    size_t              capacity;
};

static bool append_tracks(struct tracks *tracks, int frame, const struct sac_track_view *view)
{
    struct sac_mot_file *file = &tracks->file;
    if (file->count + view->count > tracks->capacity) {
        const size_t        capacity = 2 * (file->count + view->count) + 1024;
        struct sac_mot_row *rows = realloc(file->rows, capacity * sizeof *rows);
        if (!rows)
            return false;
        file->rows = rows;
        tracks->capacity = capacity;
    }
    for (size_t i = 0; i < view->count; i++) {
        const struct sac_track *t = &view->tracks[i];
        file->rows[file->count++] = (struct sac_mot_row){.frame = frame,
                                                         .id = (int)t->id,
                                                         .x = (double)t->x0,
                                                         .y = (double)t->y0,
                                                         .w = (double)t->x1 - (double)t->x0,
                                                         .h = (double)t->y1 - (double)t->y0,
                                                         .conf = t->score,
                                                         .class_id = -1,
                                                         .visibility = 1};
    }
    file->frame_max = frame;
    return true;
}

static sac_result track_all(const struct tune_sequence *seq, sac_tracker *trk,
                            struct tracks *tracks, bool *memory)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < seq->frames && res == SAC_OK && *memory; i++) {
        struct sac_track_view view;
        const size_t          first = seq->first[i], end = seq->first[i + 1];
        const float          *embeddings =
            seq->embeddings ? seq->embeddings + first * (size_t)seq->dim : NULL;
        res = sac_tracker_update(trk, seq->boxes + first, end - first, embeddings, NULL,
                                 (int64_t)(i * 1e6 / seq->fps), &view);
        if (res == SAC_OK)
            *memory = append_tracks(tracks, i + 1, &view);
    }
    return res;
}

int tune_score(sac_context *ctx, const struct tune_sequence *seq,
               const struct sac_tracker_params *params, double *out, struct fault *fault)
{
    struct sac_eval_params  eval = sac_eval_params_default();
    struct sac_eval_result *result = NULL;
    struct tracks           tracks = {0};
    sac_tracker            *trk = NULL;
    bool                    memory = true;
    *out = -INFINITY;
    if (params->score_low > params->score_high)
        return STATUS_OK;
    sac_result res = sac_tracker_create(ctx, params, &trk);
    if (res == SAC_OK)
        res = track_all(seq, trk, &tracks, &memory);
    eval.preprocess = seq->preprocess;
    eval.frames = seq->frames;
    if (res == SAC_OK && memory)
        memory = (result = calloc(1, sizeof *result)) != NULL;
    if (res == SAC_OK && memory)
        res = sac_eval_sequence(ctx, seq->truth->name, &seq->gt, &tracks.file, &eval, result);
    if (res == SAC_OK && memory)
        *out = 100 * result->hota;
    free(result);
    free(tracks.file.rows);
    sac_tracker_destroy(&trk);
    if (res == SAC_OK && !memory)
        return fault_failure(fault, "out of memory");
    return res == SAC_OK ? STATUS_OK : fault_library(fault, ctx, res);
}
