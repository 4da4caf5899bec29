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

struct box {
    double y0, x0, y1, x1, area;
};

/* Corners in either order, or centre and size. */
static struct box read_box(const struct sac_operand *boxes, int64_t i, bool centres)
{
    double     v[4];
    struct box b;
    for (int k = 0; k < 4; k++)
        v[k] = sac_operand_get(boxes, i * 4 + k);
    if (centres)
        b = (struct box){v[1] - v[3] / 2, v[0] - v[2] / 2, v[1] + v[3] / 2, v[0] + v[2] / 2, 0};
    else
        b = (struct box){fmin(v[0], v[2]), fmin(v[1], v[3]), fmax(v[0], v[2]), fmax(v[1], v[3]), 0};
    b.area = (b.y1 - b.y0) * (b.x1 - b.x0);
    return b;
}

/* Every candidate is compared with every box that is kept: no call for a minimum. */
static double overlap(const struct box *a, const struct box *b)
{
    const double h = SAC_MIN(a->y1, b->y1) - SAC_MAX(a->y0, b->y0);
    const double w = SAC_MIN(a->x1, b->x1) - SAC_MAX(a->x0, b->x0);
    const double both = h > 0 && w > 0 ? h * w : 0;
    return both > 0 ? both / (a->area + b->area - both) : 0;
}

static int by_score(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

/* What one image and class are chosen with. */
struct room {
    struct candidate *list; /* [boxes] those kept are in front at last */
    struct box       *box;  /* [boxes] of the image */
    struct box       *kept; /* [boxes] of this class so far, side by side */
};

static int64_t select_boxes(const struct sac_op_call *c, const struct nms *n, int64_t image,
                            int64_t klass, const struct room *r)
{
    const struct sac_operand *scores = &c->in[SCORES];
    int64_t                   total = c->in[BOXES].dims[1], count = 0, kept = 0;
    for (int64_t i = 0; i < total; i++) {
        double score = sac_operand_get(scores, (image * scores->dims[1] + klass) * total + i);
        if (!n->has_score || score > n->score)
            r->list[count++] = (struct candidate){i, score};
    }
    qsort(r->list, (size_t)count, sizeof *r->list, by_score);
    for (int64_t i = 0; i < count && kept < n->count_max; i++) {
        const struct box *box = &r->box[r->list[i].index];
        int64_t           k = 0;
        while (k < kept && overlap(box, &r->kept[k]) <= n->iou)
            k++;
        if (k < kept)
            continue;
        r->kept[kept] = *box;
        r->list[kept++] = r->list[i];
    }
    return kept;
}

/* Writes [image, class, box] to out unless it is NULL, and counts. */
static int64_t select_all(const struct sac_op_call *c, const struct nms *n, const struct room *r,
                          int64_t *out)
{
    const int64_t total = c->in[BOXES].dims[1];
    int64_t       count = 0;
    for (int64_t image = 0; image < c->in[BOXES].dims[0]; image++) {
        for (int64_t i = 0; i < total; i++)
            r->box[i] = read_box(&c->in[BOXES], image * total + i, n->centres);
        for (int64_t klass = 0; klass < c->in[SCORES].dims[1]; klass++) {
            const int64_t kept = select_boxes(c, n, image, klass, r);
            for (int64_t i = 0; out && i < kept; i++) {
                int64_t row[3] = {image, klass, r->list[i].index};
                memcpy(out + 3 * (count + i), row, sizeof row);
            }
            count += kept;
        }
    }
    return count;
}

static sac_result nms_run(struct sac_op_call *c, int64_t *out, int64_t *count)
{
    struct nms n;
    SAC_TRY(nms_read(c, &n));
    const size_t total = (size_t)c->in[BOXES].dims[1];
    struct room  r = {sac_alloc(total * sizeof *r.list), sac_alloc(total * sizeof *r.box),
                      sac_alloc(total * sizeof *r.kept)};
    const bool   fits = r.list && r.box && r.kept;
    if (fits)
        *count = select_all(c, &n, &r, out);
    sac_free(r.list);
    sac_free(r.box);
    sac_free(r.kept);
    return fits ? SAC_OK : sac_op_no_memory(c);
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
