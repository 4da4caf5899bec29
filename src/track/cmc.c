/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "device/device.h"
#include "track/cmc.h"

enum {
    WIDTH_AIM = 320,  /* of level 0: half a pixel there is a tenth of a person far away */
    CELL = 20,        /* pixels: one corner from each cell spreads them over the picture */
    BORDER = 4,
    EIGEN_MIN = 200,  /* of a corner: 9 gradients of about 5 in both directions, over the noise */
    RADIUS = 4,       /* of the patch that is followed */
    SIDE = 2 * RADIUS + 1,
    STEPS_MAX = 8,
    TRIALS = 100,     /* finds a good pair with 99.9 % where 3 of 10 matches are wrong, and more */
    INLIERS_MIN = 10
};
static const struct sac_similarity NO_MOVE = {.a = 1};
static const float STEP_DONE = 0.02f, RESIDUAL_MAX = 12.0f, AGREE_PX = 0.75f;

/* ---- the small picture ---- */

bool sac_cmc_can_read(const sac_frame *frame)
{
    bool host = !frame->device || strcmp(frame->device->ops->name, "cpu") == 0;
    return host && frame->format > SAC_PIXEL_NONE && frame->format < SAC_PIXEL_FORMAT_COUNT &&
           frame->width >= 16 && frame->height >= 16;
}

static size_t plan_pyramid(struct sac_cmc_pyramid *p, int width, int height, uint8_t *memory)
{
    size_t used = 0;
    for (int i = 0; i < SAC_CMC_LEVELS; i++) {
        p->level[i] = (struct sac_cmc_plane){memory ? memory + used : NULL, width, height};
        used += (size_t)width * (size_t)height;
        width /= 2;
        height /= 2;
    }
    return used;
}

bool sac_cmc_reserve(struct sac_cmc *cmc, const sac_frame *frame)
{
    if (frame->width == cmc->width && frame->height == cmc->height)
        return true;
    struct sac_cmc fresh = {.width = frame->width, .height = frame->height};
    fresh.shrink = SAC_MAX((frame->width + WIDTH_AIM / 2) / WIDTH_AIM, 1);
    int    w = frame->width / fresh.shrink, h = SAC_MAX(frame->height / fresh.shrink, 1);
    size_t rows = (size_t)frame->width * (sizeof *fresh.sum_row + 1);
    fresh.memory = sac_alloc(rows + 2 * plan_pyramid(&fresh.now, w, h, NULL));
    if (!fresh.memory)
        return false;
    fresh.sum_row = (uint16_t *)fresh.memory;
    fresh.luma_row = (uint8_t *)(fresh.sum_row + frame->width);
    uint8_t *planes = fresh.memory + rows;
    planes += plan_pyramid(&fresh.now, w, h, planes);
    plan_pyramid(&fresh.before, w, h, planes);
    sac_cmc_finish(cmc);
    *cmc = fresh;
    return true;
}

void sac_cmc_finish(struct sac_cmc *cmc)
{
    sac_free(cmc->memory);
    *cmc = (struct sac_cmc){0};
}

/* Brightness of a row of the frame, 8 bits a pixel; in place where the frame has it so. */
static const uint8_t *luma_of_row(const sac_frame *frame, int y, uint8_t *room)
{
    const uint8_t *row = frame->plane[0] + (size_t)y * frame->pitch_bytes[0];
    switch (frame->format) {
    case SAC_PIXEL_P010: /* little endian: the high byte comes second */
        for (int x = 0; x < frame->width; x++)
            room[x] = row[2 * x + 1];
        return room;
    case SAC_PIXEL_RGB24: /* BT.601 weights in 256ths */
        for (int x = 0; x < frame->width; x++)
            room[x] = (uint8_t)((77 * row[3 * x] + 150 * row[3 * x + 1] + 29 * row[3 * x + 2]) >> 8);
        return room;
    default:
        return row;
    }
}

/* Mean of shrink x shrink pixels. At most 16 rows are read, so that 16 bits hold their sum. */
static void shrink_frame(struct sac_cmc *cmc, const sac_frame *frame)
{
    struct sac_cmc_plane *to = &cmc->now.level[0];
    int                   k = cmc->shrink, rows = SAC_MIN(k, 16);
    for (int y = 0; y < to->height; y++) {
        memset(cmc->sum_row, 0, (size_t)frame->width * sizeof *cmc->sum_row);
        for (int i = 0; i < rows; i++) {
            const uint8_t *luma = luma_of_row(frame, y * k + i * k / rows, cmc->luma_row);
            for (int x = 0; x < frame->width; x++)
                cmc->sum_row[x] = (uint16_t)(cmc->sum_row[x] + luma[x]);
        }
        uint8_t *out = to->pixels + (size_t)y * (size_t)to->width;
        for (int x = 0; x < to->width; x++) {
            unsigned sum = 0;
            for (int i = 0; i < k; i++)
                sum += cmc->sum_row[x * k + i];
            out[x] = (uint8_t)(sum / (unsigned)(k * rows));
        }
    }
}

static void halve(const struct sac_cmc_plane *from, struct sac_cmc_plane *to)
{
    for (int y = 0; y < to->height; y++) {
        const uint8_t *a = from->pixels + (size_t)(2 * y) * (size_t)from->width;
        const uint8_t *b = a + from->width;
        uint8_t       *out = to->pixels + (size_t)y * (size_t)to->width;
        for (int x = 0; x < to->width; x++)
            out[x] = (uint8_t)((a[2 * x] + a[2 * x + 1] + b[2 * x] + b[2 * x + 1] + 2) / 4);
    }
}

static void fill_pyramid(struct sac_cmc *cmc, const sac_frame *frame)
{
    shrink_frame(cmc, frame);
    for (int i = 1; i < SAC_CMC_LEVELS; i++)
        halve(&cmc->now.level[i - 1], &cmc->now.level[i]);
}

/* ---- corners ---- */

/* The smaller eigenvalue of the summed gradient products: how well the place is pinned down in its
 * worst direction. Nine gradients two pixels apart, as blurred corners are large. */
static float corner_strength(const struct sac_cmc_plane *p, int x, int y)
{
    int            xx = 0, xy = 0, yy = 0, w = p->width;
    const uint8_t *at = p->pixels + (size_t)(y - 2) * (size_t)w + x - 2;
    for (int j = 0; j < 3; j++, at += 2 * w) {
        for (int i = 0; i < 6; i += 2) {
            int gx = at[i + 1] - at[i - 1], gy = at[i + w] - at[i - w];
            xx += gx * gx;
            xy += gx * gy;
            yy += gy * gy;
        }
    }
    float half = (float)(xx + yy) / 2, diff = (float)(xx - yy) / 2;
    return half - sqrtf(diff * diff + (float)xy * (float)xy);
}

static bool inside_any(const struct sac_box *boxes, size_t n, float x, float y)
{
    for (size_t i = 0; i < n; i++)
        if (x >= boxes[i].x0 && x < boxes[i].x1 && y >= boxes[i].y0 && y < boxes[i].y1)
            return true;
    return false;
}

/* The best corner of a cell into m. Every second pixel is looked at: the sums overlap. */
static bool best_in_cell(const struct sac_cmc_plane *p, int left, int top, struct sac_cmc_match *m)
{
    float best = EIGEN_MIN;
    bool  found = false;
    int   right = SAC_MIN(left + CELL, p->width - BORDER);
    int   bottom = SAC_MIN(top + CELL, p->height - BORDER);
    for (int y = top; y < bottom; y += 2) {
        for (int x = left; x < right; x += 2) {
            float strength = corner_strength(p, x, y);
            if (strength <= best)
                continue;
            best = strength;
            *m = (struct sac_cmc_match){.x = (float)x, .y = (float)y};
            found = true;
        }
    }
    return found;
}

static void find_corners(struct sac_cmc *cmc, const struct sac_box *moving, size_t n)
{
    const struct sac_cmc_plane *p = &cmc->before.level[0];
    float                       k = (float)cmc->shrink;
    cmc->match_count = 0;
    for (int top = BORDER; top < p->height - BORDER; top += CELL) {
        for (int left = BORDER; left < p->width - BORDER; left += CELL) {
            struct sac_cmc_match m;
            if (cmc->match_count < SAC_CMC_POINTS && best_in_cell(p, left, top, &m) &&
                !inside_any(moving, n, (m.x + 0.5f) * k, (m.y + 0.5f) * k))
                cmc->match[cmc->match_count++] = m;
        }
    }
}

/* ---- following a corner ---- */

/* A side x side patch centred at x, y, between the pixels. false: it leaves the picture. */
static bool sample(const struct sac_cmc_plane *p, float x, float y, int side, float *out)
{
    float left = x - (float)(side / 2), top = y - (float)(side / 2);
    if (!(left >= 0 && top >= 0 && left + (float)side < (float)p->width &&
          top + (float)side < (float)p->height))
        return false;
    int   ix = (int)left, iy = (int)top;
    float fx = left - (float)ix, fy = top - (float)iy;
    float w00 = (1 - fx) * (1 - fy), w01 = fx * (1 - fy), w10 = (1 - fx) * fy, w11 = fx * fy;
    for (int j = 0; j < side; j++) {
        const uint8_t *a = p->pixels + (size_t)(iy + j) * (size_t)p->width + ix, *b = a + p->width;
        for (int i = 0; i < side; i++)
            *out++ = w00 * a[i] + w01 * a[i + 1] + w10 * b[i] + w11 * b[i + 1];
    }
    return true;
}

/* The patch around a corner with its gradients and their products' sums. */
struct patch {
    float value[SIDE * SIDE], gx[SIDE * SIDE], gy[SIDE * SIDE];
    float xx, xy, yy;
};

static bool cut_patch(const struct sac_cmc_plane *p, float x, float y, struct patch *out)
{
    enum { WIDE = SIDE + 2 };
    float wide[WIDE * WIDE];
    if (!sample(p, x, y, WIDE, wide))
        return false;
    out->xx = out->xy = out->yy = 0;
    for (int j = 0; j < SIDE; j++) {
        for (int i = 0; i < SIDE; i++) {
            const float *c = wide + (j + 1) * WIDE + i + 1;
            float        gx = (c[1] - c[-1]) / 2, gy = (c[WIDE] - c[-WIDE]) / 2;
            out->value[j * SIDE + i] = *c;
            out->gx[j * SIDE + i] = gx;
            out->gy[j * SIDE + i] = gy;
            out->xx += gx * gx;
            out->xy += gx * gy;
            out->yy += gy * gy;
        }
    }
    return true;
}

/* Gauss-Newton steps of the shift (*dx, *dy) on one level. Returns the mean difference of grey that
 * is left, or a negative number where the patch leaves the picture or has no structure. */
static float follow(const struct sac_cmc_plane *from, const struct sac_cmc_plane *to, float x,
                    float y, float *dx, float *dy)
{
    struct patch p;
    float        now[SIDE * SIDE], residual = 0;
    if (!cut_patch(from, x, y, &p))
        return -1;
    float det = p.xx * p.yy - p.xy * p.xy;
    if (det < 1)
        return -1;
    for (int step = 0; step < STEPS_MAX; step++) {
        if (!sample(to, x + *dx, y + *dy, SIDE, now))
            return -1;
        float ex = 0, ey = 0;
        residual = 0;
        for (int i = 0; i < SIDE * SIDE; i++) {
            float off = p.value[i] - now[i];
            ex += off * p.gx[i];
            ey += off * p.gy[i];
            residual += fabsf(off);
        }
        float sx = (p.yy * ex - p.xy * ey) / det, sy = (p.xx * ey - p.xy * ex) / det;
        *dx += sx;
        *dy += sy;
        if (fabsf(sx) < STEP_DONE && fabsf(sy) < STEP_DONE)
            break;
    }
    return residual / (SIDE * SIDE);
}

/* From the smallest level, where large moves are small, to the largest. */
static bool follow_corner(const struct sac_cmc *cmc, struct sac_cmc_match *m)
{
    float dx = 0, dy = 0, residual = -1;
    for (int i = SAC_CMC_LEVELS - 1; i >= 0; i--) {
        float scale = 1.0f / (float)(1 << i);
        /* centres of pixels: level i's pixel 0 covers 2^i pixels of level 0 */
        float x = (m->x + 0.5f) * scale - 0.5f, y = (m->y + 0.5f) * scale - 0.5f;
        float lx = dx * scale, ly = dy * scale;
        residual = follow(&cmc->before.level[i], &cmc->now.level[i], x, y, &lx, &ly);
        if (residual >= 0) {
            dx = lx / scale;
            dy = ly / scale;
        }
    }
    m->to_x = m->x + dx;
    m->to_y = m->y + dy;
    return residual >= 0 && residual < RESIDUAL_MAX;
}

static void follow_corners(struct sac_cmc *cmc)
{
    int kept = 0;
    for (int i = 0; i < cmc->match_count; i++) {
        struct sac_cmc_match m = cmc->match[i];
        if (follow_corner(cmc, &m))
            cmc->match[kept++] = m;
    }
    cmc->match_count = kept;
}

/* ---- the motion that most agree on ---- */

/* Least squares over the matches that `use` names: rotation and scale about the centroids. */
static bool fit(const struct sac_cmc_match *m, const int *use, int n, struct sac_similarity *out)
{
    double x = 0, y = 0, u = 0, v = 0, dot = 0, cross = 0, spread = 0;
    for (int i = 0; i < n; i++) {
        x += m[use[i]].x;
        y += m[use[i]].y;
        u += m[use[i]].to_x;
        v += m[use[i]].to_y;
    }
    x /= n, y /= n, u /= n, v /= n;
    for (int i = 0; i < n; i++) {
        double px = m[use[i]].x - x, py = m[use[i]].y - y;
        double qx = m[use[i]].to_x - u, qy = m[use[i]].to_y - v;
        dot += px * qx + py * qy;
        cross += px * qy - py * qx;
        spread += px * px + py * py;
    }
    if (spread < 1)
        return false;
    double a = dot / spread, b = cross / spread;
    *out = (struct sac_similarity){a, b, u - a * x + b * y, v - b * x - a * y};
    return true;
}

static int agreeing(const struct sac_cmc *cmc, const struct sac_similarity *s, int *use)
{
    int n = 0;
    for (int i = 0; i < cmc->match_count; i++) {
        const struct sac_cmc_match *m = &cmc->match[i];
        double                      ex = s->a * m->x - s->b * m->y + s->tx - m->to_x;
        double                      ey = s->b * m->x + s->a * m->y + s->ty - m->to_y;
        if (ex * ex + ey * ey < AGREE_PX * AGREE_PX)
            use[n++] = i;
    }
    return n;
}

static bool plausible(const struct sac_similarity *s)
{
    double scale = hypot(s->a, s->b);
    return scale > 0.8 && scale < 1.25 && s->a > 0.8 * scale;
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Random pairs of matches propose motions; the one with the most agreement is refined. */
static struct sac_similarity agree(const struct sac_cmc *cmc)
{
    struct sac_similarity best = NO_MOVE, s;
    int                   use[SAC_CMC_POINTS], most = 0, n = cmc->match_count;
    uint32_t              seed = 1; /* always the same: runs can be repeated */
    if (n < INLIERS_MIN)
        return best;
    for (int trial = 0; trial < TRIALS; trial++) {
        int pair[2] = {(int)(next_random(&seed) % (uint32_t)n), (int)(next_random(&seed) % (uint32_t)n)};
        if (!fit(cmc->match, pair, 2, &s) || !plausible(&s))
            continue;
        int count = agreeing(cmc, &s, use);
        if (count > most) {
            most = count;
            best = s;
        }
    }
    for (int round = 0; round < 2; round++) {
        most = agreeing(cmc, &best, use);
        if (most < INLIERS_MIN || most * 5 < n * 2 || !fit(cmc->match, use, most, &best) ||
            !plausible(&best))
            return NO_MOVE;
    }
    return best;
}

/* From pixels of level 0, counted from their centres, to pixels of the frame. */
static struct sac_similarity to_frame(struct sac_similarity s, int shrink)
{
    double c = 0.5;
    s.tx = (s.tx + c - s.a * c + s.b * c) * shrink;
    s.ty = (s.ty + c - s.b * c - s.a * c) * shrink;
    return s;
}

struct sac_similarity sac_cmc_next(struct sac_cmc *cmc, const sac_frame *frame,
                                   const struct sac_box *moving, size_t n)
{
    struct sac_similarity  move = NO_MOVE;
    struct sac_cmc_pyramid former = cmc->now;
    cmc->now = cmc->before;
    cmc->before = former;
    fill_pyramid(cmc, frame);
    if (cmc->has_before) {
        find_corners(cmc, moving, n);
        follow_corners(cmc);
        move = to_frame(agree(cmc), cmc->shrink);
    }
    cmc->has_before = true;
    return move;
}
