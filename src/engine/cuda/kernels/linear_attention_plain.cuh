/* SPDX-License-Identifier: Apache-2.0 */
/* LinearAttention of numbers of any types that lie anywhere, in float32: a block makes the state of
 * a head in shared memory, tile by tile as head_matmul_plain.cuh has them, and reads it for its
 * tokens. */
#pragma once

#include "engine/cuda/kernels/head_matmul_plain.cuh"
#include "engine/cuda/kernels/linear_attention.h"
#include "engine/cuda/kernels/team.cuh"

namespace ops
{

struct linear_plain_params {
    struct ops_linear_attention p;
    const void                 *a, *b, *c, *gain;
    void                       *y;
};

struct linear_plain_room {
    float a[PLAIN_DEPTH][PLAIN_PITCH], b[PLAIN_DEPTH][PLAIN_PITCH];
    float state[SAC_LINEAR_SIZE_MAX][SAC_LINEAR_SIZE_MAX + 1];
    float most[SAC_LINEAR_SIZE_MAX];   /* of columns of b */
    float sum[2][SAC_LINEAR_SIZE_MAX]; /* of columns of b and a, or of their squares */
};

static __device__ __forceinline__ float linear_plain_key(const ops_linear_attention &p, float x,
                                                         float most)
{
    if (p.kind == SAC_LINEAR_RATIO)
        return x < 0 ? 0 : x;
    return p.kind == SAC_LINEAR_TOKENS ? expf(x - most) : x;
}

/* A warp a column. */
static __device__ void linear_plain_columns(const linear_plain_params &l, int64_t b_at,
                                            int64_t a_at, linear_plain_room &room)
{
    const ops_linear_attention &p = l.p;
    const int                   lane = threadIdx.x % WARP;
    for (int j = threadIdx.x / WARP; j < p.size; j += THREADS / WARP) {
        float most = -INFINITY, sum = 0;
        for (int64_t n = lane; p.kind == SAC_LINEAR_TOKENS && n < p.keys; n += WARP) {
            const float x = get_float(l.b, p.b_type, b_at + n * p.b.step[2] + j * p.b.step[3]);
            most = x > most || x != x ? x : most;
        }
        most = fold_warp(most, [](float x, float y) { return y > x || y != y ? y : x; });
        for (int64_t n = lane; n < p.keys; n += WARP) {
            const float x = linear_plain_key(
                p, get_float(l.b, p.b_type, b_at + n * p.b.step[2] + j * p.b.step[3]), most);
            sum += p.lengths ? x * x : x;
        }
        sum = fold_warp(sum, [](float x, float y) { return x + y; });
        if (lane == 0)
            room.most[j] = most, room.sum[0][j] = sum;
    }
    for (int i = threadIdx.x / WARP; p.lengths && i < p.width; i += THREADS / WARP) {
        float sum = 0;
        for (int64_t n = lane; n < p.keys; n += WARP) {
            const float x = get_float(l.a, p.a_type, a_at + n * p.a.step[2] + i * p.a.step[3]);
            sum += x * x;
        }
        sum = fold_warp(sum, [](float x, float y) { return x + y; });
        if (lane == 0)
            room.sum[1][i] = sum;
    }
}

/* With numbers in the place of rows, and tokens in that of the depth. */
static __device__ __forceinline__ ops_head_view linear_plain_turned(const ops_head_view &v)
{
    return {v.offset, {v.step[0], v.step[1], v.step[3], v.step[2]}};
}

template <class READ>
static __device__ void linear_plain_gather(const linear_plain_params &l, int64_t b_at, int64_t a_at,
                                           linear_plain_room &room)
{
    const ops_linear_attention &p = l.p;
    const ops_head_view         a = linear_plain_turned(p.a), b = linear_plain_turned(p.b);
    const int                   row = threadIdx.x / 16, column = threadIdx.x % 16;
    for (int i0 = 0; i0 < p.width; i0 += PLAIN_TILE)
        for (int j0 = 0; j0 < p.size; j0 += PLAIN_TILE) {
            float sum[PLAIN_EACH][PLAIN_EACH] = {};
            for (int64_t k = 0; k < p.keys; k += PLAIN_DEPTH) {
                plain_fetch<READ>(room.a, l.a, p.a_type, a_at + k * a.step[3] + i0 * a.step[2], a,
                                  true, p.width - i0, p.keys - k);
                plain_fetch<READ>(room.b, l.b, p.b_type, b_at + k * b.step[3] + j0 * b.step[2], b,
                                  true, p.size - j0, p.keys - k);
                for (int i = threadIdx.x; i < PLAIN_TILE * PLAIN_DEPTH; i += THREADS) {
                    const int j = i % PLAIN_TILE, n = i / PLAIN_TILE; /* as it was fetched */
                    if (n < p.keys - k && j < p.size - j0)
                        room.b[n][j] = linear_plain_key(p, room.b[n][j], room.most[j0 + j]);
                }
                __syncthreads();
                plain_multiply(room.a, room.b, row, column, sum);
                __syncthreads();
            }
            for (int i = 0; i < PLAIN_EACH; i++)
                for (int j = 0; j < PLAIN_EACH; j++)
                    if (i0 + row + i * 16 < p.width && j0 + column + j * 16 < p.size)
                        room.state[i0 + row + i * 16][j0 + column + j * 16] = sum[i][j] * p.scale;
        }
}

static __device__ __forceinline__ float linear_plain_length(float squares, float least)
{
    const float length = fmaxf(sqrtf(squares), least);
    return length > 0 ? length : 1;
}

/* A warp a row. */
static __device__ void linear_plain_rows(const linear_plain_params &l, float gain,
                                         linear_plain_room &room)
{
    const ops_linear_attention &p = l.p;
    const int                   lane = threadIdx.x % WARP;
    for (int i = threadIdx.x / WARP; i < p.width; i += THREADS / WARP) {
        float *v = room.state[i], most = -INFINITY, sum = 0;
        for (int j = lane; j < p.size; j += WARP) {
            if (p.lengths)
                v[j] /= linear_plain_length(room.sum[0][j], p.epsilon) *
                        linear_plain_length(room.sum[1][i], p.epsilon);
            if (p.kind == SAC_LINEAR_TOKENS && p.keys > 0)
                v[j] /= room.sum[0][j];
            if (p.kind == SAC_LINEAR_SHARES)
                v[j] *= gain;
            most = v[j] > most || v[j] != v[j] ? v[j] : most;
        }
        if (p.kind != SAC_LINEAR_SHARES)
            continue;
        most = fold_warp(most, [](float x, float y) { return y > x || y != y ? y : x; });
        for (int j = lane; j < p.size; j += WARP)
            sum += v[j] = expf(v[j] - most);
        sum = fold_warp(sum, [](float x, float y) { return x + y; });
        for (int j = lane; j < p.size; j += WARP)
            v[j] /= sum;
    }
}

template <class READ>
static __device__ void linear_plain_answer(const linear_plain_params &l, int64_t c_at, int64_t y_at,
                                           linear_plain_room &room)
{
    const ops_linear_attention &p = l.p;
    const bool                  ratio = p.kind == SAC_LINEAR_RATIO;
    const int                   row = threadIdx.x / 16, column = threadIdx.x % 16;
    for (int64_t n0 = 0; n0 < p.queries; n0 += PLAIN_TILE)
        for (int i0 = 0; i0 < p.width; i0 += PLAIN_TILE) {
            float sum[PLAIN_EACH][PLAIN_EACH] = {}, all[PLAIN_EACH] = {};
            for (int k = 0; k < p.size; k += PLAIN_DEPTH) {
                plain_fetch<READ>(room.a, l.c, p.c_type, c_at + n0 * p.c.step[2] + k * p.c.step[3],
                                  p.c, false, p.queries - n0, p.size - k);
                for (int i = threadIdx.x; i < PLAIN_TILE * PLAIN_DEPTH; i += THREADS) {
                    const int j = i % PLAIN_DEPTH, to = i / PLAIN_DEPTH; /* as it was fetched */
                    room.b[j][to] =
                        k + j < p.size && i0 + to < p.width ? room.state[i0 + to][k + j] : 0;
                    if (ratio && room.a[j][to] < 0)
                        room.a[j][to] = 0;
                }
                __syncthreads();
                for (int j = 0; ratio && j < PLAIN_DEPTH && k + j < p.size; j++)
                    for (int i = 0; i < PLAIN_EACH; i++)
                        all[i] += room.a[j][row + i * 16] * room.sum[0][k + j];
                plain_multiply(room.a, room.b, row, column, sum);
                __syncthreads();
            }
            for (int i = 0; i < PLAIN_EACH; i++)
                for (int j = 0; j < PLAIN_EACH; j++) {
                    const int64_t n = n0 + row + i * 16;
                    const int     to = i0 + column + j * 16;
                    if (n < p.queries && to < p.width)
                        put_float(l.y, p.y_type, y_at + n * p.y.step[2] + to * p.y.step[3],
                                  ratio ? sum[i][j] / (all[i] + p.epsilon) : sum[i][j]);
                }
        }
}

template <class READ>
__global__ void __launch_bounds__(THREADS)
    linear_plain_kernel(const __grid_constant__ linear_plain_params l, int64_t products)
{
    early_begin();
    __shared__ linear_plain_room room;
    const ops_linear_attention  &p = l.p;
    for (int64_t product = blockIdx.x; product < products; product += gridDim.x) {
        const int64_t head = product % p.heads, batch = product / p.heads;
        const int64_t a_at = plain_start(p.a, batch, head), b_at = plain_start(p.b, batch, head);
        linear_plain_columns(l, b_at, a_at, room);
        __syncthreads();
        linear_plain_gather<READ>(l, b_at, a_at, room);
        __syncthreads();
        linear_plain_rows(l, p.has_gain ? get_float(l.gain, p.gain_type, head * p.gain_step) : 1,
                          room);
        __syncthreads();
        linear_plain_answer<READ>(l, plain_start(p.c, batch, head), plain_start(p.y, batch, head),
                                  room);
        __syncthreads();
    }
}

inline int linear_plain(const struct ops_linear_attention &p, const struct ops_ports *ports,
                        void *stream)
{
    const linear_plain_params l = {p,
                                   ports->in[0],
                                   ports->in[1],
                                   ports->in[2],
                                   p.has_gain ? ports->in[3] : NULL,
                                   ports->out[0]};
    const int64_t             products = p.batch * p.heads;
    const unsigned            grid = (unsigned)(products < BLOCKS_MAX ? products : BLOCKS_MAX);
    if (products == 0 || p.queries == 0 || p.width == 0)
        return 0;
    if (p.a_type == SAC_F32 && p.b_type == SAC_F32 && p.c_type == SAC_F32)
        CUDA_LAUNCH_ALONE(linear_plain_kernel<product_floats>, grid, THREADS, 0,
                          (cudaStream_t)stream, l, products);
    else
        CUDA_LAUNCH_ALONE(linear_plain_kernel<product_by_type>, grid, THREADS, 0,
                          (cudaStream_t)stream, l, products);
    return (int)cudaGetLastError();
}

} // namespace ops
