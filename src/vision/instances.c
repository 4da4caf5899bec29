/* SPDX-License-Identifier: Apache-2.0 */
#include "vision/instances.h"
#include "vision/matte.h"

static sac_result check_field(sac_device *dev, const struct sac_detect_field *f)
{
    if (f->tensor < 0 || f->tensor >= SAC_DETECT_TENSORS_MAX)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "instances: tensor %d; have 0 to %d", f->tensor,
                        SAC_DETECT_TENSORS_MAX - 1);
    if (f->dtype != SAC_F32 && f->dtype != SAC_F16)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED,
                        "instances: outputs of %s; have float32, float16",
                        sac_dtype_name(f->dtype));
    return SAC_OK;
}

static sac_result check(sac_device *dev, const struct sac_instances_spec *s)
{
    if (s->width < 1 || s->height < 1 || s->width > SAC_MATTE_SIZE_MAX ||
        s->height > SAC_MATTE_SIZE_MAX)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED,
                        "instances: a map of %dx%d; have 1x1 to %dx%d", s->width, s->height,
                        SAC_MATTE_SIZE_MAX, SAC_MATTE_SIZE_MAX);
    if (s->numbers < 1 || s->numbers > SAC_INSTANCES_NUMBERS_MAX)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED, "instances: %d prototypes; have 1 to %d",
                        s->numbers, SAC_INSTANCES_NUMBERS_MAX);
    if (s->input_width < 1 || s->input_height < 1 || s->keep < 1)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "instances: %d boxes of an input of %dx%d", s->keep,
                        s->input_width, s->input_height);
    sac_result res = check_field(dev, &s->coefficient);
    return res == SAC_OK ? check_field(dev, &s->prototype) : res;
}

sac_result sac_instances_run(sac_device *dev, struct sac_device_stream *stream,
                             const struct sac_instances_spec *s, const void *const *tensors,
                             const void *found, int n, float *out,
                             const struct sac_instances_sums *sums)
{
    if (!dev->ops->vision->instances)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED,
                        "instances: device %s makes no masks of them; cpu does", dev->name);
    sac_result res = check(dev, s);
    if (res == SAC_OK && sums && (sums->room < 1 || sums->margin_x < 1 || sums->margin_y < 1))
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "instances: room for %d sums, margins of %d and %d",
                        sums->room, sums->margin_x, sums->margin_y);
    return res == SAC_OK && n > 0
               ? dev->ops->vision->instances(dev, stream, s, tensors, found, n, out, sums)
               : res;
}

/* ---- on the host ---- */

int sac_instances_room_for(const struct sac_instances_spec *s,
                           const struct sac_instances_sums *sums, const struct sac_detection *boxes,
                           int count, size_t *numbers)
{
    int64_t end = 0;
    int     i = 0;
    for (; i < count; i++) {
        const struct sac_instances_window w = sac_instances_about(s, sums, &boxes[i]);
        if (end + sac_instances_area(&w) > sums->room)
            break;
        end += sac_instances_area(&w);
    }
    *numbers = (size_t)end;
    return i;
}

void sac_instance_mask_finish(struct sac_instance_mask *mask)
{
    sac_free(mask->pixels);
    sac_free(mask->line);
    sac_free(mask->taps);
    *mask = (struct sac_instance_mask){0};
}

static bool has_room(struct sac_instance_mask *mask, int cells)
{
    const size_t width = (size_t)(mask->x1 - mask->x0), height = (size_t)(mask->y1 - mask->y0);
    return sac_grow((void **)&mask->pixels, &mask->pixels_room, width * height, 1) &&
           sac_grow((void **)&mask->line, &mask->line_room, (size_t)cells, sizeof *mask->line) &&
           sac_grow((void **)&mask->taps, &mask->taps_room, width, sizeof *mask->taps);
}

/* The two cells that a pixel lies between, counted from the window's first. */
static struct sac_tap tap_of(const struct sac_matte_axis *a, int pixel, int first, int end)
{
    struct sac_tap t = sac_matte_tap(a, pixel);
    t.a = SAC_CLAMP(t.a + a->first, first, end - 1) - first;
    t.b = SAC_CLAMP(t.b + a->first, first, end - 1) - first;
    return t;
}

static float blend(float a, float b, int32_t second)
{
    return a * (float)(SAC_MATTE_ONE - second) + b * (float)second;
}

static void draw_row(const struct sac_instance *in, const struct sac_instances_view *view, int y,
                     struct sac_instance_mask *mask)
{
    const struct sac_instances_window *w = &in->window;
    const int                          cells = w->x1 - w->x0, width = mask->x1 - mask->x0;
    const struct sac_tap               t = tap_of(&view->y, y, w->y0, w->y1);
    const float                       *above = in->sums + (size_t)t.a * (size_t)cells,
                *below = in->sums + (size_t)t.b * (size_t)cells;
    uint8_t  *row = mask->pixels + (size_t)(y - mask->y0) * (size_t)width;
    const int least = SAC_MIN(mask->taps[0].a, mask->taps[0].b);
    for (int c = least; c < cells; c++)
        mask->line[c] = blend(above[c], below[c], t.second);
    for (int x = 0; x < width; x++) {
        const struct sac_tap *at = &mask->taps[x];
        row[x] = blend(mask->line[at->a], mask->line[at->b], at->second) > 0;
    }
}

/* The first pixel at or after an edge. */
static int pixel_at(float edge, int from, int until)
{
    const float at = ceilf(edge);
    return at > (float)from ? (at < (float)until ? (int)at : until) : from;
}

sac_result sac_instance_draw(sac_context *ctx, const struct sac_instance *instance,
                             const struct sac_instances_view *view, struct sac_instance_mask *mask)
{
    const struct sac_detection        *box = &instance->box;
    const struct sac_instances_window *w = &instance->window;
    mask->x0 = pixel_at(box->x0, view->x.from, view->x.until);
    mask->y0 = pixel_at(box->y0, view->y.from, view->y.until);
    mask->x1 = pixel_at(box->x1, mask->x0, view->x.until);
    mask->y1 = pixel_at(box->y1, mask->y0, view->y.until);
    if (mask->x0 >= mask->x1 || mask->y0 >= mask->y1 || sac_instances_area(w) <= 0) {
        mask->x1 = mask->x0;
        mask->y1 = mask->y0;
        return SAC_OK;
    }
    if (!has_room(mask, w->x1 - w->x0))
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a mask of %dx%d pixels",
                        mask->x1 - mask->x0, mask->y1 - mask->y0);
    for (int x = mask->x0; x < mask->x1; x++)
        mask->taps[x - mask->x0] = tap_of(&view->x, x, w->x0, w->x1);
    for (int y = mask->y0; y < mask->y1; y++)
        draw_row(instance, view, y, mask);
    return SAC_OK;
}
