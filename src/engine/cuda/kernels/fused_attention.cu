/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/kernels/fused_attention.h"
#include "engine/cuda/kernels/team.cuh"

using namespace ops;

namespace
{

/* ---- any dtype: a team for a few queries of one head ---- */

struct by_type {
    static OPS_BODY float get(const void *p, int type, int64_t i)
    {
        return get_float(p, type, i);
    }
};
struct whole {
    static OPS_BODY float get(const void *p, int, int64_t i)
    {
        return ((const float *)p)[i];
    }
};

template <class READ> struct group_body {
    static constexpr int       GROUP = OPS_ATTENTION_GROUP;
    struct ops_fused_attention p;
    const void                *q, *k, *v, *mask;
    void                      *y;
    float                     *room;  /* [at_once][GROUP][keys] */
    int64_t                    first; /* group of this launch */

    static OPS_BODY int64_t start_of(const ops_head_view &view, int64_t batch, int64_t head)
    {
        return view.offset + batch * view.step[0] + head * view.step[1];
    }

    OPS_BODY float bias_at(int64_t batch, int64_t head, int64_t i, int64_t j) const
    {
        return get_float(mask, p.mask_type,
                         batch % p.period * p.mask_step[0] + head * p.mask_step[1] +
                             i * p.mask_step[2] + j * p.mask_step[3]);
    }

    /* The scores of key j; queries past the last repeat it. */
    OPS_BODY void scores_of(const int64_t (&query)[GROUP], int64_t key, float (&s)[GROUP]) const
    {
        OPS_UNROLL
        for (int n = 0; n < GROUP; n++)
            s[n] = 0;
        for (int64_t d = 0; d < p.size; d++) {
            const float x = READ::get(k, p.k_type, key + d * p.k.step[3]);
            OPS_UNROLL
            for (int n = 0; n < GROUP; n++)
                s[n] += READ::get(q, p.q_type, query[n] + d * p.q.step[3]) * x;
        }
    }

    template <class TEAM>
    OPS_BODY void mix(const float *score, const float (&share)[GROUP], int64_t values,
                      int64_t result, int64_t i, const TEAM &team) const
    {
        for (int64_t d = team.lane(); d < p.v_size; d += team.lanes()) {
            float sum[GROUP] = {};
            for (int64_t j = 0; j < p.keys; j++) {
                const float x = READ::get(v, p.v_type, values + j * p.v.step[2] + d * p.v.step[3]);
                OPS_UNROLL
                for (int n = 0; n < GROUP; n++)
                    sum[n] += score[n * p.keys + j] * x;
            }
            OPS_UNROLL
            for (int n = 0; n < GROUP; n++)
                if (i + n < p.queries)
                    put_float(y, p.out_type, result + (i + n) * p.y.step[2] + d * p.y.step[3],
                              sum[n] * share[n]);
        }
    }

    template <class TEAM> OPS_BODY void operator()(int64_t row, int, const TEAM &team) const
    {
        const int64_t groups = (p.queries + GROUP - 1) / GROUP, g = first + row,
                      i = g % groups * GROUP, head = g / groups % p.heads,
                      batch = g / groups / p.heads;
        float  *score = room + row * GROUP * p.keys;
        int64_t query[GROUP];
        float   max[GROUP], share[GROUP];
        OPS_UNROLL
        for (int n = 0; n < GROUP; n++) {
            const int64_t at = i + n < p.queries ? i + n : p.queries - 1;
            query[n] = start_of(p.q, batch, head) + at * p.q.step[2];
            max[n] = -INFINITY;
        }
        const int64_t keys = start_of(p.k, batch, head);
        for (int64_t j = team.lane(); j < p.keys; j += team.lanes()) {
            float s[GROUP];
            scores_of(query, keys + j * p.k.step[2], s);
            OPS_UNROLL
            for (int n = 0; n < GROUP; n++) {
                s[n] *= p.scale;
                if (p.period)
                    s[n] += bias_at(batch, head, i + n < p.queries ? i + n : p.queries - 1, j);
                score[n * p.keys + j] = s[n];
                max[n] = larger<float>()(max[n], s[n]);
            }
        }
        OPS_UNROLL
        for (int n = 0; n < GROUP; n++) {
            float sum = 0;
            max[n] = team.all(max[n], larger<float>());
            for (int64_t j = team.lane(); j < p.keys; j += team.lanes()) {
                float &s = score[n * p.keys + j];
                sum += s = max[n] == -INFINITY ? 0 : expf(s - max[n]);
            }
            sum = team.all(sum, add<float>());
            share[n] = sum != 0 ? 1 / sum : 0;
        }
        team.sync();
        mix(score, share, start_of(p.v, batch, head), start_of(p.y, batch, head), i, team);
    }
};

/* As many groups at a time as have room for their scores. */
template <class READ>
int by_groups(const struct ops_fused_attention &p, const struct ops_ports *ports, void *stream)
{
    const int64_t groups =
        p.batch * p.heads * ((p.queries + OPS_ATTENTION_GROUP - 1) / OPS_ATTENTION_GROUP);
    int res = 0;
    for (int64_t first = 0; first < groups && res == 0; first += p.at_once) {
        const group_body<READ> body = {p,
                                       ports->in[0],
                                       ports->in[1],
                                       ports->in[2],
                                       ports->in[3],
                                       ports->out[0],
                                       (float *)ports->scratch,
                                       first};
        res = lines<WARPS>(body, OPS_TEAM_WARP,
                           groups - first < p.at_once ? groups - first : p.at_once, 1, stream);
    }
    return res;
}

/* ---- float16: tiles on the tensor cores ---- */

#ifdef __CUDACC__

/* As FlashAttention-2 (Dao, 2023) has it: a warp holds 16 queries and their sums in registers, and
 * keys and values come through shared memory in tiles, the next one fetched ahead. A row's greatest
 * score so far scales what was summed up when it grows. */
enum { TILE = 64 /* keys of a turn */, WARP_QUERIES = 16 };

template <int SIZE, int WARPS_> struct tile_shape {
    static constexpr int D = SIZE, W = WARPS_, QUERIES = W * WARP_QUERIES, THREADS_ = W * 32;
    static constexpr int PITCH = D + 8; /* eight rows of 16 bytes begin in different banks */
    static constexpr int HALVES = TILE * PITCH, SHARED = 4 * HALVES * 2; /* of two turns */
    static_assert(QUERIES <= TILE, "queries wait in the place of a tile of keys");
};

struct tile_params {
    struct ops_fused_attention p;
    const uint16_t            *q, *k, *v;
    const void                *mask;
    uint16_t                  *y;
    int                        tiles; /* of queries */
};

template <int BYTES>
__device__ __forceinline__ void fetch(uint16_t *to, const uint16_t *from, bool in)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    const int      bytes = in ? BYTES : 0; /* of which none are read: zeros */
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(BYTES),
                 "r"(bytes));
}

/* Rows first.. of a head to shared memory, zeros where there are none. */
template <class S>
__device__ __forceinline__ void fetch_rows(uint16_t *to, const uint16_t *head, int64_t step,
                                           int first, int rows, int count, int size, int piece)
{
    constexpr int UNITS = S::D / 8;
    for (int i = threadIdx.x; i < rows * UNITS; i += S::THREADS_) {
        const int       row = i / UNITS, d = i % UNITS * 8;
        const bool      real = first + row < count;
        uint16_t       *at = to + row * S::PITCH + d;
        const uint16_t *from = head + (real ? (first + row) * step : 0);
        if (piece == 8) {
            const bool in = real && d < size;
            fetch<16>(at, from + (in ? d : 0), in);
            continue;
        }
#pragma unroll
        for (int k = 0; k < 8; k += 4) {
            const bool in = real && d + k < size;
            fetch<8>(at + k, from + (in ? d + k : 0), in);
        }
    }
}

__device__ __forceinline__ void load(uint32_t (&v)[4], const uint16_t *from)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(from);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "r"(at));
}

__device__ __forceinline__ void load_turned(uint32_t (&v)[4], const uint16_t *from)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(from);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "r"(at));
}

__device__ __forceinline__ void multiply_tile(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                              uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ uint32_t pair_of(float low, float high)
{
    const __half2 h = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t *>(&h);
}

/* What a warp keeps: of its queries, and of rows g and g + 8 of them (g the lane's group of four).
 */
template <class S> struct tile_state {
    uint32_t q[S::D / 16][4];
    float    out[S::D / 8][4];
    float    max[2], sum[2];
};

/* The scores of a tile: c[j] has rows g, g + 8 by keys 8 j + 2 t, + 1. */
template <class S>
__device__ __forceinline__ void tile_scores(const tile_state<S> &s, const uint16_t *keys,
                                            float (&c)[TILE / 8][4])
{
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int j = 0; j < TILE / 8; j += 2) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            c[j][i] = c[j + 1][i] = 0;
#pragma unroll
        for (int k = 0; k < S::D / 16; k++) {
            uint32_t b[4];
            load(b, keys + (j * 8 + (lane & 7) + (lane >> 4) * 8) * S::PITCH + k * 16 +
                        (lane >> 3 & 1) * 8);
            multiply_tile(c[j], s.q[k], b[0], b[1]);
            multiply_tile(c[j + 1], s.q[k], b[2], b[3]);
        }
    }
}

/* Adds the mask. Of a known type, and without a question for each key, so that all loads are under
 * way at once. */
template <int TYPE>
__device__ __forceinline__ void tile_mask(const tile_params &a, int first, const int64_t (&rows)[2],
                                          float (&c)[TILE / 8][4])
{
    const int last = (int)a.p.keys - 1, t = threadIdx.x & 3;
#pragma unroll
    for (int j = 0; j < TILE / 8; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int key = first + j * 8 + 2 * t + i % 2;
            c[j][i] +=
                get_float(a.mask, TYPE, rows[i / 2] + (key < last ? key : last) * a.p.mask_step[3]);
        }
}

/* Scaled, with the mask, in powers of two; keys that there are not get no share. rows: the mask's
 * of queries g and g + 8. */
__device__ __forceinline__ void tile_bias(const tile_params &a, int first, const int64_t (&rows)[2],
                                          float (&c)[TILE / 8][4])
{
    constexpr float LOG2_E = 1.44269504f, LEAST = -3.402823466e38f;
    const int       t = threadIdx.x & 3, keys = (int)a.p.keys;
#pragma unroll
    for (int j = 0; j < TILE / 8; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            c[j][i] *= a.p.scale;
    if (a.p.period && a.p.mask_type == SAC_F16)
        tile_mask<SAC_F16>(a, first, rows, c);
    else if (a.p.period)
        tile_mask<SAC_F32>(a, first, rows, c);
#pragma unroll
    for (int j = 0; j < TILE / 8; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) { /* masks hold float32's least number too, which stays one */
            const bool there = first + j * 8 + 2 * t + i % 2 < keys && c[j][i] != -INFINITY;
            c[j][i] = there ? fmaxf(c[j][i] * LOG2_E, LEAST) : -INFINITY;
        }
}

/* The shares of a tile before they are divided by their sum; what was summed before is scaled. */
template <class S>
__device__ __forceinline__ void tile_shares(tile_state<S> &s, float (&c)[TILE / 8][4])
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float max = s.max[r], sum = 0;
#pragma unroll
        for (int j = 0; j < TILE / 8; j++)
            max = fmaxf(max, fmaxf(c[j][2 * r], c[j][2 * r + 1]));
        max = fmaxf(max, shuffle(max, 1));
        max = fmaxf(max, shuffle(max, 2));
        const float top = max == -INFINITY ? 0 : max, past = exp2f(s.max[r] - top);
        s.max[r] = max;
#pragma unroll
        for (int j = 0; j < TILE / 8; j++)
#pragma unroll
            for (int i = 2 * r; i < 2 * r + 2; i++)
                sum += c[j][i] = exp2f(c[j][i] - top);
        s.sum[r] = s.sum[r] * past + sum;
#pragma unroll
        for (int d = 0; d < S::D / 8; d++) {
            s.out[d][2 * r] *= past;
            s.out[d][2 * r + 1] *= past;
        }
    }
}

template <class S>
__device__ __forceinline__ void tile_mix(tile_state<S> &s, const uint16_t *values,
                                         const float (&c)[TILE / 8][4])
{
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int k = 0; k < TILE / 16; k++) {
        const float(&low)[4] = c[2 * k], (&high)[4] = c[2 * k + 1];
        const uint32_t share[4] = {pair_of(low[0], low[1]), pair_of(low[2], low[3]),
                                   pair_of(high[0], high[1]), pair_of(high[2], high[3])};
#pragma unroll
        for (int d = 0; d < S::D / 8; d += 2) {
            uint32_t b[4];
            load_turned(b, values + (k * 16 + (lane & 15)) * S::PITCH + d * 8 + (lane >> 4) * 8);
            multiply_tile(s.out[d], share, b[0], b[1]);
            multiply_tile(s.out[d + 1], share, b[2], b[3]);
        }
    }
}

template <class S>
__device__ __forceinline__ void tile_store(const tile_params &a, const tile_state<S> &s,
                                           uint16_t *head, int first)
{
    const int lane = threadIdx.x & 31, size = (int)a.p.v_size;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int query = first + (lane >> 2) + 8 * r;
        float     sum = s.sum[r];
        sum += shuffle(sum, 1);
        sum += shuffle(sum, 2);
        const float share = sum != 0 ? 1 / sum : 0;
        if (query >= a.p.queries)
            continue;
        uint16_t *to = head + query * a.p.y.step[2];
#pragma unroll
        for (int d = 0; d < S::D / 8; d++) {
            const int at = d * 8 + 2 * (lane & 3);
            if (at < size)
                *reinterpret_cast<uint32_t *>(to + at) =
                    pair_of(s.out[d][2 * r] * share, s.out[d][2 * r + 1] * share);
        }
    }
}

template <class S>
__global__ void __launch_bounds__(S::THREADS_) tile_kernel(const __grid_constant__ tile_params a)
{
    extern __shared__ uint4 shared[];
    uint16_t *const keys = reinterpret_cast<uint16_t *>(shared), *const values =
                                                                     keys + 2 * S::HALVES;
    const ops_fused_attention &p = a.p;
    const int       tile = blockIdx.x % a.tiles, warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int64_t   both = blockIdx.x / a.tiles, batch = both / p.heads, head = both % p.heads;
    const uint16_t *k = a.k + p.k.offset + batch * p.k.step[0] + head * p.k.step[1],
                   *v = a.v + p.v.offset + batch * p.v.step[0] + head * p.v.step[1];
    const int count = (int)p.keys, size = (int)p.size, v_size = (int)p.v_size,
              turns = (count + TILE - 1) / TILE, first = tile * S::QUERIES + warp * WARP_QUERIES;

    /* the queries wait where the second tile of keys will lie */
    fetch_rows<S>(keys + S::HALVES, a.q + p.q.offset + batch * p.q.step[0] + head * p.q.step[1],
                  p.q.step[2], tile * S::QUERIES, S::QUERIES, (int)p.queries, size, p.piece);
    fetch_rows<S>(keys, k, p.k.step[2], 0, TILE, count, size, p.piece);
    fetch_rows<S>(values, v, p.v.step[2], 0, TILE, count, v_size, p.piece);
    asm volatile("cp.async.commit_group;");

    tile_state<S> s;
    int64_t       rows[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int64_t query = first + (lane >> 2) + 8 * r;
        rows[r] = p.period ? batch % p.period * p.mask_step[0] + head * p.mask_step[1] +
                                 (query < p.queries ? query : p.queries - 1) * p.mask_step[2]
                           : 0;
        s.max[r] = -INFINITY;
        s.sum[r] = 0;
    }
#pragma unroll
    for (int d = 0; d < S::D / 8; d++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            s.out[d][i] = 0;
    asm volatile("cp.async.wait_group 0;");
    __syncthreads();
#pragma unroll
    for (int i = 0; i < S::D / 16; i++)
        load(s.q[i], keys + S::HALVES + (warp * WARP_QUERIES + (lane & 15)) * S::PITCH + i * 16 +
                         (lane >> 4) * 8);
    __syncthreads(); /* all have read their queries */

    for (int turn = 0; turn < turns; turn++) {
        const int here = (turn & 1) * S::HALVES, next = S::HALVES - here;
        float     c[TILE / 8][4];
        if (turn + 1 < turns) {
            fetch_rows<S>(keys + next, k, p.k.step[2], (turn + 1) * TILE, TILE, count, size,
                          p.piece);
            fetch_rows<S>(values + next, v, p.v.step[2], (turn + 1) * TILE, TILE, count, v_size,
                          p.piece);
        }
        asm volatile("cp.async.commit_group;");
        tile_scores(s, keys + here, c);
        tile_bias(a, turn * TILE, rows, c);
        tile_shares(s, c);
        tile_mix(s, values + here, c);
        asm volatile("cp.async.wait_group 0;");
        __syncthreads(); /* the next tile is there, and all have read this one */
    }
    tile_store(a, s, a.y + p.y.offset + batch * p.y.step[0] + head * p.y.step[1], first);
}

template <class S> int run_tiles(tile_params &a, void *stream)
{
    a.tiles = (int)((a.p.queries + S::QUERIES - 1) / S::QUERIES);
    const int64_t blocks = a.p.batch * a.p.heads * a.tiles;
    cudaError_t   res = cudaSuccess;
    if (blocks <= 0)
        return 0;
    if (S::SHARED > 48 << 10)
        res = cudaFuncSetAttribute(tile_kernel<S>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   S::SHARED);
    if (res == cudaSuccess) {
        tile_kernel<S><<<(unsigned)blocks, S::THREADS_, S::SHARED, (cudaStream_t)stream>>>(a);
        res = cudaGetLastError();
    }
    return (int)res;
}

/* Two warps a block where there are few blocks: on one H200, 132 processors want work. */
template <int SIZE> int run_size(tile_params &a, void *stream)
{
    const bool few = a.p.batch * a.p.heads * ((a.p.queries + 63) / 64) < 132 || a.p.queries <= 32;
    return few ? run_tiles<tile_shape<SIZE, 2>>(a, stream)
               : run_tiles<tile_shape<SIZE, 4>>(a, stream);
}

bool can_tile(const struct ops_fused_attention &p, const struct ops_ports *ports)
{
    return p.piece && fits16(ports->in[0]) && fits16(ports->in[1]) && fits16(ports->in[2]) &&
           fits16(ports->out[0]);
}

int by_tiles(const struct ops_fused_attention &p, const struct ops_ports *ports, void *stream)
{
    tile_params   a = {p,
                       (const uint16_t *)ports->in[0],
                       (const uint16_t *)ports->in[1],
                       (const uint16_t *)ports->in[2],
                       ports->in[3],
                       (uint16_t *)ports->out[0],
                       0};
    const int64_t size = p.size > p.v_size ? p.size : p.v_size;
    return size <= 32   ? run_size<32>(a, stream)
           : size <= 64 ? run_size<64>(a, stream)
           : size <= 96 ? run_size<96>(a, stream)
                        : run_size<128>(a, stream);
}

#endif

} // namespace

extern "C" int ops_launch_fused_attention(const void *params, const struct ops_ports *ports,
                                          void *stream)
{
    const struct ops_fused_attention &p = *(const struct ops_fused_attention *)params;
#ifdef __CUDACC__
    if (can_tile(p, ports))
        return by_tiles(p, ports, stream);
#endif
    const bool floats = p.q_type == SAC_F32 && p.k_type == SAC_F32 && p.v_type == SAC_F32;
    return floats ? by_groups<whole>(p, ports, stream) : by_groups<by_type>(p, ports, stream);
}
