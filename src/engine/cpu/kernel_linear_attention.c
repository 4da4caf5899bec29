/* SPDX-License-Identifier: Apache-2.0 */
/* LinearAttention, a head at a time: its state is the sum of products of parts of its tokens, which
 * stay in the L2 cache, and lies there while blocks of its tokens read it. All products are
 * pointwise convolutions whose weights are packed here (heads.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/cpu/heads.h"
#include "engine/cpu/map.h"
#include "engine/ops/reads.h"

enum {
    ROWS_MAX = 84,    /* tokens of a block: whole tiles of 14, 6 and 12 rows */
    PART_MAX = 512,   /* tokens of a part */
    FLOPS_PER_NS = 30 /* for cutting work into pieces only */
};

struct linear_state {
    struct sac_linear_attention a;
    struct sac_head_view        values;             /* with the tokens of a number side by side */
    struct sac_conv             part, last, answer; /* of a part of the tokens, the last; a block */
    float                      *bias;               /* zeros, of all */
    bool                        copies_keys;        /* they are not packed as they lie */
    bool                        has_gain;
    bool                        in_place, direct; /* rows are read, results written, likewise */
    int64_t                     units, tokens, parts, rows, kept; /* kept: tokens of the copy */
    int64_t                     room;                             /* floats of a piece */
    int                         pieces;
};

/* Memory of one piece. */
struct linear_room {
    float *weights, *values, *keys, *state, *query, *result, *over;
};

struct linear_job {
    const struct linear_state *s;
    const float               *a, *b, *c, *gain;
    float                     *y, *scratch;
};

static struct sac_kernel_offer linear_supports(struct sac_device                *dev,
                                               const struct sac_kernel_question *q)
{
    struct sac_kernel_offer     offer = sac_kernel_take(q);
    const struct sac_op_call   *c = q->call;
    struct sac_linear_attention a;
    struct sac_head_view        last;
    (void)dev;
    for (int i = 0; i < c->in_count; i++)
        offer.in_layout[i] = SAC_LAYOUT_PLAIN;
    offer.out_layout[0] = SAC_LAYOUT_PLAIN;
    if (sac_cpu_level() < SAC_CPU_AVX2 || sac_operand_elements(&c->out[0]) == 0 ||
        sac_linear_attention_read(c, &a) != SAC_OK || a.keys == 0)
        return sac_kernel_refuse("empty, or no AVX2");
    const struct sac_head_view *const view[] = {&a.a, &a.b, &a.c};
    for (int i = 0; i < 3; i++)
        offer.in_layout[i] = sac_head_layout(&c->in[i], view[i], q->in_layout[i], false);
    offer.writes_any = sac_head_view_last(&c->out[0], &a.y, &last);
    return offer;
}

static void linear_release(void *state)
{
    struct linear_state *s = state;
    if (s)
        sac_free(s->bias);
    sac_free(s);
}

/* ---- a plan ---- */

static void read_views(struct linear_state *s, const struct sac_kernel_plan *plan)
{
    const struct sac_op_call    *c = plan->call;
    struct sac_linear_attention *a = &s->a;
    struct sac_head_view *const  view[] = {&a->a, &a->b, &a->c};
    for (int i = 0; i < 3; i++)
        if (sac_layout_is_last(plan->in_layout[i]))
            sac_head_view_last(&c->in[i], view[i], view[i]);
    if (sac_layout_is_last(plan->out_layout[0]))
        sac_head_view_last(&c->out[0], &a->y, &a->y);
    s->values = sac_head_view_turned(&a->a);
    s->in_place = a->kind != SAC_LINEAR_RATIO && (a->c.step[3] == 1 || a->size == 1);
    s->direct = a->kind != SAC_LINEAR_RATIO && (a->y.step[3] == 1 || a->width == 1);
    s->has_gain = sac_op_has(c, 3);
    s->copies_keys = a->kind != SAC_LINEAR_SHARES || a->lengths;
}

static void cut(struct linear_state *s, const struct sac_device *dev)
{
    const struct sac_linear_attention *a = &s->a;
    s->units = a->batch * a->heads;
    s->parts = (a->keys + PART_MAX - 1) / PART_MAX;
    s->tokens = (a->keys + s->parts - 1) / s->parts;
    s->parts = (a->keys + s->tokens - 1) / s->tokens;
    s->kept = a->kind == SAC_LINEAR_TOKENS ? a->keys : s->tokens;
    const int64_t blocks = (a->queries + ROWS_MAX - 1) / ROWS_MAX;
    s->rows = (a->queries + blocks - 1) / blocks;
    s->pieces = sac_pieces(
        dev, s->units, 2 * s->units * a->size * a->width * (a->keys + a->queries) / FLOPS_PER_NS);
}

static struct sac_conv gather_conv(const struct sac_linear_attention *a, int64_t tokens)
{
    struct sac_conv v = sac_conv_product(a->width, tokens, a->size, a->width, a->size);
    v.residual = v.out;
    return v;
}

static bool make(struct linear_state *s, const struct sac_device *dev)
{
    const struct sac_linear_attention *a = &s->a;
    cut(s, dev);
    s->part = gather_conv(a, s->tokens);
    s->last = gather_conv(a, a->keys - (s->parts - 1) * s->tokens);
    s->answer =
        sac_conv_product(s->rows, a->size, a->width, s->rows, s->direct ? a->y.step[2] : a->width);
    s->answer.in.pixel = s->in_place ? a->c.step[2] : a->size;
    const int64_t most = SAC_MAX(s->part.group_bias, s->answer.group_bias);
    s->bias = sac_calloc((size_t)most, sizeof *s->bias);
    s->part.bias = s->last.bias = s->answer.bias = s->bias;
    s->room = SAC_MAX(s->part.group_weights, s->answer.group_weights) + a->width * s->tokens +
              (s->copies_keys ? s->kept * a->size : 0) + a->width * a->size +
              (s->in_place ? 0 : s->rows * a->size) + (s->direct ? 0 : s->rows * a->width) +
              a->size + a->width;
    s->room = (s->room + 31) / 16 * 16; /* whole cache lines */
    return s->bias != NULL;
}

static sac_result linear_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    struct linear_state *s = sac_new(struct linear_state);
    bool                 made = s && sac_linear_attention_read(plan->call, &s->a) == SAC_OK;
    if (made) {
        read_views(s, plan);
        made = make(s, dev);
    }
    if (!made) {
        linear_release(s);
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    }
    plan->scratch_bytes = (size_t)(s->pieces * s->room) * sizeof(float);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

static struct linear_room room_of(const struct linear_state *s, float *at)
{
    const struct sac_linear_attention *a = &s->a;
    struct linear_room                 r = {.weights = at};
    r.values = at + SAC_MAX(s->part.group_weights, s->answer.group_weights);
    r.keys = r.values + a->width * s->tokens;
    r.state = r.keys + (s->copies_keys ? s->kept * a->size : 0);
    r.query = r.state + a->width * a->size;
    r.result = r.query + (s->in_place ? 0 : s->rows * a->size);
    r.over = r.result + (s->direct ? 0 : s->rows * a->width);
    return r;
}

/* ---- the state of a head ---- */

static void rectify(float *v, int64_t count)
{
    const struct sac_activation relu = {.kind = SAC_ACT_RELU};
    SAC_SIMD_PICK(sac_map_activate)(&relu, v, v, count);
}

/* Adds to over[0..size) what the keys of a part, or their squares, sum up to, and to those behind
 * them the values' squares. */
static void add_up(const struct linear_state *s, const struct linear_room *r, const float *keys,
                   int64_t tokens)
{
    const struct sac_linear_attention *a = &s->a;
    double                             sum[SAC_LINEAR_SIZE_MAX];
    SAC_SIMD_PICK(sac_map_reduce_columns)
    (a->lengths ? SAC_REDUCTION_SQUARE : SAC_REDUCTION_SUM, keys, tokens, a->size, sum, a->size);
    for (int64_t j = 0; j < a->size; j++)
        r->over[j] += (float)sum[j];
    for (int64_t i = 0; a->lengths && i < a->width; i++)
        r->over[a->size + i] += (float)SAC_SIMD_PICK(sac_map_reduce)(
            SAC_REDUCTION_SQUARE, r->values + i * tokens, tokens);
}

/* Part of the tokens; `keys` are those of a kind that looks at all of them first. */
static void gather_part(const struct linear_state *s, int64_t part, const float *values,
                        const float *keys, const struct linear_room *r)
{
    const struct sac_linear_attention *a = &s->a;
    struct sac_conv                    v = part + 1 < s->parts ? s->part : s->last;
    const int64_t                      tokens = v.group_in_c, first = part * s->tokens;
    const float                       *from = keys + first * a->b.step[2];
    int64_t                            row = a->b.step[2], column = a->b.step[3];
    sac_head_load(&s->values, values + first * a->a.step[2], a->width, tokens, r->values);
    if (s->copies_keys) {
        if (a->kind == SAC_LINEAR_TOKENS)
            from = r->keys + first * a->size;
        else {
            sac_head_load(&a->b, from, tokens, a->size, r->keys);
            from = r->keys;
        }
        row = a->size, column = 1;
    }
    if (a->kind == SAC_LINEAR_RATIO)
        rectify(r->keys, tokens * a->size);
    if (a->kind == SAC_LINEAR_RATIO || a->lengths)
        add_up(s, r, from, tokens);
    sac_head_pack(&v, from, row, column, r->weights);
    v.weights = r->weights;
    v.residual_kind = part ? SAC_RESIDUAL_BEFORE : SAC_RESIDUAL_NONE;
    SAC_SIMD_PICK(sac_conv_rows)(&v, r->values, r->state, r->state, 0, 1);
}

static float over_length(float squares, float least)
{
    const float length = SAC_MAX(sqrtf(squares), least);
    return length > 0 ? 1 / length : 1;
}

static void settle_state(const struct sac_linear_attention *a, float gain,
                         const struct linear_room *r)
{
    for (int64_t k = 0; a->lengths && k < a->size + a->width; k++)
        r->over[k] = over_length(r->over[k], a->epsilon);
    for (int64_t i = 0; i < a->width; i++) {
        float      *row = r->state + i * a->size;
        const float factor = a->scale * gain * (a->lengths ? r->over[a->size + i] : 1);
        for (int64_t j = 0; factor != 1 && j < a->size; j++)
            row[j] *= factor;
        for (int64_t j = 0; a->lengths && j < a->size; j++)
            row[j] *= r->over[j];
    }
    if (a->kind == SAC_LINEAR_SHARES)
        SAC_SIMD_PICK(sac_map_softmax)(r->state, r->state, a->size, 1, a->width);
}

/* ---- what a head's tokens read of it ---- */

static void divide(const struct sac_linear_attention *a, const struct linear_room *r, int64_t rows)
{
    for (int64_t n = 0; n < rows; n++) {
        float over = a->epsilon;
        for (int64_t j = 0; j < a->size; j++)
            over += r->query[n * a->size + j] * r->over[j];
        for (int64_t i = 0; i < a->width; i++)
            r->result[n * a->width + i] /= over;
    }
}

static void answer_block(const struct linear_state *s, const float *c, float *y, int64_t rows,
                         const struct linear_room *r)
{
    const struct sac_linear_attention *a = &s->a;
    struct sac_conv                    v = s->answer;
    float                             *to = s->direct ? y : r->result;
    if (!s->in_place)
        sac_head_load(&a->c, c, rows, a->size, r->query);
    if (a->kind == SAC_LINEAR_RATIO)
        rectify(r->query, rows * a->size);
    v.weights = r->weights;
    v.last_w = rows;
    SAC_SIMD_PICK(sac_conv_rows)(&v, s->in_place ? c : r->query, NULL, to, 0, 1);
    if (a->kind == SAC_LINEAR_RATIO)
        divide(a, r, rows);
    if (!s->direct)
        sac_head_put(&a->y, to, rows, a->width, y);
}

static void run_head(const struct linear_job *j, int64_t unit, const struct linear_room *r)
{
    const struct linear_state         *s = j->s;
    const struct sac_linear_attention *a = &s->a;
    const int64_t                      b = unit / a->heads, h = unit % a->heads;
    const float *keys = j->b + sac_head_start(&a->b, b, h), *c = j->c + sac_head_start(&a->c, b, h);
    float       *y = j->y + sac_head_start(&a->y, b, h);
    memset(r->over, 0, (size_t)(a->size + a->width) * sizeof *r->over);
    if (a->kind == SAC_LINEAR_TOKENS) {
        sac_head_load(&a->b, keys, a->keys, a->size, r->keys);
        SAC_SIMD_PICK(sac_map_softmax)(r->keys, r->keys, a->keys, a->size, a->size);
    }
    for (int64_t part = 0; part < s->parts; part++)
        gather_part(s, part, j->a + sac_head_start(&a->a, b, h), keys, r);
    settle_state(a, j->gain ? j->gain[h * a->gain_step] : 1, r);
    sac_head_pack(&s->answer, r->state, 1, a->size, r->weights);
    for (int64_t n = 0; n < a->queries; n += s->rows)
        answer_block(s, c + n * a->c.step[2], y + n * a->y.step[2],
                     SAC_MIN(s->rows, a->queries - n), r);
}

static void run_piece(void *arg, int piece, int worker)
{
    const struct linear_job   *j = arg;
    const struct linear_state *s = j->s;
    const struct linear_room   r = room_of(s, j->scratch + piece * s->room);
    (void)worker;
    for (int64_t u = s->units * piece / s->pieces; u < s->units * (piece + 1) / s->pieces; u++)
        run_head(j, u, &r);
}

static sac_result linear_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                             void *scratch, struct sac_device_stream *stream)
{
    const struct linear_state *s = state;
    struct linear_job job = {s, in[0], in[1], in[2], s->has_gain ? in[3] : NULL, out[0], scratch};
    (void)stream;
    sac_worker_pool_run(dev->workers, s->pieces, run_piece, &job);
    return SAC_OK;
}

const struct sac_kernel sac_cpu_LinearAttention = {SAC_OP_LinearAttention, linear_supports,
                                                   linear_prepare, linear_run, linear_release};
