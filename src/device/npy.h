/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a .npy file, for whoever maps its numbers instead of reading them into a tensor
 * (sac_tensor_load_npy in saccade/tensor.h). */
#ifndef SAC_DEVICE_NPY_H
#define SAC_DEVICE_NPY_H

#include <stdio.h>

#include <saccade/tensor.h>

/* What the numbers are, and the offset of the first in the file; a regular file has them all.
 * file   at its beginning; afterwards at the first number.
 * Errors   those of sac_tensor_load_npy. */
sac_result sac_npy_read_header(sac_context *ctx, const char *path, FILE *file,
                               struct sac_tensor_desc *out, int64_t *offset);

#endif
