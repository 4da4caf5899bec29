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

void sac_model_settle(sac_model *m)
{
    if (m->queued)
        m->dev->ops->event_wait(m->done);
    m->queued = false;
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

/* What the book has for shapes: what their own page says, or what pages of others lend. */
struct sac_known_choices {
    const struct sac_book_page *page; /* theirs, or the nearest that lends; NULL: none */
    const char                **lent; /* NULL: nothing is lent */
    size_t                      lent_count;
};

static struct sac_weight_store *weights_of(sac_model *m)
{
    if (m->dev->ops->host_memory)
        return NULL;
    return m->of ? &m->of->weights : &m->weights;
}

sac_result sac_model_create_plan(sac_model *m, const struct sac_operand *shapes,
                                 const struct sac_known_choices *known, bool measure,
                                 struct sac_plan **out)
{
    struct sac_plan_params params = {.reference = m->params.reference,
                                     .tolerant = m->partial,
                                     .memory_limit = m->params.memory_limit_bytes,
                                     .precision = m->params.precision,
                                     .without = m->without.plan,
                                     .wide = m->wide,
                                     .odd = m->finite.odd,
                                     .first_input = m->first_input,
                                     .half_outputs = m->native,
                                     .weights = weights_of(m),
                                     .measure = measure,
                                     .only_layouts = !known,
                                     .lent = known && known->lent};
    if (params.lent) {
        params.choices = known->lent;
        params.choice_count = known->lent_count;
    } else if (known && known->page) {
        params.choices = (const char *const *)known->page->choices;
        params.choice_count = known->page->count;
    }
    struct sac_plan *plan = NULL;
    sac_result       res = sac_plan_create(m->dev, m->graph, shapes, &params, &plan);
    if (res == SAC_OK && known)
        res = provide_host(m, plan);
    if (res != SAC_OK) {
        sac_plan_destroy(&plan);
        return sac_fail_prefix(m->ctx, res, "%s: ", m->path);
    }
    /* the texts are the book's, and what they are by value is the caller's */
    plan->params.choices = NULL;
    plan->params.choice_count = 0;
    plan->capture = m->capture;
    *out = plan;
    return SAC_OK;
}

/* The name of the page: the shapes, and what was made a constant, to the last bit. */
static void name_page(const sac_model *m, const struct sac_operand *shapes, char *out, size_t size)
{
    sac_book_shapes(shapes, m->graph->input_count, out, size);
    const size_t at = strlen(out);
    if (m->fixed_name)
        snprintf(out + at, size - at, " %.17g", m->fixed_value);
}

static sac_result measure_plan(sac_model *m, const struct sac_operand *shapes, const char *text,
                               const struct sac_known_choices *known, struct sac_plan **out)
{
    const int64_t begun = sac_time_ns();
    sac_log(m->ctx, SAC_LOG_INFO, "%s: trying kernels for %s on %s, once", m->path, text,
            m->dev->name);
    sac_result res = sac_model_create_plan(m, shapes, known, true, out);
    if (res != SAC_OK)
        return res;
    sac_model_note_plan(m, text, *out);
    sac_log(m->ctx, SAC_LOG_INFO, "%s: planned for %s on %s in %.1f s%s%s", m->path, text,
            m->dev->name, (double)(sac_time_ns() - begun) / 1e9, m->book_path ? ", kept in " : "",
            m->book_path ? m->book_path : "");
    return SAC_OK;
}

static sac_result make_plan(sac_model *m, const struct sac_operand *shapes, struct sac_plan **out)
{
    char text[512];
    name_page(m, shapes, text, sizeof text);
    sac_model_find_ranges(m, shapes); /* may write to the book: before anything is looked up there
                                       */
    struct sac_known_choices known = {.page = sac_book_find(&m->book, text)};
    if (!known.page && !m->checking)
        known.page = sac_book_lend(&m->book, text, &known.lent, &known.lent_count);
    sac_model_settle(m); /* measuring needs an idle device, and the oldest plan may be freed */
    if (known.lent)
        sac_log(m->ctx, SAC_LOG_INFO, "%s: %s runs on %s with the kernels of %s", m->path, text,
                m->dev->name, known.page->shapes);
    sac_result res = m->book.key[SAC_BOOK_MODEL] && !m->checking && !known.page
                         ? measure_plan(m, shapes, text, &known, out)
                         : sac_model_create_plan(m, shapes, &known, false, out);
    sac_free(known.lent);
    return res;
}

/* Of an instance: with the kernels of its model's plan, whose lock is held too. */
static sac_result plan_alike(sac_model *m, const struct sac_operand *shapes, struct sac_plan **out)
{
    sac_model               *of = m->of;
    struct sac_plan         *theirs = NULL;
    struct sac_known_choices known = {.page = NULL};
    char                     text[512];
    sac_result               res = sac_model_plan(of, shapes, &theirs);
    if (res != SAC_OK)
        return res;
    m->watched = of->watched;
    m->wide = of->wide;
    m->wide_steps = of->wide_steps;
    m->wide_count = of->wide_count;
    name_page(of, shapes, text, sizeof text);
    known.page = sac_book_find(&of->book, text);
    if (!known.page)
        known.page = sac_book_lend(&of->book, text, &known.lent, &known.lent_count);
    res = sac_model_create_plan(m, shapes, &known, false, out);
    sac_free(known.lent);
    return res;
}

/* A plan that there is not yet. */
static sac_result new_plan(sac_model *m, const struct sac_operand *shapes, struct sac_plan **out)
{
    if (!m->of)
        return make_plan(m, shapes, out);
    pthread_mutex_lock(&m->of->lock);
    const sac_result res = plan_alike(m, shapes, out);
    pthread_mutex_unlock(&m->of->lock);
    return res;
}

sac_result sac_model_plan(sac_model *m, const struct sac_operand *shapes, struct sac_plan **out)
{
    struct sac_plan *plan = cached_plan(m, shapes);
    if (!plan) {
        sac_result res = new_plan(m, shapes, &plan);
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

/* ---- a run of one plan ---- */

/* All plans share the memory of activations, as large as the largest of them needs. */
static sac_result ensure_activations(sac_model *m, size_t bytes)
{
    struct sac_buffer *grown = NULL;
    if (bytes == 0 || (m->activations && sac_buffer_bytes(m->activations) >= bytes))
        return SAC_OK;
    sac_model_settle(m);
    sac_buffer_unref(&m->activations);
    sac_result res = sac_buffer_create(m->dev, bytes, m->path, &grown);
    if (res == SAC_ERR_LIMIT && !m->dev->ops->host_memory)
        res = SAC_ERR_MEMORY; /* over the budget: a smaller batch may fit */
    if (res != SAC_OK)
        return res;
    sac_buffer_keep(grown); /* lives as long as the model: no leak */
    m->activations = grown;
    return m->dev->ops->stream_after(m->dev, m->on, NULL);
}

struct sac_tensor_desc sac_model_logical_desc(const sac_model *m, int i,
                                              const struct sac_tensor_desc *d)
{
    struct sac_tensor_desc desc = *d;
    if (i != 0 || m->first_input == SAC_LAYOUT_PLAIN)
        return desc;
    if (sac_layout_is_half(m->first_input) && d->dtype == SAC_F16)
        desc.dtype = SAC_F32;
    if (sac_layout_is_last(m->first_input) && d->rank > 2) {
        desc.shape[1] = d->shape[d->rank - 1];
        memcpy(desc.shape + 2, d->shape + 1, (size_t)(d->rank - 2) * sizeof(int64_t));
    }
    return desc;
}

static void shapes_of(const sac_model *m, sac_tensor *const *in, struct sac_operand *shapes)
{
    for (int i = 0; i < m->graph->input_count; i++) {
        const struct sac_tensor_desc *d = sac_tensor_describe(in[i]);
        const struct sac_tensor_desc  logical = sac_model_logical_desc(m, i, d);
        shapes[i] =
            (struct sac_operand){.dtype = logical.dtype, .rank = logical.rank, .present = true};
        memcpy(shapes[i].dims, logical.shape, (size_t)logical.rank * sizeof(int64_t));
    }
}

sac_result sac_model_run_plain(sac_model *m, sac_tensor *const *in, sac_tensor **out)
{
    struct sac_plan    *plan = NULL;
    struct sac_operand *shapes = sac_calloc((size_t)m->graph->input_count, sizeof *shapes);
    if (!shapes)
        return SAC_FAIL(m->ctx, SAC_ERR_MEMORY, "%s: no memory to run", m->path);
    shapes_of(m, in, shapes);
    sac_result res = sac_model_plan(m, shapes, &plan);
    sac_free(shapes);
    if (res != SAC_OK)
        return res;
    res = ensure_activations(m, plan->activation_bytes);
    if (res == SAC_OK)
        res = sac_plan_run(plan, m->on, m->activations ? sac_buffer_data(m->activations) : NULL, in,
                           out);
    return res == SAC_OK ? res : sac_fail_prefix(m->ctx, res, "%s: ", m->path);
}
