/* SPDX-License-Identifier: Apache-2.0 */
/* What the disk cache has of an input's prepared frames, or gets (params.disk_cache_frames): what
 * the detector's network takes, for another network that takes the same. Two entries:
 *
 *     frames   the images, one behind the other, as they lie in the network's input
 *     times    of each frame what is known of it without its pixels, and its image's sum
 *
 * The small one is checked whole, and an image when its turn comes: the frame of a damaged one is
 * decoded. So the input is open in any case, and nothing is read from it while all are whole.
 *
 *     sac_prepared_open     all is open: looks both up, or begins them
 *     sac_prepared_next     reading thread, where sac_prepared_has: the next frame
 *     sac_prepared_keep     inference thread, where not: an image that was made
 *     sac_prepared_add      finishing thread, where not: each frame
 *     sac_prepared_commit   the threads have ended */
#ifndef SAC_PIPELINE_PREPARED_H
#define SAC_PIPELINE_PREPARED_H

#include "pipeline/replay.h"

/* As it lies in the file. */
struct sac_prepared_frame {
    int64_t  number, pts_us, source_pts_us;
    int32_t  width, height;  /* of the frame that the image was made of */
    uint32_t still, padding; /* still: the network did not see it, and it has no image */
    uint64_t sum[2];         /* of its image */
};

struct sac_prepared {
    sac_context *ctx;
    sac_cache   *cache; /* both borrowed of the input's replay */
    const char  *name;
    char        *frames_key, *times_key;
    size_t       image_bytes;
    sac_cached  *frames, *times; /* NULL: there are none */

    /* The reading thread's. */
    const struct sac_prepared_frame *at, *end;
    const uint8_t                   *image_at;
    bool                             damaged;

    /* Recording: the inference thread's, and the finishing thread's. */
    struct sac_cache_writer frames_out, times_out;
    int64_t                 image_count, frame_count, seen_count;
};

/* Without fault: a cache that can't be read or written is logged, and the run goes on without.
 * replay   the input's, which has no boxes; must live longer.
 * pre      what the network takes.
 * Returns  NULL: there is nothing to take, and nothing to keep. */
struct sac_prepared *sac_prepared_open(const struct sac_replay *replay, const struct sac_job *job,
                                       const struct sac_preprocess *pre);
void                 sac_prepared_close(struct sac_prepared **p); /* without a commit: as replay */
/* Whether frames come from it. */
bool sac_prepared_has(const struct sac_prepared *p);
/* The next frame into the item. One that is neither still nor has an image must be decoded.
 * Errors   SAC_EOS. */
sac_result sac_prepared_next(struct sac_prepared *p, struct sac_item *item);
/* The network has taken the item's image. */
void sac_prepared_taken(const struct sac_prepared *p, const struct sac_item *item);
/* In the input's order; again for the same item is once. */
void sac_prepared_keep(struct sac_prepared *p, struct sac_item *item, const void *pixels);
void sac_prepared_add(struct sac_prepared *p, const struct sac_item *item);
/* sent: frames of an input that was read to its end; 0: it was not. */
void sac_prepared_commit(struct sac_prepared *p, int64_t sent);

#endif
