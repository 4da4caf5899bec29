/* SPDX-License-Identifier: Apache-2.0 */
/* The inference thread's work on a device that computes asynchronously: while it computes one batch
 * the next one is queued, so the device never waits for the host.
 *
 * A batch is collected, begun (all work up to the copy of its boxes is queued), and landed: the
 * thread waits for its boxes, queues its embeddings and passes its items on. Batches land in the
 * order in which they began, and the end of a lane is one of their items, so each lane keeps its
 * order. */
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "pipeline/ahead.h"

/* How often to check whether a batch has arrived, while no frame comes. */
static const int64_t LOOK_NS = 200000;
static const int64_t SMALL_MAX_NS = 3600000000000;

static struct sac_ahead_batch *nth(struct sac_ahead *a, int n)
{
    return &a->ring[(a->first + n) % (int)SAC_COUNT(a->ring)];
}

static bool add(struct sac_ahead_batch *b, struct sac_item *item)
{
    if (!sac_grow((void **)&b->items, &b->capacity, b->count + 1, sizeof(*b->items)))
        return false;
    b->items[b->count++] = item;
    b->frames += !item->last;
    return true;
}

/* ---- memory that runs out ---- */

static void make_smaller(struct sac_ahead *a, int size)
{
    const int64_t now = sac_time_ns();
    a->small_ns = a->small_ns ? SAC_MIN(2 * a->small_ns, SMALL_MAX_NS) : a->job->small_ns;
    a->grow_ns = now + a->small_ns;
    if (size >= a->limit)
        return;
    sac_log(a->job->ctx, SAC_LOG_WARN,
            "%s has no memory for batches of %d frames: they have up to %d now", a->job->dev->name,
            a->limit, size);
    a->limit = size;
}

/* A refused stream has ended, unless its frames are pushed: pushed frames are tried again too. */
static void grow_back(struct sac_ahead *a)
{
    if (a->grow_ns == 0 || sac_time_ns() < a->grow_ns)
        return;
    a->refused_from = INT32_MAX;
    a->grow_ns = 0;
    if (a->limit >= a->job->batch_limit)
        return;
    a->limit = SAC_MIN(2 * a->limit, a->job->batch_limit);
    a->grow_ns = sac_time_ns() + a->small_ns;
    sac_log(a->job->ctx, SAC_LOG_INFO, "batches of up to %d frames are tried again", a->limit);
}

/* Not even one frame fits: of several streams the newest is dropped. false: there is only one. */
static bool refuse_newest(struct sac_ahead *a, const struct sac_ahead_batch *b)
{
    int newest = INT32_MIN, oldest = INT32_MAX;
    for (size_t i = 0; i < b->count; i++)
        if (!b->items[i]->last && b->items[i]->stream_id < a->refused_from) {
            newest = SAC_MAX(newest, b->items[i]->stream_id);
            oldest = SAC_MIN(oldest, b->items[i]->stream_id);
        }
    if (newest <= oldest)
        return false;
    a->refused_from = newest;
    make_smaller(a, 1);
    return true;
}

static bool is_refused(const struct sac_ahead *a, const struct sac_item *item)
{
    return item->stream_id >= a->refused_from;
}

static void refuse(struct sac_ahead *a, struct sac_item *item)
{
    sac_job_fail_item(a->job, item,
                      SAC_FAIL(a->job->ctx, SAC_ERR_MEMORY,
                               "stream %d: %s has no memory left for it", item->stream_id,
                               a->job->dev->name));
}

/* ---- detection ---- */

int sac_ahead_line_up(struct sac_ahead *a, const struct sac_ahead_batch *b)
{
    int n = 0;
    for (size_t i = 0; i < b->count; i++)
        if (!b->items[i]->last) {
            a->seen[n] = b->items[i];
            a->job->frames[n] = b->items[i]->frame;
            a->job->found[n++] = b->items[i]->found;
        }
    return n;
}

static void give_lists_back(struct sac_ahead *a, int first, int n)
{
    for (int i = first; i < first + n; i++)
        a->seen[i]->found = a->job->found[i];
}

static void record(struct sac_ahead *a, const struct sac_detector_times *t, int first, int n)
{
    static const enum sac_stage   stages[] = {SAC_STAGE_PREPROCESS, SAC_STAGE_INFERENCE,
                                              SAC_STAGE_HEAD};
    struct sac_job               *job = a->job;
    const struct sac_item *const *items = (const struct sac_item *const *)a->seen + first;
    const struct sac_run_times    times = sac_detector_run_times(t);
    for (int i = first; i < first + n; i++)
        a->seen[i]->times = times;
    if (!job->measures)
        return;
    sac_job_record(job, SAC_STAGE_PREPROCESS, t->begun_ns, t->prepared_ns, items, n);
    sac_job_time(job, SAC_STAGE_INFERENCE, times.inference_ns);
    sac_job_trace(job, SAC_STAGE_INFERENCE, t->prepared_ns, t->queued_ns, items, n);
    sac_job_trace(job, SAC_STAGE_INFERENCE, t->waited_ns, t->arrived_ns, items, n);
    sac_job_time(job, SAC_STAGE_HEAD, times.head_ns);
    sac_job_trace(job, SAC_STAGE_HEAD, t->queued_ns, t->decoded_ns, items, n);
    sac_job_trace(job, SAC_STAGE_HEAD, t->arrived_ns, t->ended_ns, items, n);
    int64_t begun = t->gpu_begun_ns;
    for (size_t i = 0; i < SAC_COUNT(stages) && t->gpu_ns[1]; i++) {
        sac_job_record_gpu(job, stages[i], begun, t->gpu_ns[i], items, n);
        begun += begun ? t->gpu_ns[i] : 0;
    }
}

/* Begin and finish detection in some of the listed frames. */
static sac_result detect_now(struct sac_ahead *a, int slot, int first, int n)
{
    struct sac_detector_times times;
    sac_result res = sac_detector_begin(a->job->det, slot, a->job->frames + first, n);
    if (res == SAC_OK)
        res = sac_detector_end(a->job->det, slot, a->job->found + first, &times);
    if (res == SAC_OK)
        record(a, &times, first, n);
    return res;
}

/* Retry a batch that could not be begun: in smaller pieces if memory ran out, else frame by frame,
 * so that an unusable frame does not make the others fail. Call it with the frames lined up. */
static void detect_in_pieces(struct sac_ahead *a, const struct sac_ahead_batch *b, int n,
                             sac_result res)
{
    bool tried = true; /* res belongs to the next piece */
    int  size = n;
    for (int at = 0, m; at < n; tried = false) {
        m = SAC_MIN(size, n - at);
        if (is_refused(a, a->seen[at])) {
            refuse(a, a->seen[at++]);
            continue;
        }
        if (!tried)
            res = detect_now(a, b->slot, at, m);
        if (res == SAC_OK) {
            at += m;
        } else if (!sac_is_out_of_memory(res) && m > 1) {
            size = 1;
        } else if (!sac_is_out_of_memory(res)) {
            sac_job_fail_item(a->job, a->seen[at++], res);
        } else if (m > 1) {
            sac_device_pool_trim(a->job->dev);
            make_smaller(a, size = m / 2);
        } else if (!refuse_newest(a, b)) {
            sac_job_fail_item(a->job, a->seen[at++], res);
        }
    }
}

static void count_batch(struct sac_ahead *a, int n)
{
    struct sac_job *job = a->job;
    atomic_fetch_add(&job->batches, 1);
    atomic_fetch_add(&job->batch_frames, (uint_fast64_t)n);
    atomic_fetch_add(&job->batches_full, n >= a->limit);
}

static void begin(struct sac_ahead *a, struct sac_ahead_batch *b)
{
    struct sac_job *job = a->job;
    b->slot = (int)(a->turn++ % SAC_DETECTOR_SLOTS);
    b->begun = SAC_OK;
    if (job->ready_made)
        return;
    int n = sac_ahead_line_up(a, b);
    b->begun = sac_detector_begin(job->det, b->slot, job->frames, n);
    if (b->begun != SAC_OK && sac_is_out_of_memory(b->begun)) {
        sac_device_pool_trim(job->dev);
        b->begun = sac_detector_begin(job->det, b->slot, job->frames, n);
    }
    count_batch(a, n);
}

static void detect(struct sac_ahead *a, struct sac_ahead_batch *b)
{
    struct sac_detector_times times;
    struct sac_job           *job = a->job;
    for (size_t i = 0; i < b->count && job->ready_made; i++)
        if (!b->items[i]->last)
            sac_job_look_up(job, b->items[i]);
    if (job->ready_made || b->frames == 0)
        return;
    int        n = sac_ahead_line_up(a, b);
    sac_result res = b->begun;
    if (res == SAC_OK)
        res = sac_detector_end(job->det, b->slot, job->found, &times);
    if (res == SAC_OK)
        record(a, &times, 0, n);
    else
        detect_in_pieces(a, b, n, res);
    give_lists_back(a, 0, n);
}

/* ---- batches ---- */

/* The oldest batch under way: wait for it, and pass its items on. */
static void land(struct sac_ahead *a)
{
    struct sac_job         *job = a->job;
    struct sac_ahead_batch *b = nth(a, 0);
    detect(a, b);
    if (b->frames && job->emb && (job->wants_embeddings || job->params.reid_every))
        sac_ahead_embed(a, b);
    for (size_t i = 0; i < b->count; i++)
        sac_job_pass_on(job, b->items[i]);
    b->count = 0;
    b->frames = 0;
    a->first = (a->first + 1) % (int)SAC_COUNT(a->ring);
    a->under_way--;
}

static bool has_arrived(const struct sac_ahead *a)
{
    const struct sac_job         *job = a->job;
    const struct sac_ahead_batch *b = &a->ring[a->first];
    return a->under_way > 0 &&
           (job->ready_made || b->begun != SAC_OK || sac_detector_arrived(job->det, b->slot));
}

/* How long to wait for a frame. Never long while a batch is under way. */
static int64_t patience(const struct sac_ahead *a, const struct sac_ahead_batch *b,
                        int64_t until_ns)
{
    const int64_t left = b->frames ? SAC_MAX(until_ns - sac_time_ns(), 0) : -1;
    if (a->under_way == 0)
        return left;
    return left < 0 || a->under_way >= a->job->depth ? LOOK_NS : SAC_MIN(left, LOOK_NS);
}

/* The end of a lane without frames before it in this batch: after the batches under way, or at
 * once. */
static void pass_end(struct sac_ahead *a, struct sac_item *item)
{
    if (a->under_way == 0 || !add(nth(a, a->under_way - 1), item)) {
        while (a->under_way > 0)
            land(a);
        sac_job_pass_on(a->job, item);
    }
}

static void take(struct sac_ahead *a, struct sac_ahead_batch *b, struct sac_item *item)
{
    if (sac_job_is_discarded(a->job, item)) {
        sac_job_recycle(a->job, item);
    } else if (item->last && b->frames == 0) {
        pass_end(a, item);
    } else if (!add(b, item)) {
        sac_job_fail_item(a->job, item,
                          SAC_FAIL(a->job->ctx, SAC_ERR_MEMORY, "no memory for a batch"));
        while (a->under_way > 0)
            land(a);
        sac_job_pass_on(a->job, item);
    }
}

/* Until when a batch that begins now may wait for more frames. While the device is busy, waiting
 * costs nothing. */
static int64_t deadline(const struct sac_ahead *a)
{
    const struct sac_job *job = a->job;
    const bool            at_once = job->eager && a->under_way == 0;
    return sac_time_ns() + (at_once ? 0 : (int64_t)job->params.timeout_ms * 1000000);
}

/* Fill the next batch until it is full, its time is over or a lane ends. Batches that arrive
 * meanwhile are landed. false: no more frames will come. */
static bool collect(struct sac_ahead *a, struct sac_ahead_batch *b)
{
    struct sac_job *job = a->job;
    int64_t         until_ns = 0;
    grow_back(a);
    while (b->frames < a->limit) {
        void *popped;
        if (has_arrived(a)) {
            land(a);
            until_ns = SAC_MIN(until_ns, deadline(a));
        }
        sac_result res = sac_queue_pop_wait(job->detect, patience(a, b, until_ns), &popped);
        if (res == SAC_OK) {
            const bool last = ((struct sac_item *)popped)->last;
            if (b->frames == 0)
                until_ns = deadline(a);
            take(a, b, popped);
            if (last && b->frames)
                return true;
        } else if (res != SAC_AGAIN) {
            return false;
        } else if (b->frames && sac_time_ns() >= until_ns && a->under_way < job->depth) {
            return true;
        }
    }
    return true;
}

static bool ahead_init(struct sac_ahead *a, struct sac_job *job)
{
    *a = (struct sac_ahead){.job = job, .limit = job->batch_limit, .refused_from = INT32_MAX};
    return sac_grow((void **)&a->seen, &a->seen_capacity, (size_t)job->batch_max, sizeof(*a->seen));
}

static void ahead_finish(struct sac_ahead *a)
{
    for (size_t i = 0; i < SAC_COUNT(a->ring); i++)
        sac_free(a->ring[i].items);
    sac_free(a->seen);
    sac_free(a->crops);
    sac_free(a->crop_frames);
}

/* Without memory for the batches, all frames are returned as faults. */
static void fail_all(struct sac_job *job)
{
    void *popped;
    while (sac_queue_pop_wait(job->detect, -1, &popped) == SAC_OK) {
        sac_job_fail_item(job, popped, SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for batches"));
        sac_job_pass_on(job, popped);
    }
}

void sac_job_infer_ahead(struct sac_job *job)
{
    struct sac_ahead a;
    bool             more = ahead_init(&a, job);
    if (!more)
        fail_all(job);
    while (more) {
        struct sac_ahead_batch *b = nth(&a, a.under_way);
        more = collect(&a, b);
        b = nth(&a, a.under_way); /* landing advanced the ring; find the batch again */
        if (b->frames == 0)
            continue;
        while (a.under_way >= job->depth)
            land(&a);
        begin(&a, b);
        a.under_way++;
    }
    while (a.under_way > 0)
        land(&a);
    ahead_finish(&a);
}
