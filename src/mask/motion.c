/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "mask/mask.h"

/* A smoother of mattes may follow motion too: this is a search of its own, so that none is judged
 * by itself. */
enum {
    LEVELS = 4,       /* halvings of the picture, less one */
    SIDE_MIN = 16,    /* pixels, of the coarsest */
    COARSE_REACH = 4, /* pixels of the coarsest level */
    FINE_REACH = 2,
    SAME_MAX = 6,  /* mean difference of luma: noise and a little light, no other thing */
    STILL_BIAS = 1 /* mean difference that motion must explain; noise explains less */
};

struct level {
    int            width, height, columns, rows;
    const uint8_t *before, *now;
    uint8_t       *own; /* memory of both, where this is not the picture itself */
};

static sac_result halve(sac_context *ctx, const struct level *from, struct level *to)
{
    int    width = from->width / 2, height = from->height / 2;
    size_t count = (size_t)width * (size_t)height;
    to->own = sac_alloc(2 * count);
    if (!to->own)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory to follow the motion of %d x %d pixels",
                        from->width, from->height);
    for (int p = 0; p < 2; p++) {
        const uint8_t *in = p ? from->now : from->before;
        uint8_t       *out = to->own + (size_t)p * count;
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                const uint8_t *at = in + (size_t)(2 * y) * (size_t)from->width + 2 * x;
                *out++ = (uint8_t)((at[0] + at[1] + at[from->width] + at[from->width + 1] + 2) / 4);
            }
    }
    to->before = to->own;
    to->now = to->own + count;
    to->width = width;
    to->height = height;
    return SAC_OK;
}

/* Sum of the differences of a block's luma, if it was at x + vx, y + vy. */
static int difference(const struct level *level, int x, int y, int vx, int vy, int limit)
{
    int  width = SAC_MIN(SAC_MOTION_BLOCK, level->width - x);
    int  height = SAC_MIN(SAC_MOTION_BLOCK, level->height - y);
    int  sum = 0;
    bool inside = x + vx >= 0 && y + vy >= 0 && x + vx + width <= level->width &&
                  y + vy + height <= level->height;
    for (int j = 0; j < height && sum < limit; j++) {
        const uint8_t *now = level->now + (size_t)(y + j) * (size_t)level->width + x;
        int            from = SAC_CLAMP(y + j + vy, 0, level->height - 1);
        const uint8_t *before = level->before + (size_t)from * (size_t)level->width;
        for (int i = 0; i < width; i++)
            sum += abs(now[i] -
                       before[inside ? x + i + vx : SAC_CLAMP(x + i + vx, 0, level->width - 1)]);
    }
    return sum;
}

struct best {
    int x, y, sum;
};

static void consider(const struct level *level, int x, int y, int vx, int vy, struct best *best)
{
    int sum = difference(level, x, y, vx, vy, best->sum);
    if (sum < best->sum)
        *best = (struct best){vx, vy, sum};
}

static void search_around(const struct level *level, int x, int y, int reach, struct best *best)
{
    struct best middle = *best;
    for (int dy = -reach; dy <= reach; dy++)
        for (int dx = -reach; dx <= reach; dx++)
            if (dx || dy)
                consider(level, x, y, middle.x + dx, middle.y + dy, best);
}

/* The vectors of the coarser level's blocks around this one are where the search begins. */
static void begin_from(const struct level *level, const struct level *coarse,
                       const struct sac_motion_vector *vectors, int column, int row,
                       struct best *best)
{
    int x = column * SAC_MOTION_BLOCK, y = row * SAC_MOTION_BLOCK;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            int                             c = SAC_CLAMP(column / 2 + dx, 0, coarse->columns - 1);
            int                             r = SAC_CLAMP(row / 2 + dy, 0, coarse->rows - 1);
            const struct sac_motion_vector *v = &vectors[(size_t)r * (size_t)coarse->columns + c];
            consider(level, x, y, 2 * v->x, 2 * v->y, best);
        }
}

static void search_level(const struct level *level, const struct level *coarse,
                         const struct sac_motion_vector *vectors, struct sac_motion_vector *out)
{
    for (int row = 0; row < level->rows; row++)
        for (int column = 0; column < level->columns; column++, out++) {
            int x = column * SAC_MOTION_BLOCK, y = row * SAC_MOTION_BLOCK;
            int area = SAC_MIN(SAC_MOTION_BLOCK, level->width - x) *
                       SAC_MIN(SAC_MOTION_BLOCK, level->height - y);
            struct best best = {0, 0, difference(level, x, y, 0, 0, INT32_MAX)};
            int         still = best.sum;
            if (coarse)
                begin_from(level, coarse, vectors, column, row, &best);
            search_around(level, x, y, coarse ? FINE_REACH : COARSE_REACH, &best);
            if (still <= best.sum + STILL_BIAS * area)
                best = (struct best){0, 0, still};
            *out = (struct sac_motion_vector){(int16_t)best.x, (int16_t)best.y,
                                              best.sum <= SAME_MAX * area};
        }
}

sac_result sac_motion_find(sac_context *ctx, const uint8_t *before, const uint8_t *now, int width,
                           int height, struct sac_motion_vector *out)
{
    struct level              levels[LEVELS] = {{.width = width, .height = height}};
    struct sac_motion_vector *vectors[2] = {NULL, NULL};
    int                       count = 1;
    sac_result                res = SAC_OK;
    levels[0].before = before;
    levels[0].now = now;
    for (; count < LEVELS && res == SAC_OK && levels[count - 1].width >= 2 * SIDE_MIN &&
           levels[count - 1].height >= 2 * SIDE_MIN;
         count++)
        res = halve(ctx, &levels[count - 1], &levels[count]);
    for (int i = 0; i < count; i++) {
        levels[i].columns = (levels[i].width + SAC_MOTION_BLOCK - 1) / SAC_MOTION_BLOCK;
        levels[i].rows = (levels[i].height + SAC_MOTION_BLOCK - 1) / SAC_MOTION_BLOCK;
    }
    size_t blocks = (size_t)levels[0].columns * (size_t)levels[0].rows;
    for (int i = 0; i < 2 && res == SAC_OK; i++) {
        vectors[i] = sac_calloc(blocks, sizeof *vectors[i]);
        if (!vectors[i])
            res = SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for the motion of %zu blocks", blocks);
    }
    for (int i = count - 1; i >= 0 && res == SAC_OK; i--)
        search_level(&levels[i], i + 1 < count ? &levels[i + 1] : NULL, vectors[!(i % 2)],
                     i > 0 ? vectors[i % 2] : out);
    for (int i = 0; i < LEVELS; i++)
        sac_free(levels[i].own);
    sac_free(vectors[0]);
    sac_free(vectors[1]);
    return res;
}
