/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAC_ENGINE_KERNEL_FINITE_H
#define SAC_ENGINE_KERNEL_FINITE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether none of `count` numbers in host memory is NaN or, but for nan_alone, infinite: float32,
 * with `half` float16. */
bool sac_numbers_are_finite(const void *numbers, int64_t count, bool half, bool nan_alone);

#endif
