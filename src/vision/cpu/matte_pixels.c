/* SPDX-License-Identifier: Apache-2.0 */
/* From the shares of cells to pixels: holes closed, lines of luma, the matte itself. */
#include <string.h>

#include "vision/cpu/matte.h"

enum { PIECE = 512 /* cells of a row at once */, SIDE_MAX = SAC_MATTE_GUIDE_MAX };

/* ---- holes ---- */

int sac_cpu_matte_hole_pieces(const struct sac_cpu_matte_work *m)
{
    return !m->style->classes && m->style->hole > 0 ? sac_cpu_matte_bands(m->y.cells) : 0;
}

/* Shares row by row. */
struct plane {
    int16_t *cell;
    int      pitch;
};

/* Windows of `before` cells before a cell and `after` behind it, each way; what lies outside the
 * grid is `nothing`. */
struct window {
    void (*take)(const int16_t *in, int n, int16_t *best);
    int     before, after;
    int16_t nothing;
};

static void window_row(const struct sac_cpu_matte_work *m, const struct window *w, struct plane in,
                       struct plane out, int x, int y)
{
    const int n = SAC_MIN(PIECE, m->x.cells - x);
    const int from = SAC_MAX(x - w->before, 0), until = SAC_MIN(x + n + w->after, m->x.cells);
    const int last = SAC_MIN(y + w->after, m->y.cells - 1);
    int16_t   room[PIECE + 2 * SAC_MATTE_HOLE_MAX];
    int16_t  *column = room + w->before; /* cell x */
    int16_t  *to = out.cell + (ptrdiff_t)y * out.pitch + x;
    for (int i = 0; i < n + w->before + w->after; i++)
        room[i] = w->nothing;
    for (int row = SAC_MAX(y - w->before, 0); row <= last; row++)
        w->take(in.cell + (ptrdiff_t)row * in.pitch + from, until - from, column + (from - x));
    memcpy(to, room, (size_t)n * sizeof *to);
    for (int i = 1; i <= w->before + w->after; i++)
        w->take(room + i, n, to);
}

static void window_band(const struct sac_cpu_matte_work *m, const struct window *w, struct plane in,
                        struct plane out, int band)
{
    const int end = SAC_MIN((band + 1) * SAC_CPU_MATTE_BAND, m->y.cells);
    for (int y = band * SAC_CPU_MATTE_BAND; y < end; y++)
        for (int x = 0; x < m->x.cells; x += PIECE)
            window_row(m, w, in, out, x, y);
}

static struct plane shares_of(const struct sac_cpu_matte_work *m)
{
    return (struct plane){m->planes.share[m->now], m->planes.share_pitch};
}

void sac_cpu_matte_dilate(void *matte, int piece, int worker)
{
    const struct sac_cpu_matte_work *m = matte;
    const int                        hole = m->style->hole;
    const struct window w = {m->rows->most, sac_matte_hole_before(hole), sac_matte_hole_after(hole),
                             INT16_MIN};
    (void)worker;
    window_band(m, &w, shares_of(m), (struct plane){m->closed[0], m->x.cells}, piece);
}

void sac_cpu_matte_erode(void *matte, int piece, int worker)
{
    const struct sac_cpu_matte_work *m = matte;
    const int                        hole = m->style->hole;
    const struct window              w = {m->rows->least, sac_matte_hole_after(hole),
                                          sac_matte_hole_before(hole), INT16_MAX};
    (void)worker;
    window_band(m, &w, (struct plane){m->closed[0], m->x.cells},
                (struct plane){m->closed[1], m->x.cells}, piece);
}

static struct plane closed_of(const struct sac_cpu_matte_work *m)
{
    return m->style->hole > 0 ? (struct plane){m->closed[1], m->x.cells} : shares_of(m);
}

/* ---- lines ---- */

int sac_cpu_matte_line_pieces(const struct sac_cpu_matte_work *m)
{
    return m->style->classes ? 0 : sac_cpu_matte_bands(m->y.cells);
}

/* Of a row of sums of columns, which begins radius cells before the first window, those of
 * windows. */
static void sum_windows(const struct sac_cpu_matte_work *m, const int32_t *column, int radius,
                        int n, int32_t *out)
{
    memcpy(out, column, (size_t)n * sizeof *out);
    for (int i = 1; i <= 2 * radius; i++)
        m->rows->add_sums(column + i, n, out);
}

static void line_row(const struct sac_cpu_matte_work *m, int x, int y)
{
    const int          radius = m->style->guide, n = SAC_MIN(PIECE, m->x.cells - x);
    const int          from = SAC_MAX(x - radius, 0), until = SAC_MIN(x + n + radius, m->x.cells);
    const int          first = SAC_MAX(y - radius, 0), last = SAC_MIN(y + radius, m->y.cells - 1);
    const double       variance = sac_matte_variance(m->style);
    const struct plane share = closed_of(m);
    int32_t            room[4][PIECE + 2 * SIDE_MAX], window[4][PIECE], *column[4], *sum[4];
    for (int k = 0; k < 4; k++) {
        memset(room[k], 0, (size_t)(n + 2 * radius) * sizeof room[k][0]);
        column[k] = room[k] + (from - x + radius);
        sum[k] = window[k];
    }
    for (int row = first; row <= last; row++)
        m->rows->add_products(m->planes.luma[m->now] + (ptrdiff_t)row * m->planes.luma_pitch + from,
                              share.cell + (ptrdiff_t)row * share.pitch + from, until - from,
                              column);
    for (int k = 0; k < 4; k++)
        sum_windows(m, room[k], radius, n, sum[k]);
    const ptrdiff_t at = (ptrdiff_t)y * m->x.cells + x;
    m->rows->lines(sum, x, n, m->x.cells, radius, last - first + 1, variance, m->slope + at,
                   m->base + at);
}

void sac_cpu_matte_lines(void *matte, int piece, int worker)
{
    const struct sac_cpu_matte_work *m = matte;
    const int                        end = SAC_MIN((piece + 1) * SAC_CPU_MATTE_BAND, m->y.cells);
    (void)worker;
    for (int y = piece * SAC_CPU_MATTE_BAND; y < end && m->style->guide > 0; y++)
        for (int x = 0; x < m->x.cells; x += PIECE)
            line_row(m, x, y);
}

static void mean_row(const struct sac_cpu_matte_work *m, int x, int y)
{
    const int       radius = m->style->guide, n = SAC_MIN(PIECE, m->x.cells - x);
    const int       from = SAC_MAX(x - radius, 0), until = SAC_MIN(x + n + radius, m->x.cells);
    const int       first = SAC_MAX(y - radius, 0), last = SAC_MIN(y + radius, m->y.cells - 1);
    const ptrdiff_t at = (ptrdiff_t)y * m->x.cells + x;
    const int32_t  *in[2] = {m->slope, m->base};
    int32_t         room[PIECE + 2 * SIDE_MAX], window[2][PIECE];
    for (int k = 0; k < 2; k++) {
        memset(room, 0, (size_t)(n + 2 * radius) * sizeof room[0]);
        for (int row = first; row <= last; row++)
            m->rows->add_sums(in[k] + (ptrdiff_t)row * m->x.cells + from, until - from,
                              room + (from - x + radius));
        sum_windows(m, room, radius, n, window[k]);
    }
    m->rows->means(window[0], window[1], x, n, m->x.cells, radius, last - first + 1,
                   sac_matte_stretch_of(m->style), m->slope_mean + at, m->base_mean + at);
}

static void level_row(const struct sac_cpu_matte_work *m, int y)
{
    const struct sac_matte_stretch stretch = sac_matte_stretch_of(m->style);
    const struct plane             share = closed_of(m);
    const ptrdiff_t                at = (ptrdiff_t)y * m->x.cells;
    for (int x = 0; x < m->x.cells; x++) {
        m->slope_mean[at + x] = 0.0f;
        m->base_mean[at + x] = sac_matte_level(share.cell[(ptrdiff_t)y * share.pitch + x], stretch);
    }
}

void sac_cpu_matte_means(void *matte, int piece, int worker)
{
    const struct sac_cpu_matte_work *m = matte;
    const int                        end = SAC_MIN((piece + 1) * SAC_CPU_MATTE_BAND, m->y.cells);
    (void)worker;
    for (int y = piece * SAC_CPU_MATTE_BAND; y < end; y++) {
        if (m->style->guide == 0)
            level_row(m, y);
        for (int x = 0; x < m->x.cells && m->style->guide > 0; x += PIECE)
            mean_row(m, x, y);
    }
}

/* ---- pixels ---- */

enum { ACROSS = 1024, DOWN = 32, CLASS_ACROSS = 256 /* pixels of a tile */ };

int sac_cpu_matte_pixel_pieces(const struct sac_cpu_matte_work *m)
{
    return (m->y.until - m->y.from + DOWN - 1) / DOWN;
}

static uint8_t *out_row(const struct sac_cpu_matte_work *m, int x, int y)
{
    const sac_frame *out = m->job->out;
    return out->plane[0] + (size_t)y * out->pitch_bytes[0] + x;
}

/* The two rows of cells that a row of pixels lies between, as wide as its tile; 0 and 1 change
 * places from row to row. */
struct wide_rows {
    int    cell[2];
    float *row[2];
};

static int place_of(const struct wide_rows *w, int cell)
{
    return w->cell[0] == cell ? 0 : w->cell[1] == cell ? 1 : -1;
}

/* Where row `cell` of cells is; *fill: it has to be made there. keep: the other one. */
static int take_row(struct wide_rows *w, int cell, int keep, bool *fill)
{
    int at = place_of(w, cell);
    *fill = at < 0;
    if (*fill) {
        at = w->cell[0] == keep ? 1 : 0;
        w->cell[at] = cell;
    }
    return at;
}

static void widen(const struct sac_cpu_matte_work *m, const float *cells, int first, int n,
                  float *out)
{
    m->rows->widen(cells, m->left + first, m->right + first, m->part + first, n, out);
}

/* n pixels from `first` of the crop on, rows y..end. */
static void matte_tile(const struct sac_cpu_matte_work *m, int first, int n, int y, int end)
{
    const bool       guided = m->style->guide > 0;
    float            slope[2][ACROSS], base[2][ACROSS];
    uint8_t          room[ACROSS] = {0};
    struct wide_rows w = {.cell = {-1, -1}};
    for (; y < end; y++) {
        const struct sac_tap tap = sac_matte_tap(&m->y, y);
        const int            cell[2] = {tap.a, tap.b};
        const float         *slopes[2], *bases[2];
        for (int i = 0; i < 2; i++) {
            bool            fill;
            const int       at = take_row(&w, cell[i], cell[1 - i], &fill);
            const ptrdiff_t row = (ptrdiff_t)cell[i] * m->x.cells;
            if (fill) {
                widen(m, m->slope_mean + row, first, n, slope[at]);
                widen(m, m->base_mean + row, first, n, base[at]);
            }
            slopes[i] = slope[at];
            bases[i] = base[at];
        }
        const uint8_t *luma = guided ? sac_cpu_matte_luma(m, m->x.from + first, y, n, room) : room;
        m->rows->pixels(slopes, bases, sac_matte_part_of(tap.second), luma, n,
                        out_row(m, m->x.from + first, y));
    }
}

/* ---- classes ---- */

/* What a number has to exceed: one number alone is class 1 from its half on. */
static float class_from(const struct sac_cpu_matte_work *m)
{
    switch (m->spec->form) {
    case SAC_MATTE_SHARE: return 0.5f;
    case SAC_MATTE_LOGIT: return 0.0f;
    default: return -INFINITY;
    }
}

struct class_tile {
    float   best[DOWN][CLASS_ACROSS];
    int32_t which[DOWN][CLASS_ACROSS];
    float   wide[2][CLASS_ACROSS];
    float   cells[SAC_MATTE_SIZE_MAX];
};

static void widen_class(const struct sac_cpu_matte_work *m, struct class_tile *t, int k, int row,
                        int first, int n, float *out)
{
    const int from = m->left[first], until = m->right[first + n - 1] + 1;
    sac_cpu_matte_numbers(m, k, from, row, until - from, t->cells + from);
    widen(m, t->cells, first, n, out);
}

/* Class k where it is likelier than those before it. */
static void exceed_class(const struct sac_cpu_matte_work *m, struct class_tile *t, int k,
                         int number, int first, int n, int y, int rows)
{
    struct wide_rows w = {.cell = {-1, -1}};
    for (int i = 0; i < rows; i++) {
        const struct sac_tap tap = sac_matte_tap(&m->y, y + i);
        const int            cell[2] = {tap.a, tap.b};
        const float         *wide[2];
        for (int j = 0; j < 2; j++) {
            bool      fill;
            const int at = take_row(&w, cell[j], cell[1 - j], &fill);
            if (fill)
                widen_class(m, t, k, cell[j], first, n, t->wide[at]);
            wide[j] = t->wide[at];
        }
        m->rows->exceed(wide[0], wide[1], sac_matte_part_of(tap.second), n, number, t->best[i],
                        t->which[i]);
    }
}

static void class_tile(const struct sac_cpu_matte_work *m, int first, int n, int y, int rows)
{
    const bool        single = m->spec->form == SAC_MATTE_SHARE || m->spec->form == SAC_MATTE_LOGIT;
    const float       from = class_from(m);
    struct class_tile t;
    for (int i = 0; i < rows; i++)
        for (int x = 0; x < n; x++) {
            t.best[i][x] = from;
            t.which[i][x] = 0;
        }
    for (int k = 0; k < (single ? 1 : m->spec->classes); k++)
        exceed_class(m, &t, k, single ? 1 : k, first, n, y, rows);
    for (int i = 0; i < rows; i++) {
        uint8_t *out = out_row(m, m->x.from + first, y + i);
        for (int x = 0; x < n; x++)
            out[x] = (uint8_t)t.which[i][x];
    }
}

static void label_tile(const struct sac_cpu_matte_work *m, int first, int n, int y, int rows)
{
    float labels[SAC_MATTE_SIZE_MAX];
    for (int i = 0; i < rows; i++) {
        uint8_t *out = out_row(m, m->x.from + first, y + i);
        sac_cpu_matte_numbers(m, 0, 0, sac_matte_cell(&m->y, y + i), m->x.cells, labels);
        for (int x = 0; x < n; x++)
            out[x] = sac_matte_class(labels[sac_matte_cell(&m->x, m->x.from + first + x)]);
    }
}

void sac_cpu_matte_pixels(void *matte, int piece, int worker)
{
    const struct sac_cpu_matte_work *m = matte;
    const int y = m->y.from + piece * DOWN, rows = SAC_MIN(DOWN, m->y.until - y);
    const int across = m->x.until - m->x.from, tile = m->style->classes ? CLASS_ACROSS : ACROSS;
    (void)worker;
    for (int x = 0; x < across; x += tile) {
        const int n = SAC_MIN(tile, across - x);
        if (!m->style->classes)
            matte_tile(m, x, n, y, y + rows);
        else if (m->spec->form == SAC_MATTE_LABEL)
            label_tile(m, x, n, y, rows);
        else
            class_tile(m, x, n, y, rows);
    }
}
