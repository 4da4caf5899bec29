/* SPDX-License-Identifier: Apache-2.0 */
/* Chain (engine/ops/chain.h): the steps are read as the kernel goes, all threads at the same one;
 * what they make stays with the thread. So a chain costs one launch and one pass over memory,
 * whatever its steps. */
#include "engine/cuda/kernels/chain.h"
#include "engine/cuda/kernels/functions.cuh"

using namespace ops;

namespace
{

/* clang-format off */
#define CHAIN_STEPS(F) \
    F(OPS_FN_IDENTITY) F(OPS_FN_ABS) F(OPS_FN_CLIP) F(OPS_FN_ERF) F(OPS_FN_EXP) F(OPS_FN_GELU) \
    F(OPS_FN_GELU_TANH) F(OPS_FN_HARD_SIGMOID) F(OPS_FN_HARD_SWISH) F(OPS_FN_LEAKY_RELU) \
    F(OPS_FN_LOG) F(OPS_FN_NEG) F(OPS_FN_RECIPROCAL) F(OPS_FN_RELU) F(OPS_FN_SIGMOID) \
    F(OPS_FN_SOFTPLUS) F(OPS_FN_SQRT) F(OPS_FN_SWISH) F(OPS_FN_TANH) F(OPS_FN_ADD) F(OPS_FN_SUB) \
    F(OPS_FN_MUL) F(OPS_FN_DIV) F(OPS_FN_MAX) F(OPS_FN_MIN)
/* clang-format on */

OPS_BODY float one_step(const ops_chain_step &s, float a, float b)
{
#define STEP(f) \
    case f: return real_function(f, a, b, 0.0f, s.alpha, s.beta);
    switch (s.fn) {
        CHAIN_STEPS(STEP)
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
 * place has a branch of its own, which all threads take alike. */
template <int N> struct some_body {
    struct ops_chain p;
    const void      *in[SAC_CHAIN_INPUTS];
    void            *out;

    struct numbers {
        float in[SAC_CHAIN_INPUTS][N], kept[OPS_CHAIN_KEPT][N], y[N];
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
        static_assert(SAC_CHAIN_INPUTS == 5 && OPS_CHAIN_KEPT == 2, "a case for each place");
        switch (from) {
        case 0: copy(n.in[0], v); return;
        case 1: copy(n.in[1], v); return;
        case 2: copy(n.in[2], v); return;
        case 3: copy(n.in[3], v); return;
        case 4: copy(n.in[4], v); return;
        case 5: copy(n.kept[0], v); return;
        case 6: copy(n.kept[1], v); return;
        case OPS_CHAIN_LAST: copy(n.y, v); return;
        }
        OPS_UNROLL
        for (int j = 0; j < N; j++)
            v[j] = alpha;
    }

    static OPS_BODY void apply(const ops_chain_step &s, const float (&a)[N], const float (&b)[N],
                               float (&y)[N])
    {
#define STEP(f)                                                         \
    case f:                                                             \
        OPS_UNROLL                                                      \
        for (int j = 0; j < N; j++)                                     \
            y[j] = real_function(f, a[j], b[j], 0.0f, s.alpha, s.beta); \
        return;
        switch (s.fn) {
            CHAIN_STEPS(STEP)
        }
#undef STEP
    }

    static OPS_BODY void run(const ops_chain_step &s, numbers &n)
    {
        float a[N], b[N];
        take(s.from[0], s.alpha, n, a);
        take(s.from[1], s.alpha, n, b);
        apply(s, a, b, n.y);
        if (s.keep == 0)
            copy(n.y, n.kept[0]);
        else if (s.keep == 1)
            copy(n.y, n.kept[1]);
    }

    OPS_BODY void operator()(int64_t i) const
    {
        int64_t at[SAC_CHAIN_INPUTS + 1];
        numbers n = {};
        place(p.groups, i, at);
        OPS_UNROLL
        for (int k = 0; k < SAC_CHAIN_INPUTS; k++)
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

} // namespace

extern "C" int ops_launch_elementwise_chain(const void *params, const struct ops_ports *ports,
                                            void *stream)
{
    const struct ops_chain &p = *(const struct ops_chain *)params;
    if (!p.each || !fits(p, ports))
        return launch<one_body>(p, ports, p.view.count, stream);
    if (p.each == 1)
        return launch<some_body<1>>(p, ports, p.groups.count, stream);
    return p.each == 8 ? launch<some_body<8>>(p, ports, p.groups.count, stream)
                       : launch<some_body<4>>(p, ports, p.groups.count, stream);
}
