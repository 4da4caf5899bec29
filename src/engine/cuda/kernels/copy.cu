/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/kernels/copy.h"
#include "engine/cuda/kernels/numbers.cuh"

using namespace ops;

namespace
{

template <class UNIT> struct copy_body {
    struct ops_view view;
    UNIT           *to;
    const UNIT     *from;
    OPS_BODY void   operator()(int64_t i) const
    {
        int64_t at[2];
        place(view, i, at);
        to[at[0]] = from[at[1]];
    }
};

template <class UNIT>
int copy(const struct ops_view &view, void *to, const void *from, void *stream)
{
    copy_body<UNIT> body = {view, (UNIT *)to, (const UNIT *)from};
    return each(body, view.count, stream);
}

#ifdef __CUDACC__
/* ---- transposed planes, through a tile in shared memory, so that both sides are accessed in rows
 * ---- */

constexpr int TILE = 32, TILE_ROWS = 8;

/* The view's dimension `across` is the source's innermost, the last the destination's. */
template <class UNIT>
__global__ void __launch_bounds__(TILE *TILE_ROWS)
    turn_kernel(const __grid_constant__ struct ops_view rest, UNIT *to, const UNIT *from, int width,
                int height, int64_t to_step, int64_t from_step)
{
    early_begin();
    __shared__ UNIT tile[TILE][TILE + 1];
    const int       x0 = blockIdx.x * TILE, y0 = blockIdx.y * TILE;
    for (int64_t i = blockIdx.z; i < rest.count; i += gridDim.z) {
        int64_t at[2];
        place(rest, i, at);
        for (int k = threadIdx.y; k < TILE; k += TILE_ROWS) {
            const int x = x0 + threadIdx.x, y = y0 + k; /* source rows */
            if (x < width && y < height)
                tile[k][threadIdx.x] = from[at[1] + y * from_step + x];
        }
        __syncthreads();
        for (int k = threadIdx.y; k < TILE; k += TILE_ROWS) {
            const int y = y0 + threadIdx.x, x = x0 + k;
            if (x < width && y < height)
                to[at[0] + x * to_step + y] = tile[threadIdx.x][k];
        }
        __syncthreads();
    }
}

/* The dimension along which the source is contiguous, when it is another than the destination's and
 * both are worth tiles; -1: none. */
int across(const struct ops_view &v)
{
    const int inner = v.rank - 1;
    if (v.wide || inner < 1 || v.step[0][inner] != 1 || v.step[1][inner] == 1 || v.size[inner] < 8)
        return -1;
    for (int d = 0; d < inner; d++)
        if (v.step[1][d] == 1 && v.size[d] >= 8)
            return d;
    return -1;
}

template <class UNIT>
int turn(const struct ops_view &v, int d, void *to, const void *from, void *stream)
{
    const int       inner = v.rank - 1;
    struct ops_view rest = v;
    rest.rank = 0;
    rest.count = 1;
    for (int k = 0; k < inner; k++) {
        if (k == d)
            continue;
        rest.dim[rest.rank] = v.dim[k];
        rest.size[rest.rank] = v.size[k];
        rest.step[0][rest.rank] = v.step[0][k];
        rest.step[1][rest.rank] = v.step[1][k];
        rest.count *= v.size[k];
        rest.rank++;
    }
    if (rest.rank == 0) {
        rest.rank = 1;
        rest.size[0] = 1;
    }
    const dim3 grid((unsigned)((v.size[d] + TILE - 1) / TILE),
                    (unsigned)((v.size[inner] + TILE - 1) / TILE),
                    (unsigned)(rest.count < 65535 ? rest.count : 65535));
    if (grid.y > 65535 || v.count == 0)
        return copy<UNIT>(v, to, from, stream);
    CUDA_LAUNCH_ALONE(turn_kernel<UNIT>, grid, dim3(TILE, TILE_ROWS), 0, (cudaStream_t)stream, rest,
                      (UNIT *)to, (const UNIT *)from, (int)v.size[d], (int)v.size[inner],
                      v.step[0][d], v.step[1][inner]);
    return (int)cudaGetLastError();
}
#endif

template <class UNIT>
int move(const struct ops_view &view, void *to, const void *from, void *stream)
{
#ifdef __CUDACC__
    const int d = across(view);
    if (d >= 0)
        return turn<UNIT>(view, d, to, from, stream);
#endif
    return copy<UNIT>(view, to, from, stream);
}

int piece(const struct ops_copy &p, const struct ops_ports *ports, void *stream)
{
    void       *to = ports->out[p.out];
    const void *from = ports->in[p.in];
    if ((const char *)to + p.view.start[0] * p.bytes ==
        (const char *)from + p.view.start[1] * p.bytes)
        return 0; /* already written in place */
    const bool wide = p.unit_bytes > p.bytes && (uintptr_t)to % p.unit_bytes == 0 &&
                      (uintptr_t)from % p.unit_bytes == 0;
    const struct ops_view &view = wide ? p.units : p.view;
    const int              bytes = wide ? p.unit_bytes : p.bytes;
    if (bytes == 16)
        return copy<bytes16>(view, to, from, stream);
    return by_bytes(bytes, [&](auto unit) { return move<decltype(unit)>(view, to, from, stream); });
}

/* ---- Pad ---- */

OPS_BODY int64_t positive_mod(int64_t a, int64_t n)
{
    return (a % n + n) % n;
}

/* The input index of x; -1: none. */
OPS_BODY int64_t pad_source(int mode, int64_t x, int64_t n)
{
    if (x >= 0 && x < n)
        return x;
    switch (mode) { /* enum sac_pad_mode */
    case 1:         /* reflect */
        if (n == 1)
            return 0;
        x = positive_mod(x, 2 * (n - 1));
        return x < n ? x : 2 * (n - 1) - x;
    case 2: return x < 0 ? 0 : n - 1;  /* edge */
    case 3: return positive_mod(x, n); /* wrap */
    default: return -1;
    }
}

/* Where unit i of the output lies, and its source but for the innermost dimension. */
struct pad_place {
    int64_t  at, source, inner; /* index in units of the innermost dimension */
    bool     inside;
    OPS_BODY pad_place(const struct ops_pad &p, int64_t i)
        : at(0), source(0), inner(0), inside(true)
    {
        for (int d = p.rank - 1; d >= 0; d--) {
            const int64_t above = d == 0     ? 0
                                  : p.narrow ? (int64_t)divide((uint32_t)i, p.dim[d])
                                             : i / p.size[d];
            const int64_t index = i - above * (p.narrow ? (int64_t)p.dim[d].d : p.size[d]);
            i = above;
            if (d == p.rank - 1) {
                inner = index;
                continue;
            }
            const int64_t x = pad_source(p.mode, index - p.begin[d], p.in_size[d]);
            inside = inside && x >= 0;
            at += index * p.to[d];
            source += x * p.from[d];
        }
    }
};

template <class UNIT> struct pad_body {
    struct ops_pad p;
    UNIT          *to;
    const UNIT    *from, *constant;

    /* Number `index` of the innermost dimension. */
    OPS_BODY UNIT number(const pad_place &place, int64_t index) const
    {
        const int     d = p.rank - 1;
        const int64_t x = d < 0 ? 0 : pad_source(p.mode, index - p.begin[d], p.in_size[d]);
        UNIT          known;
        memcpy(&known, p.constant, sizeof known);
        return place.inside && x >= 0 ? from[place.source + (d < 0 ? 0 : x * p.from[d])]
               : constant             ? *constant
                                      : known;
    }
    OPS_BODY void operator()(int64_t i) const
    {
        const pad_place place(p, i);
        const int64_t   step = p.rank > 0 ? p.to[p.rank - 1] : 0;
        to[place.at + place.inner * step] = number(place, place.inner);
    }
};

/* 16 bytes of neighbours at once. */
template <class UNIT> struct pad_run_body {
    static constexpr int RUN = 16 / sizeof(UNIT);
    pad_body<UNIT>       one;
    OPS_BODY void        operator()(int64_t i) const
    {
        const pad_place place(one.p, i);
        const int64_t   first = place.inner * RUN;
        UNIT            v[RUN];
        bytes16         whole;
        OPS_UNROLL
        for (int k = 0; k < RUN; k++)
            v[k] = one.number(place, first + k);
        memcpy(&whole, v, sizeof whole);
        *(bytes16 *)(one.to + place.at + first) = whole;
    }
};

template <class UNIT> int pad(const struct ops_pad &p, const struct ops_ports *ports, void *stream)
{
    pad_body<UNIT> body = {p, (UNIT *)ports->out[0], (const UNIT *)ports->in[0],
                           p.constant_port < 0 ? NULL : (const UNIT *)ports->in[p.constant_port]};
    if constexpr (sizeof(UNIT) < 16) {
        if (p.run && fits16(body.to)) {
            pad_run_body<UNIT> runs = {body};
            return each(runs, p.count / p.run, stream);
        }
        if (p.run) /* `dim` has the innermost in runs */
            body.p.dim[p.rank - 1] = p.whole;
    }
    return each(body, p.count, stream);
}

} // namespace

extern "C" int ops_launch_copies(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_copies *p = (const struct ops_copies *)params;
    int                      res = 0;
    for (int i = 0; i < p->count && res == 0; i++)
        res = piece(p->piece[i], ports, stream);
    return res;
}

extern "C" int ops_launch_pad(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_pad *p = (const struct ops_pad *)params;
    if (p->bytes == 16)
        return pad<bytes16>(*p, ports, stream);
    return by_bytes(p->bytes, [&](auto unit) { return pad<decltype(unit)>(*p, ports, stream); });
}
