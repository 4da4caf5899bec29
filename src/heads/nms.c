/* SPDX-License-Identifier: Apache-2.0 */
#include "vision/detect.h"
#include "heads/heads.h"

bool sac_detections_push(struct sac_detections *list, const struct sac_detection *det)
{
    if (!sac_grow((void **)&list->items, &list->capacity, list->count + 1, sizeof *list->items))
        return false;
    list->items[list->count++] = *det;
    return true;
}

void sac_detections_finish(struct sac_detections *list)
{
    if (!list)
        return;
    sac_free(list->items);
    *list = (struct sac_detections){0};
}

/* As a device orders them, so that the order never depends on the library's sort. */
static int by_falling_score(const void *left, const void *right)
{
    return sac_detect_order(left, right);
}

void sac_detections_best(struct sac_detections *list, size_t keep)
{
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, by_falling_score);
    list->count = SAC_MIN(list->count, keep);
}

static bool is_taken(const struct sac_detections *kept, const struct sac_detection *det)
{
    for (size_t i = 0; i < kept->count; i++) {
        const struct sac_detection *k = &kept->items[i];
        if (k->x0 == det->x0 && k->y0 == det->y0 && k->x1 == det->x1 && k->y1 == det->y1)
            return true;
    }
    return false;
}

void sac_detections_distinct(struct sac_detections *list, size_t keep)
{
    size_t count = list->count;
    sac_detections_best(list, count);
    list->count = 0; /* the kept ones gather at the front of the same array */
    for (size_t i = 0; i < count && list->count < keep; i++)
        if (!is_taken(list, &list->items[i]))
            list->items[list->count++] = list->items[i];
}

static bool is_overlapped(const struct sac_detections *kept, const struct sac_detection *det,
                          float iou_max)
{
    for (size_t i = 0; i < kept->count; i++)
        if (kept->items[i].class_id == det->class_id &&
            sac_detect_iou(&kept->items[i], det) > iou_max)
            return true;
    return false;
}

void sac_nms(struct sac_detections *list, float iou_max, size_t keep)
{
    size_t count = list->count;
    sac_detections_best(list, count);
    list->count = 0; /* the kept ones gather at the front of the same array */
    for (size_t i = 0; i < count && list->count < keep; i++)
        if (!is_overlapped(list, &list->items[i], iou_max))
            list->items[list->count++] = list->items[i];
}
