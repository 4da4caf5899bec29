/* SPDX-License-Identifier: Apache-2.0 */
/* All lists of a wave go to the GPU as one, then one launch adds and one compares. */
#include <string.h>

#include "vision/cuda/cuda.h"

enum { ASKS_MAX = 65535 /* blocks of a grid along y */ };

/* Where the lists begin in a block of commands: those of 8 byte addresses first. */
struct places {
    size_t updates, slots, rows, asks, bytes;
};

static struct places places_of(const struct sac_appearance_job *job)
{
    struct places at = {.slots = (size_t)job->update_count * sizeof *job->updates};
    size_t        slots = 0, rows = 0;
    for (int i = 0; i < job->ask_count; i++) {
        slots += (size_t)job->asks[i].objects;
        rows += (size_t)job->asks[i].candidates;
    }
    at.rows = at.slots + slots * sizeof(void *);
    at.asks = at.rows + rows * sizeof(float *);
    at.bytes = at.asks + (size_t)job->ask_count * sizeof(struct cuda_appearance_ask);
    return at;
}

/* Returns the most numbers of one ask. */
static size_t write_lists(const struct sac_appearance_job *job, const struct places *at, char *to)
{
    struct cuda_appearance_ask next = {0};
    size_t                     most = 0;
    if (job->update_count)
        memcpy(to + at->updates, job->updates, (size_t)job->update_count * sizeof *job->updates);
    for (int i = 0; i < job->ask_count; i++) {
        const struct sac_appearance_ask *ask = &job->asks[i];
        const size_t slots = (size_t)ask->objects, rows = (size_t)ask->candidates;
        next.objects = ask->objects;
        next.candidates = ask->candidates;
        if (slots)
            memcpy(to + at->slots + next.slots * sizeof(void *), ask->slots,
                   slots * sizeof(void *));
        if (rows)
            memcpy(to + at->rows + next.rows * sizeof(float *), ask->rows, rows * sizeof(float *));
        memcpy(to + at->asks + (size_t)i * sizeof next, &next, sizeof next);
        next.slots += (uint32_t)slots;
        next.rows += (uint32_t)rows;
        next.out += sac_appearance_ask_out(ask);
        most = SAC_MAX(most, sac_appearance_ask_out(ask));
    }
    return most;
}

static sac_result queue_lists(struct sac_device *dev, struct sac_device_stream *stream,
                              const struct sac_appearance_job *job, const struct places *at)
{
    struct cuda_command_block *block = NULL;
    sac_result                 res = cuda_commands_take(dev, at->bytes, &block);
    if (res != SAC_OK)
        return res;
    char                         *there = block->device;
    struct cuda_appearance_params p = {.shape = job->shape,
                                       .updates = (void *)(there + at->updates),
                                       .slots = (void *)(there + at->slots),
                                       .rows = (void *)(there + at->rows),
                                       .asks = (void *)(there + at->asks),
                                       .update_count = job->update_count,
                                       .ask_count = job->ask_count,
                                       .pairs_max = (int)write_lists(job, at, block->host),
                                       .out = job->out};
    res = cuda_commands_send(dev, stream, block, at->bytes, "appearance of tracks");
    if (res == SAC_OK)
        res = cuda_check(dev, cuda_launch_appearance(&p, cuda_stream_of(dev, stream)),
                         "appearance of tracks");
    cuda_commands_done(dev, stream, block);
    return res;
}

sac_result cuda_appearance(struct sac_device *dev, struct sac_device_stream *stream,
                           const struct sac_appearance_job *job)
{
    const struct places at = places_of(job);
    if (!job->update_count && !job->ask_count)
        return SAC_OK;
    if (job->ask_count > ASKS_MAX)
        return SAC_FAIL(dev->ctx, SAC_ERR_LIMIT,
                        "%s: appearance in %d streams at once; up to %d go", dev->name,
                        job->ask_count, (int)ASKS_MAX);
    sac_result res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    res = queue_lists(dev, stream, job, &at);
    cuda_leave();
    return res;
}
