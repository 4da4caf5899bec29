/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, a team per query and head; RotaryEmbedding. The comments are
 * engine/ops/attention.c's. */
#include "engine/cuda/kernels/sequence.h"
#include "engine/cuda/kernels/team.cuh"

using namespace ops;

namespace
{

enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };

struct query {
    int64_t row, batch, head, i; /* row: of all heads' */
    int64_t kv;                  /* the head of its keys and values */
};

struct attention_body {
    struct ops_attention p;
    const void          *q, *k, *v, *mask, *past_key, *past_value;
    const int64_t       *valid;
    void                *y, *scores;
    float               *room; /* [rows][total] */

    /* Number d of key or value j of a head: cached ones first. */
    OPS_BODY float at_head(const ops_heads &h, const void *x, int type, const void *past,
                           int past_type, int64_t batch, int64_t head, int64_t j, int64_t d) const
    {
        if (j < p.past)
            return get_float(past, past_type, ((batch * h.count + head) * p.past + j) * h.size + d);
        return get_float(x, type,
                         batch * h.step[0] + head * h.step[1] + (j - p.past) * h.step[2] + d);
    }

    OPS_BODY float bias_at(int64_t batch, int64_t head, int64_t i, int64_t j) const
    {
        const int64_t length = p.has_valid ? valid[batch] : p.total;
        const int64_t offset = p.has_valid && !p.past_key_type ? length - p.q.length : p.past,
                      at = i + offset;
        if (j >= length || (p.causal && j > at) || (p.left >= 0 && at - j > p.left) ||
            (p.right >= 0 && j - at > p.right))
            return -INFINITY;
        if (!p.mask_type)
            return 0;
        if (j >= p.mask_dim[p.mask_rank - 1])
            return -INFINITY;
        const int64_t index[4] = {batch, head, i, j};
        int64_t       from = 0;
        OPS_UNROLL
        for (int d = 0; d < 4; d++) { /* mask_dim has leading ones */
            const int64_t dim = d < 4 - p.mask_rank ? 1 : p.mask_dim[d - (4 - p.mask_rank)];
            from = from * dim + (dim == 1 ? 0 : index[d]);
        }
        if (p.mask_type == SAC_BOOL)
            return ((const uint8_t *)mask)[from] ? 0 : -INFINITY;
        return get_float(mask, p.mask_type, from);
    }

    OPS_BODY void keep(int stage, int64_t row, int64_t j, float v) const
    {
        if (p.out_type[SCORES] && p.mode == stage)
            put_float(scores, p.out_type[SCORES], row * p.total + j, v);
    }

    OPS_BODY query query_of(int64_t row) const
    {
        const int64_t head = row / p.q.length % p.q.count;
        return {row, row / p.q.length / p.q.count, head, row % p.q.length, head / p.group};
    }

    /* What the query makes of key j, without its bias. */
    OPS_BODY float score_of(const query &at, int64_t j) const
    {
        const int64_t from = at.batch * p.q.step[0] + at.head * p.q.step[1] + at.i * p.q.step[2];
        float         s = 0;
        for (int64_t d = 0; d < p.q.size; d++)
            s += get_float(q, p.q_type, from + d) *
                 at_head(p.k, k, p.k_type, past_key, p.past_key_type, at.batch, at.kv, j, d);
        s *= (float)p.scale;
        keep(0, at.row, j, s);
        if (p.softcap > 0)
            s = tanhf(s / (float)p.softcap) * (float)p.softcap;
        keep(1, at.row, j, s);
        return s;
    }

    /* The values, each by its share of the scores. */
    template <class TEAM>
    OPS_BODY void mix(const query &at, const float *score, float inverse, const TEAM &team) const
    {
        const int64_t to =
            (p.flat ? (at.batch * p.q.length + at.i) * p.q.count + at.head : at.row) * p.v.size;
        for (int64_t d = team.lane(); d < p.v.size && p.out_type[Y]; d += team.lanes()) {
            float sum = 0;
            for (int64_t j = 0; j < p.total; j++)
                sum += score[j] * at_head(p.v, v, p.v_type, past_value, p.past_value_type, at.batch,
                                          at.kv, j, d);
            put_float(y, p.out_type[Y], to + d, sum * inverse);
        }
    }

    template <class TEAM> OPS_BODY void operator()(int64_t row, int, const TEAM &team) const
    {
        const query at = query_of(row);
        float      *score = room + row * p.total, max = -INFINITY, open = -INFINITY, sum = 0;
        for (int64_t j = team.lane(); j < p.total; j += team.lanes()) {
            const float own = score_of(at, j), bias = bias_at(at.batch, at.head, at.i, j),
                        s = own + bias;
            keep(2, row, j, s);
            score[j] = s;
            max = fmaxf(max, s);
            open = fmaxf(open, bias);
        }
        max = team.all(max, larger<float>());
        open = team.all(open, larger<float>());
        for (int64_t j = team.lane(); j < p.total; j += team.lanes())
            sum += score[j] = open == -INFINITY ? 0 : expf(score[j] - max);
        sum = team.all(sum, add<float>());
        const float inverse = sum != 0 ? 1 / sum : 1;
        for (int64_t j = team.lane(); j < p.total; j += team.lanes())
            keep(3, row, j, score[j] * inverse);
        team.sync();
        mix(at, score, inverse, team);
    }
};

/* Keys or values with the cache in front, [B,H,T,D]. */
struct present_body {
    struct ops_heads h;
    int64_t          past, total;
    int32_t          type, past_type, out_type;
    const void      *x, *cache;
    void            *out;
    OPS_BODY void    operator()(int64_t i) const
    {
        const int64_t d = i % h.size, j = i / h.size % total, head = i / h.size / total % h.count;
        const int64_t batch = i / h.size / total / h.count;
        const double  v =
            j < past
                 ? get_double(cache, past_type, ((batch * h.count + head) * past + j) * h.size + d)
                 : get_double(x, type,
                              batch * h.step[0] + head * h.step[1] + (j - past) * h.step[2] + d);
        put_float(out, out_type, i, v);
    }
};

struct rotary_body {
    struct ops_rotary p;
    const void       *in, *cosine, *sine;
    const int64_t    *position;
    void             *out;
    /* pairs that are rotated, then numbers that are copied */
    OPS_BODY void operator()(int64_t i) const
    {
        const int64_t half = p.turned / 2, items = p.x.size - half, k = i % items, row = i / items;
        const int64_t head = row % p.x.count, token = row / p.x.count;
        const int64_t at = token / p.x.length * p.x.step[0] + head * p.x.step[1] +
                           token % p.x.length * p.x.step[2];
        if (k >= half) {
            put_float(out, p.out_type, at + k + half, get_double(in, p.type, at + k + half));
            return;
        }
        int64_t angle = p.has_position ? position[token] : token;
        angle = angle < 0 ? 0 : angle < p.positions ? angle : p.positions - 1;
        const int64_t first = at + (p.interleaved ? 2 * k : k),
                      second = first + (p.interleaved ? 1 : half);
        const double c = get_double(cosine, p.cos_type, angle * half + k),
                     s = get_double(sine, p.sin_type, angle * half + k);
        const double a = get_double(in, p.type, first), b = get_double(in, p.type, second);
        put_float(out, p.out_type, first, c * a - s * b);
        put_float(out, p.out_type, second, s * a + c * b);
    }
};

int present(const struct ops_attention &p, const struct ops_heads &h, int output, int type,
            int past_type, const struct ops_ports *ports, void *stream)
{
    if (!p.out_type[output])
        return 0;
    present_body body = {h,
                         p.past,
                         p.total,
                         type,
                         past_type,
                         p.out_type[output],
                         ports->in[output],
                         ports->in[output + 3],
                         ports->out[output]};
    return each(body, h.batch * h.count * p.total * h.size, stream);
}

} // namespace

extern "C" int ops_launch_attention(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_attention *p = (const struct ops_attention *)params;
    attention_body              body = {*p,
                                        ports->in[0],
                                        ports->in[1],
                                        ports->in[2],
                                        ports->in[3],
                                        ports->in[4],
                                        ports->in[5],
                                        (const int64_t *)ports->in[6],
                                        ports->out[Y],
                                        ports->out[SCORES],
                                        (float *)ports->scratch};
    int                         res =
        lines<WARPS | BLOCKS>(body, p->team, p->q.batch * p->q.count * p->q.length, 1, stream);
    if (res == 0)
        res = present(*p, p->k, PRESENT_KEY, p->k_type, p->past_key_type, ports, stream);
    return res ? res
               : present(*p, p->v, PRESENT_VALUE, p->v_type, p->past_value_type, ports, stream);
}

extern "C" int ops_launch_rotary(const void *params, const struct ops_ports *ports, void *stream)
{
    rotary_body body = {
        *(const struct ops_rotary *)params, ports->in[0], ports->in[1], ports->in[2],
        (const int64_t *)ports->in[3],      ports->out[0]};
    const struct ops_rotary &p = body.p;
    return each(body, p.x.batch * p.x.length * p.x.count * (p.x.size - p.turned / 2), stream);
}
