/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/tasks/early.h"

struct sac_early {
    float confidence;
    /* [batch_max]: of the frames that are looked at again. */
    struct sac_segmenter_ask     *asks;
    sac_frame                   **mattes;
    struct sac_segmenter_summary *came_to;
    int                          *index;
    int                           count;
};

sac_result sac_early_create(sac_context *ctx, int batch_max, float confidence,
                            struct sac_early **out)
{
    const size_t      n = (size_t)batch_max;
    struct sac_early *e = *out = sac_new(struct sac_early);
    if (e) {
        e->confidence = confidence;
        e->asks = sac_calloc(n, sizeof *e->asks);
        e->mattes = sac_calloc(n, sizeof(*e->mattes));
        e->came_to = sac_calloc(n, sizeof *e->came_to);
        e->index = sac_calloc(n, sizeof *e->index);
    }
    if (e && e->asks && e->mattes && e->came_to && e->index)
        return SAC_OK;
    sac_early_destroy(out);
    return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a batch of %d frames", batch_max);
}

void sac_early_destroy(struct sac_early **at)
{
    struct sac_early *e = *at;
    if (!e)
        return;
    *at = NULL;
    sac_free(e->asks);
    sac_free(e->mattes);
    sac_free(e->came_to);
    sac_free(e->index);
    sac_free(e);
}

bool sac_early_is_sure(const struct sac_early *e, const struct sac_segmenter_summary *s)
{
    return 1 - 2 * s->unsure >= e->confidence;
}

/* A still frame's matte, moved along, is as sure as the one that it was: the large one then moves
 * its own. */
static void choose(struct sac_early *e, const struct sac_segmenter_ask *asks, int n,
                   const struct sac_segmenter_summary *came_to)
{
    e->count = 0;
    for (int i = 0; i < n; i++)
        if (!sac_early_is_sure(e, &came_to[i])) {
            e->index[e->count] = i;
            e->asks[e->count++] = asks[i];
        }
}

sac_result sac_early_look_again(struct sac_early *e, sac_segmenter *large, int slot,
                                const struct sac_segmenter_ask *asks, int n, sac_frame **mattes,
                                struct sac_segmenter_summary *came_to,
                                struct sac_batch_times       *again)
{
    *again = (struct sac_batch_times){0};
    choose(e, asks, n, came_to);
    if (e->count == 0)
        return SAC_OK;
    sac_result res = sac_segmenter_begin(large, slot, e->asks, e->count);
    if (res == SAC_OK)
        res = sac_segmenter_end(large, slot, e->mattes, e->came_to, NULL, again);
    if (res != SAC_OK)
        return res;
    for (int i = 0; i < e->count; i++) {
        sac_frame_unref(&mattes[e->index[i]]);
        mattes[e->index[i]] = e->mattes[i];
        came_to[e->index[i]] = e->came_to[i];
    }
    return SAC_OK;
}

int sac_early_count(const struct sac_early *e)
{
    return e->count;
}

int sac_early_index(const struct sac_early *e, int i)
{
    return e->index[i];
}
