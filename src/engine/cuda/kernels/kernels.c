/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the rows: layouts, and the path from a plan to a launch. */
#include <stdio.h>

#include "engine/cuda/kernels/kernels.h"
#include "engine/ops/quant.h"

/* ---- layouts ---- */

bool ops_refuse(struct sac_kernel_offer *offer, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(offer->why, sizeof offer->why, fmt, ap);
    va_end(ap);
    return false;
}

enum sac_layout ops_with_half(enum sac_layout layout, bool half)
{
    if (sac_layout_is_last(layout))
        return half ? SAC_LAYOUT_CHANNELS_LAST_HALF : SAC_LAYOUT_CHANNELS_LAST;
    return half ? SAC_LAYOUT_PLAIN_HALF : SAC_LAYOUT_PLAIN;
}

enum sac_layout ops_with_last(enum sac_layout layout, bool last)
{
    if (sac_layout_is_half(layout))
        return last ? SAC_LAYOUT_CHANNELS_LAST_HALF : SAC_LAYOUT_PLAIN_HALF;
    return last ? SAC_LAYOUT_CHANNELS_LAST : SAC_LAYOUT_PLAIN;
}

bool ops_can_be_last(const struct sac_operand *o)
{
    return o->rank >= 3 && o->rank <= 5;
}

void ops_halve_output(const struct sac_kernel_question *q, struct sac_kernel_offer *offer, int i,
                      bool half)
{
    half = half && q->precision == SAC_PRECISION_FP16 && q->call->out[i].dtype == SAC_F32;
    offer->out_layout[i] = ops_with_half(offer->out_layout[i], half);
}

void ops_want_plain(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    for (int i = 0; i < q->call->in_count; i++)
        offer->in_layout[i] = ops_with_last(offer->in_layout[i], false);
    for (int i = 0; i < q->call->out_count; i++) {
        offer->out_layout[i] = SAC_LAYOUT_PLAIN;
        ops_halve_output(q, offer, i, true);
    }
}

bool ops_exact_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    ops_want_plain(q, offer);
    for (int i = 0; i < q->call->out_count; i++)
        offer->out_layout[i] = SAC_LAYOUT_PLAIN;
    return true;
}

bool ops_moved_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    ops_exact_layouts(q, offer);
    ops_halve_output(q, offer, 0, sac_layout_is_half(offer->in_layout[0]));
    return true;
}

bool ops_small_enough(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    return sac_operand_elements(&q->call->out[0]) < INT32_MAX ||
           ops_refuse(offer, "more than 2^31 numbers");
}

int ops_in_type(const struct sac_kernel_plan *plan, int i)
{
    return (int)sac_layout_dtype(plan->call->in[i].dtype, plan->in_layout[i]);
}

int ops_out_type(const struct sac_kernel_plan *plan, int i)
{
    return (int)sac_layout_dtype(plan->call->out[i].dtype, plan->out_layout[i]);
}

/* Two steps would have float16 between them, but not of numbers that are beyond its range or lose
 * digits below it (model/ranges.c), which those are that the bytes can stand for. */
struct ops_bytes ops_bytes_of(const struct sac_kernel_plan *plan)
{
    const struct sac_quant q = sac_quant_read(plan->call->node);
    const bool             fits = q.y_scale * 512 < 65504 && q.y_scale > 0x1p-14f;
    if (q.y_dtype == SAC_F32)
        return (struct ops_bytes){.type = 0};
    return (struct ops_bytes){.type = (int32_t)q.y_dtype,
                              .half = plan->precision == SAC_PRECISION_FP16 && fits,
                              .inverse = q.y_inverse,
                              .zero = (float)q.y_zero};
}

enum ops_class ops_class_of(enum sac_dtype t)
{
    return (enum ops_class)sac_dtype_class(t);
}

_Static_assert((int)OPS_FLOAT == (int)SAC_CLASS_F32 && (int)OPS_DOUBLE == (int)SAC_CLASS_F64 &&
                   (int)OPS_INT64 == (int)SAC_CLASS_I64 && (int)OPS_UINT64 == (int)SAC_CLASS_U64,
               "the classes are those of ops/util.h");

/* ---- from a plan to a launch ---- */

struct sac_kernel_offer ops_supports(struct sac_device *dev, const struct sac_kernel_question *q)
{
    struct sac_kernel_offer offer = sac_kernel_take(q);
    const struct ops_row   *row = ops_rows[q->call->node->op->id];
    (void)dev;
    if (row->layouts)
        offer.taken = row->layouts(q, &offer);
    else
        ops_want_plain(q, &offer);
    return offer;
}

sac_result ops_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    const struct ops_row     *row = ops_rows[c->node->op->id];
    const size_t              many = (size_t)SAC_MAX(c->in_count, c->out_count);
    struct ops_state         *s = sac_calloc(1, sizeof *s + row->bytes + row->each * many);
    (void)dev;
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    *s = (struct ops_state){row, c->node->op->name, c->in_count, c->out_count};
    sac_result res = row->fill(plan, s->params);
    if (res != SAC_OK) {
        sac_free(s);
        return res;
    }
    snprintf(plan->implementation, sizeof plan->implementation, "kernel");
    plan->state = s;
    return SAC_OK;
}

sac_result ops_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                   void *scratch, struct sac_device_stream *stream)
{
    const struct ops_state *s = state;
    const struct ops_ports  ports = ops_ports_of(s, in, out, scratch);
    return ops_queue(dev, stream, s, &ports);
}

void ops_release(void *state)
{
    sac_free(state);
}
