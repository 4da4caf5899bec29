/* SPDX-License-Identifier: Apache-2.0 */
/* NonMaxSuppression: boxes in the order of their scores, without those that overlap a box already
 * kept; per image and class. */
#include <math.h>

#include "engine/ops/util.h"

enum { BOXES, SCORES, MAX_BOXES, IOU, SCORE };

struct nms {
    int64_t count_max;
    double  iou, score;
    bool    has_score, centres;
};

struct candidate {
    int64_t index;
    double  score;
};

/* An optional number; SAC_AGAIN when it is not known yet. */
static sac_result scalar(struct sac_op_call *c, int i, double fallback, double *out)
{
    *out = fallback;
    if (!sac_op_has(c, i))
        return SAC_OK;
    SAC_CHECK(c, sac_operand_elements(&c->in[i]) == 1, "input %d is not one number", i);
    if (!c->in[i].data)
        return SAC_AGAIN;
    *out = sac_operand_get(&c->in[i], 0);
    return SAC_OK;
}

static sac_result nms_read(struct sac_op_call *c, struct nms *n)
{
    double count;
    SAC_TRY(scalar(c, MAX_BOXES, 0, &count));
    SAC_TRY(scalar(c, IOU, 0, &n->iou));
    SAC_TRY(scalar(c, SCORE, 0, &n->score));
    n->count_max = (int64_t)SAC_CLAMP(count, 0, 0x1p40);
    n->has_score = sac_op_has(c, SCORE);
    n->centres = sac_attr_int(c->node, "center_point_box", 0);
    return SAC_OK;
}

/* Corners in either order, or centre and size, to y0,x0,y1,x1. */
static void read_box(const struct sac_operand *boxes, int64_t i, bool centres, double *b)
{
    double v[4];
    for (int k = 0; k < 4; k++)
        v[k] = sac_operand_get(boxes, i * 4 + k);
    if (centres) {
        b[0] = v[1] - v[3] / 2;
        b[1] = v[0] - v[2] / 2;
        b[2] = v[1] + v[3] / 2;
        b[3] = v[0] + v[2] / 2;
        return;
    }
    b[0] = fmin(v[0], v[2]);
    b[1] = fmin(v[1], v[3]);
    b[2] = fmax(v[0], v[2]);
    b[3] = fmax(v[1], v[3]);
}

static double overlap(const double *a, const double *b)
{
    double h = fmin(a[2], b[2]) - fmax(a[0], b[0]), w = fmin(a[3], b[3]) - fmax(a[1], b[1]);
    double both = h > 0 && w > 0 ? h * w : 0;
    double either = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both;
    return both > 0 ? both / either : 0;
}

static int by_score(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

/* The boxes kept of one image and class, compacted to the front of list. */
static int64_t select_boxes(const struct sac_op_call *c, const struct nms *n, int64_t image,
                            int64_t klass, struct candidate *list)
{
    const struct sac_operand *boxes = &c->in[BOXES], *scores = &c->in[SCORES];
    int64_t                   total = boxes->dims[1], count = 0, kept = 0;
    for (int64_t i = 0; i < total; i++) {
        double score = sac_operand_get(scores, (image * scores->dims[1] + klass) * total + i);
        if (!n->has_score || score > n->score)
            list[count++] = (struct candidate){i, score};
    }
    qsort(list, (size_t)count, sizeof *list, by_score);
    for (int64_t i = 0; i < count && kept < n->count_max; i++) {
        double box[4], other[4];
        bool   free_place = true;
        read_box(boxes, image * total + list[i].index, n->centres, box);
        for (int64_t k = 0; k < kept && free_place; k++) {
            read_box(boxes, image * total + list[k].index, n->centres, other);
            free_place = overlap(box, other) <= n->iou;
        }
        if (free_place)
            list[kept++] = list[i];
    }
    return kept;
}

/* Writes [image, class, box] to out unless it is NULL, and counts. */
static sac_result nms_run(struct sac_op_call *c, int64_t *out, int64_t *count)
{
    struct nms n;
    SAC_TRY(nms_read(c, &n));
    struct candidate *list = sac_alloc((size_t)c->in[BOXES].dims[1] * sizeof *list);
    if (!list)
        return sac_op_no_memory(c);
    *count = 0;
    for (int64_t image = 0; image < c->in[BOXES].dims[0]; image++)
        for (int64_t klass = 0; klass < c->in[SCORES].dims[1]; klass++) {
            int64_t kept = select_boxes(c, &n, image, klass, list);
            for (int64_t i = 0; out && i < kept; i++) {
                int64_t row[3] = {image, klass, list[i].index};
                memcpy(out + 3 * (*count + i), row, sizeof row);
            }
            *count += kept;
        }
    sac_free(list);
    return SAC_OK;
}

static sac_result nms_shape(struct sac_op_call *c)
{
    const struct sac_operand *boxes = &c->in[BOXES], *scores = &c->in[SCORES];
    int64_t                   dims[2] = {0, 3};
    SAC_CHECK(c,
              boxes->rank == 3 && boxes->dims[2] == 4 && scores->rank == 3 &&
                  scores->dims[0] == boxes->dims[0] && scores->dims[2] == boxes->dims[1],
              "boxes and scores do not fit each other");
    if (!boxes->data || !scores->data)
        return SAC_AGAIN;
    SAC_TRY(nms_run(c, NULL, &dims[0]));
    return sac_shape_out(c, 0, SAC_I64, 2, dims);
}

static sac_result nms_ref(struct sac_op_call *c)
{
    int64_t count;
    return nms_run(c, c->out[0].data, &count);
}

const struct sac_op sac_row_NonMaxSuppression = {SAC_ROW(NonMaxSuppression, 10, 2, 5, 1),
                                                 .shape = nms_shape, .ref = nms_ref};
