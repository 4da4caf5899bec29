/* SPDX-License-Identifier: Apache-2.0 */
/* The products that make an attention's queries, keys and values from one input are one product
 * with their columns beside each other, of which each view shows its own: one launch for three, and
 * one reading of the input. Products of bytes too, and those with norms of the heads or rotary
 * embeddings between. */
#include <string.h>

#include "engine/ops/quant.h"
#include "engine/passes/norms.h"
#include "engine/passes/strided.h"

enum { OPERANDS = 3 };

/* A product whose columns go beside others': `node` NULL means that it stays. */
struct part {
    struct sac_node        *node;
    struct sac_heads_reader by;
    int64_t                 n, column; /* its columns, and where they begin */
    int64_t                 view[SAC_VIEW_ENTRIES];
};

/* Who reads the product behind an operand: the attention, or the first of what is done to lines. */
static struct sac_heads_reader reader_of(struct sac_node *attention, int operand)
{
    struct sac_heads_reader r = sac_heads_reader_of(attention, operand);
    while (sac_heads_reader_before(&r))
        ;
    return r;
}

static struct sac_value *operand_of(const struct sac_heads_reader *r)
{
    return r->node->inputs[r->input];
}

static bool is_of_bytes(const struct sac_node *n)
{
    return sac_is_fused(n, "QuantMatMul");
}

/* A number for each column. */
static bool is_row(const struct sac_value *v, int64_t columns)
{
    return sac_constant_floats(v) && sac_value_elements(v) == columns;
}

/* X W + B with weights of its own and nothing behind the sums. */
static bool is_plain(const struct sac_node *n)
{
    const struct sac_value *w = n && n->input_count >= 2 ? n->inputs[1] : NULL, *b;
    const bool              bytes = n && is_of_bytes(n);
    if (!w || (!bytes && !sac_is(n, "MatMul") && !sac_is_fused(n, "FusedMatMul")) ||
        (bytes ? !w->data : !sac_constant_floats(w)) || w->rank != 2 || w->uses != 1 ||
        w->dims[0] <= 0 || w->dims[1] <= 1 || n->inputs[0]->rank < 2 ||
        sac_node_input(n, SAC_RESIDUAL_INPUT))
        return false;
    if (bytes && (n->outputs[0]->dtype != SAC_F32 ||
                  !is_row(sac_node_input(n, SAC_QUANT_SCALE), w->dims[1])))
        return false;
    b = sac_node_input(n, 2);
    return (!b || is_row(b, w->dims[1])) &&
           (sac_is(n, "MatMul") || sac_attr_int(n, "activation", SAC_ACT_NONE) == SAC_ACT_NONE);
}

/* The scale of all columns of E4M3, as their fastest kernels take it; 0: they have several. */
static float only_scale(const struct sac_node *n)
{
    const float  *scale = n->inputs[SAC_QUANT_SCALE]->data;
    const int64_t count = n->inputs[1]->dims[1];
    for (int64_t i = 1; i < count; i++)
        if (scale[i] != scale[0])
            return 0;
    return scale[0];
}

/* Both of floats, or of the same bytes. */
static bool are_alike(const struct sac_node *a, const struct sac_node *b)
{
    if (!is_of_bytes(a) || !is_of_bytes(b))
        return is_of_bytes(a) == is_of_bytes(b);
    return a->inputs[1]->dtype == b->inputs[1]->dtype &&
           sac_attr_int(a, "x_zero", 0) == sac_attr_int(b, "x_zero", 0) &&
           (a->inputs[1]->dtype != SAC_F8 || only_scale(a) == only_scale(b));
}

/* Is what it reads read by this attention and its norms alone? */
static bool is_own(struct sac_node *attention, const struct sac_heads_reader *r)
{
    int uses = 0;
    for (int i = 0; i < OPERANDS; i++) {
        const struct sac_heads_reader by = reader_of(attention, i);
        uses += operand_of(&by) == operand_of(r);
    }
    return operand_of(r)->uses == uses;
}

/* The parts that share the input of operand `first`; false where it is alone. */
static bool find_parts(struct sac_node *n, int first, struct part *part, int64_t *wide)
{
    const struct sac_heads_reader of = reader_of(n, first);
    const struct sac_node        *like = operand_of(&of)->producer;
    const struct sac_value       *x = like->inputs[0];
    int                           found = 0;
    *wide = 0;
    for (int i = 0; i < OPERANDS; i++) {
        const struct sac_heads_reader by = reader_of(n, i);
        struct sac_node              *p = operand_of(&by)->producer;
        part[i] = (struct part){.by = by};
        if (!is_plain(p) || p->inputs[0] != x || !are_alike(like, p) || !is_own(n, &by) ||
            !sac_view_attr(by.node, by.name, part[i].view))
            continue;
        part[i].node = p;
        part[i].n = p->inputs[1]->dims[1];
        part[i].column = *wide;
        for (int k = 0; k < i; k++) /* one product for two of them */
            if (part[k].node == p)
                part[i].column = part[k].column;
        found += part[i].column == *wide;
        *wide += part[i].column == *wide ? part[i].n : 0;
    }
    return found > 1;
}

static bool widen_all(struct part *part, int64_t wide)
{
    for (int i = 0; i < OPERANDS; i++)
        if (part[i].node &&
            !sac_view_widen(part[i].view, sac_view_open(part[i].by.node, part[i].by.open_name),
                            part[i].n, part[i].column, wide))
            return false;
    return true;
}

/* rows rows of the parts' constants beside each other: weights, or biases (0 where there is none)
 * and scales. */
static struct sac_value *beside(struct sac_graph *g, const struct part *part, int input,
                                enum sac_dtype dtype, int64_t rows, int64_t wide)
{
    const bool             matrix = input == 1;
    struct sac_tensor_desc desc = {.dtype = dtype, .rank = 1, .shape = {wide}};
    const int64_t          size = (int64_t)sac_dtype_bytes(dtype);
    if (matrix)
        desc = (struct sac_tensor_desc){.dtype = dtype, .rank = 2, .shape = {rows, wide}};
    struct sac_value *made =
        sac_graph_constant(g, matrix ? "wide weights" : "wide row", &desc, NULL);
    for (int i = 0; made && i < OPERANDS; i++) {
        const struct sac_value *from = part[i].node ? sac_node_input(part[i].node, input) : NULL;
        char                   *to = (char *)made->data + part[i].column * size; /* of the arena */
        for (int64_t r = 0; from && r < rows; r++)
            memcpy(to + r * wide * size, (const char *)from->data + r * part[i].n * size,
                   (size_t)(part[i].n * size));
    }
    return made;
}

static struct sac_node *make(struct sac_graph *g, const struct part *part, struct sac_node *like,
                             int64_t wide)
{
    const bool        bytes = is_of_bytes(like);
    struct sac_node  *made = sac_op_node(g, "saccade", bytes ? "QuantMatMul" : "FusedMatMul",
                                        bytes ? SAC_QUANT_SCALE + 1 : 4, 1, like);
    struct sac_value *y = made ? sac_value_like(g, like->outputs[0]) : NULL;
    bool              bias = false;
    for (int i = 0; i < OPERANDS; i++)
        bias |= part[i].node && sac_node_input(part[i].node, 2);
    if (!y)
        return NULL;
    y->dims[y->rank - 1] = wide;
    y->producer = made;
    made->inputs[0] = like->inputs[0];
    made->inputs[1] = beside(g, part, 1, like->inputs[1]->dtype, like->inputs[1]->dims[0], wide);
    made->inputs[2] = bias ? beside(g, part, 2, SAC_F32, 1, wide) : NULL;
    made->outputs[0] = y;
    if (bytes) {
        made->inputs[SAC_QUANT_SCALE] = beside(g, part, SAC_QUANT_SCALE, SAC_F32, 1, wide);
        if (!made->inputs[SAC_QUANT_SCALE] || sac_copy_attrs(g, made, like) != SAC_OK)
            return NULL;
    }
    return made->inputs[1] && (!bias || made->inputs[2]) ? made : NULL;
}

static sac_result join_products(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct part             part[OPERANDS];
    struct sac_heads_reader of;
    int64_t                 wide = 0;
    int                     first = 0;
    for (; first < OPERANDS - 1; first++) {
        of = reader_of(n, first);
        if (is_plain(operand_of(&of)->producer) && find_parts(n, first, part, &wide))
            break;
    }
    if (first == OPERANDS - 1 || !widen_all(part, wide))
        return SAC_OK;
    struct sac_node *made = make(g, part, operand_of(&of)->producer, wide);
    sac_result       res = made ? SAC_OK : SAC_ERR_MEMORY;
    for (int i = 0; i < OPERANDS && res == SAC_OK; i++) {
        const struct sac_heads_reader *by = &part[i].by;
        if (!part[i].node)
            continue;
        by->node->inputs[by->input] = made->outputs[0];
        res = sac_node_set_ints(g, by->node, by->name, part[i].view, SAC_VIEW_ENTRIES);
        if (by->node != n)
            sac_graph_changed(g, by->node);
    }
    *changed = true;
    return res;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    return sac_is_fused(n, "FusedAttention") ? join_products(g, n, changed) : SAC_OK;
}

const struct sac_pass sac_pass_wide = {"wide", visit};
