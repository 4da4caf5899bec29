/* SPDX-License-Identifier: Apache-2.0 */
/* Ready-made detections: a MOTChallenge file instead of a detector. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/search.h"
#include "pipeline/job.h"

/* The folder of the file followed by `tail`, or NULL when there is no memory. */
static char *beside(const char *path, const char *tail)
{
    const char *slash = strrchr(path, '/');
    return slash ? sac_asprintf("%.*s/%s", (int)(slash - path), path, tail) : sac_strdup(tail);
}

static sac_result read_seqinfo(sac_context *ctx, const char *path, struct sac_rows *rows)
{
    static const char *const tails[] = {"seqinfo.ini", "../seqinfo.ini"};
    sac_result               res = SAC_OK;
    for (size_t i = 0; i < SAC_COUNT(tails); i++) {
        struct sac_mot_seqinfo info = {0};
        char                  *ini = beside(path, tails[i]);
        bool                   there = ini && access(ini, F_OK) == 0;
        if (!ini)
            res = SAC_FAIL(ctx, SAC_ERR_MEMORY, "'%s': no memory for its path", path);
        else if (there)
            res = sac_mot_read_seqinfo(ctx, ini, &info);
        if (res != SAC_OK || !there)
            sac_free(ini);
        if (res != SAC_OK)
            return res;
        if (there) {
            rows->seqinfo = ini;
            rows->fps = info.fps;
            rows->frames = SAC_MAX(info.length, rows->file.frame_max);
            return SAC_OK;
        }
    }
    return SAC_OK;
}

sac_result sac_rows_open(sac_context *ctx, const char *path, struct sac_rows *out)
{
    struct sac_rows rows = {0};
    sac_result      res = sac_mot_read(ctx, path, &rows.file);
    rows.frames = rows.file.frame_max;
    if (res == SAC_OK)
        res = read_seqinfo(ctx, path, &rows);
    if (res == SAC_OK)
        *out = rows;
    else
        sac_rows_finish(&rows);
    return res;
}

void sac_rows_finish(struct sac_rows *rows)
{
    sac_mot_finish(&rows->file);
    sac_free(rows->seqinfo);
    *rows = (struct sac_rows){0};
}

static int64_t frame_of(const void *rows, size_t i)
{
    return ((const struct sac_mot_row *)rows)[i].frame;
}

static struct sac_detection detection_of(const struct sac_mot_row *row)
{
    return (struct sac_detection){
        .x0 = (float)row->x,
        .y0 = (float)row->y,
        .x1 = (float)(row->x + row->w),
        .y1 = (float)(row->y + row->h),
        .score = SAC_CLAMP((float)row->conf, 0.0f, 1.0f),
        .class_id = SAC_MAX(row->class_id, 0), /* detection files say -1: one class */
    };
}

sac_result sac_rows_get(const struct sac_rows *rows, sac_context *ctx, int64_t number,
                        struct sac_detections *out)
{
    const struct sac_mot_file *file = &rows->file;
    const size_t first = sac_lower_bound(file->rows, file->count, number + 1, frame_of),
                 end = sac_lower_bound(file->rows, file->count, number + 2, frame_of);
    out->count = 0;
    if (!sac_grow((void **)&out->items, &out->capacity, end - first, sizeof *out->items))
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for %zu detections", end - first);
    for (size_t i = first; i < end; i++)
        out->items[out->count++] = detection_of(&file->rows[i]);
    return SAC_OK;
}
