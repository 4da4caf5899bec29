/* SPDX-License-Identifier: Apache-2.0 */
/* Expectation: a thread for each mean, whose bins it reads twice, the second time from a cache. The
 * groups of a pixel are neighbours, as their bins are in channels last.
 *
 * With sums or a rest neighbouring threads take neighbouring pixels, as results in ONNX's order lie
 * so; the channels of a stretch of pixels, which share lines of the cache, go to the warps of one
 * block. */
#include "engine/cuda/kernels/expectation.h"

#include "engine/cuda/kernels/functions.cuh"

using namespace ops;

namespace
{

static_assert((int)OPS_EXPECTATION_CHANNELS == (int)LANES, "a part is read at once");

template <bool EIGHTS> struct expectation_body {
    struct ops_expectation p;
    const void            *x, *w;
    void                  *y;

    /* each(number of the bin, what x has there), in the order of the bins */
    template <class EACH> OPS_BODY void bins(int64_t at, const EACH &each) const
    {
        if constexpr (EIGHTS) {
            for (int k = 0; k < p.bins; k += LANES) {
                float v[LANES];
                get8(x, p.in_type, at + k, v);
                OPS_UNROLL
                for (int j = 0; j < LANES; j++)
                    each(k + j, v[j]);
            }
        } else {
            for (int k = 0; k < p.bins; k++)
                each(k, get_float(x, p.in_type, at + k * p.in_bin));
        }
    }

    OPS_BODY float mean(int64_t pixel, uint32_t group) const
    {
        const int64_t from = pixel + (int64_t)group * p.bins * p.in_bin;
        float         max = -INFINITY, sum = 0, all = 0;
        bins(from, [&](int, float v) { max = v > max ? v : max; });
        bins(from, [&](int k, float v) {
            const float e = expf(v - max);
            sum += e;
            all += e * get_float(w, p.w_type, k);
        });
        return all / sum;
    }

    OPS_BODY void operator()(int64_t i) const
    {
        const uint32_t pixel = divide((uint32_t)i, p.groups),
                       group = (uint32_t)i - pixel * p.groups.d, n = divide(pixel, p.pixels),
                       at = pixel - n * p.pixels.d;
        put_float(y, p.out_type, n * p.out_sample + at * p.out_pixel + group * p.out_channel,
                  mean(n * p.in_sample + at * p.in_pixel, group));
    }
};

OPS_APART float activate(int function, float a, float b, float v)
{
    return real_function(function, v, 0.0f, 0.0f, a, b);
}

template <bool EIGHTS> struct tail_body {
    expectation_body<EIGHTS> means;
    const void              *m, *r;
    int32_t                  eights; /* of the rest */

    OPS_BODY void put(int64_t to, int64_t channel, float v) const
    {
        put_float(means.y, means.p.out_type, to + channel * means.p.out_channel, v);
    }

    /* The means of a pixel, or their sums. */
    OPS_BODY void first(uint32_t n, uint32_t pixel, int64_t to) const
    {
        const struct ops_expectation &p = means.p;
        const int64_t                 from = n * p.in_sample + pixel * p.in_pixel;
        const int                     groups = (int)p.groups.d;
        const float                  *c = (const float *)m + pixel;
        float                         v[SAC_EXPECTATION_MEANS];
        if (!p.sums) {
            for (int g = 0; g < groups; g++)
                put(to, g, means.mean(from, (uint32_t)g));
            return;
        }
        OPS_UNROLL
        for (int g = 0; g < SAC_EXPECTATION_MEANS; g++)
            v[g] = g < groups ? means.mean(from, (uint32_t)g) : 0;
        for (int k = 0; k < p.sums; k++) {
            float sum = c[(int64_t)groups * p.pixels.d];
            OPS_UNROLL
            for (int g = 0; g < SAC_EXPECTATION_MEANS; g++)
                if (g < groups)
                    sum += c[(int64_t)g * p.pixels.d] * v[g];
            put(to, k, sum);
            c += (int64_t)(groups + 1) * p.pixels.d;
        }
    }

    /* Channels of the rest from `channel` on. */
    OPS_BODY void others(uint32_t n, uint32_t pixel, int channel, int64_t to) const
    {
        const struct ops_expectation &p = means.p;
        const int     own = p.sums ? p.sums : (int)p.groups.d, count = p.rest - channel;
        const int64_t from = n * p.rest_sample + pixel * p.rest_pixel + channel * p.rest_channel;
        float         v[LANES];
        if (eights) {
            get8(r, p.rest_type, from, v);
        } else {
            OPS_UNROLL
            for (int j = 0; j < LANES; j++)
                v[j] = j < count ? get_float(r, p.rest_type, from + j * p.rest_channel) : 0;
        }
        OPS_UNROLL
        for (int j = 0; j < LANES; j++)
            if (j < count)
                put(to, own + channel + j,
                    p.activation == OPS_FN_SIGMOID
                        ? sigmoid(v[j])
                        : activate(p.activation, (float)p.a, (float)p.b, v[j]));
    }

    OPS_BODY void operator()(int64_t i) const
    {
        const struct ops_expectation &p = means.p;
        const uint32_t warp = (uint32_t)i / OPS_EXPECTATION_PIXELS, stretch = divide(warp, p.parts),
                       part = warp - stretch * p.parts.d, n = divide(stretch, p.stretches),
                       pixel = (stretch - n * p.stretches.d) * OPS_EXPECTATION_PIXELS +
                               (uint32_t)i % OPS_EXPECTATION_PIXELS;
        if (pixel >= p.pixels.d)
            return;
        const int64_t to = n * p.out_sample + pixel * p.out_pixel;
        if (part == 0)
            first(n, pixel, to);
        else
            others(n, pixel, (int)(part - 1) * LANES, to);
    }
};

template <bool EIGHTS>
int launch(const struct ops_expectation &p, const struct ops_ports *ports, void *stream)
{
    const expectation_body<EIGHTS> means{p, ports->in[0], ports->in[1], ports->out[0]};
    if (!p.tail_count)
        return each(means, p.count, stream);
    const tail_body<EIGHTS> tail{means, ports->in[2], ports->in[3],
                                 p.rest_eights && fits16(ports->in[3])};
    return each(tail, p.tail_count, stream);
}

} // namespace

extern "C" int ops_launch_expectation(const void *params, const struct ops_ports *ports,
                                      void *stream)
{
    const struct ops_expectation &p = *(const struct ops_expectation *)params;
    const bool eights = p.in_bin == 1 && p.bins % LANES == 0 && p.in_sample % LANES == 0 &&
                        p.in_pixel % LANES == 0 && fits16(ports->in[0]);
    if (p.count == 0 && p.tail_count == 0)
        return 0;
    return eights ? launch<true>(p, ports, stream) : launch<false>(p, ports, stream);
}
