/* SPDX-License-Identifier: Apache-2.0 */
/* The provider of all operators that have a row in rows.c, on the GPU. */
#include "engine/cuda/cuda.h"
#include "engine/cuda/kernels/row.h"

#define KERNEL(op)                                                                                 \
    static const struct sac_kernel kernel_##op = {SAC_OP_##op, ops_supports, ops_prepare, ops_run, \
                                                  ops_release};
#include "engine/cuda/kernels/rows.h"
#undef KERNEL

static const struct sac_kernel *const kernels[SAC_OP_COUNT] = {
#define KERNEL(op) [SAC_OP_##op] = &kernel_##op,
#include "engine/cuda/kernels/rows.h"
#undef KERNEL
};

const struct sac_kernel_provider sac_kernels_cuda = {
    .abi = SAC_KERNEL_ABI,
    .struct_size = sizeof(struct sac_kernel_provider),
    .op_count = SAC_OP_COUNT,
    .name = "cuda",
    .kernels = kernels,
};

sac_result ops_queue(struct sac_device *dev, struct sac_device_stream *stream,
                     const struct ops_state *s, const struct ops_ports *ports)
{
    sac_result res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    res = cuda_check(
        dev, (cudaError_t)s->row->launch(s->params, ports, cuda_stream_of(dev, stream)), s->name);
    cuda_leave();
    return res;
}
