/* SPDX-License-Identifier: Apache-2.0 */
/* Attention: softmax(Q K' scale, capped, + masks) V, with grouped heads and a cache of keys and
 * values; and RotaryEmbedding, which rotates pairs of numbers by the angle of their position. */
#include <math.h>

#include "engine/ops/reads.h"
#include "engine/ops/util.h"

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, VALID_LENGTH, INPUTS };
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };

sac_result sac_read_heads(const struct sac_op_call *c, int input, const char *count,
                          struct sac_heads *h)
{
    const struct sac_operand *o = &c->in[input];
    SAC_CHECK(c, o->rank == c->in[Q].rank && (o->rank == 3 || o->rank == 4),
              "input %d of %d dimensions; have 3, 4", input, o->rank);
    SAC_CHECK(c, sac_dtype_is_float(o->dtype), "input %d of dtype %s", input,
              sac_in_dtype(c, input));
    h->batch = o->dims[0];
    if (o->rank == 4) {
        h->count = o->dims[1];
        h->length = o->dims[2];
        h->size = o->dims[3];
        h->step[2] = h->size;
        h->step[1] = h->length * h->size;
        h->step[0] = h->count * h->step[1];
        return SAC_OK;
    }
    h->count = sac_attr_int(c->node, count, 0);
    SAC_CHECK(c, h->count > 0 && o->dims[2] % h->count == 0, "'%s' is %lld for %lld numbers", count,
              (long long)h->count, (long long)o->dims[2]);
    h->length = o->dims[1];
    h->size = o->dims[2] / h->count;
    h->step[1] = h->size;
    h->step[2] = o->dims[2];
    h->step[0] = h->length * h->step[2];
    return SAC_OK;
}

static sac_result check_cache(const struct sac_op_call *c, const struct sac_attention *a)
{
    for (int i = PAST_KEY; i <= PAST_VALUE; i++) {
        const struct sac_operand *o = &c->in[i];
        const struct sac_heads   *h = i == PAST_KEY ? &a->k : &a->v;
        if (sac_op_has(c, i))
            SAC_CHECK(c,
                      o->rank == 4 && o->dims[0] == h->batch && o->dims[1] == h->count &&
                          o->dims[2] == a->past && o->dims[3] == h->size &&
                          o->dtype == c->in[K].dtype,
                      "cache %d does not fit keys and values", i);
    }
    SAC_CHECK(c, sac_op_has(c, PAST_KEY) == sac_op_has(c, PAST_VALUE),
              "a cache of only keys or only values");
    if (sac_op_has(c, VALID_LENGTH))
        SAC_CHECK(c,
                  c->in[VALID_LENGTH].rank == 1 && c->in[VALID_LENGTH].dims[0] == a->q.batch &&
                      c->in[VALID_LENGTH].dtype == SAC_I64,
                  "not one length for each of %lld samples", (long long)a->q.batch);
    return SAC_OK;
}

sac_result sac_attention_read(const struct sac_op_call *c, struct sac_attention *a)
{
    const struct sac_node *n = c->node;
    SAC_TRY(sac_read_heads(c, Q, "q_num_heads", &a->q));
    SAC_TRY(sac_read_heads(c, K, "kv_num_heads", &a->k));
    SAC_TRY(sac_read_heads(c, V, "kv_num_heads", &a->v));
    SAC_CHECK(c,
              a->k.batch == a->q.batch && a->v.batch == a->q.batch && a->k.size == a->q.size &&
                  a->v.count == a->k.count && a->v.length == a->k.length && a->k.count > 0 &&
                  a->q.count % a->k.count == 0,
              "queries, keys and values do not fit each other");
    a->past = sac_op_has(c, PAST_KEY) && c->in[PAST_KEY].rank == 4 ? c->in[PAST_KEY].dims[2] : 0;
    a->total = a->past + a->k.length;
    a->group = a->q.count / a->k.count;
    a->scale = sac_attr_float(n, "scale", (float)(1 / sqrt((double)SAC_MAX(a->q.size, 1))));
    a->softcap = sac_attr_float(n, "softcap", 0);
    a->causal = sac_attr_int(n, "is_causal", 0);
    a->left = sac_attr_int(n, "left_window_size", -1);
    a->right = sac_attr_int(n, "right_window_size", -1);
    a->mode = (int)sac_attr_int(n, "qk_matmul_output_mode", 0);
    return check_cache(c, a);
}

static sac_result attention_shape(struct sac_op_call *c)
{
    struct sac_attention a;
    SAC_TRY(sac_attention_read(c, &a));
    int64_t scores[4] = {a.q.batch, a.q.count, a.q.length, a.total};
    if (sac_op_has(c, MASK)) {
        struct sac_operand mask = c->in[MASK];
        int                rank = 4;
        int64_t            dims[SAC_RANK_MAX] = {scores[0], scores[1], scores[2], scores[3]};
        SAC_CHECK(c,
                  mask.rank >= 1 && mask.rank <= 4 && mask.dims[mask.rank - 1] <= a.total &&
                      (mask.dtype == SAC_BOOL || sac_dtype_is_float(mask.dtype)),
                  "mask of dtype %s", sac_in_dtype(c, MASK));
        mask.dims[mask.rank - 1] = a.total; /* a shorter mask is extended */
        SAC_CHECK(c,
                  sac_broadcast_dims(&rank, dims, mask.rank, mask.dims) && rank == 4 &&
                      memcmp(dims, scores, sizeof scores) == 0,
                  "the mask does not broadcast");
    }
    enum sac_dtype t = c->in[Q].dtype;
    int64_t        key[4] = {a.k.batch, a.k.count, a.total, a.k.size};
    int64_t        value[4] = {a.v.batch, a.v.count, a.total, a.v.size};
    int64_t        wide[4] = {a.q.batch, a.q.count, a.q.length, a.v.size};
    int64_t        flat[3] = {a.q.batch, a.q.length, a.q.count * a.v.size};
    SAC_TRY(sac_shape_out(c, Y, t, c->in[Q].rank, c->in[Q].rank == 4 ? wide : flat));
    SAC_TRY(sac_shape_out(c, PRESENT_KEY, c->in[K].dtype, 4, key));
    SAC_TRY(sac_shape_out(c, PRESENT_VALUE, c->in[V].dtype, 4, value));
    return sac_shape_out(c, SCORES, t, 4, scores);
}

/* Keys or values [B,H,T,D], the cache in front of the new ones; NULL: no memory. */
static double *joined(const struct sac_op_call *c, int input, int past, const struct sac_heads *h,
                      int64_t past_length)
{
    int64_t total = past_length + h->length;
    double *all = sac_alloc((size_t)(h->batch * h->count * total * h->size) * sizeof *all);
    for (int64_t i = 0; all && i < h->batch * h->count; i++) {
        double *to = all + i * total * h->size;
        int64_t from = i / h->count * h->step[0] + i % h->count * h->step[1];
        if (past_length)
            sac_read_doubles(&c->in[past], i * past_length * h->size, 1, past_length * h->size, to);
        to += past_length * h->size;
        for (int64_t t = 0; t < h->length; t++)
            sac_read_doubles(&c->in[input], from + t * h->step[2], 1, h->size, to + t * h->size);
    }
    return all;
}

/* The masks' addend to the score of query i and key j: 0, -inf or a number. */
static double bias_at(const struct sac_op_call *c, const struct sac_attention *a, int64_t batch,
                      int64_t head, int64_t i, int64_t j)
{
    const struct sac_operand *mask = &c->in[MASK];
    int64_t                   valid = a->total, offset = a->past;
    if (sac_op_has(c, VALID_LENGTH)) {
        valid = ((const int64_t *)c->in[VALID_LENGTH].data)[batch];
        offset = sac_op_has(c, PAST_KEY) ? a->past : valid - a->q.length;
    }
    int64_t at = i + offset;
    if (j >= valid || (a->causal && j > at) || (a->left >= 0 && at - j > a->left) ||
        (a->right >= 0 && j - at > a->right))
        return -INFINITY;
    if (!sac_op_has(c, MASK))
        return 0;
    int64_t index[4] = {batch, head, i, j}, from = 0;
    if (j >= mask->dims[mask->rank - 1]) /* a shorter mask is extended with -inf */
        return -INFINITY;
    for (int d = 0; d < mask->rank; d++)
        from = from * mask->dims[d] + (mask->dims[d] == 1 ? 0 : index[4 - mask->rank + d]);
    double v = sac_operand_get(mask, from);
    return mask->dtype == SAC_BOOL ? (v != 0 ? 0 : -INFINITY) : v;
}

/* Turns one row of scores into weights; a row with every key masked becomes zeros. */
static void softmax_row(double *x, const double *bias, int64_t n)
{
    double max = -INFINITY, open = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; j++) {
        max = fmax(max, x[j]);
        open = fmax(open, bias[j]);
    }
    for (int64_t j = 0; j < n; j++)
        sum += x[j] = open == -INFINITY ? 0 : exp(x[j] - max);
    for (int64_t j = 0; j < n && sum != 0; j++)
        x[j] /= sum;
}

struct rows {
    const double *q, *k, *v; /* one query; the keys and values of its head */
    double       *score, *bias;
};

static void put_scores(struct sac_op_call *c, const struct sac_attention *a, int stage, int64_t row,
                       const double *score)
{
    if (sac_op_wants(c, SCORES) && a->mode == stage)
        sac_write_doubles(&c->out[SCORES], row * a->total, 1, a->total, score);
}

static void attend(struct sac_op_call *c, const struct sac_attention *a, const struct rows *r,
                   int64_t batch, int64_t head, int64_t i, double *y)
{
    int64_t row = (batch * a->q.count + head) * a->q.length + i;
    for (int64_t j = 0; j < a->total; j++) {
        double sum = 0;
        for (int64_t d = 0; d < a->q.size; d++)
            sum += r->q[d] * r->k[j * a->q.size + d];
        r->score[j] = sum * a->scale;
    }
    put_scores(c, a, 0, row, r->score);
    for (int64_t j = 0; j < a->total && a->softcap > 0; j++)
        r->score[j] = tanh(r->score[j] / a->softcap) * a->softcap;
    put_scores(c, a, 1, row, r->score);
    for (int64_t j = 0; j < a->total; j++)
        r->score[j] += r->bias[j] = bias_at(c, a, batch, head, i, j);
    put_scores(c, a, 2, row, r->score);
    softmax_row(r->score, r->bias, a->total);
    put_scores(c, a, 3, row, r->score);
    for (int64_t d = 0; d < a->v.size; d++)
        y[d] = 0;
    for (int64_t j = 0; j < a->total; j++)
        for (int64_t d = 0; d < a->v.size; d++)
            y[d] += r->score[j] * r->v[j * a->v.size + d];
}

static void attend_all(struct sac_op_call *c, const struct sac_attention *a, const double *k,
                       const double *v, double *room)
{
    double     *q = room, *y = q + a->q.size;
    struct rows r = {.q = q, .score = y + a->v.size};
    r.bias = r.score + a->total;
    for (int64_t row = 0; row < a->q.batch * a->q.count * a->q.length; row++) {
        int64_t i = row % a->q.length, head = row / a->q.length % a->q.count;
        int64_t batch = row / a->q.length / a->q.count;
        int64_t kv = batch * a->k.count + head / a->group;
        sac_read_doubles(&c->in[Q], batch * a->q.step[0] + head * a->q.step[1] + i * a->q.step[2],
                         1, a->q.size, q);
        r.k = k + kv * a->total * a->k.size;
        r.v = v + kv * a->total * a->v.size;
        attend(c, a, &r, batch, head, i, y);
        int64_t to = c->in[Q].rank == 4 ? row : (batch * a->q.length + i) * a->q.count + head;
        if (sac_op_wants(c, Y))
            sac_write_doubles(&c->out[Y], to * a->v.size, 1, a->v.size, y);
    }
}

static sac_result attention_ref(struct sac_op_call *c)
{
    struct sac_attention a;
    SAC_TRY(sac_attention_read(c, &a));
    double *k = joined(c, K, PAST_KEY, &a.k, a.past), *v = joined(c, V, PAST_VALUE, &a.v, a.past);
    double *room = sac_alloc((size_t)(a.q.size + a.v.size + 2 * a.total) * sizeof *room);
    bool    ok = k && v && room;
    if (ok) {
        attend_all(c, &a, k, v, room);
        if (sac_op_wants(c, PRESENT_KEY))
            sac_write_doubles(&c->out[PRESENT_KEY], 0, 1,
                              sac_operand_elements(&c->out[PRESENT_KEY]), k);
        if (sac_op_wants(c, PRESENT_VALUE))
            sac_write_doubles(&c->out[PRESENT_VALUE], 0, 1,
                              sac_operand_elements(&c->out[PRESENT_VALUE]), v);
    }
    sac_free(k);
    sac_free(v);
    sac_free(room);
    return ok ? SAC_OK : sac_op_no_memory(c);
}

const struct sac_op sac_row_Attention = {SAC_ROW(Attention, 23, 3, INPUTS, 4),
                                         SAC_TOLERANCE(1e-4f, 1e-4f), .shape = attention_shape,
                                         .ref = attention_ref};

/* ---- RotaryEmbedding ---- */

sac_result sac_rotary_read(const struct sac_op_call *c, struct sac_rotary *r)
{
    SAC_TRY(sac_read_heads(c, 0, "num_heads", &r->x));
    r->turned = sac_attr_int(c->node, "rotary_embedding_dim", 0);
    if (r->turned == 0)
        r->turned = r->x.size;
    r->interleaved = sac_attr_int(c->node, "interleaved", 0);
    SAC_CHECK(c, r->turned > 0 && r->turned % 2 == 0 && r->turned <= r->x.size,
              "%lld of %lld numbers are to be rotated", (long long)r->turned, (long long)r->x.size);
    return SAC_OK;
}

static sac_result rotary_shape(struct sac_op_call *c)
{
    struct sac_rotary r;
    SAC_TRY(sac_rotary_read(c, &r));
    bool by_position = sac_op_has(c, 3);
    for (int i = 1; i < 3; i++) {
        const struct sac_operand *o = &c->in[i];
        SAC_CHECK(c,
                  sac_dtype_is_float(o->dtype) && o->rank == (by_position ? 2 : 3) &&
                      o->dims[o->rank - 1] == r.turned / 2 &&
                      (by_position || (o->dims[0] == r.x.batch && o->dims[1] == r.x.length)),
                  "angles %d do not fit the input", i);
    }
    SAC_CHECK(c, c->in[1].dims[0] == c->in[2].dims[0], "sines and cosines differ in number");
    if (by_position)
        SAC_CHECK(c,
                  c->in[3].dtype == SAC_I64 && c->in[3].rank == 2 &&
                      c->in[3].dims[0] == r.x.batch && c->in[3].dims[1] == r.x.length,
                  "not one position for each token");
    return sac_shape_same(c);
}

static sac_result rotary_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *out = &c->out[0];
    struct sac_rotary         r;
    SAC_TRY(sac_rotary_read(c, &r));
    if (out->data != in->data)
        memcpy(out->data, in->data, sac_operand_bytes(in));
    int64_t half = r.turned / 2;
    for (int64_t i = 0; i < r.x.batch * r.x.length * r.x.count; i++) {
        int64_t head = i % r.x.count, token = i / r.x.count; /* of all samples */
        int64_t at = token / r.x.length * r.x.step[0] + head * r.x.step[1] +
                     token % r.x.length * r.x.step[2];
        int64_t angle = sac_op_has(c, 3) ? ((const int64_t *)c->in[3].data)[token] : token;
        SAC_CHECK(c, !sac_op_has(c, 3) || (angle >= 0 && angle < c->in[1].dims[0]), "position %lld",
                  (long long)angle);
        for (int64_t k = 0; k < half; k++) {
            int64_t first = at + (r.interleaved ? 2 * k : k),
                    second = first + (r.interleaved ? 1 : half);
            double cosine = sac_operand_get(&c->in[1], angle * half + k);
            double sine = sac_operand_get(&c->in[2], angle * half + k);
            double a = sac_operand_get(in, first), b = sac_operand_get(in, second);
            sac_operand_set(out, first, cosine * a - sine * b);
            sac_operand_set(out, second, sine * a + cosine * b);
        }
    }
    return SAC_OK;
}

const struct sac_op sac_row_RotaryEmbedding = {SAC_ROW(RotaryEmbedding, 23, 3, 4, 1),
                                               SAC_TOLERANCE(1e-5f, 1e-5f), .shape = rotary_shape,
                                               .ref = rotary_ref};
