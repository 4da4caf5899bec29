/* SPDX-License-Identifier: Apache-2.0 */
/* From the boxes of an instance network to a map: each box brings coefficients, which weigh the
 * prototypes of all cells that the box holds, and a sigmoid of the sum is how much of a cell
 * belongs to it. What a cell has is that of the box that has most of it. A matte is made of the map
 * as of any other network's (matte.h).
 *
 * Who asks for the instances one by one gets the sums of each box beside the map, of the cells
 * about it: kilobytes, where masks of the frame's size are megabytes. On the host they become masks
 * in pixels, as others write these networks' COCO results: the sums are interpolated at each pixel
 * of the box, which is inside where that is over 0 (the sigmoid over a half).
 *
 * The boxes stay where a detector's head left them (detect.h), in the memory of the device; all
 * devices compute by what is here, to the last bit.
 *
 * Source   D. Bolya, C. Zhou, F. Xiao, Y. J. Lee, "YOLACT: Real-time Instance Segmentation", ICCV
 *          2019. */
#ifndef SAC_VISION_INSTANCES_H
#define SAC_VISION_INSTANCES_H

#include "vision/detect.h"
#include "vision/matte.h"

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

/* ---- each by itself ---- */

/* Of each image the windows of its boxes, best first, one behind the other, row by row. Those from
 * the first box on that finds no room have none. */
struct sac_instances_sums {
    int    room;               /* numbers for an image */
    int    margin_x, margin_y; /* sac_instances_margin of all images, the greatest; 1 at least */
    float *out;                /* [n,room] in device memory */
};

/* From an edge as an interpolated pixel may reach; step: cells from one pixel to the next. */
SAC_ANYWHERE int sac_instances_margin(double step)
{
    const double half = ceil(step * 0.5);
    return half > 1 ? (half < SAC_MATTE_SIZE_MAX ? (int)half : SAC_MATTE_SIZE_MAX) : 1;
}

SAC_ANYWHERE int sac_instances_cut(float cell, int cells)
{
    return cell > 0.0f ? (cell < (float)cells ? (int)cell : cells) : 0;
}

/* All cells that pixels of the box lie between. */
SAC_ANYWHERE struct sac_instances_window sac_instances_about(const struct sac_instances_spec *s,
                                                             const struct sac_instances_sums *sums,
                                                             const struct sac_detection      *box)
{
    const float across = (float)s->width / (float)s->input_width,
                down = (float)s->height / (float)s->input_height;
    struct sac_instances_window w;
    w.x0 = sac_instances_cut(floorf(box->x0 * across) - 1.0f, s->width);
    w.y0 = sac_instances_cut(floorf(box->y0 * down) - 1.0f, s->height);
    w.x1 = sac_instances_cut(ceilf(box->x1 * across) + (float)(sums->margin_x + 1), s->width);
    w.y1 = sac_instances_cut(ceilf(box->y1 * down) + (float)(sums->margin_y + 1), s->height);
    return w;
}

/* What is no number is outside: which bits it has differs from device to device. */
SAC_ANYWHERE float sac_instances_sum(float sum)
{
    return sum == sum ? sum : -INFINITY;
}

SAC_ANYWHERE int64_t sac_instances_area(const struct sac_instances_window *w)
{
    return (int64_t)(w->x1 - w->x0) * (w->y1 - w->y0);
}

/* ---- running it ---- */

#ifndef __CUDACC__
#include "vision/vision.h"

/* tensors  of the network, n images.
 * found    what sac_detect_run made of the same images, with origins, in pixels of the network's
 *          input (a map of scale 1 and offset 0).
 * out      [n,1,height,width] float32 in device memory.
 * sums     NULL: not asked.
 * Errors   SAC_ERR_UNSUPPORTED where the device has no such entry, or for other numbers;
 *          SAC_ERR_ARG; SAC_ERR_MEMORY. */
sac_result sac_instances_run(sac_device *dev, struct sac_device_stream *stream,
                             const struct sac_instances_spec *s, const void *const *tensors,
                             const void *found, int n, float *out,
                             const struct sac_instances_sums *sums);

/* ---- on the host ---- */

/* One instance. */
struct sac_instance {
    struct sac_detection        box; /* pixels of the frame or eye, its class from 0 on */
    struct sac_instances_window window;
    const float                *sums; /* of the window's cells */
};

/* Where the cells lie in the frame or eye that was seen. */
struct sac_instances_view {
    struct sac_fit_map    map;
    struct sac_matte_axis x, y;
};

/* How many of an image's boxes have sums; *numbers: how many these are. */
int sac_instances_room_for(const struct sac_instances_spec *s,
                           const struct sac_instances_sums *sums, const struct sac_detection *boxes,
                           int count, size_t *numbers);

/* The pixels of a mask: [y1-y0,x1-x0] of 0 and 1, those of the box within what was seen. Used
 * again. */
struct sac_instance_mask {
    int             x0, y0, x1, y1;
    uint8_t        *pixels;
    float          *line;
    struct sac_tap *taps;
    size_t          pixels_room, line_room, taps_room;
};
void sac_instance_mask_finish(struct sac_instance_mask *mask);
/* Cut at the box as COCO's masks of these networks are: pixel x is in where x0 <= x < x1.
 * Errors   SAC_ERR_MEMORY. */
sac_result sac_instance_draw(sac_context *ctx, const struct sac_instance *instance,
                             const struct sac_instances_view *view, struct sac_instance_mask *mask);
#endif

#endif
