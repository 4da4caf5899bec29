/* SPDX-License-Identifier: Apache-2.0 */
/* A frame and its matte to a picture: over a background, or with what the matte covers marked. All
 * devices compute by what is here, to the last bit. */
#ifndef SAC_VISION_COMPOSITE_H
#define SAC_VISION_COMPOSITE_H

#include "vision/sample.h"

enum sac_composite_kind {
    SAC_COMPOSITE_BACKGROUND, /* frame * matte + background * (1 - matte) */
    SAC_COMPOSITE_TINT,       /* where the matte is, the frame is tinted with colour[0], and its
                                 outline is drawn */
    SAC_COMPOSITE_CLASSES     /* the matte holds class numbers, each tinted with its colour; class 0
                                 and those without a colour stay as they are */
};

enum { SAC_COMPOSITE_COLOURS_MAX = 256 };

struct sac_composite_job {
    enum sac_composite_kind kind;
    const sac_frame        *frame;
    const sac_frame        *matte;      /* SAC_PIXEL_GRAY8, as large as the frame */
    const sac_frame        *background; /* as large; NULL: colour[0] */
    float                   strength;   /* of a tint, 0..1 */
    struct sac_colour       colour[SAC_COMPOSITE_COLOURS_MAX];
    int                     colours;
    sac_frame *out; /* as large as the frame, writable, upright; of the frame's format, or I420 or
                       NV12 of one in 4:2:0. Matrix and range are the frame's */
};

#endif
