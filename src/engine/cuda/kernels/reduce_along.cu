/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of lines that lie densely: by as many numbers at once as lie together in all of them,
 * and several loads are under way before the first is waited for. */
#include "engine/cuda/kernels/folding.cuh"
#include "engine/cuda/kernels/held.cuh"

using namespace ops;

namespace
{

template <class HOW> struct fold_both {
    template <class V> OPS_BODY V operator()(V a, V b) const
    {
        return HOW::folded(a, b);
    }
};

template <class T, int N> struct along_body {
    static constexpr int TURNS = 4; /* loads that are under way */
    struct ops_reduce    p;
    const T             *in;
    void                *out;
    double              *partial; /* [parts][rows], or NULL */

    /* What a thread makes of its part of the packs first.. last-1: a few numbers in SOME, and of
     * these ALL. */
    template <class HOW, class SOME, class ALL>
    static OPS_BODY ALL own(const T *line, int64_t first, int64_t last, int lanes, float top)
    {
        ALL all = HOW::none();
        for (int64_t j = first; j < last; j += TURNS * lanes) {
            pack<T, N> raw[TURNS];
            SOME       some = HOW::none();
            OPS_UNROLL
            for (int t = 0; t < TURNS; t++)
                if (j + t * lanes < last)
                    raw[t] = load<N>(line + (j + t * lanes) * N);
            OPS_UNROLL
            for (int t = 0; t < TURNS; t++) {
                float v[N];
                if (j + t * lanes >= last)
                    continue;
                raw[t].to(v);
                OPS_UNROLL
                for (int e = 0; e < N; e++)
                    some = HOW::folded(some, (SOME)HOW::seen(v[e], top));
            }
            all = HOW::folded(all, (ALL)some);
        }
        return all;
    }
    template <int KIND, class SOME, class ALL, class TEAM>
    OPS_BODY ALL fold(const T *line, int part, float top, const TEAM &team) const
    {
        typedef folding<KIND> how;
        const int64_t         n = team.live() ? p.lines.inner.count / N : 0;
        const int64_t         first = part_start(n, part, p.lines.parts) + team.lane();
        const int64_t         last = part_start(n, part + 1, p.lines.parts);
        return team.all(own<how, SOME, ALL>(line, first, last, team.lanes(), top),
                        fold_both<how>());
    }
    /* Products in double: what overflows on the way may come back. */
    template <class TEAM> OPS_BODY double value(const T *line, int part, const TEAM &team) const
    {
        float top;
        switch (p.kind) {
        case OPS_REDUCE_SUM: return fold<OPS_REDUCE_SUM, float, double>(line, part, 0, team);
        case OPS_REDUCE_ABS: return fold<OPS_REDUCE_ABS, float, double>(line, part, 0, team);
        case OPS_REDUCE_SQUARE: return fold<OPS_REDUCE_SQUARE, float, double>(line, part, 0, team);
        case OPS_REDUCE_PROD: return fold<OPS_REDUCE_PROD, double, double>(line, part, 0, team);
        case OPS_REDUCE_MAX: return fold<OPS_REDUCE_MAX, float, float>(line, part, 0, team);
        case OPS_REDUCE_MIN: return fold<OPS_REDUCE_MIN, float, float>(line, part, 0, team);
        default:
            top = finite_or_0(fold<OPS_REDUCE_MAX, float, float>(line, part, 0, team));
            return log(fold<OPS_REDUCE_LOG_SUM_EXP, float, double>(line, part, top, team)) + top;
        }
    }
    template <class TEAM> OPS_BODY void operator()(int64_t row, int part, const TEAM &team) const
    {
        int64_t at[2];
        place(p.lines.outer, row, at);
        const double v = value(in + at[0], part, team);
        if (team.live() && team.lane() == 0)
            put_result(p, out, partial, row, part, at[1], v);
    }
};

template <class T, int N>
int along(const struct ops_reduce &p, const struct ops_ports *ports, void *stream)
{
    const struct ops_lines &l = p.lines;
    along_body<T, N>        body = {p, (const T *)ports->in[0], ports->out[0],
                             l.parts > 1 ? (double *)ports->scratch : NULL};
    return l.team == OPS_TEAM_BLOCK
               ? lines<BLOCKS>(body, OPS_TEAM_BLOCK, l.outer.count, l.parts, stream)
               : groups(body, l.width, l.outer.count, stream);
}

} // namespace

extern "C" int ops_launch_reduce_along(const void *params, const struct ops_ports *ports,
                                       void *stream)
{
    const struct ops_reduce *p = (const struct ops_reduce *)params;
    const int                n = fits_pack(ports->in[0], p->along, p->in_type) ? p->along : 1;
    if (p->in_type == SAC_F32)
        return n == 4   ? along<float, 4>(*p, ports, stream)
               : n == 2 ? along<float, 2>(*p, ports, stream)
                        : along<float, 1>(*p, ports, stream);
    switch (n) {
    case 8: return along<uint16_t, 8>(*p, ports, stream);
    case 4: return along<uint16_t, 4>(*p, ports, stream);
    case 2: return along<uint16_t, 2>(*p, ports, stream);
    default: return along<uint16_t, 1>(*p, ports, stream);
    }
}
