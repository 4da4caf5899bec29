/* SPDX-License-Identifier: Apache-2.0 */
/* Maps whose channels are no multiple of eight (27, 38, 300, 906: networks that grow by a share of
 * a width) are filled up to one, by rows and columns of zeros in the weights around them, so that
 * tensor cores and copies of eight numbers read them as all others: ReXNet's convolution from 27 to
 * 162 channels took 0.115 ms, one from 16 to 96 of four times the pixels 0.055 (batch 32, float16,
 * one H200, 2026-11-30). Filled up are all maps at once that have the same channels, from the
 * convolutions that make them to those that read them. What is in the new channels does not matter,
 * as long as it is finite: nobody gives it a weight. */
#include <string.h>

#include "engine/passes/pass.h"

/* Of few channels it would be too many: no more than a quarter is added. */
enum { MULTIPLE = 8, SHARE = 4, VALUES_MAX = 256 };

struct maps {
    struct sac_value *value[VALUES_MAX];
    int               count;
    int64_t           channels, filled; /* as they are, and as they will be */
};

static bool has(const struct maps *m, const struct sac_value *v)
{
    for (int i = 0; i < m->count; i++)
        if (m->value[i] == v)
            return true;
    return false;
}

/* All that reads it is known, so it is no output. */
static bool add(struct maps *m, struct sac_value *v)
{
    if (!v || v->data || !v->producer || v->dtype != SAC_F32 || v->rank < 3 ||
        v->dims[1] != m->channels || v->reader_count != (size_t)v->uses)
        return false;
    if (has(m, v))
        return true;
    if (m->count == VALUES_MAX)
        return false;
    m->value[m->count++] = v;
    return true;
}

/* ---- what makes and reads such maps ---- */

/* Its shape function has agreed: attributes and inputs are what they should be. */
static bool is_known(const struct sac_node *n)
{
    return n->output_count == 1 && n->outputs[0] && n->outputs[0]->rank >= 3 && n->inputs[0];
}

static bool is_conv(const struct sac_node *n)
{
    const struct sac_value *w = sac_node_input(n, 1), *bias = sac_node_input(n, 2);
    return (sac_is(n, "Conv") || sac_is_fused(n, "FusedConv")) && is_known(n) &&
           sac_constant_floats(w) && sac_value_elements(w) > 0 &&
           (!bias || sac_constant_floats(bias));
}

static bool is_dense(const struct sac_node *n)
{
    return is_conv(n) && sac_attr_int(n, "group", 1) == 1;
}

/* Each channel by itself. */
static bool is_depthwise(const struct sac_node *n)
{
    const int64_t group = sac_attr_int(n, "group", 1);
    return is_conv(n) && group > 1 && n->inputs[1]->dims[0] == group &&
           n->inputs[0]->dims[1] == group;
}

static bool is_excitation(const struct sac_node *n)
{
    if (!sac_is_fused(n, "Excitation") || !is_known(n))
        return false;
    for (int i = 1; i < 5; i++)
        if (!sac_constant_floats(n->inputs[i]))
            return false;
    return true;
}

/* Does it make a channel of the same channel of its first input alone, and of numbers? */
static bool is_of_one(const struct sac_node *n)
{
    static const char *const pools[] = {"MaxPool", "AveragePool", "GlobalAveragePool",
                                        "GlobalMaxPool"};
    struct sac_activation    act;
    return is_known(n) && (sac_is_any(n, pools, SAC_COUNT(pools)) || sac_takes_means(n) ||
                           sac_activation_of(n, &act));
}

/* Does it make a channel of the same channel of all its inputs? */
static bool is_of_all(const struct sac_node *n)
{
    bool same = is_known(n) && (sac_is(n, "Add") || sac_is(n, "Mul") ||
                                (sac_is_fused(n, "GatedSum") && sac_attr_int(n, "parts", 1) == 1));
    for (int i = 0; same && i < n->input_count; i++)
        same = n->inputs[i] && n->inputs[i]->rank == n->outputs[0]->rank;
    return same;
}

static bool add_inputs(struct maps *m, const struct sac_node *n)
{
    for (int i = 0; i < n->input_count; i++)
        if (!add(m, n->inputs[i]))
            return false;
    return true;
}

/* A residual of some of the channels that n makes. */
static bool is_part(const struct sac_value *residual, const struct sac_node *n)
{
    return residual->dims[1] < n->outputs[0]->dims[1];
}

/* Will there be zeros in v's new channels, and not anything? A residual of some channels adds them
 * to what is no new channel. */
static bool is_filled_by_zeros(const struct sac_value *v)
{
    for (;;) {
        const struct sac_node *n = v->producer;
        if (!n || !is_conv(n)) /* a network's input may be a residual's residual */
            return false;
        const struct sac_activation act = sac_activation_read(n);
        const struct sac_value     *residual = sac_node_input(n, SAC_RESIDUAL_INPUT);
        if (sac_activate(0, &act) != 0)
            return false;
        if (!residual || is_part(residual, n))
            return true;
        v = residual;
    }
}

/* What has as many channels as what n makes. */
static bool add_made_of(struct maps *m, const struct sac_node *n)
{
    struct sac_value *residual = sac_node_input(n, SAC_RESIDUAL_INPUT);
    if (is_dense(n))
        return !residual || is_part(residual, n) || add(m, residual);
    if (is_depthwise(n))
        return add(m, n->inputs[0]) && (!residual || add(m, residual));
    if (is_of_all(n))
        return add_inputs(m, n);
    return is_excitation(n) || (is_of_one(n) && add(m, n->inputs[0]));
}

/* What has as many channels as v, which n reads. */
static bool add_read_by(struct maps *m, const struct sac_node *n, const struct sac_value *v)
{
    const bool first = sac_node_input(n, 0) == v;
    if (is_dense(n) && sac_node_input(n, SAC_RESIDUAL_INPUT) != v)
        return first;
    if (is_dense(n) && is_part(v, n))
        return m->filled <= n->outputs[0]->dims[1] && is_filled_by_zeros(v);
    if (is_dense(n))
        return add(m, n->outputs[0]);
    if (is_excitation(n))
        return first;
    return (is_depthwise(n) || is_of_all(n) || (is_of_one(n) && first)) && add(m, n->outputs[0]);
}

/* All maps that have their channels from the output of n, or give them to it. */
static bool gather(struct maps *m, const struct sac_node *n)
{
    *m = (struct maps){.channels = n->outputs[0]->dims[1]};
    m->filled = sac_whole_channels(m->channels);
    if (m->channels % MULTIPLE == 0 || (m->filled - m->channels) * SHARE > m->channels ||
        !add(m, n->outputs[0]))
        return false;
    for (int i = 0; i < m->count; i++) {
        struct sac_value *v = m->value[i];
        if (!add_made_of(m, v->producer))
            return false;
        for (size_t k = 0; k < v->reader_count; k++)
            if (!add_read_by(m, v->readers[k], v))
                return false;
    }
    return true;
}

/* ---- weights ---- */

/* Input i of n with zeros behind its dim d, up to so many. */
static sac_result fill(struct sac_graph *g, struct sac_node *n, int i, int d, int64_t count)
{
    const struct sac_value *w = sac_node_input(n, i);
    int64_t                 dims[SAC_RANK_MAX], lines = 1, inner = 1;
    float                  *to;
    if (!w || w->dims[d] == count)
        return SAC_OK;
    memcpy(dims, w->dims, sizeof dims);
    dims[d] = count;
    for (int k = 0; k < w->rank; k++)
        *(k < d ? &lines : &inner) *= w->dims[k];
    const float      *from = sac_constant_floats(w);
    struct sac_value *made = sac_new_floats(g, w->name, w->rank, dims, &to);
    if (!made)
        return SAC_ERR_MEMORY;
    const int64_t wide = inner / w->dims[d] * count;
    memset(to, 0, (size_t)(lines * wide) * sizeof *to);
    for (int64_t k = 0; k < lines; k++)
        memcpy(to + k * wide, from + k * inner, (size_t)inner * sizeof *to);
    n->inputs[i] = made;
    sac_graph_changed(g, n);
    return SAC_OK;
}

/* Rows for the new channels of what n makes. */
static sac_result fill_rows(struct sac_graph *g, struct sac_node *n, int64_t count)
{
    const bool single = is_depthwise(n);
    const int  weights = is_conv(n) ? 1 : is_excitation(n) ? 3 : 0;
    sac_result res = weights ? fill(g, n, weights, 0, count) : SAC_OK;
    if (res == SAC_OK && weights)
        res = fill(g, n, weights + 1, 0, count);
    return res == SAC_OK && single ? sac_node_set_int(g, n, "group", count) : res;
}

static sac_result fill_all(struct sac_graph *g, const struct maps *m)
{
    sac_result res = SAC_OK;
    for (int i = 0; res == SAC_OK && i < m->count; i++) {
        struct sac_value *v = m->value[i];
        res = fill_rows(g, v->producer, m->filled);
        for (size_t k = 0; res == SAC_OK && k < v->reader_count; k++) {
            struct sac_node *n = v->readers[k];
            if (n->inputs[0] == v && (is_dense(n) || is_excitation(n)))
                res = fill(g, n, 1, 1, m->filled);
        }
    }
    for (int i = 0; i < m->count; i++)
        m->value[i]->dims[1] = m->filled;
    return res;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct maps m;
    if (!is_dense(n) || !gather(&m, n))
        return SAC_OK;
    *changed = true;
    return fill_all(g, &m);
}

const struct sac_pass sac_pass_eights = {"eights", visit};
