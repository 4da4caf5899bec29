/* SPDX-License-Identifier: Apache-2.0 */
/* Excitation in two launches (excitation.h), so that all of the card reads the map, and each block
 * few weights, whatever the sizes. One launch of a cluster of blocks for a sample, which told each
 * other means and hidden numbers, took 11 to 15 us for a sample and up to 36 for 32 (SE-ResNet-50,
 * one H200, 2026-11-30): eight processors read the map of a single sample, and one or two of 32
 * samples all of the weights. */
#include "engine/cuda/kernels/excitation.h"

#include "engine/cuda/kernels/functions.cuh"
#include "engine/cuda/kernels/pack.cuh"
#include "engine/cuda/kernels/team.cuh"
#include "engine/ops/fused_kinds.h"

using namespace ops;

namespace
{

/* float32 values lie as these two. */
OPS_BODY float number_of(const void *p, int type, int64_t at)
{
    return type == SAC_F16 ? get_float(p, SAC_F16, at) : get_float(p, SAC_F32, at);
}

struct excitation_body {
    struct ops_excitation p;
    const void           *in, *w[2], *bias[2];
    void                 *out;
    float                *parts; /* of the first layer's numbers, in scratch */

    OPS_BODY float bias_of(int which, int64_t row) const
    {
        return number_of(bias[which], p.layer[which].bias_type, row);
    }
    OPS_BODY float weight_of(int which, int64_t row, int64_t at) const
    {
        const struct ops_layer &l = p.layer[which];
        return number_of(w[which], l.w_type, row * l.length + at);
    }
    OPS_BODY float finished(int which, float sum) const
    {
        const struct ops_layer &l = p.layer[which];
        return activated(l.fn, sum, (float)l.a, (float)l.b);
    }

    OPS_BODY float pixel_of(int64_t sample, int64_t channel, int64_t pixel) const
    {
        return number_of(in, p.in_type,
                         sample * p.maps.sample + channel * p.maps.channel + pixel * p.maps.pixel);
    }

    OPS_BODY void put_gate(int64_t sample, int64_t row, float v) const
    {
        const int64_t at = sample * p.layer[1].rows + row;
        if (p.out_type == SAC_F16)
            put_float(out, SAC_F16, at, v);
        else
            put_float(out, SAC_F32, at, v);
    }
};

#ifdef __CUDACC__

constexpr int MANY = OPS_EXCITATION_THREADS, MANY_WARPS = MANY / WARP, CHUNK = OPS_EXCITATION_CHUNK;

/* ---- eight numbers of a pixel or of a row ---- */

/* Those of one type that lie together at addresses that fit 16 bytes. TURNS: so many are under way
 * at once. */
template <class T> struct together {
    typedef pack<T, LANES>         eight;
    static constexpr int           TURNS = sizeof(T) == 2 ? 4 : 2;
    static __device__ inline eight pixel(const excitation_body &body, int64_t sample, int channel,
                                         int pixel)
    {
        const ops_maps &m = body.p.maps;
        return load<LANES>((const T *)body.in + sample * m.sample + channel + pixel * m.pixel);
    }
    static __device__ inline eight weights(const excitation_body &body, int which, int row, int at)
    {
        return load<LANES>((const T *)body.w[which] + row * body.p.layer[which].length + at);
    }
};

/* Any, zeros where there are none. */
struct one_by_one {
    typedef pack<float, LANES>     eight;
    static constexpr int           TURNS = 1;
    static __device__ inline eight pixel(const excitation_body &body, int64_t sample, int channel,
                                         int pixel)
    {
        eight     e;
        const int left = (int)body.p.layer[0].length - channel;
#pragma unroll
        for (int k = 0; k < LANES; k++)
            e.word[k] = k < left ? float_to_bits(body.pixel_of(sample, channel + k, pixel)) : 0;
        return e;
    }
    static __device__ inline eight weights(const excitation_body &body, int which, int row, int at)
    {
        eight     e;
        const int left = (int)body.p.layer[which].length - at;
#pragma unroll
        for (int k = 0; k < LANES; k++)
            e.word[k] = k < left ? float_to_bits(body.weight_of(which, row, at + k)) : 0;
        return e;
    }
};

__device__ inline float product_of(const float (&a)[LANES], const float (&b)[LANES])
{
    float sum = 0;
#pragma unroll
    for (int k = 0; k < LANES; k++)
        sum += a[k] * b[k];
    return sum;
}

/* ---- means of a chunk, and what they add to the first layer ---- */

/* The sum of pixels first, first + step, ... below last of eight channels. */
template <class READ>
__device__ inline void sum_pixels(const excitation_body &body, int64_t sample, int channel,
                                  int first, int last, int step, float (&sum)[LANES])
{
    constexpr int TURNS = READ::TURNS;
#pragma unroll 1
    for (int j = first; j < last; j += TURNS * step) {
        typename READ::eight raw[TURNS];
        float                v[LANES];
#pragma unroll
        for (int k = 0; k < TURNS; k++) { /* the last again instead of a condition */
            const int at = j + k * step;
            raw[k] = READ::pixel(body, sample, channel, at < last ? at : last - 1);
        }
#pragma unroll
        for (int k = 0; k < TURNS; k++) {
            if (j + k * step >= last)
                break;
            raw[k].to(v);
#pragma unroll
            for (int e = 0; e < LANES; e++)
                sum[e] += v[e];
        }
    }
}

/* Threads lie as rows of `abreast` side by side, one for eight channels. */
struct place_of_thread {
    int            unit, row, rows;
    __device__ int channel(const excitation_body &body) const
    {
        return (blockIdx.y * body.p.abreast + unit) * LANES;
    }
};

struct alignas(16) chunk {
    float of[CHUNK];
};

/* What the part of the pixels adds to the means of SAMPLES. */
template <class READ, int SAMPLES>
__device__ inline void take_means(const excitation_body &body, int64_t sample, place_of_thread t,
                                  chunk *mean)
{
    __shared__ chunk room[MANY_WARPS][SAMPLES];
    const int        warp = threadIdx.x / WARP, abreast = body.p.abreast;
    const int64_t    pixels = body.p.maps.pixels;
    const int        first = (int)(pixels * blockIdx.z / body.p.splits),
              last = (int)(pixels * (blockIdx.z + 1) / body.p.splits);
#pragma unroll
    for (int s = 0; s < SAMPLES; s++) {
        float sum[LANES] = {};
        if (t.channel(body) < (int)body.p.layer[0].length && sample + s < body.p.n)
            sum_pixels<READ>(body, sample + s, t.channel(body), first + t.row, last, t.rows, sum);
        for (int step = WARP / 2; step >= abreast; step /= 2)
#pragma unroll
            for (int e = 0; e < LANES; e++)
                sum[e] += shuffle(sum[e], step);
        if (threadIdx.x % WARP < (unsigned)abreast)
            put8(room[warp][s].of, SAC_F32, t.unit * LANES, sum);
    }
    __syncthreads();
    if (threadIdx.x < SAMPLES * CHUNK && threadIdx.x % CHUNK < (unsigned)abreast * LANES) {
        float sum = 0;
#pragma unroll
        for (int k = 0; k < MANY_WARPS; k++)
            sum += room[k][threadIdx.x / CHUNK].of[threadIdx.x % CHUNK];
        mean[threadIdx.x / CHUNK].of[threadIdx.x % CHUNK] = sum / (float)pixels;
    }
    __syncthreads();
}

/* blockIdx is a group of samples, a chunk and a part of the pixels. */
template <class READ, int SAMPLES>
__global__ void __launch_bounds__(MANY, SAMPLES == 1 ? 4 : 2)
    squeeze_kernel(const __grid_constant__ excitation_body body)
{
    early_begin();
    constexpr int         TURNS = READ::TURNS;
    __shared__ chunk      mean[SAMPLES];
    const int             abreast = body.p.abreast, tid = (int)threadIdx.x;
    const place_of_thread t = {tid & (abreast - 1), tid / abreast, MANY / abreast};
    const int             rows = (int)body.p.layer[0].rows, parts = body.p.chunks * body.p.splits,
              channel = t.channel(body);
    const bool           in = channel < (int)body.p.layer[0].length;
    const int64_t        sample = (int64_t)blockIdx.x * SAMPLES;
    typename READ::eight raw[TURNS];
    const auto           fetch = [&](int first) {
#pragma unroll
        for (int k = 0; k < TURNS; k++) {
            const int row = first + k * t.rows + t.row;
            if (in)
                raw[k] = READ::weights(body, 0, row < rows ? row : rows - 1, channel);
            else
                raw[k].fill(0);
        }
    };
    fetch(0); /* weights are under way while means are made */
    take_means<READ, SAMPLES>(body, sample, t, mean);
    float x[SAMPLES][LANES];
#pragma unroll
    for (int s = 0; s < SAMPLES; s++)
        get8(mean[s].of, SAC_F32, t.unit * LANES, x[s]);
    float *to = body.parts + (sample * parts + blockIdx.y * body.p.splits + blockIdx.z) * rows;
#pragma unroll 1
    for (int first = 0; first < rows; first += TURNS * t.rows) {
        if (first > 0)
            fetch(first);
#pragma unroll
        for (int k = 0; k < TURNS; k++) {
            const int row = first + k * t.rows + t.row;
            float     w[LANES];
            raw[k].to(w);
#pragma unroll
            for (int s = 0; s < SAMPLES; s++) {
                float sum = product_of(w, x[s]);
                for (int step = abreast / 2; step > 0; step /= 2)
                    sum += shuffle(sum, step);
                if (t.unit == 0 && row < rows && sample + s < body.p.n)
                    to[(int64_t)s * parts * rows + row] = sum;
            }
        }
    }
}

/* ---- the first layer's numbers, and some of the second's ---- */

/* The sum of parts first, first + step, ..., which lie `rows` apart. */
__device__ inline float sum_parts(const float *from, int first, int parts, int step, int rows)
{
    constexpr int TURNS = 8;
    float         sum = 0;
#pragma unroll 1
    for (int j = first; j < parts; j += TURNS * step) {
        float v[TURNS];
#pragma unroll
        for (int k = 0; k < TURNS; k++)
            v[k] = j + k * step < parts ? from[(int64_t)(j + k * step) * rows] : 0.0f;
#pragma unroll
        for (int k = 0; k < TURNS; k++)
            sum += v[k];
    }
    return sum;
}

/* Those of a sample to h, which has zeros behind them to a multiple of eight. Threads lie as groups
 * of `abreast`, a power of two, one for each number; a group takes every groups-th part. */
__device__ inline void take_hidden(const excitation_body &body, int64_t sample, int abreast,
                                   float *h)
{
    __shared__ float room[MANY];
    const int        rows = (int)body.p.layer[0].rows, parts = body.p.chunks * body.p.splits,
              tid = (int)threadIdx.x, own = tid & (abreast - 1), groups = MANY / abreast,
              width = abreast < WARP ? WARP : abreast;
    const float *from = body.parts + sample * parts * rows;
    for (int first = 0; first < rows; first += abreast) {
        const int   row = first + own;
        const bool  in = row < rows;
        const float bias = in ? body.bias_of(0, row) : 0.0f;
        float       sum = in ? sum_parts(from + row, tid / abreast, parts, groups, rows) : 0.0f;
        for (int step = WARP / 2; step >= abreast; step /= 2)
            sum += shuffle(sum, step);
        __syncthreads(); /* nobody reads what was there before */
        room[tid] = sum;
        __syncthreads();
        if (tid < abreast && in) {
            for (int k = width; k < MANY; k += width)
                sum += room[tid + k];
            h[row] = body.finished(0, sum + bias);
        }
    }
    if (tid < (-rows & (LANES - 1)))
        h[rows + tid] = 0;
}

/* blockIdx is a group of samples and a part of the rows. */
template <class READ, int SAMPLES>
__global__ void __launch_bounds__(MANY, 2)
    excite_kernel(const __grid_constant__ excitation_body body, int abreast)
{
    early_begin();
    constexpr int TURNS = READ::TURNS;
    CUDA_SHARED_ROOM(uint4, numbers);
    float *const h = (float *)numbers;
    const int    hidden = (int)body.p.layer[1].length, rows = (int)body.p.layer[1].rows,
              pitch = (hidden + LANES - 1) / LANES * LANES, lanes = body.p.lanes,
              lane = (int)threadIdx.x & (lanes - 1), step = MANY / lanes,
              begin = (int)blockIdx.y * body.p.turns * step,
              end = min(rows, begin + body.p.turns * step);
    const int64_t        sample = (int64_t)blockIdx.x * SAMPLES;
    typename READ::eight raw[TURNS];
    float                bias[TURNS];
    const auto           row_of = [&](int first, int k) {
        return first + k * step + (int)threadIdx.x / lanes;
    };
    const auto fetch = [&](int first, int at) {
#pragma unroll
        for (int k = 0; k < TURNS; k++)
            if (at < hidden)
                raw[k] = READ::weights(body, 1, min(row_of(first, k), rows - 1), at);
            else
                raw[k].fill(0);
    };
    const auto fetch_bias = [&](int first) {
#pragma unroll
        for (int k = 0; k < TURNS; k++)
            bias[k] = body.bias_of(1, min(row_of(first, k), rows - 1));
    };
    fetch(begin, lane * LANES); /* weights are under way while parts are summed up */
    fetch_bias(begin);
#pragma unroll 1
    for (int s = 0; s < SAMPLES && sample + s < body.p.n; s++)
        take_hidden(body, sample + s, abreast, h + s * pitch);
    __syncthreads();
#pragma unroll 1
    for (int first = begin; first < end; first += TURNS * step) {
        float sum[TURNS][SAMPLES] = {};
        if (first > begin)
            fetch_bias(first);
#pragma unroll 1
        for (int at = lane * LANES; at < pitch; at += lanes * LANES) {
            if (first > begin || at >= lanes * LANES)
                fetch(first, at);
#pragma unroll
            for (int s = 0; s < SAMPLES; s++) {
                float x[LANES], w[LANES];
                get8(h, SAC_F32, s * pitch + at, x);
#pragma unroll
                for (int k = 0; k < TURNS; k++) {
                    raw[k].to(w);
                    sum[k][s] += product_of(w, x);
                }
            }
        }
#pragma unroll
        for (int k = 0; k < TURNS; k++)
#pragma unroll
            for (int s = 0; s < SAMPLES; s++) {
                for (int by = lanes / 2; by > 0; by /= 2)
                    sum[k][s] += shuffle(sum[k][s], by);
                const int row = row_of(first, k);
                if (lane == 0 && row < end && sample + s < body.p.n)
                    body.put_gate(sample + s, row, body.finished(1, sum[k][s] + bias[k]));
            }
    }
}

/* ---- launching ---- */

unsigned groups_of(const excitation_body &body, int which)
{
    const int64_t each = body.p.layer[which].together;
    return (unsigned)((body.p.n + each - 1) / each);
}

template <class READ, int SAMPLES> int squeeze(const excitation_body &body, cudaStream_t stream)
{
    const ops_excitation &p = body.p;
    const dim3            grid(groups_of(body, 0), (unsigned)p.chunks, (unsigned)p.splits);
    CUDA_LAUNCH_ALONE((squeeze_kernel<READ, SAMPLES>), grid, MANY, 0, stream, body);
    return (int)cudaGetLastError();
}

template <class READ, int SAMPLES> int excite(const excitation_body &body, cudaStream_t stream)
{
    const ops_excitation &p = body.p;
    const int64_t         hidden = p.layer[1].length, rows = MANY / p.lanes * p.turns;
    const size_t          room = (size_t)((hidden + LANES - 1) / LANES * LANES) * sizeof(float);
    const dim3            grid(groups_of(body, 1), (unsigned)((p.layer[1].rows + rows - 1) / rows));
    int                   abreast = 1;
    while (abreast < hidden && abreast < MANY)
        abreast *= 2;
    CUDA_LAUNCH_ALONE((excite_kernel<READ, SAMPLES>), grid, MANY, SAMPLES * room, stream, body,
                      abreast);
    return (int)cudaGetLastError();
}

template <class READ> int squeeze_some(const excitation_body &body, cudaStream_t stream)
{
    return body.p.layer[0].together == 1 ? squeeze<READ, 1>(body, stream)
                                         : squeeze<READ, OPS_EXCITATION_TOGETHER>(body, stream);
}

template <class READ> int excite_some(const excitation_body &body, cudaStream_t stream)
{
    return body.p.layer[1].together == 1 ? excite<READ, 1>(body, stream)
                                         : excite<READ, OPS_EXCITATION_TOGETHER>(body, stream);
}

/* What is not at addresses of 16 bytes is read one by one, by a block for each sample. */
int run(excitation_body &body, void *stream_)
{
    cudaStream_t stream = (cudaStream_t)stream_;
    const bool   first = body.p.vector[0] && fits16(body.in) && fits16(body.w[0]),
               second = body.p.vector[1] && fits16(body.w[1]);
    body.p.layer[0].together = first ? body.p.layer[0].together : 1;
    body.p.layer[1].together = second ? body.p.layer[1].together : 1;
    const int res = !first                      ? squeeze<one_by_one, 1>(body, stream)
                    : body.p.in_type == SAC_F16 ? squeeze_some<together<uint16_t>>(body, stream)
                                                : squeeze_some<together<float>>(body, stream);
    return res                                 ? res
           : !second                           ? excite<one_by_one, 1>(body, stream)
           : body.p.layer[1].w_type == SAC_F16 ? excite_some<together<uint16_t>>(body, stream)
                                               : excite_some<together<float>>(body, stream);
}

#else

float mean_of(const excitation_body &body, int64_t sample, int64_t channel)
{
    float sum = 0;
    for (int64_t j = 0; j < body.p.maps.pixels; j++)
        sum += body.pixel_of(sample, channel, j);
    return sum / (float)body.p.maps.pixels;
}

int run(excitation_body &body, void *)
{
    float                   x[SAC_EXCITATION_CHANNELS_MAX], h[SAC_EXCITATION_HIDDEN_MAX];
    const struct ops_layer *l = body.p.layer;
    for (int64_t n = 0; n < body.p.n; n++) {
        for (int64_t i = 0; i < l[0].length; i++)
            x[i] = mean_of(body, n, i);
        for (int which = 0; which < 2; which++)
            for (int64_t row = 0; row < l[which].rows; row++) {
                float sum = body.bias_of(which, row);
                for (int64_t k = 0; k < l[which].length; k++)
                    sum += body.weight_of(which, row, k) * (which ? h : x)[k];
                const float v = body.finished(which, sum);
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
    excitation_body body = {
        *(const struct ops_excitation *)params, ports->in[0],  {ports->in[1], ports->in[3]},
        {ports->in[2], ports->in[4]},           ports->out[0], (float *)ports->scratch};
    return body.p.n > 0 ? run(body, stream) : 0;
}
