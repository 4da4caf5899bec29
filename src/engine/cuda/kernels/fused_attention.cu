/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/kernels/bytes.cuh"
#include "engine/cuda/kernels/fused_attention.h"
#include "engine/cuda/kernels/team.cuh"
#ifdef __CUDACC__
#include "engine/cuda/kernels/attention_run.cuh"
#include "engine/cuda/kernels/hopper.cuh"
#endif

using namespace ops;

namespace
{

/* ---- any dtype: a team for a few queries of one head ---- */

struct by_type {
    static OPS_BODY float get(const void *p, int type, int64_t i)
    {
        return get_float(p, type, i);
    }
};
struct whole {
    static OPS_BODY float get(const void *p, int, int64_t i)
    {
        return ((const float *)p)[i];
    }
};

template <class READ> struct group_body {
    static constexpr int       GROUP = OPS_ATTENTION_GROUP;
    struct ops_fused_attention p;
    const void                *q, *k, *v, *mask, *row, *column;
    void                      *y;
    float                     *room;  /* [at_once][GROUP][keys] */
    int64_t                    first; /* group of this launch */

    static OPS_BODY int64_t start_of(const ops_head_view &view, int64_t batch, int64_t head)
    {
        return view.offset + batch * view.step[0] + head * view.step[1];
    }

    OPS_BODY float position_at(int64_t batch, int64_t head, int64_t i, int64_t j) const
    {
        int64_t of = divide((uint32_t)j, p.columns), in = j - of * p.columns.d;
        float   sum = 0;
        if (p.query_columns.d) {
            const int64_t above = divide((uint32_t)i, p.query_columns);
            of += p.row_from - above;
            in += p.column_from - (i - above * p.query_columns.d);
        }
        if (p.row_type)
            sum += get_float(row, p.row_type,
                             start_of(p.row, batch, head) + i * p.row.step[2] + of * p.row.step[3]);
        if (p.column_type)
            sum += get_float(column, p.column_type,
                             start_of(p.column, batch, head) + i * p.column.step[2] +
                                 in * p.column.step[3]);
        return sum;
    }

    OPS_BODY float bias_at(int64_t batch, int64_t head, int64_t i, int64_t j) const
    {
        if (p.rows)
            return position_at(batch, head, i, j);
        return get_float(mask, p.mask_type,
                         batch % p.period * p.mask_step[0] + head * p.mask_step[1] +
                             i * p.mask_step[2] + j * p.mask_step[3]);
    }

    /* The scores of key j; queries past the last repeat it. */
    OPS_BODY void scores_of(const int64_t (&query)[GROUP], int64_t key, float (&s)[GROUP]) const
    {
        OPS_UNROLL
        for (int n = 0; n < GROUP; n++)
            s[n] = 0;
        for (int64_t d = 0; d < p.size; d++) {
            const float x = READ::get(k, p.k_type, key + d * p.k.step[3]);
            OPS_UNROLL
            for (int n = 0; n < GROUP; n++)
                s[n] += READ::get(q, p.q_type, query[n] + d * p.q.step[3]) * x;
        }
    }

    OPS_BODY void put_result(int64_t at, float v) const
    {
        if (p.bytes.type)
            put_byte(p.bytes, y, at, v);
        else
            put_float(y, p.out_type, at, v);
    }

    template <class TEAM>
    OPS_BODY void mix(const float *score, const float (&share)[GROUP],
                      const int64_t (&query)[GROUP], int64_t values, int64_t result, int64_t i,
                      const TEAM &team) const
    {
        for (int64_t d = team.lane(); d < p.v_size; d += team.lanes()) {
            float sum[GROUP] = {};
            for (int64_t j = 0; j < p.keys; j++) {
                const float x = READ::get(v, p.v_type, values + j * p.v.step[2] + d * p.v.step[3]);
                OPS_UNROLL
                for (int n = 0; n < GROUP; n++)
                    sum[n] += score[n * p.keys + j] * x;
            }
            OPS_UNROLL
            for (int n = 0; n < GROUP; n++)
                if (i + n < p.queries)
                    put_result(
                        result + (i + n) * p.y.step[2] + d * p.y.step[3],
                        sum[n] * share[n] +
                            (p.residual ? READ::get(q, p.q_type, query[n] + d * p.q.step[3]) : 0));
        }
    }

    template <class TEAM> OPS_BODY void operator()(int64_t row, int, const TEAM &team) const
    {
        const int64_t groups = (p.queries + GROUP - 1) / GROUP, g = first + row,
                      i = g % groups * GROUP, head = g / groups % p.heads,
                      batch = g / groups / p.heads;
        float  *score = room + row * GROUP * p.keys;
        int64_t query[GROUP];
        float   max[GROUP], share[GROUP];
        OPS_UNROLL
        for (int n = 0; n < GROUP; n++) {
            const int64_t at = i + n < p.queries ? i + n : p.queries - 1;
            query[n] = start_of(p.q, batch, head) + at * p.q.step[2];
            max[n] = -INFINITY;
        }
        const int64_t keys = start_of(p.k, batch, head / p.group);
        for (int64_t j = team.lane(); j < p.keys; j += team.lanes()) {
            float s[GROUP];
            scores_of(query, keys + j * p.k.step[2], s);
            OPS_UNROLL
            for (int n = 0; n < GROUP; n++) {
                s[n] *= p.scale;
                if (p.period || p.rows)
                    s[n] += bias_at(batch, head, i + n < p.queries ? i + n : p.queries - 1, j);
                score[n * p.keys + j] = s[n];
                max[n] = larger<float>()(max[n], s[n]);
            }
        }
        OPS_UNROLL
        for (int n = 0; n < GROUP; n++) {
            float sum = 0;
            max[n] = team.all(max[n], larger<float>());
            for (int64_t j = team.lane(); j < p.keys; j += team.lanes()) {
                float &s = score[n * p.keys + j];
                sum += s = max[n] == -INFINITY ? 0 : expf(s - max[n]);
            }
            sum = team.all(sum, add<float>());
            share[n] = sum != 0 ? 1 / sum : 0;
        }
        team.sync();
        mix(score, share, query, start_of(p.v, batch, head / p.group), start_of(p.y, batch, head),
            i, team);
    }
};

/* As many groups at a time as have room for their scores. */
template <class READ>
int by_groups(const struct ops_fused_attention &p, const struct ops_ports *ports, void *stream)
{
    const int64_t groups =
        p.batch * p.heads * ((p.queries + OPS_ATTENTION_GROUP - 1) / OPS_ATTENTION_GROUP);
    int res = 0;
    for (int64_t first = 0; first < groups && res == 0; first += p.at_once) {
        const group_body<READ> body = {p,
                                       ports->in[0],
                                       ports->in[1],
                                       ports->in[2],
                                       ports->in[3],
                                       ports->in[4],
                                       ports->in[5],
                                       ports->out[0],
                                       (float *)ports->scratch,
                                       first};
        res = lines<WARPS>(body, OPS_TEAM_WARP,
                           groups - first < p.at_once ? groups - first : p.at_once, 1, stream);
    }
    return res;
}

/* ---- float16: tiles on the tensor cores ---- */

#ifdef __CUDACC__

bool can_tile(const struct ops_fused_attention &p, const struct ops_ports *ports)
{
    return p.q_piece && fits16(ports->in[0]) && fits16(ports->in[1]) && fits16(ports->in[2]) &&
           fits16(ports->out[0]);
}

#endif

} // namespace

extern "C" int ops_launch_fused_attention(const void *params, const struct ops_ports *ports,
                                          void *stream)
{
    struct ops_fused_attention p = *(const struct ops_fused_attention *)params;
#ifdef __CUDACC__
    if (can_tile(p, ports) && p.few)
        return by_few(p, ports, stream);
    if (can_tile(p, ports)) {
        if (p.hopper_shape.together && has_unit())
            p.shape = p.hopper_shape;
        return by_tiles(p, ports, stream);
    }
#endif
    const bool floats = p.q_type == SAC_F32 && p.k_type == SAC_F32 && p.v_type == SAC_F32;
    return floats ? by_groups<whole>(p, ports, stream) : by_groups<by_type>(p, ports, stream);
}
