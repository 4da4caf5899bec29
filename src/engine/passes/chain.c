/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise nodes that follow each other are one Chain: a node takes those before it whose
 * numbers nobody else reads, or are so cheap that each reader makes them anew. What follows
 * products, convolutions and norms has gone into these before. */
#include <math.h>
#include <string.h>

#include "engine/ops/chain.h"
#include "engine/passes/pass.h"

enum { READERS_MAX = 3 };

struct program {
    int               inputs;
    struct sac_value *input[SAC_CHAIN_INPUTS];
    struct sac_chain  chain;
};

/* ---- a node's program ---- */

static int fn_of(const struct sac_node *n)
{
    static const struct {
        const char *op;
        int         fn;
    } known[] = {
        {"Abs", SAC_CHAIN_ABS},   {"Erf", SAC_CHAIN_ERF}, {"Exp", SAC_CHAIN_EXP},
        {"Log", SAC_CHAIN_LOG},   {"Neg", SAC_CHAIN_NEG}, {"Reciprocal", SAC_CHAIN_RECIPROCAL},
        {"Sqrt", SAC_CHAIN_SQRT}, {"Add", SAC_CHAIN_ADD}, {"Sub", SAC_CHAIN_SUB},
        {"Mul", SAC_CHAIN_MUL},   {"Div", SAC_CHAIN_DIV}, {"Max", SAC_CHAIN_MAX},
        {"Min", SAC_CHAIN_MIN}};
    for (size_t i = 0; i < SAC_COUNT(known); i++)
        if (sac_is(n, known[i].op))
            return n->input_count == (sac_chain_of_two(known[i].fn) ? 2 : 1) ? known[i].fn : -1;
    return -1;
}

/* The operand that stands for a value; -2: there is no room. */
static int input_of(struct program *p, struct sac_value *v)
{
    for (int i = 0; i < p->inputs; i++)
        if (p->input[i] == v)
            return i;
    if (p->inputs == SAC_CHAIN_INPUTS)
        return -2;
    p->input[p->inputs] = v;
    return p->inputs++;
}

static bool read_step(struct program *p, const struct sac_node *n, int fn)
{
    struct sac_chain_step *s = &p->chain.step[0];
    *s = (struct sac_chain_step){fn, {-1, -1}, 0, 0};
    p->chain.count = 1;
    for (int i = 0; i < (sac_chain_of_two(fn) ? 2 : 1); i++) {
        struct sac_value *v = n->inputs[i];
        const bool        number = sac_chain_of_two(fn) && v->rank <= n->inputs[1 - i]->rank &&
                            (i == 0 || s->operand[0] >= 0) && sac_constant_scalar(v, &s->alpha);
        s->operand[i] = number ? -1 : input_of(p, v);
        if (s->operand[i] == -2)
            return false;
    }
    return p->inputs > 0;
}

/* A square, or a root. */
static bool read_power(struct program *p, const struct sac_node *n)
{
    float by;
    if (!sac_is(n, "Pow") || !sac_constant_scalar(n->inputs[1], &by) || (by != 2 && by != 0.5f) ||
        n->inputs[1]->rank > n->inputs[0]->rank)
        return false;
    p->inputs = p->chain.count = 1;
    p->input[0] = n->inputs[0];
    p->chain.step[0] = by == 2 ? (struct sac_chain_step){SAC_CHAIN_MUL, {0, 0}, 0, 0}
                               : (struct sac_chain_step){SAC_CHAIN_SQRT, {0, -1}, 0, 0};
    return true;
}

/* False: it computes anything but float32 steps. */
static bool read_program(struct program *p, const struct sac_node *n)
{
    struct sac_activation act;
    *p = (struct program){0};
    if (!n || !n->op || n->output_count != 1 || !n->outputs[0] || n->outputs[0]->rank < 0 ||
        n->outputs[0]->dtype != SAC_F32)
        return false;
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i] ? n->inputs[i]->rank < 0 || n->inputs[i]->dtype != SAC_F32
                         : !sac_is(n, "Clip")) /* which may leave out a bound */
            return false;
    if (sac_is_fused(n, "Chain")) {
        if (!sac_chain_read(n, &p->chain))
            return false;
        p->inputs = n->input_count;
        memcpy(p->input, n->inputs, (size_t)n->input_count * sizeof *p->input);
        return true;
    }
    if (fn_of(n) >= 0)
        return read_step(p, n, fn_of(n));
    if (read_power(p, n))
        return true;
    if (!sac_activation_of(n, &act) || act.kind == SAC_ACT_NONE)
        return false;
    p->inputs = p->chain.count = 1;
    p->input[0] = n->inputs[0];
    p->chain.step[0] = (struct sac_chain_step){act.kind, {0, -1}, act.alpha, act.beta};
    return true;
}

/* ---- two programs as one ---- */

static bool is_factor(const struct sac_chain_step *s, int of)
{
    return s->fn == SAC_CHAIN_MUL && s->operand[1] < 0 && (of < 0 || s->operand[0] == of);
}

/* Is the step before, which only s reads, a factor as s is? Then one takes both. */
static bool take_factor(struct program *to, const struct sac_chain_step *s, bool only)
{
    const int              last = to->chain.count - 1;
    struct sac_chain_step *before = &to->chain.step[last];
    const float            both = before->alpha * s->alpha;
    if (!only || !is_factor(before, -1) || !is_factor(s, SAC_CHAIN_INPUTS + last) ||
        !(isnormal(both) || (both == 0 && (before->alpha == 0 || s->alpha == 0))))
        return false;
    before->alpha = both;
    return true;
}

/* How many operands of its steps are input i? */
static int reads_of(const struct program *p, int i)
{
    int reads = 0;
    for (int s = 0; s < p->chain.count; s++)
        reads += (p->chain.step[s].operand[0] == i) + (p->chain.step[s].operand[1] == i);
    return reads;
}

/* The operand of a step of `after` in the program of both; -2: there is no room. */
static int operand_of(struct program *to, const struct program *after, const struct sac_value *v,
                      int made, const int *place, int operand)
{
    if (operand < 0)
        return operand;
    if (operand >= SAC_CHAIN_INPUTS)
        return place[operand - SAC_CHAIN_INPUTS];
    return after->input[operand] == v ? made : input_of(to, after->input[operand]);
}

/* The steps of `before`, then those of `after`, for which they make v. */
static bool join(struct program *to, const struct program *before, const struct program *after,
                 const struct sac_value *v)
{
    const int made = SAC_CHAIN_INPUTS + before->chain.count - 1;
    int       place[SAC_CHAIN_STEPS], reads = 0;
    *to = *before;
    for (int k = 0; k < after->inputs; k++)
        reads += after->input[k] == v ? reads_of(after, k) : 0;
    for (int i = 0; i < after->chain.count; i++) {
        struct sac_chain_step s = after->chain.step[i];
        for (int k = 0; k < 2; k++) {
            s.operand[k] = operand_of(to, after, v, made, place, s.operand[k]);
            if (s.operand[k] == -2)
                return false;
        }
        if (!take_factor(to, &s, i == 0 && reads == 1)) {
            if (to->chain.count == SAC_CHAIN_STEPS)
                return false;
            to->chain.step[to->chain.count++] = s;
        }
        place[i] = SAC_CHAIN_INPUTS + to->chain.count - 1;
    }
    return true;
}

/* Sums, differences, products: less work than to read what they make. */
static bool is_cheap(const struct program *p)
{
    bool cheap = p->chain.count <= 2;
    for (int i = 0; i < p->chain.count; i++)
        cheap &= p->chain.step[i].fn >= SAC_CHAIN_ADD && p->chain.step[i].fn != SAC_CHAIN_DIV;
    return cheap;
}

/* One value and numbers, cheap: even where it is broadcast, each reader may make it anew. */
static bool is_by_numbers(const struct program *p)
{
    return p->inputs == 1 && is_cheap(p);
}

/* Inputs that are as large as v and that `after` does not read. */
static int other_maps(const struct program *p, const struct program *after,
                      const struct sac_value *v)
{
    int maps = 0;
    for (int i = 0; i < p->inputs; i++) {
        bool read = !sac_same_shape(p->input[i], v);
        for (int k = 0; after && k < after->inputs; k++)
            read |= after->input[k] == p->input[i];
        maps += !read;
    }
    return maps;
}

/* Will all readers of v take what makes it, and are fewer maps read and written then? Others of g's
 * nodes may read it, or outputs. */
static bool readers_take(const struct sac_value *v, const struct program *before)
{
    int saved = other_maps(before, NULL, v) + 1;
    for (size_t i = 0; i < v->reader_count; i++) {
        const struct sac_node *n = v->readers[i];
        struct program         after, both;
        if (!read_program(&after, n) || !sac_same_shape(n->outputs[0], v) ||
            !join(&both, before, &after, v))
            return false;
        saved += 1 - other_maps(before, &after, v);
    }
    return saved > 0 && v->reader_count == (size_t)v->uses;
}

static bool takes(const struct sac_node *n, const struct sac_value *v, const struct program *before)
{
    int here = 0;
    for (int k = 0; k < n->input_count; k++)
        here += n->inputs[k] == v;
    return here == v->uses ||
           (v->uses <= READERS_MAX && is_cheap(before) && readers_take(v, before));
}

/* ---- the new node ---- */

static sac_result make(struct sac_graph *g, struct sac_node *n, const struct program *p)
{
    int64_t          steps[3 * SAC_CHAIN_STEPS];
    float            alpha[SAC_CHAIN_STEPS], beta[SAC_CHAIN_STEPS];
    const size_t     count = (size_t)p->chain.count;
    struct sac_node *made = sac_op_node(g, "saccade", "Chain", p->inputs, 1, n);
    if (!made)
        return SAC_ERR_MEMORY;
    memcpy(made->inputs, p->input, (size_t)p->inputs * sizeof *p->input);
    for (size_t i = 0; i < count; i++) {
        const struct sac_chain_step *s = &p->chain.step[i];
        steps[3 * i] = s->fn;
        steps[3 * i + 1] = s->operand[0];
        steps[3 * i + 2] = s->operand[1];
        alpha[i] = s->alpha;
        beta[i] = s->beta;
    }
    sac_result res = sac_node_set_ints(g, made, "steps", steps, 3 * count);
    if (res == SAC_OK)
        res = sac_node_set_floats(g, made, "alpha", alpha, count);
    if (res == SAC_OK)
        res = sac_node_set_floats(g, made, "beta", beta, count);
    return res == SAC_OK ? sac_take_over(g, made, n) : res;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct program own, before, both;
    if (!read_program(&own, n))
        return SAC_OK;
    for (int i = 0; i < own.inputs; i++) {
        struct sac_value *v = own.input[i];
        if (v->data || !v->producer || !read_program(&before, v->producer) ||
            !(sac_same_shape(v, n->outputs[0]) || is_by_numbers(&before)) ||
            !join(&both, &before, &own, v) || !takes(n, v, &before))
            continue;
        *changed = true;
        return make(g, n, &both);
    }
    return SAC_OK;
}

const struct sac_pass sac_pass_chain = {"chain", visit};
