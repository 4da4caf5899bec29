/* SPDX-License-Identifier: Apache-2.0 */
/* The sliding window of convolutions and poolings, with auto_pad, defaults and ceil_mode resolved.
 * One to three spatial dimensions; leading dimensions of one are added up to three, so that a
 * kernel is written once, for [depth, height, width]. */
#ifndef SAC_ENGINE_OPS_WINDOW_H
#define SAC_ENGINE_OPS_WINDOW_H

#include "engine/ops/op.h"

/* Of kernels, strides, dilations and pads: products stay small. */
enum { SAC_EXTENT_MAX = 1 << 24 };
/* An attribute of `count` numbers between lo and SAC_EXTENT_MAX, or `count` times its default. */
sac_result sac_extents_read(const struct sac_op_call *c, const char *name, int64_t lo, size_t count,
                            int64_t fallback, int64_t *out);

enum { SAC_WINDOW_DIMS = 3 };
struct sac_window {
    int     rank; /* spatial dimensions that the node really has: the last ones */
    int64_t in[SAC_WINDOW_DIMS], out[SAC_WINDOW_DIMS];
    int64_t kernel[SAC_WINDOW_DIMS], stride[SAC_WINDOW_DIMS], dilation[SAC_WINDOW_DIMS];
    int64_t pad_begin[SAC_WINDOW_DIMS], pad_end[SAC_WINDOW_DIMS];
};

/* Of input `input` [N,C,spatial...]. kernel: [rank] from the weights, or NULL: 'kernel_shape' says.
 * Checks all attributes. */
sac_result sac_window_read(const struct sac_op_call *c, int input, const int64_t *kernel,
                           struct sac_window *w);
/* The same for a transposed convolution, whose window slides over the output. */
sac_result sac_window_read_transposed(const struct sac_op_call *c, const int64_t *kernel,
                                      struct sac_window *w);

/* Of outputs first..last-1, those whose tap at `offset` (kernel position times dilation, minus the
 * pad) lies inside an input of size `in`. */
void sac_window_span(int64_t offset, int64_t stride, int64_t in, int64_t out, int64_t *first,
                     int64_t *last);

#endif
