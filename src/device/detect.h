/* SPDX-License-Identifier: Apache-2.0 */
/* From a detector's output tensor to boxes, for devices whose tensors the host does not read: decoding of
 * cells, the likeliest class of each, the way back to the pixels of the source, class-wise NMS. The heads
 * say how their tensor is laid out; all devices compute by what is here, to the last bit. */
#ifndef SAC_DEVICE_DETECT_H
#define SAC_DEVICE_DETECT_H

#include <math.h>
#include <string.h>

#include <saccade/head.h>
#include "device/sample.h"

enum sac_detect_form {
    SAC_DETECT_CENTRE, /* centre x, y, width, height in pixels of the input, then the classes */
    SAC_DETECT_YOLOX   /* the same with objectness before the classes; or offset in cells and logarithm
                        * of the size: which, the values of an image tell */
};

enum { SAC_DETECT_CLASSES_MAX = 2048, SAC_DETECT_CELLS_MAX = 1 << 17 };

struct sac_detect_spec {
    enum sac_detect_form form;
    enum sac_dtype       dtype; /* SAC_F32, SAC_F16 */
    int                  input_width, input_height;
    int                  cells, classes;
    int64_t              step_image, step_cell, step_number; /* elements from one to the next */
    float                score_min, nms_iou;
    int                  keep; /* boxes of an image, at most; 1 to cells */
    uint32_t             wanted[SAC_DETECT_CLASSES_MAX / 32]; /* a bit per class */
};

/* ---- numbers ---- */

SAC_ANYWHERE float sac_detect_number(const struct sac_detect_spec *s, const void *image, int64_t at)
{
    if (s->dtype == SAC_F16)
        return sac_float_of_half(((const uint16_t *)image)[at]);
    return ((const float *)image)[at];
}

/* e^x to about 2 units in the last place, the same on every device: C libraries differ. Cody and Waite's
 * reduction to |r| <= ln(2)/2, then the series. */
SAC_ANYWHERE float sac_exp(float x)
{
    if (!(x > -87.0f)) /* not a number becomes 0, which is no box */
        return 0.0f;
    if (x > 88.0f)
        return INFINITY;
    const float n = floorf(x * 1.44269504f + 0.5f);
    const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    float       p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    uint32_t bits;
    memcpy(&bits, &p, sizeof bits);
    bits += (uint32_t)((int32_t)n * (1 << 23));
    memcpy(&p, &bits, sizeof p);
    return p;
}

/* ---- cells ---- */

/* Strides 8, 16, ...: which cell number `cell` is. */
SAC_ANYWHERE void sac_detect_place(const struct sac_detect_spec *s, int cell, int *stride, int *x, int *y)
{
    int size = 8;
    for (;; size *= 2) {
        const int columns = (s->input_width + size - 1) / size, rows = (s->input_height + size - 1) / size;
        if (cell < columns * rows || size >= 64) {
            *stride = size;
            *x = cell % columns;
            *y = cell / columns;
            return;
        }
        cell -= columns * rows;
    }
}

/* Raw centres stay within a few cells of 0, those in pixels are spread over the image. sum: of |x|. */
SAC_ANYWHERE bool sac_detect_is_decoded(const struct sac_detect_spec *s, double sum)
{
    return sum > (double)s->cells * s->input_width / 8;
}

SAC_ANYWHERE bool sac_detect_wants(const struct sac_detect_spec *s, int class_id)
{
    return s->wanted[class_id / 32] >> (class_id % 32) & 1;
}

/* The likeliest class of a cell among those asked for: one object has one. Below 0: none. */
SAC_ANYWHERE int sac_detect_class(const struct sac_detect_spec *s, const void *image, int64_t at, float *score)
{
    float objectness = 1.0f;
    int   best = -1;
    *score = 0;
    at += 4 * s->step_number;
    if (s->form == SAC_DETECT_YOLOX) {
        objectness = sac_detect_number(s, image, at);
        at += s->step_number;
        if (!(objectness >= s->score_min))
            return -1;
    }
    for (int c = 0; c < s->classes; c++, at += s->step_number) {
        float v = sac_detect_number(s, image, at);
        if (s->form == SAC_DETECT_YOLOX)
            v = objectness * v;
        if (!(v >= s->score_min) || !(v <= 1e6f) || !sac_detect_wants(s, c))
            continue;
        v = v < 1.0f ? v + 0.0f : 1.0f; /* no minus 0 */
        if (best < 0 || v > *score) {
            best = c;
            *score = v;
        }
    }
    return best;
}

SAC_ANYWHERE bool sac_detect_is_edge(float v)
{
    return v < 1e6f && v > -1e6f;
}

/* The box of a cell in pixels of the source; false when there is none that makes sense. */
SAC_ANYWHERE bool sac_detect_box(const struct sac_detect_spec *s, const void *image, int cell, bool decoded,
                                 const struct sac_fit_map *map, struct sac_detection *out)
{
    const int64_t at = cell * s->step_cell;
    out->class_id = sac_detect_class(s, image, at, &out->score);
    if (out->class_id < 0)
        return false;
    float cx = sac_detect_number(s, image, at), cy = sac_detect_number(s, image, at + s->step_number);
    float w = sac_detect_number(s, image, at + 2 * s->step_number),
          h = sac_detect_number(s, image, at + 3 * s->step_number);
    if (s->form == SAC_DETECT_YOLOX && !decoded) {
        int stride, x, y;
        sac_detect_place(s, cell, &stride, &x, &y);
        cx = (cx + (float)x) * (float)stride;
        cy = (cy + (float)y) * (float)stride;
        w = sac_exp(w) * (float)stride;
        h = sac_exp(h) * (float)stride;
    }
    const float x0 = cx - w * 0.5f, y0 = cy - h * 0.5f, x1 = cx + w * 0.5f, y1 = cy + h * 0.5f;
    if (!(x1 > x0) || !(y1 > y0) || !sac_detect_is_edge(x0) || !sac_detect_is_edge(y0) ||
        !sac_detect_is_edge(x1) || !sac_detect_is_edge(y1))
        return false;
    out->x0 = (x0 - map->offset_x) / map->scale_x;
    out->y0 = (y0 - map->offset_y) / map->scale_y;
    out->x1 = (x1 - map->offset_x) / map->scale_x;
    out->y1 = (y1 - map->offset_y) / map->scale_y;
    return true;
}

/* ---- suppression ---- */

SAC_ANYWHERE float sac_detect_iou(const struct sac_detection *a, const struct sac_detection *b)
{
    const float w = (a->x1 < b->x1 ? a->x1 : b->x1) - (a->x0 > b->x0 ? a->x0 : b->x0);
    const float h = (a->y1 < b->y1 ? a->y1 : b->y1) - (a->y0 > b->y0 ? a->y0 : b->y0);
    if (!(w > 0) || !(h > 0))
        return 0;
    const float both = w * h;
    const float all = (a->x1 - a->x0) * (a->y1 - a->y0) + (b->x1 - b->x0) * (b->y1 - b->y0) - both;
    return all > 0 ? both / all : 0;
}

/* Which comes first: the better, ties by class and place. 0: not decided. */
SAC_ANYWHERE int sac_detect_order(const struct sac_detection *a, const struct sac_detection *b)
{
    if (a->score != b->score)
        return a->score < b->score ? 1 : -1;
    if (a->class_id != b->class_id)
        return a->class_id < b->class_id ? -1 : 1;
    if (a->x0 != b->x0)
        return a->x0 < b->x0 ? -1 : 1;
    return (a->y0 > b->y0) - (a->y0 < b->y0);
}

/* ---- running it ---- */

#ifndef __CUDACC__
#include "device/device.h"

/* What comes out lies in device memory: int32_t count[n], then from sac_detect_boxes_at on the boxes of all
 * images, packed, each image's best first. */
static inline size_t sac_detect_boxes_at(int n)
{
    return ((size_t)n * sizeof(int32_t) + 63) & ~(size_t)63;
}
static inline size_t sac_detect_out_bytes(const struct sac_detect_spec *s, int n)
{
    return sac_detect_boxes_at(n) + (size_t)n * (size_t)s->keep * sizeof(struct sac_detection);
}

/* tensor   device memory, n images laid out as s says.
 * maps     [n], host: where each source lies in the input.
 * out      device memory of sac_detect_out_bytes.
 * Errors   SAC_ERR_UNSUPPORTED for more cells or classes than there is room for. */
sac_result sac_detect_run(sac_device *dev, struct sac_stream *stream, const struct sac_detect_spec *s,
                          const void *tensor, const struct sac_fit_map *maps, int n, void *out);
/* The lists of n images to the host, when the stream has come to it: a few hundred bytes an image. */
sac_result sac_detect_fetch(sac_device *dev, struct sac_stream *stream, const struct sac_detect_spec *s,
                            const void *out, int n, struct sac_detections *found);
#endif

#endif
