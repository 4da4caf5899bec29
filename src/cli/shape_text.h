/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAC_CLI_SHAPE_TEXT_H
#define SAC_CLI_SHAPE_TEXT_H

#include <stdbool.h>

#include <saccade/tensor.h>

/* "float32 [1,3,416,416]"; an open dimension is "?". */
void shape_text(const struct sac_tensor_desc *desc, char *buf, size_t size);

/* "1,3,640,640" into rank and shape; *rest: what follows. False: it is none, or too long. */
bool shape_read(const char *text, const char **rest, struct sac_tensor_desc *out);

#endif
