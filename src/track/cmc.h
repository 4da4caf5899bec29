/* SPDX-License-Identifier: Apache-2.0 */
/* Camera motion: how the background moved from one frame to the next.
 *
 *     struct sac_cmc cmc = {0};
 *     if (!sac_cmc_reserve(&cmc, frame))
 *         ...                                       // no memory
 *     struct sac_similarity move = sac_cmc_next(&cmc, frame, boxes, count);
 *     sac_cmc_finish(&cmc);
 *
 * Corners of the former frame, outside the boxes of moving objects, are looked for in the new one on
 * a picture about 320 pixels wide, and the similarity that most of them agree on is the camera's.
 * Source   J. Shi and C. Tomasi, "Good Features to Track", 1994; J.-Y. Bouguet, "Pyramidal
 *          Implementation of the Lucas Kanade Feature Tracker", 2000; M. Fischler and R. Bolles,
 *          "Random Sample Consensus", 1981. */
#ifndef SAC_TRACK_CMC_H
#define SAC_TRACK_CMC_H

#include <stdbool.h>
#include <saccade/frame.h>

#include "track/kalman.h"

enum { SAC_CMC_LEVELS = 3, SAC_CMC_POINTS = 256 };

struct sac_cmc_plane {
    uint8_t *pixels; /* [height,width] */
    int      width, height;
};
/* The same picture at full, half and quarter size. */
struct sac_cmc_pyramid {
    struct sac_cmc_plane level[SAC_CMC_LEVELS];
};
struct sac_cmc_match {
    float x, y, to_x, to_y; /* pixels of level 0 */
};

struct sac_cmc {
    uint8_t               *memory;   /* both pyramids and the rows */
    uint8_t               *luma_row; /* [frame width] */
    uint16_t              *sum_row;  /* [frame width] */
    struct sac_cmc_pyramid now, before;
    int                    width, height; /* of the frames that the memory is for */
    int                    shrink;        /* frame pixels per pixel of level 0 */
    bool                   has_before;
    struct sac_cmc_match   match[SAC_CMC_POINTS];
    int                    match_count;
};

/* Whether the frame's pixels can be read: a known format in host memory. */
bool sac_cmc_can_read(const sac_frame *frame);
/* Room for frames of this size; after a change of size the next move is none. false: no memory, and
 * nothing has changed. */
bool sac_cmc_reserve(struct sac_cmc *cmc, const sac_frame *frame);
void sac_cmc_finish(struct sac_cmc *cmc);

/* The move from the former frame to this one; none at the first and where too few corners agree.
 * moving   [n] boxes of the former frame whose inside does not count. */
struct sac_similarity sac_cmc_next(struct sac_cmc *cmc, const sac_frame *frame,
                                   const struct sac_box *moving, size_t n);

#endif
