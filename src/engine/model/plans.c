/* SPDX-License-Identifier: Apache-2.0 */
/* A model's plans: one for each set of input shapes; the most recently used are kept. */
#include <stdio.h>
#include <string.h>

#include "engine/model/model.h"

/* ---- work on the host beside another device ---- */

struct names {
    char   text[400];
    size_t at;
};

static void add_name(struct names *n, const char *name)
{
    if (n->at < sizeof n->text && !strstr(n->text, name))
        n->at += (size_t)snprintf(n->text + n->at, sizeof n->text - n->at, "%s%s",
                                  n->at ? ", " : "", name);
}

/* Logged once per model: it costs transfers in each run. */
static void say_host_work(sac_model *m, const struct sac_plan *plan)
{
    struct names names = {.at = 0};
    for (size_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == SAC_STEP_REFERENCE)
            add_name(&names, plan->steps[i].node->op_type);
    for (size_t i = 0; i < plan->tail_count; i++)
        add_name(&names, plan->tail[i]->op_type);
    if (!m->said_host_work)
        sac_log(
            m->ctx, SAC_LOG_WARN,
            "%s: not all of it runs on %s: %s on the host, with their tensors copied in each run",
            m->path, m->dev->name, names.at ? names.text : "copies of inputs");
    m->said_host_work = true;
}

static sac_result provide_host(sac_model *m, struct sac_plan *plan)
{
    if (m->dev->ops->host_memory || !sac_plan_needs_host(plan))
        return SAC_OK;
    struct sac_device_params params = sac_device_params_default();
    params.threads = m->dev->params.threads;
    sac_result res = m->host ? SAC_OK : sac_device_open(m->ctx, "cpu", &params, &m->host);
    plan->host = m->host;
    if (res == SAC_OK)
        say_host_work(m, plan);
    return res;
}

/* ---- plans ---- */

static struct sac_plan **plan_slot(sac_model *m)
{
    struct sac_plan **oldest = &m->plans[0];
    for (int i = 0; i < SAC_PLANS_MAX; i++) {
        if (!m->plans[i])
            return &m->plans[i];
        if (m->plans[i]->used_at < (*oldest)->used_at)
            oldest = &m->plans[i];
    }
    return oldest;
}

static struct sac_plan *cached_plan(sac_model *m, const struct sac_operand *shapes)
{
    for (int i = 0; i < SAC_PLANS_MAX; i++)
        if (m->plans[i] && sac_plan_fits(m->plans[i], shapes))
            return m->plans[i];
    return NULL;
}

/* Creates a plan with the book's choices for these shapes or, when it has no such page, with
 * kernels that are measured now. */
static sac_result create_plan(sac_model *m, const struct sac_operand *shapes, const char *text,
                              bool measure, struct sac_plan **out)
{
    const struct sac_book_page  *page = sac_book_find(&m->book, text);
    const struct sac_plan_params params = {.reference = m->params.reference,
                                           .tolerant = m->partial,
                                           .memory_limit = m->params.memory_limit_bytes,
                                           .precision = m->params.precision,
                                           .first_input = m->first_input,
                                           .half_outputs = m->native,
                                           .weights = m->dev->ops->host_memory ? NULL : &m->weights,
                                           .measure = measure,
                                           .choices =
                                               page ? (const char *const *)page->choices : NULL,
                                           .choice_count = page ? page->count : 0};
    struct sac_plan             *plan = NULL;
    sac_result                   res = sac_plan_create(m->dev, m->graph, shapes, &params, &plan);
    if (res == SAC_OK)
        res = provide_host(m, plan);
    if (res != SAC_OK) {
        sac_plan_destroy(&plan);
        return sac_fail_prefix(m->ctx, res, "%s: ", m->path);
    }
    plan->capture = m->capture;
    *out = plan;
    return SAC_OK;
}

static sac_result make_plan(sac_model *m, const struct sac_operand *shapes, struct sac_plan **out)
{
    char          text[512];
    const int64_t begun = sac_time_ns();
    sac_book_shapes(shapes, m->graph->input_count, text, sizeof text);
    const bool measure =
        m->book.key[SAC_BOOK_MODEL] && !m->checking && !sac_book_find(&m->book, text);
    if (measure)
        sac_log(m->ctx, SAC_LOG_INFO, "%s: trying kernels for %s on %s, once", m->path, text,
                m->dev->name);
    sac_model_settle(m); /* measuring needs an idle device, and the oldest plan may be freed */
    sac_result res = create_plan(m, shapes, text, measure, out);
    if (res != SAC_OK || !measure)
        return res;
    sac_model_note_plan(m, text, *out);
    sac_log(m->ctx, SAC_LOG_INFO, "%s: planned for %s on %s in %.1f s%s%s", m->path, text,
            m->dev->name, (double)(sac_time_ns() - begun) / 1e9, m->book_path ? ", kept in " : "",
            m->book_path ? m->book_path : "");
    return SAC_OK;
}

sac_result sac_model_plan(sac_model *m, const struct sac_operand *shapes, struct sac_plan **out)
{
    struct sac_plan *plan = cached_plan(m, shapes);
    if (!plan) {
        sac_result res = make_plan(m, shapes, &plan);
        if (res != SAC_OK)
            return res;
        struct sac_plan **slot = plan_slot(m);
        sac_plan_destroy(slot);
        *slot = plan;
    }
    plan->used_at = ++m->clock;
    plan->profile = m->profile;
    *out = plan;
    return SAC_OK;
}

struct sac_plan *sac_model_latest_plan(const sac_model *m)
{
    struct sac_plan *latest = NULL;
    for (int i = 0; i < SAC_PLANS_MAX; i++)
        if (m->plans[i] && (!latest || m->plans[i]->used_at > latest->used_at))
            latest = m->plans[i];
    return latest;
}

bool sac_model_shapes_vary(sac_model *m)
{
    bool vary = false;
    pthread_mutex_lock(&m->lock);
    const struct sac_plan *plan = sac_model_latest_plan(m);
    for (int i = 0; plan && i < m->graph->output_count; i++)
        vary |= !sac_plan_makes(plan, i);
    pthread_mutex_unlock(&m->lock);
    return vary;
}

void sac_model_drop_plans(sac_model *m)
{
    sac_model_settle(m);
    for (int i = 0; i < SAC_PLANS_MAX; i++)
        sac_plan_destroy(&m->plans[i]);
}

/* ---- tensors in the kernels' layout ---- */

/* The layout of the plan's first input that all steps reading it want. */
static enum sac_layout wanted_input(const struct sac_plan *plan)
{
    const int       input = plan->slot_of[plan->graph->inputs[0]->id];
    enum sac_layout wanted = SAC_LAYOUT_COUNT;
    for (size_t i = 0; i < plan->step_count; i++)
        for (int k = 0; k < plan->steps[i].in_count; k++) {
            const struct sac_step *step = &plan->steps[i];
            if (step->slots[k] != input)
                continue;
            if (step->kind != SAC_STEP_CONVERT || wanted != SAC_LAYOUT_COUNT)
                return SAC_LAYOUT_PLAIN; /* it is read as PLAIN, or in two layouts */
            wanted = plan->slots[step->slots[step->in_count]].layout;
        }
    return wanted == SAC_LAYOUT_COUNT || plan->tail_count > 0 ? SAC_LAYOUT_PLAIN : wanted;
}

static sac_result find_native(sac_model *m, const struct sac_tensor_desc *first)
{
    struct sac_operand shape = {.dtype = first->dtype, .rank = first->rank, .present = true};
    struct sac_plan   *plan = NULL;
    memcpy(shape.dims, first->shape, sizeof shape.dims);
    sac_result res = create_plan(m, &shape, "", false, &plan);
    if (res != SAC_OK)
        return res;
    m->first_input = wanted_input(plan);
    m->native = true;
    sac_model_settle(m);
    sac_plan_destroy(&plan);
    sac_model_drop_plans(m);
    return SAC_OK;
}

sac_result sac_model_take_native(sac_model *m, const struct sac_tensor_desc *first,
                                 enum sac_layout *layout)
{
    sac_result res = SAC_OK;
    *layout = SAC_LAYOUT_PLAIN;
    if (m->dev->ops->host_memory || m->graph->input_count != 1 || m->partial)
        return SAC_OK;
    sac_model_batches(m); /* the check needs tensors as the ports say */
    pthread_mutex_lock(&m->lock);
    if (!m->native)
        res = find_native(m, first);
    *layout = m->first_input;
    pthread_mutex_unlock(&m->lock);
    return res;
}
