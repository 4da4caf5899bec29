/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <time.h>

#include "base/json.h"
#include "base/outfile.h"
#include "base/thread.h"
#include "observe/trace.h"

enum {
    RING = 1 << 14, /* events: over a second of 1,000 frames/s with ten stages */
    TRACKS_MAX = 1024,
    WRITE_EVERY_MS = 100,
    LINES_BYTES = 1 << 16 /* text is collected up to this before it is written */
};

struct sac_trace {
    sac_context       *ctx;
    uint64_t           serial; /* identifies the trace in each thread's remembered track */
    int64_t            origin_ns;
    struct sac_outfile file;
    struct sac_text    text;  /* the writer's */
    bool               comma; /* the writer's: an element was written */
    int                tracks_written;
    sac_result         written; /* the writer's first fault; read once it has ended */
    char               why[512];
    pthread_t          writer;
    bool               started;

    pthread_mutex_t        lock; /* guards all below */
    pthread_cond_t         wake;
    bool                   ended;
    struct sac_trace_event ring[RING];
    size_t                 first, count;
    uint64_t               added, dropped;
    char                   track_name[TRACKS_MAX][32];
    int                    track_count;
};

/* The calling thread's track in the trace that it last used. */
static _Thread_local struct {
    uint64_t serial;
    int      track;
} mine;

/* ---- recording ---- */

int sac_trace_track(struct sac_trace *trace, const char *name)
{
    int track = -1;
    pthread_mutex_lock(&trace->lock);
    if (trace->track_count < TRACKS_MAX) {
        track = trace->track_count++;
        snprintf(trace->track_name[track], sizeof trace->track_name[track], "%s", name);
    }
    pthread_mutex_unlock(&trace->lock);
    return track;
}

int sac_trace_thread(struct sac_trace *trace)
{
    if (mine.serial != trace->serial) {
        char name[16] = "";
        pthread_getname_np(pthread_self(), name, sizeof name);
        mine.track = sac_trace_track(trace, name);
        mine.serial = trace->serial;
    }
    return mine.track;
}

void sac_trace_add(struct sac_trace *trace, const struct sac_trace_event *event)
{
    if (!trace || event->track < 0)
        return;
    pthread_mutex_lock(&trace->lock);
    trace->added += !trace->ended;
    if (trace->ended)
        ; /* late event of a decoder that was stopped in the middle of a frame */
    else if (trace->count < RING)
        trace->ring[(trace->first + trace->count++) % RING] = *event;
    else
        trace->dropped++;
    if (trace->count == RING / 2)
        pthread_cond_signal(&trace->wake);
    pthread_mutex_unlock(&trace->lock);
}

/* ---- writing ---- */

static void flush(struct sac_trace *trace)
{
    fwrite(trace->text.data, 1, trace->text.length, trace->file.file);
    sac_text_clear(&trace->text);
}

/* The array's brackets are written once, each element by itself. */
static struct sac_json begin_element(struct sac_trace *trace, const char *kind)
{
    struct sac_json json = {.text = &trace->text};
    sac_text_add(&trace->text, trace->comma ? ",\n" : "[\n");
    trace->comma = true;
    sac_json_open(&json, NULL, '{');
    sac_json_string(&json, "ph", kind);
    sac_json_int(&json, "pid", 1);
    return json;
}

static void end_element(struct sac_json *json)
{
    sac_json_close(json, '}'); /* of its arguments */
    sac_json_close(json, '}');
}

static void write_name(struct sac_trace *trace, const char *what, int tid, const char *name)
{
    struct sac_json json = begin_element(trace, "M");
    sac_json_int(&json, "tid", tid);
    sac_json_string(&json, "name", what);
    sac_json_open(&json, "args", '{');
    sac_json_string(&json, "name", name);
    end_element(&json);
}

/* Microseconds with three decimals, as the format has it. */
static void add_time(struct sac_json *json, const char *key, int64_t ns)
{
    sac_json_fixed(json, key, (double)SAC_MAX(ns, 0) * 1e-3, 3);
}

static void write_event(struct sac_trace *trace, const struct sac_trace_event *e)
{
    struct sac_json json = begin_element(trace, "X");
    sac_json_string(&json, "name", e->name);
    sac_json_int(&json, "tid", e->track + 1);
    add_time(&json, "ts", e->begun_ns - trace->origin_ns);
    add_time(&json, "dur", e->ended_ns - e->begun_ns);
    sac_json_open(&json, "args", '{');
    sac_json_int(&json, "stream", e->stream_id);
    sac_json_int(&json, "frame", e->frame);
    sac_json_fixed(&json, "pts", (double)e->pts_us * 1e-6, 6);
    if (e->batch > 1)
        sac_json_int(&json, "batch", e->batch);
    end_element(&json);
    if (trace->text.length >= LINES_BYTES)
        flush(trace);
}

static void write_track_names(struct sac_trace *trace, int count)
{
    for (; trace->tracks_written < count; trace->tracks_written++)
        write_name(trace, "thread_name", trace->tracks_written + 1,
                   trace->track_name[trace->tracks_written]); /* constant once counted */
}

/* Wait for events; false: none are left and none will come. The counts of events and tracks are
 * read under the lock; the events are not changed until they are released, so writing needs no
 * lock. */
static bool wait_for_events(struct sac_trace *trace, size_t *count, int *tracks)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WRITE_EVERY_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&trace->lock);
    while (!trace->ended && trace->count < RING / 2)
        if (pthread_cond_timedwait(&trace->wake, &trace->lock, &until) != 0)
            break;
    *count = trace->count;
    *tracks = trace->track_count;
    bool more = *count > 0 || !trace->ended;
    pthread_mutex_unlock(&trace->lock);
    return more;
}

static void free_events(struct sac_trace *trace, size_t count)
{
    pthread_mutex_lock(&trace->lock);
    trace->first = (trace->first + count) % RING;
    trace->count -= count;
    pthread_mutex_unlock(&trace->lock);
}

static sac_result check(struct sac_trace *trace)
{
    if (trace->text.failed)
        return SAC_FAIL(trace->ctx, SAC_ERR_MEMORY, "'%s': no memory for its lines",
                        trace->file.name.path);
    return sac_outfile_check(&trace->file);
}

/* After a fault the ring is still emptied: the run goes on, and finish says what happened. */
static void *write_main(void *arg)
{
    struct sac_trace *trace = arg;
    size_t            count;
    int               tracks;
    write_name(trace, "process_name", 0, "saccade");
    while (wait_for_events(trace, &count, &tracks)) {
        for (size_t i = 0; trace->written == SAC_OK && i < count; i++) {
            if (i == 0)
                write_track_names(trace, tracks);
            write_event(trace, &trace->ring[(trace->first + i) % RING]);
        }
        free_events(trace, count);
        if (trace->written == SAC_OK) {
            flush(trace);
            trace->written = check(trace);
            sac_context_last_error(trace->ctx, trace->why, sizeof trace->why);
        }
    }
    return NULL;
}

/* ---- life ---- */

sac_result sac_trace_create(sac_context *ctx, const char *path, struct sac_trace **out)
{
    static atomic_uint_fast64_t serial;
    struct sac_trace           *trace = sac_new(struct sac_trace);
    if (!trace)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a trace");
    trace->ctx = ctx;
    trace->serial = atomic_fetch_add(&serial, 1) + 1;
    trace->origin_ns = sac_time_ns();
    pthread_mutex_init(&trace->lock, NULL);
    pthread_cond_init(&trace->wake, NULL);
    sac_result res = sac_outfile_open(ctx, path, &trace->file);
    trace->file.keep = true;
    if (res == SAC_OK)
        res = sac_thread_start(ctx, &trace->writer, "sac-trace", write_main, trace);
    trace->started = res == SAC_OK;
    if (res == SAC_OK)
        *out = trace;
    else
        sac_trace_destroy(&trace);
    return res;
}

static void end_writer(struct sac_trace *trace)
{
    if (!trace->started)
        return;
    pthread_mutex_lock(&trace->lock);
    trace->ended = true;
    pthread_cond_signal(&trace->wake);
    pthread_mutex_unlock(&trace->lock);
    pthread_join(trace->writer, NULL);
    trace->started = false;
}

sac_result sac_trace_finish(struct sac_trace *trace)
{
    end_writer(trace);
    if (trace->written != SAC_OK)
        return SAC_FAIL(trace->ctx, trace->written, "%s", trace->why);
    if (!trace->file.file)
        return SAC_OK; /* finished before */
    if (trace->dropped)
        sac_log(trace->ctx, SAC_LOG_WARN,
                "'%s': %" PRIu64 " of %" PRIu64 " events are missing: they came faster than they "
                "could be written",
                trace->file.name.path, trace->dropped, trace->added);
    sac_text_add(&trace->text, "\n]\n");
    flush(trace);
    sac_result res = check(trace);
    return res == SAC_OK ? sac_outfile_finish(&trace->file) : res;
}

void sac_trace_destroy(struct sac_trace **trace_at)
{
    struct sac_trace *trace = trace_at ? *trace_at : NULL;
    if (!trace)
        return;
    end_writer(trace);
    sac_outfile_abandon(&trace->file);
    sac_text_finish(&trace->text);
    pthread_mutex_destroy(&trace->lock);
    pthread_cond_destroy(&trace->wake);
    sac_free(trace);
    *trace_at = NULL;
}
