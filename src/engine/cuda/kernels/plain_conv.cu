/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions that no library supports: one thread per output. Works for every shape and dtype,
 * but slowly. */
#include "engine/cuda/kernels/functions.cuh"
#include "engine/cuda/kernels/window.cuh"
#include "engine/ops/fused_kinds.h"

using namespace ops;

namespace
{

/* T: float or double. */
template <class T> struct conv_body {
    struct ops_conv p;
    const void     *in[5];
    void           *out;

    /* The offset of the weights of a kernel's row. */
    OPS_BODY int64_t weights_at(int64_t row, int32_t channel, int32_t a, int32_t b) const
    {
        const int32_t *size = p.w.kernel;
        const int32_t  columns = p.transposed ? p.out_each : p.in_each;
        return (((row * columns + channel) * size[0] + a) * size[1] + b) * size[2];
    }

    OPS_BODY T forward(const at5 &at) const
    {
        const ops_window &w = p.w;
        const span    sz = span_of(w, 0, at.z), sy = span_of(w, 1, at.y), sx = span_of(w, 2, at.x);
        const int32_t first = at.c / p.out_each * p.in_each;
        T             sum = 0;
        for (int32_t c = 0; c < p.in_each; c++) {
            const int64_t from = at.n * w.x_step[0] + (first + c) * w.x_step[1];
            for (int a = sz.first; a < sz.last; a++)
                for (int b = sy.first; b < sy.last; b++) {
                    const int64_t weights = weights_at(at.c, c, a, b);
                    const int64_t row = from + (sz.start + a * w.dilation[0]) * w.x_step[2] +
                                        (sy.start + b * w.dilation[1]) * w.x_step[3] +
                                        sx.start * w.x_step[4];
                    for (int k = sx.first; k < sx.last; k++)
                        sum +=
                            floats<T>::get(in[1], p.type[1], weights + k) *
                            floats<T>::get(in[0], p.type[0], row + k * w.dilation[2] * w.x_step[4]);
                }
        }
        return sum;
    }

    /* The input index of kernel position k for output `at`; -1: none. */
    OPS_BODY int32_t source(int d, int32_t at, int32_t k) const
    {
        const int32_t x = at + p.w.pad_begin[d] - k * p.w.dilation[d], i = x / p.w.stride[d];
        return x < 0 || i * p.w.stride[d] != x || i >= p.w.in[d] ? -1 : i;
    }

    OPS_BODY T backward(const at5 &at) const
    {
        const ops_window &w = p.w;
        const int32_t     first = at.c / p.out_each * p.in_each, own = at.c % p.out_each;
        T                 sum = 0;
        for (int a = 0; a < w.kernel[0]; a++)
            for (int b = 0; b < w.kernel[1]; b++)
                for (int k = 0; k < w.kernel[2]; k++) {
                    const int32_t z = source(0, at.z, a), y = source(1, at.y, b),
                                  x = source(2, at.x, k);
                    if (z < 0 || y < 0 || x < 0)
                        continue;
                    const int64_t from =
                        at.n * w.x_step[0] + z * w.x_step[2] + y * w.x_step[3] + x * w.x_step[4];
                    for (int32_t c = first; c < first + p.in_each; c++)
                        sum += floats<T>::get(in[1], p.type[1], weights_at(c, own, a, b) + k) *
                               floats<T>::get(in[0], p.type[0], from + c * w.x_step[1]);
                }
        return sum;
    }

    OPS_BODY void operator()(int64_t i) const
    {
        const at5 at = place5(p.places, i);
        T         v = p.transposed ? backward(at) : forward(at);
        if (p.type[2])
            v += floats<T>::get(in[2], p.type[2], at.c);
        const T residual = p.type[3] && at.c < p.residual_c
                               ? floats<T>::get(in[3], p.type[3], offset5(p.residual_step, at))
                               : 0;
        v += p.residual_after ? 0 : residual;
        if (p.activation != OPS_FN_IDENTITY)
            v = (T)real_function(p.activation, (float)v, 0.0f, 0.0f, (float)p.a, (float)p.b);
        T after = p.residual_after ? residual : 0;
        if (p.type[4]) {
            const int64_t channels = (int64_t)p.group * p.out_each;
            v = v * floats<T>::get(in[4], p.type[4], SAC_ENDING_SCALE * channels + at.c) +
                floats<T>::get(in[4], p.type[4], SAC_ENDING_SHIFT * channels + at.c);
            after *= floats<T>::get(in[4], p.type[4], SAC_ENDING_RESIDUAL * channels + at.c);
        }
        put_float(out, p.out_type, offset5(p.w.y_step, at), v + after);
    }
};

template <class T> int run(const struct ops_conv &p, const struct ops_ports *ports, void *stream)
{
    conv_body<T> body = {
        p, {ports->in[0], ports->in[1], ports->in[2], ports->in[3], ports->in[4]}, ports->out[0]};
    return each(body, p.places.count, stream);
}

/* ---- 8-bit numbers: zero points off, then sums of integers, for QLinearConv scaled back ---- */

struct integer_body {
    struct ops_conv_integer p;
    const void *x, *weights, *bias, *x_zero, *w_zero, *y_zero, *x_scale, *w_scale, *y_scale;
    void       *out;

    OPS_BODY uint32_t sum_at(const at5 &at) const
    {
        const ops_window &w = p.w;
        const span    sz = span_of(w, 0, at.z), sy = span_of(w, 1, at.y), sx = span_of(w, 2, at.x);
        const int32_t first = at.c / p.out_each * p.in_each;
        const int32_t zero_x = (int32_t)parameter(x_zero, p.x_zero, 0, 0);
        const int32_t zero_w = (int32_t)parameter(w_zero, p.w_zero, at.c, 0);
        uint32_t      sum = bias ? (uint32_t)((const int32_t *)bias)[at.c] : 0; /* wraps */
        for (int32_t c = 0; c < p.in_each; c++)
            for (int a = sz.first; a < sz.last; a++)
                for (int b = sy.first; b < sy.last; b++)
                    for (int k = sx.first; k < sx.last; k++) {
                        const at5     from = {at.n, first + c, sz.start + a * w.dilation[0],
                                              sy.start + b * w.dilation[1],
                                              sx.start + k * w.dilation[2]};
                        const int64_t tap =
                            (((int64_t)at.c * p.in_each + c) * w.kernel[0] + a) * w.kernel[1] + b;
                        sum += (uint32_t)((get<int32_t>(x, p.x_type, offset5(w.x_step, from)) -
                                           zero_x) *
                                          (get<int32_t>(weights, p.w_type, tap * w.kernel[2] + k) -
                                           zero_w));
                    }
        return sum;
    }

    OPS_BODY void operator()(int64_t i) const
    {
        const at5     at = place5(p.places, i);
        const int64_t to = offset5(p.w.y_step, at);
        const int32_t sum = (int32_t)sum_at(at);
        if (!y_scale) {
            ((int32_t *)out)[to] = sum;
            return;
        }
        const double y =
            (double)sum *
            (parameter(x_scale, p.x_scale, 0, 1) * parameter(w_scale, p.w_scale, at.c, 1)) /
            parameter(y_scale, p.y_scale, 0, 1);
        put(out, p.out_type, to, rint((double)(float)y) + parameter(y_zero, p.y_zero, 0, 0));
    }
};

} // namespace

extern "C" int ops_launch_conv(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_conv *p = (const struct ops_conv *)params;
    return p->exact ? run<double>(*p, ports, stream) : run<float>(*p, ports, stream);
}

extern "C" int ops_launch_conv_integer(const void *params, const struct ops_ports *ports,
                                       void *stream)
{
    const struct ops_conv_integer *p = (const struct ops_conv_integer *)params;
#define PORT(of) (p->of.port < 0 ? NULL : ports->in[p->of.port])
    integer_body body = {*p,
                         ports->in[p->x_port],
                         ports->in[p->w_port],
                         p->bias_port < 0 ? NULL : ports->in[p->bias_port],
                         PORT(x_zero),
                         PORT(w_zero),
                         PORT(y_zero),
                         PORT(x_scale),
                         PORT(w_scale),
                         PORT(y_scale),
                         ports->out[0]};
#undef PORT
    return each(body, p->places.count, stream);
}
