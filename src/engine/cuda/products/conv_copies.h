/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of memory for Hopper's copy engine, and the kernel that reads by them. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_CONV_COPIES_H
#define SAC_ENGINE_CUDA_PRODUCTS_CONV_COPIES_H

#include "engine/cuda/products/conv_launch.h"

struct conv_spec;

/* cudaErrorNotSupported: the driver does not know the engine, or refuses such a map. Any thread. */
cudaError_t conv_copy_map_make(const struct conv_copy_shape *s, struct conv_copy_map *out);
/* Those of a kernel; shapes of rank 0 are of maps that it does not read. */
static inline cudaError_t conv_copy_maps_make(const struct conv_copy_shape shapes[TENSOR_MAPS],
                                              struct conv_copy_map         maps[TENSOR_MAPS])
{
    cudaError_t res = cudaSuccess;
    for (int i = 0; i < TENSOR_MAPS && res == cudaSuccess; i++)
        if (shapes[i].rank > 0)
            res = conv_copy_map_make(&shapes[i], &maps[i]);
    return res;
}
/* Sets the maps, and launches conv_tensor.cuh. */
cudaError_t conv_copies_run(struct conv_tensor_params   *p,
                            const struct conv_copy_shape shapes[TENSOR_MAPS],
                            enum conv_bytes_kind kind, int variant, int processors,
                            cudaStream_t stream);
/* The same for conv_stem_unit.cu. The caller has asked stem_takes. */
cudaError_t conv_copies_run_stem(const struct conv_spec *s, const struct conv_stem_params *params,
                                 int processors, cudaStream_t stream);

#endif
