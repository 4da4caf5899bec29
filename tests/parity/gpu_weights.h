/* SPDX-License-Identifier: Apache-2.0 */
/* Constants on a device for kernels under test: each is made once and lives until
 * gpu_weights_finish. */
#ifndef SAC_TESTS_PARITY_GPU_WEIGHTS_H
#define SAC_TESTS_PARITY_GPU_WEIGHTS_H

#include "engine/kernel/kernel.h"

enum { GPU_WEIGHTS_MAX = 512 };

struct gpu_weights {
    struct sac_weights base; /* first: what kernels get */
    sac_device        *dev;
    int                count;
    struct {
        const void        *data;
        char               form[96];
        struct sac_buffer *buffer;
    } items[GPU_WEIGHTS_MAX];
};
void gpu_weights_init(struct gpu_weights *w, sac_device *dev);
void gpu_weights_finish(struct gpu_weights *w);

#endif
