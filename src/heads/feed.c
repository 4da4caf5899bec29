/* SPDX-License-Identifier: Apache-2.0 */
#include "heads/feed.h"

#include <string.h>
#include <strings.h>

#include "device/device.h"
#include "engine/engine.h"

/* By the names that exports give them. */
static const struct side {
    const char        *name;
    int                rank;
    enum sac_feed_kind kind;
} sides[] = {
    {"orig_target_sizes", 2, SAC_FEED_WIDTH_HEIGHT}, /* RT-DETR, D-FINE, DEIM */
    {"im_shape", 2, SAC_FEED_HEIGHT_WIDTH},          /* PaddleDetection */
    {"scale_factor", 2, SAC_FEED_ONES},              /* the same */
    {"pixel_mask", 3, SAC_FEED_MASK},                /* transformers' DETR */
    {"downsample_ratio", 1, SAC_FEED_RATIO},         /* RobustVideoMatting */
};

static bool is_picture(const struct sac_tensor_desc *d)
{
    return d->rank == 4 || (d->rank == 3 && (d->shape[0] == 3 || d->shape[0] == SAC_DIM_UNKNOWN));
}

static const struct side *side_of(const struct sac_model_port *port)
{
    const struct sac_tensor_desc *d = &port->desc;
    for (size_t i = 0; i < SAC_COUNT(sides); i++)
        if (!strcasecmp(sides[i].name, port->name) && d->rank == sides[i].rank &&
            (d->rank != 2 || d->shape[1] == 2 || d->shape[1] == SAC_DIM_UNKNOWN))
            return &sides[i];
    return NULL;
}

static sac_result refuse(sac_context *ctx, const sac_model *model,
                         const struct sac_model_port *port)
{
    char shape[128];
    sac_tensor_desc_print(&port->desc, shape, sizeof shape);
    return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                    "%s: input '%s', %s, is none that a network is fed here: a picture of rank 4, "
                    "or [3,H,W], and beside it orig_target_sizes, im_shape, scale_factor, "
                    "pixel_mask, downsample_ratio or the states of a recurrent one",
                    sac_model_path(model), port->name, shape);
}

/* The first of the inputs that may be one; of several, one with three channels. */
static int find_picture(const sac_model *model, const struct sac_feed *feed, const int *pair)
{
    int first = -1;
    for (int i = 0; i < feed->count; i++) {
        const struct sac_tensor_desc *d = &sac_model_input(model, i)->desc;
        const bool colours = d->rank == 4 && (d->shape[1] == 3 || d->shape[3] == 3);
        if (pair[i] >= 0 || side_of(sac_model_input(model, i)) || !is_picture(d))
            continue;
        if (colours || first < 0)
            first = i;
        if (colours)
            break;
    }
    return first;
}

sac_result sac_feed_init(sac_context *ctx, const sac_model *model, const char *user,
                         struct sac_feed *out)
{
    struct sac_feed feed = {.count = sac_model_input_count(model), .image = -1};
    if (feed.count < 1 || feed.count > SAC_FEED_INPUTS_MAX)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                        "%s: %d inputs; a head needs a picture, and takes %d inputs in all",
                        sac_model_path(model), feed.count, SAC_FEED_INPUTS_MAX);
    sac_result res = sac_states_pair(ctx, model, user, feed.pair);
    if (res != SAC_OK)
        return res;
    feed.image = find_picture(model, &feed, feed.pair);
    for (int i = 0; i < feed.count; i++) {
        const struct sac_model_port *port = sac_model_input(model, i);
        const struct side           *side = side_of(port);
        if (i == feed.image)
            continue;
        if (!side && feed.pair[i] < 0)
            return refuse(ctx, model, port);
        feed.kind[i] = side ? side->kind : SAC_FEED_STATE;
    }
    if (feed.image < 0)
        return refuse(ctx, model, sac_model_input(model, 0));
    feed.single = sac_model_input(model, feed.image)->desc.rank == 3;
    *out = feed;
    return SAC_OK;
}

int sac_feed_find(const struct sac_feed *feed, enum sac_feed_kind kind)
{
    for (int i = 0; i < feed->count; i++)
        if (i != feed->image && feed->kind[i] == kind)
            return i;
    return -1;
}

bool sac_feed_has(const struct sac_feed *feed, enum sac_feed_kind kind)
{
    return sac_feed_find(feed, kind) >= 0;
}

int sac_feed_state(const struct sac_feed *feed, int i)
{
    for (int k = 0; k < feed->count; k++)
        if (k != feed->image && feed->kind[k] == SAC_FEED_STATE && i-- == 0)
            return k;
    return -1;
}

bool sac_feed_gives_state(const struct sac_feed *feed, int output)
{
    for (int i = 0, k; (k = sac_feed_state(feed, i)) >= 0; i++)
        if (feed->pair[k] == output)
            return true;
    return false;
}

/* ---- tensors ---- */

/* The larger side that a network which shrinks by itself looks at: its authors name 256 to 512. */
enum { SHRUNK_SIDE = 512 };

double sac_feed_ratio(int64_t width, int64_t height)
{
    return SAC_MIN(1.0, SHRUNK_SIDE / (double)SAC_MAX(width, height));
}

static double value_of(enum sac_feed_kind kind, int64_t i, int64_t width, int64_t height)
{
    switch (kind) {
    case SAC_FEED_WIDTH_HEIGHT: return (double)(i % 2 ? height : width);
    case SAC_FEED_HEIGHT_WIDTH: return (double)(i % 2 ? width : height);
    case SAC_FEED_RATIO: return sac_feed_ratio(width, height);
    case SAC_FEED_STATE: return 0;
    default: return 1;
    }
}

static void fill(enum sac_feed_kind kind, const struct sac_tensor_desc *desc, int64_t width,
                 int64_t height, void *host)
{
    const struct sac_operand o = {.dtype = desc->dtype, .rank = 1, .present = true, .data = host};
    const int64_t            n = sac_tensor_desc_elements(desc);
    for (int64_t i = 0; i < n; i++)
        sac_operand_set(&o, i, value_of(kind, i, width, height));
}

static sac_result send(sac_device *dev, enum sac_feed_kind kind, int64_t width, int64_t height,
                       sac_tensor *t)
{
    const struct sac_tensor_desc *desc = sac_tensor_describe(t);
    const size_t                  bytes = (size_t)sac_tensor_desc_bytes(desc);
    struct sac_mirror             host = {NULL, NULL};
    sac_result res = sac_mirror_open(dev, sac_tensor_data(t), bytes, "network side input", &host);
    if (res != SAC_OK)
        return res;
    fill(kind, desc, width, height, host.data);
    res = sac_device_copy(dev, NULL, sac_tensor_data(t), host.data, bytes, SAC_COPY_HOST_TO_DEVICE,
                          SAC_COPY_COMMANDS, "an input beside the picture");
    sac_mirror_close(&host);
    return res;
}

/* Sizes of the picture as its tensor has them: [N,3,H,W] or [N,H,W,3]. */
struct picture {
    int64_t count, width, height;
};

static struct picture picture_of(const struct sac_tensor_desc *pixels)
{
    const bool last = pixels->shape[3] == 3 && pixels->shape[1] != 3;
    return (struct picture){pixels->shape[0], pixels->shape[last ? 2 : 3],
                            pixels->shape[last ? 1 : 2]};
}

static struct sac_tensor_desc side_desc(enum sac_feed_kind kind, const struct sac_model_port *port,
                                        const struct picture *p)
{
    const int64_t          open[3] = {p->count, kind == SAC_FEED_MASK ? p->height : 2, p->width};
    const bool             one = kind == SAC_FEED_RATIO || kind == SAC_FEED_STATE;
    struct sac_tensor_desc desc = port->desc;
    if (!one)
        desc.shape[0] = p->count;
    /* A state of open size begins as one number, which the network spreads. */
    for (int i = one ? 0 : 1; i < desc.rank; i++)
        if (desc.shape[i] == SAC_DIM_UNKNOWN)
            desc.shape[i] = one ? 1 : open[i];
    return desc;
}

static struct sac_tensor_desc pixels_desc(const struct sac_feed        *feed,
                                          const struct sac_tensor_desc *pixels)
{
    struct sac_tensor_desc desc = *pixels;
    if (feed->single) {
        desc.rank = 3;
        memmove(desc.shape, desc.shape + 1, 3 * sizeof desc.shape[0]);
    }
    return desc;
}

void sac_feed_describe(const struct sac_feed *feed, const sac_model *model,
                       const struct sac_tensor_desc *pixels, struct sac_tensor_desc *in)
{
    const struct picture p = picture_of(pixels);
    for (int i = 0; i < feed->count; i++)
        in[i] = i == feed->image ? pixels_desc(feed, pixels)
                                 : side_desc(feed->kind[i], sac_model_input(model, i), &p);
}

static sac_result make_side(sac_device *dev, enum sac_feed_kind kind,
                            const struct sac_model_port *port, const struct sac_tensor_desc *pixels,
                            sac_tensor **out)
{
    const struct picture         p = picture_of(pixels);
    const struct sac_tensor_desc desc = side_desc(kind, port, &p);
    sac_result                   res = sac_tensor_create(dev, &desc, "network side input", out);
    return res == SAC_OK ? send(dev, kind, p.width, p.height, *out) : res;
}

static sac_result take_pixels(const struct sac_feed *feed, sac_tensor *pixels, sac_tensor **out)
{
    const struct sac_tensor_desc desc = pixels_desc(feed, sac_tensor_describe(pixels));
    if (feed->single)
        return sac_tensor_view(pixels, 0, &desc, out);
    *out = sac_tensor_ref(pixels);
    return SAC_OK;
}

sac_result sac_feed_make(const struct sac_feed *feed, sac_device *dev, const sac_model *model,
                         sac_tensor *pixels, sac_tensor **in)
{
    sac_result res = SAC_OK;
    memset(in, 0, SAC_FEED_INPUTS_MAX * sizeof *in);
    for (int i = 0; i < feed->count && res == SAC_OK; i++)
        res = i == feed->image ? take_pixels(feed, pixels, &in[i])
                               : make_side(dev, feed->kind[i], sac_model_input(model, i),
                                           sac_tensor_describe(pixels), &in[i]);
    if (res != SAC_OK)
        sac_feed_release(in);
    return res;
}

void sac_feed_release(sac_tensor **in)
{
    for (int i = 0; i < SAC_FEED_INPUTS_MAX; i++)
        sac_tensor_unref(&in[i]);
}
