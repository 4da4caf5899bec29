/* SPDX-License-Identifier: Apache-2.0 */
/* Frames to draw on and to compose in, for an encoder. Frames from the decoder are not drawn on,
 * since it still reads them. There are two: one is worked on while the other is copied to an
 * encoder. Zero-initialise; one thread. */
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
/* What frames of a format become for an encoder: 4:2:0 in 8 bit, its planes as most take them. */
enum sac_pixel_format sac_canvas_format(enum sac_pixel_format format);
/* Of desc's size, format and colours? */
bool sac_canvas_is_like(const sac_frame *sheet, const sac_frame *desc);
/* Allocate both frames, of that size, format and colours. */
sac_result sac_canvas_prepare(struct sac_canvas *canvas, sac_device *dev, const sac_frame *desc);
/* The next frame, of desc's size, format, colours and time, borrowed until the call after the next
 * one: take a reference to read it for longer. Queue what writes it on canvas->stream, then call
 * give. */
sac_result sac_canvas_take(struct sac_canvas *canvas, sac_device *dev, const sac_frame *desc,
                           sac_frame **out);
sac_result sac_canvas_give(struct sac_canvas *canvas);
/* A frame beside those two, for work on the canvas' stream. */
sac_result sac_canvas_frame(struct sac_canvas *canvas, const sac_frame *desc, sac_frame **out);
/* A copy of the frame with the shapes drawn on it, in an encoder's format, borrowed as by take.
 * Counted as overlay-copy. */
sac_result sac_canvas_draw(struct sac_canvas *canvas, const sac_frame *frame,
                           const struct sac_shape *shapes, int n, sac_frame **out);
void       sac_canvas_finish(struct sac_canvas *canvas); /* half-built too */

#endif
