/* SPDX-License-Identifier: Apache-2.0 */
/* The difference between the results of two devices, or of two precisions, for the same tensor. */
#ifndef SAC_ENGINE_MODEL_DIFFERENCE_H
#define SAC_ENGINE_MODEL_DIFFERENCE_H

#include <saccade/tensor.h>

/* The largest difference, relative to the largest number of its slice along the second axis, and
 * with three axes also along the last: an output may hold boxes in pixels beside scores up to 1,
 * and an error in either must show. Where all numbers of a slice are below 0.05, the difference is
 * divided by 0.05. Infinite where the two differ and one is not finite. got, want [elements of
 * desc] host memory. */
double sac_difference(const struct sac_tensor_desc *desc, const void *got, const void *want);
/* The limit: 0.001 in FP32, 0.03 in TF32 and FP16. */
double sac_difference_limit(int precision);

#endif
