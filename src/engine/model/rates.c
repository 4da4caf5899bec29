/* SPDX-License-Identifier: Apache-2.0 */
/* What a device can do at best, measured: the bandwidth of a large copy, the arithmetic of a large
 * product by the engine's own kernel, the time of a step that does next to nothing. The last two
 * are steps of small networks, which are written here, so that they run as those of any other. */
#include <stdlib.h>
#include <string.h>

#include "engine/kernel/layout.h"
#include "engine/model/model.h"

/* ---- a network, in ONNX's own form ---- */

struct message {
    uint8_t *bytes;
    size_t   size, room;
    bool     failed; /* no memory */
};

static void put(struct message *m, const void *bytes, size_t size)
{
    if (m->size + size > m->room && !m->failed) {
        const size_t room = (m->size + size) * 2;
        uint8_t     *grown = sac_realloc_array(m->bytes, room, 1);
        m->failed = !grown;
        m->bytes = grown ? grown : m->bytes;
        m->room = grown ? room : m->room;
    }
    if (m->failed || size == 0)
        return;
    memcpy(m->bytes + m->size, bytes, size);
    m->size += size;
}

static void put_varint(struct message *m, uint64_t v)
{
    for (; v > 0x7f; v >>= 7)
        put(m, &(uint8_t){(uint8_t)(v | 0x80)}, 1);
    put(m, &(uint8_t){(uint8_t)v}, 1);
}

static void put_number(struct message *m, unsigned field, int64_t v)
{
    put_varint(m, field << 3);
    put_varint(m, (uint64_t)v);
}

static void put_bytes(struct message *m, unsigned field, const void *bytes, size_t size)
{
    put_varint(m, field << 3 | 2);
    put_varint(m, size);
    put(m, bytes, size);
}

static void put_text(struct message *m, unsigned field, const char *text)
{
    put_bytes(m, field, text, strlen(text));
}

static void put_message(struct message *m, unsigned field, struct message *inner)
{
    put_bytes(m, field, inner->bytes, inner->size);
    m->failed |= inner->failed;
    sac_free(inner->bytes);
    *inner = (struct message){0};
}

enum { ONNX_FLOAT = 1, ONNX_IR = 8, ONNX_OPSET = 17 };

static void put_node(struct message *graph, const char *operator_name, const char *a, const char *b,
                     const char *out)
{
    struct message node = {0};
    put_text(&node, 1, a);
    if (b)
        put_text(&node, 1, b);
    put_text(&node, 2, out);
    put_text(&node, 4, operator_name);
    put_message(graph, 1, &node);
}

/* [rows, columns] of float32. field: 11, an input; 12, an output. */
static void put_port(struct message *graph, unsigned field, const char *name, int rows, int columns)
{
    struct message port = {0}, type = {0}, tensor = {0}, shape = {0}, dim = {0};
    put_number(&dim, 1, rows);
    put_message(&shape, 1, &dim);
    put_number(&dim, 1, columns);
    put_message(&shape, 1, &dim);
    put_number(&tensor, 1, ONNX_FLOAT);
    put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_text(&port, 1, name);
    put_message(&port, 2, &type);
    put_message(graph, field, &port);
}

static void put_weights(struct message *graph, const char *name, int n, const float *numbers)
{
    struct message tensor = {0};
    put_number(&tensor, 1, n);
    put_number(&tensor, 1, n);
    put_number(&tensor, 2, ONNX_FLOAT);
    put_text(&tensor, 8, name);
    put_bytes(&tensor, 9, numbers, (size_t)n * (size_t)n * sizeof *numbers);
    put_message(graph, 5, &tensor);
}

static void put_model(struct message *model, struct message *graph)
{
    struct message opset = {0};
    put_number(model, 1, ONNX_IR);
    put_number(&opset, 2, ONNX_OPSET);
    put_message(model, 8, &opset);
    put_message(model, 7, graph);
}

/* ---- the time of its steps ---- */

struct probe {
    sac_device        *dev;
    enum sac_precision precision;
    double             step_ms;         /* the shortest step's mean */
    double             flops, flops_ms; /* of the product, the mean so far, */
    double             best_ms;         /* and its best run: the others met other programs */
};

static void note_step(void *user, const struct sac_model_step *step)
{
    struct probe *p = user;
    if (step->flops >= p->flops) {
        p->flops = (double)step->flops;
        p->flops_ms = step->ms;
    }
    if (p->step_ms == 0 || step->ms < p->step_ms)
        p->step_ms = step->ms;
}

static sac_result run_profiled(struct probe *p, sac_model *model, sac_tensor *const *in)
{
    enum { OUTPUTS_MAX = 8, RUNS = 10 };
    const double           warm_seconds = 0.1; /* what rested has its full clock then */
    double                 sum = 0;
    struct sac_model_times times;
    sac_tensor            *out[OUTPUTS_MAX] = {0};
    sac_result             res = sac_model_time(model, in, warm_seconds, &times);
    sac_model_profile(model, 1);
    for (int i = 1; i <= RUNS && res == SAC_OK; i++) {
        res = sac_model_run(model, in, out);
        for (int k = 0; k < OUTPUTS_MAX; k++)
            sac_tensor_unref(&out[k]);
        sac_model_list_steps(model, note_step, p);
        const double last = p->flops_ms * i - sum;
        p->best_ms = i == 1 ? last : SAC_MIN(p->best_ms, last);
        sum += last;
    }
    return res;
}

/* numbers: rows * columns, for the network's only input. Frees the network. */
static sac_result probe_network(struct probe *p, struct message *network, int rows, int columns,
                                const float *numbers)
{
    struct sac_model_params      params = sac_model_params_default();
    const struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 2, .shape = {rows, columns}};
    sac_model                   *model = NULL;
    sac_tensor                  *in = NULL;
    sac_result                   res = SAC_OK;
    params.precision = p->precision;
    params.tune = params.free_batch = 0;
    if (network->failed)
        res = SAC_FAIL(p->dev->ctx, SAC_ERR_MEMORY, "no memory to measure %s", p->dev->name);
    if (res == SAC_OK)
        res = sac_model_load_memory(p->dev, network->bytes, network->size, "measured rates",
                                    &params, &model);
    if (res == SAC_OK)
        res = sac_tensor_create(p->dev, &desc, "measured rates", &in);
    if (res == SAC_OK)
        res = sac_tensor_upload(in, numbers);
    if (res == SAC_OK)
        res = run_profiled(p, model, &in);
    sac_tensor_unref(&in);
    sac_model_unref(&model);
    sac_free(network->bytes);
    return res;
}

/* ---- what is measured ---- */

static void fill(float *numbers, size_t count)
{
    uint32_t seed = 1;
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        numbers[i] = (float)(seed >> 8) / 16777216.0f - 0.5f;
    }
}

/* The copy beside the product makes the plan two steps, which a GPU runs as one launch and times by
 * its own clock. */
static sac_result probe_product(struct probe *p, int n)
{
    const size_t   count = (size_t)n * (size_t)n;
    float         *numbers = sac_realloc_array(NULL, count, sizeof *numbers);
    struct message model = {0}, graph = {0};
    if (!numbers)
        return SAC_FAIL(p->dev->ctx, SAC_ERR_MEMORY, "no memory to measure %s", p->dev->name);
    fill(numbers, count);
    put_node(&graph, "MatMul", "x", "w", "y");
    put_node(&graph, "Identity", "x", NULL, "z");
    put_weights(&graph, "w", n, numbers);
    put_port(&graph, 11, "x", n, n);
    put_port(&graph, 12, "y", n, n);
    put_port(&graph, 12, "z", n, n);
    put_model(&model, &graph);
    const sac_result res = probe_network(p, &model, n, n, numbers);
    sac_free(numbers);
    return res;
}

/* Larger matrices until a product takes long enough that nothing else counts. */
static sac_result measure_product(struct probe *p, double *flops_per_s)
{
    enum { SMALLEST = 512, LARGEST = 4096 };
    const double long_enough_ms = 5;
    sac_result   res = SAC_OK;
    for (int n = SMALLEST; n <= LARGEST && res == SAC_OK && p->best_ms < long_enough_ms; n *= 2) {
        p->flops = 0;
        res = probe_product(p, n);
    }
    if (res == SAC_OK && p->best_ms > 0)
        *flops_per_s = p->flops / p->best_ms * 1e3;
    return res;
}

static sac_result measure_step(struct probe *p, double *step_ms)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    const float              numbers[4] = {0};
    struct message           model = {0}, graph = {0};
    put_port(&graph, 11, "x", 1, 4);
    for (size_t i = 0; i < SAC_COUNT(names); i++) {
        put_node(&graph, "Identity", "x", NULL, names[i]);
        put_port(&graph, 12, names[i], 1, 4);
    }
    put_model(&model, &graph);
    p->step_ms = 0;
    const sac_result res = probe_network(p, &model, 1, 4, numbers);
    *step_ms = p->step_ms;
    return res;
}

enum { COPY_BYTES = 256 << 20 };

/* A copy within a device is queued; the host's own is one thread's work, so its workers share it.
 */
static sac_result copy(sac_device *dev, struct sac_device_stream *stream, void *to,
                       const void *from)
{
    const struct sac_operand bytes = {.dtype = SAC_U8, .rank = 1, .dims = {COPY_BYTES}};
    if (!dev->ops->host_memory)
        return dev->ops->copy(dev, stream, to, from, COPY_BYTES, SAC_COPY_ON_DEVICE);
    sac_worker_pool_hold(dev->workers);
    sac_layout_convert_on(dev->workers, &bytes, to, SAC_LAYOUT_PLAIN, from, SAC_LAYOUT_PLAIN);
    sac_worker_pool_release(dev->workers);
    return SAC_OK;
}

static sac_result time_copies(sac_device *dev, struct sac_device_stream *stream,
                              struct sac_event *begin, struct sac_event *end, void *to,
                              const void *from, double *bytes_per_s)
{
    enum { COPIES = 8 };
    sac_result res = dev->ops->stream_after(dev, stream, NULL);
    int64_t    best = INT64_MAX, ns = 0;
    for (int i = 0; i < COPIES && res == SAC_OK; i++) {
        res = dev->ops->event_record(begin, stream);
        if (res == SAC_OK)
            res = copy(dev, stream, to, from);
        if (res == SAC_OK)
            res = dev->ops->event_record(end, stream);
        if (res == SAC_OK)
            res = dev->ops->stream_wait(stream);
        if (res == SAC_OK)
            res = dev->ops->event_elapsed(begin, end, &ns);
        best = i > 0 ? SAC_MIN(best, ns) : best; /* the first one meets pages that are not there */
    }
    *bytes_per_s = 2.0 * COPY_BYTES / ((double)SAC_MAX(best, 1) / 1e9);
    return res;
}

static sac_result measure_copy(sac_device *dev, double *bytes_per_s)
{
    const struct sac_device_ops *ops = dev->ops;
    struct sac_device_stream    *stream = NULL;
    struct sac_event            *begin = NULL, *end = NULL;
    struct sac_buffer           *from = NULL, *to = NULL;
    sac_result                   res = ops->stream_create(dev, &stream);
    if (res == SAC_OK)
        res = ops->event_create(dev, true, &begin);
    if (res == SAC_OK)
        res = ops->event_create(dev, true, &end);
    if (res == SAC_OK)
        res = sac_buffer_create(dev, COPY_BYTES, "measured rates", &from);
    if (res == SAC_OK)
        res = sac_buffer_create(dev, COPY_BYTES, "measured rates", &to);
    if (res == SAC_OK && ops->host_memory) /* pages that were never written are all the same one */
        memset(sac_buffer_data(from), 1, COPY_BYTES);
    if (res == SAC_OK)
        res = time_copies(dev, stream, begin, end, sac_buffer_data(to), sac_buffer_data(from),
                          bytes_per_s);
    if (stream)
        ops->stream_wait(stream);
    sac_buffer_unref(&to);
    sac_buffer_unref(&from);
    if (end)
        ops->event_destroy(&end);
    if (begin)
        ops->event_destroy(&begin);
    if (stream)
        ops->stream_destroy(&stream);
    return res;
}

sac_result sac_device_measure(sac_device *dev, enum sac_precision precision,
                              struct sac_device_rates *out)
{
    SAC_NEEDS(dev ? dev->ctx : NULL, dev);
    SAC_NEEDS(dev->ctx, out);
    struct probe            p = {.dev = dev, .precision = sac_engine_precision(dev, precision)};
    struct sac_device_rates rates = {0};
    sac_result              res = measure_product(&p, &rates.flops_per_s);
    if (res == SAC_OK)
        res = measure_copy(dev, &rates.bytes_per_s);
    if (res == SAC_OK)
        res = measure_step(&p, &rates.step_ms);
    if (res == SAC_OK)
        *out = rates;
    return res;
}
