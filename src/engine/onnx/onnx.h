/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of ONNX files: bytes of a ModelProto become a graph.
 *
 *     struct sac_onnx file;
 *     sac_result res = sac_onnx_read(ctx, &source, &arena, &file);
 *     ... file.graph ...
 *
 * Models are untrusted input. Every length, count, offset and product of dims is checked against
 * the bytes that are there; nesting and names are bounded; a claimed size without the bytes to
 * match allocates nothing. Aligned constants point into the source's bytes, which must therefore
 * outlive the graph; others are copied into the arena.
 *
 * Source: github.com/onnx/onnx, onnx.proto and docs/IR.md; IR versions 3 to 14.
 */
#ifndef SAC_ENGINE_ONNX_ONNX_H
#define SAC_ENGINE_ONNX_ONNX_H

#include "engine/graph/graph.h"

struct sac_onnx_source {
    const void *bytes;
    size_t      size;
    const char *folder; /* of the model's file, where external data may lie; NULL: none allowed */
};

struct sac_onnx_pair {
    const char *key, *value;
};

struct sac_onnx_blob; /* a mapped file of external data */

struct sac_onnx {
    struct sac_graph     *graph;
    const char           *producer;          /* "" when the file names none */
    int64_t               ir_version, opset; /* opset of ONNX's own domain */
    struct sac_onnx_pair *metadata;
    int                   metadata_count;
    int                   node_count; /* in the file, functions as one */
    struct sac_onnx_blob *blobs;
};

/* Everything in out is in the arena; only the mapped files need sac_onnx_finish.
 * Errors   SAC_ERR_FORMAT, SAC_ERR_UNSUPPORTED (a tensor type, a sparse tensor), SAC_ERR_IO
 *          (external data), SAC_ERR_LIMIT, SAC_ERR_MEMORY. */
sac_result sac_onnx_read(sac_context *ctx, const struct sac_onnx_source *source,
                         struct sac_arena *arena, struct sac_onnx *out);
/* The file number i of external data; NULL: there are no more. */
const char *sac_onnx_data_file(const struct sac_onnx *file, int i);
void        sac_onnx_finish(struct sac_onnx *file);

#endif
