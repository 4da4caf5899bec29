/* SPDX-License-Identifier: Apache-2.0 */
/* Expectation: a thread for each result, whose bins it reads twice, the second time from a cache.
 * The groups of a pixel are neighbours, as their bins are in channels last. */
#include "engine/cuda/kernels/expectation.h"

#include "engine/cuda/kernels/numbers.cuh"

using namespace ops;

namespace
{

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

    OPS_BODY void operator()(int64_t i) const
    {
        const uint32_t pixel = divide((uint32_t)i, p.groups),
                       group = (uint32_t)i - pixel * p.groups.d, n = divide(pixel, p.pixels),
                       at = pixel - n * p.pixels.d;
        const int64_t from = n * p.in_sample + at * p.in_pixel + (int64_t)group * p.bins * p.in_bin;
        float         max = -INFINITY, sum = 0, all = 0;
        bins(from, [&](int, float v) { max = v > max ? v : max; });
        bins(from, [&](int k, float v) {
            const float e = expf(v - max);
            sum += e;
            all += e * get_float(w, p.w_type, k);
        });
        put_float(y, p.out_type, n * p.out_sample + at * p.out_pixel + group * p.out_group,
                  all / sum);
    }
};

} // namespace

extern "C" int ops_launch_expectation(const void *params, const struct ops_ports *ports,
                                      void *stream)
{
    const struct ops_expectation &p = *(const struct ops_expectation *)params;
    if (p.count == 0)
        return 0;
    if (p.in_bin == 1 && p.bins % LANES == 0 && p.in_sample % LANES == 0 &&
        p.in_pixel % LANES == 0 && fits16(ports->in[0]))
        return each(expectation_body<true>{p, ports->in[0], ports->in[1], ports->out[0]}, p.count,
                    stream);
    return each(expectation_body<false>{p, ports->in[0], ports->in[1], ports->out[0]}, p.count,
                stream);
}
