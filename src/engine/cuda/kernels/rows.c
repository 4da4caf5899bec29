/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/kernels/kernels.h"

#define KERNEL(op) extern const struct ops_row ops_row_##op;
#include "engine/cuda/kernels/rows.h"
#undef KERNEL

const struct ops_row *const ops_rows[SAC_OP_COUNT] = {
#define KERNEL(op) [SAC_OP_##op] = &ops_row_##op,
#include "engine/cuda/kernels/rows.h"
#undef KERNEL
};
