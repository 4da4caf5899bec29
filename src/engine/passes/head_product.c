/* SPDX-License-Identifier: Apache-2.0 */
/* Attention on maps has a convolution of one tap make queries, keys and values, and multiplies each
 * head's queries by a constant matrix besides, for relative positions (BoTNet, HaloNet). What these
 * products make the convolution can write itself, as more channels: its weights for a head's
 * queries times the matrix. A step goes, and nothing is read again or turned for it. */
#include <string.h>

#include "engine/passes/strided.h"

enum {
    DEPTH_MAX = 12,
    PARTS_MAX = 8,
    /* A head's numbers are filled up to so many, so that the channels stay a multiple of it, which
     * all kernels for convolutions take. */
    ROOM = 16,
    BATCH = 0, /* axes of the new channels, [batch,head,number,pixels...] */
    HEAD = 1,
    NUMBER = 2,
    PIXEL = 3
};

struct head_product {
    struct sac_node        *node, *conv;
    int64_t                 pixels, channels;            /* of the convolution's map */
    int64_t                 first, heads, size, columns; /* queries, and the constant's columns */
    int64_t                 room;                        /* for a head's columns */
    double                  scale;
    int                     parts; /* what v counts, outermost first, without numbers */
    struct sac_strided_part part[PARTS_MAX];
    int                     axis[PARTS_MAX]; /* of the new channels */
};

/* ---- what is multiplied ---- */

static bool is_one_tap(const struct sac_node *n)
{
    if (!sac_is(n, "Conv") || !sac_is_dense_conv(n) || !sac_constant_floats(n->inputs[1]) ||
        (sac_node_input(n, 2) && !sac_constant_floats(n->inputs[2])) || n->outputs[0]->rank < 3)
        return false;
    const struct sac_value *w = n->inputs[1];
    for (int d = 2; d < w->rank; d++)
        if (w->dims[d] != 1 || n->outputs[0]->dims[d] < 1 ||
            n->outputs[0]->dims[d] != n->inputs[0]->dims[d])
            return false;
    return sac_ints_are(n, "strides", 1) && sac_ints_are(n, "pads", 0);
}

/* Do only nodes read the map that take parts of it or turn it? Any other may join a convolution,
 * which more channels would keep from that. */
static bool only_moves_read(const struct sac_value *map)
{
    bool only = map->uses == (int)map->reader_count;
    for (size_t i = 0; only && i < map->reader_count; i++)
        only = sac_is(map->readers[i], "Split") || sac_is(map->readers[i], "Slice") ||
               sac_is(map->readers[i], "Transpose") || sac_is_reshape(map->readers[i]);
    return only;
}

/* Does somebody else read what is between the map and v? Else the map need not be made. */
static bool is_shared(const struct sac_value *v, const struct sac_value *map)
{
    bool shared = false;
    for (; v && !shared; v = v == map ? NULL : sac_strided_before(v))
        shared = v->uses > 1 || (v->producer && v->producer->output_count > 1);
    return shared;
}

/* ---- how it lies in the map ---- */

static bool add_part(struct head_product *p, int64_t dim, int64_t step, int axis)
{
    if (dim == 1)
        return true;
    for (int i = 0; i < p->parts; i++)
        if (axis < PIXEL && p->axis[i] == axis)
            return false;
    if (p->parts == PARTS_MAX)
        return false;
    p->axis[p->parts] = axis;
    p->part[p->parts++] = (struct sac_strided_part){dim, step};
    return true;
}

/* One part of v's leading dims: of the batch, of heads, of both at once, or of pixels. */
static bool take_part(struct head_product *p, const struct sac_strided_part *part)
{
    const int64_t sample = p->channels * p->pixels, head = p->size * p->pixels,
                  all = p->channels / p->size;
    if (part->dim == 1)
        return true;
    if (part->step < p->pixels)
        return add_part(p, part->dim, part->step, PIXEL);
    if (part->step == sample)
        return add_part(p, part->dim, sample, BATCH);
    if (part->step != head || p->heads > 1)
        return false;
    p->heads = part->dim;
    if (part->dim <= all)
        return add_part(p, part->dim, head, HEAD);
    p->heads = all;
    return part->dim % all == 0 && p->channels % p->size == 0 &&
           add_part(p, part->dim / all, sample, BATCH) && add_part(p, all, head, HEAD);
}

/* Pixels are counted once each: axes by their steps, the largest first. */
static bool sort_pixels(struct head_product *p)
{
    int64_t span = p->pixels;
    for (int axis = PIXEL; span > 1; axis++) {
        int found = -1;
        for (int i = 0; i < p->parts; i++)
            if (p->axis[i] >= PIXEL && p->part[i].dim * p->part[i].step == span)
                found = i;
        if (found < 0 || axis == SAC_RANK_MAX)
            return false;
        p->axis[found] = axis;
        span = p->part[found].step;
    }
    int64_t all = 1;
    for (int i = 0; i < p->parts; i++)
        all *= p->axis[i] >= PIXEL ? p->part[i].dim : 1;
    return all == p->pixels;
}

static bool has_batch(const struct head_product *p)
{
    const int64_t dim = p->conv->outputs[0]->dims[0],
                  want = dim == SAC_DIM_OPEN ? SAC_STAND_IN : dim;
    int64_t batch = 1;
    for (int i = 0; i < p->parts; i++)
        batch *= p->axis[i] == BATCH ? p->part[i].dim : 1;
    return batch == want;
}

static bool lies_in_map(struct head_product *p, const struct sac_strided *s)
{
    const struct sac_value *map = s->base, *w = p->conv->inputs[1];
    const int               last = s->rank - 1;
    p->channels = w->dims[0];
    if (p->channels < p->size)
        return false;
    p->pixels = 1;
    for (int d = 2; d < map->rank; d++)
        p->pixels *= map->dims[d];
    if (p->pixels < 2 || s->first[last + 1] - s->first[last] != 1)
        return false;
    const struct sac_strided_part *numbers = &s->part[s->first[last]];
    p->heads = 1;
    p->parts = 0;
    p->first = s->offset / p->pixels;
    if (numbers->dim != p->size || numbers->step != p->pixels || s->offset % p->pixels != 0)
        return false;
    for (int i = 0; i < s->first[last]; i++)
        if (!take_part(p, &s->part[i]))
            return false;
    return p->first + p->heads * p->size <= p->channels && sort_pixels(p) && has_batch(p);
}

static bool read_product(struct sac_node *n, struct head_product *p)
{
    struct sac_strided      s;
    struct sac_value       *v = n->inputs[0], *base = v;
    const struct sac_value *c = sac_node_input(n, 1);
    if (!sac_is(n, "MatMul") || !c || !sac_constant_floats(c) || c->rank != 2 || v->data ||
        v->rank < 2 || v->dtype != SAC_F32 || c->dims[0] < 1 || c->dims[1] < 1)
        return false;
    *p = (struct head_product){.node = n, .size = c->dims[0], .columns = c->dims[1]};
    p->room = (p->columns + ROOM - 1) / ROOM * ROOM;
    for (int depth = 0; depth < DEPTH_MAX && base; depth++, base = sac_strided_before(base)) {
        p->conv = base->producer;
        if (!p->conv || !is_one_tap(p->conv))
            continue;
        p->scale = 1;
        if (!sac_strided_from(&s, v, depth) || !lies_in_map(p, &s) ||
            p->heads * p->room > p->channels || !only_moves_read(base) || !is_shared(v, base))
            return false;
        p->scale = s.scale;
        return true;
    }
    return false;
}

/* ---- the larger convolution ---- */

/* The weights of a head's queries, or their biases, times one column. */
static double times_column(const struct head_product *p, const float *of, int64_t row,
                           int64_t column)
{
    const float *c = p->node->inputs[1]->data;
    double       sum = 0;
    for (int64_t k = 0; k < p->size; k++)
        sum += (double)of[k * row] * c[k * p->columns + column];
    return sum * p->scale;
}

static void fill_more(const struct head_product *p, const float *from, int64_t row, float *to)
{
    for (int64_t h = 0; h < p->heads; h++)
        for (int64_t c = 0; c < p->columns; c++)
            for (int64_t i = 0; i < row; i++)
                to[(h * p->room + c) * row + i] =
                    (float)times_column(p, from + (p->first + h * p->size) * row + i, row, c);
}

/* A constant of each channel with those for the new ones, zeros where nobody reads them. */
static struct sac_value *with_more(struct sac_graph *g, const struct head_product *p,
                                   const struct sac_value *constant)
{
    int64_t       dims[SAC_RANK_MAX];
    const int64_t count = sac_value_elements(constant), row = count / p->channels;
    float        *to;
    memcpy(dims, constant->dims, sizeof dims);
    dims[0] += p->heads * p->room;
    struct sac_value *made = sac_new_floats(g, constant->name, constant->rank, dims, &to);
    if (!made)
        return NULL;
    memset(to, 0, (size_t)(dims[0] * row) * sizeof *to);
    memcpy(to, constant->data, (size_t)count * sizeof *to);
    fill_more(p, constant->data, row, to + count);
    return made;
}

static struct sac_value *larger_conv(struct sac_graph *g, const struct head_product *p)
{
    struct sac_node  *n = sac_op_node(g, "", "Conv", p->conv->input_count, 1, p->conv);
    struct sac_value *y = n ? sac_value_like(g, p->conv->outputs[0]) : NULL;
    if (!y || sac_copy_attrs(g, n, p->conv) != SAC_OK)
        return NULL;
    n->inputs[0] = p->conv->inputs[0];
    for (int i = 1; i < p->conv->input_count; i++)
        if (p->conv->inputs[i] && !(n->inputs[i] = with_more(g, p, p->conv->inputs[i])))
            return NULL;
    n->outputs[0] = y;
    y->producer = n;
    y->dims[1] += p->heads * p->room;
    return y;
}

/* The new channels as the product had them. */
static struct sac_value *as_before(struct sac_graph *g, const struct head_product *p,
                                   struct sac_value *v, sac_result *res)
{
    const struct sac_value *old = p->node->outputs[0];
    int64_t dims[SAC_RANK_MAX] = {v->dims[0], p->heads, p->room}, perm[SAC_RANK_MAX];
    int     rank = PIXEL, count = 0;
    bool    used[SAC_RANK_MAX] = {false};
    for (int i = 0; i < p->parts; i++) {
        rank += p->axis[i] >= PIXEL;
        if (p->axis[i] >= PIXEL)
            dims[p->axis[i]] = p->part[i].dim;
    }
    for (int i = 0; i < p->parts; i++) {
        perm[count++] = p->axis[i];
        used[p->axis[i]] = true;
    }
    for (int d = 0; d < rank; d++) /* those of one entry */
        if (!used[d] && d != NUMBER)
            perm[count++] = d;
    perm[count] = NUMBER;
    v = sac_reshaped(g, p->node, v, rank, dims, res);
    if (v && p->room > p->columns)
        v = sac_part_of(g, p->node, v, NUMBER, 0, p->columns, res);
    v = v ? sac_transposed(g, p->node, v, perm, res) : NULL;
    return v ? sac_reshaped(g, p->node, v, old->rank, old->dims, res) : NULL;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct head_product p;
    sac_result          res = SAC_OK;
    if (!read_product(n, &p))
        return SAC_OK;
    struct sac_value *all = larger_conv(g, &p);
    if (!all)
        return SAC_ERR_MEMORY;
    struct sac_value *same = sac_channels_of(g, n, all, 0, p.channels, &res);
    struct sac_value *more =
        same ? sac_channels_of(g, n, all, p.channels, p.heads * p.room, &res) : NULL;
    more = more ? as_before(g, &p, more, &res) : NULL;
    if (!more)
        return res;
    *changed = true;
    sac_graph_replace(g, p.conv->outputs[0], same);
    sac_graph_replace(g, n->outputs[0], more);
    return SAC_OK;
}

const struct sac_pass sac_pass_head_product = {"head-product", visit};
