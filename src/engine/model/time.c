/* SPDX-License-Identifier: Apache-2.0 */
/* How long a model's runs take, by the device's own clock where it has one. */
#include <stdlib.h>

#include "engine/model/model.h"

enum { ROUNDS = 9, ROUNDS_LEAST = 3, WARM = 3, RUNS_MAX = 10000 };

struct timing {
    sac_model                *model;
    sac_tensor *const        *in;
    sac_tensor              **out;
    struct sac_device_stream *stream;
    struct sac_event         *begin, *end;
    bool                      vary; /* the outputs' shapes depend on the data */
};

static void drop_outputs(struct timing *t, bool really)
{
    for (int i = 0; t->out && i < t->model->graph->output_count && really; i++)
        sac_tensor_unref(&t->out[i]);
}

/* Outputs are written again and again, as a plan is one launch only with the same addresses. */
static sac_result run(struct timing *t, int runs)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < runs && res == SAC_OK; i++) {
        res = sac_model_run_on(t->model, t->stream, t->in, t->out);
        drop_outputs(t, t->vary);
    }
    return res;
}

static sac_result time_runs(struct timing *t, int runs, double *ms)
{
    const struct sac_device_ops *ops = t->model->dev->ops;
    int64_t                      ns = 0;
    sac_result                   res = ops->event_record(t->begin, t->stream);
    if (res == SAC_OK)
        res = run(t, runs);
    if (res == SAC_OK)
        res = ops->event_record(t->end, t->stream);
    if (res == SAC_OK)
        res = ops->event_wait(t->end);
    if (res == SAC_OK)
        res = ops->event_elapsed(t->begin, t->end, &ns);
    *ms = (double)ns / 1e6 / runs;
    return res;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Nine rounds, or three where a run is so long that nine would take more than was asked for. */
static sac_result time_rounds(struct timing *t, double seconds, struct sac_model_times *out)
{
    double        ms[ROUNDS], once = 0;
    const double  limit_ms = seconds * 1e3;
    const int64_t begun = sac_time_ns();
    sac_result    res = time_runs(t, 1, &once); /* plans, and fills out */
    out->plan_ms = (double)(sac_time_ns() - begun) / 1e6;
    t->vary = sac_model_shapes_vary(t->model);
    drop_outputs(t, t->vary);
    if (res == SAC_OK)
        res = time_runs(t, 1, &once);
    if (res == SAC_OK && once * WARM < limit_ms)
        res = time_runs(t, WARM, &once);
    const int rounds = once * ROUNDS < limit_ms ? ROUNDS : ROUNDS_LEAST;
    const int runs = (int)SAC_CLAMP(limit_ms / rounds / SAC_MAX(once, 1e-3), 1, RUNS_MAX);
    for (int i = 0; i < rounds && res == SAC_OK; i++)
        res = time_runs(t, runs, &ms[i]);
    if (res != SAC_OK)
        return res;
    qsort(ms, (size_t)rounds, sizeof *ms, by_value);
    out->median_ms = ms[rounds / 2];
    out->best_ms = ms[0];
    out->runs = (int64_t)rounds * runs;
    return SAC_OK;
}

static sac_result open_timing(struct timing *t)
{
    sac_device                  *dev = t->model->dev;
    const struct sac_device_ops *ops = dev->ops;
    sac_result                   res = ops->stream_create(dev, &t->stream);
    if (res == SAC_OK)
        res = ops->event_create(dev, true, &t->begin);
    if (res == SAC_OK)
        res = ops->event_create(dev, true, &t->end);
    /* the inputs may still be on their way on the device's own stream */
    return res == SAC_OK ? ops->stream_after(dev, t->stream, NULL) : res;
}

static sac_result close_timing(struct timing *t)
{
    const struct sac_device_ops *ops = t->model->dev->ops;
    const sac_result             res = t->stream ? ops->stream_wait(t->stream) : SAC_OK;
    drop_outputs(t, true);
    sac_free(t->out);
    if (t->begin)
        ops->event_destroy(&t->begin);
    if (t->end)
        ops->event_destroy(&t->end);
    if (t->stream)
        ops->stream_destroy(&t->stream);
    return res;
}

sac_result sac_model_time(sac_model *m, sac_tensor *const *in, double seconds,
                          struct sac_model_times *out)
{
    SAC_NEEDS(m ? m->ctx : NULL, m);
    SAC_NEEDS_ARRAY(m->ctx, in, m->graph->input_count);
    SAC_NEEDS(m->ctx, out);
    const struct sac_number number = {"seconds", seconds, 0, 86400};
    if (sac_numbers_check(m->ctx, "time", &number, 1) != SAC_OK)
        return SAC_ERR_ARG;
    struct timing          t = {.model = m, .in = in};
    struct sac_model_times times = {0};
    t.out = sac_calloc((size_t)m->graph->output_count + 1, sizeof(sac_tensor *));
    if (!t.out)
        return SAC_FAIL(m->ctx, SAC_ERR_MEMORY, "%s: no memory to run", m->path);
    sac_result res = open_timing(&t);
    if (res == SAC_OK)
        res = time_rounds(&t, seconds, &times);
    const sac_result done = close_timing(&t);
    sac_model_forget_not_finite(m); /* the time counts, not the numbers */
    if (res == SAC_OK && done == SAC_OK)
        *out = times;
    return res == SAC_OK ? done : res;
}
