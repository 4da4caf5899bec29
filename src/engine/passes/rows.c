/* SPDX-License-Identifier: Apache-2.0 */
/* Attention whose tokens come first is exported with a Transpose of rows before the product that
 * makes queries, keys and values, and one after the product behind it. A product does not mind the
 * order of its rows: both move past it towards the attention, which reads and writes through
 * steps. */
#include <string.h>

#include "engine/ops/quant.h"
#include "engine/passes/pass.h"

/* A Transpose that leaves the last dimension where it is. */
static bool turns_rows(const struct sac_node *n, const int64_t **perm)
{
    const int rank = sac_is(n, "Transpose") && n->inputs[0] ? n->inputs[0]->rank : -1;
    return rank >= 3 && sac_attr_ints(n, "perm", perm) == (size_t)rank &&
           (*perm)[rank - 1] == rank - 1;
}

/* A product by a constant matrix in which each row of the result depends on one row. */
static bool is_product(const struct sac_node *n, int64_t *k, int64_t *columns)
{
    const bool gemm = sac_is(n, "Gemm");
    const bool bytes = sac_is_fused(n, "QuantMatMul") && !sac_node_input(n, SAC_RESIDUAL_INPUT);
    if ((!gemm && !bytes && !sac_is(n, "MatMul")) || !n->outputs[0] ||
        n->outputs[0]->dtype != SAC_F32 || !n->inputs[1]->data || n->inputs[1]->rank != 2 ||
        n->inputs[0]->rank < 2 || n->inputs[0]->data)
        return false;
    const bool turned = gemm && sac_attr_int(n, "transB", 0) != 0;
    *k = n->inputs[1]->dims[turned ? 1 : 0];
    *columns = n->inputs[1]->dims[turned ? 0 : 1];
    return !gemm || (!sac_attr_int(n, "transA", 0) &&
                     (!sac_node_input(n, 2) || sac_constant_row(n->inputs[2], 2, *columns)));
}

/* n over another first input x, whose last dimension becomes `columns`. */
static struct sac_value *again(struct sac_graph *g, const struct sac_node *n, struct sac_value *x,
                               int64_t columns, sac_result *res)
{
    struct sac_node  *made = sac_op_node(g, n->domain, n->op_type, n->input_count, 1, n);
    struct sac_value *y = made ? sac_value_like(g, x) : NULL;
    if (y && *res == SAC_OK)
        *res = sac_copy_attrs(g, made, n);
    if (!y || *res != SAC_OK) {
        *res = SAC_ERR_MEMORY;
        return NULL;
    }
    for (int i = 0; i < n->input_count; i++)
        made->inputs[i] = i == 0 ? x : n->inputs[i];
    y->dtype = n->outputs[0]->dtype;
    y->dims[y->rank - 1] = columns;
    y->producer = made;
    made->outputs[0] = y;
    return y;
}

static sac_result replace(struct sac_graph *g, struct sac_node *old, struct sac_value *by,
                          bool *changed)
{
    sac_graph_replace(g, old->outputs[0], by);
    *changed = true;
    return SAC_OK;
}

/* Transpose, MatMul, Add of a bias, Reshape into heads: the Transpose goes before the Reshape. */
static sac_result move_behind(struct sac_graph *g, struct sac_node *n, int64_t columns,
                              bool *changed)
{
    const struct sac_node *turn = n->inputs[0]->producer;
    struct sac_node       *add = sac_only_reader(n, "Add");
    struct sac_value      *bias = add ? sac_other_input(add, n->outputs[0]) : NULL;
    const int64_t         *perm;
    sac_result             res = SAC_OK;
    if (!turn || !turns_rows(turn, &perm) || n->inputs[0]->uses != 1 ||
        n->outputs[0]->rank != n->inputs[0]->rank)
        return SAC_OK;
    if (!bias || !sac_constant_row(bias, n->outputs[0]->rank, columns) || !add->outputs[0])
        add = NULL;
    struct sac_node *last = add ? add : n;
    if (!sac_only_reader(last, "Reshape"))
        return SAC_OK;
    struct sac_value *y = again(g, n, turn->inputs[0], columns, &res);
    if (y && add) {
        struct sac_node *sum = sac_op_node(g, "", "Add", 2, 1, add);
        if (!sum || !(sum->outputs[0] = sac_value_like(g, y)))
            return SAC_ERR_MEMORY;
        sum->inputs[0] = y;
        sum->inputs[1] = bias;
        y = sum->outputs[0];
        y->producer = sum;
    }
    y = y ? sac_transposed(g, turn, y, perm, &res) : NULL;
    return y ? replace(g, last, y, changed) : res;
}

/* Is x the heads, put together by a Transpose and Reshapes? */
static bool joins_heads(const struct sac_value *x)
{
    const struct sac_node *n = sac_made_by(x, "Reshape");
    return n && x->uses == 1 && sac_made_by(n->inputs[0], "Transpose");
}

/* Heads put together, a product, Reshape, Transpose: the Transpose goes before the product. */
static sac_result move_before(struct sac_graph *g, struct sac_node *n, int64_t k, int64_t columns,
                              bool *changed)
{
    struct sac_node        *apart = sac_only_reader(n, "Reshape");
    struct sac_node        *turn = apart ? sac_only_reader(apart, "Transpose") : NULL;
    const struct sac_value *x = n->inputs[0];
    const int64_t          *perm;
    int64_t                 dims[SAC_RANK_MAX];
    sac_result              res = SAC_OK;
    if (!turn || !turns_rows(turn, &perm) || !turn->outputs[0] || turn->outputs[0]->rank < 0 ||
        k > columns || !joins_heads(x))
        return SAC_OK;
    const struct sac_value *parts = apart->outputs[0];
    if (parts->dims[parts->rank - 1] != columns)
        return SAC_OK;
    memcpy(dims, parts->dims, sizeof dims);
    dims[parts->rank - 1] = k;
    struct sac_value *y = sac_reshaped(g, apart, n->inputs[0], parts->rank, dims, &res);
    if (y)
        y = sac_transposed(g, turn, y, perm, &res);
    if (y)
        y = sac_reshaped(g, apart, y, x->rank, x->dims, &res);
    if (y)
        y = again(g, n, y, columns, &res);
    if (y)
        y = sac_reshaped(g, apart, y, turn->outputs[0]->rank, turn->outputs[0]->dims, &res);
    return y ? replace(g, turn, y, changed) : res;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    int64_t k, columns;
    if (!is_product(n, &k, &columns))
        return SAC_OK;
    sac_result res = move_behind(g, n, columns, changed);
    return res == SAC_OK && !*changed ? move_before(g, n, k, columns, changed) : res;
}

const struct sac_pass sac_pass_rows = {"rows", visit};
