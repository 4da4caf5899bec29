/* SPDX-License-Identifier: Apache-2.0 */
/* MOTChallenge rows and seqinfo.ini. What is accepted must keep the reader's promises, and a
 * tracker must live through its boxes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "track/mot.h"

enum { FRAMES_MAX = 200, BOXES_MAX = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct sac_mot_file *file)
{
    for (size_t i = 0; i < file->count; i++) {
        const struct sac_mot_row *r = &file->rows[i];
        if (r->frame < 1 || r->frame > file->frame_max || !isfinite(r->x) || !isfinite(r->y) ||
            !isfinite(r->w) || !isfinite(r->h) || (i && r[-1].frame > r->frame))
            abort();
    }
}

static void track(sac_context *ctx, const struct sac_mot_file *file)
{
    sac_tracker              *trk = NULL;
    struct sac_tracker_params params = sac_tracker_params_default(SAC_TRACKER_OCSORT);
    if (sac_tracker_create(ctx, &params, &trk) != SAC_OK)
        abort();
    size_t at = 0;
    for (int frames = 0; at < file->count && frames < FRAMES_MAX; frames++) {
        struct sac_detection  boxes[BOXES_MAX];
        struct sac_track_view view;
        size_t                n = 0;
        int                   frame = file->rows[at].frame;
        for (; at < file->count && file->rows[at].frame == frame; at++) {
            const struct sac_mot_row *r = &file->rows[at];
            if (n < BOXES_MAX)
                boxes[n++] =
                    (struct sac_detection){(float)r->x,          (float)r->y, (float)(r->x + r->w),
                                           (float)(r->y + r->h), r->conf,     r->class_id};
        }
        if (sac_tracker_update(trk, boxes, n, NULL, NULL, frame * 40000LL, &view) != SAC_OK)
            abort();
    }
    sac_tracker_destroy(&trk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static sac_context    *ctx;
    struct sac_mot_file    file;
    struct sac_mot_seqinfo info;
    char                  *text = malloc(size + 1);
    if (!text || (!ctx && sac_context_create(NULL, &ctx) != SAC_OK))
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    if (sac_mot_parse(ctx, "fuzz", text, size, &file) == SAC_OK) {
        check(&file);
        track(ctx, &file);
        sac_mot_finish(&file);
    }
    if (sac_mot_parse_seqinfo(ctx, "fuzz", text, size, &info) == SAC_OK &&
        strlen(info.name) >= sizeof info.name)
        abort();
    free(text);
    return 0;
}
