/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPool, AveragePool, LpPool. */
#include "engine/cuda/kernels/pool_packs.cuh"

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

/* The kernel position k, or the nearest that is inside. */
OPS_BODY int32_t nearest(const span &s, int32_t k)
{
    return k < s.first ? s.first : k < s.last ? k : s.last - 1;
}

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

/* The largest of eight float16 each, of those taken so far. */
struct largest_halves {
    using words = bytes16;
    static constexpr uint32_t LEAST = 0xfc00fc00; /* minus infinity, twice */
    bytes16                   acc = {LEAST, LEAST, LEAST, LEAST};

    OPS_BODY void take(const bytes16 &v)
    {
        acc.x = larger2(acc.x, v.x);
        acc.y = larger2(acc.y, v.y);
        acc.z = larger2(acc.z, v.z);
        acc.w = larger2(acc.w, v.w);
    }
    OPS_BODY bytes16 all() const
    {
        return acc;
    }
};

/* Of pairs of 16-bit integers. */
template <bool SIGNED> OPS_BODY uint32_t larger2_integers(uint32_t a, uint32_t b)
{
#ifdef __CUDACC__
    return SIGNED ? __vmaxs2(a, b) : __vmaxu2(a, b);
#else
    const uint32_t flip = SIGNED ? 0x8000 : 0, a0 = a & 0xffff, b0 = b & 0xffff, a1 = a >> 16,
                   b1 = b >> 16;
    return ((a0 ^ flip) > (b0 ^ flip) ? a0 : b0) | ((a1 ^ flip) > (b1 ^ flip) ? a1 : b1) << 16;
#endif
}

/* Of eight bytes each: as the upper halves of 16-bit integers, whose lower halves change no order.
 */
template <bool SIGNED> struct largest_bytes {
    struct alignas(8) words {
        uint32_t of[2];
    };
    static constexpr uint32_t LEAST = SIGNED ? 0x80008000 : 0;
    uint32_t                  even[2] = {LEAST, LEAST}, odd[2] = {LEAST, LEAST};

    OPS_BODY void take(const words &v)
    {
        OPS_UNROLL
        for (int i = 0; i < 2; i++) {
            even[i] = larger2_integers<SIGNED>(even[i], v.of[i] << 8);
            odd[i] = larger2_integers<SIGNED>(odd[i], v.of[i]);
        }
    }
    OPS_BODY words all() const
    {
        words v;
        OPS_UNROLL
        for (int i = 0; i < 2; i++)
            v.of[i] = (even[i] >> 8 & 0x00ff00ff) | (odd[i] & 0xff00ff00);
        return v;
    }
};

/* Windows of SIZE rows and columns of numbers that are compared as they lie in memory, whose loads
 * are all in flight at once; SIZE 0: any window. */
template <class MOST, int SIZE> struct words8_body {
    using words = typename MOST::words;
    static constexpr int64_t EACH = sizeof(words) / LANES;
    struct ops_pool          p;
    const uint8_t           *in;
    uint8_t                 *out;

    OPS_BODY void square(const pixel8 &at, int a, MOST &acc) const
    {
        const ops_window &w = p.w;
        int64_t           column[SIZE ? SIZE : 1];
        words             v[SIZE ? SIZE : 1][SIZE ? SIZE : 1];
        OPS_UNROLL
        for (int k = 0; k < SIZE; k++)
            column[k] = at.from + (at.x.start + nearest(at.x, k) * w.dilation[2]) * w.x_step[4];
        OPS_UNROLL
        for (int b = 0; b < SIZE; b++) {
            const int64_t row = at.row(w, a, nearest(at.y, b));
            OPS_UNROLL
            for (int k = 0; k < SIZE; k++)
                v[b][k] = *(const words *)(in + (row + column[k]) * EACH);
        }
        OPS_UNROLL
        for (int k = 0; k < SIZE * SIZE; k++)
            acc.take(v[k / SIZE][k % SIZE]);
    }
    OPS_BODY void any(const pixel8 &at, int a, MOST &acc) const
    {
        const ops_window &w = p.w;
        const int64_t     step = w.dilation[2] * w.x_step[4];
        for (int b = at.y.first; b < at.y.last; b++) {
            const int64_t row = at.from + at.row(w, a, b) + at.x.start * w.x_step[4];
            OPS_UNROLL_SOME
            for (int k = at.x.first; k < at.x.last; k++)
                acc.take(*(const words *)(in + (row + k * step) * EACH));
        }
    }
    OPS_BODY void operator()(int64_t i) const
    {
        const pixel8 at(p, i);
        MOST         acc;
        if (at.y.first < at.y.last && at.x.first < at.x.last)
            for (int a = at.z.first; a < at.z.last; a++) {
                if constexpr (SIZE > 0)
                    square(at, a, acc);
                else
                    any(at, a, acc);
            }
        *(words *)(out + at.to(p.w) * EACH) = acc.all();
    }
};

template <class MOST, int SIZE>
int words_of(const struct ops_pool &p, const struct ops_ports *ports, void *stream)
{
    words8_body<MOST, SIZE> body = {p, (const uint8_t *)ports->in[0], (uint8_t *)ports->out[0]};
    return each(body, p.units.count, stream);
}

template <class MOST>
int words(const struct ops_pool &p, const struct ops_ports *ports, void *stream)
{
    const int columns = p.w.kernel[2];
    switch (p.w.kernel[1] == columns ? columns : 0) {
    case 2: return words_of<MOST, 2>(p, ports, stream);
    case 3: return words_of<MOST, 3>(p, ports, stream);
    case 5: return words_of<MOST, 5>(p, ports, stream);
    default: return words_of<MOST, 0>(p, ports, stream);
    }
}

int largest(const struct ops_pool &p, const struct ops_ports *ports, void *stream)
{
    switch (p.in_type) {
    case SAC_F16: return words<largest_halves>(p, ports, stream);
    case SAC_I8: return words<largest_bytes<true>>(p, ports, stream);
    default: return words<largest_bytes<false>>(p, ports, stream);
    }
}

int by_kind(const struct ops_pool &p, const struct ops_ports *ports, void *stream)
{
    switch (p.kind) {
    case OPS_POOL_MAX: return packs<OPS_POOL_MAX>(p, ports, stream);
    case OPS_POOL_AVERAGE: return packs<OPS_POOL_AVERAGE>(p, ports, stream);
    default: return packs<OPS_POOL_LP>(p, ports, stream);
    }
}

} // namespace

extern "C" int ops_launch_pool(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_pool *p = (const struct ops_pool *)params;
    const void            *in = ports->in[0];
    void                  *out = ports->out[0];
    if (p->words && fits16(in) && fits16(out))
        return largest(*p, ports, stream);
    if (p->vector && fits_pack(in, p->vector, p->in_type) && fits_pack(out, p->vector, p->out_type))
        return by_kind(*p, ports, stream);
    int64_t *indices = p->indices ? (int64_t *)ports->out[1] : NULL;
    if (p->in_type == SAC_F64) {
        pool_body<double> body = {*p, in, out, indices};
        return each(body, p->places.count, stream);
    }
    pool_body<float> body = {*p, in, out, indices};
    return each(body, p->places.count, stream);
}
