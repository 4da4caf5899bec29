/* SPDX-License-Identifier: Apache-2.0 */
#include "device/device.h"

const struct sac_device_row sac_device_rows[] = {
    {.name = "cpu", .ops = &sac_device_cpu},
    {.name = "cuda", .missing = "the plug-in libsaccade-cuda.so is not part of this build yet"},
};
const size_t sac_device_row_count = SAC_COUNT(sac_device_rows);
