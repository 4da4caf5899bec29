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

template <int N> struct chain_body {
    struct ops_chain p;
    const void      *in[SAC_CHAIN_INPUTS];
    void            *out;

    OPS_BODY void read(int k, int64_t at, float (&v)[N]) const
    {
        const int type = p.dtype[k + 1];
        if constexpr (N == 4) {
            if (!(p.stills >> (k + 1) & 1)) {
                get4(in[k], type, at * N, v);
                return;
            }
        }
        const float x = get_float(in[k], type, at);
        OPS_UNROLL
        for (int j = 0; j < N; j++)
            v[j] = x;
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

    OPS_BODY void operator()(int64_t i) const
    {
        int64_t at[SAC_CHAIN_INPUTS + 1];
        float   v[SAC_CHAIN_INPUTS + SAC_CHAIN_STEPS][N];
        place(N == 4 ? p.units : p.view, i, at);
        OPS_UNROLL
        for (int k = 0; k < SAC_CHAIN_INPUTS; k++)
            if (k < p.inputs)
                read(k, at[k + 1], v[k]);
        float y[N] = {0};
        for (int s = 0; s < p.count; s++) {
            const ops_chain_step &step = p.step[s];
            float                 a[N], b[N];
            OPS_UNROLL
            for (int j = 0; j < N; j++) {
                a[j] = step.operand[0] < 0 ? step.alpha : v[step.operand[0]][j];
                b[j] = step.operand[1] < 0 ? step.alpha : v[step.operand[1]][j];
            }
            apply(step, a, b, y);
            OPS_UNROLL
            for (int j = 0; j < N; j++)
                v[SAC_CHAIN_INPUTS + s][j] = y[j];
        }
        if constexpr (N == 4)
            put4(out, p.dtype[0], at[0] * N, y);
        else
            put_float(out, p.dtype[0], at[0], y[0]);
    }
};

bool fits(const struct ops_chain &p, const struct ops_ports *ports)
{
    bool fits = p.vector && fits16(ports->out[0]);
    for (int k = 0; k < p.inputs; k++)
        fits &= fits16(ports->in[k]) || (p.stills >> (k + 1) & 1);
    return fits;
}

template <int N>
int launch(const struct ops_chain &p, const struct ops_ports *ports, int64_t count, void *stream)
{
    chain_body<N> body = {p, {}, ports->out[0]};
    for (int k = 0; k < p.inputs; k++)
        body.in[k] = ports->in[k];
    return each(body, count, stream);
}

} // namespace

extern "C" int ops_launch_elementwise_chain(const void *params, const struct ops_ports *ports,
                                            void *stream)
{
    const struct ops_chain &p = *(const struct ops_chain *)params;
    return fits(p, ports) ? launch<4>(p, ports, p.units.count, stream)
                          : launch<1>(p, ports, p.view.count, stream);
}
