/* SPDX-License-Identifier: Apache-2.0 */
/* What a segmenter keeps of its streams: memory for smooth mattes, and a recurrent network's
 * states, which stay the tensors that it gave. */
#include <string.h>

#include "heads/segmenter.h"

/* ---- one stream ---- */

static void release_tensors(struct sac_segmenter *seg, sac_tensor **t)
{
    for (int i = 0; i < SAC_FEED_INPUTS_MAX; i++) {
        if (t[i])
            sac_tensor_used(t[i], seg->buckets.stream);
        sac_tensor_unref(&t[i]);
    }
}

void sac_segmenter_begin_anew(struct sac_segmenter *seg, struct sac_segmenter_stream *s)
{
    for (int i = 0; i < seg->eyes; i++) {
        s->eye[i].state.has_before = false;
        for (int k = 0; k < seg->looks; k++)
            release_tensors(seg, s->eye[i].states[k].given);
    }
}

static void eye_finish(struct sac_segmenter *seg, struct sac_segmenter_eye *eye)
{
    for (int k = 0; k < seg->looks; k++) {
        release_tensors(seg, eye->states[k].given);
        release_tensors(seg, eye->states[k].spare);
    }
    if (eye->memory)
        sac_buffer_used(eye->memory, seg->buckets.behind);
    sac_buffer_unref(&eye->memory);
}

/* Zeroes, which the host may have to send. */
static sac_result clear_memory(struct sac_segmenter *seg, void *memory, size_t bytes)
{
    struct sac_mirror host = {NULL, NULL};
    sac_result        res = sac_mirror_open(seg->dev, memory, bytes, "stream's mattes", &host);
    if (res != SAC_OK)
        return res;
    memset(host.data, 0, bytes);
    if (host.data != memory)
        res = sac_device_copy(seg->dev, NULL, memory, host.data, bytes, SAC_COPY_HOST_TO_DEVICE,
                              SAC_COPY_COMMANDS, "an empty matte");
    sac_mirror_close(&host);
    return res;
}

static sac_result reserve(struct sac_segmenter *seg, struct sac_segmenter_eye *eye)
{
    const size_t bytes = sac_matte_bytes(&seg->spec);
    sac_result   res = SAC_OK;
    if (eye->memory || seg->style.classes)
        return SAC_OK;
    const enum sac_memory_use before = sac_memory_use_set(SAC_MEMORY_HEAD);
    res = sac_buffer_create(seg->dev, bytes, "stream's mattes", &eye->memory);
    sac_memory_use_set(before);
    if (res != SAC_OK)
        return res;
    eye->state = (struct sac_matte_state){.memory = sac_buffer_data(eye->memory)};
    res = clear_memory(seg, eye->state.memory, bytes);
    /* Work queued on the device's own stream may still use this memory. */
    if (res == SAC_OK)
        res = seg->dev->ops->stream_after(seg->dev, seg->buckets.behind, NULL);
    if (res != SAC_OK)
        sac_buffer_unref(&eye->memory);
    return res;
}

/* ---- all of them ---- */

struct sac_segmenter_stream *sac_segmenter_find_stream(const struct sac_segmenter *seg, int id)
{
    for (size_t i = 0; i < seg->stream_count; i++)
        if (seg->streams[i].id == id)
            return &seg->streams[i];
    return NULL;
}

static void drop(struct sac_segmenter *seg, struct sac_segmenter_stream *s)
{
    for (int i = 0; i < seg->eyes; i++)
        eye_finish(seg, &s->eye[i]);
    *s = seg->streams[--seg->stream_count];
}

/* Streams that end are forgotten; where the caller does not, the longest unused one goes. */
static void drop_unused(struct sac_segmenter *seg)
{
    struct sac_segmenter_stream *oldest = NULL;
    for (size_t i = 0; i < seg->stream_count; i++)
        if (seg->streams[i].used_at != seg->clock &&
            (!oldest || seg->streams[i].used_at < oldest->used_at))
            oldest = &seg->streams[i];
    if (oldest && seg->stream_count >= SAC_SEGMENTER_STREAMS_MAX)
        drop(seg, oldest);
}

static sac_result add(struct sac_segmenter *seg, int id, struct sac_segmenter_stream **out)
{
    drop_unused(seg);
    if (!sac_grow((void **)&seg->streams, &seg->stream_capacity, seg->stream_count + 1,
                  sizeof *seg->streams))
        return SAC_FAIL(seg->dev->ctx, SAC_ERR_MEMORY, "no memory for another stream's mattes");
    *out = &seg->streams[seg->stream_count++];
    **out = (struct sac_segmenter_stream){.id = id};
    return SAC_OK;
}

bool sac_segmenter_follows(const struct sac_segmenter_stream *s, const struct sac_matte_job *job)
{
    const struct sac_rect *a = &s->crop, *b = &job->crop;
    return s->width == job->frame->width && s->height == job->frame->height && a->x0 == b->x0 &&
           a->y0 == b->y0 && a->x1 == b->x1 && a->y1 == b->y1;
}

sac_result sac_segmenter_stream(struct sac_segmenter *seg, const struct sac_matte_job *job,
                                struct sac_segmenter_stream **out)
{
    const sac_frame             *frame = job->frame;
    struct sac_segmenter_stream *s = sac_segmenter_find_stream(seg, frame->stream_id);
    sac_result                   res = s ? SAC_OK : add(seg, frame->stream_id, &s);
    if (res != SAC_OK)
        return res;
    if (!sac_segmenter_follows(s, job))
        sac_segmenter_begin_anew(seg, s);
    s->width = frame->width;
    s->height = frame->height;
    s->crop = job->crop;
    s->used_at = seg->clock;
    for (int i = 0; i < seg->eyes && seg->laid_out && res == SAC_OK; i++)
        res = reserve(seg, &s->eye[i]);
    *out = s;
    return res;
}

void sac_segmenter_forget_all(struct sac_segmenter *seg)
{
    while (seg->stream_count > 0)
        drop(seg, &seg->streams[0]);
    release_tensors(seg, seg->first);
}

void sac_segmenter_forget(sac_segmenter *seg, int stream_id)
{
    struct sac_segmenter_stream *s = seg ? sac_segmenter_find_stream(seg, stream_id) : NULL;
    if (s)
        drop(seg, s);
}

/* ---- a recurrent network's states ---- */

/* The bucket's inputs before its first run are the states before a first frame. */
static void keep_first(struct sac_segmenter *seg, const struct sac_bucket *bucket)
{
    const struct sac_feed *feed = &seg->view.feed;
    for (int i = 0, k; (k = sac_feed_state(feed, i)) >= 0; i++)
        if (!seg->first[i] && bucket->inputs[k])
            seg->first[i] = sac_tensor_ref(bucket->inputs[k]);
}

static void replace(sac_tensor **at, sac_tensor *by)
{
    sac_tensor *old = *at;
    *at = by ? sac_tensor_ref(by) : NULL;
    sac_tensor_unref(&old);
}

/* Tensors of two frames ago take what it gives now, so that in the long run it takes no memory. */
sac_result sac_segmenter_give_states(struct sac_segmenter *seg, struct sac_segmenter_states *states,
                                     struct sac_bucket *bucket)
{
    const struct sac_feed *feed = &seg->view.feed;
    sac_result             res = sac_bucket_prepare(&seg->buckets, bucket);
    if (res != SAC_OK)
        return res;
    keep_first(seg, bucket);
    for (int i = 0, k; (k = sac_feed_state(feed, i)) >= 0; i++) {
        replace(&bucket->inputs[k], states->given[i] ? states->given[i] : seg->first[i]);
        replace(&bucket->out[feed->pair[k]], states->spare[i]);
    }
    return SAC_OK;
}

void sac_segmenter_take_states(struct sac_segmenter *seg, struct sac_segmenter_states *states,
                               struct sac_bucket *bucket)
{
    const struct sac_feed *feed = &seg->view.feed;
    for (int i = 0, k; (k = sac_feed_state(feed, i)) >= 0; i++) {
        if (states->spare[i])
            sac_tensor_used(states->spare[i], seg->buckets.stream);
        sac_tensor_unref(&states->spare[i]);
        states->spare[i] = states->given[i];
        states->given[i] = bucket->out[feed->pair[k]];
        bucket->out[feed->pair[k]] = NULL;
        replace(&bucket->inputs[k], seg->first[i]);
    }
}
