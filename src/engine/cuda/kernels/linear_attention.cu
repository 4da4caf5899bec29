/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/kernels/linear_attention.h"
#ifdef __CUDACC__
#include "engine/cuda/kernels/linear_attention_plain.cuh"
#include "engine/cuda/kernels/linear_attention_tiles.cuh"
#else
#include "engine/cuda/kernels/numbers.cuh"
#endif

using namespace ops;

#ifndef __CUDACC__
namespace
{

/* One head after the other. */
struct linear_body {
    struct ops_linear_attention p;
    const void                 *a, *b, *c, *gain;
    void                       *y;

    static int64_t start_of(const ops_head_view &v, int64_t batch, int64_t head)
    {
        return v.offset + batch * v.step[0] + head * v.step[1];
    }
    static float number(const void *from, int type, const ops_head_view &v, int64_t start,
                        int64_t token, int i)
    {
        return get_float(from, type, start + token * v.step[2] + i * v.step[3]);
    }
    float key(int64_t start, int64_t token, int j, float most) const
    {
        const float x = number(b, p.b_type, p.b, start, token, j);
        if (p.kind == SAC_LINEAR_RATIO)
            return x < 0 ? 0 : x;
        return p.kind == SAC_LINEAR_TOKENS ? expf(x - most) : x;
    }
    float over_length(double squares) const
    {
        const float length = fmaxf(sqrtf((float)squares), p.epsilon);
        return length > 0 ? 1 / length : 1;
    }
    static void make_shares(float *row, int count, float factor)
    {
        float most = -INFINITY, sum = 0;
        for (int j = 0; j < count; j++) {
            row[j] *= factor;
            most = row[j] > most || row[j] != row[j] ? row[j] : most;
        }
        for (int j = 0; j < count; j++)
            sum += row[j] = expf(row[j] - most);
        for (int j = 0; j < count; j++)
            row[j] /= sum;
    }
    /* The state without a softmax, and what each number of the keys sums up to. */
    void gather(int64_t a_at, int64_t b_at,
                float (&state)[SAC_LINEAR_SIZE_MAX][SAC_LINEAR_SIZE_MAX],
                float (&sum)[SAC_LINEAR_SIZE_MAX]) const
    {
        for (int j = 0; j < p.size; j++) {
            float  most = -INFINITY;
            double all = 0, squares = 0, product[SAC_LINEAR_SIZE_MAX] = {};
            for (int64_t k = 0; p.kind == SAC_LINEAR_TOKENS && k < p.keys; k++)
                most = fmaxf(most, number(b, p.b_type, p.b, b_at, k, j));
            for (int64_t k = 0; k < p.keys; k++) {
                const float x = key(b_at, k, j, most);
                all += x;
                squares += (double)x * x;
                for (int i = 0; i < p.width; i++)
                    product[i] += (double)x * number(a, p.a_type, p.a, a_at, k, i);
            }
            sum[j] = (float)all;
            const float times = p.lengths                                   ? over_length(squares)
                                : p.kind == SAC_LINEAR_TOKENS && p.keys > 0 ? 1 / sum[j]
                                                                            : 1;
            for (int i = 0; i < p.width; i++)
                state[i][j] = (float)product[i] * p.scale * times;
        }
    }
    void share(int64_t a_at, float gain_of_head,
               float (&state)[SAC_LINEAR_SIZE_MAX][SAC_LINEAR_SIZE_MAX]) const
    {
        for (int i = 0; i < p.width; i++) {
            double squares = 0;
            for (int64_t k = 0; p.lengths && k < p.keys; k++) {
                const double x = number(a, p.a_type, p.a, a_at, k, i);
                squares += x * x;
            }
            make_shares(state[i], p.size, (p.lengths ? over_length(squares) : 1) * gain_of_head);
        }
    }
    void operator()(int64_t n) const
    {
        const int64_t head = n % p.heads, batch = n / p.heads, a_at = start_of(p.a, batch, head);
        float         state[SAC_LINEAR_SIZE_MAX][SAC_LINEAR_SIZE_MAX] = {};
        float         sum[SAC_LINEAR_SIZE_MAX] = {};
        gather(a_at, start_of(p.b, batch, head), state, sum);
        if (p.kind == SAC_LINEAR_SHARES)
            share(a_at, p.has_gain ? get_float(gain, p.gain_type, head * p.gain_step) : 1, state);
        answer(start_of(p.c, batch, head), start_of(p.y, batch, head), state, sum);
    }
    void answer(int64_t c_at, int64_t y_at,
                const float (&state)[SAC_LINEAR_SIZE_MAX][SAC_LINEAR_SIZE_MAX],
                const float (&sum)[SAC_LINEAR_SIZE_MAX]) const
    {
        const bool ratio = p.kind == SAC_LINEAR_RATIO;
        for (int64_t k = 0; k < p.queries; k++)
            for (int i = 0; i < p.width; i++) {
                double over = 0, all = p.epsilon;
                for (int j = 0; j < p.size; j++) {
                    const float x = number(c, p.c_type, p.c, c_at, k, j),
                                q = ratio && x < 0 ? 0 : x;
                    over += (double)q * state[i][j];
                    all += (double)q * sum[j];
                }
                put_float(y, p.y_type, y_at + k * p.y.step[2] + i * p.y.step[3],
                          (float)(ratio ? over / all : over));
            }
    }
};

} // namespace
#endif

extern "C" int ops_launch_linear_attention(const void *params, const struct ops_ports *ports,
                                           void *stream)
{
    const struct ops_linear_attention &p = *(const struct ops_linear_attention *)params;
#ifdef __CUDACC__
    return linear_has_tiles(p, ports) ? linear_by_tiles(p, ports, stream)
                                      : linear_plain(p, ports, stream);
#else
    const linear_body body = {p,
                              ports->in[0],
                              ports->in[1],
                              ports->in[2],
                              p.has_gain ? ports->in[3] : NULL,
                              ports->out[0]};
    return each(body, p.batch * p.heads, stream);
#endif
}
