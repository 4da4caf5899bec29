/* SPDX-License-Identifier: Apache-2.0 */
#include "vision/scales.h"

#include <math.h>

#include "vision/vision.h"

/* ---- looks ---- */

/* Neighbouring crops share this much of each at least: who stands between two is whole in one, or
 * nearly. */
static const double overlap_min = 0.25;

int sac_scale_crops(float scale)
{
    return scale > 1
               ? SAC_MAX((int)ceil(((double)scale - overlap_min) / (1 - overlap_min) - 1e-6), 2)
               : 1;
}

int sac_scales_looks(const float *scale, int count)
{
    int looks = 0;
    for (int i = 0; i < count; i++)
        looks += sac_scale_crops(scale[i]) * sac_scale_crops(scale[i]);
    return looks;
}

/* Crop i of n along a direction. */
static void look_along(float scale, int i, int n, float low, float high, float *from, float *until)
{
    const double size = (double)high - low, length = size / (double)scale;
    const double at = n > 1 ? (double)i / (n - 1) : 0.5;
    *from = (float)((double)low + at * (size - length));
    *until = (float)((double)low + at * (size - length) + length);
}

static struct sac_rect look_of(float scale, int column, int row, const struct sac_rect *whole)
{
    const int       n = sac_scale_crops(scale);
    struct sac_rect r = *whole;
    if (scale != 1.0f) { /* that one is the picture to the last bit */
        look_along(scale, column, n, whole->x0, whole->x1, &r.x0, &r.x1);
        look_along(scale, row, n, whole->y0, whole->y1, &r.y0, &r.y1);
    }
    return r;
}

void sac_scales_look(const float *scale, int count, const struct sac_rect *whole,
                     struct sac_rect *crops)
{
    for (int i = 0; i < count; i++)
        for (int k = 0, n = sac_scale_crops(scale[i]); k < n * n; k++)
            *crops++ = look_of(scale[i], k % n, k / n, whole);
}

/* ---- maps ---- */

static int map_side(const float *scale, int count, int cells)
{
    double largest = 1;
    for (int i = 0; i < count; i++)
        largest = SAC_MAX(largest, (double)scale[i]);
    return SAC_MIN((int)ceil(cells * largest), (int)SAC_MATTE_SIZE_MAX);
}

void sac_scales_map_size(const float *scale, int count, const struct sac_matte_spec *net,
                         int *width, int *height)
{
    *width = map_side(scale, count, net->width);
    *height = map_side(scale, count, net->height);
}

/* One direction of a picture and of a look at it: pixels, how they lie in the network's input, and
 * that input's size in pixels and cells. */
struct line {
    double low, high, scale, offset;
};

static int32_t rise_of(double cells)
{
    const double steps = cells * (1 << SAC_SCALE_PART_BITS);
    return (int32_t)SAC_CLAMP(65536.0 * (1 << SAC_SCALE_WEIGHT_BITS) / steps, 1.0, 1e9);
}

/* shared: pixels of a neighbouring crop. */
static struct sac_scale_axis axis_of(const struct line *picture, const struct line *look,
                                     double shared, int input, int net, int cells)
{
    struct sac_scale_axis a = {0};
    const double          per = (double)net / input, one = 1 << SAC_SCALE_STEP_BITS;
    const double          step = look->scale / picture->scale * net / cells;
    const double          pixel = (0.5 * input / cells - picture->offset) / picture->scale;
    /* half a place, as the shift rounds down */
    a.origin = llrint(
        ((pixel * look->scale + look->offset) * per - 0.5 + 0.5 / (1 << SAC_SCALE_PART_BITS)) *
        one);
    a.step = llrint(step * one);
    const double low = SAC_MAX(picture->low, look->low), high = SAC_MIN(picture->high, look->high);
    const int    first = (int)SAC_CLAMP(floor((low * look->scale + look->offset) * per + 1e-4), 0.0,
                                        net - 1.0),
              last = (int)SAC_CLAMP(ceil((high * look->scale + look->offset) * per - 1e-4) - 1,
                                    (double)first, net - 1.0);
    a.low = first << SAC_SCALE_PART_BITS;
    a.high = last << SAC_SCALE_PART_BITS;
    if (look->low > picture->low + 0.01)
        a.rise_low = rise_of(shared * look->scale * per);
    if (look->high < picture->high - 0.01)
        a.rise_high = rise_of(shared * look->scale * per);
    return a;
}

static void add_scale(struct sac_scale *out, float scale, const struct sac_preprocess *pre,
                      const struct sac_matte_spec *net, const struct sac_rect *whole, int width,
                      int height)
{
    const struct sac_fit_map own = sac_fit_map_of(pre, whole);
    const struct line        across = {whole->x0, whole->x1, own.scale_x, own.offset_x},
                      down = {whole->y0, whole->y1, own.scale_y, own.offset_y};
    const int n = out->crops = sac_scale_crops(scale);
    /* Of a crop, what its neighbour shows too. */
    const double part = n > 1 ? 1 / (double)scale - (1 - 1 / (double)scale) / (n - 1) : 1;
    for (int i = 0; i < n; i++) {
        const struct sac_rect    crop = look_of(scale, i, i, whole);
        const struct sac_fit_map map = sac_fit_map_of(pre, &crop);
        const struct line        x = {crop.x0, crop.x1, map.scale_x, map.offset_x},
                          y = {crop.y0, crop.y1, map.scale_y, map.offset_y};
        out->x[i] = axis_of(&across, &x, part * (across.high - across.low), net->input_width,
                            net->width, width);
        out->y[i] = axis_of(&down, &y, part * (down.high - down.low), net->input_height,
                            net->height, height);
    }
}

struct sac_scales sac_scales_of(const float *scale, int count, const struct sac_preprocess *pre,
                                const struct sac_matte_spec *net, const struct sac_rect *whole,
                                int width, int height)
{
    struct sac_scales s = {.count = count};
    for (int i = 0; i < count; i++)
        add_scale(&s.scale[i], scale[i], pre, net, whole, width, height);
    return s;
}

/* ---- running it ---- */

sac_result sac_scale_maps_run_on(sac_device *dev, struct sac_device_stream *stream,
                                 const struct sac_scale_maps *maps, const int16_t *shares, int n,
                                 float *out)
{
    const struct sac_vision_ops *ops = dev->ops->vision;
    if (!ops->scale_maps || !ops->facet_shares)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED, "scales: device %s has none; cpu does",
                        dev->name);
    return n > 0 ? ops->scale_maps(dev, stream, maps, shares, n, out) : SAC_OK;
}
