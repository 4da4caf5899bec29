/* SPDX-License-Identifier: Apache-2.0 */
/* Constants behind a norm of lines go into its scale and shift: those of a layer or of a head too,
 * as in x + c LayerNormalization(f(x)), and of cosine attention's queries. */
#include "engine/ops/util.h"
#include "engine/passes/norms.h"

enum { NUMBERS_MAX = 1 << 20 }; /* of a scale or shift */

static struct sac_operand operand_of(const struct sac_value *v)
{
    struct sac_operand o = {.dtype = v->dtype, .rank = v->rank};
    memcpy(o.dims, v->dims, sizeof o.dims);
    return o;
}

/* a times b, or their sum, broadcast; NULL with SAC_OK: it would be too large. */
static struct sac_value *combine(struct sac_graph *g, const struct sac_value *a,
                                 const struct sac_value *b, bool times, sac_result *res)
{
    const struct sac_operand side[] = {operand_of(a), operand_of(b)};
    int                      rank = a->rank;
    int64_t                  dims[SAC_RANK_MAX];
    struct sac_walk          w;
    float                   *to;
    memcpy(dims, a->dims, sizeof dims);
    if (!sac_broadcast_dims(&rank, dims, b->rank, b->dims) ||
        sac_dims_product(rank, dims) > NUMBERS_MAX)
        return NULL;
    struct sac_value *made = sac_new_floats(g, a->name, rank, dims, &to);
    if (!made) {
        *res = SAC_ERR_MEMORY;
        return NULL;
    }
    sac_walk_init(&w, rank, dims);
    sac_walk_operand(&w, &side[0]);
    sac_walk_operand(&w, &side[1]);
    for (sac_walk_start(&w); w.run; sac_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++) {
            const float x = sac_constant_floats(a)[w.at[0] + i * w.step[0]],
                        y = sac_constant_floats(b)[w.at[1] + i * w.step[1]];
            *to++ = times ? x * y : x + y;
        }
    return made;
}

/* What there is so far, a constant or NULL, with c; NULL with SAC_OK: it cannot be. */
static struct sac_value *with(struct sac_graph *g, const struct sac_value *so_far,
                              struct sac_value *c, bool times, sac_result *res)
{
    if (!so_far)
        return c;
    return sac_constant_floats(so_far) ? combine(g, so_far, c, times, res) : NULL;
}

static sac_result take(struct sac_graph *g, struct sac_node *n, const struct sac_node *norm,
                       struct sac_value *c, bool *changed)
{
    sac_result        res = SAC_OK;
    const bool        times = sac_is(n, "Mul");
    struct sac_value *scale = sac_node_input(norm, SAC_NORM_SCALE),
                     *shift = sac_node_input(norm, SAC_NORM_SHIFT), *was = shift;
    if (times)
        scale = with(g, scale, c, true, &res);
    if (!times || shift)
        shift = with(g, shift, c, times, &res);
    if (res != SAC_OK || (times && !scale) || ((was || !times) && !shift))
        return res;
    struct sac_node *made = sac_line_norm_again(g, norm, &res);
    if (!made)
        return res;
    made->inputs[SAC_NORM_SCALE] = scale;
    made->inputs[SAC_NORM_SHIFT] = shift;
    *changed = true;
    return sac_take_over(g, made, n);
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    if ((!sac_is(n, "Mul") && !sac_is(n, "Add")) || n->output_count != 1 || !n->outputs[0])
        return SAC_OK;
    for (int i = 0; i < 2; i++) {
        struct sac_value *v = n->inputs[i], *c = n->inputs[1 - i];
        if (!sac_is_line_norm(v->producer) || v->uses != 1 || !sac_constant_floats(c) ||
            sac_value_elements(c) < 1 || !sac_fits_beside(c, v) ||
            sac_node_input(v->producer, SAC_NORM_RESIDUAL))
            continue;
        return take(g, n, v->producer, c, changed);
    }
    return SAC_OK;
}

const struct sac_pass sac_pass_norm_gain = {"norm-gain", visit};
