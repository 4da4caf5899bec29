/* SPDX-License-Identifier: Apache-2.0 */
/* Conv, FusedConv and ConvTranspose by oneDNN, channels last.
 *
 * Only where oneDNN is faster than saccade's own kernels (measured, see WORTH_FLOPS) and has a
 * compiled implementation: a `ref:` one can be hundreds of times slower. Its own SiLU costs more
 * than a vectorised polynomial in a second pass, so curved activations use that. */
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/cpu/map.h"
#include "engine/ops/fused.h"
#include "engine/onednn/onednn.h"
#include "engine/ops/window.h"

/* Below this, the round trip to the worker thread (about 10 microseconds) outweighs the gain. */
static const double WORTH_FLOPS = 40e6;
/* In and out; with fewer, saccade's own kernels are as fast, and more so inside a network: oneDNN's
 * thread finds the map in another core's cache. */
enum { WORTH_CHANNELS = 48 };

struct conv {
    struct primitive      p;
    struct sac_activation second; /* what oneDNN does not do */
    bool                  residual, add_after;
    int                   threads;
    int64_t               count; /* numbers of the output */
    int                   pieces;
};

struct request {
    struct making m;
    struct after  after;
    struct window window;
    bool          deconv;
    int64_t       groups;
};

/* Strides of a channels-last map, for dims in oneDNN's order N, C, H, W. */
static void last_strides(const struct sac_operand *o, int64_t *strides)
{
    int64_t step = o->dims[1];
    strides[1] = 1;
    for (int d = o->rank - 1; d >= 2; d--) {
        strides[d] = step;
        step *= o->dims[d];
    }
    strides[0] = step;
}

static memory_desc map_desc(const struct sac_operand *o)
{
    int64_t strides[SAC_RANK_MAX];
    last_strides(o, strides);
    return desc_create(o->rank, o->dims, strides);
}

/* ONNX's weights [M,C/g,k..] (or [C,M/g,k..] of a transposed convolution) as oneDNN's
 * [g,M/g,C/g,k..], without the g when there is one group. with_strides: where they lie; else the
 * layout is free. */
static memory_desc weights_desc(const struct request *r, bool with_strides)
{
    const struct sac_operand *w = &r->m.plan->call->in[1];
    int64_t                   dims[SAC_RANK_MAX + 1], strides[SAC_RANK_MAX + 1], taps = 1;
    for (int d = 2; d < w->rank; d++)
        taps *= w->dims[d];
    const int64_t a = w->dims[0] / r->groups, b = w->dims[1];
    dims[0] = r->groups;
    strides[0] = a * b * taps;
    dims[1] = r->deconv ? b : a;
    dims[2] = r->deconv ? a : b;
    strides[1] = r->deconv ? taps : b * taps;
    strides[2] = r->deconv ? b * taps : taps;
    int64_t step = 1;
    for (int d = w->rank - 1; d >= 2; d--) {
        dims[d + 1] = w->dims[d];
        strides[d + 1] = step;
        step *= w->dims[d];
    }
    const int skip = r->groups == 1;
    return desc_create(w->rank + 1 - skip, dims + skip, with_strides ? strides + skip : NULL);
}

static memory_desc given_weights(const void *request)
{
    return weights_desc(request, true);
}

static void make_desc(void *arg)
{
    struct request           *r = arg;
    const struct sac_op_call *c = r->m.plan->call;
    const int64_t             one = 1;
    memory_desc               src = map_desc(&c->in[0]), dst = map_desc(&c->out[0]);
    memory_desc               weights = weights_desc(r, false);
    memory_desc bias = r->m.has_bias ? desc_create(1, &c->out[0].dims[1], &one) : NULL;
    r->m.status = src && dst && weights && (bias || !r->m.has_bias)
                      ? conv_desc(onednn_engine, r->deconv, src, weights, bias, dst, &r->window,
                                  &r->after, &r->m.pd)
                      : dnnl_out_of_memory;
    desc_destroy(&src);
    desc_destroy(&dst);
    desc_destroy(&weights);
    desc_destroy(&bias);
}

/* What oneDNN does itself after the sums; the rest is `second`. */
static void split_activation(const struct sac_node *n, struct after *after,
                             struct sac_activation *second, bool *add_after)
{
    const struct sac_activation act = sac_activation_read(n);
    const int64_t               residual = sac_attr_int(n, "residual", SAC_RESIDUAL_NONE);
    *after = (struct after){.sum = residual == SAC_RESIDUAL_BEFORE, .alg = dnnl_alg_kind_undef};
    *second = (struct sac_activation){.kind = SAC_ACT_NONE};
    *add_after = residual == SAC_RESIDUAL_AFTER;
    if (act.kind == SAC_ACT_RELU || act.kind == SAC_ACT_LEAKY_RELU) {
        after->alg = dnnl_eltwise_relu;
        after->alpha = act.kind == SAC_ACT_RELU ? 0 : act.alpha;
    } else if (act.kind == SAC_ACT_CLIP) {
        after->alg = dnnl_eltwise_clip;
        after->alpha = act.alpha;
        after->beta = act.beta;
    } else {
        *second = act;
    }
}

static bool read_request(struct request *r, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct sac_window         w;
    *r = (struct request){.m = {plan, sac_op_has(c, 2), make_desc, given_weights},
                          .deconv = c->node->op->id == SAC_OP_ConvTranspose,
                          .groups = sac_attr_int(c->node, "group", 1)};
    if ((r->deconv ? sac_window_read_transposed(c, c->in[1].dims + 2, &w)
                   : sac_window_read(c, 0, c->in[1].dims + 2, &w)) != SAC_OK)
        return false;
    r->window.rank = w.rank;
    for (int d = 0; d < w.rank; d++) {
        const int from = SAC_WINDOW_DIMS - w.rank + d;
        r->window.stride[d] = w.stride[from];
        r->window.dilation[d] = w.dilation[from];
        r->window.pad_begin[d] = w.pad_begin[from];
        /* Exactly what the last window reaches, because oneDNN checks. */
        const int64_t in = c->in[0].dims[2 + d], out = c->out[0].dims[2 + d];
        const int64_t windows = r->deconv ? in : out, over = r->deconv ? out : in;
        const int64_t reach = (w.kernel[from] - 1) * w.dilation[from] + 1;
        r->window.pad_end[d] = (windows - 1) * w.stride[from] + reach - over - w.pad_begin[from];
    }
    return true;
}

/* With AVX2 our own kernel takes 0.72 to 0.99 of oneDNN's time (3x3, 56x56x64 to 7x7x512, strided
 * or not, an AMD EPYC, 2026-11-23); without it, and for a transposed one, the alternative is plain
 * C. */
static bool worth_it(const struct sac_op_call *c, bool deconv)
{
    if (deconv || sac_cpu_level() != SAC_CPU_AVX512)
        return deconv || sac_cpu_level() < SAC_CPU_AVX2;
    int64_t taps = 1;
    for (int d = 2; d < c->in[1].rank; d++)
        taps *= c->in[1].dims[d];
    const double flops =
        2.0 * (double)sac_operand_elements(&c->out[0]) * (double)c->in[1].dims[1] * (double)taps;
    return taps > 1 && c->in[1].dims[1] >= WORTH_CHANNELS && c->out[0].dims[1] >= WORTH_CHANNELS &&
           flops >= WORTH_FLOPS;
}

static struct sac_kernel_offer conv_supports(struct sac_device                *dev,
                                             const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_op_call *c = q->call;
    struct sac_kernel_plan    plan = sac_kernel_unplaced(q);
    struct request            r;
    struct sac_activation     second;
    bool                      add_after;
    const bool                deconv = c->node->op->id == SAC_OP_ConvTranspose;
    if (!sac_call_is_float(q->call) || !sac_map_fits(&c->in[0]) || !c->in[1].data ||
        (sac_op_has(c, 2) && !c->in[2].data) || sac_operand_elements(&c->out[0]) == 0)
        return sac_kernel_refuse("not float32 with constant weights");
    if (!worth_it(c, deconv))
        return sac_kernel_refuse("the CPU's own kernel is as fast");
    if (!read_request(&r, &plan))
        return sac_kernel_refuse("its window");
    split_activation(c->node, &r.after, &second, &add_after);
    if (sac_cpu_level() < SAC_CPU_AVX2 && (second.kind != SAC_ACT_NONE || add_after))
        return sac_kernel_refuse("the pass behind it needs AVX2");
    offer.in_layout[0] = offer.in_layout[3] = offer.out_layout[0] = SAC_LAYOUT_CHANNELS_LAST;
    offer.in_layout[1] = offer.in_layout[2] = SAC_LAYOUT_PLAIN;
    if (r.after.sum)
        offer.in_place = 3;
    return making_offer(&r.m, dev->params.threads, offer);
}

static void conv_release(void *state)
{
    struct conv *s = state;
    if (s)
        primitive_release(&s->p, s->threads);
    sac_free(s);
}

static sac_result conv_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct request            r;
    struct conv              *s = sac_new(struct conv);
    if (!s || !read_request(&r, plan)) {
        sac_free(s);
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    }
    s->threads = dev->params.threads;
    split_activation(c->node, &r.after, &s->second, &s->add_after);
    s->residual = r.after.sum;
    s->count = sac_operand_elements(&c->out[0]);
    s->pieces = sac_pieces(dev, SAC_MAX(s->count / 4096, 1), s->count / 4);
    if (r.m.has_bias) {
        s->p.numbers = sac_alloc_aligned(64, SAC_MAX(sac_operand_bytes(&c->in[2]), 64));
        if (s->p.numbers)
            memcpy(s->p.numbers, c->in[2].data, sac_operand_bytes(&c->in[2]));
    }
    dnnl_status_t status = dnnl_out_of_memory;
    if (s->p.numbers || !r.m.has_bias)
        status = making_primitive(&r.m, s->threads, &s->p);
    if (status == dnnl_success) {
        plan->state = s;
        return SAC_OK;
    }
    conv_release(s);
    return onednn_fail(c, status, "a convolution");
}

struct run {
    struct conv  *s;
    const float  *in, *residual;
    float        *out;
    void         *scratch;
    dnnl_status_t status;
};

static void run_on_worker(void *arg)
{
    struct run *r = arg;
    r->status = primitive_run(&r->s->p, r->in, NULL, NULL, r->out, r->scratch);
}

static void second_piece(void *arg, int piece, int worker)
{
    const struct run  *r = arg;
    const struct conv *s = r->s;
    const int64_t first = s->count * piece / s->pieces, end = s->count * (piece + 1) / s->pieces;
    (void)worker;
    SAC_SIMD_PICK(sac_map_activate)(&s->second, r->out + first, r->out + first, end - first);
    if (s->add_after)
        SAC_SIMD_PICK(sac_map_binary)
    (SAC_BINARY_ADD, r->out + first, r->residual + first, 0, r->out + first, end - first);
}

static sac_result conv_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                           void *scratch, struct sac_device_stream *stream)
{
    struct conv *s = state;
    struct run   r = {s,      in[0],   s->residual || s->add_after ? in[3] : NULL,
                      out[0], scratch, dnnl_success};
    (void)stream;
    if (s->residual && r.residual != r.out)
        memcpy(r.out, r.residual, (size_t)s->count * sizeof *r.out);
    worker_call(dev->params.threads, run_on_worker, &r);
    if (r.status != dnnl_success)
        return SAC_FAIL(dev->ctx, SAC_ERR_DEVICE, "oneDNN fails at a convolution (status %d)",
                        r.status);
    if (s->second.kind != SAC_ACT_NONE || s->add_after)
        sac_worker_pool_run(dev->workers, s->pieces, second_piece, &r);
    return SAC_OK;
}

const struct sac_kernel onednn_Conv = {SAC_OP_Conv, conv_supports, conv_prepare, conv_run,
                                       conv_release};
const struct sac_kernel onednn_FusedConv = {SAC_OP_FusedConv, conv_supports, conv_prepare, conv_run,
                                            conv_release};
const struct sac_kernel onednn_ConvTranspose = {SAC_OP_ConvTranspose, conv_supports, conv_prepare,
                                                conv_run, conv_release};
