/* SPDX-License-Identifier: Apache-2.0 */
/* SSD-like networks that end in their own NMS, in two forms.
 *
 * OpenVINO's DetectionOutput: [1,1,rows,7] of image, class, score, x0, y0, x1, y1 as shares of the
 * image; image -1 ends the list. Three outputs: boxes [rows; 4] (x0, y0, x1, y1), and labels [rows]
 * and scores [rows] told apart by name; boxes are shares when none exceeds 2, else pixels. */
#include <string.h>

#include "device/detect.h"
#include "heads/heads.h"

enum { DETECTION_COLUMNS = 7 };

struct trio {
    const struct sac_head_tensor *boxes, *labels, *scores;
};

static bool find_trio(const struct sac_head_tensor *t, int count, struct trio *out)
{
    *out = (struct trio){0};
    for (int i = 0; count == 3 && i < count; i++) {
        if (t[i].rank == 2 && t[i].shape[1] == 4)
            out->boxes = &t[i];
        else if (t[i].rank == 1 && strstr(t[i].name, "score"))
            out->scores = &t[i];
        else if (t[i].rank == 1)
            out->labels = &t[i];
    }
    return out->boxes && out->labels && out->scores;
}

/* Torch's exports have no batch dimension; then the shapes are as the head sees them already. */
static bool view_has_trio(const struct sac_head_view *v)
{
    for (int batch = 0; batch < 2; batch++) {
        struct sac_head_tensor t[3] = {0};
        struct trio            trio;
        for (int i = 0; v->output_count == 3 && i < 3; i++) {
            const struct sac_tensor_desc *d = &v->output[i].desc;
            t[i].name = v->output[i].name;
            t[i].rank = d->rank - batch;
            for (int k = batch; k < d->rank; k++)
                t[i].shape[k - batch] = d->shape[k];
        }
        if (find_trio(t, v->output_count, &trio))
            return true;
    }
    return false;
}

static bool recognise(const struct sac_head_view *v)
{
    const struct sac_tensor_desc *d = &v->output[0].desc;
    if (v->output_count == 1)
        return d->rank == 4 && d->shape[1] == 1 && d->shape[3] == DETECTION_COLUMNS;
    return view_has_trio(v);
}

static void defaults(const struct sac_head_view *v, struct sac_preprocess *pre)
{
    pre->fit = SAC_FIT_STRETCH;
    if (v->output_count != 1)
        return;
    pre->order = SAC_ORDER_BGR; /* OpenVINO's zoo takes OpenCV's bytes */
    for (int c = 0; c < 3; c++)
        pre->scale[c] = 1;
}

static sac_result decode_rows(const struct sac_head_input *in, sac_head_emit emit, void *sink)
{
    const struct sac_head_tensor *t = &in->tensors[0];
    if (t->rank < 2 || t->shape[t->rank - 1] != DETECTION_COLUMNS)
        return SAC_ERR_FORMAT;
    int64_t rows = 1;
    for (int i = 0; i < t->rank - 1; i++)
        rows *= t->shape[i];
    float w = (float)in->input_width, h = (float)in->input_height;
    for (int64_t i = 0; i < rows; i++) {
        const float *p = t->data + i * DETECTION_COLUMNS;
        if (p[0] < 0)
            break;
        if (p[2] >= in->score_min && p[1] >= 0 && p[1] < 1e6f)
            emit(sink,
                 &(struct sac_detection){p[3] * w, p[4] * h, p[5] * w, p[6] * h, p[2], (int)p[1]});
    }
    return SAC_OK;
}

static bool are_shares(const float *boxes, int64_t n)
{
    for (int64_t i = 0; i < 4 * n; i++)
        if (boxes[i] > 2)
            return false;
    return true;
}

static sac_result decode(const struct sac_head *self, const struct sac_head_input *in, int names,
                         sac_head_emit emit, void *sink)
{
    (void)self, (void)names;
    if (in->count == 1)
        return decode_rows(in, emit, sink);
    struct trio t;
    if (!find_trio(in->tensors, in->count, &t))
        return SAC_ERR_FORMAT;
    int64_t n = t.boxes->shape[0];
    if (t.labels->shape[0] != n || t.scores->shape[0] != n)
        return SAC_ERR_FORMAT;
    bool  shares = are_shares(t.boxes->data, n);
    float w = shares ? (float)in->input_width : 1, h = shares ? (float)in->input_height : 1;
    for (int64_t i = 0; i < n; i++) {
        const float *p = t.boxes->data + 4 * i;
        float        label = t.labels->data[i];
        if (t.scores->data[i] >= in->score_min && label >= 0 && label < 1e6f)
            emit(sink, &(struct sac_detection){p[0] * w, p[1] * h, p[2] * w, p[3] * h,
                                               t.scores->data[i], (int)label});
    }
    return SAC_OK;
}

static bool layout_rows(const struct sac_head_input *in, struct sac_detect_spec *out)
{
    const struct sac_head_tensor *t = &in->tensors[0];
    int64_t                       rows = 1;
    if (t->rank < 2 || t->shape[t->rank - 1] != DETECTION_COLUMNS)
        return false;
    for (int i = 0; i < t->rank - 1; i++)
        rows *= t->shape[i];
    out->unit = SAC_DETECT_SHARES;
    out->ended = true;
    out->cells = (int)SAC_MIN(rows, (int64_t)SAC_DETECT_CELLS_MAX);
    out->end = sac_head_field(in, 0, 0, DETECTION_COLUMNS, 1);
    out->label = sac_head_field(in, 0, 1, DETECTION_COLUMNS, 1);
    out->score[0] = sac_head_field(in, 0, 2, DETECTION_COLUMNS, 1);
    out->box[0] = sac_head_field(in, 0, 3, DETECTION_COLUMNS, 1);
    return sac_head_has_room(rows, 0);
}

static bool layout(const struct sac_head_input *in, int names, struct sac_detect_spec *out)
{
    struct trio t;
    (void)names;
    out->form = SAC_DETECT_ROWS;
    if (in->count == 1)
        return layout_rows(in, out);
    if (!find_trio(in->tensors, in->count, &t) || t.labels->shape[0] != t.boxes->shape[0] ||
        t.scores->shape[0] != t.boxes->shape[0] || !sac_head_has_room(t.boxes->shape[0], 0))
        return false;
    out->unit = SAC_DETECT_UNIT_SHOWS;
    out->cells = (int)t.boxes->shape[0];
    out->box[0] = sac_head_field(in, (int)(t.boxes - in->tensors), 0, 4, 1);
    out->score[0] = sac_head_field(in, (int)(t.scores - in->tensors), 0, 1, 1);
    out->label = sac_head_field(in, (int)(t.labels - in->tensors), 0, 1, 1);
    return true;
}

const struct sac_head sac_head_ssd = {
    .name = "ssd",
    .what = "SSD and others that end in their own NMS",
    .wants = "[1; rows; 7], or boxes [rows; 4], labels [rows], scores [rows]",
    .needs_nms = false,
    .recognise = recognise,
    .defaults = defaults,
    .decode = decode,
    .layout = layout,
};
