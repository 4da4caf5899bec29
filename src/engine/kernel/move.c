/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "device/cpu/cpu.h"
#include "engine/kernel/move.h"

/* ---- which work it is ---- */

/* Drops dimensions of one, brings the others in the target's order and merges those that stay
 * together. The number that is left. */
static int simplify(int rank, const int64_t *dims, const int64_t *to, const int64_t *from,
                    struct sac_move_dim *out)
{
    int count = 0, merged = 0;
    for (int d = 0; d < rank; d++) {
        int at = count;
        if (dims[d] == 1)
            continue;
        for (; at > 0 && out[at - 1].to < to[d]; at--)
            out[at] = out[at - 1];
        out[at] = (struct sac_move_dim){dims[d], to[d], from[d]};
        count++;
    }
    for (int d = 0; d < count; d++) {
        struct sac_move_dim *last = merged ? &out[merged - 1] : NULL, *o = &out[d];
        if (last && last->to == o->to * o->count && last->from == o->from * o->count)
            *last = (struct sac_move_dim){last->count * o->count, o->to, o->from};
        else
            out[merged++] = *o;
    }
    return merged;
}

static bool strides_are_even(const struct sac_move_dim *dims, int count)
{
    for (int d = 0; d < count; d++)
        if (dims[d].to % 2 || dims[d].from % 2)
            return false;
    return true;
}

/* Runs of two or four elements are moved as one larger element. */
static int widen(struct sac_move *m, struct sac_move_dim *dims, int count)
{
    struct sac_move_dim *run = count ? &dims[count - 1] : NULL;
    while (run && run->to == 1 && run->from == 1 && run->count % 2 == 0 && m->bytes < 8 &&
           run->count * (int64_t)m->bytes <= 8 && strides_are_even(dims, count - 1)) {
        m->bytes *= 2;
        run->count /= 2;
        for (int d = 0; d < count - 1; d++) {
            dims[d].to /= 2;
            dims[d].from /= 2;
        }
        if (run->count > 1)
            continue;
        count--;
        run = NULL;
    }
    return count;
}

static void remove_dim(struct sac_move_dim *dims, int *count, int at)
{
    for (int d = at; d + 1 < *count; d++)
        dims[d] = dims[d + 1];
    --*count;
}

/* The dimension along which the source lies dense, -1: none. */
static int dense_source(const struct sac_move_dim *dims, int count)
{
    for (int d = 0; d < count; d++)
        if (dims[d].from == 1)
            return d;
    return -1;
}

/* Pieces large enough to be worth starting, and small enough to stay in the cache: of
 * transpositions 64 columns (from 16 to 128 are equally fast on an AMD Zen 3, 2026-11). */
static void cut_block(struct sac_move *m)
{
    enum { PIECE_BYTES = 32768, TILE_COLUMNS = 64 };
    const int64_t elements = SAC_MAX(PIECE_BYTES / (int64_t)m->bytes, 1);
    if (m->kind == SAC_MOVE_TILES) {
        m->cut_rows = m->column.count <= TILE_COLUMNS;
        m->cut = m->cut_rows ? SAC_MAX(elements / m->column.count / 8 * 8, 8) : TILE_COLUMNS;
    } else {
        m->cut_rows = m->row.count >= elements;
        m->cut = m->cut_rows ? elements : SAC_MAX(elements / m->row.count, 1);
    }
    const int64_t whole = m->cut_rows ? m->row.count : m->column.count;
    m->cuts = (whole + m->cut - 1) / m->cut;
    m->units = m->cuts;
    for (int d = 0; d < m->outer_count; d++)
        m->units *= m->outer[d].count;
}

void sac_move_init(struct sac_move *m, size_t bytes, int rank, const int64_t *dims,
                   const int64_t *to, const int64_t *from)
{
    const struct sac_move_dim one = {1, 1, 1};
    memset(m, 0, sizeof *m);
    m->bytes = bytes;
    m->row = m->column = one;
    if (sac_dims_product(rank, dims) == 0)
        return;
    int count = widen(m, m->outer, simplify(rank, dims, to, from, m->outer));
    if (count > 0)
        m->row = m->outer[--count];
    const int dense = dense_source(m->outer, count);
    if (m->row.to == 1 && m->row.from == 1)
        m->kind = SAC_MOVE_RUNS;
    else
        m->kind = m->row.to == 1 && dense >= 0 ? SAC_MOVE_TILES : SAC_MOVE_ELEMENTS;
    const int column = m->kind == SAC_MOVE_TILES ? dense : count - 1;
    if (column >= 0) {
        m->column = m->outer[column];
        remove_dim(m->outer, &count, column);
    }
    m->outer_count = count;
    cut_block(m);
}

/* ---- doing it ---- */

/* Elements may lie anywhere: eight bytes may be two floats. */
typedef uint8_t  any8 __attribute__((may_alias));
typedef uint16_t any16 __attribute__((may_alias, aligned(1)));
typedef uint32_t any32 __attribute__((may_alias, aligned(1)));
typedef uint64_t any64 __attribute__((may_alias, aligned(1)));

/* Short ones without a call. */
static inline void copy_run(char *to, const char *from, size_t bytes)
{
    if (bytes > 128) {
        memcpy(to, from, bytes);
        return;
    }
    for (; bytes >= 16; bytes -= 16, to += 16, from += 16)
        memcpy(to, from, 16);
    for (; bytes >= 4; bytes -= 4, to += 4, from += 4)
        memcpy(to, from, 4);
    for (; bytes > 0; bytes--)
        *to++ = *from++;
}

static void move_runs(const struct sac_move *m, char *dst, const char *src, int64_t columns,
                      int64_t rows)
{
    const int64_t to = m->column.to * (int64_t)m->bytes, from = m->column.from * (int64_t)m->bytes;
    for (int64_t c = 0; c < columns; c++)
        copy_run(dst + c * to, src + c * from, (size_t)rows * m->bytes);
}

#define MOVE_EACH(type)                                                          \
    for (int64_t c = 0; c < columns; c++) {                                      \
        type       *to = (type *)(void *)dst + c * m->column.to;                 \
        const type *from = (const type *)(const void *)src + c * m->column.from; \
        for (int64_t r = 0; r < rows; r++)                                       \
            to[r * m->row.to] = from[r * m->row.from];                           \
    }

static void move_elements(const struct sac_move *m, char *dst, const char *src, int64_t columns,
                          int64_t rows)
{
    switch (m->bytes) {
    case 1: MOVE_EACH(any8); break;
    case 2: MOVE_EACH(any16); break;
    case 4: MOVE_EACH(any32); break;
    default: MOVE_EACH(any64); break;
    }
}

/* Sixteen by sixteen, so that the lines of both sides stay in the cache until they are done. */
static void move_tiles(const struct sac_move *m, char *dst, const char *src, int64_t columns,
                       int64_t rows)
{
    enum { TILE = 16 };
    const int64_t to = m->column.to * (int64_t)m->bytes, from = m->row.from * (int64_t)m->bytes;
    for (int64_t c = 0; c < columns; c += TILE)
        for (int64_t r = 0; r < rows; r += TILE)
            move_elements(m, dst + c * to + r * (int64_t)m->bytes,
                          src + r * from + c * (int64_t)m->bytes, SAC_MIN(TILE, columns - c),
                          SAC_MIN(TILE, rows - r));
}

static void transpose(const struct sac_move *m, char *dst, const char *src, int64_t columns,
                      int64_t rows)
{
    int64_t whole_columns = 0, whole_rows = 0;
#if defined(__x86_64__)
    if (m->bytes == 4 && rows >= 8 && columns >= 8 && sac_cpu_level() >= SAC_CPU_AVX2) {
        whole_columns = columns / 8 * 8;
        whole_rows = rows / 8 * 8;
        sac_transpose_avx2((uint32_t *)(void *)dst, m->column.to,
                           (const uint32_t *)(const void *)src, m->row.from, whole_rows,
                           whole_columns);
    }
#endif
    const int64_t to = m->column.to * (int64_t)m->bytes, from = m->row.from * (int64_t)m->bytes;
    if (whole_rows < rows && whole_columns > 0)
        move_tiles(m, dst + whole_rows * (int64_t)m->bytes, src + whole_rows * from, whole_columns,
                   rows - whole_rows);
    if (whole_columns < columns)
        move_tiles(m, dst + whole_columns * to, src + whole_columns * (int64_t)m->bytes,
                   columns - whole_columns, rows);
}

static void move_block(const struct sac_move *m, char *dst, const char *src, int64_t cut)
{
    const struct sac_move_dim *d = m->cut_rows ? &m->row : &m->column;
    const int64_t              begin = cut * m->cut, count = SAC_MIN(m->cut, d->count - begin);
    const int64_t              columns = m->cut_rows ? m->column.count : count;
    const int64_t              rows = m->cut_rows ? count : m->row.count;
    dst += begin * d->to * (int64_t)m->bytes;
    src += begin * d->from * (int64_t)m->bytes;
    switch (m->kind) {
    case SAC_MOVE_RUNS: move_runs(m, dst, src, columns, rows); break;
    case SAC_MOVE_TILES: transpose(m, dst, src, columns, rows); break;
    case SAC_MOVE_ELEMENTS: move_elements(m, dst, src, columns, rows); break;
    }
}

static void move_units(const struct sac_move *m, char *dst, const char *src, int64_t first,
                       int64_t end)
{
    int64_t index[SAC_WALK_DIMS], to = 0, from = 0, rest = first / m->cuts;
    for (int d = m->outer_count - 1; d >= 0; d--) {
        index[d] = rest % m->outer[d].count;
        rest /= m->outer[d].count;
        to += index[d] * m->outer[d].to;
        from += index[d] * m->outer[d].from;
    }
    for (int64_t unit = first, cut = first % m->cuts; unit < end; unit++) {
        move_block(m, dst + to * (int64_t)m->bytes, src + from * (int64_t)m->bytes, cut);
        if (++cut < m->cuts)
            continue;
        cut = 0;
        for (int d = m->outer_count - 1; d >= 0; d--) {
            const struct sac_move_dim *o = &m->outer[d];
            const bool                 wraps = ++index[d] == o->count;
            to += wraps ? -o->to * (o->count - 1) : o->to;
            from += wraps ? -o->from * (o->count - 1) : o->from;
            if (!wraps)
                break;
            index[d] = 0;
        }
    }
}

struct move_job {
    const struct sac_move *move;
    char                  *dst;
    const char            *src;
    int                    pieces;
};

static void move_piece(void *arg, int piece, int worker)
{
    const struct move_job *j = arg;
    const int64_t          units = j->move->units;
    (void)worker;
    move_units(j->move, j->dst, j->src, units * piece / j->pieces, units * (piece + 1) / j->pieces);
}

void sac_move_run(const struct sac_move *m, struct sac_worker_pool *workers, void *dst,
                  const void *src)
{
    enum { PIECE_BYTES = 32768, PIECES_A_THREAD = 4 };
    const int threads = sac_worker_pool_threads(workers);
    int64_t   bytes = m->column.count * m->row.count * (int64_t)m->bytes;
    for (int d = 0; d < m->outer_count; d++)
        bytes *= m->outer[d].count;
    const int64_t   most = SAC_MIN(bytes / PIECE_BYTES, (int64_t)threads * PIECES_A_THREAD);
    const int       pieces = threads == 1 ? 1 : (int)SAC_CLAMP(most, 1, SAC_MAX(m->units, 1));
    struct move_job job = {m, dst, src, pieces};
    if (m->units == 0)
        return;
    if (pieces == 1)
        move_units(m, dst, src, 0, m->units);
    else
        sac_worker_pool_run(workers, pieces, move_piece, &job);
}
