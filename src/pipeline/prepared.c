/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/prepared.h"

#include "vision/fit.h"

static void log_not_kept(const struct sac_prepared *p)
{
    char why[512];
    sac_error_take(p->ctx, why, sizeof why);
    sac_log(p->ctx, SAC_LOG_WARN, "%s: its prepared frames are not kept in the disk cache: %s",
            p->name, why);
}

/* ---- looking up ---- */

/* Nothing is believed that the sum alone has checked: the entry may be another program's. */
static bool fits(const struct sac_prepared *p)
{
    size_t                           size, bytes, images = 0;
    const struct sac_prepared_frame *frames = sac_cached_bytes(p->times, &size);
    const size_t                     count = size / sizeof *frames;
    sac_cached_bytes(p->frames, &bytes);
    for (size_t i = 0; i < count; i++) {
        const bool sized = frames[i].width > 0 && frames[i].height > 0;
        if (!frames[i].still && !sized)
            return false;
        images += !frames[i].still;
    }
    return count > 0 && count * sizeof *frames == size && bytes % p->image_bytes == 0 &&
           bytes / p->image_bytes == images;
}

static void drop(struct sac_prepared *p)
{
    sac_cached_release(&p->frames);
    sac_cached_release(&p->times);
}

static sac_result look_up(struct sac_prepared *p)
{
    size_t     size;
    sac_result res = sac_cache_get(p->cache, p->times_key, &p->times);
    if (res == SAC_OK)
        res = sac_cache_map(p->cache, p->frames_key, &p->frames);
    if (res == SAC_OK && !fits(p)) {
        sac_log(p->ctx, SAC_LOG_WARN,
                "%s: prepared frames in the disk cache are not what they should be; they are made "
                "anew",
                p->name);
        res = SAC_AGAIN;
    }
    if (res != SAC_OK) {
        drop(p);
        return res == SAC_AGAIN ? SAC_OK : res;
    }
    p->at = sac_cached_bytes(p->times, &size);
    p->end = p->at + size / sizeof *p->at;
    p->image_at = sac_cached_bytes(p->frames, NULL);
    return SAC_OK;
}

static sac_result begin(struct sac_prepared *p)
{
    const struct sac_cache_label frames = {.key = p->frames_key, .kind = "frames", .clip = p->name},
                                 times = {.key = p->times_key, .kind = "times", .clip = p->name};
    sac_result res = sac_cache_begin(p->cache, &frames, &p->frames_out);
    return res == SAC_OK ? sac_cache_begin(p->cache, &times, &p->times_out) : res;
}

static sac_result make_keys(struct sac_prepared *p, const struct sac_replay *replay,
                            const struct sac_job *job, const struct sac_preprocess *pre)
{
    sac_result res = sac_replay_frames_key(job, replay->base, pre, &p->frames_key);
    return res == SAC_OK ? sac_replay_times_key(job, p->frames_key, &p->times_key) : res;
}

struct sac_prepared *sac_prepared_open(const struct sac_replay *replay, const struct sac_job *job,
                                       const struct sac_preprocess *pre)
{
    const struct sac_tensor_desc one = sac_preprocess_desc(pre, 1);
    struct sac_prepared         *p = sac_new(struct sac_prepared);
    if (!p) {
        sac_log(job->ctx, SAC_LOG_WARN, "%s: no memory for its prepared frames", replay->name);
        return NULL;
    }
    p->ctx = job->ctx;
    p->cache = replay->cache;
    p->name = replay->name;
    p->image_bytes = (size_t)sac_tensor_desc_bytes(&one);
    sac_result res = make_keys(p, replay, job, pre);
    if (res == SAC_OK)
        res = look_up(p);
    if (res == SAC_OK && !p->frames)
        res = begin(p);
    else if (res == SAC_OK)
        sac_log(p->ctx, SAC_LOG_INFO,
                "%s: %lld prepared frames come from the disk cache; the video is not decoded",
                p->name, (long long)(p->end - p->at));
    if (res != SAC_OK) {
        log_not_kept(p);
        sac_prepared_close(&p);
    }
    return p;
}

static void abandon(struct sac_prepared *p)
{
    sac_cache_abandon(&p->frames_out);
    sac_cache_abandon(&p->times_out);
}

void sac_prepared_close(struct sac_prepared **at)
{
    struct sac_prepared *p = *at;
    if (!p)
        return;
    *at = NULL;
    abandon(p);
    drop(p);
    free(p->frames_key);
    free(p->times_key);
    sac_free(p);
}

/* ---- taking ---- */

bool sac_prepared_has(const struct sac_prepared *p)
{
    return p && p->frames;
}

static bool is_whole(const struct sac_prepared *p, const struct sac_prepared_frame *frame)
{
    struct sac_sum sum;
    uint64_t       now[2];
    sac_sum_init(&sum);
    sac_sum_add(&sum, p->image_at, p->image_bytes);
    sac_sum_end(&sum, now);
    return now[0] == frame->sum[0] && now[1] == frame->sum[1];
}

/* What is mapped stays readable. */
static void remove_damaged(struct sac_prepared *p)
{
    if (p->damaged)
        return;
    p->damaged = true;
    sac_cache_remove(p->cache, p->frames_key);
    sac_log(p->ctx, SAC_LOG_WARN,
            "%s: prepared frames in the disk cache are damaged: these are decoded, and the next "
            "run makes all of them anew",
            p->name);
}

sac_result sac_prepared_next(struct sac_prepared *p, struct sac_item *item)
{
    if (p->at == p->end)
        return SAC_EOS;
    const struct sac_prepared_frame *frame = item->prepared = p->at++;
    item->number = frame->number;
    item->pts_us = frame->pts_us;
    item->source_pts_us = frame->source_pts_us;
    item->decided = true;
    item->still = frame->still != 0;
    if (item->still)
        return SAC_OK;
    if (is_whole(p, frame))
        item->image = p->image_at;
    else
        remove_damaged(p);
    p->image_at += p->image_bytes;
    return SAC_OK;
}

void sac_prepared_taken(const struct sac_prepared *p, const struct sac_item *item)
{
    sac_cached_drop_pages(item->image, p->image_bytes);
}

/* ---- recording ---- */

void sac_prepared_keep(struct sac_prepared *p, struct sac_item *item, const void *pixels)
{
    struct sac_sum sum;
    if (!p->frames_out.file || item->image_recorded)
        return;
    sac_sum_init(&sum);
    sac_sum_add(&sum, pixels, p->image_bytes);
    sac_sum_end(&sum, item->image_sum);
    sac_cache_add(&p->frames_out, pixels, p->image_bytes);
    item->image_recorded = true;
    p->image_count++;
    if (!sac_cache_is_lost(&p->frames_out))
        return;
    sac_cache_commit(&p->frames_out); /* fails, with a sentence, and removes the file */
    log_not_kept(p);
}

void sac_prepared_add(struct sac_prepared *p, const struct sac_item *item)
{
    if (!p->times_out.file)
        return;
    const struct sac_prepared_frame frame = {.number = item->number,
                                             .pts_us = item->pts_us,
                                             .source_pts_us = item->source_pts_us,
                                             .width = item->frame->width,
                                             .height = item->frame->height,
                                             .still = item->still,
                                             .sum = {item->image_sum[0], item->image_sum[1]}};
    sac_cache_add(&p->times_out, &frame, sizeof frame);
    p->frame_count++;
    p->seen_count += !item->still;
}

void sac_prepared_commit(struct sac_prepared *p, int64_t sent)
{
    sac_result res = SAC_OK;
    if (!p->frames_out.file || sent == 0 || p->frame_count != sent ||
        p->seen_count != p->image_count) {
        abandon(p);
        return;
    }
    res = sac_cache_commit(&p->frames_out);
    if (res == SAC_OK)
        res = sac_cache_commit(&p->times_out);
    if (res != SAC_OK)
        log_not_kept(p);
}
