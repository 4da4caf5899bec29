/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "device/cpu/cpu.h"
#include "device/dlpack.h"

/* vision/cpu; here it is an address only */
extern const struct sac_vision_ops sac_vision_cpu;

/* ---- what the processor is called ---- */

static const char *level_name(enum sac_cpu_level level)
{
    return level >= SAC_CPU_AVX512 ? "AVX-512" : level == SAC_CPU_AVX2 ? "AVX2" : "plain C";
}

/* The marketing name, as Linux prints it; not every machine has one (ARM, some guests). */
static void read_model_name(char *out, size_t size)
{
    char  line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    snprintf(out, size, "CPU");
    while (file && fgets(line, sizeof line, file)) {
        char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !value)
            continue;
        value += 1 + strspn(value + 1, " \t");
        value[strcspn(value, "\n")] = '\0';
        snprintf(out, size, "%s", value);
        break;
    }
    if (file)
        fclose(file);
}

/* ---- the table's entries ---- */

struct sac_device_stream {
    struct sac_device *dev;
};

static sac_result cpu_open(struct sac_device *dev, int index)
{
    (void)index;
    char model[80];
    read_model_name(model, sizeof model);
    snprintf(dev->name, sizeof dev->name, "cpu");
    snprintf(dev->description, sizeof dev->description, "%s, %s, %d thread%s", model,
             level_name(sac_cpu_level()), dev->params.threads, dev->params.threads == 1 ? "" : "s");
    return SAC_OK;
}

static void cpu_close(struct sac_device *dev)
{
    (void)dev;
}

static sac_result cpu_memory_alloc(struct sac_device *dev, size_t bytes, void **out)
{
    (void)dev;
    void *p = sac_alloc_aligned(64, bytes);
    if (!p)
        return SAC_ERR_MEMORY;
    *out = p;
    return SAC_OK;
}

static void cpu_memory_free(struct sac_device *dev, void *p)
{
    (void)dev;
    sac_free(p);
}

static sac_result cpu_stream_create(struct sac_device *dev, struct sac_device_stream **out)
{
    struct sac_device_stream *stream = sac_new(struct sac_device_stream);
    if (!stream)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "cpu: no memory for a stream");
    stream->dev = dev;
    *out = stream;
    return SAC_OK;
}

static void cpu_stream_destroy(struct sac_device_stream **stream)
{
    if (!stream)
        return;
    sac_free(*stream);
    *stream = NULL;
}

static sac_result cpu_stream_wait(struct sac_device_stream *stream)
{
    (void)stream;
    return SAC_OK;
}

static sac_result cpu_stream_after(struct sac_device *dev, struct sac_device_stream *stream,
                                   struct sac_device_stream *other)
{
    (void)dev, (void)stream, (void)other;
    return SAC_OK;
}

/* An event is the time at which it was recorded: all before it is done by then. */
struct sac_event {
    struct sac_device *dev;
    int64_t            at_ns;
};

static sac_result cpu_event_create(struct sac_device *dev, bool timed, struct sac_event **out)
{
    struct sac_event *event = sac_new(struct sac_event);
    (void)timed;
    if (!event)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "cpu: no memory for an event");
    event->dev = dev;
    *out = event;
    return SAC_OK;
}

static void cpu_event_destroy(struct sac_event **event)
{
    if (!event)
        return;
    sac_free(*event);
    *event = NULL;
}

static sac_result cpu_event_record(struct sac_event *event, struct sac_device_stream *stream)
{
    (void)stream;
    event->at_ns = sac_time_ns();
    return SAC_OK;
}

static sac_result cpu_event_wait(struct sac_event *event)
{
    (void)event;
    return SAC_OK;
}

static sac_result cpu_stream_wait_event(struct sac_device *dev, struct sac_device_stream *stream,
                                        struct sac_event *event)
{
    (void)dev, (void)stream, (void)event;
    return SAC_OK;
}

static sac_result cpu_event_elapsed(struct sac_event *begin, struct sac_event *end, int64_t *ns)
{
    *ns = end->at_ns - begin->at_ns;
    return SAC_OK;
}

static bool cpu_event_reached(struct sac_event *event)
{
    (void)event;
    return true;
}

static sac_result cpu_copy(struct sac_device *dev, struct sac_device_stream *stream, void *dst,
                           const void *src, size_t bytes, enum sac_copy_kind kind)
{
    (void)dev;
    (void)stream;
    (void)kind;
    if (dst != src)
        memmove(dst, src, bytes);
    return SAC_OK;
}

const struct sac_device_ops sac_device_cpu = {
    .name = "cpu",
    .host_memory = true,
    /* More frames in a run make it slower, as the maps of one fill the caches: CPU time a frame of
     * runs of 1, 2, 4 and 8 is 5.3, 5.4, 5.9 and 6.5 ms with person_det_fast, 9.7, 9.9, 10.4 and
     * 12.5 with person_det (EPYC, AVX-512, 1 thread, TUD-Stadtmitte, 2026-11-21). */
    .batch_best = 1,
    /* A plan takes a millisecond, but has memory of its own: not every size has one. */
    .batch_step = 2,
    .precision = SAC_PRECISION_FP32,
    .dlpack_type = SAC_DLPACK_CPU,
    .dlpack_types = 1u << SAC_DLPACK_CPU | 1u << SAC_DLPACK_CUDA_HOST |
                    1u << SAC_DLPACK_CUDA_MANAGED | 1u << SAC_DLPACK_ROCM_HOST,
    .open = cpu_open,
    .close = cpu_close,
    .memory_alloc = cpu_memory_alloc,
    .memory_free = cpu_memory_free,
    .stream_create = cpu_stream_create,
    .stream_create_patient = cpu_stream_create,
    .stream_destroy = cpu_stream_destroy,
    .stream_wait = cpu_stream_wait,
    .stream_after = cpu_stream_after,
    .event_create = cpu_event_create,
    .event_destroy = cpu_event_destroy,
    .event_record = cpu_event_record,
    .event_wait = cpu_event_wait,
    .stream_wait_event = cpu_stream_wait_event,
    .event_elapsed = cpu_event_elapsed,
    .event_reached = cpu_event_reached,
    .copy = cpu_copy,
    .vision = &sac_vision_cpu,
};
