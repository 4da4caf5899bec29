/* SPDX-License-Identifier: Apache-2.0 */
/* GPU frames to draw on. Frames from the decoder are not drawn on, since it still reads them. There
 * are two: one is drawn on while the other is copied to an encoder. Zero-initialise; one thread. */
#ifndef SAC_PIPELINE_CANVAS_H
#define SAC_PIPELINE_CANVAS_H

#include <saccade/image.h>

struct sac_canvas {
    sac_device               *dev;
    struct sac_device_stream *stream;
    struct {
        sac_frame        *frame;
        struct sac_event *drawn;
    } sheet[2];
    unsigned next;
};
/* Allocate both frames, of the size and format of `like`. */
sac_result sac_canvas_prepare(struct sac_canvas *canvas, sac_device *dev, const sac_frame *like);
/* A copy of the frame with the shapes drawn on it, 4:2:0 in 8 bit for an encoder. Borrowed until
 * the next call: take a reference to read it for longer. Counted as overlay-copy. */
sac_result sac_canvas_draw(struct sac_canvas *canvas, const sac_frame *frame,
                           const struct sac_shape *shapes, int n, sac_frame **out);
void       sac_canvas_finish(struct sac_canvas *canvas); /* half-built too */

#endif
