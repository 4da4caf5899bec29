/* SPDX-License-Identifier: Apache-2.0 */
/* The checking side of the image operations: arguments are looked at once here, so that each device
 * may trust them. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "device/format.h"
#include "vision/fit.h"
#include "vision/font.h"
#include "vision/vision.h"

/* Farther out a float no longer holds a pixel's place to 1/8. */
static const float coordinate_max = 1 << 20;
enum { JOBS_MAX = 1 << 16 };

const uint32_t sac_vision_ops_size = sizeof(struct sac_vision_ops);

/* ---- preprocess ---- */

struct sac_preprocess sac_preprocess_default(void)
{
    const float one = 1.0f / 255.0f;
    return (struct sac_preprocess){
        .fit = SAC_FIT_LETTERBOX_CENTRE,
        .filter = SAC_FILTER_BILINEAR,
        .order = SAC_ORDER_RGB,
        .layout = SAC_TENSOR_LAYOUT_NCHW,
        .dtype = SAC_F32,
        .scale = {one, one, one},
        .fill = {114, 114, 114},
    };
}

struct sac_fit_map sac_fit_map_of(const struct sac_preprocess *pre, const struct sac_rect *crop)
{
    if (!pre || !crop)
        return (struct sac_fit_map){0};
    struct sac_fit_box box = sac_fit_box_of(pre, crop);
    float              scale_x = (float)box.width / (crop->x1 - crop->x0);
    float              scale_y = (float)box.height / (crop->y1 - crop->y0);
    return (struct sac_fit_map){scale_x, scale_y, (float)box.x - crop->x0 * scale_x,
                                (float)box.y - crop->y0 * scale_y};
}

static bool is_tensor_of(const struct sac_preprocess *pre, int n, const struct sac_tensor_desc *d)
{
    struct sac_tensor_desc want = sac_preprocess_desc(pre, n);
    return d->dtype == want.dtype && d->rank == want.rank && d->shape[0] >= n &&
           !memcmp(d->shape + 1, want.shape + 1, 3 * sizeof want.shape[0]);
}

static sac_result check_preprocess(sac_context *ctx, const struct sac_preprocess *pre)
{
    SAC_NEEDS_NO_LATER_FIELD(ctx, pre, "preprocess");
    if (pre->width < 1 || pre->height < 1 || pre->width > 32768 || pre->height > 32768)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "preprocess: size %dx%d; have 1x1 to 32768x32768",
                        pre->width, pre->height);
    const struct sac_number numbers[] = {
        {"fit", (int)pre->fit, 0, SAC_FIT_LETTERBOX_CENTRE},
        {"filter", (int)pre->filter, 0, SAC_FILTER_AREA},
        {"order", (int)pre->order, 0, SAC_ORDER_BGR},
        {"layout", (int)pre->layout, 0, SAC_TENSOR_LAYOUT_NHWC},
        {"mean[0]", pre->mean[0], -FLT_MAX, FLT_MAX},
        {"mean[1]", pre->mean[1], -FLT_MAX, FLT_MAX},
        {"mean[2]", pre->mean[2], -FLT_MAX, FLT_MAX},
        {"scale[0]", pre->scale[0], -FLT_MAX, FLT_MAX},
        {"scale[1]", pre->scale[1], -FLT_MAX, FLT_MAX},
        {"scale[2]", pre->scale[2], -FLT_MAX, FLT_MAX},
        {"fill[0]", pre->fill[0], -FLT_MAX, FLT_MAX},
        {"fill[1]", pre->fill[1], -FLT_MAX, FLT_MAX},
        {"fill[2]", pre->fill[2], -FLT_MAX, FLT_MAX},
    };
    if (sac_numbers_check(ctx, "preprocess", numbers, SAC_COUNT(numbers)) != SAC_OK)
        return SAC_ERR_ARG;
    if (pre->dtype != SAC_F32 && pre->dtype != SAC_F16 && pre->dtype != SAC_U8)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "preprocess: dtype %s; have float32, float16, uint8",
                        sac_dtype_name(pre->dtype));
    return SAC_OK;
}

static bool is_frame_format(const sac_frame *f)
{
    return sac_format_info_of(f->format) && f->width > 0 && f->height > 0;
}

static sac_result check_job(sac_device *dev, const struct sac_preprocess_job *job, int index)
{
    const sac_frame *f = job->frame;
    if (!f || !f->owner || !is_frame_format(f) || f->device != dev)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "preprocess: job %d has no frame on device %s",
                        index, dev->name);
    const float edge[4] = {job->crop.x0, job->crop.y0, job->crop.x1, job->crop.y1};
    for (int i = 0; i < 4; i++)
        if (!(fabsf(edge[i]) <= coordinate_max))
            return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "preprocess: job %d crops at %g", index,
                            (double)edge[i]);
    return SAC_OK;
}

static sac_result check_jobs(sac_device *dev, const struct sac_preprocess *pre,
                             const struct sac_preprocess_job *jobs, int n, const sac_tensor *dst)
{
    sac_result res = check_preprocess(dev->ctx, pre);
    if (res != SAC_OK)
        return res;
    if (n < 0 || n > JOBS_MAX)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "preprocess: %d jobs; have 0 to %d", n, JOBS_MAX);
    if (!is_tensor_of(pre, n, sac_tensor_describe(dst)) || sac_tensor_device(dst) != dev)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG,
                        "preprocess: the tensor is not %d images of %dx%d, %s, on device %s", n,
                        pre->width, pre->height, sac_dtype_name(pre->dtype), dev->name);
    res = sac_tensor_check_writable(dst, "preprocess");
    for (int i = 0; i < n && res == SAC_OK; i++)
        res = check_job(dev, &jobs[i], i);
    return res;
}

sac_result sac_preprocess_run_on(sac_device *dev, struct sac_device_stream *stream,
                                 const struct sac_preprocess     *pre,
                                 const struct sac_preprocess_job *jobs, int n, sac_tensor *dst)
{
    sac_result res = check_jobs(dev, pre, jobs, n, dst);
    if (res != SAC_OK)
        return res;
    for (int i = 0; i < n && res == SAC_OK; i++) /* crops of one frame stand together */
        if (i == 0 || jobs[i].frame != jobs[i - 1].frame)
            res = sac_frame_await(jobs[i].frame, stream);
    const enum sac_memory_use before = sac_memory_use_set(SAC_MEMORY_PREPROCESS); /* its scratch */
    if (n && res == SAC_OK)
        res = dev->ops->vision->preprocess(dev, stream, pre, jobs, n, sac_tensor_data(dst));
    sac_memory_use_set(before);
    for (int i = 0; i < n; i++)
        if (i == 0 || jobs[i].frame != jobs[i - 1].frame)
            sac_frame_used(jobs[i].frame, stream);
    return res;
}

sac_result sac_preprocess_run(sac_device *dev, const struct sac_preprocess *pre,
                              const struct sac_preprocess_job *jobs, int n, sac_tensor *dst)
{
    SAC_NEEDS(sac_device_context(dev), dev);
    SAC_NEEDS(sac_device_context(dev), pre);
    SAC_NEEDS(sac_device_context(dev), dst);
    SAC_NEEDS_ARRAY(sac_device_context(dev), jobs, n);
    return sac_preprocess_run_on(dev, NULL, pre, jobs, n, dst);
}

/* ---- convert ---- */

/* The ledger counts every copy of frame data. */
static sac_result count_conversion(const sac_frame *dst, enum sac_copy_reason reason,
                                   const char *what)
{
    struct sac_plane_layout planes[SAC_PLANES_MAX];
    size_t                  bytes = 0;
    int                     n = sac_frame_planes(dst->format, dst->width, dst->height, planes);
    for (int i = 0; i < n; i++)
        bytes += planes[i].row_bytes * (size_t)planes[i].rows;
    return sac_device_count_copy(dst->device, bytes, reason, what);
}

sac_result sac_frame_convert_on(struct sac_device_stream *stream, const sac_frame *src,
                                enum sac_filter filter, sac_frame *dst, enum sac_copy_reason reason,
                                const char *what)
{
    sac_device *dev = dst->device;
    if (!is_frame_format(src) || !is_frame_format(dst) || src->device != dev)
        return SAC_FAIL(
            dev->ctx, SAC_ERR_ARG, "convert: from %s to %s needs two frames of device %s",
            sac_pixel_format_name(src->format), sac_pixel_format_name(dst->format), dev->name);
    if (!sac_frame_is_writable(dst))
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "convert: the destination frame is shared");
    sac_result res = count_conversion(dst, reason, what);
    if (res == SAC_OK)
        res = sac_frame_await(src, stream);
    if (res == SAC_OK)
        res = sac_frame_await(dst, stream);
    if (res == SAC_OK)
        res = dev->ops->vision->convert(dev, stream, src, filter, dst);
    sac_frame_used(src, stream);
    sac_frame_used(dst, stream);
    sac_frame_written(dst, stream);
    return res;
}

sac_result sac_frame_rescale_on(struct sac_device_stream *stream, const sac_frame *src,
                                enum sac_filter filter, sac_frame *dst)
{
    sac_result res = sac_frame_await(src, stream);
    if (res == SAC_OK)
        res = sac_frame_await(dst, stream);
    if (res == SAC_OK)
        res = dst->device->ops->vision->convert(dst->device, stream, src, filter, dst);
    sac_frame_used(src, stream);
    sac_frame_used(dst, stream);
    sac_frame_written(dst, stream);
    return res;
}

sac_result sac_frame_convert(const sac_frame *src, enum sac_filter filter, sac_frame *dst)
{
    SAC_NEEDS(sac_device_context(dst ? dst->device : NULL), src);
    SAC_NEEDS(sac_device_context(src->device), dst);
    SAC_NEEDS(sac_device_context(dst->device), src->owner);
    SAC_NEEDS(sac_device_context(src->device), dst->owner);
    char what[128];
    sac_frame_name(src, "conversion of", what, sizeof what);
    return sac_frame_convert_on(NULL, src, filter, dst, SAC_COPY_FRAME_CONVERT, what);
}

/* Turned where it is, into the size, format and colours that it has. */
static sac_result copy_turned(const sac_frame *src, sac_frame *dst)
{
    sac_frame *upright = NULL;
    sac_result res = sac_frame_create(src->device, src, &upright);
    if (res == SAC_OK)
        res = sac_frame_convert(src, SAC_FILTER_BILINEAR, upright);
    if (res == SAC_OK)
        res = sac_frame_copy_upright(upright, dst);
    sac_frame_unref(&upright);
    return res;
}

sac_result sac_frame_copy(const sac_frame *src, sac_frame *dst)
{
    SAC_NEEDS(sac_device_context(dst ? dst->device : NULL), src);
    SAC_NEEDS(sac_device_context(src->device), dst);
    SAC_NEEDS(sac_device_context(dst->device), src->owner);
    SAC_NEEDS(sac_device_context(src->device), dst->owner);
    sac_result res = sac_frame_check_copy(src, dst);
    if (res != SAC_OK)
        return res;
    return src->orientation == SAC_UPRIGHT ? sac_frame_copy_upright(src, dst)
                                           : copy_turned(src, dst);
}

/* ---- draw ---- */

static sac_result check_shape(sac_context *ctx, const struct sac_shape *s, int index)
{
    if (s->kind < SAC_SHAPE_BOX || s->kind > SAC_SHAPE_FILL)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "draw: shape %d has the unknown kind %d", index, s->kind);
    if (s->kind == SAC_SHAPE_TEXT && !s->text)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "draw: shape %d is a text without one", index);
    const float number[5] = {s->rect.x0, s->rect.y0, s->rect.x1, s->rect.y1, s->alpha};
    for (int i = 0; i < 5; i++)
        if (!isfinite(number[i]))
            return SAC_FAIL(ctx, SAC_ERR_ARG, "draw: shape %d has a coordinate or alpha of %g",
                            index, (double)number[i]);
    return SAC_OK;
}

sac_result sac_frame_draw_on(struct sac_device_stream *stream, sac_frame *frame,
                             const struct sac_shape *shapes, int n)
{
    sac_device *dev = frame->device;
    if (!sac_frame_is_writable(frame))
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "draw: the frame is shared");
    for (int i = 0; i < n; i++) {
        sac_result res = check_shape(dev->ctx, &shapes[i], i);
        if (res != SAC_OK)
            return res;
    }
    sac_result res = n > 0 ? sac_frame_await(frame, stream) : SAC_OK;
    if (res == SAC_OK && n > 0)
        res = dev->ops->vision->draw(dev, stream, frame, shapes, n);
    sac_frame_used(frame, stream);
    sac_frame_written(frame, stream);
    return res;
}

sac_result sac_frame_draw(sac_frame *frame, const struct sac_shape *shapes, int n)
{
    SAC_NEEDS(NULL, frame);
    SAC_NEEDS(sac_device_context(frame->device), frame->owner);
    SAC_NEEDS_ARRAY(frame->device->ctx, shapes, n);
    return sac_frame_draw_on(NULL, frame, shapes, n);
}

int sac_text_width(const char *text, int height)
{
    if (!text)
        return 0;
    return (int)ceilf((float)strlen(text) * sac_font_advance(height));
}

/* Found by a search, in CIELAB at D65 (CIE 15): bright enough for dark scenes and strong enough for
 * grey ones, each at least 30 from all others, and in an order that keeps the next four at 49 or
 * more. Hues in equal steps do not: most of the greens look alike. */
struct sac_colour sac_colour_of_id(int64_t id)
{
    static const struct sac_colour colours[] = {
        {221, 85, 68},   {238, 221, 85}, {17, 255, 0},    {136, 136, 221}, {255, 102, 255},
        {68, 187, 85},   {0, 255, 255},  {187, 119, 51},  {255, 0, 85},    {204, 85, 153},
        {0, 119, 255},   {153, 221, 17}, {34, 187, 153},  {255, 85, 17},   {187, 34, 255},
        {238, 153, 255}, {0, 255, 119},  {204, 238, 153}, {255, 136, 153}, {255, 153, 0},
        {17, 170, 238},  {153, 85, 221}, {255, 0, 170},   {17, 255, 187},
    };
    return colours[(uint64_t)id % SAC_COUNT(colours)];
}
