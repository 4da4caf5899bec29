/* SPDX-License-Identifier: Apache-2.0 */
#include "vision/packing.h"

#include <string.h>

#include "base/base.h"
#include "device/format.h"
#include "vision/composite.h"
#include "vision/vision.h"

/* ---- geometry ---- */

static struct sac_packing_area area_of(int x, int y, int width, int height)
{
    return (struct sac_packing_area){x, y, width, height};
}

static void add_piece(struct sac_packing *p, int eye, struct sac_packing_area from, int x, int y)
{
    p->piece[p->pieces++] =
        (struct sac_packing_piece){eye, from, area_of(x, y, from.width, from.height)};
}

/* The quarters of an eye, each into the opposite corner of the frame, where its arc faces the
 * picture's. */
static void add_quarters(struct sac_packing *p, int eye)
{
    const int w = p->scaled_width / 2, h = p->scaled_height / 2;
    for (int i = 0; i < 4; i++) {
        const bool right = i & 1, lower = i >> 1;
        add_piece(p, eye, area_of(right ? w : 0, lower ? h : 0, w, h), right ? 0 : p->width - w,
                  lower ? 0 : p->height - h);
    }
}

/* The halves of an eye where the two circles meet the lower and the upper edge. */
static void add_halves(struct sac_packing *p, int eye)
{
    const int w = p->scaled_width, h = p->scaled_height / 2, x = (p->width - w) / 2;
    add_piece(p, eye, area_of(0, 0, w, h), x, p->height - h);
    add_piece(p, eye, area_of(0, h, w, h), x, 0);
}

static sac_result init_fisheye(sac_context *ctx, enum sac_packing_stereo stereo,
                               struct sac_packing *p)
{
    const struct sac_packing_area *eye = &p->eye[0];
    if (stereo == SAC_PACKING_TB)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                        "packing: fisheye eyes above each other, for which no player has a "
                        "layout; have mono, sbs");
    if (eye->width != eye->height)
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "packing: fisheye eyes of %dx%d; they must be square to hold a circle",
                        eye->width, eye->height);
    /* 2/5, and a multiple of 4 so that the quarters are even. */
    p->scaled_width = p->scaled_height = eye->width * 2 / 5 & ~3;
    if (p->scaled_width < 4)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "packing: fisheye eyes of %dx%d; have 10x10 and more",
                        eye->width, eye->height);
    p->round = true;
    if (stereo == SAC_PACKING_SBS)
        add_halves(p, 0);
    add_quarters(p, p->eyes - 1);
    return SAC_OK;
}

static void init_flat(struct sac_packing *p)
{
    p->height = 2 * p->picture.height;
    p->eyes = 1; /* both lie side by side in the matte as in the picture */
    p->eye[0] = p->picture;
    p->scaled_width = p->picture.width;
    p->scaled_height = p->picture.height;
    add_piece(p, 0, p->picture, 0, p->picture.height);
}

sac_result sac_packing_init(sac_context *ctx, enum sac_packing_projection projection,
                            enum sac_packing_stereo stereo, int width, int height,
                            struct sac_packing *out)
{
    struct sac_packing p = {.width = width, .height = height, .eyes = 1};
    const int          across = stereo == SAC_PACKING_SBS ? 2 : 1;
    if (width < 2 || height < 2 || (width | height) & 1 || width / across % 2)
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "packing: frames of %dx%d; width and height of each eye must be even",
                        width, height);
    p.picture = area_of(0, 0, width, height);
    p.eyes = across;
    for (int i = 0; i < across; i++)
        p.eye[i] = area_of(i * (width / across), 0, width / across, height);
    sac_result res = SAC_OK;
    if (projection == SAC_PACKING_FISHEYE)
        res = init_fisheye(ctx, stereo, &p);
    else
        init_flat(&p);
    if (res == SAC_OK)
        *out = p;
    return res;
}

/* ---- parts of frames ---- */

/* A frame over an area of another one, which owns the planes. */
static sac_frame part_of(const sac_frame *f, struct sac_packing_area area)
{
    const struct sac_format_info *info = sac_format_info_of(f->format);
    sac_frame                     part = *f;
    part.width = area.width;
    part.height = area.height;
    for (int i = 0; i < info->planes; i++) {
        const int x = i ? area.x / 2 : area.x, y = i ? area.y / 2 : area.y;
        part.plane[i] += (size_t)y * f->pitch_bytes[i] +
                         (size_t)x * (size_t)(info->step[i] * info->number_bytes);
    }
    return part;
}

static sac_result create_grey(const struct sac_packing *p, sac_device *dev, int eyes,
                              sac_frame **out)
{
    const sac_frame desc = {
        .format = SAC_PIXEL_GRAY8, .width = p->scaled_width * eyes, .height = p->scaled_height};
    return sac_frame_create(dev, &desc, out);
}

static struct sac_packing_area scaled_eye(const struct sac_packing *p, int eye)
{
    return area_of(eye * p->scaled_width, 0, p->scaled_width, p->scaled_height);
}

/* White inside the circle of a scaled eye: a dot as wide, with a smooth edge. The fill blends by 1,
 * which leaves nothing of what the memory held; Valgrind sees only that it was read. */
static sac_result draw_circle(struct sac_device_stream *stream, sac_frame *grey)
{
    const float      x = (float)grey->width / 2, y = (float)grey->height / 2;
    struct sac_shape shapes[2] = {
        {.kind = SAC_SHAPE_FILL, .rect = {0, 0, 2 * x, 2 * y}, .alpha = 1},
        {.kind = SAC_SHAPE_LINE,
         .rect = {x, y, x, y},
         .colour = {255, 255, 255},
         .alpha = 1,
         .thickness = grey->width - 1}}; /* the edge's pixels are covered in part */
    return sac_frame_draw_on(stream, grey, shapes, 2);
}

/* ---- writing ---- */

struct work {
    struct sac_device_stream *stream;
    const struct sac_packing *packing;
    sac_device               *dev;
    sac_frame                *scaled, *circle; /* mattes of all eyes; where they count */
};

static sac_result paint(const struct work *w, sac_frame *out, const sac_frame *matte,
                        struct sac_colour colour)
{
    const struct sac_composite_job job = {.kind = SAC_COMPOSITE_PAINT,
                                          .frame = out,
                                          .matte = matte,
                                          .strength = 1,
                                          .colour = {colour},
                                          .colours = 1,
                                          .out = out};
    return sac_composite_run_on(w->dev, w->stream, &job);
}

/* The scaled mattes, 0 around each circle. */
static sac_result scale_mattes(const struct work *w, const sac_frame *matte)
{
    sac_result res = draw_circle(w->stream, w->circle);
    for (int i = 0; i < w->packing->eyes && res == SAC_OK; i++) {
        const sac_frame from = part_of(matte, w->packing->eye[i]);
        sac_frame       to = part_of(w->scaled, scaled_eye(w->packing, i));
        res = sac_frame_rescale_on(w->stream, &from, SAC_FILTER_AREA, &to);
        const struct sac_composite_job cut = {
            .kind = SAC_COMPOSITE_BACKGROUND, .frame = &to, .matte = w->circle, .out = &to};
        if (res == SAC_OK)
            res = sac_composite_run_on(w->dev, w->stream, &cut);
    }
    return res;
}

/* Red on black, in the circle alone: what is around it belongs to the picture's own circle. */
static sac_result write_round(const struct work *w, const struct sac_packing_piece *piece,
                              sac_frame *out)
{
    struct sac_packing_area from = piece->from;
    sac_frame               to = part_of(out, piece->to);
    const sac_frame         circle = part_of(w->circle, from);
    from.x += scaled_eye(w->packing, piece->eye).x;
    const sac_frame matte = part_of(w->scaled, from);
    sac_result      res = paint(w, &to, &circle, (struct sac_colour){0, 0, 0});
    return res == SAC_OK ? paint(w, &to, &matte, (struct sac_colour){255, 0, 0}) : res;
}

static sac_result write_pieces(struct work *w, const sac_frame *matte, sac_frame *out)
{
    const struct sac_packing *p = w->packing;
    if (!p->round) {
        sac_frame to = part_of(out, p->piece[0].to);
        return sac_frame_rescale_on(w->stream, matte, SAC_FILTER_AREA, &to);
    }
    sac_result res = create_grey(p, w->dev, p->eyes, &w->scaled);
    if (res == SAC_OK)
        res = create_grey(p, w->dev, 1, &w->circle);
    if (res == SAC_OK && w->stream) /* work queued on the device's own may still use their memory */
        res = w->dev->ops->stream_after(w->dev, w->stream, NULL);
    if (res == SAC_OK)
        res = scale_mattes(w, matte);
    for (int i = 0; i < p->pieces && res == SAC_OK; i++)
        res = write_round(w, &p->piece[i], out);
    sac_frame_unref(&w->scaled);
    sac_frame_unref(&w->circle);
    return res;
}

static bool is_sized(const sac_frame *f, sac_device *dev, int width, int height)
{
    return f->device == dev && f->width == width && f->height == height;
}

sac_result sac_packing_write_on(struct sac_device_stream *stream, const struct sac_packing *packing,
                                const sac_frame *frame, const sac_frame *matte, sac_frame *out)
{
    sac_device                    *dev = out->device;
    const struct sac_packing_area *picture = &packing->picture;
    struct work                    w = {stream, packing, dev, NULL, NULL};
    if (!is_sized(out, dev, packing->width, packing->height) ||
        !is_sized(frame, dev, picture->width, picture->height) ||
        !is_sized(matte, dev, picture->width, picture->height) || matte->format != SAC_PIXEL_GRAY8)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG,
                        "packing: a frame of %dx%d, a matte of %dx%d, %s, into one of %dx%d; have "
                        "%dx%d twice, the matte gray8, into %dx%d on one device",
                        frame->width, frame->height, matte->width, matte->height,
                        sac_pixel_format_name(matte->format), out->width, out->height,
                        picture->width, picture->height, packing->width, packing->height);
    if (!sac_frame_is_writable(out))
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "packing: the output frame is shared");
    sac_frame  to = part_of(out, *picture);
    sac_result res =
        frame == out ? SAC_OK : sac_frame_rescale_on(stream, frame, SAC_FILTER_AREA, &to);
    return res == SAC_OK ? write_pieces(&w, matte, out) : res;
}

/* ---- reading ---- */

static void copy_red(const sac_frame *rgb, sac_frame *grey)
{
    for (int y = 0; y < rgb->height; y++)
        for (int x = 0; x < rgb->width; x++)
            grey->plane[0][(size_t)y * grey->pitch_bytes[0] + (size_t)x] =
                rgb->plane[0][(size_t)y * rgb->pitch_bytes[0] + 3 * (size_t)x];
}

/* A piece's red numbers to its place among the scaled mattes. */
static sac_result read_round(const struct work *w, const struct sac_packing_piece *piece,
                             const sac_frame *packed)
{
    struct sac_packing_area from = piece->from;
    const sac_frame         there = part_of(packed, piece->to);
    sac_frame               desc = there, *rgb = NULL;
    from.x += scaled_eye(w->packing, piece->eye).x;
    sac_frame here = part_of(w->scaled, from);
    desc.format = SAC_PIXEL_RGB24;
    sac_result res = sac_frame_create(w->dev, &desc, &rgb);
    if (res == SAC_OK)
        res = sac_frame_rescale_on(NULL, &there, SAC_FILTER_AREA, rgb);
    if (res == SAC_OK)
        copy_red(rgb, &here);
    sac_frame_unref(&rgb);
    return res;
}

static sac_result read_eyes(const struct work *w, sac_frame *matte)
{
    sac_result res = draw_circle(NULL, w->circle);
    for (int i = 0; i < w->packing->eyes && res == SAC_OK; i++) {
        sac_frame                      scaled = part_of(w->scaled, scaled_eye(w->packing, i));
        sac_frame                      to = part_of(matte, w->packing->eye[i]);
        const struct sac_composite_job cut = {
            .kind = SAC_COMPOSITE_BACKGROUND, .frame = &scaled, .matte = w->circle, .out = &scaled};
        res = sac_composite_run_on(w->dev, NULL, &cut);
        if (res == SAC_OK)
            res = sac_frame_rescale_on(NULL, &scaled, SAC_FILTER_AREA, &to);
    }
    return res;
}

sac_result sac_packing_read(const struct sac_packing *packing, const sac_frame *packed,
                            sac_frame *matte)
{
    const struct sac_packing_area *picture = &packing->picture;
    sac_device                    *dev = matte->device;
    struct work                    w = {NULL, packing, dev, NULL, NULL};
    if (sac_device_apart(dev) || !is_sized(packed, dev, packing->width, packing->height) ||
        !is_sized(matte, dev, picture->width, picture->height) ||
        matte->format != SAC_PIXEL_GRAY8 || !sac_frame_is_writable(matte))
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG,
                        "packing: reading %dx%d into a matte of %dx%d, %s; have %dx%d into %dx%d, "
                        "gray8, writable, in host memory",
                        packed->width, packed->height, matte->width, matte->height,
                        sac_pixel_format_name(matte->format), packing->width, packing->height,
                        picture->width, picture->height);
    if (!packing->round) {
        const sac_frame from = part_of(packed, packing->piece[0].to);
        return sac_frame_rescale_on(NULL, &from, SAC_FILTER_AREA, matte);
    }
    sac_result res = create_grey(packing, dev, packing->eyes, &w.scaled);
    if (res == SAC_OK)
        res = create_grey(packing, dev, 1, &w.circle);
    for (int i = 0; i < packing->pieces && res == SAC_OK; i++)
        res = read_round(&w, &packing->piece[i], packed);
    if (res == SAC_OK)
        res = read_eyes(&w, matte);
    sac_frame_unref(&w.scaled);
    sac_frame_unref(&w.circle);
    return res;
}
