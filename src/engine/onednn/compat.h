/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN's C API as this plug-in uses it, the same over generations 2 (Debian 12) and 3 (Debian
 * 13). Memory descriptors are values in 2 and handles in 3; operation descriptors are gone in 3. */
#ifndef SAC_ENGINE_ONEDNN_COMPAT_H
#define SAC_ENGINE_ONEDNN_COMPAT_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>

#include "base/base.h"

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t memory_desc;
#else
typedef dnnl_memory_desc_t *memory_desc; /* on the heap, so that both are handles */
#endif
typedef const_dnnl_primitive_desc_t const_primitive_desc;

/* strides NULL: the library chooses. Returns NULL when it fails. */
memory_desc desc_create(int rank, const int64_t *dims, const int64_t *strides);
void        desc_destroy(memory_desc *d);

struct window {
    int         rank; /* spatial */
    dnnl_dims_t stride, dilation, pad_begin, pad_end;
};

/* Fused behind a primitive: out += dst before (sum), then an activation. */
struct after {
    bool            sum;
    dnnl_alg_kind_t alg; /* dnnl_alg_kind_undef: none */
    float           alpha, beta;
};

/* bias NULL: none. deconv: the transposed convolution. */
dnnl_status_t conv_desc(dnnl_engine_t engine, bool deconv, memory_desc src, memory_desc weights,
                        memory_desc bias, memory_desc dst, const struct window *w,
                        const struct after *after, dnnl_primitive_desc_t *out);

const char *implementation_of(const_primitive_desc pd);
size_t      scratchpad_bytes(const_primitive_desc pd);
/* The memory that a primitive wants for an argument; NULL: it has no such argument. */
dnnl_memory_t memory_for(const_primitive_desc pd, dnnl_query_t what, dnnl_engine_t engine,
                         void *handle);
/* The layout of a primitive's weights, which belongs to it. */
memory_desc weights_of(const_dnnl_primitive_t p);
size_t      bytes_for(const_primitive_desc pd, dnnl_query_t what);
/* Converts numbers from the layout of `from` to the layout of the weights that pd wants. */
dnnl_status_t reorder_weights(const_primitive_desc pd, dnnl_engine_t engine, dnnl_stream_t stream,
                              memory_desc from, const void *src, void *dst);

#endif
