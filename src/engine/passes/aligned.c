/* SPDX-License-Identifier: Apache-2.0 */
/* Of a convolution's map that is only read in parts, each part begins at a multiple of eight
 * channels: query, context and three gates of one map of 195 channels, all of which were read at
 * odd places, number by number. Rows of zeros in the weights take up the channels between the
 * parts, which nobody reads, and rows that nobody reads are left out. */
#include <string.h>

#include "engine/passes/taken.h"

/* As in eights.c. */
enum { MULTIPLE = 8, SHARE = 4, PARTS_MAX = 8 };

struct places {
    struct sac_taken part[PARTS_MAX]; /* as the channels lie */
    int64_t          to[PARTS_MAX];   /* where each part will begin */
    int              count;
    int64_t          channels, all; /* as they are, and as they will be */
};

static bool is_bare(const struct sac_node *n)
{
    return sac_is_dense_conv(n) && !sac_node_input(n, SAC_RESIDUAL_INPUT) &&
           (!sac_node_input(n, 2) || sac_constant_floats(n->inputs[2]));
}

static void put_in_order(struct places *p)
{
    for (int i = 1; i < p->count; i++)
        for (int k = i; k > 0 && p->part[k].first < p->part[k - 1].first; k--) {
            const struct sac_taken later = p->part[k - 1];
            p->part[k - 1] = p->part[k];
            p->part[k] = later;
        }
}

/* False: parts overlap, they are aligned as they are, or alignment would cost too much. */
static bool find_places(const struct sac_value *v, struct places *p)
{
    *p = (struct places){.channels = v->dims[1]};
    p->count = sac_taken_channels(v, p->part, PARTS_MAX);
    put_in_order(p);
    bool odd = p->channels % MULTIPLE != 0;
    for (int i = 0; i < p->count; i++) {
        const struct sac_taken *t = &p->part[i];
        if (!t->whole || (i > 0 && t->first < p->part[i - 1].end))
            return false;
        odd |= t->first % MULTIPLE != 0;
        p->to[i] = p->all;
        p->all += (t->end - t->first + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
    }
    p->all = sac_whole_channels(p->all);
    return odd && p->count > 1 && (p->all - p->channels) * SHARE <= p->channels;
}

/* The rows of the parts, where these will be. */
static struct sac_value *rows_of(struct sac_graph *g, const struct sac_value *w,
                                 const struct places *p)
{
    int64_t dims[SAC_RANK_MAX], each = 1;
    float  *to;
    memcpy(dims, w->dims, sizeof dims);
    dims[0] = p->all;
    for (int d = 1; d < w->rank; d++)
        each *= dims[d];
    const float      *from = sac_constant_floats(w);
    struct sac_value *made = sac_new_floats(g, w->name, w->rank, dims, &to);
    if (!made)
        return NULL;
    memset(to, 0, (size_t)(p->all * each) * sizeof *to);
    for (int i = 0; i < p->count; i++)
        memcpy(to + p->to[i] * each, from + p->part[i].first * each,
               (size_t)((p->part[i].end - p->part[i].first) * each) * sizeof *to);
    return made;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct places p;
    sac_result    res = SAC_OK;
    if (!is_bare(n) || !find_places(n->outputs[0], &p))
        return SAC_OK;
    struct sac_value *w = rows_of(g, n->inputs[1], &p);
    struct sac_value *bias = sac_node_input(n, 2) ? rows_of(g, n->inputs[2], &p) : NULL;
    if (!w || (sac_node_input(n, 2) && !bias))
        return SAC_ERR_MEMORY;
    n->inputs[1] = w;
    if (bias)
        n->inputs[2] = bias;
    n->outputs[0]->dims[1] = p.all;
    *changed = true;
    for (int i = 0; i < p.count; i++) {
        const struct sac_taken *t = &p.part[i];
        struct sac_value       *part =
            sac_channels_of(g, n, n->outputs[0], p.to[i], t->end - t->first, &res);
        if (!part)
            return res;
        sac_graph_replace(g, t->value, part);
    }
    return SAC_OK;
}

const struct sac_pass sac_pass_aligned = {"aligned", visit};
