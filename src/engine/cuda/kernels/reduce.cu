/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, ArgMax and ArgMin, running totals. */
#include <type_traits>

#include "engine/cuda/kernels/folding.cuh"
#include "engine/cuda/kernels/team.cuh"

using namespace ops;

namespace
{

/* ---- one line, or a part of it ---- */

/* Of type T, or where that is void of the one that is asked for at each number. */
template <class T> struct float_source {
    const T               *in;
    const struct ops_view &inner;
    int64_t                start;
    int                    type;
    int64_t                step; /* of a line that is one dimension; else the view tells */
    OPS_BODY float         operator()(int64_t j) const
    {
        const int64_t at = start + (step ? j * step : place_of(inner, j));
        if constexpr (std::is_void<T>::value)
            return get_float(in, type, at);
        else
            return get_float(in, type_as(in), at);
    }
};

template <class X> struct absolute {
    const X       &x;
    OPS_BODY float operator()(int64_t j) const
    {
        return fabsf(x(j));
    }
};
template <class X> struct squared {
    const X       &x;
    OPS_BODY float operator()(int64_t j) const
    {
        const float v = x(j);
        return v * v;
    }
};
template <class X> struct exponential {
    const X       &x;
    float          max;
    OPS_BODY float operator()(int64_t j) const
    {
        return expf(x(j) - max);
    }
};

template <class X, class TEAM>
OPS_BODY float largest(const X &x, int64_t first, int64_t last, const TEAM &team)
{
    float most = -INFINITY;
    for (int64_t j = first + team.lane(); j < last; j += team.lanes())
        most = larger<float>()(most, x(j));
    return team.all(most, larger<float>());
}

template <class X, class TEAM>
OPS_BODY double reduce_floats(int kind, const X &x, int64_t first, int64_t last, const TEAM &team)
{
    double v = kind == OPS_REDUCE_PROD ? 1 : kind == OPS_REDUCE_MIN ? INFINITY : -INFINITY;
    float  most;
    switch (kind) {
    case OPS_REDUCE_SUM: return sum_of(x, first, last, team);
    case OPS_REDUCE_ABS: return sum_of(absolute<X>{x}, first, last, team);
    case OPS_REDUCE_SQUARE: return sum_of(squared<X>{x}, first, last, team);
    case OPS_REDUCE_LOG_SUM_EXP:
        most = finite_or_0(largest(x, first, last, team));
        return log(sum_of(exponential<X>{x, most}, first, last, team)) + most;
    case OPS_REDUCE_PROD:
        for (int64_t j = first + team.lane(); j < last; j += team.lanes())
            v *= x(j);
        return team.all(v, multiply<double>());
    case OPS_REDUCE_MAX: return largest(x, first, last, team);
    default:
        for (int64_t j = first + team.lane(); j < last; j += team.lanes())
            v = smaller<double>()(v, x(j));
        return team.all(v, smaller<double>());
    }
}

/* float64 and the integers, in T. */
template <class T, class TEAM>
OPS_BODY T reduce_exact(const struct ops_reduce &p, const void *in, int64_t start, int64_t first,
                        int64_t last, const TEAM &team)
{
    T v = (T)(p.kind == OPS_REDUCE_PROD), max = 0;
    if (p.kind == OPS_REDUCE_LOG_SUM_EXP || p.kind == OPS_REDUCE_MAX || p.kind == OPS_REDUCE_MIN)
        v = first < last ? get<T>(in, p.in_type, start + place_of(p.lines.inner, first)) : 0;
    for (int64_t j = first + team.lane(); j < last; j += team.lanes()) {
        const T x = get<T>(in, p.in_type, start + place_of(p.lines.inner, j));
        switch (p.kind) {
        case OPS_REDUCE_SUM: v += x; break;
        case OPS_REDUCE_ABS: v += x > 0 ? x : 0 - x; break;
        case OPS_REDUCE_SQUARE: v += x * x; break;
        case OPS_REDUCE_PROD: v *= x; break;
        case OPS_REDUCE_MIN: v = smaller<T>()(v, x); break;
        default: v = larger<T>()(v, x); break;
        }
    }
    if (p.kind == OPS_REDUCE_MIN)
        return team.all(v, smaller<T>());
    if (p.kind == OPS_REDUCE_PROD)
        return team.all(v, multiply<T>());
    if (p.kind != OPS_REDUCE_MAX && p.kind != OPS_REDUCE_LOG_SUM_EXP)
        return team.all(v, add<T>());
    max = team.all(v, larger<T>());
    if (p.kind == OPS_REDUCE_MAX)
        return max;
    double       sum = 0;
    const double top = (double)max - (double)max == 0 ? (double)max : 0;
    for (int64_t j = first + team.lane(); j < last; j += team.lanes())
        sum += exp((double)get<T>(in, p.in_type, start + place_of(p.lines.inner, j)) - top);
    return (T)(log(team.all(sum, add<double>())) + top);
}

/* Stores a team's result for its part of a line; called by one thread of the team. */
struct result {
    const struct ops_reduce &p;
    void                    *out;
    double                  *partial; /* [parts][rows], or NULL */
    OPS_BODY void            operator()(int64_t row, int part, double v) const
    {
        int64_t at[2];
        place(p.lines.outer, row, at);
        put_result(p, out, partial, row, part, at[1], v);
    }
};

template <class T> struct float_body {
    struct ops_reduce                   p;
    const T                            *in;
    void                               *out;
    double                             *partial;
    template <class TEAM> OPS_BODY void operator()(int64_t row, int part, const TEAM &team) const
    {
        const struct ops_view &inner = p.lines.inner;
        const float_source<T>  x = {in, inner, place_of(p.lines.outer, row), p.in_type,
                                   inner.rank == 1 ? inner.step[0][0] : 0};
        const int64_t          n = inner.count;
        const double           v = reduce_floats(p.kind, x, part_start(n, part, p.lines.parts),
                                                 part_start(n, part + 1, p.lines.parts), team);
        if (team.lane() == 0)
            result{p, out, partial}(row, part, v);
    }
};

/* Eight neighbouring lines at once, of type T: several loads are under way before the first is
 * waited for. */
template <int KIND, class T> struct float8_body {
    static constexpr int                 TURNS = 8;
    struct ops_reduce                    p;
    const T                             *in;
    void                                *out;
    double                              *partial;
    template <class V> static OPS_BODY V folded(V a, V b)
    {
        return KIND == OPS_REDUCE_MAX ? larger<V>()(a, b) : a + b;
    }
    static OPS_BODY float seen(float v)
    {
        return KIND == OPS_REDUCE_ABS ? fabsf(v) : KIND == OPS_REDUCE_SQUARE ? v * v : v;
    }
    template <class V> static OPS_BODY void begin(V (&v)[LANES])
    {
        OPS_UNROLL
        for (int e = 0; e < LANES; e++)
            v[e] = KIND == OPS_REDUCE_MAX ? -INFINITY : 0;
    }
    template <class TEAM> OPS_BODY void operator()(int64_t unit, int part, const TEAM &team) const
    {
        const int64_t n = p.lines.inner.count, step = p.lines.inner.step[0][0];
        const int64_t last = part_start(n, part + 1, p.lines.parts);
        const T      *from = in + place_of(p.units, unit) * LANES;
        double        total[LANES];
        float         some[LANES], v[LANES];
        begin(total);
        for (int64_t j = part_start(n, part, p.lines.parts) + team.lane(); j < last;
             j += TURNS * team.lanes()) {
            raw8 raw[TURNS];
            OPS_UNROLL
            for (int k = 0; k < TURNS; k++) { /* the last again instead of a condition */
                const int64_t at = j + k * team.lanes();
                raw[k] = load8(from, type_as(from), (at < last ? at : last - 1) * step);
            }
            begin(some);
            OPS_UNROLL
            for (int k = 0; k < TURNS; k++) {
                floats_of(raw[k], type_as(from), v);
                OPS_UNROLL
                for (int e = 0; e < LANES; e++)
                    if (j + k * team.lanes() < last)
                        some[e] = folded(some[e], seen(v[e]));
            }
            OPS_UNROLL
            for (int e = 0; e < LANES; e++)
                total[e] = folded(total[e], (double)some[e]);
        }
        OPS_UNROLL
        for (int e = 0; e < LANES; e++)
            some[e] = (float)total[e];
        team.eight(unit, p.units.count, some, fold(), write{*this, part});
    }
    struct fold {
        OPS_BODY float operator()(float a, float b) const
        {
            return folded(a, b);
        }
    };
    struct write {
        const float8_body &b;
        int                part;
        OPS_BODY void      operator()(int64_t unit, int k, float v) const
        {
            result{b.p, b.out, b.partial}(unit * LANES + k, part, v);
        }
    };
};

/* The parts of a line. */
struct combine_body {
    struct ops_reduce p;
    const double     *partial;
    void             *out;
    OPS_BODY double   folded(double a, double b) const
    {
        switch (p.kind) {
        case OPS_REDUCE_PROD: return a * b;
        case OPS_REDUCE_MAX: return larger<double>()(a, b);
        case OPS_REDUCE_MIN: return smaller<double>()(a, b);
        default: return a + b;
        }
    }
    struct fold {
        const combine_body &b;
        OPS_BODY double     operator()(double x, double y) const
        {
            return b.folded(x, y);
        }
    };
    template <class TEAM> OPS_BODY void operator()(int64_t row, int, const TEAM &team) const
    {
        double v = p.kind == OPS_REDUCE_PROD  ? 1
                   : p.kind == OPS_REDUCE_MAX ? -INFINITY
                   : p.kind == OPS_REDUCE_MIN ? INFINITY
                                              : 0;
        for (int i = team.lane(); i < p.lines.parts; i += team.lanes())
            v = folded(v, partial[i * p.lines.outer.count + row]);
        v = team.all(v, fold{*this});
        if (team.lane() == 0)
            result{p, out, NULL}(row, 0, v);
    }
};

template <class T> struct exact_body {
    struct ops_reduce                   p;
    const void                         *in;
    void                               *out;
    template <class TEAM> OPS_BODY void operator()(int64_t row, int, const TEAM &team) const
    {
        int64_t at[2];
        place(p.lines.outer, row, at);
        const T v = reduce_exact<T>(p, in, at[0], 0, p.lines.inner.count, team);
        if (team.lane() != 0)
            return;
        if (p.lines.inner.count == 0)
            put(out, p.out_type, at[1],
                p.out_type == SAC_BOOL ? (double)(p.nothing > 0) : p.nothing);
        else if (p.out_type <= SAC_BF16 || p.finish != OPS_FINISH_NONE)
            finish_into(p, out, at[1], (double)v);
        else
            put(out, p.out_type, at[1], v);
    }
};

template <class T>
int exact(const struct ops_reduce &p, const struct ops_ports *ports, void *stream)
{
    exact_body<T> body = {p, ports->in[0], ports->out[0]};
    return lines(body, p.lines.team, p.lines.outer.count, 1, stream);
}

template <int KIND>
int eights(const struct ops_reduce &p, const struct ops_ports *ports, double *partial, void *stream)
{
    const struct ops_lines &l = p.lines;
    if (p.in_type == SAC_F16) {
        float8_body<KIND, uint16_t> body = {p, (const uint16_t *)ports->in[0], ports->out[0],
                                            partial};
        return columns(body, l.width, p.units.count, l.parts, stream);
    }
    float8_body<KIND, float> body = {p, (const float *)ports->in[0], ports->out[0], partial};
    return columns(body, l.width, p.units.count, l.parts, stream);
}

template <class T>
int singles(const struct ops_reduce &p, const struct ops_ports *ports, double *partial,
            void *stream)
{
    const struct ops_lines &l = p.lines;
    float_body<T>           body = {p, (const T *)ports->in[0], ports->out[0], partial};
    return l.team == OPS_TEAM_COLUMN ? columns(body, l.width, l.outer.count, l.parts, stream)
                                     : lines(body, l.team, l.outer.count, l.parts, stream);
}

int parts_of(const struct ops_reduce &p, const struct ops_ports *ports, double *partial,
             void *stream)
{
    if (p.along)
        return ops_launch_reduce_along(&p, ports, stream);
    if (p.lines.team != OPS_TEAM_COLUMN || !p.vector || !fits16(ports->in[0]))
        return p.in_type == SAC_F16   ? singles<uint16_t>(p, ports, partial, stream)
               : p.in_type == SAC_F32 ? singles<float>(p, ports, partial, stream)
                                      : singles<void>(p, ports, partial, stream);
    switch (p.kind) {
    case OPS_REDUCE_SUM: return eights<OPS_REDUCE_SUM>(p, ports, partial, stream);
    case OPS_REDUCE_ABS: return eights<OPS_REDUCE_ABS>(p, ports, partial, stream);
    case OPS_REDUCE_SQUARE: return eights<OPS_REDUCE_SQUARE>(p, ports, partial, stream);
    default: return eights<OPS_REDUCE_MAX>(p, ports, partial, stream);
    }
}

int floats_of(const struct ops_reduce &p, const struct ops_ports *ports, void *stream)
{
    constexpr int SIDE_BY_SIDE = 4; /* so that a thread has a part or a few to read */
    double       *partial = p.lines.parts > 1 ? (double *)ports->scratch : NULL;
    const int     res = parts_of(p, ports, partial, stream);
    if (res || !partial)
        return res;
    combine_body last = {p, partial, ports->out[0]};
    return columns(last, SIDE_BY_SIDE, p.lines.outer.count, 1, stream);
}

/* ---- ArgMax, ArgMin ---- */

template <class T> struct found {
    T       value;
    int64_t index; /* -1: none */
};

#ifdef __CUDACC__
template <class T> __device__ __forceinline__ found<T> shuffle(found<T> v, int step)
{
    v.value = __shfl_xor_sync(0xffffffff, v.value, step);
    v.index = __shfl_xor_sync(0xffffffff, v.index, step);
    return v;
}
#endif

/* NaN counts as largest. */
template <class T> struct better {
    bool     least, last;
    OPS_BODY found<T> operator()(found<T> a, found<T> b) const
    {
        if (a.index < 0 || b.index < 0)
            return a.index < 0 ? b : a;
        const bool nan_a = is_nan(a.value), nan_b = is_nan(b.value);
        int        order = nan_a || nan_b ? (int)nan_b - (int)nan_a
                                          : (int)(b.value > a.value) - (int)(b.value < a.value);
        order = least ? -order : order;
        if (order == 0)
            return (b.index > a.index) == last ? b : a;
        return order > 0 ? b : a;
    }
};

template <class T> struct arg_body {
    struct ops_arg                      p;
    const void                         *in;
    int64_t                            *out;
    template <class TEAM> OPS_BODY void operator()(int64_t row, int, const TEAM &team) const
    {
        const better<T> rule = {p.least != 0, p.last != 0};
        found<T>        best = {0, -1};
        int64_t         at[2];
        place(p.lines.outer, row, at);
        for (int64_t j = team.lane(); j < p.lines.inner.count; j += team.lanes())
            best =
                rule(best, found<T>{get<T>(in, p.in_type, at[0] + place_of(p.lines.inner, j)), j});
        best = team.all(best, rule);
        if (team.lane() == 0)
            out[at[1]] = best.index;
    }
};

/* ---- running totals ---- */

template <class T> struct cumulate_body {
    struct ops_cumulate p;
    const void         *in;
    void               *out;
    OPS_BODY void       operator()(int64_t row) const
    {
        const int64_t n = p.lines.inner.count;
        int64_t       at[2], inner[2];
        T             acc = (T)(p.product != 0);
        place(p.lines.outer, row, at);
        for (int64_t k = 0; k < n; k++) {
            place(p.lines.inner, p.reverse ? n - 1 - k : k, inner);
            const T before = acc, x = get<T>(in, p.type_in, at[0] + inner[0]);
            acc = p.product ? acc * x : acc + x;
            put(out, p.type_out, at[1] + inner[1], p.exclusive ? before : acc);
        }
    }
};

} // namespace

extern "C" int ops_launch_reduce(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_reduce *p = (const struct ops_reduce *)params;
    if (p->across)
        return ops_launch_reduce_across(params, ports, stream);
    switch (p->type) {
    case OPS_FLOAT: return floats_of(*p, ports, stream);
    case OPS_DOUBLE: return exact<double>(*p, ports, stream);
    case OPS_INT64: return exact<int64_t>(*p, ports, stream);
    default: return exact<uint64_t>(*p, ports, stream);
    }
}

extern "C" int ops_launch_arg(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_arg *p = (const struct ops_arg *)params;
    return by_class(p->type, [&](auto number) {
        arg_body<decltype(number)> body = {*p, ports->in[0], (int64_t *)ports->out[0]};
        return lines(body, p->lines.team, p->lines.outer.count, 1, stream);
    });
}

extern "C" int ops_launch_cumulate(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_cumulate *p = (const struct ops_cumulate *)params;
    if (p->floats) {
        cumulate_body<double> body = {*p, ports->in[0], ports->out[0]};
        return each(body, p->lines.outer.count, stream);
    }
    cumulate_body<uint64_t> body = {*p, ports->in[0], ports->out[0]};
    return each(body, p->lines.outer.count, stream);
}
