/* SPDX-License-Identifier: Apache-2.0 */
/* Detectors with queries, DETR (Carion et al., 2020) and its heirs: per query a box (centre x, y,
 * width, height as shares of the image) and class scores. No NMS follows.
 *
 * Two outputs, scores [queries; classes] and boxes [queries; 4] in either order, or one with
 * [queries; 4 + classes] (Ultralytics' RT-DETR). Scores may be probabilities already; else they
 * pass a sigmoid (RT-DETR, Deformable DETR), or, in the first DETR, a softmax whose last class
 * means "no object": 92 columns for COCO, or one more than there are names. */
#include "device/detect.h"
#include "heads/heads.h"

enum { QUERIES_MAX = 2000, DETR_COCO_COLUMNS = 92 };

struct queries {
    int64_t      count;
    int          classes;
    const float *boxes, *scores;
    int64_t      box_step, score_step;
};

/* Which of two outputs [.., queries, a] and [.., queries, b] has the boxes; -1: neither, or no
 * pair. */
static int boxes_of_pair(int rank_a, const int64_t *a, int rank_b, const int64_t *b, int rank)
{
    if (rank_a != rank || rank_b != rank || a[rank - 2] != b[rank - 2])
        return -1;
    if (b[rank - 1] == 4)
        return 1;
    return a[rank - 1] == 4 ? 0 : -1;
}

static bool recognise(const struct sac_head_view *v)
{
    const struct sac_tensor_desc *a = &v->output[0].desc, *b = &v->output[1].desc;
    if (v->output_count == 2)
        return boxes_of_pair(a->rank, a->shape, b->rank, b->shape, 3) >= 0;
    return v->output_count == 1 && a->rank == 3 && a->shape[1] > 0 && a->shape[1] <= QUERIES_MAX &&
           a->shape[2] > 6;
}

static bool has_no_object(int columns, int names)
{
    return names ? columns == names + 1 : columns == DETR_COCO_COLUMNS;
}

static int class_count(const struct sac_head_view *v)
{
    const struct sac_tensor_desc *a = &v->output[0].desc, *b = &v->output[1].desc;
    if (v->output_count == 1)
        return SAC_MAX((int)a->shape[2] - 4, 0);
    int boxes = boxes_of_pair(a->rank, a->shape, b->rank, b->shape, 3);
    int columns = SAC_MAX((int)(boxes == 0 ? b : a)->shape[2], 0);
    return has_no_object(columns, v->names) ? columns - 1 : columns;
}

/* The first DETR was trained on normalised images, its real-time heirs on plain 0..1. */
static void defaults(const struct sac_head_view *v, struct sac_preprocess *pre)
{
    static const float mean[3] = {123.675f, 116.28f, 103.53f},
                       deviation[3] = {58.395f, 57.12f, 57.375f};
    pre->fit = SAC_FIT_STRETCH;
    bool normalise = v->output_count == 2 && class_count(v) > 80;
    for (int c = 0; normalise && c < 3; c++) {
        pre->mean[c] = mean[c];
        pre->scale[c] = 1 / deviation[c];
    }
}

static sac_result find_queries(const struct sac_head_input *in, struct queries *q)
{
    const struct sac_head_tensor *t = in->tensors;
    if (in->count == 1 && t->rank == 2 && t->shape[1] > 4) {
        /* without numbers when only the layout is asked for */
        *q = (struct queries){t->shape[0], (int)t->shape[1] - 4, t->data,
                              t->data ? t->data + 4 : NULL, t->shape[1], t->shape[1]};
        return SAC_OK;
    }
    int boxes =
        in->count == 2 ? boxes_of_pair(t[0].rank, t[0].shape, t[1].rank, t[1].shape, 2) : -1;
    if (boxes < 0 || t[1 - boxes].shape[1] < 1)
        return SAC_ERR_FORMAT;
    const struct sac_head_tensor *s = &t[1 - boxes];
    *q = (struct queries){s->shape[0], (int)s->shape[1], t[boxes].data, s->data, 4, s->shape[1]};
    return SAC_OK;
}

static bool are_probabilities(const struct queries *q)
{
    for (int64_t i = 0; i < q->count; i++)
        for (int c = 0; c < q->classes; c++) {
            float v = q->scores[i * q->score_step + c];
            if (!(v >= 0 && v <= 1))
                return false;
        }
    return true;
}

enum activation { ACTIVE_ALREADY, ACTIVE_SIGMOID, ACTIVE_SOFTMAX };

/* What turns a query's logits into probabilities: p = exp(v - shift) / sum. */
struct softmax {
    float shift, sum;
};

static struct softmax softmax_of(const float *v, int n)
{
    struct softmax s = {v[0], 0};
    for (int c = 1; c < n; c++)
        s.shift = SAC_MAX(s.shift, v[c]);
    for (int c = 0; c < n; c++)
        s.sum += sac_exp(v[c] - s.shift);
    return s;
}

static float activate(enum activation kind, float v, const struct softmax *s)
{
    if (kind == ACTIVE_ALREADY)
        return v;
    return kind == ACTIVE_SIGMOID ? sac_sigmoid(v) : sac_exp(v - s->shift) / s->sum;
}

static void emit_query(const struct sac_head_input *in, const float *box, const float *scores,
                       int columns, bool no_object, enum activation kind, sac_head_emit emit,
                       void *sink)
{
    struct softmax       s = softmax_of(scores, columns);
    float                w = (float)in->input_width, h = (float)in->input_height;
    struct sac_detection det = {(box[0] - box[2] / 2) * w,
                                (box[1] - box[3] / 2) * h,
                                (box[0] + box[2] / 2) * w,
                                (box[1] + box[3] / 2) * h,
                                0,
                                0};
    for (int c = 0; c < columns - no_object; c++) {
        det.score = activate(kind, scores[c], &s);
        det.class_id = c;
        if (det.score >= in->score_min)
            emit(sink, &det);
    }
}

static sac_result decode(const struct sac_head *self, const struct sac_head_input *in, int names,
                         sac_head_emit emit, void *sink)
{
    (void)self;
    struct queries q;
    sac_result     res = find_queries(in, &q);
    if (res != SAC_OK)
        return res;
    bool no_object = in->count == 2 && has_no_object(q.classes, names == q.classes ? 0 : names);
    enum activation kind = are_probabilities(&q) ? ACTIVE_ALREADY
                           : no_object           ? ACTIVE_SOFTMAX
                                                 : ACTIVE_SIGMOID;
    for (int64_t i = 0; i < q.count; i++)
        emit_query(in, q.boxes + i * q.box_step, q.scores + i * q.score_step, q.classes, no_object,
                   kind, emit, sink);
    return SAC_OK;
}

static bool layout(const struct sac_head_input *in, int names, struct sac_detect_spec *out)
{
    const struct sac_head_tensor *t = in->tensors;
    struct queries                q;
    if (find_queries(in, &q) != SAC_OK || !sac_head_has_room(q.count, q.classes))
        return false;
    const int boxes = in->count == 2 && t[1].shape[1] == 4 ? 1 : 0; /* as find_queries took them */
    const int scores = in->count == 2 ? 1 - boxes : 0;
    out->form = SAC_DETECT_QUERIES;
    out->cells = (int)q.count;
    out->no_object = in->count == 2 && has_no_object(q.classes, names == q.classes ? 0 : names);
    out->classes = q.classes - out->no_object;
    out->box[0] = sac_head_field(in, boxes, 0, q.box_step, 1);
    out->score[0] = sac_head_field(in, scores, in->count == 2 ? 0 : 4, q.score_step, 1);
    return out->classes > 0;
}

const struct sac_head sac_head_detr = {
    .name = "detr",
    .what = "DETR, RT-DETR: queries with scores and boxes",
    .wants = "[queries; classes] and [queries; 4], or [queries; 4 + classes]",
    .needs_nms = false,
    .recognise = recognise,
    .class_count = class_count,
    .defaults = defaults,
    .decode = decode,
    .layout = layout,
};
