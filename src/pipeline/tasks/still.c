/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/tasks/still.h"

#include "device/device.h"
#include "pipeline/books.h"
#include "vision/difference.h"
#include "vision/vision.h"

/* The last frame of a stream that the network saw. */
struct seen {
    int                stream_id, width, height;
    int                item;    /* of the batch that is decided; -1: an earlier one's */
    int                skipped; /* frames since */
    struct sac_buffer *grids;   /* of its batch; holds: */
    uint8_t           *grid;
};

/* Comparison `pair` of the batch is of these two items; other -1: what was seen before the batch.
 */
struct pair {
    int item, other;
};

struct sac_still {
    struct sac_job           *job;
    sac_device               *dev;
    struct sac_device_stream *stream;
    uint32_t                  most; /* a sum up to which a frame is still */
    int                       max;  /* frames left out in a row */
    struct sac_buffer        *sums; /* [pair_max] */
    struct sac_mirror         host; /* the same on the host */
    size_t                    pair_max;

    struct pair               *pairs;
    struct sac_difference_job *jobs;
    size_t                     pairs_capacity, jobs_capacity;
    int                        pair_count;

    pthread_mutex_t lock; /* guards the three below */
    struct seen    *seen;
    size_t          seen_count, seen_capacity;
};

/* ---- creation ---- */

sac_result sac_still_create(struct sac_job *job, struct sac_still **out)
{
    const struct sac_track_job_params *p = &job->params;
    sac_device                        *dev = job->dev;
    if (!(p->skip_still > 0) || p->skip_max == 0)
        return SAC_OK;
    if (!dev->ops->vision->difference)
        return SAC_FAIL(job->ctx, SAC_ERR_UNSUPPORTED,
                        "skip_still: %s compares no frames; the device 'cpu' does", dev->name);
    struct sac_still *s = sac_new(struct sac_still);
    if (!s)
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory to find still frames");
    pthread_mutex_init(&s->lock, NULL);
    s->job = job;
    s->dev = dev;
    s->most = (uint32_t)((double)p->skip_still * SAC_DIFFERENCE_MOST);
    s->max = p->skip_max;
    sac_result res = dev->ops->stream_create(dev, &s->stream);
    if (res == SAC_OK)
        *out = s;
    else
        sac_still_destroy(&s);
    return res;
}

static void drop_grid(struct sac_still *s, struct seen *seen)
{
    if (seen->grids)
        sac_buffer_used(seen->grids, s->stream);
    sac_buffer_unref(&seen->grids);
    seen->grid = NULL;
}

void sac_still_destroy(struct sac_still **at)
{
    struct sac_still *s = *at;
    if (!s)
        return;
    *at = NULL;
    if (s->stream)
        s->dev->ops->stream_wait(s->stream);
    for (size_t i = 0; i < s->seen_count; i++)
        drop_grid(s, &s->seen[i]);
    sac_mirror_close(&s->host);
    sac_buffer_unref(&s->sums);
    if (s->stream)
        s->dev->ops->stream_destroy(&s->stream);
    pthread_mutex_destroy(&s->lock);
    sac_free(s->seen);
    sac_free(s->pairs);
    sac_free(s->jobs);
    sac_free(s);
}

/* ---- streams, under the lock ---- */

static struct seen *find(struct sac_still *s, int stream_id)
{
    for (size_t i = 0; i < s->seen_count; i++)
        if (s->seen[i].stream_id == stream_id)
            return &s->seen[i];
    return NULL;
}

static sac_result know_streams(struct sac_still *s, struct sac_item *const *items, int n)
{
    for (size_t i = 0; i < s->seen_count; i++)
        s->seen[i].item = -1;
    for (int i = 0; i < n; i++) {
        if (find(s, items[i]->stream_id))
            continue;
        if (!sac_grow((void **)&s->seen, &s->seen_capacity, s->seen_count + 1, sizeof *s->seen))
            return SAC_FAIL(s->job->ctx, SAC_ERR_MEMORY, "no memory for a stream's still frames");
        s->seen[s->seen_count++] =
            (struct seen){.stream_id = items[i]->stream_id, .item = -1, .grids = NULL};
    }
    return SAC_OK;
}

void sac_still_forget(struct sac_still *s, int stream_id)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    struct seen *seen = find(s, stream_id);
    if (seen) {
        drop_grid(s, seen);
        *seen = s->seen[--s->seen_count];
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- comparisons ---- */

static sac_result add_pair(struct sac_still *s, struct pair pair, struct sac_difference_job job)
{
    const size_t n = (size_t)s->pair_count + 1;
    if (!sac_grow((void **)&s->pairs, &s->pairs_capacity, n, sizeof *s->pairs) ||
        !sac_grow((void **)&s->jobs, &s->jobs_capacity, n, sizeof *s->jobs))
        return SAC_FAIL(s->job->ctx, SAC_ERR_MEMORY, "no memory to compare %zu frames", n);
    s->pairs[s->pair_count] = pair;
    s->jobs[s->pair_count++] = job;
    return SAC_OK;
}

/* Which frame of the batch the network will have seen last is known only when those before are
 * decided: each is compared with all that it can be. */
static sac_result pair_up(struct sac_still *s, struct sac_item *const *items, int n, uint8_t *grids)
{
    sac_result res = SAC_OK;
    s->pair_count = 0;
    for (int i = 0; i < n && res == SAC_OK; i++) {
        const sac_frame *frame = items[i]->frame;
        res = add_pair(s, (struct pair){i, -1},
                       (struct sac_difference_job){.frame = frame,
                                                   .grid = find(s, items[i]->stream_id)->grid,
                                                   .kept = grids + i * SAC_DIFFERENCE_SAMPLES});
        for (int k = i - 1, left = s->max; k >= 0 && left > 0 && res == SAC_OK; k--) {
            if (items[k]->stream_id != items[i]->stream_id)
                continue;
            left--;
            res = add_pair(s, (struct pair){i, k},
                           (struct sac_difference_job){.frame = frame, .other = items[k]->frame});
        }
    }
    return res;
}

static sac_result reserve(struct sac_still *s)
{
    const size_t n = (size_t)s->pair_count, bytes = n * sizeof(uint32_t);
    if (n <= s->pair_max)
        return SAC_OK;
    sac_mirror_close(&s->host);
    sac_buffer_unref(&s->sums);
    s->pair_max = 0;
    sac_result res = sac_buffer_create(s->dev, bytes, "differences", &s->sums);
    if (res == SAC_OK)
        res = sac_mirror_open(s->dev, sac_buffer_data(s->sums), bytes, "differences", &s->host);
    if (res == SAC_OK)
        s->pair_max = n;
    return res;
}

/* The sums arrive in s->host. */
static sac_result compare(struct sac_still *s, struct sac_buffer *grids)
{
    const size_t bytes = (size_t)s->pair_count * sizeof(uint32_t);
    sac_result   res = reserve(s);
    /* Work queued on the device's own stream may still use this memory. */
    if (res == SAC_OK)
        res = s->dev->ops->stream_after(s->dev, s->stream, NULL);
    if (res == SAC_OK)
        res = sac_difference_run_on(s->dev, s->stream, s->jobs, s->pair_count,
                                    sac_buffer_data(s->sums));
    if (res == SAC_OK && s->host.data != sac_buffer_data(s->sums))
        res = sac_device_copy(s->dev, s->stream, s->host.data, sac_buffer_data(s->sums), bytes,
                              SAC_COPY_DEVICE_TO_HOST, SAC_COPY_BOXES, "differences of frames");
    sac_result waited = s->dev->ops->stream_wait(s->stream);
    sac_buffer_used(grids, s->stream);
    if (s->sums)
        sac_buffer_used(s->sums, s->stream);
    return res == SAC_OK ? waited : res;
}

/* ---- decisions ---- */

static uint32_t difference_of(const struct sac_still *s, int item, int other)
{
    const uint32_t *sums = s->host.data;
    for (int i = 0; i < s->pair_count; i++)
        if (s->pairs[i].item == item && s->pairs[i].other == other)
            return sums[i];
    return SAC_DIFFERENCE_MOST; /* too long ago */
}

static void decide(struct sac_still *s, struct sac_item *item, int i)
{
    struct seen     *seen = find(s, item->stream_id);
    const sac_frame *frame = item->frame;
    const bool       known = seen->grids || seen->item >= 0;
    item->still = known && seen->skipped < s->max && seen->width == frame->width &&
                  seen->height == frame->height && difference_of(s, i, seen->item) <= s->most;
    item->decided = true;
    seen->skipped++;
    if (item->still)
        return;
    seen->item = i;
    seen->skipped = 0;
    seen->width = frame->width;
    seen->height = frame->height;
}

/* What was seen last in this batch is what the next one is compared with. */
static void keep_grids(struct sac_still *s, struct sac_buffer *grids)
{
    for (size_t i = 0; i < s->seen_count; i++) {
        struct seen *seen = &s->seen[i];
        if (seen->item < 0)
            continue;
        drop_grid(s, seen);
        seen->grids = sac_buffer_ref(grids);
        seen->grid = (uint8_t *)sac_buffer_data(grids) + seen->item * SAC_DIFFERENCE_SAMPLES;
    }
}

static sac_result decide_all(struct sac_still *s, struct sac_item *const *items, int n)
{
    struct sac_buffer *grids = NULL;
    sac_result         res = know_streams(s, items, n);
    if (res == SAC_OK)
        res = sac_buffer_create(s->dev, (size_t)n * SAC_DIFFERENCE_SAMPLES, "samples of frames",
                                &grids);
    if (res == SAC_OK)
        res = pair_up(s, items, n, sac_buffer_data(grids));
    if (res == SAC_OK)
        res = compare(s, grids);
    for (int i = 0; i < n && res == SAC_OK; i++)
        decide(s, items[i], i);
    if (res == SAC_OK)
        keep_grids(s, grids);
    sac_buffer_unref(&grids);
    return res;
}

sac_result sac_still_decide(struct sac_still *s, struct sac_item *const *items, int n)
{
    /* A batch is decided at once; a part of it that is tried again may reach past what was. */
    while (s && n > 0 && items[0]->decided) {
        items++;
        n--;
    }
    if (!s || n == 0)
        return SAC_OK;
    const int64_t begun = sac_time_ns();
    pthread_mutex_lock(&s->lock);
    sac_result res = decide_all(s, items, n);
    pthread_mutex_unlock(&s->lock);
    if (res == SAC_OK && s->job->books->measures)
        sac_books_record(s->job->books, SAC_STAGE_COMPARE, begun, sac_time_ns(), items, n);
    return res;
}
