/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, LogSoftmax, Hardmax. T: float, or double for float64. */
#include "engine/cuda/kernels/held.cuh"

using namespace ops;

namespace
{

template <class T> struct softmax_body {
    struct ops_softmax p;
    const void        *in;
    void              *out;

    OPS_BODY T read(int64_t start, int64_t j) const
    {
        const struct ops_view &v = p.lines.inner;
        return floats<T>::get(in, p.in_type,
                              start + (v.rank == 1 ? j * v.step[0][0] : place_of(v, j)));
    }
    OPS_BODY void write(int64_t start, int64_t j, T v) const
    {
        int64_t at[2];
        place(p.lines.inner, j, at);
        put_float(out, p.out_type, start + at[1], v);
    }

    template <class TEAM> OPS_BODY void hardmax(int64_t *at, T max, const TEAM &team) const
    {
        const int64_t n = p.lines.inner.count;
        int64_t       first = n;
        for (int64_t j = team.lane(); j < n && first == n; j += team.lanes())
            first = read(at[0], j) == max ? j : n;
        first = team.all(first, smaller<int64_t>());
        for (int64_t j = team.lane(); j < n; j += team.lanes())
            write(at[1], j, (T)(j == first));
    }

    template <class TEAM> OPS_BODY void operator()(int64_t row, int, const TEAM &team) const
    {
        const int64_t n = p.lines.inner.count;
        int64_t       at[2];
        T             max = -INFINITY, sum = 0;
        place(p.lines.outer, row, at);
        for (int64_t j = team.lane(); j < n; j += team.lanes())
            max = fmax(max, read(at[0], j));
        max = team.all(max, larger<T>());
        if (p.kind == OPS_HARDMAX) {
            hardmax(at, max, team);
            return;
        }
        for (int64_t j = team.lane(); j < n; j += team.lanes())
            sum += exp(read(at[0], j) - max);
        sum = team.all(sum, add<T>());
        const T inverse = 1 / sum, shift = max + log(sum);
        for (int64_t j = team.lane(); j < n; j += team.lanes()) {
            const T x = read(at[0], j);
            write(at[1], j, p.kind == OPS_SOFTMAX ? exp(x - max) * inverse : x - shift);
        }
    }
};

/* The same for Softmax and LogSoftmax of a line in registers. */
template <class WAY> struct held_softmax_body {
    struct ops_softmax                  p;
    const void                         *in;
    void                               *out;
    template <class TEAM> OPS_BODY void operator()(int64_t row, int, const TEAM &team) const
    {
        held<WAY, TEAM> x(team, p.lines.inner.count);
        float           max = -INFINITY;
        int64_t         at[2];
        place(p.lines.outer, row, at);
        x.read(in, p.in_type, at[0], -INFINITY);
        OPS_UNROLL
        for (int e = 0; e < x.COUNT; e++)
            max = fmaxf(max, x.v[e]);
        max = team.all(max, larger<float>());
        if (p.kind == OPS_SOFTMAX) {
            OPS_UNROLL
            for (int e = 0; e < x.COUNT; e++)
                x.v[e] = expf(x.v[e] - max);
            const float inverse = 1 / x.sum(team, same());
            OPS_UNROLL
            for (int e = 0; e < x.COUNT; e++)
                x.v[e] *= inverse;
        } else {
            const float shift = max + logf(x.sum(team, exponential{max}));
            OPS_UNROLL
            for (int e = 0; e < x.COUNT; e++)
                x.v[e] -= shift;
        }
        x.write(out, p.out_type, at[1]);
    }
    struct same {
        OPS_BODY float operator()(float v) const
        {
            return v;
        }
    };
    struct exponential {
        float          max;
        OPS_BODY float operator()(float v) const
        {
            return expf(v - max);
        }
    };
};

int run_held(const struct ops_softmax &p, const struct ops_ports *ports, void *stream)
{
    const bool fits = fits16(ports->in[0]) && fits16(ports->out[0]);
    return held_lines(p.lines, fits, stream, [&](auto way) {
        return held_softmax_body<decltype(way)>{p, ports->in[0], ports->out[0]};
    });
}

template <class T> int run(const struct ops_softmax &p, const struct ops_ports *ports, void *stream)
{
    softmax_body<T> body = {p, ports->in[0], ports->out[0]};
    return lines(body, p.lines.team, p.lines.outer.count, 1, stream);
}

} // namespace

extern "C" int ops_launch_softmax(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_softmax *p = (const struct ops_softmax *)params;
    if (p->lines.held.lanes)
        return run_held(*p, ports, stream);
    return p->in_type == SAC_F64 ? run<double>(*p, ports, stream) : run<float>(*p, ports, stream);
}
