/* SPDX-License-Identifier: Apache-2.0 */
/* The reference of norms whose numbers lie in dense rows, for norm.c and line_norm.c. */
#ifndef SAC_ENGINE_OPS_NORM_ROWS_H
#define SAC_ENGINE_OPS_NORM_ROWS_H

#include "engine/ops/fused_kinds.h"
#include "engine/ops/op.h"

struct sac_row_norm {
    enum sac_norm_kind kind;
    int64_t            rows, size;
    double             epsilon; /* of L1 and L2: what a smaller norm is taken for */
    /* Broadcast over the input as if it had this shape; scale and bias may be absent. */
    struct sac_operand shape, scale, bias;
};

/* Input 0 to output 0; outputs 1 and 2, where the node wants them, are each row's mean and one over
 * its deviation. */
sac_result sac_norm_rows(struct sac_op_call *c, const struct sac_row_norm *norm);

#endif
