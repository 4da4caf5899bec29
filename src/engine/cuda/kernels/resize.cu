/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/kernels/resize.h"
#include "engine/cuda/kernels/window.cuh"

using namespace ops;

namespace
{

/* The position of output index x on the input's axis, for nearest: divided exactly as in the
 * reference, because rounding could select another element. */
OPS_BODY double source_at(const ops_resize &r, const ops_resize_axis &a, int32_t x)
{
    switch (r.coordinates) {
    case OPS_ASYMMETRIC: return x / a.scale;
    case OPS_TF_HALF_PIXEL: return (x + 0.5) / a.scale;
    case OPS_HALF_PIXEL: return (x + 0.5) / a.scale - 0.5;
    case OPS_ALIGN_CORNERS:
        return a.scale * a.in == 1 ? 0 : x * (a.in - 1.0) / (a.scale * a.in - 1);
    case OPS_CROP:
        if (a.out > 1)
            return a.roi_start * (a.in - 1.0) +
                   x * ((a.roi_end - a.roi_start) * (a.in - 1.0)) / (a.out - 1);
        return a.shift;
    default:
        if (a.slope == 0)
            return a.shift;
        return (x + 0.5) / a.scale - 0.5 +
               (r.coordinates == OPS_HALF_PIXEL_SYMMETRIC
                    ? a.in / 2.0 * (1 - a.out / (a.scale * a.in))
                    : 0);
    }
}

OPS_BODY int32_t nearest_at(int how, double x)
{
    switch (how) {
    case OPS_NEAREST_FLOOR: return (int32_t)floor(x);
    case OPS_NEAREST_CEIL: return (int32_t)ceil(x);
    case OPS_NEAREST_PREFER_CEIL: return (int32_t)floor(x + 0.5);
    default: return (int32_t)ceil(x - 0.5);
    }
}

OPS_BODY float cubic_weight(float x, float a)
{
    x = fabsf(x);
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* The taps of one output index along one axis. */
struct taps {
    double  x;
    int32_t start, in, count;
    float   shrink, inverse; /* one over the sum of the weights */
    bool    outside;
};

OPS_BODY float weight_of(const ops_resize &r, const taps &t, int32_t k)
{
    const int32_t at = t.start + k;
    if (r.mode == OPS_RESIZE_NEAREST)
        return 1;
    if (r.exclude_outside && (at < 0 || at >= t.in))
        return 0;
    const float distance = (float)(at - t.x) * t.shrink;
    if (r.mode == OPS_RESIZE_CUBIC)
        return cubic_weight(distance, (float)r.cubic_a);
    return fmaxf(0, 1 - fabsf(distance));
}

OPS_BODY int32_t index_of(const taps &t, int32_t k)
{
    const int32_t at = t.start + k;
    return at < 0 ? 0 : at < t.in ? at : t.in - 1;
}

OPS_BODY taps taps_at(const ops_resize &r, const ops_resize_axis &a, int32_t x)
{
    taps t = {0, 0, a.in, a.taps, (float)a.shrink, 1, false};
    if (a.whole.d) {
        t.start = (int32_t)divide((uint32_t)x, a.whole);
        return t;
    }
    const double source = r.mode == OPS_RESIZE_NEAREST ? source_at(r, a, x) : x * a.slope + a.shift;
    t.outside = a.crops && (source < 0 || source > a.in - 1);
    t.x = source < -1e9 ? -1e9 : source > 1e9 ? 1e9 : source;
    t.start = r.mode == OPS_RESIZE_NEAREST ? nearest_at(r.nearest, t.x)
                                           : (int32_t)floor(t.x) + 1 - a.taps / 2;
    if (r.mode == OPS_RESIZE_NEAREST ||
        (r.mode == OPS_RESIZE_LINEAR && a.taps == 2 && !r.exclude_outside))
        return t; /* two linear weights add up to one */
    float sum = 0;
    for (int32_t k = 0; k < a.taps; k++)
        sum += weight_of(r, t, k);
    t.inverse = sum != 0 ? 1 / sum : 1;
    return t;
}

OPS_BODY int32_t along(const at5 &at, int dim)
{
    return dim == 4 ? at.x : dim == 3 ? at.y : dim == 2 ? at.z : dim == 1 ? at.c : at.n;
}

/* The offset along the axes that are not resized. */
OPS_BODY int64_t rest_of(const ops_resize &r, const at5 &at)
{
    int64_t from = offset5(r.w.x_step, at);
    for (int k = 0; k < r.axes; k++)
        from -= along(at, r.axis[k].dim) * r.w.x_step[r.axis[k].dim];
    return from;
}

/* visit(offset of an input from the output's rest, its weight) for all taps. */
template <class VISIT>
OPS_BODY bool each_tap(const ops_resize &r, const at5 &at, const VISIT &visit)
{
    taps    t[OPS_RESIZE_AXES];
    int64_t step[OPS_RESIZE_AXES];
    bool    outside = false;
    OPS_UNROLL
    for (int k = 0; k < OPS_RESIZE_AXES; k++) {
        t[k] = taps{0, 0, 1, 1, 1, 1, false};
        step[k] = 0;
        if (k < r.axes) {
            t[k] = taps_at(r, r.axis[k], along(at, r.axis[k].dim));
            step[k] = r.w.x_step[r.axis[k].dim];
            outside = outside || t[k].outside;
        }
    }
    const float one = t[0].inverse * t[1].inverse * t[2].inverse;
    for (int32_t a = 0; a < t[0].count; a++) {
        const float   wa = r.axes > 0 ? weight_of(r, t[0], a) * one : one;
        const int64_t oa = index_of(t[0], a) * step[0];
        for (int32_t b = 0; b < t[1].count; b++) {
            const float   wb = r.axes > 1 ? weight_of(r, t[1], b) * wa : wa;
            const int64_t ob = oa + index_of(t[1], b) * step[1];
            for (int32_t c = 0; c < t[2].count; c++) {
                const float w = r.axes > 2 ? weight_of(r, t[2], c) * wb : wb;
                if (w != 0)
                    visit(ob + index_of(t[2], c) * step[2], w);
            }
        }
    }
    return outside;
}

/* How an element is read: of a type known at compile time, or of any. */
struct of_halves {
    static OPS_BODY float get(const void *p, int, int64_t i)
    {
        return half_to_float(((const uint16_t *)p)[i]);
    }
};
struct of_floats {
    static OPS_BODY float get(const void *p, int, int64_t i)
    {
        return ((const float *)p)[i];
    }
};
struct of_any {
    static OPS_BODY double get(const void *p, int type, int64_t i)
    {
        return ops::get<double>(p, type, i);
    }
};

/* The channels of a unit: every `step`-th from its offset on, so that neighbouring threads access
 * neighbouring channels. */
struct channels {
    int32_t  first, step, count;
    OPS_BODY channels(const ops_resize &r, const at5 &at)
        : first(at.c), step((int32_t)r.units.c.d), count((r.channels - at.c + step - 1) / step)
    {
    }
};

/* T: float, or double for types that float cannot hold. The taps' positions are computed once for
 * all channels of the unit. */
template <class T, class FROM> struct blend_body {
    struct ops_resize r;
    const void       *in;
    void             *out;
    struct sum {
        const blend_body &b;
        int64_t           from, step;
        int32_t           count;
        T                *acc;
        OPS_BODY void     operator()(int64_t offset, float w) const
        {
            OPS_UNROLL
            for (int j = 0; j < LANES; j++)
                if (j < count)
                    acc[j] += (T)w * FROM::get(b.in, b.r.in_type, from + offset + j * step);
        }
    };
    OPS_BODY void operator()(int64_t i) const
    {
        const at5      at = place5(r.units, i);
        const channels c(r, at);
        const int64_t  to = offset5(r.w.y_step, at), step = c.step * r.w.y_step[1];
        T              acc[LANES] = {};
        const bool     outside =
            each_tap(r, at, sum{*this, rest_of(r, at), c.step * r.w.x_step[1], c.count, acc});
        OPS_UNROLL
        for (int j = 0; j < LANES; j++)
            if (j < c.count)
                put(out, r.out_type, to + j * step, outside ? (T)r.extrapolation : acc[j]);
    }
};

template <class T, class FROM>
int blend(const struct ops_resize &r, const struct ops_ports *ports, void *stream)
{
    blend_body<T, FROM> body = {r, ports->in[0], ports->out[0]};
    return each(body, r.units.count, stream);
}

struct blend8_body {
    struct ops_resize r;
    const void       *in;
    void             *out;
    struct sum {
        const blend8_body &b;
        int64_t            from;
        float             *acc;
        OPS_BODY void      operator()(int64_t offset, float w) const
        {
            float v[LANES];
            get8(b.in, b.r.in_type, from + offset, v);
            OPS_UNROLL
            for (int j = 0; j < LANES; j++)
                acc[j] += w * v[j];
        }
    };
    OPS_BODY void operator()(int64_t i) const
    {
        at5   at = place5(r.units, i);
        float acc[LANES] = {};
        at.c *= LANES;
        if (each_tap(r, at, sum{*this, rest_of(r, at), acc}))
            for (int j = 0; j < LANES; j++)
                acc[j] = (float)r.extrapolation;
        put8(out, r.out_type, offset5(r.w.y_step, at), acc);
    }
};

/* Eight channels of an input, to all places where they stand. */
struct repeat8_body {
    struct ops_resize r;
    const void       *in;
    void             *out;
    OPS_BODY void     operator()(int64_t i) const
    {
        at5 at = place5(r.sources, i);
        at.c *= LANES;
        const raw8 raw = load8(in, r.in_type, offset5(r.w.x_step, at));
        float      v[LANES];
        floats_of(raw, r.in_type, v);
        at.z *= r.times[2], at.y *= r.times[3], at.x *= r.times[4];
        const int64_t to = offset5(r.w.y_step, at);
        for (int z = 0; z < r.times[2]; z++)
            for (int y = 0; y < r.times[3]; y++)
                for (int x = 0; x < r.times[4]; x++)
                    put8(out, r.out_type,
                         to + z * r.w.y_step[2] + y * r.w.y_step[3] + x * r.w.y_step[4], v);
    }
};

/* ---- runs of four columns ---- */

/* The weights of four neighbouring outputs of a row for four columns of two rows. */
struct run {
    float    of[4][4], row[2]; /* of[output][column] */
    int32_t  at[2][4];
    OPS_BODY run(const ops_resize &r, const at5 &place)
    {
        const ops_resize_axis &ax = r.axis[r.x_axis];
        const int32_t          first = (int32_t)floor(place.x * ax.slope + ax.shift);
        int32_t                rows[2] = {place.y, place.y};
        row[0] = 1, row[1] = 0;
        OPS_UNROLL
        for (int k = 0; k < 4; k++) {
            const double  x = (place.x + k) * ax.slope + ax.shift, below = floor(x);
            const float   part = (float)(x - below);
            const int32_t column = (int32_t)below - first;
            OPS_UNROLL
            for (int c = 0; c < 4; c++)
                of[k][c] = c == column ? 1 - part : c == column + 1 ? part : 0;
        }
        if (r.y_axis >= 0) {
            const ops_resize_axis &ay = r.axis[r.y_axis];
            const double           y = place.y * ay.slope + ay.shift, below = floor(y);
            row[1] = (float)(y - below);
            row[0] = 1 - row[1];
            rows[0] = inside((int32_t)below, ay.in);
            rows[1] = inside((int32_t)below + 1, ay.in);
        }
        OPS_UNROLL
        for (int c = 0; c < 4; c++) {
            const int32_t column = inside(first + c, ax.in) * (int32_t)r.w.x_step[4];
            at[0][c] = rows[0] * (int32_t)r.w.x_step[3] + column;
            at[1][c] = rows[1] * (int32_t)r.w.x_step[3] + column;
        }
    }
    /* Output k of the four, from its columns. */
    OPS_BODY float blend(int k, float a, float b, float c, float d) const
    {
        return of[k][0] * a + of[k][1] * b + of[k][2] * c + of[k][3] * d;
    }
    static OPS_BODY int32_t inside(int32_t x, int32_t size)
    {
        return x < 0 ? 0 : x < size ? x : size - 1;
    }
};

/* Channel by channel, of a few of which the loads are under way at once. */
template <class FROM> struct run_body {
    static constexpr int TURNS = 4;
    struct ops_resize    r;
    const void          *in;
    void                *out;
    OPS_BODY void        operator()(int64_t i) const
    {
        at5 at = place5(r.fours, i);
        at.x *= 4;
        const channels c(r, at);
        const run      taps(r, at);
        const int64_t  step = c.step * r.w.x_step[1], to_step = c.step * r.w.y_step[1];
        const int32_t  left = (int32_t)r.units.x.d - at.x;
        const int64_t  from = at.n * r.w.x_step[0] + at.c * r.w.x_step[1] + at.z * r.w.x_step[2],
                      to = offset5(r.w.y_step, at);
        for (int first = 0; first < c.count; first += TURNS) {
            float column[TURNS][4], v[4];
            OPS_UNROLL
            for (int j = 0; j < TURNS; j++) { /* the last again instead of a condition */
                const int     of = first + j < c.count ? first + j : c.count - 1;
                const int64_t own = from + of * step;
                OPS_UNROLL
                for (int k = 0; k < 4; k++)
                    column[j][k] = taps.row[0] * FROM::get(in, 0, own + taps.at[0][k]) +
                                   taps.row[1] * FROM::get(in, 0, own + taps.at[1][k]);
            }
            OPS_UNROLL
            for (int j = 0; j < TURNS; j++) {
                if (first + j >= c.count)
                    continue;
                OPS_UNROLL
                for (int k = 0; k < 4; k++)
                    v[k] = taps.blend(k, column[j][0], column[j][1], column[j][2], column[j][3]);
                put(to + (first + j) * to_step, left, v);
            }
        }
    }
    OPS_BODY void put(int64_t to, int32_t left, const float (&v)[4]) const
    {
        if (r.whole) {
            put4(out, r.out_type, to, v);
            return;
        }
        OPS_UNROLL
        for (int k = 0; k < 4; k++)
            if (k < left)
                put_float(out, r.out_type, to + k * r.w.y_step[4], v[k]);
    }
};

/* Eight channels side by side. */
struct run8_body {
    struct ops_resize r;
    const void       *in;
    void             *out;
    OPS_BODY void     operator()(int64_t i) const
    {
        at5 at = place5(r.fours, i);
        at.x *= 4;
        at.c *= LANES;
        const run     taps(r, at);
        const int32_t left = (int32_t)r.units.x.d - at.x;
        const int64_t from = at.n * r.w.x_step[0] + at.c + at.z * r.w.x_step[2],
                      to = offset5(r.w.y_step, at);
        float column[4][LANES], other[LANES];
        OPS_UNROLL
        for (int c = 0; c < 4; c++) {
            get8(in, r.in_type, from + taps.at[0][c], column[c]);
            get8(in, r.in_type, from + taps.at[1][c], other);
            OPS_UNROLL
            for (int j = 0; j < LANES; j++)
                column[c][j] = taps.row[0] * column[c][j] + taps.row[1] * other[j];
        }
        OPS_UNROLL
        for (int k = 0; k < 4; k++) {
            float v[LANES];
            OPS_UNROLL
            for (int j = 0; j < LANES; j++)
                v[j] = taps.blend(k, column[0][j], column[1][j], column[2][j], column[3][j]);
            if (k < left)
                put8(out, r.out_type, to + k * r.w.y_step[4], v);
        }
    }
};

template <class FROM> int runs(struct ops_resize r, const struct ops_ports *ports, void *stream)
{
    r.whole = r.whole && fits16(ports->out[0]);
    run_body<FROM> body = {r, ports->in[0], ports->out[0]};
    return each(body, r.fours.count, stream);
}

/* Nearest copies, whatever the dtype. */
template <class UNIT> struct copy_body {
    struct ops_resize r;
    const UNIT       *in;
    void             *out;
    struct pick {
        int64_t      *where;
        OPS_BODY void operator()(int64_t offset, float) const
        {
            *where = offset;
        }
    };
    OPS_BODY void operator()(int64_t i) const
    {
        const at5      at = place5(r.units, i);
        const channels c(r, at);
        const int64_t  to = offset5(r.w.y_step, at), to_step = c.step * r.w.y_step[1],
                      from_step = c.step * r.w.x_step[1];
        int64_t       offset = 0;
        const bool    outside = each_tap(r, at, pick{&offset});
        const int64_t from = rest_of(r, at) + offset;
        for (int j = 0; j < c.count; j++)
            if (outside)
                put(out, r.out_type, to + j * to_step, r.extrapolation);
            else
                ((UNIT *)out)[to + j * to_step] = in[from + j * from_step];
    }
};

} // namespace

extern "C" int ops_launch_resize(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_resize *r = (const struct ops_resize *)params;
    const bool               vector = r->vector && fits16(ports->in[0]) && fits16(ports->out[0]);
    if (vector && r->repeats) {
        repeat8_body body = {*r, ports->in[0], ports->out[0]};
        return each(body, r->sources.count, stream);
    }
    if (vector && r->run) {
        run8_body body = {*r, ports->in[0], ports->out[0]};
        return each(body, r->fours.count, stream);
    }
    if (vector) {
        blend8_body body = {*r, ports->in[0], ports->out[0]};
        return each(body, r->units.count, stream);
    }
    if (r->run)
        return r->in_type == SAC_F16 ? runs<of_halves>(*r, ports, stream)
                                     : runs<of_floats>(*r, ports, stream);
    const bool halves = r->in_type <= SAC_F16 && r->out_type <= SAC_F16;
    if (r->mode != OPS_RESIZE_NEAREST || r->in_type != r->out_type)
        return !halves                 ? blend<double, of_any>(*r, ports, stream)
               : r->in_type == SAC_F16 ? blend<float, of_halves>(*r, ports, stream)
                                       : blend<float, of_floats>(*r, ports, stream);
    return by_bytes(sac_dtype_bytes((enum sac_dtype)r->in_type), [&](auto unit) {
        using UNIT = decltype(unit);
        copy_body<UNIT> body = {*r, (const UNIT *)ports->in[0], ports->out[0]};
        return each(body, r->units.count, stream);
    });
}
