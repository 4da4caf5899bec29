/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/kernels/fused_attention.h"

#include "base/base.h"

enum {
    PROCESSORS = 132, /* of a large card, on whose figures the clocks below rest */
    /* Shared memory that a block can have on every card since sm_80, and that all blocks of a
     * processor have on a large one. */
    BLOCK_BYTES = 99 << 10,
    PROCESSOR_BYTES = 227 << 10,
    WARPS_MAX = OPS_ATTENTION_THREADS / 32,
    JOIN = 2300, /* clocks where warps put together what they made */
    GROUP = 4,   /* warps that multiply together */
    TILE = GROUP * OPS_ATTENTION_PILE
};

/* What a warp takes at a time. warps: so many have registers. In clocks, start: of a block before
 * it multiplies and while it writes; block: of a processor for each of its blocks; turn: of one
 * turn of a warp that is alone; work: of a busy processor for 16 queries by 64 keys of 64 numbers.
 * read: bytes a clock. All are fits to the times of 23 problems on one H100, most of which get the
 * fastest of the shapes that were timed, or one within a tenth of it. */
static const struct kind {
    int keys, piles, warps, start, block, turn, work, read;
} kinds[] = {
    {32, 1, 12, 2200, 350, 850, 175, 48},
    {64, 1, 16, 2200, 350, 1200, 115, 48},
    {64, 2, 8, 2200, 350, 2550, 155, 48},
    [OPS_ATTENTION_TOGETHER] = {64, 1, 16, 1800, 100, 900, 100, 128},
};

static int64_t parts_of(int64_t whole, int64_t part)
{
    return (whole + part - 1) / part;
}

static void set_sizes(const struct ops_fused_attention *p, struct ops_attention_shape *s)
{
    static const struct {
        int key, value;
    } sizes[] = {{32, 32}, {32, 64}, {64, 64}, {96, 96}, {64, 128}, {128, 128}};
    size_t i = 0;
    while (i + 1 < SAC_COUNT(sizes) && (p->size > sizes[i].key || p->v_size > sizes[i].value))
        i++;
    s->key_size = sizes[i].key;
    s->value_size = sizes[i].value;
}

/* Numbers of a query's relative positions in shared memory, with those behind them. */
static int64_t position_pitch(const struct ops_fused_attention *p)
{
    return p->rows ? p->row_room + p->column_room + OPS_ATTENTION_PADDING : 0;
}

/* Turns, and the shared memory of stages of them. False: more than there is. */
static bool set_room(const struct ops_fused_attention *p, struct ops_attention_shape *s)
{
    const int64_t whole = (int64_t)s->key_warps * s->keys, tail = p->keys % s->keys,
                  turns = parts_of(p->keys, whole),
                  keys = p->keys - tail +
                         (tail == 0                   ? 0
                          : tail <= OPS_ATTENTION_FEW ? OPS_ATTENTION_FEW
                                                      : s->keys),
                  room = turns <= s->stages ? keys : s->stages * whole;
    const int64_t queries = (int64_t)s->query_warps * s->piles * OPS_ATTENTION_PILE,
                  padding = s->together ? 0 : OPS_ATTENTION_PADDING,
                  key_pitch = s->key_size + padding, value_pitch = s->value_size + padding,
                  positions = queries * key_pitch + room * (key_pitch + value_pitch),
                  tiles = 2 * (positions + queries * position_pitch(p)),
                  join = s->key_warps == 1 ? 0
                                           : (int64_t)4 * s->key_warps * s->query_warps * 32 *
                                                 s->piles * (s->value_size / 2 + 4),
                  results =
                      p->bytes.type ? 2 * queries * (s->value_size + OPS_ATTENTION_PADDING) : 0,
                  shared = SAC_MAX(tiles, join + results);
    s->turns = (int32_t)turns;
    s->room = (int32_t)room;
    s->joined = (int32_t)join;
    s->positions = (int32_t)positions;
    s->shared = (int32_t)shared;
    return shared <= BLOCK_BYTES;
}

/* What is multiplied for each key: relative positions too. */
static int64_t numbers_of(const struct ops_fused_attention *p, const struct ops_attention_shape *s)
{
    return s->key_size + s->value_size + p->row_room + p->column_room;
}

/* The clocks that this shape takes, about: of the processor with the most blocks the longest of its
 * multiplications, of its reads, and of one block's turns for as many times as its blocks follow
 * each other. */
static int64_t clocks_of(const struct ops_fused_attention *p, const struct ops_attention_shape *s,
                         const struct kind *k)
{
    const int     most = s->value_size > 64 ? WARPS_MAX : k->warps;
    const int64_t queries = (int64_t)s->query_warps * s->piles * OPS_ATTENTION_PILE,
                  blocks = p->batch * p->heads * parts_of(p->queries, queries),
                  each = parts_of(blocks, PROCESSORS),
                  resident = SAC_CLAMP(SAC_MIN(most / (s->query_warps * s->key_warps),
                                               PROCESSOR_BYTES / (s->shared + 1024)),
                                       1, 16),
                  waves = parts_of(each, resident), numbers = numbers_of(p, s),
                  piles = (int64_t)s->query_warps * s->piles,
                  work = each * piles * k->work * p->keys * (numbers + 96) / (64 * 224),
                  reads =
                      each * 2 * (p->keys * (p->size + p->v_size) + queries * p->size) / k->read,
                  turns = waves * s->turns * k->turn * (numbers + 128) / 256;
    return waves * (k->start + (s->key_warps > 1 ? JOIN : 0)) + each * k->block +
           SAC_MAX(work, SAC_MAX(reads, turns));
}

/* ---- all keys of a head in shared memory ---- */

/* Keys of a turn: of several, those with the least room too much. */
static int turn_of(int64_t keys)
{
    int     best = 0;
    int64_t room = INT64_MAX;
#define TURN(above, all) \
    if (keys <= (all))   \
        return all;
    OPS_ATTENTION_ONE_TURN(TURN)
#undef TURN
#define TURN(each)                              \
    if (parts_of(keys, each) * (each) < room) { \
        best = each;                            \
        room = parts_of(keys, each) * (each);   \
    }
    OPS_ATTENTION_TURNS(TURN)
#undef TURN
    return best;
}

static bool whole_shape(const struct ops_fused_attention *p, int tiles,
                        struct ops_attention_shape *s)
{
    const int64_t all = parts_of(p->queries, TILE);
    if (s->query_warps != GROUP || all == 0 || (tiles > 1 && tiles / 2 >= all) ||
        p->keys * 2 > BLOCK_BYTES)
        return false;
    s->keys = turn_of(p->keys);
    s->tiles = tiles;
    s->key_warps = s->stages = 1;
    s->turns = (int32_t)parts_of(p->keys, s->keys);
    s->room = s->turns * s->keys;
    s->positions = TILE * s->key_size + s->room * (s->key_size + s->value_size);
    s->joined = (int32_t)(2 * (s->positions + TILE * position_pitch(p)));
    s->shared = s->joined + 2 * TILE * (s->value_size + OPS_ATTENTION_PADDING);
    return s->turns > 0 && s->shared <= BLOCK_BYTES;
}

/* In the unit of clocks_of, whose clocks are longer than real ones. For 16 keys of 64 numbers a
 * tile of queries takes ALONE of them where nothing else runs, and SHARED less for each of up to
 * two blocks beside it; a mask's numbers are read one by one. Fits to the times of 25 problems on
 * one H200: where this kind is chosen it takes 0.63 to 1.0 of the other kinds' time. */
static int64_t whole_clocks(const struct ops_fused_attention *p,
                            const struct ops_attention_shape *s)
{
    enum { START = 1300, ALONE = 136, SHARED = 32, MASK = 64, READ = 200 };
    const int64_t all = parts_of(p->queries, TILE), parts = parts_of(all, s->tiles),
                  each = parts_of(p->batch * p->heads * parts, PROCESSORS),
                  resident = SAC_CLAMP(PROCESSOR_BYTES / (s->shared + 1024), 1,
                                       OPS_ATTENTION_BLOCKS(s->keys, p->period)),
                  waves = parts_of(each, resident),
                  beside = SAC_MIN(SAC_MIN(each, resident), 3) - 1,
                  numbers = numbers_of(p, s) + 128, mask = p->period ? MASK : 0,
                  work = each * all * s->room * ((ALONE - SHARED * beside) * numbers / 256 + mask) /
                         (16 * parts),
                  turns = waves * all * s->room * (ALONE * numbers / 256 + mask) / (16 * parts);
    return waves * START + each * 2 * p->keys * (p->size + p->v_size) / READ + SAC_MAX(work, turns);
}

/* ---- choosing ---- */

bool ops_attention_shape_of(const struct ops_fused_attention *p, int kind, int query_warps,
                            int sharers, struct ops_attention_shape *out)
{
    const bool in_eights = p->q_piece == 8 && p->k_piece == 8 && p->v_piece == 8;
    out->query_warps = query_warps;
    out->piles = 1;
    out->together = kind >= OPS_ATTENTION_TOGETHER;
    out->tiles = 0;
    set_sizes(p, out);
    if ((kind > 0 && out->value_size > 64) ||
        (out->together && (query_warps % GROUP || out->key_size != out->value_size || !in_eights)))
        return false;
    if (kind == OPS_ATTENTION_WHOLE)
        return whole_shape(p, sharers, out);
    out->keys = kinds[kind].keys;
    out->piles = kinds[kind].piles;
    out->key_warps = sharers;
    if (query_warps * sharers > WARPS_MAX)
        return false;
    for (out->stages = 3; out->stages >= 2; out->stages--)
        if (set_room(p, out))
            return true;
    return false;
}

void ops_attention_shape(const struct ops_fused_attention *p, bool together,
                         struct ops_attention_shape *out)
{
    const int kinds_here = together ? OPS_ATTENTION_KINDS : OPS_ATTENTION_TOGETHER;
    int64_t   least = INT64_MAX;
    for (int kind = 0; kind < kinds_here; kind++)
        for (int sharers = 1; sharers <= WARPS_MAX; sharers *= 2)
            for (int query_warps = 1; query_warps <= WARPS_MAX; query_warps++) {
                struct ops_attention_shape s;
                if (!ops_attention_shape_of(p, kind, query_warps, sharers, &s))
                    continue;
                const int64_t clocks =
                    s.tiles ? whole_clocks(p, &s) : clocks_of(p, &s, &kinds[kind]);
                if (clocks < least) {
                    least = clocks;
                    *out = s;
                }
            }
}
