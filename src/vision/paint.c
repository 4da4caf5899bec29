/* SPDX-License-Identifier: Apache-2.0 */
#include "vision/paint.h"

#include "base/base.h"
#include "vision/font.h"

/* One shape on its way. */
struct painter {
    const sac_frame *frame;
    struct sac_coat  coat; /* colour and alpha of the shape; the rest is each coat's own */
    sac_coat_fn      fn;
    void            *user;
};

/* What lies in the frame. */
static void emit(const struct painter *p, struct sac_bounds b, struct sac_coat coat,
                 const struct sac_segment *segment)
{
    coat.bounds =
        (struct sac_bounds){SAC_MAX(b.x0, 0), SAC_MAX(b.y0, 0), SAC_MIN(b.x1, p->frame->width),
                            SAC_MIN(b.y1, p->frame->height)};
    if (coat.bounds.x0 < coat.bounds.x1 && coat.bounds.y0 < coat.bounds.y1)
        p->fn(p->user, &coat, segment);
}

/* ---- rectangles ---- */

/* Whole pixels: crisp edges. Far coordinates are cut where an int still holds them. */
static int pixel_of(float v)
{
    return (int)lrintf(SAC_CLAMP(v, -1e6f, 1e6f));
}

static struct sac_bounds bounds_of(const struct sac_rect *r)
{
    return (struct sac_bounds){pixel_of(r->x0), pixel_of(r->y0), pixel_of(r->x1), pixel_of(r->y1)};
}

/* The frame of a box lies inside it. Only the four sides are visited: the inside of a large box is
 * most of it. */
static void coat_box(const struct painter *p, const struct sac_rect *r, int thickness)
{
    struct sac_bounds b = bounds_of(r);
    struct sac_coat   coat = p->coat;
    struct sac_bounds hole = {b.x0 + thickness, b.y0 + thickness, b.x1 - thickness,
                              b.y1 - thickness};
    coat.cover = SAC_COVER_FRAME;
    coat.hole = hole;
    /* Bands are even, so that no chroma sample belongs to two of them. */
    int top = (hole.y0 + 1) & ~1, bottom = SAC_MAX(hole.y1 & ~1, top);
    int left = (hole.x0 + 1) & ~1, right = SAC_MAX(hole.x1 & ~1, left);
    emit(p, (struct sac_bounds){b.x0, b.y0, b.x1, SAC_MIN(top, b.y1)}, coat, NULL);
    emit(p, (struct sac_bounds){b.x0, top, SAC_MIN(left, b.x1), SAC_MIN(bottom, b.y1)}, coat, NULL);
    emit(p, (struct sac_bounds){right, top, b.x1, SAC_MIN(bottom, b.y1)}, coat, NULL);
    emit(p, (struct sac_bounds){b.x0, bottom, b.x1, b.y1}, coat, NULL);
}

/* ---- strokes: lines and text ---- */

struct strokes {
    struct sac_segment segment[SAC_SEGMENTS_MAX];
    int                count;
    float              radius;
};

static void coat_strokes(const struct painter *p, const struct strokes *s)
{
    struct sac_coat coat = p->coat;
    if (!s->count)
        return;
    float x0 = s->segment[0].x0, y0 = s->segment[0].y0, x1 = x0, y1 = y0;
    for (int k = 0; k < s->count; k++) {
        const struct sac_segment *g = &s->segment[k];
        x0 = SAC_MIN(x0, SAC_MIN(g->x0, g->x1));
        y0 = SAC_MIN(y0, SAC_MIN(g->y0, g->y1));
        x1 = SAC_MAX(x1, SAC_MAX(g->x0, g->x1));
        y1 = SAC_MAX(y1, SAC_MAX(g->y0, g->y1));
    }
    float reach = s->radius + 1.0f;
    coat.cover = SAC_COVER_STROKES;
    coat.count = s->count;
    coat.radius = s->radius;
    emit(p,
         (struct sac_bounds){(int)floorf(x0 - reach), (int)floorf(y0 - reach),
                             (int)ceilf(x1 + reach), (int)ceilf(y1 + reach)},
         coat, s->segment);
}

static void coat_line(const struct painter *p, const struct sac_rect *r, int thickness)
{
    struct strokes s = {.count = 1, .radius = (float)thickness * 0.5f};
    s.segment[0] =
        (struct sac_segment){SAC_CLAMP(r->x0, -1e6f, 1e6f), SAC_CLAMP(r->y0, -1e6f, 1e6f),
                             SAC_CLAMP(r->x1, -1e6f, 1e6f), SAC_CLAMP(r->y1, -1e6f, 1e6f)};
    coat_strokes(p, &s);
}

/* ---- text ---- */

static float glyph_x(char letter, float left, float unit)
{
    return left + (float)(letter - 'a' + SAC_FONT_LEFT) * unit + 0.5f * unit;
}

static float glyph_y(char letter, float top, float unit)
{
    return top + (float)(letter - 'a' + SAC_FONT_TOP) * unit;
}

static void glyph_strokes(struct strokes *s, char c, float left, float top, float unit)
{
    s->count = 0;
    for (const char *at = sac_font_strokes(c); *at; at += *at == ' ') {
        float x = glyph_x(at[0], left, unit), y = glyph_y(at[1], top, unit);
        bool  dot = at[2] == ' ' || !at[2];
        if (dot && s->count < SAC_SEGMENTS_MAX)
            s->segment[s->count++] = (struct sac_segment){x, y, x, y};
        for (at += 2; *at && *at != ' '; at += 2) {
            float to_x = glyph_x(at[0], left, unit), to_y = glyph_y(at[1], top, unit);
            if (s->count < SAC_SEGMENTS_MAX)
                s->segment[s->count++] = (struct sac_segment){x, y, to_x, to_y};
            x = to_x;
            y = to_y;
        }
    }
}

static void coat_text(const struct painter *p, const struct sac_shape *shape)
{
    float          unit = (float)shape->thickness / SAC_FONT_CELL_HEIGHT;
    float          left = (float)pixel_of(shape->rect.x0), top = (float)pixel_of(shape->rect.y0);
    struct strokes s = {.radius = fmaxf(0.6f, 0.9f * unit)};
    for (const char *c = shape->text; c && *c; c++) {
        glyph_strokes(&s, *c, left, top, unit);
        coat_strokes(p, &s);
        left += sac_font_advance(shape->thickness);
        if (left > (float)p->frame->width)
            break;
    }
}

/* ---- colour ---- */

static struct sac_coat coat_of(const sac_frame *frame, const struct sac_shape *shape)
{
    const struct sac_colour c = shape->colour;
    const bool              bgr = sac_is_bgr(frame->format);
    const float             alpha = SAC_CLAMP(shape->alpha, 0.0f, 1.0f);
    struct sac_coat         coat = {.sample = {bgr ? c.b : c.r, c.g, bgr ? c.r : c.b}};
    coat.alpha = (int)(alpha * 256.0f + 0.5f);
    if (sac_rgb_step(frame->format))
        return coat;
    struct sac_luma_weights k = sac_luma_weights_of(frame->matrix);
    struct sac_colour_map   m = sac_colour_map_of(frame);
    double                  y = k.r * c.r + k.g * c.g + k.b * c.b;
    bool                    grey = frame->format == SAC_PIXEL_GRAY8;
    double value[3] = {grey ? y : y / m.y_scale + m.y_zero, (c.b - y) / m.b_u + m.c_zero,
                       (c.r - y) / m.r_v + m.c_zero};
    for (int i = 0; i < 3; i++)
        coat.sample[i] = frame->format == SAC_PIXEL_P010
                             ? (int)SAC_MIN(lrint(value[i] * 4), 1023) << 6
                             : (int)SAC_MIN(lrint(value[i]), 255);
    return coat;
}

void sac_coats_of(const sac_frame *frame, const struct sac_shape *shape, sac_coat_fn fn, void *user)
{
    const struct painter p = {frame, coat_of(frame, shape), fn, user};
    const int            thickness = SAC_MAX(shape->thickness, 1);
    switch (shape->kind) {
    case SAC_SHAPE_BOX: coat_box(&p, &shape->rect, thickness); break;
    case SAC_SHAPE_LINE: coat_line(&p, &shape->rect, thickness); break;
    case SAC_SHAPE_TEXT: coat_text(&p, shape); break;
    case SAC_SHAPE_FILL: {
        struct sac_coat coat = p.coat;
        coat.cover = SAC_COVER_ALL;
        emit(&p, bounds_of(&shape->rect), coat, NULL);
        break;
    }
    }
}
