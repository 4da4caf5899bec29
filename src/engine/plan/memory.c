/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a plan's slots: views, parts and in-place steps share memory, outputs are the caller's
 * tensors, the rest is placed in one piece of memory by lifetime. Where that is small and the
 * device can run branches at once, it is placed again, so that they share none. */
#include <string.h>

#include "engine/plan/lifetimes.h"
#include "engine/kernel/layout.h"
#include "engine/plan/build.h"

static void note_tail_read(void *user, struct sac_value *v)
{
    struct sac_plan *plan = user;
    for (int s = plan->slot_of[v->id]; s >= 0; s = plan->slots[s].next)
        plan->slots[s].last = (int)plan->step_count;
}

static void find_last_reads(struct sac_plan *plan)
{
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct sac_step *step = &plan->steps[i];
        for (int k = 0; k < step->in_count + step->out_count; k++)
            if (step->slots[k] >= 0)
                plan->slots[step->slots[k]].last = (int)i;
        if (step->scratch >= 0)
            plan->slots[step->scratch].last = (int)i;
    }
    for (size_t i = 0; i < plan->slot_count; i++)
        if (plan->slots[i].port >= 0)
            plan->slots[i].last = (int)plan->step_count;
    for (size_t i = 0; i < plan->tail_count; i++)
        sac_node_each_read(plan->tail[i], note_tail_read, plan);
}

static sac_result place_slot(struct sac_plan *plan, int slot, int step);

/* A part is inside its parent, which must be allocated when its first part is written. */
static sac_result place_part(struct sac_plan *plan, int slot, int step)
{
    struct sac_value_slot *s = &plan->slots[slot];
    sac_result             res =
        plan->slots[s->parent].storage < 0 ? place_slot(plan, s->parent, step) : SAC_OK;
    if (res != SAC_OK)
        return res;
    const struct sac_value_slot *whole = &plan->slots[s->parent];
    s->storage = whole->storage;
    s->offset = whole->offset + (size_t)s->part_offset *
                                    sac_dtype_bytes(sac_layout_dtype(s->desc.dtype, s->layout));
    plan->storages[s->storage].last = SAC_MAX(plan->storages[s->storage].last, s->last);
    return SAC_OK;
}

static sac_result place_slot(struct sac_plan *plan, int slot, int step)
{
    struct sac_value_slot *s = &plan->slots[slot];
    if (s->parent >= 0)
        return place_part(plan, slot, step);
    struct sac_storage storage = {.place = s->port >= 0 ? SAC_PLACE_OUTPUT : SAC_PLACE_ACTIVATIONS,
                                  .port = s->port,
                                  .bytes = sac_layout_bytes(&s->desc, s->layout),
                                  .first = step,
                                  .last = s->last};
    int                index = -1;
    sac_result         res = sac_plan_add_storage(plan, storage, &index);
    plan->slots[slot].storage = index;
    return res;
}

/* Puts slot `out` into the storage of slot `in`. False when that is impossible: an output of the
 * graph must not share memory with an input, a constant or another output. */
static bool share(struct sac_plan *plan, int in, int out)
{
    struct sac_value_slot *s = &plan->slots[out];
    struct sac_storage    *storage = &plan->storages[plan->slots[in].storage];
    if (s->port >= 0 && storage->place != SAC_PLACE_ACTIVATIONS)
        return false;
    if (s->port >= 0) {
        storage->place = SAC_PLACE_OUTPUT;
        storage->port = s->port;
    }
    storage->last = SAC_MAX(storage->last, s->last);
    s->storage = plan->slots[in].storage;
    s->offset = plan->slots[in].offset;
    return true;
}

/* May the step overwrite its input? Only if nobody reads the memory later and no other input of the
 * same step shares it, unless that one is read element by element too (a convolution's input that
 * is also its residual is not). */
static bool may_overwrite(const struct sac_plan *plan, const struct sac_step *step, int index)
{
    int in = step->slots[step->in_place], out = step->slots[step->in_count];
    const struct sac_value_slot *from = &plan->slots[in], *to = &plan->slots[out];
    const struct sac_storage    *storage = &plan->storages[from->storage];
    if (storage->place == SAC_PLACE_CONSTANT || storage->place == SAC_PLACE_INPUT ||
        storage->last > index || from->layout != to->layout || from->parent >= 0 ||
        to->parent >= 0 ||
        sac_layout_bytes(&from->desc, from->layout) != sac_layout_bytes(&to->desc, to->layout))
        return false;
    for (int k = 0; k < step->in_count; k++) {
        if (k == step->in_place || step->slots[k] < 0)
            continue;
        const struct sac_value_slot *other = &plan->slots[step->slots[k]];
        if (other->storage == from->storage &&
            (!(step->node->op->flags & SAC_OP_ELEMENTWISE) || other->layout != from->layout ||
             other->desc.rank != from->desc.rank ||
             memcmp(other->desc.dims, from->desc.dims, (size_t)from->desc.rank * sizeof(int64_t)) !=
                 0))
            return false;
    }
    return true;
}

static sac_result place_step(struct sac_plan *plan, struct sac_step *step, int index)
{
    int       *out = step->slots + step->in_count;
    sac_result res = SAC_OK;
    if (step->kind == SAC_STEP_VIEW && plan->slots[out[0]].storage < 0 &&
        plan->slots[out[0]].parent < 0 && !share(plan, step->slots[0], out[0]))
        step->kind = SAC_STEP_COPY;
    if (step->in_place >= 0 && out[0] >= 0 && step->slots[step->in_place] >= 0 &&
        may_overwrite(plan, step, index))
        share(plan, step->slots[step->in_place], out[0]);
    for (int k = 0; k < step->out_count && res == SAC_OK; k++)
        if (out[k] >= 0 && plan->slots[out[k]].storage < 0)
            res = place_slot(plan, out[k], index);
    if (res == SAC_OK && step->scratch >= 0)
        res = place_slot(plan, step->scratch, index);
    return res;
}

/* An item for each storage. NULL: there is no memory for them. */
static struct sac_lifetime *lifetimes_of(const struct sac_plan *plan)
{
    struct sac_lifetime *items = sac_calloc(plan->storage_count, sizeof *items);
    const bool           reuse = !(plan->params.without & SAC_WITHOUT_REUSE);
    for (size_t i = 0; items && i < plan->storage_count; i++) {
        const struct sac_storage *s = &plan->storages[i];
        items[i] = (struct sac_lifetime){.bytes = s->place == SAC_PLACE_ACTIVATIONS ? s->bytes : 0,
                                         .first = reuse ? s->first : 0,
                                         .last = reuse ? s->last : (int)plan->step_count};
    }
    return items;
}

static void take_places(struct sac_plan *plan, const struct sac_lifetime *items, size_t bytes)
{
    plan->activation_bytes = bytes;
    for (size_t i = 0; i < plan->storage_count; i++)
        plan->storages[i].offset = items[i].offset;
}

static sac_result place_activations(struct sac_plan *plan, struct sac_lifetime *items)
{
    const size_t bytes = sac_lifetimes_place(items, plan->storage_count, NULL, NULL);
    if (bytes == (size_t)-1)
        return sac_plan_no_memory(plan);
    take_places(plan, items, bytes);
    if (bytes > plan->params.memory_limit)
        return SAC_FAIL(plan->graph->ctx, SAC_ERR_LIMIT,
                        "its activations need %zu bytes; the limit is %llu", bytes,
                        (unsigned long long)plan->params.memory_limit);
    return SAC_OK;
}

/* ---- branches ---- */

/* Of plans whose activations need no more. With more of them, steps are large enough to fill a card
 * one after the other, and memory counts; so branches may need twice as much at most. */
enum { BRANCH_BYTES = 32 << 20 };

/* Who uses each storage's memory: the steps of storage i are step[first[i]] to step[first[i + 1]].
 */
struct users {
    const struct sac_order *order;
    const char             *kept; /* by storage: 1 if it is read after the last step */
    size_t                 *first;
    size_t                 *step;
};

static bool all_before(const struct users *u, size_t a, size_t b)
{
    for (size_t i = u->first[a]; i < u->first[a + 1]; i++)
        for (size_t k = u->first[b]; k < u->first[b + 1]; k++)
            if (!sac_order_before(u->order, u->step[i], u->step[k]))
                return false;
    return !u->kept[a];
}

static bool used_together(const void *user, size_t a, size_t b)
{
    return !all_before(user, a, b) && !all_before(user, b, a);
}

/* Calls fn for each slot of each step; a storage may come more than once. */
static void each_use(const struct sac_plan *plan, struct users *u,
                     void (*fn)(struct users *u, size_t storage, size_t step))
{
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct sac_step *step = &plan->steps[i];
        for (int k = 0; k < step->in_count + step->out_count; k++)
            if (step->slots[k] >= 0)
                fn(u, (size_t)plan->slots[step->slots[k]].storage, i);
        if (step->scratch >= 0)
            fn(u, (size_t)plan->slots[step->scratch].storage, i);
    }
}

static void count_use(struct users *u, size_t storage, size_t step)
{
    (void)step;
    u->first[storage + 2]++;
}

static void add_use(struct users *u, size_t storage, size_t step)
{
    u->step[u->first[storage + 1]++] = step; /* in the end first[storage + 1] ends its list */
}

static bool find_users(const struct sac_plan *plan, struct users *u)
{
    u->first = sac_calloc(plan->storage_count + 2, sizeof *u->first);
    if (!u->first)
        return false;
    each_use(plan, u, count_use);
    for (size_t i = 2; i < plan->storage_count + 2; i++)
        u->first[i] += u->first[i - 1];
    u->step = sac_calloc(u->first[plan->storage_count + 1] + 1, sizeof *u->step);
    if (u->step)
        each_use(plan, u, add_use);
    return u->step != NULL;
}

static bool can_branch(const struct sac_plan *plan)
{
    if (!plan->dev->ops->capture_part || plan->activation_bytes > BRANCH_BYTES ||
        plan->params.without & (SAC_WITHOUT_CAPTURE | SAC_WITHOUT_BRANCHES))
        return false;
    for (size_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == SAC_STEP_REFERENCE) /* the host's: nothing is captured */
            return false;
    return true;
}

/* Leaves all as it is where nothing can run at the same time, and where memory is short. */
static void place_branches(struct sac_plan *plan, struct sac_lifetime *items, const char *kept)
{
    struct users u = {.order = &plan->order, .kept = kept};
    if (!can_branch(plan) || !sac_order_make(plan, &plan->order))
        return;
    size_t bytes = (size_t)-1;
    if (!sac_order_is_chain(&plan->order) && find_users(plan, &u))
        bytes = sac_lifetimes_place(items, plan->storage_count, used_together, &u);
    if (bytes <= SAC_MIN(plan->params.memory_limit, 2 * (uint64_t)BRANCH_BYTES))
        take_places(plan, items, bytes);
    else
        sac_order_free(&plan->order);
    sac_free(u.first);
    sac_free(u.step);
}

/* A view shares memory, so the step does nothing. */
static void drop_views(struct sac_plan *plan)
{
    size_t kept = 0;
    for (size_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind != SAC_STEP_VIEW)
            plan->steps[kept++] = plan->steps[i];
    plan->step_count = kept;
}

/* Before views are dropped, while lifetimes count them; then the order of the steps that are left.
 */
static sac_result place(struct sac_plan *plan)
{
    struct sac_lifetime *items = lifetimes_of(plan);
    char                *kept = sac_calloc(plan->storage_count, 1);
    sac_result res = items && kept ? place_activations(plan, items) : sac_plan_no_memory(plan);
    for (size_t i = 0; kept && i < plan->storage_count; i++)
        kept[i] = items && items[i].last == (int)plan->step_count; /* without reuse, all */
    drop_views(plan);
    if (res == SAC_OK)
        place_branches(plan, items, kept);
    sac_free(items);
    sac_free(kept);
    return res;
}

sac_result sac_plan_place_memory(struct sac_plan *plan)
{
    sac_result res = SAC_OK;
    find_last_reads(plan);
    for (size_t i = 0; i < plan->step_count && res == SAC_OK; i++)
        res = place_step(plan, &plan->steps[i], (int)i);
    if (res == SAC_OK)
        res = place(plan);
    plan->address = sac_calloc(plan->slot_count, sizeof *plan->address);
    plan->made = sac_calloc((size_t)plan->graph->output_count, sizeof *plan->made);
    return res == SAC_OK && (!plan->address || !plan->made) ? sac_plan_no_memory(plan) : res;
}
