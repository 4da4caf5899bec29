/* SPDX-License-Identifier: Apache-2.0 */
/* Memory layouts of a logical [N,C,spatial...] tensor: sizes, and conversion between them. */
#ifndef SAC_ENGINE_KERNEL_LAYOUT_H
#define SAC_ENGINE_KERNEL_LAYOUT_H

#include "engine/ops/op.h"

const char *sac_layout_name(enum sac_layout layout); /* "plain", "channels last", ... */

/* What the numbers are stored as: float32 in a layout of half precision is float16. */
enum sac_dtype sac_layout_dtype(enum sac_dtype dtype, enum sac_layout layout);

/* Bytes of an operand in a layout. */
size_t sac_layout_bytes(const struct sac_operand *o, enum sac_layout layout);

/* Are the bytes of this shape the same in both layouts? */
bool sac_layout_same(const struct sac_operand *o, enum sac_layout a, enum sac_layout b);

/* Copy o's numbers from one layout into another, host memory. */
void sac_layout_convert(const struct sac_operand *o, void *dst, enum sac_layout to, const void *src,
                        enum sac_layout from);
/* The same, cut into pieces for the workers. */
void sac_layout_convert_on(struct sac_worker_pool *workers, const struct sac_operand *o, void *dst,
                           enum sac_layout to, const void *src, enum sac_layout from);

#endif
