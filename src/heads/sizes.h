/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of batch that a network has plans for, and how a batch is cut into runs of them. */
#ifndef SAC_HEADS_SIZES_H
#define SAC_HEADS_SIZES_H

#include <saccade/head.h>

#include "device/device.h"

enum { SAC_SIZES_MAX = 64 };

struct sac_sizes {
    enum sac_batch_padding padding;
    int                    run_cost; /* as of struct sac_device_ops */
    int                    count;
    int                    size[SAC_SIZES_MAX]; /* from the smallest */
};

/* Up to batch_max; of NONE no more than SAC_SIZES_MAX. On a deterministic device the padding is
 * FULL. */
void sac_sizes_list(struct sac_sizes *s, const sac_device *dev, enum sac_batch_padding padding,
                    int batch_max);
/* The number of the size of the next run, for the images that are left. */
int sac_sizes_next(const struct sac_sizes *s, int left);

#endif
