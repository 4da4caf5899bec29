/* SPDX-License-Identifier: Apache-2.0 */
/* FusedRecurrent of float16 sums on the tensor cores. A block runs all steps of SAMPLES samples in
 * one direction. Each warp has the gates of eight hidden numbers; it keeps their weights, and its
 * samples' cells, in registers, so that a step reads nothing but what the input adds, fetched some
 * steps ahead, and what all warps made of the step before, in shared memory and float16. */
#pragma once

#include "engine/cuda/kernels/numbers.cuh"
#include "engine/cuda/kernels/sequence.h"
#include "engine/cuda/kernels/tile_unit.cuh"

namespace ops
{

struct recurrent_params {
    struct ops_recurrent p;
    const uint16_t      *sums; /* X */
    const float         *weights;
    const void          *bias, *state, *cell;
    uint16_t            *y;
    void                *last_state, *last_cell;
};

template <int KIND_, int GROUPS> struct recurrent_shape {
    static constexpr int KIND = KIND_, GATES = KIND == OPS_RNN ? 1 : KIND == OPS_GRU ? 3 : 4;
    static constexpr int HIDDEN = 16 * GROUPS, DEPTH = GROUPS; /* of 16 numbers each */
    static constexpr int AHEAD = GROUPS <= 4 ? 4 : 2; /* steps whose sums are on their way */
    static constexpr int WARPS = 2 * GROUPS, THREADS = 32 * WARPS, SAMPLES = 16;
    static constexpr int PITCH = HIDDEN + 8; /* eight rows of 16 bytes lie in different banks */
    static constexpr int ROOM = 2 * SAMPLES * PITCH * (int)sizeof(uint16_t);
};

static __device__ __forceinline__ float recurrent_sigmoid(float x)
{
    return 1 / (1 + __expf(-x));
}
static __device__ __forceinline__ float recurrent_tanh(float x)
{
    return 2 * recurrent_sigmoid(2 * x) - 1;
}

/* What a thread has: of samples row() and row() + 8 the hidden numbers unit() and unit() + 1, as
 * the tensor cores give them: number 2 r + i of four is number i of sample r. */
template <class S> struct recurrent_thread {
    uint32_t weight[S::GATES][S::DEPTH][2];
    float    bias[S::GATES][2], cell[4], held[4]; /* held: h, as float32 */
    uint32_t sums[S::AHEAD][S::GATES][2];         /* of the next steps: two numbers each */

    static __device__ __forceinline__ int lane()
    {
        return (int)threadIdx.x % 32;
    }
    static __device__ __forceinline__ int row()
    {
        return lane() / 4;
    }
    static __device__ __forceinline__ int unit()
    {
        return (int)threadIdx.x / 32 * 8 + lane() % 4 * 2;
    }

    /* [direction][number before][hidden number][gate] */
    static __device__ __forceinline__ float weight_at(const recurrent_params &r, int k, int to,
                                                      int gate)
    {
        const int hidden = (int)r.p.hidden;
        if (k >= hidden || to >= hidden)
            return 0;
        return r.weights[(((int64_t)blockIdx.y * hidden + k) * hidden + to) * S::GATES + gate];
    }
    __device__ __forceinline__ void read_weights(const recurrent_params &r)
    {
        const int to = (int)threadIdx.x / 32 * 8 + lane() / 4;
#pragma unroll
        for (int gate = 0; gate < S::GATES; gate++) {
#pragma unroll
            for (int d = 0; d < S::DEPTH; d++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const int k = 16 * d + 8 * half + lane() % 4 * 2;
                    weight[gate][d][half] =
                        pair_of(weight_at(r, k, to, gate), weight_at(r, k + 1, to, gate));
                }
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int64_t at = ((int64_t)blockIdx.y * S::GATES + gate) * r.p.hidden;
                bias[gate][i] = r.p.type[OPS_RECURRENT_B] && unit() + i < r.p.hidden
                                    ? get_float(r.bias, r.p.type[OPS_RECURRENT_B], at + unit() + i)
                                    : 0;
            }
        }
    }

    /* Where the states of the thread's sample begin. */
    static __device__ __forceinline__ int64_t state_at(const recurrent_params &r, int64_t sample)
    {
        return (r.p.batch_first ? sample * r.p.directions + blockIdx.y
                                : blockIdx.y * r.p.batch + sample) *
               r.p.hidden;
    }
    __device__ __forceinline__ void read_states(const recurrent_params &r, int64_t sample)
    {
#pragma unroll
        for (int n = 0; n < 4; n++) {
            const int64_t s = sample + n / 2 * 8;
            const int     u = unit() + n % 2;
            const bool    in = s < r.p.batch && u < r.p.hidden;
            const int64_t at = state_at(r, s) + u;
            held[n] = in && r.p.type[OPS_RECURRENT_H]
                          ? get_float(r.state, r.p.type[OPS_RECURRENT_H], at)
                          : 0;
            cell[n] = in && r.p.type[OPS_RECURRENT_C]
                          ? get_float(r.cell, r.p.type[OPS_RECURRENT_C], at)
                          : 0;
        }
    }
    __device__ __forceinline__ void keep_states(const recurrent_params &r, int64_t sample) const
    {
#pragma unroll
        for (int n = 0; n < 4; n++) {
            const int64_t s = sample + n / 2 * 8;
            const int     u = unit() + n % 2;
            if (s >= r.p.batch || u >= r.p.hidden)
                continue;
            if (r.p.out_type[1])
                put_float(r.last_state, r.p.out_type[1], state_at(r, s) + u, held[n]);
            if (r.p.out_type[2])
                put_float(r.last_cell, r.p.out_type[2], state_at(r, s) + u, cell[n]);
        }
    }

    /* What the input adds to sample `sample` and to the one eight further at moment t. */
    static __device__ __forceinline__ void read_sums(const recurrent_params &r, int64_t sample,
                                                     int64_t t, uint32_t (&to)[S::GATES][2])
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int64_t   s = sample + 8 * i;
            const int64_t   line = r.p.batch_first ? s * r.p.steps + t : t * r.p.batch + s;
            const uint16_t *from =
                r.sums + line * r.p.inputs + blockIdx.y * S::GATES * r.p.hidden + unit();
#pragma unroll
            for (int gate = 0; gate < S::GATES; gate++)
                to[gate][i] = s < r.p.batch && unit() < r.p.hidden
                                  ? *reinterpret_cast<const uint32_t *>(from + gate * r.p.hidden)
                                  : 0;
        }
    }
    static __device__ __forceinline__ float sum_of(const uint32_t (&pairs)[2], int n)
    {
        return half_to_float((uint16_t)(n % 2 ? pairs[n / 2] >> 16 : pairs[n / 2]));
    }

    /* x: what the input adds; gates: what was before adds to each, with its bias. */
    __device__ __forceinline__ void step(const uint32_t (&x)[S::GATES][2],
                                         const float (&gates)[S::GATES][4])
    {
#pragma unroll
        for (int n = 0; n < 4; n++) {
            if constexpr (S::KIND == OPS_LSTM) { /* input, output, forget, cell */
                const float enter = recurrent_sigmoid(sum_of(x[0], n) + gates[0][n]),
                            leave = recurrent_sigmoid(sum_of(x[1], n) + gates[1][n]),
                            forget = recurrent_sigmoid(sum_of(x[2], n) + gates[2][n]),
                            fresh = recurrent_tanh(sum_of(x[3], n) + gates[3][n]);
                cell[n] = forget * cell[n] + enter * fresh;
                held[n] = leave * recurrent_tanh(cell[n]);
            } else if constexpr (S::KIND == OPS_GRU) { /* update, reset, new */
                const float update = recurrent_sigmoid(sum_of(x[0], n) + gates[0][n]),
                            reset = recurrent_sigmoid(sum_of(x[1], n) + gates[1][n]),
                            fresh = recurrent_tanh(sum_of(x[2], n) + reset * gates[2][n]);
                held[n] = (1 - update) * fresh + update * held[n];
            } else {
                held[n] = recurrent_tanh(sum_of(x[0], n) + gates[0][n]);
            }
        }
    }

    __device__ __forceinline__ void keep(const recurrent_params &r, uint16_t *room, int64_t sample,
                                         int64_t t) const
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const uint32_t pair = pair_of(held[2 * i], held[2 * i + 1]);
            const int64_t  s = sample + 8 * i;
            const int64_t  line = r.p.batch_first
                                      ? (s * r.p.steps + t) * r.p.directions + blockIdx.y
                                      : (t * r.p.directions + blockIdx.y) * r.p.batch + s;
            *reinterpret_cast<uint32_t *>(room + (row() + 8 * i) * S::PITCH + unit()) = pair;
            if (r.y && s < r.p.batch && unit() < r.p.hidden)
                *reinterpret_cast<uint32_t *>(r.y + line * r.p.hidden + unit()) = pair;
        }
    }
};

/* gates += h times the weights. */
template <class S>
__device__ __forceinline__ void recurrent_multiply(const recurrent_thread<S> &own,
                                                   const uint16_t            *room,
                                                   float (&gates)[S::GATES][4])
{
    const int       lane = (int)threadIdx.x % 32;
    const uint16_t *from = room + lane % 16 * S::PITCH + lane / 16 * 8;
#pragma unroll
    for (int d = 0; d < S::DEPTH; d++) {
        uint32_t h[4];
        load(h, from + 16 * d);
#pragma unroll
        for (int gate = 0; gate < S::GATES; gate++)
            multiply_halves(gates[gate], h, own.weight[gate][d][0], own.weight[gate][d][1]);
    }
}

template <class S>
__global__ void __launch_bounds__(S::THREADS)
    recurrent_kernel(const __grid_constant__ recurrent_params r)
{
    early_begin();
    uint16_t           *room = tile_memory();
    recurrent_thread<S> own;
    const int64_t       sample = (int64_t)blockIdx.x * S::SAMPLES + own.row();
    const bool          backwards = r.p.reverse_only || blockIdx.y == 1;
    const int64_t       first = backwards ? r.p.steps - 1 : 0, step = backwards ? -1 : 1;
    own.read_weights(r);
    own.read_states(r, sample);
#pragma unroll
    for (int a = 0; a < S::AHEAD; a++)
        if (a < r.p.steps)
            own.read_sums(r, sample, first + a * step, own.sums[a]);
#pragma unroll
    for (int i = 0; i < 2; i++)
        *reinterpret_cast<uint32_t *>(room + (own.row() + 8 * i) * S::PITCH + own.unit()) =
            pair_of(own.held[2 * i], own.held[2 * i + 1]);
    __syncthreads();
    for (int64_t begin = 0; begin < r.p.steps; begin += S::AHEAD)
#pragma unroll
        for (int a = 0; a < S::AHEAD; a++)
            if (begin + a < r.p.steps) {
                const int64_t t = first + (begin + a) * step;
                float         gates[S::GATES][4];
#pragma unroll
                for (int gate = 0; gate < S::GATES; gate++)
#pragma unroll
                    for (int n = 0; n < 4; n++)
                        gates[gate][n] = own.bias[gate][n % 2];
                recurrent_multiply(own, room + a % 2 * S::SAMPLES * S::PITCH, gates);
                own.step(own.sums[a], gates);
                if (begin + a + S::AHEAD < r.p.steps)
                    own.read_sums(r, sample, t + S::AHEAD * step, own.sums[a]);
                own.keep(r, room + (a + 1) % 2 * S::SAMPLES * S::PITCH, sample, t);
                __syncthreads();
            }
    own.keep_states(r, sample);
}

/* ---- launching ---- */

template <int KIND, int GROUPS> int recurrent_launch(const recurrent_params &r, void *stream)
{
    using S = recurrent_shape<KIND, GROUPS>;
    const dim3 blocks((unsigned)((r.p.batch + S::SAMPLES - 1) / S::SAMPLES),
                      (unsigned)r.p.directions);
    return tile_launch(recurrent_kernel<S>, blocks, dim3(S::THREADS), S::ROOM, stream, r);
}

template <int KIND> int recurrent_of_kind(const recurrent_params &r, void *stream)
{
    switch (r.p.tiles) {
    case 1: return recurrent_launch<KIND, 1>(r, stream);
    case 2: return recurrent_launch<KIND, 2>(r, stream);
    case 3: return recurrent_launch<KIND, 3>(r, stream);
    case 4: return recurrent_launch<KIND, 4>(r, stream);
    case 6: return recurrent_launch<KIND, 6>(r, stream);
    default: return recurrent_launch<KIND, OPS_RECURRENT_TILES_MAX>(r, stream);
    }
}

inline int recurrent_by_tiles(const struct ops_recurrent &p, const struct ops_ports *ports,
                              void *stream)
{
    const recurrent_params r = {p,
                                (const uint16_t *)ports->in[OPS_RECURRENT_X],
                                (const float *)ports->in[OPS_RECURRENT_R],
                                ports->in[OPS_RECURRENT_B],
                                ports->in[OPS_RECURRENT_H],
                                ports->in[OPS_RECURRENT_C],
                                p.out_type[0] ? (uint16_t *)ports->out[0] : NULL,
                                ports->out[1],
                                ports->out[2]};
    switch (p.kind) {
    case OPS_RNN: return recurrent_of_kind<OPS_RNN>(r, stream);
    case OPS_GRU: return recurrent_of_kind<OPS_GRU>(r, stream);
    default: return recurrent_of_kind<OPS_LSTM>(r, stream);
    }
}

} // namespace ops
