/* SPDX-License-Identifier: Apache-2.0 */
/* A device for tests that computes on the CPU but has memory of its own, as a GPU has, so that all
 * copies between host and device are tested without a GPU. */
#ifndef SAC_TESTS_MEDIA_APART_H
#define SAC_TESTS_MEDIA_APART_H

#include <string.h>

#include "device/cpu/cpu.h"
#include "tests/test.h"

static inline sac_device *apart_open(const struct sac_device_params *params)
{
    static struct sac_device_ops ops;
    sac_device                  *dev = NULL;
    ops = sac_device_cpu;
    ops.host_memory = false;
    ops.host_alloc = ops.memory_alloc;
    ops.host_free = ops.memory_free;
    assert_sac_ok(sac_device_open_ops(test_context(), &ops, 0, params, &dev));
    strcpy(dev->name, "apart:0");
    return dev;
}

#endif
