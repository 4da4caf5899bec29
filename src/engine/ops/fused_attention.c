/* SPDX-License-Identifier: Apache-2.0 */
/* FusedAttention, which engine/ops/fused.h defines: softmax(scale Q K^T + M) V of heads that are
 * read and written where they lie, where M may be made of numbers for rows and columns of keys. */
#include <math.h>
#include <string.h>

#include "engine/ops/quant.h"
#include "engine/ops/reads.h"
#include "engine/ops/util.h"

enum { Q, K, V, MASK, ROWS, COLUMNS };
enum { RELATIVE = 5 /* numbers of the attribute */ };

static sac_result read_mask(const struct sac_op_call *c, struct sac_fused_attention *a)
{
    const struct sac_operand *m = &c->in[MASK];
    const int64_t             scores[SAC_VIEW_RANK] = {0, a->heads, a->queries, a->keys};
    a->period = 0;
    if (!sac_op_has(c, MASK))
        return SAC_OK;
    SAC_CHECK(
        c, m->rank == SAC_VIEW_RANK && (m->dims[0] > 0 || a->batch == 0) && m->dims[3] == a->keys,
        "the mask is not [period, heads or 1, queries or 1, keys]");
    int64_t step = 1;
    for (int d = SAC_VIEW_RANK - 1; d >= 0; d--) {
        SAC_CHECK(c, d == 0 || m->dims[d] == 1 || m->dims[d] == scores[d],
                  "the mask has %lld where the scores have %lld", (long long)m->dims[d],
                  (long long)scores[d]);
        a->mask_step[d] = m->dims[d] == 1 ? 0 : step;
        step *= m->dims[d];
    }
    a->period = SAC_MAX(m->dims[0], 1); /* of no samples there may be no masks */
    return SAC_OK;
}

/* One part of relative positions: `count` numbers of each query. */
static sac_result read_part(const struct sac_op_call *c, int input, const char *name,
                            const struct sac_fused_attention *a, struct sac_head_view *part,
                            int64_t *count)
{
    SAC_TRY(sac_head_view_read(c, name, &c->in[input], part));
    SAC_CHECK(c,
              part->dim[0] == a->batch && part->dim[1] == a->heads && part->dim[2] == a->queries &&
                  part->dim[3] > 0,
              "view %s does not have numbers for each query", name);
    *count = part->dim[3];
    return SAC_OK;
}

/* Numbers for places relative to the query's: of all queries they are there. */
static sac_result read_relative(const struct sac_op_call *c, struct sac_fused_attention *a)
{
    const int64_t *from;
    const int64_t  row_numbers = a->rows, column_numbers = a->columns;
    const size_t   count = sac_attr_ints(c->node, "relative", &from);
    if (count == 0)
        return SAC_OK;
    SAC_CHECK(c, count == RELATIVE, "'relative' holds %zu numbers, not %d", count, RELATIVE);
    a->rows = from[0];
    a->columns = from[1];
    a->query_columns = from[2];
    a->row_from = from[3];
    a->column_from = from[4];
    SAC_CHECK(c, a->rows > 0 && a->columns > 0 && a->query_columns > 0,
              "'relative' has a map without rows or columns");
    const int64_t last = SAC_MAX(a->queries - 1, 0);
    SAC_CHECK(c,
              !a->by_row ||
                  (a->row_from >= last / a->query_columns && a->row_from <= row_numbers - a->rows),
              "a query has no number for a row of keys");
    SAC_CHECK(c,
              !a->by_column || (a->column_from >= SAC_MIN(last, a->query_columns - 1) &&
                                a->column_from <= column_numbers - a->columns),
              "a query has no number for a column of keys");
    return SAC_OK;
}

static sac_result read_positions(const struct sac_op_call *c, struct sac_fused_attention *a)
{
    a->by_row = sac_op_has(c, ROWS);
    a->by_column = sac_op_has(c, COLUMNS);
    a->rows = a->columns = a->query_columns = a->row_from = a->column_from = 0;
    a->row = a->column = (struct sac_head_view){0};
    if (!a->by_row && !a->by_column)
        return SAC_OK;
    SAC_CHECK(c, !a->period, "a mask and relative positions at once");
    if (a->by_row)
        SAC_TRY(read_part(c, ROWS, "rows", a, &a->row, &a->rows));
    if (a->by_column)
        SAC_TRY(read_part(c, COLUMNS, "columns", a, &a->column, &a->columns));
    SAC_TRY(read_relative(c, a));
    a->rows = a->rows ? a->rows : a->keys / a->columns;
    a->columns = a->columns ? a->columns : a->rows ? a->keys / a->rows : 0;
    SAC_CHECK(c, a->rows && a->keys % a->rows == 0 && a->keys / a->rows == a->columns,
              "%lld rows of %lld columns are not %lld keys", (long long)a->rows,
              (long long)a->columns, (long long)a->keys);
    return SAC_OK;
}

static sac_result read_group(const struct sac_op_call *c, struct sac_fused_attention *a)
{
    a->group = sac_attr_int(c->node, "group", 1);
    SAC_CHECK(c, a->group > 0 && a->q.dim[1] % a->group == 0,
              "%lld heads do not divide into groups of %lld", (long long)a->q.dim[1],
              (long long)a->group);
    SAC_CHECK(c, a->k.dim[1] == a->q.dim[1] / a->group && a->v.dim[1] == a->k.dim[1],
              "k and v do not have one head for each %lld of q", (long long)a->group);
    return SAC_OK;
}

/* The three inputs' views, which belong together. */
static sac_result read_inputs(const struct sac_op_call *c, struct sac_fused_attention *a)
{
    static const char *const name[] = {"q", "k", "v"};
    struct sac_head_view    *view[] = {&a->q, &a->k, &a->v};
    for (int i = 0; i < c->in_count; i++)
        SAC_CHECK(c, !c->in[i].present || c->in[i].dtype == SAC_F32,
                  "input %d of dtype %s, not float32", i, sac_in_dtype(c, i));
    for (int i = 0; i < 3; i++) {
        SAC_CHECK(c, sac_op_has(c, i), "input %d is missing", i);
        SAC_TRY(sac_head_view_read(c, name[i], &c->in[i], view[i]));
        SAC_CHECK(c, view[i]->dim[0] == a->q.dim[0], "view %s has other batches than q", name[i]);
    }
    SAC_TRY(read_group(c, a));
    SAC_CHECK(c, a->k.dim[3] == a->q.dim[3] && a->v.dim[2] == a->k.dim[2],
              "q, k and v do not fit together");
    SAC_CHECK(c, a->k.dim[2] > 0 && a->k.dim[3] > 0, "there are no keys");
    a->batch = a->q.dim[0];
    a->heads = a->q.dim[1];
    a->queries = a->q.dim[2];
    a->keys = a->k.dim[2];
    a->size = a->q.dim[3];
    a->v_size = a->v.dim[3];
    a->scale = sac_attr_float(c->node, "scale", 1);
    a->residual = sac_attr_int(c->node, "residual", 0) != 0;
    SAC_TRY(read_mask(c, a));
    SAC_CHECK(c, !a->residual || (!a->period && a->v_size == a->size),
              "q cannot be added beside a mask or to values of another size");
    return read_positions(c, a);
}

static sac_result read_output(const struct sac_op_call *c, struct sac_fused_attention *a)
{
    const int64_t dims[] = {a->batch, a->heads, a->queries, a->v_size};
    return sac_head_view_output(c, dims, &a->y);
}

sac_result sac_fused_attention_read(const struct sac_op_call *c, struct sac_fused_attention *a)
{
    SAC_TRY(read_inputs(c, a));
    return read_output(c, a);
}

static sac_result fused_attention_shape(struct sac_op_call *c)
{
    struct sac_fused_attention a;
    enum sac_dtype             dtype;
    SAC_TRY(read_inputs(c, &a));
    SAC_TRY(sac_quant_check_output(c, &dtype));
    const int64_t dims[] = {a.batch, a.heads, a.queries, a.v_size};
    SAC_TRY(sac_head_shape_out(c, dtype, dims));
    return read_output(c, &a);
}

/* A row of scores becomes shares; one in which every key is masked becomes zeros. */
static double softmax_row(double *score, int64_t count)
{
    double max = -INFINITY, sum = 0;
    for (int64_t j = 0; j < count; j++)
        max = score[j] > max || isnan(score[j]) ? score[j] : max;
    for (int64_t j = 0; j < count; j++)
        sum += score[j] = max == -INFINITY ? 0 : exp(score[j] - max);
    return sum == 0 ? 0 : 1 / sum;
}

int64_t sac_attention_row(const struct sac_fused_attention *a, int64_t b, int64_t h, int64_t query)
{
    const int64_t from = a->query_columns ? a->row_from - query / a->query_columns : 0;
    return sac_head_start(&a->row, b, h) + query * a->row.step[2] + from * a->row.step[3];
}

int64_t sac_attention_column(const struct sac_fused_attention *a, int64_t b, int64_t h,
                             int64_t query)
{
    const int64_t from = a->query_columns ? a->column_from - query % a->query_columns : 0;
    return sac_head_start(&a->column, b, h) + query * a->column.step[2] + from * a->column.step[3];
}

/* What relative positions add to the scores of query i. */
static void add_positions(const struct sac_op_call *c, const struct sac_fused_attention *a,
                          int64_t b, int64_t h, int64_t i, double *score)
{
    const float  *rows = c->in[ROWS].data, *columns = c->in[COLUMNS].data;
    const int64_t row = a->by_row ? sac_attention_row(a, b, h, i) : 0,
                  column = a->by_column ? sac_attention_column(a, b, h, i) : 0;
    for (int64_t j = 0; a->by_row && j < a->keys; j++)
        score[j] += rows[row + j / a->columns * a->row.step[3]];
    for (int64_t j = 0; a->by_column && j < a->keys; j++)
        score[j] += columns[column + j % a->columns * a->column.step[3]];
}

static void attend(const struct sac_op_call *c, const struct sac_fused_attention *a,
                   const struct sac_quant *bytes, int64_t b, int64_t h, int64_t i, double *score)
{
    const float  *q = (const float *)c->in[Q].data + sac_head_start(&a->q, b, h) + i * a->q.step[2];
    const float  *k = (const float *)c->in[K].data + sac_head_start(&a->k, b, h / a->group);
    const float  *v = (const float *)c->in[V].data + sac_head_start(&a->v, b, h / a->group);
    const int64_t y = sac_head_start(&a->y, b, h) + i * a->y.step[2];
    const float  *mask = a->period
                             ? (const float *)c->in[MASK].data + b % a->period * a->mask_step[0] +
                                  h * a->mask_step[1] + i * a->mask_step[2]
                             : NULL;
    for (int64_t j = 0; j < a->keys; j++) {
        double sum = 0;
        for (int64_t d = 0; d < a->size; d++)
            sum += (double)q[d * a->q.step[3]] * k[j * a->k.step[2] + d * a->k.step[3]];
        score[j] = sum * a->scale + (mask ? mask[j * a->mask_step[3]] : 0);
    }
    add_positions(c, a, b, h, i, score);
    const double share = softmax_row(score, a->keys);
    for (int64_t d = 0; d < a->v_size; d++) {
        double sum = 0;
        for (int64_t j = 0; j < a->keys; j++)
            sum += score[j] * v[j * a->v.step[2] + d * a->v.step[3]];
        const double own = a->residual ? q[d * a->q.step[3]] : 0;
        sac_quant_put(bytes, &c->out[0], y + d * a->y.step[3], (float)(sum * share + own));
    }
}

static sac_result fused_attention_ref(struct sac_op_call *c)
{
    struct sac_fused_attention a;
    const struct sac_quant     bytes = sac_quant_read(c->node);
    SAC_TRY(sac_fused_attention_read(c, &a));
    double *score = sac_alloc((size_t)a.keys * sizeof *score);
    if (!score)
        return sac_op_no_memory(c);
    for (int64_t b = 0; b < a.batch; b++)
        for (int64_t h = 0; h < a.heads; h++)
            for (int64_t i = 0; i < a.queries; i++)
                attend(c, &a, &bytes, b, h, i, score);
    sac_free(score);
    return SAC_OK;
}

static int64_t fused_attention_flops(const struct sac_op_call *c)
{
    struct sac_fused_attention a;
    if (sac_fused_attention_read(c, &a) != SAC_OK)
        return 0;
    return 2 * a.batch * a.heads * a.queries * a.keys * (a.size + a.v_size);
}

const struct sac_op sac_row_FusedAttention = {
    SAC_FUSED_ROW(FusedAttention, 3, 6), SAC_TOLERANCE(1e-4f, 1e-4f),
    .flags = SAC_OP_QUANTISES,           .shape = fused_attention_shape,
    .ref = fused_attention_ref,          .flops = fused_attention_flops};
