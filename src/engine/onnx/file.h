/* SPDX-License-Identifier: Apache-2.0 */
/* A file mapped for reading. */
#ifndef SAC_ENGINE_ONNX_FILE_H
#define SAC_ENGINE_ONNX_FILE_H

#include "base/base.h"

struct sac_mapped_file {
    const void *bytes; /* NULL when size is 0 */
    size_t      size;
};

/* Errors   SAC_ERR_IO; SAC_ERR_FORMAT when it is not a regular file. The sentence names the
 *          path. */
sac_result sac_file_map(sac_context *ctx, const char *path, struct sac_mapped_file *out);
void       sac_file_unmap(struct sac_mapped_file *file);

#endif
