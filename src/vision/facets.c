/* SPDX-License-Identifier: Apache-2.0 */
#include "vision/facets.h"

#include <math.h>

#include "vision/vision.h"

static const double pi = 3.14159265358979323846;

/* ---- where a facet looks ---- */

struct facet {
    double yaw, pitch; /* degrees to the right and up */
    double angle;      /* degrees that it sees, each way */
};

/* One ahead has 1.3 times the eye's pixels in a degree (512 of them over 100 degrees instead of
 * 180), and bends no more than a wide lens does. The four about it reach to 103 degrees from its
 * middle, and beside each other: together they see all of a half sphere. Steeper ones would cut
 * those apart who stand between two of them. */
static const struct facet all[] = {
    {0, 0, 100}, {-50, 0, 106}, {50, 0, 106}, {0, 50, 106}, {0, -50, 106}};
/* Alone it sees a little more. */
static const struct facet front[] = {{0, 0, 110}};

static const struct facet *list_of(enum sac_facets facets)
{
    return facets == SAC_FACETS_ALL ? all : front;
}

int sac_facets_count(enum sac_projection projection, enum sac_facets facets)
{
    if (projection == SAC_PROJECTION_FLAT || facets == SAC_FACETS_NONE)
        return 0;
    return facets == SAC_FACETS_ALL ? (int)SAC_COUNT(all) : (int)SAC_COUNT(front);
}

static double reach_of(const struct facet *f)
{
    return tan(f->angle / 2 * pi / 180);
}

struct direction {
    double x, y, z;
};

static double along(struct direction a, struct direction b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

/* A facet's own directions. */
struct axes {
    struct direction right, down, ahead;
};

static struct axes axes_of(const struct facet *f)
{
    const double yaw = f->yaw * pi / 180, pitch = f->pitch * pi / 180;
    return (struct axes){{cos(yaw), 0, -sin(yaw)},
                         {sin(yaw) * sin(pitch), cos(pitch), cos(yaw) * sin(pitch)},
                         {sin(yaw) * cos(pitch), -sin(pitch), cos(yaw) * cos(pitch)}};
}

/* ---- what an eye sees where ----
 * Its picture is 1 wide and 1 high. */

struct place {
    double x, y;
};

/* A fisheye's circle touches the picture's edges. Angles grow evenly from its middle, to 95
 * degrees: most lenses for this have 190. One of 200 would be seen a little narrower than it is,
 * and its matte goes back by the same map. */
static const double fisheye_edge = 95.0;

/* How far apart the eye's edges are, in radians. */
static double span_of(enum sac_projection projection)
{
    return (projection == SAC_PROJECTION_FISHEYE ? 2 * fisheye_edge : 180) * pi / 180;
}

/* false: the eye does not see there. */
static bool place_of(enum sac_projection projection, struct direction d, struct place *out)
{
    const double wide = hypot(d.x, d.y);
    if (projection == SAC_PROJECTION_FISHEYE) {
        const double from = wide > 0 ? atan2(wide, d.z) / span_of(projection) / wide : 0;
        *out = (struct place){0.5 + from * d.x, 0.5 + from * d.y};
        return from * wide <= 0.5;
    }
    const double length = sqrt(wide * wide + d.z * d.z);
    *out = (struct place){0.5 + atan2(d.x, d.z) / pi, 0.5 + asin(d.y / length) / pi};
    return d.z >= 0;
}

/* The way back; false: there is no such direction. */
static bool direction_of(enum sac_projection projection, struct place p, struct direction *out)
{
    const double span = span_of(projection), x = (p.x - 0.5) * span, y = (p.y - 0.5) * span;
    if (projection == SAC_PROJECTION_FISHEYE) {
        const double angle = hypot(x, y), wide = angle > 0 ? sin(angle) / angle : 0;
        *out = (struct direction){x * wide, y * wide, cos(angle)};
        return angle <= span / 2;
    }
    *out = (struct direction){cos(y) * sin(x), sin(y), cos(y) * cos(x)};
    return true;
}

/* ---- places ---- */

int sac_facets_side(const struct sac_preprocess *pre)
{
    return SAC_MAX(pre->width, pre->height);
}

/* Half as many again as in the middle of a facet: at its edges degrees are wider. */
static int shrink(int size, double pixels)
{
    const double enough = ceil(1.5 * pixels);
    return enough < size ? SAC_MAX((int)enough, 1) : size;
}

/* Pixels or cells of the eye for as many in a radian as `n` of the facet ahead has in its middle.
 */
static double pixels_of(enum sac_projection projection, enum sac_facets facets, int n)
{
    return n / (2 * reach_of(list_of(facets))) * span_of(projection);
}

void sac_facets_eye_size(enum sac_projection projection, enum sac_facets facets, int side,
                         int eye_width, int eye_height, int *width, int *height)
{
    const double pixels = pixels_of(projection, facets, side);
    *width = shrink(eye_width, pixels);
    *height = shrink(eye_height, pixels);
}

static struct sac_facet_place pixel_place(enum sac_projection projection, const struct axes *axes,
                                          double x, double y)
{
    const struct direction d = {axes->ahead.x + x * axes->right.x + y * axes->down.x,
                                axes->ahead.y + x * axes->right.y + y * axes->down.y,
                                axes->ahead.z + x * axes->right.z + y * axes->down.z};
    struct place           p;
    if (!place_of(projection, d, &p))
        return (struct sac_facet_place){-1, -1};
    return (struct sac_facet_place){(int32_t)lrint(p.x * (1 << SAC_FACET_PLACE_BITS)),
                                    (int32_t)lrint(p.y * (1 << SAC_FACET_PLACE_BITS))};
}

void sac_facets_place(enum sac_projection projection, enum sac_facets facets, int side,
                      struct sac_facet_place *places)
{
    for (int i = 0; i < sac_facets_count(projection, facets); i++) {
        const struct facet *f = &list_of(facets)[i];
        const struct axes   axes = axes_of(f);
        const double        reach = reach_of(f), step = 2 * reach / side;
        for (int y = 0; y < side; y++)
            for (int x = 0; x < side; x++)
                *places++ = pixel_place(projection, &axes, (x + 0.5) * step - reach,
                                        (y + 0.5) * step - reach);
    }
}

/* ---- taps ---- */

/* A quarter more cells than in the middle of a facet, for the same reason. */
static int map_side(enum sac_projection projection, enum sac_facets facets, int cells)
{
    return SAC_CLAMP((int)ceil(1.25 * pixels_of(projection, facets, cells)), 1, SAC_MATTE_SIZE_MAX);
}

void sac_facets_map_size(enum sac_projection projection, enum sac_facets facets,
                         const struct sac_matte_spec *net, int *width, int *height)
{
    *width = map_side(projection, facets, net->width);
    *height = map_side(projection, facets, net->height);
}

/* Where a facet shows a direction, from -1 to 1 each way; false: it does not. */
static bool in_facet(const struct facet *f, struct direction d, struct place *out)
{
    const struct axes axes = axes_of(f);
    const double      ahead = along(d, axes.ahead), reach = reach_of(f);
    if (ahead <= 0)
        return false;
    *out =
        (struct place){along(d, axes.right) / ahead / reach, along(d, axes.down) / ahead / reach};
    return fabs(out->x) < 1 && fabs(out->y) < 1;
}

/* A facet counts most in its middle, where it bends least and cuts nobody. */
static double weight_of(struct place p)
{
    const double w = (1 - fabs(p.x)) * (1 - fabs(p.y));
    return w * w;
}

/* Along one direction of a facet's map. */
static int cell_of(double at, int cells, uint16_t *part)
{
    const int    one = 1 << SAC_FACET_PART_BITS;
    const double last = cells - 1, in = at > 0 ? (at < last ? at : last) : 0;
    const int    first = SAC_MAX(SAC_MIN((int)in, cells - 2), 0);
    *part = (uint16_t)lrint((in - first) * one);
    return first;
}

/* The facets' way into the network's input is that of any picture. */
static struct sac_facet_tap tap_of(const struct sac_preprocess *pre,
                                   const struct sac_matte_spec *net, int facet, struct place p)
{
    const float              side = (float)sac_facets_side(pre);
    const struct sac_rect    whole = {0, 0, side, side};
    const struct sac_fit_map fit = sac_fit_map_of(pre, &whole);
    const double             x = (p.x + 1) / 2 * (double)side, y = (p.y + 1) / 2 * (double)side;
    struct sac_facet_tap     tap;
    const int cx = cell_of((x * (double)fit.scale_x + (double)fit.offset_x) * net->width /
                                   net->input_width -
                               0.5,
                           net->width, &tap.right),
              cy = cell_of((y * (double)fit.scale_y + (double)fit.offset_y) * net->height /
                                   net->input_height -
                               0.5,
                           net->height, &tap.below);
    tap.cell = (facet * net->height + cy) * net->width + cx;
    tap.weight = 0;
    return tap;
}

struct candidate {
    int          facet;
    struct place at;
    double       weight;
};

/* The facets that show a direction, those that weigh most first; returns how many. */
static int find(enum sac_facets facets, int count, struct direction d, struct candidate *found)
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        struct candidate c = {.facet = i};
        if (!in_facet(&list_of(facets)[i], d, &c.at))
            continue;
        c.weight = weight_of(c.at);
        int k = n++;
        for (; k > 0 && found[k - 1].weight < c.weight; k--)
            found[k] = found[k - 1];
        found[k] = c;
    }
    return SAC_MIN(n, SAC_FACET_TAPS);
}

/* Shares of one; what rounding leaves is the first one's, which has most. */
static void weigh(struct sac_facet_cell *cell, const struct candidate *found, int n)
{
    double total = 0;
    int    left = 1 << SAC_FACET_WEIGHT_BITS;
    for (int i = 0; i < n; i++)
        total += found[i].weight;
    if (!(total > 0))
        return;
    for (int i = 1; i < n; i++) {
        cell->tap[i].weight =
            (int32_t)lrint(found[i].weight / total * (1 << SAC_FACET_WEIGHT_BITS));
        left -= cell->tap[i].weight;
    }
    cell->tap[0].weight = left;
}

void sac_facets_tap(enum sac_projection projection, enum sac_facets facets,
                    const struct sac_preprocess *pre, const struct sac_matte_spec *net, int width,
                    int height, struct sac_facet_cell *cells)
{
    const int count = sac_facets_count(projection, facets);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++, cells++) {
            struct candidate   found[SAC_FACETS_MAX];
            struct direction   d;
            const struct place p = {(x + 0.5) / width, (y + 0.5) / height};
            *cells = (struct sac_facet_cell){0};
            if (!direction_of(projection, p, &d))
                continue;
            const int n = find(facets, count, d, found);
            for (int i = 0; i < n; i++)
                cells->tap[i] = tap_of(pre, net, found[i].facet, found[i].at);
            weigh(cells, found, n);
        }
}

/* ---- running it ---- */

static sac_result check_device(sac_device *dev)
{
    const struct sac_vision_ops *ops = dev->ops->vision;
    if (ops->facets && ops->facet_shares && ops->facet_maps)
        return SAC_OK;
    return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED, "facets: device %s has none; cpu does",
                    dev->name);
}

static bool is_picture_of(const sac_device *dev, const sac_frame *f)
{
    return f && f->owner && f->device == dev && f->format == SAC_PIXEL_RGB24 &&
           f->orientation == SAC_UPRIGHT && f->width >= 1 && f->height >= 1 && f->width <= 32768 &&
           f->height <= 32768;
}

sac_result sac_facets_run_on(sac_device *dev, struct sac_device_stream *stream,
                             const struct sac_facet_job *jobs, int n)
{
    sac_result res = check_device(dev);
    for (int i = 0; i < n && res == SAC_OK; i++) {
        if (!is_picture_of(dev, jobs[i].eye) || !is_picture_of(dev, jobs[i].out) ||
            !jobs[i].places || !sac_frame_is_writable(jobs[i].out))
            return SAC_FAIL(dev->ctx, SAC_ERR_ARG,
                            "facets: job %d of %d has no two upright pictures in rgb24 on %s", i, n,
                            dev->name);
        res = sac_frame_await(jobs[i].eye, stream);
        if (res == SAC_OK)
            res = sac_frame_await(jobs[i].out, stream);
    }
    if (res == SAC_OK && n > 0)
        res = dev->ops->vision->facets(dev, stream, jobs, n);
    for (int i = 0; i < n; i++) {
        sac_frame_used(jobs[i].eye, stream);
        sac_frame_used(jobs[i].out, stream);
    }
    return res;
}

sac_result sac_facet_shares_run_on(sac_device *dev, struct sac_device_stream *stream,
                                   const struct sac_matte_spec *net, const void *const *tensors,
                                   int n, int16_t *out)
{
    sac_result res = check_device(dev);
    return res == SAC_OK && n > 0
               ? dev->ops->vision->facet_shares(dev, stream, net, tensors, n, out)
               : res;
}

sac_result sac_facet_maps_run_on(sac_device *dev, struct sac_device_stream *stream,
                                 const struct sac_facet_maps *maps, const int16_t *shares, int n,
                                 float *out)
{
    sac_result res = check_device(dev);
    return res == SAC_OK && n > 0 ? dev->ops->vision->facet_maps(dev, stream, maps, shares, n, out)
                                  : res;
}
