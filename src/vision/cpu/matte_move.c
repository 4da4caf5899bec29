/* SPDX-License-Identifier: Apache-2.0 */
/* Where the cells of a matte were in the frame before, and what stays of their shares. */
#include <string.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "vision/cpu/matte.h"

enum { BLOCK = SAC_MATTE_BLOCK, MARGIN = SAC_MATTE_MARGIN, HALF_MARGIN = MARGIN / 2 };

/* ---- planes ---- */

int sac_cpu_matte_margin_pieces(const struct sac_cpu_matte_work *m)
{
    return m->style->classes ? 0 : 1;
}

/* The nearest cell all around the grid. */
void sac_cpu_matte_margin(void *matte, int piece, int worker)
{
    const struct sac_cpu_matte_work *m = matte;
    const ptrdiff_t                  pitch = m->planes.luma_pitch;
    const int                        width = m->x.cells, height = m->y.cells;
    uint8_t                         *first = m->planes.luma[m->now];
    (void)piece, (void)worker;
    for (int y = 0; y < height; y++) {
        uint8_t *row = first + y * pitch;
        memset(row - MARGIN, row[0], MARGIN);
        memset(row + width, row[width - 1], MARGIN);
    }
    const size_t   whole = (size_t)width + 2 * MARGIN;
    const uint8_t *last = first + (height - 1) * pitch;
    for (int y = 1; y <= MARGIN; y++) {
        memcpy(first - y * pitch - MARGIN, first - MARGIN, whole);
        memcpy(first + (height - 1 + y) * pitch - MARGIN, last - MARGIN, whole);
    }
}

static bool moves(const struct sac_cpu_matte_work *m)
{
    return !m->style->classes && m->job->state.has_before &&
           (m->style->smooth > 0 || m->job->image < 0);
}

/* Rows and columns of a plane of half size, from -HALF_MARGIN on: what a search may read. */
static int half_rows(const struct sac_cpu_matte_work *m)
{
    return sac_matte_half(m->y.cells) + 2 * HALF_MARGIN - 1;
}

int sac_cpu_matte_half_pieces(const struct sac_cpu_matte_work *m)
{
    return moves(m) ? 2 * sac_cpu_matte_bands(half_rows(m)) : 0;
}

void sac_cpu_matte_halves(void *matte, int piece, int worker)
{
    const struct sac_cpu_matte_work *m = matte;
    const int                        which = piece & 1, band = piece / 2 * SAC_CPU_MATTE_BAND;
    const int       end = SAC_MIN(band + SAC_CPU_MATTE_BAND, half_rows(m)) - HALF_MARGIN;
    const int       columns = sac_matte_half(m->x.cells) + HALF_MARGIN - 1;
    const ptrdiff_t pitch = m->planes.luma_pitch;
    (void)worker;
    for (int y = band - HALF_MARGIN; y < end; y++) {
        const uint8_t *in = m->planes.luma[m->now ^ which] + 2 * y * pitch;
        uint8_t       *out = m->half[which] + (ptrdiff_t)y * m->half_pitch;
        for (int x = -HALF_MARGIN; x < columns; x++)
            out[x] = sac_matte_halve(in + 2 * x, in + 2 * x + pitch);
    }
}

/* ---- blocks ---- */

/* The sum of differences of 8 x 8 cells. */
static int difference(const uint8_t *a, const uint8_t *b, ptrdiff_t pitch)
{
#if defined(__x86_64__)
    __m128i sum = _mm_setzero_si128();
    for (int j = 0; j < BLOCK; j++, a += pitch, b += pitch)
        sum = _mm_add_epi64(sum, _mm_sad_epu8(_mm_loadl_epi64((const __m128i *)(const void *)a),
                                              _mm_loadl_epi64((const __m128i *)(const void *)b)));
    return _mm_cvtsi128_si32(sum);
#else
    int sum = 0;
    for (int j = 0; j < BLOCK; j++, a += pitch, b += pitch)
        for (int i = 0; i < BLOCK; i++)
            sum += a[i] > b[i] ? a[i] - b[i] : b[i] - a[i];
    return sum;
#endif
}

/* One plane of two frames at a block's first cell. */
struct place {
    const uint8_t *now, *before;
    ptrdiff_t      pitch;
};

/* The candidates within reach of a middle; best: the least so far, which becomes *move too. */
static uint32_t look_about(const struct place *p, struct sac_matte_move middle, int reach,
                           int number, uint32_t best, struct sac_matte_move *move)
{
    for (int y = middle.y - reach; y <= middle.y + reach; y++)
        for (int x = middle.x - reach; x <= middle.x + reach; x++) {
            const int      off = difference(p->now, p->before + y * p->pitch + x, p->pitch);
            const uint32_t it = sac_matte_candidate(off, x, y, number++);
            if (it < best) {
                best = it;
                *move = (struct sac_matte_move){(int16_t)x, (int16_t)y};
            }
        }
    return best;
}

static struct sac_matte_move search(const struct sac_cpu_matte_work *m, int bx, int by)
{
    const ptrdiff_t pitch = m->planes.luma_pitch, half_pitch = m->half_pitch;
    const ptrdiff_t at = by * BLOCK * pitch + bx * BLOCK;
    const ptrdiff_t half_at =
        (by * BLOCK / 2 - BLOCK / 4) * half_pitch + bx * BLOCK / 2 - BLOCK / 4;
    const struct place whole = {m->planes.luma[m->now] + at, m->planes.luma[m->now ^ 1] + at,
                                pitch};
    const struct place half = {m->half[0] + half_at, m->half[1] + half_at, half_pitch};
    const struct sac_matte_move none = {0, 0};
    struct sac_matte_move       coarse = none, move = none;
    const int                   still = difference(whole.now, whole.before, pitch);
    if (still <= SAC_MATTE_STILL)
        return none;
    look_about(&half, none, SAC_MATTE_REACH, 1,
               sac_matte_candidate(difference(half.now, half.before, half_pitch), 0, 0, 0),
               &coarse);
    coarse.x = (int16_t)(2 * coarse.x);
    coarse.y = (int16_t)(2 * coarse.y);
    look_about(&whole, coarse, SAC_MATTE_FINE, 1, sac_matte_candidate(still, 0, 0, 0), &move);
    return move;
}

int sac_cpu_matte_block_pieces(const struct sac_cpu_matte_work *m)
{
    return moves(m) ? m->blocks_y : 0;
}

void sac_cpu_matte_search(void *matte, int piece, int worker)
{
    const struct sac_cpu_matte_work *m = matte;
    (void)worker;
    for (int x = 0; x < m->blocks_x; x++)
        m->move[piece * m->blocks_x + x] = search(m, x, piece);
}

/* ---- cells ---- */

static bool is_among(const struct sac_matte_move *moves, int n, struct sac_matte_move it)
{
    for (int i = 0; i < n; i++)
        if (moves[i].x == it.x && moves[i].y == it.y)
            return true;
    return false;
}

/* The moves of the blocks that a quarter of a block lies between, its own first; those that stay
 * and those that are there already left out. */
static int moves_about(const struct sac_cpu_matte_work *m, int qx, int qy,
                       struct sac_matte_move out[4])
{
    const int bx = qx / 2, by = qy / 2;
    const int sx = SAC_CLAMP(bx + (qx & 1 ? 1 : -1), 0, m->blocks_x - 1);
    const int sy = SAC_CLAMP(by + (qy & 1 ? 1 : -1), 0, m->blocks_y - 1);
    const int at[4][2] = {{bx, by}, {sx, by}, {bx, sy}, {sx, sy}};
    int       n = 0;
    for (int i = 0; i < 4; i++) {
        const struct sac_matte_move it = m->move[at[i][1] * m->blocks_x + at[i][0]];
        if ((it.x || it.y) && !is_among(out, n, it))
            out[n++] = it;
    }
    return n;
}

static int residual(const struct sac_cpu_matte_work *m, int x, int y, struct sac_matte_move move)
{
    const ptrdiff_t pitch = m->planes.luma_pitch, at = (y - 1) * pitch + x - 1;
    const uint8_t  *a = m->planes.luma[m->now] + at;
    const uint8_t  *b = m->planes.luma[m->now ^ 1] + at + move.y * pitch + move.x;
    int             sum = 0;
    for (int j = 0; j < 3; j++, a += pitch, b += pitch)
        for (int i = 0; i < 3; i++)
            sum += a[i] > b[i] ? a[i] - b[i] : b[i] - a[i];
    return sum;
}

/* A cell that was elsewhere: of the places that look like it the best. */
static void choose(const struct sac_cpu_matte_work *m, int x, int y,
                   const struct sac_matte_move *moves, int n)
{
    const ptrdiff_t at = (ptrdiff_t)y * m->x.cells + x;
    int             best = m->residual[at];
    for (int i = 0; i < n; i++) {
        const int off = residual(m, x, y, moves[i]) + SAC_MATTE_MOVE_COST;
        if (off >= best)
            continue;
        const int sx = SAC_CLAMP(x + moves[i].x, 0, m->x.cells - 1);
        const int sy = SAC_CLAMP(y + moves[i].y, 0, m->y.cells - 1);
        best = off;
        m->residual[at] = (uint16_t)off;
        m->was[at] = m->planes.share[m->now ^ 1][(ptrdiff_t)sy * m->planes.share_pitch + sx];
    }
}

static void choose_quarter(const struct sac_cpu_matte_work *m, int qx, int qy)
{
    enum { SIDE = BLOCK / 2 };
    struct sac_matte_move moves[4];
    const int             n = moves_about(m, qx, qy, moves);
    for (int y = qy * SIDE; n && y < SAC_MIN((qy + 1) * SIDE, m->y.cells); y++)
        for (int x = qx * SIDE; x < SAC_MIN((qx + 1) * SIDE, m->x.cells); x++)
            choose(m, x, y, moves, n);
}

/* A row of blocks. */
void sac_cpu_matte_smooth(void *matte, int piece, int worker)
{
    const struct sac_cpu_matte_work *m = matte;
    const ptrdiff_t                  width = m->x.cells, pitch = m->planes.luma_pitch;
    const int begin = piece * BLOCK, end = SAC_MIN(begin + BLOCK, m->y.cells);
    const int smooth = sac_matte_smoothing(m->style);
    (void)worker;
    for (int y = begin; y < end; y++) {
        const ptrdiff_t at = (y - 1) * pitch - 1;
        m->rows->residual(m->planes.luma[m->now] + at, m->planes.luma[m->now ^ 1] + at, (int)pitch,
                          (int)width, m->residual + y * width);
        memcpy(m->was + y * width,
               m->planes.share[m->now ^ 1] + (ptrdiff_t)y * m->planes.share_pitch,
               (size_t)width * sizeof *m->was);
    }
    for (int y = 2 * piece; y < 2 * piece + 2; y++)
        for (int x = 0; x < 2 * m->blocks_x; x++)
            choose_quarter(m, x, y);
    for (int y = begin; y < end; y++) {
        int16_t *share = m->planes.share[m->now] + (ptrdiff_t)y * m->planes.share_pitch;
        if (m->job->image < 0)
            memcpy(share, m->was + y * width, (size_t)width * sizeof *share);
        else
            m->rows->smooth(share, m->was + y * width, m->residual + y * width, smooth, (int)width);
    }
}
