/* SPDX-License-Identifier: Apache-2.0 */
/* Networks that finish by themselves: rows of x0, y0, x1, y1 in pixels, score, class, the unused
 * ones with score 0 (YOLOv10, YOLO26, exports with their own NMS); behind the class may stand what
 * siblings for masks and poses give. YOLOv7's own export puts the image's number first,
 * PaddleDetection's the class and the score. Ultralytics' RT-DETR (since May 2026) gives the box
 * as its centre and size, in shares of the input. No NMS follows. */
#include "vision/detect.h"
#include "heads/heads.h"

enum { COLUMNS = 6, WITH_IMAGE = 7 };

/* Where a row has what. */
struct row {
    int  columns, box, score, label;
    bool shares; /* the box is centre x, y, width, height, as shares of the input */
};

static bool find_row(const struct sac_head_tensor *t, int count, const struct sac_head_facts *facts,
                     struct row *out)
{
    const int64_t columns = count > 0 && t->rank > 0 ? t->shape[t->rank - 1] : 0;
    if (facts->task == SAC_TASK_ORIENTED || columns < COLUMNS || columns > INT16_MAX)
        return false;
    if (facts->queries && (!facts->ranked || columns != COLUMNS || count != 1))
        return false;
    if (facts->queries)
        *out = (struct row){COLUMNS, 0, 4, 5, true};
    else if (facts->paddle && columns == COLUMNS)
        *out = (struct row){COLUMNS, 2, 1, 0, false};
    else if (facts->flat && columns == WITH_IMAGE && count == 1)
        *out = (struct row){WITH_IMAGE, 1, 6, 5, false};
    else if (sac_head_beside_row(t, count, facts, columns - COLUMNS) >= 0)
        *out = (struct row){(int)columns, 0, 4, 5, false};
    else
        return false;
    return true;
}

/* Six numbers a picture are a classifier's as well: rows without a batch dimension are boxes where
 * their number is open and the batch is not. */
static bool recognise(const struct sac_head_view *v)
{
    struct sac_head_tensor t[SAC_HEAD_OUTPUTS_MAX];
    const int              count = sac_head_view_tensors(v, t);
    struct row             row;
    if (!find_row(t, count, &v->facts, &row))
        return false;
    if (v->facts.paddle)
        return count <= 2;
    if (v->facts.flat)
        return count == 1 && v->output[0].desc.shape[0] != 1 && !v->batch_open;
    return t->rank == 2 && (count == 1 || (count == 2 && row.columns > COLUMNS));
}

static const char *unread(const struct sac_head_view *v)
{
    struct sac_head_tensor t[SAC_HEAD_OUTPUTS_MAX];
    const int              count = sac_head_view_tensors(v, t);
    struct row             row;
    const bool more = find_row(t, count, &v->facts, &row) && row.box == 0 && row.columns > COLUMNS;
    return more ? sac_head_beside_name(v) : NULL;
}

/* RT-DETR is stretched; PaddleDetection's networks too, with ImageNet's mean and deviation. */
static void defaults(const struct sac_head_view *v, struct sac_preprocess *pre)
{
    if (v->facts.paddle || v->facts.queries)
        pre->fit = SAC_FIT_STRETCH;
    if (v->facts.paddle && !v->facts.sized) /* its RT-DETR, told the size, wants plain 0..1 */
        sac_head_normalise(pre, SAC_ORDER_RGB);
}

static bool layout(const struct sac_head_input *in, const struct sac_head_facts *facts,
                   struct sac_detect_spec *out)
{
    struct row row;
    if (!find_row(in->tensors, in->count, facts, &row))
        return false;
    out->form = SAC_DETECT_ROWS;
    out->centred = row.shares;
    out->unit = row.shares ? SAC_DETECT_SHARES : SAC_DETECT_PIXELS;
    out->cells = (int)SAC_MIN(sac_head_rows(in->tensors, row.columns), (int64_t)INT32_MAX);
    out->box[0] = sac_head_field(in, 0, row.box, row.columns, 1);
    out->score[0] = sac_head_field(in, 0, row.score, row.columns, 1);
    out->label = sac_head_field(in, 0, row.label, row.columns, 1);
    return true;
}

static int coefficients(const struct sac_head_input *in, const struct sac_head_facts *facts,
                        struct sac_detect_field *out)
{
    struct row row;
    if (!find_row(in->tensors, in->count, facts, &row) || row.box != 0)
        return 0;
    *out = sac_head_field(in, 0, COLUMNS, row.columns, 1);
    return row.columns - COLUMNS;
}

const struct sac_head sac_head_end2end = {
    .name = "end2end",
    .what = "YOLOv10, YOLO26 and others with NMS inside: finished rows of box, score, class",
    .wants = "[rows; 6 (+ mask coefficients or keypoints)], or [rows; 7] with the image's number",
    .needs_nms = false,
    .recognise = recognise,
    .defaults = defaults,
    .unread = unread,
    .layout = layout,
    .coefficients = coefficients,
};
