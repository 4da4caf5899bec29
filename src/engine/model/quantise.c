/* SPDX-License-Identifier: Apache-2.0 */
/* A network is quantised whole, and what it lost is measured on samples, against the CPU in
 * float32. Where nobody names a method, ranges are found by min-max, and by the others if that
 * loses too much. Over the limit, each layer is quantised alone, to see what it loses by itself;
 * those that lose most stay, one, two, three, then ever more, until the rest is under the limit. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/quantise.h"

enum {
    NOISE_SAMPLES = 8,
    JUDGED_MAX = 64, /* samples that losses are measured on; scales see all */
    ALONE_MAX = 2,   /* of them, for a layer alone */
    PROFILED = 5     /* runs that say how long each layer takes */
};
enum { METHODS = SAC_CALIBRATION_ENTROPY + 1 };
static const double  MUCH_LESS = 0.5;
static const size_t  SAMPLES_BYTES_MAX = (size_t)1 << 30; /* of inputs that are kept */
static const int64_t EVERY_NS = 2000000000;

struct sample {
    sac_tensor **in, **want; /* on the CPU; want: NULL unless losses are measured on it */
};

struct session {
    const struct sac_quantise_job *job;
    sac_context                   *ctx;
    struct sample                 *samples;
    int                            count, judged;
    int                            inputs, outputs;
    enum sac_dtype                 dtype;
    struct sac_quant_rules         rules;
    /* By value id, of each method that is tried; scales: the one at hand. */
    struct sac_quant_scale       *by_method[METHODS];
    const struct sac_quant_scale *scales;
    enum sac_calibration_method   method;
    int                           layers;
    char                        **labels; /* [layers] */
    char                        **names;  /* [layers] of their nodes in the file */
    bool                         *use;    /* [layers] */
    double                       *alone;  /* [layers] what each loses by itself */
    int                          *order;  /* [layers] those that lose most first */
    /* [layers] What a run spends in each: in the device's own precision, and quantised. And which
     * stay as they are faster so. */
    double            *own_ms, *quantised_ms;
    bool              *slower;
    enum sac_precision own_precision;
    struct sac_verdict verdict;
    const char        *of;    /* the data, for sentences */
    uint8_t           *bytes; /* of the latest attempt */
    size_t             size;
    int64_t            told_ns;
};

static sac_result no_memory(const struct session *s)
{
    return SAC_FAIL(s->ctx, SAC_ERR_MEMORY, "%s: no memory to quantise it", s->job->path);
}

static const char *name_of(const struct session *s)
{
    return sac_precision_name(s->job->params->model.precision);
}

/* ---- samples ---- */

static void drop_tensors(sac_tensor **t, int count)
{
    for (int i = 0; t && i < count; i++)
        sac_tensor_unref(&t[i]);
    sac_free(t);
}

static sac_result make_noise(struct session *s, int at, sac_tensor **in)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < s->inputs && res == SAC_OK; i++) {
        res = sac_tensor_create(s->job->cpu, &s->job->desc[i], "quantise", &in[i]);
        if (res == SAC_OK)
            s->job->fill(&s->job->desc[i], sac_tensor_data(in[i]),
                         s->job->params->seed + (uint32_t)(at * s->inputs + i));
    }
    return res;
}

/* The data has a CPU device of its own. */
static sac_result take_sample(struct session *s, sac_tensor **in)
{
    sac_calibration *cal = s->job->params->calibration;
    sac_tensor     **its = sac_calloc((size_t)s->inputs + 1, sizeof(sac_tensor *));
    sac_result       res = its ? cal->ops->next(cal, s->job->desc, its) : no_memory(s);
    for (int i = 0; i < s->inputs && res == SAC_OK; i++) {
        res = sac_tensor_create(s->job->cpu, sac_tensor_describe(its[i]), "quantise", &in[i]);
        if (res == SAC_OK)
            memcpy(sac_tensor_data(in[i]), sac_tensor_data(its[i]),
                   (size_t)sac_tensor_desc_bytes(sac_tensor_describe(in[i])));
    }
    drop_tensors(its, s->inputs);
    return res;
}

static sac_result next_sample(struct session *s, sac_tensor **in)
{
    if (s->job->params->calibration)
        return take_sample(s, in);
    return s->count < NOISE_SAMPLES ? make_noise(s, s->count, in) : SAC_EOS;
}

static sac_result gather(struct session *s)
{
    sac_calibration *cal = s->job->params->calibration;
    size_t           cap = 0, bytes = 0;
    sac_result       res = cal ? cal->ops->rewind(cal) : SAC_OK;
    while (res == SAC_OK && bytes < SAMPLES_BYTES_MAX) {
        sac_tensor **in = sac_calloc((size_t)s->inputs + 1, sizeof(sac_tensor *));
        if (!in ||
            !sac_grow((void **)&s->samples, &cap, (size_t)s->count + 1, sizeof *s->samples)) {
            sac_free(in);
            return no_memory(s);
        }
        res = next_sample(s, in);
        if (res != SAC_OK) {
            drop_tensors(in, s->inputs);
            break;
        }
        for (int i = 0; i < s->inputs; i++)
            bytes += (size_t)sac_tensor_desc_bytes(sac_tensor_describe(in[i]));
        s->samples[s->count++] = (struct sample){.in = in};
    }
    if (res == SAC_OK)
        sac_log(s->ctx, SAC_LOG_WARN,
                "%s: its calibration takes the first %d samples, which have "
                "1 GB",
                s->job->path, s->count);
    s->judged = SAC_MIN(s->count, (int)JUDGED_MAX);
    return res == SAC_EOS ? SAC_OK : res;
}

/* Masks and boxes of NaN are alike, whatever is lost. */
static sac_result check_numbers(const struct session *s, const sac_tensor *want)
{
    const struct sac_tensor_desc *d = sac_tensor_describe(want);
    const struct sac_operand      x = {.dtype = d->dtype, .data = sac_tensor_data(want)};
    for (int64_t i = sac_tensor_desc_elements(d); i-- > 0;)
        if (isnan(sac_operand_get(&x, i)))
            return SAC_FAIL(s->ctx, SAC_ERR_FORMAT,
                            "%s: in float32 some of its results on %s are no numbers (NaN); what "
                            "quantising it loses can't be measured",
                            s->job->path, s->of);
    return SAC_OK;
}

/* What float32 makes of those that losses are measured on. */
static sac_result run_reference(struct session *s)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < s->judged && res == SAC_OK; i++) {
        s->samples[i].want = sac_calloc((size_t)s->outputs + 1, sizeof(sac_tensor *));
        res = s->samples[i].want
                  ? sac_model_run(s->job->reference, s->samples[i].in, s->samples[i].want)
                  : no_memory(s);
        for (int k = 0; k < s->outputs && res == SAC_OK; k++)
            res = check_numbers(s, s->samples[i].want[k]);
    }
    return res;
}

/* ---- scales ---- */

/* A model with the graph that its file has. */
static sac_result load_plain(const struct session *s, sac_model **out)
{
    struct sac_model_params params = sac_model_params_default();
    params.optimise = 0;
    params.free_batch = 0;
    return sac_model_load(s->job->cpu, s->job->path, &params, out);
}

static sac_result look(struct session *s, struct sac_observer *o)
{
    const enum sac_calibration_method asked = s->job->params->method;
    sac_result                        res = SAC_OK;
    for (int i = 0; i < s->count && res == SAC_OK; i++)
        res = sac_observer_run(o, s->samples[i].in);
    if (res == SAC_OK && asked != SAC_CALIBRATION_MIN_MAX)
        res = sac_observer_count(o);
    for (int i = 0; i < s->count && res == SAC_OK && o->counts; i++)
        res = sac_observer_run(o, s->samples[i].in);
    for (int m = SAC_CALIBRATION_MIN_MAX; m < METHODS && res == SAC_OK; m++) {
        if (asked && m != (int)asked)
            continue;
        s->by_method[m] = sac_calloc((size_t)o->map->graph->id_count + 1, sizeof(*s->scales));
        if (!s->by_method[m])
            return no_memory(s);
        sac_observer_scales(o, (enum sac_calibration_method)m, s->dtype, s->by_method[m]);
    }
    return res;
}

static sac_result note_layers(struct session *s, const struct sac_quant_map *map)
{
    const size_t count = (size_t)map->count + 1;
    char         label[256];
    s->layers = map->count;
    s->labels = sac_calloc(count, sizeof *s->labels);
    s->use = sac_calloc(count, sizeof *s->use);
    s->alone = sac_calloc(count, sizeof *s->alone);
    s->order = sac_calloc(count, sizeof *s->order);
    s->names = sac_calloc(count, sizeof *s->names);
    s->own_ms = sac_calloc(count, sizeof *s->own_ms);
    s->quantised_ms = sac_calloc(count, sizeof *s->quantised_ms);
    s->slower = sac_calloc(count, sizeof *s->slower);
    bool good = s->labels && s->use && s->alone && s->order && s->names && s->own_ms &&
                s->quantised_ms && s->slower;
    for (int i = 0; i < map->count && good; i++) {
        sac_node_label(map->layers[i].node, label, sizeof label);
        good = (s->labels[i] = sac_strdup(label)) != NULL &&
               (s->names[i] = sac_strdup(map->layers[i].node->name)) != NULL;
        s->order[i] = i;
    }
    return good ? SAC_OK : no_memory(s);
}

static bool is_quantised(const struct sac_graph *g)
{
    for (size_t i = 0; i < g->node_count; i++)
        if (strcmp(g->nodes[i]->op_type, "DequantizeLinear") == 0 ||
            strcmp(g->nodes[i]->op_type, "QLinearConv") == 0)
            return true;
    return false;
}

static sac_result find_scales(struct session *s)
{
    struct sac_quant_map map = {.count = 0};
    struct sac_observer  o = {.counts = false};
    sac_model           *m = NULL;
    struct sac_operand  *shapes = sac_calloc((size_t)s->inputs + 1, sizeof *shapes);
    sac_result           res = shapes ? load_plain(s, &m) : no_memory(s);
    for (int i = 0; i < s->inputs && res == SAC_OK; i++) {
        const struct sac_tensor_desc *d = sac_tensor_describe(s->samples[0].in[i]);
        shapes[i] = (struct sac_operand){.dtype = d->dtype, .rank = d->rank, .present = true};
        memcpy(shapes[i].dims, d->shape, sizeof shapes[i].dims);
    }
    if (res == SAC_OK && is_quantised(m->graph))
        res = SAC_FAIL(s->ctx, SAC_ERR_UNSUPPORTED, "%s: it is quantised already; it runs as it is",
                       m->path);
    if (res == SAC_OK)
        res = sac_quant_map_init(&map, m->graph, &s->rules);
    if (res == SAC_OK && map.count == 0)
        res = SAC_FAIL(s->ctx, SAC_ERR_UNSUPPORTED,
                       "%s: it has no convolution and no product with constant float32 weights "
                       "that could be quantised",
                       m->path);
    if (res == SAC_OK)
        res = note_layers(s, &map);
    if (res == SAC_OK)
        res = sac_observer_open(&o, m, &map, shapes);
    if (res == SAC_OK) {
        res = look(s, &o);
        sac_observer_close(&o);
    }
    sac_quant_map_finish(&map);
    sac_model_unref(&m);
    sac_free(shapes);
    return res;
}

/* ---- an attempt ---- */

/* The network with the layers of use; what is added to its metadata. */
static sac_result write_network(struct session *s, const struct sac_onnx_pair *more, int count)
{
    struct sac_quant_map map = {.count = 0};
    sac_model           *m = NULL;
    sac_result           res = load_plain(s, &m);
    sac_free(s->bytes);
    s->bytes = NULL;
    if (res == SAC_OK)
        res = sac_quant_map_init(&map, m->graph, &s->rules);
    if (res == SAC_OK)
        res = sac_quant_apply(&map, s->use, s->dtype, s->scales);
    if (res == SAC_OK)
        res = sac_onnx_write(&m->onnx, more, count, &s->bytes, &s->size);
    sac_quant_map_finish(&map);
    sac_model_unref(&m);
    return res;
}

static sac_result load_network(const struct session *s, sac_model **out)
{
    return sac_model_load_memory(s->job->dev, s->bytes, s->size, s->job->path, &s->job->base, out);
}

/* On the device, and back. */
static sac_result run_sample(const struct session *s, sac_model *m, int sample, sac_tensor **got)
{
    sac_tensor **there = sac_calloc((size_t)(s->inputs + s->outputs) + 1, sizeof(sac_tensor *));
    sac_tensor **out = there ? there + s->inputs : NULL;
    sac_result   res = there ? SAC_OK : no_memory(s);
    for (int i = 0; i < s->inputs && res == SAC_OK; i++) {
        sac_tensor *in = s->samples[sample].in[i];
        res = sac_tensor_create(s->job->dev, sac_tensor_describe(in), "quantise", &there[i]);
        if (res == SAC_OK)
            res = sac_tensor_upload(there[i], sac_tensor_data(in));
    }
    if (res == SAC_OK)
        res = sac_model_run(m, there, out);
    for (int i = 0; i < s->outputs && res == SAC_OK; i++) {
        res = sac_tensor_create(s->job->cpu, sac_tensor_describe(out[i]), "quantise", &got[i]);
        if (res == SAC_OK)
            res = sac_tensor_download(out[i], sac_tensor_data(got[i]));
    }
    drop_tensors(there, s->inputs + s->outputs);
    return res;
}

/* Squares of an output's differences, as a share of those of its numbers. */
static double difference(const sac_tensor *got, const sac_tensor *want)
{
    const struct sac_tensor_desc *d = sac_tensor_describe(want);
    struct sac_operand            x = {.dtype = d->dtype, .data = sac_tensor_data(got)}, y = x;
    double                        off = 0, all = 0;
    const int64_t                 n = sac_tensor_desc_elements(d);
    y.data = sac_tensor_data(want);
    if (sac_tensor_desc_elements(sac_tensor_describe(got)) != n)
        return 1;
    for (int64_t i = 0; i < n; i++) {
        const double a = sac_operand_get(&x, i), b = sac_operand_get(&y, i);
        if (isnan(a) != isnan(b))
            return 1;
        if (a == b || !isfinite(b))
            continue;
        off += (a - b) * (a - b);
        all += b * b;
    }
    return all > 0 ? fmin(sqrt(off / all), 1) : off > 0;
}

static double mean_difference(const struct session *s, sac_tensor *const *got,
                              sac_tensor *const *want)
{
    double sum = 0;
    for (int i = 0; i < s->outputs; i++)
        sum += difference(got[i], want[i]);
    return sum / SAC_MAX(s->outputs, 1);
}

/* What the network at hand loses of `samples` samples. task: as its task counts that, else by its
 * numbers. */
static sac_result judge(struct session *s, int samples, bool task, double *loss)
{
    sac_calibration *cal = s->job->params->calibration;
    const bool       asks = task && cal && cal->ops->compare;
    sac_model       *m = NULL;
    double           sum = 0;
    sac_result       res = load_network(s, &m);
    for (int i = 0; i < samples && res == SAC_OK; i++) {
        sac_tensor **got = sac_calloc((size_t)s->outputs + 1, sizeof(sac_tensor *));
        res = got ? run_sample(s, m, i, got) : no_memory(s);
        if (res == SAC_OK && asks)
            res = cal->ops->compare(cal, s->outputs, s->samples[i].want, got);
        if (res == SAC_OK)
            sum += mean_difference(s, got, s->samples[i].want);
        drop_tensors(got, s->outputs);
    }
    sac_model_unref(&m);
    const struct sac_verdict numbers = {SAC_QUALITY_NUMBERS, 1 - sum / SAC_MAX(samples, 1)};
    struct sac_verdict       v = asks ? cal->ops->verdict(cal) : numbers;
    if (isnan(v.quality)) /* the pictures show nothing of what it is for */
        v = numbers;
    if (task)
        s->verdict = v;
    *loss = 1 - v.quality;
    return res;
}

/* ---- which layers stay ---- */

static void tell(struct session *s, int done)
{
    if (sac_time_ns() - s->told_ns < EVERY_NS)
        return;
    s->told_ns = sac_time_ns();
    sac_log(s->ctx, SAC_LOG_INFO, "%s: %d of %d layers tried in %s by themselves", s->job->path,
            done, s->layers, name_of(s));
}

static sac_result try_alone(struct session *s)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < s->layers && res == SAC_OK; i++) {
        for (int k = 0; k < s->layers; k++)
            s->use[k] = k == i;
        res = write_network(s, NULL, 0);
        if (res == SAC_OK)
            res = judge(s, SAC_MIN(s->judged, (int)ALONE_MAX), false, &s->alone[i]);
        tell(s, i + 1);
    }
    for (int i = 1; i < s->layers; i++) /* the worst first, of equals the first */
        for (int k = i; k > 0 && s->alone[s->order[k]] > s->alone[s->order[k - 1]]; k--) {
            const int other = s->order[k];
            s->order[k] = s->order[k - 1];
            s->order[k - 1] = other;
        }
    return res;
}

static void use_all_but(struct session *s, int kept)
{
    for (int i = 0; i < s->layers; i++)
        s->use[s->order[i]] = i >= kept;
}

/* Of masks more than of boxes: where person_seg and person_matte lose 0.02 of their own IoU, that
 * with the truth changes by 0.3 points at most (docs/quantisation.md). */
static double limit_of(const struct session *s)
{
    static const double limits[] = {[SAC_QUALITY_NUMBERS] = 0.05,
                                    [SAC_QUALITY_BOXES] = 0.005,
                                    [SAC_QUALITY_EMBEDDINGS] = 0.01,
                                    [SAC_QUALITY_MASKS] = 0.03};
    return s->job->params->loss_max > 0 ? s->job->params->loss_max : limits[s->verdict.measured];
}

static sac_result refuse(const struct session *s, double loss, int kept)
{
    char worst[1024] = "";
    for (int i = 0; i < SAC_MIN(s->layers, 3); i++) {
        const size_t at = strlen(worst);
        snprintf(worst + at, sizeof worst - at, "%s%s by %.3g %%", i ? ", " : "",
                 s->labels[s->order[i]], 100 * s->alone[s->order[i]]);
    }
    return SAC_FAIL(s->ctx, SAC_ERR_FORMAT,
                    "%s: in %s it loses %.3g of its %s on %s, with %d of %d layers left out; "
                    "%.3g is allowed. Layers that are off most by themselves: %s. Other pictures "
                    "to calibrate with, another method or a larger --max-loss would do",
                    s->job->path, name_of(s), loss, sac_quality_name(s->verdict.measured), s->of,
                    kept, s->layers, limit_of(s), worst);
}

/* All layers, by each method, until one is under the limit. Min-max clips nothing that was seen, so
 * another must lose much less to be taken: with percentiles person_det lost as little AP, but the
 * highest scores, which belong to objects, and tracks by it 3 to 9 points of HOTA (PETS09-S2L1,
 * 2026-11-26). */
static sac_result choose_method(struct session *s, double *loss)
{
    struct sac_verdict best = {SAC_QUALITY_NUMBERS, 0};
    sac_result         res = SAC_OK;
    use_all_but(s, 0);
    for (int m = 0; m < METHODS && res == SAC_OK; m++) {
        double lost = 0;
        if (!s->by_method[m])
            continue;
        s->scales = s->by_method[m];
        res = write_network(s, NULL, 0);
        if (res == SAC_OK)
            res = judge(s, s->judged, true, &lost);
        sac_log(s->ctx, SAC_LOG_INFO,
                "%s: with all %d layers in %s, ranges by %s, it loses %.3g of its %s", s->job->path,
                s->layers, name_of(s), sac_calibration_method_name((enum sac_calibration_method)m),
                lost, sac_quality_name(s->verdict.measured));
        if (s->method && !(lost < MUCH_LESS * *loss))
            continue;
        s->method = (enum sac_calibration_method)m;
        *loss = lost;
        best = s->verdict;
        if (lost <= limit_of(s))
            break;
    }
    s->scales = s->by_method[s->method];
    s->verdict = best;
    return res;
}

/* Sets kept: how many layers stay. */
static sac_result choose(struct session *s, int *kept, double *loss)
{
    const int percent = s->job->params->layers_min ? s->job->params->layers_min : 50;
    const int most = s->layers - (int)(((int64_t)s->layers * percent + 99) / 100);
    *kept = 0;
    sac_result res = choose_method(s, loss);
    if (res == SAC_OK && *loss > limit_of(s))
        res = try_alone(s);
    while (res == SAC_OK && *loss > limit_of(s)) {
        if (*kept >= most)
            return refuse(s, *loss, *kept);
        *kept = SAC_MIN(*kept + 1 + *kept / 3, most);
        use_all_but(s, *kept);
        res = write_network(s, NULL, 0);
        if (res == SAC_OK)
            res = judge(s, s->judged, true, loss);
        sac_log(s->ctx, SAC_LOG_INFO, "%s: with %d of them left out it loses %.3g", s->job->path,
                *kept, *loss);
    }
    return res;
}

/* ---- time ---- */

/* Inputs of a batch on the device, of the samples. */
static sac_result make_inputs(const struct session *s, const sac_model *m, int batch,
                              sac_tensor **in)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < s->inputs && res == SAC_OK; i++) {
        struct sac_tensor_desc desc = *sac_tensor_describe(s->samples[0].in[i]);
        const size_t           part = (size_t)sac_tensor_desc_bytes(&desc);
        const bool             grows =
            desc.rank > 0 && desc.shape[0] == 1 &&
            (m->inputs[i].desc.rank < 1 || m->inputs[i].desc.shape[0] == SAC_DIM_UNKNOWN);
        desc.shape[0] *= grows ? batch : 1;
        char *host = sac_alloc(part * (size_t)batch);
        for (int n = 0; host && n < (grows ? batch : 1); n++)
            memcpy(host + (size_t)n * part, sac_tensor_data(s->samples[n % s->count].in[i]), part);
        res = host ? sac_tensor_create(s->job->dev, &desc, "quantise", &in[i]) : no_memory(s);
        if (res == SAC_OK)
            res = sac_tensor_upload(in[i], host);
        sac_free(host);
    }
    return res;
}

struct layer_times {
    const struct session *s;
    double               *ms; /* [layers] */
};

static void note_step(void *user, const struct sac_model_step *step)
{
    const struct layer_times *t = user;
    for (int i = 0; i < t->s->layers && step->name[0]; i++)
        if (strcmp(step->name, t->s->names[i]) == 0)
            t->ms[i] += step->ms;
}

/* Runs it and looks how long each layer took, where that is asked for. */
static sac_result profile(const struct session *s, sac_model *m, sac_tensor **in, double *layer_ms)
{
    sac_tensor       **out = sac_calloc((size_t)s->outputs + 1, sizeof(sac_tensor *));
    struct layer_times times = {s, layer_ms};
    sac_result         res = out ? SAC_OK : no_memory(s);
    sac_model_profile(m, 1);
    for (int i = 0; i < PROFILED && res == SAC_OK; i++) {
        res = sac_model_run(m, in, out);
        for (int k = 0; k < s->outputs; k++)
            sac_tensor_unref(&out[k]);
    }
    memset(layer_ms, 0, (size_t)s->layers * sizeof *layer_ms);
    if (res == SAC_OK)
        sac_model_list_steps(m, note_step, &times);
    sac_model_profile(m, 0);
    sac_free(out);
    return res;
}

/* layer_ms: [layers] or NULL. */
static sac_result time_model(const struct session *s, sac_model *m, int batch, double *ms,
                             double *layer_ms)
{
    sac_tensor           **in = sac_calloc((size_t)s->inputs + 1, sizeof(sac_tensor *));
    struct sac_model_times times = {.runs = 0};
    sac_result             res = in ? make_inputs(s, m, batch, in) : no_memory(s);
    if (res == SAC_OK)
        res = sac_model_time(m, in, 0.5, &times);
    if (res == SAC_OK && layer_ms)
        res = profile(s, m, in, layer_ms);
    drop_tensors(in, s->inputs);
    *ms = times.median_ms;
    return res;
}

/* ---- layers that are faster as they are ---- */

/* The network with the layers of use. */
static sac_result time_attempt(struct session *s, double *ms, double *layer_ms)
{
    sac_model *m = NULL;
    sac_result res = write_network(s, NULL, 0);
    if (res == SAC_OK)
        res = load_network(s, &m);
    if (res == SAC_OK)
        res = time_model(s, m, s->job->params->batch_max, ms, layer_ms);
    sac_model_unref(&m);
    return res;
}

static double gain_of(const struct session *s, int layer)
{
    return s->own_ms[layer] - s->quantised_ms[layer];
}

/* Of those at hand, the ones that take longer by more than `least` of their time stay. Returns how
 * many; rest: how many do not. */
static int leave_slower(struct session *s, const bool *at_hand, double least, int *rest)
{
    int count = 0;
    *rest = 0;
    for (int i = 0; i < s->layers; i++) {
        const bool stays = at_hand[i] && gain_of(s, i) < -least * s->own_ms[i];
        s->use[i] = at_hand[i] && !stays;
        count += stays;
        *rest += s->use[i];
    }
    return count;
}

/* Tries what is faster: without the layers that are slower by more than a tenth, without all that
 * are slower, without those that gain less than a tenth. Some are quantised in any case, as the
 * caller asked for that. best: [layers] that are quantised. */
static sac_result try_faster(struct session *s, double own_ms, double ms, bool *best)
{
    static const double leasts[] = {0.1, 0.0, -0.1};
    const size_t        bytes = (size_t)s->layers * sizeof *best;
    bool               *at_hand = sac_alloc(bytes);
    int                 last = 0;
    sac_result          res = at_hand ? SAC_OK : no_memory(s);
    if (at_hand)
        memcpy(at_hand, best, bytes);
    for (size_t i = 0; i < SAC_COUNT(leasts) && res == SAC_OK; i++) {
        double    now = 0;
        int       rest;
        const int count = leave_slower(s, at_hand, leasts[i], &rest);
        if (count == last || rest == 0)
            continue;
        last = count;
        res = time_attempt(s, &now, NULL);
        if (res == SAC_OK && now < ms) {
            memcpy(best, s->use, bytes);
            ms = now;
        }
        sac_log(s->ctx, SAC_LOG_INFO, "%s: without %d layers that are slower in %s: %.3f ms",
                s->job->path, count, name_of(s), now);
    }
    if (res == SAC_OK && ms > own_ms)
        sac_log(s->ctx, SAC_LOG_WARN,
                "%s: in %s it needs less memory, but takes longer here than in %s (%.3f ms, %.3f, "
                "with a batch of %d)",
                s->job->path, name_of(s), sac_precision_name(s->own_precision), ms, own_ms,
                s->job->params->batch_max);
    sac_free(at_hand);
    return res;
}

/* Behind those that stay for what they lose, those that stay for their time. */
static void put_in_order(struct session *s, const bool *best, int *kept)
{
    for (int i = *kept; i < s->layers; i++) {
        const int layer = s->order[i];
        if (best[layer])
            continue;
        s->slower[layer] = true;
        memmove(&s->order[*kept + 1], &s->order[*kept], (size_t)(i - *kept) * sizeof *s->order);
        s->order[(*kept)++] = layer;
    }
}

/* Writes the network without the first `kept`, and judges it. */
static sac_result settle(struct session *s, int kept, double *loss)
{
    use_all_but(s, kept);
    const sac_result res = write_network(s, NULL, 0);
    return res == SAC_OK ? judge(s, s->judged, true, loss) : res;
}

/* On a device that measures its kernels: which of the layers are faster quantised, in a run of the
 * largest batch? A layer's own time leaves out what its neighbours do to meet it, so whole networks
 * decide. */
static sac_result choose_faster(struct session *s, int *kept, double *loss)
{
    const int  before = *kept;
    double     own_ms = 0, ms = 0;
    sac_model *own = NULL;
    bool      *best = sac_calloc((size_t)s->layers + 1, sizeof *best);
    if (!s->job->dev->ops->measures_kernels) {
        sac_free(best);
        return SAC_OK;
    }
    sac_result res =
        best ? sac_model_load(s->job->dev, s->job->path, &s->job->base, &own) : no_memory(s);
    if (res == SAC_OK)
        res = time_model(s, own, s->job->params->batch_max, &own_ms, s->own_ms);
    if (res == SAC_OK)
        s->own_precision = own->params.precision;
    sac_model_unref(&own);
    use_all_but(s, *kept);
    if (res == SAC_OK)
        res = time_attempt(s, &ms, s->quantised_ms);
    if (res == SAC_OK) {
        memcpy(best, s->use, (size_t)s->layers * sizeof *best);
        res = try_faster(s, own_ms, ms, best);
    }
    if (res == SAC_OK)
        put_in_order(s, best, kept);
    sac_free(best);
    if (res == SAC_OK)
        res = settle(s, *kept, loss);
    if (res != SAC_OK || *kept == before || *loss <= limit_of(s))
        return res;
    memset(s->slower, 0, (size_t)s->layers * sizeof *s->slower); /* fewer layers may lose more */
    *kept = before;
    return settle(s, *kept, loss);
}

/* ---- the report ---- */

static sac_result measure(const struct session *s, struct sac_quantised *r)
{
    const int               batch = s->job->params->batch_max;
    sac_model              *before = NULL, *after = NULL;
    struct sac_model_params params = s->job->base;
    sac_result              res = sac_model_load(s->job->dev, s->job->path, &params, &before);
    if (res == SAC_OK)
        res = load_network(s, &after);
    if (res == SAC_OK)
        res = time_model(s, before, 1, &r->ms_before, NULL);
    if (res == SAC_OK)
        res = time_model(s, after, 1, &r->ms, NULL);
    if (res == SAC_OK && batch > 1)
        res = time_model(s, before, batch, &r->batch_ms_before, NULL);
    if (res == SAC_OK && batch > 1)
        res = time_model(s, after, batch, &r->batch_ms, NULL);
    if (res == SAC_OK) {
        r->batch = batch;
        r->precision = s->job->params->model.precision;
        r->precision_before = before->params.precision;
        r->file_bytes_before = (int64_t)(before->file.size - before->file_offset);
        r->file_bytes = (int64_t)s->size;
        r->weights_bytes = after->info.weights_bytes;
        r->weights_bytes_before = before->info.parameters * (int64_t)sizeof(float);
    }
    sac_model_unref(&before);
    sac_model_unref(&after);
    return res;
}

/* Why a layer stays; NULL: no memory. */
static char *reason_of(const struct session *s, int layer)
{
    const char *label = s->labels[layer];
    if (!s->slower[layer])
        return sac_asprintf("%s: by itself it is off by %.3g %%", label, 100 * s->alone[layer]);
    if (gain_of(s, layer) > 0)
        return sac_asprintf("%s: faster as it is, with what is beside it", label);
    return sac_asprintf("%s: faster as it is, %.4f ms, in %s %.4f", label, s->own_ms[layer],
                        name_of(s), s->quantised_ms[layer]);
}

static sac_result report(struct session *s, int kept, double loss, struct sac_quantised_model *out)
{
    struct sac_quantised *r = &out->report;
    out->kept = sac_calloc((size_t)kept + 1, sizeof *out->kept);
    if (!out->kept)
        return no_memory(s);
    *r = (struct sac_quantised){.measured = s->verdict.measured,
                                .samples = s->judged,
                                .quality = s->verdict.quality,
                                .loss = loss,
                                .loss_max = limit_of(s),
                                .layers = s->layers,
                                .quantised = s->layers - kept,
                                .kept = (const char *const *)out->kept,
                                .kept_count = kept};
    for (int i = 0; i < kept; i++)
        if (!(out->kept[i] = reason_of(s, s->order[i])))
            return no_memory(s);
    return SAC_OK;
}

/* The file says what was done, for whoever inspects it. */
static sac_result write_final(struct session *s, const struct sac_quantised *r)
{
    char              what[1024];
    char             *kept = sac_strdup("");
    const char *const method = sac_calibration_method_name(s->method);
    for (int i = 0; i < r->kept_count && kept; i++) {
        char *more = sac_asprintf("%s%s%s", kept, i ? "\n" : "", r->kept[i]);
        sac_free(kept);
        kept = more;
    }
    if (!kept)
        return no_memory(s);
    snprintf(what, sizeof what, "%s, %d of %d layers, %s %.5f on %s, ranges by %s", name_of(s),
             r->quantised, r->layers, sac_quality_name(r->measured), r->quality, s->of, method);
    const struct sac_onnx_pair more[] = {{SAC_QUANTISED_KEY, what}, {SAC_QUANTISED_KEPT_KEY, kept}};
    use_all_but(s, r->kept_count);
    const sac_result res = write_network(s, more, r->kept_count ? 2 : 1);
    sac_free(kept);
    return res;
}

/* ---- the whole ---- */

static void finish(struct session *s)
{
    for (int i = 0; i < s->count; i++) {
        drop_tensors(s->samples[i].in, s->inputs);
        drop_tensors(s->samples[i].want, s->outputs);
    }
    for (int i = 0; s->labels && i < s->layers; i++)
        sac_free(s->labels[i]);
    for (int i = 0; s->names && i < s->layers; i++)
        sac_free(s->names[i]);
    sac_free(s->samples);
    sac_free(s->labels);
    sac_free(s->use);
    sac_free(s->alone);
    sac_free(s->order);
    sac_free(s->names);
    sac_free(s->own_ms);
    sac_free(s->quantised_ms);
    sac_free(s->slower);
    for (int m = 0; m < METHODS; m++)
        sac_free(s->by_method[m]);
    sac_free(s->bytes);
}

static enum sac_dtype dtype_for(const struct sac_quantise_job *job)
{
    if (job->params->model.precision == SAC_PRECISION_FP8)
        return SAC_F8;
    return job->dev->ops->host_memory ? SAC_U8 : SAC_I8;
}

/* The tensor cores take 16 numbers of 8 bits at a time; narrower layers, a stem of three channels
 * and depthwise ones, are faster in the device's own precision. */
static struct sac_quant_rules rules_for(const struct sac_quantise_job *job)
{
    return (struct sac_quant_rules){.float8 = dtype_for(job) == SAC_F8,
                                    .multiple = job->dev->ops->host_memory ? 1 : 16};
}

static sac_result quantise(struct session *s, struct sac_quantised_model *out)
{
    int        kept = 0;
    double     loss = 0;
    sac_result res = gather(s);
    if (res == SAC_OK)
        res = find_scales(s);
    if (res == SAC_OK)
        res = run_reference(s);
    if (res == SAC_OK)
        res = choose(s, &kept, &loss);
    if (res == SAC_OK)
        res = choose_faster(s, &kept, &loss);
    if (res == SAC_OK)
        res = report(s, kept, loss, out);
    if (res == SAC_OK)
        res = write_final(s, &out->report);
    if (res == SAC_OK)
        res = measure(s, &out->report);
    return res;
}

sac_result sac_model_quantise(const struct sac_quantise_job *job, struct sac_quantised_model *out)
{
    char             of[400];
    sac_calibration *cal = job->params->calibration;
    struct session   s = {.job = job,
                          .ctx = job->ctx,
                          .inputs = job->reference->graph->input_count,
                          .outputs = job->reference->graph->output_count,
                          .dtype = dtype_for(job),
                          .rules = rules_for(job),
                          .told_ns = sac_time_ns(),
                          .of = of};
    *out = (struct sac_quantised_model){.size = 0};
    snprintf(of, sizeof of, "%s", cal ? cal->name : "random input");
    if (!cal)
        sac_log(job->ctx, SAC_LOG_WARN,
                "%s: quantised by random input, which has other ranges than what it will see; "
                "--calibrate DIR|VIDEO shows it that",
                job->path);
    const sac_result res = quantise(&s, out);
    if (res == SAC_OK) {
        out->bytes = s.bytes;
        out->size = s.size;
        s.bytes = NULL;
    } else
        sac_quantised_model_finish(out);
    finish(&s);
    return res;
}

void sac_quantised_model_finish(struct sac_quantised_model *made)
{
    for (int i = 0; made->kept && i < made->report.kept_count; i++)
        sac_free(made->kept[i]);
    sac_free(made->kept);
    sac_free(made->bytes);
    *made = (struct sac_quantised_model){.size = 0};
}

/* ---- names ---- */

static const char *const methods[] = {"default", "min-max", "percentile", "entropy"};

const char *sac_calibration_method_name(enum sac_calibration_method method)
{
    return (unsigned)method < SAC_COUNT(methods) ? methods[method] : "unknown";
}

sac_result sac_calibration_method_parse(const char *name, enum sac_calibration_method *out)
{
    SAC_NEEDS(NULL, name);
    SAC_NEEDS(NULL, out);
    for (size_t i = 0; i < SAC_COUNT(methods); i++)
        if (strcmp(name, methods[i]) == 0) {
            *out = (enum sac_calibration_method)i;
            return SAC_OK;
        }
    return SAC_ERR_ARG;
}

const char *sac_quality_name(enum sac_quality quality)
{
    static const char *const names[] = {"accuracy", "AP", "cosine", "IoU"};
    return (unsigned)quality < SAC_COUNT(names) ? names[quality] : "unknown";
}
