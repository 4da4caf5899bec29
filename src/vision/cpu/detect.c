/* SPDX-License-Identifier: Apache-2.0 */
/* Output tensors to boxes, image by image: the plain reference for the other devices. */
#include <stdlib.h>

#include "vision/cpu/cpu.h"
#include "vision/detect.h"

struct candidate {
    struct sac_detection box;
    int                  cell;
};

struct work {
    const struct sac_detect_spec *spec;
    const void *const            *tensors;
    const struct sac_fit_map     *maps;
    struct candidate             *candidates; /* [n][cells] */
    struct sac_detection         *boxes;      /* [n][keep] */
    int32_t                      *origins;    /* [n][keep] */
    int32_t                      *count;
};

static int by_order(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    int                     order = sac_detect_order(&a->box, &b->box);
    return order ? order : a->cell - b->cell;
}

static int mode_of(const struct sac_detect_spec *s, const void *const *tensors, int image)
{
    double        all = sac_detect_nothing(s);
    const int64_t values = sac_detect_values(s);
    for (int64_t i = 0; i < values; i++)
        all = sac_detect_together(s, all, sac_detect_value(s, tensors, image, i));
    return sac_detect_mode(s, all);
}

static int suppress(const struct sac_detect_spec *s, const struct candidate *c, int n,
                    struct sac_detection *kept, int32_t *origins)
{
    int count = 0;
    for (int i = 0; i < n && count < s->keep; i++) {
        bool free = true;
        for (int k = 0; k < count && free; k++)
            free = !sac_detect_excludes(s, &kept[k], &c[i].box);
        if (!free)
            continue;
        origins[count] = c[i].cell;
        kept[count++] = c[i].box;
    }
    return count;
}

static void run_image(void *arg, int image, int worker)
{
    const struct work            *w = arg;
    const struct sac_detect_spec *s = w->spec;
    struct candidate             *c = w->candidates + (size_t)image * (size_t)s->cells;
    const int                     mode = mode_of(s, w->tensors, image);
    int                           n = 0;
    (void)worker;
    for (int cell = 0; cell < s->cells; cell++) {
        c[n].cell = cell;
        n += sac_detect_box(s, w->tensors, image, cell, mode, &w->maps[image], &c[n].box);
    }
    if (n)
        qsort(c, (size_t)n, sizeof *c, by_order);
    const size_t first = (size_t)image * (size_t)s->keep;
    w->count[image] = suppress(s, c, n, w->boxes + first, w->origins + first);
}

static void pack(const struct work *w, int n, void *out)
{
    int32_t     *count = out;
    char        *box = (char *)out + sac_detect_boxes_at(n);
    int32_t     *origins = (void *)((char *)out + sac_detect_origins_at(w->spec->keep, n));
    const size_t bytes = sac_detect_box_bytes(w->spec);
    for (int i = 0; i < n; i++) {
        const size_t first = (size_t)i * (size_t)w->spec->keep;
        count[i] = w->count[i];
        for (int k = 0; k < count[i]; k++, box += bytes)
            memcpy(box, &w->boxes[first + (size_t)k], bytes);
        if (!w->spec->origins)
            continue;
        memcpy(origins, w->origins + first, (size_t)count[i] * sizeof *origins);
        origins += count[i];
    }
}

sac_result sac_cpu_detect(struct sac_device *dev, struct sac_device_stream *stream,
                          const struct sac_detect_spec *s, const void *const *tensors,
                          const struct sac_fit_map *maps, int n, void *out)
{
    const size_t       boxes_at = (size_t)n * ((size_t)s->cells + 1) * sizeof(struct candidate);
    const size_t       kept = (size_t)n * (size_t)s->keep;
    const size_t       origins_at = boxes_at + kept * sizeof(struct sac_detection);
    const size_t       count_at = origins_at + kept * sizeof(int32_t);
    struct sac_buffer *buf = NULL;
    (void)stream; /* the CPU's runs at once */
    sac_result res = sac_buffer_create(dev, count_at + (size_t)n * sizeof(int32_t), "detect", &buf);
    if (res != SAC_OK)
        return res;
    char       *memory = sac_buffer_data(buf);
    struct work w = {.spec = s,
                     .tensors = tensors,
                     .maps = maps,
                     .candidates = (void *)memory,
                     .boxes = (void *)(memory + boxes_at),
                     .origins = (void *)(memory + origins_at),
                     .count = (void *)(memory + count_at)};
    sac_device_parallel(dev, n, run_image, &w);
    pack(&w, n, out);
    sac_buffer_unref(&buf);
    return SAC_OK;
}
