/* SPDX-License-Identifier: Apache-2.0 */
/* A BatchNormalization that no convolution or product took, as before the layers of pre-activation
 * networks (ResNetV2, DenseNet, DPN), takes the activation behind it in. */
#include "engine/passes/pass.h"

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_activation act;
    if (n->output_count != 1 || !sac_activation_of(n, &act) || act.kind == SAC_ACT_NONE)
        return SAC_OK;
    const struct sac_node *norm = sac_made_by(n->inputs[0], "BatchNormalization");
    if (!norm || n->inputs[0]->uses != 1 || norm->output_count != 1 ||
        sac_attr_int(norm, "training_mode", 0))
        return SAC_OK;
    struct sac_node *made = sac_op_node(g, "saccade", "FusedBatchNorm", norm->input_count, 1, n);
    if (!made || sac_node_copy_attr(g, made, "epsilon", norm) != SAC_OK)
        return SAC_ERR_MEMORY;
    for (int i = 0; i < norm->input_count; i++)
        made->inputs[i] = norm->inputs[i];
    *changed = true;
    sac_result res = sac_set_activation(g, made, &act);
    return res == SAC_OK ? sac_take_over(g, made, n) : res;
}

const struct sac_pass sac_pass_batch_norm = {"batch_norm", visit};
