/* SPDX-License-Identifier: Apache-2.0 */
/* SSD-like networks that end in OpenVINO's DetectionOutput: [1,1,rows,7] of image, class, score,
 * x0, y0, x1, y1 as shares of the image; image -1 ends the list. */
#include "vision/detect.h"
#include "heads/heads.h"

enum { COLUMNS = 7 };

static bool recognise(const struct sac_head_view *v)
{
    const struct sac_tensor_desc *d = &v->output[0].desc;
    return v->output_count == 1 && d->rank == 4 && d->shape[1] == 1 && d->shape[3] == COLUMNS;
}

/* OpenVINO's zoo takes OpenCV's bytes. */
static void defaults(const struct sac_head_view *v, struct sac_preprocess *pre)
{
    (void)v;
    pre->fit = SAC_FIT_STRETCH;
    pre->order = SAC_ORDER_BGR;
    for (int c = 0; c < 3; c++)
        pre->scale[c] = 1;
}

static bool has_rows(const struct sac_head_input *in)
{
    return in->count == 1 && in->tensors[0].rank >= 2 &&
           sac_head_has_columns(&in->tensors[0], COLUMNS);
}

static bool layout(const struct sac_head_input *in, const struct sac_head_facts *facts,
                   struct sac_detect_spec *out)
{
    (void)facts;
    if (!has_rows(in))
        return false;
    out->form = SAC_DETECT_ROWS;
    out->unit = SAC_DETECT_SHARES;
    out->ended = true;
    out->cells = (int)SAC_MIN(sac_head_rows(in->tensors, COLUMNS), (int64_t)INT32_MAX);
    out->end = sac_head_field(in, 0, 0, COLUMNS, 1);
    out->label = sac_head_field(in, 0, 1, COLUMNS, 1);
    out->score[0] = sac_head_field(in, 0, 2, COLUMNS, 1);
    out->box[0] = sac_head_field(in, 0, 3, COLUMNS, 1);
    return true;
}

const struct sac_head sac_head_ssd = {
    .name = "ssd",
    .what = "SSD with OpenVINO's DetectionOutput: rows of image, class, score, box",
    .wants = "[1; rows; 7]",
    .needs_nms = false,
    .recognise = recognise,
    .defaults = defaults,
    .layout = layout,
};
