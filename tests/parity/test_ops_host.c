/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of the CUDA kernels, compiled for the host, on all parity cases: indexing, layouts and
 * arithmetic are proven where no GPU is. */
#include <stdio.h>

#include "tests/parity/trial.h"
#include "tests/test.h"

#include "engine/cuda/ops.h"

#define KERNEL(op) static const struct sac_kernel kernel_##op = {SAC_OP_##op, ops_supports, ops_prepare, ops_run, ops_release};
#include "engine/cuda/rows.h"
#undef KERNEL

static const struct sac_kernel *const kernels[SAC_OP_COUNT] = {
#define KERNEL(op) [SAC_OP_##op] = &kernel_##op,
#include "engine/cuda/rows.h"
#undef KERNEL
};

static const struct sac_kernel_provider provider = {
    .abi = SAC_KERNEL_ABI, .struct_size = sizeof(struct sac_kernel_provider), .op_count = SAC_OP_COUNT,
    .name = "cuda bodies on the host", .kernels = kernels};

sac_result ops_queue(struct sac_device *dev, struct sac_stream *stream, const struct ops_state *s,
                     const struct ops_ports *ports)
{
    (void)dev;
    return s->row->launch(s->params, ports, stream) ? SAC_ERR_DEVICE : SAC_OK;
}

int main(int argc, char **argv)
{
    struct trial t = {.provider = &provider, .only = argc > 1 ? argv[1] : NULL};
    if (sac_device_open(test_context(), "cpu", NULL, &t.dev) != SAC_OK)
        return 1;
    trial_all(&t);
    sac_device_unref(&t.dev);
    return t.failed ? 1 : 0;
}
