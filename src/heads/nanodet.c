/* SPDX-License-Identifier: Apache-2.0 */
/* NanoDet and other networks with generalised focal loss (Li et al., 2020): per cell the class
 * scores, and each edge's distance from the cell's point as a distribution over bins.
 *
 * NanoDet-Plus gives one output [cells of strides 8, 16, 32, 64; classes + 4 * bins] whose points
 * are the cells' corners. The first NanoDet gives two outputs per stride, scores and distances,
 * whose points are the cells' centres. All published models have 8 bins. */
#include <string.h>

#include "vision/detect.h"
#include "heads/heads.h"

enum { BINS = 8, BINS_MAX = 64 };

/* One feature map of cells. */
struct level {
    int64_t cells;
    float   offset; /* of the point in its cell, in cells */
    int64_t score_step, edge_step;
    int     classes, bins;
    int     score_tensor, edge_tensor;
    int64_t first; /* element of image 0 at which the tensors' part of this map begins */
};

/* ---- shapes ---- */

/* How many classes share `columns` with the edges' bins. */
static int classes_of(int64_t columns, int names)
{
    int64_t rest = columns - names;
    if (names && rest >= 8 && rest % 4 == 0 && rest / 4 <= BINS_MAX)
        return names;
    return (int)(columns - 4 * BINS);
}

static int concat_levels(int64_t cells, int width, int height)
{
    for (int levels = 4; levels >= 3; levels--)
        if (cells == sac_grid_of(width, height, levels).cells)
            return levels;
    return 0;
}

/* The two outputs of a map: out[0] scores, out[1] edges. rank and shape without the batch. */
static bool find_pair(const struct sac_head_tensor *t, int count, int64_t cells,
                      const struct sac_head_tensor *out[2])
{
    int n = 0;
    for (int i = 0; i < count; i++)
        if (t[i].rank == 2 && t[i].shape[0] == cells && n++ < 2)
            out[n - 1] = &t[i];
    if (n != 2)
        return false;
    if (strstr(out[1]->name, "cls")) {
        const struct sac_head_tensor *scores = out[1];
        out[1] = out[0];
        out[0] = scores;
    }
    int64_t bins = out[1]->shape[1] / 4;
    return out[1]->shape[1] % 4 == 0 && bins >= 2 && bins <= BINS_MAX && out[0]->shape[1] > 0;
}

static bool is_split(const struct sac_head_tensor *t, int count, int width, int height,
                     int *classes)
{
    const struct sac_head_tensor *pair[2] = {NULL, NULL};
    struct sac_grid               g = sac_grid_of(width, height, count / 2);
    if (count != 6 && count != 8)
        return false;
    for (int i = 0; i < g.levels; i++) {
        if (!find_pair(t, count, (int64_t)g.columns[i] * g.rows[i], pair))
            return false;
        *classes = (int)pair[0]->shape[1];
    }
    return true;
}

static bool recognise(const struct sac_head_view *v)
{
    struct sac_head_tensor        t[SAC_HEAD_OUTPUTS_MAX];
    const struct sac_tensor_desc *d = &v->output[0].desc;
    int                           classes = 0, count = sac_head_view_tensors(v, t);
    if (!v->width)
        return false;
    if (count != 1)
        return is_split(t, count, v->width, v->height, &classes);
    /* With three strides the rows are YOLOX's too: then the names must decide. */
    int levels = d->rank == 3 ? concat_levels(d->shape[1], v->width, v->height) : 0;
    return levels && classes_of(d->shape[2], v->facts.names) > 0 &&
           (levels == 4 || v->facts.names) &&
           (!v->facts.names || classes_of(d->shape[2], v->facts.names) == v->facts.names);
}

static int class_count(const struct sac_head_view *v)
{
    struct sac_head_tensor t[SAC_HEAD_OUTPUTS_MAX];
    int                    classes = 0, count = sac_head_view_tensors(v, t);
    if (count == 1)
        return t[0].rank == 2 ? SAC_MAX(classes_of(t[0].shape[1], v->facts.names), 0) : 0;
    return is_split(t, count, v->width, v->height, &classes) ? classes : 0;
}

static void defaults(const struct sac_head_view *v, struct sac_preprocess *pre)
{
    (void)v;
    pre->fit = SAC_FIT_STRETCH;
    sac_head_normalise(pre, SAC_ORDER_BGR);
}

/* ---- where the numbers are ---- */

static bool levels_of_one(const struct sac_head_input *in, int names, struct level *level,
                          int *count)
{
    const struct sac_head_tensor *t = &in->tensors[0];
    *count = t->rank == 2 ? concat_levels(t->shape[0], in->input_width, in->input_height) : 0;
    int classes = t->rank == 2 ? classes_of(t->shape[1], names) : 0;
    if (!*count || classes < 1)
        return false;
    struct sac_grid g = sac_grid_of(in->input_width, in->input_height, *count);
    int64_t         first = 0;
    for (int i = 0; i < *count; i++) {
        level[i] = (struct level){.cells = (int64_t)g.columns[i] * g.rows[i],
                                  .first = first,
                                  .score_step = t->shape[1],
                                  .edge_step = t->shape[1],
                                  .classes = classes,
                                  .bins = (int)(t->shape[1] - classes) / 4};
        first += level[i].cells * t->shape[1];
    }
    return true;
}

static bool levels_of_many(const struct sac_head_input *in, struct level *level, int *count)
{
    int classes = 0;
    if (!is_split(in->tensors, in->count, in->input_width, in->input_height, &classes))
        return false;
    struct sac_grid g = sac_grid_of(in->input_width, in->input_height, in->count / 2);
    *count = g.levels;
    for (int i = 0; i < g.levels; i++) {
        const struct sac_head_tensor *pair[2] = {NULL, NULL};
        if (!find_pair(in->tensors, in->count, (int64_t)g.columns[i] * g.rows[i], pair) ||
            pair[0]->shape[1] != classes)
            return false;
        level[i] = (struct level){.cells = (int64_t)g.columns[i] * g.rows[i],
                                  .offset = 0.5f,
                                  .score_tensor = (int)(pair[0] - in->tensors),
                                  .edge_tensor = (int)(pair[1] - in->tensors),
                                  .score_step = pair[0]->shape[1],
                                  .edge_step = pair[1]->shape[1],
                                  .classes = classes,
                                  .bins = (int)pair[1]->shape[1] / 4};
    }
    return true;
}

static bool levels_of(const struct sac_head_input *in, int names, struct level *level, int *count)
{
    return in->count == 1 ? levels_of_one(in, names, level, count)
                          : levels_of_many(in, level, count);
}

static bool layout(const struct sac_head_input *in, const struct sac_head_facts *facts,
                   struct sac_detect_spec *out)
{
    struct level level[SAC_GRID_LEVELS_MAX] = {{0}};
    int          count = 0;
    int64_t      cells = 0;
    if (!levels_of(in, facts->names, level, &count) || in->count > SAC_DETECT_TENSORS_MAX)
        return false;
    for (int i = 0; i < count; i++) {
        const struct level *l = &level[i];
        cells += l->cells;
        out->score[i] = sac_head_field(in, l->score_tensor, l->first, l->score_step, 1);
        out->box[i] = sac_head_field(in, l->edge_tensor,
                                     l->first + (in->count == 1 ? l->classes : 0), l->edge_step, 1);
    }
    out->form = SAC_DETECT_GFL;
    out->cells = (int)SAC_MIN(cells, (int64_t)INT32_MAX);
    out->classes = level[0].classes;
    out->bins = level[0].bins;
    out->offset = level[0].offset;
    for (int i = 1; i < count; i++)
        if (level[i].bins != out->bins)
            return false;
    return true;
}

const struct sac_head sac_head_nanodet = {
    .name = "nanodet",
    .what = "NanoDet, GFL: each box edge as a distribution over bins",
    .wants = "[cells of strides 8 to 64; classes + 4 * bins], or scores and distances per stride",
    .needs_nms = true,
    .recognise = recognise,
    .class_count = class_count,
    .defaults = defaults,
    .layout = layout,
};
