/* SPDX-License-Identifier: Apache-2.0 */
/* YOLOv5 (and v7 exported alike): three anchors per cell of strides 8, 16, 32, already decoded:
 * centre x, y, width, height in pixels, objectness, then the classes. */
#include "vision/detect.h"
#include "heads/heads.h"

enum { CLASSES = 5, ANCHORS = 3 };

static bool is_row_count(int64_t rows, int width, int height)
{
    return rows == ANCHORS * sac_grid_of(width, height, 3).cells ||
           rows == ANCHORS * sac_grid_of(width, height, 4).cells; /* the P6 models */
}

/* How many of a row's numbers are classes; -1: it is no such row. Some exports hand out the raw
 * maps after the decoded rows; those are not needed. */
static int classes_of(const struct sac_head_tensor *t, int count,
                      const struct sac_head_facts *facts)
{
    if (count < 1 || t->rank != 2 || t->shape[1] <= CLASSES)
        return -1;
    const int beside = sac_head_beside(t, count, facts, t->shape[1] - CLASSES);
    return beside < 0 ? -1 : (int)t->shape[1] - CLASSES - beside;
}

static bool recognise(const struct sac_head_view *v)
{
    struct sac_head_tensor t[SAC_HEAD_OUTPUTS_MAX];
    const int              count = sac_head_view_tensors(v, t);
    if (classes_of(t, count, &v->facts) < 0)
        return false;
    /* An export of open size: of the rows nothing is known, but the names tell the columns. */
    if (t->shape[0] == SAC_DIM_UNKNOWN)
        return v->facts.names > 0;
    return v->width && is_row_count(t->shape[0], v->width, v->height);
}

static int class_count(const struct sac_head_view *v)
{
    struct sac_head_tensor t[SAC_HEAD_OUTPUTS_MAX];
    return SAC_MAX(classes_of(t, sac_head_view_tensors(v, t), &v->facts), 0);
}

static const char *unread(const struct sac_head_view *v)
{
    struct sac_head_tensor t[SAC_HEAD_OUTPUTS_MAX];
    const int count = sac_head_view_tensors(v, t), classes = classes_of(t, count, &v->facts);
    return classes >= 0 && t->shape[1] > CLASSES + classes ? sac_head_beside_name(v) : NULL;
}

static bool layout(const struct sac_head_input *in, const struct sac_head_facts *facts,
                   struct sac_detect_spec *out)
{
    const struct sac_head_tensor *t = &in->tensors[0];
    const int                     classes = classes_of(t, in->count, facts);
    if (classes < 0)
        return false;
    out->form = SAC_DETECT_CENTRE;
    out->objectness = true;
    out->cells = (int)t->shape[0];
    out->classes = classes;
    out->box[0] = sac_head_field(in, 0, 0, t->shape[1], 1);
    out->score[0] = sac_head_field(in, 0, CLASSES, t->shape[1], 1);
    return true;
}

static int coefficients(const struct sac_head_input *in, const struct sac_head_facts *facts,
                        struct sac_detect_field *out)
{
    const struct sac_head_tensor *t = &in->tensors[0];
    const int                     classes = classes_of(t, in->count, facts);
    if (classes < 0)
        return 0;
    *out = sac_head_field(in, 0, CLASSES + classes, t->shape[1], 1);
    return (int)t->shape[1] - CLASSES - classes;
}

const struct sac_head sac_head_yolov5 = {
    .name = "yolov5",
    .what = "YOLOv5, YOLOv7: decoded anchors with objectness and classes",
    .wants = "[3 x cells; 5 + classes (+ mask coefficients or keypoints)]",
    .needs_nms = true,
    .recognise = recognise,
    .class_count = class_count,
    .unread = unread,
    .layout = layout,
    .coefficients = coefficients,
};
