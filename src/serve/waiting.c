/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/waiting.h"

/* ---- a heap ---- */

static bool goes_before(const struct sac_waiting *w, const sac_request *a, const sac_request *b)
{
    if (w->step_ns == 0 && a->params.priority != b->params.priority)
        return a->params.priority > b->params.priority;
    if (w->step_ns > 0 && a->key_ns != b->key_ns)
        return a->key_ns < b->key_ns;
    return a->number < b->number;
}

static void swap(struct sac_waiting *w, int i, int k)
{
    sac_request *other = w->heap[i];
    w->heap[i] = w->heap[k];
    w->heap[k] = other;
}

static void sift_up(struct sac_waiting *w, int i)
{
    for (; i > 0 && goes_before(w, w->heap[i], w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(w, i, (i - 1) / 2);
}

static void sift_down(struct sac_waiting *w, int i)
{
    for (;;) {
        int first = i;
        for (int k = 2 * i + 1; k <= 2 * i + 2 && k < w->count; k++)
            if (goes_before(w, w->heap[k], w->heap[first]))
                first = k;
        if (first == i)
            return;
        swap(w, i, first);
        i = first;
    }
}

static sac_request *take_first(struct sac_waiting *w)
{
    sac_request *first = w->heap[0];
    w->heap[0] = w->heap[--w->count];
    sift_down(w, 0);
    pthread_cond_signal(&w->not_full);
    return first;
}

/* ---- the queue ---- */

sac_result sac_waiting_init(struct sac_waiting *w, sac_context *ctx, int max, int64_t step_ns)
{
    *w = (struct sac_waiting){.step_ns = step_ns, .max = max, .earliest_ns = INT64_MAX};
    w->heap = sac_calloc((size_t)max, sizeof(sac_request *));
    if (!w->heap)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a queue of %d requests", max);
    pthread_mutex_init(&w->lock, NULL);
    sac_cond_init(&w->not_empty);
    sac_cond_init(&w->not_full);
    return SAC_OK;
}

void sac_waiting_finish(struct sac_waiting *w)
{
    if (!w->heap)
        return;
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->not_empty);
    pthread_cond_destroy(&w->not_full);
    sac_free(w->heap);
    *w = (struct sac_waiting){0};
}

static void put(struct sac_waiting *w, sac_request *r)
{
    r->number = w->came++;
    r->key_ns = sac_time_ns() - r->params.priority * w->step_ns;
    if (r->deadline_ns)
        w->earliest_ns = SAC_MIN(w->earliest_ns, r->deadline_ns);
    w->heap[w->count++] = r;
    sift_up(w, w->count - 1);
    w->count_max = SAC_MAX(w->count_max, w->count);
    pthread_cond_signal(&w->not_empty);
}

sac_result sac_waiting_push(struct sac_waiting *w, sac_request *r, bool wait)
{
    pthread_mutex_lock(&w->lock);
    while (wait && w->count == w->max && !w->closed)
        sac_cond_wait_until(&w->not_full, &w->lock, -1);
    const sac_result res = w->closed ? SAC_ERR_CANCELLED : w->count == w->max ? SAC_AGAIN : SAC_OK;
    if (res == SAC_OK)
        put(w, r);
    pthread_mutex_unlock(&w->lock);
    return res;
}

sac_result sac_waiting_pop_wait(struct sac_waiting *w, int size_max, int64_t timeout_ns,
                                sac_request **out)
{
    const int64_t end_ns = timeout_ns < 0 ? -1 : sac_time_ns() + timeout_ns;
    sac_result    res = SAC_OK;
    pthread_mutex_lock(&w->lock);
    while (w->count == 0 && !w->closed && timeout_ns != 0 &&
           sac_cond_wait_until(&w->not_empty, &w->lock, end_ns))
        ;
    if (w->count == 0)
        res = w->closed ? SAC_EOS : SAC_AGAIN;
    else if (w->heap[0]->size > size_max)
        res = SAC_ERR_LIMIT;
    else
        *out = take_first(w);
    pthread_mutex_unlock(&w->lock);
    return res;
}

/* Those for which `late` is set and the deadline is over, or all. Under the lock. */
static sac_request *take_out(struct sac_waiting *w, bool late, int64_t now_ns)
{
    sac_request *list = NULL, **end = &list;
    int          kept = 0;
    for (int i = 0; i < w->count; i++) {
        sac_request  *r = w->heap[i];
        const int64_t deadline_ns = r->deadline_ns ? r->deadline_ns : INT64_MAX;
        if (late && deadline_ns >= now_ns) {
            w->heap[kept++] = r;
            w->earliest_ns = SAC_MIN(w->earliest_ns, deadline_ns);
            continue;
        }
        r->next = NULL;
        *end = r;
        end = &r->next;
    }
    w->count = kept;
    for (int i = kept / 2; i-- > 0;)
        sift_down(w, i);
    pthread_cond_broadcast(&w->not_full);
    return list;
}

sac_request *sac_waiting_take_late(struct sac_waiting *w, int64_t now_ns)
{
    sac_request *list = NULL;
    pthread_mutex_lock(&w->lock);
    if (w->earliest_ns < now_ns) {
        w->earliest_ns = INT64_MAX;
        list = take_out(w, true, now_ns);
    }
    pthread_mutex_unlock(&w->lock);
    return list;
}

static void close_locked(struct sac_waiting *w)
{
    w->closed = true;
    pthread_cond_broadcast(&w->not_empty);
    pthread_cond_broadcast(&w->not_full);
}

void sac_waiting_close(struct sac_waiting *w)
{
    pthread_mutex_lock(&w->lock);
    close_locked(w);
    pthread_mutex_unlock(&w->lock);
}

sac_request *sac_waiting_take_all(struct sac_waiting *w)
{
    pthread_mutex_lock(&w->lock);
    close_locked(w);
    sac_request *list = take_out(w, false, 0);
    pthread_mutex_unlock(&w->lock);
    return list;
}

void sac_waiting_get(struct sac_waiting *w, int *count, int *count_max)
{
    pthread_mutex_lock(&w->lock);
    *count = w->count;
    *count_max = w->count_max;
    pthread_mutex_unlock(&w->lock);
}
