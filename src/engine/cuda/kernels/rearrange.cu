/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/kernels/rearrange.h"
#include "engine/cuda/kernels/numbers.cuh"

using namespace ops;

namespace
{

/* Where index i of the output lies in each operand. */
struct found {
    int64_t to, from, added;
    bool    inside; /* else the source has nothing there */
};
template <int RINGS, bool ADDS> OPS_BODY found find(const ops_rearrange &p, bool units, int64_t i)
{
    int64_t at[2 + RINGS + ADDS];
    place(units ? p.units : p.view, i, at);
    found f = {at[0], at[1], ADDS ? at[1 + RINGS + ADDS] : 0, true};
    OPS_UNROLL
    for (int k = 0; k < RINGS; k++) {
        const ops_ring &r = p.ring[k];
        const int64_t   x = at[2 + k] < r.period ? at[2 + k] : at[2 + k] - r.period;
        const int64_t   outer = divide((uint32_t)x, r.inner), rest = x - outer * r.inner.d;
        f.inside = f.inside && x < r.size;
        f.from += outer * (units ? r.unit_stride : r.stride) +
                  rest * (units ? r.unit_inner_stride : r.inner_stride);
    }
    return f;
}

template <class UNIT, int RINGS> struct move_body {
    ops_rearrange p;
    bool          vector;
    UNIT         *to;
    const UNIT   *from;
    OPS_BODY void operator()(int64_t i) const
    {
        const found f = find<RINGS, false>(p, vector, i);
        UNIT        u = {};
        if (f.inside)
            u = from[f.from];
        to[f.to] = u;
    }
};

/* Numbers of another precision, or with something added. */
template <int RINGS, bool ADDS> struct add8_body {
    ops_rearrange p;
    void         *to;
    const void   *from, *added;
    OPS_BODY void operator()(int64_t i) const
    {
        const found f = find<RINGS, ADDS>(p, true, i);
        raw8        raw = {};
        float       x[LANES] = {}, r[LANES] = {};
        if (f.inside)
            raw = load8(from, p.in_type, f.from * LANES);
        if (ADDS)
            get8(added, p.add_type, f.added * LANES, r);
        floats_of(raw, p.in_type, x);
        OPS_UNROLL
        for (int k = 0; k < LANES; k++)
            r[k] += x[k];
        put8(to, p.out_type, f.to * LANES, r);
    }
};

template <int RINGS, bool ADDS> struct add_body {
    ops_rearrange p;
    void         *to;
    const void   *from, *added;
    OPS_BODY void operator()(int64_t i) const
    {
        const found f = find<RINGS, ADDS>(p, false, i);
        float       x = f.inside ? get_float(from, p.in_type, f.from) : 0;
        if (ADDS)
            x += get_float(added, p.add_type, f.added);
        put_float(to, p.out_type, f.to, x);
    }
};

template <int RINGS>
int launch_move(const ops_rearrange &p, const struct ops_ports *ports, bool vector, void *stream)
{
    const auto run = [&](auto unit) {
        using UNIT = decltype(unit);
        const move_body<UNIT, RINGS> body = {p, vector, (UNIT *)ports->out[0],
                                             (const UNIT *)ports->in[0]};
        return each(body, vector ? p.units.count : p.view.count, stream);
    };
    return vector ? run(bytes16()) : by_bytes((size_t)p.bytes, run);
}

template <int RINGS, bool ADDS>
int launch_add(const ops_rearrange &p, const struct ops_ports *ports, bool vector, void *stream)
{
    const void                  *added = ADDS ? ports->in[1] : NULL;
    const add8_body<RINGS, ADDS> eight = {p, ports->out[0], ports->in[0], added};
    const add_body<RINGS, ADDS>  one = {p, ports->out[0], ports->in[0], added};
    return vector ? each(eight, p.units.count, stream) : each(one, p.view.count, stream);
}

template <int RINGS> int launch(const ops_rearrange &p, const struct ops_ports *ports, void *stream)
{
    const bool vector = p.vector && fits16(ports->out[0]) && fits16(ports->in[0]) &&
                        (!p.adds || fits16(ports->in[1]));
    return p.moves  ? launch_move<RINGS>(p, ports, vector, stream)
           : p.adds ? launch_add<RINGS, true>(p, ports, vector, stream)
                    : launch_add<RINGS, false>(p, ports, vector, stream);
}

} // namespace

extern "C" int ops_launch_rearrange(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_rearrange &p = *(const struct ops_rearrange *)params;
    if (p.straight)
        return ops_launch_copies(&p.copy, ports, stream);
    switch (p.rings) {
    case 0: return launch<0>(p, ports, stream);
    case 1: return launch<1>(p, ports, stream);
    case 2: return launch<2>(p, ports, stream);
    default: return launch<3>(p, ports, stream);
    }
}
