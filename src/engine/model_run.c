/* SPDX-License-Identifier: Apache-2.0 */
/* Running a model: plans by input shapes, the arena that they share, and the order of runs on a device. */
#include <stdio.h>
#include <string.h>

#include "engine/arena.h"
#include "engine/model.h"

/* ---- what runs need ---- */

/* Runs of a model take turns, on whatever streams: they share its arena. */
sac_result sac_model_begin_runs(sac_model *m)
{
    const struct sac_device_ops *ops = m->dev->ops;
    sac_weight_store_init(&m->weights, m->dev, m->path, NULL, NULL);
    if (ops->host_memory)
        return SAC_OK;
    sac_result res = ops->stream_create(m->dev, &m->stream);
    m->on = m->stream;
    if (res == SAC_OK && ops->capture_begin)
        res = ops->stream_create(m->dev, &m->capture);
    return res == SAC_OK ? ops->event_create(m->dev, false, &m->done) : res;
}

/* Until what is queued is done: before memory that it uses goes. */
static void settle(sac_model *m)
{
    if (m->queued)
        m->dev->ops->event_wait(m->done);
    m->queued = false;
}

void sac_model_finish_runs(sac_model *m)
{
    const struct sac_device_ops *ops = m->dev->ops;
    sac_model_drop_plans(m);
    sac_buffer_unref(&m->arena);
    sac_weight_store_finish(&m->weights);
    sac_device_unref(&m->host);
    sac_book_finish(&m->book);
    sac_free(m->book_path);
    if (m->done)
        ops->event_destroy(&m->done);
    if (m->capture)
        ops->stream_destroy(&m->capture);
    if (m->stream)
        ops->stream_destroy(&m->stream);
}

/* ---- work on the host beside another device ---- */

struct names {
    char   text[400];
    size_t at;
};

static void add_name(struct names *n, const char *name)
{
    if (n->at < sizeof n->text && !strstr(n->text, name))
        n->at += (size_t)snprintf(n->text + n->at, sizeof n->text - n->at, "%s%s", n->at ? ", " : "", name);
}

/* Once a model: it costs transfers in each run. */
static void say_host_work(sac_model *m, const struct sac_plan *plan)
{
    struct names names = {.at = 0};
    for (size_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == SAC_STEP_REFERENCE)
            add_name(&names, plan->steps[i].node->op_type);
    for (size_t i = 0; i < plan->tail_count; i++)
        add_name(&names, plan->tail[i]->op_type);
    if (!m->said_host_work)
        sac_log(m->ctx, SAC_LOG_WARN,
                "%s: not all of it runs on %s: %s on the host, with their tensors copied in each run",
                m->path, m->dev->name, names.at ? names.text : "copies of inputs");
    m->said_host_work = true;
}

static sac_result provide_host(sac_model *m, struct sac_plan *plan)
{
    if (m->dev->ops->host_memory || !sac_plan_needs_host(plan))
        return SAC_OK;
    struct sac_device_params params = sac_device_params_default();
    params.threads = m->dev->params.threads;
    sac_result res = m->host ? SAC_OK : sac_device_open(m->ctx, "cpu", &params, &m->host);
    plan->host = m->host;
    if (res == SAC_OK)
        say_host_work(m, plan);
    return res;
}

/* ---- plans ---- */

static struct sac_plan **plan_slot(sac_model *m)
{
    struct sac_plan **oldest = &m->plans[0];
    for (int i = 0; i < SAC_PLANS_MAX; i++) {
        if (!m->plans[i])
            return &m->plans[i];
        if (m->plans[i]->used_at < (*oldest)->used_at)
            oldest = &m->plans[i];
    }
    return oldest;
}

static struct sac_plan *cached_plan(sac_model *m, const struct sac_operand *shapes)
{
    for (int i = 0; i < SAC_PLANS_MAX; i++)
        if (m->plans[i] && sac_plan_fits(m->plans[i], shapes))
            return m->plans[i];
    return NULL;
}

/* A plan with what the book says of these shapes, or, when it has no such page, with kernels that are
 * measured now. */
static sac_result create_plan(sac_model *m, const struct sac_operand *shapes, const char *text,
                              bool measure, struct sac_plan **out)
{
    const struct sac_book_page *page = sac_book_find(&m->book, text);
    const struct sac_plan_params params = {.reference = m->params.reference,
                                           .tolerant = m->partial,
                                           .memory_limit = m->params.memory_limit_bytes,
                                           .precision = m->params.precision,
                                           .first_input = m->first_input,
                                           .half_outputs = m->native,
                                           .weights = m->dev->ops->host_memory ? NULL : &m->weights,
                                           .measure = measure,
                                           .choices = page ? (const char *const *)page->choices : NULL,
                                           .choice_count = page ? page->count : 0};
    struct sac_plan *plan = NULL;
    sac_result       res = sac_plan_create(m->dev, m->graph, shapes, &params, &plan);
    if (res == SAC_OK)
        res = provide_host(m, plan);
    if (res != SAC_OK) {
        sac_plan_destroy(&plan);
        return sac_fail_prefix(m->ctx, res, "%s: ", m->path);
    }
    plan->capture = m->capture;
    *out = plan;
    return SAC_OK;
}

static sac_result make_plan(sac_model *m, const struct sac_operand *shapes, struct sac_plan **out)
{
    char          text[512];
    const int64_t begun = sac_time_ns();
    sac_book_shapes(shapes, m->graph->input_count, text, sizeof text);
    const bool measure = m->book.key[SAC_BOOK_MODEL] && !m->checking && !sac_book_find(&m->book, text);
    settle(m); /* measuring wants the device alone, and the oldest plan may go */
    sac_result res = create_plan(m, shapes, text, measure, out);
    if (res != SAC_OK || !measure)
        return res;
    sac_model_note_plan(m, text, *out);
    sac_log(m->ctx, SAC_LOG_INFO, "%s: planned for %s on %s in %.1f s%s%s", m->path, text, m->dev->name,
            (double)(sac_time_ns() - begun) / 1e9, m->book_path ? ", kept in " : "",
            m->book_path ? m->book_path : "");
    return SAC_OK;
}

sac_result sac_model_plan(sac_model *m, const struct sac_operand *shapes, struct sac_plan **out)
{
    struct sac_plan *plan = cached_plan(m, shapes);
    if (!plan) {
        sac_result res = make_plan(m, shapes, &plan);
        if (res != SAC_OK)
            return res;
        struct sac_plan **slot = plan_slot(m);
        sac_plan_destroy(slot);
        *slot = plan;
    }
    plan->used_at = ++m->clock;
    plan->profile = m->profile;
    *out = plan;
    return SAC_OK;
}

void sac_model_drop_plans(sac_model *m)
{
    settle(m);
    for (int i = 0; i < SAC_PLANS_MAX; i++)
        sac_plan_destroy(&m->plans[i]);
}

/* Plans take turns in one arena, as big as the biggest of them. */
static sac_result ensure_arena(sac_model *m, size_t bytes)
{
    struct sac_buffer *grown = NULL;
    if (bytes == 0 || (m->arena && sac_buffer_bytes(m->arena) >= bytes))
        return SAC_OK;
    settle(m);
    sac_buffer_unref(&m->arena);
    sac_result res = sac_buffer_create(m->dev, bytes, m->path, &grown);
    if (res == SAC_ERR_LIMIT && !m->dev->ops->host_memory)
        res = SAC_ERR_MEMORY; /* over the budget: a smaller batch may do */
    if (res != SAC_OK)
        return res;
    sac_buffer_keep(grown); /* as long as the model: no leak */
    m->arena = grown;
    return m->dev->ops->host_memory ? SAC_OK : m->dev->ops->stream_after(m->dev, m->on, NULL);
}

/* What a tensor of input i means: with the kernels' own layout taken, the first one's is [N,H,W,C] or float16
 * for a port [N,C,H,W] of float32. */
static struct sac_tensor_desc logical_desc(const sac_model *m, int i, const struct sac_tensor_desc *d)
{
    struct sac_tensor_desc desc = *d;
    if (i != 0 || m->first_input == SAC_LAYOUT_PLAIN)
        return desc;
    if (sac_layout_is_half(m->first_input) && d->dtype == SAC_F16)
        desc.dtype = SAC_F32;
    if (sac_layout_is_last(m->first_input) && d->rank > 2) {
        desc.shape[1] = d->shape[d->rank - 1];
        memcpy(desc.shape + 2, d->shape + 1, (size_t)(d->rank - 2) * sizeof(int64_t));
    }
    return desc;
}

static void shapes_of(const sac_model *m, sac_tensor *const *in, struct sac_operand *shapes)
{
    for (int i = 0; i < m->graph->input_count; i++) {
        const struct sac_tensor_desc *d = sac_tensor_describe(in[i]);
        const struct sac_tensor_desc logical = logical_desc(m, i, d);
        shapes[i] = (struct sac_operand){.dtype = logical.dtype, .rank = logical.rank, .present = true};
        memcpy(shapes[i].dims, logical.shape, (size_t)logical.rank * sizeof(int64_t));
    }
}

sac_result sac_model_run_plain(sac_model *m, sac_tensor *const *in, sac_tensor **out)
{
    struct sac_plan    *plan = NULL;
    struct sac_operand *shapes = sac_calloc((size_t)m->graph->input_count, sizeof *shapes);
    if (!shapes)
        return SAC_FAIL(m->ctx, SAC_ERR_MEMORY, "%s: no memory to run", m->path);
    shapes_of(m, in, shapes);
    sac_result res = sac_model_plan(m, shapes, &plan);
    sac_free(shapes);
    if (res != SAC_OK)
        return res;
    res = ensure_arena(m, plan->arena_bytes);
    if (res == SAC_OK)
        res = sac_plan_run(plan, m->on, m->arena ? sac_buffer_data(m->arena) : NULL, in, out);
    return res == SAC_OK ? res : sac_fail_prefix(m->ctx, res, "%s: ", m->path);
}

/* ---- a run ---- */

static void shape_text(const struct sac_tensor_desc *d, char *buf, size_t size)
{
    size_t at = (size_t)snprintf(buf, size, "[");
    for (int i = 0; i < d->rank && at < size; i++) {
        if (d->shape[i] < 0)
            at += (size_t)snprintf(buf + at, size - at, "%s?", i ? "," : "");
        else
            at += (size_t)snprintf(buf + at, size - at, "%s%lld", i ? "," : "",
                                   (long long)d->shape[i]);
    }
    if (at < size)
        snprintf(buf + at, size - at, "]");
}

/* Do the tensors fit the ports? *stack: how many inputs are stacked where the port has a batch of 1. */
static sac_result check_inputs(const sac_model *m, sac_tensor *const *in, int64_t *stack)
{
    *stack = 1;
    for (int i = 0; i < m->graph->input_count; i++) {
        const struct sac_model_port  *port = &m->inputs[i];
        char                          is[128], wants[128];
        if (!in[i])
            return SAC_FAIL(m->ctx, SAC_ERR_ARG, "%s: input '%s' is missing", m->path, port->name);
        const struct sac_tensor_desc logical = logical_desc(m, i, sac_tensor_describe(in[i])), *have = &logical;
        if (sac_tensor_device(in[i]) != m->dev)
            return SAC_FAIL(m->ctx, SAC_ERR_ARG, "%s: input '%s' is on another device (%s, not %s)",
                            m->path, port->name, sac_device_name(sac_tensor_device(in[i])),
                            sac_device_name(m->dev));
        if (!m->dev->ops->host_memory && (uintptr_t)sac_tensor_data(in[i]) % SAC_ARENA_ALIGN)
            return SAC_FAIL(m->ctx, SAC_ERR_ARG, "%s: input '%s' does not begin at a multiple of %d bytes",
                            m->path, port->name, (int)SAC_ARENA_ALIGN);
        bool fits = have->dtype == port->desc.dtype &&
                    (port->desc.rank < 0 || have->rank == port->desc.rank);
        for (int d = 0; fits && d < port->desc.rank; d++) {
            bool stacked = d == 0 && port->desc.shape[0] == 1 && have->shape[0] > 1 &&
                           (*stack == 1 || *stack == have->shape[0]);
            if (stacked)
                *stack = have->shape[0];
            fits = stacked || port->desc.shape[d] == SAC_DIM_OPEN ||
                   port->desc.shape[d] == have->shape[d];
        }
        if (!fits) {
            shape_text(have, is, sizeof is);
            shape_text(&port->desc, wants, sizeof wants);
            return SAC_FAIL(m->ctx, SAC_ERR_ARG, "%s: input '%s' wants %s %s but got %s %s",
                            m->path, port->name, sac_dtype_name(port->desc.dtype),
                            port->desc.rank < 0 ? "of any shape" : wants,
                            sac_dtype_name(have->dtype), is);
        }
    }
    return SAC_OK;
}

/* ---- tensors as the kernels have them ---- */

/* The layout in which all steps that read the plan's first input want it. */
static enum sac_layout wanted_input(const struct sac_plan *plan)
{
    const int       input = plan->slot_of[plan->graph->inputs[0]->id];
    enum sac_layout wanted = SAC_LAYOUT_COUNT;
    for (size_t i = 0; i < plan->step_count; i++)
        for (int k = 0; k < plan->steps[i].in_count; k++) {
            const struct sac_step *step = &plan->steps[i];
            if (step->slots[k] != input)
                continue;
            if (step->kind != SAC_STEP_CONVERT || wanted != SAC_LAYOUT_COUNT)
                return SAC_LAYOUT_PLAIN; /* it is read as it is, or in two ways */
            wanted = plan->slots[step->slots[step->in_count]].layout;
        }
    return wanted == SAC_LAYOUT_COUNT || plan->tail_count > 0 ? SAC_LAYOUT_PLAIN : wanted;
}

static sac_result find_native(sac_model *m, const struct sac_tensor_desc *first)
{
    struct sac_operand shape = {.dtype = first->dtype, .rank = first->rank, .present = true};
    struct sac_plan   *plan = NULL;
    memcpy(shape.dims, first->shape, sizeof shape.dims);
    sac_result res = create_plan(m, &shape, "", false, &plan);
    if (res != SAC_OK)
        return res;
    m->first_input = wanted_input(plan);
    m->native = true;
    settle(m);
    sac_plan_destroy(&plan);
    sac_model_drop_plans(m);
    return SAC_OK;
}

sac_result sac_model_take_native(sac_model *m, const struct sac_tensor_desc *first, enum sac_layout *layout)
{
    sac_result res = SAC_OK;
    *layout = SAC_LAYOUT_PLAIN;
    if (m->dev->ops->host_memory || m->graph->input_count != 1 || m->partial)
        return SAC_OK;
    sac_model_batches(m); /* checks with tensors of the ports' kinds */
    pthread_mutex_lock(&m->lock);
    if (!m->native)
        res = find_native(m, first);
    *layout = m->first_input;
    pthread_mutex_unlock(&m->lock);
    return res;
}

static int64_t batch_of(const sac_model *m, sac_tensor *const *in)
{
    const struct sac_tensor_desc *d = m->graph->input_count ? sac_tensor_describe(in[0]) : NULL;
    return d && d->rank > 0 ? d->shape[0] : 1;
}

static sac_result run_locked(sac_model *m, sac_tensor *const *in, sac_tensor **out)
{
    int64_t    stack = 1;
    sac_result res = check_inputs(m, in, &stack);
    if (res == SAC_OK && m->batching == SAC_BATCH_UNCHECKED && batch_of(m, in) > 1)
        res = sac_model_check_batch(m);
    if (res != SAC_OK)
        return res;
    if (m->batching == SAC_BATCH_WRONG) /* open in the ports all the same */
        stack = batch_of(m, in);
    if (stack <= 1)
        return sac_model_run_plain(m, in, out);
    if (!m->said_one_by_one)
        sac_log(m->ctx, SAC_LOG_INFO, "%s: stacked inputs run one by one%s%s", m->path,
                m->why_fixed[0] ? ": " : "", m->why_fixed);
    m->said_one_by_one = true;
    return sac_model_run_one_by_one(m, stack, in, out);
}

/* On the stream, behind the last run; the lock is held. */
static sac_result run_queued(sac_model *m, struct sac_stream *stream, sac_tensor *const *in,
                             sac_tensor **out)
{
    const struct sac_device_ops *ops = m->dev->ops;
    if (ops->host_memory)
        return run_locked(m, in, out);
    sac_result res = m->queued && stream != m->last ? ops->stream_wait_event(m->dev, stream, m->done) : SAC_OK;
    m->on = m->last = stream;
    if (res == SAC_OK)
        res = run_locked(m, in, out);
    sac_result marked = ops->event_record(m->done, stream); /* also what a fault left queued */
    m->queued = marked == SAC_OK;
    m->on = m->stream;
    return res == SAC_OK ? marked : res;
}

static sac_result check_whole(const sac_model *m)
{
    if (!m->partial)
        return SAC_OK;
    return SAC_FAIL(m->ctx, SAC_ERR_UNSUPPORTED,
                    "%s: it was opened for inspection, and not all its operators are supported", m->path);
}

sac_result sac_model_run_on(sac_model *m, struct sac_stream *stream, sac_tensor *const *in,
                            sac_tensor **out)
{
    const struct sac_device_ops *ops = m->dev->ops;
    sac_result                   res = check_whole(m);
    if (res != SAC_OK)
        return res;
    pthread_mutex_lock(&m->lock);
    if (stream || ops->host_memory) {
        res = run_queued(m, stream, in, out);
    } else { /* the device's own, where nothing can be captured */
        res = ops->stream_after(m->dev, m->stream, NULL);
        if (res == SAC_OK)
            res = run_queued(m, m->stream, in, out);
        sac_result behind = ops->stream_after(m->dev, NULL, m->stream);
        res = res == SAC_OK ? behind : res;
    }
    pthread_mutex_unlock(&m->lock);
    return res;
}

static void unref_outputs(sac_model *m, sac_tensor **out)
{
    for (int i = 0; i < m->graph->output_count; i++)
        sac_tensor_unref(&out[i]);
}

sac_result sac_model_run(sac_model *m, sac_tensor *const *in, sac_tensor **out)
{
    for (int i = 0; i < m->graph->output_count; i++)
        out[i] = NULL;
    sac_result res = sac_model_run_on(m, NULL, in, out);
    if (m->dev->ops->host_memory || m->partial)
        return res;
    pthread_mutex_lock(&m->lock);
    sac_result done = m->queued ? m->dev->ops->event_wait(m->done) : SAC_OK;
    pthread_mutex_unlock(&m->lock);
    if (done != SAC_OK)
        unref_outputs(m, out);
    return res == SAC_OK ? done : res;
}

int sac_model_batches(sac_model *m)
{
    pthread_mutex_lock(&m->lock);
    settle(m);
    if (m->batching == SAC_BATCH_UNCHECKED && sac_model_check_batch(m) != SAC_OK)
        m->batching = SAC_BATCH_WRONG;
    int batches = m->batching == SAC_BATCH_FREE;
    pthread_mutex_unlock(&m->lock);
    return batches;
}
