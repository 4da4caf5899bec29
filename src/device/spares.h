/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of one size that one owner uses over and over, so that his path asks the pool for none. One that he
 * took is his again when all others have given up their references and streams are done with it.
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
    int                count, next; /* next: taken first, the one that was taken longest ago */
};

/* At least n of this size, those of another size given up; fewer, but one, where there is no memory. */
sac_result sac_spares_reserve(struct sac_spares *s, size_t bytes, int n);
/* With all of them out, one more. Errors as sac_buffer_create. */
sac_result sac_spares_take(struct sac_spares *s, size_t bytes, struct sac_buffer **out);
void       sac_spares_finish(struct sac_spares *s);

#endif
