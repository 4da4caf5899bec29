/* SPDX-License-Identifier: Apache-2.0 */
/* One CPU device for all tests of a program; close_device is the group's teardown. */
#ifndef SAC_TESTS_ENGINE_DEVICE_H
#define SAC_TESTS_ENGINE_DEVICE_H

#include <saccade/device.h>

#include "tests/test.h"

static inline sac_device *device(void)
{
    static sac_device *dev;
    if (!dev)
        assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &dev));
    return dev;
}

static inline int close_device(void **state)
{
    (void)state;
    sac_device *dev = device();
    sac_device_unref(&dev);
    return 0;
}

#endif
