/* SPDX-License-Identifier: Apache-2.0 */
/* All lists of a wave go to the GPU as one, then one launch adds and one compares. */
#include "vision/cuda/cuda.h"

enum { ASKS_MAX = 65535 /* blocks of a grid along y */ };

/* Addresses to send, and where to. */
struct addresses {
    uintptr_t lowest, highest;
    size_t    count, unit_bytes;
    size_t    at, written; /* at: in the block of commands */
};

/* What a job takes, and where its lists begin in a block of commands: the longest numbers first. */
struct lists {
    struct addresses slots, rows;
    size_t           times, numbers; /* how many */
    bool             wide;
    size_t           asks_at, updates_at, bytes;
};

/* ---- what there is ---- */

static void count_address(struct addresses *list, const void *address)
{
    const uintptr_t a = (uintptr_t)address;
    list->lowest = list->count ? SAC_MIN(list->lowest, a) : a;
    list->highest = SAC_MAX(list->highest, a);
    list->count++;
}

static bool is_far(const struct addresses *list)
{
    return (list->highest - list->lowest) / list->unit_bytes > UINT32_MAX;
}

/* Updates of one frame stand side by side. */
static bool has_new_time(const struct sac_appearance_job *job, int update)
{
    return update == 0 || job->updates[update].now_s != job->updates[update - 1].now_s;
}

static void count_all(const struct sac_appearance_job *job, struct lists *l)
{
    for (int i = 0; i < job->update_count; i++) {
        count_address(&l->slots, job->updates[i].slot);
        count_address(&l->rows, job->updates[i].row);
        l->times += has_new_time(job, i);
    }
    for (int i = 0; i < job->ask_count; i++) {
        const struct sac_appearance_ask *ask = &job->asks[i];
        for (int k = 0; k < ask->objects; k++)
            count_address(&l->slots, ask->slots[k]);
        for (int k = 0; k < ask->candidates; k++)
            count_address(&l->rows, ask->rows[k]);
        l->numbers += sac_appearance_ask_out(ask);
    }
}

/* One more says where the last one ends. */
static int asks_sent(const struct sac_appearance_job *job)
{
    return job->ask_count ? job->ask_count + 1 : 0;
}

static struct lists lists_of(const struct sac_appearance_job *job)
{
    struct lists l = {.slots.unit_bytes = SAC_APPEARANCE_SLOT_ALIGN,
                      .rows.unit_bytes = sizeof(float)};
    count_all(job, &l);
    l.wide = is_far(&l.slots) || is_far(&l.rows);
    const size_t address_bytes = l.wide ? sizeof(uint64_t) : sizeof(uint32_t);
    l.slots.at = l.times * sizeof(double);
    l.rows.at = l.slots.at + l.slots.count * address_bytes;
    l.asks_at = l.rows.at + l.rows.count * address_bytes;
    l.updates_at = l.asks_at + (size_t)asks_sent(job) * sizeof(struct cuda_appearance_ask);
    l.bytes = l.updates_at + (size_t)job->update_count * sizeof(struct cuda_appearance_update);
    return l;
}

/* ---- the block of commands ---- */

static void write_address(struct addresses *list, bool wide, char *to, const void *address)
{
    const uint64_t units = ((uintptr_t)address - list->lowest) / list->unit_bytes;
    if (wide)
        ((uint64_t *)(void *)(to + list->at))[list->written++] = units;
    else
        ((uint32_t *)(void *)(to + list->at))[list->written++] = (uint32_t)units;
}

static void write_updates(const struct sac_appearance_job *job, struct lists *l, char *to)
{
    double                        *times = (void *)to;
    struct cuda_appearance_update *updates = (void *)(to + l->updates_at);
    uint32_t                       time = 0;
    for (int i = 0; i < job->update_count; i++) {
        const struct sac_appearance_update *u = &job->updates[i];
        write_address(&l->slots, l->wide, to, u->slot);
        write_address(&l->rows, l->wide, to, u->row);
        time += i > 0 && has_new_time(job, i);
        times[time] = u->now_s;
        updates[i].time = time & INT32_MAX;
        updates[i].fresh = u->fresh;
    }
}

/* Returns the most numbers of one ask. */
static size_t write_asks(const struct sac_appearance_job *job, struct lists *l, char *to)
{
    struct cuda_appearance_ask *asks = (void *)(to + l->asks_at);
    size_t                      out = 0, most = 0;
    for (int i = 0; i < asks_sent(job); i++) {
        const struct sac_appearance_ask *ask = &job->asks[i];
        asks[i] = (struct cuda_appearance_ask){(uint32_t)l->slots.written,
                                               (uint32_t)l->rows.written, (uint32_t)out};
        if (i == job->ask_count)
            break;
        for (int k = 0; k < ask->objects; k++)
            write_address(&l->slots, l->wide, to, ask->slots[k]);
        for (int k = 0; k < ask->candidates; k++)
            write_address(&l->rows, l->wide, to, ask->rows[k]);
        out += sac_appearance_ask_out(ask);
        most = SAC_MAX(most, sac_appearance_ask_out(ask));
    }
    return most;
}

static struct cuda_addresses sent(const struct addresses *list, char *there)
{
    return (struct cuda_addresses){(char *)list->lowest, there + list->at,
                                   (uint32_t)list->unit_bytes};
}

static sac_result queue_lists(struct sac_device *dev, struct sac_device_stream *stream,
                              const struct sac_appearance_job *job, struct lists *l)
{
    struct cuda_command_block *block = NULL;
    sac_result                 res = cuda_commands_take(dev, l->bytes, &block);
    if (res != SAC_OK)
        return res;
    write_updates(job, l, block->host);
    char                               *there = block->device;
    const struct cuda_appearance_params p = {.shape = job->shape,
                                             .wide = l->wide,
                                             .slots = sent(&l->slots, there),
                                             .rows = sent(&l->rows, there),
                                             .times = block->device,
                                             .updates = (void *)(there + l->updates_at),
                                             .asks = (void *)(there + l->asks_at),
                                             .update_count = job->update_count,
                                             .ask_count = job->ask_count,
                                             .pairs_max = (int)write_asks(job, l, block->host),
                                             .out = job->out};
    res = cuda_commands_send(dev, stream, block, l->bytes, "appearance of tracks");
    if (res == SAC_OK)
        res = cuda_check(dev, cuda_launch_appearance(&p, cuda_stream_of(dev, stream)),
                         "appearance of tracks");
    cuda_commands_done(dev, stream, block);
    return res;
}

sac_result cuda_appearance(struct sac_device *dev, struct sac_device_stream *stream,
                           const struct sac_appearance_job *job)
{
    struct lists l = lists_of(job);
    if (!job->update_count && !job->ask_count)
        return SAC_OK;
    if (job->ask_count > ASKS_MAX || l.numbers > UINT32_MAX)
        return SAC_FAIL(dev->ctx, SAC_ERR_LIMIT,
                        "%s: %zu distances in %d streams at once; up to %u in %d go", dev->name,
                        l.numbers, job->ask_count, (unsigned)UINT32_MAX, (int)ASKS_MAX);
    sac_result res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    res = queue_lists(dev, stream, job, &l);
    cuda_leave();
    return res;
}
