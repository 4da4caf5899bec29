/* SPDX-License-Identifier: Apache-2.0 */
/* The table of trackers. */
#include <string.h>

#include "track/core.h"

static const struct sac_tracker_row *const rows[] = {
    &sac_tracker_sort,
    &sac_tracker_bytetrack,
    &sac_tracker_ocsort,
    &sac_tracker_botsort,
};

const struct sac_tracker_row *sac_tracker_row_of(enum sac_tracker_kind kind)
{
    for (size_t i = 0; i < SAC_COUNT(rows); i++)
        if (rows[i]->kind == kind)
            return rows[i];
    return NULL;
}

const char *sac_tracker_kind_name(enum sac_tracker_kind kind)
{
    const struct sac_tracker_row *row = sac_tracker_row_of(kind);
    return row ? row->name : "unknown";
}

sac_result sac_tracker_kind_parse(const char *name, enum sac_tracker_kind *out)
{
    SAC_NEEDS(NULL, name);
    SAC_NEEDS(NULL, out);
    for (size_t i = 0; i < SAC_COUNT(rows); i++) {
        if (strcmp(rows[i]->name, name) != 0)
            continue;
        *out = rows[i]->kind;
        return SAC_OK;
    }
    return SAC_ERR_ARG;
}

int sac_tracker_kind_uses_appearance(enum sac_tracker_kind kind)
{
    const struct sac_tracker_row *row = sac_tracker_row_of(kind);
    return row && row->appearance;
}

void sac_tracker_list(void (*fn)(void *user, const char *name, const char *what), void *user)
{
    if (!fn)
        return;
    for (size_t i = 0; i < SAC_COUNT(rows); i++)
        fn(user, rows[i]->name, rows[i]->what);
}

/* One set for all sequences. Scores as in ByteTrack's paper; times and limits chosen for the mean
 * over two sequences, whole, with every second and fourth frame, and with jittered detections
 * (bench/tracking prints the two sequences). */
struct sac_tracker_params sac_tracker_params_default(enum sac_tracker_kind kind)
{
    struct sac_tracker_params p = {
        .kind = kind,
        .score_high = 0.6f,
        .score_low = 0.15f,
        .score_new = 0.7f,
        .match_iou = 0.2f,
        .lost_max_s = 2.5f,
        .confirm_s = 0.03f,
        .reid_distance_max = 0.15f,
        .embedding_dim = 0,
        .gallery_max = 1,
        .camera_motion = 1,
        .track_max = 1000,
    };
    const struct sac_tracker_row *row = sac_tracker_row_of(kind);
    if (row && row->defaults)
        row->defaults(&p);
    return p;
}
