/* SPDX-License-Identifier: Apache-2.0 */
/* Two convolutions of maps that are one pixel (the gates of mobile networks) are one Excitation:
 * two layers of a few thousand products, which as convolutions cost what two large ones cost to
 * begin. The means before them, which nothing else reads, are its own. */
#include <string.h>

#include "engine/ops/excitation.h"
#include "engine/passes/pass.h"

enum { EIGHT = 8 }; /* numbers of a weight's row that kernels read at once */

/* v is [N,C,1,...], C known. */
static bool is_pixel(const struct sac_value *v)
{
    bool one = v->rank >= 3 && v->dims[1] > 0 && v->dims[1] <= SAC_EXCITATION_CHANNELS_MAX;
    for (int d = 2; one && d < v->rank; d++)
        one = v->dims[d] == 1;
    return one;
}

/* A convolution that is a layer: of one group and one tap, and nothing is added but a bias. */
static bool is_layer(const struct sac_node *n)
{
    if (!n || (!sac_is(n, "Conv") && !sac_is_fused(n, "FusedConv")) || !n->inputs[0] ||
        !n->outputs[0] || !is_pixel(n->inputs[0]) || !is_pixel(n->outputs[0]) ||
        sac_node_input(n, SAC_RESIDUAL_INPUT) || !sac_constant_floats(n->inputs[1]) ||
        (sac_node_input(n, 2) && !sac_constant_floats(n->inputs[2])))
        return false;
    const int64_t *pads; /* with strides the one tap could lie on them */
    for (size_t i = sac_attr_ints(n, "pads", &pads); i > 0; i--)
        if (pads[i - 1] != 0)
            return false;
    const struct sac_value *w = n->inputs[1];
    return sac_value_elements(w) == w->dims[0] * w->dims[1] && w->dims[1] == n->inputs[0]->dims[1];
}

/* Numbers between the layers, with as many more that nobody gives a weight as make them eights. */
static int64_t between(int64_t hidden)
{
    return hidden > EIGHT / 2 ? (hidden + EIGHT - 1) / EIGHT * EIGHT : hidden;
}

/* The same numbers with the dims of a layer, or more, with zeros behind them. */
static struct sac_value *matrix_of(struct sac_graph *g, const struct sac_value *w, int64_t rows,
                                   int64_t columns)
{
    const int64_t     dims[] = {rows, columns};
    const float      *from = w->data;
    float            *to;
    struct sac_value *made = sac_new_floats(g, w->name, 2, dims, &to);
    if (!made)
        return NULL;
    memset(to, 0, (size_t)(rows * columns) * sizeof *to);
    for (int64_t i = 0; i < w->dims[0]; i++)
        memcpy(to + i * columns, from + i * w->dims[1], (size_t)w->dims[1] * sizeof *to);
    return made;
}

static struct sac_value *bias_of(struct sac_graph *g, const struct sac_node *n, int64_t rows)
{
    const struct sac_value *bias = sac_node_input(n, 2);
    float                  *to;
    struct sac_value       *made = sac_new_floats(g, "bias", 1, &rows, &to);
    if (!made)
        return NULL;
    memset(to, 0, (size_t)rows * sizeof *to);
    if (bias)
        memcpy(to, bias->data, (size_t)bias->dims[0] * sizeof *to);
    return made;
}

static sac_result set_inner(struct sac_graph *g, struct sac_node *n, const struct sac_node *from)
{
    const struct sac_activation act = sac_activation_read(from);
    sac_result                  res = sac_node_set_int(g, n, "inner", act.kind);
    if (res == SAC_OK)
        res = sac_node_set_float(g, n, "inner_alpha", act.alpha);
    return res == SAC_OK ? sac_node_set_float(g, n, "inner_beta", act.beta) : res;
}

static bool is_means(const struct sac_node *n)
{
    return n && n->outputs[0]->uses == 1 && sac_takes_means(n);
}

static sac_result take_means(struct sac_node *n, bool *changed)
{
    if (is_pixel(n->inputs[0]) && is_means(n->inputs[0]->producer)) {
        n->inputs[0] = n->inputs[0]->producer->inputs[0];
        *changed = true;
    }
    return SAC_OK;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    if (sac_is_fused(n, "Excitation"))
        return take_means(n, changed);
    if (!is_layer(n))
        return SAC_OK;
    struct sac_node *first = n->inputs[0]->producer;
    if (!is_layer(first) || n->inputs[0]->uses != 1 ||
        n->inputs[0]->dims[1] > SAC_EXCITATION_HIDDEN_MAX)
        return SAC_OK;
    const struct sac_activation act = sac_activation_read(n);
    struct sac_node            *made = sac_op_node(g, "saccade", "Excitation", 5, 1, n);
    if (!made)
        return SAC_ERR_MEMORY;
    made->inputs[0] = first->inputs[0];
    const int64_t hidden = between(n->inputs[0]->dims[1]), gates = n->outputs[0]->dims[1];
    made->inputs[1] = matrix_of(g, first->inputs[1], hidden, first->inputs[0]->dims[1]);
    made->inputs[2] = bias_of(g, first, hidden);
    made->inputs[3] = matrix_of(g, n->inputs[1], gates, hidden);
    made->inputs[4] = bias_of(g, n, gates);
    for (int i = 1; i < 5; i++)
        if (!made->inputs[i])
            return SAC_ERR_MEMORY;
    *changed = true;
    sac_result res = sac_set_activation(g, made, &act);
    if (res == SAC_OK)
        res = set_inner(g, made, first);
    return res == SAC_OK ? sac_take_over(g, made, n) : res;
}

const struct sac_pass sac_pass_excitation = {"excitation", visit};
