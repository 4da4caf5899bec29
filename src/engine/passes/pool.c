/* SPDX-License-Identifier: Apache-2.0 */
/* Spatial pyramid pooling: several MaxPools of growing odd kernels over the same map, stride 1 and
 * padded to its size. The maximum of a wide window is the maximum over narrower, overlapping ones,
 * so each pool can read the next smaller pool's result: 5, 9 and 13 become three pools of 5, 75
 * taps instead of 275. */
#include "engine/passes/pass.h"

/* The kernel's size k when n keeps its map's size; 0: it is no such pool. */
static int64_t same_size_kernel(const struct sac_node *n)
{
    const int64_t *kernel;
    const size_t   rank = sac_attr_ints(n, "kernel_shape", &kernel);
    if (!sac_is(n, "MaxPool") || rank == 0 || kernel[0] % 2 == 0 || sac_node_attr(n, "auto_pad") ||
        (n->output_count > 1 && n->outputs[1]) || sac_attr_int(n, "ceil_mode", 0))
        return 0;
    const int64_t *pads;
    if (!sac_ints_are(n, "kernel_shape", kernel[0]) || !sac_ints_are(n, "strides", 1) ||
        !sac_ints_are(n, "dilations", 1) || !sac_ints_are(n, "pads", kernel[0] / 2) ||
        sac_attr_ints(n, "pads", &pads) != 2 * rank)
        return 0;
    return kernel[0];
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    const int64_t    kernel = same_size_kernel(n);
    int64_t          best = 1;
    struct sac_node *inner = NULL;
    for (size_t i = 0; kernel && i < n->inputs[0]->reader_count; i++) {
        struct sac_node *other = n->inputs[0]->readers[i];
        if (other == n || sac_node_input(other, 0) != n->inputs[0])
            continue;
        const int64_t size = same_size_kernel(other);
        if (size > best && size < kernel) {
            best = size;
            inner = other;
        }
    }
    if (!inner)
        return SAC_OK;
    const int64_t *old;
    const size_t   rank = sac_attr_ints(n, "kernel_shape", &old);
    int64_t        shape[SAC_RANK_MAX], pads[2 * SAC_RANK_MAX];
    for (size_t i = 0; i < rank && i < SAC_RANK_MAX; i++) {
        shape[i] = kernel - best + 1;
        pads[2 * i] = pads[2 * i + 1] = (kernel - best) / 2;
    }
    n->inputs[0] = inner->outputs[0];
    *changed = true;
    sac_result res = sac_node_set_ints(g, n, "kernel_shape", shape, rank);
    return res == SAC_OK ? sac_node_set_ints(g, n, "pads", pads, 2 * rank) : res;
}

const struct sac_pass sac_pass_pool = {"pool", visit};
