/* SPDX-License-Identifier: Apache-2.0 */
/* Norms of lines that blocks hold in their registers between them: samples, or groups of channels,
 * which are read from memory once. Each block sums up its share, then the squares about its mean;
 * the blocks of a cluster tell each other these two numbers.
 *
 * A block runs through the code once, so little of it is short: what is written is read again, from
 * the L1 cache, in a loop. Unrolled over the registers the kernel was 64 KiB, most of which each
 * multiprocessor fetched (H200, a sample of 25 thousand numbers: 12 us, 7 of a copy). */
#pragma once

#include "engine/cuda/kernels/cluster.cuh"
#include "engine/cuda/kernels/functions.cuh"
#include "engine/cuda/kernels/norm_eights.cuh"
#include "engine/cuda/kernels/pack.cuh"

namespace ops
{

/* What a block knows of its share. */
struct share {
    float mean, squares;
};
/* Of a block, in shared memory. */
struct spread_room {
    float sums[3][WARP]; /* of each warp */
    share own;
};

/* Where lines begin in each operand of struct ops_norm, in few bytes: what a kernel reads of its
 * parameters comes from far when it is launched. */
enum { SPREAD_DIMS = 3, SPREAD_OPERANDS = 6, SPREAD_STATISTICS = 5 };
struct spread_lines {
    int32_t            rank;
    struct ops_divisor dim[SPREAD_DIMS];
    int64_t            start[SPREAD_OPERANDS], step[SPREAD_DIMS][SPREAD_OPERANDS];
};
inline spread_lines spread_lines_of(const ops_view &v)
{
    spread_lines l = {v.rank, {}, {}, {}};
    for (int k = 0; k < SPREAD_OPERANDS; k++)
        l.start[k] = v.start[k];
    for (int d = 0; d < v.rank; d++) {
        l.dim[d] = v.dim[d];
        for (int k = 0; k < SPREAD_OPERANDS; k++)
            l.step[d][k] = v.step[k][d];
    }
    return l;
}

/* Of struct ops_norm, whose kinds are the two of a mean. */
struct spread_params {
    ops_walk     walk;
    spread_lines lines;
    int32_t      shift, out_type, residual_type, residual_after, mean_type, inverse_type;
    int32_t      mean_variance, activation;
    float        count, epsilon, a, b;
};
inline spread_params spread_params_of(const ops_norm &p)
{
    return {p.spread.walk,
            spread_lines_of(p.lines.outer),
            p.spread.shift,
            p.out_type,
            p.residual_type,
            p.residual_after,
            p.mean_type,
            p.inverse_type,
            p.kind == OPS_NORM_MEAN_VARIANCE,
            p.activation,
            (float)p.lines.inner.count,
            (float)p.epsilon,
            (float)p.a,
            (float)p.b};
}

/* The sum of what the block's threads have. No two in a row may use the same place. */
static __device__ __forceinline__ float block_sum(float v, float *sums)
{
    v = fold_warp(v, add<float>());
    if (threadIdx.x % WARP == 0)
        sums[threadIdx.x / WARP] = v;
    __syncthreads();
    return fold_warp(threadIdx.x % WARP < blockDim.x / WARP ? sums[threadIdx.x % WARP] : 0.0f,
                     add<float>());
}

template <class T, int N, bool ACTIVATED> struct spread_body {
    static constexpr int TURNS = OPS_SPREAD_TURNS(N * sizeof(T));
    const T             *in;
    const float         *scale, *bias;
    const void          *residual;
    void                *out, *mean_out, *inverse_out;
    spread_params        p;

    __device__ int begin_of(int part) const
    {
        return (int)(p.walk.count * part >> p.shift);
    }
    __device__ float numbers_of(int part) const
    {
        return (float)((begin_of(part + 1) - begin_of(part)) * N);
    }

    /* As place(), in little code. */
    __device__ __forceinline__ void begin_line(uint32_t rest, int64_t (&at)[SPREAD_OPERANDS]) const
    {
        const spread_lines &l = p.lines;
        OPS_UNROLL
        for (int k = 0; k < SPREAD_OPERANDS; k++)
            at[k] = l.start[k];
#pragma unroll 1
        for (int d = l.rank - 1; d >= 0; d--) {
            const uint32_t above = d ? divide(rest, l.dim[d]) : 0,
                           index = rest - above * l.dim[d].d;
            OPS_UNROLL
            for (int k = 0; k < SPREAD_OPERANDS; k++)
                at[k] += index * l.step[d][k];
            rest = above;
        }
    }
    /* All loads are under way before the first is waited for. */
    __device__ __forceinline__ void read(const T *line, int first, int last,
                                         pack<T, N> (&raw)[TURNS]) const
    {
        OPS_UNROLL
        for (int t = 0; t < TURNS; t++) {
            const int unit = first + t * (int)blockDim.x;
            raw[t].fill(0);
            if (unit < last)
                raw[t] = load<N>(line + walk_place<0>(p.walk, unit));
        }
    }
    /* The second sum puts right what the first has rounded. */
    __device__ __forceinline__ share measure(const pack<T, N> (&raw)[TURNS], int first, int last,
                                             float numbers, spread_room *room) const
    {
        float sum = 0, off = 0, squares = 0, v[N];
        OPS_UNROLL
        for (int t = 0; t < TURNS; t++) {
            raw[t].to(v);
            OPS_UNROLL
            for (int e = 1; e < N; e++)
                v[0] += v[e];
            sum += v[0];
        }
        const float part = 1 / numbers, mean = block_sum(sum, room->sums[0]) * part;
        OPS_UNROLL
        for (int t = 0; t < TURNS; t++) {
            if (first + t * (int)blockDim.x >= last)
                continue;
            raw[t].to(v);
            OPS_UNROLL
            for (int e = 0; e < N; e++) {
                off += v[e] - mean;
                squares += (v[e] - mean) * (v[e] - mean);
            }
        }
        off = block_sum(off, room->sums[1]);
        squares = block_sum(squares, room->sums[2]);
        return {mean + off * part, squares - off * (off * part)};
    }
    /* The line's, from those of its blocks, each in a lane. */
    __device__ __forceinline__ share joined(share own, spread_room *room) const
    {
        const int  k = threadIdx.x % WARP;
        const bool is = k < 1 << p.shift;
        if (threadIdx.x == 0)
            room->own = own;
        cluster::sync();
        const share part = is ? *cluster::of(&room->own, k) : share{0, 0};
        cluster::arrive(); /* nobody looks at the others' memory from here on */
        const float numbers = is ? numbers_of(k) : 0;
        const float mean = fold_warp(part.mean * numbers, add<float>()) / p.count;
        const float off = part.mean - mean;
        return {mean, fold_warp(part.squares + off * (off * numbers), add<float>())};
    }

    /* Of the constants of a unit. */
    static __device__ __forceinline__ void take(const float *from, bool one, float (&v)[N])
    {
        if (!one) {
            load<N>(from).to(v);
            return;
        }
        OPS_UNROLL
        for (int e = 0; e < N; e++)
            v[e] = *from;
    }
    /* What the numbers of a unit are multiplied by, and what is added to them. */
    struct constants {
        float factor[N], shift[N];
    };
    __device__ __forceinline__ void take_constants(int unit, const int64_t (&line)[SPREAD_OPERANDS],
                                                   float inverse, constants &c) const
    {
        const ops_walk &w = p.walk;
        OPS_UNROLL
        for (int e = 0; e < N; e++) {
            c.factor[e] = 1;
            c.shift[e] = 0;
        }
        if (scale)
            take(scale + line[2] + walk_place<2>(w, unit), w.stills >> 2 & 1, c.factor);
        if (bias)
            take(bias + line[3] + walk_place<3>(w, unit), w.stills >> 3 & 1, c.shift);
        OPS_UNROLL
        for (int e = 0; e < N; e++)
            c.factor[e] *= inverse;
    }
    /* Are the constants of a thread's units the same? So they are where a line has one, and of
     * channels that lie last, of which as many units as threads are whole pixels. */
    __device__ __forceinline__ bool shares_constants() const
    {
        const ops_walk &w = p.walk;
        const bool      within = w.step[2][1] != 0 || w.step[3][1] != 0;
        return w.step[2][0] == 0 && w.step[3][0] == 0 && (!within || blockDim.x % w.inner.d == 0);
    }

    __device__ __forceinline__ void write(const pack<T, N> &raw, int                    unit,
                                          const int64_t (&line)[SPREAD_OPERANDS], float mean,
                                          const constants &c) const
    {
        const ops_walk &w = p.walk;
        float           v[N], more[N] = {};
        raw.to(v);
        if (residual) {
            const int64_t at = line[4] + walk_place<4>(w, unit);
            if (p.residual_type == SAC_F16)
                load<N>((const uint16_t *)residual + at).to(more);
            else
                load<N>((const float *)residual + at).to(more);
        }
        OPS_UNROLL
        for (int e = 0; e < N; e++)
            v[e] = fmaf(v[e] - mean, c.factor[e], c.shift[e]);
        OPS_UNROLL
        for (int e = 0; e < N; e++) {
            v[e] += p.residual_after ? 0 : more[e];
            if (ACTIVATED)
                v[e] = p.activation == OPS_FN_RELU ? (v[e] < 0 ? 0 : v[e])
                                                   : activated(p.activation, v[e], p.a, p.b);
            v[e] += p.residual_after ? more[e] : 0;
        }
        store(out, p.out_type, line[1] + walk_place<1>(w, unit), v);
    }

    __device__ __forceinline__ float inverse_by(float squares) const
    {
        const float variance = (squares > 0 || is_nan(squares) ? squares : 0) / p.count;
        return p.mean_variance ? 1 / (sqrtf(variance) + 1e-9f) : 1 / sqrtf(variance + p.epsilon);
    }

    __device__ __forceinline__ void operator()(uint32_t row, int part, spread_room *room) const
    {
        const int  first = begin_of(part) + (int)threadIdx.x, last = begin_of(part + 1);
        int64_t    line[SPREAD_OPERANDS];
        pack<T, N> raw[TURNS];
        begin_line(row, line);
        read(in + line[0], first, last, raw);
        share all = measure(raw, first, last, numbers_of(part), room);
        if (p.shift > 0)
            all = joined(all, room);
        const float inverse = inverse_by(all.squares);
        if (part == 0 && threadIdx.x == 0 && p.mean_type)
            put_float(mean_out, p.mean_type, line[SPREAD_STATISTICS], all.mean);
        if (part == 0 && threadIdx.x == 0 && p.inverse_type)
            put_float(inverse_out, p.inverse_type, line[SPREAD_STATISTICS], inverse);
        const bool shared = shares_constants();
        constants  c = {};
#pragma unroll 1
        for (int unit = first; unit < last; unit += (int)blockDim.x) {
            const pack<T, N> again = load<N>(in + line[0] + walk_place<0>(p.walk, unit));
            if (unit == first || !shared)
                take_constants(unit, line, inverse, c);
            write(again, unit, line, all.mean, c);
        }
        if (p.shift > 0)
            cluster::wait();
    }
};

template <class BODY>
__global__ void __launch_bounds__(OPS_SPREAD_THREADS_MAX)
    spread_kernel(const __grid_constant__ BODY body)
{
    early_begin();
    CUDA_SHARED_ROOM(spread_room, room);
    const unsigned shift = body.p.shift;
    body(blockIdx.x >> shift, blockIdx.x & ((1u << shift) - 1), room);
}

template <class T, int N, bool ACTIVATED>
int spread(const struct ops_norm &p, const struct ops_ports *ports, cudaStream_t stream)
{
    using body_t = spread_body<T, N, ACTIVATED>;
    const void    *scale = p.scale_port < 0 ? NULL : ports->in[p.scale_port];
    const void    *bias = p.bias_port < 0 ? NULL : ports->in[p.bias_port];
    const body_t   body = {(const T *)ports->in[0],
                           (const float *)scale,
                           (const float *)bias,
                         p.residual_type ? ports->in[p.residual_port] : NULL,
                           ports->out[0],
                         p.mean_type ? ports->out[1] : NULL,
                         p.inverse_type ? ports->out[2] : NULL,
                           spread_params_of(p)};
    const unsigned cluster = 1u << p.spread.shift, threads = (unsigned)p.spread.threads,
                   blocks = (unsigned)p.lines.outer.count << p.spread.shift;
    if (cluster == 1)
        CUDA_LAUNCH_ALONE(spread_kernel<body_t>, blocks, threads, sizeof(spread_room), stream,
                          body);
    else
        CUDA_LAUNCH_CLUSTER(spread_kernel<body_t>, blocks, threads, sizeof(spread_room), cluster,
                            stream, body);
    return (int)cudaGetLastError();
}

template <bool ACTIVATED>
int spread_by(const struct ops_norm &p, const struct ops_ports *ports, cudaStream_t stream)
{
    if (p.in_type == SAC_F32)
        return p.spread.vector == 4 ? spread<float, 4, ACTIVATED>(p, ports, stream)
                                    : spread<float, 1, ACTIVATED>(p, ports, stream);
    switch (p.spread.vector) {
    case 8: return spread<uint16_t, 8, ACTIVATED>(p, ports, stream);
    case 2: return spread<uint16_t, 2, ACTIVATED>(p, ports, stream);
    default: return spread<uint16_t, 1, ACTIVATED>(p, ports, stream);
    }
}

inline bool fits_unit(const struct ops_norm &p, int operand, const void *at, int type)
{
    return (p.spread.walk.stills >> operand & 1) || fits_pack(at, p.spread.vector, type);
}

/* Do the card and the addresses allow it? */
inline bool norm_spreads(const struct ops_norm &p, const struct ops_ports *ports)
{
    return p.spread.threads && p.lines.outer.rank <= SPREAD_DIMS &&
           fits_unit(p, 0, ports->in[0], p.in_type) && fits_unit(p, 1, ports->out[0], p.out_type) &&
           (p.scale_port < 0 || fits_unit(p, 2, ports->in[p.scale_port], SAC_F32)) &&
           (p.bias_port < 0 || fits_unit(p, 3, ports->in[p.bias_port], SAC_F32)) &&
           (!p.residual_type || fits_unit(p, 4, ports->in[p.residual_port], p.residual_type)) &&
           (p.spread.shift == 0 || has_clusters());
}

inline int norm_spread(const struct ops_norm &p, const struct ops_ports *ports, cudaStream_t stream)
{
    return p.activation == OPS_FN_IDENTITY ? spread_by<false>(p, ports, stream)
                                           : spread_by<true>(p, ports, stream);
}

} // namespace ops
