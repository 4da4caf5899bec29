/* SPDX-License-Identifier: Apache-2.0 */
/* The reference for camera motion, see vision/camera.h. */
#include "vision/camera.h"
#include "vision/cpu/cpu.h"

/* ---- the small picture ---- */

enum { STRIP = 2048 /* columns of a frame at once */ };

/* Brightness of some columns of a row, 8 bits a pixel; in place where the frame has it so. */
static const uint8_t *luma_of_row(const sac_frame *f, int x, int y, int n, uint8_t *room)
{
    const uint8_t *row = f->plane[0] + (size_t)y * f->pitch_bytes[0];
    if (f->format != SAC_PIXEL_P010 && !sac_rgb_step(f->format))
        return row + x;
    for (int i = 0; i < n; i++)
        room[i] = (uint8_t)sac_camera_luma(row, f->format, x + i);
    return room;
}

/* Pixels from..until of a row of level 0: means of shrink x shrink pixels. */
static void shrink_strip(const struct sac_camera_job *job, int y, int from, int until)
{
    const int k = job->shrink, rows = sac_camera_rows(k), n = (until - from) * k;
    uint16_t  sum[STRIP] = {0};
    uint8_t   room[STRIP];
    for (int i = 0; i < rows; i++) {
        const uint8_t *luma = luma_of_row(job->frame, from * k, sac_camera_row(y, i, k), n, room);
        for (int x = 0; x < n; x++)
            sum[x] = (uint16_t)(sum[x] + luma[x]);
    }
    const struct sac_camera_plane *to = &job->now.level[0];
    uint8_t                       *out = to->pixels + (size_t)y * (size_t)to->width;
    for (int x = from; x < until; x++) {
        unsigned total = 0;
        for (int i = 0; i < k; i++)
            total += sum[(x - from) * k + i];
        out[x] = (uint8_t)(total / (unsigned)(k * rows));
    }
}

static void halve(const struct sac_camera_plane *from, const struct sac_camera_plane *to)
{
    for (int y = 0; y < to->height; y++) {
        const uint8_t *above = from->pixels + (size_t)(2 * y) * (size_t)from->width;
        uint8_t       *out = to->pixels + (size_t)y * (size_t)to->width;
        for (int x = 0; x < to->width; x++)
            out[x] = sac_camera_halve(above, above + from->width, x);
    }
}

static void fill_pyramid(const struct sac_camera_job *job)
{
    const struct sac_camera_plane *level = job->now.level;
    const int                      strip = STRIP / job->shrink;
    for (int y = 0; y < level->height; y++)
        for (int x = 0; x < level->width; x += strip)
            shrink_strip(job, y, x, SAC_MIN(x + strip, level->width));
    for (int i = 1; i < SAC_CAMERA_LEVELS; i++)
        halve(&level[i - 1], &level[i]);
}

/* ---- boxes ---- */

/* The first pixel whose centre is not below an edge. */
static int16_t first_from(float edge, int shrink)
{
    return (int16_t)SAC_CLAMP(ceil((double)edge / shrink - 0.5), 0, INT16_MAX);
}

struct sac_camera_box sac_camera_box_of(const struct sac_rect *rect, int shrink)
{
    return (struct sac_camera_box){first_from(rect->x0, shrink), first_from(rect->y0, shrink),
                                   first_from(rect->x1, shrink), first_from(rect->y1, shrink)};
}

/* ---- corners ---- */

/* The best corner of a cell. Every second pixel is looked at: the sums overlap. */
static bool best_in_cell(const struct sac_camera_plane *p, int left, int top,
                         struct sac_camera_match *m)
{
    float best = SAC_CAMERA_EIGEN_MIN;
    bool  found = false;
    int   right = SAC_MIN(left + SAC_CAMERA_CELL, p->width - SAC_CAMERA_BORDER);
    int   bottom = SAC_MIN(top + SAC_CAMERA_CELL, p->height - SAC_CAMERA_BORDER);
    for (int y = top; y < bottom; y += 2) {
        for (int x = left; x < right; x += 2) {
            float strength = sac_camera_strength(p, x, y);
            if (strength <= best)
                continue;
            best = strength;
            *m = (struct sac_camera_match){.x = (float)x, .y = (float)y};
            found = true;
        }
    }
    return found;
}

/* The corner of a cell, of those that lie in rows. */
static bool find_corner(const struct sac_camera_plane *p, int cell, struct sac_camera_match *m)
{
    const int across = sac_camera_cells(p->width);
    return best_in_cell(p, SAC_CAMERA_BORDER + cell % across * SAC_CAMERA_CELL,
                        SAC_CAMERA_BORDER + cell / across * SAC_CAMERA_CELL, m);
}

static int find_corners(const struct sac_camera_job *job, struct sac_camera_match *match)
{
    const struct sac_camera_plane *p = &job->before.level[0];
    const int                      cells = sac_camera_cells_of(&job->before);
    int                            n = 0;
    for (int i = 0; i < cells && n < SAC_CAMERA_POINTS; i++) {
        struct sac_camera_match *m = &match[n];
        if (find_corner(p, i, m) &&
            !sac_camera_moves(job->moving, job->moving_count, (int)m->x, (int)m->y))
            n++;
    }
    return n;
}

/* ---- following a corner ---- */

static bool sample(const struct sac_camera_plane *p, float x, float y, int side, float *out)
{
    struct sac_camera_window w;
    if (!sac_camera_window_of(p, x, y, side, &w))
        return false;
    for (int j = 0; j < side; j++)
        for (int i = 0; i < side; i++)
            *out++ = sac_camera_pixel(&w, i, j);
    return true;
}

/* The patch around a corner with its gradients. */
struct patch {
    float value[SAC_CAMERA_PATCH], gx[SAC_CAMERA_PATCH], gy[SAC_CAMERA_PATCH];
};

static bool cut_patch(const struct sac_camera_plane *p, float x, float y, struct patch *out,
                      struct sac_camera_sums *s)
{
    enum { SIDE = SAC_CAMERA_SIDE, WIDE = SAC_CAMERA_WIDE };
    float wide[WIDE * WIDE];
    if (!sample(p, x, y, WIDE, wide))
        return false;
    *s = (struct sac_camera_sums){0};
    for (int j = 0; j < SIDE; j++) {
        for (int i = 0; i < SIDE; i++) {
            const float *c = wide + (j + 1) * WIDE + i + 1;
            float        gx = (c[1] - c[-1]) / 2, gy = (c[WIDE] - c[-WIDE]) / 2;
            out->value[j * SIDE + i] = *c;
            out->gx[j * SIDE + i] = gx;
            out->gy[j * SIDE + i] = gy;
            s->xx += gx * gx;
            s->xy += gx * gy;
            s->yy += gy * gy;
        }
    }
    return true;
}

/* Gauss-Newton steps of the spot's move. Returns the mean difference of grey that is left, or a
 * negative number where the patch leaves the picture or has no structure. */
static float follow(const struct sac_camera_plane *from, const struct sac_camera_plane *to,
                    struct sac_camera_spot *at)
{
    struct patch           p;
    struct sac_camera_sums s;
    float                  now[SAC_CAMERA_PATCH], det;
    if (!cut_patch(from, at->x, at->y, &p, &s) || !sac_camera_pinned(&s, &det))
        return -1;
    for (int step = 0; step < SAC_CAMERA_STEPS; step++) {
        if (!sample(to, at->x + at->dx, at->y + at->dy, SAC_CAMERA_SIDE, now))
            return -1;
        s.ex = s.ey = s.residual = 0;
        for (int i = 0; i < SAC_CAMERA_PATCH; i++) {
            float off = p.value[i] - now[i];
            s.ex += off * p.gx[i];
            s.ey += off * p.gy[i];
            s.residual += fabsf(off);
        }
        if (sac_camera_step(&s, det, &at->dx, &at->dy))
            break;
    }
    return s.residual / SAC_CAMERA_PATCH;
}

static bool follow_corner(const struct sac_camera_job *job, struct sac_camera_match *m)
{
    struct sac_camera_way way = sac_camera_way_begin();
    for (int i = SAC_CAMERA_LEVELS - 1; i >= 0; i--) {
        struct sac_camera_spot spot = sac_camera_spot_of(&way, m, i);
        const float            residual = follow(&job->before.level[i], &job->now.level[i], &spot);
        sac_camera_way_take(&way, &spot, i, residual);
    }
    return sac_camera_way_end(&way, m);
}

static int follow_corners(const struct sac_camera_job *job, struct sac_camera_match *match, int n)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        struct sac_camera_match m = match[i];
        if (follow_corner(job, &m))
            match[kept++] = m;
    }
    return kept;
}

/* ---- the motion that most agree on ---- */

static int agreeing(const struct sac_camera_match *match, int n, const struct sac_camera_move *s,
                    int *use)
{
    int agreed = 0;
    for (int i = 0; i < n; i++)
        if (sac_camera_agrees(s, &match[i]))
            use[agreed++] = i;
    return agreed;
}

/* Random pairs of matches propose motions; the one with the most agreement is refined. */
static struct sac_camera_move agree(const struct sac_camera_match *match, int n)
{
    const struct sac_camera_move still = sac_camera_still(n);
    struct sac_camera_move       best = still, s = still;
    int                          use[SAC_CAMERA_POINTS], pair[2], most = 0;
    uint32_t                     seed = SAC_CAMERA_SEED;
    if (n < SAC_CAMERA_INLIERS_MIN)
        return still;
    for (int trial = 0; trial < SAC_CAMERA_TRIALS; trial++) {
        sac_camera_pair(&seed, n, pair);
        if (!sac_camera_fit(match, pair, 2, &s) || !sac_camera_plausible(&s))
            continue;
        int count = agreeing(match, n, &s, use);
        if (count > most) {
            most = count;
            best = s;
        }
    }
    for (int round = 0; round < 2; round++) {
        most = agreeing(match, n, &best, use);
        if (!sac_camera_is_most(most, n) || !sac_camera_fit(match, use, most, &best) ||
            !sac_camera_plausible(&best))
            return still;
    }
    best.agreed = most;
    return best;
}

void sac_camera_on_host(const struct sac_camera_job *job, struct sac_camera_move *out)
{
    struct sac_camera_match match[SAC_CAMERA_POINTS];
    fill_pyramid(job);
    *out = sac_camera_still(0);
    if (job->has_before)
        *out = agree(match, follow_corners(job, match, find_corners(job, match)));
}

int sac_camera_corners_on_host(const struct sac_camera_job *job, struct sac_camera_corner *out)
{
    const int cells = job->has_before ? sac_camera_cells_of(&job->before) : 0;
    int       n = 0;
    fill_pyramid(job);
    for (int i = 0; i < cells; i++) {
        struct sac_camera_match m;
        if (!find_corner(&job->before.level[0], i, &m))
            continue;
        const bool found = follow_corner(job, &m);
        out[n++] = (struct sac_camera_corner){.x = (int16_t)m.x,
                                              .y = (int16_t)m.y,
                                              .found = found,
                                              .to_x = found ? m.to_x : 0,
                                              .to_y = found ? m.to_y : 0};
    }
    return n;
}

/* Of the first corners that count, those that were found again. */
void sac_camera_agree_on_host(const struct sac_camera_corners *corners,
                              const struct sac_camera_box *moving, int moving_count,
                              struct sac_camera_move *out)
{
    struct sac_camera_match match[SAC_CAMERA_POINTS];
    int                     seen = 0, n = 0;
    for (int i = 0; i < corners->count && seen < SAC_CAMERA_POINTS; i++) {
        const struct sac_camera_corner *c = &corners->at[i];
        if (sac_camera_moves(moving, moving_count, c->x, c->y))
            continue;
        seen++;
        if (c->found)
            match[n++] = (struct sac_camera_match){c->x, c->y, c->to_x, c->to_y};
    }
    *out = agree(match, n);
}

sac_result sac_cpu_camera(struct sac_device *dev, struct sac_device_stream *stream,
                          const struct sac_camera_job *jobs, int n, struct sac_camera_move *out)
{
    (void)dev, (void)stream; /* the CPU's runs at once */
    for (int i = 0; i < n; i++)
        sac_camera_on_host(&jobs[i], &out[i]);
    return SAC_OK;
}
