/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes onto frames of any format.
 *
 * A shape is a function that tells how much of each pixel it covers. The painter asks it for two
 * rows at a time, a piece of them, blends luma with each and chroma with the mean of the four
 * pixels that share a chroma sample: so thin lines keep their colour and edges bleed no more than
 * 4:2:0 must. */
#include <math.h>
#include <string.h>

#include "device/cpu/cpu.h"
#include "device/cpu/resample.h"
#include "device/font.h"

enum { PIECE = 256 };

struct bounds {
    int x0, y0, x1, y1; /* right and bottom open */
};

/* Coverage 0..255 of pixels [x, x + n) of row y. */
typedef void (*cover_fn)(const void *shape, int y, int x, int n, uint8_t *mask);

struct painter {
    sac_frame *frame;
    int        sample[3]; /* the colour as the frame stores it: Y, U, V or R, G, B */
    int        alpha;     /* 0..256 */
};

/* ---- blending ---- */

enum { FULL = 255 * 256 }; /* coverage times alpha */

/* old + (new - old) * weight / FULL, to nearest. */
static int blend(int old, int new, int cover, int alpha)
{
    int64_t change = (int64_t)(new - old) * cover * alpha;
    return old + (int)((change + (change < 0 ? -FULL / 2 : FULL / 2)) / FULL);
}

static uint8_t blend_byte(int old, int new, int cover, int alpha)
{
    return (uint8_t)blend(old, new, cover, alpha);
}

static uint16_t blend_word(int old, int new, int cover, int alpha)
{
    return (uint16_t)(blend(old >> 6, new >> 6, cover, alpha) << 6);
}

static void blend_luma(const struct painter *p, int y, int x, int n, const uint8_t *mask)
{
    uint8_t *row = p->frame->plane[0] + (size_t)y * p->frame->pitch_bytes[0];
    for (int i = 0; i < n; i++) {
        if (!mask[i])
            continue;
        if (p->frame->format == SAC_PIXEL_P010) {
            uint16_t *out = (uint16_t *)(void *)row + x + i;
            *out = blend_word(*out, p->sample[0], mask[i], p->alpha);
        } else if (p->frame->format == SAC_PIXEL_RGB24) {
            for (int c = 0; c < 3; c++) {
                uint8_t *out = row + 3 * (x + i) + c;
                *out = blend_byte(*out, p->sample[c], mask[i], p->alpha);
            }
        } else {
            row[x + i] = blend_byte(row[x + i], p->sample[0], mask[i], p->alpha);
        }
    }
}

static void blend_chroma(const struct painter *p, int c, int cx, int cy, int cover)
{
    const sac_frame *f = p->frame;
    int new = p->sample[1 + c];
    if (f->format == SAC_PIXEL_I420) {
        uint8_t *out = f->plane[1 + c] + (size_t)cy * f->pitch_bytes[1 + c] + cx;
        *out = blend_byte(*out, new, cover, p->alpha);
    } else if (f->format == SAC_PIXEL_P010) {
        uint16_t *out = (uint16_t *)(void *)(f->plane[1] + (size_t)cy * f->pitch_bytes[1]);
        out[2 * cx + c] = blend_word(out[2 * cx + c], new, cover, p->alpha);
    } else {
        uint8_t *out = f->plane[1] + (size_t)cy * f->pitch_bytes[1] + 2 * cx + c;
        *out = blend_byte(*out, new, cover, p->alpha);
    }
}

static bool has_chroma(const sac_frame *f)
{
    return f->format != SAC_PIXEL_RGB24 && f->format != SAC_PIXEL_GRAY8;
}

/* x and n are even, y is the upper of two rows; masks are 0 past the frame. */
static void blend_piece(const struct painter *p, int y, int x, int n, uint8_t mask[2][PIECE])
{
    for (int r = 0; r < 2; r++)
        blend_luma(p, y + r, x, n, mask[r]);
    if (!has_chroma(p->frame))
        return;
    for (int i = 0; i < n; i += 2) {
        int cover = mask[0][i] + mask[0][i + 1] + mask[1][i] + mask[1][i + 1];
        for (int c = 0; cover && c < 2; c++)
            blend_chroma(p, c, (x + i) / 2, y / 2, (cover + 2) / 4);
    }
}

/* Row y of the mask, nothing outside the bounds. */
static void mask_row(struct bounds b, cover_fn cover, const void *shape, int y, int x, int n,
                     uint8_t *mask)
{
    memset(mask, 0, (size_t)n);
    int begin = SAC_MAX(x, b.x0), end = SAC_MIN(x + n, b.x1);
    if (y >= b.y0 && y < b.y1 && begin < end)
        cover(shape, y, begin, end - begin, mask + (begin - x));
}

static void paint(const struct painter *p, struct bounds b, cover_fn cover, const void *shape)
{
    uint8_t mask[2][PIECE];
    b = (struct bounds){SAC_MAX(b.x0, 0), SAC_MAX(b.y0, 0), SAC_MIN(b.x1, p->frame->width),
                        SAC_MIN(b.y1, p->frame->height)};
    for (int y = b.y0 & ~1; y < b.y1; y += 2)
        for (int x = b.x0 & ~1; x < b.x1; x += PIECE) {
            int n = SAC_MIN(PIECE, (b.x1 - x + 1) & ~1);
            for (int r = 0; r < 2; r++)
                mask_row(b, cover, shape, y + r, x, n, mask[r]);
            blend_piece(p, y, x, n, mask);
        }
}

/* ---- rectangles ---- */

static void cover_all(const void *shape, int y, int x, int n, uint8_t *mask)
{
    (void)shape, (void)y, (void)x;
    memset(mask, 255, (size_t)n);
}

/* Whole pixels: crisp edges. Far coordinates are cut where an int still holds them. */
static int pixel_of(float v)
{
    return (int)lrintf(SAC_CLAMP(v, -1e6f, 1e6f));
}

static void draw_fill(const struct painter *p, const struct sac_rect *r)
{
    struct bounds b = {pixel_of(r->x0), pixel_of(r->y0), pixel_of(r->x1), pixel_of(r->y1)};
    paint(p, b, cover_all, NULL);
}

/* The frame of a box lies inside it. */
struct frame_shape {
    struct bounds hole;
};

static void cover_frame(const void *shape, int y, int x, int n, uint8_t *mask)
{
    const struct frame_shape *f = shape;
    memset(mask, 255, (size_t)n);
    if (y < f->hole.y0 || y >= f->hole.y1)
        return;
    int begin = SAC_MAX(f->hole.x0 - x, 0), end = SAC_MIN(f->hole.x1 - x, n);
    if (begin < end)
        memset(mask + begin, 0, (size_t)(end - begin));
}

/* Only the four sides are visited: the inside of a large box is most of it. */
static void draw_box(const struct painter *p, const struct sac_rect *r, int thickness)
{
    struct bounds      b = {pixel_of(r->x0), pixel_of(r->y0), pixel_of(r->x1), pixel_of(r->y1)};
    struct frame_shape f = {
        {b.x0 + thickness, b.y0 + thickness, b.x1 - thickness, b.y1 - thickness}};
    /* Bands are even, so that no chroma sample belongs to two of them. */
    int top = (f.hole.y0 + 1) & ~1, bottom = SAC_MAX(f.hole.y1 & ~1, top);
    int left = (f.hole.x0 + 1) & ~1, right = SAC_MAX(f.hole.x1 & ~1, left);
    paint(p, (struct bounds){b.x0, b.y0, b.x1, SAC_MIN(top, b.y1)}, cover_frame, &f);
    paint(p, (struct bounds){b.x0, top, SAC_MIN(left, b.x1), SAC_MIN(bottom, b.y1)}, cover_frame,
          &f);
    paint(p, (struct bounds){right, top, b.x1, SAC_MIN(bottom, b.y1)}, cover_frame, &f);
    paint(p, (struct bounds){b.x0, bottom, b.x1, b.y1}, cover_frame, &f);
}

/* ---- strokes: lines and text ---- */

struct segment {
    float x0, y0, x1, y1; /* pixel centres are at .5 */
};
enum { SEGMENTS_MAX = 48 };
struct strokes {
    struct segment segment[SEGMENTS_MAX];
    int            count;
    float          radius;
};

/* Pixels of row y that the segment may touch; the rest of the row needs no distance. */
static void segment_span(const struct segment *s, float radius, float y, float *begin, float *end)
{
    float reach = radius + 1.0f, dy = s->y1 - s->y0, t0 = 0.0f, t1 = 1.0f;
    if (fabsf(dy) > 1e-3f) {
        float a = (y - reach - s->y0) / dy, b = (y + reach - s->y0) / dy;
        t0 = SAC_MAX(t0, SAC_MIN(a, b));
        t1 = SAC_MIN(t1, SAC_MAX(a, b));
    }
    float xa = s->x0 + (s->x1 - s->x0) * t0, xb = s->x0 + (s->x1 - s->x0) * t1;
    *begin = t0 > t1 ? 1.0f : SAC_MIN(xa, xb) - reach;
    *end = t0 > t1 ? 0.0f : SAC_MAX(xa, xb) + reach;
}

static float distance_to(const struct segment *s, float x, float y)
{
    float dx = s->x1 - s->x0, dy = s->y1 - s->y0, length2 = dx * dx + dy * dy;
    float t = length2 > 0 ? ((x - s->x0) * dx + (y - s->y0) * dy) / length2 : 0.0f;
    t = SAC_CLAMP(t, 0.0f, 1.0f);
    float ex = x - s->x0 - t * dx, ey = y - s->y0 - t * dy;
    return sqrtf(ex * ex + ey * ey);
}

/* Round caps and joints; a pixel at the edge is covered by its distance, which smooths it. */
static void cover_strokes(const void *shape, int y, int x, int n, uint8_t *mask)
{
    const struct strokes *s = shape;
    float                 cy = (float)y + 0.5f;
    for (int k = 0; k < s->count; k++) {
        float begin, end;
        segment_span(&s->segment[k], s->radius, cy, &begin, &end);
        int from = SAC_MAX((int)floorf(begin), x), to = SAC_MIN((int)ceilf(end), x + n);
        for (int i = from; i < to; i++) {
            float cover = s->radius + 0.5f - distance_to(&s->segment[k], (float)i + 0.5f, cy);
            int   level = (int)(SAC_CLAMP(cover, 0.0f, 1.0f) * 255.0f + 0.5f);
            mask[i - x] = (uint8_t)SAC_MAX(mask[i - x], level);
        }
    }
}

static void paint_strokes(const struct painter *p, const struct strokes *s)
{
    if (!s->count)
        return;
    struct segment all = s->segment[0];
    all = (struct segment){SAC_MIN(all.x0, all.x1), SAC_MIN(all.y0, all.y1),
                           SAC_MAX(all.x0, all.x1), SAC_MAX(all.y0, all.y1)};
    for (int k = 1; k < s->count; k++) {
        const struct segment *g = &s->segment[k];
        all.x0 = SAC_MIN(all.x0, SAC_MIN(g->x0, g->x1));
        all.y0 = SAC_MIN(all.y0, SAC_MIN(g->y0, g->y1));
        all.x1 = SAC_MAX(all.x1, SAC_MAX(g->x0, g->x1));
        all.y1 = SAC_MAX(all.y1, SAC_MAX(g->y0, g->y1));
    }
    float reach = s->radius + 1.0f;
    paint(p,
          (struct bounds){(int)floorf(all.x0 - reach), (int)floorf(all.y0 - reach),
                          (int)ceilf(all.x1 + reach), (int)ceilf(all.y1 + reach)},
          cover_strokes, s);
}

static void draw_line(const struct painter *p, const struct sac_rect *r, int thickness)
{
    struct strokes s = {.count = 1, .radius = (float)thickness * 0.5f};
    s.segment[0] = (struct segment){SAC_CLAMP(r->x0, -1e6f, 1e6f), SAC_CLAMP(r->y0, -1e6f, 1e6f),
                                    SAC_CLAMP(r->x1, -1e6f, 1e6f), SAC_CLAMP(r->y1, -1e6f, 1e6f)};
    paint_strokes(p, &s);
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
        if (dot && s->count < SEGMENTS_MAX)
            s->segment[s->count++] = (struct segment){x, y, x, y};
        for (at += 2; *at && *at != ' '; at += 2) {
            float to_x = glyph_x(at[0], left, unit), to_y = glyph_y(at[1], top, unit);
            if (s->count < SEGMENTS_MAX)
                s->segment[s->count++] = (struct segment){x, y, to_x, to_y};
            x = to_x;
            y = to_y;
        }
    }
}

static void draw_text(const struct painter *p, const struct sac_shape *shape)
{
    float          unit = (float)shape->thickness / SAC_FONT_CELL_HEIGHT;
    float          left = (float)pixel_of(shape->rect.x0), top = (float)pixel_of(shape->rect.y0);
    struct strokes s = {.radius = fmaxf(0.6f, 0.9f * unit)};
    for (const char *c = shape->text; c && *c; c++) {
        glyph_strokes(&s, *c, left, top, unit);
        paint_strokes(p, &s);
        left += sac_font_advance(shape->thickness);
        if (left > (float)p->frame->width)
            break;
    }
}

/* ---- colour ---- */

static void painter_init(struct painter *p, sac_frame *frame, const struct sac_shape *shape)
{
    const struct sac_colour c = shape->colour;
    *p = (struct painter){.frame = frame,
                          .sample = {c.r, c.g, c.b},
                          .alpha = (int)(SAC_CLAMP(shape->alpha, 0.0f, 1.0f) * 256.0f + 0.5f)};
    if (frame->format == SAC_PIXEL_RGB24)
        return;
    struct sac_luma_weights k = sac_luma_weights_of(frame->matrix);
    struct sac_colour_map   m = sac_colour_map_of(frame);
    double                  y = k.r * c.r + k.g * c.g + k.b * c.b;
    bool                    grey = frame->format == SAC_PIXEL_GRAY8;
    double value[3] = {grey ? y : y / m.y_scale + m.y_zero, (c.b - y) / m.b_u + m.c_zero,
                       (c.r - y) / m.r_v + m.c_zero};
    for (int i = 0; i < 3; i++)
        p->sample[i] = frame->format == SAC_PIXEL_P010
                           ? (int)SAC_MIN(lrint(value[i] * 4), 1023) << 6
                           : (int)SAC_MIN(lrint(value[i]), 255);
}

sac_result sac_cpu_draw(struct sac_device *dev, struct sac_stream *stream, sac_frame *frame,
                        const struct sac_shape *shapes, int n)
{
    (void)dev;
    (void)stream; /* the CPU's runs at once, in the caller's thread: shapes are small */
    for (int i = 0; i < n; i++) {
        const struct sac_shape *s = &shapes[i];
        struct painter          p;
        painter_init(&p, frame, s);
        switch (s->kind) {
        case SAC_SHAPE_BOX: draw_box(&p, &s->rect, SAC_MAX(s->thickness, 1)); break;
        case SAC_SHAPE_LINE: draw_line(&p, &s->rect, SAC_MAX(s->thickness, 1)); break;
        case SAC_SHAPE_TEXT: draw_text(&p, s); break;
        case SAC_SHAPE_FILL: draw_fill(&p, &s->rect); break;
        }
    }
    return SAC_OK;
}
