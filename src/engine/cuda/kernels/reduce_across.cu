/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of lines that lie side by side, as over an axis with a long contiguous rest behind it:
 * a thread folds as many neighbouring lines as 16 bytes hold, or one. */
#include "engine/cuda/kernels/folding.cuh"
#include "engine/cuda/kernels/pack.cuh"

using namespace ops;

namespace
{

template <int KIND, class T, int N> struct across_body {
    static constexpr int     TURNS = 4;   /* loads that are under way */
    static constexpr int64_t FLOATS = 64; /* numbers that are added up before double takes over */
    struct ops_reduce        p;
    const T                 *in;
    void                    *out;

    /* Numbers first.. last-1 of the lines. */
    template <class HOW, class V>
    OPS_BODY void take(const T *lines, int64_t first, int64_t last, const float (&top)[N],
                       V (&all)[N]) const
    {
        const int64_t step = p.lines.inner.step[0][0];
        OPS_UNROLL
        for (int e = 0; e < N; e++)
            all[e] = HOW::none();
        for (int64_t j = first; j < last; j += TURNS) {
            pack<T, N> raw[TURNS];
            OPS_UNROLL
            for (int t = 0; t < TURNS; t++)
                if (j + t < last)
                    raw[t] = load<N>(lines + (j + t) * step);
            OPS_UNROLL
            for (int t = 0; t < TURNS; t++) {
                float v[N];
                if (j + t >= last)
                    continue;
                raw[t].to(v);
                OPS_UNROLL
                for (int e = 0; e < N; e++)
                    all[e] = HOW::folded(all[e], (V)HOW::seen(v[e], top[e]));
            }
        }
    }
    /* Of many numbers. */
    template <class HOW>
    OPS_BODY void sum(const T *lines, const float (&top)[N], float (&all)[N]) const
    {
        const int64_t n = p.lines.inner.count;
        double        total[N] = {};
        for (int64_t j = 0; j < n; j += FLOATS) {
            take<HOW>(lines, j, j + FLOATS < n ? j + FLOATS : n, top, all);
            OPS_UNROLL
            for (int e = 0; e < N; e++)
                total[e] += all[e];
        }
        OPS_UNROLL
        for (int e = 0; e < N; e++)
            all[e] = (float)total[e];
    }
    template <class HOW>
    OPS_BODY void fold(const T *lines, const float (&top)[N], float (&all)[N]) const
    {
        const int64_t n = p.lines.inner.count;
        if constexpr (HOW::PRODUCT) { /* what overflows on the way may come back */
            double product[N];
            take<HOW>(lines, 0, n, top, product);
            OPS_UNROLL
            for (int e = 0; e < N; e++)
                all[e] = (float)product[e];
        } else if (n > FLOATS && !HOW::LARGEST && !HOW::LEAST)
            sum<HOW>(lines, top, all);
        else
            take<HOW>(lines, 0, n, top, all);
    }
    OPS_BODY void finish(const float (&top)[N], float (&all)[N]) const
    {
        const float share = p.finish == OPS_FINISH_MEAN ? 1.0f / (float)p.lines.inner.count : 1;
        const bool  logs = KIND == OPS_REDUCE_LOG_SUM_EXP ||
                          (KIND == OPS_REDUCE_SUM && p.finish == OPS_FINISH_LOG);
        OPS_UNROLL
        for (int e = 0; KIND == OPS_REDUCE_SUM && e < N; e++)
            all[e] *= share;
        OPS_UNROLL
        for (int e = 0; logs && e < N; e++)
            all[e] = logf(all[e]) + top[e];
        OPS_UNROLL
        for (int e = 0; KIND == OPS_REDUCE_SQUARE && p.finish == OPS_FINISH_SQRT && e < N; e++)
            all[e] = sqrtf(all[e]);
    }
    OPS_BODY void operator()(int64_t unit) const
    {
        float   top[N] = {}, all[N];
        int64_t at[2];
        place(N == 1 ? p.lines.outer : p.units, unit, at);
        const T *lines = in + at[0] * N;
        if (KIND == OPS_REDUCE_LOG_SUM_EXP) {
            fold<folding<OPS_REDUCE_MAX>>(lines, top, all);
            OPS_UNROLL
            for (int e = 0; e < N; e++) /* infinity less infinity would be NaN */
                top[e] = all[e] == INFINITY || all[e] == -INFINITY ? 0 : all[e];
        }
        fold<folding<KIND>>(lines, top, all);
        finish(top, all);
        store(out, p.out_type, at[1] * N, all);
    }
};

template <int KIND, class T, int N>
int across_of(const struct ops_reduce &p, const struct ops_ports *ports, void *stream)
{
    across_body<KIND, T, N> body = {p, (const T *)ports->in[0], ports->out[0]};
    return each(body, N == 1 ? p.lines.outer.count : p.units.count, stream);
}

template <int KIND>
int across(const struct ops_reduce &p, const struct ops_ports *ports, void *stream)
{
    constexpr int HALVES = 8, FLOATS = 4;
    const bool    half = p.in_type == SAC_F16;
    const bool    packs = p.across > 1 && fits_pack(ports->in[0], p.across, p.in_type) &&
                       fits_pack(ports->out[0], p.across, p.out_type);
    if (packs)
        return half ? across_of<KIND, uint16_t, HALVES>(p, ports, stream)
                    : across_of<KIND, float, FLOATS>(p, ports, stream);
    return half ? across_of<KIND, uint16_t, 1>(p, ports, stream)
                : across_of<KIND, float, 1>(p, ports, stream);
}

} // namespace

extern "C" int ops_launch_reduce_across(const void *params, const struct ops_ports *ports,
                                        void *stream)
{
    const struct ops_reduce *p = (const struct ops_reduce *)params;
    switch (p->kind) {
    case OPS_REDUCE_SUM: return across<OPS_REDUCE_SUM>(*p, ports, stream);
    case OPS_REDUCE_ABS: return across<OPS_REDUCE_ABS>(*p, ports, stream);
    case OPS_REDUCE_SQUARE: return across<OPS_REDUCE_SQUARE>(*p, ports, stream);
    case OPS_REDUCE_PROD: return across<OPS_REDUCE_PROD>(*p, ports, stream);
    case OPS_REDUCE_MAX: return across<OPS_REDUCE_MAX>(*p, ports, stream);
    case OPS_REDUCE_MIN: return across<OPS_REDUCE_MIN>(*p, ports, stream);
    default: return across<OPS_REDUCE_LOG_SUM_EXP>(*p, ports, stream);
    }
}
