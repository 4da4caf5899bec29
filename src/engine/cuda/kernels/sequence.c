/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of Attention, RotaryEmbedding and the recurrent layers. */
#include "engine/cuda/kernels/sequence.h"

#include "engine/cuda/kernels/lines.h"
#include "engine/cuda/kernels/kernels.h"

static struct ops_heads heads_of(const struct sac_heads *h)
{
    return (struct ops_heads){
        h->batch, h->count, h->length, h->size, {h->step[0], h->step[1], h->step[2]}};
}

/* ---- Attention ---- */

static sac_result attention_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_attention     *p = params;
    struct sac_attention      a;
    SAC_TRY(sac_attention_read(c, &a));
    p->q = heads_of(&a.q);
    p->k = heads_of(&a.k);
    p->v = heads_of(&a.v);
    p->past = a.past;
    p->total = a.total;
    p->group = a.group;
    p->left = a.left;
    p->right = a.right;
    p->scale = a.scale;
    p->softcap = a.softcap;
    p->causal = a.causal;
    p->mode = a.mode;
    p->flat = c->in[0].rank == 3;
    p->q_type = ops_in_type(plan, 0);
    p->k_type = ops_in_type(plan, 1);
    p->v_type = ops_in_type(plan, 2);
    p->mask_type = ops_in_type(plan, 3);
    p->past_key_type = ops_in_type(plan, 4);
    p->past_value_type = ops_in_type(plan, 5);
    p->has_valid = sac_op_has(c, 6);
    p->mask_rank = p->mask_type ? c->in[3].rank : 0;
    for (int d = 0; d < p->mask_rank; d++)
        p->mask_dim[d] = c->in[3].dims[d];
    for (int i = 0; i < 4; i++)
        p->out_type[i] = ops_out_type(plan, i);
    p->team = p->total <= 512 ? OPS_TEAM_WARP : OPS_TEAM_BLOCK;
    plan->scratch_bytes = (size_t)(a.q.batch * a.q.count * a.q.length * a.total) * sizeof(float);
    return SAC_OK;
}

/* ---- RotaryEmbedding ---- */

static sac_result rotary_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_rotary        *p = params;
    struct sac_rotary         r;
    SAC_TRY(sac_rotary_read(c, &r));
    p->x = heads_of(&r.x);
    p->turned = r.turned;
    p->interleaved = r.interleaved;
    p->has_position = sac_op_has(c, 3);
    p->positions = SAC_MAX(ops_count_in(plan, 1) / SAC_MAX(r.turned / 2, 1), 1);
    p->type = ops_in_type(plan, 0);
    p->cos_type = ops_in_type(plan, 1);
    p->sin_type = ops_in_type(plan, 2);
    p->out_type = ops_out_type(plan, 0);
    return SAC_OK;
}

/* ---- RNN, GRU, LSTM, FusedRecurrent ---- */

enum { WARP_HIDDEN = 128 }; /* hidden numbers up to which a warp runs a sample, else a block */

static bool recurrent_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    ops_want_plain(q, offer);
    offer->in_layout[OPS_RECURRENT_R] = SAC_LAYOUT_PLAIN;
    return true;
}

/* Those that the operators have by default. */
static bool has_usual_activations(const struct sac_rnn *r)
{
    for (int d = 0; d < r->directions; d++)
        for (int k = 0; k <= (int)r->kind; k++)
            if (r->act[d][k].kind !=
                (k || r->kind == SAC_RNN ? OPS_RECURRENT_TANH : OPS_RECURRENT_SIGMOID))
                return false;
    return true;
}

/* Sums and output are read and written by two numbers. */
static int tiles_of(const struct ops_recurrent *p, const struct sac_rnn *r)
{
    static const int tiles[] = {1, 2, 3, 4, 6, OPS_RECURRENT_TILES_MAX};
    const bool       halves =
        p->type[OPS_RECURRENT_X] == SAC_F16 && (p->out_type[0] == 0 || p->out_type[0] == SAC_F16);
    if (!r->summed || !halves || p->type[OPS_RECURRENT_R] != SAC_F32 || r->hidden % 2 ||
        p->type[OPS_RECURRENT_LENGTHS] || p->type[OPS_RECURRENT_P] || r->clip > 0 || r->coupled ||
        (r->kind == SAC_GRU && !r->linear_before_reset) || !has_usual_activations(r))
        return 0;
    for (size_t i = 0; i < SAC_COUNT(tiles); i++)
        if (r->hidden <= 16 * tiles[i])
            return tiles[i];
    return 0;
}

static sac_result recurrent_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_recurrent     *p = params;
    struct sac_rnn            r;
    SAC_TRY(sac_rnn_read(c, &r));
    p->kind = (int32_t)r.kind;
    p->summed = r.summed;
    p->directions = r.directions;
    p->reverse_only = r.reverse_only;
    p->batch_first = r.batch_first;
    p->linear_before_reset = r.linear_before_reset;
    p->coupled = r.coupled;
    p->steps = r.steps;
    p->batch = r.batch;
    p->inputs = r.inputs;
    p->hidden = r.hidden;
    p->gates = r.gates;
    p->clip = r.clip;
    for (int d = 0; d < SAC_RNN_DIRECTIONS; d++)
        for (int k = 0; k < SAC_RNN_ACTIVATIONS; k++) {
            p->act[d][k].kind = r.act[d][k].kind;
            p->act[d][k].alpha = (float)r.act[d][k].alpha;
            p->act[d][k].beta = (float)r.act[d][k].beta;
        }
    for (int i = 0; i < SAC_RNN_INPUTS; i++)
        p->type[i] = ops_in_type(plan, i);
    for (int i = 0; i < 3; i++)
        p->out_type[i] = ops_out_type(plan, i);
    p->out_count = p->out_type[0] ? ops_count_out(plan, 0) : 0;
    p->tiles = tiles_of(p, &r);
    p->team = r.hidden <= WARP_HIDDEN ? OPS_TEAM_WARP : OPS_TEAM_BLOCK;
    plan->scratch_bytes = (size_t)(p->directions * p->batch * 4 * p->hidden) * sizeof(float);
    return SAC_OK;
}

OPS_ROW(Attention, NULL, attention_fill, ops_launch_attention, ops_attention)
OPS_ROW(RotaryEmbedding, NULL, rotary_fill, ops_launch_rotary, ops_rotary)
OPS_ROW(RNN, recurrent_layouts, recurrent_fill, ops_launch_recurrent, ops_recurrent)
OPS_ROW(GRU, recurrent_layouts, recurrent_fill, ops_launch_recurrent, ops_recurrent)
OPS_ROW(LSTM, recurrent_layouts, recurrent_fill, ops_launch_recurrent, ops_recurrent)
OPS_ROW(FusedRecurrent, recurrent_layouts, recurrent_fill, ops_launch_recurrent, ops_recurrent)
