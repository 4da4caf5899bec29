/* SPDX-License-Identifier: Apache-2.0 */
/* Running a model: the memory that its plans share, the inputs, and the order of runs on a
 * device. */
#include <stdio.h>
#include <string.h>

#include "engine/model/model.h"

/* ---- what runs need ---- */

/* Runs of a model take turns, whatever their streams, because they share its activations. */
sac_result sac_model_begin_runs(sac_model *m)
{
    const struct sac_device_ops *ops = m->dev->ops;
    sac_weight_store_init(&m->weights, m->dev, m->path, NULL, NULL);
    sac_result res = ops->stream_create(m->dev, &m->stream);
    m->on = m->stream;
    sac_finite_open(&m->finite, m->dev);
    if (res == SAC_OK && ops->capture_begin)
        res = ops->stream_create(m->dev, &m->capture);
    return res == SAC_OK ? ops->event_create(m->dev, false, &m->done) : res;
}

void sac_model_finish_runs(sac_model *m)
{
    const struct sac_device_ops *ops = m->dev->ops;
    sac_model_settle(m);
    sac_model_drop_plans(m);
    sac_buffer_unref(&m->activations);
    sac_weight_store_finish(&m->weights);
    sac_finite_close(&m->finite);
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

/* Do the tensors fit the ports? *stack: the number of stacked inputs where the port has a batch of
 * 1. */
static sac_result check_inputs(const sac_model *m, sac_tensor *const *in, int64_t *stack)
{
    *stack = 1;
    for (int i = 0; i < m->graph->input_count; i++) {
        const struct sac_model_port *port = &m->inputs[i];
        char                         is[128], wants[128];
        if (!in[i])
            return SAC_FAIL(m->ctx, SAC_ERR_ARG, "%s: input '%s' is missing", m->path, port->name);
        const struct sac_tensor_desc logical =
                                         sac_model_logical_desc(m, i, sac_tensor_describe(in[i])),
                                     *have = &logical;
        if (sac_tensor_device(in[i]) != m->dev)
            return SAC_FAIL(m->ctx, SAC_ERR_ARG, "%s: input '%s' is on another device (%s, not %s)",
                            m->path, port->name, sac_device_name(sac_tensor_device(in[i])),
                            sac_device_name(m->dev));
        if (!sac_tensor_is_aligned(in[i]))
            return SAC_FAIL(m->ctx, SAC_ERR_ARG,
                            "%s: input '%s' does not begin at a multiple of %d bytes", m->path,
                            port->name, m->dev->ops->tensor_align);
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
    if (m->batching == SAC_BATCH_WRONG) /* the ports still say open */
        stack = batch_of(m, in);
    if (stack <= 1)
        return sac_model_run_plain(m, in, out);
    if (!m->said_one_by_one)
        sac_log(m->ctx, SAC_LOG_INFO, "%s: stacked inputs run one by one%s%s", m->path,
                m->why_fixed[0] ? ": " : "", m->why_fixed);
    m->said_one_by_one = true;
    return sac_model_run_one_by_one(m, stack, in, out);
}

/* Runs on the stream, after the last run. The lock is held. */
static sac_result run_queued(sac_model *m, struct sac_device_stream *stream, sac_tensor *const *in,
                             sac_tensor **out)
{
    const struct sac_device_ops *ops = m->dev->ops;
    sac_result                   res =
        m->queued && stream != m->last ? ops->stream_wait_event(m->dev, stream, m->done) : SAC_OK;
    m->on = m->last = stream;
    if (res == SAC_OK)
        res = run_locked(m, in, out);
    if (res == SAC_OK && stream == m->stream) /* others look at what counts for them */
        res = sac_finite_look(&m->finite, m->dev, stream, out, m->graph->output_count, 0, 0);
    /* also after an error: work may be queued */
    sac_result marked = ops->event_record(m->done, stream);
    m->queued = marked == SAC_OK;
    m->on = m->stream;
    return res == SAC_OK ? marked : res;
}

static sac_result check_whole(const sac_model *m)
{
    if (!m->partial)
        return SAC_OK;
    return SAC_FAIL(m->ctx, SAC_ERR_UNSUPPORTED,
                    "%s: it was opened for inspection, and not all its operators are supported",
                    m->path);
}

sac_result sac_model_run_on(sac_model *m, struct sac_device_stream *stream, sac_tensor *const *in,
                            sac_tensor **out)
{
    const struct sac_device_ops *ops = m->dev->ops;
    sac_result                   res = check_whole(m);
    if (res != SAC_OK)
        return res;
    pthread_mutex_lock(&m->lock);
    if (stream) {
        res = run_queued(m, stream, in, out);
    } else { /* the device's own stream cannot be captured */
        res = ops->stream_after(m->dev, m->stream, NULL);
        if (res == SAC_OK)
            res = run_queued(m, m->stream, in, out);
        sac_result behind = ops->stream_after(m->dev, NULL, m->stream);
        res = res == SAC_OK ? behind : res;
    }
    pthread_mutex_unlock(&m->lock);
    return res;
}

void sac_model_forget_not_finite(sac_model *m)
{
    pthread_mutex_lock(&m->lock);
    sac_finite_forget(&m->finite);
    pthread_mutex_unlock(&m->lock);
}

void sac_model_say_not_finite(sac_model *m)
{
    pthread_mutex_lock(&m->lock);
    sac_finite_say(&m->finite, m->ctx, m->path, sac_model_precision(m));
    pthread_mutex_unlock(&m->lock);
}

static void unref_outputs(sac_model *m, sac_tensor **out)
{
    for (int i = 0; i < m->graph->output_count; i++)
        sac_tensor_unref(&out[i]);
}

sac_result sac_model_queue(sac_model *m, sac_tensor *const *in, sac_tensor **out)
{
    SAC_NEEDS(m ? m->ctx : NULL, m);
    SAC_NEEDS_ARRAY(m ? m->ctx : NULL, in, m->graph->input_count);
    SAC_NEEDS_ARRAY(m ? m->ctx : NULL, out, m->graph->output_count);
    for (int i = 0; i < m->graph->output_count; i++)
        out[i] = NULL;
    sac_result res = sac_model_run_on(m, NULL, in, out);
    for (int i = 0; i < m->graph->input_count; i++) /* the device's own stream is behind the run */
        if (in[i])
            sac_tensor_used(in[i], NULL);
    if (res != SAC_OK)
        unref_outputs(m, out);
    return res;
}

sac_result sac_model_run(sac_model *m, sac_tensor *const *in, sac_tensor **out)
{
    SAC_NEEDS(m ? m->ctx : NULL, m);
    SAC_NEEDS_ARRAY(m ? m->ctx : NULL, in, m->graph->input_count);
    SAC_NEEDS_ARRAY(m ? m->ctx : NULL, out, m->graph->output_count);
    for (int i = 0; i < m->graph->output_count; i++)
        out[i] = NULL;
    sac_result res = sac_model_run_on(m, NULL, in, out);
    if (m->partial)
        return res;
    pthread_mutex_lock(&m->lock);
    sac_result done = m->queued ? m->dev->ops->event_wait(m->done) : SAC_OK;
    if (res == SAC_OK && done == SAC_OK)
        sac_finite_say(&m->finite, m->ctx, m->path, m->params.precision);
    pthread_mutex_unlock(&m->lock);
    if (res != SAC_OK || done != SAC_OK)
        unref_outputs(m, out);
    return res == SAC_OK ? done : res;
}

int sac_model_batches(sac_model *m)
{
    if (!m)
        return 0;
    pthread_mutex_lock(&m->lock);
    sac_model_settle(m);
    if (m->batching == SAC_BATCH_UNCHECKED && sac_model_check_batch(m) != SAC_OK)
        m->batching = SAC_BATCH_WRONG;
    int batches = m->batching == SAC_BATCH_FREE;
    pthread_mutex_unlock(&m->lock);
    return batches;
}
