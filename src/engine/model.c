/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cgroup.h"
#include "engine/model.h"
#include "engine/passes/pass.h"

/* Activations over this are refused when the caller sets no limit: more than any network that these
 * devices run, and far under what a small, lying file can ask for. What the machine, or the control group
 * that the process is in, does not have is refused too: the system would grant it and end the program
 * when it is touched. */
static uint64_t default_memory_limit(void)
{
    const uint64_t most = (uint64_t)64 << 30, allowed = sac_memory_allowed();
    return SAC_MIN(most, allowed);
}

struct sac_model_params sac_model_params_default(void)
{
    return (struct sac_model_params){.optimise = 1, .free_batch = 1};
}

/* ---- loading ---- */

static bool ends_with(const char *s, const char *end)
{
    size_t len = strlen(s), n = strlen(end);
    return len >= n && strcasecmp(s + len - n, end) == 0;
}

/* Files that are often taken for models: say what to bring instead. */
static sac_result refuse_others(sac_model *m, const void *bytes, size_t size)
{
    if (size == 0)
        return SAC_FAIL(m->ctx, SAC_ERR_FORMAT, "the file is empty");
    if (ends_with(m->path, ".engine") || ends_with(m->path, ".trt") ||
        (size >= 4 && memcmp(bytes, "ptrt", 4) == 0))
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

/* The first node that nothing covers is a fault, unless the model is only to be looked at. */
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
        sac_context_last_error(m->ctx, m->why_fixed, sizeof m->why_fixed);
        sac_error_clear(m->ctx);
        return SAC_OK;
    }
    if (res == SAC_OK)
        m->batching = SAC_BATCH_UNCHECKED;
    return res == SAC_OK ? sac_graph_probe(m->graph, m->dev, m->params.memory_limit_bytes, false)
                         : res;
}

static sac_result prepare(sac_model *m)
{
    sac_result res = sac_model_list_operators(m);
    if (res == SAC_OK)
        res = check_supported(m);
    if (res == SAC_OK && !m->partial)
        res = sac_graph_fold(m->graph, m->dev, m->params.memory_limit_bytes);
    if (res == SAC_OK)
        res = sac_model_measure(m);
    if (res == SAC_OK)
        res = sac_graph_probe(m->graph, m->dev, m->params.memory_limit_bytes, m->partial);
    if (res == SAC_OK && !m->partial)
        res = free_batch(m);
    return res;
}

static sac_result read_model(sac_model *m, const void *bytes, size_t size, const char *folder)
{
    struct sac_onnx_source source = {bytes, size, folder};
    sac_result             res = refuse_others(m, bytes, size);
    if (res == SAC_OK)
        res = sac_onnx_read(m->ctx, &source, &m->memory, &m->onnx);
    m->graph = m->onnx.graph;
    if (res == SAC_OK)
        res = prepare(m);
    if (res == SAC_OK)
        res = make_ports(m, m->graph->inputs, m->graph->input_count, &m->inputs);
    if (res == SAC_OK)
        res = make_ports(m, m->graph->outputs, m->graph->output_count, &m->outputs);
    if (res == SAC_OK && !m->partial && m->params.optimise && !m->params.reference)
        res = sac_passes_run(m->graph, m->dev, m->params.memory_limit_bytes);
    return res == SAC_OK ? res : sac_fail_prefix(m->ctx, res, "%s: ", m->path);
}

/* A device that is no host runs networks only when all its kernels are there: convolutions in plain C on
 * the host would be no use to anybody. */
static sac_result check_device(sac_device *dev, const char *name, const struct sac_model_params *params)
{
    const enum sac_precision precision = params ? params->precision : SAC_PRECISION_DEFAULT;
    int                      count;
    if ((unsigned)precision > SAC_PRECISION_FP16)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "%s: precision %d is none of the list", name, (int)precision);
    if (dev->ops->host_memory && precision > SAC_PRECISION_FP32)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED, "%s: %s computes in fp32; %s needs a GPU", name,
                        dev->name, sac_precision_name(precision));
    if (dev->ops->host_memory)
        return SAC_OK;
    if (!dev->ops->providers)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED,
                        "%s: the engine has no kernels for %s yet; networks run with --device cpu", name,
                        dev->name);
    sac_kernel_providers(dev, &count);
    const char *missing = sac_kernel_plugin_missing(dev);
    if (missing)
        return SAC_FAIL(dev->ctx, SAC_ERR_DEVICE, "%s: networks cannot run on %s without %s", name,
                        dev->name, missing);
    return SAC_OK;
}

static sac_result model_new(sac_device *dev, const char *name,
                            const struct sac_model_params *params, sac_model **out)
{
    sac_result res = check_device(dev, name, params);
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
    if (m->params.memory_limit_bytes == 0)
        m->params.memory_limit_bytes = default_memory_limit();
    m->params.precision = sac_engine_precision(dev, m->params.precision);
    *out = m;
    return SAC_OK;
}

static sac_result load_path(sac_device *dev, const char *given,
                            const struct sac_model_params *params, bool for_inspection,
                            sac_model **out)
{
    char       path[PATH_MAX];
    sac_model *m = NULL;
    sac_result res = sac_models_find(sac_device_context(dev), given, path, sizeof path);
    if (res == SAC_OK)
        res = model_new(dev, path, params, &m);
    if (res != SAC_OK)
        return res;
    m->for_inspection = for_inspection;
    const char *slash = strrchr(path, '/');
    char       *folder = slash ? sac_asprintf("%.*s", (int)SAC_MAX(slash - path, 1), path)
                               : sac_strdup(".");
    if (!folder)
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
    return load_path(dev, path, params, false, out);
}

sac_result sac_model_open_for_inspection(sac_device *dev, const char *path, sac_model **out)
{
    return load_path(dev, path, NULL, true, out);
}

sac_result sac_model_load_memory(sac_device *dev, const void *bytes, size_t size, const char *name,
                                 const struct sac_model_params *params, sac_model **out)
{
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
    sac_refcount_inc(&model->refs);
    return model;
}

void sac_model_unref(sac_model **model)
{
    sac_model *m = model ? *model : NULL;
    if (!m)
        return;
    *model = NULL;
    if (!sac_refcount_dec(&m->refs))
        return;
    for (int i = 0; i < SAC_PLANS_MAX; i++)
        sac_plan_destroy(&m->plans[i]);
    sac_buffer_unref(&m->arena);
    sac_onnx_finish(&m->onnx);
    sac_arena_finish(&m->memory);
    sac_file_unmap(&m->file);
    sac_device_unref(&m->dev);
    pthread_mutex_destroy(&m->lock);
    sac_free(m->path);
    sac_free(m);
}

/* ---- running ---- */

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

sac_result sac_model_plan(sac_model *m, const struct sac_operand *shapes, struct sac_plan **out)
{
    struct sac_plan *plan = cached_plan(m, shapes);
    if (!plan) {
        struct sac_plan_params params = {.reference = m->params.reference,
                                         .tolerant = m->partial,
                                         .memory_limit = m->params.memory_limit_bytes,
                                         .precision = m->params.precision};
        sac_result res = sac_plan_create(m->dev, m->graph, shapes, &params, &plan);
        if (res != SAC_OK)
            return sac_fail_prefix(m->ctx, res, "%s: ", m->path);
        struct sac_plan **slot = plan_slot(m);
        sac_plan_destroy(slot);
        *slot = plan;
    }
    plan->used_at = ++m->clock;
    plan->profile = m->profile;
    *out = plan;
    return SAC_OK;
}

/* Plans take turns in one arena, as big as the biggest of them. */
static sac_result ensure_arena(sac_model *m, size_t bytes)
{
    struct sac_buffer *grown = NULL;
    if (bytes == 0 || (m->arena && sac_buffer_bytes(m->arena) >= bytes))
        return SAC_OK;
    sac_buffer_unref(&m->arena);
    sac_result res = sac_buffer_create(m->dev, bytes, m->path, &grown);
    if (res != SAC_OK)
        return res;
    sac_buffer_keep(grown); /* as long as the model: no leak */
    m->arena = grown;
    return SAC_OK;
}

static void shapes_of(const sac_model *m, sac_tensor *const *in, struct sac_operand *shapes)
{
    for (int i = 0; i < m->graph->input_count; i++) {
        const struct sac_tensor_desc *d = sac_tensor_describe(in[i]);
        shapes[i] = (struct sac_operand){.dtype = d->dtype, .rank = d->rank, .present = true};
        memcpy(shapes[i].dims, d->shape, (size_t)d->rank * sizeof(int64_t));
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
        res = sac_plan_run(plan, m->arena ? sac_buffer_data(m->arena) : NULL, in, out);
    return res == SAC_OK ? res : sac_fail_prefix(m->ctx, res, "%s: ", m->path);
}

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
        const struct sac_tensor_desc *have = in[i] ? sac_tensor_describe(in[i]) : NULL;
        char                          is[128], wants[128];
        if (!have)
            return SAC_FAIL(m->ctx, SAC_ERR_ARG, "%s: input '%s' is missing", m->path, port->name);
        if (sac_tensor_device(in[i]) != m->dev)
            return SAC_FAIL(m->ctx, SAC_ERR_ARG, "%s: input '%s' is on another device (%s, not %s)",
                            m->path, port->name, sac_device_name(sac_tensor_device(in[i])),
                            sac_device_name(m->dev));
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

sac_result sac_model_run(sac_model *m, sac_tensor *const *in, sac_tensor **out)
{
    for (int i = 0; i < m->graph->output_count; i++)
        out[i] = NULL;
    if (m->partial)
        return SAC_FAIL(m->ctx, SAC_ERR_UNSUPPORTED,
                        "%s: it was opened for inspection, and not all its operators are supported",
                        m->path);
    pthread_mutex_lock(&m->lock);
    sac_result res = run_locked(m, in, out);
    pthread_mutex_unlock(&m->lock);
    return res;
}

int sac_model_batches(sac_model *m)
{
    pthread_mutex_lock(&m->lock);
    if (m->batching == SAC_BATCH_UNCHECKED && sac_model_check_batch(m) != SAC_OK)
        m->batching = SAC_BATCH_WRONG;
    int batches = m->batching == SAC_BATCH_FREE;
    pthread_mutex_unlock(&m->lock);
    return batches;
}

/* ---- looking ---- */

int sac_model_input_count(const sac_model *m)
{
    return m->graph->input_count;
}

int sac_model_output_count(const sac_model *m)
{
    return m->graph->output_count;
}

const struct sac_model_port *sac_model_input(const sac_model *m, int i)
{
    return i >= 0 && i < m->graph->input_count ? &m->inputs[i] : NULL;
}

const struct sac_model_port *sac_model_output(const sac_model *m, int i)
{
    return i >= 0 && i < m->graph->output_count ? &m->outputs[i] : NULL;
}

const char *sac_model_metadata(const sac_model *m, const char *key)
{
    for (int i = 0; i < m->onnx.metadata_count; i++)
        if (strcmp(m->onnx.metadata[i].key, key) == 0)
            return m->onnx.metadata[i].value;
    return NULL;
}

const char *sac_model_path(const sac_model *m)
{
    return m->path;
}

sac_device *sac_model_device(const sac_model *m)
{
    return m->dev;
}

enum sac_precision sac_model_precision(const sac_model *m)
{
    return m->params.precision;
}

void sac_model_profile(sac_model *m, int on)
{
    m->profile = on != 0;
}
