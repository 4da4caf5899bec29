/* SPDX-License-Identifier: Apache-2.0 */
/* Products of heads' matrices of any types, in float32: a block makes a tile of 64 x 64 numbers,
 * each thread 4 x 4 of them, from pieces of 16 numbers of the depth in shared memory. */
#pragma once

#include "engine/cuda/kernels/head_matmul_ending.cuh"

namespace ops
{

struct plain_product {
    struct ops_head_matmul p;
    const void            *a, *b;
    void                  *y;
    product_behind         behind;
    int64_t                blocks;
};

struct product_floats {
    static OPS_BODY float get(const void *p, int, int64_t i)
    {
        return ((const float *)p)[i];
    }
};
struct product_by_type {
    static OPS_BODY float get(const void *p, int type, int64_t i)
    {
        return get_float(p, type, i);
    }
};

enum {
    PLAIN_TILE = OPS_HEAD_PLAIN_TILE,
    PLAIN_DEPTH = 16,
    PLAIN_PITCH = PLAIN_TILE + 4,
    PLAIN_EACH = PLAIN_TILE / 16 /* rows, and columns, of a thread */
};

/* Rows (or columns) and numbers of the depth from `start` on, of which so many are there. */
template <class READ>
__device__ __forceinline__ void plain_fetch(float (&to)[PLAIN_DEPTH][PLAIN_PITCH], const void *from,
                                            int type, int64_t start, const ops_head_view &view,
                                            bool turned, int64_t outer_left, int64_t depth_left)
{
#pragma unroll
    for (int i = threadIdx.x; i < PLAIN_TILE * PLAIN_DEPTH; i += THREADS) {
        const int outer = turned ? i % PLAIN_TILE : i / PLAIN_DEPTH,
                  k = turned ? i / PLAIN_TILE : i % PLAIN_DEPTH;
        to[k][outer] = outer < outer_left && k < depth_left
                           ? READ::get(from, type, start + outer * view.step[2] + k * view.step[3])
                           : 0;
    }
}

__device__ __forceinline__ void plain_multiply(const float (&a)[PLAIN_DEPTH][PLAIN_PITCH],
                                               const float (&b)[PLAIN_DEPTH][PLAIN_PITCH], int row,
                                               int column, float (&sum)[PLAIN_EACH][PLAIN_EACH])
{
#pragma unroll
    for (int k = 0; k < PLAIN_DEPTH; k++)
#pragma unroll
        for (int i = 0; i < PLAIN_EACH; i++)
#pragma unroll
            for (int j = 0; j < PLAIN_EACH; j++)
                sum[i][j] += a[k][row + i * 16] * b[k][column + j * 16];
}

__device__ __forceinline__ int64_t plain_start(const ops_head_view &v, int64_t batch, int64_t head)
{
    return v.offset + batch * v.step[0] + head * v.step[1];
}

template <class READ>
__global__ void __launch_bounds__(THREADS) plain_kernel(const __grid_constant__ plain_product body)
{
    early_begin();
    __shared__ float       a[PLAIN_DEPTH][PLAIN_PITCH], b[PLAIN_DEPTH][PLAIN_PITCH];
    const ops_head_matmul &p = body.p;
    const int64_t          across = (p.columns + PLAIN_TILE - 1) / PLAIN_TILE,
                  down = (p.rows + PLAIN_TILE - 1) / PLAIN_TILE;
    const int row = threadIdx.x / 16, column = threadIdx.x % 16;
    for (int64_t tile = blockIdx.x; tile < body.blocks; tile += gridDim.x) {
        const int64_t product = tile / across / down, head = product % p.heads,
                      batch = product / p.heads, first_row = tile / across % down * PLAIN_TILE,
                      first_column = tile % across * PLAIN_TILE;
        const int64_t a_start = plain_start(p.a, batch, head) + first_row * p.a.step[2],
                      b_start = plain_start(p.b, batch, head) + first_column * p.b.step[2];
        float sum[PLAIN_EACH][PLAIN_EACH] = {};
        for (int64_t k = 0; k < p.depth; k += PLAIN_DEPTH) {
            plain_fetch<READ>(a, body.a, p.a_type, a_start + k * p.a.step[3], p.a, p.a_turned,
                              p.rows - first_row, p.depth - k);
            plain_fetch<READ>(b, body.b, p.b_type, b_start + k * p.b.step[3], p.b, p.b_turned,
                              p.columns - first_column, p.depth - k);
            __syncthreads();
            plain_multiply(a, b, row, column, sum);
            __syncthreads();
        }
        const int64_t y = plain_start(p.y, batch, head), other = plain_start(p.r, batch, head);
#pragma unroll
        for (int i = 0; i < PLAIN_EACH; i++)
#pragma unroll
            for (int j = 0; j < PLAIN_EACH; j++) {
                const int64_t r = first_row + row + i * 16, c = first_column + column + j * 16;
                if (r < p.rows && c < p.columns)
                    put_float(body.y, p.y_type, y + r * p.y.step[2] + c * p.y.step[3],
                              product_ended(p, body.behind, other, r, c, sum[i][j]));
            }
    }
}

inline int product_plain(const struct ops_head_matmul &p, const struct ops_ports *ports,
                         void *stream)
{
    const int64_t blocks = p.batch * p.heads * ((p.rows + PLAIN_TILE - 1) / PLAIN_TILE) *
                           ((p.columns + PLAIN_TILE - 1) / PLAIN_TILE);
    const plain_product body = {
        p, ports->in[p.a_port], ports->in[p.b_port], ports->out[0], product_behind(ports), blocks};
    const unsigned grid = (unsigned)(blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX);
    if (blocks == 0)
        return 0;
    if (p.a_type == SAC_F32 && p.b_type == SAC_F32)
        CUDA_LAUNCH_ALONE(plain_kernel<product_floats>, grid, THREADS, 0, (cudaStream_t)stream,
                          body);
    else
        CUDA_LAUNCH_ALONE(plain_kernel<product_by_type>, grid, THREADS, 0, (cudaStream_t)stream,
                          body);
    return (int)cudaGetLastError();
}

} // namespace ops
