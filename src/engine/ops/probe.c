/* SPDX-License-Identifier: Apache-2.0 */
/* Which dims of which values depend on the open dims of the inputs? Shapes are inferred twice, with
 * two sizes for all open dims: dims that differ are open. Shape functions then need no symbolic
 * dims. */
#include <string.h>

#include "engine/ops/infer.h"

/* Sizes used for open dims. All but the batch are multiples of 64: networks that halve an image
 * many times take no others. */
static const struct {
    int64_t batch, size;
} stand_ins[2] = {{1, 128}, {2, 192}};

static struct sac_operand stand_in(const struct sac_value *v, int which)
{
    struct sac_operand o = {.dtype = v->dtype, .rank = v->rank, .present = v->rank >= 0};
    for (int d = 0; d < v->rank; d++) {
        o.dims[d] = v->dims[d];
        if (v->dims[d] == SAC_DIM_OPEN)
            o.dims[d] = d == 0 ? stand_ins[which].batch : stand_ins[which].size;
    }
    return o;
}

static bool any_open(const struct sac_graph *g)
{
    bool open = false;
    for (int i = 0; i < g->input_count; i++) {
        open |= g->inputs[i]->rank < 0;
        for (int d = 0; d < g->inputs[i]->rank; d++)
            open |= g->inputs[i]->dims[d] == SAC_DIM_OPEN;
    }
    return open;
}

static sac_result probe_once(struct sac_infer *inf, int which)
{
    for (int i = 0; i < inf->graph->input_count; i++)
        inf->values[inf->graph->inputs[i]->id] = stand_in(inf->graph->inputs[i], which);
    return sac_infer_run(inf);
}

/* Of what dim both are such a multiple. */
static int64_t batches_of(int64_t a, int64_t b)
{
    const int64_t times = a / stand_ins[0].batch;
    return a == times * stand_ins[0].batch && b == times * stand_ins[1].batch ? times : 0;
}

static bool counts(const struct sac_operand *o)
{
    const int64_t elements = sac_operand_elements(o);
    if (!o->data || o->dtype != SAC_I64 || elements < 1)
        return false;
    for (int64_t i = 0; i < elements; i++)
        if (((const int64_t *)o->data)[i] != i)
            return false;
    return true;
}

/* Combines what both runs inferred for a value; nothing when one of them could not infer it. */
static void note_shape(struct sac_value *v, const struct sac_operand *a,
                       const struct sac_operand *b)
{
    if (!a->present || !b->present || a->rank != b->rank)
        return;
    v->dtype = a->dtype;
    v->rank = a->rank;
    for (int d = 0; d < a->rank; d++)
        v->dims[d] = a->dims[d] == b->dims[d] ? a->dims[d] : SAC_DIM_OPEN;
    v->batches = a->rank > 0 ? batches_of(a->dims[0], b->dims[0]) : 0;
}

static bool is_input(const struct sac_graph *g, const struct sac_value *v)
{
    for (int i = 0; i < g->input_count; i++)
        if (g->inputs[i] == v)
            return true;
    return false;
}

sac_result sac_graph_probe(struct sac_graph *g, uint64_t memory_limit, bool tolerant)
{
    struct sac_infer inf[2] = {0};
    sac_result       res = SAC_OK;
    bool             open = any_open(g);
    for (int k = 0; k < 2 && res == SAC_OK; k++) {
        res = sac_infer_init(&inf[k], g, memory_limit);
        /* a substituted size that does not fit is not the model's error */
        inf[k].tolerant = tolerant || open;
        inf[k].shapes_only = true;
        if (res == SAC_OK)
            res = probe_once(&inf[k], k);
    }
    for (size_t i = 0; i < g->value_count && res == SAC_OK; i++) {
        struct sac_value *v = g->values[i];
        v->counts = counts(&inf[0].values[v->id]) && counts(&inf[1].values[v->id]);
        if (is_input(g, v))
            v->batches = v->rank > 0 && v->dims[0] == SAC_DIM_OPEN;
        else if (!v->data)
            note_shape(v, &inf[0].values[v->id], &inf[1].values[v->id]);
    }
    for (int k = 0; k < 2; k++)
        sac_infer_finish(&inf[k]);
    if (res == SAC_OK)
        sac_error_clear(g->ctx);
    return res;
}
