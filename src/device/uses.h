/* SPDX-License-Identifier: Apache-2.0 */
/* Which streams still work with some memory: an event in each, recorded anew with every use. */
#ifndef SAC_DEVICE_USES_H
#define SAC_DEVICE_USES_H

#include "device/device.h"

enum { SAC_USES_MAX = 4 }; /* streams at once; one more waits for the first to be done */

struct sac_uses {
    struct sac_use {
        const struct sac_device_stream *stream; /* only compared: it may be destroyed by now */
        struct sac_event               *behind; /* recorded after the work; kept for reuse */
        bool                            pending;
    } use[SAC_USES_MAX];
};

/* What is queued on the stream by now works with it. */
void sac_uses_add(struct sac_device *dev, struct sac_uses *uses, struct sac_device_stream *stream);
bool sac_uses_done(struct sac_device *dev, struct sac_uses *uses);
/* Whoever waits for them from now on waits for the device alone, not for this thread. */
void sac_uses_settle(struct sac_device *dev, struct sac_uses *uses);
void sac_uses_wait(struct sac_device *dev, struct sac_uses *uses);
/* What is queued on the stream from now on begins after them; the host does not wait. */
sac_result sac_uses_precede(struct sac_device *dev, struct sac_uses *uses,
                            struct sac_device_stream *stream);
void       sac_uses_finish(struct sac_device *dev, struct sac_uses *uses); /* does not wait */

#endif
