/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters that host code passes to the operators' kernels. Kernels don't know layouts: an
 * operand is an address, the dtype of its numbers in memory (float16 for a float32 value in a half
 * layout) and a stride for each dimension. */
#ifndef SAC_ENGINE_CUDA_KERNELS_TYPES_H
#define SAC_ENGINE_CUDA_KERNELS_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include <saccade/tensor.h>

enum { OPS_DIMS = 10, OPS_OPERANDS = 9, OPS_PORTS = 64 };

/* A launch's addresses. */
struct ops_ports {
    const void *in[OPS_PORTS];
    void       *out[OPS_PORTS];
    void       *scratch;
};

/* n / d for n below 2^31 without a division. */
struct ops_divisor {
    uint32_t d, factor, shift;
};

/* An index space over several operands, outermost dimension first, simplified: no dimension of one,
 * and neighbours merged that are contiguous for all operands. */
struct ops_view {
    int32_t            rank; /* at least 1 */
    int32_t            wide; /* more elements than 31 bits count: divide in 64 bits */
    int64_t            count;
    struct ops_divisor dim[OPS_DIMS];
    int64_t            size[OPS_DIMS];
    int64_t            start[OPS_OPERANDS];
    int64_t            step[OPS_OPERANDS][OPS_DIMS];
};

/* struct sac_head_view of engine/ops/reads.h: steps of batch, head, token and number. */
struct ops_head_view {
    int64_t offset, step[4];
};

/* What a kernel makes 8 bits of, which are its output: enum sac_dtype of these, 0: of nothing.
 * half: a number is float16 first, as it would be between two steps. */
struct ops_bytes {
    int32_t type, half;
    float   inverse, zero; /* 1 / scale */
};

/* The type in which numbers are computed: enum sac_class without its header. */
enum ops_class { OPS_FLOAT, OPS_DOUBLE, OPS_INT64, OPS_UINT64 };

/* A launcher queues its kernels on the stream and decides nothing. 0 or CUDA's error. */
typedef int ops_launch(const void *params, const struct ops_ports *ports, void *stream);
#ifdef __cplusplus
#define OPS_LAUNCHER(name) extern "C" ops_launch name
#else
#define OPS_LAUNCHER(name) ops_launch name
#endif

#endif
