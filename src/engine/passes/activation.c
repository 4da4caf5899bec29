/* SPDX-License-Identifier: Apache-2.0 */
/* Activations that exporters write as several nodes: x * Sigmoid(x) is SiLU, x * HardSigmoid(x) and
 * x * Clip(x + 3, 0, 6) / 6 are HardSwish, Relu(x) + s * Relu(-x) is a LeakyRelu; s * Relu(x)^2 + b
 * is a squared ReLU with its constants, x * Sigmoid(a x) a SiLU between two factors. */
#include <math.h>

#include "engine/passes/strided.h"

/* A factor up to which, and down to whose inverse, x times it is neither infinite nor lost. */
static const double FACTOR_MAX = 1e3;

/* Is gate = f(x) for x * f(x)? */
static bool gate_of(const struct sac_value *x, const struct sac_value *gate,
                    struct sac_activation *out)
{
    struct sac_activation  act;
    const struct sac_node *n = gate ? gate->producer : NULL;
    if (!n || !sac_node_input(n, 0) || n->inputs[0] != x || !sac_activation_of(n, &act))
        return false;
    if (act.kind == SAC_ACT_SIGMOID)
        *out = (struct sac_activation){.kind = SAC_ACT_SILU};
    else if (act.kind == SAC_ACT_HARD_SIGMOID)
        *out = (struct sac_activation){SAC_ACT_HARD_SWISH, act.alpha, act.beta};
    else
        return false;
    return true;
}

/* Clip(x + 3, 0, 6), as a constant times a hard sigmoid. */
static bool is_relu6_of_x_plus_3(const struct sac_value *x, const struct sac_value *v)
{
    struct sac_activation act;
    float                 three;
    if (!v->producer || !sac_is(v->producer, "Clip") || !sac_activation_of(v->producer, &act) ||
        act.alpha != 0 || act.beta != 6)
        return false;
    const struct sac_node *add = sac_made_by(v->producer->inputs[0], "Add");
    return add && sac_other_input(add, x) && sac_constant_scalar(sac_other_input(add, x), &three) &&
           three == 3;
}

/* n divides by 6 (or multiplies by 1/6) what x * relu6(x + 3) made. */
static struct sac_value *spelled_hard_swish(const struct sac_node *n)
{
    float factor;
    if (n->input_count != 2 || !n->inputs[0] || !n->inputs[1] ||
        !sac_constant_scalar(n->inputs[1], &factor))
        return NULL;
    const bool sixth =
        (sac_is(n, "Div") && factor == 6) || (sac_is(n, "Mul") && fabsf(factor - 1.0f / 6) < 1e-6f);
    const struct sac_node *mul = sixth ? sac_made_by(n->inputs[0], "Mul") : NULL;
    for (int i = 0; mul && i < 2; i++)
        if (is_relu6_of_x_plus_3(mul->inputs[i], mul->inputs[1 - i]))
            return mul->inputs[i];
    return NULL;
}

/* n = Relu(x) + s * Relu(-x), which is a PRelu with one slope. */
static struct sac_value *spelled_leaky_relu(const struct sac_node *n, struct sac_activation *out)
{
    float slope;
    for (int i = 0; sac_is(n, "Add") && i < 2; i++) {
        const struct sac_node *relu = sac_made_by(n->inputs[i], "Relu");
        const struct sac_node *mul = sac_made_by(n->inputs[1 - i], "Mul");
        for (int k = 0; relu && mul && k < 2; k++) {
            const struct sac_node *other = sac_made_by(mul->inputs[k], "Relu");
            const struct sac_node *neg = other ? sac_made_by(other->inputs[0], "Neg") : NULL;
            if (neg && neg->inputs[0] == relu->inputs[0] &&
                sac_constant_scalar(mul->inputs[1 - k], &slope) &&
                sac_same_shape(n->outputs[0], relu->inputs[0])) {
                *out = (struct sac_activation){SAC_ACT_LEAKY_RELU, -slope, 0};
                return relu->inputs[0];
            }
        }
    }
    return NULL;
}

/* n squares a Relu, or multiplies a squared one by a constant, or adds one. */
static struct sac_value *spelled_squared_relu(const struct sac_node *n, struct sac_activation *out)
{
    float                   number;
    const struct sac_value *squared = n->output_count == 1 ? sac_square_of(n->outputs[0]) : NULL;
    const struct sac_node  *relu = squared ? sac_made_by(squared, "Relu") : NULL;
    *out = (struct sac_activation){SAC_ACT_SQUARED_RELU, 1, 0};
    if (relu)
        return relu->inputs[0];
    const bool mul = sac_is(n, "Mul"), add = sac_is(n, "Add");
    for (int i = 0; (mul || add) && i < 2; i++) {
        const struct sac_value *v = n->inputs[i];
        const struct sac_node  *act = v->uses == 1 ? v->producer : NULL;
        if (!sac_is_fused(act, "Activation") || !sac_constant_scalar(n->inputs[1 - i], &number) ||
            !sac_same_shape(n->outputs[0], v))
            continue;
        *out = sac_activation_read(act);
        out->alpha *= mul ? number : 1;
        out->beta = mul ? out->beta * number : out->beta + number;
        return out->kind == SAC_ACT_SQUARED_RELU ? act->inputs[0] : NULL;
    }
    return NULL;
}

/* a x, where n = x * Sigmoid(a x): the quick GELU of CLIP. Factors that are too small or too large
 * would take the layers' digits in float16. */
static struct sac_value *spelled_scaled_silu(const struct sac_node *n, double *a)
{
    for (int i = 0; sac_is(n, "Mul") && i < 2; i++) {
        const struct sac_node *gate = sac_made_by(n->inputs[1 - i], "Sigmoid");
        struct sac_value      *scaled = gate ? gate->inputs[0] : NULL;
        if (scaled && scaled->dtype == SAC_F32 && sac_scaled(scaled, a) == n->inputs[i] &&
            fabs(*a) > 1 / FACTOR_MAX && fabs(*a) < FACTOR_MAX)
            return scaled;
    }
    return NULL;
}

/* SiLU(a x) / a: both factors go into the layers around it. */
static sac_result make_scaled_silu(struct sac_graph *g, struct sac_node *n, struct sac_value *x,
                                   double a, bool *changed)
{
    const struct sac_activation silu = {.kind = SAC_ACT_SILU};
    struct sac_node            *act = sac_op_node(g, "saccade", "Activation", 1, 1, n);
    struct sac_node            *mul = sac_op_node(g, "", "Mul", 2, 1, n);
    struct sac_value *v = sac_value_like(g, x), *factor = sac_new_number(g, (float)(1 / a));
    if (!act || !mul || !v || !factor)
        return SAC_ERR_MEMORY;
    act->inputs[0] = x;
    act->outputs[0] = v;
    v->producer = act;
    mul->inputs[0] = v;
    mul->inputs[1] = factor;
    *changed = true;
    sac_result res = sac_set_activation(g, act, &silu);
    return res == SAC_OK ? sac_take_over(g, mul, n) : res;
}

static sac_result replace(struct sac_graph *g, struct sac_node *n, struct sac_value *x,
                          const struct sac_activation *act, bool *changed)
{
    struct sac_node *made = sac_op_node(g, "saccade", "Activation", 1, 1, n);
    if (!made)
        return SAC_ERR_MEMORY;
    made->inputs[0] = x;
    *changed = true;
    sac_result res = sac_set_activation(g, made, act);
    return res == SAC_OK ? sac_take_over(g, made, n) : res;
}

/* Can n's result be an activation of x? A constant of more dims than x gives the result more. */
static bool can_be_activation_of(const struct sac_node *n, const struct sac_value *x)
{
    return x && x->dtype == SAC_F32 && x->rank == n->outputs[0]->rank;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_activation act = {SAC_ACT_HARD_SWISH, 1.0f / 6, 0.5f};
    struct sac_value     *x = spelled_hard_swish(n);
    double                a;
    if (can_be_activation_of(n, x))
        return replace(g, n, x, &act, changed);
    x = spelled_leaky_relu(n, &act);
    if (can_be_activation_of(n, x))
        return replace(g, n, x, &act, changed);
    x = spelled_squared_relu(n, &act);
    if (can_be_activation_of(n, x))
        return replace(g, n, x, &act, changed);
    x = spelled_scaled_silu(n, &a);
    if (x)
        return make_scaled_silu(g, n, x, a, changed);
    if (!sac_is(n, "Mul") || !n->inputs[0] || !n->inputs[1] || n->inputs[0]->dtype != SAC_F32)
        return SAC_OK;
    for (int i = 0; i < 2; i++)
        if (gate_of(n->inputs[i], n->inputs[1 - i], &act))
            return replace(g, n, n->inputs[i], &act, changed);
    return SAC_OK;
}

const struct sac_pass sac_pass_activation = {"activation", visit};
