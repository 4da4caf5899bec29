/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/parity/bodies.h"

#include <string.h>

#include "engine/cuda/kernels/row.h"
#include "tests/engine/far.h"
#include "tests/test.h"

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

const struct sac_kernel_provider bodies = {.abi = SAC_KERNEL_ABI,
                                           .struct_size = sizeof(struct sac_kernel_provider),
                                           .op_count = SAC_OP_COUNT,
                                           .name = "cuda bodies on the host",
                                           .kernels = kernels};

ops_launch *bodies_instead;

static void run_far(const void *state, void *const *in, void *const *out, void *scratch)
{
    const struct ops_state *s = state;
    const struct ops_ports  ports = ops_ports_of(s, in, out, scratch);
    assert_int_equal(s->row->launch(s->params, &ports, NULL), 0);
}

sac_result ops_queue(struct sac_device *dev, struct sac_device_stream *stream,
                     const struct ops_state *s, const struct ops_ports *ports)
{
    void *in[OPS_PORTS];
    if (strcmp(dev->ops->name, "far") != 0)
        return (bodies_instead ? bodies_instead : s->row->launch)(s->params, ports, stream)
                   ? SAC_ERR_DEVICE
                   : SAC_OK;
    for (int i = 0; i < s->in_count; i++)
        in[i] = (void *)ports->in[i];
    far_queue(stream, run_far, s, s->in_count, in, s->out_count, ports->out, ports->scratch);
    return SAC_OK;
}
