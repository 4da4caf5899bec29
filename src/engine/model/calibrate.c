/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "engine/model/calibration.h"
#include "engine/model/ranges.h"

/* ---- samples ---- */

static void release(sac_tensor **in, int count)
{
    for (int i = 0; in && i < count; i++)
        sac_tensor_unref(&in[i]);
}

/* How many samples the inputs hold: what a picture has once, such as a scale, does not tell. 0: the
 * samples are others. */
static int64_t room_for(const struct sac_tensor_desc *desc, sac_tensor *const *in, int count)
{
    int64_t room = 1;
    for (int i = 0; i < count; i++) {
        const struct sac_tensor_desc *one = sac_tensor_describe(in[i]);
        const int64_t all = sac_tensor_desc_bytes(&desc[i]), part = sac_tensor_desc_bytes(one);
        if (desc[i].dtype != one->dtype || part == 0 || all % part)
            return 0;
        room = SAC_MAX(room, all / part);
    }
    return room;
}

static bool put(const struct sac_tensor_desc *desc, sac_tensor *const *in, int count,
                void *const *numbers, int64_t at, int64_t room)
{
    for (int i = 0; i < count; i++) {
        const int64_t all = sac_tensor_desc_bytes(&desc[i]),
                      part = sac_tensor_desc_bytes(sac_tensor_describe(in[i]));
        if (all != part && all != part * room)
            return false;
        memcpy((char *)numbers[i] + (all == part ? 0 : at * part), sac_tensor_data(in[i]),
               (size_t)part);
    }
    return true;
}

static sac_result do_not_fit(const sac_calibration *cal, const sac_model *m)
{
    return SAC_FAIL(m->ctx, SAC_ERR_FORMAT,
                    "calibration: %s, prepared for %s, is no input of these sizes", cal->sample,
                    m->path);
}

sac_result sac_calibration_gather(sac_calibration *cal, const sac_model *m,
                                  const struct sac_tensor_desc *desc, void *const *numbers,
                                  int *samples, bool *last)
{
    const int    count = m->graph->input_count;
    sac_tensor **in = sac_calloc((size_t)count + 1, sizeof(sac_tensor *));
    sac_result   res =
        in ? SAC_OK : SAC_FAIL(m->ctx, SAC_ERR_MEMORY, "calibration: no memory for its inputs");
    int64_t room = 1;
    *samples = 0;
    *last = false;
    for (int64_t at = 0; at < room && res == SAC_OK; at++) {
        res = cal->ops->next(cal, desc, in);
        if (res == SAC_EOS && at > 0) {
            *last = true;
            res = cal->ops->rewind(cal);
            if (res == SAC_OK)
                res = cal->ops->next(cal, desc, in);
        }
        if (res == SAC_OK && at == 0)
            room = room_for(desc, in, count);
        if (res == SAC_OK && !put(desc, in, count, numbers, at, room))
            res = do_not_fit(cal, m);
        *samples += res == SAC_OK && !*last;
        release(in, count);
    }
    sac_free(in);
    *last |= res == SAC_EOS;
    return res == SAC_EOS ? SAC_OK : res;
}

/* ---- the whole ---- */

struct session {
    sac_model        *model;
    sac_calibration  *cal;
    struct sac_watch  watch;
    struct sac_range *ranges;  /* [id_count] */
    void            **numbers; /* [inputs] */
    sac_tensor      **in;      /* [inputs], over numbers */
    char            **names;   /* [count] of the samples */
    size_t            count, cap;
};

static sac_result no_memory(const struct session *s)
{
    return SAC_FAIL(s->model->ctx, SAC_ERR_MEMORY, "calibration: no memory");
}

static sac_result open_session(struct session *s, const struct sac_tensor_desc *desc)
{
    sac_model          *m = s->model;
    const size_t        inputs = (size_t)m->graph->input_count;
    struct sac_operand *shapes = sac_calloc(inputs + 1, sizeof *shapes);
    s->ranges = sac_calloc((size_t)m->graph->id_count + 1, sizeof *s->ranges);
    s->numbers = sac_calloc(inputs + 1, sizeof *s->numbers);
    s->in = sac_calloc(inputs + 1, sizeof(sac_tensor *));
    sac_result res = shapes && s->ranges && s->numbers && s->in ? SAC_OK : no_memory(s);
    for (size_t i = 0; i < inputs && res == SAC_OK; i++) {
        shapes[i] =
            (struct sac_operand){.dtype = desc[i].dtype, .rank = desc[i].rank, .present = true};
        memcpy(shapes[i].dims, desc[i].shape, sizeof shapes[i].dims);
        s->numbers[i] = sac_alloc((size_t)sac_tensor_desc_bytes(&desc[i]));
        if (!s->numbers[i])
            res = no_memory(s);
    }
    if (res == SAC_OK)
        res = sac_watch_open(&s->watch, m, shapes, s->ranges);
    for (size_t i = 0; i < inputs && res == SAC_OK; i++)
        res = sac_tensor_wrap(s->watch.cpu, &desc[i], s->numbers[i], NULL, NULL, &s->in[i]);
    sac_free(shapes);
    return res;
}

static void close_session(struct session *s)
{
    release(s->in, s->model->graph->input_count);
    for (int i = 0; s->numbers && i < s->model->graph->input_count; i++)
        sac_free(s->numbers[i]);
    for (size_t i = 0; i < s->count; i++)
        sac_free(s->names[i]);
    sac_free(s->names);
    sac_free(s->numbers);
    sac_free(s->in);
    sac_free(s->ranges);
    sac_watch_close(&s->watch);
}

/* Of a run with several samples each has the name of the last: which of them it was is not seen. */
static bool keep_names(struct session *s, int samples)
{
    for (int i = 0; i < samples; i++) {
        if (!sac_grow((void **)&s->names, &s->cap, s->count + 1, sizeof *s->names) ||
            !(s->names[s->count] = sac_strdup(s->cal->sample)))
            return false;
        s->count++;
    }
    return true;
}

static sac_result show_all(struct session *s, const struct sac_tensor_desc *desc)
{
    static const int64_t EVERY_NS = 2000000000;
    int64_t              said_ns = sac_time_ns();
    int                  samples = 0;
    bool                 last = false;
    sac_result           res = s->cal->ops->rewind(s->cal);
    while (res == SAC_OK && !last) {
        const int first = (int)s->count;
        res = sac_calibration_gather(s->cal, s->model, desc, s->numbers, &samples, &last);
        if (res == SAC_OK && samples && !keep_names(s, samples))
            res = no_memory(s);
        if (res == SAC_OK && samples)
            res = sac_watch_run(&s->watch, s->in, first);
        if (sac_time_ns() - said_ns > EVERY_NS) {
            said_ns = sac_time_ns();
            sac_log(s->model->ctx, SAC_LOG_INFO, "%s: calibrated with %zu samples so far",
                    s->model->path, s->count);
        }
    }
    return res;
}

static int worst_of(const struct session *s)
{
    const struct sac_range *worst = &s->ranges[0];
    for (int i = 0; i < s->model->graph->id_count && !isnan(worst->most); i++)
        if (!(s->ranges[i].most <= worst->most))
            worst = &s->ranges[i];
    return worst->sample;
}

static sac_result calibrate(struct session *s, const struct sac_tensor_desc *desc, int *worst)
{
    sac_model    *m = s->model;
    const int64_t begun = sac_time_ns();
    sac_result    res = open_session(s, desc);
    if (res == SAC_OK)
        res = show_all(s, desc);
    if (res != SAC_OK)
        return res;
    const struct sac_calibrated seen = {.name = s->cal->name,
                                        .count = (int)s->count,
                                        .low = s->cal->low,
                                        .high = s->cal->high,
                                        .samples = (const char *const *)s->names};
    if (!sac_model_take_ranges(m, s->ranges, &seen))
        return no_memory(s);
    *worst = worst_of(s);
    sac_log(m->ctx, SAC_LOG_INFO,
            "%s: %d of %zu steps stay in float32 in FP16: calibrated on the CPU with %s in %.2f s",
            m->path, m->wide_count, m->graph->node_count, m->calibration ? m->calibration : "",
            (double)(sac_time_ns() - begun) / 1e9);
    return SAC_OK;
}

sac_result sac_model_calibrate(sac_model *m, sac_calibration *cal,
                               const struct sac_tensor_desc *desc, int *worst)
{
    struct session s = {.model = m, .cal = cal};
    *worst = 0;
    if (m->params.precision != SAC_PRECISION_FP16)
        return SAC_OK;
    const sac_result res = calibrate(&s, desc, worst);
    close_session(&s);
    return res;
}
