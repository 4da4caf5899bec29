/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device for tests: each is skipped, with the reason, where there is none. With
 * SACCADE_TEST_GPU set (scripts/gpu-test) that is a failure. */
#ifndef SAC_TESTS_GPU_H
#define SAC_TESTS_GPU_H

#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "tests/test.h"

#ifdef SAC_EMULATED_GPU
/* parity/emulated: some kernels run on the host. */
sac_device *gpu_open(const struct sac_device_params *params);
#else
static inline sac_device *gpu_open(const struct sac_device_params *params)
{
    sac_device *dev = NULL;
    char        why[512];
    if (sac_device_open(test_context(), "cuda", params, &dev) == SAC_OK)
        return dev;
    sac_context_last_error(test_context(), why, sizeof why);
    if (getenv("SACCADE_TEST_GPU"))
        fail_msg("%s", why);
    print_message("skipped: %s\n", why);
    skip();
    return NULL;
}
#endif

/* One whose pool may have all of the card: by default it has a share, and says SAC_ERR_LIMIT there.
 */
static inline sac_device *gpu_open_whole(void)
{
    struct sac_device_params params = sac_device_params_default();
    params.memory_share_max = 0;
    return gpu_open(&params);
}

/* How often a test of random cases goes round: n times, with SACCADE_TEST_SHORT a tenth of that
 * (under a tool that watches every access of a kernel). */
static inline int gpu_rounds(int n)
{
#ifdef SAC_EMULATED_GPU
    n /= 2; /* which is slow */
#endif
    return getenv("SACCADE_TEST_SHORT") ? (n + 9) / 10 : n;
}

/* For what takes all of the card's memory, or measures it: other programs there would be in the
 * way. */
static inline void gpu_alone(void)
{
    if (getenv("SACCADE_TEST_WHOLE_GPU"))
        return;
    print_message("skipped: it wants the card for itself: SACCADE_TEST_WHOLE_GPU=1\n");
    skip();
}

#endif
