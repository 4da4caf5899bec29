/* SPDX-License-Identifier: Apache-2.0 */
/* FusedAttention: for a block of queries of one head, the scores of all keys, their softmax and the
 * values mixed by it, all of which stay in the L2 cache. Both products are pointwise convolutions,
 * as MatMul's are, whose weights are the head's keys and values, packed when a thread comes to that
 * head. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/cpu/heads.h"
#include "engine/cpu/map.h"
#include "engine/ops/quant.h"
#include "engine/ops/reads.h"
#include "engine/ops/util.h"

enum {
    ROWS_MAX = 84,        /* queries of a block: whole tiles of 14, 6 and 12 rows */
    ROWS_MIN = 12,        /* and of 6 */
    SCORES_MAX = 1 << 15, /* floats, a quarter of a usual L2 cache */
    FLOPS_PER_NS = 30     /* for cutting work into pieces only */
};

struct attention_state {
    struct sac_fused_attention a;
    struct sac_conv            scores, mix; /* of one block */
    float                     *bias;        /* zeros, of both */
    int64_t                    rows, blocks, units;
    int64_t                    room; /* floats of a piece */
    int                        pieces;
    struct sac_quant           bytes; /* what the result becomes, of y_dtype */
};

/* Memory of one piece. */
struct attention_room {
    float *keys, *values, *query, *score, *result, *column;
};

struct attention_job {
    const struct attention_state *s;
    const float                  *q, *k, *v, *mask, *row, *column;
    void                         *y;
    float                        *scratch;
};

/* Heads that are channels of a map are read where it lies channels last: there the numbers of a
 * head are neighbours. */
static bool is_of_map(const struct sac_operand *o, const struct sac_head_view *v,
                      struct sac_head_view *last)
{
    return v->step[3] != 1 && sac_head_view_last(o, v, last) && last->step[3] == 1;
}

static struct sac_kernel_offer attention_supports(struct sac_device                *dev,
                                                  const struct sac_kernel_question *q)
{
    struct sac_kernel_offer    offer = sac_kernel_take(q);
    const struct sac_op_call  *c = q->call;
    struct sac_fused_attention a;
    struct sac_head_view       last;
    (void)dev;
    for (int i = 0; i < c->in_count; i++)
        offer.in_layout[i] = SAC_LAYOUT_PLAIN;
    offer.out_layout[0] = SAC_LAYOUT_PLAIN;
    const bool                        readable = sac_fused_attention_read(c, &a) == SAC_OK;
    const struct sac_head_view *const view[] = {&a.q, &a.k, &a.v};
    for (int i = 0; readable && i < 3; i++)
        if (is_of_map(&c->in[i], view[i], &last))
            offer.in_layout[i] = SAC_LAYOUT_CHANNELS_LAST;
    if (sac_cpu_level() < SAC_CPU_AVX2 || sac_operand_elements(&c->out[0]) == 0)
        return sac_kernel_refuse("empty, or no AVX2");
    return offer;
}

static void attention_release(void *state)
{
    struct attention_state *s = state;
    if (s)
        sac_free(s->bias);
    sac_free(s);
}

/* The result goes straight to the output where its numbers are neighbours and stay as they are. */
static bool is_direct(const struct attention_state *s)
{
    return !s->a.residual && (s->a.y.step[3] == 1 || s->a.v_size == 1) &&
           s->bytes.y_dtype == SAC_F32;
}

static void cut(struct attention_state *s, const struct sac_device *dev)
{
    const struct sac_fused_attention *a = &s->a;
    const int64_t                     fit = SAC_CLAMP(SCORES_MAX / a->keys, ROWS_MIN, ROWS_MAX);
    s->blocks = (a->queries + fit - 1) / fit;
    s->rows = (a->queries + s->blocks - 1) / s->blocks;
    s->units = a->batch * a->heads * s->blocks;
    s->pieces = sac_pieces(dev, s->units,
                           2 * a->batch * a->heads * a->queries * a->keys * (a->size + a->v_size) /
                               FLOPS_PER_NS);
}

static sac_result attention_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    struct attention_state *s = sac_new(struct attention_state);
    if (!s || sac_fused_attention_read(plan->call, &s->a) != SAC_OK) {
        sac_free(s);
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    }
    const struct sac_fused_attention *a = &s->a;
    struct sac_head_view *const       view[] = {&s->a.q, &s->a.k, &s->a.v};
    for (int i = 0; i < 3; i++)
        if (sac_layout_is_last(plan->in_layout[i]))
            sac_head_view_last(&plan->call->in[i], view[i], view[i]);
    s->bytes = sac_quant_read(plan->call->node);
    cut(s, dev);
    s->scores = sac_conv_product(s->rows, a->size, a->keys, s->rows, a->keys);
    s->mix = sac_conv_product(s->rows, a->keys, a->v_size, s->rows,
                              is_direct(s) ? a->y.step[2] : a->v_size);
    s->bias = sac_calloc((size_t)SAC_MAX(s->scores.group_bias, s->mix.group_bias), sizeof *s->bias);
    if (!s->bias) {
        attention_release(s);
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    }
    s->scores.bias = s->mix.bias = s->bias;
    s->room = s->scores.group_weights + s->mix.group_weights +
              s->rows * (a->size + a->keys + a->v_size) + a->columns;
    s->room = (s->room + 31) / 16 * 16; /* whole cache lines */
    plan->scratch_bytes = (size_t)(s->pieces * s->room) * sizeof(float);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

/* ---- one head ---- */

/* head: of keys and values. */
static void pack_head(const struct attention_job *j, int64_t head, const struct attention_room *r)
{
    const struct sac_fused_attention *a = &j->s->a;
    const int64_t                     b = head / a->k.dim[1], h = head % a->k.dim[1];
    sac_head_pack(&j->s->scores, j->k + a->k.offset + b * a->k.step[0] + h * a->k.step[1],
                  a->k.step[3], a->k.step[2], r->keys);
    sac_head_pack(&j->s->mix, j->v + a->v.offset + b * a->v.step[0] + h * a->v.step[1],
                  a->v.step[2], a->v.step[3], r->values);
}

/* ---- one block of its queries ---- */

static void load_queries(const struct sac_fused_attention *a, const float *q, int64_t rows,
                         float *to)
{
    for (int64_t i = 0; i < rows; i++, q += a->q.step[2], to += a->size)
        for (int64_t d = 0; d < a->size; d++)
            to[d] = q[d * a->q.step[3]] * a->scale;
}

static bool is_masked(const float *score, int64_t count)
{
    for (int64_t j = 0; j < count; j++)
        if (score[j] != -INFINITY)
            return false;
    return true;
}

static void add_mask(const struct sac_fused_attention *a, const float *mask, int64_t rows,
                     float *score)
{
    for (int64_t i = 0; i < rows; i++, score += a->keys, mask += a->mask_step[2]) {
        if (a->mask_step[3])
            SAC_SIMD_PICK(sac_map_binary)(SAC_BINARY_ADD, score, mask, 0, score, a->keys);
        else
            score[0] += mask[0]; /* of the one key there is */
        if (is_masked(score, a->keys))
            memset(score, 0, (size_t)a->keys * sizeof *score);
        else
            SAC_SIMD_PICK(sac_map_softmax)(score, score, a->keys, 1, 1);
    }
}

/* Relative positions of a query: all keys of a row of them get the row's number, and each its
 * column's. */
static void add_position(const struct sac_fused_attention *a, const float *row, const float *column,
                         float *room, float *score)
{
    for (int64_t c = 0; c < a->columns; c++)
        room[c] = column ? column[c * a->column.step[3]] : 0;
    for (int64_t r = 0; r < a->rows; r++, score += a->columns) {
        const float of_row = row ? row[r * a->row.step[3]] : 0;
        for (int64_t c = 0; c < a->columns; c++)
            score[c] += of_row + room[c];
    }
}

static void add_positions(const struct attention_job *j, int64_t head, int64_t first, int64_t rows,
                          const struct attention_room *r)
{
    const struct sac_fused_attention *a = &j->s->a;
    const int64_t                     b = head / a->heads, h = head % a->heads;
    for (int64_t i = 0; a->rows && i < rows; i++) {
        const int64_t query = first + i;
        add_position(a, a->by_row ? j->row + sac_attention_row(a, b, h, query) : NULL,
                     a->by_column ? j->column + sac_attention_column(a, b, h, query) : NULL,
                     r->column, r->score + i * a->keys);
    }
}

/* Rows of results to where they lie, as numbers or as bytes. */
static void put_rows(const struct attention_state *s, const struct attention_room *r, void *y,
                     int64_t at, int64_t rows)
{
    const struct sac_fused_attention *a = &s->a;
    const float                      *x = r->result;
    for (int64_t i = 0; i < rows; i++, x += a->v_size, at += a->y.step[2]) {
        if (s->bytes.y_dtype == SAC_F32)
            for (int64_t d = 0; d < a->v_size; d++)
                ((float *)y)[at + d * a->y.step[3]] = x[d];
        else if (a->y.step[3] == 1)
            sac_make_bytes(&s->bytes, x, (uint8_t *)y + at, a->v_size);
        else
            for (int64_t d = 0; d < a->v_size; d++)
                sac_make_bytes(&s->bytes, x + d, (uint8_t *)y + at + d * a->y.step[3], 1);
    }
}

static void add_queries(const struct sac_fused_attention *a, const float *q, int64_t rows,
                        float *to)
{
    for (int64_t i = 0; i < rows; i++, q += a->q.step[2], to += a->v_size)
        for (int64_t d = 0; d < a->v_size; d++)
            to[d] += q[d * a->q.step[3]];
}

/* at: of the first number of the first row; q: of its query. */
static void mix(const struct attention_job *j, const struct attention_room *r, const float *q,
                int64_t at, int64_t rows)
{
    const struct attention_state *s = j->s;
    const bool                    direct = is_direct(s);
    struct sac_conv               v = s->mix;
    v.weights = r->values;
    v.last_w = rows;
    SAC_SIMD_PICK(sac_conv_rows)
    (&v, r->score, NULL, direct ? (float *)j->y + at : r->result, 0, 1);
    if (s->a.residual)
        add_queries(&s->a, q, rows, r->result);
    if (!direct)
        put_rows(s, r, j->y, at, rows);
}

static void run_block(const struct attention_job *j, int64_t head, int64_t block,
                      const struct attention_room *r)
{
    const struct attention_state     *s = j->s;
    const struct sac_fused_attention *a = &s->a;
    const int64_t   b = head / a->heads, h = head % a->heads, first = block * s->rows;
    const int64_t   rows = SAC_MIN(s->rows, a->queries - first);
    const float    *q = j->q + sac_head_start(&a->q, b, h) + first * a->q.step[2];
    struct sac_conv v = s->scores;
    load_queries(a, q, rows, r->query);
    v.weights = r->keys;
    v.last_w = rows;
    SAC_SIMD_PICK(sac_conv_rows)(&v, r->query, NULL, r->score, 0, 1);
    add_positions(j, head, first, rows, r);
    if (a->period)
        add_mask(a,
                 j->mask + b % a->period * a->mask_step[0] + h * a->mask_step[1] +
                     first * a->mask_step[2],
                 rows, r->score);
    else
        SAC_SIMD_PICK(sac_map_softmax)(r->score, r->score, a->keys, 1, rows);
    mix(j, r, q, sac_head_start(&a->y, b, h) + first * a->y.step[2], rows);
}

static void run_piece(void *arg, int piece, int worker)
{
    const struct attention_job   *j = arg;
    const struct attention_state *s = j->s;
    struct attention_room         r = {.keys = j->scratch + piece * s->room};
    int64_t                       packed = -1;
    (void)worker;
    r.values = r.keys + s->scores.group_weights;
    r.query = r.values + s->mix.group_weights;
    r.score = r.query + s->rows * s->a.size;
    r.result = r.score + s->rows * s->a.keys;
    r.column = r.result + s->rows * s->a.v_size;
    for (int64_t u = s->units * piece / s->pieces; u < s->units * (piece + 1) / s->pieces; u++) {
        const int64_t head = u / s->blocks, of = head / s->a.group;
        if (of != packed)
            pack_head(j, of, &r);
        packed = of;
        run_block(j, head, u % s->blocks, &r);
    }
}

static sac_result attention_run(struct sac_device *dev, void *state, void *const *in,
                                void *const *out, void *scratch, struct sac_device_stream *stream)
{
    const struct attention_state *s = state;
    struct attention_job          job = {.s = s,
                                         .q = in[0],
                                         .k = in[1],
                                         .v = in[2],
                                         .mask = s->a.period ? in[3] : NULL,
                                         .row = s->a.by_row ? in[4] : NULL,
                                         .column = s->a.by_column ? in[5] : NULL,
                                         .y = out[0],
                                         .scratch = scratch};
    (void)stream;
    sac_worker_pool_run(dev->workers, s->pieces, run_piece, &job);
    return SAC_OK;
}

const struct sac_kernel sac_cpu_FusedAttention = {
    SAC_OP_FusedAttention, attention_supports, attention_prepare, attention_run, attention_release};
