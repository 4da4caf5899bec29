/* SPDX-License-Identifier: Apache-2.0 */
/* Writer of ONNX files: a graph, as it was read and then rewritten with ONNX's own operators,
 * becomes the bytes of a ModelProto that sac_onnx_read and other programs read.
 *
 * Source: github.com/onnx/onnx, onnx.proto. */
#ifndef SAC_ENGINE_ONNX_WRITE_H
#define SAC_ENGINE_ONNX_WRITE_H

#include "engine/onnx/onnx.h"

/* file     its graph, opset and metadata; values keep their names unless two have the same one.
 * more     [count] metadata that is added; a key that file has too is replaced.
 * out      freed by the caller with sac_free.
 * Errors   SAC_ERR_MEMORY. */
sac_result sac_onnx_write(const struct sac_onnx *file, const struct sac_onnx_pair *more, int count,
                          uint8_t **out, size_t *size);

#endif
