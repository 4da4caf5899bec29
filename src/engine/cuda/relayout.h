/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel behind a change of layout, as the host code sees it. */
#ifndef SAC_ENGINE_CUDA_RELAYOUT_H
#define SAC_ENGINE_CUDA_RELAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cuda_crossing {
    CUDA_CROSS_1,
    CUDA_CROSS_2,
    CUDA_CROSS_4,
    CUDA_CROSS_8,
    CUDA_CROSS_TO_HALF,
    CUDA_CROSS_FROM_HALF
};
struct cuda_relayout_params {
    void              *dst;
    const void        *src;
    int64_t            samples, rows, columns; /* of src [samples][rows][columns] */
    bool               turn;                   /* dst [samples][columns][rows]; else like src */
    enum cuda_crossing crossing; /* bytes of a number, or between float32 and float16 */
};
cudaError_t cuda_launch_relayout(const struct cuda_relayout_params *params, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
