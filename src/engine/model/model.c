/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cgroup.h"
#include "base/start.h"
#include "engine/model/model.h"
#include "engine/ops/quant.h"
#include "engine/passes/pass.h"

/* The limit of activation memory when the caller sets none: more than any network for these devices
 * needs, and far less than a small malicious file can ask for. Memory that the machine, or the
 * process's control group, does not have is an error too: the system would grant it and kill the
 * program when it is touched. */
static uint64_t default_memory_limit(const sac_device *dev)
{
    const uint64_t most = (uint64_t)64 << 30, allowed = sac_memory_allowed();
    /* On a device of its own memory the pool limits it. */
    return dev->ops->memory_info ? most : SAC_MIN(most, allowed);
}

struct sac_model_params sac_model_params_default(void)
{
    return (struct sac_model_params){.optimise = 1, .free_batch = 1, .tune = 1};
}

/* ---- loading ---- */

static bool ends_with(const char *s, const char *end)
{
    size_t len = strlen(s), n = strlen(end);
    return len >= n && strcasecmp(s + len - n, end) == 0;
}

/* Files that are often mistaken for ONNX models: the sentence names what to use instead. */
static sac_result refuse_others(sac_model *m, const void *bytes, size_t size)
{
    if (size == 0)
        return SAC_FAIL(m->ctx, SAC_ERR_FORMAT, "the file is empty");
    if (ends_with(m->path, ".engine") || ends_with(m->path, ".trt") ||
        (size >= 4 && (memcmp(bytes, "ptrt", 4) == 0 || memcmp(bytes, "ftrt", 4) == 0)))
        return SAC_FAIL(m->ctx, SAC_ERR_FORMAT,
                        "it is a TensorRT engine, which fits one GPU and one TensorRT version; "
                        "bring the ONNX file that it was built from");
    if (ends_with(m->path, ".pt") || ends_with(m->path, ".pth") ||
        (size >= 4 && memcmp(bytes, "PK\3\4", 4) == 0))
        return SAC_FAIL(m->ctx, SAC_ERR_FORMAT,
                        "it is a PyTorch file or an archive; export the network to ONNX "
                        "(torch.onnx.export)");
    return SAC_OK;
}

/* The first unsupported node is an error, unless the model is only inspected. */
static sac_result check_supported(sac_model *m)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < m->info.operator_count; i++)
        m->partial |= !m->info.operators[i].supported;
    if (!m->partial || m->for_inspection)
        return SAC_OK;
    for (size_t i = 0; i < m->graph->node_count && res == SAC_OK; i++)
        res = sac_node_check_supported(m->ctx, m->graph->nodes[i]);
    return res;
}

static sac_result make_ports(sac_model *m, struct sac_value *const *values, int count,
                             struct sac_model_port **out)
{
    struct sac_model_port *ports = sac_arena_alloc(&m->memory, (size_t)(count + 1) * sizeof *ports);
    if (!ports)
        return SAC_FAIL(m->ctx, SAC_ERR_MEMORY, "no memory for the model's ports");
    for (int i = 0; i < count; i++) {
        ports[i].name = values[i]->name;
        ports[i].desc.dtype = values[i]->dtype;
        ports[i].desc.rank = values[i]->rank;
        memcpy(ports[i].desc.shape, values[i]->dims, sizeof ports[i].desc.shape);
    }
    *out = ports;
    return SAC_OK;
}

/* The first dimension of every input and output is open in the file: inputs may be stacked. */
static bool batch_open(const struct sac_graph *g)
{
    for (int i = 0; i < g->input_count; i++)
        if (g->inputs[i]->rank < 1 || g->inputs[i]->dims[0] != SAC_DIM_OPEN)
            return false;
    for (int i = 0; i < g->output_count; i++)
        if (g->outputs[i]->rank < 1 || g->outputs[i]->dims[0] != SAC_DIM_OPEN)
            return false;
    return g->input_count > 0;
}

static sac_result free_batch(sac_model *m)
{
    if (batch_open(m->graph)) {
        m->batching = SAC_BATCH_FREE;
        return SAC_OK;
    }
    if (!m->params.free_batch)
        return SAC_OK;
    sac_result res = sac_graph_free_batch(m->graph);
    if (res == SAC_ERR_UNSUPPORTED) {
        sac_error_take(m->ctx, m->why_fixed, sizeof m->why_fixed);
        return SAC_OK;
    }
    if (res == SAC_OK)
        m->batching = SAC_BATCH_UNCHECKED;
    return res == SAC_OK ? sac_graph_probe(m->graph, m->params.memory_limit_bytes, false) : res;
}

/* The input becomes a constant of the graph. */
static sac_result fix_input(sac_model *m)
{
    struct sac_graph *g = m->graph;
    int               at = 0;
    if (!m->fixed_name)
        return SAC_OK;
    while (at < g->input_count && strcmp(g->inputs[at]->name, m->fixed_name) != 0)
        at++;
    struct sac_value *v = at < g->input_count ? g->inputs[at] : NULL;
    if (!v || v->rank < 0 || v->rank > 1 || (v->rank == 1 && v->dims[0] > 1))
        return SAC_FAIL(m->ctx, SAC_ERR_ARG, "there is no input '%s' of one number", m->fixed_name);
    struct sac_operand o = {.dtype = v->dtype, .rank = 1, .dims = {1}, .present = true};
    o.data = sac_arena_alloc(&m->memory, sizeof(double));
    if (!o.data)
        return SAC_FAIL(m->ctx, SAC_ERR_MEMORY, "no memory for the input '%s'", m->fixed_name);
    sac_operand_set(&o, 0, m->fixed_value);
    if (v->rank == 1)
        v->dims[0] = 1;
    v->data = o.data;
    g->input_count--;
    memmove(&g->inputs[at], &g->inputs[at + 1], (size_t)(g->input_count - at) * sizeof(*g->inputs));
    return SAC_OK;
}

/* Which 8-bit numbers its layers have weights of. */
static sac_result note_quantised(sac_model *m)
{
    const struct sac_graph *g = m->graph;
    m->info.quantised = sac_model_metadata(m, SAC_QUANTISED_KEY);
    m->info.quantised_kept = sac_model_metadata(m, SAC_QUANTISED_KEPT_KEY);
    for (size_t i = 0; i < g->node_count && !m->quantised; i++) {
        const struct sac_value *v = g->nodes[i]->input_count ? g->nodes[i]->inputs[0] : NULL;
        if (g->nodes[i]->op && g->nodes[i]->op->id == SAC_OP_DequantizeLinear && v && v->data &&
            v->rank > 1 && sac_dtype_is_quantised(v->dtype))
            m->quantised = v->dtype == SAC_F8 ? SAC_PRECISION_FP8 : SAC_PRECISION_INT8;
    }
    if (m->wanted == m->quantised || !m->wanted)
        return SAC_OK;
    const char *name = sac_precision_name(m->wanted);
    return SAC_FAIL(m->ctx, SAC_ERR_UNSUPPORTED,
                    "it has no layers in %s%s; saccade build MODEL --precision %s --calibrate "
                    "DIR|VIDEO makes a plan that has",
                    name, m->quantised ? ", it has others of 8 bits" : "", name);
}

static sac_result prepare(sac_model *m)
{
    sac_result res = fix_input(m);
    if (res == SAC_OK)
        res = sac_model_list_operators(m);
    if (res == SAC_OK)
        res = check_supported(m);
    if (res == SAC_OK && !m->partial)
        res = sac_graph_fold(m->graph, m->params.memory_limit_bytes, false);
    if (res == SAC_OK)
        res = note_quantised(m);
    if (res == SAC_OK)
        res = sac_model_measure(m);
    if (res == SAC_OK)
        res = sac_graph_probe(m->graph, m->params.memory_limit_bytes, m->partial);
    if (res == SAC_OK)
        res = sac_model_note_endings(m);
    if (res == SAC_OK && !m->partial)
        res = free_batch(m);
    return res;
}

static uint64_t unsuited_passes(const sac_model *m)
{
    return sac_passes_unsuited(m->dev->ops->host_memory, m->params.precision == SAC_PRECISION_FP16);
}

static sac_result read_onnx(sac_model *m, const void *bytes, size_t size, const char *folder)
{
    struct sac_onnx_source source = {bytes, size, folder};
    struct sac_start_span  span;
    sac_result             res = refuse_others(m, bytes, size);
    sac_start_begin(&span, SAC_START_READ);
    if (res == SAC_OK)
        res = sac_onnx_read(m->ctx, &source, &m->memory, &m->onnx);
    sac_start_end(&span);
    m->graph = m->onnx.graph;
    sac_start_begin(&span, SAC_START_PASSES);
    if (res == SAC_OK)
        res = prepare(m);
    if (res == SAC_OK)
        res = make_ports(m, m->graph->inputs, m->graph->input_count, &m->inputs);
    if (res == SAC_OK)
        res = make_ports(m, m->graph->outputs, m->graph->output_count, &m->outputs);
    if (res == SAC_OK && !m->partial && m->params.optimise && !m->params.reference)
        res = sac_passes_run(m->graph, m->params.memory_limit_bytes,
                             m->without.passes | unsuited_passes(m));
    sac_start_end(&span);
    return res;
}

/* A device whose memory is not the host's runs networks only when all its kernels are there:
 * convolutions in plain C on the host would be uselessly slow. */
static sac_result check_kernels(const sac_model *m)
{
    sac_device *dev = m->dev;
    int         count;
    if (dev->ops->host_memory)
        return SAC_OK;
    if (!dev->ops->providers)
        return SAC_FAIL(m->ctx, SAC_ERR_UNSUPPORTED,
                        "%s: the engine has no kernels for %s yet; networks run with --device cpu",
                        m->path, dev->name);
    sac_kernel_providers(dev, &count);
    const char *missing = sac_kernel_plugin_missing(dev);
    if (missing)
        return SAC_FAIL(m->ctx, SAC_ERR_DEVICE, "%s: networks cannot run on %s without %s", m->path,
                        dev->name, missing);
    return SAC_OK;
}

/* The file was read without asking the device anything, which may have been opened meanwhile. */
static sac_result come_to_device(sac_model *m)
{
    sac_result res = sac_device_await(m->dev);
    if (res == SAC_OK)
        res = check_kernels(m);
    return res == SAC_OK ? sac_model_begin_runs(m) : res;
}

/* An ONNX file, or a plan with one in it. */
static sac_result read_model(sac_model *m, const void *bytes, size_t size, const char *folder)
{
    const bool  plan = sac_book_recognise(bytes, size);
    size_t      offset = 0;
    sac_result  res = plan ? sac_model_look_into_plan(m, bytes, size, &offset) : SAC_OK;
    const void *onnx = plan ? (const char *)bytes + offset : bytes; /* an empty file has no bytes */
    m->file_offset = offset;
    if (res == SAC_OK)
        res = read_onnx(m, onnx, size - offset, plan ? NULL : folder);
    if (res == SAC_OK)
        res = sac_model_name_book(m, onnx, size - offset);
    if (res != SAC_OK)
        return sac_fail_prefix(m->ctx, res, "%s: ", m->path);
    res = come_to_device(m);
    if (res != SAC_OK)
        return res;
    res = sac_model_open_book(m, plan ? bytes : NULL, size);
    return res == SAC_OK ? res : sac_fail_prefix(m->ctx, res, "%s: ", m->path);
}

static sac_result check_params(sac_device *dev, const char *name,
                               const struct sac_model_params *params)
{
    const enum sac_precision precision = params ? params->precision : SAC_PRECISION_DEFAULT;
    SAC_NEEDS_NO_LATER_FIELD(dev->ctx, params, "model parameters");
    if ((unsigned)precision > SAC_PRECISION_FP8)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "%s: precision %d does not exist", name,
                        (int)precision);
    if (precision == SAC_PRECISION_FP8 && dev->ops->host_memory)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED, "%s: fp8 needs a GPU; %s computes in int8",
                        name, dev->ops->name);
    if (precision <= SAC_PRECISION_FP16 && precision > dev->ops->precision)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED, "%s: %s computes in %s; %s needs a GPU",
                        name, dev->ops->name, sac_precision_name(dev->ops->precision),
                        sac_precision_name(precision));
    return SAC_OK;
}

/* What the environment says, and that it does: a forgotten variable would be a slow network. */
static sac_result leave_out(sac_model *m)
{
    char             text[512];
    const char      *names = getenv("SACCADE_WITHOUT");
    const sac_result res =
        names ? sac_without_parse(m->ctx, "SACCADE_WITHOUT", names, &m->without) : SAC_OK;
    sac_without_text(&m->without, text, sizeof text);
    if (*text)
        sac_log(m->ctx, SAC_LOG_WARN, "%s: without %s, as SACCADE_WITHOUT says", m->path, text);
    return res;
}

static sac_result model_new(sac_device *dev, const char *name,
                            const struct sac_model_params *params, sac_model **out)
{
    sac_result res = check_params(dev, name, params);
    if (res != SAC_OK)
        return res;
    sac_context *ctx = sac_device_context(dev);
    sac_model   *m = sac_new(sac_model);
    if (!m || !(m->path = sac_strdup(name))) {
        sac_free(m);
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for the model '%s'", name);
    }
    sac_refcount_init(&m->refs);
    pthread_mutex_init(&m->lock, NULL);
    m->ctx = ctx;
    m->dev = sac_device_ref(dev);
    m->params = params ? *params : sac_model_params_default();
    if (dev->params.deterministic)
        m->params.tune = 0;
    if (m->params.memory_limit_bytes == 0)
        m->params.memory_limit_bytes = default_memory_limit(dev);
    if (m->params.precision > SAC_PRECISION_FP16)
        m->wanted = m->params.precision;
    else
        m->asked = m->params.precision != SAC_PRECISION_DEFAULT;
    m->params.precision = sac_engine_precision(dev, m->params.precision);
    res = leave_out(m);
    if (res == SAC_OK)
        *out = m;
    else
        sac_model_unref(&m);
    return res;
}

/* What is loaded otherwise than sac_model_load does. */
struct variant {
    bool        for_inspection;
    const char *fixed_name;
    double      fixed_value;
};

static sac_result load_path(sac_device *dev, const char *given,
                            const struct sac_model_params *params, const struct variant *variant,
                            sac_model **out)
{
    char       path[PATH_MAX];
    sac_model *m = NULL;
    sac_result res = sac_models_find(sac_device_context(dev), given, path, sizeof path);
    if (res == SAC_OK)
        res = model_new(dev, path, params, &m);
    if (res != SAC_OK)
        return res;
    m->for_inspection = variant->for_inspection;
    m->fixed_value = variant->fixed_value;
    if (variant->fixed_name) {
        m->fixed_name =
            sac_arena_strndup(&m->memory, variant->fixed_name, strlen(variant->fixed_name));
        if (!m->fixed_name)
            res = SAC_FAIL(m->ctx, SAC_ERR_MEMORY, "no memory for the model '%s'", path);
    }
    const char *slash = strrchr(path, '/');
    char       *folder =
        slash ? sac_asprintf("%.*s", (int)SAC_MAX(slash - path, 1), path) : sac_strdup(".");
    if (!folder && res == SAC_OK)
        res = SAC_FAIL(m->ctx, SAC_ERR_MEMORY, "no memory for the model '%s'", path);
    if (res == SAC_OK)
        res = sac_file_map(m->ctx, path, &m->file);
    if (res == SAC_OK)
        res = read_model(m, m->file.bytes, m->file.size, folder);
    sac_free(folder);
    if (res == SAC_OK)
        *out = m;
    else
        sac_model_unref(&m);
    return res;
}

sac_result sac_model_load(sac_device *dev, const char *path, const struct sac_model_params *params,
                          sac_model **out)
{
    SAC_NEEDS(sac_device_context(dev), dev);
    SAC_NEEDS(sac_device_context(dev), path);
    SAC_NEEDS(sac_device_context(dev), out);
    return load_path(dev, path, params, &(struct variant){.for_inspection = false}, out);
}

sac_result sac_model_load_fixed(sac_device *dev, const char *path,
                                const struct sac_model_params *params, const char *name,
                                double value, sac_model **out)
{
    const struct variant variant = {.fixed_name = name, .fixed_value = value};
    return load_path(dev, path, params, &variant, out);
}

sac_result sac_model_open_for_inspection(sac_device *dev, const char *path,
                                         const struct sac_model_params *params, sac_model **out)
{
    SAC_NEEDS(sac_device_context(dev), dev);
    SAC_NEEDS(sac_device_context(dev), path);
    SAC_NEEDS(sac_device_context(dev), out);
    return load_path(dev, path, params, &(struct variant){.for_inspection = true}, out);
}

sac_result sac_model_load_memory(sac_device *dev, const void *bytes, size_t size, const char *name,
                                 const struct sac_model_params *params, sac_model **out)
{
    SAC_NEEDS(sac_device_context(dev), dev);
    SAC_NEEDS(sac_device_context(dev), name);
    SAC_NEEDS(sac_device_context(dev), out);
    SAC_NEEDS_ARRAY(sac_device_context(dev), bytes, size);
    sac_model *m = NULL;
    sac_result res = model_new(dev, name, params, &m);
    if (res == SAC_OK)
        res = read_model(m, bytes, size, NULL);
    if (res == SAC_OK)
        *out = m;
    else
        sac_model_unref(&m);
    return res;
}

sac_model *sac_model_ref(sac_model *model)
{
    if (!model)
        return NULL;
    sac_refcount_inc(&model->refs);
    return model;
}

static void release_file(sac_model *m)
{
    sac_onnx_finish(&m->onnx);
    sac_arena_finish(&m->memory);
    sac_file_unmap(&m->file);
    sac_device_unref(&m->dev);
    sac_free(m->path);
}

void sac_model_unref(sac_model **model)
{
    sac_model *m = model ? *model : NULL;
    if (!m)
        return;
    *model = NULL;
    if (!sac_refcount_dec(&m->refs))
        return;
    sac_model_finish_runs(m);
    pthread_mutex_destroy(&m->lock);
    if (m->of) /* all else is its model's */
        sac_model_unref(&m->of);
    else
        release_file(m);
    sac_free(m);
}

/* ---- inspection ---- */

int sac_model_input_count(const sac_model *m)
{
    if (!m)
        return 0;
    return m->graph->input_count;
}

int sac_model_output_count(const sac_model *m)
{
    if (!m)
        return 0;
    return m->graph->output_count;
}

const struct sac_model_port *sac_model_input(const sac_model *m, int i)
{
    if (!m)
        return NULL;
    return i >= 0 && i < m->graph->input_count ? &m->inputs[i] : NULL;
}

const struct sac_model_port *sac_model_output(const sac_model *m, int i)
{
    if (!m)
        return NULL;
    return i >= 0 && i < m->graph->output_count ? &m->outputs[i] : NULL;
}

const char *sac_model_metadata(const sac_model *m, const char *key)
{
    if (!m || !key)
        return NULL;
    for (int i = 0; i < m->onnx.metadata_count; i++)
        if (strcmp(m->onnx.metadata[i].key, key) == 0)
            return m->onnx.metadata[i].value;
    return NULL;
}

const char *sac_model_path(const sac_model *m)
{
    if (!m)
        return NULL;
    return m->path;
}

const char *sac_model_file(const sac_model *m, int i)
{
    if (!m)
        return NULL;
    if (!m->file.bytes || i < 0)
        return NULL;
    return i == 0 ? m->path : sac_onnx_data_file(&m->onnx, i - 1);
}

sac_device *sac_model_device(const sac_model *m)
{
    if (!m)
        return NULL;
    return m->dev;
}

enum sac_precision sac_model_precision(const sac_model *m)
{
    if (!m)
        return SAC_PRECISION_DEFAULT;
    return m->quantised ? m->quantised : m->params.precision;
}

void sac_model_profile(sac_model *m, int on)
{
    if (!m)
        return;
    m->profile = on != 0;
}
