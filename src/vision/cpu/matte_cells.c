/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of a matte: their shares and their luma. */
#include <string.h>

#include "vision/cpu/matte.h"

/* ---- the network's numbers ---- */

static const float *row_of_floats(const struct sac_cpu_matte_work *m, int64_t at)
{
    return (const float *)m->tensors[m->spec->value.tensor] + at;
}

void sac_cpu_matte_numbers(const struct sac_cpu_matte_work *m, int k, int x, int y, int n,
                           float *out)
{
    const struct sac_detect_field *f = &m->spec->value;
    const int64_t cell = (int64_t)(m->y.first + y) * m->spec->width + m->x.first + x;
    const int64_t at = sac_detect_at(f, m->job->image, cell) + k * f->number;
    if (f->dtype == SAC_F32 && f->cell == 1) {
        memcpy(out, row_of_floats(m, at), (size_t)n * sizeof *out);
        return;
    }
    for (int i = 0; i < n; i++)
        out[i] = sac_detect_read(f, m->tensors, at + i * f->cell);
}

/* ---- shares ---- */

enum { PIECE = 512 /* cells of a row at once */ };

static void fill(float *row, int n, float value)
{
    for (int i = 0; i < n; i++)
        row[i] = value;
}

static void softmax(const struct sac_cpu_matte_work *m, int x, int y, int n, int16_t *out)
{
    float in[PIECE], greatest[PIECE], e[PIECE], total[PIECE], wanted[PIECE];
    fill(greatest, n, -INFINITY);
    fill(total, n, 0);
    fill(wanted, n, 0);
    for (int k = 0; k < m->spec->classes; k++) {
        sac_cpu_matte_numbers(m, k, x, y, n, in);
        m->rows->greatest(in, n, greatest);
    }
    for (int k = 0; k < m->spec->classes; k++) {
        sac_cpu_matte_numbers(m, k, x, y, n, in);
        m->rows->exponentials(in, greatest, n, e, total);
        if (sac_matte_wanted(m->spec, k))
            m->rows->add(e, n, wanted);
    }
    m->rows->part(wanted, total, n, out);
}

static void sum_shares(const struct sac_cpu_matte_work *m, int x, int y, int n, int16_t *out)
{
    float in[PIECE], wanted[PIECE];
    fill(wanted, n, 0);
    for (int k = 0; k < m->spec->classes; k++) {
        if (!sac_matte_wanted(m->spec, k))
            continue;
        sac_cpu_matte_numbers(m, k, x, y, n, in);
        m->rows->add(in, n, wanted);
    }
    m->rows->share(wanted, n, out);
}

static void share_piece(const struct sac_cpu_matte_work *m, int x, int y, int n, int16_t *out)
{
    float in[PIECE];
    switch (m->spec->form) {
    case SAC_MATTE_CLASS_LOGITS: softmax(m, x, y, n, out); return;
    case SAC_MATTE_CLASS_SHARES: sum_shares(m, x, y, n, out); return;
    default: break;
    }
    sac_cpu_matte_numbers(m, 0, x, y, n, in);
    if (m->spec->form == SAC_MATTE_LOGIT)
        m->rows->sigmoid(in, n, out);
    else if (m->spec->form == SAC_MATTE_SHARE)
        m->rows->share(in, n, out);
    else
        for (int i = 0; i < n; i++)
            out[i] = sac_matte_share_of_label(m->spec, in[i]);
}

int sac_cpu_matte_share_pieces(const struct sac_cpu_matte_work *m)
{
    return m->style->classes || m->job->image < 0 ? 0 : sac_cpu_matte_bands(m->y.cells);
}

void sac_cpu_matte_shares(void *matte, int piece, int worker)
{
    const struct sac_cpu_matte_work *m = matte;
    const int                        end = SAC_MIN((piece + 1) * SAC_CPU_MATTE_BAND, m->y.cells);
    (void)worker;
    for (int y = piece * SAC_CPU_MATTE_BAND; y < end; y++) {
        int16_t *out = m->planes.share[m->now] + (ptrdiff_t)y * m->planes.share_pitch;
        for (int x = 0; x < m->x.cells; x += PIECE)
            share_piece(m, x, y, SAC_MIN(PIECE, m->x.cells - x), out + x);
    }
}

/* ---- summary ---- */

int sac_cpu_matte_summary_pieces(const struct sac_cpu_matte_work *m)
{
    return m->job->summary && m->job->image >= 0 ? 1 : 0;
}

int sac_cpu_matte_moved_pieces(const struct sac_cpu_matte_work *m)
{
    return m->job->summary && m->job->image < 0 ? 1 : 0;
}

/* A row's cells that are inside, from the first to the last, are put into the box. */
static void go_around(struct sac_matte_summary *s, const int16_t *share, int y, int n)
{
    int first = 0, end = n;
    while (first < n && !sac_matte_inside(share[first]))
        first++;
    if (first == n)
        return;
    while (!sac_matte_inside(share[end - 1]))
        end--;
    const bool any = s->x1 > 0;
    s->x0 = any ? SAC_MIN(s->x0, first) : first;
    s->y0 = any ? s->y0 : y;
    s->x1 = SAC_MAX(s->x1, end);
    s->y1 = y + 1;
}

void sac_cpu_matte_summary(void *matte, int piece, int worker)
{
    const struct sac_cpu_matte_work *m = matte;
    struct sac_matte_summary         s = {.cells = m->x.cells * m->y.cells};
    (void)piece, (void)worker;
    for (int y = 0; y < m->y.cells; y++) {
        const int16_t *row = m->planes.share[m->now] + (ptrdiff_t)y * m->planes.share_pitch;
        s.unsure += m->rows->unsure(row, m->x.cells);
        go_around(&s, row, y, m->x.cells);
    }
    *m->job->summary = s;
}

/* ---- luma ---- */

const uint8_t *sac_cpu_matte_luma(const struct sac_cpu_matte_work *m, int x, int y, int n,
                                  uint8_t *room)
{
    const sac_frame *f = m->job->frame;
    const uint8_t   *row = f->plane[0] + (size_t)y * f->pitch_bytes[0];
    const int        step = sac_rgb_step(f->format);
    if (step)
        m->rows->luma_of_colours(row + (ptrdiff_t)step * x, f->format, n, room);
    else if (f->format == SAC_PIXEL_P010)
        m->rows->luma_of_words(row + 2 * (ptrdiff_t)x, n, room);
    else
        return row + x;
    return room;
}

enum { STRIP = 4096 /* pixels of a row at once; a cell's may be 32768 */ };

/* Sums of a cell's columns, and how many: those of its pixels that are looked at. */
static int32_t sum_of(const struct sac_matte_span *s, const uint16_t *column)
{
    const int n = sac_matte_samples(s);
    int32_t   sum = 0;
    if (s->length <= SAC_MATTE_SAMPLES)
        for (int i = 0; i < n; i++)
            sum += column[i];
    else
        for (int i = 0; i < n; i++)
            sum += column[sac_matte_sample(s, i) - s->first];
    return sum;
}

/* Cells from..until of a row, of at most a strip of pixels unless it is one. */
static void mean_strip(const struct sac_cpu_matte_work *m, int y, int from, int until)
{
    const struct sac_matte_span rows = sac_matte_span_of(&m->y, y);
    const int                   first = m->span[from].first;
    const int                   n = m->span[until - 1].first + m->span[until - 1].length - first;
    uint16_t                    column[STRIP];
    uint8_t                     room[STRIP];
    memset(column, 0, (size_t)n * sizeof *column);
    for (int i = 0; i < sac_matte_samples(&rows); i++)
        m->rows->add_bytes(sac_cpu_matte_luma(m, first, sac_matte_sample(&rows, i), n, room), n,
                           column);
    uint8_t *out = m->planes.luma[m->now] + (ptrdiff_t)y * m->planes.luma_pitch;
    for (int x = from; x < until; x++) {
        const struct sac_matte_span *s = &m->span[x];
        const float inverse = sac_matte_inverse(sac_matte_samples(s) * sac_matte_samples(&rows));
        out[x] = sac_matte_mean(sum_of(s, column + (s->first - first)), inverse);
    }
}

/* One cell that is wider than a strip. */
static void mean_cell(const struct sac_cpu_matte_work *m, int x, int y)
{
    const struct sac_matte_span rows = sac_matte_span_of(&m->y, y), *columns = &m->span[x];
    const int across = sac_matte_samples(columns), down = sac_matte_samples(&rows);
    int32_t   sum = 0;
    for (int j = 0; j < down; j++)
        for (int i = 0; i < across; i++) {
            uint8_t room;
            sum += *sac_cpu_matte_luma(m, sac_matte_sample(columns, i), sac_matte_sample(&rows, j),
                                       1, &room);
        }
    m->planes.luma[m->now][(ptrdiff_t)y * m->planes.luma_pitch + x] =
        sac_matte_mean(sum, sac_matte_inverse(across * down));
}

int sac_cpu_matte_luma_pieces(const struct sac_cpu_matte_work *m)
{
    return m->style->classes ? 0 : sac_cpu_matte_bands(m->y.cells);
}

static void mean_row(const struct sac_cpu_matte_work *m, int y)
{
    int until;
    for (int x = 0; x < m->x.cells; x = until) {
        const int limit = m->span[x].first + STRIP;
        until = x;
        while (until < m->x.cells && m->span[until].first + m->span[until].length <= limit)
            until++;
        if (until > x)
            mean_strip(m, y, x, until);
        else
            mean_cell(m, x, y), until = x + 1;
    }
}

void sac_cpu_matte_lumas(void *matte, int piece, int worker)
{
    const struct sac_cpu_matte_work *m = matte;
    const int                        end = SAC_MIN((piece + 1) * SAC_CPU_MATTE_BAND, m->y.cells);
    (void)worker;
    for (int y = piece * SAC_CPU_MATTE_BAND; y < end; y++)
        mean_row(m, y);
}
