/* SPDX-License-Identifier: Apache-2.0 */
/* Chain (engine/ops/chain.h): the steps are read as the kernel goes, all threads at the same one;
 * what they make stays with the thread. So a chain costs one launch and one pass over memory,
 * whatever its steps. */
#include "engine/cuda/kernels/chain.h"
#include "engine/cuda/kernels/functions.cuh"

using namespace ops;

namespace
{

/* Of one number, and of two. */
/* clang-format off */
#define CHAIN_ONE(F) \
    F(OPS_FN_IDENTITY) F(OPS_FN_ABS) F(OPS_FN_CLIP) F(OPS_FN_ERF) F(OPS_FN_EXP) F(OPS_FN_GELU) \
    F(OPS_FN_GELU_TANH) F(OPS_FN_HARD_SIGMOID) F(OPS_FN_HARD_SWISH) F(OPS_FN_LEAKY_RELU) \
    F(OPS_FN_LOG) F(OPS_FN_NEG) F(OPS_FN_RECIPROCAL) F(OPS_FN_RELU) F(OPS_FN_SIGMOID) \
    F(OPS_FN_SOFTPLUS) F(OPS_FN_SQRT) F(OPS_FN_SQUARED_RELU) F(OPS_FN_SWISH) F(OPS_FN_TANH)
#define CHAIN_TWO(F) \
    F(OPS_FN_ADD) F(OPS_FN_SUB) F(OPS_FN_MUL) F(OPS_FN_DIV) F(OPS_FN_MAX) F(OPS_FN_MIN)
/* clang-format on */

OPS_BODY float one_step(const ops_chain_step &s, float a, float b)
{
#define STEP(f) \
    case f: return real_function(f, a, b, 0.0f, s.alpha, s.beta);
    switch (s.fn) {
        CHAIN_ONE(STEP)
        CHAIN_TWO(STEP)
    }
#undef STEP
    return a;
}

/* One number, of whatever type and wherever it lies. */
struct one_body {
    struct ops_chain p;
    const void      *in[SAC_CHAIN_INPUTS];
    void            *out;

    OPS_BODY void operator()(int64_t i) const
    {
        int64_t at[SAC_CHAIN_INPUTS + 1];
        float   v[SAC_CHAIN_INPUTS + SAC_CHAIN_STEPS], y = 0;
        place(p.view, i, at);
        OPS_UNROLL
        for (int k = 0; k < SAC_CHAIN_INPUTS; k++)
            if (k < p.inputs)
                v[k] = get_float(in[k], p.dtype[k + 1], at[k + 1]);
        for (int s = 0; s < p.count; s++) {
            const ops_chain_step &step = p.step[s];
            y = one_step(step, step.operand[0] < 0 ? step.alpha : v[step.operand[0]],
                         step.operand[1] < 0 ? step.alpha : v[step.operand[1]]);
            v[SAC_CHAIN_INPUTS + s] = y;
        }
        put_float(out, p.dtype[0], at[0], y);
    }
};

/* N numbers. An index that is known as the kernel goes would put all of them into memory: so each
 * place has a branch of its own, which all threads take alike. Most steps go on with the result of
 * the one before, which stays where it is, and with a constant: these copy nothing. */
template <int N, int INPUTS, int KEPT> struct some_body {
    struct ops_chain p;
    const void      *in[SAC_CHAIN_INPUTS];
    void            *out;

    struct numbers {
        float in[INPUTS][N], kept[KEPT > 0 ? KEPT : 1][N], y[N];
    };

    /* One after the other, `step` numbers apart. */
    static OPS_BODY void read_apart(const void *from, int type, int64_t at, int64_t step,
                                    float (&v)[N])
    {
        if (type == SAC_F16) {
            OPS_UNROLL
            for (int j = 0; j < N; j++)
                v[j] = half_to_float(((const uint16_t *)from)[at + j * step]);
            return;
        }
        OPS_UNROLL
        for (int j = 0; j < N; j++)
            v[j] = ((const float *)from)[at + j * step];
    }

    OPS_BODY void read(int k, int64_t at, float (&v)[N]) const
    {
        const int type = p.dtype[k + 1];
        if (N == 1 || (p.stills | p.loose) >> (k + 1) & 1)
            read_apart(in[k], type, at, p.view.step[k + 1][p.view.rank - 1], v);
        else if constexpr (N == 8)
            get8(in[k], type, at, v);
        else if constexpr (N == 4)
            get4(in[k], type, at, v);
    }

    OPS_BODY void write(int64_t at, const float (&v)[N]) const
    {
        const int64_t step = p.view.step[0][p.view.rank - 1];
        if (N == 1 || p.loose & 1) {
            OPS_UNROLL
            for (int j = 0; j < N; j++)
                put_float(out, p.dtype[0], at + j * step, v[j]);
        } else if constexpr (N == 8)
            put8(out, p.dtype[0], at, v);
        else if constexpr (N == 4)
            put4(out, p.dtype[0], at, v);
    }

    static OPS_BODY void copy(const float (&from)[N], float (&to)[N])
    {
        OPS_UNROLL
        for (int j = 0; j < N; j++)
            to[j] = from[j];
    }

    static OPS_BODY void take(int from, float alpha, const numbers &n, float (&v)[N])
    {
        static_assert(SAC_CHAIN_INPUTS == 8 && OPS_CHAIN_KEPT == 2, "a case for each place");
#define PLACE(number, there, numbers) \
    case number:                      \
        if constexpr (there) {        \
            copy(n.numbers, v);       \
            return;                   \
        }                             \
        break;
        switch (from) {
            PLACE(0, true, in[0])
            PLACE(1, true, in[1])
            PLACE(2, INPUTS > 2, in[2 % INPUTS])
            PLACE(3, INPUTS > 3, in[3 % INPUTS])
            PLACE(4, INPUTS > 4, in[4 % INPUTS])
            PLACE(5, INPUTS > 5, in[5 % INPUTS])
            PLACE(6, INPUTS > 6, in[6 % INPUTS])
            PLACE(7, INPUTS > 7, in[7 % INPUTS])
            PLACE(8, KEPT > 0, kept[0])
            PLACE(9, KEPT > 0, kept[KEPT > 0])
            PLACE(OPS_CHAIN_LAST, true, y)
        }
#undef PLACE
        OPS_UNROLL
        for (int j = 0; j < N; j++)
            v[j] = alpha;
    }

    static OPS_BODY void apply_one(const ops_chain_step &s, float (&y)[N])
    {
#define STEP(f)                                                         \
    case f:                                                             \
        OPS_UNROLL                                                      \
        for (int j = 0; j < N; j++)                                     \
            y[j] = real_function(f, y[j], 0.0f, 0.0f, s.alpha, s.beta); \
        return;
        switch (s.fn) {
            CHAIN_ONE(STEP)
        }
#undef STEP
    }

    /* B: the second number of each, or the one number of all. */
    template <class B>
    static OPS_BODY void apply_two(const ops_chain_step &s, const B &b, float (&y)[N])
    {
#define STEP(f)                                                          \
    case f:                                                              \
        OPS_UNROLL                                                       \
        for (int j = 0; j < N; j++)                                      \
            y[j] = real_function(f, y[j], b.of(j), 0.0f, s.alpha, 0.0f); \
        return;
        switch (s.fn) {
            CHAIN_TWO(STEP)
        }
#undef STEP
    }
    struct each_number {
        float          v[N];
        OPS_BODY float of(int j) const
        {
            return v[j];
        }
    };
    struct one_number {
        float          v;
        OPS_BODY float of(int) const
        {
            return v;
        }
    };

    static OPS_BODY void run(const ops_chain_step &s, numbers &n)
    {
        each_number b = {};
        if (s.form == OPS_CHAIN_TWO)
            take(s.from[1], s.alpha, n, b.v);
        if (s.from[0] != OPS_CHAIN_LAST)
            take(s.from[0], s.alpha, n, n.y);
        if (s.form == OPS_CHAIN_ONE)
            apply_one(s, n.y);
        else if (s.form == OPS_CHAIN_NUMBER)
            apply_two(s, one_number{s.alpha}, n.y);
        else
            apply_two(s, b, n.y);
        if (KEPT > 0 && s.keep == 0)
            copy(n.y, n.kept[0]);
        else if (KEPT > 0 && s.keep == 1)
            copy(n.y, n.kept[KEPT > 0]);
    }

    OPS_BODY void operator()(int64_t i) const
    {
        int64_t at[SAC_CHAIN_INPUTS + 1];
        numbers n = {};
        place(p.groups, i, at);
        OPS_UNROLL
        for (int k = 0; k < INPUTS; k++)
            if (k < p.inputs)
                read(k, at[k + 1], n.in[k]);
        for (int s = 0; s < p.count; s++)
            run(p.step[s], n);
        write(at[0], n.y);
    }
};

/* Do all vectors lie at multiples of 16 bytes? */
bool fits(const struct ops_chain &p, const struct ops_ports *ports)
{
    bool fits = p.each == 1 || p.loose & 1 || fits16(ports->out[0]);
    for (int k = 0; k < p.inputs; k++)
        fits &= p.each == 1 || (p.stills | p.loose) >> (k + 1) & 1 || fits16(ports->in[k]);
    return fits;
}

template <class BODY>
int launch(const struct ops_chain &p, const struct ops_ports *ports, int64_t count, void *stream)
{
    BODY body = {p, {}, ports->out[0]};
    for (int k = 0; k < p.inputs; k++)
        body.in[k] = ports->in[k];
    return each(body, count, stream);
}

/* Few registers let many threads wait for memory at once; with all inputs a thread itself waits for
 * many. */
template <int N>
int launch_some(const struct ops_chain &p, const struct ops_ports *ports, void *stream)
{
    bool keeps = false;
    for (int s = 0; s < p.count; s++)
        keeps |= p.step[s].keep >= 0;
    if (p.inputs <= 3 && !keeps)
        return launch<some_body<N, 3, 0>>(p, ports, p.groups.count, stream);
    if (p.inputs <= 5)
        return launch<some_body<N, 5, OPS_CHAIN_KEPT>>(p, ports, p.groups.count, stream);
    return launch<some_body<N, SAC_CHAIN_INPUTS, OPS_CHAIN_KEPT>>(p, ports, p.groups.count, stream);
}

} // namespace

extern "C" int ops_launch_elementwise_chain(const void *params, const struct ops_ports *ports,
                                            void *stream)
{
    const struct ops_chain &p = *(const struct ops_chain *)params;
    if (!p.each || !fits(p, ports))
        return launch<one_body>(p, ports, p.view.count, stream);
    return p.each == 8   ? launch_some<8>(p, ports, stream)
           : p.each == 4 ? launch_some<4>(p, ports, stream)
                         : launch_some<1>(p, ports, stream);
}
