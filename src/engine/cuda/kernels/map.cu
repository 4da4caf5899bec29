/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise operators: see map.h. Float16 and float32 whose innermost dimension is a multiple of
 * eight are read and written 16 bytes at a time; everything else element by element. */
#include "engine/cuda/kernels/functions.cuh"

using namespace ops;

namespace
{

template <class T> struct map_body {
    struct ops_map p;
    const void    *in[3];
    void          *out;
    OPS_BODY void  operator()(int64_t i) const
    {
        int64_t at[4];
        T       v[3] = {0, 0, 0};
        place(p.view, i, at);
        for (int k = 0; k < p.inputs; k++)
            v[k] = get<T>(in[k], p.dtype[k + 1], at[k + 1]);
        put<T>(out, p.dtype[0], at[0], apply(p.fn, v[0], v[1], v[2], p.a, p.b));
    }
};

/* The functions that take most of networks' time; including the others would cost these
 * registers. */
/* clang-format off */
#define LIGHT(F) \
    F(OPS_FN_IDENTITY) F(OPS_FN_ABS) F(OPS_FN_CLIP) F(OPS_FN_EXP) F(OPS_FN_GELU) \
    F(OPS_FN_HARD_SIGMOID) F(OPS_FN_HARD_SWISH) F(OPS_FN_LEAKY_RELU) F(OPS_FN_NEG) \
    F(OPS_FN_RECIPROCAL) F(OPS_FN_RELU) F(OPS_FN_SIGMOID) F(OPS_FN_SQRT) F(OPS_FN_SWISH) \
    F(OPS_FN_TANH) F(OPS_FN_SOFTPLUS) F(OPS_FN_ADD) F(OPS_FN_SUB) F(OPS_FN_MUL) F(OPS_FN_DIV) \
    F(OPS_FN_MAX) F(OPS_FN_MIN) F(OPS_FN_MEAN_LAST) F(OPS_FN_PRELU) F(OPS_FN_SWIGLU)
/* clang-format on */

bool is_light(int fn)
{
#define IS(f) fn == f ||
    return LIGHT(IS) false;
#undef IS
}

template <int INPUTS> struct map8_body {
    struct ops_map p;
    const void    *in[INPUTS];
    void          *out;
    OPS_BODY void  operator()(int64_t i) const
    {
        int64_t     at[INPUTS + 1];
        float       v[2][LANES] = {}, y[LANES];
        const float a = (float)p.a, b = (float)p.b;
        place(p.units, i, at);
        OPS_UNROLL
        for (int k = 0; k < INPUTS; k++) {
            const bool still = p.stills >> (k + 1) & 1;
            get8_or_one(in[k], p.dtype[k + 1], still ? at[k + 1] : at[k + 1] * LANES, still, v[k]);
        }
        switch (p.fn) {
#define EIGHT(f)                                                   \
    case f:                                                        \
        OPS_UNROLL                                                 \
        for (int k = 0; k < LANES; k++)                            \
            y[k] = real_function(f, v[0][k], v[1][k], 0.0f, a, b); \
        break;
            LIGHT(EIGHT)
#undef EIGHT
        default: return;
        }
        put8(out, p.dtype[0], at[0] * LANES, y);
    }
};

int launch(const struct ops_map &p, const struct ops_ports *ports, void *stream)
{
    void       *out = ports->out[0];
    const void *in[3] = {NULL, NULL, NULL};
    bool        vector = p.vector && is_light(p.fn) && fits16(out);
    for (int k = 0; k < p.inputs; k++) {
        in[k] = p.port[k] < 0 ? out : ports->in[p.port[k]];
        vector = vector && (fits16(in[k]) || p.stills >> (k + 1) & 1);
    }
    if (vector && p.inputs == 1) {
        map8_body<1> body = {p, {in[0]}, out};
        return each(body, p.units.count, stream);
    }
    if (vector && p.inputs == 2) {
        map8_body<2> body = {p, {in[0], in[1]}, out};
        return each(body, p.units.count, stream);
    }
    return by_class(p.type, [&](auto number) {
        map_body<decltype(number)> body = {p, {in[0], in[1], in[2]}, out};
        return each(body, p.view.count, stream);
    });
}

/* ---- casts ---- */

/* Rounds towards zero; values out of range saturate, NaN is 0. */
OPS_BODY int64_t truncate_i64(double v)
{
    return v != v ? 0 : v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : (int64_t)v;
}
OPS_BODY uint64_t truncate_u64(double v)
{
    return v >= 0x1p63 ? (v < 0x1p64 ? (uint64_t)v : UINT64_MAX) : (uint64_t)truncate_i64(v);
}
OPS_BODY int64_t to_i64(double v)
{
    return truncate_i64(v);
}
OPS_BODY uint64_t to_u64(double v)
{
    return truncate_u64(v);
}
OPS_BODY int64_t to_i64(int64_t v)
{
    return v;
}
OPS_BODY uint64_t to_u64(int64_t v)
{
    return (uint64_t)v;
}
OPS_BODY int64_t to_i64(uint64_t v)
{
    return (int64_t)v;
}
OPS_BODY uint64_t to_u64(uint64_t v)
{
    return v;
}

/* T: double for all floats, as it holds them all. */
template <class T> struct cast_body {
    struct ops_map p;
    const void    *in;
    void          *out;
    OPS_BODY void  operator()(int64_t i) const
    {
        int64_t at[2];
        place(p.view, i, at);
        const T v = get<T>(in, p.dtype[1], at[1]);
        if (p.dtype[0] == SAC_BOOL)
            ((uint8_t *)out)[at[0]] = v != 0;
        else if (p.fn == OPS_FLOAT)
            put_float(out, p.dtype[0], at[0], (float)v);
        else if (p.fn == OPS_DOUBLE)
            ((double *)out)[at[0]] = (double)v;
        else if (p.fn == OPS_INT64)
            put_int(out, p.dtype[0], at[0], to_i64(v));
        else
            ((uint64_t *)out)[at[0]] = to_u64(v);
    }
};

template <class T> int cast(const struct ops_map &p, const struct ops_ports *ports, void *stream)
{
    cast_body<T> body = {p, ports->in[0], ports->out[0]};
    return each(body, p.view.count, stream);
}

/* ---- GatedSum ---- */

struct gated_body {
    struct ops_gated p;
    const void      *x[OPS_GATES_MAX], *gate[OPS_GATES_MAX];
    void            *out;
    OPS_BODY void    operator()(int64_t i) const
    {
        int64_t at[4];
        float   sum = 0;
        place(p.view, i, at);
        for (int k = 0; k < p.count; k++)
            sum += get_float(x[k], p.x_type[k], at[1]) *
                   get_float(gate[k], p.gate_type[k], p.shared[k] ? at[3] : at[2]);
        put_float(out, p.out_type, at[0], sum);
    }
};

struct gated8_body {
    struct ops_gated p;
    const void      *x[OPS_GATES_MAX], *gate[OPS_GATES_MAX];
    void            *out;
    OPS_BODY void    operator()(int64_t i) const
    {
        int64_t at[4];
        float   sum[LANES] = {}, v[LANES], g[LANES];
        place(p.units, i, at);
        for (int k = 0; k < p.count; k++) {
            const int  which = p.shared[k] ? 3 : 2;
            const bool still = p.stills >> which & 1;
            get8(x[k], p.x_type[k], at[1] * LANES, v);
            const int64_t from = which == 3 ? at[3] : at[2];
            get8_or_one(gate[k], p.gate_type[k], still ? from : from * LANES, still, g);
            OPS_UNROLL
            for (int j = 0; j < LANES; j++)
                sum[j] += v[j] * g[j];
        }
        put8(out, p.out_type, at[0] * LANES, sum);
    }
};

template <class BODY>
int gated(const struct ops_gated &p, const struct ops_ports *ports, int64_t count, void *stream)
{
    BODY body;
    body.p = p;
    body.out = ports->out[0];
    for (int k = 0; k < p.count; k++) {
        body.x[k] = ports->in[2 * k];
        body.gate[k] = ports->in[2 * k + 1];
    }
    return each(body, count, stream);
}

} // namespace

extern "C" int ops_launch_map(const void *params, const struct ops_ports *ports, void *stream)
{
    return launch(*(const struct ops_map *)params, ports, stream);
}

extern "C" int ops_launch_chain(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_map_chain *p = (const struct ops_map_chain *)params;
    int                         res = 0;
    for (int i = 0; i < p->count && res == 0; i++)
        res = launch(p->step[i], ports, stream);
    return res;
}

extern "C" int ops_launch_cast(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_map *p = (const struct ops_map *)params;
    if (p->type == OPS_INT64)
        return cast<int64_t>(*p, ports, stream);
    return p->type == OPS_UINT64 ? cast<uint64_t>(*p, ports, stream)
                                 : cast<double>(*p, ports, stream);
}

extern "C" int ops_launch_gated(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_gated *p = (const struct ops_gated *)params;
    bool                    vector = p->vector && fits16(ports->out[0]);
    for (int k = 0; k < p->count; k++)
        vector = vector && fits16(ports->in[2 * k]) &&
                 (fits16(ports->in[2 * k + 1]) || p->stills >> (p->shared[k] ? 3 : 2) & 1);
    return vector ? gated<gated8_body>(*p, ports, p->units.count, stream)
                  : gated<gated_body>(*p, ports, p->view.count, stream);
}
