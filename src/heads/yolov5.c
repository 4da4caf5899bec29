/* SPDX-License-Identifier: Apache-2.0 */
/* YOLOv5 (and v7 exported alike): three anchors per cell of strides 8, 16, 32, already decoded:
 * centre x, y, width, height in pixels, objectness, then the classes. */
#include "device/detect.h"
#include "heads/heads.h"

enum { BOX = 4, CLASSES = 5, ANCHORS = 3 };

static bool is_row_count(int64_t rows, int width, int height)
{
    return rows == ANCHORS * sac_grid_of(width, height, 3).cells ||
           rows == ANCHORS * sac_grid_of(width, height, 4).cells; /* the P6 models */
}

static bool recognise(const struct sac_head_view *v)
{
    const struct sac_tensor_desc *d = &v->output[0].desc;
    /* Some exports hand out the raw maps after the decoded rows; those are not needed. */
    if (v->output_count < 1 || d->rank != 3 || d->shape[2] <= CLASSES)
        return false;
    /* An export of open size: of the rows nothing is known, but the names tell the columns. */
    if (d->shape[1] == SAC_DIM_UNKNOWN)
        return v->names && d->shape[2] == CLASSES + v->names;
    return v->width && is_row_count(d->shape[1], v->width, v->height);
}

static int class_count(const struct sac_head_view *v)
{
    return SAC_MAX((int)v->output[0].desc.shape[2] - CLASSES, 0);
}

static sac_result decode(const struct sac_head *self, const struct sac_head_input *in, int names,
                         sac_head_emit emit, void *sink)
{
    (void)self, (void)names;
    const struct sac_head_tensor *t = &in->tensors[0];
    if (in->count < 1 || t->rank != 2 || t->shape[1] <= CLASSES)
        return SAC_ERR_FORMAT;
    int64_t columns = t->shape[1];
    for (int64_t i = 0; i < t->shape[0]; i++) {
        const float *p = t->data + i * columns;
        if (!(p[BOX] >= in->score_min))
            continue;
        struct sac_detection det = {
            p[0] - p[2] * 0.5f, p[1] - p[3] * 0.5f, p[0] + p[2] * 0.5f, p[1] + p[3] * 0.5f, 0, 0};
        for (det.class_id = 0; det.class_id < columns - CLASSES; det.class_id++) {
            det.score = p[BOX] * p[CLASSES + det.class_id];
            if (det.score >= in->score_min)
                emit(sink, &det);
        }
    }
    return SAC_OK;
}

static bool layout(const struct sac_head_input *in, int names, struct sac_detect_spec *out)
{
    const struct sac_head_tensor *t = &in->tensors[0];
    (void)names;
    if (in->count < 1 || t->rank != 2 || t->shape[1] <= CLASSES ||
        !sac_head_has_room(t->shape[0], t->shape[1] - CLASSES))
        return false;
    out->form = SAC_DETECT_CENTRE;
    out->objectness = true;
    out->cells = (int)t->shape[0];
    out->classes = (int)t->shape[1] - CLASSES;
    out->box[0] = sac_head_field(in, 0, 0, t->shape[1], 1);
    out->score[0] = sac_head_field(in, 0, CLASSES, t->shape[1], 1);
    return true;
}

const struct sac_head sac_head_yolov5 = {
    .name = "yolov5",
    .what = "YOLOv5, YOLOv7: decoded anchors with objectness and classes",
    .wants = "[3 x cells; 5 + classes]",
    .needs_nms = true,
    .recognise = recognise,
    .class_count = class_count,
    .decode = decode,
    .layout = layout,
};
