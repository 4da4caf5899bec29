/* SPDX-License-Identifier: Apache-2.0 */
/* Excitation. A block takes a sample, or a part of a layer's rows where the layers are large and
 * samples few; threads in small groups share a row. */
#include "engine/cuda/kernels/excitation.h"

#include "engine/cuda/kernels/functions.cuh"
#include "engine/cuda/kernels/team.cuh"
#include "engine/ops/fused_kinds.h"

using namespace ops;

namespace
{

struct excitation_body {
    struct ops_excitation p;
    const void           *in, *w[2], *bias[2];
    void                 *out;
    float                *between; /* with several parts */
    bool                  eights[2];

    /* What one of the threads that share a row adds to its sum. Of a known type, so that the loads
     * of several turns are under way at once. */
    template <int TYPE>
    OPS_BODY float part_of(int which, const float *x, int64_t row, int lane) const
    {
        const struct ops_layer &l = p.layer[which];
        const int64_t           from = row * l.length;
        const int               length = (int)l.length;
        float                   sum = 0;
        if (eights[which]) {
            OPS_UNROLL_SOME
            for (int k = lane * LANES; k < length; k += l.lanes * LANES) {
                float v[LANES], own[LANES];
                get8(w[which], TYPE, from + k, v);
                get8(x, SAC_F32, k, own); /* one by one, a warp's would meet in few banks */
                OPS_UNROLL
                for (int j = 0; j < LANES; j++)
                    sum += v[j] * own[j];
            }
            return sum;
        }
        OPS_UNROLL_SOME
        for (int k = lane; k < length; k += l.lanes)
            sum += get_float(w[which], TYPE, from + k) * x[k];
        return sum;
    }
    OPS_BODY float part_of_row(int which, const float *x, int64_t row, int lane) const
    {
        return p.layer[which].w_type == SAC_F16 ? part_of<SAC_F16>(which, x, row, lane)
                                                : part_of<SAC_F32>(which, x, row, lane);
    }

    OPS_BODY float finished(int which, int64_t row, float sum) const
    {
        const struct ops_layer &l = p.layer[which];
        sum += get_float(bias[which], l.bias_type, row);
        return real_function(l.fn, sum, 0.0f, 0.0f, (float)l.a, (float)l.b);
    }

    OPS_BODY float mean_of(int64_t sample, int64_t channel) const
    {
        return get_float(in, p.in_type, sample * p.layer[0].length + channel);
    }

    OPS_BODY void put_gate(int64_t sample, int64_t row, float v) const
    {
        put_float(out, p.out_type, sample * p.layer[1].rows + row, v);
    }
};

#ifdef __CUDACC__

constexpr int MANY = 512;

/* Rows of a block's part, each put(row, number). */
template <class PUT>
__device__ void layer(const excitation_body &body, int which, const float *x, const PUT &put)
{
    const struct ops_layer &l = body.p.layer[which];
    const int               lane = threadIdx.x % l.lanes, groups = MANY / l.lanes;
    const int64_t           first = l.rows * blockIdx.y / gridDim.y,
                  end = l.rows * (blockIdx.y + 1) / gridDim.y;
    for (int64_t at = first; at < end; at += groups) { /* all threads of a warp take each turn */
        const int64_t row = at + threadIdx.x / l.lanes;
        float         sum = row < end ? body.part_of_row(which, x, row, lane) : 0.0f;
        for (int step = l.lanes / 2; step > 0; step /= 2)
            sum += shuffle(sum, step);
        if (row < end && lane == 0)
            put(row, body.finished(which, row, sum));
    }
}

enum { FIRST = 1, SECOND = 2 };

/* Both layers' numbers begin at 16 bytes. */
__host__ __device__ inline int64_t up4(int64_t n)
{
    return (n + 3) / 4 * 4;
}

__global__ void __launch_bounds__(MANY)
    excitation_kernel(const __grid_constant__ excitation_body body, int layers)
{
    early_begin();
    extern __shared__ __align__(16) float room[];
    const int64_t                         sample = blockIdx.x, channels = body.p.layer[0].length,
                  hidden = body.p.layer[0].rows;
    float *h = layers == (FIRST | SECOND) ? room + up4(channels) : room;
    float *between = body.between + sample * hidden;
    if (layers & FIRST) {
        for (int64_t i = threadIdx.x; i < channels; i += MANY)
            room[i] = body.mean_of(sample, i);
        __syncthreads();
        float *to = layers & SECOND ? h : between;
        layer(body, 0, room, [&](int64_t row, float v) { to[row] = v; });
    } else {
        for (int64_t i = threadIdx.x; i < hidden; i += MANY)
            h[i] = between[i];
    }
    __syncthreads();
    if (layers & SECOND)
        layer(body, 1, h, [&](int64_t row, float v) { body.put_gate(sample, row, v); });
}

int queue(const excitation_body &body, int parts, int layers, cudaStream_t stream)
{
    const struct ops_layer &l = body.p.layer[0];
    const int64_t numbers = (layers & FIRST ? up4(l.length) : 0) + (layers & SECOND ? l.rows : 0);
    CUDA_LAUNCH_ALONE(excitation_kernel, dim3((unsigned)body.p.n, parts), MANY,
                      numbers * sizeof(float), stream, body, layers);
    return (int)cudaGetLastError();
}

int run(const excitation_body &body, void *stream)
{
    if (body.p.parts == 1)
        return queue(body, 1, FIRST | SECOND, (cudaStream_t)stream);
    const int res = queue(body, body.p.parts, FIRST, (cudaStream_t)stream);
    return res ? res : queue(body, body.p.parts, SECOND, (cudaStream_t)stream);
}

#else

int run(const excitation_body &body, void *)
{
    alignas(16) float       x[SAC_EXCITATION_CHANNELS_MAX], h[SAC_EXCITATION_HIDDEN_MAX];
    const struct ops_layer *l = body.p.layer;
    for (int64_t n = 0; n < body.p.n; n++) {
        for (int64_t i = 0; i < l[0].length; i++)
            x[i] = body.mean_of(n, i);
        for (int which = 0; which < 2; which++)
            for (int64_t row = 0; row < l[which].rows; row++) {
                float sum = 0;
                for (int lane = 0; lane < l[which].lanes; lane++)
                    sum += body.part_of_row(which, which ? h : x, row, lane);
                const float v = body.finished(which, row, sum);
                if (which)
                    body.put_gate(n, row, v);
                else
                    h[row] = v;
            }
    }
    return 0;
}

#endif

} // namespace

extern "C" int ops_launch_excitation(const void *params, const struct ops_ports *ports,
                                     void *stream)
{
    excitation_body body = {*(const struct ops_excitation *)params,
                            ports->in[0],
                            {ports->in[1], ports->in[3]},
                            {ports->in[2], ports->in[4]},
                            ports->out[0],
                            (float *)ports->scratch,
                            {}};
    for (int i = 0; i < 2; i++)
        body.eights[i] = body.p.layer[i].length % LANES == 0 && fits16(body.w[i]);
    return body.p.n > 0 ? run(body, stream) : 0;
}
