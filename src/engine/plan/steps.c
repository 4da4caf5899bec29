/* SPDX-License-Identifier: Apache-2.0 */
/* From nodes to steps: which kernel runs each node, in which layouts, with which conversions. */
#include <stdio.h>
#include <string.h>

#include "base/start.h"
#include "engine/plan/lifetimes.h"
#include "engine/kernel/layout.h"
#include "engine/plan/build.h"

/* ---- kernels ---- */

static struct sac_weights *weights_of(struct sac_plan *plan)
{
    return plan->params.weights ? &plan->weights.face : NULL;
}

/* A provider's kernel for the node and its offer, or NULL. */
static const struct sac_kernel *ask_provider(const struct sac_plan            *plan,
                                             const struct sac_kernel_provider *provider,
                                             const struct sac_kernel_question *q,
                                             struct sac_kernel_offer          *offer)
{
    const struct sac_node   *n = q->call->node;
    const struct sac_kernel *k = provider->kernels[n->op->id];
    char                     label[256];
    if (!k)
        return NULL;
    *offer = k->supports(plan->dev, q);
    if (offer->taken)
        return k;
    sac_log(plan->graph->ctx, SAC_LOG_TRACE, "%s: not by %s: %s",
            sac_node_label(n, label, sizeof label), provider->name, offer->why);
    return NULL;
}

static bool is_wide(const struct sac_plan *plan, const struct sac_node *n)
{
    const struct sac_value *v = sac_node_result(n);
    return plan->params.wide && plan->params.precision == SAC_PRECISION_FP16 && v &&
           plan->params.wide[v->id];
}

enum sac_precision sac_plan_precision(const struct sac_plan *plan, const struct sac_node *n)
{
    return is_wide(plan, n) ? SAC_PRECISION_TF32 : plan->params.precision;
}

/* To a step that stays in float32 its inputs look so too, for kernels that take them as they lie.
 */
static struct sac_kernel_question question_of(struct sac_plan *plan, const struct sac_op_call *c)
{
    struct sac_kernel_question q = {
        .call = c, .precision = sac_plan_precision(plan, c->node), .weights = weights_of(plan)};
    for (int i = 0; i < c->in_count; i++)
        if (c->in[i].present)
            q.in_layout[i] = plan->slots[plan->slot_of[c->node->inputs[i]->id]].layout;
    for (int i = 0; i < c->in_count && is_wide(plan, c->node); i++)
        q.in_layout[i] = sac_layout_of(sac_layout_is_last(q.in_layout[i]), false);
    return q;
}

/* The first provider that takes the node, or NULL in *kernel for the reference; its terms in
 * *offer. prepare is called later, when the places of all operands are known. */
static sac_result choose_kernel(struct sac_plan *plan, const struct sac_op_call *c,
                                const struct sac_kernel **kernel, struct sac_kernel_offer *offer,
                                char *provider, size_t size)
{
    int                                      count;
    const struct sac_kernel_provider *const *list = sac_kernel_providers(plan->dev, &count);
    struct sac_kernel_question               q = question_of(plan, c);
    for (int i = 0; i < count && !plan->params.reference; i++) {
        *kernel = ask_provider(plan, list[i], &q, offer);
        if (*kernel) {
            snprintf(provider, size, "%.*s", (int)strcspn(list[i]->name, " "), list[i]->name);
            return SAC_OK;
        }
    }
    memset(q.in_layout, 0, sizeof q.in_layout);
    *offer = sac_kernel_take(&q);
    *kernel = NULL;
    snprintf(provider, size, "plain C");
    if (c->node->op->ref)
        return SAC_OK;
    char label[256];
    return SAC_FAIL(plan->graph->ctx, SAC_ERR_UNSUPPORTED, "%s: no kernel on %s takes its shapes",
                    sac_node_label(c->node, label, sizeof label), plan->dev->name);
}

/* ---- building the steps ---- */

static sac_result ensure_constants(struct sac_plan *plan, const struct sac_node *n)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < n->input_count && res == SAC_OK; i++)
        if (n->inputs[i])
            res = sac_plan_ensure_constant(plan, n->inputs[i]->id);
    return res;
}

static void fill_call(struct sac_plan *plan, const struct sac_node *n)
{
    struct sac_op_call *c = plan->call;
    sac_call_fill(c, plan->graph->ctx, n, plan->infer.values);
    for (int i = 0; i < n->output_count; i++)
        if (n->outputs[i])
            c->out[i] = plan->infer.values[n->outputs[i]->id];
}

/* Without channels last between steps, what a kernel writes so is no value yet, until it is
 * converted. */
static bool is_turned(const struct sac_plan *plan, const struct sac_operand *o,
                      enum sac_layout layout)
{
    return (plan->params.without & SAC_WITHOUT_CHANNELS_LAST) && sac_layout_is_last(layout) &&
           !sac_layout_same(o, layout, sac_layout_of(false, sac_layout_is_half(layout)));
}

/* slot: output i of the node, as its kernel writes it. */
static sac_result turn_output(struct sac_plan *plan, const struct sac_node *n, int i, int slot)
{
    const enum sac_layout from = plan->slots[slot].layout;
    const enum sac_layout to = sac_layout_of(false, sac_layout_is_half(from));
    struct sac_step      *step;
    int                   value = -1;
    sac_result            res =
        sac_plan_add_slot(plan, &plan->slots[slot].desc, n->outputs[i]->id, to, &value);
    if (res == SAC_OK)
        res = sac_plan_add_step(plan, SAC_STEP_CONVERT, n, 1, 1, &step);
    if (res != SAC_OK)
        return res;
    step->slots[0] = slot;
    step->slots[1] = value;
    snprintf(step->implementation, sizeof step->implementation, "%s to %s", sac_layout_name(from),
             sac_layout_name(to));
    return SAC_OK;
}

static sac_result turn_outputs(struct sac_plan *plan, const struct sac_node *n, const int *out)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < n->output_count && res == SAC_OK; i++)
        if (out[i] >= 0 && plan->slots[out[i]].value < 0)
            res = turn_output(plan, n, i, out[i]);
    return res;
}

/* in: the slots of the inputs; those of the outputs are created here. */
static sac_result add_compute_step(struct sac_plan *plan, const struct sac_node *n,
                                   const struct sac_kernel_offer *offer,
                                   const struct sac_kernel *kernel, const int *in,
                                   struct sac_step **out)
{
    struct sac_step *step;
    sac_result       res = sac_plan_add_step(plan, kernel ? SAC_STEP_KERNEL : SAC_STEP_REFERENCE, n,
                                             n->input_count, n->output_count, &step);
    if (res != SAC_OK)
        return res;
    step->kernel = kernel;
    step->in_place = plan->params.without & SAC_WITHOUT_IN_PLACE ? -1 : offer->in_place;
    step->strided = offer->strided;
    step->writes_any = offer->writes_any;
    *out = step;
    for (int i = 0; i < n->input_count; i++)
        step->slots[i] = in[i];
    for (int i = 0; i < n->output_count && res == SAC_OK; i++) {
        step->slots[n->input_count + i] = -1;
        if (!n->outputs[i])
            continue;
        const int                 id = n->outputs[i]->id;
        const struct sac_operand *o = &plan->infer.values[id];
        res = sac_plan_add_slot(plan, o, is_turned(plan, o, offer->out_layout[i]) ? -1 : id,
                                offer->out_layout[i], &step->slots[n->input_count + i]);
    }
    return res;
}

static sac_result plan_node(struct sac_plan *plan, const struct sac_node *n)
{
    struct sac_kernel_offer  offer;
    const struct sac_kernel *kernel = NULL;
    struct sac_step         *step = NULL;
    int                      in[SAC_OP_INPUTS_MAX];
    char                     provider[32];
    sac_result               res = ensure_constants(plan, n);
    if (res != SAC_OK)
        return res;
    fill_call(plan, n);
    res = choose_kernel(plan, plan->call, &kernel, &offer, provider, sizeof provider);
    for (int i = 0; i < n->input_count && res == SAC_OK; i++) {
        in[i] = -1;
        if (n->inputs[i])
            res = sac_plan_slot_in_layout(plan, n->inputs[i]->id, offer.in_layout[i], n, &in[i]);
    }
    if (res == SAC_OK)
        res = add_compute_step(plan, n, &offer, kernel, in, &step);
    if (step)
        snprintf(step->implementation, sizeof step->implementation, "%s", provider);
    return res == SAC_OK ? turn_outputs(plan, n, step->slots + n->input_count) : res;
}

/* The alignment of a slot's address in bytes; a part's depends on where it begins. */
static int align_of(const struct sac_plan *plan, int slot)
{
    const struct sac_value_slot *s = &plan->slots[slot];
    const size_t element = sac_dtype_bytes(sac_layout_dtype(s->desc.dtype, s->layout));
    const size_t at = (size_t)s->part_offset * element;
    int          align = s->parent < 0 ? SAC_ACTIVATION_ALIGN : align_of(plan, s->parent);
    while (at % (size_t)align)
        align /= 2;
    return align;
}

static void describe_operands(const struct sac_plan *plan, const struct sac_step *step,
                              struct sac_kernel_plan *kp)
{
    for (int i = 0; i < step->in_count + step->out_count; i++) {
        if (step->slots[i] < 0)
            continue;
        const struct sac_value_slot *s = &plan->slots[step->slots[i]];
        const bool                   in = i < step->in_count;
        const int                    k = in ? i : i - step->in_count;
        *(in ? &kp->in_layout[k] : &kp->out_layout[k]) = s->layout;
        *(in ? &kp->in_pixel[k] : &kp->out_pixel[k]) = s->pixel;
        *(in ? &kp->in_sample[k] : &kp->out_sample[k]) = s->sample;
        *(in ? &kp->in_align[k] : &kp->out_align[k]) = align_of(plan, step->slots[i]);
    }
}

static sac_result keep_results(struct sac_plan *plan, struct sac_step *step,
                               const struct sac_kernel_plan *kp)
{
    const size_t length = strlen(step->implementation);
    step->state = kp->state;
    snprintf(step->implementation + length, sizeof step->implementation - length, " %s",
             kp->implementation);
    for (int i = 0; i < step->in_count; i++)
        step->taken |= (uint64_t)kp->in_taken[i] << i;
    if (!kp->chosen[0])
        return SAC_OK;
    step->chosen =
        sac_arena_strndup(&plan->arena, kp->chosen, strnlen(kp->chosen, sizeof kp->chosen - 1));
    return step->chosen ? SAC_OK : sac_plan_no_memory(plan);
}

/* What the step's kernel chose in an earlier plan, or NULL. number: of the kernel step. */
static const char *choice_of(const struct sac_plan *plan, const struct sac_step *step,
                             size_t number)
{
    const int value = plan->params.lent ? sac_step_value(step) : -1;
    if (plan->params.lent && value < 0)
        return NULL;
    const size_t at = plan->params.lent ? (size_t)value : number;
    return at < plan->params.choice_count ? plan->params.choices[at] : NULL;
}

/* What a step's kernel prepares for; number: of the step among those with kernels. It is valid
 * until the next such call. */
static struct sac_kernel_plan kernel_plan(struct sac_plan *plan, const struct sac_step *step,
                                          size_t number)
{
    struct sac_kernel_plan kp = {.call = plan->call,
                                 .precision = sac_plan_precision(plan, step->node),
                                 .weights = weights_of(plan),
                                 .measure = plan->params.measure,
                                 .lent = plan->params.lent,
                                 .choice = choice_of(plan, step, number)};
    fill_call(plan, step->node);
    describe_operands(plan, step, &kp);
    return kp;
}

/* Has a step's kernel create its state, now that all its operands have their final layouts. */
static sac_result prepare_step(struct sac_plan *plan, struct sac_step *step, size_t number)
{
    struct sac_kernel_plan kp = kernel_plan(plan, step, number);
    struct sac_start_span  span;
    sac_start_begin(&span, kp.measure && !kp.choice ? SAC_START_TRIALS : SAC_START_KERNELS);
    sac_result res = step->kernel->prepare(plan->dev, &kp);
    sac_start_end(&span);
    if (res == SAC_OK)
        res = keep_results(plan, step, &kp);
    if (res != SAC_OK)
        return res;
    struct sac_operand bytes = {.dtype = SAC_U8, .rank = 1, .dims = {(int64_t)kp.scratch_bytes}};
    if (kp.scratch_bytes)
        res = sac_plan_add_slot(plan, &bytes, -1, SAC_LAYOUT_PLAIN, &step->scratch);
    return res;
}

/* Trying kernels takes seconds, and so may compiling what was lent; nobody should wait for long
 * without a word. */
static void say_progress(const struct sac_plan *plan, size_t number, int64_t *said_ns)
{
    static const int64_t EVERY_NS = 2000000000;
    size_t               count = 0;
    const int64_t        now = sac_time_ns();
    if (!(plan->params.measure || plan->params.lent) || now - *said_ns < EVERY_NS)
        return;
    for (size_t i = 0; i < plan->step_count; i++)
        count += plan->steps[i].kind == SAC_STEP_KERNEL;
    *said_ns = now;
    sac_log(plan->graph->ctx, SAC_LOG_INFO, "%s: %zu of %zu kernels chosen", plan->dev->name,
            number, count);
}

static void foresee_steps(struct sac_plan *plan, const struct sac_kernel_provider *provider)
{
    size_t number = 0;
    for (size_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == SAC_STEP_KERNEL) {
            const struct sac_kernel_plan kp = kernel_plan(plan, &plan->steps[i], number++);
            provider->foresee(plan->dev, plan->steps[i].kernel, &kp);
        }
}

static sac_result give_up(const struct sac_plan *plan)
{
    return SAC_FAIL(plan->graph->ctx, SAC_ERR_CANCELLED,
                    "the start was given up while its kernels were made ready");
}

static sac_result prepare_steps(struct sac_plan *plan)
{
    sac_result res = SAC_OK;
    size_t     number = 0;
    int64_t    said_ns = sac_time_ns();
    for (size_t i = 0; i < plan->step_count && res == SAC_OK; i++)
        if (plan->steps[i].kind == SAC_STEP_KERNEL) {
            res = sac_start_given_up() ? give_up(plan)
                                       : prepare_step(plan, &plan->steps[i], number++);
            say_progress(plan, number, &said_ns);
        }
    return res;
}

sac_result sac_plan_prepare(struct sac_plan *plan)
{
    int                                      count;
    const struct sac_kernel_provider *const *list = sac_kernel_providers(plan->dev, &count);
    for (int i = 0; i < count; i++)
        if (list[i]->foresee)
            foresee_steps(plan, list[i]);
    sac_result res = prepare_steps(plan);
    for (int i = 0; i < count; i++)
        if (list[i]->forget)
            list[i]->forget(plan->dev);
    return res;
}

/* Has the value a slot in that layout, or one whose bytes are the same in it? */
static bool lies_in(const struct sac_plan *plan, int value, enum sac_layout layout)
{
    for (int s = plan->slot_of[value]; s >= 0; s = plan->slots[s].next)
        if (plan->slots[s].layout == layout)
            return true;
    const int first = plan->slot_of[value];
    return first >= 0 &&
           sac_layout_same(&plan->slots[first].desc, plan->slots[first].layout, layout);
}

static bool is_half(const struct sac_plan *plan, int value)
{
    const int slot = plan->slot_of[value];
    return slot >= 0 && sac_layout_is_half(plan->slots[slot].layout);
}

/* A Transpose between channels first and channels last whose input is already in the wanted
 * layout. */
static bool is_layout_change(const struct sac_plan *plan, const struct sac_node *n,
                             enum sac_layout *from, enum sac_layout *to)
{
    const int64_t *perm;
    const int      rank = plan->infer.values[n->inputs[0]->id].rank;
    if (strcmp(n->op_type, "Transpose") != 0 || n->domain[0] || rank < 3 ||
        sac_attr_ints(n, "perm", &perm) != (size_t)rank || perm[0] != 0 || plan->params.reference)
        return false;
    bool last = perm[rank - 1] == 1, first = perm[1] == rank - 1;
    for (int i = 1; i < rank; i++) {
        last &= i == rank - 1 || perm[i] == i + 1;
        first &= i == 1 || perm[i] == i - 1;
    }
    const bool half = is_half(plan, n->inputs[0]->id);
    if (last && first) /* of three dims: it may be taken for either */
        last = lies_in(plan, n->inputs[0]->id, sac_layout_of(true, half));
    *from = sac_layout_of(last, half);
    *to = sac_layout_of(!last, half);
    return (last || first) && lies_in(plan, n->inputs[0]->id, *from);
}

/* Reshape and similar operators give the same bytes another shape. That also holds in channels last
 * when batch and channels stay the same. */
static enum sac_layout view_layout(const struct sac_plan *plan, const struct sac_node *n)
{
    const struct sac_operand *in = &plan->infer.values[n->inputs[0]->id];
    const struct sac_operand *out = &plan->infer.values[n->outputs[0]->id];
    const int                 slot = plan->slot_of[n->inputs[0]->id];
    const bool keeps = in->rank >= 3 && out->rank >= 3 && in->dims[0] == out->dims[0] &&
                       in->dims[1] == out->dims[1];
    return sac_layout_of(keeps && slot >= 0 && sac_layout_is_last(plan->slots[slot].layout),
                         is_half(plan, n->inputs[0]->id));
}

static sac_result plan_view(struct sac_plan *plan, const struct sac_node *n, enum sac_layout from,
                            enum sac_layout to)
{
    struct sac_step *step;
    int              in = -1, out = -1;
    sac_result       res = sac_plan_ensure_constant(plan, n->inputs[0]->id);
    if (res == SAC_OK)
        res = sac_plan_slot_in_layout(plan, n->inputs[0]->id, from, n, &in);
    if (res == SAC_OK)
        res = sac_plan_add_slot(plan, &plan->infer.values[n->outputs[0]->id], n->outputs[0]->id, to,
                                &out);
    if (res == SAC_OK)
        res = sac_plan_add_step(plan, SAC_STEP_VIEW, n, 1, 1, &step);
    if (res != SAC_OK)
        return res;
    step->slots[0] = in;
    step->slots[1] = out;
    snprintf(step->implementation, sizeof step->implementation, "view");
    return SAC_OK;
}

/* A Transpose that only moves dims of one, as that of a single picture's tokens to tokens first. */
static bool moves_only_ones(const struct sac_plan *plan, const struct sac_node *n)
{
    const int64_t            *perm;
    const struct sac_operand *in = &plan->infer.values[n->inputs[0]->id];
    int64_t                   last = -1;
    if (n->op->id != SAC_OP_Transpose || sac_attr_ints(n, "perm", &perm) != (size_t)in->rank ||
        plan->params.reference)
        return false;
    for (int d = 0; d < in->rank; d++) {
        if (in->dims[perm[d]] == 1)
            continue;
        if (perm[d] < last)
            return false;
        last = perm[d];
    }
    return true;
}

static bool is_view(const struct sac_plan *plan, const struct sac_node *n)
{
    if (!n->inputs[0] || !n->outputs[0] ||
        (!(n->op->flags & SAC_OP_VIEW) && !moves_only_ones(plan, n)))
        return false;
    for (int i = 1; i < n->output_count; i++)
        if (n->outputs[i])
            return false;
    const struct sac_operand *in = &plan->infer.values[n->inputs[0]->id];
    const struct sac_operand *out = &plan->infer.values[n->outputs[0]->id];
    return sac_operand_bytes(in) == sac_operand_bytes(out);
}

static void mark_read(void *user, struct sac_value *v)
{
    ((char *)user)[v->id] = 1; /* needed, by value id */
}

/* Dynamic nodes all stay. */
sac_result sac_plan_drop_unneeded(struct sac_plan *plan)
{
    struct sac_infer *inf = &plan->infer;
    char             *needed = sac_calloc((size_t)plan->graph->id_count, 1);
    size_t            kept = inf->work_count;
    if (!needed)
        return sac_plan_no_memory(plan);
    for (int i = 0; i < plan->graph->output_count; i++)
        needed[plan->graph->outputs[i]->id] = 1;
    for (size_t i = inf->work_count; i-- > 0;) {
        const struct sac_node *n = inf->work[i].node;
        bool                   wanted = inf->work[i].state != SAC_WORK_STATIC;
        for (int k = 0; k < n->output_count && !wanted; k++)
            wanted = n->outputs[k] && needed[n->outputs[k]->id];
        if (!wanted)
            continue;
        sac_node_each_read(n, mark_read, needed);
        inf->work[--kept] = inf->work[i];
    }
    if (kept > 0)
        memmove(inf->work, inf->work + kept, (inf->work_count - kept) * sizeof *inf->work);
    inf->work_count -= kept;
    sac_free(needed);
    return SAC_OK;
}

static sac_result plan_static(struct sac_plan *plan, const struct sac_node *n)
{
    enum sac_layout from, to;
    if (is_layout_change(plan, n, &from, &to))
        return plan_view(plan, n, from, to);
    if (is_view(plan, n))
        return plan_view(plan, n, view_layout(plan, n), view_layout(plan, n));
    return plan_node(plan, n);
}

sac_result sac_plan_make_steps(struct sac_plan *plan)
{
    struct sac_infer *inf = &plan->infer;
    sac_result        res = SAC_OK;
    plan->tail = sac_calloc(inf->work_count, sizeof *plan->tail);
    if (!plan->tail)
        return sac_plan_no_memory(plan);
    for (size_t i = 0; i < inf->work_count && res == SAC_OK; i++) {
        const struct sac_node *n = inf->work[i].node;
        if (inf->work[i].state == SAC_WORK_DYNAMIC)
            plan->tail[plan->tail_count++] = n;
        else if (inf->work[i].state == SAC_WORK_STATIC)
            res = plan_static(plan, n);
    }
    return res;
}
