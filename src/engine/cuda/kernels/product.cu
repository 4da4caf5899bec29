/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/kernels/functions.cuh"
#include "engine/cuda/kernels/product.h"
#include "engine/cuda/kernels/team.cuh"
#include "engine/cuda/kernels/window.cuh"
#include "engine/ops/fused_kinds.h"

using namespace ops;

namespace
{

template <class T> struct product_body {
    struct ops_product                  p;
    const void                         *in[OPS_PRODUCT_OPERANDS - 1];
    void                               *out;
    template <class TEAM> OPS_BODY void operator()(int64_t row, int, const TEAM &team) const
    {
        int64_t at[OPS_PRODUCT_OPERANDS], inner[OPS_PRODUCT_OPERANDS];
        T       sum = 0;
        place(p.lines.outer, row, at);
        const struct ops_view &sum_over = p.lines.inner;
        if (p.factors == 2 && sum_over.rank == 1) { /* a matrix product */
            const int64_t a = sum_over.step[1][0], b = sum_over.step[2][0];
            for (int64_t j = team.lane(); j < sum_over.count; j += team.lanes())
                sum += get<T>(in[0], p.type[1], at[1] + j * a) *
                       get<T>(in[1], p.type[2], at[2] + j * b);
        } else {
            for (int64_t j = team.lane(); j < sum_over.count; j += team.lanes()) {
                T v = 1;
                place(sum_over, j, inner);
                OPS_UNROLL
                for (int k = 0; k < OPS_PRODUCT_OPERANDS - 1; k++)
                    if (k < p.factors)
                        v *= get<T>(in[k], p.type[k + 1], at[k + 1] + inner[k + 1]);
                sum += v;
            }
        }
        sum = team.all(sum, add<T>());
        if (team.lane() != 0)
            return;
        if (p.alpha == 1 && !p.adds) {
            put(out, p.out_type, at[0], sum);
            return;
        }
        const double plus =
            p.adds ? p.beta * get<double>(in[p.factors], p.type[p.factors + 1], at[3]) : 0;
        put(out, p.out_type, at[0], p.alpha * (double)sum + plus);
    }
};

struct fused_body {
    struct ops_product_fused            p;
    const void                         *in[5];
    void                               *out;
    template <class TEAM> OPS_BODY void operator()(int64_t row, int, const TEAM &team) const
    {
        int64_t at[OPS_PRODUCT_OPERANDS];
        float   v = 0;
        place(p.lines.outer, row, at);
        const struct ops_view &sum_over = p.lines.inner;
        const int64_t          a = sum_over.step[1][0], b = sum_over.step[2][0];
        for (int64_t j = team.lane(); j < sum_over.count; j += team.lanes())
            v += get<float>(in[0], p.type[0], at[1] + j * a) *
                 get<float>(in[1], p.type[1], at[2] + j * b);
        v = team.all(v, add<float>());
        if (team.lane() != 0)
            return;
        v += p.type[2] ? get<float>(in[2], p.type[2], at[4]) : 0;
        const float residual = p.type[3] ? get<float>(in[3], p.type[3], at[5]) : 0;
        v += p.residual_after ? 0 : residual;
        if (p.activation != OPS_FN_IDENTITY)
            v = real_function(p.activation, v, 0.0f, 0.0f, (float)p.a, (float)p.b);
        float after = p.residual_after ? residual : 0;
        if (p.type[4]) {
            v = v * get<float>(in[4], p.type[4], SAC_ENDING_SCALE * p.columns + at[6]) +
                get<float>(in[4], p.type[4], SAC_ENDING_SHIFT * p.columns + at[6]);
            after *= get<float>(in[4], p.type[4], SAC_ENDING_RESIDUAL * p.columns + at[6]);
        }
        put(out, p.out_type, at[0], v + after);
    }
};

struct integer_body {
    struct ops_product_integer p;
    const void                *a, *b, *a_zero, *b_zero, *y_zero, *a_scale, *b_scale, *y_scale;
    void                      *out;
    template <class TEAM> OPS_BODY void operator()(int64_t row, int, const TEAM &team) const
    {
        int64_t at[4], inner[3];
        place(p.lines.outer, row, at);
        const int64_t i = at[3] / p.columns % p.rows, k = at[3] % p.columns;
        const int64_t za = (int64_t)parameter(a_zero, p.a_zero, i, 0),
                      zb = (int64_t)parameter(b_zero, p.b_zero, k, 0);
        int64_t sum = 0;
        for (int64_t j = team.lane(); j < p.lines.inner.count; j += team.lanes()) {
            place(p.lines.inner, j, inner);
            sum += (get<int64_t>(a, p.a_type, at[1] + inner[1]) - za) *
                   (get<int64_t>(b, p.b_type, at[2] + inner[2]) - zb);
        }
        sum = team.all(sum, add<int64_t>());
        if (team.lane() != 0)
            return;
        if (!y_scale) {
            ((int32_t *)out)[at[0]] = (int32_t)sum;
            return;
        }
        const double y =
            (double)sum *
            (parameter(a_scale, p.a_scale, i, 1) * parameter(b_scale, p.b_scale, k, 1)) /
            parameter(y_scale, p.y_scale, 0, 1);
        put(out, p.out_type, at[0], rint((double)(float)y) + parameter(y_zero, p.y_zero, 0, 0));
    }
};

} // namespace

extern "C" int ops_launch_product(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_product *p = (const struct ops_product *)params;
    return by_class(p->computed, [&](auto number) {
        product_body<decltype(number)> body;
        body.p = *p;
        body.out = ports->out[0];
        for (int k = 0; k < OPS_PRODUCT_OPERANDS - 1; k++)
            body.in[k] = k < p->factors + p->adds ? ports->in[k] : NULL;
        return lines<SOLO | WARPS>(body, p->lines.team, p->lines.outer.count, 1, stream);
    });
}

extern "C" int ops_launch_product_fused(const void *params, const struct ops_ports *ports,
                                        void *stream)
{
    const struct ops_product_fused *p = (const struct ops_product_fused *)params;
    fused_body                      body = {*p, {}, ports->out[0]};
    for (int k = 0; k < 5; k++)
        body.in[k] = p->type[k] ? ports->in[k] : NULL;
    return lines<SOLO | WARPS>(body, p->lines.team, p->lines.outer.count, 1, stream);
}

extern "C" int ops_launch_product_integer(const void *params, const struct ops_ports *ports,
                                          void *stream)
{
    const struct ops_product_integer *p = (const struct ops_product_integer *)params;
#define PORT(of) (p->of.port < 0 ? NULL : ports->in[p->of.port])
    integer_body body = {
        *p,           ports->in[p->a_port], ports->in[p->b_port], PORT(a_zero),  PORT(b_zero),
        PORT(y_zero), PORT(a_scale),        PORT(b_scale),        PORT(y_scale), ports->out[0]};
#undef PORT
    return lines<SOLO | WARPS>(body, p->lines.team, p->lines.outer.count, 1, stream);
}
