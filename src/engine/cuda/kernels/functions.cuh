/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of enum ops_fn, as engine/ops/unary.c and ops/binary.c have them. With a function
 * that is known at compile time, the compiler drops all others. */
#pragma once

#include "engine/cuda/kernels/map.h"
#include "engine/cuda/kernels/numbers.cuh"

namespace ops
{

template <class T> OPS_BODY T sigmoid(T x)
{
    return 1 / (1 + exp(-x));
}
/* x * y * sigmoid(a * x). The sigmoid may be below the least number where the result is not: then
 * each factor gets a half of its exponential. */
template <class T> OPS_BODY T swiglu(T x, T y, T a)
{
    const T half = exp(a * x / 2);
    return a * x < 0 ? x * (half / (1 + half * half)) * (y * half) : x / (1 + exp(-a * x)) * y;
}

template <class T> OPS_BODY T softplus(T x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
template <class T> OPS_BODY T clamp01(T x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}
template <class T> OPS_BODY bool is_inf(T x)
{
    return x - x != x - x && x == x;
}

template <class T> OPS_BODY T floor_mod(T x, T y)
{
    const T r = fmod(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

/* float and double */
template <class T> OPS_BODY T real_function(int fn, T x, T y, T z, T a, T b)
{
    switch (fn) {
    case OPS_FN_ABS: return fabs(x);
    case OPS_FN_ACOS: return acos(x);
    case OPS_FN_ACOSH: return acosh(x);
    case OPS_FN_ASIN: return asin(x);
    case OPS_FN_ASINH: return asinh(x);
    case OPS_FN_ATAN: return atan(x);
    case OPS_FN_ATANH: return atanh(x);
    case OPS_FN_CEIL: return ceil(x);
    case OPS_FN_CELU: return x > 0 ? x : a * expm1(x / a);
    case OPS_FN_CLIP: x = x < a ? a : x; return x > b ? b : x;
    case OPS_FN_COS: return cos(x);
    case OPS_FN_COSH: return cosh(x);
    case OPS_FN_ELU: return x > 0 ? x : a * expm1(x);
    case OPS_FN_ERF: return erf(x);
    case OPS_FN_EXP: return exp(x);
    case OPS_FN_FLOOR: return floor(x);
    case OPS_FN_GELU: return x / 2 * (1 + erf(x * (T)0.70710678118654752440));
    case OPS_FN_GELU_TANH:
        return x / 2 * (1 + tanh((T)0.79788456080286535588 * (x + (T)0.044715 * x * x * x)));
    case OPS_FN_HARD_SIGMOID: return clamp01(a * x + b);
    case OPS_FN_HARD_SWISH: return x * clamp01(a * x + b);
    case OPS_FN_IS_INF: return is_inf(x) && (x < 0 ? a : b) != 0;
    case OPS_FN_IS_NAN: return x != x;
    case OPS_FN_LEAKY_RELU: return x < 0 ? a * x : x;
    case OPS_FN_LOG: return log(x);
    case OPS_FN_MISH: return x * tanh(softplus(x));
    case OPS_FN_NEG: return -x;
    case OPS_FN_ONE: return 1;
    case OPS_FN_RECIPROCAL: return 1 / x;
    case OPS_FN_RELU: return x < 0 ? 0 : x;
    case OPS_FN_ROUND: return rint(x);
    case OPS_FN_SELU: return x > 0 ? b * x : b * a * expm1(x);
    case OPS_FN_SHRINK: return x < -b ? x + a : x > b ? x - a : 0;
    case OPS_FN_SIGMOID: return sigmoid(x);
    case OPS_FN_SIGN: return x > 0 ? 1 : x < 0 ? -1 : x;
    case OPS_FN_SIN: return sin(x);
    case OPS_FN_SINH: return sinh(x);
    case OPS_FN_SOFTPLUS: return softplus(x);
    case OPS_FN_SOFTSIGN: return x / (1 + fabs(x));
    case OPS_FN_SQRT: return sqrt(x);
    case OPS_FN_SWISH: return x * sigmoid(a * x);
    case OPS_FN_TAN: return tan(x);
    case OPS_FN_TANH: return tanh(x);
    case OPS_FN_THRESHOLDED_RELU: return x > a ? x : 0;
    case OPS_FN_ADD: return x + y;
    case OPS_FN_SUB: return x - y;
    case OPS_FN_MUL: return x * y;
    case OPS_FN_DIV: return x / y;
    case OPS_FN_POW: return y == 2 ? x * x : pow(x, y);
    case OPS_FN_MOD: return floor_mod(x, y);
    case OPS_FN_FMOD: return fmod(x, y);
    case OPS_FN_MAX: return x != x || x > y ? x : y;
    case OPS_FN_MIN: return x != x || x < y ? x : y;
    case OPS_FN_MEAN_LAST: return (x + y) / a;
    case OPS_FN_PRELU: return x < 0 ? x * y : x;
    case OPS_FN_SQUARED_RELU: return x < 0 ? b : a * (x * x) + b;
    case OPS_FN_SWIGLU: return swiglu(x, y, a);
    case OPS_FN_EQUAL: return x == y;
    case OPS_FN_GREATER: return x > y;
    case OPS_FN_GREATER_OR_EQUAL: return x >= y;
    case OPS_FN_LESS: return x < y;
    case OPS_FN_LESS_OR_EQUAL: return x <= y;
    case OPS_FN_WHERE: return x != 0 ? y : z;
    case OPS_FN_CLIP_BY: x = ((int)a & 1) && x < y ? y : x; return ((int)a & 2) && x > z ? z : x;
    default: return x;
    }
}

/* What can follow a layer, as ops_activation_fn has it. The whole of real_function was most of a
 * kernel of 105 KB, which a block runs through once, and so waited for its instructions. */
[[maybe_unused]] OPS_APART float activated(int fn, float x, float a, float b)
{
#define KNOWN(fn) \
    case fn: return real_function(fn, x, 0.0f, 0.0f, a, b)
    switch (fn) {
        KNOWN(OPS_FN_RELU);
        KNOWN(OPS_FN_LEAKY_RELU);
        KNOWN(OPS_FN_CLIP);
        KNOWN(OPS_FN_SIGMOID);
        KNOWN(OPS_FN_SWISH);
        KNOWN(OPS_FN_HARD_SIGMOID);
        KNOWN(OPS_FN_HARD_SWISH);
        KNOWN(OPS_FN_TANH);
        KNOWN(OPS_FN_SOFTPLUS);
        KNOWN(OPS_FN_GELU);
        KNOWN(OPS_FN_GELU_TANH);
        KNOWN(OPS_FN_SQUARED_RELU);
    default: return x;
    }
#undef KNOWN
}

OPS_BODY int64_t remainder_c(int64_t x, int64_t y)
{
    return y == 0 || y == -1 ? 0 : x % y;
}
OPS_BODY uint64_t remainder_c(uint64_t x, uint64_t y)
{
    return y ? x % y : 0;
}
OPS_BODY int64_t floor_mod_int(int64_t x, int64_t y)
{
    const int64_t r = remainder_c(x, y);
    return r && (r < 0) != (y < 0) ? r + y : r;
}
OPS_BODY uint64_t floor_mod_int(uint64_t x, uint64_t y)
{
    return remainder_c(x, y);
}
OPS_BODY int64_t quotient(int64_t x, int64_t y)
{
    return y == 0 ? 0 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}
OPS_BODY uint64_t quotient(uint64_t x, uint64_t y)
{
    return y ? x / y : 0;
}
OPS_BODY uint64_t power(uint64_t x, uint64_t y)
{
    uint64_t v = 1;
    for (; y; y >>= 1, x *= x)
        if (y & 1)
            v *= x;
    return v;
}
OPS_BODY int64_t power(int64_t x, int64_t y)
{
    if (y >= 0)
        return (int64_t)power((uint64_t)x, (uint64_t)y);
    return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0; /* a negative exponent */
}
OPS_BODY bool negative(int64_t x)
{
    return x < 0;
}
OPS_BODY bool negative(uint64_t)
{
    return false;
}
OPS_BODY int64_t shift_right(int64_t x, int64_t y)
{
    return x >> (y >= 0 && y < 64 ? y : 63);
}
OPS_BODY uint64_t shift_right(uint64_t x, uint64_t y)
{
    return y < 64 ? x >> y : 0;
}

/* int64_t and uint64_t; what may overflow is computed as unsigned. */
template <class T> OPS_BODY T int_function(int fn, T x, T y, T z, double a, double b)
{
    const uint64_t ux = (uint64_t)x, uy = (uint64_t)y;
    (void)b;
    switch (fn) {
    case OPS_FN_ABS: return negative(x) ? (T)(0 - ux) : x;
    case OPS_FN_BIT_NOT: return ~x;
    case OPS_FN_NEG: return (T)(0 - ux);
    case OPS_FN_NOT: return !x;
    case OPS_FN_ONE: return 1;
    case OPS_FN_RELU: return negative(x) ? 0 : x;
    case OPS_FN_SIGN: return negative(x) ? (T)-1 : (T)(x != 0);
    case OPS_FN_ADD: return (T)(ux + uy);
    case OPS_FN_SUB: return (T)(ux - uy);
    case OPS_FN_MUL: return (T)(ux * uy);
    case OPS_FN_DIV: return quotient(x, y);
    case OPS_FN_POW: return power(x, y);
    case OPS_FN_MOD: return floor_mod_int(x, y);
    case OPS_FN_FMOD: return remainder_c(x, y);
    case OPS_FN_MAX: return x > y ? x : y;
    case OPS_FN_MIN: return x < y ? x : y;
    case OPS_FN_PRELU: return negative(x) ? (T)(ux * uy) : x;
    case OPS_FN_EQUAL: return x == y;
    case OPS_FN_GREATER: return x > y;
    case OPS_FN_GREATER_OR_EQUAL: return x >= y;
    case OPS_FN_LESS: return x < y;
    case OPS_FN_LESS_OR_EQUAL: return x <= y;
    case OPS_FN_AND: return x && y;
    case OPS_FN_OR: return x || y;
    case OPS_FN_XOR: return !x != !y;
    case OPS_FN_BIT_AND: return x & y;
    case OPS_FN_BIT_OR: return x | y;
    case OPS_FN_BIT_XOR: return x ^ y;
    case OPS_FN_SHIFT_LEFT: return uy < 64 ? (T)(ux << uy) : 0;
    case OPS_FN_SHIFT_RIGHT: return shift_right(x, y);
    case OPS_FN_WHERE: return x ? y : z;
    case OPS_FN_CLIP_BY: x = ((int)a & 1) && x < y ? y : x; return ((int)a & 2) && x > z ? z : x;
    default: return x;
    }
}

OPS_BODY float apply(int fn, float x, float y, float z, double a, double b)
{
    return real_function(fn, x, y, z, (float)a, (float)b);
}
OPS_BODY double apply(int fn, double x, double y, double z, double a, double b)
{
    return real_function(fn, x, y, z, a, b);
}
OPS_BODY int64_t apply(int fn, int64_t x, int64_t y, int64_t z, double a, double b)
{
    return int_function(fn, x, y, z, a, b);
}
OPS_BODY uint64_t apply(int fn, uint64_t x, uint64_t y, uint64_t z, double a, double b)
{
    return int_function(fn, x, y, z, a, b);
}

} // namespace ops
