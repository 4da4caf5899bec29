/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heads/quality.h"
#include "vision/matte.h"

/* Boxes of float32 from here on are the truth; the others' from far below, as their order counts.
 */
static const float  TRUE_SCORE = 0.25f, FOUND_SCORE = 0.05f;
static const double MATCH_IOU = 0.5;
enum { BOXES_MAX = 300, CLASSES_MAX = 1 << 16 };

struct sac_judged_box {
    int   class_id;
    float score;
    bool  found;
};

struct sac_judged_class {
    int64_t want, got, both;
};

static sac_result no_memory(const struct sac_quality_judge *j)
{
    return SAC_FAIL(j->cpu->ctx, SAC_ERR_MEMORY, "no memory to compare results");
}

/* ---- boxes ---- */

static sac_result decode(const struct sac_quality_judge *j, sac_tensor *const *out, float score_min,
                         struct sac_detections *boxes)
{
    struct sac_head_outputs  o = {.count = 0};
    struct sac_detect_spec   s = {.input_width = j->width,
                                  .input_height = j->height,
                                  .score_min = score_min,
                                  .nms_iou = 0.65f,
                                  .nms = j->head->needs_nms,
                                  .all_classes = true};
    const struct sac_fit_map map = {.scale_x = 1, .scale_y = 1};
    enum sac_dtype           dtypes[SAC_HEAD_OUTPUTS_MAX];
    const void              *tensors[SAC_DETECT_TENSORS_MAX] = {NULL};
    struct sac_buffer       *lists = NULL;
    sac_result               res = sac_head_outputs_shape(&o, j->cpu, j->view.model, out, 1);
    if (res != SAC_OK)
        return res;
    const struct sac_head_input in = {o.tensor, o.count, j->width, j->height, score_min};
    for (int i = 0; i < o.count; i++) {
        dtypes[i] = sac_tensor_describe(out[i])->dtype;
        tensors[i] = sac_tensor_data(out[i]);
    }
    s.tensor_count = o.count;
    if (!j->head->layout(&in, &j->view.facts, &s))
        return SAC_FAIL(j->cpu->ctx, SAC_ERR_FORMAT, "%s: the outputs are not head '%s's",
                        sac_model_path(j->view.model), j->head->name);
    sac_detect_set_dtypes(&s, dtypes);
    s.keep = SAC_CLAMP((int)BOXES_MAX, 1, SAC_MAX(s.cells, 1));
    if (s.cells == 0)
        return SAC_OK;
    res = sac_buffer_create(j->cpu, sac_detect_out_bytes(&s, 1), "boxes", &lists);
    if (res == SAC_OK)
        res = sac_detect_run(j->cpu, NULL, &s, tensors, &map, 1, sac_buffer_data(lists));
    if (res == SAC_OK)
        res = sac_detect_fetch(j->cpu, NULL, &s, sac_buffer_data(lists), 1, boxes);
    sac_buffer_unref(&lists);
    return res;
}

static double iou(const struct sac_detection *a, const struct sac_detection *b)
{
    const double w = fmin((double)a->x1, (double)b->x1) - fmax((double)a->x0, (double)b->x0),
                 h = fmin((double)a->y1, (double)b->y1) - fmax((double)a->y0, (double)b->y0);
    const double both = w > 0 && h > 0 ? w * h : 0;
    const double all = (double)(a->x1 - a->x0) * (double)(a->y1 - a->y0) +
                       (double)(b->x1 - b->x0) * (double)(b->y1 - b->y0) - both;
    return all > 0 ? both / all : 0;
}

/* The box of the truth that it is; best first, each is found once. -1: none. */
static int match(const struct sac_detections *want, const bool *taken,
                 const struct sac_detection *d)
{
    int    best = -1;
    double most = MATCH_IOU;
    for (int i = 0; i < (int)want->count; i++) {
        const double share =
            want->items[i].class_id == d->class_id && !taken[i] ? iou(&want->items[i], d) : 0;
        if (share >= most) {
            most = share;
            best = i;
        }
    }
    return best;
}

static bool count_wanted(struct sac_quality_judge *j, int class_id)
{
    const size_t before = j->class_cap, need = (size_t)SAC_CLAMP(class_id, 0, CLASSES_MAX) + 1;
    if (!sac_grow((void **)&j->wanted, &j->class_cap, need, sizeof *j->wanted))
        return false;
    if (j->class_cap > before)
        memset(j->wanted + before, 0, (j->class_cap - before) * sizeof *j->wanted);
    j->wanted[need - 1]++;
    return true;
}

static sac_result compare_boxes(struct sac_quality_judge *j, sac_tensor *const *want,
                                sac_tensor *const *got)
{
    struct sac_detections truth = {NULL}, found = {NULL};
    bool                 *taken = NULL;
    sac_result            res = decode(j, want, TRUE_SCORE, &truth);
    if (res == SAC_OK)
        res = decode(j, got, FOUND_SCORE, &found);
    if (res == SAC_OK && !(taken = sac_calloc(truth.count + 1, sizeof *taken)))
        res = no_memory(j);
    for (size_t i = 0; i < truth.count && res == SAC_OK; i++)
        if (!count_wanted(j, truth.items[i].class_id))
            res = no_memory(j);
    for (size_t i = 0; i < found.count && res == SAC_OK; i++) {
        const int at = match(&truth, taken, &found.items[i]);
        if (at >= 0)
            taken[at] = true;
        if (!sac_grow((void **)&j->boxes, &j->box_cap, j->box_count + 1, sizeof *j->boxes))
            res = no_memory(j);
        else
            j->boxes[j->box_count++] = (struct sac_judged_box){
                SAC_CLAMP(found.items[i].class_id, 0, CLASSES_MAX), found.items[i].score, at >= 0};
    }
    sac_free(taken);
    sac_detections_finish(&truth);
    sac_detections_finish(&found);
    return res;
}

static int by_class_and_score(const void *a, const void *b)
{
    const struct sac_judged_box *x = a, *y = b;
    if (x->class_id != y->class_id)
        return x->class_id < y->class_id ? -1 : 1;
    return x->score > y->score ? -1 : x->score < y->score;
}

/* The area under precision over recall; precision is the best of this recall and beyond. */
static double average_precision(const struct sac_judged_box *b, size_t n, int wanted)
{
    double area = 0, best = 0;
    int    found = 0;
    for (size_t i = 0; i < n; i++)
        found += b[i].found;
    for (size_t i = n; i-- > 0;) {
        best = fmax(best, (double)found / (double)(i + 1));
        if (b[i].found) {
            area += best;
            found--;
        }
    }
    return area / wanted;
}

static double mean_precision(struct sac_quality_judge *j)
{
    double sum = 0;
    int    classes = 0;
    if (j->box_count)
        qsort(j->boxes, j->box_count, sizeof *j->boxes, by_class_and_score);
    for (size_t c = 0; c < j->class_cap; c++) {
        size_t first = 0, end;
        if (!j->wanted[c])
            continue;
        while (first < j->box_count && j->boxes[first].class_id < (int)c)
            first++;
        for (end = first; end < j->box_count && j->boxes[end].class_id == (int)c; end++)
            continue;
        sum += average_precision(j->boxes + first, end - first, j->wanted[c]);
        classes++;
    }
    return classes ? sum / classes : NAN;
}

/* ---- embeddings ---- */

static void compare_embeddings(struct sac_quality_judge *j, const sac_tensor *want,
                               const sac_tensor *got)
{
    const struct sac_tensor_desc *d = sac_tensor_describe(want);
    const struct sac_operand      x = {.dtype = d->dtype, .data = sac_tensor_data(want)},
                             y = {.dtype = d->dtype, .data = sac_tensor_data(got)};
    double xx = 0, yy = 0, xy = 0;
    for (int64_t i = 0; i < sac_tensor_desc_elements(d); i++) {
        const double u = sac_operand_get(&x, i), v = sac_operand_get(&y, i);
        xx += u * u;
        yy += v * v;
        xy += u * v;
    }
    j->sum += xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : xx == yy;
    j->count++;
}

/* ---- maps ---- */

static int shown(const struct sac_matte_spec *s, const void *const *tensors, int64_t cell)
{
    const int64_t at = s->value.first + cell * s->value.cell;
    float         most = sac_detect_read(&s->value, tensors, at);
    int           best = 0;
    switch (s->form) {
    case SAC_MATTE_SHARE: return most >= 0.5f;
    case SAC_MATTE_LOGIT: return most >= 0;
    case SAC_MATTE_LABEL: return (int)SAC_CLAMP(most, 0, SAC_DETECT_CLASSES_MAX - 1);
    default: break;
    }
    for (int k = 1; k < SAC_MIN(s->classes, (int)SAC_DETECT_CLASSES_MAX); k++) {
        const float v = sac_detect_read(&s->value, tensors, at + k * s->value.number);
        if (v > most) {
            most = v;
            best = k;
        }
    }
    return best;
}

static sac_result compare_maps(struct sac_quality_judge *j, sac_tensor *const *want,
                               sac_tensor *const *got)
{
    struct sac_head_view  view = j->view;
    struct sac_matte_spec s = {.width = 0};
    const void           *a[SAC_HEAD_OUTPUTS_MAX] = {NULL}, *b[SAC_HEAD_OUTPUTS_MAX] = {NULL};
    view.width = j->width;
    view.height = j->height;
    for (int i = 0; i < view.output_count; i++) {
        view.output[i].desc = *sac_tensor_describe(want[i]);
        a[i] = sac_tensor_data(want[i]);
        b[i] = sac_tensor_data(got[i]);
    }
    if (!j->cells)
        j->cells = sac_calloc(SAC_DETECT_CLASSES_MAX, sizeof *j->cells);
    if (!j->cells)
        return no_memory(j);
    if (!j->head->matte(&view, &s))
        return SAC_FAIL(j->cpu->ctx, SAC_ERR_FORMAT, "%s: the outputs are not head '%s's",
                        sac_model_path(view.model), j->head->name);
    s.value.dtype = view.output[s.value.tensor].desc.dtype;
    j->first_class = s.form == SAC_MATTE_SHARE || s.form == SAC_MATTE_LOGIT;
    for (int64_t cell = 0; cell < (int64_t)s.width * s.height; cell++) {
        const int x = shown(&s, a, cell), y = shown(&s, b, cell);
        j->cells[x].want++;
        j->cells[y].got++;
        j->cells[x].both += x == y;
    }
    return SAC_OK;
}

/* Over the classes that float32 shows. */
static double mean_iou(const struct sac_quality_judge *j)
{
    double sum = 0;
    int    classes = 0;
    for (int c = j->first_class; c < SAC_DETECT_CLASSES_MAX; c++) {
        const struct sac_judged_class *k = &j->cells[c];
        if (!k->want)
            continue;
        sum += (double)k->both / (double)(k->want + k->got - k->both);
        classes++;
    }
    return classes ? sum / classes : NAN;
}

/* ---- the whole ---- */

static bool is_embedding(const struct sac_quality_judge *j)
{
    return j->head == &sac_head_embedding;
}

sac_result sac_quality_compare(struct sac_quality_judge *j, sac_tensor *const *want,
                               sac_tensor *const *got)
{
    if (!j->head)
        return SAC_OK;
    if (j->head->layout)
        return compare_boxes(j, want, got);
    if (j->head->matte)
        return compare_maps(j, want, got);
    if (is_embedding(j))
        compare_embeddings(j, want[0], got[0]);
    return SAC_OK;
}

struct sac_verdict sac_quality_verdict(struct sac_quality_judge *j)
{
    const double       masks = j->cells ? mean_iou(j) : NAN;
    struct sac_verdict v = {SAC_QUALITY_NUMBERS, NAN};
    if (j->head && j->head->layout)
        v = (struct sac_verdict){SAC_QUALITY_BOXES, mean_precision(j)};
    else if (!isnan(masks))
        v = (struct sac_verdict){SAC_QUALITY_MASKS, masks};
    else if (j->count)
        v = (struct sac_verdict){SAC_QUALITY_EMBEDDINGS, j->sum / j->count};
    if (j->cells)
        memset(j->cells, 0, SAC_DETECT_CLASSES_MAX * sizeof *j->cells);
    j->sum = 0;
    j->count = 0;
    j->box_count = 0;
    if (j->wanted)
        memset(j->wanted, 0, j->class_cap * sizeof *j->wanted);
    return v;
}

void sac_quality_finish(struct sac_quality_judge *j)
{
    sac_free(j->boxes);
    sac_free(j->wanted);
    sac_free(j->cells);
    *j = (struct sac_quality_judge){.head = NULL};
}
