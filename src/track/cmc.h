/* SPDX-License-Identifier: Apache-2.0 */
/* Camera motion: how the background moved from one frame of a stream to the next (vision/camera.h
 * says by which means).
 *
 *     struct sac_cmc        cmc = {0};
 *     struct sac_camera_job job;
 *     if (!sac_cmc_reserve(&cmc, frame))
 *         ...                                       // no memory
 *     sac_cmc_next(&cmc, frame, boxes, count, &job); // then sac_camera_on_host, or its like
 *     struct sac_similarity s = sac_cmc_similarity(cmc.shrink, &move);
 *     sac_cmc_finish(&cmc);
 */
#ifndef SAC_TRACK_CMC_H
#define SAC_TRACK_CMC_H

#include <stdbool.h>
#include <saccade/frame.h>

#include "vision/camera.h"
#include "track/kalman.h"

struct sac_cmc {
    sac_device               *dev;    /* the device that the memory is on; NULL: the host */
    uint8_t                  *memory; /* both pyramids */
    struct sac_buffer        *buffer; /* behind it on a device */
    struct sac_camera_pyramid now, before;
    int                       width, height; /* of the frames that the memory is for */
    int                       shrink;
    bool                      has_before;
    /* device memory that only the device's own stream may use so far */
    bool is_new;
};

/* Whether the frame's pixels can be read: a known format, and a device that has an entry for it. */
bool sac_cmc_can_read(const sac_frame *frame);
/* Whether a device computes it, rather than the host. */
bool sac_cmc_is_remote(const sac_frame *frame);
/* Allocates for frames of this size on this frame's device. After a change of size the next frame
 * has no motion. false: no memory, and nothing has changed. */
bool sac_cmc_reserve(struct sac_cmc *cmc, const sac_frame *frame);
void sac_cmc_finish(struct sac_cmc *cmc);

/* The job that computes the motion from the previous frame to this one.
 * moving   [n] boxes of the former frame whose inside does not count; borrowed by *out. */
void sac_cmc_next(struct sac_cmc *cmc, const sac_frame *frame, const struct sac_camera_box *moving,
                  size_t n, struct sac_camera_job *out);
/* The job failed: the next frame counts as the first. */
void sac_cmc_forget(struct sac_cmc *cmc);
/* In pixels of the frame. */
struct sac_similarity sac_cmc_similarity(int shrink, const struct sac_camera_move *move);

#endif
