/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/kernels/functions.cuh"
#include "engine/cuda/kernels/index.h"
#include "engine/cuda/kernels/team.cuh"
#ifdef __CUDACC__
#include "engine/cuda/kernels/topk.cuh"
#endif

using namespace ops;

namespace
{

OPS_BODY int64_t index_at(const void *p, int type, int64_t i)
{
    return type == SAC_I32 ? ((const int32_t *)p)[i] : ((const int64_t *)p)[i];
}

OPS_BODY int64_t from_end(int64_t index, int64_t dim)
{
    return index < 0 ? index + dim : index;
}

/* ---- gather ---- */

template <class UNIT> struct gather_body {
    struct ops_gather p;
    const UNIT       *in;
    const void       *indices;
    UNIT             *out;
    OPS_BODY void     operator()(int64_t i) const
    {
        int64_t at[3];
        place(p.view, i, at);
        int64_t from = at[1];
        for (int k = 0; k < p.depth; k++) {
            const int64_t index = from_end(index_at(indices, p.index_type, at[2] + k), p.dim[k]);
            from += (index < 0 ? 0 : index < p.dim[k] ? index : p.dim[k] - 1) * p.step[k];
        }
        out[at[0]] = in[from];
    }
};

template <class UNIT>
int gather(const struct ops_gather &p, const struct ops_ports *ports, void *stream)
{
    gather_body<UNIT> body = {p, (const UNIT *)ports->in[0], ports->in[1], (UNIT *)ports->out[0]};
    return each(body, p.view.count, stream);
}

/* ---- scatter ---- */

struct bytes_body {
    const uint8_t *from;
    uint8_t       *to;
    int64_t        bytes;
    OPS_BODY void  operator()(int64_t i) const
    {
        const int64_t first = i * 16, last = first + 16 < bytes ? first + 16 : bytes;
        if (last - first == 16) {
            ((bytes16 *)to)[i] = ((const bytes16 *)from)[i];
            return;
        }
        for (int64_t k = first; k < last; k++)
            to[k] = from[k];
    }
};

/* Copies the data before some of it is replaced. Buffers are aligned to 16 bytes at least. */
int copy_data(const struct ops_ports *ports, int64_t bytes, void *stream)
{
    if (ports->out[0] == ports->in[0])
        return 0;
    bytes_body body = {(const uint8_t *)ports->in[0], (uint8_t *)ports->out[0], bytes};
    return each(body, (bytes + 15) / 16, stream);
}

template <class T> OPS_BODY T combined(int how, T a, T b)
{
    switch (how) {
    case OPS_COMBINE_ADD: return a + b;
    case OPS_COMBINE_MUL: return a * b;
    case OPS_COMBINE_MAX: return b > a ? b : a;
    default: return b < a ? b : a;
    }
}

template <class P>
OPS_BODY void put_combined(const P &p, void *out, int64_t to, const void *updates, int64_t from)
{
    if (p.combine == OPS_COMBINE_NONE) {
        switch (p.bytes) {
        case 1: ((uint8_t *)out)[to] = ((const uint8_t *)updates)[from]; return;
        case 2: ((uint16_t *)out)[to] = ((const uint16_t *)updates)[from]; return;
        case 4: ((uint32_t *)out)[to] = ((const uint32_t *)updates)[from]; return;
        default: ((uint64_t *)out)[to] = ((const uint64_t *)updates)[from]; return;
        }
    }
    if (p.computed == OPS_FLOAT || p.computed == OPS_DOUBLE)
        put_float(
            out, p.type, to,
            combined(p.combine, get_double(out, p.type, to), get_double(updates, p.type, from)));
    else if (p.computed == OPS_UINT64 || p.combine == OPS_COMBINE_ADD ||
             p.combine == OPS_COMBINE_MUL)
        put_int(out, p.type, to,
                combined(p.combine, get<uint64_t>(out, p.type, to),
                         get<uint64_t>(updates, p.type, from)));
    else
        put_int(out, p.type, to,
                combined(p.combine, get<int64_t>(out, p.type, to),
                         get<int64_t>(updates, p.type, from)));
}

/* One thread per line, in order: two equal indices can only occur within a line. */
struct scatter_lines_body {
    struct ops_scatter_lines p;
    void                    *out;
    const void              *indices, *updates;
    OPS_BODY void            operator()(int64_t i) const
    {
        int64_t at[3];
        place(p.outer, i, at);
        for (int64_t k = 0; k < p.count; k++) {
            const int64_t index =
                from_end(index_at(indices, p.index_type, at[1] + k * p.index_step), p.dim);
            if (index >= 0 && index < p.dim)
                put_combined(p, out, at[0] + index * p.out_step, updates,
                             at[2] + k * p.update_step);
        }
    }
};

struct nd_places {
    const struct ops_scatter_nd &p;
    const void                  *indices;
    OPS_BODY int64_t             operator()(int64_t place) const /* -1: none */
    {
        int64_t to = 0;
        for (int k = 0; k < p.depth; k++) {
            const int64_t index =
                from_end(index_at(indices, p.index_type, place * p.depth + k), p.dim[k]);
            if (index < 0 || index >= p.dim[k])
                return -1;
            to += index * p.step[k];
        }
        return to;
    }
};

/* Where places may coincide and their order counts, a thread takes all places of one inner
 * element. */
struct scatter_nd_in_order {
    struct ops_scatter_nd p;
    void                 *out;
    const void           *indices, *updates;
    OPS_BODY void         operator()(int64_t i) const
    {
        const nd_places where = {p, indices};
        for (int64_t k = 0; k < p.places; k++) {
            const int64_t to = where(k);
            if (to >= 0)
                put_combined(p, out, to + i, updates, k * p.inner + i);
        }
    }
};

/* Replacement: the last of several equal places wins. Only a few places are compared; for many,
 * ONNX requires that they are distinct. */
struct scatter_nd_body {
    enum { COMPARED = 1024 };
    struct ops_scatter_nd p;
    void                 *out;
    const void           *indices, *updates;
    OPS_BODY void         operator()(int64_t i) const
    {
        const nd_places where = {p, indices};
        const int64_t   k = i / p.inner, to = where(k);
        if (to < 0)
            return;
        for (int64_t later = k + 1; later < p.places && p.places <= COMPARED; later++)
            if (where(later) == to)
                return;
        put_combined(p, out, to + i % p.inner, updates, i);
    }
};

/* ---- TensorScatter ---- */

struct cache_body {
    struct ops_cache p;
    const uint8_t   *update;
    const int64_t   *first;
    uint8_t         *out;
    OPS_BODY void    operator()(int64_t i) const
    {
        const int64_t byte = i % p.run, slice = i / p.run % p.count, o = i / p.run / p.count;
        const int64_t start = p.has_index ? first[o / p.per_image] : 0;
        const int64_t to =
            p.circular ? ((start + slice) % p.room + p.room) % p.room : start + slice;
        if (to >= 0 && to < p.room)
            out[(o * p.room + to) * p.run + byte] = update[i];
    }
};

/* ---- TopK ---- */

/* Each element counts the elements that come before it in order, which gives its rank. NaN is
 * largest; equal elements keep their order. */
template <class T> OPS_BODY bool precedes(T a, int64_t ia, T b, int64_t ib, bool least)
{
    const bool nan_a = is_nan(a), nan_b = is_nan(b);
    int        order = nan_a || nan_b ? (int)nan_a - (int)nan_b : (int)(a > b) - (int)(a < b);
    order = least ? -order : order;
    return order ? order > 0 : ia < ib;
}

template <class T> struct topk_body {
    struct ops_topk p;
    const void     *in;
    void           *values;
    int64_t        *indices;
    OPS_BODY void   operator()(int64_t i) const
    {
        int64_t       at[3], rank = 0;
        const int64_t line = i / p.length, own = i - line * p.length;
        place(p.outer, line, at);
        const T x = get<T>(in, p.type, at[0] + own * p.step);
        for (int64_t j = 0; j < p.length && rank < p.k; j++)
            rank += j != own &&
                    precedes(get<T>(in, p.type, at[0] + j * p.step), j, x, own, p.least != 0);
        if (rank >= p.k)
            return;
        if (p.values)
            put(values, p.type, at[1] + rank * p.value_step, x);
        if (p.indices)
            indices[at[2] + rank * p.index_step] = own;
    }
};

#ifdef __CUDACC__
struct topk_keys {
    const void         *in;
    int64_t             start, step;
    int                 type;
    bool                least;
    __device__ uint32_t operator()(int j) const
    {
        const int64_t at = start + j * step;
        return type == SAC_F32   ? topk_key(((const uint32_t *)in)[at], 32, 0x7f800000, least)
               : type == SAC_F16 ? topk_key(((const uint16_t *)in)[at], 16, 0x7c00, least)
                                 : topk_key(((const uint16_t *)in)[at], 16, 0x7f80, least);
    }
};

constexpr int TOPK_THREADS = 1024;

__global__ void __launch_bounds__(TOPK_THREADS)
    topk_kernel(const __grid_constant__ topk_body<float> b)
{
    early_begin();
    __shared__ topk_room   room;
    const struct ops_topk &p = b.p;
    for (int64_t line = blockIdx.x; line < p.outer.count; line += gridDim.x) {
        int64_t at[3];
        place(p.outer, line, at);
        topk_best(topk_keys{b.in, at[0], p.step, p.type, p.least != 0}, (int)p.length, (int)p.k,
                  p.type == SAC_F32 ? 32 : 16, room);
        for (int i = (int)threadIdx.x; i < p.k; i += (int)blockDim.x) {
            const int64_t own = (uint32_t)~room.item[i];
            if (p.values)
                put_float(b.values, p.type, at[1] + i * p.value_step,
                          get_float(b.in, p.type, at[0] + own * p.step));
            if (p.indices)
                b.indices[at[2] + i * p.index_step] = own;
        }
    }
}

/* A block for each line, no larger than the line has work for. */
int topk_select(const topk_body<float> &body, void *stream)
{
    const int64_t n = body.p.length;
    const int     threads = n <= 512 ? 128 : n <= 2048 ? 256 : TOPK_THREADS;
    if (body.p.outer.count > 0)
        CUDA_LAUNCH_ALONE(topk_kernel, blocks_of(body.p.outer.count, 1), threads, 0,
                          (cudaStream_t)stream, body);
    return (int)cudaGetLastError();
}
#endif

} // namespace

extern "C" int ops_launch_gather(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_gather *p = (const struct ops_gather *)params;
    if (p->bytes == 16)
        return gather<bytes16>(*p, ports, stream);
    return by_bytes(p->bytes, [&](auto unit) { return gather<decltype(unit)>(*p, ports, stream); });
}

extern "C" int ops_launch_scatter_lines(const void *params, const struct ops_ports *ports,
                                        void *stream)
{
    const struct ops_scatter_lines *p = (const struct ops_scatter_lines *)params;
    scatter_lines_body              body = {*p, ports->out[0], ports->in[1], ports->in[2]};
    const int                       res = copy_data(ports, p->copy_bytes, stream);
    return res ? res : each(body, p->count ? p->outer.count : 0, stream);
}

extern "C" int ops_launch_scatter_nd(const void *params, const struct ops_ports *ports,
                                     void *stream)
{
    const struct ops_scatter_nd *p = (const struct ops_scatter_nd *)params;
    const int                    res = copy_data(ports, p->copy_bytes, stream);
    if (res)
        return res;
    if (p->combine == OPS_COMBINE_NONE) {
        scatter_nd_body body = {*p, ports->out[0], ports->in[1], ports->in[2]};
        return each(body, p->places * p->inner, stream);
    }
    scatter_nd_in_order body = {*p, ports->out[0], ports->in[1], ports->in[2]};
    return each(body, p->places ? p->inner : 0, stream);
}

extern "C" int ops_launch_cache(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_cache *p = (const struct ops_cache *)params;
    const int               res = copy_data(ports, p->copy_bytes, stream);
    cache_body body = {*p, (const uint8_t *)ports->in[1], (const int64_t *)ports->in[2],
                       (uint8_t *)ports->out[0]};
    return res ? res : each(body, p->outer * p->count * p->run, stream);
}

extern "C" int ops_launch_topk(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_topk *p = (const struct ops_topk *)params;
#ifdef __CUDACC__
    if (p->selects)
        return topk_select({*p, ports->in[0], ports->out[0], (int64_t *)ports->out[1]}, stream);
#endif
    return by_class(p->computed, [&](auto number) {
        topk_body<decltype(number)> body = {*p, ports->in[0], ports->out[0],
                                            (int64_t *)ports->out[1]};
        return each(body, p->outer.count * p->length, stream);
    });
}
