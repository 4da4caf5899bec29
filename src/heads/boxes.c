/* SPDX-License-Identifier: Apache-2.0 */
/* Networks that end in finished boxes, with labels and scores in outputs of their own:
 *
 *   torchvision's detectors      boxes [n,4] in pixels, COCO's own numbers as labels, scores
 *   RT-DETR, D-FINE, DEIM        the same for a batch; pixels of the size that they are told
 *   SSD and others with NMS      the same; shares of the image when none exceeds 2
 *   TensorFlow Object Detection  shares, y before x
 *   mmdeploy                     dets [n,5], the score behind each box, and labels
 *
 * Masks, keypoints and counts that come beside them are not read. No NMS follows. */
#include <string.h>

#include "vision/detect.h"
#include "heads/heads.h"

enum { BOX = 4, SCORED = 5 };

struct finished {
    int  box, label, score; /* outputs; score is box where the score stands behind each box */
    int  columns;           /* of box */
    bool y_first;           /* y0, x0, y1, x1 as shares of the image */
};

static bool has_word(const struct sac_head_tensor *t, const char *const *words)
{
    for (; t->name && *words; words++)
        if (strcasestr(t->name, *words))
            return true;
    return false;
}

static bool is_score(const struct sac_head_tensor *t)
{
    return has_word(t, (const char *const[]){"score", "conf", "prob", NULL});
}

static bool is_label(const struct sac_head_tensor *t)
{
    return has_word(t, (const char *const[]){"label", "class", "cls", NULL});
}

/* Names of TensorFlow's other outputs. */
static bool is_other(const struct sac_head_tensor *t)
{
    return has_word(t, (const char *const[]){"num", "raw", "anchor", "mask", "keypoint", NULL});
}

/* Does b have one number for each row of a? */
static bool is_column_of(const struct sac_head_tensor *a, const struct sac_head_tensor *b)
{
    if (b->rank != a->rank - 1)
        return false;
    for (int i = 0; i < b->rank; i++)
        if (a->shape[i] != b->shape[i] && a->shape[i] >= 0 && b->shape[i] >= 0)
            return false;
    return true;
}

static bool is_boxes(const struct sac_head_tensor *t, int columns)
{
    return t->rank >= 1 && t->rank <= 2 && t->shape[t->rank - 1] == columns && !is_other(t);
}

/* Labels are whole numbers or called so; of what is left, one output must be the scores. */
static bool find_columns(const struct sac_head_tensor *t, int count,
                         const struct sac_head_facts *facts, struct finished *f)
{
    f->label = f->score = -1;
    for (int i = 0; i < count; i++) {
        if (i == f->box || is_other(&t[i]) || !is_column_of(&t[f->box], &t[i]))
            continue;
        const bool whole = facts->whole >> i & 1;
        if (f->label < 0 && (whole || (is_label(&t[i]) && !is_score(&t[i]))))
            f->label = i;
        else if (!whole && (f->score < 0 || (is_score(&t[i]) && !is_score(&t[f->score]))))
            f->score = i;
    }
    if (f->columns == SCORED)
        f->score = f->box;
    return f->label >= 0 && f->score >= 0;
}

static bool find(const struct sac_head_tensor *t, int count, const struct sac_head_facts *facts,
                 struct finished *f)
{
    for (int columns = BOX; columns <= SCORED; columns++)
        for (int i = 0; i < count; i++) {
            *f = (struct finished){.box = i, .columns = columns};
            if (is_boxes(&t[i], columns) && find_columns(t, count, facts, f)) {
                f->y_first = t[i].name && strstr(t[i].name, "detection_boxes");
                return true;
            }
        }
    return false;
}

/* One row without a batch before it is no list. */
static bool recognise(const struct sac_head_view *v)
{
    struct sac_head_tensor t[SAC_HEAD_OUTPUTS_MAX];
    struct finished        f;
    if (v->output_count < 2 || !find(t, sac_head_view_tensors(v, t), &v->facts, &f))
        return false;
    const struct sac_tensor_desc *d = &v->output[f.box].desc;
    return d->rank == 3 || d->shape[0] != 1 || v->facts.single;
}

/* The list does not show how many there are: those of the published networks. */
static int class_count(const struct sac_head_view *v)
{
    struct sac_head_tensor t[SAC_HEAD_OUTPUTS_MAX];
    struct finished        f;
    const bool             found = find(t, sac_head_view_tensors(v, t), &v->facts, &f);
    if (v->facts.names)
        return v->facts.names;
    if (v->facts.single || (found && f.y_first))
        return 91;
    return v->facts.sized ? 80 : 0;
}

static void set_fill(struct sac_preprocess *pre)
{
    static const float mean[3] = {124, 116, 104}; /* nothing, once normalised */
    memcpy(pre->fill, mean, sizeof mean);
}

static void defaults(const struct sac_head_view *v, struct sac_preprocess *pre)
{
    struct sac_head_tensor t[SAC_HEAD_OUTPUTS_MAX];
    struct finished        f;
    const bool             found = find(t, sac_head_view_tensors(v, t), &v->facts, &f);
    pre->fit = SAC_FIT_STRETCH;
    if (found && f.y_first) { /* TensorFlow's take bytes and normalise inside */
        for (int c = 0; c < 3; c++)
            pre->scale[c] = 1;
    } else if (v->facts.single) { /* torchvision's take 0..1, normalise inside, and scale to 800
                                     lines */
        pre->fit = SAC_FIT_LETTERBOX_TOPLEFT;
        set_fill(pre);
        pre->width = v->width ? v->width : 800;
        pre->height = v->height ? v->height : 800;
    } else if (found && f.columns == SCORED) { /* as most of mmdetection's are configured */
        pre->fit = SAC_FIT_LETTERBOX_TOPLEFT;
        set_fill(pre);
        sac_head_normalise(pre, SAC_ORDER_RGB);
    }
}

static const char *unread(const struct sac_head_view *v)
{
    for (int i = 0; i < v->output_count; i++)
        if (v->output[i].name && strcasestr(v->output[i].name, "mask"))
            return "masks";
    for (int i = 0; i < v->output_count; i++)
        if (v->output[i].name && strcasestr(v->output[i].name, "keypoint"))
            return "keypoints";
    return NULL;
}

static enum sac_detect_unit unit_of(const struct sac_head_facts *facts, const struct finished *f)
{
    if (f->y_first)
        return SAC_DETECT_SHARES;
    return facts->sized || facts->single || f->columns == SCORED ? SAC_DETECT_PIXELS
                                                                 : SAC_DETECT_UNIT_SHOWS;
}

static bool layout(const struct sac_head_input *in, const struct sac_head_facts *facts,
                   struct sac_detect_spec *out)
{
    struct finished f;
    if (!find(in->tensors, in->count, facts, &f))
        return false;
    const bool scored = f.score == f.box;
    out->form = SAC_DETECT_ROWS;
    out->unit = unit_of(facts, &f);
    out->y_first = f.y_first;
    out->cells = (int)SAC_MIN(sac_head_rows(&in->tensors[f.box], f.columns), (int64_t)INT32_MAX);
    out->box[0] = sac_head_field(in, f.box, 0, f.columns, 1);
    out->score[0] = sac_head_field(in, f.score, scored ? BOX : 0, scored ? f.columns : 1, 1);
    out->label = sac_head_field(in, f.label, 0, 1, 1);
    return true;
}

const struct sac_head sac_head_boxes = {
    .name = "boxes",
    .what = "torchvision, deployed RT-DETR and D-FINE, mmdeploy, TensorFlow: finished boxes, "
            "labels, scores",
    .wants =
        "boxes [rows; 4], labels [rows] and scores [rows], or dets [rows; 5] and labels [rows]",
    .needs_nms = false,
    .recognise = recognise,
    .class_count = class_count,
    .defaults = defaults,
    .unread = unread,
    .layout = layout,
};
