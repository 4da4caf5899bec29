/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes onto a frame: all their coats go to the GPU as one list, and one launch paints them in
 * order. */
#include <string.h>

#include "vision/cuda/cuda.h"

/* Coats and segments as they come, in host memory that grows. */
struct list {
    struct sac_coat    *coat;
    struct sac_segment *segment;
    size_t              coats, coat_room, segments, segment_room;
    struct sac_bounds   bounds;
    bool                failed;
};

static void collect(void *user, const struct sac_coat *coat, const struct sac_segment *segment)
{
    struct list *l = user;
    const size_t count = coat->cover == SAC_COVER_STROKES ? (size_t)coat->count : 0;
    if (l->failed || !sac_grow((void **)&l->coat, &l->coat_room, l->coats + 1, sizeof *l->coat) ||
        !sac_grow((void **)&l->segment, &l->segment_room, l->segments + count,
                  sizeof *l->segment)) {
        l->failed = true;
        return;
    }
    const struct sac_bounds *b = &coat->bounds;
    l->bounds =
        l->coats ? (struct sac_bounds){SAC_MIN(l->bounds.x0, b->x0), SAC_MIN(l->bounds.y0, b->y0),
                                       SAC_MAX(l->bounds.x1, b->x1), SAC_MAX(l->bounds.y1, b->y1)}
                 : *b;
    l->coat[l->coats] = *coat;
    l->coat[l->coats++].first = (int)l->segments;
    if (count)
        memcpy(l->segment + l->segments, segment, count * sizeof *segment);
    l->segments += count;
}

static sac_result paint(struct sac_device *dev, struct sac_device_stream *stream,
                        const sac_frame *frame, const struct list *l)
{
    const size_t coat_bytes = l->coats * sizeof *l->coat,
                 segment_bytes = l->segments * sizeof *l->segment;
    struct cuda_command_block *block = NULL;
    sac_result                 res = cuda_commands_take(dev, coat_bytes + segment_bytes, &block);
    if (res != SAC_OK)
        return res;
    struct cuda_draw_params p = {.width = frame->width,
                                 .height = frame->height,
                                 .format = frame->format,
                                 .bounds = l->bounds,
                                 .coats = block->device,
                                 .segments = (void *)((char *)block->device + coat_bytes),
                                 .count = (int)l->coats};
    for (int i = 0; i < SAC_PLANES_MAX; i++) {
        p.plane[i] = frame->plane[i];
        p.pitch[i] = (uint32_t)frame->pitch_bytes[i]; /* writable, so a frame of our own: it fits */
    }
    memcpy(block->host, l->coat, coat_bytes);
    if (segment_bytes)
        memcpy((char *)block->host + coat_bytes, l->segment, segment_bytes);
    res = cuda_commands_send(dev, stream, block, coat_bytes + segment_bytes, "shapes to draw");
    if (res == SAC_OK)
        res = cuda_check(dev, cuda_launch_draw(&p, cuda_stream_of(dev, stream)), "draw");
    cuda_commands_done(dev, stream, block);
    return res;
}

sac_result cuda_draw(struct sac_device *dev, struct sac_device_stream *stream, sac_frame *frame,
                     const struct sac_shape *shapes, int n)
{
    struct list l = {0};
    for (int i = 0; i < n; i++)
        sac_coats_of(frame, &shapes[i], collect, &l);
    sac_result res = SAC_OK;
    if (l.failed || l.coats > INT32_MAX || l.segments > INT32_MAX)
        res = SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "%s: no memory for %d shapes", dev->name, n);
    if (res == SAC_OK && l.coats)
        res = cuda_enter(dev);
    if (res == SAC_OK && l.coats) {
        res = paint(dev, stream, frame, &l);
        cuda_leave();
    }
    sac_free(l.coat);
    sac_free(l.segment);
    return res;
}
