/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "track/core.h"
#include "vision/vision.h"

/* A thousand tracks beside three hundred boxes fit, or 64 streams with a few dozen of both. */
enum { ANSWER_BYTES = 2 << 20, LIST_BYTES = 192 << 10 };

struct sac_wave {
    sac_device               *dev;
    struct sac_device_stream *stream; /* created when the device is first needed, like the next
                                         fields */
    /* on the device, and their host copy: moves, then distances */
    struct sac_buffer *answers, *host;
    bool is_new; /* answers: memory that no stream but the device's own may touch yet */
    bool measures;
    struct sac_event *begun, *ended; /* of a trip, when that is measured */
    struct sac_event *anchor;        /* passed at anchor_ns of the host's clock */
    int64_t           anchor_ns, begun_ns, device_ns;
    sac_tracker     **members;
    size_t            count, members_capacity;
    size_t            answers_most, lists_most; /* bytes that the members may need */

    struct sac_embedding_rows *settling; /* rows that the stream still reads */
    size_t                     settling_count, settling_capacity;

    /* Inputs for the device. */
    struct sac_camera_job        *cameras;
    struct sac_appearance_update *updates;
    struct sac_appearance_ask    *asks;
    size_t                        cameras_capacity, updates_capacity, asks_capacity;
};

/* ---- creation ---- */

sac_result sac_wave_create(sac_device *dev, struct sac_wave **out)
{
    struct sac_wave *w = sac_new(struct sac_wave);
    if (!w)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "no memory for a wave of trackers");
    w->dev = dev;
    sac_device_hold(dev);
    *out = w;
    return SAC_OK;
}

void sac_wave_destroy(struct sac_wave **wave)
{
    struct sac_wave *w = wave ? *wave : NULL;
    if (!w)
        return;
    *wave = NULL;
    sac_wave_rest(w);
    w->dev->ops->event_destroy(&w->anchor);
    w->dev->ops->event_destroy(&w->begun);
    w->dev->ops->event_destroy(&w->ended);
    if (w->stream)
        w->dev->ops->stream_destroy(&w->stream);
    sac_buffer_unref(&w->answers);
    sac_buffer_unref(&w->host);
    sac_free(w->members);
    sac_free(w->settling);
    sac_free(w->cameras);
    sac_free(w->updates);
    sac_free(w->asks);
    sac_device_release(w->dev);
    sac_free(w);
}

/* ---- members ---- */

static bool is_remote_camera(const sac_tracker *trk)
{
    return trk->input.frame && trk->cmc.dev;
}

static sac_result check_place(const struct sac_wave *w, const struct sac_tracker_input *in)
{
    const sac_device *embeddings = in->embeddings.base ? in->embeddings.dev : NULL;
    const sac_device *frame = in->frame && sac_cmc_is_remote(in->frame) ? in->frame->device : NULL;
    if ((!embeddings || embeddings == w->dev) && (!frame || frame == w->dev))
        return SAC_OK;
    return SAC_FAIL(w->dev->ctx, SAC_ERR_ARG, "tracker: %s on %s among others on %s",
                    embeddings && embeddings != w->dev ? "embeddings" : "a frame",
                    sac_device_name(embeddings && embeddings != w->dev ? embeddings : frame),
                    sac_device_name(w->dev));
}

/* Bytes of answers, and of lists for the device, that a frame may need. */
static size_t answers_of(const sac_tracker *trk, const struct sac_tracker_input *in)
{
    const size_t candidates =
        in->embeddings.base ? SAC_MIN(in->count, (size_t)trk->params.track_max) : 0;
    return (trk->target_count + 1) * candidates * sizeof(float) + sizeof(struct sac_camera_move);
}

static size_t lists_of(const sac_tracker *trk, const struct sac_tracker_input *in)
{
    return in->count * (sizeof(struct sac_appearance_update) + sizeof(float *)) +
           trk->target_count * (sizeof(void *) + sizeof(struct sac_rect)) +
           sizeof(struct sac_appearance_ask);
}

bool sac_wave_fits(const struct sac_wave *w, const sac_tracker *trk,
                   const struct sac_tracker_input *in)
{
    return w->count == 0 || (w->answers_most + answers_of(trk, in) <= ANSWER_BYTES &&
                             w->lists_most + lists_of(trk, in) <= LIST_BYTES);
}

sac_result sac_wave_add(struct sac_wave *w, sac_tracker *trk, const struct sac_tracker_input *in)
{
    const size_t answers = answers_of(trk, in), lists = lists_of(trk, in);
    sac_result   res = check_place(w, in);
    if (res == SAC_OK &&
        !sac_grow((void **)&w->members, &w->members_capacity, w->count + 1, sizeof *w->members))
        res = SAC_FAIL(w->dev->ctx, SAC_ERR_MEMORY, "no memory for a wave of %zu trackers",
                       w->count + 1);
    if (res == SAC_OK)
        res = sac_tracker_begin(trk, in);
    if (res == SAC_OK) {
        w->members[w->count++] = trk;
        w->answers_most += answers;
        w->lists_most += lists;
    }
    return res;
}

size_t sac_wave_count(const struct sac_wave *w)
{
    return w->count;
}

void sac_wave_look(struct sac_wave *w, size_t member)
{
    sac_tracker_look(w->members[member]);
}

void sac_wave_finish(struct sac_wave *w, size_t member, struct sac_track_view *out)
{
    sac_tracker_end(w->members[member], out);
}

void sac_wave_clear(struct sac_wave *w)
{
    w->count = w->answers_most = w->lists_most = 0;
}

void sac_wave_measure(struct sac_wave *w)
{
    w->measures = true;
}

int64_t sac_wave_device_ns(const struct sac_wave *w, int64_t *begun_ns)
{
    *begun_ns = w->begun_ns;
    return w->device_ns;
}

/* ---- memory ---- */

/* The amount of work for the device. */
struct totals {
    size_t cameras, asks, rows, updates, distances;
};

static struct totals totals_of(const struct sac_wave *w)
{
    struct totals t = {0};
    for (size_t i = 0; i < w->count; i++) {
        const sac_tracker *trk = w->members[i];
        t.cameras += is_remote_camera(trk);
        if (!trk->ask.candidates)
            continue;
        t.asks++;
        t.rows += (size_t)trk->ask.candidates;
        t.updates += trk->gallery.update_count;
        t.distances += sac_appearance_ask_out(&trk->ask);
    }
    return t;
}

static size_t moves_bytes(const struct totals *t)
{
    return t->cameras * sizeof(struct sac_camera_move);
}

static size_t answer_bytes(const struct totals *t)
{
    return moves_bytes(t) + t->distances * sizeof(float);
}

/* Device and host memory of the answers. It never grows when the caller respects sac_wave_fits. */
static sac_result reserve_answers(struct sac_wave *w, size_t bytes)
{
    size_t size = ANSWER_BYTES;
    if (w->answers && sac_buffer_bytes(w->answers) >= bytes)
        return SAC_OK;
    while (size < bytes)
        size *= 2;
    sac_buffer_unref(&w->answers);
    sac_buffer_unref(&w->host);
    sac_result res = sac_host_buffer_create(w->dev, size, "answers to trackers", &w->host);
    if (res == SAC_OK)
        res = sac_buffer_create(w->dev, size, "answers to trackers", &w->answers);
    if (res != SAC_OK)
        return res;
    sac_buffer_keep(w->answers);
    sac_buffer_keep(w->host);
    w->is_new = true;
    return SAC_OK;
}

static sac_result reserve_events(struct sac_wave *w)
{
    const struct sac_device_ops *ops = w->dev->ops;
    sac_result                   res = SAC_OK;
    if (!w->begun)
        res = ops->event_create(w->dev, true, &w->begun);
    if (res == SAC_OK && !w->ended)
        res = ops->event_create(w->dev, true, &w->ended);
    if (res != SAC_OK || w->anchor)
        return res;
    res = ops->event_create(w->dev, true, &w->anchor);
    if (res == SAC_OK)
        res = ops->event_record(w->anchor, w->stream);
    if (res == SAC_OK)
        res = ops->event_wait(w->anchor);
    w->anchor_ns = sac_time_ns();
    return res;
}

static sac_result open_trips(struct sac_wave *w, size_t answers)
{
    sac_result res = w->stream ? SAC_OK : w->dev->ops->stream_create(w->dev, &w->stream);
    if (res == SAC_OK && w->measures)
        res = reserve_events(w);
    return res == SAC_OK ? reserve_answers(w, answers) : res;
}

static sac_result reserve(struct sac_wave *w, const struct totals *t)
{
    if (!sac_grow((void **)&w->cameras, &w->cameras_capacity, t->cameras, sizeof *w->cameras) ||
        !sac_grow((void **)&w->updates, &w->updates_capacity, SAC_MAX(t->updates, t->rows),
                  sizeof *w->updates) ||
        !sac_grow((void **)&w->settling, &w->settling_capacity, w->settling_count + w->count,
                  sizeof *w->settling) ||
        !sac_grow((void **)&w->asks, &w->asks_capacity, t->asks, sizeof *w->asks))
        return SAC_FAIL(w->dev->ctx, SAC_ERR_MEMORY, "no memory for the lists of %zu trackers",
                        w->count);
    return open_trips(w, answer_bytes(t));
}

sac_result sac_wave_warm_up(struct sac_wave *w)
{
    return open_trips(w, ANSWER_BYTES);
}

sac_result sac_wave_prepare(struct sac_wave *w, const sac_tracker *trk)
{
    sac_result res = sac_wave_warm_up(w);
    if (res != SAC_OK || !w->dev->ops->vision->reserve)
        return res;
    return w->dev->ops->vision->reserve(w->dev, w->stream, trk->cmc.dev ? &trk->cmc.now : NULL);
}

/* ---- the trip ---- */

/* Work queued earlier on the device's own stream may still use newly allocated memory. */
static bool has_new_memory(struct sac_wave *w)
{
    bool is_new = w->is_new;
    w->is_new = false;
    for (size_t i = 0; i < w->count; i++) {
        sac_tracker *trk = w->members[i];
        is_new = is_new || trk->gallery.is_new || trk->cmc.is_new;
        trk->gallery.is_new = trk->cmc.is_new = false;
    }
    return is_new;
}

/* Makes the stream wait until rows and pixels are complete. A tensor's rows are written on the
 * device's own stream. */
static sac_result await_inputs(struct sac_wave *w)
{
    const struct sac_embeddings *known = NULL;
    sac_result                   res = SAC_OK;
    bool                         own_stream = has_new_memory(w);
    for (size_t i = 0; i < w->count && res == SAC_OK; i++) {
        const struct sac_tracker_input *in = &w->members[i]->input;
        if (w->members[i]->ask.candidates && in->embeddings.batch != known) {
            known = in->embeddings.batch; /* one batch usually has the rows of many streams */
            if (known)
                res = w->dev->ops->stream_wait_event(w->dev, w->stream, known->ready);
        }
        own_stream = own_stream || (w->members[i]->ask.candidates && in->embeddings.tensor);
        if (res == SAC_OK && is_remote_camera(w->members[i]))
            res = sac_frame_await(in->frame, w->stream);
    }
    return res == SAC_OK && own_stream ? w->dev->ops->stream_after(w->dev, w->stream, NULL) : res;
}

static sac_result queue_cameras(struct sac_wave *w)
{
    int n = 0;
    for (size_t i = 0; i < w->count; i++)
        if (is_remote_camera(w->members[i]))
            w->cameras[n++] = w->members[i]->camera_job;
    return n ? w->dev->ops->vision->camera(w->dev, w->stream, w->cameras, n,
                                           sac_buffer_data(w->answers))
             : SAC_OK;
}

static bool same_shape(const sac_tracker *a, const sac_tracker *b)
{
    return a->gallery.shape.dim == b->gallery.shape.dim &&
           a->gallery.shape.views_max == b->gallery.shape.views_max;
}

static void add_updates(struct sac_wave *w, const sac_tracker *trk, struct sac_appearance_job *job)
{
    const size_t n = trk->gallery.update_count;
    job->shape = trk->gallery.shape;
    if (n)
        memcpy(w->updates + job->update_count, trk->gallery.updates, n * sizeof *w->updates);
    job->update_count += (int)n;
}

/* Queues the asks of members from *first on whose embeddings have the same shape, and moves *first
 * past them; their distances are written to out. */
static sac_result queue_distances(struct sac_wave *w, size_t *first, float **out)
{
    struct sac_appearance_job job = {.updates = w->updates, .asks = w->asks, .out = *out};
    size_t                    i = *first;
    for (const sac_tracker *of = NULL; i < w->count; i++) {
        const sac_tracker *trk = w->members[i];
        if (!trk->ask.candidates)
            continue;
        if (of && !same_shape(of, trk))
            break;
        of = trk;
        add_updates(w, trk, &job);
        w->asks[job.ask_count++] = trk->ask;
        *out += sac_appearance_ask_out(&trk->ask);
    }
    *first = i;
    return job.ask_count ? w->dev->ops->vision->appearance(w->dev, w->stream, &job) : SAC_OK;
}

static sac_result queue(struct sac_wave *w, const struct totals *t)
{
    char      *answers = sac_buffer_data(w->answers);
    float     *out = (float *)(void *)(answers + moves_bytes(t));
    sac_result res = await_inputs(w);
    if (res == SAC_OK && w->measures)
        res = w->dev->ops->event_record(w->begun, w->stream);
    if (res == SAC_OK)
        res = queue_cameras(w);
    for (size_t i = 0; i < w->count && res == SAC_OK;)
        res = queue_distances(w, &i, &out);
    if (res == SAC_OK)
        res =
            sac_device_copy(w->dev, w->stream, sac_buffer_data(w->host), answers, answer_bytes(t),
                            SAC_COPY_DEVICE_TO_HOST, SAC_COPY_BOXES, "distances and camera motion");
    return res == SAC_OK && w->measures ? w->dev->ops->event_record(w->ended, w->stream) : res;
}

/* Releases the rows of settled updates, which the device no longer reads. */
static void give_rows_back(struct sac_wave *w)
{
    for (size_t i = 0; i < w->settling_count; i++) {
        sac_embeddings_unref(&w->settling[i].batch);
        sac_tensor_unref(&w->settling[i].tensor);
    }
    w->settling_count = 0;
}

static void hand_out(struct sac_wave *w, const struct totals *t)
{
    const char                   *host = sac_buffer_data(w->host);
    const struct sac_camera_move *move = (const void *)host;
    const float                  *apart = (const void *)(host + moves_bytes(t));
    for (size_t i = 0; i < w->count; i++) {
        sac_tracker *trk = w->members[i];
        sac_tracker_answer(trk, apart, is_remote_camera(trk) ? move++ : NULL);
        if (trk->ask.candidates)
            apart += sac_appearance_ask_out(&trk->ask);
    }
}

static sac_result take_times(struct sac_wave *w)
{
    int64_t    since = 0;
    sac_result res = w->dev->ops->event_elapsed(w->begun, w->ended, &w->device_ns);
    if (res == SAC_OK)
        res = w->dev->ops->event_elapsed(w->anchor, w->begun, &since);
    w->begun_ns = w->anchor_ns + since;
    return res;
}

sac_result sac_wave_run(struct sac_wave *w)
{
    const struct totals t = totals_of(w);
    w->device_ns = 0;
    if (!t.cameras && !t.asks)
        return SAC_OK;
    sac_result res = reserve(w, &t);
    if (res == SAC_OK)
        res = queue(w, &t);
    if (w->stream) { /* also after an error: queued work reads memory that is released below */
        sac_result waited = w->dev->ops->stream_wait(w->stream);
        res = res == SAC_OK ? waited : res;
        give_rows_back(w);
    }
    if (res == SAC_OK && w->measures)
        res = take_times(w);
    if (res == SAC_OK)
        hand_out(w, &t);
    for (size_t i = 0; res != SAC_OK && i < w->count; i++)
        sac_tracker_cancel(w->members[i]);
    if (res != SAC_OK)
        sac_wave_clear(w);
    return res;
}

/* ---- between trips ---- */

static bool has_updates(const sac_tracker *trk)
{
    return trk->gallery.dev && trk->gallery.update_count > 0;
}

/* Queues the updates of members from *first on whose embeddings have the same shape, and moves
 * *first past them. */
static sac_result queue_updates(struct sac_wave *w, size_t *first)
{
    struct sac_appearance_job job = {.updates = w->updates};
    const sac_tracker        *of = NULL;
    size_t                    i = *first;
    for (; i < w->count; i++) {
        const sac_tracker *trk = w->members[i];
        if (!has_updates(trk))
            continue;
        if (of && !same_shape(of, trk))
            break;
        of = trk;
        add_updates(w, trk, &job);
    }
    *first = i;
    return job.update_count ? w->dev->ops->vision->appearance(w->dev, w->stream, &job) : SAC_OK;
}

/* The trip has allocated enough memory: there are no more updates than rows asked about. */
void sac_wave_settle(struct sac_wave *w)
{
    sac_result res = SAC_OK;
    for (size_t first = 0, end = 0; first < w->count && res == SAC_OK; first = end) {
        res = queue_updates(w, &end);
        for (size_t i = first; i < end && res == SAC_OK; i++)
            if (has_updates(w->members[i]))
                sac_tracker_let_go(w->members[i], &w->settling[w->settling_count++]);
    }
    if (res != SAC_OK) /* the next frame retries and reports the error */
        sac_error_clear(w->dev->ctx);
}

void sac_wave_rest(struct sac_wave *w)
{
    if (w->settling_count == 0)
        return;
    if (w->dev->ops->stream_wait(w->stream) != SAC_OK)
        sac_error_clear(w->dev->ctx); /* the next trip reports it */
    give_rows_back(w);
}
