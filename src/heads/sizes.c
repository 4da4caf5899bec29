/* SPDX-License-Identifier: Apache-2.0 */
#include "heads/sizes.h"

enum { LEFT_MAX = 1024 };

/* The size below one that has a plan. */
static int smaller(const sac_device *dev, enum sac_batch_padding padding, int size)
{
    const int step = SAC_MAX(dev->ops->batch_step, 2);
    int       power = 1;
    switch (padding) {
    case SAC_BATCH_PADDING_NONE: return size - 1;
    case SAC_BATCH_PADDING_FULL: return 0;
    case SAC_BATCH_PADDING_POWER:
        while (2 * power < size)
            power *= 2;
        return size > 1 ? power : 0;
    default: return size == 1 ? 0 : size / step < step ? 1 : size / step;
    }
}

void sac_sizes_list(struct sac_sizes *s, const sac_device *dev, enum sac_batch_padding padding,
                    int batch_max)
{
    int sizes[SAC_SIZES_MAX], count = 0;
    if (dev->params.deterministic) /* a size has kernels of its own */
        padding = SAC_BATCH_PADDING_FULL;
    for (int size = batch_max; size > 0 && count < SAC_SIZES_MAX;
         size = smaller(dev, padding, size))
        sizes[count++] = size;
    *s = (struct sac_sizes){.padding = padding, .run_cost = dev->ops->run_cost, .count = count};
    for (int i = 0; i < count; i++)
        s->size[i] = sizes[count - 1 - i];
}

/* The smallest one that holds all of them. */
static int one_for(const struct sac_sizes *s, int left)
{
    int i = 0;
    while (i < s->count - 1 && s->size[i] < left)
        i++;
    return i;
}

/* The cheapest way to cut `left` images, where a run costs its size and the device's run_cost: one
 * that is not full costs as much as a full one. */
static int cheapest_for(const struct sac_sizes *s, int left)
{
    int cost[LEFT_MAX + 1], first[LEFT_MAX + 1];
    if (left > LEFT_MAX || left >= s->size[s->count - 1])
        return s->count - 1;
    cost[0] = 0;
    for (int m = 1; m <= left; m++) {
        cost[m] = INT32_MAX;
        for (int i = 0; i < s->count; i++) {
            const int size = s->size[i];
            const int own = size + s->run_cost + cost[SAC_MAX(m - size, 0)];
            if (own <= cost[m]) {
                cost[m] = own;
                first[m] = i;
            }
        }
    }
    return first[left];
}

int sac_sizes_next(const struct sac_sizes *s, int left)
{
    return s->padding == SAC_BATCH_PADDING_AUTO ? cheapest_for(s, left) : one_for(s, left);
}
