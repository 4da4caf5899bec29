/* SPDX-License-Identifier: Apache-2.0 */
/* From a detector's output tensors to boxes: decoding of cells, the likeliest class of each, the
 * way back to the pixels of the source, class-wise NMS. The heads say how their tensor is laid out;
 * all devices compute by what is here, to the last bit. */
#ifndef SAC_VISION_DETECT_H
#define SAC_VISION_DETECT_H

#include <math.h>
#include <string.h>

#include <saccade/head.h>
#include "vision/sample.h"

enum sac_detect_form {
    SAC_DETECT_CENTRE,  /* a cell: centre x, y, width, height in pixels of the input; scores */
    SAC_DETECT_YOLOX,   /* the same; or offset in cells and logarithm of the size: which, the values
                         * of an image tell */
    SAC_DETECT_GFL,     /* a cell: each edge's distance as logits of bins; scores, or their logits:
                         * which, the values of an image tell */
    SAC_DETECT_QUERIES, /* centre x, y, width, height as shares of the input; scores or logits,
                           likewise */
    SAC_DETECT_ROWS     /* finished: x0, y0, x1, y1, one score and its class */
};

enum {
    SAC_DETECT_CLASSES_MAX = 2048, /* that can be asked for by number */
    SAC_DETECT_LEVELS_MAX = 4,
    SAC_DETECT_TENSORS_MAX = 16
};

/* Numbers of one kind: number k of cell c of image i is at first + i * image + c * cell + k *
 * number. */
struct sac_detect_field {
    int            tensor;
    enum sac_dtype dtype;                      /* SAC_F32, SAC_F16, SAC_I32, SAC_I64 */
    int64_t        first, image, cell, number; /* elements */
};

/* Boxes of ROWS in pixels of the input, as shares of it, or in pixels once any number exceeds 2. */
enum sac_detect_unit { SAC_DETECT_PIXELS = 0, SAC_DETECT_SHARES, SAC_DETECT_UNIT_SHOWS };

struct sac_detect_spec {
    enum sac_detect_form form;
    int                  tensor_count;
    int                  input_width, input_height;
    int                  cells, classes;
    bool objectness;           /* the score before the first class multiplies all (CENTRE, YOLOX) */
    bool no_object;            /* a class behind the last; logits then pass a softmax (QUERIES) */
    bool ended;                /* a first column below 0 ends the rows (ROWS) */
    enum sac_detect_unit unit; /* ROWS */
    bool                 y_first; /* y0, x0, y1, x1 (ROWS) */
    bool                 centred; /* centre x, y, width, height (ROWS) */
    int                  bins;    /* of an edge (GFL) */
    float                offset;  /* of a cell's point in it, in cells (GFL) */
    /* Cells of strides 8, 16, ... lie level by level where the form is GFL; else all are of level
     * 0. */
    struct sac_detect_field box[SAC_DETECT_LEVELS_MAX], score[SAC_DETECT_LEVELS_MAX];
    struct sac_detect_field label, end; /* ROWS */
    float                   score_min, nms_iou;
    bool     nms;         /* else only of equal boxes the best stays: one object has one class */
    int      keep;        /* boxes of an image, at most; 1 to cells */
    bool     origins;     /* out tells of each box which cell it came from */
    bool     all_classes; /* wanted is not looked at */
    uint32_t wanted[SAC_DETECT_CLASSES_MAX / 32]; /* a bit per class */
};

/* ---- numbers ---- */

SAC_ANYWHERE float sac_detect_read(const struct sac_detect_field *f, const void *const *tensors,
                                   int64_t at)
{
    const void *t = tensors[f->tensor];
    switch (f->dtype) {
    case SAC_F16: return sac_float_of_half(((const uint16_t *)t)[at]);
    case SAC_I32: return (float)((const int32_t *)t)[at];
    case SAC_I64: return (float)((const int64_t *)t)[at];
    default: return ((const float *)t)[at];
    }
}

/* Where number 0 of a cell is. */
SAC_ANYWHERE int64_t sac_detect_at(const struct sac_detect_field *f, int image, int64_t cell)
{
    return f->first + image * f->image + cell * f->cell;
}

/* e^x to about 2 units in the last place, the same on every device: C libraries differ. Cody and
 * Waite's reduction to |r| <= ln(2)/2, then the series. */
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

SAC_ANYWHERE float sac_sigmoid(float v)
{
    return v == v ? 1.0f / (1.0f + sac_exp(-v)) : v;
}

/* ---- cells ---- */

/* A cell among those of strides 8, 16, ..., each map row by row. */
struct sac_detect_cell {
    int level, index; /* index: in its level */
    int stride, x, y;
};

SAC_ANYWHERE struct sac_detect_cell sac_detect_place(const struct sac_detect_spec *s, int cell)
{
    int level = 0;
    for (int size = 8;; size *= 2, level++) {
        const int columns = (s->input_width + size - 1) / size,
                  rows = (s->input_height + size - 1) / size;
        if (cell < columns * rows || size >= 64) {
            const struct sac_detect_cell at = {level, cell, size, cell % columns, cell / columns};
            return at;
        }
        cell -= columns * rows;
    }
}

/* Which level's fields hold a cell, and where. */
SAC_ANYWHERE struct sac_detect_cell sac_detect_place_of(const struct sac_detect_spec *s, int cell)
{
    const struct sac_detect_cell plain = {0, cell, 0, 0, 0};
    return s->form == SAC_DETECT_GFL ? sac_detect_place(s, cell) : plain;
}

/* ---- what the values of an image tell ---- */

/* How many values of an image are looked at; 0: nothing is open. */
SAC_ANYWHERE int64_t sac_detect_values(const struct sac_detect_spec *s)
{
    switch (s->form) {
    case SAC_DETECT_YOLOX: return s->cells;
    case SAC_DETECT_GFL: return (int64_t)s->cells * s->classes;
    case SAC_DETECT_QUERIES: return (int64_t)s->cells * (s->classes + s->no_object);
    case SAC_DETECT_ROWS:
        return s->ended ? s->cells : s->unit == SAC_DETECT_UNIT_SHOWS ? (int64_t)s->cells * 4 : 0;
    default: return 0;
    }
}

/* What one value says. Those of an image are put together by sac_detect_together. */
SAC_ANYWHERE double sac_detect_value(const struct sac_detect_spec *s, const void *const *tensors,
                                     int image, int64_t i)
{
    if (s->form == SAC_DETECT_YOLOX)
        return fabs(
            (double)sac_detect_read(&s->box[0], tensors, sac_detect_at(&s->box[0], image, i)));
    if (s->form == SAC_DETECT_ROWS && s->ended) {
        const float v = sac_detect_read(&s->end, tensors, sac_detect_at(&s->end, image, i));
        return v < 0 ? (double)i : (double)s->cells;
    }
    const int numbers = s->form == SAC_DETECT_ROWS ? 4 : s->classes + s->no_object;
    const struct sac_detect_cell   at = sac_detect_place_of(s, (int)(i / numbers));
    const struct sac_detect_field *f =
        s->form == SAC_DETECT_ROWS ? &s->box[0] : &s->score[at.level];
    const float v =
        sac_detect_read(f, tensors, sac_detect_at(f, image, at.index) + i % numbers * f->number);
    switch (s->form) {
    case SAC_DETECT_ROWS: return v > 2;
    case SAC_DETECT_GFL: return v < 0 || v > 1;
    default: return !(v >= 0 && v <= 1);
    }
}

SAC_ANYWHERE double sac_detect_nothing(const struct sac_detect_spec *s)
{
    return s->form == SAC_DETECT_ROWS && s->ended ? (double)s->cells : 0;
}

SAC_ANYWHERE double sac_detect_together(const struct sac_detect_spec *s, double a, double b)
{
    if (s->form == SAC_DETECT_ROWS && s->ended)
        return a < b ? a : b;
    return a + b;
}

/* What all of them tell. YOLOX: the boxes are decoded already (raw centres stay within a few cells
 * of 0, those in pixels are spread over the image). Rows that end: how many there are. Else: some
 * value was outside, so scores are logits, boxes pixels. */
SAC_ANYWHERE int sac_detect_mode(const struct sac_detect_spec *s, double all)
{
    if (s->form == SAC_DETECT_YOLOX)
        return all > (double)s->cells * s->input_width / 8;
    return s->form == SAC_DETECT_ROWS && s->ended ? (int)all : all > 0;
}

/* ---- classes ---- */

SAC_ANYWHERE bool sac_detect_wants(const struct sac_detect_spec *s, int class_id)
{
    if (s->all_classes)
        return true;
    return class_id < SAC_DETECT_CLASSES_MAX && (s->wanted[class_id / 32] >> (class_id % 32) & 1);
}

/* Logits of a query to probabilities: e^(v - shift) / sum. */
struct sac_detect_softmax {
    float shift, sum;
};

SAC_ANYWHERE struct sac_detect_softmax sac_detect_softmax_of(const struct sac_detect_field *f,
                                                             const void *const *tensors, int64_t at,
                                                             int n)
{
    struct sac_detect_softmax s = {sac_detect_read(f, tensors, at), 0};
    for (int c = 1; c < n; c++) {
        const float v = sac_detect_read(f, tensors, at + c * f->number);
        s.shift = s.shift > v ? s.shift : v;
    }
    for (int c = 0; c < n; c++)
        s.sum += sac_exp(sac_detect_read(f, tensors, at + c * f->number) - s.shift);
    return s;
}

/* The likeliest class of a cell among those asked for: one object has one. Below 0: none. */
SAC_ANYWHERE int sac_detect_class(const struct sac_detect_spec *s, const void *const *tensors,
                                  int image, const struct sac_detect_cell *cell, int mode,
                                  float *score)
{
    const struct sac_detect_field *f = &s->score[cell->level];
    int64_t                        at = sac_detect_at(f, image, cell->index);
    const bool logits = mode && (s->form == SAC_DETECT_GFL || s->form == SAC_DETECT_QUERIES);
    struct sac_detect_softmax soft = {0, 0};
    float                     objectness = 1.0f;
    int                       best = -1;
    *score = 0;
    if (s->objectness) {
        objectness = sac_detect_read(f, tensors, at - f->number);
        if (!(objectness >= s->score_min))
            return -1;
    }
    if (logits && s->no_object)
        soft = sac_detect_softmax_of(f, tensors, at, s->classes + 1);
    for (int c = 0; c < s->classes; c++, at += f->number) {
        float v = sac_detect_read(f, tensors, at);
        if (s->objectness)
            v = objectness * v;
        if (logits)
            v = s->no_object ? sac_exp(v - soft.shift) / soft.sum : sac_sigmoid(v);
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

/* The same of a finished row. */
SAC_ANYWHERE int sac_detect_row_class(const struct sac_detect_spec *s, const void *const *tensors,
                                      int image, int row, int mode, float *score)
{
    const float v = sac_detect_read(&s->score[0], tensors, sac_detect_at(&s->score[0], image, row));
    const float c = sac_detect_read(&s->label, tensors, sac_detect_at(&s->label, image, row));
    if ((s->ended && row >= mode) || !(v >= s->score_min) || !(v <= 1e6f) ||
        !(c >= 0 && c < 1e6f) || !sac_detect_wants(s, (int)c))
        return -1;
    *score = v < 1.0f ? v + 0.0f : 1.0f;
    return (int)c;
}

/* ---- boxes ---- */

/* The mean of a distribution given by logits, in bins. */
SAC_ANYWHERE float sac_detect_distance(const struct sac_detect_field *f, const void *const *tensors,
                                       int64_t at, int bins)
{
    float top = sac_detect_read(f, tensors, at), sum = 0, weighted = 0;
    for (int i = 1; i < bins; i++) {
        const float v = sac_detect_read(f, tensors, at + i * f->number);
        top = top > v ? top : v;
    }
    for (int i = 0; i < bins; i++) {
        const float p = sac_exp(sac_detect_read(f, tensors, at + i * f->number) - top);
        sum += p;
        weighted += p * (float)i;
    }
    return weighted / sum;
}

struct sac_detect_edges {
    float x0, y0, x1, y1; /* pixels of the input */
};

SAC_ANYWHERE struct sac_detect_edges sac_detect_around(const struct sac_detect_spec *s,
                                                       const void *const *tensors, int image,
                                                       const struct sac_detect_cell *cell)
{
    const struct sac_detect_field *f = &s->box[cell->level];
    const int64_t at = sac_detect_at(f, image, cell->index), edge = s->bins * f->number;
    const float   size = (float)cell->stride;
    const float   x = ((float)cell->x + s->offset) * size, y = ((float)cell->y + s->offset) * size;
    const struct sac_detect_edges e = {
        x - size * sac_detect_distance(f, tensors, at, s->bins),
        y - size * sac_detect_distance(f, tensors, at + edge, s->bins),
        x + size * sac_detect_distance(f, tensors, at + 2 * edge, s->bins),
        y + size * sac_detect_distance(f, tensors, at + 3 * edge, s->bins)};
    return e;
}

/* Of all forms but GFL. */
SAC_ANYWHERE struct sac_detect_edges sac_detect_plain(const struct sac_detect_spec *s,
                                                      const void *const *tensors, int image,
                                                      int cell, int mode)
{
    const struct sac_detect_field *f = &s->box[0];
    const int64_t                  at = sac_detect_at(f, image, cell);
    float a = sac_detect_read(f, tensors, at), b = sac_detect_read(f, tensors, at + f->number);
    float w = sac_detect_read(f, tensors, at + 2 * f->number),
          h = sac_detect_read(f, tensors, at + 3 * f->number);
    const bool shares = s->form == SAC_DETECT_QUERIES || s->unit == SAC_DETECT_SHARES ||
                        (s->unit == SAC_DETECT_UNIT_SHOWS && !mode);
    const float width = shares ? (float)s->input_width : 1.0f,
                height = shares ? (float)s->input_height : 1.0f;
    if (s->form == SAC_DETECT_ROWS && !s->centred) {
        const struct sac_detect_edges row = {
            (s->y_first ? b : a) * width, (s->y_first ? a : b) * height,
            (s->y_first ? h : w) * width, (s->y_first ? w : h) * height};
        return row;
    }
    if (s->form == SAC_DETECT_YOLOX && !mode) {
        const struct sac_detect_cell in = sac_detect_place(s, cell);
        a = (a + (float)in.x) * (float)in.stride;
        b = (b + (float)in.y) * (float)in.stride;
        w = sac_exp(w) * (float)in.stride;
        h = sac_exp(h) * (float)in.stride;
    }
    const struct sac_detect_edges e = {(a - w * 0.5f) * width, (b - h * 0.5f) * height,
                                       (a + w * 0.5f) * width, (b + h * 0.5f) * height};
    return e;
}

SAC_ANYWHERE bool sac_detect_is_edge(float v)
{
    return v < 1e6f && v > -1e6f;
}

/* The box of a cell in pixels of the source; false when there is none that makes sense. */
SAC_ANYWHERE bool sac_detect_box(const struct sac_detect_spec *s, const void *const *tensors,
                                 int image, int cell, int mode, const struct sac_fit_map *map,
                                 struct sac_detection *out)
{
    const struct sac_detect_cell at = sac_detect_place_of(s, cell);
    out->class_id = s->form == SAC_DETECT_ROWS
                        ? sac_detect_row_class(s, tensors, image, cell, mode, &out->score)
                        : sac_detect_class(s, tensors, image, &at, mode, &out->score);
    if (out->class_id < 0)
        return false;
    const struct sac_detect_edges e = s->form == SAC_DETECT_GFL
                                          ? sac_detect_around(s, tensors, image, &at)
                                          : sac_detect_plain(s, tensors, image, cell, mode);
    if (!(e.x1 > e.x0) || !(e.y1 > e.y0) || !sac_detect_is_edge(e.x0) ||
        !sac_detect_is_edge(e.y0) || !sac_detect_is_edge(e.x1) || !sac_detect_is_edge(e.y1))
        return false;
    out->x0 = (e.x0 - map->offset_x) / map->scale_x;
    out->y0 = (e.y0 - map->offset_y) / map->scale_y;
    out->x1 = (e.x1 - map->offset_x) / map->scale_x;
    out->y1 = (e.y1 - map->offset_y) / map->scale_y;
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

/* Whether the better box a suppresses b. */
SAC_ANYWHERE bool sac_detect_excludes(const struct sac_detect_spec *s,
                                      const struct sac_detection *a, const struct sac_detection *b)
{
    if (!s->nms)
        return a->x0 == b->x0 && a->y0 == b->y0 && a->x1 == b->x1 && a->y1 == b->y1;
    return a->class_id == b->class_id && sac_detect_iou(a, b) > s->nms_iou;
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
#include "vision/vision.h"

/* The class of all boxes where no other can come out, else below 0. */
static inline int sac_detect_only_class(const struct sac_detect_spec *s)
{
    int only = -1;
    if (s->form != SAC_DETECT_ROWS && s->classes == 1)
        return 0;
    for (int i = 0; i < (int)SAC_COUNT(s->wanted) && !s->all_classes; i++) {
        const uint32_t bits = s->wanted[i];
        if (bits && (only >= 0 || (bits & (bits - 1))))
            return -1;
        for (int k = 0; k < 32 && bits; k++)
            if (bits >> k & 1)
                only = 32 * i + k;
    }
    return only;
}

/* What comes out lies in device memory: int32_t count[n], then from sac_detect_boxes_at on the
 * boxes of all images, packed, each image's best first; with origins, from sac_detect_origins_at on
 * as many int32_t, the cell of each.
 *
 * A box is a struct sac_detection, or its first sac_detect_box_bytes: the host knows the only class
 * that there can be, and boxes cross to it in every frame. With origins a box is whole, for those
 * who read it on the device. */
static inline size_t sac_detect_box_bytes(const struct sac_detect_spec *s)
{
    return !s->origins && sac_detect_only_class(s) >= 0 ? offsetof(struct sac_detection, class_id)
                                                        : sizeof(struct sac_detection);
}
static inline size_t sac_detect_boxes_at(int n)
{
    return (size_t)n * sizeof(int32_t); /* all that follows is of 4 byte words too */
}
static inline size_t sac_detect_origins_at(int keep, int n)
{
    return sac_detect_boxes_at(n) + (size_t)n * (size_t)keep * sizeof(struct sac_detection);
}
static inline size_t sac_detect_out_bytes(const struct sac_detect_spec *s, int n)
{
    return sac_detect_origins_at(s->keep, n) +
           (s->origins ? (size_t)n * (size_t)s->keep * sizeof(int32_t) : 0);
}

/* Fill the dtype of all fields: dtypes [s->tensor_count]. */
void sac_detect_set_dtypes(struct sac_detect_spec *s, const enum sac_dtype *dtypes);
/* Whether the device takes so many cells. */
bool sac_detect_has_room(const sac_device *dev, const struct sac_detect_spec *s);
/* tensors  [s->tensor_count] in device memory, n images laid out as s says.
 * maps     [n], host: where each source lies in the input.
 * out      device memory of sac_detect_out_bytes.
 * Errors   SAC_ERR_UNSUPPORTED for more cells than there is room for, and for other numbers. */
sac_result sac_detect_run(sac_device *dev, struct sac_device_stream *stream,
                          const struct sac_detect_spec *s, const void *const *tensors,
                          const struct sac_fit_map *maps, int n, void *out);
/* The lists of n images to the host, when the stream has come to it: a few hundred bytes an image.
 * In two halves: begin queues a copy of as many boxes as are expected; end, once the stream has
 * reached it, reads the lists, after a second copy (and a wait) if there were more, on any stream
 * that has no other work. expected boxes of all images together; end corrects it for the next call.
 * host     of sac_host_buffer_create, sac_detect_out_bytes long. */
sac_result sac_detect_fetch_begin(sac_device *dev, struct sac_device_stream *stream,
                                  const struct sac_detect_spec *s, const void *out, int n,
                                  size_t expected, void *host);
sac_result sac_detect_fetch_end(sac_device *dev, struct sac_device_stream *stream,
                                const struct sac_detect_spec *s, const void *out, int n,
                                size_t *expected, void *host, struct sac_detections *found);
/* Both, with the wait between them. */
sac_result sac_detect_fetch(sac_device *dev, struct sac_device_stream *stream,
                            const struct sac_detect_spec *s, const void *out, int n,
                            struct sac_detections *found);
#endif

#endif
