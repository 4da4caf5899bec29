/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/deform_attention.h"

#include <math.h>

#include "engine/ops/fused.h"
#include "engine/ops/util.h"

enum { V, P, W };
enum { SIDE_MAX = 1 << 20 };

/* A file can use the domain too, so nothing about the node is trusted. */
static sac_result read_levels(const struct sac_op_call *c, struct sac_deform_attention *a)
{
    const int64_t *sizes, *points;
    const size_t   sides = sac_attr_ints(c->node, "sizes", &sizes),
                 levels = sac_attr_ints(c->node, "points", &points);
    SAC_CHECK(c, levels > 0 && levels <= SAC_DEFORM_LEVELS && sides == 2 * levels,
              "%zu numbers of points and %zu sides; at most %d levels, with two sides each", levels,
              sides, SAC_DEFORM_LEVELS);
    a->levels = (int)levels;
    for (int i = 0; i < a->levels; i++) {
        const struct sac_deform_level l = {a->values, sizes[2 * i], sizes[2 * i + 1], a->points,
                                           points[i]};
        SAC_CHECK(c,
                  l.height > 0 && l.height <= SIDE_MAX && l.width > 0 && l.width <= SIDE_MAX &&
                      l.points > 0 && l.points <= SIDE_MAX,
                  "level %d is %lldx%lld with %lld points", i, (long long)l.width,
                  (long long)l.height, (long long)l.points);
        a->level[i] = l;
        a->values += l.height * l.width;
        a->points += l.points;
    }
    return SAC_OK;
}

static int64_t line_of(const struct sac_operand *o)
{
    return sac_dims_product(o->rank - 2, o->dims + 2);
}

/* Does a line hold so many numbers of each head? The product of the two may be no number. */
static bool holds(const struct sac_operand *o, int64_t heads, int64_t each)
{
    return line_of(o) % heads == 0 && line_of(o) / heads == each;
}

sac_result sac_deform_attention_read(const struct sac_op_call *c, struct sac_deform_attention *a)
{
    *a = (struct sac_deform_attention){.heads = sac_attr_int(c->node, "heads", 1)};
    for (int i = V; i <= W; i++) {
        SAC_CHECK(c, sac_op_has(c, i) && c->in[i].dtype == SAC_F32 && c->in[i].rank >= 3,
                  "input %d is not float32 of at least 3 dimensions", i);
        SAC_CHECK(c, c->in[i].dims[0] == c->in[V].dims[0], "input %d has another batch", i);
    }
    SAC_TRY(read_levels(c, a));
    a->batch = c->in[V].dims[0];
    a->queries = c->in[P].dims[1];
    const int64_t channels = line_of(&c->in[V]);
    SAC_CHECK(c, c->in[V].dims[1] == a->values, "%lld values, where the levels have %lld",
              (long long)c->in[V].dims[1], (long long)a->values);
    SAC_CHECK(c, a->heads > 0 && channels > 0 && channels % a->heads == 0,
              "%lld channels do not make %lld heads", (long long)channels, (long long)a->heads);
    a->size = channels / a->heads;
    SAC_CHECK(c,
              c->in[W].dims[1] == a->queries && holds(&c->in[W], a->heads, a->points) &&
                  holds(&c->in[P], a->heads, 2 * a->points),
              "places or shares do not fit %lld heads with %lld points", (long long)a->heads,
              (long long)a->points);
    a->gain = sac_attr_float(c->node, "gain", 1);
    a->shift = sac_attr_float(c->node, "shift", 0);
    a->softmax = sac_attr_int(c->node, "softmax", 0) != 0;
    return SAC_OK;
}

static sac_result deform_shape(struct sac_op_call *c)
{
    struct sac_deform_attention a;
    SAC_TRY(sac_deform_attention_read(c, &a));
    const int64_t dims[] = {a.batch, a.queries, a.heads * a.size};
    return sac_shape_out(c, 0, SAC_F32, 3, dims);
}

/* What lies at a pixel of a level; beyond its edge 0. */
static double pixel(const struct sac_deform_level *l, const float *v, int64_t step, double y,
                    double x)
{
    if (!(y >= 0 && x >= 0 && y < (double)l->height && x < (double)l->width))
        return 0;
    return v[(l->start + (int64_t)y * l->width + (int64_t)x) * step];
}

/* The coordinate of a place along a side. */
static double coordinate(const struct sac_deform_attention *a, float place, int64_t side)
{
    return ((a->gain * place + a->shift + 1) * (double)side - 1) / 2;
}

/* v is the head's number of the level's first pixel. */
static double between(const struct sac_deform_attention *a, const struct sac_deform_level *l,
                      const float *v, const float *place)
{
    const int64_t step = a->heads * a->size;
    const double  x = coordinate(a, place[0], l->width), y = coordinate(a, place[1], l->height),
                 x0 = floor(x), y0 = floor(y), fx = x - x0, fy = y - y0;
    return (1 - fy) * ((1 - fx) * pixel(l, v, step, y0, x0) + fx * pixel(l, v, step, y0, x0 + 1)) +
           fy * ((1 - fx) * pixel(l, v, step, y0 + 1, x0) + fx * pixel(l, v, step, y0 + 1, x0 + 1));
}

/* One head of one query: places and w are its points', v its numbers of the first pixel. */
static void attend(const struct sac_deform_attention *a, const float *v, const float *places,
                   const float *w, float *y)
{
    double max = 0, sum = a->softmax ? 0 : 1;
    for (int64_t p = 0; a->softmax && p < a->points; p++)
        max = p == 0 ? w[p] : fmax(max, w[p]);
    for (int64_t p = 0; a->softmax && p < a->points; p++)
        sum += exp(w[p] - max);
    for (int64_t d = 0; d < a->size; d++) {
        double all = 0;
        for (int i = 0; i < a->levels; i++) {
            const struct sac_deform_level *l = &a->level[i];
            for (int64_t p = l->first; p < l->first + l->points; p++)
                all += (a->softmax ? exp(w[p] - max) : w[p]) * between(a, l, v + d, places + 2 * p);
        }
        y[d] = (float)(all / sum);
    }
}

static sac_result deform_ref(struct sac_op_call *c)
{
    struct sac_deform_attention a;
    SAC_TRY(sac_deform_attention_read(c, &a));
    const float *v = c->in[V].data, *places = c->in[P].data, *w = c->in[W].data;
    for (int64_t i = 0; i < a.batch * a.queries * a.heads; i++) {
        const int64_t n = i / (a.queries * a.heads), head = i % a.heads;
        attend(&a, v + (n * a.values * a.heads + head) * a.size, places + 2 * i * a.points,
               w + i * a.points, (float *)c->out[0].data + i * a.size);
    }
    return SAC_OK;
}

/* Four products and sums a number and point. */
static int64_t deform_flops(const struct sac_op_call *c)
{
    struct sac_deform_attention a;
    if (sac_deform_attention_read(c, &a) != SAC_OK)
        return 0;
    return 8 * a.batch * a.queries * a.heads * a.size * a.points;
}

extern const struct sac_op sac_row_DeformAttention;

const struct sac_op sac_row_DeformAttention = {SAC_FUSED_ROW(DeformAttention, 3, 3),
                                               SAC_TOLERANCE(1e-4f, 1e-4f), .shape = deform_shape,
                                               .ref = deform_ref, .flops = deform_flops};
