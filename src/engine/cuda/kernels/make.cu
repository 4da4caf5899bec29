/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/kernels/make.h"
#include "engine/cuda/kernels/team.cuh"

using namespace ops;

namespace
{

struct make_body {
    struct ops_make p;
    void           *out;
    OPS_BODY void   operator()(int64_t i) const
    {
        if (p.kind == OPS_MAKE_PATTERN) /* i counts bytes */
            ((uint8_t *)out)[i] = p.pattern[i % p.pattern_bytes];
        else if (p.kind == OPS_MAKE_RANGE)
            put(out, p.type, i, p.start + (double)i * p.step);
        else if (p.kind == OPS_MAKE_EYE)
            put(out, p.type, i, (double)(i % p.columns == i / p.columns + p.diagonal));
        else {
            const double angle = 2 * 3.14159265358979323846 * (double)i / p.period;
            put(out, p.type, i, p.a - p.b * cos(angle) + p.c * cos(2 * angle));
        }
    }
};

template <class UNIT> struct one_hot_body {
    struct ops_one_hot p;
    const void        *indices;
    const UNIT        *values; /* off, on */
    UNIT              *out;
    OPS_BODY void      operator()(int64_t i) const
    {
        const int64_t spot = i / p.inner % p.depth,
                      from = i / (p.inner * p.depth) * p.inner + i % p.inner;
        double index = get<double>(indices, p.index_type, from);
        index += index < 0 ? (double)p.depth : 0;
        out[i] = values[index == (double)spot];
    }
};

template <class UNIT> struct trilu_body {
    struct ops_trilu p;
    const UNIT      *in;
    UNIT            *out;
    OPS_BODY void    operator()(int64_t i) const
    {
        const int64_t column = i % p.columns, edge = i / p.columns % p.rows + p.k;
        out[i] = (p.upper ? column >= edge : column <= edge) ? in[i] : (UNIT)0;
    }
};

template <class UNIT> struct reverse_body {
    struct ops_reverse p;
    const UNIT        *in;
    const int64_t     *lengths;
    UNIT              *out;
    OPS_BODY void      operator()(int64_t i) const
    {
        const int64_t rest = i % p.run, b = i / p.run % p.second, a = i / p.run / p.second;
        const int64_t time = p.time_first ? a : b, n = p.time_first ? p.first : p.second;
        int64_t       length = lengths[p.time_first ? b : a];
        length = length < 0 ? 0 : length > n ? n : length;
        const int64_t from = time < length ? length - 1 - time : time;
        out[i] = in[p.time_first ? (from * p.second + b) * p.run + rest
                                 : (a * p.second + from) * p.run + rest];
    }
};

struct mel_body {
    struct ops_mel p;
    void          *out;
    OPS_BODY void  operator()(int64_t i) const
    {
        const int32_t j = (int32_t)(i / p.columns), k = (int32_t)(i % p.columns);
        const int32_t left = p.corner[k], top = p.corner[k + 1], right = p.corner[k + 2];
        double        v = 0;
        if (left == top && j == top)
            v = 1;
        if (left < top && j >= left && j <= top)
            v = (double)(j - left) / (double)(top - left);
        if (j >= top && j < right)
            v = (double)(right - j) / (double)(right - top);
        put(out, p.type, i, v);
    }
};

/* ---- quantisation ---- */

/* Lowest and highest, with zero in between: a team for all numbers. */
struct range_body {
    struct ops_dynamic_quantize         p;
    const void                         *in;
    float                              *range, *scale_out;
    uint8_t                            *zero_out;
    template <class TEAM> OPS_BODY void operator()(int64_t, int, const TEAM &team) const
    {
        float lo = 0, hi = 0;
        for (int64_t i = team.lane(); i < p.n; i += team.lanes()) {
            const float x = get_float(in, p.in_type, i);
            lo = fminf(lo, x);
            hi = fmaxf(hi, x);
        }
        lo = team.all(lo, smaller<float>());
        hi = team.all(hi, larger<float>());
        if (team.lane() != 0)
            return;
        const float scale = hi > lo ? (hi - lo) / 255 : 1;
        const float zero = fminf(fmaxf(rintf(-lo / scale), 0), 255);
        range[0] = scale;
        range[1] = zero;
        if (scale_out)
            *scale_out = scale;
        if (zero_out)
            *zero_out = (uint8_t)zero;
    }
};

struct by_range_body {
    struct ops_dynamic_quantize p;
    const void                 *in;
    const float                *range;
    void                       *out;
    OPS_BODY void               operator()(int64_t i) const
    {
        put(out, SAC_U8, i, (double)(rintf(get_float(in, p.in_type, i) / range[0]) + range[1]));
    }
};

} // namespace

extern "C" int ops_launch_make(const void *params, const struct ops_ports *ports, void *stream)
{
    make_body body = {*(const struct ops_make *)params, ports->out[0]};
    return each(body, body.p.count, stream);
}

extern "C" int ops_launch_one_hot(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_one_hot *p = (const struct ops_one_hot *)params;
    return by_bytes(p->bytes, [&](auto unit) {
        using UNIT = decltype(unit);
        one_hot_body<UNIT> body = {*p, ports->in[0], (const UNIT *)ports->in[2],
                                   (UNIT *)ports->out[0]};
        return each(body, p->count, stream);
    });
}

extern "C" int ops_launch_trilu(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_trilu *p = (const struct ops_trilu *)params;
    return by_bytes(p->bytes, [&](auto unit) {
        using UNIT = decltype(unit);
        trilu_body<UNIT> body = {*p, (const UNIT *)ports->in[0], (UNIT *)ports->out[0]};
        return each(body, p->count, stream);
    });
}

extern "C" int ops_launch_reverse(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_reverse *p = (const struct ops_reverse *)params;
    return by_bytes(p->bytes, [&](auto unit) {
        using UNIT = decltype(unit);
        reverse_body<UNIT> body = {*p, (const UNIT *)ports->in[0], (const int64_t *)ports->in[1],
                                   (UNIT *)ports->out[0]};
        return each(body, p->count, stream);
    });
}

extern "C" int ops_launch_mel(const void *params, const struct ops_ports *ports, void *stream)
{
    mel_body body = {*(const struct ops_mel *)params, ports->out[0]};
    return each(body, body.p.rows * body.p.columns, stream);
}

extern "C" int ops_launch_dynamic_quantize(const void *params, const struct ops_ports *ports,
                                           void *stream)
{
    const struct ops_dynamic_quantize *p = (const struct ops_dynamic_quantize *)params;
    range_body                         range = {*p, ports->in[0], (float *)ports->scratch,
                        p->wants & 2 ? (float *)ports->out[1] : NULL,
                        p->wants & 4 ? (uint8_t *)ports->out[2] : NULL};
    int                                res = lines<BLOCKS>(range, OPS_TEAM_BLOCK, 1, 1, stream);
    if (res || !(p->wants & 1))
        return res;
    by_range_body body = {*p, ports->in[0], (const float *)ports->scratch, ports->out[0]};
    return each(body, p->n, stream);
}
