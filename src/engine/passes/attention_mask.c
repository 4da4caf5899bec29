/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "engine/passes/attention_mask.h"

enum { CELLS_MAX = 1 << 24 };

static int64_t cells_of(const struct sac_mask_sum *m)
{
    return m->heads * m->queries * m->keys;
}

/* The mask's first `from` cells, repeated up to `to`. */
static bool extend(struct sac_mask_sum *m, int64_t period)
{
    const int64_t one = cells_of(m), from = m->period * one, to = period * one;
    float        *more = sac_realloc_array(m->at, (size_t)to, sizeof *more);
    if (!more)
        return false;
    for (int64_t i = from; i < to; i++)
        more[i] = from ? more[i - from] : 0;
    m->at = more;
    m->period = period;
    return true;
}

/* A constant over dims first.. of the scores, of `cells` numbers in all. */
struct spread {
    const struct sac_value *constant, *scores;
    int                     first;
    int64_t                 cells;
};

static int64_t dim_of(const struct spread *s, int d)
{
    const int own = d - (s->scores->rank - s->constant->rank);
    return own >= 0 ? s->constant->dims[own] : 1;
}

/* The trailing dims of the scores that the constant differs over, and more until they are whole
 * batches, or until whole batches are several of them. */
static bool spread_over(struct spread *s, int64_t one)
{
    int needed = 0;
    while (needed < s->scores->rank && dim_of(s, needed) == 1)
        needed++;
    s->cells = 1;
    for (s->first = s->scores->rank;; s->first--) {
        const bool whole = s->cells < one ? one % s->cells == 0 : s->cells % one == 0;
        if (s->first <= needed && whole)
            return true;
        if (s->first == 0 || s->scores->dims[s->first - 1] <= 0 ||
            s->cells > CELLS_MAX / s->scores->dims[s->first - 1])
            return false;
        s->cells *= s->scores->dims[s->first - 1];
    }
}

static int64_t place(const struct spread *s, int64_t cell)
{
    int64_t at = 0, step = 1;
    for (int d = s->scores->rank - 1; d >= s->first; d--) {
        const int64_t index = cell % s->scores->dims[d];
        cell /= s->scores->dims[d];
        at += dim_of(s, d) == 1 ? 0 : index * step;
        step *= dim_of(s, d);
    }
    return at;
}

bool sac_mask_add(struct sac_mask_sum *m, const struct sac_value *constant,
                  const struct sac_value *scores, double factor)
{
    const int64_t one = cells_of(m);
    const float  *data = sac_constant_floats(constant);
    struct spread s = {.constant = constant, .scores = scores};
    if (!data || constant->rank > scores->rank || one > CELLS_MAX || !spread_over(&s, one))
        return false;
    const int64_t period = SAC_MAX(s.cells / one, 1), longer = SAC_MAX(period, m->period);
    if (longer % period || (m->period && longer % m->period) || longer > CELLS_MAX / one ||
        (longer != m->period && !extend(m, longer)))
        return false;
    for (int64_t i = 0; i < longer * one; i++)
        m->at[i] += (float)(factor * data[place(&s, i % s.cells)]);
    return true;
}

/* `count` blocks of `size` numbers that are all the same, in each of `outer` places: then one
 * remains. */
static int64_t merge(float *at, int64_t outer, int64_t count, int64_t size)
{
    const size_t bytes = (size_t)size * sizeof *at;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 1; i < count; i++)
            if (memcmp(at + o * count * size, at + (o * count + i) * size, bytes) != 0)
                return count;
    for (int64_t o = 1; o < outer; o++)
        memmove(at + o * size, at + o * count * size, bytes);
    return 1;
}

sac_result sac_mask_value(struct sac_graph *g, struct sac_mask_sum *m, struct sac_value **out)
{
    const int64_t keys = m->keys;
    float        *data;
    bool          zero = true;
    *out = NULL;
    for (int64_t i = 0; zero && i < m->period * cells_of(m); i++)
        zero = m->at[i] == 0;
    if (zero)
        return SAC_OK;
    const int64_t queries = merge(m->at, m->period * m->heads, m->queries, keys);
    const int64_t heads = merge(m->at, m->period, m->heads, queries * keys);
    const int64_t period = merge(m->at, 1, m->period, heads * queries * keys);
    const int64_t dims[] = {period, heads, queries, keys};
    *out = sac_new_floats(g, "mask", 4, dims, &data);
    if (!*out)
        return SAC_ERR_MEMORY;
    memcpy(data, m->at, (size_t)(period * heads * queries * keys) * sizeof *data);
    return SAC_OK;
}

void sac_mask_finish(struct sac_mask_sum *m)
{
    sac_free(m->at);
    m->at = NULL;
}
