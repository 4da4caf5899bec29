/* SPDX-License-Identifier: Apache-2.0 */
/* Which picture of one set belongs to which of another: by whole name, by the name without its
 * folder, by number; the first of these by which any two belong together. */
#include <string.h>

#include "mask/mask.h"

typedef int compare_fn(const struct sac_mask_entry *, const struct sac_mask_entry *);

static int by_name(const struct sac_mask_entry *a, const struct sac_mask_entry *b)
{
    return strcmp(a->name, b->name);
}

static int by_base(const struct sac_mask_entry *a, const struct sac_mask_entry *b)
{
    return strcmp(a->base, b->base);
}

static int by_number(const struct sac_mask_entry *a, const struct sac_mask_entry *b)
{
    return (a->number > b->number) - (a->number < b->number);
}

/* qsort has no place for an argument. */
static _Thread_local compare_fn *compare;

static int compare_pointers(const void *a, const void *b)
{
    const struct sac_mask_entry *x = *(const struct sac_mask_entry *const *)a;
    const struct sac_mask_entry *y = *(const struct sac_mask_entry *const *)b;
    return compare(x, y);
}

/* The entries in order; NULL in *out: some lack the name or number, or share it. */
static sac_result sort(const struct sac_mask_set *set, compare_fn *by,
                       const struct sac_mask_entry ***out)
{
    const struct sac_mask_entry **list = sac_calloc(set->count + 1, sizeof *list);
    *out = NULL;
    if (!list)
        return SAC_FAIL(set->ctx, SAC_ERR_MEMORY, "%s: no memory", set->path);
    for (size_t i = 0; i < set->count; i++) {
        const struct sac_mask_entry *entry = &set->entries[i];
        list[i] = entry;
        if (by == by_number ? entry->number < 0 : !entry->name) {
            sac_free(list);
            return SAC_OK;
        }
    }
    compare = by;
    qsort(list, set->count, sizeof *list, compare_pointers);
    for (size_t i = 1; i < set->count; i++)
        if (by(list[i - 1], list[i]) == 0) {
            sac_free(list);
            return SAC_OK;
        }
    *out = list;
    return SAC_OK;
}

static size_t match(const struct sac_mask_set *a, const struct sac_mask_set *b, compare_fn *by,
                    const struct sac_mask_entry **x, const struct sac_mask_entry **y, size_t *of_a)
{
    size_t count = 0;
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        int order = by(x[i], y[j]);
        if (order == 0) {
            of_a[x[i] - a->entries] = (size_t)(y[j] - b->entries);
            count++;
        }
        i += order <= 0;
        j += order >= 0;
    }
    return count;
}

sac_result sac_mask_pair(const struct sac_mask_set *a, const struct sac_mask_set *b, size_t *of_a)
{
    static compare_fn *const ways[] = {by_name, by_base, by_number};
    for (size_t i = 0; i < a->count; i++)
        of_a[i] = SAC_MASK_NONE;
    /* COCO's results mean their data set's ids, whatever the names. */
    size_t way = a->ops->draw && b->ops->draw ? 2 : 0;
    for (; way < SAC_COUNT(ways); way++) {
        const struct sac_mask_entry **x = NULL, **y = NULL;
        size_t                        count = 0;
        sac_result                    res = sort(a, ways[way], &x);
        if (res == SAC_OK)
            res = sort(b, ways[way], &y);
        if (res == SAC_OK && x && y)
            count = match(a, b, ways[way], x, y, of_a);
        sac_free(x);
        sac_free(y);
        if (res != SAC_OK || count > 0)
            return res;
    }
    if (b->results) /* a list of results without one result for these pictures */
        return SAC_OK;
    return SAC_FAIL(a->ctx, SAC_ERR_ARG,
                    "no picture of %s (%zu, the first is %s) has a name or number in %s (%zu, the "
                    "first is %s)",
                    a->path, a->count,
                    a->count && a->entries[0].name ? a->entries[0].name : "unnamed", b->path,
                    b->count, b->count && b->entries[0].name ? b->entries[0].name : "unnamed");
}
