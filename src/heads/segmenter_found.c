/* SPDX-License-Identifier: Apache-2.0 */
/* The instances of frames one by one, for whoever writes them: the lists of boxes arrive with the
 * batch; when it ends, it is known how much the masks are, and just that is copied. */
#include "heads/segmenter.h"

enum {
    ROOM_MAPS = 32,     /* sums of an image: so many whole maps, */
    ROOM_MAX = 4 << 20, /* but no more, where that is room for a map */
};

/* ---- what a frame has ---- */

void sac_segmenter_found_clear(struct sac_segmenter_found *found)
{
    for (int i = 0; i < SAC_SEGMENTER_EYES_MAX; i++) {
        found->eye[i].count = 0;
        sac_buffer_unref(&found->eye[i].sums);
    }
}

void sac_segmenter_found_finish(struct sac_segmenter_found *found)
{
    sac_segmenter_found_clear(found);
    for (int i = 0; i < SAC_SEGMENTER_EYES_MAX; i++) {
        sac_free(found->eye[i].items);
        found->eye[i] = (struct sac_segmenter_found_eye){0};
    }
}

/* ---- memory ---- */

sac_result sac_segmenter_show_instances(struct sac_segmenter *seg)
{
    seg->instances.shown = true;
    return seg->instances.fetch ? SAC_OK
                                : seg->dev->ops->stream_create(seg->dev, &seg->instances.fetch);
}

/* Lists of a run begin at those of its first image, at multiples of 256 bytes. */
static size_t list_bytes(void)
{
    const struct sac_detect_spec one = {.keep = SAC_SEGMENTER_BOXES_MAX, .origins = true};
    return (sac_detect_out_bytes(&one, 1) + 255) & ~(size_t)255;
}

static int room_of(const struct sac_instances_spec *s)
{
    const int cells = s->width * s->height;
    return cells > ROOM_MAX / ROOM_MAPS ? SAC_MAX(cells, ROOM_MAX) : ROOM_MAPS * cells;
}

static sac_result create(struct sac_segmenter *seg, struct sac_segmenter_shown *shown)
{
    const size_t images = (size_t)seg->batch * (size_t)seg->eyes;
    const size_t lists = images * list_bytes(),
                 sums = images * (size_t)shown->spec.room * sizeof(float);
    sac_result res = SAC_OK;
    if (!shown->found)
        res = sac_buffer_create(seg->dev, lists, "boxes of instances", &shown->found);
    if (res == SAC_OK && !shown->sums)
        res = sac_buffer_create(seg->dev, sums, "masks of instances", &shown->sums);
    if (res == SAC_OK)
        res = sac_mirror_open(seg->dev, sac_buffer_data(shown->found), lists, "boxes of instances",
                              &shown->host);
    return res;
}

static void set_margins(const struct sac_segmenter *seg, struct sac_segmenter_slot *slot)
{
    struct sac_instances_sums *s = &slot->shown.spec;
    s->margin_x = s->margin_y = 1;
    for (int i = 0; i < slot->images; i++) {
        struct sac_matte_axis x, y;
        sac_matte_axes_of(&seg->spec, &slot->jobs[i], &x, &y);
        s->margin_x = SAC_MAX(s->margin_x, sac_instances_margin(x.step));
        s->margin_y = SAC_MAX(s->margin_y, sac_instances_margin(y.step));
    }
}

sac_result sac_segmenter_reserve_shown(struct sac_segmenter *seg, struct sac_segmenter_slot *slot)
{
    struct sac_segmenter_shown *shown = &slot->shown;
    set_margins(seg, slot);
    if (shown->host.data)
        return SAC_OK;
    shown->spec.room = room_of(&seg->instances.spec);
    const enum sac_memory_use before = sac_memory_use_set(SAC_MEMORY_HEAD);
    sac_result                res = create(seg, shown);
    sac_memory_use_set(before);
    /* Work queued on the device's own stream may still use this memory. */
    return res == SAC_OK ? seg->dev->ops->stream_after(seg->dev, seg->buckets.behind, NULL) : res;
}

void sac_segmenter_shown_close(struct sac_segmenter_shown *shown)
{
    sac_mirror_close(&shown->host);
    sac_buffer_unref(&shown->found);
    sac_buffer_unref(&shown->sums);
}

/* ---- begin ---- */

void *sac_segmenter_shown_lists(const struct sac_segmenter_slot *slot, int first)
{
    return (char *)sac_buffer_data(slot->shown.found) + (size_t)first * list_bytes();
}

struct sac_instances_sums sac_segmenter_shown_sums(const struct sac_segmenter_slot *slot, int first)
{
    struct sac_instances_sums sums = slot->shown.spec;
    if (slot->shown.sums)
        sums.out = (float *)sac_buffer_data(slot->shown.sums) + (size_t)first * (size_t)sums.room;
    return sums;
}

sac_result sac_segmenter_fetch_shown(struct sac_segmenter *seg, struct sac_segmenter_slot *slot,
                                     int first, int n)
{
    char       *host = (char *)slot->shown.host.data + (size_t)first * list_bytes();
    const void *lists = sac_segmenter_shown_lists(slot, first);
    if (host == lists)
        return SAC_OK;
    return sac_device_copy(seg->dev, seg->buckets.behind, host, lists,
                           sac_detect_origins_at(seg->instances.spec.keep, n),
                           SAC_COPY_DEVICE_TO_HOST, SAC_COPY_BOXES, "boxes of instances");
}

/* ---- end ---- */

static void warn_of_crowd(struct sac_segmenter *seg, int boxes, int room)
{
    if (!seg->instances.crowded)
        sac_log(seg->dev->ctx, SAC_LOG_WARN,
                "%s: room for the masks of %d of %d boxes of a picture; the best ones are kept",
                sac_model_path(seg->model), room, boxes);
    seg->instances.crowded = true;
}

static void describe_view(const struct sac_segmenter *seg, const struct sac_segmenter_slot *slot,
                          int image, struct sac_segmenter_found_eye *eye)
{
    const struct sac_matte_job *job = &slot->jobs[image];
    const int                   number = image % seg->eyes;
    sac_matte_axes_of(&seg->spec, job, &eye->view.x, &eye->view.y);
    eye->view.map = job->map;
    eye->left = seg->stereo == SAC_STEREO_SBS ? number * job->frame->width : 0;
    eye->top = seg->stereo == SAC_STEREO_TB ? number * job->frame->height : 0;
}

/* From the network's input to pixels of the eye. */
static struct sac_detection box_in_eye(const struct sac_fit_map *map, const struct sac_detection *b)
{
    struct sac_detection out = *b;
    out.x0 = (b->x0 - map->offset_x) / map->scale_x;
    out.y0 = (b->y0 - map->offset_y) / map->scale_y;
    out.x1 = (b->x1 - map->offset_x) / map->scale_x;
    out.y1 = (b->y1 - map->offset_y) / map->scale_y;
    return out;
}

static sac_result fetch_sums(struct sac_segmenter *seg, const struct sac_segmenter_slot *slot,
                             int image, size_t numbers, struct sac_segmenter_found_eye *eye)
{
    const size_t bytes = numbers * sizeof(float);
    if (!numbers)
        return SAC_OK;
    const struct sac_instances_sums sums = sac_segmenter_shown_sums(slot, image);
    const enum sac_memory_use       before = sac_memory_use_set(SAC_MEMORY_HEAD);
    sac_result res = sac_host_buffer_create(seg->dev, bytes, "masks of instances", &eye->sums);
    sac_memory_use_set(before);
    return res == SAC_OK
               ? sac_device_copy(seg->dev, seg->instances.fetch, sac_buffer_data(eye->sums),
                                 sums.out, bytes, SAC_COPY_DEVICE_TO_HOST, SAC_COPY_MASK,
                                 "masks of instances")
               : res;
}

/* boxes: of the image, in pixels of the network's input. */
static sac_result take_image(struct sac_segmenter *seg, const struct sac_segmenter_slot *slot,
                             int image, const struct sac_detection *boxes, int count,
                             struct sac_segmenter_found_eye *eye)
{
    const struct sac_instances_spec *s = &seg->instances.spec;
    size_t                           numbers = 0;
    const int n = sac_instances_room_for(s, &slot->shown.spec, boxes, count, &numbers);
    if (n < count)
        warn_of_crowd(seg, count, n);
    describe_view(seg, slot, image, eye);
    if (!sac_grow((void **)&eye->items, &eye->capacity, (size_t)n, sizeof *eye->items))
        return SAC_FAIL(seg->dev->ctx, SAC_ERR_MEMORY, "no memory for the instances of a frame");
    sac_result res = fetch_sums(seg, slot, image, numbers, eye);
    if (res != SAC_OK)
        return res;
    const float *sums = eye->sums ? sac_buffer_data(eye->sums) : NULL;
    size_t       at = 0;
    for (int i = 0; i < n; i++) {
        struct sac_instance *one = &eye->items[i];
        one->box = box_in_eye(&eye->view.map, &boxes[i]);
        one->window = sac_instances_about(s, &slot->shown.spec, &boxes[i]);
        one->sums = sums ? sums + at : NULL;
        at += (size_t)sac_instances_area(&one->window);
    }
    eye->count = (size_t)n;
    return SAC_OK;
}

static sac_result take_part(struct sac_segmenter *seg, const struct sac_segmenter_slot *slot,
                            const struct sac_batch_part *part, struct sac_segmenter_found *found)
{
    const char    *lists = (const char *)slot->shown.host.data + (size_t)part->first * list_bytes();
    const int32_t *count = (const void *)lists;
    const struct sac_detection *boxes = (const void *)(lists + sac_detect_boxes_at(part->n));
    sac_result                  res = SAC_OK;
    for (int i = 0; i < part->n && res == SAC_OK; i++) {
        const int image = part->first + i;
        res = take_image(seg, slot, image, boxes, count[i],
                         &found[image / seg->eyes].eye[image % seg->eyes]);
        boxes += count[i];
    }
    return res;
}

sac_result sac_segmenter_take_shown(struct sac_segmenter *seg, struct sac_segmenter_slot *slot,
                                    struct sac_segmenter_found *found)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < slot->n; i++)
        sac_segmenter_found_clear(&found[i]);
    for (int i = 0; i < slot->batch.part_count && res == SAC_OK; i++)
        res = take_part(seg, slot, &slot->batch.parts[i], found);
    const sac_result waited = seg->dev->ops->stream_wait(seg->instances.fetch);
    res = res == SAC_OK ? waited : res;
    for (int i = 0; i < slot->n && res != SAC_OK; i++)
        sac_segmenter_found_clear(&found[i]);
    return res;
}
