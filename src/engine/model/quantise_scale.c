/* SPDX-License-Identifier: Apache-2.0 */
/* Scales by what was seen. Min-max: all of it. Percentile: all but the outermost, which are few.
 * Entropy: the range whose rounded numbers tell most of those that are not (the least
 * Kullback-Leibler divergence; Migacz, "8-bit inference with TensorRT", 2017), of ranges that have
 * the proportions of the whole, so that it serves numbers on both sides of 0 alike. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/model/quantise.h"
#include "engine/ops/util.h"

enum { BINS = 2048 };
static const double OUTSIDE = 1e-4; /* the share that a percentile leaves out, of both ends */

struct sac_observed {
    float     low, high; /* with 0 between */
    uint64_t *bins;      /* [BINS] from low to high; NULL: not counted */
    uint64_t  total;
};

/* ---- looking ---- */

static void see_range(struct sac_observed *s, const float *x, int64_t n)
{
    float low = s->low, high = s->high;
    for (int64_t i = 0; i < n; i++) {
        low = x[i] < low ? x[i] : low; /* NaN is neither */
        high = x[i] > high ? x[i] : high;
    }
    s->low = fmaxf(low, -FLT_MAX);
    s->high = fminf(high, FLT_MAX);
}

static void see_numbers(struct sac_observed *s, const float *x, int64_t n)
{
    const float by = (float)BINS / (s->high - s->low);
    if (!s->bins || !(by < INFINITY))
        return;
    for (int64_t i = 0; i < n; i++) {
        const float at = (x[i] - s->low) * by;
        s->bins[at >= 0 ? (int)fminf(at, BINS - 1) : 0]++;
    }
    s->total += (uint64_t)n;
}

static void see(struct sac_observer *o, int id, const float *x, int64_t n)
{
    struct sac_observed *s = &o->seen[o->map->shared[id]];
    (o->counts ? see_numbers : see_range)(s, x, n);
}

static void see_step(void *user, struct sac_plan *plan, const struct sac_step *step)
{
    struct sac_observer *o = user;
    for (int k = step->in_count; k < step->in_count + step->out_count; k++) {
        const struct sac_value_slot *s = step->slots[k] < 0 ? NULL : &plan->slots[step->slots[k]];
        if (!s || s->value < 0 || s->value >= o->map->graph->id_count || s->desc.dtype != SAC_F32 ||
            !o->map->source[s->value])
            continue;
        const float *x = plan->address[step->slots[k]];
        if (s->parent < 0 || s->pixel == 0) {
            see(o, s->value, x, sac_operand_elements(&s->desc));
            continue;
        }
        const int64_t pixels = sac_dims_product(s->desc.rank - 2, s->desc.dims + 2);
        for (int64_t i = 0; i < s->desc.dims[0] * pixels; i++)
            see(o, s->value, x + i / pixels * s->sample + i % pixels * s->pixel, s->desc.dims[1]);
    }
}

sac_result sac_observer_open(struct sac_observer *o, sac_model *m, const struct sac_quant_map *map,
                             const struct sac_operand *shapes)
{
    const struct sac_plan_params params = {.memory_limit = m->params.memory_limit_bytes,
                                           .precision = SAC_PRECISION_FP32,
                                           .watch = see_step,
                                           .watcher = o};
    *o = (struct sac_observer){.map = map, .model = m, .cpu = sac_device_ref(m->dev)};
    o->seen = sac_calloc((size_t)m->graph->id_count + 1, sizeof *o->seen);
    o->out = sac_calloc((size_t)m->graph->output_count + 1, sizeof(sac_tensor *));
    sac_result res = o->seen && o->out
                         ? SAC_OK
                         : SAC_FAIL(m->ctx, SAC_ERR_MEMORY, "no memory to look at its numbers");
    if (res == SAC_OK)
        res = sac_plan_create(o->cpu, m->graph, shapes, &params, &o->plan);
    if (res == SAC_OK && o->plan->activation_bytes)
        res = sac_buffer_create(o->cpu, o->plan->activation_bytes, "scales", &o->activations);
    return res;
}

void sac_observer_close(struct sac_observer *o)
{
    sac_buffer_unref(&o->activations);
    sac_plan_destroy(&o->plan);
    for (int i = 0; o->seen && i < o->model->graph->id_count; i++)
        sac_free(o->seen[i].bins);
    sac_free(o->seen);
    sac_free(o->out);
    sac_device_unref(&o->cpu);
    *o = (struct sac_observer){.counts = false};
}

sac_result sac_observer_run(struct sac_observer *o, sac_tensor *const *in)
{
    const struct sac_graph *g = o->model->graph;
    for (int i = 0; i < g->input_count; i++) { /* no step makes them */
        const struct sac_tensor_desc *d = sac_tensor_describe(in[i]);
        if (d->dtype == SAC_F32)
            see(o, g->inputs[i]->id, sac_tensor_data(in[i]), sac_tensor_desc_elements(d));
    }
    sac_result res = sac_plan_run(
        o->plan, NULL, o->activations ? sac_buffer_data(o->activations) : NULL, in, o->out);
    for (int i = 0; i < g->output_count; i++)
        sac_tensor_unref(&o->out[i]);
    return res;
}

sac_result sac_observer_count(struct sac_observer *o)
{
    o->counts = true;
    for (int i = 0; i < o->map->count; i++) {
        struct sac_observed *s = &o->seen[o->map->layers[i].of];
        if (!s->bins && !(s->bins = sac_calloc(BINS, sizeof *s->bins)))
            return SAC_FAIL(o->model->ctx, SAC_ERR_MEMORY, "no memory to count its numbers");
    }
    return SAC_OK;
}

/* ---- the range that is kept ---- */

struct range {
    float low, high;
};

static struct range percentile(const struct sac_observed *s)
{
    const uint64_t drop = (uint64_t)((double)s->total * OUTSIDE);
    const float    step = (s->high - s->low) / BINS;
    int            first = 0, last = BINS - 1;
    for (uint64_t n = s->bins[first]; first < last && n <= drop; n += s->bins[first])
        first++;
    for (uint64_t n = s->bins[last]; last > first && n <= drop; n += s->bins[last])
        last--;
    return (struct range){fminf(s->low + step * (float)first, 0),
                          fmaxf(s->low + step * (float)(last + 1), 0)};
}

/* What is lost of the bins first..end-1, with those outside added to the ends, when they are told
 * apart by so many levels only. The bin of 0 holds most behind a Relu, and has a level of its own:
 * the caller has emptied it. */
static double divergence(const uint64_t *bins, int first, int end, int levels)
{
    double lost = 0, outside[2] = {0, 0}, all = 0;
    for (int i = 0; i < BINS; i++) {
        all += (double)bins[i];
        if (i < first || i >= end)
            outside[i >= end] += (double)bins[i];
    }
    for (int level = 0; level < levels; level++) {
        const int from = first + (int)((int64_t)(end - first) * level / levels),
                  to = first + (int)((int64_t)(end - first) * (level + 1) / levels);
        double sum = 0;
        int    some = 0;
        for (int i = from; i < to; i++) {
            sum += (double)bins[i];
            some += bins[i] > 0;
        }
        for (int i = from; i < to; i++) {
            double p = (double)bins[i];
            p += i == first ? outside[0] : 0;
            p += i == end - 1 ? outside[1] : 0;
            const double q = some ? bins[i] ? sum / some : 0 : 0;
            if (p > 0)
                lost += p / all * log(p / fmax(q, 1e-4));
        }
    }
    return lost;
}

static struct range entropy(const struct sac_observed *s, int levels)
{
    uint64_t     bins[BINS];
    const float  step = (s->high - s->low) / BINS;
    const double origin = -(double)s->low / (double)step; /* the bin where 0 is */
    double       best = INFINITY;
    struct range kept = {s->low, s->high};
    memcpy(bins, s->bins, sizeof bins);
    bins[SAC_CLAMP((int)origin, 0, BINS - 1)] = 0;
    for (int share = 100; share >= 20; share -= 2) {
        const int first = (int)(origin - origin * share / 100),
                  end = SAC_MIN((int)ceil(origin + (BINS - origin) * share / 100), BINS);
        if (end - first < levels)
            break;
        const double lost = divergence(bins, first, end, levels);
        if (lost < best) {
            best = lost;
            kept = (struct range){fminf(s->low + step * (float)first, 0),
                                  fmaxf(s->low + step * (float)end, 0)};
        }
    }
    return kept;
}

/* ---- scales ---- */

static struct sac_quant_scale scale_of(struct range r, enum sac_dtype dtype)
{
    const float most = fmaxf(-r.low, r.high), span = r.high - r.low;
    const float scale = dtype == SAC_F8 ? most / 448 : dtype == SAC_I8 ? most / 127 : span / 255;
    if (!(scale > 1e-30f) || !isfinite(scale) || !isfinite(1 / scale))
        return (struct sac_quant_scale){.scale = 1};
    const int zero = dtype == SAC_U8 ? (int)SAC_CLAMP(rintf(-r.low / scale), 0, 255) : 0;
    return (struct sac_quant_scale){scale, zero};
}

void sac_observer_scales(const struct sac_observer *o, enum sac_calibration_method method,
                         enum sac_dtype dtype, struct sac_quant_scale *scales)
{
    for (int i = 0; i < o->map->graph->id_count; i++) {
        const struct sac_observed *s = &o->seen[i];
        struct range               r = {s->low, s->high};
        if (s->bins && s->total && method == SAC_CALIBRATION_PERCENTILE)
            r = percentile(s);
        if (s->bins && s->total && method == SAC_CALIBRATION_ENTROPY)
            r = entropy(s, dtype == SAC_U8 ? 255 : 128);
        scales[i] = scale_of(r, dtype);
    }
}
