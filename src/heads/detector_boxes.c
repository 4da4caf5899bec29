/* SPDX-License-Identifier: Apache-2.0 */
/* From a network's outputs to boxes: the device decodes them by the head's layout. On the host
 * decode plug-ins, which have none, and the CPU for a device that has no room for so many cells. */
#include "heads/detector.h"
#include "vision/fit.h"

enum {
    BOXES_EXPECTED = 24, /* in a frame, at first */
    BOXES_LEAST = 4,
    ROWS_MAX = 1 << 17 /* boxes of an image where only its data tells how many there are */
};

/* ---- what the outputs look like ---- */

sac_result sac_detector_refuse_shapes(const struct sac_detector    *det,
                                      const struct sac_head_tensor *t, int count)
{
    char shapes[512];
    sac_head_shapes_text(t, count, shapes, sizeof shapes);
    return SAC_FAIL(det->dev->ctx, SAC_ERR_FORMAT,
                    "%s: head '%s' wants %s; the outputs of one picture are %s",
                    sac_model_path(det->model), det->head->name, det->head->wants, shapes);
}

sac_result sac_detector_boxes_open(struct sac_detector *det)
{
    struct sac_detect_spec *s = &det->spec;
    s->all_classes = !det->wanted;
    for (size_t i = 0; i < det->wanted_count && det->head->layout; i++) {
        const int class_id = det->wanted[i];
        if (class_id >= SAC_DETECT_CLASSES_MAX)
            return SAC_FAIL(det->dev->ctx, SAC_ERR_UNSUPPORTED,
                            "%s: class %d cannot be chosen, only those below %d; 'all' keeps it",
                            sac_model_path(det->model), class_id, (int)SAC_DETECT_CLASSES_MAX);
        s->wanted[class_id / 32] |= 1u << (class_id % 32);
    }
    s->input_width = det->contract.pre.width;
    s->input_height = det->contract.pre.height;
    s->score_min = det->score_min;
    s->nms_iou = det->nms_iou;
    s->nms = det->head->needs_nms;
    det->on_host = det->head->plugin != NULL;
    det->boxes_expected = 100 * BOXES_EXPECTED;
    return det->dev->ops->stream_create(det->dev, &det->fetch);
}

static sac_result read_layout(struct sac_detector *det, const struct sac_bucket *bucket,
                              struct sac_detect_spec *s)
{
    enum sac_dtype dtypes[SAC_HEAD_OUTPUTS_MAX];
    sac_result     res =
        sac_head_outputs_shape(&det->outputs, det->dev, det->model, bucket->out, bucket->size);
    if (res != SAC_OK)
        return res;
    const struct sac_head_input in = {det->outputs.tensor, det->outputs.count, s->input_width,
                                      s->input_height, s->score_min};
    for (int i = 0; i < in.count; i++)
        dtypes[i] = sac_tensor_describe(bucket->out[i])->dtype;
    s->tensor_count = in.count;
    if (!det->head->layout(&in, &det->view.facts, s))
        return sac_detector_refuse_shapes(det, in.tensors, in.count);
    sac_detect_set_dtypes(s, dtypes);
    s->keep = SAC_CLAMP((int)det->detection_max, 1, SAC_MAX(s->cells, 1));
    return SAC_OK;
}

/* Outputs of another shape in each run are read anew; of the others the first run tells all. */
sac_result sac_detector_lay_out(struct sac_detector *det, const struct sac_bucket *bucket,
                                struct sac_detect_spec *out)
{
    struct sac_detect_spec spec = det->spec;
    sac_result             res = SAC_OK;
    if (!det->laid_out || bucket->varies) {
        if (!det->head->plugin)
            res = read_layout(det, bucket, &spec);
        if (res != SAC_OK)
            return res;
        if (!det->laid_out)
            det->boxes_max =
                bucket->varies ? (int)SAC_MIN(det->detection_max, (size_t)ROWS_MAX) : spec.keep;
        det->on_host = det->head->plugin || !sac_detect_has_room(det->dev, &spec);
        det->laid_out = true;
        spec.keep = SAC_MIN(spec.keep, det->boxes_max);
        det->spec = spec;
    }
    *out = spec;
    return SAC_OK;
}

/* ---- on the device ---- */

/* Room for the boxes of a whole batch, however it is cut; lists begin at multiples of 256 bytes. */
static size_t list_bytes(const struct sac_detector *det)
{
    const size_t bytes =
        sac_detect_boxes_at(1) + (size_t)det->boxes_max * sizeof(struct sac_detection);
    return (bytes + 255) & ~(size_t)255;
}

sac_result sac_detector_reserve_boxes(struct sac_detector *det, struct sac_detector_slot *slot)
{
    const size_t bytes = (size_t)det->batch * list_bytes(det);
    sac_result   res = SAC_OK;
    if (slot->host.data || det->on_host)
        return SAC_OK;
    const enum sac_memory_use before = sac_memory_use_set(SAC_MEMORY_HEAD);
    if (!slot->boxes)
        res = sac_buffer_create(det->dev, bytes, "boxes", &slot->boxes);
    if (res == SAC_OK)
        res = sac_mirror_open(det->dev, sac_buffer_data(slot->boxes), bytes, "boxes", &slot->host);
    sac_memory_use_set(before);
    /* Work queued on the device's own stream may still use this memory. */
    return res == SAC_OK ? det->dev->ops->stream_after(det->dev, det->buckets.behind, NULL) : res;
}

static sac_result run_head(struct sac_detector *det, const struct sac_detect_spec *spec,
                           const struct sac_bucket *bucket, const struct sac_fit_map *maps, int n,
                           void *boxes)
{
    const void *tensors[SAC_DETECT_TENSORS_MAX] = {NULL};
    for (int i = 0; i < spec->tensor_count; i++)
        tensors[i] = sac_tensor_data(bucket->out[i]);
    return sac_detect_run(det->dev, det->buckets.behind, spec, tensors, maps, n, boxes);
}

/* The bucket's next run creates new outputs: the batch keeps these until it ends. */
static void keep_outputs(struct sac_detector_part *part)
{
    memcpy(part->out, part->run->bucket->out, sizeof part->out);
    memset(part->run->bucket->out, 0, sizeof part->run->bucket->out);
}

sac_result sac_detector_queue_boxes(struct sac_detector *det, struct sac_detector_slot *slot,
                                    struct sac_detector_part *part)
{
    if (det->on_host) {
        keep_outputs(part);
        return sac_batch_mark_end(&det->buckets, part->run);
    }
    if (part->spec.cells == 0) /* a network that counted its rows found none */
        return sac_batch_mark_end(&det->buckets, part->run);
    part->boxes_at = (size_t)part->run->first * list_bytes(det);
    char      *boxes = (char *)sac_buffer_data(slot->boxes) + part->boxes_at;
    sac_result res = run_head(det, &part->spec, part->run->bucket, slot->maps + part->run->first,
                              part->run->n, boxes);
    if (res == SAC_OK)
        res = sac_batch_mark_end(&det->buckets, part->run);
    part->expected = ((size_t)part->run->n * det->boxes_expected + 99) / 100;
    if (res == SAC_OK)
        res =
            sac_detect_fetch_begin(det->dev, det->buckets.behind, &part->spec, boxes, part->run->n,
                                   part->expected, (char *)slot->host.data + part->boxes_at);
    return res;
}

static sac_result fetch_boxes(struct sac_detector *det, struct sac_detector_slot *slot,
                              struct sac_detector_part *part, struct sac_detections *found)
{
    for (int i = 0; i < part->run->n && part->spec.cells == 0; i++)
        found[i].count = 0;
    if (part->spec.cells == 0)
        return SAC_OK;
    char      *boxes = (char *)sac_buffer_data(slot->boxes) + part->boxes_at;
    char      *host = (char *)slot->host.data + part->boxes_at;
    sac_result res = sac_detect_fetch_end(det->dev, det->fetch, &part->spec, boxes, part->run->n,
                                          &part->expected, host, found);
    det->boxes_expected = SAC_MAX(part->expected * 100 / (size_t)part->run->n, 100 * BOXES_LEAST);
    return res;
}

/* ---- on the host ---- */

static void say_copies(struct sac_detector *det)
{
    if (det->outputs.copied && !det->said)
        sac_log(det->dev->ctx, SAC_LOG_WARN,
                "%s: head '%s' is decoded on the host, %s: the network's outputs are copied to it",
                sac_model_path(det->model), det->head->name,
                det->head->plugin ? "a plug-in" : "as it has more cells than the device takes");
    det->said = true;
}

static sac_result ask_plugin(struct sac_detector *det, int image, const struct sac_fit_map *map,
                             struct sac_detections *list)
{
    struct sac_head_tensor tensors[SAC_HEAD_OUTPUTS_MAX];
    struct sac_gather      gather = {.wanted = det->wanted,
                                     .wanted_count = det->wanted_count,
                                     .score_min = det->score_min,
                                     .map = *map,
                                     .list = list};
    struct sac_head_input  in = {tensors, det->outputs.count, det->spec.input_width,
                                 det->spec.input_height, det->score_min};
    sac_head_outputs_image(&det->outputs, image, tensors);
    list->count = 0;
    sac_result res = sac_head_plugin_decode(det->head, &in, sac_gather_box, &gather);
    if (res == SAC_ERR_FORMAT)
        return sac_detector_refuse_shapes(det, det->outputs.tensor, det->outputs.count);
    if (res != SAC_OK)
        return SAC_FAIL(det->dev->ctx, res, "head '%s' failed", det->head->name);
    if (gather.out_of_memory)
        return SAC_FAIL(det->dev->ctx, SAC_ERR_MEMORY, "no memory for the boxes of a frame");
    if (det->head->needs_nms)
        sac_nms(list, det->nms_iou, det->detection_max);
    else
        sac_detections_distinct(list, det->detection_max);
    return SAC_OK;
}

/* By the CPU, from the outputs as float32. */
static sac_result detect_on_host(struct sac_detector *det, const struct sac_detector_part *part,
                                 const struct sac_fit_map *maps, struct sac_detections *found)
{
    struct sac_detect_spec spec = part->spec;
    enum sac_dtype         dtypes[SAC_HEAD_OUTPUTS_MAX];
    const void            *tensors[SAC_HEAD_OUTPUTS_MAX];
    struct sac_buffer     *boxes = NULL;
    for (int i = 0; i < spec.tensor_count; i++) {
        dtypes[i] = SAC_F32;
        tensors[i] = det->outputs.tensor[i].data;
    }
    sac_detect_set_dtypes(&spec, dtypes);
    sac_result res = det->host ? SAC_OK : sac_device_open(det->dev->ctx, "cpu", NULL, &det->host);
    if (res == SAC_OK)
        res = sac_buffer_create(det->host, sac_detect_out_bytes(&spec, part->run->n), "boxes",
                                &boxes);
    if (res == SAC_OK)
        res = sac_detect_run(det->host, NULL, &spec, tensors, maps, part->run->n,
                             sac_buffer_data(boxes));
    if (res == SAC_OK)
        res = sac_detect_fetch(det->host, NULL, &spec, sac_buffer_data(boxes), part->run->n, found);
    sac_buffer_unref(&boxes);
    return res;
}

static sac_result decode_on_host(struct sac_detector *det, const struct sac_detector_part *part,
                                 const struct sac_fit_map *maps, struct sac_detections *found)
{
    sac_result res = sac_head_outputs_load(&det->outputs, det->dev, det->model, part->out,
                                           part->run->bucket->size);
    if (res != SAC_OK)
        return res;
    say_copies(det);
    if (!det->head->plugin)
        return detect_on_host(det, part, maps, found);
    for (int i = 0; i < part->run->n && res == SAC_OK; i++)
        res = ask_plugin(det, i, &maps[i], &found[i]);
    return res;
}

/* ---- either ---- */

sac_result sac_detector_take_boxes(struct sac_detector *det, struct sac_detector_slot *slot,
                                   struct sac_detector_part *part, struct sac_detections *found)
{
    return part->out[0] ? decode_on_host(det, part, slot->maps + part->run->first, found)
                        : fetch_boxes(det, slot, part, found);
}

/* One image it must take, or the first frame would find no memory when all streams are open. */
sac_result sac_detector_warm_up_boxes(struct sac_detector *det)
{
    struct sac_detector_slot    *slot = &det->slots[0];
    struct sac_buckets          *b = &det->buckets;
    const struct sac_preprocess *pre = &det->contract.pre;
    const struct sac_rect        whole = {0, 0, (float)pre->width, (float)pre->height};
    sac_result                   res;
    if (det->on_host || det->spec.cells == 0)
        return SAC_OK;
    do {
        const struct sac_bucket *largest = &b->list[b->sizes.count - 1];
        for (int i = 0; i < largest->size; i++)
            slot->maps[i] = sac_fit_map_of(pre, &whole);
        res = run_head(det, &det->spec, largest, slot->maps, largest->size,
                       sac_buffer_data(slot->boxes));
        sac_result waited = det->dev->ops->stream_wait(b->behind);
        res = res == SAC_OK ? waited : res;
    } while (sac_buckets_shrink(b, res));
    return res;
}
