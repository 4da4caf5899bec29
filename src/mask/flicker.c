/* SPDX-License-Identifier: Apache-2.0 */
/* What changes in a matte though the picture only moves: the matte of the frame before is moved
 * along the motion of the picture; the differences that remain, over the area of either. Blocks
 * whose picture is found nowhere in the frame before (uncovered ground, the rim of a body that
 * turns) are not looked at. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "mask/frames.h"
#include "mask/mask.h"

enum { PATH_SIZE = 4096 };

struct moment {
    uint8_t *luma, *mask, *ignored;
    bool     filled; /* with the frame before */
};

struct flicker {
    struct sac_mask_set          *masks;
    const struct sac_mask_wanted *wanted;
    struct sac_frames             frames;
    int                           width, height;
    struct moment                 before, now;
    struct sac_motion_vector     *vectors;
    double                        changed, area;
    int64_t                       compared; /* pairs of frames */
};

static void free_moment(struct moment *moment)
{
    sac_free(moment->luma);
    sac_free(moment->mask);
    sac_free(moment->ignored);
    *moment = (struct moment){0};
}

static bool make_moment(struct moment *moment, size_t count)
{
    free_moment(moment);
    moment->luma = sac_alloc(count);
    moment->mask = sac_alloc(count);
    moment->ignored = sac_alloc(count);
    return moment->luma && moment->mask && moment->ignored;
}

static void finish(struct flicker *f)
{
    free_moment(&f->before);
    free_moment(&f->now);
    sac_free(f->vectors);
    sac_frames_close(&f->frames);
}

static sac_result resize(struct flicker *f, int width, int height)
{
    if (f->vectors && f->width == width && f->height == height)
        return SAC_OK;
    size_t count = (size_t)width * (size_t)height;
    size_t blocks = ((size_t)width + SAC_MOTION_BLOCK - 1) / SAC_MOTION_BLOCK *
                    (((size_t)height + SAC_MOTION_BLOCK - 1) / SAC_MOTION_BLOCK);
    f->width = width;
    f->height = height;
    sac_free(f->vectors);
    f->vectors = sac_calloc(blocks, sizeof *f->vectors);
    if (!f->vectors || !make_moment(&f->before, count) || !make_moment(&f->now, count))
        return SAC_FAIL(f->masks->ctx, SAC_ERR_MEMORY, "%s: no memory", f->masks->path);
    return SAC_OK;
}

static uint8_t moved(const struct flicker *f, int x, int y, const struct sac_motion_vector *v)
{
    x = SAC_CLAMP(x + v->x, 0, f->width - 1);
    y = SAC_CLAMP(y + v->y, 0, f->height - 1);
    return f->before.mask[(size_t)y * (size_t)f->width + (size_t)x];
}

static sac_result compare(struct flicker *f)
{
    int64_t    changed = 0, area = 0;
    int        columns = (f->width + SAC_MOTION_BLOCK - 1) / SAC_MOTION_BLOCK;
    sac_result res = sac_motion_find(f->masks->ctx, f->before.luma, f->now.luma, f->width,
                                     f->height, f->vectors);
    if (res != SAC_OK)
        return res;
    for (int y = 0; y < f->height; y++)
        for (int x = 0; x < f->width; x++) {
            const struct sac_motion_vector *v =
                &f->vectors[(size_t)(y / SAC_MOTION_BLOCK) * (size_t)columns +
                            (size_t)(x / SAC_MOTION_BLOCK)];
            if (!v->found)
                continue;
            int now = f->now.mask[(size_t)y * (size_t)f->width + (size_t)x];
            int before = moved(f, x, y, v);
            changed += abs(now - before);
            area += SAC_MAX(now, before);
        }
    f->compared++;
    f->changed += (double)changed / 255;
    f->area += (double)area / 255;
    return SAC_OK;
}

/* entry == count: an empty matte. */
static sac_result step(struct flicker *f, size_t entry)
{
    const sac_frame *frame = f->frames.frame;
    sac_result       res = sac_mask_set_load(f->masks, entry, frame->width, frame->height);
    if (res == SAC_OK &&
        (f->masks->picture.width != frame->width || f->masks->picture.height != frame->height))
        return SAC_FAIL(f->masks->ctx, SAC_ERR_ARG,
                        "%s: frame %lld is %d x %d pixels, its mask in %s %d x %d", f->frames.url,
                        (long long)f->frames.at, frame->width, frame->height, f->masks->path,
                        f->masks->picture.width, f->masks->picture.height);
    if (res == SAC_OK)
        res = resize(f, frame->width, frame->height);
    if (res != SAC_OK)
        return res;
    memset(f->now.ignored, 0, (size_t)f->width * (size_t)f->height);
    res = sac_mask_wanted_draw(f->masks, f->wanted, f->now.mask, f->now.ignored);
    for (int y = 0; y < f->height; y++)
        memcpy(f->now.luma + (size_t)y * (size_t)f->width,
               frame->plane[0] + (size_t)y * frame->pitch_bytes[0], (size_t)f->width);
    if (res == SAC_OK && f->before.filled)
        res = compare(f);
    struct moment spare = f->before;
    f->before = f->now;
    f->before.filled = true;
    f->now = spare;
    f->now.filled = false;
    return res;
}

/* Names may count from 0 or from 1: from 1 where there is no 0 and the last would be past the end.
 * In a list of results the last frames may have no entry, so the largest number tells nothing:
 * those without a 0 count from 1, as `saccade segment` does. */
static sac_result find_base(struct flicker *f, int64_t smallest, int64_t largest, int64_t *base)
{
    *base = 0;
    if (smallest < 1)
        return SAC_OK;
    if (f->masks->results) {
        *base = 1;
        return SAC_OK;
    }
    sac_result res = sac_frames_get(&f->frames, INT64_MAX);
    *base = res == SAC_EOS && largest == f->frames.count;
    return res == SAC_EOS ? SAC_OK : res;
}

/* The entries first to last of one sequence, which are in the order of their numbers. */
static sac_result run(struct flicker *f, size_t first, size_t last, int64_t *no_frame)
{
    const struct sac_mask_entry *entries = f->masks->entries;
    int64_t                      base;
    while (first < last && entries[first].number < 0) {
        first++;
        (*no_frame)++;
    }
    if (first == last)
        return SAC_OK;
    sac_result res = find_base(f, entries[first].number, entries[last - 1].number, &base);
    f->before.filled = false;
    for (int64_t n = 0; res == SAC_OK; n++) {
        while (first < last && entries[first].number < n + base)
            first++; /* a number twice */
        bool has = first < last && entries[first].number == n + base;
        if (first == last && !f->masks->results)
            break;
        res = sac_frames_get(&f->frames, n);
        if (res == SAC_OK && (has || f->masks->results))
            res = step(f, has ? first : f->masks->count);
        else
            f->before.filled = false;
    }
    if (res == SAC_EOS)
        *no_frame += (int64_t)(last - first);
    return res == SAC_EOS ? SAC_OK : res;
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static void add(struct sac_mask_scores *scores, const struct flicker *f)
{
    scores->flicker_changed += f->changed;
    scores->flicker_area += f->area;
    if (f->compared > 0) /* an empty matte is steady */
        scores->flicker =
            scores->flicker_area > 0 ? scores->flicker_changed / scores->flicker_area : 0;
}

sac_result sac_mask_flicker(struct sac_mask_set *masks, const struct sac_mask_wanted *wanted,
                            const char *video, struct sac_mask_scores *all,
                            struct sac_mask_scores *sequences, size_t sequence_count,
                            int64_t *no_frame)
{
    sac_result res = SAC_OK;
    for (size_t first = 0, last; first < masks->count && res == SAC_OK; first = last) {
        const char    *sequence = masks->entries[first].sequence;
        char           path[PATH_SIZE];
        struct flicker f = {.masks = masks, .wanted = wanted};
        for (last = first; last < masks->count; last++)
            if (strcmp(masks->entries[last].sequence, sequence) != 0)
                break;
        int length = snprintf(path, sizeof path, "%s/%s", video, sequence);
        if (length >= PATH_SIZE || !*sequence || !is_folder(path))
            snprintf(path, sizeof path, "%s", video);
        res = sac_frames_open(masks->ctx, path, false, &f.frames);
        if (res == SAC_OK)
            res = run(&f, first, last, no_frame);
        add(all, &f);
        for (size_t i = 0; i < sequence_count; i++)
            if (strncmp(sequences[i].name, sequence, sizeof sequences[i].name - 1) == 0)
                add(&sequences[i], &f);
        finish(&f);
    }
    return res;
}
