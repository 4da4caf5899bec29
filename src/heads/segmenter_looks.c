/* SPDX-License-Identifier: Apache-2.0 */
/* A segmenter that sees an eye in several images: facets of a wide one (vision/facets.h), or a flat
 * one at several scales (vision/scales.h). Behind the network their maps become one of the eye, of
 * which the matte is made as of any other. */
#include "heads/segmenter.h"
#include "vision/vision.h"

/* ---- opening ---- */

static sac_result open_scales(struct sac_segmenter *seg)
{
    const struct sac_vision_ops *ops = seg->dev->ops->vision;
    if (!ops->scale_maps || !ops->facet_shares)
        return SAC_FAIL(seg->dev->ctx, SAC_ERR_UNSUPPORTED,
                        "%s cannot average over scales; use --device cpu, or leave scales out",
                        sac_device_name(seg->dev));
    seg->scales.pictures =
        sac_calloc((size_t)(seg->batch * seg->eyes), sizeof *seg->scales.pictures);
    return seg->scales.pictures
               ? SAC_OK
               : SAC_FAIL(seg->dev->ctx, SAC_ERR_MEMORY, "no memory for a segmenter's scales");
}

sac_result sac_segmenter_looks_open(struct sac_segmenter *seg)
{
    sac_result res = SAC_OK;
    seg->net = seg->spec;
    if (seg->facets.count)
        res = sac_segmenter_facets_open(seg);
    return res == SAC_OK && seg->scales.count ? open_scales(seg) : res;
}

void sac_segmenter_looks_close(struct sac_segmenter *seg)
{
    sac_segmenter_facets_close(seg);
    sac_free(seg->scales.pictures);
}

/* ---- before the network ---- */

static void queue_scales(struct sac_segmenter *seg, const struct sac_segmenter_slot *slot)
{
    struct sac_rect crops[SAC_SEGMENTER_LOOKS_MAX];
    for (int i = 0, at = 0; i < slot->images; i++) {
        const struct sac_matte_job *job = &slot->jobs[i];
        if (job->image < 0)
            continue;
        sac_scales_look(seg->scales.scale, seg->scales.count, &job->crop, crops);
        for (int k = 0; k < seg->looks; k++)
            seg->jobs[at++] =
                (struct sac_preprocess_job){.frame = &slot->seen[i], .crop = crops[k]};
    }
}

sac_result sac_segmenter_queue_looks(struct sac_segmenter *seg, struct sac_segmenter_slot *slot)
{
    if (seg->facets.count)
        return sac_segmenter_queue_facets(seg, slot);
    if (seg->scales.count)
        queue_scales(seg, slot);
    return SAC_OK;
}

/* ---- the network's map and the eye's ---- */

sac_result sac_segmenter_lay_out_looks(struct sac_segmenter *seg, struct sac_matte_spec *spec)
{
    const struct sac_segmenter_facets *f = &seg->facets;
    seg->net = *spec;
    if (f->count) {
        sac_facets_map_size(f->projection, f->set, &seg->net, &spec->width, &spec->height);
        spec->input_width = spec->width;
        spec->input_height = spec->height;
    } else {
        sac_scales_map_size(seg->scales.scale, seg->scales.count, &seg->net, &spec->width,
                            &spec->height);
    }
    spec->form = SAC_MATTE_SHARE;
    spec->classes = 1;
    spec->value = (struct sac_detect_field){.tensor = seg->net.value.tensor,
                                            .dtype = SAC_F32,
                                            .image = (int64_t)spec->width * spec->height,
                                            .cell = 1};
    return f->count ? sac_segmenter_lay_out_facets(seg) : SAC_OK;
}

static sac_result reserve(struct sac_segmenter *seg, struct sac_segmenter_slot *slot)
{
    const size_t eyes = (size_t)(seg->batch * seg->eyes);
    sac_result   res = SAC_OK;
    if (slot->shares && slot->maps)
        return SAC_OK;
    const size_t net = (size_t)seg->net.width * (size_t)seg->net.height,
                 own = (size_t)seg->spec.width * (size_t)seg->spec.height;
    const enum sac_memory_use before = sac_memory_use_set(SAC_MEMORY_HEAD);
    if (!slot->shares)
        res = sac_buffer_create(seg->dev, eyes * (size_t)seg->looks * net * sizeof(int16_t),
                                "looks' maps", &slot->shares);
    if (res == SAC_OK)
        res = sac_buffer_create(seg->dev, eyes * own * sizeof(float), "eyes' maps", &slot->maps);
    sac_memory_use_set(before);
    /* Work queued on the device's own stream may still use this memory. */
    return res == SAC_OK ? seg->dev->ops->stream_after(seg->dev, seg->buckets.behind, NULL) : res;
}

/* ---- behind it ---- */

static sac_result put_together_facets(struct sac_segmenter *seg, const int16_t *shares, int n,
                                      float *maps)
{
    const struct sac_facet_maps spec = {.facets = seg->facets.count,
                                        .net_width = seg->net.width,
                                        .net_height = seg->net.height,
                                        .width = seg->spec.width,
                                        .height = seg->spec.height,
                                        .cells = sac_buffer_data(seg->facets.cells)};
    return sac_facet_maps_run_on(seg->dev, seg->buckets.behind, &spec, shares, n, maps);
}

/* Eyes first.. of those that the network sees. */
static sac_result put_together_scales(struct sac_segmenter            *seg,
                                      const struct sac_segmenter_slot *slot, const int16_t *shares,
                                      int first, int n, float *maps)
{
    struct sac_segmenter_scales *s = &seg->scales;
    for (int i = 0, seen = 0; i < slot->images && seen < first + n; i++)
        if (slot->jobs[i].image >= 0 && seen++ >= first)
            s->pictures[seen - 1 - first] =
                sac_scales_of(s->scale, s->count, &seg->contract.pre, &seg->net,
                              &slot->jobs[i].crop, seg->spec.width, seg->spec.height);
    const struct sac_scale_maps spec = {.pictures = s->pictures,
                                        .looks = seg->looks,
                                        .net_width = seg->net.width,
                                        .net_height = seg->net.height,
                                        .width = seg->spec.width,
                                        .height = seg->spec.height};
    return sac_scale_maps_run_on(seg->dev, seg->buckets.behind, &spec, shares, n, maps);
}

sac_result sac_segmenter_queue_maps(struct sac_segmenter *seg, struct sac_segmenter_slot *slot,
                                    const struct sac_batch_part *part, const void **tensors)
{
    const size_t net = (size_t)seg->net.width * (size_t)seg->net.height,
                 own = (size_t)seg->spec.width * (size_t)seg->spec.height;
    const int  first = part->first / seg->looks, n = (part->first + part->n) / seg->looks - first;
    sac_result res = reserve(seg, slot);
    if (res != SAC_OK)
        return res;
    int16_t *shares = sac_buffer_data(slot->shares),
            *of = shares + (size_t)(first * seg->looks) * net;
    float *maps = (float *)sac_buffer_data(slot->maps) + (size_t)first * own;
    res = sac_facet_shares_run_on(seg->dev, seg->buckets.behind, &seg->net, tensors, part->n,
                                  shares + (size_t)part->first * net);
    if (res == SAC_OK)
        res = seg->facets.count ? put_together_facets(seg, of, n, maps)
                                : put_together_scales(seg, slot, of, first, n, maps);
    tensors[seg->spec.value.tensor] = maps;
    return res;
}
