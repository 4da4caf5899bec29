/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/tasks/region.h"

#include <math.h>

/* Regions are so many eighths of the frame each way. From the second on they save little, and all
 * of it is looked at. */
enum { STEPS = 8, STEPS_MOST = 6 };
/* A region stays until it is this many times as large, each way, as a new one. */
static const float LOOSE = 1.5f;

struct place {
    int             stream_id, width, height;
    struct sac_rect now;   /* what the network sees between looks at all; empty: all */
    struct sac_rect last;  /* what it saw of the latest frame */
    struct sac_rect found; /* the people; empty: nobody, or not known */
    bool            all;   /* found is of a look at all of the frame, and not used yet */
    int             since; /* frames since such a look */
};

struct sac_region {
    enum sac_stereo stereo;
    sac_context    *ctx;
    float           margin; /* share of the people's size, on each side */
    int             every;
    struct place   *places; /* of streams, in no order */
    size_t          count, capacity;
};

sac_result sac_region_create(struct sac_job *job, struct sac_region **out)
{
    if (!job->segment->region)
        return SAC_OK;
    struct sac_region *r = *out = sac_new(struct sac_region);
    if (!r)
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for where people are");
    r->ctx = job->ctx;
    r->stereo = job->segment->stereo;
    r->margin = job->segment->region_margin;
    r->every = job->segment->region_every;
    return SAC_OK;
}

void sac_region_destroy(struct sac_region **region)
{
    if (*region)
        sac_free((*region)->places);
    sac_free(*region);
    *region = NULL;
}

static struct place *find(const struct sac_region *r, int stream_id)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->places[i].stream_id == stream_id)
            return &r->places[i];
    return NULL;
}

/* Pixels that a region lies in: of an eye, as both have one region. */
static int width_of(const struct sac_region *r, const struct sac_item *item)
{
    return r->stereo == SAC_STEREO_SBS ? item->frame->width / 2 : item->frame->width;
}

static int height_of(const struct sac_region *r, const struct sac_item *item)
{
    return r->stereo == SAC_STEREO_TB ? item->frame->height / 2 : item->frame->height;
}

/* NULL: no memory, and the whole frame is seen. */
static struct place *place_of(struct sac_region *r, const struct sac_item *item)
{
    const int     width = width_of(r, item), height = height_of(r, item);
    struct place *p = find(r, item->stream_id);
    if (!p && sac_grow((void **)&r->places, &r->capacity, r->count + 1, sizeof *r->places)) {
        p = &r->places[r->count++];
        *p = (struct place){.stream_id = item->stream_id};
    }
    if (p && (p->width != width || p->height != height))
        *p = (struct place){.stream_id = item->stream_id, .width = width, .height = height};
    return p;
}

void sac_region_forget(struct sac_region *r, int stream_id)
{
    struct place *p = r ? find(r, stream_id) : NULL;
    if (p)
        *p = r->places[--r->count];
}

/* ---- rectangles ---- */

static bool is_empty(const struct sac_rect *r)
{
    return !(r->x0 < r->x1 && r->y0 < r->y1);
}

static bool is_same(const struct sac_rect *a, const struct sac_rect *b)
{
    return (is_empty(a) && is_empty(b)) ||
           (a->x0 == b->x0 && a->y0 == b->y0 && a->x1 == b->x1 && a->y1 == b->y1);
}

static bool is_inside(const struct sac_rect *inner, const struct sac_rect *outer)
{
    return inner->x0 >= outer->x0 && inner->y0 >= outer->y0 && inner->x1 <= outer->x1 &&
           inner->y1 <= outer->y1;
}

/* By a share of its longer side, within the frame. */
static struct sac_rect grown(const struct place *p, float share)
{
    const struct sac_rect *f = &p->found;
    const float            by = share * SAC_MAX(f->x1 - f->x0, f->y1 - f->y0);
    return (struct sac_rect){SAC_MAX(f->x0 - by, 0), SAC_MAX(f->y0 - by, 0),
                             SAC_MIN(f->x1 + by, (float)p->width),
                             SAC_MIN(f->y1 + by, (float)p->height)};
}

/* The begin of `length` pixels of `size` around a middle; even, as chroma is halved. */
static float begin_of(float middle, float length, int size)
{
    const float begin = SAC_CLAMP(middle - length / 2, 0.0f, (float)size - length);
    return 2 * floorf(begin / 2);
}

static struct sac_rect around(const struct place *p, float margin)
{
    const struct sac_rect r = grown(p, margin);
    const float share = SAC_MAX((r.x1 - r.x0) / (float)p->width, (r.y1 - r.y0) / (float)p->height);
    const float steps = ceilf(share * STEPS);
    if (steps > STEPS_MOST)
        return (struct sac_rect){0, 0, 0, 0};
    const float w = ceilf((float)p->width * steps / STEPS),
                h = ceilf((float)p->height * steps / STEPS);
    struct sac_rect out = {begin_of((r.x0 + r.x1) / 2, w, p->width),
                           begin_of((r.y0 + r.y1) / 2, h, p->height), 0, 0};
    out.x1 = SAC_MIN(out.x0 + w + 1, (float)p->width); /* what evenness took */
    out.y1 = SAC_MIN(out.y0 + h + 1, (float)p->height);
    return out;
}

/* ---- decisions ---- */

static bool still_fits(const struct place *p, float margin, const struct sac_rect *fresh)
{
    const struct sac_rect least = grown(p, margin / 2);
    return !is_empty(&p->now) && is_inside(&least, &p->now) &&
           (is_empty(fresh) || p->now.x1 - p->now.x0 <= LOOSE * (fresh->x1 - fresh->x0));
}

struct sac_rect sac_region_choose(struct sac_region *r, const struct sac_item *item)
{
    const struct sac_rect whole = {0, 0, 0, 0};
    struct place         *p = r ? place_of(r, item) : NULL;
    if (!p)
        return whole;
    if (item->still)
        return p->last;
    if (is_empty(&p->found) || p->since >= r->every) {
        p->since = 0;
        p->last = whole;
        return whole;
    }
    const struct sac_rect fresh = around(p, r->margin);
    p->since = is_empty(&fresh) ? 0 : p->since + 1;
    if (!still_fits(p, r->margin, &fresh))
        p->now = fresh;
    p->all = false;
    p->last = p->now;
    return p->now;
}

/* Looks arrive after others were begun: what one at all of the frame found counts until a region
 * was chosen by it, and of others only those at the region as it is now. A small network's look at
 * a frame of another size is the first that is heard of it. */
void sac_region_learn(struct sac_region *r, const struct sac_item *item, struct sac_rect seen,
                      struct sac_rect found)
{
    struct place *p = !r || item->still ? NULL
                      : is_empty(&seen) ? place_of(r, item)
                                        : find(r, item->stream_id);
    if (!p || p->width != width_of(r, item) || p->height != height_of(r, item))
        return;
    if (is_empty(&seen)) {
        p->found = found;
        p->all = true;
        p->since = 0;
    } else if (!p->all && is_same(&seen, &p->now)) {
        p->found = found;
    }
}
