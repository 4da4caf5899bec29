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
 * keys and values come through shared memory in tiles, the next ones fetched ahead. A row's
 * greatest score so far scales what was summed up when it grows. The warps of a block have queries
 * of their own or, where queries are few, the same ones and a part of each tile's keys; what these
 * made is put together at the end. Vision transformers have a few tokens more than whole tiles
 * (197, 257): a warp without queries only fetches, and of a last tile with FEW keys the others are
 * not multiplied. */
enum { TILE = 64 /* keys of a turn */, FEW = 16, WARP_QUERIES = 16 };

template <int KEY_, int VALUE_, int QUERY_WARPS_, int KEY_WARPS_, int STAGES_> struct tile_shape {
    static constexpr int KEY = KEY_, VALUE = VALUE_, QUERY_WARPS = QUERY_WARPS_,
                         KEY_WARPS = KEY_WARPS_, STAGES = STAGES_;
    static constexpr int QUERIES = QUERY_WARPS * WARP_QUERIES,
                         THREADS_ = QUERY_WARPS * KEY_WARPS * 32;
    static constexpr int KEYS = TILE / KEY_WARPS; /* of a warp in a turn */
    /* eight rows of 16 bytes begin in different banks */
    static constexpr int KEY_PITCH = KEY + 8, VALUE_PITCH = VALUE + 8;
    static constexpr int KEY_HALVES = TILE * KEY_PITCH, VALUE_HALVES = TILE * VALUE_PITCH,
                         SHARED = STAGES * (KEY_HALVES + VALUE_HALVES) * 2;
    static constexpr int STATE = VALUE / 2 + 4; /* a lane's part of what a warp made, floats */
    static_assert(QUERIES <= TILE, "queries wait in the place of a tile of keys");
    static_assert(KEYS % 16 == 0, "shares are multiplied 16 keys at a time");
    static_assert((KEY_WARPS - 1) * QUERY_WARPS * 32 * STATE * 4 <= SHARED, "parts of the result");
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
template <int ROWS, int WIDTH, int THREADS_>
__device__ __forceinline__ void fetch_rows(uint16_t *to, const uint16_t *head,
                                           const ops_head_view &view, int piece, int first,
                                           int count, int size)
{
    constexpr int UNITS = WIDTH / 8, PITCH = WIDTH + 8;
    const int64_t step = view.step[2], number = view.step[3];
    if (piece == 1) { /* one number at a time, in the order in which they probably lie */
        const bool dense = number == 1;
#pragma unroll 8
        for (int i = threadIdx.x; i < ROWS * WIDTH; i += THREADS_) {
            const int  row = dense ? i / WIDTH : i % ROWS, d = dense ? i % WIDTH : i / ROWS;
            const bool real = first + row < count && d < size;
            to[row * PITCH + d] = real ? head[(first + row) * step + d * number] : (uint16_t)0;
        }
        return;
    }
#pragma unroll
    for (int i = threadIdx.x; i < ROWS * UNITS; i += THREADS_) {
        const int       row = i / UNITS, d = i % UNITS * 8;
        const bool      real = first + row < count;
        uint16_t       *at = to + row * PITCH + d;
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

/* Two to the power of x; of -inf, zero. */
__device__ __forceinline__ float power_of_two(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* What a warp keeps: of its queries, and of rows g and g + 8 of them (g the lane's group of four).
 */
template <class S> struct tile_state {
    uint32_t q[S::KEY / 16][4];
    float    out[S::VALUE / 8][4];
    float    max[2], sum[2];
};

/* The scores of a warp's keys of a tile, EIGHTS times eight: c[j] has rows g, g + 8 by keys
 * 8 j + 2 t, + 1. */
template <class S, int EIGHTS>
__device__ __forceinline__ void tile_scores(const tile_state<S> &s, const uint16_t *keys,
                                            float (&c)[EIGHTS][4])
{
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int j = 0; j < EIGHTS; j += 2) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            c[j][i] = c[j + 1][i] = 0;
#pragma unroll
        for (int k = 0; k < S::KEY / 16; k++) {
            uint32_t b[4];
            load(b, keys + (j * 8 + (lane & 7) + (lane >> 4) * 8) * S::KEY_PITCH + k * 16 +
                        (lane >> 3 & 1) * 8);
            multiply_tile(c[j], s.q[k], b[0], b[1]);
            multiply_tile(c[j + 1], s.q[k], b[2], b[3]);
        }
    }
}

/* Adds the mask. Of a known type, and without a question for each key, so that all loads are under
 * way at once. */
template <int TYPE, int EIGHTS>
__device__ __forceinline__ void tile_mask(const tile_params &a, int first, const int64_t (&rows)[2],
                                          float (&c)[EIGHTS][4])
{
    const int last = (int)a.p.keys - 1, t = threadIdx.x & 3;
#pragma unroll
    for (int j = 0; j < EIGHTS; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int key = first + j * 8 + 2 * t + i % 2;
            c[j][i] +=
                get_float(a.mask, TYPE, rows[i / 2] + (key < last ? key : last) * a.p.mask_step[3]);
        }
}

/* Scaled, with the mask, in powers of two; keys that there are not get no share. rows: the mask's
 * of queries g and g + 8. */
template <int EIGHTS>
__device__ __forceinline__ void tile_bias(const tile_params &a, int first, const int64_t (&rows)[2],
                                          float (&c)[EIGHTS][4])
{
    constexpr float LOG2_E = 1.44269504f, LEAST = -3.402823466e38f;
    const int       t = threadIdx.x & 3, keys = (int)a.p.keys;
    const bool      masked = a.p.period != 0;
    const float     scale = masked ? a.p.scale : a.p.scale * LOG2_E;
#pragma unroll
    for (int j = 0; j < EIGHTS; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            c[j][i] *= scale;
    if (masked) {
        if (a.p.mask_type == SAC_F16)
            tile_mask<SAC_F16>(a, first, rows, c);
        else
            tile_mask<SAC_F32>(a, first, rows, c);
#pragma unroll
        for (int j = 0; j < EIGHTS; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) { /* masks hold float32's least number too */
                const float x = c[j][i] * LOG2_E;
                c[j][i] = x < LEAST && c[j][i] != -INFINITY ? LEAST : x;
            }
    }
    if (first + EIGHTS * 8 <= keys)
        return;
#pragma unroll
    for (int j = 0; j < EIGHTS; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (first + j * 8 + 2 * t + i % 2 >= keys)
                c[j][i] = -INFINITY;
}

/* The shares of a tile before they are divided by their sum; what was summed before is scaled. */
template <class S, int EIGHTS>
__device__ __forceinline__ void tile_shares(tile_state<S> &s, float (&c)[EIGHTS][4])
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float max = s.max[r], sum = 0;
#pragma unroll
        for (int j = 0; j < EIGHTS; j++)
            max = fmaxf(max, fmaxf(c[j][2 * r], c[j][2 * r + 1]));
        max = fmaxf(max, shuffle(max, 1));
        max = fmaxf(max, shuffle(max, 2));
        const float top = max == -INFINITY ? 0 : max, past = power_of_two(s.max[r] - top);
        s.max[r] = max;
#pragma unroll
        for (int j = 0; j < EIGHTS; j++)
#pragma unroll
            for (int i = 2 * r; i < 2 * r + 2; i++)
                sum += c[j][i] = power_of_two(c[j][i] - top);
        s.sum[r] = s.sum[r] * past + sum;
#pragma unroll
        for (int d = 0; d < S::VALUE / 8; d++) {
            s.out[d][2 * r] *= past;
            s.out[d][2 * r + 1] *= past;
        }
    }
}

template <class S, int EIGHTS>
__device__ __forceinline__ void tile_mix(tile_state<S> &s, const uint16_t *values,
                                         const float (&c)[EIGHTS][4])
{
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int k = 0; k < EIGHTS / 2; k++) {
        const float(&low)[4] = c[2 * k], (&high)[4] = c[2 * k + 1];
        const uint32_t share[4] = {pair_of(low[0], low[1]), pair_of(low[2], low[3]),
                                   pair_of(high[0], high[1]), pair_of(high[2], high[3])};
#pragma unroll
        for (int d = 0; d < S::VALUE / 8; d += 2) {
            uint32_t b[4];
            load_turned(b,
                        values + (k * 16 + (lane & 15)) * S::VALUE_PITCH + d * 8 + (lane >> 4) * 8);
            multiply_tile(s.out[d], share, b[0], b[1]);
            multiply_tile(s.out[d + 1], share, b[2], b[3]);
        }
    }
}

template <int EIGHTS, class S>
__device__ __forceinline__ void tile_turn(const tile_params &a, tile_state<S> &s,
                                          const uint16_t *keys, const uint16_t *values, int first,
                                          const int64_t (&rows)[2])
{
    float c[EIGHTS][4];
    tile_scores(s, keys, c);
    tile_bias(a, first, rows, c);
    tile_shares(s, c);
    tile_mix(s, values, c);
}

/* What the warps made of their parts of the keys becomes the first warp's. room is theirs by now:
 * for each of the others, its numbers one after the other, the lanes side by side. */
template <class S> __device__ __forceinline__ void tile_join(tile_state<S> &s, float *room)
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, query = warp % S::QUERY_WARPS,
              part = warp / S::QUERY_WARPS;
    if (part > 0) {
        float *to = room + ((part - 1) * S::QUERY_WARPS + query) * S::STATE * 32 + lane;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            to[r * 32] = s.max[r];
            to[(2 + r) * 32] = s.sum[r];
        }
#pragma unroll
        for (int d = 0; d < S::VALUE / 8; d++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                to[(4 + d * 4 + i) * 32] = s.out[d][i];
    }
    __syncthreads();
    if (part > 0)
        return;
#pragma unroll
    for (int other = 1; other < S::KEY_WARPS; other++) {
        const float *from = room + ((other - 1) * S::QUERY_WARPS + query) * S::STATE * 32 + lane;
        float        mine[2], theirs[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float max = fmaxf(s.max[r], from[r * 32]), top = max == -INFINITY ? 0 : max;
            mine[r] = power_of_two(s.max[r] - top);
            theirs[r] = power_of_two(from[r * 32] - top);
            s.max[r] = max;
            s.sum[r] = s.sum[r] * mine[r] + from[(2 + r) * 32] * theirs[r];
        }
#pragma unroll
        for (int d = 0; d < S::VALUE / 8; d++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                s.out[d][i] =
                    s.out[d][i] * mine[i / 2] + from[(4 + d * 4 + i) * 32] * theirs[i / 2];
    }
}

template <class S>
__device__ __forceinline__ void tile_store(const tile_params &a, const tile_state<S> &s,
                                           uint16_t *head, int first)
{
    const int     lane = threadIdx.x & 31, size = (int)a.p.v_size;
    const int64_t number = a.p.y.step[3];
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
        for (int d = 0; d < S::VALUE / 8; d++) {
            const int      at = d * 8 + 2 * (lane & 3);
            const uint32_t pair = pair_of(s.out[d][2 * r] * share, s.out[d][2 * r + 1] * share);
            if (a.p.y_piece > 1) {
                if (at < size)
                    *reinterpret_cast<uint32_t *>(to + at) = pair;
                continue;
            }
            if (at < size)
                to[at * number] = (uint16_t)pair;
            if (at + 1 < size)
                to[(at + 1) * number] = (uint16_t)(pair >> 16);
        }
    }
}

template <class S>
__global__ void __launch_bounds__(S::THREADS_) tile_kernel(const __grid_constant__ tile_params a)
{
    extern __shared__ uint4 shared[];
    uint16_t *const keys = reinterpret_cast<uint16_t *>(shared), *const values =
                                                                     keys +
                                                                     S::STAGES * S::KEY_HALVES;
    const ops_fused_attention &p = a.p;
    const int tile = blockIdx.x % a.tiles, warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int warp_query = warp % S::QUERY_WARPS * WARP_QUERIES,
              warp_key = warp / S::QUERY_WARPS * S::KEYS;
    const int64_t   both = blockIdx.x / a.tiles, batch = both / p.heads, head = both % p.heads;
    const uint16_t *q = a.q + p.q.offset + batch * p.q.step[0] + head * p.q.step[1],
                   *k = a.k + p.k.offset + batch * p.k.step[0] + head * p.k.step[1],
                   *v = a.v + p.v.offset + batch * p.v.step[0] + head * p.v.step[1];
    const int count = (int)p.keys, size = (int)p.size, v_size = (int)p.v_size,
              turns = (count + TILE - 1) / TILE, first = tile * S::QUERIES + warp_query;
    const auto fetch_turn = [&](int turn) {
        const int stage = turn % S::STAGES;
        if (turn < turns) {
            fetch_rows<TILE, S::KEY, S::THREADS_>(keys + stage * S::KEY_HALVES, k, p.k, p.k_piece,
                                                  turn * TILE, count, size);
            fetch_rows<TILE, S::VALUE, S::THREADS_>(values + stage * S::VALUE_HALVES, v, p.v,
                                                    p.v_piece, turn * TILE, count, v_size);
        }
        asm volatile("cp.async.commit_group;");
    };

    /* the queries wait where the last stage's keys will lie */
    uint16_t *const waiting = keys + (S::STAGES - 1) * S::KEY_HALVES;
    fetch_rows<S::QUERIES, S::KEY, S::THREADS_>(waiting, q, p.q, p.q_piece, tile * S::QUERIES,
                                                (int)p.queries, size);
#pragma unroll
    for (int turn = 0; turn < S::STAGES - 1; turn++)
        fetch_turn(turn);

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
    for (int d = 0; d < S::VALUE / 8; d++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            s.out[d][i] = 0;
    asm volatile("cp.async.wait_group %0;" ::"n"(S::STAGES - 2));
    __syncthreads();
#pragma unroll
    for (int i = 0; i < S::KEY / 16; i++)
        load(s.q[i],
             waiting + (warp_query + (lane & 15)) * S::KEY_PITCH + i * 16 + (lane >> 4) * 8);

    for (int turn = 0; turn < turns; turn++) {
        const int stage = turn % S::STAGES, key = turn * TILE + warp_key;
        asm volatile("cp.async.wait_group %0;" ::"n"(S::STAGES - 2));
        /* this turn's tile is there, and all have read the one before it, or their queries */
        __syncthreads();
        fetch_turn(turn + S::STAGES - 1);
        const uint16_t *own_keys = keys + stage * S::KEY_HALVES + warp_key * S::KEY_PITCH,
                       *own_values = values + stage * S::VALUE_HALVES + warp_key * S::VALUE_PITCH;
        if (first < p.queries && count - key > FEW)
            tile_turn<S::KEYS / 8>(a, s, own_keys, own_values, key, rows);
        else if (first < p.queries && count > key)
            tile_turn<FEW / 8>(a, s, own_keys, own_values, key, rows);
    }
    if (S::KEY_WARPS > 1) {
        asm volatile("cp.async.wait_group 0;");
        __syncthreads(); /* all have read the last tile */
        tile_join(s, reinterpret_cast<float *>(shared));
        if (warp_key > 0)
            return;
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

/* 64 queries a block where that makes three blocks for each of a large card's 132 processors, else
 * fewer, whose keys several warps share. */
template <int KEY, int VALUE> int run_size(tile_params &a, void *stream)
{
    constexpr int AHEAD = VALUE <= 64 ? 4 : 2, ENOUGH = 3 * 132;
    const int64_t heads = a.p.batch * a.p.heads, queries = a.p.queries;
    if (queries > 32 && heads * ((queries + 63) / 64) >= ENOUGH)
        return run_tiles<tile_shape<KEY, VALUE, 4, 1, 2>>(a, stream);
    if (queries > 16 && heads * ((queries + 31) / 32) >= ENOUGH)
        return run_tiles<tile_shape<KEY, VALUE, 2, 2, 2>>(a, stream);
    return run_tiles<tile_shape<KEY, VALUE, 1, 4, AHEAD>>(a, stream);
}

bool can_tile(const struct ops_fused_attention &p, const struct ops_ports *ports)
{
    return p.q_piece && fits16(ports->in[0]) && fits16(ports->in[1]) && fits16(ports->in[2]) &&
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
    return size <= 32                   ? run_size<32, 32>(a, stream)
           : p.size <= 32 && size <= 64 ? run_size<32, 64>(a, stream)
           : size <= 64                 ? run_size<64, 64>(a, stream)
           : size <= 96                 ? run_size<96, 96>(a, stream)
           : p.size <= 64               ? run_size<64, 128>(a, stream)
                                        : run_size<128, 128>(a, stream);
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
