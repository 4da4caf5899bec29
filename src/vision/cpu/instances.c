/* SPDX-License-Identifier: Apache-2.0 */
/* Masks of boxes to one map, and the sums of each box: the plain reference for the other devices.
 * Rows of the map are the unit of work, of each row the part that a box holds; then boxes. */
#include "vision/cpu/cpu.h"
#include "vision/instances.h"
#include "vision/matte.h"

struct work {
    const struct sac_instances_spec *spec;
    const void *const               *tensors;
    const int32_t                   *count, *origins;
    const struct sac_detection      *boxes;
    float                           *out;
    const struct sac_instances_sums *sums;
    int                              images;
};

/* What is computed of a row. */
struct row {
    struct sac_instances_cell cell[SAC_MATTE_SIZE_MAX];
    float                     sum[SAC_MATTE_SIZE_MAX];
};

/* Add one prototype's share to the sums of n cells. */
static void add(const struct work *w, float *sum, int n, float coefficient, int64_t at)
{
    const struct sac_detect_field *f = &w->spec->prototype;
    if (f->dtype == SAC_F32 && f->cell == 1) {
        const float *prototype = (const float *)w->tensors[f->tensor] + at;
        for (int x = 0; x < n; x++)
            sum[x] = sac_instances_add(sum[x], coefficient, prototype[x]);
        return;
    }
    for (int x = 0; x < n; x++)
        sum[x] = sac_instances_add(sum[x], coefficient,
                                   sac_detect_read(f, w->tensors, at + x * f->cell));
}

/* Sums of n cells from x, y on, of what a box's cell says. */
static void add_all(const struct work *w, float *sum, int n, int image, int x, int y, size_t box)
{
    const struct sac_instances_spec *s = w->spec;
    const struct sac_detect_field   *c = &s->coefficient, *p = &s->prototype;
    const int64_t                    from = sac_detect_at(c, image, w->origins[box]),
                  at = sac_detect_at(p, image, (int64_t)y * s->width + x);
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (int k = 0; k < s->numbers; k++)
        add(w, sum, n, sac_detect_read(c, w->tensors, from + k * c->number), at + k * p->number);
}

/* The boxes of an image stand behind those of the images before it. */
static void add_box(const struct work *w, struct row *row, int image, int y, size_t box)
{
    const struct sac_instances_window in = sac_instances_window_of(w->spec, &w->boxes[box]);
    const int                         n = in.x1 - in.x0;
    if (y < in.y0 || y >= in.y1 || n <= 0)
        return;
    add_all(w, row->sum, n, image, in.x0, y, box);
    for (int x = 0; x < n; x++)
        sac_instances_take(&row->cell[in.x0 + x], row->sum[x], w->boxes[box].class_id);
}

static void run_row(void *arg, int piece, int worker)
{
    const struct work               *w = arg;
    const struct sac_instances_spec *s = w->spec;
    const int                        image = piece / s->height, y = piece % s->height;
    float                           *out = w->out + (size_t)piece * (size_t)s->width;
    size_t                           first = 0;
    struct row                       row;
    (void)worker;
    for (int i = 0; i < image; i++)
        first += (size_t)w->count[i];
    for (int x = 0; x < s->width; x++)
        row.cell[x] = sac_instances_nothing(s);
    for (int i = 0; i < w->count[image]; i++)
        add_box(w, &row, image, y, first + (size_t)i);
    for (int x = 0; x < s->width; x++)
        out[x] = sac_instances_number(s, &row.cell[x]);
}

/* A box of all: whose it is, and where its sums stand. */
static void run_box(void *arg, int piece, int worker)
{
    const struct work *w = arg;
    size_t             first = 0, before;
    int                image = 0;
    (void)worker;
    while (first + (size_t)w->count[image] <= (size_t)piece)
        first += (size_t)w->count[image++];
    const struct sac_detection *boxes = w->boxes + first;
    const int                   box = piece - (int)first;
    if (sac_instances_room_for(w->spec, w->sums, boxes, box + 1, &before) <= box)
        return;
    const struct sac_instances_window in = sac_instances_about(w->spec, w->sums, &boxes[box]);
    const int                         n = in.x1 - in.x0;
    float *sum = w->sums->out + (size_t)image * (size_t)w->sums->room + before -
                 (size_t)sac_instances_area(&in);
    for (int y = in.y0; y < in.y1 && n > 0; y++, sum += n) {
        add_all(w, sum, n, image, in.x0, y, (size_t)piece);
        for (int x = 0; x < n; x++)
            sum[x] = sac_instances_sum(sum[x]);
    }
}

static void run_boxes(struct sac_device *dev, struct work *w)
{
    int boxes = 0;
    for (int i = 0; i < w->images; i++)
        boxes += w->count[i];
    sac_device_parallel(dev, boxes, run_box, w);
}

sac_result sac_cpu_instances(struct sac_device *dev, struct sac_device_stream *stream,
                             const struct sac_instances_spec *s, const void *const *tensors,
                             const void *found, int n, float *out,
                             const struct sac_instances_sums *sums)
{
    const char *lists = found;
    struct work w = {.spec = s,
                     .tensors = tensors,
                     .count = found,
                     .origins = (const void *)(lists + sac_detect_origins_at(s->keep, n)),
                     .boxes = (const void *)(lists + sac_detect_boxes_at(n)),
                     .out = out,
                     .sums = sums,
                     .images = n};
    (void)stream; /* the CPU's runs at once */
    sac_device_parallel(dev, n * s->height, run_row, &w);
    if (sums)
        run_boxes(dev, &w);
    return SAC_OK;
}
