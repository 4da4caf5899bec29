/* SPDX-License-Identifier: Apache-2.0 */
/* The list of all operators. */
#include <string.h>

#include "engine/ops/op.h"

#define SAC_OP(name, row) extern const struct sac_op row;
#include "engine/ops/list.h"
#undef SAC_OP

static const struct sac_op *const rows[SAC_OP_COUNT] = {
#define SAC_OP(name, row) [SAC_OP_##name] = &row,
#include "engine/ops/list.h"
#undef SAC_OP
};

const struct sac_op *sac_op_row(enum sac_op_id id)
{
    return rows[id];
}

const struct sac_op *sac_op_find(const char *domain, const char *name)
{
    if (strcmp(domain, "ai.onnx") == 0) /* the specification's alias for "" */
        domain = "";
    for (int i = 0; i < SAC_OP_COUNT; i++)
        if (strcmp(rows[i]->name, name) == 0 && strcmp(rows[i]->domain, domain) == 0)
            return rows[i];
    return NULL;
}

struct sac_node *sac_op_node(struct sac_graph *g, const char *domain, const char *op_type,
                             int inputs, int outputs, const struct sac_node *like)
{
    struct sac_node *n = sac_graph_node(g, domain, op_type, inputs, outputs, like);
    if (n)
        n->op = sac_op_find(domain, op_type);
    return n;
}
