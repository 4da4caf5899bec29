/* SPDX-License-Identifier: Apache-2.0 */
/* A block takes a tile of an image's map, a thread a cell. The boxes that touch the tile come in
 * groups, whose coefficients the block shares; a cell's prototypes are read once where they are as
 * many as networks have, and not at all where no box is.
 *
 * The sums of boxes by themselves: a block takes a box, a thread every so many of its cells. */
#include "vision/cuda/launch.h"

namespace
{

enum { TILE_X = 32, TILE_Y = 8, THREADS = TILE_X * TILE_Y, GROUP = 16, USUAL = 32 };

struct group {
    struct sac_instances_window in[GROUP];
    int                         label[GROUP]; /* class; below 0: the box does not touch the tile */
    float                       coefficient[GROUP * SAC_INSTANCES_NUMBERS_MAX];
};

struct tile {
    int image, x0, y0;
};

__device__ bool touches(const struct sac_instances_window &in, const struct tile &t)
{
    return in.x0 < in.x1 && in.y0 < in.y1 && in.x0 < t.x0 + TILE_X && in.x1 > t.x0 &&
           in.y0 < t.y0 + TILE_Y && in.y1 > t.y0;
}

/* Boxes first to first + GROUP of the list, those past its end touch nothing. false: none does. */
__device__ bool read_group(const struct cuda_instances_params &p, const struct tile &t, int first,
                           int end, struct group *g)
{
    const struct sac_detect_field *f = &p.spec.coefficient;
    const void *const              tensors[1] = {p.coefficients};
    const int                      thread = threadIdx.x, numbers = p.spec.numbers;
    bool                           any = false;
    if (thread < GROUP) {
        const int box = first + thread;
        g->label[thread] = -1;
        if (box < end) {
            g->in[thread] = sac_instances_window_of(&p.spec, &p.boxes[box]);
            if (touches(g->in[thread], t))
                g->label[thread] = p.boxes[box].class_id;
        }
    }
    __syncthreads();
    for (int i = 0; i < GROUP; i++)
        any = any || g->label[i] >= 0;
    for (int i = thread; any && i < GROUP * numbers; i += THREADS) {
        const int box = i / numbers, k = i % numbers;
        if (g->label[box] >= 0)
            g->coefficient[i] = sac_detect_read(
                f, tensors, sac_detect_at(f, t.image, p.origins[first + box]) + k * f->number);
    }
    __syncthreads();
    return any;
}

template <int NUMBERS, class STEP> __device__ void read_cell(float (&own)[NUMBERS], STEP step)
{
#pragma unroll
    for (int k = 0; k < NUMBERS; k++)
        step(own[k]);
}

/* The kind of number is asked for once: with the question in the loop its registers would leave a
 * block alone on its multiprocessor. */
template <int NUMBERS>
__device__ void read_prototypes(const struct cuda_instances_params &p, int64_t at,
                                float (&own)[NUMBERS])
{
    const struct sac_detect_field *f = &p.spec.prototype;
    if (f->dtype == SAC_F16) {
        const uint16_t *from = (const uint16_t *)p.prototypes + at;
        read_cell(own, [&](float &v) { v = sac_float_of_half(*from), from += f->number; });
    } else {
        const float *from = (const float *)p.prototypes + at;
        read_cell(own, [&](float &v) { v = *from, from += f->number; });
    }
}

/* NUMBERS 0: as many as there are. */
template <int NUMBERS>
__global__ void __launch_bounds__(THREADS, 3)
    instances(const __grid_constant__ struct cuda_instances_params p)
{
    early_begin();
    __shared__ struct group        g;
    const struct sac_detect_field *f = &p.spec.prototype;
    const void *const              tensors[1] = {p.prototypes};
    const int                      columns = (p.spec.width + TILE_X - 1) / TILE_X;
    const struct tile              t = {(int)blockIdx.y, (int)blockIdx.x % columns * TILE_X,
                                        (int)blockIdx.x / columns * TILE_Y};
    const int                      x = t.x0 + threadIdx.x % TILE_X, y = t.y0 + threadIdx.x / TILE_X;
    const bool                     inside = x < p.spec.width && y < p.spec.height;
    const int64_t                  at =
        inside ? sac_detect_at(f, t.image, (int64_t)y * p.spec.width + x) : (int64_t)0;
    const int                 numbers = NUMBERS ? NUMBERS : p.spec.numbers;
    float                     own[NUMBERS ? NUMBERS : 1];
    bool                      read = false;
    struct sac_instances_cell cell = sac_instances_nothing(&p.spec);
    int                       first = 0;
    for (int i = 0; i < t.image; i++)
        first += p.count[i];
    const int end = first + p.count[t.image];
    for (; first < end; first += GROUP) {
        const bool any = read_group(p, t, first, end, &g);
        if (NUMBERS && inside && any && !read) {
            read_prototypes(p, at, own);
            read = true;
        }
        for (int i = 0; i < GROUP && inside && any; i++) {
            const struct sac_instances_window in = g.in[i];
            if (g.label[i] < 0 || x < in.x0 || x >= in.x1 || y < in.y0 || y >= in.y1)
                continue;
            float sum = 0;
            for (int k = 0; k < numbers; k++)
                sum = sac_instances_add(sum, g.coefficient[i * numbers + k],
                                        NUMBERS ? own[NUMBERS ? k : 0]
                                                : sac_detect_read(f, tensors, at + k * f->number));
            sac_instances_take(&cell, sum, g.label[i]);
        }
        __syncthreads(); /* all have looked before the next group comes */
    }
    if (inside)
        p.out[((size_t)t.image * p.spec.height + y) * p.spec.width + x] =
            sac_instances_number(&p.spec, &cell);
}

/* Cells of the first `count` boxes; all threads get the number. */
__device__ int64_t cells_of(const struct cuda_instances_params &p,
                            const struct sac_detection *boxes, int count)
{
    __shared__ unsigned long long sum;
    unsigned long long            own = 0;
    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += THREADS) {
        const struct sac_instances_window w = sac_instances_about(&p.spec, &p.sums, &boxes[i]);
        own += (unsigned long long)sac_instances_area(&w);
    }
    if (own)
        atomicAdd(&sum, own);
    __syncthreads();
    return (int64_t)sum;
}

__global__ void __launch_bounds__(THREADS)
    instance_sums(const __grid_constant__ struct cuda_instances_params p)
{
    early_begin();
    __shared__ float               coefficient[SAC_INSTANCES_NUMBERS_MAX];
    const struct sac_detect_field *c = &p.spec.coefficient, *f = &p.spec.prototype;
    const void *const coefficients[1] = {p.coefficients}, *const tensors[1] = {p.prototypes};
    const int image = blockIdx.y, box = blockIdx.x;
    int       first = 0;
    for (int i = 0; i < image; i++)
        first += p.count[i];
    if (box >= p.count[image])
        return;
    const struct sac_instances_window w =
        sac_instances_about(&p.spec, &p.sums, &p.boxes[first + box]);
    const int64_t area = sac_instances_area(&w), before = cells_of(p, p.boxes + first, box);
    if (before + area > p.sums.room)
        return;
    for (int k = threadIdx.x; k < p.spec.numbers; k += THREADS)
        coefficient[k] = sac_detect_read(
            c, coefficients, sac_detect_at(c, image, p.origins[first + box]) + k * c->number);
    __syncthreads();
    float    *out = p.sums.out + (int64_t)image * p.sums.room + before;
    const int across = w.x1 - w.x0;
    for (int i = threadIdx.x; i < area; i += THREADS) {
        const int64_t cell = (int64_t)(w.y0 + i / across) * p.spec.width + w.x0 + i % across,
                      at = sac_detect_at(f, image, cell);
        float sum = 0;
        for (int k = 0; k < p.spec.numbers; k++)
            sum = sac_instances_add(sum, coefficient[k],
                                    sac_detect_read(f, tensors, at + k * f->number));
        out[i] = sac_instances_sum(sum);
    }
}

} // namespace

extern "C" cudaError_t cuda_launch_instances(const struct cuda_instances_params *p, int n,
                                             cudaStream_t stream)
{
    const int columns = (p->spec.width + TILE_X - 1) / TILE_X,
              rows = (p->spec.height + TILE_Y - 1) / TILE_Y;
    const dim3 grid(columns * rows, n);
    if (p->spec.numbers == USUAL)
        CUDA_LAUNCH(instances<USUAL>, grid, THREADS, stream, *p);
    else
        CUDA_LAUNCH(instances<0>, grid, THREADS, stream, *p);
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_instance_sums(const struct cuda_instances_params *p, int n,
                                                 cudaStream_t stream)
{
    CUDA_LAUNCH(instance_sums, dim3(p->spec.keep, n), THREADS, stream, *p);
    return cudaGetLastError();
}
