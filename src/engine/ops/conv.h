/* SPDX-License-Identifier: Apache-2.0 */
/* The plain convolution, shared by Conv and its integer relatives. */
#ifndef SAC_ENGINE_OPS_CONV_H
#define SAC_ENGINE_OPS_CONV_H

#include "engine/ops/op.h"

/* out[0] of `dtype` from the inputs with these indices; bias may be beyond the node's inputs. */
sac_result sac_conv_shape(struct sac_op_call *c, int input, int weights, int bias,
                          enum sac_dtype dtype);
/* After sac_conv_shape. x, w, bias (NULL: none) and y hold float (SAC_F32), double (SAC_F64) or
 * int32_t (SAC_I32). */
void sac_conv_run(struct sac_op_call *c, int input, int weights, enum sac_dtype dtype,
                  const void *x, const void *w, const void *bias, void *y);

#endif
