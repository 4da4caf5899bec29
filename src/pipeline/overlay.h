/* SPDX-License-Identifier: Apache-2.0 */
/* What is drawn over a frame: a box, a label and a trail for each track, in one steady colour an
 * id. Memory is bounded by the tracks of the last trail_s seconds. One thread. */
#ifndef SAC_PIPELINE_OVERLAY_H
#define SAC_PIPELINE_OVERLAY_H

#include <saccade/pipeline.h>

#include "base/base.h"

struct sac_trail;

enum { SAC_LABEL_BYTES = 64 }; /* a longer class name is cut */

struct sac_overlay {
    int64_t  trail_us; /* 0: no trails */
    unsigned labels;   /* SAC_LABEL_...; 0: none */
    /* The name of a class for labels, or NULL where it has none; needed for SAC_LABEL_CLASS. */
    const char *(*class_name)(void *user, int class_id);
    void *user;

    struct sac_trail **trails; /* [trail_count], by rising id; up to trail_capacity kept for reuse
                                */
    size_t            trail_count, trail_made, trail_capacity;
    struct sac_shape *shapes;
    size_t            shape_count, shape_capacity;
    char (*texts)[SAC_LABEL_BYTES];
    size_t text_capacity;
};

/* Zero-initialise, set the fields of the first group. */
void sac_overlay_finish(struct sac_overlay *overlay);
/* Fill shapes [shape_count] for a frame of that size. false: no memory. */
bool sac_overlay_build(struct sac_overlay *overlay, const struct sac_track *tracks, size_t n,
                       int64_t pts_us, int width, int height);

#endif
