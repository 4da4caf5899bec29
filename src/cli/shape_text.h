/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAC_CLI_SHAPE_TEXT_H
#define SAC_CLI_SHAPE_TEXT_H

#include <saccade/tensor.h>

/* "float32 [1,3,416,416]"; an open dimension is "?". */
void shape_text(const struct sac_tensor_desc *desc, char *buf, size_t size);

#endif
