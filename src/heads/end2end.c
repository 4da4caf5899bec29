/* SPDX-License-Identifier: Apache-2.0 */
/* Networks that finish by themselves (YOLOv10 and like ones): rows of x0, y0, x1, y1 in pixels,
 * score, class, the unused ones with score 0. No NMS follows. */
#include "device/detect.h"
#include "heads/heads.h"

enum { COLUMNS = 6 };

static bool recognise(const struct sac_head_view *v)
{
    const struct sac_tensor_desc *d = &v->output[0].desc;
    return v->output_count == 1 && (d->rank == 2 || d->rank == 3) &&
           d->shape[d->rank - 1] == COLUMNS;
}

static sac_result decode(const struct sac_head *self, const struct sac_head_input *in, int names,
                         sac_head_emit emit, void *sink)
{
    (void)self, (void)names;
    const struct sac_head_tensor *t = &in->tensors[0];
    if (in->count != 1 || t->rank != 2 || t->shape[1] != COLUMNS)
        return SAC_ERR_FORMAT;
    for (int64_t i = 0; i < t->shape[0]; i++) {
        const float *p = t->data + i * COLUMNS;
        if (!(p[4] >= in->score_min) || !(p[5] >= 0 && p[5] < 1e6f))
            continue;
        emit(sink, &(struct sac_detection){p[0], p[1], p[2], p[3], p[4], (int)p[5]});
    }
    return SAC_OK;
}

static bool layout(const struct sac_head_input *in, int names, struct sac_detect_spec *out)
{
    const struct sac_head_tensor *t = &in->tensors[0];
    (void)names;
    if (in->count != 1 || t->rank != 2 || t->shape[1] != COLUMNS || !sac_head_has_room(t->shape[0], 0))
        return false;
    out->form = SAC_DETECT_ROWS;
    out->cells = (int)t->shape[0];
    out->box[0] = sac_head_field(in, 0, 0, COLUMNS, 1);
    out->score[0] = sac_head_field(in, 0, 4, COLUMNS, 1);
    out->label = sac_head_field(in, 0, 5, COLUMNS, 1);
    return true;
}

const struct sac_head sac_head_end2end = {
    .name = "end2end",
    .what = "YOLOv10 and like ones: finished rows of box, score, class",
    .wants = "[rows; 6]",
    .needs_nms = false,
    .recognise = recognise,
    .decode = decode,
    .layout = layout,
};
