/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, LogSoftmax, Hardmax. T: float, or double for float64. */
#include "engine/cuda/kernels/team.cuh"

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

template <class T> int run(const struct ops_softmax &p, const struct ops_ports *ports, void *stream)
{
    softmax_body<T> body = {p, ports->in[0], ports->out[0]};
    return lines(body, p.lines.team, p.lines.outer.count, 1, stream);
}

} // namespace

extern "C" int ops_launch_softmax(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_softmax *p = (const struct ops_softmax *)params;
    return p->in_type == SAC_F64 ? run<double>(*p, ports, stream) : run<float>(*p, ports, stream);
}
