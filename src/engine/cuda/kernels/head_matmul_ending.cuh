/* SPDX-License-Identifier: Apache-2.0 */
/* What a HeadMatMul has behind its sums. */
#pragma once

#include "engine/cuda/kernels/functions.cuh"
#include "engine/cuda/kernels/head_matmul.h"

namespace ops
{

/* Inputs 2 and 3, NULL where there is none. */
struct product_behind {
    const float *bias;
    const void  *r;

    explicit product_behind(const struct ops_ports *ports)
        : bias((const float *)ports->in[2]), r(ports->in[3])
    {
    }
};

/* The result for a sum of that row and column; r_start: of the head in r. */
OPS_BODY float product_ended(const struct ops_head_matmul &p, const product_behind &to,
                             int64_t r_start, int64_t row, int64_t column, float sum)
{
    const float bias = p.bias_type ? to.bias[p.by_row ? row : column] : 0,
                v = activated(p.act, sum * p.scale + bias, p.act_a, p.act_b);
    if (!p.r_type)
        return v;
    const float other =
        get_float(to.r, p.r_type, r_start + row * p.r.step[2] + column * p.r.step[3]);
    return p.gates ? v * other : v + other;
}

} // namespace ops
