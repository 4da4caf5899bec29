/* SPDX-License-Identifier: Apache-2.0 */
/* Adaptive average pooling as PyTorch's newer exporter writes it: a GatherND of the pixels of all
 * bins, a Where that clears what the smaller ones lack, the sum of all entries of a bin taken one
 * by one, or their mean, over the bins' sizes. What such steps make of a map is computed here,
 * whatever they are: sums of pixels times numbers, the same for each channel. Bins of one size and
 * step are an AveragePool, others a product with a matrix. */
#include <math.h>
#include <string.h>

#include "engine/passes/pass.h"

enum {
    FIRST = 2,           /* batch and channels go before the pixels */
    TERMS_MAX = 1 << 22, /* at once */
    WORK_MAX = 1 << 26   /* in all for one result: nested sums read the same map again and again */
};

/* [N,C,...] of x [N,C,H,W]: each number behind the first two dims is a sum of so many terms. */
struct sums {
    struct sac_value *x;
    int               rank;
    int64_t           dims[SAC_RANK_MAX], count, terms; /* of all numbers; of each */
    struct term {
        int64_t pixel;
        float   factor;
    } * term;      /* [count][terms] */
    int64_t *work; /* terms that may still be made */
};

static bool allocate(struct sums *s, sac_result *res)
{
    int64_t all = s->terms;
    s->count = 1;
    for (int d = FIRST; d < s->rank; d++)
        if (__builtin_mul_overflow(s->count, s->dims[d], &s->count))
            return false;
    if (s->count < 1 || __builtin_mul_overflow(all, s->count, &all) || all > TERMS_MAX ||
        (*s->work -= all) < 0)
        return false;
    s->term = sac_alloc((size_t)all * sizeof *s->term);
    *res = s->term ? SAC_OK : SAC_ERR_MEMORY;
    return s->term != NULL;
}

/* The number of an operand that is broadcast to s which stands beside its number i. */
static int64_t beside(const struct sums *s, const struct sac_value *v, int64_t i)
{
    int64_t at = 0, step = 1;
    for (int d = s->rank - 1, k = v->rank - 1; d >= FIRST && k >= 0; d--, k--) {
        at += v->dims[k] == 1 ? 0 : i % s->dims[d] * step;
        step *= v->dims[k];
        i /= s->dims[d];
    }
    return at;
}

/* A constant that has the pixels' dims, or ones. */
static bool fits(const struct sums *s, const struct sac_value *v)
{
    bool ok = v && v->data && v->rank >= 0 && v->rank <= s->rank;
    for (int k = 0; ok && k < v->rank; k++) {
        const int d = s->rank - v->rank + k;
        ok = v->dims[k] == 1 || (d >= FIRST && v->dims[k] == s->dims[d]);
    }
    return ok;
}

/* ---- the steps ---- */

static bool is_perm(const struct sac_node *n, int rank, int first)
{
    const int64_t *perm;
    bool ok = n && n->outputs[0]->rank == rank && sac_attr_ints(n, "perm", &perm) == (size_t)rank;
    for (int d = 0; ok && d < rank; d++)
        ok = perm[d] == (d + first) % rank;
    return ok;
}

/* Pixels by their rows and columns, with batch and channels behind them and then before. */
static bool take_pixels(struct sums *s, const struct sac_node *n, sac_result *res)
{
    const struct sac_node  *gather = sac_made_by(n->inputs[0], "GatherND");
    const struct sac_value *index = gather ? sac_node_input(gather, 1) : NULL;
    const struct sac_node  *turn = gather ? sac_made_by(gather->inputs[0], "Transpose") : NULL;
    const int               places = index ? index->rank - 1 : 0;
    if (!turn || !index->data || index->dtype != SAC_I64 || places < 1 ||
        index->dims[places] != FIRST || sac_attr_int(gather, "batch_dims", 0) != 0 ||
        !is_perm(turn, 4, FIRST) || !is_perm(n, places + FIRST, places))
        return false;
    const int64_t *at = index->data;
    s->x = turn->inputs[0];
    s->rank = places + FIRST;
    memcpy(s->dims + FIRST, index->dims, (size_t)places * sizeof *s->dims);
    s->terms = 1;
    const int64_t rows = s->x->dims[2], columns = s->x->dims[3];
    if (rows < 1 || columns < 1 || s->x->dims[1] < 1 || !allocate(s, res))
        return false;
    for (int64_t i = 0; i < s->count; i++) {
        const int64_t row = at[2 * i] + (at[2 * i] < 0 ? rows : 0);
        const int64_t column = at[2 * i + 1] + (at[2 * i + 1] < 0 ? columns : 0);
        if (row < 0 || row >= rows || column < 0 || column >= columns)
            return false;
        s->term[i] = (struct term){row * columns + column, 1};
    }
    return true;
}

/* Where with zeros; a factor or a divisor for each number. */
static bool scale(struct sums *s, const struct sac_node *n, const struct sac_value *by, bool keep)
{
    const unsigned char *cleared = sac_is(n, "Where") ? by->data : NULL;
    const float         *factor = cleared ? NULL : sac_constant_floats(by);
    if (n->outputs[0]->rank != s->rank || !fits(s, by) || !(cleared || factor))
        return false;
    for (int64_t i = 0; i < s->count * s->terms; i++) {
        const int64_t at = beside(s, by, i / s->terms);
        if (factor)
            s->term[i].factor *= sac_is(n, "Div") ? 1 / factor[at] : factor[at];
        else if ((cleared[at] != 0) != keep)
            s->term[i].factor = 0;
    }
    return true;
}

/* Entry `index` of an axis. */
static bool select_entry(struct sums *s, const struct sac_node *n, sac_result *res)
{
    const struct sac_value *v = sac_node_input(n, 1);
    int64_t                 axis = sac_attr_int(n, "axis", 0), entry;
    axis += axis < 0 ? s->rank : 0;
    if (!v || !v->data || v->rank != 0 || v->dtype != SAC_I64 || axis < FIRST || axis >= s->rank)
        return false;
    entry = *(const int64_t *)v->data;
    entry += entry < 0 ? s->dims[axis] : 0;
    struct sums part = *s;
    int64_t     inner = 1;
    for (int d = (int)axis + 1; d < s->rank; d++)
        inner *= part.dims[d - 1] = s->dims[d];
    part.rank--;
    if (entry < 0 || entry >= s->dims[axis] || !allocate(&part, res))
        return false;
    for (int64_t i = 0; i < part.count; i++) {
        const int64_t from = (i / inner * s->dims[axis] + entry) * inner + i % inner;
        memcpy(part.term + i * s->terms, s->term + from * s->terms,
               (size_t)s->terms * sizeof *s->term);
    }
    sac_free(s->term);
    *s = part;
    return true;
}

/* The place of number i of s among those that are left where some axes are summed up. */
static int64_t place_of(const struct sums *s, const bool *reduced, int64_t i)
{
    int64_t at = 0, step = 1;
    for (int d = s->rank - 1; d >= FIRST; d--) {
        if (!reduced[d]) {
            at += i % s->dims[d] * step;
            step *= s->dims[d];
        }
        i /= s->dims[d];
    }
    return at;
}

static bool reduce(struct sums *s, const struct sac_node *n, sac_result *res)
{
    bool        reduced[SAC_RANK_MAX];
    const bool  keeps = sac_attr_int(n, "keepdims", 1) != 0;
    struct sums mean = *s;
    int64_t     times = 1;
    if (!sac_reduce_axes(n, s->rank, reduced) || reduced[0] || reduced[1])
        return false;
    mean.rank = FIRST;
    for (int d = FIRST; d < s->rank; d++) {
        times *= reduced[d] ? s->dims[d] : 1;
        if (!reduced[d] || keeps)
            mean.dims[mean.rank++] = reduced[d] ? 1 : s->dims[d];
    }
    mean.terms *= times;
    int64_t *filled = sac_calloc((size_t)s->count, sizeof *filled);
    if (!filled || !allocate(&mean, res)) {
        *res = filled ? *res : SAC_ERR_MEMORY;
        sac_free(filled);
        return false;
    }
    for (int64_t i = 0; i < s->count; i++) {
        const int64_t to = place_of(s, reduced, i);
        for (int64_t t = 0; t < s->terms; t++) {
            struct term term = s->term[i * s->terms + t];
            term.factor /= sac_is(n, "ReduceMean") ? (float)times : 1;
            mean.term[to * mean.terms + filled[to]++] = term;
        }
    }
    sac_free(filled);
    sac_free(s->term);
    *s = mean;
    return true;
}

static bool same_dims(const struct sums *a, const struct sums *b)
{
    return a->x == b->x && a->rank == b->rank &&
           memcmp(a->dims + FIRST, b->dims + FIRST, (size_t)(a->rank - FIRST) * sizeof *a->dims) ==
               0;
}

/* s has its own terms, then those of more. */
static bool append(struct sums *s, const struct sums *more, sac_result *res)
{
    struct sums both = *s;
    both.terms += more->terms;
    if (!same_dims(s, more) || !allocate(&both, res))
        return false;
    for (int64_t i = 0; i < s->count; i++) {
        struct term *to = both.term + i * both.terms;
        memcpy(to, s->term + i * s->terms, (size_t)s->terms * sizeof *to);
        memcpy(to + s->terms, more->term + i * more->terms, (size_t)more->terms * sizeof *to);
    }
    sac_free(s->term);
    *s = both;
    return true;
}

static bool read_sums(struct sums *s, const struct sac_value *v, int depth, sac_result *res);

static bool read_step(struct sums *s, const struct sac_node *n, int depth, sac_result *res)
{
    const struct sac_value *a = n->inputs[0], *b = sac_node_input(n, 1), *c = sac_node_input(n, 2);
    if (sac_is(n, "Transpose"))
        return take_pixels(s, n, res);
    if (sac_is(n, "Gather"))
        return read_sums(s, a, depth, res) && select_entry(s, n, res);
    if (sac_is(n, "ReduceMean") || sac_is(n, "ReduceSum"))
        return read_sums(s, a, depth, res) && reduce(s, n, res);
    if (sac_is(n, "Div"))
        return b->data && read_sums(s, a, depth, res) && scale(s, n, b, true);
    if (sac_is(n, "Mul"))
        return (a->data || b->data) && read_sums(s, a->data ? b : a, depth, res) &&
               scale(s, n, a->data ? a : b, true);
    if (!sac_is(n, "Where") || !a->data)
        return false;
    return sac_is_number(b, 0)
               ? read_sums(s, c, depth, res) && scale(s, n, a, false)
               : sac_is_number(c, 0) && read_sums(s, b, depth, res) && scale(s, n, a, true);
}

/* The sums of a bin's entries are as deep as it has entries: so much is a loop. */
static bool read_sums(struct sums *s, const struct sac_value *v, int depth, sac_result *res)
{
    const struct sac_node *n = v->producer;
    struct sums            more = {.work = s->work};
    bool                   ok = depth > 0;
    for (; ok && sac_is(n, "Add") && n->output_count == 1; n = n->inputs[0]->producer) {
        struct sums one = {.work = s->work};
        ok = read_sums(&one, n->inputs[1], depth - 1, res);
        if (ok && more.term)
            ok = append(&more, &one, res);
        else if (ok)
            more = one, one.term = NULL;
        sac_free(one.term);
    }
    ok = ok && n && n->output_count == 1 && sac_node_input(n, 0) &&
         n->outputs[0]->dtype == SAC_F32 && read_step(s, n, depth - 1, res) &&
         (!more.term || append(s, &more, res));
    sac_free(more.term);
    return ok;
}

/* ---- what replaces them ---- */

/* [bins][pixels] */
static void fill_matrix(const struct sums *s, int64_t pixels, float *m)
{
    for (int64_t i = 0; i < s->count; i++)
        for (int64_t t = 0; t < s->terms; t++)
            m[i * pixels + s->term[i * s->terms + t].pixel] += s->term[i * s->terms + t].factor;
}

/* One dimension of a window: how long it is and how far the next one is. */
struct window {
    int64_t size, kernel, stride;
};

/* Of bins `step` apart in a matrix whose pixels along the dimension are `pixel` apart. */
static struct window window_of(const float *m, int64_t size, int64_t pixel, int64_t bins,
                               int64_t step)
{
    struct window w = {.size = size};
    while (w.kernel < size && m[w.kernel * pixel] != 0)
        w.kernel++;
    if (bins == 1)
        w.stride = w.kernel;
    while (bins > 1 && w.stride < size && m[w.stride * pixel + step] == 0)
        w.stride++;
    return w;
}

static bool inside(const struct window *w, int64_t bin, int64_t at)
{
    return at >= bin * w->stride && at < bin * w->stride + w->kernel;
}

/* Are these the means of windows? */
static bool are_windows(const struct sums *s, const float *m, struct window w[2])
{
    const int64_t rows = s->x->dims[2], columns = s->x->dims[3], wide = s->dims[FIRST + 1];
    w[0] = window_of(m, rows, columns, s->dims[FIRST], wide * rows * columns);
    w[1] = window_of(m, columns, 1, wide, rows * columns);
    for (int d = 0; d < 2; d++)
        if (w[d].kernel < 1 || w[d].stride < 1 ||
            (w[d].size - w[d].kernel) / w[d].stride + 1 != s->dims[FIRST + d])
            return false;
    const float mean = 1 / (float)(w[0].kernel * w[1].kernel);
    for (int64_t i = 0; i < rows * columns * s->count; i++) {
        const int64_t bin = i / (rows * columns), at = i % (rows * columns);
        const bool    in =
            inside(&w[0], bin / wide, at / columns) && inside(&w[1], bin % wide, at % columns);
        if (!(fabsf(m[i] - (in ? mean : 0)) <= 1e-6f * mean))
            return false;
    }
    return true;
}

static struct sac_value *pool(struct sac_graph *g, const struct sac_node *n, const struct sums *s,
                              const struct window w[2], sac_result *res)
{
    const int64_t     kernel[] = {w[0].kernel, w[1].kernel}, stride[] = {w[0].stride, w[1].stride};
    struct sac_value *y = sac_made_of(g, n, "AveragePool", 1, &s->x, res);
    if (y) {
        memcpy(y->dims + FIRST, s->dims + FIRST, 2 * sizeof *y->dims);
        *res = sac_node_set_ints(g, y->producer, "kernel_shape", kernel, SAC_COUNT(kernel));
    }
    if (*res == SAC_OK)
        *res = sac_node_set_ints(g, y->producer, "strides", stride, SAC_COUNT(stride));
    return *res == SAC_OK ? y : NULL;
}

/* A product from the left of pixels whose channels lie beside each other, as they do in maps. */
static struct sac_value *multiply(struct sac_graph *g, const struct sac_node *n,
                                  const struct sums *s, struct sac_value *matrix, sac_result *res)
{
    static const int64_t last[] = {0, 2, 3, 1}, first[] = {0, 3, 1, 2};
    const int64_t        batch = s->x->dims[0], channels = s->x->dims[1];
    const int64_t        flat[] = {batch, matrix->dims[1], channels};
    const int64_t        dims[] = {batch, s->dims[FIRST], s->dims[FIRST + 1], channels};
    struct sac_value    *y = sac_transposed(g, n, s->x, last, res);
    y = y ? sac_reshaped(g, n, y, 3, flat, res) : NULL;
    struct sac_value *in[] = {matrix, y};
    struct sac_value *product = y ? sac_made_of(g, n, "MatMul", 2, in, res) : NULL;
    if (product) {
        memcpy(product->dims, flat, sizeof flat);
        product->rank = 3;
        product->dims[1] = matrix->dims[0];
    }
    y = product ? sac_reshaped(g, n, product, 4, dims, res) : NULL;
    return y ? sac_transposed(g, n, y, first, res) : NULL;
}

static sac_result replace(struct sac_graph *g, struct sac_node *n, const struct sums *s,
                          bool *changed)
{
    const struct sac_value *out = n->outputs[0];
    const int64_t           dims[] = {s->count, s->x->dims[2] * s->x->dims[3]};
    sac_result              res = SAC_OK;
    struct window           w[2];
    float                  *m;
    struct sac_value       *matrix = sac_new_floats(g, "bins", 2, dims, &m);
    if (!matrix)
        return SAC_ERR_MEMORY;
    memset(m, 0, (size_t)(dims[0] * dims[1]) * sizeof *m);
    fill_matrix(s, dims[1], m);
    struct sac_value *y =
        are_windows(s, m, w) ? pool(g, n, s, w, &res) : multiply(g, n, s, matrix, &res);
    if (y && out->rank != s->rank)
        y = sac_reshaped(g, n, y, out->rank, out->dims, &res);
    *changed = y != NULL;
    return y ? sac_take_over(g, y->producer, n) : res;
}

/* Rows and columns of bins, without dims of one that a mean has kept. */
static bool take_rows_and_columns(struct sums *s)
{
    for (int d = s->rank - 1; d >= FIRST && s->rank > FIRST + 2; d--)
        if (s->dims[d] == 1) {
            memmove(s->dims + d, s->dims + d + 1, (size_t)(s->rank - d - 1) * sizeof *s->dims);
            s->rank--;
        }
    return s->rank == FIRST + 2;
}

/* The last step of a map of bins. */
static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    enum { DEPTH_MAX = 16 };
    int64_t                 work = WORK_MAX;
    struct sums             s = {.work = &work};
    sac_result              res = SAC_OK;
    const struct sac_value *y = n->output_count == 1 ? n->outputs[0] : NULL;
    if (!y || y->rank < FIRST + 2 || y->dtype != SAC_F32 || !sac_node_input(n, 0) ||
        !(sac_is(n, "Div") || sac_is(n, "Mul") || sac_is(n, "ReduceMean")))
        return SAC_OK;
    if (read_step(&s, n, DEPTH_MAX, &res) && take_rows_and_columns(&s) && s.x->dtype == SAC_F32 &&
        s.x->dims[2] * s.x->dims[3] <= TERMS_MAX / s.count)
        res = replace(g, n, &s, changed);
    sac_free(s.term);
    return res;
}

const struct sac_pass sac_pass_adaptive = {"adaptive", visit};
