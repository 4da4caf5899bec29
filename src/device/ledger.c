/* SPDX-License-Identifier: Apache-2.0 */
/* The copy ledger: the one place through which bytes cross between host and device, or frame data
 * is copied on a device. Copies are counted by reason; in strict mode those of frame and tensor
 * data fail. */
#include <string.h>

#include "device/device.h"

static const struct {
    const char *name;
    bool        bulk; /* frame or tensor data: what zero copy is about */
} reasons[SAC_COPY_REASON_COUNT] = {
    [SAC_COPY_WEIGHTS] = {"weights", false},
    [SAC_COPY_BOXES] = {"boxes", false},
    [SAC_COPY_COMMANDS] = {"commands", false},
    [SAC_COPY_FRAME_UPLOAD] = {"frame-upload", true},
    [SAC_COPY_FRAME_DOWNLOAD] = {"frame-download", true},
    [SAC_COPY_FRAME_CONVERT] = {"frame-convert", true},
    [SAC_COPY_OVERLAY] = {"overlay-download", true},
    [SAC_COPY_DRAW] = {"overlay-copy", true},
    [SAC_COPY_CROP] = {"crop-download", true},
    [SAC_COPY_TENSOR_USER] = {"tensor-user", true},
    [SAC_COPY_TENSOR_LAYOUT] = {"tensor-layout", true},
    [SAC_COPY_TENSOR_DOWNLOAD] = {"tensor-download", true},
    [SAC_COPY_MASK] = {"mask-download", true},
};

const char *sac_copy_reason_name(enum sac_copy_reason reason)
{
    return (unsigned)reason < SAC_COPY_REASON_COUNT ? reasons[reason].name : "unknown";
}

static sac_result count(sac_device *dev, size_t bytes, bool crosses, enum sac_copy_reason reason,
                        const char *what)
{
    if ((unsigned)reason >= SAC_COPY_REASON_COUNT)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "%s: copy reason %d is not on the list", what,
                        (int)reason);
    if (atomic_load_explicit(&dev->strict, memory_order_relaxed) && reasons[reason].bulk)
        return SAC_FAIL(dev->ctx, SAC_ERR_COPY,
                        "%s: a copy of %zu bytes (%s) on %s, and zero-copy is strict", what, bytes,
                        reasons[reason].name, dev->name);
    atomic_fetch_add_explicit(&dev->ledger[reason].calls, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&dev->ledger[reason].bytes, bytes, memory_order_relaxed);
    if (crosses && reason != SAC_COPY_WEIGHTS && !dev->ops->host_memory)
        atomic_fetch_add_explicit(&dev->crossed, bytes, memory_order_relaxed);
    return SAC_OK;
}

sac_result sac_device_count_copy(sac_device *dev, size_t bytes, enum sac_copy_reason reason,
                                 const char *what)
{
    const bool crosses = reason == SAC_COPY_FRAME_UPLOAD || reason == SAC_COPY_FRAME_DOWNLOAD;
    return count(dev, bytes, crosses, reason, what);
}

/* What the host and a device that uses its memory hand to each other is nothing to count. */
static bool is_counted(const sac_device *dev, enum sac_copy_kind kind)
{
    return kind == SAC_COPY_ON_DEVICE || !dev->ops->host_memory;
}

sac_result sac_device_copy(sac_device *dev, struct sac_device_stream *stream, void *dst,
                           const void *src, size_t bytes, enum sac_copy_kind kind,
                           enum sac_copy_reason reason, const char *what)
{
    if (bytes && (!dst || !src))
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "%s: a copy of %zu bytes without an address", what,
                        bytes);
    sac_result res = SAC_OK;
    if (is_counted(dev, kind))
        res = count(dev, bytes, kind != SAC_COPY_ON_DEVICE, reason, what);
    return res == SAC_OK && bytes ? dev->ops->copy(dev, stream, dst, src, bytes, kind) : res;
}

sac_result sac_device_copy_rows(sac_device *dev, struct sac_device_stream *stream,
                                const struct sac_copy_rows *r, enum sac_copy_kind kind,
                                enum sac_copy_reason reason, const char *what)
{
    size_t bytes = r->row_bytes * (size_t)r->rows;
    if (bytes && (!r->dst || !r->src))
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "%s: a copy of %zu bytes without an address", what,
                        bytes);
    sac_result res = SAC_OK;
    if (is_counted(dev, kind))
        res = count(dev, bytes, kind != SAC_COPY_ON_DEVICE, reason, what);
    if (res == SAC_OK && bytes && dev->ops->copy_rows)
        return dev->ops->copy_rows(dev, stream, r, kind);
    for (size_t y = 0; res == SAC_OK && bytes && y < (size_t)r->rows; y++)
        res = dev->ops->copy(dev, stream, (char *)r->dst + y * r->dst_pitch,
                             (const char *)r->src + y * r->src_pitch, r->row_bytes, kind);
    return res;
}

void sac_device_ledger(const sac_device *dev, struct sac_ledger *out)
{
    if (!dev || !out)
        return;
    *out = (struct sac_ledger){0};
    for (int i = 0; i < SAC_COPY_REASON_COUNT; i++)
        out->reason[i] = (struct sac_ledger_entry){.calls = atomic_load(&dev->ledger[i].calls),
                                                   .bytes = atomic_load(&dev->ledger[i].bytes)};
    out->crossed_bytes = atomic_load(&dev->crossed);
}
