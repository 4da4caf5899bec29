/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU's decoder has a fixed number of pictures in its own memory. They are lent out as frames and
 * returned with the frame's last reference, on any thread. A decoder without a free one would lose
 * a picture, so it waits for one first. */
#include <stdio.h>
#include <time.h>

#include "device/device.h"
#include "media/media.h"

struct surface {
    struct sac_surfaces *from;
    struct surface      *next; /* in the list of unused ones */
    AVFrame             *picture;
    struct sac_event    *complete; /* recorded when it is lent out */
};

struct sac_surfaces {
    sac_refcount       refs; /* the decoder's, and one for each surface lent out */
    sac_device        *dev;
    const char        *source_name; /* the decoder's, while it waits */
    pthread_mutex_t    lock;        /* guards the rest */
    pthread_cond_t     returned;
    int                lent, max;
    bool               closed;
    int                returning; /* pictures on their way back since before it was closed */
    struct sac_buffer *reserved;
    struct surface    *unused;
};

sac_result sac_surfaces_create(sac_device *dev, const char *source_name, struct sac_surfaces **out)
{
    struct sac_surfaces *s = sac_new(struct sac_surfaces);
    if (!s)
        return SAC_FAIL(sac_device_context(dev), SAC_ERR_MEMORY, "%s: no memory for a decoder",
                        source_name);
    sac_refcount_init(&s->refs);
    s->dev = dev;
    s->source_name = source_name;
    s->max = 1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->returned, &attr);
    pthread_condattr_destroy(&attr);
    sac_device_hold(dev);
    *out = s;
    return SAC_OK;
}

static void surface_destroy(struct surface *one)
{
    sac_device *dev = one->from->dev;
    if (one->complete)
        dev->ops->event_destroy(&one->complete);
    av_frame_free(&one->picture);
    sac_free(one);
}

static void surfaces_unref(struct sac_surfaces *s)
{
    if (!sac_refcount_dec(&s->refs))
        return;
    for (struct surface *one; (one = s->unused);) {
        s->unused = one->next;
        surface_destroy(one);
    }
    sac_buffer_unref(&s->reserved);
    pthread_cond_destroy(&s->returned);
    pthread_mutex_destroy(&s->lock);
    sac_device_release(s->dev);
    sac_free(s);
}

void sac_surfaces_closing(struct sac_surfaces *s)
{
    pthread_mutex_lock(&s->lock);
    s->closed = true;
    while (s->returning)
        pthread_cond_wait(&s->returned, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

void sac_surfaces_close(struct sac_surfaces **surfaces)
{
    if (*surfaces)
        surfaces_unref(*surfaces);
    *surfaces = NULL;
}

void sac_surfaces_limit(struct sac_surfaces *s, int max)
{
    pthread_mutex_lock(&s->lock);
    s->max = max;
    pthread_mutex_unlock(&s->lock);
}

/* For a new size the old reservation is released first. Surfaces that are still lent out are then
 * not counted, so the figure is too low until they are returned. */
sac_result sac_surfaces_reserve(struct sac_surfaces *s, uint64_t bytes)
{
    char               owner[96];
    struct sac_buffer *reserved = NULL;
    snprintf(owner, sizeof owner, "NVDEC surfaces of %.70s", s->source_name);
    sac_buffer_unref(&s->reserved);
    sac_result res = sac_buffer_reserve(s->dev, bytes, owner, &reserved);
    s->reserved = reserved;
    return res;
}

/* Cancelling does not signal the condition, so the flag is polled. Under the lock. */
static bool wait_a_little(struct sac_surfaces *s, int64_t until_ns)
{
    struct timespec ts = {until_ns / 1000000000, until_ns % 1000000000};
    return pthread_cond_timedwait(&s->returned, &s->lock, &ts) == 0;
}

sac_result sac_surfaces_wait(struct sac_surfaces *s, atomic_int *cancelled)
{
    enum { LOOK_NS = 50 * 1000 * 1000, LONG_S = 10 };
    sac_context *ctx = sac_device_context(s->dev);
    int64_t      begun = 0;
    bool         said = false;
    pthread_mutex_lock(&s->lock);
    while (s->lent >= s->max && !atomic_load(cancelled)) {
        int64_t now = sac_time_ns();
        begun = begun ? begun : now;
        if (!wait_a_little(s, now + LOOK_NS) && !said &&
            now - begun > LONG_S * INT64_C(1000000000)) {
            said = true;
            sac_log(ctx, SAC_LOG_WARN,
                    "%s: all %d frames that its decoder lends out have been held for %d s; reading "
                    "waits until one is given back",
                    s->source_name, s->max, LONG_S);
        }
    }
    bool room = s->lent < s->max;
    pthread_mutex_unlock(&s->lock);
    return room ? SAC_OK
                : SAC_FAIL(ctx, SAC_ERR_CANCELLED, "%s: reading was cancelled", s->source_name);
}

static void give_back(void *user)
{
    struct surface      *one = user;
    struct sac_surfaces *s = one->from;
    pthread_mutex_lock(&s->lock);
    const bool may_be_last = s->closed;
    s->returning += !may_be_last;
    pthread_mutex_unlock(&s->lock);
    if (may_be_last)
        sac_nvdec_lock();
    av_frame_unref(one->picture); /* the decoder may use it again from here on */
    if (may_be_last)
        sac_nvdec_unlock();
    pthread_mutex_lock(&s->lock);
    s->returning -= !may_be_last;
    one->next = s->unused;
    s->unused = one;
    s->lent--;
    pthread_cond_signal(&s->returned);
    pthread_mutex_unlock(&s->lock);
    surfaces_unref(s);
}

static struct surface *take_unused(struct sac_surfaces *s)
{
    pthread_mutex_lock(&s->lock);
    struct surface *one = s->unused;
    if (one)
        s->unused = one->next;
    pthread_mutex_unlock(&s->lock);
    return one;
}

static sac_result surface_create(struct sac_surfaces *s, struct surface **out)
{
    struct surface *one = sac_new(struct surface);
    sac_result      res = SAC_ERR_MEMORY;
    if (one) {
        one->from = s;
        one->picture = av_frame_alloc();
    }
    if (one && one->picture)
        res = s->dev->ops->event_create(s->dev, false, &one->complete);
    else
        SAC_FAIL(sac_device_context(s->dev), res, "%s: no memory for a frame", s->source_name);
    if (res == SAC_OK)
        *out = one;
    else if (one)
        surface_destroy(one);
    return res;
}

sac_result sac_surfaces_lend(struct sac_surfaces *s, AVFrame *picture, const sac_frame *desc,
                             struct sac_device_stream *stream, sac_frame **out)
{
    struct surface *one = take_unused(s);
    sac_frame      *frame = NULL;
    sac_result      res = one ? SAC_OK : surface_create(s, &one);
    if (res != SAC_OK)
        return res;
    res = s->dev->ops->event_record(one->complete, stream);
    if (res == SAC_OK)
        res = sac_frame_wrap(s->dev, desc, give_back, one, &frame);
    if (res != SAC_OK) {
        surface_destroy(one);
        return res;
    }
    av_frame_move_ref(one->picture, picture);
    sac_refcount_inc(&s->refs);
    pthread_mutex_lock(&s->lock);
    s->lent++;
    pthread_mutex_unlock(&s->lock);
    sac_frame_set_ready(frame, one->complete, false);
    *out = frame;
    return SAC_OK;
}
