/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of float16 and float32, whose threads read as many channels at once as lie together, down
 * to one: so the other layout is there too. */
#pragma once

#include "engine/cuda/kernels/pack.cuh"
#include "engine/cuda/kernels/window.cuh"

namespace ops
{

/* What a window's numbers become. */
template <int KIND> struct pooled {
    static constexpr float NONE = KIND == OPS_POOL_MAX ? -INFINITY : 0;
    static OPS_BODY float  folded(float all, float v)
    {
        return KIND == OPS_POOL_MAX ? (v > all || is_nan(v) ? v : all) : all + v;
    }
    static OPS_BODY float seen(float v, float power)
    {
        if (KIND != OPS_POOL_LP)
            return v;
        return power == 2 ? v * v : power == 1 ? fabsf(v) : powf(fabsf(v), power);
    }
    /* share: of each number in a mean. */
    static OPS_BODY float finished(float all, float share, float power)
    {
        if (KIND == OPS_POOL_LP)
            return power == 2 ? sqrtf(all) : power == 1 ? all : powf(all, 1 / power);
        return KIND == OPS_POOL_AVERAGE ? all * share : all;
    }
};

/* N channels of RUN outputs below each other, which share how they are found and, where their
 * windows overlap, what they fold of each row. SIZE: rows and columns of a flat window; 0: any
 * window, with a RUN of 1. STRIDE: from row to row, where there is a run. All offsets have 31 bits.
 */
template <int KIND, class T, int N, int SIZE, int RUN = 1, int STRIDE = 1> struct pack_body {
    using how = pooled<KIND>;
    struct ops_pool p;
    const T        *in;
    void           *out;

    OPS_BODY void seen(const pack<T, N> &raw, float (&v)[N]) const
    {
        raw.to(v);
        OPS_UNROLL
        for (int e = 0; e < N; e++)
            v[e] = how::seen(v[e], (float)p.p);
    }
    static OPS_BODY void fold_in(const float (&v)[N], float (&all)[N])
    {
        OPS_UNROLL
        for (int e = 0; e < N; e++)
            all[e] = how::folded(all[e], v[e]);
    }

    /* A row's numbers, folded: all loads are under way at once. What is outside is not loaded. */
    OPS_BODY void row(int32_t at, bool row_inside, int32_t left, float (&all)[N]) const
    {
        const ops_window &w = p.w;
        pack<T, N>        raw[SIZE];
        float             v[N];
        OPS_UNROLL
        for (int k = 0; k < SIZE; k++) {
            const int32_t x = left + k * w.dilation[2];
            raw[k].fill(how::NONE);
            if (row_inside && (uint32_t)x < (uint32_t)w.in[2])
                raw[k] = load<N>(in + (at + x * (int32_t)w.x_step[4]));
        }
        seen(raw[0], all);
        OPS_UNROLL
        for (int k = 1; k < SIZE; k++) {
            seen(raw[k], v);
            fold_in(v, all);
        }
    }
    OPS_BODY void square(int32_t at, const at5 &to, float (&all)[RUN][N]) const
    {
        const ops_window &w = p.w;
        const int32_t     left = to.x * w.stride[2] - w.pad_begin[2];
        at += to.z * w.stride[0] * (int32_t)w.x_step[2];
        OPS_UNROLL
        for (int r = 0; r < (RUN - 1) * STRIDE + SIZE; r++) {
            const int32_t y = to.y * w.stride[1] - w.pad_begin[1] + r * w.dilation[1];
            float         v[N];
            row(at + y * (int32_t)w.x_step[3], (uint32_t)y < (uint32_t)w.in[1], left, v);
            OPS_UNROLL
            for (int k = 0; k < RUN; k++) {
                if (k * STRIDE < r && r < k * STRIDE + SIZE)
                    fold_in(v, all[k]);
                OPS_UNROLL
                for (int e = 0; k * STRIDE == r && e < N; e++)
                    all[k][e] = v[e];
            }
        }
    }
    OPS_BODY void any(int32_t at, const at5 &to, float (&all)[N]) const
    {
        const ops_window &w = p.w;
        const span    sz = span_of(w, 0, to.z), sy = span_of(w, 1, to.y), sx = span_of(w, 2, to.x);
        const int32_t step = w.dilation[2] * (int32_t)w.x_step[4];
        float         v[N];
        OPS_UNROLL
        for (int e = 0; e < N; e++)
            all[e] = how::NONE;
        at += sx.start * (int32_t)w.x_step[4];
        for (int a = sz.first; a < sz.last; a++)
            for (int b = sy.first; b < sy.last; b++) {
                const T *from = in + at + (sz.start + a * w.dilation[0]) * (int32_t)w.x_step[2] +
                                (sy.start + b * w.dilation[1]) * (int32_t)w.x_step[3];
                OPS_UNROLL_SOME
                for (int k = sx.first; k < sx.last; k++) {
                    seen(load<N>(from + k * step), v);
                    fold_in(v, all);
                }
            }
    }

    /* How many numbers a mean is of along a dimension. */
    OPS_BODY int32_t count(int d, int32_t at) const
    {
        const ops_window &w = p.w;
        if constexpr (SIZE == 0) {
            const span s = span_of(w, d, at);
            return p.include_pad ? s.padded : s.last - s.first;
        }
        const int32_t start = at * w.stride[d] - (p.include_pad ? 0 : w.pad_begin[d]);
        const int32_t room = w.in[d] + (p.include_pad ? w.pad_begin[d] + w.pad_end[d] : 0);
        int32_t       n = 0;
        OPS_UNROLL
        for (int k = 0; k < SIZE; k++)
            n += (uint32_t)(start + k * w.dilation[d]) < (uint32_t)room;
        return n;
    }
    OPS_BODY void finish(const at5 &to, float share, float (&all)[N]) const
    {
        const int64_t *step = p.w.y_step;
        OPS_UNROLL
        for (int e = 0; e < N; e++)
            all[e] = how::finished(all[e], share, (float)p.p);
        store(out, p.out_type,
              to.n * (int32_t)step[0] + to.c * (int32_t)step[1] + to.z * (int32_t)step[2] +
                  to.y * (int32_t)step[3] + to.x * (int32_t)step[4],
              all);
    }
    OPS_BODY void operator()(int64_t i) const
    {
        at5   to = place5(p.units, i);
        float all[RUN][N] = {};
        to.c *= N;
        to.y *= RUN;
        const int32_t at = to.n * (int32_t)p.w.x_step[0] + to.c * (int32_t)p.w.x_step[1];
        if constexpr (SIZE > 0)
            square(at, to, all);
        else
            any(at, to, all[0]);
        const bool    mean = KIND == OPS_POOL_AVERAGE;
        const int32_t beside = mean ? (SIZE ? 1 : count(0, to.z)) * count(2, to.x) : 0;
        OPS_UNROLL
        for (int k = 0; k < RUN; k++, to.y++) {
            const int32_t n = mean ? beside * count(1, to.y) : 0;
            if (to.y < p.w.out[1])
                finish(to, n ? 1.0f / (float)n : 0, all[k]);
        }
    }
};

template <class BODY, class T>
int packs_of(const struct ops_pool &p, const struct ops_ports *ports, void *stream)
{
    BODY body = {p, (const T *)ports->in[0], ports->out[0]};
    return each(body, p.units.count, stream);
}

/* Windows of one SIZE and STRIDE from row to row. */
template <class T, int N, int SIZE, int STRIDE>
int means_of(const struct ops_pool &p, const struct ops_ports *ports, void *stream)
{
    constexpr int RUN = OPS_POOL_RUN;
    if (p.run == RUN)
        return packs_of<pack_body<OPS_POOL_AVERAGE, T, N, SIZE, RUN, STRIDE>, T>(p, ports, stream);
    return packs_of<pack_body<OPS_POOL_AVERAGE, T, N, SIZE>, T>(p, ports, stream);
}

template <int KIND, class T, int N>
int packs_by(const struct ops_pool &p, const struct ops_ports *ports, void *stream)
{
    const int size = p.w.kernel[0] == 1 && p.w.kernel[1] == p.w.kernel[2] ? p.w.kernel[1] : 0;
    if constexpr (KIND == OPS_POOL_AVERAGE) {
        if (size == 2)
            return means_of<T, N, 2, 2>(p, ports, stream);
        if (size == 3)
            return p.w.stride[1] == 2 ? means_of<T, N, 3, 2>(p, ports, stream)
                                      : means_of<T, N, 3, 1>(p, ports, stream);
    }
    if constexpr (KIND == OPS_POOL_MAX) {
        if (size == 2)
            return packs_of<pack_body<KIND, T, N, 2>, T>(p, ports, stream);
        if (size == 3)
            return packs_of<pack_body<KIND, T, N, 3>, T>(p, ports, stream);
        if constexpr (sizeof(T) * N == 16)
            if (size == 5)
                return packs_of<pack_body<KIND, T, N, 5>, T>(p, ports, stream);
    }
    return packs_of<pack_body<KIND, T, N, 0>, T>(p, ports, stream);
}

/* Of p.vector channels at once. */
template <int KIND> int packs(const struct ops_pool &p, const struct ops_ports *ports, void *stream)
{
    if (p.in_type == SAC_F16)
        switch (p.vector) {
        case 8: return packs_by<KIND, uint16_t, 8>(p, ports, stream);
        case 4: return packs_by<KIND, uint16_t, 4>(p, ports, stream);
        case 2: return packs_by<KIND, uint16_t, 2>(p, ports, stream);
        default: return packs_by<KIND, uint16_t, 1>(p, ports, stream);
        }
    switch (p.vector) {
    case 4: return packs_by<KIND, float, 4>(p, ports, stream);
    case 2: return packs_by<KIND, float, 2>(p, ports, stream);
    default: return packs_by<KIND, float, 1>(p, ports, stream);
    }
}

} // namespace ops
