// SPDX-License-Identifier: Apache-2.0
// Of float16; 8-bit numbers have files of their own.
#include "engine/cuda/products/conv_tensor.cuh"

extern "C" cudaError_t conv_launch_tensor(const conv_tensor_params *p, enum conv_bytes_kind kind,
                                          int variant, int processors, cudaStream_t stream)
{
    using namespace conv;
    switch (kind) {
    case CONV_BYTES_S8: return run_tensor_s8(*p, variant, processors, stream);
    case CONV_BYTES_F8: return run_tensor_f8(*p, variant, processors, stream);
    case CONV_BYTES_F16: return run_tensor_variant<CONV_BYTES_F16>(*p, variant, processors, stream);
    default: return cudaErrorNotSupported;
    }
}
