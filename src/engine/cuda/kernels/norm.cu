/* SPDX-License-Identifier: Apache-2.0 */
/* Norms of lines: first mean and variance (or their substitutes), then each number is normalised.
 * The squares are summed about the mean in a second pass, because the difference of two large sums
 * would lose all digits. */
#include "engine/cuda/kernels/functions.cuh"
#include "engine/cuda/kernels/held.cuh"
#include "engine/cuda/kernels/norm_eights.cuh"

using namespace ops;

namespace
{

template <bool ACTIVATED> struct norm_body {
    struct ops_norm     p;
    const void         *in, *scale, *bias, *residual;
    void               *out, *mean_out, *inverse_out;
    one_moment<double> *partial; /* [parts][rows], or NULL */
    bool                applies;

    struct reader {
        const norm_body &b;
        int64_t          start;
        OPS_BODY float   operator()(int64_t j) const
        {
            const struct ops_view &v = b.p.lines.inner;
            return get_float(b.in, b.p.in_type,
                             start + (v.rank == 1 ? j * v.step[0][0] : place_of(v, j)));
        }
    };
    struct square {
        const reader  &x;
        float          mean;
        OPS_BODY float operator()(int64_t j) const
        {
            const float v = x(j) - mean;
            return v * v;
        }
    };
    struct exponential {
        const reader  &x;
        float          most;
        OPS_BODY float operator()(int64_t j) const
        {
            return expf(x(j) - most);
        }
    };
    struct magnitude {
        const reader  &x;
        OPS_BODY float operator()(int64_t j) const
        {
            return fabsf(x(j));
        }
    };

    /* Of a sum, and of shares, whose largest number takes the mean's place. */
    template <class TEAM>
    OPS_BODY moments<double, 1> measure_sum(const reader &x, int64_t first, int64_t last,
                                            const TEAM &team) const
    {
        if (p.kind == OPS_NORM_SUM)
            return {(double)(last - first), {0}, {sum_of(x, first, last, team)}};
        float most = -INFINITY;
        for (int64_t j = first + team.lane(); j < last; j += team.lanes())
            most = fmaxf(most, x(j));
        most = team.all(most, larger<float>());
        return {(double)(last - first), {most}, {sum_of(exponential{x, most}, first, last, team)}};
    }

    OPS_BODY bool centred() const
    {
        return p.kind == OPS_NORM_CENTRED || p.kind == OPS_NORM_MEAN_VARIANCE;
    }

    template <class TEAM>
    OPS_BODY moments<double, 1> measure(const reader &x, int64_t first, int64_t last,
                                        const TEAM &team) const
    {
        moments<double, 1> m = {(double)(last - first), {0}, {0}};
        if (!ACTIVATED && (p.kind == OPS_NORM_SUM || p.kind == OPS_NORM_SHARES))
            return measure_sum(x, first, last, team);
        if (centred() && last > first)
            m.mean[0] = sum_of(x, first, last, team) / m.count;
        m.squares[0] = p.kind == OPS_NORM_L1
                           ? sum_of(magnitude{x}, first, last, team)
                           : sum_of(square{x, (float)m.mean[0]}, first, last, team);
        if (centred() && last > first) { /* corrects for the rounded mean */
            const double off = m.mean[0] - (float)m.mean[0];
            m.squares[0] -= off * off * m.count;
        }
        return m;
    }

    /* Number j of a line before it is over its sum; in_line: its places in the operands. */
    OPS_BODY float made(const int64_t *at, int64_t j, float mean, float inverse,
                        int64_t (&in_line)[5]) const
    {
        place(p.lines.inner, j, in_line);
        const float x = get_float(in, p.in_type, at[0] + in_line[0]) - mean;
        float       v = (!ACTIVATED && p.kind == OPS_NORM_SHARES ? expf(x) : x) * inverse;
        if (scale)
            v *= get_float(scale, p.scale_type, at[2] + in_line[2]);
        if (bias)
            v += get_float(bias, p.bias_type, at[3] + in_line[3]);
        const float other = residual ? get_float(residual, p.residual_type, at[4] + in_line[4]) : 0;
        v += p.residual_after ? 0 : other;
        if (ACTIVATED)
            v = real_function(p.activation, v, 0.0f, 0.0f, (float)p.a, (float)p.b);
        return v + (p.residual_after ? other : 0);
    }
    struct maker {
        const norm_body &b;
        const int64_t   *at;
        float            mean, inverse;
        OPS_BODY float   operator()(int64_t j) const
        {
            int64_t in_line[5];
            return b.made(at, j, mean, inverse, in_line);
        }
    };

    template <class TEAM>
    OPS_BODY void apply_to(const int64_t *at, float mean, float inverse, int64_t first,
                           int64_t last, const TEAM &team) const
    {
        float share = 1;
        if (!ACTIVATED && p.whole)
            share = (float)(1 / (sum_of(maker{*this, at, mean, inverse}, first, last, team) +
                                 p.epsilon));
        for (int64_t j = first + team.lane(); j < last; j += team.lanes()) {
            int64_t     in_line[5];
            const float v = made(at, j, mean, inverse, in_line) * share;
            if (!ACTIVATED && p.bytes.type)
                put_byte(p.bytes, out, at[1] + in_line[1], v);
            else
                put_float(out, p.out_type, at[1] + in_line[1], v);
        }
    }

    template <class TEAM> OPS_BODY void operator()(int64_t row, int part, const TEAM &team) const
    {
        const int64_t n = p.lines.inner.count;
        const int64_t first = part_start(n, part, p.lines.parts),
                      last = part_start(n, part + 1, p.lines.parts);
        int64_t at[5];
        place(p.lines.outer, row, at);
        const reader             x = {*this, at[0]};
        const moments<double, 1> m =
            partial && applies
                ? joined<double, 1>(partial + row, p.lines.outer.count, n, 1, p.lines.parts, team)
                : measure(x, first, last, team);
        if (partial && !applies) {
            if (team.lane() == 0)
                partial[part * p.lines.outer.count + row] = {m.mean[0], m.squares[0]};
            return;
        }
        const double inverse = inverse_of(p, m.squares[0]);
        if (team.lane() == 0 && part == 0) {
            if (p.mean_type)
                put_float(mean_out, p.mean_type, place_of<5>(p.lines.outer, row), m.mean[0]);
            if (p.inverse_type)
                put_float(inverse_out, p.inverse_type, place_of<5>(p.lines.outer, row), inverse);
        }
        apply_to(at, (float)m.mean[0], (float)inverse, first, last, team);
    }
};

/* Of lines in registers, without an activation function. */
template <class WAY> struct held_norm_body {
    struct ops_norm p;
    const void     *in, *scale, *bias, *residual;
    void           *out, *mean_out, *inverse_out;

    struct number {
        OPS_BODY float operator()(float v) const
        {
            return v;
        }
    };
    struct magnitude {
        OPS_BODY float operator()(float v) const
        {
            return fabsf(v);
        }
    };
    struct square {
        float          mean;
        OPS_BODY float operator()(float v) const
        {
            return (v - mean) * (v - mean);
        }
    };
    template <class TEAM> OPS_BODY void operator()(int64_t row, int, const TEAM &team) const
    {
        const int64_t   count = p.lines.inner.count;
        held<WAY, TEAM> x(team, count), scales(team, count), shifts(team, count);
        float           mean = 0;
        int64_t         at[5];
        place(p.lines.outer, row, at);
        x.read(in, p.in_type, at[0], 0);
        /* all loads are under way before the first sum waits */
        if (scale)
            scales.take(scale, p.scale_type, at[2], p.lines.inner.step[2][0] == 0);
        if (bias)
            shifts.take(bias, p.bias_type, at[3], p.lines.inner.step[3][0] == 0);
        if (p.kind == OPS_NORM_CENTRED || p.kind == OPS_NORM_MEAN_VARIANCE)
            mean = x.sum(team, number()) / (float)p.lines.inner.count;
        if (p.kind == OPS_NORM_SHARES)
            x.exponentials(team);
        const bool  summed = p.kind == OPS_NORM_SUM || p.kind == OPS_NORM_SHARES;
        const float inverse = inverse_of(p, summed                  ? x.sum(team, number())
                                            : p.kind == OPS_NORM_L1 ? x.sum(team, magnitude())
                                                                    : x.sum(team, square{mean}));
        OPS_UNROLL
        for (int e = 0; e < x.COUNT; e++) {
            x.v[e] = (x.v[e] - mean) * inverse;
            x.v[e] *= scale ? scales.v[e] : 1;
            x.v[e] += bias ? shifts.v[e] : 0;
        }
        if (residual) {
            held<WAY, TEAM> other(team, count);
            other.read(residual, p.residual_type, at[4], 0);
            OPS_UNROLL
            for (int e = 0; e < x.COUNT; e++)
                x.v[e] += other.v[e];
        }
        if (p.whole) {
            const float share = 1 / (x.sum(team, number()) + (float)p.epsilon);
            OPS_UNROLL
            for (int e = 0; e < x.COUNT; e++)
                x.v[e] *= share;
        }
        if (WAY::PACK == LANES && p.bytes.type)
            x.write_bytes(p.bytes, out, at[1]);
        else
            x.write(out, p.out_type, at[1]);
        if (x.lane == 0 && x.n && p.mean_type)
            put_float(mean_out, p.mean_type, place_of<5>(p.lines.outer, row), mean);
        if (x.lane == 0 && x.n && p.inverse_type)
            put_float(inverse_out, p.inverse_type, place_of<5>(p.lines.outer, row), inverse);
    }
};

/* The norms of transformers: float16 by constants in float32, plus a RESIDUAL. A thread keeps its
 * numbers as they came, and loads the constants when the sums are known, by then from the nearest
 * cache: so it has few registers, and many lines are under way. */
template <class WAY, bool CENTRED, bool RESIDUAL> struct half_norm_body {
    struct ops_norm p;
    const uint16_t *in, *residual;
    const float    *scale, *bias;
    void           *out;

    static OPS_BODY float inverse_root(float v)
    {
#ifdef __CUDACC__
        return rsqrtf(v);
#else
        return 1 / sqrtf(v);
#endif
    }
    template <class TEAM> OPS_BODY void operator()(int64_t row, int, const TEAM &team) const
    {
        const int   n = team.live() ? (int)p.lines.inner.count : 0, step = team.lanes() * LANES;
        const int   first = team.lane() * LANES;
        const float share = 1 / (float)p.lines.inner.count;
        float       sum = 0, squares = 0, v[LANES];
        raw8        raw[WAY::EIGHTS], other[WAY::EIGHTS] = {};
        int64_t     at[2];
        place(p.lines.outer, row, at);
        OPS_UNROLL
        for (int k = 0; k < WAY::EIGHTS; k++)
            raw[k] = first + k * step < n ? load8(in, SAC_F16, at[0] + first + k * step) : raw8{};
        if constexpr (RESIDUAL) {
            const int64_t from = place_of<4>(p.lines.outer, row) + first;
            OPS_UNROLL
            for (int k = 0; k < WAY::EIGHTS; k++)
                if (first + k * step < n)
                    other[k] = load8(residual, SAC_F16, from + k * step);
        }
        OPS_UNROLL
        for (int k = 0; CENTRED && k < WAY::EIGHTS; k++) {
            floats_of(raw[k], SAC_F16, v);
            OPS_UNROLL
            for (int j = 0; j < LANES; j++)
                sum += v[j];
        }
        const float mean = CENTRED ? team.all(sum, add<float>()) * share : 0;
        OPS_UNROLL
        for (int k = 0; k < WAY::EIGHTS; k++) {
            if (first + k * step >= n)
                continue;
            floats_of(raw[k], SAC_F16, v);
            OPS_UNROLL
            for (int j = 0; j < LANES; j++)
                squares += (v[j] - mean) * (v[j] - mean);
        }
        const float inverse =
            inverse_root(team.all(squares, add<float>()) * share + (float)p.epsilon);
        OPS_UNROLL
        for (int k = 0; k < WAY::EIGHTS; k++) {
            const int here = first + k * step;
            float     factor[LANES], shift[LANES] = {};
            if (here >= n)
                continue;
            floats_of(raw[k], SAC_F16, v);
            get8(scale, SAC_F32, here, factor);
            if (bias)
                get8(bias, SAC_F32, here, shift);
            OPS_UNROLL
            for (int j = 0; j < LANES; j++)
                v[j] = (v[j] - mean) * inverse * factor[j] + shift[j];
            if constexpr (RESIDUAL) {
                float more[LANES];
                floats_of(other[k], SAC_F16, more);
                OPS_UNROLL
                for (int j = 0; j < LANES; j++)
                    v[j] += more[j];
            }
            if (p.bytes.type)
                put_bytes8(p.bytes, out, at[1] + here, v);
            else
                put8(out, SAC_F16, at[1] + here, v);
        }
    }
};

} // namespace

#ifdef __CUDACC__
template <class WAY, bool CENTRED>
constexpr int ops::HELD_BLOCKS<half_norm_body<WAY, CENTRED, false>> = WAY::EIGHTS <= 3 ? 12 : 10;
template <class WAY, bool CENTRED>
constexpr int ops::HELD_BLOCKS<half_norm_body<WAY, CENTRED, true>> = WAY::EIGHTS == 1 ? 10 : 8;
#endif

namespace
{

template <bool CENTRED, bool RESIDUAL, class BODY>
int run_halves(const struct ops_norm &p, const BODY &b, void *stream)
{
    const struct ops_view &v = p.lines.outer;
    const float *scale = (const float *)b.scale + v.start[2], *bias = (const float *)b.bias;
    bias = bias ? bias + v.start[3] : NULL;
    return held_by<LANES>(p.lines, stream, [&](auto way) {
        return half_norm_body<decltype(way), CENTRED, RESIDUAL>{
            p, (const uint16_t *)b.in, (const uint16_t *)b.residual, scale, bias, b.out};
    });
}

template <bool CENTRED, class BODY>
int run_halves_of(const struct ops_norm &p, const BODY &b, void *stream)
{
    return b.residual ? run_halves<CENTRED, true>(p, b, stream)
                      : run_halves<CENTRED, false>(p, b, stream);
}

/* Is it a norm of transformers, with one scale for all lines? */
bool is_of_halves(const struct ops_norm &p)
{
    bool one = p.lines.inner.step[2][0] == 1 && (!p.bias_type || p.lines.inner.step[3][0] == 1);
    for (int d = 0; d < p.lines.outer.rank; d++)
        one &= p.lines.outer.step[2][d] == 0 && p.lines.outer.step[3][d] == 0;
    return one && p.in_type == SAC_F16 && p.out_type == SAC_F16 && p.scale_type == SAC_F32 &&
           (!p.bias_type || p.bias_type == SAC_F32) &&
           (!p.residual_type || p.residual_type == SAC_F16) && !p.mean_type && !p.inverse_type &&
           (p.kind == OPS_NORM_CENTRED || p.kind == OPS_NORM_ROOT);
}

template <class BODY> bool fits_packs(const struct ops_norm &p, const BODY &b)
{
    return fits16(b.in) && fits16(b.out) && fits16(b.residual) &&
           (p.lines.inner.step[2][0] == 0 || fits16(b.scale)) &&
           (p.lines.inner.step[3][0] == 0 || fits16(b.bias));
}

template <class BODY> int run_held(const struct ops_norm &p, const BODY &b, bool fits, void *stream)
{
    if (fits && p.lines.held.pack == LANES && is_of_halves(p))
        return p.kind == OPS_NORM_CENTRED ? run_halves_of<true>(p, b, stream)
                                          : run_halves_of<false>(p, b, stream);
    return held_lines(p.lines, fits, stream, [&](auto way) {
        return held_norm_body<decltype(way)>{p,          b.in,  b.scale,    b.bias,
                                             b.residual, b.out, b.mean_out, b.inverse_out};
    });
}

/* One launch, or where lines have parts a second one that joins what the first has found. */
template <class BODY, class RUN> int measure_and_apply(BODY body, const RUN &run)
{
    const int res = run(body);
    if (res || !body.partial)
        return res;
    body.applies = true;
    return run(body);
}

template <bool ACTIVATED, class T>
int eights(const struct ops_norm &p, const struct ops_ports *ports, void *stream)
{
    const norm_ports<T> to = {(const T *)ports->in[0],
                              p.scale_port < 0 ? NULL : ports->in[p.scale_port],
                              p.bias_port < 0 ? NULL : ports->in[p.bias_port],
                              p.residual_type ? ports->in[p.residual_port] : NULL,
                              ports->out[0],
                              p.mean_type ? ports->out[1] : NULL,
                              p.inverse_type ? ports->out[2] : NULL};
    one_moment<float>  *partial = p.lines.parts > 1 ? (one_moment<float> *)ports->scratch : NULL;
    if (p.eights == OPS_EIGHTS_ACROSS)
        return measure_and_apply(
            across_body<ACTIVATED, T>{p, to, partial, false}, [&](const auto &body) {
                return columns(body, p.lines.width, p.units.count, p.lines.parts, stream);
            });
    return measure_and_apply(
        along_body<ACTIVATED, T>{p, to, partial, false}, [&](const auto &body) {
            return lines<BLOCKS>(body, OPS_TEAM_BLOCK, p.lines.outer.count, p.lines.parts, stream);
        });
}

template <bool ACTIVATED>
int norm(const struct ops_norm &p, const struct ops_ports *ports, void *stream)
{
    norm_body<ACTIVATED> body = {p,
                                 ports->in[0],
                                 p.scale_port < 0 ? NULL : ports->in[p.scale_port],
                                 p.bias_port < 0 ? NULL : ports->in[p.bias_port],
                                 p.residual_type ? ports->in[p.residual_port] : NULL,
                                 ports->out[0],
                                 p.mean_type ? ports->out[1] : NULL,
                                 p.inverse_type ? ports->out[2] : NULL,
                                 p.lines.parts > 1 ? (one_moment<double> *)ports->scratch : NULL,
                                 false};
    const uint32_t       stills = p.eights == OPS_EIGHTS_ALONG ? p.walk.stills : p.stills;
    const bool           vectors = fits16(body.in) && fits16(body.out) && fits16(body.residual) &&
                         ((stills >> 2 & 1) || fits16(body.scale)) &&
                         ((stills >> 3 & 1) || fits16(body.bias));
    if (p.eights != OPS_EIGHTS_NONE && vectors)
        return p.in_type == SAC_F16 ? eights<ACTIVATED, uint16_t>(p, ports, stream)
                                    : eights<ACTIVATED, float>(p, ports, stream);
    if constexpr (!ACTIVATED)
        if (p.lines.held.lanes) {
            const bool fits = fits_packs(p, body);
            if ((fits && p.lines.held.pack == LANES) || !p.bytes.type) /* others: one by one */
                return run_held(p, body, fits, stream);
        }
    return measure_and_apply(body, [&](const auto &b) {
        return p.lines.team == OPS_TEAM_COLUMN
                   ? columns(b, p.lines.width, p.lines.outer.count, p.lines.parts, stream)
                   : lines(b, p.lines.team, p.lines.outer.count, p.lines.parts, stream);
    });
}

} // namespace

extern "C" int ops_launch_norm(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_norm *p = (const struct ops_norm *)params;
    if (ops_norm_spreads(p, ports))
        return ops_launch_norm_spread(params, ports, stream);
    return p->activation == OPS_FN_IDENTITY ? norm<false>(*p, ports, stream)
                                            : norm<true>(*p, ports, stream);
}
