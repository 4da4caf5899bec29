/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes on a device, for tests that give its entries memory of their own. */
#ifndef SAC_TESTS_PARITY_BYTES_H
#define SAC_TESTS_PARITY_BYTES_H

#include <stdlib.h>

#include "device/device.h"
#include "tests/test.h"

/* Not initialised. */
static inline struct sac_buffer *test_room(sac_device *dev, size_t size)
{
    struct sac_buffer *buf = NULL;
    assert_sac_ok(sac_buffer_create(dev, size, "test", &buf));
    return buf;
}

static inline void test_write(sac_device *dev, struct sac_buffer *to, const void *bytes,
                              size_t size)
{
    assert_sac_ok(sac_device_copy(dev, NULL, sac_buffer_data(to), bytes, size,
                                  SAC_COPY_HOST_TO_DEVICE, SAC_COPY_TENSOR_USER, "test"));
}

static inline void test_read(sac_device *dev, void *to, const struct sac_buffer *from, size_t size)
{
    assert_sac_ok(sac_device_copy(dev, NULL, to, sac_buffer_data(from), size,
                                  SAC_COPY_DEVICE_TO_HOST, SAC_COPY_TENSOR_USER, "test"));
}

static inline struct sac_buffer *test_put(sac_device *dev, const void *bytes, size_t size)
{
    struct sac_buffer *buf = test_room(dev, size);
    test_write(dev, buf, bytes, size);
    return buf;
}

/* free() it. */
static inline void *test_get(sac_device *dev, const struct sac_buffer *from, size_t size)
{
    void *bytes = malloc(size);
    assert_non_null(bytes);
    test_read(dev, bytes, from, size);
    return bytes;
}

#endif
