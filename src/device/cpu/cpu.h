/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU as a device: host memory, and streams that do their work at once, so that nothing is
 * under way when an entry returns. */
#ifndef SAC_DEVICE_CPU_CPU_H
#define SAC_DEVICE_CPU_CPU_H

#include "device/device.h"

extern const struct sac_device_ops sac_device_cpu;

/* What the CPU can do, detected once; SACCADE_CPU=ref|avx2|avx512 lowers it (for tests); avx512
 * is AVX-512 without VNNI. */
enum sac_cpu_level { SAC_CPU_REF = 0, SAC_CPU_AVX2, SAC_CPU_AVX512, SAC_CPU_AVX512_VNNI };
enum sac_cpu_level sac_cpu_level(void);

#endif
