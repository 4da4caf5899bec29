/* SPDX-License-Identifier: Apache-2.0 */
/* Where a GPU's frames are drawn on: frames of its memory, since the decoder still reads those that it lends
 * out; two, one of which is drawn on while the other is on its way to an encoder. Zero-initialise; one thread. */
#ifndef SAC_PIPELINE_CANVAS_H
#define SAC_PIPELINE_CANVAS_H

#include <saccade/image.h>

struct sac_canvas {
    sac_device        *dev;
    struct sac_stream *stream;
    struct {
        sac_frame        *frame;
        struct sac_event *drawn;
    } sheet[2];
    unsigned next;
};
/* Both frames, before the first one like this comes. */
sac_result sac_canvas_prepare(struct sac_canvas *canvas, sac_device *dev, const sac_frame *like);
/* The frame with the shapes on it, as 4:2:0 in 8 bit for an encoder; borrowed, until the next call: who reads it
 * longer holds a reference. Counted as overlay-copy. */
sac_result sac_canvas_draw(struct sac_canvas *canvas, const sac_frame *frame, const struct sac_shape *shapes,
                           int n, sac_frame **out);
void       sac_canvas_finish(struct sac_canvas *canvas); /* half-built too */

#endif
