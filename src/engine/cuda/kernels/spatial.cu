/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/kernels/spatial.h"
#include "engine/cuda/kernels/window.cuh"

using namespace ops;

namespace
{

/* ---- GridSample; the comments are engine/ops/grid_sample.c's ---- */

enum { NEAREST, LINEAR, CUBIC };    /* enum sac_sample_mode */
enum { ZEROS, BORDER, REFLECTION }; /* enum sac_sample_padding */

OPS_BODY double reflect(double x, double lo, double hi)
{
    const double span = hi - lo;
    if (span <= 0)
        return lo;
    const double off = fmod(fabs(x - lo), 2 * span);
    return off <= span ? lo + off : hi - (off - span);
}

OPS_BODY double clamp(double x, double lo, double hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

OPS_BODY int32_t padded_index(const ops_grid_sample &p, int d, double at)
{
    const double last = p.size[d] - 1;
    if (at >= 0 && at <= last)
        return (int32_t)at;
    if (p.padding == BORDER)
        return at < 0 ? 0 : (int32_t)last;
    if (p.padding == ZEROS || !(at - at == 0))
        return -1;
    const double lo = p.align ? 0 : -0.5, hi = p.align ? last : last + 0.5;
    return (int32_t)clamp(reflect(at, lo, hi), 0, last);
}

OPS_BODY float cubic_weight(float x)
{
    const float a = -0.75f;
    x = fabsf(x);
    return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

struct grid_taps {
    double  x, first;
    int32_t count;
};

/* g: the place along dimension d in [-1,1]. */
OPS_BODY grid_taps grid_taps_at(const ops_grid_sample &p, int d, double g)
{
    const double last = p.size[d] - 1;
    const double lo = p.align ? 0 : -0.5, hi = p.align ? last : last + 0.5;
    double       x = p.align ? (g + 1) / 2 * last : ((g + 1) * (last + 1) - 1) / 2;
    if (p.mode == NEAREST)
        x = rint(x);
    if ((x < lo || x > hi) && p.padding == BORDER)
        x = clamp(x, 0, last);
    else if ((x < lo || x > hi) && p.padding == REFLECTION)
        x = reflect(x, lo, hi);
    grid_taps t;
    t.x = x;
    t.count = p.mode == NEAREST ? 1 : p.mode == LINEAR ? 2 : 4;
    t.first = p.mode == NEAREST ? x : floor(x) - (p.mode == CUBIC ? 1 : 0);
    return t;
}

OPS_BODY float grid_weight(const ops_grid_sample &p, const grid_taps &t, int k)
{
    const float off = (float)(t.first + k - t.x);
    return p.mode == NEAREST ? 1 : p.mode == LINEAR ? 1 - fabsf(off) : cubic_weight(off);
}

/* add(weight, offset) for each number of a channel's map that the place of an output takes part of.
 */
template <class ADD>
OPS_BODY void each_tap(const ops_grid_sample &p, const void *grid, const at5 &at, const ADD &add)
{
    const int64_t spot =
        (((int64_t)at.n * p.w.out[0] + at.z) * p.w.out[1] + at.y) * p.w.out[2] + at.x;
    grid_taps t[3];
    OPS_UNROLL
    for (int d = 0; d < 3; d++) { /* the grid has the last dimension first */
        t[d] = grid_taps{0, 0, 1};
        if (d >= 3 - p.rank)
            t[d] = grid_taps_at(p, d, get_double(grid, p.grid_type, spot * p.rank + 2 - d));
    }
    for (int a = 0; a < t[0].count; a++) {
        const int32_t z = p.rank < 3 ? 0 : padded_index(p, 0, t[0].first + a);
        const float   wz = p.rank < 3 ? 1 : grid_weight(p, t[0], a);
        for (int b = 0; b < t[1].count && z >= 0; b++) {
            const int32_t y = padded_index(p, 1, t[1].first + b);
            const float   wy = wz * grid_weight(p, t[1], b);
            for (int k = 0; k < t[2].count && y >= 0; k++) {
                const int32_t x = padded_index(p, 2, t[2].first + k);
                if (x >= 0)
                    add(wy * grid_weight(p, t[2], k),
                        z * p.w.x_step[2] + y * p.w.x_step[3] + x * p.w.x_step[4]);
            }
        }
    }
}

struct grid_body {
    struct ops_grid_sample p;
    const void            *in, *grid;
    void                  *out;
    OPS_BODY void          operator()(int64_t i) const
    {
        const at5     at = place5(p.places, i);
        const int64_t map = at.n * p.w.x_step[0] + at.c * p.w.x_step[1];
        float         sum = 0;
        each_tap(p, grid, at, [&](float weight, int64_t offset) {
            sum += weight * get_float(in, p.in_type, map + offset);
        });
        put_float(out, p.out_type, offset5(p.w.y_step, at), sum);
    }
};

/* Eight channels side by side: their places and weights are found once. */
struct grid8_body {
    struct ops_grid_sample p;
    const void            *in, *grid;
    void                  *out;
    OPS_BODY void          operator()(int64_t i) const
    {
        const at5     at = place5(p.units, i);
        const int64_t from = at.n * p.w.x_step[0] + (int64_t)at.c * LANES;
        float         sum[LANES] = {0};
        each_tap(p, grid, at, [&](float weight, int64_t offset) {
            float v[LANES];
            get8(in, p.in_type, from + offset, v);
            OPS_UNROLL
            for (int j = 0; j < LANES; j++)
                sum[j] += weight * v[j];
        });
        put8(out, p.out_type,
             at.n * p.w.y_step[0] + (int64_t)at.c * LANES + at.z * p.w.y_step[2] +
                 at.y * p.w.y_step[3] + at.x * p.w.y_step[4],
             sum);
    }
};

struct affine_body {
    struct ops_affine p;
    const void       *theta;
    void             *out;
    OPS_BODY void     operator()(int64_t i) const
    {
        double        at[4] = {0, 0, 0, 1}; /* x, y, (z,) 1 */
        const int64_t places = p.size[0] * p.size[1] * p.size[2];
        int64_t       rest = i % places;
        for (int k = 0; k < p.rank; k++) {
            const int64_t size = p.size[2 - k];
            const double  x = (double)(rest % size);
            at[k] = !p.align   ? (2 * x + 1) / (double)size - 1
                    : size > 1 ? 2 * x / (double)(size - 1) - 1
                               : -1;
            rest /= size;
        }
        for (int row = 0; row < p.rank; row++) {
            const int64_t from = (i / places * p.rank + row) * (p.rank + 1);
            double        sum = get_double(theta, p.in_type, from + p.rank);
            for (int k = 0; k < p.rank; k++)
                sum += at[k] * get_double(theta, p.in_type, from + k);
            put_float(out, p.out_type, i * p.rank + row, sum);
        }
    }
};

/* ---- RoiAlign ---- */

struct roi_body {
    struct ops_roi_align p;
    const void          *in, *rois;
    const int64_t       *batch;
    void                *out;

    OPS_BODY void sample(int64_t base, double py, double px, double *sum, double *best) const
    {
        const int32_t h = p.height, w = p.width;
        const bool    off = py < -1 || py > h || px < -1 || px > w;
        py = clamp(py, 0, h - 1);
        px = clamp(px, 0, w - 1);
        const int32_t y0 = off ? 0 : (int32_t)py, x0 = off ? 0 : (int32_t)px;
        const int32_t y1 = y0 + 1 < h ? y0 + 1 : h - 1, x1 = x0 + 1 < w ? x0 + 1 : w - 1;
        const double  fy = py - y0, fx = px - x0;
        for (int k = 0; k < 4; k++) {
            const double  weight = off ? 0 : (k & 2 ? fy : 1 - fy) * (k & 1 ? fx : 1 - fx);
            const int64_t at =
                base + (k & 2 ? y1 : y0) * p.w.x_step[3] + (k & 1 ? x1 : x0) * p.w.x_step[4];
            const double v = weight * get_double(in, p.in_type, at);
            *sum += v;
            *best = fmax(*best, v);
        }
    }

    OPS_BODY void operator()(int64_t i) const
    {
        const at5 at = place5(p.places, i);
        double    box[4], sum = 0, best = -INFINITY;
        int64_t   image = batch[at.n];
        image = image < 0 ? 0 : image < p.images ? image : p.images - 1;
        for (int k = 0; k < 4; k++)
            box[k] = get_double(rois, p.roi_type, (int64_t)at.n * 4 + k) * p.scale - p.offset;
        double h = box[3] - box[1], w = box[2] - box[0];
        h = (p.old ? fmax(h, 1.0) : h) / p.bins_y;
        w = (p.old ? fmax(w, 1.0) : w) / p.bins_x;
        const int32_t rows = p.sampling ? p.sampling : (int32_t)clamp(ceil(h), 0, 4096);
        const int32_t columns = p.sampling ? p.sampling : (int32_t)clamp(ceil(w), 0, 4096);
        const double  top = box[1] + at.y * h, left = box[0] + at.x * w;
        for (int32_t a = 0; a < rows; a++)
            for (int32_t b = 0; b < columns; b++)
                sample(image * p.w.x_step[0] + at.c * p.w.x_step[1], top + (a + 0.5) * h / rows,
                       left + (b + 0.5) * w / columns, &sum, &best);
        const double v = rows == 0 || columns == 0 ? 0
                         : p.max                   ? best
                                                   : sum / ((double)rows * columns);
        put_float(out, p.out_type, offset5(p.w.y_step, at), v);
    }
};

/* ---- Col2Im: every pixel gathers the blocks that cover it ---- */

struct col2im_body {
    struct ops_col2im p;
    const void       *in;
    void             *out;
    OPS_BODY void     operator()(int64_t i) const
    {
        const int64_t pixel = i % p.pixels, plane = i / p.pixels;
        double        sum = 0;
        for (int64_t t = 0; t < p.taps; t++) {
            int64_t rest = pixel, tap = t, column = 0, step = 1;
            bool    covers = true;
            for (int d = p.rank - 1; d >= 0 && covers; d--) {
                const int64_t x = rest % p.image[d] + p.pad[d] - tap % p.block[d] * p.dilation[d];
                const int64_t l = x / p.stride[d];
                covers = x >= 0 && l * p.stride[d] == x && l < p.places[d];
                column += l * step;
                step *= p.places[d];
                rest /= p.image[d];
                tap /= p.block[d];
            }
            if (covers)
                sum += get_double(in, p.in_type, (plane * p.taps + t) * p.columns + column);
        }
        put_float(out, p.out_type, i, sum);
    }
};

/* ---- DeformConv ---- */

struct deform_body {
    struct ops_deform p;
    const void       *in[5]; /* x, weights, offset, bias, mask; all plain */
    void             *out;

    OPS_BODY double pixel(int64_t plane, double y, double x) const
    {
        const ops_window &w = p.w;
        return y < 0 || x < 0 || y >= w.in[1] || x >= w.in[2]
                   ? 0
                   : get_double(in[0], p.type[0],
                                plane + (int64_t)y * w.x_step[3] + (int64_t)x * w.x_step[4]);
    }
    OPS_BODY double blend(int64_t plane, double y, double x) const
    {
        const double y0 = floor(y), x0 = floor(x), fy = y - y0, fx = x - x0;
        return (1 - fy) * ((1 - fx) * pixel(plane, y0, x0) + fx * pixel(plane, y0, x0 + 1)) +
               fy * ((1 - fx) * pixel(plane, y0 + 1, x0) + fx * pixel(plane, y0 + 1, x0 + 1));
    }

    OPS_BODY void operator()(int64_t i) const
    {
        const ops_window &w = p.w;
        const at5         at = place5(p.places, i);
        const int64_t spot = (int64_t)at.y * w.out[2] + at.x, plane = (int64_t)w.out[1] * w.out[2];
        const int32_t group = at.c / p.out_each, taps = w.kernel[1] * w.kernel[2];
        double        sum = p.type[3] ? get_double(in[3], p.type[3], at.c) : 0;
        for (int32_t k = 0; k < p.in_each; k++) {
            const int32_t c = group * p.in_each + k;
            const int64_t og = c / p.per_offset;
            for (int32_t t = 0; t < taps; t++) {
                const int64_t o = (at.n * (int64_t)p.offset_groups + og) * taps + t;
                const double  y = at.y * w.stride[1] - w.pad_begin[1] +
                                 t / w.kernel[2] * w.dilation[1] +
                                 get_double(in[2], p.type[2], 2 * o * plane + spot);
                const double x = at.x * w.stride[2] - w.pad_begin[2] +
                                 t % w.kernel[2] * w.dilation[2] +
                                 get_double(in[2], p.type[2], (2 * o + 1) * plane + spot);
                const double mask = p.type[4] ? get_double(in[4], p.type[4], o * plane + spot) : 1;
                sum += get_double(in[1], p.type[1], ((int64_t)at.c * p.in_each + k) * taps + t) *
                       mask * blend(at.n * w.x_step[0] + c * w.x_step[1], y, x);
            }
        }
        put_float(out, p.out_type, offset5(w.y_step, at), sum);
    }
};

/* ---- MaxUnpool ---- */

template <class UNIT> struct clear_body {
    UNIT         *out;
    OPS_BODY void operator()(int64_t i) const
    {
        out[i] = 0;
    }
};

template <class UNIT> struct unpool_body {
    struct ops_unpool p;
    const UNIT       *in;
    const int64_t    *indices;
    UNIT             *out;
    OPS_BODY void     operator()(int64_t i) const
    {
        int64_t rest = indices[i], to = 0;
        if (rest < 0 || rest >= p.whole_count)
            return;
        for (int d = p.rank - 1; d >= 0; d--) {
            to += rest % p.whole[d] * p.step[d];
            rest /= p.whole[d];
        }
        out[to] = in[i];
    }
};

} // namespace

extern "C" int ops_launch_grid_sample(const void *params, const struct ops_ports *ports,
                                      void *stream)
{
    const struct ops_grid_sample *p = (const struct ops_grid_sample *)params;
    if (p->vector && fits16(ports->in[0]) && fits16(ports->out[0])) {
        grid8_body body = {*p, ports->in[0], ports->in[1], ports->out[0]};
        return each(body, p->units.count, stream);
    }
    grid_body body = {*p, ports->in[0], ports->in[1], ports->out[0]};
    return each(body, p->places.count, stream);
}

extern "C" int ops_launch_affine(const void *params, const struct ops_ports *ports, void *stream)
{
    affine_body body = {*(const struct ops_affine *)params, ports->in[0], ports->out[0]};
    return each(body, body.p.count, stream);
}

extern "C" int ops_launch_roi_align(const void *params, const struct ops_ports *ports, void *stream)
{
    roi_body body = {*(const struct ops_roi_align *)params, ports->in[0], ports->in[1],
                     (const int64_t *)ports->in[2], ports->out[0]};
    return each(body, body.p.places.count, stream);
}

extern "C" int ops_launch_col2im(const void *params, const struct ops_ports *ports, void *stream)
{
    col2im_body body = {*(const struct ops_col2im *)params, ports->in[0], ports->out[0]};
    return each(body, body.p.count, stream);
}

extern "C" int ops_launch_deform(const void *params, const struct ops_ports *ports, void *stream)
{
    deform_body body = {*(const struct ops_deform *)params,
                        {ports->in[0], ports->in[1], ports->in[2], ports->in[3], ports->in[4]},
                        ports->out[0]};
    return each(body, body.p.places.count, stream);
}

extern "C" int ops_launch_unpool(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_unpool *p = (const struct ops_unpool *)params;
    return by_bytes(p->bytes, [&](auto unit) {
        using UNIT = decltype(unit);
        clear_body<UNIT>  clear = {(UNIT *)ports->out[0]};
        unpool_body<UNIT> body = {*p, (const UNIT *)ports->in[0], (const int64_t *)ports->in[1],
                                  (UNIT *)ports->out[0]};
        const int         res = each(clear, p->out_count, stream);
        return res ? res : each(body, p->count, stream);
    });
}
