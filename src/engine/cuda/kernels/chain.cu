/* SPDX-License-Identifier: Apache-2.0 */
/* Chain (engine/ops/chain.h): the steps are read as the kernel goes, all threads at the same one;
 * what they make stays with the thread. So a chain costs one launch and one pass over memory,
 * whatever its steps. */
#include "engine/cuda/kernels/chain.h"
#include "engine/cuda/kernels/functions.cuh"
#include "engine/cuda/kernels/pack.cuh"

using namespace ops;

namespace
{

/* As many groups fill any GPU's threads more than once. */
constexpr int64_t TWICE_FROM = 1 << 18;

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

/* A group's numbers of one input as they lie in memory. They are made float32 where a step reads
 * them: so the loads of all inputs are under way before a thread waits for the first. T: uint16_t
 * where all that are more than one number are float16, which takes half the registers, else
 * float. */
template <class T, int N> struct group {
    static constexpr int WORDS = sizeof(T) == 2 && N > 1 ? N / 2 : N;
    uint32_t             word[WORDS];

    template <int COUNT> OPS_BODY void words(const void *from)
    {
        const pack<float, COUNT> read = *(const pack<float, COUNT> *)from;
        OPS_UNROLL
        for (int w = 0; w < COUNT; w++)
            word[w] = read.word[w];
    }
    OPS_BODY void one(const void *from, int type, int64_t at)
    {
        word[0] = type == SAC_F16 ? ((const uint16_t *)from)[at] : ((const uint32_t *)from)[at];
    }
    OPS_BODY void vector(const void *from, int type, int64_t at)
    {
        if constexpr (N == 1)
            one(from, type, at);
        else if (type == SAC_F16)
            words<N / 2>((const uint16_t *)from + at);
        else if constexpr (WORDS == N)
            words<N>((const float *)from + at);
    }
    /* Numbers wherever they lie. */
    OPS_BODY void gather(const void *from, int type, const int32_t (&at)[N])
    {
        if constexpr (N == 1)
            one(from, type, at[0]);
        else if (type == SAC_F16) {
            OPS_UNROLL
            for (int w = 0; w < N / 2; w++)
                word[w] = ((const uint16_t *)from)[at[2 * w]] |
                          (uint32_t)((const uint16_t *)from)[at[2 * w + 1]] << 16;
        } else if constexpr (WORDS == N) {
            OPS_UNROLL
            for (int w = 0; w < N; w++)
                word[w] = ((const uint32_t *)from)[at[w]];
        }
    }

    OPS_BODY void to(int type, bool still, float *v) const
    {
        if (N == 1 || still) {
            const float x =
                type == SAC_F16 ? half_to_float((uint16_t)word[0]) : bits_to_float(word[0]);
            OPS_UNROLL
            for (int j = 0; j < N; j++)
                v[j] = x;
        } else if (type == SAC_F16) {
            OPS_UNROLL
            for (int w = 0; w < N / 2; w++)
                halves_of(word[w], v[2 * w], v[2 * w + 1]);
        } else if constexpr (WORDS == N) {
            OPS_UNROLL
            for (int w = 0; w < N; w++)
                v[w] = bits_to_float(word[w]);
        }
    }
};

/* Behind which a number is float16: by instructions that are off by a few last bits of float32, and
 * without a branch for numbers that float16 does not have. */
template <class T> OPS_BODY float step_function(int fn, float x, float y, float a, float b)
{
#ifdef __CUDA_ARCH__
    if (sizeof(T) == 2)
        switch (fn) {
        case OPS_FN_DIV: return __fdividef(x, y);
        case OPS_FN_SIGMOID: return __fdividef(1.0f, 1.0f + __expf(-x));
        case OPS_FN_SWISH: return __fdividef(x, 1.0f + __expf(-a * x));
        case OPS_FN_GELU_TANH: /* (1 + tanh u) / 2 is the sigmoid of 2 u */
            return __fdividef(x, 1.0f + __expf(-1.59576912f * (x + 0.044715f * x * x * x)));
        default: break;
        }
#endif
    return real_function(fn, x, y, 0.0f, a, b);
}

/* TURNS groups of N numbers, a block's threads side by side in each turn: what a step is, is found
 * out once for all of them. An index that is known as the kernel goes would put the numbers into
 * memory: so each place has a branch of its own, which all threads take alike. Most steps go on
 * with the result of the one before, which stays where it is, and with a constant: these copy
 * nothing. */
template <int N, int TURNS, int INPUTS, int KEPT, class T> struct some_body {
    struct ops_chain p;
    const void      *in[SAC_CHAIN_INPUTS];
    void            *out;

    static constexpr int  ALL = TURNS * N;
    static constexpr bool HALVES = sizeof(T) == 2;
    struct numbers {
        group<T, N> in[INPUTS][TURNS];
        float       kept[KEPT > 0 ? KEPT : 1][ALL], y[ALL];
    };

    OPS_BODY bool still(int k) const
    {
        return p.stills >> k & 1;
    }
    OPS_BODY int type(int k) const
    {
        return HALVES && !still(k) ? (int)SAC_F16 : p.dtype[k];
    }
    OPS_BODY int32_t apart(int k) const
    {
        return (int32_t)p.view.step[k][p.view.rank - 1];
    }

    /* Where number i of the output is in operand k. */
    OPS_BODY int32_t offset(int k, uint32_t i) const
    {
        const ops_view &v = p.view;
        int32_t         at = (int32_t)v.start[k];
        for (int d = v.rank - 1; d >= 0; d--) {
            const uint32_t above = d ? divide(i, v.dim[d]) : 0;
            at += (int32_t)(i - above * v.dim[d].d) * (int32_t)v.step[k][d];
            i = above;
        }
        return at;
    }
    /* And the N from it on: of two runs of the innermost dimension, where it is that long. */
    OPS_BODY void offsets(int k, uint32_t i, int32_t (&at)[N]) const
    {
        const ops_divisor &inner = p.view.dim[p.view.rank - 1];
        const uint32_t     last = (uint32_t)p.view.count - 1;
        if (inner.d < N) {
            OPS_UNROLL
            for (int j = 0; j < N; j++)
                at[j] = offset(k, i + j);
            return;
        }
        const int32_t  step = apart(k);
        const uint32_t left = inner.d - (i - divide(i, inner) * inner.d); /* of the first run */
        const int32_t  here = offset(k, i),
                      next = offset(k, i + left < last ? i + left : last) - (int32_t)left * step;
        OPS_UNROLL
        for (int j = 0; j < N; j++)
            at[j] = ((uint32_t)j < left ? here : next) + j * step;
    }

    OPS_BODY void read_apart(int k, uint32_t i, int32_t first, group<T, N> &v) const
    {
        int32_t at[N];
        if (p.spread)
            offsets(k + 1, i * N, at);
        else {
            OPS_UNROLL
            for (int j = 0; j < N; j++)
                at[j] = first + j * apart(k + 1);
        }
        v.gather(in[k], type(k + 1), at);
    }
    OPS_BODY void read(int k, uint32_t i, int32_t at, group<T, N> &v) const
    {
        if (still(k + 1))
            v.one(in[k], type(k + 1), at);
        else if (N > 1 && p.loose >> (k + 1) & 1)
            read_apart(k, i, at, v);
        else
            v.vector(in[k], type(k + 1), at);
    }

    OPS_BODY void write(int64_t at, const float *y) const
    {
        float v[N];
        OPS_UNROLL
        for (int j = 0; j < N; j++)
            v[j] = y[j];
        if (N > 1 && p.loose & 1) {
            OPS_UNROLL
            for (int j = 0; j < N; j++)
                put_float(out, type(0), at + j * apart(0), v[j]);
        } else
            store<N>(out, type(0), at, v);
    }

    static OPS_BODY void copy(const float (&from)[ALL], float (&to)[ALL])
    {
        OPS_UNROLL
        for (int j = 0; j < ALL; j++)
            to[j] = from[j];
    }

    OPS_BODY void take_input(int k, const group<T, N> (&from)[TURNS], float (&v)[ALL]) const
    {
        OPS_UNROLL
        for (int t = 0; t < TURNS; t++)
            from[t].to(type(k + 1), still(k + 1), v + t * N);
    }
    OPS_BODY void take(int from, float alpha, const numbers &n, float (&v)[ALL]) const
    {
        static_assert(SAC_CHAIN_INPUTS == 8 && OPS_CHAIN_KEPT == 2, "a case for each place");
#define INPUT(number)                                     \
    case number:                                          \
        if constexpr (number < INPUTS) {                  \
            take_input(number, n.in[number % INPUTS], v); \
            return;                                       \
        }                                                 \
        break;
#define RESULT(number, there, numbers) \
    case number:                       \
        if constexpr (there) {         \
            copy(n.numbers, v);        \
            return;                    \
        }                              \
        break;
        switch (from) {
            INPUT(0)
            INPUT(1)
            INPUT(2)
            INPUT(3)
            INPUT(4)
            INPUT(5)
            INPUT(6)
            INPUT(7)
            RESULT(8, KEPT > 0, kept[0])
            RESULT(9, KEPT > 0, kept[KEPT > 0])
            RESULT(OPS_CHAIN_LAST, true, y)
        }
#undef INPUT
#undef RESULT
        OPS_UNROLL
        for (int j = 0; j < ALL; j++)
            v[j] = alpha;
    }

    static OPS_BODY void apply_one(const ops_chain_step &s, float (&y)[ALL])
    {
#define STEP(f)                                                      \
    case f:                                                          \
        OPS_UNROLL                                                   \
        for (int j = 0; j < ALL; j++)                                \
            y[j] = step_function<T>(f, y[j], 0.0f, s.alpha, s.beta); \
        return;
        switch (s.fn) {
            CHAIN_ONE(STEP)
        }
#undef STEP
    }

    /* B: the second number of each, or the one number of all. */
    template <class B>
    static OPS_BODY void apply_two(const ops_chain_step &s, const B &b, float (&y)[ALL])
    {
#define STEP(f)                                                       \
    case f:                                                           \
        OPS_UNROLL                                                    \
        for (int j = 0; j < ALL; j++)                                 \
            y[j] = step_function<T>(f, y[j], b.of(j), s.alpha, 0.0f); \
        return;
        switch (s.fn) {
            CHAIN_TWO(STEP)
        }
#undef STEP
    }
    struct each_number {
        float          v[ALL];
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

    OPS_BODY void take_first(const ops_chain_step &s, numbers &n) const
    {
        if (s.from[0] != OPS_CHAIN_LAST)
            take(s.from[0], s.alpha, n, n.y);
    }
    OPS_BODY void run(const ops_chain_step &s, numbers &n) const
    {
        if (s.form == OPS_CHAIN_TWO) {
            each_number b;
            take(s.from[1], s.alpha, n, b.v);
            take_first(s, n);
            apply_two(s, b, n.y);
        } else {
            take_first(s, n);
            if (s.form == OPS_CHAIN_ONE)
                apply_one(s, n.y);
            else
                apply_two(s, one_number{s.alpha}, n.y);
        }
        if (KEPT > 0 && s.keep == 0)
            copy(n.y, n.kept[0]);
        else if (KEPT > 0 && s.keep == 1)
            copy(n.y, n.kept[KEPT > 0]);
    }

    /* Where group i is in the operands; in those that lie as the output does, without divisions. */
    OPS_BODY void find(uint32_t i, uint32_t (&at)[INPUTS + 1]) const
    {
        const ops_view &g = p.groups;
        OPS_UNROLL
        for (int k = 0; k <= INPUTS; k++)
            at[k] = p.placed >> k & 1 ? (uint32_t)g.start[k] : i * N;
        uint32_t rest = i;
        for (int d = g.rank - 1; d >= 0 && p.placed; d--) {
            const uint32_t above = d ? divide(rest, g.dim[d]) : 0,
                           index = rest - above * g.dim[d].d;
            OPS_UNROLL
            for (int k = 0; k <= INPUTS; k++)
                if (p.placed >> k & 1)
                    at[k] += index * (uint32_t)g.step[k][d];
            rest = above;
        }
    }

    OPS_BODY void operator()(int64_t thread) const
    {
        const uint32_t count = (uint32_t)p.groups.count, lane = (uint32_t)thread % THREADS,
                       first = ((uint32_t)thread - lane) * TURNS + lane;
        uint32_t at[TURNS][INPUTS + 1];
        numbers  n = {};
        OPS_UNROLL
        for (int t = 0; t < TURNS; t++) {
            uint32_t i = first + t * THREADS;
            i = i < count ? i : count - 1;
            find(i, at[t]);
            OPS_UNROLL
            for (int k = 0; k < INPUTS; k++)
                if (k < p.inputs)
                    read(k, i, (int32_t)at[t][k + 1], n.in[k][t]);
        }
        for (int s = 0; s < p.count; s++)
            run(p.step[s], n);
        OPS_UNROLL
        for (int t = 0; t < TURNS; t++)
            if (first + t * THREADS < count)
                write((int32_t)at[t][0], n.y + t * N);
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

template <int N, int TURNS, int INPUTS, int KEPT, class T>
int launch_groups(const struct ops_chain &p, const struct ops_ports *ports, void *stream)
{
    const int64_t blocks = (p.groups.count + TURNS * THREADS - 1) / (TURNS * THREADS);
    return launch<some_body<N, TURNS, INPUTS, KEPT, T>>(p, ports, blocks * THREADS, stream);
}

/* Few registers let many threads wait for memory at once; with many inputs a thread itself waits
 * for enough, with few it takes two groups where there are enough of them. */
template <int N, class T>
int launch_some(const struct ops_chain &p, const struct ops_ports *ports, void *stream)
{
    constexpr int TURNS = N == 8 && sizeof(T) == 2 ? 2 : 1;
    const bool    twice = TURNS > 1 && p.groups.count >= TWICE_FROM;
    bool          keeps = false;
    for (int s = 0; s < p.count; s++)
        keeps |= p.step[s].keep >= 0;
    if (p.inputs <= 3 && !keeps && twice)
        return launch_groups<N, TURNS, 3, 0, T>(p, ports, stream);
    if (p.inputs <= 3 && !keeps)
        return launch_groups<N, 1, 3, 0, T>(p, ports, stream);
    if (p.inputs <= 5)
        return launch_groups<N, 1, 5, OPS_CHAIN_KEPT, T>(p, ports, stream);
    return launch_groups<N, 1, SAC_CHAIN_INPUTS, OPS_CHAIN_KEPT, T>(p, ports, stream);
}

template <class T>
int launch_typed(const struct ops_chain &p, const struct ops_ports *ports, void *stream)
{
    return p.each == 8   ? launch_some<8, T>(p, ports, stream)
           : p.each == 4 ? launch_some<4, T>(p, ports, stream)
                         : launch_some<1, T>(p, ports, stream);
}

} // namespace

extern "C" int ops_launch_elementwise_chain(const void *params, const struct ops_ports *ports,
                                            void *stream)
{
    const struct ops_chain &p = *(const struct ops_chain *)params;
    if (!p.each || !fits(p, ports))
        return launch<one_body>(p, ports, p.view.count, stream);
    return p.halves ? launch_typed<uint16_t>(p, ports, stream)
                    : launch_typed<float>(p, ports, stream);
}
