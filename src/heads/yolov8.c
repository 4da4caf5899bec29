/* SPDX-License-Identifier: Apache-2.0 */
/* YOLOv8, YOLO11 and relatives without anchors: one column per cell of strides 8, 16, 32, already
 * decoded: centre x, y, width, height in pixels, then the classes; no objectness. */
#include "device/detect.h"
#include "heads/heads.h"

enum { CLASSES = 4 };

static bool is_cell_count(int64_t n, int width, int height)
{
    return n == sac_grid_of(width, height, 3).cells || n == sac_grid_of(width, height, 4).cells;
}

static bool recognise(const struct sac_head_view *v)
{
    const struct sac_tensor_desc *d = &v->output[0].desc;
    if (v->output_count != 1 || d->rank != 3)
        return false;
    /* An export of open size: of the columns nothing is known, but the names tell the rows. */
    if (d->shape[2] == SAC_DIM_UNKNOWN)
        return v->names && d->shape[1] == CLASSES + v->names;
    if (!v->width)
        return false;
    if (d->shape[1] > CLASSES && is_cell_count(d->shape[2], v->width, v->height))
        return true;
    /* On its side it looks like YOLOX; only the number of names tells. */
    return v->names && d->shape[2] == CLASSES + v->names &&
           is_cell_count(d->shape[1], v->width, v->height);
}

static int class_count(const struct sac_head_view *v)
{
    const int64_t *shape = v->output[0].desc.shape;
    bool           upright =
        shape[2] == SAC_DIM_UNKNOWN || (v->width && is_cell_count(shape[2], v->width, v->height));
    return SAC_MAX((int)shape[upright ? 1 : 2] - CLASSES, 0);
}

/* Number k of prediction i is at data[k * step_k + i * step_i]. */
static void emit_cell(const float *data, int64_t step_k, int classes, float score_min,
                      sac_head_emit emit, void *sink)
{
    struct sac_detection det;
    bool                 placed = false;
    for (det.class_id = 0; det.class_id < classes; det.class_id++) {
        det.score = data[(CLASSES + det.class_id) * step_k];
        if (!(det.score >= score_min))
            continue;
        if (!placed) {
            float cx = data[0], cy = data[step_k], w = data[2 * step_k], h = data[3 * step_k];
            det.x0 = cx - w * 0.5f;
            det.y0 = cy - h * 0.5f;
            det.x1 = cx + w * 0.5f;
            det.y1 = cy + h * 0.5f;
            placed = true;
        }
        emit(sink, &det);
    }
}

static sac_result decode(const struct sac_head *self, const struct sac_head_input *in, int names,
                         sac_head_emit emit, void *sink)
{
    (void)self, (void)names;
    const struct sac_head_tensor *t = &in->tensors[0];
    if (in->count < 1 || t->rank != 2)
        return SAC_ERR_FORMAT;
    bool    upright = is_cell_count(t->shape[1], in->input_width, in->input_height);
    int64_t cells = t->shape[upright ? 1 : 0], numbers = t->shape[upright ? 0 : 1];
    if (numbers <= CLASSES || !is_cell_count(cells, in->input_width, in->input_height))
        return SAC_ERR_FORMAT;
    for (int64_t i = 0; i < cells; i++)
        emit_cell(t->data + i * (upright ? 1 : numbers), upright ? cells : 1,
                  (int)numbers - CLASSES, in->score_min, emit, sink);
    return SAC_OK;
}

static bool layout(const struct sac_head_input *in, int names, struct sac_detect_spec *out)
{
    const struct sac_head_tensor *t = &in->tensors[0];
    (void)names;
    if (in->count < 1 || t->rank != 2)
        return false;
    const bool    upright = is_cell_count(t->shape[1], in->input_width, in->input_height);
    const int64_t cells = t->shape[upright ? 1 : 0], numbers = t->shape[upright ? 0 : 1];
    const int64_t step_cell = upright ? 1 : numbers, step_number = upright ? cells : 1;
    if (numbers <= CLASSES || !sac_head_has_room(cells, numbers - CLASSES) ||
        !is_cell_count(cells, in->input_width, in->input_height))
        return false;
    out->form = SAC_DETECT_CENTRE;
    out->cells = (int)cells;
    out->classes = (int)(numbers - CLASSES);
    out->box[0] = sac_head_field(in, 0, 0, step_cell, step_number);
    out->score[0] = sac_head_field(in, 0, CLASSES * step_number, step_cell, step_number);
    return true;
}

const struct sac_head sac_head_yolov8 = {
    .name = "yolov8",
    .what = "YOLOv8, YOLO11: decoded cells without objectness",
    .wants = "[4 + classes; cells of strides 8, 16, 32]",
    .needs_nms = true,
    .recognise = recognise,
    .class_count = class_count,
    .decode = decode,
    .layout = layout,
};
