/* SPDX-License-Identifier: Apache-2.0 */
/* Where a GPU's frames are drawn on: one frame of its memory, since the decoder still reads those that it
 * lends out. Zero-initialise; one thread. */
#ifndef SAC_PIPELINE_CANVAS_H
#define SAC_PIPELINE_CANVAS_H

#include <saccade/image.h>

struct sac_canvas {
    sac_device        *dev;
    struct sac_stream *stream;
    struct sac_event  *drawn; /* the canvas frame's */
    sac_frame         *frame;
};
/* The frame with the shapes on it, as 4:2:0 in 8 bit for an encoder; borrowed, until the next call, by when
 * the work on it must be done. Counted as overlay-copy. */
sac_result sac_canvas_draw(struct sac_canvas *canvas, const sac_frame *frame, const struct sac_shape *shapes,
                           int n, sac_frame **out);
void       sac_canvas_finish(struct sac_canvas *canvas); /* half-built too */

#endif
