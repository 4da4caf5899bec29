/* SPDX-License-Identifier: Apache-2.0 */
/* A segmenter of an instance network: the step between its outputs and the matte. Boxes are found
 * as a detector's are, in pixels of the network's input, and stay on the device; their masks become
 * the one map that the matte reads. */
#include <string.h>

#include "heads/segmenter.h"

/* As these networks are run by who trains them: the matte shows what is likely, and two people who
 * overlap stay two. */
static const float SCORE_MIN = 0.25f, NMS_IOU = 0.7f;

sac_result sac_segmenter_instances_open(struct sac_segmenter *seg, bool all)
{
    struct sac_detect_spec *boxes = &seg->instances.boxes;
    const uint32_t         *wanted = seg->spec.wanted;
    boxes->score_min = SCORE_MIN;
    boxes->nms_iou = NMS_IOU;
    boxes->nms = seg->head->needs_nms;
    boxes->origins = true;
    boxes->all_classes = all;
    for (int c = 1; c < SAC_DETECT_CLASSES_MAX; c++) /* the first is the background */
        if (wanted[c / 32] >> (c % 32) & 1)
            boxes->wanted[(c - 1) / 32] |= 1u << ((c - 1) % 32);
    seg->instances.maps = sac_calloc((size_t)seg->run_max, sizeof *seg->instances.maps);
    if (!seg->instances.maps)
        return SAC_FAIL(seg->dev->ctx, SAC_ERR_MEMORY, "no memory for a segmenter");
    for (int i = 0; i < seg->run_max; i++)
        seg->instances.maps[i] = (struct sac_fit_map){.scale_x = 1, .scale_y = 1};
    return SAC_OK;
}

void sac_segmenter_instances_close(struct sac_segmenter *seg)
{
    struct sac_segmenter_instances *in = &seg->instances;
    sac_buffer_unref(&in->found);
    sac_buffer_unref(&in->map);
    sac_free(in->maps);
    if (in->fetch)
        seg->dev->ops->stream_destroy(&in->fetch);
}

bool sac_segmenter_lay_out_instances(struct sac_segmenter *seg, const struct sac_head_view *view,
                                     struct sac_matte_spec *out)
{
    struct sac_segmenter_instances *in = &seg->instances;
    struct sac_detect_spec          boxes = in->boxes;
    struct sac_instances_spec       spec = {.labels = seg->style.classes};
    enum sac_dtype                  dtypes[SAC_HEAD_OUTPUTS_MAX];
    boxes.input_width = spec.input_width = view->width;
    boxes.input_height = spec.input_height = view->height;
    boxes.tensor_count = view->output_count;
    if (!sac_head_instances(seg->head, view, &boxes, &spec))
        return false;
    for (int i = 0; i < view->output_count; i++)
        dtypes[i] = view->output[i].desc.dtype;
    sac_detect_set_dtypes(&boxes, dtypes);
    boxes.keep = spec.keep = SAC_CLAMP(boxes.cells, 1, SAC_SEGMENTER_BOXES_MAX);
    in->boxes = boxes;
    in->spec = spec;
    /* The map takes the place of the prototypes. */
    out->form = spec.labels ? SAC_MATTE_LABEL : SAC_MATTE_SHARE;
    out->width = spec.width;
    out->height = spec.height;
    out->classes = spec.labels ? seg->contract.class_count : 1;
    out->value = (struct sac_detect_field){.tensor = spec.prototype.tensor,
                                           .dtype = SAC_F32,
                                           .image = (int64_t)spec.width * spec.height,
                                           .cell = 1};
    return true;
}

/* What reads the outputs of runs is queued on one stream: they share the memory. */
static sac_result reserve(struct sac_segmenter *seg)
{
    struct sac_segmenter_instances *in = &seg->instances;
    struct sac_detect_spec          most = in->boxes;
    const size_t                    cells = (size_t)in->spec.width * (size_t)in->spec.height;
    sac_result                      res = SAC_OK;
    if (in->found && in->map)
        return SAC_OK;
    most.keep = SAC_SEGMENTER_BOXES_MAX; /* the next run may have more rows */
    const enum sac_memory_use before = sac_memory_use_set(SAC_MEMORY_HEAD);
    if (!in->found)
        res = sac_buffer_create(seg->dev, sac_detect_out_bytes(&most, seg->run_max),
                                "boxes of masks", &in->found);
    if (res == SAC_OK)
        res = sac_buffer_create(seg->dev, (size_t)seg->run_max * cells * sizeof(float),
                                "map of masks", &in->map);
    sac_memory_use_set(before);
    /* Work queued on the device's own stream may still use this memory. */
    return res == SAC_OK ? seg->dev->ops->stream_after(seg->dev, seg->buckets.behind, NULL) : res;
}

sac_result sac_segmenter_queue_instances(struct sac_segmenter *seg, struct sac_segmenter_slot *slot,
                                         int first, const void **tensors, int n)
{
    struct sac_segmenter_instances *in = &seg->instances;
    struct sac_device_stream       *stream = seg->buckets.behind;
    const bool                      shown = slot->shown.used;
    sac_result                      res = reserve(seg);
    if (res == SAC_OK && shown)
        res = sac_segmenter_reserve_shown(seg, slot);
    if (res != SAC_OK)
        return res;
    const struct sac_instances_sums sums = sac_segmenter_shown_sums(slot, first);
    void *found = shown ? sac_segmenter_shown_lists(slot, first) : sac_buffer_data(in->found);
    res = sac_detect_run(seg->dev, stream, &in->boxes, tensors, in->maps, n, found);
    if (res == SAC_OK)
        res = sac_instances_run(seg->dev, stream, &in->spec, tensors, found, n,
                                sac_buffer_data(in->map), shown ? &sums : NULL);
    if (res == SAC_OK && shown)
        res = sac_segmenter_fetch_shown(seg, slot, first, n);
    if (res == SAC_OK)
        tensors[seg->spec.value.tensor] = sac_buffer_data(in->map);
    return res;
}

/* Each slot has memory of its own where instances are shown. */
static sac_result run_slots(struct sac_segmenter *seg, const void *const *tensors, int n)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < SAC_SEGMENTER_SLOTS && res == SAC_OK; i++) {
        const void *own[SAC_HEAD_OUTPUTS_MAX];
        memcpy(own, tensors, sizeof own);
        seg->slots[i].shown.used = seg->instances.shown;
        res = sac_segmenter_queue_instances(seg, &seg->slots[i], 0, own, n);
    }
    return res;
}

sac_result sac_segmenter_warm_up_instances(struct sac_segmenter *seg)
{
    struct sac_buckets *b = &seg->buckets;
    sac_result          res;
    do {
        const struct sac_bucket *largest = &b->list[b->sizes.count - 1];
        const void              *tensors[SAC_HEAD_OUTPUTS_MAX] = {NULL};
        for (int i = 0; i < seg->view.output_count; i++)
            tensors[i] = sac_tensor_data(largest->out[i]);
        res = run_slots(seg, tensors, SAC_MIN(largest->size, seg->run_max));
        const sac_result waited = seg->dev->ops->stream_wait(b->behind);
        res = res == SAC_OK ? waited : res;
    } while (sac_buckets_shrink(b, res));
    return res;
}
