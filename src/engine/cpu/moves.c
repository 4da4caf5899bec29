/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cpu/moves.h"

struct sac_moves *sac_moves_create(int room)
{
    struct sac_moves *s = sac_calloc(1, sizeof *s + (size_t)room * sizeof s->parts[0]);
    if (s)
        s->room = room;
    return s;
}

void sac_moves_add(struct sac_moves *s, int in, int64_t from, const int64_t *from_strides, int out,
                   int64_t to, const int64_t *to_strides, size_t bytes, int rank,
                   const int64_t *dims)
{
    struct sac_move move;
    sac_move_init(&move, bytes, rank, dims, to_strides, from_strides);
    if (move.units > 0 && s->count < s->room)
        s->parts[s->count++] =
            (struct sac_moves_part){move, in, out, (size_t)from * bytes, (size_t)to * bytes};
}

bool sac_moves_whole(const struct sac_moves *s)
{
    const struct sac_moves_part *p = &s->parts[0];
    return s->count == 1 && p->in == 0 && p->from == 0 && p->to == 0 &&
           p->move.kind == SAC_MOVE_RUNS && p->move.outer_count == 0 && p->move.column.count == 1;
}

sac_result sac_moves_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                         void *scratch, struct sac_device_stream *stream)
{
    const struct sac_moves *s = state;
    (void)scratch, (void)stream;
    for (int i = 0; i < s->count; i++) {
        const struct sac_moves_part *p = &s->parts[i];
        const char *from = p->in < 0 ? (const char *)&s->constant : (const char *)in[p->in];
        char       *to = out[p->out];
        if (to && to + p->to != from + p->from)
            sac_move_run(&p->move, dev->workers, to + p->to, from + p->from);
    }
    return SAC_OK;
}

void sac_strides_in(const struct sac_operand *o, enum sac_layout layout, int64_t pixel,
                    int64_t sample, int64_t *strides)
{
    sac_dense_strides(o->rank, o->dims, strides);
    if (!sac_layout_is_last(layout) || o->rank < 3)
        return;
    int64_t step = pixel ? pixel : o->dims[1];
    for (int d = o->rank - 1; d >= 2; d--) {
        strides[d] = step;
        step *= o->dims[d];
    }
    strides[1] = 1;
    strides[0] = sample ? sample : step;
}

void sac_input_strides(const struct sac_kernel_plan *plan, int input, int64_t *strides)
{
    sac_strides_in(&plan->call->in[input], plan->in_layout[input], plan->in_pixel[input],
                   plan->in_sample[input], strides);
}

void sac_output_strides(const struct sac_kernel_plan *plan, int output, int64_t *strides)
{
    sac_strides_in(&plan->call->out[output], plan->out_layout[output], plan->out_pixel[output],
                   plan->out_sample[output], strides);
}

struct sac_kernel_offer sac_moves_keep_layout(const struct sac_kernel_question *q)
{
    struct sac_kernel_offer offer = sac_kernel_take(q);
    const bool              last = q->in_layout[0] == SAC_LAYOUT_CHANNELS_LAST &&
                      sac_dtype_is_mapped(q->call->in[0].dtype) && q->call->in[0].rank >= 3;
    memset(offer.in_layout, 0, sizeof offer.in_layout);
    offer.in_layout[0] = last ? SAC_LAYOUT_CHANNELS_LAST : SAC_LAYOUT_PLAIN;
    for (int i = 0; i < q->call->out_count; i++)
        offer.out_layout[i] = offer.in_layout[0];
    offer.writes_any = true;
    return offer;
}
