/* SPDX-License-Identifier: Apache-2.0 */
#include "heads/batch.h"

sac_result sac_batch_open(struct sac_buckets *b, struct sac_batch_slot *slot, int size)
{
    slot->parts = sac_calloc((size_t)size, sizeof *slot->parts);
    if (!slot->parts)
        return SAC_FAIL(b->dev->ctx, SAC_ERR_MEMORY, "no memory for a batch of %d frames", size);
    slot->size = size;
    return b->dev->ops->event_create(b->dev, false, &slot->done);
}

void sac_batch_close(struct sac_buckets *b, struct sac_batch_slot *slot)
{
    for (int i = 0; i < slot->size; i++)
        sac_marks_destroy(b->dev, &slot->parts[i].marks);
    if (slot->done)
        b->dev->ops->event_destroy(&slot->done);
    sac_free(slot->parts);
}

void sac_batch_begin(struct sac_buckets *b, struct sac_batch_slot *slot, int n)
{
    slot->times = (struct sac_batch_times){.begun_ns = sac_time_ns()};
    slot->spent = (struct sac_run_times){0};
    slot->part_count = 0;
    for (int first = 0; first < n;) {
        struct sac_batch_part *part = &slot->parts[slot->part_count++];
        part->bucket = sac_buckets_next(b, n - first, &part->n);
        part->first = first;
        first += part->n;
    }
}

sac_result sac_batch_run(struct sac_buckets *b, struct sac_batch_slot *slot,
                         struct sac_batch_part *part, const struct sac_preprocess_job *jobs)
{
    sac_result res = SAC_OK;
    if (b->timed && !part->marks.at[0])
        res = sac_marks_create(b->dev, &part->marks);
    if (res != SAC_OK)
        return res;
    return sac_bucket_run(b, part->bucket, jobs + part->first, part->n,
                          b->timed ? &part->marks : NULL, &slot->spent);
}

sac_result sac_batch_mark_end(struct sac_buckets *b, const struct sac_batch_part *part)
{
    sac_result res = sac_bucket_read(b, part->bucket);
    if (res == SAC_OK && b->timed)
        res = b->dev->ops->event_record(part->marks.at[SAC_MARK_END], b->behind);
    return res;
}

sac_result sac_batch_queued(struct sac_buckets *b, struct sac_batch_slot *slot, sac_result res)
{
    struct sac_batch_times *t = &slot->times;
    if (res == SAC_OK)
        res = b->dev->ops->event_record(slot->done, b->behind);
    t->prepared_ns = t->begun_ns + slot->spent.preprocess_ns;
    t->queued_ns = t->prepared_ns + slot->spent.inference_ns;
    t->decoded_ns = sac_time_ns();
    if (res != SAC_OK)
        sac_buckets_wait(b);
    return res;
}

bool sac_batch_arrived(const struct sac_buckets *b, const struct sac_batch_slot *slot)
{
    return b->dev->ops->event_reached(slot->done);
}

static sac_result read_marks(struct sac_buckets *b, struct sac_batch_slot *slot,
                             const struct sac_batch_part *part)
{
    if (!b->timed || !part->marks.at[0])
        return SAC_OK;
    for (int i = 0; i < SAC_MARK_STAGES && part->first == 0; i++) {
        int64_t since = 0;
        if (b->dev->ops->event_elapsed(b->anchor, part->marks.at[2 * i], &since) == SAC_OK)
            slot->times.gpu_begun_ns[i] = b->anchor_ns + since;
    }
    return sac_marks_add(b->dev, &part->marks, slot->times.gpu_ns);
}

/* The stages of several parts alternate on their one stream. */
static void lay_end_to_end(struct sac_batch_times *t)
{
    for (int i = 1; i < SAC_MARK_STAGES && t->gpu_begun_ns[0]; i++)
        t->gpu_begun_ns[i] = t->gpu_begun_ns[i - 1] + t->gpu_ns[i - 1];
}

sac_result sac_batch_await(struct sac_buckets *b, struct sac_batch_slot *slot)
{
    slot->times.waited_ns = sac_time_ns();
    sac_result res = b->dev->ops->event_wait(slot->done);
    slot->times.arrived_ns = sac_time_ns();
    for (int i = 0; i < slot->part_count && res == SAC_OK; i++)
        res = read_marks(b, slot, &slot->parts[i]);
    if (b->behind == b->stream)
        lay_end_to_end(&slot->times);
    return res;
}
