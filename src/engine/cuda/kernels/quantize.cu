// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/kernels/bytes.cuh"
#include "engine/cuda/kernels/quantize.h"

using namespace ops;

namespace
{

/* ---- by scales that are read ---- */

struct quantize_body {
    struct ops_quantize p;
    const void         *in, *scale, *zero;
    void               *out;
    OPS_BODY int64_t    scale_index(int64_t i) const
    {
        if (!p.scales)
            return 0;
        const int64_t along = i / p.inner % p.length / p.block;
        return p.blocked ? (i / p.inner / p.length * p.scales + along) * p.inner + i % p.inner
                         : along;
    }
    OPS_BODY void operator()(int64_t i) const
    {
        const int64_t k = scale_index(i);
        const double  z = p.zero_type ? get<double>(zero, p.zero_type, k) : 0;
        if (p.dequantize) {
            put_float(out, p.out_type, i,
                      (get<double>(in, p.in_type, i) - z) * get_double(scale, p.scale_type, k));
            return;
        }
        /* The quotient is computed in float, as other implementations do, because its rounding
         * decides ties. */
        const float q = (float)get<double>(in, p.in_type, i) / get_float(scale, p.scale_type, k);
        put(out, p.out_type, i, rint((double)q) + z);
    }
};

/* ---- by one scale ---- */

struct rescale_body {
    struct ops_quantize p;
    const void         *in;
    void               *out;

    OPS_BODY void places(int64_t i, int64_t &from, int64_t &to) const
    {
        const struct ops_rescale &w = p.whole;
        const uint32_t            pixel = divide((uint32_t)i, w.across),
                       c = ((uint32_t)i - pixel * w.across.d) * (uint32_t)w.width,
                       n = divide(pixel, w.pixels), at = pixel - n * w.pixels.d;
        from = n * w.in_sample + at * w.in_pixel + c;
        to = n * w.out_sample + at * w.out_pixel + c;
    }
};

struct one_body : rescale_body {
    OPS_BODY void operator()(int64_t i) const
    {
        int64_t from, to;
        places(i, from, to);
        for (int k = 0; k < p.whole.width; k++, from++, to++)
            if (p.dequantize)
                put_float(out, p.out_type, to,
                          (byte_to_float(((const uint8_t *)in)[from], p.in_type) - p.whole.zero) *
                              p.whole.scale);
            else
                ((uint8_t *)out)[to] = float_to_byte(get_float(in, p.in_type, from) * p.whole.scale,
                                                     p.whole.zero, p.out_type);
    }
};

/* Sixteen side by side: 16 bytes of one, 32 or 64 of the other. */
struct sixteen_body : rescale_body {
    OPS_BODY void quantize(int64_t from, int64_t to) const
    {
        uint32_t words[4];
        OPS_UNROLL
        for (int k = 0; k < 2; k++) {
            float v[LANES];
            get8(in, p.in_type, from + k * LANES, v);
            OPS_UNROLL
            for (int j = 0; j < LANES; j++) {
                const uint32_t byte = float_to_byte(v[j] * p.whole.scale, p.whole.zero, p.out_type);
                words[2 * k + j / 4] = j % 4 ? words[2 * k + j / 4] | byte << j % 4 * 8 : byte;
            }
        }
        bytes16 all;
        all.x = words[0], all.y = words[1], all.z = words[2], all.w = words[3];
        *(bytes16 *)((uint8_t *)out + to) = all;
    }
    OPS_BODY void dequantize(int64_t from, int64_t to) const
    {
        const bytes16  all = *(const bytes16 *)((const uint8_t *)in + from);
        const uint32_t words[4] = {all.x, all.y, all.z, all.w};
        OPS_UNROLL
        for (int k = 0; k < 2; k++) {
            float v[LANES];
            OPS_UNROLL
            for (int j = 0; j < LANES; j++)
                v[j] = (byte_to_float((uint8_t)(words[2 * k + j / 4] >> j % 4 * 8), p.in_type) -
                        p.whole.zero) *
                       p.whole.scale;
            put8(out, p.out_type, to + k * LANES, v);
        }
    }
    OPS_BODY void operator()(int64_t i) const
    {
        int64_t from, to;
        places(i, from, to);
        if (p.dequantize)
            dequantize(from, to);
        else
            quantize(from, to);
    }
};

} // namespace

extern "C" int ops_launch_quantize(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_quantize *p = (const struct ops_quantize *)params;
    const void                *in = ports->in[0];
    void                      *out = ports->out[0];
    if (p->whole.count > 0) {
        const rescale_body both = {*p, in, out};
        const sixteen_body sixteen = {both};
        const one_body     one = {both};
        return p->whole.width == 16 && fits16(in) && fits16(out)
                   ? each(sixteen, p->whole.count, stream)
                   : each(one, p->whole.count, stream);
    }
    const quantize_body body = {*p, in, ports->in[1], ports->in[2], out};
    return each(body, p->n, stream);
}
