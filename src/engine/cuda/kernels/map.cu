/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise operators: see map.h. Float16 and float32 whose innermost dimension is a multiple of
 * eight are read and written 16 bytes at a time; everything else element by element. */
#include "engine/cuda/kernels/functions.cuh"
#include "engine/cuda/kernels/pack.cuh"

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
        OPS_UNROLL
        for (int k = 0; k < 3; k++)
            if (k < p.inputs)
                v[k] = get<T>(in[k], p.dtype[k + 1], at[k + 1]);
        put<T>(out, p.dtype[0], at[0], apply(p.fn, v[0], v[1], v[2], p.a, p.b));
    }
};

/* The functions that take most of networks' time; including the others would cost these
 * registers. */
/* clang-format off */
#define LIGHT_1(F) \
    F(OPS_FN_IDENTITY) F(OPS_FN_ABS) F(OPS_FN_CLIP) F(OPS_FN_ERF) F(OPS_FN_EXP) F(OPS_FN_GELU) \
    F(OPS_FN_GELU_TANH) F(OPS_FN_HARD_SIGMOID) F(OPS_FN_HARD_SWISH) F(OPS_FN_IS_NAN) \
    F(OPS_FN_LEAKY_RELU) F(OPS_FN_LOG) F(OPS_FN_NEG) F(OPS_FN_RECIPROCAL) F(OPS_FN_RELU) \
    F(OPS_FN_SIGMOID) F(OPS_FN_SQRT) F(OPS_FN_SWISH) F(OPS_FN_TANH) F(OPS_FN_SOFTPLUS) \
    F(OPS_FN_SQUARED_RELU)
#define LIGHT_2(F) \
    F(OPS_FN_ADD) F(OPS_FN_SUB) F(OPS_FN_MUL) F(OPS_FN_DIV) F(OPS_FN_MAX) F(OPS_FN_MIN) \
    F(OPS_FN_MEAN_LAST) F(OPS_FN_PRELU) F(OPS_FN_SWIGLU) F(OPS_FN_EQUAL) F(OPS_FN_GREATER) \
    F(OPS_FN_GREATER_OR_EQUAL) F(OPS_FN_LESS) F(OPS_FN_LESS_OR_EQUAL)
#define LIGHT_3(F) F(OPS_FN_WHERE) F(OPS_FN_CLIP_BY)
/* clang-format on */

bool is_light(int fn)
{
#define IS(f) fn == f ||
    return LIGHT_1(IS) LIGHT_2(IS) LIGHT_3(IS) false;
#undef IS
}

/* fn of N numbers of each input. */
template <int INPUTS, int N>
OPS_BODY void some_of(const struct ops_map &p, const float (&v)[INPUTS][N], float (&y)[N])
{
    const float   a = (float)p.a, b = (float)p.b;
    constexpr int SECOND = INPUTS > 1 ? 1 : 0, THIRD = INPUTS > 2 ? 2 : 0;
#define SOME(f)                                                                \
    case f:                                                                    \
        OPS_UNROLL                                                             \
        for (int k = 0; k < N; k++)                                            \
            y[k] = real_function(f, v[0][k], v[SECOND][k], v[THIRD][k], a, b); \
        return;
    if constexpr (INPUTS == 1)
        switch (p.fn) {
            LIGHT_1(SOME)
        }
    else if constexpr (INPUTS == 2)
        switch (p.fn) {
            LIGHT_2(SOME)
        }
    else
        switch (p.fn) {
            LIGHT_3(SOME)
        }
#undef SOME
}

template <int INPUTS> struct map8_body {
    struct ops_map p;
    const void    *in[INPUTS];
    void          *out;
    OPS_BODY void  operator()(int64_t i) const
    {
        int64_t at[INPUTS + 1];
        raw8    raw[INPUTS] = {};
        float   v[INPUTS][LANES], y[LANES] = {};
        place(p.units, i, at);
        OPS_UNROLL
        for (int k = 0; k < INPUTS; k++)
            if (!still(k))
                raw[k] = load8(in[k], p.dtype[k + 1], at[k + 1] * LANES);
        OPS_UNROLL
        for (int k = 0; k < INPUTS; k++)
            if (still(k))
                get8_or_one(in[k], p.dtype[k + 1], at[k + 1], true, v[k]);
            else
                floats_of(raw[k], p.dtype[k + 1], v[k]);
        some_of<INPUTS>(p, v, y);
        put8(out, p.dtype[0], at[0] * LANES, y);
    }
    OPS_BODY bool still(int k) const
    {
        return p.stills >> (k + 1) & 1;
    }
};

/* Four at once: slices of maps whose pixels are not a multiple of eight numbers. */
template <int INPUTS> struct map4_body {
    struct ops_map p;
    const void    *in[INPUTS];
    void          *out;
    OPS_BODY void  operator()(int64_t i) const
    {
        int64_t at[INPUTS + 1];
        float   v[INPUTS][4], y[4] = {};
        place(p.units, i, at);
        OPS_UNROLL
        for (int k = 0; k < INPUTS; k++)
            if (p.stills >> (k + 1) & 1) {
                const float x = get_float(in[k], p.dtype[k + 1], at[k + 1]);
                v[k][0] = v[k][1] = v[k][2] = v[k][3] = x;
            } else
                get4(in[k], p.dtype[k + 1], at[k + 1] * 4, v[k]);
        some_of<INPUTS>(p, v, y);
        put4(out, p.dtype[0], at[0] * 4, y);
    }
};

/* Eight numbers of an output that is dense, wherever those of the inputs are: where the innermost
 * dimension does not come in eights, an input that is broadcast is read number by number, but
 * divisions take place once or twice. */
template <int INPUTS> struct dense_body {
    struct ops_map p;
    const void    *in[INPUTS];
    void          *out;

    static OPS_BODY float number(const void *from, int type, int64_t at)
    {
        return type == SAC_F16    ? half_to_float(((const uint16_t *)from)[at])
               : type == SAC_BOOL ? (float)((const uint8_t *)from)[at]
                                  : ((const float *)from)[at];
    }
    /* The offset of index i in input k. */
    OPS_BODY int64_t offset(int k, uint32_t i) const
    {
        const struct ops_view &w = p.view;
        int64_t                at = w.start[k + 1];
        for (int d = w.rank - 1; d > 0; d--) {
            const uint32_t above = divide(i, w.dim[d]);
            at += (i - above * w.dim[d].d) * w.step[k + 1][d];
            i = above;
        }
        return at + i * w.step[k + 1][0];
    }
    /* Where the numbers from index i on are; n of them are there, the others read the first. */
    OPS_BODY void offsets(int k, uint32_t i, int n, int64_t (&at)[LANES]) const
    {
        const struct ops_view &w = p.view;
        const int              inner = w.rank - 1;
        const uint32_t         size = w.dim[inner].d, last = (uint32_t)w.count - 1;
        if (size < LANES) {
            OPS_UNROLL
            for (int e = 0; e < LANES; e++)
                at[e] = offset(k, e < n ? i + e : i);
            return;
        }
        const int64_t step = w.step[k + 1][inner];
        const int32_t left = (int32_t)(size - (i - divide(i, w.dim[inner]) * size)); /* in this run
                                                                                      */
        const int64_t here = offset(k, i),
                      next = offset(k, i + left < last ? i + left : last) - left * step;
        OPS_UNROLL
        for (int e = 0; e < LANES; e++)
            at[e] = e >= n ? here : (e < left ? here : next) + e * step;
    }
    OPS_BODY void read(int k, uint32_t i, int n, float (&v)[LANES]) const
    {
        const void *from = in[k];
        const int   type = p.dtype[k + 1];
        int64_t     at[LANES];
        if (p.beside[k] == OPS_BESIDE_PLACED)
            offsets(k, i, n, at);
        else
            OPS_UNROLL
        for (int e = 0; e < LANES; e++)
            at[e] = p.beside[k] == OPS_BESIDE_ONE ? p.view.start[k + 1] : i + (e < n ? e : 0);
        if (type == SAC_F16)
            OPS_UNROLL
        for (int e = 0; e < LANES; e++)
            v[e] = number(from, SAC_F16, at[e]);
        else if (type == SAC_BOOL) OPS_UNROLL for (int e = 0; e < LANES; e++) v[e] =
            number(from, SAC_BOOL, at[e]);
        else OPS_UNROLL for (int e = 0; e < LANES; e++) v[e] = number(from, SAC_F32, at[e]);
    }
    OPS_BODY void write_one(int64_t at, float y) const
    {
        if (p.dtype[0] == SAC_BOOL)
            ((uint8_t *)out)[at] = y != 0;
        else
            put_float(out, p.dtype[0], at, y);
    }

    OPS_BODY void operator()(int64_t unit) const
    {
        const uint32_t i = (uint32_t)unit * LANES, left = (uint32_t)p.view.count - i;
        const int      n = left < LANES ? (int)left : LANES;
        raw8           raw[INPUTS] = {};
        float          v[INPUTS][LANES], y[LANES] = {};
        OPS_UNROLL
        for (int k = 0; k < INPUTS; k++)
            if (p.beside[k] == OPS_BESIDE_EACH && n == LANES)
                raw[k] = load8(in[k], p.dtype[k + 1], i);
        OPS_UNROLL
        for (int k = 0; k < INPUTS; k++)
            if (p.beside[k] == OPS_BESIDE_EACH && n == LANES)
                floats_of(raw[k], p.dtype[k + 1], v[k]);
            else
                read(k, i, n, v[k]);
        some_of<INPUTS>(p, v, y);
        if (n == LANES)
            put8(out, p.dtype[0], i, y);
        else
            for (int e = 0; e < LANES; e++)
                if (e < n)
                    write_one(i + e, y[e]);
    }
};

template <template <int> class BODY>
int eights(const struct ops_map &p, const void *const *in, void *out, int64_t units, void *stream)
{
    if (p.inputs == 1) {
        BODY<1> body = {p, {in[0]}, out};
        return each(body, units, stream);
    }
    if (p.inputs == 2) {
        BODY<2> body = {p, {in[0], in[1]}, out};
        return each(body, units, stream);
    }
    BODY<3> body = {p, {in[0], in[1], in[2]}, out};
    return each(body, units, stream);
}

/* Does the address allow `vector` numbers of the dtype at once? */
bool fits(const void *p, int vector, int type)
{
    return (uintptr_t)p % (vector == 4 && type == SAC_F16 ? 8 : 16) == 0;
}

int launch(const struct ops_map &p, const struct ops_ports *ports, void *stream)
{
    void       *out = ports->out[0];
    const void *in[3] = {NULL, NULL, NULL};
    const bool  light = is_light(p.fn);
    bool        vector = p.vector && light && fits(out, p.vector, p.dtype[0]),
         dense = p.dense && light && fits16(out);
    for (int k = 0; k < p.inputs; k++) {
        in[k] = p.port[k] < 0 ? out : ports->in[p.port[k]];
        vector = vector && (fits(in[k], p.vector, p.dtype[k + 1]) || p.stills >> (k + 1) & 1);
        dense = dense && (fits16(in[k]) || p.beside[k] != OPS_BESIDE_EACH);
    }
    if (vector && p.vector == LANES)
        return eights<map8_body>(p, in, out, p.units.count, stream);
    if (dense)
        return eights<dense_body>(p, in, out, (p.view.count + LANES - 1) / LANES, stream);
    if (vector)
        return eights<map4_body>(p, in, out, p.units.count, stream);
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
            for (int j = 0; j < p.parts; j++)
                sum += get_float(x[k], p.x_type[k], at[1] + j * p.x_part) *
                       get_float(gate[k], p.gate_type[k],
                                 (p.shared[k] ? at[3] : at[2]) + j * p.gate_part);
        put_float(out, p.out_type, at[0], activated(p.activation, sum, (float)p.a, (float)p.b));
    }
};

/* N neighbouring channels. */
template <int N> struct gated_some_body {
    struct ops_gated p;
    const void      *x[OPS_GATES_MAX], *gate[OPS_GATES_MAX];
    void            *out;

    static OPS_BODY void get(const void *from, int type, int64_t at, float (&v)[N])
    {
        if (type == SAC_F16)
            load<N>((const uint16_t *)from + at).to(v);
        else
            load<N>((const float *)from + at).to(v);
    }
    static OPS_BODY void get_or_one(const void *from, int type, int64_t at, bool one, float (&v)[N])
    {
        if (!one) {
            get(from, type, at, v);
            return;
        }
        v[0] = get_float(from, type, at);
        OPS_UNROLL
        for (int j = 1; j < N; j++)
            v[j] = v[0];
    }
    OPS_BODY void operator()(int64_t i) const
    {
        int64_t at[4];
        float   sum[N] = {};
        place(p.units, i, at);
        for (int k = 0; k < p.count; k++) {
            const int     which = p.shared[k] ? 3 : 2;
            const bool    still = p.stills >> which & 1;
            const int64_t from = which == 3 ? at[3] : at[2];
            for (int part = 0; part < p.parts; part++) {
                float v[N], g[N];
                get(x[k], p.x_type[k], at[1] * N + part * p.x_part, v);
                get_or_one(gate[k], p.gate_type[k], (still ? from : from * N) + part * p.gate_part,
                           still, g);
                OPS_UNROLL
                for (int j = 0; j < N; j++)
                    sum[j] += v[j] * g[j];
            }
        }
        OPS_UNROLL
        for (int j = 0; p.activation != OPS_FN_IDENTITY && j < N; j++)
            sum[j] = activated(p.activation, sum[j], (float)p.a, (float)p.b);
        store(out, p.out_type, at[0] * N, sum);
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
    if (!vector)
        return gated<gated_body>(*p, ports, p->view.count, stream);
    return p->vector == 8   ? gated<gated_some_body<8>>(*p, ports, p->units.count, stream)
           : p->vector == 4 ? gated<gated_some_body<4>>(*p, ports, p->units.count, stream)
                            : gated<gated_some_body<2>>(*p, ports, p->units.count, stream);
}
