/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN's engines for a graph: those that the heuristics offer, and the plan of one of them. */
#include <string.h>

#include "engine/cuda/products/cudnn_conv.h"

/* ---- notes ---- */

struct notes {
    bool tensor_core, down_convert, reduced_sums, fft, winograd, nondeterministic, runtime;
};

static void read_notes(const struct cudnn_api *api, cudnn_desc engine, struct notes *out)
{
    cudnnBackendNumericalNote_t numbers[CUDNN_NUMERICAL_NOTE_TYPE_COUNT + 8];
    cudnnBackendBehaviorNote_t  behaviour[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT + 8];
    int64_t                     n = 0;
    memset(out, 0, sizeof *out);
    if (api->desc_get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                      SAC_COUNT(numbers), &n, numbers) != CUDNN_STATUS_SUCCESS)
        n = 0;
    for (int64_t i = 0; i < SAC_MIN(n, (int64_t)SAC_COUNT(numbers)); i++) {
        out->tensor_core |= numbers[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        out->down_convert |= numbers[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
        out->reduced_sums |= numbers[i] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
        out->fft |= numbers[i] == CUDNN_NUMERICAL_NOTE_FFT;
        out->winograd |= numbers[i] == CUDNN_NUMERICAL_NOTE_WINOGRAD;
        out->nondeterministic |= numbers[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    }
    if (api->desc_get(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                      SAC_COUNT(behaviour), &n, behaviour) != CUDNN_STATUS_SUCCESS)
        n = 0;
    for (int64_t i = 0; i < SAC_MIN(n, (int64_t)SAC_COUNT(behaviour)); i++)
        out->runtime |= behaviour[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
}

/* Engines that NVRTC compiles for float32 without the matrix unit read beyond their input: blocks
 * behind the last pixel load a tile, too (cuDNN 9.19, 3x3 of 64 channels over 8 maps of 80x80, a
 * residual; compute-sanitizer, one H200, 2026-11-29). What lies there is not always mapped. */
static bool reads_beyond(const struct notes *n, enum sac_precision precision)
{
    return precision != SAC_PRECISION_FP16 && n->runtime && !n->tensor_core;
}

/* Sums are always in float32 and results deterministic. TF32 rounds inputs; FP32 rounds nothing. */
static bool exact_enough(const struct notes *n, enum sac_precision precision)
{
    if (n->reduced_sums || n->nondeterministic || n->fft)
        return false;
    if (precision == SAC_PRECISION_FP16)
        return true;
    if (n->down_convert || n->winograd)
        return false;
    return precision == SAC_PRECISION_TF32 || !n->tensor_core;
}

/* ---- candidates ---- */

static void read_knobs(struct cudnn_set *set, cudnn_desc config, struct conv_choice *out)
{
    cudnn_desc knobs[CONV_KNOBS_MAX];
    int64_t    n = 0;
    for (int i = 0; i < CONV_KNOBS_MAX; i++)
        knobs[i] = cudnn_make(set, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, "read knobs");
    if (!cudnn_good(set) ||
        set->api->desc_get(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                           CONV_KNOBS_MAX, &n, knobs) != CUDNN_STATUS_SUCCESS)
        return;
    out->knob_count = (int)SAC_MIN(n, (int64_t)CONV_KNOBS_MAX);
    for (int i = 0; i < out->knob_count; i++) {
        cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
        int64_t                value = 0, got;
        set->api->desc_get(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1,
                           &got, &type);
        set->api->desc_get(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &got,
                           &value);
        out->knobs[i].type = (int64_t)type;
        out->knobs[i].value = value;
    }
}

static bool read_candidate(const struct cudnn_target *t, cudnn_desc config,
                           const struct conv_spec *s, struct cudnn_candidate *out)
{
    struct cudnn_set set = {.api = t->api};
    struct notes     notes;
    int64_t          got = 0;
    cudnn_desc       engine = cudnn_make(&set, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "read an engine");
    bool             ok = cudnn_good(&set) &&
              t->api->desc_get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                               1, &got, &engine) == CUDNN_STATUS_SUCCESS &&
              t->api->desc_get(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &got,
                               &out->choice.engine) == CUDNN_STATUS_SUCCESS;
    if (ok) {
        read_notes(t->api, engine, &notes);
        out->runtime = notes.runtime;
        ok = exact_enough(&notes, s->precision) && !reads_beyond(&notes, s->precision);
    }
    if (ok)
        read_knobs(&set, config, &out->choice);
    cudnn_set_finish(&set);
    return ok;
}

enum { RESULTS_MAX = 32 };

int cudnn_graph_candidates(const struct cudnn_target *t, const struct cudnn_graph *g,
                           const struct conv_spec *s, cudnnBackendHeurMode_t mode,
                           struct cudnn_candidate *out, int max)
{
    struct cudnn_set set = {.api = t->api};
    cudnn_desc       configs[RESULTS_MAX];
    int64_t          found = 0;
    int              n = 0;
    cudnn_desc heur = cudnn_make(&set, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "ask the heuristics");
    cudnn_put_desc(&set, heur, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, g->graph);
    cudnn_put(&set, heur, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
#if CUDNN_VERSION >= 90800
    if (!t->handle)
        cudnn_put_desc(&set, heur, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, t->device);
#endif
    cudnn_done(&set, heur);
    for (int i = 0; i < RESULTS_MAX; i++)
        configs[i] = cudnn_make(&set, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "read the heuristics");
    if (cudnn_good(&set) &&
        t->api->desc_get(heur, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                         RESULTS_MAX, &found, configs) != CUDNN_STATUS_SUCCESS)
        found = 0;
    for (int64_t i = 0; i < SAC_MIN(found, (int64_t)RESULTS_MAX) && n < max; i++) {
        out[n] =
            (struct cudnn_candidate){.choice.way = g->fused ? CONV_CUDNN_FUSED : CONV_CUDNN_PLAIN};
        n += read_candidate(t, configs[i], s, &out[n]);
    }
    cudnn_set_finish(&set);
    return n;
}

/* ---- plans ---- */

static cudnn_desc engine_of(const struct cudnn_target *t, struct cudnn_set *set,
                            const struct cudnn_graph *g, int64_t index)
{
    cudnn_desc engine = cudnn_make(set, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "take an engine");
    cudnn_put_desc(set, engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, g->graph);
    cudnn_put_int(set, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index);
#if CUDNN_VERSION >= 90800
    if (!t->handle)
        cudnn_put_desc(set, engine, CUDNN_ATTR_ENGINE_DEVICEPROP, t->device);
#else
    (void)t;
#endif
    return cudnn_done(set, engine);
}

static cudnn_desc config_of(struct cudnn_set *set, cudnn_desc engine,
                            const struct conv_choice *choice)
{
    cudnn_desc knobs[CONV_KNOBS_MAX];
    for (int i = 0; i < choice->knob_count; i++) {
        const cudnnBackendKnobType_t type = (cudnnBackendKnobType_t)choice->knobs[i].type;
        knobs[i] = cudnn_make(set, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, "turn a knob");
        cudnn_put(set, knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
        cudnn_put_int(set, knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, choice->knobs[i].value);
        cudnn_done(set, knobs[i]);
    }
    cudnn_desc config = cudnn_make(set, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "configure an engine");
    cudnn_put_desc(set, config, CUDNN_ATTR_ENGINECFG_ENGINE, engine);
    if (choice->knob_count > 0)
        cudnn_put(set, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                  choice->knob_count, knobs);
    return cudnn_done(set, config);
}

static void put_target(const struct cudnn_target *t, struct cudnn_set *set, cudnn_desc plan)
{
    if (t->handle)
        cudnn_put(set, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &t->handle);
#if CUDNN_VERSION >= 90800
    else
        cudnn_put_desc(set, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, t->device);
#endif
}

static bool finish_plan(struct cudnn_plan *p, cudnn_desc plan)
{
    struct cudnn_set *set = &p->set;
    int64_t           got = 0;
    p->plan = cudnn_done(set, plan);
    if (cudnn_good(set))
        set->status = set->api->desc_get(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                         CUDNN_TYPE_INT64, 1, &got, &p->workspace);
    return cudnn_good(set);
}

bool cudnn_graph_compiles(const struct cudnn_target *t, const struct cudnn_graph *g,
                          const struct conv_choice *choice)
{
    struct cudnn_set set = {.api = t->api};
    struct notes     notes = {.runtime = false};
    cudnn_desc       engine = engine_of(t, &set, g, choice->engine);
    if (cudnn_good(&set))
        read_notes(t->api, engine, &notes);
    cudnn_set_finish(&set);
    return notes.runtime;
}

bool cudnn_plan_make(const struct cudnn_target *t, const struct cudnn_graph *g,
                     const struct conv_choice *choice, cudnn_desc cache, struct cudnn_plan *out)
{
    *out = (struct cudnn_plan){.set = {.api = t->api}};
    struct cudnn_set *set = &out->set;
    cudnn_desc        config = config_of(set, engine_of(t, set, g, choice->engine), choice);
    cudnn_desc plan = cudnn_make(set, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "make a plan");
    cudnn_put_desc(set, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    put_target(t, set, plan);
#if CUDNN_HAS_KERNEL_CACHE
    if (cache)
        cudnn_put_desc(set, plan, CUDNN_ATTR_EXECUTION_PLAN_KERNEL_CACHE, cache);
#else
    (void)cache;
#endif
    return finish_plan(out, plan);
}

bool cudnn_plan_read(const struct cudnn_target *t, const char *text, size_t size,
                     struct cudnn_plan *out)
{
    *out = (struct cudnn_plan){.set = {.api = t->api}};
    cudnn_desc plan = cudnn_make(&out->set, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "read a plan");
    put_target(t, &out->set, plan);
    cudnn_put(&out->set, plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
              (int64_t)size, text);
    return finish_plan(out, plan);
}

char *cudnn_plan_text(const struct cudnn_plan *p, size_t *size)
{
    int64_t count = 0, got = 0;
    if (p->set.api->desc_get(p->plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                             CUDNN_TYPE_CHAR, 0, &count, NULL) != CUDNN_STATUS_SUCCESS ||
        count <= 0)
        return NULL;
    char *text = sac_alloc((size_t)count + 1);
    if (text && p->set.api->desc_get(p->plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                     CUDNN_TYPE_CHAR, count, &got, text) != CUDNN_STATUS_SUCCESS) {
        sac_free(text);
        return NULL;
    }
    *size = (size_t)count;
    return text;
}

void cudnn_plan_finish(struct cudnn_plan *p)
{
    cudnn_set_finish(&p->set);
    p->plan = NULL;
}
