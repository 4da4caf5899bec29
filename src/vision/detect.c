/* SPDX-License-Identifier: Apache-2.0 */
#include "vision/detect.h"

/* Boxes of an image that the first copy brings: most scenes need no second one. */
enum { BOXES_USUAL = 24 };

static bool is_number(enum sac_dtype dtype)
{
    return dtype == SAC_F32 || dtype == SAC_F16 || dtype == SAC_I32 || dtype == SAC_I64;
}

static sac_result check_field(sac_device *dev, const struct sac_detect_spec *s,
                              const struct sac_detect_field *f)
{
    if (f->tensor < 0 || f->tensor >= s->tensor_count)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "head: tensor %d of %d", f->tensor, s->tensor_count);
    if (!is_number(f->dtype))
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED,
                        "head: outputs of %s; have float32, float16, int32, int64",
                        sac_dtype_name(f->dtype));
    return SAC_OK;
}

static sac_result check_fields(sac_device *dev, const struct sac_detect_spec *s)
{
    const bool rows = s->form == SAC_DETECT_ROWS;
    const int  levels = s->form == SAC_DETECT_GFL ? SAC_DETECT_LEVELS_MAX : 1;
    sac_result res = s->tensor_count < 1 || s->tensor_count > SAC_DETECT_TENSORS_MAX
                         ? SAC_FAIL(dev->ctx, SAC_ERR_ARG, "head: %d tensors", s->tensor_count)
                         : SAC_OK;
    for (int i = 0; i < levels && res == SAC_OK; i++) {
        if (i > 0 && s->score[i].dtype == SAC_DTYPE_NONE) /* the network has fewer */
            break;
        res = check_field(dev, s, &s->box[i]);
        if (res == SAC_OK)
            res = check_field(dev, s, &s->score[i]);
    }
    if (res == SAC_OK && rows)
        res = check_field(dev, s, &s->label);
    return res == SAC_OK && s->ended ? check_field(dev, s, &s->end) : res;
}

void sac_detect_set_dtypes(struct sac_detect_spec *s, const enum sac_dtype *dtypes)
{
    struct sac_detect_field *fields[2 * SAC_DETECT_LEVELS_MAX + 2] = {&s->label, &s->end};
    for (int i = 0; i < SAC_DETECT_LEVELS_MAX; i++) {
        fields[2 + 2 * i] = &s->box[i];
        fields[3 + 2 * i] = &s->score[i];
    }
    for (size_t i = 0; i < SAC_COUNT(fields); i++)
        if (fields[i]->tensor >= 0 && fields[i]->tensor < s->tensor_count)
            fields[i]->dtype = dtypes[fields[i]->tensor];
}

bool sac_detect_has_room(const sac_device *dev, const struct sac_detect_spec *s)
{
    return dev->ops->detect_cells_max == 0 || s->cells <= dev->ops->detect_cells_max;
}

sac_result sac_detect_run(sac_device *dev, struct sac_device_stream *stream,
                          const struct sac_detect_spec *s, const void *const *tensors,
                          const struct sac_fit_map *maps, int n, void *out)
{
    const bool rows = s->form == SAC_DETECT_ROWS;
    sac_result res = check_fields(dev, s);
    if (res != SAC_OK)
        return res;
    if (s->cells < 0 || !sac_detect_has_room(dev, s) || s->classes < !rows)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED,
                        "head: %d cells with %d classes; up to %d cells have room on %s", s->cells,
                        s->classes, dev->ops->detect_cells_max, dev->name);
    if (s->keep < 1 || s->keep > SAC_MAX(s->cells, 1) || n < 0)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "head: %d boxes of %d images", s->keep, n);
    const enum sac_memory_use before = sac_memory_use_set(SAC_MEMORY_HEAD); /* its scratch */
    if (n)
        res = dev->ops->vision->detect(dev, stream, s, tensors, maps, n, out);
    sac_memory_use_set(before);
    return res;
}

static sac_result copy_boxes(sac_device *dev, struct sac_device_stream *stream, void *host,
                             const void *out, size_t begin, size_t end)
{
    return sac_device_copy(dev, stream, (char *)host + begin, (const char *)out + begin,
                           end - begin, SAC_COPY_DEVICE_TO_HOST, SAC_COPY_BOXES, "boxes");
}

/* Bytes with so many boxes. */
static size_t bytes_of(const struct sac_detect_spec *s, int n, size_t boxes)
{
    const size_t most = (size_t)n * (size_t)s->keep;
    return sac_detect_boxes_at(n) + SAC_MIN(boxes, most) * sac_detect_box_bytes(s);
}

static sac_result take(sac_device *dev, const struct sac_detect_spec *s, const void *host, int n,
                       struct sac_detections *found)
{
    const int32_t *count = host;
    const char    *box = (const char *)host + sac_detect_boxes_at(n);
    const size_t   bytes = sac_detect_box_bytes(s);
    const int      only = sac_detect_only_class(s);
    for (int i = 0; i < n; i++) {
        struct sac_detections *list = &found[i];
        const size_t           boxes = (size_t)count[i];
        if (!sac_grow((void **)&list->items, &list->capacity, boxes, sizeof *list->items))
            return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "no memory for the boxes of a frame");
        for (list->count = 0; list->count < boxes; list->count++, box += bytes) {
            struct sac_detection *to = &list->items[list->count];
            memcpy(to, box, bytes);
            if (only >= 0)
                to->class_id = only;
        }
    }
    return SAC_OK;
}

sac_result sac_detect_fetch_begin(sac_device *dev, struct sac_device_stream *stream,
                                  const struct sac_detect_spec *s, const void *out, int n,
                                  size_t expected, void *host)
{
    return copy_boxes(dev, stream, host, out, 0, bytes_of(s, n, expected));
}

sac_result sac_detect_fetch_end(sac_device *dev, struct sac_device_stream *stream,
                                const struct sac_detect_spec *s, const void *out, int n,
                                size_t *expected, void *host, struct sac_detections *found)
{
    const int32_t *count = host;
    const size_t   had = bytes_of(s, n, *expected);
    size_t         boxes = 0;
    sac_result     res = SAC_OK;
    for (int i = 0; i < n; i++)
        boxes += (size_t)count[i];
    const size_t end = bytes_of(s, n, boxes);
    if (end > had)
        res = copy_boxes(dev, stream, host, out, had, end);
    if (res == SAC_OK && end > had && stream)
        res = dev->ops->stream_wait(stream);
    if (res == SAC_OK)
        res = take(dev, s, host, n, found);
    /* A few more than now, or what it was, a little less each time: a box too many crosses the bus
     * for nothing, and one too few costs a second copy of some microseconds. */
    *expected = SAC_MAX(boxes + boxes / 16 + 1, *expected - (*expected + 15) / 16);
    return res;
}

sac_result sac_detect_fetch(sac_device *dev, struct sac_device_stream *stream,
                            const struct sac_detect_spec *s, const void *out, int n,
                            struct sac_detections *found)
{
    struct sac_buffer *host = NULL;
    size_t             expected = (size_t)n * BOXES_USUAL;
    if (n == 0)
        return SAC_OK;
    sac_result res = sac_host_buffer_create(dev, sac_detect_out_bytes(s, n), "boxes", &host);
    if (res == SAC_OK)
        res = sac_detect_fetch_begin(dev, stream, s, out, n, expected, sac_buffer_data(host));
    if (res == SAC_OK && stream)
        res = dev->ops->stream_wait(stream);
    if (res == SAC_OK)
        res = sac_detect_fetch_end(dev, stream, s, out, n, &expected, sac_buffer_data(host), found);
    sac_buffer_unref(&host);
    return res;
}
