/* SPDX-License-Identifier: Apache-2.0 */
/* Cells to boxes, in three launches for a batch: tell what only the values of an image can; decode
 * the cells, a thread each; sort and suppress, a block an image. */
#include "vision/cuda/launch.h"

namespace
{

enum { VALUE_THREADS = 512, CELL_THREADS = 256, NMS_THREADS = 1024, KEYS_SHARED = 2048 };

struct map_list {
    struct sac_fit_map map[CUDA_DETECT_IMAGES];
};

/* ---- the form ---- */

__global__ void __launch_bounds__(VALUE_THREADS)
    begin(const __grid_constant__ struct cuda_detect_params p)
{
    early_begin();
    __shared__ double all[VALUE_THREADS];
    const int         thread = threadIdx.x;
    const int64_t     values = sac_detect_values(&p.spec);
    double            own = sac_detect_nothing(&p.spec);
    for (int64_t i = thread; i < values; i += VALUE_THREADS)
        own = sac_detect_together(&p.spec, own,
                                  sac_detect_value(&p.spec, p.tensors, p.first + blockIdx.x, i));
    all[thread] = own;
    for (int half = VALUE_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half)
            all[thread] = sac_detect_together(&p.spec, all[thread], all[thread + half]);
    }
    if (thread == 0)
        p.state[blockIdx.x] = {0, 0, sac_detect_mode(&p.spec, all[0]), 0};
}

/* ---- cells ---- */

__global__ void __launch_bounds__(CELL_THREADS)
    decode(const __grid_constant__ struct cuda_detect_params p,
           const __grid_constant__ struct map_list           maps)
{
    early_begin();
    const int                 image = blockIdx.y, cell = blockIdx.x * CELL_THREADS + threadIdx.x;
    struct cuda_detect_state *state = &p.state[image];
    struct sac_detection      box;
    const bool                found =
        cell < p.spec.cells && sac_detect_box(&p.spec, p.tensors, p.first + image, cell,
                                              state->mode, &maps.map[image], &box);
    const unsigned lanes = __ballot_sync(~0u, found);
    const int      lane = threadIdx.x % 32;
    int            at = 0;
    if (lanes == 0)
        return;
    /* One atomic for a warp; the order in which they come does not matter: what follows sorts. */
    if (lane == 0)
        at = atomicAdd(&state->found, __popc(lanes));
    at = __shfl_sync(~0u, at, 0) + __popc(lanes & ((1u << lane) - 1));
    if (found) {
        p.candidates[(size_t)image * p.spec.cells + at] = box;
        p.cell[(size_t)image * p.spec.cells + at] = cell;
    }
}

/* ---- order ---- */

struct list {
    const struct sac_detection *box;
    const int32_t              *cell;
    int                         count;
};

/* The better the score the smaller the upper half; the lower one is the place in the list. */
__device__ uint64_t key_of(const struct list &l, int i)
{
    return (uint64_t)~__float_as_uint(l.box[i].score) << 32 | (uint32_t)i;
}

__device__ bool is_before(const struct list &l, uint64_t a, uint64_t b)
{
    if (a >> 32 != b >> 32)
        return a < b;
    const uint32_t i = (uint32_t)a, j = (uint32_t)b;
    if (i >= (uint32_t)l.count || j >= (uint32_t)l.count) /* what fills up to a power of two goes
                                                             last */
        return i < j;
    const int order = sac_detect_order(&l.box[i], &l.box[j]);
    return order ? order < 0 : l.cell[i] < l.cell[j];
}

/* Bitonic, n a power of two. */
__device__ void sort(const struct list &l, uint64_t *keys, int n)
{
    for (int size = 2; size <= n; size *= 2)
        for (int stride = size / 2; stride > 0; stride /= 2) {
            for (int t = threadIdx.x; t < n / 2; t += NMS_THREADS) {
                const int      i = 2 * t - (t & (stride - 1)), j = i + stride;
                const uint64_t a = keys[i], b = keys[j];
                if (is_before(l, b, a) == !(i & size)) {
                    keys[i] = b;
                    keys[j] = a;
                }
            }
            __syncthreads();
        }
}

/* ---- suppression ---- */

/* The first bit at or after i that is not set; n when there is none. */
__device__ int next_alive(const uint32_t *dead, int i, int n)
{
    for (int word = i / 32; i < n; word++, i = word * 32) {
        const uint32_t alive = ~dead[word] & ~0u << (i % 32);
        if (alive)
            return min(word * 32 + __ffs(alive) - 1, n);
    }
    return n;
}

/* place [kept]: where in box each came from; NULL: not asked for. */
__device__ int suppress(const struct cuda_detect_params &p, const struct sac_detection *box, int n,
                        uint32_t *dead, struct sac_detection *kept, int32_t *place)
{
    int count = 0;
    for (int i = threadIdx.x; i < (n + 31) / 32; i += NMS_THREADS)
        dead[i] = 0;
    __syncthreads();
    for (int i = 0; i < n && count < p.spec.keep; count++) {
        const struct sac_detection best = box[i];
        if (threadIdx.x == 0) {
            kept[count] = best;
            if (place)
                place[count] = i;
        }
        for (int j = i + 1 + threadIdx.x; j < n; j += NMS_THREADS)
            if (sac_detect_excludes(&p.spec, &best, &box[j]))
                atomicOr(&dead[j / 32], 1u << (j % 32));
        __syncthreads();
        i = next_alive(dead, i + 1, n);
        __syncthreads(); /* all have looked before anybody writes */
    }
    return count;
}

__global__ void __launch_bounds__(NMS_THREADS)
    nms(const __grid_constant__ struct cuda_detect_params p)
{
    early_begin();
    __shared__ uint64_t keys_shared[KEYS_SHARED];
    CUDA_SHARED_ROOM(uint32_t, dead); /* a bit per cell */
    const int                 image = blockIdx.x;
    const size_t              first = (size_t)image * p.spec.cells;
    struct cuda_detect_state *state = &p.state[image];
    const struct list         l = {p.candidates + first, p.cell + first, state->found};
    int                       n = 1;
    while (n < l.count)
        n *= 2;
    uint64_t *keys = n <= KEYS_SHARED ? keys_shared : p.keys + (size_t)image * p.keys_room;
    for (int i = threadIdx.x; i < n; i += NMS_THREADS)
        keys[i] = i < l.count ? key_of(l, i) : ~0ull;
    __syncthreads();
    sort(l, keys, n);
    struct sac_detection *sorted = p.sorted + first;
    for (int i = threadIdx.x; i < l.count; i += NMS_THREADS)
        sorted[i] = l.box[(uint32_t)keys[i]];
    __syncthreads();
    int32_t  *origins = p.origins ? p.origins + (size_t)image * p.spec.keep : nullptr;
    const int kept =
        suppress(p, sorted, l.count, dead, p.kept + (size_t)image * p.spec.keep, origins);
    if (threadIdx.x == 0)
        state->kept = kept;
    __syncthreads(); /* thread 0 wrote the places */
    for (int i = threadIdx.x; origins && i < kept; i += NMS_THREADS)
        origins[i] = l.cell[(uint32_t)keys[origins[i]]];
}

/* ---- packing ---- */

enum { BOX_WORDS = sizeof(struct sac_detection) / sizeof(uint32_t) };

__global__ void pack(const struct cuda_detect_state *state, const struct sac_detection *kept,
                     const int32_t *origins, int keep, struct cuda_detect_out out)
{
    early_begin();
    __shared__ int before;
    const int      image = blockIdx.x, n = state[image].kept;
    if (threadIdx.x == 0) {
        before = 0;
        out.count[image] = n;
    }
    __syncthreads();
    int sum = 0;
    for (int i = threadIdx.x; i < image; i += blockDim.x)
        sum += state[i].kept;
    if (sum)
        atomicAdd(&before, sum);
    __syncthreads();
    const uint32_t *words = (const uint32_t *)(kept + (size_t)image * keep);
    uint32_t       *to = out.boxes + (size_t)before * out.box_words;
    for (int i = threadIdx.x; i < n * out.box_words; i += blockDim.x)
        to[i] = words[i / out.box_words * BOX_WORDS + i % out.box_words];
    for (int i = threadIdx.x; i < n && origins; i += blockDim.x)
        out.origins[before + i] = origins[(size_t)image * keep + i];
}

} // namespace

extern "C" cudaError_t cuda_launch_detect(const struct cuda_detect_params *p,
                                          const struct sac_fit_map *maps, int n,
                                          cudaStream_t stream)
{
    struct map_list list;
    for (int i = 0; i < n; i++)
        list.map[i] = maps[i];
    CUDA_LAUNCH_ALONE(begin, n, VALUE_THREADS, 0, stream, *p);
    cudaError_t res = cudaGetLastError();
    if (p->spec.cells > 0 && res == cudaSuccess) {
        const dim3 grid((p->spec.cells + CELL_THREADS - 1) / CELL_THREADS, n);
        CUDA_LAUNCH_ALONE(decode, grid, CELL_THREADS, 0, stream, *p, list);
        res = cudaGetLastError();
    }
    if (res == cudaSuccess) {
        const size_t bits = (size_t)((p->spec.cells + 31) / 32) * sizeof(uint32_t);
        CUDA_LAUNCH_ALONE(nms, n, NMS_THREADS, bits, stream, *p);
        res = cudaGetLastError();
    }
    return res;
}

extern "C" cudaError_t cuda_launch_detect_pack(const struct cuda_detect_state *state,
                                               const struct sac_detection     *kept,
                                               const int32_t *origins, int keep, int n,
                                               const struct cuda_detect_out *out,
                                               cudaStream_t                  stream)
{
    CUDA_LAUNCH_ALONE(pack, n, 128, 0, stream, state, kept, origins, keep, *out);
    return cudaGetLastError();
}
