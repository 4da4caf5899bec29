/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of one size that an owner reuses, so that its path does not call the pool. A buffer can
 * be taken again when all other references are released and no stream works with it any more.
 *
 *     struct sac_spares spares = {.dev = dev, .owner = "frames"};
 *     res = sac_spares_reserve(&spares, bytes, 8);     // before the first one, or with it
 *     res = sac_spares_take(&spares, bytes, &buf);     // a reference
 *     ...
 *     sac_spares_finish(&spares);
 *
 * One thread. */
#ifndef SAC_DEVICE_SPARES_H
#define SAC_DEVICE_SPARES_H

#include "device/device.h"

enum { SAC_SPARES_MAX = 40 };

struct sac_spares {
    sac_device        *dev;
    const char        *owner;
    bool               host; /* page-locked host memory */
    struct sac_buffer *buf[SAC_SPARES_MAX];
    int                count, next; /* next: the one taken longest ago, taken first */
};

/* Hold at least n of this size and release those of another size; fewer, at least one, when memory
 * is short. */
sac_result sac_spares_reserve(struct sac_spares *s, size_t bytes, int n);
/* Creates one more when all are in use. Errors as sac_buffer_create. */
sac_result sac_spares_take(struct sac_spares *s, size_t bytes, struct sac_buffer **out);
void       sac_spares_finish(struct sac_spares *s);

#endif
