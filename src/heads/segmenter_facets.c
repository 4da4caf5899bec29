/* SPDX-License-Identifier: Apache-2.0 */
/* A segmenter that sees facets of wide eyes (vision/facets.h): before the network an eye becomes
 * its facets, each an image of the batch; behind it their maps become one of the eye, of which the
 * matte is made as of any other. */
#include "heads/segmenter.h"
#include "vision/vision.h"

/* ---- tables ---- */

/* Memory for n things of a size, filled on the host. */
struct table {
    struct sac_mirror host;
    size_t            bytes;
};

static sac_result table_open(struct sac_segmenter *seg, size_t n, size_t size,
                             struct sac_buffer **buf, struct table *t)
{
    const enum sac_memory_use before = sac_memory_use_set(SAC_MEMORY_HEAD);
    *t = (struct table){{NULL, NULL}, n * size};
    sac_result res = sac_buffer_create(seg->dev, t->bytes, "facets", buf);
    if (res == SAC_OK)
        res = sac_mirror_open(seg->dev, sac_buffer_data(*buf), t->bytes, "facets", &t->host);
    sac_memory_use_set(before);
    return res;
}

/* Sent as weights are: once. */
static sac_result table_close(struct sac_segmenter *seg, struct sac_buffer *buf, struct table *t)
{
    sac_result res = SAC_OK;
    if (t->host.data != sac_buffer_data(buf))
        res = sac_device_copy(seg->dev, NULL, sac_buffer_data(buf), t->host.data, t->bytes,
                              SAC_COPY_HOST_TO_DEVICE, SAC_COPY_WEIGHTS, "where facets look");
    sac_mirror_close(&t->host);
    if (res == SAC_OK)
        res = seg->dev->ops->stream_after(seg->dev, seg->buckets.before, NULL);
    return res == SAC_OK ? seg->dev->ops->stream_after(seg->dev, seg->buckets.behind, NULL) : res;
}

static sac_result make_places(struct sac_segmenter *seg)
{
    struct sac_segmenter_facets *f = &seg->facets;
    struct table                 t;
    const size_t                 n = (size_t)f->count * (size_t)f->side * (size_t)f->side;
    sac_result res = table_open(seg, n, sizeof(struct sac_facet_place), &f->places, &t);
    if (res != SAC_OK)
        return res;
    sac_facets_place(f->projection, f->set, f->side, t.host.data);
    return table_close(seg, f->places, &t);
}

static sac_result make_cells(struct sac_segmenter *seg, int width, int height)
{
    struct sac_segmenter_facets *f = &seg->facets;
    struct table                 t;
    sac_result res = table_open(seg, (size_t)width * (size_t)height, sizeof(struct sac_facet_cell),
                                &f->cells, &t);
    if (res != SAC_OK)
        return res;
    sac_facets_tap(f->projection, f->set, &seg->contract.pre, &seg->net, width, height,
                   t.host.data);
    return table_close(seg, f->cells, &t);
}

/* ---- opening ---- */

sac_result sac_segmenter_facets_open(struct sac_segmenter *seg)
{
    const struct sac_vision_ops *ops = seg->dev->ops->vision;
    if (!ops->facets || !ops->facet_shares || !ops->facet_maps)
        return SAC_FAIL(seg->dev->ctx, SAC_ERR_UNSUPPORTED,
                        "%s has no facets of wide pictures; use --device cpu, or --facets none",
                        sac_device_name(seg->dev));
    seg->facets.side = sac_facets_side(&seg->contract.pre);
    return make_places(seg);
}

void sac_segmenter_facets_close(struct sac_segmenter *seg)
{
    sac_buffer_unref(&seg->facets.places);
    sac_buffer_unref(&seg->facets.cells);
}

sac_result sac_segmenter_lay_out_facets(struct sac_segmenter *seg)
{
    struct sac_segmenter_facets *f = &seg->facets;
    int                          width, height;
    if (f->cells)
        return SAC_OK;
    sac_facets_map_size(f->projection, f->set, &seg->net, &width, &height);
    const sac_result res = make_cells(seg, width, height);
    if (res != SAC_OK)
        sac_buffer_unref(&f->cells); /* it was not filled */
    return res;
}

struct sac_fit_map sac_segmenter_facets_map(const struct sac_segmenter *seg, const sac_frame *eye)
{
    return (struct sac_fit_map){.scale_x = (float)seg->spec.width / (float)eye->width,
                                .scale_y = (float)seg->spec.height / (float)eye->height};
}

/* ---- pictures ---- */

static sac_result create_picture(struct sac_segmenter *seg, int width, int height, sac_frame **out)
{
    const sac_frame           desc = {.format = SAC_PIXEL_RGB24, .width = width, .height = height};
    const enum sac_memory_use before = sac_memory_use_set(SAC_MEMORY_PREPROCESS);
    const sac_result          res = sac_frame_create(seg->dev, &desc, out);
    sac_memory_use_set(before);
    return res;
}

/* An eye's picture, no larger than facets need it, and its facets. */
static sac_result create_pictures(struct sac_segmenter *seg, const sac_frame *eye,
                                  sac_frame **small, sac_frame **facets)
{
    const struct sac_segmenter_facets *f = &seg->facets;
    int                                width, height;
    sac_facets_eye_size(f->projection, f->set, f->side, eye->width, eye->height, &width, &height);
    sac_result res = create_picture(seg, width, height, small);
    for (int i = 0; i < f->count && res == SAC_OK; i++)
        res = create_picture(seg, f->side, f->side, &facets[i]);
    /* Work queued on the device's own stream may still use this memory. */
    return res == SAC_OK ? seg->dev->ops->stream_after(seg->dev, seg->buckets.before, NULL) : res;
}

/* small: its picture stays there until the batch is done. */
static sac_result look(struct sac_segmenter *seg, const sac_frame *eye, sac_frame **small,
                       sac_frame **facets, struct sac_preprocess_job *jobs)
{
    const struct sac_segmenter_facets  *f = &seg->facets;
    const size_t                        pixels = (size_t)f->side * (size_t)f->side;
    const struct sac_facet_place *const places = sac_buffer_data(f->places);
    struct sac_facet_job                looks[SAC_FACETS_MAX];
    sac_result                          res = create_pictures(seg, eye, small, facets);
    if (res == SAC_OK)
        res = sac_frame_rescale_on(seg->buckets.before, eye, SAC_FILTER_AREA, *small);
    for (int i = 0; i < f->count; i++) {
        looks[i] = (struct sac_facet_job){*small, places + (size_t)i * pixels, facets[i]};
        jobs[i] = (struct sac_preprocess_job){.frame = facets[i]};
    }
    return res == SAC_OK ? sac_facets_run_on(seg->dev, seg->buckets.before, looks, f->count) : res;
}

sac_result sac_segmenter_queue_facets(struct sac_segmenter *seg, struct sac_segmenter_slot *slot)
{
    sac_result res = SAC_OK;
    for (int i = 0, at = 0; i < slot->images && res == SAC_OK; i++) {
        if (slot->jobs[i].image < 0)
            continue;
        res = look(seg, &slot->seen[i], &slot->smaller[i], slot->facets + at, seg->jobs + at);
        at += seg->facets.count;
    }
    return res;
}
