/* SPDX-License-Identifier: Apache-2.0 */
/* How far the same tensor is off that two devices, or two precisions, computed. */
#ifndef SAC_ENGINE_DIFFERENCE_H
#define SAC_ENGINE_DIFFERENCE_H

#include <saccade/tensor.h>

/* The largest difference over the largest number around it, which is looked for in each slice along the second
 * axis, of three also along the last: an output that holds boxes in pixels beside scores up to 1 shows what is
 * wrong with either. Where all numbers of a slice are under 0.05, over that. Infinite for a number that only one has.
 * got, want [elements of desc] host memory. */
double sac_difference(const struct sac_tensor_desc *desc, const void *got, const void *want);
/* What it may be: 0.001 in FP32, 0.03 in TF32 and FP16. */
double sac_difference_limit(int precision);

#endif
