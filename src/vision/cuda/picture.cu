/* SPDX-License-Identifier: Apache-2.0 */
/* A thread makes four pixels of a row: where all four are inside, three words are stored. Lanes lie
 * along the row, so planar numbers are read side by side. */
#include "vision/cuda/launch.h"

namespace
{

enum { THREADS_X = 32, THREADS_Y = 8, PIXELS = 4 };

__global__ void __launch_bounds__(THREADS_X *THREADS_Y)
    picture(const __grid_constant__ struct sac_picture_job job, bool words)
{
    early_begin();
    const int x = (blockIdx.x * THREADS_X + threadIdx.x) * PIXELS;
    const int y = blockIdx.y * THREADS_Y + threadIdx.y;
    if (x >= job.width || y >= job.height)
        return;
    union {
        uint8_t  bytes[3 * PIXELS];
        uint32_t words[3];
    } made;
    const int n = job.width - x < PIXELS ? job.width - x : PIXELS;
    uint8_t  *to = job.rows + (size_t)y * job.pitch + (size_t)x * 3;
    for (int k = 0; k < n; k++)
        sac_picture_pixel(&job, x + k, y, made.bytes + 3 * k);
    if (words && n == PIXELS) {
        for (int k = 0; k < 3; k++)
            ((uint32_t *)to)[k] = made.words[k];
        return;
    }
    for (int k = 0; k < 3 * n; k++)
        to[k] = made.bytes[k];
}

} // namespace

extern "C" cudaError_t cuda_launch_picture(const struct sac_picture_job *job, cudaStream_t stream)
{
    const bool words = ((uintptr_t)job->rows | job->pitch) % 4 == 0;
    const dim3 grid((job->width + THREADS_X * PIXELS - 1) / (THREADS_X * PIXELS),
                    (job->height + THREADS_Y - 1) / THREADS_Y);
    CUDA_LAUNCH(picture, grid, dim3(THREADS_X, THREADS_Y), stream, *job, words);
    return cudaGetLastError();
}
