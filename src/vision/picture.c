/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors as frames. */
#include "vision/picture.h"

#include <float.h>

#include "vision/vision.h"

struct sac_picture_params sac_picture_params_default(void)
{
    return (struct sac_picture_params){.pts_us = 0};
}

/* A tensor of one picture or more. */
struct shape {
    int64_t count, width, height, channels;
    bool    first; /* the channels are the first dimension of a picture */
};

static bool is_channels(int64_t n)
{
    return n == 1 || n == 3 || n == 4;
}

static bool read_shape(const struct sac_tensor_desc *d, enum sac_channel_place place,
                       struct shape *out)
{
    const int      rank = d->rank == 4 ? 3 : d->rank;
    const int64_t *dims = d->shape + (d->rank - rank);
    if (rank == 2) {
        *out = (struct shape){1, dims[1], dims[0], 1, false};
        return place == SAC_CHANNELS_AUTO && dims[0] > 0 && dims[1] > 0;
    }
    if (rank != 3)
        return false;
    const bool first =
        place == SAC_CHANNELS_AUTO ? !is_channels(dims[2]) : place == SAC_CHANNELS_FIRST;
    out->count = d->rank == 4 ? d->shape[0] : 1;
    out->channels = dims[first ? 0 : 2];
    out->height = dims[first ? 1 : 0];
    out->width = dims[first ? 2 : 1];
    out->first = first;
    return is_channels(out->channels) && out->width > 0 && out->height > 0;
}

static sac_result check_params(sac_context *ctx, const struct sac_picture_params *p)
{
    SAC_NEEDS_NO_LATER_FIELD(ctx, p, "picture parameters");
    const struct sac_number numbers[] = {{"channels", (int)p->channels, 0, SAC_CHANNELS_FIRST},
                                         {"order", (int)p->order, 0, SAC_ORDER_BGR},
                                         {"white", p->white, 0, FLT_MAX}};
    return sac_numbers_check(ctx, "picture", numbers, SAC_COUNT(numbers));
}

static sac_result check_shape(const sac_tensor *t, const struct sac_picture_params *p,
                              struct shape *out)
{
    const struct sac_tensor_desc *desc = sac_tensor_describe(t);
    char                          text[128];
    if (read_shape(desc, p->channels, out) && out->width <= INT32_MAX && out->height <= INT32_MAX &&
        (desc->dtype == SAC_U8 || desc->dtype == SAC_F32 || desc->dtype == SAC_F16 ||
         desc->dtype == SAC_BF16))
        return SAC_OK;
    sac_tensor_desc_print(desc, text, sizeof text);
    return SAC_FAIL(sac_tensor_device(t)->ctx, SAC_ERR_ARG,
                    "a tensor, %s, as a picture%s: have [H,W], [H,W,C], [C,H,W] and [N,...] of "
                    "these, C 1, 3 or 4, of uint8, float32, float16 or bfloat16",
                    text,
                    p->channels == SAC_CHANNELS_FIRST  ? ", channels first"
                    : p->channels == SAC_CHANNELS_LAST ? ", channels last"
                                                       : "");
}

int64_t sac_picture_count(const sac_tensor *t, const struct sac_picture_params *params)
{
    const struct sac_picture_params p = params ? *params : sac_picture_params_default();
    struct shape                    shape = {0};
    return t && read_shape(sac_tensor_describe(t), p.channels, &shape) ? shape.count : 0;
}

/* Bytes that lie as a frame's do. */
static enum sac_pixel_format format_of(const struct sac_tensor_desc    *desc,
                                       const struct sac_picture_params *p,
                                       const struct shape              *shape)
{
    const bool bgr = p->order == SAC_ORDER_BGR;
    if (desc->dtype != SAC_U8 || (p->white != 0 && p->white != 255))
        return SAC_PIXEL_NONE;
    if (shape->channels == 1)
        return SAC_PIXEL_GRAY8;
    if (shape->first)
        return SAC_PIXEL_NONE;
    if (shape->channels == 3)
        return bgr ? SAC_PIXEL_BGR24 : SAC_PIXEL_RGB24;
    return bgr ? SAC_PIXEL_BGRA : SAC_PIXEL_RGBA;
}

static struct sac_picture_job job_of(const sac_tensor *t, const struct sac_picture_params *p,
                                     const struct shape *shape, void *numbers)
{
    const enum sac_dtype dtype = sac_tensor_describe(t)->dtype;
    const float          white = p->white != 0 ? p->white : dtype == SAC_U8 ? 255 : 1;
    const int64_t        apart = shape->first ? shape->width * shape->height : 1;
    return (struct sac_picture_job){.numbers = numbers,
                                    .dtype = dtype,
                                    .width = (int)shape->width,
                                    .height = (int)shape->height,
                                    .right = shape->first ? 1 : shape->channels,
                                    .down = shape->width * (shape->first ? 1 : shape->channels),
                                    .channel = shape->channels == 1 ? 0 : apart,
                                    .bgr = p->order == SAC_ORDER_BGR,
                                    .scale = 255.0f / white};
}

/* In one pass on the device. */
static sac_result convert(sac_tensor *t, const sac_frame *desc, struct sac_picture_job *job,
                          sac_frame **out)
{
    sac_device *dev = sac_tensor_device(t);
    sac_frame  *frame = NULL;
    char        what[200];
    sac_tensor_name(t, "a frame from", what, sizeof what);
    if (!dev->ops->vision->picture)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED, "%s: %s converts none", what, dev->name);
    sac_result res = sac_frame_create(dev, desc, &frame);
    if (res == SAC_OK)
        res = sac_device_count_copy(dev, (size_t)desc->width * (size_t)desc->height * 3,
                                    SAC_COPY_FRAME_CONVERT, what);
    if (res == SAC_OK) {
        job->rows = frame->plane[0];
        job->pitch = frame->pitch_bytes[0];
        res = dev->ops->vision->picture(dev, NULL, job);
        sac_tensor_used(t, NULL);
        sac_frame_written(frame, NULL);
    }
    if (res == SAC_OK)
        *out = frame;
    else
        sac_frame_unref(&frame);
    return res;
}

sac_result sac_frame_from_tensor(sac_tensor *t, int64_t image,
                                 const struct sac_picture_params *params, sac_frame **out)
{
    SAC_NEEDS(NULL, t);
    SAC_NEEDS(sac_tensor_device(t)->ctx, out);
    sac_context                    *ctx = sac_tensor_device(t)->ctx;
    const struct sac_picture_params p = params ? *params : sac_picture_params_default();
    struct shape                    shape = {0};
    sac_result                      res = check_params(ctx, &p);
    if (res == SAC_OK)
        res = check_shape(t, &p, &shape);
    if (res != SAC_OK)
        return res;
    if (p.prepared)
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "a prepared tensor is a network's input, and no frame: "
                        "sac_detector_run_tensor takes it");
    if (image < 0 || image >= shape.count)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "picture %lld of a tensor that has %lld",
                        (long long)image, (long long)shape.count);
    const struct sac_tensor_desc *desc = sac_tensor_describe(t);
    const int64_t                 numbers = shape.width * shape.height * shape.channels;
    char                         *at =
        (char *)sac_tensor_data(t) + (size_t)(image * numbers) * sac_dtype_bytes(desc->dtype);
    sac_frame frame = {.format = format_of(desc, &p, &shape),
                       .width = (int)shape.width,
                       .height = (int)shape.height,
                       .pts_us = p.pts_us,
                       .number = p.number,
                       .stream_id = p.stream_id};
    frame.range = SAC_RANGE_FULL;
    if (frame.format != SAC_PIXEL_NONE) {
        frame.plane[0] = (uint8_t *)at;
        frame.pitch_bytes[0] = (size_t)(shape.width * shape.channels);
        return sac_frame_of_tensor(t, &frame, out);
    }
    frame.format = SAC_PIXEL_RGB24;
    struct sac_picture_job job = job_of(t, &p, &shape, at);
    return convert(t, &frame, &job, out);
}
