/* SPDX-License-Identifier: Apache-2.0 */
/* A frame and its matte to a picture: see vision/composite.h. A thread makes a run of eight pixels
 * of two rows and the chroma samples they share; what it reads of the frame it alone writes, so
 * that the frame may be the output. The matte around the tile is kept as one bit a pixel: then a
 * row of an outline's window is a shift and a count of bits. */
#include "vision/cuda/launch.h"

namespace
{

enum {
    THREADS_X = 32,
    THREADS_Y = 8,
    THREADS = THREADS_X * THREADS_Y,
    RUN = 8,
    ROWS = 2,
    TILE_X = THREADS_X * RUN,
    TILE_Y = THREADS_Y * ROWS,
    MARGIN = SAC_COMPOSITE_RADIUS_MAX,
    CHROMA = RUN / 2
};
static_assert(MARGIN < RUN, "a run beside the tile holds its margin");

/* ---- memory ---- */

template <int BYTES> struct alignas(BYTES) unit {
    uint32_t word[BYTES / 4];
};

template <int BYTES> struct unit_of {
    enum { bytes = BYTES % 16 == 0 ? 16 : BYTES % 8 == 0 ? 8 : 4 };
    typedef unit<bytes> type;
};

/* N numbers of which `count` are there, the last one again for the others. */
template <class NUMBER, int N>
__device__ void load(const NUMBER *from, int count, bool wide, NUMBER (&to)[N])
{
    typedef unit_of<N * sizeof(NUMBER)> piece;
    if (wide && count >= N) {
#pragma unroll
        for (int i = 0; i < (int)(N * sizeof(NUMBER) / piece::bytes); i++) {
            const typename piece::type v = ((const typename piece::type *)from)[i];
            memcpy((char *)to + i * piece::bytes, &v, sizeof v);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        to[i] = from[i < count ? i : count - 1];
}

template <class NUMBER, int N>
__device__ void store(const NUMBER (&from)[N], int count, bool wide, NUMBER *to)
{
    typedef unit_of<N * sizeof(NUMBER)> piece;
    if (wide && count >= N) {
#pragma unroll
        for (int i = 0; i < (int)(N * sizeof(NUMBER) / piece::bytes); i++) {
            typename piece::type v;
            memcpy(&v, (const char *)from + i * piece::bytes, sizeof v);
            ((typename piece::type *)to)[i] = v;
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        if (i < count)
            to[i] = from[i];
}

template <class NUMBER> __device__ NUMBER *row_of(const struct cuda_planes &f, int plane, int y)
{
    return (NUMBER *)(void *)(f.plane[plane] + (size_t)y * f.pitch[plane]);
}

/* What a format's numbers are; those with R, G and B in either order are alike. */
template <enum sac_pixel_format FORMAT> struct numbers {
    typedef uint8_t type;
    enum { step = 1 };
};
template <> struct numbers<SAC_PIXEL_P010> {
    typedef uint16_t type;
    enum { step = 1 };
};
template <> struct numbers<SAC_PIXEL_RGB24> {
    typedef uint8_t type;
    enum { step = 3 };
};
template <> struct numbers<SAC_PIXEL_RGBA> {
    typedef uint8_t type;
    enum { step = 4 };
};

/* N samples of STEP numbers of the frame. */
template <class NUMBER, int N, int STEP, bool TURNED>
__device__ void load_frame(const struct cuda_composite_params &p, int plane, int x, int y,
                           int count, NUMBER (&to)[N * STEP])
{
    if (TURNED) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            const int     at = x + (i < count ? i : count - 1);
            const NUMBER *sample =
                (const NUMBER *)(const void *)sac_row_of(&p.frame, true, plane, at, y);
#pragma unroll
            for (int c = 0; c < STEP; c++)
                to[i * STEP + c] = sample[c];
        }
    } else {
        const NUMBER *row = (const NUMBER *)(const void *)sac_row_of(&p.frame, false, plane, x, y);
        load(row + x * STEP, count * STEP, p.wide, to);
    }
}

/* ---- outlines ---- */

/* The pixels of a tile and around it that are inside, a bit each; a byte is a run. */
struct inside {
    uint8_t run[TILE_Y + 2 * MARGIN][THREADS_X + 2];
};

__device__ uint8_t bits_of(const struct cuda_composite_params &p, int x, int y)
{
    const int width = p.frame.width, height = p.frame.height;
    uint8_t   matte[RUN], bits = 0;
    y = y < 0 ? 0 : y < height ? y : height - 1;
    const uint8_t *row = row_of<uint8_t>(p.matte, 0, y);
    if (x >= 0 && x < width) {
        load(row + x, width - x, p.wide, matte);
    } else {
#pragma unroll
        for (int i = 0; i < RUN; i++)
            matte[i] = row[x < 0 ? 0 : width - 1];
    }
#pragma unroll
    for (int i = 0; i < RUN; i++)
        bits |= sac_composite_inside(matte[i]) << i;
    return bits;
}

__device__ void look_inside(const struct cuda_composite_params &p, int tile_x, int tile_y,
                            int thread, struct inside *inside)
{
    const int radius = p.plan.radius, rows = TILE_Y + 2 * radius;
    for (int i = thread; i < rows * (THREADS_X + 2); i += THREADS) {
        const int run = i % (THREADS_X + 2), row = i / (THREADS_X + 2);
        inside->run[row][run] = bits_of(p, tile_x + (run - 1) * RUN, tile_y + row - radius);
    }
}

/* Bits of the runs before, of and after a thread's. */
__device__ uint32_t three_runs(const struct inside *inside, int run, int row)
{
    const uint8_t *at = &inside->run[row][run];
    return at[0] | at[1] << RUN | at[2] << 2 * RUN;
}

/* The covers of a thread's pixels; false: they are all 0, as its windows are all inside or all
 * outside. */
__device__ bool outline(const struct inside *inside, int radius, int run, int row,
                        uint8_t (&cover)[ROWS][RUN])
{
    const uint32_t window = (1u << (2 * radius + 1)) - 1, around = ((1u << (RUN + 2 * radius)) - 1)
                                                                   << (RUN - radius);
    uint32_t any = 0, all = around;
    for (int k = 0; k < 2 * radius + ROWS; k++) {
        const uint32_t bits = three_runs(inside, run, row + k) & around;
        any |= bits;
        all &= bits;
    }
    if (!any || all == around)
        return false;
    uint8_t sum[ROWS][RUN] = {{0}};
    for (int k = 0; k < 2 * radius + ROWS; k++) {
        const uint32_t bits = three_runs(inside, run, row + k);
#pragma unroll
        for (int i = 0; i < RUN; i++) {
            const int count = __popc(bits >> (RUN + i - radius) & window);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                sum[r][i] += k >= r && k <= r + 2 * radius ? count : 0;
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS * RUN; i++)
        cover[i / RUN][i % RUN] = sac_composite_outline(radius, sum[i / RUN][i % RUN]);
    return true;
}

/* ---- what the matte asks for ---- */

/* Of a thread's pixels; those past the picture's edges are the last ones again. */
struct pixels {
    uint8_t matte[ROWS][RUN], weight[ROWS][RUN], cover[ROWS][RUN];
    bool    outlined;
};

__device__ uint8_t weigh(const struct sac_composite_plan &plan, uint8_t matte)
{
    switch (plan.kind) { /* the same for all threads */
    case SAC_COMPOSITE_BACKGROUND: return sac_composite_weight_background(matte);
    case SAC_COMPOSITE_CLASSES:
        return sac_composite_weight_class(plan.strength, plan.colours, matte);
    default: return sac_composite_weight_tint(plan.strength, matte);
    }
}

__device__ void read_matte(const struct cuda_composite_params &p, int x, int y, int count,
                           struct pixels *px)
{
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int row = y + r < p.frame.height ? y + r : p.frame.height - 1;
        load(row_of<const uint8_t>(p.matte, 0, row) + x, count, p.wide, px->matte[r]);
#pragma unroll
        for (int i = 0; i < RUN; i++)
            px->weight[r][i] = weigh(p.plan, px->matte[r][i]);
    }
}

/* Past the edges a cover is the last pixel's, not that of a window around what is not there. */
__device__ void end_covers(int columns, int rows, uint8_t (&cover)[ROWS][RUN])
{
#pragma unroll
    for (int i = 1; i < RUN; i++)
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            cover[r][i] = i < columns ? cover[r][i] : cover[r][i - 1];
#pragma unroll
    for (int i = 0; i < RUN; i++)
        cover[1][i] = rows > 1 ? cover[1][i] : cover[0][i];
}

__device__ uint8_t mean(const uint8_t (&of)[ROWS][RUN], int i)
{
    return sac_composite_mean(of[0][2 * i], of[0][2 * i + 1], of[1][2 * i], of[1][2 * i + 1]);
}

__device__ uint8_t mix(uint8_t from, uint16_t to, uint8_t weight)
{
    return sac_composite_mix_byte(from, (uint8_t)to, weight);
}

__device__ uint16_t mix(uint16_t from, uint16_t to, uint8_t weight)
{
    return sac_composite_mix_word(from, to, weight);
}

/* ---- luma, or R, G and B ---- */

__device__ void store_luma(const struct cuda_composite_params &p, int x, int y, int count,
                           const uint8_t (&luma)[RUN])
{
    store(luma, count, p.wide, row_of<uint8_t>(p.out, 0, y) + x);
}

__device__ void store_luma(const struct cuda_composite_params &p, int x, int y, int count,
                           const uint16_t (&luma)[RUN])
{
    if (p.to == SAC_PIXEL_P010) {
        store(luma, count, p.wide, row_of<uint16_t>(p.out, 0, y) + x);
        return;
    }
    uint8_t narrow[RUN];
#pragma unroll
    for (int i = 0; i < RUN; i++)
        narrow[i] = sac_composite_narrow(luma[i], p.full_range);
    store_luma(p, x, y, count, narrow);
}

template <int N>
__device__ void store_luma(const struct cuda_composite_params &p, int x, int y, int count,
                           const uint8_t (&rgb)[N])
{
    store(rgb, count * (N / RUN), p.wide, row_of<uint8_t>(p.out, 0, y) + x * (N / RUN));
}

template <enum sac_pixel_format FORMAT, bool TURNED>
__device__ void make_luma(const struct cuda_composite_params &p, int x, int y, int count,
                          const uint8_t (&matte)[RUN], const uint8_t (&weight)[RUN],
                          const uint8_t (&cover)[RUN], bool outlined)
{
    typedef typename numbers<FORMAT>::type number;
    enum { STEP = numbers<FORMAT>::step, MIXED = STEP < 3 ? STEP : 3 };
    const struct sac_composite_plan &plan = p.plan;
    const bool                       behind = p.background.plane[0] != nullptr;
    number                           run[STEP * RUN], back[STEP * RUN];
    load_frame<number, RUN, STEP, TURNED>(p, 0, x, y, count, run);
    if (behind)
        load(row_of<const number>(p.background, 0, y) + x * STEP, count * STEP, p.wide, back);
#pragma unroll
    for (int i = 0; i < RUN; i++)
#pragma unroll
        for (int c = 0; c < MIXED; c++) {
            const int at = i * STEP + c, colour = plan.kind == SAC_COMPOSITE_CLASSES ? matte[i] : 0;
            run[at] = mix(run[at], behind ? back[at] : plan.sample[colour][c], weight[i]);
            if (outlined)
                run[at] = mix(run[at], plan.sample[plan.outline][c], cover[i]);
        }
    store_luma(p, x, y, count, run);
}

/* ---- chroma ---- */

/* U and V of N samples, which lie side by side or in planes of their own. */
template <enum sac_pixel_format FORMAT, bool TURNED, class NUMBER>
__device__ void load_chroma(const struct cuda_composite_params &p, int x, int y, int count,
                            NUMBER (&uv)[2][CHROMA])
{
    if (FORMAT == SAC_PIXEL_I420) {
        load_frame<NUMBER, CHROMA, 1, TURNED>(p, 1, x, y, count, uv[0]);
        load_frame<NUMBER, CHROMA, 1, TURNED>(p, 2, x, y, count, uv[1]);
    } else {
        NUMBER pairs[2 * CHROMA];
        load_frame<NUMBER, CHROMA, 2, TURNED>(p, 1, x, y, count, pairs);
#pragma unroll
        for (int i = 0; i < 2 * CHROMA; i++)
            uv[i % 2][i / 2] = pairs[i];
    }
}

template <enum sac_pixel_format FORMAT, class NUMBER>
__device__ void load_background(const struct cuda_composite_params &p, int x, int y, int count,
                                NUMBER (&uv)[2][CHROMA])
{
    if (FORMAT == SAC_PIXEL_I420) {
        load(row_of<const NUMBER>(p.background, 1, y) + x, count, p.wide, uv[0]);
        load(row_of<const NUMBER>(p.background, 2, y) + x, count, p.wide, uv[1]);
    } else {
        NUMBER pairs[2 * CHROMA];
        load(row_of<const NUMBER>(p.background, 1, y) + 2 * x, 2 * count, p.wide, pairs);
#pragma unroll
        for (int i = 0; i < 2 * CHROMA; i++)
            uv[i % 2][i / 2] = pairs[i];
    }
}

template <class NUMBER>
__device__ void store_pairs(const struct cuda_composite_params &p, int x, int y, int count,
                            const NUMBER (&uv)[2][CHROMA])
{
    NUMBER pairs[2 * CHROMA];
#pragma unroll
    for (int i = 0; i < 2 * CHROMA; i++)
        pairs[i] = uv[i % 2][i / 2];
    store(pairs, 2 * count, p.wide, row_of<NUMBER>(p.out, 1, y) + 2 * x);
}

__device__ void store_chroma(const struct cuda_composite_params &p, int x, int y, int count,
                             const uint8_t (&uv)[2][CHROMA])
{
    if (p.to != SAC_PIXEL_I420) {
        store_pairs(p, x, y, count, uv);
        return;
    }
#pragma unroll
    for (int c = 0; c < 2; c++)
        store(uv[c], count, p.wide, row_of<uint8_t>(p.out, 1 + c, y) + x);
}

__device__ void store_chroma(const struct cuda_composite_params &p, int x, int y, int count,
                             const uint16_t (&uv)[2][CHROMA])
{
    if (p.to == SAC_PIXEL_P010) {
        store_pairs(p, x, y, count, uv);
        return;
    }
    uint8_t narrow[2][CHROMA];
#pragma unroll
    for (int i = 0; i < 2 * CHROMA; i++)
        narrow[i % 2][i / 2] = sac_composite_narrow(uv[i % 2][i / 2], p.full_range);
    store_chroma(p, x, y, count, narrow);
}

/* What U or V of sample i goes to. */
__device__ uint16_t chroma_of(const struct sac_composite_plan &plan, const struct pixels &px, int i,
                              int c)
{
    if (plan.kind != SAC_COMPOSITE_CLASSES)
        return plan.sample[0][1 + c];
    const uint8_t four[4] = {px.matte[0][2 * i], px.matte[0][2 * i + 1], px.matte[1][2 * i],
                             px.matte[1][2 * i + 1]};
    return sac_composite_class_chroma(&plan, four, 1 + c);
}

/* x, y: of the planes. */
template <enum sac_pixel_format FORMAT, bool TURNED>
__device__ void make_chroma(const struct cuda_composite_params &p, int x, int y, int count,
                            const struct pixels &px)
{
    typedef typename numbers<FORMAT>::type number;
    const bool                             behind = p.background.plane[0] != nullptr;
    number                                 uv[2][CHROMA], back[2][CHROMA];
    load_chroma<FORMAT, TURNED>(p, x, y, count, uv);
    if (behind)
        load_background<FORMAT>(p, x, y, count, back);
#pragma unroll
    for (int i = 0; i < CHROMA; i++) {
        const uint8_t weight = mean(px.weight, i);
        const uint8_t cover = px.outlined ? mean(px.cover, i) : 0;
#pragma unroll
        for (int c = 0; c < 2; c++) {
            uv[c][i] = mix(uv[c][i], behind ? back[c][i] : chroma_of(p.plan, px, i, c), weight);
            if (px.outlined)
                uv[c][i] = mix(uv[c][i], p.plan.sample[p.plan.outline][1 + c], cover);
        }
    }
    store_chroma(p, x, y, count, uv);
}

/* ---- the whole ---- */

template <enum sac_pixel_format FORMAT, bool TURNED>
__global__ void __launch_bounds__(THREADS)
    composite(const __grid_constant__ struct cuda_composite_params p)
{
    early_begin();
    __shared__ struct inside inside;
    const int                tile_x = blockIdx.x * TILE_X, tile_y = blockIdx.y * TILE_Y;
    const int                x = tile_x + threadIdx.x * RUN, y = tile_y + threadIdx.y * ROWS;
    struct pixels            px;
    px.outlined = p.plan.kind == SAC_COMPOSITE_TINT;
    if (px.outlined) {
        look_inside(p, tile_x, tile_y, threadIdx.y * THREADS_X + threadIdx.x, &inside);
        __syncthreads();
    }
    if (x >= p.frame.width || y >= p.frame.height)
        return;
    const int left = p.frame.width - x, count = left < RUN ? left : RUN, rows = p.frame.height - y;
    read_matte(p, x, y, count, &px);
    if (px.outlined)
        px.outlined = outline(&inside, p.plan.radius, threadIdx.x, threadIdx.y * ROWS, px.cover);
    if (px.outlined)
        end_covers(count, rows, px.cover);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        if (r < rows)
            make_luma<FORMAT, TURNED>(p, x, y + r, count, px.matte[r], px.weight[r], px.cover[r],
                                      px.outlined);
    if (FORMAT == SAC_PIXEL_NV12 || FORMAT == SAC_PIXEL_P010 || FORMAT == SAC_PIXEL_I420)
        make_chroma<FORMAT, TURNED>(p, x / 2, y / 2, (count + 1) / 2, px);
}

template <enum sac_pixel_format FORMAT>
void launch(const struct cuda_composite_params &p, cudaStream_t stream)
{
    const dim3 grid((p.frame.width + TILE_X - 1) / TILE_X, (p.frame.height + TILE_Y - 1) / TILE_Y);
    const dim3 block(THREADS_X, THREADS_Y);
    if (p.frame.turned)
        CUDA_LAUNCH((composite<FORMAT, true>), grid, block, stream, p);
    else
        CUDA_LAUNCH((composite<FORMAT, false>), grid, block, stream, p);
}

} // namespace

extern "C" cudaError_t cuda_launch_composite(const struct cuda_composite_params *p,
                                             cudaStream_t                        stream)
{
    switch (p->frame.format) {
    case SAC_PIXEL_NV12: launch<SAC_PIXEL_NV12>(*p, stream); break;
    case SAC_PIXEL_P010: launch<SAC_PIXEL_P010>(*p, stream); break;
    case SAC_PIXEL_I420: launch<SAC_PIXEL_I420>(*p, stream); break;
    case SAC_PIXEL_GRAY8: launch<SAC_PIXEL_GRAY8>(*p, stream); break;
    case SAC_PIXEL_RGB24:
    case SAC_PIXEL_BGR24: launch<SAC_PIXEL_RGB24>(*p, stream); break;
    default: launch<SAC_PIXEL_RGBA>(*p, stream); break;
    }
    return cudaGetLastError();
}
