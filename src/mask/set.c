/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "mask/mask.h"

void sac_mask_set_close(struct sac_mask_set *set)
{
    if (set->ops)
        set->ops->close(set);
    sac_free(set->entries);
    sac_free(set->picture.pixels);
    sac_arena_finish(&set->arena);
    *set = (struct sac_mask_set){0};
}

/* The value of the last digits; -1: none, or too many. */
static int64_t last_number(const char *name)
{
    const char *end = name + strlen(name);
    while (end > name && !(end[-1] >= '0' && end[-1] <= '9'))
        end--;
    const char *at = end;
    while (at > name && at[-1] >= '0' && at[-1] <= '9')
        at--;
    int64_t number = 0;
    if (at == end || end - at > 15)
        return -1;
    for (; at < end; at++)
        number = number * 10 + (*at - '0');
    return number;
}

sac_result sac_mask_set_add(struct sac_mask_set *set, const char *path, int64_t number, size_t at)
{
    struct sac_mask_entry entry = {.number = number, .at = at, .sequence = ""};
    bool                  ok = true;
    if (path) {
        const char *slash = strrchr(path, '/');
        const char *dot = strrchr(slash ? slash : path, '.');
        size_t      length = dot && dot != path ? (size_t)(dot - path) : strlen(path);
        entry.name = sac_arena_strndup(&set->arena, path, length);
        entry.base = entry.name && slash ? entry.name + (slash - path) + 1 : entry.name;
        if (slash)
            entry.sequence = sac_arena_strndup(&set->arena, path, (size_t)(slash - path));
        ok = entry.name && entry.sequence;
        if (ok && number < 0)
            entry.number = last_number(entry.base);
    }
    if (!ok ||
        !sac_grow((void **)&set->entries, &set->capacity, set->count + 1, sizeof *set->entries))
        return SAC_FAIL(set->ctx, SAC_ERR_MEMORY, "%s: no memory for the list of its masks",
                        set->path);
    set->entries[set->count++] = entry;
    return SAC_OK;
}

sac_result sac_mask_picture_size(struct sac_mask_set *set, const char *file, double width,
                                 double height, bool pixels)
{
    struct sac_mask_picture *picture = &set->picture;
    if (!(width >= 1 && height >= 1 && width <= 32768 && height <= 32768 &&
          width * height <= SAC_MASK_PIXELS_MAX))
        return SAC_FAIL(set->ctx, SAC_ERR_LIMIT,
                        "%s: a mask of %.15g x %.15g pixels; at most %d are possible", file, width,
                        height, SAC_MASK_PIXELS_MAX);
    picture->width = (int)width;
    picture->height = (int)height;
    if (pixels && !sac_grow((void **)&picture->pixels, &picture->capacity,
                            (size_t)picture->width * (size_t)picture->height, 1))
        return SAC_FAIL(set->ctx, SAC_ERR_MEMORY, "%s: no memory", file);
    return SAC_OK;
}

/* ---- the loaded picture ---- */

/* What the numbers are, where nobody said; and whether they can be. */
static sac_result judge_values(struct sac_mask_set *set)
{
    struct sac_mask_picture *picture = &set->picture;
    size_t                   count = (size_t)picture->width * (size_t)picture->height;
    const char              *name = set->entries[set->loaded].name;
    if (set->values == SAC_MASK_VALUES_AUTO)
        set->values = picture->palette ? SAC_MASK_VALUES_OBJECTS : SAC_MASK_VALUES_ALPHA;
    if (set->values == SAC_MASK_VALUES_ALPHA)
        ;
    else if (picture->wide || picture->transparent)
        return SAC_FAIL(set->ctx, SAC_ERR_UNSUPPORTED,
                        "%s%s%s: %s, where numbers of %s from 0 to 255 should be", set->path,
                        name ? "/" : "", name ? name : "",
                        picture->wide ? "numbers of 16 bits" : "alpha",
                        set->values == SAC_MASK_VALUES_OBJECTS ? "objects" : "classes");
    else if (picture->bits)
        for (size_t i = 0; i < count; i++)
            picture->pixels[i] &= 1;
    for (size_t i = 0; i < count; i++)
        set->seen[picture->pixels[i]] = true;
    return SAC_OK;
}

sac_result sac_mask_set_load(struct sac_mask_set *set, size_t entry, int width, int height)
{
    set->nothing = entry == set->count;
    set->loaded = entry;
    if (set->nothing)
        return sac_mask_picture_size(set, set->path, width, height, false);
    sac_result res = set->ops->load(set, entry, width, height);
    return res == SAC_OK && !set->ops->draw ? judge_values(set) : res;
}

bool sac_mask_set_has_classes(const struct sac_mask_set *set)
{
    return set->ops->draw || set->values == SAC_MASK_VALUES_CLASSES;
}

bool sac_mask_set_has(const struct sac_mask_set *set, int64_t class_id)
{
    if (set->nothing)
        return false;
    if (set->ops->has)
        return set->ops->has(set, class_id);
    size_t count = (size_t)set->picture.width * (size_t)set->picture.height;
    return class_id > 0 && class_id < SAC_MASK_IGNORED &&
           memchr(set->picture.pixels, (int)class_id, count);
}

sac_result sac_mask_set_draw(struct sac_mask_set *set, int64_t class_id, uint8_t *mask,
                             uint8_t *ignored)
{
    const struct sac_mask_picture *picture = &set->picture;
    size_t                         count = (size_t)picture->width * (size_t)picture->height;
    if (set->nothing) {
        memset(mask, 0, count);
    } else if (set->ops->draw) {
        memset(mask, 0, count);
        return set->ops->draw(set, class_id, mask, ignored);
    } else if (set->values == SAC_MASK_VALUES_ALPHA) {
        memcpy(mask, picture->pixels, count);
    } else {
        for (size_t i = 0; i < count; i++) {
            int  number = picture->pixels[i];
            bool is_ignored = number == SAC_MASK_IGNORED;
            bool inside = class_id == SAC_MASK_EVERY ? number != 0 : number == class_id;
            mask[i] = inside && !is_ignored ? 255 : 0;
            ignored[i] |= is_ignored;
        }
    }
    return SAC_OK;
}

sac_result sac_mask_wanted_draw(struct sac_mask_set *set, const struct sac_mask_wanted *wanted,
                                uint8_t *mask, uint8_t *ignored)
{
    size_t count = (size_t)set->picture.width * (size_t)set->picture.height;
    if (wanted->count == 0 || !sac_mask_set_has_classes(set))
        return sac_mask_set_draw(set, SAC_MASK_EVERY, mask, ignored);
    sac_result res = sac_mask_set_draw(set, wanted->ids[0], mask, ignored);
    if (res != SAC_OK || wanted->count == 1)
        return res;
    uint8_t *more = sac_alloc(count);
    if (!more)
        return SAC_FAIL(set->ctx, SAC_ERR_MEMORY, "%s: no memory", set->path);
    for (size_t i = 1; i < wanted->count && res == SAC_OK; i++) {
        res = sac_mask_set_draw(set, wanted->ids[i], more, ignored);
        for (size_t p = 0; p < count; p++)
            mask[p] = SAC_MAX(mask[p], more[p]);
    }
    sac_free(more);
    return res;
}
