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
        int64_t         at[2];
        place(p.lines.outer, row, at);
        x.read(in, p.in_type, at[0], -INFINITY);
        if (p.kind == OPS_SOFTMAX) {
            x.exponentials(team);
            const float inverse = 1 / x.sum(team, same());
            OPS_UNROLL
            for (int e = 0; e < x.COUNT; e++)
                x.v[e] *= inverse;
        } else {
            const float max = x.most(team), shift = max + logf(x.sum(team, exponential{max}));
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

/* Eight lines side by side, of type T: each number is read three times, but only the first time
 * from afar. */
template <class T> struct softmax8_body {
    static constexpr int TURNS = 8;
    struct ops_softmax   p;
    const T             *in;
    void                *out;

    /* visit(number of the lines, eight numbers), of which several loads are under way at once. */
    template <class VISIT> OPS_BODY void each(const T *from, const VISIT &visit) const
    {
        const int64_t n = p.lines.inner.count, step = p.lines.inner.step[0][0];
        for (int64_t first = 0; first < n; first += TURNS) {
            raw8 raw[TURNS];
            OPS_UNROLL
            for (int t = 0; t < TURNS; t++) /* the last again instead of a condition */
                raw[t] = load8(from, type_as(from), (first + t < n ? first + t : n - 1) * step);
            OPS_UNROLL
            for (int t = 0; t < TURNS; t++) {
                float v[LANES];
                floats_of(raw[t], type_as(from), v);
                if (first + t < n)
                    visit(first + t, v);
            }
        }
    }
    OPS_BODY void operator()(int64_t unit) const
    {
        float   max[LANES], sum[LANES] = {}, factor[LANES];
        int64_t at[2];
        place(p.units, unit, at);
        const T *from = in + at[0] * LANES;
        OPS_UNROLL
        for (int k = 0; k < LANES; k++)
            max[k] = -INFINITY;
        each(from, [&](int64_t, const float(&v)[LANES]) {
            OPS_UNROLL
            for (int k = 0; k < LANES; k++)
                max[k] = fmaxf(max[k], v[k]);
        });
        each(from, [&](int64_t, const float(&v)[LANES]) {
            OPS_UNROLL
            for (int k = 0; k < LANES; k++)
                sum[k] += expf(v[k] - max[k]);
        });
        const bool logs = p.kind == OPS_LOG_SOFTMAX;
        OPS_UNROLL
        for (int k = 0; k < LANES; k++)
            factor[k] = logs ? max[k] + logf(sum[k]) : 1 / sum[k];
        each(from, [&](int64_t j, float(&v)[LANES]) {
            OPS_UNROLL
            for (int k = 0; k < LANES; k++)
                v[k] = logs ? v[k] - factor[k] : expf(v[k] - max[k]) * factor[k];
            put8(out, p.out_type, at[1] * LANES + j * p.lines.inner.step[1][0], v);
        });
    }
};

template <class T>
int run_across(const struct ops_softmax &p, const struct ops_ports *ports, void *stream)
{
    softmax8_body<T> body = {p, (const T *)ports->in[0], ports->out[0]};
    return each(body, p.units.count, stream);
}

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
    if (p.lines.team == OPS_TEAM_COLUMN)
        return columns(body, p.lines.width, p.lines.outer.count, 1, stream);
    return lines(body, p.lines.team, p.lines.outer.count, 1, stream);
}

} // namespace

extern "C" int ops_launch_softmax(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_softmax *p = (const struct ops_softmax *)params;
    if (p->lines.held.lanes)
        return run_held(*p, ports, stream);
    if (p->across && fits16(ports->in[0]) && fits16(ports->out[0]))
        return p->in_type == SAC_F16 ? run_across<uint16_t>(*p, ports, stream)
                                     : run_across<float>(*p, ports, stream);
    return p->in_type == SAC_F64 ? run<double>(*p, ports, stream) : run<float>(*p, ports, stream);
}
