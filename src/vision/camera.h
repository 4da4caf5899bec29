/* SPDX-License-Identifier: Apache-2.0 */
/* How the background moved from one frame to the next, by the frames' brightness alone.
 *
 * Corners of the former frame, outside the boxes of moving objects, are looked for in the new one
 * on a picture about 320 pixels wide, and the similarity that most of them agree on is the
 * camera's. This file has the arithmetic that the host and the CUDA kernels share: integers for
 * pictures and corners; floats and doubles are added in one order by both, so the results agree to
 * the last bit.
 * Source   J. Shi and C. Tomasi, "Good Features to Track", 1994; J.-Y. Bouguet, "Pyramidal
 *          Implementation of the Lucas Kanade Feature Tracker", 2000; M. Fischler and R. Bolles,
 *          "Random Sample Consensus", 1981. */
#ifndef SAC_VISION_CAMERA_H
#define SAC_VISION_CAMERA_H

#include "vision/sample.h"

enum {
    SAC_CAMERA_LEVELS = 3,
    SAC_CAMERA_POINTS = 256,  /* corners that are followed */
    SAC_CAMERA_SIZE_MIN = 16, /* of a frame, both ways */
    SAC_CAMERA_SIZE_MAX = 32768,
    SAC_CAMERA_WIDTH_AIM = 320, /* of level 0: half a pixel there is a tenth of a person far away */
    SAC_CAMERA_CELL = 20, /* pixels: one corner from each cell spreads them over the picture */
    SAC_CAMERA_BORDER = 4,
    SAC_CAMERA_EIGEN_MIN = 200, /* of a corner: 9 gradients of about 5 in both directions, over the
                                   noise */
    SAC_CAMERA_RADIUS = 4,      /* of the patch that is followed */
    SAC_CAMERA_SIDE = 2 * SAC_CAMERA_RADIUS + 1,
    SAC_CAMERA_PATCH = SAC_CAMERA_SIDE * SAC_CAMERA_SIDE,
    SAC_CAMERA_WIDE = SAC_CAMERA_SIDE + 2, /* with the neighbours that gradients need */
    SAC_CAMERA_STEPS = 8,
    SAC_CAMERA_TRIALS = 100, /* finds a good pair with 99.9 % where 3 of 10 matches are wrong, and
                                more */
    SAC_CAMERA_INLIERS_MIN = 10,
    SAC_CAMERA_SEED = 1
};
#define SAC_CAMERA_STEP_DONE    0.02f
#define SAC_CAMERA_RESIDUAL_MAX 12.0f
#define SAC_CAMERA_AGREE_PX     0.75f

struct sac_camera_plane {
    uint8_t *pixels; /* [height,width] */
    int      width, height;
};
/* The same picture at full, half and quarter size. */
struct sac_camera_pyramid {
    struct sac_camera_plane level[SAC_CAMERA_LEVELS];
};

/* A box in pixels of level 0: those whose centres lie in it, x1 and y1 not among them. */
struct sac_camera_box {
    int16_t x0, y0, x1, y1;
};

/* A frame of one stream. The pyramids are memory of the device (sac_camera_pyramid_of); the two
 * change places from frame to frame. */
struct sac_camera_job {
    const sac_frame             *frame;
    int                          shrink;      /* frame pixels per pixel of level 0 */
    struct sac_camera_pyramid    now, before; /* now is filled */
    bool                         has_before;  /* of the same size; else there is no move */
    const struct sac_camera_box *moving; /* [moving_count] of the former frame: their inside does
                                            not count. Host memory, which may be freed after the
                                            call */
    int moving_count;
};

/* x' = a x - b y + tx, y' = b x + a y + ty, in pixels of level 0 counted from their centres. */
struct sac_camera_move {
    double  a, b, tx, ty;
    int32_t matches; /* corners found again */
    int32_t agreed;  /* of them with the move; 0: too few, and there is none */
};

/* A corner of the former frame, at a pixel of level 0, and its place in the new one. */
struct sac_camera_corner {
    int16_t x, y;
    int32_t found; /* 0: it was not found again, and the next two mean nothing */
    float   to_x, to_y;
};
/* All of a frame's, wherever objects are: with any tracker's boxes they give the move. */
struct sac_camera_corners {
    const struct sac_camera_corner *at;
    int                             count, shrink; /* shrink 0: the frame has no motion */
};

/* Of a box in pixels of a frame. */
struct sac_camera_box sac_camera_box_of(const struct sac_rect *rect, int shrink);
/* One job in host memory. */
void sac_camera_on_host(const struct sac_camera_job *job, struct sac_camera_move *out);
/* The same in two steps; the first does not depend on the boxes.
 * out   [sac_camera_cells_of(&job->before)]
 * Returns how many there are. */
int  sac_camera_corners_on_host(const struct sac_camera_job *job, struct sac_camera_corner *out);
void sac_camera_agree_on_host(const struct sac_camera_corners *corners,
                              const struct sac_camera_box *moving, int moving_count,
                              struct sac_camera_move *out);

/* ---- the small picture ---- */

SAC_ANYWHERE int sac_camera_shrink(int width)
{
    const int shrink = (width + SAC_CAMERA_WIDTH_AIM / 2) / SAC_CAMERA_WIDTH_AIM;
    return shrink > 1 ? shrink : 1;
}

/* The planes of a pyramid for a frame's size in that memory; *bytes that they take. */
SAC_ANYWHERE struct sac_camera_pyramid sac_camera_pyramid_of(int width, int height, uint8_t *memory,
                                                             size_t *bytes)
{
    const int                 shrink = sac_camera_shrink(width);
    struct sac_camera_pyramid p;
    size_t                    used = 0;
    int                       w = width / shrink, h = height / shrink;
    for (int i = 0; i < SAC_CAMERA_LEVELS; i++) {
        p.level[i].pixels = memory ? memory + used : NULL;
        p.level[i].width = w;
        p.level[i].height = h;
        used += (size_t)w * (size_t)h;
        w /= 2;
        h /= 2;
    }
    *bytes = used;
    return p;
}

/* Of shrink rows so many are read, evenly spread, so that 16 bits hold a column's sum. */
SAC_ANYWHERE int sac_camera_rows(int shrink)
{
    return shrink < 16 ? shrink : 16;
}

SAC_ANYWHERE int sac_camera_row(int y, int i, int shrink)
{
    return y * shrink + i * shrink / sac_camera_rows(shrink);
}

/* Brightness, 8 bits. */
SAC_ANYWHERE unsigned sac_camera_luma(const uint8_t *row, enum sac_pixel_format format, int x)
{
    const int step = sac_rgb_step(format);
    if (format == SAC_PIXEL_P010) /* little endian: the high byte comes second */
        return row[2 * x + 1];
    if (!step)
        return row[x];
    const unsigned first = sac_is_bgr(format) ? 29 : 77; /* BT.601 weights in 256ths */
    return (first * row[step * x] + 150u * row[step * x + 1] + (106 - first) * row[step * x + 2]) >>
           8;
}

SAC_ANYWHERE uint8_t sac_camera_halve(const uint8_t *above, const uint8_t *below, int x)
{
    return (uint8_t)((above[2 * x] + above[2 * x + 1] + below[2 * x] + below[2 * x + 1] + 2) / 4);
}

/* ---- corners ---- */

/* Cells along a side. */
SAC_ANYWHERE int sac_camera_cells(int size)
{
    const int inside = size - 2 * SAC_CAMERA_BORDER;
    return inside > 0 ? (inside + SAC_CAMERA_CELL - 1) / SAC_CAMERA_CELL : 0;
}

SAC_ANYWHERE int sac_camera_cells_of(const struct sac_camera_pyramid *p)
{
    return sac_camera_cells(p->level[0].width) * sac_camera_cells(p->level[0].height);
}

/* The smaller eigenvalue of the summed gradient products: how well the place is pinned down in its
 * worst direction. Nine gradients two pixels apart, as blurred corners are large. */
SAC_ANYWHERE float sac_camera_strength(const struct sac_camera_plane *p, int x, int y)
{
    const int      w = p->width;
    int            xx = 0, xy = 0, yy = 0;
    const uint8_t *at = p->pixels + (size_t)(y - 2) * (size_t)w + x - 2;
    for (int j = 0; j < 3; j++, at += 2 * w) {
        for (int i = 0; i < 6; i += 2) {
            const int gx = at[i + 1] - at[i - 1], gy = at[i + w] - at[i - w];
            xx += gx * gx;
            xy += gx * gy;
            yy += gy * gy;
        }
    }
    const float half = (float)(xx + yy) / 2, diff = (float)(xx - yy) / 2;
    return half - sqrtf(diff * diff + (float)xy * (float)xy);
}

/* Whether a pixel of level 0 lies in one of the boxes. */
SAC_ANYWHERE bool sac_camera_moves(const struct sac_camera_box *boxes, int n, int x, int y)
{
    for (int i = 0; i < n; i++)
        if (x >= boxes[i].x0 && x < boxes[i].x1 && y >= boxes[i].y0 && y < boxes[i].y1)
            return true;
    return false;
}

/* ---- following a corner ---- */

struct sac_camera_match {
    float x, y, to_x, to_y; /* pixels of level 0 */
};

/* A side x side patch centred at x, y, between the pixels. */
struct sac_camera_window {
    const uint8_t *at; /* its first pixel's upper left neighbour */
    int            width;
    float          w00, w01, w10, w11;
};

/* false: it leaves the picture. */
SAC_ANYWHERE bool sac_camera_window_of(const struct sac_camera_plane *p, float x, float y, int side,
                                       struct sac_camera_window *out)
{
    const float left = x - (float)(side / 2), top = y - (float)(side / 2);
    if (!(left >= 0 && top >= 0 && left + (float)side < (float)p->width &&
          top + (float)side < (float)p->height))
        return false;
    const int   ix = (int)left, iy = (int)top;
    const float fx = left - (float)ix, fy = top - (float)iy;
    out->at = p->pixels + (size_t)iy * (size_t)p->width + ix;
    out->width = p->width;
    out->w00 = (1 - fx) * (1 - fy);
    out->w01 = fx * (1 - fy);
    out->w10 = (1 - fx) * fy;
    out->w11 = fx * fy;
    return true;
}

SAC_ANYWHERE float sac_camera_pixel(const struct sac_camera_window *w, int i, int j)
{
    const uint8_t *a = w->at + (size_t)j * (size_t)w->width + i, *b = a + w->width;
    return w->w00 * a[0] + w->w01 * a[1] + w->w10 * b[0] + w->w11 * b[1];
}

/* Sums over a patch: of its gradients' products, and of those with what is off. */
struct sac_camera_sums {
    float xx, xy, yy, ex, ey, residual;
};

/* The patch has structure in both directions. */
SAC_ANYWHERE bool sac_camera_pinned(const struct sac_camera_sums *s, float *det)
{
    *det = s->xx * s->yy - s->xy * s->xy;
    return *det >= 1;
}

/* One Gauss-Newton step of the shift; true: it was the last. */
SAC_ANYWHERE bool sac_camera_step(const struct sac_camera_sums *s, float det, float *dx, float *dy)
{
    const float sx = (s->yy * s->ex - s->xy * s->ey) / det,
                sy = (s->xx * s->ey - s->xy * s->ex) / det;
    *dx += sx;
    *dy += sy;
    return fabsf(sx) < SAC_CAMERA_STEP_DONE && fabsf(sy) < SAC_CAMERA_STEP_DONE;
}

/* A corner's way through the levels, from the smallest, where large moves are small, to the
 * largest. */
struct sac_camera_way {
    float dx, dy;   /* the move so far, in pixels of level 0 */
    float residual; /* on the level before: mean difference of grey, negative where it could not be
                       followed */
};

/* The corner and its move on one level. */
struct sac_camera_spot {
    float x, y, dx, dy;
};

SAC_ANYWHERE struct sac_camera_way sac_camera_way_begin(void)
{
    const struct sac_camera_way way = {0, 0, -1};
    return way;
}

/* By the centres of pixels: level i's pixel 0 covers 2^i of level 0. */
SAC_ANYWHERE struct sac_camera_spot sac_camera_spot_of(const struct sac_camera_way   *way,
                                                       const struct sac_camera_match *m, int level)
{
    const float            scale = 1.0f / (float)(1 << level);
    struct sac_camera_spot spot;
    spot.x = (m->x + 0.5f) * scale - 0.5f;
    spot.y = (m->y + 0.5f) * scale - 0.5f;
    spot.dx = way->dx * scale;
    spot.dy = way->dy * scale;
    return spot;
}

/* The spot's move is that of the level now; a level that could not be followed on changes
 * nothing. */
SAC_ANYWHERE void sac_camera_way_take(struct sac_camera_way        *way,
                                      const struct sac_camera_spot *spot, int level, float residual)
{
    const float scale = 1.0f / (float)(1 << level);
    way->residual = residual;
    if (residual >= 0) {
        way->dx = spot->dx / scale;
        way->dy = spot->dy / scale;
    }
}

/* true: the corner was found again. */
SAC_ANYWHERE bool sac_camera_way_end(const struct sac_camera_way *way, struct sac_camera_match *m)
{
    m->to_x = m->x + way->dx;
    m->to_y = m->y + way->dy;
    return way->residual >= 0 && way->residual < SAC_CAMERA_RESIDUAL_MAX;
}

/* ---- the motion that most agree on ---- */

/* The mean of the places that matches are at and come to, and what the matches add to a fit about
 * it. */
struct sac_camera_centre {
    double x, y, u, v;
};
struct sac_camera_term {
    double dot, cross, spread;
};

SAC_ANYWHERE struct sac_camera_term sac_camera_term_of(const struct sac_camera_match  *m,
                                                       const struct sac_camera_centre *c)
{
    const double px = m->x - c->x, py = m->y - c->y, qx = m->to_x - c->u, qy = m->to_y - c->v;
    struct sac_camera_term t;
    t.dot = px * qx + py * qy;
    t.cross = px * qy - py * qx;
    t.spread = px * px + py * py;
    return t;
}

/* false: the matches lie in one place. */
SAC_ANYWHERE bool sac_camera_solve(const struct sac_camera_centre *c,
                                   const struct sac_camera_term *sum, struct sac_camera_move *out)
{
    if (sum->spread < 1)
        return false;
    out->a = sum->dot / sum->spread;
    out->b = sum->cross / sum->spread;
    out->tx = c->u - out->a * c->x + out->b * c->y;
    out->ty = c->v - out->b * c->x - out->a * c->y;
    return true;
}

/* Least squares over the n matches that `use` names: rotation and scale about the centroids. */
SAC_ANYWHERE bool sac_camera_fit(const struct sac_camera_match *m, const int *use, int n,
                                 struct sac_camera_move *out)
{
    struct sac_camera_centre c = {0, 0, 0, 0};
    struct sac_camera_term   sum = {0, 0, 0};
    for (int i = 0; i < n; i++) {
        c.x += m[use[i]].x;
        c.y += m[use[i]].y;
        c.u += m[use[i]].to_x;
        c.v += m[use[i]].to_y;
    }
    c.x /= n, c.y /= n, c.u /= n, c.v /= n;
    for (int i = 0; i < n; i++) {
        const struct sac_camera_term t = sac_camera_term_of(&m[use[i]], &c);
        sum.dot += t.dot;
        sum.cross += t.cross;
        sum.spread += t.spread;
    }
    return sac_camera_solve(&c, &sum, out);
}

SAC_ANYWHERE bool sac_camera_agrees(const struct sac_camera_move  *s,
                                    const struct sac_camera_match *m)
{
    const double ex = s->a * m->x - s->b * m->y + s->tx - m->to_x;
    const double ey = s->b * m->x + s->a * m->y + s->ty - m->to_y;
    return ex * ex + ey * ey < SAC_CAMERA_AGREE_PX * SAC_CAMERA_AGREE_PX;
}

SAC_ANYWHERE bool sac_camera_plausible(const struct sac_camera_move *s)
{
    const double scale = sqrt(s->a * s->a + s->b * s->b);
    return scale > 0.8 && scale < 1.25 && s->a > 0.8 * scale;
}

/* Random numbers, the same in every run. A trial takes a pair of them: matches that propose a
 * motion. */
SAC_ANYWHERE uint32_t sac_camera_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

SAC_ANYWHERE void sac_camera_pair(uint32_t *seed, int n, int pair[2])
{
    pair[0] = (int)(sac_camera_random(seed) % (uint32_t)n);
    pair[1] = (int)(sac_camera_random(seed) % (uint32_t)n);
}

/* Whether so many of n matches make a motion. */
SAC_ANYWHERE bool sac_camera_is_most(int agreed, int n)
{
    return agreed >= SAC_CAMERA_INLIERS_MIN && agreed * 5 >= n * 2;
}

SAC_ANYWHERE struct sac_camera_move sac_camera_still(int matches)
{
    struct sac_camera_move move;
    move.a = 1;
    move.b = move.tx = move.ty = 0;
    move.matches = matches;
    move.agreed = 0;
    return move;
}

#endif
