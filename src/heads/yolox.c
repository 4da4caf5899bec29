/* SPDX-License-Identifier: Apache-2.0 */
/* YOLOX (Ge et al., 2021): one prediction per cell of strides 8, 16 and 32:
 * centre x, y, width, height, objectness, then the classes; scores are past the sigmoid.
 *
 * Exports come in two forms with the same shape. Raw: the centre is an offset in cells from its own
 * cell, the size a logarithm of cells. Decoded: all in pixels. The values tell: raw centres stay
 * within a few cells of 0, decoded ones are spread over the image. */
#include <math.h>

#include "vision/detect.h"
#include "heads/heads.h"

enum { BOX = 4, CLASSES = 5 }; /* columns: objectness is between them */

static bool recognise(const struct sac_head_view *v)
{
    const struct sac_tensor_desc *d = &v->output[0].desc;
    if (v->output_count != 1 || d->rank != 3 || d->shape[2] <= CLASSES)
        return false;
    /* As many rows as cells fits YOLOv8 turned on its side too, which has no objectness. */
    if (v->facts.names && d->shape[2] != CLASSES + v->facts.names)
        return false;
    return v->width && d->shape[1] == sac_grid_of(v->width, v->height, 3).cells;
}

static int class_count(const struct sac_head_view *v)
{
    return SAC_MAX((int)v->output[0].desc.shape[2] - CLASSES, 0);
}

/* As the model zoo was trained: OpenCV's BGR, bytes as they are. */
static void defaults(const struct sac_head_view *v, struct sac_preprocess *pre)
{
    (void)v;
    pre->order = SAC_ORDER_BGR;
    pre->fit = SAC_FIT_LETTERBOX_TOPLEFT;
    for (int c = 0; c < 3; c++) {
        pre->mean[c] = 0;
        pre->scale[c] = 1;
        pre->fill[c] = 114;
    }
}

static bool is_decoded(const float *data, int64_t cells, int64_t columns, int width)
{
    double sum = 0;
    for (int64_t i = 0; i < cells; i++)
        sum += fabs((double)data[i * columns]);
    return sum > (double)cells * width / 8;
}

static void box_of_cell(const float *p, bool decoded, int stride, int x, int y,
                        struct sac_detection *out)
{
    float cx = p[0], cy = p[1], w = p[2], h = p[3];
    if (!decoded) {
        cx = (cx + (float)x) * (float)stride;
        cy = (cy + (float)y) * (float)stride;
        w = sac_exp(w) * (float)stride;
        h = sac_exp(h) * (float)stride;
    }
    out->x0 = cx - w * 0.5f;
    out->y0 = cy - h * 0.5f;
    out->x1 = cx + w * 0.5f;
    out->y1 = cy + h * 0.5f;
}

/* Each class that is likely enough is a box of its own; class-wise NMS sorts them out. */
static void emit_classes(const float *p, int classes, float score_min, struct sac_detection *det,
                         sac_head_emit emit, void *sink)
{
    for (int c = 0; c < classes; c++) {
        det->score = p[BOX] * p[CLASSES + c];
        det->class_id = c;
        if (det->score >= score_min)
            emit(sink, det);
    }
}

static sac_result decode(const struct sac_head *self, const struct sac_head_input *in,
                         const struct sac_head_facts *facts, sac_head_emit emit, void *sink)
{
    (void)self, (void)facts;
    const struct sac_head_tensor *t = &in->tensors[0];
    struct sac_grid               g = sac_grid_of(in->input_width, in->input_height, 3);
    if (in->count != 1 || t->rank != 2 || t->shape[0] != g.cells || t->shape[1] <= CLASSES)
        return SAC_ERR_FORMAT;
    int64_t      columns = t->shape[1];
    bool         decoded = is_decoded(t->data, g.cells, columns, in->input_width);
    const float *p = t->data;
    for (int level = 0; level < g.levels; level++)
        for (int y = 0; y < g.rows[level]; y++)
            for (int x = 0; x < g.columns[level]; x++, p += columns) {
                if (!(p[BOX] >= in->score_min))
                    continue;
                struct sac_detection det;
                box_of_cell(p, decoded, g.stride[level], x, y, &det);
                emit_classes(p, (int)columns - CLASSES, in->score_min, &det, emit, sink);
            }
    return SAC_OK;
}

static bool layout(const struct sac_head_input *in, const struct sac_head_facts *facts,
                   struct sac_detect_spec *out)
{
    const struct sac_head_tensor *t = &in->tensors[0];
    const int64_t                 cells = sac_grid_of(in->input_width, in->input_height, 3).cells;
    (void)facts;
    if (in->count != 1 || t->rank != 2 || t->shape[0] != cells || t->shape[1] <= CLASSES)
        return false;
    out->form = SAC_DETECT_YOLOX;
    out->objectness = true;
    out->cells = (int)cells;
    out->classes = (int)t->shape[1] - CLASSES;
    out->box[0] = sac_head_field(in, 0, 0, t->shape[1], 1);
    out->score[0] = sac_head_field(in, 0, CLASSES, t->shape[1], 1);
    return true;
}

const struct sac_head sac_head_yolox = {
    .name = "yolox",
    .what = "YOLOX: grid cells with centre, log size, objectness, classes",
    .wants = "[cells of strides 8, 16, 32; 5 + classes]",
    .needs_nms = true,
    .recognise = recognise,
    .class_count = class_count,
    .defaults = defaults,
    .decode = decode,
    .layout = layout,
};
