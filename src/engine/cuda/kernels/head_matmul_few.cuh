/* SPDX-License-Identifier: Apache-2.0 */
/* Products whose matrix a has few rows and a short depth, as those that mix the heads of attention:
 * a tile would be empty for the most part, and what is read and written is all of the time. A
 * thread reads some neighbouring columns of b once, and makes all rows of them. */
#pragma once

#include "engine/cuda/kernels/head_matmul_ending.cuh"

namespace ops
{

template <int COUNT> struct few_numbers {
    static OPS_BODY void get(const void *p, int type, int64_t at, float (&v)[COUNT])
    {
        if constexpr (COUNT == 8)
            get8(p, type, at, v);
        else if constexpr (COUNT == 4)
            get4(p, type, at, v);
        else
            v[0] = get_float(p, type, at);
    }
    static OPS_BODY void put(void *p, int type, int64_t at, const float (&v)[COUNT])
    {
        if constexpr (COUNT == 8)
            put8(p, type, at, v);
        else if constexpr (COUNT == 4)
            put4(p, type, at, v);
        else
            put_float(p, type, at, v[0]);
    }
};

/* DEPTH: at least a's; COUNT: columns of a thread (ops_head_matmul.few). */
template <int DEPTH, int COUNT> struct few_body {
    struct ops_head_matmul p;
    const void            *a, *b;
    void                  *y;
    product_behind         behind;

    static OPS_BODY int64_t start_of(const ops_head_view &v, unsigned batch, unsigned head)
    {
        return v.offset + batch * v.step[0] + head * v.step[1];
    }

    OPS_BODY void operator()(int64_t n) const
    {
        using numbers = few_numbers<COUNT>;
        const unsigned across = (unsigned)p.columns / COUNT, product = (unsigned)n / across,
                       column = ((unsigned)n - product * across) * COUNT,
                       batch = product / (unsigned)p.heads,
                       head = product - batch * (unsigned)p.heads;
        const int64_t a_at = start_of(p.a, batch, head), b_at = start_of(p.b, batch, head) + column,
                      y_at = start_of(p.y, batch, head) + column, r_at = start_of(p.r, batch, head);
        float x[DEPTH][COUNT];
        OPS_UNROLL
        for (int k = 0; k < DEPTH; k++)
            if (k < p.depth)
                numbers::get(b, p.b_type, b_at + k * p.b.step[3], x[k]);
        for (int64_t row = 0; row < p.rows; row++) {
            float sum[COUNT] = {};
            OPS_UNROLL
            for (int k = 0; k < DEPTH; k++) {
                if (k >= p.depth)
                    break;
                const float w = get_float(a, p.a_type, a_at + row * p.a.step[2] + k * p.a.step[3]);
                OPS_UNROLL
                for (int i = 0; i < COUNT; i++)
                    sum[i] += w * x[k][i];
            }
            OPS_UNROLL
            for (int i = 0; i < COUNT; i++)
                sum[i] = product_ended(p, behind, r_at, row, column + i, sum[i]);
            numbers::put(y, p.y_type, y_at + row * p.y.step[2], sum);
        }
    }
};

template <int DEPTH, int COUNT>
int run_few(const struct ops_head_matmul &p, const struct ops_ports *ports, void *stream)
{
    const few_body<DEPTH, COUNT> body = {p, ports->in[p.a_port], ports->in[p.b_port], ports->out[0],
                                         product_behind(ports)};
    return each(body, p.batch * p.heads * (p.columns / COUNT), stream);
}

inline int product_few(const struct ops_head_matmul &p, const struct ops_ports *ports, void *stream)
{
    const bool fits = fits16(ports->in[p.b_port]) && fits16(ports->out[0]);
    if (!fits || p.few == 1)
        return run_few<OPS_HEAD_FEW, 1>(p, ports, stream);
    if (p.few == 4)
        return run_few<OPS_HEAD_FEW, 4>(p, ports, stream);
    return p.depth <= 4 ? run_few<4, 8>(p, ports, stream) : run_few<8, 8>(p, ports, stream);
}

} // namespace ops
