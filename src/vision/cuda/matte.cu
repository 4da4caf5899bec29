/* SPDX-License-Identifier: Apache-2.0 */
/* Mattes of a batch of frames. All that does not depend on the frame before is done for all frames
 * at once: the shares and luma of cells, the search for where blocks were. Frames of one stream
 * follow each other in the batch: a thread goes through all of them with the cells that stay where
 * they are, and from one that moved it goes back through those before, so that they need one
 * launch. Where pixels lie among cells each block computes for its rows and columns, in double, as
 * the host does. */
#include "vision/cuda/matte_motion.cuh"
#include "vision/cuda/matte_pixels.cuh"
#include "vision/cuda/matte_windows.cuh"

namespace
{

static_assert(sizeof(cuda_matte_params) <= 4096, "a launch's parameters");

/* ---- summaries ---- */

__global__ void clear_summaries(const __grid_constant__ cuda_matte_params p)
{
    early_begin();
    const cuda_matte_job &job = p.jobs[threadIdx.x];
    if (!job.summary)
        return;
    *job.summary = sac_matte_summary{};
    *job.sum = cuda_matte_sum{};
}

/* ---- the state ---- */

/* Planes that were made elsewhere because their place was still read. */
__global__ void __launch_bounds__(THREADS) keep_planes(const __grid_constant__ cuda_matte_params p)
{
    early_begin();
    const cuda_matte_job &job = p.jobs[blockIdx.z];
    const int             width = job.x.cells, height = job.y.cells;
    if (!job.share_kept)
        return;
    const tile t = tile_of(QUAD_TILE, QUADS);
    const int  x = t.x + threadIdx.x * PIXELS - MARGIN, y = t.y + threadIdx.y - MARGIN;
    if (x >= width + MARGIN || y >= height + MARGIN)
        return;
    const ptrdiff_t luma_at = (ptrdiff_t)y * p.luma_pitch + x;
    uint8_t         luma[PIXELS];
    int16_t         share[PIXELS];
    const int       lumas = clamp_to(width + MARGIN - x, 0, PIXELS);
    load_four(job.luma + luma_at, lumas, luma);
    store_four(job.luma_kept + luma_at, lumas, luma);
    if (x < 0 || x >= width || y < 0 || y >= height)
        return;
    const ptrdiff_t at = (ptrdiff_t)y * p.spec.width + x;
    const int       shares = clamp_to(width - x, 0, PIXELS);
    load_four(job.share + at, shares, share);
    store_four(job.share_kept + at, shares, share);
}

/* ---- launches ---- */

int pieces(int of, int size)
{
    return (of + size - 1) / size;
}

/* A block for each tile of cells of each job. */
dim3 tiles(const cuda_matte_params &p, int around, int width, int height)
{
    return dim3(pieces(p.cells_x_max + 2 * around, width),
                pieces(p.cells_y_max + 2 * around, height), p.n);
}

dim3 quads(const cuda_matte_params &p)
{
    return tiles(p, 0, QUAD_TILE, QUADS);
}

dim3 areas(const cuda_matte_params &p, int height)
{
    return dim3(pieces(p.pixels_x_max, CUDA_MATTE_AREA_X), pieces(p.pixels_y_max, height), p.n);
}

void launch_motion(const cuda_matte_params &p, cudaStream_t stream)
{
    const dim3 blocks(pieces(p.cells_x_max, BLOCK * WARPS), pieces(p.cells_y_max, BLOCK), p.n);
    const dim3 block(QUADS, QUADS);
    CUDA_LAUNCH(search_blocks, blocks, THREADS, stream, p);
    CUDA_LAUNCH(find_cells, quads(p), block, stream, p);
    if (p.chain_max > 2)
        CUDA_LAUNCH(take_over<CUDA_MATTE_JOBS_MAX>, quads(p), block, stream, p);
    else if (p.chain_max == 2)
        CUDA_LAUNCH(take_over<2>, quads(p), block, stream, p);
    else
        CUDA_LAUNCH(take_over<1>, quads(p), block, stream, p);
}

dim3 strips(const cuda_matte_params &p, int walk)
{
    return tiles(p, 0, LANES - 2 * p.guide, WALKS * walk);
}

/* Few rows of a warp, so that no cell waits for many others, but no more blocks than are at work at
 * once: each reads the rows around its own too. */
int rows_of_walk(const cuda_matte_params &p)
{
    int walk = WALK_MIN;
    for (; walk < WALK_MAX; walk *= 2) {
        const dim3 blocks = strips(p, walk);
        if (blocks.x * blocks.y * blocks.z <= STRIPS)
            break;
    }
    return walk;
}

void launch_lines(const cuda_matte_params &p, cudaStream_t stream)
{
    const int  walk = rows_of_walk(p);
    const dim3 blocks = strips(p, walk), block(LANES, WALKS);
    CUDA_LAUNCH(walk_windows<fit_rule>, blocks, block, stream, p, walk);
    CUDA_LAUNCH(walk_windows<mean_rule>, blocks, block, stream, p, walk);
}

template <typename T, reading READING>
void launch_read(const cuda_matte_params &p, cudaStream_t stream)
{
    const dim3 block(TILE_X, TILE_Y), pixels = areas(p, CUDA_MATTE_AREA_Y), threads(ACROSS, DOWN);
    CUDA_LAUNCH((fill_cells<T, READING>), quads(p), dim3(QUADS, QUADS), stream, p);
    if (p.chain_max > 0)
        launch_motion(p, stream);
    if (p.hole > 0)
        CUDA_LAUNCH(close_holes, tiles(p, 0, CLOSE_X - 2 * p.hole, CLOSE_Y - 2 * p.hole), block,
                    stream, p);
    if (p.guide > 0) {
        launch_lines(p, stream);
        CUDA_LAUNCH((fill_pixels<guided_cells, READING>), pixels, threads, stream, p);
    } else {
        CUDA_LAUNCH((fill_pixels<level_cells, WORDS>), pixels, threads, stream, p);
    }
    if (p.kept)
        CUDA_LAUNCH(keep_planes, tiles(p, MARGIN, QUAD_TILE, QUADS), dim3(QUADS, QUADS), stream, p);
}

template <typename T> void launch_matte(const cuda_matte_params &p, cudaStream_t stream)
{
    if (p.turned)
        launch_read<T, TURNED>(p, stream);
    else if (p.upright)
        launch_read<T, UPRIGHT>(p, stream);
    else
        launch_read<T, WORDS>(p, stream);
}

template <typename T> void launch(const cuda_matte_params &p, cudaStream_t stream)
{
    const dim3 grid = areas(p, CUDA_MATTE_CLASS_Y), block(TILE_X, TILE_Y);
    if (!p.classes)
        launch_matte<T>(p, stream);
    else if (p.spec.form == SAC_MATTE_LABEL)
        CUDA_LAUNCH(fill_labels<T>, grid, block, stream, p);
    else
        CUDA_LAUNCH(fill_classes<T>, grid, block, stream, p);
}

} // namespace

extern "C" cudaError_t cuda_launch_matte(const struct cuda_matte_params *p, cudaStream_t stream)
{
    if (p->summaries)
        CUDA_LAUNCH(clear_summaries, 1, p->n, stream, *p);
    if (p->pixels_x_max == 0)
        return cudaGetLastError();
    switch (p->spec.value.dtype) {
    case SAC_F16: launch<half_bits>(*p, stream); break;
    case SAC_I32: launch<int32_t>(*p, stream); break;
    case SAC_I64: launch<int64_t>(*p, stream); break;
    default: launch<float>(*p, stream); break;
    }
    return cudaGetLastError();
}
