/* SPDX-License-Identifier: Apache-2.0 */
#include "device/detect.h"

/* Boxes of an image that the first copy brings: most scenes need no second one. */
enum { BOXES_USUAL = 24 };

sac_result sac_detect_run(sac_device *dev, struct sac_stream *stream, const struct sac_detect_spec *s,
                          const void *tensor, const struct sac_fit_map *maps, int n, void *out)
{
    if (s->dtype != SAC_F32 && s->dtype != SAC_F16)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED, "head: outputs of %s; have float32, float16",
                        sac_dtype_name(s->dtype));
    if (s->cells < 0 || s->cells > SAC_DETECT_CELLS_MAX || s->classes < 1 ||
        s->classes > SAC_DETECT_CLASSES_MAX)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED,
                        "head: %d cells with %d classes; up to %d and %d have room on a device", s->cells,
                        s->classes, (int)SAC_DETECT_CELLS_MAX, (int)SAC_DETECT_CLASSES_MAX);
    if (s->keep < 1 || s->keep > SAC_MAX(s->cells, 1) || n < 0)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "head: %d boxes of %d images", s->keep, n);
    return n ? dev->ops->detect(dev, stream, s, tensor, maps, n, out) : SAC_OK;
}

static sac_result fetch(sac_device *dev, struct sac_stream *stream, void *host, const void *out,
                        size_t begin, size_t end)
{
    sac_result res = sac_device_copy(dev, stream, (char *)host + begin, (const char *)out + begin, end - begin,
                                     SAC_COPY_DEVICE_TO_HOST, SAC_COPY_BOXES, "boxes");
    return res == SAC_OK && stream ? dev->ops->stream_wait(stream) : res;
}

static sac_result take(sac_device *dev, const int32_t *count, const struct sac_detection *boxes, int n,
                       struct sac_detections *found)
{
    for (int i = 0; i < n; i++) {
        const size_t boxes_of_image = (size_t)count[i];
        if (!sac_grow((void **)&found[i].items, &found[i].capacity, boxes_of_image, sizeof *boxes))
            return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "no memory for the boxes of a frame");
        if (boxes_of_image)
            memcpy(found[i].items, boxes, boxes_of_image * sizeof *boxes);
        found[i].count = boxes_of_image;
        boxes += boxes_of_image;
    }
    return SAC_OK;
}

sac_result sac_detect_fetch(sac_device *dev, struct sac_stream *stream, const struct sac_detect_spec *s,
                            const void *out, int n, struct sac_detections *found)
{
    const size_t first = sac_detect_boxes_at(n), size = sizeof(struct sac_detection);
    const size_t usual = first + (size_t)n * (size_t)SAC_MIN(s->keep, (int)BOXES_USUAL) * size;
    struct sac_buffer *buf = NULL;
    if (n == 0)
        return SAC_OK;
    sac_result res = sac_host_buffer_create(dev, sac_detect_out_bytes(s, n), "boxes", &buf);
    if (res != SAC_OK)
        return res;
    char          *host = sac_buffer_data(buf);
    const int32_t *count = (const int32_t *)(const void *)host;
    size_t         end = first;
    res = fetch(dev, stream, host, out, 0, usual);
    for (int i = 0; i < n && res == SAC_OK; i++)
        end += (size_t)count[i] * size;
    if (res == SAC_OK && end > usual)
        res = fetch(dev, stream, host, out, usual, end);
    if (res == SAC_OK)
        res = take(dev, count, (const struct sac_detection *)(const void *)(host + first), n, found);
    sac_buffer_unref(&buf);
    return res;
}
