/* SPDX-License-Identifier: Apache-2.0 */
/* What reductions make of numbers, by kinds known at compile time. */
#pragma once

#include "engine/cuda/kernels/lines.h"
#include "engine/cuda/kernels/numbers.cuh"

namespace ops
{

/* What becomes of a line's numbers. */
template <int KIND> struct folding {
    static constexpr bool LARGEST = KIND == OPS_REDUCE_MAX, LEAST = KIND == OPS_REDUCE_MIN,
                          PRODUCT = KIND == OPS_REDUCE_PROD;
    static OPS_BODY float none()
    {
        return LARGEST ? -INFINITY : LEAST ? INFINITY : PRODUCT ? 1 : 0;
    }
    /* top: of the exponents */
    static OPS_BODY float seen(float v, float top)
    {
        switch (KIND) {
        case OPS_REDUCE_ABS: return fabsf(v);
        case OPS_REDUCE_SQUARE: return v * v;
        case OPS_REDUCE_LOG_SUM_EXP: return expf(v - top);
        default: return v;
        }
    }
    template <class V> static OPS_BODY V folded(V all, V v)
    {
        if (LARGEST || LEAST)
            return (LARGEST ? v > all : v < all) || is_nan(v) ? v : all;
        return PRODUCT ? all * v : all + v;
    }
};

/* What is taken off exponents: infinity less infinity would be NaN. */
OPS_BODY float finite_or_0(float most)
{
    return most == INFINITY || most == -INFINITY ? 0 : most;
}

OPS_BODY double finish(int how, double v, double count)
{
    switch (how) {
    case OPS_FINISH_MEAN: return v / count;
    case OPS_FINISH_SQRT: return sqrt(v);
    case OPS_FINISH_LOG: return log(v);
    default: return v;
    }
}

OPS_BODY void finish_into(const struct ops_reduce &p, void *out, int64_t at, double v)
{
    v = finish(p.finish, v, (double)p.lines.inner.count);
    put(out, p.out_type, at, p.out_type <= SAC_BF16 ? v : trunc(v));
}

/* The result of a line, or of a part of one where partial, [parts][lines], is not NULL. */
OPS_BODY void put_result(const struct ops_reduce &p, void *out, double *partial, int64_t row,
                         int part, int64_t at, double v)
{
    if (partial)
        partial[part * p.lines.outer.count + row] = v;
    else
        finish_into(p, out, at, p.lines.inner.count ? v : p.nothing);
}

} // namespace ops
