/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of lines that are normalised, and long ones by eight numbers at once. A thread
 * takes the mean of a few numbers that it has in registers and their squares about it, and joins
 * them to what it knows: float32 is enough then, however far the mean lies from 0. */
#pragma once

#include "engine/cuda/kernels/functions.cuh"
#include "engine/cuda/kernels/team.cuh"

namespace ops
{

/* Of N lines side by side, in as many numbers of each: their mean, and the squares about it. */
template <class V, int N> struct moments {
    V count, mean[N], squares[N];
};
/* As it lies in scratch; the count follows from the part. */
template <class V> struct one_moment {
    V mean, squares;
};

/* Chan, Golub and LeVeque, 1979. */
template <class V, int N> struct join {
    OPS_BODY moments<V, N> operator()(const moments<V, N> &a, const moments<V, N> &b) const
    {
        moments<V, N> all;
        all.count = a.count + b.count;
        const V share = b.count > 0 ? b.count / all.count : 0, both = a.count * share;
        OPS_UNROLL
        for (int k = 0; k < N; k++) {
            const V off = b.mean[k] - a.mean[k];
            all.mean[k] = a.mean[k] + off * share;
            all.squares[k] = a.squares[k] + b.squares[k] + off * (off * both);
        }
        return all;
    }
};

#ifdef __CUDACC__
template <class V, int N>
__device__ __forceinline__ moments<V, N> shuffle(moments<V, N> m, int step)
{
    m.count = shuffle(m.count, step);
#pragma unroll
    for (int k = 0; k < N; k++) {
        m.mean[k] = shuffle(m.mean[k], step);
        m.squares[k] = shuffle(m.squares[k], step);
    }
    return m;
}
#endif

/* Of N whole lines from their parts, of which the next begins `rows` further on; lines are of n
 * times `each` numbers. */
template <class V, int N, class TEAM>
OPS_BODY moments<V, N> joined(const one_moment<V> *partial, int64_t rows, int64_t n, int each,
                              int parts, const TEAM &team)
{
    moments<V, N> all = {};
    for (int i = team.lane(); i < parts; i += team.lanes()) {
        moments<V, N> part;
        part.count = (V)((part_start(n, i + 1, parts) - part_start(n, i, parts)) * each);
        OPS_UNROLL
        for (int k = 0; k < N; k++) {
            const one_moment<V> m = partial[i * rows + k];
            part.mean[k] = m.mean;
            part.squares[k] = m.squares;
        }
        all = join<V, N>()(all, part);
    }
    return team.all(all, join<V, N>());
}

template <class V> OPS_BODY V inverse_above(V norm, V least)
{
    norm = norm < least ? least : norm;
    return norm != 0 ? 1 / norm : 0;
}

template <class V> OPS_BODY V inverse_of(const struct ops_norm &p, V squares)
{
    const V n = (V)p.lines.inner.count;
    if (p.kind == OPS_NORM_SUM || p.kind == OPS_NORM_SHARES)
        return 1 / (squares + (p.kind == OPS_NORM_SUM ? (V)p.epsilon : 0));
    squares = squares > 0 || is_nan(squares) ? squares : 0;
    switch (p.kind) {
    case OPS_NORM_MEAN_VARIANCE: return 1 / (sqrt(squares / n) + (V)1e-9);
    case OPS_NORM_L1: return inverse_above(squares, (V)p.epsilon);
    case OPS_NORM_L2: return inverse_above(sqrt(squares), (V)p.epsilon);
    default: return 1 / sqrt(squares / n + (V)p.epsilon);
    }
}

/* The offset of a line's unit in operand K. */
template <int K> OPS_BODY int32_t walk_place(const ops_walk &w, int32_t unit)
{
    const int32_t above = (int32_t)divide((uint32_t)unit, w.inner);
    return above * w.step[K][0] + (unit - above * (int32_t)w.inner.d) * w.step[K][1];
}

/* ---- by eights: of type T in memory ---- */

template <class T> struct norm_ports {
    const T    *in;
    const void *scale, *bias, *residual;
    void       *out, *mean_out, *inverse_out;
};

/* Loads that a thread has under way. */
constexpr int NORM_TURNS = 4;

/* Eight numbers that a thread has read at each of `have` turns. */
struct norm_turns {
    float v[NORM_TURNS][LANES];
    int   have;

    /* at(j): where unit j lies, for units j, j + lanes, ... below last. */
    template <class T, class AT>
    OPS_BODY norm_turns(const T *in, int64_t j, int64_t last, int lanes, const AT &at)
    {
        raw8 raw[NORM_TURNS];
        have = 0;
        OPS_UNROLL
        for (int t = 0; t < NORM_TURNS; t++) { /* the last again instead of a condition */
            const int64_t unit = j + (int64_t)t * lanes;
            have += unit < last;
            raw[t] = load8(in, type_as(in), at(unit < last ? unit : last - 1));
        }
        OPS_UNROLL
        for (int t = 0; t < NORM_TURNS; t++)
            floats_of(raw[t], type_as(in), v[t]);
    }

    /* Of eight lines, a number of each a turn. */
    OPS_BODY void add_to(moments<float, LANES> &all) const
    {
        moments<float, LANES> m = {};
        m.count = (float)have;
        OPS_UNROLL
        for (int t = 0; t < NORM_TURNS; t++)
            OPS_UNROLL
        for (int k = 0; k < LANES; k++)
            m.mean[k] += t < have ? v[t][k] : 0;
        OPS_UNROLL
        for (int k = 0; k < LANES; k++)
            m.mean[k] *= 1 / m.count;
        OPS_UNROLL
        for (int t = 0; t < NORM_TURNS; t++)
            OPS_UNROLL
        for (int k = 0; k < LANES; k++) {
            const float off = t < have ? v[t][k] - m.mean[k] : 0;
            m.squares[k] += off * off;
        }
        all = join<float, LANES>()(all, m);
    }
    /* Of one line, eight numbers of it a turn. */
    OPS_BODY void add_to(moments<float, 1> &all) const
    {
        moments<float, 1> m = {};
        m.count = (float)(have * LANES);
        OPS_UNROLL
        for (int t = 0; t < NORM_TURNS; t++)
            OPS_UNROLL
        for (int k = 0; k < LANES; k++)
            m.mean[0] += t < have ? v[t][k] : 0;
        m.mean[0] *= 1 / m.count;
        OPS_UNROLL
        for (int t = 0; t < NORM_TURNS; t++)
            OPS_UNROLL
        for (int k = 0; k < LANES; k++) {
            const float off = t < have ? v[t][k] - m.mean[0] : 0;
            m.squares[0] += off * off;
        }
        all = join<float, 1>()(all, m);
    }
};

/* All functions, for each number of each turn of each body, would be most of a plug-in's code. */
OPS_APART void activate(int function, float a, float b, float (&v)[LANES])
{
    for (int k = 0; k < LANES; k++)
        v[k] = real_function(function, v[k], 0.0f, 0.0f, a, b);
}

template <bool ACTIVATED> OPS_BODY void activate_by(const struct ops_norm &p, float (&v)[LANES])
{
    if (ACTIVATED && p.activation != OPS_FN_RELU) {
        activate(p.activation, (float)p.a, (float)p.b, v);
        return;
    }
    OPS_UNROLL
    for (int k = 0; ACTIVATED && k < LANES; k++)
        v[k] = v[k] < 0 ? 0 : v[k];
}

/* Eight numbers of an output at `at`, and of the residual, if there is one, at `other`. */
template <bool ACTIVATED, class T>
OPS_BODY void put_normal(const struct ops_norm &p, const norm_ports<T> &to, int64_t at,
                         int64_t other, float (&v)[LANES])
{
    float more[LANES] = {};
    if (to.residual)
        get8(to.residual, p.residual_type, other, more);
    OPS_UNROLL
    for (int k = 0; k < LANES; k++)
        v[k] += p.residual_after ? 0 : more[k];
    activate_by<ACTIVATED>(p, v);
    OPS_UNROLL
    for (int k = 0; k < LANES; k++)
        v[k] += p.residual_after ? more[k] : 0;
    put8(to.out, p.out_type, at, v);
}

/* The place of a unit of p.units in operand K. */
template <int K> OPS_BODY int64_t unit_place(const struct ops_norm &p, const int64_t (&at)[5])
{
    return (p.stills >> K & 1) ? at[K] : at[K] * LANES;
}

/* Eight lines side by side. */
template <bool ACTIVATED, class T> struct across_body {
    struct ops_norm                     p;
    norm_ports<T>                       to;
    one_moment<float>                  *partial; /* [parts][rows], or NULL */
    bool                                applies;
    template <class TEAM> OPS_BODY void operator()(int64_t unit, int part, const TEAM &team) const
    {
        const int64_t n = p.lines.inner.count, rows = p.lines.outer.count;
        const int64_t first = part_start(n, part, p.lines.parts),
                      last = part_start(n, part + 1, p.lines.parts);
        const int64_t in_step = p.lines.inner.step[0][0], out_step = p.lines.inner.step[1][0];
        const int     lanes = team.lanes();
        int64_t       at[5];
        place(p.units, unit, at);
        const T   *in = to.in + at[0] * LANES;
        const auto in_line = [in_step](int64_t j) { return j * in_step; };

        moments<float, LANES> m = {};
        if (partial && applies) {
            m = joined<float, LANES>(partial + unit * LANES, rows, n, 1, p.lines.parts, team);
        } else {
            for (int64_t j = first + team.lane(); j < last; j += NORM_TURNS * lanes)
                norm_turns(in, j, last, lanes, in_line).add_to(m);
            m = team.all(m, join<float, LANES>());
        }
        if (partial && !applies) {
            if (team.lane() == 0)
                OPS_UNROLL
            for (int k = 0; k < LANES; k++)
                partial[part * rows + unit * LANES + k] = {m.mean[k], m.squares[k]};
            return;
        }

        float factor[LANES], shift[LANES] = {};
        if (to.scale)
            get8_or_one(to.scale, p.scale_type, unit_place<2>(p, at), p.stills >> 2 & 1, factor);
        if (to.bias)
            get8_or_one(to.bias, p.bias_type, unit_place<3>(p, at), p.stills >> 3 & 1, shift);
        OPS_UNROLL
        for (int k = 0; k < LANES; k++)
            factor[k] = inverse_of(p, m.squares[k]) * (to.scale ? factor[k] : 1);
        const int64_t out = at[1] * LANES, other = unit_place<4>(p, at),
                      other_step = p.lines.inner.step[4][0];
        for (int64_t j = first + team.lane(); j < last; j += NORM_TURNS * lanes) {
            norm_turns x(in, j, last, lanes, in_line);
            OPS_UNROLL
            for (int t = 0; t < NORM_TURNS; t++) {
                if (t >= x.have)
                    continue;
                OPS_UNROLL
                for (int k = 0; k < LANES; k++)
                    x.v[t][k] = (x.v[t][k] - m.mean[k]) * factor[k] + shift[k];
                const int64_t row = j + (int64_t)t * lanes;
                put_normal<ACTIVATED>(p, to, out + row * out_step, other + row * other_step,
                                      x.v[t]);
            }
        }
    }
};

/* Eight numbers of a line. */
template <bool ACTIVATED, class T> struct along_body {
    struct ops_norm                     p;
    norm_ports<T>                       to;
    one_moment<float>                  *partial; /* [parts][rows], or NULL */
    bool                                applies;
    template <class TEAM> OPS_BODY void operator()(int64_t row, int part, const TEAM &team) const
    {
        const int64_t n = p.walk.count, rows = p.lines.outer.count;
        const int64_t first = part_start(n, part, p.lines.parts),
                      last = part_start(n, part + 1, p.lines.parts);
        const int lanes = team.lanes();
        int64_t   at[5];
        place(p.lines.outer, row, at);
        const T   *in = to.in + at[0];
        const auto in_line = [this](int64_t j) { return walk_place<0>(p.walk, (int32_t)j); };

        moments<float, 1> m = {};
        if (partial && applies) {
            m = joined<float, 1>(partial + row, rows, n, LANES, p.lines.parts, team);
        } else {
            for (int64_t j = first + team.lane(); j < last; j += NORM_TURNS * lanes)
                norm_turns(in, j, last, lanes, in_line).add_to(m);
            m = team.all(m, join<float, 1>());
        }
        if (partial && !applies) {
            if (team.lane() == 0)
                partial[part * rows + row] = {m.mean[0], m.squares[0]};
            return;
        }
        const float inverse = inverse_of(p, m.squares[0]);
        if (team.lane() == 0 && part == 0) {
            if (p.mean_type)
                put_float(to.mean_out, p.mean_type, place_of<5>(p.lines.outer, row), m.mean[0]);
            if (p.inverse_type)
                put_float(to.inverse_out, p.inverse_type, place_of<5>(p.lines.outer, row), inverse);
        }
        for (int64_t j = first + team.lane(); j < last; j += NORM_TURNS * lanes) {
            norm_turns x(in, j, last, lanes, in_line);
            OPS_UNROLL
            for (int t = 0; t < NORM_TURNS; t++)
                if (t < x.have)
                    apply((int32_t)j + t * lanes, at, m.mean[0], inverse, x.v[t]);
        }
    }
    OPS_BODY void apply(int32_t unit, const int64_t (&line)[5], float mean, float inverse,
                        float (&v)[LANES]) const
    {
        float other[LANES];
        OPS_UNROLL
        for (int k = 0; k < LANES; k++)
            v[k] = (v[k] - mean) * inverse;
        if (to.scale) {
            get8_or_one(to.scale, p.scale_type, line[2] + walk_place<2>(p.walk, unit),
                        p.walk.stills >> 2 & 1, other);
            OPS_UNROLL
            for (int k = 0; k < LANES; k++)
                v[k] *= other[k];
        }
        if (to.bias) {
            get8_or_one(to.bias, p.bias_type, line[3] + walk_place<3>(p.walk, unit),
                        p.walk.stills >> 3 & 1, other);
            OPS_UNROLL
            for (int k = 0; k < LANES; k++)
                v[k] += other[k];
        }
        put_normal<ACTIVATED>(p, to, line[1] + walk_place<1>(p.walk, unit),
                              line[4] + walk_place<4>(p.walk, unit), v);
    }
};

} // namespace ops
