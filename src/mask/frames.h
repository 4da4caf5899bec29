/* SPDX-License-Identifier: Apache-2.0 */
/* The luma of a video's frames by number, or their alpha. Frames are asked for in rising order; a
 * smaller number begins anew. */
#ifndef SAC_MASK_FRAMES_H
#define SAC_MASK_FRAMES_H

#include <saccade/frame.h>
#include <saccade/source.h>

#include "base/base.h"

struct sac_frames {
    sac_context *ctx;
    const char  *url; /* borrowed */
    sac_device  *dev;
    sac_source  *source;
    sac_frame   *frame; /* the latest, SAC_PIXEL_GRAY8; NULL: none */
    int64_t      at;    /* its number; -1: none yet */
    int64_t      count; /* frames of the whole video; -1: not yet known */
    bool         alpha; /* of pictures with alpha that is taken, not their luma; may be changed */
    bool         coloured; /* with alpha: frame 0 is in colour, and its luma was taken */
};
sac_result sac_frames_open(sac_context *ctx, const char *url, bool alpha, struct sac_frames *out);
void       sac_frames_close(struct sac_frames *frames); /* half-built too */
/* Has a frame so far been an alpha? */
bool sac_frames_have_alpha(const struct sac_frames *frames);
/* frames->frame is that frame, full range, until the next call. SAC_EOS: there is none. */
sac_result sac_frames_get(struct sac_frames *frames, int64_t number);

#endif
