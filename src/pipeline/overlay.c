/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/search.h"
#include "pipeline/overlay.h"

/* Enough for a smooth curve; a longer trail has its points further apart in time. */
enum { TRAIL_POINTS = 48 };

struct sac_trail {
    int64_t id;
    int     first, count; /* ring */
    struct point {
        float   x, y;
        int64_t us;
    } points[TRAIL_POINTS];
};

void sac_overlay_finish(struct sac_overlay *overlay)
{
    for (size_t i = 0; i < overlay->trail_made; i++)
        sac_free(overlay->trails[i]);
    sac_free(overlay->trails);
    sac_free(overlay->shapes);
    sac_free(overlay->texts);
    *overlay = (struct sac_overlay){0};
}

/* ---- trails ---- */

static struct point *point_at(struct sac_trail *trail, int i)
{
    return &trail->points[(trail->first + i) % TRAIL_POINTS];
}

static void drop_old_points(struct sac_trail *trail, int64_t before_us)
{
    while (trail->count > 0 && point_at(trail, 0)->us < before_us) {
        trail->first = (trail->first + 1) % TRAIL_POINTS;
        trail->count--;
    }
}

/* The newest point follows the object, and becomes fixed once it is a step newer than the one
 * before. */
static void add_point(struct sac_trail *trail, struct point p, int64_t step_us)
{
    if (trail->count >= 2 &&
        point_at(trail, trail->count - 1)->us - point_at(trail, trail->count - 2)->us < step_us)
        trail->count--;
    if (trail->count == TRAIL_POINTS) {
        trail->first = (trail->first + 1) % TRAIL_POINTS;
        trail->count--;
    }
    *point_at(trail, trail->count++) = p;
}

/* Trails without points are moved behind the live ones, to be reused for new ids. */
static void drop_old_trails(struct sac_overlay *o, int64_t before_us)
{
    size_t kept = 0;
    for (size_t i = 0; i < o->trail_count; i++) {
        struct sac_trail *trail = o->trails[i];
        drop_old_points(trail, before_us);
        if (trail->count == 0)
            continue;
        o->trails[i] = o->trails[kept];
        o->trails[kept++] = trail;
    }
    o->trail_count = kept;
}

static int64_t id_of(const void *trails, size_t i)
{
    return ((const struct sac_trail *const *)trails)[i]->id;
}

static struct sac_trail *trail_of(struct sac_overlay *o, int64_t id)
{
    size_t at = sac_lower_bound(o->trails, o->trail_count, id, id_of);
    if (at < o->trail_count && o->trails[at]->id == id)
        return o->trails[at];
    if (o->trail_count == o->trail_made) {
        if (!sac_grow((void **)&o->trails, &o->trail_capacity, o->trail_made + 1,
                      sizeof *o->trails))
            return NULL;
        o->trails[o->trail_made] = sac_new(struct sac_trail);
        if (!o->trails[o->trail_made])
            return NULL;
        o->trail_made++;
    }
    struct sac_trail *trail = o->trails[o->trail_count];
    memmove(&o->trails[at + 1], &o->trails[at], (o->trail_count - at) * sizeof *o->trails);
    o->trails[at] = trail;
    o->trail_count++;
    trail->id = id;
    trail->first = trail->count = 0;
    return trail;
}

static bool extend_trails(struct sac_overlay *o, const struct sac_track *tracks, size_t n,
                          int64_t pts_us)
{
    drop_old_trails(o, pts_us - o->trail_us);
    for (size_t i = 0; i < n; i++) {
        const struct sac_track *t = &tracks[i];
        struct sac_trail       *trail = trail_of(o, t->id);
        if (!trail)
            return false;
        /* The middle of the bottom edge: where an object stands in the scene. */
        add_point(trail, (struct point){(t->x0 + t->x1) / 2, t->y1, pts_us},
                  o->trail_us / (TRAIL_POINTS - 1));
    }
    return true;
}

/* ---- shapes ---- */

static void add_shape(struct sac_overlay *o, struct sac_shape shape)
{
    o->shapes[o->shape_count++] = shape; /* reserved by build */
}

static void add_trail(struct sac_overlay *o, struct sac_trail *trail, int64_t now_us, int thickness)
{
    struct sac_colour colour = sac_colour_of_id(trail->id);
    for (int i = 0; i + 1 < trail->count; i++) {
        const struct point *a = point_at(trail, i), *b = point_at(trail, i + 1);
        float               age = (float)(now_us - b->us) / (float)o->trail_us;
        add_shape(o, (struct sac_shape){.kind = SAC_SHAPE_LINE,
                                        .rect = {a->x, a->y, b->x, b->y},
                                        .colour = colour,
                                        .alpha = SAC_CLAMP(0.9f - 0.7f * age, 0.0f, 1.0f),
                                        .thickness = thickness});
    }
}

static void append(char *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void append(char *out, const char *fmt, ...)
{
    const size_t used = strlen(out);
    va_list      ap;
    va_start(ap, fmt);
    vsnprintf(out + used, SAC_LABEL_BYTES - used, fmt, ap);
    va_end(ap);
}

/* "7 person 0.93", or the parts of it that are asked for. */
static void print_label(const struct sac_overlay *o, const struct sac_track *t,
                        char out[SAC_LABEL_BYTES])
{
    const bool  wants_class = (o->labels & SAC_LABEL_CLASS) && o->class_name;
    const char *name = wants_class ? o->class_name(o->user, t->class_id) : NULL;
    const int   hundredths = (int)lrintf(SAC_CLAMP(t->score, 0.0f, 1.0f) * 100.0f);
    out[0] = '\0';
    if (o->labels & SAC_LABEL_ID)
        append(out, "%" PRId64, t->id);
    if (name)
        append(out, "%s%.40s", *out ? " " : "", name);
    if (o->labels & SAC_LABEL_SCORE) /* whole numbers: no locale has a comma there */
        append(out, "%s%d.%02d", *out ? " " : "", hundredths / 100, hundredths % 100);
}

/* Black on light colours, white on dark ones (BT.601 luma). */
static struct sac_colour text_colour(struct sac_colour back)
{
    int luma = (299 * back.r + 587 * back.g + 114 * back.b) / 1000;
    return luma > 140 ? (struct sac_colour){0, 0, 0} : (struct sac_colour){255, 255, 255};
}

static void add_box(struct sac_overlay *o, const struct sac_track *t, int thickness)
{
    add_shape(o, (struct sac_shape){.kind = SAC_SHAPE_BOX,
                                    .rect = {t->x0, t->y0, t->x1, t->y1},
                                    .colour = sac_colour_of_id(t->id),
                                    .alpha = 1,
                                    .thickness = thickness});
}

/* The label stands on the box, or just inside where the box begins at the frame's top; at the
 * frame's right edge it is moved in, so that all of it can be read. */
static void add_label(struct sac_overlay *o, const struct sac_track *t, const char *label,
                      int text_height, int frame_width)
{
    struct sac_colour colour = sac_colour_of_id(t->id);
    int               margin = SAC_MAX(text_height / 6, 1);
    float             height = (float)(text_height + 2 * margin);
    float             width = (float)(sac_text_width(label, text_height) + 2 * margin);
    float             x = SAC_MAX(SAC_MIN(t->x0, (float)frame_width - width), 0.0f);
    float             y = t->y0 - height < 0 ? SAC_MAX(t->y0, 0.0f) : t->y0 - height;
    struct sac_rect   back = {x, y, x + width, y + height};
    add_shape(o, (struct sac_shape){
                     .kind = SAC_SHAPE_FILL, .rect = back, .colour = colour, .alpha = 0.8f});
    add_shape(o, (struct sac_shape){
                     .kind = SAC_SHAPE_TEXT,
                     .rect = {back.x0 + (float)margin, back.y0 + (float)margin, back.x1, back.y1},
                     .colour = text_colour(colour),
                     .alpha = 1,
                     .thickness = text_height,
                     .text = label});
}

/* Shapes point to labels, so both arrays are fully allocated before the first is filled. */
static bool reserve(struct sac_overlay *o, size_t n)
{
    size_t shapes = 3 * n + o->trail_count * (TRAIL_POINTS - 1);
    o->shape_count = 0;
    return sac_grow((void **)&o->shapes, &o->shape_capacity, shapes, sizeof *o->shapes) &&
           sac_grow((void **)&o->texts, &o->text_capacity, n, sizeof *o->texts);
}

/* In proportion to the picture's shorter side, so that videos of different sizes look alike: lines
 * of 3 pixels and text of 24 in 1080p. Below about 600 pixels they do not shrink: 4:2:0 chroma
 * hides thinner lines, and smaller digits can't be read. */
enum { LINE_SHARE = 360, LINE_MIN = 2, TEXT_SHARE = 45, TEXT_MIN = 14 };

static int scaled(int side, int share, int least)
{
    return SAC_MAX((side + share / 2) / share, least);
}

bool sac_overlay_build(struct sac_overlay *o, const struct sac_track *tracks, size_t n,
                       int64_t pts_us, int width, int height)
{
    const int side = SAC_MIN(width, height);
    const int thickness = scaled(side, LINE_SHARE, LINE_MIN);
    if (o->trail_us > 0 && !extend_trails(o, tracks, n, pts_us))
        return false;
    if (!reserve(o, n))
        return false;
    for (size_t i = 0; i < o->trail_count; i++)
        add_trail(o, o->trails[i], pts_us, thickness);
    for (size_t i = 0; i < n; i++)
        add_box(o, &tracks[i], thickness);
    for (size_t i = 0; i < n; i++) { /* last, so that no neighbour's box or trail crosses a number
                                      */
        print_label(o, &tracks[i], o->texts[i]);
        if (o->texts[i][0])
            add_label(o, &tracks[i], o->texts[i], scaled(side, TEXT_SHARE, TEXT_MIN), width);
    }
    return true;
}
