/* SPDX-License-Identifier: Apache-2.0 */
#include "vision/picture.h"

#include "vision/cpu/cpu.h"

enum { ROWS_PER_PIECE = 32 };

static void run_piece(void *arg, int piece, int worker)
{
    const struct sac_picture_job *job = arg;
    const int                     end = SAC_MIN((piece + 1) * ROWS_PER_PIECE, job->height);
    (void)worker;
    for (int y = piece * ROWS_PER_PIECE; y < end; y++)
        for (int x = 0; x < job->width; x++)
            sac_picture_pixel(job, x, y, job->rows + (size_t)y * job->pitch + (size_t)x * 3);
}

sac_result sac_cpu_picture(struct sac_device *dev, struct sac_device_stream *stream,
                           const struct sac_picture_job *job)
{
    (void)stream; /* the CPU's runs at once */
    sac_device_parallel(dev, (job->height + ROWS_PER_PIECE - 1) / ROWS_PER_PIECE, run_piece,
                        (void *)job);
    return SAC_OK;
}
