/* SPDX-License-Identifier: Apache-2.0 */
/* DeformAttention (engine/ops/deform_attention.h): a thread for a piece of a head's numbers, side
 * by side in all operands; it goes through the head's points and finds shares as it goes, so that
 * what it reads of places and scores is read once. A pixel beyond the edge is read from the edge
 * with a weight of 0, so that no load waits for a decision. */
#include "engine/cuda/kernels/deform_attention.h"

#include "engine/cuda/kernels/numbers.cuh"

using namespace ops;

namespace
{

constexpr int64_t MANY = 1 << 16; /* threads that fill a card */

/* N numbers side by side, as floats. */
template <int N> OPS_BODY void get_piece(const void *p, int type, int64_t at, float (&v)[N])
{
    if constexpr (N == 8)
        get8(p, type, at, v);
    else if constexpr (N == 4)
        get4(p, type, at, v);
    else
        v[0] = get_float(p, type, at);
}
template <int N> OPS_BODY void put_piece(void *p, int type, int64_t at, const float (&v)[N])
{
    if constexpr (N == 8)
        put8(p, type, at, v);
    else if constexpr (N == 4)
        put4(p, type, at, v);
    else
        put_float(p, type, at, v[0]);
}

/* Two neighbours along a side, of weight 0 where nothing lies there. */
struct pair {
    int32_t at[2];
    float   weight[2];
};

OPS_BODY pair pair_at(float place, int32_t side)
{
    /* what lies beyond, or is no number, reads nothing */
    const float x = fminf(fmaxf(((place + 1) * (float)side - 1) / 2, -2.0f), (float)side + 1),
                first = floorf(x), share = x - first;
    const int32_t at = (int32_t)first;
    pair          p = {{at, at + 1}, {1 - share, share}};
    OPS_UNROLL
    for (int k = 0; k < 2; k++)
        if (p.at[k] < 0 || p.at[k] >= side) {
            p.at[k] = 0;
            p.weight[k] = 0;
        }
    return p;
}

template <int N> struct deform_attention_body {
    struct ops_deform_attention p;
    const void                 *v, *places, *w;
    void                       *y;

    /* sum += share times what lies at the place */
    OPS_BODY void add(const ops_deform_level &l, int64_t from, int64_t point, float share,
                      float (&sum)[N]) const
    {
        const pair x = pair_at(p.gain * get_float(places, p.p_type, 2 * point) + p.shift, l.width),
                   z = pair_at(p.gain * get_float(places, p.p_type, 2 * point + 1) + p.shift,
                               l.height);
        float at[4][N];
        OPS_UNROLL
        for (int k = 0; k < 4; k++)
            get_piece<N>(v, p.v_type,
                         from + l.start +
                             ((int64_t)z.at[k / 2] * l.width + x.at[k % 2]) * p.channels,
                         at[k]);
        OPS_UNROLL
        for (int k = 0; k < 4; k++) {
            const float weight = share * z.weight[k / 2] * x.weight[k % 2];
            OPS_UNROLL
            for (int j = 0; j < N; j++) /* what has no weight may be infinite */
                sum[j] += weight != 0 ? weight * at[k][j] : 0;
        }
    }

    OPS_BODY float largest(int64_t point) const
    {
        float max = -INFINITY;
        for (int k = 0; k < p.points; k++)
            max = fmaxf(max, get_float(w, p.w_type, point + k));
        return max;
    }

    OPS_BODY void operator()(int64_t i) const
    {
        const ops_divisor &pieces = p.pieces[N == 8 ? 0 : N == 4 ? 1 : 2];
        const uint32_t line = divide((uint32_t)i, pieces), piece = (uint32_t)i - line * pieces.d,
                       query = divide(line, p.heads), head = line - query * p.heads.d,
                       n = divide(query, p.queries);
        const int64_t at = (int64_t)head * p.size + piece * N, from = n * p.values + at;
        int64_t       point = (int64_t)line * p.points;
        const float   max = p.softmax ? largest(point) : 0;
        float         sum[N] = {0}, shares = p.softmax ? 0.0f : 1.0f;
        for (int k = 0; k < p.levels; k++)
            for (int left = p.level[k].points; left > 0; left--, point++) {
                float share = get_float(w, p.w_type, point);
                if (p.softmax)
                    shares += share = expf(share - max);
                add(p.level[k], from, point, share, sum);
            }
        OPS_UNROLL
        for (int j = 0; j < N; j++)
            sum[j] /= shares;
        put_piece<N>(y, p.out_type, (int64_t)query * p.channels + at, sum);
    }
};

template <int N>
int launch(const struct ops_deform_attention &p, const struct ops_ports *ports, void *stream)
{
    const deform_attention_body<N> body = {p, ports->in[0], ports->in[1], ports->in[2],
                                           ports->out[0]};
    return each(body, p.lines * (p.size / N), stream);
}

bool is_half_or_float(int type)
{
    return type == SAC_F16 || type == SAC_F32;
}

} // namespace

/* By fours where eights would leave most of the card idle. */
extern "C" int ops_launch_deform_attention(const void *params, const struct ops_ports *ports,
                                           void *stream)
{
    const struct ops_deform_attention &p = *(const struct ops_deform_attention *)params;
    const bool fits = is_half_or_float(p.v_type) && is_half_or_float(p.out_type) &&
                      fits16(ports->in[0]) && fits16(ports->out[0]);
    if (fits && p.size % 8 == 0 && p.lines * p.size / 8 >= MANY)
        return launch<8>(p, ports, stream);
    if (fits && p.size % 4 == 0)
        return launch<4>(p, ports, stream);
    return launch<1>(p, ports, stream);
}
