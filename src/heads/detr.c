/* SPDX-License-Identifier: Apache-2.0 */
/* Detectors with queries, DETR (Carion et al., 2020) and its heirs: per query a box (centre x, y,
 * width, height as shares of the image) and class scores. No NMS follows.
 *
 * Two outputs, scores [queries; classes] and boxes [queries; 4], among others that are not read, or
 * one with [queries; 4 + classes] (Ultralytics' RT-DETR). Scores may be probabilities already; else
 * they pass a sigmoid (RT-DETR, Deformable DETR, RF-DETR), or, in the first DETR, a softmax whose
 * last class means "no object": 92 columns for COCO, or one more than there are names. */
#include <string.h>

#include "vision/detect.h"
#include "heads/heads.h"

enum { QUERIES_MAX = 2000, BOX = 4, COCO_COLUMNS = 80, DETR_COCO_COLUMNS = 92 };

/* Where the two parts of the queries are. */
struct parts {
    int     box, score;     /* outputs; the same where one has both */
    int64_t count, columns; /* queries; numbers of score */
    int     classes;
    bool    no_object; /* behind the classes: logits pass a softmax */
};

static bool is_called(const struct sac_head_tensor *t, const char *a, const char *b)
{
    return t->name && (strstr(t->name, a) || strstr(t->name, b));
}

static bool is_box_output(const struct sac_head_tensor *t)
{
    return t->rank == 2 && t->shape[1] == BOX &&
           (t->shape[0] == SAC_DIM_UNKNOWN || t->shape[0] > 0);
}

/* The boxes: four numbers; of several such outputs that which is called so, else the last. */
static int find_boxes(const struct sac_head_tensor *t, int count)
{
    int found = -1;
    for (int i = 0; i < count; i++)
        if (is_box_output(&t[i]) && (found < 0 || !is_called(&t[found], "box", "dets")))
            found = i;
    return found;
}

/* Scores have as many rows. What else has, the states of a decoder, is not called by their names.
 */
static int find_scores(const struct sac_head_tensor *t, int count, int boxes)
{
    int found = -1, named = -1, candidates = 0;
    for (int i = 0; i < count; i++) {
        if (i == boxes || t[i].rank != 2 || t[i].shape[0] != t[boxes].shape[0])
            continue;
        found = i;
        candidates++;
        if (named < 0 &&
            (is_called(&t[i], "logits", "labels") || is_called(&t[i], "scores", "class")))
            named = i;
    }
    return named >= 0 ? named : candidates == 1 ? found : -1;
}

/* Of the columns one may be no class: "no object" (DETR), or a background that RF-DETR, whose
 * outputs are called dets and labels, trains with but never asks. */
static void count_classes(const struct sac_head_tensor *t, const struct sac_head_facts *facts,
                          struct parts *p)
{
    const bool rf =
        is_called(&t[p->box], "dets", "dets") && is_called(&t[p->score], "labels", "labels");
    const bool one_more = facts->names && p->columns == facts->names + 1;
    p->no_object = !rf && (one_more || (!facts->names && p->columns == DETR_COCO_COLUMNS));
    p->classes = (int)p->columns - (one_more || p->no_object);
}

static bool find_parts(const struct sac_head_tensor *t, int count,
                       const struct sac_head_facts *facts, struct parts *p)
{
    *p = (struct parts){.box = 0, .score = 0};
    if (count == 1 && t->rank == 2 && t->shape[1] > BOX) {
        p->count = t->shape[0];
        p->columns = p->classes = (int)t->shape[1] - BOX;
        return true;
    }
    p->box = count > 1 ? find_boxes(t, count) : -1;
    p->score = p->box >= 0 ? find_scores(t, count, p->box) : -1;
    if (p->score < 0)
        return false;
    p->count = t[p->box].shape[0];
    p->columns = t[p->score].shape[1];
    count_classes(t, facts, p);
    return p->classes > 0;
}

/* One output alone is told by its columns: tokens of any backbone come in such rows. */
static bool recognise(const struct sac_head_view *v)
{
    struct sac_head_tensor t[SAC_HEAD_OUTPUTS_MAX];
    const int              count = sac_head_view_tensors(v, t);
    struct parts           p;
    if (v->facts.task > SAC_TASK_DETECT || !find_parts(t, count, &v->facts, &p) ||
        p.count > QUERIES_MAX)
        return false;
    if (v->width && p.count == sac_grid_of(v->width, v->height, 3).cells) /* cells, whose boxes want
                                                                             NMS */
        return false;
    if (count > 1)
        return true;
    return p.count > 0 &&
           (v->facts.names ? p.columns == v->facts.names : p.columns == COCO_COLUMNS) &&
           (v->facts.queries || p.columns != 2); /* rows of 6 are finished boxes, else */
}

static int class_count(const struct sac_head_view *v)
{
    struct sac_head_tensor t[SAC_HEAD_OUTPUTS_MAX];
    const int              count = sac_head_view_tensors(v, t);
    struct parts           p;
    return find_parts(t, count, &v->facts, &p) ? p.classes : 0;
}

/* DETR's own line, and RF-DETR with its DINOv2, were trained on normalised images, the real-time
 * ones on plain 0..1. The first are told by a mask of pixels, by "no object", or by COCO's own
 * numbers. */
static void defaults(const struct sac_head_view *v, struct sac_preprocess *pre)
{
    struct sac_head_tensor t[SAC_HEAD_OUTPUTS_MAX];
    const int              count = sac_head_view_tensors(v, t);
    struct parts           p;
    pre->fit = SAC_FIT_STRETCH;
    if (count == 1 || !find_parts(t, count, &v->facts, &p))
        return;
    if (v->facts.masked || p.no_object || p.classes > COCO_COLUMNS ||
        is_called(&t[p.box], "dets", "dets"))
        sac_head_normalise(pre, SAC_ORDER_RGB);
}

static bool layout(const struct sac_head_input *in, const struct sac_head_facts *facts,
                   struct sac_detect_spec *out)
{
    const struct sac_head_tensor *t = in->tensors;
    struct parts                  p;
    if (!find_parts(t, in->count, facts, &p))
        return false;
    const bool one = p.box == p.score;
    out->form = SAC_DETECT_QUERIES;
    out->cells = (int)p.count;
    out->no_object = p.no_object;
    out->classes = p.classes;
    out->box[0] = sac_head_field(in, p.box, 0, one ? t->shape[1] : BOX, 1);
    out->score[0] = sac_head_field(in, p.score, one ? BOX : 0, one ? t->shape[1] : p.columns, 1);
    return true;
}

const struct sac_head sac_head_detr = {
    .name = "detr",
    .what = "DETR, RT-DETR, RF-DETR: queries with scores and boxes",
    .wants = "[queries; classes] and [queries; 4], or [queries; 4 + classes]",
    .needs_nms = false,
    .recognise = recognise,
    .class_count = class_count,
    .defaults = defaults,
    .layout = layout,
};
