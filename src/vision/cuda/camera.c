/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "vision/cuda/cuda.h"

enum { JOBS_MAX = 65535 /* blocks of a grid along y */, JOBS_USUAL = 64 };

/* What the launches need to know of all jobs together. */
struct totals {
    size_t box_bytes;
    int    tiles_max, cells_max;
    bool   turned;
};

static int tiles_along(int size)
{
    return (size + CUDA_CAMERA_TILE - 1) / CUDA_CAMERA_TILE;
}

static size_t box_bytes_of(const struct sac_camera_job *job)
{
    return (size_t)job->moving_count * (cuda_camera_is_small(&job->now.level[0])
                                            ? sizeof(struct cuda_camera_box)
                                            : sizeof *job->moving);
}

static struct totals totals_of(const struct sac_camera_job *jobs, int n)
{
    struct totals t = {0};
    for (int i = 0; i < n; i++) {
        const struct sac_camera_plane *level = &jobs[i].now.level[0];
        t.turned = t.turned || jobs[i].frame->orientation != SAC_UPRIGHT;
        t.box_bytes += box_bytes_of(&jobs[i]);
        t.cells_max = SAC_MAX(t.cells_max, sac_camera_cells_of(&jobs[i].now));
        t.tiles_max = SAC_MAX(t.tiles_max, tiles_along(level->width) * tiles_along(level->height));
    }
    return t;
}

/* The first even pixel that is not before v, in two pixels. */
static uint8_t half_of(int v)
{
    return (uint8_t)((SAC_CLAMP(v, 0, (int)CUDA_CAMERA_SMALL_MAX) + 1) / 2);
}

static void write_boxes(const struct sac_camera_job *job, struct cuda_camera_box *to)
{
    const struct sac_camera_box *box = job->moving;
    if (cuda_camera_is_small(&job->now.level[0]))
        for (int i = 0; i < job->moving_count; i++)
            to[i] = (struct cuda_camera_box){half_of(box[i].x0), half_of(box[i].y0),
                                             half_of(box[i].x1), half_of(box[i].y1)};
    else if (job->moving_count)
        memcpy(to, box, (size_t)job->moving_count * sizeof *box);
}

/* Brightness is read byte by byte, so that any row alignment works: one frame that failed would
 * fail the whole batch. */
static void write_jobs(const struct sac_camera_job *jobs, int n, struct cuda_camera_job *to,
                       struct cuda_camera_box *moving)
{
    uint32_t boxes = 0;
    for (int i = 0; i < n; i++) {
        const struct sac_camera_job *job = &jobs[i];
        const sac_frame             *frame = job->frame;
        const struct sac_plane_walk  luma = sac_plane_walk_of(frame, 0);
        const struct cuda_camera_job made = {.luma = luma.first,
                                             .now = job->now.level[0].pixels,
                                             .before = job->has_before ? job->before.level[0].pixels
                                                                       : NULL,
                                             .across = (int32_t)luma.across,
                                             .down = (int32_t)luma.down,
                                             .width = (uint16_t)frame->width,
                                             .height = (uint16_t)frame->height,
                                             .format = frame->format,
                                             .moving = boxes,
                                             .moving_count = (uint32_t)job->moving_count};
        memcpy(&to[i], &made, sizeof made);
        write_boxes(job, &moving[boxes]);
        boxes += (uint32_t)(box_bytes_of(job) / sizeof *moving);
    }
}

/* Reserve enough for many frames: the next batch may be larger. */
static size_t corner_bytes(int jobs, int cells_max)
{
    return ((size_t)SAC_MAX(jobs, (int)JOBS_USUAL) * (size_t)cells_max + 1) *
           sizeof *(struct cuda_camera_params){0}.corners;
}

sac_result cuda_reserve(struct sac_device *dev, struct sac_device_stream *stream,
                        const struct sac_camera_pyramid *like)
{
    void      *scratch = NULL;
    sac_result res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    res = cuda_commands_reserve(dev);
    if (res == SAC_OK && like)
        res = cuda_scratch_take(dev, stream, corner_bytes(0, sac_camera_cells_of(like)), &scratch);
    if (res == SAC_OK && like)
        cuda_scratch_return(dev, stream);
    cuda_leave();
    return res;
}

static sac_result launch(struct sac_device *dev, struct sac_device_stream *stream,
                         struct cuda_camera_params *p)
{
    void      *scratch = NULL;
    sac_result res = cuda_scratch_take(dev, stream, corner_bytes(p->n, p->cells_max), &scratch);
    if (res != SAC_OK)
        return res;
    p->corners = scratch;
    res = cuda_check(dev, cuda_launch_camera(p, cuda_stream_of(dev, stream)), "camera motion");
    cuda_scratch_return(dev, stream);
    return res;
}

static sac_result queue_jobs(struct sac_device *dev, struct sac_device_stream *stream,
                             const struct sac_camera_job *jobs, int n, struct sac_camera_move *out)
{
    const struct totals        t = totals_of(jobs, n);
    const size_t               job_bytes = (size_t)n * sizeof(struct cuda_camera_job);
    const size_t               bytes = job_bytes + t.box_bytes;
    struct cuda_command_block *block = NULL;
    sac_result                 res = cuda_commands_take(dev, bytes, &block);
    if (res != SAC_OK)
        return res;
    struct cuda_camera_params p = {.jobs = block->device,
                                   .moving = (void *)((char *)block->device + job_bytes),
                                   .out = out,
                                   .n = n,
                                   .tiles_max = t.tiles_max,
                                   .cells_max = t.cells_max,
                                   .turned = t.turned};
    write_jobs(jobs, n, block->host, (void *)((char *)block->host + job_bytes));
    res =
        cuda_commands_send(dev, stream, block, bytes, "boxes that the camera's motion leaves out");
    if (res == SAC_OK)
        res = launch(dev, stream, &p);
    cuda_commands_done(dev, stream, block);
    return res;
}

sac_result cuda_camera(struct sac_device *dev, struct sac_device_stream *stream,
                       const struct sac_camera_job *jobs, int n, struct sac_camera_move *out)
{
    if (n == 0)
        return SAC_OK;
    if (n > JOBS_MAX)
        return SAC_FAIL(dev->ctx, SAC_ERR_LIMIT,
                        "%s: camera motion of %d frames at once; up to %d go", dev->name, n,
                        (int)JOBS_MAX);
    sac_result res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    res = queue_jobs(dev, stream, jobs, n, out);
    cuda_leave();
    return res;
}
