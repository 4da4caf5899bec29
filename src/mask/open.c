/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "mask/mask.h"

static const struct sac_mask_set_ops *const kinds[] = {&sac_mask_folder, &sac_mask_coco,
                                                       &sac_mask_video};

/* Frames count up, and a video is read once: sequence by sequence, in the order of the numbers. */
static int compare_entries(const void *a, const void *b)
{
    const struct sac_mask_entry *x = a, *y = b;
    int                          order = strcmp(x->sequence, y->sequence);
    if (order)
        return order;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    order = strcmp(x->name ? x->name : "", y->name ? y->name : "");
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

sac_result sac_mask_set_open(struct sac_mask_set *set)
{
    if (access(set->path, R_OK) != 0)
        return SAC_FAIL(set->ctx, SAC_ERR_IO, "%s: %s", set->path, strerror(errno));
    for (size_t i = 0; i < SAC_COUNT(kinds) && !set->ops; i++)
        if (kinds[i]->claims(set->path))
            set->ops = kinds[i];
    sac_result res = set->ops->open(set);
    if (res == SAC_OK && set->count > 0)
        qsort(set->entries, set->count, sizeof *set->entries, compare_entries);
    set->loaded = SAC_MASK_NONE;
    return res;
}
