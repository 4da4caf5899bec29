/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPool, AveragePool, LpPool. */
#include "engine/cuda/kernels/window.cuh"

using namespace ops;

namespace
{

/* One number. T: float, or double for float64. */
template <class T> struct pool_body {
    struct ops_pool p;
    const void     *in;
    void           *out;
    int64_t        *indices;

    /* MaxPool's index counts over the whole tensor, in row or column order of each plane. */
    OPS_BODY int64_t index_of(const at5 &at, const int32_t *where) const
    {
        const ops_window &w = p.w;
        const int64_t     plane = (int64_t)w.in[0] * w.in[1] * w.in[2];
        const int64_t     in_plane =
            p.columns_first ? ((int64_t)where[2] * w.in[1] + where[1]) * w.in[0] + where[0]
                                : ((int64_t)where[0] * w.in[1] + where[1]) * w.in[2] + where[2];
        return ((int64_t)at.n * p.channels + at.c) * plane + in_plane;
    }

    OPS_BODY void operator()(int64_t i) const
    {
        const ops_window &w = p.w;
        const at5         at = place5(p.places, i);
        const span    sz = span_of(w, 0, at.z), sy = span_of(w, 1, at.y), sx = span_of(w, 2, at.x);
        const int64_t from = at.n * w.x_step[0] + at.c * w.x_step[1];
        T             acc = p.kind == OPS_POOL_MAX ? -INFINITY : 0;
        int32_t       where[3] = {0, 0, 0}, count = 0;
        for (int a = sz.first; a < sz.last; a++)
            for (int b = sy.first; b < sy.last; b++)
                for (int k = sx.first; k < sx.last; k++, count++) {
                    const int32_t z = sz.start + a * w.dilation[0],
                                  y = sy.start + b * w.dilation[1];
                    const int32_t x = sx.start + k * w.dilation[2];
                    const T       v = get<T>(in, p.in_type,
                                       from + z * w.x_step[2] + y * w.x_step[3] + x * w.x_step[4]);
                    if (p.kind == OPS_POOL_AVERAGE)
                        acc += v;
                    else if (p.kind == OPS_POOL_LP)
                        acc += pow(fabs(v), (T)p.p);
                    else if (v > acc || count == 0 || is_nan(v)) {
                        acc = v;
                        where[0] = z, where[1] = y, where[2] = x;
                    }
                }
        if (p.kind == OPS_POOL_LP)
            acc = pow(acc, 1 / (T)p.p);
        if (p.include_pad)
            count = sz.padded * sy.padded * sx.padded;
        if (p.kind == OPS_POOL_AVERAGE)
            acc = count ? acc / (T)count : 0;
        const int64_t to = offset5(w.y_step, at);
        put<T>(out, p.out_type, to, acc);
        if (indices)
            indices[((((int64_t)at.n * p.channels + at.c) * w.out[0] + at.z) * w.out[1] + at.y) *
                        w.out[2] +
                    at.x] = index_of(at, where);
    }
};

/* One output of eight channels side by side. */
struct pixel8 {
    at5      at;
    span     z, y, x;
    int64_t  from;
    OPS_BODY pixel8(const struct ops_pool &p, int64_t i)
        : at(place5(p.units, i)), z(span_of(p.w, 0, at.z)), y(span_of(p.w, 1, at.y)),
          x(span_of(p.w, 2, at.x)), from(at.n * p.w.x_step[0] + at.c * LANES)
    {
    }
    /* The input's row of window row [a,b], from the sample's start. */
    OPS_BODY int64_t row(const ops_window &w, int a, int b) const
    {
        return (z.start + a * w.dilation[0]) * w.x_step[2] +
               (y.start + b * w.dilation[1]) * w.x_step[3];
    }
    /* Found late: it would take registers from the loads. */
    OPS_BODY int64_t to(const ops_window &w) const
    {
        return at.n * w.y_step[0] + at.c * LANES + at.z * w.y_step[2] + at.y * w.y_step[3] +
               at.x * w.y_step[4];
    }
};

/* Eight numbers, also of 8-bit integers, whose maximum is one of them. */
OPS_BODY void take8(const void *p, int type, int64_t at, float (&v)[LANES])
{
    if (type != SAC_I8 && type != SAC_U8) {
        get8(p, type, at, v);
        return;
    }
    const uint64_t bytes = *(const uint64_t *)((const uint8_t *)p + at);
    OPS_UNROLL
    for (int k = 0; k < LANES; k++) {
        const uint8_t byte = (uint8_t)(bytes >> 8 * k);
        v[k] = type == SAC_I8 ? (float)(int8_t)byte : (float)byte;
    }
}

OPS_BODY void leave8(void *p, int type, int64_t at, const float (&v)[LANES])
{
    if (type != SAC_I8 && type != SAC_U8) {
        put8(p, type, at, v);
        return;
    }
    uint64_t bytes = 0;
    OPS_UNROLL
    for (int k = 0; k < LANES; k++) /* of nothing: as the reference saturates */
        bytes |= (uint64_t)(uint8_t)(int)(v[k] < -128 ? (type == SAC_I8 ? -128 : 0) : v[k])
                 << 8 * k;
    *(uint64_t *)((uint8_t *)p + at) = bytes;
}

OPS_BODY void keep_larger(float (&acc)[LANES], const float (&v)[LANES])
{
    OPS_UNROLL
    for (int j = 0; j < LANES; j++)
        acc[j] = v[j] > acc[j] || is_nan(v[j]) ? v[j] : acc[j];
}

template <bool MAX> struct pool8_body {
    struct ops_pool p;
    const void     *in;
    void           *out;
    OPS_BODY void   operator()(int64_t i) const
    {
        const ops_window &w = p.w;
        const pixel8      at(p, i);
        const span       &sz = at.z, &sy = at.y, &sx = at.x;
        float             acc[LANES], v[LANES];
        OPS_UNROLL
        for (int j = 0; j < LANES; j++)
            acc[j] = MAX ? -INFINITY : 0;
        for (int a = sz.first; a < sz.last; a++)
            for (int b = sy.first; b < sy.last; b++) {
                const int64_t row = at.from + at.row(w, a, b);
                for (int k = sx.first; k < sx.last; k++) {
                    take8(in, p.in_type, row + (sx.start + k * w.dilation[2]) * w.x_step[4], v);
                    if (MAX)
                        keep_larger(acc, v);
                    OPS_UNROLL
                    for (int j = 0; j < LANES && !MAX; j++)
                        acc[j] += v[j];
                }
            }
        const int32_t inside = (sz.last - sz.first) * (sy.last - sy.first) * (sx.last - sx.first);
        const int32_t count = p.include_pad ? sz.padded * sy.padded * sx.padded : inside;
        const float   part = MAX ? 1 : count ? 1.0f / (float)count : 0;
        OPS_UNROLL
        for (int j = 0; j < LANES && !MAX; j++)
            acc[j] *= part;
        leave8(out, p.out_type, at.to(w), acc);
    }
};

/* The kernel position k, or the nearest that is inside. */
OPS_BODY int32_t nearest(const span &s, int32_t k)
{
    return k < s.first ? s.first : k < s.last ? k : s.last - 1;
}

/* The maximum of windows of SIZE columns: all loads of a row are in flight at once, and positions
 * outside read the edge again, which changes no maximum. */
template <int SIZE> struct max8_body {
    struct ops_pool p;
    const void     *in;
    void           *out;
    OPS_BODY void   operator()(int64_t i) const
    {
        const ops_window &w = p.w;
        const pixel8      at(p, i);
        float             acc[LANES], v[SIZE][LANES];
        int64_t           column[SIZE];
        OPS_UNROLL
        for (int k = 0; k < SIZE; k++)
            column[k] = at.from + (at.x.start + nearest(at.x, k) * w.dilation[2]) * w.x_step[4];
        OPS_UNROLL
        for (int j = 0; j < LANES; j++)
            acc[j] = -INFINITY;
        for (int a = at.z.first; a < at.z.last && at.x.first < at.x.last; a++)
            for (int b = at.y.first; b < at.y.last; b++) {
                const int64_t row = at.row(w, a, b);
                OPS_UNROLL
                for (int k = 0; k < SIZE; k++)
                    take8(in, p.in_type, row + column[k], v[k]);
                OPS_UNROLL
                for (int k = 0; k < SIZE; k++)
                    keep_larger(acc, v[k]);
            }
        leave8(out, p.out_type, at.to(w), acc);
    }
};

/* Of pairs of float16: a maximum rounds nothing, so they are compared as they lie in memory, by one
 * instruction in the place of ten. NaN stays NaN; of two zeros it may be either. */
OPS_BODY uint32_t larger2(uint32_t a, uint32_t b)
{
#ifdef __CUDACC__
    __half2 x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x = __hmax2_nan(x, y);
    memcpy(&a, &x, sizeof a);
    return a;
#else
    float x[2], y[2];
    halves_of(a, x[0], x[1]);
    halves_of(b, y[0], y[1]);
    return word_of(y[0] > x[0] || is_nan(y[0]) ? y[0] : x[0],
                   y[1] > x[1] || is_nan(y[1]) ? y[1] : x[1]);
#endif
}

OPS_BODY void keep_larger(bytes16 &acc, const bytes16 &v)
{
    acc.x = larger2(acc.x, v.x);
    acc.y = larger2(acc.y, v.y);
    acc.z = larger2(acc.z, v.z);
    acc.w = larger2(acc.w, v.w);
}

/* Windows of SIZE rows and columns in float16, whose loads are all in flight at once; SIZE 0: any
 * window. */
template <int SIZE> struct halves8_body {
    struct ops_pool p;
    const uint16_t *in;
    uint16_t       *out;

    OPS_BODY void square(const pixel8 &at, int a, bytes16 &acc) const
    {
        const ops_window &w = p.w;
        int64_t           column[SIZE ? SIZE : 1];
        bytes16           v[SIZE ? SIZE : 1][SIZE ? SIZE : 1];
        OPS_UNROLL
        for (int k = 0; k < SIZE; k++)
            column[k] = at.from + (at.x.start + nearest(at.x, k) * w.dilation[2]) * w.x_step[4];
        OPS_UNROLL
        for (int b = 0; b < SIZE; b++) {
            const uint16_t *row = in + at.row(w, a, nearest(at.y, b));
            OPS_UNROLL
            for (int k = 0; k < SIZE; k++)
                v[b][k] = *(const bytes16 *)(row + column[k]);
        }
        OPS_UNROLL
        for (int k = 0; k < SIZE * SIZE; k++)
            keep_larger(acc, v[k / SIZE][k % SIZE]);
    }
    OPS_BODY void any(const pixel8 &at, int a, bytes16 &acc) const
    {
        const ops_window &w = p.w;
        const int64_t     step = w.dilation[2] * w.x_step[4];
        for (int b = at.y.first; b < at.y.last; b++) {
            const int64_t row = at.from + at.row(w, a, b) + at.x.start * w.x_step[4];
            OPS_UNROLL_SOME
            for (int k = at.x.first; k < at.x.last; k++)
                keep_larger(acc, *(const bytes16 *)(in + row + k * step));
        }
    }
    OPS_BODY void operator()(int64_t i) const
    {
        const pixel8       at(p, i);
        constexpr uint32_t LEAST = 0xfc00fc00; /* minus infinity, twice */
        bytes16            acc = {LEAST, LEAST, LEAST, LEAST};
        if (at.y.first < at.y.last && at.x.first < at.x.last)
            for (int a = at.z.first; a < at.z.last; a++) {
                if constexpr (SIZE > 0)
                    square(at, a, acc);
                else
                    any(at, a, acc);
            }
        *(bytes16 *)(out + at.to(p.w)) = acc;
    }
};

template <int SIZE>
int halves(const struct ops_pool &p, const struct ops_ports *ports, void *stream)
{
    halves8_body<SIZE> body = {p, (const uint16_t *)ports->in[0], (uint16_t *)ports->out[0]};
    return each(body, p.units.count, stream);
}

template <int SIZE>
int floats_or_bytes(const struct ops_pool &p, const struct ops_ports *ports, void *stream)
{
    max8_body<SIZE> body = {p, ports->in[0], ports->out[0]};
    return each(body, p.units.count, stream);
}

int largest(const struct ops_pool &p, const struct ops_ports *ports, void *stream)
{
    const bool half = p.in_type == SAC_F16 && p.out_type == SAC_F16;
    const int  columns = p.w.kernel[2], square = p.w.kernel[1] == columns ? columns : 0;
    switch (half ? square : columns) {
    case 2: return half ? halves<2>(p, ports, stream) : floats_or_bytes<2>(p, ports, stream);
    case 3: return half ? halves<3>(p, ports, stream) : floats_or_bytes<3>(p, ports, stream);
    case 5: return half ? halves<5>(p, ports, stream) : floats_or_bytes<5>(p, ports, stream);
    default: break;
    }
    if (half)
        return halves<0>(p, ports, stream);
    pool8_body<true> body = {p, ports->in[0], ports->out[0]};
    return each(body, p.units.count, stream);
}

} // namespace

extern "C" int ops_launch_pool(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_pool *p = (const struct ops_pool *)params;
    const void            *in = ports->in[0];
    void                  *out = ports->out[0];
    if (p->vector && fits16(in) && fits16(out)) {
        if (p->kind == OPS_POOL_MAX)
            return largest(*p, ports, stream);
        pool8_body<false> average = {*p, in, out};
        return each(average, p->units.count, stream);
    }
    int64_t *indices = p->indices ? (int64_t *)ports->out[1] : NULL;
    if (p->in_type == SAC_F64) {
        pool_body<double> body = {*p, in, out, indices};
        return each(body, p->places.count, stream);
    }
    pool_body<float> body = {*p, in, out, indices};
    return each(body, p->places.count, stream);
}
