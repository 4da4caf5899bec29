/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: each letter is a dimension; the product of the inputs is summed over every letter that
 * the output does not have. */
#include <ctype.h>

#include "engine/ops/reads.h"
#include "engine/ops/util.h"

static sac_result bad_equation(const struct sac_op_call *c)
{
    return SAC_OP_FAIL(c, SAC_ERR_FORMAT, "equation '%s' does not fit the inputs",
                       sac_attr_string(c->node, "equation", ""));
}

/* Reads one term up to ',' , '-' or the end. ellipsis: how many dimensions "..." has. */
static const char *read_term(const char *s, int ellipsis, struct sac_term *t)
{
    t->count = 0;
    for (; *s && *s != ',' && *s != '-'; s++) {
        bool dots = strncmp(s, "...", 3) == 0;
        int  more = dots ? ellipsis : 1;
        if (*s == ' ')
            continue;
        if ((!dots && !isalpha((unsigned char)*s)) || more < 0 || t->count + more > SAC_RANK_MAX)
            return NULL;
        for (int k = more; k > 0; k--)
            t->labels[t->count++] = dots ? (char)k : *s;
        s += dots ? 2 : 0;
    }
    return s;
}

static int letters(const char *s)
{
    int n = 0;
    for (; *s && *s != ',' && *s != '-'; s++)
        n += isalpha((unsigned char)*s) != 0;
    return n;
}

static int find_label(const struct sac_einsum *e, char label)
{
    for (int i = 0; i < e->count; i++)
        if (e->labels[i] == label)
            return i;
    return -1;
}

static bool add_label(struct sac_einsum *e, char label)
{
    if (find_label(e, label) >= 0)
        return true;
    if (e->count == SAC_EINSUM_LABELS_MAX)
        return false;
    e->dims[e->count] = 1;
    e->labels[e->count++] = label;
    return true;
}

static int occurrences(const struct sac_einsum *e, int inputs, char label)
{
    int n = 0;
    for (int i = 0; i < inputs; i++)
        for (int k = 0; k < e->in[i].count; k++)
            n += e->in[i].labels[k] == label;
    return n;
}

/* Without "->": what "..." stands for, then the letters that occur once, in alphabetical order. */
static void implicit_output(struct sac_einsum *e, int inputs, int ellipsis)
{
    e->out.count = 0;
    for (int k = ellipsis; k > 0; k--)
        e->out.labels[e->out.count++] = (char)k;
    for (char label = 'A'; label <= 'z' && e->out.count < SAC_RANK_MAX; label++)
        if (isalpha((unsigned char)label) && occurrences(e, inputs, label) == 1)
            e->out.labels[e->out.count++] = label;
}

sac_result sac_einsum_parse(const struct sac_op_call *c, struct sac_einsum *e)
{
    const char *s = sac_attr_string(c->node, "equation", "");
    int         ellipsis = 0;
    e->count = 0;
    SAC_CHECK(c, c->in_count <= SAC_EINSUM_INPUTS_MAX, "%d inputs; at most %d", c->in_count,
              SAC_EINSUM_INPUTS_MAX);
    for (int i = 0; i < c->in_count; i++) {
        int dots = c->in[i].rank - letters(s);
        s = read_term(s, dots, &e->in[i]);
        if (!s || e->in[i].count != c->in[i].rank || (i + 1 < c->in_count ? *s != ',' : *s == ','))
            return bad_equation(c);
        ellipsis = SAC_MAX(ellipsis, dots);
        s += *s == ',';
    }
    if (s[0] != '-')
        implicit_output(e, c->in_count, ellipsis);
    else if (s[1] != '>' || !(s = read_term(s + 2, ellipsis, &e->out)) || *s)
        return bad_equation(c);
    for (int k = 0; k < e->out.count; k++)
        if (!occurrences(e, c->in_count, e->out.labels[k]) || !add_label(e, e->out.labels[k]) ||
            e->count != k + 1)
            return bad_equation(c);
    for (int i = 0; i < c->in_count; i++)
        for (int k = 0; k < e->in[i].count; k++) {
            if (!add_label(e, e->in[i].labels[k]))
                return bad_equation(c);
            int64_t *dim = &e->dims[find_label(e, e->in[i].labels[k])];
            if (*dim == 1)
                *dim = c->in[i].dims[k];
            else if (c->in[i].dims[k] != 1 && c->in[i].dims[k] != *dim)
                return bad_equation(c);
        }
    return SAC_OK;
}

static sac_result einsum_shape(struct sac_op_call *c)
{
    struct sac_einsum e;
    for (int i = 0; i < c->in_count; i++)
        SAC_CHECK(c, c->in[i].dtype == c->in[0].dtype && c->in[i].dtype != SAC_BOOL,
                  "inputs of dtypes %s and %s", sac_in_dtype(c, 0), sac_in_dtype(c, i));
    SAC_TRY(sac_einsum_parse(c, &e));
    return sac_shape_out(c, 0, c->in[0].dtype, e.out.count, e.dims);
}

/* A walk over all labels, with the offsets of each input and of the sum. */
static void walk_labels(struct sac_op_call *c, const struct sac_einsum *e, struct sac_walk *w)
{
    int64_t strides[SAC_EINSUM_LABELS_MAX], dense[SAC_RANK_MAX];
    sac_walk_init(w, e->count, e->dims);
    for (int i = 0; i < c->in_count; i++) {
        memset(strides, 0, sizeof strides);
        sac_dense_strides(c->in[i].rank, c->in[i].dims, dense);
        for (int k = 0; k < c->in[i].rank; k++) /* a repeated letter selects the diagonal */
            strides[find_label(e, e->in[i].labels[k])] += c->in[i].dims[k] == 1 ? 0 : dense[k];
        sac_walk_strides(w, 0, strides);
    }
    memset(strides, 0, sizeof strides);
    sac_dense_strides(e->out.count, e->dims, strides);
    sac_walk_strides(w, 0, strides);
    sac_walk_start(w);
}

/* sum[place] += product of the inputs, all along the walk. */
#define SUM_PRODUCTS(type)                                                            \
    static void sum_##type(struct sac_walk *w, int inputs, type *const *x, type *sum) \
    {                                                                                 \
        for (; w->run; sac_walk_next(w)) {                                            \
            type *to = sum + w->at[inputs];                                           \
            for (int64_t i = 0; i < w->run; i++) {                                    \
                type product = x[0][w->at[0] + i * w->step[0]];                       \
                for (int k = 1; k < inputs; k++)                                      \
                    product *= x[k][w->at[k] + i * w->step[k]];                       \
                to[i * w->step[inputs]] += product;                                   \
            }                                                                         \
        }                                                                             \
    }
SUM_PRODUCTS(double)
SUM_PRODUCTS(uint64_t) /* integers wrap */

static sac_result einsum_ref(struct sac_op_call *c)
{
    struct sac_einsum e;
    struct sac_walk   w;
    bool              floats = sac_dtype_is_float(c->in[0].dtype), ok = true;
    int64_t           n = sac_operand_elements(&c->out[0]);
    void             *x[SAC_EINSUM_INPUTS_MAX] = {NULL};
    SAC_TRY(sac_einsum_parse(c, &e));
    void *sum = sac_calloc((size_t)n, sizeof(double));
    for (int i = 0; i < c->in_count; i++) {
        int64_t count = sac_operand_elements(&c->in[i]);
        x[i] = sac_alloc((size_t)count * sizeof(double));
        ok = ok && x[i];
        if (x[i] && floats)
            sac_read_doubles(&c->in[i], 0, 1, count, x[i]);
        else if (x[i])
            sac_load(c->in[i].dtype, c->in[i].data, 0, 1, count, x[i]);
    }
    ok = ok && sum;
    walk_labels(c, &e, &w);
    if (ok && floats) {
        sum_double(&w, c->in_count, (double *const *)x, sum);
        sac_write_doubles(&c->out[0], 0, 1, n, sum);
    } else if (ok) {
        sum_uint64_t(&w, c->in_count, (uint64_t *const *)x, sum);
        sac_store(c->out[0].dtype, c->out[0].data, 0, n, sum);
    }
    for (int i = 0; i < c->in_count; i++)
        sac_free(x[i]);
    sac_free(sum);
    return ok ? SAC_OK : sac_op_no_memory(c);
}

const struct sac_op sac_row_Einsum = {SAC_ROW(Einsum, 12, 1, SAC_EINSUM_INPUTS_MAX, 1),
                                      SAC_TOLERANCE(1e-4f, 1e-4f), .shape = einsum_shape,
                                      .ref = einsum_ref};
