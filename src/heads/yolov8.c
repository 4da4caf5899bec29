/* SPDX-License-Identifier: Apache-2.0 */
/* YOLOv8, YOLO11 and relatives without anchors: one column per cell of strides 8, 16, 32, already
 * decoded: centre x, y, width, height in pixels, then the classes; no objectness. Behind the
 * classes may stand what their siblings for masks and poses give (beside.c). */
#include "vision/detect.h"
#include "heads/heads.h"

enum { CLASSES = 4 };

static bool is_cell_count(int64_t n, int width, int height)
{
    return n == sac_grid_of(width, height, 3).cells || n == sac_grid_of(width, height, 4).cells;
}

/* Where the numbers of a prediction are, and how many of them are classes. */
struct cells {
    bool    upright; /* [numbers; cells] */
    int64_t cells, numbers;
    int     classes, beside;
};

static bool find_cells(const struct sac_head_tensor *t, int count, int width, int height,
                       const struct sac_head_facts *facts, struct cells *out)
{
    if (count < 1 || t->rank != 2)
        return false;
    out->upright = is_cell_count(t->shape[1], width, height);
    out->cells = t->shape[out->upright ? 1 : 0];
    out->numbers = t->shape[out->upright ? 0 : 1];
    out->beside =
        out->numbers > CLASSES ? sac_head_beside(t, count, facts, out->numbers - CLASSES) : -1;
    out->classes = (int)out->numbers - CLASSES - out->beside;
    return out->beside >= 0 && is_cell_count(out->cells, width, height);
}

/* An angle is one number more: without names it looks like a class, but sines and cosines went into
 * the boxes. */
static bool is_oriented(const struct sac_head_facts *facts)
{
    return facts->task == SAC_TASK_ORIENTED ||
           (facts->angles && !facts->names && facts->task == SAC_TASK_UNKNOWN);
}

static bool recognise(const struct sac_head_view *v)
{
    struct sac_head_tensor t[SAC_HEAD_OUTPUTS_MAX];
    const int              count = sac_head_view_tensors(v, t);
    struct cells           c;
    if (count > 2 || t->rank != 2 || is_oriented(&v->facts))
        return false;
    /* An export of open size: of the columns nothing is known, but the names tell the rows. */
    if (t->shape[1] == SAC_DIM_UNKNOWN)
        return v->facts.names && t->shape[0] > CLASSES &&
               sac_head_beside(t, count, &v->facts, t->shape[0] - CLASSES) >= 0;
    if (!v->width || !find_cells(t, count, v->width, v->height, &v->facts, &c) ||
        (count == 2 && !c.beside))
        return false;
    /* On its side it looks like YOLOX; only the number of names tells. */
    return c.upright || v->facts.names;
}

static int class_count(const struct sac_head_view *v)
{
    struct sac_head_tensor t[SAC_HEAD_OUTPUTS_MAX];
    const int              count = sac_head_view_tensors(v, t);
    struct cells           c;
    if (t->rank != 2)
        return 0;
    if (t->shape[1] == SAC_DIM_UNKNOWN || !v->width)
        return v->facts.names;
    return find_cells(t, count, v->width, v->height, &v->facts, &c) ? c.classes : 0;
}

static const char *unread(const struct sac_head_view *v)
{
    struct sac_head_tensor t[SAC_HEAD_OUTPUTS_MAX];
    const int              count = sac_head_view_tensors(v, t);
    struct cells           c;
    const bool             found = find_cells(t, count, v->width, v->height, &v->facts, &c);
    const bool             open = v->facts.names && t->rank == 2 && t->shape[1] == SAC_DIM_UNKNOWN;
    return (found && c.beside) || (open && t->shape[0] > CLASSES + v->facts.names)
               ? sac_head_beside_name(v)
               : NULL;
}

static bool layout(const struct sac_head_input *in, const struct sac_head_facts *facts,
                   struct sac_detect_spec *out)
{
    struct cells c;
    if (is_oriented(facts) ||
        !find_cells(in->tensors, in->count, in->input_width, in->input_height, facts, &c))
        return false;
    const int64_t step_cell = c.upright ? 1 : c.numbers, step_number = c.upright ? c.cells : 1;
    out->form = SAC_DETECT_CENTRE;
    out->cells = (int)c.cells;
    out->classes = c.classes;
    out->box[0] = sac_head_field(in, 0, 0, step_cell, step_number);
    out->score[0] = sac_head_field(in, 0, CLASSES * step_number, step_cell, step_number);
    return true;
}

static int coefficients(const struct sac_head_input *in, const struct sac_head_facts *facts,
                        struct sac_detect_field *out)
{
    struct cells c;
    if (!find_cells(in->tensors, in->count, in->input_width, in->input_height, facts, &c))
        return 0;
    const int64_t step_cell = c.upright ? 1 : c.numbers, step_number = c.upright ? c.cells : 1;
    *out = sac_head_field(in, 0, (CLASSES + c.classes) * step_number, step_cell, step_number);
    return c.beside;
}

const struct sac_head sac_head_yolov8 = {
    .name = "yolov8",
    .what = "YOLOv8, YOLO11: decoded cells without objectness",
    .wants = "[4 + classes (+ mask coefficients or keypoints); cells of strides 8, 16, 32], "
             "upright boxes",
    .needs_nms = true,
    .recognise = recognise,
    .class_count = class_count,
    .unread = unread,
    .layout = layout,
    .coefficients = coefficients,
};
