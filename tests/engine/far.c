/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "device/dlpack.h"
#include "engine/kernel/layout.h"
#include "engine/kernel/finite.h"
#include "tests/engine/far.h"
#include "tests/test.h"
#include "vision/vision.h"

struct far_counts                 far_counts;
const struct sac_kernel_provider *far_first;

/* Threads of a pipeline share the device: one at a time. */
static pthread_mutex_t lock;
static pthread_once_t  lock_once = PTHREAD_ONCE_INIT;

static void make_lock(void)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attr);
}

static void enter(void)
{
    pthread_once(&lock_once, make_lock);
    pthread_mutex_lock(&lock);
}

static void leave(void)
{
    pthread_mutex_unlock(&lock);
}

/* ---- memory: addresses in a guarded range stand for those in another ---- */

static const size_t ROOM = (size_t)1 << 30;
static struct {
    char  *guarded, *real;
    size_t used;
} memory;

static void *near(const void *far)
{
    const uintptr_t at = (uintptr_t)far - (uintptr_t)memory.guarded;
    enter();
    const bool own = at < memory.used;
    leave();
    if (!own)
        fail_msg("the device was given an address that is not its own: %p", far);
    return memory.real + at;
}

static bool is_far(const void *p)
{
    return (uintptr_t)p - (uintptr_t)memory.guarded < ROOM;
}

static sac_result far_alloc(struct sac_device *dev, size_t bytes, void **out)
{
    (void)dev;
    bytes = (bytes + 4095) / 4096 * 4096;
    enter();
    const bool full = far_counts.full || memory.used + bytes > ROOM;
    if (!full) {
        *out = memory.guarded + memory.used;
        memset(memory.real + memory.used, 0xa5, bytes);
        memory.used += bytes;
    }
    leave();
    return full ? SAC_ERR_MEMORY : SAC_OK;
}

static void far_free(struct sac_device *dev, void *p)
{
    (void)dev, (void)p;
}

static sac_result far_host_alloc(struct sac_device *dev, size_t bytes, void **out)
{
    (void)dev;
    *out = sac_alloc_aligned(64, bytes);
    return *out ? SAC_OK : SAC_ERR_MEMORY;
}

static void far_host_free(struct sac_device *dev, void *p)
{
    (void)dev;
    sac_free(p);
}

/* ---- work: a list for each stream, done up to where somebody waits and no further ---- */

struct far_work {
    void (*run)(struct far_work *w);
    void (*free)(struct far_work *w); /* NULL: only itself */
    /* copies and layouts */
    void              *dst;
    const void        *src;
    size_t             bytes;
    struct sac_operand o;
    int                to, from;
    /* kernels */
    void *state, *in[8], *out[8];
    /* another stream's list, up to `bytes` of its work */
    struct line *line;
};

/* Streams' lists stay to the program's end, as events may still name them. */
struct line {
    struct far_work *work;
    size_t           count, cap, done;
};

struct sac_device_stream {
    struct sac_device *dev;
    bool               capturing, borrowed;
    struct far_work   *captured;
    size_t             count, cap;
    struct far_part   *parts; /* of what is captured */
    size_t             part_count, part_cap;
    struct line       *line;
    bool               gathering; /* `captured` is launched as one, behind it: */
    struct sac_event **behind;
    size_t             behind_count, behind_cap;
    int                graphs; /* among it */
};
struct sac_event {
    bool                      timed;
    struct sac_device_stream *gathered; /* recorded with what is gathered there */
    struct line              *line;     /* NULL: never recorded */
    size_t                    after;
    int     looks; /* at one that is not reached: the device gets there while others work */
    int64_t at_ns; /* when the stream came to it, as do_event counts */
};
/* Work number `first` and what follows, up to the next part's, after other parts. */
struct far_part {
    size_t first;
    int   *after, count;
    bool   done;
};
struct sac_device_graph {
    struct far_work         *work;
    size_t                   count;
    struct far_part         *parts; /* NULL: all in its order */
    size_t                   part_count;
    struct sac_device_graph *next; /* of what is gathered: for another number of pieces */
};

enum { LINES_MAX = 1 << 16 };
static struct line own_line, *lines[LINES_MAX]; /* the device's own stream's; the others */
static size_t      line_count, ended_count;     /* those of streams that are gone come first */

static struct line *line_of(struct sac_device_stream *stream)
{
    return stream ? stream->line : &own_line;
}

static void queue(struct sac_device_stream *stream, const struct far_work *w)
{
    enter();
    const bool        captures = stream && (stream->capturing || stream->gathering);
    struct line      *line = line_of(stream);
    struct far_work **items = captures ? &stream->captured : &line->work;
    size_t           *count = captures ? &stream->count : &line->count;
    size_t           *cap = captures ? &stream->cap : &line->cap;
    assert_true(sac_grow((void **)items, cap, *count + 1, sizeof *w));
    (*items)[(*count)++] = *w;
    leave();
}

static void run_until(struct line *line, size_t end)
{
    enter();
    while (line->done < end) {
        struct far_work w = line->work[line->done++];
        w.run(&w);
    }
    leave();
}

/* All that is queued by now. */
static void run_line(struct line *line)
{
    enter();
    run_until(line, line->count);
    leave();
}

static void run_all(void)
{
    enter();
    run_line(&own_line);
    for (size_t i = ended_count; i < line_count; i++)
        run_line(lines[i]);
    leave();
}

/* ---- what is gathered ---- */

static void do_event(struct far_work *w);

static void record(struct sac_event *event, struct sac_device_stream *stream)
{
    if (!event->gathered || !event->timed)
        queue(stream, &(struct far_work){.run = do_event, .state = event});
    event->gathered = NULL;
    event->line = line_of(stream);
    event->after = event->line->count;
    event->looks = 0;
}

/* The rest comes one by one. */
static void queue_gathered(struct sac_device_stream *stream)
{
    const size_t count = stream->count;
    stream->gathering = false;
    stream->count = 0;
    for (size_t i = 0; i < count; i++)
        queue(stream, &stream->captured[i]);
    for (size_t i = 0; i < stream->behind_count; i++)
        record(stream->behind[i], stream);
    stream->behind_count = 0;
}

static void part(struct sac_device_stream *stream)
{
    enter();
    if (stream && stream->gathering) {
        far_counts.launches += stream->graphs;
        queue_gathered(stream);
    }
    leave();
}

static void gather_event(struct sac_device_stream *stream, struct sac_event *event)
{
    if (event->gathered)
        return;
    assert_true(sac_grow((void **)&stream->behind, &stream->behind_cap, stream->behind_count + 1,
                         sizeof(*stream->behind)));
    stream->behind[stream->behind_count++] = event;
    event->gathered = stream;
    if (event->timed)
        queue(stream, &(struct far_work){.run = do_event, .state = event});
}

static void far_gather_begin(struct sac_device *dev, struct sac_device_stream *stream)
{
    (void)dev;
    enter();
    stream->gathering = true;
    stream->count = 0;
    stream->graphs = 0;
    leave();
}

static sac_result far_gather_end(struct sac_device *dev, struct sac_device_stream *stream,
                                 struct sac_device_graph **graph, bool *one)
{
    (void)dev;
    enter();
    *one = stream->gathering && graph && stream->count > 0;
    struct sac_device_graph *g = *one ? *graph : NULL;
    while (g && g->count != stream->count)
        g = g->next;
    if (*one && !g) {
        g = sac_new(struct sac_device_graph);
        *g = (struct sac_device_graph){.count = stream->count, .next = *graph};
        *graph = g;
        far_counts.united_made++;
    }
    if (*one)
        queue_gathered(stream);
    far_counts.united += *one;
    far_counts.launches += *one;
    part(stream);
    leave();
    return SAC_OK;
}

static void do_wait(struct far_work *w)
{
    run_until(w->line, w->bytes);
}

/* What is queued on the stream from now on begins after the first `end` of the line. */
static void queue_wait(struct sac_device_stream *stream, struct line *line, size_t end)
{
    const bool gathering = stream && stream->gathering;
    if (!line || line == line_of(stream))
        return;
    if (gathering) /* it waits before all of that */
        stream->gathering = false;
    queue(stream, &(struct far_work){.run = do_wait, .line = line, .bytes = end});
    if (gathering)
        stream->gathering = true;
}

static sac_result far_stream_create(struct sac_device *dev, struct sac_device_stream **out)
{
    enter();
    *out = sac_new(struct sac_device_stream);
    (*out)->dev = dev;
    assert_true(line_count < LINES_MAX);
    (*out)->line = lines[line_count++] = sac_new(struct line);
    leave();
    return SAC_OK;
}

/* The handle of a caller's stream is one of far_stream_create. */
static sac_result far_stream_borrow(struct sac_device *dev, void *handle,
                                    struct sac_device_stream **out)
{
    const struct sac_device_stream *theirs = handle;
    *out = sac_new(struct sac_device_stream);
    **out = (struct sac_device_stream){.dev = dev, .borrowed = true, .line = theirs->line};
    return SAC_OK;
}

/* Nothing comes into it any more. */
static void end_line(struct line *line)
{
    size_t i = ended_count;
    run_line(line);
    sac_free(line->work);
    *line = (struct line){.count = line->count, .cap = line->count, .done = line->done};
    while (lines[i] != line)
        i++;
    lines[i] = lines[ended_count];
    lines[ended_count++] = line;
}

static void far_stream_destroy(struct sac_device_stream **stream)
{
    struct line *line = (*stream)->line;
    if ((*stream)->borrowed) {
        sac_free(*stream);
        *stream = NULL;
        return;
    }
    enter();
    end_line(line);
    leave();
    sac_free((*stream)->behind);
    sac_free((*stream)->captured);
    sac_free(*stream);
    *stream = NULL;
}

static sac_result far_stream_wait(struct sac_device_stream *stream)
{
    assert_false(stream && stream->capturing);
    part(stream);
    run_line(line_of(stream));
    return SAC_OK;
}

static sac_result far_stream_after(struct sac_device *dev, struct sac_device_stream *stream,
                                   struct sac_device_stream *other)
{
    (void)dev;
    part(other);
    enter();
    queue_wait(stream, line_of(other), line_of(other)->count);
    leave();
    return SAC_OK;
}

static sac_result far_event_create(struct sac_device *dev, bool timed, struct sac_event **out)
{
    (void)dev;
    *out = sac_new(struct sac_event);
    (*out)->timed = timed;
    return SAC_OK;
}

static void far_event_destroy(struct sac_event **event)
{
    part((*event)->gathered);
    run_all(); /* what is queued may still come to it */
    sac_free(*event);
    *event = NULL;
}

/* A microsecond for each kernel since the program began. */
static void do_event(struct far_work *w)
{
    struct sac_event *event = w->state;
    event->at_ns = (int64_t)far_counts.kernels * 1000;
}

static sac_result far_event_record(struct sac_event *event, struct sac_device_stream *stream)
{
    enter();
    if (stream && stream->gathering)
        gather_event(stream, event);
    else
        record(event, stream);
    leave();
    return SAC_OK;
}

static sac_result far_event_elapsed(struct sac_event *begin, struct sac_event *end, int64_t *ns)
{
    *ns = end->at_ns - begin->at_ns;
    return SAC_OK;
}

static sac_result far_event_wait(struct sac_event *event)
{
    part(event->gathered);
    enter();
    if (event->line)
        run_until(event->line, event->after);
    leave();
    return SAC_OK;
}

static void far_event_settle(struct sac_event *event)
{
    part(event->gathered);
}

static bool far_event_reached(struct sac_event *event)
{
    enter();
    bool reached = !event->gathered && (!event->line || event->line->done >= event->after);
    if (!reached && !event->gathered && far_counts.goes_on && ++event->looks > 3)
        far_event_wait(event);
    leave();
    return reached;
}

static sac_result far_stream_wait_event(struct sac_device *dev, struct sac_device_stream *stream,
                                        struct sac_event *event)
{
    (void)dev;
    if (event->gathered == stream && stream)
        return SAC_OK;
    part(event->gathered);
    enter();
    queue_wait(stream, event->line, event->after);
    leave();
    return SAC_OK;
}

/* So is that of a caller's event. */
static sac_result far_stream_wait_handle(struct sac_device *dev, struct sac_device_stream *stream,
                                         void *event)
{
    return far_stream_wait_event(dev, stream, event);
}

/* ---- copies and layouts ---- */

static void do_copy(struct far_work *w)
{
    memcpy(is_far(w->dst) ? near(w->dst) : w->dst, is_far(w->src) ? near(w->src) : w->src,
           w->bytes);
}

static sac_result far_copy(struct sac_device *dev, struct sac_device_stream *stream, void *dst,
                           const void *src, size_t bytes, enum sac_copy_kind kind)
{
    (void)dev;
    assert_false(stream && stream->capturing && kind != SAC_COPY_ON_DEVICE);
    assert_true(is_far(dst) == (kind != SAC_COPY_DEVICE_TO_HOST));
    assert_true(is_far(src) == (kind != SAC_COPY_HOST_TO_DEVICE));
    part(stream);
    queue(stream, &(struct far_work){.run = do_copy, .dst = dst, .src = src, .bytes = bytes});
    /* Downloads hurry: what should have been waited for then still has the memory's old bytes. */
    if (!stream || (far_counts.goes_on && kind == SAC_COPY_DEVICE_TO_HOST))
        run_line(line_of(stream));
    return SAC_OK;
}

static void do_relayout(struct far_work *w)
{
    sac_layout_convert(&w->o, near(w->dst), (enum sac_layout)w->to, near(w->src),
                       (enum sac_layout)w->from);
    far_counts.relayouts++;
}

static sac_result far_relayout(struct sac_device *dev, struct sac_device_stream *stream,
                               const struct sac_operand *o, void *dst, int to, const void *src,
                               int from)
{
    (void)dev;
    part(stream);
    queue(stream, &(struct far_work){
                      .run = do_relayout, .dst = dst, .src = src, .o = *o, .to = to, .from = from});
    return SAC_OK;
}

static void do_find_odd(struct far_work *w)
{
    if (!sac_numbers_are_finite(near(w->src), (int64_t)w->bytes / (w->to ? 2 : 4), w->to, w->from))
        *(uint32_t *)w->dst = 1;
}

static void do_clear(struct far_work *w)
{
    memset(near(w->dst), 0, w->bytes);
}

static sac_result far_clear(struct sac_device *dev, struct sac_device_stream *stream, void *at,
                            size_t bytes)
{
    (void)dev;
    queue(stream, &(struct far_work){.run = do_clear, .dst = at, .bytes = bytes});
    return SAC_OK;
}

static sac_result far_find_odd(struct sac_device *dev, struct sac_device_stream *stream,
                               const void *numbers, int64_t count, bool half, bool nan_alone,
                               uint32_t *odd)
{
    (void)dev;
    queue(stream, &(struct far_work){.run = do_find_odd,
                                     .dst = odd,
                                     .src = numbers,
                                     .bytes = (size_t)count * (half ? 2 : 4),
                                     .to = half,
                                     .from = nan_alone});
    return SAC_OK;
}

/* ---- capture ---- */

static sac_result far_capture_begin(struct sac_device *dev, struct sac_device_stream *stream)
{
    if (far_counts.capture_fails)
        return SAC_FAIL(dev->ctx, SAC_ERR_DEVICE, "far: no captures today");
    stream->capturing = true;
    stream->count = 0;
    return SAC_OK;
}

static sac_result far_capture_part(struct sac_device *dev, struct sac_device_stream *stream,
                                   const int *after, int count)
{
    (void)dev;
    sac_grow((void **)&stream->parts, &stream->part_cap, stream->part_count + 1,
             sizeof *stream->parts);
    struct far_part *part = &stream->parts[stream->part_count++];
    *part = (struct far_part){.first = stream->count, .count = count};
    part->after = sac_calloc((size_t)count + 1, sizeof *part->after);
    for (int i = 0; i < count; i++)
        part->after[i] = after[i];
    return SAC_OK;
}

static sac_result far_capture_end(struct sac_device *dev, struct sac_device_stream *stream,
                                  struct sac_device_graph **out)
{
    (void)dev;
    struct sac_device_graph *g = sac_new(struct sac_device_graph);
    g->work = sac_calloc(stream->count, sizeof *g->work);
    memcpy(g->work, stream->captured, stream->count * sizeof *g->work);
    g->count = stream->count;
    g->parts = stream->parts;
    g->part_count = stream->part_count;
    stream->parts = NULL;
    stream->part_count = stream->part_cap = 0;
    stream->capturing = false;
    far_counts.branched += g->parts != NULL;
    far_counts.captures++;
    *out = g;
    return SAC_OK;
}

static bool is_ready(const struct sac_device_graph *g, const struct far_part *part)
{
    for (int i = 0; i < part->count; i++)
        if (!g->parts[part->after[i]].done)
            return false;
    return !part->done;
}

/* Always the last one that is ready: far from the order in which they were queued, so that a part
 * which should wait for another and does not is found out. */
static void queue_parts(struct sac_device_stream *stream, struct sac_device_graph *g)
{
    for (size_t i = 0; i < g->part_count; i++)
        g->parts[i].done = false;
    for (size_t left = g->part_count; left > 0; left--) {
        size_t k = g->part_count;
        while (!is_ready(g, &g->parts[--k])) { /* the first that is left is, always */
        }
        const size_t end = k + 1 < g->part_count ? g->parts[k + 1].first : g->count;
        for (size_t i = g->parts[k].first; i < end; i++)
            queue(stream, &g->work[i]);
        g->parts[k].done = true;
    }
}

static sac_result far_graph_launch(struct sac_device *dev, struct sac_device_stream *stream,
                                   struct sac_device_graph *g)
{
    (void)dev;
    if (g->parts)
        queue_parts(stream, g);
    for (size_t i = 0; i < g->count && !g->parts; i++)
        queue(stream, &g->work[i]);
    if (stream && stream->gathering)
        stream->graphs++;
    else
        far_counts.launches++;
    return SAC_OK;
}

static void far_graph_destroy(struct sac_device *dev, struct sac_device_graph **g)
{
    (void)dev;
    run_all(); /* a real one waits for its last launch too */
    while (*g) {
        struct sac_device_graph *one = *g;
        *g = one->next;
        for (size_t i = 0; i < one->part_count; i++)
            sac_free(one->parts[i].after);
        sac_free(one->parts);
        sac_free(one->work);
        sac_free(one);
    }
}

/* ---- kernels ---- */

/* An operand where it lies: layout, and the steps of a part of another. */
struct place {
    struct sac_operand o;
    enum sac_layout    layout;
    int64_t            pixel, sample;
};

struct far_state {
    struct sac_op_call call;
    struct place       in[8], out[8];
    void              *constant[8]; /* taken: on the device */
};

/* Between where an operand lies and dense, plain host memory. */
static void walk(const struct place *p, void *far, void *plain, bool out)
{
    char         *at = near(far);
    const bool    half = p->o.dtype == SAC_F32 && sac_layout_is_half(p->layout);
    const size_t  size = half ? 2 : sac_dtype_bytes(p->o.dtype);
    const bool    last = sac_layout_is_last(p->layout);
    const int64_t n = p->o.rank > 0 ? p->o.dims[0] : 1, c = p->o.rank > 1 ? p->o.dims[1] : 1;
    int64_t       pixels = 1;
    for (int i = 2; i < p->o.rank; i++)
        pixels *= p->o.dims[i];
    const int64_t pixel = p->pixel ? p->pixel : last ? c : 1;
    const int64_t sample = p->sample ? p->sample : c * pixels, channel = last ? 1 : pixels;
    char         *dense = plain;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < c; k++)
            for (int64_t s = 0; s < pixels; s++, dense += sac_dtype_bytes(p->o.dtype)) {
                char *here = at + (size_t)(i * sample + k * channel + s * pixel) * size;
                float f;
                if (!half) {
                    memcpy(out ? here : dense, out ? dense : here, size);
                } else if (out) {
                    memcpy(&f, dense, 4);
                    memcpy(here, &(uint16_t){sac_float_to_half(f)}, 2);
                } else {
                    uint16_t h;
                    memcpy(&h, here, 2);
                    f = sac_half_to_float(h);
                    memcpy(dense, &f, 4);
                }
            }
}

/* As the test asked for. */
static void spoil(const struct sac_op *op, const struct sac_operand *out)
{
    float        *v = out->data;
    const int64_t count = out->dtype == SAC_F32 ? sac_operand_elements(out) : 0;
    if (far_counts.wrong && count &&
        (!far_counts.wrong_op || !strcmp(far_counts.wrong_op, op->name)))
        v[0] += 100;
    for (int64_t i = 0; i < count && far_counts.drift != 0; i++)
        v[i] *= 1 + far_counts.drift;
}

static void do_kernel(struct far_work *w)
{
    struct far_state   *s = w->state;
    struct sac_op_call *c = sac_new(struct sac_op_call);
    *c = s->call;
    for (int i = 0; i < c->in_count; i++)
        if (c->in[i].present) {
            c->in[i].data = sac_alloc_aligned(64, sac_operand_bytes(&c->in[i]) + 64);
            walk(&s->in[i], s->constant[i] ? s->constant[i] : w->in[i], c->in[i].data, false);
        }
    for (int i = 0; i < c->out_count; i++)
        if (c->out[i].present)
            c->out[i].data = sac_alloc_aligned(64, sac_operand_bytes(&c->out[i]) + 64);
    assert_int_equal(c->node->op->ref(c), SAC_OK);
    for (int i = 0; i < c->out_count; i++)
        if (c->out[i].present) {
            spoil(c->node->op, &c->out[i]);
            walk(&s->out[i], w->out[i], c->out[i].data, true);
        }
    for (int i = 0; i < c->in_count; i++)
        sac_free(c->in[i].present ? c->in[i].data : NULL);
    for (int i = 0; i < c->out_count; i++)
        sac_free(c->out[i].present ? c->out[i].data : NULL);
    sac_free(c);
    far_counts.kernels++;
}

static bool is_conv(const struct sac_op_call *c)
{
    return c->node->op->id == SAC_OP_FusedConv || c->node->op->id == SAC_OP_Conv;
}

/* Convolutions and concatenations in channels last, others in the layout that they find when all
 * their operands have it; the rest plain. */
static struct sac_kernel_offer far_supports(struct sac_device                *dev,
                                            const struct sac_kernel_question *q)
{
    (void)dev;
    const struct sac_op_call *c = q->call;
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const enum sac_op_id      id = c->node->op->id;
    if (c->in_count > 8 || c->out_count > 8)
        return sac_kernel_refuse("more operands than the test has");
    const bool half = q->precision == SAC_PRECISION_FP16;
    const bool last = (is_conv(c) || id == SAC_OP_Concat || id == SAC_OP_Relu || id == SAC_OP_Add ||
                       id == SAC_OP_Resize) &&
                      c->in[0].rank == 4;
    for (int i = 0; i < c->in_count; i++)
        offer.in_layout[i] = c->in[i].rank == 4 && !(is_conv(c) && i == 1)
                                 ? sac_layout_of(last, half)
                                 : sac_layout_of(false, half);
    for (int i = 0; i < c->out_count; i++)
        offer.out_layout[i] =
            c->out[i].rank == 4 ? sac_layout_of(last, half) : sac_layout_of(false, half);
    offer.strided = last && id != SAC_OP_Add;
    offer.writes_any = id == SAC_OP_Resize;
    return offer;
}

static void put_weights(void *arg, void *host)
{
    const struct sac_operand *o = arg;
    memcpy(host, o->data, sac_operand_bytes(o));
}

static void describe_places(const struct sac_kernel_plan *p, struct far_state *s)
{
    for (int i = 0; i < s->call.in_count; i++)
        s->in[i] = (struct place){s->call.in[i], p->in_layout[i], p->in_pixel[i], p->in_sample[i]};
    for (int i = 0; i < s->call.out_count; i++)
        s->out[i] =
            (struct place){s->call.out[i], p->out_layout[i], p->out_pixel[i], p->out_sample[i]};
}

/* Each its own, so that one is not taken for another's. */
static void name_variant(const struct sac_kernel_plan *p, char *out, size_t size)
{
    snprintf(out, size, "variant 7 of %s", sac_node_result(p->call->node)->name);
}

/* Its kernels of the plan under way, by the thread that prepares it. */
static _Thread_local struct {
    struct foreseen {
        struct sac_kernel_plan plan;
        const struct sac_node *node;
    } * items;
    size_t count, capacity, next;
} ahead;

static struct sac_kernel kernel;

static void far_foresee(struct sac_device *dev, const struct sac_kernel *k,
                        const struct sac_kernel_plan *p)
{
    (void)dev;
    assert_int_equal(ahead.next, 0);
    if (k != &kernel)
        return;
    assert_true(
        sac_grow((void **)&ahead.items, &ahead.capacity, ahead.count + 1, sizeof *ahead.items));
    ahead.items[ahead.count++] = (struct foreseen){*p, p->call->node};
}

static void far_forget(struct sac_device *dev)
{
    (void)dev;
    sac_free(ahead.items);
    memset(&ahead, 0, sizeof ahead);
}

#define SAME(field) assert_memory_equal(was->field, p->field, sizeof p->field)

/* Kernels come in the order that was told, with the same operands in the same places. */
static void check_foreseen(const struct sac_kernel_plan *p)
{
    if (ahead.next == ahead.count)
        return;
    const struct sac_kernel_plan *was = &ahead.items[ahead.next].plan;
    assert_ptr_equal(ahead.items[ahead.next++].node, p->call->node);
    assert_ptr_equal(was->choice, p->choice);
    assert_int_equal(was->lent, p->lent);
    assert_int_equal(was->measure, p->measure);
    assert_int_equal(was->precision, p->precision);
    SAME(in_layout);
    SAME(out_layout);
    SAME(in_pixel);
    SAME(in_sample);
    SAME(out_pixel);
    SAME(out_sample);
    SAME(in_align);
    SAME(out_align);
    far_counts.foreseen++;
}

static sac_result far_prepare(struct sac_device *dev, struct sac_kernel_plan *p)
{
    struct far_state *s = sac_new(struct far_state);
    char              variant[SAC_KERNEL_CHOICE_MAX];
    (void)dev;
    name_variant(p, variant, sizeof variant);
    check_foreseen(p);
    s->call = *p->call;
    describe_places(p, s);
    if (is_conv(p->call) && s->call.in[1].data) {
        assert_int_equal(p->weights->ops->get(p->weights, s->call.in[1].data, "far",
                                              sac_operand_bytes(&s->call.in[1]), put_weights,
                                              &s->call.in[1], &s->constant[1]),
                         SAC_OK);
        p->in_taken[1] = true;
        s->in[1].layout = SAC_LAYOUT_PLAIN;
        far_counts.taken++;
    }
    far_counts.prepared++;
    far_counts.measured += p->measure && !p->choice;
    far_counts.told += p->choice && strcmp(p->choice, variant) == 0;
    far_counts.lent += p->choice && p->lent;
    if (is_conv(p->call))
        strcpy(p->chosen, variant);
    strcpy(p->implementation, "ref");
    p->scratch_bytes = 100;
    p->state = s;
    return SAC_OK;
}

static sac_result far_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                          void *scratch, struct sac_device_stream *stream)
{
    struct far_state *s = state;
    struct far_work   w = {.run = do_kernel, .state = state};
    (void)dev;
    near(scratch);
    part(stream);
    for (int i = 0; i < s->call.in_count; i++) {
        w.in[i] = in[i];
        assert_true(!s->constant[i] || !in[i]);
    }
    for (int i = 0; i < s->call.out_count; i++)
        w.out[i] = out[i];
    queue(stream, &w);
    return SAC_OK;
}

static void far_release(void *state)
{
    run_all();
    sac_free(state);
}

/* A call of kernels that are not ours; captured graphs repeat it, so it stays to the program's
 * end. */
struct far_call {
    struct far_call *next;
    far_run_fn      *run;
    const void      *state;
    int              in_count, out_count;
    void            *in[SAC_OP_INPUTS_MAX], *out[SAC_OP_OUTPUTS_MAX], *scratch;
};
static struct far_call *calls;

static void do_call(struct far_work *w)
{
    struct far_call *c = w->state;
    void            *in[SAC_OP_INPUTS_MAX], *out[SAC_OP_OUTPUTS_MAX];
    for (int i = 0; i < c->in_count; i++)
        in[i] = c->in[i] ? near(c->in[i]) : NULL;
    for (int i = 0; i < c->out_count; i++)
        out[i] = c->out[i] ? near(c->out[i]) : NULL;
    c->run(c->state, in, out, c->scratch ? near(c->scratch) : NULL);
    far_counts.kernels++;
}

void far_queue(struct sac_device_stream *stream, far_run_fn *run, const void *state, int in_count,
               void *const *in, int out_count, void *const *out, void *scratch)
{
    struct far_call *c = sac_new(struct far_call);
    *c = (struct far_call){.next = calls,
                           .run = run,
                           .state = state,
                           .in_count = in_count,
                           .out_count = out_count,
                           .scratch = scratch};
    part(stream);
    memcpy(c->in, in, (size_t)in_count * sizeof *in);
    memcpy(c->out, out, (size_t)out_count * sizeof *out);
    calls = c;
    queue(stream, &(struct far_work){.run = do_call, .state = c});
}

/* ---- pictures ---- */

struct picture {
    far_picture_fn *run;
    sac_device     *cpu;
    void           *arg;
};

static void do_picture(struct far_work *w)
{
    struct picture *p = w->state;
    p->run(p->cpu, p->arg);
    sac_free(p->arg);
    sac_free(p);
}

void far_queue_picture(sac_device *dev, struct sac_device_stream *stream, far_picture_fn *run,
                       void *arg)
{
    struct picture *p = sac_new(struct picture);
    assert_false(stream && stream->capturing);
    *p = (struct picture){run, dev->state, arg};
    queue(stream, &(struct far_work){.run = do_picture, .state = p});
}

void *far_near(const void *far)
{
    return far ? near(far) : NULL;
}

/* ---- the provider ---- */

static struct sac_kernel kernel = {
    .supports = far_supports, .prepare = far_prepare, .run = far_run, .release = far_release};
static const struct sac_kernel *kernels[SAC_OP_COUNT];
static int                      open_count;

static sac_result provider_open(struct sac_device *dev)
{
    (void)dev;
    for (int i = 0; i < SAC_OP_COUNT; i++)
        kernels[i] = i == SAC_OP_Softmax || i == SAC_OP_LayerNormalization ? NULL : &kernel;
    open_count++;
    return SAC_OK;
}

static void provider_close(struct sac_device *dev)
{
    (void)dev;
    open_count--;
}

static const struct sac_kernel_provider  provider = {.abi = SAC_KERNEL_ABI,
                                                     .struct_size = sizeof provider,
                                                     .op_count = SAC_OP_COUNT,
                                                     .name = "far 1.0",
                                                     .open = provider_open,
                                                     .close = provider_close,
                                                     .kernels = kernels,
                                                     .foresee = far_foresee,
                                                     .forget = far_forget};
static const struct sac_kernel_provider *providers[2];

/* ---- the device ---- */

static sac_result far_device_open(struct sac_device *dev, int index)
{
    (void)index;
    if (!memory.guarded) {
        memory.guarded =
            mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        memory.real = mmap(NULL, ROOM, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    snprintf(dev->name, sizeof dev->name, "far:0");
    snprintf(dev->description, sizeof dev->description, "a device for tests");
    if (!dev->ops->vision->convert)
        return SAC_OK;
    return sac_device_open(dev->ctx, "cpu", NULL, (sac_device **)&dev->state);
}

static void far_device_close(struct sac_device *dev)
{
    sac_device *cpu = dev->state;
    run_all();
    sac_device_unref(&cpu);
    assert_int_equal(open_count, 0);
}

static const struct sac_vision_ops no_pictures; /* networks alone run here */

static struct sac_device_ops ops = {.name = "far",
                                    .measures_kernels = true,
                                    .precision = SAC_PRECISION_FP16,
                                    .tensor_align = 64,
                                    .dlpack_type = SAC_DLPACK_EXTENSION,
                                    .dlpack_types = 1u << SAC_DLPACK_EXTENSION,
                                    .open = far_device_open,
                                    .close = far_device_close,
                                    .memory_alloc = far_alloc,
                                    .memory_free = far_free,
                                    .host_alloc = far_host_alloc,
                                    .host_free = far_host_free,
                                    .stream_create = far_stream_create,
                                    .stream_create_patient = far_stream_create,
                                    .stream_destroy = far_stream_destroy,
                                    .stream_wait = far_stream_wait,
                                    .stream_after = far_stream_after,
                                    .event_create = far_event_create,
                                    .event_destroy = far_event_destroy,
                                    .event_record = far_event_record,
                                    .event_wait = far_event_wait,
                                    .event_settle = far_event_settle,
                                    .event_elapsed = far_event_elapsed,
                                    .event_reached = far_event_reached,
                                    .stream_wait_event = far_stream_wait_event,
                                    .stream_borrow = far_stream_borrow,
                                    .stream_wait_handle = far_stream_wait_handle,
                                    .copy = far_copy,
                                    .clear = far_clear,
                                    .vision = &no_pictures,
                                    .providers = providers,
                                    .relayout = far_relayout,
                                    .find_odd = far_find_odd,
                                    .capture_begin = far_capture_begin,
                                    .capture_part = far_capture_part,
                                    .capture_end = far_capture_end,
                                    .graph_launch = far_graph_launch,
                                    .graph_destroy = far_graph_destroy,
                                    .gather_begin = far_gather_begin,
                                    .gather_end = far_gather_end};

const struct sac_device_ops *far_ops(const struct sac_vision_ops *pictures)
{
    ops.vision = pictures ? pictures : &no_pictures;
    ops.provider_count = 0;
    if (far_first)
        providers[ops.provider_count++] = far_first;
    providers[ops.provider_count++] = &provider;
    return &ops;
}

sac_result far_open(sac_context *ctx, const struct sac_device_params *params, sac_device **out)
{
    far_counts = (struct far_counts){0};
    return sac_device_open_ops(ctx, far_ops(NULL), 0, params, out);
}
