/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "track/eval_data.h"

bool sac_eval_next(const struct sac_eval_data *data, struct sac_eval_view *view)
{
    if (view->next == data->frames_kept)
        return false;
    const bool first = view->next == 0;
    view->gt = first ? data->gt : view->gt + view->now.gt_count;
    view->track = first ? data->track : view->track + view->now.track_count;
    view->touches = first ? data->touches : view->touches + view->now.touch_count;
    view->pair_of = first ? data->pair_of : view->pair_of + view->now.touch_count;
    view->now = data->frames[view->next++];
    return true;
}

/* ---- ids without gaps ---- */

/* A hash table with open addressing: there are far fewer ids than boxes. */
struct id_table {
    int   *key, *number; /* [size]; number -1: free */
    size_t size, count;  /* size: a power of two */
};

static size_t place_of(const struct id_table *t, int id)
{
    size_t at = ((uint32_t)id * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (t->size - 1);
    while (t->number[at] >= 0 && t->key[at] != id)
        at = (at + 1) & (t->size - 1);
    return at;
}

static bool table_init(struct id_table *t, size_t size)
{
    *t = (struct id_table){sac_realloc_array(NULL, size, sizeof(int)),
                           sac_realloc_array(NULL, size, sizeof(int)), size, 0};
    if (t->number)
        memset(t->number, 0xff, size * sizeof(int));
    return t->key && t->number;
}

static void table_finish(struct id_table *t)
{
    sac_free(t->key);
    sac_free(t->number);
}

static bool table_grow(struct id_table *t)
{
    struct id_table larger;
    bool            ok = table_init(&larger, t->size * 2);
    for (size_t i = 0; ok && i < t->size; i++)
        if (t->number[i] >= 0) {
            size_t at = place_of(&larger, t->key[i]);
            larger.key[at] = t->key[i];
            larger.number[at] = t->number[i];
        }
    larger.count = t->count;
    table_finish(ok ? t : &larger);
    if (ok)
        *t = larger;
    return ok;
}

static bool table_add(struct id_table *t, int id)
{
    if (t->count * 2 >= t->size && !table_grow(t))
        return false;
    size_t at = place_of(t, id);
    if (t->number[at] < 0) {
        t->key[at] = id;
        t->number[at] = (int)t->count++;
    }
    return true;
}

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* In the order of the ids, as TrackEval has them. */
static bool table_sort(struct id_table *t)
{
    int   *ids = sac_realloc_array(NULL, t->count, sizeof *ids);
    size_t n = 0;
    for (size_t i = 0; ids && i < t->size; i++)
        if (t->number[i] >= 0)
            ids[n++] = t->key[i];
    if (n)
        qsort(ids, n, sizeof *ids, compare_ints);
    for (size_t i = 0; i < n; i++)
        t->number[place_of(t, ids[i])] = (int)i;
    sac_free(ids);
    return ids != NULL;
}

static bool renumber(int *ids, int64_t count, int *unique_out)
{
    struct id_table table;
    bool            ok = table_init(&table, 1024);
    for (int64_t i = 0; ok && i < count; i++)
        ok = table_add(&table, ids[i]);
    ok = ok && table_sort(&table);
    for (int64_t i = 0; ok && i < count; i++)
        ids[i] = table.number[place_of(&table, ids[i])];
    *unique_out = (int)table.count;
    table_finish(&table);
    return ok;
}

/* ---- which ids meet ---- */

/* Touches by the id of their ground truth. */
struct buckets {
    size_t  *begin; /* [gt_ids + 1] */
    int32_t *touch; /* [touch_count] */
    int     *track; /* [touch_count] its id */
    int     *slot; /* [track_ids] of a track id: its pair, of this ground truth when >= the first */
    int     *met;  /* [track_ids] of one ground truth */
};

static bool buckets_init(struct buckets *b, const struct sac_eval_data *data)
{
    const size_t gt = (size_t)data->gt_ids, tracks = (size_t)data->track_ids;
    *b = (struct buckets){
        sac_calloc(gt + 2, sizeof *b->begin),
        sac_realloc_array(NULL, data->touch_count, sizeof *b->touch),
        sac_realloc_array(NULL, data->touch_count, sizeof *b->track),
        sac_realloc_array(NULL, tracks, sizeof *b->slot),
        sac_realloc_array(NULL, tracks, sizeof *b->met),
    };
    if (!b->begin || !b->touch || !b->track || !b->slot || !b->met)
        return false;
    memset(b->slot, 0xff, tracks * sizeof *b->slot);
    return true;
}

static void buckets_finish(struct buckets *b)
{
    sac_free(b->begin);
    sac_free(b->touch);
    sac_free(b->track);
    sac_free(b->slot);
    sac_free(b->met);
}

static void buckets_fill(struct buckets *b, const struct sac_eval_data *data)
{
    struct sac_eval_view f = {0};
    while (sac_eval_next(data, &f))
        for (int i = 0; i < f.now.touch_count; i++)
            b->begin[f.gt[f.touches[i].gt] + 2]++;
    for (int g = 0; g < data->gt_ids; g++)
        b->begin[g + 2] += b->begin[g + 1];
    f = (struct sac_eval_view){0};
    while (sac_eval_next(data, &f))
        for (int i = 0; i < f.now.touch_count; i++) {
            size_t at = b->begin[f.gt[f.touches[i].gt] + 1]++;
            b->touch[at] = (int32_t)(f.touches + i - data->touches);
            b->track[at] = f.track[f.touches[i].track];
        }
}

/* The pairs of one ground-truth id, and the pair of each of its touches. */
static bool pair_up(struct sac_eval_data *data, struct buckets *b, int gt)
{
    const size_t first = data->pair_count;
    int          met = 0;
    for (size_t i = b->begin[gt]; i < b->begin[gt + 1]; i++)
        if (b->slot[b->track[i]] < (int64_t)first) {
            b->slot[b->track[i]] = INT32_MAX;
            b->met[met++] = b->track[i];
        }
    qsort(b->met, (size_t)met, sizeof *b->met, compare_ints);
    if (!sac_grow((void **)&data->pairs, &data->pair_capacity, first + (size_t)met,
                  sizeof *data->pairs))
        return false;
    for (int i = 0; i < met; i++) {
        b->slot[b->met[i]] = (int)data->pair_count;
        data->pairs[data->pair_count++] = (struct sac_eval_pair){gt, b->met[i]};
    }
    for (size_t i = b->begin[gt]; i < b->begin[gt + 1]; i++)
        data->pair_of[b->touch[i]] = b->slot[b->track[i]];
    return true;
}

sac_result sac_eval_number(struct sac_eval_data *data, const char *name)
{
    struct buckets b = {0};
    if (data->touch_count >= SAC_EVAL_TOUCHES_MAX)
        return SAC_FAIL(data->ctx, SAC_ERR_LIMIT,
                        "%s: %zu overlaps of boxes; at most %d can be scored", name,
                        data->touch_count, SAC_EVAL_TOUCHES_MAX);
    data->pair_of = sac_realloc_array(NULL, data->touch_count, sizeof *data->pair_of);
    bool ok = data->pair_of && renumber(data->gt, data->gt_dets, &data->gt_ids) &&
              renumber(data->track, data->track_dets, &data->track_ids) && buckets_init(&b, data);
    if (ok)
        buckets_fill(&b, data);
    for (int g = 0; g < data->gt_ids && ok; g++)
        ok = pair_up(data, &b, g);
    buckets_finish(&b);
    return ok ? SAC_OK : sac_eval_no_memory(data);
}
