/* SPDX-License-Identifier: Apache-2.0 */
/* FusedRotary: see fused_rotary.h. */
#include "engine/cuda/kernels/fused_rotary.h"
#include "engine/cuda/kernels/numbers.cuh"

using namespace ops;

namespace
{

struct operands {
    const void *x, *cosine, *sine;
    void       *y;
};

struct pair_body {
    ops_fused_rotary p;
    operands         o;
    OPS_BODY void    operator()(int64_t i) const
    {
        int64_t at[4];
        place(p.pairs, i, at);
        const int64_t x_step = p.x_step, half = p.half;
        const float   a = get_float(o.x, p.type[1], at[1]),
                    b = get_float(o.x, p.type[1], at[1] + half * x_step);
        const float first = a * get_float(o.cosine, p.type[2], at[2]) -
                            b * get_float(o.sine, p.type[3], at[3]),
                    second = b * get_float(o.cosine, p.type[2], at[2] + half) +
                             a * get_float(o.sine, p.type[3], at[3] + half);
        put_float(o.y, p.type[0], at[0], first);
        put_float(o.y, p.type[0], at[0] + half, second);
    }
};

/* y = x c + other s, where s is taken off in the first numbers of pairs. */
OPS_BODY void turn8(const float (&x)[LANES], const float (&other)[LANES], const float (&c)[LANES],
                    const float (&s)[LANES], bool first, float (&y)[LANES])
{
    OPS_UNROLL
    for (int k = 0; k < LANES; k++)
        y[k] = x[k] * c[k] + (first ? -other[k] : other[k]) * s[k];
}

/* Eight pairs, whose second numbers lie `half` behind the first. All loads come before what uses
 * them. */
struct apart_body {
    ops_fused_rotary p;
    operands         o;
    OPS_BODY void    operator()(int64_t i) const
    {
        int64_t at[4];
        raw8    x[2], c[2], s[2];
        float   a[LANES], b[LANES], cosine[LANES], sine[LANES], y[LANES];
        place(p.units, i, at);
        OPS_UNROLL
        for (int k = 0; k < 2; k++) {
            x[k] = load8(o.x, p.type[1], at[1] * LANES + k * p.half);
            c[k] = load8(o.cosine, p.type[2], at[2] * LANES + k * p.half);
            s[k] = load8(o.sine, p.type[3], at[3] * LANES + k * p.half);
        }
        floats_of(x[0], p.type[1], a);
        floats_of(x[1], p.type[1], b);
        floats_of(c[0], p.type[2], cosine);
        floats_of(s[0], p.type[3], sine);
        turn8(a, b, cosine, sine, true, y);
        put8(o.y, p.type[0], at[0] * LANES, y);
        floats_of(c[1], p.type[2], cosine);
        floats_of(s[1], p.type[3], sine);
        turn8(b, a, cosine, sine, false, y);
        put8(o.y, p.type[0], at[0] * LANES + p.half, y);
    }
};

/* Eight numbers that are four pairs, HALF apart. */
template <int HALF> struct within_body {
    ops_fused_rotary p;
    operands         o;
    OPS_BODY void    operator()(int64_t i) const
    {
        int64_t at[4];
        float   x[LANES], cosine[LANES], sine[LANES], y[LANES];
        place(p.units, i, at);
        const raw8 raw = load8(o.x, p.type[1], at[1] * LANES),
                   c = load8(o.cosine, p.type[2], at[2] * LANES),
                   s = load8(o.sine, p.type[3], at[3] * LANES);
        floats_of(raw, p.type[1], x);
        floats_of(c, p.type[2], cosine);
        floats_of(s, p.type[3], sine);
        OPS_UNROLL
        for (int k = 0; k < LANES; k++)
            y[k] = x[k] * cosine[k] + (k & HALF ? x[k ^ HALF] : -x[k ^ HALF]) * sine[k];
        put8(o.y, p.type[0], at[0] * LANES, y);
    }
};

template <int HALF> int launch_within(const ops_fused_rotary &p, const operands &o, void *stream)
{
    const within_body<HALF> body = {p, o};
    return each(body, p.units.count, stream);
}

} // namespace

extern "C" int ops_launch_fused_rotary(const void *params, const struct ops_ports *ports,
                                       void *stream)
{
    const ops_fused_rotary &p = *(const ops_fused_rotary *)params;
    const operands          o = {ports->in[0], ports->in[1], ports->in[2], ports->out[0]};
    if (!p.vector || !fits16(o.x) || !fits16(o.cosine) || !fits16(o.sine) || !fits16(o.y)) {
        const pair_body body = {p, o};
        return each(body, p.pairs.count, stream);
    }
    switch (p.within) {
    case 1: return launch_within<1>(p, o, stream);
    case 2: return launch_within<2>(p, o, stream);
    case 4: return launch_within<4>(p, o, stream);
    default: {
        const apart_body body = {p, o};
        return each(body, p.units.count, stream);
    }
    }
}
