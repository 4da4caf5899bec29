/* SPDX-License-Identifier: Apache-2.0 */
/* A matte inside the picture that it belongs to, for players that take no video with alpha: see
 * docs/vr.md, which has the geometry with a picture and where it is published.
 *
 *   fisheye   each eye's picture is a circle; the matte at 2/5 of its size lies in the corners that
 *             the circles leave, cut into halves (left eye) and quarters (right eye), in red
 *   flat      the matte lies below the picture, as large, in grey
 *
 *     struct sac_packing packing;
 *     res = sac_packing_init(ctx, SAC_PACKING_FISHEYE, SAC_PACKING_SBS, 3840, 1920, &packing);
 *     ... out: a frame of packing.width x packing.height ...
 *     res = sac_packing_write_on(stream, &packing, frame, matte, out); */
#ifndef SAC_VISION_PACKING_H
#define SAC_VISION_PACKING_H

#include <saccade/image.h>

struct sac_device_stream;

enum sac_packing_projection { SAC_PACKING_FLAT, SAC_PACKING_FISHEYE };
enum sac_packing_stereo { SAC_PACKING_MONO, SAC_PACKING_SBS, SAC_PACKING_TB };

/* Pixels; all even, so that 4:2:0 chroma can be cut there. */
struct sac_packing_area {
    int x, y, width, height;
};

/* A piece of an eye's matte, upright and of its own size after scaling. */
struct sac_packing_piece {
    int                     eye;
    struct sac_packing_area from; /* of the scaled matte of that eye */
    struct sac_packing_area to;   /* of the packed frame */
};

enum { SAC_PACKING_EYES_MAX = 2, SAC_PACKING_PIECES_MAX = 6 };

struct sac_packing {
    int                     width, height; /* of the packed frame */
    struct sac_packing_area picture;       /* in it: as large as the frame and its matte */
    int                     eyes;
    struct sac_packing_area eye[SAC_PACKING_EYES_MAX];   /* of the frame and its matte */
    int                     scaled_width, scaled_height; /* of one eye's matte */
    bool round; /* only the circle inside the scaled matte is written, in red; else all of it, in
                   grey */
    int                      pieces;
    struct sac_packing_piece piece[SAC_PACKING_PIECES_MAX];
};

/* Where everything goes for frames of width x height.
 * Errors   SAC_ERR_ARG for odd or too small sizes and for fisheye eyes that are not square;
 *          SAC_ERR_UNSUPPORTED for fisheye eyes above each other. */
sac_result sac_packing_init(sac_context *ctx, enum sac_packing_projection projection,
                            enum sac_packing_stereo stereo, int width, int height,
                            struct sac_packing *out);

/* frame and its matte (SAC_PIXEL_GRAY8) into out, packing.width x packing.height, writable, of any
 * format; of a fisheye packing out may be the frame itself.
 * Errors   SAC_ERR_ARG for wrong sizes, devices or a shared out; those of composites;
 *          SAC_ERR_MEMORY. */
sac_result sac_packing_write_on(struct sac_device_stream *stream, const struct sac_packing *packing,
                                const sac_frame *frame, const sac_frame *matte, sac_frame *out);
/* The way back: the matte of a packed frame in host memory, SAC_PIXEL_GRAY8, as large as the
 * picture. What a fisheye packing keeps is the circle of each eye; around it the matte is 0. */
sac_result sac_packing_read(const struct sac_packing *packing, const sac_frame *packed,
                            sac_frame *matte);

#endif
