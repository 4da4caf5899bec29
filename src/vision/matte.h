/* SPDX-License-Identifier: Apache-2.0 */
/* From a segmenting network's output to a matte: for each pixel of the frame how much of it belongs
 * to what was asked for (people), or which class it is.
 *
 *   cells     the network's map, some hundred cells wide: its numbers become shares from 0 to 1
 *             (sigmoid, softmax over the classes, or as they are)
 *   smoothing each cell looks for itself in the frame before and keeps a part of what it was there
 *   holes     gaps inside a body are closed
 *   pixels    the shares follow the frame's luma, so that edges of the matte lie on those of the
 *             picture, and are stretched between two limits (the feather)
 *
 * All devices compute by what is here, to the last bit: shares and luma are integers, sums over
 * windows too. */
#ifndef SAC_VISION_MATTE_H
#define SAC_VISION_MATTE_H

#include "vision/detect.h"
#include "vision/fit.h"

/* What the numbers of a cell are. */
enum sac_matte_form {
    SAC_MATTE_SHARE,        /* one, 0 to 1 */
    SAC_MATTE_LOGIT,        /* one, which a sigmoid makes a share */
    SAC_MATTE_CLASS_LOGITS, /* one a class, of which a softmax makes shares */
    SAC_MATTE_CLASS_SHARES, /* one a class, 0 to 1 */
    SAC_MATTE_LABEL         /* the number of its class */
};

/* One network's output. */
struct sac_matte_spec {
    enum sac_matte_form form;
    int                 width, height; /* cells; cell x, y is row y's number x. They cover the
                                          network's whole input evenly */
    int                     input_width, input_height; /* of the network */
    int                     classes;                   /* 1 for one number */
    struct sac_detect_field value; /* number k: of class k; label, share or logit: number 0 */
    uint32_t wanted[SAC_DETECT_CLASSES_MAX / 32]; /* classes whose shares are the matte; one number:
                                                     not looked at */
};

/* What is made of the cells. */
struct sac_matte_style {
    bool classes;      /* out holds the number of each pixel's likeliest class, no matte; nothing
                          below is looked at */
    int   guide;       /* cells: half the window in which the matte follows luma; 0: it does not */
    float guide_noise; /* luma, 0..255: differences below it are no edge */
    float smooth;      /* 0..0.95: the part of the former matte that stays in a cell that was found
                          again and that the network is least sure of; 0: none */
    int   hole;        /* cells: gaps up to this wide are closed; 0: none */
    float low, high;   /* shares, low < high: what is below low becomes 0, above high 1 */
};

/* The memory of one stream's mattes (each eye has its own), zeroed before the first. */
struct sac_matte_state {
    uint8_t *memory;     /* of the device, [sac_matte_bytes] */
    bool     has_before; /* the frame before was of this size, with this crop and spec */
    unsigned turn;       /* set by who runs the op: the planes change places with each frame */
};

/* One image of a batch. */
struct sac_matte_job {
    const sac_frame       *frame; /* what was seen */
    struct sac_rect        crop;  /* the part of it; empty: all */
    int                    image; /* of the tensors */
    struct sac_fit_map     map;   /* from the frame's pixels to the network's input */
    struct sac_matte_state state; /* memory may not be NULL unless style.classes */
    sac_frame *out; /* SAC_PIXEL_GRAY8, as large as the frame, writable; only the pixels of
                       the crop are written */
};

#endif
