/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/cuda/kernels/numbers.cuh"
#include "engine/cuda/kernels/window.h"

namespace ops
{

struct at5 {
    int32_t n, c, z, y, x;
};

OPS_BODY int32_t take(uint32_t &rest, const ops_divisor &d)
{
    const uint32_t above = divide(rest, d), index = rest - above * d.d;
    rest = above;
    return (int32_t)index;
}

OPS_BODY at5 place5(const ops_places &p, int64_t i)
{
    uint32_t rest = (uint32_t)i;
    at5      at;
    if (p.last)
        at.c = take(rest, p.c);
    at.x = take(rest, p.x);
    at.y = take(rest, p.y);
    at.z = take(rest, p.z);
    if (!p.last)
        at.c = take(rest, p.c);
    at.n = (int32_t)rest;
    return at;
}

OPS_BODY int64_t offset5(const int64_t *step, const at5 &at)
{
    return at.n * step[0] + at.c * step[1] + at.z * step[2] + at.y * step[3] + at.x * step[4];
}

/* The kernel positions of an output that are inside the input: first..last-1, and the input index
 * at first. */
struct span {
    int32_t start, first, last, padded;
};
OPS_BODY span span_of(const ops_window &w, int d, int32_t out)
{
    const int32_t dilation = w.dilation[d], start = out * w.stride[d] - w.pad_begin[d],
                  in = w.in[d];
    span s;
    s.start = start;
    const bool dense = dilation == 1; /* a division takes longer than all the rest */
    s.first = start >= 0 ? 0 : dense ? -start : (-start + dilation - 1) / dilation;
    s.first = s.first < w.kernel[d] ? s.first : w.kernel[d];
    s.last = start >= in ? s.first : dense ? in - start : (in - 1 - start) / dilation + 1;
    s.last = s.last < w.kernel[d] ? s.last : w.kernel[d];
    s.last = s.last > s.first ? s.last : s.first;
    const int32_t beyond = in + w.pad_end[d] - 1 - start,
                  padded = (dense ? beyond : beyond / dilation) + 1;
    s.padded = padded < 0 ? 0 : padded < w.kernel[d] ? padded : w.kernel[d];
    return s;
}

OPS_BODY double parameter(const void *p, const ops_parameter &of, int64_t k, double fallback)
{
    return p ? get<double>(p, of.type, of.many ? k : 0) : fallback;
}

} // namespace ops
