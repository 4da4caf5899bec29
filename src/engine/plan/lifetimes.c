/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>

#include "base/base.h"
#include "engine/plan/lifetimes.h"

static size_t rounded(size_t bytes)
{
    return (bytes + SAC_ACTIVATION_ALIGN - 1) & ~(size_t)(SAC_ACTIVATION_ALIGN - 1);
}

static int larger_first(const void *a, const void *b)
{
    const struct sac_lifetime *x = *(struct sac_lifetime *const *)a;
    const struct sac_lifetime *y = *(struct sac_lifetime *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    /* orders ties, which qsort would not */
    return x < y ? -1 : x > y;
}

struct placing {
    const struct sac_lifetime *items;
    bool (*together)(const void *user, size_t a, size_t b);
    const void *user;
};

static bool alive_together(const struct placing *p, const struct sac_lifetime *a,
                           const struct sac_lifetime *b)
{
    if (p->together)
        return p->together(p->user, (size_t)(a - p->items), (size_t)(b - p->items));
    return a->first <= b->last && b->first <= a->last;
}

/* placed[0..count) is sorted by offset. Returns the index at which item belongs. */
static size_t lowest_gap(const struct placing *p, struct sac_lifetime *const *placed, size_t count,
                         struct sac_lifetime *item)
{
    size_t offset = 0, need = rounded(item->bytes);
    for (size_t i = 0; i < count; i++) {
        if (!alive_together(p, placed[i], item))
            continue;
        if (placed[i]->offset >= offset && placed[i]->offset - offset >= need)
            break;
        offset = SAC_MAX(offset, placed[i]->offset + rounded(placed[i]->bytes));
    }
    item->offset = offset;
    size_t at = count;
    while (at > 0 && placed[at - 1]->offset > offset)
        at--;
    return at;
}

static bool sum_fits(const struct sac_lifetime *items, size_t count)
{
    size_t sum = 0;
    for (size_t i = 0; i < count; i++)
        if (items[i].bytes > SIZE_MAX / 2 ||
            __builtin_add_overflow(sum, rounded(items[i].bytes), &sum))
            return false;
    return true;
}

size_t sac_lifetimes_place(struct sac_lifetime *items, size_t count,
                           bool (*together)(const void *user, size_t a, size_t b), const void *user)
{
    const struct placing p = {items, together, user};
    size_t               bytes = 0, used = 0, done = 0;
    if (!sum_fits(items, count))
        return (size_t)-1;
    struct sac_lifetime **order = sac_calloc(count, sizeof *order);
    struct sac_lifetime **placed = sac_calloc(count, sizeof *placed);
    if (!order || !placed) {
        sac_free(order);
        sac_free(placed);
        return (size_t)-1;
    }
    for (size_t i = 0; i < count; i++)
        if (items[i].bytes)
            order[used++] = &items[i];
    qsort(order, used, sizeof *order, larger_first);
    for (; done < used; done++) {
        size_t at = lowest_gap(&p, placed, done, order[done]);
        for (size_t i = done; i > at; i--)
            placed[i] = placed[i - 1];
        placed[at] = order[done];
        bytes = SAC_MAX(bytes, order[done]->offset + rounded(order[done]->bytes));
    }
    sac_free(order);
    sac_free(placed);
    return bytes;
}
