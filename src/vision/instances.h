/* SPDX-License-Identifier: Apache-2.0 */
/* From the boxes of an instance network to a map: each box brings coefficients, which weigh the
 * prototypes of all cells that the box holds, and a sigmoid of the sum is how much of a cell
 * belongs to it. What a cell has is that of the box that has most of it. A matte is made of the map
 * as of any other network's (matte.h).
 *
 * The boxes stay where a detector's head left them (detect.h), in the memory of the device; all
 * devices compute by what is here, to the last bit.
 *
 * Source   D. Bolya, C. Zhou, F. Xiao, Y. J. Lee, "YOLACT: Real-time Instance Segmentation", ICCV
 *          2019. */
#ifndef SAC_VISION_INSTANCES_H
#define SAC_VISION_INSTANCES_H

#include "vision/detect.h"

enum { SAC_INSTANCES_NUMBERS_MAX = 256 };

struct sac_instances_spec {
    int  width, height; /* cells of the prototypes' map, which covers the input evenly */
    int  input_width, input_height; /* of the network */
    int  numbers;                   /* prototypes of a cell, coefficients of a box; 1 to ..._MAX */
    int  keep;                      /* of the boxes' spec */
    bool labels; /* the map holds the class of whose share is the greatest, from 1 on, 0 where none
                    is over a half; else that share, 0 where no box is */
    /* Number k: of the cell that a box came from; of cell y * width + x of the map. */
    struct sac_detect_field coefficient, prototype;
};

/* Cells of the map. */
struct sac_instances_window {
    int x0, y0, x1, y1; /* past the last */
};

/* The first cell at or after an edge in pixels of the input. Cells stand at their number, not at
 * their middle: so the masks were cut where they were trained. */
SAC_ANYWHERE int sac_instances_edge(float edge, int cells, int pixels)
{
    const float at = ceilf(edge * ((float)cells / (float)pixels));
    return at > 0.0f ? (at < (float)cells ? (int)at : cells) : 0;
}

SAC_ANYWHERE struct sac_instances_window sac_instances_window_of(const struct sac_instances_spec *s,
                                                                 const struct sac_detection *box)
{
    struct sac_instances_window w;
    w.x0 = sac_instances_edge(box->x0, s->width, s->input_width);
    w.y0 = sac_instances_edge(box->y0, s->height, s->input_height);
    w.x1 = sac_instances_edge(box->x1, s->width, s->input_width);
    w.y1 = sac_instances_edge(box->y1, s->height, s->input_height);
    return w;
}

/* Sums go from the first number to the last. */
SAC_ANYWHERE float sac_instances_add(float sum, float coefficient, float prototype)
{
    return sum + coefficient * prototype;
}

/* What a cell has of the boxes that were looked at. */
struct sac_instances_cell {
    float sum; /* the greatest */
    int   label;
};

SAC_ANYWHERE struct sac_instances_cell sac_instances_nothing(const struct sac_instances_spec *s)
{
    struct sac_instances_cell c;
    c.sum = s->labels ? 0.0f : -INFINITY;
    c.label = 0;
    return c;
}

/* Boxes come best first: of equal shares the better box's counts. What is no number never does. */
SAC_ANYWHERE void sac_instances_take(struct sac_instances_cell *c, float sum, int class_id)
{
    if (!(sum > c->sum))
        return;
    c->sum = sum;
    c->label = class_id + 1;
}

/* Of the map. The sigmoid rises, so it is taken once, of the greatest. */
SAC_ANYWHERE float sac_instances_number(const struct sac_instances_spec *s,
                                        const struct sac_instances_cell *c)
{
    return s->labels ? (float)c->label : sac_sigmoid(c->sum);
}

/* ---- running it ---- */

#ifndef __CUDACC__
#include "vision/vision.h"

/* tensors  of the network, n images.
 * found    what sac_detect_run made of the same images, with origins, in pixels of the network's
 *          input (a map of scale 1 and offset 0).
 * out      [n,1,height,width] float32 in device memory.
 * Errors   SAC_ERR_UNSUPPORTED where the device has no such entry, or for other numbers;
 *          SAC_ERR_ARG; SAC_ERR_MEMORY. */
sac_result sac_instances_run(sac_device *dev, struct sac_device_stream *stream,
                             const struct sac_instances_spec *s, const void *const *tensors,
                             const void *found, int n, float *out);
#endif

#endif
