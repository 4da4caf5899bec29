/* SPDX-License-Identifier: Apache-2.0 */
/* YOLOX (Ge et al., 2021): one prediction per cell of strides 8, 16 and 32:
 * centre x, y, width, height, objectness, then the classes; scores are past the sigmoid.
 *
 * Exports come in two forms with the same shape. Raw: the centre is an offset in cells from its own
 * cell, the size a logarithm of cells. Decoded: all in pixels. The values tell: raw centres stay
 * within a few cells of 0, decoded ones are spread over the image. */
#include "vision/detect.h"
#include "heads/heads.h"

enum { CLASSES = 5 }; /* columns: four of the box and the objectness are before them */

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
    .layout = layout,
};
