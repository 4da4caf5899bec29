/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of float16 as convolutions' kernels have them, in tests that emulate these. */
#ifndef SAC_TESTS_PARITY_HALF_MAPS_H
#define SAC_TESTS_PARITY_HALF_MAPS_H

#include "engine/cuda/products/conv_spec.h"
#include "tests/parity/subject.h"

/* What lies where a map has no number. */
enum { HALF_BESIDE = 0xeeee };

/* The convolution in float16; plan: how far pixels and samples lie apart, the rest is set. */
struct conv_spec half_spec(const struct subject *s, struct sac_kernel_plan plan);
size_t           half_map_bytes(const struct conv_map *m, int64_t n);
/* Channels last, and HALF_BESIDE elsewhere; from: [N,C,pixels] or NULL. The caller frees it. */
uint16_t *half_map_lay(const struct conv_map *m, int64_t n, const float *from);
/* Fails where y is not what the reference row computed, or something beside it was written. */
void half_map_compare(const struct subject *s, const struct conv_spec *v, const uint16_t *y,
                      int variant);

#endif
