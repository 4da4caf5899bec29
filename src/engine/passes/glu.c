/* SPDX-License-Identifier: Apache-2.0 */
/* Gated linear units (Dauphin et al., 2017; SwiGLU and GEGLU: Shazeer, "GLU Variants Improve
 * Transformer", 2020) are often exported as one product, of whose columns one half, activated, is
 * multiplied by the other. As two products, of which one takes the activation in, both halves lie
 * dense, and nothing is cut out of rows. */
#include <string.h>

#include "engine/passes/glu.h"

enum { HALVES = 2, FUNCTIONS_MAX = 2, COLUMNS = 8 /* which kernels read at once */ };

struct unit {
    struct sac_node  *product;
    struct sac_part   part[HALVES];
    struct sac_value *half[HALVES];
};

/* The half of a product's columns behind the activations that v is made by; false: it is none. */
static bool find_half(struct sac_value *v, struct sac_part *part, struct sac_value **half)
{
    struct sac_activation act;
    for (int i = 0;
         i < FUNCTIONS_MAX && v->producer && v->uses == 1 && sac_activation_of(v->producer, &act);
         i++)
        v = v->producer->inputs[0];
    *half = v;
    return !v->data && v->producer && v->uses == 1 && v->rank >= 2 &&
           sac_part_along(v, v->rank - 1, part);
}

/* X W + B with nothing behind the sums. */
static bool is_plain(const struct sac_node *n)
{
    if (!sac_is(n, "MatMul") && !sac_is_fused(n, "FusedMatMul"))
        return false;
    const struct sac_value *w = n->inputs[1], *b = sac_node_input(n, 2);
    const bool              bare =
        sac_is(n, "MatMul") || (!sac_node_input(n, SAC_RESIDUAL_INPUT) &&
                                sac_attr_int(n, "activation", SAC_ACT_NONE) == SAC_ACT_NONE);
    return bare && n->outputs[0]->dtype == SAC_F32 && sac_constant_floats(w) && w->rank == 2 &&
           w->dims[0] > 0 && !n->inputs[0]->data && n->inputs[0]->rank >= 2 &&
           (!b || (sac_constant_floats(b) && sac_value_elements(b) == w->dims[1]));
}

/* Do the halves together make up what their product makes, and does nobody else read it? */
static bool find_unit(struct unit *u, const struct sac_node *n)
{
    for (int i = 0; i < HALVES; i++)
        if (!find_half(n->inputs[i], &u->part[i], &u->half[i]))
            return false;
    const struct sac_value *whole = u->part[0].of;
    const struct sac_part  *first = &u->part[u->part[0].begin == 0 ? 0 : 1],
                          *second = &u->part[u->part[0].begin == 0 ? 1 : 0];
    const int64_t columns = whole->dims[whole->rank - 1];
    const bool    split = u->half[0]->producer == u->half[1]->producer;
    u->product = whole->producer;
    return u->part[1].of == whole && first->begin == 0 && first->end == second->begin &&
           second->end == columns && 2 * first->end == columns && first->end % COLUMNS == 0 &&
           whole->uses == (split ? 1 : HALVES) && u->product && is_plain(u->product);
}

/* Columns from..end of so many rows. */
static struct sac_value *columns_of(struct sac_graph *g, const struct sac_value *v, int64_t rows,
                                    int64_t from, int64_t end)
{
    const int64_t     wide = sac_value_elements(v) / rows, n = end - from, dims[] = {rows, n};
    const bool        row = rows == 1 && v->rank == 1;
    float            *to;
    struct sac_value *made = sac_new_floats(g, v->name, row ? 1 : 2, row ? dims + 1 : dims, &to);
    for (int64_t i = 0; made && i < rows; i++)
        memcpy(to + i * n, sac_constant_floats(v) + i * wide + from, (size_t)n * sizeof *to);
    return made;
}

static sac_result make_half(struct sac_graph *g, const struct unit *u, int i)
{
    const struct sac_node  *from = u->product;
    const struct sac_value *w = from->inputs[1], *b = sac_node_input(from, 2);
    const struct sac_part  *part = &u->part[i];
    struct sac_node *made = sac_op_node(g, from->domain, from->op_type, from->input_count, 1, from);
    struct sac_value *y = made ? sac_value_like(g, u->half[i]) : NULL;
    if (!y || sac_copy_attrs(g, made, from) != SAC_OK)
        return SAC_ERR_MEMORY;
    made->inputs[0] = from->inputs[0];
    made->inputs[1] = columns_of(g, w, w->dims[0], part->begin, part->end);
    if (b)
        made->inputs[2] = columns_of(g, b, 1, part->begin, part->end);
    if (!made->inputs[1] || (b && !made->inputs[2]))
        return SAC_ERR_MEMORY;
    made->outputs[0] = y;
    y->producer = made;
    sac_graph_replace(g, u->half[i], y);
    return SAC_OK;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct unit u;
    sac_result  res = SAC_OK;
    if (!sac_is(n, "Mul") || !n->inputs[0] || !n->inputs[1] || n->inputs[0] == n->inputs[1] ||
        !sac_same_shape(n->inputs[0], n->inputs[1]))
        return SAC_OK;
    if (!find_unit(&u, n))
        return sac_glu_of_left(g, n, changed);
    *changed = true;
    for (int i = 0; i < HALVES && res == SAC_OK; i++)
        res = make_half(g, &u, i);
    return res;
}

const struct sac_pass sac_pass_glu = {"glu", visit, NULL};
