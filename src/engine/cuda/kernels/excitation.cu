/* SPDX-License-Identifier: Apache-2.0 */
/* Excitation. The blocks of a sample sum up its pixels between them, each then has some rows of the
 * first layer, and some of the second. What they tell each other twice lies in the shared memory of
 * a cluster: the gates of a mobile network's block are one launch, where pooling and two layers
 * were three to four. Without clusters (before compute capability 9.0, or where a layer's numbers
 * do not fit) each of the three is a launch, and it lies in scratch. */
#include "engine/cuda/kernels/excitation.h"

#include "engine/cuda/kernels/functions.cuh"
#include "engine/cuda/kernels/team.cuh"
#include "engine/ops/fused_kinds.h"

#ifdef __CUDACC__
#include "engine/cuda/kernels/cluster.cuh"
#endif

using namespace ops;

namespace
{

/* float32 values lie as these two. */
OPS_BODY float number_of(const void *p, int type, int64_t at)
{
    return type == SAC_F16 ? get_float(p, SAC_F16, at) : get_float(p, SAC_F32, at);
}

/* A row of weights, and which of the threads that share it this one is. */
struct stretch {
    int from, length, lane, lanes;
};

/* What a thread adds to its row's sum, by loads that are all under way before the first is waited
 * for: it has a few, and each by itself would take as long as all of them. */
template <int TYPE> OPS_APART float product_by_eights(const void *w, const float *x, stretch s)
{
    constexpr int TURNS = TYPE == SAC_F16 ? 8 : 4;
    const int     step = s.lanes * LANES;
    float         sum = 0;
    for (int k = s.lane * LANES; k < s.length; k += TURNS * step) {
        raw8 raw[TURNS];
        OPS_UNROLL
        for (int i = 0; i < TURNS; i++) /* the last again instead of a condition */
            raw[i] = load8(w, TYPE,
                           s.from + (k + i * step < s.length ? k + i * step : s.length - LANES));
        OPS_UNROLL
        for (int i = 0; i < TURNS; i++) {
            float v[LANES], own[LANES];
            if (k + i * step >= s.length)
                break;
            floats_of(raw[i], TYPE, v);
            get8(x, SAC_F32, k + i * step, own); /* one by one, a warp's would meet in few banks */
            OPS_UNROLL
            for (int j = 0; j < LANES; j++)
                sum += v[j] * own[j];
        }
    }
    return sum;
}

OPS_APART float product_by_ones(const void *w, int type, const float *x, stretch s)
{
    float sum = 0;
    for (int k = s.lane; k < s.length; k += s.lanes)
        sum += number_of(w, type, s.from + k) * x[k];
    return sum;
}

struct excitation_body {
    struct ops_excitation p;
    const void           *in, *w[2], *bias[2];
    void                 *out;
    float                *sums, *between; /* scratch */
    bool                  eights[2], vector;

    OPS_BODY float part_of_row(int which, const float *x, int64_t row, int lane) const
    {
        const struct ops_layer &l = p.layer[which];
        const stretch           s = {(int)row * (int)l.length, (int)l.length, lane, l.lanes};
        if (!eights[which])
            return product_by_ones(w[which], l.w_type, x, s);
        return l.w_type == SAC_F16 ? product_by_eights<SAC_F16>(w[which], x, s)
                                   : product_by_eights<SAC_F32>(w[which], x, s);
    }

    OPS_BODY float bias_of(int which, int64_t row) const
    {
        return number_of(bias[which], p.layer[which].bias_type, row);
    }
    OPS_BODY float finished(int which, float sum) const
    {
        const struct ops_layer &l = p.layer[which];
        return activated(l.fn, sum, (float)l.a, (float)l.b);
    }

    /* Where the part of a block begins, of so many rows or pixels. */
    OPS_BODY int part_begin(int n, int part) const
    {
        return (int)((int64_t)n * part >> p.shift);
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

constexpr int MANY = OPS_EXCITATION_THREADS;
enum { MEANS = 1, FIRST = 2, SECOND = 4 };

/* ---- sums of a part of the pixels ---- */

/* Threads lie as rows of `units` side by side, a unit being a channel or eight, and a row takes
 * every rows-th pixel; more units than threads take turns in one row. */
struct rows_of_threads {
    int units, rows;
};

__host__ __device__ inline rows_of_threads rows_of(const excitation_body &body)
{
    const int channels = (int)body.p.layer[0].length;
    const int units = body.vector ? channels / LANES : channels;
    return {units, units < MANY ? MANY / units : 1};
}

/* Pixels first, first + step, ... below last of eight channels, `pixel` apart. */
template <class T>
__device__ __noinline__ void sum_eights(const T *in, int64_t pixel, int first, int last, int step,
                                        float *to)
{
    constexpr int TURNS = sizeof(T) == 2 ? 8 : 4, TYPE = sizeof(T) == 2 ? SAC_F16 : SAC_F32;
    float         total[LANES] = {};
    for (int j = first; j < last; j += TURNS * step) {
        raw8  raw[TURNS];
        float some[LANES] = {}, v[LANES];
#pragma unroll
        for (int k = 0; k < TURNS; k++) { /* the last again instead of a condition */
            const int at = j + k * step;
            raw[k] = load8(in, TYPE, (at < last ? at : last - 1) * pixel);
        }
#pragma unroll
        for (int k = 0; k < TURNS; k++) {
            if (j + k * step >= last)
                break;
            floats_of(raw[k], TYPE, v);
#pragma unroll
            for (int e = 0; e < LANES; e++)
                some[e] += v[e];
        }
#pragma unroll
        for (int e = 0; e < LANES; e++)
            total[e] += some[e];
    }
    put8(to, SAC_F32, 0, total);
}

__device__ void sum_unit(const excitation_body &body, int64_t sample, int unit, int first, int last,
                         int step, float *to)
{
    const int64_t from = sample * body.p.maps.sample + unit * LANES;
    if (!body.vector) {
        float sum = 0;
        for (int j = first; j < last; j += step)
            sum += body.pixel_of(sample, unit, j);
        to[unit] = sum;
    } else if (body.p.in_type == SAC_F16)
        sum_eights((const uint16_t *)body.in + from, body.p.maps.pixel, first, last, step,
                   to + unit * LANES);
    else
        sum_eights((const float *)body.in + from, body.p.maps.pixel, first, last, step,
                   to + unit * LANES);
}

/* room: [rows][channels]; the sums are its first row. */
__device__ void sum_part(const excitation_body &body, int64_t sample, int part, float *room)
{
    const rows_of_threads t = rows_of(body);
    const int             channels = (int)body.p.layer[0].length, row = threadIdx.x / t.units;
    const int             first = body.part_begin((int)body.p.maps.pixels, part),
              last = body.part_begin((int)body.p.maps.pixels, part + 1);
    if (row < t.rows)
        for (int u = threadIdx.x % t.units; u < t.units; u += MANY)
            sum_unit(body, sample, u, first + row, last, t.rows, room + row * channels);
    for (int rows = t.rows; rows > 1;) {
        const int kept = (rows + 1) / 2;
        __syncthreads();
        for (int i = threadIdx.x; i < (rows - kept) * channels; i += MANY)
            room[i] += room[i + kept * channels];
        rows = kept;
    }
    __syncthreads();
}

/* ---- a part of a layer's rows ---- */

/* put(row, number), by one thread of those that share a row. */
template <class PUT>
__device__ void layer(const excitation_body &body, int which, const float *x, int part,
                      const PUT &put)
{
    const struct ops_layer &l = body.p.layer[which];
    const int               lane = threadIdx.x & (l.lanes - 1), groups = MANY / l.lanes;
    const int               first = body.part_begin((int)l.rows, part),
              end = body.part_begin((int)l.rows, part + 1);
#pragma unroll 1
    for (int at = first; at < end; at += groups) { /* all threads of a warp take each turn */
        const int   row = at + threadIdx.x / l.lanes;
        const float bias = row < end ? body.bias_of(which, row) : 0.0f;
        float       sum = row < end ? body.part_of_row(which, x, row, lane) : 0.0f;
        for (int step = l.lanes / 2; step > 0; step /= 2)
            sum += shuffle(sum, step);
        if (row < end && lane == 0)
            put(row, body.finished(which, sum + bias));
    }
}

/* ---- all of it ---- */

__host__ __device__ inline int64_t up4(int64_t n) /* so that numbers begin at 16 bytes */
{
    return (n + 3) / 4 * 4;
}

/* Where the blocks of a sample tell each other what: shared memory of a cluster. */
struct in_cluster {
    float                  *sums, *h;
    int                     parts;
    __device__ const float *sums_of(int part) const
    {
        return cluster::of(sums, part);
    }
    __device__ void tell(int64_t row, float v) const
    {
        for (int k = 0; k < parts; k++)
            cluster::of(h, k)[row] = v;
    }
};

/* x: the channels' means, from what the blocks summed up, or as they come. */
template <class SUMS_OF>
__device__ void take_means(const excitation_body &body, int64_t sample, int parts,
                           const SUMS_OF &sums_of, float *x)
{
    const int64_t channels = body.p.layer[0].length;
    for (int64_t i = threadIdx.x; i < channels; i += MANY) {
        float v[OPS_EXCITATION_BLOCKS_MAX], sum = 0;
        if (body.p.maps.pixels == 1) {
            x[i] = body.pixel_of(sample, i, 0);
            continue;
        }
#pragma unroll
        for (int k = 0; k < OPS_EXCITATION_BLOCKS_MAX; k++) /* all under way at once */
            v[k] = k < parts ? sums_of(k)[i] : 0;
#pragma unroll
        for (int k = 0; k < OPS_EXCITATION_BLOCKS_MAX; k++)
            sum += v[k];
        x[i] = sum / (float)body.p.maps.pixels;
    }
    __syncthreads();
}

__global__ void __launch_bounds__(MANY, 2)
    cluster_kernel(const __grid_constant__ excitation_body body)
{
    early_begin();
    extern __shared__ __align__(16) float room[];
    const int     parts = 1 << body.p.shift, part = blockIdx.x & (parts - 1);
    const int64_t sample = blockIdx.x >> body.p.shift;
    const int64_t channels = body.p.layer[0].length, hidden = body.p.layer[0].rows;
    in_cluster    c;
    float        *x = room + up4(hidden);
    c.parts = parts;
    c.h = room;
    c.sums = x + up4(channels); /* and the rows that are summed up */
    if (body.p.maps.pixels > 1)
        sum_part(body, sample, part, c.sums);
    cluster::sync(); /* all of them have begun, too */
    take_means(
        body, sample, parts, [&](int k) { return c.sums_of(k); }, x);
    layer(body, 0, x, part, [&](int64_t row, float v) { c.tell(row, v); });
    cluster::sync(); /* no block reads another's memory from here on, so each may end */
    layer(body, 1, c.h, part, [&](int64_t row, float v) { body.put_gate(sample, row, v); });
}

/* One of MEANS, FIRST, SECOND; or all where a sample has one block. */
__global__ void __launch_bounds__(MANY, 2)
    step_kernel(const __grid_constant__ excitation_body body, int steps)
{
    early_begin();
    extern __shared__ __align__(16) float room[];
    const int     parts = 1 << body.p.shift, part = blockIdx.x & (parts - 1);
    const int64_t sample = blockIdx.x >> body.p.shift;
    const int64_t channels = body.p.layer[0].length, hidden = body.p.layer[0].rows;
    float *sums = body.sums + sample * parts * channels, *between = body.between + sample * hidden;
    if (steps & MEANS) {
        sum_part(body, sample, part, room);
        for (int64_t i = threadIdx.x; i < channels; i += MANY)
            sums[part * channels + i] = room[i];
        __syncthreads();
    }
    if (steps & FIRST) {
        take_means(
            body, sample, parts, [&](int k) { return sums + k * channels; }, room);
        layer(body, 0, room, part, [&](int64_t row, float v) { between[row] = v; });
        __syncthreads();
    }
    if (steps & SECOND) {
        for (int64_t i = threadIdx.x; i < hidden; i += MANY)
            room[i] = between[i];
        __syncthreads();
        layer(body, 1, room, part, [&](int64_t row, float v) { body.put_gate(sample, row, v); });
    }
}

constexpr size_t ROOM_MAX = 48 << 10; /* of a block that asks for no more */

size_t tree_bytes(const excitation_body &body)
{
    return (size_t)(rows_of(body).rows * body.p.layer[0].length) * sizeof(float);
}

size_t cluster_bytes(const excitation_body &body)
{
    const size_t numbers = up4(body.p.layer[0].length) + up4(body.p.layer[0].rows);
    return numbers * sizeof(float) + (body.p.maps.pixels > 1 ? tree_bytes(body) : 0);
}

int queue_cluster(const excitation_body &body, cudaStream_t stream)
{
    CUDA_LAUNCH_CLUSTER(cluster_kernel, (unsigned)(body.p.n << body.p.shift), MANY,
                        cluster_bytes(body), 1u << body.p.shift, stream, body);
    return (int)cudaGetLastError();
}

int queue_steps(const excitation_body &body, int steps, cudaStream_t stream)
{
    const struct ops_layer &l = body.p.layer[0];
    size_t                  bytes = (size_t)(steps & SECOND ? l.rows : 0) * sizeof(float);
    if (steps & FIRST && (size_t)l.length * sizeof(float) > bytes)
        bytes = (size_t)l.length * sizeof(float);
    if (steps & MEANS && tree_bytes(body) > bytes)
        bytes = tree_bytes(body);
    CUDA_LAUNCH_ALONE(step_kernel, (unsigned)(body.p.n << body.p.shift), MANY, bytes, stream, body,
                      steps);
    return (int)cudaGetLastError();
}

int run(const excitation_body &body, void *stream_)
{
    cudaStream_t stream = (cudaStream_t)stream_;
    const int    means = body.p.maps.pixels > 1 ? MEANS : 0;
    if (has_clusters() && cluster_bytes(body) <= ROOM_MAX)
        return queue_cluster(body, stream);
    if (body.p.shift == 0)
        return queue_steps(body, means | FIRST | SECOND, stream);
    int res = means ? queue_steps(body, MEANS, stream) : 0;
    if (!res)
        res = queue_steps(body, FIRST, stream);
    return res ? res : queue_steps(body, SECOND, stream);
}

#else

float mean_of(const excitation_body &body, int64_t sample, int64_t channel)
{
    float sum = 0;
    for (int64_t j = 0; j < body.p.maps.pixels; j++)
        sum += body.pixel_of(sample, channel, j);
    return sum / (float)body.p.maps.pixels;
}

int run(const excitation_body &body, void *)
{
    alignas(16) float       x[SAC_EXCITATION_CHANNELS_MAX], h[SAC_EXCITATION_HIDDEN_MAX];
    const struct ops_layer *l = body.p.layer;
    for (int64_t n = 0; n < body.p.n; n++) {
        for (int64_t i = 0; i < l[0].length; i++)
            x[i] = mean_of(body, n, i);
        for (int which = 0; which < 2; which++)
            for (int64_t row = 0; row < l[which].rows; row++) {
                float sum = 0;
                for (int lane = 0; lane < l[which].lanes; lane++)
                    sum += body.part_of_row(which, which ? h : x, row, lane);
                const float v = body.finished(which, sum + body.bias_of(which, row));
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
    excitation_body         body = {*(const struct ops_excitation *)params,
                                    ports->in[0],
                                    {ports->in[1], ports->in[3]},
                                    {ports->in[2], ports->in[4]},
                                    ports->out[0],
                                    NULL,
                                    (float *)ports->scratch,
                                    {},
                                    false};
    const struct ops_layer *l = body.p.layer;
    body.sums = body.between + body.p.n * l[0].rows;
    for (int i = 0; i < 2; i++)
        body.eights[i] = l[i].length % LANES == 0 && fits16(body.w[i]);
    body.vector = body.p.vector && fits16(body.in);
    return body.p.n > 0 ? run(body, stream) : 0;
}
