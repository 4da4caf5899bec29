/* SPDX-License-Identifier: Apache-2.0 */
/* A task (src/pipeline/task.h), as small as one can be: how bright each frame is, and how much
 * brighter than the one before in its stream. tests/pipeline/test_task.c runs it. */
#include "pipeline/job.h"
#include "pipeline/task.h"

enum { TOY_STREAMS = 4 };

struct toy_run {
    struct sac_task_run base;
    double              before[TOY_STREAMS]; /* the finishing thread's */
};

struct toy_own { /* item->own */
    double mean, brighter;
};

static sac_result toy_land(struct sac_task_run *run, int slot, struct sac_item *const *items, int n)
{
    (void)slot;
    for (int i = 0; i < n; i++) {
        const sac_frame *frame = items[i]->frame;
        struct toy_own  *own = items[i]->own ? items[i]->own : sac_new(struct toy_own);
        if (!(items[i]->own = own))
            return SAC_FAIL(run->job->ctx, SAC_ERR_MEMORY, "no memory for a frame's brightness");
        own->mean = 0;
        for (int y = 0; y < frame->height; y++)
            for (int x = 0; x < frame->width; x++)
                own->mean += frame->plane[0][(size_t)y * frame->pitch_bytes[0] + (size_t)x];
        own->mean /= (double)frame->width * frame->height;
    }
    return SAC_OK;
}

static void toy_finish(struct sac_task_run *run, struct sac_item *const *items, int n)
{
    double *before = ((struct toy_run *)run)->before;
    for (int i = 0; i < n; i++) {
        struct toy_own *own = items[i]->own;
        own->brighter = own->mean - before[items[i]->stream_id];
        before[items[i]->stream_id] = own->mean;
    }
}

static void toy_forget(struct sac_task_run *run, int stream_id)
{
    ((struct toy_run *)run)->before[stream_id] = 0;
}

static const struct sac_task toy_task = {.name = "brightness",
                                         .size = sizeof(struct toy_run),
                                         .land = toy_land,
                                         .finish = toy_finish,
                                         .forget = toy_forget,
                                         .own_free = sac_free};
