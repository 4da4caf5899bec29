// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/products/conv_tensor.cuh"

namespace conv
{

cudaError_t run_tensor_f8(const conv_tensor_params &p, int variant, int processors,
                          cudaStream_t stream)
{
    return run_tensor_variant<CONV_BYTES_F8>(p, variant, processors, stream);
}

} // namespace conv
